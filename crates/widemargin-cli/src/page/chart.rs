//! Every picture: lines, staircases and clouds of rows over two axes, figures of many runs side by side, maps of two parameters, average ranks.
//!
//! Pictures are SVG, written by hand. Series are told apart by colour, dash and name; the classes `s0` to `s7` are dressed by
//! [`STYLE`], in light, in dark and in print. What a reader may ask of a picture is in it as data: `data-plot` for
//! the values under the pointer, `data-tip` for what one mark says.

use crate::sheet::escaped;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Colours (Okabe & Ito, darkened or lightened to stand out from the ground), dashes, and what pictures share. The same on a page and
/// in a picture that stands by itself.
pub const STYLE: &str = include_str!("chart.css");

const WIDTH: f64 = 720.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = WIDTH - 20.0;
/// How high the field of a plot is.
const FIELD: f64 = 300.0;
/// Series beyond these share colours and dashes again.
const KINDS: usize = 8;

/// How the numbers along an axis are meant.
#[derive(Clone, Copy, PartialEq)]
pub enum Unit {
    /// As they are.
    Plain,
    /// Shares of one, written in percent.
    Percent,
    /// On a logarithmic scale, with powers of two marked.
    Powers,
}

impl Unit {
    /// [`Unit::Powers`] for positive values that span more than a factor of 20.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (low, high) = values.clone().fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
        if low > 0.0 && high > 20.0 * low { Self::Powers } else { Self::Plain }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Percent => "percent",
            Self::Powers => "powers",
        }
    }
}

/// One axis.
#[derive(Clone)]
pub struct Axis {
    /// What it measures, with the unit.
    pub title: String,
    /// How its numbers are meant.
    pub unit: Unit,
    /// From where to where; `None`: as far as the values go.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// An axis as long as its values.
    pub fn new(title: impl Into<String>, unit: Unit) -> Self {
        Self { title: title.into(), unit, range: None }
    }

    /// Shares from 0 to 100 %.
    pub fn share(title: impl Into<String>) -> Self {
        Self { title: title.into(), unit: Unit::Percent, range: Some((0.0, 1.0)) }
    }

    fn scale(&self, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let mut scale = Scale { low: 0.0, high: 1.0, from, to, unit: self.unit };
        (scale.low, scale.high) = self.range.unwrap_or_else(|| extent(values.map(|v| scale.place(v))));
        scale
    }
}

/// From the smallest to the largest, with a little room; never empty.
fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    let room = 0.04 * (high - low);
    if room > 0.0 {
        (low - room, high + room)
    } else if low.is_finite() {
        (low - 0.5, low + 0.5)
    } else {
        (0.0, 1.0)
    }
}

/// Where values stand.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    unit: Unit,
}

impl Scale {
    fn place(&self, value: f64) -> f64 {
        if self.unit == Unit::Powers { value.log2() } else { value }
    }

    fn at(&self, value: f64) -> f64 {
        self.on_the_scale(self.place(value))
    }

    fn on_the_scale(&self, place: f64) -> f64 {
        self.from + (self.to - self.from) * (place - self.low) / (self.high - self.low)
    }

    /// Marks: where they stand and what is written there.
    fn ticks(&self) -> Vec<(f64, String)> {
        let word = |tick: f64| match self.unit {
            Unit::Plain => tidy(tick),
            Unit::Percent => format!("{} %", tidy(100.0 * tick)),
            // As tables write them, where that is short.
            Unit::Powers if self.low >= -5.0 && self.high <= 17.0 => tidy(tick.exp2()),
            Unit::Powers => format!("2^{}", tidy(tick)),
        };
        let whole = |tick: &f64| self.unit != Unit::Powers || tick.fract() == 0.0;
        ticks(self.low, self.high).into_iter().filter(whole).map(|t| (self.on_the_scale(t), word(t))).collect()
    }

    fn data(&self, title: &str) -> Value {
        json!({"low": self.low, "high": self.high, "from": self.from, "to": self.to, "unit": self.unit.word(), "title": title})
    }
}

