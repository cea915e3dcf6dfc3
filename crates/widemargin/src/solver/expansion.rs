//! Coefficients of kernel functions as a [`Space`], with the whole kernel matrix in memory.
//!
//! `w = Σ c_i φ(x_i)`, scores `f = G c + b`. A Newton step solves, over the rows `S` with curvature,
//! `(G_SS + diag(1/h)) Δ = r` (bordered by the conditions of a free intercept and of LDM's mean).

use super::cg::conjugate_gradients;
use super::newton::{Direction, Model, Space};
use crate::control::Control;
use crate::data::dense_dot;
use crate::kernel::{KernelRows, pivoted_cholesky};
use crate::linalg::{self, Cholesky};
use crate::machine::Bias;
use crate::random::Random;
use crate::{Error, Result};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Up to this many rows with curvature, the system is factored; beyond, conjugate gradients are quicker.
const FACTORED: usize = 3000;

/// Columns of the part of `G` that preconditions them (Frangella, Tropp & Udell 2023): its largest eigenvalues, which they
/// would take longest to find.
const RANK: usize = 300;

/// The kernel matrix `G`, kept in single precision where that is enough: products with it wait for memory.
pub struct Gram {
    n: usize,
    pub(super) values: Values,
    low_rank: OnceLock<LowRank>,
}

/// `F` of `G ≈ F Fᵀ`, row after row.
struct LowRank {
    rank: usize,
    values: Vec<f64>,
}

/// Its rows.
pub(super) enum Values {
    Single(Vec<Vec<f32>>),
    Double(Vec<Vec<f64>>),
}

/// From this tolerance on, the rounding of kernel values to single precision (6e-8) does not show in the gap.
pub(super) const SINGLE: f64 = 1e-5;
/// Length of the pieces in which products with few rows are summed: a piece stays in the cache.
const PIECE: usize = 1024;

/// How kernel values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As `f32`.
    Single,
    /// As `f64`.
    Double,
}

impl Precision {
    /// What mostly suffices for a relative gap of `tol`. Whether it did, the certificate says.
    pub fn for_tolerance(tol: f64) -> Self {
        if tol < SINGLE { Self::Double } else { Self::Single }
    }
}

impl Gram {
    /// The matrix of the rows.
    pub fn new(rows: &KernelRows<'_>, precision: Precision, control: Control<'_>) -> Result<Self> {
        let values = match precision {
            Precision::Single => Values::Single(rows.whole(control)?),
            Precision::Double => Values::Double(rows.whole(control)?),
        };
        Ok(Self { n: rows.len(), values, low_rank: OnceLock::new() })
    }

    /// From its `n × n` values.
    pub fn from_values(n: usize, values: Vec<f64>, precision: Precision) -> Self {
        assert_eq!(values.len(), n * n, "a square matrix");
        let rows = values.chunks(n.max(1));
        let values = match precision {
            Precision::Single => Values::Single(rows.map(|row| row.iter().map(|k| *k as f32).collect()).collect()),
            Precision::Double => Values::Double(rows.map(<[f64]>::to_vec).collect()),
        };
        Self { n, values, low_rank: OnceLock::new() }
    }

    /// Bytes that the matrix of `m` rows takes.
    pub fn bytes(m: usize, precision: Precision) -> u64 {
        let size = match precision {
            Precision::Single => 4,
            Precision::Double => 8,
        };
        size * (m as u64).pow(2)
    }

    fn get(&self, i: usize, j: usize) -> f64 {
        match &self.values {
            Values::Single(values) => values[i][j].into(),
            Values::Double(values) => values[i][j],
        }
    }

    fn row(&self, i: usize, out: &mut [f64]) {
        match &self.values {
            Values::Single(values) => out.iter_mut().zip(&values[i]).for_each(|(out, k)| *out = (*k).into()),
            Values::Double(values) => out.copy_from_slice(&values[i]),
        }
    }

