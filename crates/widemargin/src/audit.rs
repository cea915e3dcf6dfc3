//! Which labels are probably wrong: rows that models which did not see them would have labelled otherwise.

use crate::calibration::{Unseen, label_noise, lead};
use crate::control::Control;
use crate::data::{Examples, Matrix, Rows, Scaling, ScalingKind};
use crate::kernel::Kernel;
use crate::model::{Model, UnseenBy};
use crate::select::{AverageOptions, Search, SearchRows, average, tune_examples, unseen};
use crate::train::{Gamma, TrainOptions, train_examples};
use crate::{Result, with_rows};
use rayon::prelude::*;

/// Up to so many rows each is left out of an averaged model in turn; of more, out of one model or by folds.
const AVERAGED_ROWS: usize = 1500;
/// Rows that a search for the model of many rows is judged on.
const SEARCHED_ROWS: usize = 1000;
/// Rows that contradict a label, nearest first, that are named.
const NAMED: usize = 3;

/// What an audit found.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The rows that have a weight, the most suspicious first.
    pub suspects: Vec<Suspect>,
    /// The number of labels expected to be wrong, rows counted by their weight: the sum of the probabilities.
    pub expected_wrong: f64,
    /// How rows were left out.
    pub by: UnseenBy,
    /// The model in words.
    pub model: String,
    /// The labels, as the model orders them.
    pub labels: Vec<String>,
}

impl Audit {
    /// What was foretold of each row by a model that did not see it, and whether it is so: of two classes the probability of the
    /// larger label, of more that of the likely one.
    pub fn forecasts(&self) -> (Vec<f64>, Vec<bool>) {
        let forecast = |s: &Suspect| match self.labels.as_slice() {
            [_, larger] if s.label == *larger => (s.own, true),
            [_, _] => (1.0 - s.own, false),
            _ => (s.most, s.label == s.likely),
        };
        self.suspects.iter().map(forecast).unzip()
    }
}

/// A row and what speaks against its label.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// Its number, from 0.
    pub row: usize,
    /// Its label.
    pub label: String,
    /// The label that is most probable for it.
    pub likely: String,
    /// The probability that its label is wrong ([`label_noise`]).
    pub probability: f64,
    /// The probability of its label, wrong ones or not ([`calibrate`](crate::calibration::calibrate)).
    pub own: f64,
    /// The same of the likely label.
    pub most: f64,
    /// By how much its label leads the best other one under a model that did not see it.
    pub margin: f64,
    /// By how much its margin, on the scale of the scores, falls when it is left out: what it alone bends the model by.
    pub influence: f64,
    /// The nearest rows that have the likely label, by number from 0; of the rows asked for.
    pub contradicted_by: Vec<usize>,
}

/// Audits labels with the model of these options, or if there are none with one that is chosen here: the averaged ODM of up to
/// 1,500 rows, beyond that an RBF kernel ODM chosen by its leave-one-out loss. Of the first `named` suspects the rows that
/// contradict them are named. `base` has intercept, weights of classes, memory and seed.
pub fn audit(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    base: &TrainOptions,
    chosen: bool,
    named: usize,
    control: Control<'_>,
) -> Result<Audit> {
    let (unseen, model, words) = left_out(data, weights, base, chosen, control)?;
    let scores = model.class_scores(&model.scores_with(data.rows, control)?);
    let columns = scores.len() / data.rows.rows().max(1);
    let noise = label_noise(&unseen);
    let k = unseen.classes;
    let suspect = |row: usize, own: u32| {
        let p = &noise.classes[row * k..(row + 1) * k];
        let likely = (0..k).fold(0, |best, c| if p[c] > p[best] { c } else { best });
        let margin = lead(unseen.row(row), own);
        Suspect {
            row,
            label: model.labels[own as usize].clone(),
            likely: model.labels[likely].clone(),
            probability: noise.wrong[row],
            own: p[own as usize],
            most: p[likely],
            margin,
            influence: lead(&scores[row * columns..(row + 1) * columns], own) - margin,
            contradicted_by: Vec::new(),
        }
    };
    let counted = (0..unseen.codes.len()).filter(|&i| unseen.weights[i] > 0.0);
    let mut suspects: Vec<Suspect> = counted.filter_map(|i| unseen.codes[i].map(|own| suspect(i, own))).collect();
    // Where two are certain, the one whose label is the less probable comes first.
    suspects
        .sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.own.total_cmp(&b.own)).then(a.row.cmp(&b.row)));
    let expected_wrong = suspects.iter().map(|s| unseen.weights[s.row] * s.probability).sum();
    name_neighbours(&mut suspects, named, &model, data);
    Ok(Audit { suspects, expected_wrong, by: unseen.by, model: words, labels: model.labels })
}

