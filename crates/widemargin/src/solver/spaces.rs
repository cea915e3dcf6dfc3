//! The home of coordinate descent: a weight vector.

use super::dcd::DualSpace;
use super::newton::{Direction, QuadraticModel, Space};
use crate::Result;
use crate::control::Control;
use crate::data::Rows;
use crate::design::Design;
use crate::linalg;
use rayon::prelude::*;

/// `w` as a vector (with the weight of a regularised constant feature at its end).
pub struct Weights<'a, X: Rows> {
    /// The rows, and the passes over them.
    pub x: &'a X,
    design: &'a Design<'a>,
    y: &'a [f64],
    /// `w`
    pub w: Vec<f64>,
    /// The margins when the point was last certified.
    pub margins: Vec<f64>,
    /// `‖x_i‖²`
    pub norms2: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(x: &'a X, design: &'a Design<'a>, y: &'a [f64]) -> Self {
        let norms2 = (0..x.rows()).into_par_iter().with_min_len(1024).map(|i| x.norm2(i)).collect();
        Self { x, design, y, w: vec![0.0; design.width()], margins: Vec::new(), norms2 }
    }
}

impl<X: Rows> DualSpace for Weights<'_, X> {
    #[inline(always)]
    fn score(&mut self, i: usize) -> f64 {
        self.x.dot(i, &self.w[..self.x.cols()])
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.norms2[i]
    }

    #[inline(always)]
    fn change(&mut self, i: usize, change: f64) -> Result<()> {
        self.x.axpy(i, change, &mut self.w[..self.x.cols()]);
        Ok(())
    }

    fn together(&self) -> usize {
        // Long enough for memory to be read ahead; of few rows each goes alone, as files are often sorted by class.
        (self.x.rows() / 256).clamp(1, 64)
    }

    fn certified<R>(&mut self, c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R> {
        // The intercept is the business of coordinate descent itself; here it becomes a weight.
        if let Some(last) = self.w.get_mut(self.x.cols()) {
            *last = intercept / self.design.constant();
        }
        self.margins.resize(self.x.rows(), 0.0);
        self.design.margins(self.y, &self.w, &mut self.margins);
        Ok(then(&mut CertifiedWeights { weights: self, c }))
    }
}

/// A point of [`Weights`] under examination, `w = Σ c_i x_i`: it can be certified, not moved.
struct CertifiedWeights<'s, 'a, X: Rows> {
    weights: &'s Weights<'a, X>,
    c: &'s [f64],
}

impl<X: Rows> Space for CertifiedWeights<'_, '_, X> {
    fn margins(&self) -> &[f64] {
        &self.weights.margins
    }

    fn norm2(&self) -> f64 {
        let w = self.weights.design.regularised(&self.weights.w);
        linalg::dot(w, w)
    }

    fn distance2(&mut self, a: &[f64]) -> f64 {
        let (design, y) = (self.weights.design, self.weights.y);
        let scale = self.c.iter().fold(0.0f64, |s, c| s.max(c.abs()));
        let moved = |(a, (c, y)): (&f64, (&f64, &f64))| {
            let moved = a - c * y;
            if moved.abs() > 1e-15 * scale { moved } else { 0.0 }
        };
        let moved: Vec<f64> = a.iter().zip(self.c.iter().zip(y)).map(moved).collect();
        // The triangle inequality bounds it from above, which is as good as long as that is next to nothing.
        let most: f64 = moved.iter().zip(&self.weights.norms2).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
        let most = most * most;
        if most <= 1e-9 * self.norm2() {
            return most;
        }
        let combined = design.combine(|i| moved[i] * y[i]);
        let combined = design.regularised(&combined);
        linalg::dot(combined, combined)
    }

    fn direction(&mut self, _model: &QuadraticModel<'_>, _control: Control<'_>) -> Result<Direction> {
        unreachable!("a certified point does not move")
    }

    fn advance(&mut self, _step: f64, _direction: Direction, _model: &QuadraticModel<'_>) {
        unreachable!("a certified point does not move")
    }
}
