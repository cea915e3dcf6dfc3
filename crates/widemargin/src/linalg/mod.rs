//! Dense linear algebra: the only place that knows faer. Symmetric matrices are `n × n` slices of which the lower
//! triangle (column-major) counts.

mod cg;

pub use cg::{Enough, conjugate_gradients};

use crate::data::{Real, dense_dot};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{BlockStructure, matmul as triangular_matmul};
use faer::linalg::triangular_inverse::invert_lower_triangular;
use faer::linalg::triangular_solve::{solve_lower_triangular_in_place, solve_upper_triangular_in_place};
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How finely faer may split its work. A constant, not the number of threads: the split decides the order of sums,
/// and results must not depend on how many threads there are.
fn parallel() -> Par {
    Par::rayon(8)
}

/// A symmetric matrix that should be positive definite is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPositive {
    /// The first pivot that failed.
    pub pivot: usize,
}

/// The first lift of a diagonal, in parts of its largest entry: a few rounding errors.
const FIRST_LIFT: f64 = 1e-14;

/// `A = L Lᵀ`
pub struct Cholesky {
    n: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors the `n × n` matrix in place.
    pub fn new(mut matrix: Vec<f64>, n: usize) -> Result<Self, NotPositive> {
        assert_eq!(matrix.len(), n * n, "a square matrix");
        let mut memory =
            MemBuffer::new(llt::factor::cholesky_in_place_scratch::<f64>(n, parallel(), Default::default()));
        llt::factor::cholesky_in_place(
            MatMut::from_column_major_slice_mut(&mut matrix, n, n),
            Default::default(),
            parallel(),
            MemStack::new(&mut memory),
            Default::default(),
        )
        .map_err(|llt::factor::LltError::NonPositivePivot { index }| NotPositive { pivot: index })?;
        if matrix.iter().step_by(n + 1).any(|pivot| !pivot.is_finite()) {
            return Err(NotPositive { pivot: 0 });
        }
        Ok(Self { n, lower: matrix })
    }

    /// The factor of `matrix()`, lifted: where rounding ate a pivot (duplicate rows, a tiny ridge), the diagonal is raised, as
    /// little as will do.
    pub fn lifted(mut matrix: impl FnMut() -> Vec<f64>, n: usize) -> Result<Self, NotPositive> {
        let mut lift = 0.0;
        loop {
            let mut raised = matrix();
            let largest = raised.iter().step_by(n + 1).fold(f64::MIN_POSITIVE, |most, pivot| most.max(pivot.abs()));
            raised.iter_mut().step_by(n + 1).for_each(|pivot| *pivot += lift);
            match Self::new(raised, n) {
                Err(failure) if lift >= largest || largest.is_nan() => return Err(failure),
                Err(_) => lift = if lift == 0.0 { FIRST_LIFT * largest } else { 10.0 * lift },
                factor => return factor,
            }
        }
    }

    /// From the lower triangle of `L`, column-major.
    pub fn from_factor(lower: Vec<f64>, n: usize) -> Self {
        assert_eq!(lower.len(), n * n, "a square matrix");
        Self { n, lower }
    }

