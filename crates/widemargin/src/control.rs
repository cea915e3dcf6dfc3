//! How the outside watches and stops a long piece of work.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};

/// A solver's state after one pass, for progress bars and logs.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Passes, Newton steps or rounds done.
    pub iteration: usize,
    /// Primal objective, where it is known at this point.
    pub objective: Option<f64>,
    /// Relative duality gap, where it is known at this point.
    pub gap: Option<f64>,
}

/// Who watches: an observer called after each iteration, and a flag that asks the work to stop.
#[derive(Clone, Copy, Default)]
pub struct Control<'a> {
    /// Set it to `true` and the work ends with [`Error::Interrupted`] within a fraction of a second.
    pub stop: Option<&'a AtomicBool>,
    /// Called after each iteration.
    pub observer: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl Control<'_> {
    /// Fails once a stop was asked for. Call it at least every few tens of milliseconds of work.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Interrupted),
            _ => Ok(()),
        }
    }

    /// Tells the observer, and checks.
    pub fn report(&self, progress: Progress) -> Result<()> {
        if let Some(observer) = self.observer {
            observer(&progress);
        }
        self.check()
    }
}
