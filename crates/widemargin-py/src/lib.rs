//! The Python extension module: arrays in, arrays out, errors mapped one to one. No arithmetic, no defaults: those are
//! the library's and the Python package's.

mod choices;
mod cluster;
mod errors;
mod model;
mod rows;
mod search;
mod train;
mod watch;

use pyo3::prelude::*;
use serde_json::json;
use widemargin::machine::{Bias, Classes, Domain, MACHINES, Parameter, Preset};

/// What the Python package is built on; not meant to be used directly.
#[pymodule]
mod _widemargin {
    #[pymodule_export]
    use super::cluster::Memory;
    #[pymodule_export]
    use super::cluster::kernel_share;
    #[pymodule_export]
    use super::cluster::part_sums;
    #[pymodule_export]
    use super::cluster::train_kernel;
    #[pymodule_export]
    use super::cluster::train_parts;
    #[pymodule_export]
    use super::machines;
    #[pymodule_export]
    use super::model::Model;
    #[pymodule_export]
    use super::rows::all_finite;
    #[pymodule_export]
    use super::rows::unlike_scales;
    #[pymodule_export]
    use super::search::audit;
    #[pymodule_export]
    use super::search::average;
    #[pymodule_export]
    use super::search::judge_lines;
    #[pymodule_export]
    use super::search::tune;
    #[pymodule_export]
    use super::train::train;
    #[pymodule_export]
    use super::usual_memory;
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

/// The bytes that kernel values may take if nobody says: a quarter of what the machine, or the container, has.
#[pyfunction]
fn usual_memory() -> u64 {
    widemargin::memory::usual_budget()
}

/// Every machine and its parameters, as JSON.
#[pyfunction]
fn machines() -> String {
    let machine = |machine: &&widemargin::machine::Machine| {
        json!({
            "name": machine.name(),
            "summary": format!("{}: {}", machine.formula(), machine.title()),
            "paper": machine.paper(),
            "many": machine.classes() == Classes::Many,
            "tol": machine.uses().tol,
            "max_iter": machine.uses().max_iter,
            "intercept": {
                "free": machine.intercept(Bias::Free),
                "feature": machine.intercept(Bias::Feature(1.0)),
            },
            "searched": machine.grid().iter().map(|axis| axis.name).collect::<Vec<_>>(),
            "parameters": machine.parameters().iter().map(parameter).collect::<Vec<_>>(),
        })
    };
    json!(MACHINES.iter().map(machine).collect::<Vec<_>>()).to_string()
}

fn parameter(parameter: &Parameter) -> serde_json::Value {
    json!({
        "name": parameter.name,
        "help": parameter.help,
        "domain": parameter.domain.describe(),
        "whole": parameter.domain == Domain::Count,
        "default": parameter.default.value(),
        "settled": matches!(parameter.default, Preset::Settled(_)).then(|| parameter.default.to_string()),
    })
}
