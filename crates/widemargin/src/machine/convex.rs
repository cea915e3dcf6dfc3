//! What the convex machines share: from a form to a fit. No formula of a machine stands here.

use super::{Fit, Machine, Outcome, Theorem, Training, ldm, odm};
use crate::kernel::Span;
use crate::problem::{DualPoint, MarginProblem, ScoreFunctions, StopReason};
use crate::solver::certify::over_landmarks;
use crate::solver::{LeftOutMargins, Solved};
use crate::{Advice, Error, Result};

/// Solves `½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)` as the machine's form has it, and tells what training tells of every
/// machine: certificate, leave-one-out bound, and leave-one-out margins where they are cheap.
pub fn fit(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    let form = machine
        .form(training.parameters, training.total())
        .ok_or_else(|| Error::conflict(format!("{} is not one convex problem", machine.name()), Advice::NONE))?;
    let y = training.signs();
    let problem = form.problem(&y, training.weights, training.bias);
    let mut solved =
        training.workspace.fit(&problem, training.solver, training.start, &training.settings, training.control)?;
    if let Some(span) = training.span {
        as_written(&problem, span, training.settings.tol, &mut solved)?;
    }
    let mut outcome = outcome(&mut solved);
    // Bounds and leave-one-out margins speak of the optimum.
    if outcome.stop != StopReason::Iterations && outcome.gap.is_some() {
        outcome.loo_bound = match form.bound {
            Some(Theorem::Band(costs)) => odm::bound(training, &solved, costs),
            Some(Theorem::Hinge(terms)) => ldm::bound(training, &y, &solved, &outcome.margins, terms)?,
            None => None,
        };
        let (workspace, settings) = (training.workspace, &training.settings);
        let found = workspace.left_out_at_optimum(&problem, &solved, &outcome.margins, settings, training.control)?;
        if let Some(LeftOutMargins { margins, error }) = found {
            let scores = margins.iter().zip(&y).map(|(g, y)| g * y).collect();
            outcome.left_out(margins, scores, training.weights);
            outcome.loo_margin_error = error;
        }
    }
    Ok(Fit { functions: solved.functions, outcome })
}

/// Rounding may move a dual point by this part of `‖w‖`: its square is what the gap feels.
const STEADY: f64 = 1e-6;

/// Over landmark rows a solver knows the rows as they are mapped; what is claimed is that of the coefficients that are written.
fn as_written(problem: &MarginProblem<'_>, span: &Span<'_>, tol: f64, solved: &mut Solved) -> Result<()> {
    let ScoreFunctions::Linear { weights, intercepts } = &solved.functions else { return Ok(()) };
    let c = span.landmarks.coefficients(&weights[0]);
    let certified = |dual: Option<Vec<f64>>| over_landmarks(problem, span, &c, intercepts[0], dual);
    let (mut found, sway) = certified((!solved.slopes).then(|| solved.v.clone()))?;
    // Rounding in the map moves the margins, and with them the slopes: the variables of the map may be the better point, and
    // slopes that another way to compute the margins bends are no point that could be found again.
    if solved.slopes && (found.certificate.gap() > tol || sway > STEADY * found.norm) {
        solved.slopes = false;
        let (other, _) = certified(Some(solved.v.clone()))?;
        if other.certificate.gap() < found.certificate.gap() {
            found = other;
        }
    }
    let stop = if solved.stop == StopReason::Gap { StopReason::Precision } else { solved.stop };
    solved.stop = stop.judge(Some(found.certificate.gap()), None, tol);
    solved.certificate = Some(found.certificate);
    (solved.a, solved.v, solved.margins, solved.norm) = (found.a, found.v, found.margins, found.norm);
    Ok(())
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
