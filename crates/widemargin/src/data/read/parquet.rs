//! Parquet: flat columns of numbers, read some rows at a time.

use super::build::{Builder, Chunk, Fault};
use super::source::Sniffed;
use super::table::label_column;
use super::{Parts, Precision, ReadOptions, expected_finite, footer, io_error};
use crate::{Error, Result, memory};
use bytes::Bytes;
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::cell::Cell;
use std::sync::Once;

/// Values to read at a time.
const SLICE: usize = 1 << 18;

/// Reads a Parquet file. Its reader may panic on damaged files, which is turned into an error, without a word on standard
/// error.
pub(super) fn read(file: &str, input: Sniffed<'_>, options: &ReadOptions) -> Result<Parts> {
    let io = |source| io_error(file, source);
    let attempt = match input {
        Sniffed::File(f, _) => caught(|| read_from(file, f, options)),
        Sniffed::Stream(mut reader, _) => {
            let bytes = memory::read_to_end(&mut reader).map_err(io)?;
            caught(|| read_from(file, Bytes::from(bytes), options))
        }
    };
    attempt.unwrap_or_else(|| Err(damaged(file, "its parts do not fit together")))
}

thread_local! {
    /// Whether a panic of this thread is caught, so that nobody needs to hear of it.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// `None` if `f` panics, which is kept from whoever is told of panics.
fn caught<T>(f: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !CATCHING.get() {
                told(panic);
            }
        }));
    });
    let before = CATCHING.replace(true);
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    CATCHING.set(before);
    result.ok()
}

fn damaged(file: &str, what: impl std::fmt::Display) -> Error {
    Error::Data { file: file.into(), reason: format!("the file is damaged, or no Parquet file: {what}") }
}

/// Checks what the metadata claim before anything is done because of it: every column has a value a row, and as many rows
/// as there are said to be in all are in the groups, and fit into memory. A few bytes may stand for any number of rows.
fn check_claims(file: &str, metadata: &ParquetMetaData) -> Result<()> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    if columns == 0 {
        return Err(Error::Data { file: file.into(), reason: "it has no columns".into() });
    }
    let mut rows: u64 = 0;
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let claimed = u64::try_from(group.num_rows()).map_err(|_| damaged(file, "a negative number of rows"))?;
        let fits = |c: &ColumnChunkMetaData| u64::try_from(c.num_values()) == Ok(claimed);
        if group.num_columns() != columns || !group.columns().iter().filter(|c| is_flat(c.column_descr())).all(fits) {
            let what = format!("row group {} has not as many values in each column as it has rows", number + 1);
            return Err(damaged(file, what));
        }
        rows = rows.saturating_add(claimed);
    }
    if u64::try_from(metadata.file_metadata().num_rows()) != Ok(rows) {
        let claimed = metadata.file_metadata().num_rows();
        return Err(damaged(file, format!("{claimed} rows are announced, {rows} are in its row groups")));
    }
    let what = || format!("{file}: {rows} rows of {columns} columns");
    // Sparse rows take nothing for a zero, but each row has an end and a label.
    memory::check(what, rows.saturating_mul(8), "split the file")
}

fn is_flat(column: &ColumnDescriptor) -> bool {
    column.max_rep_level() == 0 && column.path().parts().len() == 1
}

