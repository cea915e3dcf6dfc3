//! `cargo xtask docs`: the guide as a site in `target/site`, with Rust's own documentation beside it, and a check of its links.

use crate::python::Venv;
use crate::run::{Outcome, Passed, cargo, root};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// Builds the site and checks it.
pub fn build() -> Outcome {
    // First what may be missing on this machine, then what takes minutes.
    let venv = Venv::with(&root().join("docs/requirements.txt"))?;
    cargo(&["build", "--release", "--workspace", "--locked"]).one()?;
    cargo(&["doc", "--release", "--workspace", "--no-deps", "--locked"]).with("RUSTDOCFLAGS", "-D warnings").one()?;
    let program = root().join("target/release").join(format!("widemargin{}", std::env::consts::EXE_SUFFIX));
    // What the theme's makers have to say of other software is no part of ours.
    let mkdocs = venv.module("mkdocs").args(["build", "--quiet", "--strict"]).with("NO_MKDOCS_2_WARNING", "1");
    mkdocs.with("WIDEMARGIN", program).one()?;
    let site = root().join("target/site");
    copy(&root().join("target/doc"), &site.join("rust"))?;
    let pages = pages(&site)?;
    let checked = links(&site, &pages)?;
    println!("{}: {} pages, {checked} links", site.join("index.html").display(), pages.len());
    Ok(Passed::Checks(pages.len()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().map_err(failed)?.is_dir() {
            true => copy(&path, &place)?,
            false => std::fs::copy(&path, &place).map(drop).map_err(failed)?,
        }
    }
    Ok(())
}

/// The guide's own pages, by path; Rust's documentation is checked by rustdoc.
fn pages(site: &Path) -> Result<HashMap<PathBuf, String>, String> {
    let mut found = HashMap::new();
    let mut folders = vec![site.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
            let path = entry.path();
            if path.is_dir() && path != site.join("rust") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") && !path.is_dir() {
                let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                found.insert(path, text);
            }
        }
    }
    Ok(found)
}

/// Every link and picture leads to a file, and every `#name` to something of that name; nothing is fetched from elsewhere to
/// show a page. How many were followed.
fn links(site: &Path, pages: &HashMap<PathBuf, String>) -> Result<usize, String> {
    let names: HashMap<&PathBuf, HashSet<&str>> =
        pages.iter().map(|(path, text)| (path, attributes(text, "id").collect())).collect();
    let (mut count, mut broken) = (0, Vec::new());
    // The page for what is not found stands wherever that was asked for, and cannot be read from disk.
    for (path, text) in pages.iter().filter(|(path, _)| !path.ends_with("404.html")) {
        let page = path.strip_prefix(site).unwrap_or(path).display();
        let sources = attributes(text, "src").chain(stylesheets(text));
        broken.extend(sources.filter(|s| s.contains("://")).map(|s| format!("{page} fetches {s}")));
        for link in attributes(text, "href").chain(attributes(text, "src")) {
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
                continue;
            }
            count += 1;
            let (file, name) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => tidy(&path.parent().unwrap_or(site).join(file)),
            };
            let target = if target.is_dir() { target.join("index.html") } else { target };
            let named = names.get(&target).is_none_or(|names| name.is_empty() || names.contains(name));
            if !target.exists() || !named {
                broken.push(format!("{page} links to {link}, which is not there"));
            }
        }
    }
    broken.sort();
    if broken.is_empty() { Ok(count) } else { Err(broken.join("\n   ")) }
}

/// Links to style sheets.
fn stylesheets(text: &str) -> impl Iterator<Item = &str> {
    text.split("<link ")
        .skip(1)
        .filter_map(|rest| rest.split('>').next())
        .filter(|tag| tag.contains("stylesheet"))
        .flat_map(|tag| attributes(tag, "href"))
}

/// The values of an attribute, quoted.
fn attributes<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let quoted = move |rest: &'a str| rest.split('"').next();
    text.match_indices(name).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back()?;
        let rest = text[at + name.len()..].strip_prefix("=\"")?;
        before.is_whitespace().then(|| quoted(rest)).flatten()
    })
}

/// A path without `..`.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(tidy.pop()),
            std::path::Component::CurDir => {}
            part => tidy.push(part),
        }
    }
    tidy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_found_whole() {
        let text = "<a href=\"x.html#y\" data-href=\"no\" id=\"z\"><img src=\"p.svg\"><link rel=\"stylesheet\" href=\"s.css\">";
        assert_eq!(attributes(text, "href").collect::<Vec<_>>(), ["x.html#y", "s.css"]);
        assert_eq!(attributes(text, "id").collect::<Vec<_>>(), ["z"]);
        assert_eq!(stylesheets(text).collect::<Vec<_>>(), ["s.css"]);
        assert_eq!(tidy(Path::new("a/b/../c/./d")), Path::new("a/c/d"));
    }

    #[test]
    fn broken_links_are_named() {
        let site = std::env::temp_dir().join(format!("widemargin-links-{}", std::process::id()));
        std::fs::create_dir_all(&site).unwrap();
        std::fs::write(site.join("a.html"), "<a href=\"b.html#here\">b</a><a href=\"gone.html\">c</a>").unwrap();
        std::fs::write(site.join("b.html"), "<p id=\"there\"><a href=\"a.html\">a</a>").unwrap();
        let found = links(&site, &pages(&site).unwrap()).unwrap_err();
        std::fs::remove_dir_all(&site).unwrap();
        assert!(found.contains("b.html#here") && found.contains("gone.html") && found.lines().count() == 2, "{found}");
    }
}
