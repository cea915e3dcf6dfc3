//! What training leaves: score, predict, save, load. Knows no solver.

pub mod decode;
mod file;
mod foreign;
mod onnx;
mod score;

pub use crate::kernel::Kernel;
pub use crate::machine::{Parameters, Value};
pub use crate::problem::Bias;
pub use decode::Multiclass;
pub use onnx::OnnxLabels;
pub use score::KnownSupport;

use crate::data::{Matrix, Schema};
use crate::problem::{ScoreFunctions, StopReason};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// How the columns of raw scores become a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "lowercase")]
pub enum Decision {
    /// One column; above zero means the larger label (class 1), zero and below the smaller.
    Sign,
    /// One column a class; the largest score wins, the lowest class among equals.
    Largest,
    /// One column a pair of classes `a < b`, in the order 01, 02, …, 12, …; above zero votes for `b`, else for `a`.
    Pairs,
    /// One column a bit of the exhaustive code; the class whose code word differs least from the signs wins.
    Codes,
}

/// The score functions of a model, ready for rows that training never saw.
pub type Scorer = ScoreFunctions<Matrix<'static>>;

/// The quality a model was certified with, kept in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelCertificate {
    /// The solver that produced it.
    pub solver: String,
    /// Primal objective.
    pub objective: Option<f64>,
    /// Dual objective.
    pub dual_objective: Option<f64>,
    /// Relative duality gap.
    pub gap: Option<f64>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps, passes or rounds.
    pub iterations: usize,
    /// Number of training rows that have a weight.
    pub rows: usize,
    /// The relative duality gap that was asked for; `None` in files of format version 1.
    #[serde(default)]
    pub tol: Option<f64>,
    /// How the dual point behind `dual_objective` is kept; `None`: it is not.
    #[serde(default)]
    pub dual: Option<DualKept>,
}

/// How a model keeps the loss's part `v` of its dual point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DualKept {
    /// As it is, in [`Model::dual`].
    Variables,
    /// The coefficient of row `i` is `v_i y_i` (of machines with one score function a class `v_i^l`); rows that are no
    /// support rows have `v_i = 0`.
    Coefficients,
    /// `v_i = −s_i φ'(γ_i)` at the margins of the model's own score function, balanced if the intercept is free.
    Slopes,
}

/// What the rows were that a model was trained on, so that its certificate can be checked against them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Number of rows, those of weight 0 included.
    pub rows: usize,
    /// [`crate::verify::fingerprint`] of rows, labels and row weights, in hexadecimal digits.
    pub fingerprint: String,
    /// Whether row weights other than 1 were given.
    pub weighted: bool,
    /// The weight of each label's class, as it was settled.
    pub class_weights: Vec<(String, f64)>,
    /// How the machine met the classes.
    pub multiclass: Multiclass,
    /// The number of landmark rows that stand for the kernel, if it was approximated: they are the support rows.
    pub landmarks: Option<usize>,
}

/// How scores of rows came about that their models had not seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnseenBy {
    /// Each row left out in turn, in closed form.
    #[default]
    LeaveOneOut,
    /// The model of the other ones of so many folds.
    Folds(usize),
}

impl UnseenBy {
    fn is_leave_one_out(&self) -> bool {
        *self == Self::LeaveOneOut
    }
}

/// How scores become probabilities: `P(c) = exp(A f_c + o_c) / Σ_l exp(A f_l + o_l)`, of two classes
/// `P(larger label) = 1 / (1 + exp(−(A f + o)))`, `f` the score of the larger label or what it has more than that of the smaller.
///
/// With offsets the most probable class need not be the one that is predicted: that is the one of the largest score.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `A > 0`
    pub slope: f64,
    /// `o`: one number with two classes, else one a class; none in files of older programs, where they are zero.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offsets: Vec<f64>,
    /// Where probabilities are isotonic, the curve of each class, of two classes that of the larger label alone; probabilities of more
    /// classes are divided by their sum. Slope and offsets, which prediction sets go by, then do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// Mean logistic loss of the rows it was fitted to, which the scores' models had not seen.
    pub log_loss: f64,
    /// Where their scores came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<UnseenBy>,
}

