//! Feature space by its definition: scores, norms and distances of weight vectors, with how far rounding may put each off.

use super::sum::{Sum, sum};
use crate::control::Control;
use crate::data::{Csr, Dense, Matrix, Real, Rows};
use crate::kernel::Kernel;
use crate::{Result, with_rows};
use rayon::prelude::*;

/// The relative error of one operation.
pub const EPS: f64 = f64::EPSILON;
/// Sums of weight vectors are taken over parts of the rows, at most so many and fewer where they would take more numbers than
/// this: fixed by the data, so that results do not depend on the threads.
const MOST_PARTS: usize = 16;
const PART_NUMBERS: usize = 1 << 22;

/// A number and how far rounding may have put it off.
#[derive(Clone, Copy, Default)]
pub struct Rounded {
    /// The number.
    pub value: f64,
    /// The bound, to first order.
    pub error: f64,
}

/// Where a model's score functions live.
pub enum Functions {
    /// `w_l`
    Weights(Vec<Vec<f64>>),
    /// `w_l = Σ_j c_lj φ(x_j)`
    Coefficients {
        /// Which rows the `x_j` are.
        support: Vec<usize>,
        /// `c_l`
        coefficients: Vec<Vec<f64>>,
        /// Whether the `x_j` are landmarks: the problem's kernel is then `k(x, Z) k(Z, Z)⁻¹ k(Z, x)`.
        landmarks: bool,
    },
}

/// Training rows, a kernel and score functions.
pub struct CheckedRows<'a> {
    /// The rows, scaled.
    pub rows: &'a Matrix<'a>,
    /// `k`
    pub kernel: Kernel,
    /// `w_l`
    pub functions: Functions,
    /// Who stops it.
    pub control: Control<'a>,
}

/// Scores without intercepts, one vector a column: `scores[l][i] = w_l · φ(x_i)`.
pub type CheckedScores = Vec<Vec<Rounded>>;

