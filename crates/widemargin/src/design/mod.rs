//! What solvers see of rows: scores, combinations, Hessian products, diagonals, norms, the intercept inside.
//!
//! Passes run in parallel over a partition that depends on the data alone, and the parts are added up in order: the sums are
//! the same for any number of threads.

mod gram;

pub use gram::GramProduct;

use crate::data::{Csr, Matrix, Real, Rows};
use crate::linalg::{self, Cholesky, add_up, each_of, fold, range_of};
use crate::problem::Bias;
use crate::with_rows;
use rayon::prelude::*;

/// The rows of a linear problem, with the constant feature that carries the intercept.
///
/// A weight vector has one entry a column and, unless the bias is [`Bias::None`], one more for the intercept.
pub struct Design<'a> {
    rows: &'a Matrix<'a>,
    bias: Bias,
    /// `Xᵀ`, where many passes make it worth its memory.
    columns: Option<Matrix<'static>>,
}

/// Most partial sums a pass keeps: each has a vector of its own. A constant, as the partition decides the order of sums.
const MOST_PARTS: usize = 16;
/// Rows, or columns, that a thread takes at once where nothing is summed up: tens of microseconds, far above what handing them over
/// costs.
const STRIDE: usize = 1024;
/// Rows that a Gram matrix of chosen rows takes at once: enough for products of matrices to run at their full speed, and 20 MB of
/// the 5,000 features that are the most here.
const GRAM_ROWS: usize = 512;
/// Bytes that the partial sums of an `n × n` matrix may take: they stay in the caches.
const MATRIX_SUMS: usize = 24 << 20;

impl<'a> Design<'a> {
    /// The rows with this intercept.
    pub fn new(rows: &'a Matrix<'a>, bias: Bias) -> Self {
        Self { rows, bias, columns: None }
    }

    /// Keeps sparse rows by columns as well if that takes no more than `memory` bytes: sums over rows then write each number
    /// once, in order, instead of scattering over vectors that fit no cache. For solvers that make many passes.
    pub fn with_columns(mut self, memory: u64) -> Self {
        let bytes = (12 * self.rows.stored() + 8 * self.rows.cols()) as u64;
        if bytes <= memory && self.rows.rows() <= u32::MAX as usize {
            self.columns = match self.rows {
                Matrix::SparseF32(x) => transpose(x).map(Matrix::SparseF32),
                Matrix::SparseF64(x) => transpose(x).map(Matrix::SparseF64),
                Matrix::DenseF32(_) | Matrix::DenseF64(_) => None,
            };
        }
        self
    }

    /// The rows themselves.
    pub fn rows(&self) -> &'a Matrix<'a> {
        self.rows
    }

    /// How the intercept is treated.
    pub fn bias(&self) -> Bias {
        self.bias
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.rows()
    }

    /// Length of a weight vector.
    pub fn width(&self) -> usize {
        self.rows.cols() + usize::from(self.bias != Bias::None)
    }

    /// Number of values a pass over the rows meets.
    pub fn stored(&self) -> usize {
        self.rows.stored() + usize::from(self.bias != Bias::None) * self.len()
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
        if self.bias == Bias::Free && position == self.rows.cols() { 0.0 } else { 1.0 }
    }

