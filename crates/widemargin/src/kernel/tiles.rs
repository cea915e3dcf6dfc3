//! The kernel matrix `G` as tiles of its lower triangle, for solvers that only multiply with it.

use super::{KernelProducts, KernelRows, Landmarks, ProductAsked, Scratch, Stored};
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
/// Rows of a tile that are unpacked together: all columns of `v` are then multiplied with them from the nearest cache. (Of 16-bit values
/// a core takes 9 GB/s with one column of `v` and 0.3 of that time again for each further one, in vectors of eight.)
const STRIP: usize = 8;

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
    Fixed(KeptTiles<u16>),
    Single(KeptTiles<f32>),
    Double(KeptTiles<f64>),
    /// None here: whoever multiplies, and whether in double precision.
    Elsewhere(Arc<dyn KernelProducts>, bool),
}

/// Tiles that are kept: runs of them, each with the number of its first tile. A later run stands for what an earlier one has there.
struct KeptTiles<T>(Vec<(usize, Zeros<T>)>);

impl<T: Packed> KeptTiles<T> {
    /// The tiles from this number on, as many as fit the memory, in place of those that may be there.
    fn fill(mut self, rows: &KernelRows<'_>, first: usize, memory: u64, control: Control<'_>) -> Result<Self> {
        let most = memory / (SIDE * SIDE * size_of::<T>()) as u64;
        let wanted = count(rows.len()).saturating_sub(first).min(usize::try_from(most).unwrap_or(usize::MAX));
        let mut run = Zeros::new(wanted * SIDE * SIDE)?;
        Self::write(&mut run, rows, first, control)?;
        self.0.retain(|(start, _)| *start < first);
        self.0.push((first, run));
        Ok(self)
    }

    /// The tiles of other rows: those from this number on, or all of them.
    fn of_rows(self, rows: &KernelRows<'_>, first: Option<usize>, room: u64, control: Control<'_>) -> Result<Self> {
        match first {
            Some(first) => self.fill(rows, first, room, control),
            None => self.refill(rows, room, control),
        }
    }

    /// All tiles of other rows, in the memory of these and in so much more.
    fn refill(mut self, rows: &KernelRows<'_>, more: u64, control: Control<'_>) -> Result<Self> {
        let mut end = 0;
        for (first, run) in &mut self.0 {
            Self::write(run, rows, *first, control)?;
            end = *first + run.len() / (SIDE * SIDE);
        }
        if end < count(rows.len()) { self.fill(rows, end, more, control) } else { Ok(self) }
    }

    /// Writes the tiles from this number on, as many as there are and have room.
    fn write(run: &mut [T], rows: &KernelRows<'_>, first: usize, control: Control<'_>) -> Result<()> {
        let there = count(rows.len()).saturating_sub(first);
        run.par_chunks_mut(SIDE * SIDE).take(there).enumerate().try_for_each_init(
            || (Scratch::default(), Vec::new()),
            |(scratch, values), (number, out)| {
                control.check()?;
                let (left, right) = place(first + number, rows.len());
                T::Work::tile(rows, left, right, scratch, values);
                linalg::wide(
                    #[inline(always)]
                    || out.iter_mut().zip(values.iter()).for_each(|(out, value)| *out = T::pack(*value)),
                );
                Ok(())
            },
        )
    }

    /// The tile of this number, if it is kept.
    fn get(&self, number: usize) -> Option<&[T]> {
        let (first, run) = self.0.iter().rev().find(|(first, _)| *first <= number)?;
        run.get((number - first) * SIDE * SIDE..(number - first + 1) * SIDE * SIDE)
    }

    fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, run)| size_of_val::<[T]>(run) as u64).sum()
    }
}

/// A number as which the values of tiles are kept, and the one in which they are computed and multiplied.
pub(super) trait Packed: bytemuck::Pod + Send + Sync + Default {
    type Work: Lanes + Packed<Work = Self::Work>;
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

/// A number of which vectors are multiplied.
pub(super) trait Lanes: Stored {
    type Vector<S: pulp::Simd>: Copy;
    fn vectors<S: pulp::Simd>(values: &[Self]) -> &[Self::Vector<S>];
    fn vectors_mut<S: pulp::Simd>(values: &mut [Self]) -> &mut [Self::Vector<S>];
    fn splat<S: pulp::Simd>(simd: S, value: Self) -> Self::Vector<S>;
    /// `a b + c`
    fn fused<S: pulp::Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>, c: Self::Vector<S>) -> Self::Vector<S>;
    fn sum<S: pulp::Simd>(simd: S, a: Self::Vector<S>) -> Self;
}

