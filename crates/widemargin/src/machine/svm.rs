//! Support vector machines: the hinge, its square, and ε-insensitive regression on the labels.

use super::convex::{self, nothing};
use super::{Domain, Fit, Machine, Parameter, Training};
use crate::Result;
use crate::loss::MarginLoss;

const C: Parameter = Parameter { name: "c", domain: Domain::Positive, default: Some("1"), help: "cost C of an error" };

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)`: the SVM, as LIBSVM, LIBLINEAR (`-s 3`) and scikit-learn have it.
pub struct Svm;

impl Machine for Svm {
    fn name(&self) -> &'static str {
        "svm"
    }
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, 1-γ): support vector machine"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[C]
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let c = training.parameters.number("c");
        super::ldm::fit(training, 0.0, 0.0, c)
    }
}

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)²`: LIBLINEAR's `-s 1/2`; ODM with `C2 = 0`, `D = 0`, `C1 = m C`.
pub struct SquaredSvm;

impl Machine for SquaredSvm {
    fn name(&self) -> &'static str {
        "l2svm"
    }
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, 1-γ)²: squared-hinge support vector machine"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[C]
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let c1 = training.parameters.number("c") * convex::total(training);
        super::odm::fit(training, c1, 0.0, 0.0)
    }
}

/// `min ½‖w‖² + C Σ max(0, |1 − γ_i| − ε)`: ε-insensitive regression on the labels ±1, whose sign is the prediction.
pub struct Svr;

impl Machine for Svr {
    fn name(&self) -> &'static str {
        "svr"
    }
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, |1-γ| - ε): support vector regression on the labels"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[
            C,
            Parameter {
                name: "epsilon",
                domain: Domain::NonNegative,
                default: Some("0.1"),
                help: "half-width ε of the band in which an error costs nothing",
            },
        ]
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let (c, epsilon) = (training.parameters.number("c"), training.parameters.number("epsilon"));
        convex::fit(training, MarginLoss::insensitive(c, epsilon), 0.0, nothing)
    }
}
