//! Lines of points: the pieces of a search that are judged by themselves, here or by others.

use super::convex::{Convex, by_width};
use super::explore::{Done, Evaluator, Judged, Point, Round, WAVE, compare};
use super::general::General;
use super::job::with_job;
use super::judge::{Leaders, Score};
use super::{Search, Select, Trial};
use crate::control::Control;
use crate::data::Examples;
use crate::solver::Start;
use crate::train::TrainOptions;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Points of one width, each of which starts where the one before ended. It says all that its scores depend on beside rows, weights,
/// options and search, so that [`judge_lines`] can judge it anywhere, and again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    points: Vec<LinePoint>,
    /// Where the fits of the first point start.
    starts: Vec<Start>,
    /// What points must not exceed; `None`: none is dropped.
    limit: Option<Leaders>,
    /// The point, of those whose score is known, that is fitted nevertheless because others start where it ends.
    wanted: Option<usize>,
    how: Judgement,
}

/// A point of a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LinePoint {
    point: Point,
    known: Option<Score>,
}

/// How the points of a search are judged.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Judgement {
    pub select: Select,
    /// On how many rows.
    pub rows: usize,
    /// Whether points share matrices and start from their neighbours.
    pub shared: bool,
    /// Whether later lines start where these end.
    pub keep_starts: bool,
}

/// What was found out about a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgedLine {
    scores: Vec<Score>,
    /// The point that others may start from, the wanted or the best one, and where its fits ended.
    ends: Option<(usize, Vec<Start>)>,
    /// Problems solved for it, or, of several lines of one width, for all of them and told by the last.
    fits: usize,
}

/// Whoever judges lines elsewhere, by [`judge_lines`] with the same rows, weights, options and search.
pub trait Judges: Sync {
    /// What there is to say of each line, in their order.
    fn judge(&self, lines: &[Line]) -> Result<Vec<JudgedLine>>;
}

/// Judges lines of a search over these rows, as [`tune_examples`](super::tune_examples) would. Lines of one width that follow each
/// other share its matrices.
pub fn judge_lines(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    search: &Search<'_>,
    lines: &[Line],
    control: Control<'_>,
) -> Result<Vec<JudgedLine>> {
    let Some(Line { how, .. }) = lines.first() else { return Ok(Vec::new()) };
    with_job(data, weights, options, search, (how.select, how.rows), control, |job, _| {
        let judged = |line: &Line, judged: Vec<Judged>, fits: usize| JudgedLine::new(line, judged, fits, options);
        if !how.shared {
            let each = |line: &Line| {
                let general = General::new(job);
                Ok(judged(line, general.line(line, UNTOLD)?, general.fits()))
            };
            return lines.iter().map(each).collect();
        }
        let (convex, mut found) = (Convex::new(job, *how)?, Vec::new());
        for same in lines.chunk_by(|a, b| a.gamma() == b.gamma()) {
            let before = convex.fits();
            let points = convex.lines(same, UNTOLD)?;
            found.extend(same.iter().zip(points).map(|(line, points)| judged(line, points, 0)));
            if let Some(last) = found.last_mut() {
                last.fits = convex.fits() - before;
            }
        }
        Ok(found)
    })
}

/// Nobody is told of a point that is finished.
const UNTOLD: Done<'static> = &|_, _| Ok(());

impl Line {
    /// The points in their order, and of each its score if that is known.
    pub(super) fn points(&self) -> impl Iterator<Item = (&Point, Option<&Score>)> {
        self.points.iter().map(|point| (&point.point, point.known.as_ref()))
    }

    /// The width of the points.
    pub(super) fn gamma(&self) -> Option<f64> {
        self.points.first().and_then(|first| first.point.gamma)
    }

    pub(super) fn starts(&self) -> &[Start] {
        &self.starts
    }

    pub(super) fn limit(&self) -> Option<Leaders> {
        self.limit
    }

    /// How many points, from the first on, have to be fitted: each starts where the one before ended.
    pub(super) fn fitted(&self) -> usize {
        let fits = |(place, point): (usize, &LinePoint)| point.known.is_none() || self.wanted == Some(place);
        self.points.iter().enumerate().rposition(fits).map_or(0, |last| last + 1)
    }
}

impl Round<'_> {
    /// The line of the points at these places.
    pub(super) fn line(&self, places: &[usize], limit: Option<Leaders>, how: Judgement) -> Line {
        let points: Vec<LinePoint> = places
            .iter()
            .map(|&place| LinePoint { point: self.points[place].clone(), known: self.known[place].clone() })
            .collect();
        let same_width = |(near, _): &(&Point, &[Start])| points.first().is_some_and(|p| p.point.gamma == near.gamma);
        let starts = self.near.filter(same_width).map_or(Vec::new(), |(_, ends)| ends.to_vec());
        let wanted = self.wanted.and_then(|wanted| places.iter().position(|&place| place == wanted));
        Line { points, starts, limit, wanted, how }
    }
}