/// Up to eight round numbers inside the range.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 8.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|i| i as f64 * step).collect()
}

/// A tick as it is written: no digits that rounding put there.
fn tidy(tick: f64) -> String {
    let rounded: f64 = format!("{tick:.6e}").parse().unwrap_or(tick);
    if rounded == 0.0 { "0".into() } else { rounded.to_string() }
}

/// One point of a series.
#[derive(Clone, Copy)]
pub struct Point {
    /// Along the axis below.
    pub x: f64,
    /// Along the axis at the left.
    pub y: f64,
    /// From where to where `y` may be, if that is known.
    pub spread: Option<(f64, f64)>,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    /// By straight lines, with a mark at each.
    Line,
    /// By a staircase that rises at each: a distribution.
    Steps,
}

/// One curve.
pub struct Series {
    /// What it is called.
    pub name: String,
    /// How its points are joined.
    pub shape: Shape,
    /// The points, in the order of `x`.
    pub points: Vec<Point>,
}

impl Series {
    /// The cumulative distribution of values in ascending order, in at most so many steps.
    pub fn distribution(name: impl Into<String>, sorted: &[f64], most: usize) -> Self {
        let steps = sorted.len().min(most.max(2));
        let step = |k: usize| {
            let share = k as f64 / steps as f64;
            let at = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            Point { x: sorted[at - 1], y: share, spread: None }
        };
        Self { name: name.into(), shape: Shape::Steps, points: (1..=steps).map(step).collect() }
    }

    fn data(&self) -> Value {
        match self.shape {
            Shape::Steps => {
                json!({"name": self.name, "steps": self.points.iter().map(|p| digits(p.x)).collect::<Vec<_>>()})
            }
            Shape::Line => {
                let point = |p: &Point| match p.spread {
                    Some((low, high)) => json!([digits(p.x), digits(p.y), digits(low), digits(high)]),
                    None => json!([digits(p.x), digits(p.y)]),
                };
                json!({"name": self.name, "points": self.points.iter().map(point).collect::<Vec<_>>()})
            }
        }
    }
}

/// Five digits: a page need not carry more than it can show.
fn digits(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Curves over two axes.
pub struct Plot {
    /// What is drawn, with the data set.
    pub title: String,
    /// The axis below.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
    /// A line to compare with.
    pub guide: Guide,
}

/// A line to compare with.
#[derive(Clone, Copy, PartialEq)]
pub enum Guide {
    /// None.
    Nothing,
    /// Upright at zero.
    Zero,
    /// From corner to corner, where `y = x`.
    Diagonal,
}

impl Plot {
    /// The picture, to stand on a page.
    pub fn svg(&self) -> String {
        let (legend, top) = legend(&self.series);
        let bottom = top + FIELD;
        let points = || self.series.iter().flat_map(|s| &s.points);
        let zero = (self.guide == Guide::Zero).then_some(0.0);
        let x = self.x.scale(points().map(|p| p.x).chain(zero), LEFT, RIGHT);
        let spread = points().filter_map(|p| p.spread).flat_map(|(low, high)| [low, high]);
        let y = self.y.scale(points().map(|p| p.y).chain(spread), bottom, top);
        let mut out = open(&self.title, bottom + 52.0, Some(&self.data(&x, &y, top, bottom)));
        out += &legend;
        out += &self.axes(&x, &y, top, bottom);
        for (number, series) in self.series.iter().enumerate().filter(|(_, series)| !series.points.is_empty()) {
            let _ = writeln!(out, "<g class=\"s{}\" data-series=\"{number}\">", number % KINDS);
            match series.shape {
                Shape::Steps => staircase(&mut out, series, &x, &y),
                Shape::Line => polyline(&mut out, series, &x, &y),
            }
            out += "</g>\n";
        }
        let _ = writeln!(out, "<path class=\"cross\" d=\"M0 {top}V{bottom}\" visibility=\"hidden\"/>");
        out + "</svg>\n"
    }

    fn data(&self, x: &Scale, y: &Scale, top: f64, bottom: f64) -> String {
        let series: Vec<Value> = self.series.iter().map(Series::data).collect();
        let plot = json!({"x": x.data(&self.x.title), "y": y.data(&self.y.title), "top": top, "bottom": bottom, "series": series});
        plot.to_string()
    }

    fn axes(&self, x: &Scale, y: &Scale, top: f64, bottom: f64) -> String {
        let mut out = String::new();
        for (at, word) in y.ticks() {
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>");
            let _ =
                writeln!(out, "<text class=\"tick end\" x=\"{:.1}\" y=\"{:.1}\">{word}</text>", LEFT - 8.0, at + 4.0);
        }
        for (at, word) in x.ticks() {
            let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} {bottom}v5\"/>");
            let _ = writeln!(out, "<text class=\"tick middle\" x=\"{at:.1}\" y=\"{:.1}\">{word}</text>", bottom + 20.0);
        }
        let _ = writeln!(
            out,
            "<text class=\"axis middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            (LEFT + RIGHT) / 2.0,
            bottom + 42.0,
            escaped(&self.x.title)
        );
        let middle = (top + bottom) / 2.0;
        let _ = writeln!(
            out,
            "<text class=\"axis middle\" x=\"16\" y=\"{middle:.1}\" transform=\"rotate(-90 16 {middle:.1})\">{}</text>",
            escaped(&self.y.title)
        );
        match self.guide {
            Guide::Nothing => {}
            Guide::Zero => {
                let _ = writeln!(out, "<path class=\"guide\" d=\"M{:.1} {top}V{bottom}\"/>", x.at(0.0));
            }
            Guide::Diagonal => {
                let _ = writeln!(out, "<path class=\"guide\" d=\"M{LEFT} {bottom}L{RIGHT} {top}\"/>");
            }
        }
        out
    }
}

