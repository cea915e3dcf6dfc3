//! The whole kernel matrix `G`, for solvers that multiply with it, factor parts of it or go through its rows.

use super::landmarks::{NOTHING, pivoted_cholesky};
use super::{KernelRows, Stored};
use crate::Result;
use crate::control::Control;
use crate::data::{Dense, Matrix, dense_dot};
use crate::linalg;
use crate::random::Random;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Columns of the part of `G` that preconditions conjugate gradients (Frangella, Tropp & Udell 2023): its largest eigenvalues,
/// which they would take longest to find.
const RANK: usize = 300;

/// What is left of a diagonal value when it is nothing but rounding errors.
const ROUNDING: f64 = 1e-14;

/// The kernel matrix `G`, kept in single precision where that is enough: products with it wait for memory.
pub struct Gram {
    n: usize,
    values: GramValues,
    low_rank: OnceLock<LowRank>,
}

/// `F` of `G ≈ F Fᵀ`, row after row.
pub struct LowRank {
    rank: usize,
    values: Vec<f64>,
}

impl LowRank {
    /// `r`
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Row `i` of `F`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }
}

/// Its rows.
enum GramValues {
    Single(Vec<Vec<f32>>),
    Double(Vec<Vec<f64>>),
}

/// From this tolerance on, the rounding of kernel values to single precision (6e-8) does not show in the gap.
const SINGLE: f64 = 1e-5;
/// Length of the pieces in which products with few rows are summed: a piece stays in the cache.
const PIECE: usize = 1024;

/// How kernel values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GramPrecision {
    /// As `f32`.
    Single,
    /// As `f64`.
    Double,
}

impl GramPrecision {
    /// What mostly suffices for a relative gap of `tol`. Whether it did, the certificate says.
    pub fn for_tolerance(tol: f64) -> Self {
        if tol < SINGLE { Self::Double } else { Self::Single }
    }
}

impl Gram {
    /// The matrix of the rows.
    pub fn new(rows: &KernelRows<'_>, precision: GramPrecision, control: Control<'_>) -> Result<Self> {
        let values = match precision {
            GramPrecision::Single => GramValues::Single(rows.whole(control)?),
            GramPrecision::Double => GramValues::Double(rows.whole(control)?),
        };
        Ok(Self { n: rows.len(), values, low_rank: OnceLock::new() })
    }

    /// Bytes that the matrix of `m` rows takes.
    pub fn bytes(m: usize, precision: GramPrecision) -> u64 {
        let size = match precision {
            GramPrecision::Single => 4,
            GramPrecision::Double => 8,
        };
        size * (m as u64).pow(2)
    }

    /// Its rows, if they are kept as `T`.
    pub fn rows<T: Stored>(&self) -> Option<&[Vec<T>]> {
        match &self.values {
            GramValues::Single(rows) => T::from_single(rows),
            GramValues::Double(rows) => T::from_double(rows),
        }
    }

    /// The matrix of some of the rows.
    pub fn part(&self, chosen: &[usize]) -> Self {
        fn cut<T: Stored>(rows: &[Vec<T>], chosen: &[usize]) -> Vec<Vec<T>> {
            chosen.par_iter().map(|&i| chosen.iter().map(|&j| rows[i][j]).collect()).collect()
        }
        let values = match &self.values {
            GramValues::Single(rows) => GramValues::Single(cut(rows, chosen)),
            GramValues::Double(rows) => GramValues::Double(cut(rows, chosen)),
        };
        Self { n: chosen.len(), values, low_rank: OnceLock::new() }
    }

    /// `Σ_j c_j G_ij` over some columns `j`, for some rows `i`.
    pub fn cross(&self, rows: &[usize], columns: &[usize], c: &[f64]) -> Vec<f64> {
        let row = |&i: &usize| columns.iter().zip(c).map(|(&j, c)| self.get(i, j) * c).sum();
        rows.par_iter().with_min_len(16).map(row).collect()
    }

    /// `G_ij`
    pub fn get(&self, i: usize, j: usize) -> f64 {
        match &self.values {
            GramValues::Single(values) => values[i][j].into(),
            GramValues::Double(values) => values[i][j],
        }
    }

    fn row(&self, i: usize, out: &mut [f64]) {
        match &self.values {
            GramValues::Single(values) => out.iter_mut().zip(&values[i]).for_each(|(out, k)| *out = (*k).into()),
            GramValues::Double(values) => out.copy_from_slice(&values[i]),
        }
    }

