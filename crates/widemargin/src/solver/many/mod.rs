//! RowBlock coordinate descent for machines with one score function a class:
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
mod kernel;
mod newton;
mod preconditioner;
mod space;
mod system;

pub use balance::circulation;
pub use space::{ManyScores, ManyWeights, Scores};

use super::Settings;
use crate::Result;
use crate::control::{Control, Progress};
use crate::linalg::{axpy, fold};
use crate::loss::{RivalLoss, RowBlock};
use crate::problem::{Bias, Certificate, ScoreFunctions, StopReason, not_negative};
use crate::random::Random;
use balance::Flow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Most classes a full visit brings into a row's block, beside those it has.
const BLOCK: usize = 32;
/// Classes with `ζ = 0` that a row keeps looking at between full passes.
const WATCHED: usize = 4;
/// Most passes over the active rows between two full passes.
const INNER: usize = 30;
/// The passes over the active rows end once their gap is this part of what the full pass saw.
const ENOUGH: f64 = 0.03;
/// How much heavier than the answer of the rows a free intercept is, as in `dcd`.
const SHARE: f64 = 16.0;
/// A block of kernel rows is swept until its gap is this part of the first, in at most so many sweeps.
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

/// The dual variables of a row that are not zero (and a few classes it watches).
#[derive(Clone, Debug, Default)]
pub struct RowDual {
    zeta: Vec<(u32, f64)>,
    /// `β_i`
    pub beta: f64,
}

impl RowDual {
    /// `Σ_l ζ_i^l`
    pub fn total(&self) -> f64 {
        self.zeta.iter().map(|z| z.1).sum()
    }

    /// The coefficients `v_i^l` of a row of class `y`, class by class (a partner's may come in two parts).
    pub fn coefficients(&self, y: u32, partner: Option<u32>, mut each: impl FnMut(usize, f64)) {
        for &(l, z) in &self.zeta {
            each(l as usize, -z);
        }
        each(y as usize, self.total() - self.beta);
        if let Some(r) = partner {
            each(r as usize, self.beta);
        }
    }

    /// With the repair that free intercepts ask for.
    pub fn shrunk(&self, y: u32, partner: Option<u32>, factors: &BTreeMap<(u32, u32), f64>) -> Self {
        let factor = |to: u32, from: u32| factors.get(&(to, from)).copied().unwrap_or(1.0);
        let zeta = self.zeta.iter().map(|&(l, z)| (l, z * factor(y, l))).collect();
        Self { zeta, beta: partner.map_or(self.beta, |r| self.beta * factor(r, y)) }
    }
}

/// A dual point as a flow between classes.
pub fn flow<L: RivalLoss>(loss: &L, codes: &[u32], duals: &[RowDual]) -> Flow {
    let mut flow = Flow::new();
    for (i, dual) in duals.iter().enumerate() {
        let y = codes[i];
        for &(l, z) in dual.zeta.iter().filter(|z| z.1 > 0.0) {
            *flow.entry((y, l)).or_default() += z;
        }
        if let (Some(r), true) = (loss.partner(i), dual.beta > 0.0) {
            *flow.entry((r, y)).or_default() += dual.beta;
        }
    }
    flow
}

/// The intercepts `b_l`.
struct Intercept {
    /// `ρ`: the squared value of the constant feature, or the proximal step.
    rho: f64,
    /// The square of a constant feature of the size of the others, or of the regularised one.
    unit: f64,
    free: bool,
    /// `b_l`
    values: Vec<f64>,
    /// `V_l = Σ_i v_i^l`
    sums: Vec<f64>,
}

impl Intercept {
    fn new(bias: Bias, classes: usize, mean_diagonal: f64) -> Self {
        let (unit, free) = match bias {
            Bias::None => (0.0, false),
            Bias::Feature(value) => (value * value, false),
            Bias::Free => (if mean_diagonal > 0.0 { mean_diagonal } else { 1.0 }, true),
        };
        Self { rho: unit, unit, free, values: vec![0.0; classes], sums: vec![0.0; classes] }
    }

    /// Sets the proximal step of free intercepts for rows that answer a rise of one by `Σ_i 1/(‖x_i‖² + 1/h_i)` in all, each in two
    /// classes: just heavy enough for them to answer (see `dcd`).
    fn pull_by(&mut self, answer: f64) {
        if self.free && answer > 0.0 {
            self.rho = (SHARE * 0.5 * self.values.len() as f64 / answer).min(self.unit);
        }
    }

