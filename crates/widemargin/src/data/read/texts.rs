//! Fields that are no numbers: kept apart by column, each text once, until all rows are read and a column's kind is known.

use super::build::Chunk;
use std::collections::HashMap;

/// Different texts that are told apart in a column; what comes later is another. A hundred times as many as a column may have
/// categories, and little enough for the memory of many columns.
pub(super) const MOST_TEXTS: usize = 10_000;

/// The code of a text that came too late.
pub(super) const ANOTHER: u32 = u32::MAX;

/// A text of a column.
#[derive(Debug)]
pub(super) struct SeenText {
    pub(super) text: String,
    pub(super) rows: u64,
    /// The line it first stood in, from 1.
    pub(super) line: u64,
}

/// The fields of a column that are no numbers.
#[derive(Debug, Default)]
pub(super) struct TextColumn {
    pub(super) seen: Vec<SeenText>,
    known: HashMap<String, u32>,
    /// Row and position in `seen`, or [`ANOTHER`].
    pub(super) cells: Vec<(u32, u32)>,
    /// The first line of a text that came too late.
    pub(super) late: Option<u64>,
}

impl TextColumn {
    /// A column in which these texts are told apart however many others come before.
    pub(super) fn knowing(texts: &[String]) -> Self {
        let seen = texts.iter().map(|text| SeenText { text: text.clone(), rows: 0, line: 0 }).collect();
        Self { seen, known: texts.iter().cloned().zip(0..).collect(), ..Self::default() }
    }

    pub(super) fn add(&mut self, row: u32, text: &str, line: u64) {
        let code = match self.known.get(text) {
            Some(&code) => code,
            None if self.seen.len() >= MOST_TEXTS => {
                self.late.get_or_insert(line);
                self.cells.push((row, ANOTHER));
                return;
            }
            None => {
                self.known.insert(text.into(), self.seen.len() as u32);
                self.seen.push(SeenText { text: text.into(), rows: 0, line });
                self.seen.len() as u32 - 1
            }
        };
        let seen = &mut self.seen[code as usize];
        if seen.rows == 0 {
            seen.line = line;
        }
        seen.rows += 1;
        self.cells.push((row, code));
    }
}

/// A field of a chunk that is no number.
pub(super) struct TextCell {
    /// Row and line in the chunk, from 0.
    pub(super) row: u32,
    pub(super) line: u32,
    pub(super) column: u32,
    /// Position among the chunk's texts.
    pub(super) text: u32,
}

/// Gives each text of a chunk a number.
#[derive(Default)]
pub(super) struct ChunkTexts {
    known: HashMap<Vec<u8>, u32>,
}

impl ChunkTexts {
    /// Adds a field of the row at hand; what is not UTF-8 in it is replaced.
    pub(super) fn push(&mut self, chunk: &mut Chunk, column: u32, line: u64, text: &[u8]) {
        let code = match self.known.get(text) {
            Some(&code) => code,
            None => {
                chunk.texts.push(String::from_utf8_lossy(text).into_owned());
                let code = chunk.texts.len() as u32 - 1;
                self.known.insert(text.into(), code);
                code
            }
        };
        chunk.cells.push(TextCell { row: chunk.ends.len() as u32, line: line as u32, column, text: code });
    }
}
