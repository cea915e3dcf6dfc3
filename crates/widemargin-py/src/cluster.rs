//! Rows that lie in parts on the workers of a cluster: sums over a part there, the solver here.

use crate::choices::Choices;
use crate::errors::{plain, to_python};
use crate::model::Model;
use crate::rows::Rows;
use crate::train::numbers;
use crate::watch::unpanicked;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use std::sync::{Mutex, PoisonError};
use widemargin::cluster::{self, PartMemory, PartRows, Question, RowParts, Whole};
use widemargin::control::{Control, Progress};
use widemargin::{Error, Result};

/// What a part of the rows remembers from one question to the next; spares it passes, and may be lost.
#[pyclass(frozen, module = "widemargin._widemargin")]
pub struct Memory(Mutex<PartMemory>);

#[pymethods]
impl Memory {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }
}

/// The sums that a question asks of a part of the rows.
#[pyfunction]
pub fn part_sums<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    weights: PyReadonlyArray1<'py, f64>,
    question: PyReadonlyArray1<'py, f64>,
    memory: &Memory,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let matrix = rows.matrix()?;
    let part = PartRows { rows: &matrix, codes: codes.as_slice()?, weights: weights.as_slice()? };
    let question = Question::from_numbers(question.as_slice()?).map_err(plain)?;
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start {threads} threads: {error}")))?;
    let sums = unpanicked(py, || {
        // A question that failed half-way leaves nothing that can be trusted.
        let mut known = memory.0.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut known = poisoned.into_inner();
            *known = PartMemory::default();
            known
        });
        let known: &mut PartMemory = &mut known;
        pool.install(|| known.answer(part, &question))
    })?;
    Ok(sums.map_err(plain)?.into_pyarray(py))
}

/// Trains on rows that lie in parts. `ask(question)` is the sum of what [`part_sums`] says of each of them. Returns the model
/// and what else training tells, as JSON.
#[pyfunction]
pub fn train_parts<'py>(
    py: Python<'py>,
    ask: Bound<'py, PyAny>,
    labels: Vec<String>,
    features: usize,
    rows: usize,
    choices: Choices,
) -> PyResult<(Model, String)> {
    let names = choices.names();
    let options = choices.options().map_err(|error| to_python(error, &names))?;
    let mut parts = Asked { ask, raised: None };
    let tell = |progress: &Progress| {
        let words = crate::watch::words(progress);
        // Who cannot be told trains all the same.
        Python::attach(|py| {
            drop(py.import("builtins").and_then(|b| b.call_method1("print", (format!("[widemargin] {words}"),))))
        });
    };
    let control = Control { stop: None, observer: choices.verbose.then_some(&tell) };
    let found = cluster::train(&mut parts, Whole { labels, features, rows }, &options, control);
    if let Some(raised) = parts.raised {
        return Err(raised);
    }
    let (model, outcome) = found.map_err(|error| to_python(error, &names))?;
    py.check_signals()?;
    Ok((model.into(), numbers(&outcome)))
}

/// Whoever answers for all parts, in Python.
struct Asked<'py> {
    ask: Bound<'py, PyAny>,
    raised: Option<PyErr>,
}

impl RowParts for Asked<'_> {
    fn sum(&mut self, question: &Question) -> Result<Vec<f64>> {
        let numbers = question.to_numbers().into_pyarray(self.ask.py());
        let answer = self.ask.call1((numbers,)).and_then(|sums| Ok(sums.cast_into::<PyArray1<f64>>()?.to_vec()?));
        answer.map_err(|error| {
            self.raised = Some(error);
            Error::Interrupted
        })
    }
}
