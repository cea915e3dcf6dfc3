//! MDO-style margin distribution optimisation, linear only: over unit `w` and a threshold `t`, with the scaled margin
//! `v_i = y_i (w·x_i + t)/R`, `R = max ‖x_i‖`,
//!
//! ```text
//! min mean φ(v),   φ(v) = exp(−a v²) for a row on the right side (v ≥ 0),  exp(−b v) for one on the wrong side
//! ```
//!
//! (after Garg & Roth, "Margin Distribution and Learning", ICML 2003). 60 % sure of the form. The `a` and `b` that the
//! authors recommend are not at hand; the defaults `a = 100`, `b = 50` are ours: `exp(−a v²)` falls to a tenth at
//! a margin of 0.15 radii, and a row on the wrong side costs `e` at a depth of a fiftieth of the radius.
//!
//! Not convex. As in the paper the search starts from the SVM and goes down the gradient, `w` kept at length 1; steps
//! that would raise the cost are shortened, so it never rises. `objective` is the cost; there is no dual.
//!
//! Intercept: `free` is the threshold `t`, `none` holds it at 0, a number appends the feature, whose weight then is part
//! of the unit vector. Every row counts as support.

use super::svm::SVM;
use super::{
    Axis, Bias, Domain, Fit, Machine, Outcome, Parameter, ScoreFunctions, Series, Training, Uses, check_parameters,
};
use crate::control::Progress;
use crate::design::Design;
use crate::kernel::{Kernel, KernelKind};
use crate::linalg::{axpy, dot};
use crate::problem::StopReason;
use crate::solver::Settings;
use crate::{Advice, Error, Result};

/// The machine.
pub static MDO: Machine = Machine {
    name: "mdo",
    title: "margin distribution optimization, linear only",
    formula: "min mean φ(v), φ = exp(−a v²) for v ≥ 0, exp(−b v) for v < 0, v = y (w·x + t)/R, ‖w‖ = 1",
    paper: "after A. Garg, D. Roth, Margin Distribution and Learning Algorithms, ICML 2003",
    parameters: &[
        Parameter::number(
            "a",
            Domain::Positive,
            100.0,
            "how fast the cost of rows on the right side falls with the margin",
        ),
        Parameter::number("b", Domain::Positive, 50.0, "how fast the cost of rows on the wrong side rises"),
    ],
    grid: &[
        Axis::new(
            "a",
            Series::List(&[10.0, 100.0, 1000.0]),
            Series::List(&[10.0, 32.0, 100.0, 320.0, 1000.0]),
            Series::List(&[2.5, 5.0, 10.0, 20.0, 40.0]),
        ),
        Axis::new(
            "b",
            Series::List(&[50.0]),
            Series::List(&[2.0, 10.0, 50.0]),
            Series::List(&[0.5, 1.0, 2.0, 4.0, 8.0]),
        ),
    ],
    uses: Uses::ONE_WAY,
    fit,
    ..Machine::PLAIN
};

fn fit(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    if training.kernel() != Kernel::Linear {
        let reason = format!("{} cannot have the {} kernel", machine.name(), training.kernel().name());
        return Err(Error::conflict(reason, Advice::values("kernel", [KernelKind::Linear])));
    }
    let descent = MdoDescent::new(training);
    let (point, stop, rounds) = descent.run(training)?;
    let (weights, constant) = descent.design.split(&point.w);
    let intercept = constant + point.tau * descent.radius;
    let margins: Vec<f64> = point.v.iter().map(|v| v * descent.radius).collect();
    let norm = f64::from(u8::from(constant != 0.0 || weights.iter().any(|&w| w != 0.0)));
    let solver = "gradient descent from the svm".to_string();
    let mut outcome = Outcome::plain(solver, stop, rounds.len() - 1, margins, norm);
    outcome.objective = Some(point.cost);
    outcome.rest = Some(stop == StopReason::Rest);
    outcome.rounds = Some(rounds);
    Ok(Fit { functions: ScoreFunctions::weights(weights.to_vec(), intercept), outcome })
}

/// The descent is at rest once a step lowers the cost by less than this part of the tolerance: over the thousand steps it may take,
/// what is left to come then stays below a thousandth of it.
const REST: f64 = 1e-6;

/// A step has to lower the cost by this part of what the slope promises (Armijo's rule; the usual value).
const ARMIJO: f64 = 1e-4;

/// A unit vector, the threshold in units of `R`, and what they cost.
#[derive(Clone)]
struct MdoPoint {
    w: Vec<f64>,
    tau: f64,
    /// `v_i`
    v: Vec<f64>,
    cost: f64,
}

/// The data of the descent.
struct MdoDescent<'a> {
    design: Design<'a>,
    y: Vec<f64>,
    s: &'a [f64],
    n: f64,
    a: f64,
    b: f64,
    radius: f64,
    threshold: bool,
}

impl<'a> MdoDescent<'a> {
    fn new(training: &Training<'a>) -> Self {
        let design = Design::new(training.rows(), training.bias.feature().map_or(Bias::None, Bias::Feature));
        let radius = design.norms2().iter().fold(0.0f64, |a, &b| a.max(b)).sqrt();
        let [a, b] = ["a", "b"].map(|name| training.parameters.number(name));
        let (y, s, n) = (training.signs(), training.weights, training.total());
        Self { design, y, s, n, a, b, radius, threshold: training.bias == Bias::Free }
    }

