//! The points of an average: each fitted along the strengths of a kernel, and judged by rows that it did not see.

use super::T;
use crate::control::Control;
use crate::data::{Labels, Matrix, Rows, folds, unusable};
use crate::kernel::{GramPrecision, Kernel};
use crate::linalg::dot;
use crate::loss::MarginLoss;
use crate::machine::{Classes, Form, MACHINES, Machine, check_parameters};
use crate::model::UnseenBy;
use crate::problem::{Bias, MarginProblem, ScoreFunctions};
use crate::select::average_distance;
use crate::select::convex::test_scores;
use crate::select::job::Job;
use crate::select::probability::FOLDS;
use crate::solver::{Ending, Settings, Start, Workspace};
use crate::train::TrainOptions;
use crate::{Advice, Error, Result, with_rows};
use std::ops::RangeInclusive;

/// The ridges, strong first: `2^(4 − 3j/2)`.
const RIDGES: usize = 11;
/// A path ends where its loss has risen by so much above its least: what follows would weigh `exp(−14)` of the best.
const HOPELESS: f64 = 14.0 * T;
/// The gap to which points are solved: leave-one-out margins are those of the optimum.
const EXACT: f64 = 1e-9;
/// The same where rows are held out, and for points that are fitted again: a usual gap.
pub(super) const USUAL: f64 = 1e-3;

/// What all points share.
#[derive(Clone, Copy)]
pub(super) struct PointShape {
    machine: &'static Machine,
    pub bias: Bias,
    /// The weight of all rows, in whose means a row counts the same wherever it is fitted.
    total: f64,
}

impl PointShape {
    /// An error for machines that averaging is not made for.
    pub fn new(options: &TrainOptions, total: f64) -> Result<Self> {
        let (machine, bias) = (options.machine, options.bias);
        if can_be_averaged(machine) {
            return Ok(Self { machine, bias, total });
        }
        let able = MACHINES.iter().filter(|machine| can_be_averaged(machine));
        let able: Vec<&str> = able.map(|machine| machine.name()).collect();
        let reason = format!(
            "an average is one of machines that are a convex problem of two classes ({}; of more classes each against all \
             others), not of {}",
            able.join(", "),
            machine.name()
        );
        Err(Error::conflict(reason, Advice::values("machine", able)))
    }

    /// Whether rows are left out in closed form, not by folds.
    pub fn leaves_out(&self) -> bool {
        self.machine.averaged_band().is_some()
    }

    /// How rows are left out.
    pub fn by(&self, rows: usize) -> UnseenBy {
        if self.leaves_out() { UnseenBy::LeaveOneOut } else { UnseenBy::Folds(FOLDS.min(rows)) }
    }

    /// What a point minimises, the kernel's size in its costs: with a band, `½ ‖w‖² + Σ s_i (max(0, 1−D−γ_i)² + C2/C1 max(0,
    /// γ_i−1−D)²) / 2r`; else the machine's own problem with `C = 1/r` for each row, its other parameters at their defaults.
    pub fn form(&self, ridge: f64, size: f64) -> Result<Form> {
        if let Some((ratio, d)) = self.machine.averaged_band() {
            let cost = 0.5 / ridge / size;
            return Ok(Form { loss: MarginLoss::band(cost, cost * ratio, d), variance: 0.0, bound: None });
        }
        let mut parameters = check_parameters(self.machine, &[])?;
        if let Some(strength) = self.machine.grid().first() {
            let mean = if self.machine.weighs_means().contains(&strength.name) { self.total } else { 1.0 };
            parameters.set(strength.name, mean / ridge);
        }
        let form = self.machine.form(&parameters, self.total);
        let form = form.ok_or_else(|| Error::conflict("not one convex problem", Advice::NONE))?;
        Ok(Form { loss: form.loss.times(1.0 / size), variance: form.variance / size, ..form })
    }
}

