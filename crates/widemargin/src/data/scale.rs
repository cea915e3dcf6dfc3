//! Scaling of features: `x' = (x − shift) · factor`, one shift and factor a column; or each value's rank.

use super::{Csr, Dense, Matrix, Real, Rows};
use crate::names::named;
use crate::{Result, with_rows};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How features are scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScalingKind {
    /// To the range from 0 to 1: the shift is the minimum, the factor `1 / (maximum − minimum)`.
    MinMax,
    /// To the range from −1 to 1: no shift, the factor is `1 / maximum of |x|`.
    MaxAbs,
    /// To mean 0 and variance 1: the shift is the mean, the factor `1 / standard deviation` (of the rows themselves,
    /// dividing by their number).
    Standard,
    /// To its rank: `x' = (rows below x + (rows equal to x + 1) / 2) / rows`, between two values of the rows on the line
    /// through their ranks, beyond them the rank of the last.
    Rank,
}

named!(ScalingKind, "scale", [
    MinMax: "minmax" "to [0, 1]",
    MaxAbs: "maxabs" "to [-1, 1], zero stays zero",
    Standard: "standard" "to mean 0 and standard deviation 1",
    Rank: "rank" "to the rank among the training rows, by their number",
]);

impl ScalingKind {
    /// The word for no scaling.
    pub const NONE: &'static str = "none";

    /// Reads a scaling, or [`NONE`](Self::NONE).
    pub fn read(text: &str) -> Result<Option<Self>> {
        if text == Self::NONE { Ok(None) } else { text.parse().map(Some) }
    }

    /// The word of a scaling, or of none.
    pub fn word(kind: Option<Self>) -> &'static str {
        kind.map_or(Self::NONE, Self::name)
    }
}

/// A scaling, fitted on some rows, to be applied to these and others.
///
/// A feature that is constant in the rows it was fitted on gets the factor 0: it tells nothing, and however far an
/// unseen value lies from the constant, it stays 0 (for [`ScalingKind::MaxAbs`] only a feature that is zero throughout).
///
/// Sparse rows stay sparse, so their zeros must stay zeros: fitted on sparse rows, every shift is 0.
/// [`ScalingKind::MinMax`] then takes zero into the range, which is no change for a feature with a zero and no
/// negative value; [`ScalingKind::Standard`] divides by the same standard deviation, but does not centre;
/// [`ScalingKind::Rank`] takes the rank of zero from all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// How it was fitted.
    pub kind: ScalingKind,
    /// What is taken from each feature.
    pub shift: Vec<f64>,
    /// What each feature is then multiplied by.
    pub factor: Vec<f64>,
    /// Of [`ScalingKind::Rank`], which has no shift and the factor 1, the ranks.
    pub ranks: Option<Ranks>,
}

/// The ranks of the values of each feature.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranks {
    /// Where each feature's values begin, and where the last one's end.
    pub offsets: Vec<u64>,
    /// The values, ascending within a feature.
    pub values: Vec<f64>,
    /// Their ranks.
    pub ranks: Vec<f64>,
}

/// Most values of a feature whose ranks are kept; of more, so many evenly spaced ones.
const MOST_RANKS: usize = 1 << 16;

impl Ranks {
    fn fit<X: Rows>(x: &X, weight: impl Fn(usize) -> f64, total: f64) -> Self {
        let mut columns: Vec<Vec<(f64, f64)>> = vec![Vec::new(); x.cols()];
        for (i, w) in (0..x.rows()).map(|i| (i, weight(i))).filter(|(_, w)| *w > 0.0) {
            x.visit(i, |j, v| columns[j].push((v + 0.0, w)));
        }
        let sparse = !x.is_dense();
        let ranked: Vec<Vec<(f64, f64)>> =
            columns.into_par_iter().map(|column| ranked(column, total, sparse)).collect();
        let mut offsets = vec![0];
        offsets.extend(ranked.iter().scan(0, |end, column| {
            *end += column.len() as u64;
            Some(*end)
        }));
        let (values, ranks) = ranked.into_iter().flatten().unzip();
        Self { offsets, values, ranks }
    }

    /// The values of each feature, and their ranks.
    pub(crate) fn by_feature(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        (1..self.offsets.len()).map(|end| self.of(end - 1))
    }

    fn of(&self, j: usize) -> (&[f64], &[f64]) {
        let range = self.offsets[j] as usize..self.offsets[j + 1] as usize;
        (&self.values[range.clone()], &self.ranks[range])
    }

