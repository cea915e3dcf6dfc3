//! What is minimised, and what is said of a solution: the problem, its score functions, a dual point, the certificate, why a
//! solver stopped.

mod margin;

pub use margin::MarginProblem;

use crate::data::Matrix;
use crate::names::named_or_number;
use serde::{Deserialize, Serialize};

/// The intercept of `f(x) = w·φ(x) + b`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bias {
    /// `b = 0`, as the LDM and ODM papers have it.
    None,
    /// A constant feature `B` is appended and its weight regularised like the others; for a kernel, `k + B²`.
    Feature(f64),
    /// `b` is not regularised: what people mean by an intercept.
    Free,
}

impl Bias {
    /// How strongly `b` is drawn to zero: it adds `½ r b²` to the objective. `1/B²` of an appended feature, 0 of a free
    /// intercept, infinity where there is none.
    pub fn ridge(self) -> f64 {
        match self {
            Self::None => f64::INFINITY,
            Self::Feature(value) => 1.0 / (value * value),
            Self::Free => 0.0,
        }
    }

    /// The constant feature that is appended, if one is.
    pub fn feature(self) -> Option<f64> {
        match self {
            Self::Feature(value) => Some(value),
            Self::None | Self::Free => None,
        }
    }

    /// The constant that an appended feature adds to every inner product, `B²`; 0 without one.
    pub fn offset(self) -> f64 {
        self.feature().map_or(0.0, |value| value * value)
    }

    /// The weights with that of the intercept at their end, as a design of the rows has them.
    pub fn append(self, weights: &[f64], intercept: f64) -> Vec<f64> {
        let last = match self {
            Self::None => None,
            Self::Feature(value) => Some(intercept / value),
            Self::Free => Some(intercept),
        };
        weights.iter().copied().chain(last).collect()
    }

    /// What stands for a free intercept in machines that know none: an appended 1.
    pub fn without_free(self) -> Self {
        if self == Self::Free { Self::Feature(1.0) } else { self }
    }

    /// A free intercept or none.
    pub(crate) fn free_or_none(self) -> Self {
        if self == Self::Free { Self::Free } else { Self::None }
    }

    /// No intercept in place of a free one.
    pub(crate) fn none_for_free(self) -> Self {
        if self == Self::Free { Self::None } else { self }
    }
}

named_or_number!(
    Bias,
    "bias",
    "free, none (for no intercept) or a number > 0",
    [None: "none", Free: "free"],
    Feature,
    |value: f64| value.is_finite() && value > 0.0
);

/// The learnt score functions, one a column (two classes: one column; class 1 is where it is positive).
///
/// A fit has coefficients of all training rows, which nobody needs to copy; a model has its support rows beside them.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreFunctions<S = ()> {
    /// `f_l(x) = w_l · x + b_l`.
    Linear {
        /// `w_l`, each of the rows' width.
        weights: Vec<Vec<f64>>,
        /// `b_l` (for [`Bias::Feature`] already multiplied by `B`).
        intercepts: Vec<f64>,
    },
    /// `f_l(x) = Σ_i c_il k(x_i, x) + b_l`.
    Kernel {
        /// The rows `x_i`: of a model its support rows, scaled as training saw them.
        support: S,
        /// `c_l`, each with one coefficient a row; zero for rows that do not matter.
        coefficients: Vec<Vec<f64>>,
        /// `b_l` (for [`Bias::Feature`] it holds `B² Σ_i c_il`).
        intercepts: Vec<f64>,
    },
}

impl<S> ScoreFunctions<S> {
    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.intercepts().len()
    }

    /// `b_l`, one a column.
    pub fn intercepts(&self) -> &[f64] {
        match self {
            Self::Linear { intercepts, .. } | Self::Kernel { intercepts, .. } => intercepts,
        }
    }

    /// The weights or coefficients, one vector a column.
    pub fn vectors(&self) -> &[Vec<f64>] {
        match self {
            Self::Linear { weights: vectors, .. } | Self::Kernel { coefficients: vectors, .. } => vectors,
        }
    }

    /// Vectors and intercepts, taken apart.
    pub fn into_parts(self) -> (Vec<Vec<f64>>, Vec<f64>) {
        match self {
            Self::Linear { weights: vectors, intercepts } | Self::Kernel { coefficients: vectors, intercepts, .. } => {
                (vectors, intercepts)
            }
        }
    }
}

impl ScoreFunctions {
    /// One column of weights.
    pub fn weights(weights: Vec<f64>, intercept: f64) -> Self {
        Self::Linear { weights: vec![weights], intercepts: vec![intercept] }
    }

    /// One column of coefficients, one a training row.
    pub fn coefficients(coefficients: Vec<f64>, intercept: f64) -> Self {
        Self::Kernel { support: (), coefficients: vec![coefficients], intercepts: vec![intercept] }
    }

    /// The training rows with a non-zero coefficient in some column; `None` for weights, which need no rows.
    pub fn support_rows(&self) -> Option<Vec<usize>> {
        let Self::Kernel { coefficients, .. } = self else { return None };
        let rows = coefficients.first().map_or(0, Vec::len);
        Some((0..rows).filter(|&i| coefficients.iter().any(|c| c[i] != 0.0)).collect())
    }

