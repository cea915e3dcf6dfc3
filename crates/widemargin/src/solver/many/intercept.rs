//! The intercepts of descent for many classes.

use crate::problem::Bias;

/// How much heavier than the answer of the rows a free intercept is, as in `dcd`. (mcODM on 8,000 × 1,500, 30 classes: 36, 46 and 30 passes
/// at 4, 16 and 64.)
const SHARE: f64 = 16.0;

/// The intercepts `b_l`.
pub(super) struct Intercept {
    /// `ρ`: the squared value of the constant feature, or the proximal step.
    pub(super) rho: f64,
    /// The square of a constant feature of the size of the others, or of the regularised one.
    pub(super) unit: f64,
    pub(super) free: bool,
    /// `b_l`
    pub(super) values: Vec<f64>,
    /// `V_l = Σ_i v_i^l`
    pub(super) sums: Vec<f64>,
}

impl Intercept {
    pub(super) fn new(bias: Bias, classes: usize, mean_diagonal: f64) -> Self {
        let (unit, free) = match bias {
            Bias::None => (0.0, false),
            Bias::Feature(value) => (value * value, false),
            Bias::Free => (if mean_diagonal > 0.0 { mean_diagonal } else { 1.0 }, true),
        };
        Self { rho: unit, unit, free, values: vec![0.0; classes], sums: vec![0.0; classes] }
    }

    /// Sets the proximal step of free intercepts for rows that answer a rise of one by `Σ_i 1/(‖x_i‖² + 1/h_i)` in all, each in two
    /// classes: just heavy enough for them to answer (see `dcd`).
    pub(super) fn pull_by(&mut self, answer: f64) {
        if self.free && answer > 0.0 {
            self.rho = (SHARE * 0.5 * self.values.len() as f64 / answer).min(self.unit);
        }
    }

    #[inline]
    pub(super) fn add(&mut self, change: &[(u32, f64)]) {
        for &(l, a) in change {
            self.sums[l as usize] += a;
            self.values[l as usize] += self.rho * a;
        }
    }

    /// [`add`](Self::add) for a change that is no step of descent: free intercepts stay, their centre moves.
    pub(super) fn shift(&mut self, change: &[(u32, f64)]) {
        if !self.free {
            return self.add(change);
        }
        for &(l, a) in change {
            self.sums[l as usize] += a;
        }
    }

    /// `v = 0`; free intercepts stay.
    pub(super) fn clear(&mut self) {
        self.sums.fill(0.0);
        if !self.free {
            self.values.fill(0.0);
        }
    }

    /// `ρ ‖V‖²`
    pub(super) fn imbalance(&self) -> f64 {
        self.rho * self.sums.iter().map(|v| v * v).sum::<f64>()
    }

    /// The squared weight of the constant feature; a free intercept has none.
    pub(super) fn norm2(&self) -> f64 {
        if self.free { 0.0 } else { self.imbalance() }
    }

    /// The intercepts; free ones, which may all rise together at no cost, with the sum 0.
    pub(super) fn centred(&self) -> Vec<f64> {
        let mean = if self.free { self.values.iter().sum::<f64>() / self.values.len() as f64 } else { 0.0 };
        self.values.iter().map(|b| b - mean).collect()
    }

    /// Lets the centre follow once rows that see this gap have come to terms with the present one.
    pub(super) fn follow(&mut self, gap: f64) {
        if !self.free || gap > 0.5 * self.imbalance() {
            return;
        }
        for (value, sum) in self.values.iter_mut().zip(&self.sums) {
            *value += self.rho * sum;
        }
    }
}