macro_rules! lanes {
    ($number:ident, $vector:ident, $vectors:ident, $vectors_mut:ident, $splat:ident, $times_plus:ident, $sum:ident) => {
        impl Lanes for $number {
            type Vector<S: pulp::Simd> = S::$vector;
            #[inline(always)]
            fn vectors<S: pulp::Simd>(values: &[Self]) -> &[S::$vector] {
                S::$vectors(values).0
            }
            #[inline(always)]
            fn vectors_mut<S: pulp::Simd>(values: &mut [Self]) -> &mut [S::$vector] {
                S::$vectors_mut(values).0
            }
            #[inline(always)]
            fn splat<S: pulp::Simd>(simd: S, value: Self) -> S::$vector {
                simd.$splat(value)
            }
            #[inline(always)]
            fn fused<S: pulp::Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$times_plus(a, b, c)
            }
            #[inline(always)]
            fn sum<S: pulp::Simd>(simd: S, a: S::$vector) -> Self {
                simd.$sum(a)
            }
        }
    };
}

lanes!(f32, f32s, as_simd_f32s, as_mut_simd_f32s, splat_f32s, mul_add_e_f32s, reduce_sum_f32s);
lanes!(f64, f64s, as_simd_f64s, as_mut_simd_f64s, splat_f64s, mul_add_e_f64s, reduce_sum_f64s);

/// `F` of `G ≈ F Fᵀ`, row after row.
pub struct LowRank {
    /// Its columns.
    pub rank: usize,
    /// Its rows, one after the other.
    pub values: Vec<f32>,
    /// What they come from.
    landmarks: Landmarks,
}

impl LowRank {
    /// How many columns it has for strong systems of so many rows.
    pub fn columns(rows: usize) -> usize {
        (rows / RANK_ROWS).clamp(LEAST_RANK, MOST_RANK)
    }

    /// The same for other rows, of which the first are some of these, in their order.
    fn of_rows(mut self, rows: &KernelRows<'_>, kept: &[usize], control: Control<'_>) -> Result<Self> {
        let rank = self.rank;
        for (at, &before) in kept.iter().enumerate() {
            self.values.copy_within(before * rank..(before + 1) * rank, at * rank);
        }
        self.values.truncate(kept.len() * rank);
        let more: Vec<usize> = (self.values.len() / self.rank.max(1)..rows.len()).collect();
        self.values.extend(self.landmarks.mapped::<f32>(&rows.rows.select(&more), control)?.0);
        Ok(self)
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
        let held = match precision {
            TilePrecision::Fixed => HeldTiles::Fixed(KeptTiles(Vec::new()).fill(rows, 0, memory, control)?),
            TilePrecision::Single => HeldTiles::Single(KeptTiles(Vec::new()).fill(rows, 0, memory, control)?),
            TilePrecision::Double => HeldTiles::Double(KeptTiles(Vec::new()).fill(rows, 0, memory, control)?),
        };
        Ok(Self { n: rows.len(), memory, held, low_rank: Default::default() })
    }

