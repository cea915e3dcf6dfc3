//! The licences, sources and, where they can be fetched, the security advisories of all dependencies, by cargo-deny over
//! `deny.toml`.
//!
//! It is installed into `target/tools` on first use: without optimisation, which makes that two minutes instead of four on two
//! processors (213 and 426 processor seconds) and the check itself no slower than a few seconds.

use crate::run::{Outcome, Passed, Run, cargo, root};
use std::path::PathBuf;

/// The version that is installed.
const VERSION: &str = "0.19.0";

/// Checks every dependency on every platform.
pub fn check() -> Outcome {
    let tool = tool().map_err(|why| {
        format!("cargo-deny {VERSION} cannot be installed ({why}); --no-licences leaves this step out")
    })?;
    Run::new(&tool).args(["check", "licenses", "bans", "sources"]).one()?;
    let checks = match Run::new(&tool).args(["fetch", "db"]).output() {
        Ok(_) => {
            Run::new(&tool).args(["check", "--disable-fetch", "advisories"]).one()?;
            4
        }
        Err(why) => {
            println!("advisories are NOT checked: their database cannot be fetched ({why})");
            3
        }
    };
    Ok(Passed::Checks(checks))
}

/// cargo-deny in this version.
fn tool() -> Result<PathBuf, String> {
    let folder = root().join("target/tools");
    let tool = folder.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    let there = Run::new(&tool).arg("--version").output().is_ok_and(|said| said.trim().ends_with(VERSION));
    if !there {
        let words =
            ["install", "--quiet", "--locked", "--debug", "--force", "--version", VERSION, "cargo-deny", "--root"];
        cargo(&words).arg(&folder).output()?;
    }
    Ok(tool)
}
