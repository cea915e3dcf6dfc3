//! The rows of a search, cut into what a point learns from and what it is judged by.

use super::{Search, Select, check_selection};
use crate::calibration::{Unseen, calibrate};
use crate::control::Control;
use crate::data::{Dataset, Examples, Labels, Matrix, Scaling, folds, train_test, unusable};
use crate::metrics::{Metric, Predictions};
use crate::model::UnseenBy;
use crate::train::{TrainOptions, check_options, check_rows, check_width, present_classes, row_weights};
use crate::{Error, Result};

/// Rows to learn from and rows to be judged by, as positions in the data.
pub(super) struct Split {
    pub train: Vec<usize>,
    pub test: Vec<usize>,
}

/// The rows that have weight, and how every point is judged.
pub(super) struct Job<'a> {
    /// Where the rows come from, for messages.
    pub name: &'a str,
    pub rows: Matrix<'a>,
    /// Where they stand among all rows.
    pub kept: Vec<usize>,
    pub labels: Labels,
    /// Row weights as given; class weights are settled on the rows a model learns from.
    pub given_weights: Vec<f64>,
    /// Row weights times class weights, by which errors and losses count.
    pub weights: Vec<f64>,
    pub classes: Vec<String>,
    /// Class of each row among `classes`.
    pub codes: Vec<u32>,
    /// One for each fold of each repeat, the same for every point; for leave-one-out a single one without test rows.
    pub splits: Vec<Split>,
    /// Which part these rows are of those the model will be fitted on.
    pub share: f64,
    /// What points are compared by, if not by their errors.
    pub metric: Option<Metric>,
    pub options: &'a TrainOptions,
    pub control: Control<'a>,
}

impl<'a> Job<'a> {
    pub fn new(
        data: Examples<'a>,
        weights: Option<&[f64]>,
        options: &'a TrainOptions,
        control: Control<'a>,
    ) -> Result<Self> {
        check_options(options)?;
        check_rows(data.name, data.rows)?;
        check_width(data.name, data.rows.cols())?;
        let settled = row_weights(data.name, data.labels, weights, &options.class_weight)?;
        let kept: Vec<usize> = (0..settled.len()).filter(|&i| settled[i] > 0.0).collect();
        let rows = if kept.len() == settled.len() { data.rows.view() } else { data.rows.select(&kept) };
        let labels = data.labels.select(&kept);
        let (classes, codes) = present_classes(&labels);
        if classes.len() < 2 {
            return Err(unusable(data.name, "a search needs rows of at least two classes"));
        }
        let given_weights = kept.iter().map(|&i| weights.map_or(1.0, |w| w[i])).collect();
        let weights = kept.iter().map(|&i| settled[i]).collect();
        let splits = Vec::new();
        let name = data.name;
        Ok(Self {
            name,
            rows,
            kept,
            labels,
            given_weights,
            weights,
            classes,
            codes,
            splits,
            share: 1.0,
            metric: None,
            options,
            control,
        })
    }

