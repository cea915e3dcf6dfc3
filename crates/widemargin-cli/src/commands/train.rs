//! `widemargin train DATA MODEL`

use super::words;
use crate::args::{FitArgs, TrainArgs};
use crate::failure::{Failure, Outcome};
use crate::files::{fit_options, read_data, read_weights};
use crate::interrupt;
use crate::machines;
use crate::output::{Output, Summary, count, percent, seconds, short};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{between, peak_memory, processor_seconds};
use crate::values::{KernelKind, MulticlassMode, Scale};
use serde::Serialize;
use std::path::Path;
use std::time::Instant;
use widemargin::control::Control;
use widemargin::data::Dataset;
use widemargin::data::Examples;
use widemargin::kernel::Kernel;
use widemargin::machine::{Machine, Parameters};
use widemargin::margins::MarginStatistics;
use widemargin::model::{Calibration, Model};
use widemargin::problem::StopReason;
use widemargin::select::calibrate;
use widemargin::train::{check_rows, train};
use widemargin::{Error, Result};

/// The machine if nobody names one.
const TWO_CLASSES: &str = "odm";
/// The same for more than two classes.
const MORE_CLASSES: &str = "mcodm";

/// Seconds, by what they were spent on.
#[derive(Serialize)]
struct Times {
    read: f64,
    train: f64,
}

/// Processor seconds, where the system tells them.
#[derive(Serialize)]
struct Processor {
    read: Option<f64>,
    train: Option<f64>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    machine: &'a str,
    params: &'a Parameters,
    kernel: Kernel,
    bias: String,
    bias_asked: String,
    scale: &'static str,
    solver: &'a str,
    rows: usize,
    features: usize,
    classes: usize,
    labels: &'a [String],
    objective: Option<f64>,
    dual_objective: Option<f64>,
    gap: Option<f64>,
    stop: StopReason,
    converged: bool,
    advice: Option<String>,
    iterations: usize,
    support: usize,
    norm: f64,
    seconds: Times,
    processor: Processor,
    peak_memory: Option<u64>,
    margins: MarginStatistics,
    loo_bound: Option<f64>,
    loo_error: Option<f64>,
    calibration: Option<Calibration>,
    rounds: Option<&'a [f64]>,
    extras: serde_json::Map<String, serde_json::Value>,
}

impl Report<'_> {
    fn extra(&self, name: &str) -> Option<f64> {
        self.extras.get(name).and_then(serde_json::Value::as_f64)
    }
}

/// Reads, fits, writes, reports.
pub fn run(args: &TrainArgs, given: &[(String, String)], seed: u64, output: &Output) -> Outcome {
    check_early(args.machine.as_deref(), &args.fit, args.scale, given)?;
    check_approx(args)?;
    places(&args.data, args.weights.as_deref()).writes(Some(&args.model)).check()?;
    let begin = processor_seconds();
    let (data, read_seconds) = read_data(&args.data, &args.input, output)?;
    let weights = args.weights.as_ref().map(|path| read_weights(path, data.rows.rows())).transpose()?;
    let machine = choose(args.machine.as_deref(), &args.fit, &data)?;
    check_uses(machine, &args.fit, &data)?;
    let mut options = fit_options(machine, machines::check(machine, given)?, &args.fit, args.scale, seed)?;
    options.class_weight = args.class_weight.clone().unwrap_or_default();
    options.approx = args.approx.map(Into::into);

    let (start, read) = (Instant::now(), processor_seconds());
    let spinner = Spinner::start(output, format!("training {}", machine.name()));
    let (model, found) = interrupt::stoppable(|control| {
        let observer = |progress: &_| spinner.show(progress);
        let control = Control { observer: Some(&observer), ..control };
        let (mut model, found) = train(&data, weights.as_deref(), &options, control)?;
        if args.probability {
            model.calibration = Some(calibrate(Examples::of(&data)?, weights.as_deref(), &options, &found, control)?);
        }
        Result::Ok((model, found))
    })?;
    drop(spinner);
    let times = Times { read: read_seconds, train: start.elapsed().as_secs_f64() };
    let processor = Processor { read: between(begin, read), train: between(read, processor_seconds()) };

    let advice = words::unconverged(&model);
    if let (true, Some(advice)) = (args.strict, &advice) {
        return Err(Failure::Other(format!(
            "did not converge in {} (gap {}); no model was written because of --strict; {advice}",
            count(found.iterations, "iteration"),
            found.gap.map_or("unknown".into(), short),
        )));
    }
    // Writing needs memory of its own; the rows have done their work.
    let rows = data.rows.rows();
    drop(data);
    interrupt::writing(|| model.save(&args.model))?;
    if let Some(words) = words::replaced_intercept(&model) {
        output.warn(&words);
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: &model.machine,
        params: &model.parameters,
        kernel: model.kernel,
        bias: words::bias(model.bias),
        bias_asked: words::bias(options.bias),
        scale: words::scaling(args.scale.kind()),
        solver: &found.solver,
        rows,
        features: model.features,
        classes: model.labels.len(),
        labels: &model.labels,
        objective: found.objective,
        dual_objective: found.dual_objective,
        gap: found.gap,
        stop: found.stop,
        converged: found.stop.converged(),
        advice,
        iterations: found.iterations,
        support: found.support,
        norm: found.norm,
        seconds: times,
        processor,
        peak_memory: peak_memory(),
        margins: found.statistics(),
        loo_bound: found.loo_bound,
        loo_error: found.loo_error,
        calibration: model.calibration,
        rounds: found.rounds.as_deref(),
        extras: found.extras.iter().map(|&(name, value)| (name.to_string(), value.into())).collect(),
    };
    if output.json {
        output.object(&report)?;
    } else {
        output.tell(&summary(&report, args, &model).to_string());
    }
    if let Some(advice) = &report.advice {
        output.warn(advice);
    }
    Ok(())
}

