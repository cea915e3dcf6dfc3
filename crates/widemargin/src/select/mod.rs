//! Searching parameters: points of a grid judged by rows that were left out, and the best one fitted.
//!
//! The ODM family is judged by the logistic loss of its closed-form leave-one-out margins (one fit a point), every
//! other machine by stratified cross-validation. The same folds judge every point; scaling and class weights are
//! settled on the training rows of each fold; nothing depends on the number of threads.

mod afford;
mod average;
mod convex;
mod general;
mod grid;
mod job;
mod judge;
mod lines;
mod log;
mod plan;
mod probability;
mod sieve;
mod threshold;
mod validate;

pub use average::{AverageFit, AverageOptions, AverageOver, JUDGED_ROWS, average, check_average};
pub use grid::{GAMMA, Grid, GridAxis, average_distance};
pub use judge::{Score, error, logistic_loss};
pub use lines::{JudgedLine, Judges, Line, judge_lines};
pub use log::{Log, data_hash, fingerprint};
pub use probability::{calibrate, figures_left_out, unseen};
pub use threshold::{choose_threshold, threshold_left_out};
pub use validate::{Learned, cross_validate};

use crate::control::Control;
use crate::data::{Dataset, Examples, Labels, Matrix, train_test};
use crate::kernel::Kernel;
use crate::machine::{MACHINES, Machine, Outcome, Parameters, Value, check_parameters};
use crate::metrics::Metric;
use crate::model::Model;
use crate::names::{named, named_or_number};
use crate::solver::Start;
use crate::train::{TrainOptions, Trained, gamma_of, present_classes, train_examples, with_gamma};
use crate::{Advice, Error, Result};
use convex::Convex;
use general::General;
use job::Job;
use lines::{Judgement, LinesElsewhere};
use plan::Lattice;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};
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
        let points = Lattice::new(options, self, data.rows)?.expected_points();
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

/// A point of the grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Position on each axis.
    positions: Vec<usize>,
    parameters: Parameters,
    gamma: Option<f64>,
}

/// A point's score, and where its fits ended; `None` if they were not made again because the score was known.
struct Judged {
    score: Score,
    ends: Option<Vec<Start>>,
}

/// Points that are judged together. What is found out about one may depend on the others (it starts where a neighbour
/// ended, it is dropped because others are better), so all are here, also those whose score is known.
struct Round<'a> {
    points: &'a [Point],
    known: &'a [Option<Score>],
    /// A point judged before that is close to these, and where its fits ended.
    near: Option<(&'a Point, &'a [Start])>,
    /// A point whose fits are wanted though its score is known.
    wanted: Option<usize>,
}

impl Round<'_> {
    /// Whether the point at this place has to be fitted.
    fn fits(&self, place: usize) -> bool {
        self.known[place].is_none() || self.wanted == Some(place)
    }

    /// Whether a point of this width has to be fitted.
    fn fits_width(&self, gamma: Option<f64>) -> bool {
        (0..self.points.len()).any(|place| self.points[place].gamma == gamma && self.fits(place))
    }
}

/// So many points, or lines of points, are judged at the same time; what they teach about points that cannot win any more
/// counts from the next wave on, so that it does not depend on the number of threads. Eight keep as many threads busy; more would
/// be judged in vain.
const WAVE: usize = 8;

/// Told of a point that is finished.
type Done<'a> = &'a (dyn Fn(&Point, &Score) -> Result<()> + Sync);

/// How points are judged.
trait Evaluator: Sync {
    /// Judges the points of a round, in their order. Each that was not known is told to `done` as it is finished. The
    /// scores do not depend on which of them were known.
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>>;
    /// Problems solved so far.
    fn fits(&self) -> usize;
}

