//! A few landmark rows in place of all: `k(x, z) ≈ φ(x) · φ(z)`, `φ(x) = L⁻¹ k(Z, x)`, `k(Z, Z) = L Lᵀ` (Nyström).
//!
//! The landmarks `Z` are chosen by randomly pivoted Cholesky (Chen, Epperly, Tropp & Webber 2025): each in proportion to
//! what those before left unexplained of the rows' `k(x, x)`. A kernel machine then is a linear one over `φ`, and its
//! score `w · φ(x)` is the expansion `Σ c_j k(z_j, x)`, `c = L⁻ᵀ w`.

use super::{Kernel, KernelKind, KernelRows};
use crate::control::Control;
use crate::data::{Dense, Matrix, Real};
use crate::linalg::{self, Cholesky};
use crate::random::Random;
use crate::{Advice, Error, Remedy, Result};
use rayon::prelude::*;

/// Landmarks are chosen among this many rows (or twenty times as many as are wanted, if that is more).
const CANDIDATES: usize = 10_000;
/// A preconditioner's are chosen among so many times as many as are wanted.
const FEW_CANDIDATES: usize = 4;
/// Rows that a thread maps at a time.
const CHUNK: usize = 256;
/// Rows of which less than this part of the largest `k(x, x)` is left are no landmarks: their part of the map would be rounding.
pub(super) const NOTHING: f64 = 1e-9;

/// Landmark rows and the map they span.
pub struct Landmarks {
    kernel: Kernel,
    /// Which rows they are.
    pub chosen: Vec<usize>,
    rows: Matrix<'static>,
    factor: Cholesky,
}

/// Rows as the map sees them.
pub struct Mapped {
    /// `φ(x_i)`
    pub rows: Matrix<'static>,
    /// `Σ_i (k(x_i, x_i) − ‖φ(x_i)‖²) / Σ_i k(x_i, x_i)`: the part of the kernel that the map leaves out.
    pub residual: f64,
}

impl Landmarks {
    /// Chooses at most `rank` of the rows; fewer if these explain all.
    pub fn choose(kernel: Kernel, rows: &Matrix<'_>, rank: usize, seed: u64, control: Control<'_>) -> Result<Self> {
        Self::check(kernel)?;
        Self::among(kernel, rows, rank, Self::candidates(rows.rows(), rank), seed, control)
    }

    /// At most `rank` of the rows, chosen among few: what preconditions a system need not be the best.
    pub(super) fn spanning(kernel: Kernel, rows: &Matrix<'_>, rank: usize, control: Control<'_>) -> Result<Self> {
        Self::among(kernel, rows, rank, rows.rows().min(FEW_CANDIDATES * rank), 0, control)
    }

    fn among(
        kernel: Kernel,
        rows: &Matrix<'_>,
        rank: usize,
        count: usize,
        seed: u64,
        control: Control<'_>,
    ) -> Result<Self> {
        let mut random = Random::new(seed, 0x6c61_6e64);
        let mut candidates: Vec<usize> = (0..rows.rows()).collect();
        random.shuffle(&mut candidates);
        candidates.truncate(count);
        let selected = rows.select(&candidates);
        let among = KernelRows::new(kernel, &selected, 0.0);
        let diagonal = (0..among.len()).map(|i| among.diagonal(i)).collect();
        let row = |i: usize, out: &mut [f64]| among.row(i, out);
        let (pivots, columns) = pivoted_cholesky(diagonal, row, (rank, NOTHING), &mut random, control)?;
        let n = pivots.len();
        let mut lower = vec![0.0; n * n];
        for (j, column) in columns.iter().enumerate() {
            pivots.iter().enumerate().skip(j).for_each(|(i, &pivot)| lower[j * n + i] = column[pivot]);
        }
        let chosen: Vec<usize> = pivots.iter().map(|&p| candidates[p]).collect();
        Ok(Self { kernel, rows: rows.select(&chosen), chosen, factor: Cholesky::from_factor(lower, n) })
    }

