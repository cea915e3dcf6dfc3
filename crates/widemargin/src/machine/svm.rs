//! Support vector machines: the hinge, its square, and ε-insensitive regression on the labels.

use super::{Axis, Domain, Form, Machine, Parameter, Series, StatedLoss, Statement};
use crate::loss::MarginLoss;

const C: Parameter = Parameter::number("c", Domain::Positive, 1.0, "cost C of an error");

/// The margin papers try `{10, 50, 100}` for the SVM; the search takes a fair range.
const GRID: Axis =
    Axis::new("c", Series::powers(-3, 12, 3), Series::powers(-6, 14, 1), Series::List(&[10.0, 50.0, 100.0]));

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)`: the SVM, as LIBSVM, LIBLINEAR (`-s 3`) and scikit-learn have it.
pub static SVM: Machine = Machine {
    name: "svm",
    title: "support vector machine",
    formula: "min ½‖w‖² + C Σ max(0, 1-γ)",
    paper: "C. Cortes, V. Vapnik, Support-Vector Networks, Machine Learning 1995",
    parameters: &[C],
    grid: &[GRID],
    form: |p, total| Some(super::ldm::form([0.0, 0.0, p.number("c")], total)),
    statement: |p, _| Some(Statement::margins(StatedLoss::Hinge { c: p.get("c")?, mean: 0.0 })),
    ..Machine::PLAIN
};

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)²`: LIBLINEAR's `-s 1/2`; ODM with `C2 = 0`, `D = 0`, `C1 = m C`.
pub static SQUARED_SVM: Machine = Machine {
    name: "l2svm",
    title: "squared-hinge support vector machine",
    formula: "min ½‖w‖² + C Σ max(0, 1-γ)²",
    paper: "C. Cortes, V. Vapnik, Support-Vector Networks, Machine Learning 1995 (with squared slacks)",
    parameters: &[C],
    grid: &[GRID],
    averaged_band: Some((0.0, 0.0)),
    form: |p, total| Some(super::odm::form([p.number("c") * total, 0.0, 0.0], total)),
    statement: |p, _| Some(Statement::margins(StatedLoss::Band { c1: p.get("c")?, c2: 0.0, d: 0.0 })),
    ..Machine::PLAIN
};

/// `min ½‖w‖² + C Σ max(0, |1 − γ_i| − ε)`: ε-insensitive regression on the labels ±1, whose sign is the prediction.
pub static SVR: Machine = Machine {
    name: "svr",
    title: "support vector regression on the labels",
    formula: "min ½‖w‖² + C Σ max(0, |1-γ| - ε)",
    paper: "H. Drucker, C. Burges, L. Kaufman, A. Smola, V. Vapnik, Support Vector Regression Machines, NIPS 1996",
    parameters: &[
        C,
        Parameter::number(
            "epsilon",
            Domain::NonNegative,
            0.1,
            "half-width ε of the band in which an error costs nothing",
        ),
    ],
    grid: &[
        GRID,
        Axis::new(
            "epsilon",
            Series::List(&[0.1]),
            Series::List(&[0.0, 0.05, 0.1, 0.2, 0.4]),
            Series::List(&[0.0, 0.05, 0.1, 0.2, 0.4]),
        )
        .rougher(),
    ],
    form: |p, _| {
        Some(Form { loss: MarginLoss::insensitive(p.number("c"), p.number("epsilon")), variance: 0.0, bound: None })
    },
    statement: |p, _| Some(Statement::margins(StatedLoss::Insensitive { c: p.get("c")?, epsilon: p.get("epsilon")? })),
    ..Machine::PLAIN
};
