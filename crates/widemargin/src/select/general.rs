//! Points judged through [`train`]: any machine, any number of classes.

use super::Select;
use super::explore::{Done, Evaluator, Judged, Point, Round, WAVE};
use super::job::{Job, Split};
use super::judge::{JudgedRows, Leaders, Score};
use super::lines::Line;
use crate::kernel::Kernel;
use crate::machine::Parameters;
use crate::metrics::{Predictions, codes_of};
use crate::model::Model;
use crate::train::{Gamma, TrainOptions, train};
use crate::{Advice, Error, Result};
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fit of its own for each point and split.
pub(super) struct General<'a> {
    job: &'a Job<'a>,
    fits: AtomicUsize,
}

impl<'a> General<'a> {
    pub fn new(job: &'a Job<'a>) -> Self {
        Self { job, fits: AtomicUsize::new(0) }
    }

    /// The options of a point. Folds or points are fitted at the same time, each with its part of the memory.
    fn options(&self, point: &Point) -> TrainOptions {
        let mut options = point.options(self.job.options);
        options.parameters = point.judged_by(self.job);
        if options.kernel != Kernel::Linear {
            options.settings.memory /= self.job.splits.len().max(WAVE) as u64;
        }
        options
    }

    fn left_out(&self, point: &Point) -> Result<Score> {
        let all: Vec<usize> = (0..self.job.codes.len()).collect();
        let (data, weights) = self.job.part(&all);
        self.fits.fetch_add(1, Ordering::Relaxed);
        let (_, outcome) = train(&data, Some(&weights), &self.options(point), self.job.control)?;
        let Some(margins) = outcome.loo_margins else {
            let name = self.job.options.machine.name();
            return Err(Error::conflict(
                format!("{name} has no closed-form leave-one-out margins here (too many rows, or not converged)"),
                Advice::values("select", [Select::Cv]),
            ));
        };
        let scores: Vec<f64> = margins
            .iter()
            .zip(&self.job.codes)
            .map(|(margin, &code)| if code == 1 { *margin } else { -margin })
            .collect();
        let cost = self.job.cost(&Predictions {
            classes: 2,
            truth: &self.job.codes,
            predicted: &scores.iter().map(|score| u32::from(*score > 0.0)).collect::<Vec<_>>(),
            scores: Some(&scores),
            probabilities: None,
            weights: Some(&self.job.given_weights),
        });
        Ok(Score::left_out(&JudgedRows { margins, weights: self.job.weights.clone(), cost }))
    }

    /// One fold: its test rows under the model of the others.
    fn fold(&self, options: &TrainOptions, split: &Split) -> Result<JudgedRows> {
        let (data, weights) = self.job.part(&split.train);
        self.fits.fetch_add(1, Ordering::Relaxed);
        let (model, _) = train(&data, Some(&weights), options, self.job.control)?;
        test_rows(self.job, &model, &split.test)
    }

    /// With `leaders`, fold after fold as long as the point may still be among the two best.
    fn judge(&self, point: &Point, leaders: Option<Leaders>) -> Result<Score> {
        let splits = &self.job.splits;
        if splits.iter().all(|split| split.test.is_empty()) {
            return self.left_out(point);
        }
        let mut options = self.options(point);
        // However few rows a fold has: 26 classes of 96 rows take a hundred times as long to the last digit.
        options.settings.asked = Some(options.settings.tol);
        let fold = |number: usize| self.fold(&options, &splits[number]);
        let folds = match leaders {
            None => (0..splits.len()).into_par_iter().map(fold).collect::<Result<_>>()?,
            Some(leaders) => leaders.folds_in_turn(splits.len(), fold, JudgedRows::cost)?,
        };
        Ok(Score::of_folds(&folds, splits.len()))
    }

    /// The points of a line.
    pub fn line(&self, line: &Line, done: Done<'_>) -> Result<Vec<Judged>> {
        line.points().map(|(point, known)| self.known_or_judged(point, known, line.limit(), done)).collect()
    }

    fn known_or_judged(
        &self,
        point: &Point,
        known: Option<&Score>,
        leaders: Option<Leaders>,
        done: Done<'_>,
    ) -> Result<Judged> {
        // No fit starts where another ended.
        let ends = Some(Vec::new());
        if let Some(score) = known {
            return Ok(Judged { score: score.clone(), ends });
        }
        let score = match self.judge(point, leaders) {
            Err(Error::Numeric { .. }) => Score::failed(),
            score => score?,
        };
        done(point, &score)?;
        Ok(Judged { score, ends })
    }
}

impl Evaluator for General<'_> {
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>> {
        let judge = |place: usize, leaders: Option<Leaders>| {
            self.known_or_judged(&round.points[place], round.known[place].as_ref(), leaders, done)
        };
        let places: Vec<usize> = (0..round.points.len()).collect();
        if places.len() < WAVE {
            return places.iter().map(|&place| judge(place, None)).collect();
        }
        let mut leaders = Leaders::NOBODY;
        let mut found: Vec<Judged> = Vec::with_capacity(places.len());
        for wave in places.chunks(WAVE) {
            let judged: Vec<Judged> =
                wave.par_iter().map(|&place| judge(place, Some(leaders))).collect::<Result<_>>()?;
            judged.iter().for_each(|judged| leaders.add(&judged.score));
            found.extend(judged);
        }
        Ok(found)
    }

    fn fits(&self) -> usize {
        self.fits.load(Ordering::Relaxed)
    }
}

impl Point {
    /// The options to train with at this point.
    pub(super) fn options(&self, options: &TrainOptions) -> TrainOptions {
        let gamma = self.gamma.map_or(options.gamma, Gamma::Value);
        TrainOptions { parameters: self.parameters.clone(), gamma, ..options.clone() }
    }

    /// The parameters with which some of the rows stand for all: each row counts as much as it will among all of them,
    /// so that what weighs a mean shrinks with their number.
    pub(super) fn judged_by(&self, job: &Job<'_>) -> Parameters {
        let mut parameters = self.parameters.clone();
        for name in job.options.machine.weighs_means() {
            parameters.set(name, parameters.number(name) * job.share);
        }
        parameters
    }
}

/// Rows under a model that did not see them. A margin is by how much the score of a row's class exceeds the best of the
/// others, above zero if and only if it is predicted.
fn test_rows(job: &Job<'_>, model: &Model, rows: &[usize]) -> Result<JudgedRows> {
    let scores = model.scores(&job.rows.select(rows))?;
    let predicted = model.classes(&scores);
    let labels = job.labels.select(rows);
    let known = labels.codes_in(&model.labels);
    let margins = model.margins(&scores, &labels);
    let row = |place: usize| match (margins[place], known[place]) {
        (Some(margin), Some(class)) if class == predicted[place] => margin.max(f64::MIN_POSITIVE),
        (Some(margin), _) => margin.min(0.0),
        // A class that no training row of this fold has cannot be predicted.
        (None, _) => -1.0,
    };
    let of = |weights: &[f64]| -> Vec<f64> { rows.iter().map(|&i| weights[i]).collect() };
    let cost = job.metric.and_then(|_| {
        job.cost(&Predictions {
            classes: model.labels.len(),
            truth: &codes_of(&model.labels, &labels).1,
            predicted: &predicted,
            scores: Some(&model.class_scores(&scores)),
            probabilities: None,
            weights: Some(&of(&job.given_weights)),
        })
    });
    Ok(JudgedRows { margins: (0..rows.len()).map(row).collect(), weights: of(&job.weights), cost })
}
