//! Statistics of a margin distribution, and of the figures of folds and splits.

use serde::{Deserialize, Serialize};

/// What a margin distribution looks like in numbers. Rows count by their weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarginStatistics {
    /// The smallest margin: what an SVM maximises.
    pub min: f64,
    /// `γ̄`
    pub mean: f64,
    /// `mean (γ − γ̄)²`
    pub variance: f64,
    /// `mean max(0, γ̄ − γ)²`
    pub semivariance: f64,
    /// The 5, 25, 50, 75 and 95 % points.
    pub quantiles: [f64; 5],
    /// Fraction of rows with a margin at or below zero: the training error.
    pub errors: f64,
}

/// `Σ s v / Σ s`; 0 without weight.
pub(crate) fn weighted_mean(values: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, total) = values.fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + weight * value, total + weight));
    if total > 0.0 { sum / total } else { 0.0 }
}

impl MarginStatistics {
    /// The statistics of `margins`, each counted `weights` times.
    pub fn new(margins: &[f64], weights: &[f64]) -> Self {
        let pairs = || margins.iter().copied().zip(weights.iter().copied());
        let mean = weighted_mean(pairs());
        let mut sorted: Vec<(f64, f64)> = pairs().collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let total: f64 = weights.iter().sum();
        let quantile = |q: f64| {
            let mut below = 0.0;
            let found = sorted.iter().find(|(_, weight)| {
                below += weight;
                below >= q * total
            });
            found.or(sorted.last()).map_or(0.0, |(value, _)| *value)
        };
        Self {
            min: sorted.first().map_or(0.0, |(value, _)| *value),
            mean,
            variance: weighted_mean(pairs().map(|(g, s)| ((g - mean).powi(2), s))),
            semivariance: weighted_mean(pairs().map(|(g, s)| ((mean - g).max(0.0).powi(2), s))),
            quantiles: [0.05, 0.25, 0.5, 0.75, 0.95].map(quantile),
            errors: weighted_mean(pairs().map(|(g, s)| (f64::from(u8::from(g <= 0.0)), s))),
        }
    }

    /// The same distribution with every margin divided by `norm`.
    pub fn normalised(&self, norm: f64) -> Self {
        let by = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        Self {
            min: self.min * by,
            mean: self.mean * by,
            variance: self.variance * by * by,
            semivariance: self.semivariance * by * by,
            quantiles: self.quantiles.map(|q| q * by),
            errors: self.errors,
        }
    }
}

/// `Σ_{γ_i ≤ 0} s_i / Σ s_i`, the share of the rows that are not labelled right, by weight.
pub fn share_wrong(margins: &[f64], weights: &[f64]) -> f64 {
    let wrong = |(g, s): (&f64, &f64)| if *g <= 0.0 { *s } else { 0.0 };
    margins.iter().zip(weights).map(wrong).sum::<f64>() / weights.iter().sum::<f64>()
}

/// The mean; 0 of nothing.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The sample standard deviation (divisor `n − 1`); 0 of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let centre = mean(values);
    (values.iter().map(|v| (v - centre).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation() {
        assert_eq!(mean(&[]), 0.0);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert_eq!(standard_deviation(&[5.0]), 0.0);
        assert!((standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
    }
}
