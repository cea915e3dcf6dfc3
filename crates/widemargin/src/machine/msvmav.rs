//! MSVMAv: `min_{‖w‖=1} SV(w) / θ̂²`, with the mean margin `θ̂ = mean(γ)` and the semi-variance
//! `SV = mean max(0, θ̂ − γ)²` (Qian, Ai, Zhang & Gao, "On the Optimization of Margin Distribution", IJCAI 2022).
//!
//! Not convex. The paper alternates two proximal steps, and so do we; one round (Algorithm 1, Eqs. 4-10), with
//! `A = {i : γ_i < θ̂}` and `n` rows:
//!
//! ```text
//! w' = (I + Σ_A x xᵀ/(nβ))⁻¹ (w + (θ̂/nβ) Σ_A y_i x_i)      less semi-variance
//! w  ← w' + (1/2αn) Σ y_i x_i,  w ← w/‖w‖                    more mean margin
//! ```
//!
//! from `w ∝ Σ y_i x_i`, for a given number of rounds or until neither `A` nor `w` changes (by more than a
//! millionth of the tolerance). A negative mean margin at
//! the end turns `w` round. The rounds are no descent on `SV/θ̂²`; its value after each is reported. With a kernel,
//! `w = Σ c_i φ(x_i)`, and the paper's system in `c` is solved through an equal one over the rows of `A` alone.
//!
//! A row of weight `s` counts as `s` equal rows: `n = Σ s_i`, all sums are weighted, and where the kernel system has
//! the identity for the rows' coefficients, `s` copies that share a coefficient `c` have `c²/s`.
//!
//! The model has no free intercept: the paper appends a feature 1, and a free intercept is taken as that, which the
//! model says. Every row counts as support.

use super::{Axis, Bias, Domain, Fit, Machine, Outcome, Parameter, ScoreFunctions, Series, Training, Uses};
use crate::control::{Control, Progress};
use crate::design::Design;
use crate::kernel::Kernel;
use crate::linalg::{self, Cholesky, Enough, axpy, conjugate_gradients, dot};
use crate::problem::StopReason;
use crate::{Error, Remedy, Result};

/// The machine.
///
/// α = 64 and β = 1/8 score like the SVM, over 7 data sets, both kernels and two scalings, three folds each. With α = β = 1
/// a round that holds back so little from the mean, and so much from the semi-variance, ends near the mean machine: 0.81
/// instead of 0.97 on breast cancer with the RBF kernel.
pub static MSVMAV: Machine = Machine {
    name: "msvmav",
    title: "semi-variance of the margins against their mean",
    formula: "min SV(w)/mean(γ)² over ‖w‖ = 1, SV = mean max(0, mean(γ) − γ)², by alternating proximal steps",
    paper: "M.-Z. Qian, Z. Ai, T. Zhang, W. Gao, On the Optimization of Margin Distribution, IJCAI 2022",
    parameters: &[
        Parameter::number("alpha", Domain::Positive, 64.0, "how much a round holds back from a larger mean margin"),
        Parameter::number("beta", Domain::Positive, 0.125, "how much a round holds back from a smaller semi-variance"),
        Parameter::number("iterations", Domain::Count, 100.0, "rounds at most"),
    ],
    grid: &[
        Axis::new(
            "alpha",
            Series::List(&[0.015625, 1.0, 64.0]),
            Series::powers(-10, 10, 2),
            Series::powers(-10, 10, 2),
        ),
        Axis::new("beta", Series::List(&[0.015625, 1.0, 64.0]), Series::powers(-10, 10, 2), Series::powers(-10, 10, 2)),
    ],
    intercept: Bias::without_free,
    uses: Uses::ONE_WAY,
    fit,
    ..Machine::PLAIN
};

fn fit(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    let problem = SemivarianceProblem::new(training);
    let bias = machine.intercept(training.bias);
    if training.kernel() == Kernel::Linear {
        let mut space = MsvmavWeights::new(&problem, Design::new(training.rows(), bias), training.settings.memory);
        let (w, end) = rounds(&problem, &mut space)?;
        let (weights, intercept) = space.design.split(&w);
        let solver = format!("proximal rounds ({})", space.system.words());
        let expansion = ScoreFunctions::weights(weights.to_vec(), intercept);
        return Ok(Fit { functions: expansion, outcome: end.outcome(solver) });
    }
    problem.check_work()?;
    let offset = bias.offset();
    let kernel = training.workspace.matrix(offset, 3, "msvmav", training.control)?;
    let mut space = MsvmavCoefficients::new(&problem, kernel)?;
    let (w, end) = rounds(&problem, &mut space)?;
    let intercept = offset * w.iter().sum::<f64>();
    let expansion = ScoreFunctions::coefficients(w, intercept);
    Ok(Fit { functions: expansion, outcome: end.outcome("proximal rounds (Cholesky over the rows of A)".into()) })
}

