//! What preconditions conjugate gradients over kernel coefficients.

use crate::data::dense_dot;
use crate::kernel::LowRank;
use crate::linalg::{self, Cholesky};
use crate::{Error, Result};
use rayon::prelude::*;

/// `M⁻¹ = I − B (I + BᵀB)⁻¹ Bᵀ` for `M = I + B Bᵀ`, `B = diag(√h) F_S`.
pub struct Preconditioner {
    rank: usize,
    /// `B`, row after row.
    scaled: Vec<f32>,
    /// Of `I + BᵀB`.
    factor: Cholesky,
}

/// Rows of `B` that a thread takes at a time.
const CHUNK: usize = 512;

impl Preconditioner {
    /// From `F` of `G ≈ F Fᵀ`, the rows `S` and `√h` of each.
    pub fn new(part: &LowRank, chosen: &[usize], root: &[f64]) -> Result<Self> {
        let rank = part.rank.max(1);
        let mut scaled = vec![0.0f32; chosen.len() * rank];
        let rows = scaled.par_chunks_mut(rank).zip(chosen).zip(root).with_min_len(CHUNK);
        rows.for_each(|((out, &i), root)| {
            out.iter_mut().zip(part.row(i)).for_each(|(out, f)| *out = *root as f32 * f);
        });
        let mut matrix = vec![0.0; rank * rank];
        (0..rank).for_each(|j| matrix[j * rank + j] = 1.0);
        let mut wide = Vec::new();
        for rows in scaled.chunks(8 * CHUNK * rank) {
            wide.clear();
            wide.extend(rows.iter().map(|v| f64::from(*v)));
            linalg::add_gram(&mut matrix, &wide, rank, 1.0, true);
        }
        let factor = Cholesky::new(matrix, rank)
            .map_err(|_| Error::Numeric { place: "preconditioner", reason: "it is not positive definite".into() })?;
        Ok(Self { rank, scaled, factor })
    }

    /// Writes `M⁻¹ v`.
    pub fn apply(&self, v: &[f64], out: &mut [f64]) {
        let parts = || self.scaled.par_chunks(CHUNK * self.rank).zip(v.par_chunks(CHUNK));
        let sums = parts().map(|(rows, v)| {
            let mut sum = vec![0.0; self.rank];
            linalg::wide(
                #[inline(always)]
                || {
                    for (row, v) in rows.chunks_exact(self.rank).zip(v) {
                        sum.iter_mut().zip(row).for_each(|(sum, f)| *sum += v * f64::from(*f));
                    }
                },
            );
            sum
        });
        let mut inner = linalg::add_up(sums.collect());
        self.factor.solve(&mut inner);
        out.par_chunks_mut(CHUNK).zip(parts()).for_each(|(out, (rows, v))| {
            linalg::wide(
                #[inline(always)]
                || {
                    let rows = rows.chunks_exact(self.rank).zip(v);
                    out.iter_mut().zip(rows).for_each(|(out, (row, v))| *out = v - dense_dot(row, &inner));
                },
            );
        });
    }

    /// The diagonal of `M⁻¹`: `1 − ‖L⁻¹ b_i‖²`, `L Lᵀ = I + BᵀB`.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let block = |rows: &[f32]| {
            let mut wide: Vec<f64> = rows.iter().map(|v| f64::from(*v)).collect();
            self.factor.half_solve(&mut wide, false);
            wide.chunks_exact(self.rank).map(|b| 1.0 - linalg::dot(b, b)).collect::<Vec<f64>>()
        };
        self.scaled.par_chunks(CHUNK * self.rank).flat_map_iter(block).collect()
    }
}
