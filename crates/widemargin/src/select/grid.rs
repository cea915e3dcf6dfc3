//! What is tried: the syntax of grids, and the widths of kernels.

use crate::data::{Matrix, Rows};
use crate::kernel::Kernel;
use crate::machine::{Series, Value};
use crate::random::Random;
use crate::train::{Gamma, gamma_of, with_gamma};
use crate::{Error, Result, with_rows};
use std::fmt;

/// The name of the kernel's `γ` in a grid.
pub const GAMMA: &str = "gamma";
/// More values than this on one axis, or points in one grid, are a slip of the keyboard.
const MOST: usize = 1_000_000;
/// Distances are averaged over at most this many rows: half a million pairs, whose mean is off by a few percent of its spread, where
/// widths are tried a factor of two apart.
const SAMPLE: usize = 1000;

/// The values of one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct GridAxis {
    /// The parameter, or `gamma`.
    pub name: String,
    /// What it may be.
    pub values: Vec<Value>,
}

/// The product of some axes.
///
/// As text: `NAME=VALUES,NAME=VALUES,…`, where `VALUES` is one of
///
/// | text | means |
/// |---|---|
/// | `2^0:2^10` | 1, 2, 4, …, 1024: doubling, because both ends are written as powers of two |
/// | `1:1024:*4` | 1, 4, 16, …, 1024: multiplied by 4 each time |
/// | `0:0.5:0.1` | 0, 0.1, …, 0.5: 0.1 added each time (`1:5` adds 1) |
/// | `1;10;100` | these three; also words, for parameters that are words |
///
/// `2^x` may stand for any number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The axes, the first one changing slowest.
    pub axes: Vec<GridAxis>,
}

impl GridAxis {
    /// These values of a parameter: at least one, each once.
    pub fn new(name: impl Into<String>, values: Vec<Value>) -> Result<Self> {
        let axis = Self { name: name.into(), values };
        let twice = (1..axis.values.len()).any(|i| axis.values[..i].contains(&axis.values[i]));
        match axis.values.is_empty() || twice {
            true => Err(wrong(&axis.to_string(), "some values, every one once")),
            false => Ok(axis),
        }
    }

    /// Reads the values of a parameter.
    pub fn read(name: &str, values: &str) -> Result<Self> {
        Self::new(name, values_of(values)?)
    }

    /// The axis of a machine's own grid.
    pub(super) fn of(name: &str, numbers: Vec<f64>) -> Self {
        Self { name: name.into(), values: numbers.into_iter().map(Value::Number).collect() }
    }

    /// Reads `NAME=VALUES`.
    fn parse(text: &str) -> Result<Self> {
        let (name, values) = text.split_once('=').ok_or_else(|| wrong(text, "NAME=VALUES,NAME=VALUES,…"))?;
        Self::read(name.trim(), values)
    }
}

/// `NAME=VALUE;VALUE;…`
impl fmt::Display for GridAxis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(Value::to_string).collect();
        write!(f, "{}={}", self.name, values.join(";"))
    }
}

impl Grid {
    /// The product of these axes: every parameter once, and not too many points.
    pub fn new(axes: Vec<GridAxis>) -> Result<Self> {
        let again = |i: usize| axes[..i].iter().any(|other| other.name == axes[i].name);
        if let Some(axis) = axes.iter().find(|axis| axis.name.is_empty()) {
            return Err(wrong(&axis.to_string(), "every parameter by its name"));
        }
        if let Some(i) = (0..axes.len()).find(|&i| again(i)) {
            return Err(wrong(&axes[i].to_string(), "every parameter once"));
        }
        let grid = Self { axes };
        if grid.points() > MOST {
            return Err(wrong(&grid.to_string(), "at most a million points"));
        }
        Ok(grid)
    }

    /// Reads a grid.
    pub fn parse(text: &str) -> Result<Self> {
        Self::new(text.split(',').map(GridAxis::parse).collect::<Result<_>>()?)
    }

    /// Number of points.
    pub fn points(&self) -> usize {
        self.axes.iter().fold(1usize, |product, axis| product.saturating_mul(axis.values.len()))
    }

    /// For each point the position on each axis, the first axis changing slowest.
    pub fn positions(&self) -> Vec<Vec<usize>> {
        let sizes: Vec<Vec<usize>> = self.axes.iter().map(|axis| (0..axis.values.len()).collect()).collect();
        product(&sizes)
    }
}

