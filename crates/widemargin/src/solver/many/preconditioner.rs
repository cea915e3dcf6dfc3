//! What preconditions the systems of many classes over a kernel.
//!
//! With `G ≈ F Fᵀ` and rows `f_i` of `F`, the constant feature `√ρ` at their ends, `I + Rᵀ G R` is next to `I + B Bᵀ`,
//!
//! ```text
//! M⁻¹ = I − B (I + BᵀB)⁻¹ Bᵀ,    BᵀB = Σ_i H_i ⊗ f_i f_iᵀ
//! ```
//!
//! where `Bᵀ` takes the numbers `u_i` of a row to `R_i u_i ⊗ f_i`. `BᵀB` is what the systems over weights are made of, with `f_i` for
//! the features (`system`).

use super::ManyDescent;
use super::kernel::Roots;
use super::newton::Look;
use crate::Result;
use crate::kernel::LowRank;
use crate::linalg::{Cholesky, add_up, axpy, dot, fold};
use crate::loss::RivalLoss;
use std::ops::Range;

/// Most numbers that `BᵀB` is of a side: a factor of 3,000 takes a few tenths of a second, as a handful of products with 20,000 rows.
const MOST: usize = 3000;
/// Pairs of classes in which a row bends, more or less: it has an own class and one or two rivals.
const PAIRS: usize = 3;
/// Parts of the rows that are summed by themselves.
const PARTS: usize = 16;

/// How many products a preconditioner costs, by the additions of either.
pub(super) fn cost(rows: usize, classes: usize) -> usize {
    let columns = LowRank::columns(rows).min(MOST / classes);
    let side = columns * classes;
    (side * side / 3 * side + PAIRS * rows * columns * columns) / (rows * rows * classes).max(1)
}

pub(super) struct ManyPreconditioner<'a> {
    part: &'a LowRank,
    /// Columns of `F` that are used; the first ones are the best of so many.
    columns: usize,
    /// `√ρ`
    constant: f64,
    /// Of `I + BᵀB`.
    factor: Cholesky,
}

impl ManyPreconditioner<'_> {
    fn width(&self) -> usize {
        self.columns + 1
    }

    /// `M⁻¹ u`
    pub(super) fn apply(&self, roots: &Roots, u: &[f64]) -> Vec<f64> {
        let mut inner = self.gather(roots, u);
        self.factor.solve(&mut inner);
        let width = self.width();
        let product = |(i, l): (usize, u32)| {
            let inner = &inner[l as usize * width..][..width];
            crate::data::dense_dot(&self.part.row(i)[..self.columns], &inner[..self.columns])
                + self.constant * inner[self.columns]
        };
        let part = |range: Range<usize>| {
            let mut out = u[roots.numbers(range.clone())].to_vec();
            let mut places = out.iter_mut();
            for root in &roots.roots[range] {
                let products: Vec<f64> = root.classes.iter().map(|&l| product((root.row, l))).collect();
                root.columns
                    .chunks_exact(root.classes.len())
                    .zip(&mut places)
                    .for_each(|(r, out)| *out -= dot(r, &products));
            }
            out
        };
        fold(roots.roots.len(), PARTS, part).concat()
    }

    /// `Bᵀ u`, class after class.
    fn gather(&self, roots: &Roots, u: &[f64]) -> Vec<f64> {
        let (width, classes) = (self.width(), roots.classes);
        let part = |range: Range<usize>| {
            let (mut sums, mut u) = (vec![0.0; width * classes], u[roots.numbers(range.clone())].iter());
            for root in &roots.roots[range] {
                let mut terms = vec![0.0; root.classes.len()];
                root.columns.chunks_exact(terms.len()).zip(&mut u).for_each(|(r, u)| axpy(*u, r, &mut terms));
                for (&l, term) in root.classes.iter().zip(&terms) {
                    let sums = &mut sums[l as usize * width..][..width];
                    let f = self.part.row(root.row);
                    sums[..self.columns].iter_mut().zip(f).for_each(|(sum, f)| *sum += term * f64::from(*f));
                    sums[self.columns] += term * self.constant;
                }
            }
            sums
        };
        add_up(fold(roots.roots.len(), PARTS, part))
    }
}

impl<L: RivalLoss> ManyDescent<'_, L> {
    /// The preconditioner of the system at a look; none where the matrix is whole, so that its rows are few.
    pub(super) fn preconditioner(
        &self,
        look: &Look,
        roots: &Roots,
        sigma: f64,
        rho: f64,
    ) -> Result<Option<ManyPreconditioner<'_>>> {
        let Some(part) = self.space.low_rank(&roots.traces(), self.control)? else { return Ok(None) };
        let (columns, constant) = (part.rank.min(MOST / self.classes), rho.sqrt());
        let features = |i: usize, x: &mut [f64]| {
            x.iter_mut().zip(&part.row(i)[..columns]).for_each(|(x, f)| *x = f64::from(*f));
            x[columns] = constant;
        };
        let mut matrix = self.curvature_matrix(columns + 1, look, sigma, &features)?;
        let n = (columns + 1) * self.classes;
        matrix.iter_mut().step_by(n + 1).for_each(|pivot| *pivot += 1.0);
        Ok(Cholesky::new(matrix, n).ok().map(|factor| ManyPreconditioner { part, columns, constant, factor }))
    }
}
