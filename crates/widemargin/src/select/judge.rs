//! How good a point is: errors and losses of rows that were left out.

use super::Select;
use crate::Result;
use crate::margins::{mean, standard_deviation, weighted_mean};
use serde::{Deserialize, Serialize};

/// The slopes tried by [`logistic_loss`]: margins of the machines here lie around 1, and of slopes a factor of two apart the best is
/// near the best of all.
const SLOPES: [f64; 5] = [0.5, 1.0, 2.0, 4.0, 8.0];

/// `min over a few slopes A of mean ln(1 + exp(−A γ_i))`, each row counted by its weight: a smooth stand-in for the
/// error of rows whose margins `γ_i` come from models that did not see them.
pub fn logistic_loss(margins: &[f64], weights: &[f64]) -> f64 {
    SLOPES.iter().map(|&slope| loss_at(margins, weights, slope)).fold(f64::INFINITY, f64::min)
}

fn loss_at(margins: &[f64], weights: &[f64], slope: f64) -> f64 {
    weighted_mean(margins.iter().map(|g| softplus(-slope * g)).zip(weights.iter().copied()))
}

/// `ln(1 + eᵗ)`
pub(super) fn softplus(t: f64) -> f64 {
    t.max(0.0) + (-t.abs()).exp().ln_1p()
}

/// The share of the weight on margins at or below zero.
pub fn error(margins: &[f64], weights: &[f64]) -> f64 {
    weighted_mean(margins.iter().map(|g| f64::from(u8::from(*g <= 0.0))).zip(weights.iter().copied()))
}

/// On some hundred rows the standard error of a loss is 3 to 7 percent of it: a fiftieth of that is nothing.
const SLIGHT: f64 = 1e-3;

/// What a search found out about one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The error of rows left out: the mean over the folds, or the leave-one-out error.
    pub error: f64,
    /// The logistic loss of their margins.
    pub loss: f64,
    /// Standard deviation over the folds of the error; for leave-one-out, the standard error of the loss.
    pub spread: f64,
    /// The error in each fold; empty for leave-one-out.
    pub folds: Vec<f64>,
    /// Whether the point was given up: folds are missing because it could not win any more, and its error is a lower bound; or others
    /// were better on a part of the [`rows`](Self::rows).
    #[serde(default)]
    pub dropped: bool,
    /// If points are compared by a metric: its [`Metric::cost`](crate::metrics::Metric::cost), the mean over the folds or of all rows left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// If the point was judged on a part of the rows only: on how many. It is [`dropped`](Self::dropped) then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
}

/// The rows a fold, or leave-one-out, judges a point by.
pub(super) struct JudgedRows {
    pub margins: Vec<f64>,
    pub weights: Vec<f64>,
    /// If points are compared by a metric, its cost; not a number where these rows have no such figure.
    pub cost: Option<f64>,
}

impl JudgedRows {
    pub fn error(&self) -> f64 {
        error(&self.margins, &self.weights)
    }

    /// What points are compared by.
    pub fn cost(&self) -> f64 {
        self.cost.unwrap_or_else(|| self.error())
    }
}

impl Score {
    /// The score of leave-one-out margins.
    pub(super) fn left_out(JudgedRows { margins, weights, cost }: &JudgedRows) -> Self {
        let loss = logistic_loss(margins, weights);
        let slope =
            SLOPES.into_iter().min_by(|a, b| loss_at(margins, weights, *a).total_cmp(&loss_at(margins, weights, *b)));
        let squares = margins.iter().map(|g| (softplus(-slope.unwrap_or(1.0) * g) - loss).powi(2));
        let spread = (weighted_mean(squares.zip(weights.iter().copied())) / margins.len().max(1) as f64).sqrt();
        let error = error(margins, weights);
        Self { error, loss, spread, folds: Vec::new(), dropped: false, cost: *cost, rows: None }.or_failed()
    }

    /// The score of the test rows of each of `count` folds, or of those that are known.
    pub(super) fn of_folds(folds: &[JudgedRows], count: usize) -> Self {
        if folds.len() < count { Self::unfinished(folds, count) } else { Self::cross_validated(folds) }
    }

    /// The score of the margins of the test rows of each fold.
    fn cross_validated(folds: &[JudgedRows]) -> Self {
        let errors: Vec<f64> = folds.iter().map(JudgedRows::error).collect();
        let costs: Option<Vec<f64>> = folds.iter().map(|fold| fold.cost).collect();
        let (margins, weights): (Vec<&[f64]>, Vec<&[f64]>) =
            folds.iter().map(|fold| (fold.margins.as_slice(), fold.weights.as_slice())).unzip();
        Self {
            error: mean(&errors),
            loss: logistic_loss(&margins.concat(), &weights.concat()),
            spread: standard_deviation(costs.as_ref().unwrap_or(&errors)),
            folds: errors,
            dropped: false,
            cost: costs.map(|costs| mean(&costs)),
            rows: None,
        }
        .or_failed()
    }

    /// The score of a point of which only these of `count` folds are known.
    fn unfinished(folds: &[JudgedRows], count: usize) -> Self {
        let errors: Vec<f64> = folds.iter().map(JudgedRows::error).collect();
        let costs: f64 = folds.iter().filter_map(|fold| fold.cost).sum();
        Self {
            error: errors.iter().sum::<f64>() / count as f64,
            loss: f64::MAX,
            spread: standard_deviation(&errors),
            folds: errors,
            dropped: true,
            cost: folds.first().and_then(|fold| fold.cost).map(|_| costs / count as f64),
            rows: None,
        }
    }

