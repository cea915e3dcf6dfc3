//! How good predictions are against the truth: accuracy beside the majority's, precision and recall, areas under curves,
//! losses of probabilities. Figures are those of scikit-learn's functions of the same names.

use crate::data::Labels;
use crate::margins::mean;
use crate::names::named;
use crate::{Advice, Error, Result};
use serde::{Deserialize, Serialize, Serializer};
use std::str::FromStr;

/// One figure that says how good predictions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The share of the rows whose class was predicted.
    Accuracy,
    /// The mean over the classes of the share of their rows that was found.
    BalancedAccuracy,
    /// `2 · precision · recall / (precision + recall)`
    F1,
    /// Of the rows predicted as a class, the share that is of it.
    Precision,
    /// Of the rows of a class, the share that was found.
    Recall,
    /// The probability that a row of a class is scored above one of another class, ties counted half.
    Auc,
    /// `Σ (R_n − R_{n−1}) P_n` over the thresholds: the mean precision along the recall.
    AveragePrecision,
    /// `−mean ln P(own class)`
    LogLoss,
    /// The mean squared error of the probabilities.
    Brier,
}

named!(Metric, "score", [
    Accuracy: "accuracy" "the share of the rows that is right",
    BalancedAccuracy: "balanced_accuracy" "the mean over the classes of the share that is right",
    F1: "f1" "the harmonic mean of precision and recall; of the larger label, with more classes the mean over them",
    Precision: "precision" "of the rows predicted as a class, the share that is of it",
    Recall: "recall" "of the rows of a class, the share that is found",
    Auc: "auc" "the area under the ROC curve; with more classes the mean of each against the others",
    AveragePrecision: "average_precision" "the mean precision along the recall",
    LogLoss: "log_loss" "the mean logarithmic loss of the probabilities",
    Brier: "brier" "the mean squared error of the probabilities",
]);

impl Metric {
    /// The metrics that a decision threshold changes.
    pub const OF_A_THRESHOLD: [Self; 5] =
        [Self::Accuracy, Self::BalancedAccuracy, Self::F1, Self::Precision, Self::Recall];

    /// Whether it is computed from probabilities.
    pub fn needs_probabilities(self) -> bool {
        matches!(self, Self::LogLoss | Self::Brier)
    }

    /// What is to be made small, zero at best: `1 − value`, or the value itself if that is a loss.
    pub fn cost(self, value: f64) -> f64 {
        if self.needs_probabilities() { value } else { 1.0 - value }
    }

    /// The value of this [`cost`](Self::cost).
    pub fn value_of(self, cost: f64) -> f64 {
        self.cost(cost)
    }

    /// The figure; `None` where these predictions have none.
    pub fn of(self, predictions: &Predictions<'_>) -> Option<f64> {
        if predictions.is_empty() {
            return None;
        }
        match self {
            Self::Auc => predictions.by_ranks(auc),
            Self::AveragePrecision => predictions.by_ranks(average_precision),
            Self::LogLoss => predictions.by_probabilities(surprise),
            Self::Brier => predictions.by_probabilities(squared_error),
            counted => Counts::of(predictions).metric(counted),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A decision threshold as a user asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThresholdChoice {
    /// This score.
    Value(f64),
    /// The one that is best by a metric, for rows left out.
    Best(Metric),
}

impl FromStr for ThresholdChoice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let words = Metric::OF_A_THRESHOLD.map(Metric::name).join(", ");
        let wrong = || Error::parameter("threshold", text, format!("a number, or one of {words}"));
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Self::Value(value)),
            Ok(_) => Err(wrong()),
            Err(_) => {
                let metric = text.parse().ok().filter(|metric| Metric::OF_A_THRESHOLD.contains(metric));
                metric.map(Self::Best).ok_or_else(wrong)
            }
        }
    }
}

