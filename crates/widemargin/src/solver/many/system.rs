//! The systems of Newton's method for many classes, `(R + Σ_i H_i ⊗ x_i x_iᵀ) p = −g` with `H_i` the curvature of row
//! `i` in its scores and `R` the identity but for free intercepts. Of few weights the matrix is formed and factored; of
//! many it is only multiplied with, and rows without curvature cost nothing.

use super::newton::{Layout, Look};
use super::{ManyDescent, RowDual};
use crate::linalg::{Cholesky, Enough, NotPositive, add_gram, add_up, axpy, conjugate_gradients, fold, mirror, wide};
use crate::loss::RivalLoss;
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most weights, intercepts included, of which the Newton matrix is formed.
pub(super) const MOST_WEIGHTS: usize = 1000;
/// Rows whose outer products are summed at a time.
const GRAM_ROWS: usize = 256;
/// Up to so many features a matrix is summed up row by row: letter, 17 features and 26 classes, takes 0.98 s instead of 1.23 s.
const FEW_FEATURES: usize = 32;
/// Numbers that its partial sums may take: 8 MB.
const MATRIX_SUMS: usize = 1 << 20;
/// Conjugate gradients end at this part of the gradient: the next step sees other kinks anyway.
const ENOUGH: f64 = 0.3;
/// Most products a step may take.
const MOST_PRODUCTS: usize = 1000;

/// A preconditioner of blocks costs about this many products to make, at four rows a feature and class, and up to this width.
const WORTH_BLOCKS: usize = 30;
const BLOCK_ROWS: usize = 4;
const WIDEST_BLOCK: usize = 2000;

/// Rows and their curvatures, by pairs of classes.
type Pairs = BTreeMap<(u32, u32), Vec<(usize, f64)>>;

/// `H_i` of a row that has any, over the classes it concerns.
pub(super) struct RowCurvature {
    pub(super) row: usize,
    pub(super) classes: Vec<u32>,
    /// Row after row, both triangles.
    pub(super) matrix: Vec<f64>,
}

impl RowCurvature {
    fn new(row: usize, list: &[(u32, u32, f64)]) -> Self {
        let mut classes: Vec<u32> = list.iter().map(|e| e.0).collect();
        classes.sort_unstable();
        classes.dedup();
        let n = classes.len();
        let mut matrix = vec![0.0; n * n];
        let place = |l: u32| classes.binary_search(&l).unwrap_or(0);
        for &(r, c, h) in list {
            let (r, c) = (place(r), place(c));
            matrix[r * n + c] += h;
            if r != c {
                matrix[c * n + r] += h;
            }
        }
        Self { row, classes, matrix }
    }
}

