//! One model of many points: every strength over a few kernels, each weighted by how well it foretells rows that it did not see.
//!
//! Point `p` (a kernel and a ridge `r = m / 2C1`, at a fixed `C2/C1` and `D`) is fitted once, and its closed-form leave-one-out scores
//! tell both its slope `a_p`, which puts it on the logit scale, and its logistic loss `L_p`, summed over the rows. The model is
//! `f(x) = Σ_p w_p a_p f_p(x)` with `w_p ∝ exp(−(L_p − min L) / T)`: one coefficient vector a kernel, whatever the number of points.

use super::job::Job;
use super::{SearchRows, average_distance};
use crate::calibration::{Unseen, conformity};
use crate::control::Control;
use crate::data::{Examples, Matrix, Rows, Scaling, Schema, given_weights, train_test};
use crate::kernel::{GramPrecision, Kernel};
use crate::linalg::{axpy, dot};
use crate::loss::MarginLoss;
use crate::machine::MACHINES;
use crate::model::{
    Averaged, AveragedKernel, Decision, KernelPart, Model, ModelCertificate, Origin, RankedKernels, Scorer, UnseenBy,
};
use crate::multiclass::Multiclass;
use crate::names::named;
use crate::problem::{Bias, MarginProblem, ScoreFunctions};
use crate::solver::{Settings, Start, Workspace};
use crate::train::{TrainOptions, check_rows};
use crate::{Advice, Error, Result, verify, with_rows};
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// The temperature of the weights.
const T: f64 = 3.0;
/// Kernels of less than this part of an equal share of the weight are dropped. A part of the share, not of the weight: where few rows
/// leave all kernels nearly alike each has about its share, and which had a little more would be chance.
const KEEP: f64 = 0.5;
/// The ridges, strong first: `2^(4 − 3j/2)`.
const RIDGES: usize = 11;
/// A path ends where its loss has risen by so much above its least: what follows would weigh `exp(−14)` of the best.
const HOPELESS: f64 = 14.0 * T;
/// Points are judged on at most so many rows.
pub const JUDGED_ROWS: usize = 600;
/// Up to so many features kernels see their ranks too; more are words or the like, of which a rank says no more than the value.
const RANKED_FEATURES: usize = 2000;
/// A point of less than this part of the largest weight is left out of the model.
const NEGLIGIBLE: f64 = 1e-3;
/// The gap to which points are solved: leave-one-out margins are those of the optimum.
const EXACT: f64 = 1e-9;

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

/// How to average.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AverageOptions {
    /// On how many of the rows points are judged ([`JUDGED_ROWS`] if `None`); they are fitted on all.
    pub judged: Option<usize>,
    /// What kernels see of the features.
    pub over: AverageOver,
}

impl AverageOptions {
    /// Points judged on so many rows.
    pub fn new(rows: SearchRows, over: AverageOver) -> Self {
        let judged = match rows {
            SearchRows::Auto => None,
            SearchRows::All => Some(usize::MAX),
            SearchRows::Most(rows) => Some(rows),
        };
        Self { judged, over }
    }
}

/// What the kernels of an average see of the features.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AverageOver {
    /// Their values: seven kernels.
    Values,
    /// Five further kernels see the ranks of the values among the rows, where there are at most 2000 features.
    #[default]
    Ranks,
}

named!(AverageOver, "average", [
    Ranks: "ranks" "seven kernels of the features, five of their ranks",
    Values: "values" "seven kernels of the features alone",
]);

/// `C2/C1` and `D` of the points of a machine; an error for machines without leave-one-out margins that averaging is made for.
fn shape(options: &TrainOptions) -> Result<PointShape> {
    let band = options.machine.averaged_band().ok_or_else(|| {
        let able = MACHINES.iter().filter(|machine| machine.averaged_band().is_some());
        let able: Vec<&str> = able.map(|machine| machine.name()).collect();
        let reason = format!(
            "averaging rests on leave-one-out margins in closed form and is made for {}, not for {}",
            able.join(" and "),
            options.machine.name()
        );
        Error::conflict(reason, Advice::values("machine", able))
    })?;
    Ok(PointShape { ratio: band.0, d: band.1, bias: options.bias })
}

