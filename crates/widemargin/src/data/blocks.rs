//! Files of blocks (`.wmx`): rows as they are held in memory, a block at a time, for data that is larger than it.
//!
//! ```text
//! magic (8 bytes) · blocks · table of contents (JSON) · where it starts, its checksum (8 bytes each) · magic
//! ```
//!
//! A block is row offsets (u64) and columns (u32) if it is sparse, values (f32 or f64), a code a row (u32), each array padded to 8
//! bytes, all little-endian. The table of contents has the labels, and place, shape and checksum of every block; nothing is
//! believed that is not checked. Files are read by `pread`: one that shrinks is an error, not a crash.

use super::atomic::write_atomically;
use super::read::{read_at, read_parts};
use super::{Csr, Dataset, Dense, Labels, Matrix, MetLabels, ReadOptions, Real, Rows};
use crate::{Error, Result, with_rows};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::sync_channel;

const MAGIC: &[u8; 8] = b"WMXROWS1";
/// Bytes of the end of a file.
const TAIL: u64 = 24;
/// More bytes no table of contents has: at a hundred bytes a block that is ten million blocks.
const LONGEST_CONTENTS: u64 = 1 << 30;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Contents {
    version: u32,
    rows: usize,
    features: usize,
    /// In the order of their codes; `None` if rows have none.
    labels: Option<Vec<String>>,
    blocks: Vec<Entry>,
}

impl Contents {
    fn counts(&self) -> BlockCounts {
        let stored = self.blocks.iter().map(|block| block.stored).sum();
        BlockCounts { rows: self.rows, features: self.features, stored }
    }
}

/// Where a block is, and what it must be.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    at: u64,
    rows: usize,
    cols: usize,
    stored: usize,
    dense: bool,
    single: bool,
    checksum: u64,
}

impl Entry {
    /// Lengths in bytes of offsets, columns, values and codes, as they are padded.
    fn lengths(&self, labelled: bool) -> Option<[usize; 4]> {
        let size = if self.single { 4 } else { 8 };
        let padded = |count: usize, size: usize| count.checked_mul(size)?.checked_next_multiple_of(8);
        let (offsets, columns) = match self.dense {
            true => (0, 0),
            false => (padded(self.rows.checked_add(1)?, 8)?, padded(self.stored, 4)?),
        };
        let codes = if labelled { padded(self.rows, 4)? } else { 0 };
        Some([offsets, columns, padded(self.stored, size)?, codes])
    }

    fn bytes(&self, labelled: bool) -> Option<u64> {
        self.lengths(labelled)?.iter().try_fold(0u64, |sum, &n| sum.checked_add(n as u64))
    }
}

/// An open file of blocks.
pub struct BlockFile {
    name: String,
    file: File,
    contents: Contents,
    /// The labels, ascending, and the place among them of each code in the file.
    labels: Option<(Vec<String>, Vec<u32>)>,
}

/// Whether a path is that of a file of blocks, by its first bytes.
pub fn is_block_file(path: &str) -> bool {
    let mut head = [0; 8];
    File::open(path)
        .and_then(|file| file.metadata().map(|m| (file, m)))
        .is_ok_and(|(file, meta)| meta.is_file() && read_exactly(&file, &mut head, 0).is_ok() && &head == MAGIC)
}

/// Whether a path asks for a file of blocks, by its ending.
pub fn names_block_file(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("wmx"))
}

/// What a file of blocks holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    /// Number of rows.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// Number of values that are kept.
    pub stored: usize,
}

