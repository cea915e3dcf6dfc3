//! What the rows say of the point where descent for many classes stands: their margins, both objectives, and what each adds to the gap.

use super::balance::circulation;
use super::dual::{RowDual, flow};
use super::{CHUNK, ManyDescent, PassSums, RowScratch};
use crate::Result;
use crate::linalg::{axpy, fold};
use crate::loss::RivalLoss;
use crate::problem::{Certificate, not_negative};
use std::collections::BTreeMap;

/// Sums over rows that a certificate needs.
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

impl<L: RivalLoss> ManyDescent<'_, L> {
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
                if self.visits > 0 || self.apart {
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

    /// `ℓ_i(s)`, and what row `i` with these dual variables adds to the gap, `ℓ_i(s) + ℓ*_i(−v) + v·s`; `each` meets every `(l, v^l)`.
    pub(super) fn row_gap(
        &self,
        i: usize,
        scores: &[f64],
        dual: &RowDual,
        scratch: &mut RowScratch,
        mut each: impl FnMut(usize, f64),
    ) -> PassSums {
        let (y, partner) = (self.codes[i], self.loss.partner(i));
        let mut product = 0.0;
        dual.coefficients(y, partner, |l, v| {
            product += v * scores[l];
            each(l, v);
        });
        scratch.values.clear();
        scratch.values.extend_from_slice(scores);
        scratch.values[y as usize] = f64::NEG_INFINITY;
        let rival = partner.map_or(0.0, |r| scores[r as usize]);
        let loss = self.loss.value(i, scores[y as usize], &scratch.values, rival);
        PassSums { loss, gap: not_negative(loss + self.loss.conjugate(i, dual.total(), dual.beta) + product) }
    }

    /// Adds row `i` to the sums of a certificate; `factors` shrink its variables where the dual needs repair.
    fn count(&self, sums: &mut CertificateSums, i: usize, scores: &mut [f64], factors: &BTreeMap<(u32, u32), f64>) {
        let (dual, y, partner) = (&self.duals[i], self.codes[i], self.loss.partner(i));
        let rival = partner.map_or(0.0, |r| scores[r as usize]);
        let own = std::mem::replace(&mut scores[y as usize], f64::NEG_INFINITY);
        let loss = self.loss.value(i, own, scores, rival);
        let product = dual.product(own, rival, dual.zeta.iter().map(|z| scores[z.0 as usize]));
        let share = not_negative(loss + self.loss.conjugate(i, dual.total(), dual.beta) + product);
        sums.margins.push(margin(own, y, scores));
        sums.loss += loss;
        sums.gap += share;
        sums.shares.push(share);
        scores[y as usize] = own;
        let plain = |l: u32| scores[l as usize] - self.intercept.values[l as usize];
        let (own, rival) = (plain(y), partner.map_or(0.0, plain));
        sums.product += dual.product(own, rival, dual.zeta.iter().map(|z| plain(z.0)));
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
        // What is left of the row's variables, as in `shrunk`, without a vector for every row.
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
        sums.repaired += (kept - beta) * own + beta * rival - cross;
        sums.conjugate += self.loss.conjugate(i, kept, beta);
    }
}

/// The margin, and the lowest class among the best rivals, of a row whose own score stands apart: −∞ is in its place.
pub(super) fn margin(own: f64, y: u32, scores: &[f64]) -> (f64, u32) {
    let mut best = usize::from(y == 0);
    for l in best + 1..scores.len() {
        if scores[l] > scores[best] {
            best = l;
        }
    }
    (own - scores[best], best as u32)
}
