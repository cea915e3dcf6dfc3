//! The width of a kernel, settled on the rows.

use super::Gamma;
use crate::data::{Matrix, Rows};
use crate::kernel::Kernel;
use crate::with_rows;

/// The kernel with its `γ` settled on the (scaled) training rows, each counted `weights` times (once if `None`).
pub fn with_gamma(kernel: Kernel, gamma: Gamma, rows: &Matrix<'_>, weights: Option<&[f64]>) -> Kernel {
    if kernel == Kernel::Linear {
        return kernel;
    }
    let value = match gamma {
        Gamma::Value(value) => value,
        Gamma::Auto => 1.0 / rows.cols().max(1) as f64,
        Gamma::Scale => 1.0 / (rows.cols().max(1) as f64 * spread(rows, weights)),
    };
    with_width(kernel, value)
}

/// The `γ` of a kernel that has one.
pub(crate) fn gamma_of(kernel: Kernel) -> Option<f64> {
    match kernel {
        Kernel::Linear => None,
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => Some(gamma),
        Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => Some(gamma),
    }
}

/// The kernel with this `γ`.
pub(super) fn with_width(kernel: Kernel, gamma: f64) -> Kernel {
    match kernel {
        Kernel::Linear => Kernel::Linear,
        Kernel::Rbf { .. } => Kernel::Rbf { gamma },
        Kernel::Laplacian { .. } => Kernel::Laplacian { gamma },
        Kernel::Poly { degree, coef0, .. } => Kernel::Poly { gamma, degree, coef0 },
        Kernel::Sigmoid { coef0, .. } => Kernel::Sigmoid { gamma, coef0 },
    }
}

/// `Var(X)` over all entries, zeros included; 1 if they are all equal.
fn spread(rows: &Matrix<'_>, weights: Option<&[f64]>) -> f64 {
    let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for i in 0..rows.rows() {
        let (weight, mut row) = (weights.map_or(1.0, |weights| weights[i]), 0.0);
        with_rows!(rows, x => x.visit(i, |_, v| row += v));
        total += weight;
        sum += weight * row;
        squares += weight * with_rows!(rows, x => x.norm2(i));
    }
    let count = if rows.cols() > 0 { total * rows.cols() as f64 } else { 1.0 };
    let variance = squares / count - (sum / count).powi(2);
    // Values too large for their squares have no variance that is a number, which is not the same as none.
    if variance.is_nan() || variance > 1e-12 * squares / count { variance } else { 1.0 }
}
