//! Searching parameters: points of a grid judged by rows that were left out, and the best one fitted.
//!
//! The ODM family is judged by the logistic loss of its closed-form leave-one-out margins (one fit a point), every
//! other machine by stratified cross-validation. The same folds judge every point; scaling and class weights are
//! settled on the training rows of each fold; nothing depends on the number of threads.

mod afford;
mod average;
mod convex;
mod explore;
mod general;
mod grid;
mod job;
mod judge;
mod lines;
mod log;
mod plan;
mod probability;
mod screening;
mod validate;

pub use average::{AverageFit, AverageOptions, AverageOver, JUDGED_ROWS, average, check_average};
pub use grid::{GAMMA, Grid, GridAxis, average_distance};
pub use judge::{Score, error, logistic_loss};
pub use lines::{JudgedLine, Judges, Line, judge_lines};
pub use log::{Log, data_hash, fingerprint};
pub use probability::{
    Learned, UnseenMargins, choose_threshold, figures_left_out, learn_unseen, unseen, unseen_margins,
};
pub use validate::cross_validate;

use crate::control::Control;
use crate::data::{Dataset, Examples, Matrix};
use crate::kernel::Kernel;
use crate::machine::{MACHINES, Machine, Outcome, Parameters, Value, check_parameters};
use crate::metrics::Metric;
use crate::model::Model;
use crate::names::{named, named_or_number};
use crate::train::{TrainOptions, Trained, gamma_of, present_classes, train_examples, with_gamma};
use crate::{Advice, Error, Result};
use explore::{Point, compare, explore};
use job::{Job, with_job};
use plan::Lattice;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// By what points are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Select {
    /// The logistic loss of closed-form leave-one-out margins.
    LooLoss,
    /// The leave-one-out error; among equals, the loss.
    Loo,
    /// The mean error of cross-validation; among equals, the logistic loss of the margins of the test rows.
    Cv,
}

named!(Select, "select", [
    LooLoss: "loo-loss" "the logistic loss of leave-one-out margins, in closed form",
    Loo: "loo" "the leave-one-out error",
    Cv: "cv" "the mean error of cross-validation",
]);

/// What is tried.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// From a few points far apart to the neighbours of the best, on the machine's own grid.
    Staged,
    /// Every point of the papers' grid.
    Paper,
    /// Every point of this grid; parameters it does not name keep their value. `gamma=widths` stands for the papers'
    /// widths.
    Grid(Grid),
    /// So many points drawn at random from the machine's own grid, or all of them if it has no more: a budget that is the
    /// same for every machine.
    Sample(usize),
}

/// On how many rows points are judged at most; the chosen one is fitted on all. Rows are drawn at random from each class alike, and each
/// counts as much as it will among all: parameters that weigh a mean over the rows are made smaller by the part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearchRows {
    /// On all if that takes about a minute at most, else on as many as that allows; see [`Tuned::rows`]. Of 600 rows or more, a
    /// [`Plan::Staged`] judges every point on a part of these, and only the best on all; see [`Tuned::first_rows`].
    #[default]
    Auto,
    /// Every point on all.
    All,
    /// On at most so many.
    Most(usize),
}

named_or_number!(
    SearchRows,
    "search_rows",
    "auto, all or a whole number >= 1",
    [Auto: "auto", All: "all"],
    Most,
    |rows: usize| rows > 0
);