/// Reads a data file and writes it as a file of blocks, without ever holding more than a few of them (LIBSVM text, packed or
/// not; other formats are read whole first).
///
/// # Errors
/// As [`super::read`]; [`Error::Io`] if the file cannot be written.
pub fn convert_to_blocks(from: &str, options: &ReadOptions, to: &Path) -> Result<BlockCounts> {
    let mut failed = None;
    let mut counts = None;
    let written = write_atomically(to, |out| {
        let mut writer = BlockWriter { out, at: 0, contents: Contents { version: 1, ..Contents::default() } };
        writer.put(MAGIC)?;
        let mut met = MetLabels::default();
        let (read, added) = std::thread::scope(|scope| {
            // One block is written while the next is read.
            let (sender, receiver) = sync_channel::<Dataset>(1);
            let reader = scope.spawn(move || {
                read_parts(from, options, &mut |part| sender.send(part).map_err(|_| Error::Interrupted))
            });
            let added = receiver.iter().try_for_each(|part| {
                let codes = part.labels.map(|labels| met.codes(labels.names(), labels.codes()));
                writer.add(&part.rows, &codes.unwrap_or_default())
            });
            drop(receiver);
            (reader.join(), added)
        });
        added?;
        match read.unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
            Ok(()) if writer.contents.rows == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(()) => counts = Some(writer.finish((!met.names.is_empty()).then_some(met.names))?),
            Err(error) => {
                failed = Some(error);
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    });
    match (failed, written, counts) {
        (Some(error), ..) | (None, Err(error), _) => Err(error),
        (None, Ok(()), Some(counts)) => Ok(counts),
        (None, Ok(()), None) => Err(Error::data(from, "there are no rows in it")),
    }
}

/// Writes blocks one after the other.
struct BlockWriter<'o> {
    out: &'o mut (dyn Write + 'o),
    at: u64,
    contents: Contents,
}

impl BlockWriter<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.at += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn add(&mut self, rows: &Matrix<'_>, codes: &[u32]) -> io::Result<()> {
        let mut bytes = Vec::new();
        match rows {
            Matrix::DenseF32(x) => put_values(&mut bytes, x.values(), |v| v.to_le_bytes()),
            Matrix::DenseF64(x) => put_values(&mut bytes, x.values(), |v| v.to_le_bytes()),
            Matrix::SparseF32(x) => put_sparse(&mut bytes, x, |v| v.to_le_bytes()),
            Matrix::SparseF64(x) => put_sparse(&mut bytes, x, |v| v.to_le_bytes()),
        }
        put_values(&mut bytes, codes, |code| code.to_le_bytes());
        let (m, cols) = (rows.rows(), rows.cols());
        let entry = Entry {
            at: self.at,
            rows: m,
            cols,
            stored: if rows.is_dense() { m * cols } else { rows.stored() },
            dense: rows.is_dense(),
            single: rows.is_f32(),
            checksum: checksum(&bytes),
        };
        self.contents.rows += m;
        self.contents.features = self.contents.features.max(cols);
        self.contents.blocks.push(entry);
        self.put(&bytes)
    }

    fn finish(mut self, labels: Option<Vec<String>>) -> io::Result<BlockCounts> {
        self.contents.labels = labels;
        let contents = serde_json::to_vec(&self.contents)?;
        let (at, sum) = (self.at, checksum(&contents));
        self.put(&contents)?;
        self.put(&at.to_le_bytes())?;
        self.put(&sum.to_le_bytes())?;
        self.put(MAGIC)?;
        Ok(self.contents.counts())
    }
}

fn put_sparse<T: Real, const N: usize>(bytes: &mut Vec<u8>, x: &Csr<'_, T>, le: impl Fn(T) -> [u8; N]) {
    put_values(bytes, x.offsets(), |offset| offset.to_le_bytes());
    put_values(bytes, x.columns(), |column| column.to_le_bytes());
    put_values(bytes, x.values(), le);
}

fn put_values<T: Copy, const N: usize>(bytes: &mut Vec<u8>, values: &[T], le: impl Fn(T) -> [u8; N]) {
    bytes.reserve(values.len() * N + 8);
    values.iter().for_each(|&value| bytes.extend_from_slice(&le(value)));
    bytes.resize(bytes.len().next_multiple_of(8), 0);
}

fn take_values<T, const N: usize>(bytes: &[u8], count: usize, of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().take(count).map(|&chunk| of(chunk)).collect()
}

