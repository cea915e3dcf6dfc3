//! The parameters of a machine: declared once, checked before any fit, so that an invalid one never reaches a solver.

use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What values a parameter may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Any finite number.
    Finite,
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
            Self::Finite => "a number".into(),
            Self::Positive => "a number > 0".into(),
            Self::NonNegative => "a number >= 0".into(),
            Self::BelowOne => "a number in [0, 1)".into(),
            Self::Unit => "a number in [0, 1]".into(),
            Self::Count => "a whole number >= 1".into(),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// Whether a value lies in it.
    pub fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Choice(words), Value::Word(word)) => words.contains(&word.as_str()),
            (Self::Choice(_), Value::Number(_)) | (_, Value::Word(_)) => false,
            (_, Value::Number(number)) => self.holds_number(*number),
        }
    }

    fn holds_number(self, number: f64) -> bool {
        let inside = match self {
            Self::Finite => true,
            Self::Positive => number > 0.0,
            Self::NonNegative => number >= 0.0,
            Self::BelowOne => (0.0..1.0).contains(&number),
            Self::Unit => (0.0..=1.0).contains(&number),
            Self::Count => number >= 1.0 && number.fract() == 0.0 && number <= u32::MAX.into(),
            Self::Choice(_) => false,
        };
        inside && number.is_finite()
    }
}

/// One parameter of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name: the papers' symbol in lower case.
    pub name: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// What it is if nobody says.
    pub default: Preset,
    /// What it does, in one line.
    pub help: &'static str,
}

impl Parameter {
    /// A number with a default.
    pub(super) const fn number(name: &'static str, domain: Domain, default: f64, help: &'static str) -> Self {
        Self { name, domain, default: Preset::Number(default), help }
    }

    /// A number whose default follows from the rows or from other parameters: what it is then, in words.
    pub(super) const fn settled(name: &'static str, domain: Domain, default: &'static str, help: &'static str) -> Self {
        Self { name, domain, default: Preset::Settled(default), help }
    }

    /// A number of another notation, which has no value of its own.
    pub(super) const fn alternative(name: &'static str, domain: Domain, help: &'static str) -> Self {
        Self { name, domain, default: Preset::None, help }
    }

    /// One of some words.
    pub(super) const fn choice(
        name: &'static str,
        words: &'static [&'static str],
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, domain: Domain::Choice(words), default: Preset::Word(default), help }
    }
}

/// What a parameter is if nobody says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// Nothing: a parameter of another notation, which has no value of its own.
    None,
    /// A number.
    Number(f64),
    /// A word of a [`Domain::Choice`].
    Word(&'static str),
    /// What follows from the rows or from other parameters, in words: [`Machine::settled`](super::Machine::settled) fills it in.
    Settled(&'static str),
}

impl Preset {
    /// The value, if there is one that does not depend on the rows.
    pub fn value(self) -> Option<Value> {
        match self {
            Self::None | Self::Settled(_) => None,
            Self::Number(number) => Some(Value::Number(number)),
            Self::Word(word) => Some(Value::Word(word.into())),
        }
    }
}

/// As help and tables tell it; nothing where there is none.
impl std::fmt::Display for Preset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self, self.value()) {
            (Self::Settled(words), _) => f.write_str(words),
            (_, Some(value)) => write!(f, "{value}"),
            (_, None) => Ok(()),
        }
    }
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

/// Numbers that a search tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Series {
    /// These.
    List(&'static [f64]),
    /// `from`, `from + step`, … up to `to`.
    Steps {
        /// The first.
        from: f64,
        /// No number is above this.
        to: f64,
        /// What is added each time, above 0.
        step: f64,
    },
    /// `2^from, 2^(from + by), …, 2^to`.
    Powers {
        /// The first exponent.
        from: i32,
        /// The last exponent.
        to: i32,
        /// What is added to the exponent each time, above 0.
        by: i32,
    },
    /// `from`, `from · factor`, … up to `to`.
    Factors {
        /// The first, above 0.
        from: f64,
        /// No number is above this.
        to: f64,
        /// By what each is multiplied, above 1.
        factor: f64,
    },
}

impl Series {
    /// `2^from, 2^(from + by), …, 2^to`.
    pub const fn powers(from: i32, to: i32, by: i32) -> Self {
        Self::Powers { from, to, by }
    }

    /// `from`, `from + step`, … up to `to`.
    pub const fn steps(from: f64, to: f64, step: f64) -> Self {
        Self::Steps { from, to, step }
    }

    /// How many numbers there are after the first.
    pub(crate) fn last(self) -> f64 {
        // Rounding must not lose the last of them.
        const SLACK: f64 = 1e-9;
        match self {
            Self::List(numbers) => numbers.len() as f64 - 1.0,
            Self::Powers { from, to, by } => f64::from((to - from) / by),
            Self::Steps { from, to, step } => ((to - from) / step + SLACK).floor(),
            Self::Factors { from, to, factor } => ((to / from).ln() / factor.ln() + SLACK).floor(),
        }
    }

