//! Scaling of features: `x' = (x − shift) · factor`, one shift and factor a column.

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
}

named!(ScalingKind, "scale", [
    MinMax: "minmax" "to [0, 1]",
    MaxAbs: "maxabs" "to [-1, 1], zero stays zero",
    Standard: "standard" "to mean 0 and standard deviation 1",
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
/// negative value; [`ScalingKind::Standard`] divides by the same standard deviation, but does not centre.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// How it was fitted.
    pub kind: ScalingKind,
    /// What is taken from each feature.
    pub shift: Vec<f64>,
    /// What each feature is then multiplied by.
    pub factor: Vec<f64>,
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
        self.shift.iter().zip(&self.factor).any(|(&shift, &factor)| shift != 0.0 && factor != 0.0)
    }

    #[inline]
    fn scaled(&self, j: usize, value: f64) -> f64 {
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
            };
            let factor = if spread > 0.0 { 1.0 / spread } else { 0.0 };
            let factor = if factor.is_finite() { factor } else { 0.0 };
            (if x.is_dense() && shift.is_finite() { shift } else { 0.0 }, factor)
        })
        .unzip();
    Scaling { kind, shift, factor }
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
