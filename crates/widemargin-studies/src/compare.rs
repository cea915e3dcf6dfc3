//! Several machines on the same repeated random splits of one data set: the protocol of the papers' tables.

use crate::contestant::Contestant;
use crate::record::{Record, key};
use crate::statistics::{holm, mean, paired_t_test, ranks, signed_rank_test, standard_deviation};
use crate::trial::{Trial, labels, split};
use rayon::prelude::*;
use serde::Serialize;
use std::sync::atomic::{AtomicUsize, Ordering};
use widemargin::control::Control;
use widemargin::data::Examples;
use widemargin::data::{Dataset, Labels};
use widemargin::machine::Parameters;
use widemargin::metrics::Figures;
use widemargin::select::data_hash;
use widemargin::{Error, Result};

/// Differences less likely than this by chance count as real.
const SIGNIFICANCE: f64 = 0.05;

/// How the differences of two machines over the splits are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The corrected resampled t-test of Nadeau and Bengio: the splits share rows.
    Corrected,
    /// The plain paired t-test, as in the papers.
    Paired,
}

impl Test {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrected => "corrected resampled t-test",
            Self::Paired => "paired t-test",
        }
    }

    /// `ρ` of [`paired_t_test`] where this share of the rows is trained on.
    fn correction(self, train: f64) -> f64 {
        match self {
            Self::Corrected => (1.0 - train) / train,
            Self::Paired => 0.0,
        }
    }
}

/// How machines are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Number of random splits.
    pub repeats: usize,
    /// Share of each class's rows to train on; the others are the test.
    pub train: f64,
    /// Position of the machine the others are tested against.
    pub reference: usize,
    /// How the others are tested against it.
    pub test: Test,
    /// Seed of the splits.
    pub seed: u64,
    /// Whether a machine that cannot work on a data set gets an empty entry instead of ending the comparison.
    pub keep_going: bool,
}

/// How a machine's accuracy compares with the reference's by a [`Test`] at 95 %.
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
    /// There is a difference, but no test of it: fewer than three splits, or all differences are equal.
    Untested,
    /// There is nothing to compare.
    Missing,
}

/// A point that was chosen on one split.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// The machine's parameters.
    pub params: Parameters,
    /// The kernel's `γ`, if it has one.
    pub gamma: Option<f64>,
}

/// One machine on one data set.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// The machine, as it is called in the comparison.
    pub machine: String,
    /// Mean test accuracy; not a number (`null`) if there is none.
    pub accuracy: f64,
    /// Standard deviation of the test accuracy over the splits.
    pub deviation: f64,
    /// Test accuracy on each split.
    pub accuracies: Vec<f64>,
    /// Means over the splits of all scores of the test rows.
    pub scores: Figures,
    /// Against the reference.
    pub verdict: Verdict,
    /// `p` of the test against the reference.
    pub p: Option<f64>,
    /// The same after [`adjust`].
    pub p_adjusted: Option<f64>,
    /// Means over the splits of the smallest training margin, divided by `‖w‖`.
    pub margin_min: f64,
    /// The same of the mean training margin.
    pub margin_mean: f64,
    /// The same of the variance of the training margins, divided by `‖w‖²`.
    pub margin_variance: f64,
    /// The training margins of the first split, divided by `‖w‖`, ascending; of more than a thousand, quantiles in equal steps.
    pub curve: Vec<f64>,
    /// The largest relative duality gap of any fit, for machines that have one.
    pub worst_gap: Option<f64>,
    /// Fits that ended at the limit on iterations.
    pub unconverged: usize,
    /// The largest number of points that was tried on a split.
    pub points: usize,
    /// Mean number of problems solved to choose among them.
    pub fits: f64,
    /// Mean time of a search, in seconds.
    pub search_seconds: f64,
    /// Mean time of a fit, in seconds.
    pub seconds: f64,
    /// What was chosen on each split.
    pub chosen: Vec<Chosen>,
    /// Why there are no figures.
    pub failure: Option<String>,
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
    pub machine: String,
    /// Mean of the mean test accuracies, over the data sets on which every machine has figures.
    pub accuracy: f64,
    /// Mean rank by accuracy over the same data sets, 1 the best; equals share their ranks.
    pub rank: f64,
    /// Data sets on which it is significantly better than the reference.
    pub wins: usize,
    /// Data sets without a significant difference.
    pub ties: usize,
    /// Data sets on which it is significantly worse.
    pub losses: usize,
    /// `p` of Wilcoxon's signed-rank test of its mean accuracies against the reference's, over the same data sets; `None` from
    /// fewer than six that differ.
    pub p: Option<f64>,
    /// The same after Holm's correction over the machines.
    pub p_adjusted: Option<f64>,
}

