//! The kernel matrix `G` as tiles of its lower triangle, for solvers that only multiply with it.

use super::{KernelProducts, KernelRows, KernelValue, Landmarks, ProductAsked, Scratch, Stored};
use crate::control::Control;
use crate::linalg;
use crate::memory::Zeros;
use crate::{Error, Result};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Rows and columns of a tile: kept in two bytes a value it stays in the second cache while all columns are multiplied with it.
const SIDE: usize = 256;
/// Parts in which the tiles are gone through, each with sums of its own. A constant: it decides the order of sums.
const PARTS: usize = 16;
/// Rows of a tile that are gone through together: the factors and sums of columns are then read once for all of them.
const AT_ONCE: usize = 4;
/// Numbers that are added up side by side.
const LANES: usize = 16;
/// Columns of `v` that a value of a tile meets at once, where there are several: one vector register of theirs. Of fewer than
/// [`LEAST_WIDE`] left over each goes alone. (A tile of 256 × 256 with 8 columns at once takes 0.4 of the time of 8 times one.)
const WIDE: usize = 8;
const LEAST_WIDE: usize = 4;
/// Rows of a tile that meet them together: as many registers of sums, and of factors, as there are.
const STRIP: usize = 6;

/// Columns of the part of `G` that preconditions conjugate gradients (Frangella, Tropp & Udell 2023): its largest eigenvalues,
/// which they would take longest to find. One for every so many rows, within these limits: a product costs the square of the rows, a
/// column once the rows times the columns. (ODM, C1 = m: 60,000 × 8 takes 24 s with 300 columns and 47 products, 16 s with 1,000 and 17,
/// 29 s with 2,000 and 10; 20,000 × 50 takes 2.8 s with 300 as with 600, 3.9 s with 1,000.)
const RANK_ROWS: usize = 60;
const LEAST_RANK: usize = 300;
const MOST_RANK: usize = 1000;
/// Below this largest `h_i G_ii` a few products do anyway (60,000 × 8 at ODM's defaults: 10 s with 300 columns, 15 s with 1,000).
const STRONG: f64 = 0.3;

/// How the values of a tile are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TilePrecision {
    /// As multiples of `2⁻¹⁶`, of a kernel whose values lie between 0 and 1: products wait for memory.
    Fixed,
    /// As `f32`.
    Single,
    /// As `f64`.
    Double,
}

/// Tiles of the lower triangle of `G`, band after band; those that fit the memory are kept, the others computed whenever they are
/// needed, here or elsewhere.
pub struct Tiles {
    n: usize,
    memory: u64,
    held: HeldTiles,
    /// For weak systems and for strong ones: which a solver gets must not depend on who asked first.
    low_rank: [OnceLock<LowRank>; 2],
}

enum HeldTiles {
    Fixed(Zeros<u16>),
    Single(Zeros<f32>),
    Double(Zeros<f64>),
    /// None here: whoever multiplies, and whether in double precision.
    Elsewhere(Arc<dyn KernelProducts>, bool),
}

/// A number as which the values of tiles are kept, and the one in which they are computed and multiplied.
pub(super) trait Packed: bytemuck::Pod + Send + Sync + Default {
    type Work: Stored + Packed<Work = Self::Work>;
    /// What the kept number is to be multiplied by.
    const UNIT: f64;
    fn pack(value: Self::Work) -> Self;
    fn unpack(self) -> Self::Work;
}

impl Packed for u16 {
    type Work = f32;
    const UNIT: f64 = 1.0 / 65535.0;

    /// Beyond `2²³` a single precision number is whole, and its low bits are that number.
    #[inline(always)]
    fn pack(value: f32) -> Self {
        (value.clamp(0.0, 1.0) * 65535.0 + 8_388_608.0).to_bits() as u16
    }

    #[inline(always)]
    fn unpack(self) -> f32 {
        self.into()
    }
}

macro_rules! packed {
    ($number:ident) => {
        impl Packed for $number {
            type Work = $number;
            const UNIT: f64 = 1.0;
            #[inline(always)]
            fn pack(value: Self) -> Self {
                value
            }
            #[inline(always)]
            fn unpack(self) -> Self {
                self
            }
        }
    };
}

packed!(f32);
packed!(f64);

