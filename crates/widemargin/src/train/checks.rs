//! What is refused before any work, and the weights and classes that are left.

use super::width::{gamma_of, with_width};
use super::{ClassWeight, TrainOptions, is_positive};
use crate::data::{Labels, Matrix, Rows, given_weights, unusable};
use crate::kernel::{Kernel, Landmarks};
use crate::solver::Settings;
use crate::{Error, Result, memory, with_rows};
use rayon::prelude::*;

/// Vectors of one number a feature that a solver holds at the same time, more or less: weights, gradient, direction, diagonal, those of
/// conjugate gradients, and what is written.
const SOLVER_VECTORS: u64 = 10;

/// Refuses rows so wide that the weights of a single score function would not fit into memory.
pub(crate) fn check_width(name: &str, features: usize) -> Result<()> {
    let what = || format!("{name}: training with {features} features");
    let needed = (features as u64).saturating_mul(8 * SOLVER_VECTORS);
    memory::check(what, needed, "number the features from 1 on without large holes, or hash them to fewer")
}

/// Refuses what no fit can work with, before any work.
pub(crate) fn check_options(options: &TrainOptions) -> Result<()> {
    check_settings(&options.settings)?;
    options.bias.check()?;
    options.gamma.check()?;
    if let Some(rank) = options.approx {
        require("approx", rank as f64, rank > 0, "a whole number >= 1")?;
    }
    // A `γ` of the kernel's own is replaced by the one asked for.
    check_kernel(with_width(options.kernel, 1.0))?;
    match options.approx {
        Some(_) => Landmarks::check(options.kernel)?,
        None => options.solver.check(options.kernel)?,
    }
    let solvers = options.machine.uses().solvers;
    if solvers.contains(&options.solver) {
        return Ok(());
    }
    let names: Vec<&str> = solvers.iter().map(|solver| solver.name()).collect();
    let expected = format!("what {} takes: {}", options.machine.name(), names.join(" or "));
    Err(Error::parameter("solver", options.solver, expected))
}

fn check_settings(settings: &Settings) -> Result<()> {
    require("tol", settings.tol, is_positive(settings.tol), "a number > 0")?;
    require("max_iter", 0.0, settings.max_iter != Some(0), "a whole number >= 1")
}

/// Refuses a kernel with a parameter outside its domain.
pub(super) fn check_kernel(kernel: Kernel) -> Result<()> {
    if let Some(gamma) = gamma_of(kernel) {
        require("gamma", gamma, is_positive(gamma), "a number > 0")?;
    }
    if let Kernel::Poly { degree, .. } = kernel {
        require("degree", degree.into(), (1..1 << 16).contains(&degree), "a whole number from 1 to 65535")?;
    }
    if let Kernel::Poly { coef0, .. } | Kernel::Sigmoid { coef0, .. } = kernel {
        require("coef0", coef0, coef0.is_finite(), "a finite number")?;
    }
    Ok(())
}

/// Products of larger values overflow: their squares are at most 1e300, and sums of these leave eight digits.
pub(super) const LARGEST_VALUE: f64 = 1e150;

/// Refuses rows with a value that is no number (readers let none through, but rows may come from elsewhere), or so large that
/// products of rows overflow.
pub fn check_rows(name: &str, rows: &Matrix<'_>) -> Result<()> {
    let usable = |v: f64| v.abs() <= LARGEST_VALUE;
    let wrong = |i: usize| {
        let mut fine = true;
        with_rows!(rows, x => x.visit(i, |_, v| fine &= usable(v)));
        !fine
    };
    let Some(i) = (0..rows.rows()).into_par_iter().with_min_len(1024).find_first(|&i| wrong(i)) else { return Ok(()) };
    let mut found = String::new();
    with_rows!(rows, x => x.visit(i, |c, v| if !usable(v) && found.is_empty() {
        found = format!(
            "row {}, feature {} is {v:e}: expected a number of at most {LARGEST_VALUE:e}, as products of larger ones overflow; \
             divide the feature first",
            i + 1,
            c + 1
        );
    }));
    Err(unusable(name, &found))
}

fn require(name: &str, value: f64, holds: bool, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::parameter(name, value, expected)) }
}

/// Row weights times class weights, checked.
pub(crate) fn row_weights(
    name: &str,
    labels: &Labels,
    rows: Option<&[f64]>,
    classes: &ClassWeight,
) -> Result<Vec<f64>> {
    let rows = given_weights(name, labels, rows)?;
    times_class_weights(name, labels, &rows, &class_weights(labels, &rows, classes)?)
}

/// Sums of weights beyond this overflow once they are multiplied.
const LARGEST_WEIGHT: f64 = 1e150;

/// Row weights times class weights, which must leave some row.
pub(super) fn times_class_weights(name: &str, labels: &Labels, rows: &[f64], by_class: &[f64]) -> Result<Vec<f64>> {
    let weights: Vec<f64> = rows.iter().zip(labels.codes()).map(|(w, &c)| w * by_class[c as usize]).collect();
    if !weights.iter().any(|w| *w > 0.0) {
        return Err(unusable(name, "every row has weight zero"));
    }
    // Costs are divided by the sum, and squares of it appear.
    let total: f64 = weights.iter().sum();
    if total >= LARGEST_WEIGHT {
        let reason = format!("its row weights add up to {total:e}; expected less than {LARGEST_WEIGHT:e}");
        return Err(unusable(name, &reason));
    }
    Ok(weights)
}

pub(crate) fn class_weights(labels: &Labels, rows: &[f64], classes: &ClassWeight) -> Result<Vec<f64>> {
    let k = labels.names().len();
    match classes {
        ClassWeight::Equal => Ok(vec![1.0; k]),
        ClassWeight::Balanced => {
            let mut sums = vec![0.0; k];
            rows.iter().zip(labels.codes()).for_each(|(w, &c)| sums[c as usize] += w);
            let present = sums.iter().filter(|s| **s > 0.0).count() as f64;
            let total: f64 = sums.iter().sum();
            Ok(sums.iter().map(|s| if *s > 0.0 { total / (present * s) } else { 0.0 }).collect())
        }
        ClassWeight::ByLabel(pairs) => {
            let mut weights = vec![1.0; k];
            for (label, weight) in pairs {
                let wrong = |expected: String| Error::parameter("class_weight", format!("{label}={weight}"), expected);
                if !(weight.is_finite() && *weight >= 0.0) {
                    return Err(wrong("finite weights >= 0".into()));
                }
                let code = Labels::new(&[label.as_str()]).codes_in(labels.names())[0];
                let code = code.ok_or_else(|| wrong(format!("one of the labels {}", labels.names().join(", "))))?;
                weights[code as usize] = *weight;
            }
            Ok(weights)
        }
    }
}

/// The classes that have rows, and each row's class among them.
pub(crate) fn present_classes(labels: &Labels) -> (Vec<String>, Vec<u32>) {
    let mut new = vec![u32::MAX; labels.names().len()];
    labels.codes().iter().for_each(|&c| new[c as usize] = 0);
    let mut names = Vec::new();
    for (code, name) in new.iter_mut().zip(labels.names()).filter(|(code, _)| **code == 0) {
        *code = names.len() as u32;
        names.push(name.clone());
    }
    (names, labels.codes().iter().map(|&c| new[c as usize]).collect())
}
