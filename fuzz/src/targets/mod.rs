//! The targets, one file each.

mod faults;
mod journals;
mod languages;
mod models;
mod readers;
pub mod training;

use crate::case::Outcome;
use crate::run::Bench;

/// Cases of one kind.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Runs the case of a seed.
    pub run: fn(u64, &Bench) -> Outcome,
    /// Seconds of processor time that a case may take.
    pub limit: f64,
}

/// All of them.
pub static TARGETS: &[Target] = &[
    Target { name: "readers", run: readers::run, limit: 5.0 },
    Target { name: "models", run: models::run, limit: 5.0 },
    Target { name: "journals", run: journals::run, limit: 10.0 },
    Target { name: "languages", run: languages::run, limit: 5.0 },
    Target { name: "training", run: training::run, limit: 10.0 },
    Target { name: "faults", run: faults::run, limit: 60.0 },
];
