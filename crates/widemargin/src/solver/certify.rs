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

use super::passes::LinearRows;
use super::problem::{Certificate, Problem};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, KernelRows};
use crate::linalg;
use crate::machine::{Bias, Expansion};
use crate::{Result, with_rows};

/// A dual point as a solver leaves it: the part `v` that belongs to the loss. That of the variance follows from the margins.
#[derive(Clone, Debug, PartialEq)]
pub enum Dual {
    /// `v_i = −s_i φ'(γ_i)`
    Slopes,
    /// These.
    Variables(Vec<f64>),
}

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

/// Rounding errors of a sum, in units of the last place of what it would be if none of its terms cancelled, taken over rows as
/// if they were independent.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Certifies one score function (one column) with the given dual point.
pub fn certify(
    problem: &Problem<'_>,
    rows: &Matrix<'_>,
    kernel: Kernel,
    expansion: &Expansion,
    dual: Dual,
    control: Control<'_>,
) -> Result<Certified> {
    match expansion {
        Expansion::Linear { weights, intercepts } => {
            Ok(with_rows!(rows, x => linear(problem, x, &weights[0], intercepts[0], dual)))
        }
        Expansion::Kernel { coefficients, intercepts } => {
            with_kernel(problem, KernelRows::new(kernel, rows, 0.0), &coefficients[0], intercepts[0], dual, control)
        }
    }
}

/// `v` and `a` at these margins, feasible.
fn feasible(problem: &Problem<'_>, margins: &[f64], dual: Dual) -> (Vec<f64>, Vec<f64>) {
    let mut v = match dual {
        Dual::Variables(v) => v,
        Dual::Slopes => margins.iter().zip(problem.weights).map(|(g, s)| -s * problem.loss.slope(*g)).collect(),
    };
    let mut u = problem.variance_part(margins);
    problem.make_feasible(&mut u, &mut v);
    let a = u.iter().zip(&v).map(|(u, v)| u + v).collect();
    (v, a)
}

/// What is known of a point before it is judged.
struct Point {
    margins: Vec<f64>,
    v: Vec<f64>,
    a: Vec<f64>,
    /// `‖w‖²` and `‖w − w_a‖²`
    norm2: f64,
    distance2: f64,
    /// What rounding may have done to the objective.
    noise: f64,
}

fn judge(problem: &Problem<'_>, point: Point, norms2: Option<Vec<f64>>) -> Certified {
    let Point { margins, v, a, norm2, distance2, noise } = point;
    let risk = problem.risk(&margins);
    let primal = 0.5 * norm2 + risk;
    let gap = problem.row_gap(&margins, &v) + problem.variance_gap(&margins, &a, &v) + 0.5 * distance2;
    let noise = noise + ROUNDING * (0.5 * norm2 + risk.abs());
    // Where no dual point is at hand the bound is the trivial one, and the relative gap 1.
    let dual = if problem.is_feasible(&a) { primal - gap - noise } else { f64::MIN };
    Certified { certificate: Certificate { primal, dual }, margins, v, a, norm: norm2.sqrt(), norms2 }
}

fn linear<X: Rows>(problem: &Problem<'_>, x: &X, weights: &[f64], intercept: f64, dual: Dual) -> Certified {
    let design = LinearRows { x, y: problem.y, bias: problem.bias };
    let mut w = weights.to_vec();
    match problem.bias {
        Bias::None => {}
        Bias::Feature(value) => w.push(intercept / value),
        Bias::Free => w.push(intercept),
    }
    let regular = |w: &[f64]| -> usize { w.len() - usize::from(problem.bias == Bias::Free) };
    let guess = |i: usize, margin: f64| match &dual {
        Dual::Slopes => -problem.weights[i] * problem.loss.slope(margin),
        Dual::Variables(v) => v[i],
    };
    let seen = design.scan(&w, guess);
    let (v, a) = feasible(problem, &seen.margins, dual);
    let mut combined = seen.combined;
    let moved: Vec<f64> = a.iter().zip(&seen.a).map(|(a, guess)| a - guess).collect();
    let n = regular(&w);
    let norm2 = linalg::dot(&w[..n], &w[..n]);
    let scale = norm2 + linalg::dot(&combined[..n], &combined[..n]);
    let most: f64 = moved.iter().zip(&seen.norms2).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
    let apart = |combined: &[f64]| -> f64 { w[..n].iter().zip(combined).map(|(w, c)| (w - c).powi(2)).sum() };
    let distance2 = if most * most <= NEGLIGIBLE * scale {
        (apart(&combined).sqrt() + most).powi(2)
    } else {
        linalg::axpy(1.0, &design.combine(&moved), &mut combined);
        apart(&combined)
    };
    let length = norm2.sqrt();
    let reach = |(a, q): (&f64, &f64)| (a * (length * q.sqrt() + intercept.abs())).powi(2);
    let noise = ROUNDING * a.iter().zip(&seen.norms2).map(reach).sum::<f64>().sqrt();
    let point = Point { margins: seen.margins, v, a, norm2, distance2, noise };
    judge(problem, point, Some(seen.norms2))
}

fn with_kernel(
    problem: &Problem<'_>,
    rows: KernelRows<'_>,
    c: &[f64],
    intercept: f64,
    dual: Dual,
    control: Control<'_>,
) -> Result<Certified> {
    let scores = rows.product(c, control)?;
    let margins: Vec<f64> = scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect();
    let (v, a) = feasible(problem, &margins, dual);
    let moved: Vec<f64> = (0..c.len()).map(|i| a[i] * problem.y[i] - c[i]).collect();
    let norm2 = linalg::dot(c, &scores).max(0.0);
    let diagonal: Vec<f64> = (0..c.len()).map(|i| rows.diagonal(i).max(0.0)).collect();
    let most: f64 = moved.iter().zip(&diagonal).map(|(moved, q)| moved.abs() * q.sqrt()).sum();
    let distance2 = if most * most <= NEGLIGIBLE * norm2 {
        most * most
    } else {
        linalg::dot(&moved, &rows.product(&moved, control)?).max(0.0)
    };
    // The weight of a regularised constant feature, of the point and of its dual.
    let (own, apart) = match problem.bias {
        Bias::Feature(value) => {
            let balance: f64 = a.iter().zip(problem.y).map(|(a, y)| a * y).sum();
            (intercept / value, intercept / value - value * balance)
        }
        Bias::None | Bias::Free => (0.0, 0.0),
    };
    let reach = |i: usize| c[i].powi(2) * diagonal[i] + (a[i] * intercept).abs();
    let noise = ROUNDING * (0..c.len()).map(reach).sum::<f64>();
    let point = Point { margins, v, a, norm2: norm2 + own * own, distance2: distance2 + apart * apart, noise };
    Ok(judge(problem, point, None))
}