    /// Margins beyond all numbers are a breakdown too: a log has no word for what is not finite.
    fn or_failed(self) -> Self {
        let numbers = [self.error, self.loss, self.spread, self.cost.unwrap_or(0.0)];
        let finite = numbers.iter().chain(&self.folds).all(|number| number.is_finite());
        if finite { self } else { Self::failed() }
    }

    /// The score of a point at which the numbers broke down.
    pub fn failed() -> Self {
        Self { error: 1.0, loss: f64::MAX, spread: 0.0, folds: Vec::new(), dropped: false, cost: None, rows: None }
    }

    /// By what points are compared, and then among equals; `by_metric`: where points have a cost.
    pub(super) fn measures(&self, select: Select, by_metric: bool) -> [f64; 2] {
        match select {
            _ if by_metric => [self.measured(), self.loss],
            Select::LooLoss => [self.loss, self.error],
            Select::Loo | Select::Cv => [self.error, self.loss],
        }
    }

    /// Whether this differs from another score by less than rows drawn anew would change either.
    pub(super) fn is_near(&self, other: &Self, select: Select) -> bool {
        let by_metric = self.cost.or(other.cost).is_some();
        let [here, there] = [self, other].map(|score| score.measures(select, by_metric)[0]);
        (here - there).abs() <= SLIGHT * there.abs() && (self.loss - other.loss).abs() <= SLIGHT * other.loss
    }

    /// Whether this is worse than another score by more than the spread of that.
    pub(super) fn exceeds(&self, other: &Self, select: Select) -> bool {
        let by_metric = self.cost.or(other.cost).is_some();
        let [here, there] = [self, other].map(|score| score.measures(select, by_metric)[0]);
        here - there > other.spread
    }

    /// What is to be made small: the metric's cost, or the error.
    pub(super) fn measured(&self) -> f64 {
        self.cost.unwrap_or(if self.loss == f64::MAX && !self.dropped { f64::MAX } else { self.error })
    }
}

/// The two smallest errors, or costs, of points judged in full.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Leaders {
    first: f64,
    second: f64,
}

impl Leaders {
    /// Numbers that a line of JSON has a word for.
    pub const NOBODY: Self = Self { first: f64::MAX, second: f64::MAX };

    pub fn add(&mut self, score: &Score) {
        let cost = score.measured();
        if !score.dropped && cost < self.second {
            (self.first, self.second) = if cost < self.first { (cost, self.first) } else { (self.first, cost) };
        }
    }

    /// Whether a point with this error, or a larger one, comes after both. Equals do not: a little is left for rounding.
    fn beat(&self, error: f64) -> bool {
        error > self.second + 1e-9
    }

    /// What `fit` makes of fold after fold, as long as the point may still be among the two best.
    pub fn folds_in_turn<T>(
        &self,
        count: usize,
        fit: impl Fn(usize) -> Result<T>,
        cost: impl Fn(&T) -> f64,
    ) -> Result<Vec<T>> {
        let (mut fits, mut costs) = (Vec::with_capacity(count), 0.0);
        while fits.len() < count && !self.beat(costs / count as f64) {
            let fold = fit(fits.len())?;
            costs += cost(&fold);
            fits.push(fold);
        }
        Ok(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses() {
        let (margins, weights) = ([1.0, -1.0, 3.0], [1.0, 1.0, 2.0]);
        let by_hand = |a: f64| {
            let term = |g: f64| (1.0 + (-a * g).exp()).ln();
            (term(1.0) + term(-1.0) + 2.0 * term(3.0)) / 4.0
        };
        let best = SLOPES.map(by_hand).into_iter().fold(f64::INFINITY, f64::min);
        assert!((logistic_loss(&margins, &weights) - best).abs() < 1e-12);
        assert_eq!(error(&margins, &weights), 0.25);
        assert!((softplus(800.0) - 800.0).abs() < 1e-9 && softplus(-800.0) == 0.0);
        let fold = |margins: &[f64], weights: &[f64]| JudgedRows {
            margins: margins.to_vec(),
            weights: weights.to_vec(),
            cost: None,
        };
        let score = Score::cross_validated(&[fold(&[1.0, -1.0], &[1.0; 2]), fold(&[2.0], &[3.0])]);
        assert_eq!((score.error, score.folds.as_slice()), (0.25, [0.5, 0.0].as_slice()));
        assert!((score.spread - 0.125f64.sqrt()).abs() < 1e-12);
        for margin in [f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Score::left_out(&fold(&[1.0, margin], &[1.0; 2])), Score::failed());
            assert_eq!(Score::cross_validated(&[fold(&[1.0, margin], &[1.0; 2])]), Score::failed());
        }
        // By a metric: its mean counts, and a fold that has no such figure fails the point.
        let by = |cost: f64| JudgedRows { cost: Some(cost), ..fold(&[1.0], &[1.0]) };
        assert_eq!(Score::cross_validated(&[by(0.5), by(0.25)]).cost, Some(0.375));
        assert_eq!(Score::cross_validated(&[by(0.5), by(f64::NAN)]), Score::failed());
        assert_eq!(Score::unfinished(&[by(0.5)], 2).measured(), 0.25);
        assert_eq!(Score::failed().measured(), f64::MAX);
    }
}
