//! From rows to scores to classes. No number here depends on how many threads there are.

use super::{Calibration, ClassConformity, Conformity, Curve, Decision, Model, Scorer};
use crate::control::Control;
use crate::data::{Labels, Matrix, Rows, interpolate};
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::axpy;
use crate::problem::Bias;
use crate::{Error, Result, with_rows};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Rows that one thread scores at a time.
const CHUNK: usize = 256;
/// Rows that have to be scaled or widened first are copied this many numbers at a time.
const COPIED: usize = 1 << 22;
/// Up to so many products of numbers, about half a millisecond, other threads are not woken: starting a pool of two takes
/// a tenth of one, and as long to end it.
const LITTLE: usize = 1 << 20;

/// What scoring has to know of the support rows of one model, computed when it is first needed.
#[derive(Debug, Default)]
pub struct KnownSupport {
    norms: OnceLock<Vec<f64>>,
    ranked: OnceLock<Matrix<'static>>,
}

/// Rows as kernels see them: scaled, and for those that see ranks instead, these.
#[derive(Clone, Copy)]
struct RowsSeen<'a> {
    scaled: &'a Matrix<'a>,
    ranked: Option<&'a Matrix<'a>>,
}

impl<'a> RowsSeen<'a> {
    fn by(&self, on_ranks: bool) -> &'a Matrix<'a> {
        self.ranked.filter(|_| on_ranks).unwrap_or(self.scaled)
    }
}

impl Model {
    /// The scores of `rows`: one row after the other, [`Scorer::columns`] numbers each. Columns of `rows` beyond the
    /// model's features are ignored, missing ones are zero. The model's scaling is applied here.
    pub fn scores(&self, rows: &Matrix<'_>) -> Result<Vec<f64>> {
        self.scores_with(rows, Control::default())
    }

    /// As [`scores`](Self::scores), stopped by `control`.
    pub fn scores_with(&self, rows: &Matrix<'_>, control: Control<'_>) -> Result<Vec<f64>> {
        let known = KnownSupport::default();
        let scores = if rows.cols() == self.features && self.scaling.is_none() {
            self.scores_of_prepared(rows, &known, control)?
        } else {
            let step = (COPIED / self.features.max(1)).max(1);
            let mut scores = Vec::with_capacity(rows.rows() * self.scorer.columns());
            for from in (0..rows.rows()).step_by(step) {
                scores.extend(self.scores_of_prepared(&self.prepared(rows, from, step), &known, control)?);
            }
            scores
        };
        self.finite(scores)
    }

    /// Whether scoring `rows` is so little work that other threads are of no use.
    pub fn is_little(&self, rows: &Matrix<'_>) -> bool {
        let functions = match &self.scorer {
            Scorer::Linear { weights, .. } => weights.len(),
            Scorer::Kernel { support, .. } => support.rows(),
        };
        rows.rows().saturating_mul(functions).saturating_mul(self.features.max(1)) <= LITTLE
    }

    /// As [`scores`](Self::scores), on the calling thread, with what is known of the support rows from earlier calls.
    pub fn scores_here(&self, rows: &Matrix<'_>, known: &KnownSupport) -> Result<Vec<f64>> {
        let copied;
        let rows = if rows.cols() == self.features && self.scaling.is_none() {
            rows
        } else {
            copied = self.prepared(rows, 0, rows.rows());
            &copied
        };
        if self.average.is_some() {
            return self.finite(self.scores_of_prepared(rows, known, Control::default())?);
        }
        let scores = match &self.scorer {
            Scorer::Linear { weights, intercepts } => {
                let mut scores = vec![0.0; rows.rows() * weights.len()];
                with_rows!(rows, x => linear_chunk(x, 0, weights, intercepts, &mut scores));
                scores
            }
            Scorer::Kernel { support, coefficients, intercepts } => {
                let norms = known.norms.get_or_init(|| self.kernel.norms(support));
                let support = KernelRows::with_norms(self.kernel, support, 0.0, norms);
                let rows = KernelRows::with_norms(self.kernel, rows, 0.0, self.kernel.norms(rows));
                with_intercepts(support.expand_here(&rows, coefficients), intercepts)
            }
        };
        self.finite(scores)
    }

