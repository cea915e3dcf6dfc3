//! From a data set and options to a model: weights, scaling, the machine, the certificate.

use crate::calibration::{Unseen, conformity};
use crate::control::Control;
use crate::data::{Dataset, Examples, Labels, Matrix, Rows, Scaling, ScalingKind, Schema, given_weights, unusable};
use crate::kernel::{Kernel, KernelProducts, Landmarks, Span};
use crate::linalg::scattered;
use crate::machine::{Classes, Fit, MOST_DUAL_NUMBERS, Machine, Outcome, Parameters, Training};
use crate::model::{DualKept, Model, ModelCertificate, Origin, Scorer};
use crate::multiclass::{self, Multiclass};
use crate::names::named_or_number;
use crate::problem::{Bias, DualPoint, ScoreFunctions};
use crate::solver::{Settings, SolverChoice, Start, Workspace};
use crate::{Error, Remedy, Result, memory, verify, with_rows};
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The kernel as a user asks for it: `γ` may depend on the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gamma {
    /// `1 / (d · Var(X))`, scikit-learn's default; `1/d` if all values are equal.
    Scale,
    /// `1 / d`, LIBSVM's default.
    Auto,
    /// This number.
    Value(f64),
}

named_or_number!(Gamma, "gamma", "scale, auto or a number > 0", [Scale: "scale", Auto: "auto"], Value, is_positive);

/// Whether a number is finite and above zero.
fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

/// Weights of the classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum ClassWeight {
    /// All 1.
    #[default]
    Equal,
    /// `m / (k · m_class)`: every class counts the same.
    Balanced,
    /// By label as written; classes not named count 1.
    ByLabel(Vec<(String, f64)>),
}

impl ClassWeight {
    /// What it may be, in words.
    const EXPECTED: &'static str = "equal, balanced or LABEL=W,… with weights > 0";
}

impl fmt::Display for ClassWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => f.write_str("equal"),
            Self::Balanced => f.write_str("balanced"),
            Self::ByLabel(pairs) => {
                let pairs: Vec<String> = pairs.iter().map(|(label, weight)| format!("{label}={weight}")).collect();
                f.write_str(&pairs.join(","))
            }
        }
    }
}

impl FromStr for ClassWeight {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let pair = |pair: &str| {
            let (label, weight) = pair.rsplit_once('=')?;
            let weight = weight.trim().parse().ok().filter(|weight: &f64| weight.is_finite() && *weight > 0.0)?;
            Some((label.trim().to_string(), weight))
        };
        match text {
            "equal" => Ok(Self::Equal),
            "balanced" => Ok(Self::Balanced),
            pairs => {
                let pairs: Option<Vec<_>> = pairs.split(',').map(pair).collect();
                pairs.map(Self::ByLabel).ok_or_else(|| Error::parameter("class_weight", text, Self::EXPECTED))
            }
        }
    }
}

/// How to train one machine.
#[derive(Clone)]
pub struct TrainOptions {
    /// The machine.
    pub machine: &'static Machine,
    /// Its checked parameters.
    pub parameters: Parameters,
    /// The kernel; its own `γ` is replaced by [`gamma`](Self::gamma).
    pub kernel: Kernel,
    /// The kernel's `γ`.
    pub gamma: Gamma,
    /// In place of the kernel, a map by at most this many landmark rows ([`Landmarks`]); `None`: the kernel itself.
    pub approx: Option<usize>,
    /// The intercept.
    pub bias: Bias,
    /// The scaling to fit and keep in the model.
    pub scaling: Option<ScalingKind>,
    /// Weights of the classes.
    pub class_weight: ClassWeight,
    /// How a two-class machine meets more classes; `None`: by itself if it can, else one against all.
    pub multiclass: Option<Multiclass>,
    /// Which solver.
    pub solver: SolverChoice,
    /// Tolerance, limits, memory, seed.
    pub settings: Settings,
}

