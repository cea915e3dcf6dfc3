//! The certificate of score functions, one a class.

use super::ROUNDING;
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, KernelRows, Span};
use crate::linalg;
use crate::loss::RivalLoss;
use crate::problem::{Bias, Certificate, ScoreFunctions, not_negative};
use crate::solver::many::{RowDual, circulation, columns, flow};
use crate::{Result, with_rows};

/// Rows whose terms are summed together. A constant: it decides the order of sums.
const ROWS: usize = 256;
/// `|Σ_i v_i^l|` of this part of `Σ |v|` is rounding.
const BALANCED: f64 = 1e-12;

/// A problem with one score function a class, `½ Σ_l ‖w_l‖² + Σ_i ℓ_i(s_i)`.
pub struct ManyProblem<'a, L> {
    /// `ℓ`
    pub loss: &'a L,
    /// Class of each row.
    pub codes: &'a [u32],
    /// Number of classes `k`.
    pub classes: usize,
    /// How the intercepts are treated.
    pub bias: Bias,
    /// The rows.
    pub rows: &'a Matrix<'a>,
    /// Their kernel.
    pub kernel: Kernel,
    /// The landmarks that the rows are mapped by, if they are: what is written are coefficients of these.
    pub span: Option<&'a Span<'a>>,
    /// Who watches.
    pub control: Control<'a>,
}

/// Score functions, one a class, with what can be said of them.
pub struct CertifiedMany {
    /// How far from the optimum they can be.
    pub certificate: Certificate,
    /// `γ_i = s_i^y − max_{l≠y} s_i^l`
    pub margins: Vec<f64>,
    /// `v_i^l`, feasible; a vector of `m` numbers a class.
    pub v: Vec<Vec<f64>>,
    /// `Σ_l ‖w_l‖²`, regularised intercepts included.
    pub norm2: f64,
    /// What rounding may have done to the objective.
    pub noise: f64,
}

/// Sums over rows.
#[derive(Default)]
struct ManySums {
    loss: f64,
    gap: f64,
    /// What rounding of the scores may do to each row's loss and to `v_i·s_i`, squared.
    noise2: f64,
    margins: Vec<f64>,
}

