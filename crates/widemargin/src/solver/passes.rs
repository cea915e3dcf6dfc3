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

    /// The weights of the features, and the intercept they are used with.
    pub fn split<'w>(&self, w: &'w [f64]) -> (&'w [f64], f64) {
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

    /// One value a row, cut where the parts are.
    fn cut<'s>(&self, mut values: &'s mut [f64], parts: usize) -> Vec<&'s mut [f64]> {
        let cut = |part| {
            let (head, tail) = std::mem::take(&mut values).split_at_mut(self.part(part, parts).len());
            values = tail;
            head
        };
        (0..parts).map(cut).collect()
    }

    /// `sum += factor · x̃_i`
    #[inline(always)]
    fn add_row(&self, i: usize, factor: f64, sum: &mut [f64]) {
        let d = self.x.cols();
        self.x.axpy(i, factor, &mut sum[..d]);
        if let Some(last) = sum.get_mut(d) {
            *last += factor * self.constant();
        }
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
        let n = self.width();
        self.accumulate(n, self.parts(n), |i, sum| {
            let coefficient = v[i] * self.y[i];
            if coefficient != 0.0 {
                self.add_row(i, coefficient, sum);
            }
        })
    }

    /// `Σ (v_i − u_i) y_i x̃_i` over the rows that differ by more than rounding; `u` becomes `v`.
    pub fn combine_change(&self, u: &mut [f64], v: &[f64]) -> Vec<f64> {
        const SAME: f64 = 1e-12;
        let n = self.width();
        let parts = self.parts(n);
        let changed = self.cut(u, parts).into_par_iter().enumerate().map(|(part, u)| {
            let mut sum = vec![0.0; n];
            for (i, u) in self.part(part, parts).zip(u) {
                let change = v[i] - *u;
                if change.abs() > SAME * (v[i].abs() + u.abs()) {
                    self.add_row(i, change * self.y[i], &mut sum);
                }
                *u = v[i];
            }
            sum
        });
        add_up(changed.collect())
    }

    /// `Σ h_i x̃_i (x̃_i · v)`, in one pass.
    pub fn curve(&self, h: &[f64], v: &[f64]) -> Vec<f64> {
        let n = self.width();
        let (features, intercept) = self.split(v);
        self.accumulate(n, self.parts(n), |i, sum| {
            if h[i] != 0.0 {
                let along = h[i] * (self.x.dot(i, features) + intercept);
                self.add_row(i, along, sum);
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
        let parts = self.matrix_parts();
        let sums = (0..parts).into_par_iter().map(|part| {
            let mut sum = Outer::new(self);
            self.part(part, parts).filter(|&i| h[i] != 0.0).for_each(|i| sum.add(i, h[i]));
            sum.finish()
        });
        add_up(sums.collect())
    }

    /// `Σ (h_i − g_i) x̃_i x̃_iᵀ`, at the cost of the rows that differ.
    pub fn curve_change(&self, g: &[f64], h: &[f64]) -> Vec<f64> {
        let parts = self.matrix_parts();
        let changed = (0..parts).into_par_iter().map(|part| {
            let (mut more, mut less) = (Outer::new(self), Outer::new(self));
            for i in self.part(part, parts) {
                match h[i] - g[i] {
                    change if change > 0.0 => more.add(i, change),
                    change if change < 0.0 => less.add(i, -change),
                    _ => {}
                }
            }
            let mut change = more.finish();
            linalg::axpy(-1.0, &less.finish(), &mut change);
            change
        });
        add_up(changed.collect())
    }

    /// Everything a Newton step needs to know at `w`, each row being read once; `slopes(i, γ_i)` is `(a_i, h_i)`.
    pub fn survey(&self, w: &[f64], slopes: impl Fn(usize, f64) -> (f64, f64) + Sync) -> Survey {
        let (features, intercept) = self.split(w);
        let (n, parts) = (self.width(), self.matrix_parts());
        let [mut margins, mut duals, mut curvature] = [(); 3].map(|()| vec![0.0; self.x.rows()]);
        let cuts = [&mut margins, &mut duals, &mut curvature].map(|values| self.cut(values, parts));
        let [margins_of, duals_of, curvature_of] = cuts.map(IntoParallelIterator::into_par_iter);
        let parts_of = margins_of.zip(duals_of).zip(curvature_of).enumerate();
        let surveyed = parts_of.map(|(part, ((margins, duals), curvature))| {
            let (mut combined, mut outer) = (vec![0.0; n], Outer::new(self));
            for (k, i) in self.part(part, parts).enumerate() {
                let margin = self.y[i] * (self.x.dot(i, features) + intercept);
                let (a, h) = slopes(i, margin);
                if a != 0.0 {
                    self.add_row(i, a * self.y[i], &mut combined);
                }
                if h != 0.0 {
                    outer.add(i, h);
                }
                (margins[k], duals[k], curvature[k]) = (margin, a, h);
            }
            (combined, outer.finish())
        });
        let (combined, matrices): (Vec<_>, Vec<_>) = surveyed.collect::<Vec<_>>().into_iter().unzip();
        Survey { margins, a: duals, curvature, combined: add_up(combined), matrix: add_up(matrices) }
    }

    /// Margins, norms and `Σ a_i y_i x̃_i` with `a_i = dual(i, γ_i)`, each row being read once.
    pub fn scan(&self, w: &[f64], dual: impl Fn(usize, f64) -> f64 + Sync) -> Scan {
        let (features, intercept) = self.split(w);
        let n = self.width();
        let parts = self.parts(n);
        let [mut margins, mut duals, mut norms2] = [(); 3].map(|()| vec![0.0; self.x.rows()]);
        let cuts = [&mut margins, &mut duals, &mut norms2].map(|values| self.cut(values, parts));
        let [margins_of, duals_of, norms2_of] = cuts.map(IntoParallelIterator::into_par_iter);
        let sums = margins_of.zip(duals_of).zip(norms2_of).enumerate().map(|(part, ((margins, duals), norms2))| {
            let mut sum = vec![0.0; n];
            for (k, i) in self.part(part, parts).enumerate() {
                let margin = self.y[i] * (self.x.dot(i, features) + intercept);
                let a = dual(i, margin);
                if a != 0.0 {
                    self.add_row(i, a * self.y[i], &mut sum);
                }
                (margins[k], duals[k], norms2[k]) = (margin, a, self.norm2(i));
            }
            sum
        });
        let combined = add_up(sums.collect());
        Scan { margins, a: duals, norms2, combined }
    }

    /// Into how many parts a pass with `n × n` sums is cut.
    fn matrix_parts(&self) -> usize {
        let (n, memory) = (self.width(), 24 << 20);
        (memory / (8 * n * n).max(1)).clamp(1, MOST_PARTS).min(self.x.rows().max(1))
    }
}

/// The rows at some weights, without curvature.
pub struct Scan {
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `a_i`
    pub a: Vec<f64>,
    /// `‖x̃_i‖²`
    pub norms2: Vec<f64>,
    /// `Σ a_i y_i x̃_i`
    pub combined: Vec<f64>,
}

/// The rows at some weights.
pub struct Survey {
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `a_i`
    pub a: Vec<f64>,
    /// `h_i`
    pub curvature: Vec<f64>,
    /// `Σ a_i y_i x̃_i`
    pub combined: Vec<f64>,
    /// `Σ h_i x̃_i x̃_iᵀ`
    pub matrix: Vec<f64>,
}

/// A growing `Σ h_i x̃_i x̃_iᵀ`, of dense rows in blocks that are multiplied as matrices.
struct Outer<'r, 'a, X: Rows> {
    rows: &'r LinearRows<'a, X>,
    sum: Vec<f64>,
    /// `√h_i x̃_i` of rows that are not in the sum yet.
    block: Vec<f64>,
}

impl<'r, 'a, X: Rows> Outer<'r, 'a, X> {
    /// Rows of a block: they stay in the cache.
    const AT_ONCE: usize = 128;

    fn new(rows: &'r LinearRows<'a, X>) -> Self {
        let n = rows.width();
        let waiting = if rows.x.is_dense() { Self::AT_ONCE * n } else { 0 };
        Self { rows, sum: vec![0.0; n * n], block: Vec::with_capacity(waiting) }
    }

    #[inline(always)]
    fn add(&mut self, i: usize, h: f64) {
        let rows = self.rows;
        let (n, d, constant) = (rows.width(), rows.x.cols(), rows.constant());
        if !rows.x.is_dense() {
            rows.x.add_outer(i, h, &mut self.sum, n);
            if n > d {
                rows.x.visit(i, |j, value| self.sum[j * n + d] += h * value * constant);
                self.sum[d * n + d] += h * constant * constant;
            }
            return;
        }
        let root = h.sqrt();
        rows.x.extend_scaled(i, root, &mut self.block);
        if n > d {
            self.block.push(root * constant);
        }
        if self.block.len() >= Self::AT_ONCE * n {
            self.multiply();
        }
    }

    fn multiply(&mut self) {
        linalg::add_gram(&mut self.sum, &self.block, self.rows.width(), 1.0, false);
        self.block.clear();
    }

    fn finish(mut self) -> Vec<f64> {
        if !self.block.is_empty() {
            self.multiply();
        }
        self.sum
    }
}

/// `x̃_iᵀ A⁻¹ x̃_i` for the chosen rows, in parallel blocks.
pub fn leverages<X: Rows>(rows: &LinearRows<'_, X>, factor: &Cholesky, chosen: &[usize]) -> Vec<f64> {
    let n = rows.width();
    if n == 0 {
        return vec![0.0; chosen.len()];
    }
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
