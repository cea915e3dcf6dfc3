//! Long work beside the interpreter: without the lock, on its own threads, and stopped by Ctrl-C.

use crate::errors::{Names, plain, to_python};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use widemargin::Result;
use widemargin::control::{Control, Progress};

/// How often Python is asked whether a signal came.
const TICK: Duration = Duration::from_millis(100);

/// What work is given: a stop sign, and a place for what it has to say.
pub struct Watch<'a> {
    /// For the library.
    pub control: Control<'a>,
    /// What was said last and not yet printed; `None` if nobody wants to know.
    latest: Option<&'a Mutex<Option<String>>>,
}

impl Watch<'_> {
    /// Has this printed soon, unless something newer comes first.
    pub fn say(&self, words: impl FnOnce() -> String) {
        if let Some(latest) = self.latest {
            *lock(latest) = Some(words());
        }
    }
}

fn lock(latest: &Mutex<Option<String>>) -> MutexGuard<'_, Option<String>> {
    latest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// So many threads of their own.
pub fn pool(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| PyRuntimeError::new_err(format!("cannot start {threads} threads: {error}")))
}

/// Does the work on a pool of its own, which a later `fork` cannot leave without threads, while this thread waits
/// for signals; tells of progress if `verbose`. Errors name parameters by `names`.
pub fn watched<T: Send>(
    py: Python<'_>,
    threads: usize,
    verbose: bool,
    names: &Names,
    work: impl FnOnce(&Watch<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let (stop, latest) = (AtomicBool::new(false), Mutex::new(None));
    let observer = |progress: &Progress| *lock(&latest) = Some(words(progress));
    let control = Control { stop: Some(&stop), observer: verbose.then_some(&observer) };
    let watch = &Watch { control, latest: verbose.then_some(&latest) };
    let (sender, receiver) = channel();
    let mut raised = None;
    let result = unpanicked(py, || {
        let receiver = receiver;
        pool.in_place_scope(|scope| {
            // The receiver is there until the result is.
            scope.spawn(move |_| drop(sender.send(work(watch))));
            loop {
                match receiver.recv_timeout(TICK) {
                    Ok(result) => return Some(result),
                    // The work panicked: leaving the scope passes that on.
                    Err(RecvTimeoutError::Disconnected) => return None,
                    Err(RecvTimeoutError::Timeout) => {}
                }
                let words = lock(&latest).take();
                if let Err(error) = Python::attach(|py| tick(py, words)) {
                    stop.store(true, Ordering::Relaxed);
                    raised.get_or_insert(error);
                }
            }
        })
    })?;
    match (raised, result) {
        (Some(error), _) => Err(error),
        (None, Some(result)) => result.map_err(|error| to_python(error, names)),
        (None, None) => Err(PyRuntimeError::new_err("the work ended without a result")),
    }
}

/// Does little work on this thread.
pub fn guarded<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    unpanicked(py, work)?.map_err(plain)
}

/// Does work without the interpreter's lock. A panic, which is an error of this program, becomes an exception that
/// `except Exception` catches.
pub fn unpanicked<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let result = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    result.map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
        PyRuntimeError::new_err(format!("an error inside widemargin, please report it: {words}"))
    })
}

/// Fails if a signal handler did (Ctrl-C raises KeyboardInterrupt); prints what is new.
fn tick(py: Python<'_>, words: Option<String>) -> PyResult<()> {
    py.check_signals()?;
    let Some(words) = words else { return Ok(()) };
    py.import("builtins")?.call_method1("print", (format!("[widemargin] {words}"),)).map(drop)
}

/// Progress in words.
pub fn words(progress: &Progress) -> String {
    let mut text = format!("iteration {}", progress.iteration);
    if let Some(objective) = progress.objective {
        text += &format!(", objective {objective:.6e}");
    }
    if let Some(gap) = progress.gap {
        text += &format!(", gap {gap:.1e}");
    }
    text
}
