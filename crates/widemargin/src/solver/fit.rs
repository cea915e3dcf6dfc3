//! Picks a solver for a problem, runs it, and falls back where it crawls.

use super::dcd::{self, Patience};
use super::decomposition::{self, Source};
use super::expansion::{Gram, KernelSpace, SINGLE};
use super::linear::{Ended, LinearSpace, NORMAL_EQUATIONS};
use super::newton::{self, Space};
use super::passes::{EachNth, LinearRows};
use super::spaces::Weights;
use super::{Certificate, Problem, Settings, StopReason};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, KernelRows};
use crate::linalg;
use crate::machine::{Bias, Expansion, SolverChoice};
use crate::{Error, Result, with_rows};

/// A solved problem.
pub struct Solved {
    /// The score function, one column.
    pub expansion: Expansion,
    /// Dual variables `a_i`.
    pub a: Vec<f64>,
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

/// Up to this many rows a linear problem with more features than rows is solved through its `m × m` inner products.
pub(crate) const SMALL: usize = 3000;
/// Up to this many the inner products of sparse rows cost less than some fifty passes of coordinate descent.
const FEW: usize = 100;
/// Passes of coordinate descent before Newton's method takes over.
const PASSES: usize = 1000;

/// Minimises `problem` over the rows. Which solver ran, and whether another had to help, is in [`Solved::solver`].
pub fn solve(
    problem: &Problem<'_>,
    rows: &Matrix<'_>,
    kernel: Kernel,
    choice: SolverChoice,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Solved> {
    if kernel == Kernel::Linear {
        return with_rows!(rows, x => linear(problem, x, rows, choice, settings, control));
    }
    match choice {
        SolverChoice::Asgd | SolverChoice::Svrg => Err(Error::Usage(format!(
            "the solvers asgd and svrg work on the linear kernel; with --kernel {} use auto, newton or dcd",
            kernel.name()
        ))),
        _ => with_kernel(problem, rows, kernel, choice, settings, control),
    }
}

fn linear<X: Rows>(
    problem: &Problem<'_>,
    x: &X,
    rows: &Matrix<'_>,
    choice: SolverChoice,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Solved> {
    let design = LinearRows { x, y: problem.y, bias: problem.bias };
    let (m, n) = (x.rows(), design.width());
    let through_products = n > NORMAL_EQUATIONS && m <= SMALL;
    // A pass of coordinate descent costs what a product does, and a handful suffice where rows are short.
    // A free intercept makes it slow, which only losses with kinks have to put up with.
    let descent = n > NORMAL_EQUATIONS && (!problem.loss.is_smooth() || !x.is_dense() && problem.bias != Bias::Free);
    match choice {
        SolverChoice::Asgd => super::sgd::asgd(problem, design, settings, control),
        SolverChoice::Svrg => super::sgd::svrg(problem, design, settings, control),
        SolverChoice::Dcd => linear_dcd(problem, design, rows, settings, true, control),
        SolverChoice::Auto if descent && !(through_products && (x.is_dense() || m <= FEW)) => {
            linear_dcd(problem, design, rows, settings, false, control)
        }
        SolverChoice::Newton | SolverChoice::Auto if through_products => {
            let kernel = KernelRows::new(Kernel::Linear, rows, offset(problem.bias));
            let gram = Gram::new(&kernel, settings.tol, control)?;
            let start = KernelSpace::new(&gram, problem.y, problem.bias, vec![0.0; m], 0.0);
            let solved = kernel_newton(start, problem, vec![0.0; m], settings, control)?;
            Ok(to_weights(solved, x, "newton (inner products of rows)"))
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
            linear_newton(problem, space, vec![0.0; m], settings, control)
        }
    }
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
) -> Result<Solved> {
    let found = newton::newton(&mut space, problem, multipliers, settings, control)?;
    let solver = match space.inner_steps {
        0 => "newton (normal equations)".to_string(),
        steps => format!("newton (conjugate gradients, {steps} products)"),
    };
    Ok(linear_solved(space, found.a, found.certificate, found.stop, found.steps, solver))
}

/// What a linear solver hands back at the point in `space`.
pub fn linear_solved<X: Rows>(
    space: LinearSpace<'_, X>,
    a: Vec<f64>,
    certificate: Certificate,
    stop: StopReason,
    iterations: usize,
    solver: String,
) -> Solved {
    let norm = space.norm2().sqrt();
    let Ended { weights, intercept, margins, norms2 } = space.end();
    Solved {
        expansion: Expansion::Linear { weights: vec![weights], intercepts: vec![intercept] },
        a,
        certificate: Some(certificate),
        stop,
        iterations,
        solver,
        margins,
        norms2,
        norm,
    }
}

/// Coordinate descent, then Newton's method if the passes run out or (unless `patient`) crawl.
fn linear_dcd<X: Rows>(
    problem: &Problem<'_>,
    design: LinearRows<'_, X>,
    rows: &Matrix<'_>,
    settings: &Settings,
    patient: bool,
    control: Control<'_>,
) -> Result<Solved> {
    let mut weights = Weights::new(&design);
    let passes = settings.max_iter.unwrap_or(PASSES);
    let patience = Patience { passes, leave_when_crawling: !patient, indefinite: false };
    let found = dcd::descend(&mut weights, problem, settings, patience, control)?;
    let Weights { w, margins, norms2, .. } = weights;
    let finished = found.stop.converged() || settings.max_iter.is_some();
    let (m, n) = (design.x.rows(), design.width());
    if !finished && n > NORMAL_EQUATIONS && m <= SMALL {
        let mut solved = linear(problem, design.x, rows, SolverChoice::Newton, settings, control)?;
        solved.solver = format!("dcd ({} passes), then {}", found.passes, solved.solver);
        return Ok(solved);
    }
    let space = LinearSpace::at(design, w, margins).with_norms2(norms2);
    if finished {
        return Ok(linear_solved(space, found.a, found.certificate, found.stop, found.passes, "dcd".into()));
    }
    let mut solved = linear_newton(problem, space, found.v, settings, control)?;
    solved.solver = format!("dcd ({} passes), then {}", found.passes, solved.solver);
    Ok(solved)
}

/// The constant that a regularised constant feature adds to every inner product.
pub fn offset(bias: Bias) -> f64 {
    match bias {
        Bias::Feature(value) => value * value,
        Bias::None | Bias::Free => 0.0,
    }
}

fn with_kernel(
    problem: &Problem<'_>,
    rows: &Matrix<'_>,
    kernel: Kernel,
    choice: SolverChoice,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Solved> {
    let m = rows.rows();
    let needed = Gram::bytes(m, settings.tol);
    let indefinite = matches!(kernel, Kernel::Sigmoid { .. });
    if choice == SolverChoice::Newton && (needed > settings.memory || indefinite) {
        return Err(if indefinite {
            Error::Usage(
                "Newton's method needs a positive semidefinite kernel; sigmoid is not: use --solver dcd".into(),
            )
        } else {
            Error::Memory {
                what: format!("Newton's method over the {m} × {m} kernel matrix"),
                needed,
                budget: settings.memory,
                advice: "use --solver dcd, which keeps only the rows that fit, or raise --memory".into(),
            }
        });
    }
    let source = Source { rows, kernel, offset: offset(problem.bias) };
    let fits = needed <= settings.memory && !indefinite;
    // To the last digits Newton's method is quicker from the start.
    if choice == SolverChoice::Newton || (choice == SolverChoice::Auto && fits && settings.tol < SINGLE) {
        let gram = source.gram(settings.tol, control)?;
        let start = KernelSpace::new(&gram, problem.y, problem.bias, vec![0.0; m], 0.0);
        return kernel_newton(start, problem, vec![0.0; m], settings, control);
    }
    let helped = settings.max_iter.is_none() && fits;
    let patience = Patience { passes: PASSES, leave_when_crawling: helped, indefinite };
    let found = if settings.tol < SINGLE {
        decomposition::descend::<f64>(source, problem, settings, patience, control)?
    } else {
        decomposition::descend::<f32>(source, problem, settings, patience, control)?
    };
    let c: Vec<f64> = found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect();
    let solver = format!("dcd ({} blocks)", found.blocks);
    if helped && !found.stop.converged() {
        let gram = source.gram(settings.tol, control)?;
        let start = KernelSpace::new(&gram, problem.y, problem.bias, c, found.intercept);
        let mut solved = kernel_newton(start, problem, found.v, settings, control)?;
        solved.solver = format!("{solver}, then {}", solved.solver);
        return Ok(solved);
    }
    let intercept = found.intercept + offset(problem.bias) * c.iter().sum::<f64>();
    Ok(Solved {
        margins: found.scores.iter().zip(problem.y).map(|(f, y)| y * (f + found.intercept)).collect(),
        norms2: None,
        norm: linalg::dot(&c, &found.scores).max(0.0).sqrt(),
        expansion: Expansion::Kernel { coefficients: vec![c], intercepts: vec![intercept] },
        a: found.a,
        certificate: (!indefinite).then_some(found.certificate),
        stop: found.stop,
        iterations: found.blocks,
        solver,
    })
}

fn kernel_newton(
    mut space: KernelSpace<'_>,
    problem: &Problem<'_>,
    multipliers: Vec<f64>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Solved> {
    let mut found = newton::newton(&mut space, problem, multipliers, settings, control)?;
    // The dual point has exact zeros, the primal one has not: prefer it, going a little further if it is not good enough.
    for _ in 0..3 {
        let mut dual = space.at(found.a.iter().zip(problem.y).map(|(a, y)| a * y).collect());
        let v: Vec<f64> = found.a.iter().zip(problem.variance_part(space.margins())).map(|(a, u)| a - u).collect();
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
    let c = space.coefficients().to_vec();
    let intercept = space.intercept() + offset(problem.bias) * c.iter().sum::<f64>();
    Ok(Solved {
        expansion: Expansion::Kernel { coefficients: vec![c], intercepts: vec![intercept] },
        a: found.a,
        certificate: Some(found.certificate),
        stop: found.stop,
        iterations: found.steps,
        solver: "newton (kernel matrix)".into(),
        margins: space.margins().to_vec(),
        norms2: None,
        norm: space.norm2().sqrt(),
    })
}

/// From coefficients of rows to a weight vector.
fn to_weights<X: Rows>(mut solved: Solved, x: &X, solver: &str) -> Solved {
    if let Expansion::Kernel { coefficients, intercepts } = solved.expansion {
        let mut weights = vec![0.0; x.cols()];
        for (i, &c) in coefficients[0].iter().enumerate().filter(|(_, c)| **c != 0.0) {
            x.axpy(i, c, &mut weights);
        }
        solved.expansion = Expansion::Linear { weights: vec![weights], intercepts };
    }
    solved.solver = solver.into();
    solved
}
