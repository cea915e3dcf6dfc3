//! Margin-distribution learning: ODM, LDM, mcODM, MSVMAv and the SVMs they improve on, exact and certified.
//!
//! A support vector machine maximises the smallest margin `γ_i = y_i f(x_i)`; the machines here shape the whole
//! distribution of margins. The way of a row of data through this crate:
//!
//! ```text
//! file ─ data ─ scale ─┐
//!                      ├─ machine ─ (loss, kernel) ─ solver ─ model ─ margins ─ report
//! parameters ──────────┘                                        └─ predict
//! ```

pub mod control;
pub mod data;
mod design;
pub mod error;
pub mod journal;
pub mod kernel;
mod linalg;
pub mod loss;
pub mod machine;
pub mod margins;
pub mod memory;
pub mod model;
pub mod multiclass;
mod names;
pub mod problem;
pub mod random;
pub mod select;
pub mod solver;
pub mod train;
pub mod verify;

pub use error::{Advice, Error, Remedy, Result, Wording};
pub use names::Named;
