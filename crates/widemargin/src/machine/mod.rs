//! The machines, one file a paper: parameters, the problem they mean, the fit, its bounds.
//!
//! A new machine is one file here and one line in [`MACHINES`]. What a machine needs of the world (rows, kernel,
//! intercept, weights) comes in a [`Training`]; what it found goes out in a [`Fit`].

mod convex;
mod fmm;
mod huber;
mod km_omd;
mod lda;
mod ldm;
mod mamc;
mod mcodm;
mod mcsvm;
mod mdo;
mod msvmav;
mod odm;
mod parameters;
mod statement;
mod svm;

pub use crate::problem::{Bias, DualPoint, ScoreFunctions};
pub use crate::solver::{SolverChoice, Start};
pub use parameters::{Domain, Parameter, Parameters, Preset, Series, Value};
pub use statement::{StatedForm, StatedLoss, StatedRivals, Statement};

use crate::control::Control;
use crate::data::Matrix;
use crate::kernel::{Kernel, Span};
use crate::loss::MarginLoss;
use crate::margins::{MarginStatistics, share_wrong};
use crate::problem::{Certificate, MarginProblem, StopReason};
use crate::solver::{Settings, Workspace};
use crate::{Error, Result};

/// How many classes a machine takes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// Two; more by one of the wrappers in [`crate::multiclass`].
    Two,
    /// Two or more in one problem.
    Many,
}

/// Everything a machine is given to learn from. Checked before: at least one row of each class, finite positive weights.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// The rows, scaled, under their kernel.
    pub workspace: &'a Workspace<'a>,
    /// Number of classes `k`.
    pub classes: usize,
    /// Class of each row, `0..k`. With two classes, class 1 (the larger label) is `y = +1`.
    pub codes: &'a [u32],
    /// Row weights `s_i > 0`: the row counts as `s_i` rows.
    pub weights: &'a [f64],
    /// The machine's own parameters.
    pub parameters: &'a Parameters,
    /// The landmarks by which the rows are mapped, if they are (the kernel then is linear): what is claimed is that of the
    /// coefficients of these, which are written.
    pub span: Option<&'a Span<'a>>,
    /// The intercept.
    pub bias: Bias,
    /// Which solver, or `auto`.
    pub solver: SolverChoice,
    /// Where a solver may start.
    pub start: &'a Start,
    /// Tolerance, limits, memory, seed.
    pub settings: Settings,
    /// Who watches.
    pub control: Control<'a>,
}

impl<'a> Training<'a> {
    /// The rows, scaled.
    pub fn rows(&self) -> &'a Matrix<'a> {
        self.workspace.rows()
    }

    /// The kernel.
    pub fn kernel(&self) -> Kernel {
        self.workspace.kernel()
    }

    /// The total weight `m = Σ s_i`.
    pub fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The labels as `y_i ∈ {−1, +1}`.
    pub fn signs(&self) -> Vec<f64> {
        self.codes.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect()
    }
}

/// What a fit found out, beside the model itself.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The solver that produced the result, in words (`newton (normal equations)`, `dcd, then newton`, …).
    pub solver: String,
    /// Primal objective as `docs/machines.md` states it.
    pub objective: Option<f64>,
    /// Dual objective: no model can have a primal objective below this.
    pub dual_objective: Option<f64>,
    /// `(primal − dual) / max(|primal|, |dual|)`.
    pub gap: Option<f64>,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps, passes or rounds.
    pub iterations: usize,
    /// Training rows with a non-zero coefficient.
    pub support: usize,
    /// Upper bound on the leave-one-out error, as a fraction; may exceed 1.
    pub loo_bound: Option<f64>,
    /// Leave-one-out error from closed-form leave-one-out margins, as a fraction.
    pub loo_error: Option<f64>,
    /// True objective after each outer round, for machines that have rounds.
    pub rounds: Option<Vec<f64>>,
    /// The margin of each training row.
    pub margins: Vec<f64>,
    /// Closed-form leave-one-out margin of each training row.
    pub loo_margins: Option<Vec<f64>>,
    /// Their standard error, the root of the mean of its squares over the rows, where they are estimates.
    pub loo_margin_error: Option<f64>,
    /// The scores behind them, one number a score function, row after row: each row under the model that is fitted without it.
    /// From [`crate::train::train`] on also those of rows of weight 0, which no model saw.
    pub loo_scores: Option<Vec<f64>>,
    /// The weight of each training row, as [`crate::train::train`] settled it (rows of weight 0 are not among them).
    pub weights: Vec<f64>,
    /// `‖w‖` in feature space, so that margins of different machines can be compared.
    pub norm: f64,
    /// For machines that go in rounds, whether these came to rest; `gap` is then that of the last round's problem.
    pub rest: Option<bool>,
    /// The dual point behind `dual_objective`; `None` where there is none or it is not kept.
    pub dual: Option<DualPoint>,
    /// What else a machine has to say (`bound_term`, …).
    pub extras: Vec<(&'static str, f64)>,
}

