//! Which points are tried, and in which order.

use super::explore::Point;
use super::grid::{COARSE_WIDTHS, GAMMA, Grid, GridAxis, product, widths};
use super::{Plan, Search, settled_gamma};
use crate::data::Matrix;
use crate::kernel::Kernel;
use crate::machine::{Domain, Machine, Value, check_parameters};
use crate::random::Random;
use crate::train::TrainOptions;
use crate::{Advice, Error, Result};

/// In a grid, `gamma=widths` stands for the papers' widths.
const WIDTHS: &str = "widths";

/// All points there are, and those to begin with.
pub(super) struct Lattice {
    machine: &'static Machine,
    given: Vec<(String, Value)>,
    grid: Grid,
    /// The points tried at first.
    first: Vec<Vec<usize>>,
    staged: bool,
    /// `γ` where it is not an axis.
    gamma: Option<f64>,
    /// The weight of all rows, from which defaults follow.
    total: f64,
    pub paper_points: usize,
}

impl Lattice {
    /// The lattice of a search over these (scaled) rows; `total` is the weight of all rows that the model will be fitted on.
    pub fn new(options: &TrainOptions, search: &Search<'_>, rows: &Matrix<'_>, total: f64) -> Result<Self> {
        let is_given = |name: &str| search.given.iter().any(|(given, _)| given == name);
        let own: Vec<_> = options.machine.grid().iter().filter(|axis| !is_given(axis.name)).collect();
        let widths = if search.gamma_given { None } else { widths(options.kernel, rows, options.settings.seed) };
        let (mut axes, mut first) = (Vec::new(), Vec::new());
        for axis in &own {
            match search.plan {
                Plan::Paper => axes.push(GridAxis::of(axis.name, axis.paper.numbers())),
                _ => {
                    let (coarse, fine) = axis.tried(total);
                    let place = |v: &f64| fine.iter().position(|f| f == v);
                    first.push(coarse.iter().filter_map(place).collect());
                    axes.push(GridAxis::of(axis.name, fine));
                }
            }
        }
        let paper: usize = own.iter().map(|axis| axis.paper.numbers().len()).product();
        let paper_points = paper * widths.map_or(1, |widths| widths.len());
        if let Some(widths) = widths {
            first.push(COARSE_WIDTHS.to_vec());
            axes.push(GridAxis::of(GAMMA, widths.to_vec()));
        }
        let staged = matches!(search.plan, Plan::Staged);
        let grid = match search.plan {
            Plan::Grid(grid) => gamma_last(grid, options, widths)?,
            Plan::Staged | Plan::Paper | Plan::Sample(_) => Grid { axes },
        };
        let first = match search.plan {
            Plan::Staged => product(&first),
            Plan::Sample(count) => sample(grid.positions(), *count, options.settings.seed),
            Plan::Paper | Plan::Grid(_) => grid.positions(),
        };
        let gamma = settled_gamma(options, rows);
        let given = search.given.to_vec();
        Ok(Self { machine: options.machine, given, grid, first, staged, gamma, total, paper_points })
    }

    /// The points to begin with.
    pub fn first(&self) -> &[Vec<usize>] {
        &self.first
    }

    /// How many points will be tried, about: stages add some along each axis (ODM over an RBF kernel went from 32 to 52 points on
    /// a9a and to 43 on cod-rna, mcODM from 12 to 29 on iris).
    pub fn expected_points(&self) -> usize {
        const ALONG: usize = 5;
        self.first.len() + if self.staged { ALONG * self.grid.axes.len() } else { 0 }
    }

    /// How many points a plain search would try.
    pub fn plain_points(&self) -> usize {
        if self.staged { self.paper_points } else { self.first.len() }
    }

    /// The distances at which neighbours are then looked at.
    pub fn steps(&self) -> impl Iterator<Item = usize> + use<> {
        let steps: &[usize] = if self.staged { &[2, 1] } else { &[] };
        steps.iter().copied()
    }

    /// The axes of three or more values at whose ends a point lies; zero is an end by nature.
    pub fn at_edge(&self, at: &[usize]) -> Vec<String> {
        let edge = |(axis, at): &(&GridAxis, &usize)| {
            let zero = axis.values[**at] == Value::Number(0.0);
            axis.values.len() > 2 && !zero && (**at == 0 || **at + 1 == axis.values.len())
        };
        self.grid.axes.iter().zip(at).filter(edge).map(|(axis, _)| axis.name.clone()).collect()
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

    /// The points that differ by one width.
    pub fn widths_beside(&self, at: &[usize]) -> Vec<Vec<usize>> {
        let Some(width) = self.grid.axes.iter().position(|axis| axis.name == GAMMA) else { return Vec::new() };
        self.neighbours(at, 1).into_iter().filter(|near| near[width] != at[width]).collect()
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
                    given.push((axis.name.clone(), value.clone()));
                }
            }
        }
        let parameters = self.machine.settled(&check_parameters(self.machine, &given)?, self.total);
        Ok(Point { positions: positions.to_vec(), parameters, gamma })
    }
}

/// So many of the points, drawn at random, in their order.
fn sample(points: Vec<Vec<usize>>, count: usize, seed: u64) -> Vec<Vec<usize>> {
    const STREAM: u64 = 1 << 60;
    let mut drawn: Vec<usize> = (0..points.len()).collect();
    Random::new(seed, STREAM).shuffle(&mut drawn);
    drawn.truncate(count.max(1));
    drawn.sort_unstable();
    drawn.into_iter().map(|place| points[place].clone()).collect()
}

/// A grid with its `γ` at the end, where all points of one width stand together.
fn gamma_last(grid: &Grid, options: &TrainOptions, widths: Option<[f64; 5]>) -> Result<Grid> {
    let mut axes = grid.axes.clone();
    let Some(at) = axes.iter().position(|axis| axis.name == GAMMA) else { return Ok(Grid { axes }) };
    let mut gamma = axes.remove(at);
    check_gamma(&gamma, options.kernel)?;
    if stands_for_widths(&gamma) {
        let given = || Error::conflict("gamma is given, and cannot be searched over the papers' widths", Advice::NONE);
        gamma.values = widths.ok_or_else(given)?.map(Value::Number).to_vec();
    }
    axes.push(gamma);
    Ok(Grid { axes })
}

fn stands_for_widths(gamma: &GridAxis) -> bool {
    matches!(gamma.values.as_slice(), [Value::Word(word)] if word == WIDTHS)
}

fn check_gamma(gamma: &GridAxis, kernel: Kernel) -> Result<()> {
    if kernel == Kernel::Linear {
        return Err(Error::conflict("the linear kernel has no gamma to search", Advice::NONE));
    }
    let wrong = gamma.values.iter().find(|value| !Domain::Positive.holds(value));
    match wrong.filter(|_| !stands_for_widths(gamma)) {
        Some(value) => Err(Error::parameter(GAMMA, value, format!("numbers > 0, or {WIDTHS}"))),
        None => Ok(()),
    }
}

/// Refuses a grid with a parameter that the machine does not have, or a value outside its domain.
pub(super) fn check_grid(grid: &Grid, options: &TrainOptions, given: &[(String, Value)]) -> Result<()> {
    for axis in &grid.axes {
        if axis.name == GAMMA {
            check_gamma(axis, options.kernel)?;
            continue;
        }
        for value in &axis.values {
            let others = given.iter().filter(|(name, _)| *name != axis.name).cloned();
            let point: Vec<(String, Value)> = others.chain([(axis.name.clone(), value.clone())]).collect();
            check_parameters(options.machine, &point)?;
        }
    }
    Ok(())
}
