//! Dual coordinate descent with shrinking, for every loss of the family, over a weight vector.
//!
//! With `w = Σ a_i y_i φ(x_i)` one step finds the `a_i` that is best while all others stand still: the margin goes to
//! `γ' = prox_{q_i s_i φ}(γ_i − a_i q_i)`, `q_i = ‖φ(x_i)‖²`, and `a_i' = (γ' − γ_i) / q_i + a_i`. For the hinge that is
//! LIBLINEAR's projected step (Hsieh et al. 2008, Algorithm 1), for ODM a soft threshold (ODM, Algorithm 1, with one
//! signed variable a row instead of the pair `ζ, β`).
//!
//! - The intercept is a constant feature `√ρ` around a centre `b̄`: `b = b̄ + ρ (Σ a_i y_i − b̄ / B²)` (`1 / B² = 0` if it is
//!   free), and after each pass `b̄ = b`. This is the proximal method of multipliers (Rockafellar 1976) with one pass a round:
//!   every step is an ascent, and at rest nothing pulls. A large `ρ` ties all rows together and makes each step short, a small
//!   one makes the centre slow; between them lies a multiple of what the rows answer to a change of `b`.
//! - LDM's variance is a plain loss `κ (γ − t)²` for a fixed `t`; `t` follows the mean margin.

use super::Settings;
use super::certify::{Certified, best_intercept, weights_as_they_are};
use crate::Result;
use crate::control::{Control, Progress};
use crate::data::Rows;
use crate::design::Design;
use crate::linalg::{BLOCK, fold};
use crate::loss::MarginLoss;
use crate::problem::{Bias, MarginProblem, StopReason, not_negative};
use crate::random::Random;

/// `w = Σ c_i x_i` as a vector (with the weight of a regularised constant feature at its end), while its coefficients change one at a
/// time.
pub struct Weights<'a, X: Rows> {
    /// The rows, and the passes over them.
    pub x: &'a X,
    design: &'a Design<'a>,
    y: &'a [f64],
    /// `w`
    pub w: Vec<f64>,
    norms2: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(x: &'a X, design: &'a Design<'a>, y: &'a [f64]) -> Self {
        let norms2 =
            fold(x.rows(), x.rows().div_ceil(BLOCK), |rows| rows.map(|i| x.norm2(i)).collect::<Vec<f64>>()).concat();
        // Written, not only reserved: a page that is read before it is written is mapped twice.
        let mut w = vec![0.0; design.width()];
        std::hint::black_box(&mut w).fill(0.0);
        Self { x, design, y, w, norms2 }
    }

    /// The intercept is the business of coordinate descent itself; here it becomes a weight.
    fn place(&mut self, intercept: f64) {
        if let Some(last) = self.w.get_mut(self.x.cols()) {
            *last = intercept / self.design.constant();
        }
    }

    /// `w · x_i`
    #[inline(always)]
    fn score(&self, i: usize) -> f64 {
        self.x.dot(i, &self.w[..self.x.cols()])
    }

    /// `c_i += change`
    #[inline(always)]
    fn change(&mut self, i: usize, change: f64) {
        self.x.axpy(i, change, &mut self.w[..self.x.cols()]);
    }

    /// So many neighbouring rows are visited one after the other: long enough for memory to be read ahead; of few rows each goes
    /// alone, as files are often sorted by class.
    fn together(&self) -> usize {
        (self.x.rows() / 256).clamp(1, 64)
    }

    /// `γ_i` at this intercept.
    fn margins(&mut self, intercept: f64) -> Vec<f64> {
        self.place(intercept);
        let mut margins = vec![0.0; self.x.rows()];
        self.design.margins(self.y, &self.w, &mut margins);
        margins
    }

    /// Certifies this point by dual variables `v` of the loss, at this intercept or a better one, which is handed back.
    fn certify(&mut self, problem: &MarginProblem<'_>, intercept: f64, v: Vec<f64>) -> (Certified, f64) {
        self.place(intercept);
        let certified = match problem.variance > 0.0 {
            true => weights_as_they_are(self.design, problem, &self.w, Some(v)),
            false => best_intercept(self.design, problem, &mut self.w, v),
        };
        (certified, self.design.split(&self.w).1)
    }
}

/// What coordinate descent found.
pub struct DcdEnd {
    /// What can be said of the point, which is in the [`Weights`].
    pub certified: Certified,
    /// Why it stopped.
    pub stop: StopReason,
    /// Passes over the rows.
    pub passes: usize,
}

/// When coordinate descent gives up, and what counts as done.
#[derive(Clone, Copy)]
pub struct Patience {
    /// At most this many passes.
    pub passes: usize,
    /// Stop earlier if the gap crawls.
    pub leave_when_crawling: bool,
    /// The kernel is not positive semidefinite: there is no gap to go by, so stop once no margin moves by more than the
    /// tolerance.
    pub indefinite: bool,
}

