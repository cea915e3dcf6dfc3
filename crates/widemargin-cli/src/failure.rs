//! How a command ends badly, and with which exit status.

use crate::interrupt;
use std::io::{self, Write};
use std::process::ExitCode;
use widemargin::{Error, Wording};

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The work failed.
pub const FAILED: u8 = 1;
/// The command was not used rightly.
pub const USAGE: u8 = 2;
/// Ctrl-C, as shells count it.
pub const INTERRUPTED: u8 = 130;

/// Why a command ended.
#[derive(Debug)]
pub enum Failure {
    /// The library says why.
    Library(Error),
    /// Anything else that went wrong.
    Other(String),
    /// Ctrl-C, and what to say about it.
    Stopped(String),
    /// Whoever read our output has seen enough.
    BrokenPipe,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            error => Self::Library(error),
        }
    }
}

/// Only standard output is written without a file's name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Other(format!("standard output: {error}")),
        }
    }
}

impl Failure {
    /// Says what went wrong and gives the exit status.
    pub fn report(&self) -> ExitCode {
        let (code, message) = match self {
            Self::BrokenPipe => return ExitCode::SUCCESS,
            Self::Other(message) => (FAILED, message.clone()),
            Self::Stopped(message) => (INTERRUPTED, message.clone()),
            Self::Library(error) => (status(error), wording(error)),
        };
        if code == INTERRUPTED && !interrupt::first_to_tell() {
            return ExitCode::from(code);
        }
        // Nobody is left to tell if even standard error is closed.
        let _ = writeln!(io::stderr(), "error: {message}");
        if code == USAGE {
            let _ = writeln!(io::stderr(), "\nFor more information, try '--help'.");
        }
        ExitCode::from(code)
    }
}

fn status(error: &Error) -> u8 {
    match error {
        Error::Parameter { .. } | Error::Conflict { .. } | Error::Usage(_) => USAGE,
        Error::Interrupted => INTERRUPTED,
        _ => FAILED,
    }
}

/// Parameters as they are typed.
pub struct Flags;

impl Wording for Flags {
    fn name(&self, parameter: &str) -> Option<String> {
        // Options have hyphens where names in programs cannot.
        Some(format!("--{}", parameter.replace('_', "-")))
    }

    fn value(&self, parameter: &str, value: &str) -> Option<String> {
        Some(self.given(parameter, value))
    }

    fn given(&self, parameter: &str, value: &str) -> String {
        format!("{} {value}", self.name(parameter).unwrap_or_default())
    }
}

/// The message, with options named as they are typed.
fn wording(error: &Error) -> String {
    match error {
        Error::Io { path, source } if source.kind() == io::ErrorKind::NotFound => {
            format!("{}: there is no such file or folder", path.display())
        }
        Error::Interrupted => "interrupted; no file was changed".into(),
        other => other.worded(&Flags),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use widemargin::Remedy;

    #[test]
    fn parameters_are_named_as_they_are_typed() {
        let error = Error::parameter("max_iter", 0, "a whole number >= 1");
        assert_eq!((status(&error), wording(&error).as_str()), (USAGE, "--max-iter 0: expected a whole number >= 1"));
        let advice = [Remedy::Use("solver", "dcd".into()), Remedy::Raise("memory")];
        let error = Error::conflict("too much", advice);
        assert_eq!((status(&error), wording(&error).as_str()), (USAGE, "too much: use --solver dcd or raise --memory"));
    }
}