/// `F` of `G ≈ F Fᵀ`, row after row.
pub struct LowRank {
    /// Its columns.
    pub rank: usize,
    /// Its rows, one after the other.
    pub values: Vec<f32>,
}

impl LowRank {
    /// How many columns it has for strong systems of so many rows.
    pub fn columns(rows: usize) -> usize {
        (rows / RANK_ROWS).clamp(LEAST_RANK, MOST_RANK)
    }

    /// Row `i` of `F`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.rank..(i + 1) * self.rank]
    }
}

impl Tiles {
    /// The tiles of the rows' matrix, as many as fit the memory.
    pub fn new(rows: &KernelRows<'_>, precision: TilePrecision, memory: u64, control: Control<'_>) -> Result<Self> {
        fn fill<T: Packed>(rows: &KernelRows<'_>, memory: u64, control: Control<'_>) -> Result<Zeros<T>> {
            let most = memory / (SIDE * SIDE * size_of::<T>()) as u64;
            let count = count(rows.len()).min(usize::try_from(most).unwrap_or(usize::MAX));
            let mut held = Zeros::new(count * SIDE * SIDE)?;
            held.par_chunks_mut(SIDE * SIDE).enumerate().try_for_each_init(
                || (Scratch::default(), Vec::new()),
                |(scratch, values), (number, out)| {
                    control.check()?;
                    let (left, right) = place(number, rows.len());
                    T::Work::tile(rows, left, right, scratch, values);
                    linalg::wide(
                        #[inline(always)]
                        || out.iter_mut().zip(values.iter()).for_each(|(out, value)| *out = T::pack(*value)),
                    );
                    Ok(())
                },
            )?;
            Ok(held)
        }
        let held = match precision {
            TilePrecision::Fixed => HeldTiles::Fixed(fill(rows, memory, control)?),
            TilePrecision::Single => HeldTiles::Single(fill(rows, memory, control)?),
            TilePrecision::Double => HeldTiles::Double(fill(rows, memory, control)?),
        };
        Ok(Self { n: rows.len(), memory, held, low_rank: Default::default() })
    }

    /// Tiles that are computed elsewhere, in single precision or double; the memory is what solvers may take here.
    pub fn elsewhere(
        rows: &KernelRows<'_>,
        precision: TilePrecision,
        memory: u64,
        products: Arc<dyn KernelProducts>,
    ) -> Self {
        let held = HeldTiles::Elsewhere(products, precision == TilePrecision::Double);
        Self { n: rows.len(), memory, held, low_rank: Default::default() }
    }

    /// Bytes of the tiles that are kept.
    pub fn bytes(&self) -> u64 {
        (match &self.held {
            HeldTiles::Fixed(held) => size_of_val::<[u16]>(held),
            HeldTiles::Single(held) => size_of_val::<[f32]>(held),
            HeldTiles::Double(held) => size_of_val::<[f64]>(held),
            HeldTiles::Elsewhere(..) => 0,
        }) as u64
    }

    /// What they may take.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// The part of low rank that explains most of the matrix, computed once for weak systems `G + diag(1/h)` and once for strong ones,
    /// of which more eigenvalues count.
    pub fn low_rank(&self, rows: &KernelRows<'_>, h: &[f64], control: Control<'_>) -> Result<&LowRank> {
        let largest_h = h.iter().copied().fold(0.0, f64::max);
        let largest_value = (0..self.n).map(|i| rows.diagonal(i)).fold(0.0, f64::max);
        let rank = if largest_h * largest_value < STRONG { LEAST_RANK } else { LowRank::columns(self.n) };
        let place = &self.low_rank[usize::from(rank > LEAST_RANK)];
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let landmarks = Landmarks::spanning(rows.kernel, rows.rows, rank, control)?;
        let (values, _) = landmarks.mapped(rows.rows, control)?;
        Ok(place.get_or_init(|| LowRank { rank: landmarks.chosen.len(), values }))
    }