    fn l(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.lower, self.n, self.n)
    }

    /// Replaces each column of `rhs` (column-major, `n` rows) by `A⁻¹` times it.
    pub fn solve(&self, rhs: &mut [f64]) {
        let mut rhs = self.columns(rhs);
        solve_lower_triangular_in_place(self.l(), rhs.as_mut(), parallel());
        solve_upper_triangular_in_place(self.l().transpose(), rhs, parallel());
    }

    /// Replaces each column of `rhs` by `L⁻¹` times it, so that `‖L⁻¹x‖² = xᵀA⁻¹x`.
    pub fn half_solve(&self, rhs: &mut [f64], par: bool) {
        solve_lower_triangular_in_place(self.l(), self.columns(rhs), if par { parallel() } else { Par::Seq });
    }

    /// Replaces each column of `rhs` by `L⁻ᵀ` times it.
    pub fn transposed_half_solve(&self, rhs: &mut [f64]) {
        solve_upper_triangular_in_place(self.l().transpose(), self.columns(rhs), parallel());
    }

    fn columns<'r>(&self, rhs: &'r mut [f64]) -> MatMut<'r, f64> {
        let columns = rhs.len().checked_div(self.n).unwrap_or(0);
        MatMut::from_column_major_slice_mut(rhs, self.n, columns)
    }

    /// The diagonal of `A⁻¹`.
    pub fn inverse_diagonal(&self) -> Vec<f64> {
        let mut inverse = vec![0.0; self.n * self.n];
        invert_lower_triangular(
            MatMut::from_column_major_slice_mut(&mut inverse, self.n, self.n),
            self.l(),
            parallel(),
        );
        // (A⁻¹)_jj = Σ_i (L⁻¹)_ij²: the squared norm of column j.
        inverse.chunks_exact(self.n.max(1)).map(|column| column.iter().map(|v| v * v).sum()).collect()
    }

    /// Replaces the factor of `A` by that of `A + x xᵀ` (or `A − x xᵀ`) in `O(n²)`; `x` is used up.
    ///
    /// Column by column as in Gill, Golub, Murray & Saunders (1974), method C3. A failed downdate leaves the factor
    /// unusable: factor afresh.
    pub fn rank_one(&mut self, x: &mut [f64], add: bool) -> Result<(), NotPositive> {
        let sign = if add { 1.0 } else { -1.0 };
        let first = x.iter().position(|&v| v != 0.0).unwrap_or(self.n);
        for k in first..self.n {
            let column = &mut self.lower[k * self.n + k..(k + 1) * self.n];
            let (pivot, head) = (column[0], x[k]);
            let square = pivot * pivot + sign * head * head;
            if !(square > 0.0 && square.is_finite()) {
                return Err(NotPositive { pivot: k });
            }
            let new = square.sqrt();
            let (c, s, inverse) = (new / pivot, head / pivot, pivot / new);
            column[0] = new;
            for (l, x) in column[1..].iter_mut().zip(&mut x[k + 1..]) {
                *l = (*l + sign * s * *x) * inverse;
                *x = c * *x - s * *l;
            }
        }
        Ok(())
    }

    /// `A⁻¹`, both triangles.
    pub fn inverse(&self) -> Vec<f64> {
        let n = self.n;
        let mut inverse = vec![0.0; n * n];
        let mut memory = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(n, parallel()));
        llt::inverse::inverse(
            MatMut::from_column_major_slice_mut(&mut inverse, n, n),
            self.l(),
            parallel(),
            MemStack::new(&mut memory),
        );
        mirror(&mut inverse, n);
        inverse
    }
}

/// Copies the lower triangle (column-major) over the upper one, tile by tile so that neither side leaves the cache.
pub fn mirror(matrix: &mut [f64], n: usize) {
    // Two tiles are 16 KiB.
    const TILE: usize = 32;
    for j0 in (0..n).step_by(TILE) {
        for i0 in (j0..n).step_by(TILE) {
            for j in j0..(j0 + TILE).min(n) {
                for i in i0.max(j + 1)..(i0 + TILE).min(n) {
                    matrix[i * n + j] = matrix[j * n + i];
                }
            }
        }
    }
}

/// `out = A v` for a symmetric `A` of which the lower triangle counts.
pub fn symmetric_product(matrix: &[f64], v: &[f64], out: &mut [f64]) {
    let n = v.len();
    out.fill(0.0);
    for j in 0..n {
        let column = &matrix[j * n + j..(j + 1) * n];
        out[j] += dot(column, &v[j..]);
        axpy(v[j], &column[1..], &mut out[j + 1..]);
    }
}

/// `out = A v` for a row-major `A`, rows in parallel.
pub fn matrix_product(matrix: &[f64], v: &[f64], out: &mut [f64]) {
    let n = v.len().max(1);
    out.par_iter_mut().zip(matrix.par_chunks_exact(n)).with_min_len((1 << 14) / n + 1).for_each(|(out, row)| {
        *out = dot(row, v);
    });
}

/// `out += factor · XᵀX` (lower triangle) for `X` of `rows × d`, row-major; on one thread where callers run blocks in
/// parallel.
pub fn add_gram(out: &mut [f64], x: &[f64], d: usize, factor: f64, par: bool) {
    if d == 0 {
        return;
    }
    let x = MatRef::from_row_major_slice(x, x.len() / d, d);
    triangular_matmul(
        MatMut::from_column_major_slice_mut(out, d, d),
        BlockStructure::TriangularLower,
        Accum::Add,
        x.transpose(),
        BlockStructure::Rectangular,
        x,
        BlockStructure::Rectangular,
        factor,
        if par { parallel() } else { Par::Seq },
    );
}

