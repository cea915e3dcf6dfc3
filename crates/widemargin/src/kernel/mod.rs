//! Inner products of rows: single, block, whole.

mod elsewhere;
mod exp;
mod gram;
mod landmarks;
mod store;
mod tiles;

pub use elsewhere::{KernelProducts, ProductAsked};
pub use exp::KernelValue;
pub use gram::{Gram, GramPrecision};
pub use landmarks::{Landmarks, Span};
pub use store::RowStore;
pub use tiles::{LowRank, TilePrecision, Tiles};

use crate::control::Control;
use crate::data::{Matrix, Rows, dense_dot};
use crate::linalg::{self, Scalar};
use crate::names::named;
use crate::{Result, with_rows};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// `k(x, z)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kernel {
    /// `x·z`
    #[default]
    Linear,
    /// `exp(−γ ‖x − z‖²)`
    Rbf {
        /// `γ`
        gamma: f64,
    },
    /// `(γ x·z + r)^p`
    Poly {
        /// `γ`
        gamma: f64,
        /// `p`
        degree: u32,
        /// `r`
        coef0: f64,
    },
    /// `tanh(γ x·z + r)`; not positive definite in general, so optima over it carry no certificate of convexity.
    Sigmoid {
        /// `γ`
        gamma: f64,
        /// `r`
        coef0: f64,
    },
    /// `exp(−γ ‖x − z‖₁)`
    Laplacian {
        /// `γ`
        gamma: f64,
    },
}

/// A kernel without its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelKind {
    /// `x·z`
    #[default]
    Linear,
    /// `exp(−γ ‖x − z‖²)`
    Rbf,
    /// `(γ x·z + r)^p`
    Poly,
    /// `tanh(γ x·z + r)`
    Sigmoid,
    /// `exp(−γ ‖x − z‖₁)`
    Laplacian,
}

named!(KernelKind, "kernel", [
    Linear: "linear" "x·z",
    Rbf: "rbf" "exp(−γ ‖x − z‖²)",
    Poly: "poly" "(γ x·z + r)^p",
    Sigmoid: "sigmoid" "tanh(γ x·z + r)",
    Laplacian: "laplacian" "exp(−γ ‖x − z‖₁)",
]);

impl KernelKind {
    /// The degree `p` if nobody says.
    pub const DEGREE: u32 = 3;
    /// The constant `r` if nobody says.
    pub const COEF0: f64 = 0.0;

    /// The kernel with these numbers, as far as it has them.
    pub fn with(self, gamma: f64, degree: u32, coef0: f64) -> Kernel {
        match self {
            Self::Linear => Kernel::Linear,
            Self::Rbf => Kernel::Rbf { gamma },
            Self::Poly => Kernel::Poly { gamma, degree, coef0 },
            Self::Sigmoid => Kernel::Sigmoid { gamma, coef0 },
            Self::Laplacian => Kernel::Laplacian { gamma },
        }
    }

    /// Whether it has a `γ`.
    pub fn has_gamma(self) -> bool {
        self != Self::Linear
    }

    /// Whether it has a degree `p`.
    pub fn has_degree(self) -> bool {
        self == Self::Poly
    }

    /// Whether it has a constant `r`.
    pub fn has_coef0(self) -> bool {
        matches!(self, Self::Poly | Self::Sigmoid)
    }
}

impl Kernel {
    /// Which it is.
    pub fn kind(self) -> KernelKind {
        match self {
            Self::Linear => KernelKind::Linear,
            Self::Rbf { .. } => KernelKind::Rbf,
            Self::Poly { .. } => KernelKind::Poly,
            Self::Sigmoid { .. } => KernelKind::Sigmoid,
            Self::Laplacian { .. } => KernelKind::Laplacian,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    /// What [`KernelRows`] has to know of each row, computed on the calling thread.
    pub fn norms(self, rows: &Matrix<'_>) -> Vec<f64> {
        (0..rows.rows()).map(|i| self.norm(rows, i)).collect()
    }

    /// `‖x_i‖²`, or `‖x_i‖₁` for the Laplacian kernel.
    fn norm(self, rows: &Matrix<'_>, i: usize) -> f64 {
        if let Self::Laplacian { .. } = self {
            let mut sum = 0.0;
            with_rows!(rows, x => x.visit(i, |_, v| sum += v.abs()));
            sum
        } else {
            with_rows!(rows, x => x.norm2(i))
        }
    }
}

/// Rows under a kernel: `k(x_i, ·) + offset`.
///
/// The offset is how an appended, regularised constant feature `B` shows itself in a kernel: `offset = B²`.
pub struct KernelRows<'a> {
    kernel: Kernel,
    rows: &'a Matrix<'a>,
    offset: f64,
    /// `‖x_i‖²`, or `‖x_i‖₁` for the Laplacian kernel.
    norms: Cow<'a, [f64]>,
    single: Option<Single>,
    /// What [`rounded`](Self::rounded) was told.
    error: f64,
    /// `‖x_i‖²` of sparse rows whose values may be computed in single precision.
    single_norms: Option<Vec<f32>>,
    /// Whether the rows are multiplied as dense ones, whatever they are kept as.
    full: bool,
}

/// Dense rows in single precision; under the RBF kernel, which sees differences only, around their mean.
struct Single {
    values: Vec<f32>,
    /// `‖x_i‖²`
    norms: Vec<f32>,
}

/// Rows of both sides are taken in tiles, so that the numbers of a tile stay in the cache.
const TILE: usize = 256;
/// Rows of the left side that a thread takes at once.
const HEIGHT: usize = 64;
/// Rows that are spread out over all columns side by side, and up to how many columns: 1 MiB in double precision.
const SPREAD: usize = 16;
const SPREAD_COLUMNS: usize = 1 << 13;
/// Sparse rows with at least one stored value for so many columns are multiplied as dense ones, a few rows at a time: the processor's
/// units are made for that. (Connect-4, 42 of 126 columns stored, 67,557 rows: the tiles in single precision take 42 s of processor time
/// spread out, and 14 s dense; in double precision 140 s and 34 s.)
const FULL: usize = 16;
/// Of fewer rows beside them the zeros are not worth writing.
const FULL_ROWS: usize = 8;
/// Parts of a symmetric product, each with sums of its own. A constant: it decides the order of sums.
const SYMMETRIC_PARTS: usize = 8;
/// Of more columns the parts' sums take more memory than half of the matrix is worth.
const SYMMETRIC_COLUMNS: usize = 32;

impl<'a> KernelRows<'a> {
    /// Prepares the rows.
    pub fn new(kernel: Kernel, rows: &'a Matrix<'a>, offset: f64) -> Self {
        let norms: Vec<f64> = (0..rows.rows()).into_par_iter().map(|i| kernel.norm(rows, i)).collect();
        Self::with_norms(kernel, rows, offset, norms)
    }

