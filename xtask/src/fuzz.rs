//! `cargo xtask fuzz`: random cases against what is promised (RELIABILITY.md), and the short run among the tests.

use crate::run::{Outcome, Passed, Run, cargo, root};
use std::process::ExitCode;

/// The targets, and how many cases of each the tests run: about a minute on two processors.
const TARGETS: [(&str, &str); 6] = [
    ("readers", "3000"),
    ("models", "3000"),
    ("journals", "60"),
    ("languages", "2000"),
    ("training", "400"),
    ("faults", "16"),
];

/// The long run: all targets or one, with the options handed on.
pub fn all(words: &[&str]) -> ExitCode {
    let named = words.first().filter(|word| !word.starts_with("--"));
    let options = if named.is_some() { &words[1..] } else { words };
    if let Some(name) = named.filter(|name| TARGETS.iter().all(|(target, _)| target != *name)) {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!("error: there is no target {name}; there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    if build().is_err() {
        return ExitCode::FAILURE;
    }
    let (mut passed, mut failed) = (0, 0);
    for (name, few) in TARGETS.iter().filter(|(name, _)| named.is_none_or(|wanted| wanted == name)) {
        let few = ["--count", few];
        let options = if options.is_empty() { &few[..] } else { options };
        match target(name, options) {
            Ok(Passed::Checks(count)) => passed += count,
            Ok(Passed::Skipped(_)) => {}
            Err(failure) => {
                println!("{name}: {}", failure.reason);
                passed += failure.passed;
                failed += failure.failed.max(1);
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The short run: the same cases each time.
pub fn short() -> Outcome {
    build()?;
    let mut total = 0;
    for (name, count) in TARGETS {
        if let Passed::Checks(count) = target(name, &["--count", count])? {
            total += count;
        }
    }
    Ok(Passed::Checks(total))
}

fn build() -> Outcome {
    cargo(&["build", "--release", "--workspace", "--locked"]).one()
}

fn target(name: &str, options: &[&str]) -> Outcome {
    println!("widemargin-fuzz {name} {}", options.join(" "));
    let run = Run::new(root().join("target/release/widemargin-fuzz")).arg(name);
    let run = options.iter().fold(run, |run, word| run.arg(word));
    run.counted(|line| {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some((passed.parse().ok()?, failed.parse().ok()?))
    })
}
