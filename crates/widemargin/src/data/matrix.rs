//! Rows of numbers: dense or CSR, `f32` or `f64`, owned or borrowed. All sums are taken in `f64`.

use std::borrow::Cow;

/// A number as it is stored: `f32` or `f64`.
pub trait Real: Copy + Send + Sync + Default + PartialEq + std::fmt::Debug + Into<f64> + 'static {
    /// The nearest stored number.
    fn of(value: f64) -> Self;
}

impl Real for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

impl Real for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

/// What solvers and kernels need of a set of rows. Indices are trusted: they were checked when the matrix was built.
pub trait Rows: Sync {
    /// Number of rows `m`.
    fn rows(&self) -> usize;
    /// Number of columns `d`.
    fn cols(&self) -> usize;
    /// Number of stored values.
    fn stored(&self) -> usize;
    /// `x_i · w`, for `w` of length `cols()`.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// `w += a x_i`.
    fn axpy(&self, i: usize, a: f64, w: &mut [f64]);
    /// `‖x_i‖²`.
    fn norm2(&self, i: usize) -> f64;
    /// Calls `visit(column, value)` for each stored value of row `i`, columns rising.
    fn visit(&self, i: usize, visit: impl FnMut(usize, f64))
    where
        Self: Sized;
    /// The value in row `i`, column `j`.
    fn value(&self, i: usize, j: usize) -> f64;
    /// Appends `a x_i`, zeros included, for dense rows; of sparse ones only what is stored.
    fn extend_scaled(&self, i: usize, a: f64, out: &mut Vec<f64>);
    /// `out += h x_i x_iᵀ`: lower triangle, column-major, columns of length `n ≥ cols()`.
    fn add_outer(&self, i: usize, h: f64, out: &mut [f64], n: usize);
    /// Whether rows are stored densely.
    fn is_dense(&self) -> bool;
}

/// A dense matrix, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense<'a, T: Real> {
    rows: usize,
    cols: usize,
    values: Cow<'a, [T]>,
}

impl<'a, T: Real> Dense<'a, T> {
    /// Takes `rows × cols` values, row after row; `None` if their number does not fit.
    pub fn new(rows: usize, cols: usize, values: impl Into<Cow<'a, [T]>>) -> Option<Self> {
        let values = values.into();
        (rows.checked_mul(cols)? == values.len()).then_some(Self { rows, cols, values })
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, to be changed in place (a borrowed matrix is copied first).
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.to_mut()
    }

    /// Row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> &[T] {
        &self.values[i * self.cols..(i + 1) * self.cols]
    }
}

/// Independent partial sums of a long sum: enough for the compiler to fill the vector units.
const LANES: usize = 8;

/// `x · w` with [`LANES`] independent sums.
#[inline(always)]
pub(crate) fn dense_dot<T: Real>(x: &[T], w: &[f64]) -> f64 {
    let (xc, wc) = (x.chunks_exact(LANES), w[..x.len()].chunks_exact(LANES));
    let tail: f64 = xc.remainder().iter().zip(wc.remainder()).map(|(&a, &b)| a.into() * b).sum();
    let mut sums = [0.0; LANES];
    for (a, b) in xc.zip(wc) {
        for l in 0..LANES {
            sums[l] += a[l].into() * b[l];
        }
    }
    sums.iter().sum::<f64>() + tail
}

/// `‖x‖²` with [`LANES`] independent sums.
#[inline(always)]
fn squares<T: Real>(x: &[T]) -> f64 {
    let chunks = x.chunks_exact(LANES);
    let tail: f64 = chunks.remainder().iter().map(|&a| a.into() * a.into()).sum();
    let mut sums = [0.0; LANES];
    for a in chunks {
        for l in 0..LANES {
            sums[l] += a[l].into() * a[l].into();
        }
    }
    sums.iter().sum::<f64>() + tail
}

