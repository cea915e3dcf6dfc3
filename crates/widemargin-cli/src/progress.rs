//! A line on the terminal that shows that something is happening.

use crate::output::{Output, short};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;
use widemargin::control::Progress;

/// A spinner on standard error, or nothing if nobody watches.
pub struct Spinner {
    bar: ProgressBar,
    task: String,
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
        Self { bar, task }
    }

    /// Shows something else.
    pub fn say(&self, message: String) {
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
        self.bar.set_message(message);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
