//! What training leaves: score, predict, save, load. Knows no solver.

use crate::data::Matrix;
use crate::kernel::Kernel;
use crate::machine::{Bias, Expansion, Parameters};
use crate::solver::StopReason;
use serde::{Deserialize, Serialize};

/// How the columns of raw scores become a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "rule", rename_all = "lowercase")]
pub enum Decision {
    /// One column; above zero means the larger label (class 1), zero and below the smaller.
    Sign,
    /// One column a class; the largest score wins, the lowest class among equals.
    Largest,
}

/// The score functions of a model, ready for rows that training never saw.
#[derive(Clone, Debug, PartialEq)]
pub enum Scorer {
    /// `f_l(x) = w_l · x + b_l`.
    Linear {
        /// `w_l`, one vector of [`Model::features`] numbers a column.
        weights: Vec<Vec<f64>>,
        /// `b_l`
        intercepts: Vec<f64>,
    },
    /// `f_l(x) = Σ_i c_il k(x_i, x) + b_l` over the support rows.
    Kernel {
        /// The rows with a non-zero coefficient in some column, scaled as training saw them.
        support: Matrix<'static>,
        /// `c_l`, one vector with a number a support row for each column.
        coefficients: Vec<Vec<f64>>,
        /// `b_l`
        intercepts: Vec<f64>,
    },
}

/// The quality a model was certified with, kept in its file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
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
    /// Number of training rows.
    pub rows: usize,
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
    /// The intercept mode it was trained with.
    pub bias: Bias,
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
    pub certificate: Certificate,
}

impl Scorer {
    /// Turns what a machine learnt over the training rows into a scorer of new rows: only support rows are kept.
    pub fn new(expansion: Expansion, rows: &Matrix<'_>) -> Self {
        match expansion {
            Expansion::Linear { weights, intercepts } => Self::Linear { weights, intercepts },
            Expansion::Kernel { coefficients, intercepts } => {
                let kept: Vec<usize> = (0..rows.rows()).filter(|&i| coefficients.iter().any(|c| c[i] != 0.0)).collect();
                let coefficients = coefficients.iter().map(|c| kept.iter().map(|&i| c[i]).collect()).collect();
                Self::Kernel { support: rows.select(&kept), coefficients, intercepts }
            }
        }
    }
}
