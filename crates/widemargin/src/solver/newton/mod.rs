//! Newton's method for the whole family.
//!
//! **Smooth losses** (ODM, LSSVM, squared hinge): the objective is piecewise quadratic, so a Newton step is a weighted
//! ridge system and an exact line search; one to five steps reach rounding errors.
//!
//! **Losses with kinks** (hinge, ε-insensitive): the method of multipliers. With multipliers `v_i` the loss of a row is
//! replaced by its Moreau envelope, `e_σ(γ_i − σ v_i / s_i)`, which is smooth and piecewise quadratic again; the inner
//! problem is solved by the Newton steps above, `v` follows from its slopes, `σ` shrinks. This converges
//! superlinearly and needs no step size (semismooth Newton augmented Lagrangian; Li, Sun & Toh 2018).
//!
//! At every step `a_i = −φ'(γ_i)` is a dual point, and the duality gap splits into what the rows add and
//! `½‖w − Σ a_i y_i x_i‖²`: the second part says how far the inner problem is from solved, the first when the
//! multipliers should move on.

mod coefficients;
mod weights;

pub use coefficients::{CoefficientSpace, KernelMatrix, Pieces};
pub use weights::{NORMAL_EQUATIONS, WeightSpace};

use super::Settings;
use crate::Result;
use crate::control::{Control, Progress};
use crate::linalg::{BLOCK, falling_zero, ordered_sum};
use crate::loss::MarginLoss;
use crate::problem::{Bias, Certificate, MarginProblem, StopReason, not_negative};
use rayon::prelude::*;

/// The quadratic model of the objective at the current margins.
pub struct QuadraticModel<'a> {
    /// `a_i = −` slope of row `i`, variance included.
    pub a: &'a [f64],
    /// Curvature `h_i` of row `i`, without the variance.
    pub curvature: &'a [f64],
    /// `κ`
    pub variance: f64,
    /// `s_i`
    pub weights: &'a [f64],
    /// The relative duality gap here, and the one that is wanted: a system that is solved by iteration need not be solved much
    /// better than that.
    pub gap: f64,
    /// See [`gap`](Self::gap).
    pub tol: f64,
    /// What they are relative to.
    pub scale: f64,
}

impl QuadraticModel<'_> {
    /// Takes from `a` what `step` times a change `d` of the margins takes while no row crosses a kink,
    /// `h_i d_i + 2 κ s_i (d_i − d̄)`.
    pub fn lessen(&self, a: &mut [f64], step: f64, d: &[f64]) {
        for (a, (h, d)) in a.iter_mut().zip(self.curvature.iter().zip(d)) {
            *a -= step * h * d;
        }
        if self.variance > 0.0 {
            let mean = crate::linalg::dot(self.weights, d) / self.weights.iter().sum::<f64>();
            for (a, (s, d)) in a.iter_mut().zip(self.weights.iter().zip(d)) {
                *a -= step * 2.0 * self.variance * s * (d - mean);
            }
        }
    }
}

/// A step `δ` from the current point: what it does to the margins and to `‖w‖²`.
pub struct Direction {
    /// Change of each margin.
    pub margins: Vec<f64>,
    /// `w · δ`
    pub along: f64,
    /// `‖δ‖²`
    pub norm2: f64,
}

