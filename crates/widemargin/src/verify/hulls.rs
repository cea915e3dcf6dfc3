//! Machines about the convex hulls of the two classes, whose dual point is a weight `γ_i ≥ 0` of every row.
//!
//! KM-OMD, `γ` a distribution over each class, `w = Σ γ_i y_i φ(x_i)`:
//!
//! ```text
//! F(γ) = (1−λ)‖w‖² + λ Σ γ_i²/s_i
//! ```
//!
//! Whatever `f(x) = w·φ(x)` is written, `‖w'‖² ≥ 2 w·w' − ‖w‖²`, so that with `a_i = (1−λ) y_i f(x_i)` the optimum is at least
//! `Σ_± min [Σ 2 a_i γ'_i + λ γ'_i²/s_i] − (1−λ)‖w‖²`, each minimum over a distribution, and for any `μ` at least
//! `2μ − Σ s_i max(0, μ − a_i)²/λ` (Lagrange). By Cauchy and Schwarz it is also at least `(min₊ h + min₋ h)²/F`,
//! `h_i = a_i + λ γ_i/s_i`.
//!
//! FMM, `γ` a distribution over all rows: no unit vector has a smallest margin above `‖Σ γ_i y_i φ(x_i)‖`, and the model reaches
//! `min_i y_i f(x_i)/‖w‖`.

use super::space::Rounded;
use super::sum::sum;

/// What a model claims was rounded by another way of computing, whose sums are not compensated: it may be off several times as far as
/// this one.
const OTHER_WAY: f64 = 4.0;

/// Two ends of an interval, and how far rounding may have put them off.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// The upper end.
    pub high: f64,
    /// The lower end.
    pub low: f64,
    /// How far off either may be.
    pub rounding: f64,
}

/// Whether these are distributions over each class, or over all rows if `each` is not asked for.
pub fn are_distributions(gamma: &[f64], y: &[f64], each: bool) -> bool {
    let total = |sign: f64| sum(gamma.iter().zip(y).filter(|(_, y)| **y == sign).map(|(g, _)| *g));
    let near_one = |total: f64| (total - 1.0).abs() <= 1e-9;
    let whole = if each { near_one(total(1.0)) && near_one(total(-1.0)) } else { total(1.0) + total(-1.0) > 0.0 };
    whole && gamma.iter().all(|g| *g >= 0.0)
}

/// The optimum of KM-OMD lies between these: `hull2 = ‖Σ γ_i y_i φ(x_i)‖²`, `norm2 = ‖w‖²` and `f` of what is written.
pub fn nearest_points(
    lambda: f64,
    gamma: &[f64],
    y: &[f64],
    s: &[f64],
    f: &[Rounded],
    hull2: Rounded,
    norm2: f64,
) -> Interval {
    let rest = 1.0 - lambda;
    let spread = sum(gamma.iter().zip(s).map(|(g, s)| g * g / s));
    let high = rest * hull2.value + lambda * spread;
    let worst = f.iter().fold(0.0, |most: f64, f| most.max(f.error));
    let rounding = OTHER_WAY * rest * (hull2.error + 8.0 * worst);
    let a: Vec<f64> = f.iter().zip(y).map(|(f, y)| rest * y * f.value).collect();
    let of = |sign: f64| (0..y.len()).filter(move |&i| y[i] == sign);
    let least = |sign: f64| of(sign).map(|i| a[i] + lambda * gamma[i] / s[i]).fold(f64::INFINITY, f64::min);
    let reach = (least(1.0) + least(-1.0)).max(0.0);
    let own = rest * norm2 + lambda * spread;
    let tangent = |sign: f64| {
        let class: Vec<(f64, f64)> = of(sign).map(|i| (a[i], s[i])).collect();
        least_over_distributions(lambda, &class)
    };
    let by_reach = if reach > 0.0 { reach * reach / own } else { 0.0 };
    let low = by_reach.max(tangent(1.0) + tangent(-1.0) - rest * norm2);
    Interval { high, low, rounding }
}

