//! One machine on one split: tuned on the training rows if asked for, fitted, tested.

use crate::contestant::Contestant;
use serde::{Deserialize, Serialize};
use std::time::Instant;
use widemargin::control::Control;
use widemargin::data::{Dataset, Labels, train_test};
use widemargin::kernel::Kernel;
use widemargin::machine::{Outcome, Parameters};
use widemargin::margins::MarginStatistics;
use widemargin::metrics::{Evaluation, Figures};
use widemargin::model::Model;
use widemargin::select::{planned_points, tune};
use widemargin::train::train;
use widemargin::{Error, Result};

/// Most points of the curve that is kept of a margin distribution: every row, up to these.
const CURVE: usize = 1000;
/// Rows of the fit by which times are guessed.
const PILOT: f64 = 400.0;

impl Contestant {
    /// Tunes, fits and tests it.
    pub(crate) fn try_out(&self, training: &Dataset, test: &Dataset, control: Control<'_>) -> Result<Trial> {
        let start = Instant::now();
        let attempt = self.attempt(training, control)?;
        let (model, outcome) = (&attempt.model, &attempt.outcome);
        let seconds = start.elapsed().as_secs_f64() - attempt.search_seconds;
        let truth = labels(test)?;
        let columns = model.scores(&test.rows)?;
        let (predicted, by_class) = (model.classes(&columns), model.class_scores(&columns));
        let scores = Evaluation::new(&model.labels, truth, &predicted, Some(&by_class), None).scores;
        let margins = MarginStatistics::new(&outcome.margins, &outcome.weights).normalised(outcome.norm);
        Ok(Trial {
            accuracy: scores.accuracy.unwrap_or(0.0),
            scores,
            params: model.parameters.clone(),
            gamma: gamma(model.kernel),
            margins,
            curve: curve(outcome),
            gap: outcome.gap,
            converged: outcome.stop.converged(),
            points: attempt.points,
            fits: attempt.fits,
            search_seconds: attempt.search_seconds,
            seconds,
        })
    }

    /// A rough guess of the processor seconds of one split with this share of the rows to train on.
    pub(crate) fn expected_seconds(
        &self,
        data: &Dataset,
        labels: &Labels,
        share: f64,
        control: Control<'_>,
    ) -> Result<f64> {
        let rows = share * data.rows.rows() as f64;
        let few = share * (PILOT / rows).min(1.0);
        let (training, _) = split(data, labels, few, self.options.settings.seed, 0)?;
        let start = Instant::now();
        // A machine that cannot work on these data takes no time.
        if let Err(error) = train(&training, None, &self.options, Control { observer: None, ..control }) {
            return if matches!(error, Error::Interrupted) { Err(error) } else { Ok(0.0) };
        }
        let power = if self.options.kernel == Kernel::Linear { 1.0 } else { 2.5 };
        let fit = start.elapsed().as_secs_f64() * (rows / training.rows.rows().max(1) as f64).powf(power);
        let Some(tuning) = &self.tuning else { return Ok(fit) };
        let points = planned_points(&training, &self.options, &tuning.search())? as f64;
        let shared = self.options.machine.form(&self.options.parameters, 1.0).is_some() && labels.names().len() == 2;
        let saved = if shared { 0.3 } else { 1.0 };
        let fold = 1.0 - 1.0 / tuning.folds.max(2) as f64;
        Ok(fit * (1.0 + saved * fold.powf(power) * points * (tuning.folds * tuning.repeats) as f64))
    }

    fn attempt(&self, training: &Dataset, control: Control<'_>) -> Result<Attempt> {
        let Some(tuning) = &self.tuning else {
            let (model, outcome) = train(training, None, &self.options, control)?;
            return Ok(Attempt { model, outcome, points: 0, fits: 0, search_seconds: 0.0 });
        };
        let tuned = tune(training, None, &self.options, &tuning.search(), control)?;
        Ok(Attempt {
            model: tuned.model,
            outcome: tuned.outcome,
            points: tuned.trials.len(),
            fits: tuned.fits,
            search_seconds: tuned.seconds,
        })
    }
}

/// A fitted model and what finding it took.
struct Attempt {
    model: Model,
    outcome: Outcome,
    points: usize,
    fits: usize,
    search_seconds: f64,
}

/// What one contestant did on one split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Share of the test rows it got right.
    pub accuracy: f64,
    /// That and the other scores; none in files of older programs.
    #[serde(default)]
    pub scores: Figures,
    /// The parameters it was fitted with.
    pub params: Parameters,
    /// The kernel's `γ`, if it has one.
    pub gamma: Option<f64>,
    /// The margins of the training rows, divided by `‖w‖`.
    pub margins: MarginStatistics,
    /// All of them, ascending, or quantiles in equal steps of more than a thousand; of the first split only.
    pub curve: Vec<f64>,
    /// The relative duality gap of the fit, for machines that have one.
    pub gap: Option<f64>,
    /// Whether the fit reached its tolerance.
    pub converged: bool,
    /// Points tried in the search.
    pub points: usize,
    /// Problems solved in the search.
    pub fits: usize,
    /// Seconds of the search.
    pub search_seconds: f64,
    /// Seconds of the fit.
    pub seconds: f64,
}

fn gamma(kernel: Kernel) -> Option<f64> {
    match kernel {
        Kernel::Linear => None,
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => Some(gamma),
        Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => Some(gamma),
    }
}

fn curve(outcome: &Outcome) -> Vec<f64> {
    let by = if outcome.norm > 0.0 { 1.0 / outcome.norm } else { 0.0 };
    let mut sorted: Vec<f64> = outcome.margins.iter().map(|margin| margin * by).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() <= CURVE {
        return sorted;
    }
    let last = (sorted.len() - 1) as f64;
    (0..CURVE).map(|step| sorted[(last * step as f64 / (CURVE - 1) as f64).round() as usize]).collect()
}

/// The labels of a data set, without which there is nothing to learn or to test.
pub(crate) fn labels(data: &Dataset) -> Result<&Labels> {
    data.labels.as_ref().ok_or_else(|| unusable(data, "it has no labels"))
}

/// Data that cannot be used, and why.
pub(crate) fn unusable(data: &Dataset, reason: impl Into<String>) -> Error {
    Error::Data { file: data.name.clone(), reason: reason.into() }
}

/// The training and test rows of one repeat: a share of each class's rows to train on, the others to test.
pub(crate) fn split(
    data: &Dataset,
    labels: &Labels,
    train: f64,
    seed: u64,
    repeat: usize,
) -> Result<(Dataset, Dataset)> {
    let (training, test) = train_test(labels, train, seed, repeat as u64);
    if test.is_empty() {
        return Err(unusable(data, "no rows are left for the test"));
    }
    let part = |rows: &[usize]| Dataset::new(&data.name, data.rows.select(rows), Some(labels.select(rows)));
    Ok((part(&training), part(&test)))
}
