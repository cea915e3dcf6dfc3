//! Choices that people name by a word, such as `rbf` or `minmax`: read and printed here, whoever asks.

/// A choice among a few words. Its [`FromStr`](std::str::FromStr) and [`Display`](std::fmt::Display) know just these.
pub trait Named: Copy + PartialEq + Send + Sync + 'static {
    /// The parameter that takes it, as errors name it.
    const PARAMETER: &'static str;
    /// Every value, its word, and what it means, in the order of help texts.
    const WORDS: &'static [(Self, &'static str, &'static str)];
}

/// The value of this word.
pub(crate) fn read<T: Named>(text: &str) -> crate::Result<T> {
    T::WORDS.iter().find(|(_, word, _)| *word == text).map(|(value, ..)| *value).ok_or_else(|| {
        let words: Vec<&str> = T::WORDS.iter().map(|(_, word, _)| *word).collect();
        crate::Error::parameter(T::PARAMETER, text, format!("one of {}", words.join(", ")))
    })
}

/// Gives an enumeration its words: `named!(Type, "parameter", [Value: "word" "what it means", …])`.
macro_rules! named {
    ($type:ty, $parameter:literal, [$($value:ident: $word:literal $meaning:literal),+ $(,)?]) => {
        impl $crate::names::Named for $type {
            const PARAMETER: &'static str = $parameter;
            const WORDS: &'static [(Self, &'static str, &'static str)] = &[$((Self::$value, $word, $meaning)),+];
        }

        impl $type {
            /// Its word.
            pub fn name(self) -> &'static str {
                // Every value has to have a word: the match is complete, or this does not build.
                match self {
                    $(Self::$value => $word),+
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                $crate::names::read(text)
            }
        }
    };
}
pub(crate) use named;

/// Gives an enumeration of words and one number its words, and the rule of the number:
/// `named_or_number!(Type, "parameter", "what it may be", [Value: "word", …], Number, rule)`.
macro_rules! named_or_number {
    ($type:ty, $parameter:literal, $expected:literal, [$($value:ident: $word:literal),+], $number:ident, $rule:expr) => {
        impl $type {
            /// Refuses a number outside its domain.
            pub fn check(self) -> $crate::Result<()> {
                match self {
                    Self::$number(number) if !$rule(number) => {
                        Err($crate::Error::parameter($parameter, number, $expected))
                    }
                    _ => Ok(()),
                }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$value => f.write_str($word),)+
                    Self::$number(number) => write!(f, "{number}"),
                }
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::Error;

            fn from_str(text: &str) -> $crate::Result<Self> {
                let wrong = || $crate::Error::parameter($parameter, text, $expected);
                let value = match text {
                    $($word => Self::$value,)+
                    number => number.parse().map(Self::$number).map_err(|_| wrong())?,
                };
                value.check().map(|()| value)
            }
        }
    };
}
pub(crate) use named_or_number;

#[cfg(test)]
mod tests {
    use super::Named;
    use crate::data::{Format, Precision, ScalingKind, Storage};
    use crate::kernel::KernelKind;
    use crate::machine::SolverChoice;
    use crate::metrics::Metric;
    use crate::multiclass::Multiclass;
    use crate::select::Select;
    use std::fmt::{Debug, Display};
    use std::str::FromStr;

    fn there_and_back<T: Named + Debug + Display + FromStr<Err = crate::Error>>() {
        for (value, word, meaning) in T::WORDS {
            assert_eq!(value.to_string(), *word);
            assert_eq!(word.parse::<T>().unwrap(), *value);
            assert!(!meaning.is_empty());
        }
        let error = "none such".parse::<T>().unwrap_err().to_string();
        let (start, first) = (format!("{} = none such: expected one of ", T::PARAMETER), T::WORDS[0].1);
        assert!(error.starts_with(&(start + first)), "{error}");
    }

    #[test]
    fn words_are_read_as_they_are_printed() {
        there_and_back::<KernelKind>();
        there_and_back::<SolverChoice>();
        there_and_back::<Multiclass>();
        there_and_back::<Select>();
        there_and_back::<ScalingKind>();
        there_and_back::<Format>();
        there_and_back::<Precision>();
        there_and_back::<Storage>();
        there_and_back::<Metric>();
    }
}