/// Dual variables beyond this many numbers are not kept, unless the coefficients hold them anyway: 64 MiB of a model file.
pub(crate) const MOST_DUAL_NUMBERS: usize = 1 << 23;

impl Outcome {
    /// An outcome without certificate, bounds or rounds, in which every row counts as support.
    pub(crate) fn plain(solver: String, stop: StopReason, iterations: usize, margins: Vec<f64>, norm: f64) -> Self {
        Self { solver, stop, iterations, support: margins.len(), margins, norm, ..Self::default() }
    }

    /// With both objectives and the gap between them.
    pub(crate) fn certified(self, certificate: Option<Certificate>) -> Self {
        Self {
            objective: certificate.map(|c| c.primal),
            dual_objective: certificate.map(|c| c.dual),
            gap: certificate.map(|c| c.gap()),
            ..self
        }
    }

    /// Settles why the fit stopped, by what it measured and the tolerance that was asked for.
    pub(crate) fn judge(&mut self, tol: f64) {
        // Results that are no numbers are as good as a gap that is none.
        let results = self.objective.iter().chain([&self.norm]).chain(&self.margins);
        let broken = results.into_iter().any(|value| !value.is_finite());
        self.stop = self.stop.judge(if broken { Some(f64::NAN) } else { self.gap }, self.rest, tol);
    }

    /// With leave-one-out margins and the scores behind them; rows count by their weight.
    pub(crate) fn left_out(&mut self, margins: Vec<f64>, scores: Vec<f64>, weights: &[f64]) {
        self.loo_error = Some(share_wrong(&margins, weights));
        (self.loo_margins, self.loo_scores) = (Some(margins), Some(scores));
    }

    /// The margin distribution in numbers, rows counted by their weight.
    pub fn statistics(&self) -> MarginStatistics {
        MarginStatistics::new(&self.margins, &self.weights)
    }
}

/// A fitted machine.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The score functions.
    pub functions: ScoreFunctions,
    /// How well it was fitted.
    pub outcome: Outcome,
}

/// What a search over one parameter tries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// The parameter.
    pub name: &'static str,
    /// The values tried at first.
    pub coarse: Series,
    /// The values among which the search then moves; those of `coarse` are among them.
    pub fine: Series,
    /// The values of the machine's paper (ours where it has none).
    pub paper: Series,
    /// Whether smaller values mean a smoother model, which wins among equals.
    pub small_is_smooth: bool,
    /// For what weighs a mean over the rows: a search first tries values up to about so many times their number.
    pub per_row: Option<f64>,
}

impl Axis {
    /// These values of a parameter whose smaller values mean a smoother model.
    pub(crate) const fn new(name: &'static str, coarse: Series, fine: Series, paper: Series) -> Self {
        Self { name, coarse, fine, paper, small_is_smooth: true, per_row: None }
    }

    /// The same where they weigh a mean over the rows, of which the papers' sets have a few hundred. What is best grows with the rows: on
    /// sets of 300, 1,000, 4,000 and 12,000 under the RBF kernel the most accurate `C1` was 1 to 4 times their number on average, 8 times and
    /// more where classes hardly overlap (`docs/defaults.md`).
    pub(crate) const fn per_row(self, most: f64) -> Self {
        Self { per_row: Some(most), ..self }
    }

