//! Block coordinate descent for machines with one score function a class:
//!
//! ```text
//! min_w  ½ Σ_l ‖w_l‖² + Σ_i ℓ_i(s_i),   s_i^l = w_l·φ(x_i) + b_l
//! max_v −½ Σ_l ‖w_l‖² − Σ_i ℓ*_i(−v_i),  w_l = Σ_i v_i^l φ(x_i)
//! ```
//!
//! A step takes all dual variables of one row and solves for them exactly (`block`). Three things make it fast:
//! the gap is a sum over rows, `Σ_i ℓ_i(s_i) + ℓ*_i(−v_i) + v_i·s_i`, so rows whose share is small are left alone
//! until the next full pass; a row with many classes works on those that matter to it; and variables that are zero
//! are not stored. Every full pass sees all rows and classes, so nothing is ever lost by it.
//!
//! A regularised intercept is a feature `√ρ`, `b_l = ρ V_l` with `V_l = Σ_i v_i^l`. A free one is found by the proximal
//! point method (the multiplier method on `V = 0`): `b_l = b̄_l + ρ V_l`, and the centre `b̄` follows `b`; its
//! certificate repairs the dual point first (`balance`).
//!
//! Where the passes crawl and the weights are few, Newton's method takes over from where they are (`newton`); over a kernel it comes
//! first (`kernel`).

mod balance;
mod dual;
mod gap;
mod intercept;
mod kernel;
mod newton;
mod preconditioner;
mod space;
mod system;
mod visit;

pub use balance::circulation;
pub use dual::{RowDual, columns, flow};
pub use space::{ManyScores, ManyWeights, Scores};

use super::Settings;
use crate::Result;
use crate::control::{Control, Progress};
use crate::linalg::Cholesky;
use crate::loss::RivalLoss;
use crate::problem::{Bias, Certificate, ScoreFunctions, StopReason};
use crate::random::Random;
use intercept::Intercept;
use std::cmp::Reverse;
use visit::RowScratch;

/// Most passes over the active rows between two full passes: against passes that gain nothing. (From 3 to 100 the same passes are taken
/// on 8,000 × 1,500, 30 classes.)
const INNER: usize = 30;
/// The passes over the active rows end once their gap is this part of what the full pass saw. (The same problem takes 62 passes from
/// 0.003 on, 60 at 0.1, 55 at 0.3, all in the same time.)
const ENOUGH: f64 = 0.03;
/// A block of kernel rows is swept until its gap is this part of the first, in at most so many sweeps. (Digits under rbf within 4 MB, to
/// 1e-6: 0.33 s at 0.01, 0.23 s at 0.1, 0.18 s at 0.5; with 5 or 100 sweeps 0.22 s and 0.23 s.)
const SETTLED: f64 = 0.1;
const SWEEPS: usize = 30;
/// A gap of nothing but rounding errors.
const EVERY_DIGIT: f64 = 1e-13;
/// Rows that one task of a parallel scan takes, more or less.
const CHUNK: usize = 256;
/// Most parts of the rows that keep sums of the size of the weights of their own.
const PARTS: usize = 16;
/// Passes after which the solver gives up if nobody says otherwise, those of all rounds together; a later round may still
/// take some.
const MOST_PASSES: usize = 30_000;
const LATE_PASSES: usize = 500;

/// What a pass or the visit of a row saw: what the rows add to the gap, and their losses.
#[derive(Clone, Copy, Default)]
struct PassSums {
    gap: f64,
    loss: f64,
}

/// Block coordinate descent, kept between rounds so that the next one starts from the last.
pub struct ManyDescent<'a, L> {
    space: Box<dyn Scores + 'a>,
    loss: L,
    codes: &'a [u32],
    classes: usize,
    intercept: Intercept,
    duals: Vec<RowDual>,
    /// Each row's share of the gap when it was last seen.
    shares: Vec<f64>,
    norm2: f64,
    settings: Settings,
    random: Random,
    passes: usize,
    /// Of rows, in all passes.
    visits: usize,
    control: Control<'a>,
    scratch: RowScratch,
    /// `Σ_i 1/(‖x_i‖² + 1/h_i)` of the rows that the last pass moved.
    answer: f64,
    /// Margin and rival of each row at the last certificate, until something moves.
    margins: Option<Vec<(f64, u32)>>,
    /// Whether `w` stands next to `Σ_i v_i x_i` only, as Newton's method leaves it; over a kernel its own coefficients, class after
    /// class.
    apart: bool,
    beside: Option<Vec<f64>>,
    /// Whether Newton's method found the present point.
    helped: bool,
    /// Products that the last Newton step took, and whether any took many.
    products: usize,
    crawls: bool,
    /// What preconditions the systems then, the products that the first step with it took, and those that others took beyond these.
    blocks: Vec<Cholesky>,
    fresh: usize,
    excess: usize,
    /// `Σ_l ‖w_l‖²` at the last certificate, a regularised intercept included.
    certified_norm2: f64,
}