/// Whether points of this machine can share a workspace and be added up.
fn can_be_averaged(machine: &Machine) -> bool {
    let formed = check_parameters(machine, &[]).is_ok_and(|usual| machine.form(&usual, 1.0).is_some());
    formed && machine.classes() == Classes::Two && !machine.grid().is_empty()
}

/// A kernel of the average; the linear one counts as if its rows had unit mean square.
pub(super) struct Candidate {
    pub kernel: Kernel,
    /// By what kernel values are divided.
    pub size: f64,
    /// Whether it sees the ranks of the features.
    pub on_ranks: bool,
}

/// The linear kernel, `σ = 2^k` root mean square distances of two rows for these `k`, and a Laplacian of twice the mean distance.
fn kernels(rows: &Matrix<'_>, weights: &[f64], bias: Bias, seed: u64, widths: RangeInclusive<i32>) -> Vec<Candidate> {
    let (total, mut squares, mut mean) = (weights.iter().sum::<f64>(), 0.0, vec![0.0; rows.cols()]);
    for (i, s) in weights.iter().enumerate() {
        with_rows!(rows, x => {
            squares += s / total * x.norm2(i);
            x.axpy(i, s / total, &mut mean);
        });
    }
    let positive = |x: f64| if x.is_finite() && x > 0.0 { x } else { 1.0 };
    let variance = positive(squares - dot(&mean, &mean));
    // A free intercept takes the mean out of the linear kernel.
    let size = if bias == Bias::Free { variance } else { positive(squares) };
    let of = |kernel: Kernel, size: f64| Candidate { kernel, size, on_ranks: false };
    let mut kernels = vec![of(Kernel::Linear, size)];
    kernels.extend(widths.map(|k| of(Kernel::Rbf { gamma: 4f64.powi(-k) / (4.0 * variance) }, 1.0)));
    kernels.push(of(Kernel::Laplacian { gamma: 0.5 / average_distance(rows, seed, true) }, 1.0));
    kernels
}

/// The judged rows as some of the kernels see them.
struct View<'a> {
    rows: &'a Matrix<'a>,
    /// Copies of the rows of each fold: those to learn from, those that are left out.
    folds: Vec<[Matrix<'static>; 2]>,
}

impl<'a> View<'a> {
    fn new(rows: &'a Matrix<'a>, folds: &[FoldOf]) -> Self {
        Self { rows, folds: folds.iter().map(|fold| [rows.select(&fold.train), rows.select(&fold.test)]).collect() }
    }
}

/// One of the folds that rows are left out by.
struct FoldOf {
    train: Vec<usize>,
    test: Vec<usize>,
    /// `y` of each label vector, and the weights, of the rows to learn from.
    signs: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

/// The rows that points are judged on.
pub(super) struct Judging<'a> {
    values: View<'a>,
    /// Their ranks, if kernels see these too.
    ranked: Option<View<'a>>,
    pub codes: Vec<u32>,
    /// `y` of each label vector.
    signs: Vec<Vec<f64>>,
    pub weights: Vec<f64>,
    /// Label vectors: one, or one a class.
    pub columns: usize,
    shape: PointShape,
    /// None where rows are left out in closed form.
    folds: Vec<FoldOf>,
    settings: Settings,
    control: Control<'a>,
}

/// A point that was fitted.
pub(super) struct PathPoint {
    pub ridge: f64,
    /// One score function a column, over the rows it was judged on; none where these are left out by folds.
    pub functions: Vec<ScoreFunctions>,
    /// Scores of rows left out, row after row.
    pub unseen: Vec<f64>,
    /// `a_p`, and `L_p` at it.
    pub slope: f64,
    pub loss: f64,
}

