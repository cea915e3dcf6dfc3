//! `cargo xtask test`: the steps, in order.

use crate::python::Venv;
use crate::run::{Failure, Outcome, Passed, Run, cargo, fresh_folder, root};
use crate::{commands, deny, fuzz, site};
use std::process::ExitCode;
use std::time::Instant;

/// What to leave out.
#[derive(Clone, Default)]
pub struct Options {
    /// Part of the name of the steps to run; empty for all.
    only: String,
    quick: bool,
    no_licences: bool,
    no_peers: bool,
    no_python: bool,
    no_clusters: bool,
    no_guide: bool,
    no_browser: bool,
}

impl Options {
    /// From the words after `test`; an unknown one is handed back.
    pub fn read(words: &[&str]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            match word {
                "--only" => options.only = words.next().ok_or("--only without a name")?.to_lowercase(),
                "--quick" => options.quick = true,
                "--no-licences" => options.no_licences = true,
                "--no-peers" => options.no_peers = true,
                "--no-python" => options.no_python = true,
                "--no-clusters" => options.no_clusters = true,
                "--no-guide" => options.no_guide = true,
                "--no-browser" => options.no_browser = true,
                other => return Err(other.into()),
            }
        }
        Ok(options)
    }
}

/// One step.
struct Step {
    name: &'static str,
    /// What to do if it fails.
    advice: &'static str,
    run: fn(&Options) -> Outcome,
    /// Whether `--quick` runs it.
    quick: bool,
}

/// All of them build with the same profile and for the whole workspace, so that no dependency is compiled twice.
const STEPS: &[Step] = &[
    Step { name: "format", advice: "run `cargo fmt --all`", run: format, quick: true },
    Step { name: "lints", advice: "mend what clippy names above", run: lints, quick: true },
    Step {
        name: "tests",
        advice: "the failing tests are listed above; run one with `cargo test --release --workspace NAME`",
        run: tests,
        quick: true,
    },
    Step { name: "documentation", advice: "mend the comments that rustdoc names above", run: docs, quick: false },
    Step {
        name: "licences and sources of the dependencies",
        advice: "replace the dependency, or add its licence to `allow` in deny.toml if it is a permissive one",
        run: licences,
        quick: false,
    },
    Step {
        name: "commands in the documents",
        advice: "the documents promise a command that does not work: mend one or the other",
        run: |_| commands::check(),
        quick: false,
    },
    Step {
        name: "fuzzing",
        advice: "each line with FAILED above names a target and a seed; `target/release/widemargin-fuzz TARGET --seed N` repeats it",
        run: |_| fuzz::short(),
        quick: false,
    },
    Step {
        name: "peers",
        advice: "the checks marked FAILED above say what differs; run the script alone with \
                 `target/venv/bin/python tests/peers/identities.py target/release/widemargin`",
        run: peers,
        quick: false,
    },
    Step {
        name: "Python package",
        advice: "the failing tests are listed above; run one with `target/venv/bin/python -m pytest -k NAME`",
        run: python,
        quick: false,
    },
    Step {
        name: "clusters",
        advice: "the failing tests are listed above; run one with `target/venv/bin/python -m pytest python/tests/cluster -k NAME`",
        run: clusters,
        quick: false,
    },
    Step {
        name: "the guide",
        advice: "mkdocs, or the check of links, names the page and what is wrong with it; `cargo xtask docs` runs it alone",
        run: guide,
        quick: false,
    },
    Step {
        name: "pages in a browser",
        advice: "the checks marked FAILED above say what a reader would meet; run the script alone with \
                 `target/venv/bin/python tests/browser/pages.py target/release/widemargin target/site target/pictures`",
        run: browser,
        quick: false,
    },
];

