//! Many two-class fits as one.

use crate::data::Rows;
use crate::kernel::KernelRows;
use crate::linalg::{axpy, scattered};
use crate::machine::{Fit, MOST_DUAL_NUMBERS, Outcome, Training};
use crate::model::Decision;
use crate::problem::{Certificate, DualPoint, ScoreFunctions, StopReason, not_negative};
use crate::{Error, Result, with_rows};
use rayon::prelude::*;

/// One fit whose columns are those of `fits`; `rows` says which training rows each was fitted on (`None`: all).
pub(super) fn side_by_side(
    name: &str,
    decision: &Decision,
    training: &Training<'_>,
    fits: Vec<Fit>,
    rows: &[Option<&[usize]>],
    codes: &[&[u32]],
) -> Result<Fit> {
    let m = training.codes.len();
    let (expansions, mut outcomes): (Vec<_>, Vec<_>) = fits.into_iter().map(|f| (f.functions, f.outcome)).unzip();
    let expansion = columns(expansions, rows, m)?;
    // Over a kernel they are no more than the coefficients.
    let few = rows.len().saturating_mul(m) <= MOST_DUAL_NUMBERS || matches!(expansion, ScoreFunctions::Kernel { .. });
    let points = outcomes.iter_mut().map(|o| o.dual.take());
    let dual = if few { dual_points(points, rows, codes, m) } else { None };
    let left_out = left_out_columns(&mut outcomes, rows, m);
    let found = margins(decision, training, &expansion, &outcomes, rows, codes, left_out.as_deref())?;
    let support = expansion.support_rows().map_or_else(|| most_support(&outcomes), |rows| rows.len());
    let (margins, without): (Vec<f64>, Vec<Option<Without>>) = found.into_iter().unzip();
    let mut outcome = Outcome { dual, ..summary(name, &outcomes, margins, support, training.settings.asked()) };
    if let Some(without) = without.into_iter().collect::<Option<Vec<Without>>>() {
        let margins = without.iter().map(|row| row.margin).collect();
        let scores = without.into_iter().flat_map(|row| row.scores).collect();
        outcome.left_out(margins, scores, training.weights);
        // A margin is the difference of two scores.
        let error = outcomes.iter().filter_map(|o| o.loo_margin_error).reduce(f64::max);
        outcome.loo_margin_error = error.map(|error| std::f64::consts::SQRT_2 * error);
    }
    Ok(Fit { functions: expansion, outcome })
}

/// A row under the model that is fitted without it.
struct Without {
    margin: f64,
    scores: Vec<f64>,
}

/// The leave-one-out scores of each problem over all training rows, if every problem has them; none where a row is not in it.
fn left_out_columns(outcomes: &mut [Outcome], rows: &[Option<&[usize]>], m: usize) -> Option<Vec<Vec<Option<f64>>>> {
    if rows.len().saturating_mul(m) > MOST_DUAL_NUMBERS {
        return None;
    }
    let column = |(outcome, rows): (&mut Outcome, &Option<&[usize]>)| {
        let scores = outcome.loo_scores.take()?;
        Some(match rows {
            None => scores.into_iter().map(Some).collect(),
            Some(rows) => {
                let mut all = vec![None; m];
                rows.iter().zip(scores).for_each(|(&i, score)| all[i] = Some(score));
                all
            }
        })
    };
    outcomes.iter_mut().zip(rows).map(column).collect()
}

/// The dual points of all problems over all training rows, if every problem has one and all are kept alike. `codes` says
/// which of a problem's rows are positive: of a machine with one column a class, a row's variable is that of its own class.
fn dual_points(
    points: impl Iterator<Item = Option<DualPoint>>,
    rows: &[Option<&[usize]>],
    codes: &[&[u32]],
    m: usize,
) -> Option<DualPoint> {
    let (mut columns, mut slopes) = (Vec::new(), true);
    for ((point, rows), codes) in points.zip(rows).zip(codes) {
        let point = point?;
        slopes &= matches!(point, DualPoint::Slopes(_));
        let (DualPoint::Slopes(mut vectors) | DualPoint::Variables(mut vectors)) = point;
        if let [low, high] = vectors.as_mut_slice() {
            high.iter_mut().zip(low).zip(*codes).for_each(|((high, low), code)| {
                if *code == 0 {
                    *high = *low;
                }
            });
        }
        let vector = vectors.pop()?;
        columns.push(match rows {
            Some(rows) => scattered(&vector, rows.iter().copied(), m),
            None => vector,
        });
    }
    Some(if slopes { DualPoint::Slopes(columns) } else { DualPoint::Variables(columns) })
}

