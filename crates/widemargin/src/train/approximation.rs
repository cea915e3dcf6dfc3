//! A linear problem over landmark rows in place of one over a kernel.

use super::TrainOptions;
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, Landmarks};
use crate::linalg::scattered;
use crate::machine::Fit;
use crate::problem::ScoreFunctions;
use crate::{Error, Remedy, Result, memory, with_rows};

/// The training rows as landmark rows map them.
pub(super) struct Approximation {
    pub(super) landmarks: Landmarks,
    pub(super) rows: Matrix<'static>,
    residual: f64,
}

impl Approximation {
    pub(super) fn new(
        kernel: Kernel,
        rows: &Matrix<'_>,
        rank: usize,
        options: &TrainOptions,
        control: Control<'_>,
    ) -> Result<Self> {
        let rank = rank.min(rows.rows());
        let candidates = Landmarks::candidates(rows.rows(), rank);
        let what = || format!("the choice of {rank} landmarks among {candidates} rows");
        let numbers = (rank as u64).saturating_mul(candidates as u64 + rank as u64);
        memory::check(what, numbers.saturating_mul(8), [Remedy::Lower("approx")])?;
        let landmarks = Landmarks::choose(kernel, rows, rank, options.settings.seed, control)?;
        if landmarks.chosen.is_empty() {
            let reason = "k(x, x) is above zero for no row: there is nothing to approximate, choose another kernel";
            return Err(Error::numeric("the landmarks", reason));
        }
        let mapped = landmarks.map(rows, options.settings.memory, control)?;
        Ok(Self { landmarks, rows: mapped.rows, residual: mapped.residual })
    }

    /// From weights over the map to coefficients of the landmark rows.
    pub(super) fn expanded(&self, fit: Fit) -> Fit {
        let Fit { functions, mut outcome } = fit;
        let chosen = &self.landmarks.chosen;
        outcome.solver = format!("{}, over {} landmark rows", outcome.solver, chosen.len());
        outcome.support = chosen.len();
        outcome.extras.push(("landmarks", chosen.len() as f64));
        outcome.extras.push(("kernel_left_out", self.residual));
        let weights_of = |c: &Vec<f64>| {
            let mut weights = vec![0.0; self.rows.cols()];
            c.iter().enumerate().for_each(|(i, c)| with_rows!(&self.rows, x => x.axpy(i, *c, &mut weights)));
            weights
        };
        let linear = matches!(functions, ScoreFunctions::Linear { .. });
        let (vectors, intercepts) = functions.into_parts();
        let weights = if linear { vectors } else { vectors.iter().map(weights_of).collect() };
        let column = |weights: &Vec<f64>| {
            scattered(&self.landmarks.coefficients(weights), chosen.iter().copied(), self.rows.rows())
        };
        let coefficients = weights.iter().map(column).collect();
        Fit { functions: ScoreFunctions::Kernel { support: (), coefficients, intercepts }, outcome }
    }
}
