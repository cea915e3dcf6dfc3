//! Fisher's discriminant: `w = (S_w + ρ I)⁻¹ (μ₊ − μ₋)`, the maximiser of `(w·(μ₊ − μ₋))² / wᵀ(S_w + ρ I)w`, with the
//! within-class covariance `S_w = mean (x_i − μ_{y_i})(x_i − μ_{y_i})ᵀ` and the threshold half-way between the projected
//! means (Fisher 1936). With a kernel, the kernel Fisher discriminant (Mika et al. 1999): the same over the rows of the
//! kernel matrix, `w = Σ c_i φ(x_i)`. The form is standard; that the papers' tables mean just this is 50 % sure.
//!
//! `ρ = ridge · trace(S_w)/d`, so `ridge` means the same on any scale; where `S_w` is zero, `ρ = 1`. A `ρ` too small for
//! a factor to exist is raised tenfold until one does; the `ρ` in use is reported. Narrow problems are factored, wide
//! ones solved by conjugate gradients without ever forming `S_w`.
//!
//! A row of weight `s` counts as `s` equal rows. Intercept: `free` is the threshold; `none` leaves it out. An appended
//! feature has no spread and the same mean in both classes, so it gets weight 0: a number means none, and the model
//! says so. Every row counts as support.

use super::{Axis, Bias, Domain, Fit, Machine, Outcome, Parameter, ScoreFunctions, Series, Training, Uses};
use crate::control::Control;
use crate::data::{Dense, Matrix};
use crate::design::Design;
use crate::kernel::Kernel;
use crate::linalg::{Cholesky, Enough, add_gram, axpy, conjugate_gradients, dot, matrix_product};
use crate::problem::StopReason;
use crate::{Error, Result};
use rayon::prelude::*;

/// Widest covariance that is formed and factored: 72 MB, and a factor of `d³/3` multiplications, about a processor second.
const WIDEST: usize = 3_000;