    /// The rank of a value of feature `j`.
    fn at(&self, j: usize, value: f64) -> f64 {
        let (values, ranks) = self.of(j);
        interpolate(values, ranks, value)
    }

    /// Says which rule the numbers break for so many features, if any.
    pub(crate) fn check(&self, features: usize) -> std::result::Result<(), String> {
        let ends = self.offsets.first() == Some(&0) && self.offsets.last() == Some(&(self.values.len() as u64));
        let rising = self.offsets.windows(2).all(|w| w[0] < w[1]);
        if self.offsets.len() != features + 1 || !ends || !rising || self.ranks.len() != self.values.len() {
            return Err("expected the ranks of at least one value of each feature".into());
        }
        let finite = self.values.iter().chain(&self.ranks).all(|v| v.is_finite());
        let column = |w: &[u64]| self.values[w[0] as usize..w[1] as usize].is_sorted_by(|a, b| a < b);
        let order = self.offsets.windows(2).all(column);
        if finite && order { Ok(()) } else { Err("expected finite ranks of rising values".into()) }
    }
}

/// From ascending values to others, with straight lines in between and the first and the last beyond the ends.
pub(crate) fn interpolate(values: &[f64], ranks: &[f64], value: f64) -> f64 {
    let above = values.partition_point(|v| *v < value);
    if above == 0 || above == values.len() || values[above] == value {
        return ranks[above.min(values.len() - 1)];
    }
    let (low, high) = (values[above - 1], values[above]);
    // Halves, because the difference of two numbers may be too large for one.
    let part = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
    ranks[above - 1] + part * (ranks[above] - ranks[above - 1])
}

/// The distinct values of a column with their ranks; `total` is the weight of all rows. Of sparse rows zeros are not listed,
/// and the rank of zero is taken from all.
fn ranked(mut column: Vec<(f64, f64)>, total: f64, sparse: bool) -> Vec<(f64, f64)> {
    let listed: f64 = column.iter().map(|(_, w)| w).sum();
    if sparse && total > listed {
        column.push((0.0, total - listed));
    }
    column.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut found: Vec<(f64, f64)> = Vec::new();
    let (mut below, mut at) = (0.0, 0);
    while at < column.len() {
        let value = column[at].0;
        let equal: f64 = column[at..].iter().take_while(|(v, _)| *v == value).map(|(_, w)| w).sum();
        at += column[at..].iter().take_while(|(v, _)| *v == value).count();
        found.push((value, (below + (equal + 1.0) / 2.0) / total));
        below += equal;
    }
    if found.len() > MOST_RANKS {
        let last = found.len() - 1;
        found = (0..MOST_RANKS).map(|k| found[k * last / (MOST_RANKS - 1)]).collect();
    }
    if found.len() < 2 {
        // A feature that is constant tells nothing.
        return vec![(0.0, 0.0)];
    }
    if sparse {
        let (values, ranks): (Vec<f64>, Vec<f64>) = found.iter().copied().unzip();
        let zero = interpolate(&values, &ranks, 0.0);
        found.iter_mut().for_each(|(_, rank)| *rank -= zero);
    }
    found
}

/// Two features of very unlike scales.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnlikeScales {
    /// The feature with the smallest range of values above zero, from 0, and that range.
    pub narrow: (usize, f64),
    /// The feature with the largest.
    pub wide: (usize, f64),
}

/// How many times as wide as another a feature may be before a kernel hardly sees that other.
const UNLIKE: f64 = 1000.0;

/// Two features whose ranges of values differ by a factor of more than a thousand, the narrowest and the widest, if there
/// are such: a kernel of distances or inner products then hardly sees the narrow one.
pub fn unlike_scales(rows: &Matrix<'_>) -> Option<UnlikeScales> {
    let mut columns =
        with_rows!(rows, x => by_column(x, |_| 1.0, EMPTY, |column, _, v, w| column.add(v, w), ColumnSummary::join));
    let m = rows.rows() as f64;
    columns.iter_mut().filter(|c| c.weight < m).for_each(ColumnSummary::with_zero);
    let ranges = columns.iter().map(|c| c.max - c.min).enumerate().filter(|(_, range)| *range > 0.0);
    let narrow = ranges.clone().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let wide = ranges.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (wide.1 > UNLIKE * narrow.1).then_some(UnlikeScales { narrow, wide })
}

/// Rows that a thread scales together: fewer are not worth waking one.
const TOGETHER: usize = 256;

