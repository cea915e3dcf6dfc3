//! Reading data files: LIBSVM text, CSV, TSV, Parquet; text also packed as `.gz`, `.zst`, `.xz`.
//!
//! Text is cut into blocks at line ends, blocks are parsed in parallel ([`libsvm`], [`table`]) and joined in order
//! ([`build`]), so that the result and the line an error names do not depend on the number of threads.

mod build;
mod encode;
#[cfg(feature = "parquet")]
mod footer;
mod layout;
mod libsvm;
#[cfg(feature = "parquet")]
mod parquet;
mod profile;
mod source;
mod table;
mod texts;

use super::Dataset;
use super::blocks::{BlockFile, is_block_file};
use super::format::{Compression, FileEnding, Format};
use super::schema::Schema;
use crate::names::named;
use crate::{Error, Result, memory};
use build::{Builder, Built, Chunk};
use encode::Raw;
pub use profile::ColumnProfile;
use rayon::prelude::*;
pub(super) use source::read_at;
use source::{Block, Input, Sniffed, Source};

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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadOptions {
    /// The format, if the ending does not tell. Without either, a file is taken for LIBSVM text.
    pub format: Option<Format>,
    /// CSV, TSV, Parquet: the column of the labels, by name or by number from 1; `none` if there is none.
    ///
    /// By default it is the first of these that exists: the one of the [`schema`](Self::schema); a column named `label`,
    /// `class`, `target` or `y` (in any case); the last column. One that was not asked for is refused if it has more than
    /// 100 different values or mostly fractions.
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
    /// By default it does if it has text where the rows below have numbers, or only text that does not come again.
    pub header: Option<bool>,
    /// CSV, TSV: the character between fields. By default a tab for TSV; for CSV the one of `,`, `;`, tab and `|` that the
    /// first rows have.
    pub delimiter: Option<u8>,
    /// CSV, TSV, Parquet: columns to leave out, by name or number from 1.
    pub drop: Vec<String>,
    /// CSV, TSV, Parquet: the only columns to take as features, by name or number from 1; all if there are none.
    pub keep: Vec<String>,
    /// CSV, TSV, Parquet: fill in what is missing (numbers by the median, else the most frequent value) and add a feature
    /// that says where. Otherwise missing values are refused.
    pub impute: bool,
    /// Take any column of labels, also one that looks like a regression target or an identifier.
    pub any_label: bool,
    /// CSV, TSV, Parquet, with a [`schema`](Self::schema): the column that tells rows apart.
    pub id: IdColumn,
    /// What the columns are, as a model knows it: they are found by name, in any order, or by place where there are no
    /// names, and become the features the model was trained on.
    pub schema: Option<Schema>,
}

/// Which column tells rows apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum IdColumn {
    /// None is wanted.
    #[default]
    None,
    /// One named `id`, in any case, that is no feature, if there is one.
    Usual,
    /// This one, by name or number from 1.
    Named(String),
}

/// What stands for a value that is not there.
const MISSING: [&str; 8] = ["", "?", "na", "n/a", "#n/a", "nan", "null", "<na>"];

fn is_missing(text: &[u8]) -> bool {
    MISSING.iter().any(|m| text.eq_ignore_ascii_case(m.as_bytes()))
}

/// Reads a data set from a file, or from standard input if `path` is `-`.
///
/// **LIBSVM text.** A line is a row: a label, then `index:value` pairs with rising indices from 1. Labels are numbers
/// or words and are kept as written. If the first row has no label (it starts with a pair), no row may have one. `#`
/// starts a comment, blank lines are skipped, and so is a `qid:n` after the label: it groups rows for ranking, which
/// classification has no use for.
///
/// **CSV and TSV.** One row a line. Columns of numbers are features; truth values (`true`, `false`, `yes`, `no`) become 1 and
/// 0; text becomes categories (see [`Column`](super::Column)). Fields may be quoted. Spaces around a field do not count.
/// A field that is empty, `?`, `NA`, `N/A`, `NaN` or `null` is missing. See [`ReadOptions`].
///
/// **Parquet.** Flat columns of numbers, truth values or text, likewise; a null is missing.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read or unpacked, [`Error::Parse`] with the place of the first thing wrong,
/// [`Error::Data`] if there are no rows, [`Error::Parameter`] for options that do not fit the file.
pub fn read(path: &str, options: &ReadOptions) -> Result<Dataset> {
    if options.format.is_none() && is_block_file(path) {
        return BlockFile::open(path)?.whole();
    }
    Opened::file(path, options)?.read(options)
}

