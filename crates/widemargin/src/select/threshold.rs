//! Where the decision between two classes is made: the threshold that is best for rows left out.

use super::ground::{Job, Split};
use crate::control::Control;
use crate::data::Examples;
use crate::machine::Outcome;
use crate::metrics::{ThresholdChoice, best_threshold};
use crate::train::{TrainOptions, train};
use crate::{Advice, Error, Result};
use rayon::prelude::*;

/// Folds for machines without leave-one-out margins.
const FOLDS: usize = 5;

/// The threshold for a machine that was trained with these options on two classes: the one given, or the best for the scores of
/// rows under models that did not see them, from the closed-form leave-one-out margins where the machine has them, else from
/// cross-validation with five folds. Rows count by their weight as given.
pub fn choose_threshold(
    choice: ThresholdChoice,
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    outcome: &Outcome,
    control: Control<'_>,
) -> Result<f64> {
    let mut job = Job::new(data, weights, options, control)?;
    if job.classes.len() != 2 {
        let reason = format!("a threshold decides between two classes, not {}", job.classes.len());
        return Err(Error::conflict(reason, Advice::NONE));
    }
    let metric = match choice {
        ThresholdChoice::Value(threshold) => return Ok(threshold),
        ThresholdChoice::Best(metric) => metric,
    };
    let positive: Vec<bool> = job.codes.iter().map(|&code| code == 1).collect();
    let scores = match &outcome.loo_margins {
        Some(margins) => {
            margins.iter().zip(&positive).map(|(margin, yes)| if *yes { *margin } else { -margin }).collect()
        }
        None => cross_validated(&mut job)?,
    };
    best_threshold(metric, &scores, &positive, &job.given_weights)
}

/// The score of each row under the model of the folds it is not in.
fn cross_validated(job: &mut Job<'_>) -> Result<Vec<f64>> {
    job.cross_validate(FOLDS.min(job.codes.len()), 1)?;
    let job = &*job;
    let fold = |split: &Split| {
        let (data, weights) = job.part(&split.train);
        let (model, _) = train(&data, Some(&weights), job.options, Control { observer: None, ..job.control })?;
        let scores = model.scores_with(&job.rows.select(&split.test), job.control)?;
        let lead = |row: &[f64]| model.decision.lead(row);
        Ok(scores.chunks_exact(model.scorer.columns()).map(lead).collect())
    };
    let folds: Vec<Vec<f64>> = job.splits.par_iter().map(fold).collect::<Result<_>>()?;
    let mut scores = vec![0.0; job.codes.len()];
    for (split, found) in job.splits.iter().zip(folds) {
        split.test.iter().zip(found).for_each(|(&i, score)| scores[i] = score);
    }
    Ok(scores)
}