    /// The values tried at first, and those among which the search then moves, over rows of this total weight. What weighs a mean is
    /// raised by a power of four until the largest tried at first is large enough; the smallest values stay within reach.
    pub fn tried(&self, total: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut coarse, mut fine) = (self.coarse.numbers(), self.fine.numbers());
        let enough = self.per_row.map_or(0.0, |most| 0.5 * most * total);
        let last = |values: &[f64]| values.last().copied().unwrap_or(f64::INFINITY);
        while last(&coarse) < enough {
            coarse.iter_mut().for_each(|value| *value *= 4.0);
            let (end, raised) = (last(&fine), fine.iter().map(|value| 4.0 * value).collect::<Vec<_>>());
            fine.extend(raised.into_iter().filter(|value| *value > end));
        }
        (coarse, fine)
    }

    /// The same where smaller values mean a rougher model.
    pub(crate) const fn rougher(self) -> Self {
        Self { small_is_smooth: false, ..self }
    }
}

/// The convex problem that the parameters of a machine mean, `½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Form {
    /// `φ`
    pub loss: MarginLoss,
    /// `κ`
    pub variance: f64,
    /// The theorem that bounds the leave-one-out error of its solution, if there is one.
    pub(crate) bound: Option<Theorem>,
}

impl Form {
    /// The problem of these labels, row weights and intercept.
    pub(crate) fn problem<'a>(&self, y: &'a [f64], weights: &'a [f64], bias: Bias) -> MarginProblem<'a> {
        MarginProblem { y, weights, loss: self.loss, variance: self.variance, bias }
    }
}

/// Which leave-one-out bound a form has, with the numbers of its formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Theorem {
    /// ODM's, of costs and a band `[C1, C2, D]`.
    Band([f64; 3]),
    /// LDM's, of what variance, mean and hinge weigh.
    Hinge([f64; 3]),
}

/// A learning machine, as data. Stateless: parameters come with the [`Training`].
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    name: &'static str,
    title: &'static str,
    formula: &'static str,
    paper: &'static str,
    parameters: &'static [Parameter],
    classes: Classes,
    grid: &'static [Axis],
    weighs_means: &'static [&'static str],
    averaged_band: Option<(f64, f64)>,
    uses: Uses,
    intercept: fn(Bias) -> Bias,
    resolve: fn(&mut Parameters) -> Result<()>,
    settle: fn(&mut Parameters, f64),
    form: fn(&Parameters, f64) -> Option<Form>,
    statement: fn(&Parameters, f64) -> Option<Statement>,
    fit: fn(&Self, &Training<'_>) -> Result<Fit>,
}

/// Functions that give what a machine has under their name.
macro_rules! told {
    ($($(#[$doc:meta])* $field:ident: $type:ty),+ $(,)?) => {$(
        $(#[$doc])*
        pub fn $field(&self) -> $type {
            self.$field
        }
    )+};
}

impl Machine {
    /// Two classes, any intercept and solver, nothing to search; without a name or a problem.
    const PLAIN: Self = Self {
        name: "",
        title: "",
        formula: "",
        paper: "",
        parameters: &[],
        classes: Classes::Two,
        grid: &[],
        weighs_means: &[],
        averaged_band: None,
        uses: Uses::ALL,
        intercept: std::convert::identity,
        resolve: |_| Ok(()),
        settle: |_, _| (),
        form: |_, _| None,
        statement: |_, _| None,
        fit: convex::fit,
    };

    told! {
        /// Its name.
        name: &'static str,
        /// What it is called, in full.
        title: &'static str,
        /// The problem it solves, `γ` a row's margin.
        formula: &'static str,
        /// Where it comes from.
        paper: &'static str,
        /// Its parameters.
        parameters: &'static [Parameter],
        /// How many classes it takes.
        classes: Classes,
        /// What a search for its parameters tries; nothing if there is nothing to choose.
        grid: &'static [Axis],
        /// The parameters that weigh a mean over the rows: the more rows, the less each counts. Those that weigh a sum are not
        /// among them.
        weighs_means: &'static [&'static str],
        /// `(C2/C1, D)` of the loss `max(0, 1 − D − γ)² + (C2/C1) max(0, γ − 1 − D)²` at which an average over many points takes
        /// them, for machines whose rows move in closed form when they are left out.
        averaged_band: Option<(f64, f64)>,
        /// Which of the options that are no machine's own it has a use for.
        uses: Uses,
    }

    /// The intercept it has where this one is asked for: not every machine can have every kind.
    pub fn intercept(&self, asked: Bias) -> Bias {
        (self.intercept)(asked)
    }

    /// These parameters with what nobody gave and what depends on the rows, of this total weight, filled in.
    pub fn settled(&self, parameters: &Parameters, total: f64) -> Parameters {
        let mut parameters = parameters.clone();
        (self.settle)(&mut parameters, total);
        parameters
    }

    /// The convex problem these parameters mean for rows of this total weight: all that [`fit`](Self::fit) needs. `None` for
    /// machines that are more than one such problem, which fit themselves.
    pub fn form(&self, parameters: &Parameters, total: f64) -> Option<Form> {
        (self.form)(&self.settled(parameters, total), total)
    }

    /// The same problem, or that of a machine which fits itself, in the numbers of its formula: for [`crate::verify`], which is to
    /// share nothing with a fit. `None` for machines that claim no gap.
    pub fn statement(&self, parameters: &Parameters, total: f64) -> Option<Statement> {
        (self.statement)(parameters, total)
    }

    /// Fits it.
    pub fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let parameters = &self.settled(training.parameters, training.total());
        (self.fit)(self, &Training { parameters, ..*training })
    }
}