impl<L: RivalLoss> ManyProblem<'_, L> {
    /// Certifies score functions with the given dual point: the duality gap is
    /// `Σ_i ℓ_i(s_i) + ℓ*_i(−v_i) + v_i·s_i + ½ Σ_l ‖w_l − Σ_i v_i^l φ(x_i)‖²`.
    pub fn certify(&self, expansion: &ScoreFunctions, duals: &[RowDual]) -> Result<CertifiedMany> {
        let duals = self.feasible(duals);
        let v = columns(self.loss, self.codes, &duals, self.classes);
        let v: Vec<Vec<f64>> = v.chunks_exact(self.codes.len()).map(<[f64]>::to_vec).collect();
        let (ScoreFunctions::Linear { intercepts, .. } | ScoreFunctions::Kernel { intercepts, .. }) = expansion;
        let (mut norm2, mut distance2, sums) = match (expansion, self.span) {
            (ScoreFunctions::Linear { weights, .. }, Some(span)) => {
                self.written(span, weights, intercepts, &duals, &v)?
            }
            (ScoreFunctions::Linear { weights, .. }, None) => self.linear(weights, intercepts, &duals, &v)?,
            (ScoreFunctions::Kernel { coefficients, .. }, _) => {
                self.over_kernel(coefficients, intercepts, &duals, &v)?
            }
        };
        let balance: Vec<f64> = v.iter().map(|v| v.iter().sum()).collect();
        if let Bias::Feature(value) = self.bias {
            norm2 += intercepts.iter().map(|b| (b / value).powi(2)).sum::<f64>();
            distance2 += intercepts.iter().zip(&balance).map(|(b, v)| (b / value - value * v).powi(2)).sum::<f64>();
        }
        let size: f64 = v.iter().flatten().map(|v| v.abs()).sum();
        let feasible = self.bias != Bias::Free || balance.iter().all(|v| v.abs() <= BALANCED * size);
        let primal = 0.5 * norm2 + sums.loss;
        let noise = ROUNDING * primal.abs() + sums.noise2.sqrt();
        let dual = if feasible { primal - sums.gap - 0.5 * distance2 - noise } else { f64::MIN };
        Ok(CertifiedMany { certificate: Certificate { primal, dual }, margins: sums.margins, v, norm2, noise })
    }

    /// `Σ_l ‖w_l‖²`, `Σ_l ‖w_l − Σ_i v_i^l φ(x_i)‖²` and the sums over rows of weights.
    fn linear(
        &self,
        weights: &[Vec<f64>],
        intercepts: &[f64],
        duals: &[RowDual],
        v: &[Vec<f64>],
    ) -> Result<(f64, f64, ManySums)> {
        let scores = |i: usize, out: &mut [f64]| {
            with_rows!(self.rows, x => out.iter_mut().zip(weights).for_each(|(out, w)| *out = x.dot(i, w)));
            with_rows!(self.rows, x => x.norm2(i))
        };
        let norm2 = weights.iter().map(|w| linalg::dot(w, w)).sum::<f64>();
        let sums = self.sum_up(duals, scores, intercepts, norm2.sqrt())?;
        Ok((norm2, with_rows!(self.rows, x => self.weights_apart(x, weights, v)), sums))
    }

    /// The same of coefficients of the rows.
    fn over_kernel(
        &self,
        coefficients: &[Vec<f64>],
        intercepts: &[f64],
        duals: &[RowDual],
        v: &[Vec<f64>],
    ) -> Result<(f64, f64, ManySums)> {
        let rows = KernelRows::new(self.kernel, self.rows, 0.0);
        let apart = |(c, v): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> { v.iter().zip(c).map(|(v, c)| v - c).collect() };
        let mut apart: Vec<Vec<f64>> = coefficients.iter().zip(v).map(apart).collect();
        apart.retain(|moved| moved.iter().any(|moved| *moved != 0.0));
        let columns: Vec<&[f64]> = coefficients.iter().chain(&apart).map(Vec::as_slice).collect();
        let (scores, k) = (rows.products(&columns, self.control)?, columns.len());
        let scored = |i: usize, out: &mut [f64]| {
            out.copy_from_slice(&scores[i * k..][..self.classes]);
            rows.diagonal(i).max(0.0)
        };
        // A sum of kernel values may cancel: its terms say how far it is off.
        let term = |(i, c): (usize, &f64)| c * c * rows.diagonal(i).max(0.0);
        let terms2: f64 = coefficients.iter().map(|c| c.iter().enumerate().map(term).sum::<f64>()).sum();
        let sums = self.sum_up(duals, scored, intercepts, rows.amplification() * terms2.sqrt())?;
        let own = |(l, c): (usize, &&[f64])| -> f64 {
            c.iter().enumerate().map(|(i, c)| c * scores[i * k + l]).sum::<f64>().max(0.0)
        };
        let norms2: Vec<f64> = columns.iter().enumerate().map(own).collect();
        let (norms2, distances2) = norms2.split_at(self.classes);
        Ok((norms2.iter().sum(), distances2.iter().sum(), sums))
    }

    /// The same of weights over mapped rows as they are written, coefficients of the landmark rows.
    fn written(
        &self,
        span: &Span<'_>,
        weights: &[Vec<f64>],
        intercepts: &[f64],
        duals: &[RowDual],
        v: &[Vec<f64>],
    ) -> Result<(f64, f64, ManySums)> {
        let coefficients: Vec<Vec<f64>> = weights.iter().map(|w| span.landmarks.coefficients(w)).collect();
        let (scores, diagonal, k) = (span.scores(&coefficients)?, span.diagonal(), self.classes);
        let scored = |i: usize, out: &mut [f64]| {
            out.copy_from_slice(&scores[i * k..(i + 1) * k]);
            diagonal[i]
        };
        let (mut norm2, mut distance2, mut size2) = (0.0, 0.0, 0.0);
        for (c, v) in coefficients.iter().zip(v) {
            let found = span.measure(c, v)?;
            norm2 += found.norm2;
            distance2 += found.distance2;
            size2 += found.size * found.size;
        }
        Ok((norm2, distance2, self.sum_up(duals, scored, intercepts, size2.sqrt())?))
    }

    /// The dual point, its variables lowered until those of each class sum to zero if the intercepts are free.
    fn feasible(&self, duals: &[RowDual]) -> Vec<RowDual> {
        if self.bias != Bias::Free {
            return duals.to_vec();
        }
        let flow = flow(self.loss, self.codes, duals);
        let factors = circulation(&flow, self.classes);
        let row = |(i, dual): (usize, &RowDual)| dual.shrunk(self.codes[i], self.loss.partner(i), &factors);
        duals.iter().enumerate().map(row).collect()
    }

    /// Loss, gap and margin of every row; `scores(i, out)` writes its scores without intercepts and tells `‖φ(x_i)‖²`, and they are
    /// off by rounding errors of `size ‖φ(x_i)‖`.
    fn sum_up(
        &self,
        duals: &[RowDual],
        scores: impl Fn(usize, &mut [f64]) -> f64 + Sync,
        intercepts: &[f64],
        size: f64,
    ) -> Result<ManySums> {
        let largest = intercepts.iter().fold(0.0, |most: f64, b| most.max(b.abs()));
        let chunk = |c: usize, duals: &[RowDual]| -> Result<ManySums> {
            self.control.check()?;
            let (mut sums, mut out) = (ManySums::default(), vec![0.0; self.classes]);
            for (k, dual) in duals.iter().enumerate() {
                let i = c * ROWS + k;
                let length2 = scores(i, &mut out);
                out.iter_mut().zip(intercepts).for_each(|(s, b)| *s += b);
                self.add_row(i, dual, &mut out, ROUNDING * (size * length2.sqrt() + largest), &mut sums);
            }
            Ok(sums)
        };
        let parts = linalg::each_of(duals.chunks(ROWS), chunk).into_iter().collect::<Result<Vec<_>>>()?;
        Ok(parts.into_iter().fold(ManySums::default(), |mut all, part| {
            all.loss += part.loss;
            all.gap += part.gap;
            all.noise2 += part.noise2;
            all.margins.extend(part.margins);
            all
        }))
    }

    fn add_row(&self, i: usize, dual: &RowDual, scores: &mut [f64], off: f64, sums: &mut ManySums) {
        let (y, partner) = (self.codes[i] as usize, self.loss.partner(i));
        let (mut product, mut size2) = (0.0, 0.0);
        dual.coefficients(self.codes[i], partner, |l, v| {
            product += v * scores[l];
            size2 += v * v;
        });
        let rival = partner.map_or(0.0, |r| scores[r as usize]);
        let own = std::mem::replace(&mut scores[y], f64::NEG_INFINITY);
        let loss = self.loss.value(i, own, scores, rival);
        let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        sums.loss += loss;
        sums.gap += not_negative(loss + self.loss.conjugate(i, dual.total(), dual.beta) + product);
        let moved = |by: f64| (self.loss.value(i, own + by, scores, rival) - loss).abs();
        sums.noise2 += (moved(off).max(moved(-off)) + size2.sqrt() * off).powi(2);
        sums.margins.push(own - best);
    }

    /// `Σ_l ‖w_l − Σ_i v_i^l x_i‖²`
    fn weights_apart<X: Rows>(&self, x: &X, weights: &[Vec<f64>], v: &[Vec<f64>]) -> f64 {
        let apart = |_, (w, v): (&Vec<f64>, &Vec<f64>)| -> f64 {
            let mut sum = w.clone();
            v.iter().enumerate().filter(|(_, v)| **v != 0.0).for_each(|(i, v)| x.axpy(i, -v, &mut sum));
            linalg::dot(&sum, &sum)
        };
        linalg::each_of(weights.iter().zip(v), apart).iter().sum()
    }
}
