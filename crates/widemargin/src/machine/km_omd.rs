//! KM-OMD: `min_γ γᵀ((1−λ) Y G Y + λ I) γ` over `γ ≥ 0`, `Σ_{y=+1} γ = Σ_{y=−1} γ = 1`; `f(x) = Σ y_i γ_i k(x_i, x) − b`
//! with `b = ½ γᵀ G Y γ` (Aiolli, Da San Martino & Sperduti, "A Kernel Method for the Optimization of the Margin
//! Distribution", ICANN 2008). 90 % sure of the form.
//!
//! `λ = 0` is the hard-margin SVM (the nearest points of the two convex hulls), `λ = 1` the difference of the class
//! means. Solved by steps between two rows of one class until the duality gap is within the tolerance: linear rows by
//! sweeps over random pairs while the gap falls, then, and with a kernel, pairs chosen by second-order information (Fan,
//! Chen & Lin 2005). Two numbers lie below the optimum, and the larger is the dual objective reported: with `h = Mγ`,
//! where `M` is the matrix above, `(min₊ h + min₋ h)²/F` (0 if the sum is negative); and for `λ > 0` the minimum over the
//! simplices with the first term replaced by its tangent. Kernel rows are made when needed, so any number of rows will do.
//!
//! A row of weight `s` counts as `s` equal rows which share its `γ`: `λγ²` becomes `λγ²/s`.
//!
//! Intercept: `free` is the method's own threshold `b`, between the two points; `none` leaves it out. An appended
//! feature gets the weight `B (Σ₊γ − Σ₋γ) = 0`, so a number means none, and the model says so.

use super::{
    Axis, Bias, Domain, DualPoint, Fit, Machine, Outcome, Parameter, ScoreFunctions, Series, Statement, Training, Uses,
    mamc,
};
use crate::control::Progress;
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows, RowStore};
use crate::linalg::dot;
use crate::problem::{Certificate, StopReason};
use crate::random::Random;
use crate::solver::certify::ROUNDING;
use crate::{Error, Result, with_rows};

/// The machine.
pub static KM_OMD: Machine = Machine {
    name: "km-omd",
    title: "kernel method for the optimization of the margin distribution",
    formula: "min γᵀ((1−λ)YGY + λI)γ over one simplex a class",
    paper: "F. Aiolli, G. Da San Martino, A. Sperduti, A Kernel Method for the Optimization of the Margin Distribution, ICANN 2008",
    parameters: &[Parameter::number(
        "lambda",
        Domain::Unit,
        0.1,
        "from the smallest margin (0) to the mean margin (1)",
    )],
    grid: &[Axis::new(
        "lambda",
        Series::List(&[0.0, 0.2, 0.6]),
        Series::steps(0.0, 1.0, 0.1),
        Series::steps(0.0, 1.0, 0.1),
    )
    .rougher()],
    intercept: Bias::free_or_none,
    uses: Uses::ONE_WAY,
    fit,
    statement: |p, _| Some(Statement::Hulls { lambda: p.get("lambda")? }),
    ..Machine::PLAIN
};

fn fit(_: &Machine, training: &Training<'_>) -> Result<Fit> {
    let mut problem = PairProblem::new(training);
    let (stop, steps) = problem.solve(training)?;
    let (expansion, mut scores) = problem.expand(training)?;
    if let (Some(span), ScoreFunctions::Linear { weights, .. }) = (training.span, &expansion) {
        // What is written are coefficients of landmark rows: they score by kernel products.
        scores = span.scores(&[span.landmarks.coefficients(&weights[0])])?;
        problem.look(&scores)?;
    }
    let threshold = if training.bias == Bias::Free { 0.5 * dot(&problem.gamma, &scores) } else { 0.0 };
    let margins = problem.y.iter().zip(&scores).map(|(y, f)| y * (f - threshold)).collect();
    let norm2: f64 = problem.y.iter().zip(&problem.gamma).zip(&scores).map(|((y, g), f)| y * g * f).sum();
    let mut outcome = Outcome::plain("pairwise steps".into(), stop, steps, margins, norm2.max(0.0).sqrt());
    let certificate = problem.certificate();
    outcome.objective = Some(certificate.primal);
    outcome.support = problem.gamma.iter().filter(|&&g| g > 0.0).count();
    if let Kernel::Sigmoid { .. } = training.kernel() {
        // Not positive semidefinite: the steps came to rest, and nothing bounds the optimum.
        outcome.rest = Some(stop == StopReason::Gap);
    } else {
        outcome = outcome.certified(Some(certificate));
        outcome.dual = Some(DualPoint::Variables(vec![problem.gamma]));
    }
    Ok(Fit { functions: shifted(expansion, -threshold), outcome })
}