/// How far a comparison is.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// Results there are, those from the record included.
    pub done: usize,
    /// Those from the record.
    pub known: usize,
    /// Results there will be.
    pub planned: usize,
}

/// Told of every result as it is finished.
pub type Watch<'a> = &'a (dyn Fn(&Standing) + Sync);

/// A result, or why there is none.
type Attempt = std::result::Result<Trial, String>;

/// A data set with those who compete on it.
pub struct Match {
    /// The data set.
    pub data: Dataset,
    /// Who competes on it.
    pub machines: Vec<Contestant>,
}

/// Tunes, trains and tests every machine on the same splits of the data. Results are taken from the record where it has
/// them, and added to it as they come.
pub fn compare(
    data: &Dataset,
    machines: &[Contestant],
    protocol: &Protocol,
    record: Option<&Record>,
    watch: Option<Watch<'_>>,
    control: Control<'_>,
) -> Result<Comparison> {
    let labels = labels(data)?;
    let field = Field { data, labels, machines, protocol, record, hash: data_hash(Examples::of(data)?, None) };
    let cells: Vec<(usize, usize)> =
        (0..protocol.repeats).flat_map(|repeat| (0..machines.len()).map(move |m| (repeat, m))).collect();
    let known: Vec<Option<Trial>> = cells.iter().map(|&(repeat, m)| field.known(repeat, m)).collect();
    let missing: Vec<(usize, usize)> =
        cells.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(cell, _)| *cell).collect();
    let (planned, before) = (cells.len(), cells.len() - missing.len());
    let counter = AtomicUsize::new(before);
    let tell = |done: usize| {
        if let Some(watch) = watch {
            watch(&Standing { done, known: before, planned });
        }
    };
    tell(before);
    let run = |&(repeat, m): &(usize, usize)| {
        let attempt = field.run(repeat, m, control)?;
        tell(counter.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(attempt)
    };
    let mut fresh = missing.par_iter().map(run).collect::<Result<Vec<Attempt>>>()?.into_iter();
    let mut attempts: Vec<Vec<Attempt>> = machines.iter().map(|_| Vec::with_capacity(protocol.repeats)).collect();
    for (&(_, m), known) in cells.iter().zip(known) {
        attempts[m].extend(known.map(Ok).or_else(|| fresh.next()));
    }
    let trials: Vec<std::result::Result<Vec<Trial>, String>> =
        attempts.into_iter().map(|attempts| attempts.into_iter().collect()).collect();
    let reference = trials[protocol.reference].as_ref().ok().map(|trials| accuracies(trials));
    let correction = protocol.test.correction(protocol.train);
    let entry = |(m, trials): (usize, &std::result::Result<Vec<Trial>, String>)| match trials {
        Err(reason) => Entry::without(&machines[m].name, reason),
        Ok(trials) => {
            let verdict = match &reference {
                _ if m == protocol.reference => (Verdict::Reference, None),
                Some(reference) => judge(&accuracies(trials), reference, correction),
                None => (Verdict::Missing, None),
            };
            Entry::new(&machines[m].name, trials, verdict)
        }
    };
    Ok(Comparison {
        dataset: data.name.clone(),
        rows: data.rows.rows(),
        features: data.rows.cols(),
        classes: labels.names().len(),
        entries: trials.iter().enumerate().map(entry).collect(),
    })
}

/// One data set with its contestants.
struct Field<'a> {
    data: &'a Dataset,
    labels: &'a Labels,
    machines: &'a [Contestant],
    protocol: &'a Protocol,
    record: Option<&'a Record>,
    hash: u64,
}

impl Field<'_> {
    fn key(&self, repeat: usize, m: usize) -> String {
        key(self.hash, &self.machines[m], self.protocol, repeat)
    }

    fn known(&self, repeat: usize, m: usize) -> Option<Trial> {
        self.record.and_then(|record| record.find(&self.key(repeat, m)).cloned())
    }

    fn run(&self, repeat: usize, m: usize, control: Control<'_>) -> Result<Attempt> {
        let Protocol { train, seed, keep_going, .. } = *self.protocol;
        let (training, test) = split(self.data, self.labels, train, seed, repeat)?;
        // Many run at the same time: their steps are nobody's news.
        let control = Control { observer: None, ..control };
        let mut trial = match self.machines[m].try_out(&training, &test, control) {
            Err(error) if keep_going && !matches!(error, Error::Interrupted | Error::Io { .. }) => {
                return Ok(Err(error.to_string()));
            }
            trial => trial?,
        };
        if repeat > 0 {
            trial.curve.clear();
        }
        if let Some(record) = self.record {
            record.add(self.key(repeat, m), &self.data.name, &self.machines[m].name, repeat, &trial)?;
        }
        Ok(Ok(trial))
    }
}

