//! Leave-one-out margins of problems that a workspace solved.

use super::point::{Factor, Solved, start_of};
use super::{Ending, Task, Workspace};
use crate::control::Control;
use crate::design::Design;
use crate::kernel::{GramPrecision, Kernel, KernelRows};
use crate::problem::MarginProblem;
use crate::solver::left_out::{LeftOut, LeverageSystem};
use crate::solver::newton::{KernelMatrix, NORMAL_EQUATIONS};
use crate::solver::{Settings, SolverChoice};
use crate::{Error, Result};

/// More work than this (multiplications) is not spent on leave-one-out margins nobody asked for: over features about what a
/// step of training takes, over rows about a second.
const AFFORDABLE_FEATURES: f64 = 2e8;
const AFFORDABLE_ROWS: f64 = 2e9;
/// The relative gap of what counts as the optimum where leave-one-out margins are concerned.
const OPTIMUM: f64 = 1e-9;
/// The same where they are estimated over a kernel, whose values in single precision lead no further.
const NEAR_OPTIMUM: f64 = 1e-6;
/// Beyond so many rows with curvature they are: their factor takes a minute.
const FACTORED_ROWS: usize = 10_000;
/// Of dense rows of up to so many features a factor costs no more than estimates do, which take about fifty products with 65 vectors.
const FACTORED_FEATURES: usize = 6000;
/// Up to this many rows the last steps to it are made unasked.
const POLISHED: usize = 20_000;

/// Leave-one-out margins.
pub struct LeftOutMargins {
    /// The margin of each row under the solution without it.
    pub margins: Vec<f64>,
    /// Their standard error, the root of the mean of its squares, where they are estimates.
    pub error: Option<f64>,
}

