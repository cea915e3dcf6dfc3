//! The multi-class optimal margin distribution machine (Zhang & Zhou, ICML 2017).

use super::{
    Axis, Classes, Domain, DualPoint, Fit, MOST_DUAL_NUMBERS, Machine, Outcome, Parameter, Series, SolverChoice,
    StatedForm, StatedLoss, StatedRivals, Statement, Training, Uses,
};
use crate::kernel::Kernel;
use crate::loss::{Frozen, OdmLoss, RivalLoss};
use crate::problem::{Bias, Certificate, ScoreFunctions, StopReason};
use crate::solver::certify::{CertifiedMany, ManyProblem};
use crate::solver::many::{ManyDescent, RowDual};
use crate::{Advice, Error, Remedy, Result};

/// mcODM: `min ½ Σ_l ‖w_l‖² + (λ/m) Σ_i (ξ_i² + μ ε_i²)/(1−θ)²` with `ξ_i = max(0, 1−θ−γ_i)`,
/// `ε_i = max(0, γ_i−1−θ)` and the margin `γ_i = w_y·φ(x_i) − max_{l≠y} w_l·φ(x_i)` (Eq. 1).
///
/// The upper side makes it non-convex, so it is solved in rounds, each a convex problem. `relaxation = cccp` freezes
/// the rival *class* `r_i`, which bounds Eq. 1 from above and touches it at the last round: the objective never rises.
/// `relaxation = paper` freezes the rival's *score* `M_i` (Eq. 2); the objective may rise. The first round starts from
/// `w = 0`, where all rivals tie and the lowest class counts as the rival, or, for linear machines that Newton's method suits and
/// more rounds than one, from a point that was come to with rivals that follow it. With two classes the rival class is
/// known, and one round is exact.
///
/// `dual_objective` and `gap` are those of the last round's convex problem; `objective` is Eq. 1. The model has one
/// score column a class, for two classes as well.
pub static MC_ODM: Machine = Machine {
    name: "mcodm",
    title: "multi-class optimal margin distribution machine",
    formula: "min ½Σ‖w_l‖² + (λ/m) Σ (ξ² + μ ε²)/(1−θ)²",
    paper: "T. Zhang, Z.-H. Zhou, Multi-Class Optimal Margin Distribution Machine, ICML 2017",
    parameters: &[
        Parameter::settled("lambda", Domain::Positive, "max(64, m/16)", "λ: weight of the loss"),
        Parameter::number(
            "mu",
            Domain::Unit,
            0.4,
            "μ: weight of margins that are too large against those too small; 0 drops them",
        ),
        Parameter::number(
            "theta",
            Domain::BelowOne,
            0.4,
            "θ: half the width of the band of margins around 1 that cost nothing",
        ),
        Parameter::choice(
            "relaxation",
            &["cccp", "paper"],
            "cccp",
            "what a round freezes: the rival class (never rises) or the rival's score (as the paper has it)",
        ),
        Parameter::number("rounds", Domain::Count, 50.0, "at most this many rounds"),
    ],
    classes: Classes::Many,
    grid: &[
        Axis::new("lambda", Series::powers(2, 14, 6), Series::powers(0, 20, 2), Series::powers(0, 20, 2)).per_row(1.0),
        Axis::new("mu", Series::List(&[0.4]), Series::steps(0.2, 0.8, 0.2), Series::steps(0.2, 0.8, 0.2)),
        Axis::new("theta", Series::List(&[0.4]), Series::steps(0.2, 0.8, 0.2), Series::steps(0.2, 0.8, 0.2)),
    ],
    weighs_means: &["lambda"],
    // Under the RBF kernel as accurate as pairs of SVMs on mnist and more so on connect-4 and covtype, in about the time of λ = 64, which is
    // 5 to 8 points behind; m/4 gains two more points in two to three times the time (`docs/defaults.md`).
    settle: |parameters, total| parameters.settle("lambda", (total / 16.0).max(64.0)),
    uses: Uses::DESCENT,
    fit,
    statement: |p, m| {
        let (lambda, mu, theta) = (p.get("lambda")?, p.get("mu")?, p.get("theta")?);
        let c = lambda / (m * (1.0 - theta) * (1.0 - theta));
        let two = StatedForm { loss: StatedLoss::Band { c1: c, c2: mu * c, d: theta }, variance: 0.0, ridge: 0.5 };
        Some(Statement::Rivals { loss: StatedRivals::Odm { c, mu, theta }, two, frozen: p.is("relaxation", "paper") })
    },
    ..Machine::PLAIN
};