    /// As [`new`](Self::new), with [`Kernel::norms`] of the same rows that are already there.
    pub fn with_norms(kernel: Kernel, rows: &'a Matrix<'a>, offset: f64, norms: impl Into<Cow<'a, [f64]>>) -> Self {
        let (m, d) = (rows.rows(), rows.cols());
        let products = d > 0 && !matches!(kernel, Kernel::Laplacian { .. });
        let full = products && (rows.is_dense() || d <= SPREAD_COLUMNS && FULL * rows.stored() >= m * d);
        Self { kernel, rows, offset, norms: norms.into(), single: None, error: 0.0, single_norms: None, full }
    }

    /// The same rows, prepared to compute values that are wanted in single precision in single precision throughout, if
    /// that changes none of them by much more than `error`, relative to the largest.
    pub fn rounded(mut self, error: f64) -> Self {
        self.error = error;
        let single = self.full.then(|| Single::new(self.kernel, self.rows));
        let sparse = !self.rows.is_dense() && self.spreads() && !matches!(self.kernel, Kernel::Laplacian { .. });
        if single.is_some() || sparse {
            let norms = || self.norms.iter().map(|norm| *norm as f32).collect();
            let norms: Vec<f32> = single.as_ref().map_or_else(norms, |single| single.norms.clone());
            let largest = norms.iter().fold(0.0f32, |a, b| a.max(*b));
            // Norms and products are off by a few units in the last place, and the kernel multiplies that.
            let factor = match self.kernel {
                Kernel::Linear | Kernel::Laplacian { .. } => 1.0,
                Kernel::Rbf { gamma } => 4.0 * gamma * f64::from(largest),
                Kernel::Poly { degree, .. } => f64::from(degree),
                Kernel::Sigmoid { gamma, .. } => gamma * f64::from(largest),
            };
            if factor.max(1.0) * f64::from(f32::EPSILON) <= error {
                self.single_norms = single.is_none().then_some(norms);
                self.single = single;
            }
        }
        self
    }

    /// Some of the rows (`rows` is what they are kept in), prepared likewise.
    pub fn some<'b>(&self, rows: &'b Matrix<'b>) -> KernelRows<'b> {
        KernelRows::new(self.kernel, rows, self.offset).rounded(self.error)
    }

    /// The rows as they are.
    pub fn plain(&self) -> &'a Matrix<'a> {
        self.rows
    }

    /// How much larger the relative error of a kernel value is than that of an inner product.
    pub fn amplification(&self) -> f64 {
        match self.kernel {
            Kernel::Poly { degree, .. } => f64::from(degree),
            _ => 1.0,
        }
    }

    /// Whether a kernel value is computed sooner than memory for it is there.
    pub fn is_quick(&self) -> bool {
        let stored = if self.full { self.rows.cols() } else { self.rows.stored().div_ceil(self.len().max(1)) };
        stored <= NARROW
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.norms.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.norms.is_empty()
    }

    /// `k(x_i, x_i) + offset`
    pub fn diagonal(&self, i: usize) -> f64 {
        if let Kernel::Rbf { .. } | Kernel::Laplacian { .. } = self.kernel {
            return 1.0 + self.offset;
        }
        let mut value = [self.norms[i]];
        self.finish(&mut value, &self.norms[i..=i], &self.norms[i..=i]);
        value[0]
    }

    /// The kernel values of row `i` with every row.
    pub fn row(&self, i: usize, out: &mut [f64]) {
        self.block(self, i..i + 1, out);
    }

    /// The kernel values of rows `left[range]` with every row of `self`, row-major in `out`. On one thread.
    ///
    /// Both sides must have the same kernel and number of columns.
    pub fn block(&self, left: &KernelRows<'_>, range: Range<usize>, out: &mut [f64]) {
        let n = self.len();
        self.tiles(left, range, &mut Scratch::default(), |columns, values| {
            let width = columns.len();
            for (out, values) in out.chunks_exact_mut(n).zip(values.chunks_exact(width)) {
                out[columns.clone()].copy_from_slice(values);
            }
        });
    }

    /// Hands `then` the kernel values of rows `left[range]` with some rows of `self` at a time, row-major.
    fn tiles(
        &self,
        left: &KernelRows<'_>,
        range: Range<usize>,
        scratch: &mut Scratch,
        then: impl FnMut(Range<usize>, &mut [f64]),
    ) {
        self.tiles_upto(left, range, self.len(), scratch, then);
    }

