//! The convex two-class machines on a shared ground: one kernel matrix a width for all parameters, and each fit starts
//! where its neighbour ended.

use super::ground::{Ground, Job, Split};
use super::judge::{Leaders, Score, error};
use super::{Done, Evaluator, Judged, Point, Round, WAVE};
use crate::control::Control;
use crate::data::{Matrix, Rows};
use crate::kernel::{Kernel, KernelRows};
use crate::linalg;
use crate::machine::odm::LeftOut;
use crate::machine::{Classes, Form, SolverChoice};
use crate::solver::dcd::Patience;
use crate::solver::decomposition;
use crate::solver::expansion::{Gram, KernelSpace, Precision};
use crate::solver::fit::SMALL;
use crate::solver::linear::{LinearSpace, NORMAL_EQUATIONS};
use crate::solver::newton::{self, Space};
use crate::solver::passes::LinearRows;
use crate::solver::{Problem, Settings, StopReason};
use crate::train::{Gamma, with_gamma};
use crate::{Advice, Error, Result, with_rows};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Blocks of dual descent before Newton's method takes over, for every so many rows.
const BLOCKS: usize = 8;
const ROWS: usize = 1000;

/// For leave-one-out margins problems are solved at least this well: their formula is that of a solution.
const LEFT_OUT_TOL: f64 = 1e-5;

/// Where a fit starts: where another ended.
#[derive(Clone, Default)]
pub(super) struct Start {
    /// Weights or coefficients.
    w: Vec<f64>,
    intercept: f64,
    /// Multipliers of the loss.
    v: Vec<f64>,
    /// The slopes that the loss could take.
    slopes: (f64, f64),
    /// Whether dual descent was too slow there.
    hard: bool,
}

/// Points judged by Newton's method on shared matrices.
pub(super) struct Convex<'a> {
    job: &'a Job<'a>,
    grounds: Vec<Ground>,
    /// Whether problems are solved over inner products of rows.
    by_rows: bool,
    /// Whether later points start where these end.
    keep_starts: bool,
    fits: AtomicUsize,
}

/// Whether this way is open: a convex two-class machine, Newton's method not ruled out, matrices within the memory.
pub(super) fn possible(job: &Job<'_>, points: &[&Point]) -> bool {
    let options = job.options;
    let two = job.classes.len() == 2 && options.machine.classes() == Classes::Two;
    let formed = points.iter().all(|p| options.machine.form(&p.parameters, 1.0).is_some());
    let newton = matches!(options.solver, SolverChoice::Auto | SolverChoice::Newton);
    let (m, n) = (job.codes.len(), job.rows.cols() + 1);
    if !(two && formed && newton) || matches!(options.kernel, Kernel::Sigmoid { .. }) {
        return false;
    }
    if !through_products(job) {
        return n <= NORMAL_EQUATIONS;
    }
    let blocks = |split: &Split| (split.train.len() * (split.train.len() + split.test.len())) as u64;
    let matrices = (m as u64).pow(2) + job.splits.iter().map(blocks).sum::<u64>();
    let fits = options.kernel != Kernel::Linear || m <= SMALL;
    fits && 8 * matrices <= options.settings.memory
}

/// Whether inner products of rows are smaller than those of features, or all there is.
fn through_products(job: &Job<'_>) -> bool {
    let (m, n) = (job.codes.len(), job.rows.cols() + 1);
    job.options.kernel != Kernel::Linear || n > NORMAL_EQUATIONS || (n > m && m <= SMALL)
}

/// One width on one split.
enum Block<'g> {
    /// Inner products of the training rows, and of the test rows with them.
    Products { gram: Gram, cross: Vec<f64> },
    /// The rows themselves.
    Features { rows: &'g Matrix<'static>, test: &'g Matrix<'static> },
}

impl<'a> Convex<'a> {
    pub fn new(job: &'a Job<'a>, keep_starts: bool) -> Result<Self> {
        let grounds = job.splits.par_iter().map(|split| job.ground(split)).collect::<Result<_>>()?;
        Ok(Self { job, grounds, by_rows: through_products(job), keep_starts, fits: AtomicUsize::new(0) })
    }

    /// Whether nothing is held out: the margins are those of each row left out, in closed form.
    fn leave_one_out(&self) -> bool {
        self.grounds.iter().all(|ground| ground.test_y.is_empty())
    }

    /// How well problems are solved.
    fn tol(&self) -> f64 {
        let tol = self.job.options.settings.tol;
        if self.leave_one_out() { tol.min(LEFT_OUT_TOL) } else { tol }
    }

