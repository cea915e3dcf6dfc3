//! Which points are tried, and in which order.

use super::grid::{GAMMA, Grid, GridAxis, product, values_of, widths};
use super::{Plan, Point, Search, settled_gamma};
use crate::data::Matrix;
use crate::kernel::Kernel;
use crate::machine::{Machine, Value, check_parameters};
use crate::train::TrainOptions;
use crate::{Error, Result};

/// All points there are, and those to begin with.
pub(super) struct Lattice {
    machine: &'static dyn Machine,
    given: Vec<(String, String)>,
    grid: Grid,
    /// Positions on each axis of the values tried at first.
    first: Vec<Vec<usize>>,
    staged: bool,
    /// `γ` where it is not an axis.
    gamma: Option<f64>,
    pub paper_points: usize,
}

impl Lattice {
    /// The lattice of a search over these (scaled) rows.
    pub fn new(options: &TrainOptions, search: &Search<'_>, rows: &Matrix<'_>) -> Result<Self> {
        let is_given = |name: &str| search.given.iter().any(|(given, _)| given == name);
        let own: Vec<_> = options.machine.grid().iter().filter(|axis| !is_given(axis.name)).collect();
        let widths = if search.gamma_given { None } else { widths(options.kernel, rows, options.settings.seed) };
        let (mut axes, mut first) = (Vec::new(), Vec::new());
        for axis in &own {
            let (fine, coarse, paper) = (values_of(axis.fine)?, values_of(axis.coarse)?, values_of(axis.paper)?);
            match search.plan {
                Plan::Paper => axes.push(GridAxis { name: axis.name.into(), values: paper }),
                _ => {
                    first.push(coarse.iter().filter_map(|v| fine.iter().position(|f| f == v)).collect());
                    axes.push(GridAxis { name: axis.name.into(), values: fine });
                }
            }
        }
        let paper =
            own.iter().map(|axis| values_of(axis.paper).map(|values| values.len())).product::<Result<usize>>()?;
        let paper_points = paper * widths.as_ref().map_or(1, |w| w.paper.len());
        if let Some(widths) = widths {
            let paper = matches!(search.plan, Plan::Paper);
            let kept: Vec<f64> =
                if paper { widths.paper.iter().map(|&i| widths.fine[i]).collect() } else { widths.fine };
            first.push(widths.coarse);
            axes.push(GridAxis { name: GAMMA.into(), values: kept.into_iter().map(Value::Number).collect() });
        }
        let staged = matches!(search.plan, Plan::Staged);
        let grid = match search.plan {
            Plan::Grid(grid) => gamma_last(grid, options)?,
            Plan::Staged | Plan::Paper => Grid { axes },
        };
        if !staged {
            first = grid.axes.iter().map(|axis| (0..axis.values.len()).collect()).collect();
        }
        let gamma = settled_gamma(options, rows);
        let given = search.given.to_vec();
        Ok(Self { machine: options.machine, given, grid, first, staged, gamma, paper_points })
    }

    /// The points to begin with.
    pub fn first(&self) -> Vec<Vec<usize>> {
        product(&self.first)
    }

    /// How many points a plain search would try.
    pub fn plain_points(&self) -> usize {
        if self.staged { self.paper_points } else { self.grid.points() }
    }

    /// The distances at which neighbours are then looked at.
    pub fn steps(&self) -> impl Iterator<Item = usize> + use<> {
        let steps: &[usize] = if self.staged { &[2, 1] } else { &[] };
        steps.iter().copied()
    }

    /// The points that differ by `step` on one axis.
    pub fn neighbours(&self, at: &[usize], step: usize) -> Vec<Vec<usize>> {
        let moved = |axis: usize, to: usize| {
            let mut point = at.to_vec();
            point[axis] = to;
            point
        };
        let along = |axis: usize| {
            let ends = [at[axis].checked_sub(step), Some(at[axis] + step)];
            let inside = ends.into_iter().flatten().filter(move |to| *to < self.grid.axes[axis].values.len());
            inside.map(move |to| moved(axis, to))
        };
        (0..at.len()).flat_map(along).collect()
    }

    /// The point at these positions, its parameters checked.
    pub fn point(&self, positions: &[usize]) -> Result<Point> {
        let mut given = self.given.clone();
        let mut gamma = self.gamma;
        for (axis, &at) in self.grid.axes.iter().zip(positions) {
            match &axis.values[at] {
                Value::Number(number) if axis.name == GAMMA => gamma = Some(*number),
                value => {
                    given.retain(|(name, _)| *name != axis.name);
                    given.push((axis.name.clone(), value.to_string()));
                }
            }
        }
        Ok(Point { positions: positions.to_vec(), parameters: check_parameters(self.machine, &given)?, gamma })
    }
}

/// A grid with its `γ` at the end, where all points of one width stand together.
fn gamma_last(grid: &Grid, options: &TrainOptions) -> Result<Grid> {
    let mut axes = grid.axes.clone();
    let Some(at) = axes.iter().position(|axis| axis.name == GAMMA) else { return Ok(Grid { axes }) };
    if options.kernel == Kernel::Linear {
        return Err(Error::Usage("the linear kernel has no gamma to search".into()));
    }
    let gamma = axes.remove(at);
    let positive = |value: &Value| matches!(value, Value::Number(number) if *number > 0.0);
    if let Some(value) = gamma.values.iter().find(|value| !positive(value)) {
        let expected = "numbers > 0".into();
        return Err(Error::Parameter { name: GAMMA.into(), value: value.to_string(), expected });
    }
    axes.push(gamma);
    Ok(Grid { axes })
}