impl<'a> Judging<'a> {
    /// Judging on the rows at these places.
    pub fn new(
        job: &'a Job<'a>,
        places: &[usize],
        rows: &'a Matrix<'a>,
        ranked: Option<&'a Matrix<'a>>,
        shape: PointShape,
    ) -> Result<Self> {
        let codes: Vec<u32> = places.iter().map(|&i| job.codes[i]).collect();
        let weights: Vec<f64> = places.iter().map(|&i| job.weights[i]).collect();
        let usual = job.options.settings;
        let tol = if shape.leaves_out() { EXACT } else { usual.tol.min(USUAL) };
        let folds = match shape.by(codes.len()) {
            UnseenBy::LeaveOneOut => Vec::new(),
            UnseenBy::Folds(count) => {
                check_folds(job, &codes)?;
                dealt(job, &job.labels.select(places), &codes, &weights, count)
            }
        };
        Ok(Self {
            values: View::new(rows, &folds),
            ranked: ranked.map(|ranked| View::new(ranked, &folds)),
            signs: (0..job.columns()).map(|column| job.signs(&codes, column)).collect(),
            codes,
            weights,
            columns: job.columns(),
            shape,
            folds,
            settings: Settings { tol, max_iter: None, ..usual },
            control: Control { observer: None, ..job.control },
        })
    }

    /// All kernels: of ranks fewer widths do, because they lie evenly.
    pub fn candidates(&self, seed: u64) -> Vec<Candidate> {
        let of = |view: &View<'_>, widths| kernels(view.rows, &self.weights, self.shape.bias, seed, widths);
        let ranked = self.ranked.as_ref().map_or_else(Vec::new, |ranked| of(ranked, -1..=1));
        let on_ranks = ranked.into_iter().map(|candidate| Candidate { on_ranks: true, ..candidate });
        of(&self.values, -2..=2).into_iter().chain(on_ranks).collect()
    }

    /// Problems solved for a point.
    pub fn solves(&self) -> usize {
        self.columns * self.folds.len().max(1)
    }

