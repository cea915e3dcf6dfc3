//! `widemargin audit DATA`

mod found;

use crate::args::AuditArgs;
use crate::failure::Outcome;
use crate::interrupt;
use crate::learning::Lesson;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, short, table, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Laps, peak_memory};
use crate::sheet::csv_text;
use comfy_table::CellAlignment;
use serde::Serialize;
use std::path::PathBuf;
use widemargin::audit::{Audit, Suspect, audit};
use widemargin::model::UnseenBy;

/// Rows of the table if nobody says how many.
const SHOWN: usize = 20;
/// Influential rows that are named beside it.
const INFLUENTIAL: usize = 5;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    rows: usize,
    model: &'a str,
    by: UnseenBy,
    expected_wrong: f64,
    suspects: Vec<Line<'a>>,
    seconds: &'a Laps<f64>,
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
}

/// A row, numbered from 1.
#[derive(Serialize)]
struct Line<'a> {
    row: usize,
    label: &'a str,
    likely: &'a str,
    /// That the label is wrong.
    probability: f64,
    /// Of the label, by a model that did not see the row: what rows are sorted by.
    label_probability: f64,
    /// By how much the label leads the best other one there.
    margin: f64,
    influence: f64,
    contradicted_by: Vec<usize>,
}

impl<'a> Line<'a> {
    fn new(suspect: &'a Suspect) -> Self {
        Self {
            row: suspect.row + 1,
            label: &suspect.label,
            likely: &suspect.likely,
            probability: suspect.probability,
            label_probability: suspect.own,
            margin: suspect.margin,
            influence: suspect.influence,
            contradicted_by: suspect.contradicted_by.iter().map(|row| row + 1).collect(),
        }
    }

    fn neighbours(&self) -> String {
        self.contradicted_by.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// Reads, leaves every row out, reports.
pub fn run(args: &AuditArgs, seed: u64, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let (table_out, page_out) = (to_stdout(&args.out), to_stdout(&args.report));
    one_on_stdout(&[("--json", output.json), ("the table as CSV", table_out), ("the page", page_out)])?;
    let places = Places::default().writes(args.out.as_ref()).writes(args.report.as_ref());
    let mut lesson = Lesson::read(&args.learn, seed, places, &|_| Ok(()), output)?;
    // Whoever names a machine, a kernel or parameters is audited by these.
    let chosen =
        args.learn.machine.is_some() || args.learn.fit.kernel != Default::default() || !args.learn.given.0.is_empty();
    if !chosen {
        lesson.options.machine = crate::machines::find("odm")?;
        lesson.options.parameters = crate::machines::check(lesson.options.machine, &[])?;
    }
    // How many rows a page lists is known once they are judged.
    let usual = if args.report.is_some() { found::LISTED } else { SHOWN };
    let named = args.top.map_or(usual, Into::into);
    let spinner = Spinner::start(output, "leaving rows out");
    let found = interrupt::stoppable(|control| {
        audit(lesson.examples()?, lesson.weights.as_deref(), &lesson.options, chosen, named, control)
    })?;
    drop(spinner);
    lesson.clock.lap("audit");
    let top = |usual: usize| found.suspects.iter().take(args.top.map_or(usual, Into::into)).map(Line::new);
    if let Some(path) = &args.out {
        write_text(path, &csv(top(usize::MAX)))?;
    }
    if let Some(path) = &args.report {
        let listed = args.top.map_or_else(|| found::listed(&found), Into::into);
        write_text(path, &found::page(&found, listed, &lesson.data, seed))?;
    }
    if output.json {
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            rows: lesson.data.rows.rows(),
            model: &found.model,
            by: found.by,
            expected_wrong: found.expected_wrong,
            suspects: top(usize::MAX).collect(),
            seconds: lesson.clock.seconds(),
            processor: lesson.clock.processor(),
            peak_memory: peak_memory(),
        });
    }
    if table_out || page_out {
        return Ok(());
    }
    output.tell(&words(&found, lesson.data.rows.rows()));
    print(&text(top(SHOWN)))
}

/// How rows were left out.
fn left_out(by: UnseenBy) -> String {
    match by {
        UnseenBy::LeaveOneOut => "each row left out in turn".to_string(),
        UnseenBy::Folds(folds) => format!("{} left out in turn", count(folds, "fold")),
    }
}

/// The rows that bend the model most, the first of them most.
fn influential(found: &Audit, count: usize) -> Vec<&Suspect> {
    let mut rows: Vec<&Suspect> = found.suspects.iter().collect();
    rows.sort_by(|a, b| b.influence.total_cmp(&a.influence).then(a.row.cmp(&b.row)));
    rows.truncate(count);
    rows
}

fn words(found: &Audit, rows: usize) -> String {
    let by = left_out(found.by);
    let share = percent(found.expected_wrong / rows.max(1) as f64);
    let one = |suspect: &&Suspect| format!("{} ({})", suspect.row + 1, short(suspect.influence));
    format!(
        "{} labels expected to be wrong ({share}); judged by {}, {by}\nrows that bend the model most: {}",
        format_args!("{:.1} of {rows}", found.expected_wrong),
        found.model,
        influential(found, INFLUENTIAL).iter().map(one).collect::<Vec<_>>().join(", ")
    )
}

fn text<'a>(lines: impl Iterator<Item = Line<'a>>) -> String {
    let head = ["row", "label", "likely", "P(wrong)", "P(label)", "influence", "nearest rows that contradict it"];
    let mut table = table(head.map(str::to_string).to_vec());
    for line in lines {
        table.add_row([
            line.row.to_string(),
            line.label.to_string(),
            line.likely.to_string(),
            format!("{:.3}", line.probability),
            format!("{:.3}", line.label_probability),
            format!("{:.3}", line.influence),
            line.neighbours(),
        ]);
    }
    [0, 3, 4, 5].iter().for_each(|&place| {
        if let Some(column) = table.column_mut(place) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    });
    format!("{}\n", table.trim_fmt())
}

fn csv<'a>(lines: impl Iterator<Item = Line<'a>>) -> String {
    let head = ["row", "label", "likely", "probability", "label_probability", "margin", "influence", "contradicted_by"];
    let cells = |line: Line<'_>| {
        let figures = [line.probability, line.label_probability, line.margin, line.influence];
        let words = [line.row.to_string(), line.label.to_string(), line.likely.to_string()];
        words.into_iter().chain(figures.map(|figure| figure.to_string())).chain([line.neighbours()]).collect()
    };
    csv_text(std::iter::once(head.map(str::to_string).to_vec()).chain(lines.map(cells)))
}