/// A probability that rises with a score: straight lines from point to point, level beyond the first and the last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The scores of the points, ascending.
    pub scores: Vec<f64>,
    /// The probabilities there.
    pub probabilities: Vec<f64>,
}

/// What prediction sets are made of: how badly rows that no model saw conform to their own class, `1 − P(own class)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Conformity {
    /// The probabilities.
    pub calibration: Calibration,
    /// The rows of each class.
    pub by_class: Vec<ClassConformity>,
}

/// The rows of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassConformity {
    /// Their number, by weight.
    pub rows: f64,
    /// `1 − P(own class)` in ascending order, each number standing for as many rows as any other.
    pub scores: Vec<f64>,
}

/// What a model is the average of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Averaged {
    /// The kernels that stayed, the heaviest first.
    pub kernels: Vec<AveragedKernel>,
    /// How many points (a kernel and a strength) are in it.
    pub points: usize,
    /// The mean logistic loss of its probabilities on rows left out.
    pub loo_log_loss: f64,
    /// How rows were left out; each in turn where a file does not say.
    #[serde(default, skip_serializing_if = "UnseenBy::is_leave_one_out")]
    pub by: UnseenBy,
}

/// A kernel of an average.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AveragedKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// The share of its points in the average.
    pub weight: f64,
    /// Whether it sees the ranks of the features.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_ranks: bool,
}

/// Kernels that see ranks `r(x')` instead of the features: `K(r(x'), r(z'))`.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedKernels {
    /// From scaled features to ranks.
    pub scaling: crate::data::Scaling,
    /// Whether the model's kernel does, and then those of each of its parts.
    pub which: Vec<bool>,
}

/// Score functions over another kernel that are added to those of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelPart {
    /// The kernel.
    pub kernel: Kernel,
    /// One vector a score column: coefficients of the model's support rows, of the linear kernel weights.
    pub vectors: Vec<Vec<f64>>,
}

/// A trained classifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The machine's name.
    pub machine: String,
    /// Its parameters.
    pub parameters: Parameters,
    /// The kernel.
    pub kernel: Kernel,
    /// The intercept it has.
    pub bias: Bias,
    /// The one that was asked for, where the machine cannot have it.
    pub bias_asked: Option<Bias>,
    /// The labels, ascending, as the training file wrote them.
    pub labels: Vec<String>,
    /// Number of features of the rows it scores (before and after scaling).
    pub features: usize,
    /// The scaling that was fitted on the training rows: `x' = (x − shift) · factor`.
    pub scaling: Option<crate::data::Scaling>,
    /// The score functions.
    pub scorer: Scorer,
    /// How scores become a class.
    pub decision: Decision,
    /// Score functions over further kernels, which are added to these: of a model that is an average.
    pub parts: Vec<KernelPart>,
    /// Which of the kernels see ranks, if any.
    pub ranked: Option<RankedKernels>,
    /// What it is the average of, if it is one.
    pub average: Option<Averaged>,
    /// How well it was fitted.
    pub certificate: ModelCertificate,
    /// How scores become probabilities, if that was asked for.
    pub calibration: Option<Calibration>,
    /// Two classes: the score above which the larger label is predicted, if it is not zero ([`crate::metrics::best_threshold`]).
    pub threshold: Option<f64>,
    /// What prediction sets are made of; `None` where it was not asked for and would have taken further fits.
    pub conformity: Option<Conformity>,
    /// For a kernel model, which training row each support row is, counted from 0 over all rows of the data.
    pub support_rows: Option<Vec<u64>>,
    /// The dual variables, one vector over all rows of the data for each column, if [`ModelCertificate::dual`] says so.
    pub dual: Option<Vec<Vec<f64>>>,
    /// What it was trained on; `None` in files of format version 1.
    pub origin: Option<Origin>,
    /// What the columns of its data are, and its labels; `None` in files that do not say.
    pub schema: Option<Schema>,
}