    /// `Σ_j c_j G_ij` for every row `i`, over the given pairs of `j` and `c_j`, from kernel values that are computed.
    pub fn combine(&self, rows: &KernelRows<'_>, terms: &[(usize, f64)], control: Control<'_>) -> Result<Vec<f64>> {
        match &self.held {
            HeldTiles::Elsewhere(..) => {
                let mut v = vec![0.0; self.n];
                terms.iter().for_each(|(j, c)| v[*j] = *c);
                self.multiply(rows, &v)
            }
            HeldTiles::Double(_) => rows.combine::<f64>(terms, control),
            _ => rows.combine::<f32>(terms, control),
        }
    }

    /// `G` times each column of `v`. Only the lower triangle is read: `G_ij` counts for row `i` and, times `v_i`, for row `j`.
    pub fn multiply(&self, rows: &KernelRows<'_>, v: &[f64]) -> Result<Vec<f64>> {
        match &self.held {
            HeldTiles::Fixed(held) => Ok(multiply_tiles(held, rows, v, 0..count(self.n))),
            HeldTiles::Single(held) => Ok(multiply_tiles(held, rows, v, 0..count(self.n))),
            HeldTiles::Double(held) => Ok(multiply_tiles(held, rows, v, 0..count(self.n))),
            HeldTiles::Elsewhere(products, double) => {
                let KernelRows { kernel, offset, error, .. } = *rows;
                let asked = ProductAsked { kernel, offset, double: *double, error, v: v.to_vec() };
                let product = products.multiply(&asked)?;
                match product.len() == v.len() && product.iter().all(|value| value.is_finite()) {
                    true => Ok(product),
                    false => Err(Error::Numeric {
                        place: "a product with the kernel matrix",
                        reason: format!("expected {} finite numbers, found others", v.len()),
                    }),
                }
            }
        }
    }
}

/// Tiles of the lower triangle of a matrix of so many rows.
fn count(n: usize) -> usize {
    let bands = n.div_ceil(SIDE);
    bands * (bands + 1) / 2
}

/// What a share of the tiles adds to `G V`; every tile is computed.
pub(super) fn share_of_tiles<T: Packed>(rows: &KernelRows<'_>, v: &[f64], share: usize, shares: usize) -> Vec<f64> {
    multiply_tiles::<T>(&[], rows, v, linalg::range_of(count(rows.len()), share, shares))
}

/// What the tiles of these numbers add to `G V`; the first tiles are held.
fn multiply_tiles<T: Packed>(held: &[T], rows: &KernelRows<'_>, v: &[f64], numbers: Range<usize>) -> Vec<f64> {
    let n = rows.len().max(1);
    let (factors, scaled) = (Factors::new(v, n, 1.0), Factors::new(v, n, T::UNIT));
    let parts = linalg::fold(numbers.len(), PARTS, |part: Range<usize>| {
        let (mut sums, mut scratch, mut values) = (vec![0.0; v.len()], Scratch::default(), Vec::new());
        for number in part.start + numbers.start..part.end + numbers.start {
            let (left, right) = place(number, rows.len());
            match held.get(number * SIDE * SIDE..(number + 1) * SIDE * SIDE) {
                Some(tile) => add_tile(tile, left, right, &scaled, n, &mut sums),
                None => {
                    T::Work::tile(rows, left.clone(), right.clone(), &mut scratch, &mut values);
                    add_tile::<T::Work>(&values, left, right, &factors, n, &mut sums);
                }
            }
        }
        sums
    });
    linalg::add_up(parts)
}

/// The rows and columns of a tile.
fn place(number: usize, n: usize) -> (Range<usize>, Range<usize>) {
    let mut band = ((((8 * number + 1) as f64).sqrt() - 1.0) / 2.0) as usize;
    while (band + 1) * (band + 2) / 2 <= number {
        band += 1;
    }
    while band * (band + 1) / 2 > number {
        band -= 1;
    }
    let column = number - band * (band + 1) / 2;
    let range = |band: usize| band * SIDE..((band + 1) * SIDE).min(n);
    (range(band), range(column))
}

/// Columns of `v`, as tiles are multiplied with them.
struct Factors<W> {
    /// Those that go side by side, row after row, [`WIDE`] of them at a time; zeros make the last ones up.
    wide: Vec<[W; WIDE]>,
    /// The others, column after column.
    single: Vec<W>,
    /// How many go side by side.
    together: usize,
}

