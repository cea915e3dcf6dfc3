//! `widemargin help [MACHINE|COMMAND]`

use crate::args;
use crate::failure::Outcome;
use crate::machines;
use crate::output::{print, table};
use widemargin::Error;
use widemargin::machine::{Axis, Bias, Classes, Machine, Preset};

/// Explains a machine or a command; without either, what there is.
pub fn run(topic: Option<&str>) -> Outcome {
    let mut command = args::command();
    // Inherited options and names are known once it is built.
    command.build();
    let Some(topic) = topic else { return print(&command.render_long_help().to_string()) };
    if let Ok(machine) = machines::find(topic) {
        return print(&page(machine));
    }
    match command.find_subcommand_mut(topic) {
        Some(found) => print(&found.render_long_help().to_string()),
        None => {
            let names: Vec<&str> = widemargin::machine::MACHINES.iter().map(|machine| machine.name()).collect();
            let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            Err(Error::Usage(format!(
                "help {topic}: expected a machine ({}) or a command ({})",
                names.join(", "),
                commands.join(", ")
            ))
            .into())
        }
    }
}

/// A machine's formula, parameters and paper.
fn page(machine: &Machine) -> String {
    let mut text = format!(
        "{}: {}\n\n  {}\n\nγ_i = y_i f(x_i) is the margin of row i, m the number of rows, f(x) = w·φ(x) + b.\n\nPaper: {}\n",
        machine.name(),
        machine.title(),
        machine.formula(),
        machine.paper(),
    );
    text += &format!("\n{}\n", parameters(machine));
    text += &format!("\nClasses: {}\nIntercept: {}\n", classes(machine), intercept(machine));
    let used = machines::used(machine);
    if used.is_empty() {
        text += "It is a closed form: --solver, --tol and --max-iter are refused.\n";
    } else {
        text += &format!("Options it has a use for: {}\n", used.join(", "));
    }
    text + "\nThe options of every machine: `widemargin train --help`. More on this one: docs/machines.md.\n"
}

/// What a search tries on an axis.
fn tried(axis: &Axis) -> String {
    match axis.per_row {
        Some(_) => format!("{}, more with the rows", axis.fine),
        None => axis.fine.to_string(),
    }
}

/// The parameters with defaults, ranges, what they do and what a search tries.
fn parameters(machine: &Machine) -> String {
    if machine.parameters().is_empty() {
        return "It has no parameters.".into();
    }
    let header = ["option", "default", "range", "meaning", "tried by tune"];
    let mut rows = table(header.map(str::to_string).to_vec());
    for parameter in machine.parameters() {
        let default = match parameter.default {
            Preset::None => "—".into(),
            default => default.to_string(),
        };
        let axis = machine.grid().iter().find(|axis| axis.name == parameter.name);
        rows.add_row([
            format!("--{}", parameter.name),
            default,
            parameter.domain.describe(),
            parameter.help.to_string(),
            axis.map_or("—".into(), tried),
        ]);
    }
    rows.trim_fmt()
}

fn classes(machine: &Machine) -> &'static str {
    match machine.classes() {
        Classes::Many => "two or more in one problem",
        Classes::Two => "two; more by --multiclass ova (the default), ovo or ecoc",
    }
}

/// Which intercepts it can have.
fn intercept(machine: &Machine) -> String {
    let kinds = [(Bias::Free, "free"), (Bias::Feature(1.0), "B"), (Bias::None, "none")];
    let told = kinds.iter().map(|(asked, name)| match machine.intercept(*asked) {
        found if found == *asked => format!("--bias {name}"),
        Bias::None => format!("--bias {name} (becomes none)"),
        found => format!("--bias {name} (becomes {found})"),
    });
    told.collect::<Vec<_>>().join(", ")
}