/// What every round needs to know.
struct SemivarianceProblem<'a> {
    y: Vec<f64>,
    s: &'a [f64],
    /// `n = Σ s_i`
    n: f64,
    alpha: f64,
    beta: f64,
    rounds: usize,
    /// The part of itself that `w` may still move by when it rests.
    rest: f64,
    control: Control<'a>,
}

impl<'a> SemivarianceProblem<'a> {
    fn new(training: &Training<'a>) -> Self {
        let number = |name| training.parameters.number(name);
        Self {
            y: training.signs(),
            s: training.weights,
            n: training.total(),
            alpha: number("alpha"),
            beta: number("beta"),
            rounds: (number("iterations") as usize).min(training.settings.max_iter.unwrap_or(usize::MAX)),
            rest: (REST * training.settings.asked()).max(ROUNDING),
            control: training.control,
        }
    }

    /// Refuses rows under a kernel that would take too long: one inverse, and each round a factor of about half of the rows.
    fn check_work(&self) -> Result<()> {
        let m = self.y.len() as f64;
        let work = m.powi(3) * (1.0 + self.rounds as f64 / 24.0);
        if work <= MOST_WORK {
            return Ok(());
        }
        let reason = format!(
            "{} rounds over the kernel matrix of {} rows would take {:.0} minutes or more",
            self.rounds,
            self.y.len(),
            work / (60.0 * WORK_A_SECOND)
        );
        let advice =
            [Remedy::Use("approx", "500".into()), Remedy::Lower("iterations"), Remedy::Do("train on fewer rows")];
        Err(Error::conflict(reason, advice))
    }

    /// `θ̂` of these scores.
    fn mean(&self, scores: &[f64]) -> f64 {
        self.y.iter().zip(self.s).zip(scores).map(|((y, s), f)| s * y * f).sum::<f64>() / self.n
    }

    /// `SV/θ̂²`, the leading term of the paper's bound.
    fn bound_term(&self, scores: &[f64]) -> f64 {
        let mean = self.mean(scores);
        let below = |((y, s), f): ((&f64, &f64), &f64)| s * (mean - y * f).max(0.0).powi(2);
        let semivariance = self.y.iter().zip(self.s).zip(scores).map(below).sum::<f64>() / self.n;
        semivariance / (mean * mean)
    }
}

/// A way to write `w` as a vector of numbers.
trait MsvmavSpace {
    /// `(1/n) Σ s_i y_i x_i`
    fn direction(&self) -> &[f64];
    /// Writes the score of every row and gives `‖w‖`.
    fn evaluate(&self, w: &[f64], scores: &mut [f64]) -> f64;
    /// Replaces `w` by `w'`.
    fn shrink(&mut self, problem: &SemivarianceProblem<'_>, from: &ProximalStart<'_>, w: &mut [f64]) -> Result<()>;
}

/// Where a round begins: `θ̂`, the rows of `A`, and the scores of `w`.
struct ProximalStart<'r> {
    theta: f64,
    active: &'r [bool],
    scores: &'r [f64],
}

/// Where the rounds ended.
struct End {
    margins: Vec<f64>,
    norm: f64,
    stop: StopReason,
    rounds: Vec<f64>,
    bound_term: f64,
}

impl End {
    fn outcome(self, solver: String) -> Outcome {
        let mut outcome = Outcome::plain(solver, self.stop, self.rounds.len(), self.margins, self.norm);
        // With a mean margin of zero there is no such term.
        if self.bound_term.is_finite() {
            outcome.objective = Some(self.bound_term);
            outcome.extras.push(("bound_term", self.bound_term));
        }
        outcome.rest = Some(self.stop == StopReason::Rest);
        outcome.rounds = self.rounds.iter().all(|v| v.is_finite()).then_some(self.rounds);
        outcome
    }
}

