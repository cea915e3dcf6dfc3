//! What a user says, from Python's values to the library's options.

use crate::errors::Names;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use std::collections::HashMap;
use widemargin::Result;
use widemargin::calibration::ProbabilityForm;
use widemargin::data::{ScalingKind, Schema};
use widemargin::kernel::KernelKind;
use widemargin::machine::{self, Bias, Domain, Machine, Parameter, Parameters, Preset, SolverChoice, Value};
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};

/// A finite number of whatever type, else a word: what a parameter may be, the library says.
#[derive(Clone)]
pub struct Given(pub Value);

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let is_word = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBool>();
        let number = if is_word { None } else { object.extract::<f64>().ok().filter(|number| number.is_finite()) };
        number
            .map_or_else(|| Ok(Self(Value::Word(object.str()?.to_string()))), |number| Ok(Self(Value::Number(number))))
    }
}

/// What a user says.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Choices {
    machine: String,
    /// The library's name of each parameter and its value.
    parameters: Vec<(String, Given)>,
    /// What the user knows a parameter as, where that is another name.
    shown: HashMap<String, String>,
    /// `None`: the machine's own way.
    multiclass: Option<String>,
    kernel: String,
    gamma: Given,
    bias: Given,
    scale: Option<String>,
    /// `degree`, `coef0`, `tol`, `max_iter`: those that are given.
    numbers: Vec<(String, Given)>,
    /// The weight of each class; nothing: all 1.
    class_weight: Vec<(String, f64)>,
    /// The form of the probabilities to learn.
    probability: Option<String>,
    /// Names of the features, if the samples have any.
    columns: Option<Vec<String>>,
    /// What the labels are.
    label_kind: String,
    memory: u64,
    seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Whether to tell of progress.
    pub verbose: bool,
}

/// The numbers that every machine takes.
static NUMBERS: &[Parameter] = &[
    Parameter { name: "degree", domain: Domain::Count, default: Preset::Number(KernelKind::DEGREE as f64), help: "" },
    Parameter { name: "coef0", domain: Domain::Finite, default: Preset::Number(KernelKind::COEF0), help: "" },
    Parameter { name: "tol", domain: Domain::Positive, default: Preset::Number(1e-3), help: "" },
    Parameter { name: "max_iter", domain: Domain::Count, default: Preset::None, help: "" },
];

impl Choices {
    /// What a model is to know of the samples' features and labels.
    pub fn schema(&self, labels: &[String]) -> Result<Schema> {
        let mut schema =
            self.columns.as_ref().map_or_else(|| Schema::nameless(labels), |names| Schema::of_names(names, labels));
        schema.label.kind = self.label_kind.parse()?;
        Ok(schema)
    }

    /// The library's options.
    pub fn options(&self) -> Result<TrainOptions> {
        let machine: &'static Machine = machine::machine(&self.machine)?;
        let numbers = Parameters::check(NUMBERS, &values(&self.numbers))?;
        let kernel: KernelKind = self.kernel.parse()?;
        Ok(TrainOptions {
            approx: None,
            machine,
            parameters: machine::check_parameters(machine, &self.given())?,
            kernel: kernel.with(1.0, numbers.number("degree") as u32, numbers.number("coef0")),
            gamma: match &self.gamma.0 {
                Value::Number(gamma) => Gamma::Value(*gamma),
                Value::Word(word) => word.parse()?,
            },
            bias: match &self.bias.0 {
                Value::Number(feature) => Bias::Feature(*feature),
                Value::Word(word) => word.parse()?,
            },
            scaling: self.scale.as_deref().map(str::parse::<ScalingKind>).transpose()?,
            class_weight: match self.class_weight.as_slice() {
                [] => ClassWeight::Equal,
                pairs => ClassWeight::ByLabel(pairs.to_vec()),
            },
            multiclass: self.multiclass.as_ref().map(|word| word.parse()).transpose()?,
            solver: SolverChoice::Auto,
            settings: Settings {
                tol: numbers.number("tol"),
                max_iter: numbers.get("max_iter").map(|most| most as usize),
                memory: self.memory,
                seed: self.seed,
                left_out: self.probability.is_some(),
                ..Settings::default()
            },
        })
    }

    /// The form of the probabilities to learn, if any.
    pub fn probability(&self) -> Result<Option<ProbabilityForm>> {
        self.probability.as_ref().map(|word| word.parse()).transpose()
    }

    /// The parameters of the machine.
    pub fn given(&self) -> Vec<(String, Value)> {
        values(&self.parameters)
    }

    /// What the user knows parameters as.
    pub fn names(&self) -> Names {
        Names::new(self.shown.clone())
    }
}

fn values(given: &[(String, Given)]) -> Vec<(String, Value)> {
    given.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect()
}
