//! What a case comes to.

use std::fmt::Display;

/// Words to count: the kind of a case, and how it ended (`converged`, `refused`, …).
pub type Facts = Vec<String>;

/// A promise that was not kept.
pub struct Failure(pub String);

impl<T: Display> From<T> for Failure {
    fn from(reason: T) -> Self {
        Self(reason.to_string())
    }
}

/// How a case ended.
pub type Outcome = Result<Facts, Failure>;

/// Fails unless something holds.
pub fn require(holds: bool, promise: impl FnOnce() -> String) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure(promise())) }
}