/// The options of a fit that a machine has a use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// The solvers one may choose from.
    pub solvers: &'static [SolverChoice],
    /// Whether it aims at [`Settings::tol`].
    pub tol: bool,
    /// Whether it keeps to [`Settings::max_iter`].
    pub max_iter: bool,
}

impl Uses {
    /// A convex problem, which any solver solves to any tolerance.
    pub const ALL: Self = Self {
        solvers: &[SolverChoice::Auto, SolverChoice::Dcd, SolverChoice::Newton, SolverChoice::Asgd, SolverChoice::Svrg],
        tol: true,
        max_iter: true,
    };
    /// A way of its own, to a tolerance.
    pub const ONE_WAY: Self = Self { solvers: &[SolverChoice::Auto], ..Self::ALL };
    /// A closed form.
    pub const NONE: Self = Self { tol: false, max_iter: false, ..Self::ONE_WAY };
    /// The multi-class machines: coordinate descent.
    pub const DESCENT: Self = Self { solvers: &[SolverChoice::Auto, SolverChoice::Dcd], ..Self::ALL };
}

/// Every machine there is, in the order in which help and tables list them.
pub static MACHINES: &[&Machine] = &[
    &odm::ODM,
    &ldm::LDM,
    &ldm::ODM_L,
    &svm::SVM,
    &svm::SQUARED_SVM,
    &odm::LSSVM,
    &svm::SVR,
    &huber::HUBER_SVM,
    &msvmav::MSVMAV,
    &mamc::MAMC,
    &km_omd::KM_OMD,
    &mdo::MDO,
    &fmm::FMM,
    &lda::LDA,
    &mcodm::MC_ODM,
    &mcsvm::MC_SVM,
];

/// Other ways to spell a machine's name: the name and the alias.
pub const ALIASES: &[(&str, &str)] = &[("odm-l", "odml")];

/// The machine of this name or alias.
pub fn machine(name: &str) -> Result<&'static Machine> {
    let name = ALIASES.iter().find(|(_, alias)| *alias == name).map_or(name, |(known, _)| known);
    MACHINES.iter().copied().find(|m| m.name() == name).ok_or_else(|| {
        let names: Vec<&str> = MACHINES.iter().map(|m| m.name()).collect();
        Error::parameter("machine", name, format!("one of {}", names.join(", ")))
    })
}

/// Checks the parameters of a machine, given by name, and fills in the defaults that are the same for any rows; the others are
/// filled in by [`Machine::settled`].
pub fn check_parameters(machine: &Machine, given: &[(String, Value)]) -> Result<Parameters> {
    let mut parameters = Parameters::given(machine.parameters, given)?;
    // Some depend on each other: settled once each that was given was checked on its own, and before defaults are filled in.
    (machine.resolve)(&mut parameters)?;
    parameters.fill(machine.parameters);
    Ok(parameters)
}