    /// The blocks of one width. Without scaling the folds are cut out of one matrix.
    fn blocks(&self, gamma: Option<f64>) -> Result<Vec<Block<'_>>> {
        if !self.by_rows {
            return Ok(self.grounds.iter().map(|g| Block::Features { rows: &g.rows, test: &g.test }).collect());
        }
        let (options, control) = (self.job.options, self.job.control);
        let kernel = with_gamma(options.kernel, gamma.map_or(options.gamma, Gamma::Value), &self.job.rows, None);
        // Leave-one-out margins come from the matrix itself, not only from the gap.
        let precision = if self.leave_one_out() { Precision::Double } else { Precision::for_tolerance(self.tol()) };
        if let (None, true) = (options.scaling, self.grounds.len() > 1) {
            let m = self.job.codes.len();
            let whole = KernelRows::new(kernel, &self.job.rows, 0.0).matrix(control)?;
            let cut = |rows: &[usize], columns: &[usize]| -> Vec<f64> {
                let mut values = Vec::with_capacity(rows.len() * columns.len());
                for &i in rows {
                    let row = &whole[i * m..(i + 1) * m];
                    values.extend(columns.iter().map(|&j| row[j]));
                }
                values
            };
            let block = |split: &Split| {
                let gram = Gram::from_values(split.train.len(), cut(&split.train, &split.train), precision);
                Block::Products { gram, cross: cut(&split.test, &split.train) }
            };
            return Ok(self.job.splits.par_iter().map(block).collect());
        }
        let block = |ground: &Ground| {
            let rows = KernelRows::new(kernel, &ground.rows, 0.0);
            let test = KernelRows::new(kernel, &ground.test, 0.0);
            let mut cross = vec![0.0; rows.len() * test.len()];
            if !test.is_empty() {
                rows.block(&test, 0..test.len(), &mut cross);
            }
            Ok(Block::Products { gram: Gram::new(&rows, precision, control)?, cross })
        };
        self.grounds.iter().map(block).collect()
    }

    /// Points along a line, each from where the one before ended. With a `limit`, points that cannot be among the two
    /// best any more are dropped. Points whose score is known are fitted only where a later one starts from them.
    fn chain(
        &self,
        round: &Round<'_>,
        blocks: &[Block<'_>],
        chain: &[(usize, &Point)],
        mut limit: Option<Leaders>,
        done: Done<'_>,
    ) -> Result<Vec<(usize, Judged)>> {
        let fitted = chain.iter().rposition(|(place, _)| round.fits(*place)).map_or(0, |last| last + 1);
        let same_width =
            round.near.filter(|(point, _)| chain.first().is_some_and(|(_, head)| head.gamma == point.gamma));
        let mut starts: Vec<Start> = same_width.map_or(Vec::new(), |(_, ends)| ends.to_vec());
        starts.resize(blocks.len(), Start::default());
        let mut judged = Vec::with_capacity(chain.len());
        for (number, &(place, point)) in chain.iter().enumerate() {
            let score = match &round.known[place] {
                Some(known) => {
                    if number < fitted {
                        self.judge(blocks, point, &mut starts, limit)?;
                    }
                    known.clone()
                }
                None => {
                    let score = self.judge(blocks, point, &mut starts, limit)?;
                    done(point, &score)?;
                    score
                }
            };
            if let Some(leaders) = &mut limit {
                leaders.add(&score);
            }
            let ends = match self.keep_starts {
                true => (number < fitted).then(|| starts.clone()),
                false => Some(Vec::new()),
            };
            judged.push((place, Judged { score, ends }));
        }
        Ok(judged)
    }

    /// The score of a point whose fits begin at `starts`, which then stand where they end.
    fn judge(
        &self,
        blocks: &[Block<'_>],
        point: &Point,
        starts: &mut [Start],
        limit: Option<Leaders>,
    ) -> Result<Score> {
        let fits = match &limit {
            None => {
                let fold = |number: usize| self.fit(number, &blocks[number], point, &starts[number]);
                (0..blocks.len()).into_par_iter().map(fold).collect()
            }
            Some(leaders) => self.folds_in_turn(blocks, point, starts, leaders),
        };
        match fits {
            Err(Error::Numeric { .. }) => Ok(Score::failed()),
            Err(error) => Err(error),
            Ok(fits) => {
                let score = self.score(&fits);
                starts.iter_mut().zip(fits).for_each(|(start, fit)| *start = fit.end);
                Ok(score)
            }
        }
    }

    /// Fold after fold, as long as the point may still be among the two best.
    fn folds_in_turn(
        &self,
        blocks: &[Block<'_>],
        point: &Point,
        starts: &[Start],
        leaders: &Leaders,
    ) -> Result<Vec<Fitted>> {
        let mut fits: Vec<Fitted> = Vec::with_capacity(blocks.len());
        let mut errors = 0.0;
        for (number, block) in blocks.iter().enumerate() {
            if leaders.beat(errors / blocks.len() as f64) {
                break;
            }
            let fit = self.fit(number, block, point, &starts[number])?;
            errors += error(&test_margins(&fit, &self.grounds[number]), &self.grounds[number].test_weights);
            fits.push(fit);
        }
        Ok(fits)
    }

    fn score(&self, fits: &[Fitted]) -> Score {
        if let [Fitted { left_out: Some(margins), .. }] = fits {
            return Score::left_out(margins, &self.grounds[0].weights);
        }
        let fold = |(fit, ground): (&Fitted, &Ground)| (test_margins(fit, ground), ground.test_weights.clone());
        let folds: Vec<_> = fits.iter().zip(&self.grounds).map(fold).collect();
        if folds.len() < self.grounds.len() {
            let errors = folds.iter().map(|(margins, weights)| error(margins, weights)).collect();
            return Score::unfinished(errors, self.grounds.len());
        }
        Score::cross_validated(&folds)
    }

    fn fit(&self, number: usize, block: &Block<'_>, point: &Point, start: &Start) -> Result<Fitted> {
        let (ground, options) = (&self.grounds[number], self.job.options);
        let total: f64 = ground.weights.iter().sum();
        let form = options.machine.form(&point.judged_by(self.job), total);
        let form = form.ok_or_else(|| Error::conflict("not one convex problem", Advice::NONE))?;
        let problem = Problem {
            y: &ground.y,
            weights: &ground.weights,
            loss: form.loss,
            variance: form.variance,
            bias: options.bias,
        };
        let settings = Settings { tol: self.tol(), ..options.settings };
        self.fits.fetch_add(1, Ordering::Relaxed);
        let fitting =
            Fitting { problem, form, settings, control: self.job.control, leave_one_out: self.leave_one_out() };
        match block {
            Block::Products { gram, cross } => fitting.by_products(gram, cross, start),
            Block::Features { rows, test } => with_rows!(rows, x => fitting.by_features(x, test, start)),
        }
    }
}

/// The margins of the test rows of a fold; a score of zero means the smaller label.
fn test_margins(fit: &Fitted, ground: &Ground) -> Vec<f64> {
    let margin = |(f, y): (&f64, &f64)| if *f == 0.0 && *y < 0.0 { f64::MIN_POSITIVE } else { f * y };
    fit.test_scores.iter().zip(&ground.test_y).map(margin).collect()
}

impl Evaluator for Convex<'_> {
    fn evaluate(&self, round: &Round<'_>, done: Done<'_>) -> Result<Vec<Judged>> {
        let mut found: Vec<Option<Judged>> = round.points.iter().map(|_| None).collect();
        let mut leaders = Leaders::NOBODY;
        for (gamma, chains) in by_width(round.points) {
            let blocks = if round.fits_width(gamma) { self.blocks(gamma)? } else { Vec::new() };
            // Wave after wave: what is dropped depends on waves before and on the chain itself, never on which thread was
            // first. With few chains the folds are what runs at the same time, and all are needed.
            let drops = chains.len() >= WAVE && self.grounds.len() > 1;
            for wave in chains.chunks(WAVE) {
                let limit = drops.then_some(leaders);
                let run = |chain: &Chain<'_>| self.chain(round, &blocks, chain, limit, done);
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
type Chain<'p> = Vec<(usize, &'p Point)>;

/// The widths in order of appearance, each with its chains.
fn by_width<'p>(points: &'p [Point]) -> Vec<(Option<f64>, Vec<Chain<'p>>)> {
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

/// One problem to be solved.
struct Fitting<'p> {
    problem: Problem<'p>,
    form: Form,
    settings: Settings,
    control: Control<'p>,
    leave_one_out: bool,
}

/// What is needed of a solved problem.
struct Fitted {
    end: Start,
    test_scores: Vec<f64>,
    left_out: Option<Vec<f64>>,
}

impl Fitting<'_> {
    /// Watches over the steps but does not report them: many fits run at the same time.
    fn solve(&self, space: &mut dyn Space, start: &Start) -> Result<Vec<f64>> {
        let multipliers = if start.v.is_empty() { vec![0.0; self.problem.y.len()] } else { start.v.clone() };
        let control = Control { observer: None, ..self.control };
        let found = newton::newton(space, &self.problem, multipliers, &self.settings, control)?;
        Ok(self.problem.loss_part(&found.a, space.margins()))
    }

    fn by_products(&self, gram: &Gram, cross: &[f64], start: &Start) -> Result<Fitted> {
        let (m, bias) = (self.problem.y.len(), self.problem.bias);
        let test_scores = |c: &[f64], b: f64| cross.chunks_exact(m.max(1)).map(|row| linalg::dot(row, c) + b).collect();
        let mut start = Cow::Borrowed(start);
        if !self.problem.loss.is_smooth() && !start.hard {
            let (end, solved) = self.descend(gram, &start)?;
            if solved {
                return Ok(Fitted { test_scores: test_scores(&end.w, end.intercept), end, left_out: None });
            }
            start = Cow::Owned(end);
        }
        let c = if start.w.is_empty() { vec![0.0; m] } else { start.w.clone() };
        let mut space = KernelSpace::new(gram, self.problem.y, bias, c, start.intercept);
        let v = self.solve(&mut space, &start)?;
        let (c, intercept) = (space.coefficients(), space.intercept());
        let left_out = match (self.leave_one_out, self.form.band) {
            (true, Some(band)) => {
                let rows = LeftOut::new(space.margins(), self.problem.weights, band);
                let matrix = gram.principal(&rows.active, &rows.ridges());
                Some(self.left_out(&rows, rows.by_rows(matrix, bias))?)
            }
            _ => None,
        };
        let end = Start { w: c.to_vec(), intercept, v, slopes: self.problem.loss.slopes(), hard: start.hard };
        Ok(Fitted { test_scores: test_scores(c, intercept), end, left_out })
    }

    /// Some blocks of dual descent, which losses with kinks are often solved by; where they lead, and whether that is close
    /// enough.
    fn descend(&self, gram: &Gram, start: &Start) -> Result<(Start, bool)> {
        let blocks = BLOCKS * self.problem.y.len().div_ceil(ROWS);
        let most = self.settings.max_iter.map_or(blocks, |limit| limit.min(blocks));
        let settings = Settings { max_iter: Some(most), ..self.settings };
        let patience = Patience { passes: usize::MAX, leave_when_crawling: false, indefinite: false };
        let control = Control { observer: None, ..self.control };
        let guess = self.first_guess(start);
        let from = (guess.as_slice(), start.intercept);
        let found = decomposition::descend_from(gram, &self.problem, from, &settings, patience, control)?;
        let w = found.a.iter().zip(self.problem.y).map(|(a, y)| a * y).collect();
        let slopes = self.problem.loss.slopes();
        let solved = found.stop == StopReason::Gap;
        Ok((Start { w, intercept: found.intercept, v: found.v, slopes, hard: !solved }, solved))
    }

    /// Coefficients to start from: dual variables that were at an end of their domain go to where it now ends.
    fn first_guess(&self, start: &Start) -> Vec<f64> {
        let (y, loss) = (self.problem.y, self.problem.loss);
        let ends = |slopes: (f64, f64), s: f64| [-s * slopes.0, -s * slopes.1];
        let row = |i: usize| {
            let s = self.problem.weights[i];
            let Some(w) = start.w.get(i) else { return -s * loss.slope(0.0) * y[i] };
            if self.problem.variance > 0.0 {
                return *w;
            }
            let (old, new) = (ends(start.slopes, s), ends(loss.slopes(), s));
            let at = |end: &f64| end.is_finite() && (start.v[i] - end).abs() <= 1e-9 * end.abs();
            old.iter().position(at).map_or(start.v[i], |at| new[at]) * y[i]
        };
        (0..y.len()).map(row).collect()
    }

    fn by_features<X: Rows>(&self, x: &X, test: &Matrix<'_>, start: &Start) -> Result<Fitted> {
        let design = || LinearRows { x, y: self.problem.y, bias: self.problem.bias };
        let w = if start.w.is_empty() { vec![0.0; design().width()] } else { start.w.clone() };
        let mut space = LinearSpace::new(design(), w);
        let v = self.solve(&mut space, start)?;
        let (w, b) = space.split();
        let test_scores = with_rows!(test, t => (0..t.rows()).map(|i| t.dot(i, &w) + b).collect());
        let left_out = match (self.leave_one_out, self.form.band) {
            (true, Some(band)) => {
                let rows = LeftOut::new(space.margins(), self.problem.weights, band);
                Some(self.left_out(&rows, rows.by_features(&design()))?)
            }
            _ => None,
        };
        let slopes = self.problem.loss.slopes();
        let end = Start { w: space.weights().to_vec(), intercept: 0.0, v, slopes, ..Start::default() };
        Ok(Fitted { end, test_scores, left_out })
    }

    fn left_out(&self, rows: &LeftOut<'_>, leverage: Option<Vec<f64>>) -> Result<Vec<f64>> {
        let leverage = leverage.ok_or_else(|| Error::Numeric {
            place: "leave-one-out margins",
            reason: "the matrix is not positive definite".into(),
        })?;
        Ok(rows.margins(&leverage))
    }
}
