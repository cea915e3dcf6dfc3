//! Passes over the rows of a linear problem, in parallel, with sums that do not depend on the number of threads.

use crate::data::Rows;
use crate::linalg::{self, Cholesky};
use crate::machine::Bias;
use rayon::prelude::*;

/// Rows, labels and the constant feature that carries the intercept.
///
/// The weight vector has one entry a column and, unless the bias is [`Bias::None`], one more for the intercept.
pub struct LinearRows<'a, X: Rows> {
    /// The rows.
    pub x: &'a X,
    /// `y_i`
    pub y: &'a [f64],
    /// How the intercept is treated.
    pub bias: Bias,
}

/// Every `step`-th row of others.
pub struct EachNth<'a, X: Rows> {
    /// The others.
    pub x: &'a X,
    /// How many rows on the next one is.
    pub step: usize,
}

impl<X: Rows> Rows for EachNth<'_, X> {
    fn rows(&self) -> usize {
        self.x.rows().div_ceil(self.step)
    }
    fn cols(&self) -> usize {
        self.x.cols()
    }
    fn stored(&self) -> usize {
        self.x.stored() / self.step
    }
    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        self.x.dot(i * self.step, w)
    }
    #[inline(always)]
    fn axpy(&self, i: usize, a: f64, w: &mut [f64]) {
        self.x.axpy(i * self.step, a, w);
    }
    #[inline(always)]
    fn norm2(&self, i: usize) -> f64 {
        self.x.norm2(i * self.step)
    }
    #[inline(always)]
    fn visit(&self, i: usize, visit: impl FnMut(usize, f64)) {
        self.x.visit(i * self.step, visit);
    }
    #[inline(always)]
    fn extend_scaled(&self, i: usize, a: f64, out: &mut Vec<f64>) {
        self.x.extend_scaled(i * self.step, a, out);
    }
    fn add_outer(&self, i: usize, h: f64, out: &mut [f64], n: usize) {
        self.x.add_outer(i * self.step, h, out, n);
    }
    fn is_dense(&self) -> bool {
        self.x.is_dense()
    }
}

/// Most partial sums a pass keeps. A constant: the partition decides the order of sums.
const MOST_PARTS: usize = 16;