impl JudgedLine {
    fn new(line: &Line, judged: Vec<Judged>, fits: usize, options: &TrainOptions) -> Self {
        let trial = |place: usize| {
            let Point { parameters, gamma, .. } = &line.points[place].point;
            Trial { params: parameters.clone(), gamma: *gamma, score: judged[place].score.clone() }
        };
        let trials: Vec<Trial> = (0..judged.len()).map(trial).collect();
        let best = (0..trials.len()).min_by(|&a, &b| compare(&trials[a], &trials[b], line.how.select, options));
        let (scores, mut ends): (Vec<Score>, Vec<Option<Vec<Start>>>) =
            judged.into_iter().map(|judged| (judged.score, judged.ends)).unzip();
        let kept = line.wanted.or(best).filter(|_| line.how.keep_starts);
        let ends = kept.and_then(|place| Some((place, ends[place].take()?)));
        Self { scores, ends, fits }
    }

    /// What is known of each point of the line, if the answer is one to it.
    fn judged(self, line: &Line) -> Result<Vec<Judged>> {
        if self.scores.len() != line.points.len() {
            return Err(Error::Usage("a line of points was judged by a search of another kind".into()));
        }
        let mut ends = self.ends;
        let judged = |(place, score): (usize, Score)| {
            let own = ends.take_if(|(kept, _)| *kept == place).map(|(_, ends)| ends);
            Judged { score, ends: if line.how.keep_starts { own } else { Some(Vec::new()) } }
        };
        Ok(self.scores.into_iter().enumerate().map(judged).collect())
    }
}

/// Points judged by others: as many lines at a time as do not depend on each other.
pub(super) struct LinesElsewhere<'a> {
    judges: &'a dyn Judges,
    how: Judgement,
    folds: usize,
    fits: AtomicUsize,
}

impl<'a> LinesElsewhere<'a> {
    pub fn new(judges: &'a dyn Judges, how: Judgement, folds: usize) -> Self {
        Self { judges, how, folds, fits: AtomicUsize::new(0) }
    }

    /// The places of each line, and which lines are judged at the same time; `true`: points are dropped by what lines before
    /// have taught, so that it is the same waves of the same lines as on one machine.
    fn waves(&self, points: &[Point]) -> Vec<(bool, Vec<Vec<usize>>)> {
        let groups: Vec<Vec<Vec<usize>>> = if self.how.shared {
            let places = |chain: Vec<(usize, &Point)>| chain.into_iter().map(|(place, _)| place).collect();
            by_width(points).into_iter().map(|(_, chains)| chains.into_iter().map(places).collect()).collect()
        } else {
            vec![(0..points.len()).map(|place| vec![place]).collect()]
        };
        let mut waves: Vec<(bool, Vec<Vec<usize>>)> = Vec::new();
        for lines in groups {
            if lines.len() >= WAVE && self.folds > 1 {
                waves.extend(lines.chunks(WAVE).map(|wave| (true, wave.to_vec())));
            } else if let Some((false, last)) = waves.last_mut() {
                last.extend(lines);
            } else {
                waves.push((false, lines));
            }
        }
        waves
    }

    /// What others say of lines; those whose scores are known are not asked about.
    fn ask(&self, lines: &[Line]) -> Result<Vec<Vec<Judged>>> {
        let asked: Vec<Line> = lines.iter().filter(|line| line.fitted() > 0).cloned().collect();
        let mut answers = if asked.is_empty() { Vec::new() } else { self.judges.judge(&asked)? }.into_iter();
        let answer = |line: &Line| {
            let known = || line.points().filter_map(|(_, known)| known.cloned()).collect();
            let answer = match line.fitted() {
                0 => JudgedLine { scores: known(), ends: None, fits: 0 },
                _ => answers.next().ok_or_else(|| Error::Usage("a line of points was not judged".into()))?,
            };
            self.fits.fetch_add(answer.fits, Ordering::Relaxed);
            answer.judged(line)
        };
        lines.iter().map(answer).collect()
    }
}

impl Evaluator for LinesElsewhere<'_> {
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>> {
        let mut found: Vec<Option<Judged>> = round.points.iter().map(|_| None).collect();
        let mut leaders = Leaders::NOBODY;
        for (drops, wave) in self.waves(round.points) {
            let limit = drops.then_some(leaders);
            let lines: Vec<Line> = wave.iter().map(|places| round.line(places, limit, self.how)).collect();
            for (places, judged) in wave.iter().zip(self.ask(&lines)?) {
                for (&place, judged) in places.iter().zip(judged) {
                    if round.known[place].is_none() {
                        done(&round.points[place], &judged.score)?;
                    }
                    leaders.add(&judged.score);
                    found[place] = Some(judged);
                }
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn fits(&self) -> usize {
        self.fits.load(Ordering::Relaxed)
    }
}
