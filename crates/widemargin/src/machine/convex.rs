//! What the convex machines share: from a form to a fit. No formula of a machine stands here.

use super::{Fit, Machine, Outcome, Training};
use crate::problem::{DualPoint, MarginProblem, ScoreFunctions, StopReason};
use crate::solver::Solved;
use crate::{Error, Result};

/// Solves `½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)` as the machine's form has it, and tells what training tells of every
/// machine: certificate, leave-one-out bound, and leave-one-out margins where they are cheap.
pub fn fit<M: Machine + ?Sized>(machine: &M, training: &Training<'_>) -> Result<Fit> {
    let total = total(training);
    let form = machine
        .form(training.parameters, total)
        .ok_or_else(|| Error::Usage(format!("{} is not one convex problem", machine.name())))?;
    let y = training.signs();
    let (weights, bias) = (training.weights, training.bias);
    let problem = MarginProblem { y: &y, weights, loss: form.loss, variance: form.variance, bias };
    let mut solved = training.workspace.fit(&problem, training.solver, &training.settings, training.control)?;
    let mut outcome = outcome(&mut solved);
    // Bounds and leave-one-out margins speak of the optimum.
    if outcome.stop != StopReason::Iterations && outcome.gap.is_some() {
        outcome.loo_bound = machine.bound(training, &y, &solved, &outcome.margins)?;
        let (margins, factor) = (&outcome.margins, solved.factor.as_ref());
        if let Some(margins) = training.workspace.left_out(&problem, margins, factor, false, training.control)? {
            let wrong = |(g, s): (&f64, &f64)| if *g <= 0.0 { *s } else { 0.0 };
            outcome.loo_error = Some(margins.iter().zip(weights).map(wrong).sum::<f64>() / total);
            outcome.loo_margins = Some(margins);
        }
    }
    Ok(Fit { functions: solved.functions, outcome })
}

/// What training tells of every machine; it takes the margins.
fn outcome(solved: &mut Solved) -> Outcome {
    let support = match &solved.functions {
        ScoreFunctions::Kernel { coefficients, .. } => coefficients[0].iter().filter(|c| **c != 0.0).count(),
        ScoreFunctions::Linear { .. } => solved.a.iter().filter(|a| **a != 0.0).count(),
    };
    let margins = std::mem::take(&mut solved.margins);
    let dual = solved.certificate.map(|_| {
        let v = vec![std::mem::take(&mut solved.v)];
        if solved.slopes { DualPoint::Slopes(v) } else { DualPoint::Variables(v) }
    });
    Outcome {
        support,
        dual,
        ..Outcome::plain(solved.solver.clone(), solved.stop, solved.iterations, margins, solved.norm)
    }
    .certified(solved.certificate)
}

/// The total weight `m = Σ s_i`.
pub fn total(training: &Training<'_>) -> f64 {
    training.weights.iter().sum()
}
