//! Conjugate gradients for symmetric positive definite systems that are never formed.

use super::{axpy, dot, fold};
use crate::Result;
use rayon::prelude::*;

/// When a solution is good enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Enough {
    /// `‖rhs − A x‖₂` is at most this part of `‖rhs‖₂`.
    Residual(f64),
    /// `√(rᵀM⁻¹r)` of the residual `r` is at most this part of what it was at the start: where the rows of `A` are of very
    /// unlike size, the preconditioner `M` makes them comparable.
    Preconditioned(f64),
}

/// How a run of [`conjugate_gradients`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgEnd {
    /// Products with the matrix.
    pub products: usize,
    /// Whether every column is good enough.
    pub converged: bool,
}

/// One right-hand side on its way.
struct RightHandSide {
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// `rᵀM⁻¹r`
    rho: f64,
    /// What ends it: a bound on `‖r‖₂²` or on `rᵀM⁻¹r`.
    enough: f64,
    done: bool,
    converged: bool,
}

/// Solves `A x = rhs` by preconditioned conjugate gradients (Hestenes & Stiefel 1952), starting from the given `x`, for one or
/// several right-hand sides of `n` numbers each, column after column: their products with `A` are made together.
///
/// `apply(v, out)` writes `A` times each column of `v`; it may fail, which is how a long product is interrupted.
/// `precondition(r, out)` writes `M⁻¹ r` for one column and a symmetric positive definite `M ≈ A`. Ends when every column is
/// good enough, after `limit` products, or when rounding errors hide any further progress.
pub fn conjugate_gradients(
    n: usize,
    mut apply: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    mut precondition: impl FnMut(&[f64], &mut [f64]),
    rhs: &[f64],
    x: &mut [f64],
    enough: Enough,
    limit: usize,
) -> Result<CgEnd> {
    let mut products = 0;
    let mut product = vec![0.0; rhs.len()];
    if x.iter().any(|x| *x != 0.0) {
        apply(x, &mut product)?;
        products += 1;
    }
    let mut scaled = vec![0.0; n];
    let mut columns: Vec<RightHandSide> = Vec::new();
    for (rhs, product) in rhs.chunks_exact(n.max(1)).zip(product.chunks_exact(n.max(1))) {
        let residual: Vec<f64> = rhs.iter().zip(product).map(|(b, a)| b - a).collect();
        precondition(&residual, &mut scaled);
        let rho = long_dot(&residual, &scaled);
        let enough = match enough {
            Enough::Residual(part) => part * part * long_dot(rhs, rhs),
            Enough::Preconditioned(part) => part * part * rho,
        };
        columns.push(RightHandSide { residual, direction: scaled.clone(), rho, enough, done: false, converged: false });
    }
    let mut directions = vec![0.0; rhs.len()];
    loop {
        for column in columns.iter_mut().filter(|column| !column.done) {
            let size = match enough {
                Enough::Residual(_) => long_dot(&column.residual, &column.residual),
                Enough::Preconditioned(_) => column.rho,
            };
            column.converged = size <= column.enough;
            // What is not above zero is rounding, or no number.
            column.done = column.converged || column.rho <= 0.0 || column.rho.is_nan();
        }
        if products >= limit || columns.iter().all(|column| column.done) {
            return Ok(CgEnd { products, converged: columns.iter().all(|column| column.converged) });
        }
        for (out, column) in directions.chunks_exact_mut(n).zip(&columns) {
            if column.done { out.fill(0.0) } else { out.copy_from_slice(&column.direction) }
        }
        apply(&directions, &mut product)?;
        products += 1;
        for ((column, product), x) in columns.iter_mut().zip(product.chunks_exact(n)).zip(x.chunks_exact_mut(n)) {
            if column.done {
                continue;
            }
            let curvature = long_dot(&column.direction, product);
            // Zero or negative curvature, or a number that is none: the matrix is not positive definite to this precision.
            if curvature <= 0.0 || curvature.is_nan() {
                column.done = true;
                continue;
            }
            let step = column.rho / curvature;
            long_axpy(step, &column.direction, x);
            long_axpy(-step, product, &mut column.residual);
            precondition(&column.residual, &mut scaled);
            let next = long_dot(&column.residual, &scaled);
            let beta = next / column.rho;
            column.rho = next;
            let chunks = column.direction.par_chunks_mut(CHUNK).zip(scaled.par_chunks(CHUNK));
            chunks.for_each(|(p, z)| p.iter_mut().zip(z).for_each(|(p, z)| *p = z + beta * *p));
        }
    }
}

/// Vectors are cut into pieces of this length for the threads, and sums added up in their order: 256 KiB, which stay in a core's own
/// cache and take far longer than a task takes to start.
const CHUNK: usize = 1 << 15;

fn long_dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() <= CHUNK {
        return dot(a, b);
    }
    fold(a.len(), a.len().div_ceil(CHUNK), |range| dot(&a[range.clone()], &b[range])).iter().sum()
}

fn long_axpy(a: f64, x: &[f64], y: &mut [f64]) {
    y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| axpy(a, x, y));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A badly scaled tridiagonal system with a known solution, alone and beside another.
    #[test]
    fn solves_with_and_without_a_preconditioner() {
        let n = 200;
        let mut random = Random::new(5, 0);
        let diagonal: Vec<f64> = (0..n as i32).map(|i| 2.1 * 1.03f64.powi(i)).collect();
        let apply = |v: &[f64], out: &mut [f64]| {
            for (v, out) in v.chunks_exact(n).zip(out.chunks_exact_mut(n)) {
                for (i, out) in out.iter_mut().enumerate() {
                    let side = v.get(i + 1).unwrap_or(&0.0) + if i > 0 { v[i - 1] } else { 0.0 };
                    *out = diagonal[i] * v[i] - side;
                }
            }
            Ok(())
        };
        let truth: Vec<f64> = (0..2 * n).map(|_| random.normal()).collect();
        let mut rhs = vec![0.0; 2 * n];
        apply(&truth, &mut rhs).unwrap();
        let mut counts = Vec::new();
        for jacobi in [false, true] {
            let scale = |r: &[f64], z: &mut [f64]| {
                for ((z, r), d) in z.iter_mut().zip(r).zip(&diagonal) {
                    *z = if jacobi { r / d } else { *r };
                }
            };
            for enough in [Enough::Residual(1e-12), Enough::Preconditioned(1e-12)] {
                let (mut alone, mut both) = (vec![0.0; n], vec![0.0; 2 * n]);
                let end = conjugate_gradients(n, apply, scale, &rhs[..n], &mut alone, enough, 10_000).unwrap();
                assert!(end.converged, "{end:?}");
                conjugate_gradients(n, apply, scale, &rhs, &mut both, enough, 10_000).unwrap();
                assert!(both.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-7));
                assert_eq!(alone, both[..n], "a column does not depend on its neighbours");
                if enough == Enough::Residual(1e-12) {
                    let loose = Enough::Residual(1e-10);
                    let again = conjugate_gradients(n, apply, scale, &rhs, &mut both, loose, 10_000).unwrap();
                    assert_eq!(again.products, 1, "a warm start at the solution has nothing to do");
                    counts.push(end.products);
                }
            }
        }
        assert!(counts[1] * 2 < counts[0], "{counts:?}");
    }
}
