//! The command line as users run it: the program that was built beside this one.

use crate::case::{Failure, require};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The program about to run with these words in a folder, one thread to a case.
pub fn program(folder: &Path, words: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(path()?);
    command.current_dir(folder).args(words).env("RAYON_NUM_THREADS", "1").env("COLUMNS", "100");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Where the program is.
pub fn path() -> Result<PathBuf, Failure> {
    let here = std::env::current_exe()?;
    let name = format!("widemargin{}", std::env::consts::EXE_SUFFIX);
    let beside = here.parent().map(|folder| folder.join(name)).filter(|path| path.exists());
    beside.ok_or_else(|| "the program widemargin is not built: `cargo build --release --workspace`".into())
}

/// Fails if a run ended by a panic, by a signal, or badly and without a word.
pub fn decent(output: &Output) -> Result<(), Failure> {
    let errors = String::from_utf8_lossy(&output.stderr);
    require(!errors.contains("has a bug") && !errors.contains("panicked"), || format!("panic: {errors}"))?;
    let code = output.status.code();
    require(matches!(code, Some(0..=2)), || format!("it ended with {}: {errors}", output.status))?;
    require(code == Some(0) || !errors.trim().is_empty(), || format!("it ended with {code:?} and no word why"))
}

/// Fails unless a run went well.
pub fn good(output: &Output) -> Result<(), Failure> {
    decent(output)?;
    require(output.status.success(), || {
        format!("it ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr))
    })
}
