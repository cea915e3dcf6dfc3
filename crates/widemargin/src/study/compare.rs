//! Several machines on the same repeated random splits of one data set: the protocol of the papers' tables.

use super::evaluation::evaluate;
use super::statistics::{mean, paired_t_test, standard_deviation};
use crate::control::Control;
use crate::data::{Dataset, Labels, train_test};
use crate::margins::MarginStatistics;
use crate::train::{TrainOptions, train};
use crate::{Error, Result};
use serde::Serialize;
use std::time::Instant;

/// Differences less likely than this by chance count as real.
const SIGNIFICANCE: f64 = 0.05;

/// How machines are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Number of random splits.
    pub repeats: usize,
    /// Share of each class's rows to train on; the others are the test.
    pub train: f64,
    /// Position of the machine the others are tested against.
    pub reference: usize,
    /// Seed of the splits.
    pub seed: u64,
}

/// How a machine's accuracy compares with the reference's by the paired t-test at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// This is the reference.
    Reference,
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// No significant difference.
    Tie,
}

/// One machine on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The machine.
    pub machine: &'static str,
    /// Mean test accuracy.
    pub accuracy: f64,
    /// Standard deviation of the test accuracy over the splits.
    pub deviation: f64,
    /// Test accuracy on each split.
    pub accuracies: Vec<f64>,
    /// Against the reference.
    pub verdict: Verdict,
    /// `p` of the paired t-test against the reference.
    pub p: Option<f64>,
    /// Means over the splits of the smallest training margin, divided by `‖w‖`.
    pub margin_min: f64,
    /// The same of the mean training margin.
    pub margin_mean: f64,
    /// The same of the variance of the training margins, divided by `‖w‖²`.
    pub margin_variance: f64,
    /// The largest relative duality gap of any fit, for machines that have one.
    pub worst_gap: Option<f64>,
    /// Fits that ended at the limit on iterations.
    pub unconverged: usize,
    /// Mean time of a fit, in seconds.
    pub seconds: f64,
}

/// All machines on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The data set.
    pub dataset: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// Number of classes.
    pub classes: usize,
    /// The machines, in the order they were given.
    pub entries: Vec<Entry>,
}

/// One machine over all data sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overall {
    /// The machine.
    pub machine: &'static str,
    /// Mean of the mean test accuracies.
    pub accuracy: f64,
    /// Data sets on which it is significantly better than the reference.
    pub wins: usize,
    /// Data sets without a significant difference.
    pub ties: usize,
    /// Data sets on which it is significantly worse.
    pub losses: usize,
}

/// What one fit on one split gave.
struct Trial {
    accuracy: f64,
    margins: MarginStatistics,
    gap: Option<f64>,
    converged: bool,
    seconds: f64,
}

/// Trains and tests every machine on the same splits of the data.
pub fn compare(
    data: &Dataset,
    machines: &[TrainOptions],
    protocol: &Protocol,
    control: Control<'_>,
) -> Result<Comparison> {
    let labels = data.labels.as_ref().ok_or_else(|| unusable(data, "it has no labels"))?;
    let mut trials: Vec<Vec<Trial>> = machines.iter().map(|_| Vec::with_capacity(protocol.repeats)).collect();
    for repeat in 0..protocol.repeats {
        let (training, test) = split(data, labels, protocol, repeat)?;
        for (options, trials) in machines.iter().zip(&mut trials) {
            trials.push(try_out(options, &training, &test, control)?);
        }
    }
    let accuracies: Vec<Vec<f64>> = trials.iter().map(|t| t.iter().map(|t| t.accuracy).collect()).collect();
    let against = |m: usize| match m == protocol.reference {
        true => (Verdict::Reference, None),
        false => judge(&accuracies[m], &accuracies[protocol.reference]),
    };
    let entries = machines.iter().zip(&trials).enumerate();
    Ok(Comparison {
        dataset: data.name.clone(),
        rows: data.rows.rows(),
        features: data.rows.cols(),
        classes: labels.names().len(),
        entries: entries.map(|(m, (options, trials))| entry(options.machine.name(), trials, against(m))).collect(),
    })
}

/// Sums up several data sets; the machines must be the same, in the same order, in each.
pub fn overall(comparisons: &[Comparison]) -> Vec<Overall> {
    let machines = comparisons.first().map_or(0, |c| c.entries.len());
    let sum_up = |m: usize| {
        let entries: Vec<&Entry> = comparisons.iter().filter_map(|c| c.entries.get(m)).collect();
        let count = |verdict| entries.iter().filter(|e| e.verdict == verdict).count();
        Overall {
            machine: entries[0].machine,
            accuracy: mean(&entries.iter().map(|e| e.accuracy).collect::<Vec<_>>()),
            wins: count(Verdict::Better),
            ties: count(Verdict::Tie),
            losses: count(Verdict::Worse),
        }
    };
    (0..machines).map(sum_up).collect()
}

