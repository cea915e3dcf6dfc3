//! Cumulative distributions, drawn with letters for a terminal and as SVG for a page; lines over one quantity as SVG.

use crate::output::short;
use crate::sheet::escaped;
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

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
/// Left, top, right and bottom of the field.
const FIELD: [f64; 4] = [64.0, 48.0, 736.0, 400.0];
const DASHES: [&str; 6] = ["", "8 4", "2 3", "10 3 2 3", "4 2", "14 4"];
/// Colours on white and on black that people who confuse red and green can tell apart (Okabe & Ito).
const COLOURS: [(&str, &str); 6] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#00795c", "#2fd6a4"),
    ("#a8457f", "#e69fc8"),
    ("#7a6400", "#f0e442"),
    ("#333333", "#dddddd"),
];

/// The curves as a picture that stands by itself.
pub fn svg(curves: &[Curve], title: &str, axis: &str) -> String {
    let (low, high) = extent(curves);
    let [left, top, right, bottom] = FIELD;
    let x = |value: f64| left + (right - left) * ((value - low) / (high - low)).clamp(0.0, 1.0);
    let y = |share: f64| bottom - (bottom - top) * share;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Cumulative distributions of the {axis} on {title}\">\n{}",
        style()
    );
    let title = escaped(title);
    let _ = writeln!(out, "<rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>");
    let _ = writeln!(
        out,
        "<text class=\"title\" x=\"{left}\" y=\"28\">Share of the rows of {title} with a smaller margin</text>"
    );
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let at = y(share);
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{left} {at:.1}H{right}\"/>");
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{:.0} %</text>",
            left - 8.0,
            at + 4.0,
            100.0 * share
        );
    }
    for tick in ticks(low, high) {
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{:.1} {bottom}v5\"/>", x(tick));
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(tick),
            bottom + 20.0,
            tidy(tick)
        );
    }
    let _ = writeln!(out, "<path class=\"zero\" d=\"M{:.1} {top}V{bottom}\"/>", x(0.0));
    let _ = writeln!(
        out,
        "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
        right,
        bottom + 44.0,
        escaped(axis)
    );
    let _ = writeln!(out, "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">← wrong</text>", left, bottom + 44.0);
    for (number, curve) in curves.iter().enumerate() {
        let (class, dash) = (number % COLOURS.len(), DASHES[number % DASHES.len()]);
        let _ =
            writeln!(out, "<path class=\"curve c{class}\" stroke-dasharray=\"{dash}\" d=\"{}\"/>", path(curve, x, y));
    }
    for (number, Place { x, y, anchor }) in label_places(curves, x, y).into_iter().enumerate() {
        let class = number % COLOURS.len();
        let _ = writeln!(
            out,
            "<text class=\"label t{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(&curves[number].name)
        );
    }
    out + "</svg>\n"
}

/// A staircase through at most a few hundred quantiles.
fn path(curve: &Curve, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    const MOST: usize = 400;
    let steps = curve.sorted.len().min(MOST);
    let mut path = format!("M{:.1} {:.1}", FIELD[0], y(0.0));
    for step in 1..=steps {
        let share = step as f64 / steps as f64;
        let _ = write!(path, "H{:.1}V{:.1}", x(curve.quantile(share)), y(share));
    }
    let _ = write!(path, "H{:.1}", FIELD[2]);
    path
}

/// Where a curve's name stands, and which end of it.
struct Place {
    x: f64,
    y: f64,
    anchor: &'static str,
}