impl<L: RivalLoss> ManyDescent<'_, L> {
    /// The Newton step from where `look` was taken.
    pub(super) fn newton_direction(&mut self, layout: &Layout, look: &Look, sigma: f64) -> Result<Vec<f64>> {
        let mut step: Vec<f64> = look.gradient.iter().map(|g| -g).collect();
        if layout.size() <= MOST_WEIGHTS {
            self.newton_matrix(layout, look, sigma)?.solve(&mut step);
            return Ok(step);
        }
        self.solve_by_products(layout, look, sigma, &step)
    }

    /// The step by conjugate gradients. Their preconditioner is the diagonal, or, once a step with that took many products, the blocks
    /// of the classes, made anew once they have cost more products than that takes.
    fn solve_by_products(&mut self, layout: &Layout, look: &Look, sigma: f64, rhs: &[f64]) -> Result<Vec<f64>> {
        let curvatures = self.curvatures(look, sigma)?;
        let mut diagonal = self.diagonal(layout, &curvatures)?;
        let regulariser = regulariser(layout, &diagonal);
        axpy(1.0, &regulariser, &mut diagonal);
        self.crawls |= self.products > WORTH_BLOCKS && layout.width() <= WIDEST_BLOCK;
        let stale = layout.free || self.blocks.is_empty() || self.excess > WORTH_BLOCKS;
        let renew = self.crawls && stale;
        if renew {
            self.blocks = self.class_blocks(layout, &curvatures, &regulariser)?;
        }
        let blocks = &self.blocks;
        let apply = |v: &[f64], out: &mut [f64]| {
            out.copy_from_slice(&self.curvature_product(layout, &curvatures, v)?);
            out.iter_mut().zip(regulariser.iter().zip(v)).for_each(|(out, (r, v))| *out += r * v);
            Ok(())
        };
        let scale = |r: &[f64], out: &mut [f64]| {
            out.iter_mut().zip(r.iter().zip(&diagonal)).for_each(|(out, (r, d))| *out = r / d);
            if !blocks.is_empty() {
                out.copy_from_slice(r);
                out.chunks_exact_mut(layout.width()).zip(blocks).for_each(|(out, block)| block.solve(out));
            }
        };
        let mut step = vec![0.0; rhs.len()];
        let enough = Enough::Residual(ENOUGH);
        let products = conjugate_gradients(rhs.len(), apply, scale, rhs, &mut step, enough, MOST_PRODUCTS)?.products;
        self.products = products;
        if renew {
            (self.fresh, self.excess) = (products, 0);
        } else {
            self.excess += products.saturating_sub(self.fresh);
        }
        Ok(step)
    }

    /// `R + Σ_i H_i^{ll} x_i x_iᵀ` of each class, factored, from some of the rows if they are many.
    fn class_blocks(&self, layout: &Layout, curvatures: &[RowCurvature], regulariser: &[f64]) -> Result<Vec<Cholesky>> {
        let d = layout.width();
        let block = |l: usize| {
            let own = |curvature: &RowCurvature| {
                let p = curvature.classes.binary_search(&(l as u32)).ok()?;
                Some((curvature.row, curvature.matrix[p * curvature.classes.len() + p]))
            };
            let rows: Vec<(usize, f64)> = curvatures.iter().filter_map(own).collect();
            let every = rows.len().div_ceil(BLOCK_ROWS * d).max(1);
            let some: Vec<(usize, f64)> = rows.iter().step_by(every).map(|(i, h)| (*i, h * every as f64)).collect();
            let mut matrix = self.weighted_gram(d, &some, &|i, x: &mut [f64]| self.features(layout, i, x))?;
            (0..d).for_each(|j| matrix[j * d + j] += regulariser[l * d + j]);
            Cholesky::lifted(|| matrix.clone(), d).map_err(not_positive)
        };
        (0..regulariser.len() / d).into_par_iter().map(block).collect()
    }

    pub(super) fn curvatures(&self, look: &Look, sigma: f64) -> Result<Vec<RowCurvature>> {
        let mut curvatures = Vec::new();
        self.each_curvature(look, sigma, |i, list| curvatures.push(RowCurvature::new(i, list)))?;
        Ok(curvatures)
    }

    /// Adds up what `add` makes of the curvatures, in parts whose number does not depend on the threads.
    fn sum_over(
        &self,
        layout: &Layout,
        curvatures: &[RowCurvature],
        add: impl Fn(&RowCurvature, &mut [f64], &mut Vec<f64>) + Sync,
    ) -> Result<Vec<f64>> {
        let part = |range: Range<usize>| -> Result<Vec<f64>> {
            let (mut out, mut products) = (vec![0.0; layout.size()], Vec::new());
            for curvature in &curvatures[range] {
                self.control.check()?;
                add(curvature, &mut out, &mut products);
            }
            Ok(out)
        };
        Ok(add_up(fold(curvatures.len(), super::parts(curvatures.len()), part).into_iter().collect::<Result<_>>()?))
    }

    /// `Σ_i (H_i ⊗ x_i x_iᵀ) v`
    fn curvature_product(&self, layout: &Layout, curvatures: &[RowCurvature], v: &[f64]) -> Result<Vec<f64>> {
        let width = layout.width();
        self.sum_over(layout, curvatures, |curvature, out, products| {
            products.clear();
            products.extend(
                curvature
                    .classes
                    .iter()
                    .map(|&l| self.product(layout, curvature.row, &v[l as usize * width..][..width])),
            );
            for (&l, h) in curvature.classes.iter().zip(curvature.matrix.chunks_exact(products.len())) {
                let change = crate::linalg::dot(h, products);
                self.add_features(layout, curvature.row, change, &mut out[l as usize * width..][..width]);
            }
        })
    }

    /// The diagonal of `Σ_i H_i ⊗ x_i x_iᵀ`.
    fn diagonal(&self, layout: &Layout, curvatures: &[RowCurvature]) -> Result<Vec<f64>> {
        let width = layout.width();
        self.sum_over(layout, curvatures, |curvature, out, x| {
            x.resize(width, 0.0);
            self.features(layout, curvature.row, x);
            let n = curvature.classes.len();
            for (p, &l) in curvature.classes.iter().enumerate() {
                let h = curvature.matrix[p * n + p];
                out[l as usize * width..][..width].iter_mut().zip(x.iter()).for_each(|(out, x)| *out += h * x * x);
            }
        })
    }

    /// `R + Σ_i H_i ⊗ x_i x_iᵀ`, factored; `R` is the identity but for free intercepts. What rounding takes from its
    /// positive eigenvalues is added to the diagonal.
    fn newton_matrix(&self, layout: &Layout, look: &Look, sigma: f64) -> Result<Cholesky> {
        let n = layout.size();
        let features = |i: usize, x: &mut [f64]| self.features(layout, i, x);
        let mut matrix = self.curvature_matrix(layout.width(), look, sigma, &features)?;
        let diagonal: Vec<f64> = (0..n).map(|j| matrix[j * n + j]).collect();
        regulariser(layout, &diagonal).iter().enumerate().for_each(|(j, r)| matrix[j * n + j] += r);
        Cholesky::lifted(|| matrix.clone(), n).map_err(not_positive)
    }

    /// `Σ_i H_i ⊗ x_i x_iᵀ` (lower triangle) of `d` features a row: a block for each pair of classes.
    pub(super) fn curvature_matrix(
        &self,
        d: usize,
        look: &Look,
        sigma: f64,
        features: &(impl Fn(usize, &mut [f64]) + Sync),
    ) -> Result<Vec<f64>> {
        if d <= FEW_FEATURES {
            return self.curvature_by_rows(d, look, sigma, features);
        }
        let n = d * self.classes;
        let pairs = self.pairs(look, sigma)?;
        let block = |(at, rows): (&(u32, u32), &Vec<(usize, f64)>)| Ok((*at, self.weighted_gram(d, rows, features)?));
        let blocks = pairs.par_iter().map(block).collect::<Result<Vec<_>>>()?;
        let mut matrix = vec![0.0; n * n];
        for ((row, column), block) in blocks {
            for (j, entries) in block.chunks_exact(d).enumerate() {
                let start = (column as usize * d + j) * n + row as usize * d;
                matrix[start..start + d].copy_from_slice(entries);
            }
        }
        Ok(matrix)
    }

    /// The same of few features, where a row costs less than what products of matrices cost to begin.
    fn curvature_by_rows(
        &self,
        d: usize,
        look: &Look,
        sigma: f64,
        features: &(impl Fn(usize, &mut [f64]) + Sync),
    ) -> Result<Vec<f64>> {
        let length = triangle(d) * triangle(self.classes);
        let part = |range: Range<usize>| -> Result<Vec<f64>> {
            let (mut sums, mut list) = (vec![0.0; length], Vec::new());
            let (mut x, mut square) = (vec![0.0; d], vec![0.0; triangle(d)]);
            for i in range {
                self.control.check()?;
                self.row_curvature(i, &look.duals[i], sigma, &mut list);
                if !list.is_empty() {
                    features(i, &mut x);
                    add_blocks(&mut sums, &x, &mut square, &list);
                }
            }
            Ok(sums)
        };
        let m = self.codes.len();
        let parts = super::parts(m).min(MATRIX_SUMS / length.max(1)).max(1);
        let sums = add_up(fold(m, parts, part).into_iter().collect::<Result<_>>()?);
        Ok(unpacked(&sums, d, self.classes))
    }

    /// The Newton step of free intercepts alone, given what the dual variables of each class sum to. That all rise together changes
    /// nothing, so a little is added to the diagonal.
    pub(super) fn newton_intercepts(&self, look: &Look, sums: &[f64], sigma: f64) -> Result<Vec<f64>> {
        let k = self.classes;
        let mut matrix = vec![0.0; k * k];
        self.each_curvature(look, sigma, |_, list| {
            list.iter()
                .for_each(|&(row, column, h)| matrix[row.min(column) as usize * k + row.max(column) as usize] += h);
        })?;
        let largest = (0..k).map(|l| matrix[l * k + l]).fold(0.0, f64::max);
        (0..k).for_each(|l| matrix[l * k + l] += hold(largest));
        let mut change = sums.to_vec();
        Cholesky::lifted(|| matrix.clone(), k).map_err(not_positive)?.solve(&mut change);
        Ok(change)
    }

    /// Calls `visit(i, (row, column, value)…)` for every row with curvature: the lower triangle, by class.
    fn each_curvature(&self, look: &Look, sigma: f64, mut visit: impl FnMut(usize, &[(u32, u32, f64)])) -> Result<()> {
        let mut list = Vec::new();
        for (i, dual) in look.duals.iter().enumerate() {
            self.control.check()?;
            self.row_curvature(i, dual, sigma, &mut list);
            if !list.is_empty() {
                visit(i, &list);
            }
        }
        Ok(())
    }

    /// `(row, column, value)…` of `H_i`: the lower triangle, by class.
    fn row_curvature(&self, i: usize, dual: &RowDual, sigma: f64, list: &mut Vec<(u32, u32, f64)>) {
        let a = self.row_sigma(i, sigma);
        let response = self.loss.response(i, a, dual.total(), dual.beta);
        let free = dual.zeta.iter().filter(|z| self.loss.is_free(i, z.1)).map(|z| z.0);
        response.curvature(a, self.codes[i], self.loss.partner(i), free, list);
    }

    /// The rows whose score of one class bends with that of another, and how much, by pairs of classes.
    fn pairs(&self, look: &Look, sigma: f64) -> Result<Pairs> {
        let mut pairs = Pairs::new();
        self.each_curvature(look, sigma, |i, list| {
            for &(row, column, h) in list {
                pairs.entry((row, column)).or_default().push((i, h));
            }
        })?;
        Ok(pairs)
    }

    /// `Σ h_i x_i x_iᵀ` over the listed rows, both triangles.
    fn weighted_gram(
        &self,
        d: usize,
        rows: &[(usize, f64)],
        features: &(impl Fn(usize, &mut [f64]) + Sync),
    ) -> Result<Vec<f64>> {
        let mut gram = vec![0.0; d * d];
        let mut scaled = Vec::new();
        for sign in [1.0, -1.0] {
            let of_sign: Vec<_> = rows.iter().filter(|(_, h)| sign * h > 0.0).collect();
            for part in of_sign.chunks(GRAM_ROWS) {
                self.control.check()?;
                scaled.resize(part.len() * d, 0.0);
                for ((i, h), x) in part.iter().zip(scaled.chunks_exact_mut(d)) {
                    features(*i, x);
                    let root = h.abs().sqrt();
                    x.iter_mut().for_each(|x| *x *= root);
                }
                add_gram(&mut gram, &scaled, d, sign, false);
            }
        }
        mirror(&mut gram, d);
        Ok(gram)
    }
}

