//! CSV and TSV: one record a line, the first perhaps their names. Fields that are no numbers are kept apart, so that
//! columns of numbers cost nothing for those that are not.
//!
//! Records are cut here and not by `csv-core`: that takes a quote that is never closed, or text behind a closing one, for a
//! field (`"a"b` is `ab`), knows no blanks before a quote, and does not say in which line a field begins. Here the first
//! two are errors that name line and field.

use super::build::{Builder, Chunk, ChunkLabels, Fault};
use super::encode::Raw;
use super::layout::{Role, TableLayout, looks_like_names};
use super::source::{Block, Sniffed, Source};
use super::texts::ChunkTexts;
use super::{Precision, ReadOptions, field_found, is_missing, number, run};
use crate::{Error, Result};
use std::borrow::Cow;
use std::collections::HashMap;

/// Records looked at before the first is parsed: they tell delimiter and header.
const SAMPLE: usize = 50;
/// What may stand between the fields of a CSV file.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Reads a table with the given byte between fields, or the one that its first records have.
pub(super) fn read<'a>(
    file: &'a str,
    delimiter: Option<u8>,
    input: Sniffed<'_>,
    options: &'a ReadOptions,
) -> Result<Raw<'a>> {
    let (table, source, batch) = open(file, delimiter, input, options)?;
    let mut builder = Builder::of_table(file, options, table.layout.texts(options));
    let parse = |block, text: &[u8]| table.parse(block, text, options.precision);
    run(file, source, batch, parse, &mut |chunk| builder.append(chunk))?;
    let built = builder.finish()?;
    let typed = vec![None; table.layout.columns.len()];
    Ok(Raw { file, layout: table.layout, built, typed, options })
}

/// Looks at the first records of a table; what was read of it comes first in what is read.
pub(super) fn open<'i>(
    file: &str,
    delimiter: Option<u8>,
    input: Sniffed<'i>,
    options: &ReadOptions,
) -> Result<(Table, Source<'i>, Vec<Block>)> {
    let mut source = input.by_records();
    let mut batch = source.next_batch(Vec::new()).map_err(Error::io(file))?;
    let table = Table::of(file, delimiter, &mut batch, options)?;
    Ok((table, source, batch))
}

/// How the fields of a file are to be read.
pub(super) struct Table {
    delimiter: u8,
    pub(super) layout: TableLayout,
    /// The block whose first record holds the names.
    header_block: Option<usize>,
    /// Whether rows without a label are refused.
    needs_labels: bool,
}

impl Table {
    /// Tells it by the first records.
    fn of(file: &str, delimiter: Option<u8>, batch: &mut [Block], options: &ReadOptions) -> Result<Self> {
        let mut first: Vec<Vec<u8>> = Vec::new();
        let mut first_block = 0;
        for block in batch {
            let (number, text) = block.text().map_err(Error::io(file))?;
            if first.is_empty() {
                first_block = number;
            }
            first.extend(Records::new(text).take(SAMPLE - first.len()).map(|(_, record)| record.to_vec()));
            if first.len() == SAMPLE {
                break;
            }
        }
        if first.is_empty() {
            return Err(Error::data(file, "there are no rows in it"));
        }
        let delimiter = options.delimiter.or(delimiter).unwrap_or_else(|| sniffed(&first));
        let cut = |record: &Vec<u8>| -> Vec<Vec<u8>> {
            Fields::new(record, delimiter).map(|field| field.text.into_owned()).collect()
        };
        let records: Vec<Vec<Vec<u8>>> = first.iter().map(cut).collect();
        let has_header =
            options.header.unwrap_or_else(|| looks_like_names(&records) || known_names(&records[0], options));
        let name = |name: &Vec<u8>| String::from_utf8_lossy(name).into_owned();
        let names: Option<Vec<String>> = has_header.then(|| records[0].iter().map(name).collect());
        let layout = TableLayout::new(file, names, records[0].len(), options, options.schema.as_ref())?;
        let header_block = has_header.then_some(first_block);
        Ok(Self { delimiter, layout, header_block, needs_labels: !options.any_label })
    }

