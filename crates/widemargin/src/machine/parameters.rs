//! The parameters of a machine: declared once, checked before any fit, so that an invalid one never reaches a solver.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What values a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// A finite number above zero.
    Positive,
    /// A finite number, zero or above.
    NonNegative,
    /// A number in `[0, 1)`.
    BelowOne,
    /// A number in `[0, 1]`.
    Unit,
    /// A whole number, one or above.
    Count,
    /// One of these words.
    Choice(&'static [&'static str]),
}

impl Domain {
    /// The domain in words, for messages and help.
    pub fn describe(self) -> String {
        match self {
            Self::Positive => "a number > 0".into(),
            Self::NonNegative => "a number >= 0".into(),
            Self::BelowOne => "a number in [0, 1)".into(),
            Self::Unit => "a number in [0, 1]".into(),
            Self::Count => "a whole number >= 1".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// Reads a value of this domain; `None` if it lies outside.
    fn read(self, text: &str) -> Option<Value> {
        if let Self::Choice(words) = self {
            return words.contains(&text).then(|| Value::Word(text.to_string()));
        }
        let number: f64 = text.trim().parse().ok().filter(|v: &f64| v.is_finite())?;
        let inside = match self {
            Self::Positive => number > 0.0,
            Self::NonNegative => number >= 0.0,
            Self::BelowOne => (0.0..1.0).contains(&number),
            Self::Unit => (0.0..=1.0).contains(&number),
            Self::Count => number >= 1.0 && number.fract() == 0.0 && number <= u32::MAX.into(),
            Self::Choice(_) => false,
        };
        inside.then_some(Value::Number(number))
    }
}

/// One parameter of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name: the papers' symbol in lower case, also the command line's option.
    pub name: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// What it is if nobody says, as text; `None`: it has no value of its own (another notation's parameter).
    pub default: Option<&'static str>,
    /// What it does, in one line.
    pub help: &'static str,
}

/// A parameter's value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A word of a [`Domain::Choice`].
    Word(String),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The checked parameters of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// Checks what was given against what is declared and fills in the defaults.
    pub fn check(declared: &[Parameter], given: &[(String, String)]) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (name, text) in given {
            let Some(parameter) = declared.iter().find(|p| p.name == name) else {
                let known: Vec<_> = declared.iter().map(|p| p.name).collect();
                return Err(wrong(name, text, format!("one of this machine's parameters: {}", known.join(", "))));
            };
            let value = parameter.domain.read(text).ok_or_else(|| wrong(name, text, parameter.domain.describe()))?;
            values.insert(name.clone(), value);
        }
        for parameter in declared {
            if let (Some(default), false) = (parameter.default, values.contains_key(parameter.name)) {
                let value = parameter.domain.read(default).expect("a default lies in its domain");
                values.insert(parameter.name.to_string(), value);
            }
        }
        Ok(Self(values))
    }

    /// A number that was declared with a default or is known to be there.
    ///
    /// # Panics
    /// If the machine did not declare it: a programmer's error.
    pub fn number(&self, name: &str) -> f64 {
        self.get(name).unwrap_or_else(|| panic!("parameter {name} is declared"))
    }

    /// A number, if there is one of this name.
    pub fn get(&self, name: &str) -> Option<f64> {
        match self.0.get(name) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// A word of a choice.
    ///
    /// # Panics
    /// If the machine did not declare it: a programmer's error.
    pub fn word(&self, name: &str) -> &str {
        match self.0.get(name) {
            Some(Value::Word(word)) => word,
            _ => panic!("parameter {name} is declared as a choice"),
        }
    }

    /// Sets a number (used by machines that accept two notations).
    pub fn set(&mut self, name: &str, number: f64) {
        self.0.insert(name.to_string(), Value::Number(number));
    }

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

fn wrong(name: &str, value: &str, expected: String) -> Error {
    Error::Parameter { name: name.to_string(), value: value.to_string(), expected }
}
