//! The machines and their parameters as options: whatever the library lists can be typed.

use crate::args::FitArgs;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use widemargin::machine::{ALIASES, MACHINES, Machine, Parameter, Parameters, SolverChoice, Uses, check_parameters};
use widemargin::{Error, Result};

pub use widemargin::machine::machine as find;

/// Where the parameters stand in the help.
const HEADING: &str = "Parameters of the machines";

/// The names a machine may be given by.
pub fn names() -> PossibleValuesParser {
    let value = |machine: &&dyn Machine| {
        let value = PossibleValue::new(machine.name());
        ALIASES.iter().filter(|(name, _)| *name == machine.name()).fold(value, |v, (_, alias)| v.alias(alias))
    };
    PossibleValuesParser::new(MACHINES.iter().map(value))
}

/// Checks the parameters of a machine; one it does not have is named together with those it has.
pub fn check(machine: &dyn Machine, given: &[(String, String)]) -> Result<Parameters> {
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
pub fn check_uses(machines: &[&dyn Machine], fit: &FitArgs) -> Result<()> {
    let solver = SolverChoice::from(fit.solver);
    let some = |used: &dyn Fn(&Uses) -> bool| machines.iter().any(|machine| used(&machine.uses()));
    let ignored = if solver != SolverChoice::Auto && !some(&|uses| uses.solvers.contains(&solver)) {
        format!("--solver {}", solver.name())
    } else if fit.tol.is_some() && !some(&|uses| uses.tol) {
        "--tol".into()
    } else if fit.max_iter.is_some() && !some(&|uses| uses.max_iter) {
        "--max-iter".into()
    } else {
        return Ok(());
    };
    let each: Vec<String> = machines.iter().map(|machine| takes(*machine)).collect();
    Err(Error::Usage(format!("{ignored} has no meaning here: {}", each.join("; "))))
}

/// `km-omd takes --tol, --max-iter`
fn takes(machine: &dyn Machine) -> String {
    let uses = machine.uses();
    let solvers: Vec<&str> = uses.solvers.iter().map(|solver| solver.name()).collect();
    let options = [
        (uses.solvers.len() > 1).then(|| format!("--solver {}", solvers.join("|"))),
        uses.tol.then(|| "--tol".to_string()),
        uses.max_iter.then(|| "--max-iter".to_string()),
    ];
    let options: Vec<String> = options.into_iter().flatten().collect();
    let own = machine.parameters().iter().map(|p| format!("--{}", p.name));
    format!("{} takes {}", machine.name(), options.into_iter().chain(own).collect::<Vec<_>>().join(", "))
}

/// Each distinct parameter with the machines that have it, in the order of the machines.
fn parameters() -> Vec<(&'static Parameter, Vec<&'static str>)> {
    let mut found: Vec<(&'static Parameter, Vec<&'static str>)> = Vec::new();
    for machine in MACHINES {
        for parameter in machine.parameters() {
            match found.iter_mut().find(|(p, _)| p.name == parameter.name) {
                Some((_, machines)) => machines.push(machine.name()),
                None => found.push((parameter, vec![machine.name()])),
            }
        }
    }
    found
}

/// One option for each distinct parameter of all machines. Their values are checked with the machine, not here.
pub fn options() -> Vec<Arg> {
    let option = |(parameter, machines): (&'static Parameter, Vec<&'static str>)| {
        let default = parameter.default.map(|d| format!(", default {d}")).unwrap_or_default();
        let help = format!("{} ({}{default}) [{}]", parameter.help, parameter.domain.describe(), machines.join(", "));
        Arg::new(parameter.name)
            .long(parameter.name)
            .value_name(parameter.name.to_uppercase().leak() as &'static str)
            .allow_hyphen_values(true)
            .help_heading(HEADING)
            .help(help)
    };
    parameters().into_iter().map(option).collect()
}

/// The parameters that were typed, as text by name.
pub fn given(matches: &ArgMatches) -> Vec<(String, String)> {
    let typed = |name: &'static str| match matches.value_source(name) {
        Some(ValueSource::CommandLine) => matches.get_one::<String>(name).map(|v| (name.to_string(), v.clone())),
        _ => None,
    };
    parameters().into_iter().filter_map(|(parameter, _)| typed(parameter.name)).collect()
}

/// The problem each machine solves, for the end of the help.
pub fn summaries() -> String {
    let lines: Vec<String> = MACHINES.iter().map(|m| format!("  {:8} {}", m.name(), m.summary())).collect();
    format!("Machines:\n{}", lines.join("\n"))
}