impl Scorer {
    /// Number of support rows; `None` for a linear scorer, which needs none.
    pub fn support(&self) -> Option<usize> {
        match self {
            Self::Linear { .. } => None,
            Self::Kernel { support, .. } => Some(support.rows()),
        }
    }

    /// Says which rule the shapes and numbers break, if any.
    fn check(&self, features: usize) -> Result<(), String> {
        let (length, what) = match self {
            Self::Linear { .. } => (features, "weights"),
            Self::Kernel { support, .. } => {
                require(support.cols() == features, || "support rows of the model's width".into())?;
                require(all_finite(support), || "finite support rows".into())?;
                (support.rows(), "coefficients")
            }
        };
        let vectors = self.vectors();
        require(self.columns() > 0, || "at least one score column".into())?;
        require(vectors.len() == self.columns(), || format!("as many columns of {what} as intercepts"))?;
        require(vectors.iter().all(|v| v.len() == length), || format!("{length} {what} a column"))?;
        let numbers = vectors.iter().flatten().chain(self.intercepts());
        require(numbers.copied().all(f64::is_finite), || format!("finite {what} and intercepts"))
    }
}

impl Decision {
    /// Says which rule a number of classes and score columns breaks, if any.
    fn check(&self, classes: usize, columns: usize) -> Result<(), String> {
        let fits = match self {
            Self::Sign => classes == 2 && columns == 1,
            Self::Largest | Self::Pairs | Self::Codes => classes >= 2 && columns == self.columns(classes),
        };
        require(fits, || format!("score columns that fit the decision ({classes} classes, {columns} columns)"))
    }
}

impl ModelCertificate {
    /// Nothing is claimed of what this made.
    pub(crate) fn none(solver: String) -> Self {
        Self {
            solver,
            objective: None,
            dual_objective: None,
            gap: None,
            stop: StopReason::Exact,
            iterations: 0,
            rows: 0,
            tol: None,
            dual: None,
        }
    }
}

impl Calibration {
    /// Says which rule it breaks for so many classes, if any.
    fn check(&self, classes: usize) -> Result<(), String> {
        let usable = self.slope > 0.0 && self.slope.is_finite() && self.log_loss.is_finite();
        require(usable, || "a finite slope above zero for the probabilities".into())?;
        let fits = self.offsets.is_empty() || self.offsets.len() == if classes == 2 { 1 } else { classes };
        require(fits && self.offsets.iter().all(|o| o.is_finite()), || "a finite offset a class".into())?;
        let fits = self.curves.is_empty() || self.curves.len() == if classes == 2 { 1 } else { classes };
        require(fits && self.curves.iter().all(Curve::is_usable), || "a rising curve of probabilities a class".into())
    }
}

impl Curve {
    fn is_usable(&self) -> bool {
        let rising = self.scores.is_sorted_by(|a, b| a < b) && self.probabilities.is_sorted();
        let within = self.probabilities.iter().all(|p| (0.0..=1.0).contains(p));
        let finite = self.scores.iter().all(|f| f.is_finite());
        !self.scores.is_empty() && self.scores.len() == self.probabilities.len() && rising && within && finite
    }
}

impl Conformity {
    /// Says which rule it breaks for so many classes, if any.
    fn check(&self, classes: usize) -> Result<(), String> {
        self.calibration.check(classes)?;
        require(self.by_class.len() == classes, || "conformity scores of every class".into())?;
        let fits = |class: &ClassConformity| {
            let within = class.scores.iter().all(|score| (0.0..=1.0).contains(score)) && class.scores.is_sorted();
            within && class.rows.is_finite() && class.rows >= 0.0 && (class.rows == 0.0) == class.scores.is_empty()
        };
        require(self.by_class.iter().all(fits), || "conformity scores from 0 to 1, ascending".into())
    }
}