/// Multiplications that factors and inverses do in a processor second (20 Gflop/s of faer at 2.5 GHz), and the most that rounds over
/// a kernel may take: 100 rounds over 7,000 rows.
const WORK_A_SECOND: f64 = 1e10;
const MOST_WORK: f64 = 1.8e12;

/// `w` is at rest once a round moves it by less than this part of the tolerance: over all the rounds one may ask for, what
/// is left to come then stays far below it.
const REST: f64 = 1e-6;
/// Rounding errors move `w` by so much of itself.
const ROUNDING: f64 = 1e-14;

/// Algorithm 1.
fn rounds(problem: &SemivarianceProblem<'_>, space: &mut impl MsvmavSpace) -> Result<(Vec<f64>, End)> {
    let m = problem.y.len();
    let (mut w, mut scores) = (space.direction().to_vec(), vec![0.0; m]);
    let mut norm = normalise(space, &mut w, &mut scores)?;
    let (mut active, mut trace) = (vec![false; m], Vec::new());
    // Without a direction to start from no round would find one.
    let mut stop = if norm > 0.0 { StopReason::Iterations } else { StopReason::Rest };
    while norm > 0.0 && trace.len() < problem.rounds {
        let theta = problem.mean(&scores);
        let now: Vec<bool> = problem.y.iter().zip(&scores).map(|(y, f)| y * f < theta).collect();
        let mut next = w.clone();
        space.shrink(problem, &ProximalStart { theta, active: &now, scores: &scores }, &mut next)?;
        axpy(1.0 / (2.0 * problem.alpha), space.direction(), &mut next);
        norm = normalise(space, &mut next, &mut scores)?;
        let moved = w.iter().zip(&next).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        let resting = now == active && moved <= problem.rest * dot(&next, &next).sqrt();
        (w, active) = (next, now);
        let term = problem.bound_term(&scores);
        trace.push(term);
        problem.control.report(Progress { iteration: trace.len(), objective: Some(term), gap: None })?;
        if resting {
            stop = StopReason::Rest;
            break;
        }
    }
    if problem.mean(&scores) < 0.0 {
        w.iter_mut().chain(&mut scores).for_each(|v| *v = -*v);
    }
    let bound_term = problem.bound_term(&scores);
    let margins = problem.y.iter().zip(&scores).map(|(y, f)| y * f).collect();
    Ok((w, End { margins, norm: f64::from(u8::from(norm > 0.0)), stop, rounds: trace, bound_term }))
}

/// Scales `w` and its scores to `‖w‖ = 1` and gives the norm there was. A `w` of zero stays: `Σ y_i x_i = 0` leaves no
/// direction to start from, and the model that says nothing is the answer.
fn normalise(space: &mut impl MsvmavSpace, w: &mut [f64], scores: &mut [f64]) -> Result<f64> {
    let norm = space.evaluate(w, scores);
    if !norm.is_finite() {
        let reason = "the weights have no finite norm; is the kernel positive semi-definite?";
        return Err(Error::numeric("msvmav", reason));
    }
    if norm > 0.0 {
        w.iter_mut().chain(scores).for_each(|v| *v /= norm);
    } else {
        w.fill(0.0);
        scores.fill(0.0);
    }
    Ok(norm)
}

/// A sum of these lengths that is shorter than this part of them is rounding noise.
const NOISE: f64 = 1e-14;

/// `w` by its weights.
struct MsvmavWeights<'a> {
    design: Design<'a>,
    direction: Vec<f64>,
    system: StepSystem,
    /// `w'` of the last round, and how it differs from that of the round before: together, where conjugate gradients
    /// start.
    last: Option<(Vec<f64>, Vec<f64>)>,
}

/// How `(I + Σ_A x xᵀ/(nβ)) w' = rhs` is solved.
enum StepSystem {
    Factored(Factored),
    Iterative,
}

impl StepSystem {
    fn words(&self) -> &'static str {
        match self {
            Self::Factored(_) => "Cholesky with rank-one changes",
            Self::Iterative => "conjugate gradients",
        }
    }
}

/// Widest system that is ever factored: two matrices of 200 MB.
const WIDEST: usize = 5_000;

