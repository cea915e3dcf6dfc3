//! Where bytes come from: files by ranges, streams in turn, memory; and how they are cut into blocks of whole lines.

use super::Compression;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::Arc;

/// Bytes of text in a block: large enough to make its overhead vanish, small enough to stay in the cache.
const BLOCK: usize = 1 << 19;

/// The longest line or quoted field; a stream without line ends must not fill the memory.
const LONGEST: usize = 1 << 30;

type Reader<'i> = Box<dyn Read + Send + 'i>;

/// An open input, its first bytes not yet looked at.
pub(super) enum Input<'i> {
    /// A regular file, and how its ending says it is packed.
    File(File, Option<Compression>),
    /// Standard input, a pipe, a device.
    Stream(Reader<'i>, Option<Compression>),
    /// Bytes in memory.
    Memory(&'i [u8]),
}

/// What the first bytes show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Magic {
    Packed(Compression),
    Parquet,
    Other,
}

impl Magic {
    fn of(head: &[u8]) -> Self {
        match Compression::of_magic(head) {
            Some(compression) => Self::Packed(compression),
            None if head.starts_with(b"PAR1") => Self::Parquet,
            None => Self::Other,
        }
    }
}

/// An open input of known packing.
pub(super) enum Sniffed<'i> {
    /// A plain regular file; whether it starts as a Parquet file does.
    File(File, bool),
    /// Anything else, unpacked on the way; whether it starts as a Parquet file does.
    Stream(Reader<'i>, bool),
}

impl<'i> Input<'i> {
    /// Opens a file, or standard input for `-`.
    pub(super) fn open(path: &str, compression: Option<Compression>) -> io::Result<Self> {
        if path == "-" {
            return Ok(Self::Stream(Box::new(io::stdin()), None));
        }
        let file = File::open(path)?;
        // Only a regular file can be read by ranges and says how long it is (files in /proc say 0).
        if cfg!(any(unix, windows)) && file.metadata().is_ok_and(|m| m.is_file() && m.len() > 0) {
            Ok(Self::File(file, compression))
        } else {
            Ok(Self::Stream(Box::new(file), compression))
        }
    }

    /// Looks at the first bytes, and unpacks what is packed.
    pub(super) fn sniff(self) -> io::Result<Sniffed<'i>> {
        let (mut reader, compression): (Reader<'i>, _) = match self {
            Self::File(file, compression) => {
                let mut head = [0; 6];
                let n = read_at(&file, &mut head, 0)?;
                match (compression, Magic::of(&head[..n])) {
                    (None, Magic::Parquet) => return Ok(Sniffed::File(file, true)),
                    (None, Magic::Other) => return Ok(Sniffed::File(file, false)),
                    (compression, _) => (Box::new(file), compression),
                }
            }
            Self::Stream(reader, compression) => (reader, compression),
            Self::Memory(bytes) => (Box::new(bytes), None),
        };
        let mut head = Vec::with_capacity(6);
        reader.by_ref().take(6).read_to_end(&mut head)?;
        let magic = Magic::of(&head);
        let whole = Cursor::new(head).chain(reader);
        Ok(match (compression, magic) {
            (Some(compression), _) | (None, Magic::Packed(compression)) => {
                Sniffed::Stream(unpack(whole, compression)?, false)
            }
            (None, magic) => Sniffed::Stream(Box::new(whole), magic == Magic::Parquet),
        })
    }
}

fn unpack<'i>(reader: impl Read + Send + 'i, compression: Compression) -> io::Result<Reader<'i>> {
    let reader: Reader<'i> = Box::new(reader);
    match compression {
        #[cfg(feature = "gzip")]
        Compression::Gzip => Ok(Box::new(flate2::read::MultiGzDecoder::new(reader))),
        #[cfg(feature = "zstd")]
        Compression::Zstd => Ok(Box::new(zstd::stream::read::Decoder::new(reader)?)),
        #[cfg(feature = "xz")]
        Compression::Xz => Ok(Box::new(liblzma::read::XzDecoder::new_multi_decoder(reader))),
        #[cfg(not(all(feature = "gzip", feature = "xz", feature = "zstd")))]
        off => {
            drop(reader);
            Err(off.is_off())
        }
    }
}

impl<'i> Sniffed<'i> {
    pub(super) fn is_parquet(&self) -> bool {
        matches!(self, Self::File(_, true) | Self::Stream(_, true))
    }

