//! One-against-all, pairs, codes: any two-class machine inside.
//!
//! Each wrapper splits the classes into two parts in several ways, fits the machine on each split, and lays the score
//! functions side by side; [`Decision`] says how the columns become a class. Ties go to the lowest class everywhere.

mod combine;

pub(crate) use combine::summary;

use crate::control::{Control, Progress};
use crate::data::Matrix;
use crate::kernel::{Kernel, Span};
use crate::machine::{Classes, Fit, Machine, Training};
pub use crate::model::Multiclass;

use crate::model::Decision;
use crate::model::decode::{MOST_CODED_CLASSES, code_bit, code_columns, pairs};
use crate::solver::{Settings, Start, Workspace};
use crate::{Advice, Error, Remedy, Result, memory};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Kernel problems solved at the same time, each with its part of the memory. A constant, not the number of threads:
/// how much memory a solver has decides how it computes, and results must not depend on how many threads there are. Four, because
/// each takes threads of its own besides, and a smaller part of the memory would send middle-sized problems to slower solvers.
const KERNEL_TASKS: usize = 4;

/// Fits the machine, by itself or inside a wrapper, and says how its score columns become a class.
///
/// Two classes need no wrapper; a machine for two classes asked to take more by itself is an [`Error::Conflict`].
pub fn fit(mode: Multiclass, machine: &Machine, training: &Training<'_>) -> Result<(Fit, Decision)> {
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
fn judged(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    let mut fit = machine.fit(training)?;
    fit.outcome.judge(training.settings.asked());
    Ok(fit)
}

/// Bytes of what is kept of a fit beside its score function and its margins: the size of an [`Outcome`](crate::machine::Outcome) with
/// its texts, more or less.
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
    let function = if training.kernel() == Kernel::Linear { training.rows().cols() as u64 } else { m };
    let fit = match mode {
        Multiclass::Own => 0,
        _ => KEPT_OF_A_FIT.saturating_add(rows.saturating_mul(16)),
    };
    let needed = columns.saturating_mul(function.saturating_mul(8).saturating_add(fit));
    let (of, each) = if training.kernel() == Kernel::Linear { ("features", function) } else { ("rows", m) };
    let what = || format!("{columns} score functions for {k} classes over {each} {of}");
    let others = [Multiclass::Own, Multiclass::Ova].into_iter().filter(|other| *other != mode);
    let mut advice = Advice::values("multiclass", others);
    advice.0.push(Remedy::Do("have fewer classes"));
    memory::check(what, needed, advice)
}

/// One two-class problem: which rows (`None`: all), and which of them are positive.
struct ClassSplit {
    rows: Option<Vec<usize>>,
    codes: Vec<u32>,
}

fn ova(training: &Training<'_>) -> Vec<ClassSplit> {
    let split = |l: usize| training.codes.iter().map(|&y| u32::from(y as usize == l)).collect();
    (0..training.classes).map(|l| ClassSplit { rows: None, codes: split(l) }).collect()
}

fn ovo(training: &Training<'_>) -> Vec<ClassSplit> {
    let mut members = vec![Vec::new(); training.classes];
    for (i, &y) in training.codes.iter().enumerate() {
        members[y as usize].push(i);
    }
    let split = |(a, b): (usize, usize)| {
        let mut rows = [members[a].as_slice(), members[b].as_slice()].concat();
        rows.sort_unstable();
        let codes = rows.iter().map(|&i| u32::from(training.codes[i] as usize == b)).collect();
        ClassSplit { rows: Some(rows), codes }
    };
    pairs(training.classes).map(split).collect()
}

fn ecoc(training: &Training<'_>) -> Result<Vec<ClassSplit>> {
    let k = training.classes;
    if k > MOST_CODED_CLASSES {
        let most = MOST_CODED_CLASSES;
        let reason =
            format!("ecoc has 2^(k-1) - 1 problems; for {k} classes that is too many (at most {most} classes)");
        return Err(Error::conflict(reason, Advice::values("multiclass", [Multiclass::Ova, Multiclass::Ovo])));
    }
    let split = |c: usize| training.codes.iter().map(|&y| u32::from(code_bit(k, c, y as usize))).collect();
    Ok((0..code_columns(k)).map(|c| ClassSplit { rows: None, codes: split(c) }).collect())
}

/// Fits every split and lays the results side by side.
fn wrapped(
    decision: Decision,
    name: &str,
    machine: &Machine,
    training: &Training<'_>,
    splits: &[ClassSplit],
) -> Result<(Fit, Decision)> {
    let done = AtomicUsize::new(0);
    let one = |split: &ClassSplit, settings: Settings| -> Result<Fit> {
        let fit = fit_split(machine, training, split, settings)?;
        let iteration = done.fetch_add(1, Ordering::Relaxed) + 1;
        training.control.report(Progress { iteration, objective: None, gap: None })?;
        Ok(fit)
    };
    let fits: Vec<Fit> = if training.kernel() == Kernel::Linear {
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

/// Fits the machine on one split, whose kernel values are those of all rows. Only the flag that stops goes down: progress counts
/// splits.
fn fit_split(machine: &Machine, training: &Training<'_>, split: &ClassSplit, settings: Settings) -> Result<Fit> {
    let control = Control { stop: training.control.stop, observer: None };
    let two = Training { classes: 2, codes: &split.codes, start: &Start::default(), settings, control, ..*training };
    let Some(chosen) = &split.rows else {
        return judged(machine, &two);
    };
    let rows = training.rows().select(chosen);
    let weights: Vec<f64> = chosen.iter().map(|&i| training.weights[i]).collect();
    let workspace = Workspace::part(training.workspace, chosen, &rows, settings);
    // The rows as they are beside the landmarks that map them.
    let beside: Option<Matrix<'static>> = training.span.map(|span| span.rows.select(chosen));
    let span = training.span.zip(beside.as_ref());
    let span = span.map(|(span, rows)| Span { landmarks: span.landmarks, rows, control: span.control });
    judged(machine, &Training { workspace: &workspace, weights: &weights, span: span.as_ref(), ..two })
}
