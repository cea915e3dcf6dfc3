//! From numpy arrays to a model.

use crate::choices::Choices;
use crate::errors::to_python;
use crate::model::Model;
use crate::rows::Rows;
use crate::watch::{Watch, watched};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use widemargin::Result;
use widemargin::data::Examples;
use widemargin::data::{Labels, Matrix};
use widemargin::machine::Outcome;
use widemargin::model::UnseenBy;
use widemargin::select::{Learned, UnseenMargins, learn_unseen, unseen_margins};
use widemargin::train::{TrainOptions, Trained, train_from};

/// Trains a machine. `codes` are positions among `labels`. Returns the model and what else training tells.
#[pyfunction]
#[pyo3(signature = (rows, codes, labels, weights, choices, before=None))]
pub fn train<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    before: Option<PyRef<'py, Model>>,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let names = choices.names();
    let options = choices.options().map_err(|error| to_python(error, &names))?;
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let before = before.as_ref().map(|model| model.inner());
    let work = |watch: &Watch<'_>| {
        let mut trained = train_from(data, weights, &options, before, watch.control)?;
        let left_out = learn_probabilities(&choices, data, weights, &options, &mut trained, watch)?;
        trained.model.schema = Some(choices.schema(&trained.model.labels)?);
        Ok((trained, left_out))
    };
    let (trained, left_out) = watched(py, choices.threads, choices.verbose, &names, work)?;
    let told = tell(py, &trained, &labels, left_out)?;
    Ok((trained.model.into(), told))
}

/// The library's view of rows and labels.
pub fn examples<'a>(
    rows: &'a Rows<'_>,
    codes: &PyReadonlyArray1<'_, u32>,
    labels: Vec<String>,
) -> PyResult<(Matrix<'a>, Labels)> {
    let labels = Labels::coded(labels, codes.as_slice()?.to_vec())
        .ok_or_else(|| PyValueError::new_err("expected distinct labels, and codes that are positions among them"))?;
    let matrix = rows.matrix()?;
    if matrix.rows() != labels.codes().len() {
        return Err(PyValueError::new_err("expected as many codes as rows"));
    }
    Ok((matrix, labels))
}

/// Adds probabilities to a model, if they were asked for; hands back the margins of rows left out that they are made of. There are
/// none where some row cannot be left out.
pub fn learn_probabilities(
    choices: &Choices,
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    trained: &mut Trained,
    watch: &Watch<'_>,
) -> Result<Option<UnseenMargins>> {
    let learned = Learned { probability: choices.probability()?, ..Learned::default() };
    let fitted = (&mut trained.model, &trained.outcome);
    let unseen = learn_unseen(data, weights, options, learned, fitted, watch.control)?;
    Ok(unseen.and_then(|unseen| unseen_margins(data, options, &unseen).ok()))
}

/// The leave-one-out margin of each row, those of weight 0 included; not a number where its label has no row of weight.
fn in_closed_form(trained: &Trained, labels: &Labels) -> Option<Vec<f64>> {
    let margins = trained.model.margins(trained.outcome.loo_scores.as_ref()?, labels);
    Some(margins.into_iter().map(|margin| margin.unwrap_or(f64::NAN)).collect())
}

/// What training tells beside the model; `left_out` are the margins of rows left out where there are none in closed form.
pub fn tell<'py>(
    py: Python<'py>,
    trained: &Trained,
    labels: &Labels,
    left_out: Option<UnseenMargins>,
) -> PyResult<Bound<'py, PyDict>> {
    let outcome = &trained.outcome;
    let told = PyDict::new(py);
    let left_out = match in_closed_form(trained, labels) {
        Some(margins) => outcome.loo_error.map(|error| UnseenMargins { margins, error, by: UnseenBy::LeaveOneOut }),
        None => left_out,
    };
    told.set_item("numbers", numbers(outcome, left_out.as_ref()))?;
    told.set_item("margins", outcome.margins.clone().into_pyarray(py))?;
    told.set_item("loo_margins", left_out.map(|left_out| left_out.margins.into_pyarray(py)))?;
    told.set_item("support", trained.support.clone().map(|rows| rows.into_pyarray(py)))?;
    Ok(told)
}

/// How well a machine was fitted, as JSON.
pub fn numbers(outcome: &Outcome, left_out: Option<&UnseenMargins>) -> String {
    json!({
        "solver": outcome.solver,
        "objective": outcome.objective,
        "gap": outcome.gap,
        "stop": outcome.stop,
        "converged": outcome.stop.converged(),
        "iterations": outcome.iterations,
        "loo_bound": outcome.loo_bound,
        "loo_error": left_out.map(|left_out| left_out.error).or(outcome.loo_error),
        "loo_by": left_out.map(|left_out| left_out.by),
        "loo_margin_error": outcome.loo_margin_error,
        "norm": outcome.norm,
    })
    .to_string()
}
