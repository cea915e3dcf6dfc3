//! Inner products of rows: single, block, whole.

mod exp;

use crate::control::Control;
use crate::data::{Dense, Matrix, Real, Rows};
use crate::linalg;
use crate::{Result, with_rows};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// `k(x, z)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kernel {
    /// `x·z`
    #[default]
    Linear,
    /// `exp(−γ ‖x − z‖²)`
    Rbf {
        /// `γ`
        gamma: f64,
    },
    /// `(γ x·z + r)^p`
    Poly {
        /// `γ`
        gamma: f64,
        /// `p`
        degree: u32,
        /// `r`
        coef0: f64,
    },
    /// `tanh(γ x·z + r)`; not positive definite in general, so optima over it carry no certificate of convexity.
    Sigmoid {
        /// `γ`
        gamma: f64,
        /// `r`
        coef0: f64,
    },
    /// `exp(−γ ‖x − z‖₁)`
    Laplacian {
        /// `γ`
        gamma: f64,
    },
}

impl Kernel {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Rbf { .. } => "rbf",
            Self::Poly { .. } => "poly",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Laplacian { .. } => "laplacian",
        }
    }
}

/// Rows under a kernel: `k(x_i, ·) + offset`.
///
/// The offset is how an appended, regularised constant feature `B` shows itself in a kernel: `offset = B²`.
pub struct KernelRows<'a> {
    kernel: Kernel,
    rows: &'a Matrix<'a>,
    offset: f64,
    /// `‖x_i‖²`, or `‖x_i‖₁` for the Laplacian kernel.
    norms: Vec<f64>,
}

/// Right-hand rows are taken in tiles of this many, so that a tile of converted numbers stays in the cache.
const TILE: usize = 256;

impl<'a> KernelRows<'a> {
    /// Prepares the rows.
    pub fn new(kernel: Kernel, rows: &'a Matrix<'a>, offset: f64) -> Self {
        let norm = |i: usize| -> f64 {
            if let Kernel::Laplacian { .. } = kernel {
                let mut sum = 0.0;
                with_rows!(rows, x => x.visit(i, |_, v| sum += v.abs()));
                sum
            } else {
                with_rows!(rows, x => x.norm2(i))
            }
        };
        let norms = (0..rows.rows()).into_par_iter().map(norm).collect();
        Self { kernel, rows, offset, norms }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.norms.is_empty()
    }

    /// `k(x_i, x_i) + offset`
    pub fn diagonal(&self, i: usize) -> f64 {
        let mut value = match self.kernel {
            Kernel::Laplacian { .. } => [0.0],
            _ => [self.norms[i]],
        };
        self.finish(self.norms[i], &self.norms[i..=i], &mut value);
        value[0]
    }

    /// The kernel values of row `i` with every row.
    pub fn row(&self, i: usize, out: &mut [f64]) {
        self.block(self, i..i + 1, out);
    }

    /// The kernel values of rows `left[range]` with every row of `self`, row-major in `out`. On one thread.
    ///
    /// Both sides must have the same kernel and number of columns.
    pub fn block(&self, left: &KernelRows<'_>, range: std::ops::Range<usize>, out: &mut [f64]) {
        let n = self.len();
        let dense = left.rows.is_dense() && self.rows.is_dense() && self.rows.cols() > 0;
        if dense && !matches!(self.kernel, Kernel::Laplacian { .. }) {
            self.dense_products(left, range.clone(), out);
        } else {
            self.scattered_products(left, range.clone(), out);
        }
        for (i, values) in range.zip(out.chunks_exact_mut(n.max(1))) {
            self.finish(left.norms[i], &self.norms, values);
        }
    }

    /// `x_i · z_j` by matrix products in double precision.
    fn dense_products(&self, left: &KernelRows<'_>, range: std::ops::Range<usize>, out: &mut [f64]) {
        let (n, d) = (self.len(), self.rows.cols());
        let mut buffers = (Vec::new(), Vec::new());
        let a = doubles(left.rows, range, &mut buffers.0);
        for from in (0..n).step_by(TILE) {
            let to = (from + TILE).min(n);
            let b = doubles(self.rows, from..to, &mut buffers.1);
            linalg::products(&mut out[from..], n, a, b, d);
        }
    }

