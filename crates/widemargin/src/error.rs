//! Everything that can go wrong, as data: each variant carries the facts, its message is for the person who meets it.

use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file (`-` for standard input or output).
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A data file does not say what its format demands.
    #[error("{file}:{line}:{column}: found {found}, expected {expected}")]
    Parse {
        /// The file's name as the user gave it.
        file: String,
        /// Line, from 1 (for Parquet: the row).
        line: u64,
        /// Column, from 1, in bytes (for CSV and Parquet: the field).
        column: u64,
        /// What stands there.
        found: String,
        /// What should.
        expected: String,
    },
    /// A data file is readable but cannot be used.
    #[error("{file}: {reason}")]
    Data {
        /// The file's name as the user gave it, or what the data is.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A parameter is outside its domain, unknown, or does not fit the others.
    #[error("{name} = {value}: expected {expected}")]
    Parameter {
        /// The parameter as the user writes it.
        name: String,
        /// What was given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Two choices that cannot go together.
    #[error("{0}")]
    Usage(String),
    /// A search by leave-one-out margins, of a machine that has none in closed form here.
    #[error("{reason}; use --select cv")]
    NoLeaveOneOut {
        /// Why it has none.
        reason: String,
    },
    /// A kernel with a machine that has linear weights only.
    #[error("{machine} is linear only: use --kernel linear instead of {kernel}")]
    LinearOnly {
        /// The machine's name.
        machine: &'static str,
        /// The kernel's name.
        kernel: &'static str,
    },
    /// The work needs more memory than it may take.
    #[error("{what} needs {needed} bytes of memory, {budget} are allowed: {advice}")]
    Memory {
        /// What needs it.
        what: String,
        /// How much, in bytes.
        needed: u64,
        /// How much may be taken, in bytes.
        budget: u64,
        /// What to do instead.
        advice: String,
    },
    /// A model file is damaged, foreign, or from a newer program.
    #[error("{file}: not a usable model: {reason}")]
    Model {
        /// The file's name as the user gave it.
        file: String,
        /// Why.
        reason: String,
    },
    /// A factorisation or iteration met numbers it cannot work with.
    #[error("numerical failure in {place}: {reason}")]
    Numeric {
        /// Where.
        place: &'static str,
        /// Why.
        reason: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;