impl<T: Real> Rows for Dense<'_, T> {
    fn rows(&self) -> usize {
        self.rows
    }
    fn cols(&self) -> usize {
        self.cols
    }
    fn stored(&self) -> usize {
        self.values.len()
    }
    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        dense_dot(self.row(i), w)
    }
    #[inline(always)]
    fn axpy(&self, i: usize, a: f64, w: &mut [f64]) {
        for (w, &x) in w.iter_mut().zip(self.row(i)) {
            *w += a * x.into();
        }
    }
    #[inline(always)]
    fn norm2(&self, i: usize) -> f64 {
        squares(self.row(i))
    }
    #[inline(always)]
    fn visit(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        for (j, &x) in self.row(i).iter().enumerate() {
            visit(j, x.into());
        }
    }
    fn value(&self, i: usize, j: usize) -> f64 {
        self.row(i)[j].into()
    }
    #[inline(always)]
    fn extend_scaled(&self, i: usize, a: f64, out: &mut Vec<f64>) {
        out.extend(self.row(i).iter().map(|&x| a * x.into()));
    }
    fn add_outer(&self, i: usize, h: f64, out: &mut [f64], n: usize) {
        let row = self.row(i);
        for (j, &x) in row.iter().enumerate() {
            let scaled = h * x.into();
            out[j * n + j..].iter_mut().zip(&row[j..]).for_each(|(o, &z)| *o += scaled * z.into());
        }
    }
    fn is_dense(&self) -> bool {
        true
    }
}

/// A sparse matrix in compressed rows: 64-bit row offsets, 32-bit columns, columns of a row rising.
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<'a, T: Real> {
    cols: usize,
    offsets: Cow<'a, [u64]>,
    columns: Cow<'a, [u32]>,
    values: Cow<'a, [T]>,
}

impl<'a, T: Real> Csr<'a, T> {
    /// Takes the three arrays of a CSR matrix; `Err` says which rule they break.
    pub fn new(
        cols: usize,
        offsets: impl Into<Cow<'a, [u64]>>,
        columns: impl Into<Cow<'a, [u32]>>,
        values: impl Into<Cow<'a, [T]>>,
    ) -> Result<Self, &'static str> {
        let (offsets, columns, values) = (offsets.into(), columns.into(), values.into());
        if columns.len() != values.len() {
            return Err("as many columns as values");
        }
        if offsets.first() != Some(&0) || offsets.last() != Some(&(values.len() as u64)) {
            return Err("row offsets from 0 to the number of values");
        }
        if offsets.windows(2).any(|o| o[0] > o[1]) {
            return Err("row offsets that never fall");
        }
        for o in offsets.windows(2) {
            let row = &columns[o[0] as usize..o[1] as usize];
            if row.windows(2).any(|c| c[0] >= c[1]) {
                return Err("rising columns in each row");
            }
            if row.last().is_some_and(|&c| c as usize >= cols) {
                return Err("columns below the number of columns");
            }
        }
        Ok(Self { cols, offsets, columns, values })
    }

    /// Columns and values of row `i`.
    #[inline(always)]
    pub fn row(&self, i: usize) -> (&[u32], &[T]) {
        let (from, to) = (self.offsets[i] as usize, self.offsets[i + 1] as usize);
        (&self.columns[from..to], &self.values[from..to])
    }

    /// Where each row starts in `columns` and `values`.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Column of each value.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// The values, to be changed in place (a borrowed matrix is copied first).
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.to_mut()
    }

    /// Replaces each stored value by `f(column, value)`.
    pub fn map_values(&mut self, f: impl Fn(usize, f64) -> f64) {
        for (value, &column) in self.values.to_mut().iter_mut().zip(self.columns.iter()) {
            *value = T::of(f(column as usize, (*value).into()));
        }
    }
}

