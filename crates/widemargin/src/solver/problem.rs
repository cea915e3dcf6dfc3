//! The one convex problem behind the family, and the certificate of a solution.

use crate::loss::MarginLoss;
use crate::machine::Bias;

/// `min_{w,b} ½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`, `γ_i = y_i (w·φ(x_i) + b)`, `γ̄ = Σ s_i γ_i / Σ s_i`.
///
/// `κ > 0` is LDM's variance term (`κ = 2 λ1 / m`); all other machines have `κ = 0`.
///
/// Its dual, with `a_i = u_i + v_i`, `v_i` the part of `φ` and `u_i` the part of the variance:
/// `max −½‖Σ a_i y_i φ(x_i)‖² − Σ s_i φ*(−v_i / s_i) − Σ u_i² / (4 κ s_i)` subject to `Σ u_i = 0`, `−v_i / s_i` a slope
/// of `φ`, and `Σ a_i y_i = 0` if the intercept is free.
#[derive(Clone, Copy)]
pub struct Problem<'a> {
    /// `y_i ∈ {−1, +1}`
    pub y: &'a [f64],
    /// `s_i > 0`
    pub weights: &'a [f64],
    /// `φ`
    pub loss: MarginLoss,
    /// `κ`
    pub variance: f64,
    /// How `b` is treated.
    pub bias: Bias,
}

/// How far from the optimum a point can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// Primal objective.
    pub primal: f64,
    /// Dual objective.
    pub dual: f64,
}

impl Certificate {
    /// `(primal − dual) / max(|primal|, |dual|)`; infinite without a dual.
    pub fn gap(&self) -> f64 {
        if self.dual == f64::NEG_INFINITY {
            return f64::INFINITY;
        }
        let scale = self.primal.abs().max(self.dual.abs());
        if scale > 0.0 { (self.primal - self.dual) / scale } else { 0.0 }
    }
}

impl Problem<'_> {
    /// `Σ s_i`
    pub fn total_weight(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// `γ̄`
    pub fn mean(&self, margins: &[f64]) -> f64 {
        let sum: f64 = margins.iter().zip(self.weights).map(|(g, s)| g * s).sum();
        sum / self.total_weight()
    }

    /// `κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`
    pub fn risk(&self, margins: &[f64]) -> f64 {
        let mean = if self.variance > 0.0 { self.mean(margins) } else { 0.0 };
        let row = |(g, s): (&f64, &f64)| s * (self.variance * (g - mean).powi(2) + self.loss.value(*g));
        margins.iter().zip(self.weights).map(row).sum()
    }

    /// The part `u_i` of the dual variables that belongs to the variance; their sum is zero.
    pub fn variance_part(&self, margins: &[f64]) -> Vec<f64> {
        if self.variance == 0.0 {
            return vec![0.0; margins.len()];
        }
        let mean = self.mean(margins);
        margins.iter().zip(self.weights).map(|(g, s)| -2.0 * self.variance * s * (g - mean)).collect()
    }

    /// Moves `v` (the part of `φ`) into its domain and, for a free intercept, onto `Σ (u_i + v_i) y_i = 0`.
    pub fn make_feasible(&self, u: &[f64], v: &mut [f64]) {
        let (low, high) = self.loss.slopes();
        let clamp = |v: f64, s: f64| v.clamp(-s * high, -s * low);
        v.iter_mut().zip(self.weights).for_each(|(v, s)| *v = clamp(*v, *s));
        if self.bias != Bias::Free {
            return;
        }
        // Rows at an end of their domain, and rows without support, stay so as long as the others can restore the balance.
        let inside: Vec<bool> =
            v.iter().zip(self.weights).map(|(v, s)| *v != 0.0 && *v > -s * high && *v < -s * low).collect();
        if !self.balance(u, v, |i| inside[i]) {
            self.balance(u, v, |_| true);
        }
    }

    /// Finds `t` such that `v_i − t s_i y_i`, held in the domain, balances over the rows that may move; says whether it could.
    fn balance(&self, u: &[f64], v: &mut [f64], may_move: impl Fn(usize) -> bool) -> bool {
        let (low, high) = self.loss.slopes();
        let moved = |v: &[f64], i: usize, t: f64| {
            let s = self.weights[i];
            if may_move(i) { (v[i] - t * s * self.y[i]).clamp(-s * high, -s * low) } else { v[i] }
        };
        let excess = |v: &[f64], t: f64| -> f64 { (0..v.len()).map(|i| (u[i] + moved(v, i, t)) * self.y[i]).sum() };
        // The excess falls as t grows; bracket its zero, then halve.
        let at_zero = excess(v, 0.0);
        if at_zero == 0.0 {
            return true;
        }
        let direction = at_zero.signum();
        let mut far = at_zero.abs() / self.total_weight();
        let mut tries = 0;
        while excess(v, direction * far) * direction > 0.0 {
            far *= 2.0;
            tries += 1;
            if tries > 100 {
                return false;
            }
        }
        let mut near = 0.0;
        for _ in 0..200 {
            let middle = 0.5 * (near + far);
            if middle <= near || middle >= far {
                break;
            }
            if excess(v, direction * middle) * direction > 0.0 { near = middle } else { far = middle }
        }
        let result: Vec<f64> = (0..v.len()).map(|i| moved(v, i, direction * far)).collect();
        v.copy_from_slice(&result);
        true
    }

    /// `Σ s_i (φ(γ_i) + φ*(−v_i/s_i)) + v_i γ_i ≥ 0`: what the rows add to the duality gap.
    ///
    /// The whole gap is this plus `½‖w − Σ a_i y_i φ(x_i)‖²`; summed in this way it keeps its digits when it is
    /// small against the objectives.
    pub fn row_gap(&self, margins: &[f64], v: &[f64]) -> f64 {
        let row = |i: usize| {
            let s = self.weights[i];
            let gap = s * (self.loss.value(margins[i]) + self.loss.conjugate(-v[i] / s)) + v[i] * margins[i];
            gap.max(0.0)
        };
        (0..v.len()).map(row).sum()
    }
}