fn fit(_: &Machine, training: &Training<'_>) -> Result<Fit> {
    let by_class = training.parameters.word("relaxation") == "cccp";
    if !by_class && training.bias == Bias::Free {
        let reason = "mcodm's relaxation 'paper' leaves a free intercept undetermined (lowering all of them removes \
                      the upper side)";
        let instead = [Remedy::Use("relaxation", "cccp".into()), Remedy::Use("bias", Bias::None.to_string())];
        return Err(Error::conflict(reason, instead));
    }
    let frozen = if by_class {
        Frozen::Class(training.codes.iter().map(|&y| u32::from(y == 0)).collect())
    } else {
        Frozen::Score(vec![0.0; training.codes.len()])
    };
    let descent = start(training, loss(training, frozen))?;
    rounds(training, descent)
}

/// The loss of a round: `c_i = s_i λ / (m (1−θ)²)`, `m = Σ s_i`.
fn loss(training: &Training<'_>, frozen: Frozen) -> OdmLoss {
    let number = |name| training.parameters.number(name);
    let (lambda, mu, theta) = (number("lambda"), number("mu"), number("theta"));
    let unit = lambda / (training.total() * (1.0 - theta) * (1.0 - theta));
    OdmLoss { cost: training.weights.iter().map(|s| s * unit).collect(), mu, theta, frozen }
}

/// Block coordinate descent over the training's rows, from `w = 0`.
pub(super) fn start<'a, L: RivalLoss>(training: &Training<'a>, loss: L) -> Result<ManyDescent<'a, L>> {
    if !matches!(training.solver, SolverChoice::Auto | SolverChoice::Dcd) {
        let reason = format!("multi-class machines are solved by coordinate descent, not by {}", training.solver);
        return Err(Error::conflict(reason, Advice::values("solver", [SolverChoice::Auto, SolverChoice::Dcd])));
    }
    training.workspace.descent(
        loss,
        training.codes,
        training.classes,
        training.bias,
        training.settings,
        training.control,
    )
}

/// `v_i^l`, unless they are too many to keep.
pub(super) fn dual_point(training: &Training<'_>, v: Vec<Vec<f64>>) -> Option<DualPoint> {
    let few = training.classes.saturating_mul(training.codes.len()) <= MOST_DUAL_NUMBERS;
    // Over a kernel they are the coefficients, which are kept in any case.
    (few || training.kernel() != Kernel::Linear).then_some(DualPoint::Variables(v))
}

/// What can be said of score functions that are written.
pub(super) fn certified<L: RivalLoss>(
    training: &Training<'_>,
    loss: &L,
    functions: &ScoreFunctions,
    duals: &[RowDual],
) -> Result<CertifiedMany> {
    let problem = ManyProblem {
        loss,
        codes: training.codes,
        classes: training.classes,
        bias: training.bias,
        rows: training.rows(),
        kernel: training.kernel(),
        span: training.span,
        control: training.control,
    };
    problem.certify(functions, duals)
}

/// What a round left.
struct SolvedRound {
    objective: f64,
    /// As the solver believes; what is claimed is computed in the end.
    certificate: Certificate,
    margins: Vec<f64>,
    rivals: Vec<u32>,
}

/// Solves the present round to `tol` and measures Eq. 1.
fn solve_round(descent: &mut ManyDescent<'_, OdmLoss>, tol: f64) -> Result<(SolvedRound, StopReason)> {
    let (certificate, stop) = descent.solve(tol)?;
    let (margins, rivals) = descent.margins()?;
    let loss: f64 = margins.iter().enumerate().map(|(i, &g)| descent.loss().at(i, g, g)).sum();
    Ok((SolvedRound { objective: 0.5 * descent.certified_norm2() + loss, certificate, margins, rivals }, stop))
}

