//! Mean, standard deviation, and the paired t-test.

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

/// The outcome of a paired t-test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedTest {
    /// Mean of the differences `a_i − b_i`.
    pub difference: f64,
    /// Probability, if there were no difference in the mean, of one at least as large in either direction.
    pub p: f64,
}

/// The two-sided paired t-test of `a` against `b`, value by value; `None` for fewer than two pairs.
///
/// Where all differences are equal, `p` is 1 if they are zero and 0 otherwise.
pub fn paired_t_test(a: &[f64], b: &[f64]) -> Option<PairedTest> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    if differences.len() < 2 {
        return None;
    }
    let (difference, spread) = (mean(&differences), standard_deviation(&differences));
    // Accuracies are fractions: differences that are equal on paper may differ in the last bits.
    let p = if spread <= 1e-12 * (1.0 + difference.abs()) {
        f64::from(u8::from(difference.abs() <= 1e-12))
    } else {
        let n = differences.len() as f64;
        student_two_sided(difference / (spread / n.sqrt()), n - 1.0)
    };
    Some(PairedTest { difference, p })
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
    fn mean_and_deviation() {
        assert_eq!(mean(&[]), 0.0);
        assert_eq!(mean(&[1.0, 2.0, 6.0]), 3.0);
        assert_eq!(standard_deviation(&[5.0]), 0.0);
        assert!((standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
    }

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
        let test = paired_t_test(&a, &b).unwrap();
        assert!((test.difference + 1.58).abs() < 1e-12);
        assert!((test.p - 0.002_832_890_197_384_26).abs() < 1e-9, "{}", test.p);
    }

    #[test]
    fn equal_differences() {
        assert_eq!(paired_t_test(&[0.5, 0.6], &[0.5, 0.6]).unwrap().p, 1.0);
        assert_eq!(paired_t_test(&[0.5, 0.75], &[0.25, 0.5]).unwrap().p, 0.0);
        assert_eq!(paired_t_test(&[0.5], &[0.25]), None);
    }
}