impl<'a, L: RivalLoss> ManyDescent<'a, L> {
    /// Starts from `w = 0`.
    pub fn new(
        space: Box<dyn Scores + 'a>,
        loss: L,
        codes: &'a [u32],
        classes: usize,
        bias: Bias,
        settings: Settings,
        control: Control<'a>,
    ) -> Self {
        let m = codes.len();
        let mean = (0..m).map(|i| space.diagonal(i)).sum::<f64>() / m.max(1) as f64;
        let scratch =
            RowScratch { scores: vec![0.0; space.width()], before: vec![0.0; classes], ..RowScratch::default() };
        Self {
            space,
            loss,
            codes,
            classes,
            intercept: Intercept::new(bias, classes, mean),
            duals: vec![RowDual::default(); m],
            shares: vec![f64::INFINITY; m],
            norm2: 0.0,
            settings,
            random: Random::new(settings.seed, 0),
            passes: 0,
            visits: 0,
            control,
            scratch,
            answer: 0.0,
            margins: None,
            apart: false,
            beside: None,
            helped: false,
            products: 0,
            crawls: false,
            blocks: Vec::new(),
            fresh: 0,
            excess: 0,
            certified_norm2: 0.0,
        }
    }

    /// Starts from functions of some of the rows, coefficients a class, and intercepts.
    pub fn start_at(&mut self, rows: &[usize], functions: &ScoreFunctions) -> Result<()> {
        let m = self.codes.len();
        let mut c = vec![0.0; m * self.classes];
        for (c, some) in c.chunks_exact_mut(m).zip(functions.vectors()) {
            rows.iter().zip(some).for_each(|(&i, some)| c[i] = *some);
        }
        self.intercept.values = functions.intercepts().to_vec();
        self.start_newton(c)
    }

    /// Whether the kernel's matrix is there to be multiplied with.
    pub fn multiplies(&self) -> bool {
        self.space.multiplies()
    }

    /// The loss of this round.
    pub fn loss(&self) -> &L {
        &self.loss
    }

    /// The score functions as they are now.
    pub fn expansion(&self) -> ScoreFunctions {
        let intercepts = self.intercept.centred();
        match self.space.weights() {
            Some(mut weights) => {
                weights.truncate(self.classes);
                ScoreFunctions::Linear { weights, intercepts }
            }
            None => {
                let beside = |c: &Vec<f64>| c.chunks_exact(self.codes.len()).map(<[f64]>::to_vec).collect();
                let coefficients = self.beside.as_ref().map_or_else(|| self.coefficients(), beside);
                ScoreFunctions::Kernel { support: (), coefficients, intercepts }
            }
        }
    }

