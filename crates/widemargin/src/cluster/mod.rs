//! From rows that lie in parts elsewhere (on the workers of a cluster, in a file larger than memory) to a model: linear machines
//! of the convex family, with the same optimum and the same certificate as rows at hand would give. With a kernel the rows are at
//! hand, and it is the products with their kernel matrix that others make (`kernel`).

mod disk;
mod kernel;

pub use crate::kernel::{KernelProducts, ProductAsked};
pub use crate::solver::parts::{Ask, PartMemory, PartRows, PartTask, PartsSolution, PointAsked, Question, RowParts};

pub use disk::{PassWatch, train_file};
pub use kernel::train_kernel;

use crate::control::Control;
use crate::kernel::Kernel;
use crate::machine::{Form, MACHINES, Machine, Outcome, check_parameters};
use crate::model::{Decision, DualKept, Model, ModelCertificate, Scorer};
use crate::multiclass::{Multiclass, summary};
use crate::problem::{Bias, StopReason};
use crate::solver::parts::solve;
use crate::train::{TrainOptions, check_options};
use crate::{Advice, Error, Result};

/// What is known of the rows as a whole.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The labels, ascending; codes are positions among them.
    pub labels: Vec<String>,
    /// Number of features.
    pub features: usize,
    /// Number of rows that have a weight.
    pub rows: usize,
}

/// Trains a linear machine on rows that lie in parts: one problem for two classes, one against all for more.
pub fn train(
    parts: &mut dyn RowParts,
    whole: Whole,
    options: &TrainOptions,
    control: Control<'_>,
) -> Result<(Model, Outcome)> {
    check_options(options)?;
    check_fits(&whole, options)?;
    let bias = options.machine.intercept(options.bias);
    let columns: Vec<u32> = if whole.labels.len() == 2 { vec![1] } else { (0..whole.labels.len() as u32).collect() };
    let mut solved = Vec::with_capacity(columns.len());
    for positive in columns {
        let form = |total: f64| {
            let form = options.machine.form(&options.parameters, total);
            form.map(|form| (form.loss, form.variance)).ok_or_else(|| not_convex(options))
        };
        solved.push(solve(parts, whole.features, positive, bias, form, &options.settings, control)?);
    }
    let outcome = outcome(&solved, options);
    Ok((model(whole, solved, bias, options, &outcome), outcome))
}

fn not_convex(options: &TrainOptions) -> Error {
    let reason = format!("{} is no sum over rows, which is all that parts of them can give", options.machine.name());
    Error::conflict(reason, able(|_| true))
}

/// The machines whose form, at their default parameters, is such.
fn able(fits: impl Fn(&Form) -> bool) -> Advice {
    let form = |machine: &&&Machine| machine.form(&check_parameters(machine, &[]).ok()?, 1.0);
    let names = MACHINES.iter().filter(|machine| form(machine).is_some_and(|form| fits(&form)));
    Advice::values("machine", names.map(|machine| machine.name()))
}

fn check_fits(whole: &Whole, options: &TrainOptions) -> Result<()> {
    if options.machine.form(&options.parameters, 1.0).is_none() {
        return Err(not_convex(options));
    }
    if options.kernel != Kernel::Linear || options.approx.is_some() {
        let reason = format!("rows in parts are for linear machines, not for the kernel {}", options.kernel.name());
        return Err(Error::conflict(reason, Advice::values("kernel", ["linear"])));
    }
    check_shape(whole.labels.len(), options)
}

/// What rows elsewhere ask of the options, with a kernel or without.
fn check_shape(classes: usize, options: &TrainOptions) -> Result<()> {
    if options.scaling.is_some() {
        return Err(Error::Usage("rows in parts are taken as they are: scale them before".into()));
    }
    if classes < 2 {
        let reason = format!("they have labels of {classes} classes; a classifier needs rows of at least two");
        return Err(Error::Data { file: "the rows".into(), reason });
    }
    match options.multiclass {
        Some(Multiclass::Ovo | Multiclass::Ecoc) if classes > 2 => Err(Error::conflict(
            "rows in parts meet more than two classes one against all",
            Advice::values("multiclass", [Multiclass::Ova]),
        )),
        _ => Ok(()),
    }
}

/// What training tells. Margins stay where the rows are.
fn outcome(solved: &[PartsSolution], options: &TrainOptions) -> Outcome {
    let tol = options.settings.asked();
    let one = |found: &PartsSolution| {
        let stop = found.stop.judge(Some(found.certificate.gap()), None, tol);
        let plain = Outcome::plain(found.solver.clone(), stop, found.steps, Vec::new(), found.norm);
        Outcome { support: found.support, ..plain }.certified(Some(found.certificate))
    };
    let mut outcomes: Vec<Outcome> = solved.iter().map(one).collect();
    match outcomes.len() {
        1 => outcomes.remove(0),
        _ => {
            let support = outcomes.iter().map(|outcome| outcome.support).max().unwrap_or(0);
            summary("ova", &outcomes, Vec::new(), support, tol)
        }
    }
}

fn model(whole: Whole, solved: Vec<PartsSolution>, bias: Bias, options: &TrainOptions, outcome: &Outcome) -> Model {
    let total = solved.first().map_or(0.0, |found| found.total);
    let (weights, intercepts) = solved.into_iter().map(|found| (found.weights, found.intercept)).unzip();
    let form = options.machine.form(&options.parameters, 1.0);
    let slopes = form.is_some_and(|form| form.loss.is_smooth()) && outcome.stop != StopReason::Unbounded;
    let decision = if whole.labels.len() == 2 { Decision::Sign } else { Decision::Largest };
    let scorer = Scorer::Linear { weights, intercepts };
    Model {
        parameters: options.machine.settled(&options.parameters, total),
        bias,
        bias_asked: (bias != options.bias).then_some(options.bias),
        certificate: ModelCertificate {
            solver: outcome.solver.clone(),
            objective: outcome.objective,
            dual_objective: outcome.dual_objective,
            gap: outcome.gap.filter(|gap| gap.is_finite()),
            stop: outcome.stop,
            iterations: outcome.iterations,
            rows: whole.rows,
            tol: Some(options.settings.tol),
            dual: slopes.then_some(DualKept::Slopes),
        },
        ..Model::plain(options.machine.name(), whole.labels, whole.features, scorer, decision)
    }
}
