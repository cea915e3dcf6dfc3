//! The large margin distribution machine (Zhang & Zhou, KDD 2014), and ODM^L, its form in the ODM paper.

use super::{
    Axis, Bias, Domain, Form, Machine, Parameter, Preset, Series, StatedForm, StatedLoss, Statement, Theorem, Training,
};
use crate::Result;
use crate::control::Control;
use crate::data::Matrix;
use crate::design::Design;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::{self, Cholesky};
use crate::loss::MarginLoss;
use crate::solver::Solved;
use crate::solver::newton::NORMAL_EQUATIONS;

const LAMBDA1: Parameter =
    Parameter::number("lambda1", Domain::NonNegative, 0.03125, "weight λ1 of the margin variance");
const LAMBDA2: Parameter = Parameter::number("lambda2", Domain::NonNegative, 0.03125, "weight λ2 of the margin mean");
const C: Parameter = Parameter::number("c", Domain::Positive, 1.0, "cost C of an error");

/// The papers' `[2^-8, …, 2^-2]` and `{10, 50, 100}`; the search may also go to smaller costs, which the papers leave out.
const GRID: &[Axis] = &[
    Axis::new("c", Series::powers(0, 9, 3), Series::powers(-3, 10, 1), Series::List(&[10.0, 50.0, 100.0])),
    Axis::new("lambda1", Series::List(&[0.03125]), Series::powers(-8, -2, 1), Series::powers(-8, -2, 1)),
    Axis::new("lambda2", Series::List(&[0.03125]), Series::powers(-8, -2, 1), Series::powers(-8, -2, 1)),
];

/// The same for `(C/m) Σ`.
const MEAN_GRID: &[Axis] = &[
    Axis::new("c", Series::powers(2, 14, 4), Series::powers(0, 16, 1), Series::List(&[10.0, 50.0, 100.0]))
        .per_row(16.0),
    GRID[1],
    GRID[2],
];

/// `min ½‖w‖² + 2 λ1 Var(γ) − λ2 mean(γ) + C Σ max(0, 1 − γ_i)` (LDM, Eq. 6; the paper's variance is `2 Var`).
pub static LDM: Machine = Machine {
    name: "ldm",
    title: "large margin distribution machine",
    formula: "min ½‖w‖² + 2 λ1 Var(γ) - λ2 mean(γ) + C Σ max(0, 1-γ)",
    paper: "T. Zhang, Z.-H. Zhou, Large Margin Distribution Machine, KDD 2014",
    parameters: &[LAMBDA1, LAMBDA2, C],
    grid: GRID,
    weighs_means: &["lambda1", "lambda2"],
    form: |p, total| Some(form([2.0 * p.number("lambda1"), p.number("lambda2"), p.number("c")], total)),
    statement: |p, m| {
        let loss = StatedLoss::Hinge { c: p.get("c")?, mean: p.get("lambda2")? / m };
        Some(Statement::Margins(StatedForm { loss, variance: 2.0 * p.get("lambda1")? / m, ridge: 1.0 }))
    },
    ..Machine::PLAIN
};

/// `min ½‖w‖² + λ1 Var(γ) − λ2 mean(γ) + (C/m) Σ max(0, 1 − γ_i)` (ODM, Eq. 5).
pub static ODM_L: Machine = Machine {
    name: "odm-l",
    title: "LDM as the ODM paper writes it",
    formula: "min ½‖w‖² + λ1 Var(γ) - λ2 mean(γ) + (C/m) Σ max(0, 1-γ)",
    paper: "T. Zhang, Z.-H. Zhou, Optimal Margin Distribution Machine, IEEE TKDE 2020 (arXiv 1604.03348)",
    parameters: &[LAMBDA1, LAMBDA2, Parameter { default: Preset::Settled("max(512, m)"), ..C }],
    grid: MEAN_GRID,
    weighs_means: &["lambda1", "lambda2", "c"],
    // Its cost is divided by the number of rows: LDM's 1 would leave the errors of a usual set almost free.
    settle: |parameters, total| parameters.settle("c", total.max(512.0)),
    form: |p, total| Some(form([p.number("lambda1"), p.number("lambda2"), p.number("c") / total], total)),
    statement: |p, m| {
        let loss = StatedLoss::Hinge { c: p.get("c")? / m, mean: p.get("lambda2")? / m };
        Some(Statement::Margins(StatedForm { loss, variance: p.get("lambda1")? / m, ridge: 1.0 }))
    },
    ..Machine::PLAIN
};