impl TrainOptions {
    /// How the machine is asked to meet its classes.
    fn asked_scheme(&self) -> Multiclass {
        self.multiclass.unwrap_or(match self.machine.classes() {
            Classes::Many => Multiclass::Own,
            Classes::Two => Multiclass::Ova,
        })
    }

    /// How it does: two classes need no wrapper.
    pub(crate) fn scheme(&self, classes: usize) -> Multiclass {
        if classes == 2 { Multiclass::Own } else { self.asked_scheme() }
    }
}

/// What training leaves.
pub struct Trained {
    /// The model.
    pub model: Model,
    /// How well it was fitted.
    pub outcome: Outcome,
    /// For a kernel model, which of the given rows are its support rows.
    pub support: Option<Vec<usize>>,
}

/// Trains a machine on a data set. `weights` are the row weights, all 1 if `None`; rows of weight 0 are left out.
pub fn train(
    data: &Dataset,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    control: Control<'_>,
) -> Result<(Model, Outcome)> {
    let examples = Examples::of(data)?;
    let mut trained = train_examples(examples, weights, options, control)?;
    if let Some(schema) = &data.schema {
        trained.model.schema = Some(schema.clone());
    }
    Ok((trained.model, trained.outcome))
}

/// As [`train`], on borrowed rows: nothing of them is copied but the support rows (and rows of weight 0 left out).
pub fn train_examples(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    control: Control<'_>,
) -> Result<Trained> {
    train_from(data, weights, options, None, control)
}

/// As [`train_examples`], from where a model ended that was trained on rows like these: as many, for a kernel machine, in the same
/// order. The optimum is the same, the way to it may be shorter. A model of another kind, or of more than two classes, is passed over.
pub fn train_from(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    before: Option<&Model>,
    control: Control<'_>,
) -> Result<Trained> {
    train_with(data, weights, options, before, None, control)
}

/// As [`train_from`], where others multiply with the kernel matrix.
pub(crate) fn train_with(
    data: Examples<'_>,
    weights: Option<&[f64]>,
    options: &TrainOptions,
    before: Option<&Model>,
    products: Option<Arc<dyn KernelProducts>>,
    control: Control<'_>,
) -> Result<Trained> {
    check_options(options)?;
    let given = given_weights(data.name, data.labels, weights)?;
    let (fingerprint, usable) = verify::survey(data.rows, data.labels, &given, LARGEST_VALUE);
    if !usable {
        check_rows(data.name, data.rows)?;
    }
    let by_class = class_weights(data.labels, &given, &options.class_weight)?;
    let settled = times_class_weights(data.name, data.labels, &given, &by_class)?;
    let kept: Vec<usize> = (0..settled.len()).filter(|&i| settled[i] > 0.0).collect();
    let before = before.and_then(|model| ending_of(model, data.rows.rows()));
    let mut trained = train_some(data, &settled, &kept, options, (before.as_ref(), products), control)?;
    trained.model.support_rows = trained.support.as_ref().map(|rows| rows.iter().map(|&i| i as u64).collect());
    trained.model.origin = Some(Origin {
        rows: data.rows.rows(),
        fingerprint,
        weighted: given.iter().any(|w| *w != 1.0),
        class_weights: data.labels.names().iter().cloned().zip(by_class).collect(),
        multiclass: options.scheme(trained.model.labels.len()),
        landmarks: options.approx.and(trained.model.scorer.support()),
    });
    trained.model.schema = Some(Schema::nameless(&trained.model.labels));
    keep_dual(&mut trained, &kept, data);
    score_dropped(&mut trained, &kept, data.rows)?;
    if data.rows.rows() <= MOST_ROWS_UNASKED || options.settings.left_out {
        let unseen = Unseen::left_out(&trained.model, &trained.outcome, data.labels, &given);
        trained.model.conformity = unseen.as_ref().map(conformity);
    }
    Ok(trained)
}

