//! Joins parsed chunks to one matrix, holding it the smallest way known so far.

use super::texts::{TextCell, TextColumn};
use super::{Precision, ReadOptions, Storage};
use crate::data::{Csr, Dense, Labels, Matrix, MetLabels, Real};
use crate::{Error, Result, memory};
use std::collections::HashMap;

/// Some rows as they were parsed. Small, so values may be wide; zeros are left out.
#[derive(Default)]
pub(super) struct Chunk {
    pub(super) values: Vec<f64>,
    pub(super) columns: Vec<u32>,
    /// Where each row ends in `values`.
    pub(super) ends: Vec<usize>,
    /// Columns mentioned, zeros too.
    pub(super) cols: usize,
    /// Whether a value is not an `f32`.
    pub(super) wide: bool,
    /// For each row a position in `names`; empty if rows have no labels.
    pub(super) labels: Vec<u32>,
    pub(super) names: Vec<String>,
    /// What tells rows apart, if the table has it.
    pub(super) ids: Vec<String>,
    /// Fields that are no numbers, and what they say.
    pub(super) cells: Vec<TextCell>,
    pub(super) texts: Vec<String>,
    /// Lines of text, blank ones too.
    pub(super) lines: u64,
    /// Whether the first row has a label, and what to say if the rows before differ.
    pub(super) head: Option<(bool, Fault)>,
    /// The first thing wrong; rows after it are not there.
    pub(super) fault: Option<Fault>,
}

/// Something wrong in a chunk.
#[derive(Default)]
pub(super) struct Fault {
    /// Line in the chunk, from 0.
    pub(super) line: u64,
    /// Column (or field), from 1.
    pub(super) column: u64,
    pub(super) found: String,
    pub(super) expected: String,
}

impl Chunk {
    /// Adds a value to the row at hand.
    #[inline]
    pub(super) fn push(&mut self, column: u32, value: f64) {
        if value != 0.0 {
            self.wide |= f64::from(value as f32) != value;
            self.columns.push(column);
            self.values.push(value);
        }
    }

    /// Puts the values of the row at hand, which begin at `from`, in the order of their columns.
    pub(super) fn sort_row(&mut self, from: usize) {
        let mut row: Vec<(u32, f64)> =
            self.columns[from..].iter().copied().zip(self.values[from..].iter().copied()).collect();
        row.sort_unstable_by_key(|(column, _)| *column);
        for (k, (column, value)) in row.into_iter().enumerate() {
            (self.columns[from + k], self.values[from + k]) = (column, value);
        }
    }

    /// Ends the row at hand.
    #[inline]
    pub(super) fn end_row(&mut self) {
        self.ends.push(self.values.len());
    }

    fn rows(&self) -> impl Iterator<Item = (&[u32], &[f64])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, &to)| (&self.columns[from..to], &self.values[from..to]))
    }
}

/// Gives each label of a chunk a number.
#[derive(Default)]
pub(super) struct ChunkLabels<'t> {
    known: HashMap<&'t [u8], u32>,
    last: Option<(&'t [u8], u32)>,
}

impl<'t> ChunkLabels<'t> {
    /// Adds the label of a row; `false` if it is not UTF-8.
    pub(super) fn push(&mut self, label: &'t [u8], chunk: &mut Chunk) -> bool {
        let code = match self.last {
            Some((last, code)) if last == label => code,
            _ => match self.known.get(label) {
                Some(&code) => code,
                None => {
                    let Ok(name) = std::str::from_utf8(label) else { return false };
                    let code = chunk.names.len() as u32;
                    chunk.names.push(name.into());
                    self.known.insert(label, code);
                    code
                }
            },
        };
        self.last = Some((label, code));
        chunk.labels.push(code);
        true
    }
}

/// Runs an expression with the vector inside [`Values`].
macro_rules! with_values {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            Values::F32($v) => $body,
            Values::F64($v) => $body,
        }
    };
}

/// Values in the precision needed so far.
enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Default for Values {
    fn default() -> Self {
        Self::F32(Vec::new())
    }
}

impl Values {
    fn bytes(&self) -> u128 {
        match self {
            Self::F32(_) => 4,
            Self::F64(_) => 8,
        }
    }

    fn len(&self) -> usize {
        with_values!(self, v => v.len())
    }

    fn growth(&self, more: usize) -> usize {
        with_values!(self, v => growth(v, more))
    }

