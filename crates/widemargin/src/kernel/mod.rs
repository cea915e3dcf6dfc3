//! Inner products of rows: single, block, cached.

use serde::{Deserialize, Serialize};

/// `k(x, z)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kernel {
    /// `x·z`
    #[default]
    Linear,
    /// `exp(−γ ‖x − z‖²)`
    Rbf {
        /// `γ`
        gamma: f64,
    },
    /// `(γ x·z + r)^p`
    Poly {
        /// `γ`
        gamma: f64,
        /// `p`
        degree: u32,
        /// `r`
        coef0: f64,
    },
    /// `tanh(γ x·z + r)`; not positive definite in general, so optima over it carry no certificate of convexity.
    Sigmoid {
        /// `γ`
        gamma: f64,
        /// `r`
        coef0: f64,
    },
    /// `exp(−γ ‖x − z‖₁)`
    Laplacian {
        /// `γ`
        gamma: f64,
    },
}

impl Kernel {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Rbf { .. } => "rbf",
            Self::Poly { .. } => "poly",
            Self::Sigmoid { .. } => "sigmoid",
            Self::Laplacian { .. } => "laplacian",
        }
    }
}
