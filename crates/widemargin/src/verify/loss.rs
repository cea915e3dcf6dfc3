//! The losses of the two-class machines, written out: `φ`, `φ'`, the slopes `φ` can take, and what a row adds to the gap.

use crate::machine::StatedLoss;

impl StatedLoss {
    /// `φ(γ)`
    pub fn value(self, gamma: f64) -> f64 {
        match self {
            Self::Hinge { c, mean } => c * (1.0 - gamma).max(0.0) - mean * gamma,
            Self::Band { c1, c2, d } => {
                c1 * (1.0 - d - gamma).max(0.0).powi(2) + c2 * (gamma - 1.0 - d).max(0.0).powi(2)
            }
            Self::Insensitive { c, epsilon } => c * ((1.0 - gamma).abs() - epsilon).max(0.0),
            Self::Huber { c, delta } if gamma <= 1.0 - delta => c * (1.0 - gamma - 0.5 * delta),
            Self::Huber { c, delta } => c * (1.0 - gamma).max(0.0).powi(2) / (2.0 * delta),
            Self::Mean { mean } => -mean * gamma,
        }
    }

    /// `φ'(γ)`; at a kink the slope from the left.
    pub fn slope(self, gamma: f64) -> f64 {
        match self {
            Self::Hinge { c, mean } => -mean - if gamma <= 1.0 { c } else { 0.0 },
            Self::Band { c1, c2, d } => 2.0 * c2 * (gamma - 1.0 - d).max(0.0) - 2.0 * c1 * (1.0 - d - gamma).max(0.0),
            Self::Insensitive { c, epsilon } => {
                if gamma <= 1.0 - epsilon {
                    -c
                } else if gamma <= 1.0 + epsilon {
                    0.0
                } else {
                    c
                }
            }
            Self::Huber { c, delta } => -c * ((1.0 - gamma) / delta).clamp(0.0, 1.0),
            Self::Mean { mean } => -mean,
        }
    }

    /// The least and the largest slope.
    pub fn slopes(self) -> (f64, f64) {
        match self {
            Self::Hinge { c, mean } => (-c - mean, -mean),
            Self::Band { c2, .. } => (f64::NEG_INFINITY, if c2 > 0.0 { f64::INFINITY } else { 0.0 }),
            Self::Insensitive { c, .. } => (-c, c),
            Self::Huber { c, .. } => (-c, 0.0),
            Self::Mean { mean } => (-mean, -mean),
        }
    }

    /// `φ(γ) + φ*(q) − q γ ≥ 0` for a slope `q` that `φ` can take (Fenchel-Young), arranged so that nothing large cancels.
    ///
    /// With the conjugates `φ*(q) = q + t` (hinge), `q (1 ∓ D) + q²/(4 C)` with `C = C1` below and `C2` above zero (band),
    /// `q + ε|q|` (ε-insensitive), 0 (mean).
    pub fn fenchel_young(self, gamma: f64, q: f64) -> f64 {
        match self {
            Self::Hinge { c, mean } => c * (1.0 - gamma).max(0.0) + (q + mean) * (1.0 - gamma),
            Self::Band { c1, c2, d } => {
                // How far the margin is below or above the band, and on which side the slope is.
                let (below, above) = (1.0 - d - gamma, gamma - 1.0 - d);
                let one_side = |c: f64, cost: f64, distance: f64, other: f64| {
                    let rest = other * (-2.0 * d - distance).max(0.0).powi(2);
                    let own = if distance > 0.0 {
                        c * (distance - cost / (2.0 * c)).powi(2)
                    } else {
                        cost * (cost / (4.0 * c) - distance)
                    };
                    own + rest
                };
                if q < 0.0 {
                    one_side(c1, -q, below, c2)
                } else if q > 0.0 {
                    one_side(c2, q, above, c1)
                } else {
                    self.value(gamma)
                }
            }
            Self::Insensitive { c, epsilon } => {
                c * ((1.0 - gamma).abs() - epsilon).max(0.0) + epsilon * q.abs() + q * (1.0 - gamma)
            }
            // φ*(q) = q + δq²/2C: the distance of the slope from that of the margin, squared, and what lies beyond either end.
            Self::Huber { c, delta } => {
                let pull = (1.0 - gamma) / delta;
                let own = c * delta * 0.5 * (pull.clamp(0.0, 1.0) + q / c).powi(2);
                own + delta * ((pull - 1.0).max(0.0) * (c + q) + (-pull).max(0.0) * -q)
            }
            Self::Mean { .. } => 0.0,
        }
    }

    /// Whether slopes never jump, so that a dual point follows from the margins alone.
    pub fn is_smooth(self) -> bool {
        matches!(self, Self::Band { .. } | Self::Huber { .. } | Self::Mean { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOSSES: [StatedLoss; 7] = [
        StatedLoss::Huber { c: 1.5, delta: 0.15 },
        StatedLoss::Hinge { c: 2.0, mean: 0.3 },
        StatedLoss::Band { c1: 3.0, c2: 5.0, d: 0.2 },
        StatedLoss::Band { c1: 3.0, c2: 0.0, d: 0.0 },
        StatedLoss::Band { c1: 1.5, c2: 1.5, d: 0.0 },
        StatedLoss::Insensitive { c: 2.0, epsilon: 0.1 },
        StatedLoss::Mean { mean: 0.7 },
    ];

    /// `sup_γ q γ − φ(γ)` over a fine grid.
    fn conjugate(loss: StatedLoss, q: f64) -> f64 {
        (-40_000..=40_000).map(|i| f64::from(i) * 1e-3).map(|g| q * g - loss.value(g)).fold(f64::MIN, f64::max)
    }

    #[test]
    fn what_a_row_adds_is_value_plus_conjugate_minus_product() {
        for loss in LOSSES {
            let (low, high) = loss.slopes();
            for t in 0..=10 {
                let q = low.max(-4.0) + (high.min(4.0) - low.max(-4.0)) * f64::from(t) / 10.0;
                let conjugate = conjugate(loss, q);
                for gamma in [-1.7, 0.0, 0.8, 0.95, 1.0, 1.05, 1.2, 2.5] {
                    let expected = loss.value(gamma) + conjugate - q * gamma;
                    let found = loss.fenchel_young(gamma, q);
                    assert!((found - expected).abs() < 1e-5, "{loss:?} {gamma} {q}: {found} {expected}");
                    assert!(found >= -1e-12);
                }
            }
        }
    }

    #[test]
    fn at_its_own_slope_a_row_adds_nothing() {
        for loss in LOSSES {
            for gamma in [-1.7, 0.3, 0.88, 1.02, 1.3, 2.5] {
                assert!(loss.fenchel_young(gamma, loss.slope(gamma)).abs() < 1e-12, "{loss:?} {gamma}");
                let slope = (loss.value(gamma + 1e-6) - loss.value(gamma - 1e-6)) / 2e-6;
                assert!((slope - loss.slope(gamma)).abs() < 1e-4, "{loss:?} {gamma}");
            }
        }
    }
}