impl<T: Real> Rows for Csr<'_, T> {
    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }
    fn cols(&self) -> usize {
        self.cols
    }
    fn stored(&self) -> usize {
        self.values.len()
    }
    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let (columns, values) = self.row(i);
        // Four sums: the loads of `w` miss the cache, and a single chain of additions would wait for each.
        let (mut cc, mut vc) = (columns.chunks_exact(4), values.chunks_exact(4));
        let mut sums = [0.0; 4];
        for (c, v) in (&mut cc).zip(&mut vc) {
            for l in 0..4 {
                sums[l] += v[l].into() * w[c[l] as usize];
            }
        }
        // Its end comes last: memory is read in sequence.
        let tail: f64 = cc.remainder().iter().zip(vc.remainder()).map(|(&c, &v)| v.into() * w[c as usize]).sum();
        sums.iter().sum::<f64>() + tail
    }
    #[inline(always)]
    fn axpy(&self, i: usize, a: f64, w: &mut [f64]) {
        let (columns, values) = self.row(i);
        for (&c, &v) in columns.iter().zip(values) {
            w[c as usize] += a * v.into();
        }
    }
    #[inline(always)]
    fn norm2(&self, i: usize) -> f64 {
        squares(self.row(i).1)
    }
    #[inline(always)]
    fn visit(&self, i: usize, mut visit: impl FnMut(usize, f64)) {
        let (columns, values) = self.row(i);
        for (&c, &v) in columns.iter().zip(values) {
            visit(c as usize, v.into());
        }
    }
    fn value(&self, i: usize, j: usize) -> f64 {
        let (columns, values) = self.row(i);
        columns.binary_search(&(j as u32)).map_or(0.0, |at| values[at].into())
    }
    #[inline(always)]
    fn extend_scaled(&self, i: usize, a: f64, out: &mut Vec<f64>) {
        out.extend(self.row(i).1.iter().map(|&x| a * x.into()));
    }
    fn add_outer(&self, i: usize, h: f64, out: &mut [f64], n: usize) {
        let (columns, values) = self.row(i);
        for (p, (&c, &v)) in columns.iter().zip(values).enumerate() {
            let (scaled, column) = (h * v.into(), &mut out[c as usize * n..(c as usize + 1) * n]);
            for (&r, &other) in columns[p..].iter().zip(&values[p..]) {
                column[r as usize] += scaled * other.into();
            }
        }
    }
    fn is_dense(&self) -> bool {
        false
    }
}

