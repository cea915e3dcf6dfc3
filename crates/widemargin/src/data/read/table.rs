//! CSV and TSV: one record a line, fields of numbers but for the label, the first record perhaps their names.
//!
//! Records are cut here and not by `csv-core`: that takes a quote that is never closed, or text behind a closing one, for a
//! field (`"a"b` is `ab`), knows no blanks before a quote, and does not say in which line a field begins. Here the first
//! two are errors that name line and field.

use super::build::{Builder, Chunk, ChunkLabels, Fault};
use super::source::{Block, Sniffed};
use super::{Parts, Precision, ReadOptions, expected_finite, io_error, number, quote, run};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// Names by which a column is taken for the label's.
const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];

/// What stands for a value that is not there.
const MISSING: [&str; 8] = ["", "?", "-", "na", "n/a", "null", "none", "nil"];

/// Reads a table with the given byte between fields.
pub(super) fn read(file: &str, delimiter: u8, input: Sniffed<'_>, options: &ReadOptions) -> Result<Parts> {
    let io = |source| io_error(file, source);
    let mut source = input.by_records();
    let mut batch = source.next_batch(Vec::new()).map_err(io)?;
    let schema = Schema::of(file, delimiter, &mut batch, options)?;
    let mut builder = Builder::new(file, options);
    let parse = |block, text: &[u8]| schema.parse(block, text, options.precision);
    run(file, source, batch, parse, &mut |chunk| builder.append(chunk))?;
    let (rows, labels) = builder.finish()?;
    Ok((labels, rows, schema.features()))
}

/// What the columns are.
struct Schema {
    delimiter: u8,
    fields: usize,
    /// Position of the label.
    label: Option<usize>,
    /// Names of all columns.
    names: Option<Vec<String>>,
    /// The block whose first record holds the names.
    header_block: Option<usize>,
}

impl Schema {
    /// Tells the schema by the first two records.
    fn of(file: &str, delimiter: u8, batch: &mut [Block], options: &ReadOptions) -> Result<Self> {
        let mut first: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
        for block in batch {
            let (number, text) = block.text().map_err(|source| io_error(file, source))?;
            let wanted = 2 - first.len();
            first.extend(Records::new(text).take(wanted).map(|(_, record)| {
                (number, Fields::new(record, delimiter).map(|field| field.text.into_owned()).collect())
            }));
            if first.len() == 2 {
                break;
            }
        }
        let Some((block, head)) = first.first() else {
            return Err(Error::Data { file: file.into(), reason: "there are no rows in it".into() });
        };
        let second = first.get(1).map(|(_, record)| record.as_slice());
        let has_header = options.header.unwrap_or_else(|| looks_like_names(head, second));
        let names: Option<Vec<String>> =
            has_header.then(|| head.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect());
        let sample = if has_header { second.unwrap_or(&[]) } else { head };
        let label = label_column(options.label.as_deref(), names.as_deref(), head.len(), sample)?;
        let header_block = has_header.then_some(*block);
        Ok(Self { delimiter, fields: head.len(), label, names, header_block })
    }

    /// Names of the features; none if they only number them (`x1`, `x2`, …), as files written here do.
    fn features(self) -> Option<Vec<String>> {
        let label = self.label;
        let mut names = self.names?;
        if let Some(label) = label.filter(|&l| l < names.len()) {
            names.remove(label);
        }
        let numbered = names.iter().enumerate().all(|(i, name)| *name == format!("x{}", i + 1));
        (!numbered).then_some(names)
    }

    /// Parses whole records.
    fn parse(&self, block: usize, text: &[u8], precision: Precision) -> Chunk {
        let mut chunk = Chunk {
            cols: self.fields - usize::from(self.label.is_some()),
            head: Some((self.label.is_some(), Fault::default())),
            lines: memchr::memchr_iter(b'\n', text).count() as u64,
            ..Chunk::default()
        };
        let mut labels = OwnedLabels::default();
        let header = usize::from(self.header_block == Some(block));
        for (line, record) in Records::new(text).skip(header) {
            if let Err(fault) = self.row(record, precision, &mut chunk, &mut labels) {
                chunk.fault = Some(Fault { line: line + fault.line, ..fault });
                break;
            }
        }
        chunk
    }