/// Numbers of a lower triangle.
fn triangle(n: usize) -> usize {
    n * (n + 1) / 2
}

/// Adds `h x xᵀ` to the block of each pair of classes that is listed, lower triangles in both senses; `square` has room for one.
fn add_blocks(sums: &mut [f64], x: &[f64], square: &mut [f64], list: &[(u32, u32, f64)]) {
    wide(
        #[inline(always)]
        || {
            let mut from = 0;
            for (j, xj) in x.iter().enumerate() {
                square[from..=from + j].iter_mut().zip(x).for_each(|(out, x)| *out = xj * x);
                from += j + 1;
            }
            for &(row, column, h) in list {
                let pair = triangle(row as usize) + column as usize;
                axpy(h, square, &mut sums[pair * square.len()..][..square.len()]);
            }
        },
    );
}

/// The lower triangle of the whole matrix, column-major, from the lower triangles of its blocks.
fn unpacked(sums: &[f64], d: usize, classes: usize) -> Vec<f64> {
    let n = d * classes;
    let mut matrix = vec![0.0; n * n];
    let pairs = (0..classes).flat_map(|row| (0..=row).map(move |column| (row, column)));
    for ((row, column), block) in pairs.zip(sums.chunks_exact(triangle(d).max(1))) {
        for j in 0..d {
            let start = (column * d + j) * n + row * d;
            let entries = (0..d).map(|i| block[triangle(i.max(j)) + i.min(j)]);
            matrix[start..start + d].iter_mut().zip(entries).for_each(|(place, entry)| *place = entry);
        }
    }
    matrix
}

fn not_positive(_: NotPositive) -> Error {
    Error::Numeric {
        place: "multi-class Newton step",
        reason: "the matrix is not positive definite: are the features of very unlike size? scaling them helps".into(),
    }
}

/// The diagonal of `R`: 1, or next to nothing for free intercepts, which all may rise together at no cost.
fn regulariser(layout: &Layout, diagonal: &[f64]) -> Vec<f64> {
    let width = layout.width();
    let is_free = |j: usize| layout.free && j % width == layout.features;
    let largest = (0..diagonal.len()).filter(|j| is_free(*j)).map(|j| diagonal[j]).fold(0.0, f64::max);
    (0..diagonal.len()).map(|j| if is_free(j) { hold(largest) } else { 1.0 }).collect()
}

/// What keeps free intercepts from rising all together, where their largest curvature is so: far below it, far above its rounding errors.
fn hold(largest: f64) -> f64 {
    if largest > 0.0 { 1e-10 * largest } else { 1.0 }
}