    fn widen(&mut self) {
        if let Self::F32(narrow) = self {
            *self = Self::F64(std::mem::take(narrow).into_iter().map(f64::from).collect());
        }
    }
}

/// The rows so far.
///
/// They are held densely or sparsely, whichever is smaller, in vectors that grow: the operating system moves large
/// ones without copying, so that reading takes hardly more memory than the result. If the other way turns out to be
/// smaller by half, or is smaller in the end, they are converted.
#[derive(Default)]
pub(super) struct Builder {
    file: String,
    precision: Precision,
    storage: Storage,
    features: usize,
    dense: bool,
    rows: usize,
    cols: usize,
    /// Values that are not zero.
    stored: usize,
    values: Values,
    /// If sparse: the column of each value, and where each row ends.
    columns: Vec<u32>,
    ends: Vec<u64>,
    labelled: Option<bool>,
    codes: Vec<u32>,
    met: MetLabels,
    /// Of tables, for each column what is no number in it.
    ids: Vec<String>,
    texts: Vec<TextColumn>,
    lines: u64,
}

/// What a builder made of its chunks.
pub(super) struct Built {
    pub(super) rows: Matrix<'static>,
    pub(super) labels: Option<Labels>,
    pub(super) ids: Vec<String>,
    pub(super) texts: Vec<TextColumn>,
}

impl Builder {
    pub(super) fn new(file: &str, options: &ReadOptions) -> Self {
        let values = match options.precision {
            Precision::F64 => Values::F64(Vec::new()),
            _ => Values::default(),
        };
        let (precision, storage, features) = (options.precision, options.storage, options.features.unwrap_or(0));
        Self { file: file.into(), precision, storage, features, values, ..Self::default() }
    }

    /// One whose chunks may have fields that are no numbers, in so many columns.
    pub(super) fn of_table(file: &str, options: &ReadOptions, texts: Vec<TextColumn>) -> Self {
        Self { texts, ..Self::new(file, options) }
    }

    /// The rows so far; those that follow are counted on, from the same line.
    pub(super) fn take(&mut self, options: &ReadOptions, texts: Vec<TextColumn>) -> Self {
        let next = Self { lines: self.lines, labelled: self.labelled, ..Self::of_table(&self.file, options, texts) };
        std::mem::replace(self, next)
    }

    /// Whether there are no rows yet.
    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Adds the next rows.
    pub(super) fn append(&mut self, mut chunk: Chunk) -> Result<()> {
        if let Some((labelled, fault)) = chunk.head.take()
            && *self.labelled.get_or_insert(labelled) != labelled
        {
            return Err(self.parse_error(fault));
        }
        if let Some(fault) = chunk.fault {
            return Err(self.parse_error(fault));
        }
        self.lines += chunk.lines;
        if chunk.ends.is_empty() {
            return Ok(());
        }
        self.append_labels(&chunk)?;
        self.append_ids(&mut chunk)?;
        self.append_texts(&chunk, self.lines - chunk.lines)?;
        if chunk.wide && self.precision == Precision::Auto {
            self.check_held(self.values.len(), 8)?;
            self.values.widen();
        }
        self.make_room(&chunk)?;
        if self.dense { self.append_dense(&chunk) } else { self.append_sparse(&chunk) }
    }

    /// Refuses to hold so many numbers more where memory ends: what is packed may be without end.
    fn check_held(&self, numbers: usize, size: usize) -> Result<()> {
        let what = || format!("{}: what follows its first {} rows", self.file, self.codes.len().max(self.rows));
        memory::check(what, (numbers as u64).saturating_mul(size as u64), "take fewer rows")
    }

    fn parse_error(&self, fault: Fault) -> Error {
        Error::Parse {
            file: self.file.clone(),
            line: self.lines + fault.line + 1,
            column: fault.column,
            found: fault.found,
            expected: fault.expected,
        }
    }

    fn append_labels(&mut self, chunk: &Chunk) -> Result<()> {
        self.check_held(growth(&self.codes, chunk.labels.len()), 4)?;
        self.codes.extend(self.met.codes(&chunk.names, &chunk.labels));
        Ok(())
    }

    fn append_ids(&mut self, chunk: &mut Chunk) -> Result<()> {
        let bytes: usize = chunk.ids.iter().map(String::len).sum();
        self.check_held(bytes + chunk.ids.len() * size_of::<String>(), 1)?;
        self.ids.append(&mut chunk.ids);
        Ok(())
    }