/// `½‖w‖² + variance · Var(γ) − mean · mean(γ) + C Σ max(0, 1 − γ_i)` for rows of this total weight.
pub(super) fn form([variance, mean, c]: [f64; 3], total: f64) -> Form {
    let bound = Some(Theorem::Hinge([variance, mean, c]));
    Form { loss: MarginLoss::hinge(c).plus(0.0, -mean / total, 0.0), variance: variance / total, bound }
}

/// The leave-one-out bound of such a problem, which needs a regularised intercept or none.
pub(super) fn bound(
    training: &Training<'_>,
    y: &[f64],
    solved: &Solved,
    margins: &[f64],
    [variance, mean, c]: [f64; 3],
) -> Result<Option<f64>> {
    if training.bias == Bias::Free {
        return Ok(None);
    }
    let total = training.total();
    Bound { training, y, kappa: variance / total, c, mean: mean / total }.value(solved, margins)
}

/// `(Σ_{0 < α_i < C} α_i h_ii + #{α_i = C}) / m`: no more rows can be wrong when each is left out in turn (ODM, Theorem 2).
///
/// `h_ii = φ(x_i)ᵀ Q⁻¹ φ(x_i)` with `Q = I + 2 κ Σ s_i (y_i φ_i − z)(y_i φ_i − z)ᵀ`, `z` the mean of `y_i φ_i`.
/// The theorem needs a regularised intercept or none. A row of weight `s` is left out with all of it, and counts `s` times.
struct Bound<'t, 'a> {
    training: &'t Training<'a>,
    y: &'t [f64],
    kappa: f64,
    c: f64,
    mean: f64,
}

/// More work than this (multiplications) is not spent on a bound nobody asked for: about three processor seconds of factors.
const AFFORDABLE: f64 = 3e10;
/// The same for linear machines, whose training takes about this many a step.
const AFFORDABLE_LINEAR: f64 = 2e8;

impl Bound<'_, '_> {
    fn value(&self, solved: &Solved, margins: &[f64]) -> Result<Option<f64>> {
        let alpha = self.alpha(solved, margins);
        let weights = self.training.weights;
        let full = |i: usize| alpha[i] >= weights[i] * self.c * (1.0 - 1e-7);
        let free: Vec<usize> =
            (0..alpha.len()).filter(|&i| alpha[i] > 1e-9 * weights[i] * self.c && !full(i)).collect();
        let Some(h) = self.curvatures(&free)? else { return Ok(None) };
        let inner: f64 = free.iter().zip(h).map(|(&i, h)| weights[i] * alpha[i] * h).sum();
        let bounded: f64 = (0..alpha.len()).filter(|&i| full(i)).map(|i| weights[i]).sum();
        Ok(Some((inner + bounded) / self.training.total()))
    }

    /// The hinge's own dual variables: `a_i` without what variance and mean put in.
    fn alpha(&self, solved: &Solved, margins: &[f64]) -> Vec<f64> {
        let weights = self.training.weights;
        let total: f64 = weights.iter().sum();
        let average = linalg::dot(margins, weights) / total;
        let row = |i: usize| {
            let variance = 2.0 * self.kappa * weights[i] * (margins[i] - average);
            (solved.a[i] + variance - self.mean * weights[i]).clamp(0.0, weights[i] * self.c)
        };
        (0..margins.len()).map(row).collect()
    }