/// The columns of all fits over all training rows. A machine with one column a class gives the difference of its two.
fn columns(expansions: Vec<ScoreFunctions>, rows: &[Option<&[usize]>], m: usize) -> Result<ScoreFunctions> {
    let linear = matches!(expansions.first(), Some(ScoreFunctions::Linear { .. }));
    let (mut vectors, mut intercepts) = (Vec::new(), Vec::new());
    for (expansion, rows) in expansions.into_iter().zip(rows) {
        let same = linear == matches!(expansion, ScoreFunctions::Linear { .. });
        let (mut v, mut b) = expansion.into_parts();
        if let ([low, high], [b_low, b_high]) = (v.as_mut_slice(), b.as_mut_slice()) {
            axpy(-1.0, low, high);
            *b_high -= *b_low;
        }
        let (Some(vector), Some(intercept), true) = (v.pop(), b.pop(), same) else {
            return Err(Error::numeric("multiclass", "fits of different kinds"));
        };
        vectors.push(match rows {
            Some(rows) if !linear => scattered(&vector, rows.iter().copied(), m),
            _ => vector,
        });
        intercepts.push(intercept);
    }
    Ok(if linear {
        ScoreFunctions::Linear { weights: vectors, intercepts }
    } else {
        ScoreFunctions::Kernel { support: (), coefficients: vectors, intercepts }
    })
}

/// `γ_i = s_y − max_{l≠y} s_l` on the scores of the classes, and the same where the row is left out of every problem it is in.
fn margins(
    decision: &Decision,
    training: &Training<'_>,
    expansion: &ScoreFunctions,
    outcomes: &[Outcome],
    rows: &[Option<&[usize]>],
    codes: &[&[u32]],
    left_out: Option<&[Vec<Option<f64>>]>,
) -> Result<Vec<(f64, Option<Without>)>> {
    let lead = |i: usize, columns: &[f64]| {
        let scores = decision.class_scores(columns);
        let y = training.codes[i] as usize;
        let rivals = (0..scores.len()).filter(|&l| l != y).map(|l| scores[l]);
        scores[y] - rivals.fold(f64::NEG_INFINITY, f64::max)
    };
    let margin = |i: usize, columns: &[f64]| {
        let without = left_out.map(|left_out| {
            let scores: Vec<f64> = columns.iter().zip(left_out).map(|(score, out)| out[i].unwrap_or(*score)).collect();
            Without { margin: lead(i, &scores), scores }
        });
        (lead(i, columns), without)
    };
    match expansion {
        ScoreFunctions::Linear { weights, intercepts } => {
            let row = |i: usize| -> Result<(f64, Option<Without>)> {
                training.control.check()?;
                let score = |w: &Vec<f64>| with_rows!(training.rows(), x => x.dot(i, w));
                let columns: Vec<f64> = weights.iter().zip(intercepts).map(|(w, b)| score(w) + b).collect();
                Ok(margin(i, &columns))
            };
            (0..training.codes.len()).into_par_iter().map(row).collect()
        }
        // Where every problem is one of all rows, its margins are the scores but for their sign.
        ScoreFunctions::Kernel { .. } if rows.iter().all(Option::is_none) => {
            let score = |i: usize| -> Vec<f64> {
                let columns = outcomes.iter().zip(codes);
                columns
                    .map(|(outcome, codes)| if codes[i] == 1 { outcome.margins[i] } else { -outcome.margins[i] })
                    .collect()
            };
            Ok((0..training.codes.len()).map(|i| margin(i, &score(i))).collect())
        }
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            kernel_margins(training, coefficients, intercepts, margin)
        }
    }
}

/// Rows scored between two looks at the flag that stops: against 10,000 support rows some millions of kernel values, a few tens of
/// milliseconds.
const KERNEL_ROWS: usize = 256;

