//! One-against-all, pairs, codes: any two-class machine inside.
//!
//! Each wrapper splits the classes into two parts in several ways, fits the machine on each split, and lays the score
//! functions side by side; [`Decision`] says how the columns become a class. Ties go to the lowest class everywhere.

mod combine;

use crate::control::{Control, Progress};
use crate::data::Matrix;
use crate::kernel::Kernel;
use crate::machine::{Classes, Fit, Machine, Training};
use crate::model::Decision;
use crate::model::decode::{MOST_CODED_CLASSES, code_bit, code_columns, pairs};
use crate::names::named;
use crate::solver::Settings;
use crate::{Advice, Error, Remedy, Result, memory};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a two-class machine meets more classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Multiclass {
    /// The machine takes all classes in one problem.
    Own,
    /// One against all others: `k` problems, the largest score wins.
    Ova,
    /// One against one: `k(k−1)/2` problems on the rows of two classes each, most votes win.
    Ovo,
    /// Exhaustive error-correcting codes: `2^(k−1) − 1` problems, the nearest code word wins. At most 15 classes.
    Ecoc,
}

named!(Multiclass, "multiclass", [
    Own: "own" "all classes in one problem",
    Ova: "ova" "one class against all others",
    Ovo: "ovo" "one class against one other: all pairs",
    Ecoc: "ecoc" "error-correcting codes",
]);

impl Multiclass {
    /// The `y` of each class in the problem of a score column: `±1`, or `None` for classes that are not in it. One score
    /// function a class in one problem has no signs: 1 stands for them.
    pub(crate) fn signs(self, decision: &Decision, classes: usize, column: usize) -> Vec<Option<f64>> {
        let pair = pairs(classes).nth(column);
        let sign = |class: usize| {
            let positive = match (self, decision) {
                (_, Decision::Sign) => class == 1,
                (Self::Own, _) => true,
                (Self::Ova, _) => class == column,
                (Self::Ovo, _) => {
                    let (_, high) = pair.filter(|&(low, high)| class == low || class == high)?;
                    class == high
                }
                (Self::Ecoc, _) => code_bit(classes, column, class),
            };
            Some(if positive { 1.0 } else { -1.0 })
        };
        (0..classes).map(sign).collect()
    }
}

/// Kernel problems solved at the same time, each with its part of the memory. A constant, not the number of threads:
/// how much memory a solver has decides how it computes, and results must not depend on how many threads there are.
const KERNEL_TASKS: usize = 4;

/// Fits the machine, by itself or inside a wrapper, and says how its score columns become a class.
///
/// Two classes need no wrapper; a machine for two classes asked to take more by itself is an [`Error::Conflict`].
pub fn fit(mode: Multiclass, machine: &dyn Machine, training: &Training<'_>) -> Result<(Fit, Decision)> {
    let many = machine.classes() == Classes::Many;
    check_memory(mode, training)?;
    match mode {
        _ if training.classes == 2 && !many => Ok((judged(machine, training)?, Decision::Sign)),
        Multiclass::Own if many => Ok((judged(machine, training)?, Decision::Largest)),
        Multiclass::Own => {
            let (name, classes) = (machine.name(), training.classes);
            let reason = format!("{name} takes two classes in one problem, the data has {classes}");
            let wrappers = [Multiclass::Ova, Multiclass::Ovo, Multiclass::Ecoc];
            Err(Error::conflict(reason, Advice::values("multiclass", wrappers)))
        }
        _ if training.classes == 2 => Ok((judged(machine, training)?, Decision::Largest)),
        Multiclass::Ova => wrapped(Decision::Largest, "ova", machine, training, &ova(training)),
        Multiclass::Ovo => wrapped(Decision::Pairs, "ovo", machine, training, &ovo(training)),
        Multiclass::Ecoc => wrapped(Decision::Codes, "ecoc", machine, training, &ecoc(training)?),
    }
}

/// Fits the machine and settles why it stopped.
fn judged(machine: &dyn Machine, training: &Training<'_>) -> Result<Fit> {
    let mut fit = machine.fit(training)?;
    fit.outcome.judge(training.settings.asked());
    Ok(fit)
}

/// Bytes of what is kept of a fit beside its score function and its margins, more or less.
const KEPT_OF_A_FIT: u64 = 600;

