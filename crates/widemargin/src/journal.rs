//! Files of lines of JSON that only grow: what is finished is kept, however the program ends.

use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file of lines of JSON, open for more of them.
pub(crate) struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

/// The whole lines of a journal, with their numbers from 1.
pub(crate) struct Lines {
    path: PathBuf,
    text: String,
}

impl Journal {
    /// Opens a journal, or begins one; its first line starts with `marker`, else it is something else (`kind` in words
    /// is what it should be). A line cut short at the end, as a crash leaves it, is dropped.
    pub fn open(path: &Path, marker: &str, kind: &str) -> Result<(Self, Lines)> {
        let failed = |source| Error::Io { path: path.into(), source };
        // Always at the end: several programs may keep one journal.
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let begins = text.len().min(marker.len());
        if text.as_bytes()[..begins] != marker.as_bytes()[..begins] {
            return Err(foreign(path, kind));
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            text.truncate(whole);
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok((Self { path: path.into(), file: Mutex::new(file) }, Lines { path: path.into(), text }))
    }

    /// Adds a line.
    pub fn add(&self, value: &impl Serialize) -> Result<()> {
        let failed = |source| Error::Io { path: self.path.clone(), source };
        let text = serde_json::to_string(value).map_err(|e| failed(e.into()))? + "\n";
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(failed)
    }
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
    Error::Data { file: path.display().to_string(), reason: format!("it is not {kind}") }
}

/// FNV-1a, which stays the same for ever.
pub(crate) struct Hash(pub u64);

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

    /// Adds bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