    /// Parses whole records.
    pub(super) fn parse(&self, block: usize, text: &[u8], precision: Precision) -> Chunk {
        let labelled = self.layout.label.is_some();
        let mut chunk = Chunk {
            cols: self.layout.columns.len(),
            head: Some((labelled, Fault::default())),
            lines: memchr::memchr_iter(b'\n', text).count() as u64,
            ..Chunk::default()
        };
        let (mut labels, mut texts) = (OwnedLabels::default(), ChunkTexts::default());
        let header = usize::from(self.header_block == Some(block));
        for (line, record) in Records::new(text).skip(header) {
            let from = chunk.values.len();
            if let Err(fault) = self.row(line, record, precision, &mut chunk, &mut labels, &mut texts) {
                chunk.fault = Some(Fault { line: line + fault.line, ..fault });
                break;
            }
            if self.layout.shuffled {
                chunk.sort_row(from);
            }
            chunk.end_row();
        }
        chunk
    }

    /// Parses a record. The line of a fault counts from the record's first.
    fn row<'t>(
        &self,
        line: u64,
        record: &'t [u8],
        precision: Precision,
        chunk: &mut Chunk,
        labels: &mut OwnedLabels<'t>,
        texts: &mut ChunkTexts,
    ) -> std::result::Result<(), Fault> {
        let (mut seen, fields) = (0, self.layout.roles.len());
        for field in Fields::new(record, self.delimiter) {
            seen += 1;
            let fault = |expected: &str| Fault {
                line: field.line,
                column: seen as u64,
                found: field_found(&field.text),
                expected: expected.into(),
            };
            if field.broken {
                return Err(fault("a closing quote right before the end of the field"));
            }
            match self.layout.roles.get(seen - 1) {
                Some(Role::Feature(column)) => match number(&field.text, precision) {
                    Some((value, length)) if length == field.text.len() && value.is_finite() => {
                        chunk.push(*column, value);
                    }
                    _ => texts.push(chunk, *column, line + field.line, &field.text),
                },
                Some(Role::Label) => {
                    if self.needs_labels && is_missing(&field.text) {
                        return Err(fault("a label"));
                    }
                    if std::str::from_utf8(&field.text).is_err() {
                        return Err(fault("a label in UTF-8"));
                    }
                    labels.push(field.text, chunk);
                }
                Some(Role::Id) => chunk.ids.push(String::from_utf8_lossy(&field.text).into_owned()),
                Some(Role::Unused) | None => {}
            }
        }
        if seen != fields {
            return Err(Fault {
                line: 0,
                column: seen.min(fields + 1) as u64,
                found: format!("{seen} fields"),
                expected: format!("{fields} fields, as in the first row"),
            });
        }
        Ok(())
    }
}

/// What stands between fields: what the first two records have equally often, `,` before others, or else most often.
fn sniffed(records: &[Vec<u8>]) -> u8 {
    let count = |record: &Vec<u8>, delimiter| Fields::new(record, delimiter).count() - 1;
    let (first, second) = (&records[0], records.get(1).unwrap_or(&records[0]));
    let same = |&delimiter: &u8| count(first, delimiter) > 0 && count(first, delimiter) == count(second, delimiter);
    let most = || DELIMITERS.into_iter().rev().max_by_key(|&delimiter| count(first, delimiter));
    DELIMITERS.into_iter().find(same).or_else(most).unwrap_or(b',')
}

/// Whether the first record holds names that were asked for.
fn known_names(first: &[Vec<u8>], options: &ReadOptions) -> bool {
    let has = |name: &str| name.parse::<usize>().is_err() && first.iter().any(|field| field == name.as_bytes());
    let asked = options.label.iter().chain(&options.drop).chain(&options.keep).any(|name| has(name));
    let columns = options.schema.as_ref().and_then(|schema| schema.column_names());
    asked || columns.is_some_and(|names| !names.is_empty() && names.iter().all(|name| has(name)))
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