fn has_left_out_margins(options: &TrainOptions) -> bool {
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
        let lattice = Lattice::new(options, search, &job.scaled())?;
        let Some(part) = sieve::part_of(job, search, rows) else {
            return Ok((explore(job, &lattice, search, settled, None, options)?, lattice, rows));
        };
        let first = with_job(data, weights, options, search, (select, part), control, |few, part| {
            explore(few, &lattice, search, (select, part), Some(part), options)
        })?;
        Ok((sieve::sift(first, job, &lattice, search, settled)?, lattice, rows))
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

/// Does work on what points are judged by, and the number of its rows: folds or each row left out, of about so many rows.
fn with_job<T>(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: &Search<'_>,
    (select, rows): (Select, usize),
    control: Control<'_>,
    work: impl FnOnce(&Job<'_>, usize) -> Result<T>,
) -> Result<T> {
    let drawn = (rows < data.rows.rows()).then(|| Drawn::new(data, weights, rows, options));
    let (judged, judged_weights) = drawn.as_ref().map_or((data, weights), |drawn| drawn.examples(data.name));
    let mut limited = options.clone();
    limited.settings.max_iter = search.max_iter.or(options.settings.max_iter);
    let mut job = Job::new(judged, judged_weights, &limited, control)?;
    job.share = drawn.as_ref().map_or(1.0, |drawn| drawn.share);
    job.metric = search.score;
    match select {
        Select::Cv => job.cross_validate(search.folds, search.repeats)?,
        Select::LooLoss | Select::Loo => {
            check_selection(&job)?;
            job.leave_one_out();
        }
    }
    work(&job, judged.rows.rows())
}

/// Some of the rows of a search.
struct Drawn {
    rows: Matrix<'static>,
    labels: Labels,
    weights: Option<Vec<f64>>,
    /// Which part they are of all rows, by weight.
    share: f64,
}

impl Drawn {
    fn new(data: Examples<'_>, weights: Option<&[f64]>, rows: usize, options: &TrainOptions) -> Self {
        let all = data.rows.rows();
        let (chosen, _) = train_test(data.labels, rows as f64 / all as f64, options.settings.seed, 0);
        let weight = |rows: &mut dyn Iterator<Item = usize>| rows.map(|i| weights.map_or(1.0, |w| w[i])).sum::<f64>();
        Self {
            share: weight(&mut chosen.iter().copied()) / weight(&mut (0..all)),
            rows: data.rows.select(&chosen),
            labels: data.labels.select(&chosen),
            weights: weights.map(|weights| chosen.iter().map(|&i| weights[i]).collect()),
        }
    }

    fn examples<'a>(&'a self, name: &'a str) -> (Examples<'a>, Option<&'a [f64]>) {
        (Examples { name, rows: &self.rows, labels: &self.labels }, self.weights.as_deref())
    }
}

/// How many points a search over this data set will try; of a staged one, those it begins with.
pub fn planned_points(data: &Dataset, options: &TrainOptions, search: &Search<'_>) -> Result<usize> {
    Lattice::new(options, search, &data.rows).map(|lattice| lattice.first().len())
}

/// Refuses a machine or kernel without leave-one-out margins in closed form.
pub fn check_left_out(options: &TrainOptions) -> Result<()> {
    if has_left_out_margins(options) {
        return Ok(());
    }
    let reason = format!(
        "leave-one-out in closed form is for {} with a positive definite kernel, not for {} with the {} kernel",
        able_to_leave_out().join(", "),
        options.machine.name(),
        options.kernel.name()
    );
    Err(Error::conflict(reason, Advice::values("machine", able_to_leave_out())))
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

/// The better of two points comes first: by what is selected, then by the other measure, then the smoother model.
fn compare(a: &Trial, b: &Trial, select: Select, options: &TrainOptions) -> Ordering {
    let by_metric = a.score.cost.or(b.score.cost).is_some();
    let [first, second] = [a, b].map(|trial| trial.score.measures(select, by_metric));
    let whole = a.score.dropped.cmp(&b.score.dropped);
    let measured = whole.then(first[0].total_cmp(&second[0])).then(first[1].total_cmp(&second[1]));
    let smoother = options.machine.grid().iter().fold(Ordering::Equal, |order, axis| {
        let of = |trial: &Trial| trial.params.get(axis.name).unwrap_or(0.0);
        let here = of(a).total_cmp(&of(b));
        order.then(if axis.small_is_smooth { here } else { here.reverse() })
    });
    measured.then(smoother).then(a.gamma.unwrap_or(0.0).total_cmp(&b.gamma.unwrap_or(0.0)))
}

/// The points so far, and the one from which the next round starts.
struct SearchState<'a> {
    trials: Vec<Trial>,
    /// Positions of the points in `trials`.
    seen: Vec<Vec<usize>>,
    rounds: Vec<PastRound>,
    best: Option<Best>,
    select: Select,
    options: &'a TrainOptions,
    /// Problems solved, and points that were known before.
    fits: usize,
    resumed: usize,
    /// Whether points share matrices and start from their neighbours.
    shared: bool,
    /// On how many rows, if that is a part of those that decide.
    part: Option<usize>,
    /// Points that were judged on such a part before these.
    before: usize,
}

/// The best point so far, and where its fits ended, if they were made.
struct Best {
    trial: usize,
    ends: Option<Vec<Start>>,
}

/// A round that is over.
struct PastRound {
    points: Vec<Point>,
    /// Where its points begin among the trials.
    from: usize,
    /// The best point before it.
    near: Option<usize>,
}

impl<'a> SearchState<'a> {
    fn new(select: Select, options: &'a TrainOptions, shared: bool) -> Self {
        let (trials, seen, rounds, best) = (Vec::new(), Vec::new(), Vec::new(), None);
        Self { trials, seen, rounds, best, select, options, fits: 0, resumed: 0, shared, part: None, before: 0 }
    }

    fn add(&mut self, point: &Point, judged: Judged) {
        let trial = Trial { params: point.parameters.clone(), gamma: point.gamma, score: judged.score };
        let better = self
            .best
            .as_ref()
            .is_none_or(|best| compare(&trial, &self.trials[best.trial], self.select, self.options) == Ordering::Less);
        self.trials.push(trial);
        self.seen.push(point.positions.clone());
        if better {
            self.best = Some(Best { trial: self.trials.len() - 1, ends: judged.ends });
        }
    }

    /// The point of a trial.
    fn point(&self, trial: usize) -> Point {
        let Trial { params, gamma, .. } = &self.trials[trial];
        Point { positions: self.seen[trial].clone(), parameters: params.clone(), gamma: *gamma }
    }

    /// Where the fits of a point ended whose score came from a log: they are made again, as they were made then.
    fn ends_of(&self, trial: usize, evaluator: &dyn Evaluator) -> Result<Vec<Start>> {
        let Some(past) = self.rounds.iter().rev().find(|past| past.from <= trial) else { return Ok(Vec::new()) };
        let scores = self.trials[past.from..].iter().map(|trial| Some(trial.score.clone()));
        let known: Vec<Option<Score>> = scores.take(past.points.len()).collect();
        let same_width = |near: &usize| self.trials[*near].gamma == self.trials[trial].gamma;
        let near = past.near.filter(same_width).map(|near| Ok((self.point(near), self.ends_of(near, evaluator)?)));
        let near: Option<(Point, Vec<Start>)> = near.transpose()?;
        let round = Round {
            points: &past.points,
            known: &known,
            near: near.as_ref().map(|(point, ends)| (point, ends.as_slice())),
            wanted: Some(trial - past.from),
        };
        let judged = evaluator.evaluate(&round, &|_, _| Ok(()))?.into_iter().nth(trial - past.from);
        Ok(judged.and_then(|judged| judged.ends).unwrap_or_default())
    }
}

/// How the points of a search are judged.
fn evaluator<'e>(job: &'e Job<'_>, search: &Search<'e>, how: Judgement) -> Result<Box<dyn Evaluator + 'e>> {
    Ok(match search.judges {
        Some(judges) => Box::new(LinesElsewhere::new(judges, how, job.splits.len())),
        None if how.shared => Box::new(Convex::new(job, how)?),
        None => Box::new(General::new(job)),
    })
}