/// Prediction sets that nobody asked for are not prepared from more rows than that: a linear machine takes a quarter of a
/// second for 450,000 (`docs/profiles.md`), beside which sorting all scores would be felt.
const MOST_ROWS_UNASKED: usize = 100_000;

/// Trains on the rows that are kept.
fn train_some(
    data: Examples<'_>,
    weights: &[f64],
    kept: &[usize],
    options: &TrainOptions,
    (before, products): (Option<&ScoreFunctions>, Option<Arc<dyn KernelProducts>>),
    control: Control<'_>,
) -> Result<Trained> {
    if kept.len() == weights.len() {
        return train_weighted(data, weights, options, before, products, control);
    }
    if products.is_some() {
        return Err(unusable(data.name, "a weight of 0 leaves no weight to some of its rows, which lie elsewhere"));
    }
    let (rows, labels) = (data.rows.select(kept), data.labels.select(kept));
    let weights: Vec<f64> = kept.iter().map(|&i| weights[i]).collect();
    let part = Examples { rows: &rows, labels: &labels, ..data };
    let before = before.map(|functions| match functions {
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            ScoreFunctions::coefficients(kept.iter().map(|&i| coefficients[0][i]).collect(), intercepts[0])
        }
        weights => weights.clone(),
    });
    let trained = train_weighted(part, &weights, options, before.as_ref(), None, control)?;
    let support = trained.support.map(|support| support.iter().map(|&i| kept[i]).collect());
    Ok(Trained { support, ..trained })
}

/// Puts the scores of rows of weight 0, which the model did not see, among those that were left out of it.
fn score_dropped(trained: &mut Trained, kept: &[usize], rows: &Matrix<'_>) -> Result<()> {
    let Some(scores) = trained.outcome.loo_scores.as_mut().filter(|_| kept.len() < rows.rows()) else { return Ok(()) };
    let columns = trained.model.scorer.columns();
    let mut dropped = vec![true; rows.rows()];
    kept.iter().for_each(|&i| dropped[i] = false);
    let others: Vec<usize> = (0..rows.rows()).filter(|&i| dropped[i]).collect();
    let found = trained.model.scores(&rows.select(&others))?;
    let mut all = vec![0.0; rows.rows() * columns];
    for (places, found) in [(kept, &*scores), (&others, &found)] {
        for (&i, row) in places.iter().zip(found.chunks_exact(columns)) {
            all[i * columns..(i + 1) * columns].copy_from_slice(row);
        }
    }
    *scores = all;
    Ok(())
}

/// Moves the dual point into the model, spread over all rows of the data; where the coefficients hold it, they stand for it.
fn keep_dual(trained: &mut Trained, kept: &[usize], data: Examples<'_>) {
    let model = &mut trained.model;
    let vectors = match trained.outcome.dual.take() {
        None => return,
        Some(DualPoint::Slopes(_)) => {
            model.certificate.dual = Some(DualKept::Slopes);
            return;
        }
        Some(DualPoint::Variables(vectors)) => vectors,
    };
    let rows = data.rows.rows();
    let dual: Vec<Vec<f64>> = vectors.iter().map(|some| scattered(some, kept.iter().copied(), rows)).collect();
    if are_coefficients(model, &dual, data.labels) {
        model.certificate.dual = Some(DualKept::Coefficients);
    } else if dual.len() * rows <= MOST_DUAL_NUMBERS {
        model.certificate.dual = Some(DualKept::Variables);
        model.dual = Some(dual);
    }
}