/// The training and test rows of one repeat.
fn split(data: &Dataset, labels: &Labels, protocol: &Protocol, repeat: usize) -> Result<(Dataset, Dataset)> {
    let (training, test) = train_test(labels, protocol.train, protocol.seed, repeat as u64);
    if test.is_empty() {
        return Err(unusable(data, "no rows are left for the test"));
    }
    let part = |rows: &[usize]| Dataset {
        name: data.name.clone(),
        rows: data.rows.select(rows),
        labels: Some(labels.select(rows)),
        features: data.features.clone(),
    };
    Ok((part(&training), part(&test)))
}

fn try_out(options: &TrainOptions, training: &Dataset, test: &Dataset, control: Control<'_>) -> Result<Trial> {
    let start = Instant::now();
    let (model, outcome) = train(training, None, options, control)?;
    let seconds = start.elapsed().as_secs_f64();
    let predicted = model.predict(&test.rows)?;
    let truth = test.labels.as_ref().ok_or_else(|| unusable(test, "it has no labels"))?;
    let weights = vec![1.0; outcome.margins.len()];
    Ok(Trial {
        accuracy: evaluate(&model.labels, &predicted, truth).accuracy,
        margins: MarginStatistics::new(&outcome.margins, &weights).normalised(outcome.norm),
        gap: outcome.gap,
        converged: outcome.stop.converged(),
        seconds,
    })
}

fn judge(accuracies: &[f64], reference: &[f64]) -> (Verdict, Option<f64>) {
    match paired_t_test(accuracies, reference) {
        Some(test) if test.p < SIGNIFICANCE && test.difference > 0.0 => (Verdict::Better, Some(test.p)),
        Some(test) if test.p < SIGNIFICANCE => (Verdict::Worse, Some(test.p)),
        test => (Verdict::Tie, test.map(|t| t.p)),
    }
}

fn entry(machine: &'static str, trials: &[Trial], (verdict, p): (Verdict, Option<f64>)) -> Entry {
    let all = |value: fn(&Trial) -> f64| trials.iter().map(value).collect::<Vec<f64>>();
    let accuracies = all(|t| t.accuracy);
    Entry {
        machine,
        accuracy: mean(&accuracies),
        deviation: standard_deviation(&accuracies),
        accuracies,
        verdict,
        p,
        margin_min: mean(&all(|t| t.margins.min)),
        margin_mean: mean(&all(|t| t.margins.mean)),
        margin_variance: mean(&all(|t| t.margins.variance)),
        worst_gap: trials.iter().filter_map(|t| t.gap).reduce(f64::max),
        unconverged: trials.iter().filter(|t| !t.converged).count(),
        seconds: mean(&all(|t| t.seconds)),
    }
}

fn unusable(data: &Dataset, reason: &str) -> Error {
    Error::Data { file: data.name.clone(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(machine: &'static str, accuracies: &[f64], reference: Option<&[f64]>) -> Entry {
        let margins = MarginStatistics::new(&[1.0, 2.0], &[1.0, 1.0]);
        let trial =
            |&accuracy: &f64| Trial { accuracy, margins: margins.clone(), gap: None, converged: true, seconds: 0.0 };
        let trials: Vec<Trial> = accuracies.iter().map(trial).collect();
        entry(machine, &trials, reference.map_or((Verdict::Reference, None), |r| judge(accuracies, r)))
    }

    #[test]
    fn verdicts_and_totals() {
        let reference = [0.80, 0.82, 0.81, 0.79, 0.80];
        let better = [0.84, 0.85, 0.85, 0.83, 0.85];
        let similar = [0.79, 0.83, 0.80, 0.80, 0.80];
        let one = Comparison {
            dataset: "one".into(),
            rows: 2,
            features: 1,
            classes: 2,
            entries: vec![
                named("a", &better, Some(&reference)),
                named("b", &similar, Some(&reference)),
                named("c", &reference, None),
            ],
        };
        let verdicts: Vec<Verdict> = one.entries.iter().map(|e| e.verdict).collect();
        assert_eq!(verdicts, [Verdict::Better, Verdict::Tie, Verdict::Reference]);
        assert_eq!(judge(&reference, &better).0, Verdict::Worse);
        let totals = overall(&[one.clone(), one]);
        assert_eq!((totals[0].wins, totals[0].ties, totals[0].losses), (2, 0, 0));
        assert!((totals[2].accuracy - mean(&reference)).abs() < 1e-15);
        assert!(overall(&[]).is_empty());
    }
}
