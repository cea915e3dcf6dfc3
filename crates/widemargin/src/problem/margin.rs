//! The one convex problem behind the family, and the certificate of a solution.

use super::{Bias, not_negative};
use crate::linalg::{falling_zero, ordered_sum};
use crate::loss::MarginLoss;

/// `|Σ a_i y_i|` of this part of `Σ |a_i|` is rounding: some hundred units in the last place.
const BALANCED: f64 = 1e-13;
/// A dual variable this close to an end of its domain, in parts of that end, was on its way there.
const NEAR_THE_END: f64 = 1e-3;
/// A slope of the objective along `b` of this part of what rows pull is none: the objective is flat there, and feels its square.
const FLAT: f64 = 1e-3;
/// How far `b` is sought at first, in units of margins, which are drawn to 1; the search then goes four times as far each time.
const FIRST_STEP: f64 = 0.01;

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
    /// `y_i` and `s_i` of some rows.
    pub fn of_rows(&self, chosen: &[usize]) -> (Vec<f64>, Vec<f64>) {
        chosen.iter().map(|&i| (self.y[i], self.weights[i])).unzip()
    }

    /// The same, with weights that together are those of all rows.
    pub fn of_rows_for_all(&self, chosen: &[usize]) -> (Vec<f64>, Vec<f64>) {
        let (y, mut weights) = self.of_rows(chosen);
        let factor = self.total_weight() / weights.iter().sum::<f64>();
        weights.iter_mut().for_each(|s| *s *= factor);
        (y, weights)
    }

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

    /// Moves `v` (the part of `φ`) into its domain and, for a free intercept, onto `Σ (u_i + v_i) y_i = 0`; where the rows inside
    /// their domain cannot, the variance's `u` does.
    pub fn make_feasible(&self, u: &mut [f64], v: &mut [f64]) {
        self.clamp(v);
        if self.bias != Bias::Free || self.balance(u, v, 0.0, 0.0) {
            return;
        }
        if self.variance > 0.0 {
            self.balance_variance(u, v);
        } else {
            self.balance_by(u, v, 0.0, |_| true);
        }
    }

    /// Moves `v` into its domain and near the balance that belongs to this intercept: zero if it is free, `b / B²` if it is
    /// regularised. For dual variables as a solver leaves them: those near an end of their domain stay there.
    pub fn settle(&self, intercept: f64, margins: &[f64], u: &[f64], v: &mut [f64]) {
        self.clamp(v);
        let wanted = match self.bias {
            Bias::None => return,
            Bias::Free => 0.0,
            Bias::Feature(value) => intercept / (value * value),
        };
        if self.balance(u, v, wanted, NEAR_THE_END) || self.bias != Bias::Free {
            return;
        }
        if self.variance == 0.0 {
            self.balance_by(u, v, wanted, |_| true);
            return;
        }
        // All rows can, or the variance's part of the dual variables: whichever adds less to the gap.
        let cost = |u: &[f64], v: &[f64]| {
            let a: Vec<f64> = u.iter().zip(v).map(|(u, v)| u + v).collect();
            self.row_gap(margins, v) + self.variance_gap(margins, &a, v)
        };
        let (mut other_u, mut other_v) = (u.to_vec(), v.to_vec());
        self.balance_variance(&mut other_u, v);
        if self.balance_by(u, &mut other_v, wanted, |_| true) && cost(u, &other_v) < cost(&other_u, v) {
            v.copy_from_slice(&other_v);
        }
    }

    /// Moves `v` into its domain.
    fn clamp(&self, v: &mut [f64]) {
        let (low, high) = self.loss.slopes();
        v.iter_mut().zip(self.weights).for_each(|(v, s)| *v = v.clamp(-s * high, -s * low));
    }

    /// Moves the rows inside their domain until `Σ (u_i + v_i) y_i` is as wanted; says whether they could. Rows within this part
    /// of an end of their domain, and rows without support, stay as they are.
    fn balance(&self, u: &[f64], v: &mut [f64], wanted: f64, near: f64) -> bool {
        let (low, high) = self.loss.slopes();
        let apart = |v: f64, end: f64| !end.is_finite() || (v - end).abs() > near * end.abs();
        let inside = |(v, s): (&f64, &f64)| *v != 0.0 && apart(*v, -s * high) && apart(*v, -s * low);
        let inside: Vec<bool> = v.iter().zip(self.weights).map(inside).collect();
        self.balance_by(u, v, wanted, |i| inside[i])
    }

    /// How far `b` has to go from these margins, which were computed with `intercept`, to where the objective is least while
    /// `w` stands still; roughly, as the objective is flat there.
    pub fn intercept_step(&self, margins: &[f64], intercept: f64) -> f64 {
        if self.bias == Bias::None {
            return 0.0;
        }
        let ridge = self.bias.ridge();
        let (mean, mean_y) = if self.variance > 0.0 { (self.mean(margins), self.mean(self.y)) } else { (0.0, 0.0) };
        let falls = |step: f64| {
            let row = |i: usize| {
                let (y, margin) = (self.y[i], margins[i] + step * self.y[i]);
                let centred = (margins[i] - mean) + step * (y - mean_y);
                self.weights[i] * (self.loss.slope(margin) * y + 2.0 * self.variance * centred * (y - mean_y))
            };
            -(ridge * (intercept + step) + ordered_sum(margins.len(), row))
        };
        let size = ordered_sum(margins.len(), |i| self.weights[i] * self.loss.slope(margins[i]).abs());
        falling_zero(falls, 0.0, FIRST_STEP, FLAT * size)
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

    /// Finds `t` such that `v_i − t s_i y_i`, held in the domain, gives the wanted sum by the rows that may move; says whether
    /// it could.
    fn balance_by(&self, u: &[f64], v: &mut [f64], wanted: f64, may_move: impl Fn(usize) -> bool + Sync) -> bool {
        let (low, high) = self.loss.slopes();
        let start = v.to_vec();
        let moved = |i: usize, t: f64| {
            let s = self.weights[i];
            if may_move(i) { (start[i] - t * s * self.y[i]).clamp(-s * high, -s * low) } else { start[i] }
        };
        let excess = |t: f64| ordered_sum(u.len(), |i| (u[i] + moved(i, t)) * self.y[i]) - wanted;
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

    /// Whether the loss of every row can have the slope `−v_i / s_i`, as [`row_gap`](Self::row_gap) takes for granted.
    pub fn are_slopes(&self, v: &[f64]) -> bool {
        let (low, high) = self.loss.slopes();
        v.iter().zip(self.weights).all(|(v, s)| (low..=high).contains(&(-v / s)))
    }
}
