//! Closed-form leave-one-out margins of smooth problems.

use super::newton::{KernelMatrix, Preconditioner};
use crate::Result;
use crate::control::Control;
use crate::design::Design;
use crate::kernel::{KernelRows, Tiles};
use crate::linalg::{self, Cholesky, Enough, conjugate_gradients};
use crate::problem::{Bias, MarginProblem};
use crate::random::Random;

/// Random vectors behind an estimate of leverages: twice as many would make its error smaller by 0.7.
const PROBES: usize = 64;
/// How well their systems are solved: better than they tell, and than values in single precision would hide.
const ACCURACY: f64 = 1e-4;
/// Most products for that.
const MOST_PRODUCTS: usize = 500;

/// Closed-form leave-one-out margins: exact while no row crosses a kink of the slope.
///
/// On its piece the loss of a row is `½ h_i (γ − c_i)²` up to a constant, with the curvature `h_i = s_i φ''(γ_i)` and the target
/// `c_i = γ_i − φ'(γ_i)/φ''(γ_i)` (of ODM `1 ∓ D`). With `H` the Hessian and `l_i = x̃_iᵀ H⁻¹ x̃_i`, leaving out a row (all of
/// its weight) turns the residual `e_i = c_i − γ_i` into `e_i / (1 − h_i l_i)`; in terms of `M = K_SS + diag(1/h)` that is
/// `γ_i = c_i − a_i / [M⁻¹]_ii`. Rows without curvature keep their margin.
pub struct LeftOut<'t> {
    margins: &'t [f64],
    targets: Vec<f64>,
    /// `h_i`
    pub curvature: Vec<f64>,
    /// The rows with curvature.
    pub active: Vec<usize>,
}

