//! `widemargin sweep DATA… --over NAME=VALUES`

use super::contest::{self, Match};
use super::pictures::{self, Line};
use crate::args::SweepArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::machines;
use crate::output::{Output, is_stdout, one_on_stdout, print, write_text};
use crate::places::Places;
use crate::sheet::Sheet;
use serde::Serialize;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::Value;
use widemargin::select::{GAMMA, Grid, GridAxis};
use widemargin::study::{Chosen, Comparison, Contestant, Entry, Protocol};
use widemargin::train::Gamma;
use widemargin::{Error, Result};

/// The name that stands for the number of classes.
const CLASSES: &str = "classes";

/// Accuracies of one machine on one data set.
#[derive(Serialize)]
struct Curve {
    name: String,
    dataset: String,
    machine: String,
    accuracy: Vec<f64>,
    deviation: Vec<f64>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    over: &'a str,
    values: &'a [Value],
    repeats: usize,
    train: f64,
    seed: u64,
    curves: &'a [Curve],
}

/// Runs every value and shows the accuracies.
pub fn run(args: &SweepArgs, seed: u64, output: &Output) -> Outcome {
    let to_stdout = args.svg.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("the picture", to_stdout)])?;
    let places = args.data.iter().fold(Places::default(), Places::reads);
    places.writes(args.results.as_ref()).writes(args.svg.as_ref()).check()?;
    let axis = axis(&args.over)?;
    let machines = contest::contestants(&args.contest, &args.fit, args.scale, seed)?;
    let data: Vec<Dataset> =
        args.data.iter().map(|path| read_data(path, &args.input, output)).collect::<Outcome<_>>()?;
    let protocol = Protocol { repeats: args.repeats.into(), train: args.train, reference: 0, seed, keep_going: false };
    let sweep = Sweep { args, axis: &axis, data: &data, machines: &machines, protocol: &protocol, output };
    let curves = if axis.name == CLASSES { sweep.over_classes()? } else { sweep.over_parameter()? };
    if let Some(path) = &args.svg {
        write_text(path, &picture(&curves, &axis))?;
    }
    if output.json {
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            over: &axis.name,
            values: &axis.values,
            repeats: protocol.repeats,
            train: protocol.train,
            seed,
            curves: &curves,
        });
    }
    if to_stdout { Ok(()) } else { print(&sheet(&curves, &axis).print(args.style)) }
}

/// The one thing that changes.
fn axis(text: &str) -> Result<GridAxis> {
    let mut axes = Grid::parse(text)?.axes;
    if axes.len() != 1 {
        return Err(Error::Usage(format!("--over {text}: one NAME=VALUES is expected")));
    }
    Ok(axes.remove(0))
}

struct Sweep<'a> {
    args: &'a SweepArgs,
    axis: &'a GridAxis,
    data: &'a [Dataset],
    machines: &'a [Contestant],
    protocol: &'a Protocol,
    output: &'a Output,
}

