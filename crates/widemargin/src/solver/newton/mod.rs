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
mod preconditioner;
mod weights;

pub use coefficients::{CoefficientSpace, KernelMatrix, Pieces};
pub use preconditioner::Preconditioner;
pub use weights::{NORMAL_EQUATIONS, WeightSpace, by_products, factored};

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
    fn distance2(&mut self, a: &[f64]) -> Result<f64>;
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

/// `σ` is divided by this after each move of the multipliers: gently, so that each round begins near its solution.
const SHRINK: f64 = 2.0;
/// With multipliers to start from, so much of the way lies behind: two rounds.
const NEARER: f64 = 4.0;

/// A problem at a point, as Newton's method needs it: of rows in memory (`InMemory`), or of rows elsewhere of which only sums come
/// (`solver::parts`).
pub trait NewtonProblem {
    /// The smooth problem of this round at the current point.
    fn evaluate(&mut self) -> Result<Standing>;
    /// The exact certificate of the current point.
    fn certify(&mut self) -> Result<Certificate>;
    /// Multipliers take the slopes of the current point, and the envelope this width.
    fn next_round(&mut self, sigma: f64);
    /// One Newton step with its line search.
    fn step(&mut self, aim: &Aim, control: Control<'_>) -> Result<()>;
}

/// How well a step is to be taken.
pub struct Aim {
    /// The relative duality gap at its start.
    pub gap: f64,
    /// The one that is wanted.
    pub tol: f64,
    /// What they are relative to.
    pub scale: f64,
}

/// The smooth problem at one point, in sums.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    /// The objective.
    pub primal: f64,
    /// What the rows add to the duality gap.
    pub row_gap: f64,
    /// `‖w − Σ a_i y_i φ(x_i)‖²`
    pub distance2: f64,
    /// `|Σ a_i y_i| / Σ |a_i|` for a free intercept.
    pub balance: f64,
}

impl Standing {
    fn gap(&self) -> f64 {
        self.row_gap + 0.5 * self.distance2
    }
}

/// Steps and rounds until the relative duality gap is at most the tolerance; `sigma` is the width of the first envelope if the
/// loss has kinks. Says how good the last point is, why it stopped, and after how many steps.
pub fn iterate(
    problem: &mut dyn NewtonProblem,
    mut sigma: Option<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<(Certificate, StopReason, usize)> {
    let limit = settings.max_iter.unwrap_or(500);
    let mut best = f64::INFINITY;
    let (mut steps, mut stale) = (0, 0);
    loop {
        let point = problem.evaluate()?;
        let scale = point.primal.abs().max((point.primal - point.gap()).abs());
        let relative = if scale > 0.0 { point.gap() / scale } else { 0.0 };
        control.report(Progress { iteration: steps, objective: Some(point.primal), gap: Some(relative) })?;
        let close = point.gap() <= settings.tol * scale;
        stale = if point.gap() < 0.9 * best { 0 } else { stale + 1 };
        best = best.min(point.gap());
        let stuck = stale >= if sigma.is_none() { 12 } else { 30 } && relative < 1e-6 || stale >= 60;
        if close || stuck || steps >= limit {
            let certificate = problem.certify()?;
            let gap = certificate.gap();
            let stop = match gap {
                gap if gap <= settings.tol => StopReason::Gap,
                _ if steps >= limit => StopReason::Iterations,
                // Nothing has got better for many steps: rounding hides where to go.
                _ if stuck => StopReason::Precision,
                _ => StopReason::Iterations,
            };
            if gap <= settings.tol || stuck || steps >= limit {
                return Ok((certificate, stop, steps));
            }
        }
        // The inner problem is solved well enough once its part of the gap is below the rows' part.
        if let Some(sigma) = &mut sigma
            && 0.5 * point.distance2 <= point.row_gap
            && point.balance <= 0.1
        {
            *sigma /= SHRINK;
            problem.next_round(*sigma);
            continue;
        }
        problem.step(&Aim { gap: relative, tol: settings.tol, scale }, control)?;
        steps += 1;
    }
}

/// Minimises the problem from the point in `space`; `v` are multipliers to start from (zeros if it has none).
pub fn newton(
    space: &mut dyn Space,
    problem: &MarginProblem<'_>,
    v: Vec<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<NewtonEnd> {
    let sigma = (!problem.loss.is_smooth()).then(|| {
        let nearer = if v.iter().any(|v| *v != 0.0) { NEARER } else { 1.0 };
        first_sigma(problem.height()) / nearer
    });
    let outer = Smoothed::new(problem, sigma, &v);
    let point = SmoothPoint { own_gap: f64::INFINITY, ..SmoothPoint::default() };
    let mut here = InMemory { space, problem, outer, point, certified: Vec::new() };
    let (certificate, stop, steps) = iterate(&mut here, sigma, settings, control)?;
    Ok(NewtonEnd { certificate, stop, steps, a: here.certified })
}

/// Rows in memory.
struct InMemory<'a> {
    space: &'a mut dyn Space,
    problem: &'a MarginProblem<'a>,
    outer: Smoothed,
    /// The point that was evaluated last, or its memory: that of many rows is dear to get.
    point: SmoothPoint,
    /// The dual variables of the last certificate.
    certified: Vec<f64>,
}

impl NewtonProblem for InMemory<'_> {
    fn evaluate(&mut self) -> Result<Standing> {
        self.outer.evaluate(self.problem, self.space, &mut self.point)?;
        Ok(self.point.standing)
    }

    /// Only with a free intercept dual variables have to be made feasible first: slopes of the loss are.
    fn certify(&mut self) -> Result<Certificate> {
        let (problem, point) = (self.problem, &self.point);
        let Standing { primal, .. } = point.standing;
        let here = Certificate { primal, dual: primal - point.standing.gap() };
        let certificate = if let Some(own) = &point.own {
            self.certified = own.clone();
            here
        } else if problem.bias == Bias::Free {
            let v = problem.loss_part(&point.a, self.space.margins());
            let (certificate, a) = certificate(self.space, problem, v)?;
            self.certified = a;
            // That asked about other dual variables; the direction is to start from these.
            self.space.distance2(&point.a)?;
            certificate
        } else {
            self.certified = point.a.clone();
            here
        };
        Ok(certificate)
    }

    fn next_round(&mut self, sigma: f64) {
        let v = self.problem.loss_part(&self.point.a, self.space.margins());
        self.outer = Smoothed::new(self.problem, Some(sigma), &v);
    }

    fn step(&mut self, aim: &Aim, control: Control<'_>) -> Result<()> {
        let (problem, point) = (self.problem, &self.point);
        let model = QuadraticModel {
            a: &point.a,
            curvature: &point.curvature,
            variance: problem.variance,
            weights: problem.weights,
            gap: aim.gap,
            tol: aim.tol,
            scale: aim.scale,
        };
        let direction = self.space.direction(&model, control)?;
        // Coefficients that are their own dual point leave zeros where a whole step does: that is gone if it does not go far wrong.
        let enough = if point.own.is_some() { ROUGH_SEARCH } else { LINE_SEARCH };
        let slope = point.slope(&direction);
        let step = match self.outer.line_search(problem, self.space.margins(), &direction, slope, enough) {
            // Rounding hides the descent in the margins; coefficients still have digits to gain.
            0.0 if point.own.is_some() => 1.0,
            step => step,
        };
        self.space.advance(step, direction, &model);
        Ok(())
    }
}