/// Rounds of points until the lattice has no more to offer, on so many rows, which may be a part of those that decide.
fn explore<'a>(
    job: &Job<'_>,
    lattice: &Lattice,
    search: &Search<'_>,
    (select, rows): (Select, usize),
    part: Option<usize>,
    options: &'a TrainOptions,
) -> Result<SearchState<'a>> {
    let first = lattice.first();
    let points: Vec<Point> = first.iter().map(|at| lattice.point(at)).collect::<Result<_>>()?;
    let shared = convex::possible(job.options, job.classes.len(), points.iter().map(|point| &point.parameters));
    let keep_starts = shared && lattice.steps().next().is_some();
    let evaluator = evaluator(job, search, Judgement { select, rows, shared, keep_starts })?;
    let mut state = SearchState { part, ..SearchState::new(select, options, shared) };
    round(points, evaluator.as_ref(), search, &mut state)?;
    for step in lattice.steps() {
        while let Some(best) = state.best.as_ref().map(|best| best.trial) {
            let before = state.trials[best].score.clone();
            let near = lattice.neighbours(&state.seen[best], step);
            let new: Vec<Vec<usize>> = near.into_iter().filter(|at| !state.seen.contains(at)).collect();
            if new.is_empty() {
                break;
            }
            let points = new.iter().map(|at| lattice.point(at)).collect::<Result<_>>()?;
            round(points, evaluator.as_ref(), search, &mut state)?;
            let slight = |now: &Best| part.is_some() && state.trials[now.trial].score.is_near(&before, select);
            if state.best.as_ref().is_some_and(|now| now.trial == best || slight(now)) {
                break;
            }
        }
    }
    Ok(SearchState { fits: evaluator.fits(), ..state })
}

