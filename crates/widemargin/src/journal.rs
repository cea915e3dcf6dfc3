//! Files of lines of JSON that only grow: what is finished is kept, however the program ends.

use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file of lines of JSON, open for more of them. Several programs may keep one journal: each reads and writes it
/// alone, under the system's lock of the file, and waits for the others.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

/// The whole lines of a journal, with their numbers from 1.
pub struct Lines {
    path: PathBuf,
    text: String,
}

impl Journal {
    /// Opens a journal, or begins one with the line `head`; its first line starts with `marker`, else it is something
    /// else (`kind` in words is what it should be). A line cut short at the end, as a crash leaves it, is dropped.
    pub fn open(path: &Path, marker: &str, kind: &str, head: &impl Serialize) -> Result<(Self, Lines)> {
        let failed = |source| Error::Io { path: path.into(), source };
        let file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        // A device may be without end.
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(foreign(path, kind));
        }
        let bytes = locked(&file, |mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            let begins = bytes.len().min(marker.len());
            if bytes[..begins] != marker.as_bytes()[..begins] {
                return Ok(None);
            }
            bytes.truncate(end_of_lines(&bytes));
            file.set_len(bytes.len() as u64)?;
            if bytes.is_empty() {
                add_line(file, head)?;
            }
            Ok(Some(bytes))
        });
        let bytes = bytes.map_err(failed)?.ok_or_else(|| foreign(path, kind))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::data(path.display().to_string(), format!("it is damaged: {kind} is text in UTF-8")))?;
        Ok((Self { path: path.into(), file: Mutex::new(file) }, Lines { path: path.into(), text }))
    }

    /// Adds a line.
    pub fn add(&self, value: &impl Serialize) -> Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let added = locked(&file, |file| {
            drop_broken_line(file)?;
            add_line(file, value)
        });
        added.map_err(Error::io(&self.path))
    }
}

/// Runs `work` while no other program has the file. Where the system knows no locks there is no waiting either.
fn locked<T>(file: &File, work: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
    let held = match file.lock() {
        Err(e) if e.kind() == io::ErrorKind::Unsupported => false,
        lock => lock.map(|()| true)?,
    };
    let result = work(file);
    if held {
        file.unlock()?;
    }
    result
}

/// Where the last whole line ends.
fn end_of_lines(bytes: &[u8]) -> usize {
    memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1)
}

/// Adds a line, or nothing at all: of a disk that is full no half line is left.
fn add_line(mut file: &File, value: &impl Serialize) -> io::Result<()> {
    let before = file.metadata()?.len();
    let text = serde_json::to_string(value)? + "\n";
    let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
    if written.is_err() {
        // The error under way matters more than one of tidying up.
        let _ = file.set_len(before);
    }
    written
}

/// Takes away what another program left behind the last whole line when it was killed.
fn drop_broken_line(mut file: &File) -> io::Result<()> {
    let (size, mut last) = (file.metadata()?.len(), [b'\n']);
    if size > 0 {
        file.seek(SeekFrom::Start(size - 1))?;
        file.read_exact(&mut last)?;
    }
    if last != *b"\n" {
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        file.set_len(end_of_lines(&bytes) as u64)?;
    }
    Ok(())
}

impl Lines {
    /// The first line; `None` if the journal is new.
    pub fn head<T: DeserializeOwned>(&self, kind: &str) -> Result<Option<T>> {
        let head = |line| serde_json::from_str(line).map_err(|_| foreign(&self.path, kind));
        self.text.lines().next().map(head).transpose()
    }

    /// All lines after the first; `expected` says what they should be.
    pub fn rest<T: DeserializeOwned>(&self, expected: &str) -> Result<Vec<T>> {
        let value = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| Error::Parse {
                file: self.path.display().to_string(),
                line: number as u64 + 1,
                column: e.column() as u64,
                found: "something else".into(),
                expected: expected.into(),
            })
        };
        self.text.lines().enumerate().skip(1).map(value).collect()
    }
}

fn foreign(path: &Path, kind: &str) -> Error {
    Error::data(path.display().to_string(), format!("it is not {kind}"))
}

/// FNV-1a, which stays the same for ever.
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds eight bytes.
    pub fn add(&mut self, bits: u64) {
        self.bytes(&bits.to_le_bytes());
    }

    /// What was added, in one number.
    pub fn value(&self) -> u64 {
        self.0
    }

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKER: &str = "{\"head\"";

    fn open(path: &Path) -> Result<(Journal, Vec<String>)> {
        let (journal, lines) = Journal::open(path, MARKER, "a journal", &serde_json::json!({"head": "é"}))?;
        lines.head::<serde_json::Value>("a journal")?;
        Ok((journal, lines.rest("a word")?))
    }

    #[test]
    fn a_journal_cut_at_any_byte_keeps_its_whole_lines() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let words = ["ä", "中文", "🙂", "plain"];
        let (journal, known) = open(&path).unwrap();
        assert!(known.is_empty());
        words.iter().for_each(|word| journal.add(word).unwrap());
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let (journal, known) = open(&path).unwrap();
            let lines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(known, words[..lines.saturating_sub(1)], "cut at {cut}");
            words[known.len()..].iter().for_each(|word| journal.add(word).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
    }

    #[test]
    fn several_keep_one_journal_and_nothing_is_lost() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let write = |writer: usize| {
            for number in 0..50 {
                // Opened anew each time, as other programs would.
                let (journal, _) = open(&path).unwrap();
                journal.add(&format!("{writer} {number} {}", "é".repeat(100 * number))).unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|writer| drop(scope.spawn(move || write(writer)))));
        let (_, known) = open(&path).unwrap();
        assert_eq!(known.len(), 200);
        let distinct: std::collections::HashSet<&String> = known.iter().collect();
        assert_eq!(distinct.len(), 200);
    }

    #[test]
    fn half_a_line_of_another_program_does_not_spoil_the_next() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal");
        let (journal, _) = open(&path).unwrap();
        journal.add(&"one").unwrap();
        let mut other = OpenOptions::new().append(true).open(&path).unwrap();
        other.write_all("\"twö".as_bytes().strip_suffix(&[0xb6]).unwrap()).unwrap();
        journal.add(&"three").unwrap();
        assert_eq!(open(&path).unwrap().1, ["one", "three"]);
    }
}
