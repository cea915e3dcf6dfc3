//! Curves of predictions against the truth: the receiver operating characteristic, and how often probabilities come true.

use serde::Serialize;

/// The receiver operating characteristic of scores: `(false positive rate, true positive rate)` at every distinct score, from
/// `(0, 0)` to `(1, 1)`; rows of equal scores are one step. `None` where a class is missing.
pub fn roc(scores: &[f64], positive: &[bool]) -> Option<Vec<(f64, f64)>> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let all = positive.iter().filter(|p| **p).count();
    let none = positive.len() - all;
    if all == 0 || none == 0 {
        return None;
    }
    let (mut curve, mut wrong, mut right) = (vec![(0.0, 0.0)], 0, 0);
    for (place, &row) in order.iter().enumerate() {
        if positive[row] {
            right += 1
        } else {
            wrong += 1
        }
        let last_of_equals = order.get(place + 1).is_none_or(|&next| scores[next] != scores[row]);
        if last_of_equals {
            curve.push((wrong as f64 / none as f64, right as f64 / all as f64));
        }
    }
    Some(curve)
}

/// The area under a curve of straight lines.
pub fn area(curve: &[(f64, f64)]) -> f64 {
    curve.windows(2).map(|p| (p[1].0 - p[0].0) * (p[0].1 + p[1].1) / 2.0).sum()
}

/// Rows with nearly the same predicted probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Mean predicted probability.
    pub predicted: f64,
    /// The share of the rows that were positive.
    pub found: f64,
    /// Between what that share would be with 95 % of all samples of this size (Wilson).
    pub between: (f64, f64),
    /// Number of rows.
    pub rows: usize,
}

/// How often probabilities come true: the rows in the order of their probability, cut into at most so many bins of equal size;
/// rows of equal probability stay together.
pub fn reliability(probabilities: &[f64], positive: &[bool], bins: usize) -> Vec<Bin> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    let size = order.len().div_ceil(bins.max(1)).max(1);
    let (mut found, mut from) = (Vec::new(), 0);
    while from < order.len() {
        let mut to = (from + size).min(order.len());
        while to < order.len() && probabilities[order[to]] == probabilities[order[to - 1]] {
            to += 1;
        }
        let rows = &order[from..to];
        let true_ones = rows.iter().filter(|&&row| positive[row]).count() as f64;
        let count = rows.len() as f64;
        found.push(Bin {
            predicted: rows.iter().map(|&row| probabilities[row]).sum::<f64>() / count,
            found: true_ones / count,
            between: wilson(true_ones, count),
            rows: rows.len(),
        });
        from = to;
    }
    found
}

/// The expected calibration error: how far what was predicted in a bin is from what was found there, on average over the rows
/// (Naeini, Cooper & Hauskrecht 2015). Zero without rows.
pub fn calibration_error(bins: &[Bin]) -> f64 {
    let rows = bins.iter().map(|bin| bin.rows).sum::<usize>().max(1) as f64;
    bins.iter().map(|bin| bin.rows as f64 / rows * (bin.predicted - bin.found).abs()).sum()
}

/// Wilson's interval of 95 % for a share of `hits / count`.
fn wilson(hits: f64, count: f64) -> (f64, f64) {
    let (z, share) = (1.959_963_984_540_054, hits / count);
    let (square, by) = (z * z / count, 1.0 / (1.0 + z * z / count));
    let half = z * (share * (1.0 - share) / count + square / (4.0 * count)).sqrt();
    (((share + square / 2.0 - half) * by).clamp(0.0, share), ((share + square / 2.0 + half) * by).clamp(share, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_is_the_share_of_pairs_in_order() {
        let scores = [0.9, 0.8, 0.8, 0.3, 0.2, 0.2];
        let positive = [true, true, false, true, false, false];
        let curve = roc(&scores, &positive).unwrap();
        assert_eq!((curve[0], *curve.last().unwrap(), curve.len()), ((0.0, 0.0), (1.0, 1.0), 5));
        let mut pairs = 0.0;
        for i in (0..6).filter(|&i| positive[i]) {
            for j in (0..6).filter(|&j| !positive[j]) {
                pairs += if scores[i] > scores[j] {
                    1.0
                } else if scores[i] == scores[j] {
                    0.5
                } else {
                    0.0
                };
            }
        }
        assert!((area(&curve) - pairs / 9.0).abs() < 1e-15);
        assert_eq!(roc(&[1.0, 2.0], &[true, true]), None);
        assert_eq!(roc(&[], &[]), None);
    }

    #[test]
    fn bins_hold_every_row_once() {
        let probabilities: Vec<f64> = (0..95).map(|i| f64::from(i / 2) / 50.0).collect();
        let positive: Vec<bool> = (0..95).map(|i| i % 3 == 0).collect();
        let bins = reliability(&probabilities, &positive, 10);
        assert!(bins.len() <= 10 && bins.iter().map(|b| b.rows).sum::<usize>() == 95);
        assert!(bins.windows(2).all(|b| b[0].predicted < b[1].predicted));
        assert!(bins.iter().all(|b| b.between.0 <= b.found && b.found <= b.between.1));
        assert_eq!(reliability(&[0.5; 8], &[true; 8], 4).len(), 1);
        assert!(reliability(&[], &[], 4).is_empty());
        // By hand: 3 rows predicted 0.2 of which one is true, 1 row predicted 0.9 that is.
        let two = reliability(&[0.2, 0.2, 0.2, 0.9], &[true, false, false, true], 2);
        let by_hand = 0.75 * (1.0 / 3.0 - 0.2) + 0.25 * 0.1;
        assert!((calibration_error(&two) - by_hand).abs() < 1e-15 && calibration_error(&[]) == 0.0, "{two:?}");
        // statsmodels: proportion_confint(8, 10, method="wilson")
        let (low, high) = wilson(8.0, 10.0);
        assert!(
            (low - 0.490_162_471_536_641_2).abs() < 1e-9 && (high - 0.943_317_848_545_624_7).abs() < 1e-9,
            "{low} {high}"
        );
    }
}
