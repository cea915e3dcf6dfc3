//! The order of modules: a module may use only what stands above it in the list of ARCHITECTURE.md.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the library in the order of the list, each with its place; modules on one line may not use each other.
fn listed(text: &str) -> Vec<(String, usize)> {
    let list = text.split("```modules").nth(1).and_then(|rest| rest.split("```").next()).expect("a list of modules");
    let mut places = Vec::new();
    for (place, line) in list.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase())).enumerate() {
        let names = line.split("  ").next().unwrap_or_default();
        for name in names.split(',') {
            places.push((name.trim().trim_end_matches('/').to_string(), place));
        }
    }
    places
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The modules that a file names by `crate::`, its tests left out.
fn used(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    // One line, as a group of names may go over several.
    let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut names = Vec::new();
    for rest in code.join(" ").split("crate::").skip(1) {
        let group = rest.strip_prefix('{').map_or(rest, |group| group.split('}').next().unwrap_or_default());
        let parts: Vec<&str> = if rest.starts_with('{') { group.split(',').collect() } else { vec![rest] };
        for part in parts {
            let name: String = part.trim().chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
            names.push(name);
        }
    }
    names
}

#[test]
fn modules_use_only_what_stands_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("../../ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let places = listed(&text);
    let place = |name: &str| places.iter().find(|(listed, _)| listed == name).map(|(_, place)| *place);
    let source = root.join("src");
    let mut sources = Vec::new();
    files(&source, &mut sources);
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for path in sources {
        let inside = path.strip_prefix(&source).expect("a file of the library");
        let module = inside.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
        if module == "lib" {
            continue;
        }
        let Some(own) = place(&module) else {
            wrong.push(format!("{module} is not in the list of ARCHITECTURE.md"));
            continue;
        };
        for name in used(&fs::read_to_string(&path).expect("a source")) {
            if name == module {
                continue;
            }
            if let Some(other) = place(&name) {
                checked += 1;
                if other >= own {
                    wrong.push(format!("{} uses {name}, which does not stand above {module}", inside.display()));
                }
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "only {checked} uses were found");
}

/// The typed learners name theirs (one learner each), and files of other programs say which machine they hold; `svm` is also how
/// names of LIBSVM files end.
#[test]
fn nothing_outside_its_module_names_a_machine() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    files(&source, &mut sources);
    let mut wrong = Vec::new();
    for path in sources {
        let inside = path.strip_prefix(&source).expect("inside").display().to_string();
        if inside.starts_with("machine") || ["learner.rs", "model/foreign.rs"].contains(&inside.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().map(|line| line.split("//").next().unwrap_or_default()) {
            let words: Vec<&str> = line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect();
            let named = widemargin::machine::MACHINES.iter().map(|machine| machine.name());
            let named = named.filter(|name| words.contains(name) && !(*name == "svm" && inside == "data/format.rs"));
            wrong.extend(named.map(|name| format!("{inside} names {name}: {}", line.trim())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_two_types_share_a_name() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    files(&source, &mut sources);
    let mut types: Vec<(String, String)> = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines() {
            let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
            if let (Some("struct" | "enum" | "trait"), Some(name)) = (words.next(), words.next()) {
                let name: String = name.chars().take_while(|c| c.is_alphanumeric()).collect();
                // Macros have a variable in place of a name.
                if !name.is_empty() {
                    types.push((name, path.strip_prefix(&source).expect("inside").display().to_string()));
                }
            }
        }
    }
    types.sort();
    let twice: Vec<String> = types
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| format!("{}: {} and {}", pair[0].0, pair[0].1, pair[1].1))
        .collect();
    assert!(types.len() > 100 && twice.is_empty(), "{}", twice.join("\n"));
}