/// A Cholesky factor costs `d³/3` at the speed of matrix products, some 25 steps of conjugate gradients `100 nnz` at the
/// speed of memory, about eight times slower.
fn factoring_pays(width: usize, stored: usize) -> bool {
    width <= WIDEST && (width as f64).powi(3) <= 2400.0 * stored as f64
}

impl<'a> MsvmavWeights<'a> {
    fn new(problem: &SemivarianceProblem<'_>, mut design: Design<'a>, memory: u64) -> Self {
        let c: Vec<f64> = problem.y.iter().zip(problem.s).map(|(y, s)| s * y / problem.n).collect();
        let mut direction = design.combine(|i| c[i]);
        let lengths: f64 = design.norms2().iter().zip(&c).map(|(q, c)| q.sqrt() * c.abs()).sum();
        if dot(&direction, &direction).sqrt() <= NOISE * lengths {
            direction.fill(0.0);
        }
        let system = if factoring_pays(design.width(), design.stored()) {
            StepSystem::Factored(Factored::new(design.width(), problem.y.len()))
        } else {
            design = design.with_columns(memory);
            StepSystem::Iterative
        };
        Self { design, direction, system, last: None }
    }
}

impl MsvmavSpace for MsvmavWeights<'_> {
    fn direction(&self) -> &[f64] {
        &self.direction
    }

    fn evaluate(&self, w: &[f64], scores: &mut [f64]) -> f64 {
        self.design.scores(w, scores);
        dot(w, w).sqrt()
    }

    fn shrink(&mut self, problem: &SemivarianceProblem<'_>, from: &ProximalStart<'_>, w: &mut [f64]) -> Result<()> {
        let ProximalStart { theta, active, .. } = from;
        let nb = problem.n * problem.beta;
        let c: Vec<f64> = problem.s.iter().zip(*active).map(|(s, &on)| if on { s / nb } else { 0.0 }).collect();
        let pull: Vec<f64> = c.iter().zip(&problem.y).map(|(c, y)| theta * c * y).collect();
        let mut rhs = self.design.combine(|i| pull[i]);
        axpy(1.0, w, &mut rhs);
        match &mut self.system {
            StepSystem::Factored(factored) => {
                factored.follow(&self.design, &c);
                factored.solve(&self.design, &c, &rhs, w)
            }
            StepSystem::Iterative => {
                if let Some((last, change)) = &self.last {
                    w.copy_from_slice(last);
                    axpy(1.0, change, w);
                }
                iterate(&self.design, &c, &rhs, w, problem.control)?;
                let change = self.last.as_ref().map(|(last, _)| w.iter().zip(last).map(|(a, b)| a - b).collect());
                self.last = Some((w.to_vec(), change.unwrap_or_else(|| vec![0.0; w.len()])));
                Ok(())
            }
        }
    }
}

/// Residual, relative to the right-hand side, at which a solution counts as one. All eigenvalues of the system are 1 or
/// above, so the error of `w'` is no larger than the residual.
const RESIDUAL: f64 = 1e-10;

/// Solves `(I + Xᵀ diag(c) X) w = rhs` by conjugate gradients with the diagonal as preconditioner, from the given `w`.
fn iterate(design: &Design<'_>, c: &[f64], rhs: &[f64], w: &mut [f64], control: Control<'_>) -> Result<()> {
    let diagonal = design.curve_diagonal(c);
    let apply = |v: &[f64], out: &mut [f64]| {
        control.check()?;
        out.copy_from_slice(&design.curve(c, v));
        axpy(1.0, v, out);
        Ok(())
    };
    let scale = |r: &[f64], z: &mut [f64]| {
        for ((z, r), d) in z.iter_mut().zip(r).zip(&diagonal) {
            *z = r / (1.0 + d);
        }
    };
    conjugate_gradients(rhs.len(), apply, scale, rhs, w, Enough::Residual(RESIDUAL), 10_000)?;
    Ok(())
}

/// `I + Σ_A x xᵀ/(nβ)` and its Cholesky factor, both following `A`.
struct Factored {
    /// `c_i` of the rows in the sum, 0 for the others.
    inside: Vec<f64>,
    sum: Vec<f64>,
    /// Rows added to or taken from the sum since it was formed from nothing.
    drift: usize,
    factor: Option<Cholesky>,
    /// Rank-one changes since the last factorisation.
    changes: usize,
    width: usize,
}