/// Any of the four ways to hold rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix<'a> {
    /// Dense, single precision.
    DenseF32(Dense<'a, f32>),
    /// Dense, double precision.
    DenseF64(Dense<'a, f64>),
    /// Sparse, single precision.
    SparseF32(Csr<'a, f32>),
    /// Sparse, double precision.
    SparseF64(Csr<'a, f64>),
}

/// Runs one expression with the concrete matrix inside a [`Matrix`]: generic code enters here.
#[macro_export]
macro_rules! with_rows {
    ($matrix:expr, $rows:ident => $body:expr) => {
        match $matrix {
            $crate::data::Matrix::DenseF32($rows) => $body,
            $crate::data::Matrix::DenseF64($rows) => $body,
            $crate::data::Matrix::SparseF32($rows) => $body,
            $crate::data::Matrix::SparseF64($rows) => $body,
        }
    };
}

/// Runs one of two expressions with the concrete matrix inside a [`Matrix`], and holds what it makes the same way.
macro_rules! held_alike {
    ($matrix:expr, $rows:ident => $dense:expr, $sparse:expr) => {
        match $matrix {
            Matrix::DenseF32($rows) => Matrix::DenseF32($dense),
            Matrix::DenseF64($rows) => Matrix::DenseF64($dense),
            Matrix::SparseF32($rows) => Matrix::SparseF32($sparse),
            Matrix::SparseF64($rows) => Matrix::SparseF64($sparse),
        }
    };
}

/// Dense rows of another width: cut, or filled with zeros.
fn dense_with_cols<T: Real>(x: &Dense<'_, T>, cols: usize) -> Dense<'static, T> {
    let mut values = vec![T::default(); x.rows * cols];
    let kept = cols.min(x.cols);
    for i in 0..x.rows {
        values[i * cols..i * cols + kept].copy_from_slice(&x.row(i)[..kept]);
    }
    Dense { rows: x.rows, cols, values: values.into() }
}

/// Sparse rows without the columns from `cols` on, and without zeros.
fn sparse_with_cols<T: Real>(x: &impl Rows, cols: usize) -> Csr<'static, T> {
    let (mut offsets, mut columns, mut values) = (Vec::with_capacity(x.rows() + 1), Vec::new(), Vec::new());
    offsets.push(0);
    for i in 0..x.rows() {
        x.visit(i, |j, v| {
            if j < cols && v != 0.0 {
                columns.push(j as u32);
                values.push(T::of(v));
            }
        });
        offsets.push(values.len() as u64);
    }
    Csr { cols, offsets: offsets.into(), columns: columns.into(), values: values.into() }
}

/// How many columns from `cols` on hold a value other than zero.
fn used_columns_from(x: &impl Rows, cols: usize) -> usize {
    let mut used = std::collections::HashSet::new();
    for i in 0..x.rows() {
        x.visit(i, |j, v| {
            if j >= cols && v != 0.0 {
                used.insert(j);
            }
        });
    }
    used.len()
}

/// Whether rows of `cols` columns are smaller dense, with values of type `T`.
fn dense_is_smaller<T>(rows: usize, cols: usize, stored: usize) -> bool {
    let size = size_of::<T>() as u128;
    (rows as u128) * (cols as u128) * size < (stored as u128) * (size + 4) + 8 * (rows as u128 + 1)
}

impl<'a> Matrix<'a> {
    /// The rows with exactly `cols` columns: wider by zeros, or without the columns beyond; and how many of the
    /// columns dropped held a value other than zero. Needed to predict on files of another width than the model's.
    ///
    /// Dense rows become sparse where the zeros added would take more memory than that.
    pub fn with_cols(self, cols: usize) -> (Matrix<'a>, usize) {
        if cols == self.cols() {
            return (self, 0);
        }
        let dropped = with_rows!(&self, x => used_columns_from(x, cols));
        fn dense<'a, T: Real>(
            x: Dense<'_, T>,
            cols: usize,
            as_dense: impl Fn(Dense<'a, T>) -> Matrix<'a>,
            as_sparse: impl Fn(Csr<'a, T>) -> Matrix<'a>,
        ) -> Matrix<'a> {
            if cols < x.cols || dense_is_smaller::<T>(x.rows, cols, x.values.len()) {
                as_dense(dense_with_cols(&x, cols))
            } else {
                as_sparse(sparse_with_cols(&x, cols))
            }
        }
        fn sparse<'a, T: Real>(x: Csr<'a, T>, cols: usize) -> Csr<'a, T> {
            if cols < x.cols { sparse_with_cols(&x, cols) } else { Csr { cols, ..x } }
        }
        let matrix = match self {
            Matrix::DenseF32(x) => dense(x, cols, Matrix::DenseF32, Matrix::SparseF32),
            Matrix::DenseF64(x) => dense(x, cols, Matrix::DenseF64, Matrix::SparseF64),
            Matrix::SparseF32(x) => Matrix::SparseF32(sparse(x, cols)),
            Matrix::SparseF64(x) => Matrix::SparseF64(sparse(x, cols)),
        };
        (matrix, dropped)
    }

    /// The same rows, held by themselves.
    pub fn into_owned(self) -> Matrix<'static> {
        held_alike!(self, x => Dense { rows: x.rows, cols: x.cols, values: x.values.into_owned().into() }, Csr {
            cols: x.cols,
            offsets: x.offsets.into_owned().into(),
            columns: x.columns.into_owned().into(),
            values: x.values.into_owned().into(),
        })
    }

    /// The same values, held densely. Takes `rows × cols` values of memory.
    pub fn into_dense(self) -> Matrix<'a> {
        fn dense<T: Real>(x: &Csr<'_, T>) -> Dense<'static, T> {
            let mut values = vec![T::default(); x.rows() * x.cols];
            for i in 0..x.rows() {
                let (columns, row) = x.row(i);
                for (&c, &v) in columns.iter().zip(row) {
                    values[i * x.cols + c as usize] = v;
                }
            }
            Dense { rows: x.rows(), cols: x.cols, values: values.into() }
        }
        match self {
            Matrix::SparseF32(x) => Matrix::DenseF32(dense(&x)),
            Matrix::SparseF64(x) => Matrix::DenseF64(dense(&x)),
            dense => dense,
        }
    }
}

