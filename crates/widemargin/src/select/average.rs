//! One model of many points: every strength over a few kernels, each weighted by how well it foretells rows that it did not see.
//!
//! Point `p` (a kernel and a ridge `r = m / 2C1`, at a fixed `C2/C1` and `D`) is fitted once, and its closed-form leave-one-out scores
//! tell both its slope `a_p`, which puts it on the logit scale, and its logistic loss `L_p`, summed over the rows. The model is
//! `f(x) = Σ_p w_p a_p f_p(x)` with `w_p ∝ exp(−(L_p − min L) / T)`: one coefficient vector a kernel, whatever the number of points.

use super::average_distance;
use super::ground::Job;
use crate::calibration::{Unseen, conformity};
use crate::control::Control;
use crate::data::{Examples, Matrix, Rows, Scaling, Schema, given_weights, train_test};
use crate::kernel::{GramPrecision, Kernel, KernelRows};
use crate::linalg::{Cholesky, dot, matrix_product};
use crate::loss::MarginLoss;
use crate::machine::MACHINES;
use crate::model::{Averaged, AveragedKernel, Decision, KernelPart, Model, ModelCertificate, Origin, Scorer, UnseenBy};
use crate::multiclass::Multiclass;
use crate::problem::{Bias, MarginProblem, ScoreFunctions};
use crate::solver::{Settings, Start, Workspace};
use crate::train::{TrainOptions, check_rows};
use crate::{Advice, Error, Result, verify, with_rows};
use rayon::prelude::*;

/// The temperature of the weights.
const T: f64 = 3.0;
/// Kernels of a smaller total weight are dropped.
const KEEP: f64 = 0.1;
/// If none has as much, so many of the heaviest stay.
const AT_LEAST: usize = 3;
/// The ridges, strong first: `2^(4 − 3j/2)`.
const RIDGES: usize = 11;
/// A path ends where its loss has risen by so much above its least: what follows would weigh `exp(−14)` of the best.
const HOPELESS: f64 = 14.0 * T;
/// Points are judged on at most so many rows.
pub const JUDGED_ROWS: usize = 600;
/// A point of less than this part of the largest weight is left out of the model.
const NEGLIGIBLE: f64 = 1e-3;
/// Most Newton steps of a point; two or three are usual.
const STEPS: usize = 30;

/// A model that is the average of many, and what was found on the way.
pub struct AverageFit {
    /// The model; [`Model::average`] says what it is made of.
    pub model: Model,
    /// Problems solved.
    pub fits: usize,
    /// The leave-one-out error of the averaged scores, by weight.
    pub loo_error: f64,
    /// The averaged scores of each row that points were judged on, the row left out, over all rows of the data: the others, which
    /// were not, have no class there.
    pub unseen: Unseen,
    /// How many rows points were judged on.
    pub judged_rows: usize,
}

/// `C2/C1` and `D` of the points of a machine; an error for machines without leave-one-out margins that averaging is made for.
fn shape(options: &TrainOptions) -> Result<(f64, f64)> {
    options.machine.averaged_band().ok_or_else(|| {
        let able = MACHINES.iter().filter(|machine| machine.averaged_band().is_some());
        let able: Vec<&str> = able.map(|machine| machine.name()).collect();
        let reason = format!(
            "averaging rests on leave-one-out margins in closed form and is made for {}, not for {}",
            able.join(" and "),
            options.machine.name()
        );
        Error::conflict(reason, Advice::values("machine", able))
    })
}

/// Refuses, before any work, what averaging is not made for.
pub fn check_average(options: &TrainOptions) -> Result<()> {
    shape(options).map(|_| ())
}

