//! The library's errors as Python's, one to one, with parameters named as Python names them.

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use std::collections::HashMap;
use widemargin::multiclass::Multiclass;
use widemargin::{Error, Wording};

/// The parameters of an estimator.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// What the user knows a parameter of the machine as, where that is another name.
    shown: HashMap<String, String>,
}

impl Names {
    /// With these names of the machine's parameters.
    pub fn new(shown: HashMap<String, String>) -> Self {
        Self { shown }
    }

    fn shown(&self, parameter: &str) -> String {
        match parameter {
            "multiclass" => "multi_class".into(),
            "bias" => "intercept_scaling".into(),
            "memory" => "cache_size".into(),
            other => self.shown.get(other).cloned().unwrap_or_else(|| other.into()),
        }
    }
}

impl Wording for Names {
    fn name(&self, parameter: &str) -> Option<String> {
        // Estimators have no such parameters.
        (!matches!(parameter, "approx" | "solver")).then(|| self.shown(parameter))
    }

    fn value(&self, parameter: &str, value: &str) -> Option<String> {
        let name = self.name(parameter)?;
        match (parameter, value) {
            ("bias", "none") => Some("fit_intercept=False".into()),
            ("bias", "free") => Some(format!("{name}=None")),
            ("multiclass", value) => wrapper(value).map(|value| format!("{name}=\"{value}\"")),
            (_, number) if number.parse::<f64>().is_ok() => Some(format!("{name}={number}")),
            (_, word) => Some(format!("{name}=\"{word}\"")),
        }
    }

    fn given(&self, parameter: &str, value: &str) -> String {
        format!("{} = {value}", self.shown(parameter))
    }

    /// As `cache_size` counts.
    fn bytes(&self, count: u64) -> String {
        format!("{} MB", count.div_ceil(1 << 20))
    }
}

/// What scikit-learn calls a way to meet more than two classes; the machine's own is no wrapper.
fn wrapper(value: &str) -> Option<&str> {
    match value.parse().ok()? {
        Multiclass::Own => None,
        Multiclass::Ova => Some("ovr"),
        Multiclass::Ovo | Multiclass::Ecoc => Some(value),
    }
}

/// The exception that says the same.
pub fn to_python(error: Error, names: &Names) -> PyErr {
    let message = error.worded(names);
    match error {
        Error::Io { path, source } => match source.raw_os_error() {
            // Python picks the subclass (FileNotFoundError, …) by the number.
            Some(number) => PyOSError::new_err((number, system_words(&source), path.into_os_string())),
            None => PyOSError::new_err(message),
        },
        Error::Parse { .. } | Error::Data { .. } | Error::Model { .. } => PyValueError::new_err(message),
        Error::Parameter { .. } | Error::Conflict { .. } | Error::Usage(_) => PyValueError::new_err(message),
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The exception for what happens outside an estimator.
pub fn plain(error: Error) -> PyErr {
    to_python(error, &Names::default())
}

/// The system's message without the number that Rust appends and Python shows by itself.
fn system_words(source: &std::io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