/// Predictions beside the truth.
#[derive(Clone, Copy, Debug)]
pub struct Predictions<'a> {
    /// The number of classes that can be predicted.
    pub classes: usize,
    /// The class of each row; numbers from `classes` on stand for labels that can not be predicted.
    pub truth: &'a [u32],
    /// The class that was predicted.
    pub predicted: &'a [u32],
    /// Figures, row by row: of two classes one (for class 1) or two, else one a class.
    pub scores: Option<&'a [f64]>,
    /// Probabilities, row by row: of two classes one (of class 1) or two, else one a class.
    pub probabilities: Option<&'a [f64]>,
    /// How much each row counts; all 1 if `None`.
    pub weights: Option<&'a [f64]>,
}

impl Predictions<'_> {
    fn is_empty(&self) -> bool {
        self.truth.iter().enumerate().all(|(row, _)| self.weight(row) == 0.0)
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    fn knows_all_labels(&self) -> bool {
        self.truth.iter().all(|&code| (code as usize) < self.classes)
    }

    /// How high each row is scored for a class.
    fn column(&self, scores: &[f64], class: usize) -> Vec<f64> {
        match scores.len() / self.truth.len() {
            1 => scores.to_vec(),
            2 => scores.chunks_exact(2).map(|row| row[1] - row[0]).collect(),
            width => scores.chunks_exact(width).map(|row| row[class]).collect(),
        }
    }

    /// A figure of rows in order of their scores: of class 1 against class 0, or the mean of each class against the others.
    fn by_ranks(&self, figure: impl Fn(&[f64], &[bool], &[f64]) -> Option<f64>) -> Option<f64> {
        let scores = self.scores.filter(|_| self.knows_all_labels())?;
        let weights: Vec<f64> = (0..self.truth.len()).map(|row| self.weight(row)).collect();
        let one = |class: usize| {
            let positive: Vec<bool> = self.truth.iter().map(|&code| code as usize == class).collect();
            figure(&self.column(scores, class), &positive, &weights)
        };
        if self.classes == 2 {
            return one(1);
        }
        let figures: Vec<f64> = (0..self.classes).map(one).collect::<Option<_>>()?;
        Some(mean(&figures))
    }

    /// The mean over the rows of what the probabilities of a row and its class come to.
    fn by_probabilities(&self, figure: impl Fn(&[f64], usize) -> f64) -> Option<f64> {
        let probabilities = self.probabilities.filter(|_| self.knows_all_labels())?;
        let rows = probabilities.chunks_exact(probabilities.len() / self.truth.len());
        let (mut sum, mut total) = (0.0, 0.0);
        for (row, (p, &code)) in rows.zip(self.truth).enumerate() {
            sum += self.weight(row) * figure(p, code as usize);
            total += self.weight(row);
        }
        Some(sum / total)
    }
}

/// `−ln P(own class)`, no probability taken for less than the smallest step from one.
fn surprise(p: &[f64], own: usize) -> f64 {
    let p = match p {
        [p] if own == 0 => 1.0 - p,
        [p] => *p,
        p => p[own],
    };
    -p.clamp(f64::EPSILON, 1.0 - f64::EPSILON).ln()
}

/// `Σ_c (P(c) − [c = own])²`; of two classes half of it, which is `(P(1) − [1 = own])²`.
fn squared_error(p: &[f64], own: usize) -> f64 {
    match p {
        [p] | [_, p] => (p - own as f64).powi(2),
        p => p.iter().enumerate().map(|(class, p)| (p - f64::from(u8::from(class == own))).powi(2)).sum(),
    }
}

/// Rows of one score, the highest first: the weight of those that are positive and of those that are not.
fn tied(scores: &[f64], positive: &[bool], weights: &[f64]) -> Vec<(f64, f64, f64)> {
    let mut order: Vec<usize> = (0..scores.len()).filter(|&i| weights[i] > 0.0).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut groups: Vec<(f64, f64, f64)> = Vec::new();
    for i in order {
        let (yes, no) = if positive[i] { (weights[i], 0.0) } else { (0.0, weights[i]) };
        match groups.last_mut() {
            // Zero has two signs.
            Some(last) if last.0 == scores[i] => *last = (last.0, last.1 + yes, last.2 + no),
            _ => groups.push((scores[i], yes, no)),
        }
    }
    groups
}