/// Minimises the problem over a positive semidefinite kernel.
pub fn descend<X: Rows>(
    weights: &mut Weights<'_, X>,
    problem: &MarginProblem<'_>,
    settings: &Settings,
    patience: Patience,
    control: Control<'_>,
) -> Result<DcdEnd> {
    let limit = patience.passes;
    let m = problem.y.len();
    let mut state = DualState::new(weights.norms2.clone(), problem, false);
    let answer = state.first_answer();
    state.pull_by(answer);
    let mut random = Random::new(settings.seed, 0x0064_6364);
    let mut active: Vec<usize> = (0..m).collect();
    let mut threshold = f64::INFINITY;
    let (mut next_check, mut refused, mut scale, mut moved) = (10, f64::INFINITY, 0.0, 0.0);
    let mut history: Vec<(usize, f64)> = Vec::new();
    for pass in 1.. {
        active = shuffled(active, weights.together(), &mut random);
        let whole = active.len() == m;
        let limits = Limits { rest: threshold, still: STILL * moved };
        let seen = state.pass(weights, &mut active, limits, control)?;
        if whole {
            scale = seen.primal.abs();
        }
        let estimate = seen.gap / scale.max(f64::MIN_POSITIVE);
        let expected = estimate * history.last().map_or(1.0, |(_, before)| (estimate / before).min(1.0));
        history.push((pass, estimate));
        moved = seen.moved.max(state.pull().abs());
        // Rows are set aside only if they rest far beyond what still moves.
        threshold = if moved > 0.0 { 2.0 * moved } else { f64::INFINITY };
        let rest = moved <= 1e-13;
        let crawling = patience.leave_when_crawling && crawls(&history, settings.tol, problem.loss.is_smooth());
        let promising = expected <= settings.tol && expected <= 0.7 * refused;
        if !(promising || crawling || rest || pass >= next_check || pass >= limit) {
            control.report(Progress { iteration: pass, objective: None, gap: None })?;
            state.follow(seen.answer.max(LEAST_ANSWER * answer));
            continue;
        }
        next_check = pass + (pass / 2).max(5);
        let (certified, intercept) = state.certify(weights);
        let gap = certified.certificate.gap();
        control.report(Progress { iteration: pass, objective: Some(certified.certificate.primal), gap: Some(gap) })?;
        let all_active = active.len() == m;
        let stop = if gap <= settings.tol {
            Some(StopReason::Gap)
        } else if pass >= limit || crawling {
            Some(StopReason::Iterations)
        } else if rest && all_active && gap < 1e-6 && state.settled() {
            Some(StopReason::Precision)
        } else {
            None
        };
        if let Some(stop) = stop {
            return Ok(DcdEnd { certified, stop, passes: pass });
        }
        refused = if promising { expected } else { refused };
        if expected <= 0.1 * gap {
            // The rows have come to terms with the centre: it is the centre that is far from its place.
            state.intercept = intercept;
        }
        if rest || promising || moved < 0.1 * gap {
            active = (0..m).collect();
            threshold = f64::INFINITY;
        }
        state.follow(seen.answer.max(LEAST_ANSWER * answer));
    }
    unreachable!("the loop ends at its limit")
}

/// Every so manieth row of a pass is asked what it adds to the duality gap, and how it answers to the intercept. Rows are asked
/// before they move: it is the gap after the pass before, and falls by about the same factor each time.
const SAMPLE: usize = 8;
/// Of fewer rows all are asked: a sample of an eighth would be too small to foretell a gap by.
const FEW: usize = 2048;
/// `ρ` is this many times `1 / Σ 1 / (‖x_i‖² + 1 / h_i)` over the rows between their bounds, `h_i` the curvature of their loss:
/// what it would be best were rows orthogonal. They are not, and their answer is the smaller.
const SHARE: f64 = 16.0;
/// Rows between their bounds may be few at first; their answer is taken for at least this part of that of all, so that `ρ` stays within
/// a factor of fifty of where it began.
const LEAST_ANSWER: f64 = 0.02;
/// Shorter rows than this part of the mean `‖x_i‖²` count as this long: a row that is nearly zero answers for a thousand others at most.
const SHORT: f64 = 1e-3;
/// Moves of this part of the largest of the pass before are left for later: what they cost is read and written memory.
const STILL: f64 = 1e-3;

/// When a row of a pass is left alone.
#[derive(Clone, Copy)]
struct Limits {
    /// It is taken out if its margin may go farther than this before it moves.
    rest: f64,
    /// It does not move its margin by less than this.
    still: f64,
}

