//! Parquet: flat columns of numbers, truth values or text, read some rows at a time.

use super::build::{Builder, Chunk, Fault};
use super::encode::Raw;
use super::layout::{Role, TableLayout, drop_it};
use super::source::Sniffed;
use super::texts::ChunkTexts;
use super::{Precision, ReadOptions, footer, is_missing};
use crate::data::schema::ColumnKind;
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

/// Values to read at a time: 2 MiB of numbers.
const SLICE: usize = 1 << 18;

/// Reads a Parquet file. Its reader may panic on damaged files, which is turned into an error, without a word on standard
/// error.
pub(super) fn read<'a>(file: &'a str, input: Sniffed<'_>, options: &'a ReadOptions) -> Result<Raw<'a>> {
    let attempt = match input {
        Sniffed::File(f, _) => caught(|| read_from(file, f, options)),
        Sniffed::Stream(mut reader, _) => {
            let bytes = memory::read_to_end(&mut reader).map_err(Error::io(file))?;
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
    Error::data(file, format!("the file is damaged, or no Parquet file: {what}"))
}

/// Checks what the metadata claim before anything is done because of it: every column has a value a row, and as many rows
/// as there are said to be in all are in the groups, and fit into memory. A few bytes may stand for any number of rows.
fn check_claims(file: &str, metadata: &ParquetMetaData) -> Result<()> {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    if columns == 0 {
        return Err(Error::data(file, "it has no columns"));
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

fn read_from<'a, R: ChunkReader + 'static>(file: &'a str, reader: R, options: &'a ReadOptions) -> Result<Raw<'a>> {
    let bad = |e: ParquetError| damaged(file, e);
    if !footer::is_sound(&reader) {
        return Err(damaged(file, "lengths in its metadata are beyond its end"));
    }
    let reader = SerializedFileReader::new(reader).map_err(bad)?;
    check_claims(file, reader.metadata())?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns();
    let names: Vec<String> = columns.iter().map(|c| c.path().string()).collect();
    let layout = TableLayout::new(file, Some(names), columns.len(), options, options.schema.as_ref())?;
    for (j, column) in columns.iter().enumerate().filter(|(j, _)| layout.roles[*j] != Role::Unused) {
        check_column(file, column, j)?;
    }
    let mut builder = Builder::of_table(file, options, layout.texts(options));
    for g in 0..reader.num_row_groups() {
        let group = reader.get_row_group(g).map_err(bad)?;
        let mut left = usize::try_from(group.metadata().num_rows()).map_err(|e| damaged(file, e))?;
        let used = (0..columns.len()).filter(|&j| layout.roles[j] != Role::Unused);
        let readers = used.map(|j| group.get_column_reader(j).map(|reader| (j, reader)));
        let mut readers = readers.collect::<std::result::Result<Vec<_>, _>>().map_err(bad)?;
        while left > 0 {
            let rows = left.min((SLICE / columns.len().max(1)).max(1));
            let mut slice = Slice { rows, precision: options.precision, ..Slice::default() };
            slice.needs_labels = !options.any_label;
            for (j, reader) in &mut readers {
                slice.read(reader, &columns[*j], *j, layout.roles[*j]).map_err(bad)?;
            }
            builder.append(slice.into_chunk(&layout))?;
            left -= rows;
        }
    }
    let built = builder.finish()?;
    let is_truth = |&j: &usize| columns[j].physical_type() == Physical::BOOLEAN;
    let typed = layout.columns.iter().map(|j| is_truth(j).then_some(ColumnKind::Boolean)).collect();
    Ok(Raw { file, layout, built, typed, options })
}

/// Refuses columns that do not hold one number, truth value or text a row.
fn check_column(file: &str, column: &ColumnDescriptor, j: usize) -> Result<()> {
    let name = column.path().string();
    let refuse = |found: &str, expected: &str| {
        let reason = format!("found {found} in column `{name}`, expected {expected}");
        let advice = [drop_it(&name)].into();
        Err(Error::Column { file: file.into(), line: 1, column: j as u64 + 1, reason, advice })
    };
    if !is_flat(column) {
        return refuse("nested values", "flat columns");
    }
    let number = "numbers, truth values or text (cast the column)";
    match column.physical_type() {
        Physical::FIXED_LEN_BYTE_ARRAY => return refuse("bytes or decimals", number),
        Physical::INT96 => return refuse("times", number),
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

/// One value of a column.
enum ColumnValue {
    Number(f64),
    Text(String),
}

/// Some rows, column after column.
#[derive(Default)]
struct Slice {
    rows: usize,
    precision: Precision,
    /// Of each column of features, the values it has.
    features: Vec<(u32, Vec<ColumnValue>)>,
    labels: Vec<String>,
    ids: Vec<String>,
    needs_labels: bool,
    fault: Option<Fault>,
}

impl Slice {
    /// Reads the slice of one column.
    fn read(
        &mut self,
        reader: &mut ColumnReader,
        column: &ColumnDescriptor,
        j: usize,
        role: Role,
    ) -> std::result::Result<(), ParquetError> {
        let (unsigned, number) = (is_unsigned(column), ColumnValue::Number);
        let place = (column, j, role);
        match reader {
            ColumnReader::BoolColumnReader(r) => {
                self.keep(r, place, |&v| number(f64::from(u8::from(v))), bool::to_string)
            }
            ColumnReader::Int32ColumnReader(r) => {
                let wide = |&v: &i32| if unsigned { i64::from(v as u32) } else { i64::from(v) };
                self.keep(r, place, |v| number(wide(v) as f64), |v| wide(v).to_string())
            }
            ColumnReader::Int64ColumnReader(r) => {
                let wide = |&v: &i64| if unsigned { i128::from(v as u64) } else { i128::from(v) };
                self.keep(r, place, |v| number(wide(v) as f64), |v| wide(v).to_string())
            }
            ColumnReader::FloatColumnReader(r) => self.keep(r, place, |&v| number(f64::from(v)), f32::to_string),
            ColumnReader::DoubleColumnReader(r) => self.keep(r, place, |&v| number(v), f64::to_string),
            ColumnReader::ByteArrayColumnReader(r) => {
                let text = |v: &parquet::data_type::ByteArray| String::from_utf8_lossy(v.data()).trim().to_string();
                self.keep(r, place, |v| ColumnValue::Text(text(v)), text)
            }
            _ => Err(ParquetError::General("a column of unknown type".into())),
        }
    }

    /// The values of one column, `None` for nulls.
    fn column<T: DataType>(
        &self,
        reader: &mut ColumnReaderImpl<T>,
        column: &ColumnDescriptor,
        j: usize,
    ) -> std::result::Result<Vec<Option<T::T>>, ParquetError> {
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
        let few = || ParquetError::General(format!("column {} has too few values", j + 1));
        let mut values = values.into_iter();
        if levels.is_empty() {
            return (0..self.rows).map(|_| values.next().map(Some).ok_or_else(few)).collect();
        }
        let there = |level: i16| level >= column.max_def_level();
        let mut value = |level: i16| if there(level) { values.next().map(Some).ok_or_else(few) } else { Ok(None) };
        (0..self.rows).map(|i| value(*levels.get(i).ok_or_else(few)?)).collect()
    }

    /// Keeps the values of a column as features or labels.
    fn keep<T: DataType>(
        &mut self,
        reader: &mut ColumnReaderImpl<T>,
        (column, j, role): (&ColumnDescriptor, usize, Role),
        cell: impl Fn(&T::T) -> ColumnValue,
        text: impl Fn(&T::T) -> String,
    ) -> std::result::Result<(), ParquetError> {
        let values = self.column(reader, column, j)?;
        match role {
            Role::Unused => {}
            Role::Id => self.ids = values.iter().map(|v| v.as_ref().map(&text).unwrap_or_default()).collect(),
            Role::Label => {
                self.labels = values.iter().map(|v| v.as_ref().map(&text).unwrap_or_default()).collect();
                let missing = |text: &String| self.needs_labels && is_missing(text.as_bytes());
                if let Some(row) = self.labels.iter().position(missing) {
                    let found = values[row].as_ref().map_or("a null".into(), |v| format!("`{}`", text(v)));
                    self.fault =
                        Some(Fault { line: row as u64, column: j as u64 + 1, found, expected: "a label".into() });
                }
            }
            Role::Feature(column) => {
                let round = |v: f64| if self.precision == Precision::F32 { f64::from(v as f32) } else { v };
                let cell = |v: &Option<T::T>| match v.as_ref().map(&cell) {
                    None => ColumnValue::Text(String::new()),
                    Some(ColumnValue::Number(v)) if round(v).is_finite() => ColumnValue::Number(round(v)),
                    Some(ColumnValue::Number(v)) => ColumnValue::Text(v.to_string()),
                    Some(text) => text,
                };
                self.features.push((column, values.iter().map(cell).collect()));
            }
        }
        Ok(())
    }

    /// The rows, one after another. Errors count them as lines.
    fn into_chunk(self, layout: &TableLayout) -> Chunk {
        let mut chunk = Chunk {
            cols: layout.columns.len(),
            lines: self.rows as u64,
            head: Some((layout.label.is_some(), Fault::default())),
            ..Chunk::default()
        };
        if self.fault.is_some() {
            return Chunk { fault: self.fault, ..chunk };
        }
        let mut texts = ChunkTexts::default();
        for i in 0..self.rows {
            let from = chunk.values.len();
            for (column, cells) in &self.features {
                match &cells[i] {
                    ColumnValue::Number(value) => chunk.push(*column, *value),
                    ColumnValue::Text(text) => texts.push(&mut chunk, *column, i as u64, text.as_bytes()),
                }
            }
            if layout.shuffled {
                chunk.sort_row(from);
            }
            chunk.end_row();
        }
        chunk.ids = self.ids;
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
