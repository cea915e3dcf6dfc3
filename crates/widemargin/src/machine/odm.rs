//! The optimal margin distribution machine (Zhang & Zhou), and least squares, which is ODM without a band.

use super::{Axis, Bias, Domain, Form, Machine, Parameter, Parameters, Training, convex};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::ordered_sum;
use crate::loss::MarginLoss;
use crate::solver::Solved;
use crate::{Error, Result, with_rows};

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
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + (1/m) Σ (C1 max(0, 1-D-γ)² + C2 max(0, γ-1-D)²): optimal margin distribution machine"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[
            Parameter {
                name: "c1",
                domain: Domain::Positive,
                default: None,
                help: "cost C1 of a margin below 1-D (default 256)",
            },
            Parameter {
                name: "c2",
                domain: Domain::NonNegative,
                default: None,
                help: "cost C2 of a margin above 1+D (default 32; 0 leaves large margins alone)",
            },
            Parameter {
                name: "d",
                domain: Domain::BelowOne,
                default: None,
                help: "half-width D of the band around 1 in which a margin costs nothing (default 0.4)",
            },
            Parameter {
                name: "lambda",
                domain: Domain::Positive,
                default: None,
                help: "λ: C1 = λ/(1-θ)²; instead of --c1 --c2 --d",
            },
            Parameter { name: "mu", domain: Domain::Unit, default: None, help: "μ: C2 = μ C1" },
            Parameter { name: "theta", domain: Domain::BelowOne, default: None, help: "θ: D = θ" },
        ]
    }
    fn resolve(&self, parameters: &mut Parameters) -> Result<()> {
        let later = ["lambda", "mu", "theta"];
        let given = |parameters: &Parameters, names: [&str; 3]| names.iter().any(|n| parameters.get(n).is_some());
        if given(parameters, later) {
            if given(parameters, ["c1", "c2", "d"]) {
                return Err(Error::Usage(
                    "give ODM's parameters either as c1, c2, d or as lambda, mu, theta, not both".into(),
                ));
            }
            let value = |name: &str, default: f64| parameters.get(name).unwrap_or(default);
            let (mu, theta) = (value("mu", C2 / C1), value("theta", D));
            let c1 = parameters.get("lambda").map_or(C1, |lambda| lambda / (1.0 - theta).powi(2));
            later.iter().for_each(|name| parameters.remove(name));
            parameters.set("c1", c1);
            parameters.set("c2", mu * c1);
            parameters.set("d", theta);
        }
        for (name, default) in [("c1", C1), ("c2", C2), ("d", D)] {
            if parameters.get(name).is_none() {
                parameters.set(name, default);
            }
        }
        Ok(())
    }
    fn grid(&self) -> &'static [Axis] {
        &[
            Axis { name: "c1", coarse: "2^1:2^10:*8", fine: "2^0:2^10", paper: "2^0:2^10", small_is_smooth: true },
            Axis { name: "c2", coarse: "2^2;2^7", fine: "2^0:2^10", paper: "2^0:2^10", small_is_smooth: true },
            Axis { name: "d", coarse: "0.2", fine: "0:0.5:0.1", paper: "0:0.5:0.1", small_is_smooth: true },
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
}

/// `min ½‖w‖² + (C/m) Σ (1 − γ_i)²`: the least-squares SVM; with a free intercept its usual linear system.
pub struct Lssvm;

impl Machine for Lssvm {
    fn name(&self) -> &'static str {
        "lssvm"
    }
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + (C/m) Σ (1-γ)²: least-squares support vector machine"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter { name: "c", domain: Domain::Positive, default: Some("64"), help: "cost C of an error" }]
    }
    fn grid(&self) -> &'static [Axis] {
        &[Axis { name: "c", coarse: "2^-6:2^14:*16", fine: "2^-8:2^16", paper: "2^-10:2^10:*4", small_is_smooth: true }]
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
