//! Dual descent over kernel rows, a block of rows at a time, for every loss of the family.
//!
//! Each round takes the rows whose dual variables are furthest from their place, solves the problem over these while all
//! others stand still (by the coordinate steps of [`dcd`](super::dcd), on the block's own kernel matrix, which stays in
//! the cache), and then brings the scores of all rows up to date by one product with the block's kernel rows (Joachims
//! 1999). Only rows that ever move need their kernel values, and these are kept as far as memory goes.
//!
//! - The start is the solution of the same problem over an eighth of the rows, each of eight times its weight, and so on
//!   down to few rows: margins under it tell nearly all rows where their dual variables belong.
//! - A free intercept is the multiplier of `Σ a_i y_i = 0`; each block keeps that sum, so that its rows go half up, half
//!   down.
//! - Blocks that take turns zigzag where more rows move than one block holds; points a turn apart show where that leads, and the way is
//!   followed to the end at the cost of no kernel row but those of rows that meet a bound (parallel tangents; Shah, Buehler and
//!   Kempthorne 1964).
//! - LDM's variance is a plain loss `κ (γ − t)²` for a fixed `t`; `t` follows the mean margin.

use super::Settings;
use super::dcd::{DualState, Patience};
use crate::control::{Control, Progress};
use crate::kernel::{KernelRows, RowStore, Stored};
use crate::linalg::{self, falling_zero, ordered_sum};
use crate::problem::{Bias, Certificate, MarginProblem, StopReason, not_negative};
use crate::random::Random;
use crate::{Error, Result};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// A block is a fifth of the rows, or what takes all rows between their bounds, within these limits. Large blocks pay: few
/// rounds are left if one takes nearly all rows that are still on their way. At the limit its kernel matrix takes 64 MiB
/// in single precision, which distant caches still hold.
const LEAST: usize = 1024;
const MOST: usize = 4096;
/// Where memory holds smaller ones, at most so many for every pass that is allowed.
const SMALL_BLOCKS: usize = 2;
/// A block is solved until its largest move is this part of the first, in at most so many sweeps over its rows: it will be moved again
/// once others have. (Hinge, C = 10, 20,000 × 50: 0.1 takes 208 blocks, 0.3 91, 0.6 88; at C = 1 nothing changes.)
const ACCURACY: f64 = 0.5;
const SWEEPS: usize = 100;
/// The start is found on this part of the rows, unless they are few.
const PART: usize = 8;
const FEW: usize = 2048;
/// The gap up to which the problem over a part of the rows is solved.
const ROUGHLY: f64 = 0.01;
/// Margins this close to a kink are not told apart by the solution over a part of the rows.
const BLUR: f64 = 0.05;

/// How far from its last value the intercept (or LDM's shift) is sought at first, in units of margins.
const FIRST_STEP: f64 = 0.01;

/// Over a kernel that is not positive semidefinite steps may grow without bound: this is too far.
const TOO_FAR: f64 = 1e12;

/// How many blocks apart two points are whose line is followed: blocks take turns, and two are one turn. (The same problem takes 91
/// blocks; 191 and 253 with points one and three apart; without, the gap is 0.63 after 70 and falls by a hundredth a block.)
const APART: usize = 2;
/// How many times as far as the points are apart.
const FARTHEST: f64 = 50.0;

/// How often that is halved where too many rows would meet a bound.
const HALVINGS: usize = 8;

/// A point on the way.
#[derive(Default)]
struct Iterate {
    a: Vec<f64>,
    scores: Vec<f64>,
}

/// What block descent found.
pub struct BlockEnd {
    /// How good it is.
    pub certificate: Certificate,
    /// Why it stopped.
    pub stop: StopReason,
    /// Blocks solved.
    pub blocks: usize,
    /// Dual variables `a_i`, feasible.
    pub a: Vec<f64>,
    /// The part of them that belongs to the loss.
    pub v: Vec<f64>,
    /// The free intercept.
    pub intercept: f64,
    /// `Σ_j a_j y_j k(x_j, x_i)`
    pub scores: Vec<f64>,
}