    fn add(&mut self, change: &[(u32, f64)]) {
        for &(l, a) in change {
            self.sums[l as usize] += a;
            self.values[l as usize] += self.rho * a;
        }
    }

    /// [`add`](Self::add) for a change that is no step of descent: free intercepts stay, their centre moves.
    fn shift(&mut self, change: &[(u32, f64)]) {
        if !self.free {
            return self.add(change);
        }
        for &(l, a) in change {
            self.sums[l as usize] += a;
        }
    }

    /// `v = 0`; free intercepts stay.
    fn clear(&mut self) {
        self.sums.fill(0.0);
        if !self.free {
            self.values.fill(0.0);
        }
    }

    /// `ρ ‖V‖²`
    fn imbalance(&self) -> f64 {
        self.rho * self.sums.iter().map(|v| v * v).sum::<f64>()
    }

    /// The squared weight of the constant feature; a free intercept has none.
    fn norm2(&self) -> f64 {
        if self.free { 0.0 } else { self.imbalance() }
    }

    /// The intercepts; free ones, which may all rise together at no cost, with the sum 0.
    fn centred(&self) -> Vec<f64> {
        let mean = if self.free { self.values.iter().sum::<f64>() / self.values.len() as f64 } else { 0.0 };
        self.values.iter().map(|b| b - mean).collect()
    }

    /// Lets the centre follow once rows that see this gap have come to terms with the present one.
    fn follow(&mut self, gap: f64) {
        if !self.free || gap > 0.5 * self.imbalance() {
            return;
        }
        for (value, sum) in self.values.iter_mut().zip(&self.sums) {
            *value += self.rho * sum;
        }
    }
}

/// CertificateSums over rows that a certificate needs.
#[derive(Clone, Default)]
struct CertificateSums {
    loss: f64,
    gap: f64,
    conjugate: f64,
    /// `Σ_i v_i · (s_i − b)` before and after the repair.
    product: f64,
    repaired: f64,
    /// `Σ_i |δ_i^l| ‖φ(x_i)‖` of the repair `δ`, a class.
    moved: Vec<f64>,
    margins: Vec<(f64, u32)>,
    /// What each row adds to `gap`.
    shares: Vec<f64>,
}

/// Vectors for one row's work, kept between rows.
#[derive(Default)]
struct RowScratch {
    scores: Vec<f64>,
    classes: Vec<u32>,
    values: Vec<f64>,
    before: Vec<f64>,
    order: Vec<u32>,
    change: Vec<(u32, f64)>,
    block: RowBlock,
}

/// What a pass saw.
#[derive(Clone, Copy, Default)]
struct PassSums {
    gap: f64,
    loss: f64,
}

