//! The optimal margin distribution machine (Zhang & Zhou), and least squares, which is ODM without a band.

use super::{
    Axis, Bias, Domain, Form, Machine, Parameter, Parameters, Preset, Series, StatedLoss, Statement, Training, convex,
};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::ordered_sum;
use crate::loss::MarginLoss;
use crate::solver::Solved;
use crate::{Advice, Error, Result, with_rows};

/// Defaults of `C1`, `C2` and `D`: near the best single choice over twenty small sets (`docs/defaults.md`).
const C1: f64 = 256.0;
const C2: f64 = 32.0;
const D: f64 = 0.4;

/// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)` (ODM, Eq. 7).
///
/// The later notation `λ, μ, θ` means `C1 = λ/(1−θ)²`, `C2 = λμ/(1−θ)²`, `D = θ`.
pub struct Odm;

impl Machine for Odm {
    fn name(&self) -> &'static str {
        "odm"
    }
    fn title(&self) -> &'static str {
        "optimal margin distribution machine"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + (1/m) Σ (C1 max(0, 1-D-γ)² + C2 max(0, γ-1-D)²)"
    }
    fn paper(&self) -> &'static str {
        "T. Zhang, Z.-H. Zhou, Optimal Margin Distribution Machine, IEEE TKDE 2020 (arXiv 1604.03348)"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "c1",
                domain: Domain::Positive,
                default: Preset::Number(C1),
                help: "cost C1 of a margin below 1-D",
            },
            Parameter {
                name: "c2",
                domain: Domain::NonNegative,
                default: Preset::Number(C2),
                help: "cost C2 of a margin above 1+D; 0 leaves large margins alone",
            },
            Parameter {
                name: "d",
                domain: Domain::BelowOne,
                default: Preset::Number(D),
                help: "half-width D of the band around 1 in which a margin costs nothing",
            },
            Parameter {
                name: "lambda",
                domain: Domain::Positive,
                default: Preset::None,
                help: "λ: C1 = λ/(1-θ)²; instead of c1, c2, d",
            },
            Parameter { name: "mu", domain: Domain::Unit, default: Preset::None, help: "μ: C2 = μ C1" },
            Parameter { name: "theta", domain: Domain::BelowOne, default: Preset::None, help: "θ: D = θ" },
        ]
    }
    fn resolve(&self, parameters: &mut Parameters) -> Result<()> {
        let later = ["lambda", "mu", "theta"];
        let given = |parameters: &Parameters, names: [&str; 3]| names.iter().any(|n| parameters.get(n).is_some());
        if given(parameters, later) {
            if given(parameters, ["c1", "c2", "d"]) {
                let reason = "ODM's parameters are either c1, c2, d or lambda, mu, theta, not both";
                return Err(Error::conflict(reason, Advice::NONE));
            }
            let value = |name: &str, default: f64| parameters.get(name).unwrap_or(default);
            let (mu, theta) = (value("mu", C2 / C1), value("theta", D));
            let c1 = parameters.get("lambda").map_or(C1, |lambda| lambda / (1.0 - theta).powi(2));
            later.iter().for_each(|name| parameters.remove(name));
            parameters.set("c1", c1);
            parameters.set("c2", mu * c1);
            parameters.set("d", theta);
        }
        Ok(())
    }
    fn grid(&self) -> &'static [Axis] {
        &[
            Axis {
                name: "c1",
                coarse: Series::Powers { from: 1, to: 10, by: 3 },
                fine: Series::Powers { from: 0, to: 10, by: 1 },
                paper: Series::Powers { from: 0, to: 10, by: 1 },
                small_is_smooth: true,
            },
            Axis {
                name: "c2",
                coarse: Series::List(&[4.0, 128.0]),
                fine: Series::Powers { from: 0, to: 10, by: 1 },
                paper: Series::Powers { from: 0, to: 10, by: 1 },
                small_is_smooth: true,
            },
            Axis {
                name: "d",
                coarse: Series::List(&[0.2]),
                fine: Series::Steps { from: 0.0, to: 0.5, step: 0.1 },
                paper: Series::Steps { from: 0.0, to: 0.5, step: 0.1 },
                small_is_smooth: true,
            },
        ]
    }
    fn weighs_means(&self) -> &'static [&'static str] {
        &["c1", "c2"]
    }
    fn form(&self, parameters: &Parameters, total: f64) -> Option<Form> {
        Some(form(["c1", "c2", "d"].map(|name| parameters.number(name)), total))
    }
    fn bound(&self, training: &Training<'_>, _: &[f64], solved: &Solved, _: &[f64]) -> Result<Option<f64>> {
        Ok(bound(training, solved, ["c1", "c2", "d"].map(|name| training.parameters.number(name))))
    }
    fn statement(&self, p: &Parameters, m: f64) -> Option<Statement> {
        Some(Statement::margins(StatedLoss::Band { c1: p.get("c1")? / m, c2: p.get("c2")? / m, d: p.get("d")? }))
    }
    fn averaged_band(&self) -> Option<(f64, f64)> {
        Some((0.25, 0.5))
    }
}