    /// `φ`
    fn cost(&self, v: f64) -> f64 {
        if v >= 0.0 { (-self.a * v * v).exp() } else { (-self.b * v).exp() }
    }

    /// `φ'`
    fn slope(&self, v: f64) -> f64 {
        if v >= 0.0 { -2.0 * self.a * v * (-self.a * v * v).exp() } else { -self.b * (-self.b * v).exp() }
    }

    /// The point with `w` brought to length 1 (a `w` of zero stays).
    fn point(&self, mut w: Vec<f64>, tau: f64) -> MdoPoint {
        let norm = dot(&w, &w).sqrt();
        if norm > 0.0 {
            w.iter_mut().for_each(|v| *v /= norm);
        }
        let mut v = vec![0.0; self.y.len()];
        self.design.scores(&w, &mut v);
        let by = if self.radius > 0.0 { 1.0 / self.radius } else { 0.0 };
        v.iter_mut().zip(&self.y).for_each(|(v, y)| *v = y * (*v * by + tau));
        let cost = v.iter().zip(self.s).map(|(&v, s)| s * self.cost(v)).sum::<f64>() / self.n;
        MdoPoint { w, tau, v, cost }
    }

    /// The gradient along the sphere, and that of the threshold.
    fn gradient(&self, point: &MdoPoint) -> (Vec<f64>, f64) {
        let by = if self.radius > 0.0 { 1.0 / self.radius } else { 0.0 };
        let slope = |((&v, s), y): ((&f64, &f64), &f64)| s * self.slope(v) * y / self.n;
        let slopes: Vec<f64> = point.v.iter().zip(self.s).zip(&self.y).map(slope).collect();
        let tau = if self.threshold { slopes.iter().sum() } else { 0.0 };
        let scaled: Vec<f64> = slopes.iter().map(|c| c * by).collect();
        let mut w = self.design.combine(|i| scaled[i]);
        let radial = dot(&w, &point.w);
        axpy(-radial, &point.w, &mut w);
        (w, tau)
    }

    /// Goes down; gives the last point, why it stopped, and the cost after each step (the start first).
    fn run(&self, training: &Training<'_>) -> Result<(MdoPoint, StopReason, Vec<f64>)> {
        let (w, tau) = start(training, self)?;
        let mut point = self.point(w, tau);
        if !point.cost.is_finite() {
            return Err(Error::numeric("mdo", "the cost overflows at the start: b is too large"));
        }
        let (mut costs, mut step) = (vec![point.cost], 1.0);
        let rest = (REST * training.settings.asked()).max(f64::EPSILON);
        for iteration in 1..=training.settings.max_iter.unwrap_or(1000) {
            let (g, g_tau) = self.gradient(&point);
            let Some((next, size)) = self.search(&point, &g, g_tau, step * 2.0) else {
                return Ok((point, StopReason::Rest, costs));
            };
            let gained = point.cost - next.cost;
            (point, step) = (next, size);
            costs.push(point.cost);
            training.control.report(Progress { iteration, objective: Some(point.cost), gap: None })?;
            if gained <= rest * point.cost {
                return Ok((point, StopReason::Rest, costs));
            }
        }
        Ok((point, StopReason::Iterations, costs))
    }

    /// The first point down the gradient, halving the step, at which the cost falls as the slope promises.
    fn search(&self, from: &MdoPoint, g: &[f64], g_tau: f64, longest: f64) -> Option<(MdoPoint, f64)> {
        let steepness = dot(g, g) + g_tau * g_tau;
        let halvings = std::iter::successors(Some(longest), |step| Some(0.5 * step)).take(60);
        let point = |step: f64| {
            let mut w = from.w.clone();
            axpy(-step, g, &mut w);
            (self.point(w, from.tau - step * g_tau), step)
        };
        let falls = |(next, step): &(MdoPoint, f64)| {
            next.cost < from.cost && next.cost <= from.cost - ARMIJO * step * steepness
        };
        halvings.map(point).find(falls)
    }
}

/// The SVM's direction and its threshold in units of `R`, with the SVM's own default parameters. A threshold beyond the
/// radius, of an SVM that knows but one class, is as good as one at it. An SVM without a direction leaves that of the
/// mean margin.
fn start(training: &Training<'_>, descent: &MdoDescent<'_>) -> Result<(Vec<f64>, f64)> {
    let parameters = check_parameters(&SVM, &[])?;
    let Some(form) = SVM.form(&parameters, descent.n) else {
        return Err(Error::numeric("mdo", "its start has no form"));
    };
    let problem = form.problem(&descent.y, descent.s, training.bias);
    let settings = Settings { tol: training.settings.tol.min(1e-3), max_iter: None, ..training.settings };
    let svm = training.workspace.fit(&problem, training.solver, training.start, &settings, training.control)?;
    let (mut weights, intercepts) = svm.functions.into_parts();
    let (mut w, b) = (weights.swap_remove(0), intercepts[0]);
    if let Bias::Feature(value) = training.bias {
        w.push(if value != 0.0 { b / value } else { 0.0 });
    }
    let scale = dot(&w, &w).sqrt() * descent.radius;
    if !(scale.is_finite() && scale > 0.0) {
        let mean: Vec<f64> = descent.y.iter().zip(descent.s).map(|(y, s)| y * s / descent.n).collect();
        return Ok((descent.design.combine(|i| mean[i]), 0.0));
    }
    Ok((w, if descent.threshold { (b / scale).clamp(-1.0, 1.0) } else { 0.0 }))
}
