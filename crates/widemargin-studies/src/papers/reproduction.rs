//! Our figures beside a paper's: what differs, and what both come to in all.

use super::{Found, PaperTable, Published};
use crate::compare::{Comparison, Entry, Figure, Overall, Verdict, is_whole, totals};
use crate::statistics::{Sample, mean};
use serde::Serialize;

/// Our figures and the paper's.
pub struct Reproduction {
    /// The table.
    pub table: &'static PaperTable,
    /// The data sets.
    pub found: Found,
    /// Our figures, in their order.
    pub comparisons: Vec<Comparison>,
    published: Vec<Published>,
}

/// One machine on one data set, ours and theirs.
#[derive(Clone, Debug, Serialize)]
pub struct Cell<'a> {
    /// The data set as the table calls it.
    pub dataset: &'a str,
    /// The file's name.
    pub file: &'a str,
    /// The machine as the table calls it.
    pub machine: &'a str,
    /// Our mean test accuracy.
    pub accuracy: f64,
    /// Its standard deviation.
    pub deviation: f64,
    /// Against the reference.
    pub verdict: Verdict,
    /// What the paper prints; `None` where it says N/A.
    pub paper_accuracy: Option<f64>,
    /// Its standard deviation.
    pub paper_deviation: f64,
    /// The paper's mark.
    pub paper_verdict: Verdict,
    /// `higher` or `lower` if the two differ by more than the random splits explain.
    pub differs: Option<&'static str>,
    /// Why there is no figure of ours.
    #[serde(skip)]
    pub failure: Option<&'a str>,
}

/// How well our figures and marks agree with the paper's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreement {
    /// Figures there are of both.
    pub comparable: usize,
    /// Of these, ours is higher by more than the random splits explain.
    pub higher: usize,
    /// The same, lower.
    pub lower: usize,
    /// Marks there are of both.
    pub marks: usize,
    /// Of these, the same.
    pub same: usize,
    /// Of these, better in one and worse in the other.
    pub opposite: usize,
}

/// What a machine was allowed, over the data sets.
#[derive(Clone, Debug)]
pub struct Budget {
    /// The machine as the table calls it.
    pub machine: &'static str,
    /// The largest number of points that was tried on a split.
    pub points: usize,
    /// Mean number of fits of a search.
    pub fits: f64,
    /// Mean seconds of a search.
    pub search_seconds: f64,
    /// Mean seconds of a fit.
    pub seconds: f64,
}

impl Reproduction {
    /// Puts our figures, one comparison a data set that was found, beside the paper's.
    pub fn new(table: &'static PaperTable, found: Found, comparisons: Vec<Comparison>) -> Self {
        Self { table, found, comparisons, published: table.published() }
    }