    /// Parses a record. The line of a fault counts from the record's first.
    fn row<'t>(
        &self,
        record: &'t [u8],
        precision: Precision,
        chunk: &mut Chunk,
        labels: &mut OwnedLabels<'t>,
    ) -> std::result::Result<(), Fault> {
        let (mut seen, mut column) = (0, 0u32);
        for field in Fields::new(record, self.delimiter) {
            seen += 1;
            let fault =
                |expected: String| Fault { line: field.line, column: seen as u64, found: found(&field.text), expected };
            if field.broken {
                return Err(fault("a closing quote right before the end of the field".into()));
            }
            if seen > self.fields {
                continue;
            }
            if self.label == Some(seen - 1) {
                if field.text.is_empty() {
                    return Err(fault("a label".into()));
                }
                if std::str::from_utf8(&field.text).is_err() {
                    return Err(fault("a label in UTF-8".into()));
                }
                labels.push(field.text, chunk);
                continue;
            }
            match number(&field.text, precision) {
                Some((value, length)) if length == field.text.len() && value.is_finite() => chunk.push(column, value),
                Some((_, length)) if length == field.text.len() => {
                    return Err(fault(expected_finite(precision).into()));
                }
                _ => return Err(fault(self.expected_number(&field.text, seen))),
            }
            column += 1;
        }
        if seen != self.fields {
            return Err(Fault {
                line: 0,
                column: seen.min(self.fields + 1) as u64,
                found: format!("{seen} fields"),
                expected: format!("{} fields, as in the first row", self.fields),
            });
        }
        chunk.end_row();
        Ok(())
    }

    /// What should stand in place of a field that is no number.
    fn expected_number(&self, text: &[u8], column: usize) -> String {
        let name = self.names.as_ref().and_then(|names| names.get(column - 1));
        let name = name.map(|name| format!(" ({})", quote(name.as_bytes()))).unwrap_or_default();
        if is_missing(text) {
            format!("a number in column {column}{name} (fill in or leave out rows with missing values)")
        } else {
            format!(
                "a number in column {column}{name} (features are numbers: encode the column, leave it out, or name it as the label)"
            )
        }
    }
}

fn found(text: &[u8]) -> String {
    if text.is_empty() { "an empty field".into() } else { quote(text) }
}

fn is_missing(text: &[u8]) -> bool {
    MISSING.iter().any(|m| text.eq_ignore_ascii_case(m.as_bytes()))
}

/// Whether a field is a number, if not a finite one.
fn is_number(text: &[u8]) -> bool {
    fast_float2::parse::<f64, _>(text).is_ok()
}

/// Whether the first record holds names: it has text where the second has a number. A value that is missing is no
/// name. A record alone is a row unless it cannot be one, having text in two columns.
fn looks_like_names(first: &[Vec<u8>], second: Option<&[Vec<u8>]>) -> bool {
    let is_name = |text: &[u8]| !is_number(text) && !is_missing(text);
    match second {
        Some(second) => first.iter().zip(second).any(|(a, b)| is_name(a) && is_number(b)),
        None => first.iter().filter(|text| is_name(text)).count() > 1,
    }
}

/// The position of the label column; see [`ReadOptions::label`].
pub(super) fn label_column(
    wanted: Option<&str>,
    names: Option<&[String]>,
    fields: usize,
    sample: &[Vec<u8>],
) -> Result<Option<usize>> {
    let Some(wanted) = wanted else {
        let named = names.and_then(|names| {
            LABEL_NAMES.iter().find_map(|label| names.iter().position(|n| n.eq_ignore_ascii_case(label)))
        });
        let mut texts = (0..sample.len()).filter(|&i| !is_number(&sample[i]) && !is_missing(&sample[i]));
        let only_text = texts.next().filter(|_| texts.next().is_none());
        return Ok(Some(named.or(only_text).unwrap_or(0)));
    };
    if wanted == "none" {
        return Ok(None);
    }
    if let Some(at) = names.and_then(|names| names.iter().position(|name| name == wanted)) {
        return Ok(Some(at));
    }
    if let Some(number) = wanted.parse::<usize>().ok().filter(|n| (1..=fields).contains(n)) {
        return Ok(Some(number - 1));
    }
    let expected = match names {
        Some(_) => format!("the name of a column, a number from 1 to {fields}, or none"),
        None => format!("a number from 1 to {fields} (the columns have no names), or none"),
    };
    Err(Error::parameter("label", wanted, expected))
}

/// The labels of a chunk. Hardly any hold quotes; those that do are copied.
#[derive(Default)]
struct OwnedLabels<'t> {
    plain: ChunkLabels<'t>,
    unquoted: HashMap<Vec<u8>, u32>,
}