/// The score function with this much added to its intercept.
fn shifted(mut functions: ScoreFunctions, by: f64) -> ScoreFunctions {
    let (ScoreFunctions::Linear { intercepts, .. } | ScoreFunctions::Kernel { intercepts, .. }) = &mut functions;
    intercepts[0] += by;
    functions
}

/// An objective of which rounding may have made this part is not known: it has less than four digits, and a gap of the default
/// tolerance would say nothing.
const HIDDEN: f64 = 1e-4;
/// Sweeps between two looks at the gap: a look computes all scores anew and sorts them, about what a sweep costs.
const SWEEPS: usize = 4;

/// The two rows of a step, the lower one of `h` first.
struct Pair {
    up: usize,
    down: usize,
    curvature: f64,
}

/// `min F(γ) = γᵀMγ`, `M = (1−λ) Y G Y + λ diag(1/s)`.
struct PairProblem<'a> {
    y: Vec<f64>,
    s: &'a [f64],
    lambda: f64,
    gamma: Vec<f64>,
    /// `h = M γ`, half the gradient.
    h: Vec<f64>,
    /// `M_ii`
    diagonal: Vec<f64>,
    /// Whether scores come from a weight vector.
    by_weights: bool,
}

impl<'a> PairProblem<'a> {
    /// Starts at equal weight for all rows of a class: the optimum for `λ = 1`.
    fn new(training: &Training<'a>) -> Self {
        let (y, s) = (training.signs(), training.weights);
        let total = |sign: f64| -> f64 { y.iter().zip(s).filter(|(y, _)| **y == sign).map(|(_, s)| s).sum() };
        let (positive, negative) = (total(1.0), total(-1.0));
        let gamma = y.iter().zip(s).map(|(&y, s)| s / if y > 0.0 { positive } else { negative }).collect();
        let lambda = training.parameters.number("lambda");
        let by_weights = training.kernel() == Kernel::Linear && training.span.is_none();
        Self { y, s, lambda, gamma, h: Vec::new(), diagonal: Vec::new(), by_weights }
    }

    fn expand(&self, training: &Training<'_>) -> Result<(ScoreFunctions, Vec<f64>)> {
        mamc::expand(training, Bias::None, self.y.iter().zip(&self.gamma).map(|(y, g)| y * g).collect())
    }

    /// `h` from nothing.
    fn refresh(&mut self, training: &Training<'_>) -> Result<()> {
        let (_, scores) = self.expand(training)?;
        self.look(&scores)
    }

    /// `h` where the rows have these scores.
    fn look(&mut self, scores: &[f64]) -> Result<()> {
        let entry = |i: usize| (1.0 - self.lambda) * self.y[i] * scores[i] + self.lambda * self.gamma[i] / self.s[i];
        self.h = (0..scores.len()).map(entry).collect();
        if self.h.iter().chain(&self.diagonal).any(|v| !v.is_finite()) {
            let reason = "inner products of rows are too large for numbers: scale the features";
            return Err(Error::numeric("km-omd", reason));
        }
        Ok(())
    }

    /// The lowest `h` of each class: positive, negative.
    fn lowest(&self) -> [(usize, f64); 2] {
        let mut lowest = [(0, f64::INFINITY); 2];
        for (i, (&h, &y)) in self.h.iter().zip(&self.y).enumerate() {
            let class = &mut lowest[usize::from(y < 0.0)];
            if h < class.1 {
                *class = (i, h);
            }
        }
        lowest
    }

    fn certificate(&self) -> Certificate {
        self.certificate_from(self.lowest(), self.tangent_bound())
    }

    /// Below the optimum: `(1−λ)‖w(γ')‖²` replaced by its tangent at `γ`, and what is left minimised over both simplices,
    /// row by row `γ'_i = s_i max(0, μ − a_i)/λ` with `a_i = (1−λ) y_i f(x_i)` and `μ` such that they add up to 1.
    fn tangent_bound(&self) -> f64 {
        if self.lambda == 0.0 {
            return 0.0;
        }
        let a: Vec<f64> = (0..self.h.len()).map(|i| self.h[i] - self.lambda * self.gamma[i] / self.s[i]).collect();
        let fill = |sign: f64| {
            let mut class: Vec<(f64, f64)> =
                (0..a.len()).filter(|&i| self.y[i] == sign).map(|i| (a[i], self.s[i])).collect();
            class.sort_by(|p, q| p.0.total_cmp(&q.0));
            let (mut weight, mut sum, mut level) = (0.0, self.lambda, f64::INFINITY);
            for (a, s) in &class {
                if *a >= level {
                    break;
                }
                weight += s;
                sum += s * a;
                level = sum / weight;
            }
            // By Lagrange's function, in which nothing large cancels: any level gives a bound.
            2.0 * level - class.iter().map(|(a, s)| s * (level - a).max(0.0).powi(2)).sum::<f64>() / self.lambda
        };
        fill(1.0) + fill(-1.0) - dot(&self.gamma, &a)
    }

