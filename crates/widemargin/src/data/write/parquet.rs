//! Parquet: a column for the label, as text, and one for each feature.

use super::{column_names, label};
use crate::data::{Dataset, Rows};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;

/// Values in a row group: what is held in memory at a time, 128 MiB.
const GROUP: usize = 1 << 24;

pub(super) fn write(x: &impl Rows, dataset: &Dataset, out: &mut dyn Write) -> io::Result<()> {
    write_groups(x, dataset, out).map_err(|e| match e {
        ParquetError::External(e) => e.downcast::<io::Error>().map_or_else(io::Error::other, |e| *e),
        e => io::Error::other(e),
    })
}

fn schema(dataset: &Dataset) -> Result<Type, ParquetError> {
    let physical = if dataset.rows.is_f32() { Physical::FLOAT } else { Physical::DOUBLE };
    let columns = column_names(dataset).enumerate().map(|(j, name)| {
        let is_label = j == 0 && dataset.labels.is_some();
        let column = Type::primitive_type_builder(&name, if is_label { Physical::BYTE_ARRAY } else { physical })
            .with_logical_type(is_label.then_some(LogicalType::String))
            .with_repetition(Repetition::REQUIRED);
        column.build().map(Arc::new)
    });
    Type::group_type_builder("schema").with_fields(columns.collect::<Result<_, _>>()?).build()
}

fn write_groups(x: &impl Rows, dataset: &Dataset, out: &mut dyn Write) -> Result<(), ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
    // The file's writer must be able to change threads, which ours need not: groups go through memory.
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema(dataset)?), Arc::new(properties))?;
    let most = (GROUP / x.cols().max(1)).max(1);
    let mut from = 0;
    while from < x.rows() {
        let rows = from..x.rows().min(from + most);
        let mut group = file.next_row_group()?;
        if dataset.labels.is_some()
            && let Some(mut column) = group.next_column()?
        {
            let labels: Vec<ByteArray> = rows.clone().filter_map(|i| label(dataset, i)).map(ByteArray::from).collect();
            column.typed::<ByteArrayType>().write_batch(&labels, None, None)?;
            column.close()?;
        }
        let values = transposed(x, rows.clone());
        for feature in values.chunks_exact(rows.len()) {
            let Some(mut column) = group.next_column()? else { break };
            if dataset.rows.is_f32() {
                let narrow: Vec<f32> = feature.iter().map(|&v| v as f32).collect();
                column.typed::<FloatType>().write_batch(&narrow, None, None)?;
            } else {
                column.typed::<DoubleType>().write_batch(feature, None, None)?;
            }
            column.close()?;
        }
        group.close()?;
        file.flush()?;
        out.write_all(file.inner())?;
        file.inner_mut().clear();
        from = rows.end;
    }
    out.write_all(&file.into_inner()?)?;
    Ok(())
}

/// Some rows, column after column.
fn transposed(x: &impl Rows, rows: std::ops::Range<usize>) -> Vec<f64> {
    let height = rows.len();
    let mut values = vec![0.0; height * x.cols()];
    for (k, i) in rows.enumerate() {
        x.visit(i, |j, v| values[j * height + k] = v);
    }
    values
}
