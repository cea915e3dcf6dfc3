//! Multi-class support vector machines in one problem: Crammer & Singer (2001), Weston & Watkins (1999).

use super::mcodm::{certified, dual_point, start};
use super::{
    Axis, Classes, Domain, Fit, Machine, Outcome, Parameter, Series, StatedForm, StatedLoss, StatedRivals, Statement,
    Training, Uses,
};
use crate::Result;
use crate::loss::{CrammerSinger, RivalLoss, WestonWatkins};
use crate::problem::StopReason;
use crate::solver::many::ManyDescent;

/// `loss = cs`: `min ½ Σ_l ‖w_l‖² + C Σ_i max(0, 1 − w_y·φ(x_i) + max_{l≠y} w_l·φ(x_i))`, LIBLINEAR's `-s 4`;
/// `loss = ww`: `min ½ Σ_l ‖w_l‖² + C Σ_i Σ_{l≠y} max(0, 1 − (w_y − w_l)·φ(x_i))`.
///
/// The model has one score column a class, for two classes as well.
pub static MC_SVM: Machine = Machine {
    name: "mcsvm",
    title: "multi-class support vector machine",
    formula: "min ½Σ‖w_l‖² + C Σ max(0, 1 − γ)",
    paper: "K. Crammer, Y. Singer, On the Algorithmic Implementation of Multiclass Kernel-Based Vector Machines, \
         JMLR 2001; loss ww: J. Weston, C. Watkins, Support Vector Machines for Multi-Class Pattern \
         Recognition, ESANN 1999",
    parameters: &[
        Parameter::number("c", Domain::Positive, 1.0, "C: weight of the loss"),
        Parameter::choice(
            "loss",
            &["cs", "ww"],
            "cs",
            "cs: the best rival counts (Crammer-Singer); ww: every rival counts (Weston-Watkins)",
        ),
    ],
    classes: Classes::Many,
    grid: &[Axis::new("c", Series::powers(-4, 8, 4), Series::powers(-8, 14, 2), Series::powers(0, 20, 2))],
    uses: Uses::DESCENT,
    fit,
    statement: |p, _| {
        let c = p.get("c")?;
        let loss =
            if p.is("loss", "ww") { StatedRivals::WestonWatkins { c } } else { StatedRivals::CrammerSinger { c } };
        let two = StatedForm { loss: StatedLoss::Hinge { c, mean: 0.0 }, variance: 0.0, ridge: 0.5 };
        Some(Statement::Rivals { loss, two, frozen: false })
    },
    ..Machine::PLAIN
};

fn fit(_: &Machine, training: &Training<'_>) -> Result<Fit> {
    let c = training.parameters.number("c");
    let cost: Vec<f64> = training.weights.iter().map(|s| s * c).collect();
    match training.parameters.word("loss") {
        "ww" => solve(training, start(training, WestonWatkins { cost })?, "weston-watkins"),
        _ => solve(training, start(training, CrammerSinger { cost })?, "crammer-singer"),
    }
}

fn solve<L: RivalLoss>(training: &Training<'_>, mut descent: ManyDescent<'_, L>, name: &str) -> Result<Fit> {
    let (_, stop) = descent.solve(training.settings.tol)?;
    let expansion = descent.expansion();
    let found = certified(training, descent.loss(), &expansion, descent.duals())?;
    // Where rounding alone may have moved the objective further than that, more passes do not help.
    let hidden = found.noise > training.settings.asked() * found.certificate.primal.abs();
    let stop = if hidden { StopReason::Precision } else { stop };
    let outcome = Outcome {
        solver: format!("{} ({name})", descent.method()),
        support: descent.support(),
        dual: dual_point(training, found.v),
        ..Outcome::plain(String::new(), stop, descent.passes(), found.margins, found.norm2.sqrt())
    }
    .certified(Some(found.certificate));
    Ok(Fit { functions: expansion, outcome })
}
