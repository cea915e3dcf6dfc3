//! Newton's method for many classes over kernel coefficients: `w_l = Σ_i c_i^l φ(x_i)`, and all that is asked of the kernel matrix `G`
//! are products with a column a class.
//!
//! The gradient of the smoothed problem (`newton`) is that of the coefficients `c − v⁺`. With `H_i = R_i R_iᵀ` the curvature of row `i`
//! in its scores, a Newton step is
//!
//! ```text
//! δ = r − R u,    (I + Rᵀ G R) u = Rᵀ G r,    r = v⁺ − c
//! ```
//!
//! and half the squared residual of that system is what it adds to the duality gap. An intercept is one more coefficient a class, of a
//! feature `√ρ`: `b_l = ρ C_l`. Free ones are found exactly wherever the point is looked at, so that `Σ_i v_i⁺ = 0`; within a step such
//! a feature only keeps them from going too far at once.

use super::newton::{Look, NewtonPoint, Quadratic};
use super::preconditioner;
use super::system::RowCurvature;
use super::{CHUNK, ManyDescent, RowScratch, columns};
use crate::Result;
use crate::linalg::{Enough, axpy, conjugate_gradients, dot, fold};
use crate::loss::RivalLoss;
use crate::problem::{Certificate, StopReason};
use std::ops::Range;

/// What the residual of a system may add to the gap: this part of what there is, and of what is asked for. (Crammer and Singer's loss on
/// digits under rbf, free intercepts: 55, 43 and 178 steps with 0.001, 0.01 and 0.1 of the one; 24, 43 and 152 with 0.01, 0.1 and 0.5 of
/// the other. mcODM: 5 to 7 steps, in the same time.)
const FIRST_PART: f64 = 0.01;
const LAST_PART: f64 = 0.1;
/// Most products of a step; one that takes more than so many, and than a preconditioner costs, goes on with one, and the steps after
/// it begin with one.
const MOST_PRODUCTS: usize = 300;
const FEW_PRODUCTS: usize = 12;
/// Free intercepts are where the dual variables of a class sum to this part of their sizes; so many Newton steps find them, or rounding
/// hides where they are.
const BALANCED: f64 = 1e-10;
const MOST_TRIES: usize = 30;
/// Of a curvature's eigenvalues, what lies below this part of the largest diagonal is rounding.
const ROUNDING: f64 = 1e-12;

/// Where Newton's method stands.
struct KernelPoint {
    classes: usize,
    rho: f64,
    free: bool,
    /// `c_i^l`, class after class.
    c: Vec<f64>,
    /// `s_i^l` with the intercepts, row after row.
    scores: Vec<f64>,
    /// `b_l`, and the coefficient `C_l` of the constant feature, zero for free ones.
    intercepts: Vec<f64>,
    pull: Vec<f64>,
}

/// `R_i` of a row, a column after the other.
pub(super) struct Root {
    pub(super) row: usize,
    pub(super) classes: Vec<u32>,
    pub(super) columns: Vec<f64>,
}

impl Root {
    /// By Cholesky's method with the largest pivot first.
    fn new(curvature: RowCurvature) -> Self {
        let n = curvature.classes.len();
        let (mut rest, mut columns) = (curvature.matrix, Vec::new());
        let largest = (0..n).map(|p| rest[p * n + p]).fold(0.0, f64::max);
        for _ in 0..n {
            let pivot = (0..n).fold(0, |best, p| if rest[p * n + p] > rest[best * n + best] { p } else { best });
            let value = rest[pivot * n + pivot];
            if value <= ROUNDING * largest {
                break;
            }
            let root = value.sqrt();
            let column: Vec<f64> = (0..n).map(|p| rest[p * n + pivot] / root).collect();
            for p in 0..n {
                for q in 0..n {
                    rest[p * n + q] -= column[p] * column[q];
                }
            }
            columns.extend(column);
        }
        Self { row: curvature.row, classes: curvature.classes, columns }
    }

    fn rank(&self) -> usize {
        self.columns.len() / self.classes.len().max(1)
    }
}

/// `R` of all rows.
pub(super) struct Roots {
    pub(super) roots: Vec<Root>,
    /// Where the numbers of each begin, and where they all end.
    starts: Vec<usize>,
    rows: usize,
    pub(super) classes: usize,
}

