//! A trained model as a Python object. It pickles as the bytes of its file.

use crate::errors::{Names, plain};
use crate::rows::{self, Rows};
use crate::train::examples;
use crate::watch::{guarded, watched};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};
use serde_json::json;
use std::path::PathBuf;
use widemargin::data::{Examples, Matrix};
use widemargin::model::{self, KnownSupport, OnnxLabels, Scorer};
use widemargin::verify::verify;

/// A trained model, and what is remembered for rows that come one by one.
#[pyclass(frozen, module = "widemargin._widemargin")]
pub struct Model(model::Model, KnownSupport);

/// Labels as Python has them.
#[derive(FromPyObject)]
enum OnnxNames {
    #[pyo3(transparent)]
    Whole(Vec<i64>),
    #[pyo3(transparent)]
    Number(Vec<f64>),
    #[pyo3(transparent)]
    Text(Vec<String>),
}

impl From<model::Model> for Model {
    fn from(model: model::Model) -> Self {
        Self(model, KnownSupport::default())
    }
}

impl Model {
    /// The library's model.
    pub fn inner(&self) -> &model::Model {
        &self.0
    }

    /// The scores of rows: few of them on this thread, many on a pool.
    fn columns_of(&self, py: Python<'_>, rows: &Matrix<'_>, threads: usize) -> PyResult<Vec<f64>> {
        let Self(model, known) = self;
        if model.is_little(rows) {
            return guarded(py, || model.scores_here(rows, known));
        }
        watched(py, threads, false, &Names::default(), |watch| model.scores_with(rows, watch.control))
    }
}

#[pymethods]
impl Model {
    /// Reads the bytes of a model file.
    #[new]
    fn new(bytes: &[u8]) -> PyResult<Self> {
        model::Model::from_bytes(bytes).map(Self::from).map_err(plain)
    }

    /// Reads a model file.
    #[classmethod]
    fn load(_class: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        model::Model::load(path).map(Self::from).map_err(plain)
    }