/// A column's statistics over rows of positive weight; zeros that are not stored do not count.
#[derive(Clone, Copy)]
struct ColumnSummary {
    min: f64,
    max: f64,
    sum: f64,
    weight: f64,
}

const EMPTY: ColumnSummary = ColumnSummary { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, weight: 0.0 };

impl ColumnSummary {
    fn add(&mut self, value: f64, weight: f64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += weight * value;
        self.weight += weight;
    }

    fn join(&mut self, other: &Self) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.weight += other.weight;
    }

    /// Takes a zero into the range.
    fn with_zero(&mut self) {
        self.min = self.min.min(0.0);
        self.max = self.max.max(0.0);
    }
}

impl Scaling {
    /// Ranks from 0 to 1: `x' = (r(x) − min r) / (max r − min r)` with the ranks `r` of [`ScalingKind::Rank`], so that a feature of
    /// two values is as wide as one of many. Sparse rows keep their zeros.
    pub fn by_rank(rows: &Matrix<'_>, weights: &[f64]) -> Self {
        let mut scaling = Self::fit(ScalingKind::Rank, rows, Some(weights));
        if let Some(Ranks { offsets, ranks, .. }) = &mut scaling.ranks {
            for ends in offsets.windows(2) {
                let ranks = &mut ranks[ends[0] as usize..ends[1] as usize];
                let (least, most) = (ranks[0], ranks[ranks.len() - 1]);
                let shift = if rows.is_dense() { least } else { 0.0 };
                let spread = if most > least { most - least } else { 1.0 };
                ranks.iter_mut().for_each(|rank| *rank = (*rank - shift) / spread);
            }
        }
        scaling
    }

    /// Says which rule it breaks for so many features, if any.
    pub(crate) fn check(&self, features: usize) -> std::result::Result<(), String> {
        if self.shift.len() != features || self.factor.len() != features {
            return Err("expected one shift and one factor a feature".into());
        }
        if !self.shift.iter().chain(&self.factor).all(|v| v.is_finite()) {
            return Err("expected finite shifts and factors".into());
        }
        if self.ranks.is_some() != (self.kind == ScalingKind::Rank) {
            return Err("expected ranks where the scaling is by rank".into());
        }
        self.ranks.as_ref().map_or(Ok(()), |ranks| ranks.check(features))
    }

    /// Fits a scaling to rows. There is one weight a row, which acts as if the row were there so many times; 0 leaves
    /// it out.
    ///
    /// The result does not depend on the number of threads.
    pub fn fit(kind: ScalingKind, rows: &Matrix<'_>, weights: Option<&[f64]>) -> Self {
        with_rows!(rows, x => fit(kind, x, weights))
    }