    /// The same with the rows of `self` before `end`.
    fn tiles_upto(
        &self,
        left: &KernelRows<'_>,
        range: Range<usize>,
        end: usize,
        scratch: &mut Scratch,
        mut then: impl FnMut(Range<usize>, &mut [f64]),
    ) {
        let mut values = std::mem::take(&mut scratch.values);
        for from in (0..end).step_by(TILE) {
            let columns = from..(from + TILE).min(end);
            self.double_tile(left, range.clone(), columns.clone(), scratch, &mut values);
            then(columns, &mut values);
        }
        scratch.values = values;
    }

    /// The kernel values of rows `left[range]` with some rows of `self`, row-major.
    fn double_tile(
        &self,
        left: &KernelRows<'_>,
        range: Range<usize>,
        columns: Range<usize>,
        scratch: &mut Scratch,
        values: &mut Vec<f64>,
    ) {
        values.resize(range.len() * columns.len(), 0.0);
        if self.by_products(left, range.len()) {
            let a = doubles(left.rows, range.clone(), &mut scratch.left);
            let b = doubles(self.rows, columns.clone(), &mut scratch.right);
            f64::products(values, columns.len(), a, b, self.rows.cols());
        } else if self.spreads() && !matches!(self.kernel, Kernel::Laplacian { .. }) {
            self.spread_products(left, range.clone(), columns.clone(), &mut scratch.right, values);
        } else {
            self.scattered_products(left, range.clone(), columns.clone(), values);
        }
        self.finish(values, &left.norms[range.clone()], &self.norms[columns.clone()]);
        self.sharpen(left, range, columns, values);
    }

    /// Whether several rows spread out over all columns stay in the cache.
    fn spreads(&self) -> bool {
        self.rows.cols() <= SPREAD_COLUMNS
    }

    /// `x_i · z_j`, with several `z_j` at a time spread out over all columns side by side: a stored value of `x_i` then counts for
    /// all of them at once.
    fn spread_products<T: KernelValue>(
        &self,
        left: &KernelRows<'_>,
        range: Range<usize>,
        others: Range<usize>,
        spread: &mut Vec<T>,
        out: &mut [T],
    ) {
        spread.clear();
        spread.resize(SPREAD * self.rows.cols().max(left.rows.cols()), T::default());
        let width = others.len();
        for from in others.clone().step_by(SPREAD) {
            let group = from..(from + SPREAD).min(others.end);
            for (r, j) in group.clone().enumerate() {
                with_rows!(self.rows, z => z.visit(j, |c, v| spread[c * SPREAD + r] = T::of(v)));
            }
            let at = from - others.start..group.end - others.start;
            linalg::wide(
                #[inline(always)]
                || {
                    for (i, line) in range.clone().zip(out.chunks_exact_mut(width)) {
                        let mut sums = [T::default(); SPREAD];
                        with_rows!(left.rows, x => x.visit(i, |c, v| {
                            let (v, values) = (T::of(v), &spread[c * SPREAD..(c + 1) * SPREAD]);
                            for r in 0..SPREAD {
                                sums[r] = sums[r] + v * values[r];
                            }
                        }));
                        line[at.clone()].copy_from_slice(&sums[..at.len()]);
                    }
                },
            );
            for j in group {
                with_rows!(self.rows, z => z.visit(j, |c, _| {
                    spread[c * SPREAD..(c + 1) * SPREAD].fill(T::default());
                }));
            }
        }
    }

    /// Computes anew, from differences of features, the values whose distance lost its digits: `‖x‖² + ‖z‖² − 2 x·z` is off by
    /// rounding errors of `‖x‖² + ‖z‖²`, however small the distance is (and so is `‖x − z‖₁` of sparse rows).
    fn sharpen(&self, left: &KernelRows<'_>, range: Range<usize>, others: Range<usize>, values: &mut [f64]) {
        let (Kernel::Rbf { gamma } | Kernel::Laplacian { gamma }) = self.kernel else { return };
        let l1 = matches!(self.kernel, Kernel::Laplacian { .. });
        if l1 && self.rows.is_dense() {
            return;
        }
        let largest = |norms: &[f64]| norms.iter().copied().fold(0.0, f64::max);
        let blurred = |norms: f64| gamma * 4.0 * f64::EPSILON * norms > BLUR;
        let right = &self.norms[others.clone()];
        if !blurred(largest(&left.norms[range.clone()]) + largest(right)) {
            return;
        }
        let mut row = Spread::new(self.rows.cols().max(left.rows.cols()));
        for (i, values) in range.zip(values.chunks_exact_mut(others.len())) {
            row.set(left.rows, i);
            for (j, value) in others.clone().zip(values) {
                let norms = left.norms[i] + self.norms[j];
                // A value of zero stays zero, unless rounding of the distance alone may have made it so.
                let vanished = *value == self.offset && gamma * 4.0 * f64::EPSILON * norms < VANISHED;
                if !vanished && blurred(norms) {
                    *value = (-gamma * row.distance(self.rows, j, l1)).exp() + self.offset;
                }
            }
        }
    }

    /// Whether inner products with so many rows of `left` come from matrix products.
    fn by_products(&self, left: &KernelRows<'_>, rows: usize) -> bool {
        let quick = self.rows.is_dense() || rows >= FULL_ROWS;
        self.full && quick && left.rows.cols() == self.rows.cols()
    }

