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
//! [`learner`] is that API, [`data`] reads and holds rows, [`model`] predicts, saves and loads, [`metrics`] says how good predictions are,
//! [`error`] is all that can go wrong. Beyond a fit, [`select`] tunes and averages, [`calibration`] makes probabilities and sets of labels of
//! scores of rows left out, [`audit`] looks for wrong labels, and [`verify`] checks a certificate by a second path. What these stand on has no
//! documentation here and may change with any version; the command line, the studies and the Python module use it too.
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
#[doc(hidden)]
pub mod cluster;
#[doc(hidden)]
pub mod control;
pub mod data;
mod design;
pub mod error;
#[doc(hidden)]
pub mod journal;
#[doc(hidden)]
pub mod kernel;
pub mod learner;
mod linalg;
#[doc(hidden)]
pub mod loss;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod margins;
#[doc(hidden)]
pub mod memory;
pub mod metrics;
pub mod model;
#[doc(hidden)]
pub mod multiclass;
mod names;
#[doc(hidden)]
pub mod problem;
#[doc(hidden)]
pub mod random;
pub mod select;
#[doc(hidden)]
pub mod solver;
#[doc(hidden)]
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