    /// `x_i · z_j` (or `‖x_i − z_j‖₁`) with row `i` spread out over all columns.
    fn scattered_products(&self, left: &KernelRows<'_>, range: std::ops::Range<usize>, out: &mut [f64]) {
        let n = self.len();
        let mut spread = vec![0.0; self.rows.cols().max(left.rows.cols())];
        for (i, values) in range.zip(out.chunks_exact_mut(n.max(1))) {
            with_rows!(left.rows, x => x.visit(i, |j, v| spread[j] = v));
            with_rows!(self.rows, z => if let Kernel::Laplacian { .. } = self.kernel {
                for (j, value) in values.iter_mut().enumerate() {
                    // ‖x − z‖₁ = ‖x‖₁ + Σ over z's stored columns of (|x_c − z_c| − |x_c|)
                    let mut distance = left.norms[i];
                    z.visit(j, |c, v| distance += (spread[c] - v).abs() - spread[c].abs());
                    *value = distance;
                }
            } else {
                for (j, value) in values.iter_mut().enumerate() {
                    *value = z.dot(j, &spread);
                }
            });
            with_rows!(left.rows, x => x.visit(i, |j, _| spread[j] = 0.0));
        }
    }

    /// From inner products (or `‖·‖₁` distances) to kernel values, in place.
    fn finish(&self, norm: f64, norms: &[f64], values: &mut [f64]) {
        match self.kernel {
            Kernel::Linear => {}
            Kernel::Rbf { gamma } => {
                for (value, other) in values.iter_mut().zip(norms) {
                    *value = -gamma * (norm + other - 2.0 * *value).max(0.0);
                }
                exp::exp_all(values);
            }
            Kernel::Laplacian { gamma } => {
                values.iter_mut().for_each(|value| *value = -gamma * value.max(0.0));
                exp::exp_all(values);
            }
            Kernel::Poly { gamma, degree, coef0 } => {
                values.iter_mut().for_each(|value| *value = (gamma * *value + coef0).powi(degree as i32));
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                values.iter_mut().for_each(|value| *value = (gamma * *value + coef0).tanh());
            }
        }
        if self.offset != 0.0 {
            values.iter_mut().for_each(|value| *value += self.offset);
        }
    }

    /// The whole matrix `G`, row-major.
    pub fn matrix(&self, control: Control<'_>) -> Result<Vec<f64>> {
        self.matrix_as(control, |value| value)
    }

    /// The whole matrix `G`, row-major, each value stored as `store` makes it.
    pub fn matrix_as<T: Copy + Default + Send>(
        &self,
        control: Control<'_>,
        store: impl Fn(f64) -> T + Sync,
    ) -> Result<Vec<T>> {
        let n = self.len();
        let mut matrix = vec![T::default(); n * n];
        let rows_at_once = (TILE * TILE).div_ceil(n.max(1)).clamp(1, TILE);
        matrix.par_chunks_mut((rows_at_once * n).max(1)).enumerate().try_for_each_init(
            Vec::new,
            |values, (chunk, out)| {
                control.check()?;
                let from = chunk * rows_at_once;
                values.resize(out.len(), 0.0);
                self.block(self, from..from + out.len() / n, values);
                out.iter_mut().zip(values.iter()).for_each(|(out, value)| *out = store(*value));
                Ok(())
            },
        )?;
        Ok(matrix)
    }