/// Scores a block of training rows at a time against the support rows.
fn kernel_margins<T>(
    training: &Training<'_>,
    coefficients: &[Vec<f64>],
    intercepts: &[f64],
    margin: impl Fn(usize, &[f64]) -> T,
) -> Result<Vec<T>> {
    let m = training.codes.len();
    let kept: Vec<usize> = (0..m).filter(|&i| coefficients.iter().any(|c| c[i] != 0.0)).collect();
    let support = training.rows().select(&kept);
    let support = KernelRows::new(training.kernel(), &support, 0.0);
    let coefficients: Vec<Vec<f64>> = coefficients.iter().map(|c| kept.iter().map(|&i| c[i]).collect()).collect();
    let mut margins = Vec::with_capacity(m);
    for from in (0..m).step_by(KERNEL_ROWS) {
        training.control.check()?;
        let chosen: Vec<usize> = (from..m.min(from + KERNEL_ROWS)).collect();
        let block = training.rows().select(&chosen);
        let mut scores =
            support.expand(&KernelRows::new(training.kernel(), &block, 0.0), &coefficients, training.control)?;
        for (i, columns) in chosen.iter().zip(scores.chunks_exact_mut(intercepts.len())) {
            columns.iter_mut().zip(intercepts).for_each(|(score, b)| *score += b);
            margins.push(margin(*i, columns));
        }
    }
    Ok(margins)
}

/// Weights do not tell which rows they come from: the problem with most support rows stands for all.
fn most_support(outcomes: &[Outcome]) -> usize {
    outcomes.iter().map(|o| o.support).max().unwrap_or(0)
}

/// The sums of the objectives where every problem has one, the gap of the sums, the worst reason to stop. The problems are
/// judged one by one: the sums may hide one that is far from its optimum.
pub(crate) fn summary(name: &str, outcomes: &[Outcome], margins: Vec<f64>, support: usize, tol: f64) -> Outcome {
    let sum = |value: fn(&Outcome) -> Option<f64>| outcomes.iter().map(value).sum::<Option<f64>>();
    // Problems without a bound have the least number there is for one.
    let (primal, dual) = (sum(|o| o.objective), sum(|o| o.dual_objective).map(|dual| dual.max(f64::MIN)));
    let certificate = primal.zip(dual).map(|(primal, dual)| Certificate { primal, dual });
    // Below zero is rounding; what is no number stays none.
    let gap = certificate.map(|certificate| not_negative(certificate.gap()));
    let worst = outcomes.iter().map(|o| o.stop).max().unwrap_or(StopReason::Exact);
    let inner = outcomes.first().map_or(String::new(), |o| o.solver.clone());
    let solver = format!("{name} of {} × {inner}", outcomes.len());
    let stop = if worst.converged() { worst.judge(gap, None, tol) } else { worst };
    let iterations = outcomes.iter().map(|o| o.iterations).sum();
    let norm = outcomes.iter().map(|o| o.norm * o.norm).sum::<f64>().sqrt();
    let plain = Outcome::plain(solver, stop, iterations, margins, norm);
    Outcome { objective: primal, dual_objective: dual, gap, support, ..plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(objective: f64, dual: f64, gap: f64, stop: StopReason) -> Outcome {
        let (objective, dual_objective, gap) = (Some(objective), Some(dual), Some(gap));
        Outcome { objective, dual_objective, gap, ..Outcome::plain(String::new(), stop, 1, Vec::new(), 1.0) }
    }

    #[test]
    fn the_worst_problem_speaks_for_all() {
        let judge = |outcomes: &[Outcome]| summary("ova", outcomes, Vec::new(), 0, 1e-3);
        let good = outcome(1000.0, 1000.0, 0.0, StopReason::Gap);
        assert_eq!(judge(&[good.clone(), good.clone()]).stop, StopReason::Gap);
        // The sums are close; one of the problems is not.
        let bad = outcome(0.1, 0.01, 0.9, StopReason::Iterations);
        let both = judge(&[good.clone(), bad]);
        assert!(both.gap.unwrap() <= 1e-3 && both.stop == StopReason::Iterations);
        // What is no number stays none.
        for broken in [outcome(f64::NAN, 1.0, 0.0, StopReason::Gap), outcome(f64::INFINITY, 1.0, 0.0, StopReason::Gap)]
        {
            let both = judge(&[good.clone(), broken]);
            assert!(!both.gap.unwrap().is_finite() && !both.stop.converged(), "{:?} {:?}", both.gap, both.stop);
        }
    }
}
