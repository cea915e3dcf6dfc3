//! Random cases against promises: `widemargin-fuzz TARGET [--seed N] [--count N] [--seconds S] [--jobs N] [--write DIR]`.
//!
//! Every case follows from its target and its seed alone: `widemargin-fuzz TARGET --seed N` repeats one. What is promised, and
//! which runs were made, stands in RELIABILITY.md.

mod case;
mod draw;
mod mutate;
mod program;
mod run;
mod targets;

use std::process::ExitCode;
use targets::TARGETS;

/// What was asked for.
struct Asked {
    target: &'static targets::Target,
    plan: run::Plan,
    write: Option<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let asked = match read(&words) {
        Ok(asked) => asked,
        Err(message) => {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            eprintln!(
                "error: {message}\n\nwidemargin-fuzz TARGET [--seed N] [--count N] [--seconds S] [--jobs N] [--write DIR]\n\
                 targets: {}",
                names.join(", ")
            );
            return ExitCode::from(2);
        }
    };
    if let Some(folder) = asked.write {
        return match targets::training::write(asked.plan.seed, &folder) {
            Ok(command) => {
                println!("{command}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("error: {error}");
                ExitCode::FAILURE
            }
        };
    }
    if run::all(asked.target, asked.plan) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(words: &[String]) -> Result<Asked, String> {
    let (name, options) = words.split_first().ok_or("no target was named")?;
    let target = TARGETS.iter().find(|t| t.name == name).ok_or_else(|| format!("there is no target {name}"))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut plan = run::Plan { seed: 0, count: None, seconds: None, jobs };
    let mut write = None;
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let value = options.next().ok_or_else(|| format!("{option} without a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{option} {value}: expected a whole number"));
        match option.as_str() {
            "--seed" => plan.seed = number()?,
            "--count" => plan.count = Some(number()?),
            "--seconds" => plan.seconds = Some(number()?),
            "--jobs" => plan.jobs = number()?.clamp(1, 1024) as usize,
            "--write" if target.name == "training" => write = Some(value.clone()),
            _ => return Err(format!("{option} is no option of {name}")),
        }
    }
    if plan.count.is_none() && plan.seconds.is_none() {
        plan.count = Some(1);
    }
    Ok(Asked { target, plan, write })
}
