//! `widemargin tune DATA [MODEL] --average`

use super::words;
use crate::args::TuneArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::learning::Lesson;
use crate::output::{Output, Summary, count, percent, print, seconds, short};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Laps, peak_memory};
use serde::Serialize;
use std::path::Path;
use widemargin::Error;
use widemargin::calibration::probabilities;
use widemargin::data::ScalingKind;
use widemargin::metrics::Figures;
use widemargin::model::{Averaged, Calibration, Model, UnseenBy};
use widemargin::select::{AverageOptions, AverageOver, average, check_average, choose_threshold, figures_left_out};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    complete: bool,
    machine: &'a str,
    bias: String,
    scale: &'static str,
    rows: usize,
    judged_rows: usize,
    /// How rows were left out.
    by: UnseenBy,
    features: usize,
    classes: usize,
    label: Option<serde_json::Value>,
    feature_names: Option<Vec<&'a str>>,
    accuracy: f64,
    error: f64,
    fits: usize,
    average: Option<&'a Averaged>,
    /// Of rows left out.
    scores: Figures,
    calibration: Option<&'a Calibration>,
    threshold: Option<f64>,
    support: Option<usize>,
    seconds: &'a Laps<f64>,
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
    model: Option<&'a Path>,
}

/// Reads, averages, writes, reports.
pub fn run(args: &TuneArgs, over: AverageOver, seed: u64, output: &Output) -> Outcome {
    if let Some((name, _)) = args.learn.given.0.first() {
        let reason = format!("--average has points of its own, of all strengths: leave out --{name}");
        return Err(Failure::from(Error::Usage(reason)));
    }
    let places = Places::default().writes(args.model.as_ref());
    let mut lesson = Lesson::read(&args.learn, seed, places, &check_average, output)?;
    if args.learn.machine.is_none() {
        lesson.options.machine = crate::machines::find("odm")?;
    }
    check_average(&lesson.options)?;
    if args.learn.scale.is_none() {
        lesson.options.scaling = Some(ScalingKind::MinMax);
    }
    let spinner = Spinner::start(output, format!("averaging {}", lesson.options.machine.name()));
    let mut found = interrupt::stoppable(|control| {
        let how = AverageOptions::new(args.search_rows, over);
        average(lesson.examples()?, lesson.weights.as_deref(), &lesson.options, how, control)
    })?;
    drop(spinner);
    lesson.clock.lap("search");
    if let Some(schema) = &lesson.data.schema {
        found.model.schema = Some(schema.clone());
    }
    if let Some(form) = args.learn.probability {
        found.model.calibration = Some(probabilities(&found.unseen, form));
    }
    if let Some(choice) = args.learn.threshold {
        found.model.threshold = Some(choose_threshold(choice, &found.model, &found.unseen)?);
    }
    let model = &found.model;
    if let Some(path) = &args.model {
        interrupt::writing(|| model.save(path))?;
    }
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        complete: true,
        machine: &model.machine,
        bias: model.bias.to_string(),
        scale: ScalingKind::word(lesson.options.scaling),
        rows: lesson.data.rows.rows(),
        judged_rows: found.judged_rows,
        by: found.unseen.by,
        features: model.features,
        classes: model.labels.len(),
        label: words::label_column(model),
        feature_names: model.schema.as_ref().and_then(|schema| schema.column_names()),
        accuracy: 1.0 - found.loo_error,
        error: found.loo_error,
        fits: found.fits,
        average: model.average.as_ref(),
        scores: figures_left_out(&found.unseen, model),
        calibration: model.calibration.as_ref(),
        threshold: model.threshold,
        support: model.scorer.support(),
        seconds: lesson.clock.seconds(),
        processor: lesson.clock.processor(),
        peak_memory: peak_memory(),
        model: args.model.as_deref(),
    };
    if output.json { output.object(&report) } else { print(&format!("{}\n", summary(&report, model, args))) }
}

fn summary(report: &Report<'_>, model: &Model, args: &TuneArgs) -> Summary {
    let mut summary = Summary::default();
    let size = format!("{} × {}", count(report.rows, "row"), count(report.features, "feature"));
    summary
        .line("average of", format!("{}, {}", report.machine, count(report.average.map_or(0, |a| a.points), "point")))
        .line("data", format!("{}: {size}, {}", args.learn.data, count(report.classes, "class")))
        .line("judged by", format!("{} on {}", words::judged_by(report.by), count(report.judged_rows, "row")))
        .line("found", format!("{} correct left out", percent(report.accuracy)));
    for kernel in report.average.iter().flat_map(|average| &average.kernels) {
        summary.line("kernel", format!("{:.3}  {}", kernel.weight, words::averaged(kernel)));
    }
    if let (Some(average), Some(calibration)) = (report.average, report.calibration) {
        summary
            .line("loss", format!("{} on rows left out", short(average.loo_log_loss)))
            .line("probability", words::calibration(calibration));
    }
    if let Some(threshold) = report.threshold {
        summary.line("threshold", words::threshold(threshold, &model.labels));
    }
    let place = args.model.as_ref().map_or("not written (no MODEL was named)".into(), |p| p.display().to_string());
    summary.line("scaling", report.scale);
    words::columns(model, &mut summary);
    summary
        .line("fits", report.fits.to_string())
        .line("time", seconds(report.seconds.of("search")))
        .line("model", place);
    summary
}