    /// Sorts the fields that are no numbers into their columns.
    fn append_texts(&mut self, chunk: &Chunk, lines: u64) -> Result<()> {
        if chunk.cells.is_empty() {
            return Ok(());
        }
        if self.rows + chunk.ends.len() > u32::MAX as usize {
            let reason = format!("it has text in more than {} rows", u32::MAX);
            return Err(Error::data(self.file.as_str(), reason));
        }
        self.check_held(2 * chunk.cells.len(), 8)?;
        for cell in &chunk.cells {
            let row = self.rows as u32 + cell.row;
            let line = lines + u64::from(cell.line) + 1;
            self.texts[cell.column as usize].add(row, &chunk.texts[cell.text as usize], line);
        }
        Ok(())
    }

    /// Bytes of the rows held densely and sparsely.
    fn sizes(&self) -> (u128, u128) {
        let (m, d, n, size) = (self.rows as u128, self.cols as u128, self.stored as u128, self.values.bytes());
        (m * d * size, n * (size + 4) + 8 * (m + 1))
    }

    /// Counts the chunk in, and makes the rows so far fit for it: as wide, and held the better way.
    fn make_room(&mut self, chunk: &Chunk) -> Result<()> {
        let (old_rows, old_cols) = (self.rows, self.cols);
        self.rows += chunk.ends.len();
        self.cols = self.cols.max(chunk.cols);
        self.stored += chunk.values.len();
        let (dense, sparse) = self.sizes();
        let want_dense = match self.storage {
            Storage::Dense => true,
            Storage::Sparse => false,
            Storage::Auto if old_rows == 0 => dense < sparse,
            Storage::Auto if self.dense => dense <= 2 * sparse,
            Storage::Auto => 2 * dense < sparse,
        };
        self.convert(want_dense, old_rows, old_cols)
    }

    /// Holds the first `rows` rows, `cols` wide so far, as asked, and `self.cols` wide.
    fn convert(&mut self, dense: bool, rows: usize, cols: usize) -> Result<()> {
        if dense {
            self.check_memory()?;
        }
        match (self.dense, dense) {
            (true, true) => with_values!(&mut self.values, v => widen_rows(v, rows, cols, self.cols)),
            (true, false) => {
                (self.columns, self.ends) = with_values!(&mut self.values, v => to_sparse(v, rows, cols));
            }
            (false, true) => {
                self.check_held(rows * self.cols, self.values.bytes() as usize)?;
                let (columns, ends) = (std::mem::take(&mut self.columns), std::mem::take(&mut self.ends));
                with_values!(&mut self.values, v => to_dense(v, &columns, &ends, self.cols));
            }
            (false, false) => {}
        }
        self.dense = dense;
        Ok(())
    }

    /// Refuses dense rows that were asked for but cannot be held.
    fn check_memory(&self) -> Result<()> {
        let (dense, sparse) = self.sizes();
        if self.storage != Storage::Dense || dense <= sparse {
            return Ok(());
        }
        let what = || format!("{}: dense storage of {} rows of {} columns", self.file, self.rows, self.cols);
        memory::check(what, u64::try_from(dense).unwrap_or(u64::MAX), "store the rows sparsely")
    }

    fn append_dense(&mut self, chunk: &Chunk) -> Result<()> {
        fn append<T: Real>(values: &mut Vec<T>, chunk: &Chunk, cols: usize) {
            let mut from = values.len();
            values.resize(from + chunk.ends.len() * cols, T::default());
            for (columns, row) in chunk.rows() {
                let to = &mut values[from..from + cols];
                for (&c, &v) in columns.iter().zip(row) {
                    to[c as usize] = T::of(v);
                }
                from += cols;
            }
        }
        self.check_held(self.values.growth(chunk.ends.len() * self.cols), self.values.bytes() as usize)?;
        with_values!(&mut self.values, v => append(v, chunk, self.cols));
        Ok(())
    }