impl CheckedRows<'_> {
    /// Number of score functions.
    pub fn columns(&self) -> usize {
        match &self.functions {
            Functions::Weights(weights) => weights.len(),
            Functions::Coefficients { coefficients, .. } => coefficients.len(),
        }
    }

    /// `‖φ(x_i)‖`
    pub fn length(&self, i: usize) -> f64 {
        let norm2 = sum(squares(self.rows, i));
        let value = match self.kernel {
            Kernel::Linear => norm2,
            Kernel::Rbf { .. } | Kernel::Laplacian { .. } => 1.0,
            Kernel::Poly { gamma, degree, coef0 } => (gamma * norm2 + coef0).powi(degree as i32),
            Kernel::Sigmoid { gamma, coef0 } => (gamma * norm2 + coef0).tanh(),
        };
        value.max(0.0).sqrt()
    }

    /// The scores of all rows.
    pub fn scores(&self) -> Result<CheckedScores> {
        let rows: Vec<usize> = (0..self.rows.rows()).collect();
        let all: Vec<Vec<Rounded>> = match &self.functions {
            Functions::Weights(weights) => {
                self.each(&rows, |i| weights.iter().map(|w| product(self.rows, i, w)).collect())?
            }
            Functions::Coefficients { support, coefficients, .. } => {
                self.each(&rows, |i| self.expand(i, support, coefficients))?
            }
        };
        Ok((0..self.columns()).map(|l| all.iter().map(|row| row[l]).collect()).collect())
    }

    /// What `row` makes of each of these rows.
    fn each<T: Send>(&self, rows: &[usize], row: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        rows.par_iter().map(|&i| self.control.check().map(|()| row(i))).collect()
    }

    /// `Σ_j c_lj k(x_j, x_i)` over some rows, for each column.
    fn expand(&self, i: usize, rows: &[usize], columns: &[Vec<f64>]) -> Vec<Rounded> {
        let mut sums = vec![(Sum::default(), 0.0); columns.len()];
        for (place, &j) in rows.iter().enumerate() {
            let k = with_rows!(self.rows, x => kernel(self.kernel, x, j, i));
            for ((sum, error), c) in sums.iter_mut().zip(columns) {
                if c[place] != 0.0 {
                    sum.add(c[place] * k.value);
                    *error += c[place].abs() * (k.error + EPS * k.value.abs());
                }
            }
        }
        sums.into_iter().map(|(sum, error)| Rounded { value: sum.value(), error }).collect()
    }

    /// `‖w_l‖²`
    pub fn norm2(&self, l: usize, scores: &CheckedScores) -> Rounded {
        match &self.functions {
            Functions::Weights(weights) => {
                let value = sum(weights[l].iter().map(|w| w * w));
                Rounded { value, error: 2.0 * EPS * value }
            }
            Functions::Coefficients { support, coefficients, .. } => {
                let terms = || coefficients[l].iter().zip(support).map(|(c, &i)| (c, scores[l][i]));
                let error = |(c, f): (&f64, Rounded)| c.abs() * (f.error + EPS * f.value.abs());
                Rounded { value: sum(terms().map(|(c, f)| c * f.value)), error: sum(terms().map(error)) }
            }
        }
    }

    /// `‖w_l − Σ_i q_li φ(x_i)‖²` for each column, `q_l` a number a row.
    pub fn distances(&self, q: &[Vec<f64>], scores: &CheckedScores) -> Result<Vec<Rounded>> {
        match &self.functions {
            Functions::Weights(weights) => weights.iter().zip(q).map(|(w, q)| self.weight_distance(w, q)).collect(),
            Functions::Coefficients { support, landmarks: true, .. } => self.landmark_distances(support, q, scores),
            Functions::Coefficients { support, coefficients, .. } => {
                let rest: Vec<Vec<f64>> = q.iter().zip(coefficients).map(|(q, c)| less(c, support, q)).collect();
                self.squares(&rest)
            }
        }
    }

    /// `‖Σ_i q_li φ(x_i)‖²` for each column.
    pub fn combined(&self, q: &[Vec<f64>]) -> Result<Vec<Rounded>> {
        match &self.functions {
            Functions::Weights(weights) => {
                weights.iter().zip(q).map(|(w, q)| self.weight_distance(&vec![0.0; w.len()], q)).collect()
            }
            Functions::Coefficients { support, landmarks: true, .. } => {
                let zero = vec![vec![Rounded::default(); self.rows.rows()]; q.len()];
                self.landmark_distances(support, q, &zero)
            }
            Functions::Coefficients { .. } => self.squares(q),
        }
    }

    /// `‖w − Σ_i q_i x_i‖²`
    fn weight_distance(&self, w: &[f64], q: &[f64]) -> Result<Rounded> {
        let m = self.rows.rows();
        let count = (PART_NUMBERS / w.len().max(1)).clamp(1, MOST_PARTS);
        let part = |part: usize| -> Result<Vec<(Sum, f64)>> {
            let mut sums = vec![(Sum::default(), 0.0); w.len()];
            let range = part * m / count..(part + 1) * m / count;
            for (i, &q) in range.clone().zip(&q[range]).filter(|(_, q)| **q != 0.0) {
                self.control.check()?;
                with_rows!(self.rows, x => x.visit(i, |j, v| {
                    sums[j].0.add(q * v);
                    sums[j].1 += (q * v).abs();
                }));
            }
            Ok(sums)
        };
        let parts: Vec<Vec<(Sum, f64)>> = (0..count).into_par_iter().map(part).collect::<Result<_>>()?;
        let (mut total, mut error) = (Sum::default(), 0.0);
        for (j, w) in w.iter().enumerate() {
            let (mut sum, mut size) = (Sum::default(), 0.0);
            for part in &parts {
                sum.join(part[j].0);
                size += part[j].1;
            }
            let (difference, off) = (w - sum.value(), EPS * size);
            total.add(difference * difference);
            error += (2.0 * difference.abs() + off) * off;
        }
        Ok(Rounded { value: total.value(), error })
    }

    /// `‖Σ_i r_li φ(x_i)‖²` for each column.
    fn squares(&self, r: &[Vec<f64>]) -> Result<Vec<Rounded>> {
        let rows: Vec<usize> = (0..self.rows.rows()).filter(|&i| r.iter().any(|r| r[i] != 0.0)).collect();
        let parts: Vec<Vec<f64>> = r.iter().map(|r| rows.iter().map(|&i| r[i]).collect()).collect();
        let scores = self.each(&rows, |i| self.expand(i, &rows, &parts))?;
        let square = |l: usize| {
            let terms = || parts[l].iter().zip(&scores).map(|(r, f)| (r, f[l]));
            let value = sum(terms().map(|(r, f)| r * f.value)).max(0.0);
            Rounded { value, error: sum(terms().map(|(r, f)| r.abs() * (f.error + EPS * f.value.abs()))) }
        };
        Ok((0..r.len()).map(square).collect())
    }

    /// Over landmarks `Z` with `k(Z, Z) = L Lᵀ`, a row is `L⁻¹ k(Z, x)`: `‖L⁻¹ (k(Z, Z) c_l − Σ_i q_li k(Z, x_i))‖²`.
    fn landmark_distances(&self, support: &[usize], q: &[Vec<f64>], scores: &CheckedScores) -> Result<Vec<Rounded>> {
        let rows: Vec<usize> = (0..self.rows.rows()).collect();
        let sums = self.each(support, |z| self.expand(z, &rows, q))?;
        let factor = LandmarkFactor::new(self, support)?;
        let column = |l: usize| {
            let score = |z: usize| scores[l][support[z]];
            let r: Vec<f64> = (0..support.len()).map(|z| score(z).value - sums[z][l].value).collect();
            let e: Vec<f64> = (0..support.len()).map(|z| score(z).error + sums[z][l].error).collect();
            let (value, off) = (factor.half_solved(&r), factor.error(&e));
            Rounded { value, error: (2.0 * value.sqrt() + off) * off }
        };
        Ok((0..q.len()).map(column).collect())
    }
}