    /// The scores, if all of them are numbers.
    fn finite(&self, scores: Vec<f64>) -> Result<Vec<f64>> {
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
        let rows = scores.chunks_exact(self.scorer.columns());
        match self.threshold {
            None => rows.map(|row| self.decision.class(row)).collect(),
            Some(threshold) => rows.map(|row| u32::from(self.decision.lead(row) > threshold)).collect(),
        }
    }

    /// The probabilities for scores of [`Model::scores`]: one column a class; `None` if the model was trained without. The class
    /// that is predicted is that of the largest score, which need not be the most probable one ([`Calibration`]).
    pub fn probabilities(&self, scores: &[f64]) -> Option<Vec<f64>> {
        let calibration = self.calibration.as_ref()?;
        Some(self.probabilities_by(calibration, scores))
    }

    fn probabilities_by(&self, calibration: &Calibration, scores: &[f64]) -> Vec<f64> {
        let row = |row: &[f64]| calibration.probabilities(&self.decision.class_scores(row));
        scores.chunks_exact(self.scorer.columns()).flat_map(row).collect()
    }

    /// Which labels are in the prediction set of each row, one column a class, for scores of [`Model::scores`]: those that are not
    /// more improbable than their own class is for a share `coverage` of the rows that no model saw, with `per_class` for that
    /// share of the rows of each class. The most probable class is always in it. `None` if the model does not know.
    pub fn prediction_sets(&self, scores: &[f64], coverage: f64, per_class: bool) -> Option<Vec<bool>> {
        let conformity = self.conformity.as_ref()?;
        let limits = conformity.limits(coverage, per_class);
        let probabilities = self.probabilities_by(&conformity.calibration, scores);
        let row = |row: &[f64]| {
            let first = largest(row) as usize;
            let inside = |(c, p): (usize, &f64)| c == first || 1.0 - p <= limits[c];
            row.iter().enumerate().map(inside).collect::<Vec<bool>>()
        };
        Some(probabilities.chunks_exact(self.labels.len()).flat_map(row).collect())
    }

    /// The scores of [`Model::scores`] as one score a class (two classes: one column if the machine has one), of which
    /// the largest is the prediction.
    pub fn class_scores(&self, scores: &[f64]) -> Vec<f64> {
        scores.chunks_exact(self.scorer.columns()).flat_map(|row| self.decision.class_scores(row)).collect()
    }

    /// The number of class scores of a row.
    pub fn class_columns(&self) -> usize {
        if self.decision == Decision::Sign { 1 } else { self.labels.len() }
    }

    /// The margin of each row for scores of [`Model::scores`]: by how much the score of its own class exceeds the best of
    /// the others (two classes: `y f`). `None` for a label the model does not know.
    pub fn margins(&self, scores: &[f64], labels: &Labels) -> Vec<Option<f64>> {
        let per_row = self.class_scores(scores);
        let codes = labels.codes_in(&self.labels);
        let columns = per_row.len() / codes.len().max(1);
        let margin = |(class, scores): (u32, &[f64])| match scores {
            [score] if class == 1 => *score,
            [score] => -score,
            scores => {
                let others = scores.iter().enumerate().filter(|(other, _)| *other != class as usize);
                scores[class as usize] - others.fold(f64::NEG_INFINITY, |best, (_, s)| best.max(*s))
            }
        };
        let rows = codes.into_iter().zip(per_row.chunks_exact(columns.max(1)));
        rows.map(|(class, scores)| class.map(|class| margin((class, scores)))).collect()
    }