/// Reads a data set from bytes in memory, packed or not. `name` stands for the file in messages; its ending tells
/// the format as a file's would.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<Dataset> {
    Opened::new(name, Ok(Input::Memory(bytes)), options)?.read(options)
}

/// How many rows are in these bytes, and their labels; what could be no features is not refused.
pub(super) fn read_labels(name: &str, bytes: &[u8], options: &ReadOptions) -> Result<(usize, Option<super::Labels>)> {
    let open = || Opened::new(name, Ok(Input::Memory(bytes)), options);
    let Some(raw) = open()?.table(options)? else {
        let data = open()?.libsvm(options)?;
        return Ok((data.rows.rows(), data.labels));
    };
    // A single column is most often one whose fields were not told apart.
    if raw.layout.columns.is_empty() {
        return Err(raw.no_features());
    }
    Ok((raw.built.rows.rows(), raw.built.labels))
}

/// The bytes of a file, unpacked.
pub(super) fn unpacked(path: &str) -> Result<Vec<u8>> {
    let input = Input::open(path, FileEnding::of(path).compression).and_then(Input::sniff);
    let bytes = input.and_then(|input| match input {
        Sniffed::File(mut file, _) => memory::read_to_end(&mut file),
        Sniffed::Stream(mut reader, _) => memory::read_to_end(&mut reader),
    });
    bytes.map_err(Error::io(path))
}

/// A file that was only looked at.
#[derive(Debug)]
pub struct Survey {
    /// What is in the columns, if it is a table.
    pub columns: Option<Vec<ColumnProfile>>,
    /// How many rows have each label, as far as they have one; `None` if there are no labels.
    pub labels: Option<super::Labels>,
    /// Number of rows.
    pub rows: usize,
    /// The data set, or why it cannot be used as it is.
    pub data: Result<Dataset>,
}

/// Looks at a file, as [`read`] would read it, whatever is in its columns.
///
/// # Errors
/// Those of [`read`] that leave nothing to be told: the file is not readable, or not of its format.
pub fn survey(path: &str, options: &ReadOptions) -> Result<Survey> {
    let opened = Opened::file(path, options)?;
    let (name, lenient) = (opened.name.clone(), ReadOptions { any_label: true, ..options.clone() });
    let Some(raw) = opened.table(&lenient)? else {
        let data = read(path, options)?;
        return Ok(Survey { columns: None, labels: data.labels.clone(), rows: data.rows.rows(), data: Ok(data) });
    };
    let (columns, labels, rows) = (raw.profile(), raw.built.labels.clone(), raw.built.rows.rows());
    let raw = Raw { options, ..raw };
    let data = raw.encoded(name, options.schema.as_ref());
    Ok(Survey { columns: Some(columns), labels, rows, data })
}

/// Blocks whose rows are handed on together: some sixteen mebibytes of text, whatever the number of threads.
const TOGETHER: usize = 32;