    fn low_rank(&self, control: Control<'_>) -> Result<&LowRank> {
        if let Some(known) = self.low_rank.get() {
            return Ok(known);
        }
        let diagonal = (0..self.n).map(|i| self.get(i, i)).collect();
        let mut random = Random::new(0, 0x6c6f_7772);
        let (_, columns) = pivoted_cholesky(diagonal, |i, out| self.row(i, out), RANK, &mut random, control)?;
        let values = (0..self.n).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
        Ok(self.low_rank.get_or_init(|| LowRank { rank: columns.len(), values }))
    }

    /// Row `i` times `v`.
    fn dot(&self, i: usize, v: &[f64]) -> f64 {
        match &self.values {
            Values::Single(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
            Values::Double(values) => linalg::wide(
                #[inline(always)]
                || dense_dot(&values[i], v),
            ),
        }
    }

    /// `out += a` times a stretch of row `i`.
    fn axpy(&self, i: usize, a: f64, from: usize, out: &mut [f64]) {
        let range = from..from + out.len();
        match &self.values {
            Values::Single(values) => out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * f64::from(*k)),
            Values::Double(values) => out.iter_mut().zip(&values[i][range]).for_each(|(o, k)| *o += a * k),
        }
    }

    /// `G v`; costs only the rows where `v` is not zero.
    pub fn multiply(&self, v: &[f64]) -> Vec<f64> {
        let filled: Vec<usize> = (0..self.n).filter(|&j| v[j] != 0.0).collect();
        if 2 * filled.len() > self.n {
            return (0..self.n).into_par_iter().with_min_len(16).map(|i| self.dot(i, v)).collect();
        }
        let mut product = vec![0.0; self.n];
        product.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
            filled.iter().for_each(|&j| self.axpy(j, v[j], piece * PIECE, out));
        });
        product
    }

    /// `G_SS + diag`, ready to be factored.
    pub(crate) fn principal(&self, chosen: &[usize], diagonal: &[f64]) -> Vec<f64> {
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

/// `w = Σ c_i φ(x_i)` with its scores.
pub struct KernelSpace<'a> {
    gram: &'a Gram,
    y: &'a [f64],
    bias: Bias,
    c: Vec<f64>,
    /// `G c`, without the intercept.
    scores: Vec<f64>,
    /// `b`, explicit whether it is free or the weight of a constant feature: `½ r b²` is all that tells them apart
    /// ([`Bias::ridge`]), and `B²` never meets the kernel values.
    intercept: f64,
    margins: Vec<f64>,
    delta: (Vec<f64>, Vec<f64>, f64),
    /// The dual point last asked about, as coefficients, and its scores: from one to the next few rows change.
    dual: (Vec<f64>, Vec<f64>),
}

impl<'a> KernelSpace<'a> {
    /// The space at coefficients `c` and free intercept `b`; any other intercept follows from `c`.
    pub fn new(gram: &'a Gram, y: &'a [f64], bias: Bias, c: Vec<f64>, intercept: f64) -> Self {
        let intercept = match bias {
            Bias::None => 0.0,
            Bias::Feature(value) => value * value * c.iter().sum::<f64>(),
            Bias::Free => intercept,
        };
        let scores = gram.multiply(&c);
        let margins = scores.iter().zip(y).map(|(f, y)| y * (f + intercept)).collect();
        let dual = (c.clone(), scores.clone());
        Self { gram, y, bias, c, scores, intercept, margins, delta: Default::default(), dual }
    }