    /// The part of low rank, computed once.
    pub fn low_rank(&self, control: Control<'_>) -> Result<&LowRank> {
        if let Some(known) = self.low_rank.get() {
            return Ok(known);
        }
        let diagonal = (0..self.n).map(|i| self.get(i, i)).collect();
        let mut random = Random::new(0, 0x6c6f_7772);
        let (_, columns) =
            pivoted_cholesky(diagonal, |i, out| self.row(i, out), (RANK, NOTHING), &mut random, control)?;
        let values = (0..self.n).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
        Ok(self.low_rank.get_or_init(|| LowRank { rank: columns.len(), values }))
    }

    /// `F` of `G = F Fᵀ` as far as it has digits: rows of which a linear machine is what these are of a kernel machine.
    pub fn features(&self, control: Control<'_>) -> Result<Matrix<'static>> {
        let diagonal = (0..self.n).map(|i| self.get(i, i)).collect();
        let mut random = Random::new(0, 0x6665_6174);
        let (_, columns) =
            pivoted_cholesky(diagonal, |i, out| self.row(i, out), (self.n, ROUNDING), &mut random, control)?;
        let values = (0..self.n).flat_map(|i| columns.iter().map(move |column| column[i])).collect::<Vec<f64>>();
        let dense = Dense::new(self.n, columns.len(), values);
        Ok(Matrix::DenseF64(dense.expect("a column is as long as there are rows")))
    }

    /// Row `i` times `v`.
    fn dot(&self, i: usize, v: &[f64]) -> f64 {
        match &self.values {
            GramValues::Single(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
            GramValues::Double(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
        }
    }

    /// `G` times each column of `v`. The matrix is symmetric and products wait for memory, so that only its lower triangle is
    /// read: `G_ij` counts for row `i` and, times `v_i`, for row `j`.
    fn products(&self, v: &[f64]) -> Vec<f64> {
        let n = self.n.max(1);
        let part = |number: usize| {
            let rows = triangle(self.n, number)..triangle(self.n, number + 1);
            let mut sums: Vec<Vec<f64>> = v.chunks_exact(n).map(|_| vec![0.0; rows.end]).collect();
            for from in rows.clone().step_by(AT_ONCE) {
                let some = from..(from + AT_ONCE).min(rows.end);
                for (v, sums) in v.chunks_exact(n).zip(&mut sums) {
                    match &self.values {
                        GramValues::Single(values) => add_band(&values[some.clone()], from, v, sums),
                        GramValues::Double(values) => add_band(&values[some.clone()], from, v, sums),
                    }
                }
            }
            sums
        };
        let parts: Vec<Vec<Vec<f64>>> = (0..PARTS).into_par_iter().map(part).collect();
        let mut products = vec![0.0; v.len()];
        for sums in &parts {
            products
                .chunks_exact_mut(n)
                .zip(sums)
                .for_each(|(out, sums)| linalg::axpy(1.0, sums, &mut out[..sums.len()]));
        }
        products
    }

    /// Chosen rows times each column of `v`: `out` has a number a chosen row, column after column. A row is read once for all
    /// columns.
    pub fn chosen_products(&self, chosen: &[usize], v: &[f64], out: &mut [f64]) {
        let (n, k) = (self.n.max(1), chosen.len().max(1));
        let columns = v.len() / n;
        if 2 * chosen.len() > self.n {
            for (out, products) in out.chunks_exact_mut(k).zip(self.products(v).chunks_exact(n)) {
                out.iter_mut().zip(chosen).for_each(|(out, &i)| *out = products[i]);
            }
            return;
        }
        let rows = |&i: &usize| -> Vec<f64> { v.chunks_exact(n).map(|v| self.dot(i, v)).collect() };
        let products: Vec<Vec<f64>> = chosen.par_iter().with_min_len(16).map(rows).collect();
        for column in 0..columns {
            out[column * k..(column + 1) * k].iter_mut().zip(&products).for_each(|(out, row)| *out = row[column]);
        }
    }

    /// `out += a` times a stretch of row `i`.
    fn axpy(&self, i: usize, a: f64, from: usize, out: &mut [f64]) {
        let range = from..from + out.len();
        match &self.values {
            GramValues::Single(values) => {
                out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * f64::from(*k))
            }
            GramValues::Double(values) => out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * k),
        }
    }

    /// `G v`; costs only the rows where `v` is not zero.
    pub fn multiply(&self, v: &[f64]) -> Vec<f64> {
        let filled: Vec<usize> = (0..self.n).filter(|&j| v[j] != 0.0).collect();
        if 2 * filled.len() > self.n {
            return self.products(v);
        }
        let mut product = vec![0.0; self.n];
        product.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
            filled.iter().for_each(|&j| self.axpy(j, v[j], piece * PIECE, out));
        });
        product
    }

    /// `G_SS + diag`, ready to be factored.
    pub fn principal(&self, chosen: &[usize], diagonal: &[f64]) -> Vec<f64> {
        let k = chosen.len();
        let mut matrix = vec![0.0; k * k];
        matrix.par_chunks_mut(k.max(1)).enumerate().for_each(|(p, out)| {
            // Only the lower triangle counts, and column-major it is the rest of this row.
            out[p..].iter_mut().zip(&chosen[p..]).for_each(|(out, &j)| *out = self.get(chosen[p], j));
            out[p] += diagonal[p];
        });
        matrix
    }
}