/// Minimises the problem, with kernel values kept as `T`, if given from coefficients and an intercept near the solution. The limit of
/// `patience` is on passes, each of which moves as many rows as there are; `max_iter` of `settings` is on blocks.
pub fn descend<T: Stored>(
    kernel: &KernelRows<'_>,
    problem: &MarginProblem<'_>,
    from: Option<(&[f64], f64)>,
    settings: &Settings,
    patience: Patience,
    control: Control<'_>,
) -> Result<BlockEnd> {
    let m = problem.y.len();
    let mut random = Random::new(settings.seed, 0x0064_6364);
    let start = if m > FEW && !patience.indefinite && from.is_none() {
        Some(solve_part::<T>(kernel, problem, settings, patience, &mut random, control)?)
    } else {
        None
    };
    let store = RowStore::<T>::new(kernel, settings.memory, control);
    let mut descent = BlockDescent::new(store, problem, patience, random, control);
    if let Some(start) = start {
        descent.begin_at(start)?;
    }
    if let Some((coefficients, intercept)) = from {
        descent.begin_from(coefficients, intercept)?;
    }
    descent.run(settings, patience)
}

/// The same over kernel rows that are there already, from coefficients and an intercept near the solution.
pub fn descend_from<T: Stored>(
    store: RowStore<'_, T>,
    problem: &MarginProblem<'_>,
    (coefficients, intercept): (&[f64], f64),
    settings: &Settings,
    patience: Patience,
    control: Control<'_>,
) -> Result<BlockEnd> {
    let random = Random::new(settings.seed, 0x0064_6364);
    let mut descent = BlockDescent::new(store, problem, patience, random, control);
    descent.begin_from(coefficients, intercept)?;
    descent.run(settings, patience)
}

/// The solution over a part of the rows: their numbers, coefficients, and the intercept.
struct Part {
    rows: Vec<usize>,
    coefficients: Vec<f64>,
    intercept: f64,
}

fn solve_part<T: Stored>(
    kernel: &KernelRows<'_>,
    problem: &MarginProblem<'_>,
    settings: &Settings,
    patience: Patience,
    random: &mut Random,
    control: Control<'_>,
) -> Result<Part> {
    let m = problem.y.len();
    let mut rows: Vec<usize> = (0..m).collect();
    random.shuffle(&mut rows);
    rows.truncate(m / PART);
    rows.sort_unstable();
    let (y, weights) = problem.of_rows_for_all(&rows);
    let selected = kernel.plain().select(&rows);
    let found = descend::<T>(
        &kernel.some(&selected),
        &MarginProblem { y: &y, weights: &weights, ..*problem },
        None,
        &Settings { tol: settings.tol.max(ROUGHLY), max_iter: None, ..*settings },
        Patience { leave_when_crawling: true, ..patience },
        control,
    )?;
    let coefficients = found.a.iter().zip(&y).map(|(a, y)| a * y).collect();
    Ok(Part { rows, coefficients, intercept: found.intercept })
}

/// The dual variables, the scores they give every row, and the kernel rows at hand.
struct BlockDescent<'p, 'a, 'k, T> {
    problem: &'p MarginProblem<'a>,
    state: DualState<'p, 'a>,
    store: RowStore<'k, T>,
    scores: Vec<f64>,
    /// Which of two rows equally far from their place goes first.
    priority: Vec<u32>,
    random: Random,
    control: Control<'k>,
}

impl<'p, 'a, 'k, T: Stored> BlockDescent<'p, 'a, 'k, T> {
    fn new(
        store: RowStore<'k, T>,
        problem: &'p MarginProblem<'a>,
        patience: Patience,
        mut random: Random,
        control: Control<'k>,
    ) -> Self {
        let m = problem.y.len();
        let diagonal = (0..m).map(|i| store.diagonal(i)).collect();
        let mut priority: Vec<u32> = (0..m as u32).collect();
        random.shuffle(&mut priority);
        Self {
            problem,
            state: DualState::new(diagonal, problem, patience.indefinite),
            store,
            scores: vec![0.0; m],
            priority,
            random,
            control,
        }
    }