/// A rough guess of the processor seconds that [`compare`] would take: one fit of each machine on a few hundred rows is
/// timed and counted up to all fits of all splits that are not in the record.
pub fn expected_seconds(
    data: &Dataset,
    machines: &[Contestant],
    protocol: &Protocol,
    record: Option<&Record>,
    control: Control<'_>,
) -> Result<f64> {
    let labels = labels(data)?;
    let field = Field { data, labels, machines, protocol, record, hash: data_hash(Examples::of(data)?, None) };
    let mut seconds = 0.0;
    for (m, machine) in machines.iter().enumerate() {
        let missing = (0..protocol.repeats).filter(|&repeat| field.known(repeat, m).is_none()).count();
        if missing > 0 {
            seconds += missing as f64 * machine.expected_seconds(data, labels, protocol.train, control)?;
        }
    }
    Ok(seconds)
}

/// A machine's mean accuracy on a data set, if it has one, and how it compares with the reference's.
pub(crate) type Figure = (Option<f64>, Verdict);

/// Holm's correction over all tests of all data sets: `p_adjusted`, and verdicts by it. Of many comparisons some are below 5 %
/// by chance alone.
pub fn adjust(comparisons: &mut [Comparison]) {
    let mut tested: Vec<&mut Entry> =
        comparisons.iter_mut().flat_map(|c| &mut c.entries).filter(|entry| entry.p.is_some()).collect();
    let adjusted = holm(&tested.iter().filter_map(|entry| entry.p).collect::<Vec<_>>());
    for (entry, p) in tested.iter_mut().zip(adjusted) {
        entry.p_adjusted = Some(p);
        if p >= SIGNIFICANCE {
            entry.verdict = Verdict::Tie;
        }
    }
}

/// Groups of machines, by position from the best average rank to the worst, none of which differs significantly from another of
/// its group: signed-rank tests of all pairs over the data sets with figures of every machine, with Holm's correction. Only groups that
/// are no part of another are named.
pub fn groups(comparisons: &[Comparison]) -> Vec<Vec<usize>> {
    let figures: Vec<Vec<Figure>> = comparisons.iter().map(Comparison::figures).filter(|row| is_whole(row)).collect();
    let machines = figures.first().map_or(0, Vec::len);
    let means = |m: usize| figures.iter().filter_map(|row| row[m].0).collect::<Vec<f64>>();
    let pairs: Vec<(usize, usize)> = (0..machines).flat_map(|a| (a + 1..machines).map(move |b| (a, b))).collect();
    // Where nothing can be tested, nothing differs.
    let p =
        holm(&pairs.iter().map(|&(a, b)| signed_rank_test(&means(a), &means(b)).unwrap_or(1.0)).collect::<Vec<_>>());
    let differ = |a: usize, b: usize| {
        pairs.iter().position(|&pair| pair == (a.min(b), a.max(b))).is_some_and(|place| p[place] < SIGNIFICANCE)
    };
    let totals = overall(comparisons, 0);
    let mut order: Vec<usize> = (0..machines).collect();
    order.sort_by(|&a, &b| totals[a].rank.total_cmp(&totals[b].rank));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut reached = 0;
    for from in 0..machines {
        let fits = |to: usize| order[from..to].iter().all(|&m| !differ(m, order[to]));
        let to = (from + 1..machines).take_while(|&to| fits(to)).last().unwrap_or(from);
        if to > from && to + 1 > reached {
            groups.push(order[from..=to].to_vec());
            reached = to + 1;
        }
    }
    groups
}

/// Sums up several data sets; the machines must be the same, in the same order, in each.
pub fn overall(comparisons: &[Comparison], reference: usize) -> Vec<Overall> {
    let machines: Vec<String> =
        comparisons.first().map_or(Vec::new(), |c| c.entries.iter().map(|e| e.machine.clone()).collect());
    let figures: Vec<Vec<Figure>> = comparisons.iter().map(Comparison::figures).collect();
    let whole: Vec<bool> = figures.iter().map(|row| is_whole(row)).collect();
    totals(&machines, &figures, &whole, reference)
}