/// The area under the ROC curve: the probability that a positive row is scored above another one, ties counted half. `None`
/// without rows of both kinds.
pub fn auc(scores: &[f64], positive: &[bool], weights: &[f64]) -> Option<f64> {
    let (mut above, mut below, mut area) = (0.0, 0.0, 0.0);
    for (_, yes, no) in tied(scores, positive, weights) {
        area += no * (above + 0.5 * yes);
        above += yes;
        below += no;
    }
    (above > 0.0 && below > 0.0).then(|| area / (above * below))
}

/// `Σ (R_n − R_{n−1}) P_n` over the thresholds `n` from the highest score down. `None` without positive rows.
pub fn average_precision(scores: &[f64], positive: &[bool], weights: &[f64]) -> Option<f64> {
    let (mut found, mut all, mut sum) = (0.0, 0.0, 0.0);
    for (_, yes, no) in tied(scores, positive, weights) {
        found += yes;
        all += yes + no;
        sum += yes * found / all;
    }
    (found > 0.0).then(|| sum / found)
}

/// Weights of rows by true and predicted class.
struct Counts {
    classes: usize,
    /// By true class, which may be none that can be predicted, then by predicted class.
    table: Vec<Vec<f64>>,
}

impl Counts {
    fn of(predictions: &Predictions<'_>) -> Self {
        let classes = predictions.classes;
        let labels = predictions.truth.iter().map(|&code| code as usize + 1).fold(classes, usize::max);
        let mut table = vec![vec![0.0; classes]; labels];
        for (row, (&truth, &predicted)) in predictions.truth.iter().zip(predictions.predicted).enumerate() {
            table[truth as usize][predicted as usize] += predictions.weight(row);
        }
        Self { classes, table }
    }

    fn of_class(&self, class: usize) -> f64 {
        self.table[class].iter().sum()
    }

    fn predicted_as(&self, class: usize) -> f64 {
        if class < self.classes { self.table.iter().map(|row| row[class]).sum() } else { 0.0 }
    }

    fn right(&self, class: usize) -> f64 {
        if class < self.classes { self.table[class][class] } else { 0.0 }
    }

    fn total(&self) -> f64 {
        self.table.iter().flatten().sum()
    }

    /// Classes that are there or are predicted.
    fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.table.len()).filter(|&class| self.of_class(class) > 0.0 || self.predicted_as(class) > 0.0)
    }

    fn precision(&self, class: usize) -> f64 {
        ratio(self.right(class), self.predicted_as(class))
    }

    fn recall(&self, class: usize) -> f64 {
        ratio(self.right(class), self.of_class(class))
    }

    fn f1(&self, class: usize) -> f64 {
        ratio(2.0 * self.right(class), self.of_class(class) + self.predicted_as(class))
    }

    fn majority(&self) -> f64 {
        let largest = (0..self.table.len()).map(|class| self.of_class(class)).fold(0.0, f64::max);
        largest / self.total()
    }

    fn metric(&self, metric: Metric) -> Option<f64> {
        let of_classes = |figure: &dyn Fn(usize) -> f64| match self.classes {
            2 => figure(1),
            _ => mean(&self.present().map(figure).collect::<Vec<_>>()),
        };
        Some(match metric {
            Metric::Accuracy => (0..self.classes).map(|class| self.right(class)).sum::<f64>() / self.total(),
            Metric::BalancedAccuracy => {
                let there = (0..self.table.len()).filter(|&class| self.of_class(class) > 0.0);
                mean(&there.map(|class| self.recall(class)).collect::<Vec<_>>())
            }
            Metric::F1 => of_classes(&|class| self.f1(class)),
            Metric::Precision => of_classes(&|class| self.precision(class)),
            Metric::Recall => of_classes(&|class| self.recall(class)),
            Metric::Auc | Metric::AveragePrecision | Metric::LogLoss | Metric::Brier => return None,
        })
    }
}

/// `0/0 = 0`, as scikit-learn has it.
fn ratio(part: f64, all: f64) -> f64 {
    if all > 0.0 { part / all } else { 0.0 }
}