/// The machine.
pub static LDA: Machine = Machine {
    name: "lda",
    title: "Fisher's discriminant; with a kernel, the kernel Fisher discriminant",
    formula: "w = (S_w + ρI)⁻¹(μ₊ − μ₋), threshold between the means",
    paper: "R. Fisher, The Use of Multiple Measurements in Taxonomic Problems, 1936; S. Mika et al., Fisher \
         Discriminant Analysis with Kernels, 1999",
    parameters: &[Parameter::number(
        "ridge",
        Domain::Positive,
        1e-4,
        "what is added to each variance, as a part of the mean variance",
    )],
    grid: &[Axis::new(
        "ridge",
        Series::List(&[1e-4, 1e-2, 1.0]),
        Series::List(&[1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
        Series::List(&[1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]),
    )
    .rougher()],
    intercept: Bias::free_or_none,
    uses: Uses::NONE,
    fit,
    ..Machine::PLAIN
};

fn fit(_: &Machine, training: &Training<'_>) -> Result<Fit> {
    if training.kernel() == Kernel::Linear {
        let found = Fisher::new(training, training.rows(), None).solve()?;
        let norm = dot(&found.w, &found.w).sqrt();
        return Ok(finish(training, found, norm, ScoreFunctions::weights));
    }
    let m = training.rows().rows();
    let matrices = if m <= WIDEST { 3 } else { 1 };
    let kernel = training.workspace.matrix(0.0, matrices, "lda", training.control)?;
    let features = Dense::new(m, m, kernel.as_slice()).map(Matrix::DenseF64);
    let features = features.ok_or_else(|| Error::numeric("lda", "the kernel matrix is not square"))?;
    let found = Fisher::new(training, &features, Some(training.weights)).solve()?;
    let mut product = vec![0.0; m];
    matrix_product(&kernel, &found.w, &mut product);
    let norm2 = dot(&product, &found.w).max(0.0);
    Ok(finish(training, found, norm2.sqrt(), ScoreFunctions::coefficients))
}

/// The direction found and what is known about it.
struct FisherDirection {
    w: Vec<f64>,
    scores: Vec<f64>,
    /// Half-way between the projected means.
    middle: f64,
    ratio: f64,
    rho: f64,
    solver: &'static str,
    stop: StopReason,
    iterations: usize,
}

fn finish(
    training: &Training<'_>,
    found: FisherDirection,
    norm: f64,
    functions: fn(Vec<f64>, f64) -> ScoreFunctions,
) -> Fit {
    let intercept = if training.bias == Bias::Free { -found.middle } else { 0.0 };
    let margins = training.signs().iter().zip(&found.scores).map(|(y, f)| y * (f + intercept)).collect();
    let mut outcome = Outcome::plain(found.solver.into(), found.stop, found.iterations, margins, norm);
    outcome.extras = vec![("fisher_ratio", found.ratio), ("rho", found.rho)];
    Fit { functions: functions(found.w, intercept), outcome }
}

/// Rows by class, their means and the ridge.
struct Fisher<'a, 'f> {
    design: Design<'f>,
    class: Vec<usize>,
    s: &'a [f64],
    n: f64,
    /// Weight of each class.
    totals: [f64; 2],
    means: [Vec<f64>; 2],
    /// For a kernel: as many rows share the coefficient, so its ridge is divided by this.
    shares: Option<&'a [f64]>,
    ridge: f64,
    control: Control<'a>,
}

impl<'a, 'f> Fisher<'a, 'f> {
    fn new(training: &Training<'a>, rows: &'f Matrix<'f>, shares: Option<&'a [f64]>) -> Self {
        let design = Design::new(rows, Bias::None);
        let (class, s): (Vec<usize>, _) = (training.codes.iter().map(|&c| c as usize).collect(), training.weights);
        let mut totals = [0.0; 2];
        class.iter().zip(s).for_each(|(&c, s)| totals[c] += s);
        let mut means = [Vec::new(), Vec::new()];
        for c in 0..2 {
            let part: Vec<f64> = class.iter().zip(s).map(|(&k, s)| if k == c { s / totals[c] } else { 0.0 }).collect();
            means[c] = design.combine(|i| part[i]);
        }
        let (ridge, control) = (training.parameters.number("ridge"), training.control);
        Self { design, class, s, n: totals[0] + totals[1], totals, means, shares, ridge, control }
    }

    /// What the ridge of feature `j` is multiplied with.
    fn share(&self, j: usize) -> f64 {
        self.shares.map_or(1.0, |s| 1.0 / s[j])
    }

    /// `ρ` for the variances on the diagonal of `S_w`.
    fn rho(&self, variances: &[f64]) -> f64 {
        let (trace, count) = match self.shares {
            None => (variances.iter().sum(), variances.len() as f64),
            Some(s) => (dot(variances, s), s.iter().sum()),
        };
        if trace > 0.0 { self.ridge * trace / count } else { 1.0 }
    }

    fn solve(self) -> Result<FisherDirection> {
        let difference: Vec<f64> = self.means[1].iter().zip(&self.means[0]).map(|(p, n)| p - n).collect();
        let mut found =
            if self.design.width() <= WIDEST { self.factor(&difference)? } else { self.iterate(&difference)? };
        self.design.scores(&found.w, &mut found.scores);
        found.middle = 0.5 * (dot(&found.w, &self.means[0]) + dot(&found.w, &self.means[1]));
        // wᵀ(S_w + ρI)w = w·(μ₊ − μ₋), so the ratio that w maximises is this.
        found.ratio = dot(&found.w, &difference);
        Ok(found)
    }

    fn found(&self, w: Vec<f64>, rho: f64, solver: &'static str) -> FisherDirection {
        let scores = vec![0.0; self.class.len()];
        FisherDirection { w, scores, middle: 0.0, ratio: 0.0, rho, solver, stop: StopReason::Exact, iterations: 1 }
    }

    /// By the Cholesky factor of `S_w + ρI`, from rows with the mean of their class taken away.
    fn factor(&self, difference: &[f64]) -> Result<FisherDirection> {
        let d = difference.len();
        let covariance = self.covariance()?;
        let variances: Vec<f64> = covariance.iter().step_by(d + 1).copied().collect();
        let mut rho = self.rho(&variances);
        for _ in 0..60 {
            let mut system = covariance.clone();
            system.iter_mut().step_by(d + 1).enumerate().for_each(|(j, v)| *v += rho * self.share(j));
            if let Ok(factor) = Cholesky::new(system, d) {
                let mut w = difference.to_vec();
                factor.solve(&mut w);
                if w.iter().all(|v| v.is_finite()) {
                    return Ok(self.found(w, rho, "Cholesky"));
                }
            }
            rho *= 10.0;
        }
        Err(Error::numeric("lda", "the covariance has no factor: values too large"))
    }

    /// `S_w`, lower triangle.
    fn covariance(&self) -> Result<Vec<f64>> {
        // As many as a design takes for a Gram matrix.
        const AT_ONCE: usize = 512;
        let (m, d) = (self.class.len(), self.design.width());
        let mut sum = vec![0.0; d * d];
        let mut block = vec![0.0; AT_ONCE * d];
        for from in (0..m).step_by(AT_ONCE).filter(|_| d > 0) {
            self.control.check()?;
            let block = &mut block[..AT_ONCE.min(m - from) * d];
            block.par_chunks_mut(d).enumerate().for_each(|(k, row)| {
                let scale = (self.s[from + k] / self.n).sqrt();
                self.design.spread(from + k, scale, row);
                axpy(-scale, &self.means[self.class[from + k]], row);
            });
            add_gram(&mut sum, block, d, 1.0, true);
        }
        Ok(sum)
    }

    /// By conjugate gradients: `S_w v = (1/n) Xᵀ s (Xv − mean of Xv in the class)`.
    fn iterate(&self, difference: &[f64]) -> Result<FisherDirection> {
        let variances = self.variances();
        let rho = self.rho(&variances);
        let ridge: Vec<f64> = (0..difference.len()).map(|j| rho * self.share(j)).collect();
        let mut w = vec![0.0; difference.len()];
        let mut scores = vec![0.0; self.class.len()];
        let apply = |v: &[f64], out: &mut [f64]| {
            self.control.check()?;
            self.design.scores(v, &mut scores);
            let mut means = [0.0; 2];
            for ((&c, s), f) in self.class.iter().zip(self.s).zip(&scores) {
                means[c] += s * f / self.totals[c];
            }
            for ((&c, s), f) in self.class.iter().zip(self.s).zip(&mut scores) {
                *f = s * (*f - means[c]) / self.n;
            }
            out.copy_from_slice(&self.design.combine(|i| scores[i]));
            out.iter_mut().zip(v).zip(&ridge).for_each(|((out, v), ridge)| *out += ridge * v);
            Ok(())
        };
        let scale = |r: &[f64], z: &mut [f64]| {
            for (((z, r), variance), ridge) in z.iter_mut().zip(r).zip(&variances).zip(&ridge) {
                *z = r / (variance + ridge);
            }
        };
        let (d, enough) = (difference.len(), Enough::Residual(1e-8));
        let end = conjugate_gradients(d, apply, scale, difference, &mut w, enough, 5_000)?;
        let mut found = self.found(w, rho, "conjugate gradients");
        found.iterations = end.products;
        found.stop = if end.converged { StopReason::Rest } else { StopReason::Iterations };
        Ok(found)
    }

    /// The diagonal of `S_w`, from sums of squares.
    fn variances(&self) -> Vec<f64> {
        let c: Vec<f64> = self.s.iter().map(|s| s / self.n).collect();
        let mut squares = self.design.curve_diagonal(&c);
        for (mean, total) in self.means.iter().zip(self.totals) {
            squares.iter_mut().zip(mean).for_each(|(v, mean)| *v -= total / self.n * mean * mean);
        }
        squares.iter_mut().for_each(|v| *v = v.max(0.0));
        squares
    }
}