/// Whether every machine has a figure.
pub(crate) fn is_whole(row: &[Figure]) -> bool {
    row.iter().all(|(mean, _)| mean.is_some())
}

/// Sums up the figures of these machines, a row a data set: means, ranks and the signed-rank test over the rows marked as whole,
/// verdicts over all.
pub(crate) fn totals(machines: &[String], figures: &[Vec<Figure>], whole: &[bool], reference: usize) -> Vec<Overall> {
    let rows = || figures.iter().zip(whole).filter(|(_, whole)| **whole).map(|(row, _)| row);
    let means = |m: usize| rows().filter_map(|row| row[m].0).collect::<Vec<f64>>();
    // The best first: ranks of what is missing to one.
    let missing = |row: &Vec<Figure>| row.iter().map(|(mean, _)| 1.0 - mean.unwrap_or(0.0)).collect::<Vec<f64>>();
    let ranked: Vec<Vec<f64>> = rows().map(|row| ranks(&missing(row))).collect();
    let sum_up = |(m, machine): (usize, &String)| {
        let count = |verdict| figures.iter().filter(|row| row[m].1 == verdict).count();
        Overall {
            machine: machine.clone(),
            accuracy: mean(&means(m)),
            rank: mean(&ranked.iter().map(|ranks| ranks[m]).collect::<Vec<_>>()),
            wins: count(Verdict::Better),
            ties: count(Verdict::Tie),
            losses: count(Verdict::Worse),
            p: if m == reference { None } else { signed_rank_test(&means(m), &means(reference)) },
            p_adjusted: None,
        }
    };
    let mut totals: Vec<Overall> = machines.iter().enumerate().map(sum_up).collect();
    let adjusted = holm(&totals.iter().filter_map(|total| total.p).collect::<Vec<_>>());
    totals.iter_mut().filter(|total| total.p.is_some()).zip(adjusted).for_each(|(t, p)| t.p_adjusted = Some(p));
    totals
}

impl Comparison {
    /// The figure of each machine.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        self.entries.iter().map(|e| (e.failure.is_none().then_some(e.accuracy), e.verdict)).collect()
    }
}

fn accuracies(trials: &[Trial]) -> Vec<f64> {
    trials.iter().map(|trial| trial.accuracy).collect()
}

fn judge(accuracies: &[f64], reference: &[f64], correction: f64) -> (Verdict, Option<f64>) {
    match paired_t_test(accuracies, reference, correction) {
        None if (mean(accuracies) - mean(reference)).abs() > 1e-12 => (Verdict::Untested, None),
        Some(test) if test.p < SIGNIFICANCE && test.difference > 0.0 => (Verdict::Better, Some(test.p)),
        Some(test) if test.p < SIGNIFICANCE => (Verdict::Worse, Some(test.p)),
        test => (Verdict::Tie, test.map(|t| t.p)),
    }
}

impl Entry {
    fn new(machine: &str, trials: &[Trial], (verdict, p): (Verdict, Option<f64>)) -> Self {
        let all = |value: fn(&Trial) -> f64| mean(&trials.iter().map(value).collect::<Vec<f64>>());
        let accuracies = accuracies(trials);
        Self {
            machine: machine.into(),
            accuracy: mean(&accuracies),
            deviation: standard_deviation(&accuracies),
            accuracies,
            scores: Figures::over(&trials.iter().map(|t| t.scores).collect::<Vec<_>>(), mean),
            verdict,
            p,
            p_adjusted: None,
            margin_min: all(|t| t.margins.min),
            margin_mean: all(|t| t.margins.mean),
            margin_variance: all(|t| t.margins.variance),
            curve: trials.first().map_or(Vec::new(), |t| t.curve.clone()),
            worst_gap: trials.iter().filter_map(|t| t.gap).reduce(f64::max),
            unconverged: trials.iter().filter(|t| !t.converged).count(),
            points: trials.iter().map(|t| t.points).max().unwrap_or(0),
            fits: all(|t| t.fits as f64),
            search_seconds: all(|t| t.search_seconds),
            seconds: all(|t| t.seconds),
            chosen: trials.iter().map(|t| Chosen { params: t.params.clone(), gamma: t.gamma }).collect(),
            failure: None,
        }
    }

