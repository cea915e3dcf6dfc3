//! `widemargin compare [DATA…]`

use super::contest::{self, accuracy, chance};
use super::{conclusion, words};
use crate::args::CompareArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, short, write_text};
use crate::page::Page;
use crate::page::chart::{self, Axis, Guide, Plot, Series, Strip, Unit};
use crate::places::Places;
use crate::sheet::{Sheet, Style, average};
use serde::Serialize;
use widemargin::data::{Dataset, ScalingKind, embedded, embedded_names};
use widemargin::machine::Parameters;
use widemargin::metrics::Figures;
use widemargin::select::{Plan, Select};
use widemargin_studies::statistics::enough_sets;
use widemargin_studies::{Comparison, Contestant, Entry, Match, Overall, Protocol, adjust, groups, overall, reference};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    repeats: usize,
    train: f64,
    seed: u64,
    kernel: &'static str,
    scale: &'static str,
    reference: &'a str,
    test: &'static str,
    machines: Vec<MachineReport<'a>>,
    datasets: &'a [Comparison],
    overall: &'a [Overall],
    /// What came out, in sentences; nothing of times, which are never the same twice.
    conclusion: &'a [String],
}

#[derive(Serialize)]
struct MachineReport<'a> {
    machine: &'a str,
    kernel: &'static str,
    /// Those that are set; all others are searched, unless nothing is.
    params: &'a Parameters,
    search: String,
    select: Option<Select>,
}

/// Runs the protocol on every data set and prints the tables.
pub fn run(args: &CompareArgs, seed: u64, output: &Output) -> Outcome {
    let page_out = args.report.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("the page", page_out)])?;
    let places = args.data.iter().fold(Places::default(), Places::reads);
    let study = &args.study;
    places.writes(study.results.as_ref()).writes(args.report.as_ref()).check()?;
    let machines = contest::contestants(&study.contest, &study.fit, seed)?;
    let reference = reference(&machines, args.reference.as_deref())?;
    let protocol = contest::protocol(study, reference, seed);
    let matches: Vec<Match> =
        datasets(args, output)?.into_iter().map(|data| contest::scaled(data, &machines, study.scale)).collect();
    let mut comparisons = contest::run(&matches, &protocol, study.results.as_deref(), false, output)?;
    adjust(&mut comparisons);
    let totals = overall(&comparisons, reference);
    let conclusion = conclusion::of(&comparisons, &totals, &protocol);
    let told: Vec<String> = conclusion.iter().cloned().chain(conclusion::speed(&comparisons, &protocol)).collect();
    let tables = Tables {
        comparisons: &comparisons,
        totals: &totals,
        machines: &machines,
        protocol: &protocol,
        conclusion: &told,
    };
    if let Some(path) = &args.report {
        write_text(path, &tables.page())?;
    }
    if !output.json {
        return if page_out { Ok(()) } else { print(&tables.print(study.style)) };
    }
    output.object(&Report {
        version: env!("CARGO_PKG_VERSION"),
        repeats: protocol.repeats,
        train: protocol.train,
        seed,
        kernel: machines[0].options.kernel.name(),
        scale: ScalingKind::word(matches[0].machines[0].options.scaling),
        reference: &machines[reference].name,
        test: protocol.test.name(),
        machines: machines.iter().map(machine_report).collect(),
        datasets: &comparisons,
        overall: &totals,
        conclusion: &conclusion,
    })
}

fn machine_report(contestant: &Contestant) -> MachineReport<'_> {
    MachineReport {
        machine: &contestant.name,
        kernel: contestant.options.kernel.name(),
        params: &contestant.options.parameters,
        search: searched(contestant),
        select: contestant.tuning.as_ref().and_then(|tuning| tuning.select),
    }
}

/// How a contestant's parameters are found, in words.
fn searched(contestant: &Contestant) -> String {
    let Some(tuning) = &contestant.tuning else { return "none".into() };
    let plan = match &tuning.plan {
        Plan::Staged => "staged".into(),
        Plan::Paper => "the paper's grid".into(),
        Plan::Grid(grid) => format!("{} points", grid.points()),
        Plan::Sample(points) => format!("{points} points at random"),
    };
    match tuning.select {
        Some(Select::Loo) => format!("{plan}, leave-one-out error"),
        Some(Select::LooLoss) => format!("{plan}, leave-one-out loss"),
        _ => format!("{plan}, {} folds", tuning.folds),
    }
}

