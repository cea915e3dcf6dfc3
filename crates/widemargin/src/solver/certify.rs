//! The one place where a certificate is made: in double precision, from the score function that is written, the data, and a
//! dual point made feasible here. Solvers stop on estimates of their own; what is claimed comes from this module alone.
//!
//! For a score function `(w, b)` and dual variables `a = u + v` (`u` of the variance, `v` of the loss) the duality gap is
//!
//! ```text
//! Σ s_i (φ(γ_i) + φ*(−v_i/s_i)) + v_i γ_i  +  ½‖w − Σ a_i y_i φ(x_i)‖²
//! ```
//!
//! a sum of terms that are never negative (Fenchel-Young), so that it keeps its digits however small it is beside the
//! objective. What rounding may add to it is estimated and counted as part of the gap.

use super::many::{RowDual, circulation, columns, flow};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::design::{Design, RowSurvey};
use crate::kernel::{Kernel, KernelRows, Span};
use crate::linalg;
use crate::loss::RivalLoss;
use crate::problem::{Bias, Certificate, MarginProblem, ScoreFunctions, not_negative};
use crate::{Result, with_rows};

/// A score function with what can be said of it.
pub struct Certified {
    /// How far from the optimum it can be.
    pub certificate: Certificate,
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `v_i`, feasible.
    pub v: Vec<f64>,
    /// `a_i = u_i + v_i`
    pub a: Vec<f64>,
    /// `‖w‖`, a regularised intercept included.
    pub norm: f64,
    /// `‖x̃_i‖²`, a regularised constant feature included, of a linear problem.
    pub norms2: Option<Vec<f64>>,
}

/// A move of the dual point that adds no more than this part of the objective to the gap is bounded, not computed.
const NEGLIGIBLE: f64 = 1e-9;

/// Rounding errors of a sum of products, in parts of what it would be if none of its terms cancelled, taken over rows as if they
/// were independent.
pub const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// A product with the kernel matrix.
pub type KernelProduct<'a> = &'a dyn Fn(&[f64]) -> Result<Vec<f64>>;

/// Certifies one score function (one column) with the given dual point: the part `v` that belongs to the loss (that of the
/// variance follows from the margins), `−s_i φ'(γ_i)` if there is none. `product` multiplies with the kernel matrix in double
/// precision, where that is at hand.
pub fn certify(
    problem: &MarginProblem<'_>,
    rows: &Matrix<'_>,
    kernel: Kernel,
    expansion: &ScoreFunctions,
    dual: Option<Vec<f64>>,
    product: Option<KernelProduct<'_>>,
    control: Control<'_>,
) -> Result<Certified> {
    match expansion {
        ScoreFunctions::Linear { weights, intercepts } => {
            let w = problem.bias.append(&weights[0], intercepts[0]);
            Ok(weights_as_they_are(&Design::new(rows, problem.bias), problem, &w, dual))
        }
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            let rows = KernelRows::new(kernel, rows, 0.0);
            let multiply = |c: &[f64]| product.map_or_else(|| rows.product(c, control), |product| product(c));
            with_kernel(problem, &rows, multiply, &coefficients[0], intercepts[0], dual)
        }
    }
}

/// `v` and `a` at these margins, feasible.
fn feasible(problem: &MarginProblem<'_>, margins: &[f64], dual: Option<Vec<f64>>) -> (Vec<f64>, Vec<f64>) {
    let mut v = match dual {
        Some(v) => v,
        None => margins.iter().zip(problem.weights).map(|(g, s)| -s * problem.loss.slope(*g)).collect(),
    };
    let mut u = problem.variance_part(margins);
    problem.make_feasible(&mut u, &mut v);
    let a = u.iter().zip(&v).map(|(u, v)| u + v).collect();
    (v, a)
}

/// What is known of a point before it is judged.
struct JudgedPoint {
    margins: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    /// `‖w‖²` and `‖w − w_a‖²`
    norm2: f64,
    distance2: f64,
    /// What rounding may have done to the objective.
    noise: f64,
}

