//! Leverages of rows that are too many for a factor, estimated by products.

use super::{HIDDEN, LeftOut, Leverages};
use crate::Result;
use crate::control::Control;
use crate::data::Matrix;
use crate::design::{Design, GramProduct};
use crate::kernel::{KernelRows, LowRank, Tiles};
use crate::linalg::{self, Enough, conjugate_gradients};
use crate::problem::Bias;
use crate::random::Random;
use crate::solver::newton::{KernelMatrix, Preconditioner};

/// Random vectors behind an estimate of leverages: twice as many would make its error smaller by 0.7.
const PROBES: usize = 64;
/// How well their systems are solved: better than they tell, and than values in single precision would hide.
const ACCURACY: f64 = 1e-4;
/// Most products for that.
const MOST_PRODUCTS: usize = 500;
/// Numbers a row that conjugate gradients keep of each vector: it, its solution, residual and direction, all directions, their products.
const KEPT: u64 = 6;

/// Writes a matrix times each column.
type Apply<'a> = Box<dyn Fn(&[f64], &mut [f64]) -> Result<()> + 'a>;

/// `N = I + √H K_SS √H` of the rows `S` with curvature, which is only multiplied with.
pub struct LeverageSystem<'a> {
    rows: &'a LeftOut<'a>,
    h: Vec<f64>,
    /// `√h`
    root: Vec<f64>,
    /// `k(x_i, x_i)`
    squares: Vec<f64>,
    known: Known<'a>,
    /// `N`
    apply: Apply<'a>,
    /// Vectors that are multiplied with together.
    at_once: usize,
}

/// Leverages that were estimated.
pub struct Estimate {
    /// Those of the active rows.
    pub leverage: Leverages,
    /// The standard errors of `h_i l_i`.
    pub errors: Vec<f64>,
}

/// What vectors of random signs told.
struct Told {
    /// `u = N⁻¹ √h`; nothing without an intercept.
    pull: Vec<f64>,
    /// Of `z ∘ (N⁻¹ − Q⁻¹) z`, the sums over the vectors `z` and those of the squares.
    sum: Vec<f64>,
    squares: Vec<f64>,
}