/// What a command reads that learns from rows.
pub(super) fn places(data: &str, weights: Option<&Path>) -> Places {
    weights.into_iter().fold(Places::default().reads(data), Places::reads)
}

/// Finds wrong options before a large file is read.
pub(super) fn check_early(name: Option<&str>, fit: &FitArgs, scale: Scale, given: &[(String, String)]) -> Result<()> {
    let check = |name: &str| {
        let machine = machines::find(name)?;
        fit_options(machine, machines::check(machine, given)?, fit, scale, 0).map(drop)
    };
    match name {
        Some(name) => check(name),
        // Which of the two it will be is known once the classes are counted.
        None => check(TWO_CLASSES).or_else(|error| check(MORE_CLASSES).map_err(|_| error)),
    }
}

/// Refuses options that the machine would ignore; of rows that no machine could use, that is the first thing to say.
pub(super) fn check_uses(machine: &dyn Machine, fit: &FitArgs, data: &Dataset) -> Result<()> {
    machines::check_uses(&[machine], fit).or_else(|error| check_rows(&data.name, &data.rows).and(Err(error)))
}

/// Refuses what an approximation has no meaning for.
fn check_approx(args: &TrainArgs) -> Result<()> {
    let kernel = format!("{:?}", args.fit.kernel).to_lowercase();
    if args.approx.is_some() && matches!(args.fit.kernel, KernelKind::Linear | KernelKind::Sigmoid) {
        return Err(Error::Usage(format!("--approx has no meaning for the {kernel} kernel")));
    }
    Ok(())
}

/// The machine that was asked for, or the one that suits the classes of the data.
pub(super) fn choose(name: Option<&str>, fit: &FitArgs, data: &Dataset) -> Result<&'static dyn Machine> {
    let classes = data.labels.as_ref().map_or(0, |labels| labels.names().len());
    let wrapped = fit.multiclass.is_some_and(|mode| mode != MulticlassMode::Own);
    match name {
        Some(name) => machines::find(name),
        None if classes > 2 && !wrapped => machines::find(MORE_CLASSES),
        None => machines::find(TWO_CLASSES),
    }
}

fn summary(report: &Report<'_>, args: &TrainArgs, model: &Model) -> Summary {
    let mut summary = Summary::default();
    let size = format!("{} × {}", count(report.rows, "row"), count(report.features, "feature"));
    let classes = format!("{} ({})", count(report.classes, "class"), words::labels(report.labels));
    summary
        .line("machine", words::machine(report.machine, report.params))
        .line("kernel", words::kernel(report.kernel))
        .line("intercept", words::intercept(model))
        .line("scaling", report.scale)
        .line("data", format!("{}: {size}, {classes}", args.data))
        .line("solver", format!("{}, {}", report.solver, count(report.iterations, "iteration")))
        .line("stopped", words::stop(report.stop));
    if let (Some(rank), Some(left)) = (report.extra("landmarks"), report.extra("kernel_left_out")) {
        let rows = count(rank as usize, "landmark row");
        summary.line("approximation", format!("{rows}, {} of the kernel left out", percent(left)));
    }
    if let Some(text) = words::objective(report.objective, report.dual_objective, report.gap) {
        summary.line("objective", text);
    }
    let margins = &report.margins;
    let spread = format!("min {}, mean {}", short(margins.min), short(margins.mean));
    summary
        .line("support", format!("{} of {}", report.support, count(report.rows, "row")))
        .line("margins", format!("{spread}, variance {}", short(margins.variance)))
        .line("errors", errors(report));
    if let Some(calibration) = report.calibration {
        summary.line("probability", words::calibration(&calibration));
    }
    summary
        .line("time", format!("{} reading, {} training", seconds(report.seconds.read), seconds(report.seconds.train)))
        .line("model", format!("{} ({})", args.model.display(), kept(model)));
    summary
}

fn errors(report: &Report<'_>) -> String {
    let mut parts = vec![format!("{} in training", percent(report.margins.errors))];
    parts.extend(report.loo_error.map(|error| format!("{} leave-one-out", percent(error))));
    parts.extend(report.loo_bound.map(|bound| format!("leave-one-out at most {}", percent(bound.min(1.0)))));
    parts.join(", ")
}

fn kept(model: &Model) -> String {
    match model.scorer.support() {
        Some(rows) => count(rows, "support row"),
        None => count(model.features, "weight"),
    }
}