    /// Goes to the dual variables that the margins under the given solution suggest.
    fn begin_at(&mut self, part: Part) -> Result<()> {
        let coefficients: Vec<(usize, f64)> = part.rows.into_iter().zip(part.coefficients).collect();
        self.combine(&coefficients)?;
        let problem = self.problem;
        if problem.variance > 0.0 {
            self.state.set_shift(problem.mean(&self.margins(part.intercept)));
        }
        self.state.intercept = part.intercept;
        let kink = self.state.loss.slope(0.0).abs().max(f64::MIN_POSITIVE);
        let blurred = if self.state.loss.is_smooth() { self.state.loss } else { self.state.loss.envelope(BLUR / kink) };
        let scores = std::mem::replace(&mut self.scores, vec![0.0; problem.y.len()]);
        let dual = |i: usize, b: f64| {
            let y = problem.y[i];
            -problem.weights[i] * blurred.slope(y * (scores[i] + b))
        };
        let balance = |b: f64| ordered_sum(scores.len(), |i| dual(i, b) * problem.y[i]);
        if problem.bias == Bias::Free {
            let enough = 1e-6 * problem.total_weight() * problem.height();
            self.state.intercept = falling_zero(balance, part.intercept, FIRST_STEP, enough);
        }
        for i in 0..scores.len() {
            self.state.a[i] = dual(i, self.state.intercept);
        }
        self.state.balance = balance(self.state.intercept);
        self.settle()
    }

    /// Goes to the dual variables of these coefficients, or where their domain ends.
    fn begin_from(&mut self, coefficients: &[f64], intercept: f64) -> Result<()> {
        let (problem, (low, high)) = (self.problem, self.state.loss.slopes());
        self.state.intercept = intercept;
        for (i, c) in coefficients.iter().enumerate() {
            let s = problem.weights[i];
            self.state.a[i] = (c * problem.y[i]).clamp(-s * high, -s * low);
        }
        self.state.balance = self.state.a.iter().zip(problem.y).map(|(a, y)| a * y).sum();
        self.settle()
    }

    /// Balances dual variables that were set anew, and computes their scores.
    fn settle(&mut self) -> Result<()> {
        self.regularised_intercept();
        let all: Vec<usize> = (0..self.state.a.len()).collect();
        restore_balance(&mut self.state, &all);
        let coefficients: Vec<(usize, f64)> = all.iter().map(|&i| (i, self.state.a[i] * self.problem.y[i])).collect();
        self.combine(&coefficients)
    }

    /// `B²` of a regularised intercept, which adds `B² (Σ a_i y_i)²` to the squared norm; 0 of others.
    fn constant(&self) -> f64 {
        if let Bias::Feature(_) = self.problem.bias { self.state.rho } else { 0.0 }
    }

    /// A regularised intercept is its dual variables' own: `b = B² Σ a_i y_i`.
    fn regularised_intercept(&mut self) {
        if let Bias::Feature(_) = self.problem.bias {
            self.state.intercept = self.state.rho * self.state.balance;
        }
    }

    /// Sets the scores afresh. Most of these rows will not be asked for again, so that none is kept.
    fn combine(&mut self, coefficients: &[(usize, f64)]) -> Result<()> {
        let filled: Vec<(usize, f64)> = coefficients.iter().copied().filter(|(_, c)| *c != 0.0).collect();
        self.scores = self.store.combine(&filled)?;
        Ok(())
    }

    fn margins(&self, intercept: f64) -> Vec<f64> {
        self.scores.iter().zip(self.problem.y).map(|(f, y)| y * (f + intercept)).collect()
    }

