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

mod many;

pub use many::{CertifiedMany, ManyProblem};

use crate::Result;
use crate::control::Control;
use crate::data::Matrix;
use crate::design::{Design, RowSurvey};
use crate::kernel::{Kernel, KernelRows, Span};
use crate::linalg;
use crate::problem::{Bias, Certificate, MarginProblem, ScoreFunctions};

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

/// What rounding does to scores: that of row `i` is off by `ε (size ‖φ(x_i)‖ + |b|)`.
struct ScoreRounding<'a> {
    /// `‖φ(x_i)‖²`
    norms2: &'a [f64],
    /// `‖w‖`, or what it would be if none of its terms cancelled.
    size: f64,
    intercept: f64,
}

impl ScoreRounding<'_> {
    fn length(&self, i: usize) -> f64 {
        self.norms2[i].sqrt()
    }

    fn off(&self, i: usize) -> f64 {
        ROUNDING * (self.size * self.length(i) + self.intercept.abs())
    }

    /// `√Σ (p_i off_i)²`
    fn noise(&self, pull: &[f64]) -> f64 {
        pull.iter().enumerate().map(|(i, pull)| (pull * self.off(i)).powi(2)).sum::<f64>().sqrt()
    }

    /// `‖w − w_a‖²` with what rounding may do to it through the variance, whose part of `a` follows from the margins: each score is
    /// off, and the mean margin in its last digits. Whoever computes them in another way finds another `w_a`, this far away.
    fn sway(&self, problem: &MarginProblem<'_>, margins: &[f64], distance2: f64) -> f64 {
        if problem.variance == 0.0 {
            return distance2;
        }
        let reach: Vec<f64> = (0..margins.len()).map(|i| problem.weights[i] * self.length(i)).collect();
        // The scores here are off, and so are those of whoever checks: two errors that know nothing of each other.
        let own = std::f64::consts::SQRT_2 * self.noise(&reach);
        let common = f64::EPSILON * problem.mean(margins).abs() * reach.iter().sum::<f64>();
        (distance2.sqrt() + 2.0 * problem.variance * (own + common)).powi(2)
    }
}

/// The most that `‖Σ a_i φ(x_i)‖` can be.
fn longest(a: &[f64], norms2: &[f64]) -> f64 {
    a.iter().zip(norms2).map(|(a, q)| a.abs() * q.sqrt()).sum()
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
    let most = longest(&moved, &seen.numbers);
    let apart = |combined: &[f64]| -> f64 { w[..n].iter().zip(combined).map(|(w, c)| (w - c).powi(2)).sum() };
    let distance2 = if most * most <= NEGLIGIBLE * scale {
        (apart(&combined).sqrt() + most).powi(2)
    } else {
        linalg::axpy(1.0, &design.combine(|i| moved[i] * problem.y[i]), &mut combined);
        apart(&combined)
    };
    let rounding = ScoreRounding { norms2: &seen.numbers, size: norm2.sqrt(), intercept };
    let distance2 = rounding.sway(problem, &seen.margins, distance2);
    let noise = rounding.noise(&pulls(problem, &seen.margins, &v, &a));
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
    let most = longest(&moved, &diagonal);
    let distance2 =
        if most * most <= NEGLIGIBLE * norm2 { most * most } else { linalg::dot(&moved, &multiply(&moved)?).max(0.0) };
    let terms = (0..c.len()).map(|i| c[i] * c[i] * diagonal[i]).sum::<f64>().sqrt();
    let rounding = ScoreRounding { norms2: &diagonal, size: rows.amplification() * terms, intercept };
    let distance2 = rounding.sway(problem, &margins, distance2);
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
    let rounding = ScoreRounding { norms2: &diagonal, size: found.size, intercept };
    let apart2 = rounding.sway(problem, &margins, found.distance2);
    let noise = rounding.noise(&pulls(problem, &margins, &v, &a)) + ROUNDING * found.size.powi(2);
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