/// Where `w` lives: as a weight vector, or as coefficients of kernel functions.
pub trait Space {
    /// The margins at the current point.
    fn margins(&self) -> &[f64];
    /// `‖w‖²`
    fn norm2(&self) -> f64;
    /// The dual variables that the point is, `w = Σ a_i y_i φ(x_i)`, where it is kept as such and they are feasible.
    fn own_dual(&self) -> Option<Vec<f64>> {
        None
    }
    /// `‖w − Σ a_i y_i φ(x_i)‖²`
    fn distance2(&mut self, a: &[f64]) -> f64;
    /// The Newton step of the model, whose `a` was the last given to [`distance2`](Self::distance2); kept until
    /// [`advance`](Self::advance).
    fn direction(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<Direction>;
    /// Goes `step` times the last direction, which is handed back with the model it came from.
    fn advance(&mut self, step: f64, direction: Direction, model: &QuadraticModel<'_>);
}

/// What Newton's method found; the point itself is in the [`Space`].
pub struct NewtonEnd {
    /// How good it is.
    pub certificate: Certificate,
    /// Why it stopped.
    pub stop: StopReason,
    /// Newton steps.
    pub steps: usize,
    /// Dual variables `a_i`, feasible.
    pub a: Vec<f64>,
}

/// `σ` is divided by this after each move of the multipliers.
const SHRINK: f64 = 2.0;
/// With multipliers to start from, so much of the way lies behind.
const NEARER: f64 = 4.0;

/// Minimises the problem from the point in `space`; `v` are multipliers to start from (zeros if it has none).
pub fn newton(
    space: &mut dyn Space,
    problem: &MarginProblem<'_>,
    mut v: Vec<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<NewtonEnd> {
    let limit = settings.max_iter.unwrap_or(500);
    let smooth = problem.loss.is_smooth();
    let mut sigma = first_sigma(problem);
    if v.iter().any(|v| *v != 0.0) {
        sigma /= NEARER;
    }
    let mut best = f64::INFINITY;
    let (mut steps, mut stale) = (0, 0);
    let mut outer = Smoothed::new(problem, smooth, sigma, &v);
    let mut spare = Spare::default();
    loop {
        let point = outer.evaluate(problem, space, spare);
        let scale = point.primal.abs().max((point.primal - point.gap()).abs());
        let relative = if scale > 0.0 { point.gap() / scale } else { 0.0 };
        control.report(Progress { iteration: steps, objective: Some(point.primal), gap: Some(relative) })?;
        let close = point.gap() <= settings.tol * scale;
        stale = if point.gap() < 0.9 * best { 0 } else { stale + 1 };
        best = best.min(point.gap());
        let stuck = stale >= if smooth { 12 } else { 30 } && relative < 1e-6 || stale >= 60;
        if close || stuck || steps >= limit {
            let (certificate, a) = certify(space, problem, &point);
            let gap = certificate.gap();
            let stop = match gap {
                gap if gap <= settings.tol => StopReason::Gap,
                _ if steps >= limit => StopReason::Iterations,
                // Nothing has got better for many steps: rounding hides where to go.
                _ if stuck => StopReason::Precision,
                _ => StopReason::Iterations,
            };
            if gap <= settings.tol || stuck || steps >= limit {
                return Ok(NewtonEnd { certificate, stop, steps, a });
            }
            // The certificate asked about other dual variables; the direction is to start from these.
            space.distance2(&point.a);
        }
        // The inner problem is solved well enough once its part of the gap is below the rows' part.
        if !smooth && 0.5 * point.distance2 <= point.row_gap && point.balance <= 0.1 {
            sigma /= SHRINK;
            v = problem.loss_part(&point.a, space.margins());
            outer = Smoothed::new(problem, smooth, sigma, &v);
            spare = point.spare();
            continue;
        }
        let model = QuadraticModel {
            a: &point.a,
            curvature: &point.curvature,
            variance: problem.variance,
            weights: problem.weights,
            gap: relative,
            tol: settings.tol,
            scale,
        };
        let direction = space.direction(&model, control)?;
        // Coefficients that are their own dual point leave zeros where a whole step does: that is gone if it does not go far wrong.
        let enough = if point.own.is_some() { ROUGH_SEARCH } else { LINE_SEARCH };
        let step = outer.line_search(problem, space.margins(), &direction, point.slope(&direction), enough);
        space.advance(step, direction, &model);
        spare = point.spare();
        steps += 1;
    }
}

/// A first `σ`: the envelope of a kink of height `C` is quadratic over a stretch `σ C` of margins: at first 2, so
/// that the zero margins of the start lie inside.
fn first_sigma(problem: &MarginProblem<'_>) -> f64 {
    2.0 / problem.height()
}

/// The smooth problem of one round of multipliers.
struct Smoothed {
    loss: MarginLoss,
    /// `σ v_i / s_i`; empty if the loss was smooth to begin with.
    offsets: Vec<f64>,
}

/// The smooth problem at one point.
struct SmoothPoint {
    a: Vec<f64>,
    curvature: Vec<f64>,
    primal: f64,
    row_gap: f64,
    distance2: f64,
    /// `|Σ a_i y_i| / Σ |a_i|` for a free intercept.
    balance: f64,
    /// The point's own dual variables, where it is judged by these.
    own: Option<Vec<f64>>,
}

impl SmoothPoint {
    fn gap(&self) -> f64 {
        self.row_gap + 0.5 * self.distance2
    }

    /// Its memory, for the next point: that of many rows is dear to get.
    fn spare(self) -> Spare {
        Spare { a: self.a, curvature: self.curvature }
    }

    /// Slope of the objective along a direction, at its start.
    fn slope(&self, direction: &Direction) -> f64 {
        direction.along - crate::linalg::dot(&self.a, &direction.margins)
    }
}

/// Memory of a point that is done with.
#[derive(Default)]
struct Spare {
    a: Vec<f64>,
    curvature: Vec<f64>,
}

/// Sums over rows.
#[derive(Default)]
struct Sums {
    /// What the rows add to the objective.
    risk: f64,
    /// What they add to the duality gap.
    gap: f64,
    /// `Σ |a_i|`
    size: f64,
    /// `Σ a_i y_i`
    balance: f64,
}

impl Sums {
    fn plus(self, other: Self) -> Self {
        Self {
            risk: self.risk + other.risk,
            gap: self.gap + other.gap,
            size: self.size + other.size,
            balance: self.balance + other.balance,
        }
    }
}

impl Smoothed {
    fn new(problem: &MarginProblem<'_>, smooth: bool, sigma: f64, v: &[f64]) -> Self {
        if smooth {
            return Self { loss: problem.loss, offsets: Vec::new() };
        }
        let offsets = v.iter().zip(problem.weights).map(|(v, s)| sigma * v / s).collect();
        Self { loss: problem.loss.envelope(sigma), offsets }
    }

    fn shifted(&self, i: usize, margin: f64) -> f64 {
        margin - self.offsets.get(i).copied().unwrap_or(0.0)
    }

    fn evaluate(&self, problem: &MarginProblem<'_>, space: &mut dyn Space, spare: Spare) -> SmoothPoint {
        let margins = space.margins();
        let mean = if problem.variance > 0.0 { problem.mean(margins) } else { 0.0 };
        let Spare { mut a, mut curvature } = spare;
        a.resize(margins.len(), 0.0);
        curvature.resize(margins.len(), 0.0);
        let block = |(number, (a, curvature)): (usize, (&mut [f64], &mut [f64]))| {
            let mut sums = Sums::default();
            for (k, (a, curvature)) in a.iter_mut().zip(curvature).enumerate() {
                let i = number * BLOCK + k;
                (*a, *curvature) = self.row(problem, i, margins[i], mean, &mut sums);
            }
            sums
        };
        let blocks = a.par_chunks_mut(BLOCK).zip(curvature.par_chunks_mut(BLOCK)).enumerate();
        let sums = if margins.len() <= BLOCK {
            block((0, (&mut a, &mut curvature)))
        } else {
            blocks.map(block).collect::<Vec<_>>().into_iter().fold(Sums::default(), Sums::plus)
        };
        let balance = match problem.bias {
            Bias::Free => sums.balance.abs() / sums.size.max(f64::MIN_POSITIVE),
            _ => 0.0,
        };
        let primal = 0.5 * space.norm2() + sums.risk;
        // A point's own dual variables ask for no product.
        let own = space.own_dual().filter(|_| self.offsets.is_empty() && problem.variance == 0.0);
        let (row_gap, distance2) = match own.as_ref().map(|v| problem.row_gap(margins, v)).filter(|gap| gap.is_finite())
        {
            Some(row_gap) => (row_gap, 0.0),
            None => (sums.gap, space.distance2(&a)),
        };
        let own = own.filter(|_| distance2 == 0.0);
        SmoothPoint { a, curvature, primal, row_gap, distance2, balance, own }
    }

    /// `a_i` and `h_i` of a row; what it adds to the sums.
    #[inline]
    fn row(&self, problem: &MarginProblem<'_>, i: usize, margin: f64, mean: f64, sums: &mut Sums) -> (f64, f64) {
        let (s, centred) = (problem.weights[i], margin - mean);
        let (v, curvature, loss) = if self.offsets.is_empty() {
            // The slope at the margin itself: loss and conjugate meet, and there is no gap.
            let (value, slope, curvature) = self.loss.jet(margin);
            (-s * slope, s * curvature, value)
        } else {
            let (_, slope, curvature) = self.loss.jet(self.shifted(i, margin));
            let (v, value) = (-s * slope, problem.loss.value(margin));
            sums.gap += not_negative(s * (value + problem.loss.conjugate(slope)) + v * margin);
            (v, s * curvature, value)
        };
        let a = v - 2.0 * problem.variance * s * centred;
        sums.risk += s * (problem.variance * centred * centred + loss);
        sums.size += a.abs();
        sums.balance += a * problem.y[i];
        (a, curvature)
    }

    /// Where the slope of the objective along the direction is zero, up to this part of what it is at the start.
    fn line_search(
        &self,
        problem: &MarginProblem<'_>,
        margins: &[f64],
        direction: &Direction,
        slope0: f64,
        enough: f64,
    ) -> f64 {
        let change = &direction.margins;
        let (mean, mean_change) = match problem.variance > 0.0 {
            true => (problem.mean(margins), problem.mean(change)),
            false => (0.0, 0.0),
        };
        let slope = |t: f64| {
            let rows = ordered_sum(margins.len(), |i| {
                let margin = margins[i] + t * change[i];
                let loss = self.loss.slope(self.shifted(i, margin)) * change[i];
                let centred = (margin - mean) - t * mean_change;
                problem.weights[i] * (loss + 2.0 * problem.variance * centred * (change[i] - mean_change))
            });
            direction.along + t * direction.norm2 + rows
        };
        root_of_slope(slope0, slope, enough)
    }
}

/// How well a line is searched, in parts of the slope at its start.
pub const LINE_SEARCH: f64 = 0.01;
const ROUGH_SEARCH: f64 = 0.3;

/// The `t > 0` where a rising slope that begins at `slope0 < 0` is zero, up to a part of `slope0`; 0 where rounding errors hide any
/// descent.
pub fn root_of_slope(slope0: f64, slope: impl Fn(f64) -> f64, enough: f64) -> f64 {
    if slope0 >= 0.0 || slope0.is_nan() {
        return 0.0;
    }
    let falling = |t: f64| if t == 0.0 { -slope0 } else { -slope(t) };
    falling_zero(falling, 0.0, 1.0, enough * slope0.abs()).min(LONGEST_STEP)
}

/// A slope that does not rise within this many Newton steps is one that rounding errors made.
const LONGEST_STEP: f64 = 1e6;

/// The exact certificate of a point. Only with a free intercept its dual variables have to be made feasible first: slopes of
/// the loss are.
fn certify(space: &mut dyn Space, problem: &MarginProblem<'_>, point: &SmoothPoint) -> (Certificate, Vec<f64>) {
    let certificate = Certificate { primal: point.primal, dual: point.primal - point.gap() };
    if let Some(own) = &point.own {
        return (certificate, own.clone());
    }
    if problem.bias == Bias::Free {
        let v = problem.loss_part(&point.a, space.margins());
        return self::certificate(space, problem, v);
    }
    (certificate, point.a.clone())
}

/// The certificate of the point in `space` with dual variables `v` of the loss (made feasible first).
pub fn certificate(space: &mut dyn Space, problem: &MarginProblem<'_>, mut v: Vec<f64>) -> (Certificate, Vec<f64>) {
    let mut u = problem.variance_part(space.margins());
    problem.make_feasible(&mut u, &mut v);
    let a: Vec<f64> = u.iter().zip(&v).map(|(u, v)| u + v).collect();
    let gap = problem.row_gap(space.margins(), &v)
        + problem.variance_gap(space.margins(), &a, &v)
        + 0.5 * space.distance2(&a);
    let primal = 0.5 * space.norm2() + problem.risk(space.margins());
    (Certificate { primal, dual: primal - gap }, a)
}