/// `NAME=VALUES,NAME=VALUES,…`
impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes: Vec<String> = self.axes.iter().map(GridAxis::to_string).collect();
        f.write_str(&axes.join(","))
    }
}

/// All ways to take one of each list, the first list changing slowest.
pub fn product(lists: &[Vec<usize>]) -> Vec<Vec<usize>> {
    lists.iter().fold(vec![Vec::new()], |points, list| {
        let longer = |point: &Vec<usize>, &value: &usize| [point.as_slice(), &[value]].concat();
        points.iter().flat_map(|point| list.iter().map(move |value| longer(point, value))).collect()
    })
}

fn wrong(value: &str, expected: &str) -> Error {
    Error::parameter("grid", value, expected)
}

/// Reads the values of one axis.
fn values_of(text: &str) -> Result<Vec<Value>> {
    if text.contains(':') {
        return Ok(range(text)?.into_iter().map(Value::Number).collect());
    }
    let value = |word: &str| match word.trim() {
        "" => Err(wrong(text, "values such as 1;10;100")),
        word => Ok(number(word).map_or_else(|| Value::Word(word.into()), Value::Number)),
    };
    text.split(';').map(value).collect()
}

/// A finite number, also written `2^x`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let value = match text.strip_prefix("2^") {
        Some(power) => power.parse::<f64>().ok()?.exp2(),
        None => text.parse().ok()?,
    };
    value.is_finite().then_some(value)
}

/// `FROM:TO`, `FROM:TO:STEP`, `FROM:TO:*FACTOR`
fn range(text: &str) -> Result<Vec<f64>> {
    const FORM: &str = "FROM:TO, FROM:TO:STEP or FROM:TO:*FACTOR with FROM <= TO";
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let end = |part: &str| number(part).ok_or_else(|| wrong(text, FORM));
    let (from, to, step) = match parts.as_slice() {
        [from, to] if from.starts_with("2^") && to.starts_with("2^") => (end(from)?, end(to)?, "*2"),
        [from, to] => (end(from)?, end(to)?, "1"),
        [from, to, step] => (end(from)?, end(to)?, *step),
        _ => return Err(wrong(text, FORM)),
    };
    if from > to {
        return Err(wrong(text, FORM));
    }
    let series = match step.strip_prefix('*') {
        Some(factor) => Series::Factors { from, to, factor: end(factor)? },
        None => Series::Steps { from, to, step: end(step)? },
    };
    match series {
        Series::Factors { factor, .. } if factor <= 1.0 || from <= 0.0 => {
            Err(wrong(text, "a factor above 1 and a start above 0"))
        }
        Series::Steps { step, .. } if step <= 0.0 => Err(wrong(text, "a step above 0")),
        series if series.last() >= MOST as f64 => Err(wrong(text, "at most a million values")),
        series => Ok(series.numbers()),
    }
}

/// Positions among [`widths`] of those that a staged search tries at first.
pub(super) const COARSE_WIDTHS: [usize; 4] = [0, 2, 3, 4];

/// The `γ` to try for a kernel over these (scaled) rows, ascending.
///
/// The papers take widths `δ/4, δ/2, δ, 2δ, 4δ` with `δ` the average distance between rows: `γ = 1/(2 width²)` for the
/// RBF kernel, `1/width` with the average `‖·‖₁` distance for the Laplacian. For the others, for which no paper says
/// anything, the default `γ` is divided and multiplied by up to 4.
pub(super) fn widths(kernel: Kernel, rows: &Matrix<'_>, seed: u64) -> Option<[f64; 5]> {
    let powers = [2.0, 1.0, 0.0, -1.0, -2.0f64];
    Some(match kernel {
        Kernel::Linear => return None,
        Kernel::Rbf { .. } => {
            let delta = average_distance(rows, seed, false);
            powers.map(|p| 0.5 / (delta * p.exp2()).powi(2))
        }
        Kernel::Laplacian { .. } => {
            let delta = average_distance(rows, seed, true);
            powers.map(|p| 1.0 / (delta * p.exp2()))
        }
        Kernel::Poly { .. } | Kernel::Sigmoid { .. } => {
            let usual = gamma_of(with_gamma(kernel, Gamma::Scale, rows, None)).unwrap_or(1.0);
            powers.map(|p| usual * (-p).exp2())
        }
    })
}