/// A round of rank-one changes costs less than a new factor up to this part of the width. By the count of operations it
/// is a third; factorising keeps the processor busier, which moves the point down.
const RANK_ONE_SHARE: usize = 10;

impl Factored {
    fn new(width: usize, rows: usize) -> Self {
        Self { inside: vec![0.0; rows], sum: Vec::new(), drift: usize::MAX, factor: None, changes: 0, width }
    }

    /// Brings sum and factor to the rows with `c_i > 0` (Eqs. 7-8, on the factor instead of the inverse).
    fn follow(&mut self, design: &Design<'_>, c: &[f64]) {
        let gone = || (0..c.len()).filter(|&i| self.inside[i] > 0.0 && c[i] == 0.0).map(|i| (i, self.inside[i]));
        let come = || (0..c.len()).filter(|&i| self.inside[i] == 0.0 && c[i] > 0.0).map(|i| (i, c[i]));
        let (gone, come): (Vec<_>, Vec<_>) = (gone().collect(), come().collect());
        let changed = gone.len() + come.len();
        self.drift = self.drift.saturating_add(changed);
        // Forming the sum anew costs one addition a row of A: once as many were made since, it is as cheap, and rounding
        // errors have no chance to pile up.
        if self.drift > c.iter().filter(|&&c| c > 0.0).count() {
            self.form(design, c);
        } else {
            design.add_outer(&gone, -1.0, &mut self.sum);
            design.add_outer(&come, 1.0, &mut self.sum);
        }
        self.inside.copy_from_slice(c);
        self.changes += changed;
        if changed > self.width / RANK_ONE_SHARE || self.changes > self.width {
            self.factor = None;
        }
        if let Some(factor) = &mut self.factor {
            let mut row = vec![0.0; self.width];
            let mut change = |list: &[(usize, f64)], add| {
                list.iter().all(|&(i, c)| {
                    design.spread(i, c.sqrt(), &mut row);
                    factor.rank_one(&mut row, add).is_ok()
                })
            };
            // Additions first: what is then taken away is surely there.
            if !(change(&come, true) && change(&gone, false)) {
                self.factor = None;
            }
        }
    }

    /// The sum from nothing.
    fn form(&mut self, design: &Design<'_>, c: &[f64]) {
        self.sum.clear();
        self.sum.resize(self.width * self.width, 0.0);
        self.sum.iter_mut().step_by(self.width + 1).for_each(|v| *v = 1.0);
        let list: Vec<_> = c.iter().copied().enumerate().filter(|&(_, c)| c > 0.0).collect();
        self.drift = 0;
        design.add_outer(&list, 1.0, &mut self.sum);
    }

    /// Solves, refines once, and starts over with a new sum and factor should the residual show drift.
    fn solve(&mut self, design: &Design<'_>, c: &[f64], rhs: &[f64], w: &mut [f64]) -> Result<()> {
        let allowed = RESIDUAL * dot(rhs, rhs).sqrt();
        if self.try_solve(rhs, w)? > allowed {
            self.form(design, c);
            self.factor = None;
            self.try_solve(rhs, w)?;
        }
        Ok(())
    }

    /// Solves with the factor at hand, or a new one, and gives the residual after one refinement.
    fn try_solve(&mut self, rhs: &[f64], w: &mut [f64]) -> Result<f64> {
        let factor = match &mut self.factor {
            Some(factor) => factor,
            none => {
                self.changes = 0;
                none.insert(Cholesky::new(self.sum.clone(), self.width).map_err(not_positive)?)
            }
        };
        let mut residual = vec![0.0; w.len()];
        let mut measure = |w: &[f64]| -> Vec<f64> {
            linalg::symmetric_product(&self.sum, w, &mut residual);
            rhs.iter().zip(&residual).map(|(b, a)| b - a).collect()
        };
        w.copy_from_slice(rhs);
        factor.solve(w);
        let mut correction = measure(w);
        factor.solve(&mut correction);
        axpy(1.0, &correction, w);
        let left = measure(w);
        Ok(dot(&left, &left).sqrt())
    }
}

fn not_positive(failure: linalg::NotPositive) -> Error {
    let reason = format!(
        "pivot {} of a positive definite matrix is not positive: values too large, or a kernel that is not positive \
         semi-definite",
        failure.pivot
    );
    Error::numeric("msvmav", reason)
}