/// A first `σ`: the envelope of a kink of height `C` is quadratic over a stretch `σ C` of margins: at first 2, so
/// that the zero margins of the start lie inside.
pub fn first_sigma(height: f64) -> f64 {
    2.0 / height
}

/// The smooth problem of one round of multipliers.
pub struct Smoothed {
    loss: MarginLoss,
    /// `σ v_i / s_i`; empty if the loss was smooth to begin with.
    offsets: Vec<f64>,
}

/// The smooth problem at one point.
#[derive(Default)]
struct SmoothPoint {
    a: Vec<f64>,
    curvature: Vec<f64>,
    standing: Standing,
    /// The point's own dual variables, where it is judged by these.
    own: Option<Vec<f64>>,
    /// The gap by them, whether or not it is judged so.
    own_gap: f64,
}

/// A point is judged by its own dual variables alone as long as a step leaves no more than this part of their gap. One that gains
/// less may have changed coefficients that no score depends on, or none at all: then slopes may be the better ones.
const FALLING: f64 = 0.5;

impl SmoothPoint {
    /// Slope of the objective along a direction, at its start.
    fn slope(&self, direction: &Direction) -> f64 {
        direction.along - crate::linalg::dot(&self.a, &direction.margins)
    }
}

/// Sums over rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sums {
    /// What the rows add to the objective.
    pub risk: f64,
    /// What they add to the duality gap.
    pub gap: f64,
    /// `Σ |a_i|`
    pub size: f64,
    /// `Σ a_i y_i`
    pub balance: f64,
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

    /// How far from solved a point with this `‖w‖²` and `‖w − Σ a_i y_i φ(x_i)‖²` is.
    pub fn standing(self, bias: Bias, norm2: f64, distance2: f64) -> Standing {
        let balance = match bias {
            Bias::Free => self.balance.abs() / self.size.max(f64::MIN_POSITIVE),
            _ => 0.0,
        };
        Standing { primal: 0.5 * norm2 + self.risk, row_gap: self.gap, distance2, balance }
    }
}

impl Smoothed {
    /// The loss itself if it is smooth, else its envelope of this width around multipliers `v`.
    pub fn new(problem: &MarginProblem<'_>, sigma: Option<f64>, v: &[f64]) -> Self {
        let Some(sigma) = sigma else {
            return Self { loss: problem.loss, offsets: Vec::new() };
        };
        let offsets = v.iter().zip(problem.weights).map(|(v, s)| sigma * v / s).collect();
        Self { loss: problem.loss.envelope(sigma), offsets }
    }

