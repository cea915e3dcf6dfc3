//! MAMC, the maximal average margin classifier: `min_w ½‖w‖² − C mean(γ)`, that is `w = C mean(y_i φ(x_i))`, in closed
//! form: a Parzen window (Pelckmans, Suykens & De Moor, "A Risk Minimization Principle for a Class of Parzen Estimators",
//! NIPS 2007). Form known from the paper's description, 90 % sure.
//!
//! `C` only scales the scores. The optimum is `−½‖w‖²`, equal to its dual, so the gap is what rounding leaves.
//!
//! Intercept: none, or the appended feature, for which the closed form holds too. A free one has no optimum (the mean
//! margin grows with it for ever as soon as one class is larger), so `free` means none here, and the model says so.
//! Every row is support.

use super::{
    Bias, Domain, DualPoint, Fit, Machine, Outcome, Parameter, ScoreFunctions, StatedLoss, Statement, Training, Uses,
};
use crate::Result;
use crate::design::Design;
use crate::kernel::{Kernel, KernelRows, Span};
use crate::linalg::dot;
use crate::problem::{Certificate, StopReason};
use crate::solver::certify::ROUNDING;

/// The machine.
pub static MAMC: Machine = Machine {
    name: "mamc",
    title: "maximal average margin",
    formula: "min ½‖w‖² − C mean(γ), in closed form w = C mean(y x)",
    paper: "K. Pelckmans, J. Suykens, B. De Moor, A Risk Minimization Principle for a Class of Parzen Estimators, NIPS 2007",
    parameters: &[Parameter::number("c", Domain::Positive, 1.0, "scale of the scores")],
    intercept: Bias::none_for_free,
    uses: Uses::NONE,
    fit,
    statement: |p, m| Some(Statement::margins(StatedLoss::Mean { mean: p.get("c")? / m })),
    ..Machine::PLAIN
};

fn fit(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    let bias = machine.intercept(training.bias);
    let y = training.signs();
    let scale = training.parameters.number("c") / training.total();
    let c: Vec<f64> = y.iter().zip(training.weights).map(|(y, s)| scale * s * y).collect();
    let (functions, scores) = expand(training, bias, c.clone())?;
    let v: Vec<f64> = training.weights.iter().map(|s| scale * s).collect();
    if let (Some(span), ScoreFunctions::Linear { weights, intercepts }) = (training.span, &functions) {
        let outcome = over_landmarks(span, &weights[0], intercepts[0], (&y, v), bias.feature())?;
        return Ok(Fit { functions, outcome });
    }
    // ‖w‖² = Σ c_i f(x_i), never below zero but for rounding.
    let norm2 = dot(&c, &scores).max(0.0);
    let margins = y.iter().zip(&scores).map(|(y, f)| y * f).collect();
    // Exact but for rounding, which is all there is where the classes' means fall together.
    let diagonal = KernelRows::new(training.kernel(), training.rows(), bias.offset());
    let terms: f64 = (0..c.len()).map(|i| c[i] * c[i] * diagonal.diagonal(i).abs()).sum();
    let noise = ROUNDING * diagonal.amplification() * terms;
    let certificate = Certificate { primal: -0.5 * norm2, dual: -0.5 * norm2 - noise };
    Ok(Fit { functions, outcome: outcome(certificate, margins, norm2, v) })
}

fn outcome(certificate: Certificate, margins: Vec<f64>, norm2: f64, v: Vec<f64>) -> Outcome {
    let plain = Outcome::plain("closed form".into(), StopReason::Exact, 1, margins, norm2.sqrt());
    Outcome { dual: Some(DualPoint::Slopes(vec![v])), ..plain.certified(Some(certificate)) }
}

/// Of the coefficients of landmark rows that are written: `½‖w‖² − Σ v_i γ_i`, and `½‖w − Σ v_i y_i φ(x_i)‖²` for the gap.
fn over_landmarks(
    span: &Span<'_>,
    weights: &[f64],
    intercept: f64,
    (y, v): (&[f64], Vec<f64>),
    constant: Option<f64>,
) -> Result<Outcome> {
    let c = span.landmarks.coefficients(weights);
    let scores = span.scores(std::slice::from_ref(&c))?;
    let margins: Vec<f64> = y.iter().zip(&scores).map(|(y, f)| y * (f + intercept)).collect();
    let q: Vec<f64> = y.iter().zip(&v).map(|(y, v)| y * v).collect();
    let found = span.measure(&c, &q)?;
    let own = constant.map_or(0.0, |value| intercept / value);
    let apart = constant.map_or(0.0, |value| own - value * q.iter().sum::<f64>());
    let norm2 = found.norm2 + own * own;
    let primal = 0.5 * norm2 - dot(&v, &margins);
    let reach = span.diagonal().into_iter().zip(&v).map(|(k, v)| v.abs() * (found.size * k.sqrt() + intercept.abs()));
    let noise = ROUNDING * (primal.abs() + found.size * found.size + reach.sum::<f64>());
    let dual = primal - 0.5 * (found.distance2 + apart * apart) - noise;
    Ok(outcome(Certificate { primal, dual }, margins, norm2, v))
}

/// `w = Σ c_i φ(x_i)` as score functions, and the scores of the training rows.
pub(super) fn expand(training: &Training<'_>, bias: Bias, c: Vec<f64>) -> Result<(ScoreFunctions, Vec<f64>)> {
    if training.kernel() == Kernel::Linear {
        let design = Design::new(training.rows(), bias);
        let (w, mut scores) = (design.combine(|i| c[i]), vec![0.0; c.len()]);
        design.scores(&w, &mut scores);
        let (weights, intercept) = design.split(&w);
        return Ok((ScoreFunctions::weights(weights.to_vec(), intercept), scores));
    }
    let rows = KernelRows::new(training.kernel(), training.rows(), bias.offset());
    let scores = rows.product(&c, training.control)?;
    let intercept = bias.offset() * c.iter().sum::<f64>();
    Ok((ScoreFunctions::coefficients(c, intercept), scores))
}