/// Whether the coefficients of a model are `v_i y_i` (of machines with one score function a class, `v_i^l`).
fn are_coefficients(model: &Model, dual: &[Vec<f64>], labels: &Labels) -> bool {
    let (Scorer::Kernel { coefficients, .. }, Some(rows), Some(origin)) =
        (&model.scorer, &model.support_rows, &model.origin)
    else {
        return false;
    };
    let codes = labels.codes_in(&model.labels);
    let fits = origin.landmarks.is_none() && dual.len() == coefficients.len();
    fits && dual.iter().zip(coefficients).enumerate().all(|(column, (v, c))| {
        let all = scattered(c, rows.iter().map(|&i| i as usize), v.len());
        let signs = origin.multiclass.signs(&model.decision, model.labels.len(), column);
        (0..v.len()).all(|i| {
            let sign = codes[i].and_then(|code| signs[code as usize]);
            v[i] == 0.0 && all[i] == 0.0 || sign.is_some_and(|y| v[i] * y == all[i])
        })
    })
}

/// The score function of a model of two classes, over as many rows as these.
fn ending_of(model: &Model, rows: usize) -> Option<ScoreFunctions> {
    if model.labels.len() != 2 || !model.parts.is_empty() {
        return None;
    }
    match (&model.scorer, &model.support_rows, &model.origin) {
        (Scorer::Linear { weights, intercepts }, ..) => {
            Some(ScoreFunctions::Linear { weights: weights.clone(), intercepts: intercepts.clone() })
        }
        (Scorer::Kernel { coefficients, intercepts, .. }, Some(support), Some(origin))
            if origin.rows == rows && origin.landmarks.is_none() =>
        {
            let all = scattered(&coefficients[0], support.iter().map(|&i| i as usize), rows);
            Some(ScoreFunctions::coefficients(all, intercepts[0]))
        }
        _ => None,
    }
}

fn train_weighted(
    data: Examples<'_>,
    weights: &[f64],
    options: &TrainOptions,
    before: Option<&ScoreFunctions>,
    products: Option<Arc<dyn KernelProducts>>,
    control: Control<'_>,
) -> Result<Trained> {
    let (names, codes) = present_classes(data.labels);
    if names.len() < 2 {
        let found = names.first().map_or("no rows".to_string(), |name| format!("only the label {name}"));
        return Err(unusable(data.name, &format!("it has {found}; a classifier needs rows of at least two classes")));
    }
    check_width(data.name, data.rows.cols())?;
    if data.rows.cols() == 0 && options.kernel != Kernel::Linear {
        let reason = "its rows have no features, which no kernel can tell apart; choose the linear one";
        return Err(unusable(data.name, reason));
    }
    let scaling = options.scaling.map(|kind| Scaling::fit(kind, data.rows, Some(weights)));
    let scaled = scaling.as_ref().map(|scaling| scaling.apply(data.rows));
    let rows = scaled.as_ref().unwrap_or(data.rows);
    let kernel = with_gamma(options.kernel, options.gamma, rows, Some(weights));
    // What was given is checked: a width outside its domain follows from the rows.
    check_kernel(kernel)
        .map_err(|error| unusable(data.name, &format!("its values are too large or too small: {error}")))?;
    let bias = options.machine.intercept(options.bias);
    let mapped = options.approx.map(|rank| Approximation::new(kernel, rows, rank, options, control)).transpose()?;
    let settings = options.settings.with_rows(rows.rows());
    let workspace = match &mapped {
        Some(mapped) => Workspace::new(&mapped.rows, Kernel::Linear, settings),
        None if options.scheme(names.len()) == Multiclass::Own => Workspace::new(rows, kernel, settings),
        None => Workspace::new(rows, kernel, settings).shared(),
    };
    let workspace = match products {
        Some(products) => workspace.multiplied_by(products),
        None => workspace,
    };
    let same = |functions: &&ScoreFunctions| {
        let linear = matches!(functions, ScoreFunctions::Linear { .. });
        names.len() == 2 && mapped.is_none() && linear == (kernel == Kernel::Linear)
    };
    let start = before.filter(same).map_or_else(Start::default, |functions| Start::at(functions, bias));
    let span = mapped.as_ref().map(|mapped| Span { landmarks: &mapped.landmarks, rows, control });
    let training = Training {
        workspace: &workspace,
        classes: names.len(),
        codes: &codes,
        weights,
        parameters: &options.parameters,
        span: span.as_ref(),
        bias,
        solver: options.solver,
        start: &start,
        settings,
        control,
    };
    let (mut fit, decision) = multiclass::fit(options.asked_scheme(), options.machine, &training)?;
    if let Some(mapped) = &mapped {
        fit = mapped.expanded(fit);
    }
    let Fit { functions, mut outcome } = fit;
    outcome.weights = weights.to_vec();
    check_finite(options.machine.name(), &functions, &outcome)?;
    // All landmark rows, also those without a coefficient: they make the map.
    let landmarks = mapped.as_ref().map(|mapped| {
        let mut chosen = mapped.landmarks.chosen.clone();
        chosen.sort_unstable();
        chosen
    });
    let support = landmarks.or_else(|| functions.support_rows());
    let kept = support.as_deref().unwrap_or_default();
    let model = Model {
        parameters: options.parameters.clone(),
        kernel,
        bias,
        bias_asked: (bias != options.bias).then_some(options.bias),
        scaling,
        certificate: ModelCertificate {
            solver: outcome.solver.clone(),
            objective: outcome.objective,
            // A solver that was stopped before it had a dual point knows no bound.
            dual_objective: outcome.dual_objective.filter(|dual| *dual != f64::NEG_INFINITY),
            gap: outcome.gap.filter(|gap| *gap != f64::INFINITY),
            stop: outcome.stop,
            iterations: outcome.iterations,
            rows: rows.rows(),
            tol: Some(options.settings.tol),
            dual: None,
        },
        ..Model::plain(options.machine.name(), names, data.rows.cols(), functions.over(rows, kept), decision)
    };
    Ok(Trained { model, outcome, support })
}

