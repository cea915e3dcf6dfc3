//! A search for parameters, and the model of the best ones.

use crate::choices::{Choices, Given};
use crate::errors::to_python;
use crate::model::Model;
use crate::rows::Rows;
use crate::train::{examples, learn_probabilities, tell};
use crate::watch::{Watch, watched};
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use widemargin::calibration::probabilities;
use widemargin::control::Control;
use widemargin::data::{Examples, ScalingKind};
use widemargin::machine::{Value, check_parameters, machine};
use widemargin::metrics::Metric;
use widemargin::select::{
    self, AverageOptions, Finished, Grid, GridAxis, JudgedLine, Judges, Line, Log, Plan, Search, SearchRows, Select,
    Trial, Tuned, fingerprint, tune_examples,
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
/// search found, as JSON. `judge(lines)` is what [`judge_lines`] says of them; without it points are judged here.
#[pyfunction]
#[pyo3(signature = (rows, codes, labels, weights, choices, wishes, judge=None))]
#[allow(clippy::too_many_arguments)]
pub fn tune<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    wishes: Wishes,
    judge: Option<Py<PyAny>>,
) -> PyResult<(Model, Bound<'py, PyDict>, String)> {
    let names = choices.names();
    let asked = Asked::new(&choices, &wishes).map_err(|error| to_python(error, &names))?;
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let judges = judge.map(|ask| AskedLines { ask, raised: Mutex::default() });
    let search = Search { judges: judges.as_ref().map(|judges| judges as &dyn Judges), ..asked.search(&wishes) };
    let work = |watch: &Watch<'_>| {
        let found = run(data, weights, &asked.options, search, wishes.resume.as_ref(), watch);
        let (mut trained, report, chosen) = found?;
        let left_out = learn_probabilities(&choices, data, weights, &chosen, &mut trained, watch)?;
        trained.model.schema = Some(choices.schema(&trained.model.labels)?);
        Ok((trained, left_out, report))
    };
    let found = watched(py, choices.threads, choices.verbose, &names, work);
    if let Some(raised) = judges.and_then(|judges| judges.raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
        return Err(raised);
    }
    let (trained, left_out, report) = found?;
    let told = tell(py, &trained, &labels, left_out)?;
    Ok((trained.model.into(), told, report))
}

/// Judges lines of points of a search, these and what is said of them as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn judge_lines<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    wishes: Wishes,
    lines: Vec<String>,
) -> PyResult<Vec<String>> {
    let names = choices.names();
    let asked = Asked::new(&choices, &wishes).map_err(|error| to_python(error, &names))?;
    let lines: Vec<Line> =
        lines.iter().map(|line| serde_json::from_str(line).map_err(damaged)).collect::<PyResult<_>>()?;
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let work = |watch: &Watch<'_>| {
        let control = Control { observer: None, ..watch.control };
        select::judge_lines(data, weights, &asked.options, &asked.search(&wishes), &lines, control)
    };
    let judged = watched(py, choices.threads, false, &names, work)?;
    judged.iter().map(|line| serde_json::to_string(line).map_err(damaged)).collect()
}

/// What travels is no text of this program.
fn damaged(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Whoever judges lines of points, in Python.
struct AskedLines {
    ask: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl AskedLines {
    fn answers(&self, lines: &[Line]) -> PyResult<Vec<JudgedLine>> {
        let texts = lines.iter().map(|line| serde_json::to_string(line).map_err(damaged));
        let lines: Vec<String> = texts.collect::<PyResult<_>>()?;
        let answers: Vec<String> = Python::attach(|py| self.ask.bind(py).call1((lines,))?.extract())?;
        answers.iter().map(|answer| serde_json::from_str(answer).map_err(damaged)).collect()
    }
}

impl Judges for AskedLines {
    fn judge(&self, lines: &[Line]) -> Result<Vec<JudgedLine>> {
        self.answers(lines).map_err(|error| {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Error::Interrupted
        })
    }
}

/// What a user says of a search, in the library's terms.
struct Asked {
    options: TrainOptions,
    plan: Plan,
    select: Option<Select>,
    score: Option<Metric>,
    given: Vec<(String, Value)>,
    rows: SearchRows,
}

impl Asked {
    fn new(choices: &Choices, wishes: &Wishes) -> Result<Self> {
        let options = choices.options()?;
        let plan = wishes.plan()?;
        let given = wishes.given(choices, &options, &plan);
        let score = wishes.score.as_ref().map(|word| word.parse()).transpose()?;
        Ok(Self { given, select: wishes.select()?, score, rows: wishes.rows()?, options, plan })
    }

    fn search(&self, wishes: &Wishes) -> Search<'_> {
        Search {
            plan: &self.plan,
            select: self.select,
            folds: wishes.folds,
            repeats: wishes.repeats,
            score: self.score,
            given: &self.given,
            gamma_given: wishes.fixed.iter().any(|name| name == "gamma"),
            rows: self.rows,
            ..Search::default()
        }
    }
}

/// The averaged model of a machine, whose parameters among the choices do not count; of more classes each is set against all others.
/// Returns it, what else training tells, and what it is made of, as JSON.
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn average<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
    averaged: &str,
    over: &str,
    search_rows: &str,
) -> PyResult<(Model, Bound<'py, PyDict>, String)> {
    let names = choices.names();
    let how = over.parse().and_then(|over| Ok(AverageOptions::new(search_rows.parse()?, over)));
    let how = how.map_err(|error| to_python(error, &names))?;
    let mut options = choices.options().map_err(|error| to_python(error, &names))?;
    options.machine = machine(averaged).map_err(|error| to_python(error, &names))?;
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
        "loo_by": found.unseen.by,
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
            "label_probability": s.own,
            "margin": s.margin,
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
        "first_rows": tuned.first_rows,
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