/// Refuses, before any work, what averaging is not made for.
pub fn check_average(options: &TrainOptions) -> Result<()> {
    shape(options).map(|_| ())
}

/// Averages the points of a machine over the kernels and strengths of its own choice: linear, five widths of the RBF kernel around
/// the root mean square distance of two rows, and a Laplacian; and over ranks a linear one, three widths, and a Laplacian. The kernel
/// and the parameters of `options` do not count.
pub fn average(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    how: AverageOptions,
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
    let share = how.judged.unwrap_or(JUDGED_ROWS) as f64 / job.codes.len() as f64;
    let chosen = (share < 1.0).then(|| train_test(&job.labels, share, options.settings.seed, 0).0);
    let some = chosen.as_ref().map(|chosen| rows.select(chosen));
    let all: Vec<usize> = (0..job.codes.len()).collect();
    let places: &[usize] = chosen.as_deref().unwrap_or(&all);
    let judged = some.as_ref().unwrap_or(&rows);
    let judged_weights: Vec<f64> = places.iter().map(|&i| job.weights[i]).collect();
    // Ranks among the judged rows: a table of some hundred values a feature, however many rows there are.
    let ranks = (how.over == AverageOver::Ranks && judged.cols() <= RANKED_FEATURES)
        .then(|| Scaling::by_rank(judged, &judged_weights));
    let ranked = ranks.as_ref().map(|ranks| ranks.apply(judged));
    let codes: Vec<u32> = places.iter().map(|&i| job.codes[i]).collect();
    let judging = Judging {
        rows: judged,
        ranked: ranked.as_ref(),
        signs: (0..job.columns()).map(|column| job.signs(&codes, column)).collect(),
        codes,
        weights: judged_weights,
        columns: job.columns(),
        shape,
        settings: Settings { tol: EXACT, max_iter: None, ..options.settings },
        control: Control { observer: None, ..control },
    };
    let kernels = judging.candidates(options.settings.seed);
    let paths: Vec<Vec<PathPoint>> = kernels.par_iter().map(|k| judging.path(k)).collect::<Result<_>>()?;
    let fits = judging.columns * paths.iter().map(Vec::len).sum::<usize>();
    let (mut kept, averaged) = weigh(&kernels, paths)?;
    let mut loo = vec![0.0; judging.codes.len() * judging.columns];
    kept.iter().for_each(|p| axpy(p.factor, &p.fitted.loo, &mut loo));
    if chosen.is_some() {
        let ranked = ranks.as_ref().map(|ranks| ranks.apply(&rows));
        refit(&job, &rows, ranked.as_ref(), shape, &averaged, &mut kept)?;
    }
    let unseen = Unseen {
        scores: loo,
        columns: judging.columns,
        codes: judging.codes.iter().map(|&code| Some(code)).collect(),
        weights: places.iter().map(|&i| job.given_weights[i]).collect(),
        classes: job.classes.len(),
        by: UnseenBy::LeaveOneOut,
    };
    let total: f64 = judging.weights.iter().sum();
    let wrong = margins(&unseen).iter().zip(&judging.weights).filter(|(g, _)| **g <= 0.0).map(|(_, s)| s).sum::<f64>();
    let judged_rows = judging.codes.len();
    let given = given_weights(data.name, data.labels, weights)?;
    let conformity = conformity(&unseen);
    let average = Averaged { kernels: averaged, points: kept.len(), loo_log_loss: conformity.calibration.log_loss };
    let origin = Origin {
        rows: data.rows.rows(),
        fingerprint: verify::fingerprint(data.rows, data.labels, &given),
        weighted: given.iter().any(|w| *w != 1.0),
        class_weights: Vec::new(),
        multiclass: if job.columns() == 1 { Multiclass::Own } else { Multiclass::Ova },
        landmarks: None,
    };
    let model = Model {
        scaling,
        calibration: Some(conformity.calibration.clone()),
        conformity: Some(conformity),
        origin: Some(origin),
        ..assemble(&job, &rows, ranks, kept, average)
    };
    let places: Vec<usize> = places.iter().map(|&i| job.kept[i]).collect();
    let unseen = spread(unseen, &places, &given);
    Ok(AverageFit { model, fits, loo_error: wrong / total, unseen, judged_rows })
}

