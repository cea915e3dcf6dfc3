//! Where the decision between two classes is made: the threshold that is best for rows left out.

use super::probability::unseen;
use crate::calibration::Unseen;
use crate::control::Control;
use crate::data::Examples;
use crate::machine::Outcome;
use crate::metrics::{ThresholdChoice, best_threshold};
use crate::model::Model;
use crate::train::TrainOptions;
use crate::{Advice, Error, Result};

/// The threshold for a model of two classes that was trained with these options: the one given, or the best for the scores of rows
/// under models that did not see them ([`unseen`]). Rows count by their weight as given.
pub fn choose_threshold(
    choice: ThresholdChoice,
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    model: &Model,
    outcome: &Outcome,
    control: Control<'_>,
) -> Result<f64> {
    threshold_left_out(choice, model, || unseen(data, weights, options, model, outcome, control))
}

/// The same from scores of rows left out that are known, or can be.
pub fn threshold_left_out(
    choice: ThresholdChoice,
    model: &Model,
    unseen: impl FnOnce() -> Result<Unseen>,
) -> Result<f64> {
    if model.labels.len() != 2 {
        let reason = format!("a threshold decides between two classes, not {}", model.labels.len());
        return Err(Error::conflict(reason, Advice::NONE));
    }
    let metric = match choice {
        ThresholdChoice::Value(threshold) => return Ok(threshold),
        ThresholdChoice::Best(metric) => metric,
    };
    let unseen = unseen()?;
    let (mut scores, mut positive, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for (i, code) in unseen.codes.iter().enumerate().filter_map(|(i, code)| code.map(|code| (i, code))) {
        scores.push(if let [smaller, larger] = unseen.row(i) { larger - smaller } else { unseen.row(i)[0] });
        positive.push(code == 1);
        counted.push(unseen.weights[i]);
    }
    best_threshold(metric, &scores, &positive, &counted)
}
