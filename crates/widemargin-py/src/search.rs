//! A search for parameters, and the model of the best ones.

use crate::choices::{Choices, Given};
use crate::errors::to_python;
use crate::model::Model;
use crate::rows::Rows;
use crate::train::{examples, learn_probabilities, tell};
use crate::watch::{Watch, watched};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::path::PathBuf;
use widemargin::calibration::probabilities;
use widemargin::control::Control;
use widemargin::data::{Examples, ScalingKind};
use widemargin::machine::{Value, check_parameters, machine};
use widemargin::select::{
    self, AverageOptions, Finished, Grid, GridAxis, Log, Plan, Search, SearchRows, Select, Trial, Tuned, fingerprint,
    tune_examples,
};
use widemargin::train::{TrainOptions, Trained};
use widemargin::{Error, Result};

/// What is tried.
#[derive(FromPyObject)]
enum Tried {
    /// The papers' grid, or one in the syntax of the command line.
    #[pyo3(transparent)]
    Text(String),
    /// The values of each parameter, by the library's names.
    #[pyo3(transparent)]
    Axes(Vec<(String, Values)>),
}

/// The values of one parameter.
#[derive(FromPyObject)]
enum Values {
    /// A range or a list in the syntax of the command line.
    #[pyo3(transparent)]
    Text(String),
    #[pyo3(transparent)]
    List(Vec<Given>),
}

impl Values {
    fn axis(&self, name: &str) -> Result<GridAxis> {
        match self {
            Self::Text(text) => GridAxis::read(name, text),
            Self::List(values) => GridAxis::new(name, values.iter().map(|value| value.0.clone()).collect()),
        }
    }
}

/// How to search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wishes {
    /// `None`: from coarse to fine.
    grid: Option<Tried>,
    select: Option<String>,
    /// `auto`, `all` or a number.
    search_rows: String,
    score: Option<String>,
    folds: usize,
    repeats: usize,
    /// Parameters, by the library's names, that keep their value; `gamma` may be among them.
    fixed: Vec<String>,
    resume: Option<PathBuf>,
}

/// Searches the parameters of a machine. Returns the model of the best ones, what else training tells, and what the
/// search found, as JSON.
#[pyfunction]
pub fn tune<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    wishes: Wishes,
) -> PyResult<(Model, Bound<'py, PyDict>, String)> {
    let names = choices.names();
    let told = |error: Error| to_python(error, &names);
    let options = choices.options().map_err(told)?;
    let plan = wishes.plan().map_err(told)?;
    let select = wishes.select().map_err(told)?;
    let score = wishes.score.as_ref().map(|word| word.parse()).transpose().map_err(told)?;
    let given = wishes.given(&choices, &options, &plan);
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let search = Search {
        plan: &plan,
        select,
        folds: wishes.folds,
        repeats: wishes.repeats,
        score,
        given: &given,
        gamma_given: wishes.fixed.iter().any(|name| name == "gamma"),
        max_iter: None,
        rows: wishes.rows().map_err(told)?,
        known: &[],
        watcher: None,
    };
    let work = |watch: &Watch<'_>| {
        let found = run(data, weights, &options, search, wishes.resume.as_ref(), watch);
        let (mut trained, report, chosen) = found?;
        learn_probabilities(&choices, data, weights, &chosen, &mut trained, watch)?;
        trained.model.schema = Some(choices.schema(&trained.model.labels)?);
        Ok((trained, report))
    };
    let (trained, report) = watched(py, choices.threads, choices.verbose, &names, work)?;
    let told = tell(py, &trained, &labels)?;
    Ok((trained.model.into(), told, report))
}

/// The averaged model. Returns it, what else training tells, and what it is made of, as JSON.
#[pyfunction]
pub fn average<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    over: &str,
) -> PyResult<(Model, Bound<'py, PyDict>, String)> {
    let names = choices.names();
    let how = over.parse().map(|over| AverageOptions { judged: None, over });
    let how = how.map_err(|error| to_python(error, &names))?;
    let mut options = choices.options().map_err(|error| to_python(error, &names))?;
    // Its own parameters do not count; of more classes each is set against all others.
    options.machine = machine("odm").map_err(|error| to_python(error, &names))?;
    options.scaling = options.scaling.or(Some(ScalingKind::MinMax));
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let work = |watch: &Watch<'_>| {
        let mut found = select::average(data, weights, &options, how, watch.control)?;
        if let Some(form) = choices.probability()? {
            found.model.calibration = Some(probabilities(&found.unseen, form));
        }
        let scores = found.model.scores_with(data.rows, watch.control)?;
        Ok((found, scores))
    };
    let (found, scores) = watched(py, choices.threads, choices.verbose, &names, work)?;
    let (model, told) = (found.model, PyDict::new(py));
    let numbers = json!({
        "solver": model.certificate.solver,
        "objective": None::<f64>,
        "gap": None::<f64>,
        "stop": model.certificate.stop,
        "converged": true,
        "iterations": model.certificate.iterations,
        "loo_bound": None::<f64>,
        "loo_error": found.loo_error,
        "loo_margin_error": None::<f64>,
        "norm": model.norm(),
    });
    let known =
        |margins: Vec<Option<f64>>| -> Vec<f64> { margins.into_iter().map(|g| g.unwrap_or(f64::NAN)).collect() };
    let judged_all = found.judged_rows == data.rows.rows();
    let left_out = judged_all.then(|| known(model.margins(&found.unseen.scores, &labels)));
    let support = model.support_rows.as_ref().map(|rows| rows.iter().map(|&i| i as usize).collect::<Vec<_>>());
    told.set_item("numbers", numbers.to_string())?;
    told.set_item("margins", known(model.margins(&scores, &labels)).into_pyarray(py))?;
    told.set_item("loo_margins", left_out.map(|margins| margins.into_pyarray(py)))?;
    told.set_item("support", support.map(|rows| rows.into_pyarray(py)))?;
    let report = json!({
        "average": model.average,
        "fits": found.fits,
        "judged_rows": found.judged_rows,
        "loo_error": found.loo_error,
    });
    Ok((model.into(), told, report.to_string()))
}

