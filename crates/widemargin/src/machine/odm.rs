//! The optimal margin distribution machine (Zhang & Zhou), and least squares, which is ODM without a band.

use super::{
    Axis, Bias, Domain, Form, Machine, Parameter, Parameters, Series, StatedLoss, Statement, Theorem, Training,
};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::ordered_sum;
use crate::loss::MarginLoss;
use crate::solver::Solved;
use crate::{Advice, Error, Result, with_rows};

/// Defaults of `C1` for few rows, `C2/C1` and `D`: near the best single choice over twenty small sets. Of more than 256 rows each shall
/// count as much as one of 256 does, or the regulariser, which they share, would drown them (`docs/defaults.md`).
const C1: f64 = 256.0;
const RATIO: f64 = 0.125;
const D: f64 = 0.4;

/// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)` (ODM, Eq. 7).
///
/// The later notation `λ, μ, θ` means `C1 = λ/(1−θ)²`, `C2 = λμ/(1−θ)²`, `D = θ`.
pub static ODM: Machine = Machine {
    name: "odm",
    title: "optimal margin distribution machine",
    formula: "min ½‖w‖² + (1/m) Σ (C1 max(0, 1-D-γ)² + C2 max(0, γ-1-D)²)",
    paper: "T. Zhang, Z.-H. Zhou, Optimal Margin Distribution Machine, IEEE TKDE 2020 (arXiv 1604.03348)",
    parameters: &[
        Parameter::settled("c1", Domain::Positive, "max(256, m)", "cost C1 of a margin below 1-D"),
        Parameter::settled(
            "c2",
            Domain::NonNegative,
            "C1/8",
            "cost C2 of a margin above 1+D; 0 leaves large margins alone",
        ),
        Parameter::number(
            "d",
            Domain::BelowOne,
            D,
            "half-width D of the band around 1 in which a margin costs nothing",
        ),
        Parameter::alternative("lambda", Domain::Positive, "λ: C1 = λ/(1-θ)²; instead of c1, c2, d"),
        Parameter::alternative("mu", Domain::Unit, "μ: C2 = μ C1"),
        Parameter::alternative("theta", Domain::BelowOne, "θ: D = θ"),
    ],
    grid: &[
        Axis::new("c1", Series::powers(1, 10, 3), Series::powers(0, 10, 1), Series::powers(0, 10, 1)).per_row(16.0),
        Axis::new("c2", Series::List(&[4.0, 128.0]), Series::powers(0, 10, 1), Series::powers(0, 10, 1)).per_row(2.0),
        Axis::new("d", Series::List(&[0.2]), Series::steps(0.0, 0.5, 0.1), Series::steps(0.0, 0.5, 0.1)),
    ],
    weighs_means: &["c1", "c2"],
    averaged_band: Some((0.25, 0.5)),
    resolve,
    settle,
    form: |parameters, total| Some(form(["c1", "c2", "d"].map(|name| parameters.number(name)), total)),
    statement: |p, m| {
        Some(Statement::margins(StatedLoss::Band { c1: p.get("c1")? / m, c2: p.get("c2")? / m, d: p.get("d")? }))
    },
    ..Machine::PLAIN
};

/// The later notation in terms of the first, as far as it goes without the rows: a `μ` waits for its `C1`.
fn resolve(parameters: &mut Parameters) -> Result<()> {
    let given = |parameters: &Parameters, names: [&str; 3]| names.iter().any(|n| parameters.get(n).is_some());
    if !given(parameters, ["lambda", "mu", "theta"]) {
        return Ok(());
    }
    if given(parameters, ["c1", "c2", "d"]) {
        let reason = "ODM's parameters are either c1, c2, d or lambda, mu, theta, not both";
        return Err(Error::conflict(reason, Advice::NONE));
    }
    let theta = parameters.get("theta").unwrap_or(D);
    if let Some(lambda) = parameters.get("lambda") {
        parameters.set("c1", lambda / (1.0 - theta).powi(2));
    }
    parameters.set("d", theta);
    ["lambda", "theta"].iter().for_each(|name| parameters.remove(name));
    Ok(())
}