impl Roots {
    fn new(curvatures: Vec<RowCurvature>, rows: usize, classes: usize) -> Self {
        let (roots, mut starts): (Vec<Root>, _) = (curvatures.into_iter().map(Root::new).collect(), vec![0]);
        for root in &roots {
            starts.push(starts[starts.len() - 1] + root.rank());
        }
        Self { roots, starts, rows, classes }
    }

    fn rank(&self) -> usize {
        self.numbers(0..self.roots.len()).len()
    }

    /// Where the numbers of some of them stand.
    pub(super) fn numbers(&self, roots: Range<usize>) -> Range<usize> {
        self.starts[roots.start]..self.starts[roots.end]
    }

    /// `tr H_i` of every row that has any curvature.
    pub(super) fn traces(&self) -> Vec<f64> {
        self.roots.iter().map(|root| dot(&root.columns, &root.columns)).collect()
    }

    /// `R u`, class after class.
    fn spread(&self, u: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows * self.classes];
        let mut u = u.iter();
        for root in &self.roots {
            for (column, u) in root.columns.chunks_exact(root.classes.len()).zip(&mut u) {
                for (&l, r) in root.classes.iter().zip(column) {
                    out[l as usize * self.rows + root.row] += r * u;
                }
            }
        }
        out
    }

    /// `Rᵀ (s + b)`, added to `out`, for scores class after class.
    fn gather(&self, scores: &[f64], intercepts: &[f64], out: &mut [f64]) {
        let mut out = out.iter_mut();
        for root in &self.roots {
            for (column, out) in root.columns.chunks_exact(root.classes.len()).zip(&mut out) {
                let score = |l: u32| scores[l as usize * self.rows + root.row] + intercepts[l as usize];
                *out += root.classes.iter().zip(column).map(|(&l, r)| r * score(l)).sum::<f64>();
            }
        }
    }
}

/// The sum of each column.
fn totals(columns: &[f64], rows: usize) -> Vec<f64> {
    columns.chunks_exact(rows).map(|column| column.iter().sum()).collect()
}

impl KernelPoint {
    fn rows(&self) -> usize {
        self.c.len() / self.classes
    }

    /// Numbers class after class, row after row, and what belongs to the class added.
    fn by_row(&self, columns: &[f64], of_class: &[f64]) -> Vec<f64> {
        let m = self.rows();
        (0..m).flat_map(|i| (0..self.classes).map(move |l| columns[l * m + i] + of_class[l])).collect()
    }

    /// `ρ (Σ_i v_i⁺ − C)`: what the intercepts lack.
    fn lack(&self, look: &Look) -> Vec<f64> {
        let m = self.rows();
        let totals = look.gradient.chunks_exact(m).zip(self.c.chunks_exact(m));
        totals
            .zip(&self.pull)
            .map(|((r, c), pull)| self.rho * (r.iter().zip(c).map(|(r, c)| r + c).sum::<f64>() - pull))
            .collect()
    }
}

impl KernelPoint {
    /// What the rows say of the smoothed problem; the gradient is `v⁺` here.
    fn respond<L: RivalLoss>(&self, descent: &ManyDescent<'_, L>, sigma: f64) -> Result<Look> {
        let (m, k) = (self.rows(), self.classes);
        let part = |range: Range<usize>| -> Result<Look> {
            descent.control.check()?;
            let (mut look, mut scratch) = (Look::default(), RowScratch::default());
            for i in range {
                let scores = &self.scores[i * k..][..k];
                let dual = descent.envelope_dual(i, sigma, scores, &mut scratch);
                let seen = descent.row_gap(i, scores, &dual, &mut scratch, |_, v| look.balance += v.abs());
                look.loss += seen.loss;
                look.row_gap += seen.gap;
                look.duals.push(dual);
            }
            Ok(look)
        };
        let mut look = Look::default();
        for part in fold(m, m.div_ceil(CHUNK), part) {
            look.add(part?);
        }
        look.gradient = columns(&descent.loss, descent.codes, &look.duals, k);
        Ok(look)
    }