/// A kernel of the average; the linear one counts as if its rows had unit mean square.
struct Candidate {
    kernel: Kernel,
    /// By what kernel values are divided.
    size: f64,
    /// Whether it sees the ranks of the features.
    on_ranks: bool,
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

/// The rows that points are judged on.
struct Judging<'a> {
    rows: &'a Matrix<'a>,
    /// Their ranks, if kernels see these too.
    ranked: Option<&'a Matrix<'a>>,
    codes: Vec<u32>,
    /// `y` of each label vector.
    signs: Vec<Vec<f64>>,
    weights: Vec<f64>,
    /// Label vectors: one, or one a class.
    columns: usize,
    shape: PointShape,
    settings: Settings,
    control: Control<'a>,
}

/// What all points share.
#[derive(Clone, Copy)]
struct PointShape {
    /// `C2/C1`
    ratio: f64,
    d: f64,
    bias: Bias,
}

impl PointShape {
    /// `½ f² + Σ s_i (max(0, 1−D−γ_i)² + ratio · max(0, γ_i−1−D)²) / 2r`; the kernel's size goes into the cost.
    fn problem<'p>(&self, ridge: f64, size: f64, y: &'p [f64], weights: &'p [f64]) -> MarginProblem<'p> {
        let cost = 0.5 / ridge / size;
        let loss = MarginLoss::band(cost, cost * self.ratio, self.d);
        MarginProblem { y, weights, loss, variance: 0.0, bias: self.bias }
    }
}

/// A point that was fitted.
struct PathPoint {
    ridge: f64,
    /// One score function a column, over the rows it was fitted on.
    functions: Vec<ScoreFunctions>,
    /// Leave-one-out scores, row after row.
    loo: Vec<f64>,
    /// `a_p`, and `L_p` at it.
    slope: f64,
    loss: f64,
}

