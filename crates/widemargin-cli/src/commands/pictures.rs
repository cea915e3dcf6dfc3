//! Cumulative distributions drawn with letters, for a terminal.

use crate::output::short;
use std::fmt::Write;

/// One distribution.
pub struct Curve {
    /// What it is called beside the curve.
    pub name: String,
    /// The values, ascending; at least one.
    pub sorted: Vec<f64>,
}

impl Curve {
    /// The share of the values at or below `x`.
    fn share(&self, x: f64) -> f64 {
        self.sorted.partition_point(|v| *v <= x) as f64 / self.sorted.len() as f64
    }

    /// The smallest value with at least this share at or below.
    fn quantile(&self, share: f64) -> f64 {
        let at = (share * self.sorted.len() as f64).ceil() as usize;
        self.sorted[at.clamp(1, self.sorted.len()) - 1]
    }
}

/// From where to where the drawing goes: all but a few far values, and zero.
fn extent(curves: &[Curve]) -> (f64, f64) {
    let low = curves.iter().map(|c| c.quantile(0.005)).fold(0.0, f64::min);
    let high = curves.iter().map(|c| c.quantile(0.995)).fold(0.0, f64::max);
    let room = 0.04 * (high - low);
    if room > 0.0 { (low - room, high + room) } else { (-1.0, 1.0) }
}

/// The curves with letters, on a field of fixed size, and what the letters mean.
pub fn text(curves: &[Curve]) -> String {
    const COLUMNS: usize = 66;
    const LINES: usize = 17;
    let (low, high) = extent(curves);
    let at = |column: usize| low + (high - low) * column as f64 / (COLUMNS - 1) as f64;
    let zero = ((-low) / (high - low) * (COLUMNS - 1) as f64).round() as usize;
    let mut field = vec![vec![' '; COLUMNS]; LINES];
    field.iter_mut().for_each(|line| line[zero] = '·');
    let line_of = |share: f64| ((1.0 - share) * (LINES - 1) as f64).round() as usize;
    for (letter, curve) in letters().zip(curves) {
        let mut before = line_of(curve.share(at(0)));
        for column in 0..COLUMNS {
            let line = line_of(curve.share(at(column)));
            // A steep stretch is drawn whole.
            for place in &mut field[line..=before.max(line)] {
                let free = matches!(place[column], ' ' | '·');
                place[column] = if free { letter } else { '*' };
            }
            before = line.saturating_sub(1);
        }
    }
    let mut drawing = String::new();
    for (number, line) in field.iter().enumerate() {
        let mark = if number % 4 == 0 { format!("{:3} %", 100 - number * 100 / (LINES - 1)) } else { String::new() };
        let text: String = line.iter().collect();
        let _ = writeln!(drawing, "{mark:>5} │{}", text.trim_end());
    }
    let ruler: String = (0..COLUMNS).map(|column| if column == zero { '┴' } else { '─' }).collect();
    let _ = writeln!(drawing, "{:>5} └{ruler}", "");
    let (left, right) = (short(low), short(high));
    let middle = format!("{:>width$}", "0", width = (zero + 1).saturating_sub(left.len()));
    let rest = COLUMNS.saturating_sub(left.len() + middle.len());
    let _ = writeln!(drawing, "{:>6} {left}{middle}{right:>rest$}", "");
    for (letter, curve) in letters().zip(curves) {
        let _ = writeln!(drawing, "{letter:>7} {}", curve.name);
    }
    if curves.len() > 1 {
        let _ = writeln!(drawing, "      * several");
    }
    drawing
}

fn letters() -> impl Iterator<Item = char> {
    ('a'..='z').chain(std::iter::repeat('?'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curves() -> Vec<Curve> {
        let values = |shift: f64| (0..100).map(|i| shift + f64::from(i) / 50.0 - 0.3).collect();
        vec![
            Curve { name: "one <&> \"two\"".into(), sorted: values(0.0) },
            Curve { name: "b".into(), sorted: values(0.2) },
        ]
    }

    #[test]
    fn shares_and_quantiles() {
        let curve = Curve { name: String::new(), sorted: vec![1.0, 2.0, 2.0, 4.0] };
        assert_eq!([curve.share(0.5), curve.share(2.0), curve.share(9.0)], [0.0, 0.75, 1.0]);
        assert_eq!([curve.quantile(0.0), curve.quantile(0.5), curve.quantile(1.0)], [1.0, 2.0, 4.0]);
    }

    #[test]
    fn drawings_hold_every_curve() {
        let drawing = text(&curves());
        assert!(drawing.contains('a') && drawing.contains("b b") && drawing.contains("100 %"), "{drawing}");
        assert!(drawing.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn one_value_is_enough() {
        for value in [0.0, 3.0, -2.0] {
            let curve = || vec![Curve { name: "m".into(), sorted: vec![value] }];
            assert!(text(&curve()).contains('a'));
        }
    }
}
