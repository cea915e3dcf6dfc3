//! The optimal margin distribution machine (Zhang & Zhou), and least squares, which is ODM without a band.

use super::convex::{self, optimal};
use super::{Axis, Bias, Domain, Fit, Form, Machine, Parameter, Parameters, Preset, Span, Training};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::{Cholesky, ordered_sum};
use crate::loss::MarginLoss;
use crate::solver::fit::{Solved, offset};
use crate::solver::linear::NORMAL_EQUATIONS;
use crate::solver::passes::{LinearRows, leverages};
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
                coarse: Span::Powers { from: 1, to: 10, by: 3 },
                fine: Span::Powers { from: 0, to: 10, by: 1 },
                paper: Span::Powers { from: 0, to: 10, by: 1 },
                small_is_smooth: true,
            },
            Axis {
                name: "c2",
                coarse: Span::List(&[4.0, 128.0]),
                fine: Span::Powers { from: 0, to: 10, by: 1 },
                paper: Span::Powers { from: 0, to: 10, by: 1 },
                small_is_smooth: true,
            },
            Axis {
                name: "d",
                coarse: Span::List(&[0.2]),
                fine: Span::Steps { from: 0.0, to: 0.5, step: 0.1 },
                paper: Span::Steps { from: 0.0, to: 0.5, step: 0.1 },
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
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let p = training.parameters;
        fit(training, p.number("c1"), p.number("c2"), p.number("d"))
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
            coarse: Span::Powers { from: -6, to: 14, by: 4 },
            fine: Span::Powers { from: -8, to: 16, by: 1 },
            paper: Span::Powers { from: -10, to: 10, by: 2 },
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
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let c = training.parameters.number("c");
        fit(training, c, c, 0.0)
    }
}

/// ODM's problem for costs and a band `[C1, C2, D]`.
pub(super) fn form(band: [f64; 3], total: f64) -> Form {
    let [c1, c2, d] = band;
    Form { loss: MarginLoss::band(c1, c2, d).times(1.0 / total), variance: 0.0, band: Some(band) }
}

/// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)`
pub fn fit(training: &Training<'_>, c1: f64, c2: f64, d: f64) -> Result<Fit> {
    let total = convex::total(training);
    let loss = form([c1, c2, d], total).loss;
    convex::fit(training, loss, 0.0, |solved, y, outcome| {
        if !optimal(outcome) {
            return Ok(());
        }
        if training.bias != Bias::Free {
            outcome.loo_bound = Some(bound(training, solved, c1, c2, d));
        }
        if let Some(margins) = left_out(training, y, &outcome.margins, [c1, c2, d])? {
            let wrong = |(g, s): (&f64, &f64)| if *g <= 0.0 { *s } else { 0.0 };
            outcome.loo_error = Some(margins.iter().zip(training.weights).map(wrong).sum::<f64>() / total);
            outcome.loo_margins = Some(margins);
        }
        Ok(())
    })
}

/// `(Σ_{ζ>0} ζ_i (q_i + m/2C1) + Σ_{β>0} β_i (q_i + m/2C2) + D (#{ζ>0} − #{β>0})) / m` (ODM, Theorem 3, with the dual's
/// `m/2C`): no more rows can be wrong when each is left out in turn. A row of weight `s` is left out with all of it, and counts
/// `s` times: its term is `s (a (q + m/(2 C s)) ± D)`.
fn bound(training: &Training<'_>, solved: &Solved, c1: f64, c2: f64, d: f64) -> f64 {
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
    let (m, offset) = (solved.a.len(), offset(training.bias));
    let sum = if let (Kernel::Linear, Some(norms2)) = (training.kernel, &solved.norms2) {
        ordered_sum(m, |i| row(i, &|i| norms2[i]))
    } else if training.kernel == Kernel::Linear {
        with_rows!(training.rows, x => ordered_sum(m, |i| row(i, &|i| x.norm2(i) + offset)))
    } else {
        let kernel = KernelRows::new(training.kernel, training.rows, offset);
        ordered_sum(m, |i| row(i, &|i| kernel.diagonal(i)))
    };
    sum / total
}

/// Closed-form leave-one-out margins: exact while the set of rows outside the band stays the same.
///
/// With `H` the Hessian and `l_i = x̃_iᵀ H⁻¹ x̃_i`, leaving out a row of curvature `h_i` (all of its weight) turns the
/// residual `e_i = c_i − γ_i` into `e_i / (1 − h_i l_i)`, `c_i = 1 ∓ D`; in terms of `M = K_SS + diag(1/h)` that is
/// `γ_i = c_i − a_i / [M⁻¹]_ii`. Rows inside the band keep their margin.
pub(crate) struct LeftOut<'t> {
    margins: &'t [f64],
    /// `c_i` and `h_i`; `h_i = 0` inside the band.
    targets: Vec<f64>,
    curvature: Vec<f64>,
    /// The rows outside the band.
    pub active: Vec<usize>,
}

