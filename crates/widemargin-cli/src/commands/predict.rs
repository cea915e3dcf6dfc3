//! `widemargin predict DATA MODEL [OUT]`

use super::{scores, words};
use crate::args::PredictArgs;
use crate::failure::{Failure, Outcome};
use crate::files::read_parts_for;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, table, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Clock, Laps, peak_memory};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::PathBuf;
use widemargin::Error;
use widemargin::data::Labels;
use widemargin::metrics::{ClassScores, Evaluation, Figures};
use widemargin::model::Model;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    machine: &'a str,
    rows: usize,
    scores: Figures,
    /// As in `scores`.
    accuracy: Option<f64>,
    correct: Option<usize>,
    by_class: Option<&'a [ClassScores]>,
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
    let (data, clock) = score(args, &model, output)?;
    warn_of_unknown_features(&model, &data, output);
    let scores = &data.scores;
    let classes = model.classes(scores);
    write(args, &model, scores, &classes, output)?;
    let evaluation = data.labels.as_ref().map(|truth| evaluate(&model, truth, scores, &classes));
    if let Some(evaluation) = &evaluation {
        warn_of_unknown_labels(evaluation, output);
    }
    if output.json {
        return output.object(&report(&model, evaluation.as_ref(), data.rows, &clock));
    }
    match evaluation {
        Some(evaluation) => tell(&evaluation, &model, output),
        None => {
            output.tell(&format!("{} predicted; {} has no labels to compare with", count(data.rows, "row"), args.data))
        }
    }
    Ok(())
}

/// What scoring leaves of the rows.
#[derive(Default)]
struct Scored {
    name: String,
    rows: usize,
    /// The widest row.
    features: usize,
    labels: Option<Labels>,
    scores: Vec<f64>,
}

/// Reads rows and scores them, some at a time: a stream may be of any length, only its scores are kept.
fn score(args: &PredictArgs, model: &Model, output: &Output) -> Outcome<(Scored, Clock)> {
    let mut clock = Clock::start();
    let spinner = Spinner::start(output, format!("scoring {}", args.data));
    let (mut scored, mut labels) = (Scored::default(), Vec::new());
    read_parts_for(model, &args.data, &args.input, output, &mut |part| {
        clock.lap("read");
        scored.scores.extend(model.scores(&part.rows)?);
        clock.lap("predict");
        scored.rows += part.rows.rows();
        scored.features = scored.features.max(part.rows.cols());
        scored.name = part.name;
        labels.extend(part.labels);
        Ok(())
    })?;
    drop(spinner);
    scored.labels = (!labels.is_empty()).then(|| Labels::joined(&labels));
    Ok((scored, clock))
}

/// Refuses several things on standard output, and outputs that are inputs.
fn check_places(args: &PredictArgs, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let labels_too = to_stdout(&args.out) || (args.out.is_none() && !output.json);
    one_on_stdout(&[
        ("--json", output.json),
        ("labels", labels_too),
        ("scores", to_stdout(&args.scores)),
        ("probabilities", to_stdout(&args.probability)),
    ])?;
    let places = Places::default().reads(&args.data).reads(&args.model);
    places.writes(args.out.as_ref()).writes(args.scores.as_ref()).writes(args.probability.as_ref()).check()
}

/// The model, which must know probabilities if they are wanted.
fn load(args: &PredictArgs) -> Outcome<Model> {
    let model = Model::load(&args.model)?;
    if args.probability.is_some() && model.calibration.is_none() {
        let file = args.model.display();
        return Err(Error::Usage(format!("{file} knows no probabilities: train it with --probability")).into());
    }
    Ok(model)
}