    fn run(mut self, settings: &Settings, patience: Patience) -> Result<BlockEnd> {
        let m = self.problem.y.len();
        let most = self.store.capacity().min(m);
        let mut history: Vec<(f64, f64)> = Vec::new();
        let mut visited = 0;
        let mut earlier: VecDeque<Iterate> = VecDeque::new();
        // Blocks that memory keeps small take many to a pass, and help each other little.
        let rounds = if most < LEAST.min(m) { SMALL_BLOCKS * patience.passes } else { usize::MAX };
        for round in 0.. {
            let steps = self.steps();
            let moved = check_bounded(&steps)?;
            let certificate = self.certificate();
            let gap = certificate.gap();
            let progress = Progress { iteration: round, objective: Some(certificate.primal), gap: Some(gap) };
            self.control.report(progress)?;
            let passes = visited as f64 / m as f64;
            history.push((passes, gap));
            let balanced = self.problem.is_feasible(&self.state.a);
            let stop = if patience.indefinite && moved <= settings.tol {
                Some(StopReason::Rest)
            } else if gap <= settings.tol && balanced && !patience.indefinite {
                Some(StopReason::Gap)
            } else if settings.max_iter.is_some_and(|most| round >= most)
                || passes >= patience.passes as f64
                || round >= rounds
                || (patience.leave_when_crawling && crawls(&history, settings.tol))
            {
                Some(StopReason::Iterations)
            } else if moved <= 1e-13 && gap < 1e-6 {
                Some(StopReason::Precision)
            } else {
                None
            };
            if let Some(stop) = stop {
                return Ok(self.finish(certificate, stop, round));
            }
            let size = (m / 5).max(self.between() * 5 / 4).clamp(LEAST, MOST).min(most);
            let block = choose(&steps, &self.priority, size, self.problem.bias == Bias::Free);
            visited += block.len().max(1);
            // Where one block takes all that moves there is no zigzag.
            if block.len() == size && !patience.indefinite {
                earlier.push_back(self.iterate());
            }
            self.solve_block(&block)?;
            if earlier.len() > APART {
                let from = earlier.pop_front().unwrap_or_default();
                visited += self.extrapolate(&from, size / 2)?;
            }
        }
        unreachable!("the loop ends at its limit")
    }

    fn iterate(&self) -> Iterate {
        Iterate { a: self.state.a.clone(), scores: self.scores.clone() }
    }

    /// Goes on along the line from an earlier point to this one, to where the dual objective is largest (parallel tangents): blocks
    /// that take turns zigzag along a valley, and two points of one turn show where it leads. Scores are linear along the line; rows
    /// that meet a bound, at most so many, stay there. Returns their number.
    fn extrapolate(&mut self, from: &Iterate, most: usize) -> Result<usize> {
        let (problem, m) = (self.problem, self.scores.len());
        let (low, high) = self.state.loss.slopes();
        let along: Vec<f64> = self.state.a.iter().zip(&from.a).map(|(a, b)| a - b).collect();
        let rise: Vec<f64> = self.scores.iter().zip(&from.scores).map(|(f, g)| f - g).collect();
        let balance: f64 = ordered_sum(m, |i| along[i] * problem.y[i]);
        let own = self.constant();
        let clamped = |i: usize, t: f64| {
            let s = problem.weights[i];
            (self.state.a[i] + t * along[i]).clamp(-s * high, -s * low)
        };
        // The slope of the dual objective along the line, as if rows that met a bound went on in the scores of the others.
        let slope = |t: f64| {
            let row = |i: usize| {
                let a = clamped(i, t);
                if along[i] == 0.0 || a != self.state.a[i] + t * along[i] {
                    return 0.0;
                }
                let wanted = self.state.loss.margin_of(-a / problem.weights[i]);
                let b = own * (self.state.balance + t * balance);
                along[i] * (wanted - problem.y[i] * (self.scores[i] + t * rise[i] + b))
            };
            ordered_sum(m, row)
        };
        if slope(0.0) <= 0.0 {
            return Ok(0);
        }
        let mut t = falling_zero(slope, 0.0, 1.0, 0.01 * slope(0.0)).clamp(0.0, FARTHEST);
        let met = |t: f64| -> Vec<usize> {
            (0..m).filter(|&i| along[i] != 0.0 && clamped(i, t) != self.state.a[i] + t * along[i]).collect()
        };
        let mut at_bounds = met(t);
        for _ in 0..HALVINGS {
            if at_bounds.len() > most {
                t *= 0.5;
                at_bounds = met(t);
            }
        }
        if at_bounds.len() > most {
            return Ok(0);
        }
        self.store.hold(&at_bounds)?;
        let before = self.dual();
        let (kept, balance_before) = (self.iterate(), self.state.balance);
        let changes: Vec<(f64, &[T])> = at_bounds
            .iter()
            .map(|&i| ((clamped(i, t) - self.state.a[i] - t * along[i]) * problem.y[i], self.store.row(i)))
            .collect();
        linalg::axpy(t, &rise, &mut self.scores);
        linalg::add_rows(&mut self.scores, &changes);
        let a: Vec<f64> = (0..m).map(|i| clamped(i, t)).collect();
        self.state.balance += ordered_sum(m, |i| (a[i] - kept.a[i]) * problem.y[i]);
        self.state.a = a;
        if self.dual() < before {
            (self.state.a, self.scores, self.state.balance) = (kept.a, kept.scores, balance_before);
        }
        Ok(at_bounds.len())
    }