fn judge(problem: &MarginProblem<'_>, point: JudgedPoint, norms2: Option<Vec<f64>>) -> Certified {
    let JudgedPoint { margins, v, a, norm2, distance2, noise } = point;
    let risk = problem.risk(&margins);
    let primal = 0.5 * norm2 + risk;
    let gap = problem.row_gap(&margins, &v) + problem.variance_gap(&margins, &a, &v) + 0.5 * distance2;
    let noise = noise + ROUNDING * (0.5 * norm2 + risk.abs());
    // Where no dual point is at hand the bound is the trivial one, and the relative gap 1.
    let dual = if problem.is_feasible(&a) { primal - gap - noise } else { f64::MIN };
    Certified { certificate: Certificate { primal, dual }, margins, v, a, norm: norm2.sqrt(), norms2 }
}

/// How much the objective or the gap change with each margin: by the loss, and by the variance.
fn pulls(problem: &MarginProblem<'_>, margins: &[f64], v: &[f64], a: &[f64]) -> Vec<f64> {
    let row = |i: usize| {
        let slope = problem.weights[i] * problem.loss.slope(margins[i]);
        slope.abs().max(v[i].abs()) + (a[i] - v[i]).abs()
    };
    (0..a.len()).map(row).collect()
}

/// `‖w − w_a‖²` with what rounding may do to it through the variance, whose part of `a` follows from the margins: each score is off
/// by `off(i)`, and the mean margin in its last digits. Whoever computes them in another way finds another `w_a`, this far away.
fn swayed(
    problem: &MarginProblem<'_>,
    margins: &[f64],
    distance2: f64,
    length: impl Fn(usize) -> f64,
    off: impl Fn(usize) -> f64,
) -> f64 {
    if problem.variance == 0.0 {
        return distance2;
    }
    let reach: Vec<f64> = (0..margins.len()).map(|i| problem.weights[i] * length(i)).collect();
    // The scores here are off, and so are those of whoever checks: two errors that know nothing of each other.
    let own = std::f64::consts::SQRT_2
        * reach.iter().enumerate().map(|(i, reach)| (reach * off(i)).powi(2)).sum::<f64>().sqrt();
    let common = f64::EPSILON * problem.mean(margins).abs() * reach.iter().sum::<f64>();
    (distance2.sqrt() + 2.0 * problem.variance * (own + common)).powi(2)
}

/// Certifies a weight vector, that of the intercept at its end.
pub fn weights_as_they_are(
    design: &Design<'_>,
    problem: &MarginProblem<'_>,
    w: &[f64],
    dual: Option<Vec<f64>>,
) -> Certified {
    let guess = |i: usize, margin: f64| match &dual {
        None => -problem.weights[i] * problem.loss.slope(margin),
        Some(v) => v[i],
    };
    let seen = design.scan(problem.y, w, guess);
    linear(design, problem, w, seen, dual)
}

/// Moves the intercept to where the objective is least beside these weights (its weight is the last of them), and certifies
/// the point with dual variables `v` of the loss. There is no variance in the problem.
pub fn best_intercept(design: &Design<'_>, problem: &MarginProblem<'_>, w: &mut [f64], v: Vec<f64>) -> Certified {
    let mut seen = design.scan(problem.y, w, |i, _| v[i]);
    let intercept = design.split(w).1;
    let step = problem.intercept_step(&seen.margins, intercept);
    if let Some(last) = w.get_mut(design.rows().cols()) {
        *last = (intercept + step) / design.constant();
        seen.margins.iter_mut().zip(problem.y).for_each(|(g, y)| *g += step * y);
    }
    linear(design, problem, w, seen, Some(v))
}