/// Every figure there is; `None` where there are no scores, no probabilities, or not the labels it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// [`Metric::Accuracy`]
    pub accuracy: Option<f64>,
    /// The accuracy of predicting the most frequent of the true labels for every row.
    pub majority: Option<f64>,
    /// [`Metric::BalancedAccuracy`]
    pub balanced_accuracy: Option<f64>,
    /// [`Metric::F1`] of class 1, or the mean over more than two classes.
    pub f1: Option<f64>,
    /// [`Metric::Precision`], likewise.
    pub precision: Option<f64>,
    /// [`Metric::Recall`], likewise.
    pub recall: Option<f64>,
    /// [`Metric::Auc`]
    pub auc: Option<f64>,
    /// [`Metric::AveragePrecision`]
    pub average_precision: Option<f64>,
    /// [`Metric::LogLoss`]
    pub log_loss: Option<f64>,
    /// [`Metric::Brier`]
    pub brier: Option<f64>,
}

impl Figures {
    /// The figures of predictions.
    pub fn of(predictions: &Predictions<'_>) -> Self {
        if predictions.is_empty() {
            return Self::default();
        }
        let counts = Counts::of(predictions);
        let mut scores = Self { majority: Some(counts.majority()), ..Self::default() };
        for (metric, ..) in <Metric as crate::Named>::WORDS {
            *scores.place(*metric) = counts.metric(*metric).or_else(|| metric.of(predictions));
        }
        scores
    }

    fn place(&mut self, metric: Metric) -> &mut Option<f64> {
        match metric {
            Metric::Accuracy => &mut self.accuracy,
            Metric::BalancedAccuracy => &mut self.balanced_accuracy,
            Metric::F1 => &mut self.f1,
            Metric::Precision => &mut self.precision,
            Metric::Recall => &mut self.recall,
            Metric::Auc => &mut self.auc,
            Metric::AveragePrecision => &mut self.average_precision,
            Metric::LogLoss => &mut self.log_loss,
            Metric::Brier => &mut self.brier,
        }
    }

    /// One of them.
    pub fn get(mut self, metric: Metric) -> Option<f64> {
        *self.place(metric)
    }

    /// Each figure with its name, the majority's accuracy behind the accuracy.
    pub fn named(self) -> Vec<(&'static str, Option<f64>)> {
        let words = <Metric as crate::Named>::WORDS;
        let mut named: Vec<_> = words.iter().map(|(metric, word, _)| (*word, self.get(*metric))).collect();
        named.insert(1, ("majority", self.majority));
        named
    }

    /// Figure by figure what `figure` makes of those of several; `None` where one of them has none.
    pub fn over(all: &[Self], figure: impl Fn(&[f64]) -> f64) -> Self {
        let over = |get: &dyn Fn(&Self) -> Option<f64>| {
            let values: Option<Vec<f64>> = all.iter().map(get).collect();
            values.filter(|values| !values.is_empty()).map(|values| figure(&values))
        };
        let mut scores = Self { majority: over(&|scores| scores.majority), ..Self::default() };
        for (metric, ..) in <Metric as crate::Named>::WORDS {
            *scores.place(*metric) = over(&|scores| scores.get(*metric));
        }
        scores
    }
}

/// How one class fares.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassScores {
    /// The label.
    pub label: String,
    /// Rows that have it.
    pub rows: usize,
    /// Rows for which it was predicted.
    pub predicted: usize,
    /// [`Metric::Precision`]
    pub precision: f64,
    /// [`Metric::Recall`]
    pub recall: f64,
    /// [`Metric::F1`]
    pub f1: f64,
}

/// How predictions compare with the labels of the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of rows.
    pub rows: usize,
    /// Rows whose class was predicted.
    pub correct: usize,
    /// Labels of the rows that cannot be predicted; such rows count as wrong.
    pub unknown: Vec<String>,
    /// The labels of the rows of the confusion matrix: those that can be predicted, then the unknown ones.
    pub labels: Vec<String>,
    /// `confusion[t][p]`: number of rows of label `labels[t]` for which label `p` was predicted.
    pub confusion: Vec<Vec<usize>>,
    /// All figures.
    pub scores: Figures,
    /// The figures of each of `labels`.
    pub by_class: Vec<ClassScores>,
}