    /// The scaled rows, in the same precision, with as many columns as the scaling has: columns beyond are dropped,
    /// columns that are missing are taken for zero.
    ///
    /// Rows stay as they are stored, except that sparse rows become dense if a shift is not 0: a zero is then no
    /// longer one.
    pub fn apply(&self, rows: &Matrix<'_>) -> Matrix<'static> {
        self.apply_owned(rows.clone().into_owned())
    }

    /// As [`apply`](Self::apply), in place where that can be done.
    pub fn apply_owned(&self, rows: Matrix<'static>) -> Matrix<'static> {
        let (mut rows, _) = rows.with_cols(self.shift.len());
        if self.moves_zeros() {
            rows = rows.into_dense();
        }
        match &mut rows {
            Matrix::DenseF32(x) => self.scale_dense(x),
            Matrix::DenseF64(x) => self.scale_dense(x),
            Matrix::SparseF32(x) => self.scale_sparse(x),
            Matrix::SparseF64(x) => self.scale_sparse(x),
        }
        rows
    }

    fn moves_zeros(&self) -> bool {
        if let Some(ranks) = &self.ranks {
            return (0..self.shift.len()).any(|j| ranks.at(j, 0.0) != 0.0);
        }
        self.shift.iter().zip(&self.factor).any(|(&shift, &factor)| shift != 0.0 && factor != 0.0)
    }

    #[inline]
    fn scaled(&self, j: usize, value: f64) -> f64 {
        if let Some(ranks) = &self.ranks {
            return ranks.at(j, value);
        }
        match self.factor[j] {
            // Not a product, which is NaN if the difference is infinite.
            0.0 => 0.0,
            factor => (value - self.shift[j]) * factor,
        }
    }

    fn scale_dense<T: Real>(&self, x: &mut Dense<'static, T>) {
        let cols = x.cols();
        if cols == 0 {
            return;
        }
        let scale = |row: &mut [T]| {
            for (j, value) in row.iter_mut().enumerate() {
                *value = T::of(self.scaled(j, (*value).into()));
            }
        };
        if x.rows() < TOGETHER {
            x.values_mut().chunks_mut(cols).for_each(scale);
        } else {
            x.values_mut().par_chunks_mut(cols).with_min_len(TOGETHER).for_each(scale);
        }
    }

    fn scale_sparse<T: Real>(&self, x: &mut Csr<'static, T>) {
        x.map_values(|j, value| self.scaled(j, value));
    }
}

fn fit<X: Rows>(kind: ScalingKind, x: &X, weights: Option<&[f64]>) -> Scaling {
    let weight = |i: usize| weights.map_or(1.0, |w| w[i]);
    let total: f64 = (0..x.rows()).map(weight).filter(|&w| w > 0.0).sum();
    if kind == ScalingKind::Rank {
        let (shift, factor) = (vec![0.0; x.cols()], vec![1.0; x.cols()]);
        return Scaling { kind, shift, factor, ranks: Some(Ranks::fit(x, weight, total)) };
    }
    let mut columns = by_column(x, weight, EMPTY, |column, _, v, w| column.add(v, w), ColumnSummary::join);
    for column in columns.iter_mut().filter(|c| !x.is_dense() || c.weight == 0.0) {
        // Zeros not stored; and with sparse rows zero belongs to the range anyway.
        column.with_zero();
    }
    let deviation = match kind {
        ScalingKind::Standard => deviations(x, weight, total, &columns),
        _ => Vec::new(),
    };
    let (shift, factor) = columns
        .iter()
        .enumerate()
        .map(|(j, c)| {
            let (shift, spread) = match kind {
                ScalingKind::MinMax => (c.min, c.max - c.min),
                ScalingKind::MaxAbs => (0.0, c.max.max(-c.min)),
                ScalingKind::Standard => (c.sum / total, deviation[j]),
                ScalingKind::Rank => (0.0, 1.0),
            };
            let factor = if spread > 0.0 { 1.0 / spread } else { 0.0 };
            let factor = if factor.is_finite() { factor } else { 0.0 };
            (if x.is_dense() && shift.is_finite() { shift } else { 0.0 }, factor)
        })
        .unzip();
    Scaling { kind, shift, factor, ranks: None }
}

/// Standard deviation of each column, 0 where it is all rounding.
fn deviations<X: Rows>(x: &X, weight: impl Fn(usize) -> f64 + Sync, total: f64, columns: &[ColumnSummary]) -> Vec<f64> {
    let mean: Vec<f64> = columns.iter().map(|c| c.sum / total).collect();
    let squares = by_column(x, weight, 0.0, |s, j, v, w| *s += w * (v - mean[j]) * (v - mean[j]), |s, t| *s += t);
    let deviation = |j: usize| {
        let column = &columns[j];
        let rest = (total - column.weight).max(0.0);
        let deviation = ((squares[j] + rest * mean[j] * mean[j]) / total).sqrt();
        let rounding = 8.0 * f64::EPSILON * column.max.max(-column.min);
        if deviation > rounding { deviation } else { 0.0 }
    };
    (0..columns.len()).map(deviation).collect()
}

/// Gathers something for each column over the rows of positive weight, in parallel over a partition that depends on
/// the data alone. A part has several times as many values as there are columns, so that what is gathered stays small.
fn by_column<X: Rows, A: Copy + Send + Sync>(
    x: &X,
    weight: impl Fn(usize) -> f64 + Sync,
    empty: A,
    add: impl Fn(&mut A, usize, f64, f64) + Sync,
    join: impl Fn(&mut A, &A),
) -> Vec<A> {
    let parts = (x.stored() / (8 * x.cols().max(1))).clamp(1, 64);
    let gather = |part: usize| {
        let mut columns = vec![empty; x.cols()];
        for i in part * x.rows() / parts..(part + 1) * x.rows() / parts {
            let w = weight(i);
            if w > 0.0 {
                x.visit(i, |j, v| add(&mut columns[j], j, v, w));
            }
        }
        columns
    };
    let gathered: Vec<Vec<A>> = (0..parts).into_par_iter().map(gather).collect();
    let mut all = vec![empty; x.cols()];
    for part in &gathered {
        for (a, b) in all.iter_mut().zip(part) {
            join(a, b);
        }
    }
    all
}