fn read_from<R: ChunkReader + 'static>(file: &str, reader: R, options: &ReadOptions) -> Result<Parts> {
    let bad = |e: ParquetError| damaged(file, e);
    if !footer::is_sound(&reader) {
        return Err(damaged(file, "lengths in its metadata are beyond its end"));
    }
    let reader = SerializedFileReader::new(reader).map_err(bad)?;
    check_claims(file, reader.metadata())?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns();
    let mut names: Vec<String> = columns.iter().map(|c| c.path().string()).collect();
    // Text in place of the first row tells the label's column as it does in a table.
    let sample: Vec<Vec<u8>> =
        columns.iter().map(|c| if is_text(c) { b"text".to_vec() } else { b"0".to_vec() }).collect();
    let label = label_column(options.label.as_deref(), Some(&names), columns.len(), &sample)?;
    let label = label.filter(|&at| at < columns.len());
    for (j, column) in columns.iter().enumerate() {
        check_column(file, column, j, label == Some(j))?;
    }
    let mut builder = Builder::new(file, options);
    for g in 0..reader.num_row_groups() {
        let group = reader.get_row_group(g).map_err(bad)?;
        let mut left = usize::try_from(group.metadata().num_rows()).map_err(|e| damaged(file, e))?;
        let readers =
            (0..columns.len()).map(|j| group.get_column_reader(j)).collect::<std::result::Result<Vec<_>, _>>();
        let mut readers = readers.map_err(bad)?;
        while left > 0 {
            let rows = left.min((SLICE / columns.len().max(1)).max(1));
            let mut slice = Slice { rows, precision: options.precision, ..Slice::default() };
            for (j, reader) in readers.iter_mut().enumerate() {
                slice.read(reader, &columns[j], j, label == Some(j)).map_err(bad)?;
            }
            builder.append(slice.into_chunk(label.is_some()))?;
            left -= rows;
        }
    }
    let (rows, labels) = builder.finish()?;
    if let Some(label) = label {
        names.remove(label);
    }
    let numbered = names.iter().enumerate().all(|(i, name)| *name == format!("x{}", i + 1));
    Ok((labels, rows, (!numbered).then_some(names)))
}

fn is_text(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY)
}

/// Refuses columns that do not hold one number (or, for the label, text) a row.
fn check_column(file: &str, column: &ColumnDescriptor, j: usize, is_label: bool) -> Result<()> {
    let name = column.path().string();
    let refuse = |found: &str, expected: &str| {
        Err(Error::Parse {
            file: file.into(),
            line: 1,
            column: j as u64 + 1,
            found: format!("{found} in column `{name}`"),
            expected: expected.into(),
        })
    };
    if !is_flat(column) {
        return refuse("nested values", "flat columns");
    }
    let number = "a number (features are numbers: cast or leave out the column, or name it as the label)";
    match column.physical_type() {
        Physical::BYTE_ARRAY if is_label => return Ok(()),
        Physical::BYTE_ARRAY | Physical::FIXED_LEN_BYTE_ARRAY => return refuse("text or bytes", number),
        Physical::INT96 => return refuse("a time", number),
        _ => {}
    }
    match column.converted_type() {
        ConvertedType::DECIMAL => refuse("decimals", number),
        ConvertedType::DATE
        | ConvertedType::TIME_MILLIS
        | ConvertedType::TIME_MICROS
        | ConvertedType::TIMESTAMP_MILLIS
        | ConvertedType::TIMESTAMP_MICROS => refuse("times", number),
        _ => match column.logical_type_ref() {
            Some(LogicalType::Timestamp { .. } | LogicalType::Time { .. } | LogicalType::Date) => {
                refuse("times", number)
            }
            Some(LogicalType::Decimal { .. }) => refuse("decimals", number),
            _ => Ok(()),
        },
    }
}

/// Some rows, column after column.
#[derive(Default)]
struct Slice {
    rows: usize,
    precision: Precision,
    features: Vec<Vec<f64>>,
    labels: Vec<String>,
    fault: Option<Fault>,
}