/// Beside the curves, at heights of their own so that names never meet: those of the curves to the left stand on the
/// left, where it is empty above, the others on the right.
fn label_places(curves: &[Curve], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> Vec<Place> {
    let mut order: Vec<usize> = (0..curves.len()).collect();
    order.sort_by(|&a, &b| curves[b].quantile(0.5).total_cmp(&curves[a].quantile(0.5)));
    let on_the_right = curves.len().div_ceil(2);
    let mut places: Vec<(usize, Place)> = Vec::new();
    for (rank, &number) in order.iter().enumerate() {
        let width = 8.5 * curves[number].name.chars().count() as f64;
        let right = rank < on_the_right;
        let share = match right {
            true => 0.1 + 0.5 * (rank as f64 + 0.5) / on_the_right as f64,
            false => 0.5 + 0.45 * ((rank - on_the_right) as f64 + 0.5) / (curves.len() - on_the_right) as f64,
        };
        // The names are as high as three hundredths of the field.
        let ends = |share: f64| curves.iter().map(move |c| c.quantile(share.clamp(0.0, 1.0)));
        let place = if right {
            let beside = x(ends(share + 0.03).fold(f64::NEG_INFINITY, f64::max)) + 10.0;
            Place { x: beside.min(FIELD[2] - width), y: y(share) + 4.0, anchor: "start" }
        } else {
            let beside = x(ends(share - 0.03).fold(f64::INFINITY, f64::min)) - 10.0;
            Place { x: beside.max(FIELD[0] + width), y: y(share) + 4.0, anchor: "end" }
        };
        places.push((number, place));
    }
    places.sort_by_key(|(number, _)| *number);
    places.into_iter().map(|(_, place)| place).collect()
}

/// One line of a picture.
pub struct Line {
    /// What it is called at its end.
    pub name: String,
    /// `x` and `y`, in the order of `x`.
    pub points: Vec<(f64, f64)>,
}

/// Room at the right for the names of lines.
const NAMES: f64 = 150.0;

/// From the smallest to the largest, with a little room; never empty.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let room = 0.05 * (high - low);
    if room > 0.0 {
        (low - room, high + room)
    } else if low.is_finite() {
        (low - 0.5, low + 0.5)
    } else {
        (0.0, 1.0)
    }
}

/// Lines over one quantity as a picture that stands by itself; over wide ranges of it the scale is logarithmic.
pub fn lines(lines: &[Line], title: &str, axis: &str) -> String {
    let [left, top, right, bottom] = FIELD;
    let right = right - NAMES;
    let all = || lines.iter().flat_map(|line| line.points.iter().copied());
    let positive = all().all(|(x, _)| x > 0.0);
    let (least, most) = all().fold((f64::INFINITY, 0.0f64), |(least, most), (x, _)| (least.min(x), most.max(x)));
    let logarithmic = positive && most > 20.0 * least;
    let place = |x: f64| if logarithmic { x.log2() } else { x };
    let (low, high) = range(all().map(|(x, _)| place(x)));
    let (bad, good) = range(all().map(|(_, y)| y));
    let at_x = |x: f64| left + (right - left) * (place(x) - low) / (high - low);
    let at_y = |y: f64| bottom - (bottom - top) * (y - bad) / (good - bad);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{} over {}\">\n{}<rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{left}\" y=\"28\">{} over {}</text>\n",
        escaped(title),
        escaped(axis),
        style(),
        escaped(title),
        escaped(axis)
    );
    for tick in ticks(bad, good) {
        let y = at_y(tick);
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{left} {y:.1}H{right}\"/>");
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 8.0,
            y + 4.0,
            tidy(tick)
        );
    }
    let marks = ticks(low, high).into_iter().filter(|tick| !logarithmic || tick.fract() == 0.0);
    for tick in marks {
        let x = left + (right - left) * (tick - low) / (high - low);
        let text = if logarithmic { format!("2^{}", tidy(tick)) } else { tidy(tick) };
        let _ = writeln!(
            out,
            "<text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            bottom + 20.0
        );
    }
    for (number, line) in lines.iter().enumerate() {
        let (class, dash) = (number % COLOURS.len(), DASHES[number % DASHES.len()]);
        let seen = || line.points.iter().filter(|(_, y)| y.is_finite());
        let path: Vec<String> = seen().map(|(x, y)| format!("{:.1} {:.1}", at_x(*x), at_y(*y))).collect();
        let _ = writeln!(out, "<path class=\"curve c{class}\" stroke-dasharray=\"{dash}\" d=\"M{}\"/>", path.join("L"));
        for (x, y) in seen() {
            let _ = writeln!(out, "<circle class=\"t{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", at_x(*x), at_y(*y));
        }
    }
    let ends: Vec<f64> = lines.iter().map(|l| l.points.last().map_or(bottom, |(_, y)| at_y(*y))).collect();
    for (number, y) in apart(&ends).into_iter().enumerate() {
        let class = number % COLOURS.len();
        let _ = writeln!(
            out,
            "<text class=\"label t{class}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            right + 8.0,
            y + 4.0,
            escaped(&lines[number].name)
        );
    }
    out + "</svg>\n"
}