    /// The same space at other coefficients, with the same intercept.
    pub fn at(&self, c: Vec<f64>) -> Self {
        Self::new(self.gram, self.y, self.bias, c, self.intercept)
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &[f64] {
        &self.c
    }

    /// `r`, zero where there is no intercept to draw at.
    fn ridge(&self) -> f64 {
        if self.bias == Bias::None { 0.0 } else { self.bias.ridge() }
    }

    /// `b`
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// Solves `(G_SS + diag(1/h)) Z = R` for several right-hand sides, column after column.
    fn solve(
        &self,
        chosen: &[usize],
        h: &[f64],
        mut rhs: Vec<f64>,
        accuracy: f64,
        control: Control<'_>,
    ) -> Result<Vec<f64>> {
        let k = chosen.len();
        let diagonal: Vec<f64> = h.iter().map(|h| 1.0 / h).collect();
        if k <= FACTORED {
            let matrix = self.gram.principal(chosen, &diagonal);
            let factor = match Cholesky::new(matrix, k) {
                Ok(factor) => factor,
                Err(_) => self.lifted(chosen, &diagonal)?,
            };
            factor.solve(&mut rhs);
            return Ok(rhs);
        }
        let preconditioner = Preconditioner::new(self.gram.low_rank(control)?, chosen, h)?;
        let mut spread = vec![0.0; self.y.len()];
        let mut solution = vec![0.0; rhs.len()];
        for (rhs, solution) in rhs.chunks_exact(k).zip(solution.chunks_exact_mut(k)) {
            let apply = |v: &[f64], out: &mut [f64]| {
                control.check()?;
                chosen.iter().zip(v).for_each(|(&i, v)| spread[i] = *v);
                let product =
                    |(p, out): (usize, &mut f64)| *out = self.gram.dot(chosen[p], &spread) + diagonal[p] * v[p];
                out.par_iter_mut().enumerate().with_min_len(16).for_each(product);
                Ok(())
            };
            let precondition = |r: &[f64], out: &mut [f64]| preconditioner.apply(r, out);
            let tol = accuracy.min(1e-3) * linalg::dot(rhs, rhs).sqrt();
            conjugate_gradients(apply, precondition, rhs, solution, tol, 2000)?;
        }
        Ok(solution)
    }

    /// The factor with a small ridge, for matrices that rounding made indefinite (duplicate rows, tiny `1/h`).
    fn lifted(&self, chosen: &[usize], diagonal: &[f64]) -> Result<Cholesky> {
        let largest = chosen.iter().map(|&i| self.gram.get(i, i).abs()).fold(f64::MIN_POSITIVE, f64::max);
        let mut lift = 1e-14 * largest;
        while lift < largest {
            let raised: Vec<f64> = diagonal.iter().map(|d| d + lift).collect();
            if let Ok(factor) = Cholesky::new(self.gram.principal(chosen, &raised), chosen.len()) {
                return Ok(factor);
            }
            lift *= 10.0;
        }
        Err(Error::Numeric {
            place: "kernel system",
            reason: "the kernel matrix is not positive semidefinite".to_string(),
        })
    }

    /// The new coefficients and the change of the free intercept.
    fn target(&self, model: &Model<'_>, control: Control<'_>) -> Result<(Vec<f64>, f64)> {
        let double = 2.0 * model.variance;
        let h: Vec<f64> = model.curvature.iter().zip(model.weights).map(|(h, s)| h + double * s).collect();
        let chosen: Vec<usize> = (0..h.len()).filter(|&i| h[i] > 0.0).collect();
        let (k, h): (usize, Vec<f64>) = (chosen.len(), chosen.iter().map(|&i| h[i]).collect());
        // Rows without curvature go to their dual variable at once; the others are solved for.
        let mut target: Vec<f64> = model.a.iter().zip(self.y).map(|(a, y)| a * y).collect();
        chosen.iter().for_each(|&i| target[i] = self.c[i]);
        let moved: Vec<f64> = self.c.iter().zip(&target).map(|(c, t)| c - t).collect();
        let shift = self.gram.multiply(&moved);
        let (free, ridge) = (self.bias != Bias::None, self.ridge());
        let mut rhs: Vec<f64> = (0..k)
            .map(|p| (self.y[chosen[p]] * model.a[chosen[p]] - self.c[chosen[p]]) / h[p] + shift[chosen[p]])
            .collect();
        if free {
            rhs.extend(std::iter::repeat_n(1.0, k));
        }
        if double > 0.0 {
            rhs.extend((0..k).map(|p| self.y[chosen[p]] * double * model.weights[chosen[p]] / h[p]));
        }
        let z = if k > 0 { self.solve(&chosen, &h, rhs, model.accuracy, control)? } else { Vec::new() };
        let column = |number: usize| &z[number * k..(number + 1) * k];
        // `Σ c = r b` holds in the end.
        let balance: f64 = target.iter().sum::<f64>() - ridge * self.intercept;
        let (change_b, change_mean) = if double > 0.0 {
            self.border(model, &chosen, &h, column(0), free.then(|| column(1)), column(1 + usize::from(free)), balance)
        } else if free {
            let pull: f64 = ridge + if k > 0 { column(1).iter().sum() } else { 0.0 };
            let excess: f64 = balance + if k > 0 { column(0).iter().sum() } else { 0.0 };
            // Where nothing curves, go downhill; the line search finds how far.
            (if pull > 0.0 { excess / pull } else { excess / self.y.len() as f64 }, 0.0)
        } else {
            (0.0, 0.0)
        };
        for p in 0..k {
            let mut change = column(0)[p];
            if free {
                change -= change_b * column(1)[p];
            }
            if double > 0.0 {
                change += change_mean * column(1 + usize::from(free))[p];
            }
            target[chosen[p]] += change;
        }
        Ok((target, change_b))
    }

    /// Changes of `b` and of the mean margin from their two linear conditions, `Σ c = r b` and `m Δγ̄ = Σ s_i Δγ_i`, with
    /// `Δ = z0 − Δb z1 + Δγ̄ z2` and `Δγ_i = (a_i − y_i (c_i + Δ_i) + 2 κ s_i Δγ̄) / h_i`. Every row has curvature here.
    #[allow(clippy::too_many_arguments)]
    fn border(
        &self,
        model: &Model<'_>,
        chosen: &[usize],
        h: &[f64],
        z0: &[f64],
        z1: Option<&[f64]>,
        z2: &[f64],
        balance: f64,
    ) -> (f64, f64) {
        let (mut constant, mut by_b, mut by_mean) = (0.0, 0.0, -model.weights.iter().sum::<f64>());
        for (p, &i) in chosen.iter().enumerate() {
            let (s, y) = (model.weights[i] / h[p], self.y[i]);
            constant += s * (model.a[i] - y * (self.c[i] + z0[p]));
            by_mean += s * (2.0 * model.variance * model.weights[i] - y * z2[p]);
            by_b += z1.map_or(0.0, |z1| s * y * z1[p]);
        }
        let Some(z1) = z1 else { return (0.0, -constant / by_mean) };
        let sum = |z: &[f64]| z.iter().sum::<f64>();
        // balance + Σz0 − Δb (Σz1 + r) + Δγ̄ Σz2 = 0  and  constant + Δb by_b + Δγ̄ by_mean = 0
        let (a11, a12, r1) = (sum(z1) + self.ridge(), -sum(z2), balance + sum(z0));
        let (a21, a22, r2) = (by_b, by_mean, -constant);
        let determinant = a11 * a22 - a12 * a21;
        ((r1 * a22 - a12 * r2) / determinant, (a11 * r2 - a21 * r1) / determinant)
    }
}

/// `M⁻¹` for `M = F_S F_Sᵀ + diag(1/h)`: `√h (I − B (I + BᵀB)⁻¹ Bᵀ) √h` with `B = diag(√h) F_S`.
struct Preconditioner {
    root: Vec<f64>,
    rank: usize,
    /// `B`, row after row.
    scaled: Vec<f64>,
    /// Of `I + BᵀB`.
    factor: Cholesky,
}

/// Rows of `B` that a thread takes at a time.
const CHUNK: usize = 512;

impl Preconditioner {
    fn new(part: &LowRank, chosen: &[usize], h: &[f64]) -> Result<Self> {
        let rank = part.rank;
        let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
        let row = |(&i, root): (&usize, &f64)| {
            let root = *root;
            part.values[i * rank..(i + 1) * rank].iter().map(move |f| root * f)
        };
        let scaled: Vec<f64> = chosen.iter().zip(&root).flat_map(row).collect();
        let mut matrix = vec![0.0; rank * rank];
        (0..rank).for_each(|j| matrix[j * rank + j] = 1.0);
        linalg::add_gram(&mut matrix, &scaled, rank.max(1), 1.0, true);
        let factor = Cholesky::new(matrix, rank)
            .map_err(|_| Error::Numeric { place: "preconditioner", reason: "it is not positive definite".into() })?;
        Ok(Self { root, rank, scaled, factor })
    }

