//! The optimal margin distribution machine (Zhang & Zhou), and least squares, which is ODM without a band.

use super::convex::{self, optimal};
use super::{Bias, Domain, Fit, Machine, Outcome, Parameter, Parameters, Training};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::Cholesky;
use crate::loss::MarginLoss;
use crate::solver::fit::{Solved, offset};
use crate::solver::linear::NORMAL_EQUATIONS;
use crate::solver::passes::{LinearRows, leverages};
use crate::{Error, Result, with_rows};

/// Defaults of `C1`, `C2` and `D`: near the best single choice over twenty small sets (`docs/defaults.md`).
const C1: f64 = 256.0;
const C2: f64 = 32.0;
const D: f64 = 0.4;

/// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)` (ODM, Eq. 15).
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
    fn summary(&self) -> &'static str {
        "min ½‖w‖² + (C/m) Σ (1-γ)²: least-squares support vector machine"
    }
    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter { name: "c", domain: Domain::Positive, default: Some("64"), help: "cost C of an error" }]
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let c = training.parameters.number("c");
        fit(training, c, c, 0.0)
    }
}

/// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)`
pub fn fit(training: &Training<'_>, c1: f64, c2: f64, d: f64) -> Result<Fit> {
    let total = convex::total(training);
    let loss = MarginLoss::band(c1, c2, d).times(1.0 / total);
    convex::fit(training, loss, 0.0, |solved, y, outcome| {
        if !optimal(outcome) {
            return Ok(());
        }
        if training.bias != Bias::Free {
            outcome.loo_bound = Some(bound(training, solved, c1, c2, d));
        }
        let rows = ActiveRows::new(training, y, outcome, c1, c2, d);
        if let Some(margins) = rows.left_out()? {
            let wrong = |(g, s): (&f64, &f64)| if *g <= 0.0 { *s } else { 0.0 };
            outcome.loo_error = Some(margins.iter().zip(training.weights).map(wrong).sum::<f64>() / total);
            outcome.loo_margins = Some(margins);
        }
        Ok(())
    })
}

/// `(Σ_{ζ>0} ζ_i (q_i + m/2C1) + Σ_{β>0} β_i (q_i + m/2C2) + D (#{ζ>0} − #{β>0})) / m` (ODM, Theorem 3, with the dual's
/// `m/2C`): no more rows can be wrong when each is left out in turn. A row of weight `s` counts as `s` rows.
fn bound(training: &Training<'_>, solved: &Solved, c1: f64, c2: f64, d: f64) -> f64 {
    let total = convex::total(training);
    let kernel = KernelRows::new(training.kernel, training.rows, offset(training.bias));
    let row = |i: usize| {
        let (a, s) = (solved.a[i], training.weights[i]);
        let q = kernel.diagonal(i);
        // Rounding leaves specks of a on rows inside the band; they are no support.
        let speck = 1e-12 * c1 / total;
        match a {
            a if a > speck => a * (q + total / (2.0 * c1)) + d * s,
            a if a < -speck && c2 > 0.0 => -a * (q + total / (2.0 * c2)) - d * s,
            _ => 0.0,
        }
    };
    (0..solved.a.len()).map(row).sum::<f64>() / total
}

/// Closed-form leave-one-out margins: exact while the set of rows outside the band stays the same.
///
/// With `H` the Hessian and `l_i = x̃_iᵀ H⁻¹ x̃_i`, leaving out one copy of a row of curvature `h_i = s_i r_i` turns the
/// residual `e_i = c_i − γ_i` into `e_i / (1 − r_i l_i)`, `c_i = 1 ∓ D`; in terms of `M = K_SS + diag(1/h)` that is
/// `γ_i = c_i − a_i / [M⁻¹]_ii` for rows of weight 1. Rows inside the band keep their margin.
struct ActiveRows<'t, 'a> {
    training: &'t Training<'a>,
    y: &'t [f64],
    margins: &'t [f64],
    /// `c_i` and `h_i`; `h_i = 0` inside the band.
    targets: Vec<f64>,
    curvature: Vec<f64>,
}