/// The mean distance between two different rows, of a sample if there are many; 1 if all rows are the same.
pub fn average_distance(rows: &Matrix<'_>, seed: u64, absolute: bool) -> f64 {
    const STREAM: u64 = 1 << 61;
    let mut chosen: Vec<usize> = (0..rows.rows()).collect();
    if chosen.len() > SAMPLE {
        Random::new(seed, STREAM).shuffle(&mut chosen);
        chosen.truncate(SAMPLE);
        chosen.sort_unstable();
    }
    let sample = rows.select(&chosen);
    let n = chosen.len();
    let mut spread = vec![0.0; rows.cols()];
    let mut sum = 0.0;
    for i in 0..n {
        with_rows!(&sample, x => {
            x.visit(i, |c, v| spread[c] = v);
            let size = if absolute { spread.iter().map(|v| v.abs()).sum() } else { x.norm2(i) };
            sum += (0..i).map(|j| distance(x, j, &spread, size, absolute)).sum::<f64>();
            x.visit(i, |c, _| spread[c] = 0.0);
        });
    }
    let mean = sum / (n * n.saturating_sub(1) / 2).max(1) as f64;
    if mean.is_finite() && mean > 0.0 { mean } else { 1.0 }
}

/// The distance between row `j` and the row in `spread`, whose `‖·‖₁` or `‖·‖²` is `size`.
fn distance(x: &impl Rows, j: usize, spread: &[f64], size: f64, absolute: bool) -> f64 {
    if !absolute {
        return (size + x.norm2(j) - 2.0 * x.dot(j, spread)).max(0.0).sqrt();
    }
    let mut distance = size;
    x.visit(j, |c, v| distance += (spread[c] - v).abs() - spread[c].abs());
    distance.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<f64> {
        let number = |value: Value| match value {
            Value::Number(number) => number,
            Value::Word(word) => panic!("{word}"),
        };
        values_of(text).unwrap().into_iter().map(number).collect()
    }

    #[test]
    fn ranges_and_lists() {
        assert_eq!(numbers("2^0:2^3"), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(numbers("2^-2:2^2:*4"), [0.25, 1.0, 4.0]);
        assert_eq!(numbers("1:1024:*4"), [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]);
        assert_eq!(numbers("0:0.5:0.1"), [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(numbers("1:3"), [1.0, 2.0, 3.0]);
        assert_eq!(numbers("2^1; 10;1e3"), [2.0, 10.0, 1000.0]);
        assert_eq!(values_of("cccp;paper").unwrap()[1], Value::Word("paper".into()));
    }

    #[test]
    fn products_change_the_last_axis_first() {
        let grid = Grid::parse("c1=1;2,d=0:0.2:0.1").unwrap();
        assert_eq!(grid.points(), 6);
        assert_eq!(grid.positions()[..4], [vec![0, 0], vec![0, 1], vec![0, 2], vec![1, 0]]);
    }

    #[test]
    fn slips_are_told() {
        let wrong = [
            "",
            "c1",
            "c1=",
            "=1",
            "c1=1;",
            "c1=1;1",
            "c1=1,c1=2",
            "c1=2:1",
            "c1=0:4:*2",
            "c1=1:4:*1",
            "c1=1:4:0",
            "c1=1:4:-1",
            "c1=a:b",
            "c1=1:2:3:4",
            "c1=0:1:1e-9",
            "a=1:2000,b=1:2000",
            "c1=inf:2",
            "c1=2^2000:2^2001",
        ];
        for text in wrong {
            assert!(matches!(Grid::parse(text), Err(Error::Parameter { .. })), "{text}");
        }
    }

    #[test]
    fn distances() {
        let rows = Matrix::DenseF64(crate::data::Dense::new(3, 2, vec![0.0, 0.0, 3.0, 4.0, 0.0, 0.0]).unwrap());
        assert!((average_distance(&rows, 0, false) - 10.0 / 3.0).abs() < 1e-9);
        assert!((average_distance(&rows, 0, true) - 14.0 / 3.0).abs() < 1e-9);
        let same = Matrix::DenseF64(crate::data::Dense::new(2, 1, vec![5.0, 5.0]).unwrap());
        assert_eq!(average_distance(&same, 0, false), 1.0);
    }
}