fn staircase(out: &mut String, series: &Series, x: &Scale, y: &Scale) {
    let _ = write!(out, "<path class=\"curve\" d=\"M{LEFT} {:.1}", y.at(0.0));
    for point in &series.points {
        let _ = write!(out, "H{:.1}V{:.1}", x.at(point.x), y.at(point.y));
    }
    let _ = writeln!(out, "H{RIGHT}\"/>");
}

fn polyline(out: &mut String, series: &Series, x: &Scale, y: &Scale) {
    let seen = || series.points.iter().filter(|p| p.y.is_finite());
    let place = |at: f64, value: f64| format!("{:.1} {:.1}", x.at(at), y.at(value));
    let known: Vec<(f64, (f64, f64))> = seen().filter_map(|p| Some((p.x, p.spread?))).collect();
    if known.len() > 1 {
        let below = known.iter().map(|(at, (low, _))| place(*at, *low));
        let above = known.iter().rev().map(|(at, (_, high))| place(*at, *high));
        let _ = writeln!(out, "<path class=\"band\" d=\"M{}Z\"/>", below.chain(above).collect::<Vec<_>>().join("L"));
    }
    for (at, (low, high)) in &known {
        let _ = writeln!(out, "<path class=\"whisker\" d=\"M{:.1} {:.1}V{:.1}\"/>", x.at(*at), y.at(*low), y.at(*high));
    }
    let path: Vec<String> = seen().map(|p| place(p.x, p.y)).collect();
    let _ = writeln!(out, "<path class=\"curve\" d=\"M{}\"/>", path.join("L"));
    if path.len() <= 60 {
        for point in seen() {
            let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"/>", x.at(point.x), y.at(point.y));
        }
    }
}

/// A row that stands out, and what it says in words.
pub struct Mark {
    /// Along the axis below and the axis at the left.
    pub place: (f64, f64),
    /// What it says.
    pub tip: String,
}

/// All rows over two axes, a dot each, with some of them marked.
pub struct Cloud {
    /// What is drawn, with the data set.
    pub title: String,
    /// The axis below.
    pub x: Axis,
    /// The axis at the left.
    pub y: Axis,
    /// What the dots are, and where.
    pub dots: (String, Vec<(f64, f64)>),
    /// What the marks are, in the order in which the arrow keys visit them.
    pub marks: (String, Vec<Mark>),
}