    /// Every figure: the machines of the first data set, then those of the next.
    pub fn cells(&self) -> Vec<Cell<'_>> {
        let rows = self.found.sets.iter().zip(&self.comparisons);
        rows.flat_map(|(set, comparison)| {
            comparison.entries.iter().map(move |entry| self.cell(&set.name, &set.file, entry))
        })
        .collect()
    }

    fn cell<'s>(&'s self, dataset: &'s str, file: &'s str, entry: &'s Entry) -> Cell<'s> {
        let theirs = self.theirs(dataset, &entry.machine);
        let ours = Sample { mean: entry.accuracy, deviation: entry.deviation, count: entry.accuracies.len() };
        let differs = theirs.and_then(|theirs| self.table.differs(ours, theirs));
        Cell {
            dataset,
            file,
            machine: &entry.machine,
            accuracy: entry.accuracy,
            deviation: entry.deviation,
            verdict: entry.verdict,
            paper_accuracy: theirs.and_then(|t| t.mean),
            paper_deviation: theirs.map_or(0.0, |t| t.deviation),
            paper_verdict: theirs.map_or(Verdict::Missing, |t| t.verdict),
            differs: differs.map(|higher| if higher { "higher" } else { "lower" }),
            failure: entry.failure.as_deref(),
        }
    }

    fn theirs(&self, dataset: &str, machine: &str) -> Option<&Published> {
        self.published.iter().find(|p| p.dataset == dataset && p.method == machine)
    }

    /// What our figures come to in all, and the paper's: averages and ranks over the data sets on which every machine has
    /// figures, ours and the paper's.
    pub fn totals(&self) -> (Vec<Overall>, Vec<Overall>) {
        let names: Vec<String> = self.table.columns.iter().map(|column| column.name.to_string()).collect();
        let printed = |dataset: &str| -> Vec<Figure> {
            let figure = |name: &String| {
                self.theirs(dataset, name).map_or((None, Verdict::Missing), |printed| (printed.mean, printed.verdict))
            };
            names.iter().map(figure).collect()
        };
        let ours: Vec<Vec<Figure>> = self.comparisons.iter().map(Comparison::figures).collect();
        let theirs: Vec<Vec<Figure>> = self.found.sets.iter().map(|set| printed(&set.name)).collect();
        let whole: Vec<bool> = ours.iter().zip(&theirs).map(|(a, b)| is_whole(a) && is_whole(b)).collect();
        let reference = self.table.reference_column();
        (totals(&names, &ours, &whole, reference), totals(&names, &theirs, &whole, reference))
    }

    /// How well both agree.
    pub fn agreement(&self) -> Agreement {
        let judged = |v: Verdict| matches!(v, Verdict::Better | Verdict::Worse | Verdict::Tie);
        let mut agreement = Agreement::default();
        for cell in self.cells() {
            agreement.comparable += usize::from(cell.paper_accuracy.is_some() && cell.accuracy.is_finite());
            agreement.higher += usize::from(cell.differs == Some("higher"));
            agreement.lower += usize::from(cell.differs == Some("lower"));
            if judged(cell.verdict) && judged(cell.paper_verdict) {
                let (ours, theirs) = (cell.verdict, cell.paper_verdict);
                agreement.marks += 1;
                agreement.same += usize::from(ours == theirs);
                agreement.opposite += usize::from(ours != theirs && ours != Verdict::Tie && theirs != Verdict::Tie);
            }
        }
        agreement
    }

    /// What every machine was allowed.
    pub fn budgets(&self) -> Vec<Budget> {
        let budget = |(m, machine): (usize, &'static str)| {
            let entries = || self.comparisons.iter().map(|c| &c.entries[m]).filter(|e| e.failure.is_none());
            let average = |value: fn(&Entry) -> f64| mean(&entries().map(value).collect::<Vec<_>>());
            Budget {
                machine,
                points: entries().map(|e| e.points).max().unwrap_or(0),
                fits: average(|e| e.fits),
                search_seconds: average(|e| e.search_seconds),
                seconds: average(|e| e.seconds),
            }
        };
        self.table.columns.iter().map(|column| column.name).enumerate().map(budget).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Set, table};
    use super::*;
    use crate::compare::tests::named;
    use widemargin::data::embedded;

    fn reproduction(names: [&str; 2], failing: Option<usize>) -> Reproduction {
        let table = table("mcodm-table2").unwrap();
        let reference = [0.9, 0.8, 0.85];
        let comparison = |(place, dataset): (usize, &str)| {
            let entry = |(m, column): (usize, &super::super::Column)| {
                let mut entry =
                    named(column.name, &reference, (m != table.reference_column()).then_some(&reference[..]));
                if place == 0 && failing == Some(m) {
                    (entry.failure, entry.accuracy, entry.verdict) = (Some("no".into()), f64::NAN, Verdict::Missing);
                }
                entry
            };
            let entries = table.columns.iter().enumerate().map(entry).collect();
            Comparison { dataset: dataset.into(), rows: 3, features: 1, classes: 3, entries }
        };
        let set = |name: &str| Set { name: name.into(), file: name.into(), data: embedded("iris").unwrap() };
        let found = Found { sets: names.map(set).into(), ..Found::default() };
        Reproduction::new(table, found, names.into_iter().enumerate().map(comparison).collect())
    }

    #[test]
    fn averages_are_over_sets_that_are_whole_in_both() {
        // The paper has no figure of ecocSVM on letter.
        let (ours, theirs) = reproduction(["letter", "iris"], None).totals();
        let printed = table("mcodm-table2").unwrap().published();
        let iris = |m: &str| printed.iter().find(|p| p.dataset == "iris" && p.method == m).unwrap().mean.unwrap();
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((theirs.accuracy - iris(&theirs.machine)).abs() < 1e-12, "{}", theirs.machine);
            assert!((ours.accuracy - 0.85).abs() < 1e-12 && ours.rank == 3.0);
        }
        let verdicts = |t: &Overall| t.wins + t.ties + t.losses;
        assert_eq!((verdicts(&ours[0]), verdicts(&theirs[0]), verdicts(&theirs[3])), (2, 2, 1));
        // A machine of ours that fails leaves no set that is whole.
        let (ours, theirs) = reproduction(["iris", "letter"], Some(1)).totals();
        assert!(ours.iter().chain(&theirs).all(|t| t.rank == 0.0));
    }

    #[test]
    fn agreement_counts_what_both_have() {
        let result = reproduction(["letter", "iris"], Some(0));
        let agreement = result.agreement();
        // Ten cells, without our failure and the figure the paper does not have.
        assert_eq!(agreement.comparable, 8);
        assert_eq!(agreement.marks, 6);
        let ties = result.cells().iter().filter(|c| c.failure.is_none() && c.paper_verdict == Verdict::Tie).count();
        assert_eq!((agreement.same, agreement.opposite), (ties, 0));
        assert_eq!(result.budgets().len(), 5);
    }
}
