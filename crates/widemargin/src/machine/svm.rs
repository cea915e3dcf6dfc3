//! Support vector machines: the hinge, its square, and ε-insensitive regression on the labels.

use super::{
    Axis, Domain, Form, Machine, Parameter, Parameters, Preset, Series, StatedLoss, Statement, Training, convex,
};
use crate::Result;
use crate::loss::MarginLoss;
use crate::solver::Solved;

const C: Parameter =
    Parameter { name: "c", domain: Domain::Positive, default: Preset::Number(1.0), help: "cost C of an error" };

/// The margin papers try `{10, 50, 100}` for the SVM; the search takes a fair range.
const GRID: Axis = Axis {
    name: "c",
    coarse: Series::Powers { from: -3, to: 12, by: 3 },
    fine: Series::Powers { from: -6, to: 14, by: 1 },
    paper: Series::List(&[10.0, 50.0, 100.0]),
    small_is_smooth: true,
};

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)`: the SVM, as LIBSVM, LIBLINEAR (`-s 3`) and scikit-learn have it.
pub struct Svm;

impl Machine for Svm {
    fn name(&self) -> &'static str {
        "svm"
    }
    fn title(&self) -> &'static str {
        "support vector machine"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, 1-γ)"
    }
    fn paper(&self) -> &'static str {
        "C. Cortes, V. Vapnik, Support-Vector Networks, Machine Learning 1995"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[C]
    }
    fn grid(&self) -> &'static [Axis] {
        &[GRID]
    }
    fn form(&self, p: &Parameters, total: f64) -> Option<Form> {
        Some(super::ldm::form([0.0, 0.0, p.number("c")], total))
    }
    fn bound(&self, training: &Training<'_>, y: &[f64], solved: &Solved, margins: &[f64]) -> Result<Option<f64>> {
        super::ldm::bound(training, y, solved, margins, [0.0, 0.0, training.parameters.number("c")])
    }
    fn statement(&self, p: &Parameters, _m: f64) -> Option<Statement> {
        Some(Statement::margins(StatedLoss::Hinge { c: p.get("c")?, mean: 0.0 }))
    }
}

/// `min ½‖w‖² + C Σ max(0, 1 − γ_i)²`: LIBLINEAR's `-s 1/2`; ODM with `C2 = 0`, `D = 0`, `C1 = m C`.
pub struct SquaredSvm;

impl Machine for SquaredSvm {
    fn name(&self) -> &'static str {
        "l2svm"
    }
    fn title(&self) -> &'static str {
        "squared-hinge support vector machine"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, 1-γ)²"
    }
    fn paper(&self) -> &'static str {
        "C. Cortes, V. Vapnik, Support-Vector Networks, Machine Learning 1995 (with squared slacks)"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[C]
    }
    fn grid(&self) -> &'static [Axis] {
        &[GRID]
    }
    fn form(&self, p: &Parameters, total: f64) -> Option<Form> {
        Some(super::odm::form([p.number("c") * total, 0.0, 0.0], total))
    }
    fn bound(&self, training: &Training<'_>, _: &[f64], solved: &Solved, _: &[f64]) -> Result<Option<f64>> {
        let c1 = training.parameters.number("c") * convex::total(training);
        Ok(super::odm::bound(training, solved, [c1, 0.0, 0.0]))
    }
    fn statement(&self, p: &Parameters, _m: f64) -> Option<Statement> {
        Some(Statement::margins(StatedLoss::Band { c1: p.get("c")?, c2: 0.0, d: 0.0 }))
    }
}

/// `min ½‖w‖² + C Σ max(0, |1 − γ_i| − ε)`: ε-insensitive regression on the labels ±1, whose sign is the prediction.
pub struct Svr;

impl Machine for Svr {
    fn name(&self) -> &'static str {
        "svr"
    }
    fn title(&self) -> &'static str {
        "support vector regression on the labels"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + C Σ max(0, |1-γ| - ε)"
    }
    fn paper(&self) -> &'static str {
        "H. Drucker, C. Burges, L. Kaufman, A. Smola, V. Vapnik, Support Vector Regression Machines, NIPS \
         1996"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[
            C,
            Parameter {
                name: "epsilon",
                domain: Domain::NonNegative,
                default: Preset::Number(0.1),
                help: "half-width ε of the band in which an error costs nothing",
            },
        ]
    }
    fn grid(&self) -> &'static [Axis] {
        &[
            GRID,
            Axis {
                name: "epsilon",
                coarse: Series::List(&[0.1]),
                fine: Series::List(&[0.0, 0.05, 0.1, 0.2, 0.4]),
                paper: Series::List(&[0.0, 0.05, 0.1, 0.2, 0.4]),
                small_is_smooth: false,
            },
        ]
    }
    fn form(&self, p: &Parameters, _total: f64) -> Option<Form> {
        Some(Form { loss: MarginLoss::insensitive(p.number("c"), p.number("epsilon")), variance: 0.0 })
    }
    fn statement(&self, p: &Parameters, _m: f64) -> Option<Statement> {
        Some(Statement::margins(StatedLoss::Insensitive { c: p.get("c")?, epsilon: p.get("epsilon")? }))
    }
}