    /// Weights and intercepts of a linear model for rows as they come, before its scaling: `f_l(x) = w_l · x + b_l`. `None` for
    /// another kernel, and for features scaled to their ranks.
    pub fn linear(&self) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
        let Scorer::Linear { weights, intercepts } = &self.scorer else { return None };
        let Some(scaling) = &self.scaling else { return Some((weights.clone(), intercepts.clone())) };
        if scaling.ranks.is_some() {
            return None;
        }
        let scaled =
            |w: &Vec<f64>| -> Vec<f64> { w.iter().zip(&scaling.factor).map(|(w, factor)| w * factor).collect() };
        let raw: Vec<Vec<f64>> = weights.iter().map(scaled).collect();
        let shifted = |w: &Vec<f64>| w.iter().zip(&scaling.shift).map(|(w, shift)| w * shift).sum::<f64>();
        let intercepts = raw.iter().zip(intercepts).map(|(w, b)| b - shifted(w)).collect();
        Some((raw, intercepts))
    }

    /// `‖w‖` in feature space (over all columns), so that margins of different models can be compared.
    pub fn norm(&self) -> f64 {
        let constant = |b: &f64| match self.bias {
            Bias::Feature(value) => (b / value).powi(2),
            Bias::None | Bias::Free => 0.0,
        };
        let intercepts: f64 = self.scorer.intercepts().iter().map(constant).sum();
        let squares: f64 = self.norms2(self.kernel, self.scorer.vectors())
            + self.parts.iter().map(|part| self.norms2(part.kernel, &part.vectors)).sum::<f64>();
        (squares + intercepts).max(0.0).sqrt()
    }

    /// The sum of `‖w_l‖²` over the columns of one kernel.
    fn norms2(&self, kernel: Kernel, vectors: &[Vec<f64>]) -> f64 {
        let Scorer::Kernel { support, .. } = &self.scorer else { return vectors.iter().flatten().map(|w| w * w).sum() };
        if kernel == Kernel::Linear {
            return vectors.iter().flatten().map(|w| w * w).sum();
        }
        let rows = KernelRows::new(kernel, support, 0.0);
        // Nobody stops this one.
        let scores = rows.expand(&rows, vectors, Control::default()).unwrap_or_default();
        let row = |(i, row): (usize, &[f64])| row.iter().zip(vectors).map(|(f, c)| f * c[i]).sum::<f64>();
        scores.chunks_exact(vectors.len().max(1)).enumerate().map(row).sum()
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

    /// `Σ_k Σ_i c_ki K_k(x_i, x) + b` over the model's kernel and those of its parts.
    fn scores_of_prepared(&self, rows: &Matrix<'_>, known: &KnownSupport, control: Control<'_>) -> Result<Vec<f64>> {
        let ranked = self.ranked.as_ref().map(|ranked| ranked.scaling.apply(rows));
        let rows = RowsSeen { scaled: rows, ranked: ranked.as_ref() };
        let support = match &self.scorer {
            Scorer::Linear { .. } => None,
            Scorer::Kernel { support, .. } => {
                let ranked = self.ranked.as_ref().map(|r| known.ranked.get_or_init(|| r.scaling.apply(support)));
                Some(RowsSeen { scaled: support, ranked })
            }
        };
        let mut scores = vec![0.0; rows.scaled.rows() * self.scorer.columns()];
        for (number, (kernel, vectors, on_ranks)) in self.kernels().enumerate() {
            let rows = rows.by(on_ranks);
            // A part with the linear kernel has weights; the model's own may be over support rows nevertheless.
            let expanded = match support.filter(|_| number == 0 || kernel != Kernel::Linear) {
                Some(support) => {
                    let support = KernelRows::new(kernel, support.by(on_ranks), 0.0);
                    support.expand(&KernelRows::new(kernel, rows, 0.0), vectors, control)
                }
                None => with_rows!(rows, x => linear_scores(x, vectors, &vec![0.0; vectors.len()], control)),
            };
            axpy(1.0, &expanded?, &mut scores);
        }
        Ok(with_intercepts(scores, self.scorer.intercepts()))
    }
}

impl Decision {
    /// Of two classes, the score of the larger label, or what it has more than that of the smaller.
    pub fn lead(&self, scores: &[f64]) -> f64 {
        match self.class_scores(scores).as_slice() {
            [smaller, larger] => larger - smaller,
            scores => scores[0],
        }
    }

    /// The class that one row of scores means.
    pub fn class(&self, scores: &[f64]) -> u32 {
        match self {
            Self::Sign => u32::from(scores[0] > 0.0),
            Self::Largest => largest(scores),
            Self::Pairs | Self::Codes => largest(&self.class_scores(scores)),
        }
    }
}