/// Heights near these that leave room for a line of text each.
fn apart(heights: &[f64]) -> Vec<f64> {
    const TEXT: f64 = 16.0;
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let mut places = heights.to_vec();
    for pair in order.windows(2) {
        places[pair[1]] = places[pair[1]].max(places[pair[0]] + TEXT);
    }
    let excess = order.last().map_or(0.0, |&last| (places[last] - FIELD[3]).max(0.0));
    places.iter().map(|place| place - excess).collect()
}

/// Up to eight round numbers inside the range.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let (first, last) = ((low / step).ceil() as i64, (high / step).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A tick as it is written: no digits that rounding put there.
fn tidy(tick: f64) -> String {
    let rounded: f64 = format!("{tick:.6e}").parse().unwrap_or(tick);
    if rounded == 0.0 { "0".into() } else { rounded.to_string() }
}

fn style() -> String {
    let rules = |dark: bool| -> String {
        let colour = |&(light, night): &(&'static str, &'static str)| if dark { night } else { light };
        let each = COLOURS.iter().map(colour).enumerate();
        each.map(|(n, c)| format!(".c{n}{{stroke:{c}}}.t{n}{{fill:{c}}}")).collect()
    };
    format!(
        "<style>\ntext{{font:13px system-ui,sans-serif;fill:#222}}.title{{font-weight:600;font-size:15px}}\
         .tick{{fill:#555;font-size:12px}}.page{{fill:#fff}}.grid{{stroke:#ddd;fill:none}}\
         .zero{{stroke:#888;stroke-dasharray:1 3;fill:none}}.curve{{fill:none;stroke-width:2}}\
         .label{{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}}\n{}\n\
         @media (prefers-color-scheme:dark){{text{{fill:#eee}}.tick{{fill:#aaa}}.page{{fill:#16181d}}\
         .grid{{stroke:#333}}.label{{stroke:#16181d}}{}}}\n</style>\n",
        rules(false),
        rules(true)
    )
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
        let picture = svg(&curves(), "x<y", "margin");
        assert!(picture.contains("one &lt;&amp;&gt; &quot;two&quot;") && picture.contains("x&lt;y"));
        assert_eq!(picture.matches("class=\"curve").count(), 2);
        assert!(!picture.contains("NaN") && !picture.contains("inf"));
    }

    #[test]
    fn one_value_is_enough() {
        for value in [0.0, 3.0, -2.0] {
            let curve = || vec![Curve { name: "m".into(), sorted: vec![value] }];
            assert!(text(&curve()).contains('a'));
            assert!(!svg(&curve(), "", "margin").contains("NaN"));
        }
    }

    #[test]
    fn lines_are_drawn() {
        let line = |name: &str, shift: f64| Line {
            name: name.into(),
            points: (0..8).map(|i| (f64::from(1 << i), 0.8 + shift + 0.01 * f64::from(i))).collect(),
        };
        let picture = lines(&[line("odm", 0.0), line("svm", 0.001)], "Accuracy", "c");
        assert_eq!(picture.matches("class=\"curve").count(), 2);
        assert!(picture.contains(">odm<") && picture.contains("2^4") && !picture.contains("NaN"), "{picture}");
        let lonely = Line { name: "one".into(), points: vec![(2.0, 0.5)] };
        assert!(!lines(&[lonely], "Accuracy", "c").contains("NaN"));
        let places = apart(&[100.0, 101.0, 400.0, 399.0]);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|p| p[1] - p[0] >= 15.9) && sorted[3] <= FIELD[3] + 1e-9, "{places:?}");
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            ticks(-0.31, 1.0).into_iter().map(tidy).collect::<Vec<_>>(),
            ["-0.2", "0", "0.2", "0.4", "0.6", "0.8", "1"]
        );
        assert_eq!(tidy(0.1 + 0.2), "0.3");
    }
}