/// `c` over the support rows, less `q`, over all rows.
fn less(c: &[f64], support: &[usize], q: &[f64]) -> Vec<f64> {
    let mut rest: Vec<f64> = q.iter().map(|q| -q).collect();
    support.iter().zip(c).for_each(|(&i, c)| rest[i] += c);
    rest
}

/// `x_i · w`
fn product(rows: &Matrix<'_>, i: usize, w: &[f64]) -> Rounded {
    let (mut value, mut size) = (Sum::default(), 0.0);
    with_rows!(rows, x => x.visit(i, |j, v| {
        value.add(v * w[j]);
        size += (v * w[j]).abs();
    }));
    Rounded { value: value.value(), error: EPS * size }
}

/// Rows whose pairs of values can be gone through.
trait Pairs: Rows {
    /// Calls `visit` with the values of rows `i` and `j` in each column where one of them is stored.
    fn pairs(&self, i: usize, j: usize, visit: impl FnMut(f64, f64));
}

impl<T: Real> Pairs for Dense<'_, T> {
    fn pairs(&self, i: usize, j: usize, mut visit: impl FnMut(f64, f64)) {
        self.row(i).iter().zip(self.row(j)).for_each(|(&a, &b)| visit(a.into(), b.into()));
    }
}

impl<T: Real> Pairs for Csr<'_, T> {
    fn pairs(&self, i: usize, j: usize, mut visit: impl FnMut(f64, f64)) {
        let ((ci, vi), (cj, vj)) = (self.row(i), self.row(j));
        let (mut a, mut b) = (0, 0);
        while a < ci.len() || b < cj.len() {
            let first = ci.get(a).copied().unwrap_or(u32::MAX);
            let second = cj.get(b).copied().unwrap_or(u32::MAX);
            let (in_first, in_second) = (a < ci.len() && first <= second, b < cj.len() && second <= first);
            visit(if in_first { vi[a].into() } else { 0.0 }, if in_second { vj[b].into() } else { 0.0 });
            a += usize::from(in_first);
            b += usize::from(in_second);
        }
    }
}

