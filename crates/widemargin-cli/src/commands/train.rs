//! `widemargin train DATA MODEL`

use super::words;
use crate::args::TrainArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::learning::Lesson;
use crate::output::{Output, Summary, count, percent, seconds, short};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Clock, Laps, peak_memory};
use serde::Serialize;
use widemargin::Result;
use widemargin::control::Control;
use widemargin::data::ScalingKind;
use widemargin::kernel::{Kernel, Landmarks};
use widemargin::machine::{Outcome as Fitted, Parameters};
use widemargin::margins::MarginStatistics;
use widemargin::model::{Calibration, Model};
use widemargin::problem::StopReason;
use widemargin::train::{TrainOptions, train};

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
    margins: MarginStatistics,
    loo_bound: Option<f64>,
    loo_error: Option<f64>,
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
    let places = Places::default().writes(Some(&args.model));
    let approx = |options: &TrainOptions| args.approx.map_or(Ok(()), |_| Landmarks::check(options.kernel));
    let mut lesson = Lesson::read(&args.learn, seed, places, &approx, output)?;
    lesson.options.approx = args.approx.map(Into::into);
    let (model, found) = fit(&mut lesson, args.learn.probability, output)?;
    let advice = words::unconverged(&model);
    if let (true, Some(advice)) = (args.strict, &advice) {
        return Err(not_converged(&found, advice));
    }
    let Lesson { data, options, clock, .. } = lesson;
    // Writing needs memory of its own; the rows have done their work.
    let rows = data.rows.rows();
    drop(data);
    interrupt::writing(|| model.save(&args.model))?;
    if let Some(words) = words::replaced_intercept(&model) {
        output.warn(&words);
    }
    let report = report(&model, &found, &options, rows, &clock);
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

/// Fits the machine, and probabilities if they are wanted.
fn fit(lesson: &mut Lesson, probability: bool, output: &Output) -> Outcome<(Model, Fitted)> {
    let spinner = Spinner::start(output, format!("training {}", lesson.options.machine.name()));
    let (model, found) = interrupt::stoppable(|control| {
        let observer = |progress: &_| spinner.show(progress);
        let control = Control { observer: Some(&observer), ..control };
        let (mut model, found) = train(&lesson.data, lesson.weights.as_deref(), &lesson.options, control)?;
        if probability {
            model.calibration = Some(lesson.calibrate(&lesson.options, &found, control)?);
        }
        model.threshold = lesson.threshold(&lesson.options, &found, control)?;
        Result::Ok((model, found))
    })?;
    drop(spinner);
    lesson.clock.lap("train");
    Ok((model, found))
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
    options: &TrainOptions,
    rows: usize,
    clock: &'a Clock,
) -> Report<'a> {
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
        margins: found.statistics(),
        loo_bound: found.loo_bound,
        loo_error: found.loo_error,
        calibration: model.calibration,
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
    let margins = &report.margins;
    let spread = format!("min {}, mean {}", short(margins.min), short(margins.mean));
    summary
        .line("support", format!("{} of {}", report.support, count(report.rows, "row")))
        .line("margins", format!("{spread}, variance {}", short(margins.variance)))
        .line("errors", errors(report));
    if let Some(calibration) = report.calibration {
        summary.line("probability", words::calibration(&calibration));
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
