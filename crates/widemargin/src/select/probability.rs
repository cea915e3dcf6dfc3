//! Probabilities from scores: a softmax with one slope, fitted to scores of rows that were left out.

use super::ground::{Job, Split};
use crate::Result;
use crate::control::Control;
use crate::data::Examples;
use crate::machine::Outcome;
use crate::model::{Calibration, Model};
use crate::train::{TrainOptions, train};
use rayon::prelude::*;

/// Folds for machines without leave-one-out margins.
const FOLDS: usize = 5;

/// Fits `P(c | x) = exp(A f_c(x)) / Σ_l exp(A f_l(x))` for a machine that was trained with these options; with two classes
/// and one score function that is `P(larger label | x) = 1 / (1 + exp(−A f(x)))`.
///
/// The scores come from the closed-form leave-one-out margins where the machine has them, else from cross-validation
/// with five folds. `A > 0`, and nothing is added to a score: the class of the largest score is the most probable one, so
/// probabilities and predictions never disagree.
pub fn calibrate(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    outcome: &Outcome,
    control: Control<'_>,
) -> Result<Calibration> {
    let mut job = Job::new(data, weights, options, control)?;
    let leads = match &outcome.loo_margins {
        Some(margins) if job.classes.len() == 2 => margins.iter().map(|&margin| vec![margin]).collect(),
        _ => cross_validated(&mut job)?,
    };
    Ok(fit(&leads, &job.codes, &job.weights, job.classes.len()))
}

/// By how much the score of each row's class leads those of the others, under the model of the folds the row is not in;
/// nothing where that model does not know all classes.
fn cross_validated(job: &mut Job<'_>) -> Result<Vec<Vec<f64>>> {
    job.cross_validate(FOLDS.min(job.codes.len()), 1)?;
    let mut leads = vec![Vec::new(); job.codes.len()];
    let job = &*job;
    let fold = |split: &Split| {
        let (data, weights) = job.part(&split.train);
        let (model, _) = train(&data, Some(&weights), job.options, job.control)?;
        test_leads(job, &model, &split.test)
    };
    let folds: Vec<Vec<Vec<f64>>> = job.splits.par_iter().map(fold).collect::<Result<_>>()?;
    for (split, found) in job.splits.iter().zip(folds) {
        split.test.iter().zip(found).for_each(|(&i, row)| leads[i] = row);
    }
    Ok(leads)
}

fn test_leads(job: &Job<'_>, model: &Model, rows: &[usize]) -> Result<Vec<Vec<f64>>> {
    if model.labels.len() < job.classes.len() {
        return Ok(vec![Vec::new(); rows.len()]);
    }
    let scores = model.class_scores(&model.scores(&job.rows.select(rows))?);
    let columns = scores.len() / rows.len().max(1);
    let row = |(&i, scores): (&usize, &[f64])| match (scores, job.codes[i] as usize) {
        ([score], 1) => vec![*score],
        ([score], _) => vec![-score],
        (scores, own) => (0..scores.len()).filter(|&l| l != own).map(|l| scores[own] - scores[l]).collect(),
    };
    Ok(rows.iter().zip(scores.chunks_exact(columns.max(1))).map(row).collect())
}