/// Reads a file as [`read`] does, some rows at a time: `deliver` gets them in order, and they are not kept. A table needs a
/// [`schema`](ReadOptions::schema), as nobody can tell what its columns are before the last row. Parquet comes in one part.
///
/// # Errors
/// As [`read`], and those of `deliver`. Parts before an error have been delivered.
pub fn read_parts(
    path: &str,
    options: &ReadOptions,
    deliver: &mut (dyn FnMut(Dataset) -> Result<()> + Send),
) -> Result<()> {
    if options.format.is_none() && is_block_file(path) {
        return BlockFile::open(path)?.deliver(deliver);
    }
    let opened = Opened::file(path, options)?;
    let known = options.schema.as_ref().is_some_and(|schema| schema.columns.is_some());
    let name = opened.name.clone();
    match opened.format {
        Format::Libsvm => {
            let mut finish = |built: Built| deliver(Dataset::new(name.clone(), built.rows, built.labels));
            let mut parts = PartSink::new(path, options, &Vec::new, &mut finish);
            opened.parse_libsvm(options, &mut |chunk| parts.append(chunk))?;
            parts.end()
        }
        Format::Csv | Format::Tsv if known => {
            let (table, source, first) = table::open(path, opened.delimiter(), opened.input, options)?;
            let mut remarks = Some(table.layout.remarks.clone());
            let mut finish = |built: Built| {
                let mut layout = table.layout.clone();
                // What is to be said of the file is said once.
                layout.remarks = remarks.take().unwrap_or_default();
                let typed = vec![None; layout.columns.len()];
                let raw = Raw { file: path, layout, built, typed, options };
                deliver(raw.encoded(name.clone(), options.schema.as_ref())?)
            };
            let texts = || table.layout.texts(options);
            let mut parts = PartSink::new(path, options, &texts, &mut finish);
            let parse = |block, text: &[u8]| table.parse(block, text, options.precision);
            run(path, source, first, parse, &mut |chunk| parts.append(chunk))?;
            parts.end()
        }
        _ => {
            let raw = opened.table(options)?;
            raw.map_or(Ok(()), |raw| deliver(raw.encoded(name, options.schema.as_ref())?))
        }
    }
}

/// Hands rows on, some blocks at a time.
struct PartSink<'a> {
    builder: Builder,
    options: &'a ReadOptions,
    texts: &'a (dyn Fn() -> Vec<texts::TextColumn> + Sync),
    finish: &'a mut (dyn FnMut(Built) -> Result<()> + Send),
    blocks: usize,
    delivered: bool,
}

impl<'a> PartSink<'a> {
    fn new(
        file: &str,
        options: &'a ReadOptions,
        texts: &'a (dyn Fn() -> Vec<texts::TextColumn> + Sync),
        finish: &'a mut (dyn FnMut(Built) -> Result<()> + Send),
    ) -> Self {
        let builder = Builder::of_table(file, options, texts());
        Self { builder, options, texts, finish, blocks: 0, delivered: false }
    }

    fn deliver(&mut self) -> Result<()> {
        let whole = self.builder.take(self.options, (self.texts)());
        self.delivered = true;
        (self.finish)(whole.finish()?)
    }

    fn end(mut self) -> Result<()> {
        // A file without rows is refused by its builder.
        if self.delivered && self.builder.is_empty() { Ok(()) } else { self.deliver() }
    }

    fn append(&mut self, chunk: Chunk) -> Result<()> {
        self.builder.append(chunk)?;
        self.blocks += 1;
        if self.blocks.is_multiple_of(TOGETHER) && !self.builder.is_empty() { self.deliver() } else { Ok(()) }
    }
}

/// A file of known format.
struct Opened<'f> {
    file: &'f str,
    /// What the file is called without its endings.
    name: String,
    format: Format,
    input: Sniffed<'f>,
}

impl<'f> Opened<'f> {
    fn file(path: &'f str, options: &ReadOptions) -> Result<Self> {
        Self::new(path, Input::open(path, FileEnding::of(path).compression), options)
    }

    /// Tells the format as asked for, by the ending of the name, or by the first bytes.
    fn new(file: &'f str, input: std::io::Result<Input<'f>>, options: &ReadOptions) -> Result<Self> {
        let ending = FileEnding::of(file);
        let input = input.and_then(Input::sniff).map_err(Error::io(file))?;
        let shown = if input.is_parquet() { Format::Parquet } else { Format::Libsvm };
        let format = options.format.or(ending.format).unwrap_or(shown);
        Ok(Self { file, name: ending.stem, format, input })
    }

    /// The byte between fields that the format has by its name.
    fn delimiter(&self) -> Option<u8> {
        (self.format == Format::Tsv).then_some(b'\t')
    }

    fn read(self, options: &ReadOptions) -> Result<Dataset> {
        if let Some(features) = options.features.filter(|&n| n > u32::MAX as usize) {
            return Err(Error::parameter("features", features, format!("at most {}", u32::MAX)));
        }
        if self.format == Format::Libsvm {
            return self.libsvm(options);
        }
        let (file, name) = (self.file, self.name.clone());
        let raw = self.table(options)?.ok_or_else(|| Error::data(file, "it is no table"))?;
        raw.encoded(name, options.schema.as_ref())
    }