    /// The weight of all rows that the model will be fitted on.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum::<f64>() / self.share
    }

    /// Every row is left out in turn, without saying how.
    pub fn leave_one_out(&mut self) {
        self.splits = vec![Split { train: (0..self.codes.len()).collect(), test: Vec::new() }];
    }

    /// Stratified folds, the same for every point.
    pub fn cross_validate(&mut self, count: usize, repeats: usize) -> Result<()> {
        let m = self.codes.len();
        if count < 2 || count > m {
            return Err(Error::parameter("folds", count, format!("a whole number from 2 to the {m} rows")));
        }
        let seed = self.options.settings.seed;
        for repeat in 0..repeats {
            for test in folds(&self.labels, count, seed, repeat as u64) {
                let mut left = vec![true; m];
                test.iter().for_each(|&i| left[i] = false);
                let train: Vec<usize> = (0..m).filter(|&i| left[i]).collect();
                let first = train.first().map(|&i| self.codes[i]);
                if train.iter().all(|&i| Some(self.codes[i]) == first) {
                    let reason = "cross-validation needs at least two rows of each of two classes";
                    return Err(unusable(self.name, reason));
                }
                self.splits.push(Split { train, test });
            }
        }
        Ok(())
    }

    /// The chosen rows as a data set, with their weights as given.
    pub fn part(&self, rows: &[usize]) -> (Dataset, Vec<f64>) {
        let data = Dataset::new(self.name, self.rows.select(rows), Some(self.labels.select(rows)));
        (data, rows.iter().map(|&i| self.given_weights[i]).collect())
    }

    /// What a metric says of rows that were left out: its cost, which is no number where these rows have no such figure.
    pub fn cost(&self, predictions: &Predictions<'_>) -> Option<f64> {
        let metric = self.metric?;
        let probabilities = if metric.needs_probabilities() { Some(self.probabilities(predictions)) } else { None };
        let predictions = Predictions { probabilities: probabilities.as_deref(), ..*predictions };
        Some(metric.of(&predictions).map_or(f64::NAN, |value| metric.cost(value)))
    }

    /// The probabilities of rows that were left out, by the slope and offset that suit them best.
    fn probabilities(&self, predictions: &Predictions<'_>) -> Vec<f64> {
        let (rows, scores) = (predictions.truth.len(), predictions.scores.unwrap_or_default());
        let unseen = Unseen {
            scores: scores.to_vec(),
            columns: scores.len() / rows.max(1),
            codes: predictions
                .truth
                .iter()
                .map(|&code| Some(code).filter(|&c| (c as usize) < predictions.classes))
                .collect(),
            weights: predictions.weights.map_or_else(|| vec![1.0; rows], <[f64]>::to_vec),
            classes: predictions.classes,
            by: UnseenBy::LeaveOneOut,
        };
        let calibration = calibrate(&unseen);
        (0..rows).flat_map(|i| calibration.probabilities(unseen.row(i))).collect()
    }

    /// All rows, scaled as the final model will see them.
    pub fn scaled(&self) -> Matrix<'_> {
        match self.options.scaling {
            Some(kind) => Scaling::fit(kind, &self.rows, Some(&self.weights)).apply(&self.rows),
            None => self.rows.view(),
        }
    }

    /// How many label vectors there are: one, or with more than two classes each class against all others.
    pub fn columns(&self) -> usize {
        if self.classes.len() == 2 { 1 } else { self.classes.len() }
    }

    /// The label vector of a column.
    pub fn signs(&self, codes: &[u32], column: usize) -> Vec<f64> {
        let positive = if self.classes.len() == 2 { 1 } else { column as u32 };
        codes.iter().map(|&code| if code == positive { 1.0 } else { -1.0 }).collect()
    }

    /// The problem of a split: scaling and class weights come from its training rows alone.
    pub fn fold_data(&self, split: &Split) -> Result<FoldData> {
        let code = |&i: &usize| self.codes[i];
        let (data, given) = self.part(&split.train);
        let labels = data.labels.as_ref().ok_or_else(|| unusable(&data.name, "it has no labels"))?;
        let weights = row_weights(&data.name, labels, Some(&given), &self.options.class_weight)?;
        let test = self.rows.select(&split.test);
        let (rows, test) = match self.options.scaling {
            Some(kind) => {
                let scaling = Scaling::fit(kind, &data.rows, Some(&weights));
                (scaling.apply_owned(data.rows), scaling.apply_owned(test))
            }
            None => (data.rows, test),
        };
        Ok(FoldData {
            rows,
            codes: split.train.iter().map(code).collect(),
            weights,
            given,
            test,
            test_codes: split.test.iter().map(code).collect(),
            test_weights: split.test.iter().map(|&i| self.weights[i]).collect(),
            test_given: split.test.iter().map(|&i| self.given_weights[i]).collect(),
        })
    }
}

/// The rows of a split: those to learn from and those a point is judged by.
pub(super) struct FoldData {
    pub rows: Matrix<'static>,
    pub codes: Vec<u32>,
    pub weights: Vec<f64>,
    /// Row weights as given, by which metrics count.
    pub given: Vec<f64>,
    pub test: Matrix<'static>,
    pub test_codes: Vec<u32>,
    pub test_weights: Vec<f64>,
    pub test_given: Vec<f64>,
}

/// Does work on what points are judged by, and the number of its rows: folds or each row left out, of about so many rows.
pub(super) fn with_job<T>(
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