    fn apply(&self, v: &[f64], out: &mut [f64]) {
        let rank = self.rank.max(1);
        let parts = self.scaled.par_chunks(CHUNK * rank).zip(v.par_chunks(CHUNK)).zip(self.root.par_chunks(CHUNK));
        let sums: Vec<Vec<f64>> = parts
            .map(|((rows, v), root)| {
                let mut sum = vec![0.0; self.rank];
                let terms = rows.chunks_exact(rank).zip(v.iter().zip(root));
                terms.for_each(|(row, (v, root))| linalg::axpy(root * v, row, &mut sum));
                sum
            })
            .collect();
        let mut inner = vec![0.0; self.rank];
        sums.iter().for_each(|sum| linalg::axpy(1.0, sum, &mut inner));
        self.factor.solve(&mut inner);
        let parts = self.scaled.par_chunks(CHUNK * rank).zip(v.par_chunks(CHUNK)).zip(self.root.par_chunks(CHUNK));
        out.par_chunks_mut(CHUNK).zip(parts).for_each(|(out, ((rows, v), root))| {
            let terms = rows.chunks_exact(rank).zip(v.iter().zip(root));
            out.iter_mut().zip(terms).for_each(|(out, (row, (v, root)))| {
                *out = root * (root * v - linalg::dot(row, &inner));
            });
        });
    }
}

impl Space for KernelSpace<'_> {
    fn margins(&self) -> &[f64] {
        &self.margins
    }