/// RowBlock coordinate descent, kept between rounds so that the next one starts from the last.
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
        let mut columns = vec![vec![0.0; self.codes.len()]; self.classes];
        for (i, dual) in self.duals.iter().enumerate() {
            dual.coefficients(self.codes[i], self.loss.partner(i), |l, v| columns[l][i] += v);
        }
        columns
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

    /// Margin and rival of each row: `γ_i`, and the lowest class among the best rivals.
    pub fn margins(&mut self) -> Result<(Vec<f64>, Vec<u32>)> {
        if self.margins.is_none() {
            let visit = |out: &mut Vec<(f64, u32)>, i: usize, scores: &mut [f64]| {
                let own = std::mem::replace(&mut scores[self.codes[i] as usize], f64::NEG_INFINITY);
                out.push(margin(own, self.codes[i], scores));
            };
            self.margins = Some(self.scan(visit)?.into_iter().flatten().collect());
        }
        Ok(self.margins.iter().flatten().copied().unzip())
    }

    /// Visits the scores of all rows, in parallel; the results of the chunks come in the order of the rows.
    pub fn scan<T: Send + Default>(&self, visit: impl Fn(&mut T, usize, &mut [f64]) + Sync) -> Result<Vec<T>> {
        let m = self.codes.len();
        let part = |range: std::ops::Range<usize>| {
            let mut scores = vec![0.0; self.space.width()];
            let mut result = T::default();
            for i in range {
                self.control.check()?;
                if self.visits > 0 {
                    self.space.scores(i, &mut scores);
                }
                axpy(1.0, &self.intercept.values, &mut scores[..self.classes]);
                visit(&mut result, i, &mut scores[..self.classes]);
            }
            Ok(result)
        };
        fold(m, m.div_ceil(CHUNK), part).into_iter().collect()
    }

    /// Both objectives at the present point.
    pub fn certify(&mut self) -> Result<Certificate> {
        let factors = if self.intercept.free {
            circulation(&flow(&self.loss, self.codes, &self.duals), self.classes)
        } else {
            BTreeMap::new()
        };
        let mut sums = CertificateSums { moved: vec![0.0; self.classes], ..CertificateSums::default() };
        for part in self.scan(|sums: &mut CertificateSums, i, scores| self.count(sums, i, scores, &factors))? {
            sums.loss += part.loss;
            sums.gap += part.gap;
            sums.conjugate += part.conjugate;
            sums.product += part.product;
            sums.repaired += part.repaired;
            axpy(1.0, &part.moved, &mut sums.moved);
            sums.margins.extend(part.margins);
            sums.shares.extend(part.shares);
        }
        self.margins = Some(sums.margins);
        self.shares = sums.shares;
        self.norm2 = sums.product;
        let norm2 = sums.product + self.intercept.norm2();
        let primal = 0.5 * norm2 + sums.loss;
        let difference = if self.intercept.free {
            let second = 0.5 * sums.moved.iter().map(|v| v * v).sum::<f64>();
            sums.loss + sums.repaired + sums.conjugate + second
        } else {
            sums.gap
        };
        self.certified_norm2 = norm2;
        Ok(Certificate { primal, dual: primal - not_negative(difference) })
    }

    /// Adds row `i` to the sums of a certificate; `factors` shrink its variables where the dual needs repair.
    fn count(&self, sums: &mut CertificateSums, i: usize, scores: &mut [f64], factors: &BTreeMap<(u32, u32), f64>) {
        let (dual, y, partner) = (&self.duals[i], self.codes[i], self.loss.partner(i));
        let rival = partner.map_or(0.0, |r| scores[r as usize]);
        let own = std::mem::replace(&mut scores[y as usize], f64::NEG_INFINITY);
        let loss = self.loss.value(i, own, scores, rival);
        let total = dual.total();
        let product = |total: f64, beta: f64, cross: f64| (total - beta) * own + beta * rival - cross;
        let cross: f64 = dual.zeta.iter().map(|&(l, z)| z * scores[l as usize]).sum();
        sums.margins.push(margin(own, y, scores));
        sums.loss += loss;
        let share = not_negative(loss + self.loss.conjugate(i, total, dual.beta) + product(total, dual.beta, cross));
        sums.gap += share;
        sums.shares.push(share);
        scores[y as usize] = own;
        let b = &self.intercept.values;
        let plain = |l: u32| scores[l as usize] - b[l as usize];
        let (own, rival) = (plain(y), partner.map_or(0.0, plain));
        let product = |total: f64, beta: f64, cross: f64| (total - beta) * own + beta * rival - cross;
        let cross: f64 = dual.zeta.iter().map(|&(l, z)| z * plain(l)).sum();
        sums.product += product(total, dual.beta, cross);
        if !self.intercept.free {
            return;
        }
        let factor = |to: u32, from: u32| factors.get(&(to, from)).copied().unwrap_or(1.0);
        let length = self.space.diagonal(i).max(0.0).sqrt();
        sums.moved.resize(self.classes, 0.0);
        let mut moved = |to: u32, from: u32, amount: f64| {
            sums.moved[to as usize] += amount * length;
            sums.moved[from as usize] += amount * length;
        };
        let (mut kept, mut cross) = (0.0, 0.0);
        for &(l, z) in &dual.zeta {
            let f = factor(y, l);
            moved(y, l, z * (1.0 - f));
            kept += z * f;
            cross += z * f * plain(l);
        }
        let beta = partner.map_or(0.0, |r| dual.beta * factor(r, y));
        if let Some(r) = partner {
            moved(r, y, dual.beta - beta);
        }
        sums.repaired += product(kept, beta, cross);
        sums.conjugate += self.loss.conjugate(i, kept, beta);
    }

    /// Descends until the relative gap is at most `tol`, or the limit on passes comes first.
    pub fn solve(&mut self, tol: f64) -> Result<(Certificate, StopReason)> {
        let limit = match self.settings.max_iter {
            Some(most) => self.passes + most,
            None => MOST_PASSES.max(self.passes + LATE_PASSES),
        };
        if let Some(size) = self.space.block() {
            if self.space.multiplies() {
                let (certificate, stop) = self.newton_over_kernel(tol, limit)?;
                if stop != StopReason::Iterations || self.passes >= limit {
                    return Ok((certificate, stop));
                }
                self.rejoin();
            }
            return self.solve_by_blocks(tol, limit, size);
        }
        let mut patience = self.newton_after().map_or(usize::MAX, |visits| self.visits.saturating_add(visits));
        let mut order: Vec<usize> = (0..self.codes.len()).collect();
        if self.apart {
            let (certificate, stop) = self.newton_on(tol, limit)?;
            if stop != StopReason::Iterations || self.passes >= limit {
                return Ok((certificate, stop));
            }
            self.rejoin();
        }
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
                    let (certificate, stop) = self.newton(tol, certificate, limit)?;
                    if stop != StopReason::Iterations || self.passes >= limit {
                        return Ok((certificate, stop));
                    }
                    // Newton's method is stuck: the passes go on from where it stands.
                    self.rejoin();
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

    /// One block step; tells the row's share of the gap and its loss before it.
    fn visit(&mut self, i: usize, full: bool, ignore: f64) -> PassSums {
        let mut scratch = std::mem::take(&mut self.scratch);
        let partner = self.loss.partner(i);
        let (own, loss) = self.open_block(i, full, partner, &mut scratch);
        let dual = &self.duals[i];
        let total = dual.total();
        let at_partner = scratch.block.partner.map_or(0.0, |p| scratch.values[p]);
        let cross: f64 = dual.zeta.iter().map(|&(_, z)| z).zip(&scratch.values).map(|(z, s)| z * s).sum();
        let product = (total - dual.beta) * own + dual.beta * at_partner - cross;
        let gap = not_negative(loss + self.loss.conjugate(i, total, dual.beta) + product);
        if gap > ignore {
            self.step(i, own, total, partner, &mut scratch);
        }
        self.scratch = scratch;
        PassSums { gap, loss }
    }

    /// Lists the classes of the row's block, those of its dual variables first, with their scores. Returns the own
    /// class's score and the row's loss (over the block's classes if not all were scored).
    fn open_block(&self, i: usize, full: bool, partner: Option<u32>, scratch: &mut RowScratch) -> (f64, f64) {
        let (y, dual) = (self.codes[i], &self.duals[i]);
        let RowScratch { scores, classes, values, block, order, .. } = scratch;
        classes.clear();
        classes.extend(dual.zeta.iter().map(|z| z.0));
        block.partner = partner.map(|r| {
            classes.iter().position(|l| *l == r).unwrap_or_else(|| {
                classes.push(r);
                classes.len() - 1
            })
        });
        values.clear();
        if full || 4 * (classes.len() + 1) > self.classes {
            self.space.scores(i, scores);
            let scores = &mut scores[..self.classes];
            axpy(1.0, &self.intercept.values, scores);
            let own = std::mem::replace(&mut scores[y as usize], f64::NEG_INFINITY);
            let loss = self.loss.value(i, own, scores, partner.map_or(0.0, |r| scores[r as usize]));
            add_candidates(classes, scores, y, order);
            values.extend(classes.iter().map(|l| scores[*l as usize]));
            return (own, loss);
        }
        classes.push(y);
        values.resize(classes.len(), 0.0);
        self.space.scores_of(i, classes, values);
        for (value, l) in values.iter_mut().zip(classes.iter()) {
            *value += self.intercept.values[*l as usize];
        }
        classes.pop();
        let own = values.pop().unwrap_or(0.0);
        let loss = self.loss.value(i, own, values, block.partner.map_or(0.0, |p| values[p]));
        (own, loss)
    }

    /// Solves the block and moves the scores.
    fn step(&mut self, i: usize, own: f64, total: f64, partner: Option<u32>, scratch: &mut RowScratch) {
        let RowScratch { classes, values, block, change, before, order, .. } = scratch;
        let (y, dual) = (self.codes[i], &mut self.duals[i]);
        let a = self.space.diagonal(i).max(0.0) + self.intercept.rho;
        before.clear();
        before.extend(dual.zeta.iter().map(|z| z.1));
        before.resize(classes.len(), 0.0);
        block.own = own - a * (total - dual.beta);
        block.rest.clear();
        block.rest.extend(values.iter().zip(before.iter()).map(|(s, z)| s + a * z));
        if let Some(p) = block.partner {
            block.rest[p] -= a * dual.beta;
        }
        self.loss.solve(i, a, block);
        self.answer += 1.0 / (self.space.diagonal(i).max(0.0) + 1.0 / self.loss.height(i).max(f64::MIN_POSITIVE));
        let (rise, mut sum) = (block.beta - dual.beta, 0.0);
        change.clear();
        for (&l, (after, before)) in classes.iter().zip(block.zeta.iter().zip(before.iter())) {
            sum += after - before;
            let a = before - after + if Some(l) == partner { rise } else { 0.0 };
            if a != 0.0 {
                change.push((l, a));
            }
        }
        change.push((y, sum - rise));
        dual.beta = block.beta;
        keep(&mut dual.zeta, classes, block, order);
        self.track_norm(i, own, classes, values, change);
        self.space.add(i, change);
        self.intercept.add(change);
    }

    /// `‖w + δ‖² = ‖w‖² + 2 w·δ + ‖δ‖²`, for estimates between certificates.
    fn track_norm(&mut self, i: usize, own: f64, classes: &[u32], values: &[f64], change: &[(u32, f64)]) {
        let b = &self.intercept.values;
        let mut at = 0;
        for &(l, a) in change {
            let score = if l == self.codes[i] {
                own
            } else {
                // `change` lists classes in the order of `classes`.
                while classes[at] != l {
                    at += 1;
                }
                values[at]
            };
            self.norm2 += a * (2.0 * (score - b[l as usize]) + a * self.space.diagonal(i));
        }
    }
}

