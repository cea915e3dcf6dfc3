//! Smooth losses over a kernel by the rows that support the solution.
//!
//! Where a loss is flat (ODM's band, beyond the squared hinge) a row pulls at nothing and has no coefficient: of the kernel matrix
//! its row and column are not needed, only its margin in the end. A solution over some of the rows foretells which rows these are;
//! what is left is the same problem over the others, and a look at the margins of those that were left out.

use super::{Ending, Start, Task, Workspace, prepare, random_rows};
use crate::Result;
use crate::control::Control;
use crate::kernel::{GramPrecision, Tiles};
use crate::linalg;
use crate::problem::{MarginProblem, ScoreFunctions, StopReason};
use crate::solver::Settings;
use crate::solver::newton::Pieces;
use std::sync::OnceLock;

/// Newton's method over tiles begins with what a part of the rows, at least and at most so many, say of all. (Of
/// 60,000 × 8 the rows that an eighth foretells leave out losses of 3.5 % of the objective, those of a quarter 0.9 %, and the fit takes a
/// fifth longer.)
const PIECES_PART: usize = 4;
const PIECES_LEAST: usize = 100;
const PIECES_MOST: usize = 16_000;
/// The gap up to which these are solved.
const PIECES_TOL: f64 = 0.03;
/// Beside the rows that are believed to pull, others take part that are nearest to it: so many for each of them. What was misjudged
/// takes part in the next round, and half as many again.
const SPARE: f64 = 0.1;
const SPARE_AGAIN: f64 = 0.05;
/// Of more rows than this part of all, the others are not worth leaving out; where the whole matrix serves other problems too, of more
/// than half.
const MOST: f64 = 0.9;
const MOST_OF_SHARED: f64 = 0.5;
/// The part of the tolerance to which the problem over some rows is solved; the others' losses may add the rest.
const PART: f64 = 0.7;
/// The gap to which the first rows are solved, as more are likely to be wanted.
const ROUGH: f64 = 0.01;