/// `out += XᵀV` for `X` of `rows × d`, row-major; `V` and `out` (`d` rows) column after column, those of `V` `stride` apart.
pub fn add_transposed_product(out: &mut [f64], x: &[f64], d: usize, v: &[f64], stride: usize) {
    let (rows, columns) = (x.len() / d, out.len() / d);
    matmul(
        MatMut::from_column_major_slice_mut(out, d, columns),
        Accum::Add,
        MatRef::from_row_major_slice(x, rows, d).transpose(),
        MatRef::from_column_major_slice_with_stride(v, rows, columns, stride),
        1.0,
        parallel(),
    );
}

/// `out += X W` for `X` of `rows × d`, row-major; `W` (`d` rows) and `out` column after column, those of `out` `stride` apart.
pub fn add_product(out: &mut [f64], stride: usize, x: &[f64], d: usize, w: &[f64]) {
    let (rows, columns) = (x.len() / d, w.len() / d);
    matmul(
        MatMut::from_column_major_slice_with_stride_mut(out, rows, columns, stride),
        Accum::Add,
        MatRef::from_row_major_slice(x, rows, d),
        MatRef::from_column_major_slice(w, d, columns),
        1.0,
        parallel(),
    );
}

/// Numbers of which matrices can be multiplied.
pub trait Scalar: Sized {
    /// `out = A Bᵀ` for row-major `A` (`a_rows × d`) and `B` (`b_rows × d`); row `i` of `out` starts at `i · stride`.
    fn products(out: &mut [Self], stride: usize, a: &[Self], b: &[Self], d: usize);
}

macro_rules! scalar {
    ($number:ident) => {
        impl Scalar for $number {
            fn products(out: &mut [Self], stride: usize, a: &[Self], b: &[Self], d: usize) {
                if d == 0 {
                    // Rows of no features: how many there are cannot be told from their values.
                    return out.fill(0.0);
                }
                let (a_rows, b_rows) = (a.len() / d, b.len() / d);
                // faer's row-major view with a stride swaps its strides and writes out of bounds, so `outᵀ = B Aᵀ` it is.
                matmul(
                    MatMut::from_column_major_slice_with_stride_mut(out, b_rows, a_rows, stride),
                    Accum::Replace,
                    MatRef::from_row_major_slice(b, b_rows, d),
                    MatRef::from_row_major_slice(a, a_rows, d).transpose(),
                    1.0,
                    Par::Seq,
                );
            }
        }
    };
}

scalar!(f32);
scalar!(f64);

/// Runs `work` in a version compiled for the widest vectors this processor has; mark it `#[inline(always)]`, or it may be
/// left outside.
pub fn wide<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Length of the pieces in which sums of many rows are taken: a piece stays in the nearest cache.
const PIECE: usize = 2048;

/// `out += Σ a_r row_r`, each row as long as `out`; pieces in parallel.
pub fn add_rows<T: Real>(out: &mut [f64], rows: &[(f64, &[T])]) {
    out.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
        let range = piece * PIECE..piece * PIECE + out.len();
        wide(
            #[inline(always)]
            || {
                let mut fours = rows.chunks_exact(4);
                for four in &mut fours {
                    let [(a, x), (b, y), (c, z), (d, w)] = [0, 1, 2, 3].map(|r| (four[r].0, &four[r].1[range.clone()]));
                    for ((((out, x), y), z), w) in out.iter_mut().zip(x).zip(y).zip(z).zip(w) {
                        *out += (a * (*x).into() + b * (*y).into()) + (c * (*z).into() + d * (*w).into());
                    }
                }
                for (a, x) in fours.remainder() {
                    out.iter_mut().zip(&x[range.clone()]).for_each(|(out, x)| *out += a * (*x).into());
                }
            },
        );
    });
}

/// Terms that [`ordered_sum`] adds up together: some microseconds of work at least. A constant: blocks decide the order of sums.
pub const BLOCK: usize = 4096;