    /// The numbers.
    pub fn numbers(self) -> Vec<f64> {
        let number = |i: usize| match self {
            Self::List(numbers) => numbers[i],
            Self::Powers { from, by, .. } => (f64::from(from) + f64::from(by) * i as f64).exp2(),
            Self::Steps { from, to, step } => {
                // Sums of tenths are brought back to tenths.
                let scale = 1e12 / step.max(from.abs()).max(to.abs());
                let digits = 10f64.powf(scale.log10().floor());
                ((from + i as f64 * step) * digits).round() / digits
            }
            Self::Factors { from, factor, .. } => from * factor.powf(i as f64),
        };
        (0..(self.last() + 1.0) as usize).map(number).collect()
    }
}

/// As people write it in a grid: `1, 10, 100`, `0, 0.1, …, 0.5`.
impl std::fmt::Display for Series {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.numbers().iter().map(f64::to_string).collect();
        match (self, texts.as_slice()) {
            (Self::Powers { .. } | Self::Steps { .. } | Self::Factors { .. }, [first, second, _, .., last]) => {
                write!(f, "{first}, {second}, …, {last}")
            }
            _ => f.write_str(&texts.join(", ")),
        }
    }
}

/// A number if it reads as a finite one, else a word: which of the two a parameter takes, its [`Domain`] says.
impl From<&str> for Value {
    fn from(text: &str) -> Self {
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.map_or_else(|| Self::Word(text.into()), Self::Number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

/// The checked parameters of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(BTreeMap<String, Value>);

impl Parameters {
    /// Checks what was given against what is declared and fills in the defaults.
    pub fn check(declared: &[Parameter], given: &[(String, Value)]) -> Result<Self> {
        let mut parameters = Self::given(declared, given)?;
        parameters.fill(declared);
        Ok(parameters)
    }

    /// Checks what was given against what is declared.
    pub(super) fn given(declared: &[Parameter], given: &[(String, Value)]) -> Result<Self> {
        let mut values = BTreeMap::new();
        for (name, value) in given {
            let Some(parameter) = declared.iter().find(|p| p.name == name) else {
                let known: Vec<_> = declared.iter().map(|p| p.name).collect();
                let expected = format!("one of this machine's parameters: {}", known.join(", "));
                return Err(Error::parameter(name, value, expected));
            };
            if !parameter.domain.holds(value) {
                return Err(Error::parameter(name, value, parameter.domain.describe()));
            }
            values.insert(name.clone(), value.clone());
        }
        Ok(Self(values))
    }

    /// Fills in the defaults of what was not given.
    pub(super) fn fill(&mut self, declared: &[Parameter]) {
        for parameter in declared {
            if let (Some(default), false) = (parameter.default.value(), self.0.contains_key(parameter.name)) {
                self.0.insert(parameter.name.to_string(), default);
            }
        }
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

    /// Whether a choice was made for this word.
    pub fn is(&self, name: &str, word: &str) -> bool {
        matches!(self.0.get(name), Some(Value::Word(chosen)) if chosen == word)
    }

    /// Sets a number (used by machines that accept two notations).
    pub fn set(&mut self, name: &str, number: f64) {
        self.0.insert(name.to_string(), Value::Number(number));
    }

    /// Sets a number that was not given.
    pub(super) fn settle(&mut self, name: &str, number: f64) {
        self.0.entry(name.to_string()).or_insert(Value::Number(number));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MACHINES;

    #[test]
    fn defaults_and_searched_values_lie_in_their_domains() {
        for machine in MACHINES {
            let parameters = machine.parameters();
            for parameter in parameters {
                let default = parameter.default.value();
                assert!(default.is_none_or(|v| parameter.domain.holds(&v)), "{} {}", machine.name(), parameter.name);
            }
            for axis in machine.grid() {
                let parameter = parameters.iter().find(|p| p.name == axis.name).expect("a parameter of the machine");
                let spans = [axis.coarse, axis.fine, axis.paper];
                let numbers = spans.iter().flat_map(|series| series.numbers());
                assert!(numbers.map(Value::Number).all(|v| parameter.domain.holds(&v)), "{axis:?}");
                let fine = axis.fine.numbers();
                assert!(axis.coarse.numbers().iter().all(|number| fine.contains(number)), "{axis:?}");
            }
        }
    }

    #[test]
    fn spans() {
        assert_eq!(Series::Powers { from: -2, to: 2, by: 2 }.numbers(), [0.25, 1.0, 4.0]);
        assert_eq!(Series::Steps { from: 0.0, to: 0.5, step: 0.1 }.numbers(), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(Series::List(&[2.0, 5.0]).numbers(), [2.0, 5.0]);
        assert_eq!(Series::Powers { from: 0, to: 10, by: 1 }.to_string(), "1, 2, …, 1024");
        assert_eq!(Series::List(&[0.5, 1.0]).to_string(), "0.5, 1");
    }

    #[test]
    fn texts_are_numbers_or_words() {
        assert_eq!(Value::from(" 1e3 "), Value::Number(1000.0));
        for text in ["much", "nan", "inf", "1e999", ""] {
            assert_eq!(Value::from(text), Value::Word(text.into()));
        }
        assert!(!Domain::Positive.holds(&Value::Number(f64::NAN)) && !Domain::Positive.holds(&Value::from("nan")));
        assert!(!Domain::Unit.holds(&Value::Number(f64::INFINITY)) && !Domain::Count.holds(&Value::Number(1.5)));
    }
}