impl<'t> OwnedLabels<'t> {
    /// Adds the label of a row; it is UTF-8.
    fn push(&mut self, label: Cow<'t, [u8]>, chunk: &mut Chunk) {
        match label {
            Cow::Borrowed(label) => {
                self.plain.push(label, chunk);
            }
            Cow::Owned(label) => {
                let code = *self.unquoted.entry(label).or_insert_with_key(|label| {
                    chunk.names.push(String::from_utf8_lossy(label).into_owned());
                    chunk.names.len() as u32 - 1
                });
                chunk.labels.push(code);
            }
        }
    }
}

/// The records of a text that are not blank, each with the number of its first line, from 0.
struct Records<'t> {
    rest: &'t [u8],
    line: u64,
}

impl<'t> Records<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { rest: text, line: 0 }
    }

    /// The length of the first record with its line end, and how many lines it takes.
    fn measure(&self) -> (usize, u64) {
        let (mut end, mut lines, mut quotes) = (0, 0, 0);
        while end < self.rest.len() {
            let rest = &self.rest[end..];
            let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            quotes += memchr::memchr_iter(b'"', &rest[..length]).count();
            end += length;
            lines += 1;
            if quotes % 2 == 0 {
                break;
            }
        }
        (end, lines)
    }
}

impl<'t> Iterator for Records<'t> {
    type Item = (u64, &'t [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let (end, lines) = self.measure();
            let (record, rest) = self.rest.split_at(end);
            let line = self.line;
            self.rest = rest;
            self.line += lines;
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            let record = record.strip_suffix(b"\r").unwrap_or(record);
            if !record.trim_ascii().is_empty() {
                return Some((line, record));
            }
        }
    }
}

/// A field without the blanks and quotes around it.
struct Field<'t> {
    text: Cow<'t, [u8]>,
    /// Its line in the record, from 0.
    line: u64,
    /// Whether its quotes are not as they should be.
    broken: bool,
}

/// The fields of a record.
struct Fields<'t> {
    rest: Option<&'t [u8]>,
    delimiter: u8,
    line: u64,
}

impl<'t> Fields<'t> {
    fn new(record: &'t [u8], delimiter: u8) -> Self {
        Self { rest: Some(record), delimiter, line: 0 }
    }

    /// Takes a field that starts with a quote. Two quotes within stand for one.
    fn quoted(&mut self, text: &'t [u8]) -> Field<'t> {
        let line = self.line;
        let mut end = 1;
        let mut doubled = false;
        let closed = loop {
            match memchr::memchr(b'"', &text[end..]) {
                Some(at) if text.get(end + at + 1) == Some(&b'"') => {
                    doubled = true;
                    end += at + 2;
                }
                Some(at) => break Some(end + at),
                None => break None,
            }
        };
        let Some(close) = closed else {
            self.rest = None;
            return Field { text: text.into(), line, broken: true };
        };
        let inside = &text[1..close];
        self.line += memchr::memchr_iter(b'\n', inside).count() as u64;
        let after = &text[close + 1..];
        let blanks = memchr::memchr(self.delimiter, after).unwrap_or(after.len());
        self.rest = after.get(blanks + 1..).filter(|_| blanks < after.len());
        let broken = !after[..blanks].trim_ascii().is_empty();
        let inside = inside.trim_ascii();
        let text = if doubled { Cow::Owned(undouble(inside)) } else { Cow::Borrowed(inside) };
        Field { text, line, broken }
    }
}

/// Replaces two quotes by one.
fn undouble(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut after_quote = false;
    for &byte in text {
        after_quote = byte == b'"' && !after_quote;
        if !after_quote {
            plain.push(byte);
        }
    }
    plain
}

impl<'t> Iterator for Fields<'t> {
    type Item = Field<'t>;

    #[inline]
    fn next(&mut self) -> Option<Field<'t>> {
        let rest = self.rest?;
        // A blank that parts fields is not one around them.
        let blanks = rest.iter().take_while(|&&b| b != self.delimiter && b.is_ascii_whitespace()).count();
        let text = &rest[blanks..];
        if text.first() == Some(&b'"') {
            return Some(self.quoted(text));
        }
        let end = memchr::memchr(self.delimiter, text);
        self.rest = end.map(|at| &text[at + 1..]);
        let field = text[..end.unwrap_or(text.len())].trim_ascii_end();
        Some(Field { text: field.into(), line: self.line, broken: false })
    }
}