/// Refuses more score functions than memory can hold.
fn check_memory(mode: Multiclass, training: &Training<'_>) -> Result<()> {
    let (k, m) = (training.classes as u64, training.codes.len() as u64);
    let (columns, rows) = match mode {
        Multiclass::Own | Multiclass::Ova => (k, m),
        // Each row is in one problem with every other class.
        Multiclass::Ovo => (k * (k - 1) / 2, 2 * m / k.max(1)),
        // More classes are refused as such.
        Multiclass::Ecoc if training.classes > MOST_CODED_CLASSES => return Ok(()),
        Multiclass::Ecoc => (code_columns(training.classes) as u64, m),
    };
    let function = if training.kernel == Kernel::Linear { training.rows.cols() as u64 } else { m };
    let fit = match mode {
        Multiclass::Own => 0,
        _ => KEPT_OF_A_FIT.saturating_add(rows.saturating_mul(16)),
    };
    let needed = columns.saturating_mul(function.saturating_mul(8).saturating_add(fit));
    let (of, each) = if training.kernel == Kernel::Linear { ("features", function) } else { ("rows", m) };
    let what = || format!("{columns} score functions for {k} classes over {each} {of}");
    let others = [Multiclass::Own, Multiclass::Ova].into_iter().filter(|other| *other != mode);
    let mut advice = Advice::values("multiclass", others);
    advice.0.push(Remedy::Do("have fewer classes"));
    memory::check(what, needed, advice)
}

/// One two-class problem: which rows (`None`: all), and which of them are positive.
struct Split {
    rows: Option<Vec<usize>>,
    codes: Vec<u32>,
}

fn ova(training: &Training<'_>) -> Vec<Split> {
    let split = |l: usize| training.codes.iter().map(|&y| u32::from(y as usize == l)).collect();
    (0..training.classes).map(|l| Split { rows: None, codes: split(l) }).collect()
}

fn ovo(training: &Training<'_>) -> Vec<Split> {
    let mut members = vec![Vec::new(); training.classes];
    for (i, &y) in training.codes.iter().enumerate() {
        members[y as usize].push(i);
    }
    let split = |(a, b): (usize, usize)| {
        let mut rows = [members[a].as_slice(), members[b].as_slice()].concat();
        rows.sort_unstable();
        let codes = rows.iter().map(|&i| u32::from(training.codes[i] as usize == b)).collect();
        Split { rows: Some(rows), codes }
    };
    pairs(training.classes).map(split).collect()
}

fn ecoc(training: &Training<'_>) -> Result<Vec<Split>> {
    let k = training.classes;
    if k > MOST_CODED_CLASSES {
        return Err(Error::conflict(
            format!(
                "ecoc has 2^(k-1) - 1 problems; for {k} classes that is too many (at most {MOST_CODED_CLASSES} classes)"
            ),
            Advice::values("multiclass", [Multiclass::Ova, Multiclass::Ovo]),
        ));
    }
    let split = |c: usize| training.codes.iter().map(|&y| u32::from(code_bit(k, c, y as usize))).collect();
    Ok((0..code_columns(k)).map(|c| Split { rows: None, codes: split(c) }).collect())
}

/// Fits every split and lays the results side by side.
fn wrapped(
    decision: Decision,
    name: &str,
    machine: &dyn Machine,
    training: &Training<'_>,
    splits: &[Split],
) -> Result<(Fit, Decision)> {
    let done = AtomicUsize::new(0);
    let one = |split: &Split, settings: Settings| -> Result<Fit> {
        let fit = fit_split(machine, training, split, settings)?;
        let iteration = done.fetch_add(1, Ordering::Relaxed) + 1;
        training.control.report(Progress { iteration, objective: None, gap: None })?;
        Ok(fit)
    };
    let fits: Vec<Fit> = if training.kernel == Kernel::Linear {
        splits.par_iter().map(|split| one(split, training.settings)).collect::<Result<_>>()?
    } else {
        let settings = Settings { memory: training.settings.memory / KERNEL_TASKS as u64, ..training.settings };
        let mut fits = Vec::with_capacity(splits.len());
        for some in splits.chunks(KERNEL_TASKS) {
            fits.extend(some.par_iter().map(|split| one(split, settings)).collect::<Result<Vec<_>>>()?);
        }
        fits
    };
    let rows: Vec<_> = splits.iter().map(|split| split.rows.as_deref()).collect();
    let codes: Vec<_> = splits.iter().map(|split| split.codes.as_slice()).collect();
    Ok((combine::side_by_side(name, &decision, training, fits, &rows, &codes)?, decision))
}

/// Fits the machine on one split. Only the flag that stops goes down: progress counts splits.
fn fit_split(machine: &dyn Machine, training: &Training<'_>, split: &Split, settings: Settings) -> Result<Fit> {
    let control = Control { stop: training.control.stop, observer: None };
    let selected: Option<(Matrix<'static>, Vec<f64>)> = split
        .rows
        .as_ref()
        .map(|rows| (training.rows.select(rows), rows.iter().map(|&i| training.weights[i]).collect()));
    let (rows, weights) = match &selected {
        Some((rows, weights)) => (rows, weights.as_slice()),
        None => (training.rows, training.weights),
    };
    let codes = &split.codes;
    judged(machine, &Training { rows, classes: 2, codes, weights, settings, control, ..*training })
}