    /// `x_i · z_j` (or `‖x_i − z_j‖₁`) with row `i` spread out over all columns.
    fn scattered_products(&self, left: &KernelRows<'_>, range: Range<usize>, others: Range<usize>, out: &mut [f64]) {
        let mut spread = vec![0.0; self.rows.cols().max(left.rows.cols())];
        for (i, values) in range.zip(out.chunks_exact_mut(others.len())) {
            with_rows!(left.rows, x => x.visit(i, |j, v| spread[j] = v));
            with_rows!(self.rows, z => if let (Kernel::Laplacian { .. }, true) = (self.kernel, z.is_dense()) {
                for (j, value) in others.clone().zip(values) {
                    let mut distance = 0.0;
                    z.visit(j, |c, v| distance += (spread[c] - v).abs());
                    *value = distance;
                }
            } else if let Kernel::Laplacian { .. } = self.kernel {
                for (j, value) in others.clone().zip(values) {
                    // ‖x − z‖₁ = ‖x‖₁ + Σ over z's stored columns of (|x_c − z_c| − |x_c|)
                    let mut distance = left.norms[i];
                    z.visit(j, |c, v| distance += (spread[c] - v).abs() - spread[c].abs());
                    *value = distance;
                }
            } else {
                for (j, value) in others.clone().zip(values) {
                    *value = z.dot(j, &spread);
                }
            });
            with_rows!(left.rows, x => x.visit(i, |j, _| spread[j] = 0.0));
        }
    }

    /// From inner products (or `‖·‖₁` distances) to kernel values, in place: row-major, with the norms of both sides.
    fn finish<T: KernelValue>(&self, values: &mut [T], rows: &[T], columns: &[T]) {
        pulp::Arch::new().dispatch(Finish { kernel: self.kernel, offset: self.offset, values, rows, columns });
    }

    /// The whole matrix `G`, row-major.
    pub fn matrix(&self, control: Control<'_>) -> Result<Vec<f64>> {
        let n = self.len();
        let mut matrix = vec![0.0; n * n];
        matrix.par_chunks_mut((HEIGHT * n).max(1)).enumerate().try_for_each(|(chunk, out)| {
            control.check()?;
            self.block(self, chunk * HEIGHT..chunk * HEIGHT + out.len() / n, out);
            Ok(())
        })?;
        Ok(matrix)
    }

    /// The matrix of some of the rows, row-major.
    pub fn principal(&self, chosen: &[usize], control: Control<'_>) -> Result<Vec<f64>> {
        let selected = self.rows.select(chosen);
        KernelRows::new(self.kernel, &selected, self.offset).matrix(control)
    }

    /// Replaces each of `out` by the kernel values of its chosen row with every row; in parallel.
    pub fn chosen<T: Stored>(&self, chosen: &[usize], out: &mut [Vec<T>], control: Control<'_>) -> Result<()> {
        chosen.par_chunks(HEIGHT).zip(out.par_chunks_mut(HEIGHT)).try_for_each(|(chosen, out)| {
            control.check()?;
            for row in out.iter_mut() {
                row.clear();
                row.reserve_exact(self.len());
            }
            T::values(self, chosen, out);
            Ok(())
        })
    }

    /// The whole matrix `G`, row after row.
    pub fn whole<T: Stored>(&self, control: Control<'_>) -> Result<Vec<Vec<T>>> {
        let all: Vec<usize> = (0..self.len()).collect();
        let mut rows = vec![Vec::new(); self.len()];
        self.chosen(&all, &mut rows, control)?;
        Ok(rows)
    }

    /// `Σ_j c_j k(x_i, x_j)` for every row `x_i`, over the given pairs of `j` and `c_j`, computed as `T`.
    pub fn combine<T: Stored>(&self, terms: &[(usize, f64)], control: Control<'_>) -> Result<Vec<f64>> {
        self.combine_upto::<T>(self.len(), terms, control)
    }

    /// The same for the rows before `end`.
    pub fn combine_upto<T: Stored>(
        &self,
        end: usize,
        terms: &[(usize, f64)],
        control: Control<'_>,
    ) -> Result<Vec<f64>> {
        let (chosen, c): (Vec<usize>, Vec<f64>) = terms.iter().copied().unzip();
        let mut sums = vec![0.0; end];
        match self.single.as_ref().filter(|_| T::SINGLE) {
            Some(single) => {
                let (values, norms) = single.select(self.rows.cols(), &chosen);
                sums.par_chunks_mut(HEIGHT).enumerate().try_for_each(|(chunk, out)| {
                    control.check()?;
                    single.combine(self, chunk * HEIGHT, (&values, &norms, &c), out);
                    Ok(())
                })?;
            }
            None => {
                let selected = self.rows.select(&chosen);
                let others = KernelRows::new(self.kernel, &selected, self.offset);
                others.expand_some(self, 0..end, std::slice::from_ref(&c), &mut sums, control)?;
            }
        }
        Ok(sums)
    }

    /// `G c` in double precision.
    pub fn product(&self, c: &[f64], control: Control<'_>) -> Result<Vec<f64>> {
        self.products(&[c], control)
    }

    /// `(G c_l)_i` for every row `i` and column `l` in double precision, row-major.
    pub fn products(&self, columns: &[&[f64]], control: Control<'_>) -> Result<Vec<f64>> {
        let some: Vec<usize> = (0..self.len()).filter(|&i| columns.iter().any(|c| c[i] != 0.0)).collect();
        if 2 * some.len() > self.len() && columns.len() <= SYMMETRIC_COLUMNS {
            return self.symmetric_products(columns, control);
        }
        let chosen: Vec<Vec<f64>> = columns.iter().map(|c| some.iter().map(|&i| c[i]).collect()).collect();
        let selected = self.rows.select(&some);
        KernelRows::new(self.kernel, &selected, self.offset).expand(self, &chosen, control)
    }