/// Beyond so many, dots that a reader could not tell apart are drawn once: a page stays below two megabytes.
const MOST_DOTS: usize = 40_000;

impl Cloud {
    /// The picture, to stand on a page.
    pub fn svg(&self) -> String {
        let (legend, top) = self.legend();
        let bottom = top + FIELD;
        let finite = |place: &(f64, f64)| place.0.is_finite() && place.1.is_finite();
        let dots: Vec<(f64, f64)> = self.dots.1.iter().copied().filter(finite).collect();
        let marks: Vec<&Mark> = self.marks.1.iter().filter(|mark| finite(&mark.place)).collect();
        let places = || dots.iter().copied().chain(marks.iter().map(|mark| mark.place));
        let x = self.x.scale(places().map(|p| p.0).chain([0.0]), LEFT, RIGHT);
        let y = self.y.scale(places().map(|p| p.1), bottom, top);
        let (across, up) = (self.x.clone(), self.y.clone());
        let frame = Plot { title: String::new(), x: across, y: up, series: Vec::new(), guide: Guide::Zero };
        let mut out = open(&self.title, bottom + 52.0, None) + &legend + &frame.axes(&x, &y, top, bottom);
        let grain = if dots.len() > MOST_DOTS { 2.0 } else { 0.5 };
        let on_grid = |place: f64| (place / grain).round() as i64;
        let drawn: BTreeSet<(i64, i64)> = dots.iter().map(|p| (on_grid(x.at(p.0)), on_grid(y.at(p.1)))).collect();
        out += "<path class=\"s0 dots\" d=\"";
        for (at, high) in drawn {
            let _ = write!(out, "M{} {}h0", at as f64 * grain, high as f64 * grain);
        }
        out += "\"/>\n";
        for mark in marks {
            let _ = writeln!(
                out,
                "<g class=\"s1 mark\" data-tip=\"{}\">{}</g>",
                escaped(&mark.tip),
                diamond(x.at(mark.place.0), y.at(mark.place.1))
            );
        }
        out + "</svg>\n"
    }

    /// What dots and marks are, and where the rest may begin.
    fn legend(&self) -> (String, f64) {
        let (y, second) = (44.0, 12.0 + 20.0 + width(&self.dots.0) + 18.0);
        let drawn = format!(
            "<path class=\"s0 dots\" d=\"M18 {0}h0\"/><text class=\"name\" x=\"32\" y=\"{y}\">{1}</text>\n\
             <g class=\"s1\">{2}</g><text class=\"name\" x=\"{3:.1}\" y=\"{y}\">{4}</text>\n",
            y - 4.0,
            escaped(&self.dots.0),
            diamond(second + 6.0, y - 4.0),
            second + 20.0,
            escaped(&self.marks.0)
        );
        (drawn, y + 18.0)
    }
}

/// A mark that differs from a dot in shape, not in colour alone.
fn diamond(x: f64, y: f64) -> String {
    format!("<path class=\"diamond\" d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5Z\"/>", y - 5.0)
}

/// The start of a picture: its size, its name for those who do not see it, and its title.
fn open(title: &str, height: f64, plot: Option<&str>) -> String {
    let title = escaped(title);
    let plot = plot.map_or(String::new(), |plot| format!(" data-plot=\"{}\"", escaped(plot)));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
         aria-label=\"{title}\"{plot}>\n<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height:.0}\"/>\n\
         <text class=\"title\" x=\"12\" y=\"22\">{title}</text>\n"
    )
}

/// About how wide a text is, in the size of names.
fn width(text: &str) -> f64 {
    7.6 * text.chars().count() as f64
}

