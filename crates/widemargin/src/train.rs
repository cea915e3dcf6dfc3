//! From a data set and options to a model: weights, scaling, the machine, the certificate.

use crate::control::Control;
use crate::data::{Dataset, Labels, Matrix, Scaling, ScalingKind};
use crate::kernel::Kernel;
use crate::machine::{Bias, Machine, Outcome, Parameters, SolverChoice, Training};
use crate::model::{Certificate, Decision, Model, Scorer};
use crate::solver::Settings;
use crate::{Error, Result};

/// The kernel as a user asks for it: `γ` may depend on the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gamma {
    /// `1 / (d · Var(X))`, scikit-learn's default; `1/d` if all values are equal.
    Scale,
    /// `1 / d`, LIBSVM's default.
    Auto,
    /// This number.
    Value(f64),
}

/// Weights of the classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassWeight {
    /// All 1.
    #[default]
    Equal,
    /// `m / (k · m_class)`: every class counts the same.
    Balanced,
    /// By label as written; classes not named count 1.
    ByLabel(Vec<(String, f64)>),
}

/// How to train one machine.
#[derive(Clone)]
pub struct TrainOptions {
    /// The machine.
    pub machine: &'static dyn Machine,
    /// Its checked parameters.
    pub parameters: Parameters,
    /// The kernel; its own `γ` is replaced by [`gamma`](Self::gamma).
    pub kernel: Kernel,
    /// The kernel's `γ`.
    pub gamma: Gamma,
    /// The intercept.
    pub bias: Bias,
    /// The scaling to fit and keep in the model.
    pub scaling: Option<ScalingKind>,
    /// Weights of the classes.
    pub class_weight: ClassWeight,
    /// Which solver.
    pub solver: SolverChoice,
    /// Tolerance, limits, memory, seed.
    pub settings: Settings,
}

/// Trains a machine on a data set. `weights` are the row weights, all 1 if `None`; rows of weight 0 are left out.
pub fn train(
    data: &Dataset,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    control: Control<'_>,
) -> Result<(Model, Outcome)> {
    todo!()
}