impl Judging<'_> {
    /// All kernels: of ranks fewer widths do, because they lie evenly.
    fn candidates(&self, seed: u64) -> Vec<Candidate> {
        let of = |rows, widths| kernels(rows, &self.weights, self.shape.bias, seed, widths);
        let ranked = self.ranked.map_or_else(Vec::new, |ranked| of(ranked, -1..=1));
        let on_ranks = ranked.into_iter().map(|candidate| Candidate { on_ranks: true, ..candidate });
        of(self.rows, -2..=2).into_iter().chain(on_ranks).collect()
    }

    fn seen_by(&self, candidate: &Candidate) -> &Matrix<'_> {
        self.ranked.filter(|_| candidate.on_ranks).unwrap_or(self.rows)
    }

    /// The points of a kernel, from the strongest ridge on, each from where the one before ended, until they have become hopeless.
    fn path(&self, candidate: &Candidate) -> Result<Vec<PathPoint>> {
        let workspace = Workspace::new(self.seen_by(candidate), candidate.kernel, self.settings).shared();
        let mut starts = vec![Start::default(); self.columns];
        let (mut found, mut least, mut before) = (Vec::<PathPoint>::new(), f64::INFINITY, f64::INFINITY);
        for j in 0..RIDGES {
            let ridge = 2f64.powf(4.0 - 1.5 * j as f64);
            let Some(point) = self.point(&workspace, &mut starts, ridge, candidate.size)? else { break };
            let loss = point.loss;
            let hopeless = loss > least + HOPELESS && loss > before;
            (least, before) = (least.min(loss), loss);
            found.push(point);
            if hopeless {
                break;
            }
        }
        Ok(found)
    }

    /// One point; `None` where its systems cannot be solved in double precision.
    fn point(
        &self,
        workspace: &Workspace<'_>,
        starts: &mut [Start],
        ridge: f64,
        size: f64,
    ) -> Result<Option<PathPoint>> {
        let mut loo = vec![0.0; self.codes.len() * self.columns];
        let mut functions = Vec::new();
        for (l, (y, start)) in self.signs.iter().zip(starts).enumerate() {
            let problem = self.shape.problem(ridge, size, y, &self.weights);
            let solved = workspace.solve(&problem, GramPrecision::Double, start, &self.settings, self.control);
            let ending = match solved {
                Err(Error::Numeric { .. }) => return Ok(None),
                solved => solved?,
            };
            *start = ending.start(&problem);
            let Some(margins) = &ending.margins else { return Ok(None) };
            let left_out = workspace.left_out(&problem, margins, ending.factor.as_ref(), true, self.control)?;
            let Some(left_out) = left_out else { return Ok(None) };
            left_out.iter().zip(y).enumerate().for_each(|(i, (g, y))| loo[i * self.columns + l] = y * g);
            functions.push(ending.functions);
        }
        let (slope, loss) = best_slope(&loo, self.columns, &self.codes, &self.weights);
        Ok(loss.is_finite().then_some(PathPoint { ridge, functions, loo, slope, loss }))
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

/// A point that stays: the place of its kernel among the averaged ones, and what its scores are multiplied with.
struct Kept {
    place: usize,
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
    order.retain(|&k| totals[k] * kernels.len() as f64 >= KEEP);
    let most = paths.iter().flatten().map(weight).fold(0.0, f64::max);
    let stays = |k: usize, p: &PathPoint| order.contains(&k) && weight(p) >= NEGLIGIBLE * most;
    let mut points: Vec<(usize, PathPoint)> = Vec::new();
    for (k, path) in paths.into_iter().enumerate() {
        points.extend(path.into_iter().filter(|p| stays(k, p)).map(|p| (k, p)));
    }
    let sum: f64 = points.iter().map(|(_, p)| weight(p)).sum();
    let of = |k: usize| points.iter().filter(|(l, _)| *l == k).map(|(_, p)| weight(p)).sum::<f64>() / sum;
    order.retain(|&k| of(k) > 0.0);
    order.sort_by(|&a, &b| of(b).total_cmp(&of(a)));
    let averaged = order
        .iter()
        .map(|&k| AveragedKernel { kernel: kernels[k].kernel, weight: of(k), on_ranks: kernels[k].on_ranks })
        .collect();
    let kept = points.into_iter().filter_map(|(k, fitted)| {
        let place = order.iter().position(|&other| other == k)?;
        let factor = weight(&fitted) / sum * fitted.slope;
        Some(Kept { place, size: kernels[k].size, fitted, factor })
    });
    Ok((kept.collect(), averaged))
}

/// Fits the points that stay on all rows: a row counts there as much as it did among those that points were judged on.
fn refit(
    job: &Job<'_>,
    rows: &Matrix<'_>,
    ranked: Option<&Matrix<'_>>,
    shape: PointShape,
    averaged: &[AveragedKernel],
    kept: &mut [Kept],
) -> Result<()> {
    let control = Control { observer: None, ..job.control };
    let settings = Settings { tol: job.options.settings.tol.min(1e-3), ..job.options.settings };
    let precision = GramPrecision::for_tolerance(settings.tol);
    let signs: Vec<Vec<f64>> = (0..job.columns()).map(|column| job.signs(&job.codes, column)).collect();
    for (place, kernel) in averaged.iter().enumerate() {
        let rows = ranked.filter(|_| kernel.on_ranks).unwrap_or(rows);
        let workspace = Workspace::new(rows, kernel.kernel, settings).shared();
        let mut starts = vec![Start::default(); job.columns()];
        for point in kept.iter_mut().filter(|point| point.place == place) {
            for ((y, start), functions) in signs.iter().zip(&mut starts).zip(&mut point.fitted.functions) {
                let problem = shape.problem(point.fitted.ridge, point.size, y, &job.weights);
                let ending = workspace.solve(&problem, precision, start, &settings, control)?;
                *start = ending.start(&problem);
                *functions = ending.functions;
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

/// The score functions of the points that stay, as a model.
fn assemble(job: &Job<'_>, rows: &Matrix<'_>, ranks: Option<Scaling>, kept: Vec<Kept>, average: Averaged) -> Model {
    let (m, columns, kernels) = (job.codes.len(), job.columns(), &average.kernels);
    let length = |k: &AveragedKernel| if k.kernel == Kernel::Linear { rows.cols() } else { m };
    let mut intercepts = vec![0.0; columns];
    let mut sums: Vec<Vec<Vec<f64>>> = kernels.iter().map(|k| vec![vec![0.0; length(k)]; columns]).collect();
    for Kept { place, factor, fitted, .. } in kept {
        for (l, functions) in fitted.functions.iter().enumerate() {
            axpy(factor, &functions.vectors()[0], &mut sums[place][l]);
            intercepts[l] += factor * functions.intercepts()[0];
        }
    }
    // A kernel that needs support rows comes first; of linear ones alone weights are all there is.
    let mut parts: Vec<(&AveragedKernel, Vec<Vec<f64>>)> = kernels.iter().zip(sums).collect();
    parts.sort_by_key(|(k, _)| k.kernel == Kernel::Linear);
    let coefficients = || parts.iter().filter(|(k, _)| k.kernel != Kernel::Linear).flat_map(|(_, v)| v);
    let support: Vec<usize> = (0..m).filter(|&i| coefficients().any(|c| c[i] != 0.0)).collect();
    let which: Vec<bool> = parts.iter().map(|(k, _)| k.on_ranks).collect();
    let ranked = ranks.filter(|_| which.contains(&true)).map(|scaling| RankedKernels { scaling, which });
    let mut parts = parts.into_iter().map(|(k, vectors)| KernelPart {
        kernel: k.kernel,
        vectors: match k.kernel {
            Kernel::Linear => vectors,
            _ => vectors.iter().map(|v| support.iter().map(|&i| v[i]).collect()).collect(),
        },
    });
    let KernelPart { kernel, vectors } =
        parts.next().unwrap_or(KernelPart { kernel: Kernel::Linear, vectors: vec![vec![0.0; rows.cols()]; columns] });
    let scorer: Scorer = match kernel {
        Kernel::Linear => ScoreFunctions::Linear { weights: vectors, intercepts },
        _ => ScoreFunctions::Kernel { support: rows.select(&support), coefficients: vectors, intercepts },
    };
    let support_rows = scorer.support().map(|_| support.iter().map(|&i| job.kept[i] as u64).collect());
    let decision = if columns == 1 { Decision::Sign } else { Decision::Largest };
    let parts: Vec<KernelPart> = parts.collect();
    let options = job.options;
    Model {
        kernel,
        bias: options.bias,
        schema: Some(Schema::nameless(&job.classes)),
        certificate: ModelCertificate {
            iterations: average.points,
            rows: m,
            tol: Some(options.settings.tol),
            ..ModelCertificate::none(format!("average of {} points", average.points))
        },
        average: Some(average),
        parts,
        ranked,
        support_rows,
        ..Model::plain(options.machine.name(), job.classes.clone(), rows.cols(), scorer, decision)
    }
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

    /// Twelve kernels of one point each, with these losses: how many stay.
    fn kept(losses: &[f64]) -> usize {
        let candidate = |_| Candidate { kernel: Kernel::Linear, size: 1.0, on_ranks: false };
        let path =
            |&loss: &f64| vec![PathPoint { ridge: 1.0, functions: Vec::new(), loo: Vec::new(), slope: 1.0, loss }];
        let kernels: Vec<Candidate> = losses.iter().map(candidate).collect();
        let (points, averaged) = weigh(&kernels, losses.iter().map(path).collect()).unwrap();
        let sum: f64 = points.iter().map(|point| point.factor).sum();
        assert!((sum - 1.0).abs() < 1e-12 && points.len() == averaged.len(), "{sum}");
        points.len()
    }

    #[test]
    fn kernels_that_few_rows_leave_alike_all_stay() {
        let alike: Vec<f64> = (0..12).map(|k| 14.0 + 0.1 * f64::from(k)).collect();
        assert_eq!(kept(&alike), 12);
        let mut apart = vec![100.0; 12];
        (apart[3], apart[7], apart[8]) = (60.0, 61.0, 75.0);
        assert_eq!(kept(&apart), 2);
    }
}