    /// `Σ_j c_lj k(x_i, z_j)` for every row `x_i` of `left` and every column `l`, row-major: how kernel models score.
    pub fn expand(&self, left: &KernelRows<'_>, coefficients: &[Vec<f64>], control: Control<'_>) -> Result<Vec<f64>> {
        let (n, columns) = (self.len(), coefficients.len());
        let mut scores = vec![0.0; left.len() * columns];
        if n == 0 || columns == 0 {
            return Ok(scores);
        }
        let rows_at_once = (1024 * TILE).div_ceil(n).clamp(1, TILE);
        scores.par_chunks_mut(rows_at_once * columns).enumerate().try_for_each(|(chunk, out)| {
            control.check()?;
            let (from, rows) = (chunk * rows_at_once, out.len() / columns);
            let mut values = vec![0.0; rows * n];
            self.block(left, from..from + rows, &mut values);
            for (values, out) in values.chunks_exact(n).zip(out.chunks_exact_mut(columns)) {
                for (score, coefficients) in out.iter_mut().zip(coefficients) {
                    *score = linalg::dot(values, coefficients);
                }
            }
            Ok(())
        })?;
        Ok(scores)
    }
}

/// The chosen rows of a dense matrix as `f64`; borrowed where they are that already.
fn doubles<'b>(matrix: &'b Matrix<'_>, range: std::ops::Range<usize>, buffer: &'b mut Vec<f64>) -> &'b [f64] {
    fn slice<'c, T: Real>(x: &'c Dense<'_, T>, range: &std::ops::Range<usize>) -> &'c [T] {
        &x.values()[range.start * x.cols()..range.end * x.cols()]
    }
    match matrix {
        Matrix::DenseF64(x) => slice(x, &range),
        Matrix::DenseF32(x) => {
            buffer.clear();
            buffer.extend(slice(x, &range).iter().map(|&v| f64::from(v)));
            buffer
        }
        Matrix::SparseF32(_) | Matrix::SparseF64(_) => unreachable!("called for dense rows only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Csr;
    use crate::random::Random;

    fn naive(kernel: Kernel, x: &[f64], z: &[f64]) -> f64 {
        let dot: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
        let l2: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
        let l1: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
        match kernel {
            Kernel::Linear => dot,
            Kernel::Rbf { gamma } => (-gamma * l2).exp(),
            Kernel::Laplacian { gamma } => (-gamma * l1).exp(),
            Kernel::Poly { gamma, degree, coef0 } => (gamma * dot + coef0).powi(degree as i32),
            Kernel::Sigmoid { gamma, coef0 } => (gamma * dot + coef0).tanh(),
        }
    }

    #[test]
    fn dense_sparse_and_definition_agree() {
        let (m, d, mut random) = (300, 7, Random::new(3, 0));
        let values: Vec<f64> = (0..m * d).map(|_| if random.unit() < 0.5 { 0.0 } else { random.normal() }).collect();
        let (mut offsets, mut columns, mut stored) = (vec![0u64], Vec::new(), Vec::new());
        for row in values.chunks(d) {
            for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                columns.push(j as u32);
                stored.push(v);
            }
            offsets.push(stored.len() as u64);
        }
        let dense = Matrix::DenseF64(Dense::new(m, d, values.clone()).unwrap());
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns, stored).unwrap());
        let kernels = [
            Kernel::Linear,
            Kernel::Rbf { gamma: 0.7 },
            Kernel::Laplacian { gamma: 0.4 },
            Kernel::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
            Kernel::Sigmoid { gamma: 0.1, coef0: 0.2 },
        ];
        for kernel in kernels {
            let views = [KernelRows::new(kernel, &dense, 0.25), KernelRows::new(kernel, &sparse, 0.25)];
            let [a, b] = views.each_ref().map(|v| v.matrix(Control::default()).unwrap());
            for i in 0..m {
                assert!((views[0].diagonal(i) - a[i * m + i]).abs() < 1e-12);
                for j in 0..m {
                    let expected = naive(kernel, &values[i * d..(i + 1) * d], &values[j * d..(j + 1) * d]) + 0.25;
                    assert!((a[i * m + j] - expected).abs() < 1e-10 && (b[i * m + j] - expected).abs() < 1e-10);
                }
            }
            let c = vec![values[..m].to_vec()];
            let scores = views[1].expand(&views[0], &c, Control::default()).unwrap();
            let direct: f64 = (0..m).map(|j| a[5 * m + j] * c[0][j]).sum();
            assert!((scores[5] - direct).abs() < 1e-9);
        }
    }
}
