//! Dense linear algebra: the only place that knows faer. Symmetric matrices are `n × n` slices of which the lower
//! triangle (column-major) counts.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};

/// How finely faer may split its work. A constant, not the number of threads: the split decides the order of sums,
/// and results must not depend on how many threads there are.
fn parallel() -> Par {
    Par::rayon(8)
}

/// A symmetric matrix that should be positive definite is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPositive {
    /// The first pivot that failed.
    pub pivot: usize,
}

/// `A = L Lᵀ`
pub struct Cholesky {
    n: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors the `n × n` matrix in place.
    pub fn new(mut matrix: Vec<f64>, n: usize) -> Result<Self, NotPositive> {
        assert_eq!(matrix.len(), n * n, "a square matrix");
        let mut memory =
            MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(n, parallel(), Default::default()));
        llt::factor::cholesky_in_place(
            MatMut::from_column_major_slice_mut(&mut matrix, n, n),
            Default::default(),
            parallel(),
            MemStack::new(&mut memory),
            Default::default(),
        )
        .map_err(|faer::linalg::cholesky::llt::factor::LltError::NonPositivePivot { index }| NotPositive {
            pivot: index,
        })?;
        if matrix.iter().step_by(n + 1).any(|pivot| !pivot.is_finite()) {
            return Err(NotPositive { pivot: 0 });
        }
        Ok(Self { n, lower: matrix })
    }

    fn l(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.lower, self.n, self.n)
    }

    /// Replaces each column of `rhs` (column-major, `n` rows) by `A⁻¹` times it.
    pub fn solve(&self, rhs: &mut [f64]) {
        let columns = rhs.len().checked_div(self.n).unwrap_or(0);
        let mut rhs = MatMut::from_column_major_slice_mut(rhs, self.n, columns);
        solve_lower_triangular_in_place(self.l(), rhs.as_mut(), parallel());
        solve_upper_triangular_in_place(self.l().transpose(), rhs, parallel());
    }

    /// Replaces each column of `rhs` by `L⁻¹` times it, so that `‖L⁻¹x‖² = xᵀA⁻¹x`.
    pub fn half_solve(&self, rhs: &mut [f64], par: bool) {
        let columns = rhs.len().checked_div(self.n).unwrap_or(0);
        let rhs = MatMut::from_column_major_slice_mut(rhs, self.n, columns);
        solve_lower_triangular_in_place(self.l(), rhs, if par { parallel() } else { Par::Seq });
    }

    /// The diagonal of `A⁻¹`.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let mut inverse = vec![0.0; self.n * self.n];
        invert_lower_triangular(
            MatMut::from_column_major_slice_mut(&mut inverse, self.n, self.n),
            self.l(),
            parallel(),
        );
        // (A⁻¹)_jj = Σ_i (L⁻¹)_ij²: the squared norm of column j.
        inverse.chunks_exact(self.n.max(1)).map(|column| column.iter().map(|v| v * v).sum()).collect()
    }
}

/// `out += XᵀX` (lower triangle) for `X` of `rows × d`, row-major. On one thread: callers run blocks in parallel.
pub fn add_gram(out: &mut [f64], x: &[f64], d: usize) {
    let rows = x.len() / d;
    let x = MatRef::from_row_major_slice(x, rows, d);
    triangular_matmul(
        MatMut::from_column_major_slice_mut(out, d, d),
        BlockStructure::TriangularLower,
        Accum::Add,
        x.transpose(),
        BlockStructure::Rectangular,
        x,
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
}

/// `out = A Bᵀ` for row-major `A` (`a_rows × d`) and `B` (`b_rows × d`); row `i` of `out` starts at `i · stride`.
pub fn products(out: &mut [f64], stride: usize, a: &[f64], b: &[f64], d: usize) {
    let (a_rows, b_rows) = (a.len() / d, b.len() / d);
    // faer's row-major view with a stride swaps its strides and writes out of bounds, so `outᵀ = B Aᵀ` it is.
    matmul(
        MatMut::from_column_major_slice_with_stride_mut(out, b_rows, a_rows, stride),
        Accum::Replace,
        MatRef::from_row_major_slice(b, b_rows, d),
        MatRef::from_row_major_slice(a, a_rows, d).transpose(),
        1.0,
        Par::Seq,
    );
}

/// `a · b`
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (ac, bc) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 = ac.remainder().iter().zip(bc.remainder()).map(|(x, y)| x * y).sum();
    let mut sums = [0.0; LANES];
    for (x, y) in ac.zip(bc) {
        for l in 0..LANES {
            sums[l] += x[l] * y[l];
        }
    }
    sums.iter().sum::<f64>() + tail
}

/// `y += a x`
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn cholesky_solves_and_inverts() {
        let (n, mut random) = (40, Random::new(1, 0));
        let x: Vec<f64> = (0..n * n).map(|_| random.normal()).collect();
        let mut a = vec![0.0; n * n];
        add_gram(&mut a, &x, n);
        (0..n).for_each(|i| a[i * n + i] += 1.0);
        let full = |i: usize, j: usize| if i >= j { a[j * n + i] } else { a[i * n + j] };
        let b: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let factor = Cholesky::new(a.clone(), n).unwrap();
        let mut solution = b.clone();
        factor.solve(&mut solution);
        for i in 0..n {
            let back: f64 = (0..n).map(|j| full(i, j) * solution[j]).sum();
            assert!((back - b[i]).abs() < 1e-9);
        }
        let mut unit = vec![0.0; n];
        unit[7] = 1.0;
        factor.solve(&mut unit);
        assert!((unit[7] - factor.inverse_diagonal()[7]).abs() < 1e-12);
        assert!(Cholesky::new(vec![-1.0], 1).is_err());
    }
}