/// Told of every point as it is finished; an error ends the search.
pub trait Watcher: Fn(&Finished<'_>) -> Result<()> + Sync {}

impl<F: Fn(&Finished<'_>) -> Result<()> + Sync> Watcher for F {}

/// How to search.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// What is tried.
    pub plan: &'a Plan,
    /// By what points are compared; `None`: see [`Search::settle`].
    pub select: Option<Select>,
    /// Folds of cross-validation.
    pub folds: usize,
    /// How often the rows are dealt into folds anew.
    pub repeats: usize,
    /// The metric points are compared by, of rows left out; `None`: as [`select`](Self::select) says.
    pub score: Option<Metric>,
    /// Parameters that are set, by name: they are not searched. The parameters in [`TrainOptions`] do not count.
    pub given: &'a [(String, Value)],
    /// Whether the kernel's `γ` stays as [`TrainOptions::gamma`] says.
    pub gamma_given: bool,
    /// Most iterations of a fit of the search; `None`: as [`TrainOptions`] say. The final fit has the limit of those.
    pub max_iter: Option<usize>,
    /// On how many rows points are judged.
    pub rows: SearchRows,
    /// Points that were judged before and need not be again.
    pub known: &'a [Trial],
    /// Told of every point as it is finished.
    pub watcher: Option<&'a dyn Watcher>,
    /// Who judges points instead of this process.
    pub judges: Option<&'a dyn Judges>,
}

impl Search<'_> {
    /// Refuses, before any work, what no rows could make possible: too few folds, values outside their domain, parameters
    /// that the machine does not have.
    pub fn check(&self, options: &TrainOptions) -> Result<()> {
        if self.folds < 2 {
            return Err(Error::parameter("folds", self.folds, "a whole number >= 2"));
        }
        if self.repeats < 1 {
            return Err(Error::parameter("repeats", self.repeats, "a whole number >= 1"));
        }
        if let (Some(score), Some(Select::LooLoss)) = (self.score, self.select) {
            let reason = format!("points cannot be compared by {score} and by the leave-one-out loss");
            return Err(Error::conflict(reason, Advice::values("select", [Select::Loo, Select::Cv])));
        }
        check_parameters(options.machine, self.given)?;
        if let Plan::Grid(grid) = self.plan { plan::check_grid(grid, options, self.given) } else { Ok(()) }
    }

    /// By what points over this data set are compared, and on how many rows, if nobody says: by the leave-one-out loss where there
    /// is one in closed form; on all rows, or on as many as can be judged in about a minute.
    pub fn settle(&self, data: Examples<'_>, options: &TrainOptions) -> Result<(Select, usize)> {
        let points = Lattice::new(options, self, data.rows, data.rows.rows() as f64)?.expected_points();
        Ok(afford::Work::new(data, options, self, present_classes(data.labels).0.len(), points).settle(self))
    }
}

impl Default for Search<'_> {
    fn default() -> Self {
        Self {
            plan: &Plan::Staged,
            select: None,
            folds: 5,
            repeats: 1,
            score: None,
            given: &[],
            gamma_given: false,
            max_iter: None,
            rows: SearchRows::Auto,
            known: &[],
            watcher: None,
            judges: None,
        }
    }
}

/// A point that was judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The machine's parameters.
    pub params: Parameters,
    /// The kernel's `γ`, if it has one.
    pub gamma: Option<f64>,
    /// How good it is.
    #[serde(flatten)]
    pub score: Score,
}

impl Trial {
    /// The same for the same point.
    fn key(&self) -> String {
        key(&self.params, self.gamma)
    }
}

fn key(params: &Parameters, gamma: Option<f64>) -> String {
    let names: Vec<String> = params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{} {gamma:?}", names.join(","))
}

/// A point that was just finished.
pub struct Finished<'a> {
    /// The point.
    pub trial: &'a Trial,
    /// Whether no point so far is better.
    pub best: bool,
    /// Points judged so far, this one included.
    pub done: usize,
    /// Points that are known to be needed; a staged search finds more as it goes.
    pub planned: usize,
}

/// What a search found.
pub struct Tuned {
    /// By what points were compared.
    pub select: Select,
    /// On how many rows.
    pub rows: usize,
    /// On how many rows all points were judged first, if only the best of these were on the others.
    pub first_rows: Option<usize>,
    /// The best point.
    pub best: Trial,
    /// The second best.
    pub runner_up: Option<Trial>,
    /// Parameters whose best value is the smallest or largest tried: beyond may lie better ones.
    pub at_edge: Vec<String>,
    /// Every point, in the order they were first wanted.
    pub trials: Vec<Trial>,
    /// Points of the papers' whole grid.
    pub paper_points: usize,
    /// Problems solved, the final fit not counted.
    pub fits: usize,
    /// Problems that cross-validation of the papers' whole grid (or of the given one) would have solved besides.
    pub fits_saved: usize,
    /// Points that were given up: before their last fold, because they had more errors already than two others had in all, or because
    /// others were better on the [first rows](Self::first_rows).
    pub dropped: usize,
    /// Points that were known before.
    pub resumed: usize,
    /// Whether points shared matrices and started from their neighbours.
    pub shared: bool,
    /// Seconds spent on the search, the final fit not counted.
    pub seconds: f64,
    /// The options of the best point.
    pub options: TrainOptions,
    /// The model of the best point, fitted on all rows.
    pub model: Model,
    /// How well it was fitted.
    pub outcome: Outcome,
    /// For a kernel model, which of the given rows are its support rows.
    pub support: Option<Vec<usize>>,
}

