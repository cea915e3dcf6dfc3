//! Margins, probabilities, prediction sets and the threshold between two classes, from scores of rows that were left out.

use super::job::{Job, Split};
use crate::calibration::{self, ProbabilityForm, Unseen};
use crate::control::Control;
use crate::data::{Examples, Matrix, unusable};
use crate::linalg::falling_zero;
use crate::machine::Outcome;
use crate::margins::share_wrong;
use crate::metrics::{Figures, Metric, Predictions, ThresholdChoice, best_threshold};
use crate::model::{Calibration, Model, UnseenBy};
use crate::solver::Settings;
use crate::train::{TrainOptions, row_weights, train};
use crate::{Advice, Error, Result};
use rayon::prelude::*;

/// Folds for machines without leave-one-out margins: as many as a search has if nobody says.
pub(super) const FOLDS: usize = 5;

/// The scores of rows under models like this one that did not see them: in closed form where the machine left each row out of its
/// own model, else from cross-validation with five folds. Rows of weight 0 have those of the model itself.
pub fn unseen(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    model: &Model,
    outcome: &Outcome,
    control: Control<'_>,
) -> Result<Unseen> {
    let given = weights.map_or_else(|| vec![1.0; data.rows.rows()], <[f64]>::to_vec);
    if let Some(unseen) = Unseen::left_out(model, outcome, data.labels, &given) {
        return Ok(unseen);
    }
    // Of the models of folds nothing is left out in turn.
    let options = TrainOptions { settings: Settings { left_out: false, ..options.settings }, ..options.clone() };
    let mut job = Job::new(data, weights, &options, control)?;
    let folds = FOLDS.min(job.codes.len());
    job.cross_validate(folds, 1)?;
    let found = cross_validated(&job)?;
    let (rows, columns) = (data.rows.rows(), model.class_columns());
    let (mut scores, mut codes) = (vec![0.0; rows * columns], data.labels.codes_in(&model.labels));
    let mut dropped = vec![true; rows];
    for (&i, row) in job.kept.iter().zip(&found) {
        dropped[i] = false;
        match row.as_slice() {
            [] => codes[i] = None,
            row => scores[i * columns..(i + 1) * columns].copy_from_slice(row),
        }
    }
    let others: Vec<usize> = (0..rows).filter(|&i| dropped[i]).collect();
    let own = model.class_scores(&model.scores_with(&data.rows.select(&others), control)?);
    for (&i, row) in others.iter().zip(own.chunks_exact(columns)) {
        scores[i * columns..(i + 1) * columns].copy_from_slice(row);
    }
    Ok(Unseen { scores, columns, codes, weights: given, classes: job.classes.len(), by: UnseenBy::Folds(folds) })
}

/// The margins of rows under models that did not see them.
#[derive(Clone, Debug, PartialEq)]
pub struct UnseenMargins {
    /// One a row, those of weight 0 included: by how much the score of its class leads the best of the others.
    pub margins: Vec<f64>,
    /// The share of the rows, by their weights and those of the classes, whose margin is not above zero.
    pub error: f64,
    /// How rows were left out.
    pub by: UnseenBy,
}

/// The margins of scores from [`unseen`]; an error where a row has none.
pub fn unseen_margins(data: Examples<'_>, options: &TrainOptions, unseen: &Unseen) -> Result<UnseenMargins> {
    let found = unseen.margins();
    let margins = found.iter().enumerate().map(|(i, margin)| margin.ok_or_else(|| no_margin(data, unseen, i)));
    let margins: Vec<f64> = margins.collect::<Result<_>>()?;
    let weights = row_weights(data.name, data.labels, Some(&unseen.weights), &options.class_weight)?;
    Ok(UnseenMargins { error: share_wrong(&margins, &weights), margins, by: unseen.by })
}

/// Why row `i` has no margin.
fn no_margin(data: Examples<'_>, unseen: &Unseen, i: usize) -> Error {
    let codes = data.labels.codes();
    let weighted = |code: u32| (0..codes.len()).filter(|&j| codes[j] == code && unseen.weights[j] > 0.0).count();
    let name = |code: u32| &data.labels.names()[code as usize];
    let alone = (0..data.labels.names().len() as u32).find(|&code| weighted(code) == 1);
    let reason = match alone.filter(|_| weighted(codes[i]) > 0) {
        Some(alone) => format!(
            "margins from folds need at least two rows of each label, and {} is that of one: without it no model knows the label",
            name(alone)
        ),
        None => format!("row {} has no margin: every row of its label {} has weight 0", i + 1, name(codes[i])),
    };
    unusable(data.name, &reason)
}

/// What a model learns besides, from rows that it did not see.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Learned {
    /// The margins of rows left out, which are no part of the model.
    pub margins: bool,
    /// Probabilities and prediction sets.
    pub probability: Option<ProbabilityForm>,
    /// Where the decision between two classes is made.
    pub threshold: Option<ThresholdChoice>,
}

/// Adds that to a model that was trained with these options. Rows count by their weight as given. Hands back the scores of rows left
/// out if anything was asked for that is made of them.
pub fn learn_unseen(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    learned: Learned,
    (model, outcome): (&mut Model, &Outcome),
    control: Control<'_>,
) -> Result<Option<Unseen>> {
    if learned.threshold.is_some() {
        check_two(model)?;
    }
    if let Some(ThresholdChoice::Value(given)) = learned.threshold {
        model.threshold = Some(given);
    }
    let best = matches!(learned.threshold, Some(ThresholdChoice::Best(_)));
    if learned.probability.is_none() && !best && !learned.margins {
        return Ok(None);
    }
    let unseen = unseen(data, weights, options, model, outcome, control)?;
    if let Some(form) = learned.probability {
        calibrate(&unseen, form, data.rows, model)?;
    }
    if let Some(ThresholdChoice::Best(metric)) = learned.threshold {
        model.threshold = Some(threshold(&unseen, metric)?);
    }
    Ok(Some(unseen))
}

