//! The convex machines: a workspace a fold and width, shared by all points and label vectors, and each solve starts where that of
//! the neighbouring point ended.

use super::explore::{Done, Evaluator, Judged, Point, Round, WAVE};
use super::job::{FoldData, Job, Split};
use super::judge::{JudgedRows, Leaders, Score};
use super::lines::{Judgement, Line};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{GramPrecision, Kernel, KernelRows};
use crate::machine::{Classes, Form, Parameters};
use crate::metrics::Predictions;
use crate::model::Decision;
use crate::multiclass::Multiclass;
use crate::problem::{MarginProblem, ScoreFunctions};
use crate::solver::{Ending, Settings, SolverChoice, Start, Workspace};
use crate::train::{Gamma, TrainOptions, with_gamma};
use crate::{Advice, Error, Result, with_rows};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// For leave-one-out margins problems are solved at least this well: their formula is that of a solution.
const LEFT_OUT_TOL: f64 = 1e-5;

/// Points judged on shared workspaces.
pub(super) struct Convex<'a> {
    job: &'a Job<'a>,
    folds: Vec<FoldData>,
    how: Judgement,
    fits: AtomicUsize,
}

/// Whether this way is open: one convex problem a label vector, and no wish for a certain solver.
pub(super) fn possible<'p>(
    options: &TrainOptions,
    classes: usize,
    mut points: impl Iterator<Item = &'p Parameters>,
) -> bool {
    let machine = options.machine;
    let formed = points.all(|parameters| machine.form(parameters, 1.0).is_some());
    let one_against_all = options.scheme(classes) == Multiclass::Ova;
    let columns = machine.classes() == Classes::Two && (classes == 2 || one_against_all);
    let free = matches!(options.solver, SolverChoice::Auto | SolverChoice::Newton) && options.approx.is_none();
    formed && columns && free && !matches!(options.kernel, Kernel::Sigmoid { .. })
}

/// One width on one split.
struct Fold<'w> {
    workspace: Workspace<'w>,
    data: &'w FoldData,
    /// The test rows, as positions among all rows.
    test: &'w [usize],
}

impl<'a> Convex<'a> {
    pub fn new(job: &'a Job<'a>, how: Judgement) -> Result<Self> {
        let folds = job.splits.par_iter().map(|split| job.fold_data(split)).collect::<Result<_>>()?;
        Ok(Self { job, folds, how, fits: AtomicUsize::new(0) })
    }

    /// Whether nothing is held out: the margins are those of each row left out, in closed form.
    fn leave_one_out(&self) -> bool {
        self.job.splits.iter().all(|split| split.test.is_empty())
    }

    /// Tolerance and memory of a fold. Leave-one-out margins come from the matrix itself, not only from the gap.
    fn settings(&self) -> Settings {
        let settings = self.job.options.settings;
        let tol = if self.leave_one_out() { settings.tol.min(LEFT_OUT_TOL) } else { settings.tol };
        Settings { tol, memory: settings.memory / self.folds.len() as u64, ..settings }
    }

    fn precision(&self) -> GramPrecision {
        if self.leave_one_out() { GramPrecision::Double } else { GramPrecision::for_tolerance(self.settings().tol) }
    }

    fn kernel(&self, gamma: Option<f64>) -> Kernel {
        let options = self.job.options;
        with_gamma(options.kernel, gamma.map_or(options.gamma, Gamma::Value), &self.job.rows, None)
    }

