//! Where solvers end and start, and what is said of it.

use crate::data::Matrix;
use crate::design::Design;
use crate::kernel::Kernel;
use crate::linalg::Cholesky;
use crate::problem::Bias;
use crate::problem::{Certificate, MarginProblem, ScoreFunctions, StopReason};
use crate::solver::certify::Certified;
use serde::{Deserialize, Serialize};

/// Where a solver ended. Nothing of it is believed: what is claimed is computed by [`certify`](fn@crate::solver::certify::certify).
pub struct Ending {
    /// The score function, one column.
    pub functions: ScoreFunctions,
    /// The part of a dual point that belongs to the loss; `None`: the slopes of the loss.
    pub dual: Option<Vec<f64>>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps, passes or blocks.
    pub iterations: usize,
    /// The solver in words.
    pub solver: String,
    /// The margins, where the solver knows them, which are those of its precision.
    pub margins: Option<Vec<f64>>,
    /// The factor of the last Newton system.
    pub factor: Option<Factor>,
    /// What can be said of it, where that is known already.
    pub(super) certified: Option<Certified>,
    /// Whether dual descent was too slow here.
    pub(super) hard: bool,
}

/// The factor of a Newton system: of `K_SS + diag(1/h)` over kernel coefficients, of `Σ h_i x̃_i x̃_iᵀ + I` over weights.
pub struct Factor {
    /// `h_i`, zero of rows that are not in the system.
    pub curvature: Vec<f64>,
    /// The factor.
    pub cholesky: Cholesky,
}

/// Where a solver may start: where another ended, on the same rows and labels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Start {
    /// Weights (that of a constant feature last) or coefficients; nothing: zero.
    pub(super) w: Vec<f64>,
    pub(super) intercept: f64,
    /// Multipliers of the loss.
    pub(super) v: Vec<f64>,
    /// The slopes that the loss could take.
    #[serde(with = "bounds")]
    pub(super) slopes: (f64, f64),
    /// Whether dual descent was too slow there.
    pub(super) hard: bool,
}

/// A lower and an upper bound in a format that has no word for infinity.
mod bounds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(&(low, high): &(f64, f64), serializer: S) -> Result<S::Ok, S::Error> {
        let finite = |bound: f64| Some(bound).filter(|bound| bound.is_finite());
        (finite(low), finite(high)).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(f64, f64), D::Error> {
        let (low, high) = <(Option<f64>, Option<f64>)>::deserialize(deserializer)?;
        Ok((low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)))
    }
}

/// A solved problem with what can be said of it.
pub struct Solved {
    /// The score function, one column.
    pub functions: ScoreFunctions,
    /// Dual variables `a_i`.
    pub a: Vec<f64>,
    /// The loss's part of them.
    pub v: Vec<f64>,
    /// Whether that is `−s_i φ'(γ_i)`, balanced if the intercept is free.
    pub slopes: bool,
    /// How good it is; `None` over a kernel that is not positive semidefinite, where there is no duality.
    pub certificate: Option<Certificate>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps, passes or blocks.
    pub iterations: usize,
    /// The solver in words.
    pub solver: String,
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `‖x̃_i‖²`, a regularised constant feature included, of a linear problem.
    pub norms2: Option<Vec<f64>>,
    /// `‖w‖`
    pub norm: f64,
    /// The factor of the last Newton system.
    pub factor: Option<Factor>,
}

impl Solved {
    /// Rows that have a coefficient.
    pub(super) fn support(&self) -> usize {
        self.functions.vectors()[0].iter().filter(|c| **c != 0.0).count()
    }

    /// The relative duality gap; infinite where there is no certificate.
    pub fn gap(&self) -> f64 {
        self.certificate.map_or(f64::INFINITY, |certificate| certificate.gap())
    }
}

impl Ending {
    /// A weight vector, that of a constant feature last, as a solver leaves it.
    pub fn of_weights(
        design: &Design<'_>,
        mut w: Vec<f64>,
        dual: Option<Vec<f64>>,
        stop: StopReason,
        iterations: usize,
        solver: String,
    ) -> Self {
        let (_, intercept) = design.split(&w);
        w.truncate(design.rows().cols());
        Self::plain(ScoreFunctions::weights(w, intercept), dual, stop, iterations, solver)
    }

    /// Without what only some solvers know.
    pub(super) fn plain(
        functions: ScoreFunctions,
        dual: Option<Vec<f64>>,
        stop: StopReason,
        iterations: usize,
        solver: String,
    ) -> Self {
        Self { functions, dual, stop, iterations, solver, margins: None, factor: None, certified: None, hard: false }
    }

