//! `widemargin predict DATA MODEL [OUT]`

use super::words;
use crate::args::PredictArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, table, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Clock, Laps, peak_memory};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::PathBuf;
use widemargin::Error;
use widemargin::data::Dataset;
use widemargin::model::Model;
use widemargin_studies::{Evaluation, evaluate};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    machine: &'a str,
    rows: usize,
    accuracy: Option<f64>,
    correct: Option<usize>,
    unknown_labels: Option<&'a [String]>,
    confusion: Option<Confusion<'a>>,
    seconds: &'a Laps<f64>,
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
}

/// `counts[t][p]`: rows of label `labels[t]` predicted as `labels[p]`.
#[derive(Serialize)]
struct Confusion<'a> {
    labels: &'a [String],
    counts: &'a [Vec<usize>],
}

/// Reads, scores, writes, reports.
pub fn run(args: &PredictArgs, output: &Output) -> Outcome {
    check_places(args, output)?;
    let model = load(args)?;
    let mut clock = Clock::start();
    let data = read_data(&args.data, &args.input, output)?;
    warn_of_unknown_features(&model, &data, output);
    clock.lap("read");
    let spinner = Spinner::start(output, "scoring");
    let scores = model.scores(&data.rows)?;
    let classes = model.classes(&scores);
    drop(spinner);
    clock.lap("predict");
    write(args, &model, &scores, &classes, output)?;
    let evaluation = data.labels.as_ref().map(|truth| evaluate(&model.labels, &classes, truth));
    if let Some(evaluation) = &evaluation {
        warn_of_unknown_labels(evaluation, output);
    }
    if output.json {
        return output.object(&report(&model, evaluation.as_ref(), data.rows.rows(), &clock));
    }
    match evaluation {
        Some(evaluation) => tell(&evaluation, &model, output),
        None => output.tell(&format!("{} predicted; {} has no labels to compare with", rows(&data), args.data)),
    }
    Ok(())
}

/// Refuses several things on standard output, and outputs that are inputs.
fn check_places(args: &PredictArgs, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let labels_too = to_stdout(&args.out) || (args.out.is_none() && !output.json);
    one_on_stdout(&[
        ("--json", output.json),
        ("labels", labels_too),
        ("scores", to_stdout(&args.scores)),
        ("probabilities", to_stdout(&args.probabilities)),
        ("sets", to_stdout(&args.sets)),
    ])?;
    let places = Places::default().reads(&args.data).reads(&args.model);
    let places = places.writes(args.out.as_ref()).writes(args.scores.as_ref());
    places.writes(args.probabilities.as_ref()).writes(args.sets.as_ref()).check()
}

/// The model, which must know probabilities and prediction sets if they are wanted.
fn load(args: &PredictArgs) -> Outcome<Model> {
    let model = Model::load(&args.model)?;
    let unknown = match () {
        () if args.probabilities.is_some() && model.calibration.is_none() => "probabilities",
        () if args.sets.is_some() && model.conformity.is_none() => "prediction sets",
        () => return Ok(model),
    };
    let file = args.model.display();
    Err(Error::Usage(format!("{file} knows no {unknown}: train it with --probability")).into())
}

/// Writes scores, probabilities and labels where they are wanted.
fn write(args: &PredictArgs, model: &Model, scores: &[f64], classes: &[u32], output: &Output) -> Outcome {
    if let Some(path) = &args.scores {
        let scores = model.class_scores(scores);
        write_text(path, &scores_text(&scores, scores.len() / classes.len()))?;
    }
    let classes_of = model.labels.len();
    if let (Some(path), Some(probabilities)) = (&args.probabilities, model.probabilities(scores)) {
        let head = words::separated(&model.labels) + "\n";
        write_text(path, &(head + &scores_text(&probabilities, classes_of)))?;
    }
    if let (Some(path), Some(coverage)) = (&args.sets, args.coverage) {
        let sets = model.prediction_sets(scores, coverage, args.per_class).unwrap_or_default();
        write_text(path, &sets_text(&model.labels, &sets))?;
    }
    let labels = labels_text(&model.labels, classes);
    match &args.out {
        Some(path) => write_text(path, &labels),
        None if output.json => Ok(()),
        None => print(&labels),
    }
}

fn report<'a>(model: &'a Model, evaluation: Option<&'a Evaluation>, rows: usize, clock: &'a Clock) -> Report<'a> {
    Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: &model.machine,
        rows,
        accuracy: evaluation.map(|e| e.accuracy),
        correct: evaluation.map(|e| e.correct),
        unknown_labels: evaluation.map(|e| e.unknown.as_slice()),
        confusion: evaluation.map(|e| Confusion { labels: &e.labels, counts: &e.confusion }),
        seconds: clock.seconds(),
        processor: clock.processor(),
        peak_memory: peak_memory(),
    }
}

fn rows(data: &Dataset) -> String {
    count(data.rows.rows(), "row")
}

fn warn_of_unknown_features(model: &Model, data: &Dataset, output: &Output) {
    if data.rows.cols() > model.features {
        let known = count(model.features, "feature");
        let found = data.rows.cols();
        output.warn(&format!("{}: the model knows {known}, the data has {found}: the others are ignored", data.name));
    }
}

fn warn_of_unknown_labels(evaluation: &Evaluation, output: &Output) {
    if !evaluation.unknown.is_empty() {
        let unknown = words::labels(&evaluation.unknown);
        output.warn(&format!("labels the model does not know count as wrong: {unknown}"));
    }
}

fn tell(evaluation: &Evaluation, model: &Model, output: &Output) {
    let share = percent(evaluation.accuracy);
    output.tell(&format!("accuracy {share} ({} of {})", evaluation.correct, count(evaluation.rows, "row")));
    const LARGEST_TABLE: usize = 12;
    if evaluation.labels.len() <= LARGEST_TABLE {
        output.tell(&confusion_table(evaluation, &model.labels).trim_fmt());
    }
}

fn confusion_table(evaluation: &Evaluation, predicted: &[String]) -> Table {
    let head = std::iter::once("true \\ predicted").chain(predicted.iter().map(String::as_str));
    let mut table = table(head.map(str::to_string).collect());
    for (label, counts) in evaluation.labels.iter().zip(&evaluation.confusion) {
        table.add_row(std::iter::once(label.clone()).chain(counts.iter().map(usize::to_string)));
    }
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn labels_text(labels: &[String], classes: &[u32]) -> String {
    classes.iter().flat_map(|&class| [labels[class as usize].as_str(), "\n"]).collect()
}

/// One row a line: the labels that are in its set.
fn sets_text(labels: &[String], sets: &[bool]) -> String {
    let line = |set: &[bool]| {
        let inside = labels.iter().zip(set).filter(|(_, inside)| **inside).map(|(label, _)| label);
        words::separated(inside) + "\n"
    };
    sets.chunks(labels.len()).map(line).collect()
}

/// One row a line; numbers as short as they can be and still be read back to the bit.
fn scores_text(scores: &[f64], columns: usize) -> String {
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n";
    scores.chunks(columns).map(line).collect()
}
