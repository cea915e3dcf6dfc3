//! The SVM with a Huberised hinge.

use super::{Axis, Domain, Form, Machine, Parameter, Parameters, Preset, Series, StatedLoss, Statement};
use crate::loss::MarginLoss;

/// `min ½‖w‖² + C Σ φ(γ_i)`, `φ(γ) = 0` for `γ > 1`, `(1 − γ)²/2δ` for `1 − δ < γ ≤ 1`, `1 − γ − δ/2` below: the hinge with its
/// corner rounded over a stretch `δ`, which makes the problem smooth.
pub struct HuberSvm;

impl Machine for HuberSvm {
    fn name(&self) -> &'static str {
        "huber-svm"
    }
    fn title(&self) -> &'static str {
        "Huberised support vector machine"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + C Σ φ(γ), φ = 0 for γ > 1, (1-γ)²/2δ for 1-δ < γ ≤ 1, 1-γ-δ/2 below"
    }
    fn paper(&self) -> &'static str {
        "L. Wang, J. Zhu, H. Zou, Hybrid huberized support vector machines for microarray classification, Bioinformatics 2008"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter { name: "c", domain: Domain::Positive, default: Preset::Number(1.0), help: "cost C of an error" },
            Parameter {
                name: "delta",
                domain: Domain::Positive,
                default: Preset::Number(1.0),
                help: "length δ of the rounded corner",
            },
        ]
    }
    fn grid(&self) -> &'static [Axis] {
        &[Axis {
            name: "c",
            coarse: Series::Powers { from: -3, to: 12, by: 3 },
            fine: Series::Powers { from: -6, to: 14, by: 1 },
            paper: Series::Powers { from: -5, to: 5, by: 1 },
            small_is_smooth: true,
        }]
    }
    fn form(&self, p: &Parameters, _total: f64) -> Option<Form> {
        Some(Form { loss: MarginLoss::huber(p.number("c"), p.number("delta")), variance: 0.0 })
    }
    fn statement(&self, p: &Parameters, _m: f64) -> Option<Statement> {
        Some(Statement::margins(StatedLoss::Huber { c: p.get("c")?, delta: p.get("delta")? }))
    }
}