impl Evaluation {
    /// Compares what was predicted (positions among `classes`, with scores and probabilities as in [`Predictions`]) with the
    /// labels of the rows.
    pub fn new(
        classes: &[String],
        truth: &Labels,
        predicted: &[u32],
        scores: Option<&[f64]>,
        probabilities: Option<&[f64]>,
    ) -> Self {
        let (labels, truth) = codes_of(classes, truth);
        let predictions =
            Predictions { classes: classes.len(), truth: &truth, predicted, scores, probabilities, weights: None };
        let counts = Counts::of(&predictions);
        let class = |(class, label): (usize, &String)| ClassScores {
            label: label.clone(),
            rows: counts.of_class(class) as usize,
            predicted: counts.predicted_as(class) as usize,
            precision: counts.precision(class),
            recall: counts.recall(class),
            f1: counts.f1(class),
        };
        Self {
            rows: predicted.len(),
            correct: truth.iter().zip(predicted).filter(|(truth, predicted)| truth == predicted).count(),
            unknown: labels[classes.len()..].to_vec(),
            confusion: counts.table.iter().map(|row| row.iter().map(|n| *n as usize).collect()).collect(),
            scores: Figures::of(&predictions),
            by_class: labels.iter().enumerate().map(class).collect(),
            labels,
        }
    }
}

/// The classes followed by labels of the rows that are none of them, and each row's place among these.
pub fn codes_of(classes: &[String], truth: &Labels) -> (Vec<String>, Vec<u32>) {
    let known = truth.codes_in(classes);
    let mut labels = classes.to_vec();
    let mut unknown = vec![None; truth.names().len()];
    let code = |(known, &code): (Option<u32>, &u32)| {
        known.or(unknown[code as usize]).unwrap_or_else(|| {
            labels.push(truth.names()[code as usize].clone());
            *unknown[code as usize].insert(labels.len() as u32 - 1)
        })
    };
    let codes = known.into_iter().zip(truth.codes()).map(code).collect();
    (labels, codes)
}

/// The threshold `t` for which predicting class 1 where a score is above `t` makes a metric largest; among equals the one
/// nearest to zero.
pub fn best_threshold(metric: Metric, scores: &[f64], positive: &[bool], weights: &[f64]) -> Result<f64> {
    if !Metric::OF_A_THRESHOLD.contains(&metric) {
        let reason = format!("{metric} does not depend on the threshold of the decision");
        return Err(Error::conflict(reason, Advice::values("threshold", Metric::OF_A_THRESHOLD)));
    }
    let groups = tied(scores, positive, weights);
    let sum = |part: &dyn Fn(&(f64, f64, f64)) -> f64| groups.iter().map(part).sum::<f64>();
    let (yes, no) = (sum(&|g| g.1), sum(&|g| g.2));
    let (mut hits, mut alarms) = (0.0, 0.0);
    let (mut best, mut found) = (f64::NEG_INFINITY, 0.0f64);
    for place in 0..=groups.len() {
        let table = vec![vec![no - alarms, alarms], vec![yes - hits, hits]];
        let value = Counts { classes: 2, table }.metric(metric).unwrap_or(0.0);
        let threshold = between(place.checked_sub(1).map(|above| groups[above].0), groups.get(place).map(|g| g.0));
        // Rounding of sums is no reason to prefer a threshold far from zero.
        if value > best + 1e-12 || (value > best - 1e-12 && threshold.abs() < found.abs()) {
            (best, found) = (value.max(best), threshold);
        }
        if let Some((_, more, wrong)) = groups.get(place) {
            hits += more;
            alarms += wrong;
        }
    }
    Ok(found)
}

/// A number at or above `below` and under `above`: zero if it is there, else half-way.
fn between(above: Option<f64>, below: Option<f64>) -> f64 {
    match (above, below) {
        (Some(above), Some(below)) if below <= 0.0 && 0.0 < above => 0.0,
        (Some(above), Some(below)) => {
            let middle = 0.5 * below + 0.5 * above;
            if middle < above { middle.max(below) } else { below }
        }
        (None, Some(highest)) => highest.max(0.0),
        (Some(lowest), None) if lowest > 0.0 => 0.0,
        (Some(lowest), None) => lowest.next_down(),
        (None, None) => 0.0,
    }
}