impl<'a> LeverageSystem<'a> {
    /// Over a kernel.
    pub fn of_tiles(
        rows: &'a LeftOut<'a>,
        (tiles, kernel_rows): (&'a Tiles, &'a KernelRows<'a>),
        control: Control<'a>,
    ) -> Result<Self> {
        let (active, h, root) = rows.system();
        let squares: Vec<f64> = active.iter().map(|&i| kernel_rows.diagonal(i)).collect();
        let part = tiles.low_rank(kernel_rows, &h, control)?;
        let known = Known::new(Some((part, kernel_rows.len())), active, &h, &squares)?;
        let (matrix, factors) = (KernelMatrix::Tiled(tiles, kernel_rows), root.clone());
        let apply = Box::new(move |v: &[f64], out: &mut [f64]| matrix.curve(active, &factors, v, out));
        Ok(Self { rows, h, root, squares, known, apply, at_once: PROBES + 1 })
    }

    /// Over the rows of a linear problem, as many vectors at once as fit the memory; `None` if none does.
    pub fn of_rows(rows: &'a LeftOut<'a>, matrix: &'a Matrix<'a>, memory: u64) -> Result<Option<Self>> {
        let (active, h, root) = rows.system();
        let (all, each) = GramProduct::bytes(matrix, active);
        let room = memory.saturating_sub(all) / (each + 8 * KEPT * active.len() as u64).max(1);
        let Some(gram) = (room > 0).then(|| GramProduct::new(matrix, active, root.clone())).flatten() else {
            return Ok(None);
        };
        let norms2 = Design::new(matrix, Bias::None).norms2();
        let squares: Vec<f64> = active.iter().map(|&i| norms2[i]).collect();
        let known = Known::new(None, active, &h, &squares)?;
        let apply = Box::new(move |v: &[f64], out: &mut [f64]| {
            out.copy_from_slice(v);
            gram.add(v, out);
            Ok(())
        });
        let at_once = room.min(PROBES as u64 + 1) as usize;
        Ok(Some(Self { rows, h, root, squares, known, apply, at_once }))
    }

    /// The leverages; `None` where the products do not come to an end, or where the margins they lead to tell more of chance than of
    /// the rows left out ([`LeftOut::tells`]).
    ///
    /// `1 − h_i l_i = [N⁻¹]_ii`, less `u_i² / (r + Σ √h_j u_j)`, `u = N⁻¹ √h`, for an intercept. Most of it is known: `Q = D + B Bᵀ` has
    /// the part `B Bᵀ` of low rank that preconditions Newton's systems (none of a linear problem) and, by its diagonal `D`, that of `N`.
    /// What `Q⁻¹` lacks is `z ∘ (N⁻¹ − Q⁻¹) z` on average over vectors `z` of random signs (Bekas, Kokiopoulou & Saad 2007), and how
    /// these differ is the standard error.
    pub fn estimate(&self, bias: Bias, seed: u64, control: Control<'_>) -> Result<Option<Estimate>> {
        let Some(told) = self.ask(bias, seed, control)? else { return Ok(None) };
        let (k, count) = (self.h.len(), PROBES as f64);
        let pull = bias.ridge() + self.root.iter().zip(&told.pull).map(|(root, u)| root * u).sum::<f64>();
        let (mut rests, mut errors) = (Vec::with_capacity(k), Vec::with_capacity(k));
        let (least, without) = (self.least(bias), self.least(Bias::None));
        for (p, known) in self.known.diagonal().into_iter().enumerate() {
            let mean = told.sum[p] / count;
            let taken = told.pull.get(p).map_or(0.0, |u| u * u / pull);
            let rest = ((known + mean).clamp(without(p), 1.0) - taken).max(least(p));
            rests.push(rest.max(HIDDEN));
            errors.push(((told.squares[p] / count - mean * mean).max(0.0) / (count - 1.0)).sqrt());
        }
        let found = Estimate { leverage: Leverages::rough(rests), errors };
        Ok(self.rows.tells(&found).then_some(found))
    }

    /// Solves with `√h`, if there is an intercept, and with the vectors of random signs.
    fn ask(&self, bias: Bias, seed: u64, control: Control<'_>) -> Result<Option<Told>> {
        let k = self.h.len();
        let mut random = Random::new(seed, 0x6c65_6674);
        let mut told = Told { pull: Vec::new(), sum: vec![0.0; k], squares: vec![0.0; k] };
        let vectors: Vec<usize> = (usize::from(bias == Bias::None)..=PROBES).collect();
        for vectors in vectors.chunks(self.at_once).filter(|_| k > 0) {
            let mut rhs = Vec::with_capacity(vectors.len() * k);
            for &vector in vectors {
                match vector {
                    0 => rhs.extend_from_slice(&self.root),
                    _ => rhs.extend((0..k).map(|_| if random.bits() >> 63 == 0 { 1.0 } else { -1.0 })),
                }
            }
            let Some(solved) = self.solved(&rhs, control)? else { return Ok(None) };
            for (&vector, (z, x)) in vectors.iter().zip(rhs.chunks_exact(k).zip(solved.chunks_exact(k))) {
                match vector {
                    0 => told.pull = x.to_vec(),
                    _ => told.hear(&self.known, z, x),
                }
            }
        }
        Ok(Some(told))
    }

    /// `N⁻¹` times each column; `None` where these need too many products.
    fn solved(&self, rhs: &[f64], control: Control<'_>) -> Result<Option<Vec<f64>>> {
        let mut solved = vec![0.0; rhs.len()];
        let apply = |v: &[f64], out: &mut [f64]| {
            control.check()?;
            (self.apply)(v, out)
        };
        let nearly = |v: &[f64], out: &mut [f64]| self.known.solve(v, out);
        let enough = Enough::Residual(ACCURACY);
        let end = conjugate_gradients(self.h.len(), apply, nearly, rhs, &mut solved, enough, MOST_PRODUCTS)?;
        Ok(end.converged.then_some(solved))
    }

    /// What `1 − h_i l_i` is at least.
    ///
    /// No diagonal of the inverse of a positive definite matrix is below the inverse of its diagonal, `1 + h_i (k_ii + 1/r)` with a
    /// regularised intercept. A free one leaves the vectors that are orthogonal to `√h`. Of these `q = e_i − √h_i √h / Σ h` says that
    /// it is at least `(qᵀq)² / qᵀNq`, where `qᵀq = 1 − h_i / Σ h` and `qᵀNq = qᵀq + h_i ‖φ(x_i) − φ̄‖²`; the mean `φ̄` is no longer than
    /// the root of the mean square.
    fn least(&self, bias: Bias) -> impl Fn(usize) -> f64 {
        let total: f64 = self.h.iter().sum();
        let radius = (linalg::dot(&self.h, &self.squares) / total).sqrt();
        move |p| {
            let (h, square) = (self.h[p], self.squares[p]);
            if bias != Bias::Free {
                return 1.0 / (1.0 + h * (square + bias.offset()));
            }
            let part = 1.0 - h / total;
            part * part / (part + h * (square.sqrt() + radius).powi(2))
        }
    }
}

impl Told {
    /// Takes in `x = N⁻¹ z`.
    fn hear(&mut self, known: &Known<'_>, z: &[f64], x: &[f64]) {
        let mut by_known = vec![0.0; z.len()];
        known.solve(z, &mut by_known);
        for (p, (z, (x, known))) in z.iter().zip(x.iter().zip(&by_known)).enumerate() {
            let lacking = z * (x - known);
            self.sum[p] += lacking;
            self.squares[p] += lacking * lacking;
        }
    }
}

/// `Q = D + B Bᵀ`: `D^½ (I + B'B'ᵀ) D^½` with `B' = D^-½ B`, or `D` alone.
struct Known<'a> {
    /// `D^-½`
    scale: Vec<f64>,
    inner: Option<Preconditioner<'a>>,
}