/// The slope by Newton's method (Lin, Lin & Weng 2007), with Platt's targets: of `N` rows of a class none is certain,
/// `t = (N + 1) / (N + 2)` is expected, and the others share the rest. In terms of the leads `r_l = f_own − f_l` a row
/// adds `ln(1 + Σ exp(−A r_l)) + A (1 − t)/(k − 1) Σ r_l`, which is convex in `A`.
fn fit(leads: &[Vec<f64>], codes: &[u32], weights: &[f64], classes: usize) -> Calibration {
    let mut sizes = vec![0.0; classes];
    codes.iter().zip(weights).for_each(|(&c, s)| sizes[c as usize] += s);
    let share: Vec<f64> = sizes.iter().map(|size| 1.0 / (size + 2.0) / (classes - 1).max(1) as f64).collect();
    let rows = || {
        let all = leads.iter().zip(codes).zip(weights);
        all.filter(|((leads, _), _)| !leads.is_empty()).map(|((leads, &c), &s)| (leads, share[c as usize], s))
    };
    let total: f64 = rows().map(|(_, _, s)| s).sum();
    let total = total.max(f64::MIN_POSITIVE);
    let value = |a: f64| rows().map(|(r, t, s)| s * (surprise(r, a) + a * t * r.iter().sum::<f64>())).sum::<f64>();
    let size = |r: &[f64]| r.iter().map(|r| r.abs()).sum::<f64>() / r.len() as f64;
    let typical = (rows().map(|(r, _, s)| s * size(r)).sum::<f64>() / total).max(f64::MIN_POSITIVE);
    let (smallest, mut slope) = (1e-6 / typical, 1.0 / typical);
    for _ in 0..100 {
        let (mut first, mut second) = (0.0, 0.0);
        for (r, t, s) in rows() {
            let (mean, square) = moments(r, slope);
            first += s * (t * r.iter().sum::<f64>() - mean);
            second += s * (square - mean * mean);
        }
        let mut step = -first / second.max(1e-12 * total * typical * typical).max(f64::MIN_POSITIVE);
        let here = value(slope);
        // The function is convex: halving the step must lead down, until rounding hides it.
        while step.abs() > 1e-12 * slope {
            let next = (slope + step).max(smallest);
            if value(next) <= here + 1e-4 * first * (next - slope) {
                break;
            }
            step *= 0.5;
        }
        let next = (slope + step).max(smallest);
        let moved = (next - slope).abs();
        slope = next;
        if moved <= 1e-10 * slope {
            break;
        }
    }
    Calibration { slope, log_loss: rows().map(|(r, _, s)| s * surprise(r, slope)).sum::<f64>() / total }
}

/// `−ln P(own class) = ln(1 + Σ exp(−A r_l))`
fn surprise(leads: &[f64], slope: f64) -> f64 {
    let largest = leads.iter().fold(0.0f64, |most, r| most.max(-slope * r));
    let sum: f64 = leads.iter().map(|r| (-slope * r - largest).exp()).sum();
    if largest > 0.0 { largest + (sum + (-largest).exp()).ln() } else { sum.ln_1p() }
}

/// `Σ P(l) r_l` and `Σ P(l) r_l²` over the other classes `l`.
fn moments(leads: &[f64], slope: f64) -> (f64, f64) {
    let log = surprise(leads, slope);
    leads.iter().fold((0.0, 0.0), |(mean, square), r| {
        let p = (-slope * r - log).exp();
        (mean + p * r, square + p * r * r)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_known_slope_is_found_again() {
        let (mut random, m) = (Random::new(5, 0), 20_000);
        let scores: Vec<f64> = (0..m).map(|_| 2.0 * random.normal()).collect();
        let codes: Vec<u32> =
            scores.iter().map(|f| u32::from(random.unit() < 1.0 / (1.0 + (-1.7 * f).exp()))).collect();
        let margins: Vec<f64> = scores.iter().zip(&codes).map(|(f, &c)| if c == 1 { *f } else { -f }).collect();
        let leads: Vec<Vec<f64>> = margins.iter().map(|&margin| vec![margin]).collect();
        let found = fit(&leads, &codes, &vec![1.0; m], 2);
        assert!((found.slope - 1.7).abs() < 0.06, "{}", found.slope);
    }

    #[test]
    fn a_known_slope_of_three_classes_is_found_again() {
        let (mut random, m) = (Random::new(6, 0), 20_000);
        let (mut leads, mut codes) = (Vec::new(), Vec::new());
        for _ in 0..m {
            let scores = [0; 3].map(|_| 2.0 * random.normal());
            let odds = scores.map(|f| (0.6 * f).exp());
            let mut left = random.unit() * odds.iter().sum::<f64>();
            let own = odds.iter().position(|o| {
                left -= o;
                left < 0.0
            });
            let own = own.unwrap_or(2);
            leads.push((0..3).filter(|&l| l != own).map(|l| scores[own] - scores[l]).collect::<Vec<_>>());
            codes.push(own as u32);
        }
        leads[7] = Vec::new();
        let found = fit(&leads, &codes, &vec![1.0; m], 3);
        assert!((found.slope - 0.6).abs() < 0.02, "{}", found.slope);
    }

    #[test]
    fn extremes_stay_finite_and_positive() {
        let codes = [0, 1, 0, 1];
        for margins in [[1.0; 4], [-1.0; 4], [0.0; 4], [1e200; 4], [1e-200; 4], [5.0, 5.0, -1.0, 2.0]] {
            let found = fit(&margins.map(|margin| vec![margin]), &codes, &[1.0; 4], 2);
            assert!(
                found.slope > 0.0 && found.slope.is_finite() && found.log_loss.is_finite(),
                "{margins:?} {found:?}"
            );
        }
    }
}
