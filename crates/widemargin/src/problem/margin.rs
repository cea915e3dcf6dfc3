//! The one convex problem behind the family, and the certificate of a solution.

use super::{Bias, not_negative};
use crate::linalg::{falling_zero, ordered_sum};
use crate::loss::MarginLoss;

/// `|Σ a_i y_i|` of this part of `Σ |a_i|` is rounding.
const BALANCED: f64 = 1e-13;

/// `min_{w,b} ½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`, `γ_i = y_i (w·φ(x_i) + b)`, `γ̄ = Σ s_i γ_i / Σ s_i`.
///
/// `κ > 0` is LDM's variance term (`κ = 2 λ1 / m`); all other machines have `κ = 0`.
///
/// Its dual, with `a_i = u_i + v_i`, `v_i` the part of `φ` and `u_i` the part of the variance:
/// `max −½‖Σ a_i y_i φ(x_i)‖² − Σ s_i φ*(−v_i / s_i) − Σ u_i² / (4 κ s_i)` subject to `Σ u_i = 0`, `−v_i / s_i` a slope
/// of `φ`, and `Σ a_i y_i = 0` if the intercept is free.
#[derive(Clone, Copy)]
pub struct MarginProblem<'a> {
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

impl MarginProblem<'_> {
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

    /// `v_i = a_i − u_i`: the part of the dual variables that belongs to the loss.
    pub fn loss_part(&self, a: &[f64], margins: &[f64]) -> Vec<f64> {
        a.iter().zip(self.variance_part(margins)).map(|(a, u)| a - u).collect()
    }

    /// The size of a slope of the loss: its kinks, or what pulls at a margin of zero. Dual variables are this large.
    pub fn height(&self) -> f64 {
        let (low, high) = self.loss.slopes();
        let ends = [low, high].into_iter().filter(|s| s.is_finite()).fold(0.0f64, |a, b| a.max(b.abs()));
        // Slopes without bound: take that where margins start.
        if ends > 0.0 { ends } else { self.loss.slope(0.0).abs().max(f64::MIN_POSITIVE) }
    }

    /// Moves `v` (the part of `φ`) into its domain and, for a free intercept, onto `Σ (u_i + v_i) y_i = 0`; where the rows with
    /// room cannot, the variance's `u` does.
    pub fn make_feasible(&self, u: &mut [f64], v: &mut [f64]) {
        let (low, high) = self.loss.slopes();
        let clamp = |v: f64, s: f64| v.clamp(-s * high, -s * low);
        v.iter_mut().zip(self.weights).for_each(|(v, s)| *v = clamp(*v, *s));
        if self.bias != Bias::Free {
            return;
        }
        // Rows at an end of their domain, and rows without support, stay so as long as the others can restore the balance.
        let inside: Vec<bool> =
            v.iter().zip(self.weights).map(|(v, s)| *v != 0.0 && *v > -s * high && *v < -s * low).collect();
        if self.balance(u, v, |i| inside[i]) {
            return;
        }
        if self.variance > 0.0 {
            self.balance_variance(u, v);
        } else {
            self.balance(u, v, |_| true);
        }
    }

    /// Moves `u` along `s_i (y_i − ȳ)`, which keeps `Σ u_i = 0`, until `Σ (u_i + v_i) y_i = 0`.
    fn balance_variance(&self, u: &mut [f64], v: &[f64]) {
        let mean = self.mean(self.y);
        for _ in 0..3 {
            let excess = ordered_sum(v.len(), |i| (u[i] + v[i]) * self.y[i]);
            let step = excess / (self.total_weight() * (1.0 - mean * mean));
            for (i, u) in u.iter_mut().enumerate() {
                *u -= step * self.weights[i] * (self.y[i] - mean);
            }
        }
    }

    /// Whether the objective falls without end as a free intercept runs away: no dual variables of the loss balance then.
    pub fn is_unbounded(&self) -> bool {
        if self.bias != Bias::Free || self.variance > 0.0 {
            return false;
        }
        let (low, high) = self.loss.slopes();
        let side =
            |sign: f64| -> f64 { self.weights.iter().zip(self.y).filter(|(_, y)| **y == sign).map(|(s, _)| s).sum() };
        // `Σ v_i` over one class lies between these ends, and must be the same over both.
        let ends = |total: f64| (total * -high, total * -low);
        let ((a, b), (c, d)) = (ends(side(1.0)), ends(side(-1.0)));
        a > d || c > b
    }

    /// Whether `Σ a_i y_i = 0` up to rounding, if the intercept is free.
    pub fn is_feasible(&self, a: &[f64]) -> bool {
        let sum = ordered_sum(a.len(), |i| a[i] * self.y[i]);
        let size = ordered_sum(a.len(), |i| a[i].abs());
        self.bias != Bias::Free || sum.abs() <= BALANCED * size
    }

    /// `κ Σ s_i (γ_i − γ̄)² + Σ u_i² / (4 κ s_i) + Σ u_i γ_i ≥ 0`, `u = a − v`: what the variance adds to the duality gap. Zero
    /// if `u` is [`variance_part`](Self::variance_part) of these margins.
    pub fn variance_gap(&self, margins: &[f64], a: &[f64], v: &[f64]) -> f64 {
        if self.variance == 0.0 {
            return 0.0;
        }
        let mean = self.mean(margins);
        let row = |i: usize| {
            let pull = 2.0 * self.variance * self.weights[i];
            (a[i] - v[i] + pull * (margins[i] - mean)).powi(2) / (2.0 * pull)
        };
        (0..a.len()).map(row).sum()
    }

    /// Finds `t` such that `v_i − t s_i y_i`, held in the domain, balances over the rows that may move; says whether it could.
    fn balance(&self, u: &[f64], v: &mut [f64], may_move: impl Fn(usize) -> bool + Sync) -> bool {
        let (low, high) = self.loss.slopes();
        let start = v.to_vec();
        let moved = |i: usize, t: f64| {
            let s = self.weights[i];
            if may_move(i) { (start[i] - t * s * self.y[i]).clamp(-s * high, -s * low) } else { start[i] }
        };
        let excess = |t: f64| ordered_sum(u.len(), |i| (u[i] + moved(i, t)) * self.y[i]);
        let size = ordered_sum(u.len(), |i| u[i].abs() + start[i].abs());
        let movable = ordered_sum(u.len(), |i| if may_move(i) { self.weights[i] } else { 0.0 });
        let enough = f64::EPSILON * size;
        // While no row meets an end of its domain, the first step is the root.
        let root = falling_zero(excess, 0.0, excess(0.0).abs() / movable, enough);
        v.iter_mut().enumerate().for_each(|(i, v)| *v = moved(i, root));
        if excess(root).abs() <= BALANCED * size {
            return true;
        }
        v.copy_from_slice(&start);
        false
    }

    /// `Σ s_i (φ(γ_i) + φ*(−v_i/s_i)) + v_i γ_i ≥ 0`: what the rows add to the duality gap.
    ///
    /// The whole gap is this plus `½‖w − Σ a_i y_i φ(x_i)‖²`; summed in this way it keeps its digits when it is
    /// small against the objectives.
    pub fn row_gap(&self, margins: &[f64], v: &[f64]) -> f64 {
        let row = |i: usize| {
            let s = self.weights[i];
            let gap = s * (self.loss.value(margins[i]) + self.loss.conjugate(-v[i] / s)) + v[i] * margins[i];
            not_negative(gap)
        };
        (0..v.len()).map(row).sum()
    }
}