/// The scores of all rows under models that did not see them, the model of all rows, and what it is.
fn left_out(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    base: &TrainOptions,
    chosen: bool,
    control: Control<'_>,
) -> Result<(Unseen, Model, String)> {
    let mut options = base.clone();
    options.settings.left_out = chosen || data.rows.rows() <= AVERAGED_ROWS;
    if chosen {
        let trained = train_examples(data, weights, &options, control)?;
        let unseen = unseen(data, weights, &options, &trained.model, &trained.outcome, control)?;
        let words = format!("{} with the {} kernel", trained.model.machine, trained.model.kernel.name());
        return Ok((unseen, trained.model, words));
    }
    options.scaling = options.scaling.or(Some(ScalingKind::MinMax));
    if data.rows.rows() <= AVERAGED_ROWS {
        let found = average(
            data,
            weights,
            &options,
            AverageOptions { judged: Some(AVERAGED_ROWS), ..AverageOptions::default() },
            control,
        )?;
        let words =
            format!("the average of {} over {} points", options.machine.name(), found.model.certificate.iterations);
        return Ok((found.unseen, found.model, words));
    }
    options.kernel = Kernel::Rbf { gamma: 1.0 };
    options.gamma = Gamma::Scale;
    let search = Search { rows: SearchRows::Most(SEARCHED_ROWS), ..Search::default() };
    let found = tune_examples(data, weights, &options, &search, control)?;
    let unseen = unseen(data, weights, &found.options, &found.model, &found.outcome, control)?;
    Ok((unseen, found.model, format!("{} with an rbf kernel, searched", options.machine.name())))
}

/// Names the nearest rows, as the model scales them, that have the likely label of each of the first suspects.
fn name_neighbours(suspects: &mut [Suspect], named: usize, model: &Model, data: Examples<'_>) {
    let scaling: Option<&Scaling> = model.scaling.as_ref();
    let scaled = scaling.map(|scaling| scaling.apply(data.rows));
    let rows: &Matrix<'_> = scaled.as_ref().unwrap_or(data.rows);
    let codes = data.labels.codes_in(&model.labels);
    let norms: Vec<f64> = (0..rows.rows()).map(|i| with_rows!(rows, x => x.norm2(i))).collect();
    let counted = suspects.len().min(named);
    suspects[..counted].par_iter_mut().for_each(|suspect| {
        let mut spread = vec![0.0; rows.cols()];
        with_rows!(rows, x => x.visit(suspect.row, |c, v| spread[c] = v));
        let likely = model.labels.iter().position(|label| *label == suspect.likely).map(|at| at as u32);
        let rivals =
            (0..rows.rows()).filter(|&j| j != suspect.row && codes[j] == likely && suspect.likely != suspect.label);
        let mut near: Vec<(f64, usize)> =
            rivals.map(|j| (norms[j] - 2.0 * with_rows!(rows, x => x.dot(j, &spread)), j)).collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        suspect.contradicted_by = near.into_iter().take(NAMED).map(|(_, j)| j).collect();
    });
}