    /// A machine that could not work on a data set.
    fn without(machine: &str, reason: &str) -> Self {
        let empty = Self::new(machine, &[], (Verdict::Missing, None));
        Self { accuracy: f64::NAN, deviation: f64::NAN, failure: Some(reason.into()), ..empty }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use widemargin::margins::MarginStatistics;

    /// A machine with these test accuracies.
    pub(crate) fn named(machine: &str, accuracies: &[f64], reference: Option<&[f64]>) -> Entry {
        let trial = |&accuracy: &f64| Trial {
            accuracy,
            scores: Figures::default(),
            params: Parameters::default(),
            gamma: None,
            margins: MarginStatistics::new(&[1.0, 2.0], &[1.0, 1.0]),
            curve: Vec::new(),
            gap: None,
            converged: true,
            points: 0,
            fits: 0,
            search_seconds: 0.0,
            seconds: 0.0,
        };
        let trials: Vec<Trial> = accuracies.iter().map(trial).collect();
        Entry::new(machine, &trials, reference.map_or((Verdict::Reference, None), |r| judge(accuracies, r, 1.0)))
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
        assert_eq!(judge(&reference, &better, 1.0).0, Verdict::Worse);
        // Nearly always a little better: the plain test takes five splits that share their rows for five data sets.
        let little = [0.812, 0.828, 0.822, 0.804, 0.804];
        let corrected = Test::Corrected.correction(0.5);
        assert_eq!(judge(&little, &reference, Test::Paired.correction(0.5)).0, Verdict::Better);
        assert_eq!(judge(&little, &reference, corrected).0, Verdict::Tie);
        assert_eq!((corrected, Test::Corrected.correction(0.8) < 0.2501), (1.0, true));
        let shifted = reference.map(|accuracy| accuracy + 0.1);
        assert_eq!(judge(&shifted, &reference, 1.0), (Verdict::Untested, None));
        assert_eq!(judge(&better[..2], &reference[..2], 1.0), (Verdict::Untested, None));
        assert_eq!(judge(&reference, &reference, 1.0), (Verdict::Tie, None));
        let mut broken = one.clone();
        broken.entries[1] = Entry::without("b", "too many classes");
        let totals = overall(&[one.clone(), one, broken], 2);
        assert_eq!((totals[0].wins, totals[0].ties, totals[0].losses), (3, 0, 0));
        assert_eq!((totals[1].wins, totals[1].ties, totals[1].losses), (0, 2, 0));
        assert!((totals[2].accuracy - mean(&reference)).abs() < 1e-15);
        assert_eq!((totals[0].rank, totals[1].rank, totals[2].rank), (1.0, 2.5, 2.5));
        // Two data sets prove nothing.
        assert_eq!((totals[0].p, totals[2].p), (None, None));
        assert!(overall(&[], 0).is_empty());
    }

    fn set(entries: Vec<Entry>) -> Comparison {
        Comparison { dataset: "one".into(), rows: 2, features: 1, classes: 2, entries }
    }

    #[test]
    fn many_comparisons_are_judged_together() {
        let reference = [0.80, 0.82, 0.81, 0.79, 0.80];
        let better = [0.84, 0.85, 0.85, 0.83, 0.85];
        let similar = [0.79, 0.83, 0.80, 0.80, 0.80];
        let with =
            |accuracies: &[f64]| set(vec![named("a", accuracies, Some(&reference)), named("c", &reference, None)]);
        let mut alone = [with(&better)];
        let p = alone[0].entries[0].p.unwrap();
        adjust(&mut alone);
        assert_eq!((alone[0].entries[0].verdict, alone[0].entries[0].p_adjusted), (Verdict::Better, Some(p)));
        assert_eq!(alone[0].entries[1].p_adjusted, None);
        // Among many sets without a difference the one finding no longer counts.
        let mut many: Vec<Comparison> = (0..20).map(|_| with(&similar)).chain([with(&better)]).collect();
        adjust(&mut many);
        let last = &many[20].entries[0];
        assert_eq!(last.verdict, Verdict::Tie);
        assert!((last.p_adjusted.unwrap() - 21.0 * p).abs() < 1e-12, "{last:?}");
    }

    #[test]
    fn groups_hold_what_cannot_be_told_apart() {
        let sets: Vec<Comparison> = (0..12)
            .map(|i| {
                let (level, wiggle) = (0.7 + 0.01 * f64::from(i), 0.001 * f64::from(i % 3) - 0.001);
                let of = |name: &str, mean: f64| named(name, &[mean, mean + 0.01], None);
                set(vec![of("far", level - 0.2 - 0.002 * f64::from(i)), of("near", level + wiggle), of("best", level)])
            })
            .collect();
        assert_eq!(groups(&sets).len(), 1);
        let mut group = groups(&sets)[0].clone();
        group.sort_unstable();
        assert_eq!(group, [1, 2]);
        assert!(groups(&[]).is_empty());
    }
}
