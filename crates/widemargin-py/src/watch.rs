//! Long work beside the interpreter: without the lock, on its own threads, and stopped by Ctrl-C.

use crate::errors::to_python;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::ThreadPoolBuilder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use widemargin::Result;
use widemargin::control::{Control, Progress};

/// How often Python is asked whether a signal came.
const TICK: Duration = Duration::from_millis(100);

/// Does the work on a pool of its own, which a later `fork` cannot leave without threads, while this thread waits
/// for signals; tells of progress if `verbose`.
pub fn watched<T: Send>(
    py: Python<'_>,
    threads: usize,
    verbose: bool,
    work: impl FnOnce(Control<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start {threads} threads: {error}")))?;
    let (stop, latest) = (AtomicBool::new(false), Mutex::new(None));
    let observer = |progress: &Progress| *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(*progress);
    let control = Control { stop: Some(&stop), observer: verbose.then_some(&observer) };
    let (sender, receiver) = channel();
    let mut raised = None;
    let result = py.detach(|| {
        let receiver = receiver;
        pool.in_place_scope(|scope| {
            // The receiver is there until the result is.
            scope.spawn(move |_| drop(sender.send(work(control))));
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(result) => return Some(result),
                    // The work panicked: leaving the scope passes that on.
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let progress = latest.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Err(error) = Python::attach(|py| tick(py, progress)) {
                    stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
        })
    });
    match (raised, result) {
        (Some(error), _) => Err(error),
        (None, Some(result)) => result.map_err(to_python),
        (None, None) => Err(PyRuntimeError::new_err("the work ended without a result")),
    }
}

/// Fails if a signal handler did (Ctrl-C raises KeyboardInterrupt); tells of new progress.
fn tick(py: Python<'_>, progress: Option<Progress>) -> PyResult<()> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(()) };
    let mut text = format!("[widemargin] iteration {}", progress.iteration);
    if let Some(objective) = progress.objective {
        text += &format!(", objective {objective:.6e}");
    }
    if let Some(gap) = progress.gap {
        text += &format!(", gap {gap:.1e}");
    }
    py.import("builtins")?.call_method1("print", (text,)).map(drop)
}
