//! Newton's method for linear machines of few weights, where block coordinate descent crawls: features of unlike
//! scales, or free intercepts.
//!
//! The losses have kinks where rivals tie, so it is the method of multipliers (as `solver::newton` for two classes):
//! with multipliers `v_i`, the loss of a row is replaced by its Moreau envelope, whose slope at the scores `s_i` is
//! `−v⁺`, the row's [`RowBlock`] solution for `s̄ = s_i − σ_i v_i` and `A = σ_i`:
//!
//! ```text
//! min_w ½ Σ_l ‖w_l‖² + Σ_i e_{σ_i}(s_i − σ_i v_i),    gradient w_l − Σ_i v_i⁺ˡ x_i,    then v ← v⁺, σ ← σ/2
//! ```
//!
//! The envelope is piecewise quadratic; its curvature in the scores of a row is [`Response::curvature`](crate::loss::Response::curvature). Intercepts are
//! weights of a constant feature here, regularised or not, so a free one costs nothing more.

use super::balance::circulation;
use super::gap::margin;
use super::system::MOST_WEIGHTS;
use super::{CHUNK, ManyDescent, PARTS, RowDual, RowScratch, flow};
use crate::Result;
use crate::control::Progress;
use crate::linalg::{add_up, axpy, dot, fold};
use crate::loss::{RivalLoss, RowBlock};
use crate::problem::{Certificate, StopReason};
use crate::solver::newton::{LINE_SEARCH, root_of_slope};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// After a move of the multipliers to which a few steps led, `σ` is divided by `SHRINK`, and multiplied by `GROW` where they were many: the
/// multipliers converge whatever it is. (Always divided: Crammer and Singer's loss on digits under rbf, free intercepts, takes 67 steps
/// instead of 35; mcODM there at λ = 4096 37 instead of 24, at λ = 1024 on 1,700 rows of covtype 64 instead of 58.)
const SHRINK: f64 = 2.0;
const GROW: f64 = 1.5;
const EASY: usize = 3;
const HARD: usize = 6;
/// After this many steps for one `σ` it is multiplied by `WIDEN`. (The same: 97 steps after 5, 43 after 10, 36 after 20; by 3, 10 and 30 it
/// is 39, 43 and 42.)
const STRUGGLE: usize = 10;
const WIDEN: f64 = 10.0;
/// What a visit of a row costs beside its scores, in additions.
const VISIT: f64 = 1000.0;
/// Fewer passes than this are cheap, and leave a good start. (Crammer and Singer's loss on 12,000 × 12, 7 classes: 0.09 s after 2, 0.08 s
/// after 6, 0.07 s after 15; mcODM to 1e-6 there 0.47 s, 0.57 s and 0.79 s.)
const FEW_PASSES: f64 = 6.0;
/// Where the Newton matrix is not formed: the passes that crawl take hundreds. (Weston and Watkins' loss on digits: 0.10 s after 10 or 30,
/// 0.08 s after 100.)
const MANY_PASSES: f64 = 30.0;
/// And with less than this many rows a feature it is not worth while.
const MANY_ROWS: f64 = 10.0;
/// Envelopes start so many times as wide as the rows' part of the gap, and at least so. (mcODM on 12,000 × 12 to 1e-6: 56 steps and passes
/// at 1, 54 at 4, 50 at 16.)
const WIDER: f64 = 4.0;
const LEAST_SIGMA: f64 = 1e-6;
/// Where summing up the Newton matrix takes so many times the additions of its factor, passes begin. (connect-4 at the defaults, 118 times:
/// 0.54 s with passes, 1.25 s without; covtype, 6 times: 1.28 s and 0.85 s.)
const HEAVY_SUMS: f64 = 30.0;
/// Most steps of [`ManyDescent::settle`]; what is left then is for the rounds. (mnist at λ = m takes them all.)
const SETTLING: usize = 60;
/// Newton steps after which it gives up.
const MOST_STEPS: usize = 1000;

