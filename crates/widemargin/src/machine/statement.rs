//! What a machine minimises, in the numbers of its formula: for the second opinion of [`verify`], which computes with them by itself.
//!
//! A statement is no part of a fit, and shares nothing with the [`form`](super::Machine::form) that solvers are given.
//!
//! [`verify`]: ../../verify/index.html

/// The problem of a machine.
#[derive(Clone, Copy, Debug)]
pub enum Statement {
    /// One score function for two classes.
    Margins(StatedForm),
    /// One score function a class.
    Rivals {
        /// `ℓ`
        loss: StatedRivals,
        /// The same for two classes inside a wrapper: there `w_1 = −w_2 = −w/2`, so that `½‖w_1‖² + ½‖w_2‖² = ¼‖w‖²`.
        two: StatedForm,
        /// Whether the last round's problem froze scores, which leaves none that could be posed again.
        frozen: bool,
    },
    /// `min (1−λ)‖Σ γ_i y_i φ(x_i)‖² + λ Σ γ_i²/s_i` over a distribution `γ` on each class.
    Hulls {
        /// `λ`
        lambda: f64,
    },
    /// `max_{‖w‖=1} min_i γ_i`
    SmallestMargin,
}

impl Statement {
    /// A problem with the loss `φ` alone.
    pub fn margins(loss: StatedLoss) -> Self {
        Self::Margins(StatedForm { loss, variance: 0.0, ridge: 1.0 })
    }
}

/// `min ½ρ‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)`
#[derive(Clone, Copy, Debug)]
pub struct StatedForm {
    /// `φ`
    pub loss: StatedLoss,
    /// `κ`
    pub variance: f64,
    /// `ρ`: 1, but ½ where two score functions `±w/2` share the weights.
    pub ridge: f64,
}

/// `φ`
#[derive(Clone, Copy, Debug)]
pub enum StatedLoss {
    /// `C max(0, 1 − γ) − t γ`
    Hinge {
        /// `C`
        c: f64,
        /// `t`
        mean: f64,
    },
    /// `C1 max(0, 1 − D − γ)² + C2 max(0, γ − 1 − D)²`
    Band {
        /// `C1`
        c1: f64,
        /// `C2`
        c2: f64,
        /// `D`
        d: f64,
    },
    /// `C max(0, |1 − γ| − ε)`
    Insensitive {
        /// `C`
        c: f64,
        /// `ε`
        epsilon: f64,
    },
    /// `C` times the hinge, rounded to `(1 − γ)²/2δ` for `1 − δ < γ ≤ 1`
    Huber {
        /// `C`
        c: f64,
        /// `δ`
        delta: f64,
    },
    /// `−t γ`
    Mean {
        /// `t`
        mean: f64,
    },
}

/// `ℓ` of a row, before its weight.
#[derive(Clone, Copy, Debug)]
pub enum StatedRivals {
    /// `C max(0, 1 − γ)`
    CrammerSinger {
        /// `C`
        c: f64,
    },
    /// `C Σ_{l≠y} max(0, 1 − f^y + f^l)`
    WestonWatkins {
        /// `C`
        c: f64,
    },
    /// `c (max(0, 1 − θ − γ)² + μ max(0, γ − 1 − θ)²)`, `c = λ/(m (1−θ)²)`; against the rival `r` on the upper side in a round.
    Odm {
        /// `c`
        c: f64,
        /// `μ`
        mu: f64,
        /// `θ`
        theta: f64,
    },
}