    /// A table, its columns not yet features; `None` for what is no table.
    fn table<'a>(self, options: &'a ReadOptions) -> Result<Option<Raw<'a>>>
    where
        'f: 'a,
    {
        match self.format {
            Format::Libsvm => Ok(None),
            Format::Csv | Format::Tsv => table::read(self.file, self.delimiter(), self.input, options).map(Some),
            Format::Parquet => read_parquet(self.file, self.input, options).map(Some),
        }
    }

    fn libsvm(self, options: &ReadOptions) -> Result<Dataset> {
        let (name, mut builder) = (self.name.clone(), Builder::new(self.file, options));
        self.parse_libsvm(options, &mut |chunk| builder.append(chunk))?;
        let built = builder.finish()?;
        Ok(Dataset::new(name, built.rows, built.labels))
    }

    /// Parses LIBSVM text, some rows at a time.
    fn parse_libsvm(self, options: &ReadOptions, append: Append<'_>) -> Result<()> {
        check_no_columns(options)?;
        let mut source = self.input.by_ranges().map_err(Error::io(self.file))?;
        let first = source.next_batch(Vec::new()).map_err(Error::io(self.file))?;
        run(self.file, source, first, |_, text| libsvm::parse(text, options.precision), append)
    }
}

/// Refuses to choose columns where they have no names.
fn check_no_columns(options: &ReadOptions) -> Result<()> {
    let columns = [("drop", &options.drop), ("features", &options.keep)];
    let given = columns.iter().find(|(_, names)| !names.is_empty());
    match given {
        Some((parameter, names)) if *parameter == "drop" || options.features.is_none() => {
            let expected = "a table (CSV, TSV, Parquet): here columns have no names";
            Err(Error::parameter(parameter, names.join(","), expected))
        }
        _ => Ok(()),
    }
}

#[cfg(feature = "parquet")]
fn read_parquet<'a>(file: &'a str, input: source::Sniffed<'_>, options: &'a ReadOptions) -> Result<Raw<'a>> {
    parquet::read(file, input, options)
}

#[cfg(not(feature = "parquet"))]
fn read_parquet<'a>(file: &'a str, _: source::Sniffed<'_>, _: &'a ReadOptions) -> Result<Raw<'a>> {
    Err(Error::Usage(format!("{file}: this build of widemargin cannot read Parquet (feature `parquet` is off)")))
}

/// Takes the next rows.
type Append<'a> = &'a mut (dyn FnMut(Chunk) -> Result<()> + Send);

/// Parses all blocks in parallel and gives them to the builder in order. Three things go on at once: the next batch
/// is read, one is parsed, and the one before is joined to the rest.
fn run(
    file: &str,
    mut source: Source<'_>,
    first: Vec<Block>,
    parse: impl Fn(usize, &[u8]) -> Chunk + Sync,
    append: Append<'_>,
) -> Result<()> {
    let io = |source| Error::Io { path: file.into(), source };
    let mut join =
        |parsed: Vec<std::io::Result<Chunk>>| parsed.into_iter().try_for_each(|chunk| append(chunk.map_err(io)?));
    let parse_block = |block: &mut Block| block.text().map(|(number, text)| parse(number, text));
    let (mut batch, mut spare) = (first, Vec::new());
    let mut parsed: Vec<std::io::Result<Chunk>> = Vec::new();
    while !batch.is_empty() {
        let done = std::mem::take(&mut parsed);
        let (next, (joined, fresh)) = rayon::join(
            || source.next_batch(std::mem::take(&mut spare)),
            || rayon::join(|| join(done), || batch.par_iter_mut().with_max_len(1).map(parse_block).collect()),
        );
        joined?;
        parsed = fresh;
        spare = batch;
        batch = match next {
            Ok(next) => next,
            Err(source) => {
                // What was read before may hold an error that stands earlier in the file.
                join(parsed)?;
                return Err(io(source));
            }
        };
    }
    join(parsed)
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

/// A field for a message.
fn field_found(text: &[u8]) -> String {
    if text.is_empty() { "an empty field".into() } else { quote(text) }
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
