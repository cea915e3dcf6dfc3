//! What a user says, from texts to the library's options.

use pyo3::prelude::*;
use std::collections::HashMap;
use widemargin::data::ScalingKind;
use widemargin::kernel::Kernel;
use widemargin::machine::{self, Bias, Domain, Machine, Parameter, Parameters, SolverChoice};
use widemargin::multiclass::Multiclass;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};
use widemargin::{Error, Result};

/// What a user says, as text: checked here, so that every wrong value is told in the same words.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choices {
    machine: String,
    /// The library's name of each parameter and its value.
    pub parameters: Vec<(String, String)>,
    /// What the user knows a parameter as, where that is another name.
    shown: HashMap<String, String>,
    multiclass: String,
    kernel: String,
    gamma: String,
    bias: String,
    scale: Option<String>,
    /// `degree`, `coef0`, `tol`, `max_iter`: those that are given.
    numbers: Vec<(String, String)>,
    /// Whether to learn probabilities.
    pub probability: bool,
    memory: u64,
    seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Whether to tell of progress.
    pub verbose: bool,
}

/// A number every machine has a use for.
const fn number(name: &'static str, domain: Domain, default: &'static str) -> Parameter {
    Parameter { name, domain, default: Some(default), help: "" }
}

impl Choices {
    /// The library's options.
    pub fn options(&self) -> Result<TrainOptions> {
        let machine: &'static dyn Machine = machine::machine(&self.machine)?;
        let common = &[
            number("degree", Domain::Count, "3"),
            number("tol", Domain::Positive, "1e-3"),
            Parameter { name: "max_iter", domain: Domain::Count, default: None, help: "" },
        ];
        let (coef0, others): (Vec<_>, Vec<_>) = self.numbers.iter().cloned().partition(|(name, _)| name == "coef0");
        let numbers = Parameters::check(common, &others)?;
        let coef0 = coef0.first().map_or(Ok(0.0), |(_, text)| finite(text))?;
        Ok(TrainOptions {
            approx: None,
            machine,
            parameters: machine::check_parameters(machine, &self.parameters)?,
            kernel: kernel(&self.kernel, numbers.number("degree") as u32, coef0)?,
            gamma: gamma(&self.gamma)?,
            bias: bias(&self.bias)?,
            scaling: self.scale.as_deref().map(scaling).transpose()?,
            class_weight: ClassWeight::Equal,
            multiclass: multiclass(&self.multiclass),
            solver: SolverChoice::Auto,
            settings: Settings {
                tol: numbers.number("tol"),
                max_iter: numbers.get("max_iter").map(|most| most as usize),
                memory: self.memory,
                seed: self.seed,
                asked: None,
            },
        })
    }

    /// The error with the parameter named as the user knows it.
    pub fn as_shown(&self, error: Error) -> Error {
        match error {
            Error::Parameter { name, value, expected } => {
                let name = self.shown.get(&name).cloned().unwrap_or(name);
                Error::Parameter { name, value, expected }
            }
            other => other,
        }
    }
}

/// A parameter outside its domain.
pub fn wrong(name: &str, value: &str, expected: &str) -> Error {
    Error::Parameter { name: name.into(), value: value.into(), expected: expected.into() }
}

/// A number inside a domain.
fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
}

fn finite(text: &str) -> Result<f64> {
    let number = text.parse().ok().filter(|value: &f64| value.is_finite());
    number.ok_or_else(|| wrong("coef0", text, "a number"))
}

fn kernel(name: &str, degree: u32, coef0: f64) -> Result<Kernel> {
    let gamma = 1.0;
    let kernels = [
        Kernel::Linear,
        Kernel::Rbf { gamma },
        Kernel::Poly { gamma, degree, coef0 },
        Kernel::Sigmoid { gamma, coef0 },
        Kernel::Laplacian { gamma },
    ];
    let names = kernels.map(Kernel::name).join(", ");
    let found = kernels.into_iter().find(|kernel| kernel.name() == name);
    found.ok_or_else(|| wrong("kernel", name, &format!("one of {names}")))
}

/// The wrapper; whatever is none leaves it to the machine.
fn multiclass(name: &str) -> Option<Multiclass> {
    match name {
        "ova" => Some(Multiclass::Ova),
        "ovo" => Some(Multiclass::Ovo),
        "ecoc" => Some(Multiclass::Ecoc),
        _ => None,
    }
}

fn scaling(name: &str) -> Result<ScalingKind> {
    match name {
        "minmax" => Ok(ScalingKind::MinMax),
        "maxabs" => Ok(ScalingKind::MaxAbs),
        "standard" => Ok(ScalingKind::Standard),
        other => Err(wrong("scale", other, "None, minmax, maxabs or standard")),
    }
}

fn gamma(text: &str) -> Result<Gamma> {
    match text {
        "scale" => Ok(Gamma::Scale),
        "auto" => Ok(Gamma::Auto),
        number => positive(number).map(Gamma::Value).ok_or_else(|| wrong("gamma", text, "scale, auto or a number > 0")),
    }
}

fn bias(text: &str) -> Result<Bias> {
    match text {
        "free" => Ok(Bias::Free),
        "none" => Ok(Bias::None),
        number => {
            positive(number).map(Bias::Feature).ok_or_else(|| wrong("intercept_scaling", text, "None or a number > 0"))
        }
    }
}
