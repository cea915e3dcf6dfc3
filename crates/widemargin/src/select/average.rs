//! One model of many points: every strength over a few kernels, each weighted by how well it foretells rows that it did not see.
//!
//! Point `p` is a kernel and a ridge `r`: `r = m / 2C1`, at a fixed `C2/C1` and `D`, of machines whose rows move in closed form when
//! they are left out, which are fitted once; `r = 1/C` of the other convex machines, which are fitted to five folds. The scores of rows left
//! out tell both its slope `a_p`, which puts it on the logit scale, and its logistic loss `L_p`, summed over the rows. The model is
//! `f(x) = Σ_p w_p a_p f_p(x)` with `w_p ∝ exp(−(L_p − min L) / T)`: one coefficient vector a kernel, whatever the number of points.

mod points;

use super::SearchRows;
use super::job::Job;
use crate::calibration::{Unseen, conformity};
use crate::control::Control;
use crate::data::{Examples, Matrix, Scaling, Schema, given_weights, train_test};
use crate::kernel::{GramPrecision, Kernel};
use crate::linalg::axpy;
use crate::margins::share_wrong;
use crate::model::{
    Averaged, AveragedKernel, Decision, KernelPart, Model, ModelCertificate, Origin, RankedKernels, Scorer,
};
use crate::multiclass::Multiclass;
use crate::names::named;
use crate::problem::ScoreFunctions;
use crate::solver::{Settings, Start, Workspace};
use crate::train::{TrainOptions, check_rows};
use crate::{Error, Result, verify};
use points::{Candidate, Judging, PathPoint, PointShape, USUAL};
use rayon::prelude::*;

/// The temperature of the weights.
const T: f64 = 3.0;
/// Kernels of less than this part of an equal share of the weight are dropped. A part of the share, not of the weight: where few rows
/// leave all kernels nearly alike each has about its share, and which had a little more would be chance.
const KEEP: f64 = 0.5;
/// Points are judged on at most so many rows.
pub const JUDGED_ROWS: usize = 600;
/// Up to so many features kernels see their ranks too; more are words or the like, of which a rank says no more than the value.
const RANKED_FEATURES: usize = 2000;
/// A point of less than this part of the largest weight is left out of the model.
const NEGLIGIBLE: f64 = 1e-3;

/// A model that is the average of many, and what was found on the way.
pub struct AverageFit {
    /// The model; [`Model::average`] says what it is made of.
    pub model: Model,
    /// Problems solved.
    pub fits: usize,
    /// The error of the averaged scores of rows left out, by weight.
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

/// Refuses, before any work, what averaging is not made for.
pub fn check_average(options: &TrainOptions) -> Result<()> {
    PointShape::new(options, 1.0).map(|_| ())
}

/// Averages the points of a machine over the kernels and strengths of its own choice: linear, five widths of the RBF kernel around
/// the root mean square distance of two rows, and a Laplacian; and over ranks a linear one, three widths, and a Laplacian. The kernel
/// and the parameters of `options` do not count. Rows are left out in closed form where the machine has it, else by five folds
/// ([`Averaged::by`]).
pub fn average(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    how: AverageOptions,
    control: Control<'_>,
) -> Result<AverageFit> {
    check_average(options)?;
    check_rows(data.name, data.rows)?;
    let job = Job::new(data, weights, options, control)?;
    let shape = PointShape::new(options, job.weights.iter().sum())?;
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
    let judging = Judging::new(&job, places, judged, ranked.as_ref(), shape)?;
    let kernels = judging.candidates(options.settings.seed);
    let paths: Vec<Vec<PathPoint>> = kernels.par_iter().map(|k| judging.path(k)).collect::<Result<_>>()?;
    let mut fits = judging.solves() * paths.iter().map(Vec::len).sum::<usize>();
    let (mut kept, averaged) = weigh(&kernels, paths)?;
    let mut scores = vec![0.0; judging.codes.len() * judging.columns];
    kept.iter().for_each(|p| axpy(p.factor, &p.fitted.unseen, &mut scores));
    if chosen.is_some() || !shape.leaves_out() {
        let ranked = ranks.as_ref().map(|ranks| ranks.apply(&rows));
        refit(&job, &rows, ranked.as_ref(), shape, &averaged, &mut kept)?;
        fits += judging.columns * kept.len();
    }
    let unseen = Unseen {
        scores,
        columns: judging.columns,
        codes: judging.codes.iter().map(|&code| Some(code)).collect(),
        weights: places.iter().map(|&i| job.given_weights[i]).collect(),
        classes: job.classes.len(),
        by: shape.by(places.len()),
    };
    let (loo_error, judged_rows) = (error(&unseen, &judging.weights), places.len());
    let given = given_weights(data.name, data.labels, weights)?;
    let conformity = conformity(&unseen);
    let (points, by) = (kept.len(), unseen.by);
    let average = Averaged { kernels: averaged, points, loo_log_loss: conformity.calibration.log_loss, by };
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
    Ok(AverageFit { model, fits, loo_error, unseen, judged_rows })
}

/// The share of rows whose class does not lead, by these weights.
fn error(unseen: &Unseen, weights: &[f64]) -> f64 {
    let margins: Vec<f64> = unseen.margins().into_iter().map(|margin| margin.unwrap_or(f64::NEG_INFINITY)).collect();
    share_wrong(&margins, weights)
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
    let settings = Settings { tol: job.options.settings.tol.min(USUAL), ..job.options.settings };
    let precision = GramPrecision::for_tolerance(settings.tol);
    let signs: Vec<Vec<f64>> = (0..job.columns()).map(|column| job.signs(&job.codes, column)).collect();
    for (place, kernel) in averaged.iter().enumerate() {
        let rows = ranked.filter(|_| kernel.on_ranks).unwrap_or(rows);
        let workspace = Workspace::new(rows, kernel.kernel, settings).shared();
        let mut starts = vec![Start::default(); job.columns()];
        for point in kept.iter_mut().filter(|point| point.place == place) {
            let form = shape.form(point.fitted.ridge, point.size)?;
            point.fitted.functions.clear();
            for (y, start) in signs.iter().zip(&mut starts) {
                let problem = form.problem(y, &job.weights, shape.bias);
                let ending = workspace.solve(&problem, precision, start, &settings, control)?;
                *start = ending.start(&problem);
                point.fitted.functions.push(ending.functions);
            }
        }
    }
    Ok(())
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

    /// Twelve kernels of one point each, with these losses: how many stay.
    fn kept(losses: &[f64]) -> usize {
        let candidate = |_| Candidate { kernel: Kernel::Linear, size: 1.0, on_ranks: false };
        let path =
            |&loss: &f64| vec![PathPoint { ridge: 1.0, functions: Vec::new(), unseen: Vec::new(), slope: 1.0, loss }];
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