/// `C1` from the rows, `C2` from `C1`.
fn settle(parameters: &mut Parameters, total: f64) {
    parameters.settle("c1", C1.max(total));
    let ratio = parameters.get("mu").unwrap_or(RATIO);
    parameters.settle("c2", ratio * parameters.number("c1"));
    parameters.remove("mu");
}

/// `min ½‖w‖² + (C/m) Σ (1 − γ_i)²`: the least-squares SVM; with a free intercept its usual linear system.
pub static LSSVM: Machine = Machine {
    name: "lssvm",
    title: "least-squares support vector machine",
    formula: "min ½‖w‖² + (C/m) Σ (1-γ)²",
    paper: "J. Suykens, J. Vandewalle, Least Squares Support Vector Machine Classifiers, Neural Processing Letters 1999",
    parameters: &[Parameter::settled("c", Domain::Positive, "max(64, m/4)", "cost C of an error")],
    grid: &[
        Axis::new("c", Series::powers(-6, 14, 4), Series::powers(-8, 16, 1), Series::powers(-10, 10, 2)).per_row(16.0)
    ],
    weighs_means: &["c"],
    averaged_band: Some((1.0, 0.0)),
    settle: |parameters, total| parameters.settle("c", (0.25 * total).max(64.0)),
    form: |parameters, total| {
        let c = parameters.number("c");
        Some(form([c, c, 0.0], total))
    },
    statement: |p, m| {
        let c = p.get("c")? / m;
        Some(Statement::margins(StatedLoss::Band { c1: c, c2: c, d: 0.0 }))
    },
    ..Machine::PLAIN
};

/// ODM's problem for costs and a band `[C1, C2, D]`.
pub(super) fn form([c1, c2, d]: [f64; 3], total: f64) -> Form {
    let bound = Some(Theorem::Band([c1, c2, d]));
    Form { loss: MarginLoss::band(c1, c2, d).times(1.0 / total), variance: 0.0, bound }
}

/// `(Σ_{ζ>0} ζ_i (q_i + m/2C1) + Σ_{β>0} β_i (q_i + m/2C2) + D (#{ζ>0} − #{β>0})) / m` (ODM, Theorem 3, with the dual's
/// `m/2C`): no more rows can be wrong when each is left out in turn. A row of weight `s` is left out with all of it, and counts
/// `s` times: its term is `s (a (q + m/(2 C s)) ± D)`. The theorem needs a regularised intercept or none.
pub(super) fn bound(training: &Training<'_>, solved: &Solved, [c1, c2, d]: [f64; 3]) -> Option<f64> {
    if training.bias == Bias::Free {
        return None;
    }
    let total = training.total();
    // Rounding leaves specks of a on rows inside the band; they are no support.
    let speck = 1e-12 * c1 / total;
    let row = |i: usize, q: &dyn Fn(usize) -> f64| {
        let (a, s) = (solved.a[i], training.weights[i]);
        match a {
            a if a > speck => a * (s * q(i) + total / (2.0 * c1)) + d * s,
            a if a < -speck && c2 > 0.0 => -a * (s * q(i) + total / (2.0 * c2)) - d * s,
            _ => 0.0,
        }
    };
    let (m, offset) = (solved.a.len(), training.bias.offset());
    let sum = if let (Kernel::Linear, Some(norms2)) = (training.kernel(), &solved.norms2) {
        ordered_sum(m, |i| row(i, &|i| norms2[i]))
    } else if training.kernel() == Kernel::Linear {
        with_rows!(training.rows(), x => ordered_sum(m, |i| row(i, &|i| x.norm2(i) + offset)))
    } else {
        let kernel = KernelRows::new(training.kernel(), training.rows(), offset);
        ordered_sum(m, |i| row(i, &|i| kernel.diagonal(i)))
    };
    Some(sum / total)
}