/// What overflowed is never written.
fn check_finite(machine: &'static str, functions: &ScoreFunctions, outcome: &Outcome) -> Result<()> {
    let (vectors, intercepts) = (functions.vectors(), functions.intercepts());
    let claims = [outcome.objective, outcome.dual_objective, outcome.gap].into_iter().flatten();
    let mut numbers = vectors.iter().flatten().chain(intercepts).copied().chain(claims).chain([outcome.norm]);
    // Margins are squared and summed when their distribution is described.
    let summed = outcome.margins.iter().zip(&outcome.weights).map(|(g, s)| s * (1.0 + g * g)).sum::<f64>();
    if numbers.all(f64::is_finite) && summed.is_finite() {
        return Ok(());
    }
    let reason = "numbers overflow on these rows: scale the features (minmax or standard), or check for values and weights \
                  that are far too large";
    Err(Error::numeric(machine, reason))
}

/// The training rows as landmark rows map them.
struct Approximation {
    landmarks: Landmarks,
    rows: Matrix<'static>,
    residual: f64,
}

impl Approximation {
    fn new(
        kernel: Kernel,
        rows: &Matrix<'_>,
        rank: usize,
        options: &TrainOptions,
        control: Control<'_>,
    ) -> Result<Self> {
        let rank = rank.min(rows.rows());
        let candidates = Landmarks::candidates(rows.rows(), rank);
        let what = || format!("the choice of {rank} landmarks among {candidates} rows");
        let numbers = (rank as u64).saturating_mul(candidates as u64 + rank as u64);
        memory::check(what, numbers.saturating_mul(8), [Remedy::Lower("approx")])?;
        let landmarks = Landmarks::choose(kernel, rows, rank, options.settings.seed, control)?;
        if landmarks.chosen.is_empty() {
            let reason = "k(x, x) is above zero for no row: there is nothing to approximate, choose another kernel";
            return Err(Error::numeric("the landmarks", reason));
        }
        let mapped = landmarks.map(rows, options.settings.memory, control)?;
        Ok(Self { landmarks, rows: mapped.rows, residual: mapped.residual })
    }