    /// The folds of one width. Without scaling their kernel values are those of all rows, computed once.
    fn folds<'w>(&'w self, whole: &'w Workspace<'_>) -> Vec<Fold<'w>> {
        let shared = self.job.options.scaling.is_none() && self.folds.len() > 1;
        let fold = |(data, split): (&'w FoldData, &'w Split)| {
            let workspace = match shared {
                true => Workspace::part(whole, &split.train, &data.rows, self.settings()),
                false => Workspace::new(&data.rows, whole.kernel(), self.settings()).shared(),
            };
            Fold { workspace, data, test: &split.test }
        };
        self.folds.iter().zip(&self.job.splits).map(fold).collect()
    }

    /// The points of lines of one width.
    pub fn lines(&self, lines: &[Line], done: Done<'_>) -> Result<Vec<Vec<Judged>>> {
        let gamma = lines.first().and_then(Line::gamma);
        let whole = Workspace::new(&self.job.rows, self.kernel(gamma), self.job.options.settings);
        let folds = self.folds(&whole);
        lines.par_iter().map(|line| self.chain(&folds, line, done)).collect()
    }

    /// Points along a line, each from where the one before ended. With a limit, points that cannot be among the two
    /// best any more are dropped. Points whose score is known are fitted only where a later one starts from them.
    fn chain(&self, folds: &[Fold<'_>], line: &Line, done: Done<'_>) -> Result<Vec<Judged>> {
        let (fitted, mut limit) = (line.fitted(), line.limit());
        let mut starts: Vec<Start> = line.starts().to_vec();
        starts.resize(folds.len() * self.job.columns(), Start::default());
        let mut judged = Vec::new();
        for (number, (point, known)) in line.points().enumerate() {
            let score = match known {
                Some(known) => {
                    if number < fitted {
                        self.judge(folds, point, &mut starts, limit)?;
                    }
                    known.clone()
                }
                None => {
                    let score = self.judge(folds, point, &mut starts, limit)?;
                    done(point, &score)?;
                    score
                }
            };
            if let Some(leaders) = &mut limit {
                leaders.add(&score);
            }
            let ends = match self.how.keep_starts {
                true => (number < fitted).then(|| starts.clone()),
                false => Some(Vec::new()),
            };
            judged.push(Judged { score, ends });
        }
        Ok(judged)
    }

    /// The score of a point whose solves begin at `starts`, which then stand where they end.
    fn judge(&self, folds: &[Fold<'_>], point: &Point, starts: &mut [Start], limit: Option<Leaders>) -> Result<Score> {
        let columns = self.job.columns();
        let start = |number: usize| &starts[number * columns..(number + 1) * columns];
        let fold = |number: usize| self.fit(&folds[number], point, start(number));
        let fits = match &limit {
            None => (0..folds.len()).into_par_iter().map(fold).collect(),
            Some(leaders) => leaders.folds_in_turn(folds.len(), fold, |fit| fit.judged.cost()),
        };
        match fits {
            Err(Error::Numeric { .. }) => Ok(Score::failed()),
            Err(error) => Err(error),
            Ok(fits) => {
                let (ends, judged): (Vec<Vec<Start>>, Vec<JudgedRows>) =
                    fits.into_iter().map(|fit| (fit.ends, fit.judged)).unzip();
                starts.iter_mut().zip(ends.into_iter().flatten()).for_each(|(start, end)| *start = end);
                Ok(self.score(&judged))
            }
        }
    }

    fn score(&self, folds: &[JudgedRows]) -> Score {
        match folds {
            [all] if self.leave_one_out() => Score::left_out(all),
            folds => Score::of_folds(folds, self.folds.len()),
        }
    }

    /// Solves every label vector of a fold at a point.
    fn fit(&self, fold: &Fold<'_>, point: &Point, starts: &[Start]) -> Result<Fitted> {
        let (data, options) = (fold.data, self.job.options);
        let total: f64 = data.weights.iter().sum();
        let form = options.machine.form(&point.judged_by(self.job), total);
        let form = form.ok_or_else(|| Error::conflict("not one convex problem", Advice::NONE))?;
        let column = |(column, start): (usize, &Start)| self.column(fold, &form, column, start);
        let columns: Vec<(Start, Vec<f64>)> = starts.par_iter().enumerate().map(column).collect::<Result<_>>()?;
        let (ends, scores): (Vec<Start>, Vec<Vec<f64>>) = columns.into_iter().unzip();
        let (codes, weights, given, tie) = match self.leave_one_out() {
            true => (&data.codes, &data.weights, &data.given, 0.0),
            false => (&data.test_codes, &data.test_weights, &data.test_given, f64::MIN_POSITIVE),
        };
        let cost = self.cost(&scores, codes, given);
        Ok(Fitted {
            ends,
            judged: JudgedRows { margins: margins(&scores, codes, tie), weights: weights.clone(), cost },
        })
    }

    /// What the metric that points are compared by, if there is one, says of columns of scores.
    fn cost(&self, columns: &[Vec<f64>], codes: &[u32], given: &[f64]) -> Option<f64> {
        self.job.metric?;
        let scores: Vec<f64> = (0..codes.len()).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
        let decision = if columns.len() == 1 { Decision::Sign } else { Decision::Largest };
        let predicted: Vec<u32> = scores.chunks_exact(columns.len()).map(|row| decision.class(row)).collect();
        self.job.cost(&Predictions {
            classes: self.job.classes.len(),
            truth: codes,
            predicted: &predicted,
            scores: Some(&scores),
            probabilities: None,
            weights: Some(given),
        })
    }

    /// Solves one label vector; hands back the scores of the test rows, or those of each training row left out.
    fn column(&self, fold: &Fold<'_>, form: &Form, column: usize, start: &Start) -> Result<(Start, Vec<f64>)> {
        let y = self.job.signs(&fold.data.codes, column);
        let problem = form.problem(&y, &fold.data.weights, self.job.options.bias);
        // Watched over but not reported: many solves run at the same time.
        let control = Control { observer: None, ..self.job.control };
        self.fits.fetch_add(1, Ordering::Relaxed);
        let ending = fold.workspace.solve(&problem, self.precision(), start, &self.settings(), control)?;
        let scores = match self.leave_one_out() {
            true => left_out_scores(fold, &problem, &ending, control)?,
            false => test_scores(&fold.workspace, &fold.data.test, fold.test, &ending, control)?,
        };
        Ok((ending.start(&problem), scores))
    }
}

/// What is needed of the solves of a fold: where they ended, and the rows that were left out.
struct Fitted {
    ends: Vec<Start>,
    judged: JudgedRows,
}

/// The scores `f(x_i) = y_i γ_i` of each row when it is left out.
fn left_out_scores(
    fold: &Fold<'_>,
    problem: &MarginProblem<'_>,
    ending: &Ending,
    control: Control<'_>,
) -> Result<Vec<f64>> {
    let margins = ending.margins.as_deref().unwrap_or_default();
    let left_out = fold.workspace.left_out(problem, margins, ending.factor.as_ref(), true, control)?;
    let reason = "the matrix is not positive definite, or does not fit the memory";
    let left_out = left_out.ok_or_else(|| Error::numeric("leave-one-out margins", reason))?;
    Ok(left_out.iter().zip(problem.y).map(|(g, y)| g * y).collect())
}

/// The scores of rows `test`, which have these places in the workspace that this one is a part of.
pub(super) fn test_scores(
    workspace: &Workspace<'_>,
    test: &Matrix<'_>,
    places: &[usize],
    ending: &Ending,
    control: Control<'_>,
) -> Result<Vec<f64>> {
    let (mut scores, b) = match &ending.functions {
        ScoreFunctions::Linear { weights, intercepts } => {
            let scores = with_rows!(test, t => (0..t.rows()).map(|i| t.dot(i, &weights[0])).collect());
            (scores, intercepts[0])
        }
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            let scores = match workspace.cross_scores(places, &coefficients[0]) {
                Some(scores) => scores,
                None => {
                    let kernel = workspace.kernel();
                    let rows = KernelRows::new(kernel, workspace.rows(), 0.0);
                    rows.expand(&KernelRows::new(kernel, test, 0.0), coefficients, control)?
                }
            };
            (scores, intercepts[0])
        }
    };
    scores.iter_mut().for_each(|score: &mut f64| *score += b);
    Ok(scores)
}