/// The part of `0..n` that is number `part` of `parts`.
pub fn range_of(n: usize, part: usize, parts: usize) -> Range<usize> {
    n * part / parts..n * (part + 1) / parts
}

/// Does the work of each of `0..count`, on all threads. Not generic, because every closure that rayon meets costs the compiler
/// some two hundred functions: a third of this crate's were one line here.
fn each(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

/// What `make` makes of each piece (and its number), in their order.
pub fn each_of<P: Send, T: Send>(pieces: impl IntoIterator<Item = P>, make: impl Fn(usize, P) -> T + Sync) -> Vec<T> {
    /// What a piece becomes.
    enum Place<P, T> {
        Piece(P),
        Taken,
        Made(T),
    }
    let places: Vec<Mutex<Place<P, T>>> = pieces.into_iter().map(|piece| Mutex::new(Place::Piece(piece))).collect();
    let work = |number: usize| {
        let mut place = places[number].lock().unwrap_or_else(PoisonError::into_inner);
        if let Place::Piece(piece) = std::mem::replace(&mut *place, Place::Taken) {
            *place = Place::Made(make(number, piece));
        }
    };
    if places.len() == 1 {
        work(0)
    } else {
        each(places.len(), &work)
    }
    let made =
        places.into_iter().filter_map(|place| match place.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Place::Made(made) => Some(made),
            Place::Piece(_) | Place::Taken => None,
        });
    made.collect()
}

/// What `part` makes of each of `parts` stretches of `0..n`, in their order. As long as the number of parts does not depend on
/// that of the threads, neither does anything that is added up over them.
pub fn fold<T: Send>(n: usize, parts: usize, part: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    each_of(0..parts, |number, _| part(range_of(n, number, parts)))
}

/// The sum of vectors, in their order; of none, no numbers.
pub fn add_up(parts: Vec<Vec<f64>>) -> Vec<f64> {
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_default();
    parts.for_each(|part| axpy(1.0, &part, &mut total));
    total
}

/// `Σ term(i)`, the same for any number of threads.
pub fn ordered_sum(n: usize, term: impl Fn(usize) -> f64 + Sync) -> f64 {
    let parts = n.div_ceil(BLOCK);
    if parts <= 1 {
        return (0..n).map(term).sum();
    }
    fold(n, parts, |range| range.map(&term).sum::<f64>()).iter().sum()
}

/// `Σ term(i)_k` for each `k` of so many, in one pass; each the same for any number of threads.
pub fn ordered_sums<const N: usize>(n: usize, terms: impl Fn(usize) -> [f64; N] + Sync) -> [f64; N] {
    let part = |range: Range<usize>| range.fold([0.0; N], |sums, i| plus(sums, terms(i)));
    fold(n, n.div_ceil(BLOCK), part).into_iter().fold([0.0; N], plus)
}

fn plus<const N: usize>(mut sums: [f64; N], terms: [f64; N]) -> [f64; N] {
    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    sums
}

/// `Σ term(i, t)` over the rows for each `t`, in one pass: rows stay in the caches from one `t` to the next.
pub fn ordered_sums_at(n: usize, at: &[f64], term: impl Fn(usize, f64) -> f64 + Sync) -> Vec<f64> {
    let part = |range: Range<usize>| at.iter().map(|&t| range.clone().map(|i| term(i, t)).sum()).collect();
    let sums = add_up(fold(n, n.div_ceil(BLOCK), part));
    if sums.is_empty() { vec![0.0; at.len()] } else { sums }
}