    /// The weights that are regularised: all but a free intercept.
    pub fn regularised<'w>(&self, w: &'w [f64]) -> &'w [f64] {
        if self.bias == Bias::Free { &w[..self.rows.cols()] } else { w }
    }

    /// `‖x̃_i‖²` of every row, with a regularised constant feature.
    pub fn norms2(&self) -> Vec<f64> {
        let constant = self.bias.offset();
        let norm2 = |i: usize| with_rows!(self.rows, x => x.norm2(i)) + constant;
        (0..self.len()).into_par_iter().with_min_len(STRIDE).map(norm2).collect()
    }

    /// The weights of the features, and the intercept they are used with.
    pub fn split<'w>(&self, w: &'w [f64]) -> (&'w [f64], f64) {
        let (features, rest) = w.split_at(self.rows.cols());
        (features, rest.first().map_or(0.0, |b| b * self.constant()))
    }

    /// `out_i = w·x̃_i`
    pub fn scores(&self, w: &[f64], out: &mut [f64]) {
        self.scores_times(w, |_| 1.0, out);
    }

    /// `γ_i = y_i w·x̃_i`
    pub fn margins(&self, y: &[f64], w: &[f64], out: &mut [f64]) {
        self.scores_times(w, |i| y[i], out);
    }

    /// `out_i = factor(i) w·x̃_i`
    fn scores_times(&self, w: &[f64], factor: impl Fn(usize) -> f64 + Sync, out: &mut [f64]) {
        let (features, intercept) = self.split(w);
        with_rows!(self.rows, x => each_of(out.chunks_mut(STRIDE), |chunk, out| {
            for (i, out) in (chunk * STRIDE..).zip(out) {
                *out = factor(i) * (x.dot(i, features) + intercept);
            }
        }));
    }

    /// `Σ c_i x̃_i`
    pub fn combine(&self, c: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        if let Some(columns) = &self.columns {
            return self.combine_columns(columns, &(0..self.len()).map(c).collect::<Vec<f64>>());
        }
        let n = self.width();
        with_rows!(self.rows, x => self.accumulate(n, self.parts(n), |i, sum| {
            let c = c(i);
            if c != 0.0 {
                self.add_row(x, i, c, sum);
            }
        }))
    }

    /// `Σ c_i x̃_i`, and beside it, in the same pass, `Σ term(i, ‖x̃_i‖²)`, the norm with a regularised constant feature, over the
    /// rows that are `met`.
    pub fn combine_and(
        &self,
        c: impl Fn(usize) -> f64 + Sync,
        met: impl Fn(usize) -> bool + Sync,
        term: impl Fn(usize, f64) -> f64 + Sync,
    ) -> (Vec<f64>, f64) {
        let (n, constant) = (self.width(), self.bias.offset());
        let mut sums = with_rows!(self.rows, x => self.accumulate(n + 1, self.parts(n), |i, sum| {
            let c = c(i);
            if c != 0.0 {
                self.add_row(x, i, c, &mut sum[..n]);
            }
            if met(i) {
                sum[n] += term(i, x.norm2(i) + constant);
            }
        }));
        let beside = sums.pop().unwrap_or(0.0);
        (sums, beside)
    }

    /// `Σ (v_i − u_i) y_i x̃_i` over the rows that differ by more than rounding; `u` becomes `v`.
    pub fn combine_change(&self, y: &[f64], u: &mut [f64], v: &[f64]) -> Vec<f64> {
        const SAME: f64 = 1e-12;
        let (m, n) = (self.len(), self.width());
        let parts = self.parts(n);
        with_rows!(self.rows, x => add_up(each_of(cut(u, parts), |part, u| {
            let mut sum = vec![0.0; n];
            for (i, u) in range_of(m, part, parts).zip(u) {
                let change = v[i] - *u;
                if change.abs() > SAME * (v[i].abs() + u.abs()) {
                    self.add_row(x, i, change * y[i], &mut sum);
                }
                *u = v[i];
            }
            sum
        })))
    }

    /// `Σ h_i x̃_i (x̃_i · v)`, in one pass that leaves out rows with `h_i = 0`.
    pub fn curve(&self, h: &[f64], v: &[f64]) -> Vec<f64> {
        let (features, intercept) = self.split(v);
        let along = |i: usize| match h[i] {
            0.0 => 0.0,
            h => h * (with_rows!(self.rows, x => x.dot(i, features)) + intercept),
        };
        if let Some(columns) = &self.columns {
            let along: Vec<f64> = (0..self.len()).into_par_iter().with_min_len(STRIDE).map(along).collect();
            return self.combine_columns(columns, &along);
        }
        let n = self.width();
        with_rows!(self.rows, x => self.accumulate(n, self.parts(n), |i, sum| {
            if h[i] != 0.0 {
                self.add_row(x, i, h[i] * (x.dot(i, features) + intercept), sum);
            }
        }))
    }

    /// The diagonal of `Σ h_i x̃_i x̃_iᵀ`.
    pub fn curve_diagonal(&self, h: &[f64]) -> Vec<f64> {
        let (n, d, constant) = (self.width(), self.rows.cols(), self.constant());
        with_rows!(self.rows, x => self.accumulate(n, self.parts(n), |i, sum| {
            if h[i] != 0.0 {
                x.visit(i, |j, value| sum[j] += h[i] * value * value);
                if n > d {
                    sum[d] += h[i] * constant * constant;
                }
            }
        }))
    }

    /// `Σ h_i x̃_i x̃_iᵀ`: `n × n`, lower triangle, column-major.
    pub fn curve_matrix(&self, h: &[f64]) -> Vec<f64> {
        with_rows!(self.rows, x => add_up(fold(self.len(), self.matrix_parts(), |range| {
            let mut sum = Outer::new(self, x);
            range.filter(|&i| h[i] != 0.0).for_each(|i| sum.add(i, h[i]));
            sum.finish()
        })))
    }

    /// `Σ (h_i − g_i) x̃_i x̃_iᵀ`, at the cost of the rows that differ.
    pub fn curve_change(&self, g: &[f64], h: &[f64]) -> Vec<f64> {
        with_rows!(self.rows, x => add_up(fold(self.len(), self.matrix_parts(), |range| {
            let (mut more, mut less) = (Outer::new(self, x), Outer::new(self, x));
            for i in range {
                match h[i] - g[i] {
                    change if change > 0.0 => more.add(i, change),
                    change if change < 0.0 => less.add(i, -change),
                    _ => {}
                }
            }
            let mut change = more.finish();
            linalg::axpy(-1.0, &less.finish(), &mut change);
            change
        })))
    }

    /// `out += sign · Σ c_i x̃_i x̃_iᵀ` over the listed rows `(i, c_i ≥ 0)`: lower triangle, column-major.
    pub fn add_outer(&self, list: &[(usize, f64)], sign: f64, out: &mut [f64]) {
        let width = self.width();
        let mut block = vec![0.0; list.len().min(GRAM_ROWS) * width];
        for list in list.chunks(GRAM_ROWS).filter(|_| width > 0) {
            let block = &mut block[..list.len() * width];
            block.par_chunks_mut(width).zip(list).for_each(|(row, &(i, c))| self.spread(i, c.sqrt(), row));
            linalg::add_gram(out, block, width, sign, true);
        }
    }

    /// Writes `x̃_i` times `scale` into a dense row.
    pub fn spread(&self, i: usize, scale: f64, out: &mut [f64]) {
        out.fill(0.0);
        with_rows!(self.rows, x => x.visit(i, |j, v| out[j] = scale * v));
        if let Some(last) = out.get_mut(self.rows.cols()) {
            *last = scale * self.constant();
        }
    }

    /// `x̃_iᵀ A⁻¹ x̃_i` for the chosen rows, in parallel blocks.
    pub fn leverages(&self, factor: &Cholesky, chosen: &[usize]) -> Vec<f64> {
        let n = self.width();
        if n == 0 {
            return vec![0.0; chosen.len()];
        }
        let block = |chosen: &[usize]| -> Vec<f64> {
            let mut spread = vec![0.0; n * chosen.len()];
            spread.chunks_exact_mut(n).zip(chosen).for_each(|(column, &i)| self.spread(i, 1.0, column));
            factor.half_solve(&mut spread, false);
            spread.chunks_exact(n).map(|column| linalg::dot(column, column)).collect()
        };
        chosen.par_chunks(64).flat_map_iter(block).collect()
    }

    /// Everything a Newton step needs to know at `w`, each row being read once; `slopes(i, γ_i)` is `(a_i, h_i)`.
    pub fn survey(&self, y: &[f64], w: &[f64], slopes: impl Fn(usize, f64) -> (f64, f64) + Sync) -> RowSurvey {
        let parts = self.matrix_parts();
        with_rows!(self.rows, x => {
            let (mut seen, matrices) = self.look(x, y, w, parts, |i, margin, outer: &mut Outer<'_, '_, _>| {
                let (a, h) = slopes(i, margin);
                if h != 0.0 {
                    outer.add(i, h);
                }
                (a, h)
            }, || Outer::new(self, x), Outer::finish);
            seen.matrix = add_up(matrices);
            seen
        })
    }

    /// Margins, norms and `Σ a_i y_i x̃_i` with `a_i = dual(i, γ_i)`, each row being read once. The norms stand where a
    /// survey has the curvatures.
    pub fn scan(&self, y: &[f64], w: &[f64], dual: impl Fn(usize, f64) -> f64 + Sync) -> RowSurvey {
        let parts = self.parts(self.width());
        let constant = self.bias.offset();
        with_rows!(self.rows, x => {
            self.look(x, y, w, parts, |i, margin, _: &mut ()| (dual(i, margin), x.norm2(i) + constant), || (), |()| ()).0
        })
    }

    /// One pass that keeps margin, dual variable and another number of each row and sums up `Σ a_i y_i x̃_i`; `row` may add to
    /// what `start` began, a part at a time.
    #[allow(clippy::too_many_arguments)]
    fn look<X: Rows, S, T: Send>(
        &self,
        x: &X,
        y: &[f64],
        w: &[f64],
        parts: usize,
        row: impl Fn(usize, f64, &mut S) -> (f64, f64) + Sync,
        start: impl Fn() -> S + Sync,
        finish: impl Fn(S) -> T + Sync,
    ) -> (RowSurvey, Vec<T>) {
        let (features, intercept) = self.split(w);
        let (m, n) = (self.len(), self.width());
        let [mut margins, mut a, mut numbers] = [(); 3].map(|()| vec![0.0; m]);
        let cuts = [&mut margins, &mut a, &mut numbers].map(|values| cut(values, parts));
        let [margins_of, a_of, numbers_of] = cuts;
        let pieces = margins_of.into_iter().zip(a_of).zip(numbers_of);
        let looked = each_of(pieces, |part, ((margins, duals), numbers)| {
            let (mut combined, mut state) = (vec![0.0; n], start());
            for (k, i) in range_of(m, part, parts).enumerate() {
                let margin = y[i] * (x.dot(i, features) + intercept);
                let (dual, number) = row(i, margin, &mut state);
                if dual != 0.0 {
                    self.add_row(x, i, dual * y[i], &mut combined);
                }
                (margins[k], duals[k], numbers[k]) = (margin, dual, number);
            }
            (combined, finish(state))
        });
        let (combined, states): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
        (RowSurvey { margins, a, numbers, combined: add_up(combined), matrix: Vec::new() }, states)
    }

    /// `sum += factor · x̃_i`
    #[inline(always)]
    fn add_row<X: Rows>(&self, x: &X, i: usize, factor: f64, sum: &mut [f64]) {
        let d = x.cols();
        x.axpy(i, factor, &mut sum[..d]);
        if let Some(last) = sum.get_mut(d) {
            *last += factor * self.constant();
        }
    }

    /// Runs `add(row, sum)` over all rows, each part with a sum of its own, and adds the parts up in order.
    fn accumulate(&self, length: usize, parts: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        add_up(fold(self.len(), parts, |range| {
            let mut sum = vec![0.0; length];
            range.for_each(|i| add(i, &mut sum));
            sum
        }))
    }

    /// `Σ c_i x̃_i`, one column after the other.
    fn combine_columns(&self, columns: &Matrix<'_>, c: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.width()];
        let (features, last) = out.split_at_mut(self.rows.cols());
        with_rows!(columns, x => each_of(features.chunks_mut(STRIDE), |chunk, out| {
            out.iter_mut().zip(chunk * STRIDE..).for_each(|(out, j)| *out = x.dot(j, c));
        }));
        if let Some(last) = last.first_mut() {
            *last = self.constant() * c.iter().sum::<f64>();
        }
        out
    }

    /// Into how many parts a pass with sums of this length is cut: a part should do far more work than its sum costs.
    fn parts(&self, length: usize) -> usize {
        (self.rows.stored() / (2 * length.max(1))).clamp(1, MOST_PARTS).min(self.len().max(1))
    }

    /// Into how many parts a pass with `n × n` sums is cut.
    fn matrix_parts(&self) -> usize {
        let n = self.width();
        (MATRIX_SUMS / (8 * n * n).max(1)).clamp(1, MOST_PARTS).min(self.len().max(1))
    }
}