/// `max_μ 2μ − Σ s_i max(0, μ − a_i)²/λ`, by halving; `2 min a_i` for `λ = 0`.
fn least_over_distributions(lambda: f64, class: &[(f64, f64)]) -> f64 {
    let lowest = class.iter().fold(f64::INFINITY, |least, (a, _)| least.min(*a));
    if lambda == 0.0 {
        return 2.0 * lowest;
    }
    let taken = |mu: f64| sum(class.iter().map(|(a, s)| s * (mu - a).max(0.0) / lambda));
    let (mut below, mut width) = (lowest, lambda / class.iter().fold(f64::INFINITY, |least, (_, s)| least.min(*s)));
    // `taken(lowest + width) ≥ 1` once `width` is `λ` over the weight of the lowest row.
    while width > f64::EPSILON * f64::EPSILON * (below.abs() + width) && below + width > below {
        width *= 0.5;
        if taken(below + width) < 1.0 {
            below += width;
        }
    }
    2.0 * below - sum(class.iter().map(|(a, s)| s * (below - a).max(0.0).powi(2) / lambda))
}

/// The largest smallest margin lies between these.
pub fn smallest_margin(gamma: &[f64], margins: &[Rounded], hull2: Rounded, norm2: Rounded) -> Interval {
    let total = sum(gamma.iter().copied());
    let high = hull2.value.sqrt() / total;
    // Near zero the error is the square of that of a length.
    let off = (hull2.error / (2.0 * high * total * total)).min(hull2.error.sqrt() / total);
    let least = margins.iter().min_by(|a, b| a.value.total_cmp(&b.value));
    let (low, error) = match least.filter(|_| norm2.value > 0.0) {
        Some(least) => {
            let length = norm2.value.sqrt();
            let (low, part) = (least.value / length, norm2.error / (2.0 * norm2.value));
            (low, least.error / length + low.abs() * part)
        }
        None => (0.0, 0.0),
    };
    Interval { high, low, rounding: OTHER_WAY * (off + error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(values: &[f64]) -> Vec<Rounded> {
        values.iter().map(|&value| Rounded { value, error: 0.0 }).collect()
    }

    #[test]
    fn a_minimum_over_distributions_is_that_of_a_fine_search() {
        for (lambda, class) in [(0.3, vec![(1.0, 1.0), (1.2, 2.0), (4.0, 0.5)]), (1.0, vec![(-2.0, 3.0), (-2.0, 1.0)])]
        {
            let found = least_over_distributions(lambda, &class);
            let value =
                |g: &[f64]| -> f64 { class.iter().zip(g).map(|((a, s), g)| 2.0 * a * g + lambda * g * g / s).sum() };
            let mut best = f64::INFINITY;
            for i in 0..=400 {
                for j in 0..=400 - i {
                    let (p, q) = (i as f64 / 400.0, j as f64 / 400.0);
                    let g = if class.len() == 3 { vec![p, q, 1.0 - p - q] } else { vec![p, 1.0 - p] };
                    best = best.min(value(&g));
                }
            }
            assert!(found <= best + 1e-12 && found >= best - 1e-4, "{found} {best}");
        }
        assert_eq!(least_over_distributions(0.0, &[(3.0, 1.0), (2.0, 1.0)]), 4.0);
    }

    /// One row of each class, at 1 and -3 on a line: everything is known.
    #[test]
    fn two_points_have_one_answer() {
        let (y, s, gamma) = ([1.0, -1.0], [1.0, 1.0], [1.0, 1.0]);
        let hull2 = Rounded { value: 16.0, error: 1e-15 };
        // w = 1 + 3 = 4, f = 4 and -12.
        let found = nearest_points(0.25, &gamma, &y, &s, &exact(&[4.0, -12.0]), hull2, 16.0);
        assert!((found.high - (0.75 * 16.0 + 0.25 * 2.0)).abs() < 1e-12 && (found.high - found.low).abs() < 1e-12);
        // No distribution of another shape lies below a worse score function's bound.
        let worse = nearest_points(0.25, &gamma, &y, &s, &exact(&[3.0, -9.0]), hull2, 9.0);
        assert!(worse.low < found.high && worse.high == found.high);
        // Through the origin, the best unit vector has the margins 1 and 3.
        let found = smallest_margin(
            &[1.0, 0.0],
            &exact(&[1.0, 3.0]),
            Rounded { value: 1.0, error: 1e-16 },
            Rounded { value: 1.0, error: 0.0 },
        );
        assert_eq!((found.high, found.low), (1.0, 1.0));
        assert!(!are_distributions(&[0.5, 1.0], &y, true) && are_distributions(&gamma, &y, true));
        assert!(!are_distributions(&[-0.5, 1.5], &y, false) && are_distributions(&[0.5, 0.0], &y, false));
    }
}