impl Model {
    /// Linear score functions, or others if told so, without parameters, claims or anything beside: what other models are made of.
    pub(crate) fn plain(
        machine: &str,
        labels: Vec<String>,
        features: usize,
        scorer: Scorer,
        decision: Decision,
    ) -> Self {
        Self {
            machine: machine.into(),
            parameters: Parameters::default(),
            kernel: Kernel::Linear,
            bias: Bias::Free,
            bias_asked: None,
            labels,
            features,
            schema: None,
            scaling: None,
            scorer,
            decision,
            certificate: ModelCertificate::none(String::new()),
            average: None,
            parts: Vec::new(),
            ranked: None,
            calibration: None,
            conformity: None,
            threshold: None,
            support_rows: None,
            dual: None,
            origin: None,
        }
    }

    /// Its kernel and those of its parts, each with the vectors of its score columns and whether it sees ranks.
    fn kernels(&self) -> impl Iterator<Item = (Kernel, &[Vec<f64>], bool)> {
        let parts = self.parts.iter().map(|part| (part.kernel, &part.vectors[..]));
        let on_ranks = |number: usize| self.ranked.as_ref().is_some_and(|ranked| ranked.which[number]);
        let all = [(self.kernel, self.scorer.vectors())].into_iter().chain(parts).enumerate();
        all.map(move |(number, (kernel, vectors))| (kernel, vectors, on_ranks(number)))
    }

    /// Says which rule the model breaks, if any. Whatever passes can be scored, saved and loaded.
    pub(crate) fn check(&self) -> Result<(), String> {
        let distinct: HashSet<&String> = self.labels.iter().collect();
        require(distinct.len() == self.labels.len(), || "distinct labels".into())?;
        require(u32::try_from(self.features).is_ok(), || "at most 4294967295 features".into())?;
        self.decision.check(self.labels.len(), self.scorer.columns())?;
        self.scorer.check(self.features)?;
        if let Some(schema) = &self.schema {
            schema.check(self.features)?;
        }
        self.check_parts()?;
        self.scaling.as_ref().map_or(Ok(()), |scaling| scaling.check(self.features))?;
        if let Some(calibration) = &self.calibration {
            calibration.check(self.labels.len())?;
        }
        if let Some(conformity) = &self.conformity {
            conformity.check(self.labels.len())?;
        }
        if let Some(threshold) = self.threshold {
            require(threshold.is_finite(), || "a finite threshold".into())?;
            require(self.labels.len() == 2, || "a threshold only with two classes".into())?;
        }
        self.check_certificate()?;
        require(self.parameter_numbers().all(f64::is_finite), || "finite parameters".into())?;
        require(kernel_is_usable(self.kernel), || "kernel parameters inside their domain".into())
    }

    /// Says which rule the further kernels break, if any.
    fn check_parts(&self) -> Result<(), String> {
        for part in &self.parts {
            require(kernel_is_usable(part.kernel), || "kernel parameters inside their domain".into())?;
            let length = match part.kernel {
                Kernel::Linear => self.features,
                _ => self.scorer.support().unwrap_or(0),
            };
            let fits = part.vectors.len() == self.scorer.columns() && part.vectors.iter().all(|v| v.len() == length);
            require(fits, || format!("{length} numbers a score column of the {} kernel", part.kernel.name()))?;
            let finite = part.vectors.iter().flatten().all(|v| v.is_finite());
            require(finite, || "finite coefficients of every kernel".into())?;
        }
        if let Some(RankedKernels { scaling, which }) = &self.ranked {
            scaling.check(self.features)?;
            require(which.len() == self.parts.len() + 1, || "whether each kernel sees ranks".into())?;
            require(scaling.ranks.is_some(), || "ranks for the kernels that see them".into())?;
        }
        let Some(average) = &self.average else {
            return require(self.parts.is_empty() && self.ranked.is_none(), || {
                "one kernel, or what is averaged".into()
            });
        };
        let share = |k: &AveragedKernel| (0.0..=1.0 + 1e-9).contains(&k.weight) && kernel_is_usable(k.kernel);
        let fits = average.kernels.len() == self.parts.len() + 1 && average.loo_log_loss.is_finite();
        require(fits && average.kernels.iter().all(share), || "a share of every kernel in the average".into())
    }