/// The rows at some weights.
pub struct RowSurvey {
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `a_i`
    pub a: Vec<f64>,
    /// `h_i`, or `‖x̃_i‖²` of a scan.
    pub numbers: Vec<f64>,
    /// `Σ a_i y_i x̃_i`
    pub combined: Vec<f64>,
    /// `Σ h_i x̃_i x̃_iᵀ`; nothing of a scan.
    pub matrix: Vec<f64>,
}

/// A growing `Σ h_i x̃_i x̃_iᵀ`, of dense rows in blocks that are multiplied as matrices.
struct Outer<'r, 'a, X: Rows> {
    design: &'r Design<'a>,
    x: &'r X,
    sum: Vec<f64>,
    /// `√h_i x̃_i` of rows that are not in the sum yet.
    block: Vec<f64>,
}

impl<'r, 'a, X: Rows> Outer<'r, 'a, X> {
    /// Rows of a block: they stay in the cache.
    const AT_ONCE: usize = 128;

    fn new(design: &'r Design<'a>, x: &'r X) -> Self {
        let n = design.width();
        let waiting = if x.is_dense() { Self::AT_ONCE * n } else { 0 };
        Self { design, x, sum: vec![0.0; n * n], block: Vec::with_capacity(waiting) }
    }

    #[inline(always)]
    fn add(&mut self, i: usize, h: f64) {
        let (n, d, constant) = (self.design.width(), self.x.cols(), self.design.constant());
        if !self.x.is_dense() {
            self.x.add_outer(i, h, &mut self.sum, n);
            if n > d {
                let sum = &mut self.sum;
                self.x.visit(i, |j, value| sum[j * n + d] += h * value * constant);
                self.sum[d * n + d] += h * constant * constant;
            }
            return;
        }
        let root = h.sqrt();
        self.x.extend_scaled(i, root, &mut self.block);
        if n > d {
            self.block.push(root * constant);
        }
        if self.block.len() >= Self::AT_ONCE * n {
            self.multiply();
        }
    }

