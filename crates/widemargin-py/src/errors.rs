//! The library's errors as Python's, one to one.

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
        Error::Parse { .. } | Error::Data { .. } | Error::Parameter { .. } | Error::Usage(_) | Error::Model { .. } => {
            PyValueError::new_err(message)
        }
        Error::Memory { .. } => PyMemoryError::new_err(message),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        _ => PyRuntimeError::new_err(message),
    }
}

/// The system's message without the number that Rust appends and Python shows by itself.
fn system_words(source: &std::io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}
