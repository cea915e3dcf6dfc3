//! A line on the terminal that shows that something is happening; where there is no terminal, a line now and then.

use crate::output::{Output, short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use widemargin::control::Progress;

/// Where no terminal shows a spinner, a line is written at most this often.
const LINE_EVERY: Duration = Duration::from_secs(15);

/// A spinner on standard error, or lines there if it is no terminal.
pub struct Spinner {
    bar: ProgressBar,
    task: String,
    /// When the last line was written; none where a terminal or nobody watches.
    last_line: Option<Mutex<Instant>>,
}

impl Spinner {
    /// Starts to spin.
    pub fn start(output: &Output, task: impl Into<String>) -> Self {
        let task = task.into();
        let target = if output.watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_message(task.clone());
        if output.watched() {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        let last_line = output.wants_lines().then(|| Mutex::new(Instant::now()));
        Self { bar, task, last_line }
    }

    /// Shows something else.
    pub fn say(&self, message: String) {
        if let Some(last) = &self.last_line {
            let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
            if last.elapsed() >= LINE_EVERY {
                *last = Instant::now();
                // A closed standard error is no reason to fail.
                let _ = writeln!(io::stderr(), "{message}");
            }
        }
        self.bar.set_message(message);
    }

    /// Shows how far the solver got.
    pub fn show(&self, progress: &Progress) {
        let mut message = format!("{}: iteration {}", self.task, progress.iteration);
        if let Some(objective) = progress.objective {
            message += &format!(", objective {}", short(objective));
        }
        if let Some(gap) = progress.gap {
            message += &format!(", gap {}", short(gap));
        }
        self.say(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