/// Judges the points of one round.
fn round(
    points: Vec<Point>,
    evaluator: &dyn Evaluator,
    search: &Search<'_>,
    state: &mut SearchState<'_>,
) -> Result<()> {
    let part = state.part;
    let find = |point: &Point| {
        let wanted = key(&point.parameters, point.gamma);
        let same = |trial: &&Trial| trial.score.rows == part && trial.key() == wanted;
        search.known.iter().find(same).map(|trial| trial.score.clone())
    };
    let known: Vec<Option<Score>> = points.iter().map(find).collect();
    let resumed = known.iter().filter(|score| score.is_some()).count();
    let near = state.best.as_ref().map(|best| (best.trial, state.point(best.trial)));
    let mut task = Round { points: &points, known: &known, near: None, wanted: None };
    if let (Some(best), Some((_, point))) = (&state.best, &near)
        && best.ends.is_none()
        && task.fits_width(point.gamma)
    {
        let ends = state.ends_of(best.trial, evaluator)?;
        state.best = Some(Best { trial: best.trial, ends: Some(ends) });
    }
    let ends = state.best.as_ref().and_then(|best| best.ends.as_deref());
    task.near = near.as_ref().map(|(_, point)| point).zip(ends);
    let counter = AtomicUsize::new(state.before + state.trials.len() + resumed);
    let planned = state.before + state.trials.len() + points.len();
    let leader = std::sync::Mutex::new(near.as_ref().map(|(trial, _)| state.trials[*trial].clone()));
    let done = |point: &Point, score: &Score| match search.watcher {
        None => Ok(()),
        Some(watcher) => {
            let score = Score { rows: part, ..score.clone() };
            let trial = Trial { params: point.parameters.clone(), gamma: point.gamma, score };
            // Held while the watcher writes: points are told one at a time.
            let mut leader = leader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let best = leader.as_ref().is_none_or(|l| compare(&trial, l, state.select, state.options).is_lt());
            let done = counter.fetch_add(1, Atomic::Relaxed) + 1;
            watcher(&Finished { trial: &trial, best, done, planned })?;
            if best {
                *leader = Some(trial);
            }
            Ok(())
        }
    };
    let judged = evaluator.evaluate(&task, &done)?;
    let from = state.trials.len();
    for (point, judged) in points.iter().zip(judged) {
        state.add(point, Judged { score: Score { rows: part, ..judged.score }, ..judged });
    }
    state.rounds.push(PastRound { points, from, near: near.map(|(trial, _)| trial) });
    state.resumed += resumed;
    Ok(())
}

/// `γ` as the options say, for these rows.
fn settled_gamma(options: &TrainOptions, rows: &Matrix<'_>) -> Option<f64> {
    gamma_of(with_gamma(options.kernel, options.gamma, rows, None))
}
