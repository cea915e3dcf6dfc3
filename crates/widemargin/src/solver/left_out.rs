//! Closed-form leave-one-out margins of smooth problems.

mod estimate;

pub use estimate::{Estimate, LeverageSystem};

use super::newton::NORMAL_EQUATIONS;
use crate::design::Design;
use crate::linalg::Cholesky;
use crate::problem::{Bias, MarginProblem};

/// What is smaller than so much of what it is the difference of is rounding.
const HIDDEN: f64 = 1e-12;

/// Closed-form leave-one-out margins: exact while no row crosses a kink of the slope.
///
/// On its piece the loss of a row is `½ h_i (γ − c_i)²` up to a constant, with the curvature `h_i = s_i φ''(γ_i)` and the target
/// `c_i = γ_i − φ'(γ_i)/φ''(γ_i)` (of ODM `1 ∓ D`). With `H` the Hessian and `l_i = x̃_iᵀ H⁻¹ x̃_i`, leaving out a row (all of
/// its weight) turns the residual `e_i = c_i − γ_i` into `e_i / (1 − h_i l_i)`; in terms of `M = K_SS + diag(1/h)` that is
/// `γ_i = c_i − a_i / [M⁻¹]_ii`, `a = h ∘ e`. Rows without curvature keep their margin.
pub struct LeftOut<'t> {
    y: &'t [f64],
    margins: &'t [f64],
    targets: Vec<f64>,
    /// `h_i`
    pub curvature: Vec<f64>,
    /// The rows with curvature.
    pub active: Vec<usize>,
}

/// What leaving out the rows with curvature divides by, and what it divides.
pub struct Leverages {
    /// `1 − h_i l_i`
    rest: Vec<f64>,
    /// `a_i` where they were solved for: of rows that are fitted nearly to the letter `e_i` drowns in the rounding of the margins.
    pulls: Option<Vec<f64>>,
}

impl Leverages {
    /// Of `1 − h_i l_i` that may be off by rounding.
    fn rough(rest: Vec<f64>) -> Self {
        Self { rest, pulls: None }
    }
}

impl<'t> LeftOut<'t> {
    /// At the optimum of the problem, where its rows have these margins.
    pub fn new(margins: &'t [f64], problem: &MarginProblem<'t>) -> Self {
        let row = |(g, s): (&f64, &f64)| match problem.loss.jet(*g) {
            (_, slope, curvature) if curvature > 0.0 => (g - slope / curvature, s * curvature),
            _ => (*g, 0.0),
        };
        let (targets, curvature): (Vec<f64>, Vec<f64>) = margins.iter().zip(problem.weights).map(row).unzip();
        let active = (0..curvature.len()).filter(|&i| curvature[i] > 0.0).collect();
        Self { y: problem.y, margins, targets, curvature, active }
    }

    /// `1/h_i` of the active rows.
    pub fn ridges(&self) -> Vec<f64> {
        self.active.iter().map(|&i| 1.0 / self.curvature[i]).collect()
    }

    /// The active rows, with `h` and `√h` of each.
    fn system(&self) -> (&[usize], Vec<f64>, Vec<f64>) {
        let h: Vec<f64> = self.active.iter().map(|&i| self.curvature[i]).collect();
        let root = h.iter().map(|h| h.sqrt()).collect();
        (&self.active, h, root)
    }

    /// The margins.
    pub fn margins(&self, leverages: &Leverages) -> Vec<f64> {
        let mut margins = self.margins.to_vec();
        for (p, &i) in self.active.iter().enumerate() {
            let residual = match &leverages.pulls {
                Some(pulls) => pulls[p] / self.curvature[i],
                None => self.targets[i] - self.margins[i],
            };
            margins[i] = self.targets[i] - residual / leverages.rest[p];
        }
        margins
    }

