//! Mean, standard deviation, ranks, the tests of the papers (paired t-test, Welch's test, signed-rank test), and Holm's
//! correction for many of them.

pub use widemargin::margins::{mean, standard_deviation};

/// Of fewer pairs no test is made: two differences that happen to be nearly equal prove nothing.
const FEWEST_PAIRS: usize = 3;

/// The outcome of a paired t-test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedTest {
    /// Mean of the differences `a_i − b_i`.
    pub difference: f64,
    /// Probability, if there were no difference in the mean, of one at least as large in either direction.
    pub p: f64,
}

/// The two-sided paired t-test of `a` against `b`, value by value, with `t = d̄ / √((1/n + ρ) s²)` and `n − 1` degrees of freedom.
///
/// With `ρ = 0` it is the plain test, which takes the differences for independent. Those of random splits of one data set are
/// not, because the splits share rows: the plain test finds differences where there are none. Nadeau and Bengio's corrected
/// resampled t-test (Machine Learning 52, 2003) has `ρ` = test rows / training rows.
///
/// `None` for fewer than three pairs, and where all differences are equal: without a spread there is nothing to measure the
/// mean difference by, and no probability.
pub fn paired_t_test(a: &[f64], b: &[f64], rho: f64) -> Option<PairedTest> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (difference, spread) = (mean(&differences), standard_deviation(&differences));
    // Accuracies are fractions: differences that are equal on paper may differ in the last bits.
    if differences.len() < FEWEST_PAIRS || spread <= 1e-12 * (1.0 + difference.abs()) {
        return None;
    }
    let n = differences.len() as f64;
    Some(PairedTest { difference, p: student_two_sided(difference / ((1.0 / n + rho).sqrt() * spread), n - 1.0) })
}

/// Mean, standard deviation and number of values: all that a printed table tells of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Mean.
    pub mean: f64,
    /// Standard deviation, divisor `n − 1`.
    pub deviation: f64,
    /// Number of values.
    pub count: usize,
}

/// Welch's two-sided test of two means: `t = (x̄ − ȳ) / √(s_x²/n_x + s_y²/n_y)` with the degrees of freedom of Welch and
/// Satterthwaite; the `p`, or `None` where a sample has fewer than two values or neither has any spread.
pub fn welch_test(a: Sample, b: Sample) -> Option<f64> {
    if a.count < 2 || b.count < 2 {
        return None;
    }
    let part = |s: Sample| s.deviation.powi(2) / s.count as f64;
    let (of_a, of_b) = (part(a), part(b));
    let variance = of_a + of_b;
    let difference = a.mean - b.mean;
    if variance <= 0.0 {
        return None;
    }
    let freedom = variance.powi(2) / (of_a.powi(2) / (a.count - 1) as f64 + of_b.powi(2) / (b.count - 1) as f64);
    Some(student_two_sided(difference / variance.sqrt(), freedom))
}

/// Ranks from 1 for the smallest; equal values share the mean of their ranks.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        // Means of fractions that are equal on paper may differ in the last bits.
        let same = order[from..].iter().take_while(|&&i| values[i] - values[order[from]] <= 1e-12).count();
        let shared = from as f64 + (same + 1) as f64 / 2.0;
        order[from..from + same].iter().for_each(|&i| ranks[i] = shared);
        from += same;
    }
    ranks
}

/// Of fewer pairs that differ no signed-rank test is made: even if all differ in one direction, `p = 2 / 2⁵` is above 5 %.
const FEWEST_SETS: usize = 6;

/// Up to this many pairs the distribution of the signed-rank sum is counted out.
const COUNTED: usize = 200;

