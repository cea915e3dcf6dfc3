//! What stands behind an option: text in, a checked value out. Errors say what is expected.

use clap::ValueEnum;
use std::num::NonZeroUsize;
use widemargin::data::{Format, Precision, ScalingKind, Storage};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice};
use widemargin::multiclass::Multiclass;
use widemargin::select::Select;
use widemargin::train::{ClassWeight, Gamma};
use widemargin_studies::Amendment;

/// `--kernel`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KernelKind {
    /// x·z
    Linear,
    /// exp(−γ ‖x − z‖²)
    Rbf,
    /// (γ x·z + r)^p
    Poly,
    /// tanh(γ x·z + r)
    Sigmoid,
    /// exp(−γ ‖x − z‖₁)
    Laplacian,
}

impl From<KernelKind> for Kernel {
    /// The kernel with the constants it has if nobody says; `γ` is settled with the data.
    fn from(kind: KernelKind) -> Self {
        let (gamma, degree, coef0) = (1.0, 3, 0.0);
        match kind {
            KernelKind::Linear => Self::Linear,
            KernelKind::Rbf => Self::Rbf { gamma },
            KernelKind::Poly => Self::Poly { gamma, degree, coef0 },
            KernelKind::Sigmoid => Self::Sigmoid { gamma, coef0 },
            KernelKind::Laplacian => Self::Laplacian { gamma },
        }
    }
}

/// `--scale`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// Leave the features as they are
    None,
    /// To [0, 1]
    Minmax,
    /// To [-1, 1], zero stays zero
    Maxabs,
    /// To mean 0 and standard deviation 1
    Standard,
}

impl Scale {
    /// The library's kind.
    pub fn kind(self) -> Option<ScalingKind> {
        match self {
            Self::None => None,
            Self::Minmax => Some(ScalingKind::MinMax),
            Self::Maxabs => Some(ScalingKind::MaxAbs),
            Self::Standard => Some(ScalingKind::Standard),
        }
    }
}

/// `--solver`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Solver {
    /// The program picks and says what it picked
    Auto,
    /// Dual coordinate descent
    Dcd,
    /// Newton's method
    Newton,
    /// Averaged stochastic gradient descent
    Asgd,
    /// Stochastic variance-reduced gradient
    Svrg,
}

impl From<Solver> for SolverChoice {
    fn from(solver: Solver) -> Self {
        match solver {
            Solver::Auto => Self::Auto,
            Solver::Dcd => Self::Dcd,
            Solver::Newton => Self::Newton,
            Solver::Asgd => Self::Asgd,
            Solver::Svrg => Self::Svrg,
        }
    }
}

/// `--multiclass`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MulticlassMode {
    /// The machine takes all classes in one problem
    Own,
    /// One against all others
    Ova,
    /// One against one
    Ovo,
    /// Error-correcting codes
    Ecoc,
}

impl From<MulticlassMode> for Multiclass {
    fn from(mode: MulticlassMode) -> Self {
        match mode {
            MulticlassMode::Own => Self::Own,
            MulticlassMode::Ova => Self::Ova,
            MulticlassMode::Ovo => Self::Ovo,
            MulticlassMode::Ecoc => Self::Ecoc,
        }
    }
}

/// `--select`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Selection {
    /// The logistic loss of closed-form leave-one-out margins
    LooLoss,
    /// The leave-one-out error
    Loo,
    /// The mean error of cross-validation
    Cv,
}

impl From<Selection> for Select {
    fn from(selection: Selection) -> Self {
        match selection {
            Selection::LooLoss => Self::LooLoss,
            Selection::Loo => Self::Loo,
            Selection::Cv => Self::Cv,
        }
    }
}

/// `--protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProtocolChoice {
    /// The paper's grids, however different in size
    Paper,
    /// The same number of points for every machine
    Equal,
}

/// `--format`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileFormat {
    /// label index:value …
    Libsvm,
    /// Comma-separated
    Csv,
    /// Tab-separated
    Tsv,
    /// Parquet
    Parquet,
}

impl From<FileFormat> for Format {
    fn from(format: FileFormat) -> Self {
        match format {
            FileFormat::Libsvm => Self::Libsvm,
            FileFormat::Csv => Self::Csv,
            FileFormat::Tsv => Self::Tsv,
            FileFormat::Parquet => Self::Parquet,
        }
    }
}

/// `--precision`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionChoice {
    /// f32 where that loses nothing, else f64
    Auto,
    /// Single: values are rounded
    F32,
    /// Double
    F64,
}

impl From<PrecisionChoice> for Precision {
    fn from(precision: PrecisionChoice) -> Self {
        match precision {
            PrecisionChoice::Auto => Self::Auto,
            PrecisionChoice::F32 => Self::F32,
            PrecisionChoice::F64 => Self::F64,
        }
    }
}

