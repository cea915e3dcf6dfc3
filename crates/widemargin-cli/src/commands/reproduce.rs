//! `widemargin reproduce TABLE --data DIR`

use super::contest::{self, bullet, figure};
use crate::args::ReproduceArgs;
use crate::failure::Outcome;
use crate::files::read_plain;
use crate::output::{Output, count, print};
use crate::places::Places;
use crate::sheet::{Sheet, Style, average};
use crate::values::ProtocolChoice;
use serde::Serialize;
use widemargin::Result;
use widemargin::memory::usual_budget;
use widemargin::solver::Settings;
use widemargin_studies::papers::{self, Cell, Conduct, Missing, PaperTable, Reproduction};
use widemargin_studies::{Comparison, Match, Overall, Protocol, Test};

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
    test: &'static str,
    cells: Vec<Cell<'a>>,
    overall: &'a [Overall],
    paper: &'a [Overall],
    missing: &'a [Missing],
    notes: &'a [String],
    datasets: &'a [Comparison],
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
        settings: Settings { tol: args.tol, max_iter: None, memory: usual_budget(), seed, ..Settings::default() },
    };
    let located = papers::locate(table, &args.data, &args.only)?;
    located.files().fold(Places::default(), Places::reads).writes(args.results.as_ref()).check()?;
    let found = located.read(args.max_rows, |path| read_plain(path, output))?;
    for Missing { dataset, reason } in &found.missing {
        output.tell(&format!("{dataset}: {reason}"));
    }
    let repeats = args.repeats.map_or(table.repeats, Into::into);
    let (reference, test) = (table.reference_column(), Test::Paired);
    let protocol = Protocol { repeats, train: table.train, reference, test, seed, keep_going: true };
    let matches: Vec<Match> = found
        .sets
        .iter()
        .map(|set| Ok(Match { data: set.data.clone(), machines: table.contestants(&set.data, &conduct)? }))
        .collect::<Result<_>>()?;
    let comparisons = contest::run(&matches, &protocol, args.results.as_deref(), true, output)?;
    let result = Reproduction::new(table, found, comparisons);
    let (ours, theirs) = result.totals();
    if output.json {
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
            test: test.name(),
            cells: result.cells(),
            overall: &ours,
            paper: &theirs,
            missing: &result.found.missing,
            notes: &result.found.notes,
            datasets: &result.comparisons,
        });
    }
    if args.style == Style::Csv {
        return print(&long_sheet(&result).print(Style::Csv));
    }
    let text = [
        format!("{}\n\n", table.title),
        format!("{}\n", heading(table, &protocol, &conduct)),
        format!("{}\n", sheet(&result, &ours, &theirs).print(args.style)),
        legend(&result, test),
        budgets(&result).print(args.style),
        remarks(&result),
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

/// Two lines a data set: ours and the paper's.
fn sheet(result: &Reproduction, ours: &[Overall], theirs: &[Overall]) -> Sheet {
    let columns = result.table.columns;
    let mut sheet = Sheet::new(["data", "figures"].into_iter().chain(columns.iter().map(|c| c.name)), 2);
    for row in result.cells().chunks(columns.len()) {
        let name = row.first().map_or(String::new(), |cell| cell.dataset.into());
        sheet.row([name, "ours".into()].into_iter().chain(row.iter().map(own)));
        sheet.row([String::new(), "paper".into()].into_iter().chain(row.iter().map(printed)));
    }
    let mut lines = |title: &str, text: &dyn Fn(&Overall) -> String| {
        sheet.row([title.to_string(), "ours".into()].into_iter().chain(ours.iter().map(text)));
        sheet.row([String::new(), "paper".into()].into_iter().chain(theirs.iter().map(text)));
    };
    lines("average", &|t| format!("{}  ", average(t.rank, 100.0 * t.accuracy)));
    lines("average rank", &|t| format!("{}  ", average(t.rank, t.rank)));
    lines("win/tie/loss", &|t| match t.machine == result.table.reference {
        true => "reference  ".into(),
        false => format!("{}/{}/{}  ", t.wins, t.ties, t.losses),
    });
    sheet
}

/// Our figure, with a mark if it differs from the paper's.
fn own(cell: &Cell<'_>) -> String {
    let mark = match cell.differs {
        Some("higher") => "▲",
        Some(_) => "▼",
        None => " ",
    };
    match cell.failure {
        Some(_) => format!("N/A{mark}"),
        None => format!("{}{mark}", figure(cell.accuracy, cell.deviation, cell.verdict)),
    }
}

/// The paper's figure.
fn printed(cell: &Cell<'_>) -> String {
    match cell.paper_accuracy {
        Some(mean) => format!("{} ", figure(mean, cell.paper_deviation, cell.paper_verdict)),
        None => "N/A  ".into(),
    }
}

/// One line a figure, for other programs.
fn long_sheet(result: &Reproduction) -> Sheet {
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
    for cell in result.cells() {
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

fn legend(result: &Reproduction, test: Test) -> String {
    let found = result.agreement();
    format!(
        "{}, in both figures\n\
         ▲ ours is higher, ▼ lower than the paper's by more than the random splits explain (Welch's test, 99 %): \
         {} and {} of {} figures\n\
         bullets: {} of {} as in the paper, {} opposite\n\
         averages and ranks are over the data sets on which every machine has figures, ours and the paper's\n\n",
        contest::legend(result.table.reference, test),
        found.higher,
        found.lower,
        found.comparable,
        found.same,
        found.marks,
        found.opposite,
    )
}

/// What every machine was allowed.
fn budgets(result: &Reproduction) -> Sheet {
    let mut sheet = Sheet::new(["machine", "points tried", "fits a split", "seconds a search", "seconds a fit"], 1);
    for budget in result.budgets() {
        sheet.row([
            budget.machine.to_string(),
            budget.points.to_string(),
            format!("{:.0}", budget.fits),
            format!("{:.3}", budget.search_seconds),
            format!("{:.4}", budget.seconds),
        ]);
    }
    sheet
}

fn remarks(result: &Reproduction) -> String {
    let missing = result.found.missing.iter().map(|m| format!("not run: {}: {}\n", m.dataset, m.reason));
    let notes = result.found.notes.iter().map(|note| format!("data: {note}\n"));
    let failed =
        result.cells().into_iter().filter_map(|cell| cell.failure.map(|why| (cell.machine, cell.dataset, why)));
    let failures: Vec<String> =
        failed.map(|(machine, dataset, why)| format!("N/A: {machine} on {dataset}: {why}\n")).collect();
    let all: String = missing.chain(notes).chain(failures).collect();
    format!("\n{all}{}\n", result.table.notes)
}