/// A round may be solved this many times over, each time ten times as well, before its failure to lower the objective
/// counts as the end: to a thousandth of the tolerance, below which a round that still rises does so by rounding.
const TIGHTENINGS: usize = 3;
/// The gap to which the first of several rounds is solved, and of the others a part of what the one before gained: their rivals change
/// anyway. (Handwritten digits: half the time.) Where they rest, the last is solved to the tolerance.
const EARLY: f64 = 0.1;
const FALL_PART: f64 = 0.3;
/// Linear machines that Newton's method suits begin with rivals that follow the point, to this gap: one or two rounds then suffice. (mnist
/// at λ = m: 46 s instead of 114 s, and a lower objective; one at 0.01 needs seven rounds on digits instead of one.)
const SETTLED: f64 = 1e-3;
/// Rounds that change the objective by no more than this part of it are at rest, however small the tolerance of each: below it lie
/// the rounding errors of sums over many rows.
const RESTING: f64 = 1e-9;

/// Algorithm 1: round after round, until the objective rests.
fn rounds(training: &Training<'_>, mut descent: ManyDescent<'_, OdmLoss>) -> Result<Fit> {
    let (tol, most) = (training.settings.tol, training.parameters.number("rounds") as usize);
    let mut trace: Vec<f64> = Vec::new();
    let mut last: Option<Left> = None;
    // Until the rounds rest, a round's own gap says nothing of Eq. 1.
    let (mut stop, mut resting) = (StopReason::Iterations, Some(false));
    let by_class = matches!(descent.loss().frozen, Frozen::Class(_));
    // Frozen scores are followed to the letter; of a single round there is nothing to hurry to.
    let early = if by_class && training.classes > 2 && descent.loss().mu > 0.0 { tol.max(EARLY) } else { tol };
    let settles = early > tol && most > 1 && descent.settles();
    let early = if settles { tol.max(SETTLED) } else { early };
    if settles {
        descent.settle(early)?;
    }
    let mut aim = early;
    while trace.len() < most {
        if trace.len() + 1 == most {
            aim = tol;
        }
        let (mut round, mut why) = solve_round(&mut descent, aim)?;
        let before = last.as_ref().map(|left| left.objective);
        if let (true, Some(before)) = (by_class, before) {
            let mut tighter = tol;
            for _ in 0..TIGHTENINGS {
                if round.objective <= before || why != StopReason::Gap {
                    break;
                }
                tighter = (0.1 * tighter.min(round.certificate.gap())).max(1e-14);
                (round, why) = solve_round(&mut descent, tighter)?;
            }
            if round.objective > before {
                // A round that was not solved may rise for that reason alone.
                if why != StopReason::Iterations {
                    (stop, resting) = (StopReason::Rest, Some(true));
                    // The point before is as good for this round's problem, which says better how good that is: its own may have been
                    // solved only roughly.
                    last = last.map(|left| left.judged_by(&descent));
                }
                break;
            }
        }
        let settled = settled(&descent, &round);
        let fall = before.map_or(1.0, |before| (before - round.objective).abs() / before.abs());
        let rest = fall <= tol.max(RESTING);
        if (settled || rest) && aim > tol {
            aim = tol;
            continue;
        }
        trace.push(round.objective);
        aim = (FALL_PART * fall).clamp(tol, early);
        let rivals = round.rivals.clone();
        let scores = if by_class { Vec::new() } else { rival_scores(&descent, training.codes)? };
        last = Some(Left::of(&round, &descent));
        // A first round, with rivals that are none, may be the hardest: only a limit on all rounds ends them early.
        let limited = why == StopReason::Iterations && descent.is_spent();
        if limited || settled || rest {
            (stop, resting) = match why {
                // The only rival there is, or no upper side: one convex problem, and its gap is that of Eq. 1.
                why if settled && (training.classes == 2 || descent.loss().mu == 0.0) => (why, None),
                StopReason::Gap => (StopReason::Rest, Some(true)),
                why => (why, Some(settled || rest)),
            };
            break;
        }
        let frozen = if by_class { Frozen::Class(rivals) } else { Frozen::Score(scores) };
        descent.replace(loss(training, frozen))?;
    }
    let left = last.ok_or_else(|| Error::numeric("mcodm", "no round was solved"))?;
    left.fit(training, (stop, resting), descent.passes(), trace)
}