/// `--storage`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StorageChoice {
    /// Whichever takes fewer bytes
    Auto,
    /// Every value
    Dense,
    /// Only what is not zero
    Sparse,
}

impl From<StorageChoice> for Storage {
    fn from(storage: StorageChoice) -> Self {
        match storage {
            StorageChoice::Auto => Self::Auto,
            StorageChoice::Dense => Self::Dense,
            StorageChoice::Sparse => Self::Sparse,
        }
    }
}

/// A finite number above zero.
pub fn positive(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| *v > 0.0).ok_or_else(|| "expected a number > 0".into())
}

/// A finite number above one.
pub fn above_one(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| *v > 1.0).ok_or_else(|| "expected a number > 1".into())
}

/// A finite number.
pub fn finite(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|v: &f64| v.is_finite()).ok_or_else(|| "expected a number".into())
}

/// A whole number, one or above.
pub fn count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "expected a whole number >= 1".into())
}

/// A share of the rows, neither none nor all.
pub fn share(text: &str) -> Result<f64, String> {
    finite(text).ok().filter(|v| 0.0 < *v && *v < 1.0).ok_or_else(|| "expected a number between 0 and 1".into())
}

/// `--gamma`
pub fn gamma(text: &str) -> Result<Gamma, String> {
    match text {
        "scale" => Ok(Gamma::Scale),
        "auto" => Ok(Gamma::Auto),
        number => positive(number).map(Gamma::Value).map_err(|_| "expected a number > 0, `scale` or `auto`".into()),
    }
}

/// `--bias`
pub fn bias(text: &str) -> Result<Bias, String> {
    match text {
        "free" => Ok(Bias::Free),
        "none" => Ok(Bias::None),
        number => positive(number)
            .map(Bias::Feature)
            .map_err(|_| "expected `free`, a number > 0, or `none` for no intercept".into()),
    }
}

/// `--class-weight`
pub fn class_weight(text: &str) -> Result<ClassWeight, String> {
    if text == "balanced" {
        return Ok(ClassWeight::Balanced);
    }
    let pair = |pair: &str| {
        let (label, weight) = pair.rsplit_once('=')?;
        Some((label.trim().to_string(), positive(weight.trim()).ok()?))
    };
    let pairs: Option<Vec<_>> = text.split(',').map(pair).collect();
    pairs.map(ClassWeight::ByLabel).ok_or_else(|| "expected `balanced` or LABEL=W,… with weights > 0".into())
}

/// `--memory`: bytes, with an optional K, M, G or T (powers of 1024).
pub fn memory(text: &str) -> Result<u64, String> {
    let expected = || "expected a size such as 512M or 2G".to_string();
    let upper = text.trim().to_ascii_uppercase();
    let bare = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units.iter().find_map(|(letter, bits)| bare.strip_suffix(*letter).map(|number| (number, *bits)));
    let (number, bits) = unit.unwrap_or((bare, 0));
    let bytes = positive(number.trim()).map_err(|_| expected())? * (1u64 << bits) as f64;
    if bytes < 1.0 || bytes > i64::MAX as f64 { Err(expected()) } else { Ok(bytes as u64) }
}

/// `--set machine.parameter=value`
pub fn setting(text: &str) -> Result<String, String> {
    match Amendment::set(text) {
        Some(set) => set.map(|_| text.into()).map_err(|error| error.to_string()),
        None => Err("expected MACHINE.PARAMETER=VALUE, such as odm.c1=10".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [("512M", 512 << 20), ("2G", 2 << 30), ("1.5KiB", 1536), ("7", 7), ("1tb", 1 << 40)] {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1M", "0", "nanG", "1e30T", "2X"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn weights_of_classes() {
        assert_eq!(class_weight("balanced"), Ok(ClassWeight::Balanced));
        let pairs = vec![("+1".to_string(), 2.0), ("a=b".to_string(), 0.5)];
        assert_eq!(class_weight("+1=2,a=b=0.5"), Ok(ClassWeight::ByLabel(pairs)));
        for text in ["", "1", "1=", "1=0", "1=-1", "1=x", "1=2,,"] {
            assert!(class_weight(text).is_err(), "{text}");
        }
    }

    #[test]
    fn intercepts_and_widths() {
        assert_eq!(bias("1.5"), Ok(Bias::Feature(1.5)));
        assert_eq!(gamma("auto"), Ok(Gamma::Auto));
        for text in ["-1", "0", "inf", "NaN", "none such"] {
            assert!(bias(text).is_err() && gamma(text).is_err(), "{text}");
        }
    }
}
