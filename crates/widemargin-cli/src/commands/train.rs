//! `widemargin train DATA MODEL`

use super::words;
use crate::args::TrainArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::learning::{self, Lesson};
use crate::output::{Output, Summary, count, is_stdout, one_on_stdout, percent, seconds, short, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Clock, Laps, peak_memory};
use serde::Serialize;
use widemargin::cluster::train_file;
use widemargin::control::Control;
use widemargin::data::{BlockFile, ScalingKind, is_block_file};
use widemargin::kernel::{Kernel, KernelKind, Landmarks};
use widemargin::machine::{Outcome as Fitted, Parameters};
use widemargin::margins::MarginStatistics;
use widemargin::model::{Calibration, Model, UnseenBy};
use widemargin::problem::StopReason;
use widemargin::select::{UnseenMargins, has_left_out_margins, unseen_margins};
use widemargin::train::{TrainOptions, train};
use widemargin::{Error, Result};

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
    /// The label's column: its name, or number from 1; `null` where labels are no column.
    label: Option<serde_json::Value>,
    /// The columns behind the features; `null` where they have no names.
    feature_names: Option<Vec<&'a str>>,
    objective: Option<f64>,
    dual_objective: Option<f64>,
    gap: Option<f64>,
    stop: StopReason,
    converged: bool,
    advice: Option<String>,
    iterations: usize,
    support: usize,
    norm: f64,
    seconds: &'a Laps<f64>,
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
    /// Of rows at hand.
    margins: Option<MarginStatistics>,
    loo_bound: Option<f64>,
    loo_error: Option<f64>,
    /// How rows were left out for it.
    loo_by: Option<UnseenBy>,
    loo_margin_error: Option<f64>,
    calibration: Option<Calibration>,
    threshold: Option<f64>,
    rounds: Option<&'a [f64]>,
    extras: serde_json::Map<String, serde_json::Value>,
}

impl Report<'_> {
    fn extra(&self, name: &str) -> Option<f64> {
        self.extras.get(name).and_then(serde_json::Value::as_f64)
    }
}

/// Reads, fits, writes, reports.
pub fn run(args: &TrainArgs, seed: u64, output: &Output) -> Outcome {
    if is_block_file(&args.learn.data) && args.learn.fit.kernel == KernelKind::Linear {
        return from_disk(args, seed, output);
    }
    let to_stdout = args.loo.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("leave-one-out margins", to_stdout)])?;
    let places = Places::default().writes(Some(&args.model)).writes(args.loo.as_ref());
    let check = |options: &TrainOptions| args.approx.map_or(Ok(()), |_| Landmarks::check(options.kernel));
    let mut lesson = Lesson::read(&args.learn, seed, places, &check, output)?;
    lesson.options.approx = args.approx.map(Into::into);
    lesson.options.settings.left_out = args.loo.is_some();
    lesson.learned.margins = args.loo.is_some();
    check(&lesson.options)?;
    let fitted = fit(&mut lesson, output)?;
    let Lesson { data, options, clock, .. } = lesson;
    // Writing needs memory of its own; the rows have done their work.
    let rows = data.rows.rows();
    drop(data);
    finish(args, &fitted, &options, rows, &clock, output)?;
    match (&args.loo, &fitted.left_out) {
        (Some(path), Some(left_out)) => {
            if let UnseenBy::Folds(folds) = left_out.by {
                output.tell(&from_folds(folds, &fitted.found, &options));
            }
            write_text(path, &lines(&left_out.margins))
        }
        _ => Ok(()),
    }
}

