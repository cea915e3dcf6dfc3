//! `widemargin reproduce TABLE --data DIR`

use super::contest::{self, Match, accuracy, bullet, figure};
use crate::args::ReproduceArgs;
use crate::failure::Outcome;
use crate::files::read_plain;
use crate::output::{Output, count, print};
use crate::places::Places;
use crate::sheet::{Sheet, Style, average};
use crate::values::ProtocolChoice;
use serde::Serialize;
use std::path::{Path, PathBuf};
use widemargin::data::Dataset;
use widemargin::memory::usual_budget;
use widemargin::solver::Settings;
use widemargin::{Error, Result};
use widemargin_studies::papers::{self, Conduct, PaperTable, Published};
use widemargin_studies::statistics::{Sample, mean, ranks};
use widemargin_studies::{Comparison, Entry, Overall, Protocol, Verdict, overall};

/// A data set of the table that is at hand.
struct Found {
    /// As the table calls it.
    name: &'static str,
    /// The file's name.
    file: String,
    data: Dataset,
}

/// What became of the data sets of a table.
#[derive(Default)]
struct Search {
    found: Vec<Found>,
    /// Name and reason.
    missing: Vec<(&'static str, String)>,
    /// What differs from what the paper states.
    notes: Vec<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    table: &'a str,
    title: &'a str,
    protocol: &'static str,
    budget: Option<usize>,
    repeats: usize,
    paper_repeats: usize,
    train: f64,
    seed: u64,
    kernel: &'static str,
    reference: &'a str,
    cells: Vec<Cell<'a>>,
    overall: &'a [Overall],
    paper: &'a [PaperOverall],
    missing: Vec<Missing<'a>>,
    notes: &'a [String],
    datasets: &'a [Comparison],
}

#[derive(Serialize)]
struct Missing<'a> {
    dataset: &'a str,
    reason: &'a str,
}

/// One machine on one data set, ours and theirs.
#[derive(Serialize)]
struct Cell<'a> {
    dataset: &'a str,
    file: &'a str,
    machine: &'a str,
    accuracy: f64,
    deviation: f64,
    verdict: Verdict,
    paper_accuracy: Option<f64>,
    paper_deviation: f64,
    paper_verdict: Verdict,
    /// `higher` or `lower` if the two differ by more than the random splits explain.
    differs: Option<&'static str>,
}

/// The paper's figures of one machine over the same data sets.
#[derive(Serialize)]
struct PaperOverall {
    machine: &'static str,
    accuracy: f64,
    rank: f64,
    wins: usize,
    ties: usize,
    losses: usize,
}

/// Finds the data, runs the protocol, prints our figures beside the paper's.
pub fn run(args: &ReproduceArgs, seed: u64, output: &Output) -> Outcome {
    let table = papers::table(&args.table)?;
    let budget = matches!(args.protocol, ProtocolChoice::Equal).then(|| args.budget.get());
    let conduct = Conduct {
        budget,
        step: args.step,
        search_iterations: args.search_iter.map(Into::into),
        search_rows: args.search_rows.map(Into::into),
        settings: Settings { tol: args.tol, max_iter: None, memory: usual_budget(), seed, asked: None },
    };
    let search = look_for(table, args, output)?;
    for (name, reason) in &search.missing {
        output.tell(&format!("{name}: {reason}"));
    }
    let repeats = args.repeats.map_or(table.repeats, Into::into);
    let protocol =
        Protocol { repeats, train: table.train, reference: table.reference_column(), seed, keep_going: true };
    let matches: Vec<Match> = search
        .found
        .iter()
        .map(|found| {
            let machines = table.contestants(&found.data, &conduct)?;
            Ok(Match { data: found.data.clone(), machines })
        })
        .collect::<Result<_>>()?;
    let comparisons = contest::run(&matches, &protocol, args.results.as_deref(), true, output)?;
    let result = Reproduction { table, search: &search, comparisons: &comparisons, published: table.published() };
    let (totals, theirs) = (overall(&comparisons, protocol.reference), result.paper_overall());
    if output.json {
        let missing = search.missing.iter().map(|(dataset, reason)| Missing { dataset, reason });
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            table: table.name,
            title: table.title,
            protocol: if budget.is_some() { "equal" } else { "paper" },
            budget,
            repeats,
            paper_repeats: table.repeats,
            train: table.train,
            seed,
            kernel: table.kernel.name(),
            reference: table.reference,
            cells: result.cells(),
            overall: &totals,
            paper: &theirs,
            missing: missing.collect(),
            notes: &search.notes,
            datasets: &comparisons,
        });
    }
    if args.style == Style::Csv {
        return print(&result.long_sheet().print(Style::Csv));
    }
    let text = [
        format!("{}\n\n", table.title),
        format!("{}\n", heading(table, &protocol, &conduct)),
        format!("{}\n", result.sheet(&totals, &theirs).print(args.style)),
        result.legend(),
        result.budgets().print(args.style),
        result.remarks(),
    ];
    print(&text.concat())
}