/// Whether the next round would be the same problem where it matters: there is no upper side, or every row whose rival changed
/// lies within it under the old and the new rival.
fn settled(descent: &ManyDescent<'_, OdmLoss>, round: &SolvedRound) -> bool {
    let OdmLoss { mu, theta, frozen, .. } = descent.loss();
    let row = |(i, margin): (usize, &f64)| {
        let same = descent.loss().partner(i) == Some(round.rivals[i]);
        same || (descent.beta(i) == 0.0 && *margin <= 1.0 + theta)
    };
    *mu == 0.0 || matches!(frozen, Frozen::Class(_)) && round.margins.iter().enumerate().all(row)
}

/// `M_i = max_{l≠y} w_l·φ(x_i)`
fn rival_scores(descent: &ManyDescent<'_, OdmLoss>, codes: &[u32]) -> Result<Vec<f64>> {
    let visit = |out: &mut Vec<f64>, i: usize, scores: &mut [f64]| {
        scores[codes[i] as usize] = f64::NEG_INFINITY;
        out.push(scores.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    };
    Ok(descent.scan(visit)?.into_iter().flatten().collect())
}

/// What a round left behind, to be certified if it was the last.
struct Left {
    objective: f64,
    functions: ScoreFunctions,
    duals: Vec<RowDual>,
    frozen: Frozen,
    support: usize,
    method: &'static str,
}

impl Left {
    fn of(round: &SolvedRound, descent: &ManyDescent<'_, OdmLoss>) -> Self {
        Self {
            objective: round.objective,
            functions: descent.expansion(),
            duals: descent.duals().to_vec(),
            frozen: descent.loss().frozen.clone(),
            support: descent.support(),
            method: descent.method(),
        }
    }

    /// The same functions beside the problem and the dual variables that the descent has come to.
    fn judged_by(self, descent: &ManyDescent<'_, OdmLoss>) -> Self {
        Self { duals: descent.duals().to_vec(), frozen: descent.loss().frozen.clone(), ..self }
    }

    /// Eq. 1 and the gap of the round's convex problem, as the score functions that are written have them.
    fn fit(
        self,
        training: &Training<'_>,
        (stop, rest): (StopReason, Option<bool>),
        passes: usize,
        mut trace: Vec<f64>,
    ) -> Result<Fit> {
        let by_class = matches!(self.frozen, Frozen::Class(_));
        let loss = loss(training, self.frozen);
        let found = certified(training, &loss, &self.functions, &self.duals)?;
        let risk: f64 = found.margins.iter().enumerate().map(|(i, &g)| loss.at(i, g, g)).sum();
        let objective = 0.5 * found.norm2 + risk;
        // The solver's own figure has the rounding of its kernel values.
        if let Some(last) = trace.last_mut() {
            *last = objective;
        }
        let relaxation = training.parameters.word("relaxation");
        let solver = format!("{}, {} {relaxation} rounds", self.method, trace.len());
        // Where rounding alone may have moved the objective further than that, neither rounds nor passes help.
        let hidden = found.noise > training.settings.asked() * found.certificate.primal.abs();
        let (stop, rest) = if hidden { (StopReason::Precision, None) } else { (stop, rest) };
        let outcome = Outcome {
            objective: Some(objective),
            dual_objective: Some(found.certificate.dual),
            gap: Some(found.certificate.gap()),
            support: self.support,
            rounds: Some(trace),
            rest,
            // The problem of a round that freezes scores is one that nobody could pose again.
            dual: if by_class { dual_point(training, found.v) } else { None },
            extras: vec![("round_objective", found.certificate.primal)],
            ..Outcome::plain(solver, stop, passes, found.margins, found.norm2.sqrt())
        };
        Ok(Fit { functions: self.functions, outcome })
    }
}
