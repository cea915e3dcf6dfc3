//! FMM, fast margin maximisation by dual acceleration: `max_{‖w‖=1} min_i γ_i`, the hard margin, in `O(1/t²)` after `t`
//! rounds (Ji, Srebro & Telgarsky, "Fast Margin Maximization via Dual Acceleration", ICML 2021). 85 % sure of the form.
//!
//! With `z_i = −y_i x_i / R`, `R = max ‖x_i‖`, from `w_0 = g_{−1} = 0`, `q_0 = 1/n`:
//!
//! ```text
//! g_t = λ_t (g_{t−1} + Zᵀq_t),  w_{t+1} = w_t − (g_t + Zᵀq_t),  q_{t+1} = softmax(Z w_{t+1}),  λ_t = t/(t+1)
//! ```
//!
//! `w_t` is `−Zᵀ` times a sum of distributions over the rows; divided by its total, that sum is a distribution `q̄` and
//! `‖Σ q̄_i y_i x_i‖` lies above every margin there is. So each round comes with a certificate: `objective` is that
//! bound, `dual_objective` the smallest margin of `w/‖w‖`, and `gap` how far they are apart; rounds end early once it is
//! within the tolerance. Rows that cannot be separated leave the bound near zero and the margin negative.
//!
//! A row of weight `s` counts as `s` equal rows: the softmax counts it `s` times. No free intercept here: the constant
//! feature 1 stands for it, and the model says so. The model is scaled to `‖w‖ = 1`.

use super::{Bias, Domain, DualPoint, Fit, Machine, Outcome, Parameter, ScoreFunctions, Statement, Training, Uses};
use crate::Result;
use crate::control::Progress;
use crate::design::Design;
use crate::kernel::{Kernel, KernelRows, Span};
use crate::linalg::{axpy, dot, matrix_product};
use crate::problem::StopReason;

/// The machine.
pub static FMM: Machine = Machine {
    name: "fmm",
    title: "hard margin by dual acceleration",
    formula: "max min γ over ‖w‖ = 1",
    paper: "Z. Ji, N. Srebro, M. Telgarsky, Fast Margin Maximization via Dual Acceleration, ICML 2021",
    parameters: &[Parameter::number("rounds", Domain::Count, 1000.0, "rounds at most")],
    intercept: Bias::without_free,
    uses: Uses::ONE_WAY,
    fit,
    statement: |_, _| Some(Statement::SmallestMargin),
    ..Machine::PLAIN
};

fn fit(machine: &Machine, training: &Training<'_>) -> Result<Fit> {
    let bias = machine.intercept(training.bias);
    if training.kernel() == Kernel::Linear {
        let design = Design::new(training.rows(), bias);
        let space = FmmSpace {
            width: design.width(),
            radius: design.norms2().iter().fold(0.0f64, |a, &b| a.max(b)).sqrt(),
            combine: |c: Vec<f64>| design.combine(|i| c[i]),
            evaluate: |w: &[f64], scores: &mut [f64]| {
                design.scores(w, scores);
                dot(w, w).sqrt()
            },
        };
        let Ended { w, q, mut outcome } = accelerate(training, space)?;
        let (weights, intercept) = design.split(&w);
        if let Some(span) = training.span {
            over_landmarks(training, span, (weights, intercept), &q, bias.feature(), &mut outcome)?;
        }
        outcome.dual = Some(DualPoint::Variables(vec![q]));
        return Ok(Fit { functions: ScoreFunctions::weights(weights.to_vec(), intercept), outcome });
    }
    let offset = bias.offset();
    let rows = KernelRows::new(training.kernel(), training.rows(), 0.0);
    let radius = (0..rows.len()).map(|i| rows.diagonal(i) + offset).fold(0.0f64, f64::max).sqrt();
    let kernel = training.workspace.matrix(0.0, 1, "fmm", training.control)?;
    // `B²` never meets kernel values: beside a large one they would lose their digits.
    let evaluate = |c: &[f64], scores: &mut [f64]| {
        matrix_product(&kernel, c, scores);
        let (norm2, total) = (dot(c, scores).max(0.0), c.iter().sum::<f64>());
        scores.iter_mut().for_each(|score| *score += offset * total);
        (norm2 + offset * total * total).sqrt()
    };
    let space = FmmSpace { width: rows.len(), radius, combine: |c| c, evaluate };
    let Ended { w: c, q, mut outcome } = accelerate(training, space)?;
    let intercept = offset * c.iter().sum::<f64>();
    if let Kernel::Sigmoid { .. } = training.kernel() {
        // Not positive semidefinite: the rounds may end, but nothing bounds the margins.
        outcome.rest = Some(outcome.stop == StopReason::Gap);
        (outcome.dual_objective, outcome.gap) = (None, None);
    } else if c.iter().all(|c| *c == 0.0) {
        outcome.dual = Some(DualPoint::Variables(vec![q]));
    } else {
        // The coefficients are the distribution, times a number.
        let distribution = c.iter().zip(training.signs()).map(|(c, y)| c * y).collect();
        outcome.dual = Some(DualPoint::Variables(vec![distribution]));
    }
    Ok(Fit { functions: ScoreFunctions::coefficients(c, intercept), outcome })
}

