//! Picks a solver for a problem, runs it, and falls back where it crawls.

use super::certify::{Certified, Dual, certify};
use super::dcd::{self, Patience};
use super::decomposition::{self, Source};
use super::expansion::{Gram, KernelSpace, Precision};
use super::linear::{LinearSpace, NORMAL_EQUATIONS};
use super::newton::{self, Space};
use super::passes::{EachNth, LinearRows};
use super::spaces::Weights;
use super::{Certificate, Problem, Settings, StopReason};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, KernelRows};
use crate::linalg;
use crate::machine::{Bias, Expansion, SolverChoice};
use crate::{Error, Remedy, Result, with_rows};

/// A solved problem.
pub struct Solved {
    /// The score function, one column.
    pub expansion: Expansion,
    /// Dual variables `a_i`.
    pub a: Vec<f64>,
    /// The loss's part of them.
    pub v: Vec<f64>,
    /// Whether that is `−s_i φ'(γ_i)`, balanced if the intercept is free.
    pub slopes: bool,
    /// How good it is; `None` over a kernel that is not positive semidefinite, where there is no duality.
    pub certificate: Option<Certificate>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps or passes.
    pub iterations: usize,
    /// The solver in words.
    pub solver: String,
    /// `γ_i`
    pub margins: Vec<f64>,
    /// `‖x̃_i‖²`, a regularised constant feature included, if the solver came by them.
    pub norms2: Option<Vec<f64>>,
    /// `‖w‖`
    pub norm: f64,
}

impl Solved {
    /// The relative duality gap; infinite where there is no certificate.
    pub fn gap(&self) -> f64 {
        self.certificate.map_or(f64::INFINITY, |certificate| certificate.gap())
    }
}

/// Up to this many rows a linear problem with more features than rows is solved through its `m × m` inner products.
pub(crate) const SMALL: usize = 3000;
/// Up to this many the inner products of sparse rows cost less than some fifty passes of coordinate descent.
const FEW: usize = 100;
/// Passes of coordinate descent before Newton's method takes over.
const PASSES: usize = 1000;

/// Where a solver ended. Nothing of it is believed: what is claimed is computed by [`certify`].
pub struct Ending {
    /// The score function, one column.
    pub expansion: Expansion,
    /// A dual point.
    pub dual: Dual,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps or passes.
    pub iterations: usize,
    /// The solver in words.
    pub solver: String,
}

impl Ending {
    /// Where another run over inner products may go on.
    fn start(&self) -> Option<Start> {
        match (&self.expansion, &self.dual) {
            (Expansion::Kernel { coefficients, intercepts }, Dual::Variables(v)) => {
                Some(Start { c: coefficients[0].clone(), intercept: intercepts[0], v: v.clone() })
            }
            _ => None,
        }
    }

    fn after(self, before: &str) -> Self {
        Self { solver: format!("{before}, then {}", self.solver), ..self }
    }

    /// The zero function, for problems on which every solver failed.
    fn zero(m: usize) -> Self {
        Self {
            expansion: Expansion::Kernel { coefficients: vec![vec![0.0; m]], intercepts: vec![0.0] },
            dual: Dual::Slopes,
            stop: StopReason::Precision,
            iterations: 0,
            solver: "none (rounding hides the kernel matrix)".into(),
        }
    }

    /// The zero function, for problems without a solution.
    fn unbounded(rows: &Matrix<'_>, kernel: Kernel) -> Self {
        let zero = Self::zero(rows.rows());
        let expansion = match kernel {
            Kernel::Linear => Expansion::Linear { weights: vec![vec![0.0; rows.cols()]], intercepts: vec![0.0] },
            _ => zero.expansion,
        };
        Self { expansion, stop: StopReason::Unbounded, solver: "none (no minimum)".into(), ..zero }
    }
}

/// What a problem is solved over.
#[derive(Clone, Copy)]
struct Task<'t> {
    problem: &'t Problem<'t>,
    rows: &'t Matrix<'t>,
    kernel: Kernel,
    settings: &'t Settings,
    control: Control<'t>,
}