/// `k(x_i, x_j)` by its definition. A sum of `d` terms is off by about `√d` roundings.
fn kernel(kernel: Kernel, x: &impl Pairs, i: usize, j: usize) -> Rounded {
    let roundings = 2.0 + (x.cols() as f64).sqrt();
    let from_distance = |gamma: f64, distance: f64| {
        let value = (-gamma * distance).exp();
        Rounded { value, error: EPS * (2.0 + roundings * gamma * distance) * value }
    };
    let inner = || {
        let (mut sum, mut size) = (0.0, 0.0);
        x.pairs(i, j, |a, b| {
            sum += a * b;
            size += (a * b).abs();
        });
        Rounded { value: sum, error: EPS * roundings * size }
    };
    match kernel {
        Kernel::Linear => inner(),
        Kernel::Rbf { gamma } => {
            let mut distance = 0.0;
            x.pairs(i, j, |a, b| distance += (a - b) * (a - b));
            from_distance(gamma, distance)
        }
        Kernel::Laplacian { gamma } => {
            let mut distance = 0.0;
            x.pairs(i, j, |a, b| distance += (a - b).abs());
            from_distance(gamma, distance)
        }
        Kernel::Poly { gamma, degree, coef0 } => {
            let inner = inner();
            let base = gamma * inner.value + coef0;
            let off = gamma * inner.error + EPS * (gamma * inner.value).abs().max(coef0.abs());
            let slope = f64::from(degree) * base.abs().powi(degree as i32 - 1);
            let value = base.powi(degree as i32);
            Rounded { value, error: slope * off + EPS * f64::from(degree) * value.abs() }
        }
        Kernel::Sigmoid { gamma, coef0 } => {
            let inner = inner();
            let value = (gamma * inner.value + coef0).tanh();
            Rounded { value, error: gamma * inner.error + 2.0 * EPS }
        }
    }
}

/// `k(Z, Z) = L Lᵀ`, the largest pivot first.
struct LandmarkFactor {
    /// Which landmark each pivot is.
    order: Vec<usize>,
    /// `L`, column after column, rows as they are numbered.
    columns: Vec<Vec<f64>>,
}

impl LandmarkFactor {
    fn new(space: &CheckedRows<'_>, landmarks: &[usize]) -> Result<Self> {
        let n = landmarks.len();
        let value =
            |a: usize, b: usize| with_rows!(space.rows, x => kernel(space.kernel, x, landmarks[a], landmarks[b])).value;
        let mut left: Vec<f64> = (0..n).map(|a| value(a, a)).collect();
        let (mut order, mut columns): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let mut open = vec![true; n];
        for _ in 0..n {
            space.control.check()?;
            let candidates = (0..n).filter(|&a| open[a] && left[a] > 0.0);
            let Some(pivot) = candidates.max_by(|&a, &b| left[a].total_cmp(&left[b])) else { break };
            open[pivot] = false;
            let root = left[pivot].sqrt();
            let column: Vec<f64> = (0..n)
                .into_par_iter()
                .map(|a| {
                    let before = columns.iter().map(|c| c[a] * c[pivot]);
                    (value(a, pivot) - sum(before)) / root
                })
                .collect();
            for a in 0..n {
                left[a] -= column[a] * column[a];
            }
            order.push(pivot);
            columns.push(column);
        }
        Ok(Self { order, columns })
    }

    /// How long `L⁻¹ r` is for an `r` whose entries may be off by `e`: the longest of a few with any signs, as errors of landmarks
    /// that are alike cancel where the signs are.
    fn error(&self, e: &[f64]) -> f64 {
        const DRAWS: u64 = 8;
        let sign = |draw: u64, z: usize| {
            let mixed = (draw << 32 ^ z as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 == 0 { 1.0 } else { -1.0 }
        };
        let drawn = |draw: u64| e.iter().enumerate().map(|(z, e)| sign(draw, z) * e).collect::<Vec<f64>>();
        (0..DRAWS).map(|draw| self.half_solved(&drawn(draw)).sqrt()).fold(0.0, f64::max)
    }

    /// `‖L⁻¹ r‖²`; infinite if rounding leaves no `L`.
    fn half_solved(&self, r: &[f64]) -> f64 {
        if self.order.len() < r.len() {
            return f64::INFINITY;
        }
        let mut solved: Vec<f64> = Vec::with_capacity(r.len());
        for (step, &a) in self.order.iter().enumerate() {
            let before = sum(self.columns[..step].iter().zip(&solved).map(|(c, s)| c[a] * s));
            solved.push((r[a] - before) / self.columns[step][a]);
        }
        sum(solved.iter().map(|s| s * s))
    }
}

/// `x_ij²`, column after column.
fn squares(rows: &Matrix<'_>, i: usize) -> Vec<f64> {
    let mut squares = Vec::new();
    with_rows!(rows, x => x.visit(i, |_, v| squares.push(v * v)));
    squares
}
