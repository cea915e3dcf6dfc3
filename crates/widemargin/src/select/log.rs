//! Finished points as lines of JSON, so that a search that was stopped can go on.

use super::{Plan, Search, Trial};
use crate::data::{Examples, Rows};
use crate::journal::{Hash, Journal};
use crate::train::TrainOptions;
use crate::{Error, Result, with_rows};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The first line of a log.
#[derive(Serialize, Deserialize)]
struct Head {
    widemargin_search: String,
}

/// What a log is called in messages.
const KIND: &str = "the log of a search";

/// A log of finished points: one line of JSON each, after a line that says which search they belong to.
pub struct Log(Journal);

impl Log {
    /// Opens a log, or begins one; hands back the points it holds.
    ///
    /// A line cut short at the end, as a crash leaves it, is dropped. A log of another search (other data, machine,
    /// folds, …) is an error: its points mean something else.
    pub fn open(path: impl AsRef<Path>, fingerprint: &str) -> Result<(Self, Vec<Trial>)> {
        let path = path.as_ref();
        let head = Head { widemargin_search: fingerprint.into() };
        let (journal, lines) = Journal::open(path, "{\"widemargin_search\"", KIND, &head)?;
        let trials = match lines.head::<Head>(KIND)? {
            None => Vec::new(),
            Some(head) if head.widemargin_search == fingerprint => lines.rest("a finished point of a search")?,
            Some(Head { widemargin_search: other }) => {
                let reason = format!("it is the log of another search ({other}); this one is {fingerprint}");
                return Err(Error::data(path.display().to_string(), reason));
            }
        };
        Ok((Self(journal), trials))
    }

    /// Adds a finished point.
    pub fn add(&self, trial: &Trial) -> Result<()> {
        self.0.add(trial)
    }
}

/// What identifies rows, labels and weights.
pub fn data_hash(data: Examples<'_>, weights: Option<&[f64]>) -> u64 {
    let mut hash = Hash::default();
    for i in 0..data.rows.rows() {
        with_rows!(data.rows, x => x.visit(i, |j, v| {
            hash.add(j as u64);
            hash.add(v.to_bits());
        }));
        hash.add(u64::MAX);
    }
    data.labels.codes().iter().for_each(|&code| hash.add(code.into()));
    weights.into_iter().flatten().for_each(|w| hash.add(w.to_bits()));
    hash.value()
}

/// What identifies a search: points judged by one must not be taken for those of another.
pub fn fingerprint(data: Examples<'_>, weights: Option<&[f64]>, options: &TrainOptions, search: &Search<'_>) -> String {
    let max_iter = search.max_iter.or(options.settings.max_iter);
    let settings = (options.settings.tol, max_iter, options.settings.seed);
    let gamma = search.gamma_given.then_some(options.gamma);
    let score = search.score.map_or(String::new(), |score| format!(" by {score}"));
    format!(
        "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {settings:?}, {} {:?} {}x{} judged on {} rows{score}, {:?}, {} rows x {} features \
         {:016x}",
        options.machine.name(),
        options.kernel,
        gamma,
        options.bias,
        options.scaling,
        options.class_weight,
        options.multiclass,
        options.solver,
        plan(search.plan),
        search.select,
        search.repeats,
        search.folds,
        search.rows,
        search.given.iter().map(|(name, value)| (name, value.to_string())).collect::<Vec<_>>(),
        data.rows.rows(),
        data.rows.cols(),
        data_hash(data, weights)
    )
}

/// What is tried, in a word: the scores of points depend on which others are tried with them (fits start where others
/// ended, points are dropped because others are better).
fn plan(plan: &Plan) -> String {
    match plan {
        Plan::Staged => "staged".into(),
        Plan::Paper => "paper".into(),
        Plan::Sample(points) => format!("{points} points at random"),
        Plan::Grid(grid) => grid.to_string(),
    }
}
