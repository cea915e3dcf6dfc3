//! What training leaves: score, predict, save, load. Knows no solver.

pub mod decode;
mod file;
mod foreign;
mod onnx;
mod score;

pub use decode::Multiclass;
pub use onnx::OnnxLabels;
pub use score::SupportNorms;

use crate::data::{Matrix, Schema};
use crate::kernel::Kernel;
use crate::machine::Parameters;
use crate::problem::{Bias, ScoreFunctions, StopReason};
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

/// How scores become probabilities: `P(c) = exp(slope · f_c) / Σ_l exp(slope · f_l)`, of two classes with one score
/// `P(larger label) = 1 / (1 + exp(−slope · f))`.
///
/// There is no offset, so the class of the largest score is always the most probable one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// `A > 0`
    pub slope: f64,
    /// Mean logistic loss of the rows it was fitted to, which the scores' models had not seen.
    pub log_loss: f64,
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
    /// How well it was fitted.
    pub certificate: ModelCertificate,
    /// How scores become probabilities, if that was asked for.
    pub calibration: Option<Calibration>,
    /// Two classes: the score above which the larger label is predicted, if it is not zero ([`crate::metrics::best_threshold`]).
    pub threshold: Option<f64>,
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

impl Model {
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
        if let Some(scaling) = &self.scaling {
            let fits = scaling.shift.len() == self.features && scaling.factor.len() == self.features;
            require(fits, || "one shift and one factor a feature".into())?;
            let mut numbers = scaling.shift.iter().chain(&scaling.factor);
            require(numbers.all(|v| v.is_finite()), || "finite shifts and factors".into())?;
            let ranked = scaling.kind == crate::data::ScalingKind::Rank;
            require(ranked == scaling.ranks.is_some(), || "ranks where the scaling is by rank".into())?;
            scaling.ranks.as_ref().map_or(Ok(()), |ranks| ranks.check(self.features))?;
        }
        if let Some(calibration) = self.calibration {
            let usable = calibration.slope > 0.0 && calibration.slope.is_finite() && calibration.log_loss.is_finite();
            require(usable, || "a finite slope above zero for the probabilities".into())?;
        }
        if let Some(threshold) = self.threshold {
            require(threshold.is_finite(), || "a finite threshold".into())?;
            require(self.labels.len() == 2, || "a threshold only with two classes".into())?;
        }
        self.check_certificate()?;
        require(self.parameter_numbers().all(f64::is_finite), || "finite parameters".into())?;
        require(kernel_is_usable(self.kernel), || "kernel parameters inside their domain".into())
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