    fn seen_by(&self, candidate: &Candidate) -> &View<'a> {
        self.ranked.as_ref().filter(|_| candidate.on_ranks).unwrap_or(&self.values)
    }

    /// The points of a kernel, from the strongest ridge on, each from where the one before ended, until they have become hopeless.
    pub fn path(&self, candidate: &Candidate) -> Result<Vec<PathPoint>> {
        let view = self.seen_by(candidate);
        let whole = Workspace::new(view.rows, candidate.kernel, self.settings).shared();
        // The parts are at hand at the same time.
        let memory = self.settings.memory / self.folds.len().max(1) as u64;
        let folds = self.folds.iter().zip(&view.folds);
        let parts: Vec<Workspace<'_>> = folds
            .map(|(fold, [rows, _])| Workspace::part(&whole, &fold.train, rows, Settings { memory, ..self.settings }))
            .collect();
        let mut starts = vec![Start::default(); self.solves()];
        let (mut found, mut least, mut before) = (Vec::<PathPoint>::new(), f64::INFINITY, f64::INFINITY);
        for j in 0..RIDGES {
            let ridge = 2f64.powf(4.0 - 1.5 * j as f64);
            let form = self.shape.form(ridge, candidate.size)?;
            if self.is_unbounded(&form) {
                continue;
            }
            let judged = match self.folds.is_empty() {
                true => self.left_out(&whole, &form, &mut starts)?,
                false => self.held_out(&parts, view, &form, &mut starts)?,
            };
            let Some((functions, unseen)) = judged else { break };
            let (slope, loss) = best_slope(&unseen, self.columns, &self.codes, &self.weights);
            if !loss.is_finite() {
                break;
            }
            let hopeless = loss > least + HOPELESS && loss > before;
            (least, before) = (least.min(loss), loss);
            found.push(PathPoint { ridge, functions, unseen, slope, loss });
            if hopeless {
                break;
            }
        }
        Ok(found)
    }

    /// Whether some problem of a point has no minimum, as the mean of the margins outweighs the errors.
    fn is_unbounded(&self, form: &Form) -> bool {
        let all = (&self.signs, &self.weights);
        let of = |(signs, weights): (&Vec<Vec<f64>>, &Vec<f64>)| {
            signs.iter().any(|y| form.problem(y, weights, self.shape.bias).is_unbounded())
        };
        of(all) || self.folds.iter().any(|fold| of((&fold.signs, &fold.weights)))
    }

    /// Solves one problem from a start, which then stands where it ends; `None` where it cannot be solved in double precision.
    fn solve(
        &self,
        workspace: &Workspace<'_>,
        problem: &MarginProblem<'_>,
        precision: GramPrecision,
        start: &mut Start,
    ) -> Result<Option<Ending>> {
        let ending = match workspace.solve(problem, precision, start, &self.settings, self.control) {
            Err(Error::Numeric { .. }) => return Ok(None),
            ending => ending?,
        };
        *start = ending.start(problem);
        Ok(Some(ending))
    }

    /// The score functions of a point and its leave-one-out scores; `None` where its systems cannot be solved in double precision.
    fn left_out(&self, workspace: &Workspace<'_>, form: &Form, starts: &mut [Start]) -> Result<Option<Judged>> {
        let mut loo = vec![0.0; self.codes.len() * self.columns];
        let mut functions = Vec::new();
        for (l, (y, start)) in self.signs.iter().zip(starts).enumerate() {
            let problem = form.problem(y, &self.weights, self.shape.bias);
            let Some(ending) = self.solve(workspace, &problem, GramPrecision::Double, start)? else { return Ok(None) };
            let Some(margins) = &ending.margins else { return Ok(None) };
            let left_out = workspace.left_out(&problem, margins, ending.factor.as_ref(), true, self.control)?;
            let Some(left_out) = left_out else { return Ok(None) };
            left_out.iter().zip(y).enumerate().for_each(|(i, (g, y))| loo[i * self.columns + l] = y * g);
            functions.push(ending.functions);
        }
        Ok(Some((functions, loo)))
    }

    /// The scores of each row under the point fitted to the folds it is not in.
    fn held_out(
        &self,
        parts: &[Workspace<'_>],
        view: &View<'_>,
        form: &Form,
        starts: &mut [Start],
    ) -> Result<Option<Judged>> {
        let mut scores = vec![0.0; self.codes.len() * self.columns];
        let precision = GramPrecision::for_tolerance(self.settings.tol);
        let folds = self.folds.iter().zip(&view.folds).zip(parts).zip(starts.chunks_exact_mut(self.columns));
        for (((fold, [_, test]), workspace), starts) in folds {
            for (l, (y, start)) in fold.signs.iter().zip(starts).enumerate() {
                let problem = form.problem(y, &fold.weights, self.shape.bias);
                let Some(ending) = self.solve(workspace, &problem, precision, start)? else { return Ok(None) };
                let found = test_scores(workspace, test, &fold.test, &ending, self.control)?;
                fold.test.iter().zip(found).for_each(|(&i, f)| scores[i * self.columns + l] = f);
            }
        }
        Ok(Some((Vec::new(), scores)))
    }
}

/// The score functions of a point, and its scores of rows left out.
type Judged = (Vec<ScoreFunctions>, Vec<f64>);

/// Rows dealt into folds, class by class.
fn dealt(job: &Job<'_>, labels: &Labels, codes: &[u32], weights: &[f64], count: usize) -> Vec<FoldOf> {
    let fold = |test: Vec<usize>| {
        let mut left = vec![true; codes.len()];
        test.iter().for_each(|&i| left[i] = false);
        let train: Vec<usize> = (0..codes.len()).filter(|&i| left[i]).collect();
        let known: Vec<u32> = train.iter().map(|&i| codes[i]).collect();
        FoldOf {
            signs: (0..job.columns()).map(|column| job.signs(&known, column)).collect(),
            weights: train.iter().map(|&i| weights[i]).collect(),
            train,
            test,
        }
    };
    folds(labels, count, job.options.settings.seed, 0).into_iter().map(fold).collect()
}

