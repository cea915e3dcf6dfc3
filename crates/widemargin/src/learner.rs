//! The API for Rust programs: a machine with its parameters and options, `fit`, `tune`, `cross_validate`.
//!
//! ```
//! use widemargin::prelude::*;
//!
//! # fn main() -> widemargin::Result<()> {
//! let data = embedded("sonar").expect("a set inside the crate");
//! let model = Odm::new().c1(128.0).kernel(Rbf::scale()).fit(&data)?;
//! let classes = model.predict(&data.rows)?;
//! assert_eq!(classes.len(), data.rows.rows());
//! assert!(model.certificate.gap.is_some_and(|gap| gap <= 1e-3));
//! # Ok(())
//! # }
//! ```

use crate::control::Control;
use crate::data::{Dataset, Examples, ScalingKind};
use crate::kernel::Kernel;
use crate::machine::{Parameters, Value, check_parameters, machine};
use crate::metrics::Figures;
use crate::model::{Model, Multiclass};
use crate::problem::Bias;
use crate::select::{Learned, Search, Tuned, cross_validate, tune};
use crate::solver::Settings;
use crate::train::{ClassWeight, Gamma, TrainOptions, train};
use crate::{Error, Result};
use std::marker::PhantomData;

/// A kernel whose width may follow from the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelChoice {
    kernel: Kernel,
    gamma: Gamma,
}

macro_rules! kernels {
    ($($(#[$doc:meta])* $name:ident => $kernel:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl $name {
            /// `γ = 1 / (d · Var(X))`, scikit-learn's default.
            pub fn scale() -> KernelChoice {
                KernelChoice { kernel: $kernel, gamma: Gamma::Scale }
            }

            /// `γ = 1 / d`, LIBSVM's default.
            pub fn auto() -> KernelChoice {
                KernelChoice { kernel: $kernel, gamma: Gamma::Auto }
            }

            /// This `γ > 0`.
            pub fn gamma(gamma: f64) -> KernelChoice {
                KernelChoice { kernel: $kernel, gamma: Gamma::Value(gamma) }
            }
        }
    )*};
}

kernels! {
    /// `exp(−γ ‖x − z‖²)`
    Rbf => Kernel::Rbf { gamma: 1.0 };
    /// `exp(−γ ‖x − z‖₁)`
    Laplacian => Kernel::Laplacian { gamma: 1.0 };
    /// `(γ x·z)³`; [`KernelChoice::degree`] and [`KernelChoice::coef0`] change the power and add a constant.
    Poly => Kernel::Poly { gamma: 1.0, degree: 3, coef0: 0.0 };
}

impl KernelChoice {
    /// `x·z`
    pub fn linear() -> Self {
        Self { kernel: Kernel::Linear, gamma: Gamma::Scale }
    }

    /// The power `p` of a polynomial; other kernels have none.
    pub fn degree(mut self, power: u32) -> Self {
        if let Kernel::Poly { degree, .. } = &mut self.kernel {
            *degree = power;
        }
        self
    }

    /// The constant `r` of a polynomial; other kernels have none.
    pub fn coef0(mut self, constant: f64) -> Self {
        if let Kernel::Poly { coef0, .. } = &mut self.kernel {
            *coef0 = constant;
        }
        self
    }
}

/// Which machine a [`Learner`] trains.
pub trait Trains {
    /// Its name.
    const NAME: &'static str;
}

/// A machine with its parameters and the options of training. All are checked before any work, in [`fit`](Self::fit) and
/// [`tune`](Self::tune).
#[derive(Clone, Debug)]
pub struct Learner<M> {
    given: Vec<(String, Value)>,
    kernel: KernelChoice,
    gamma_given: bool,
    bias: Bias,
    scaling: Option<ScalingKind>,
    class_weight: ClassWeight,
    multiclass: Option<Multiclass>,
    settings: Settings,
    machine: PhantomData<M>,
}

impl<M: Trains> Default for Learner<M> {
    fn default() -> Self {
        Self {
            given: Vec::new(),
            kernel: KernelChoice::linear(),
            gamma_given: false,
            bias: Bias::Free,
            scaling: None,
            class_weight: ClassWeight::Equal,
            multiclass: None,
            settings: Settings::default(),
            machine: PhantomData,
        }
    }
}

impl<M: Trains> Learner<M> {
    /// The machine with its default parameters, the linear kernel and a free intercept.
    pub fn new() -> Self {
        Self::default()
    }

    fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.given.retain(|(known, _)| known != name);
        self.given.push((name.into(), value.into()));
        self
    }

    /// The kernel. Default: linear.
    pub fn kernel(mut self, kernel: KernelChoice) -> Self {
        self.gamma_given = matches!(kernel.gamma, Gamma::Value(_));
        Self { kernel, ..self }
    }

    /// The intercept. Default: [`Bias::Free`].
    pub fn intercept(self, bias: Bias) -> Self {
        Self { bias, ..self }
    }

    /// The scaling of the features, fitted on the training rows and kept in the model. Default: none.
    pub fn scale(self, scaling: ScalingKind) -> Self {
        Self { scaling: Some(scaling), ..self }
    }

    /// Weights of the classes. Default: all equal.
    pub fn class_weight(self, class_weight: ClassWeight) -> Self {
        Self { class_weight, ..self }
    }

    /// How a two-class machine meets more classes. Default: one against all.
    pub fn multiclass(self, scheme: Multiclass) -> Self {
        Self { multiclass: Some(scheme), ..self }
    }

    /// The relative duality gap to reach. Default: 1e-3.
    pub fn tol(mut self, tol: f64) -> Self {
        self.settings.tol = tol;
        self
    }

    /// Bytes that kernel rows may take. Default: 2 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// The seed of everything random. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// The options as the library has them, checked.
    pub fn options(&self) -> Result<TrainOptions> {
        let machine = machine(M::NAME)?;
        let parameters: Parameters = check_parameters(machine, &self.given)?;
        Ok(TrainOptions {
            machine,
            parameters,
            kernel: self.kernel.kernel,
            gamma: self.kernel.gamma,
            approx: None,
            bias: self.bias,
            scaling: self.scaling,
            class_weight: self.class_weight.clone(),
            multiclass: self.multiclass,
            solver: Default::default(),
            settings: self.settings,
        })
    }

    /// Trains on labelled rows.
    pub fn fit(&self, data: &Dataset) -> Result<Model> {
        Ok(train(data, None, &self.options()?, Control::default())?.0)
    }

    /// Trains on labelled rows, row `i` counting as `weights[i]` rows.
    pub fn fit_weighted(&self, data: &Dataset, weights: &[f64]) -> Result<Model> {
        Ok(train(data, Some(weights), &self.options()?, Control::default())?.0)
    }

    /// Searches the parameters that were not set, by leave-one-out margins where there are any in closed form, else by
    /// cross-validation, and trains at the best point.
    pub fn tune(&self, data: &Dataset) -> Result<Tuned> {
        let search = Search { given: &self.given, gamma_given: self.gamma_given, ..Search::default() };
        tune(data, None, &self.options()?, &search, Control::default())
    }

    /// How good it is on rows it did not see: the scores of each of so many folds, under a model of the others.
    pub fn cross_validate(&self, data: &Dataset, folds: usize) -> Result<Vec<Figures>> {
        let learned = Learned::default();
        cross_validate(Examples::of(data)?, None, &self.options()?, (folds, 1), learned, Control::default())
    }
}

