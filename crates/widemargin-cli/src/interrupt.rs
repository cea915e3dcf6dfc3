//! Ctrl-C: ends within a second, and never in the middle of writing a file.

use crate::failure::{INTERRUPTED, Outcome};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use widemargin::Error;
use widemargin::control::Control;

/// How long work may take to notice that it should stop.
const PATIENCE: Duration = Duration::from_millis(600);

/// Asks the library to stop.
static STOP: AtomicBool = AtomicBool::new(false);
/// Whether work that looks at [`STOP`] is under way.
static STOPPABLE: AtomicBool = AtomicBool::new(false);
/// Held while a file is written.
static WRITING: Mutex<()> = Mutex::new(());

/// What is left to do and to say if the program is stopped: the line for standard error is handed back.
type LastWords = Box<dyn FnOnce() -> String + Send>;
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Listens to Ctrl-C (and to `kill`) from now on.
pub fn install() {
    // Without a handler the program still ends at the signal, only less politely.
    let _ = ctrlc::set_handler(|| {
        STOP.store(true, Ordering::Relaxed);
        if STOPPABLE.load(Ordering::Relaxed) {
            std::thread::sleep(PATIENCE);
        }
        let _kept_until_the_end = wait_for_writing();
        widemargin::data::drop_unfinished_files();
        let message = take_last_words().map_or("interrupted; no file was changed".into(), |words| words());
        if first_to_tell() {
            // Nobody is left to tell if even standard error is closed.
            let _ = writeln!(std::io::stderr(), "error: {message}");
        }
        std::process::exit(INTERRUPTED.into());
    });
}

/// Whether nobody has told of the interruption yet: the signal's thread and the one that works may both come to it.
pub fn first_to_tell() -> bool {
    static TOLD: AtomicBool = AtomicBool::new(false);
    !TOLD.swap(true, Ordering::Relaxed)
}

/// Sets what is to be said at an interruption.
pub fn set_last_words(words: LastWords) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
}

/// Takes the last words: whoever has them says them, so that they are said once.
pub fn take_last_words() -> Option<LastWords> {
    LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Runs work that stops by itself once [`Control::stop`] is set.
pub fn stoppable<T>(work: impl FnOnce(Control<'static>) -> T) -> T {
    STOPPABLE.store(true, Ordering::Relaxed);
    let result = work(Control { stop: Some(&STOP), observer: None });
    STOPPABLE.store(false, Ordering::Relaxed);
    result
}

/// Writes a file; an interruption comes before it or after it.
pub fn writing<T>(write: impl FnOnce() -> widemargin::Result<T>) -> Outcome<T> {
    let _guard = lock();
    if STOP.load(Ordering::Relaxed) {
        return Err(Error::Interrupted.into());
    }
    Ok(write()?)
}

/// Waits for a file to be finished; but whoever writes to a pipe that nobody reads is not waited for.
fn wait_for_writing() -> Option<MutexGuard<'static, ()>> {
    const STEP: Duration = Duration::from_millis(10);
    (0..30).find_map(|_| {
        let free = WRITING.try_lock().ok();
        if free.is_none() {
            std::thread::sleep(STEP);
        }
        free
    })
}

fn lock() -> MutexGuard<'static, ()> {
    WRITING.lock().unwrap_or_else(PoisonError::into_inner)
}
