//! Minimise a margin loss over a set of rows. Knows no machine.

pub mod certify;
pub mod cg;
pub mod dcd;
pub mod decomposition;
pub(crate) mod design;
pub mod expansion;
pub mod fit;
pub mod linear;
pub mod multiclass;
pub mod newton;
pub mod passes;
pub mod problem;
pub mod sgd;
pub mod spaces;

pub use problem::{Certificate, Problem};

use serde::{Deserialize, Serialize};

/// Limits and tolerances of a solver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Stop once the relative duality gap is at most this. Default `1e-3`.
    pub tol: f64,
    /// At most this many iterations (passes, Newton steps or rounds); `None`: the solver's own limit.
    pub max_iter: Option<usize>,
    /// Bytes that kernel rows may take.
    pub memory: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// Problems of at most so many rows are solved to [`ROUNDING`]: it costs nothing, and the result depends neither on the
/// order of the rows nor on whether a row is repeated or counted twice.
const FEW_ROWS: usize = 100;
/// A relative gap that rounding errors hardly let one go below.
const ROUNDING: f64 = 1e-13;

impl Settings {
    /// What to aim at with so many rows.
    pub(crate) fn with_rows(self, rows: usize) -> Self {
        Self { tol: if rows <= FEW_ROWS { self.tol.min(ROUNDING) } else { self.tol }, ..self }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { tol: 1e-3, max_iter: None, memory: 2 << 30, seed: 0 }
    }
}

/// Why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The relative duality gap is within the tolerance.
    Gap,
    /// The gap is above the tolerance but rounding errors hide any further progress.
    Precision,
    /// The result is a closed form or a fixed number of rounds: nothing to converge.
    Exact,
    /// The rounds reached a fixed point: neither active rows nor weights change any more.
    Rest,
    /// The limit on iterations came first; the gap says how far it got.
    Iterations,
}

impl StopReason {
    /// Whether the result is as good as was asked for (or as numbers allow).
    pub fn converged(self) -> bool {
        !matches!(self, Self::Iterations)
    }
}