impl<'t> LeftOut<'t> {
    /// At the optimum of the problem, where its rows have these margins.
    pub fn new(margins: &'t [f64], problem: &MarginProblem<'_>) -> Self {
        let row = |(g, s): (&f64, &f64)| match problem.loss.jet(*g) {
            (_, slope, curvature) if curvature > 0.0 => (g - slope / curvature, s * curvature),
            _ => (*g, 0.0),
        };
        let (targets, curvature): (Vec<f64>, Vec<f64>) = margins.iter().zip(problem.weights).map(row).unzip();
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

    /// `l_i` from the `n × n` Hessian, or its factor where that is known.
    pub fn by_features(&self, design: &Design<'_>, known: Option<&Cholesky>) -> Option<Vec<f64>> {
        if let Some(known) = known {
            return Some(design.leverages(known, &self.active));
        }
        let n = design.width();
        let mut hessian = design.curve_matrix(&self.curvature);
        (0..n).for_each(|j| hessian[j * n + j] += design.ridge(j));
        let factor = Cholesky::new(hessian, n).ok()?;
        Some(design.leverages(&factor, &self.active))
    }

    /// `l_i` from `M = K_SS + diag(1/h)`.
    pub fn by_rows(&self, matrix: Vec<f64>, bias: Bias) -> Option<Vec<f64>> {
        let factor = Cholesky::new(matrix, self.active.len()).ok()?;
        Some(self.by_factor(&factor, bias))
    }

    /// `l_i = (h_i − [M⁻¹]_ii) / h_i²` from the factor of `M`; an intercept borders `M` with ones.
    pub fn by_factor(&self, factor: &Cholesky, bias: Bias) -> Vec<f64> {
        let k = self.active.len();
        let mut inverse = factor.inverse_diagonal();
        if bias != Bias::None && k > 0 {
            let mut ones = vec![1.0; k];
            factor.solve(&mut ones);
            let sum = bias.ridge() + ones.iter().sum::<f64>();
            inverse.iter_mut().zip(&ones).for_each(|(d, z)| *d -= z * z / sum);
        }
        let leverage = |(&i, d): (&usize, f64)| (self.curvature[i] - d) / self.curvature[i].powi(2);
        self.active.iter().zip(inverse).map(leverage).collect()
    }

    /// `l_i` estimated by products with the kernel matrix; `None` where these do not come to an end.
    ///
    /// With `N = I + √H K_SS √H`, `1 − h_i l_i = [N⁻¹]_ii`, less `u_i² / (r + Σ √h_j u_j)`, `u = N⁻¹ √h`, for an intercept. Most of it is
    /// known: `Q = D + B Bᵀ` has the part `B Bᵀ` of low rank that preconditions Newton's systems and, by its diagonal `D`, that of `N`. What
    /// `Q⁻¹` lacks is `z ∘ (N⁻¹ − Q⁻¹) z` on average over vectors `z` of random signs (Bekas, Kokiopoulou & Saad 2007), and how these
    /// differ is the standard error.
    pub fn by_products(
        &self,
        (tiles, rows): (&Tiles, &KernelRows<'_>),
        bias: Bias,
        seed: u64,
        control: Control<'_>,
    ) -> Result<Option<Estimate>> {
        let (active, k) = (&self.active, self.active.len());
        let h: Vec<f64> = active.iter().map(|&i| self.curvature[i]).collect();
        let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
        let known = Known::new((tiles, rows), active, &h, control)?;
        let (mut random, mut rhs) = (Random::new(seed, 0x6c65_6674), root.clone());
        rhs.extend((0..PROBES * k).map(|_| if random.bits() >> 63 == 0 { 1.0 } else { -1.0 }));
        let mut solved = vec![0.0; rhs.len()];
        let matrix = KernelMatrix::Tiled(tiles, rows);
        let apply = |v: &[f64], out: &mut [f64]| {
            control.check()?;
            matrix.curve(active, &root, v, out)
        };
        let solve = |v: &[f64], out: &mut [f64]| known.solve(v, out);
        let enough = Enough::Residual(ACCURACY);
        if !conjugate_gradients(k, apply, solve, &rhs, &mut solved, enough, MOST_PRODUCTS)?.converged {
            return Ok(None);
        }
        let (mut sum, mut squares, mut by_known) = (vec![0.0; k], vec![0.0; k], vec![0.0; k]);
        for (z, x) in rhs.chunks_exact(k).zip(solved.chunks_exact(k)).skip(1) {
            known.solve(z, &mut by_known);
            for p in 0..k {
                let lacking = z[p] * (x[p] - by_known[p]);
                sum[p] += lacking;
                squares[p] += lacking * lacking;
            }
        }
        let (u, count) = (&solved[..k], PROBES as f64);
        let pull = if bias == Bias::None { f64::INFINITY } else { bias.ridge() + linalg::dot(&root, u) };
        let mut found = Estimate { leverage: Vec::with_capacity(k), errors: Vec::with_capacity(k) };
        for (p, known) in known.diagonal().into_iter().enumerate() {
            let mean = sum[p] / count;
            // No diagonal of the inverse of a positive definite matrix is below the inverse of its diagonal.
            let least = 1.0 / (1.0 + h[p] * rows.diagonal(active[p]));
            let rest = (known + mean).clamp(least, 1.0) - u[p] * u[p] / pull;
            found.leverage.push((1.0 - rest) / h[p]);
            found.errors.push(((squares[p] / count - mean * mean).max(0.0) / (count - 1.0)).sqrt());
        }
        Ok(Some(found))
    }

    /// The standard error of estimated margins, the root of the mean of its squares over all rows.
    pub fn error(&self, estimate: &Estimate) -> f64 {
        let row = |((&i, l), error): ((&usize, &f64), &f64)| {
            let rest = (1.0 - self.curvature[i] * l).max(1e-12);
            ((self.targets[i] - self.margins[i]) * error / (rest * rest)).powi(2)
        };
        let rows = self.active.iter().zip(&estimate.leverage).zip(&estimate.errors);
        (rows.map(row).sum::<f64>() / self.margins.len().max(1) as f64).sqrt()
    }
}

/// Leverages `l_i` that were estimated.
pub struct Estimate {
    /// Those of the active rows.
    pub leverage: Vec<f64>,
    /// The standard errors of `h_i l_i`.
    errors: Vec<f64>,
}

/// `Q = D + B Bᵀ`: `D^½ (I + B'B'ᵀ) D^½` with `B' = D^-½ B`.
struct Known<'a> {
    /// `D^-½`
    scale: Vec<f64>,
    inner: Preconditioner<'a>,
}

impl<'a> Known<'a> {
    fn new(
        (tiles, rows): (&'a Tiles, &KernelRows<'_>),
        active: &[usize],
        h: &[f64],
        control: Control<'_>,
    ) -> Result<Self> {
        let part = tiles.low_rank(rows, h, control)?;
        let scale = |(&i, h): (&usize, &f64)| {
            let explained: f64 = part.row(i).iter().map(|f| f64::from(*f).powi(2)).sum();
            1.0 / (1.0 + (h * (rows.diagonal(i) - explained)).max(0.0)).sqrt()
        };
        let scale: Vec<f64> = active.iter().zip(h).map(scale).collect();
        let root: Vec<f64> = scale.iter().zip(h).map(|(s, h)| s * h.sqrt()).collect();
        Ok(Self { scale, inner: Preconditioner::new(part, rows.len(), active.to_vec(), root, &mut None)? })
    }

