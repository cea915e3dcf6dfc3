//! Passes over the rows: `X w`, `Xᵀ c`, `Xᵀ diag(c) X v`, Gram matrices.
//!
//! Rows are cut into parts whose number depends on the data alone, never on the number of threads, and the parts are
//! added up in order: the sums are the same to the last bit on any machine.

use crate::control::Control;
use crate::data::{Csr, Matrix, Real, Rows};
use crate::kernel::{KernelKind, KernelRows};
use crate::linalg;
use crate::{Error, Remedy, Result, with_rows};
use rayon::prelude::*;
use std::ops::Range;

/// The rows, with a constant feature appended where one is wanted, and the memory that passes over them need.
pub struct Design<'a> {
    rows: &'a Matrix<'a>,
    constant: Option<f64>,
    parts: Vec<Range<usize>>,
    /// One vector of [`width`](Self::width) numbers for each part.
    sums: Vec<Vec<f64>>,
    /// `Xᵀ`, where many passes make it worth its memory.
    transposed: Option<Matrix<'static>>,
    control: Control<'a>,
}

/// The whole kernel matrix `G`, row-major, if `matrices` of its size fit the memory a solver may take.
pub fn whole_kernel(
    rows: &KernelRows<'_>,
    matrices: u64,
    what: &str,
    memory: u64,
    control: Control<'_>,
) -> Result<Vec<f64>> {
    let m = rows.len() as u64;
    let needed = m.saturating_mul(m).saturating_mul(8 * matrices);
    if needed > memory {
        return Err(Error::Memory {
            what: format!("{what} with a kernel on {m} rows"),
            needed,
            budget: memory,
            advice: [
                Remedy::Raise("memory"),
                Remedy::Use("kernel", KernelKind::Linear.to_string()),
                Remedy::Do("train on fewer rows"),
            ]
            .into(),
        });
    }
    rows.matrix(control)
}

/// `f_i = Σ_j c_j k(x_i, x_j)` for every row, without the whole matrix.
pub fn kernel_scores(rows: &KernelRows<'_>, c: &[f64], control: Control<'_>) -> Result<Vec<f64>> {
    let n = rows.len();
    let mut scores = vec![0.0; n];
    let at_once = (1 << 18) / n.max(1) + 1;
    scores.par_chunks_mut(at_once).enumerate().try_for_each(|(chunk, out)| {
        control.check()?;
        let mut values = vec![0.0; out.len() * n];
        rows.block(rows, chunk * at_once..chunk * at_once + out.len(), &mut values);
        out.iter_mut().zip(values.chunks_exact(n)).for_each(|(out, row)| *out = linalg::dot(row, c));
        Ok(())
    })?;
    Ok(scores)
}

/// Rows between two looks at the stop flag.
const STRIDE: usize = 1024;

/// Most partial sums of a pass.
const MOST_PARTS: usize = 16;

/// Rows that a Gram matrix takes at once.
const GRAM_ROWS: usize = 512;

impl<'a> Design<'a> {
    /// Prepares the rows; `constant` is the value of the feature to append.
    pub fn new(rows: &'a Matrix<'a>, constant: Option<f64>, control: Control<'a>) -> Self {
        let (m, width) = (rows.rows(), rows.cols() + usize::from(constant.is_some()));
        // Each part has a vector of its own to add up at the end: many parts only where rows outweigh that.
        let count = (rows.stored() / width.max(1)).clamp(4, MOST_PARTS).min(m.max(1));
        let parts = (0..count).map(|p| p * m / count..(p + 1) * m / count).collect();
        Self { rows, constant, parts, sums: Vec::new(), transposed: None, control }
    }