    /// `−½‖w‖² − Σ s_i φ*(−a_i/s_i)` of the present shift.
    fn dual(&self) -> f64 {
        let (problem, a) = (self.problem, &self.state.a);
        let own = self.constant() * self.state.balance.powi(2);
        let row = |i: usize| {
            let s = problem.weights[i];
            0.5 * a[i] * problem.y[i] * self.scores[i] + s * self.state.loss.conjugate(-a[i] / s)
        };
        -0.5 * own - ordered_sum(a.len(), row)
    }

    /// How many dual variables are between their bounds.
    fn between(&self) -> usize {
        let (low, high) = self.problem.loss.slopes();
        if !(low.is_finite() && high.is_finite()) {
            return 0;
        }
        let inside = |(a, s): &(&f64, &f64)| **a != 0.0 && **a > -*s * high && **a < -*s * low;
        self.state.a.iter().zip(self.problem.weights).filter(inside).count()
    }

    fn finish(self, certificate: Certificate, stop: StopReason, blocks: usize) -> BlockEnd {
        let margins = self.margins(self.state.intercept);
        let u = |i: usize| -2.0 * self.problem.variance * self.problem.weights[i] * (margins[i] - self.state.shift);
        let v = (0..margins.len()).map(|i| self.state.a[i] - u(i)).collect();
        BlockEnd { certificate, stop, blocks, v, intercept: self.state.intercept, a: self.state.a, scores: self.scores }
    }

    /// Settles intercept and shift, and says how far each row's own step would move its margin, and whether upwards as
    /// a coefficient.
    fn steps(&mut self) -> Vec<(f64, bool)> {
        if self.problem.bias == Bias::Free {
            self.state.intercept = self.balancing_intercept();
        }
        self.regularised_intercept();
        if self.problem.variance > 0.0 {
            self.state.set_shift(self.problem.mean(&self.margins(self.state.intercept)));
        }
        let (state, scores) = (&self.state, &self.scores);
        let step = |i: usize| {
            let (a, move_) = state.step(i, scores[i]);
            (move_, (a - state.a[i]) * state.problem.y[i] > 0.0)
        };
        (0..scores.len()).into_par_iter().with_min_len(4096).map(step).collect()
    }

    /// The `b` at which the coordinate steps of all rows, taken at once, would make `Σ a_i y_i = 0`.
    fn balancing_intercept(&self) -> f64 {
        let (state, scores) = (&self.state, &self.scores);
        let excess = |b: f64| {
            let changed = |i: usize| (state.step_at(i, scores[i], b).0 - state.a[i]) * state.problem.y[i];
            state.balance + ordered_sum(scores.len(), changed)
        };
        let enough = 1e-5 * self.problem.total_weight() * self.problem.height();
        falling_zero(excess, state.intercept, FIRST_STEP, enough)
    }