impl<'a> Known<'a> {
    /// From a part of low rank of the matrix of so many rows, if there is one, and the diagonal of the matrix.
    fn new(part: Option<(&'a LowRank, usize)>, active: &[usize], h: &[f64], squares: &[f64]) -> Result<Self> {
        let explained =
            |i: usize| part.map_or(0.0, |(part, _)| part.row(i).iter().map(|f| f64::from(*f).powi(2)).sum::<f64>());
        let scale =
            |((&i, h), square): ((&usize, &f64), &f64)| 1.0 / (1.0 + (h * (square - explained(i))).max(0.0)).sqrt();
        let scale: Vec<f64> = active.iter().zip(h).zip(squares).map(scale).collect();
        let inner = |(part, rows): (&'a LowRank, usize)| {
            let root: Vec<f64> = scale.iter().zip(h).map(|(s, h)| s * h.sqrt()).collect();
            Preconditioner::new(part, rows, active.to_vec(), root, &mut None)
        };
        let inner = part.map(inner).transpose()?;
        Ok(Self { scale, inner })
    }

    /// Writes `Q⁻¹ v`.
    fn solve(&self, v: &[f64], out: &mut [f64]) {
        match &self.inner {
            Some(inner) => {
                let scaled: Vec<f64> = v.iter().zip(&self.scale).map(|(v, s)| v * s).collect();
                inner.apply(&scaled, out);
                out.iter_mut().zip(&self.scale).for_each(|(out, s)| *out *= s);
            }
            None => out.iter_mut().zip(v.iter().zip(&self.scale)).for_each(|(out, (v, s))| *out = v * s * s),
        }
    }

    /// The diagonal of `Q⁻¹`.
    fn diagonal(&self) -> Vec<f64> {
        let inner = self.inner.as_ref().map_or_else(|| vec![1.0; self.scale.len()], Preconditioner::inverse_diagonal);
        inner.into_iter().zip(&self.scale).map(|(d, s)| d * s * s).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Csr, Dense};
    use crate::kernel::{GramPrecision, Kernel};
    use crate::loss::MarginLoss;
    use crate::problem::MarginProblem;
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

    /// Rows of a dozen words out of `d`, the first of which are common, and a label that some of them make likely.
    fn words(m: usize, d: usize) -> (Matrix<'static>, Vec<f64>) {
        let mut random = Random::new(8, 0);
        let (mut offsets, mut columns, mut y) = (vec![0], Vec::new(), Vec::new());
        for _ in 0..m {
            let mut row: Vec<u32> = (0..12).map(|_| (d as f64 * random.unit().powi(3)) as u32).collect();
            row.sort_unstable();
            row.dedup();
            let liked = row.iter().filter(|j| **j % 5 == 0).count() as f64 + random.normal();
            y.push(if liked > 2.5 { 1.0 } else { -1.0 });
            columns.extend(row);
            offsets.push(columns.len() as u64);
        }
        let values: Vec<f64> = columns.iter().map(|j| 0.1 + f64::from(j % 7) / 12.0).collect();
        (Matrix::SparseF64(Csr::new(d, offsets, columns, values).unwrap()), y)
    }

    fn spread(rows: &Matrix<'_>) -> Matrix<'static> {
        let (design, d) = (Design::new(rows, Bias::None), rows.cols());
        let mut values = vec![0.0; rows.rows() * d];
        values.chunks_exact_mut(d).enumerate().for_each(|(i, row)| design.spread(i, 1.0, row));
        Matrix::DenseF64(Dense::new(rows.rows(), d, values).unwrap())
    }

    /// Estimated margins with what their error is said to be, those by a factor, and those with the row.
    struct Found {
        estimated: Vec<f64>,
        said: f64,
        exact: Vec<f64>,
        plain: Vec<f64>,
    }

    fn found(rows: &Matrix<'_>, y: &[f64], kernel: Kernel, cost: f64, bias: Bias) -> Found {
        let weights: Vec<f64> = (0..y.len()).map(|i| [1.0, 0.5, 2.0][i % 3]).collect();
        let settings = Settings { tol: 1e-8, ..Settings::default() };
        let control = Control::default();
        let loss = MarginLoss::band(cost, 0.25 * cost, 0.5);
        let problem = MarginProblem { y, weights: &weights, loss, variance: 0.0, bias };
        let workspace = Workspace::new(rows, kernel, settings);
        let ending = workspace.solve(&problem, GramPrecision::Double, &Start::default(), &settings, control).unwrap();
        let plain = ending.margins.unwrap();
        let exact = workspace.left_out(&problem, &plain, None, true, control).unwrap().unwrap();
        let found = workspace.left_out_by_products(&problem, &plain, &settings, control).unwrap().unwrap();
        Found { estimated: found.margins, said: found.error.unwrap(), exact, plain }
    }

    fn apart(a: &[f64], b: &[f64]) -> f64 {
        (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64).sqrt()
    }

    /// Fails unless estimates are as far from the exact margins as they say, and nearer than margins with the row.
    fn check(found: &Found, case: &str) {
        let (far, moved) = (apart(&found.estimated, &found.exact), apart(&found.plain, &found.exact));
        let said = found.said;
        assert!(far < 1.3 * said && said < 2.0 * far, "{case}: {far} is not {said}");
        assert!(said < 0.3 * moved, "{case}: {said} of {moved}");
    }

    #[test]
    fn estimates_are_as_far_from_the_factor_as_they_say() {
        let (rows, y) = rows(2500);
        let cases = [
            (Kernel::Rbf { gamma: 0.2 }, 1.0, Bias::Free),
            (Kernel::Rbf { gamma: 2.0 }, 10.0, Bias::Feature(1.0)),
            (Kernel::Laplacian { gamma: 0.3 }, 0.3, Bias::None),
        ];
        for (kernel, cost, bias) in cases {
            check(&found(&rows, &y, kernel, cost, bias), &format!("{kernel:?} {bias:?}"));
        }
    }

    #[test]
    fn so_are_those_of_wide_rows_sparse_or_dense() {
        let (sparse, y) = words(1500, 2100);
        let dense = spread(&sparse);
        let cases = [(0.1, Bias::Free), (0.3, Bias::None), (1.0, Bias::Feature(2.0))];
        for (cost, bias) in cases {
            let [sparse, dense] = [&sparse, &dense].map(|rows| found(rows, &y, Kernel::Linear, cost, bias));
            check(&sparse, &format!("sparse {cost} {bias:?}"));
            let between = apart(&sparse.estimated, &dense.estimated);
            assert!(between < 0.01 * sparse.said, "{cost} {bias:?}: dense rows are {between} off");
        }
    }

    /// Rows of as many features as there are rows nearly fit every label: `1 − h_i l_i` is smaller than its error.
    #[test]
    fn estimates_that_chance_would_hide_are_none() {
        let (m, mut random) = (1000, Random::new(4, 0));
        let values: Vec<f64> = (0..m * m).map(|_| random.normal()).collect();
        let rows = Matrix::DenseF64(Dense::new(m, m, values).unwrap());
        let y: Vec<f64> = (0..m).map(|_| if random.unit() < 0.5 { 1.0 } else { -1.0 }).collect();
        let weights = vec![1.0; m];
        let settings = Settings { tol: 1e-9, ..Settings::default() };
        let of = |cost: f64| {
            let problem = MarginProblem {
                y: &y,
                weights: &weights,
                loss: MarginLoss::band(cost, cost, 0.0),
                variance: 0.0,
                bias: Bias::None,
            };
            let workspace = Workspace::new(&rows, Kernel::Linear, settings);
            let start = Start::default();
            let ending = workspace.solve(&problem, GramPrecision::Double, &start, &settings, Control::default());
            let plain = ending.unwrap().margins.unwrap();
            let left_out = LeftOut::new(&plain, &problem);
            let system = LeverageSystem::of_rows(&left_out, &rows, 1 << 30).unwrap().unwrap();
            let told = system.ask(Bias::None, 0, Control::default()).unwrap().is_some();
            (told, system.estimate(Bias::None, 0, Control::default()).unwrap().is_some())
        };
        assert_eq!(of(1e-4), (true, true));
        assert_eq!(of(0.1), (true, false));
    }

    #[test]
    fn features_and_rows_tell_the_same_beyond_the_features_of_normal_equations() {
        let (sparse, y) = words(2300, 2050);
        let dense = spread(&sparse);
        let (weights, margins) = (vec![1.0; y.len()], vec![0.2; y.len()]);
        let loss = MarginLoss::band(3.0, 1.0, 0.5);
        let problem = MarginProblem { y: &y, weights: &weights, loss, variance: 0.0, bias: Bias::Free };
        let left_out = LeftOut::new(&margins, &problem);
        let mut matrix = KernelRows::new(Kernel::Linear, &sparse, 0.0).matrix(Control::default()).unwrap();
        matrix.iter_mut().step_by(y.len() + 1).zip(left_out.ridges()).for_each(|(pivot, ridge)| *pivot += ridge);
        let by_rows = left_out.by_rows(matrix, Bias::Free).unwrap();
        for rows in [&sparse, &dense] {
            let by_features = left_out.by_features(&Design::new(rows, Bias::Free), None).unwrap();
            assert!(apart(&by_features.rest, &by_rows.rest) < 1e-9);
        }
    }

    #[test]
    fn neither_threads_nor_memory_show() {
        let (sparse, y) = words(1500, 2100);
        let dense = spread(&sparse);
        let (weights, margins) = (vec![1.0; y.len()], vec![0.2; y.len()]);
        let loss = MarginLoss::band(3.0, 1.0, 0.5);
        let problem = MarginProblem { y: &y, weights: &weights, loss, variance: 0.0, bias: Bias::Free };
        let left_out = LeftOut::new(&margins, &problem);
        let of = |rows: &Matrix<'_>, threads: usize, memory: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let system = LeverageSystem::of_rows(&left_out, rows, memory).unwrap()?;
                let estimate = system.estimate(Bias::Free, 0, Control::default()).unwrap().unwrap();
                Some((estimate.leverage.rest, system.at_once))
            })
        };
        for rows in [&sparse, &dense] {
            assert_eq!(of(rows, 1, 1 << 30).unwrap(), of(rows, 3, 1 << 30).unwrap());
        }
        let ((all, together), (parts, few)) = (of(&sparse, 2, 1 << 30).unwrap(), of(&sparse, 2, 2 << 20).unwrap());
        assert!(together == 65 && few < 30, "{together} {few}");
        assert_eq!(all, parts);
        assert!(of(&sparse, 1, 1 << 16).is_none());
    }
}
