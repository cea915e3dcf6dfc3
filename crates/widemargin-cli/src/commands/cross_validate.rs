//! `widemargin cross-validate DATA`

use super::{scores, words};
use crate::args::CrossValidateArgs;
use crate::failure::Outcome;
use crate::interrupt;
use crate::learning::Lesson;
use crate::output::{Output, Summary, count, print, seconds};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Laps, peak_memory};
use serde::Serialize;
use widemargin::data::ScalingKind;
use widemargin::kernel::Kernel;
use widemargin::machine::Parameters;
use widemargin::margins::{mean, standard_deviation};
use widemargin::metrics::Figures;
use widemargin::select::cross_validate;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    machine: &'a str,
    params: &'a Parameters,
    kernel: &'static str,
    /// As it was asked for: each fold has its own.
    gamma: Option<String>,
    scale: &'static str,
    rows: usize,
    features: usize,
    classes: usize,
    folds: usize,
    repeats: usize,
    /// The mean over the folds.
    scores: Figures,
    /// The standard deviation over the folds.
    deviations: Figures,
    by_fold: &'a [Figures],
    seconds: &'a Laps<f64>,
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
}

/// Reads, fits each fold, reports.
pub fn run(args: &CrossValidateArgs, seed: u64, output: &Output) -> Outcome {
    let (folds, repeats) = (args.folds.get(), args.repeats.get());
    let mut lesson = Lesson::read(&args.learn, seed, Places::default(), &|_| Ok(()), output)?;
    // Every fold is fitted with the parameters that all rows would be.
    let total = lesson.weights.as_ref().map_or(lesson.data.rows.rows() as f64, |weights| weights.iter().sum());
    lesson.options.parameters = lesson.options.machine.settled(&lesson.options.parameters, total);
    let spinner = Spinner::start(output, format!("cross-validating {}", lesson.options.machine.name()));
    let by_fold = interrupt::stoppable(|control| {
        let weights = lesson.weights.as_deref();
        cross_validate(lesson.examples()?, weights, &lesson.options, (folds, repeats), lesson.learned, control)
    })?;
    drop(spinner);
    lesson.clock.lap("validate");
    let options = &lesson.options;
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: options.machine.name(),
        params: &options.parameters,
        kernel: options.kernel.name(),
        gamma: (options.kernel != Kernel::Linear).then(|| options.gamma.to_string()),
        scale: ScalingKind::word(options.scaling),
        rows: lesson.data.rows.rows(),
        features: lesson.data.rows.cols(),
        classes: lesson.data.labels.as_ref().map_or(0, |labels| labels.names().len()),
        folds,
        repeats,
        scores: Figures::over(&by_fold, mean),
        deviations: Figures::over(&by_fold, standard_deviation),
        by_fold: &by_fold,
        seconds: lesson.clock.seconds(),
        processor: lesson.clock.processor(),
        peak_memory: peak_memory(),
    };
    if output.json {
        return output.object(&report);
    }
    print(&text(&report, &args.learn.data))
}

fn text(report: &Report<'_>, data: &str) -> String {
    let mut summary = Summary::default();
    let size = format!("{} × {}", count(report.rows, "row"), count(report.features, "feature"));
    summary
        .line("machine", words::machine(report.machine, report.params))
        .line("kernel", report.kernel)
        .line("scaling", report.scale)
        .line("data", format!("{data}: {size}, {}", count(report.classes, "class")))
        .line("folds", format!("{}, {}", report.folds, count(report.repeats, "time")))
        .line("time", seconds(report.seconds.of("validate")));
    const MOST_COLUMNS: usize = 10;
    let names: Vec<String> = (1..=report.by_fold.len()).map(|number| format!("fold {number}")).collect();
    let mut columns = vec![("mean", report.scores), ("sd", report.deviations)];
    if names.len() <= MOST_COLUMNS {
        columns.extend(names.iter().map(String::as_str).zip(report.by_fold.iter().copied()));
    }
    format!("{summary}\n\n{}\n", scores::table(&columns))
}
