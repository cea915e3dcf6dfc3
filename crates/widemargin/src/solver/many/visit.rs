//! One step of descent for many classes: all dual variables of a row.

use super::{ManyDescent, PassSums};
use crate::linalg::axpy;
use crate::loss::{RivalLoss, RowBlock};
use crate::problem::not_negative;

/// Most classes a full visit brings into a row's block, beside those it has.
const BLOCK: usize = 32;
/// Classes with `ζ = 0` that a row keeps looking at between full passes. (Sparse, 8,000 × 1,500, 30 classes: as many passes with any
/// number; with none 0.08 s, with 4 0.10 s, with 8 0.13 s, with 16 0.14 s.)
const WATCHED: usize = 4;

/// Vectors for one row's work, kept between rows.
#[derive(Default)]
pub(super) struct RowScratch {
    pub(super) scores: Vec<f64>,
    pub(super) classes: Vec<u32>,
    pub(super) values: Vec<f64>,
    pub(super) before: Vec<f64>,
    pub(super) order: Vec<u32>,
    pub(super) change: Vec<(u32, f64)>,
    pub(super) block: RowBlock,
}

impl<L: RivalLoss> ManyDescent<'_, L> {
    /// One block step; tells the row's share of the gap and its loss before it.
    pub(super) fn visit(&mut self, i: usize, full: bool, ignore: f64) -> PassSums {
        let mut scratch = std::mem::take(&mut self.scratch);
        let partner = self.loss.partner(i);
        let (own, loss) = self.open_block(i, full, partner, &mut scratch);
        let dual = &self.duals[i];
        let (total, at_partner) = (dual.total(), scratch.block.partner.map_or(0.0, |p| scratch.values[p]));
        let product = dual.product(own, at_partner, scratch.values.iter().copied());
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
