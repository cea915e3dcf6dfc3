//! The weight vector of a linear problem as a [`Space`]: Newton systems by normal equations or conjugate gradients.

use super::{Direction, QuadraticModel, Space};
use crate::control::Control;
use crate::design::{Design, RowSurvey};
use crate::linalg::{self, Cholesky, Enough, conjugate_gradients};
use crate::problem::Bias;
use crate::solver::workspace::Factor;
use crate::{Error, Result};

/// Up to this many weights, the `n × n` normal equations are formed and factored: 32 MB, and `n³/3` multiplications a step, a third of a
/// processor second.
pub const NORMAL_EQUATIONS: usize = 2000;
/// Most products of conjugate gradients a step; what they have not found by then, the next step goes on with.
const MOST_PRODUCTS: usize = 1000;

/// `w` with its margins.
pub struct WeightSpace<'a> {
    rows: &'a Design<'a>,
    y: &'a [f64],
    w: Vec<f64>,
    margins: Vec<f64>,
    delta: Vec<f64>,
    /// Memory for the margins of the next direction.
    spare: Vec<f64>,
    /// `Σ a_i y_i x̃_i` and its `a`: those of the last [`distance2`](Space::distance2), or where the step since then would
    /// have led without kinks, which is near the next.
    combined: Vec<f64>,
    combined_of: Vec<f64>,
    /// `Σ h_i x̃_i x̃_iᵀ δ`, the variance included, if the normal equations are there to tell: what the step takes from
    /// `combined`.
    taken: Option<Vec<f64>>,
    /// `h` and `Σ h_i x̃_i x̃_iᵀ` of the last step: the next one's differ in few rows.
    curve: Option<(Vec<f64>, Vec<f64>)>,
    /// `2 κ (Σ s_i x̃_i x̃_iᵀ − m z zᵀ)`, the constant part of the normal equations; empty until it is needed.
    variance_matrix: Vec<f64>,
    /// The factor of the last system.
    factor: Option<Factor>,
    /// Products of conjugate gradients so far.
    pub products: usize,
}

impl<'a> WeightSpace<'a> {
    /// The space at `w`.
    pub fn new(rows: &'a Design<'a>, y: &'a [f64], w: Vec<f64>) -> Self {
        let mut margins = vec![0.0; rows.len()];
        if w.iter().any(|w| *w != 0.0) {
            rows.margins(y, &w, &mut margins);
        }
        Self::at(rows, y, w, margins)
    }

    /// The space at `w`, where `slopes(i, γ_i)` is `(a_i, h_i)`: one pass finds all that the first step needs.
    pub fn surveyed(
        rows: &'a Design<'a>,
        y: &'a [f64],
        w: Vec<f64>,
        slopes: impl Fn(usize, f64) -> (f64, f64) + Sync,
    ) -> Self {
        let RowSurvey { margins, a, numbers: curvature, combined, matrix } = rows.survey(y, &w, slopes);
        let curve = Some((curvature, matrix));
        Self { combined, combined_of: a, curve, ..Self::at(rows, y, w, margins) }
    }

    /// The space at `w`, whose margins are known.
    pub fn at(rows: &'a Design<'a>, y: &'a [f64], w: Vec<f64>, margins: Vec<f64>) -> Self {
        Self {
            rows,
            y,
            w,
            margins,
            delta: Vec::new(),
            spare: Vec::new(),
            combined: Vec::new(),
            combined_of: Vec::new(),
            taken: None,
            curve: None,
            variance_matrix: Vec::new(),
            factor: None,
            products: 0,
        }
    }

    /// What is left when nothing moves any more: the rows, the weights, and the factor of the last system, if there was one.
    pub fn end(self) -> (&'a Design<'a>, Vec<f64>, Option<Factor>) {
        (self.rows, self.w, self.factor)
    }

    /// All weights, that of the constant feature last.
    pub fn weights(&self) -> &[f64] {
        &self.w
    }

