//! From rows to scores to classes. No number here depends on how many threads there are.

use super::{Decision, Model, Scorer};
use crate::data::{Matrix, Rows};
use crate::kernel::KernelRows;
use crate::{Error, Result, with_rows};
use rayon::prelude::*;

/// Rows that one thread scores at a time.
const CHUNK: usize = 256;
/// Rows that have to be scaled or widened first are copied this many numbers at a time.
const COPIED: usize = 1 << 22;

impl Model {
    /// The scores of `rows`: one row after the other, [`Scorer::columns`] numbers each. Columns of `rows` beyond the
    /// model's features are ignored, missing ones are zero. The model's scaling is applied here.
    pub fn scores(&self, rows: &Matrix<'_>) -> Result<Vec<f64>> {
        let scores = if rows.cols() == self.features && self.scaling.is_none() {
            self.scores_of_prepared(rows)
        } else {
            let step = (COPIED / self.features.max(1)).max(1);
            let blocks = (0..rows.rows()).step_by(step);
            blocks.flat_map(|from| self.scores_of_prepared(&self.prepared(rows, from, step))).collect()
        };
        match scores.iter().position(|s| !s.is_finite()) {
            None => Ok(scores),
            Some(at) => Err(Error::Numeric {
                place: "scoring",
                reason: format!("the score of row {} is too large for a number", at / self.scorer.columns() + 1),
            }),
        }
    }

    /// The class of each of `rows`, as a position among [`Model::labels`].
    pub fn predict(&self, rows: &Matrix<'_>) -> Result<Vec<u32>> {
        Ok(self.classes(&self.scores(rows)?))
    }

    /// The classes that scores of [`Model::scores`] mean.
    pub fn classes(&self, scores: &[f64]) -> Vec<u32> {
        scores.chunks_exact(self.scorer.columns()).map(|row| self.decision.class(row)).collect()
    }

    /// The probability of the larger label for scores of [`Model::scores`]; `None` if the model was trained without.
    pub fn probabilities(&self, scores: &[f64]) -> Option<Vec<f64>> {
        let slope = self.calibration?.slope;
        let probability = |row: &[f64]| {
            let score = match row {
                [below, above] => above - below,
                row => row[0],
            };
            1.0 / (1.0 + (-slope * score).exp())
        };
        Some(scores.chunks_exact(self.scorer.columns()).map(probability).collect())
    }

    /// The scores of [`Model::scores`] as one score a class (two classes: one column if the machine has one), of which
    /// the largest is the prediction.
    pub fn class_scores(&self, scores: &[f64]) -> Vec<f64> {
        scores.chunks_exact(self.scorer.columns()).flat_map(|row| self.decision.class_scores(row)).collect()
    }

    /// At most `step` rows from `from` on, as training would have seen them.
    fn prepared(&self, rows: &Matrix<'_>, from: usize, step: usize) -> Matrix<'static> {
        let chosen: Vec<usize> = (from..rows.rows().min(from + step)).collect();
        let block = rows.select(&chosen).with_cols(self.features).0;
        match &self.scaling {
            Some(scaling) => scaling.apply_owned(block),
            None => block,
        }
    }

    fn scores_of_prepared(&self, rows: &Matrix<'_>) -> Vec<f64> {
        match &self.scorer {
            Scorer::Linear { weights, intercepts } => {
                with_rows!(rows, x => linear_scores(x, weights, intercepts))
            }
            Scorer::Kernel { support, coefficients, intercepts } => {
                let support = KernelRows::new(self.kernel, support, 0.0);
                let mut scores = support.expand(&KernelRows::new(self.kernel, rows, 0.0), coefficients);
                for row in scores.chunks_exact_mut(intercepts.len()) {
                    row.iter_mut().zip(intercepts).for_each(|(score, b)| *score += b);
                }
                scores
            }
        }
    }
}

impl Decision {
    /// The class that one row of scores means.
    pub fn class(&self, scores: &[f64]) -> u32 {
        match self {
            Self::Sign => u32::from(scores[0] > 0.0),
            Self::Largest => largest(scores),
            Self::Pairs | Self::Codes => largest(&self.class_scores(scores)),
        }
    }
}

/// Where the largest number stands; the first among equals.
fn largest(scores: &[f64]) -> u32 {
    (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best }) as u32
}

fn linear_scores<X: Rows>(x: &X, weights: &[Vec<f64>], intercepts: &[f64]) -> Vec<f64> {
    let columns = weights.len();
    let mut scores = vec![0.0; x.rows() * columns];
    scores.par_chunks_mut(CHUNK * columns).enumerate().for_each(|(chunk, scores)| {
        for (i, row) in scores.chunks_exact_mut(columns).enumerate() {
            for ((score, w), b) in row.iter_mut().zip(weights).zip(intercepts) {
                *score = x.dot(chunk * CHUNK + i, w) + b;
            }
        }
    });
    scores
}
