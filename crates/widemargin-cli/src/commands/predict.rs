//! `widemargin predict DATA MODEL [OUT]`

use super::reliability::Reliability;
use super::{scores, words};
use crate::args::PredictArgs;
use crate::failure::{Failure, Outcome};
use crate::files::read_parts_for;
use crate::interrupt;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, table};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Clock, Laps, peak_memory};
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use widemargin::Error;
use widemargin::data::{AtomicFile, IdColumn, Ids, Labels};
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
    reliability: Option<&'a Reliability>,
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

/// Reads, scores and writes, some rows at a time, and reports.
pub fn run(args: &PredictArgs, output: &Output) -> Outcome {
    check_places(args, output)?;
    let model = load(args)?;
    let mut outputs = Outputs::new(args, &model, output)?;
    let (data, clock) = score(args, &model, &mut outputs, output)?;
    outputs.finish()?;
    warn_of_unknown_features(&model, &data, output);
    let evaluation = data.labels.as_ref().map(|truth| evaluate(&model, truth, &data.scores));
    let reliability = data.labels.as_ref().and_then(|truth| Reliability::of(&model, truth, &data.scores));
    if let Some(evaluation) = &evaluation {
        warn_of_unknown_labels(evaluation, output);
    }
    if output.json {
        return output.object(&report(&model, evaluation.as_ref(), reliability.as_ref(), data.rows, &clock));
    }
    match evaluation {
        Some(evaluation) => tell(&evaluation, reliability.as_ref(), &model, output),
        None => {
            output.tell(&format!("{} predicted; {} has no labels to compare with", count(data.rows, "row"), args.data))
        }
    }
    Ok(())
}

/// What is left of rows that were scored.
#[derive(Default)]
struct Scored {
    name: String,
    rows: usize,
    /// The widest row.
    features: usize,
    /// Labels to compare with.
    labels: Option<Labels>,
    /// Their scores; rows without labels leave nothing, so that a stream of them may be without end.
    scores: Vec<f64>,
}

fn score(args: &PredictArgs, model: &Model, outputs: &mut Outputs<'_>, output: &Output) -> Outcome<(Scored, Clock)> {
    let mut clock = Clock::start();
    let spinner = Spinner::start(output, format!("scoring {}", args.data));
    let (mut scored, mut labels, mut failure) = (Scored::default(), Vec::new(), None);
    let id = match &args.id {
        _ if !outputs.has_table() => IdColumn::None,
        Some(column) => IdColumn::Named(column.clone()),
        None => IdColumn::Usual,
    };
    let read = read_parts_for(model, &args.data, &args.input, id, output, &mut |part| {
        clock.lap("read");
        let scores = model.scores(&part.rows)?;
        clock.lap("predict");
        scored.rows += part.rows.rows();
        scored.features = scored.features.max(part.rows.cols());
        scored.name = part.name;
        let written = outputs.write(&scores, part.ids.as_ref());
        if part.labels.is_some() {
            scored.scores.extend(scores);
            labels.extend(part.labels);
        }
        written.map_err(|why| {
            failure = Some(why);
            Error::Interrupted
        })
    });
    drop(spinner);
    match failure {
        Some(failure) => return Err(failure),
        None => read?,
    }
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

/// Where the lines of one output go, as they come.
enum Place {
    Stdout,
    File(AtomicFile),
}

impl Place {
    fn new(path: &Path) -> Outcome<Self> {
        Ok(if is_stdout(path) { Self::Stdout } else { Self::File(AtomicFile::create(path)?) })
    }

    fn write(&mut self, text: &str, path: &Path) -> Outcome {
        match self {
            Self::Stdout => print(text),
            Self::File(file) => {
                let failed = |source| Error::Io { path: path.into(), source };
                Ok(file.write_all(text.as_bytes()).map_err(failed)?)
            }
        }
    }
}

/// What is written of each row.
enum Content {
    Labels,
    /// A table: the id if there is one, the label, the scores, and the probabilities if the model knows them.
    Table,
    Scores,
    Probabilities,
    Sets,
}

/// All that was asked for.
struct Outputs<'a> {
    args: &'a PredictArgs,
    model: &'a Model,
    places: Vec<(Content, PathBuf, Place)>,
    /// Whether the heads of tables are written.
    begun: bool,
}

