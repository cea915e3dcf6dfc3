//! The SVM with a Huberised hinge.

use super::{Axis, Domain, Form, Machine, Parameter, Series, StatedLoss, Statement};
use crate::loss::MarginLoss;

/// `min ½‖w‖² + C Σ φ(γ_i)`, `φ(γ) = 0` for `γ > 1`, `(1 − γ)²/2δ` for `1 − δ < γ ≤ 1`, `1 − γ − δ/2` below: the hinge with its
/// corner rounded over a stretch `δ`, which makes the problem smooth.
pub static HUBER_SVM: Machine = Machine {
    name: "huber-svm",
    title: "Huberised support vector machine",
    formula: "min ½‖w‖² + C Σ φ(γ), φ = 0 for γ > 1, (1-γ)²/2δ for 1-δ < γ ≤ 1, 1-γ-δ/2 below",
    paper: "L. Wang, J. Zhu, H. Zou, Hybrid huberized support vector machines for microarray classification, Bioinformatics 2008",
    parameters: &[
        Parameter::number("c", Domain::Positive, 1.0, "cost C of an error"),
        Parameter::number("delta", Domain::Positive, 1.0, "length δ of the rounded corner"),
    ],
    grid: &[Axis::new("c", Series::powers(-3, 12, 3), Series::powers(-6, 14, 1), Series::powers(-5, 5, 1))],
    form: |p, _| Some(Form { loss: MarginLoss::huber(p.number("c"), p.number("delta")), variance: 0.0, bound: None }),
    statement: |p, _| Some(Statement::margins(StatedLoss::Huber { c: p.get("c")?, delta: p.get("delta")? })),
    ..Machine::PLAIN
};