/// The names of the series with a piece of their line, in as many rows as they need; and where the rest may begin.
fn legend(series: &[Series]) -> (String, f64) {
    let (mut out, mut x, mut y) = (String::new(), 12.0, 44.0);
    for (number, one) in series.iter().enumerate().filter(|(_, one)| !one.points.is_empty()) {
        let wide = 34.0 + width(&one.name) + 18.0;
        if x > 12.0 && x + wide > RIGHT {
            (x, y) = (12.0, y + 20.0);
        }
        let _ = writeln!(
            out,
            "<g class=\"s{}\" data-series=\"{number}\"><path class=\"curve\" d=\"M{x:.1} {:.1}h28\"/>\
             <text class=\"name\" x=\"{:.1}\" y=\"{y:.1}\">{}</text></g>",
            number % KINDS,
            y - 4.0,
            x + 34.0,
            escaped(&one.name)
        );
        x += wide;
    }
    (out, y + 18.0)
}

/// The figures of many runs of one thing.
pub struct Strip {
    /// Strips with the same heading stand together.
    pub heading: String,
    /// What it is called.
    pub name: String,
    /// Which series it belongs to.
    pub series: usize,
    /// One figure a run.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// What it says in words.
    pub tip: String,
}

/// A dot a run, a line for mean ± deviation, side by side.
pub fn strips(title: &str, axis: &Axis, strips: &[Strip]) -> String {
    const ROW: f64 = 20.0;
    let left = strips.iter().map(|s| width(&s.name)).fold(80.0, f64::max).min(300.0) + 24.0;
    let values =
        strips.iter().flat_map(|s| s.values.iter().copied().chain([s.mean - s.deviation, s.mean + s.deviation]));
    let x = axis.scale(values, left, RIGHT);
    let (mut rows, mut y, mut heading) = (String::new(), 40.0, "");
    for strip in strips {
        if strip.heading != heading {
            heading = &strip.heading;
            y += 24.0;
            let _ = writeln!(rows, "<text class=\"name\" x=\"12\" y=\"{:.1}\">{}</text>", y + 4.0, escaped(heading));
        }
        y += ROW;
        let _ = writeln!(
            rows,
            "<g class=\"s{} mark\" data-series=\"{}\" data-tip=\"{}\"><rect class=\"catch\" x=\"0\" y=\"{:.1}\" width=\"{WIDTH}\" \
             height=\"{ROW}\"/><text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            strip.series % KINDS,
            strip.series,
            escaped(&strip.tip),
            y - ROW / 2.0,
            left - 12.0,
            y + 4.0,
            escaped(&strip.name)
        );
        for value in strip.values.iter().filter(|v| v.is_finite()) {
            let _ = writeln!(rows, "<circle class=\"run\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"3\"/>", x.at(*value));
        }
        let (low, high) = (x.at(strip.mean - strip.deviation), x.at(strip.mean + strip.deviation));
        if low.is_finite() && high.is_finite() {
            let _ = writeln!(
                rows,
                "<path class=\"whisker\" d=\"M{low:.1} {y:.1}H{high:.1}\"/><path class=\"mean\" d=\"M{:.1} {:.1}v12\"/>",
                x.at(strip.mean),
                y - 6.0
            );
        }
        rows += "</g>\n";
    }
    let bottom = y + 16.0;
    let mut out = open(title, bottom + 52.0, None);
    for (at, word) in x.ticks() {
        let _ = writeln!(out, "<path class=\"grid\" d=\"M{at:.1} 36V{bottom:.1}\"/>");
        let _ = writeln!(out, "<text class=\"tick middle\" x=\"{at:.1}\" y=\"{:.1}\">{word}</text>", bottom + 18.0);
    }
    let _ = writeln!(
        out,
        "<text class=\"axis middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        (left + RIGHT) / 2.0,
        bottom + 40.0,
        escaped(&axis.title)
    );
    out + &rows + "</svg>\n"
}

/// One point of a map.
pub struct Cell {
    /// Its column and its row.
    pub place: (usize, usize),
    /// How good it is; more is better.
    pub value: f64,
    /// The value in few letters.
    pub short: String,
    /// What it says in words.
    pub tip: String,
}