    /// Says which rule the certificate, or what belongs to it, breaks, if any.
    fn check_certificate(&self) -> Result<(), String> {
        let certificate = &self.certificate;
        let numbers = [certificate.objective, certificate.dual_objective, certificate.gap, certificate.tol];
        let finite = numbers.into_iter().flatten().all(f64::is_finite);
        require(finite, || "a certificate of finite numbers".into())?;
        if let Some(rows) = &self.support_rows {
            require(self.scorer.support() == Some(rows.len()), || "one training row for each support row".into())?;
        }
        let kept = certificate.dual == Some(DualKept::Variables);
        require(kept == self.dual.is_some(), || "dual variables where the certificate says so".into())?;
        if let Some(dual) = &self.dual {
            let rows = self.origin.as_ref().map_or(0, |origin| origin.rows);
            let fits = dual.len() == self.scorer.columns() && dual.iter().all(|v| v.len() == rows);
            require(fits, || format!("{rows} dual variables a score column"))?;
            require(dual.iter().flatten().all(|v| v.is_finite()), || "finite dual variables".into())?;
        }
        let Some(origin) = &self.origin else { return Ok(()) };
        let fits = match self.decision {
            Decision::Sign => origin.multiclass == Multiclass::Own,
            Decision::Largest => matches!(origin.multiclass, Multiclass::Own | Multiclass::Ova),
            Decision::Pairs => origin.multiclass == Multiclass::Ovo,
            Decision::Codes => origin.multiclass == Multiclass::Ecoc,
        };
        require(fits, || "a decision that fits how the classes were met".into())?;
        let in_range = self.support_rows.iter().flatten().all(|&i| i < origin.rows as u64);
        require(in_range, || "support rows among the training rows".into())?;
        let usable = |weight: f64| weight.is_finite() && weight >= 0.0;
        require(origin.class_weights.iter().all(|c| usable(c.1)), || "finite class weights, none below zero".into())
    }

    /// How files are read for it: their columns found by name, or by place where there are no names.
    pub fn reading_schema(&self) -> Schema {
        let unknown = || Schema::nameless(&self.labels);
        self.schema.clone().unwrap_or_else(unknown).with_columns(self.features)
    }

    /// The names of its features, if it knows any: several where a column is a category.
    pub fn feature_names(&self) -> Option<Vec<String>> {
        self.schema.as_ref().and_then(Schema::feature_names)
    }

    fn parameter_numbers(&self) -> impl Iterator<Item = f64> {
        let bias = match self.bias {
            Bias::Feature(b) => b,
            Bias::None | Bias::Free => 0.0,
        };
        self.parameters.iter().filter_map(|(name, _)| self.parameters.get(name)).chain([bias])
    }
}

fn kernel_is_usable(kernel: Kernel) -> bool {
    let positive = |gamma: f64| gamma.is_finite() && gamma > 0.0;
    match kernel {
        Kernel::Linear => true,
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => positive(gamma),
        Kernel::Poly { gamma, degree, coef0 } => positive(gamma) && (1..1 << 16).contains(&degree) && coef0.is_finite(),
        Kernel::Sigmoid { gamma, coef0 } => positive(gamma) && coef0.is_finite(),
    }
}

fn require(holds: bool, rule: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("expected {}", rule())) }
}

fn all_finite(rows: &Matrix<'_>) -> bool {
    match rows {
        Matrix::DenseF32(x) => x.values().iter().all(|v| v.is_finite()),
        Matrix::DenseF64(x) => x.values().iter().all(|v| v.is_finite()),
        Matrix::SparseF32(x) => x.values().iter().all(|v| v.is_finite()),
        Matrix::SparseF64(x) => x.values().iter().all(|v| v.is_finite()),
    }
}
