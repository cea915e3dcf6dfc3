//! Conjugate gradients for symmetric positive definite systems that are never formed.

use crate::Result;
use crate::linalg;
use rayon::prelude::*;

/// How a run of [`conjugate_gradients`] ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgEnd {
    /// Products with the matrix.
    pub iterations: usize,
    /// `‖rhs − A x‖₂` as the recurrence has it.
    pub residual: f64,
    /// Whether the residual is within the tolerance.
    pub converged: bool,
}

/// Solves `A x = rhs` by preconditioned conjugate gradients (Hestenes & Stiefel 1952), starting from the given `x`.
///
/// `apply(v, out)` writes `A v`; it may fail, which is how a long product is interrupted. `precondition(r, out)` writes
/// `M⁻¹ r` for a symmetric positive definite `M ≈ A`. Stops once `‖rhs − A x‖₂ ≤ tol`, after `max_iter` products, or
/// when rounding errors hide any further progress.
pub fn conjugate_gradients(
    mut apply: impl FnMut(&[f64], &mut [f64]) -> Result<()>,
    mut precondition: impl FnMut(&[f64], &mut [f64]),
    rhs: &[f64],
    x: &mut [f64],
    tol: f64,
    max_iter: usize,
) -> Result<CgEnd> {
    let n = rhs.len();
    let (mut product, mut scaled) = (vec![0.0; n], vec![0.0; n]);
    if x.iter().any(|x| *x != 0.0) {
        apply(x, &mut product)?;
    }
    let mut residual: Vec<f64> = rhs.iter().zip(&product).map(|(b, a)| b - a).collect();
    let mut norm = dot(&residual, &residual).sqrt();
    if norm <= tol {
        return Ok(CgEnd { iterations: 1, residual: norm, converged: true });
    }
    precondition(&residual, &mut scaled);
    let mut direction = scaled.clone();
    let mut rho = dot(&residual, &scaled);
    for iteration in 2..=max_iter.max(1) {
        apply(&direction, &mut product)?;
        let curvature = dot(&direction, &product);
        // Zero or negative curvature, or a number that is none: the matrix is not positive definite to this precision.
        if !(curvature > 0.0 && rho > 0.0) {
            return Ok(CgEnd { iterations: iteration, residual: norm, converged: norm <= tol });
        }
        let step = rho / curvature;
        axpy(step, &direction, x);
        axpy(-step, &product, &mut residual);
        norm = dot(&residual, &residual).sqrt();
        if norm <= tol {
            return Ok(CgEnd { iterations: iteration, residual: norm, converged: true });
        }
        precondition(&residual, &mut scaled);
        let next = dot(&residual, &scaled);
        let beta = next / rho;
        rho = next;
        let chunks = direction.par_chunks_mut(CHUNK).zip(scaled.par_chunks(CHUNK));
        chunks.for_each(|(p, z)| p.iter_mut().zip(z).for_each(|(p, z)| *p = z + beta * *p));
    }
    Ok(CgEnd { iterations: max_iter, residual: norm, converged: false })
}

/// Vectors are cut into pieces of this length for the threads, and sums added up in their order.
const CHUNK: usize = 1 << 15;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() <= CHUNK {
        return linalg::dot(a, b);
    }
    let parts: Vec<f64> = a.par_chunks(CHUNK).zip(b.par_chunks(CHUNK)).map(|(a, b)| linalg::dot(a, b)).collect();
    parts.iter().sum()
}

fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| linalg::axpy(a, x, y));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A badly scaled tridiagonal system with a known solution.
    #[test]
    fn solves_with_and_without_a_preconditioner() {
        let n = 200;
        let mut random = Random::new(5, 0);
        let diagonal: Vec<f64> = (0..n).map(|i| 2.1 * 1.03f64.powi(i)).collect();
        let apply = |v: &[f64], out: &mut [f64]| {
            for (i, out) in out.iter_mut().enumerate() {
                let side = v.get(i + 1).unwrap_or(&0.0) + if i > 0 { v[i - 1] } else { 0.0 };
                *out = diagonal[i] * v[i] - side;
            }
            Ok(())
        };
        let truth: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let mut rhs = vec![0.0; n as usize];
        apply(&truth, &mut rhs).unwrap();
        let mut counts = Vec::new();
        for jacobi in [false, true] {
            let mut x = vec![0.0; n as usize];
            let scale = |r: &[f64], z: &mut [f64]| {
                for ((z, r), d) in z.iter_mut().zip(r).zip(&diagonal) {
                    *z = if jacobi { r / d } else { *r };
                }
            };
            let end = conjugate_gradients(apply, scale, &rhs, &mut x, 1e-9, 10_000).unwrap();
            assert!(end.converged, "{end:?}");
            assert!(x.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-7));
            let again = conjugate_gradients(apply, scale, &rhs, &mut x, 1e-8, 10_000).unwrap();
            assert_eq!(again.iterations, 1, "a warm start at the solution has nothing to do");
            counts.push(end.iterations);
        }
        assert!(counts[1] * 2 < counts[0], "{counts:?}");
    }
}