fn heading(table: &PaperTable, protocol: &Protocol, how: &Conduct) -> String {
    let conduct = match how.budget {
        Some(points) => format!(
            "Equal budgets: every machine tries {points} points drawn at random from its own grid (all, if it has no \
             more), judged by 5 folds; free intercepts."
        ),
        None => format!("The paper's protocol; steps of grids that it does not state are factors of {}.", how.step),
    };
    let searched =
        how.search_rows.map_or(String::new(), |rows| format!(" Points are judged on at most {rows} training rows."));
    let repeats = count(protocol.repeats, "random split");
    let share = format!("{:.0} % of the rows", 100.0 * table.train);
    format!("{conduct}{searched} {repeats} ({} in the paper), {share} to train on.\n", table.repeats)
}

/// Looks for the files of a table's data sets.
fn look_for(table: &'static PaperTable, args: &ReproduceArgs, output: &Output) -> Outcome<Search> {
    let names = table.dataset_names();
    if let Some(unknown) = args.only.iter().find(|name| !names.contains(&name.as_str())) {
        let known = names.join(", ");
        return Err(Error::Usage(format!("--only {unknown}: the table's data sets are {known}")).into());
    }
    let files = files(&args.data)?;
    let stems = names.iter().flat_map(|name| table.file_names(name));
    let read = stems.flat_map(|stem| [file_of(&files, &format!("{stem}.t")), file_of(&files, &stem)]);
    read.flatten().fold(Places::default(), Places::reads).writes(args.results.as_ref()).check()?;
    let mut search = Search::default();
    for name in names.into_iter().filter(|name| args.only.is_empty() || args.only.iter().any(|only| only == name)) {
        match candidate(table, name, &files, args.max_rows, output)? {
            Err(reason) => search.missing.push((name, reason)),
            Ok((file, data)) => {
                if let Some(note) = difference(table, name, &file, &data) {
                    search.notes.push(note);
                }
                search.found.push(Found { name, file, data });
            }
        }
    }
    if search.found.is_empty() {
        let reason = format!("none of the data sets of {} is there", table.name);
        return Err(Error::Data { file: args.data.display().to_string(), reason }.into());
    }
    Ok(search)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io { path: folder.into(), source };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<_>>().map_err(failed)?;
    files.sort();
    Ok(files)
}

/// The file of this name, whatever its ending.
fn file_of<'a>(files: &'a [PathBuf], name: &str) -> Option<&'a PathBuf> {
    const ENDINGS: [&str; 7] = ["", ".libsvm", ".svm", ".txt", ".csv", ".tsv", ".parquet"];
    const PACKED: [&str; 4] = ["", ".gz", ".zst", ".xz"];
    let wanted: Vec<String> =
        ENDINGS.iter().flat_map(|ending| PACKED.iter().map(move |packed| format!("{name}{ending}{packed}"))).collect();
    files
        .iter()
        .find(|path| path.file_name().is_some_and(|file| wanted.iter().any(|w| w.as_str() == file.to_string_lossy())))
}

/// A data set, or why there is none.
type Candidate = std::result::Result<(String, Dataset), String>;

fn candidate(
    table: &PaperTable,
    name: &str,
    files: &[PathBuf],
    max_rows: Option<usize>,
    output: &Output,
) -> Outcome<Candidate> {
    let mut reason = "no file of this name is there".to_string();
    for stem in table.file_names(name) {
        let Some(path) = file_of(files, &stem) else { continue };
        let mut data = read_plain(path, output)?;
        let test = if table.joined { file_of(files, &format!("{stem}.t")) } else { None };
        if let Some(test) = test {
            data = data.joined(&read_plain(test, output)?);
        }
        let classes = data.labels.as_ref().map_or(0, |labels| labels.names().len());
        match table.classes {
            Some(wanted) if wanted != classes => {
                reason = format!("{stem} has {classes} classes, the table is of {wanted}");
            }
            _ if max_rows.is_some_and(|most| data.rows.rows() > most) => {
                reason = format!("{stem} has {} rows, more than --max-rows", data.rows.rows());
            }
            _ => return Ok(Ok((stem, data))),
        }
    }
    Ok(Err(reason))
}

/// What differs from the size that the paper states.
fn difference(table: &PaperTable, name: &str, file: &str, data: &Dataset) -> Option<String> {
    let (rows, features) = (data.rows.rows(), data.rows.cols());
    let other_name = if file == name { String::new() } else { format!(" (file {file})") };
    match table.stated(name) {
        Some(stated) if (stated.rows, stated.features) != (rows, features) => Some(format!(
            "{name}{other_name}: {rows} rows × {features} features; the paper states {} × {}",
            stated.rows, stated.features
        )),
        _ if !other_name.is_empty() => Some(format!("{name} is the file {file}")),
        _ => None,
    }
}