    /// [`respond`](Self::respond) where free intercepts are best, `Σ_i v_i⁺ = 0`: Newton's method in as many numbers as there are
    /// classes. `balance` is what is left of that sum, relative to the sizes.
    fn balanced<L: RivalLoss>(&mut self, descent: &ManyDescent<'_, L>, sigma: f64) -> Result<Look> {
        let (m, k) = (self.rows(), self.classes);
        let mut before = f64::INFINITY;
        for tries in 0.. {
            let mut look = self.respond(descent, sigma)?;
            if !self.free {
                look.balance = 0.0;
                return Ok(look);
            }
            let sums = totals(&look.gradient, m);
            let left = sums.iter().map(|sum| sum.abs()).sum::<f64>();
            look.balance = if look.balance > 0.0 { left / look.balance } else { 0.0 };
            if look.balance <= BALANCED || tries == MOST_TRIES {
                return Ok(look);
            }
            let change = descent.newton_intercepts(&look, &sums, sigma)?;
            let t = if left <= 0.5 * before {
                1.0
            } else {
                let along = self.by_row(&vec![0.0; m * k], &change);
                let slope = -dot(&sums, &change);
                descent.line_search(&self.scores, &along, Quadratic { slope, along: 0.0, norm2: 0.0 }, sigma)
            };
            before = left;
            self.scores.chunks_exact_mut(k).for_each(|scores| axpy(t, &change, scores));
            axpy(t, &change, &mut self.intercepts);
        }
        unreachable!("the loop has no end of its own")
    }
}

impl<L: RivalLoss> NewtonPoint<L> for KernelPoint {
    /// The gradient is `r = v⁺ − c` here, class after class, with `G r` beside it.
    fn look(&mut self, descent: &ManyDescent<'_, L>, sigma: f64) -> Result<Look> {
        let mut look = self.balanced(descent, sigma)?;
        axpy(-1.0, &self.c, &mut look.gradient);
        look.product = descent.space.multiply(&look.gradient)?;
        look.distance = 0.5 * dot(&look.gradient, &look.product);
        if self.rho > 0.0 && !self.free {
            let lack = self.lack(&look);
            look.distance += 0.5 * dot(&lack, &lack) / self.rho;
        }
        Ok(look)
    }

    fn norm2(&self) -> f64 {
        let (m, k) = (self.rows(), self.classes);
        let product = |i: usize| -> f64 {
            (0..k).map(|l| self.c[l * m + i] * (self.scores[i * k + l] - self.intercepts[l])).sum()
        };
        let constant = if self.free { 0.0 } else { self.rho * dot(&self.pull, &self.pull) };
        fold(m, m.div_ceil(CHUNK), |range: Range<usize>| range.map(product).sum::<f64>()).iter().sum::<f64>() + constant
    }

    fn step(&mut self, descent: &mut ManyDescent<'_, L>, look: &Look, sigma: f64, enough: f64) -> Result<()> {
        let (m, rho) = (self.rows(), self.rho);
        let roots = Roots::new(descent.curvatures(look, sigma)?, m, self.classes);
        let lack = self.lack(look);
        let mut rhs = vec![0.0; roots.rank()];
        roots.gather(&look.product, &lack, &mut rhs);
        let apply = |v: &[f64], out: &mut [f64]| {
            descent.control.check()?;
            let spread = roots.spread(v);
            let constant: Vec<f64> = totals(&spread, m).iter().map(|sum| rho * sum).collect();
            out.copy_from_slice(v);
            roots.gather(&descent.space.multiply(&spread)?, &constant, out);
            Ok(())
        };
        let left = (FIRST_PART * (look.row_gap + look.distance)).max(LAST_PART * enough);
        let accuracy = ((2.0 * left).sqrt() / dot(&rhs, &rhs).sqrt().max(f64::MIN_POSITIVE)).clamp(1e-12, 0.5);
        let mut u = vec![0.0; rhs.len()];
        let enough = Enough::Residual(accuracy);
        if !descent.crawls {
            let plain = |r: &[f64], out: &mut [f64]| out.copy_from_slice(r);
            let few = preconditioner::cost(m, self.classes).clamp(FEW_PRODUCTS, MOST_PRODUCTS);
            let end = conjugate_gradients(u.len(), apply, plain, &rhs, &mut u, enough, few)?;
            descent.crawls = !end.converged;
        }
        if descent.crawls {
            let preconditioner = descent.preconditioner(look, &roots, sigma, rho)?;
            let scale = |r: &[f64], out: &mut [f64]| match &preconditioner {
                Some(preconditioner) => out.copy_from_slice(&preconditioner.apply(&roots, r)),
                None => out.copy_from_slice(r),
            };
            conjugate_gradients(u.len(), apply, scale, &rhs, &mut u, enough, MOST_PRODUCTS)?;
        }
        let moved = roots.spread(&u);
        let product = descent.space.multiply(&moved)?;
        let difference = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let (step, change) = (difference(&look.gradient, &moved), difference(&look.product, &product));
        let constant: Vec<f64> = totals(&moved, m).iter().map(|sum| rho * sum).collect();
        let change_b = difference(&lack, &constant);
        let (mut along, mut norm2, mut slope) =
            (dot(&self.c, &change), dot(&step, &change), -dot(&look.gradient, &change));
        if rho > 0.0 && !self.free {
            along += dot(&self.pull, &change_b);
            norm2 += dot(&change_b, &change_b) / rho;
            slope -= dot(&lack, &change_b) / rho;
        }
        let change = self.by_row(&change, &change_b);
        let t = descent.line_search(&self.scores, &change, Quadratic { slope, along, norm2 }, sigma);
        axpy(t, &step, &mut self.c);
        axpy(t, &change, &mut self.scores);
        axpy(t, &change_b, &mut self.intercepts);
        if rho > 0.0 && !self.free {
            axpy(t / rho, &change_b, &mut self.pull);
        }
        Ok(())
    }

