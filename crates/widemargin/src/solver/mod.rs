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
    /// The tolerance that was asked for, where [`tol`](Self::tol) aims at less; `None`: that is `tol` itself.
    pub asked: Option<f64>,
}

/// Problems of at most so many rows are solved to [`ROUNDING`]: it costs nothing, and the result depends neither on the
/// order of the rows nor on whether a row is repeated or counted twice.
const FEW_ROWS: usize = 100;
/// A relative gap that rounding errors hardly let one go below.
const ROUNDING: f64 = 1e-13;

impl Settings {
    /// What to aim at with so many rows.
    pub(crate) fn with_rows(self, rows: usize) -> Self {
        let tol = if rows <= FEW_ROWS { self.tol.min(ROUNDING) } else { self.tol };
        Self { tol, asked: Some(self.asked()), ..self }
    }

    /// The tolerance by which a fit is judged, whatever it aimed at.
    pub fn asked(&self) -> f64 {
        self.asked.unwrap_or(self.tol)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self { tol: 1e-3, max_iter: None, memory: 2 << 30, seed: 0, asked: None }
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
    /// The result is a closed form: nothing to converge.
    Exact,
    /// The rounds reached a fixed point: neither active rows nor weights change any more.
    Rest,
    /// The limit on iterations or rounds came first; the gap, where there is one, says how far it got.
    Iterations,
    /// The objective falls without end as the free intercept runs away: there is nothing to converge to.
    Unbounded,
}

impl StopReason {
    /// Whether the result is as good as was asked for.
    pub fn converged(self) -> bool {
        matches!(self, Self::Gap | Self::Exact | Self::Rest)
    }

    /// The reason that what was measured bears out: the one rule by which a fit is called converged.
    ///
    /// `gap` is the relative duality gap where there is one, `tol` the tolerance asked for. `rest` is for machines that go
    /// in rounds, whose gap is only that of the last round's problem: whether the rounds came to rest. A gap within the
    /// tolerance counts whatever the solver aimed at; one above it, or none that is a number, never does.
    pub fn judge(self, gap: Option<f64>, rest: Option<bool>, tol: f64) -> Self {
        let within = gap.is_none_or(|gap| gap <= tol);
        match (self, rest) {
            (_, Some(false)) => Self::Iterations,
            (_, Some(true)) if within => Self::Rest,
            (Self::Exact | Self::Rest, None) if within => self,
            (_, None) if within && gap.is_some() => Self::Gap,
            (Self::Precision | Self::Unbounded, _) => self,
            _ => Self::Iterations,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StopReason::{self, Exact, Gap, Iterations, Precision, Rest};

    #[test]
    fn a_status_is_earned() {
        let cases: [(StopReason, Option<f64>, Option<bool>, StopReason); 16] = [
            // Within the tolerance asked for, whatever was aimed at.
            (Gap, Some(1e-4), None, Gap),
            (Precision, Some(1e-4), None, Gap),
            (Iterations, Some(1e-3), None, Gap),
            // Above it, or no number.
            (Gap, Some(2e-3), None, Iterations),
            (Precision, Some(2e-3), None, Precision),
            (Iterations, Some(f64::NAN), None, Iterations),
            (Gap, Some(f64::NAN), None, Iterations),
            (Gap, Some(f64::INFINITY), None, Iterations),
            (Gap, None, None, Iterations),
            // Closed forms and rest.
            (Exact, None, None, Exact),
            (Exact, Some(0.0), None, Exact),
            (Exact, Some(f64::NAN), None, Iterations),
            (Rest, None, None, Rest),
            // Rounds: their last problem's gap proves nothing unless they rest.
            (Gap, Some(1e-9), Some(false), Iterations),
            (Precision, Some(1e-9), Some(true), Rest),
            (Rest, Some(0.5), Some(true), Iterations),
        ];
        for (stop, gap, rest, expected) in cases {
            assert_eq!(stop.judge(gap, rest, 1e-3), expected, "{stop:?} {gap:?} {rest:?}");
        }
        assert!([Gap, Exact, Rest].iter().all(|stop| stop.converged()));
        assert!(![Precision, Iterations].iter().any(|stop| stop.converged()));
    }
}
