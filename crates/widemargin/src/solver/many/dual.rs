//! The dual point of many classes, as far as it is not zero.

use super::balance::Flow;
use crate::loss::RivalLoss;
use std::collections::BTreeMap;

/// The dual variables of a row that are not zero (and a few classes it watches).
#[derive(Clone, Debug, Default)]
pub struct RowDual {
    pub(super) zeta: Vec<(u32, f64)>,
    /// `β_i`
    pub beta: f64,
}

impl RowDual {
    /// `Σ_l ζ_i^l`
    #[inline]
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

    /// `v_i·s`, given the own class's and the partner's score and those of the classes of `ζ`, in their order.
    #[inline]
    pub(super) fn product(&self, own: f64, partner: f64, scores: impl Iterator<Item = f64>) -> f64 {
        let cross: f64 = self.zeta.iter().zip(scores).map(|(&(_, z), s)| z * s).sum();
        (self.total() - self.beta) * own + self.beta * partner - cross
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

/// `v_i^l`, class after class.
pub fn columns<L: RivalLoss>(loss: &L, codes: &[u32], duals: &[RowDual], classes: usize) -> Vec<f64> {
    let m = codes.len();
    let mut columns = vec![0.0; m * classes];
    for (i, dual) in duals.iter().enumerate() {
        dual.coefficients(codes[i], loss.partner(i), |l, v| columns[l * m + i] += v);
    }
    columns
}
