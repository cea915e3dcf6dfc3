//! One two-class problem of the family:
//!
//! ```text
//! P = ½ρ‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i),   γ_i = y_i (w·φ(x_i) + b)
//! D = −‖Σ a_i y_i φ(x_i)‖²/(2ρ) − Σ s_i φ*(−v_i/s_i) − Σ u_i²/(4κ s_i),   a = u + v
//! ```
//!
//! subject to `Σ u_i = 0`, `−v_i/s_i` a slope of `φ`, and `Σ a_i y_i = 0` if the intercept is free. With
//! `u_i = −2κ s_i (γ_i − γ̄)` the variance drops out of the difference, and
//! `P − D = ½ρ‖w − Σ a_i y_i φ(x_i)/ρ‖² + Σ [s_i (φ(γ_i) + φ*(−v_i/s_i)) + v_i γ_i]`, a sum of terms that are not negative.

use super::space::{EPS, Rounded};
use super::sum::sum;
use crate::machine::StatedForm;

/// `Σ a_i y_i` counts as zero up to this part of `Σ |a_i|`.
pub const BALANCED: f64 = 4.0 * EPS;

/// The rows of a problem: one number each.
pub struct CheckedProblem {
    /// Which rows of the space they are.
    pub rows: Vec<usize>,
    /// `y_i`
    pub y: Vec<f64>,
    /// `s_i`
    pub s: Vec<f64>,
    /// `φ`, `κ`, `ρ`
    pub form: StatedForm,
    /// Whether `Σ a_i y_i = 0` must hold.
    pub free: bool,
}

/// Where the primal point puts the rows.
pub struct Primal {
    /// `γ_i`, each with what rounding may have done to it.
    pub margins: Vec<Rounded>,
    /// `κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`
    pub risk: Rounded,
    /// `u_i`
    u: Vec<f64>,
    /// What was added to `−2κ s_i (γ_i − γ̄)` to balance a free intercept: `shift · s_i (y_i − ȳ)`.
    shift: f64,
}

impl CheckedProblem {
    /// The primal point of these scores and intercept.
    pub fn primal(&self, scores: &[Rounded], b: f64) -> Primal {
        let margin = |(&i, y): (&usize, &f64)| Rounded {
            value: y * (scores[i].value + b),
            error: scores[i].error + EPS * (scores[i].value.abs() + b.abs()),
        };
        let margins: Vec<Rounded> = self.rows.iter().zip(&self.y).map(margin).collect();
        let (loss, kappa) = (self.form.loss, self.form.variance);
        let total = sum(self.s.iter().copied());
        let mean = sum(margins.iter().zip(&self.s).map(|(g, s)| s * g.value)) / total;
        let centred = |g: &Rounded| g.value - mean;
        let u = margins.iter().zip(&self.s).map(|(g, s)| -2.0 * kappa * s * centred(g)).collect::<Vec<f64>>();
        let terms = || margins.iter().zip(&self.s).zip(&u);
        let value = sum(terms().map(|((g, s), _)| s * (kappa * centred(g) * centred(g) + loss.value(g.value))));
        let error = sum(terms().map(|((g, s), u)| {
            (s * loss.slope(g.value).abs() + u.abs()) * g.error + 4.0 * EPS * s * loss.value(g.value).abs()
        }));
        Primal { margins, risk: Rounded { value, error }, u, shift: 0.0 }
    }

    /// The interval of `v_i`.
    fn domain(&self, i: usize) -> (f64, f64) {
        let (low, high) = self.form.loss.slopes();
        (-self.s[i] * high, -self.s[i] * low)
    }

    /// `v_i = −s_i φ'(γ_i)`
    pub fn slopes(&self, primal: &Primal) -> Vec<f64> {
        primal.margins.iter().zip(&self.s).map(|(g, s)| -s * self.form.loss.slope(g.value)).collect()
    }

    /// Moves `v` into its domain and, for a free intercept, onto `Σ (u_i + v_i) y_i = 0`; where the rows inside it cannot do that,
    /// the variance's `u` does. Says what is left of that sum.
    pub fn make_feasible(&self, primal: &mut Primal, v: &mut [f64]) -> f64 {
        for (i, v) in v.iter_mut().enumerate() {
            let (low, high) = self.domain(i);
            *v = v.clamp(low, high);
        }
        if !self.free {
            return 0.0;
        }
        // Rows without support stay so, and rows at an end of their domain, as long as the others can restore the balance.
        let inside = |i: usize, v: f64| v != 0.0 && v > self.domain(i).0 && v < self.domain(i).1;
        let start = v.to_vec();
        let left = self.balance(primal, v, inside);
        if left == 0.0 {
            return left;
        }
        if self.form.variance == 0.0 {
            return self.balance(primal, v, |_, _| true);
        }
        v.copy_from_slice(&start);
        self.balance_variance(primal, v)
    }

