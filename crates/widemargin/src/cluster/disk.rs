//! Rows in a file of blocks that is larger than memory: each question is one pass over the file.

use super::{PartMemory, PartRows, Question, RowParts, Whole, train};
use crate::control::Control;
use crate::data::{BlockFile, Labels, Matrix};
use crate::linalg::axpy;
use crate::machine::Outcome;
use crate::model::Model;
use crate::train::{TrainOptions, class_weights};
use crate::{Error, Remedy, Result};

/// Bytes a row takes if it remembers everything from one pass to the next.
const REMEMBERED: u64 = 56;
/// Blocks that are in memory while a pass goes on: one is worked on, one is read, each with what is made of it.
const IN_FLIGHT: u64 = 8;

/// What is told of a pass: bytes read so far and in all, and the number of the pass.
pub type PassWatch<'a> = &'a (dyn Fn(u64, u64, usize) + Sync);

/// Trains a linear machine on a file of blocks within [`crate::solver::Settings::memory`] bytes.
///
/// # Errors
/// [`Error::Memory`] if that is not enough for a pass; those of reading a block; those of [`train`].
pub fn train_file(
    file: &BlockFile,
    options: &TrainOptions,
    watch: Option<PassWatch<'_>>,
    control: Control<'_>,
) -> Result<(Model, Outcome)> {
    let unlabelled =
        || Error::Data { file: file.name().into(), reason: "its rows have no labels to learn from".into() };
    let names = file.labels().ok_or_else(unlabelled)?.to_vec();
    let counts = file.counts();
    let mut parts = DiskParts::new(file, options.settings.memory, watch, control)?;
    let in_class = parts.count_classes(names.len())?;
    let every: Vec<u32> = (0..names.len() as u32).collect();
    let classes = Labels::coded(names.clone(), every).ok_or_else(unlabelled)?;
    parts.by_class = class_weights(&classes, &in_class, &options.class_weight)?;
    if let Some(code) = parts.by_class.iter().position(|weight| *weight == 0.0) {
        let expected = "weights > 0 where rows are read from the disk";
        return Err(Error::parameter("class_weight", format!("{}=0", names[code]), expected));
    }
    let whole = Whole { labels: names, features: counts.features, rows: counts.rows };
    let (mut model, mut outcome) = train(&mut parts, whole, options, control)?;
    let pass = format!("{}, {} passes over the file", outcome.solver, parts.passes);
    outcome.solver.clone_from(&pass);
    model.certificate.solver = pass;
    outcome.extras.push(("passes", parts.passes as f64));
    Ok((model, outcome))
}

struct DiskParts<'a> {
    file: &'a BlockFile,
    by_class: Vec<f64>,
    memories: Vec<PartMemory>,
    /// Whether there is room to remember margins and the like; if not, only multipliers are kept.
    remember: bool,
    /// The first blocks, as many as fit.
    kept: Vec<(Matrix<'static>, Vec<u32>)>,
    room: u64,
    passes: usize,
    watch: Option<PassWatch<'a>>,
    control: Control<'a>,
}

impl<'a> DiskParts<'a> {
    fn new(file: &'a BlockFile, memory: u64, watch: Option<PassWatch<'a>>, control: Control<'a>) -> Result<Self> {
        let largest = (0..file.len()).map(|number| file.bytes(number)).max().unwrap_or(0);
        let rows = file.counts().rows as u64;
        // Multipliers and the like of a row: what cannot be left out.
        let needed = IN_FLIGHT * largest + 8 * rows;
        let Some(room) = memory.checked_sub(needed) else {
            let what = format!("a pass over {}", file.name());
            return Err(Error::Memory { what, needed, budget: memory, advice: [Remedy::Raise("memory")].into() });
        };
        let remember = rows * REMEMBERED <= room / 2;
        let room = if remember { room - rows * REMEMBERED } else { room };
        Ok(Self {
            file,
            by_class: Vec::new(),
            memories: vec![PartMemory::default(); file.len()],
            remember,
            kept: Vec::new(),
            room,
            passes: 0,
            watch,
            control,
        })
    }

    /// Goes through all blocks in order: the next one is read while one is worked on.
    fn pass(
        &mut self,
        mut work: impl FnMut(&mut PartMemory, &Matrix<'_>, &[u32], &[f64]) -> Result<()> + Send,
    ) -> Result<()> {
        self.passes += 1;
        let (blocks, total) = (self.file.len(), (0..self.file.len()).map(|n| self.file.bytes(n)).sum());
        let (file, kept) = (self.file, std::mem::take(&mut self.kept));
        let read =
            |number: usize| if number < kept.len() || number >= blocks { None } else { Some(file.block(number)) };
        let (mut keep, mut done, mut room) = (Vec::new(), 0, self.room);
        let mut ready = read(0).transpose()?;
        let mut result = Ok(());
        for number in 0..blocks {
            self.control.check()?;
            let (rows, codes) = match &ready {
                Some((rows, codes)) => (rows, codes),
                None => (&kept[number].0, &kept[number].1),
            };
            let (memory, by_class) = (&mut self.memories[number], &self.by_class);
            let answer = || {
                let weights: Vec<f64> =
                    codes.iter().map(|&c| by_class.get(c as usize).copied().unwrap_or(1.0)).collect();
                work(memory, rows, codes, &weights)
            };
            let (next, worked) = rayon::join(|| read(number + 1).transpose(), answer);
            result = worked;
            if result.is_err() {
                break;
            }
            if !self.remember {
                self.memories[number].keep_multipliers();
            }
            done += self.file.bytes(number);
            if let Some(watch) = self.watch {
                watch(done, total, self.passes);
            }
            // What there is room for need not be read again.
            let size = self.file.bytes(number);
            if let Some(block) = std::mem::replace(&mut ready, next?)
                && number == kept.len() + keep.len()
                && size <= room
            {
                room -= size;
                keep.push(block);
            }
        }
        self.kept = kept;
        self.kept.extend(keep);
        self.room = room;
        result
    }

    /// The number of rows of each class.
    fn count_classes(&mut self, classes: usize) -> Result<Vec<f64>> {
        let mut counts = vec![0.0; classes];
        self.pass(|_, _, codes, _| {
            codes.iter().for_each(|&code| counts[code as usize] += 1.0);
            Ok(())
        })?;
        Ok(counts)
    }
}

impl RowParts for DiskParts<'_> {
    fn sum(&mut self, question: &Question) -> Result<Vec<f64>> {
        let mut total: Vec<f64> = Vec::new();
        self.pass(|memory, rows, codes, weights| {
            let sums = memory.answer(PartRows { rows, codes, weights }, question)?;
            if total.is_empty() {
                total = sums;
            } else {
                axpy(1.0, &sums, &mut total);
            }
            Ok(())
        })?;
        Ok(total)
    }
}