    /// The same functions of rows that training never saw: over the chosen training rows, which must be all that have a
    /// coefficient.
    pub fn over(self, rows: &Matrix<'_>, chosen: &[usize]) -> ScoreFunctions<Matrix<'static>> {
        match self {
            Self::Linear { weights, intercepts } => ScoreFunctions::Linear { weights, intercepts },
            Self::Kernel { coefficients, intercepts, .. } => {
                let coefficients = coefficients.iter().map(|c| chosen.iter().map(|&i| c[i]).collect()).collect();
                ScoreFunctions::Kernel { support: rows.select(chosen), coefficients, intercepts }
            }
        }
    }
}

/// The loss's part `v` of the dual variables (the variance's part `u` follows from the margins).
#[derive(Clone, Debug, PartialEq)]
pub enum DualPoint {
    /// `v_i = −s_i φ'(γ_i)` of the score function handed over, balanced if the intercept is free: these numbers, which need not
    /// be kept.
    Slopes(Vec<Vec<f64>>),
    /// The variables themselves: one vector a two-class problem, for machines with one score function a class one vector
    /// a class, over the rows that have a weight.
    Variables(Vec<Vec<f64>>),
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
    /// `(primal − dual) / max(|primal|, |dual|)`; infinite where one of them is not a number.
    pub fn gap(&self) -> f64 {
        if !(self.primal.is_finite() && self.dual.is_finite()) {
            return f64::INFINITY;
        }
        let scale = self.primal.abs().max(self.dual.abs());
        if scale > 0.0 { (self.primal - self.dual) / scale } else { 0.0 }
    }
}

/// What should not be negative and is so only by rounding; what is no number stays none.
pub(crate) fn not_negative(value: f64) -> f64 {
    if value < 0.0 { 0.0 } else { value }
}

/// Why a solver stopped, from what was asked for to what is farthest from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The result is a closed form: nothing to converge.
    Exact,
    /// The relative duality gap is within the tolerance.
    Gap,
    /// The rounds reached a fixed point: neither active rows nor weights change any more.
    Rest,
    /// The gap is above the tolerance but rounding errors hide any further progress.
    Precision,
    /// The limit on iterations or rounds came first; the gap, where there is one, says how far it got.
    #[default]
    Iterations,
    /// The objective falls without end as the free intercept runs away: there is nothing to converge to.
    Unbounded,
}

impl StopReason {
    /// Whether the result is as good as was asked for.
    pub fn converged(self) -> bool {
        matches!(self, Self::Gap | Self::Exact | Self::Rest)
    }

    /// The reason that what was measured bears out: the one rule by which a fit is called converged.
    ///
    /// `gap` is the relative duality gap where there is one, `tol` the tolerance asked for. `rest` is for machines that go
    /// in rounds, whose gap is only that of the last round's problem: whether the rounds came to rest. A gap within the
    /// tolerance counts whatever the solver aimed at; one above it, or none that is a number, never does.
    pub fn judge(self, gap: Option<f64>, rest: Option<bool>, tol: f64) -> Self {
        let within = gap.is_none_or(|gap| gap <= tol);
        match (self, rest) {
            (_, Some(false)) => Self::Iterations,
            (_, Some(true)) if within => Self::Rest,
            (Self::Exact | Self::Rest, None) if within => self,
            (_, None) if within && gap.is_some() => Self::Gap,
            (Self::Precision | Self::Unbounded, _) => self,
            _ => Self::Iterations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopReason::{self, Exact, Gap, Iterations, Precision, Rest};

    #[test]
    fn a_status_is_earned() {
        let cases: [(StopReason, Option<f64>, Option<bool>, StopReason); 16] = [
            // Within the tolerance asked for, whatever was aimed at.
            (Gap, Some(1e-4), None, Gap),
            (Precision, Some(1e-4), None, Gap),
            (Iterations, Some(1e-3), None, Gap),
            // Above it, or no number.
            (Gap, Some(2e-3), None, Iterations),
            (Precision, Some(2e-3), None, Precision),
            (Iterations, Some(f64::NAN), None, Iterations),
            (Gap, Some(f64::NAN), None, Iterations),
            (Gap, Some(f64::INFINITY), None, Iterations),
            (Gap, None, None, Iterations),
            // Closed forms and rest.
            (Exact, None, None, Exact),
            (Exact, Some(0.0), None, Exact),
            (Exact, Some(f64::NAN), None, Iterations),
            (Rest, None, None, Rest),
            // Rounds: their last problem's gap proves nothing unless they rest.
            (Gap, Some(1e-9), Some(false), Iterations),
            (Precision, Some(1e-9), Some(true), Rest),
            (Rest, Some(0.5), Some(true), Iterations),
        ];
        for (stop, gap, rest, expected) in cases {
            assert_eq!(stop.judge(gap, rest, 1e-3), expected, "{stop:?} {gap:?} {rest:?}");
        }
        assert!([Gap, Exact, Rest].iter().all(|stop| stop.converged()));
        assert!(![Precision, Iterations].iter().any(|stop| stop.converged()));
    }
}