impl<W: Stored> Factors<W> {
    fn new(v: &[f64], n: usize, unit: f64) -> Self {
        let columns = v.len() / n;
        let together = if columns % WIDE >= LEAST_WIDE { columns } else { columns / WIDE * WIDE };
        let value = |at: Option<&f64>| W::of(at.copied().unwrap_or(0.0) * unit);
        let side = |group: usize, i: usize| {
            std::array::from_fn(|c| group * WIDE + c).map(|c| value((c < together).then(|| &v[c * n + i])))
        };
        let wide = (0..together.div_ceil(WIDE)).flat_map(|group| (0..n).map(move |i| side(group, i))).collect();
        Self { wide, single: v[together * n..].iter().map(|v| value(Some(v))).collect(), together }
    }
}

/// Adds to the sums, column after column, what a tile gives for each column of `v`.
fn add_tile<T: Packed>(
    tile: &[T],
    left: Range<usize>,
    right: Range<usize>,
    v: &Factors<T::Work>,
    n: usize,
    sums: &mut [f64],
) {
    let zero = T::Work::default();
    // A tile at the diagonal is whole.
    let both = left != right;
    let (beside, alone) = sums.split_at_mut(v.together * n);
    for (v, sums) in v.wide.chunks_exact(n).zip(beside.chunks_mut(WIDE * n)) {
        let (mut rows, mut columns) = ([[zero; WIDE]; SIDE], [[zero; WIDE]; SIDE]);
        pulp::Arch::new().dispatch(WideTileProduct {
            tile,
            left: &v[left.clone()],
            right: &v[right.clone()],
            rows: &mut rows[..left.len()],
            columns: &mut columns[..right.len()],
        });
        for (c, sums) in sums.chunks_exact_mut(n).enumerate() {
            sums[left.clone()].iter_mut().zip(&rows).for_each(|(sum, value)| *sum += value[c].into());
            if both {
                sums[right.clone()].iter_mut().zip(&columns).for_each(|(sum, value)| *sum += value[c].into());
            }
        }
    }
    let (mut rows, mut columns) = ([zero; SIDE], [zero; SIDE]);
    for (v, sums) in v.single.chunks_exact(n).zip(alone.chunks_exact_mut(n)) {
        columns.fill(zero);
        pulp::Arch::new().dispatch(TileProduct {
            tile,
            left: &v[left.clone()],
            right: &v[right.clone()],
            rows: &mut rows[..left.len()],
            columns: both.then_some(&mut columns[..right.len()]),
        });
        sums[left.clone()].iter_mut().zip(&rows).for_each(|(sum, value)| *sum += (*value).into());
        if both {
            sums[right.clone()].iter_mut().zip(&columns).for_each(|(sum, value)| *sum += (*value).into());
        }
    }
}

/// The products of a tile with [`WIDE`] vectors, and of its transpose with as many others.
struct WideTileProduct<'t, T: Packed> {
    tile: &'t [T],
    left: &'t [[T::Work; WIDE]],
    right: &'t [[T::Work; WIDE]],
    /// `T right`
    rows: &'t mut [[T::Work; WIDE]],
    /// `Tᵀ left` is added to this.
    columns: &'t mut [[T::Work; WIDE]],
}

