//! What stands behind an option: text in, a checked value out. Errors say what is expected. The words of the library's
//! choices are the library's.

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use std::num::NonZeroUsize;
use std::str::FromStr;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::machine::Value;
use widemargin::{Error, Named};
use widemargin_studies::Amendment;

/// One of the library's choices, with its words and what they mean.
pub fn named<T: Named + FromStr<Err = Error>>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(words::<T>()).try_map(|word| word.parse::<T>())
}

fn words<T: Named>() -> impl Iterator<Item = PossibleValue> {
    T::WORDS.iter().map(|(_, word, meaning)| PossibleValue::new(*word).help(*meaning))
}

/// `--scale`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale(Option<ScalingKind>);

impl Scale {
    /// The library's kind.
    pub fn kind(self) -> Option<ScalingKind> {
        self.0
    }
}

impl Scale {
    /// What a data set gets if nobody says: tables are standardised, other data get `otherwise`.
    pub fn usual(asked: Option<Self>, data: &Dataset, otherwise: Option<ScalingKind>) -> Option<ScalingKind> {
        let usual = if data.is_table() { Some(ScalingKind::Standard) } else { otherwise };
        asked.map_or(usual, Self::kind)
    }
}

/// `--scale`, with its words and what they mean.
pub fn scale() -> impl TypedValueParser<Value = Scale> {
    let none = PossibleValue::new(ScalingKind::NONE).help("leave the features as they are");
    let words = std::iter::once(none).chain(words::<ScalingKind>());
    PossibleValuesParser::new(words).try_map(|word| ScalingKind::read(&word).map(Scale))
}

/// What the library reads, its error without the name that clap puts before it.
pub fn read<T: FromStr<Err = Error>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| match error {
        Error::Parameter { expected, .. } => format!("expected {expected}"),
        other => other.to_string(),
    })
}

/// A machine's parameter: a number or a word; which of them it may be is checked with the machine.
pub fn value(text: &str) -> Result<Value, String> {
    Ok(text.into())
}

/// `--protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolChoice {
    /// The paper's grids, however different in size
    Paper,
    /// The same number of points for every machine
    Equal,
}

/// `--delimiter`
pub fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\n\r.+-".contains(byte) => Ok(*byte),
        _ => Err("expected one character that is neither a letter nor part of a number, or tab".into()),
    }
}

/// `--header`
pub fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("expected yes or no".into()),
    }
}

/// A finite number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| *v > 0.0).ok_or_else(|| "expected a number > 0".into())
}

/// A finite number above one.
pub fn above_one(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| *v > 1.0).ok_or_else(|| "expected a number > 1".into())
}

/// A finite number.
pub fn finite(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| "expected a number".into())
}

/// A whole number, one or above.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number >= 1".into())
}

/// A whole number, two or above.
pub fn folds(text: &str) -> Result<NonZeroUsize, String> {
    count(text).ok().filter(|folds| folds.get() > 1).ok_or_else(|| "expected a whole number >= 2".into())
}

/// A share of the rows, neither none nor all.
pub fn share(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| 0.0 < *v && *v < 1.0).ok_or_else(|| "expected a number between 0 and 1".into())
}

/// `--memory`: bytes, with an optional K, M, G or T (powers of 1024).
pub fn memory(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 512M or 2G".to_string();
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find_map(|(letter, bits)| bare.strip_suffix(*letter).map(|number| (number, *bits)));
    let (number, bits) = unit.unwrap_or((bare, 0));
    let bytes = positive(number.trim()).map_err(|_| expected())? * (1u64 << bits) as f64;
    if bytes < 1.0 || bytes > i64::MAX as f64 { Err(expected()) } else { Ok(bytes as u64) }
}

/// `--set machine.parameter=value`
pub fn setting(text: &str) -> Result<String, String> {
    match Amendment::set(text) {
        Some(set) => set.map(|_| text.into()).map_err(|error| error.to_string()),
        None => Err("expected MACHINE.PARAMETER=VALUE, such as odm.c1=10".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use widemargin::machine::Bias;
    use widemargin::train::{ClassWeight, Gamma};

    #[test]
    fn sizes() {
        for (text, bytes) in [("512M", 512 << 20), ("2G", 2 << 30), ("1.5KiB", 1536), ("7", 7), ("1tb", 1 << 40)] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1M", "0", "nanG", "1e30T", "2X"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_of_the_library_do_not_name_the_option_again() {
        assert_eq!(read::<Gamma>("0").unwrap_err(), "expected scale, auto or a number > 0");
        assert_eq!(read::<Bias>("-1").unwrap_err(), "expected free, none (for no intercept) or a number > 0");
        assert!(read::<ClassWeight>("1=0").unwrap_err().starts_with("expected equal, balanced or LABEL=W"));
    }
}
