//! Results of studies as lines of JSON, kept as they come: a study that was stopped goes on where it was.

use crate::compare::Protocol;
use crate::contestant::Contestant;
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use widemargin::Result;
use widemargin::journal::{Hash, Journal};

const KIND: &str = "a file of results of studies";

#[derive(Serialize, Deserialize)]
struct Head {
    widemargin_study: u32,
}

/// One line.
#[derive(Serialize, Deserialize)]
struct Line {
    /// Data, contestant and split in one number: what a result depends on.
    key: String,
    data: String,
    machine: String,
    repeat: usize,
    #[serde(flatten)]
    trial: Trial,
}

/// A file of results. It may hold those of many studies: whoever asks for the same machine with the same options on the
/// same split of the same data finds it there.
pub struct Record {
    journal: Journal,
    known: HashMap<String, Trial>,
}

impl Record {
    /// Opens a file of results, or begins one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let head = Head { widemargin_study: 1 };
        let (journal, lines) = Journal::open(path.as_ref(), "{\"widemargin_study\"", KIND, &head)?;
        let known = match lines.head::<Head>(KIND)? {
            None => HashMap::new(),
            Some(_) => {
                let lines: Vec<Line> = lines.rest("a result of a study")?;
                lines.into_iter().map(|line| (line.key, line.trial)).collect()
            }
        };
        Ok(Self { journal, known })
    }

    /// The result of this key, if it is there.
    pub(crate) fn find(&self, key: &str) -> Option<&Trial> {
        self.known.get(key)
    }

    /// Adds a result.
    pub(crate) fn add(&self, key: String, data: &str, machine: &str, repeat: usize, trial: &Trial) -> Result<()> {
        let (data, machine, trial) = (data.into(), machine.into(), trial.clone());
        self.journal.add(&Line { key, data, machine, repeat, trial })
    }
}

/// What identifies a result.
pub(crate) fn key(data: u64, contestant: &Contestant, protocol: &Protocol, repeat: usize) -> String {
    let mut hash = Hash::default();
    hash.bytes(contestant.identity().as_bytes());
    hash.add(protocol.train.to_bits());
    hash.add(protocol.seed);
    format!("{data:016x}-{:016x}-{repeat}", hash.value())
}