impl Workspace<'_> {
    /// Closed-form leave-one-out margins of a problem that was solved: their formula is that of the optimum, so the last steps to it
    /// are made first. Of more rows than a factor is worth they are estimated if they were asked for. `None` as in
    /// [`left_out`](Self::left_out).
    pub fn left_out_at_optimum(
        &self,
        problem: &MarginProblem<'_>,
        solved: &Solved,
        margins: &[f64],
        settings: &Settings,
        control: Control<'_>,
    ) -> Result<Option<LeftOutMargins>> {
        let asked = settings.left_out;
        let rows = LeftOut::new(margins, problem);
        let estimated = asked && self.estimates(&rows);
        if !self.leaves_out(problem) || !estimated && !self.can_leave_out(&rows, asked) {
            return Ok(None);
        }
        let (optimum, precision) = match estimated && self.kernel != Kernel::Linear {
            true => (NEAR_OPTIMUM, GramPrecision::Single),
            false => (OPTIMUM, GramPrecision::Double),
        };
        let exact = Settings { tol: optimum, max_iter: None, ..*settings };
        // Of many rows nobody waits for it unasked: one row changes little there.
        let near = solved.certificate.is_some_and(|found| found.gap() <= optimum);
        let polished = match !near && (asked || margins.len() <= POLISHED) {
            true => {
                let start = start_of(&solved.functions, None, true, problem);
                match self.solve(problem, precision, &start, &exact, Control { observer: None, ..control }) {
                    Ok(Ending { margins: Some(margins), factor, .. }) => Some((margins, factor)),
                    // Rounding hides what is left: the solution as it is has to do.
                    Ok(_) | Err(Error::Numeric { .. }) => None,
                    Err(error) => return Err(error),
                }
            }
            false => None,
        };
        let (margins, factor) = match &polished {
            Some((margins, factor)) => (margins.as_slice(), factor.as_ref()),
            None => (margins, solved.factor.as_ref()),
        };
        let found = match estimated {
            true => self.left_out_by_products(problem, margins, &exact, control)?,
            false => {
                let margins = self.left_out(problem, margins, factor, asked, control)?;
                margins.map(|margins| LeftOutMargins { margins, error: None })
            }
        };
        Ok(found.filter(|found| found.margins.iter().all(|margin| margin.is_finite())))
    }

    /// Whether leave-one-out margins are estimated: where a factor, of features or of rows, takes minutes or does not fit.
    fn estimates(&self, rows: &LeftOut<'_>) -> bool {
        rows.active.len() > FACTORED_ROWS && !self.leaves_out_by_features(rows) || !self.can_leave_out(rows, true)
    }

    /// Estimated leave-one-out margins; `None` where what that takes does not fit the memory, or the products do not come to an end.
    pub(in crate::solver) fn left_out_by_products(
        &self,
        problem: &MarginProblem<'_>,
        margins: &[f64],
        settings: &Settings,
        control: Control<'_>,
    ) -> Result<Option<LeftOutMargins>> {
        let rows = LeftOut::new(margins, problem);
        let task = Task { problem, choice: SolverChoice::Auto, settings, control, fixed: true };
        let system = match self.kernel {
            Kernel::Linear => LeverageSystem::of_rows(&rows, self.rows, self.settings.memory)?,
            _ => match self.newton_matrix(&task, GramPrecision::Single)? {
                KernelMatrix::Tiled(tiles, kernel_rows) => {
                    Some(LeverageSystem::of_tiles(&rows, (tiles, kernel_rows), control)?)
                }
                KernelMatrix::Whole(_) => None,
            },
        };
        let Some(system) = system else { return Ok(None) };
        let Some(found) = system.estimate(problem.bias, settings.seed, control)? else { return Ok(None) };
        Ok(Some(LeftOutMargins { margins: rows.margins(&found.leverage), error: Some(rows.error(&found)) }))
    }

    fn leaves_out(&self, problem: &MarginProblem<'_>) -> bool {
        problem.loss.leaves_out() && problem.variance == 0.0 && !self.is_indefinite()
    }

    /// Whether leverages come from the features, or from the rows: of few features always, as Newton's method leaves their factor,
    /// of more where they are fewer than the rows with curvature and one factor takes no longer than others may.
    fn leaves_out_by_features(&self, rows: &LeftOut<'_>) -> bool {
        let (m, k, n) = (rows.curvature.len(), rows.active.len(), self.rows.cols() + 1);
        let quick = (k as f64) * (n as f64).powi(2) <= (FACTORED_ROWS as f64).powi(3);
        let worth = n < k && (quick || self.rows.is_dense() && n <= FACTORED_FEATURES);
        self.kernel == Kernel::Linear && n <= m && (n <= NORMAL_EQUATIONS || worth)
    }

    /// Whether the leverages of rows fit the memory, and take no longer than may be unless they were asked for.
    fn can_leave_out(&self, rows: &LeftOut<'_>, asked: bool) -> bool {
        let (m, k, n) = (rows.curvature.len(), rows.active.len() as f64, self.rows.cols() as f64 + 1.0);
        let (work, affordable, room) = match self.leaves_out_by_features(rows) {
            true => (m as f64 * n * n, AFFORDABLE_FEATURES, n * n),
            false => (k.powi(3), AFFORDABLE_ROWS, k * k),
        };
        (work <= affordable || asked) && 16.0 * room <= self.settings.memory as f64
    }

    /// Closed-form leave-one-out margins of a solution of a smooth problem, from the factor of its last Newton system where that
    /// still holds; `None` where there are none, or where nobody `asked` for them and they would take long.
    pub fn left_out(
        &self,
        problem: &MarginProblem<'_>,
        margins: &[f64],
        factor: Option<&Factor>,
        asked: bool,
        control: Control<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let rows = LeftOut::new(margins, problem);
        if !self.leaves_out(problem) || !self.can_leave_out(&rows, asked) {
            return Ok(None);
        }
        let by_features = self.leaves_out_by_features(&rows);
        let known = factor.filter(|factor| factor.curvature == rows.curvature).map(|factor| &factor.cholesky);
        let leverage = if by_features {
            rows.by_features(&Design::new(self.rows, problem.bias), known)
        } else if let Some(known) = known {
            Some(rows.by_factor(known, problem.bias))
        } else if let Some(gram) = self.double.get() {
            rows.by_rows(gram.principal(&rows.active, &rows.ridges()), problem.bias)
        } else {
            let chosen = self.rows.select(&rows.active);
            let mut matrix = KernelRows::new(self.kernel, &chosen, 0.0).matrix(control)?;
            let k = rows.active.len();
            rows.ridges().iter().enumerate().for_each(|(p, ridge)| matrix[p * k + p] += ridge);
            rows.by_rows(matrix, problem.bias)
        };
        Ok(leverage.map(|leverage| rows.margins(&leverage)))
    }
}