    fn shifted(&self, i: usize, margin: f64) -> f64 {
        margin - self.offsets.get(i).copied().unwrap_or(0.0)
    }

    fn evaluate(&self, problem: &MarginProblem<'_>, space: &mut dyn Space, point: &mut SmoothPoint) -> Result<()> {
        let margins = space.margins();
        let mean = if problem.variance > 0.0 { problem.mean(margins) } else { 0.0 };
        let sums = self.slopes(problem, margins, mean, &mut point.a, &mut point.curvature);
        // A point's own dual variables ask for no product.
        let smooth = self.offsets.is_empty() && problem.variance == 0.0;
        let mut own = space.own_dual().filter(|v| smooth && problem.are_slopes(v));
        let own_gap = own.as_ref().map_or(f64::INFINITY, |v| problem.row_gap(margins, v));
        let before = std::mem::replace(&mut point.own_gap, own_gap);
        let norm2 = space.norm2();
        point.standing = Standing { row_gap: own_gap, ..sums.standing(problem.bias, norm2, 0.0) };
        if own.is_none() || own_gap.is_nan() || own_gap > FALLING * before {
            let by_slopes = sums.standing(problem.bias, norm2, space.distance2(&point.a)?);
            if own_gap.is_nan() || by_slopes.gap() < own_gap {
                (point.standing, own) = (by_slopes, None);
            }
        }
        point.own = own;
        Ok(())
    }

    /// `a_i` and `h_i` at these margins, whose mean over all rows of the problem (these may be some of them) is given.
    pub fn slopes(
        &self,
        problem: &MarginProblem<'_>,
        margins: &[f64],
        mean: f64,
        a: &mut Vec<f64>,
        curvature: &mut Vec<f64>,
    ) -> Sums {
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
        if margins.len() <= BLOCK {
            return block((0, (a, curvature)));
        }
        let blocks = a.par_chunks_mut(BLOCK).zip(curvature.par_chunks_mut(BLOCK)).enumerate();
        blocks.map(block).collect::<Vec<_>>().into_iter().fold(Sums::default(), Sums::plus)
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
        let means = match problem.variance > 0.0 {
            true => (problem.mean(margins), problem.mean(change)),
            false => (0.0, 0.0),
        };
        root_of_slope(
            slope0,
            |t| {
                let row = |i: usize| self.slope_along(problem, i, (margins[i], change[i]), means, t);
                direction.along + t * direction.norm2 + ordered_sum(margins.len(), row)
            },
            enough,
        )
    }

    /// What a row adds to the slope of the objective along a direction, `t` times that far; `means` are those of margins and
    /// of their change over all rows of the problem.
    pub fn slope_along(
        &self,
        problem: &MarginProblem<'_>,
        i: usize,
        (margin, change): (f64, f64),
        (mean, mean_change): (f64, f64),
        t: f64,
    ) -> f64 {
        let margin = margin + t * change;
        let loss = self.loss.slope(self.shifted(i, margin)) * change;
        let centred = (margin - mean) - t * mean_change;
        problem.weights[i] * (loss + 2.0 * problem.variance * centred * (change - mean_change))
    }

    /// `v_i = −s_i e'(γ_i − σ v_i / s_i)`: the loss's part of the dual variables at these margins, and the next multipliers.
    pub fn multipliers(&self, weights: &[f64], margins: &[f64]) -> Vec<f64> {
        let mut v = Vec::with_capacity(margins.len());
        self.multipliers_into(weights, margins, &mut v);
        v
    }

    /// The same, into a vector that may be one of before.
    pub fn multipliers_into(&self, weights: &[f64], margins: &[f64], v: &mut Vec<f64>) {
        v.clear();
        let rows = margins.iter().zip(weights).enumerate();
        v.extend(rows.map(|(i, (margin, s))| -s * self.loss.slope(self.shifted(i, *margin))));
    }
}

/// How well a line is searched, in parts of the slope at its start: every look is a pass over the margins, and the next step mends what
/// is left.
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

/// The certificate of the point in `space` with dual variables `v` of the loss (made feasible first).
pub fn certificate(
    space: &mut dyn Space,
    problem: &MarginProblem<'_>,
    mut v: Vec<f64>,
) -> Result<(Certificate, Vec<f64>)> {
    let mut u = problem.variance_part(space.margins());
    problem.make_feasible(&mut u, &mut v);
    let a: Vec<f64> = u.iter().zip(&v).map(|(u, v)| u + v).collect();
    let gap = problem.row_gap(space.margins(), &v)
        + problem.variance_gap(space.margins(), &a, &v)
        + 0.5 * space.distance2(&a)?;
    let primal = 0.5 * space.norm2() + problem.risk(space.margins());
    Ok((Certificate { primal, dual: primal - gap }, a))
}