/// Runs the steps; the last line counts what passed and failed.
pub fn all(options: Options) -> ExitCode {
    let start = Instant::now();
    let (mut passed, mut failed) = (0, 0);
    let mut skipped = Vec::new();
    let wanted = |step: &&Step| (step.quick || !options.quick) && step.name.to_lowercase().contains(&options.only);
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    for (number, step) in steps.iter().enumerate() {
        println!("\n── {}/{} {} ──", number + 1, steps.len(), step.name);
        let begin = Instant::now();
        match (step.run)(&options) {
            Ok(Passed::Checks(count)) => {
                passed += count;
                println!("── {}: ok, {count} passed, {:.0} s", step.name, begin.elapsed().as_secs_f64());
            }
            Ok(Passed::Skipped(reason)) => {
                println!("── {}: SKIPPED: {reason}", step.name);
                skipped.push(format!("{}: {reason}", step.name));
            }
            Err(failure) => {
                passed += failure.passed;
                failed += failure.failed.max(1);
                println!("── {}: FAILED: {}", step.name, failure.reason);
                println!("   what to do: {}", step.advice);
                break;
            }
        }
    }
    println!("\n{:.0} s in all", start.elapsed().as_secs_f64());
    skipped.iter().for_each(|line| println!("skipped {line}"));
    println!("{passed} passed, {failed} failed");
    if failed == 0 && !steps.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn format(_: &Options) -> Outcome {
    cargo(&["fmt", "--all", "--check"]).one()
}

/// The library is also looked at without any of its features, which the workspace as a whole turns on.
fn lints(_: &Options) -> Outcome {
    cargo(&["check", "--release", "-p", "widemargin", "--no-default-features", "--locked"]).one()?;
    cargo(&["clippy", "--release", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]).one()
}

fn tests(_: &Options) -> Outcome {
    cargo(&["test", "--release", "--workspace", "--locked", "--no-fail-fast"]).counted(|line| {
        // test result: ok. 12 passed; 0 failed; …
        let rest = line.strip_prefix("test result: ")?.split_once(". ")?.1;
        let number = |part: &str| part.trim().split(' ').next()?.parse().ok();
        let mut parts = rest.split(';');
        Some((number(parts.next()?)?, number(parts.next()?)?))
    })
}

fn docs(_: &Options) -> Outcome {
    cargo(&["doc", "--release", "--workspace", "--no-deps", "--locked"]).with("RUSTDOCFLAGS", "-D warnings").one()
}

/// A step that was left out by an option: the only reason to leave one out.
fn left_out(option: &str) -> Outcome {
    Ok(Passed::Skipped(format!("left out by {option}")))
}

fn licences(options: &Options) -> Outcome {
    if options.no_licences { left_out("--no-licences") } else { deny::check() }
}

fn peers(options: &Options) -> Outcome {
    if options.no_peers {
        return left_out("--no-peers");
    }
    let venv = Venv::with(&root().join("tests/peers/requirements.txt"))
        .map_err(|why| format!("{why}; --no-peers leaves this step out"))?;
    let folder = root().join("tests/peers");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "py"))
        .collect();
    scripts.sort();
    let mut total = 0;
    for script in scripts {
        let run = venv.python().arg(&script).arg(root().join("target/release/widemargin"));
        let found = run.counted(script_counts)?;
        if let Passed::Checks(count) = found {
            total += count;
        }
    }
    Ok(Passed::Checks(total))
}