/// Writes scores, probabilities and labels where they are wanted.
fn write(args: &PredictArgs, model: &Model, scores: &[f64], classes: &[u32], output: &Output) -> Outcome {
    if let Some(path) = &args.scores {
        let scores = model.class_scores(scores);
        write_text(path, &scores_text(&scores, scores.len() / classes.len()))?;
    }
    if let (Some(path), Some(probabilities)) = (&args.probability, model.probabilities(scores)) {
        write_text(path, &scores_text(&probabilities, if model.labels.len() == 2 { 1 } else { model.labels.len() }))?;
    }
    let labels = labels_text(&model.labels, classes);
    match &args.out {
        Some(path) if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv")) => {
            write_text(path, &table_text(model, scores, classes)?)
        }
        Some(path) => write_text(path, &labels),
        None if output.json => Ok(()),
        None => print(&labels),
    }
}

/// How good the predictions are.
fn evaluate(model: &Model, truth: &Labels, scores: &[f64], classes: &[u32]) -> Evaluation {
    let (by_class, probabilities) = (model.class_scores(scores), model.probabilities(scores));
    Evaluation::new(&model.labels, truth, classes, Some(&by_class), probabilities.as_deref())
}

fn report<'a>(model: &'a Model, evaluation: Option<&'a Evaluation>, rows: usize, clock: &'a Clock) -> Report<'a> {
    Report {
        version: env!("CARGO_PKG_VERSION"),
        machine: &model.machine,
        rows,
        scores: evaluation.map_or(Figures::default(), |e| e.scores),
        accuracy: evaluation.and_then(|e| e.scores.accuracy),
        correct: evaluation.map(|e| e.correct),
        by_class: evaluation.map(|e| e.by_class.as_slice()),
        unknown_labels: evaluation.map(|e| e.unknown.as_slice()),
        confusion: evaluation.map(|e| Confusion { labels: &e.labels, counts: &e.confusion }),
        seconds: clock.seconds(),
        processor: clock.processor(),
        peak_memory: peak_memory(),
    }
}

fn warn_of_unknown_features(model: &Model, data: &Scored, output: &Output) {
    if data.features > model.features {
        let (known, found) = (count(model.features, "feature"), data.features);
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
    let share = evaluation.scores.accuracy.map_or(String::new(), |share| format!(" {}", percent(share)));
    output.tell(&format!("accuracy{share} ({} of {})", evaluation.correct, count(evaluation.rows, "row")));
    output.tell(&scores::table(&[("score", evaluation.scores)]));
    const LARGEST_TABLE: usize = 12;
    if evaluation.labels.len() <= LARGEST_TABLE {
        output.tell(&scores::by_class(&evaluation.by_class));
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

/// A table: the label, the scores, and the probabilities if the model knows them, one column a class.
fn table_text(model: &Model, scores: &[f64], classes: &[u32]) -> Outcome<String> {
    let by_class = model.class_scores(scores);
    let columns = by_class.len() / classes.len().max(1);
    let probabilities = model.probabilities(scores).map(|p| match model.labels.len() {
        2 => p.into_iter().flat_map(|p| [1.0 - p, p]).collect(),
        _ => p,
    });
    let of = |what: &'static str| model.labels.iter().map(move |label| format!("{what} {label}"));
    let mut head = vec!["label".to_string()];
    head.extend(if columns == 1 { vec!["score".into()] } else { of("score").collect() });
    head.extend(probabilities.iter().flat_map(|_: &Vec<f64>| of("probability")));
    let mut table = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| Failure::Other(error.to_string());
    table.write_record(&head).map_err(failed)?;
    for (i, &class) in classes.iter().enumerate() {
        let mut row = vec![model.labels[class as usize].clone()];
        row.extend(by_class[i * columns..(i + 1) * columns].iter().map(f64::to_string));
        let k = model.labels.len();
        row.extend(probabilities.iter().flat_map(|p| p[i * k..(i + 1) * k].iter().map(f64::to_string)));
        table.write_record(&row).map_err(failed)?;
    }
    let bytes = table.into_inner().map_err(|error| Failure::Other(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// One row a line; numbers as short as they can be and still be read back to the bit.
fn scores_text(scores: &[f64], columns: usize) -> String {
    let line = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(" ") + "\n";
    scores.chunks(columns).map(line).collect()
}
