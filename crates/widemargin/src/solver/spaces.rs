//! The home of coordinate descent: a weight vector.

use super::certify::{Certified, best_intercept, weights_as_they_are};
use super::dcd::DualSpace;
use crate::Result;
use crate::data::Rows;
use crate::design::Design;
use crate::linalg::{BLOCK, fold};
use crate::problem::MarginProblem;

/// `w` as a vector (with the weight of a regularised constant feature at its end).
pub struct Weights<'a, X: Rows> {
    /// The rows, and the passes over them.
    pub x: &'a X,
    design: &'a Design<'a>,
    y: &'a [f64],
    /// `w`
    pub w: Vec<f64>,
    norms2: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(x: &'a X, design: &'a Design<'a>, y: &'a [f64]) -> Self {
        let norms2 =
            fold(x.rows(), x.rows().div_ceil(BLOCK), |rows| rows.map(|i| x.norm2(i)).collect::<Vec<f64>>()).concat();
        // Written, not only reserved: a page that is read before it is written is mapped twice.
        let mut w = vec![0.0; design.width()];
        std::hint::black_box(&mut w).fill(0.0);
        Self { x, design, y, w, norms2 }
    }

    /// The intercept is the business of coordinate descent itself; here it becomes a weight.
    fn place(&mut self, intercept: f64) {
        if let Some(last) = self.w.get_mut(self.x.cols()) {
            *last = intercept / self.design.constant();
        }
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

    fn margins(&mut self, intercept: f64) -> Vec<f64> {
        self.place(intercept);
        let mut margins = vec![0.0; self.x.rows()];
        self.design.margins(self.y, &self.w, &mut margins);
        margins
    }

    fn certify(&mut self, problem: &MarginProblem<'_>, intercept: f64, v: Vec<f64>) -> (Certified, f64) {
        self.place(intercept);
        let certified = match problem.variance > 0.0 {
            true => weights_as_they_are(self.design, problem, &self.w, Some(v)),
            false => best_intercept(self.design, problem, &mut self.w, v),
        };
        (certified, self.design.split(&self.w).1)
    }
}
