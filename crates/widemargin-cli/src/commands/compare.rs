//! `widemargin compare [DATA…]`

use crate::args::CompareArgs;
use crate::failure::Outcome;
use crate::files::{fit_options, read_data};
use crate::interrupt;
use crate::machines;
use crate::output::{Output, count, print, short, table};
use crate::progress::Spinner;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use widemargin::control::Control;
use widemargin::data::{Dataset, embedded, embedded_names};
use widemargin::machine::{Machine, Parameters};
use widemargin::study::{Comparison, Entry, Overall, Protocol, Verdict, compare, overall};
use widemargin::train::TrainOptions;
use widemargin::{Error, Result};

/// The machine to test against if nobody names one.
const USUAL_REFERENCE: &str = "svm";

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
    machines: Vec<MachineReport<'a>>,
    datasets: &'a [Comparison],
    overall: &'a [Overall],
}

#[derive(Serialize)]
struct MachineReport<'a> {
    machine: &'a str,
    params: &'a Parameters,
}

/// Runs the protocol on every data set and prints the tables.
pub fn run(args: &CompareArgs, seed: u64, output: &Output) -> Outcome {
    let machines = contestants(args, seed)?;
    let protocol =
        Protocol { repeats: args.repeats.into(), train: args.train, reference: reference(args, &machines)?, seed };
    let mut comparisons = Vec::new();
    for data in datasets(args, output)? {
        comparisons.push(compare_on(&data, &machines, &protocol, output)?);
    }
    let totals = overall(&comparisons);
    let reference = machines[protocol.reference].machine.name();
    if output.json {
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            repeats: protocol.repeats,
            train: protocol.train,
            seed,
            kernel: machines[0].kernel.name(),
            scale: super::words::scaling(args.scale.kind()),
            reference,
            machines: machines
                .iter()
                .map(|m| MachineReport { machine: m.machine.name(), params: &m.parameters })
                .collect(),
            datasets: &comparisons,
            overall: &totals,
        });
    }
    print(&tables(&comparisons, &totals, &machines, &protocol))
}

/// The machines with their parameters.
fn contestants(args: &CompareArgs, seed: u64) -> Result<Vec<TrainOptions>> {
    let chosen: Vec<&'static dyn Machine> = args.machines.iter().map(|m| machines::find(m)).collect::<Result<_>>()?;
    for (name, parameter, value) in &args.set {
        let set = machines::find(name)?.name();
        if !chosen.iter().any(|m| m.name() == set) {
            return Err(Error::Usage(format!("--set {name}.{parameter}={value}: {name} is not among the machines")));
        }
    }
    let options = |machine: &'static dyn Machine| {
        let is_its = |name: &str| machines::find(name).is_ok_and(|m| m.name() == machine.name());
        let its = args.set.iter().filter(|(name, ..)| is_its(name));
        let given: Vec<(String, String)> =
            its.map(|(_, parameter, value)| (parameter.clone(), value.clone())).collect();
        fit_options(machine, machines::check(machine, &given)?, &args.fit, args.scale, seed)
    };
    chosen.into_iter().map(options).collect()
}

/// The position of the reference among the machines.
fn reference(args: &CompareArgs, machines: &[TrainOptions]) -> Result<usize> {
    let position = |name: &str| machines.iter().position(|m| m.machine.name() == name);
    match &args.reference {
        None => Ok(position(USUAL_REFERENCE).unwrap_or(machines.len() - 1)),
        Some(name) => position(machines::find(name)?.name())
            .ok_or_else(|| Error::Usage(format!("--reference {name}: it is not among the machines"))),
    }
}

/// The files that were named, or the sets inside the program.
fn datasets(args: &CompareArgs, output: &Output) -> Outcome<Vec<Dataset>> {
    if args.data.is_empty() {
        return Ok(embedded_names().iter().filter_map(|name| embedded(name)).collect());
    }
    args.data.iter().map(|path| read_data(path, &args.input, output).map(|(data, _)| data)).collect()
}

