//! Probabilities from scores: a sigmoid through zero, fitted to scores of rows that were left out.

use super::general::test_margins;
use super::ground::{Job, Split};
use super::judge::softplus;
use crate::control::Control;
use crate::data::Dataset;
use crate::machine::Outcome;
use crate::model::Calibration;
use crate::train::{TrainOptions, train};
use crate::{Error, Result};
use rayon::prelude::*;

/// Folds for machines without leave-one-out margins.
const FOLDS: usize = 5;

/// Fits `P(larger label | x) = 1 / (1 + exp(−A f(x)))` for a machine of two classes that was trained with these options.
///
/// The scores come from the closed-form leave-one-out margins where the machine has them, else from cross-validation
/// with five folds. `A > 0`, and the sigmoid has no offset: a probability above one half always belongs to a score above
/// zero, so probabilities and predictions never disagree.
pub fn calibrate(
    data: &Dataset,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    outcome: &Outcome,
    control: Control<'_>,
) -> Result<Calibration> {
    let mut job = Job::new(data, weights, options, control)?;
    if job.classes.len() != 2 {
        return Err(Error::Usage(format!("probabilities are for two classes; the data has {}", job.classes.len())));
    }
    let margins = match &outcome.loo_margins {
        Some(margins) => margins.clone(),
        None => cross_validated(&mut job)?,
    };
    Ok(fit(&margins, &job.codes, &job.weights))
}

/// The margin of each row under the model of the folds it is not in.
fn cross_validated(job: &mut Job<'_>) -> Result<Vec<f64>> {
    job.cross_validate(FOLDS.min(job.codes.len()), 1)?;
    let mut margins = vec![0.0; job.codes.len()];
    let job = &*job;
    let fold = |split: &Split| {
        let (data, weights) = job.part(&split.train);
        let (model, _) = train(&data, Some(&weights), job.options, job.control)?;
        test_margins(job, &model, &split.test)
    };
    let folds: Vec<Vec<f64>> = job.splits.par_iter().map(fold).collect::<Result<_>>()?;
    for (split, found) in job.splits.iter().zip(folds) {
        split.test.iter().zip(found).for_each(|(&i, margin)| margins[i] = margin);
    }
    Ok(margins)
}

/// The slope by Newton's method (Lin, Lin & Weng 2007), with Platt's targets: of `N` rows of a class none is certain,
/// `(N + 1) / (N + 2)` is expected. In terms of margins `γ = y f` a row expects its own class with that probability.
fn fit(margins: &[f64], codes: &[u32], weights: &[f64]) -> Calibration {
    let mut sizes = [0.0; 2];
    codes.iter().zip(weights).for_each(|(&c, s)| sizes[c as usize & 1] += s);
    let target = sizes.map(|size| (size + 1.0) / (size + 2.0));
    let rows = || (0..margins.len()).map(|i| (margins[i], target[codes[i] as usize & 1], weights[i]));
    let total: f64 = sizes.iter().sum();
    // −t ln p − (1−t) ln(1−p) with p = 1/(1 + e^(−Aγ)) is softplus(−Aγ) + (1−t) Aγ.
    let value = |a: f64| rows().map(|(g, t, s)| s * (softplus(-a * g) + (1.0 - t) * a * g)).sum::<f64>();
    let typical = rows().map(|(g, _, s)| s * g.abs()).sum::<f64>() / total.max(f64::MIN_POSITIVE);
    let smallest = 1e-6 / typical.max(f64::MIN_POSITIVE);
    let mut slope = 1.0 / typical.max(f64::MIN_POSITIVE);
    for _ in 0..100 {
        let (mut first, mut second) = (0.0, 0.0);
        for (g, t, s) in rows() {
            let p = 1.0 / (1.0 + (-slope * g).exp());
            first += s * g * (p - t);
            second += s * g * g * p * (1.0 - p);
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
    let log_loss = rows().map(|(g, _, s)| s * softplus(-slope * g)).sum::<f64>() / total.max(f64::MIN_POSITIVE);
    Calibration { slope, log_loss }
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
        let found = fit(&margins, &codes, &vec![1.0; m]);
        assert!((found.slope - 1.7).abs() < 0.06, "{}", found.slope);
    }

    #[test]
    fn extremes_stay_finite_and_positive() {
        let codes = [0, 1, 0, 1];
        for margins in [[1.0; 4], [-1.0; 4], [0.0; 4], [1e200; 4], [1e-200; 4], [5.0, 5.0, -1.0, 2.0]] {
            let found = fit(&margins, &codes, &[1.0; 4]);
            assert!(
                found.slope > 0.0 && found.slope.is_finite() && found.log_loss.is_finite(),
                "{margins:?} {found:?}"
            );
        }
    }
}