impl Slice {
    /// Reads the slice of one column.
    fn read(
        &mut self,
        reader: &mut ColumnReader,
        column: &ColumnDescriptor,
        j: usize,
        is_label: bool,
    ) -> std::result::Result<(), ParquetError> {
        let unsigned = is_unsigned(column);
        match reader {
            ColumnReader::BoolColumnReader(r) => {
                let values = self.column(r, column, j)?;
                self.keep(&values, j, is_label, |&v| f64::from(u8::from(v)), bool::to_string);
            }
            ColumnReader::Int32ColumnReader(r) => {
                let values = self.column(r, column, j)?;
                let wide = |&v: &i32| if unsigned { i64::from(v as u32) } else { i64::from(v) };
                self.keep(&values, j, is_label, |v| wide(v) as f64, |v| wide(v).to_string());
            }
            ColumnReader::Int64ColumnReader(r) => {
                let values = self.column(r, column, j)?;
                let wide = |&v: &i64| if unsigned { i128::from(v as u64) } else { i128::from(v) };
                self.keep(&values, j, is_label, |v| wide(v) as f64, |v| wide(v).to_string());
            }
            ColumnReader::FloatColumnReader(r) => {
                let values = self.column(r, column, j)?;
                self.keep(&values, j, is_label, |&v| f64::from(v), f32::to_string);
            }
            ColumnReader::DoubleColumnReader(r) => {
                let values = self.column(r, column, j)?;
                self.keep(&values, j, is_label, |&v| v, f64::to_string);
            }
            ColumnReader::ByteArrayColumnReader(r) => {
                let values = self.column(r, column, j)?;
                let text = |v: &parquet::data_type::ByteArray| String::from_utf8_lossy(v.data()).into_owned();
                self.keep(&values, j, is_label, |_| 0.0, text);
            }
            _ => return Err(ParquetError::General("a column of unknown type".into())),
        }
        Ok(())
    }

    /// The values of one column; a null is noted as a fault.
    fn column<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        j: usize,
    ) -> std::result::Result<Vec<T::T>, ParquetError> {
        let (mut values, mut levels) = (Vec::with_capacity(self.rows), Vec::new());
        let mut rows = 0;
        while rows < self.rows {
            let levels = (column.max_def_level() > 0).then_some(&mut levels);
            let (read, _, _) = reader.read_records(self.rows - rows, levels, None, &mut values)?;
            if read == 0 {
                return Err(ParquetError::General(format!("column {} ends too early", j + 1)));
            }
            rows += read;
        }
        if let Some(row) = levels.iter().position(|&level| level < column.max_def_level()) {
            let expected =
                format!("a value in column `{}` (fill in or leave out rows with nulls)", column.path().string());
            self.fail(row, j, "a null".into(), expected);
        } else if values.len() < self.rows {
            return Err(ParquetError::General(format!("column {} has too few values", j + 1)));
        }
        Ok(values)
    }

    /// Keeps the values of a column as features or labels.
    fn keep<V>(
        &mut self,
        values: &[V],
        j: usize,
        is_label: bool,
        number: impl Fn(&V) -> f64,
        text: impl Fn(&V) -> String,
    ) {
        if is_label {
            self.labels = values.iter().map(text).collect();
            return;
        }
        let round = |v: f64| if self.precision == Precision::F32 { f64::from(v as f32) } else { v };
        let numbers: Vec<f64> = values.iter().map(|v| round(number(v))).collect();
        if let Some(row) = numbers.iter().position(|v| !v.is_finite()) {
            self.fail(row, j, number(&values[row]).to_string(), expected_finite(self.precision).into());
        }
        self.features.push(numbers);
    }

    /// Notes what is wrong, if nothing is in a row above.
    fn fail(&mut self, row: usize, j: usize, found: String, expected: String) {
        if self.fault.as_ref().is_none_or(|fault| (row as u64) < fault.line) {
            self.fault = Some(Fault { line: row as u64, column: j as u64 + 1, found, expected });
        }
    }

    /// The rows, one after another. Errors count them as lines.
    fn into_chunk(self, labelled: bool) -> Chunk {
        let mut chunk = Chunk {
            cols: self.features.len(),
            lines: self.rows as u64,
            head: Some((labelled, Fault::default())),
            ..Chunk::default()
        };
        if self.fault.is_some() {
            return Chunk { fault: self.fault, ..chunk };
        }
        for i in 0..self.rows {
            for (j, feature) in self.features.iter().enumerate() {
                chunk.push(j as u32, feature[i]);
            }
            chunk.end_row();
        }
        let mut known = std::collections::HashMap::new();
        for name in self.labels {
            let next = chunk.names.len() as u32;
            let code = *known.entry(name).or_insert_with_key(|name| {
                chunk.names.push(name.clone());
                next
            });
            chunk.labels.push(code);
        }
        chunk
    }
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    let new = matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed);
    let old = [ConvertedType::UINT_8, ConvertedType::UINT_16, ConvertedType::UINT_32, ConvertedType::UINT_64];
    new || old.contains(&column.converted_type())
}
