//! Runs the commands that the documents show: what a reader pastes must work.
//!
//! Blocks fenced as `sh` are run one after the other by the shell, each document in a fresh folder, with the program on
//! the path. `cargo run --release --` stands for the program; of `cargo xtask` only the existence of the command is
//! checked, other `cargo` and `git` commands are left alone. Lines keep their indentation, which scripts of Python in them
//! need. And every machine of the program has to be described.
//!
//! `trycmd` does not fit: it starts one program at a time, without a shell. The documents show pipes, and commands that read
//! what an earlier block wrote; they show next to no output that could be compared.

use crate::run::{Failure, Outcome, Passed, Run, fresh_folder, root};
use std::path::{Path, PathBuf};

/// Checks all documents.
pub fn check() -> Outcome {
    let mut commands = 0;
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap_or(&document).display().to_string();
        let text = std::fs::read_to_string(&document).map_err(|e| format!("{name}: {e}"))?;
        let folder = fresh_folder("documents")?;
        for block in blocks(&text) {
            let lines: Vec<&str> = block.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
            if let Some(unknown) = lines.iter().find_map(|line| unknown_task(line)) {
                return Err(format!("{name}: there is no `cargo xtask {unknown}`").into());
            }
            let script: Vec<String> = lines.iter().filter_map(|line| runnable(line)).collect();
            if !script.is_empty() {
                run(&name, &script, &folder)?;
            }
            commands += lines.iter().filter(|line| !line.starts_with('#')).count();
        }
        println!("{name}: ok");
    }
    println!("{commands} commands");
    describes_all_machines()?;
    Ok(Passed::Checks(1))
}

/// Every machine that `train` takes stands in `docs/machines.md`.
fn describes_all_machines() -> Result<(), Failure> {
    let help = Run::new(root().join("target/release/widemargin")).arg("train").arg("--help").output()?;
    let names = help.split("--machine").nth(1).and_then(|rest| rest.split("[possible values:").nth(1));
    let names = names.and_then(|rest| rest.split(']').next()).ok_or("`train --help` lists no machines".to_string())?;
    let path = root().join("docs/machines.md");
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let missing: Vec<&str> = names.split(',').map(str::trim).filter(|n| !text.contains(&format!("`{n}`"))).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("docs/machines.md says nothing of {}", missing.join(", ")).into())
}

fn documents() -> Vec<PathBuf> {
    let mut found = vec![root().join("README.md"), root().join("CONTRIBUTING.md")];
    for folder in ["docs", "docs/guide"] {
        let docs = std::fs::read_dir(root().join(folder)).into_iter().flatten().flatten().map(|entry| entry.path());
        found.extend(docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    found.sort();
    found
}

/// The text of each block fenced as `sh`, with lines continued by a backslash joined.
fn blocks(text: &str) -> Vec<String> {
    let fenced = text.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    fenced.map(|block| block.replace("\\\n", " ")).collect()
}

/// The task of `cargo xtask TASK` if there is none of that name.
fn unknown_task(line: &str) -> Option<&str> {
    let task = line.strip_prefix("cargo xtask ")?.split_whitespace().next()?;
    (!crate::knows(task)).then_some(task)
}

/// The line as the shell is to run it, if it is to run it.
fn runnable(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix("cargo run --release --") {
        return Some(format!("widemargin{rest}"));
    }
    let left_alone = ["#", "cargo ", "git ", "cd ", "."].iter().any(|start| line.starts_with(start));
    (!left_alone).then(|| line.to_string())
}

fn run(document: &str, script: &[String], folder: &Path) -> Result<(), Failure> {
    let programs = root().join("target/release");
    let old = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&old)));
    let path = path.map_err(|error| error.to_string())?;
    let shell = Run::new("sh").arg("-e").arg("-c").arg(script.join("\n")).inside(folder).with("PATH", path);
    match shell.output() {
        Ok(_) => Ok(()),
        Err(why) => Err(format!("{document}: `{}` failed: {why}", script.join(" ; ")).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_lines() {
        let text = "a\n```sh\ncargo run --release -- compare\nwidemargin info \\\n  wdbc\n```\n```text\nno\n```\n";
        assert_eq!(blocks(text), ["cargo run --release -- compare\nwidemargin info    wdbc"]);
        assert_eq!(runnable("cargo run --release -- compare").unwrap(), "widemargin compare");
        assert_eq!(runnable("cargo build --release"), None);
        assert_eq!(unknown_task("cargo xtask fly --fast"), Some("fly"));
        assert_eq!(unknown_task("cargo xtask test"), None);
    }
}