/// Our figures and the paper's.
struct Reproduction<'a> {
    table: &'static PaperTable,
    search: &'a Search,
    comparisons: &'a [Comparison],
    published: Vec<Published>,
}

impl Reproduction<'_> {
    fn theirs(&self, dataset: &str, machine: &str) -> Option<&Published> {
        self.published.iter().find(|p| p.dataset == dataset && p.method == machine)
    }

    fn differs(&self, entry: &Entry, published: Option<&Published>) -> Option<bool> {
        let count = entry.accuracies.len();
        let ours = Sample { mean: entry.accuracy, deviation: entry.deviation, count };
        published.and_then(|published| self.table.differs(ours, published))
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let mut cells: Vec<Cell<'_>> = Vec::new();
        for (found, comparison) in self.search.found.iter().zip(self.comparisons) {
            for entry in &comparison.entries {
                let mut cell = self.cell(found.name, entry);
                cell.file = &found.file;
                cells.push(cell);
            }
        }
        cells
    }

    fn cell<'s>(&'s self, dataset: &'s str, entry: &'s Entry) -> Cell<'s> {
        let theirs = self.theirs(dataset, &entry.machine);
        Cell {
            dataset,
            file: dataset,
            machine: &entry.machine,
            accuracy: entry.accuracy,
            deviation: entry.deviation,
            verdict: entry.verdict,
            paper_accuracy: theirs.and_then(|t| t.mean),
            paper_deviation: theirs.map_or(0.0, |t| t.deviation),
            paper_verdict: theirs.map_or(Verdict::Missing, |t| t.verdict),
            differs: self.differs(entry, theirs).map(|higher| if higher { "higher" } else { "lower" }),
        }
    }

    /// The paper's figures over the data sets for which every machine has figures, ours and theirs.
    fn paper_overall(&self) -> Vec<PaperOverall> {
        let columns = self.table.columns;
        let row = |found: &Found| columns.iter().map(|c| self.theirs(found.name, c.name).cloned()).collect::<Vec<_>>();
        let rows: Vec<Vec<Option<Published>>> = self.search.found.iter().map(row).collect();
        let whole: Vec<Vec<f64>> = rows
            .iter()
            .zip(self.comparisons)
            .filter(|(_, ours)| ours.entries.iter().all(|e| e.failure.is_none()))
            .filter_map(|(row, _)| row.iter().map(|cell| cell.as_ref().and_then(|p| p.mean)).collect())
            .collect();
        let ranked: Vec<Vec<f64>> =
            whole.iter().map(|means| ranks(&means.iter().map(|m| 1.0 - m).collect::<Vec<_>>())).collect();
        let sum_up = |m: usize| {
            let column = |rows: &[Vec<f64>]| mean(&rows.iter().map(|row| row[m]).collect::<Vec<_>>());
            let count =
                |verdict| rows.iter().filter(|row| row[m].as_ref().is_some_and(|p| p.verdict == verdict)).count();
            PaperOverall {
                machine: columns[m].name,
                accuracy: column(&whole),
                rank: column(&ranked),
                wins: count(Verdict::Better),
                ties: count(Verdict::Tie),
                losses: count(Verdict::Worse),
            }
        };
        (0..columns.len()).map(sum_up).collect()
    }

    /// Two lines a data set: ours and the paper's.
    fn sheet(&self, ours: &[Overall], theirs: &[PaperOverall]) -> Sheet {
        let names = self.table.columns.iter().map(|c| c.name);
        let mut sheet = Sheet::new(["data", "figures"].into_iter().chain(names), 2);
        for (found, comparison) in self.search.found.iter().zip(self.comparisons) {
            let own = comparison.entries.iter().map(|entry| {
                let mark = match self.differs(entry, self.theirs(found.name, &entry.machine)) {
                    Some(true) => "▲",
                    Some(false) => "▼",
                    None => " ",
                };
                format!("{}{mark}", accuracy(entry))
            });
            sheet.row([found.name.to_string(), "ours".into()].into_iter().chain(own));
            let printed = comparison.entries.iter().map(|entry| match self.theirs(found.name, &entry.machine) {
                Some(Published { mean: Some(mean), deviation, verdict, .. }) => {
                    format!("{} ", figure(*mean, *deviation, *verdict))
                }
                _ => "N/A  ".into(),
            });
            sheet.row([String::new(), "paper".into()].into_iter().chain(printed));
        }
        let mut lines = |title: &str, own: &dyn Fn(&Overall) -> String, printed: &dyn Fn(&PaperOverall) -> String| {
            sheet.row([title.to_string(), "ours".into()].into_iter().chain(ours.iter().map(own)));
            sheet.row([String::new(), "paper".into()].into_iter().chain(theirs.iter().map(printed)));
        };
        let score = |reference: bool, [wins, ties, losses]: [usize; 3]| match reference {
            true => "reference  ".into(),
            false => format!("{wins}/{ties}/{losses}  "),
        };
        let is_reference = |name: &str| name == self.table.reference;
        let over_sets = |rank: f64, value: f64| format!("{}  ", average(rank, value));
        lines("average", &|t| over_sets(t.rank, 100.0 * t.accuracy), &|t| over_sets(t.rank, 100.0 * t.accuracy));
        lines("average rank", &|t| over_sets(t.rank, t.rank), &|t| over_sets(t.rank, t.rank));
        lines("win/tie/loss", &|t| score(is_reference(&t.machine), [t.wins, t.ties, t.losses]), &|t| {
            score(is_reference(t.machine), [t.wins, t.ties, t.losses])
        });
        sheet
    }

    /// One line a figure, for other programs.
    fn long_sheet(&self) -> Sheet {
        let header = [
            "dataset",
            "file",
            "machine",
            "accuracy",
            "deviation",
            "mark",
            "paper_accuracy",
            "paper_deviation",
            "paper_mark",
            "differs",
        ];
        let mut sheet = Sheet::new(header, 3);
        let number = |value: f64| if value.is_finite() { format!("{value:.5}") } else { String::new() };
        for cell in self.cells() {
            sheet.row([
                cell.dataset.to_string(),
                cell.file.to_string(),
                cell.machine.to_string(),
                number(cell.accuracy),
                number(cell.deviation),
                bullet(cell.verdict).trim().to_string(),
                cell.paper_accuracy.map_or(String::new(), number),
                number(cell.paper_deviation),
                bullet(cell.paper_verdict).trim().to_string(),
                cell.differs.unwrap_or_default().to_string(),
            ]);
        }
        sheet
    }

    fn legend(&self) -> String {
        let cells = self.cells();
        let comparable = cells.iter().filter(|c| c.paper_accuracy.is_some() && c.accuracy.is_finite()).count();
        let direction = |wanted: &str| cells.iter().filter(|c| c.differs == Some(wanted)).count();
        let judged = |v: Verdict| matches!(v, Verdict::Better | Verdict::Worse | Verdict::Tie);
        let both: Vec<&Cell<'_>> = cells.iter().filter(|c| judged(c.verdict) && judged(c.paper_verdict)).collect();
        let same = both.iter().filter(|c| c.verdict == c.paper_verdict).count();
        let opposite = |c: &&&Cell<'_>| {
            matches!(
                (c.verdict, c.paper_verdict),
                (Verdict::Better, Verdict::Worse) | (Verdict::Worse, Verdict::Better)
            )
        };
        format!(
            "{}, in both figures\n\
             ▲ ours is higher, ▼ lower than the paper's by more than the random splits explain (Welch's test, 99 %): \
             {} and {} of {comparable} figures\n\
             bullets: {same} of {} as in the paper, {} opposite\n\
             averages and ranks are over the data sets on which every machine has figures, ours and the paper's\n\n",
            contest::legend(self.table.reference),
            direction("higher"),
            direction("lower"),
            both.len(),
            both.iter().filter(opposite).count(),
        )
    }

    /// What every machine was allowed.
    fn budgets(&self) -> Sheet {
        let mut sheet = Sheet::new(["machine", "points tried", "fits a split", "seconds a search", "seconds a fit"], 1);
        for (m, column) in self.table.columns.iter().enumerate() {
            let entries = || self.comparisons.iter().map(|c| &c.entries[m]).filter(|e| e.failure.is_none());
            let average = |value: fn(&Entry) -> f64| mean(&entries().map(value).collect::<Vec<_>>());
            sheet.row([
                column.name.to_string(),
                entries().map(|e| e.points).max().unwrap_or(0).to_string(),
                format!("{:.0}", average(|e| e.fits)),
                format!("{:.3}", average(|e| e.search_seconds)),
                format!("{:.4}", average(|e| e.seconds)),
            ]);
        }
        sheet
    }

    fn remarks(&self) -> String {
        let missing = self.search.missing.iter().map(|(name, reason)| format!("not run: {name}: {reason}\n"));
        let notes = self.search.notes.iter().map(|note| format!("data: {note}\n"));
        let failures = self.search.found.iter().zip(self.comparisons).flat_map(|(found, comparison)| {
            let failed = comparison.entries.iter().filter_map(|e| e.failure.as_ref().map(|f| (&e.machine, f)));
            failed.map(move |(machine, reason)| format!("N/A: {machine} on {}: {reason}\n", found.name))
        });
        let all: String = missing.chain(notes).chain(failures).collect();
        format!("\n{all}{}\n", self.table.notes)
    }
}