    fn norm2(&self) -> f64 {
        linalg::dot(&self.c, &self.scores).max(0.0) + self.ridge() * self.intercept.powi(2)
    }

    fn distance2(&mut self, a: &[f64]) -> f64 {
        let (dual, dual_scores) = &mut self.dual;
        let change: Vec<f64> = (0..a.len()).map(|i| a[i] * self.y[i] - dual[i]).collect();
        let scores = self.gram.multiply(&change);
        let mut distance2 = 0.0;
        for i in 0..a.len() {
            dual[i] += change[i];
            dual_scores[i] += scores[i];
            distance2 += (self.c[i] - dual[i]) * (self.scores[i] - dual_scores[i]);
        }
        let apart = match self.bias {
            Bias::Feature(value) => self.intercept / value - value * dual.iter().sum::<f64>(),
            Bias::None | Bias::Free => 0.0,
        };
        distance2.max(0.0) + apart * apart
    }

    fn direction(&mut self, model: &Model<'_>, control: Control<'_>) -> Result<Direction> {
        let (target, change_b) = self.target(model, control)?;
        let change: Vec<f64> = target.iter().zip(&self.c).map(|(t, c)| t - c).collect();
        let scores = self.gram.multiply(&change);
        let direction = Direction {
            margins: scores.iter().zip(self.y).map(|(f, y)| y * (f + change_b)).collect(),
            along: linalg::dot(&self.scores, &change) + self.ridge() * self.intercept * change_b,
            norm2: linalg::dot(&change, &scores).max(0.0) + self.ridge() * change_b.powi(2),
        };
        self.delta = (change, scores, change_b);
        Ok(direction)
    }

    fn advance(&mut self, step: f64, direction: Direction, _model: &Model<'_>) {
        let (change, scores, change_b) = &self.delta;
        linalg::axpy(step, change, &mut self.c);
        linalg::axpy(step, scores, &mut self.scores);
        linalg::axpy(step, &direction.margins, &mut self.margins);
        self.intercept += step * change_b;
    }
}
