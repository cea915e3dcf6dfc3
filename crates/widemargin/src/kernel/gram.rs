//! The whole kernel matrix `G`, for solvers that factor parts of it or go through its rows.

use super::{KernelRows, Stored};
use crate::Result;
use crate::control::Control;
use crate::linalg;
use rayon::prelude::*;

/// The kernel matrix `G`, kept in single precision where that is enough.
pub struct Gram {
    values: GramValues,
}

/// Its rows.
enum GramValues {
    Single(Vec<Vec<f32>>),
    Double(Vec<Vec<f64>>),
}

/// From this tolerance on, the rounding of kernel values to single precision (6e-8) does not show in the gap.
const SINGLE: f64 = 1e-5;

/// How kernel values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GramPrecision {
    /// As `f32`.
    Single,
    /// As `f64`.
    Double,
}

impl GramPrecision {
    /// What mostly suffices for a relative gap of `tol`. Whether it did, the certificate says.
    pub fn for_tolerance(tol: f64) -> Self {
        if tol < SINGLE { Self::Double } else { Self::Single }
    }
}

impl Gram {
    /// The matrix of the rows.
    pub fn new(rows: &KernelRows<'_>, precision: GramPrecision, control: Control<'_>) -> Result<Self> {
        let values = match precision {
            GramPrecision::Single => GramValues::Single(rows.whole(control)?),
            GramPrecision::Double => GramValues::Double(rows.whole(control)?),
        };
        Ok(Self { values })
    }

    /// Bytes that the matrix of `m` rows takes.
    pub fn bytes(m: usize, precision: GramPrecision) -> u64 {
        let size = match precision {
            GramPrecision::Single => 4,
            GramPrecision::Double => 8,
        };
        size * (m as u64).pow(2)
    }

    /// Its rows, if they are kept as `T`.
    pub fn rows<T: Stored>(&self) -> Option<&[Vec<T>]> {
        match &self.values {
            GramValues::Single(rows) => T::from_single(rows),
            GramValues::Double(rows) => T::from_double(rows),
        }
    }

    /// The matrix of some of the rows.
    pub fn part(&self, chosen: &[usize]) -> Self {
        fn cut<T: Stored>(rows: &[Vec<T>], chosen: &[usize]) -> Vec<Vec<T>> {
            chosen.par_iter().map(|&i| chosen.iter().map(|&j| rows[i][j]).collect()).collect()
        }
        let values = match &self.values {
            GramValues::Single(rows) => GramValues::Single(cut(rows, chosen)),
            GramValues::Double(rows) => GramValues::Double(cut(rows, chosen)),
        };
        Self { values }
    }

    /// `Σ_j c_j G_ij` over some columns `j`, for some rows `i`.
    pub fn cross(&self, rows: &[usize], columns: &[usize], c: &[f64]) -> Vec<f64> {
        let row = |&i: &usize| columns.iter().zip(c).map(|(&j, c)| self.get(i, j) * c).sum();
        rows.par_iter().with_min_len(16).map(row).collect()
    }

    /// `G_ij`
    pub fn get(&self, i: usize, j: usize) -> f64 {
        match &self.values {
            GramValues::Single(values) => values[i][j].into(),
            GramValues::Double(values) => values[i][j],
        }
    }

    /// Its rows.
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            GramValues::Single(values) => values.len(),
            GramValues::Double(values) => values.len(),
        }
    }

    /// `G v`; costs only the rows where `v` is not zero.
    pub fn multiply(&self, v: &[f64]) -> Vec<f64> {
        fn combine<T: Stored>(rows: &[Vec<T>], v: &[f64]) -> Vec<f64> {
            let terms = v.iter().zip(rows).filter(|(v, _)| **v != 0.0).map(|(v, row)| (*v, row.as_slice()));
            let mut product = vec![0.0; v.len()];
            linalg::add_rows(&mut product, &terms.collect::<Vec<_>>());
            product
        }
        match &self.values {
            GramValues::Single(rows) => combine(rows, v),
            GramValues::Double(rows) => combine(rows, v),
        }
    }

    /// `G_SS + diag`, ready to be factored.
    pub fn principal(&self, chosen: &[usize], diagonal: &[f64]) -> Vec<f64> {
        let k = chosen.len();
        let mut matrix = vec![0.0; k * k];
        matrix.par_chunks_mut(k.max(1)).enumerate().for_each(|(p, out)| {
            // Only the lower triangle counts, and column-major it is the rest of this row.
            out[p..].iter_mut().zip(&chosen[p..]).for_each(|(out, &j)| *out = self.get(chosen[p], j));
            out[p] += diagonal[p];
        });
        matrix
    }
}
