//! Rows that lie in parts on the workers of a cluster: sums over a part, or products with a share of the kernel matrix, there, the
//! solver here.

use crate::choices::Choices;
use crate::errors::{plain, to_python};
use crate::model::Model;
use crate::rows::Rows;
use crate::train::{examples, numbers, tell};
use crate::watch::{pool, unpanicked, watched};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, PoisonError};
use widemargin::cluster::{self, KernelProducts, PartMemory, PartRows, ProductAsked, Question, RowParts, Whole};
use widemargin::control::{Control, Progress};
use widemargin::data::Examples;
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
    let pool = pool(threads)?;
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
    Ok((model.into(), numbers(&outcome, None)))
}

/// Whoever answers for all parts, in Python.
struct Asked<'py> {
    ask: Bound<'py, PyAny>,
    raised: Option<PyErr>,
}

impl RowParts for Asked<'_> {
    fn sum(&mut self, question: &Question) -> Result<Vec<f64>> {
        answer(&self.ask, question.to_numbers()).map_err(|error| {
            self.raised = Some(error);
            Error::Interrupted
        })
    }
}

/// What Python answers.
fn answer(ask: &Bound<'_, PyAny>, numbers: Vec<f64>) -> PyResult<Vec<f64>> {
    let sums = ask.call1((numbers.into_pyarray(ask.py()),))?;
    Ok(sums.cast_into::<PyArray1<f64>>()?.to_vec()?)
}

/// What a share of the tiles of the rows' kernel matrix adds to the product that is asked for.
#[pyfunction]
pub fn kernel_share<'py>(
    py: Python<'py>,
    rows: Rows<'py>,
    question: PyReadonlyArray1<'py, f64>,
    share: usize,
    shares: usize,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let matrix = rows.matrix()?;
    let asked = ProductAsked::from_numbers(question.as_slice()?).map_err(plain)?;
    let pool = pool(threads)?;
    let sums = unpanicked(py, || pool.install(|| asked.answer(&matrix, share, shares)))?;
    Ok(sums.map_err(plain)?.into_pyarray(py))
}

/// Trains a machine with a kernel. `ask(question)` is the sum of what [`kernel_share`] says for each share; the rest as
/// [`train`](crate::train::train).
#[pyfunction]
pub fn train_kernel<'py>(
    py: Python<'py>,
    ask: Py<PyAny>,
    rows: Rows<'py>,
    codes: PyReadonlyArray1<'py, u32>,
    labels: Vec<String>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    choices: Choices,
) -> PyResult<(Model, Bound<'py, PyDict>)> {
    let names = choices.names();
    let options = choices.options().map_err(|error| to_python(error, &names))?;
    let (matrix, labels) = examples(&rows, &codes, labels)?;
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let data = Examples { name: "the data", rows: &matrix, labels: &labels };
    let products = Arc::new(AskedProducts { ask, raised: Mutex::default() });
    let trained = watched(py, choices.threads, choices.verbose, &names, |watch| {
        let mut trained = cluster::train_kernel(data, weights, &options, products.clone(), watch.control)?;
        trained.model.schema = Some(choices.schema(&trained.model.labels)?);
        Ok(trained)
    });
    if let Some(raised) = products.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(raised);
    }
    let trained = trained?;
    let told = tell(py, &trained, &labels, None)?;
    Ok((trained.model.into(), told))
}

/// Whoever multiplies with the kernel matrix, in Python.
struct AskedProducts {
    ask: Py<PyAny>,
    raised: Mutex<Option<PyErr>>,
}

impl KernelProducts for AskedProducts {
    fn multiply(&self, asked: &ProductAsked) -> Result<Vec<f64>> {
        Python::attach(|py| answer(self.ask.bind(py), asked.to_numbers())).map_err(|error| {
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            Error::Interrupted
        })
    }
}
