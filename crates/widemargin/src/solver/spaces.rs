//! The two homes of coordinate descent: a weight vector, and cached kernel rows.

use super::dcd::DualSpace;
use super::newton::{Direction, Model, Space};
use super::passes::LinearRows;
use crate::Result;
use crate::control::Control;
use crate::data::Rows;
use crate::kernel::KernelRows;
use crate::linalg;
use crate::machine::Bias;
use rayon::prelude::*;

/// `w` as a vector (with the weight of a regularised constant feature at its end).
pub struct Weights<'a, X: Rows> {
    /// The rows.
    pub rows: &'a LinearRows<'a, X>,
    /// `w`
    pub w: Vec<f64>,
    /// The margins when the point was last certified.
    pub margins: Vec<f64>,
    /// `‖x̃_i‖²`
    norms2: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(rows: &'a LinearRows<'a, X>) -> Self {
        let norms2 = (0..rows.x.rows()).into_par_iter().with_min_len(1024).map(|i| rows.norm2(i)).collect();
        Self { rows, w: vec![0.0; rows.width()], margins: Vec::new(), norms2 }
    }

    /// The constant feature, if it is regularised: a free intercept is the business of coordinate descent itself.
    fn constant(&self) -> f64 {
        if self.rows.bias == Bias::Free { 0.0 } else { self.rows.constant() }
    }
}

impl<X: Rows> DualSpace for Weights<'_, X> {
    #[inline(always)]
    fn score(&mut self, i: usize) -> f64 {
        let (features, rest) = self.w.split_at(self.rows.x.cols());
        self.rows.x.dot(i, features) + rest.first().map_or(0.0, |b| b * self.constant())
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.norms2[i]
    }

    #[inline(always)]
    fn change(&mut self, i: usize, change: f64) -> Result<()> {
        let (d, constant) = (self.rows.x.cols(), self.constant());
        self.rows.x.axpy(i, change, &mut self.w[..d]);
        if constant != 0.0 {
            self.w[d] += change * constant;
        }
        Ok(())
    }

    fn together(&self) -> usize {
        16
    }

    fn certified<R>(&mut self, c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R> {
        if self.rows.bias == Bias::Free {
            self.w[self.rows.x.cols()] = intercept;
        }
        self.margins.resize(self.rows.x.rows(), 0.0);
        self.rows.margins(&self.w, &mut self.margins);
        Ok(then(&mut CertifiedWeights { weights: self, c }))
    }
}

/// A point of [`Weights`] under examination, `w = Σ c_i x_i`: it can be certified, not moved.
struct CertifiedWeights<'s, 'a, X: Rows> {
    weights: &'s Weights<'a, X>,
    c: &'s [f64],
}

impl<X: Rows> CertifiedWeights<'_, '_, X> {
    fn norm2_of(&self, w: &[f64]) -> f64 {
        let free = usize::from(self.weights.rows.bias == Bias::Free);
        let w = &w[..w.len() - free];
        linalg::dot(w, w)
    }
}

impl<X: Rows> Space for CertifiedWeights<'_, '_, X> {
    fn margins(&self) -> &[f64] {
        &self.weights.margins
    }

    fn norm2(&self) -> f64 {
        self.norm2_of(&self.weights.w)
    }

    fn distance2(&mut self, a: &[f64]) -> f64 {
        let rows = self.weights.rows;
        let scale = self.c.iter().fold(0.0f64, |s, c| s.max(c.abs()));
        let moved = |(a, (c, y)): (&f64, (&f64, &f64))| {
            let moved = a - c * y;
            if moved.abs() > 1e-15 * scale { moved } else { 0.0 }
        };
        let moved: Vec<f64> = a.iter().zip(self.c.iter().zip(rows.y)).map(moved).collect();
        // The triangle inequality bounds it from above, which is as good as long as that is next to nothing.
        let most: f64 = moved.iter().zip(&self.weights.norms2).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
        let most = most * most;
        if most <= 1e-9 * self.norm2() { most } else { self.norm2_of(&rows.combine(&moved)) }
    }

    fn direction(&mut self, _model: &Model<'_>, _control: Control<'_>) -> Result<Direction> {
        unreachable!("a certified point does not move")
    }

    fn advance(&mut self, _step: f64, _margins: &[f64]) {
        unreachable!("a certified point does not move")
    }
}

/// Kernel rows within a memory budget, and the score of every row under the present coefficients.
pub struct CachedRows<'a> {
    kernel: &'a KernelRows<'a>,
    y: &'a [f64],
    scores: Vec<f64>,
    cache: Cache,
    control: Control<'a>,
}