/// The threshold of a model of two classes: the one given, or the best for the scores of rows left out.
pub fn choose_threshold(choice: ThresholdChoice, model: &Model, unseen: &Unseen) -> Result<f64> {
    check_two(model)?;
    match choice {
        ThresholdChoice::Value(threshold) => Ok(threshold),
        ThresholdChoice::Best(metric) => threshold(unseen, metric),
    }
}

fn check_two(model: &Model) -> Result<()> {
    match model.labels.len() {
        2 => Ok(()),
        classes => {
            let reason = format!("a threshold decides between two classes, not {classes}");
            Err(Error::conflict(reason, Advice::NONE))
        }
    }
}

fn calibrate(unseen: &Unseen, form: ProbabilityForm, rows: &Matrix<'_>, model: &mut Model) -> Result<()> {
    let mut conformity = calibration::conformity(unseen);
    if unseen.by != UnseenBy::LeaveOneOut && unseen.columns == 1 {
        let scores = model.class_scores(&model.scores(rows)?);
        anchor(&mut conformity.calibration, &scores, unseen);
    }
    model.calibration = Some(match form {
        ProbabilityForm::Sigmoid => conformity.calibration.clone(),
        ProbabilityForm::Isotonic => calibration::probabilities(unseen, form),
    });
    model.conformity = Some(conformity);
    Ok(())
}

/// The threshold that is best for the scores of two classes.
fn threshold(unseen: &Unseen, metric: Metric) -> Result<f64> {
    let (mut scores, mut positive, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for (i, code) in unseen.codes.iter().enumerate().filter_map(|(i, code)| code.map(|code| (i, code))) {
        scores.push(if let [smaller, larger] = unseen.row(i) { larger - smaller } else { unseen.row(i)[0] });
        positive.push(code == 1);
        counted.push(unseen.weights[i]);
    }
    best_threshold(metric, &scores, &positive, &counted)
}

/// A mean probability that is off by more than this part of the rarer class is no accident.
const OFF: f64 = 0.25;

/// Moves the offset of two classes to where the probabilities of all rows add up to what there is of the larger label, if they are
/// far from it: models of the folds may have scores of another size than the model has (an SVM of few positive rows scores all alike).
fn anchor(calibration: &mut Calibration, scores: &[f64], unseen: &Unseen) {
    let rows = || (0..scores.len()).filter_map(|i| unseen.codes[i].map(|code| (scores[i], code, unseen.weights[i])));
    let (total, wanted) =
        rows().fold((0.0, 0.0), |(all, larger), (_, code, s)| (all + s, larger + s * f64::from(code)));
    let (slope, [offset]) = (calibration.slope, &mut calibration.offsets[..]) else { return };
    let lacking = |o: f64| wanted - rows().map(|(f, _, s)| s / (1.0 + (-slope * f - o).exp())).sum::<f64>();
    if lacking(*offset).abs() > OFF * wanted.min(total - wanted) {
        *offset = falling_zero(lacking, *offset, 1.0, 1e-9 * total);
    }
}

/// Every score of rows under models that did not see them, decided and made probable as the model does it.
pub fn figures_left_out(unseen: &Unseen, model: &Model) -> Figures {
    let rows: Vec<usize> = (0..unseen.codes.len()).filter(|&i| unseen.codes[i].is_some()).collect();
    let of = |i: &usize| unseen.row(*i);
    let scores: Vec<f64> = rows.iter().flat_map(of).copied().collect();
    let decided = |row: &[f64]| match row {
        [score] => u32::from(*score > model.threshold.unwrap_or(0.0)),
        row => (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a))).unwrap_or(0) as u32,
    };
    let calibration = model.calibration.as_ref();
    let probabilities = calibration
        .map(|calibration| rows.iter().flat_map(|i| calibration.probabilities(unseen.row(*i))).collect::<Vec<_>>());
    Figures::of(&Predictions {
        classes: unseen.classes,
        truth: &rows.iter().filter_map(|&i| unseen.codes[i]).collect::<Vec<_>>(),
        predicted: &rows.iter().map(of).map(decided).collect::<Vec<_>>(),
        scores: Some(&scores),
        probabilities: probabilities.as_deref(),
        weights: Some(&rows.iter().map(|&i| unseen.weights[i]).collect::<Vec<_>>()),
    })
}

/// The class scores of each row under the model of the folds it is not in; nothing where that model does not know all classes.
fn cross_validated(job: &Job<'_>) -> Result<Vec<Vec<f64>>> {
    let mut scores = vec![Vec::new(); job.codes.len()];
    let fold = |split: &Split| {
        let (data, weights) = job.part(&split.train);
        let (model, _) = train(&data, Some(&weights), job.options, Control { observer: None, ..job.control })?;
        test_scores(job, &model, &split.test)
    };
    let folds: Vec<Vec<Vec<f64>>> = job.splits.par_iter().map(fold).collect::<Result<_>>()?;
    for (split, found) in job.splits.iter().zip(folds) {
        split.test.iter().zip(found).for_each(|(&i, row)| scores[i] = row);
    }
    Ok(scores)
}

fn test_scores(job: &Job<'_>, model: &Model, rows: &[usize]) -> Result<Vec<Vec<f64>>> {
    if model.labels.len() < job.classes.len() {
        return Ok(vec![Vec::new(); rows.len()]);
    }
    let scores = model.class_scores(&model.scores(&job.rows.select(rows))?);
    let columns = scores.len() / rows.len().max(1);
    Ok(scores.chunks_exact(columns.max(1)).map(<[f64]>::to_vec).collect())
}