impl<'t> LeftOut<'t> {
    /// At the optimum, where rows of these weights have these margins.
    pub fn new(margins: &'t [f64], weights: &[f64], [c1, c2, d]: [f64; 3]) -> Self {
        let total: f64 = weights.iter().sum();
        let side = |(g, s): (&f64, &f64)| match *g {
            g if g < 1.0 - d => (1.0 - d, 2.0 * c1 * s / total),
            g if g > 1.0 + d => (1.0 + d, 2.0 * c2 * s / total),
            g => (g, 0.0),
        };
        let (targets, curvature): (Vec<f64>, Vec<f64>) = margins.iter().zip(weights).map(side).unzip();
        let active = (0..curvature.len()).filter(|&i| curvature[i] > 0.0).collect();
        Self { margins, targets, curvature, active }
    }

    /// `1/h_i` of the active rows.
    pub fn ridges(&self) -> Vec<f64> {
        self.active.iter().map(|&i| 1.0 / self.curvature[i]).collect()
    }

    /// The margins, given `l_i` of the active rows.
    pub fn margins(&self, leverage: &[f64]) -> Vec<f64> {
        let mut margins = self.margins.to_vec();
        for (&i, l) in self.active.iter().zip(leverage) {
            let rest = (1.0 - self.curvature[i] * l).max(1e-12);
            margins[i] = self.targets[i] - (self.targets[i] - self.margins[i]) / rest;
        }
        margins
    }

    /// `l_i` from the `n × n` Hessian.
    pub fn by_features<X: Rows>(&self, rows: &LinearRows<'_, X>) -> Option<Vec<f64>> {
        let n = rows.width();
        let mut hessian = rows.curve_matrix(&self.curvature);
        (0..n).for_each(|j| hessian[j * n + j] += rows.ridge(j));
        let factor = Cholesky::new(hessian, n).ok()?;
        Some(leverages(rows, &factor, &self.active))
    }

    /// `l_i = (h_i − [M⁻¹]_ii) / h_i²` from `M = K_SS + diag(1/h)`; an intercept borders `M` with ones.
    pub fn by_rows(&self, matrix: Vec<f64>, bias: Bias) -> Option<Vec<f64>> {
        let k = self.active.len();
        let factor = Cholesky::new(matrix, k).ok()?;
        let mut inverse = factor.inverse_diagonal();
        if bias != Bias::None && k > 0 {
            let mut ones = vec![1.0; k];
            factor.solve(&mut ones);
            let sum = bias.ridge() + ones.iter().sum::<f64>();
            inverse.iter_mut().zip(&ones).for_each(|(d, z)| *d -= z * z / sum);
        }
        let leverage = |(&i, d): (&usize, f64)| (self.curvature[i] - d) / self.curvature[i].powi(2);
        Some(self.active.iter().zip(inverse).map(leverage).collect())
    }
}

/// More work than this (multiplications) is not spent on leave-one-out margins nobody asked for.
const AFFORDABLE: f64 = 2e9;
/// The same for linear machines, whose training takes about this many a step.
const AFFORDABLE_LINEAR: f64 = 2e8;

fn left_out(training: &Training<'_>, y: &[f64], margins: &[f64], band: [f64; 3]) -> Result<Option<Vec<f64>>> {
    let [_, c2, d] = band;
    let outside = margins.iter().filter(|g| **g < 1.0 - d || c2 > 0.0 && **g > 1.0 + d).count();
    let (m, k, n) = (margins.len() as f64, outside as f64, training.rows.cols() as f64 + 1.0);
    let by_features =
        training.kernel == Kernel::Linear && n <= NORMAL_EQUATIONS as f64 && m * n * n <= AFFORDABLE_LINEAR;
    let by_rows = k.powi(3) <= AFFORDABLE && 16.0 * k * k <= training.settings.memory as f64;
    if !by_features && !by_rows {
        return Ok(None);
    }
    let rows = LeftOut::new(margins, training.weights, band);
    let leverage = if by_features {
        with_rows!(training.rows, x => rows.by_features(&LinearRows { x, y, bias: training.bias }))
    } else {
        let chosen = training.rows.select(&rows.active);
        let kernel = KernelRows::new(training.kernel, &chosen, 0.0);
        let mut matrix = kernel.matrix(training.control)?;
        let k = rows.active.len();
        rows.ridges().iter().enumerate().for_each(|(p, ridge)| matrix[p * k + p] += ridge);
        rows.by_rows(matrix, training.bias)
    };
    Ok(leverage.map(|leverage| rows.margins(&leverage)))
}