/// More work than this (multiplications) is not spent on leave-one-out margins nobody asked for.
const AFFORDABLE: f64 = 2e9;

impl<'t, 'a> ActiveRows<'t, 'a> {
    fn new(training: &'t Training<'a>, y: &'t [f64], outcome: &'t Outcome, c1: f64, c2: f64, d: f64) -> Self {
        let total = convex::total(training);
        let side = |(g, s): (&f64, &f64)| match *g {
            g if g < 1.0 - d => (1.0 - d, 2.0 * c1 * s / total),
            g if g > 1.0 + d => (1.0 + d, 2.0 * c2 * s / total),
            g => (g, 0.0),
        };
        let (targets, curvature) = outcome.margins.iter().zip(training.weights).map(side).unzip();
        Self { training, y, margins: &outcome.margins, targets, curvature }
    }

    fn left_out(&self) -> Result<Option<Vec<f64>>> {
        let active: Vec<usize> = (0..self.curvature.len()).filter(|&i| self.curvature[i] > 0.0).collect();
        let training = self.training;
        let (m, k, n) = (self.margins.len() as f64, active.len() as f64, training.rows.cols() as f64 + 1.0);
        let leverage = if training.kernel == Kernel::Linear && n <= NORMAL_EQUATIONS as f64 && m * n * n <= AFFORDABLE {
            with_rows!(training.rows, x => self.by_features(x, &active))
        } else if k.powi(3) <= AFFORDABLE && 16.0 * k * k <= training.settings.memory as f64 {
            self.by_rows(&active)?
        } else {
            None
        };
        let Some(leverage) = leverage else { return Ok(None) };
        let mut margins = self.margins.to_vec();
        for (&i, l) in active.iter().zip(leverage) {
            let removed = self.curvature[i] / training.weights[i].max(1.0);
            let rest = (1.0 - removed * l).max(1e-12);
            margins[i] = self.targets[i] - (self.targets[i] - self.margins[i]) / rest;
        }
        Ok(Some(margins))
    }

    /// `l_i` from the `n × n` Hessian.
    fn by_features<X: Rows>(&self, x: &X, active: &[usize]) -> Option<Vec<f64>> {
        let rows = LinearRows { x, y: self.y, bias: self.training.bias };
        let n = rows.width();
        let mut hessian = rows.curve_matrix(&self.curvature);
        (0..n).for_each(|j| hessian[j * n + j] += rows.ridge(j));
        let factor = Cholesky::new(hessian, n).ok()?;
        Some(leverages(&rows, &factor, active))
    }

    /// `l_i = (h_i − [M⁻¹]_ii) / h_i²`; a free intercept borders `M` with ones.
    fn by_rows(&self, active: &[usize]) -> Result<Option<Vec<f64>>> {
        let (training, k) = (self.training, active.len());
        let chosen = training.rows.select(active);
        let kernel = KernelRows::new(training.kernel, &chosen, offset(training.bias));
        let mut matrix = kernel.matrix(training.control)?;
        for (p, &i) in active.iter().enumerate() {
            matrix[p * k + p] += 1.0 / self.curvature[i];
        }
        let Ok(factor) = Cholesky::new(matrix, k) else { return Ok(None) };
        let mut inverse = factor.inverse_diagonal();
        if training.bias == Bias::Free && k > 0 {
            let mut ones = vec![1.0; k];
            factor.solve(&mut ones);
            let sum: f64 = ones.iter().sum();
            inverse.iter_mut().zip(&ones).for_each(|(d, z)| *d -= z * z / sum);
        }
        let leverage = |(&i, d): (&usize, f64)| (self.curvature[i] - d) / self.curvature[i].powi(2);
        Ok(Some(active.iter().zip(inverse).map(leverage).collect()))
    }
}