    /// Refuses a kernel that landmark rows cannot stand for.
    pub fn check(kernel: Kernel) -> Result<()> {
        if !matches!(kernel, Kernel::Linear | Kernel::Sigmoid { .. }) {
            return Ok(());
        }
        let kernels = [KernelKind::Rbf, KernelKind::Laplacian, KernelKind::Poly];
        let reason = format!("landmark rows cannot stand for the {} kernel", kernel.name());
        let mut advice = Advice::values("kernel", kernels);
        advice.0.push(Remedy::Drop("approx"));
        Err(Error::conflict(reason, advice))
    }

    /// Among how many of so many rows the landmarks are chosen.
    pub(crate) fn candidates(rows: usize, rank: usize) -> usize {
        rows.min(CANDIDATES.max(rank.saturating_mul(20)))
    }

    /// Maps the rows, if that takes at most `memory` bytes. In double precision: what is certified is the kernel that the landmark
    /// rows mean, not a rounded one.
    pub fn map(&self, rows: &Matrix<'_>, memory: u64, control: Control<'_>) -> Result<Mapped> {
        let values = (rows.rows() as u64).saturating_mul(self.chosen.len() as u64);
        if values.saturating_mul(8) > memory {
            return Err(Error::Memory {
                what: format!("{} rows mapped by {} landmarks", rows.rows(), self.chosen.len()),
                needed: values.saturating_mul(8),
                budget: memory,
                advice: [Remedy::Lower("approx"), Remedy::Raise("memory")].into(),
            });
        }
        let (values, residual) = self.mapped(rows, control)?;
        let values = Dense::new(rows.rows(), self.chosen.len(), values).expect("one number a row and landmark");
        Ok(Mapped { rows: Matrix::DenseF64(values), residual })
    }

    /// `φ(x_i)`, row after row, computed in double precision, and [`Mapped::residual`].
    pub(super) fn mapped<T: Real>(&self, rows: &Matrix<'_>, control: Control<'_>) -> Result<(Vec<T>, f64)> {
        let n = self.chosen.len();
        let (all, landmarks) = (KernelRows::new(self.kernel, rows, 0.0), KernelRows::new(self.kernel, &self.rows, 0.0));
        let mut mapped = vec![T::default(); all.len() * n];
        let sums = mapped.par_chunks_mut((CHUNK * n).max(1)).enumerate().map_init(Vec::new, |values, (chunk, out)| {
            control.check()?;
            let from = chunk * CHUNK;
            let range = from..from + out.len() / n;
            values.resize(out.len(), 0.0);
            landmarks.block(&all, range.clone(), values);
            self.factor.half_solve(values, false);
            out.iter_mut().zip(values.iter()).for_each(|(out, value)| *out = T::of(*value));
            let whole: f64 = range.map(|i| all.diagonal(i)).sum();
            Ok((whole, (whole - linalg::dot(values, values)).max(0.0)))
        });
        let sums: Vec<(f64, f64)> = sums.collect::<Result<_>>()?;
        let (whole, left) = sums.iter().fold((0.0, 0.0), |(whole, left), sum| (whole + sum.0, left + sum.1));
        Ok((mapped, if whole > 0.0 { left / whole } else { 0.0 }))
    }

    /// `c = L⁻ᵀ w`: the coefficients of the landmark rows that score as the weights do over the map.
    pub fn coefficients(&self, weights: &[f64]) -> Vec<f64> {
        let mut c = weights.to_vec();
        self.factor.transposed_half_solve(&mut c);
        c
    }
}

/// Rows beside the landmarks that map them: where score functions `Σ_j c_j k(z_j, x)` over landmarks live, as they are written. An
/// inner product of rows is `k(x, Z) k(Z, Z)⁻¹ k(Z, x')` there.
#[derive(Clone, Copy)]
pub struct Span<'a> {
    /// `Z` and the factor of `k(Z, Z)`.
    pub landmarks: &'a Landmarks,
    /// The rows, not mapped.
    pub rows: &'a Matrix<'a>,
    /// Who watches.
    pub control: Control<'a>,
}