/// Which labels are probably wrong, as JSON; `chosen`: judged by the machine of the choices, else by one that is found here.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn audit<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    chosen: bool,
    named: usize,
) -> PyResult<String> {
    let names = choices.names();
    let mut options = choices.options().map_err(|error| to_python(error, &names))?;
    if !chosen {
        options.machine = machine("odm").map_err(|error| to_python(error, &names))?;
        options.parameters = check_parameters(options.machine, &[]).map_err(|error| to_python(error, &names))?;
    }
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let work = |watch: &Watch<'_>| widemargin::audit::audit(data, weights, &options, chosen, named, watch.control);
    let found = watched(py, choices.threads, choices.verbose, &names, work)?;
    let suspect = |s: &widemargin::audit::Suspect| {
        json!({
            "row": s.row,
            "likely": s.likely,
            "probability": s.probability,
            "influence": s.influence,
            "contradicted_by": s.contradicted_by,
        })
    };
    Ok(json!({
        "suspects": found.suspects.iter().map(suspect).collect::<Vec<_>>(),
        "expected_wrong": found.expected_wrong,
        "by": found.by,
        "model": found.model,
    })
    .to_string())
}

/// The search itself: the model of the best point, what was found, and the options of that point.
fn run(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: Search<'_>,
    resume: Option<&PathBuf>,
    watch: &Watch<'_>,
) -> Result<(Trained, String, TrainOptions)> {
    let log = match resume {
        Some(path) => Some(Log::open(path, &fingerprint(data, weights, options, &search))?),
        None => None,
    };
    let known = log.as_ref().map_or(&[][..], |(_, known)| known.as_slice());
    let watcher = |finished: &Finished<'_>| {
        watch.say(|| words(finished));
        log.as_ref().map_or(Ok(()), |(log, _)| log.add(finished.trial))
    };
    let search = Search { known, watcher: Some(&watcher), ..search };
    let control = Control { observer: None, ..watch.control };
    let tuned = tune_examples(data, weights, options, &search, control)?;
    let report = report(&tuned);
    Ok((Trained { model: tuned.model, outcome: tuned.outcome, support: tuned.support }, report, tuned.options))
}

fn words(finished: &Finished<'_>) -> String {
    let Trial { params, gamma, score } = finished.trial;
    let mut point: Vec<String> = params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    point.extend(gamma.map(|gamma| format!("gamma = {gamma:.4}")));
    let (done, planned, best) = (finished.done, finished.planned, if finished.best { ", the best so far" } else { "" });
    format!("{done} of {planned} points, {}: error {:.4}, loss {:.4}{best}", point.join(", "), score.error, score.loss)
}

fn report(tuned: &Tuned) -> String {
    json!({
        "select": tuned.select,
        "search_rows": tuned.rows,
        "best": tuned.best,
        "runner_up": tuned.runner_up,
        "at_edge": tuned.at_edge,
        "trials": tuned.trials,
        "paper_points": tuned.paper_points,
        "fits": tuned.fits,
        "fits_saved": tuned.fits_saved,
        "resumed": tuned.resumed,
        "shared": tuned.shared,
        "seconds": tuned.seconds,
    })
    .to_string()
}

impl Wishes {
    fn plan(&self) -> Result<Plan> {
        match &self.grid {
            None => Ok(Plan::Staged),
            Some(Tried::Text(word)) if word == "paper" => Ok(Plan::Paper),
            Some(Tried::Text(text)) => Grid::parse(text).map(Plan::Grid),
            Some(Tried::Axes(axes)) => {
                let axes = axes.iter().map(|(name, values)| values.axis(name)).collect::<Result<_>>()?;
                Grid::new(axes).map(Plan::Grid)
            }
        }
    }

    fn rows(&self) -> Result<SearchRows> {
        self.search_rows.parse()
    }

    fn select(&self) -> Result<Option<Select>> {
        self.select.as_ref().map(|word| word.parse()).transpose()
    }

    /// The parameters that keep their value: all that a given grid does not name, else those the machine does not search
    /// and those that are fixed.
    fn given(&self, choices: &Choices, options: &TrainOptions, plan: &Plan) -> Vec<(String, Value)> {
        let searched = |name: &str| options.machine.grid().iter().any(|axis| axis.name == name);
        let keeps = |name: &String| matches!(plan, Plan::Grid(_)) || self.fixed.contains(name) || !searched(name);
        choices.given().into_iter().filter(|(name, _)| keeps(name)).collect()
    }
}