    /// The same from the lower triangle of `G`, each value of which counts for two rows.
    fn symmetric_products(&self, columns: &[&[f64]], control: Control<'_>) -> Result<Vec<f64>> {
        let (n, k) = (self.len(), columns.len());
        let bands = n.div_ceil(HEIGHT);
        // Band `p` goes with band `bands - 1 - p`, so that every part has as many tiles.
        let part = |number: usize| -> Result<Vec<f64>> {
            let (mut sums, mut scratch) = (vec![0.0; k * n], Scratch::default());
            let own = (0..bands).filter(|band| band.min(&(bands - 1 - band)) % SYMMETRIC_PARTS == number);
            for band in own {
                control.check()?;
                let rows = band * HEIGHT..((band + 1) * HEIGHT).min(n);
                self.tiles_upto(self, rows.clone(), rows.end, &mut scratch, |tile, values| {
                    for (i, values) in rows.clone().zip(values.chunks_exact(tile.len())) {
                        let below = tile.start..tile.end.min(i + 1).max(tile.start);
                        let values = &values[..below.len()];
                        let (before, own) = values.split_at(values.len() - usize::from(below.end == i + 1));
                        for (c, sums) in columns.iter().zip(sums.chunks_exact_mut(n)) {
                            linalg::axpy(c[i], before, &mut sums[below.start..below.start + before.len()]);
                            sums[i] += linalg::dot(before, &c[below.start..below.start + before.len()]);
                            sums[i] += own.first().map_or(0.0, |k| k * c[i]);
                        }
                    }
                });
            }
            Ok(sums)
        };
        let parts: Vec<Vec<f64>> = (0..SYMMETRIC_PARTS).into_par_iter().map(part).collect::<Result<_>>()?;
        let sums = linalg::add_up(parts);
        Ok((0..n).flat_map(|i| (0..k).map(move |l| l * n + i)).map(|at| sums[at]).collect())
    }

    /// `Σ_j c_lj k(x_i, z_j)` for every row `x_i` of `left` and every column `l`, row-major: how kernel models score.
    pub fn expand(&self, left: &KernelRows<'_>, coefficients: &[Vec<f64>], control: Control<'_>) -> Result<Vec<f64>> {
        let mut scores = vec![0.0; left.len() * coefficients.len()];
        if !self.is_empty() && !coefficients.is_empty() {
            self.expand_some(left, 0..left.len(), coefficients, &mut scores, control)?;
        }
        Ok(scores)
    }

    /// As [`expand`](Self::expand), on the calling thread: of few rows that is quicker than waking others.
    pub fn expand_here(&self, left: &KernelRows<'_>, coefficients: &[Vec<f64>]) -> Vec<f64> {
        let columns = coefficients.len();
        let mut scores = vec![0.0; left.len() * columns];
        let mut scratch = Scratch::default();
        if !self.is_empty() && columns > 0 {
            for (chunk, out) in scores.chunks_mut(HEIGHT * columns).enumerate() {
                self.expand_chunk(left, chunk * HEIGHT, coefficients, &mut scratch, out);
            }
        }
        scores
    }

    /// Adds the sums of the rows of `left` from `from` on to `out`, row-major.
    fn expand_chunk(
        &self,
        left: &KernelRows<'_>,
        from: usize,
        coefficients: &[Vec<f64>],
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let columns = coefficients.len();
        self.tiles(left, from..from + out.len() / columns, scratch, |range, values| {
            for (values, out) in values.chunks_exact(range.len()).zip(out.chunks_exact_mut(columns)) {
                for (score, coefficients) in out.iter_mut().zip(coefficients) {
                    *score += linalg::dot(values, &coefficients[range.clone()]);
                }
            }
        });
    }

    /// The same for some rows of `left`.
    fn expand_some(
        &self,
        left: &KernelRows<'_>,
        some: Range<usize>,
        coefficients: &[Vec<f64>],
        scores: &mut [f64],
        control: Control<'_>,
    ) -> Result<()> {
        let columns = coefficients.len();
        scores.par_chunks_mut(HEIGHT * columns).enumerate().try_for_each_init(
            Scratch::default,
            |scratch, (chunk, out)| {
                control.check()?;
                self.expand_chunk(left, some.start + chunk * HEIGHT, coefficients, scratch, out);
                Ok(())
            },
        )
    }
}

/// A kernel value may be off by this part of itself because of rounding in the distance it comes from.
const BLUR: f64 = 1e-12;

/// `exp(−t)` is zero for `t` above 745; rounding errors of `γ‖x − z‖²` below this make no zero of a value near one.
const VANISHED: f64 = 300.0;

/// A row spread out over all columns, for exact distances to others.
struct Spread {
    values: Vec<f64>,
    /// `x − z` where both have a value, `x` elsewhere.
    difference: Vec<f64>,
    columns: Vec<usize>,
}

impl Spread {
    fn new(width: usize) -> Self {
        Self { values: vec![0.0; width], difference: vec![0.0; width], columns: Vec::new() }
    }

    /// Takes over row `i`.
    fn set(&mut self, rows: &Matrix<'_>, i: usize) {
        let Self { values, difference, columns } = self;
        for c in columns.drain(..) {
            (values[c], difference[c]) = (0.0, 0.0);
        }
        with_rows!(rows, x => x.visit(i, |c, v| if v != 0.0 {
            (values[c], difference[c]) = (v, v);
            columns.push(c);
        }));
    }

