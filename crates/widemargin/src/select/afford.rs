//! On how many rows a search can afford to judge its points. Work is counted, not clocked: the same search is the same anywhere.

use super::{Search, SearchRows, Select, convex, has_left_out_margins};
use crate::data::Examples;
use crate::kernel::Kernel;
use crate::machine::check_parameters;
use crate::solver::newton::NORMAL_EQUATIONS;
use crate::train::TrainOptions;

/// Processor seconds that judging may take, the final fit not counted: what [`SearchRows::Auto`] promises.
const BUDGET: f64 = 60.0;
/// A sample is never smaller: fewer rows choose noticeably worse points, and take seconds.
const LEAST: usize = 1000;

/// Processor seconds, each measured at 2.5 GHz on two cores: of a fit and its leave-one-out margins over kernel values, for every
/// cubed row (`tune --kernel rbf`, 1,000 × 50: 2.5 s for some 50 points); of a fit of a fold (55 points of an SVM in 5 folds: 1.6 s).
const LEFT_OUT_CUBE: f64 = 5e-11;
const FOLD_CUBE: f64 = 1.1e-11;
/// Of normal equations, for every row and squared feature; of passes over sparse rows, for every stored value (squared hinge, text
/// 30,000 × 50,000: 2.2e-8 at C = 1, 7e-8 at C = 100).
const EQUATIONS: f64 = 1e-10;
const PASSES: f64 = 5e-8;
/// Of machines with a score function a class, for every row and what a visit costs in additions (mcODM: 1.8e-7 on letter, 2.2e-7
/// on covtype, 3e-8 on news20), and over a kernel for every squared row and class (mcODM on 1,700 rows of covtype, at the λ that a
/// search comes to: 8.6e-8; at the default ones of letter 1.7e-8).
const MANY_PASSES: f64 = 2e-7;
const VISIT: f64 = 1000.0;
const MANY_KERNEL: f64 = 8.6e-8;

/// What a search is about, as far as it decides the work.
pub(super) struct Work<'a> {
    options: &'a TrainOptions,
    rows: f64,
    linear: bool,
    features: f64,
    /// Stored values a row.
    stored: f64,
    classes: usize,
    points: f64,
    /// Folds times repeats.
    folds: f64,
    /// Whether points share workspaces, one column a class.
    shared: bool,
}

impl<'a> Work<'a> {
    pub fn new(
        data: Examples<'_>,
        options: &'a TrainOptions,
        search: &Search<'_>,
        classes: usize,
        points: usize,
    ) -> Self {
        let m = data.rows.rows();
        let stored = data.rows.stored() as f64 / m.max(1) as f64;
        // Landmark rows make a linear problem of as many features.
        let rank = options.approx.filter(|_| options.kernel != Kernel::Linear).map(|rank| rank as f64);
        let usual = check_parameters(options.machine, &[]);
        Self {
            options,
            rows: m as f64,
            linear: rank.is_some() || options.kernel == Kernel::Linear,
            features: rank.unwrap_or(data.rows.cols() as f64),
            stored: rank.unwrap_or(stored),
            classes,
            points: points as f64,
            folds: (search.folds * search.repeats) as f64,
            shared: usual.is_ok_and(|usual| convex::possible(options, classes, std::iter::once(&usual))),
        }
    }

    /// By what points are compared, and on how many rows: as asked for, else as well as the budget allows.
    pub fn settle(&self, search: &Search<'_>) -> (Select, usize) {
        let all = self.rows as usize;
        let usual = match search.select {
            Some(select) => select,
            None if self.shared && self.classes == 2 && has_left_out_margins(self.options) => match search.score {
                Some(_) => Select::Loo,
                None => Select::LooLoss,
            },
            None => Select::Cv,
        };
        match search.rows {
            SearchRows::All => (usual, all),
            SearchRows::Most(rows) => (usual, rows.min(all)),
            SearchRows::Auto if self.affords(usual, all) => (usual, all),
            // All rows in folds tell more than a few of them left out one by one.
            SearchRows::Auto if search.select.is_none() && self.affords(Select::Cv, all) => (Select::Cv, all),
            SearchRows::Auto => (usual, self.most_rows(usual)),
        }
    }

    fn affords(&self, select: Select, rows: usize) -> bool {
        self.seconds(select, rows as f64) <= BUDGET && self.bytes(select, rows as f64) <= self.options.settings.memory
    }

    /// The most rows, in steps of an eighth, that are within the budget.
    fn most_rows(&self, select: Select) -> usize {
        let smaller = |rows: &usize| Some(rows - rows / 8);
        let sizes = std::iter::successors(Some(self.rows as usize), smaller).take_while(|rows| *rows > LEAST);
        sizes.into_iter().find(|&rows| self.affords(select, rows)).unwrap_or(LEAST.min(self.rows as usize))
    }

    /// Processor seconds of all fits.
    fn seconds(&self, select: Select, rows: f64) -> f64 {
        let held_out = select == Select::Cv;
        let (fits, m) = if held_out { (self.folds, rows * (1.0 - 1.0 / self.folds)) } else { (1.0, rows) };
        let columns = if self.classes == 2 { 1.0 } else { self.classes as f64 };
        let n = self.features + 1.0;
        let values = m * self.stored;
        let one_column = self.shared || self.options.approx.is_some() && self.classes == 2;
        let fit = match (self.linear, one_column) {
            (true, true) if n <= NORMAL_EQUATIONS as f64 && n <= m => {
                columns * (EQUATIONS * m * n * n + PASSES * values)
            }
            (true, true) if held_out => columns * PASSES * values,
            (true, false) => MANY_PASSES * m * (self.stored * columns + VISIT),
            // Inner products of rows.
            (_, true) => columns * if held_out { FOLD_CUBE } else { LEFT_OUT_CUBE } * m.powi(3),
            (_, false) => MANY_KERNEL * columns * m * m,
        };
        self.points * fits * fit
    }

    /// What the matrices of a width take at once.
    fn bytes(&self, select: Select, rows: f64) -> u64 {
        let by_features = self.linear && (select == Select::Cv || self.features < NORMAL_EQUATIONS as f64);
        let matrices = if select == Select::Cv { self.folds + 1.0 } else { 4.0 };
        if by_features { 0 } else { (8.0 * matrices * rows * rows) as u64 }
    }
}