    /// Moves `u` along `s_i (y_i − ȳ)`, which keeps `Σ u_i = 0`.
    fn balance_variance(&self, primal: &mut Primal, v: &[f64]) -> f64 {
        let total = sum(self.s.iter().copied());
        let mean = sum(self.s.iter().zip(&self.y).map(|(s, y)| s * y)) / total;
        let excess = |primal: &Primal| sum((0..v.len()).map(|i| (primal.u[i] + v[i]) * self.y[i]));
        for _ in 0..3 {
            let step = excess(primal) / (total * (1.0 - mean * mean));
            primal.shift -= step;
            (0..v.len()).for_each(|i| primal.u[i] -= step * self.s[i] * (self.y[i] - mean));
        }
        let left = excess(primal);
        let size = sum((0..v.len()).map(|i| primal.u[i].abs() + v[i].abs()));
        if left.abs() <= 100.0 * BALANCED * size { 0.0 } else { left }
    }

    /// Takes `t s_i y_i` from the rows that may move, held in their domain, until the balance is zero up to rounding or
    /// nothing moves any more; says what is left.
    fn balance(&self, primal: &Primal, v: &mut [f64], may_move: impl Fn(usize, f64) -> bool) -> f64 {
        const MOST_STEPS: usize = 200;
        for _ in 0..MOST_STEPS {
            let excess = sum((0..v.len()).map(|i| (primal.u[i] + v[i]) * self.y[i]));
            let size = sum((0..v.len()).map(|i| primal.u[i].abs() + v[i].abs()));
            if excess.abs() <= BALANCED * size {
                return 0.0;
            }
            let moves = |i: usize, v: f64| {
                let ((low, high), down) = (self.domain(i), excess * self.y[i] > 0.0);
                may_move(i, v) && if down { v > low } else { v < high }
            };
            let movable: Vec<usize> = (0..v.len()).filter(|&i| moves(i, v[i])).collect();
            let weight = sum(movable.iter().map(|&i| self.s[i]));
            if weight == 0.0 {
                return excess;
            }
            for i in movable {
                let (low, high) = self.domain(i);
                v[i] = (v[i] - excess / weight * self.s[i] * self.y[i]).clamp(low, high);
            }
        }
        sum((0..v.len()).map(|i| (primal.u[i] + v[i]) * self.y[i]))
    }

    /// How far rounding of the margins may move `Σ a_i y_i φ(x_i)`, as far as `a` follows from them: the variance's part, and the
    /// loss's if that is its slopes. `length(i)` is `‖φ(x_i)‖`.
    pub fn sway(&self, primal: &Primal, slopes: bool, length: impl Fn(usize) -> f64) -> f64 {
        let loss = self.form.loss;
        let row = |k: usize| {
            let Rounded { value, error } = primal.margins[k];
            let bend = if slopes { loss.slope(value + error) - loss.slope(value - error) } else { 0.0 };
            self.s[k] * (2.0 * self.form.variance * error + bend.abs()) * length(self.rows[k])
        };
        sum((0..self.s.len()).map(row)) / self.form.ridge
    }

    /// `a_i y_i / ρ`
    pub fn coefficients(&self, primal: &Primal, v: &[f64]) -> Vec<f64> {
        (0..v.len()).map(|i| (primal.u[i] + v[i]) * self.y[i] / self.form.ridge).collect()
    }

    /// `Σ (shift · s_i (y_i − ȳ))² / (4κ s_i)`: what a moved `u` adds to `P − D`.
    pub fn variance_gap(&self, primal: &Primal) -> f64 {
        if primal.shift == 0.0 {
            return 0.0;
        }
        let total = sum(self.s.iter().copied());
        let mean = sum(self.s.iter().zip(&self.y).map(|(s, y)| s * y)) / total;
        let spread = sum(self.s.iter().zip(&self.y).map(|(s, y)| s * (y - mean) * (y - mean)));
        primal.shift * primal.shift * spread / (4.0 * self.form.variance)
    }

    /// `Σ [s_i (φ(γ_i) + φ*(−v_i/s_i)) + v_i γ_i]`
    pub fn row_gap(&self, primal: &Primal, v: &[f64]) -> Rounded {
        let loss = self.form.loss;
        let rows = || primal.margins.iter().zip(&self.s).zip(v);
        let value = sum(rows().map(|((g, s), v)| s * loss.fenchel_young(g.value, -v / s)));
        let error = sum(rows().zip(&primal.u).map(|(((g, s), v), u)| {
            let slope = s * loss.slope(g.value).abs() + v.abs();
            slope * (g.error + 4.0 * EPS * (1.0 + g.value.abs())) + 4.0 * EPS * u.abs() * g.value.abs()
        }));
        Rounded { value, error }
    }
}
