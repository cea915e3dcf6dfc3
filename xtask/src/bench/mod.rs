//! `cargo xtask bench`: our speed beside that of other programs, on the same problems, in one run.
//!
//! The data are drawn here; `bench/run.py` runs the programs, since most of the others live in Python, and writes
//! `BENCHMARKS.md`.

mod data;
mod random;
mod shapes;

use crate::python::Venv;
use crate::run::{cargo, root};
use std::path::Path;
use std::process::ExitCode;

/// Builds the program, installs the others, runs the measurements. `options` go to `bench/run.py`.
pub fn all(options: &[&str]) -> ExitCode {
    match prepare().and_then(|venv| measure(&venv, options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes one data set.
pub fn write_data(what: &str, folder: &str) -> ExitCode {
    match data::write(what, Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<Venv, String> {
    cargo(&["build", "--release", "--workspace", "--locked"]).one().map_err(|failure| failure.reason)?;
    let venv = Venv::open()?;
    venv.install_each(&root().join("bench/requirements.txt"))?;
    Ok(venv)
}

fn measure(venv: &Venv, options: &[&str]) -> Result<(), String> {
    let xtask = std::env::current_exe().map_err(|e| format!("this program has no path: {e}"))?;
    let mut run = venv.python().arg(root().join("bench/run.py")).arg("--xtask").arg(xtask);
    for option in options {
        run = run.arg(option);
    }
    run.one().map(drop).map_err(|failure| failure.reason)
}