    /// From weights over the map to coefficients of the landmark rows.
    fn expanded(&self, fit: Fit) -> Fit {
        let Fit { functions, mut outcome } = fit;
        let chosen = &self.landmarks.chosen;
        outcome.solver = format!("{}, over {} landmark rows", outcome.solver, chosen.len());
        outcome.support = chosen.len();
        outcome.extras.push(("landmarks", chosen.len() as f64));
        outcome.extras.push(("kernel_left_out", self.residual));
        let weights_of = |c: &Vec<f64>| {
            let mut weights = vec![0.0; self.rows.cols()];
            c.iter().enumerate().for_each(|(i, c)| with_rows!(&self.rows, x => x.axpy(i, *c, &mut weights)));
            weights
        };
        let linear = matches!(functions, ScoreFunctions::Linear { .. });
        let (vectors, intercepts) = functions.into_parts();
        let weights = if linear { vectors } else { vectors.iter().map(weights_of).collect() };
        let column = |weights: &Vec<f64>| {
            scattered(&self.landmarks.coefficients(weights), chosen.iter().copied(), self.rows.rows())
        };
        let coefficients = weights.iter().map(column).collect();
        Fit { functions: ScoreFunctions::Kernel { support: (), coefficients, intercepts }, outcome }
    }
}

/// Vectors of one number a feature that a solver holds at the same time, more or less: weights, gradient, direction, diagonal, those of
/// conjugate gradients, and what is written.
const SOLVER_VECTORS: u64 = 10;

/// Refuses rows so wide that the weights of a single score function would not fit into memory.
pub(crate) fn check_width(name: &str, features: usize) -> Result<()> {
    let what = || format!("{name}: training with {features} features");
    let needed = (features as u64).saturating_mul(8 * SOLVER_VECTORS);
    memory::check(what, needed, "number the features from 1 on without large holes, or hash them to fewer")
}

/// Refuses what no fit can work with, before any work.
pub(crate) fn check_options(options: &TrainOptions) -> Result<()> {
    check_settings(&options.settings)?;
    options.bias.check()?;
    options.gamma.check()?;
    if let Some(rank) = options.approx {
        require("approx", rank as f64, rank > 0, "a whole number >= 1")?;
    }
    // A `γ` of the kernel's own is replaced by the one asked for.
    check_kernel(with_width(options.kernel, 1.0))?;
    match options.approx {
        Some(_) => Landmarks::check(options.kernel)?,
        None => options.solver.check(options.kernel)?,
    }
    let solvers = options.machine.uses().solvers;
    if solvers.contains(&options.solver) {
        return Ok(());
    }
    let names: Vec<&str> = solvers.iter().map(|solver| solver.name()).collect();
    let expected = format!("what {} takes: {}", options.machine.name(), names.join(" or "));
    Err(Error::parameter("solver", options.solver, expected))
}

pub(crate) fn check_settings(settings: &Settings) -> Result<()> {
    require("tol", settings.tol, is_positive(settings.tol), "a number > 0")?;
    require("max_iter", 0.0, settings.max_iter != Some(0), "a whole number >= 1")
}

/// Refuses a kernel with a parameter outside its domain.
fn check_kernel(kernel: Kernel) -> Result<()> {
    if let Some(gamma) = gamma_of(kernel) {
        require("gamma", gamma, is_positive(gamma), "a number > 0")?;
    }
    if let Kernel::Poly { degree, .. } = kernel {
        require("degree", degree.into(), (1..1 << 16).contains(&degree), "a whole number from 1 to 65535")?;
    }
    if let Kernel::Poly { coef0, .. } | Kernel::Sigmoid { coef0, .. } = kernel {
        require("coef0", coef0, coef0.is_finite(), "a finite number")?;
    }
    Ok(())
}

/// Products of larger values overflow: their squares are at most 1e300, and sums of these leave eight digits.
const LARGEST_VALUE: f64 = 1e150;