/// Whether rows left out move in closed form: the margins of rows left out then need no folds.
pub fn has_left_out_margins(options: &TrainOptions) -> bool {
    leaves_out(options.machine) && !matches!(options.kernel, Kernel::Sigmoid { .. })
}

/// Whether rows left out of this machine's problem move in closed form.
fn leaves_out(machine: &Machine) -> bool {
    let form = check_parameters(machine, &[]).ok().and_then(|p| machine.form(&p, 1.0));
    form.is_some_and(|form| form.loss.leaves_out() && form.variance == 0.0)
}

/// Searches the parameters of a machine on a data set and fits the best point on all rows.
///
/// `weights` are the row weights, all 1 if `None`; errors and losses count rows by their weight.
pub fn tune(
    data: &Dataset,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: &Search<'_>,
    control: Control<'_>,
) -> Result<Tuned> {
    let mut tuned = tune_examples(Examples::of(data)?, weights, options, search, control)?;
    if let Some(schema) = &data.schema {
        tuned.model.schema = Some(schema.clone());
    }
    Ok(tuned)
}

/// As [`tune`], on borrowed rows.
pub fn tune_examples(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: &Search<'_>,
    control: Control<'_>,
) -> Result<Tuned> {
    let start = Instant::now();
    search.check(options)?;
    let settled = search.settle(data, options)?;
    let select = settled.0;
    let (found, lattice, rows) = with_job(data, weights, options, search, settled, control, |job, rows| {
        let lattice = Lattice::new(options, search, &job.scaled(), job.total())?;
        let Some(part) = screening::part_of(job, search, rows) else {
            return Ok((explore(job, &lattice, search, settled, None, options)?, lattice, rows));
        };
        let first = with_job(data, weights, options, search, (select, part), control, |few, part| {
            explore(few, &lattice, search, (select, part), Some(part), options)
        })?;
        Ok((screening::judge_best(first, job, &lattice, search, settled)?, lattice, rows))
    })?;
    let seconds = start.elapsed().as_secs_f64();
    let mut ranking: Vec<usize> = (0..found.trials.len()).collect();
    ranking.sort_by(|&a, &b| compare(&found.trials[a], &found.trials[b], select, options));
    let best = found.trials[ranking[0]].clone();
    let point = Point { positions: Vec::new(), parameters: best.params.clone(), gamma: best.gamma };
    let chosen = point.options(options);
    let Trained { model, outcome, support } = train_examples(data, weights, &chosen, control)?;
    let plain = lattice.plain_points().saturating_mul(search.folds * search.repeats);
    Ok(Tuned {
        select,
        rows,
        first_rows: found.trials.iter().find_map(|trial| trial.score.rows),
        runner_up: ranking.get(1).map(|&i| found.trials[i].clone()),
        paper_points: lattice.paper_points,
        fits: found.fits,
        fits_saved: plain.saturating_sub(found.fits),
        dropped: found.trials.iter().filter(|trial| trial.score.dropped).count(),
        at_edge: lattice.at_edge(&found.seen[ranking[0]]),
        resumed: found.resumed,
        shared: found.shared,
        seconds,
        trials: found.trials,
        best,
        options: chosen,
        model,
        outcome,
        support,
    })
}

/// How many points a search over this data set will try; of a staged one, those it begins with.
pub fn planned_points(data: &Dataset, options: &TrainOptions, search: &Search<'_>) -> Result<usize> {
    Lattice::new(options, search, &data.rows, data.rows.rows() as f64).map(|lattice| lattice.first().len())
}

/// The machines whose rows move in closed form when one is left out.
fn able_to_leave_out() -> Vec<&'static str> {
    MACHINES.iter().filter(|machine| leaves_out(machine)).map(|machine| machine.name()).collect()
}

/// The same for a search, which has it for two classes.
fn check_selection(job: &Job<'_>) -> Result<()> {
    if job.classes.len() == 2 && has_left_out_margins(job.options) {
        return Ok(());
    }
    let reason = format!(
        "leave-one-out in closed form is for {} with two classes and a positive definite kernel, \
         not for {} with {} classes and the {} kernel",
        able_to_leave_out().join(", "),
        job.options.machine.name(),
        job.classes.len(),
        job.options.kernel.name()
    );
    Err(Error::conflict(reason, Advice::values("select", [Select::Cv])))
}

/// `γ` as the options say, for these rows.
fn settled_gamma(options: &TrainOptions, rows: &Matrix<'_>) -> Option<f64> {
    gamma_of(with_gamma(options.kernel, options.gamma, rows, None))
}