/// Wilcoxon's two-sided signed-rank test of pairs `a_i, b_i`; `None` if fewer than six pairs differ.
///
/// `W` is the sum of the ranks of `|a_i − b_i|` where `a_i > b_i`; pairs without a difference are left out, equal
/// differences share their ranks. The distribution of `W` over all signs is exact up to 200 pairs, normal beyond.
pub fn signed_rank_test(a: &[f64], b: &[f64]) -> Option<f64> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).filter(|d| d.abs() > 1e-12).collect();
    if differences.len() < FEWEST_SETS {
        return None;
    }
    let ranks = ranks(&differences.iter().map(|d| d.abs()).collect::<Vec<_>>());
    let positive: f64 = differences.iter().zip(&ranks).filter(|(d, _)| **d > 0.0).map(|(_, r)| r).sum();
    let total: f64 = ranks.iter().sum();
    let smaller = positive.min(total - positive);
    if differences.len() > COUNTED {
        let spread = (ranks.iter().map(|r| r * r).sum::<f64>() / 4.0).sqrt();
        return Some(student_two_sided((smaller - total / 2.0) / spread, 1e9));
    }
    // Twice the ranks are whole numbers: probabilities of each sum, one row after the other.
    let doubled: Vec<usize> = ranks.iter().map(|r| (2.0 * r).round() as usize).collect();
    let mut chances = vec![0.0; doubled.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    let mut most = 0;
    for &rank in &doubled {
        most += rank;
        for sum in (0..=most).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = 0.5 * (chances[sum] + with);
        }
    }
    let tail: f64 = chances[..=(2.0 * smaller).round() as usize].iter().sum();
    Some((2.0 * tail).min(1.0))
}

/// Holm's correction: `p` of many tests made larger, in the order given, so that the chance of even one false finding among all of
/// them stays below the level they are compared with. The `k`-th smallest of `n` becomes the largest of `(n − j + 1) p_(j)`, `j ≤ k`.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = p.to_vec();
    let mut least = 0.0f64;
    for (place, &i) in order.iter().enumerate() {
        least = least.max((p.len() - place) as f64 * p[i]).min(1.0);
        adjusted[i] = least;
    }
    adjusted
}

/// Whether a signed-rank test over so many data sets could call any of these comparisons significant at 95 % after Holm's
/// correction: with fewer sets not even a machine that wins on all of them is.
pub fn enough_sets(sets: usize, comparisons: usize) -> bool {
    sets >= FEWEST_SETS && comparisons as f64 * 2f64.powi(1 - sets as i32) < 0.05
}