/// `min ½‖w‖² + (C/m) Σ (1 − γ_i)²`: the least-squares SVM; with a free intercept its usual linear system.
pub struct Lssvm;

impl Machine for Lssvm {
    fn name(&self) -> &'static str {
        "lssvm"
    }
    fn title(&self) -> &'static str {
        "least-squares support vector machine"
    }
    fn formula(&self) -> &'static str {
        "min ½‖w‖² + (C/m) Σ (1-γ)²"
    }
    fn paper(&self) -> &'static str {
        "J. Suykens, J. Vandewalle, Least Squares Support Vector Machine Classifiers, Neural Processing \
         Letters 1999"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter { name: "c", domain: Domain::Positive, default: Preset::Number(64.0), help: "cost C of an error" }]
    }
    fn grid(&self) -> &'static [Axis] {
        &[Axis {
            name: "c",
            coarse: Series::Powers { from: -6, to: 14, by: 4 },
            fine: Series::Powers { from: -8, to: 16, by: 1 },
            paper: Series::Powers { from: -10, to: 10, by: 2 },
            small_is_smooth: true,
        }]
    }
    fn weighs_means(&self) -> &'static [&'static str] {
        &["c"]
    }
    fn form(&self, parameters: &Parameters, total: f64) -> Option<Form> {
        let c = parameters.number("c");
        Some(form([c, c, 0.0], total))
    }
    fn bound(&self, training: &Training<'_>, _: &[f64], solved: &Solved, _: &[f64]) -> Result<Option<f64>> {
        let c = training.parameters.number("c");
        Ok(bound(training, solved, [c, c, 0.0]))
    }
    fn statement(&self, p: &Parameters, m: f64) -> Option<Statement> {
        let c = p.get("c")? / m;
        Some(Statement::margins(StatedLoss::Band { c1: c, c2: c, d: 0.0 }))
    }
    fn averaged_band(&self) -> Option<(f64, f64)> {
        Some((1.0, 0.0))
    }
}

/// ODM's problem for costs and a band `[C1, C2, D]`.
pub(super) fn form([c1, c2, d]: [f64; 3], total: f64) -> Form {
    Form { loss: MarginLoss::band(c1, c2, d).times(1.0 / total), variance: 0.0 }
}

/// `(Σ_{ζ>0} ζ_i (q_i + m/2C1) + Σ_{β>0} β_i (q_i + m/2C2) + D (#{ζ>0} − #{β>0})) / m` (ODM, Theorem 3, with the dual's
/// `m/2C`): no more rows can be wrong when each is left out in turn. A row of weight `s` is left out with all of it, and counts
/// `s` times: its term is `s (a (q + m/(2 C s)) ± D)`. The theorem needs a regularised intercept or none.
pub(super) fn bound(training: &Training<'_>, solved: &Solved, [c1, c2, d]: [f64; 3]) -> Option<f64> {
    if training.bias == Bias::Free {
        return None;
    }
    let total = convex::total(training);
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