/// Adds to the block the classes that may matter: all if they are few, else those with the highest scores.
fn add_candidates(classes: &mut Vec<u32>, scores: &[f64], own: u32, order: &mut Vec<u32>) {
    let has = classes.len();
    order.clear();
    if scores.len() <= BLOCK + 1 {
        order.extend(0..scores.len() as u32);
    } else {
        // Most classes lie far below the top: find a bar that leaves few, then sort those.
        order.extend(0..scores.len() as u32);
        let rank = |a: &u32, b: &u32| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b));
        order.select_nth_unstable_by(BLOCK, rank);
        order.truncate(BLOCK);
        order.sort_unstable();
    }
    for &l in order.iter() {
        if l != own && !classes[..has].contains(&l) {
            classes.push(l);
        }
    }
}

/// Stores the variables that are not zero, and the best few classes beside them.
fn keep(zeta: &mut Vec<(u32, f64)>, classes: &[u32], block: &RowBlock, order: &mut Vec<u32>) {
    zeta.clear();
    order.clear();
    for (p, (&l, &z)) in classes.iter().zip(&block.zeta).enumerate() {
        if z > 0.0 {
            zeta.push((l, z));
        } else {
            order.push(p as u32);
        }
    }
    let rank = |p: &u32, q: &u32| {
        let (a, b) = (*p as usize, *q as usize);
        block.rest[b].total_cmp(&block.rest[a]).then(classes[a].cmp(&classes[b]))
    };
    if order.len() > WATCHED {
        order.select_nth_unstable_by(WATCHED, rank);
        order.truncate(WATCHED);
        order.sort_unstable();
    }
    zeta.extend(order.iter().map(|p| (classes[*p as usize], 0.0)));
}

/// The margin, and the lowest class among the best rivals, of a row whose own score stands apart: −∞ is in its place.
fn margin(own: f64, y: u32, scores: &[f64]) -> (f64, u32) {
    let mut best = usize::from(y == 0);
    for l in best + 1..scores.len() {
        if scores[l] > scores[best] {
            best = l;
        }
    }
    (own - scores[best], best as u32)
}

/// How many parts of `m` rows have sums of the size of the weights of their own.
fn parts(m: usize) -> usize {
    (m / CHUNK).clamp(1, PARTS)
}
