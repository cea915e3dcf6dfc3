//! Writing data files in the formats that can be read.

#[cfg(feature = "parquet")]
mod parquet;

use super::atomic::write_atomically;
use super::format::{Compression, FileEnding, Format};
use super::{Dataset, Rows};
use crate::{Error, Result, with_rows};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The most columns a table may have: CSV and Parquet write every zero, here some 200 kB a row.
const WIDEST_TABLE: usize = 100_000;

/// Writes a data set to a file, or to standard output if `path` is `-`.
///
/// The format is the one given, or the ending's, or else LIBSVM; text is packed if the ending is `.gz`, `.zst` or
/// `.xz`. A file is replaced once it is written whole.
///
/// What is read back is the same to the last bit: numbers are written with the fewest digits that tell the `f64`
/// apart (also from `f32` storage, as readers take text for `f64`). The number of columns is kept: where the last
/// is zero throughout, LIBSVM text states one zero of it. Tables get a header; columns without a name are `x1`, `x2`, …
/// The label comes first and is called `label`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be written; [`Error::Data`] if the format cannot hold the data.
pub fn write(dataset: &Dataset, path: &str, format: Option<Format>) -> Result<()> {
    let ending = FileEnding::of(path);
    let format = format.or(ending.format).unwrap_or(Format::Libsvm);
    check(dataset, path, format)?;
    if format == Format::Parquet && ending.compression.is_some() {
        return Err(Error::Usage(format!("{path}: a Parquet file packs itself, name it .parquet alone")));
    }
    let content = |out: &mut dyn Write| pack(out, ending.compression, |out| write_rows(dataset, format, out));
    if path == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        return content(&mut out).and_then(|()| out.flush()).map_err(Error::io(path));
    }
    write_atomically(Path::new(path), content)
}

/// Runs `f` with a writer that packs what it gets.
pub(super) fn pack(
    out: &mut dyn Write,
    compression: Option<Compression>,
    f: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match compression {
        None => f(out),
        #[cfg(feature = "gzip")]
        Some(Compression::Gzip) => {
            let mut packer = flate2::write::GzEncoder::new(out, flate2::Compression::default());
            f(&mut packer)?;
            packer.finish().map(drop)
        }
        #[cfg(feature = "zstd")]
        Some(Compression::Zstd) => {
            let mut packer = zstd::stream::write::Encoder::new(out, 0)?;
            f(&mut packer)?;
            packer.finish().map(drop)
        }
        #[cfg(feature = "xz")]
        Some(Compression::Xz) => {
            let mut packer = liblzma::write::XzEncoder::new(out, 6);
            f(&mut packer)?;
            packer.finish().map(drop)
        }
        #[cfg(not(all(feature = "gzip", feature = "xz", feature = "zstd")))]
        Some(off) => Err(off.is_off()),
    }
}

/// Refuses what the format cannot say.
fn check(dataset: &Dataset, file: &str, format: Format) -> Result<()> {
    let refuse = |reason: String| Err(Error::Data { file: file.into(), reason });
    let cols = dataset.rows.cols();
    if format != Format::Libsvm && cols > WIDEST_TABLE {
        return refuse(format!("{cols} columns are too many for a table: write LIBSVM text, which leaves zeros out"));
    }
    #[cfg(not(feature = "parquet"))]
    if format == Format::Parquet {
        return refuse("this build of widemargin cannot write Parquet (feature `parquet` is off)".into());
    }
    let names = dataset.labels.iter().flat_map(|labels| labels.names());
    for name in names {
        let fits = match format {
            Format::Parquet => true,
            Format::Csv | Format::Tsv => !name.is_empty() && name.trim_ascii() == name,
            Format::Libsvm => !name.is_empty() && !name.contains([' ', '\t', '\r', '\n', '#', ':', ',']),
        };
        if !fits {
            return refuse(format!("the label {name:?} cannot be written as {}", format.name()));
        }
    }
    Ok(())
}

fn write_rows(dataset: &Dataset, format: Format, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Libsvm => with_rows!(&dataset.rows, x => write_libsvm(x, dataset, out)),
        Format::Csv => with_rows!(&dataset.rows, x => write_table(x, dataset, b',', out)),
        Format::Tsv => with_rows!(&dataset.rows, x => write_table(x, dataset, b'\t', out)),
        #[cfg(feature = "parquet")]
        Format::Parquet => with_rows!(&dataset.rows, x => parquet::write(x, dataset, out)),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// The label of each row, if there are labels.
fn label(dataset: &Dataset, i: usize) -> Option<&str> {
    let labels = dataset.labels.as_ref()?;
    Some(&labels.names()[labels.codes()[i] as usize])
}

fn write_libsvm(x: &impl Rows, dataset: &Dataset, out: &mut dyn Write) -> io::Result<()> {
    let cols = x.cols();
    let state_width = cols > 0 && !has_values_in(x, cols - 1);
    let mut line = Vec::new();
    for i in 0..x.rows() {
        line.clear();
        let mut unlabelled_and_empty = dataset.labels.is_none();
        if let Some(label) = label(dataset, i) {
            line.extend_from_slice(label.as_bytes());
        }
        x.visit(i, |j, v| {
            if v != 0.0 {
                put(&mut line, format_args!(" {}:{v}", j + 1));
                unlabelled_and_empty = false;
            }
        });
        // A zero says how many columns there are; and a row with nothing else on its line would be a blank line.
        if cols > 0 && (i == 0 && state_width || unlabelled_and_empty) {
            put(&mut line, format_args!(" {cols}:0"));
        }
        line.push(b'\n');
        out.write_all(if line[0] == b' ' { &line[1..] } else { &line })?;
    }
    Ok(())
}

/// Whether column `j` has a value other than zero.
fn has_values_in(x: &impl Rows, j: usize) -> bool {
    let mut found = false;
    for i in 0..x.rows() {
        x.visit(i, |k, v| found |= k == j && v != 0.0);
        if found {
            return true;
        }
    }
    false
}

/// Writes to memory, which cannot fail.
fn put(line: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = line.write_fmt(text);
}

/// Names of the columns, the label's first.
fn column_names(dataset: &Dataset) -> impl Iterator<Item = String> {
    let label = dataset.labels.is_some().then(|| "label".to_string());
    let names = dataset.feature_names().unwrap_or_default();
    let features =
        (0..dataset.rows.cols()).map(move |j| names.get(j).cloned().unwrap_or_else(|| format!("x{}", j + 1)));
    label.into_iter().chain(features)
}

fn write_table(x: &impl Rows, dataset: &Dataset, delimiter: u8, out: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    table.write_record(column_names(dataset))?;
    let mut row = vec![0.0; x.cols()];
    let mut field = Vec::new();
    for i in 0..x.rows() {
        row.fill(0.0);
        x.visit(i, |j, v| row[j] = v);
        if let Some(label) = label(dataset, i) {
            table.write_field(label)?;
        }
        for v in &row {
            field.clear();
            put(&mut field, format_args!("{v}"));
            table.write_field(&field)?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    table.flush()
}