    /// `H δ = −∇`, `H = R + Σ h_i x̃_i x̃_iᵀ − 2 κ m z zᵀ` with `h_i` including `2 κ s_i` and `z = Σ s_i y_i x̃_i / m`.
    fn solve(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<Vec<f64>> {
        let n = self.rows.width();
        let mut rhs = self.combined.clone();
        for (j, (r, w)) in rhs.iter_mut().zip(&self.w).enumerate() {
            *r -= self.rows.ridge(j) * w;
        }
        if n <= NORMAL_EQUATIONS {
            return self.by_normal_equations(model, rhs);
        }
        let double = 2.0 * model.variance;
        let h: Vec<f64> = model.curvature.iter().zip(model.weights).map(|(h, s)| h + double * s).collect();
        let rank_one = (double > 0.0).then(|| self.mean_direction(model));
        let accuracy = (0.3 * model.gap.sqrt()).clamp(1e-9, 0.1);
        self.by_conjugate_gradients(&h, rank_one.as_deref(), &rhs, accuracy, control)
    }

    /// `√(2 κ m) z`
    fn mean_direction(&self, model: &QuadraticModel<'_>) -> Vec<f64> {
        let total: f64 = model.weights.iter().sum();
        let mut z = self.rows.combine(|i| model.weights[i] * self.y[i]);
        let root = (2.0 * model.variance / total).sqrt();
        z.iter_mut().for_each(|z| *z *= root);
        z
    }

    fn add_variance(&mut self, model: &QuadraticModel<'_>, matrix: &mut [f64]) {
        let n = self.rows.width();
        if self.variance_matrix.is_empty() {
            let h: Vec<f64> = model.weights.iter().map(|s| 2.0 * model.variance * s).collect();
            self.variance_matrix = self.rows.curve_matrix(&h);
            let z = self.mean_direction(model);
            for j in 0..n {
                linalg::axpy(-z[j], &z[j..], &mut self.variance_matrix[j * n + j..(j + 1) * n]);
            }
        }
        linalg::axpy(1.0, &self.variance_matrix, matrix);
    }

    /// `Σ h_i x̃_i x̃_iᵀ`, from the last one where few rows changed their `h`.
    fn curve_matrix(&mut self, h: &[f64]) -> Vec<f64> {
        let n = self.rows.width();
        if n * n > h.len() {
            return self.rows.curve_matrix(h);
        }
        let (mut known, mut matrix) = self.curve.take().unwrap_or_default();
        let changed = |known: &[f64]| known.iter().zip(h).filter(|(old, new)| old != new).count();
        match if known.is_empty() { h.len() } else { changed(&known) } {
            0 => {}
            few if 4 * few < h.len() => {
                linalg::axpy(1.0, &self.rows.curve_change(&known, h), &mut matrix);
                known.copy_from_slice(h);
            }
            _ => (known, matrix) = (h.to_vec(), self.rows.curve_matrix(h)),
        }
        self.curve = Some((known, matrix.clone()));
        matrix
    }

    fn by_normal_equations(&mut self, model: &QuadraticModel<'_>, mut rhs: Vec<f64>) -> Result<Vec<f64>> {
        let n = self.rows.width();
        let mut matrix = self.curve_matrix(model.curvature);
        if model.variance > 0.0 {
            self.add_variance(model, &mut matrix);
        }
        let factor = factored(&matrix, n, self.rows.bias())?;
        factor.solve(&mut rhs);
        let mut taken = vec![0.0; n];
        linalg::symmetric_product(&matrix, &rhs, &mut taken);
        self.taken = Some(taken);
        self.factor = (model.variance == 0.0).then(|| Factor { curvature: model.curvature.to_vec(), cholesky: factor });
        Ok(rhs)
    }

    fn by_conjugate_gradients(
        &mut self,
        h: &[f64],
        rank_one: Option<&[f64]>,
        rhs: &[f64],
        accuracy: f64,
        control: Control<'_>,
    ) -> Result<Vec<f64>> {
        let rows = self.rows;
        let curve = |v: &[f64]| Ok(rows.curve(h, v));
        let (solution, products) =
            by_products(curve, rows.curve_diagonal(h), rows.bias(), rank_one, rhs, accuracy, control)?;
        self.products += products;
        Ok(solution)
    }
}

/// How much the weight at a position is regularised: not at all if it is a free intercept, which is the last of `n`.
fn ridge(bias: Bias, position: usize, n: usize) -> f64 {
    if bias == Bias::Free && position + 1 == n { 0.0 } else { 1.0 }
}

/// The factor of `R + matrix`, the Newton system by its normal equations.
pub fn factored(matrix: &[f64], n: usize, bias: Bias) -> Result<Cholesky> {
    let largest = (0..n).map(|j| matrix[j * n + j]).fold(0.0f64, f64::max);
    // A free intercept has no ridge of its own. Where no row curves, any pivot shows the way downhill, and the line search
    // finds how far; where rounding ate a pivot, a lift of the diagonal brings it back.
    let flat = bias == Bias::Free && matrix[n * n - 1] <= 1e-14 * largest;
    let system = || {
        let mut system = matrix.to_vec();
        (0..n).for_each(|j| system[j * n + j] += ridge(bias, j, n));
        if flat {
            system[n * n - 1] += 1.0;
        }
        system
    };
    Cholesky::lifted(system, n).map_err(|_| Error::numeric("normal equations", "the matrix is not positive definite"))
}

/// Solves `(R + H − z zᵀ) x = rhs` by conjugate gradients, `curve(v) = H v` with this diagonal; `z` is the rank-one part, if
/// there is one. Returns the number of products beside the solution.
pub fn by_products(
    mut curve: impl FnMut(&[f64]) -> Result<Vec<f64>>,
    mut diagonal: Vec<f64>,
    bias: Bias,
    rank_one: Option<&[f64]>,
    rhs: &[f64],
    accuracy: f64,
    control: Control<'_>,
) -> Result<(Vec<f64>, usize)> {
    let n = rhs.len();
    for (j, value) in diagonal.iter_mut().enumerate() {
        *value += ridge(bias, j, n);
        if let Some(z) = rank_one {
            *value = (*value - z[j] * z[j]).max(1e-3 * *value);
        }
        if *value <= 0.0 {
            *value = 1.0;
        }
    }
    let apply = |v: &[f64], product: &mut [f64]| {
        control.check()?;
        product.copy_from_slice(&curve(v)?);
        for (j, (out, v)) in product.iter_mut().zip(v).enumerate() {
            *out += ridge(bias, j, n) * v;
        }
        if let Some(z) = rank_one {
            linalg::axpy(-linalg::dot(z, v), z, product);
        }
        Ok(())
    };
    let scale = |r: &[f64], z: &mut [f64]| {
        z.iter_mut().zip(r.iter().zip(&diagonal)).for_each(|(z, (r, d))| *z = r / d);
    };
    let mut solution = vec![0.0; n];
    let enough = Enough::Preconditioned(accuracy);
    let end = conjugate_gradients(n, apply, scale, rhs, &mut solution, enough, MOST_PRODUCTS)?;
    Ok((solution, end.products))
}

impl Space for WeightSpace<'_> {
    fn margins(&self) -> &[f64] {
        &self.margins
    }