/// A score function over landmark rows beside a dual point.
pub struct Measured {
    /// `‖w‖² = cᵀ k(Z, Z) c`
    pub norm2: f64,
    /// `‖w − Σ_i q_i φ(x_i)‖²`, with what rounding may have added.
    pub distance2: f64,
    /// `Σ_j |c_j| ‖φ(z_j)‖`: scores are off by rounding errors of this times `‖φ(x)‖`.
    pub size: f64,
}

/// Rounding errors of a sum of products, in parts of its terms.
const ROUNDING: f64 = 32.0 * f64::EPSILON;

/// Draws of rounding errors.
const NOISES: usize = 8;

impl Span<'_> {
    /// `Σ_j c_lj k(z_j, x_i)` for every row and each column `l`, row-major: the scores without intercepts, by kernel products.
    pub fn scores(&self, coefficients: &[Vec<f64>]) -> Result<Vec<f64>> {
        let (rows, landmarks) = (self.kernel_rows(), self.kernel_landmarks());
        landmarks.expand(&rows, coefficients, self.control)
    }

    /// `k(x_i, x_i)`, below which the squared length of no mapped row is.
    pub fn diagonal(&self) -> Vec<f64> {
        let rows = self.kernel_rows();
        (0..rows.len()).map(|i| rows.diagonal(i).max(0.0)).collect()
    }

    /// Measures `Σ_j c_j φ(z_j)` and how far it is from `Σ_i q_i φ(x_i)`: `‖L⁻¹ (k(Z, Z) c − k(Z, X) q)‖²`.
    pub fn measure(&self, c: &[f64], q: &[f64]) -> Result<Measured> {
        let (rows, landmarks) = (self.kernel_rows(), self.kernel_landmarks());
        let at = landmarks.product(c, self.control)?;
        let sums = rows.expand(&landmarks, &[q.to_vec()], self.control)?;
        let lengths: Vec<f64> = (0..landmarks.len()).map(|z| landmarks.diagonal(z).max(0.0).sqrt()).collect();
        let size: f64 = c.iter().zip(&lengths).map(|(c, length)| c.abs() * length).sum();
        let own = c.iter().zip(&lengths).map(|(c, length)| (c * length).powi(2)).sum::<f64>().sqrt();
        let other = (0..q.len()).map(|i| q[i] * q[i] * rows.diagonal(i).max(0.0)).sum::<f64>().sqrt();
        let mut apart: Vec<f64> = at.iter().zip(&sums).map(|(a, b)| a - b).collect();
        let off = ROUNDING * rows.amplification() * (own + other);
        self.landmarks.factor.half_solve(&mut apart, false);
        // Errors of landmarks that are alike must not cancel: they are drawn with any sign, a few times over.
        let mut random = Random::new(0, 0x6e6f_6973);
        let mut noise: Vec<f64> = (0..NOISES)
            .flat_map(|_| {
                lengths
                    .iter()
                    .map(|length| if random.unit() < 0.5 { -off * length } else { off * length })
                    .collect::<Vec<_>>()
            })
            .collect();
        self.landmarks.factor.half_solve(&mut noise, false);
        let length = |v: &[f64]| linalg::dot(v, v).sqrt();
        Ok(Measured {
            norm2: linalg::dot(c, &at).max(0.0),
            distance2: (length(&apart) + noise.chunks(c.len().max(1)).map(length).fold(0.0, f64::max)).powi(2),
            size: rows.amplification() * size,
        })
    }

    fn kernel_rows(&self) -> KernelRows<'_> {
        KernelRows::new(self.landmarks.kernel, self.rows, 0.0)
    }

    fn kernel_landmarks(&self) -> KernelRows<'_> {
        KernelRows::new(self.landmarks.kernel, &self.landmarks.rows, 0.0)
    }
}

