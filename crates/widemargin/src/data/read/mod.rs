//! Reading data files: LIBSVM text, CSV, TSV, Parquet; text also packed as `.gz`, `.zst`, `.xz`.
//!
//! Text is cut into blocks at line ends, blocks are parsed in parallel ([`libsvm`], [`table`]) and joined in order
//! ([`build`]), so that the result and the line an error names do not depend on the number of threads.

mod build;
#[cfg(feature = "parquet")]
mod footer;
mod libsvm;
#[cfg(feature = "parquet")]
mod parquet;
mod source;
mod table;

use super::blocks::{BlockFile, is_block_file};
use super::format::{Compression, FileEnding, Format};
use super::{Dataset, Matrix};
use crate::names::named;
use crate::{Error, Result};
use build::{Builder, Chunk};
use rayon::prelude::*;
use source::{Block, Input, Source};

/// In which precision values are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Single if that loses nothing, i.e. if the nearest `f64` of *every* value is an `f32`; else double.
    #[default]
    Auto,
    /// Single: values are rounded.
    F32,
    /// Double.
    F64,
}

named!(Precision, "precision", [
    Auto: "auto" "single where that loses nothing, else double",
    F32: "f32" "single: values are rounded",
    F64: "f64" "double",
]);

/// How rows are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Whichever takes fewer bytes.
    #[default]
    Auto,
    /// Dense.
    Dense,
    /// Sparse (CSR). Zeros are not stored.
    Sparse,
}

named!(Storage, "storage", [
    Auto: "auto" "whichever takes fewer bytes",
    Dense: "dense" "every value",
    Sparse: "sparse" "only what is not zero",
]);

/// How to read a file. The default suits most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format, if the ending does not tell. Without either, a file is taken for LIBSVM text.
    pub format: Option<Format>,
    /// CSV, TSV, Parquet: the column of the labels, by name or by number from 1; `none` if there is none.
    ///
    /// By default it is the first of these that exists: a column named `label`, `class`, `target` or `y` (in any
    /// case); the only column that is not of numbers; the first column.
    ///
    /// LIBSVM files say themselves whether they have labels, see [`read`].
    pub label: Option<String>,
    /// Single or double precision.
    pub precision: Precision,
    /// Dense or sparse.
    pub storage: Storage,
    /// Columns to have at least, for files whose last features are zero throughout.
    pub features: Option<usize>,
    /// CSV, TSV: whether the first row holds the names of the columns.
    ///
    /// By default it does if it has text where the second row has a number.
    pub header: Option<bool>,
}

/// Reads a data set from a file, or from standard input if `path` is `-`.
///
/// **LIBSVM text.** A line is a row: a label, then `index:value` pairs with rising indices from 1. Labels are numbers
/// or words and are kept as written. If the first row has no label (it starts with a pair), no row may have one. `#`
/// starts a comment, blank lines are skipped, and so is a `qid:n` after the label: it groups rows for ranking, which
/// classification has no use for.
///
/// **CSV and TSV.** One row a line, features are numbers, the label may be text. Fields may be quoted. Spaces around
/// a field do not count. See [`ReadOptions::label`] and [`ReadOptions::header`].
///
/// **Parquet.** Flat columns of numbers or truth values without nulls; the label may be text.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read or unpacked, [`Error::Parse`] with the place of the first thing wrong,
/// [`Error::Data`] if there are no rows, [`Error::Parameter`] for options that do not fit the file.
pub fn read(path: &str, options: &ReadOptions) -> Result<Dataset> {
    if options.format.is_none() && is_block_file(path) {
        return BlockFile::open(path)?.whole();
    }
    let ending = FileEnding::of(path);
    let format = options.format.or(ending.format);
    let input = Input::open(path, ending.compression).map_err(|source| io_error(path, source))?;
    read_input(path, ending.stem, input, format, options)
}

/// Reads a data set from bytes in memory, packed or not. `name` stands for the file in messages; its ending tells
/// the format as a file's would.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Dataset> {
    let ending = FileEnding::of(name);
    let format = options.format.or(ending.format);
    read_input(name, ending.stem, Input::Memory(bytes), format, options)
}