    /// Writes a model file, whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.0.save(path).map_err(plain)
    }

    /// The bytes of the model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(plain)?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Self>(), (self.to_bytes(py)?,)))
    }

    /// The bytes of an ONNX model of this function, whose rows first go through the maps `(x − shift) · factor` of `before`.
    fn to_onnx<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        labels: OnnxNames,
        single: bool,
        before: Vec<(PyReadonlyArray1<'py, f64>, PyReadonlyArray1<'py, f64>)>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let labels = match labels {
            OnnxNames::Whole(labels) => OnnxLabels::Whole(labels),
            OnnxNames::Number(labels) => OnnxLabels::Number(labels),
            OnnxNames::Text(labels) => OnnxLabels::Text(labels),
        };
        let before: Vec<_> = before.iter().map(|(a, b)| (a.as_array().to_vec(), b.as_array().to_vec())).collect();
        Ok(PyBytes::new(py, &self.0.to_onnx(name, &labels, single, &before).map_err(plain)?))
    }

    /// Everything but the arrays, as JSON.
    fn info(&self) -> String {
        let model = &self.0;
        json!({
            "machine": model.machine,
            "parameters": model.parameters,
            "kernel": model.kernel,
            "scaling": model.scaling.as_ref().map(|scaling| scaling.kind),
            "bias": model.bias,
            "bias_asked": model.bias_asked.unwrap_or(model.bias),
            "labels": model.labels,
            "features": model.features,
            "decision": model.decision,
            "certificate": model.certificate,
            "average": model.average,
            "calibration": model.calibration,
            "threshold": model.threshold,
            "label_kind": model.schema.as_ref().map(|schema| schema.label.kind),
            "feature_names": model.feature_names(),
            "is_table": model.schema.as_ref().and_then(|schema| schema.columns.as_ref()).is_some_and(|columns| {
                columns.iter().any(|column| column.width() != 1)
            }),
            "sets": model.conformity.is_some(),
        })
        .to_string()
    }

    /// Whether scoring the rows is so little work that one thread does it.
    fn is_little(&self, rows: Rows<'_>) -> PyResult<bool> {
        Ok(self.0.is_little(&rows.matrix()?))
    }

    /// One column a score function.
    fn columns<'py>(&self, py: Python<'py>, rows: Rows<'py>, threads: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = self.columns_of(py, &rows.matrix()?, threads)?;
        rows::table(py, scores, self.0.scorer.columns())
    }

    /// One score a class, of which the largest wins; two classes may have one score, positive for the second.
    fn scores<'py>(&self, py: Python<'py>, rows: Rows<'py>, threads: usize) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let scores = self.0.class_scores(&self.columns_of(py, &rows.matrix()?, threads)?);
        rows::table(py, scores, self.0.class_columns())
    }

    /// Each row's class, as a position among the labels.
    fn predict<'py>(&self, py: Python<'py>, rows: Rows<'py>, threads: usize) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let classes = self.0.classes(&self.columns_of(py, &rows.matrix()?, threads)?);
        Ok(classes.into_pyarray(py))
    }

    /// Probabilities, one column a class; `None` if the model knows none.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        threads: usize,
    ) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let found = self.0.probabilities(&self.columns_of(py, &rows.matrix()?, threads)?);
        found.map(|found| rows::table(py, found, self.0.labels.len())).transpose()
    }

    /// Prediction sets, one column a class; `None` if the model knows none.
    fn prediction_sets<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        threads: usize,
        coverage: f64,
        per_class: bool,
    ) -> PyResult<Option<Bound<'py, PyArray2<bool>>>> {
        let scores = self.columns_of(py, &rows.matrix()?, threads)?;
        let found = self.0.prediction_sets(&scores, coverage, per_class);
        found.map(|found| rows::table(py, found, self.0.labels.len())).transpose()
    }

    /// `b`, one number a score function.
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.0.scorer.intercepts())
    }

    /// `w`, one row a score function; `None` for a kernel model.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        match &self.0.scorer {
            _ if !self.0.parts.is_empty() => Ok(None),
            Scorer::Linear { weights, .. } => rows::table(py, weights.concat(), self.0.features).map(Some),
            Scorer::Kernel { .. } => Ok(None),
        }
    }

    /// Coefficients of the support rows, one row a score function; `None` for a linear model, and for one of several kernels.
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        match &self.0.scorer {
            _ if !self.0.parts.is_empty() => Ok(None),
            Scorer::Kernel { coefficients, .. } => {
                let array = coefficients.concat().into_pyarray(py);
                let count = coefficients.first().map_or(0, Vec::len);
                numpy::PyArrayMethods::reshape(&array, [coefficients.len(), count]).map(Some)
            }
            Scorer::Linear { .. } => Ok(None),
        }
    }

    /// The support rows, as [`Rows`]; `None` for a linear model.
    fn support<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.0.scorer {
            Scorer::Kernel { support, .. } => rows::to_python(py, support).map(Some),
            Scorer::Linear { .. } => Ok(None),
        }
    }

    /// Which training row each support row is; `None` for a linear model, or one whose file does not say.
    fn support_rows<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u64>>> {
        self.0.support_rows.as_ref().map(|rows| PyArray1::from_slice(py, rows))
    }

    /// What the model claims, and what the rows it was trained on say, as JSON.
    fn verify<'py>(
        &self,
        py: Python<'py>,
        rows: Rows<'py>,
        codes: PyReadonlyArray1<'py, u32>,
        labels: Vec<String>,
        weights: Option<PyReadonlyArray1<'py, f64>>,
        threads: usize,
    ) -> PyResult<String> {
        let (matrix, labels) = examples(&rows, &codes, labels)?;
        let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
        let data = Examples { name: "the data", rows: &matrix, labels: &labels };
        let found =
            watched(py, threads, false, &Names::default(), |watch| verify(&self.0, data, weights, watch.control))?;
        Ok(json!({
            "objective": found.objective,
            "dual_objective": found.dual_objective,
            "gap": found.gap,
            "agrees": found.agrees,
            "reason": found.reason,
        })
        .to_string())
    }

    /// Shift and factor of each feature; `None` if the model scales nothing.
    #[allow(clippy::type_complexity)]
    fn scaling<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>)> {
        let scaling = self.0.scaling.as_ref()?;
        Some((PyArray1::from_slice(py, &scaling.shift), PyArray1::from_slice(py, &scaling.factor)))
    }
}