/// `12 passed, 0 failed`
fn script_counts(line: &str) -> Option<(usize, usize)> {
    let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

fn guide(options: &Options) -> Outcome {
    if options.no_guide {
        return left_out("--no-guide");
    }
    site::build().map_err(|failure| Failure {
        reason: format!("{}; --no-guide leaves this step out", failure.reason),
        ..failure
    })
}

/// Opens the pages of the program, and the guide if it was built, in Chromium.
fn browser(options: &Options) -> Outcome {
    if options.no_browser {
        return left_out("--no-browser");
    }
    for program in ["chromium", "chromedriver"] {
        let there = Run::new(program).arg("--version").output();
        there.map_err(|why| {
            format!("{why} (Debian has it in chromium and chromium-driver); --no-browser leaves this step out")
        })?;
    }
    let venv = Venv::with(&root().join("tests/browser/requirements.txt"))
        .map_err(|why| format!("{why}; --no-browser leaves this step out"))?;
    cargo(&["build", "--release", "--workspace", "--locked"]).one()?;
    let guide = root().join("target/site");
    let guide = if options.no_guide || !guide.exists() { "-".into() } else { guide };
    let program = root().join("target/release/widemargin");
    venv.python().arg(root().join("tests/browser/pages.py")).arg(program).arg(guide).counted(script_counts)
}

/// Builds the wheel, installs it, and runs the package's tests with scikit-learn's own checks.
fn python(options: &Options) -> Outcome {
    if options.no_python {
        return left_out("--no-python");
    }
    let venv = Venv::with(&root().join("python/requirements.txt"))
        .map_err(|why| format!("{why}; --no-python leaves this step out"))?;
    // The package's tests compare with the command, which the step of the Rust tests has built if it ran.
    if !options.only.is_empty() {
        cargo(&["build", "--release", "--workspace", "--locked"]).one()?;
    }
    venv.module("ruff").args(["check", "python", "examples", "studies", "bench", "docs", "tests/browser"]).one()?;
    venv.module("ruff")
        .args(["format", "--check", "python", "examples", "studies", "bench", "docs", "tests/browser"])
        .one()?;
    let wheels = fresh_folder("wheels")?;
    venv.module("maturin").args(["build", "--release", "--locked", "--out"]).arg(&wheels).one()?;
    let pip = venv.module("pip").args(["install", "--quiet", "--force-reinstall", "--no-deps", "--no-index"]);
    pip.args(["widemargin", "--find-links"]).arg(&wheels).one()?;
    venv.module("pytest").args(["--quiet", "--ignore", CLUSTERS]).counted(pytest_counts)
}

/// Tests that start clusters of processes, with the engines they need.
const CLUSTERS: &str = "python/tests/cluster";

/// Trains on real clusters of worker processes, with the wheel that the step before installed.
fn clusters(options: &Options) -> Outcome {
    if options.no_clusters || options.no_python {
        return left_out(if options.no_clusters { "--no-clusters" } else { "--no-python" });
    }
    Run::new("java").arg("-version").output().map_err(|why| {
        format!("{why} (Spark needs it; Debian has it in openjdk-17-jre-headless); --no-clusters leaves this step out")
    })?;
    if !options.only.is_empty() {
        python(options)?;
    }
    let venv = Venv::with(&root().join(CLUSTERS).join("requirements.txt"))
        .map_err(|why| format!("{why}; --no-clusters leaves this step out"))?;
    venv.module("pytest").args(["--quiet", CLUSTERS]).counted(pytest_counts)
}

/// `12 passed, 1 skipped, 3 xfailed in 5.00s`
fn pytest_counts(line: &str) -> Option<(usize, usize)> {
    let (counts, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let (mut passed, mut failed) = (0, 0);
    for part in counts.split(", ") {
        let (number, word) = part.split_once(' ')?;
        let number: usize = number.parse().ok()?;
        match word {
            "passed" => passed += number,
            "failed" | "error" | "errors" => failed += number,
            _ => {}
        }
    }
    Some((passed, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_pytest() {
        assert_eq!(pytest_counts("12 passed, 1 skipped, 3 xfailed in 5.00s"), Some((12, 0)));
        assert_eq!(pytest_counts("=== 2 failed, 12 passed, 1 error in 65.00s (0:01:05) ==="), Some((12, 3)));
        assert_eq!(pytest_counts("FAILED a::b - it came in pieces"), None);
        assert_eq!(pytest_counts("no tests ran in 0.01s"), None);
    }
}
