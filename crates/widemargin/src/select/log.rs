//! Finished points as lines of JSON, so that a search that was stopped can go on.

use super::{Search, Trial};
use crate::data::Rows;
use crate::train::{Examples, TrainOptions};
use crate::{Error, Result, with_rows};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The first line of a log.
#[derive(Serialize, Deserialize)]
struct Head {
    widemargin_search: String,
}

/// A log of finished points: one line of JSON each, after a line that says which search they belong to.
pub struct Log {
    path: PathBuf,
    file: Mutex<File>,
}

impl Log {
    /// Opens a log, or begins one; hands back the points it holds.
    ///
    /// A line cut short at the end, as a crash leaves it, is dropped. A log of another search (other data, machine,
    /// folds, …) is an error: its points mean something else.
    pub fn open(path: impl AsRef<Path>, fingerprint: &str) -> Result<(Self, Vec<Trial>)> {
        let path = path.as_ref().to_path_buf();
        let failed = |source| Error::Io { path: path.clone(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let trials = if whole == 0 && !"{\"widemargin_search\"".starts_with(text.get(..20).unwrap_or(&text)) {
            return Err(foreign(&path));
        } else if whole == 0 {
            let head = Head { widemargin_search: fingerprint.into() };
            file.set_len(0).and_then(|()| file.rewind()).map_err(failed)?;
            file.write_all(line(&head, &path)?.as_bytes()).map_err(failed)?;
            Vec::new()
        } else {
            let trials = read(&text[..whole], fingerprint, &path)?;
            file.set_len(whole as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
            trials
        };
        Ok((Self { path, file: Mutex::new(file) }, trials))
    }

    /// Adds a finished point.
    pub fn add(&self, trial: &Trial) -> Result<()> {
        let text = line(trial, &self.path)?;
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.flush());
        written.map_err(|source| Error::Io { path: self.path.clone(), source })
    }
}

fn line(value: &impl Serialize, path: &Path) -> Result<String> {
    let text = serde_json::to_string(value);
    text.map(|text| text + "\n").map_err(|e| Error::Io { path: path.into(), source: e.into() })
}

fn foreign(path: &Path) -> Error {
    Error::Data { file: path.display().to_string(), reason: "it is not the log of a search".into() }
}

fn read(text: &str, fingerprint: &str, path: &Path) -> Result<Vec<Trial>> {
    let mut lines = text.lines().enumerate();
    let head: Option<Head> = lines.next().and_then(|(_, line)| serde_json::from_str(line).ok());
    let head = head.ok_or_else(|| foreign(path))?;
    if head.widemargin_search != fingerprint {
        let reason = format!("it is the log of another search ({}); this one is {fingerprint}", head.widemargin_search);
        return Err(Error::Data { file: path.display().to_string(), reason });
    }
    let trial = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::Parse {
            file: path.display().to_string(),
            line: number as u64 + 1,
            column: e.column() as u64,
            found: "something else".into(),
            expected: "a finished point of a search".into(),
        })
    };
    lines.map(trial).collect()
}

/// FNV-1a, which stays the same for ever.
struct Hash(u64);

impl Hash {
    fn add(&mut self, bits: u64) {
        for byte in bits.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// See [`super::fingerprint`].
pub(super) fn fingerprint(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: &Search<'_>,
) -> String {
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    for i in 0..data.rows.rows() {
        with_rows!(data.rows, x => x.visit(i, |j, v| {
            hash.add(j as u64);
            hash.add(v.to_bits());
        }));
        hash.add(u64::MAX);
    }
    data.labels.codes().iter().for_each(|&code| hash.add(code.into()));
    weights.into_iter().flatten().for_each(|w| hash.add(w.to_bits()));
    let settings = (options.settings.tol, options.settings.max_iter, options.settings.seed);
    format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {settings:?}, {:?} {}x{}, {:?}, {} rows x {} features {:016x}",
        options.machine.name(),
        options.kernel,
        options.bias,
        options.scaling,
        options.class_weight,
        options.multiclass,
        options.solver,
        search.select,
        search.repeats,
        search.folds,
        search.given,
        data.rows.rows(),
        data.rows.cols(),
        hash.0
    )
}
