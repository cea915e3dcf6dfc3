//! MAMC, the maximal average margin classifier: `min_w ½‖w‖² − C mean(γ)`, that is `w = C mean(y_i φ(x_i))`, in closed
//! form: a Parzen window (Pelckmans, Suykens & De Moor, "A Risk Minimization Principle for a Class of Parzen Estimators",
//! NIPS 2007). Form known from the paper's description, 90 % sure.
//!
//! `C` only scales the scores. The optimum is `−½‖w‖²`, equal to its dual, so the gap is what rounding leaves.
//!
//! Intercept: none, or the appended feature, for which the closed form holds too. A free one has no optimum (the mean
//! margin grows with it for ever as soon as one class is larger), so `free` means none here, and the model says so.
//! Every row is support.

use super::{Bias, Domain, DualPoint, Expansion, Fit, Machine, Outcome, Parameter, Preset, Training, Uses};
use crate::Result;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::dot;
use crate::solver::certify::ROUNDING;
use crate::solver::design::{Design, kernel_scores};
use crate::solver::{Certificate, StopReason};

/// The machine.
pub struct Mamc;

static PARAMETERS: &[Parameter] =
    &[Parameter { name: "c", domain: Domain::Positive, default: Preset::Number(1.0), help: "scale of the scores" }];

impl Machine for Mamc {
    fn name(&self) -> &'static str {
        "mamc"
    }
    fn title(&self) -> &'static str {
        "maximal average margin"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² − C mean(γ), in closed form w = C mean(y x)"
    }
    fn paper(&self) -> &'static str {
        "K. Pelckmans, J. Suykens, B. De Moor, A Risk Minimization Principle for a Class of Parzen \
         Estimators, NIPS 2007"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn intercept(&self, asked: Bias) -> Bias {
        if asked == Bias::Free { Bias::None } else { asked }
    }
    fn uses(&self) -> Uses {
        Uses::NONE
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let constant = self.intercept(training.bias).feature();
        let y = training.signs();
        let scale = training.parameters.number("c") / training.weights.iter().sum::<f64>();
        let c: Vec<f64> = y.iter().zip(training.weights).map(|(y, s)| scale * s * y).collect();
        let (expansion, scores) = expand(training, constant, c.clone())?;
        // ‖w‖² = Σ c_i f(x_i), never below zero but for rounding.
        let norm2 = dot(&c, &scores).max(0.0);
        let margins = y.iter().zip(&scores).map(|(y, f)| y * f).collect();
        let mut outcome = Outcome::plain("closed form".into(), StopReason::Exact, 1, margins, norm2.sqrt());
        // Exact but for rounding, which is all there is where the classes' means fall together.
        let diagonal = KernelRows::new(training.kernel, training.rows, constant.map_or(0.0, |value| value * value));
        let terms: f64 = (0..c.len()).map(|i| c[i] * c[i] * diagonal.diagonal(i).abs()).sum();
        let noise = ROUNDING * diagonal.amplification() * terms;
        let certificate = Certificate { primal: -0.5 * norm2, dual: -0.5 * norm2 - noise };
        outcome.objective = Some(certificate.primal);
        outcome.dual_objective = Some(certificate.dual);
        outcome.gap = Some(certificate.gap());
        let v = training.weights.iter().map(|s| scale * s).collect();
        outcome.dual = Some(DualPoint::Slopes(vec![v]));
        Ok(Fit { expansion, outcome })
    }
}

/// `w = Σ c_i φ(x_i)` as an expansion, and the scores of the training rows; `constant` is the appended feature.
pub(super) fn expand(training: &Training<'_>, constant: Option<f64>, c: Vec<f64>) -> Result<(Expansion, Vec<f64>)> {
    if training.kernel == Kernel::Linear {
        let mut design = Design::new(training.rows, constant, training.control);
        let (mut w, mut scores) = (vec![0.0; design.width()], vec![0.0; c.len()]);
        design.combine(&c, &mut w)?;
        design.scores(&w, &mut scores)?;
        let (weights, intercept) = design.split(w);
        return Ok((Expansion::Linear { weights: vec![weights], intercepts: vec![intercept] }, scores));
    }
    let offset = constant.map_or(0.0, |value| value * value);
    let rows = KernelRows::new(training.kernel, training.rows, offset);
    let scores = kernel_scores(&rows, &c, training.control)?;
    let intercept = offset * c.iter().sum::<f64>();
    Ok((Expansion::Kernel { coefficients: vec![c], intercepts: vec![intercept] }, scores))
}
