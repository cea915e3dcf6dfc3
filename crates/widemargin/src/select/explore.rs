//! The way of a search through its points: rounds from the best point so far to its neighbours.

use super::convex::{self, Convex};
use super::general::General;
use super::job::Job;
use super::judge::Score;
use super::lines::{Judgement, LinesElsewhere};
use super::plan::Lattice;
use super::{Finished, Search, Select, Trial, key};
use crate::Result;
use crate::machine::Parameters;
use crate::solver::Start;
use crate::train::TrainOptions;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::sync::atomic::{AtomicUsize, Ordering as Atomic};

/// A point of the grid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    /// Position on each axis.
    pub(super) positions: Vec<usize>,
    pub(super) parameters: Parameters,
    pub(super) gamma: Option<f64>,
}

/// A point's score, and where its fits ended; `None` if they were not made again because the score was known.
pub(super) struct Judged {
    pub(super) score: Score,
    pub(super) ends: Option<Vec<Start>>,
}

/// Points that are judged together. What is found out about one may depend on the others (it starts where a neighbour
/// ended, it is dropped because others are better), so all are here, also those whose score is known.
pub(super) struct Round<'a> {
    pub(super) points: &'a [Point],
    pub(super) known: &'a [Option<Score>],
    /// A point judged before that is close to these, and where its fits ended.
    pub(super) near: Option<(&'a Point, &'a [Start])>,
    /// A point whose fits are wanted though its score is known.
    pub(super) wanted: Option<usize>,
}

impl Round<'_> {
    /// Whether the point at this place has to be fitted.
    pub(super) fn fits(&self, place: usize) -> bool {
        self.known[place].is_none() || self.wanted == Some(place)
    }

    /// Whether a point of this width has to be fitted.
    pub(super) fn fits_width(&self, gamma: Option<f64>) -> bool {
        (0..self.points.len()).any(|place| self.points[place].gamma == gamma && self.fits(place))
    }
}

/// So many points, or lines of points, are judged at the same time; what they teach about points that cannot win any more
/// counts from the next wave on, so that it does not depend on the number of threads. Eight keep as many threads busy; more would
/// be judged in vain.
pub(super) const WAVE: usize = 8;

/// Told of a point that is finished.
pub(super) type Done<'a> = &'a (dyn Fn(&Point, &Score) -> Result<()> + Sync);

/// How points are judged.
pub(super) trait Evaluator: Sync {
    /// Judges the points of a round, in their order. Each that was not known is told to `done` as it is finished. The
    /// scores do not depend on which of them were known.
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>>;
    /// Problems solved so far.
    fn fits(&self) -> usize;
}

/// The better of two points comes first: by what is selected, then by the other measure, then the smoother model.
pub(super) fn compare(a: &Trial, b: &Trial, select: Select, options: &TrainOptions) -> Ordering {
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
pub(super) struct SearchState<'a> {
    pub(super) trials: Vec<Trial>,
    /// Positions of the points in `trials`.
    pub(super) seen: Vec<Vec<usize>>,
    pub(super) rounds: Vec<PastRound>,
    pub(super) best: Option<Best>,
    pub(super) select: Select,
    pub(super) options: &'a TrainOptions,
    /// Problems solved, and points that were known before.
    pub(super) fits: usize,
    pub(super) resumed: usize,
    /// Whether points share matrices and start from their neighbours.
    pub(super) shared: bool,
    /// On how many rows, if that is a part of those that decide.
    pub(super) part: Option<usize>,
    /// Points that were judged on such a part before these.
    pub(super) before: usize,
}

/// The best point so far, and where its fits ended, if they were made.
pub(super) struct Best {
    pub(super) trial: usize,
    ends: Option<Vec<Start>>,
}

/// A round that is over.
pub(super) struct PastRound {
    points: Vec<Point>,
    /// Where its points begin among the trials.
    from: usize,
    /// The best point before it.
    near: Option<usize>,
}

impl<'a> SearchState<'a> {
    pub(super) fn new(select: Select, options: &'a TrainOptions, shared: bool) -> Self {
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
    pub(super) fn point(&self, trial: usize) -> Point {
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
pub(super) fn evaluator<'e>(job: &'e Job<'_>, search: &Search<'e>, how: Judgement) -> Result<Box<dyn Evaluator + 'e>> {
    Ok(match search.judges {
        Some(judges) => Box::new(LinesElsewhere::new(judges, how, job.splits.len())),
        None if how.shared => Box::new(Convex::new(job, how)?),
        None => Box::new(General::new(job)),
    })
}

/// Rounds of points until the lattice has no more to offer, on so many rows, which may be a part of those that decide.
pub(super) fn explore<'a>(
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
pub(super) fn round(
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