/// The certificate of weights that were seen to be so.
fn linear(
    design: &Design<'_>,
    problem: &MarginProblem<'_>,
    w: &[f64],
    seen: RowSurvey,
    dual: Option<Vec<f64>>,
) -> Certified {
    let intercept = design.split(w).1;
    let (v, a) = feasible(problem, &seen.margins, dual);
    let mut combined = seen.combined;
    let moved: Vec<f64> = a.iter().zip(&seen.a).map(|(a, guess)| a - guess).collect();
    let n = design.regularised(w).len();
    let norm2 = linalg::dot(&w[..n], &w[..n]);
    let scale = norm2 + linalg::dot(&combined[..n], &combined[..n]);
    let most: f64 = moved.iter().zip(&seen.numbers).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
    let apart = |combined: &[f64]| -> f64 { w[..n].iter().zip(combined).map(|(w, c)| (w - c).powi(2)).sum() };
    let distance2 = if most * most <= NEGLIGIBLE * scale {
        (apart(&combined).sqrt() + most).powi(2)
    } else {
        linalg::axpy(1.0, &design.combine(|i| moved[i] * problem.y[i]), &mut combined);
        apart(&combined)
    };
    let size = norm2.sqrt();
    let (length, off) = (|i: usize| seen.numbers[i].sqrt(), |length: f64| ROUNDING * (size * length + intercept.abs()));
    let distance2 = swayed(problem, &seen.margins, distance2, length, |i| off(length(i)));
    let pull = pulls(problem, &seen.margins, &v, &a);
    let noise = (0..a.len()).map(|i| (pull[i] * off(length(i))).powi(2)).sum::<f64>().sqrt();
    let point = JudgedPoint { margins: seen.margins, v, a, norm2, distance2, noise };
    judge(problem, point, Some(seen.numbers))
}

fn with_kernel(
    problem: &MarginProblem<'_>,
    rows: &KernelRows<'_>,
    multiply: impl Fn(&[f64]) -> Result<Vec<f64>>,
    c: &[f64],
    intercept: f64,
    dual: Option<Vec<f64>>,
) -> Result<Certified> {
    let scores = multiply(c)?;
    let margins: Vec<f64> = scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect();
    let (v, a) = feasible(problem, &margins, dual);
    let moved: Vec<f64> = (0..c.len()).map(|i| a[i] * problem.y[i] - c[i]).collect();
    let norm2 = linalg::dot(c, &scores).max(0.0);
    let diagonal: Vec<f64> = (0..c.len()).map(|i| rows.diagonal(i).max(0.0)).collect();
    let most: f64 = moved.iter().zip(&diagonal).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
    let distance2 =
        if most * most <= NEGLIGIBLE * norm2 { most * most } else { linalg::dot(&moved, &multiply(&moved)?).max(0.0) };
    let terms = (0..c.len()).map(|i| c[i] * c[i] * diagonal[i]).sum::<f64>().sqrt();
    let length = |i: usize| diagonal[i].sqrt();
    let off = |i: usize| ROUNDING * (rows.amplification() * terms * length(i) + intercept.abs());
    let distance2 = swayed(problem, &margins, distance2, length, off);
    let (own, apart) = constant_weight(problem, intercept, &a);
    let pull = pulls(problem, &margins, &v, &a);
    let reach = |i: usize| c[i].abs() * (c[i].abs() + pull[i]) * diagonal[i] + (pull[i] * intercept).abs();
    let noise = ROUNDING * rows.amplification() * (0..c.len()).map(reach).sum::<f64>();
    let point = JudgedPoint { margins, v, a, norm2: norm2 + own * own, distance2: distance2 + apart * apart, noise };
    Ok(judge(problem, point, None))
}

/// Certifies a score function over landmark rows as it is written, `f(x) = Σ_j c_j k(z_j, x) + b`: scores by kernel products, and
/// `‖w‖² = cᵀ k(Z, Z) c`. Beside it how far rounding of the margins may move `Σ a_i y_i φ(x_i)` if `a` are slopes of the loss.
pub fn over_landmarks(
    problem: &MarginProblem<'_>,
    span: &Span<'_>,
    c: &[f64],
    intercept: f64,
    dual: Option<Vec<f64>>,
) -> Result<(Certified, f64)> {
    let scores = span.scores(&[c.to_vec()])?;
    let margins: Vec<f64> = scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect();
    let (v, a) = feasible(problem, &margins, dual);
    let q: Vec<f64> = a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
    let found = span.measure(c, &q)?;
    let (own, apart) = constant_weight(problem, intercept, &a);
    let diagonal = span.diagonal();
    let pull = pulls(problem, &margins, &v, &a);
    let length = |i: usize| diagonal[i].sqrt();
    let off = |i: usize| ROUNDING * (found.size * length(i) + intercept.abs());
    let apart2 = swayed(problem, &margins, found.distance2, length, off);
    let noise = (0..a.len()).map(|i| (pull[i] * off(i)).powi(2)).sum::<f64>().sqrt() + ROUNDING * found.size.powi(2);
    let bend = |i: usize| problem.weights[i] * problem.loss.curvature(margins[i]) * found.size * diagonal[i];
    let sway = ROUNDING * (0..a.len()).map(bend).sum::<f64>();
    let (norm2, distance2) = (found.norm2 + own * own, apart2 + apart * apart);
    Ok((judge(problem, JudgedPoint { margins, v, a, norm2, distance2, noise }, None), sway))
}