impl<X: Rows> LinearRows<'_, X> {
    /// Length of a weight vector.
    pub fn width(&self) -> usize {
        self.x.cols() + usize::from(self.bias != Bias::None)
    }

    /// The constant feature's value.
    pub fn constant(&self) -> f64 {
        match self.bias {
            Bias::None => 0.0,
            Bias::Feature(value) => value,
            Bias::Free => 1.0,
        }
    }

    /// How much the weight at this position is regularised: 1, or 0 for a free intercept.
    pub fn ridge(&self, position: usize) -> f64 {
        if self.bias == Bias::Free && position == self.x.cols() { 0.0 } else { 1.0 }
    }

    /// `‖x̃_i‖²` with the regularised constant feature.
    pub fn norm2(&self, i: usize) -> f64 {
        match self.bias {
            Bias::Feature(value) => self.x.norm2(i) + value * value,
            _ => self.x.norm2(i),
        }
    }

    fn split<'w>(&self, w: &'w [f64]) -> (&'w [f64], f64) {
        let (features, rest) = w.split_at(self.x.cols());
        (features, rest.first().map_or(0.0, |b| b * self.constant()))
    }

    /// `γ_i = y_i (w·x_i + b)`
    pub fn margins(&self, w: &[f64], out: &mut [f64]) {
        let (features, intercept) = self.split(w);
        let chunk = 1024;
        out.par_chunks_mut(chunk).enumerate().for_each(|(c, out)| {
            for (k, margin) in out.iter_mut().enumerate() {
                let i = c * chunk + k;
                *margin = self.y[i] * (self.x.dot(i, features) + intercept);
            }
        });
    }

    /// Into how many parts a pass with sums of this length is cut: a part should do far more work than its sum costs.
    fn parts(&self, length: usize) -> usize {
        (self.x.stored() / (2 * length.max(1))).clamp(1, MOST_PARTS).min(self.x.rows().max(1))
    }

    fn part(&self, part: usize, parts: usize) -> std::ops::Range<usize> {
        let m = self.x.rows();
        m * part / parts..m * (part + 1) / parts
    }

    /// Runs `add(row, sum)` over all rows, each part with a sum of its own, and adds the parts up in order.
    fn accumulate(&self, length: usize, parts: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let sums: Vec<Vec<f64>> = (0..parts)
            .into_par_iter()
            .map(|part| {
                let mut sum = vec![0.0; length];
                self.part(part, parts).for_each(|i| add(i, &mut sum));
                sum
            })
            .collect();
        add_up(sums)
    }

    /// `Σ v_i y_i x̃_i`
    pub fn combine(&self, v: &[f64]) -> Vec<f64> {
        let (n, d, constant) = (self.width(), self.x.cols(), self.constant());
        self.accumulate(n, self.parts(n), |i, sum| {
            let coefficient = v[i] * self.y[i];
            if coefficient != 0.0 {
                self.x.axpy(i, coefficient, &mut sum[..d]);
                if n > d {
                    sum[d] += coefficient * constant;
                }
            }
        })
    }

    /// `Σ h_i x̃_i (x̃_i · v)`, in one pass.
    pub fn curve(&self, h: &[f64], v: &[f64]) -> Vec<f64> {
        let (n, d, constant) = (self.width(), self.x.cols(), self.constant());
        let (features, intercept) = self.split(v);
        self.accumulate(n, self.parts(n), |i, sum| {
            if h[i] != 0.0 {
                let along = h[i] * (self.x.dot(i, features) + intercept);
                self.x.axpy(i, along, &mut sum[..d]);
                if n > d {
                    sum[d] += along * constant;
                }
            }
        })
    }

    /// The diagonal of `Σ h_i x̃_i x̃_iᵀ`.
    pub fn curve_diagonal(&self, h: &[f64]) -> Vec<f64> {
        let (n, d, constant) = (self.width(), self.x.cols(), self.constant());
        self.accumulate(n, self.parts(n), |i, sum| {
            if h[i] != 0.0 {
                self.x.visit(i, |j, value| sum[j] += h[i] * value * value);
                if n > d {
                    sum[d] += h[i] * constant * constant;
                }
            }
        })
    }

    /// `Σ h_i x̃_i x̃_iᵀ`: `n × n`, lower triangle, column-major.
    pub fn curve_matrix(&self, h: &[f64]) -> Vec<f64> {
        let n = self.width();
        let memory = 24 << 20;
        let parts = (memory / (8 * n * n).max(1)).clamp(1, MOST_PARTS).min(self.x.rows().max(1));
        if self.x.is_dense() { self.dense_curve_matrix(h, parts) } else { self.sparse_curve_matrix(h, parts) }
    }

    fn sparse_curve_matrix(&self, h: &[f64], parts: usize) -> Vec<f64> {
        let (n, d, constant) = (self.width(), self.x.cols(), self.constant());
        self.accumulate(n * n, parts, |i, sum| {
            if h[i] == 0.0 {
                return;
            }
            self.x.add_outer(i, h[i], sum, n);
            if n > d {
                self.x.visit(i, |j, value| sum[j * n + d] += h[i] * value * constant);
                sum[d * n + d] += h[i] * constant * constant;
            }
        })
    }

    fn dense_curve_matrix(&self, h: &[f64], parts: usize) -> Vec<f64> {
        const AT_ONCE: usize = 128;
        let (n, d, constant) = (self.width(), self.x.cols(), self.constant());
        let sums: Vec<Vec<f64>> = (0..parts)
            .into_par_iter()
            .map(|part| {
                let (mut sum, mut block) = (vec![0.0; n * n], Vec::with_capacity(AT_ONCE * n));
                for i in self.part(part, parts) {
                    if h[i] != 0.0 {
                        let root = h[i].sqrt();
                        self.x.extend_scaled(i, root, &mut block);
                        if n > d {
                            block.push(root * constant);
                        }
                    }
                    if block.len() >= AT_ONCE * n {
                        linalg::add_gram(&mut sum, &block, n, 1.0, false);
                        block.clear();
                    }
                }
                if !block.is_empty() {
                    linalg::add_gram(&mut sum, &block, n, 1.0, false);
                }
                sum
            })
            .collect();
        add_up(sums)
    }
}

/// `x̃_iᵀ A⁻¹ x̃_i` for the chosen rows, in parallel blocks.
pub fn leverages<X: Rows>(rows: &LinearRows<'_, X>, factor: &Cholesky, chosen: &[usize]) -> Vec<f64> {
    let n = rows.width();
    let block = |chosen: &[usize]| -> Vec<f64> {
        let mut spread = vec![0.0; n * chosen.len()];
        for (column, &i) in spread.chunks_exact_mut(n).zip(chosen) {
            rows.x.visit(i, |j, v| column[j] = v);
            if n > rows.x.cols() {
                column[n - 1] = rows.constant();
            }
        }
        factor.half_solve(&mut spread, false);
        spread.chunks_exact(n).map(|column| linalg::dot(column, column)).collect()
    };
    chosen.par_chunks(64).flat_map_iter(block).collect()
}

/// Adds vectors up, in order.
fn add_up(mut parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut rest = parts.split_off(1.min(parts.len()));
    let mut total = parts.pop().unwrap_or_default();
    for part in rest.drain(..) {
        linalg::axpy(1.0, &part, &mut total);
    }
    total
}