    /// What rounding may have done to an objective. A sum of weights loses less than one of kernel values.
    fn noise(&self, objective: f64) -> f64 {
        let largest = self.diagonal.iter().fold(0.0f64, |a, &b| a.max(b));
        match self.by_weights {
            true => ROUNDING * ((largest * objective).sqrt() + ROUNDING * largest),
            false => ROUNDING * largest,
        }
    }

    /// Whether the hulls meet as far as rounding lets one see: no step leads further.
    fn is_hidden(&self) -> bool {
        let objective = dot(&self.gamma, &self.h).max(0.0);
        self.noise(objective) >= HIDDEN * objective
    }

    fn certificate_from(&self, lowest: [(usize, f64); 2], bound: f64) -> Certificate {
        let objective = dot(&self.gamma, &self.h).max(0.0);
        let reach = (lowest[0].1 + lowest[1].1).max(0.0);
        let noise = self.noise(objective);
        // Hulls that meet, as far as one can see: what is left is made of rounding errors, and nothing is claimed of it.
        if noise >= HIDDEN * objective {
            return Certificate { primal: objective, dual: if objective > 0.0 { 0.0 } else { -noise } };
        }
        let dual = ((reach * (reach / objective)).max(bound) - noise).clamp(0.0, objective);
        Certificate { primal: objective, dual }
    }

    /// Steps until the gap is closed; afterwards `h` is fresh. Gives the number of steps.
    fn solve(&mut self, training: &Training<'_>) -> Result<(StopReason, usize)> {
        let rows = KernelRows::new(training.kernel(), training.rows(), 0.0);
        let m = self.y.len();
        self.diagonal = (0..m).map(|i| (1.0 - self.lambda) * rows.diagonal(i) + self.lambda / self.s[i]).collect();
        self.refresh(training)?;
        // A step costs a pass over `m` numbers: about 10¹⁰ of them are half a minute. With λ = 0 and hulls that meet there
        // is nothing to find, and hundreds of steps a row do not find it.
        let more = (10_000_000_000 / m.max(1000)).min(500 * m.max(100));
        let (tol, mut steps) = (training.settings.tol, 0);
        if training.kernel() == Kernel::Linear {
            steps = self.sweep(training, training.settings.max_iter.unwrap_or(2000 * m))?;
        }
        let limit = training.settings.max_iter.unwrap_or(steps + more);
        let mut source = None;
        // Rounding errors in the running `h` can hide a gap: look again with a fresh one.
        for _ in 0..5 {
            if self.certificate().gap() <= tol {
                return Ok((StopReason::Gap, steps));
            }
            let source = match &mut source {
                Some(source) => source,
                none => none.insert(RowStore::new(&rows, training.settings.memory, training.control)),
            };
            while steps < limit && self.step(source, tol)? {
                steps += 1;
                if steps % 1024 == 0 {
                    let now = self.certificate();
                    let progress = Progress { iteration: steps, objective: Some(now.primal), gap: Some(now.gap()) };
                    training.control.report(progress)?;
                    if now.gap() <= tol || self.is_hidden() {
                        break;
                    }
                }
            }
            self.refresh(training)?;
            if steps >= limit || self.is_hidden() {
                break;
            }
        }
        Ok(match self.certificate().gap() <= tol {
            true => (StopReason::Gap, steps),
            false if steps >= limit && !self.is_hidden() => (StopReason::Iterations, steps),
            false => (StopReason::Precision, steps),
        })
    }

    /// Linear rows: steps between random pairs, with `w = Σ y_i γ_i x_i` at hand, so that a step costs two rows instead of
    /// a pass over all. Ends at the tolerance, or when `λ` is too small for this to get there. Gives the number of steps.
    fn sweep(&mut self, training: &Training<'_>, limit: usize) -> Result<usize> {
        let m = self.y.len();
        let classes = [1.0, -1.0].map(|sign| (0..m).filter(|&i| self.y[i] == sign).collect::<Vec<_>>());
        let mut random = Random::new(training.settings.seed, 0);
        let mut order: Vec<usize> = (0..m).collect();
        let (mut steps, mut last) = (0, f64::INFINITY);
        while steps < limit {
            let now = self.certificate();
            // What a round gained against what is missing: below this part, better chosen pairs do better.
            if now.gap() <= training.settings.tol || last - now.primal < 2e-4 * now.gap() * now.primal {
                break;
            }
            last = now.primal;
            let (ScoreFunctions::Linear { weights, .. }, _) = self.expand(training)? else { break };
            let mut w = weights.into_iter().next().unwrap_or_default();
            let mut spread = vec![0.0; w.len()];
            for _ in 0..SWEEPS {
                random.shuffle(&mut order);
                for chunk in order.chunks(1024) {
                    training.control.check()?;
                    for &i in chunk {
                        let class = &classes[usize::from(self.y[i] < 0.0)];
                        let j = class[random.below(class.len())];
                        with_rows!(training.rows(), x => self.exchange(x, i, j, &mut w, &mut spread));
                    }
                }
            }
            steps += SWEEPS * m;
            self.refresh(training)?;
            let progress = Progress { iteration: steps, objective: Some(now.primal), gap: Some(now.gap()) };
            training.control.report(progress)?;
        }
        Ok(steps)
    }