    fn adopt(&self, descent: &mut ManyDescent<'_, L>, look: &Look, _tol: f64) -> Result<Certificate> {
        self.take_over(descent, look);
        let primal = 0.5 * descent.certified_norm2 + look.loss;
        Ok(Certificate { primal, dual: primal - look.gap() })
    }
}

impl KernelPoint {
    /// Hands the point over. The functions keep coefficients of their own: those that the dual variables are would be a worse point.
    fn take_over<L: RivalLoss>(&self, descent: &mut ManyDescent<'_, L>, look: &Look) {
        let negative: Vec<f64> = self.intercepts.iter().map(|b| -b).collect();
        let mut scores = self.scores.clone();
        scores.chunks_exact_mut(self.classes).for_each(|scores| axpy(1.0, &negative, scores));
        descent.space.set_scores(&scores);
        descent.intercept.values = self.intercepts.clone();
        descent.intercept.sums = totals(&self.c, self.rows());
        descent.duals = look.duals.clone();
        descent.beside = Some(self.c.clone());
        descent.margins = None;
        descent.visits += self.rows();
        (descent.apart, descent.helped) = (true, true);
        descent.certified_norm2 = NewtonPoint::<L>::norm2(self);
    }
}

/// Multipliers of a start that has none are those of envelopes this wide.
const FIRST_SIGMA: f64 = 0.05;

impl<L: RivalLoss> ManyDescent<'_, L> {
    /// Newton's method over the kernel's matrix, from the present point.
    pub(super) fn newton_over_kernel(&mut self, tol: f64, limit: usize) -> Result<(Certificate, StopReason)> {
        self.space.settle()?;
        let c = self.beside.take().unwrap_or_else(|| columns(&self.loss, self.codes, &self.duals, self.classes));
        let scores = self.scan(|out: &mut Vec<f64>, _, scores| out.extend_from_slice(scores))?.concat();
        let sigma = self.sigma_at(&scores);
        let point = self.kernel_point(c, scores);
        self.newton_from(point, tol, sigma, limit)
    }

    fn kernel_point(&self, c: Vec<f64>, scores: Vec<f64>) -> KernelPoint {
        let free = self.intercept.free;
        let pull = if free { vec![0.0; self.classes] } else { totals(&c, self.codes.len()) };
        let intercepts = self.intercept.values.clone();
        KernelPoint { classes: self.classes, rho: self.intercept.unit, free, c, scores, intercepts, pull }
    }

    /// Newton's method will start from these coefficients, class after class, with the multipliers that their scores ask for.
    pub(super) fn start_newton(&mut self, c: Vec<f64>) -> Result<()> {
        let product = self.space.multiply(&c)?;
        let mut point = self.kernel_point(c, Vec::new());
        if !point.free {
            point.intercepts = point.pull.iter().map(|sum| point.rho * sum).collect();
        }
        point.scores = point.by_row(&product, &point.intercepts);
        let look = point.balanced(self, FIRST_SIGMA)?;
        point.take_over(self, &look);
        Ok(())
    }
}