/// Fits a linear machine to a file of blocks, which need not fit into memory.
fn from_disk(args: &TrainArgs, seed: u64, output: &Output) -> Outcome {
    Places::default().writes(Some(&args.model)).reads(&args.learn.data).check()?;
    let given = [
        ("--weights", args.learn.weights.is_some()),
        ("--probability", args.learn.probability.is_some()),
        ("--approx", args.approx.is_some()),
        ("--loo", args.loo.is_some()),
        ("--threshold", args.learn.threshold.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        let reason = format!("{option} needs rows in memory: train on the file that {} was made of", args.learn.data);
        return Err(Error::Usage(reason).into());
    }
    let options = learning::options_from_disk(&args.learn, seed)?;
    let mut clock = Clock::start();
    let file = BlockFile::open(&args.learn.data)?;
    clock.lap("read");
    let task = format!("training {}", options.machine.name());
    let spinner = Spinner::start(output, task.clone());
    let gigabytes = |bytes: u64| format!("{:.1} GB", bytes as f64 / 1e9);
    let watch = |done: u64, total: u64, pass: usize| {
        spinner.say(format!("{task}: pass {pass}, {} of {}", gigabytes(done), gigabytes(total)));
    };
    let (model, found) = interrupt::stoppable(|control| train_file(&file, &options, Some(&watch), control))?;
    drop(spinner);
    clock.lap("train");
    finish(args, &Fit { model, found, left_out: None }, &options, file.counts().rows, &clock, output)
}

/// Writes the model and reports.
fn finish(
    args: &TrainArgs,
    fitted: &Fit,
    options: &TrainOptions,
    rows: usize,
    clock: &Clock,
    output: &Output,
) -> Outcome {
    let Fit { model, found, left_out } = fitted;
    let advice = words::unconverged(model);
    if let (true, Some(advice)) = (args.strict, &advice) {
        return Err(not_converged(found, advice));
    }
    interrupt::writing(|| model.save(&args.model))?;
    if let Some(words) = words::replaced_intercept(model) {
        output.warn(&words);
    }
    let report = report(model, found, left_out.as_ref(), options, rows, clock);
    if output.json {
        output.object(&report)?;
    } else {
        output.tell(&summary(&report, args, model).to_string());
    }
    if let Some(advice) = &report.advice {
        output.warn(advice);
    }
    Ok(())
}

/// What was fitted, and the margins of rows left out if they were asked for.
struct Fit {
    model: Model,
    found: Fitted,
    left_out: Option<UnseenMargins>,
}

/// Fits the machine, and what it is to learn besides.
fn fit(lesson: &mut Lesson, output: &Output) -> Outcome<Fit> {
    let spinner = Spinner::start(output, format!("training {}", lesson.options.machine.name()));
    let fitted = interrupt::stoppable(|control| {
        let observer = |progress: &_| spinner.show(progress);
        let control = Control { observer: Some(&observer), ..control };
        let (mut model, found) = train(&lesson.data, lesson.weights.as_deref(), &lesson.options, control)?;
        let unseen = lesson.learn_unseen(&lesson.options, (&mut model, &found), control)?;
        let margins = |unseen| unseen_margins(lesson.examples()?, &lesson.options, unseen);
        let left_out = unseen.as_ref().filter(|_| lesson.learned.margins).map(margins).transpose()?;
        Result::Ok(Fit { model, found, left_out })
    })?;
    drop(spinner);
    lesson.clock.lap("train");
    Ok(fitted)
}

/// Margins as a file has them: one a line, as short as can be and still be read back to the bit.
fn lines(margins: &[f64]) -> String {
    margins.iter().map(|margin| format!("{margin}\n")).collect()
}

/// That margins of rows left out are those of folds, and why.
fn from_folds(folds: usize, found: &Fitted, options: &TrainOptions) -> String {
    let (machine, kernel) = (options.machine.name(), options.kernel.name());
    let why = match found.stop {
        _ if !has_left_out_margins(options) => {
            format!("for {machine} with the {kernel} kernel there are none in closed form")
        }
        StopReason::Iterations | StopReason::Unbounded => {
            format!("there are none in closed form, as {machine} did not converge")
        }
        _ => "for those in closed form neither a factor nor vectors to estimate them by fit --memory, or rounding, too many \
              products or the chance in an estimate stand between them and an answer (raise --memory, scale the features, or \
              train on fewer rows)"
            .into(),
    };
    format!("margins of rows left out are from {}: {why}", count(folds, "fold"))
}

/// What `--strict` does not let pass.
fn not_converged(found: &Fitted, advice: &str) -> Failure {
    Failure::Other(format!(
        "did not converge in {} (gap {}); no model was written because of --strict; {advice}",
        count(found.iterations, "iteration"),
        found.gap.map_or("unknown".into(), short),
    ))
}

fn report<'a>(
    model: &'a Model,
    found: &'a Fitted,
    left_out: Option<&UnseenMargins>,
    options: &TrainOptions,
    rows: usize,
    clock: &'a Clock,
) -> Report<'a> {
    let in_closed_form = found.loo_error.map(|_| UnseenBy::LeaveOneOut);
    Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: &model.machine,
        params: &model.parameters,
        kernel: model.kernel,
        bias: model.bias.to_string(),
        bias_asked: options.bias.to_string(),
        scale: ScalingKind::word(options.scaling),
        solver: &found.solver,
        rows,
        features: model.features,
        classes: model.labels.len(),
        labels: &model.labels,
        label: words::label_column(model),
        feature_names: model.schema.as_ref().and_then(|schema| schema.column_names()),
        objective: found.objective,
        dual_objective: found.dual_objective,
        gap: found.gap,
        stop: found.stop,
        converged: found.stop.converged(),
        advice: words::unconverged(model),
        iterations: found.iterations,
        support: found.support,
        norm: found.norm,
        seconds: clock.seconds(),
        processor: clock.processor(),
        peak_memory: peak_memory(),
        margins: (!found.margins.is_empty()).then(|| found.statistics()),
        loo_bound: found.loo_bound,
        loo_error: left_out.map(|left_out| left_out.error).or(found.loo_error),
        loo_by: left_out.map(|left_out| left_out.by).or(in_closed_form),
        loo_margin_error: found.loo_margin_error,
        calibration: model.calibration.clone(),
        threshold: model.threshold,
        rounds: found.rounds.as_deref(),
        extras: found.extras.iter().map(|&(name, value)| (name.to_string(), value.into())).collect(),
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
        .line("data", format!("{}: {size}, {classes}", args.learn.data));
    words::columns(model, &mut summary);
    summary
        .line("solver", format!("{}, {}", report.solver, count(report.iterations, "iteration")))
        .line("stopped", words::stop(report.stop));
    if let (Some(rank), Some(left)) = (report.extra("landmarks"), report.extra("kernel_left_out")) {
        let rows = count(rank as usize, "landmark row");
        summary.line("approximation", format!("{rows}, {} of the kernel left out", percent(left)));
    }
    if let Some(text) = words::objective(report.objective, report.dual_objective, report.gap) {
        summary.line("objective", text);
    }
    summary.line("support", format!("{} of {}", report.support, count(report.rows, "row")));
    if let Some(margins) = &report.margins {
        let spread = format!("min {}, mean {}", short(margins.min), short(margins.mean));
        summary
            .line("margins", format!("{spread}, variance {}", short(margins.variance)))
            .line("errors", errors(report, margins));
    }
    if let Some(calibration) = &report.calibration {
        summary.line("probability", words::calibration(calibration));
    }
    if let Some(threshold) = report.threshold {
        summary.line("threshold", words::threshold(threshold, report.labels));
    }
    summary
        .line(
            "time",
            format!("{} reading, {} training", seconds(report.seconds.of("read")), seconds(report.seconds.of("train"))),
        )
        .line("model", format!("{} ({})", args.model.display(), kept(model)));
    summary
}

fn errors(report: &Report<'_>, margins: &MarginStatistics) -> String {
    let mut parts = vec![format!("{} in training", percent(margins.errors))];
    let estimated =
        report.loo_margin_error.map(|error| format!(" (margins estimated, standard error {})", short(error)));
    let estimated = estimated.unwrap_or_default();
    let left_out = match report.loo_by {
        Some(UnseenBy::Folds(folds)) => format!("left out in {}", count(folds, "fold")),
        _ => format!("leave-one-out{estimated}"),
    };
    parts.extend(report.loo_error.map(|error| format!("{} {left_out}", percent(error))));
    parts.extend(report.loo_bound.map(|bound| format!("leave-one-out at most {}", percent(bound.min(1.0)))));
    parts.join(", ")
}

fn kept(model: &Model) -> String {
    match model.scorer.support() {
        Some(rows) => count(rows, "support row"),
        None => count(model.features, "weight"),
    }
}