/// Averages the points of a machine over the kernels and strengths of its own choice: linear, five widths of the RBF kernel around
/// the root mean square distance of two rows, and a Laplacian. Points are judged on `judged` of the rows ([`JUDGED_ROWS`] if
/// `None`) and fitted on all. The kernel and the parameters of `options` do not count.
pub fn average(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    judged: Option<usize>,
    control: Control<'_>,
) -> Result<AverageFit> {
    let shape = shape(options)?;
    check_rows(data.name, data.rows)?;
    let job = Job::new(data, weights, options, control)?;
    let scaling = options.scaling.map(|kind| Scaling::fit(kind, &job.rows, Some(&job.weights)));
    let rows = match &scaling {
        Some(scaling) => scaling.apply(&job.rows),
        None => job.rows.view(),
    };
    let share = judged.unwrap_or(JUDGED_ROWS) as f64 / job.codes.len() as f64;
    let chosen = (share < 1.0).then(|| train_test(&job.labels, share, options.settings.seed, 0).0);
    let some = chosen.as_ref().map(|chosen| rows.select(chosen));
    let all: Vec<usize> = (0..job.codes.len()).collect();
    let places: &[usize] = chosen.as_deref().unwrap_or(&all);
    let ground = Judging {
        rows: some.as_ref().unwrap_or(&rows),
        codes: places.iter().map(|&i| job.codes[i]).collect(),
        weights: places.iter().map(|&i| job.weights[i]).collect(),
        columns: job.columns(),
        bias: options.bias,
        shape,
        control,
    };
    let kernels = kernels(ground.rows, &ground.weights, options.bias, options.settings.seed);
    let paths: Vec<Vec<PathPoint>> = kernels.par_iter().map(|k| ground.path(k)).collect::<Result<_>>()?;
    let fits = ground.columns * paths.iter().map(Vec::len).sum::<usize>();
    let (mut kept, averaged) = weigh(&kernels, paths)?;
    let mut loo = vec![0.0; ground.codes.len() * ground.columns];
    kept.iter().for_each(|p| loo.iter_mut().zip(&p.fitted.loo).for_each(|(sum, f)| *sum += p.factor * f));
    if chosen.is_some() {
        refit(&job, &rows, shape, &mut kept)?;
    }
    let given: Vec<f64> = places.iter().map(|&i| job.given_weights[i]).collect();
    let unseen = Unseen {
        scores: loo,
        columns: ground.columns,
        codes: ground.codes.iter().map(|&code| Some(code)).collect(),
        weights: given,
        classes: job.classes.len(),
        by: UnseenBy::LeaveOneOut,
    };
    let total: f64 = ground.weights.iter().sum();
    let wrong = margins(&unseen).iter().zip(&ground.weights).filter(|(g, _)| **g <= 0.0).map(|(_, s)| s).sum::<f64>();
    let (judged_rows, points) = (ground.codes.len(), kept.len());
    let model = assemble(&job, &rows, kept, averaged, points, &unseen, data, weights)?;
    let model = Model { scaling, ..model };
    let places: Vec<usize> = places.iter().map(|&i| job.kept[i]).collect();
    let unseen = spread(unseen, &places, &given_weights(data.name, data.labels, weights)?);
    Ok(AverageFit { model, fits, loo_error: wrong / total, unseen, judged_rows })
}

/// A kernel of the average; the linear one counts as if its rows had unit mean square.
struct Candidate {
    kernel: Kernel,
    /// By what kernel values are divided.
    size: f64,
}

/// The linear kernel, `σ = 2^k` root mean square distances of two rows for `k = −2 … 2`, and a Laplacian of twice the mean distance.
fn kernels(rows: &Matrix<'_>, weights: &[f64], bias: Bias, seed: u64) -> Vec<Candidate> {
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
    let rbf = |k: i32| Candidate { kernel: Kernel::Rbf { gamma: 4f64.powi(-k) / (4.0 * variance) }, size: 1.0 };
    let laplacian = Kernel::Laplacian { gamma: 0.5 / average_distance(rows, seed, true) };
    let mut kernels = vec![Candidate { kernel: Kernel::Linear, size }];
    kernels.extend((-2..=2).map(rbf));
    kernels.push(Candidate { kernel: laplacian, size: 1.0 });
    kernels
}