/// Parts in which the lower triangle is gone through, each with sums of its own. A constant: it decides the order of sums.
const PARTS: usize = 16;

/// Where the part of this number begins: the parts of the triangle have the same area.
fn triangle(n: usize, part: usize) -> usize {
    (n as f64 * (part as f64 / PARTS as f64).sqrt()).round() as usize
}

/// Rows of the triangle that are gone through together: `v` and the sums are then read once for all of them.
const AT_ONCE: usize = 4;

/// Adds to the sums what rows `from`, `from + 1`, … of a symmetric matrix give, up to their diagonal entries.
fn add_band<T: Stored>(rows: &[Vec<T>], from: usize, v: &[f64], sums: &mut [f64]) {
    if let [a, b, c, d] = rows {
        let heads = [a, b, c, d].map(|row| &row[..from]);
        let factors = [0, 1, 2, 3].map(|r| v[from + r]);
        let products = linalg::wide(
            #[inline(always)]
            || dot_and_add(heads, &v[..from], factors, &mut sums[..from]),
        );
        products.iter().zip(&mut sums[from..]).for_each(|(product, sum)| *sum += product);
    }
    // The last rows, and the corner at the diagonal.
    let start = if rows.len() == AT_ONCE { from } else { 0 };
    for (r, row) in rows.iter().enumerate() {
        let i = from + r;
        let mut own = row[i].into() * v[i];
        for j in start..i {
            let value: f64 = row[j].into();
            own += value * v[j];
            sums[j] += value * v[i];
        }
        sums[i] += own;
    }
}

/// The products of four rows with `v`; each row times its factor is added to the sums.
#[inline(always)]
fn dot_and_add<T: Stored>(rows: [&[T]; 4], v: &[f64], factors: [f64; 4], sums: &mut [f64]) -> [f64; 4] {
    const LANES: usize = 4;
    let whole = v.len() / LANES * LANES;
    let mut lanes = [[0.0; LANES]; 4];
    for at in (0..whole).step_by(LANES) {
        let pieces = rows.map(|row| &row[at..at + LANES]);
        let (v, sums) = (&v[at..at + LANES], &mut sums[at..at + LANES]);
        for l in 0..LANES {
            let values: [f64; 4] = [pieces[0][l].into(), pieces[1][l].into(), pieces[2][l].into(), pieces[3][l].into()];
            for r in 0..4 {
                lanes[r][l] += values[r] * v[l];
            }
            sums[l] +=
                (factors[0] * values[0] + factors[1] * values[1]) + (factors[2] * values[2] + factors[3] * values[3]);
        }
    }
    let mut products = lanes.map(|lanes| lanes.iter().sum::<f64>());
    for j in whole..v.len() {
        for r in 0..4 {
            let value: f64 = rows[r][j].into();
            products[r] += value * v[j];
            sums[j] += factors[r] * value;
        }
    }
    products
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::kernel::Kernel;

    #[test]
    fn products_are_those_of_the_whole_matrix() {
        let mut random = Random::new(12, 0);
        for m in [1, 2, 17, 203] {
            let values: Vec<f64> = (0..m * 3).map(|_| random.normal()).collect();
            let rows = Matrix::DenseF64(Dense::new(m, 3, values).unwrap());
            let rows = KernelRows::new(Kernel::Rbf { gamma: 0.3 }, &rows, 0.0);
            let whole = rows.matrix(Control::default()).unwrap();
            let gram = Gram::new(&rows, GramPrecision::Double, Control::default()).unwrap();
            let v: Vec<f64> = (0..2 * m).map(|_| random.normal()).collect();
            let chosen: Vec<usize> = (0..m).collect();
            let mut out = vec![0.0; 2 * m];
            gram.chosen_products(&chosen, &v, &mut out);
            for column in 0..2 {
                for i in 0..m {
                    let truth: f64 = (0..m).map(|j| whole[i * m + j] * v[column * m + j]).sum();
                    assert!((out[column * m + i] - truth).abs() < 1e-12, "{m}");
                }
            }
            assert_eq!(gram.multiply(&v[..m]), out[..m]);
        }
    }
}