    /// The same for other rows, of which the first are those that were here at these places, in their order. Where some of them are
    /// left out all tiles are computed anew, in the memory that is there.
    pub fn of_rows(self, rows: &KernelRows<'_>, kept: &[usize], control: Control<'_>) -> Result<Self> {
        if kept.len() == self.n && rows.len() == self.n {
            return Ok(self);
        }
        let room = self.memory.saturating_sub(self.bytes());
        // Where a band was not full, it is now, or wider.
        let first = (kept.len() == self.n).then(|| count(self.n / SIDE * SIDE));
        let held = match self.held {
            HeldTiles::Fixed(held) => HeldTiles::Fixed(held.of_rows(rows, first, room, control)?),
            HeldTiles::Single(held) => HeldTiles::Single(held.of_rows(rows, first, room, control)?),
            HeldTiles::Double(held) => HeldTiles::Double(held.of_rows(rows, first, room, control)?),
            elsewhere => elsewhere,
        };
        let mut low_rank: [OnceLock<LowRank>; 2] = Default::default();
        for (place, before) in low_rank.iter_mut().zip(self.low_rank) {
            if let Some(part) = before.into_inner() {
                *place = part.of_rows(rows, kept, control)?.into();
            }
        }
        Ok(Self { n: rows.len(), memory: self.memory, held, low_rank })
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
        match &self.held {
            HeldTiles::Fixed(held) => held.bytes(),
            HeldTiles::Single(held) => held.bytes(),
            HeldTiles::Double(held) => held.bytes(),
            HeldTiles::Elsewhere(..) => 0,
        }
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
        Ok(place.get_or_init(|| LowRank { rank: landmarks.chosen.len(), values, landmarks }))
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
    multiply_tiles::<T>(&KeptTiles(Vec::new()), rows, v, linalg::range_of(count(rows.len()), share, shares))
}

/// What the tiles of these numbers add to `G V`.
fn multiply_tiles<T: Packed>(held: &KeptTiles<T>, rows: &KernelRows<'_>, v: &[f64], numbers: Range<usize>) -> Vec<f64> {
    let n = rows.len().max(1);
    let parts = linalg::fold(numbers.len(), PARTS, |part: Range<usize>| {
        let (mut scratch, mut values) = (Scratch::default(), Vec::new());
        let mut sums = TileSums::new(v, n);
        for number in part.start + numbers.start..part.end + numbers.start {
            let (left, right) = place(number, rows.len());
            match held.get(number) {
                Some(tile) => sums.add(tile, left, right),
                None => {
                    T::Work::tile(rows, left.clone(), right.clone(), &mut scratch, &mut values);
                    sums.add(&values, left, right);
                }
            }
        }
        sums.sums
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

/// What tiles give for columns of `v`, and room for the numbers of one tile: column after column, each as long as a tile's side.
struct TileSums<'v, W> {
    v: &'v [f64],
    n: usize,
    /// Column after column.
    sums: Vec<f64>,
    left: Vec<W>,
    right: Vec<W>,
    rows: Vec<W>,
    columns: Vec<W>,
}

impl<'v, W: Lanes + Packed<Work = W>> TileSums<'v, W> {
    fn new(v: &'v [f64], n: usize) -> Self {
        let room = || vec![W::default(); v.len() / n * SIDE];
        Self { v, n, sums: vec![0.0; v.len()], left: room(), right: room(), rows: room(), columns: room() }
    }

    /// Adds what a tile gives.
    fn add<T: Packed<Work = W>>(&mut self, tile: &[T], left: Range<usize>, right: Range<usize>) {
        let width = right.len();
        for (range, out) in [(&left, &mut self.left), (&right, &mut self.right)] {
            for (v, out) in self.v.chunks_exact(self.n).zip(out.chunks_exact_mut(SIDE)) {
                out[..range.len()].iter_mut().zip(&v[range.clone()]).for_each(|(out, v)| *out = W::of(*v * T::UNIT));
                out[range.len()..].fill(W::default());
            }
        }
        self.columns.fill(W::default());
        let Self { left: above, right: beside, rows, columns, .. } = self;
        let tile = &tile[..left.len() * width];
        pulp::Arch::new().dispatch(TileProduct { tile, width, left: above, right: beside, rows, columns });
        // A tile at the diagonal is whole.
        let both = left != right;
        for (c, sums) in self.sums.chunks_exact_mut(self.n).enumerate() {
            let add = |sums: &mut [f64], values: &[W]| {
                sums.iter_mut().zip(&values[c * SIDE..]).for_each(|(sum, value)| *sum += (*value).into());
            };
            add(&mut sums[left.clone()], &self.rows);
            if both {
                add(&mut sums[right.clone()], &self.columns);
            }
        }
    }
}

/// The products of a tile with vectors, and of its transpose with others; of all of them there is a tile's side.
struct TileProduct<'t, T: Packed> {
    tile: &'t [T],
    /// Columns of the tile.
    width: usize,
    left: &'t [T::Work],
    right: &'t [T::Work],
    /// `T right`
    rows: &'t mut [T::Work],
    /// `Tᵀ left` is added to this.
    columns: &'t mut [T::Work],
}

impl<T: Packed> pulp::WithSimd for TileProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) {
        let Self { tile, width, left, right, rows, columns } = self;
        let zero = T::Work::default();
        let mut strip = [[zero; SIDE]; STRIP];
        for (number, band) in tile.chunks(STRIP * width).enumerate() {
            for (line, values) in band.chunks_exact(width).zip(&mut strip) {
                values.iter_mut().zip(line).for_each(|(value, packed)| *value = packed.unpack());
            }
            // Rows that are not there have factors of zero, and their sums are not read.
            let at = number * STRIP..(number + 1) * STRIP;
            let vectors = right.chunks_exact(SIDE).zip(columns.chunks_exact_mut(SIDE));
            let factors = left.chunks_exact(SIDE).zip(rows.chunks_exact_mut(SIDE));
            for ((right, columns), (left, rows)) in vectors.zip(factors) {
                multiply_strip::<T::Work, S>(simd, &strip, right, columns, &left[at.clone()], &mut rows[at.clone()]);
            }
        }
    }
}

/// A strip times a vector into `rows`, and its transpose times factors added to `columns`.
#[inline(always)]
fn multiply_strip<W: Lanes, S: pulp::Simd>(
    simd: S,
    strip: &[[W; SIDE]; STRIP],
    right: &[W],
    columns: &mut [W],
    left: &[W],
    rows: &mut [W],
) {
    let (right, columns) = (W::vectors::<S>(right), W::vectors_mut::<S>(columns));
    let count = right.len();
    let columns = &mut columns[..count];
    let lines: [&[W::Vector<S>]; STRIP] = std::array::from_fn(|r| &W::vectors::<S>(&strip[r])[..count]);
    let factors: [W::Vector<S>; STRIP] = std::array::from_fn(|r| W::splat(simd, left[r]));
    let mut sums = [W::splat(simd, W::default()); STRIP];
    for j in 0..count {
        let (v, mut down) = (right[j], columns[j]);
        for r in 0..STRIP {
            sums[r] = W::fused(simd, lines[r][j], v, sums[r]);
            down = W::fused(simd, lines[r][j], factors[r], down);
        }
        columns[j] = down;
    }
    rows.iter_mut().zip(sums).for_each(|(row, sum)| *row = W::sum(simd, sum));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Matrix};
    use crate::kernel::{GramPrecision, Kernel};
    use crate::random::Random;

    /// Tiles that are whole and cut off, held and computed.
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
                for columns in [1, 2, 3, 8, 13] {
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
