//! What the convex machines share: from a loss to a fit. No formula of a machine stands here.

use super::{DualPoint, Expansion, Fit, Outcome, Training};
use crate::Result;
use crate::kernel::Span;
use crate::loss::MarginLoss;
use crate::solver::certify::{Dual, over_landmarks};
use crate::solver::fit::{Solved, solve};
use crate::solver::{Problem, StopReason};

/// Solves `½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)` and tells what training tells for every machine; `more` adds what
/// only this machine knows (its leave-one-out bound).
pub fn fit(
    training: &Training<'_>,
    loss: MarginLoss,
    variance: f64,
    more: impl FnOnce(&Solved, &[f64], &mut Outcome) -> Result<()>,
) -> Result<Fit> {
    let y = training.signs();
    let problem = Problem { y: &y, weights: training.weights, loss, variance, bias: training.bias };
    let mut solved =
        solve(&problem, training.rows, training.kernel, training.solver, &training.settings, training.control)?;
    if let Some(span) = training.span {
        as_written(&problem, span, training.settings.tol, &mut solved)?;
    }
    let mut outcome = outcome(&mut solved);
    more(&solved, &y, &mut outcome)?;
    Ok(Fit { expansion: solved.expansion, outcome })
}

/// Rounding may move a dual point by this part of `‖w‖`: its square is what the gap feels.
const STEADY: f64 = 1e-6;

/// Over landmark rows a solver knows the rows as they are mapped; what is claimed is that of the coefficients that are written.
fn as_written(problem: &Problem<'_>, span: &Span<'_>, tol: f64, solved: &mut Solved) -> Result<()> {
    let Expansion::Linear { weights, intercepts } = &solved.expansion else { return Ok(()) };
    let c = span.landmarks.coefficients(&weights[0]);
    let certified = |dual: Dual| over_landmarks(problem, span, &c, intercepts[0], dual);
    let (mut found, sway) = certified(if solved.slopes { Dual::Slopes } else { Dual::Variables(solved.v.clone()) })?;
    // Rounding in the map moves the margins, and with them the slopes: the variables of the map may be the better point, and
    // slopes that another way to compute the margins bends are no point that could be found again.
    if solved.slopes && (found.certificate.gap() > tol || sway > STEADY * found.norm) {
        solved.slopes = false;
        let (other, _) = certified(Dual::Variables(solved.v.clone()))?;
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
    Outcome {
        solver: solved.solver.clone(),
        objective: solved.certificate.map(|c| c.primal),
        dual_objective: solved.certificate.map(|c| c.dual),
        gap: solved.certificate.map(|c| c.gap()),
        stop: solved.stop,
        iterations: solved.iterations,
        support: match &solved.expansion {
            Expansion::Kernel { coefficients, .. } => coefficients[0].iter().filter(|c| **c != 0.0).count(),
            Expansion::Linear { .. } => solved.a.iter().filter(|a| **a != 0.0).count(),
        },
        loo_bound: None,
        loo_error: None,
        rounds: None,
        margins: std::mem::take(&mut solved.margins),
        loo_margins: None,
        weights: Vec::new(),
        norm: solved.norm,
        rest: None,
        dual: solved.certificate.map(|_| {
            let v = vec![std::mem::take(&mut solved.v)];
            if solved.slopes { DualPoint::Slopes(v) } else { DualPoint::Variables(v) }
        }),
        extras: Vec::new(),
    }
}

/// The total weight `m = Σ s_i`.
pub fn total(training: &Training<'_>) -> f64 {
    training.weights.iter().sum()
}

/// Nothing to add.
pub fn nothing(_: &Solved, _: &[f64], _: &mut Outcome) -> Result<()> {
    Ok(())
}

/// Whether bounds may be computed: they speak of the optimum.
pub fn optimal(outcome: &Outcome) -> bool {
    outcome.stop != StopReason::Iterations && outcome.gap.is_some()
}