/// At most `rank` pivots and the columns of the factor they give, `G ≈ Σ_j f_j f_jᵀ`, from the diagonal of `G` and its rows.
pub(crate) fn pivoted_cholesky(
    diagonal: Vec<f64>,
    row: impl Fn(usize, &mut [f64]),
    (rank, nothing): (usize, f64),
    random: &mut Random,
    control: Control<'_>,
) -> Result<(Vec<usize>, Vec<Vec<f64>>)> {
    let n = diagonal.len();
    let mut left = diagonal;
    let least = nothing * left.iter().fold(0.0f64, |a, b| a.max(*b));
    let (mut pivots, mut columns): (Vec<usize>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
    while pivots.len() < rank {
        control.check()?;
        left.iter_mut().filter(|value| **value <= least).for_each(|value| *value = 0.0);
        let Some(pivot) = draw(&left, random) else { break };
        let mut column = vec![0.0; n];
        row(pivot, &mut column);
        let terms: Vec<(f64, &[f64])> = columns.iter().map(|f| (-f[pivot], f.as_slice())).collect();
        linalg::add_rows(&mut column, &terms);
        if column[pivot] <= least {
            left[pivot] = 0.0;
            continue;
        }
        let root = column[pivot].sqrt();
        column.iter_mut().zip(&mut left).for_each(|(f, left)| {
            *f /= root;
            *left -= *f * *f;
        });
        left[pivot] = 0.0;
        pivots.push(pivot);
        columns.push(column);
    }
    Ok((pivots, columns))
}

/// A position in proportion to the weights; none if all are zero.
fn draw(weights: &[f64], random: &mut Random) -> Option<usize> {
    let total: f64 = weights.iter().sum();
    let mut rest = random.unit() * total;
    let mut last = None;
    for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        last = Some(i);
        rest -= weight;
        if rest < 0.0 {
            break;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Rows;

    fn rows(m: usize, d: usize) -> Matrix<'static> {
        let mut random = Random::new(9, 0);
        Matrix::DenseF64(Dense::new(m, d, (0..m * d).map(|_| random.normal()).collect::<Vec<f64>>()).unwrap())
    }

    #[test]
    fn enough_landmarks_give_the_kernel_back() {
        let (matrix, kernel) = (rows(60, 3), Kernel::Rbf { gamma: 0.4 });
        let exact = KernelRows::new(kernel, &matrix, 0.0).matrix(Control::default()).unwrap();
        let landmarks = Landmarks::choose(kernel, &matrix, 1000, 0, Control::default()).unwrap();
        let mapped = landmarks.map(&matrix, 1 << 30, Control::default()).unwrap();
        assert!(mapped.residual < 1e-8, "{}", mapped.residual);
        let Matrix::DenseF64(phi) = &mapped.rows else { panic!("double precision") };
        for i in 0..60 {
            for j in 0..60 {
                assert!((linalg::dot(phi.row(i), phi.row(j)) - exact[i * 60 + j]).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn weights_and_coefficients_score_alike_and_more_landmarks_leave_less() {
        let (matrix, kernel) = (rows(400, 4), Kernel::Rbf { gamma: 0.1 });
        let mut before = 1.0;
        for rank in [5, 20, 80] {
            let landmarks = Landmarks::choose(kernel, &matrix, rank, 3, Control::default()).unwrap();
            assert_eq!(landmarks.chosen.len(), rank);
            let mapped = landmarks.map(&matrix, 1 << 30, Control::default()).unwrap();
            assert!(mapped.residual < before && mapped.residual >= 0.0);
            before = mapped.residual;
            let w: Vec<f64> = (0..rank).map(|j| (j as f64).sin()).collect();
            let c = landmarks.coefficients(&w);
            let support = matrix.select(&landmarks.chosen);
            let rows = KernelRows::new(kernel, &matrix, 0.0);
            let support = KernelRows::new(kernel, &support, 0.0);
            let scores = support.expand(&rows, &[c], Control::default()).unwrap();
            let Matrix::DenseF64(phi) = &mapped.rows else { panic!("double precision") };
            assert!((0..400).all(|i| (phi.dot(i, &w) - scores[i]).abs() < 1e-6));
        }
        let some = Landmarks::choose(kernel, &matrix, 80, 3, Control::default()).unwrap();
        assert!(some.map(&matrix, 4 * 80 * 400, Control::default()).is_err());
        assert!(Landmarks::choose(Kernel::Linear, &matrix, 5, 0, Control::default()).is_err());
    }
}
