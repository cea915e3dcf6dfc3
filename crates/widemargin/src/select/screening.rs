//! Points are judged on a part of the rows at first, and only the best of them on all.
//!
//! A point over a kernel costs the cube of the rows: on two fifths of them a sixteenth. What a part leaves uncertain is which of the
//! best few is the best, and whether more rows ask for a narrower kernel; that is then found out on all rows.

use super::explore::{SearchState, compare, evaluator, round};
use super::job::Job;
use super::judge::Score;
use super::lines::Judgement;
use super::plan::Lattice;
use super::{Plan, Search, SearchRows, Select, Trial};
use crate::Result;

/// The part of the rows. In tables of 200 points on 500 to 1,000 rows of fifteen sets what was then chosen had, by its loss on all rows, on
/// average 0.014 standard errors more than the best of the table; with a quarter of the rows it was 0.18.
const PART: (usize, usize) = (2, 5);
/// Of fewer rows a search takes some tenths of a second, and a part of them tells little.
const LEAST: usize = 600;
/// The part has at least so many rows, and so many of the smallest class: with fewer, which point is best is chance.
const LEAST_PART: usize = 300;
const LEAST_OF_CLASS: usize = 20;
/// So many points are judged on all rows, before those at the widths beside the best of them: with two of them what was chosen was at 0.05
/// standard errors instead of 0.014, with four no nearer.
const FINALISTS: usize = 3;

/// How many of the `rows` of a job every point is judged on at first; `None`: on all. Only a search that was left to itself does so.
pub(super) fn part_of(job: &Job<'_>, search: &Search<'_>, rows: usize) -> Option<usize> {
    let free = matches!(search.plan, Plan::Staged) && search.rows == SearchRows::Auto;
    let of_class = |class: u32| job.codes.iter().filter(|code| **code == class).count();
    let smallest = (0..job.classes.len() as u32).map(of_class).min().unwrap_or(0).max(1);
    let part = (rows * PART.0 / PART.1).max(LEAST_PART).max((LEAST_OF_CLASS * rows).div_ceil(smallest));
    (free && rows >= LEAST && part <= rows / 2).then_some(part)
}

/// What all rows of the job say of the best points of a search on a part of them.
pub(super) fn judge_best<'a>(
    first: SearchState<'a>,
    job: &Job<'_>,
    lattice: &Lattice,
    search: &Search<'_>,
    (select, rows): (Select, usize),
) -> Result<SearchState<'a>> {
    let how = Judgement { select, rows, shared: first.shared, keep_starts: false };
    let evaluator = evaluator(job, search, how)?;
    let mut state = SearchState { before: first.trials.len(), ..SearchState::new(select, first.options, first.shared) };
    let finalists = first.different(FINALISTS).into_iter().map(|trial| first.point(trial));
    round(finalists.collect(), evaluator.as_ref(), search, &mut state)?;
    let further = |near: Vec<Vec<usize>>, state: &mut SearchState<'_>| {
        let new = near.into_iter().filter(|at| !state.seen.contains(at));
        let points = new.map(|at| lattice.point(&at)).collect::<Result<_>>()?;
        round(points, evaluator.as_ref(), search, state)
    };
    if let Some((at, here)) = state.leader() {
        further(lattice.widths_beside(&at), &mut state)?;
        // Where a width is better by more than chance, other parameters may be the best ones too.
        if let Some((at, _)) = state.leader().filter(|(_, there)| here.exceeds(there, select)) {
            further(lattice.neighbours(&at, 1), &mut state)?;
        }
    }
    state.fits = evaluator.fits();
    Ok(first.followed_by(state))
}

impl SearchState<'_> {
    /// Where the best point lies, and its score.
    fn leader(&self) -> Option<(Vec<usize>, Score)> {
        let trial = self.best.as_ref()?.trial;
        Some((self.seen[trial].clone(), self.trials[trial].score.clone()))
    }

    /// The best trials, of those at one width whose scores are all but equal the first only: what they differ in does not matter here.
    fn different(&self, count: usize) -> Vec<usize> {
        let trials = &self.trials;
        let mut ranking: Vec<usize> = (0..trials.len()).collect();
        ranking.sort_by(|&a, &b| compare(&trials[a], &trials[b], self.select, self.options));
        let same = |a: &Trial, b: &Trial| a.gamma == b.gamma && a.score.is_near(&b.score, self.select);
        let mut found: Vec<usize> = Vec::new();
        for trial in ranking {
            if found.len() < count && !found.iter().any(|&other| same(&trials[trial], &trials[other])) {
                found.push(trial);
            }
        }
        found
    }

    /// The points of both, each by its last score; those that are not among the later ones were given up.
    fn followed_by(mut self, later: Self) -> Self {
        self.trials.iter_mut().for_each(|trial| trial.score.dropped = true);
        for (trial, at) in later.trials.into_iter().zip(later.seen) {
            match self.seen.iter().position(|seen| *seen == at) {
                Some(place) => self.trials[place] = trial,
                None => {
                    self.trials.push(trial);
                    self.seen.push(at);
                }
            }
        }
        Self { fits: self.fits + later.fits, resumed: self.resumed + later.resumed, ..self }
    }
}