    /// Coefficients of rows as a solver leaves them.
    pub(super) fn of_coefficients(
        c: Vec<f64>,
        intercept: f64,
        v: Vec<f64>,
        stop: StopReason,
        iterations: usize,
    ) -> Self {
        let solver = format!("dcd ({iterations} blocks)");
        Self::plain(ScoreFunctions::coefficients(c, intercept), Some(v), stop, iterations, solver)
    }

    /// The zero function, where there is nothing to solve or nothing could be.
    pub(super) fn zero(rows: &Matrix<'_>, kernel: Kernel, stop: StopReason, why: &str) -> Self {
        let functions = match kernel {
            Kernel::Linear => ScoreFunctions::weights(vec![0.0; rows.cols()], 0.0),
            _ => ScoreFunctions::coefficients(vec![0.0; rows.rows()], 0.0),
        };
        Self::plain(functions, None, stop, 0, format!("none ({why})"))
    }

    /// The same with the dual point that its coefficients are, `a_i = c_i y_i`: they have digits that slopes of the loss lose where
    /// these come from margins that differ from a kink by rounding errors.
    pub(super) fn by_coefficients(&self, problem: &MarginProblem<'_>) -> Option<Self> {
        let ScoreFunctions::Kernel { coefficients, .. } = &self.functions else { return None };
        let v: Vec<f64> = coefficients[0].iter().zip(problem.y).map(|(c, y)| c * y).collect();
        let other = problem.variance == 0.0 && self.dual.as_ref() != Some(&v);
        other.then(|| Self::plain(self.functions.clone(), Some(v), self.stop, self.iterations, self.solver.clone()))
    }

    pub(super) fn after(self, before: &str) -> Self {
        Self { solver: format!("{before}, then {}", self.solver), ..self }
    }

    /// Where another solve of a problem like this one may start.
    pub fn start(&self, problem: &MarginProblem<'_>) -> Start {
        start_of(&self.functions, self.dual.clone(), self.hard, problem)
    }
}

/// Where a solve may start that goes on from these score functions.
pub(super) fn start_of(
    functions: &ScoreFunctions,
    dual: Option<Vec<f64>>,
    hard: bool,
    problem: &MarginProblem<'_>,
) -> Start {
    let (w, intercept) = match functions {
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => (coefficients[0].clone(), intercepts[0]),
        ScoreFunctions::Linear { weights, intercepts } => {
            (problem.bias.append(&weights[0], intercepts[0]), intercepts[0])
        }
    };
    Start { w, intercept, v: dual.unwrap_or_default(), slopes: problem.loss.slopes(), hard }
}

impl Start {
    /// At a score function of the same rows: weights, or coefficients of all rows.
    pub fn at(functions: &ScoreFunctions, bias: Bias) -> Self {
        let (vectors, intercepts) = (functions.vectors(), functions.intercepts());
        let w = match functions {
            ScoreFunctions::Kernel { .. } => vectors[0].clone(),
            ScoreFunctions::Linear { .. } => bias.append(&vectors[0], intercepts[0]),
        };
        Self { w, intercept: intercepts[0], ..Self::default() }
    }

    /// Nothing of what are weights, not coefficients of so many rows.
    pub(super) fn by_coefficients(&self, rows: usize) -> Self {
        if self.w.len() == rows { self.clone() } else { Self::default() }
    }

    /// The start over some of the rows.
    pub(super) fn of_rows(&self, chosen: &[usize]) -> Self {
        let some = |values: &[f64]| chosen.iter().filter_map(|&i| values.get(i).copied()).collect();
        Self { w: some(&self.w), v: some(&self.v), ..self.clone() }
    }

    pub(super) fn vector(&self, length: usize) -> Vec<f64> {
        if self.w.len() == length { self.w.clone() } else { vec![0.0; length] }
    }

    pub(super) fn multipliers(&self, m: usize) -> Vec<f64> {
        if self.v.len() == m { self.v.clone() } else { vec![0.0; m] }
    }

    /// Coefficients to start dual descent from: dual variables that were at an end of their domain go to where it now ends.
    pub(super) fn dual_guess(&self, problem: &MarginProblem<'_>) -> Vec<f64> {
        let (y, loss) = (problem.y, problem.loss);
        let ends = |slopes: (f64, f64), s: f64| [-s * slopes.0, -s * slopes.1];
        let row = |i: usize| {
            let s = problem.weights[i];
            let Some(w) = self.w.get(i) else { return -s * loss.slope(0.0) * y[i] };
            if problem.variance > 0.0 || self.v.len() != y.len() {
                return *w;
            }
            let (old, new) = (ends(self.slopes, s), ends(loss.slopes(), s));
            let at = |end: &f64| end.is_finite() && (self.v[i] - end).abs() <= 1e-9 * end.abs();
            old.iter().position(at).map_or(self.v[i], |at| new[at]) * y[i]
        };
        (0..y.len()).map(row).collect()
    }
}