    fn norm2(&self) -> f64 {
        let w = self.rows.regularised(&self.w);
        linalg::dot(w, w)
    }

    fn distance2(&mut self, a: &[f64]) -> Result<f64> {
        if self.combined_of.is_empty() {
            self.combined = self.rows.combine(|i| a[i] * self.y[i]);
            self.combined_of = a.to_vec();
        } else {
            let change = self.rows.combine_change(self.y, &mut self.combined_of, a);
            linalg::axpy(1.0, &change, &mut self.combined);
        }
        let (w, c) = (self.rows.regularised(&self.w), self.rows.regularised(&self.combined));
        Ok(w.iter().zip(c).map(|(w, c)| (w - c).powi(2)).sum())
    }

    fn direction(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<Direction> {
        self.taken = None;
        self.delta = self.solve(model, control)?;
        let mut margins = std::mem::take(&mut self.spare);
        margins.resize(self.margins.len(), 0.0);
        self.rows.margins(self.y, &self.delta, &mut margins);
        let (w, delta) = (self.rows.regularised(&self.w), self.rows.regularised(&self.delta));
        Ok(Direction { margins, along: linalg::dot(w, delta), norm2: linalg::dot(delta, delta) })
    }

    fn advance(&mut self, step: f64, direction: Direction, model: &QuadraticModel<'_>) {
        linalg::axpy(step, &self.delta, &mut self.w);
        linalg::axpy(step, &direction.margins, &mut self.margins);
        if let Some(taken) = self.taken.take() {
            linalg::axpy(-step, &taken, &mut self.combined);
            model.lessen(&mut self.combined_of, step, &direction.margins);
        }
        self.spare = direction.margins;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::loss::MarginLoss;
    use crate::problem::MarginProblem;
    use crate::random::Random;

    /// `a_i` and `h_i` at these margins.
    fn slopes(problem: &MarginProblem<'_>, margins: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let row = |(g, s): (&f64, &f64)| (-s * problem.loss.slope(*g), s * problem.loss.curvature(*g));
        let (v, h): (Vec<f64>, Vec<f64>) = margins.iter().zip(problem.weights).map(row).unzip();
        (v.iter().zip(problem.variance_part(margins)).map(|(v, u)| v + u).collect(), h)
    }

    #[test]
    fn what_is_carried_from_step_to_step_is_what_a_pass_would_find() {
        let (m, d) = (400, 6);
        let mut random = Random::new(7, 0);
        let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
        let y: Vec<f64> = (0..m).map(|i| if random.normal() + values[i * d] > 0.0 { 1.0 } else { -1.0 }).collect();
        let weights: Vec<f64> = (0..m).map(|i| 1.0 + (i % 3) as f64).collect();
        let x = Matrix::DenseF64(Dense::new(m, d, values).unwrap());
        for (bias, variance) in [(Bias::None, 0.0), (Bias::Free, 0.0), (Bias::Feature(2.0), 0.01), (Bias::Free, 0.01)] {
            let loss = MarginLoss::band(5.0, 2.0, 0.2);
            let problem = MarginProblem { y: &y, weights: &weights, loss, variance, bias };
            let rows = Design::new(&x, bias);
            let mut space = WeightSpace::surveyed(&rows, &y, vec![0.3; rows.width()], |i, g| {
                (-weights[i] * loss.slope(g), weights[i] * loss.curvature(g))
            });
            for step in [0.5, 1.0, 0.25, 1.0] {
                let (a, h) = slopes(&problem, space.margins());
                let fresh = WeightSpace::new(&rows, &y, space.weights().to_vec()).distance2(&a).unwrap();
                let carried = space.distance2(&a).unwrap();
                assert!((carried - fresh).abs() <= 1e-9 * fresh + 1e-12, "{bias:?} {variance}: {carried} {fresh}");
                let model = QuadraticModel {
                    a: &a,
                    curvature: &h,
                    variance,
                    weights: &weights,
                    gap: 1e-17,
                    tol: 0.0,
                    scale: 1.0,
                };
                let direction = space.direction(&model, Control::default()).unwrap();
                space.advance(step, direction, &model);
            }
            let fresh = WeightSpace::new(&rows, &y, space.weights().to_vec());
            let apart = fresh.margins().iter().zip(space.margins()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(apart < 1e-12, "{apart}");
        }
    }
}
