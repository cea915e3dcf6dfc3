//! The home of coordinate descent: a weight vector.

use super::dcd::DualSpace;
use super::newton::{Direction, Model, Space};
use super::passes::LinearRows;
use crate::Result;
use crate::control::Control;
use crate::data::Rows;
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
    /// `‖x_i‖²`
    pub norms2: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(rows: &'a LinearRows<'a, X>) -> Self {
        let norms2 = (0..rows.x.rows()).into_par_iter().with_min_len(1024).map(|i| rows.x.norm2(i)).collect();
        Self { rows, w: vec![0.0; rows.width()], margins: Vec::new(), norms2 }
    }
}

impl<X: Rows> DualSpace for Weights<'_, X> {
    #[inline(always)]
    fn score(&mut self, i: usize) -> f64 {
        self.rows.x.dot(i, &self.w[..self.rows.x.cols()])
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.norms2[i]
    }

    #[inline(always)]
    fn change(&mut self, i: usize, change: f64) -> Result<()> {
        self.rows.x.axpy(i, change, &mut self.w[..self.rows.x.cols()]);
        Ok(())
    }

    fn together(&self) -> usize {
        // Long enough for memory to be read ahead; of few rows each goes alone, as files are often sorted by class.
        (self.rows.x.rows() / 256).clamp(1, 64)
    }

    fn certified<R>(&mut self, c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R> {
        // The intercept is the business of coordinate descent itself; here it becomes a weight.
        if let Some(last) = self.w.get_mut(self.rows.x.cols()) {
            *last = intercept / self.rows.constant();
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

    fn advance(&mut self, _step: f64, _direction: Direction, _model: &Model<'_>) {
        unreachable!("a certified point does not move")
    }
}