impl Calibration {
    /// The probability of each class for the class scores of a row.
    pub fn probabilities(&self, scores: &[f64]) -> Vec<f64> {
        if !self.curves.is_empty() {
            return self.isotonic(scores);
        }
        let offset = |c: usize| self.offsets.get(c).copied().unwrap_or(0.0);
        let lead = match scores {
            [score] => *score,
            [below, above] => above - below,
            scores => {
                let z: Vec<f64> = scores.iter().enumerate().map(|(c, f)| self.slope * f + offset(c)).collect();
                let most = z.iter().fold(f64::NEG_INFINITY, |most, z| most.max(*z));
                let odds: Vec<f64> = z.iter().map(|z| (z - most).exp()).collect();
                let sum: f64 = odds.iter().sum();
                return odds.into_iter().map(|o| o / sum).collect();
            }
        };
        let z = self.slope * lead + offset(0);
        vec![1.0 / (1.0 + z.exp()), 1.0 / (1.0 + (-z).exp())]
    }

    fn isotonic(&self, scores: &[f64]) -> Vec<f64> {
        let at = |curve: &Curve, score: f64| interpolate(&curve.scores, &curve.probabilities, score);
        let lead = match scores {
            [score] => *score,
            [below, above] => above - below,
            scores => {
                let p: Vec<f64> = self.curves.iter().zip(scores).map(|(curve, score)| at(curve, *score)).collect();
                let sum: f64 = p.iter().sum();
                return p.into_iter().map(|p| p / sum).collect();
            }
        };
        let p = at(&self.curves[0], lead);
        vec![1.0 - p, p]
    }
}

impl Conformity {
    /// How improbable a label may be to be in a set, for each class.
    fn limits(&self, coverage: f64, per_class: bool) -> Vec<f64> {
        let limit = |classes: &[ClassConformity]| {
            let rows: f64 = classes.iter().map(|class| class.rows).sum();
            let share = |class: &ClassConformity| class.rows / class.scores.len() as f64;
            let mut all: Vec<(f64, f64)> =
                classes.iter().flat_map(|class| class.scores.iter().map(|score| (*score, share(class)))).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            // The row to come is one of `rows + 1`.
            let (wanted, mut passed) = ((rows + 1.0) * coverage * (1.0 - 1e-12), 0.0);
            let enough = all.iter().find(|(_, share)| {
                passed += share;
                passed >= wanted
            });
            enough.map_or(1.0, |(score, _)| *score)
        };
        match per_class {
            true => self.by_class.iter().map(|class| limit(std::slice::from_ref(class))).collect(),
            false => vec![limit(&self.by_class); self.by_class.len()],
        }
    }
}

/// Where the largest number stands; the first among equals.
fn largest(scores: &[f64]) -> u32 {
    (1..scores.len()).fold(0, |best, l| if scores[l] > scores[best] { l } else { best }) as u32
}

/// Each row of scores with the intercept of each function.
fn with_intercepts(mut scores: Vec<f64>, intercepts: &[f64]) -> Vec<f64> {
    for row in scores.chunks_exact_mut(intercepts.len()) {
        row.iter_mut().zip(intercepts).for_each(|(score, b)| *score += b);
    }
    scores
}

/// `w_l · x_i + b_l` for the rows from `from` on.
fn linear_chunk<X: Rows>(x: &X, from: usize, weights: &[Vec<f64>], intercepts: &[f64], scores: &mut [f64]) {
    for (i, row) in scores.chunks_exact_mut(weights.len()).enumerate() {
        for ((score, w), b) in row.iter_mut().zip(weights).zip(intercepts) {
            *score = x.dot(from + i, w) + b;
        }
    }
}

fn linear_scores<X: Rows>(x: &X, weights: &[Vec<f64>], intercepts: &[f64], control: Control<'_>) -> Result<Vec<f64>> {
    let columns = weights.len();
    let mut scores = vec![0.0; x.rows() * columns];
    scores.par_chunks_mut(CHUNK * columns).enumerate().try_for_each(|(chunk, scores)| {
        control.check()?;
        linear_chunk(x, chunk * CHUNK, weights, intercepts, scores);
        Ok(())
    })?;
    Ok(scores)
}