/// The weight of a regularised constant feature, and how far it is from that of the dual point.
fn constant_weight(problem: &MarginProblem<'_>, intercept: f64, a: &[f64]) -> (f64, f64) {
    let Bias::Feature(value) = problem.bias else { return (0.0, 0.0) };
    let balance: f64 = a.iter().zip(problem.y).map(|(a, y)| a * y).sum();
    (intercept / value, intercept / value - value * balance)
}

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

/// Rows whose terms are summed together. A constant: it decides the order of sums.
const MANY_ROWS: usize = 256;

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
            (ScoreFunctions::Linear { weights, .. }, None) => {
                let scores = |i: usize, out: &mut [f64]| {
                    with_rows!(self.rows, x => out.iter_mut().zip(weights).for_each(|(out, w)| *out = x.dot(i, w)));
                    with_rows!(self.rows, x => x.norm2(i))
                };
                let norm2 = weights.iter().map(|w| linalg::dot(w, w)).sum::<f64>();
                let sums = self.sum_up(&duals, scores, intercepts, norm2.sqrt())?;
                (norm2, with_rows!(self.rows, x => self.weights_apart(x, weights, &v)), sums)
            }
            (ScoreFunctions::Kernel { coefficients, .. }, _) => {
                let rows = KernelRows::new(self.kernel, self.rows, 0.0);
                let apart =
                    |(c, v): (&Vec<f64>, &Vec<f64>)| -> Vec<f64> { v.iter().zip(c).map(|(v, c)| v - c).collect() };
                let mut apart: Vec<Vec<f64>> = coefficients.iter().zip(&v).map(apart).collect();
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
                let sums = self.sum_up(&duals, scored, intercepts, rows.amplification() * terms2.sqrt())?;
                let own = |(l, c): (usize, &&[f64])| -> f64 {
                    c.iter().enumerate().map(|(i, c)| c * scores[i * k + l]).sum::<f64>().max(0.0)
                };
                let norms2: Vec<f64> = columns.iter().enumerate().map(own).collect();
                let (norms2, distances2) = norms2.split_at(self.classes);
                (norms2.iter().sum(), distances2.iter().sum(), sums)
            }
        };
        let balance: Vec<f64> = v.iter().map(|v| v.iter().sum()).collect();
        if let Bias::Feature(value) = self.bias {
            norm2 += intercepts.iter().map(|b| (b / value).powi(2)).sum::<f64>();
            distance2 += intercepts.iter().zip(&balance).map(|(b, v)| (b / value - value * v).powi(2)).sum::<f64>();
        }
        let size: f64 = v.iter().flatten().map(|v| v.abs()).sum();
        let feasible = self.bias != Bias::Free || balance.iter().all(|v| v.abs() <= MANY_BALANCED * size);
        let primal = 0.5 * norm2 + sums.loss;
        let noise = ROUNDING * primal.abs() + sums.noise2.sqrt();
        let dual = if feasible { primal - sums.gap - 0.5 * distance2 - noise } else { f64::MIN };
        Ok(CertifiedMany { certificate: Certificate { primal, dual }, margins: sums.margins, v, norm2, noise })
    }

    /// Weights over mapped rows as they are written, coefficients of the landmark rows: `Σ_l ‖w_l‖²`, `Σ_l ‖w_l − Σ_i v_i^l φ(x_i)‖²`,
    /// and the sums over rows.
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
                let i = c * MANY_ROWS + k;
                let length2 = scores(i, &mut out);
                out.iter_mut().zip(intercepts).for_each(|(s, b)| *s += b);
                self.add_row(i, dual, &mut out, ROUNDING * (size * length2.sqrt() + largest), &mut sums);
            }
            Ok(sums)
        };
        let parts = linalg::each_of(duals.chunks(MANY_ROWS), chunk).into_iter().collect::<Result<Vec<_>>>()?;
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

/// `|Σ_i v_i^l|` of this part of `Σ |v|` is rounding.
const MANY_BALANCED: f64 = 1e-12;