/// Minimises `problem` over the rows. Which solver ran, and whether another had to help, is in [`Solved::solver`].
pub fn solve(
    problem: &Problem<'_>,
    rows: &Matrix<'_>,
    kernel: Kernel,
    choice: SolverChoice,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Solved> {
    let task = Task { problem, rows, kernel, settings, control };
    if problem.is_unbounded() {
        return task.certified(Ending::unbounded(rows, kernel));
    }
    if kernel == Kernel::Linear {
        return with_rows!(rows, x => linear(&task, x, choice));
    }
    choice.check(kernel)?;
    task.with_kernel(choice)
}

fn linear<X: Rows>(task: &Task<'_>, x: &X, choice: SolverChoice) -> Result<Solved> {
    let Task { problem, settings, control, .. } = *task;
    let design = LinearRows { x, y: problem.y, bias: problem.bias };
    let (m, n) = (x.rows(), design.width());
    // Fewer rows than weights: their inner products are the smaller matrix, and the better one where features are large.
    let through_products = n > m && m <= SMALL;
    // A pass of coordinate descent costs what a product does, and a handful suffice where rows are short.
    // A free intercept makes it slow, which only losses with kinks have to put up with.
    let descent = n > NORMAL_EQUATIONS && (!problem.loss.is_smooth() || !x.is_dense() && problem.bias != Bias::Free);
    let ending = match choice {
        SolverChoice::Asgd => super::sgd::asgd(problem, design, settings, control)?,
        SolverChoice::Svrg => super::sgd::svrg(problem, design, settings, control)?,
        SolverChoice::Dcd => return linear_dcd(task, design, true),
        SolverChoice::Auto if descent && !(through_products && (x.is_dense() || m <= FEW)) => {
            return linear_dcd(task, design, false);
        }
        SolverChoice::Newton | SolverChoice::Auto if through_products => {
            let solver = "newton (inner products of rows)";
            return task.by_products(SolverChoice::Newton, |ending| to_weights(ending, x, solver));
        }
        SolverChoice::Newton | SolverChoice::Auto => {
            let start = from_a_part(problem, &design, settings, control)?;
            let space = match start {
                None => LinearSpace::new(design, vec![0.0; n]),
                Some(w) => LinearSpace::surveyed(design, w, |i, margin| {
                    let (s, (_, slope, curvature)) = (problem.weights[i], problem.loss.jet(margin));
                    (-s * slope, s * curvature)
                }),
            };
            linear_newton(problem, space, vec![0.0; m], settings, control)?
        }
    };
    task.certified(ending)
}

/// Where Newton's method starts: for many rows of few features at the solution of a sixteenth of them, which is nearly that
/// of all and spares a step or two over all; otherwise (`None`) at zero.
fn from_a_part<X: Rows>(
    problem: &Problem<'_>,
    design: &LinearRows<'_, X>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Option<Vec<f64>>> {
    const STEP: usize = 32;
    let (m, n) = (design.x.rows(), design.width());
    let quadratic = problem.loss.is_smooth() && problem.variance == 0.0;
    if !quadratic || n > NORMAL_EQUATIONS || m < 50_000.max(64 * STEP * n) {
        return Ok(None);
    }
    let x = EachNth { x: design.x, step: STEP };
    let y: Vec<f64> = problem.y.iter().step_by(STEP).copied().collect();
    let weights: Vec<f64> = problem.weights.iter().step_by(STEP).map(|s| s * STEP as f64).collect();
    let part = Problem { y: &y, weights: &weights, ..*problem };
    let mut space = LinearSpace::new(LinearRows { x: &x, y: &y, bias: problem.bias }, vec![0.0; n]);
    let rough = Settings { max_iter: Some(3), ..*settings };
    newton::newton(&mut space, &part, vec![0.0; y.len()], &rough, Control { observer: None, ..control })?;
    Ok(Some(space.weights().to_vec()))
}

fn linear_newton<X: Rows>(
    problem: &Problem<'_>,
    mut space: LinearSpace<'_, X>,
    multipliers: Vec<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Ending> {
    let found = newton::newton(&mut space, problem, multipliers, settings, control)?;
    let solver = match space.inner_steps {
        0 => "newton (normal equations)".to_string(),
        steps => format!("newton (conjugate gradients, {steps} products)"),
    };
    let dual = match problem.loss.is_smooth() {
        true => Dual::Slopes,
        false => Dual::Variables(problem.loss_part(&found.a, space.margins())),
    };
    Ok(linear_ending(space, dual, found.stop, found.steps, solver))
}

/// A weight vector as a solver leaves it.
pub fn linear_ending<X: Rows>(
    space: LinearSpace<'_, X>,
    dual: Dual,
    stop: StopReason,
    iterations: usize,
    solver: String,
) -> Ending {
    let (weights, intercept) = space.end();
    let expansion = Expansion::Linear { weights: vec![weights], intercepts: vec![intercept] };
    Ending { expansion, dual, stop, iterations, solver }
}

/// Coordinate descent, then Newton's method if the passes run out or (unless `patient`) crawl.
fn linear_dcd<X: Rows>(task: &Task<'_>, design: LinearRows<'_, X>, patient: bool) -> Result<Solved> {
    let Task { problem, settings, control, .. } = *task;
    let mut weights = Weights::new(&design);
    let passes = settings.max_iter.unwrap_or(PASSES);
    let patience = Patience { passes, leave_when_crawling: !patient, indefinite: false };
    let found = dcd::descend(&mut weights, problem, settings, patience, control)?;
    let Weights { w, margins, .. } = weights;
    let finished = found.stop != StopReason::Iterations || settings.max_iter.is_some();
    let (m, n) = (design.x.rows(), design.width());
    let solver = format!("dcd ({} passes)", found.passes);
    if !finished && n > m && m <= SMALL {
        let x = design.x;
        let words = "newton (inner products of rows)";
        return task.by_products(SolverChoice::Newton, |ending| to_weights(ending, x, words).after(&solver));
    }
    let space = LinearSpace::at(design, w, margins);
    if finished {
        let ending = linear_ending(space, Dual::Variables(found.v), found.stop, found.passes, "dcd".into());
        return task.certified(ending);
    }
    task.certified(linear_newton(problem, space, found.v, settings, control)?.after(&solver))
}

/// The constant that a regularised constant feature adds to every inner product.
pub fn offset(bias: Bias) -> f64 {
    match bias {
        Bias::Feature(value) => value * value,
        Bias::None | Bias::Free => 0.0,
    }
}

impl Task<'_> {
    /// What can be said of where a solver ended. That it stopped for its gap is true only if the gap is what it believed.
    fn certified(&self, ending: Ending) -> Result<Solved> {
        let Ending { expansion, dual, stop, iterations, solver } = ending;
        let slopes = dual == Dual::Slopes;
        let found = certify(self.problem, self.rows, self.kernel, &expansion, dual, self.control)?;
        let slopes = slopes && !bends(self.problem, &found);
        // A solver that believed in its gap was misled by rounding.
        let stop = if stop == StopReason::Gap { StopReason::Precision } else { stop };
        let stop = stop.judge(Some(found.certificate.gap()), None, self.settings.tol);
        Ok(Solved {
            expansion,
            a: found.a,
            slopes,
            v: found.v,
            certificate: Some(found.certificate),
            stop,
            iterations,
            solver,
            margins: found.margins,
            norms2: found.norms2,
            norm: found.norm,
        })
    }

    fn with_kernel(&self, choice: SolverChoice) -> Result<Solved> {
        let indefinite = matches!(self.kernel, Kernel::Sigmoid { .. });
        let needed = Gram::bytes(self.rows.rows(), Precision::for_tolerance(self.settings.tol));
        if choice == SolverChoice::Newton && needed > self.settings.memory {
            let m = self.rows.rows();
            return Err(Error::Memory {
                what: format!("Newton's method over the {m} × {m} kernel matrix"),
                needed,
                budget: self.settings.memory,
                advice: [Remedy::Use("solver", SolverChoice::Dcd.to_string()), Remedy::Raise("memory")].into(),
            });
        }
        if indefinite { self.indefinite() } else { self.by_products(choice, |ending| ending) }
    }

    /// Solves over inner products of rows and certifies what `written` makes of it: in single precision where that mostly
    /// suffices, and on from there in double precision where the certificate says that it did not.
    fn by_products(&self, choice: SolverChoice, written: impl Fn(Ending) -> Ending) -> Result<Solved> {
        let source = Source { rows: self.rows, kernel: self.kernel };
        let single = self.rows.rows() > FEW_IN_DOUBLE
            && Precision::for_tolerance(self.settings.tol) == Precision::Single
            && self.largest_diagonal() < LARGEST_SINGLE;
        // The last one is for solvers that believed in a gap which the certificate does not find.
        let precisions = [Precision::Single, Precision::Double, Precision::Double];
        let (mut start, mut best): (Option<Start>, Option<Solved>) = (None, None);
        for (attempt, &precision) in precisions.iter().enumerate().skip(usize::from(!single)) {
            let tol = if attempt == 2 { TIGHTER * self.settings.tol } else { self.settings.tol };
            let ending = match self.attempt(&source, choice, precision, start.take(), tol) {
                // Rounding may leave a matrix that is not positive semidefinite.
                Err(Error::Numeric { .. }) => continue,
                ending => ending?,
            };
            start = ending.start();
            let believed = ending.stop == StopReason::Gap;
            let mut solved = self.certified(written(ending))?;
            if let Some(before) = &best {
                solved.solver = format!("{}, then in double precision {}", before.solver, solved.solver);
            }
            let limited = solved.stop == StopReason::Iterations && self.settings.max_iter.is_some();
            let done = solved.stop == StopReason::Gap || limited || precision == Precision::Double && !believed;
            if best.as_ref().is_none_or(|best| solved.gap() <= best.gap()) {
                best = Some(solved);
            }
            if done {
                break;
            }
        }
        best.map_or_else(|| self.certified(written(Ending::zero(self.rows.rows()))), Ok)
    }

    fn largest_diagonal(&self) -> f64 {
        let rows = KernelRows::new(self.kernel, self.rows, 0.0);
        (0..rows.len()).map(|i| rows.diagonal(i)).fold(0.0, f64::max)
    }

    /// One run over kernel values of this precision.
    fn attempt(
        &self,
        source: &Source<'_>,
        choice: SolverChoice,
        precision: Precision,
        start: Option<Start>,
        tol: f64,
    ) -> Result<Ending> {
        let Task { problem, control, .. } = *self;
        let settings = &Settings { tol, ..*self.settings };
        let m = self.rows.rows();
        let fits = Gram::bytes(m, precision) <= settings.memory;
        // To the last digits, and from nearby, Newton's method is quicker.
        let at_once =
            choice == SolverChoice::Newton || start.is_some() || choice == SolverChoice::Auto && tight(settings);
        if at_once && fits {
            let gram = source.gram(settings.tol, precision, control)?;
            let Start { c, intercept, v } = start.unwrap_or_else(|| Start::zero(m));
            let space = KernelSpace::new(&gram, problem.y, problem.bias, c, intercept);
            return kernel_newton(space, problem, v, settings, control);
        }
        let helped = settings.max_iter.is_none() && fits;
        let patience = Patience { passes: PASSES, leave_when_crawling: helped, indefinite: false };
        let from = start.as_ref().map(|start| (start.c.as_slice(), start.intercept));
        let found = match precision {
            Precision::Single => decomposition::descend::<f32>(*source, problem, from, settings, patience, control)?,
            Precision::Double => decomposition::descend::<f64>(*source, problem, from, settings, patience, control)?,
        };
        let solver = format!("dcd ({} blocks)", found.blocks);
        let c: Vec<f64> = found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
        if helped && found.stop == StopReason::Iterations {
            let gram = source.gram(settings.tol, precision, control)?;
            let space = KernelSpace::new(&gram, problem.y, problem.bias, c, found.intercept);
            return Ok(kernel_newton(space, problem, found.v, settings, control)?.after(&solver));
        }
        Ok(Ending {
            expansion: Expansion::Kernel { coefficients: vec![c], intercepts: vec![found.intercept] },
            dual: Dual::Variables(found.v),
            stop: found.stop,
            iterations: found.blocks,
            solver,
        })
    }

    /// Over a kernel that is not positive semidefinite there is no duality and no certificate: descent until nothing moves.
    fn indefinite(&self) -> Result<Solved> {
        let Task { problem, rows, kernel, settings, control } = *self;
        let patience = Patience { passes: PASSES, leave_when_crawling: false, indefinite: true };
        let source = Source { rows, kernel };
        let found = match Precision::for_tolerance(settings.tol) {
            Precision::Single => decomposition::descend::<f32>(source, problem, None, settings, patience, control)?,
            Precision::Double => decomposition::descend::<f64>(source, problem, None, settings, patience, control)?,
        };
        let c: Vec<f64> = found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
        let scores = KernelRows::new(kernel, rows, 0.0).product(&c, control)?;
        let intercept = found.intercept;
        Ok(Solved {
            margins: scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect(),
            norms2: None,
            norm: linalg::dot(&c, &scores).max(0.0).sqrt(),
            expansion: Expansion::Kernel { coefficients: vec![c], intercepts: vec![intercept] },
            a: found.a,
            v: found.v,
            slopes: false,
            certificate: None,
            stop: found.stop,
            iterations: found.blocks,
            solver: format!("dcd ({} blocks)", found.blocks),
        })
    }
}

/// How much better a problem is solved again whose certificate was worse than its solver believed.
const TIGHTER: f64 = 0.1;

/// Up to this many rows double precision costs nothing.
const FEW_IN_DOUBLE: usize = 500;

/// Whether rounding of the margins moves the slopes of the loss so far that they are another dual point.
fn bends(problem: &Problem<'_>, found: &Certified) -> bool {
    let Some(norms2) = &found.norms2 else { return true };
    let row = |i: usize| problem.weights[i] * problem.loss.curvature(found.margins[i]) * norms2[i];
    (0..norms2.len()).any(|i| row(i) > 1e6)
}

/// A larger kernel value could overflow in single precision once it is multiplied.
const LARGEST_SINGLE: f64 = 1e15;

/// Whether the tolerance asks for more than single precision mostly gives.
fn tight(settings: &Settings) -> bool {
    Precision::for_tolerance(settings.tol) == Precision::Double
}

/// Coefficients, intercept and multipliers to go on from.
struct Start {
    c: Vec<f64>,
    intercept: f64,
    v: Vec<f64>,
}

impl Start {
    fn zero(m: usize) -> Self {
        Self { c: vec![0.0; m], intercept: 0.0, v: vec![0.0; m] }
    }
}

fn kernel_newton(
    mut space: KernelSpace<'_>,
    problem: &Problem<'_>,
    multipliers: Vec<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Ending> {
    let mut found = newton::newton(&mut space, problem, multipliers, settings, control)?;
    // The dual point has exact zeros, the primal one has not: prefer it, going a little further if it is not good enough.
    for _ in 0..3 {
        let mut dual = space.at(found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect());
        let v = problem.loss_part(&found.a, space.margins());
        let (certificate, a) = newton::certificate(&mut dual, problem, v.clone());
        if certificate.gap() <= settings.tol.max(found.certificate.gap()) {
            (found.certificate, found.a, space) = (certificate, a, dual);
            break;
        }
        if found.stop != StopReason::Gap {
            break;
        }
        let further = Settings { tol: 0.2 * found.certificate.gap().min(settings.tol), ..*settings };
        let next = newton::newton(&mut space, problem, v, &further, control)?;
        found = newton::Found { steps: found.steps + next.steps, stop: found.stop, ..next };
    }
    let dual = Dual::Variables(problem.loss_part(&found.a, space.margins()));
    let (coefficients, intercept) = (space.coefficients().to_vec(), space.intercept());
    Ok(Ending {
        expansion: Expansion::Kernel { coefficients: vec![coefficients], intercepts: vec![intercept] },
        dual,
        stop: found.stop,
        iterations: found.steps,
        solver: "newton (kernel matrix)".into(),
    })
}

/// From coefficients of rows to a weight vector.
fn to_weights<X: Rows>(mut ending: Ending, x: &X, solver: &str) -> Ending {
    if let Expansion::Kernel { coefficients, intercepts } = ending.expansion {
        let mut weights = vec![0.0; x.cols()];
        for (i, &c) in coefficients[0].iter().enumerate().filter(|(_, c)| **c != 0.0) {
            x.axpy(i, c, &mut weights);
        }
        ending.expansion = Expansion::Linear { weights: vec![weights], intercepts };
    }
    ending.solver = solver.into();
    ending
}
