//! Margin-distribution learning: ODM, LDM, mcODM, MSVMAv and the SVMs beside them, exact and certified.
//!
//! ```
//! use widemargin::prelude::*;
//!
//! # fn main() -> widemargin::Result<()> {
//! let rows = [[0.0, 1.0], [0.2, 0.9], [1.0, 0.1], [0.9, 0.0]];
//! let data = Dataset::from_rows(&rows, &["ham", "ham", "spam", "spam"])?;
//! let model = Odm::new().c1(128.0).kernel(Rbf::scale()).fit(&data)?;
//! let classes = model.predict(&data.rows)?;
//! assert_eq!(model.labels[classes[3] as usize], "spam");
//! # Ok(())
//! # }
//! ```
//!
//! [`learner`] is that API, [`data`] reads and holds rows, [`model`] predicts, saves and loads, [`select`] tunes, [`verify`] checks a
//! certificate by a second path, and [`error`] is all that can go wrong. The other modules are what these stand on; the command line,
//! the studies and the Python module use them too. Those without documentation here may change with any version.
//!
//! A support vector machine maximises the smallest margin `γ_i = y_i f(x_i)`; the machines here shape the whole
//! distribution of margins. The way of a row of data through this crate:
//!
//! ```text
//! file ─ data ─ scale ─┐
//!                      ├─ machine ─ (loss, kernel) ─ solver ─ model ─ margins, metrics
//! parameters ──────────┘                                        └─ predict
//! ```

pub mod audit;
pub mod calibration;
pub mod cluster;
pub mod control;
pub mod data;
mod design;
pub mod error;
#[doc(hidden)]
pub mod journal;
pub mod kernel;
pub mod learner;
mod linalg;
#[doc(hidden)]
pub mod loss;
pub mod machine;
pub mod margins;
#[doc(hidden)]
pub mod memory;
pub mod metrics;
pub mod model;
#[doc(hidden)]
pub mod multiclass;
mod names;
pub mod problem;
#[doc(hidden)]
pub mod random;
pub mod select;
#[doc(hidden)]
pub mod solver;
pub mod train;
pub mod verify;

pub use error::{Advice, Error, Remedy, Result, Wording};
pub use names::Named;

/// What a program that trains and predicts needs: `use widemargin::prelude::*`.
pub mod prelude {
    #[cfg(feature = "embedded")]
    pub use crate::data::embedded;
    pub use crate::data::{Dataset, Matrix, ReadOptions, ScalingKind, read};
    pub use crate::learner::{KernelChoice, Laplacian, Ldm, Lssvm, McOdm, Odm, Poly, Rbf, SquaredSvm, Svm};
    pub use crate::model::{Model, Multiclass};
    pub use crate::problem::Bias;
    pub use crate::train::ClassWeight;
}
