//! Dual coordinate descent with shrinking, for every loss of the family, over weights or kernel rows.
//!
//! With `w = Σ a_i y_i φ(x_i)` one step finds the `a_i` that is best while all others stand still: the margin goes to
//! `γ' = prox_{q_i s_i φ}(γ_i − a_i q_i)`, `q_i = ‖φ(x_i)‖²`, and `a_i' = (γ' − γ_i) / q_i + a_i`. For the hinge that is
//! LIBLINEAR's projected step (Hsieh et al. 2008, Algorithm 1), for ODM a soft threshold (ODM, Algorithm 1, with one
//! signed variable a row instead of the pair `ζ, β`).
//!
//! - The intercept is a constant feature `√ρ`, `b = b̄ + ρ Σ a_i y_i`. A regularised one has `ρ = B²` and `b̄ = 0`. A *free* one
//!   is found by multipliers: its weight is pulled towards a centre `b̄` that follows it, so that in the end nothing pulls.
//! - LDM's variance is a plain loss `κ (γ − t)²` for a fixed `t`; `t` follows the mean margin.

use super::Settings;
use super::newton::{Space, certificate};
use crate::control::{Control, Progress};
use crate::loss::MarginLoss;
use crate::problem::{Bias, Certificate, MarginProblem, StopReason, not_negative};
use crate::random::Random;
use crate::{Error, Result};

/// Where the sum `Σ c_i φ(x_i)` lives while its coefficients change one at a time.
pub trait DualSpace {
    /// `Σ_j c_j k(x_j, x_i)`
    fn score(&mut self, i: usize) -> f64;
    /// `k(x_i, x_i)`
    fn diagonal(&self, i: usize) -> f64;
    /// `c_i += change`
    fn change(&mut self, i: usize, change: f64) -> Result<()>;
    /// So many neighbouring rows are visited one after the other: reading memory in sequence is quicker.
    fn together(&self) -> usize {
        1
    }
    /// The same point, with intercept `b`, as a space that can be certified.
    fn certified<R>(&mut self, c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R>;
}

/// What coordinate descent found.
pub struct DcdEnd {
    /// How good it is.
    pub certificate: Certificate,
    /// Why it stopped.
    pub stop: StopReason,
    /// Passes over the rows.
    pub passes: usize,
    /// Dual variables `a_i` of the point itself.
    pub a: Vec<f64>,
    /// The part of them that belongs to the loss.
    pub v: Vec<f64>,
    /// The free intercept.
    pub intercept: f64,
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

/// Minimises the problem.
pub fn descend<D: DualSpace>(
    space: &mut D,
    problem: &MarginProblem<'_>,
    settings: &Settings,
    patience: Patience,
    control: Control<'_>,
) -> Result<DcdEnd> {
    let limit = patience.passes;
    let m = problem.y.len();
    let mut state = DualState::new((0..m).map(|i| space.diagonal(i)).collect(), problem, patience.indefinite);
    let mut random = Random::new(settings.seed, 0x0064_6364);
    let mut active: Vec<usize> = (0..m).collect();
    let mut threshold = f64::INFINITY;
    let (mut next_check, mut refused, mut scale) = (10, f64::INFINITY, 0.0);
    let mut history: Vec<(usize, f64)> = Vec::new();
    for pass in 1.. {
        active = shuffled(active, space.together(), &mut random);
        let whole = active.len() == m;
        let Seen { moved, gap, primal } = state.pass(space, &mut active, threshold, control)?;
        if whole {
            scale = primal.abs();
        }
        let estimate = gap / scale.max(f64::MIN_POSITIVE);
        history.push((pass, estimate));
        if !moved.is_finite() || moved > 1e12 {
            return Err(Error::Numeric {
                place: "dual coordinate descent",
                reason: "the coefficients grow without bound, as they can over a kernel that is not positive \
                         semidefinite: choose another kernel, other kernel parameters, or the machine svm"
                    .into(),
            });
        }
        // Rows are set aside only if they rest far beyond what still moves.
        threshold = if moved > 0.0 { 2.0 * moved } else { f64::INFINITY };
        state.follow(moved);
        let rest = moved <= if patience.indefinite { settings.tol } else { 1e-13 };
        let crawling = patience.leave_when_crawling && crawls(&history, settings.tol, problem.loss.is_smooth());
        let promising = estimate <= EAGER * settings.tol && estimate <= 0.7 * refused;
        if !(promising || crawling || rest || pass >= next_check || pass >= limit) {
            control.report(Progress { iteration: pass, objective: None, gap: None })?;
            continue;
        }
        next_check = pass + (pass / 2).max(5);
        let (certificate, v) = state.certify(space)?;
        let gap = certificate.gap();
        control.report(Progress { iteration: pass, objective: Some(certificate.primal), gap: Some(gap) })?;
        let all_active = active.len() == m;
        let stop = if patience.indefinite && rest && all_active {
            Some(StopReason::Rest)
        } else if gap <= settings.tol && !patience.indefinite {
            Some(StopReason::Gap)
        } else if pass >= limit || crawling {
            Some(StopReason::Iterations)
        } else if rest && all_active && gap < 1e-6 && state.settled() {
            Some(StopReason::Precision)
        } else {
            None
        };
        if let Some(stop) = stop {
            return Ok(DcdEnd { certificate, stop, passes: pass, v, intercept: state.intercept, a: state.a });
        }
        refused = if promising { estimate } else { refused };
        if rest || promising || moved < 0.1 * gap {
            active = (0..m).collect();
            threshold = f64::INFINITY;
        }
    }
    unreachable!("the loop ends at its limit")
}

/// Every so manieth row of a pass is asked what it adds to the duality gap.
const SAMPLE: usize = 8;
/// The exact gap is looked at once its estimate is this many times the tolerance: rows are asked before they move, so the
/// estimate is mostly too large.
const EAGER: f64 = 5.0;

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
struct Seen {
    /// The largest move of a margin.
    moved: f64,
    /// About what the rows it met add to the duality gap.
    gap: f64,
    /// About their part of the primal objective.
    primal: f64,
}

/// The dual variables with the two scalars that follow them.
pub(super) struct DualState<'p, 'a> {
    pub(super) problem: &'p MarginProblem<'a>,
    /// `φ`, with `κ (γ − t)²` added at the current `t`.
    pub(super) loss: MarginLoss,
    pub(super) a: Vec<f64>,
    /// Change of a margin per change of its `a`.
    pub(super) q: Vec<f64>,
    /// Square of the constant feature.
    pub(super) rho: f64,
    /// `b = centre + ρ Σ c_i`
    pub(super) intercept: f64,
    pub(super) centre: f64,
    /// `Σ c_i`
    pub(super) balance: f64,
    /// `t`, and the mean margin seen in the last pass.
    pub(super) shift: f64,
    pub(super) mean: f64,
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
        let q = diagonal.into_iter().map(|q| q.max(least) + rho).collect();
        let mut state = Self {
            problem,
            loss: problem.loss,
            a: vec![0.0; m],
            q,
            rho,
            intercept: 0.0,
            centre: 0.0,
            balance: 0.0,
            shift: 0.0,
            mean: 0.0,
        };
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
        let (s, q) = (self.problem.weights[i], self.q[i]);
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
    fn pass<D: DualSpace>(
        &mut self,
        space: &mut D,
        active: &mut Vec<usize>,
        threshold: f64,
        control: Control<'_>,
    ) -> Result<Seen> {
        let mut seen = Seen { moved: 0.0, gap: 0.0, primal: 0.0 };
        let (mut kept, mut weight, mut mean) = (0, 0.0, 0.0);
        for k in 0..active.len() {
            if k % 1024 == 0 {
                control.check()?;
            }
            let i = active[k];
            let (y, s, q) = (self.problem.y[i], self.problem.weights[i], self.q[i]);
            let score = space.score(i);
            let margin = y * (score + self.intercept);
            let (a, move_) = self.step(i, score);
            if k % SAMPLE == 0 {
                let (loss, before) = (s * self.loss.value(margin), self.a[i]);
                seen.gap += not_negative(loss + s * self.loss.conjugate(-before / s) + before * margin);
                seen.primal += loss + 0.5 * before * margin;
            }
            let change = a - self.a[i];
            seen.moved = seen.moved.max(move_);
            weight += s;
            mean += s * (margin + change * q);
            if move_ <= 1e-300 && self.loss.rest(margin, -self.a[i] / s) > threshold {
                continue;
            }
            if change != 0.0 {
                let change = self.take(i, a);
                space.change(i, change)?;
            }
            active[kept] = i;
            kept += 1;
        }
        active.truncate(kept);
        self.mean = if weight > 0.0 { mean / weight } else { self.shift };
        seen.gap *= SAMPLE as f64;
        seen.primal *= SAMPLE as f64;
        Ok(seen)
    }