/// By how much the score of a row's class exceeds the best of the others; above zero if and only if it is predicted. One column:
/// a score of zero means the smaller label, whose margin then is `tie`: a margin in closed form has no side to fall on.
fn margins(columns: &[Vec<f64>], codes: &[u32], tie: f64) -> Vec<f64> {
    if let [scores] = columns {
        let margin = |(f, code): (&f64, &u32)| match code {
            1 => *f,
            _ if *f == 0.0 => tie,
            _ => -f,
        };
        return scores.iter().zip(codes).map(margin).collect();
    }
    let row = |(i, &code): (usize, &u32)| {
        let (own, mut best, mut ties) = (columns[code as usize][i], f64::NEG_INFINITY, false);
        for (l, scores) in columns.iter().enumerate().filter(|(l, _)| *l != code as usize) {
            // Ties go to the lowest class.
            ties |= scores[i] == own && l < code as usize;
            best = best.max(scores[i]);
        }
        if own == best && !ties { f64::MIN_POSITIVE } else { own - best }
    };
    codes.iter().enumerate().map(row).collect()
}

impl Evaluator for Convex<'_> {
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>> {
        let mut found: Vec<Option<Judged>> = round.points.iter().map(|_| None).collect();
        let mut leaders = Leaders::NOBODY;
        for (gamma, chains) in by_width(round.points) {
            let whole = Workspace::new(&self.job.rows, self.kernel(gamma), self.job.options.settings);
            let folds = if round.fits_width(gamma) { self.folds(&whole) } else { Vec::new() };
            // Wave after wave: what is dropped depends on waves before and on the chain itself, never on which thread was
            // first. With few chains the folds are what runs at the same time, and all are needed.
            let drops = chains.len() >= WAVE && self.folds.len() > 1;
            for wave in chains.chunks(WAVE) {
                let limit = drops.then_some(leaders);
                let run = |chain: &Chain<'_>| {
                    let places: Vec<usize> = chain.iter().map(|(place, _)| *place).collect();
                    let judged = self.chain(&folds, &round.line(&places, limit, self.how), done)?;
                    Ok(places.into_iter().zip(judged).collect::<Vec<_>>())
                };
                let judged: Result<Vec<_>> = wave.par_iter().map(run).collect();
                for (place, judged) in judged?.into_iter().flatten() {
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

/// Points with their places, which differ in the first position only, that one rising.
pub(super) type Chain<'p> = Vec<(usize, &'p Point)>;

/// The widths in order of appearance, each with its chains.
pub(super) fn by_width<'p>(points: &'p [Point]) -> Vec<(Option<f64>, Vec<Chain<'p>>)> {
    type Chains<'p> = BTreeMap<&'p [usize], Chain<'p>>;
    let mut widths: Vec<(Option<f64>, Chains<'p>)> = Vec::new();
    for (place, point) in points.iter().enumerate() {
        let at = widths.iter().position(|(gamma, _)| *gamma == point.gamma).unwrap_or_else(|| {
            widths.push((point.gamma, BTreeMap::new()));
            widths.len() - 1
        });
        widths[at].1.entry(point.positions.get(1..).unwrap_or_default()).or_default().push((place, point));
    }
    let ordered = |mut chain: Chain<'p>| {
        chain.sort_by_key(|(_, point)| point.positions.first().copied());
        chain
    };
    widths.into_iter().map(|(gamma, chains)| (gamma, chains.into_values().map(ordered).collect())).collect()
}