/// The rows in a random order of groups of neighbours.
fn shuffled(rows: Vec<usize>, together: usize, random: &mut Random) -> Vec<usize> {
    let mut rows = rows;
    if together <= 1 {
        random.shuffle(&mut rows);
        return rows;
    }
    let mut groups: Vec<&[usize]> = rows.chunks(together).collect();
    random.shuffle(&mut groups);
    groups.concat()
}

/// Whether the gap falls so slowly that the tolerance is too many passes away: 300, or 60 of a smooth loss, for which
/// Newton's method has little to do.
fn crawls(history: &[(usize, f64)], tol: f64, smooth: bool) -> bool {
    let (soonest, farthest) = if smooth { (16, 60.0) } else { (60, 300.0) };
    let Some(&(pass, gap)) = history.last() else { return false };
    let Some(&(before, then)) = history.iter().rev().find(|(p, _)| 2 * p <= pass) else { return false };
    if pass < soonest {
        return false;
    }
    let rate = (then / gap).ln() / (pass - before) as f64;
    rate <= 0.0 || (gap / tol).ln() / rate > farthest
}

/// What a pass saw.
#[derive(Default)]
struct Seen {
    /// The largest move of a margin.
    moved: f64,
    /// About what the rows it met add to the duality gap.
    gap: f64,
    /// About their part of the primal objective.
    primal: f64,
    /// About `Σ 1 / (‖x_i‖² + 1 / h_i)`: how far `Σ a_i y_i` falls, row by row, if `b` rises by one.
    answer: f64,
}

/// The dual variables with the two scalars that follow them.
pub(super) struct DualState<'p, 'a> {
    pub(super) problem: &'p MarginProblem<'a>,
    /// `φ`, with `κ (γ − t)²` added at the current `t`.
    pub(super) loss: MarginLoss,
    pub(super) a: Vec<f64>,
    /// Change of a margin per change of its `a`, while the intercept stands still.
    q: Vec<f64>,
    /// Square of the constant feature.
    pub(super) rho: f64,
    /// `b`, which moves by `ρ` times what `Σ c_i` moves by.
    pub(super) intercept: f64,
    /// `Σ c_i`
    pub(super) balance: f64,
    /// `t`, and the mean margin seen in the last pass.
    pub(super) shift: f64,
    mean: f64,
}

impl<'p, 'a> DualState<'p, 'a> {
    pub(super) fn new(diagonal: Vec<f64>, problem: &'p MarginProblem<'a>, indefinite: bool) -> Self {
        let m = problem.y.len();
        let rho = match problem.bias {
            Bias::Free => (diagonal.iter().sum::<f64>() / m as f64).max(f64::MIN_POSITIVE),
            Bias::Feature(value) => value * value,
            Bias::None => 0.0,
        };
        // Over an indefinite kernel a step that trusts a tiny or negative curvature would never settle.
        let size = diagonal.iter().map(|q| q.abs()).sum::<f64>() / m as f64;
        let least = if indefinite { 0.1 * size } else { 0.0 };
        let q = diagonal.into_iter().map(|q| q.max(least)).collect();
        let (a, loss) = (vec![0.0; m], problem.loss);
        let mut state = Self { problem, loss, a, q, rho, intercept: 0.0, balance: 0.0, shift: 0.0, mean: 0.0 };
        state.set_shift(0.0);
        state
    }

    pub(super) fn set_shift(&mut self, t: f64) {
        let k = self.problem.variance;
        self.shift = t;
        self.loss = self.problem.loss.plus(2.0 * k, -2.0 * k * t, k * t * t);
    }

    /// The best `a_i` while all others stand still, given `Σ_j c_j k(x_j, x_i)`, and how far it would move the margin.
    #[inline(always)]
    pub(super) fn step(&self, i: usize, score: f64) -> (f64, f64) {
        self.step_at(i, score, self.intercept)
    }

    /// The same at another intercept.
    #[inline(always)]
    pub(super) fn step_at(&self, i: usize, score: f64, intercept: f64) -> (f64, f64) {
        let (s, q) = (self.problem.weights[i], self.q[i] + self.rho);
        let margin = self.problem.y[i] * (score + intercept);
        let a = if q > 0.0 {
            let from = margin - self.a[i] * q;
            (self.loss.prox(from, q * s) - from) / q
        } else {
            -s * self.loss.slope(margin)
        };
        (a, (a - self.a[i]).abs() * q)
    }

    /// Takes a step; hands back the change of `c_i = a_i y_i`.
    #[inline(always)]
    pub(super) fn take(&mut self, i: usize, a: f64) -> f64 {
        let change = (a - self.a[i]) * self.problem.y[i];
        self.a[i] = a;
        self.balance += change;
        self.intercept += self.rho * change;
        change
    }

