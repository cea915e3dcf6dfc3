//! From a data set and options to a model: weights, scaling, the machine, the certificate.

mod approximation;
mod checks;
mod width;

pub use checks::check_rows;
pub(crate) use checks::{check_options, check_width, class_weights, present_classes, row_weights};
pub(crate) use width::gamma_of;
pub use width::with_gamma;

use crate::calibration::{Unseen, conformity};
use crate::control::Control;
use crate::data::{Dataset, Examples, Labels, Matrix, Scaling, ScalingKind, Schema, given_weights, unusable};
use crate::kernel::{Kernel, KernelProducts, Span};
use crate::linalg::scattered;
use crate::machine::{Classes, Fit, MOST_DUAL_NUMBERS, Machine, Outcome, Parameters, Training};
use crate::model::{DualKept, Model, ModelCertificate, Origin, Scorer};
use crate::multiclass::{self, Multiclass};
use crate::names::named_or_number;
use crate::problem::{Bias, DualPoint, ScoreFunctions};
use crate::solver::{Settings, SolverChoice, Start, Workspace};
use crate::{Error, Result, verify};
use approximation::Approximation;
use checks::{LARGEST_VALUE, check_kernel, times_class_weights};
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
    /// In place of the kernel, a map by at most this many landmark rows ([`Landmarks`](crate::kernel::Landmarks)); `None`: the kernel itself.
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

/// The labels and the class of each row, of rows that can be learned from.
fn classes_of(data: Examples<'_>, options: &TrainOptions) -> Result<(Vec<String>, Vec<u32>)> {
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
    Ok((names, codes))
}

fn train_weighted(
    data: Examples<'_>,
    weights: &[f64],
    options: &TrainOptions,
    before: Option<&ScoreFunctions>,
    products: Option<Arc<dyn KernelProducts>>,
    control: Control<'_>,
) -> Result<Trained> {
    let (names, codes) = classes_of(data, options)?;
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
    let mut workspace = match &mapped {
        Some(mapped) => Workspace::new(&mapped.rows, Kernel::Linear, settings),
        None if options.scheme(names.len()) == Multiclass::Own => Workspace::new(rows, kernel, settings),
        None => Workspace::new(rows, kernel, settings).shared(),
    };
    if let Some(products) = products {
        workspace = workspace.multiplied_by(products);
    }
    let same = |functions: &&ScoreFunctions| {
        let linear = matches!(functions, ScoreFunctions::Linear { .. });
        names.len() == 2 && mapped.is_none() && linear == (kernel == Kernel::Linear)
    };
    let start = before.filter(same).map_or_else(Start::default, |functions| Start::at(functions, bias));
    let parameters = options.machine.settled(&options.parameters, weights.iter().sum());
    let span = mapped.as_ref().map(|mapped| Span { landmarks: &mapped.landmarks, rows, control });
    let training = Training {
        workspace: &workspace,
        classes: names.len(),
        codes: &codes,
        weights,
        parameters: &parameters,
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
        parameters,
        kernel,
        bias,
        bias_asked: (bias != options.bias).then_some(options.bias),
        scaling,
        certificate: certificate_of(&outcome, rows.rows(), options),
        ..Model::plain(options.machine.name(), names, data.rows.cols(), functions.over(rows, kept), decision)
    };
    Ok(Trained { model, outcome, support })
}

/// What a model says of its fit.
fn certificate_of(outcome: &Outcome, rows: usize, options: &TrainOptions) -> ModelCertificate {
    ModelCertificate {
        solver: outcome.solver.clone(),
        objective: outcome.objective,
        // A solver that was stopped before it had a dual point knows no bound.
        dual_objective: outcome.dual_objective.filter(|dual| *dual != f64::NEG_INFINITY),
        gap: outcome.gap.filter(|gap| *gap != f64::INFINITY),
        stop: outcome.stop,
        iterations: outcome.iterations,
        rows,
        tol: Some(options.settings.tol),
        dual: None,
    }
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
