//! From rows to scores to classes. Rows are worked through in blocks of a fixed size, each on one thread, so that
//! memory stays small and no number depends on how many threads there are.

use super::interim::WithCols;
use super::{Decision, Model, Scorer};
use crate::Result;
use crate::data::{Matrix, Rows};
use crate::kernel::Kernel;
use crate::with_rows;
use rayon::prelude::*;
use std::borrow::Cow;

/// Rows a block: large enough to outweigh the bookkeeping, small enough to share out evenly.
const BLOCK: usize = 256;

impl Model {
    /// The scores of `rows`: one row after the other, [`Scorer::columns`] numbers each. Columns of `rows` beyond the
    /// model's features are ignored, missing ones are zero. The model's scaling is applied here.
    pub fn scores(&self, rows: &Matrix<'_>) -> Result<Vec<f64>> {
        let columns = self.scorer.columns();
        let mut scores = vec![0.0; rows.rows() * columns];
        let support_norms = self.support_norms();
        scores.par_chunks_mut(BLOCK * columns).enumerate().for_each(|(block, scores)| {
            let from = block * BLOCK;
            let (block, from) = self.prepared(rows, from, scores.len() / columns);
            self.score_block(&block, from, &support_norms, scores);
        });
        Ok(scores)
    }

    /// The class of each of `rows`, as a position among [`Model::labels`].
    pub fn predict(&self, rows: &Matrix<'_>) -> Result<Vec<u32>> {
        Ok(self.classes(&self.scores(rows)?))
    }

    /// The classes that scores of [`Model::scores`] mean.
    pub fn classes(&self, scores: &[f64]) -> Vec<u32> {
        scores.chunks_exact(self.scorer.columns()).map(|row| self.decision.class(row)).collect()
    }

    /// The rows of a block as training would have seen them, and where they start in what is returned. Nothing is
    /// copied if nothing has to change.
    fn prepared<'r>(&self, rows: &'r Matrix<'r>, from: usize, count: usize) -> (Cow<'r, Matrix<'r>>, usize) {
        if rows.cols() == self.features && self.scaling.is_none() {
            return (Cow::Borrowed(rows), from);
        }
        let chosen: Vec<usize> = (from..from + count).collect();
        let block = rows.select(&chosen).with_cols(self.features);
        let block = match &self.scaling {
            Some(scaling) => scaling.apply(&block),
            None => block,
        };
        (Cow::Owned(block), 0)
    }

    fn support_norms(&self) -> Vec<f64> {
        match (&self.scorer, self.kernel) {
            (Scorer::Kernel { support, .. }, Kernel::Rbf { .. }) => {
                with_rows!(support, x => (0..x.rows()).map(|i| x.norm2(i)).collect())
            }
            _ => Vec::new(),
        }
    }

    fn score_block(&self, rows: &Matrix<'_>, from: usize, support_norms: &[f64], scores: &mut [f64]) {
        match &self.scorer {
            Scorer::Linear { weights, intercepts } => {
                with_rows!(rows, x => linear_scores(x, from, weights, intercepts, scores));
            }
            Scorer::Kernel { support, coefficients, intercepts } => {
                let expansion = Expansion { kernel: self.kernel, support_norms, coefficients, intercepts };
                with_rows!(rows, x => with_rows!(support, z => expansion.scores(x, from, z, scores)));
            }
        }
    }
}

impl Decision {
    /// The class that one row of scores means.
    pub fn class(&self, scores: &[f64]) -> u32 {
        match self {
            Self::Sign => u32::from(scores[0] > 0.0),
            Self::Largest => (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best }) as u32,
        }
    }
}

fn linear_scores<X: Rows>(x: &X, from: usize, weights: &[Vec<f64>], intercepts: &[f64], scores: &mut [f64]) {
    for (i, row) in scores.chunks_exact_mut(weights.len()).enumerate() {
        for ((score, w), b) in row.iter_mut().zip(weights).zip(intercepts) {
            *score = x.dot(from + i, w) + b;
        }
    }
}

/// `f_l(x) = Σ_i c_il k(z_i, x) + b_l`.
struct Expansion<'a> {
    kernel: Kernel,
    support_norms: &'a [f64],
    coefficients: &'a [Vec<f64>],
    intercepts: &'a [f64],
}

impl Expansion<'_> {
    /// Scores the rows of `x` from `from` on, as many as `scores` has room for.
    fn scores<X: Rows, Z: Rows>(&self, x: &X, from: usize, z: &Z, scores: &mut [f64]) {
        // One row at a time is laid out densely: then any support row, dense or sparse, meets it in one pass.
        let mut row = vec![0.0; z.cols()];
        for (i, score) in scores.chunks_exact_mut(self.intercepts.len()).enumerate() {
            x.visit(from + i, |j, value| row[j] = value);
            self.score_row(&row, x.norm2(from + i), z, score);
            x.visit(from + i, |j, _| row[j] = 0.0);
        }
    }

    fn score_row<Z: Rows>(&self, row: &[f64], norm2: f64, z: &Z, score: &mut [f64]) {
        let l1: f64 = match self.kernel {
            Kernel::Laplacian { .. } => row.iter().map(|v| v.abs()).sum(),
            _ => 0.0,
        };
        score.copy_from_slice(self.intercepts);
        for s in 0..z.rows() {
            let k = match self.kernel {
                Kernel::Linear => z.dot(s, row),
                Kernel::Rbf { gamma } => {
                    (-gamma * (norm2 + self.support_norms[s] - 2.0 * z.dot(s, row)).max(0.0)).exp()
                }
                Kernel::Poly { gamma, degree, coef0 } => {
                    (gamma * z.dot(s, row) + coef0).powi(i32::try_from(degree).unwrap_or(i32::MAX))
                }
                Kernel::Sigmoid { gamma, coef0 } => (gamma * z.dot(s, row) + coef0).tanh(),
                Kernel::Laplacian { gamma } => (-gamma * l1_distance(row, l1, z, s)).exp(),
            };
            for (score, c) in score.iter_mut().zip(self.coefficients) {
                *score += c[s] * k;
            }
        }
    }
}

/// `‖x − z_s‖₁` for an `x` with `‖x‖₁ = l1`: only the stored values of `z_s` are visited.
fn l1_distance<Z: Rows>(x: &[f64], l1: f64, z: &Z, s: usize) -> f64 {
    let mut distance = l1;
    z.visit(s, |j, value| distance += (x[j] - value).abs() - x[j].abs());
    distance.max(0.0)
}