    /// Blocks of whole lines; of a plain file, each is read where it is parsed.
    pub(super) fn by_ranges(self) -> io::Result<Source<'i>> {
        match self {
            Self::File(file, _) => Source::ranges(file, BLOCK),
            Self::Stream(reader, _) => Ok(Source::stream(reader, BLOCK, LONGEST, last_line_end)),
        }
    }

    /// Blocks of whole records, whose quoted fields may hold line ends.
    pub(super) fn by_records(self) -> Source<'i> {
        let reader: Reader<'i> = match self {
            Self::File(file, _) => Box::new(file),
            Self::Stream(reader, _) => reader,
        };
        Source::stream(reader, BLOCK, LONGEST, last_record_end)
    }
}

/// The end of the last line in `text`.
fn last_line_end(text: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', text).map(|at| at + 1)
}

/// The end of the last line in `text` that does not end inside quotes.
fn last_record_end(text: &[u8]) -> Option<usize> {
    let mut end = last_line_end(text)?;
    let mut quotes = memchr::memchr_iter(b'"', &text[..end]).count();
    while quotes % 2 == 1 {
        let shorter = last_line_end(&text[..end - 1])?;
        quotes -= memchr::memchr_iter(b'"', &text[shorter..end]).count();
        end = shorter;
    }
    Some(end)
}

/// Cuts an input into blocks.
pub(super) struct Source<'i> {
    kind: Kind<'i>,
    block: usize,
    /// Number of the next block.
    number: usize,
}

enum Kind<'i> {
    Ranges { file: Arc<File>, size: u64 },
    Stream(Stream<'i>),
}

/// What comes in turn.
struct Stream<'i> {
    reader: Reader<'i>,
    cut: fn(&[u8]) -> Option<usize>,
    /// The broken line at the end of the last block.
    carry: Vec<u8>,
    longest: usize,
    ended: bool,
}

/// Some whole lines of the input.
pub(super) struct Block {
    bytes: Vec<u8>,
    number: usize,
    /// Of a plain file: the file, and the size of its blocks.
    range: Option<(Arc<File>, usize)>,
}

impl<'i> Source<'i> {
    fn ranges(file: File, block: usize) -> io::Result<Self> {
        let size = file.metadata()?.len();
        Ok(Self { kind: Kind::Ranges { file: Arc::new(file), size }, block, number: 0 })
    }

    fn stream(reader: Reader<'i>, block: usize, longest: usize, cut: fn(&[u8]) -> Option<usize>) -> Self {
        let stream = Stream { reader, cut, carry: Vec::new(), longest, ended: false };
        Self { kind: Kind::Stream(stream), block, number: 0 }
    }

    /// The next blocks, enough to keep all threads busy; none at the end. Takes the buffers of old blocks back.
    pub(super) fn next_batch(&mut self, mut spare: Vec<Block>) -> io::Result<Vec<Block>> {
        let most = 2 * rayon::current_num_threads();
        let mut batch = Vec::with_capacity(most);
        while batch.len() < most {
            let bytes = spare.pop().map(|b| b.bytes).unwrap_or_default();
            match self.next_block(bytes)? {
                Some(block) => batch.push(block),
                None => break,
            }
        }
        Ok(batch)
    }

    fn next_block(&mut self, mut bytes: Vec<u8>) -> io::Result<Option<Block>> {
        let range = match &mut self.kind {
            Kind::Ranges { file, size } => {
                if (self.number as u64).saturating_mul(self.block as u64) >= *size {
                    return Ok(None);
                }
                Some((Arc::clone(file), self.block))
            }
            Kind::Stream(stream) => {
                stream.fill(&mut bytes, self.block)?;
                if bytes.is_empty() {
                    return Ok(None);
                }
                None
            }
        };
        self.number += 1;
        Ok(Some(Block { bytes, number: self.number - 1, range }))
    }
}

impl Stream<'_> {
    /// Reads at least one whole line, if there is any, and about `block` bytes; the last broken line is carried over.
    fn fill(&mut self, bytes: &mut Vec<u8>, block: usize) -> io::Result<()> {
        bytes.clear();
        bytes.append(&mut self.carry);
        let mut goal = block;
        while !self.ended {
            let want = goal.saturating_sub(bytes.len());
            let got = self.reader.by_ref().take(want as u64).read_to_end(bytes)?;
            self.ended = got < want;
            if let (false, Some(end)) = (self.ended, (self.cut)(bytes)) {
                self.carry.extend_from_slice(&bytes[end..]);
                bytes.truncate(end);
                return Ok(());
            }
            if bytes.len() > self.longest {
                return Err(too_long(self.longest));
            }
            goal = 2 * bytes.len().max(block / 2);
        }
        Ok(())
    }
}