impl<T: Packed> pulp::WithSimd for WideTileProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Self { tile, left, right, rows, columns } = self;
        let (fused, width, zero) = (S::F32_LANES > 1, right.len(), T::Work::default());
        // A few rows of the tile, the values of a column side by side.
        let mut strip = [[zero; STRIP]; SIDE];
        for ((band, factors), out) in tile.chunks(STRIP * width).zip(left.chunks(STRIP)).zip(rows.chunks_mut(STRIP)) {
            let mut up = [[zero; WIDE]; STRIP];
            up[..factors.len()].copy_from_slice(factors);
            for (r, line) in band.chunks_exact(width).enumerate() {
                strip.iter_mut().zip(line).for_each(|(values, value)| values[r] = value.unpack());
            }
            // Of rows that are not there the factors are zero, and the sums are not read.
            let mut sums = [[zero; WIDE]; STRIP];
            for ((values, v), column) in strip.iter().zip(right).zip(columns.iter_mut()) {
                let mut down = *column;
                for r in 0..STRIP {
                    for c in 0..WIDE {
                        sums[r][c] = values[r].times_plus(v[c], sums[r][c], fused);
                        down[c] = values[r].times_plus(up[r][c], down[c], fused);
                    }
                }
                *column = down;
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

/// The products of a tile with a vector, and of its transpose with another.
struct TileProduct<'t, T: Packed> {
    tile: &'t [T],
    left: &'t [T::Work],
    right: &'t [T::Work],
    /// `T right`
    rows: &'t mut [T::Work],
    /// `Tᵀ left` is added to this.
    columns: Option<&'t mut [T::Work]>,
}

impl<T: Packed> pulp::WithSimd for TileProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _simd: S) {
        let Self { tile, left, right, rows, columns } = self;
        let (fused, width, zero) = (S::F32_LANES > 1, right.len(), T::Work::default());
        let (mut none, both) = ([zero; SIDE], columns.is_some());
        let columns = columns.unwrap_or(&mut none[..width]);
        let whole = width / LANES * LANES;
        for (number, (band, out)) in tile.chunks(AT_ONCE * width).zip(rows.chunks_mut(AT_ONCE)).enumerate() {
            let mut factors = [zero; AT_ONCE];
            factors.iter_mut().zip(&left[number * AT_ONCE..]).for_each(|(f, v)| *f = *v);
            let mut sums = [zero; AT_ONCE];
            if out.len() == AT_ONCE {
                let lines: [&[T]; AT_ONCE] = std::array::from_fn(|r| &band[r * width..(r + 1) * width]);
                let mut lanes = [[zero; LANES]; AT_ONCE];
                for at in (0..whole).step_by(LANES) {
                    let pieces = lines.map(|line| &line[at..at + LANES]);
                    let (v, column) = (&right[at..at + LANES], &mut columns[at..at + LANES]);
                    for l in 0..LANES {
                        let mut down = column[l];
                        for r in 0..AT_ONCE {
                            let value = pieces[r][l].unpack();
                            lanes[r][l] = value.times_plus(v[l], lanes[r][l], fused);
                            if both {
                                down = value.times_plus(factors[r], down, fused);
                            }
                        }
                        column[l] = down;
                    }
                }
                for r in 0..AT_ONCE {
                    sums[r] = lanes[r].iter().fold(zero, |sum, lane| sum + *lane);
                }
            }
            // The last rows, and the last columns of the others.
            let start = if out.len() == AT_ONCE { whole } else { 0 };
            for (r, line) in band.chunks_exact(width).enumerate() {
                for j in start..width {
                    let value = line[j].unpack();
                    sums[r] = value.times_plus(right[j], sums[r], fused);
                    columns[j] = value.times_plus(factors[r], columns[j], fused);
                }
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::kernel::{GramPrecision, Kernel};
    use crate::random::Random;

    /// Columns that go alone, side by side, and made up to eight; tiles that are whole and cut off, held and computed.
    #[test]
    fn products_with_any_number_of_columns_are_those_of_the_matrix() {
        let (n, mut random) = (SIDE + 77, Random::new(7, 0));
        let values: Vec<f64> = (0..3 * n).map(|_| random.normal()).collect();
        let matrix = Matrix::DenseF64(Dense::new(n, 3, values).unwrap());
        let kernel = Kernel::Rbf { gamma: 0.3 };
        let rows = KernelRows::new(kernel, &matrix, 0.0);
        let whole = crate::kernel::Gram::new(&rows, GramPrecision::Double, Control::default()).unwrap();
        for (precision, error) in
            [(TilePrecision::Fixed, 1e-4), (TilePrecision::Single, 1e-5), (TilePrecision::Double, 1e-12)]
        {
            for memory in [0, 1 << 30] {
                let tiles = Tiles::new(&rows, precision, memory, Control::default()).unwrap();
                for columns in [1, 3, 4, 7, 8, 10, 13, 17] {
                    let v: Vec<f64> = (0..columns * n).map(|_| random.normal()).collect();
                    let found = tiles.multiply(&rows, &v).unwrap();
                    for (v, found) in v.chunks_exact(n).zip(found.chunks_exact(n)) {
                        let size = linalg::dot(v, v).sqrt();
                        let off = whole.multiply(v).iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                        assert!(off < error * size, "{precision:?}, {columns} columns, {memory}: {off}");
                    }
                }
            }
        }
    }
}