    /// The certificate of the present point: its dual variables are feasible, and its weights are theirs.
    ///
    /// With the variance as the loss `κ (γ − t)²`, the dual at `a` is the least over `t` of
    /// `−½‖w‖² − Σ s_i φ_t*(−a_i/s_i)`, and the primal at most that of any `t`, less `κ Σ s_i (γ̄ − t)²`.
    fn certificate(&mut self) -> Certificate {
        let (problem, a) = (self.problem, &self.state.a);
        let margins = self.margins(self.state.intercept);
        let norm2 = ordered_sum(a.len(), |i| a[i] * problem.y[i] * self.scores[i]);
        let own = self.constant() * self.state.balance.powi(2);
        let primal = 0.5 * (norm2 + own) + problem.risk(&margins);
        if problem.variance == 0.0 {
            return Certificate { primal, dual: primal - problem.row_gap(&margins, a) };
        }
        let total = problem.total_weight();
        let loss_at = |t: f64| {
            let k = problem.variance;
            problem.loss.plus(2.0 * k, -2.0 * k * t, k * t * t)
        };
        let lag = |t: f64| {
            let loss = loss_at(t);
            let row = |i: usize| problem.weights[i] * loss.margin_of(-a[i] / problem.weights[i]);
            ordered_sum(a.len(), row) / total - t
        };
        let t = falling_zero(lag, self.state.shift, FIRST_STEP, 1e-9);
        // Where no `t` will do, the dual variables leave the domain: they say nothing about the optimum. Nor do they if it runs
        // so far away that nothing is left of the margins' digits.
        let largest = margins.iter().fold(1.0f64, |most, g| most.max(g.abs()));
        let fits = t.abs() <= 1e4 * largest && lag(t).abs() <= 1e-6 * (1.0 + self.state.shift.abs());
        if !fits {
            return Certificate { primal, dual: f64::NEG_INFINITY };
        }
        let shifted = MarginProblem { loss: loss_at(t), variance: 0.0, ..*problem };
        let excess = problem.variance * total * (problem.mean(&margins) - t).powi(2);
        let gap = not_negative(shifted.row_gap(&margins, a) - excess);
        Certificate { primal, dual: primal - gap }
    }

    /// Solves the problem over the block, all other rows standing still, and brings the scores up to date.
    fn solve_block(&mut self, block: &[usize]) -> Result<()> {
        self.store.hold(block)?;
        // All rows there are need no copy.
        let whole = block.len() == self.scores.len();
        let square = if whole { Vec::new() } else { self.store.square(block) };
        let mut before: Vec<f64> = block.iter().map(|&i| self.state.a[i]).collect();
        let mut local: Vec<f64> = block.iter().map(|&i| self.scores[i]).collect();
        let rows: Vec<&[T]> = match whole {
            true => block.iter().map(|&i| self.store.row(i)).collect(),
            false => square.chunks_exact(block.len().max(1)).collect(),
        };
        let (state, random) = (&mut self.state, &mut self.random);
        linalg::wide(
            #[inline(always)]
            || sweep(state, block, &rows, &mut local, random),
        );
        if whole {
            // The steps have kept the scores of all rows up to date.
            self.scores = local;
            before.iter_mut().zip(block).for_each(|(before, &i)| *before = self.state.a[i]);
        }
        restore_balance(&mut self.state, block);
        let changed = block.iter().zip(before).filter(|(i, before)| self.state.a[**i] != *before);
        let change = |(&i, before): (&usize, f64)| ((self.state.a[i] - before) * self.problem.y[i], self.store.row(i));
        let changes: Vec<(f64, &[T])> = changed.map(change).collect();
        linalg::add_rows(&mut self.scores, &changes);
        Ok(())
    }
}