/// Where a function that never rises is zero, to within `enough` of its value; sought around `from`, at first `width` away.
/// Where there is no zero, a place far from there.
pub fn falling_zero(f: impl Fn(f64) -> f64, from: f64, width: f64, enough: f64) -> f64 {
    let (mut low, mut at_low) = (from, f(from));
    let sought = at_low.abs() > enough && width > 0.0 && width.is_finite();
    if !sought {
        return from;
    }
    let (mut high, mut at_high, mut width) = (low, at_low, width);
    for _ in 0..60 {
        if at_high > 0.0 {
            (low, at_low) = (high, at_high);
            high += width;
            at_high = f(high);
        } else if at_low < 0.0 {
            (high, at_high) = (low, at_low);
            low -= width;
            at_low = f(low);
        } else {
            break;
        }
        width *= 4.0;
    }
    if at_low.abs() <= enough || at_high.abs() <= enough || at_low < 0.0 || at_high > 0.0 {
        return if at_low.abs() <= at_high.abs() { low } else { high };
    }
    for round in 1..200 {
        // Regula falsi, every third time a halving so that it cannot crawl.
        let secant = low - at_low * (high - low) / (at_high - at_low);
        let middle = if round % 3 == 0 || !secant.is_finite() { 0.5 * (low + high) } else { secant };
        let at = f(middle);
        if at.abs() <= enough || high - low <= f64::EPSILON * (low.abs() + high.abs()) {
            return middle;
        }
        if at > 0.0 { (low, at_low) = (middle, at) } else { (high, at_high) = (middle, at) }
    }
    0.5 * (low + high)
}

/// `n` numbers that are zero but for these, at these places.
pub fn scattered<'v>(
    values: impl IntoIterator<Item = &'v f64>,
    places: impl IntoIterator<Item = usize>,
    n: usize,
) -> Vec<f64> {
    let mut all = vec![0.0; n];
    places.into_iter().zip(values).for_each(|(i, value)| all[i] = *value);
    all
}

/// `a · b`
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    dense_dot(a, b)
}

/// `y += a x`
pub fn axpy(a: f64, x: &[f64], y: &mut [f64]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += a * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn cholesky_solves_and_inverts() {
        let (n, mut random) = (40, Random::new(1, 0));
        let x: Vec<f64> = (0..n * n).map(|_| random.normal()).collect();
        let mut a = vec![0.0; n * n];
        add_gram(&mut a, &x, n, 1.0, false);
        (0..n).for_each(|i| a[i * n + i] += 1.0);
        let full = |i: usize, j: usize| if i >= j { a[j * n + i] } else { a[i * n + j] };
        let b: Vec<f64> = (0..n).map(|_| random.normal()).collect();
        let factor = Cholesky::new(a.clone(), n).unwrap();
        let mut solution = b.clone();
        factor.solve(&mut solution);
        for (i, b) in b.iter().enumerate() {
            let back: f64 = (0..n).map(|j| full(i, j) * solution[j]).sum();
            assert!((back - b).abs() < 1e-9);
        }
        let mut unit = vec![0.0; n];
        unit[7] = 1.0;
        factor.solve(&mut unit);
        assert!((unit[7] - factor.inverse_diagonal()[7]).abs() < 1e-12);
        assert!(Cholesky::new(vec![-1.0], 1).is_err());
        let inverse = factor.inverse();
        for i in 0..n {
            for k in 0..n {
                let one: f64 = (0..n).map(|j| full(i, j) * inverse[j * n + k]).sum();
                assert!((one - f64::from(u8::from(i == k))).abs() < 1e-9);
            }
        }
        let mut product = vec![0.0; n];
        symmetric_product(&a, &solution, &mut product);
        assert!(product.iter().zip(&b).all(|(p, b)| (p - b).abs() < 1e-9));
    }

    #[test]
    fn rank_one_changes_follow_the_matrix() {
        let (n, mut random) = (30, Random::new(2, 0));
        let mut a = vec![0.0; n * n];
        (0..n).for_each(|i| a[i * n + i] = 1.0);
        let rows: Vec<Vec<f64>> = (0..50).map(|_| (0..n).map(|_| random.normal()).collect()).collect();
        let mut factor = Cholesky::new(a.clone(), n).unwrap();
        for row in &rows {
            factor.rank_one(&mut row.clone(), true).unwrap();
        }
        for row in &rows[10..] {
            factor.rank_one(&mut row.clone(), false).unwrap();
        }
        rows[..10].iter().for_each(|row| add_gram(&mut a, row, n, 1.0, true));
        let fresh = Cholesky::new(a, n).unwrap();
        for j in 0..n {
            for i in j..n {
                assert!((factor.lower[j * n + i] - fresh.lower[j * n + i]).abs() < 1e-9);
            }
        }
        assert!(fresh_fails(&mut factor));
    }

    fn fresh_fails(factor: &mut Cholesky) -> bool {
        let mut huge = vec![1e6; factor.n];
        factor.rank_one(&mut huge, false).is_err()
    }
}