/// Where Newton's method stands, and how it goes on from there.
pub(super) trait NewtonPoint<L> {
    /// Slope and gap of the smoothed problem.
    fn look(&mut self, descent: &ManyDescent<'_, L>, sigma: f64) -> Result<Look>;
    /// `Σ_l ‖w_l‖²`, a regularised intercept included.
    fn norm2(&self) -> f64;
    /// One Newton step with an exact line search; `enough` is the gap that is asked for.
    fn step(&mut self, descent: &mut ManyDescent<'_, L>, look: &Look, sigma: f64, enough: f64) -> Result<()>;
    /// Hands over the point and the look's dual variables, where its exact certificate is another than the look's only if that has a gap
    /// of at most `tol`; says what it is.
    fn adopt(&self, descent: &mut ManyDescent<'_, L>, look: &Look, tol: f64) -> Result<Certificate>;
}

/// Newton's method over weights.
struct ManyPoint {
    layout: Layout,
    /// `w_l` with the weight of the constant feature at its end, class after class.
    weights: Vec<f64>,
    /// `s_i^l`, row after row.
    scores: Vec<f64>,
}

/// The smoothed problem at a point.
#[derive(Default)]
pub(super) struct Look {
    /// `v⁺`
    pub(super) duals: Vec<RowDual>,
    pub(super) gradient: Vec<f64>,
    /// The kernel matrix times it, over a kernel.
    pub(super) product: Vec<f64>,
    pub(super) loss: f64,
    /// `Σ_i ℓ_i(s_i) + ℓ*_i(−v_i⁺) + v_i⁺·s_i`
    pub(super) row_gap: f64,
    /// `½ Σ_l ‖w_l − Σ_i v_i⁺ˡ x_i‖²`, free intercepts left out.
    pub(super) distance: f64,
    /// `Σ_l |V_l| / Σ_i |v_i|` for free intercepts.
    pub(super) balance: f64,
}

impl Look {
    /// Adds what the next rows gave; a gradient over weights with them.
    pub(super) fn add(&mut self, part: Self) {
        axpy(1.0, &part.gradient, &mut self.gradient);
        self.loss += part.loss;
        self.row_gap += part.row_gap;
        self.balance += part.balance;
        self.duals.extend(part.duals);
    }

    pub(super) fn gap(&self) -> f64 {
        self.row_gap + self.distance
    }

    /// Whether the smoothed problem is solved well enough for the multipliers to move.
    fn is_near(&self) -> bool {
        self.distance <= self.row_gap && self.balance <= 0.1
    }
}

/// The features of a row with the constant one at the end.
pub(super) struct Layout {
    pub(super) features: usize,
    /// Value of the constant feature; none without an intercept.
    constant: Option<f64>,
    pub(super) free: bool,
    classes: usize,
}

impl Layout {
    /// Numbers a class.
    pub(super) fn width(&self) -> usize {
        self.features + usize::from(self.constant.is_some())
    }

    pub(super) fn size(&self) -> usize {
        self.width() * self.classes
    }

    /// The norm of `v` that the objective has: free intercepts do not count.
    fn product(&self, a: &[f64], b: &[f64]) -> f64 {
        let counted = if self.free { self.features } else { self.width() };
        let class = |(a, b): (&[f64], &[f64])| dot(&a[..counted], &b[..counted]);
        a.chunks_exact(self.width()).zip(b.chunks_exact(self.width())).map(class).sum()
    }
}

impl<L: RivalLoss> NewtonPoint<L> for ManyPoint {
    fn look(&mut self, descent: &ManyDescent<'_, L>, sigma: f64) -> Result<Look> {
        let k = descent.classes;
        descent.look_with(self, |i, scratch| descent.envelope_dual(i, sigma, &self.scores[i * k..][..k], scratch))
    }

    fn norm2(&self) -> f64 {
        self.layout.product(&self.weights, &self.weights)
    }

    fn step(&mut self, descent: &mut ManyDescent<'_, L>, look: &Look, sigma: f64, _enough: f64) -> Result<()> {
        let layout = &self.layout;
        let step = descent.newton_direction(layout, look, sigma)?;
        let change = descent.products(layout, &step);
        let quadratic = Quadratic {
            slope: dot(&look.gradient, &step),
            along: layout.product(&self.weights, &step),
            norm2: layout.product(&step, &step),
        };
        let t = descent.line_search(&self.scores, &change, quadratic, sigma);
        axpy(t, &step, &mut self.weights);
        axpy(t, &change, &mut self.scores);
        Ok(())
    }

    fn adopt(&self, descent: &mut ManyDescent<'_, L>, look: &Look, tol: f64) -> Result<Certificate> {
        let certificate = descent.certify_point(self, &look.duals)?;
        if certificate.gap() > tol {
            return Ok(certificate);
        }
        descent.take_over(self, look.duals.clone());
        Ok(certificate)
    }
}

/// The regulariser along a direction from a point: its slope with that of the losses, and its two terms.
pub(super) struct Quadratic {
    pub(super) slope: f64,
    /// `Σ_l w_l·δ_l`
    pub(super) along: f64,
    /// `Σ_l ‖δ_l‖²`
    pub(super) norm2: f64,
}

impl<L: RivalLoss> ManyDescent<'_, L> {
    fn layout(&self) -> Option<Layout> {
        let features = self.space.rows()?.cols();
        let constant = (self.intercept.unit > 0.0).then(|| self.intercept.unit.sqrt());
        Some(Layout { features, constant, free: self.intercept.free, classes: self.classes })
    }

    /// After how many visits of rows Newton's method is worth its matrix: once they have cost as much as a few of its
    /// steps. None if it does not fit.
    pub(super) fn newton_after(&self) -> Option<usize> {
        let layout = self.layout()?;
        let (m, n, d) = (self.codes.len() as f64, layout.size() as f64, layout.width() as f64);
        let matrix = n <= MOST_WEIGHTS as f64;
        let room = if matrix { 2.0 * n * n } else { (PARTS + 8) as f64 * n };
        let bytes = 8.0 * (room + 2.0 * m * self.classes as f64);
        if bytes > 0.5 * self.settings.memory as f64 {
            return None;
        }
        if !matrix {
            // Of few rows the dual variables are few as well, and the passes quick.
            return (m >= MANY_ROWS * d).then_some((MANY_PASSES * m) as usize);
        }
        let step = n * n * n / 3.0 + 2.0 * m * d * d;
        let passes = (3.0 * step / (m * (2.0 * n + VISIT))).clamp(FEW_PASSES, MANY_PASSES);
        Some((passes * m) as usize)
    }

    /// Goes on from the present point until the relative gap is at most `tol`.
    pub(super) fn newton(&mut self, tol: f64, from: Certificate, limit: usize) -> Result<(Certificate, StopReason)> {
        let Some(layout) = self.layout() else { return Ok((from, StopReason::Iterations)) };
        let point = self.point(layout);
        self.newton_from(point, tol, from.gap().clamp(1e-6, 1.0), limit)
    }

    /// Goes on from where Newton's method stopped, whatever the loss is now.
    pub(super) fn newton_on(&mut self, tol: f64, limit: usize) -> Result<(Certificate, StopReason)> {
        let Some(layout) = self.layout() else { return Ok((self.certify()?, StopReason::Iterations)) };
        let point = self.point(layout);
        let sigma = self.sigma_at(&point.scores);
        self.newton_from(point, tol, sigma, limit)
    }

    /// How wide the first envelopes are around multipliers that may be near their solution: by what the rows add to the gap, in parts of
    /// the losses.
    pub(super) fn sigma_at(&self, scores: &[f64]) -> f64 {
        let k = self.classes;
        let part = |range: Range<usize>| {
            let (mut gap, mut risk, mut scratch) = (0.0, 0.0, RowScratch::default());
            for i in range {
                let seen = self.row_gap(i, &scores[i * k..][..k], &self.duals[i], &mut scratch, |_, _| {});
                gap += seen.gap;
                risk += seen.loss;
            }
            vec![gap, risk]
        };
        let m = self.codes.len();
        match add_up(fold(m, m.div_ceil(CHUNK), part))[..] {
            [gap, risk] if risk > 0.0 => (WIDER * gap / risk).clamp(LEAST_SIGMA, 1.0),
            _ => 1.0,
        }
    }

    /// Whether Newton's method suits so well that [`settle`](Self::settle) does.
    pub fn settles(&self) -> bool {
        let light = |layout: Layout| {
            let (n, d) = (layout.size(), layout.width() as f64);
            let (factor, sums) = ((n as f64).powi(3) / 3.0, 2.0 * self.codes.len() as f64 * d * d);
            // With free intercepts conjugate gradients crawl where features are not scaled: mnist as it comes was not done in 130 s (nor
            // is it in 90 s by the passes that begin instead).
            if n > MOST_WEIGHTS { !layout.free } else { d > 0.0 && sums <= HEAVY_SUMS * factor }
        };
        self.settings.max_iter.is_none() && self.newton_after().is_some() && self.layout().is_some_and(light)
    }

    /// Goes on to this gap with rivals that are frozen anew whenever the multipliers move: a start near where the rounds end. The
    /// wide envelopes of the beginning also smooth away many a poor optimum.
    pub fn settle(&mut self, tol: f64) -> Result<()> {
        let Some(layout) = self.layout() else { return Ok(()) };
        let mut point = self.point(layout);
        let (mut sigma, mut steps) = (1.0, 0);
        for _ in 0..SETTLING {
            let look = point.look(self, sigma)?;
            let (primal, relative) = self.report(point.layout.product(&point.weights, &point.weights), &look)?;
            if relative <= tol {
                self.take_over(&point, look.duals);
                return Ok(());
            }
            if look.is_near() {
                self.duals = look.duals;
                self.follow(&point.scores);
                sigma *= rescale(steps);
                steps = 0;
            } else if steps == STRUGGLE {
                sigma *= WIDEN;
                steps = 0;
            } else {
                point.step(self, &look, sigma, tol * primal.abs())?;
                self.passes += 1;
                steps += 1;
            }
        }
        let look = point.look(self, sigma)?;
        self.take_over(&point, look.duals);
        Ok(())
    }

    /// The primal objective and the relative gap at a look, which observers hear of.
    fn report(&self, norm2: f64, look: &Look) -> Result<(f64, f64)> {
        let primal = 0.5 * norm2 + look.loss;
        let relative = look.gap() / primal.abs().max((primal - look.gap()).abs()).max(f64::MIN_POSITIVE);
        self.control.report(Progress { iteration: self.passes, objective: Some(primal), gap: Some(relative) })?;
        Ok((primal, relative))
    }

    /// Freezes the present rivals. A row that gets another one has the pull of that in its dual variables.
    fn follow(&mut self, scores: &[f64]) {
        let mut row = Vec::with_capacity(self.classes);
        for (i, scores) in scores.chunks_exact(self.classes).enumerate() {
            let y = self.codes[i];
            row.clear();
            row.extend_from_slice(scores);
            let own = std::mem::replace(&mut row[y as usize], f64::NEG_INFINITY);
            let (margin, rival) = margin(own, y, &row);
            if let Some(beta) = self.loss.freeze(i, rival, margin) {
                self.duals[i].beta = beta;
            }
        }
    }

    /// The method of multipliers from a point, the first envelopes being as wide as `σ` says.
    pub(super) fn newton_from<P: NewtonPoint<L>>(
        &mut self,
        mut point: P,
        tol: f64,
        mut sigma: f64,
        limit: usize,
    ) -> Result<(Certificate, StopReason)> {
        let (mut aim, mut best, mut lowest, mut stale, mut steps) = (tol, f64::INFINITY, f64::INFINITY, 0, 0);
        for _ in 0..MOST_STEPS {
            let look = point.look(self, sigma)?;
            let (primal, relative) = self.report(point.norm2(), &look)?;
            stale = if relative < 0.9 * best || primal < 0.99 * lowest { 0 } else { stale + 1 };
            (best, lowest) = (best.min(relative), lowest.min(primal));
            let stuck = stale >= 40 && relative < 1e-6 || stale >= 100;
            let last = stuck || self.passes >= limit;
            if relative <= aim || last {
                let certificate = point.adopt(self, &look, if last { f64::INFINITY } else { tol })?;
                if last || certificate.gap() <= tol {
                    let stop = match certificate.gap() {
                        gap if gap <= tol => StopReason::Gap,
                        gap if stuck && gap < 1e-6 => StopReason::Precision,
                        _ => StopReason::Iterations,
                    };
                    return Ok((certificate, stop));
                }
                aim = 0.3 * relative;
            }
            if look.is_near() {
                self.duals = look.duals;
                sigma *= rescale(steps);
                steps = 0;
                continue;
            }
            if steps == STRUGGLE {
                // Too many kinks lie close by: smooth them more.
                sigma *= WIDEN;
                steps = 0;
                continue;
            }
            point.step(self, &look, sigma, aim * primal.abs())?;
            self.passes += 1;
            steps += 1;
        }
        let look = point.look(self, sigma)?;
        Ok((point.adopt(self, &look, f64::INFINITY)?, StopReason::Iterations))
    }

    /// The present point as weights and scores.
    fn point(&self, layout: Layout) -> ManyPoint {
        let mut weights = Vec::with_capacity(layout.size());
        for (l, w) in self.space.weights().unwrap_or_default().into_iter().take(self.classes).enumerate() {
            weights.extend(w);
            weights.extend(layout.constant.map(|c| self.intercept.values[l] / c));
        }
        let scores = self.products(&layout, &weights);
        ManyPoint { layout, scores, weights }
    }

    /// `w_l·x_i` of all rows and classes.
    fn products(&self, layout: &Layout, weights: &[f64]) -> Vec<f64> {
        let mut scores = vec![0.0; self.classes * self.codes.len()];
        scores.par_chunks_mut(self.classes * CHUNK).enumerate().for_each(|(chunk, scores)| {
            for (at, scores) in scores.chunks_exact_mut(self.classes).enumerate() {
                for (score, w) in scores.iter_mut().zip(weights.chunks_exact(layout.width())) {
                    *score = self.product(layout, chunk * CHUNK + at, w);
                }
            }
        });
        scores
    }

    /// The features of row `i`, zeros written out.
    pub(super) fn features(&self, layout: &Layout, i: usize, out: &mut [f64]) {
        out.fill(0.0);
        self.add_features(layout, i, 1.0, out);
    }

    /// `out += a x_i`
    pub(super) fn add_features(&self, layout: &Layout, i: usize, a: f64, out: &mut [f64]) {
        if let Some(rows) = self.space.rows() {
            rows.axpy(i, a, &mut out[..layout.features]);
        }
        if let Some(c) = layout.constant {
            out[layout.features] += a * c;
        }
    }

    /// `w·x_i`
    pub(super) fn product(&self, layout: &Layout, i: usize, w: &[f64]) -> f64 {
        let sum = self.space.rows().map_or(0.0, |rows| rows.dot(i, &w[..layout.features]));
        sum + layout.constant.map_or(0.0, |c| c * w[layout.features])
    }

    /// `σ_i`: the envelope of a kink of height `h_i` is quadratic over a stretch `σ_i h_i` of scores.
    pub(super) fn row_sigma(&self, i: usize, sigma: f64) -> f64 {
        let height = self.loss.height(i);
        if height > 0.0 { 2.0 * sigma / height } else { 0.0 }
    }

    /// Solves row `i` for `v⁺` at the given scores; the solution is in the block, whose classes are all but the own.
    fn respond(&self, i: usize, a: f64, scores: &[f64], scratch: &mut RowScratch) {
        let (y, dual) = (self.codes[i] as usize, &self.duals[i]);
        let place = |l: u32| l as usize - usize::from(l as usize > y);
        let block = &mut scratch.block;
        block.rest.clear();
        block.rest.extend_from_slice(&scores[..y]);
        block.rest.extend_from_slice(&scores[y + 1..]);
        for &(l, z) in &dual.zeta {
            block.rest[place(l)] += a * z;
        }
        block.own = scores[y] - a * (dual.total() - dual.beta);
        block.partner = self.loss.partner(i).map(place);
        if let Some(r) = block.partner {
            block.rest[r] -= a * dual.beta;
        }
        self.loss.solve(i, a, block);
    }

    /// `v⁺` of row `i` at the given scores.
    pub(super) fn envelope_dual(&self, i: usize, sigma: f64, scores: &[f64], scratch: &mut RowScratch) -> RowDual {
        let (y, a) = (self.codes[i], self.row_sigma(i, sigma));
        if a <= 0.0 {
            return RowDual::default();
        }
        self.respond(i, a, scores, scratch);
        let RowBlock { zeta, beta, .. } = &scratch.block;
        let class = |p: usize| p as u32 + u32::from(p as u32 >= y);
        RowDual {
            zeta: zeta.iter().enumerate().filter(|z| *z.1 > 0.0).map(|(p, z)| (class(p), *z)).collect(),
            beta: *beta,
        }
    }

    /// What the rows say at a point, each with the dual variables that `dual` gives it.
    fn look_with(&self, point: &ManyPoint, dual: impl Fn(usize, &mut RowScratch) -> RowDual + Sync) -> Result<Look> {
        let (m, layout) = (self.codes.len(), &point.layout);
        let part = |range: Range<usize>| -> Result<Look> {
            self.control.check()?;
            let mut look = Look { gradient: vec![0.0; layout.size()], ..Look::default() };
            let mut scratch = RowScratch::default();
            for i in range {
                let dual = dual(i, &mut scratch);
                self.add_row(point, i, dual, &mut look, &mut scratch);
            }
            Ok(look)
        };
        let mut look = Look { gradient: vec![0.0; layout.size()], ..Look::default() };
        for part in fold(m, super::parts(m), part) {
            look.add(part?);
        }
        self.finish(point, &mut look);
        Ok(look)
    }

    /// Adds what row `i` with these dual variables gives.
    fn add_row(&self, point: &ManyPoint, i: usize, dual: RowDual, look: &mut Look, scratch: &mut RowScratch) {
        let (k, layout, width) = (self.classes, &point.layout, point.layout.width());
        let Look { gradient, balance, .. } = look;
        let seen = self.row_gap(i, &point.scores[i * k..][..k], &dual, scratch, |l, v| {
            *balance += v.abs();
            if v != 0.0 {
                self.add_features(layout, i, -v, &mut gradient[l * width..][..width]);
            }
        });
        look.loss += seen.loss;
        look.row_gap += seen.gap;
        look.duals.push(dual);
    }

    /// Adds `w` to the gradient, and measures its parts.
    fn finish(&self, point: &ManyPoint, look: &mut Look) {
        let (layout, width) = (&point.layout, point.layout.width());
        let size = look.balance;
        let mut imbalance = 0.0;
        for (g, w) in look.gradient.chunks_exact_mut(width).zip(point.weights.chunks_exact(width)) {
            let counted = if layout.free { layout.features } else { width };
            axpy(1.0, &w[..counted], &mut g[..counted]);
            if let (true, Some(c)) = (layout.free, layout.constant) {
                imbalance += g[layout.features].abs() / c;
            }
        }
        look.balance = if size > 0.0 { imbalance / size } else { 0.0 };
        look.distance = 0.5 * layout.product(&look.gradient, &look.gradient);
    }

    /// Where the slope along the direction is zero, to one part in a hundred.
    pub(super) fn line_search(&self, scores: &[f64], change: &[f64], quadratic: Quadratic, sigma: f64) -> f64 {
        let Quadratic { slope: slope0, along, norm2 } = quadratic;
        let k = self.classes;
        let slope = |t: f64| -> f64 {
            let part = |range: Range<usize>| -> f64 {
                let (mut scratch, mut at, mut sum) = (RowScratch::default(), vec![0.0; k], 0.0);
                for i in range {
                    let a = self.row_sigma(i, sigma);
                    if a > 0.0 {
                        let (scores, change) = (&scores[i * k..][..k], &change[i * k..][..k]);
                        at.iter_mut().zip(scores.iter().zip(change)).for_each(|(at, (s, d))| *at = s + t * d);
                        self.respond(i, a, &at, &mut scratch);
                        sum -= slope_along(&scratch.block, self.codes[i] as usize, change);
                    }
                }
                sum
            };
            let m = self.codes.len();
            along + t * norm2 + fold(m, m.div_ceil(CHUNK), part).iter().sum::<f64>()
        };
        root_of_slope(slope0, slope, LINE_SEARCH)
    }

    /// Both objectives: the primal one at the point, the dual one at `v`, made feasible for free intercepts first.
    /// Their difference is `Σ_i ℓ_i(s_i) + ℓ*_i(−v_i) + v_i·(s_i − b) + ½ Σ_l ‖w_l − Σ_i v_i^l x_i‖²`.
    fn certify_point(&mut self, point: &ManyPoint, duals: &[RowDual]) -> Result<Certificate> {
        let layout = &point.layout;
        let factors =
            if layout.free { circulation(&flow(&self.loss, self.codes, duals), self.classes) } else { BTreeMap::new() };
        let shrunk = |i: usize, _: &mut RowScratch| duals[i].shrunk(self.codes[i], self.loss.partner(i), &factors);
        let look = self.look_with(point, shrunk)?;
        let norm2 = layout.product(&point.weights, &point.weights);
        let primal = 0.5 * norm2 + look.loss;
        self.certified_norm2 = norm2;
        Ok(Certificate { primal, dual: primal - look.gap() })
    }

    /// Takes the point and its dual variables over.
    fn take_over(&mut self, point: &ManyPoint, duals: Vec<RowDual>) {
        let layout = &point.layout;
        let classes = || point.weights.chunks_exact(layout.width());
        self.space.set_weights(&mut classes().map(|w| &w[..layout.features]));
        if let Some(c) = layout.constant {
            for (value, w) in self.intercept.values.iter_mut().zip(classes()) {
                *value = c * w[layout.features];
            }
        }
        self.duals = duals;
        self.margins = None;
        (self.apart, self.helped) = (true, true);
    }
}

/// What `σ` is multiplied by after a move of the multipliers to which so many steps led.
fn rescale(steps: usize) -> f64 {
    match steps {
        0..=EASY => 1.0 / SHRINK,
        steps if steps > HARD => GROW,
        _ => 1.0,
    }
}

/// `v · change` of a solved block whose classes are all but the own.
fn slope_along(block: &RowBlock, own: usize, change: &[f64]) -> f64 {
    let (low, high) = block.zeta.split_at(own);
    let cross = dot(low, &change[..own]) + dot(high, &change[own + 1..]);
    let total: f64 = block.zeta.iter().sum();
    let raised = block.partner.map_or(0.0, |r| change[r + usize::from(r >= own)]);
    (total - block.beta) * change[own] - cross + block.beta * raised
}
