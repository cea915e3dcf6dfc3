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
/// Beside the rows that are believed to pull, others take part that are nearest to it: so many for each of them.
const SPARE: f64 = 0.1;
/// Of fewer rows that no longer matter, this part of those that took part, the tiles are kept as they are.
const DROPPED: f64 = 0.05;
/// Of more rows than this part of all, the others are not worth leaving out; where the whole matrix serves other problems too, of more
/// than half.
const MOST: f64 = 0.9;
const MOST_OF_SHARED: f64 = 0.5;
/// The part of the tolerance to which the problem over some rows is solved at most, and what is always left to the others' losses, which
/// may add the rest beside the rounding of tiles.
const PART: f64 = 0.7;
const PART_LEFT: f64 = 0.1;
/// The gap to which the first rows are solved, as more are likely to be wanted.
const ROUGH: f64 = 0.01;

impl Workspace<'_> {
    /// On which pieces of a smooth loss the rows end, as the solution over some of them, of as much weight as all, tells: that
    /// of a row's margin without the row itself is that of its margin with it. A start over all rows tells it itself.
    pub(super) fn pieces(&self, task: &Task<'_>, start: &Start) -> Result<Option<Pieces>> {
        let Task { problem, control, .. } = *task;
        let (m, few) = (problem.y.len(), (problem.y.len() / PIECES_PART).min(PIECES_MOST));
        if !problem.loss.is_smooth() || problem.variance > 0.0 || few < PIECES_LEAST {
            return Ok(None);
        }
        let (terms, intercept) = match start.w.len() == m {
            true => (start.w.iter().copied().enumerate().collect(), start.intercept),
            false => self.over_few(task, few)?,
        };
        let terms: Vec<(usize, f64)> = terms.into_iter().filter(|(_, c)| *c != 0.0).collect();
        let scores = self.with_kernel_rows(|rows| rows.combine::<f32>(&terms, control))?;
        let margins: Vec<f64> = scores.iter().zip(problem.y).map(|(f, y)| y * (f + intercept)).collect();
        let row = |(g, s): (&f64, &f64)| {
            let (_, slope, curvature) = problem.loss.jet(*g);
            (-s * slope, s * curvature)
        };
        let (a, curvature) = margins.iter().zip(problem.weights).map(row).unzip();
        Ok(Some(Pieces { margins, a, curvature }))
    }

    /// Coefficients and intercept of the solution over so many of the rows.
    fn over_few(&self, task: &Task<'_>, few: usize) -> Result<(Vec<(usize, f64)>, f64)> {
        let Task { problem, settings, control, .. } = *task;
        let chosen = random_rows(problem.y.len(), few, settings.seed);
        let (y, weights) = problem.of_rows_for_all(&chosen);
        let part = MarginProblem { y: &y, weights: &weights, ..*problem };
        let rows = self.rows.select(&chosen);
        let rough = Settings { tol: settings.tol.max(PIECES_TOL), max_iter: None, ..*settings };
        let quiet = Control { observer: None, ..control };
        let few = Workspace::new(&rows, self.kernel, rough);
        let found = few.solve(&part, GramPrecision::Single, &Start::default(), &rough, quiet)?;
        let (c, b) = found.functions.into_parts();
        Ok((chosen.into_iter().zip(c[0].iter().copied()).collect(), b[0]))
    }

    /// Newton's method over the rows that support the solution as the pieces tell, and those that prove to: first roughly, since more
    /// rows may be wanted, then as asked for.
    pub(super) fn by_supporting_rows(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        start: &Start,
        pieces: Pieces,
        settings: &Settings,
    ) -> Result<Ending> {
        let problem = task.problem;
        let (m, tol) = (problem.y.len(), settings.tol);
        let mut chosen = nearest(problem, &pieces.margins);
        let most = if self.shared { MOST_OF_SHARED } else { MOST };
        if chosen.len() < PIECES_LEAST || chosen.len() as f64 >= most * m as f64 {
            let settings = Settings { tol: tol - self.fixed(task, precision, m).unwrap_or(0.0), ..*settings };
            return self.newton_from(task, precision, start, Some(pieces), &settings);
        }
        let (mut pieces, mut start, mut held, mut steps) = (Some(pieces), start.clone(), HeldRows::default(), 0);
        let mut least = ROUGH;
        loop {
            let guess = pieces.take().map(|pieces| pieces.of_rows(&chosen));
            let fixed = self.fixed(task, precision, chosen.len());
            let (task, rounding) = (&Task { fixed: fixed.is_some(), ..*task }, fixed.unwrap_or(0.0));
            let exact = (PART * tol).min((1.0 - PART_LEFT) * tol - rounding);
            let round = Settings { tol: exact.max(least), ..*settings };
            let (found, left_out) = self.over_some(task, precision, &chosen, (&start, guess), &mut held, &round)?;
            steps += found.iterations;
            let margins = found.margins.as_deref().unwrap_or_default();
            let (c, dual) = (&found.functions.vectors()[0], found.dual.as_deref().unwrap_or_default());
            let objective = 0.5 * linalg::dot(margins, dual) + problem.risk(margins);
            // A point that is its own dual one has no gap but that of the rows, of which those that were left out have their losses.
            let own = dual.iter().zip(c).zip(problem.y).all(|((a, c), y)| *a == c * y);
            let gap = if own { problem.row_gap(margins, dual) } else { left_out + round.tol * objective };
            if found.stop != StopReason::Gap || gap <= (tol - rounding) * objective {
                return Ok(Ending { iterations: steps, ..found });
            }
            if left_out > 0.0 {
                // Rows that come back are not left out again.
                let drop = least > 0.0 && self.with_kernel_rows(|rows| rows.is_quick());
                chosen = exchanged(chosen, &nearest(problem, margins), |i| drop && c[i] == 0.0);
            }
            (start, least) = (found.start(problem), 0.0);
        }
    }

    /// Newton's method over some of the rows, on tiles of those of them that were there before and from a start over all; and what the
    /// losses of the other rows come to.
    fn over_some(
        &self,
        task: &Task<'_>,
        precision: GramPrecision,
        chosen: &[usize],
        (start, guess): (&Start, Option<Pieces>),
        held: &mut HeldRows,
        settings: &Settings,
    ) -> Result<(Ending, f64)> {
        let Task { problem, control, .. } = *task;
        let rows = self.rows.select(chosen);
        let (y, weights) = problem.of_rows(chosen);
        let part = MarginProblem { y: &y, weights: &weights, ..*problem };
        // The memory is that of this solve: others may go on beside it.
        let own = Settings { memory: settings.memory, ..self.settings };
        let some = Workspace::new(&rows, self.kernel, own).going_on_with(
            std::mem::take(&mut held.tiles),
            &held.places(chosen),
            control,
        )?;
        let task = Task { problem: &part, ..*task };
        let found = some.newton_from(&task, precision, &start.of_rows(chosen), guess, settings)?;
        *held = HeldRows { rows: chosen.to_vec(), tiles: some.tiles };
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

/// Rows and the tiles of their matrix.
#[derive(Default)]
struct HeldRows {
    rows: Vec<usize>,
    tiles: [OnceLock<Tiles>; 3],
}

impl HeldRows {
    /// The places of the rows that are the first of these, in the same order.
    fn places(&self, rows: &[usize]) -> Vec<usize> {
        let mut rows = rows.iter().peekable();
        (0..self.rows.len()).filter(|&place| rows.next_if_eq(&&self.rows[place]).is_some()).collect()
    }
}

/// The rows that pull at these margins, and of the others those that are nearest to it.
fn nearest(problem: &MarginProblem<'_>, margins: &[f64]) -> Vec<usize> {
    let rests: Vec<f64> = margins.iter().map(|margin| problem.loss.rest(*margin, 0.0)).collect();
    let mut others: Vec<f64> = rests.iter().copied().filter(|rest| *rest > 0.0).collect();
    let spare = (SPARE * (rests.len() - others.len()) as f64) as usize;
    let far = match spare < others.len() {
        true => *others.select_nth_unstable_by(spare, f64::total_cmp).1,
        false => f64::INFINITY,
    };
    (0..rests.len()).filter(|&i| rests[i] < far).collect()
}

/// The chosen rows without those that are not among these (in rising order) and may go, if that is worth it, and with those that are new.
fn exchanged(mut chosen: Vec<usize>, now: &[usize], may_go: impl Fn(usize) -> bool) -> Vec<usize> {
    let stays = |i: &usize| !may_go(*i) || now.binary_search(i).is_ok();
    let staying = chosen.iter().filter(|i| stays(i)).count();
    if staying as f64 <= (1.0 - DROPPED) * chosen.len() as f64 {
        chosen.retain(stays);
    }
    let mut sorted = chosen.clone();
    sorted.sort_unstable();
    chosen.extend(now.iter().filter(|i| sorted.binary_search(i).is_err()));
    chosen
}
