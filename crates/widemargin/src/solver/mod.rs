//! Minimise a margin loss over a set of rows. Knows no machine.

pub mod certify;
pub mod dcd;
pub mod decomposition;
mod left_out;
pub mod many;
pub mod newton;
pub mod parts;
pub mod sgd;
pub mod workspace;

pub use workspace::{Ending, LeftOutMargins, Solved, Start, Workspace};

use crate::kernel::Kernel;
use crate::names::named;
use crate::{Advice, Error, Result};
use serde::{Deserialize, Serialize};

/// Which solver the user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SolverChoice {
    /// The program picks and says what it picked.
    #[default]
    Auto,
    /// Dual coordinate descent.
    Dcd,
    /// Newton's method.
    Newton,
    /// Averaged stochastic gradient descent, the LDM paper's Algorithm 2.
    Asgd,
    /// Stochastic variance-reduced gradient, the ODM paper's Algorithm 2.
    Svrg,
}

named!(SolverChoice, "solver", [
    Auto: "auto" "picked by the kernel and the size of the data, and told",
    Dcd: "dcd" "dual coordinate descent",
    Newton: "newton" "Newton's method",
    Asgd: "asgd" "averaged stochastic gradient descent (linear kernel)",
    Svrg: "svrg" "stochastic variance-reduced gradient (linear kernel)",
]);

impl SolverChoice {
    /// Refuses a kernel that it cannot work on.
    pub(crate) fn check(self, kernel: Kernel) -> Result<()> {
        let (reason, others) = match (self, kernel) {
            (_, Kernel::Linear) | (Self::Auto | Self::Dcd, _) => return Ok(()),
            (Self::Asgd | Self::Svrg, _) => (
                format!("{self} works on the linear kernel, not on {}", kernel.name()),
                vec![Self::Auto, Self::Newton, Self::Dcd],
            ),
            (Self::Newton, Kernel::Sigmoid { .. }) => {
                ("Newton's method needs a positive semidefinite kernel, which sigmoid is not".into(), vec![Self::Dcd])
            }
            (Self::Newton, _) => return Ok(()),
        };
        Err(Error::conflict(reason, Advice::values("solver", others)))
    }
}

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
    /// The tolerance that was asked for, where [`tol`](Self::tol) aims at less; `None`: that is `tol` itself.
    pub asked: Option<f64>,
    /// Whether leave-one-out margins are wanted whatever they take, not only where they are nearly free.
    pub left_out: bool,
}

/// Problems of at most so many rows are solved to [`ROUNDING`], but for the folds of a search: it costs little, and the result depends neither on the
/// order of the rows nor on whether a row is repeated or counted twice.
const FEW_ROWS: usize = 100;
/// A relative gap that rounding errors hardly let one go below: some hundred units in the last place.
const ROUNDING: f64 = 1e-13;

impl Settings {
    /// What to aim at with so many rows, if that is not settled.
    pub(crate) fn with_rows(self, rows: usize) -> Self {
        let few = rows <= FEW_ROWS && self.asked.is_none();
        let tol = if few { self.tol.min(ROUNDING) } else { self.tol };
        Self { tol, asked: Some(self.asked()), ..self }
    }

    /// The tolerance by which a fit is judged, whatever it aimed at.
    pub fn asked(&self) -> f64 {
        self.asked.unwrap_or(self.tol)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { tol: 1e-3, max_iter: None, memory: 2 << 30, seed: 0, asked: None, left_out: false }
    }
}