    /// `‖x − z_j‖²`, or `‖x − z_j‖₁`.
    fn distance(&mut self, others: &Matrix<'_>, j: usize, l1: bool) -> f64 {
        let Self { values, difference, columns } = self;
        let size = |v: f64| if l1 { v.abs() } else { v * v };
        let mut sum = 0.0;
        with_rows!(others, z => z.visit(j, |c, v| match values[c] {
            0.0 => sum += size(v),
            x => difference[c] = x - v,
        }));
        for &c in columns.iter() {
            sum += size(difference[c]);
            difference[c] = values[c];
        }
        sum
    }
}

/// Memory for one tile.
#[derive(Default)]
pub struct Scratch {
    left: Vec<f64>,
    right: Vec<f64>,
    values: Vec<f64>,
    single: Vec<f32>,
}

/// A number as which kernel values are kept.
pub trait Stored: KernelValue {
    /// Whether this is single precision.
    const SINGLE: bool;

    /// Rows in single precision, if that is what this is.
    fn from_single(rows: &[Vec<f32>]) -> Option<&[Vec<Self>]>;

    /// Rows in double precision, if that is what this is.
    fn from_double(rows: &[Vec<f64>]) -> Option<&[Vec<Self>]>;

    /// Appends to each of `out` the kernel values of its row with every row. On one thread.
    fn values(rows: &KernelRows<'_>, chosen: &[usize], out: &mut [Vec<Self>]);

    /// The kernel values of some rows with some others, row-major. On one thread.
    fn tile(rows: &KernelRows<'_>, left: Range<usize>, right: Range<usize>, scratch: &mut Scratch, out: &mut Vec<Self>);

    /// The kernel values of the chosen rows with each other, row-major; `None` where looking them up is quicker.
    fn square(_rows: &KernelRows<'_>, _chosen: &[usize]) -> Option<Vec<Self>> {
        None
    }
}

/// Up to this many columns, computing a kernel value is quicker than fetching it from far away in memory.
const NARROW: usize = 200;

impl Stored for f64 {
    const SINGLE: bool = false;

    fn from_single(_rows: &[Vec<f32>]) -> Option<&[Vec<Self>]> {
        None
    }

    fn from_double(rows: &[Vec<f64>]) -> Option<&[Vec<Self>]> {
        Some(rows)
    }

    fn values(rows: &KernelRows<'_>, chosen: &[usize], out: &mut [Vec<Self>]) {
        append(rows, chosen, out, |value| value);
    }

    fn tile(
        rows: &KernelRows<'_>,
        left: Range<usize>,
        right: Range<usize>,
        scratch: &mut Scratch,
        out: &mut Vec<Self>,
    ) {
        rows.double_tile(rows, left, right, scratch, out);
    }
}

impl Stored for f32 {
    const SINGLE: bool = true;

    fn from_single(rows: &[Vec<f32>]) -> Option<&[Vec<Self>]> {
        Some(rows)
    }

    fn from_double(_rows: &[Vec<f64>]) -> Option<&[Vec<Self>]> {
        None
    }

    fn values(rows: &KernelRows<'_>, chosen: &[usize], out: &mut [Vec<Self>]) {
        match &rows.single {
            Some(single) => single.append(rows, chosen, out),
            None => append(rows, chosen, out, |value| value as f32),
        }
    }

    fn tile(
        rows: &KernelRows<'_>,
        left: Range<usize>,
        right: Range<usize>,
        scratch: &mut Scratch,
        out: &mut Vec<Self>,
    ) {
        out.resize(left.len() * right.len(), 0.0);
        let d = rows.rows.cols();
        let norms = if let Some(single) = &rows.single {
            let values = |range: &Range<usize>| &single.values[range.start * d..range.end * d];
            f32::products(out, right.len(), values(&left), values(&right), d);
            &single.norms
        } else if let Some(norms) = &rows.single_norms {
            rows.spread_products(rows, left.clone(), right.clone(), &mut scratch.single, out);
            norms
        } else {
            let mut values = std::mem::take(&mut scratch.values);
            rows.double_tile(rows, left, right, scratch, &mut values);
            out.iter_mut().zip(&values).for_each(|(out, value)| *out = *value as f32);
            scratch.values = values;
            return;
        };
        rows.finish(out, &norms[left], &norms[right]);
    }

    fn square(rows: &KernelRows<'_>, chosen: &[usize]) -> Option<Vec<Self>> {
        rows.single.as_ref().filter(|_| rows.rows.cols() <= NARROW).map(|single| single.square(rows, chosen))
    }
}

/// The values in double precision, kept as `store` makes them.
fn append<T>(rows: &KernelRows<'_>, chosen: &[usize], out: &mut [Vec<T>], store: impl Fn(f64) -> T) {
    let selected = rows.rows.select(chosen);
    let norms = chosen.iter().map(|&i| rows.norms[i]).collect();
    let left = KernelRows { rows: &selected, norms, single: None, single_norms: None, ..*rows };
    rows.tiles(&left, 0..chosen.len(), &mut Scratch::default(), |columns, values| {
        for (out, values) in out.iter_mut().zip(values.chunks_exact(columns.len())) {
            out.extend(values.iter().map(|&value| store(value)));
        }
    });
}

impl Single {
    fn new(kernel: Kernel, rows: &Matrix<'_>) -> Self {
        let (m, d) = (rows.rows(), rows.cols());
        let mut mean = vec![0.0; d];
        if let Kernel::Rbf { .. } = kernel {
            (0..m).for_each(|i| with_rows!(rows, x => x.axpy(i, 1.0 / m as f64, &mut mean)));
        }
        let mut values = vec![0.0f32; m * d];
        values.par_chunks_mut(d).enumerate().for_each(|(i, out)| {
            out.iter_mut().zip(&mean).for_each(|(out, mean)| *out = -mean as f32);
            with_rows!(rows, x => x.visit(i, |j, v| out[j] = (v - mean[j]) as f32));
        });
        let square = |x: &[f32]| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() as f32;
        let norms = values.par_chunks(d).map(square).collect();
        Self { values, norms }
    }

    fn select(&self, d: usize, chosen: &[usize]) -> (Vec<f32>, Vec<f32>) {
        let values = chosen.iter().flat_map(|&i| self.values[i * d..(i + 1) * d].iter().copied()).collect();
        (values, chosen.iter().map(|&i| self.norms[i]).collect())
    }

    /// Adds `Σ_j c_j k(x_i, z_j)` to each of `out`, `i` counted from `from`; `others` are `z`, `‖z_j‖²` and `c`.
    fn combine(&self, rows: &KernelRows<'_>, from: usize, others: (&[f32], &[f32], &[f64]), out: &mut [f64]) {
        let d = rows.rows.cols();
        let (left, norms) = (&self.values[from * d..(from + out.len()) * d], &self.norms[from..from + out.len()]);
        let mut values = Vec::new();
        let tiles = others.0.chunks(TILE * d).zip(others.1.chunks(TILE)).zip(others.2.chunks(TILE));
        for ((right, right_norms), c) in tiles {
            values.resize(out.len() * c.len(), 0.0);
            f32::products(&mut values, c.len(), left, right, d);
            rows.finish(&mut values, norms, right_norms);
            linalg::wide(
                #[inline(always)]
                || {
                    let lines = values.chunks_exact(c.len());
                    out.iter_mut().zip(lines).for_each(|(out, line)| *out += dense_dot(line, c));
                },
            );
        }
    }

    fn square(&self, rows: &KernelRows<'_>, chosen: &[usize]) -> Vec<f32> {
        let (k, d) = (chosen.len(), rows.rows.cols());
        if k == 0 {
            return Vec::new();
        }
        let (values, norms) = self.select(d, chosen);
        let mut out = vec![0.0; k * k];
        let lines = out.par_chunks_mut(HEIGHT * k).zip(values.par_chunks(HEIGHT * d)).zip(norms.par_chunks(HEIGHT));
        lines.for_each(|((out, left), left_norms)| {
            f32::products(out, k, left, &values, d);
            rows.finish(out, left_norms, &norms);
        });
        out
    }

    fn append(&self, rows: &KernelRows<'_>, chosen: &[usize], out: &mut [Vec<f32>]) {
        let d = rows.rows.cols();
        let (left, norms) = self.select(d, chosen);
        let mut values = Vec::new();
        for from in (0..rows.len()).step_by(TILE) {
            let to = (from + TILE).min(rows.len());
            values.resize(chosen.len() * (to - from), 0.0);
            f32::products(&mut values, to - from, &left, &self.values[from * d..to * d], d);
            rows.finish(&mut values, &norms, &self.norms[from..to]);
            for (out, values) in out.iter_mut().zip(values.chunks_exact(to - from)) {
                out.extend_from_slice(values);
            }
        }
    }
}

/// What [`KernelRows::finish`] does, compiled for each width of vectors.
struct Finish<'v, T> {
    kernel: Kernel,
    offset: f64,
    values: &'v mut [T],
    rows: &'v [T],
    columns: &'v [T],
}

impl<T: KernelValue> pulp::WithSimd for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        // Where there are vectors, there are fused products and sums.
        let (fused, zero) = (S::F32_LANES > 1, T::default());
        let lines = self.values.chunks_exact_mut(self.columns.len().max(1)).zip(self.rows);
        match self.kernel {
            Kernel::Linear => {}
            Kernel::Rbf { gamma } => {
                let (scale, two) = (T::of(-gamma), T::of(-2.0));
                for (line, norm) in lines {
                    for (value, other) in line.iter_mut().zip(self.columns) {
                        let distance = value.times_plus(two, *norm + *other, fused).larger(zero);
                        *value = (scale * distance).exp(fused);
                    }
                }
            }
            Kernel::Laplacian { gamma } => {
                let scale = T::of(-gamma);
                self.values.iter_mut().for_each(|value| *value = (scale * value.larger(zero)).exp(fused));
            }
            Kernel::Poly { gamma, degree, coef0 } => {
                let (gamma, coef0) = (T::of(gamma), T::of(coef0));
                let power = |value: T| value.times_plus(gamma, coef0, fused).powi(degree as i32);
                self.values.iter_mut().for_each(|value| *value = power(*value));
            }
            Kernel::Sigmoid { gamma, coef0 } => {
                let (gamma, coef0) = (T::of(gamma), T::of(coef0));
                self.values.iter_mut().for_each(|value| *value = value.times_plus(gamma, coef0, fused).tanh());
            }
        }
        if self.offset != 0.0 {
            let offset = T::of(self.offset);
            self.values.iter_mut().for_each(|value| *value = *value + offset);
        }
    }
}

