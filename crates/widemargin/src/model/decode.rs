//! From the score columns of pairs and codes to scores of classes. Among equal scores the lowest class wins everywhere.

use super::Decision;
use crate::names::named;
use serde::{Deserialize, Serialize};

/// How a two-class machine meets more classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiclass {
    /// The machine takes all classes in one problem.
    Own,
    /// One against all others: `k` problems, the largest score wins.
    Ova,
    /// One against one: `k(k−1)/2` problems on the rows of two classes each, most votes win.
    Ovo,
    /// Exhaustive error-correcting codes: `2^(k−1) − 1` problems, the nearest code word wins. At most 15 classes.
    Ecoc,
}

named!(Multiclass, "multiclass", [
    Own: "own" "all classes in one problem",
    Ova: "ova" "one class against all others",
    Ovo: "ovo" "one class against one other: all pairs",
    Ecoc: "ecoc" "error-correcting codes",
]);

impl Multiclass {
    /// The `y` of each class in the problem of a score column: `±1`, or `None` for classes that are not in it. One score
    /// function a class in one problem has no signs: 1 stands for them.
    pub(crate) fn signs(self, decision: &Decision, classes: usize, column: usize) -> Vec<Option<f64>> {
        let pair = pairs(classes).nth(column);
        let sign = |class: usize| {
            let positive = match (self, decision) {
                (_, Decision::Sign) => class == 1,
                (Self::Own, _) => true,
                (Self::Ova, _) => class == column,
                (Self::Ovo, _) => {
                    let (_, high) = pair.filter(|&(low, high)| class == low || class == high)?;
                    class == high
                }
                (Self::Ecoc, _) => code_bit(classes, column, class),
            };
            Some(if positive { 1.0 } else { -1.0 })
        };
        (0..classes).map(sign).collect()
    }
}

/// Most classes that exhaustive codes are made for: 16,383 two-class problems.
pub const MOST_CODED_CLASSES: usize = 15;

/// The pairs `(a, b)`, `a < b`, in the order of their columns; a column above zero votes for `b`.
pub fn pairs(classes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..classes).flat_map(move |a| (a + 1..classes).map(move |b| (a, b)))
}

/// Number of columns of the exhaustive code: `2^(k−1) − 1`, every split of the classes into two parts once.
pub fn code_columns(classes: usize) -> usize {
    (1 << (classes - 1)) - 1
}

/// The bit of a class in a column of the exhaustive code (Dietterich & Bakiri 1995, §2.3.1): class 0 has only ones, the
/// others the binary digits of the column's number.
pub fn code_bit(classes: usize, column: usize, class: usize) -> bool {
    class == 0 || column >> (classes - 1 - class) & 1 == 1
}

impl Decision {
    /// One score a class, of which the largest (the lowest class among equals) is the prediction. [`Decision::Sign`]
    /// keeps its single column.
    ///
    /// Pairs: the votes, plus `c / (3 (|c| + 1))` of the summed confidences `c`, which lies within ±1/3 and so only
    /// decides between equal votes. Codes: minus the number of columns whose sign differs from the class's code word.
    pub fn class_scores(&self, columns: &[f64]) -> Vec<f64> {
        match self {
            Self::Sign | Self::Largest => columns.to_vec(),
            Self::Pairs => pair_scores(columns),
            Self::Codes => code_scores(columns),
        }
    }

    /// How many score columns a number of classes means.
    pub fn columns(&self, classes: usize) -> usize {
        match self {
            Self::Sign => 1,
            Self::Largest => classes,
            Self::Pairs => classes * classes.saturating_sub(1) / 2,
            Self::Codes if classes <= MOST_CODED_CLASSES => code_columns(classes.max(1)),
            Self::Codes => usize::MAX,
        }
    }
}

fn pair_scores(columns: &[f64]) -> Vec<f64> {
    let classes = (1..).find(|k| k * (k - 1) / 2 >= columns.len()).unwrap_or(1);
    let (mut votes, mut confidences) = (vec![0.0; classes], vec![0.0; classes]);
    for ((a, b), score) in pairs(classes).zip(columns) {
        votes[if *score > 0.0 { b } else { a }] += 1.0;
        confidences[a] -= score;
        confidences[b] += score;
    }
    votes.iter().zip(confidences).map(|(v, c): (_, f64)| v + c / (3.0 * (c.abs() + 1.0))).collect()
}

fn code_scores(columns: &[f64]) -> Vec<f64> {
    let classes = (columns.len() + 1).ilog2() as usize + 1;
    let differs = |class: usize| {
        let wrong = |(column, score): (usize, &f64)| code_bit(classes, column, class) != (*score > 0.0);
        columns.iter().enumerate().filter(|c| wrong(*c)).count()
    };
    (0..classes).map(|class| -(differs(class) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_come_before_confidences() {
        // Columns 01, 02, 12: class 1 beats 0 by a hair, 2 loses to both.
        let scores = Decision::Pairs.class_scores(&[1e-9, -100.0, -0.5]);
        assert_eq!(Decision::Pairs.class(&[1e-9, -100.0, -0.5]), 1);
        assert!(scores[1] > scores[0] && scores[0] > scores[2]);
        // A circle: one vote each, the summed confidence decides.
        assert_eq!(Decision::Pairs.class(&[-1.0, 3.0, -1.0]), 2);
        // All scores zero: every vote goes to the lower class.
        assert_eq!(Decision::Pairs.class(&[0.0; 3]), 0);
    }

    #[test]
    fn code_words_decode_to_their_class() {
        for classes in 2..=8 {
            for class in 0..classes {
                let sign = |column| if code_bit(classes, column, class) { 1.0 } else { -1.0 };
                let word: Vec<f64> = (0..code_columns(classes)).map(sign).collect();
                assert_eq!(Decision::Codes.class(&word), class as u32);
                assert_eq!(Decision::Codes.class_scores(&word)[class], 0.0);
            }
            for column in 0..code_columns(classes) {
                let ones = (0..classes).filter(|&l| code_bit(classes, column, l)).count();
                assert!(ones > 0 && ones < classes);
            }
        }
    }
}
