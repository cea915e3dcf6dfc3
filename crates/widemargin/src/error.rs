//! Everything that can go wrong, as data: each variant carries the facts, its message is for the person who meets it.

use std::fmt;
use std::path::PathBuf;

/// What went wrong.
///
/// Parameters are named as the library names them; a command line or another language says the same in its own words
/// with [`Error::worded`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused to read or write a file.
    Io {
        /// The file (`-` for standard input or output).
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A data file does not say what its format demands.
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
    /// A column of a table cannot be used as it is.
    Column {
        /// The file's name as the user gave it.
        file: String,
        /// Line, from 1, of the first value that shows it (for Parquet: the row).
        line: u64,
        /// The field, from 1.
        column: u64,
        /// Why.
        reason: String,
        /// What to do.
        advice: Advice,
    },
    /// A data file is readable but cannot be used.
    Data {
        /// The file's name as the user gave it, or what the data is.
        file: String,
        /// Why, and what to do.
        reason: String,
    },
    /// A parameter is outside its domain, or unknown.
    Parameter {
        /// The parameter, by the library's name.
        name: String,
        /// What was given.
        value: String,
        /// What is allowed.
        expected: String,
    },
    /// Two choices that cannot go together.
    Conflict {
        /// Which, and why.
        reason: String,
        /// What to choose instead.
        advice: Advice,
    },
    /// The program was asked for what it does not do.
    Usage(String),
    /// The work needs more memory than it may take.
    Memory {
        /// What needs it.
        what: String,
        /// How much, in bytes.
        needed: u64,
        /// How much may be taken, in bytes.
        budget: u64,
        /// What to do instead.
        advice: Advice,
    },
    /// A model file is damaged, foreign, or from a newer program.
    Model {
        /// The file's name as the user gave it.
        file: String,
        /// Why.
        reason: String,
    },
    /// A factorisation or iteration met numbers it cannot work with.
    Numeric {
        /// Where.
        place: &'static str,
        /// Why.
        reason: String,
    },
    /// The user asked to stop.
    Interrupted,
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A parameter outside its domain.
    pub fn parameter(name: &str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::Parameter { name: name.into(), value: value.to_string(), expected: expected.into() }
    }

    /// Two choices that cannot go together.
    pub fn conflict(reason: impl Into<String>, advice: impl Into<Advice>) -> Self {
        Self::Conflict { reason: reason.into(), advice: advice.into() }
    }

    /// What is wrong with a data set.
    pub fn data(file: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Data { file: file.into(), reason: reason.into() }
    }

    /// Numbers that cannot be worked with.
    pub fn numeric(place: &'static str, reason: impl Into<String>) -> Self {
        Self::Numeric { place, reason: reason.into() }
    }

    /// What the system said of a file, for [`Result::map_err`](std::result::Result::map_err).
    pub fn io(path: impl Into<std::path::PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        |source| Self::Io { path: path.into(), source }
    }

    /// The message, with parameters named as these words have it.
    pub fn worded(&self, words: &dyn Wording) -> String {
        match self {
            Self::Io { path, source } => format!("{}: {source}", path.display()),
            Self::Parse { file, line, column, found, expected } => {
                format!("{file}:{line}:{column}: found {found}, expected {expected}")
            }
            Self::Column { file, line, column, reason, advice } => {
                format!("{file}:{line}:{column}: {}", advice.after(reason, words))
            }
            Self::Data { file, reason } => format!("{file}: {reason}"),
            Self::Parameter { name, value, expected } => format!("{}: expected {expected}", words.given(name, value)),
            Self::Conflict { reason, advice } => advice.after(reason, words),
            Self::Usage(reason) => reason.clone(),
            Self::Memory { what, needed, budget, advice } => {
                let (needed, budget) = (words.bytes(*needed), words.bytes(*budget));
                advice.after(&format!("{what} needs {needed} of memory, {budget} are allowed"), words)
            }
            Self::Model { file, reason } => format!("{file}: not a usable model: {reason}"),
            Self::Numeric { place, reason } => format!("numerical failure in {place}: {reason}"),
            Self::Interrupted => "interrupted".into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(&Plain))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// One thing that helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Another value of a parameter.
    Use(&'static str, String),
    /// A switch.
    Set(&'static str),
    /// More of it.
    Raise(&'static str),
    /// Less of it.
    Lower(&'static str),
    /// Nothing in its place.
    Drop(&'static str),
    /// What is no parameter, as a request: `take fewer rows`.
    Do(&'static str),
}

/// What helps: any one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice(pub Vec<Remedy>);

impl Advice {
    /// Nothing that is known.
    pub const NONE: Self = Self(Vec::new());

    /// These values of a parameter.
    pub fn values<T: ToString>(parameter: &'static str, values: impl IntoIterator<Item = T>) -> Self {
        Self(values.into_iter().map(|value| Remedy::Use(parameter, value.to_string())).collect())
    }

    /// The reason and what helps, as one sentence.
    pub fn after(&self, reason: &str, words: &dyn Wording) -> String {
        let mut verb = "";
        let mut parts = Vec::new();
        for remedy in &self.0 {
            let (this, what) = match remedy {
                Remedy::Use(name, value) => ("use", words.value(name, value)),
                Remedy::Set(name) => ("use", words.name(name)),
                Remedy::Raise(name) => ("raise", words.name(name)),
                Remedy::Lower(name) => ("lower", words.name(name)),
                Remedy::Drop(name) => ("leave out", words.name(name)),
                Remedy::Do(request) => ("", Some((*request).to_string())),
            };
            // What has no words cannot be done there.
            let Some(what) = what else { continue };
            parts.push(if this == verb || this.is_empty() { what } else { format!("{this} {what}") });
            verb = this;
        }
        match parts.split_last() {
            None => reason.into(),
            Some((only, [])) => format!("{reason}: {only}"),
            Some((last, others)) => format!("{reason}: {} or {last}", others.join(", ")),
        }
    }
}

impl<const N: usize> From<[Remedy; N]> for Advice {
    fn from(remedies: [Remedy; N]) -> Self {
        Self(remedies.into())
    }
}

impl From<&'static str> for Advice {
    fn from(request: &'static str) -> Self {
        if request.is_empty() { Self::NONE } else { Self(vec![Remedy::Do(request)]) }
    }
}

/// How parameters are named where people meet them.
pub trait Wording {
    /// The parameter; `None` where there is none such.
    fn name(&self, parameter: &str) -> Option<String>;
    /// The parameter with a value it may be given; `None` where there is none such.
    fn value(&self, parameter: &str, value: &str) -> Option<String>;
    /// The parameter with the value it was given.
    fn given(&self, parameter: &str, value: &str) -> String;
    /// An amount of memory.
    fn bytes(&self, count: u64) -> String {
        format!("{count} bytes")
    }
}

/// The library's own names.
struct Plain;

impl Wording for Plain {
    fn name(&self, parameter: &str) -> Option<String> {
        Some(parameter.into())
    }

    fn value(&self, parameter: &str, value: &str) -> Option<String> {
        Some(format!("{parameter} = {value}"))
    }

    fn given(&self, parameter: &str, value: &str) -> String {
        format!("{parameter} = {value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A front that has no `memory`.
    struct Flags;

    impl Wording for Flags {
        fn name(&self, parameter: &str) -> Option<String> {
            (parameter != "memory").then(|| format!("--{parameter}"))
        }
        fn value(&self, parameter: &str, value: &str) -> Option<String> {
            Some(format!("--{parameter} {value}"))
        }
        fn given(&self, parameter: &str, value: &str) -> String {
            format!("--{parameter} {value}")
        }
    }

    #[test]
    fn each_front_has_its_own_words() {
        let advice = Advice([Advice::values("multiclass", ["ova", "ovo"]).0, vec![Remedy::Raise("memory")]].concat());
        let error = Error::conflict("too many classes", advice);
        assert_eq!(error.to_string(), "too many classes: use multiclass = ova, multiclass = ovo or raise memory");
        assert_eq!(error.worded(&Flags), "too many classes: use --multiclass ova or --multiclass ovo");
        let error = Error::parameter("c1", -1, "a number > 0");
        assert_eq!(error.to_string(), "c1 = -1: expected a number > 0");
        assert_eq!(error.worded(&Flags), "--c1 -1: expected a number > 0");
        let memory = |advice| Error::Memory { what: "it".into(), needed: 2, budget: 1, advice };
        assert_eq!(memory(Advice::NONE).to_string(), "it needs 2 bytes of memory, 1 bytes are allowed");
        let remedies = [Remedy::Lower("approx"), Remedy::Do("take fewer rows")];
        let found = memory(remedies.into()).to_string();
        assert_eq!(found, "it needs 2 bytes of memory, 1 bytes are allowed: lower approx or take fewer rows");
    }
}
