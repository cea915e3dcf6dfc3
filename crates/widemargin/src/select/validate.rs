//! One machine at given parameters, judged by rows it did not see.

use super::job::{Job, Split};
use super::probability::{Learned, learn_unseen};
use crate::Result;
use crate::control::Control;
use crate::data::Examples;
use crate::kernel::Kernel;
use crate::metrics::{Figures, Predictions, codes_of};
use crate::train::{TrainOptions, train_examples};
use rayon::prelude::*;

/// The scores of each fold of stratified cross-validation, repeat after repeat.
///
/// `weights` are the row weights, all 1 if `None`; scores count rows by them. Each model learns what is asked for from its own
/// training rows; [`Figures::log_loss`] and [`Figures::brier`] take probabilities.
pub fn cross_validate(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    (folds, repeats): (usize, usize),
    learned: Learned,
    control: Control<'_>,
) -> Result<Vec<Figures>> {
    let mut options = options.clone();
    if options.kernel != Kernel::Linear {
        // Folds are fitted at the same time, each with its part of the memory.
        options.settings.memory /= (folds * repeats).max(1) as u64;
    }
    let mut job = Job::new(data, weights, &options, control)?;
    job.cross_validate(folds, repeats)?;
    let job = &job;
    job.splits.par_iter().map(|split| fold_scores(job, split, learned)).collect()
}

fn fold_scores(job: &Job<'_>, split: &Split, learned: Learned) -> Result<Figures> {
    let (part, given) = job.part(&split.train);
    let control = Control { observer: None, ..job.control };
    let examples = Examples::of(&part)?;
    let mut trained = train_examples(examples, Some(&given), job.options, control)?;
    let fitted = (&mut trained.model, &trained.outcome);
    learn_unseen(examples, Some(&given), job.options, learned, fitted, control)?;
    let model = &trained.model;
    let raw = model.scores_with(&job.rows.select(&split.test), control)?;
    let (_, truth) = codes_of(&model.labels, &job.labels.select(&split.test));
    let weights: Vec<f64> = split.test.iter().map(|&i| job.given_weights[i]).collect();
    Ok(Figures::of(&Predictions {
        classes: model.labels.len(),
        truth: &truth,
        predicted: &model.classes(&raw),
        scores: Some(&model.class_scores(&raw)),
        probabilities: model.probabilities(&raw).as_deref(),
        weights: Some(&weights),
    }))
}