    /// `h_ii` of the chosen rows; `None` if that would take too long.
    fn curvatures(&self, chosen: &[usize]) -> Result<Option<Vec<f64>>> {
        let training = self.training;
        let kernel = KernelRows::new(training.kernel(), training.rows(), training.bias.offset());
        if self.kappa == 0.0 {
            return Ok(Some(chosen.iter().map(|&i| kernel.diagonal(i)).collect()));
        }
        let (m, d) = (training.rows().rows() as f64, training.rows().cols() as f64);
        if training.kernel() == Kernel::Linear
            && d < NORMAL_EQUATIONS as f64
            && (m + chosen.len() as f64) * d * d < AFFORDABLE_LINEAR
        {
            return Ok(self.by_features(chosen));
        }
        let affordable = m.powi(3) / 3.0 + m * m * chosen.len() as f64 <= AFFORDABLE
            && 16.0 * m * m <= training.settings.memory as f64;
        if affordable { self.by_rows(&kernel, chosen, training.rows(), training.control) } else { Ok(None) }
    }

    fn by_features(&self, chosen: &[usize]) -> Option<Vec<f64>> {
        let weights = self.training.weights;
        let rows = Design::new(self.training.rows(), self.training.bias);
        let (n, total) = (rows.width(), weights.iter().sum::<f64>());
        let h: Vec<f64> = weights.iter().map(|s| 2.0 * self.kappa * s).collect();
        let mut q = rows.curve_matrix(&h);
        let z = rows.combine(|i| weights[i] * self.y[i]);
        for j in 0..n {
            linalg::axpy(-2.0 * self.kappa / total * z[j], &z[j..], &mut q[j * n + j..(j + 1) * n]);
            q[j * n + j] += 1.0;
        }
        let factor = Cholesky::new(q, n).ok()?;
        Some(rows.leverages(&factor, chosen))
    }

    /// `h_ii = G_ii − k_iᵀ P (I + P K P)⁻¹ P k_i` with `K = V^T V`, `V` the columns `√(2 κ s_i) y_i φ_i`, `k_i = Vᵀ φ_i` and the
    /// projector `P = I − r rᵀ`, `r_i = √(s_i / m)`.
    fn by_rows(
        &self,
        kernel: &KernelRows<'_>,
        chosen: &[usize],
        rows: &Matrix<'_>,
        control: Control<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let (m, weights) = (rows.rows(), self.training.weights);
        let total: f64 = weights.iter().sum();
        let v: Vec<f64> = (0..m).map(|i| self.y[i] * (2.0 * self.kappa * weights[i]).sqrt()).collect();
        let r: Vec<f64> = weights.iter().map(|s| (s / total).sqrt()).collect();
        let gram = kernel.matrix(control)?;
        let project = |row: &mut [f64]| linalg::axpy(-linalg::dot(row, &r), &r, row);
        let mut projected: Vec<f64> = Vec::new();
        for &i in chosen {
            let mut row: Vec<f64> = (0..m).map(|j| gram[i * m + j] * v[j]).collect();
            project(&mut row);
            projected.extend(row);
        }
        let diagonal: Vec<f64> = chosen.iter().map(|&i| gram[i * m + i]).collect();
        let mut system = gram;
        for (i, row) in system.chunks_exact_mut(m).enumerate() {
            row.iter_mut().zip(&v).for_each(|(k, vj)| *k *= v[i] * vj);
            project(row);
        }
        // Rows are projected; the matrix was symmetric, so its columns are projected the same way.
        let across: Vec<f64> = (0..m).map(|j| (0..m).map(|i| r[i] * system[i * m + j]).sum()).collect();
        for (i, row) in system.chunks_exact_mut(m).enumerate() {
            linalg::axpy(-r[i], &across, row);
            row[i] += 1.0;
        }
        let Ok(factor) = Cholesky::new(system, m) else { return Ok(None) };
        factor.half_solve(&mut projected, true);
        let curvatures = projected.chunks_exact(m).zip(diagonal).map(|(t, g)| g - linalg::dot(t, t));
        Ok(Some(curvatures.collect()))
    }
}