    fn append_sparse(&mut self, chunk: &Chunk) -> Result<()> {
        let pairs = self.values.growth(chunk.values.len());
        self.check_held(pairs, self.values.bytes() as usize + 4)?;
        self.check_held(growth(&self.ends, chunk.ends.len()), 8)?;
        let before = self.columns.len() as u64;
        self.columns.extend_from_slice(&chunk.columns);
        self.ends.extend(chunk.ends.iter().map(|&end| before + end as u64));
        match &mut self.values {
            Values::F32(values) => values.extend(chunk.values.iter().map(|&v| v as f32)),
            Values::F64(values) => values.extend_from_slice(&chunk.values),
        }
        Ok(())
    }

    /// The matrix, the labels, and what is no number.
    pub(super) fn finish(mut self) -> Result<Built> {
        if self.rows == 0 {
            return Err(Error::data(self.file, "there are no rows in it"));
        }
        let cols = self.cols;
        self.cols = cols.max(self.features);
        let (dense, sparse) = self.sizes();
        let want_dense = match self.storage {
            Storage::Dense => true,
            Storage::Sparse => false,
            Storage::Auto => dense < sparse,
        };
        self.convert(want_dense, self.rows, cols)?;
        let labels = self.labelled.unwrap_or(false).then(|| Labels::sorted(self.met.names, self.codes));
        let (rows, cols, columns, ends) = (self.rows, self.cols, self.columns, self.ends);
        let matrix = match (self.values, want_dense) {
            (Values::F32(v), true) => dense_matrix(rows, cols, v).map(Matrix::DenseF32),
            (Values::F64(v), true) => dense_matrix(rows, cols, v).map(Matrix::DenseF64),
            (Values::F32(v), false) => sparse_matrix(cols, ends, columns, v).map(Matrix::SparseF32),
            (Values::F64(v), false) => sparse_matrix(cols, ends, columns, v).map(Matrix::SparseF64),
        };
        // The parsers keep the rules of both; a message is still better than a panic should one not.
        let rows = matrix.ok_or_else(|| Error::data(self.file, "the rows do not fit"))?;
        Ok(Built { rows, labels, ids: self.ids, texts: self.texts })
    }
}

/// By how many numbers a vector grows that takes in `more`: it at least doubles where it has no room.
fn growth<T>(vector: &Vec<T>, more: usize) -> usize {
    if vector.capacity() - vector.len() >= more { 0 } else { more.max(vector.capacity()) }
}

fn dense_matrix<T: Real>(rows: usize, cols: usize, mut values: Vec<T>) -> Option<Dense<'static, T>> {
    values.shrink_to_fit();
    Dense::new(rows, cols, values)
}

fn sparse_matrix<T: Real>(
    cols: usize,
    ends: Vec<u64>,
    mut columns: Vec<u32>,
    mut values: Vec<T>,
) -> Option<Csr<'static, T>> {
    let mut offsets = ends;
    offsets.insert(0, 0);
    offsets.shrink_to_fit();
    columns.shrink_to_fit();
    values.shrink_to_fit();
    Csr::new(cols, offsets, columns, values).ok()
}

/// Makes dense rows wider, in place.
fn widen_rows<T: Real>(values: &mut Vec<T>, rows: usize, from: usize, to: usize) {
    if from == to {
        return;
    }
    values.resize(rows * to, T::default());
    for i in (0..rows).rev() {
        values.copy_within(i * from..(i + 1) * from, i * to);
        values[i * to + from..(i + 1) * to].fill(T::default());
    }
}

/// Drops the zeros of dense rows, in place; the columns and row ends of what stays.
fn to_sparse<T: Real>(values: &mut Vec<T>, rows: usize, cols: usize) -> (Vec<u32>, Vec<u64>) {
    let (mut columns, mut ends) = (Vec::new(), Vec::with_capacity(rows));
    for i in 0..rows {
        for j in 0..cols {
            let value = values[i * cols + j];
            if value != T::default() {
                values[columns.len()] = value;
                columns.push(j as u32);
            }
        }
        ends.push(columns.len() as u64);
    }
    values.truncate(columns.len());
    (columns, ends)
}

/// Puts the zeros back into sparse rows.
fn to_dense<T: Real>(values: &mut Vec<T>, columns: &[u32], ends: &[u64], cols: usize) {
    let mut dense = vec![T::default(); ends.len() * cols];
    let mut from = 0;
    for (i, &end) in ends.iter().enumerate() {
        let row = &mut dense[i * cols..(i + 1) * cols];
        for k in from..end as usize {
            row[columns[k] as usize] = values[k];
        }
        from = end as usize;
    }
    *values = dense;
}