impl<'a> Outputs<'a> {
    fn new(args: &'a PredictArgs, model: &'a Model, output: &Output) -> Outcome<Self> {
        let is_table = |path: &PathBuf| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let labels = match &args.out {
            Some(path) => Some(path.clone()),
            None if output.json => None,
            None => Some("-".into()),
        };
        let out = if labels.as_ref().is_some_and(is_table) { Content::Table } else { Content::Labels };
        let wanted = [
            (Content::Scores, args.scores.clone()),
            (Content::Probabilities, args.probabilities.clone()),
            (Content::Sets, args.sets.clone()),
            (out, labels),
        ];
        let mut places = Vec::new();
        for (content, path) in wanted {
            if let Some(path) = path {
                let place = Place::new(&path)?;
                places.push((content, path, place));
            }
        }
        Ok(Self { args, model, places, begun: false })
    }

    fn has_table(&self) -> bool {
        self.places.iter().any(|(content, ..)| matches!(content, Content::Table))
    }

    /// Writes what was found of some rows.
    fn write(&mut self, scores: &[f64], ids: Option<&Ids>) -> Outcome {
        let classes = self.model.classes(scores);
        let first = !std::mem::replace(&mut self.begun, true);
        for (content, path, place) in &mut self.places {
            let model = self.model;
            let text = match content {
                Content::Labels => labels_text(&model.labels, &classes),
                Content::Table => table_text(model, scores, &classes, ids, first)?,
                Content::Scores => {
                    let scores = model.class_scores(scores);
                    scores_text(&scores, scores.len() / classes.len())
                }
                Content::Probabilities => {
                    let head = if first { words::separated(&model.labels) + "\n" } else { String::new() };
                    head + &scores_text(&model.probabilities(scores).unwrap_or_default(), model.labels.len())
                }
                Content::Sets => {
                    let coverage = self.args.coverage.unwrap_or_default();
                    let sets = model.prediction_sets(scores, coverage, self.args.per_class).unwrap_or_default();
                    sets_text(&model.labels, &sets)
                }
            };
            place.write(&text, path)?;
        }
        Ok(())
    }

    fn finish(self) -> Outcome {
        for (_, _, place) in self.places {
            if let Place::File(file) = place {
                interrupt::writing(|| file.finish())?;
            }
        }
        Ok(())
    }
}

/// How good the predictions are.
fn evaluate(model: &Model, truth: &Labels, scores: &[f64]) -> Evaluation {
    let classes = model.classes(scores);
    let (by_class, probabilities) = (model.class_scores(scores), model.probabilities(scores));
    Evaluation::new(&model.labels, truth, &classes, Some(&by_class), probabilities.as_deref())
}

fn report<'a>(
    model: &'a Model,
    evaluation: Option<&'a Evaluation>,
    reliability: Option<&'a Reliability>,
    rows: usize,
    clock: &'a Clock,
) -> Report<'a> {
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
        reliability,
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

fn tell(evaluation: &Evaluation, reliability: Option<&Reliability>, model: &Model, output: &Output) {
    let share = evaluation.scores.accuracy.map_or(String::new(), |share| format!(" {}", percent(share)));
    output.tell(&format!("accuracy{share} ({} of {})", evaluation.correct, count(evaluation.rows, "row")));
    output.tell(&scores::table(&[("score", evaluation.scores)]));
    if let Some(reliability) = reliability {
        output.tell(&format!(
            "probabilities are {} off on average (expected calibration error)",
            percent(reliability.error)
        ));
    }
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

fn table_text(model: &Model, scores: &[f64], classes: &[u32], ids: Option<&Ids>, head: bool) -> Outcome<String> {
    let by_class = model.class_scores(scores);
    let (columns, k) = (by_class.len() / classes.len().max(1), model.labels.len());
    let probabilities = model.probabilities(scores);
    let mut table = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| Failure::Other(error.to_string());
    if head {
        let of = |what: &'static str| model.labels.iter().map(move |label| format!("{what} {label}"));
        let mut names: Vec<String> = ids.iter().map(|ids| ids.name.clone()).collect();
        names.push("label".into());
        names.extend(if columns == 1 { vec!["score".into()] } else { of("score").collect() });
        names.extend(probabilities.iter().flat_map(|_| of("probability")));
        table.write_record(&names).map_err(failed)?;
    }
    for (i, &class) in classes.iter().enumerate() {
        let mut row: Vec<String> = ids.iter().map(|ids| ids.values[i].clone()).collect();
        row.push(model.labels[class as usize].clone());
        row.extend(by_class[i * columns..(i + 1) * columns].iter().map(f64::to_string));
        row.extend(probabilities.iter().flat_map(|p| p[i * k..(i + 1) * k].iter().map(f64::to_string)));
        table.write_record(&row).map_err(failed)?;
    }
    let bytes = table.into_inner().map_err(|error| Failure::Other(error.to_string()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