    /// Lets the centre follow the intercept and `t` the mean margin.
    fn follow(&mut self, moved: f64) {
        self.follow_intercept(moved);
        if self.problem.variance > 0.0 {
            self.set_shift(self.mean);
        }
    }

    /// Lets the centre follow the intercept.
    pub(super) fn follow_intercept(&mut self, moved: f64) {
        if self.problem.bias == Bias::Free {
            let pull = self.rho * self.balance;
            // As multipliers demand, only once the rows have come to terms with the present centre.
            if moved <= 2.0 * pull.abs() || moved < 1e-12 {
                self.centre = self.intercept;
                self.intercept = self.centre + pull;
            }
        }
    }

    fn settled(&self) -> bool {
        (self.rho * self.balance).abs() < 1e-12
            && (self.problem.variance == 0.0 || (self.mean - self.shift).abs() < 1e-12)
    }

    fn certify<D: DualSpace>(&mut self, space: &mut D) -> Result<(Certificate, Vec<f64>)> {
        let c: Vec<f64> = self.a.iter().zip(self.problem.y).map(|(a, y)| a * y).collect();
        let (problem, a, shift) = (self.problem, &self.a, self.shift);
        space.certified(&c, self.intercept, |space| {
            // What of `a` belongs to the variance was decided with the present `t`; the rest is the loss's.
            let margins = space.margins();
            let v: Vec<f64> = (0..a.len())
                .map(|i| a[i] + 2.0 * problem.variance * problem.weights[i] * (margins[i] - shift))
                .collect();
            let (certificate, feasible) = certificate(space, problem, v);
            (certificate, problem.loss_part(&feasible, space.margins()))
        })
    }
}