impl Workspace<'_> {
    /// On which pieces of a smooth loss the rows end, as the solution over some of them, of as much weight as all, tells: that
    /// of a row's margin without the row itself is that of its margin with it.
    pub(super) fn pieces(&self, task: &Task<'_>) -> Result<Option<Pieces>> {
        let Task { problem, settings, control, .. } = *task;
        let (m, few) = (problem.y.len(), (problem.y.len() / PIECES_PART).min(PIECES_MOST));
        if !problem.loss.is_smooth() || problem.variance > 0.0 || few < PIECES_LEAST {
            return Ok(None);
        }
        let chosen = random_rows(m, few, settings.seed);
        let (y, weights) = problem.of_rows_for_all(&chosen);
        let part = MarginProblem { y: &y, weights: &weights, ..*problem };
        let rows = self.rows.select(&chosen);
        let rough = Settings { tol: settings.tol.max(PIECES_TOL), max_iter: None, ..*settings };
        let quiet = Control { observer: None, ..control };
        let few = Workspace::new(&rows, self.kernel, rough);
        let found = few.solve(&part, GramPrecision::Single, &Start::default(), &rough, quiet)?;
        let (c, b) = found.functions.into_parts();
        let terms: Vec<(usize, f64)> =
            chosen.into_iter().zip(c[0].iter().copied()).filter(|(_, c)| *c != 0.0).collect();
        let scores = self.with_kernel_rows(|rows| rows.combine::<f32>(&terms, control))?;
        let margins: Vec<f64> = scores.iter().zip(problem.y).map(|(f, y)| y * (f + b[0])).collect();
        let row = |(g, s): (&f64, &f64)| {
            let (_, slope, curvature) = problem.loss.jet(*g);
            (-s * slope, s * curvature)
        };
        let (a, curvature) = margins.iter().zip(problem.weights).map(row).unzip();
        Ok(Some(Pieces { margins, a, curvature }))
    }

    /// Newton's method over the rows that support the solution as the pieces tell, and those that prove to: first roughly, since more
    /// rows may be wanted, then as asked for.
    pub(super) fn by_supporting_rows(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        pieces: Pieces,
        settings: &Settings,
    ) -> Result<Ending> {
        let problem = task.problem;
        let m = problem.y.len();
        let mut chosen = Vec::new();
        choose_nearest(problem, &pieces.margins, SPARE, &mut chosen);
        let most = if self.shared { MOST_OF_SHARED } else { MOST };
        if chosen.len() < PIECES_LEAST || chosen.len() as f64 >= most * m as f64 {
            return self.newton_from(task, precision, &Start::default(), Some(pieces), settings);
        }
        let exact = Settings { tol: PART * settings.tol, ..*settings };
        let mut round = Settings { tol: exact.tol.max(ROUGH), ..*settings };
        let (mut pieces, mut start, mut tiles, mut steps) = (Some(pieces), Start::default(), Default::default(), 0);
        loop {
            let guess = pieces.take().map(|pieces| pieces.of_rows(&chosen));
            let (found, left_out) = self.over_some(task, precision, &chosen, (&start, guess), &mut tiles, &round)?;
            steps += found.iterations;
            let (margins, dual) = (found.margins.as_deref().unwrap_or_default(), found.dual.as_deref());
            let objective = 0.5 * linalg::dot(margins, dual.unwrap_or_default()) + problem.risk(margins);
            let enough = left_out <= (1.0 - PART) * settings.tol * objective;
            if found.stop != StopReason::Gap || enough && round.tol <= exact.tol {
                return Ok(Ending { iterations: steps, ..found });
            }
            if !enough {
                choose_nearest(problem, margins, SPARE_AGAIN, &mut chosen);
            }
            (start, round) = (found.start(problem), exact);
        }
    }

    /// Newton's method over some of the rows, on tiles of the first of them and from a start over all; and what the losses of the other
    /// rows come to.
    fn over_some(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        chosen: &[usize],
        (start, guess): (&Start, Option<Pieces>),
        tiles: &mut [OnceLock<Tiles>; 3],
        settings: &Settings,
    ) -> Result<(Ending, f64)> {
        let Task { problem, control, .. } = *task;
        let rows = self.rows.select(chosen);
        let (y, weights) = problem.of_rows(chosen);
        let part = MarginProblem { y: &y, weights: &weights, ..*problem };
        // The memory is that of this solve: others may go on beside it.
        let own = Settings { memory: settings.memory, ..self.settings };
        let some = Workspace::new(&rows, self.kernel, own).going_on_with(std::mem::take(tiles), control)?;
        let task = Task { problem: &part, ..*task };
        let found = some.newton_from(&task, precision, &start.of_rows(chosen), guess, settings)?;
        *tiles = some.tiles;
        let spread = |values: &[f64]| {
            let mut all = vec![0.0; problem.y.len()];
            chosen.iter().zip(values).for_each(|(&i, value)| all[i] = *value);
            all
        };
        let (c, b) = found.functions.into_parts();
        let functions = ScoreFunctions::coefficients(spread(&c[0]), b[0]);
        let mut margins = spread(&found.margins.unwrap_or_default());
        let left_out = self.look_at_others(problem, precision, chosen, &functions, &mut margins, control)?;
        let solver = format!("{} of {} rows", found.solver, chosen.len());
        let dual = found.dual.as_deref().map(spread);
        let ending = Ending::plain(functions, dual, found.stop, found.iterations, solver);
        Ok((Ending { margins: Some(margins), ..ending }, left_out))
    }

    /// Writes the margins of the rows that were not chosen, and says what their losses come to.
    fn look_at_others(
        &self,
        problem: &MarginProblem<'_>,
        precision: GramPrecision,
        chosen: &[usize],
        functions: &ScoreFunctions,
        margins: &mut [f64],
        control: Control<'_>,
    ) -> Result<f64> {
        let (c, b) = (&functions.vectors()[0], functions.intercepts()[0]);
        let mut is_chosen = vec![false; margins.len()];
        chosen.iter().for_each(|&i| is_chosen[i] = true);
        // The others come first, those that support after them.
        let mut order: Vec<usize> = (0..margins.len()).filter(|&i| !is_chosen[i]).collect();
        let others = order.len();
        order.extend((0..margins.len()).filter(|&i| c[i] != 0.0));
        let terms: Vec<(usize, f64)> = (others..order.len()).map(|at| (at, c[order[at]])).collect();
        let ordered = self.rows.select(&order);
        let rows = prepare(self.kernel, &ordered, &self.settings);
        let scores = match precision {
            GramPrecision::Single => rows.combine_upto::<f32>(others, &terms, control)?,
            GramPrecision::Double => rows.combine_upto::<f64>(others, &terms, control)?,
        };
        let mut losses = 0.0;
        for (&i, f) in order.iter().zip(&scores) {
            margins[i] = problem.y[i] * (f + b);
            losses += problem.weights[i] * problem.loss.value(margins[i]);
        }
        Ok(losses)
    }
}

/// Adds the rows that pull at these margins, and of the others those that are nearest to it, `spare` for each that pulls.
fn choose_nearest(problem: &MarginProblem<'_>, margins: &[f64], spare: f64, chosen: &mut Vec<usize>) {
    let mut rests: Vec<f64> = margins.iter().map(|margin| problem.loss.rest(*margin, 0.0)).collect();
    let pulling = rests.iter().filter(|rest| **rest == 0.0).count();
    chosen.iter().for_each(|&i| rests[i] = f64::INFINITY);
    let mut others: Vec<f64> = rests.iter().copied().filter(|rest| *rest > 0.0).collect();
    let spare = (spare * pulling as f64) as usize;
    let far = match spare < others.len() {
        true => *others.select_nth_unstable_by(spare, f64::total_cmp).1,
        false => f64::INFINITY,
    };
    chosen.extend((0..rests.len()).filter(|&i| rests[i] < far));
}