/// Reads a file a block of about so many bytes at a time, without ever holding more of it (of LIBSVM text; other formats are
/// read whole first). `take` gets the rows of each block, of different widths perhaps, and the code of each row's label; what
/// the codes stand for is the result, in the order in which labels were met. `None`: rows have no labels.
///
/// # Errors
/// As [`read`], and those of `take`.
pub fn read_in_blocks(
    path: &str,
    options: &ReadOptions,
    bytes: u64,
    mut take: impl FnMut(Matrix<'static>, Vec<u32>) -> Result<()> + Send,
) -> Result<Option<Vec<String>>> {
    let ending = FileEnding::of(path);
    let io = |source| io_error(path, source);
    if options.format.is_none() && is_block_file(path) {
        let file = BlockFile::open(path)?;
        for number in 0..file.len() {
            let (rows, codes) = file.block(number)?;
            take(rows, codes)?;
        }
        return Ok(file.labels().map(<[String]>::to_vec));
    }
    let input = Input::open(path, ending.compression).and_then(Input::sniff).map_err(io)?;
    let format = options.format.or(ending.format);
    if input.is_parquet() || format.is_some_and(|format| format != Format::Libsvm) {
        let Dataset { rows, labels, .. } = read(path, options)?;
        let (codes, names) = labels.map(|labels| (labels.codes().to_vec(), labels.names().to_vec())).unzip();
        take(rows, codes.unwrap_or_default())?;
        return Ok(names);
    }
    let mut builder = Builder::new(path, options);
    let mut source = input.by_ranges().map_err(io)?;
    let first = source.next_batch(Vec::new()).map_err(io)?;
    let mut append = |chunk: Chunk| {
        builder.append(chunk)?;
        if builder.held() < bytes {
            return Ok(());
        }
        let (rows, codes) = builder.take_rows()?;
        take(rows, codes)
    };
    run(path, source, first, |_, text| libsvm::parse(text, options.precision), &mut append)?;
    if builder.held() > 0 || builder.is_new() {
        let (rows, codes) = builder.take_rows()?;
        take(rows, codes)?;
    }
    Ok(builder.names())
}

fn read_input(
    file: &str,
    name: String,
    input: Input<'_>,
    format: Option<Format>,
    options: &ReadOptions,
) -> Result<Dataset> {
    if let Some(features) = options.features.filter(|&n| n > u32::MAX as usize) {
        return Err(Error::parameter("features", features, format!("at most {}", u32::MAX)));
    }
    let io = |source| io_error(file, source);
    let input = input.sniff().map_err(io)?;
    let format = format.unwrap_or(if input.is_parquet() { Format::Parquet } else { Format::Libsvm });
    let (labels, rows, features) = match format {
        Format::Libsvm => {
            let mut builder = Builder::new(file, options);
            let mut source = input.by_ranges().map_err(io)?;
            let first = source.next_batch(Vec::new()).map_err(io)?;
            let precision = options.precision;
            run(file, source, first, |_, text| libsvm::parse(text, precision), &mut |chunk| builder.append(chunk))?;
            let (rows, labels) = builder.finish()?;
            (labels, rows, None)
        }
        Format::Csv => table::read(file, b',', input, options)?,
        Format::Tsv => table::read(file, b'\t', input, options)?,
        Format::Parquet => read_parquet(file, input, options)?,
    };
    Ok(Dataset { name, rows, labels, features })
}

#[cfg(feature = "parquet")]
fn read_parquet(file: &str, input: source::Sniffed<'_>, options: &ReadOptions) -> Result<Parts> {
    parquet::read(file, input, options)
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(file: &str, _: source::Sniffed<'_>, _: &ReadOptions) -> Result<Parts> {
    Err(Error::Usage(format!("{file}: this build of widemargin cannot read Parquet (feature `parquet` is off)")))
}

/// What a file gives: labels, rows, names of the features.
type Parts = (Option<super::Labels>, super::Matrix<'static>, Option<Vec<String>>);

/// Parses all blocks in parallel and hands them over in order. Three things go on at once: the next batch
/// is read, one is parsed, and the one before is joined to the rest.
fn run(
    file: &str,
    mut source: Source<'_>,
    first: Vec<Block>,
    parse: impl Fn(usize, &[u8]) -> Chunk + Sync,
    take: &mut (dyn FnMut(Chunk) -> Result<()> + Send),
) -> Result<()> {
    let io = |source| io_error(file, source);
    let parse_block = |block: &mut Block| block.text().map(|(number, text)| parse(number, text));
    let (mut batch, mut spare) = (first, Vec::new());
    let mut parsed: Vec<std::io::Result<Chunk>> = Vec::new();
    while !batch.is_empty() {
        let done = std::mem::take(&mut parsed);
        let (next, (joined, fresh)) = rayon::join(
            || source.next_batch(std::mem::take(&mut spare)),
            || {
                rayon::join(
                    || done.into_iter().try_for_each(|chunk| take(chunk.map_err(io)?)),
                    || batch.par_iter_mut().with_max_len(1).map(parse_block).collect(),
                )
            },
        );
        joined?;
        parsed = fresh;
        spare = batch;
        batch = match next {
            Ok(next) => next,
            Err(source) => {
                // What was read before may hold an error that stands earlier in the file.
                parsed.into_iter().try_for_each(|chunk| take(chunk.map_err(io)?))?;
                return Err(io(source));
            }
        };
    }
    parsed.into_iter().try_for_each(|chunk| take(chunk.map_err(io)?))
}

fn io_error(file: &str, source: std::io::Error) -> Error {
    Error::Io { path: file.into(), source }
}

/// The number at the start of `text` and its length, in the precision asked for; it may be infinite or NaN.
#[inline]
fn number(text: &[u8], precision: Precision) -> Option<(f64, usize)> {
    match precision {
        // Straight to f32: rounding to f64 first could round twice.
        Precision::F32 => fast_float2::parse_partial::<f32, _>(text).ok().map(|(v, n)| (f64::from(v), n)),
        _ => fast_float2::parse_partial::<f64, _>(text).ok(),
    }
}

/// What is wrong with a number that is infinite or NaN once read.
fn expected_finite(precision: Precision) -> &'static str {
    match precision {
        Precision::F32 => "a finite number within the range of single precision",
        _ => "a finite number",
    }
}

/// A piece of the file for a message: short, printable, in back quotes.
fn quote(text: &[u8]) -> String {
    const MOST: usize = 40;
    let shown = String::from_utf8_lossy(&text[..text.len().min(MOST)]);
    let shown: String =
        shown.chars().map(|c| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() }).collect();
    let more = if text.len() > MOST { "…" } else { "" };
    format!("`{shown}{more}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_the_nearest(text in "-?[0-9]{1,9}(\\.[0-9]{1,9})?(e-?[0-9]{1,2})?") {
            let (value, length) = number(text.as_bytes(), Precision::Auto).unwrap();
            prop_assert_eq!(length, text.len());
            prop_assert_eq!(value, text.parse::<f64>().unwrap());
            let (single, _) = number(text.as_bytes(), Precision::F32).unwrap();
            prop_assert_eq!(single, f64::from(text.parse::<f32>().unwrap()));
        }
    }
}