/// The files that were named, or the sets of two classes inside the program.
fn datasets(args: &CompareArgs, output: &Output) -> Outcome<Vec<Dataset>> {
    if args.data.is_empty() {
        let two_classes = |data: &Dataset| data.labels.as_ref().is_some_and(|labels| labels.names().len() == 2);
        return Ok(embedded_names().iter().filter_map(|name| embedded(name)).filter(two_classes).collect());
    }
    args.data.iter().map(|path| read_data(path, &args.study.input, output)).collect()
}

/// A comparison to be told.
struct Tables<'a> {
    comparisons: &'a [Comparison],
    totals: &'a [Overall],
    machines: &'a [Contestant],
    protocol: &'a Protocol,
    conclusion: &'a [String],
}

/// Points of all margin curves of a page together: so it stays below two megabytes.
const CURVE_POINTS: usize = 50_000;

impl Tables<'_> {
    /// Everything as a page.
    fn page(&self) -> String {
        let sets: Vec<&str> = self.comparisons.iter().map(|c| c.dataset.as_str()).collect();
        let names: Vec<String> = self.machines.iter().map(|m| m.name.clone()).collect();
        let mut page =
            Page::new(&format!("{} on {}", crate::page::list(&names), crate::page::list(&sets)), self.conclusion);
        let mut sections = self.sections().into_iter();
        let mut table = |page: &mut Page, heading: &str| {
            if let Some((caption, sheet, note)) = sections.next() {
                page.heading(heading);
                page.table(&caption, &sheet);
                page.note(&note);
            }
        };
        table(&mut page, "Accuracy");
        page.boxes("Machines shown in the pictures", &names);
        let axis = Axis::new("test accuracy", Unit::Percent);
        page.figure(
            &chart::strips("Test accuracy on each split", &axis, &self.strips()),
            "A dot a split; the line is mean ± standard deviation over the splits.",
        );
        page.heading("Average ranks");
        match self.ranks() {
            Ok(svg) => page.figure(
                &svg,
                "Critical-difference diagram: ranks by mean test accuracy, averaged over the data sets; a bar joins machines that no signed-rank \
                 test of a pair tells apart (95 %, Holm over all pairs).",
            ),
            Err(why) => page.note(&why),
        }
        page.heading("Margins");
        page.choice(
            "Data set",
            &self.curves(),
            "Training rows of the first split. Left of zero rows are on the wrong side; the steeper the curve, the more alike the margins.",
        );
        table(&mut page, "Further scores");
        table(&mut page, "Margins, certificates and times");
        table(&mut page, "What was searched");
        page.finish(self.protocol.seed)
    }

    fn strips(&self) -> Vec<Strip> {
        let of = |c: &Comparison, (series, e): (usize, &Entry)| Strip {
            heading: format!("{}: {} × {}", c.dataset, count(c.rows, "row"), count(c.features, "feature")),
            name: e.machine.clone(),
            series,
            values: e.accuracies.clone(),
            mean: e.accuracy,
            deviation: e.deviation,
            tip: format!(
                "{}, {}: {} ± {} over {}{}",
                c.dataset,
                e.machine,
                percent(e.accuracy),
                percent(e.deviation),
                count(e.accuracies.len(), "split"),
                e.p_adjusted.map_or(String::new(), |p| format!(", p = {} (Holm)", chance(Some(p))))
            ),
        };
        self.comparisons.iter().flat_map(|c| c.entries.iter().enumerate().map(move |entry| of(c, entry))).collect()
    }

    /// The diagram, or why there is none.
    fn ranks(&self) -> std::result::Result<String, String> {
        let (sets, machines) = (self.comparisons.len(), self.totals.len());
        let whole = self.comparisons.iter().filter(|c| c.entries.iter().all(|e| e.failure.is_none())).count();
        let pairs = machines * machines.saturating_sub(1) / 2;
        if machines < 3 {
            return Err(format!("No critical-difference diagram: it takes three machines, and there are {machines}."));
        }
        if !enough_sets(whole, pairs) {
            let enough = (whole..).find(|&sets| enough_sets(sets, pairs)).unwrap_or(sets);
            return Err(format!(
                "No critical-difference diagram: of {machines} machines on {} no pair could differ significantly, whatever their \
                 figures; it takes {enough} data sets.",
                count(whole, "data set")
            ));
        }
        let ranked: Vec<(String, f64)> = self.totals.iter().map(|t| (t.machine.clone(), t.rank)).collect();
        let rank = |m: &usize| self.totals[*m].rank;
        let bars: Vec<(f64, f64)> =
            groups(self.comparisons).iter().filter_map(|g| Some((rank(g.first()?), rank(g.last()?)))).collect();
        Ok(chart::ranks(&format!("Average rank over {}, 1 is the best", count(whole, "data set")), &ranked, &bars))
    }

    /// The margin curves of each data set.
    fn curves(&self) -> Vec<(String, String)> {
        let all: usize = self.comparisons.iter().map(|c| c.entries.len()).sum();
        let most = CURVE_POINTS / all.max(1);
        let of = |c: &Comparison| {
            let series = c.entries.iter().map(|e| Series::distribution(&e.machine, &e.curve, most)).collect();
            let plot = Plot {
                title: format!("Share of the training rows of {} with a smaller margin", c.dataset),
                x: Axis::new("margin / ‖w‖", Unit::Plain),
                y: Axis::share("share of the rows"),
                series,
                guide: Guide::Zero,
            };
            (c.dataset.clone(), plot.svg())
        };
        self.comparisons.iter().map(of).collect()
    }

    /// The tables with their captions.
    fn sections(&self) -> Vec<(String, Sheet, String)> {
        let Protocol { repeats, train, reference, test, .. } = self.protocol;
        let unconverged: usize = self.comparisons.iter().flat_map(|c| &c.entries).map(|e| e.unconverged).sum();
        let note = if unconverged > 0 { "! some fits ended before their gap was within the tolerance" } else { "" };
        let splits = count(*repeats, "split");
        let kernels: Vec<&str> = self.machines.iter().map(|m| m.options.kernel.name()).collect();
        let same = kernels.iter().all(|kernel| kernel == &kernels[0]);
        let kernel = if same { format!(" ({} kernel)", kernels[0]) } else { String::new() };
        vec![
            (
                format!(
                    "Test accuracy in percent, mean ± standard deviation of {splits}, {:.0} % of the rows to train \
                     on{kernel}",
                    100.0 * train
                ),
                self.accuracies(),
                format!(
                    "{}; signed-rank: p of Wilcoxon's test over the data sets, from six that differ on (Holm)",
                    contest::legend(&self.machines[*reference].name, *test)
                ),
            ),
            (
                format!("Further scores of the test rows, means of {splits}; majority: always the most frequent label"),
                self.scores(),
                String::new(),
            ),
            (
                "Training margins divided by ‖w‖, worst duality gap, mean seconds of a search and of a fit".into(),
                self.margins(),
                note.into(),
            ),
            ("What was searched on the training rows of each split".into(), self.budgets(), String::new()),
        ]
    }

    fn print(&self, style: Style) -> String {
        let section = |(caption, sheet, note): (String, Sheet, String)| match style {
            Style::Csv => sheet.print(style),
            _ if note.is_empty() => format!("{caption}\n\n{}", sheet.print(style)),
            _ => format!("{caption}\n\n{}\n{note}\n", sheet.print(style)),
        };
        let mut sections: Vec<String> = self.sections().into_iter().map(section).collect();
        if matches!(style, Style::Text | Style::Markdown) {
            sections.push(format!("{}\n", self.conclusion.join("\n")));
        }
        sections.join("\n")
    }

    fn accuracies(&self) -> Sheet {
        let names = self.totals.iter().map(|t| t.machine.as_str());
        let mut sheet = Sheet::new(["data", "rows", "features"].into_iter().chain(names), 1);
        for c in self.comparisons {
            let size = [c.dataset.clone(), c.rows.to_string(), c.features.to_string()];
            sheet.row(size.into_iter().chain(c.entries.iter().map(accuracy)));
        }
        if self.comparisons.len() > 1 {
            let reference = self.protocol.reference;
            let mut line = |title: &str, cell: &dyn Fn(usize, &Overall) -> String| {
                let head = [title.to_string(), String::new(), String::new()];
                sheet.total(head.into_iter().chain(self.totals.iter().enumerate().map(|(m, t)| cell(m, t))));
            };
            let unless = |m: usize, text: String| if m == reference { "reference  ".into() } else { text };
            line("average", &|_, t| format!("{}          ", average(t.rank, 100.0 * t.accuracy)));
            line("average rank", &|_, t| format!("{}          ", average(t.rank, t.rank)));
            line("win/tie/loss", &|m, t| unless(m, format!("{}/{}/{}  ", t.wins, t.ties, t.losses)));
            line("signed-rank", &|m, t| unless(m, format!("{}  ", chance(t.p_adjusted))));
        }
        sheet
    }

    fn scores(&self) -> Sheet {
        let shown = |entry: &Entry| entry.scores.named().into_iter().filter(|(name, _)| *name != "accuracy");
        let entries = || self.comparisons.iter().flat_map(|c| c.entries.iter().map(move |entry| (&c.dataset, entry)));
        let known =
            |name: &str| entries().any(|(_, e)| shown(e).any(|(other, value)| other == name && value.is_some()));
        let names: Vec<&str> = Figures::default().named().iter().map(|(name, _)| *name).collect();
        let names: Vec<&str> = names.into_iter().filter(|name| *name != "accuracy" && known(name)).collect();
        let heads: Vec<String> = names.iter().map(|name| name.replace('_', " ")).collect();
        let mut sheet = Sheet::new(["data", "machine"].into_iter().chain(heads.iter().map(String::as_str)), 2);
        for (dataset, entry) in entries() {
            let value = |name: &&str| shown(entry).find(|(other, _)| other == name).and_then(|(_, value)| value);
            let cells = names.iter().map(|name| value(name).map_or("–".into(), |value| format!("{value:.4}")));
            sheet.row([dataset.clone(), entry.machine.clone()].into_iter().chain(cells));
        }
        sheet
    }

    fn margins(&self) -> Sheet {
        let mut sheet = Sheet::new(["data", "machine", "min", "mean", "variance", "gap", "search s", "fit s"], 2);
        for comparison in self.comparisons {
            for entry in &comparison.entries {
                let unconverged = if entry.unconverged > 0 { " !" } else { "" };
                sheet.row([
                    comparison.dataset.clone(),
                    entry.machine.clone(),
                    short(entry.margin_min),
                    short(entry.margin_mean),
                    short(entry.margin_variance),
                    entry.worst_gap.map_or("–".into(), |gap| format!("{gap:.1e}{unconverged}")),
                    format!("{:.4}", entry.search_seconds),
                    format!("{:.4}", entry.seconds),
                ]);
            }
        }
        sheet
    }

    fn budgets(&self) -> Sheet {
        let mut sheet = Sheet::new(["machine", "parameters", "search", "points", "fits"], 3);
        for (m, contestant) in self.machines.iter().enumerate() {
            let entries = || self.comparisons.iter().map(|c| &c.entries[m]);
            let points = entries().map(|e| e.points).max().unwrap_or(0);
            let fits = entries().map(|e| e.fits).fold(0.0, f64::max);
            let given = contestant.tuning.as_ref().map_or("", |tuning| match tuning.given.is_empty() {
                true => "all searched",
                false => "others than set",
            });
            let parameters = match given {
                "" => words::asked(contestant.options.machine, &contestant.options.parameters),
                given => given.to_string(),
            };
            sheet.row([
                contestant.name.clone(),
                parameters,
                searched(contestant),
                points.to_string(),
                format!("{fits:.0}"),
            ]);
        }
        sheet
    }
}