/// A way to write `w` as a vector of numbers.
struct FmmSpace<C, E> {
    /// Length of that vector.
    width: usize,
    /// Above every `‖φ(x_i)‖`, as small as can be.
    radius: f64,
    /// `Σ c_i φ(x_i)`
    combine: C,
    /// Writes the score of every row and gives `‖w‖`.
    evaluate: E,
}

/// A sum of vectors of length 1 or below that is shorter than this part of their number is rounding noise.
const NOISE: f64 = 1e-14;

/// Where the rounds ended.
struct Ended {
    /// Of norm 1.
    w: Vec<f64>,
    /// `q̄`
    q: Vec<f64>,
    outcome: Outcome,
}

/// Bound and margin of the coefficients of landmark rows, which are what is written: by kernel products.
fn over_landmarks(
    training: &Training<'_>,
    span: &Span<'_>,
    (weights, intercept): (&[f64], f64),
    q: &[f64],
    constant: Option<f64>,
    outcome: &mut Outcome,
) -> Result<()> {
    let (y, c) = (training.signs(), span.landmarks.coefficients(weights));
    let scores: Vec<f64> = span.scores(std::slice::from_ref(&c))?.iter().map(|f| f + intercept).collect();
    let signed: Vec<f64> = q.iter().zip(&y).map(|(q, y)| q * y).collect();
    let balance: f64 = signed.iter().sum();
    // Both a weight vector and the point of the hull, each with its constant feature.
    let norm2 = span.measure(&c, &signed)?.norm2 + constant.map_or(0.0, |value| (intercept / value).powi(2));
    let hull2 = span.measure(&vec![0.0; c.len()], &signed)?.distance2;
    let bound = (hull2 + constant.map_or(0.0, |value| (value * balance).powi(2))).sqrt();
    if outcome.norm > 0.0 {
        let state = Bracket::new(&y, &scores, norm2.sqrt(), bound, outcome.iterations);
        (outcome.objective, outcome.dual_objective) = (Some(state.bound), Some(state.margin));
        outcome.gap = Some(state.gap());
        outcome.margins = y.iter().zip(&scores).map(|(y, f)| y * f).collect();
    }
    Ok(())
}

