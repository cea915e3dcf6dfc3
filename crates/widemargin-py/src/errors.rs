//! The library's errors as Python's, one to one, in Python's words where the library's name an option of the command line.

use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use widemargin::Error;

/// The exception that says the same.
pub fn to_python(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Io { path, source } => match source.raw_os_error() {
            // Python picks the subclass (FileNotFoundError, …) by the number.
            Some(number) => PyOSError::new_err((number, system_words(&source), path.into_os_string())),
            None => PyOSError::new_err(message),
        },
        Error::NoLeaveOneOut { reason } => PyValueError::new_err(format!("{reason}; use select=\"cv\"")),
        Error::LinearOnly { machine, kernel } => {
            PyValueError::new_err(format!("{machine} is linear only: use kernel=\"linear\" instead of \"{kernel}\""))
        }
        Error::Parse { .. } | Error::Data { .. } | Error::Parameter { .. } | Error::Usage(_) | Error::Model { .. } => {
            PyValueError::new_err(message)
        }
        Error::Memory { what, needed, budget, .. } => {
            let (needed, budget) = (megabytes(needed), megabytes(budget));
            PyMemoryError::new_err(format!(
                "{what} needs {needed} MB of memory, {budget} MB are allowed: raise cache_size (MB), if there is more; \
                 else take fewer samples or classes"
            ))
        }
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyRuntimeError::new_err(message),
    }
}

/// As `cache_size` counts.
fn megabytes(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// The system's message without the number that Rust appends and Python shows by itself.
fn system_words(source: &std::io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
