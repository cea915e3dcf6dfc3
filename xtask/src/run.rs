//! Running programs and counting what they say.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a step went well.
pub enum Passed {
    /// This many checks passed.
    Checks(usize),
    /// It was left out, by an option that is named: what is missing on a machine is a failure.
    Skipped(String),
}

/// How a step failed.
pub struct Failure {
    /// In one line.
    pub reason: String,
    /// Checks that passed nevertheless.
    pub passed: usize,
    /// Checks that failed, if they are counted.
    pub failed: usize,
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self { reason, passed: 0, failed: 0 }
    }
}

/// What a step returns.
pub type Outcome = Result<Passed, Failure>;

/// The workspace's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace")
}

/// A program about to run in the workspace's folder.
pub struct Run(Command);

/// Cargo with these words.
pub fn cargo(words: &[&str]) -> Run {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut run = Run::new(program);
    run.0.args(words);
    println!("cargo {}", words.join(" "));
    run
}

impl Run {
    /// This program.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.current_dir(root());
        Self(command)
    }

    /// With one more word.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.0.arg(word);
        self
    }

    /// With these words besides.
    pub fn args<const N: usize>(mut self, words: [&str; N]) -> Self {
        self.0.args(words);
        self
    }

    /// In this folder.
    pub fn inside(mut self, folder: &Path) -> Self {
        self.0.current_dir(folder);
        self
    }

    /// With this variable set.
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Runs it; success counts as one check.
    pub fn one(mut self) -> Outcome {
        let status = self.0.status().map_err(|error| self.cannot_start(&error))?;
        if status.success() { Ok(Passed::Checks(1)) } else { Err(format!("it ended with {status}").into()) }
    }

    /// Runs it, shows its output, and adds up the `(passed, failed)` that `count` finds in its lines.
    pub fn counted(mut self, count: impl Fn(&str) -> Option<(usize, usize)>) -> Outcome {
        let mut child = self.0.stdout(Stdio::piped()).spawn().map_err(|error| self.cannot_start(&error))?;
        let (mut passed, mut failed) = (0, 0);
        for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
            let line = line.map_err(|error| format!("its output cannot be read: {error}"))?;
            println!("{line}");
            if let Some((more_passed, more_failed)) = count(&line) {
                passed += more_passed;
                failed += more_failed;
            }
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        match (status.success(), failed) {
            (true, 0) if passed > 0 => Ok(Passed::Checks(passed)),
            (true, 0) => Err("it checked nothing".to_string().into()),
            _ => Err(Failure { reason: format!("{failed} failed, it ended with {status}"), passed, failed }),
        }
    }

    /// Runs it silently and hands back its standard output; on failure, the last line of its errors.
    pub fn output(mut self) -> Result<String, String> {
        let output = self.0.output().map_err(|error| self.cannot_start(&error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = errors.lines().rev().find(|line| !line.trim().is_empty());
        Err(last.map_or_else(|| format!("it ended with {}", output.status), |line| line.trim().to_string()))
    }

    fn cannot_start(&self, error: &std::io::Error) -> String {
        format!("{} cannot be started: {error}", self.0.get_program().to_string_lossy())
    }
}

/// A fresh, empty folder under `target`.
pub fn fresh_folder(name: &str) -> Result<PathBuf, String> {
    let folder = root().join("target").join(name);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    Ok(folder)
}