impl Sweep<'_> {
    fn compare(&self, matches: &[Match], protocol: &Protocol) -> Outcome<Vec<Comparison>> {
        contest::run(matches, protocol, self.args.results.as_deref(), false, self.output)
    }

    /// The other parameters stay where a search on the first split's training rows puts them, unless nothing is searched.
    fn over_parameter(&self) -> Outcome<Vec<Curve>> {
        for machine in self.machines {
            self.at(machine, None, &self.axis.values[0])?;
        }
        let matches = |machines: &dyn Fn(usize) -> Result<Vec<Contestant>>| -> Result<Vec<Match>> {
            let each = |(place, data): (usize, &Dataset)| Ok(Match { data: data.clone(), machines: machines(place)? });
            self.data.iter().enumerate().map(each).collect()
        };
        let chosen: Option<Vec<Comparison>> = if self.args.contest.fixed {
            None
        } else {
            let first = Protocol { repeats: 1, ..*self.protocol };
            Some(self.compare(&matches(&|_| Ok(self.machines.to_vec()))?, &first)?)
        };
        let fixed = |place: usize| {
            let of_machine = |(m, machine): (usize, &Contestant)| -> Result<Vec<Contestant>> {
                let chosen = chosen.as_ref().and_then(|all| all[place].entries[m].chosen.first());
                self.axis.values.iter().map(|value| self.at(machine, chosen, value)).collect()
            };
            let all: Result<Vec<Vec<Contestant>>> = self.machines.iter().enumerate().map(of_machine).collect();
            Ok(all?.concat())
        };
        let comparisons = self.compare(&matches(&fixed)?, self.protocol)?;
        let mut curves = Vec::new();
        for comparison in &comparisons {
            for (machine, entries) in self.machines.iter().zip(comparison.entries.chunks(self.axis.values.len())) {
                curves.push(self.curve(&comparison.dataset, &machine.name, entries));
            }
        }
        Ok(curves)
    }

    /// A machine with this value, and the others as they were chosen.
    fn at(&self, machine: &Contestant, chosen: Option<&Chosen>, value: &Value) -> Result<Contestant> {
        let mut options = machine.options.clone();
        let parameters = chosen.map_or(&options.parameters, |chosen| &chosen.params);
        let mut given: Vec<(String, Value)> =
            parameters.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
        if let Some(gamma) = chosen.and_then(|chosen| chosen.gamma) {
            options.gamma = Gamma::Value(gamma);
        }
        match value {
            Value::Number(gamma) if self.axis.name == GAMMA && *gamma > 0.0 => options.gamma = Gamma::Value(*gamma),
            _ if self.axis.name == GAMMA => {
                return Err(Error::Usage(format!("--over {}: gamma is a number > 0", self.args.over)));
            }
            value => {
                given.retain(|(name, _)| *name != self.axis.name);
                given.push((self.axis.name.clone(), value.clone()));
            }
        }
        options.parameters = machines::check(options.machine, &given)?;
        Ok(Contestant { name: machine.name.clone(), options, tuning: None })
    }

    /// Every machine on the rows of the first so many classes.
    fn over_classes(&self) -> Outcome<Vec<Curve>> {
        let mut matches = Vec::new();
        for data in self.data {
            for value in &self.axis.values {
                matches.push(Match { data: first_classes(data, value)?, machines: self.machines.to_vec() });
            }
        }
        let comparisons = self.compare(&matches, self.protocol)?;
        let mut curves = Vec::new();
        for (data, found) in self.data.iter().zip(comparisons.chunks(self.axis.values.len())) {
            for (m, machine) in self.machines.iter().enumerate() {
                let entries: Vec<Entry> = found.iter().map(|comparison| comparison.entries[m].clone()).collect();
                curves.push(self.curve(&data.name, &machine.name, &entries));
            }
        }
        Ok(curves)
    }

    fn curve(&self, dataset: &str, machine: &str, entries: &[Entry]) -> Curve {
        let name = match (self.data.len(), self.machines.len()) {
            (1, _) => machine.to_string(),
            (_, 1) => dataset.to_string(),
            _ => format!("{dataset} {machine}"),
        };
        Curve {
            name,
            dataset: dataset.into(),
            machine: machine.into(),
            accuracy: entries.iter().map(|e| e.accuracy).collect(),
            deviation: entries.iter().map(|e| e.deviation).collect(),
        }
    }
}

/// The rows of the first classes.
fn first_classes(data: &Dataset, value: &Value) -> Result<Dataset> {
    let unusable = |reason: String| Error::Data { file: data.name.clone(), reason };
    let labels = data.labels.as_ref().ok_or_else(|| unusable("it has no labels".into()))?;
    let most = labels.names().len();
    let count = match value {
        Value::Number(number) if number.fract() == 0.0 && *number >= 2.0 && *number <= most as f64 => *number as u32,
        value => {
            return Err(unusable(format!("{CLASSES}={value}: expected whole numbers from 2 to its {most} classes")));
        }
    };
    let kept: Vec<usize> = (0..labels.codes().len()).filter(|&i| labels.codes()[i] < count).collect();
    let names: Vec<&String> = kept.iter().map(|&i| &labels.names()[labels.codes()[i] as usize]).collect();
    Ok(Dataset { rows: data.rows.select(&kept), labels: Some(Labels::new(&names)), ..data.clone() })
}

fn sheet(curves: &[Curve], axis: &GridAxis) -> Sheet {
    let names = curves.iter().map(|curve| curve.name.clone());
    let mut sheet = Sheet::new(std::iter::once(axis.name.clone()).chain(names), 1);
    for (place, value) in axis.values.iter().enumerate() {
        let cell =
            |curve: &Curve| format!("{:.2} ± {:5.2}", 100.0 * curve.accuracy[place], 100.0 * curve.deviation[place]);
        let cells = curves.iter().map(cell);
        sheet.row(std::iter::once(value.to_string()).chain(cells));
    }
    sheet
}

fn picture(curves: &[Curve], axis: &GridAxis) -> String {
    let at = |(place, value): (usize, &Value)| match value {
        Value::Number(number) => *number,
        Value::Word(_) => place as f64,
    };
    let positions: Vec<f64> = axis.values.iter().enumerate().map(at).collect();
    let line = |curve: &Curve| Line {
        name: curve.name.clone(),
        points: positions.iter().copied().zip(curve.accuracy.iter().copied()).collect(),
    };
    pictures::lines(&curves.iter().map(line).collect::<Vec<_>>(), "Test accuracy", &axis.name)
}