    fn multiply(&mut self) {
        linalg::add_gram(&mut self.sum, &self.block, self.design.width(), 1.0, false);
        self.block.clear();
    }

    fn finish(mut self) -> Vec<f64> {
        if !self.block.is_empty() {
            self.multiply();
        }
        self.sum
    }
}

/// One value a row, cut where the parts are.
fn cut(mut values: &mut [f64], parts: usize) -> Vec<&mut [f64]> {
    let m = values.len();
    let cut = |part| {
        let (head, tail) = std::mem::take(&mut values).split_at_mut(range_of(m, part, parts).len());
        values = tail;
        head
    };
    (0..parts).map(cut).collect()
}

/// `Xᵀ` of a sparse matrix, by counting.
fn transpose<T: Real>(x: &Csr<'_, T>) -> Option<Csr<'static, T>> {
    let mut offsets = vec![0u64; x.cols() + 1];
    x.columns().iter().for_each(|&c| offsets[c as usize + 1] += 1);
    (1..offsets.len()).for_each(|j| offsets[j] += offsets[j - 1]);
    let mut next = offsets.clone();
    let (mut rows, mut values) = (vec![0u32; x.stored()], vec![T::default(); x.stored()]);
    for i in 0..x.rows() {
        let (columns, row) = x.row(i);
        for (&c, &v) in columns.iter().zip(row) {
            let place = next[c as usize] as usize;
            next[c as usize] += 1;
            (rows[place], values[place]) = (i as u32, v);
        }
    }
    Csr::new(x.rows(), offsets, rows, values).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::random::Random;

    #[test]
    fn passes_are_what_they_say() {
        let (m, d, mut random) = (301, 4, Random::new(11, 0));
        let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
        let dense = Matrix::DenseF64(Dense::new(m, d, values.clone()).unwrap());
        let offsets: Vec<u64> = (0..=m as u64).map(|i| i * d as u64).collect();
        let columns = [0u32, 1, 2, 3].repeat(m);
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns, values.clone()).unwrap());
        let row = |i: usize| [&values[i * d..(i + 1) * d], &[0.5]].concat();
        let c: Vec<f64> = (0..m).map(|i| if i % 3 == 0 { 0.0 } else { random.unit() }).collect();
        let v: Vec<f64> = (0..d + 1).map(|_| random.normal()).collect();
        let bias = Bias::Feature(0.5);
        for design in
            [Design::new(&dense, bias), Design::new(&sparse, bias), Design::new(&sparse, bias).with_columns(1 << 20)]
        {
            let mut scores = vec![0.0; m];
            design.scores(&v, &mut scores);
            let (sum, squares, normal) = (design.combine(|i| c[i]), design.curve_diagonal(&c), design.curve(&c, &v));
            let mut listed = vec![0.0; (d + 1) * (d + 1)];
            design.add_outer(&c.iter().copied().enumerate().collect::<Vec<_>>(), 1.0, &mut listed);
            let matrix = design.curve_matrix(&c);
            for j in 0..=d {
                let total = |f: &dyn Fn(usize) -> f64| -> f64 { (0..m).map(|i| c[i] * f(i)).sum() };
                assert!((scores[j] - row(j).iter().zip(&v).map(|(a, b)| a * b).sum::<f64>()).abs() < 1e-12);
                assert!((sum[j] - total(&|i| row(i)[j])).abs() < 1e-10);
                assert!((squares[j] - total(&|i| row(i)[j].powi(2))).abs() < 1e-10);
                assert!((normal[j] - total(&|i| row(i)[j] * scores[i])).abs() < 1e-10);
                for k in j..=d {
                    let truth = total(&|i| row(i)[j] * row(i)[k]);
                    assert!((listed[j * (d + 1) + k] - truth).abs() < 1e-10);
                    assert!((matrix[j * (d + 1) + k] - truth).abs() < 1e-10);
                }
            }
            assert_eq!(design.split(&v), (&v[..d], 0.5 * v[d]));
        }
    }
}