/// The rows that points are judged on.
struct Judging<'a> {
    rows: &'a Matrix<'a>,
    codes: Vec<u32>,
    weights: Vec<f64>,
    /// Label vectors: one, or one a class.
    columns: usize,
    bias: Bias,
    /// `C2/C1` and `D`.
    shape: (f64, f64),
    control: Control<'a>,
}

/// A point that was fitted.
struct PathPoint {
    ridge: f64,
    /// One vector a column over the rows it was fitted on, of the linear kernel the weights; and the intercepts.
    vectors: Vec<Vec<f64>>,
    intercepts: Vec<f64>,
    /// Leave-one-out scores, row after row.
    loo: Vec<f64>,
    /// `a_p`, and `L_p` at it.
    slope: f64,
    loss: f64,
}

/// One label vector at a point.
struct PathColumn {
    c: Vec<f64>,
    intercept: f64,
    margins: Vec<f64>,
    loo: Vec<f64>,
}

impl Judging<'_> {
    fn signs(&self, column: usize) -> Vec<f64> {
        let positive = if self.columns == 1 { 1 } else { column as u32 };
        self.codes.iter().map(|&code| if code == positive { 1.0 } else { -1.0 }).collect()
    }

    /// The points of a kernel, from the strongest ridge on, each from where the one before ended, until they have become hopeless.
    fn path(&self, candidate: &Candidate) -> Result<Vec<PathPoint>> {
        let m = self.codes.len();
        let mut matrix = KernelRows::new(candidate.kernel, self.rows, 0.0).matrix(self.control)?;
        matrix.iter_mut().for_each(|k| *k /= candidate.size);
        let signs: Vec<Vec<f64>> = (0..self.columns).map(|column| self.signs(column)).collect();
        // Kernel values are divided by the size; what draws at the intercept is multiplied with it.
        let pull = if self.bias == Bias::None { f64::INFINITY } else { candidate.size * self.bias.ridge() };
        let mut starts = vec![vec![0.0; m]; self.columns];
        let (mut found, mut least, mut before) = (Vec::<PathPoint>::new(), f64::INFINITY, f64::INFINITY);
        for j in 0..RIDGES {
            let ridge = 2f64.powf(4.0 - 1.5 * j as f64);
            self.control.check()?;
            let solve = |(y, start): (&Vec<f64>, &Vec<f64>)| self.solve(&matrix, y, ridge, pull, start);
            let Some(columns) = signs.iter().zip(&starts).map(solve).collect::<Option<Vec<PathColumn>>>() else {
                break;
            };
            let mut loo = vec![0.0; m * self.columns];
            let (mut vectors, mut intercepts) = (Vec::new(), Vec::new());
            for (l, column) in columns.into_iter().enumerate() {
                (0..m).for_each(|i| loo[i * self.columns + l] = column.loo[i]);
                starts[l] = column.margins;
                vectors.push(self.vector(candidate, column.c));
                intercepts.push(column.intercept);
            }
            let (slope, loss) = best_slope(&loo, self.columns, &self.codes, &self.weights);
            if !loss.is_finite() {
                break;
            }
            let hopeless = loss > least + HOPELESS && loss > before;
            (least, before) = (least.min(loss), loss);
            found.push(PathPoint { ridge, vectors, intercepts, loo, slope, loss });
            if hopeless {
                break;
            }
        }
        Ok(found)
    }

    /// Coefficients as they stand in the model.
    fn vector(&self, candidate: &Candidate, mut c: Vec<f64>) -> Vec<f64> {
        c.iter_mut().for_each(|c| *c /= candidate.size);
        if candidate.kernel != Kernel::Linear {
            return c;
        }
        let mut weights = vec![0.0; self.rows.cols()];
        with_rows!(self.rows, x => (0..c.len()).for_each(|i| x.axpy(i, c[i], &mut weights)));
        weights
    }

    /// Newton's method on the rows outside the band, from these margins; the last factor gives the leave-one-out scores.
    /// `None` if the matrix is not positive definite.
    fn solve(&self, matrix: &[f64], y: &[f64], ridge: f64, pull: f64, start: &[f64]) -> Option<PathColumn> {
        let (m, (ratio, d)) = (y.len(), self.shape);
        let side = |g: f64| {
            if g < 1.0 - d {
                Some(false)
            } else if g > 1.0 + d {
                Some(true)
            } else {
                None
            }
        };
        let row_ridge = |i: usize, upper: bool| ridge / self.weights[i] / if upper { ratio } else { 1.0 };
        let objective = |c: &[f64], b: f64, f: &[f64]| {
            let row = |i: usize| match (y[i] * f[i], side(y[i] * f[i])) {
                (g, Some(false)) => 0.5 * (1.0 - d - g).powi(2) / row_ridge(i, false),
                (g, Some(true)) => 0.5 * (g - 1.0 - d).powi(2) / row_ridge(i, true),
                _ => 0.0,
            };
            let norm: f64 = c.iter().zip(f).map(|(c, f)| c * (f - b)).sum();
            let drawn = if pull.is_finite() { 0.5 * pull * b * b } else { 0.0 };
            0.5 * norm + drawn + (0..m).map(row).sum::<f64>()
        };
        let mut margins = start.to_vec();
        let mut best: Option<(f64, Vec<f64>, f64, Vec<f64>)> = None;
        for step in 0..STEPS {
            let mut sides: Vec<Option<bool>> = margins.iter().map(|g| side(*g)).collect();
            if sides.iter().all(Option::is_none) {
                sides = vec![Some(false); m];
            }
            let active: Vec<usize> = (0..m).filter(|&i| sides[i].is_some()).collect();
            let k = active.len();
            let target = |i: usize| y[i] * if sides[i] == Some(true) { 1.0 + d } else { 1.0 - d };
            let mut system = Vec::with_capacity(k * k);
            for &i in &active {
                let row = &matrix[i * m..(i + 1) * m];
                if k == m { system.extend_from_slice(row) } else { system.extend(active.iter().map(|&j| row[j])) }
            }
            active.iter().enumerate().for_each(|(p, &i)| system[p * k + p] += row_ridge(i, sides[i] == Some(true)));
            let factor = Cholesky::new(system, k).ok()?;
            let mut both: Vec<f64> = active.iter().map(|&i| target(i)).chain(std::iter::repeat_n(1.0, k)).collect();
            factor.solve(&mut both);
            let (v, u) = both.split_at(k);
            let sum = u.iter().sum::<f64>() + pull;
            let b = if pull.is_finite() { v.iter().sum::<f64>() / sum } else { 0.0 };
            let mut c = vec![0.0; m];
            active.iter().enumerate().for_each(|(p, &i)| c[i] = v[p] - b * u[p]);
            let mut f = vec![0.0; m];
            matrix_product(matrix, &c, &mut f);
            f.iter_mut().for_each(|f| *f += b);
            let value = objective(&c, b, &f);
            let settled = |f: &[f64]| (0..m).all(|i| side(y[i] * f[i]) == sides[i]);
            let uphill = best.as_ref().is_some_and(|best| value > best.0 * (1.0 + 1e-12));
            if uphill && let Some(last) = best.take() {
                // Back towards where it came from, until it is downhill.
                let mix = |s: f64, a: &[f64], b: &[f64]| -> Vec<f64> {
                    a.iter().zip(b).map(|(a, b)| a + s * (b - a)).collect()
                };
                let (mut s, mut next) = (0.5, None);
                while s > 1e-3 {
                    let point = (mix(s, &last.1, &c), last.2 + s * (b - last.2), mix(s, &last.3, &f));
                    let value = objective(&point.0, point.1, &point.2);
                    if value < last.0 {
                        next = Some((value, point.0, point.1, point.2));
                        break;
                    }
                    s *= 0.5;
                }
                let next = next.unwrap_or((value, c, b, f));
                margins = next.3.iter().zip(y).map(|(f, y)| f * y).collect();
                best = Some(next);
                continue;
            }
            margins = f.iter().zip(y).map(|(f, y)| f * y).collect();
            if settled(&f) || step + 1 == STEPS {
                let inverse = factor.inverse_diagonal();
                let mut loo = f;
                for (p, &i) in active.iter().enumerate() {
                    let rest = inverse[p] - if pull.is_finite() { u[p] * u[p] / sum } else { 0.0 };
                    loo[i] = target(i) - c[i] / rest.max(1e-12 * inverse[p]);
                }
                return Some(PathColumn { c, intercept: b, margins, loo });
            }
            best = Some((value, c, b, f));
        }
        None
    }
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