/// Coordinate steps over the rows of a block until these move little any more. Within a block the intercept is found by
/// multipliers, as in [`dcd`](super::dcd).
#[inline(always)]
fn sweep<T: Stored>(
    state: &mut DualState<'_, '_>,
    block: &[usize],
    rows: &[&[T]],
    scores: &mut [f64],
    random: &mut Random,
) {
    let k = block.len();
    let free = state.problem.bias == Bias::Free;
    let mut order: Vec<usize> = (0..k).collect();
    let mut enough = 0.0;
    for sweep in 0..SWEEPS {
        random.shuffle(&mut order);
        let mut moved = 0.0f64;
        for &p in &order {
            let i = block[p];
            let (a, move_) = state.step(i, scores[p]);
            moved = moved.max(move_);
            if move_ > 0.0 {
                let change = state.take(i, a);
                scores.iter_mut().zip(rows[p]).for_each(|(score, value)| *score += change * (*value).into());
            }
        }
        if sweep == 0 {
            enough = ACCURACY * moved;
        }
        if moved > TOO_FAR {
            return;
        }
        let pull = if free { (state.rho * state.balance).abs() } else { 0.0 };
        if moved <= enough && pull <= enough {
            return;
        }
        // As multipliers demand, the centre moves only once the rows have come to terms with the present one.
        if free && (moved <= 2.0 * pull || moved < 1e-12) {
            state.intercept += state.rho * state.balance;
        }
    }
}

/// The rows furthest from their place; half of them to go up and half down if their sum has to stay.
fn choose(steps: &[(f64, bool)], priority: &[u32], size: usize, both_ways: bool) -> Vec<usize> {
    let moving = (0..steps.len()).filter(|&i| steps[i].0 > 0.0);
    let (mut up, mut down): (Vec<usize>, Vec<usize>) = moving.partition(|&i| both_ways && steps[i].1);
    let most_up = (size / 2).max(size.saturating_sub(down.len())).min(up.len());
    let most_down = (size - most_up).min(down.len());
    // Positive numbers are in the order of their bits.
    let key = |&i: &usize| (Reverse(steps[i].0.to_bits()), priority[i]);
    for (rows, most) in [(&mut up, most_up), (&mut down, most_down)] {
        if most < rows.len() {
            rows.select_nth_unstable_by_key(most, key);
            rows.truncate(most);
        }
    }
    up.append(&mut down);
    up.sort_unstable();
    up
}

/// Moves those of the rows that are inside their domain until `Σ a_i y_i = 0`, as far as they can.
fn restore_balance(state: &mut DualState<'_, '_>, rows: &[usize]) {
    if state.problem.bias != Bias::Free {
        return;
    }
    let (low, high) = state.loss.slopes();
    let problem = state.problem;
    for _ in 0..30 {
        let inside = |a: f64, s: f64| a > -s * high && a < -s * low;
        let free: Vec<usize> =
            rows.iter().copied().filter(|&i| inside(state.a[i], problem.weights[i]) && state.a[i] != 0.0).collect();
        let weight: f64 = free.iter().map(|&i| problem.weights[i]).sum();
        if free.is_empty() || state.balance.abs() <= 1e-15 * problem.total_weight() * problem.height() {
            return;
        }
        let shift = state.balance / weight;
        for i in free {
            let s = problem.weights[i];
            let a = (state.a[i] - shift * s * problem.y[i]).clamp(-s * high, -s * low);
            state.balance += (a - state.a[i]) * problem.y[i];
            state.a[i] = a;
        }
    }
}

/// The largest step; an error if one is no longer a number worth the name.
fn check_bounded(steps: &[(f64, bool)]) -> Result<f64> {
    if steps.iter().all(|(move_, _)| *move_ <= TOO_FAR) {
        return Ok(steps.iter().fold(0.0, |most, (move_, _)| move_.max(most)));
    }
    Err(Error::Numeric {
        place: "dual coordinate descent",
        reason: "the coefficients grow without bound, as they can over a kernel that is not positive semidefinite: \
                 choose another kernel or other kernel parameters"
            .into(),
    })
}

/// Whether the gap falls so slowly that the tolerance is more than 60 passes away.
fn crawls(history: &[(f64, f64)], tol: f64) -> bool {
    let Some(&(passes, gap)) = history.last() else { return false };
    if passes < 15.0 {
        return false;
    }
    let Some(&(before, then)) = history.iter().rev().find(|(p, _)| 1.5 * p <= passes) else { return false };
    let rate = (then / gap).ln() / (passes - before);
    rate.is_nan() || rate <= 0.0 || (gap / tol).ln() / rate > 60.0
}
