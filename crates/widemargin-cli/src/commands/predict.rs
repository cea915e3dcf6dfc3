//! `widemargin predict DATA MODEL [OUT]`

use super::words;
use crate::args::PredictArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, table, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{between, peak_memory, processor_seconds};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;
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
    seconds: Times,
    processor: Processor,
    peak_memory: Option<u64>,
}

/// `counts[t][p]`: rows of label `labels[t]` predicted as `labels[p]`.
#[derive(Serialize)]
struct Confusion<'a> {
    labels: &'a [String],
    counts: &'a [Vec<usize>],
}

#[derive(Serialize)]
struct Times {
    read: f64,
    predict: f64,
}

/// Processor seconds, where the system tells them.
#[derive(Serialize)]
struct Processor {
    read: Option<f64>,
    predict: Option<f64>,
}

/// Reads, scores, writes, reports.
pub fn run(args: &PredictArgs, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let labels_too = to_stdout(&args.out) || (args.out.is_none() && !output.json);
    one_on_stdout(&[
        ("--json", output.json),
        ("labels", labels_too),
        ("scores", to_stdout(&args.scores)),
        ("probabilities", to_stdout(&args.probability)),
    ])?;
    let places = Places::default().reads(&args.data).reads(&args.model);
    places.writes(args.out.as_ref()).writes(args.scores.as_ref()).writes(args.probability.as_ref()).check()?;
    let model = Model::load(&args.model)?;
    if args.probability.is_some() && model.calibration.is_none() {
        let file = args.model.display();
        return Err(Error::Usage(format!("{file} knows no probabilities: train it with --probability")).into());
    }
    let begin = processor_seconds();
    let (data, read) = read_data(&args.data, &args.input, output)?;
    warn_of_unknown_features(&model, &data, output);
    let (start, ready) = (Instant::now(), processor_seconds());
    let spinner = Spinner::start(output, "scoring");
    let scores = model.scores(&data.rows)?;
    let classes = model.classes(&scores);
    drop(spinner);
    let predict = start.elapsed().as_secs_f64();
    let processor = Processor { read: between(begin, ready), predict: between(ready, processor_seconds()) };
    let evaluation = data.labels.as_ref().map(|truth| evaluate(&model.labels, &classes, truth));

    if let Some(path) = &args.scores {
        let scores = model.class_scores(&scores);
        write_text(path, &scores_text(&scores, scores.len() / data.rows.rows()))?;
    }
    if let (Some(path), Some(probabilities)) = (&args.probability, model.probabilities(&scores)) {
        write_text(path, &scores_text(&probabilities, if model.labels.len() == 2 { 1 } else { model.labels.len() }))?;
    }
    let labels = labels_text(&model.labels, &classes);
    match &args.out {
        Some(path) => write_text(path, &labels)?,
        None if output.json => {}
        None => print(&labels)?,
    }
    if let Some(evaluation) = &evaluation {
        warn_of_unknown_labels(evaluation, output);
    }
    if output.json {
        let evaluation = evaluation.as_ref();
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            machine: &model.machine,
            rows: data.rows.rows(),
            accuracy: evaluation.map(|e| e.accuracy),
            correct: evaluation.map(|e| e.correct),
            unknown_labels: evaluation.map(|e| e.unknown.as_slice()),
            confusion: evaluation.map(|e| Confusion { labels: &e.labels, counts: &e.confusion }),
            seconds: Times { read, predict },
            processor,
            peak_memory: peak_memory(),
        });
    }
    match evaluation {
        Some(evaluation) => tell(&evaluation, &model, output),
        None => output.tell(&format!("{} predicted; {} has no labels to compare with", rows(&data), args.data)),
    }
    Ok(())
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

/// One row a line; numbers as short as they can be and still be read back to the bit.
fn scores_text(scores: &[f64], columns: usize) -> String {
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n";
    scores.chunks(columns).map(line).collect()
}