/// A point that stays: the kernel it belongs to, and what its scores are multiplied with.
struct Kept {
    kernel: Kernel,
    /// By what its values were divided.
    size: f64,
    fitted: PathPoint,
    factor: f64,
}

/// The points of the kernels that stay, with `w_p a_p`, and the kernels with their total weights, the heaviest first.
fn weigh(kernels: &[Candidate], paths: Vec<Vec<PathPoint>>) -> Result<(Vec<Kept>, Vec<AveragedKernel>)> {
    let least = paths.iter().flatten().map(|p| p.loss).fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        let reason = "no kernel matrix of these rows can be factored: scale the features (minmax or standard)";
        return Err(Error::Numeric { place: "averaging", reason: reason.into() });
    }
    let weight = |p: &PathPoint| (-(p.loss - least) / T).exp();
    let sum: f64 = paths.iter().flatten().map(weight).sum();
    let totals: Vec<f64> = paths.iter().map(|path| path.iter().map(weight).sum::<f64>() / sum).collect();
    let mut order: Vec<usize> = (0..kernels.len()).filter(|&k| !paths[k].is_empty()).collect();
    order.sort_by(|&a, &b| totals[b].total_cmp(&totals[a]));
    let heavy = order.iter().filter(|&&k| totals[k] >= KEEP).count();
    order.truncate(if heavy > 0 { heavy } else { AT_LEAST });
    let most = paths.iter().flatten().map(weight).fold(0.0, f64::max);
    let stays = |k: usize, p: &PathPoint| order.contains(&k) && weight(p) >= NEGLIGIBLE * most;
    let mut points: Vec<(usize, PathPoint)> = Vec::new();
    for (k, path) in paths.into_iter().enumerate() {
        points.extend(path.into_iter().filter(|p| stays(k, p)).map(|p| (k, p)));
    }
    let sum: f64 = points.iter().map(|(_, p)| weight(p)).sum();
    let of = |k: usize| points.iter().filter(|(l, _)| *l == k).map(|(_, p)| weight(p)).sum::<f64>() / sum;
    let mut averaged: Vec<AveragedKernel> = order
        .iter()
        .filter(|&&k| of(k) > 0.0)
        .map(|&k| AveragedKernel { kernel: kernels[k].kernel, weight: of(k) })
        .collect();
    averaged.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let kept = points.into_iter().map(|(k, fitted)| {
        let factor = weight(&fitted) / sum * fitted.slope;
        Kept { kernel: kernels[k].kernel, size: kernels[k].size, fitted, factor }
    });
    Ok((kept.collect(), averaged))
}