macro_rules! learners {
    ($($(#[$doc:meta])* $name:ident: $marker:ident = $machine:literal { $($(#[$set:meta])* $setter:ident)* })*) => {$(
        $(#[$doc])*
        pub type $name = Learner<$marker>;

        #[doc = concat!("Trains `", $machine, "`.")]
        #[derive(Clone, Copy, Debug)]
        pub struct $marker;

        impl Trains for $marker {
            const NAME: &'static str = $machine;
        }

        impl Learner<$marker> {
            $($(#[$set])*
            pub fn $setter(self, value: f64) -> Self {
                self.with(stringify!($setter), value)
            })*
        }
    )*};
}

learners! {
    /// The optimal margin distribution machine,
    /// `min ½‖w‖² + (1/m) Σ (C1 max(0, 1 − D − γ_i)² + C2 max(0, γ_i − 1 − D)²)`.
    Odm: TrainsOdm = "odm" {
        /// Cost `C1 > 0` of a margin below `1 − D`. Default: 256, or the number of rows where there are more.
        c1
        /// Cost `C2 ≥ 0` of a margin above `1 + D`. Default: `C1/8`.
        c2
        /// Half-width `0 ≤ D < 1` of the band around 1 in which a margin costs nothing. Default: 0.4.
        d
    }
    /// The large margin distribution machine,
    /// `min ½‖w‖² + 2 λ1 Var(γ) − λ2 mean(γ) + C Σ max(0, 1 − γ_i)`.
    Ldm: TrainsLdm = "ldm" {
        /// Cost `C > 0` of an error. Default: 1.
        c
        /// Weight `λ1 ≥ 0` of the margin variance. Default: 1/32.
        lambda1
        /// Weight `λ2 ≥ 0` of the margin mean. Default: 1/32.
        lambda2
    }
    /// The support vector machine, `min ½‖w‖² + C Σ max(0, 1 − γ_i)`.
    Svm: TrainsSvm = "svm" {
        /// Cost `C > 0` of an error. Default: 1.
        c
    }
    /// The squared-hinge SVM, `min ½‖w‖² + C Σ max(0, 1 − γ_i)²`.
    SquaredSvm: TrainsSquaredSvm = "l2svm" {
        /// Cost `C > 0` of an error. Default: 1.
        c
    }
    /// The least-squares SVM, `min ½‖w‖² + (C/m) Σ (1 − γ_i)²`.
    Lssvm: TrainsLssvm = "lssvm" {
        /// Cost `C > 0` of an error. Default: 64, or a quarter of the rows where that is more.
        c
    }
    /// The multi-class optimal margin distribution machine.
    McOdm: TrainsMcOdm = "mcodm" {
        /// Weight `λ > 0` of the loss. Default: 64, or a sixteenth of the rows where that is more.
        lambda
        /// Weight `0 ≤ μ ≤ 1` of margins that are too large. Default: 0.4.
        mu
        /// Half the width `0 ≤ θ < 1` of the band of margins that cost nothing. Default: 0.4.
        theta
    }
}

impl Dataset {
    /// Labelled rows of numbers; an error if rows differ in length or labels in number.
    pub fn from_rows<R: AsRef<[f64]>, L: ToString>(rows: &[R], labels: &[L]) -> Result<Self> {
        let cols = rows.first().map_or(0, |row| row.as_ref().len());
        if let Some(i) = rows.iter().position(|row| row.as_ref().len() != cols) {
            let found = rows[i].as_ref().len();
            let reason = format!("row {} has {found} values; expected {cols}, as the first has", i + 1);
            return Err(Error::data("rows", reason));
        }
        if labels.len() != rows.len() {
            return Err(Error::data("rows", format!("there are {} rows and {} labels", rows.len(), labels.len())));
        }
        let values: Vec<f64> = rows.iter().flat_map(|row| row.as_ref().iter().copied()).collect();
        let dense = crate::data::Dense::new(rows.len(), cols, values)
            .ok_or_else(|| Error::data("rows", "rows and values do not fit"))?;
        let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
        Ok(Self::new("rows", crate::data::Matrix::DenseF64(dense), Some(crate::data::Labels::new(&labels))))
    }
}

#[cfg(feature = "ndarray")]
impl<'a> From<ndarray::ArrayView2<'a, f64>> for crate::data::Matrix<'a> {
    /// Borrowed where the view is row-major without gaps, else copied.
    fn from(view: ndarray::ArrayView2<'a, f64>) -> Self {
        let (rows, cols) = view.dim();
        let dense = match view.to_slice() {
            Some(values) => crate::data::Dense::new(rows, cols, values),
            None => crate::data::Dense::new(rows, cols, view.iter().copied().collect::<Vec<f64>>()),
        };
        Self::DenseF64(dense.expect("an array has as many values as its shape says"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MACHINES;

    #[test]
    fn learners_train_and_check() {
        let rows: Vec<[f64; 2]> = (0..40).map(|i| [f64::from(i % 7), f64::from(i % 5) - f64::from(i / 20)]).collect();
        let labels: Vec<&str> = (0..40).map(|i| if i < 20 { "no" } else { "yes" }).collect();
        let data = Dataset::from_rows(&rows, &labels).unwrap();
        let model = Odm::new().c1(64.0).c1(128.0).d(0.1).kernel(Rbf::scale()).scale(ScalingKind::Standard).fit(&data);
        let model = model.unwrap();
        assert_eq!((model.parameters.number("c1"), model.labels.join(" ")), (128.0, "no yes".into()));
        assert_eq!(model.predict(&data.rows).unwrap().len(), 40);
        let poly = Poly::gamma(0.5).degree(2).coef0(1.0);
        assert!(Svm::new().c(2.0).kernel(poly).intercept(Bias::None).tol(1e-6).fit(&data).is_ok());
        let tuned = Lssvm::new().kernel(Rbf::gamma(0.3)).tune(&data).unwrap();
        assert!(tuned.trials.len() > 1 && tuned.best.gamma == Some(0.3));
        let folds = Odm::new().cross_validate(&data, 4).unwrap();
        assert!(folds.len() == 4 && folds.iter().all(|figures| figures.accuracy.is_some()));
        assert!(Odm::new().cross_validate(&data, 1).is_err());
        let expected = |result: Result<Model>, name: &str| match result {
            Err(Error::Parameter { name: found, .. }) => assert_eq!(found, name),
            other => panic!("{name}: {:?}", other.map(|model| model.machine)),
        };
        expected(Odm::new().c1(-1.0).fit(&data), "c1");
        expected(Svm::new().kernel(Rbf::gamma(0.0)).fit(&data), "gamma");
        expected(Svm::new().intercept(Bias::Feature(0.0)).fit(&data), "bias");
        expected(Ldm::new().tol(f64::NAN).fit(&data), "tol");
        assert!(Dataset::from_rows(&[vec![1.0], vec![]], &["a", "b"]).is_err());
        let broken = Dataset::from_rows(&[[1.0], [f64::NAN]], &["a", "b"]).unwrap();
        assert!(matches!(Svm::new().fit(&broken), Err(Error::Data { .. })));
    }

    #[test]
    fn names_are_those_of_machines() {
        let names = [
            TrainsOdm::NAME,
            TrainsLdm::NAME,
            TrainsSvm::NAME,
            TrainsSquaredSvm::NAME,
            TrainsLssvm::NAME,
            TrainsMcOdm::NAME,
        ];
        assert!(names.iter().all(|name| MACHINES.iter().any(|machine| machine.name() == *name)));
    }
}