impl BlockFile {
    /// Opens a file and checks its table of contents.
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Data`] if it is damaged, cut off, or from a newer program.
    pub fn open(path: &str) -> Result<Self> {
        let io = |source| Error::Io { path: path.into(), source };
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        let damaged = |reason: &str| Error::data(path, format!("not a whole file of blocks: {reason}"));
        let mut tail = [0; TAIL as usize];
        if size < TAIL + MAGIC.len() as u64
            || read_exactly(&file, &mut tail, size - TAIL).is_err()
            || &tail[16..] != MAGIC
        {
            return Err(damaged("its end is missing; convert the data again"));
        }
        let word = |at: usize| tail[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let (at, sum) = (word(0), word(8));
        let length = (size - TAIL).checked_sub(at).filter(|n| *n <= LONGEST_CONTENTS);
        let length = length.ok_or_else(|| damaged("its table of contents is out of place"))?;
        let mut bytes = vec![0; length as usize];
        read_exactly(&file, &mut bytes, at).map_err(io)?;
        if checksum(&bytes) != sum {
            return Err(damaged("its table of contents is damaged"));
        }
        let contents: Contents =
            serde_json::from_slice(&bytes).map_err(|error| damaged(&format!("its table of contents: {error}")))?;
        if contents.version != 1 {
            return Err(damaged(&format!("it is of version {}, this program knows version 1", contents.version)));
        }
        let labelled = contents.labels.is_some();
        let rows = contents.blocks.iter().try_fold(0usize, |sum, block| sum.checked_add(block.rows));
        let fits = |block: &Entry| {
            let end = block.bytes(labelled).and_then(|bytes| block.at.checked_add(bytes));
            let whole = !block.dense || block.rows.checked_mul(block.cols) == Some(block.stored);
            end.is_some_and(|end| end <= at) && block.cols <= contents.features && whole
        };
        if rows != Some(contents.rows) || contents.rows == 0 || !contents.blocks.iter().all(fits) {
            return Err(damaged("its blocks are out of place"));
        }
        let labels = contents.labels.as_ref().map(|names| {
            let every: Vec<u32> = (0..names.len() as u32).collect();
            let sorted = Labels::sorted(names.clone(), every);
            (sorted.names().to_vec(), sorted.codes().to_vec())
        });
        Ok(Self { name: path.into(), file, contents, labels })
    }

    /// The file, as it was named.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of rows, features and kept values.
    pub fn counts(&self) -> BlockCounts {
        self.contents.counts()
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.contents.blocks.len()
    }

    /// Whether there are no blocks, which no file is without.
    pub fn is_empty(&self) -> bool {
        self.contents.blocks.is_empty()
    }

    /// Bytes of a block.
    pub fn bytes(&self, number: usize) -> u64 {
        self.contents.blocks[number].bytes(self.labels.is_some()).unwrap_or(0)
    }

    /// The labels, ascending; `None` if rows have none.
    pub fn labels(&self) -> Option<&[String]> {
        self.labels.as_ref().map(|(names, _)| names.as_slice())
    }

    /// Reads a block: its rows, and the place of each row's label among [`labels`](Self::labels) (none if there are none).
    ///
    /// # Errors
    /// [`Error::Io`], or [`Error::Data`] if the block is damaged.
    pub fn block(&self, number: usize) -> Result<(Matrix<'static>, Vec<u32>)> {
        let entry = self.contents.blocks[number];
        let damaged = |reason: &str| Error::data(self.name.as_str(), format!("block {number}: {reason}"));
        let lengths = entry.lengths(self.labels.is_some()).ok_or_else(|| damaged("its size is out of range"))?;
        let mut bytes = vec![0; lengths.iter().sum()];
        read_exactly(&self.file, &mut bytes, entry.at).map_err(Error::io(&self.name))?;
        if checksum(&bytes) != entry.checksum {
            return Err(damaged("it is damaged (its checksum is another); convert the data again"));
        }
        let (offsets, rest) = bytes.split_at(lengths[0]);
        let (columns, rest) = rest.split_at(lengths[1]);
        let (values, codes) = rest.split_at(lengths[2]);
        let shape = Shape { entry, cols: self.contents.features, offsets, columns };
        let rows = match entry.single {
            true => {
                shape.matrix(take_values(values, entry.stored, f32::from_le_bytes), Matrix::DenseF32, Matrix::SparseF32)
            }
            false => {
                shape.matrix(take_values(values, entry.stored, f64::from_le_bytes), Matrix::DenseF64, Matrix::SparseF64)
            }
        };
        let rows = rows.map_err(|rule| damaged(&format!("expected {rule}")))?;
        if with_rows!(&rows, x => (0..x.rows()).any(|i| !x.norm2(i).is_finite())) {
            return Err(damaged("expected finite numbers, none of them huge"));
        }
        let codes: Vec<u32> =
            take_values(codes, if self.labels.is_some() { entry.rows } else { 0 }, u32::from_le_bytes);
        let place = self.labels.as_ref().map_or(&[][..], |(_, place)| place.as_slice());
        let codes: Option<Vec<u32>> = codes.iter().map(|&code| place.get(code as usize).copied()).collect();
        Ok((rows, codes.ok_or_else(|| damaged("expected codes of labels"))?))
    }

    /// The whole file in memory.
    ///
    /// # Errors
    /// Those of [`block`](Self::block), and [`Error::Memory`] where it does not fit.
    pub fn whole(&self) -> Result<Dataset> {
        let bytes: u64 = (0..self.len()).map(|number| self.bytes(number)).sum();
        crate::memory::check(
            || format!("{} as a whole", self.name),
            bytes.saturating_mul(2),
            "train a linear machine",
        )?;
        let (mut rows, mut codes) = self.block(0)?;
        for number in 1..self.len() {
            let (more, more_codes) = self.block(number)?;
            rows = rows.stacked(&more);
            codes.extend(more_codes);
        }
        Ok(self.dataset(rows, codes))
    }

    fn dataset(&self, rows: Matrix<'static>, codes: Vec<u32>) -> Dataset {
        let labels = self.labels().and_then(|names| Labels::coded(names.to_vec(), codes));
        let stem = Path::new(&self.name).file_stem().map(|stem| stem.to_string_lossy().into());
        Dataset::new(stem.unwrap_or_else(|| self.name.clone()), rows, labels)
    }

    /// Hands the rows over a block at a time.
    ///
    /// # Errors
    /// Those of [`block`](Self::block) and of `deliver`.
    pub fn deliver(&self, deliver: &mut (dyn FnMut(Dataset) -> Result<()> + Send)) -> Result<()> {
        (0..self.len()).try_for_each(|number| {
            let (rows, codes) = self.block(number)?;
            deliver(self.dataset(rows, codes))
        })
    }
}

/// What is known of a block before its values are.
struct Shape<'b> {
    entry: Entry,
    /// Columns that the rows of all blocks have.
    cols: usize,
    offsets: &'b [u8],
    columns: &'b [u8],
}

impl Shape<'_> {
    fn matrix<T: Real>(
        &self,
        values: Vec<T>,
        dense: fn(Dense<'static, T>) -> Matrix<'static>,
        sparse: fn(Csr<'static, T>) -> Matrix<'static>,
    ) -> std::result::Result<Matrix<'static>, &'static str> {
        let Entry { rows, cols, stored, .. } = self.entry;
        let matrix = if self.entry.dense {
            dense(Dense::new(rows, cols, values).ok_or("as many values as rows and columns make")?)
        } else {
            let offsets: Vec<u64> = take_values(self.offsets, rows + 1, u64::from_le_bytes);
            let columns: Vec<u32> = take_values(self.columns, stored, u32::from_le_bytes);
            if offsets.len() != rows + 1 {
                return Err("a row offset more than rows");
            }
            sparse(Csr::new(cols, offsets, columns, values)?)
        };
        Ok(matrix.with_cols(self.cols).0)
    }
}

/// A sum of the bytes that a change of any of them changes.
fn checksum(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    // Four sums at a time, so that no one waits for the other.
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut sums = [1u64, 2, 3, 4];
    for block in blocks {
        for (sum, word) in sums.iter_mut().zip(block.as_chunks::<8>().0) {
            *sum = mix(*sum, u64::from_le_bytes(*word));
        }
    }
    let start = sums.iter().fold(bytes.len() as u64, |all, sum| mix(all, *sum));
    rest.iter().fold(start, |sum, &byte| mix(sum, u64::from(byte)))
}

/// Fills `bytes` from `offset` of the file on.
fn read_exactly(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    if read_at(file, bytes, offset)? == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