/// `w = Σ c_i φ(x_i)` by its coefficients.
///
/// With `D = diag(s)`, `P = K + D⁻¹` and `δ = c' − c`, the paper's system is
/// `(P + K_Aᵀ D_A K_A/(nβ)) δ = K_Aᵀ D_A (θ̂ y − f)_A/(nβ)`. The push-through identity turns it into
/// `δ = P⁻¹K_Aᵀ u`, `(nβ D_A⁻¹ + H_AA) u = (θ̂ y − f)_A` with `H = K P⁻¹ K = K − D⁻¹ + D⁻¹P⁻¹D⁻¹`, and
/// `P⁻¹K = I − P⁻¹D⁻¹`: one inverse for all rounds, then a factor of a quarter of the matrix where `A` changes.
struct MsvmavCoefficients {
    kernel: Vec<f64>,
    /// `P⁻¹`
    inverse: Vec<f64>,
    direction: Vec<f64>,
    active: Vec<bool>,
    factor: Option<Cholesky>,
}

impl MsvmavCoefficients {
    fn new(problem: &SemivarianceProblem<'_>, kernel: Vec<f64>) -> Result<Self> {
        let m = problem.y.len();
        let mut system = kernel.clone();
        system.iter_mut().step_by(m + 1).zip(problem.s).for_each(|(v, s)| *v += 1.0 / s);
        let inverse = Cholesky::new(system, m).map_err(not_positive)?.inverse();
        let direction = problem.y.iter().zip(problem.s).map(|(y, s)| s * y / problem.n).collect();
        Ok(Self { kernel, inverse, direction, active: Vec::new(), factor: None })
    }

    /// Factors `nβ D_A⁻¹ + H_AA`.
    fn factor(&mut self, problem: &SemivarianceProblem<'_>, rows: &[usize]) -> Result<Cholesky> {
        let (m, nb) = (problem.y.len(), problem.n * problem.beta);
        let mut block = Vec::with_capacity(rows.len() * rows.len());
        for &i in rows {
            let s = problem.s[i];
            let (kernel, inverse) = (&self.kernel[i * m..(i + 1) * m], &self.inverse[i * m..(i + 1) * m]);
            block.extend(rows.iter().map(|&j| kernel[j] + inverse[j] / (s * problem.s[j])));
        }
        for (k, &i) in rows.iter().enumerate() {
            block[k * rows.len() + k] += (nb - 1.0) / problem.s[i];
        }
        Cholesky::new(block, rows.len()).map_err(not_positive)
    }
}

impl MsvmavSpace for MsvmavCoefficients {
    fn direction(&self) -> &[f64] {
        &self.direction
    }

    fn evaluate(&self, c: &[f64], scores: &mut [f64]) -> f64 {
        linalg::matrix_product(&self.kernel, c, scores);
        let lengths: f64 = c.iter().enumerate().map(|(i, c)| c.abs() * self.kernel[i * scores.len() + i].sqrt()).sum();
        let norm2 = dot(c, scores);
        // Below zero by more than rounding can do, the square root has no number: that is the caller's to say.
        let noise = (NOISE * lengths * lengths).abs();
        if norm2.abs() <= noise { 0.0 } else { norm2.sqrt() }
    }

    fn shrink(&mut self, problem: &SemivarianceProblem<'_>, from: &ProximalStart<'_>, c: &mut [f64]) -> Result<()> {
        let &ProximalStart { theta, active, scores } = from;
        let rows: Vec<usize> = (0..active.len()).filter(|&i| active[i]).collect();
        if self.active != active || self.factor.is_none() {
            problem.control.check()?;
            self.factor = Some(self.factor(problem, &rows)?);
            self.active = active.to_vec();
        }
        let Some(factor) = &self.factor else { return Ok(()) };
        let mut u: Vec<f64> = rows.iter().map(|&i| theta * problem.y[i] - scores[i]).collect();
        factor.solve(&mut u);
        let mut scaled = vec![0.0; c.len()];
        rows.iter().zip(&u).for_each(|(&i, u)| scaled[i] = u / problem.s[i]);
        let mut back = vec![0.0; c.len()];
        linalg::matrix_product(&self.inverse, &scaled, &mut back);
        rows.iter().zip(&u).for_each(|(&i, u)| c[i] += u);
        axpy(-1.0, &back, c);
        Ok(())
    }
}