    /// From the `n × n` Hessian, or its factor where that is known; `None` where rounding hides `1 − h_i l_i`.
    pub fn by_features(&self, design: &Design<'_>, known: Option<&Cholesky>) -> Option<Leverages> {
        let of = |factor: &Cholesky| {
            let leverage = design.leverages(factor, &self.active);
            let rest: Vec<f64> = self.active.iter().zip(leverage).map(|(&i, l)| 1.0 - self.curvature[i] * l).collect();
            rest.iter().all(|rest| *rest > HIDDEN).then(|| Leverages::rough(rest))
        };
        if let Some(known) = known {
            return of(known);
        }
        let n = design.width();
        let mut hessian = self.hessian(design);
        (0..n).for_each(|j| hessian[j * n + j] += design.ridge(j));
        of(&Cholesky::new(hessian, n).ok()?)
    }

    /// `Σ h_i x̃_i x̃_iᵀ`; a large one of dense rows as products of matrices, with all threads at one sum.
    fn hessian(&self, design: &Design<'_>) -> Vec<f64> {
        let n = design.width();
        if n <= NORMAL_EQUATIONS || !design.rows().is_dense() {
            return design.curve_matrix(&self.curvature);
        }
        let rows: Vec<(usize, f64)> = self.active.iter().map(|&i| (i, self.curvature[i])).collect();
        let mut hessian = vec![0.0; n * n];
        design.add_outer(&rows, 1.0, &mut hessian);
        hessian
    }

    /// From `M = K_SS + diag(1/h)`.
    pub fn by_rows(&self, matrix: Vec<f64>, bias: Bias) -> Option<Leverages> {
        let factor = Cholesky::new(matrix, self.active.len()).ok()?;
        Some(self.by_factor(&factor, bias))
    }

    /// `1 − h_i l_i = [M⁻¹]_ii / h_i` from the factor of `M`, and `a = M⁻¹ (y ∘ c) ∘ y`; an intercept borders `M` with ones.
    pub fn by_factor(&self, factor: &Cholesky, bias: Bias) -> Leverages {
        let k = self.active.len();
        let mut inverse = factor.inverse_diagonal();
        let mut pulls: Vec<f64> = self.active.iter().map(|&i| self.y[i] * self.targets[i]).collect();
        factor.solve(&mut pulls);
        if bias != Bias::None && k > 0 {
            let mut ones = vec![1.0; k];
            factor.solve(&mut ones);
            let sum = bias.ridge() + ones.iter().sum::<f64>();
            inverse.iter_mut().zip(&ones).for_each(|(d, z)| *d = (*d - z * z / sum).max(HIDDEN * *d));
            let intercept = pulls.iter().sum::<f64>() / sum;
            pulls.iter_mut().zip(&ones).for_each(|(a, z)| *a -= intercept * z);
        }
        let rest = self.active.iter().zip(inverse).map(|(&i, d)| d / self.curvature[i]).collect();
        pulls.iter_mut().zip(&self.active).for_each(|(a, &i)| *a *= self.y[i]);
        Leverages { rest, pulls: Some(pulls) }
    }

    /// Whether estimated margins are further from those with the row than chance alone would take them. On average over the rows the
    /// square of that distance is the one that leaving out causes and the square of the standard error: not the lesser part of it may
    /// be chance. Of rows that nearly fit every label `1 − h_i l_i` is smaller than its own error.
    pub fn tells(&self, estimate: &Estimate) -> bool {
        let left_out = self.margins(&estimate.leverage);
        let moved = left_out.iter().zip(self.margins).map(|(out, with)| (out - with).powi(2)).sum::<f64>();
        2.0 * self.error(estimate).powi(2) * self.margins.len() as f64 <= moved
    }

    /// The standard error of estimated margins, the root of the mean of its squares over all rows.
    pub fn error(&self, estimate: &Estimate) -> f64 {
        let row = |((&i, rest), error): ((&usize, &f64), &f64)| {
            ((self.targets[i] - self.margins[i]) * error / (rest * rest)).powi(2)
        };
        let rows = self.active.iter().zip(&estimate.leverage.rest).zip(&estimate.errors);
        (rows.map(row).sum::<f64>() / self.margins.len().max(1) as f64).sqrt()
    }
}