impl Matrix<'_> {
    /// The same rows, borrowed.
    pub fn view(&self) -> Matrix<'_> {
        held_alike!(self, x => Dense { rows: x.rows, cols: x.cols, values: Cow::Borrowed(&x.values) }, Csr {
            cols: x.cols,
            offsets: Cow::Borrowed(&x.offsets),
            columns: Cow::Borrowed(&x.columns),
            values: Cow::Borrowed(&x.values),
        })
    }

    /// Number of rows `m`.
    pub fn rows(&self) -> usize {
        with_rows!(self, x => x.rows())
    }

    /// Number of columns `d`.
    pub fn cols(&self) -> usize {
        with_rows!(self, x => x.cols())
    }

    /// Number of stored values.
    pub fn stored(&self) -> usize {
        with_rows!(self, x => x.stored())
    }

    /// Whether rows are stored densely.
    pub fn is_dense(&self) -> bool {
        with_rows!(self, x => x.is_dense())
    }

    /// Whether values are stored in single precision.
    pub fn is_f32(&self) -> bool {
        matches!(self, Matrix::DenseF32(_) | Matrix::SparseF32(_))
    }

    /// These rows and then the others, in double precision; dense if both are.
    pub fn stacked(&self, others: &Matrix<'_>) -> Matrix<'static> {
        let (rows, cols) = (self.rows() + others.rows(), self.cols().max(others.cols()));
        if self.is_dense() && others.is_dense() {
            let mut values = vec![0.0; rows * cols];
            let mut from = 0;
            for part in [self, others] {
                let fill = |values: &mut [f64], i: usize| {
                    with_rows!(part, x => x.visit(i, |j, v| values[(from + i) * cols + j] = v));
                };
                (0..part.rows()).for_each(|i| fill(&mut values, i));
                from += part.rows();
            }
            return Matrix::DenseF64(Dense { rows, cols, values: values.into() });
        }
        let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
        for part in [self, others] {
            for i in 0..part.rows() {
                with_rows!(part, x => x.visit(i, |j, v| {
                    columns.push(j as u32);
                    values.push(v);
                }));
                offsets.push(values.len() as u64);
            }
        }
        Matrix::SparseF64(Csr { cols, offsets: offsets.into(), columns: columns.into(), values: values.into() })
    }

    /// The chosen rows, in the given order, stored the same way.
    pub fn select(&self, rows: &[usize]) -> Matrix<'static> {
        fn dense<T: Real>(x: &Dense<'_, T>, rows: &[usize]) -> Dense<'static, T> {
            let values: Vec<T> = rows.iter().flat_map(|&i| x.row(i).iter().copied()).collect();
            Dense { rows: rows.len(), cols: x.cols, values: values.into() }
        }
        fn sparse<T: Real>(x: &Csr<'_, T>, rows: &[usize]) -> Csr<'static, T> {
            let mut offsets = Vec::with_capacity(rows.len() + 1);
            offsets.push(0u64);
            for &i in rows {
                offsets.push(offsets[offsets.len() - 1] + (x.offsets[i + 1] - x.offsets[i]));
            }
            let stored = offsets[rows.len()] as usize;
            let (mut columns, mut values) = (Vec::with_capacity(stored), Vec::with_capacity(stored));
            for &i in rows {
                let (c, v) = x.row(i);
                columns.extend_from_slice(c);
                values.extend_from_slice(v);
            }
            Csr { cols: x.cols, offsets: offsets.into(), columns: columns.into(), values: values.into() }
        }
        held_alike!(self, x => dense(x, rows), sparse(x, rows))
    }
}
