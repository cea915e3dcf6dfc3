//! Cutting a data file in two: rows are copied as they are written, with whatever else stands in them.

use super::format::{FileEnding, Format};
use super::read::{ReadOptions, read_labels, unpacked};
use super::split::train_test;
use super::write::pack;
use super::{Dataset, Labels, write, write_atomically};
use crate::{Error, Result};
use std::io::Write;
use std::ops::Range;
use std::path::Path;

/// A file, or a set inside the program, that is cut in two.
pub struct Divided {
    /// The labels of all rows.
    pub labels: Labels,
    /// Rows that went to training.
    pub train: Vec<usize>,
    /// Rows that went to the test.
    pub test: Vec<usize>,
}

/// Cuts a file of labelled rows in two, class by class and at random ([`train_test`]): `test_size` of the rows go to the file
/// `test`, the others to `train`. LIBSVM text, CSV and TSV keep every row as it is written, and tables their header; the new
/// files are of the same format, packed as their endings say. Of a table only the labels matter: other columns may hold anything.
///
/// # Errors
/// As [`read`](super::read), but for columns that could be no features, and [`write()`]; [`Error::Usage`] if the new files are to be of another format.
pub fn divide_file(
    path: &str,
    options: &ReadOptions,
    test_size: f64,
    seed: u64,
    train: &str,
    test: &str,
) -> Result<Divided> {
    let bytes = unpacked(path)?;
    let format = options.format.or(FileEnding::of(path).format).unwrap_or(Format::Libsvm);
    if format == Format::Parquet || bytes.starts_with(b"PAR1") {
        return Err(Error::Usage(format!("{path}: rows of text are cut in two, not Parquet: convert it to CSV first")));
    }
    for out in [train, test] {
        if let Some(other) = FileEnding::of(out).format.filter(|other| *other != format) {
            return Err(Error::Usage(format!("{out}: rows are copied as they are, as {format}, not {other}")));
        }
    }
    let (rows, labels) = read_labels(path, &bytes, options)?;
    let records = records(&bytes, format);
    // Tables have a header, or none.
    let first = match records.len() - rows.min(records.len()) {
        0 if records.len() == rows => 0,
        1 if format != Format::Libsvm => 1,
        _ => {
            let reason = format!("it has {rows} rows on {} lines that hold rows", records.len());
            return Err(Error::data(path, reason));
        }
    };
    let divided = divide(labels, path, test_size, seed)?;
    for (out, rows) in [(train, &divided.train), (test, &divided.test)] {
        let chosen = (0..first).chain(rows.iter().map(|row| row + first)).map(|place| &bytes[records[place].clone()]);
        copy(out, chosen)?;
    }
    Ok(divided)
}

/// As [`divide_file`], for rows in memory.
pub fn divide_dataset(data: Dataset, test_size: f64, seed: u64, train: &str, test: &str) -> Result<Divided> {
    let divided = divide(data.labels.clone(), &data.name, test_size, seed)?;
    for (out, rows) in [(train, &divided.train), (test, &divided.test)] {
        let part = Dataset { rows: data.rows.select(rows), labels: Some(divided.labels.select(rows)), ..data.clone() };
        write(&part, out, None)?;
    }
    Ok(divided)
}

fn divide(labels: Option<Labels>, file: &str, test_size: f64, seed: u64) -> Result<Divided> {
    let labels = labels.ok_or_else(|| Error::data(file, "it has no labels, whose shares are kept"))?;
    let (train, test) = train_test(&labels, 1.0 - test_size, seed, 0);
    if train.is_empty() || test.is_empty() {
        return Err(Error::data(file, "it has too few rows to be cut in two"));
    }
    Ok(Divided { labels, train, test })
}

/// Where the rows of a text stand, with their line ends. Blank lines and comments of LIBSVM text are none.
fn records(text: &[u8], format: Format) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < text.len() {
        let mut to = line_end(text, from);
        if format != Format::Libsvm {
            // A quoted field may hold line ends.
            let open = |to: usize| memchr::memchr_iter(b'"', &text[from..to]).count() % 2 == 1;
            while to < text.len() && open(to) {
                to = line_end(text, to);
            }
        }
        let line = text[from..to].trim_ascii();
        let is_comment = format == Format::Libsvm && line.starts_with(b"#");
        if !line.is_empty() && !is_comment {
            found.push(from..to);
        }
        from = to;
    }
    found
}

fn line_end(text: &[u8], from: usize) -> usize {
    memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |at| from + at + 1)
}

/// Writes rows to a file, packed as its ending says; one that had no line end gets one.
fn copy<'t>(path: &str, rows: impl Iterator<Item = &'t [u8]> + Clone) -> Result<()> {
    let compression = FileEnding::of(path).compression;
    let lines = |out: &mut dyn Write| {
        for row in rows.clone() {
            out.write_all(row)?;
            if !row.ends_with(b"\n") {
                out.write_all(b"\n")?;
            }
        }
        Ok(())
    };
    write_atomically(Path::new(path), |out| pack(out, compression, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_text() {
        let text = b"# a comment\n+1 1:2\n\n-1 2:1 # odd\r\n+1";
        let lines: Vec<&[u8]> = records(text, Format::Libsvm).into_iter().map(|r| &text[r]).collect();
        assert_eq!(lines, [&b"+1 1:2\n"[..], b"-1 2:1 # odd\r\n", b"+1"]);
        let table = b"a,b\n\"x\ny\",1\n\"say \"\"so\"\"\",2\n";
        assert_eq!(records(table, Format::Csv).len(), 3);
    }
}