/// Fits the points that stay on all rows: a row counts there as much as it did among those that points were judged on.
fn refit(job: &Job<'_>, rows: &Matrix<'_>, shape: (f64, f64), kept: &mut [Kept]) -> Result<()> {
    let control = Control { observer: None, ..job.control };
    let mut kernels: Vec<Kernel> = Vec::new();
    kept.iter().for_each(|p| {
        if !kernels.contains(&p.kernel) {
            kernels.push(p.kernel);
        }
    });
    for kernel in kernels {
        let settings = Settings { tol: job.options.settings.tol.min(1e-3), ..job.options.settings };
        let workspace = Workspace::new(rows, kernel, settings).shared();
        let mut starts = vec![Start::default(); job.columns()];
        for point in kept.iter_mut().filter(|p| p.kernel == kernel) {
            // `(C/m) max(0, …)²` with `C/m = 1 / 2r`; the linear kernel's size goes into the cost.
            let cost = 0.5 / point.fitted.ridge / point.size;
            let loss = MarginLoss::band(cost, cost * shape.0, shape.1);
            for (column, start) in starts.iter_mut().enumerate() {
                let y = job.signs(&job.codes, column);
                let (weights, bias) = (&job.weights, job.options.bias);
                let problem = MarginProblem { y: &y, weights, loss, variance: 0.0, bias };
                let ending =
                    workspace.solve(&problem, GramPrecision::for_tolerance(settings.tol), start, &settings, control)?;
                *start = ending.start(&problem);
                let (mut vectors, intercepts) = ending.functions.into_parts();
                point.fitted.vectors[column] = vectors.pop().unwrap_or_default();
                point.fitted.intercepts[column] = intercepts[0];
            }
        }
    }
    Ok(())
}