    /// How the present point was found.
    pub fn method(&self) -> &'static str {
        match self.helped {
            true if self.beside.is_some() => "newton (kernel matrix)",
            true if self.visits == 0 => "newton",
            true => "block coordinate descent, then Newton",
            false => "block coordinate descent",
        }
    }

    /// `Σ_l ‖w_l‖²` at the last certificate, a regularised intercept included.
    pub fn certified_norm2(&self) -> f64 {
        self.certified_norm2
    }

    /// Passes so far, those over part of the rows and Newton steps included.
    pub fn passes(&self) -> usize {
        self.passes
    }

    /// Whether no more passes are worth taking.
    pub fn is_spent(&self) -> bool {
        self.settings.max_iter.is_some() || self.passes >= MOST_PASSES
    }

    /// The dual variables as they are now.
    pub fn duals(&self) -> &[RowDual] {
        &self.duals
    }

    /// `β_i`
    pub fn beta(&self, i: usize) -> f64 {
        self.duals[i].beta
    }

    /// Rows with a non-zero variable.
    pub fn support(&self) -> usize {
        self.duals.iter().filter(|d| d.beta > 0.0 || d.zeta.iter().any(|z| z.1 > 0.0)).count()
    }

    /// `v_i^l` as a vector of `m` numbers a class.
    pub fn coefficients(&self) -> Vec<Vec<f64>> {
        let columns = columns(&self.loss, self.codes, &self.duals, self.classes);
        columns.chunks_exact(self.codes.len()).map(<[f64]>::to_vec).collect()
    }

    /// Replaces the loss. A row whose partner changed starts anew with `β_i = 0`: it was large because the old partner
    /// was no rival. A point that Newton's method found stays where it is.
    pub fn replace(&mut self, loss: L) -> Result<()> {
        let follows = !self.apart;
        for i in 0..self.codes.len() {
            let (old, new, beta) = (self.loss.partner(i), loss.partner(i), self.duals[i].beta);
            if let (Some(old), true) = (old, old != new && beta > 0.0) {
                if follows {
                    let change = [(self.codes[i], beta), (old, -beta)];
                    self.space.add(i, &change);
                    self.intercept.shift(&change);
                }
                self.duals[i].beta = 0.0;
            }
        }
        self.loss = loss;
        self.margins = None;
        if follows {
            self.space.settle()?;
        }
        Ok(())
    }

    /// `w = Σ_i v_i x_i` again.
    fn rejoin(&mut self) {
        self.beside = None;
        if !std::mem::take(&mut self.apart) {
            return;
        }
        self.space.clear();
        self.intercept.clear();
        self.margins = None;
        let mut change = Vec::new();
        for (i, dual) in self.duals.iter().enumerate() {
            change.clear();
            dual.coefficients(self.codes[i], self.loss.partner(i), |l, v| change.push((l as u32, v)));
            self.space.add(i, &change);
            self.intercept.shift(&change);
        }
    }

    /// Descends until the relative gap is at most `tol`, or the limit on passes comes first.
    pub fn solve(&mut self, tol: f64) -> Result<(Certificate, StopReason)> {
        let limit = match self.settings.max_iter {
            Some(most) => self.passes + most,
            None => MOST_PASSES.max(self.passes + LATE_PASSES),
        };
        if let Some(size) = self.space.block() {
            if self.space.multiplies() {
                let found = self.newton_over_kernel(tol, limit)?;
                if let Some(found) = self.unless_stuck(found, limit) {
                    return Ok(found);
                }
            }
            return self.solve_by_blocks(tol, limit, size);
        }
        if self.apart {
            let found = self.newton_on(tol, limit)?;
            if let Some(found) = self.unless_stuck(found, limit) {
                return Ok(found);
            }
        }
        self.solve_by_passes(tol, limit)
    }

    /// What Newton's method found; nothing where it is stuck: then descent goes on from where it stands.
    fn unless_stuck(&mut self, found: (Certificate, StopReason), limit: usize) -> Option<(Certificate, StopReason)> {
        if found.1 != StopReason::Iterations || self.passes >= limit {
            return Some(found);
        }
        self.rejoin();
        None
    }

    /// Descends over all rows, one after the other.
    fn solve_by_passes(&mut self, tol: f64, limit: usize) -> Result<(Certificate, StopReason)> {
        let mut patience = self.newton_after().map_or(usize::MAX, |visits| self.visits.saturating_add(visits));
        let mut order: Vec<usize> = (0..self.codes.len()).collect();
        let mut certificate = self.certify()?;
        let mut scale = certificate.primal.abs();
        let mut before = f64::INFINITY;
        loop {
            let progress =
                Progress { iteration: self.passes, objective: Some(certificate.primal), gap: Some(certificate.gap()) };
            self.control.report(progress)?;
            if certificate.gap() <= tol {
                return Ok((certificate, StopReason::Gap));
            }
            loop {
                if self.passes >= limit || self.visits >= patience {
                    certificate = self.certify()?;
                    if self.passes >= limit || certificate.gap() <= tol {
                        let stop = if certificate.gap() <= tol { StopReason::Gap } else { StopReason::Iterations };
                        return Ok((certificate, stop));
                    }
                    let found = self.newton(tol, certificate, limit)?;
                    if let Some(found) = self.unless_stuck(found, limit) {
                        return Ok(found);
                    }
                    patience = usize::MAX;
                }
                let seen = self.pass(&mut order, true, 1e-3 * tol * scale)?;
                let objective = 0.5 * (self.norm2 + self.intercept.norm2()) + seen.loss;
                // A start from another round's end may be far worse than where it leads.
                scale = scale.min(objective.abs());
                let pending = if self.intercept.free { self.intercept.imbalance() } else { 0.0 };
                if seen.gap.max(pending) <= 1e-15 * objective {
                    return Ok((self.certify()?, StopReason::Precision));
                }
                self.control.report(Progress { iteration: self.passes, objective: Some(objective), gap: None })?;
                self.inner_passes(&seen, limit, 1e-3 * tol * scale)?;
                self.intercept.follow(seen.gap);
                // What a certificate would find, if the gap goes on falling as it does.
                let expected = seen.gap * (seen.gap / before).min(0.5);
                before = seen.gap;
                if expected <= tol * objective {
                    break;
                }
            }
            certificate = self.certify()?;
        }
    }

    /// Descends over kernel rows: those that share most of the gap are solved together while all others stand still, then one
    /// product with their kernel rows tells all the others.
    fn solve_by_blocks(&mut self, tol: f64, limit: usize, size: usize) -> Result<(Certificate, StopReason)> {
        let m = self.codes.len();
        // Whoever asks for every digit gets what rounding leaves of them.
        let tol = if tol <= EVERY_DIGIT { 0.01 * tol } else { tol };
        loop {
            self.space.settle()?;
            let certificate = self.certify()?;
            let progress =
                Progress { iteration: self.passes, objective: Some(certificate.primal), gap: Some(certificate.gap()) };
            self.control.report(progress)?;
            let left: f64 = self.shares.iter().sum();
            let pending = if self.intercept.free { self.intercept.imbalance() } else { 0.0 };
            match certificate.gap() {
                gap if gap <= tol => return Ok((certificate, StopReason::Gap)),
                _ if self.passes >= limit => return Ok((certificate, StopReason::Iterations)),
                _ if left.max(pending) <= 1e-15 * certificate.primal => {
                    return Ok((certificate, StopReason::Precision));
                }
                _ => {}
            }
            let mut block: Vec<usize> = (0..m).collect();
            if size < m {
                // Shares are not negative: they are in the order of their bits.
                block.select_nth_unstable_by_key(size, |&i| (Reverse(self.shares[i].to_bits()), i));
                block.truncate(size);
                block.sort_unstable();
            }
            self.space.open(&block)?;
            let mut first = None;
            for _ in 0..SWEEPS {
                let seen = self.pass(&mut block, true, 1e-3 * tol * certificate.primal.abs())?;
                self.intercept.follow(seen.gap);
                if seen.gap <= SETTLED * *first.get_or_insert(seen.gap) || self.passes >= limit {
                    break;
                }
            }
        }
    }

    /// Passes over the rows that share more than the mean of the gap, until few are left.
    fn inner_passes(&mut self, full: &PassSums, limit: usize, ignore: f64) -> Result<()> {
        let m = self.codes.len();
        let threshold = full.gap / m as f64;
        let mut active: Vec<usize> = (0..m).filter(|&i| self.shares[i] > threshold).collect();
        for _ in 0..INNER {
            active.retain(|&i| self.shares[i] > threshold);
            if active.len() * 50 < m || self.passes >= limit {
                break;
            }
            let seen = self.pass(&mut active, false, ignore)?;
            if seen.gap < ENOUGH * full.gap {
                break;
            }
        }
        Ok(())
    }

    /// Visits the rows once, in a new random order. Rows that share less than `ignore / m` stay as they are.
    fn pass(&mut self, rows: &mut [usize], full: bool, ignore: f64) -> Result<PassSums> {
        self.passes += 1;
        self.margins = None;
        self.answer = 0.0;
        self.visits += rows.len();
        self.random.shuffle(rows);
        let ignore = ignore / self.codes.len() as f64;
        let mut seen = PassSums::default();
        for &i in rows.iter() {
            self.control.check()?;
            let row = self.visit(i, full, ignore);
            self.shares[i] = row.gap;
            seen.gap += row.gap;
            seen.loss += row.loss;
        }
        self.intercept.pull_by(self.answer);
        Ok(seen)
    }
}

/// How many parts of `m` rows have sums of the size of the weights of their own.
fn parts(m: usize) -> usize {
    (m / CHUNK).clamp(1, PARTS)
}