    /// Keeps sparse rows by columns as well if that takes no more than `memory` bytes: sums over rows then write each
    /// number once, in order, instead of scattering over vectors that fit no cache. For solvers that make many passes.
    pub fn prepare_columns(&mut self, memory: u64) {
        let bytes = (12 * self.rows.stored() + 8 * self.rows.cols()) as u64;
        if bytes > memory || self.rows() > u32::MAX as usize {
            return;
        }
        self.transposed = match self.rows {
            Matrix::SparseF32(x) => transpose(x).map(Matrix::SparseF32),
            Matrix::SparseF64(x) => transpose(x).map(Matrix::SparseF64),
            Matrix::DenseF32(_) | Matrix::DenseF64(_) => None,
        };
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// Number of features, the appended one included.
    pub fn width(&self) -> usize {
        self.rows.cols() + usize::from(self.constant.is_some())
    }

    /// Number of values a pass over the rows meets.
    pub fn stored(&self) -> usize {
        self.rows.stored() + usize::from(self.constant.is_some()) * self.rows()
    }

    /// Splits `w` into the rows' weights and the intercept that the appended feature amounts to.
    pub fn split(&self, mut w: Vec<f64>) -> (Vec<f64>, f64) {
        let intercept = self.constant.map_or(0.0, |value| value * w[self.rows.cols()]);
        w.truncate(self.rows.cols());
        (w, intercept)
    }

    /// `‖x_i‖²` of every row.
    pub fn norms2(&self) -> Vec<f64> {
        let constant = self.constant.map_or(0.0, |value| value * value);
        with_rows!(self.rows, x => (0..self.rows()).into_par_iter().map(|i| x.norm2(i) + constant).collect())
    }

    /// `out = X w`
    pub fn scores(&self, w: &[f64], out: &mut [f64]) -> Result<()> {
        let shift = self.constant.map_or(0.0, |value| value * w[self.rows.cols()]);
        with_rows!(self.rows, x => out.par_chunks_mut(STRIDE).enumerate().try_for_each(|(chunk, out)| {
            self.control.check()?;
            for (k, out) in out.iter_mut().enumerate() {
                *out = x.dot(chunk * STRIDE + k, w) + shift;
            }
            Ok(())
        }))
    }

    /// `out = Σ c_i x_i`
    pub fn combine(&mut self, c: &[f64], out: &mut [f64]) -> Result<()> {
        if let Some(columns) = &self.transposed {
            return self.combine_columns(columns, c, out);
        }
        self.accumulate(out, |i, _| c[i], false)
    }

    /// `out_j = Σ c_i x_ij²`
    pub fn combine_squares(&mut self, c: &[f64], out: &mut [f64]) -> Result<()> {
        self.accumulate(out, |i, _| c[i], true)
    }

    /// `out = Xᵀ diag(c) X v`, in one pass that leaves out rows with `c_i = 0`.
    pub fn normal_product(&mut self, c: &[f64], v: &[f64], out: &mut [f64]) -> Result<()> {
        let shift = self.constant.map_or(0.0, |value| value * v[self.rows.cols()]);
        if let Some(columns) = &self.transposed {
            let mut along = vec![0.0; c.len()];
            with_rows!(self.rows, x => along.par_chunks_mut(STRIDE).enumerate().try_for_each(|(chunk, along)| {
                self.control.check()?;
                for (i, along) in (chunk * STRIDE..).zip(along).filter(|(i, _)| c[*i] != 0.0) {
                    *along = c[i] * (x.dot(i, v) + shift);
                }
                Ok::<(), Error>(())
            }))?;
            return self.combine_columns(columns, &along, out);
        }
        self.accumulate(out, |i, dot| if c[i] == 0.0 { 0.0 } else { c[i] * (dot(v) + shift) }, false)
    }

    /// `out = Σ c_i x_i`, one column after the other.
    fn combine_columns(&self, columns: &Matrix<'_>, c: &[f64], out: &mut [f64]) -> Result<()> {
        let (out, last) = out.split_at_mut(self.rows.cols());
        with_rows!(columns, x => out.par_chunks_mut(STRIDE).enumerate().try_for_each(|(chunk, out)| {
            self.control.check()?;
            out.iter_mut().zip(chunk * STRIDE..).for_each(|(out, j)| *out = x.dot(j, c));
            Ok::<(), Error>(())
        }))?;
        if let (Some(last), Some(value)) = (last.first_mut(), self.constant) {
            *last = value * c.iter().sum::<f64>();
        }
        Ok(())
    }

    /// `out = Σ_i a_i x_i` (or of the squares) with `a_i = factor(i, w ↦ x_i·w)`, part by part.
    fn accumulate(
        &mut self,
        out: &mut [f64],
        factor: impl Fn(usize, &dyn Fn(&[f64]) -> f64) -> f64 + Sync,
        squares: bool,
    ) -> Result<()> {
        let (d, width) = (self.rows.cols(), self.width());
        let (constant, control) = (self.constant, self.control);
        self.sums.resize_with(self.parts.len(), || vec![0.0; width]);
        with_rows!(self.rows, x => {
            let one_part = |(range, sum): (&Range<usize>, &mut Vec<f64>)| {
                sum.fill(0.0);
                for i in range.clone() {
                    if i % STRIDE == 0 {
                        control.check()?;
                    }
                    let a = factor(i, &|w| x.dot(i, w));
                    if a == 0.0 {
                        continue;
                    }
                    if squares {
                        x.visit(i, |j, v| sum[j] += a * v * v);
                    } else {
                        x.axpy(i, a, sum);
                    }
                    if let Some(value) = constant {
                        sum[d] += a * if squares { value * value } else { value };
                    }
                }
                Ok(())
            };
            self.parts.par_iter().zip(self.sums.par_iter_mut()).try_for_each(one_part)?;
        });
        out.par_chunks_mut(1 << 14).enumerate().for_each(|(chunk, out)| {
            let from = chunk << 14;
            out.copy_from_slice(&self.sums[0][from..from + out.len()]);
            for sum in &self.sums[1..] {
                linalg::axpy(1.0, &sum[from..from + out.len()], out);
            }
        });
        Ok(())
    }

    /// Writes `x_i` times `scale` into a dense row.
    pub fn spread(&self, i: usize, scale: f64, out: &mut [f64]) {
        out.fill(0.0);
        with_rows!(self.rows, x => x.visit(i, |j, v| out[j] = scale * v));
        if let Some(value) = self.constant {
            out[self.rows.cols()] = scale * value;
        }
    }

    /// `out += sign · Σ c_i x_i x_iᵀ` over the listed rows `(i, c_i ≥ 0)`: lower triangle, column-major.
    pub fn add_gram(&self, list: &[(usize, f64)], sign: f64, out: &mut [f64]) -> Result<()> {
        let width = self.width();
        let mut block = vec![0.0; list.len().min(GRAM_ROWS) * width];
        for list in list.chunks(GRAM_ROWS).filter(|_| width > 0) {
            self.control.check()?;
            let block = &mut block[..list.len() * width];
            block.par_chunks_mut(width).zip(list).for_each(|(row, &(i, c))| self.spread(i, c.sqrt(), row));
            linalg::add_gram(out, block, width, sign, true);
        }
        Ok(())
    }
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
        let rows = Matrix::DenseF64(Dense::new(m, d, values.clone()).unwrap());
        let row = |i: usize| [&values[i * d..(i + 1) * d], &[0.5]].concat();
        let c: Vec<f64> = (0..m).map(|i| if i % 3 == 0 { 0.0 } else { random.unit() }).collect();
        let v: Vec<f64> = (0..d + 1).map(|_| random.normal()).collect();
        let mut design = Design::new(&rows, Some(0.5), Control::default());
        let (mut scores, mut sum, mut squares, mut normal) =
            (vec![0.0; m], vec![0.0; d + 1], vec![0.0; d + 1], vec![0.0; d + 1]);
        design.scores(&v, &mut scores).unwrap();
        design.combine(&c, &mut sum).unwrap();
        design.combine_squares(&c, &mut squares).unwrap();
        design.normal_product(&c, &v, &mut normal).unwrap();
        let mut gram = vec![0.0; (d + 1) * (d + 1)];
        let list: Vec<_> = c.iter().copied().enumerate().collect();
        design.add_gram(&list, 1.0, &mut gram).unwrap();
        for j in 0..=d {
            let total = |f: &dyn Fn(usize) -> f64| -> f64 { (0..m).map(|i| c[i] * f(i)).sum() };
            assert!((scores[j] - row(j).iter().zip(&v).map(|(a, b)| a * b).sum::<f64>()).abs() < 1e-12);
            assert!((sum[j] - total(&|i| row(i)[j])).abs() < 1e-10);
            assert!((squares[j] - total(&|i| row(i)[j].powi(2))).abs() < 1e-10);
            assert!((normal[j] - total(&|i| row(i)[j] * scores[i])).abs() < 1e-10);
            for k in j..=d {
                assert!((gram[j * (d + 1) + k] - total(&|i| row(i)[j] * row(i)[k])).abs() < 1e-10);
            }
        }
        let (mut offsets, columns) = (vec![0u64], [0u32, 1, 2, 3]);
        (0..m).for_each(|i| offsets.push((i as u64 + 1) * d as u64));
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns.repeat(m), values.clone()).unwrap());
        let mut design = Design::new(&sparse, Some(0.5), Control::default());
        design.prepare_columns(1 << 20);
        let (mut again, mut normal_again) = (vec![0.0; d + 1], vec![0.0; d + 1]);
        design.combine(&c, &mut again).unwrap();
        design.normal_product(&c, &v, &mut normal_again).unwrap();
        assert!(again.iter().zip(&sum).all(|(a, b)| (a - b).abs() < 1e-10));
        assert!(normal_again.iter().zip(&normal).all(|(a, b)| (a - b).abs() < 1e-10));
        assert_eq!(design.split(v.clone()), (v[..d].to_vec(), 0.5 * v[d]));
    }
}
