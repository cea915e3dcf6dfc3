//! A look over the metadata of a Parquet file before its reader takes them at their word: a length beyond what follows
//! would make it ask for any amount of memory, which ends the program.

use bytes::Bytes;
use parquet::file::reader::ChunkReader;

/// Where the metadata end: their length in four bytes, and the mark of the format.
const TAIL: usize = 8;
/// Structures inside structures: those of the format nest less than ten deep.
const DEEPEST: usize = 32;
/// In the metadata, the list of the schema's elements; in each, the number of its children.
const SCHEMA: i16 = 2;
const CHILDREN: i16 = 5;

/// Whether every length in the metadata is within them. A file without metadata is left to the reader, which says so.
pub(super) fn is_sound(file: &impl ChunkReader) -> bool {
    metadata(file).is_none_or(|metadata| CompactReader { rest: &metadata }.structure(&[], DEEPEST).is_some())
}

fn metadata(file: &impl ChunkReader) -> Option<Bytes> {
    let size = file.len();
    let tail = file.get_bytes(size.checked_sub(TAIL as u64)?, TAIL).ok()?;
    let length = u32::from_le_bytes(tail.get(..4)?.try_into().ok()?);
    file.get_bytes(size.checked_sub(TAIL as u64 + u64::from(length))?, length as usize).ok()
}

/// What is left of bytes in Thrift's compact protocol. Every step is `None` where they end too early.
struct CompactReader<'b> {
    rest: &'b [u8],
}

impl CompactReader<'_> {
    fn skip(&mut self, length: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(length).ok()?..)?;
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// A number with its sign in the lowest bit.
    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Fields up to the one that says stop; `path` are the fields above.
    fn structure(&mut self, path: &[i16], depth: usize) -> Option<()> {
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.signed()?).ok()?,
                step => field.checked_add(i16::from(step))?,
            };
            // A truth value is in the head itself.
            if !matches!(head & 0xf, 1 | 2) {
                self.value(head & 0xf, &[path, &[field]].concat(), depth)?;
            }
        }
    }

    fn value(&mut self, kind: u8, path: &[i16], depth: usize) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        match kind {
            1..=3 => self.skip(1),
            4..=6 => {
                let number = self.signed()?;
                // No element has more children than there are bytes.
                let is_sound = path != [SCHEMA, CHILDREN] || (0..=self.rest.len() as i64).contains(&number);
                is_sound.then_some(())
            }
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let head = self.byte()?;
                let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
                self.values(count, &[head & 0xf], path, deeper)
            }
            11 => match self.number()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    self.values(count, &[kinds >> 4, kinds & 0xf], path, deeper)
                }
            },
            12 => self.structure(path, deeper),
            13 => self.skip(16),
            _ => None,
        }
    }

    /// So many values, or pairs of them; each takes a byte at least.
    fn values(&mut self, count: u64, kinds: &[u8], path: &[i16], depth: usize) -> Option<()> {
        if count > self.rest.len() as u64 {
            return None;
        }
        (0..count).try_for_each(|_| kinds.iter().try_for_each(|&kind| self.value(kind, path, depth)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(metadata: &[u8]) -> bool {
        let length = u32::try_from(metadata.len()).unwrap().to_le_bytes();
        is_sound(&Bytes::from([b"PAR1", metadata, &length, b"PAR1"].concat()))
    }

    #[test]
    fn lengths_beyond_the_metadata_are_found() {
        // Version 1; a schema of one element, named `schema`, with so many children; rows; groups.
        let with_children =
            |children: &[u8]| [b"\x15\x02\x19\x1c\x48\x06schema\x15", children, b"\x00\x16\x00\x19\x0c\x00"].concat();
        assert!(sound(&with_children(b"\x00")));
        assert!(!sound(&with_children(b"\x80\x80\x80\x80\x0f")));
        assert!(!sound(&with_children(b"\x01")), "a negative number");
        // A list of 2³¹ groups; a text of 2⁴⁰ bytes; bytes that end in the middle; structures without end.
        assert!(!sound(b"\x15\x02\x29\xfc\x80\x80\x80\x80\x08\x00"));
        assert!(!sound(b"\x15\x02\x58\x80\x80\x80\x80\x80\x20x\x00"));
        assert!(!sound(&with_children(b"\x00")[..9]));
        assert!(!sound(&b"\x1c".repeat(1000)));
        assert!(is_sound(&Bytes::from_static(b"PAR1")), "left to the reader");
    }
}