impl<'a> CachedRows<'a> {
    /// All coefficients zero; at most `memory` bytes of rows are kept.
    pub fn new(kernel: &'a KernelRows<'a>, y: &'a [f64], memory: u64, control: Control<'a>) -> Self {
        let n = kernel.len();
        Self { kernel, y, scores: vec![0.0; n], cache: Cache::new(n, memory), control }
    }
}

impl DualSpace for CachedRows<'_> {
    fn score(&mut self, i: usize) -> f64 {
        self.scores[i]
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.kernel.diagonal(i)
    }

    fn change(&mut self, i: usize, change: f64) -> Result<()> {
        self.control.check()?;
        let row = self.cache.row(i, |row| self.kernel.row(i, row));
        for (score, k) in self.scores.iter_mut().zip(row) {
            *score += change * k;
        }
        Ok(())
    }

    fn certified<R>(&mut self, c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R> {
        let margins = self.scores.iter().zip(self.y).map(|(f, y)| y * (f + intercept)).collect();
        Ok(then(&mut CertifiedRows { rows: self, c, margins }))
    }
}

/// A point of [`CachedRows`] under examination: it can be certified, not moved.
struct CertifiedRows<'s, 'a> {
    rows: &'s mut CachedRows<'a>,
    c: &'s [f64],
    margins: Vec<f64>,
}

impl Space for CertifiedRows<'_, '_> {
    fn margins(&self) -> &[f64] {
        &self.margins
    }

    fn norm2(&self) -> f64 {
        linalg::dot(self.c, &self.rows.scores).max(0.0)
    }

    fn distance2(&mut self, a: &[f64]) -> f64 {
        let difference: Vec<f64> = (0..a.len()).map(|i| self.c[i] - a[i] * self.rows.y[i]).collect();
        let scale = self.c.iter().fold(0.0f64, |s, c| s.max(c.abs()));
        let moved: Vec<usize> = (0..a.len()).filter(|&i| difference[i].abs() > 1e-15 * scale).collect();
        if moved.is_empty() {
            return 0.0;
        }
        // Rows are recomputed in parallel blocks: the cache would serve one at a time.
        let kernel = self.rows.kernel;
        let block = 64;
        let sums: Vec<f64> = moved
            .par_chunks(block)
            .map(|rows| {
                let mut values = vec![0.0; kernel.len()];
                let sum = |&i: &usize| {
                    kernel.row(i, &mut values);
                    difference[i] * linalg::dot(&values, &difference)
                };
                rows.iter().map(sum).sum()
            })
            .collect();
        sums.iter().sum::<f64>().max(0.0)
    }

    fn direction(&mut self, _model: &Model<'_>, _control: Control<'_>) -> Result<Direction> {
        unreachable!("a certified point does not move")
    }

    fn advance(&mut self, _step: f64, _margins: &[f64]) {
        unreachable!("a certified point does not move")
    }
}

/// Rows of the kernel matrix, the one unused for longest replaced first.
struct Cache {
    n: usize,
    /// Slot of each row, or none.
    slot: Vec<Option<u32>>,
    /// Row in each slot and when it was last used.
    owner: Vec<(usize, u64)>,
    values: Vec<f64>,
    slots: usize,
    clock: u64,
}

impl Cache {
    fn new(n: usize, memory: u64) -> Self {
        let slots = (memory / (8 * n.max(1) as u64)).clamp(2, n.max(2) as u64) as usize;
        Self { n, slot: vec![None; n], owner: Vec::new(), values: Vec::new(), slots, clock: 0 }
    }

    fn row(&mut self, i: usize, fill: impl FnOnce(&mut [f64])) -> &[f64] {
        self.clock += 1;
        let slot = match self.slot[i] {
            Some(slot) => slot as usize,
            None => {
                let slot = self.free_slot();
                fill(&mut self.values[slot * self.n..(slot + 1) * self.n]);
                self.slot[i] = Some(slot as u32);
                slot
            }
        };
        self.owner[slot] = (i, self.clock);
        &self.values[slot * self.n..(slot + 1) * self.n]
    }

    fn free_slot(&mut self) -> usize {
        if self.owner.len() < self.slots {
            self.owner.push((0, 0));
            self.values.resize(self.owner.len() * self.n, 0.0);
            return self.owner.len() - 1;
        }
        let slot = (0..self.slots).min_by_key(|&s| self.owner[s].1).unwrap_or(0);
        self.slot[self.owner[slot].0] = None;
        slot
    }
}