    /// The best step between rows `i` and `j` of one class; `spread` is all zeros, before and after.
    fn exchange(&mut self, x: &impl Rows, i: usize, j: usize, w: &mut [f64], spread: &mut [f64]) {
        let (l, y) = (1.0 - self.lambda, self.y[i]);
        let slope = |i: usize| l * y * x.dot(i, w) + self.lambda * self.gamma[i] / self.s[i];
        let fall = slope(j) - slope(i);
        if i == j || (self.gamma[i] == 0.0 && fall <= 0.0) || (self.gamma[j] == 0.0 && fall >= 0.0) {
            return;
        }
        x.visit(i, |c, v| spread[c] = v);
        let curvature = self.diagonal[i] + self.diagonal[j] - 2.0 * l * x.dot(j, spread);
        x.visit(i, |c, _| spread[c] = 0.0);
        let size = fall / curvature.max(1e-12 * self.diagonal[i].max(f64::MIN_POSITIVE));
        // Whole transfers leave an exact zero.
        let size = size.clamp(-self.gamma[i], self.gamma[j]);
        self.gamma[i] = if size == -self.gamma[i] { 0.0 } else { self.gamma[i] + size };
        self.gamma[j] = if size == self.gamma[j] { 0.0 } else { self.gamma[j] - size };
        x.axpy(i, size * y, w);
        x.axpy(j, -size * y, w);
    }

    /// One step; `false` when the gap is closed or no step moves anything.
    fn step(&mut self, source: &mut RowStore<'_, f64>, tol: f64) -> Result<bool> {
        let lowest = self.lowest();
        // The tighter bound takes a sort: it is looked at now and then, by the caller.
        if self.certificate_from(lowest, 0.0).gap() <= tol {
            return Ok(false);
        }
        // The class whose rows in use lie further above its lowest.
        let spread = |class: usize| {
            let used = (0..self.h.len()).filter(|&i| self.y[i] == self.y[lowest[class].0] && self.gamma[i] > 0.0);
            used.map(|i| self.h[i]).fold(f64::NEG_INFINITY, f64::max) - lowest[class].1
        };
        let up = lowest[usize::from(spread(1) > spread(0))].0;
        let Some(pair) = self.partner(up, source)? else { return Ok(false) };
        let size = ((self.h[pair.down] - self.h[pair.up]) / pair.curvature).min(self.gamma[pair.down]);
        if size <= 0.0 || self.gamma[pair.up] + size == self.gamma[pair.up] {
            return Ok(false);
        }
        source.hold(&[pair.up, pair.down])?;
        let (up_row, down_row) = (source.row(pair.up), source.row(pair.down));
        self.gamma[pair.up] += size;
        self.gamma[pair.down] = if size == self.gamma[pair.down] { 0.0 } else { self.gamma[pair.down] - size };
        let factor = size * (1.0 - self.lambda) * self.y[pair.up];
        for (((h, y), a), b) in self.h.iter_mut().zip(&self.y).zip(up_row).zip(down_row) {
            *h += factor * y * (a - b);
        }
        self.h[pair.up] += size * self.lambda / self.s[pair.up];
        self.h[pair.down] -= size * self.lambda / self.s[pair.down];
        Ok(true)
    }

    /// The row of the same class from which a step towards `up` gains most.
    fn partner(&self, up: usize, source: &mut RowStore<'_, f64>) -> Result<Option<Pair>> {
        source.hold(&[up])?;
        let up_row = source.row(up);
        let floor = 1e-12 * self.diagonal[up].max(f64::MIN_POSITIVE);
        let (mut best, mut most) = (None, 0.0);
        for (j, product) in up_row.iter().enumerate() {
            let fall = self.h[j] - self.h[up];
            if self.y[j] != self.y[up] || self.gamma[j] <= 0.0 || fall <= 0.0 {
                continue;
            }
            let curvature = self.diagonal[up] + self.diagonal[j] - 2.0 * (1.0 - self.lambda) * product;
            let curvature = curvature.max(floor);
            let gain = fall * fall / curvature;
            if gain > most {
                (best, most) = (Some((j, curvature)), gain);
            }
        }
        Ok(best.map(|(down, curvature)| Pair { up, down, curvature }))
    }
}