/// Runs the rounds and gives `w` of norm 1.
fn accelerate<C, E>(training: &Training<'_>, space: FmmSpace<C, E>) -> Result<Ended>
where
    C: Fn(Vec<f64>) -> Vec<f64>,
    E: Fn(&[f64], &mut [f64]) -> f64,
{
    let FmmSpace { width, radius, combine, evaluate } = space;
    let (y, s) = (training.signs(), training.weights);
    let rounds = (training.parameters.number("rounds") as usize).min(training.settings.max_iter.unwrap_or(usize::MAX));
    let scale = if radius > 0.0 { 1.0 / radius } else { 0.0 };
    let (mut w, mut g) = (vec![0.0; width], vec![0.0; width]);
    let (mut scores, mut norm, mut state) = (vec![0.0; y.len()], 0.0, Bracket::default());
    // The coefficients of the rows in g and in w, and their totals.
    let (mut g_rows, mut w_rows) = (vec![0.0; y.len()], vec![0.0; y.len()]);
    let (mut in_g, mut in_w) = (0.0, 0.0);
    let mut stop = StopReason::Iterations;
    for t in 0..rounds {
        // mean = −Zᵀq; g and w carry its sign.
        let q = softmax(&y, s, &scores, scale);
        let mean = combine(q.iter().zip(&y).map(|(q, y)| q * y * scale).collect());
        let lambda = t as f64 / (t + 1) as f64;
        g.iter_mut().zip(&mean).for_each(|(g, z)| *g = lambda * (*g + z));
        axpy(1.0, &g, &mut w);
        axpy(1.0, &mean, &mut w);
        g_rows.iter_mut().zip(&q).for_each(|(g, q)| *g = lambda * (*g + q));
        axpy(1.0, &g_rows, &mut w_rows);
        axpy(1.0, &q, &mut w_rows);
        in_g = lambda * (in_g + 1.0);
        in_w += in_g + 1.0;
        norm = evaluate(&w, &mut scores);
        state = Bracket::new(&y, &scores, norm, radius * norm / in_w, t + 1);
        let progress = Progress { iteration: t + 1, objective: Some(state.bound), gap: Some(state.gap()) };
        training.control.report(progress)?;
        // What is left of a sum that should be zero has no direction: no margin is above zero, and none is reached.
        if norm <= NOISE * in_w {
            (state.margin, stop) = (0.0, StopReason::Precision);
            break;
        }
        if state.gap() <= training.settings.tol {
            stop = StopReason::Gap;
            break;
        }
    }
    let by = if norm > NOISE * in_w { 1.0 / norm } else { 0.0 };
    w.iter_mut().chain(&mut scores).for_each(|v| *v *= by);
    let margins = y.iter().zip(&scores).map(|(y, f)| y * f).collect();
    let norm = f64::from(u8::from(by > 0.0));
    let mut outcome = Outcome::plain("dual acceleration".into(), stop, state.rounds, margins, norm);
    outcome.objective = Some(state.bound);
    outcome.dual_objective = Some(state.margin);
    outcome.gap = Some(state.gap());
    w_rows.iter_mut().for_each(|q| *q /= in_w);
    Ok(Ended { w, q: w_rows, outcome })
}

/// The largest margin there can be lies between these.
#[derive(Default)]
struct Bracket {
    margin: f64,
    bound: f64,
    rounds: usize,
}

impl Bracket {
    fn new(y: &[f64], scores: &[f64], norm: f64, bound: f64, rounds: usize) -> Self {
        let smallest = y.iter().zip(scores).map(|(y, f)| y * f).fold(f64::INFINITY, f64::min);
        Self { margin: if norm > 0.0 { smallest / norm } else { 0.0 }, bound, rounds }
    }

    /// Relative to the larger of the two.
    fn gap(&self) -> f64 {
        let size = self.bound.abs().max(self.margin.abs());
        if size > 0.0 { (self.bound - self.margin) / size } else { 0.0 }
    }
}

/// `q_i ∝ s_i exp(−γ_i scale)`
fn softmax(y: &[f64], s: &[f64], scores: &[f64], scale: f64) -> Vec<f64> {
    let lowest = y.iter().zip(scores).map(|(y, f)| y * f).fold(f64::INFINITY, f64::min);
    let one = |((y, s), f): ((&f64, &f64), &f64)| s * ((lowest - y * f) * scale).exp();
    let mut q: Vec<f64> = y.iter().zip(s).zip(scores).map(one).collect();
    let total: f64 = q.iter().sum();
    q.iter_mut().for_each(|q| *q /= total);
    q
}
