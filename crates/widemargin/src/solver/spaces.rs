//! The home of coordinate descent: a weight vector.

use super::dcd::DualSpace;
use super::linear::LinearSpace;
use super::newton::Space;
use super::passes::LinearRows;
use crate::Result;
use crate::data::Rows;
use crate::machine::Bias;

/// `w` as a vector (with the weight of a regularised constant feature at its end).
pub struct Weights<'a, X: Rows> {
    /// The rows.
    pub rows: &'a LinearRows<'a, X>,
    /// `w`
    pub w: Vec<f64>,
}

impl<'a, X: Rows> Weights<'a, X> {
    /// `w = 0`
    pub fn new(rows: &'a LinearRows<'a, X>) -> Self {
        Self { rows, w: vec![0.0; rows.width()] }
    }

    /// The constant feature, if it is regularised: a free intercept is the business of coordinate descent itself.
    fn constant(&self) -> f64 {
        if self.rows.bias == Bias::Free { 0.0 } else { self.rows.constant() }
    }
}

impl<X: Rows> DualSpace for Weights<'_, X> {
    fn score(&mut self, i: usize) -> f64 {
        let (features, rest) = self.w.split_at(self.rows.x.cols());
        self.rows.x.dot(i, features) + rest.first().map_or(0.0, |b| b * self.constant())
    }

    fn diagonal(&self, i: usize) -> f64 {
        self.rows.norm2(i)
    }

    fn change(&mut self, i: usize, change: f64) -> Result<()> {
        let (d, constant) = (self.rows.x.cols(), self.constant());
        self.rows.x.axpy(i, change, &mut self.w[..d]);
        if constant != 0.0 {
            self.w[d] += change * constant;
        }
        Ok(())
    }

    fn certified<R>(&mut self, _c: &[f64], intercept: f64, then: impl FnOnce(&mut dyn Space) -> R) -> Result<R> {
        let mut w = self.w.clone();
        if self.rows.bias == Bias::Free {
            w[self.rows.x.cols()] = intercept;
        }
        let rows = LinearRows { x: self.rows.x, y: self.rows.y, bias: self.rows.bias };
        Ok(then(&mut LinearSpace::new(rows, w)))
    }
}
