//! The whole kernel matrix `G`, for solvers that multiply with it, factor parts of it or go through its rows.

use super::landmarks::pivoted_cholesky;
use super::{KernelRows, Stored};
use crate::Result;
use crate::control::Control;
use crate::data::dense_dot;
use crate::linalg;
use crate::random::Random;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Columns of the part of `G` that preconditions conjugate gradients (Frangella, Tropp & Udell 2023): its largest eigenvalues,
/// which they would take longest to find.
const RANK: usize = 300;

/// The kernel matrix `G`, kept in single precision where that is enough: products with it wait for memory.
pub struct Gram {
    n: usize,
    values: GramValues,
    low_rank: OnceLock<LowRank>,
}

/// `F` of `G ≈ F Fᵀ`, row after row.
pub struct LowRank {
    rank: usize,
    values: Vec<f64>,
}

impl LowRank {
    /// `r`
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Row `i` of `F`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }
}

/// Its rows.
enum GramValues {
    Single(Vec<Vec<f32>>),
    Double(Vec<Vec<f64>>),
}

/// From this tolerance on, the rounding of kernel values to single precision (6e-8) does not show in the gap.
const SINGLE: f64 = 1e-5;
/// Length of the pieces in which products with few rows are summed: a piece stays in the cache.
const PIECE: usize = 1024;

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
        Ok(Self { n: rows.len(), values, low_rank: OnceLock::new() })
    }

    /// Bytes that the matrix of `m` rows takes.
    pub fn bytes(m: usize, precision: GramPrecision) -> u64 {
        let size = match precision {
            GramPrecision::Single => 4,
            GramPrecision::Double => 8,
        };
        size * (m as u64).pow(2)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n
    }

    /// How its values are kept.
    pub fn precision(&self) -> GramPrecision {
        match &self.values {
            GramValues::Single(_) => GramPrecision::Single,
            GramValues::Double(_) => GramPrecision::Double,
        }
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
        Self { n: chosen.len(), values, low_rank: OnceLock::new() }
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

    fn row(&self, i: usize, out: &mut [f64]) {
        match &self.values {
            GramValues::Single(values) => out.iter_mut().zip(&values[i]).for_each(|(out, k)| *out = (*k).into()),
            GramValues::Double(values) => out.copy_from_slice(&values[i]),
        }
    }

    /// The part of low rank, computed once.
    pub fn low_rank(&self, control: Control<'_>) -> Result<&LowRank> {
        if let Some(known) = self.low_rank.get() {
            return Ok(known);
        }
        let diagonal = (0..self.n).map(|i| self.get(i, i)).collect();
        let mut random = Random::new(0, 0x6c6f_7772);
        let (_, columns) = pivoted_cholesky(diagonal, |i, out| self.row(i, out), RANK, &mut random, control)?;
        let values = (0..self.n).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
        Ok(self.low_rank.get_or_init(|| LowRank { rank: columns.len(), values }))
    }

    /// Row `i` times `v`.
    fn dot(&self, i: usize, v: &[f64]) -> f64 {
        match &self.values {
            GramValues::Single(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
            GramValues::Double(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
        }
    }

    /// Chosen rows times each column of `v`: `out` has a number a chosen row, column after column. A row is read once for all
    /// columns.
    pub fn chosen_products(&self, chosen: &[usize], v: &[f64], out: &mut [f64]) {
        let (n, k) = (self.n.max(1), chosen.len().max(1));
        let columns = v.len() / n;
        let rows = |&i: &usize| -> Vec<f64> { v.chunks_exact(n).map(|v| self.dot(i, v)).collect() };
        let products: Vec<Vec<f64>> = chosen.par_iter().with_min_len(16).map(rows).collect();
        for column in 0..columns {
            out[column * k..(column + 1) * k].iter_mut().zip(&products).for_each(|(out, row)| *out = row[column]);
        }
    }

    /// `out += a` times a stretch of row `i`.
    fn axpy(&self, i: usize, a: f64, from: usize, out: &mut [f64]) {
        let range = from..from + out.len();
        match &self.values {
            GramValues::Single(values) => {
                out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * f64::from(*k))
            }
            GramValues::Double(values) => out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * k),
        }
    }

    /// `G v`; costs only the rows where `v` is not zero.
    pub fn multiply(&self, v: &[f64]) -> Vec<f64> {
        let filled: Vec<usize> = (0..self.n).filter(|&j| v[j] != 0.0).collect();
        if 2 * filled.len() > self.n {
            return (0..self.n).into_par_iter().with_min_len(16).map(|i| self.dot(i, v)).collect();
        }
        let mut product = vec![0.0; self.n];
        product.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
            filled.iter().for_each(|&j| self.axpy(j, v[j], piece * PIECE, out));
        });
        product
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
