//! Coefficients of kernel functions as a [`Space`], with the whole kernel matrix in memory.
//!
//! `w = Σ c_i φ(x_i)`, scores `f = G c + b`. A Newton step solves, over the rows `S` with curvature,
//! `(G_SS + diag(1/h)) Δ = r` (bordered by the conditions of a free intercept and of LDM's mean).

use super::{Direction, QuadraticModel, Space};
use crate::control::Control;
use crate::kernel::{Gram, LowRank};
use crate::linalg::{self, Cholesky, Enough, conjugate_gradients};
use crate::problem::Bias;
use crate::solver::workspace::Factor;
use crate::{Error, Result};
use rayon::prelude::*;

/// Up to this many rows with curvature, the system is factored; beyond, conjugate gradients are quicker.
const FACTORED: usize = 3000;
/// The first system is solved this well by conjugate gradients, later ones to a tenth of the gap, and ten times better than the
/// one before where that gained little: with a fixed loose accuracy the steps stall (8,000 rows of a9a, ijcnn1, phishing).
const FIRST_ACCURACY: f64 = 1e-2;
const BEST_ACCURACY: f64 = 1e-9;
/// Most products of conjugate gradients; what they have not found by then, the next Newton step goes on with.
const MOST_PRODUCTS: usize = 2000;

/// `w = Σ c_i φ(x_i)` with its scores.
pub struct CoefficientSpace<'a> {
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
    /// The factor of the last system, if it was factored.
    factor: Option<Factor>,
    /// How well the last system was solved by conjugate gradients, and the gap before it.
    solved_to: (f64, f64),
    /// Products of conjugate gradients so far.
    pub products: usize,
    /// The dual point last asked about, as coefficients, and its scores: from one to the next few rows change.
    dual: (Vec<f64>, Vec<f64>),
}

impl<'a> CoefficientSpace<'a> {
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
        Self {
            gram,
            y,
            bias,
            c,
            scores,
            intercept,
            margins,
            delta: Default::default(),
            factor: None,
            solved_to: (FIRST_ACCURACY, f64::INFINITY),
            products: 0,
            dual,
        }
    }

    /// The same space at other coefficients, with the same intercept.
    pub fn at(&self, c: Vec<f64>) -> Self {
        Self::new(self.gram, self.y, self.bias, c, self.intercept)
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &[f64] {
        &self.c
    }

    /// Takes over the factor that another space found last, and its count of products.
    pub fn take_factor(&mut self, from: &mut Self) {
        self.factor = from.factor.take();
        self.products = from.products;
    }

    /// The factor of the last system, if it was factored.
    pub fn into_factor(self) -> Option<Factor> {
        self.factor
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
        &mut self,
        chosen: &[usize],
        h: &[f64],
        mut rhs: Vec<f64>,
        gap: f64,
        control: Control<'_>,
    ) -> Result<Vec<f64>> {
        let k = chosen.len();
        let diagonal: Vec<f64> = h.iter().map(|h| 1.0 / h).collect();
        if k <= FACTORED {
            let factor =
                Cholesky::lifted(|| self.gram.principal(chosen, &diagonal), k).map_err(|_| Error::Numeric {
                    place: "kernel system",
                    reason: "the kernel matrix is not positive semidefinite".into(),
                })?;
            factor.solve(&mut rhs);
            let mut curvature = vec![0.0; self.y.len()];
            chosen.iter().zip(h).for_each(|(&i, h)| curvature[i] = *h);
            self.factor = Some(Factor { curvature, cholesky: factor });
            return Ok(rhs);
        }
        self.factor = None;
        let preconditioner = Preconditioner::new(self.gram.low_rank(control)?, chosen, h)?;
        let mut spread = vec![0.0; self.y.len() * (rhs.len() / k)];
        let apply = |v: &[f64], out: &mut [f64]| {
            control.check()?;
            for (spread, v) in spread.chunks_exact_mut(self.y.len()).zip(v.chunks_exact(k)) {
                chosen.iter().zip(v).for_each(|(&i, v)| spread[i] = *v);
            }
            self.gram.chosen_products(chosen, &spread, out);
            for (out, v) in out.chunks_exact_mut(k).zip(v.chunks_exact(k)) {
                out.iter_mut().zip(diagonal.iter().zip(v)).for_each(|(out, (d, v))| *out += d * v);
            }
            Ok(())
        };
        let precondition = |r: &[f64], out: &mut [f64]| preconditioner.apply(r, out);
        let mut solution = vec![0.0; rhs.len()];
        let (before, gap_before) = self.solved_to;
        let accuracy = if gap < 0.2 * gap_before { before } else { 0.1 * before }.min(0.1 * gap).max(BEST_ACCURACY);
        let enough = Enough::Residual(accuracy);
        let end = conjugate_gradients(k, apply, precondition, &rhs, &mut solution, enough, MOST_PRODUCTS)?;
        self.products += end.products;
        self.solved_to = (accuracy, gap);
        Ok(solution)
    }

    /// The new coefficients and the change of the free intercept.
    fn target(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<(Vec<f64>, f64)> {
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
        let z = if k > 0 { self.solve(&chosen, &h, rhs, model.gap, control)? } else { Vec::new() };
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
        model: &QuadraticModel<'_>,
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
        let rank = part.rank();
        let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
        let row = |(&i, root): (&usize, &f64)| {
            let root = *root;
            part.row(i).iter().map(move |f| root * f)
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

impl Space for CoefficientSpace<'_> {
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

    fn direction(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<Direction> {
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

    fn advance(&mut self, step: f64, direction: Direction, _model: &QuadraticModel<'_>) {
        let (change, scores, change_b) = &self.delta;
        linalg::axpy(step, change, &mut self.c);
        linalg::axpy(step, scores, &mut self.scores);
        linalg::axpy(step, &direction.margins, &mut self.margins);
        self.intercept += step * change_b;
    }
}