fn compare_on(data: &Dataset, machines: &[TrainOptions], protocol: &Protocol, output: &Output) -> Outcome<Comparison> {
    let spinner = Spinner::start(output, format!("comparing on {}", data.name));
    Ok(interrupt::stoppable(|control| {
        let observer = |progress: &_| spinner.show(progress);
        compare(data, machines, protocol, Control { observer: Some(&observer), ..control })
    })?)
}

fn tables(comparisons: &[Comparison], totals: &[Overall], machines: &[TrainOptions], protocol: &Protocol) -> String {
    let names: Vec<String> = machines.iter().map(|m| super::words::machine(m.machine.name(), &m.parameters)).collect();
    let reference = machines[protocol.reference].machine.name();
    let unconverged: usize = comparisons.iter().flat_map(|c| &c.entries).map(|e| e.unconverged).sum();
    let note = if unconverged > 0 { "! some fits ended before their gap was within the tolerance\n" } else { "" };
    format!(
        "Test accuracy in percent, mean ± standard deviation of {} ({} kernel)\n{}\n\
         ● significantly better, ○ significantly worse than {reference} (paired t-test, 95 %)\n\n\
         Training margins divided by ‖w‖, worst duality gap and mean time of a fit\n{}\n{note}\n\
         Parameters: {}\n",
        count(protocol.repeats, "split"),
        machines[0].kernel.name(),
        accuracy_table(comparisons, totals, protocol).trim_fmt(),
        margin_table(comparisons).trim_fmt(),
        names.join(", "),
    )
}

fn right_aligned(mut table: Table, from: usize) -> Table {
    table.column_iter_mut().skip(from).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}

fn accuracy_table(comparisons: &[Comparison], totals: &[Overall], protocol: &Protocol) -> Table {
    let header = ["data", "rows", "features"].into_iter().chain(totals.iter().map(|t| t.machine));
    let mut table = table(header.map(str::to_string).collect());
    for comparison in comparisons {
        let size = [comparison.dataset.clone(), comparison.rows.to_string(), comparison.features.to_string()];
        table.add_row(size.into_iter().chain(comparison.entries.iter().map(accuracy)));
    }
    let blank = |title: &str| [title.to_string(), String::new(), String::new()].into_iter();
    if comparisons.len() > 1 {
        table.add_row(blank("average").chain(totals.iter().map(|t| format!("{:.2}          ", 100.0 * t.accuracy))));
        let score = |(m, t): (usize, &Overall)| match m == protocol.reference {
            true => "reference  ".to_string(),
            false => format!("{}/{}/{}  ", t.wins, t.ties, t.losses),
        };
        table.add_row(blank("win/tie/loss").chain(totals.iter().enumerate().map(score)));
    }
    right_aligned(table, 1)
}

fn accuracy(entry: &Entry) -> String {
    let mark = match entry.verdict {
        Verdict::Better => "●",
        Verdict::Worse => "○",
        Verdict::Tie | Verdict::Reference => " ",
    };
    format!("{:.2} ± {:5.2} {mark}", 100.0 * entry.accuracy, 100.0 * entry.deviation)
}

fn margin_table(comparisons: &[Comparison]) -> Table {
    let header = ["data", "machine", "min", "mean", "variance", "gap", "seconds"];
    let mut table = table(header.map(str::to_string).to_vec());
    for comparison in comparisons {
        for (place, entry) in comparison.entries.iter().enumerate() {
            let dataset = if place == 0 { comparison.dataset.clone() } else { String::new() };
            let unconverged = if entry.unconverged > 0 { " !" } else { "" };
            table.add_row([
                dataset,
                entry.machine.to_string(),
                short(entry.margin_min),
                short(entry.margin_mean),
                short(entry.margin_variance),
                entry.worst_gap.map_or("–".into(), |gap| format!("{gap:.1e}{unconverged}")),
                format!("{:.4}", entry.seconds),
            ]);
        }
    }
    right_aligned(table, 2)
}