    /// One pass over the active rows. Rows that rest are taken out.
    fn pass<X: Rows>(
        &mut self,
        weights: &mut Weights<'_, X>,
        active: &mut Vec<usize>,
        limits: Limits,
        control: Control<'_>,
    ) -> Result<Seen> {
        let mut seen = Seen::default();
        let (mut kept, mut weight, mut mean) = (0, 0.0, 0.0);
        let sample = if active.len() < FEW { 1 } else { SAMPLE };
        let short = self.short();
        for k in 0..active.len() {
            if k % 1024 == 0 {
                control.check()?;
            }
            let i = active[k];
            let (y, s) = (self.problem.y[i], self.problem.weights[i]);
            let score = weights.score(i);
            let margin = y * (score + self.intercept);
            let (a, move_) = self.step(i, score);
            if k % sample == 0 {
                let (loss, before) = (s * self.loss.value(margin), self.a[i]);
                seen.gap += not_negative(loss + s * self.loss.conjugate(-before / s) + before * margin);
                seen.primal += loss + 0.5 * before * margin;
                seen.answer += self.answer(i, s * self.loss.curvature_of(-a / s), short);
            }
            let change = a - self.a[i];
            seen.moved = seen.moved.max(move_);
            weight += s;
            mean += s * (margin + change * (self.q[i] + self.rho));
            if move_ <= 1e-300 && self.loss.rest(margin, -self.a[i] / s) > limits.rest {
                continue;
            }
            if change != 0.0 && move_ >= limits.still {
                let change = self.take(i, a);
                weights.change(i, change);
            }
            active[kept] = i;
            kept += 1;
        }
        active.truncate(kept);
        self.mean = if weight > 0.0 { mean / weight } else { self.shift };
        for sum in [&mut seen.gap, &mut seen.primal, &mut seen.answer] {
            *sum *= sample as f64;
        }
        Ok(seen)
    }

    /// How far `a_i` falls if the margin rises by one, at a curvature `h` of the row's loss.
    fn answer(&self, i: usize, h: f64, short: f64) -> f64 {
        if h > 0.0 { 1.0 / (self.q[i].max(short) + 1.0 / h) } else { 0.0 }
    }

    /// The `‖x_i‖²` below which a row counts as short.
    fn short(&self) -> f64 {
        let mean = self.q.iter().sum::<f64>() / self.q.len().max(1) as f64;
        if mean > 0.0 { SHORT * mean } else { 1.0 }
    }

    /// The answer of all rows, as they all begin by moving.
    fn first_answer(&self) -> f64 {
        let short = self.short();
        let curvature = match self.problem.loss.curvature(0.0) {
            p if self.problem.loss.is_smooth() && p > 0.0 => p,
            _ => f64::INFINITY,
        };
        (0..self.q.len()).map(|i| self.answer(i, self.problem.weights[i] * curvature, short)).sum()
    }

    /// `1 / B²`, how strongly the intercept is regularised.
    fn ridge(&self) -> f64 {
        self.problem.bias.feature().map_or(0.0, |value| 1.0 / (value * value))
    }

    /// Sets `ρ` for rows that answer so much.
    fn pull_by(&mut self, answer: f64) {
        let rho = SHARE / answer;
        self.rho = match self.problem.bias {
            Bias::Free => rho,
            Bias::Feature(value) => rho.min(value * value),
            Bias::None => 0.0,
        };
    }

    /// How far the intercept goes if the centre goes where it is.
    fn pull(&self) -> f64 {
        self.rho * (self.balance - self.ridge() * self.intercept)
    }

    /// Lets the centre follow the intercept and `t` the mean margin.
    fn follow(&mut self, answer: f64) {
        self.pull_by(answer);
        self.intercept += self.pull();
        if self.problem.variance > 0.0 {
            self.set_shift(self.mean);
        }
    }

    fn settled(&self) -> bool {
        self.pull().abs() < 1e-12 && (self.problem.variance == 0.0 || (self.mean - self.shift).abs() < 1e-12)
    }

    /// The certificate of the present point, and the intercept it was made with.
    fn certify<X: Rows>(&self, weights: &mut Weights<'_, X>) -> (Certified, f64) {
        let (problem, mut intercept, mut v) = (self.problem, self.intercept, self.a.clone());
        let (mut margins, mut u) = (Vec::new(), vec![0.0; v.len()]);
        if problem.variance > 0.0 {
            // What of `a` belongs to the variance was decided with the present `t`; the rest is the loss's.
            margins = weights.margins(intercept);
            let step = problem.intercept_step(&margins, intercept);
            intercept += step;
            margins.iter_mut().zip(problem.y).for_each(|(g, y)| *g += step * y);
            let pull = |i: usize| 2.0 * problem.variance * problem.weights[i] * (margins[i] - self.shift);
            v.iter_mut().enumerate().for_each(|(i, v)| *v += pull(i));
            u = problem.variance_part(&margins);
        }
        problem.settle(intercept, &margins, &u, &mut v);
        weights.certify(problem, intercept, v)
    }
}