/// The chosen rows as `f64`, zeros written out; borrowed where they are that already.
fn doubles<'b>(matrix: &'b Matrix<'_>, range: Range<usize>, buffer: &'b mut Vec<f64>) -> &'b [f64] {
    let d = matrix.cols();
    if let Matrix::DenseF64(x) = matrix {
        return &x.values()[range.start * d..range.end * d];
    }
    buffer.clear();
    buffer.resize(range.len() * d, 0.0);
    with_rows!(matrix, x => range.zip(buffer.chunks_exact_mut(d)).for_each(|(i, out)| x.visit(i, |j, v| out[j] = v)));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};
    use crate::random::Random;

    fn naive(kernel: Kernel, x: &[f64], z: &[f64]) -> f64 {
        let dot: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
        let l2: f64 = x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum();
        let l1: f64 = x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum();
        match kernel {
            Kernel::Linear => dot,
            Kernel::Rbf { gamma } => (-gamma * l2).exp(),
            Kernel::Laplacian { gamma } => (-gamma * l1).exp(),
            Kernel::Poly { gamma, degree, coef0 } => (gamma * dot + coef0).powi(degree as i32),
            Kernel::Sigmoid { gamma, coef0 } => (gamma * dot + coef0).tanh(),
        }
    }

    #[test]
    fn rows_far_from_the_origin_keep_their_distances() {
        let (m, d, mut random) = (40, 5, Random::new(8, 0));
        let values: Vec<f64> = (0..m * d).map(|k| 1e6 * (1.0 + (k % d) as f64) + random.normal()).collect();
        let offsets: Vec<u64> = (0..=m as u64).map(|i| i * d as u64).collect();
        let columns: Vec<u32> = (0..m * d).map(|k| (k % d) as u32).collect();
        let dense = Matrix::DenseF64(Dense::new(m, d, values.clone()).unwrap());
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns, values.clone()).unwrap());
        for kernel in [Kernel::Rbf { gamma: 0.3 }, Kernel::Laplacian { gamma: 0.2 }] {
            for rows in [&dense, &sparse] {
                let kernel_rows = KernelRows::new(kernel, rows, 0.0);
                let matrix = kernel_rows.matrix(Control::default()).unwrap();
                for i in 0..m {
                    assert_eq!((matrix[i * m + i], kernel_rows.diagonal(i)), (1.0, 1.0));
                    for j in 0..m {
                        let exact = naive(kernel, &values[i * d..(i + 1) * d], &values[j * d..(j + 1) * d]);
                        assert!((matrix[i * m + j] - exact).abs() <= 1e-11 * exact, "{kernel:?}: {exact}");
                    }
                }
            }
        }
    }

    /// Rounding errors of distances between long rows, times `γ`, are beyond what `exp` leaves above zero.
    #[test]
    fn a_row_is_near_itself_however_long_it_is() {
        let (m, d, mut random) = (12, 50, Random::new(9, 0));
        let values: Vec<f64> = (0..m * d).map(|_| 1e8 * random.normal()).collect();
        let rows = Matrix::DenseF64(Dense::new(m, d, values).unwrap());
        let matrix = KernelRows::new(Kernel::Rbf { gamma: 5e3 }, &rows, 0.0).matrix(Control::default()).unwrap();
        (0..m * m).for_each(|k| assert_eq!(matrix[k], f64::from(u8::from(k / m == k % m)), "{} {}", k / m, k % m));
    }

    #[test]
    fn dense_sparse_and_definition_agree() {
        let (m, d, mut random) = (300, 7, Random::new(3, 0));
        let values: Vec<f64> = (0..m * d).map(|_| if random.unit() < 0.5 { 0.0 } else { random.normal() }).collect();
        let (mut offsets, mut columns, mut stored) = (vec![0u64], Vec::new(), Vec::new());
        for row in values.chunks(d) {
            for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                columns.push(j as u32);
                stored.push(v);
            }
            offsets.push(stored.len() as u64);
        }
        let dense = Matrix::DenseF64(Dense::new(m, d, values.clone()).unwrap());
        let sparse = Matrix::SparseF64(Csr::new(d, offsets, columns, stored).unwrap());
        let kernels = [
            Kernel::Linear,
            Kernel::Rbf { gamma: 0.7 },
            Kernel::Laplacian { gamma: 0.4 },
            Kernel::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
            Kernel::Sigmoid { gamma: 0.1, coef0: 0.2 },
        ];
        for kernel in kernels {
            let views = [KernelRows::new(kernel, &dense, 0.25), KernelRows::new(kernel, &sparse, 0.25)];
            let [a, b] = views.each_ref().map(|v| v.matrix(Control::default()).unwrap());
            for i in 0..m {
                assert!((views[0].diagonal(i) - a[i * m + i]).abs() < 1e-12);
                for j in 0..m {
                    let expected = naive(kernel, &values[i * d..(i + 1) * d], &values[j * d..(j + 1) * d]) + 0.25;
                    assert!((a[i * m + j] - expected).abs() < 1e-10 && (b[i * m + j] - expected).abs() < 1e-10);
                }
            }
            let c = vec![values[..m].to_vec()];
            let scores = views[1].expand(&views[0], &c, Control::default()).unwrap();
            let direct: f64 = (0..m).map(|j| a[5 * m + j] * c[0][j]).sum();
            assert!((scores[5] - direct).abs() < 1e-9);
            let product = views[0].product(&c[0], Control::default()).unwrap();
            let half: Vec<f64> = c[0].iter().enumerate().map(|(j, c)| if j % 3 == 0 { *c } else { 0.0 }).collect();
            let thin = views[0].product(&half, Control::default()).unwrap();
            for i in 0..m {
                let all = |c: &[f64]| -> f64 { (0..m).map(|j| a[i * m + j] * c[j]).sum() };
                assert!((product[i] - all(&c[0])).abs() < 1e-9 && (thin[i] - all(&half)).abs() < 1e-9);
            }
        }
    }
}