fn too_long(longest: usize) -> io::Error {
    let what = format!("a line or quoted field is longer than {longest} bytes");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Block {
    /// The block's number and its lines, without a byte order mark.
    pub(super) fn text(&mut self) -> io::Result<(usize, &[u8])> {
        let range = match &self.range {
            Some((file, block)) => read_lines(file, self.number as u64 * *block as u64, *block, &mut self.bytes)?,
            None => 0..self.bytes.len(),
        };
        let text = &self.bytes[range];
        let text = if self.number == 0 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        Ok((self.number, text))
    }
}

/// Reads the lines that start in the `block` bytes from `from`, and says where in `bytes` they stand.
fn read_lines(file: &File, from: u64, block: usize, bytes: &mut Vec<u8>) -> io::Result<std::ops::Range<usize>> {
    // The byte before tells whether a line starts right at `from`.
    let before = usize::from(from > 0);
    let from = from - before as u64;
    let most = block + before;
    bytes.resize(most, 0);
    let mut size = read_at(file, bytes, from)?;
    let start = match before {
        0 => 0,
        _ => match memchr::memchr(b'\n', &bytes[..size.min(most - 1)]) {
            Some(at) => at + 1,
            None => return Ok(0..0),
        },
    };
    // A line that starts here and goes on beyond is read to its end: the search begins at the block's last byte.
    let mut seen = most - 1;
    loop {
        if let Some(at) = bytes[..size].get(seen..).and_then(|more| memchr::memchr(b'\n', more)) {
            return Ok(start..seen + at + 1);
        }
        if size < bytes.len() {
            return Ok(start.min(size)..size);
        }
        seen = size;
        // Twice as much each time, so that a long line is not searched in tiny steps.
        let more = (size - most).max(4096);
        if size > LONGEST {
            return Err(too_long(LONGEST));
        }
        bytes.try_reserve(more).map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(size + more, 0);
        size += read_at(file, &mut bytes[size..], from + size as u64)?;
    }
}

/// Fills `bytes` from `offset` of the file on, less at its end.
#[cfg(unix)]
pub(in crate::data) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    fill_at(bytes, offset, |bytes, offset| file.read_at(bytes, offset))
}

/// Fills `bytes` from `offset` of the file on, less at its end.
#[cfg(windows)]
pub(in crate::data) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    use std::os::windows::fs::FileExt;
    fill_at(bytes, offset, |bytes, offset| file.seek_read(bytes, offset))
}

/// Elsewhere files are read as streams.
#[cfg(not(any(unix, windows)))]
pub(in crate::data) fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Repeats a read that may come short until `bytes` is full or the file ends.
#[cfg(any(unix, windows))]
fn fill_at(bytes: &mut [u8], offset: u64, read: impl Fn(&mut [u8], u64) -> io::Result<usize>) -> io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match read(&mut bytes[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(mut source: Source<'_>) -> Vec<Vec<u8>> {
        let mut texts = Vec::new();
        let mut spare = Vec::new();
        loop {
            let mut batch = source.next_batch(spare).unwrap();
            if batch.is_empty() {
                return texts;
            }
            texts.extend(batch.iter_mut().map(|b| b.text().unwrap().1.to_vec()));
            spare = batch;
        }
    }

    fn whole_lines(texts: &[Vec<u8>], text: &[u8]) {
        assert_eq!(texts.concat(), text);
        let filled: Vec<_> = texts.iter().filter(|t| !t.is_empty()).collect();
        for t in &filled[..filled.len().saturating_sub(1)] {
            assert_eq!(t.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn blocks_join_to_the_text_whatever_their_size() {
        for text in ["", "\n", "a", "a\n", "a\nbb\n\n\nccccccccccc\nd", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\nb\n"] {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            for block in 1..20 {
                whole_lines(&all(Source::ranges(file.try_clone().unwrap(), block).unwrap()), text.as_bytes());
                let reader = Box::new(text.as_bytes());
                whole_lines(&all(Source::stream(reader, block, 100, last_line_end)), text.as_bytes());
            }
        }
    }

    #[test]
    fn records_are_not_cut_inside_quotes() {
        let text = b"a,\"x\ny\n\"\nb,c\n\"\n\"\n";
        for block in 1..20 {
            let texts = all(Source::stream(Box::new(&text[..]), block, 100, last_record_end));
            assert_eq!(texts.concat(), text);
            assert!(texts.iter().all(|t| t.iter().filter(|&&b| b == b'"').count() % 2 == 0), "{block} {texts:?}");
        }
    }

    #[cfg(not(feature = "xz"))]
    #[test]
    fn what_is_missing_is_named() {
        let packed = unpack(&b""[..], Compression::Xz).map(drop).unwrap_err();
        assert!(packed.to_string().contains("feature `xz` is off"), "{packed}");
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut source = Source::stream(Box::new(io::repeat(b'a')), 16, 1000, last_line_end);
        assert!(source.next_batch(Vec::new()).is_err());
    }
}