    /// Writes `Q⁻¹ v`.
    fn solve(&self, v: &[f64], out: &mut [f64]) {
        let scaled: Vec<f64> = v.iter().zip(&self.scale).map(|(v, s)| v * s).collect();
        self.inner.apply(&scaled, out);
        out.iter_mut().zip(&self.scale).for_each(|(out, s)| *out *= s);
    }

    /// The diagonal of `Q⁻¹`.
    fn diagonal(&self) -> Vec<f64> {
        self.inner.inverse_diagonal().into_iter().zip(&self.scale).map(|(d, s)| d * s * s).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::kernel::{GramPrecision, Kernel};
    use crate::loss::MarginLoss;
    use crate::solver::{Settings, Start, Workspace};

    /// Rows in four dimensions, one label in ten of which is noise.
    fn rows(m: usize) -> (Matrix<'static>, Vec<f64>) {
        let mut random = Random::new(3, 0);
        let values: Vec<f64> = (0..4 * m).map(|_| random.normal()).collect();
        let label = |x: &[f64]| {
            let sign = if (2.0 * x[0]).sin() + x[1] * x[2] > 0.0 { 1.0 } else { -1.0 };
            if random.unit() < 0.1 { -sign } else { sign }
        };
        let y = values.chunks_exact(4).map(label).collect();
        (Matrix::DenseF64(Dense::new(m, 4, values).unwrap()), y)
    }

    #[test]
    fn estimates_are_as_far_from_the_factor_as_they_say() {
        let m = 2500;
        let (rows, y) = rows(m);
        let weights: Vec<f64> = (0..m).map(|i| [1.0, 0.5, 2.0][i % 3]).collect();
        let settings = Settings { tol: 1e-8, ..Settings::default() };
        let control = Control::default();
        let cases = [
            (Kernel::Rbf { gamma: 0.2 }, 1.0, Bias::Free),
            (Kernel::Rbf { gamma: 2.0 }, 10.0, Bias::Feature(1.0)),
            (Kernel::Laplacian { gamma: 0.3 }, 0.3, Bias::None),
        ];
        for (kernel, cost, bias) in cases {
            let loss = MarginLoss::band(cost, 0.25 * cost, 0.5);
            let problem = MarginProblem { y: &y, weights: &weights, loss, variance: 0.0, bias };
            let workspace = Workspace::new(&rows, kernel, settings);
            let ending =
                workspace.solve(&problem, GramPrecision::Double, &Start::default(), &settings, control).unwrap();
            let margins = ending.margins.unwrap();
            let exact = workspace.left_out(&problem, &margins, None, true, control).unwrap().unwrap();
            let found = workspace.left_out_by_products(&problem, &margins, &settings, control).unwrap().unwrap();
            let apart =
                |a: &[f64], b: &[f64]| (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / m as f64).sqrt();
            let (far, said, moved) = (apart(&found.margins, &exact), found.error.unwrap(), apart(&margins, &exact));
            assert!(far < 1.3 * said && said < 2.0 * far, "{kernel:?} {bias:?}: {far} is not {said}");
            assert!(said < 0.3 * moved, "{kernel:?} {bias:?}: {said} of {moved}");
        }
    }
}