/// Refuses rows with a value that is no number (readers let none through, but rows may come from elsewhere), or so large that
/// products of rows overflow.
pub fn check_rows(name: &str, rows: &Matrix<'_>) -> Result<()> {
    let usable = |v: f64| v.abs() <= LARGEST_VALUE;
    let wrong = |i: usize| {
        let mut fine = true;
        with_rows!(rows, x => x.visit(i, |_, v| fine &= usable(v)));
        !fine
    };
    let Some(i) = (0..rows.rows()).into_par_iter().with_min_len(1024).find_first(|&i| wrong(i)) else { return Ok(()) };
    let mut found = String::new();
    with_rows!(rows, x => x.visit(i, |c, v| if !usable(v) && found.is_empty() {
        found = format!(
            "row {}, feature {} is {v:e}: expected a number of at most {LARGEST_VALUE:e}, as products of larger ones overflow; \
             divide the feature first",
            i + 1,
            c + 1
        );
    }));
    Err(unusable(name, &found))
}

fn require(name: &str, value: f64, holds: bool, expected: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::parameter(name, value, expected)) }
}

/// Row weights times class weights, checked.
pub(crate) fn row_weights(
    name: &str,
    labels: &Labels,
    rows: Option<&[f64]>,
    classes: &ClassWeight,
) -> Result<Vec<f64>> {
    let rows = given_weights(name, labels, rows)?;
    times_class_weights(name, labels, &rows, &class_weights(labels, &rows, classes)?)
}

/// Sums of weights beyond this overflow once they are multiplied.
const LARGEST_WEIGHT: f64 = 1e150;

/// Row weights times class weights, which must leave some row.
fn times_class_weights(name: &str, labels: &Labels, rows: &[f64], by_class: &[f64]) -> Result<Vec<f64>> {
    let weights: Vec<f64> = rows.iter().zip(labels.codes()).map(|(w, &c)| w * by_class[c as usize]).collect();
    if !weights.iter().any(|w| *w > 0.0) {
        return Err(unusable(name, "every row has weight zero"));
    }
    // Costs are divided by the sum, and squares of it appear.
    let total: f64 = weights.iter().sum();
    if total >= LARGEST_WEIGHT {
        let reason = format!("its row weights add up to {total:e}; expected less than {LARGEST_WEIGHT:e}");
        return Err(unusable(name, &reason));
    }
    Ok(weights)
}

pub(crate) fn class_weights(labels: &Labels, rows: &[f64], classes: &ClassWeight) -> Result<Vec<f64>> {
    let k = labels.names().len();
    match classes {
        ClassWeight::Equal => Ok(vec![1.0; k]),
        ClassWeight::Balanced => {
            let mut sums = vec![0.0; k];
            rows.iter().zip(labels.codes()).for_each(|(w, &c)| sums[c as usize] += w);
            let present = sums.iter().filter(|s| **s > 0.0).count() as f64;
            let total: f64 = sums.iter().sum();
            Ok(sums.iter().map(|s| if *s > 0.0 { total / (present * s) } else { 0.0 }).collect())
        }
        ClassWeight::ByLabel(pairs) => {
            let mut weights = vec![1.0; k];
            for (label, weight) in pairs {
                let wrong = |expected: String| Error::parameter("class_weight", format!("{label}={weight}"), expected);
                if !(weight.is_finite() && *weight >= 0.0) {
                    return Err(wrong("finite weights >= 0".into()));
                }
                let code = Labels::new(&[label.as_str()]).codes_in(labels.names())[0];
                let code = code.ok_or_else(|| wrong(format!("one of the labels {}", labels.names().join(", "))))?;
                weights[code as usize] = *weight;
            }
            Ok(weights)
        }
    }
}

/// The classes that have rows, and each row's class among them.
pub(crate) fn present_classes(labels: &Labels) -> (Vec<String>, Vec<u32>) {
    let mut new = vec![u32::MAX; labels.names().len()];
    labels.codes().iter().for_each(|&c| new[c as usize] = 0);
    let mut names = Vec::new();
    for (code, name) in new.iter_mut().zip(labels.names()).filter(|(code, _)| **code == 0) {
        *code = names.len() as u32;
        names.push(name.clone());
    }
    (names, labels.codes().iter().map(|&c| new[c as usize]).collect())
}