/// Refuses a class of which one fold would hold every row.
fn check_folds(job: &Job<'_>, codes: &[u32]) -> Result<()> {
    let rows = |class: usize| codes.iter().filter(|&&code| code as usize == class).count();
    let Some(alone) = (0..job.classes.len()).find(|&class| rows(class) < 2) else { return Ok(()) };
    let reason = format!(
        "an average from folds needs two rows of each label among the {} that points are judged on; {} has {}",
        codes.len(),
        job.classes[alone],
        rows(alone)
    );
    if codes.len() < job.codes.len() {
        return Err(Error::conflict(reason, Advice::values("search_rows", ["all"])));
    }
    Err(unusable(job.name, &reason))
}

/// The slope `a ≥ 0` that has the least `Σ s_i ln Σ_l exp(−a r_il)`, `r` by how much a row's class leads the others, and that sum; a tiny
/// ridge keeps it finite where all rows are right.
fn best_slope(scores: &[f64], columns: usize, codes: &[u32], weights: &[f64]) -> (f64, f64) {
    const RIDGE: f64 = 1e-3;
    let mut leads = Vec::with_capacity(scores.len());
    for (row, &code) in scores.chunks_exact(columns).zip(codes) {
        match row {
            [score] => leads.push(if code == 1 { *score } else { -score }),
            row => leads.extend((0..columns).filter(|&l| l != code as usize).map(|l| row[code as usize] - row[l])),
        }
    }
    let rivals = leads.len() / codes.len().max(1);
    let total: f64 = weights.iter().sum();
    let size = (leads.iter().map(|r| r * r).sum::<f64>() / leads.len().max(1) as f64).sqrt() + 1e-12;
    let rows = || leads.chunks_exact(rivals.max(1)).zip(weights);
    let log = |row: &[f64], a: f64| {
        let most = row.iter().fold(0.0f64, |most, r| most.max(-a * r / size));
        most + ((-most).exp() + row.iter().map(|r| (-a * r / size - most).exp()).sum::<f64>()).ln()
    };
    let mut slope = 1.0;
    for _ in 0..25 {
        let (mut first, mut second) = (RIDGE * slope, RIDGE);
        for (row, s) in rows() {
            let log = log(row, slope);
            let (mean, square) = row.iter().fold((0.0, 0.0), |(mean, square), r| {
                let p = (-slope * r / size - log).exp();
                (mean + p * r / size, square + p * (r / size).powi(2))
            });
            first -= s / total * mean;
            second += s / total * (square - mean * mean);
        }
        let next = (slope - (first / second).clamp(-1.0, 1.0)).clamp(0.0, 50.0);
        let moved = (next - slope).abs();
        slope = next;
        if moved < 1e-9 {
            break;
        }
    }
    (slope / size, rows().map(|(row, s)| s * log(row, slope)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_best() {
        let (scores, codes) = ([0.5, -0.2, 1.0, -2.0, 0.3, -0.4], [1, 0, 1, 0, 0, 1]);
        let (slope, loss) = best_slope(&scores, 1, &codes, &[1.0; 6]);
        let at = |a: f64| -> f64 {
            let margin = |(f, c): (&f64, &u32)| if *c == 1 { *f } else { -f };
            scores.iter().zip(&codes).map(|row| (-a * margin(row)).exp().ln_1p()).sum()
        };
        assert!((loss - at(slope)).abs() < 1e-9 && at(0.97 * slope) > loss - 1e-3 && at(1.03 * slope) > loss - 1e-3);
        // Three classes of which the scores are those of one against the other two.
        let (_, many) = best_slope(&[2.0, -1.0, -1.0, -1.0, 2.0, -1.0], 3, &[0, 1], &[1.0; 2]);
        assert!(many < 2.0 * 3f64.ln());
    }
}