/// By how much the own class of each row leads the others.
fn margins(unseen: &Unseen) -> Vec<f64> {
    let lead = |(i, code): (usize, &Option<u32>)| match (unseen.row(i), code.unwrap_or(0) as usize) {
        ([score], 1) => *score,
        ([score], _) => -score,
        (row, own) => {
            let rival = (0..row.len()).filter(|&l| l != own).map(|l| row[l]).fold(f64::NEG_INFINITY, f64::max);
            row[own] - rival
        }
    };
    unseen.codes.iter().enumerate().map(lead).collect()
}

/// The same over all rows of the data, of which these have scores.
fn spread(some: Unseen, places: &[usize], weights: &[f64]) -> Unseen {
    let columns = some.columns;
    let (mut scores, mut codes) = (vec![0.0; weights.len() * columns], vec![None; weights.len()]);
    for (p, &i) in places.iter().enumerate() {
        scores[i * columns..(i + 1) * columns].copy_from_slice(some.row(p));
        codes[i] = some.codes[p];
    }
    Unseen { scores, codes, weights: weights.to_vec(), ..some }
}

/// The model of the points that stay.
#[allow(clippy::too_many_arguments)]
fn assemble(
    job: &Job<'_>,
    rows: &Matrix<'_>,
    kept: Vec<Kept>,
    kernels: Vec<AveragedKernel>,
    points: usize,
    unseen: &Unseen,
    data: Examples<'_>,
    weights: Option<&[f64]>,
) -> Result<Model> {
    let (m, columns) = (job.codes.len(), job.columns());
    let mut intercepts = vec![0.0; columns];
    let mut sums: Vec<(Kernel, Vec<Vec<f64>>)> = kernels
        .iter()
        .map(|k| (k.kernel, vec![vec![0.0; if k.kernel == Kernel::Linear { rows.cols() } else { m }]; columns]))
        .collect();
    for point in kept {
        let Some((_, vectors)) = sums.iter_mut().find(|(kernel, _)| *kernel == point.kernel) else { continue };
        for (l, vector) in point.fitted.vectors.iter().enumerate() {
            vectors[l].iter_mut().zip(vector).for_each(|(sum, v)| *sum += point.factor * v);
            intercepts[l] += point.factor * point.fitted.intercepts[l];
        }
    }
    // The first kernel that needs support rows comes first; of a linear one alone weights are all there is.
    let first = sums.iter().position(|(kernel, _)| *kernel != Kernel::Linear).unwrap_or(0);
    let coefficients: Vec<&Vec<f64>> =
        sums.iter().filter(|(kernel, _)| *kernel != Kernel::Linear).flat_map(|(_, v)| v).collect();
    let support: Vec<usize> = (0..m).filter(|&i| coefficients.iter().any(|c| c[i] != 0.0)).collect();
    let part = |(kernel, vectors): (Kernel, Vec<Vec<f64>>)| KernelPart {
        kernel,
        vectors: match kernel {
            Kernel::Linear => vectors,
            _ => vectors.iter().map(|v| support.iter().map(|&i| v[i]).collect()).collect(),
        },
    };
    let (kernel, vectors) = sums.remove(first);
    let parts: Vec<KernelPart> = sums.into_iter().map(part).collect();
    let scorer: Scorer = match kernel {
        Kernel::Linear => ScoreFunctions::Linear { weights: vectors, intercepts },
        _ => ScoreFunctions::Kernel { support: (), coefficients: vectors, intercepts }.over(rows, &support),
    };
    let conformity = conformity(unseen);
    let given = given_weights(data.name, data.labels, weights)?;
    let options = job.options;
    let support_rows = scorer.support().map(|_| support.iter().map(|&i| job.kept[i] as u64).collect());
    let decision = if columns == 1 { Decision::Sign } else { Decision::Largest };
    Ok(Model {
        kernel,
        bias: options.bias,
        schema: Some(Schema::nameless(&job.classes)),
        certificate: ModelCertificate {
            iterations: points,
            rows: m,
            tol: Some(options.settings.tol),
            ..ModelCertificate::none(format!("average of {points} points"))
        },
        average: Some(Averaged { kernels, points, loo_log_loss: conformity.calibration.log_loss }),
        parts,
        calibration: Some(conformity.calibration.clone()),
        conformity: Some(conformity),
        support_rows,
        origin: Some(Origin {
            rows: data.rows.rows(),
            fingerprint: verify::fingerprint(data.rows, data.labels, &given),
            weighted: given.iter().any(|w| *w != 1.0),
            class_weights: Vec::new(),
            multiclass: if columns == 1 { Multiclass::Own } else { Multiclass::Ova },
            landmarks: None,
        }),
        ..Model::plain(options.machine.name(), job.classes.clone(), rows.cols(), scorer, decision)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;
    use crate::random::Random;

    /// A point of a path against the workspace's own solver and leave-one-out margins, which share nothing with it but Cholesky.
    #[test]
    fn a_point_is_the_machine() {
        let (m, d, mut random) = (70, 3, Random::new(4, 0));
        let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
        let codes: Vec<u32> = (0..m).map(|i| u32::from(values[i * d] + 0.7 * random.normal() > 0.2)).collect();
        let weights: Vec<f64> = (0..m).map(|i| [1.0, 0.5, 2.0][i % 3]).collect();
        let rows = Matrix::DenseF64(Dense::new(m, d, values).unwrap());
        for bias in [Bias::Free, Bias::None, Bias::Feature(0.8)] {
            for shape in [(0.25, 0.5), (1.0, 0.0)] {
                let (codes, weights) = (codes.clone(), weights.clone());
                let ground =
                    Judging { rows: &rows, codes, weights, columns: 1, bias, shape, control: Control::default() };
                for candidate in kernels(&rows, &ground.weights, bias, 0) {
                    let settings = Settings { tol: 1e-12, ..Settings::default() };
                    let workspace = Workspace::new(&rows, candidate.kernel, settings);
                    let y = ground.signs(0);
                    for point in ground.path(&candidate).unwrap().iter().step_by(4) {
                        let cost = 0.5 / point.ridge / candidate.size;
                        let loss = MarginLoss::band(cost, cost * shape.0, shape.1);
                        let problem = MarginProblem { y: &y, weights: &ground.weights, loss, variance: 0.0, bias };
                        let start = Start::default();
                        let ending = workspace
                            .solve(&problem, GramPrecision::Double, &start, &settings, Control::default())
                            .unwrap();
                        let margins = ending.margins.as_deref().unwrap();
                        let loo = workspace
                            .left_out(&problem, margins, ending.factor.as_ref(), true, Control::default())
                            .unwrap()
                            .unwrap();
                        let apart = (0..m).map(|i| (y[i] * loo[i] - point.loo[i]).abs()).fold(0.0, f64::max);
                        assert!(apart < 1e-6, "{bias:?} {shape:?} {:?} r {}: {apart}", candidate.kernel, point.ridge);
                        let there = ending.functions.vectors()[0].iter().zip(&point.vectors[0]);
                        let apart = there.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                        let b = (ending.functions.intercepts()[0] - point.intercepts[0]).abs();
                        assert!(apart < 1e-6 && b < 1e-6, "{bias:?} {shape:?} {:?}: {apart} {b}", candidate.kernel);
                    }
                }
            }
        }
    }

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