/// The kernel with its `γ` settled on the (scaled) training rows, each counted `weights` times (once if `None`).
pub fn with_gamma(kernel: Kernel, gamma: Gamma, rows: &Matrix<'_>, weights: Option<&[f64]>) -> Kernel {
    if kernel == Kernel::Linear {
        return kernel;
    }
    let value = match gamma {
        Gamma::Value(value) => value,
        Gamma::Auto => 1.0 / rows.cols().max(1) as f64,
        Gamma::Scale => 1.0 / (rows.cols().max(1) as f64 * spread(rows, weights)),
    };
    with_width(kernel, value)
}

/// The `γ` of a kernel that has one.
pub(crate) fn gamma_of(kernel: Kernel) -> Option<f64> {
    match kernel {
        Kernel::Linear => None,
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => Some(gamma),
        Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => Some(gamma),
    }
}

fn with_width(kernel: Kernel, gamma: f64) -> Kernel {
    match kernel {
        Kernel::Linear => Kernel::Linear,
        Kernel::Rbf { .. } => Kernel::Rbf { gamma },
        Kernel::Laplacian { .. } => Kernel::Laplacian { gamma },
        Kernel::Poly { degree, coef0, .. } => Kernel::Poly { gamma, degree, coef0 },
        Kernel::Sigmoid { coef0, .. } => Kernel::Sigmoid { gamma, coef0 },
    }
}

/// `Var(X)` over all entries, zeros included; 1 if they are all equal.
fn spread(rows: &Matrix<'_>, weights: Option<&[f64]>) -> f64 {
    let (mut total, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for i in 0..rows.rows() {
        let (weight, mut row) = (weights.map_or(1.0, |weights| weights[i]), 0.0);
        with_rows!(rows, x => x.visit(i, |_, v| row += v));
        total += weight;
        sum += weight * row;
        squares += weight * with_rows!(rows, x => x.norm2(i));
    }
    let count = if rows.cols() > 0 { total * rows.cols() as f64 } else { 1.0 };
    let variance = squares / count - (sum / count).powi(2);
    // Values too large for their squares have no variance that is a number, which is not the same as none.
    if variance.is_nan() || variance > 1e-12 * squares / count { variance } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_classes() {
        assert_eq!("balanced".parse::<ClassWeight>().unwrap(), ClassWeight::Balanced);
        let pairs = ClassWeight::ByLabel(vec![("+1".to_string(), 2.0), ("a=b".to_string(), 0.5)]);
        assert_eq!("+1=2, a=b=0.5".parse::<ClassWeight>().unwrap(), pairs);
        assert_eq!(pairs.to_string(), "+1=2,a=b=0.5");
        for text in ["", "1", "1=", "1=0", "1=-1", "1=x", "1=2,,", "1=nan"] {
            assert!(text.parse::<ClassWeight>().is_err(), "{text}");
        }
    }

    #[test]
    fn intercepts_and_widths() {
        for (text, bias) in [("1.5", Bias::Feature(1.5)), ("free", Bias::Free), ("none", Bias::None)] {
            assert_eq!((text.parse::<Bias>().unwrap(), bias.to_string().as_str()), (bias, text));
        }
        for (text, gamma) in [("0.25", Gamma::Value(0.25)), ("auto", Gamma::Auto), ("scale", Gamma::Scale)] {
            assert_eq!((text.parse::<Gamma>().unwrap(), gamma.to_string().as_str()), (gamma, text));
        }
        for text in ["-1", "0", "inf", "NaN", "none such", ""] {
            assert!(text.parse::<Bias>().is_err() && text.parse::<Gamma>().is_err(), "{text}");
        }
    }
}
