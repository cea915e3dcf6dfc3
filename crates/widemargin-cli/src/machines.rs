//! The machines and their parameters as options: whatever the library lists can be typed.

use crate::args::FitArgs;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use widemargin::machine::check_parameters;
use widemargin::machine::{ALIASES, MACHINES, Machine, Parameter, Parameters, SolverChoice, Uses, Value};
use widemargin::select::{Grid, Plan};
use widemargin::{Error, Result};

pub use widemargin::machine::machine as find;

/// Where the parameters stand in the help.
const HEADING: &str = "Parameters of the machines";

/// A machine by its name.
pub fn named() -> impl TypedValueParser<Value = &'static Machine> {
    let value = |machine: &&Machine| {
        let value = PossibleValue::new(machine.name());
        ALIASES.iter().filter(|(name, _)| *name == machine.name()).fold(value, |v, (_, alias)| v.alias(alias))
    };
    PossibleValuesParser::new(MACHINES.iter().map(value)).try_map(|name| find(&name))
}

/// `--grid` of `tune`.
pub fn plan(text: &str) -> std::result::Result<Plan, String> {
    match text {
        "paper" => Ok(Plan::Paper),
        text => Grid::parse(text).map(Plan::Grid).map_err(|error| match error {
            Error::Parameter { value, expected, .. } => format!("{value}: expected {expected}"),
            other => other.to_string(),
        }),
    }
}

/// Checks the parameters of a machine; one it does not have is named together with those it has.
pub fn check(machine: &Machine, given: &[(String, Value)]) -> Result<Parameters> {
    let has = |name: &str| machine.parameters().iter().any(|p| p.name == name);
    match given.iter().find(|(name, _)| !has(name)) {
        None => check_parameters(machine, given),
        Some((name, _)) => {
            let own: Vec<String> = machine.parameters().iter().map(|p| format!("--{}", p.name)).collect();
            Err(Error::Usage(format!("--{name} is not a parameter of {0}; {0} has {1}", machine.name(), own.join(" "))))
        }
    }
}

/// Refuses an option of the fit that none of these machines has a use for: it would be ignored.
pub fn check_uses(machines: &[&Machine], fit: &FitArgs) -> Result<()> {
    let some = |used: &dyn Fn(&Uses) -> bool| machines.iter().any(|machine| used(&machine.uses()));
    let ignored = if fit.solver != SolverChoice::Auto && !some(&|uses| uses.solvers.contains(&fit.solver)) {
        format!("--solver {}", fit.solver)
    } else if fit.tol.is_some() && !some(&|uses| uses.tol) {
        "--tol".into()
    } else if fit.max_iter.is_some() && !some(&|uses| uses.max_iter) {
        "--max-iter".into()
    } else {
        return Ok(());
    };
    let each: Vec<String> = machines.iter().map(|machine| takes(machine)).collect();
    Err(Error::Usage(format!("{ignored} has no meaning here: {}", each.join("; "))))
}

/// `km-omd takes --tol, --max-iter`
fn takes(machine: &Machine) -> String {
    let own = machine.parameters().iter().map(|p| format!("--{}", p.name));
    format!("{} takes {}", machine.name(), used(machine).into_iter().chain(own).collect::<Vec<_>>().join(", "))
}

/// Those of the options for all machines that a machine has a use for and another has not.
pub fn used(machine: &Machine) -> Vec<String> {
    let uses = machine.uses();
    let solvers: Vec<&str> = uses.solvers.iter().map(|solver| solver.name()).collect();
    let options = [
        (uses.solvers.len() > 1).then(|| format!("--solver {}", solvers.join("|"))),
        uses.tol.then(|| "--tol".to_string()),
        uses.max_iter.then(|| "--max-iter".to_string()),
    ];
    options.into_iter().flatten().collect()
}

/// The parameters that were typed, by name.
#[derive(Clone, Debug, Default)]
pub struct Given(pub Vec<(String, Value)>);

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command.args(options())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let typed = |name: &'static str| match matches.value_source(name) {
            Some(ValueSource::CommandLine) => matches.get_one::<Value>(name).map(|v| (name.to_string(), v.clone())),
            _ => None,
        };
        Ok(Self(meanings().into_iter().filter_map(|meaning| typed(meaning.name)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// A name and what it means, machine by machine.
struct Meaning {
    name: &'static str,
    machines: Vec<(&'static str, &'static Parameter)>,
}

/// Each distinct name of a parameter, in the order of the machines.
fn meanings() -> Vec<Meaning> {
    let mut found: Vec<Meaning> = Vec::new();
    for machine in MACHINES {
        for parameter in machine.parameters() {
            let entry = (machine.name(), parameter);
            match found.iter_mut().find(|meaning| meaning.name == parameter.name) {
                Some(meaning) => meaning.machines.push(entry),
                None => found.push(Meaning { name: parameter.name, machines: vec![entry] }),
            }
        }
    }
    found
}

impl Meaning {
    /// What it does and may be, with the machines and their defaults: one part for each distinct meaning.
    fn describe(&self) -> String {
        let parts = groups(&self.machines, |parameter| (parameter.help, parameter.domain.describe()));
        let part = |((help, domain), machines): ((&str, String), Vec<_>)| {
            format!("{help} ({domain}) [{}]", defaults(&machines))
        };
        parts.into_iter().map(part).collect::<Vec<_>>().join("; ")
    }
}

/// `default 1 in svm, l2svm; 64 in lssvm`
fn defaults(machines: &[(&'static str, &'static Parameter)]) -> String {
    let parts = groups(machines, |parameter| Some(parameter.default.to_string()).filter(|default| !default.is_empty()));
    let part = |(default, machines): (Option<String>, Vec<(&str, &Parameter)>)| {
        let names: Vec<&str> = machines.iter().map(|(name, _)| *name).collect();
        match default {
            Some(default) => format!("default {default} in {}", names.join(", ")),
            None => names.join(", "),
        }
    };
    parts.into_iter().map(part).collect::<Vec<_>>().join("; ")
}

/// The machines with something in common about a parameter, in their order.
fn groups<K: PartialEq>(
    machines: &[(&'static str, &'static Parameter)],
    key: impl Fn(&'static Parameter) -> K,
) -> Vec<(K, Vec<(&'static str, &'static Parameter)>)> {
    let mut found: Vec<(K, Vec<_>)> = Vec::new();
    for &(name, parameter) in machines {
        let key = key(parameter);
        match found.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push((name, parameter)),
            None => found.push((key, vec![(name, parameter)])),
        }
    }
    found
}

/// One option for each distinct parameter of all machines. Their values are checked with the machine, not here.
fn options() -> Vec<Arg> {
    let option = |meaning: Meaning| {
        Arg::new(meaning.name)
            .long(meaning.name)
            .value_name(meaning.name.to_uppercase().leak() as &'static str)
            .value_parser(crate::values::value)
            .allow_hyphen_values(true)
            .help_heading(HEADING)
            .help(meaning.describe())
    };
    meanings().into_iter().map(option).collect()
}

/// The problem each machine solves, for the end of the help.
pub fn summaries() -> String {
    let lines: Vec<String> =
        MACHINES.iter().map(|m| format!("  {:8} {}: {}", m.name(), m.title(), m.formula())).collect();
    format!("Machines (`widemargin help MACHINE` tells more):\n{}", lines.join("\n"))
}