/// A value for each pair of two parameters: the brighter, the better.
pub struct Map {
    /// What is drawn, with the data set.
    pub title: String,
    /// Name and values of the parameter along the bottom.
    pub columns: (String, Vec<String>),
    /// Name and values of the parameter along the side, from the bottom up.
    pub rows: (String, Vec<String>),
    /// Points that were tried.
    pub cells: Vec<Cell>,
}

impl Map {
    /// The picture, to stand on a page.
    pub fn svg(&self) -> String {
        const SHADES: usize = 10;
        let left = 40.0 + self.rows.1.iter().map(|r| width(r)).fold(30.0, f64::max);
        let (across, down) = (self.columns.1.len().max(1), self.rows.1.len().max(1));
        let wide = ((RIGHT - left) / across as f64).min(64.0);
        let (top, high) = (40.0, 26.0);
        let bottom = top + high * down as f64;
        let best = self.cells.iter().map(|c| c.value).fold(f64::NEG_INFINITY, f64::max);
        let worst = self.cells.iter().map(|c| c.value).fold(f64::INFINITY, f64::min);
        // Words along the bottom lean over where they would meet.
        let leaning = self.columns.1.iter().any(|word| width(word) > wide - 4.0);
        let below =
            if leaning { 20.0 + 0.8 * self.columns.1.iter().map(|c| width(c)).fold(0.0, f64::max) } else { 20.0 };
        let mut out = open(&self.title, bottom + below + 26.0, None);
        for cell in &self.cells {
            let (x, y) = (left + wide * cell.place.0 as f64, bottom - high * (cell.place.1 + 1) as f64);
            let share = if best > worst { (cell.value - worst) / (best - worst) } else { 1.0 };
            let shade = ((share * SHADES as f64) as usize).min(SHADES - 1);
            let class = if cell.value == best { " best" } else { "" };
            let _ = write!(
                out,
                "<g class=\"mark{class}\" data-tip=\"{}\"><rect class=\"h{shade}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                escaped(&cell.tip),
                x + 1.0,
                y + 1.0,
                wide - 2.0,
                high - 2.0
            );
            if width(&cell.short) < wide {
                let _ = write!(
                    out,
                    "<text class=\"in{shade} tick middle\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                    x + wide / 2.0,
                    y + high / 2.0 + 4.0,
                    escaped(&cell.short)
                );
            }
            out += "</g>\n";
        }
        for (number, word) in self.columns.1.iter().enumerate() {
            let (x, y) = (left + wide * (number as f64 + 0.5), bottom + 16.0);
            let _ = match leaning {
                true => writeln!(
                    out,
                    "<text class=\"tick end\" x=\"{x:.1}\" y=\"{y:.1}\" transform=\"rotate(-50 {x:.1} {y:.1})\">{}</text>",
                    escaped(word)
                ),
                false => {
                    writeln!(out, "<text class=\"tick middle\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(word))
                }
            };
        }
        for (number, word) in self.rows.1.iter().enumerate() {
            let y = bottom - high * (number as f64 + 0.5) + 4.0;
            let _ =
                writeln!(out, "<text class=\"tick end\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>", left - 8.0, escaped(word));
        }
        let (middle, side) = (left + wide * across as f64 / 2.0, (top + bottom) / 2.0);
        let _ = writeln!(
            out,
            "<text class=\"axis middle\" x=\"{middle:.1}\" y=\"{:.1}\">{}</text>\n\
             <text class=\"axis middle\" x=\"16\" y=\"{side:.1}\" transform=\"rotate(-90 16 {side:.1})\">{}</text>",
            bottom + below + 18.0,
            escaped(&self.columns.0),
            escaped(&self.rows.0)
        );
        out + "</svg>\n"
    }
}

/// Average ranks along a line, the best at the left; bars join those that cannot be told apart.
pub fn ranks(title: &str, ranked: &[(String, f64)], bars: &[(f64, f64)]) -> String {
    let mut order: Vec<usize> = (0..ranked.len()).collect();
    order.sort_by(|&a, &b| ranked[a].1.total_cmp(&ranked[b].1));
    let (left, right) = (190.0, WIDTH - 190.0);
    let most = ranked.len().max(2) as f64;
    let x = |rank: f64| left + (right - left) * (rank - 1.0) / (most - 1.0);
    let line = 66.0;
    let under = line + 14.0 + 10.0 * bars.len() as f64;
    let half = ranked.len().div_ceil(2);
    let mut out = open(title, under + 22.0 * half as f64 + 16.0, None);
    let _ = writeln!(out, "<path class=\"frame\" d=\"M{left} {line}H{right}\"/>");
    for rank in 1..=ranked.len() {
        let at = x(rank as f64);
        let _ = writeln!(
            out,
            "<path class=\"frame\" d=\"M{at:.1} {line}v-6\"/><text class=\"tick middle\" x=\"{at:.1}\" y=\"{:.1}\">{rank}</text>",
            line - 12.0
        );
    }
    for (number, (from, to)) in bars.iter().enumerate() {
        let y = line + 10.0 + 10.0 * number as f64;
        let _ = writeln!(out, "<path class=\"bar\" d=\"M{:.1} {y:.1}H{:.1}\"/>", x(*from) - 4.0, x(*to) + 4.0);
    }
    for (place, &number) in order.iter().enumerate() {
        let (name, rank) = &ranked[number];
        let (row, end, anchor) = match place < half {
            true => (place, left - 10.0, "end"),
            false => (ranked.len() - 1 - place, right + 10.0, "start"),
        };
        let y = under + 22.0 * row as f64 + 10.0;
        let _ = writeln!(
            out,
            "<g class=\"s{} mark\" data-series=\"{number}\" data-tip=\"{}: average rank {rank:.2}\">\
             <path class=\"thin\" d=\"M{:.1} {line}V{y:.1}H{end:.1}\"/>\
             <text class=\"name {anchor}\" x=\"{:.1}\" y=\"{:.1}\">{} {rank:.2}</text></g>",
            number % KINDS,
            escaped(name),
            x(*rank),
            if place < half { end - 4.0 } else { end + 4.0 },
            y + 4.0,
            escaped(name)
        );
    }
    out + "</svg>\n"
}

/// A picture that stands by itself, in a file of its own.
pub fn alone(svg: &str) -> String {
    svg.replacen("<rect class=\"ground\"", &format!("<style>\n{STYLE}</style>\n<rect class=\"ground\""), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(series: Vec<Series>) -> Plot {
        let (x, y) = (Axis::new("c", Unit::Plain), Axis::new("accuracy", Unit::Percent));
        Plot { title: "x<y".into(), x, y, series, guide: Guide::Nothing }
    }

    fn line(name: &str, shift: f64) -> Series {
        let point = |i: i32| {
            let y = 0.8 + shift + 0.01 * f64::from(i);
            Point { x: f64::from(1 << i), y, spread: Some((y - 0.02, y + 0.02)) }
        };
        Series { name: name.into(), shape: Shape::Line, points: (0..8).map(point).collect() }
    }

    #[test]
    fn distributions_rise_at_every_value() {
        let whole = Series::distribution("a", &[1.0, 2.0, 2.0, 4.0], 1000);
        assert_eq!(
            whole.points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>(),
            [(1.0, 0.25), (2.0, 0.5), (2.0, 0.75), (4.0, 1.0)]
        );
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        let thin = Series::distribution("a", &values, 100);
        assert_eq!((thin.points.len(), thin.points[0].x, thin.points[99].x), (100, 9.0, 999.0));
    }

    #[test]
    fn plots_hold_every_series_and_escape_their_words() {
        let mut drawn = plot(vec![line("one <&> \"two\"", 0.0), line("b", 0.1)]);
        drawn.x.unit = Unit::Powers;
        let picture = drawn.svg();
        assert_eq!(picture.matches("class=\"band\"").count(), 2);
        assert!(
            picture.contains("one &lt;&amp;&gt; &quot;two&quot;")
                && picture.contains("x&lt;y")
                && picture.contains(">16<")
        );
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
        assert!(alone(&picture).contains("prefers-color-scheme"));
    }

    #[test]
    fn one_value_is_enough() {
        for value in [0.0, 3.0, -2.0] {
            let mut drawn = plot(vec![Series::distribution("m", &[value], 10)]);
            (drawn.y, drawn.guide) = (Axis::share("share"), Guide::Zero);
            assert!(!drawn.svg().contains("NaN"));
        }
        assert!(!plot(vec![]).svg().contains("NaN"));
        let nothing = Strip {
            heading: "h".into(),
            name: "n".into(),
            series: 0,
            values: vec![],
            mean: f64::NAN,
            deviation: f64::NAN,
            tip: String::new(),
        };
        assert!(!strips("t", &Axis::new("a", Unit::Percent), &[nothing]).contains("NaN"));
    }

    #[test]
    fn names_of_series_never_meet() {
        let many: Vec<Series> = (0..9).map(|i| line(&format!("svm:rbf:c=1;10;100:gamma=0.{i}"), 0.0)).collect();
        let (drawn, below) = legend(&many);
        let number = |text: &str, name: &str| -> f64 {
            let rest = text.split(&format!("{name}=\"")).nth(1).unwrap();
            rest.split('"').next().unwrap().parse().unwrap()
        };
        let places: Vec<(f64, f64)> =
            drawn.split("<text").skip(1).map(|text| (number(text, " x"), number(text, " y"))).collect();
        for (i, a) in places.iter().enumerate() {
            assert!(a.0 + width(&many[i].name) <= WIDTH && a.1 < below);
            for b in &places[i + 1..] {
                assert!(a.1 != b.1 || a.0 + width(&many[i].name) < b.0);
            }
        }
    }

    #[test]
    fn ticks_are_round() {
        let words: Vec<String> = ticks(-0.31, 1.0).into_iter().map(tidy).collect();
        assert_eq!(words, ["-0.2", "0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(tidy(0.1 + 0.2), "0.3");
        assert_eq!(ticks(0.0, 1.0).len(), 6);
    }

    #[test]
    fn clouds_draw_rows_and_marks() {
        let cloud = |dots: Vec<(f64, f64)>, marks: Vec<Mark>| Cloud {
            title: "iris <&>".into(),
            x: Axis::new("margin", Unit::Plain),
            y: Axis::new("influence", Unit::Plain),
            dots: ("other rows".into(), dots),
            marks: ("suspects".into(), marks),
        };
        let mark = Mark { place: (-1.0, 0.5), tip: "row 3 <b>".into() };
        let svg = cloud(vec![(1.0, 0.1), (2.0, 0.2), (f64::INFINITY, 0.0)], vec![mark]).svg();
        assert_eq!((svg.matches("h0").count(), svg.matches("data-tip=\"row 3 &lt;b&gt;\"").count()), (3, 1));
        assert!(svg.contains("class=\"guide\"") && svg.contains("influence") && !svg.contains("inf\""), "{svg}");
        assert!(!cloud(vec![], vec![]).svg().contains("NaN"));
        let many = (0..200_000).map(|i| (f64::from(i % 997), f64::from(i % 1009))).collect();
        assert!(cloud(many, vec![]).svg().len() < 1_000_000);
    }

    #[test]
    fn maps_and_ranks_show_every_point() {
        let cell = |i: usize| Cell { place: (i, 0), value: i as f64, short: "9".into(), tip: format!("c = {i}") };
        let words = |n: usize| (0..n).map(|i| format!("{i}")).collect::<Vec<_>>();
        let map = Map {
            title: "wdbc".into(),
            columns: ("c".into(), words(4)),
            rows: ("gamma".into(), words(1)),
            cells: (0..4).map(cell).collect(),
        };
        let svg = map.svg();
        assert_eq!((svg.matches("data-tip").count(), svg.matches("mark best").count()), (4, 1));
        let ranked = [("a".to_string(), 1.2), ("b".into(), 2.9), ("c".into(), 1.9)];
        let drawn = ranks("ranks", &ranked, &[(1.2, 1.9)]);
        assert_eq!((drawn.matches("class=\"bar\"").count(), drawn.matches("data-tip").count()), (1, 3));
    }
}
