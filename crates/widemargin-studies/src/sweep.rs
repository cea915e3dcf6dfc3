//! Test accuracy over one parameter, or over the number of classes.

use crate::compare::{Chosen, Comparison, Entry, Match};
use crate::contestant::{Contestant, checked};
use crate::trial::{labels, unusable};
use serde::Serialize;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::Value;
use widemargin::select::{GAMMA, Grid, GridAxis};
use widemargin::train::Gamma;
use widemargin::{Error, Result};

/// The name that stands for the number of classes.
const CLASSES: &str = "classes";

/// Machines on data sets, with one thing that changes.
pub struct Sweep {
    /// What changes: a parameter of the machines, `gamma`, or `classes`, of which the first so many are taken.
    pub axis: GridAxis,
    data: Vec<Dataset>,
    machines: Vec<Contestant>,
}

/// Accuracies of one machine on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct Curve {
    /// What tells it from the others.
    pub name: String,
    /// The data set.
    pub dataset: String,
    /// The machine.
    pub machine: String,
    /// Mean test accuracy at each value.
    pub accuracy: Vec<f64>,
    /// Its standard deviation over the splits.
    pub deviation: Vec<f64>,
}

impl Sweep {
    /// Of one `NAME=VALUES`, in the syntax of grids.
    pub fn new(over: &str, data: Vec<Dataset>, machines: Vec<Contestant>) -> Result<Self> {
        let mut axes = Grid::parse(over)?.axes;
        if axes.len() != 1 {
            return Err(Error::Usage(format!("{over}: one NAME=VALUES is expected")));
        }
        let sweep = Self { axis: axes.remove(0), data, machines };
        if !sweep.over_classes() {
            // What is wrong is told before anything is searched.
            sweep.machines.iter().try_for_each(|machine| sweep.fixed(machine, None).map(drop))?;
        }
        Ok(sweep)
    }

    fn over_classes(&self) -> bool {
        self.axis.name == CLASSES
    }

    /// What has to be searched beforehand, on the first split alone: the other parameters stay where that puts them. `None` where
    /// nothing is searched, or each value has its own search.
    pub fn searches(&self) -> Option<Vec<Match>> {
        let searched = !self.over_classes() && self.machines.iter().any(|machine| machine.tuning.is_some());
        let all = |data: &Dataset| Match { data: data.clone(), machines: self.machines.clone() };
        searched.then(|| self.data.iter().map(all).collect())
    }

    /// Who competes on what, after the [`searches`](Self::searches).
    pub fn matches(&self, searched: Option<&[Comparison]>) -> Result<Vec<Match>> {
        if self.over_classes() {
            let part = |data, value| Ok(Match { data: first_classes(data, value)?, machines: self.machines.clone() });
            return self.data.iter().flat_map(|d| self.axis.values.iter().map(move |v| part(d, v))).collect();
        }
        let each = |(place, data): (usize, &Dataset)| {
            let mut machines = Vec::new();
            for (m, machine) in self.machines.iter().enumerate() {
                let chosen = searched.and_then(|all| all[place].entries[m].chosen.first());
                machines.extend(self.fixed(machine, chosen)?);
            }
            Ok(Match { data: data.clone(), machines })
        };
        self.data.iter().enumerate().map(each).collect()
    }

    /// A machine with each of the values, and the others as they were chosen.
    fn fixed(&self, machine: &Contestant, chosen: Option<&Chosen>) -> Result<Vec<Contestant>> {
        self.axis.values.iter().map(|value| self.at(machine, chosen, value)).collect()
    }

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
            value if self.axis.name == GAMMA => {
                return Err(Error::parameter(GAMMA, value, "a number > 0"));
            }
            value => {
                given.retain(|(name, _)| *name != self.axis.name);
                given.push((self.axis.name.clone(), value.clone()));
            }
        }
        options.parameters = checked(options.machine, &given)?;
        Ok(Contestant { name: machine.name.clone(), options, tuning: None })
    }

    /// The curves, from the results of the [`matches`](Self::matches).
    pub fn curves(&self, comparisons: &[Comparison]) -> Vec<Curve> {
        let values = self.axis.values.len();
        let mut curves = Vec::new();
        for (place, data) in self.data.iter().enumerate() {
            for (m, machine) in self.machines.iter().enumerate() {
                let entries: Vec<&Entry> = match self.over_classes() {
                    true => comparisons[place * values..][..values].iter().map(|c| &c.entries[m]).collect(),
                    false => comparisons[place].entries[m * values..][..values].iter().collect(),
                };
                curves.push(self.curve(&data.name, &machine.name, &entries));
            }
        }
        curves
    }

    fn curve(&self, dataset: &str, machine: &str, entries: &[&Entry]) -> Curve {
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
    let labels = labels(data)?;
    let most = labels.names().len();
    let count = match value {
        Value::Number(number) if number.fract() == 0.0 && *number >= 2.0 && *number <= most as f64 => *number as u32,
        value => {
            let expected = format!("{CLASSES}={value}: expected whole numbers from 2 to its {most} classes");
            return Err(unusable(data, expected));
        }
    };
    let kept: Vec<usize> = (0..labels.codes().len()).filter(|&i| labels.codes()[i] < count).collect();
    let names: Vec<&String> = kept.iter().map(|&i| &labels.names()[labels.codes()[i] as usize]).collect();
    Ok(Dataset { rows: data.rows.select(&kept), labels: Some(Labels::new(&names)), ..data.clone() })
}