/// `P(|T| ≥ |t|)` for Student's `T` with `freedom` degrees: `I_{ν/(ν+t²)}(ν/2, 1/2)`.
pub fn student_two_sided(t: f64, freedom: f64) -> f64 {
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// `P(T ≤ t)` for Student's `T` with `freedom` degrees.
pub fn student_cdf(t: f64, freedom: f64) -> f64 {
    let tail = student_two_sided(t, freedom) / 2.0;
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The regularised incomplete beta function `I_x(a, b)`, by its continued fraction (Abramowitz & Stegun 26.5.8).
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    // The fraction converges quickly on this side only; the other follows by symmetry.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in (1..500).map(f64::from) {
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            step = c * d;
            value *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// `ln Γ(x)` for `x > 0` (Lanczos' approximation, g = 7, nine terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x < 0.5 {
        return (std::f64::consts::PI / (std::f64::consts::PI * x).sin()).ln() - ln_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let series = (1u32..).zip(TERMS).fold(0.999_999_999_999_809_9, |sum, (i, term)| sum + term / (x + f64::from(i)));
    let base = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * base.ln() - base + series.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_student_are_those_of_the_tables() {
        // 97.5 % points.
        let known = [(1.0, 12.706_204_736_432_095), (2.0, 4.302_652_729_911_275), (9.0, 2.262_157_162_740_992)];
        let more = [(29.0, 2.045_229_642_132_703), (100.0, 1.983_971_518_523_552), (1e6, 1.959_966_35)];
        for (freedom, t) in known.into_iter().chain(more) {
            assert!((student_two_sided(t, freedom) - 0.05).abs() < 1e-8, "{freedom}");
            assert!((student_cdf(t, freedom) - 0.975).abs() < 1e-8);
            assert!((student_cdf(-t, freedom) - 0.025).abs() < 1e-8);
        }
        assert!((student_cdf(0.0, 5.0) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn one_and_two_degrees_have_closed_forms() {
        for t in [-8.0, -1.0, -0.1, 0.3, 1.0, 2.5, 50.0f64] {
            let cauchy = 0.5 + t.atan() / std::f64::consts::PI;
            let two = 0.5 + t / (2.0 * (2.0 + t * t).sqrt());
            assert!((student_cdf(t, 1.0) - cauchy).abs() < 1e-13, "{t}");
            assert!((student_cdf(t, 2.0) - two).abs() < 1e-13, "{t}");
        }
    }

    #[test]
    fn the_sleep_data_of_student() {
        // Extra hours of sleep under two drugs (Student 1908): t = −4.0621, p = 0.002833.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let test = paired_t_test(&a, &b, 0.0).unwrap();
        assert!((test.difference + 1.58).abs() < 1e-12);
        assert!((test.p - 0.002_832_890_197_384_26).abs() < 1e-9, "{}", test.p);
        // Halves: t shrinks by √((1/n + 1) / (1/n)) = √11. scipy.stats.t.sf(4.062127683382037 / 11**0.5, 9) * 2
        let corrected = paired_t_test(&a, &b, 1.0).unwrap();
        assert_eq!(corrected.difference, test.difference);
        assert!((corrected.p - 0.251_747_732_063_981_77).abs() < 1e-9, "{}", corrected.p);
    }

    #[test]
    fn equal_differences() {
        assert_eq!(paired_t_test(&[0.5, 0.6, 0.7], &[0.5, 0.6, 0.7], 1.0), None);
        assert_eq!(paired_t_test(&[0.5, 0.75, 0.6], &[0.25, 0.5, 0.35], 1.0), None);
        // Two splits prove nothing, however alike their differences are.
        assert_eq!(paired_t_test(&[0.5, 0.75], &[0.25, 0.500_001], 0.0), None);
        assert_eq!(paired_t_test(&[0.5], &[0.25], 0.0), None);
    }

    #[test]
    fn welch_agrees_with_known_values() {
        // scipy.stats.ttest_ind_from_stats(0.8, 0.05, 30, 0.77, 0.03, 10, equal_var=False)
        let a = Sample { mean: 0.8, deviation: 0.05, count: 30 };
        let b = Sample { mean: 0.77, deviation: 0.03, count: 10 };
        assert!((welch_test(a, b).unwrap() - 0.031_018_347_221_837_88).abs() < 1e-9, "{:?}", welch_test(a, b));
        let still = Sample { mean: 0.5, deviation: 0.0, count: 5 };
        assert_eq!(welch_test(still, still), None);
        assert_eq!(welch_test(still, Sample { mean: 0.6, ..still }), None);
        assert_eq!(welch_test(still, Sample { count: 1, ..still }), None);
    }

    #[test]
    fn many_tests_are_corrected() {
        // statsmodels: multipletests([0.01, 0.04, 0.03, 0.005], method="holm")
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        assert!(adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]).all(|(a, b)| (a - b).abs() < 1e-15), "{adjusted:?}");
        assert_eq!(holm(&[0.6, 0.9]), [1.0, 1.0]);
        assert_eq!(holm(&[0.2]), [0.2]);
        assert!(holm(&[]).is_empty());
        assert_eq!([5, 6, 7].map(|sets| enough_sets(sets, 1)), [false, true, true]);
        assert_eq!([6, 7, 8].map(|sets| enough_sets(sets, 3)), [false, true, true]);
    }

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[0.3, 0.1, 0.3, 0.2]), [3.5, 1.0, 3.5, 2.0]);
        assert!(ranks(&[]).is_empty());
    }

    #[test]
    fn signed_ranks() {
        // Ties and two pairs without a difference; the p was counted out over all 2^14 signs.
        let a = [78.0, 24.0, 64.0, 45.0, 64.0, 52.0, 30.0, 50.0, 64.0, 50.0, 78.0, 22.0, 84.0, 40.0, 90.0, 72.0];
        let b = [78.0, 24.0, 62.0, 48.0, 68.0, 56.0, 25.0, 44.0, 56.0, 40.0, 68.0, 36.0, 68.0, 20.0, 58.0, 32.0];
        assert!((signed_rank_test(&a, &b).unwrap() - 0.034_179_687_5).abs() < 1e-12, "{:?}", signed_rank_test(&a, &b));
        // All of six differences positive: 2 / 2^6. Of five, no outcome is significant.
        let (six, zero) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0; 6]);
        assert!((signed_rank_test(&six, &zero).unwrap() - 0.03125).abs() < 1e-15);
        assert_eq!(signed_rank_test(&six[..5], &zero[..5]), None);
        assert_eq!(signed_rank_test(&six[..2], &zero[..2]), None);
        assert_eq!(signed_rank_test(&zero, &zero), None);
        let many: Vec<f64> = (0..300).map(|i| f64::from(i % 7) - 3.0).collect();
        assert!(signed_rank_test(&many, &vec![0.0; 300]).unwrap() > 0.5);
    }
}
