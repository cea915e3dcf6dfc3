//! The papers' stochastic solvers, linear only: averaged SGD (LDM, Algorithm 2) and SVRG (ODM, Algorithm 2).
//!
//! Both draw rows with probability `s_i / m`. A step costs the non-zeros of its rows, not `d`: vectors that change in
//! every step are kept as a scalar times a vector that does not. Neither knows when it is done, so both hand their
//! last point to the certificate; the default solvers are the ones that certify their optimum.

use super::Settings;
use super::newton::{WeightSpace, certificate};
use super::workspace::Ending;
use crate::Result;
use crate::control::{Control, Progress};
use crate::data::Rows;
use crate::design::Design;
use crate::linalg;
use crate::problem::{Bias, MarginProblem, StopReason};
use crate::random::Random;

/// Labelled rows, to be drawn one at a time and gone through in passes.
pub struct SgdRows<'a, X: Rows> {
    /// The rows.
    pub x: &'a X,
    /// The passes over them.
    pub design: &'a Design<'a>,
    /// `y_i`
    pub y: &'a [f64],
}

/// Draws rows with probability proportional to their weight.
struct Sampler {
    random: Random,
    /// Running sums of the weights; empty if they are all equal.
    sums: Vec<f64>,
    rows: usize,
}

impl Sampler {
    fn new(weights: &[f64], random: Random) -> Self {
        let equal = weights.windows(2).all(|w| w[0] == w[1]);
        let mut sum = 0.0;
        let running = weights.iter().map(|w| {
            sum += w;
            sum
        });
        let sums = if equal { Vec::new() } else { running.collect() };
        Self { random, sums, rows: weights.len() }
    }

    fn draw(&mut self) -> usize {
        match self.sums.last() {
            None => self.random.below(self.rows),
            Some(total) => {
                let point = self.random.unit() * total;
                self.sums.partition_point(|sum| *sum <= point).min(self.rows - 1)
            }
        }
    }
}

/// `w` as `scale · base`, with the weight of a constant feature at its end; a free intercept stands apart, unscaled.
struct ScaledWeights<'r, 'a, X: Rows> {
    rows: &'r SgdRows<'a, X>,
    base: Vec<f64>,
    scale: f64,
    intercept: f64,
}

impl<'r, 'a, X: Rows> ScaledWeights<'r, 'a, X> {
    fn new(rows: &'r SgdRows<'a, X>, w: &[f64]) -> Self {
        let (mut base, mut intercept) = (w.to_vec(), 0.0);
        if rows.design.bias() == Bias::Free {
            intercept = base[rows.x.cols()];
            base[rows.x.cols()] = 0.0;
        }
        Self { rows, base, scale: 1.0, intercept }
    }

    /// `base · x̃_i`
    fn dot(&self, i: usize) -> f64 {
        let d = self.rows.x.cols();
        let regular = if let Bias::Feature(value) = self.rows.design.bias() { value * self.base[d] } else { 0.0 };
        self.rows.x.dot(i, &self.base[..d]) + regular
    }

    fn margin(&self, i: usize) -> f64 {
        self.rows.y[i] * (self.scale * self.dot(i) + self.intercept)
    }

    /// `vector += amount x̃_i`, without a free intercept.
    fn spread(&self, i: usize, amount: f64, vector: &mut [f64]) {
        let d = self.rows.x.cols();
        self.rows.x.axpy(i, amount, &mut vector[..d]);
        if let Bias::Feature(value) = self.rows.design.bias() {
            vector[d] += amount * value;
        }
    }

    fn add(&mut self, i: usize, amount: f64) {
        let mut base = std::mem::take(&mut self.base);
        self.spread(i, amount, &mut base);
        self.base = base;
    }

    /// Brings the scale back to 1 before it underflows.
    fn refresh(&mut self) {
        self.base.iter_mut().for_each(|v| *v *= self.scale);
        self.scale = 1.0;
    }

    fn weights(&self) -> Vec<f64> {
        let mut w: Vec<f64> = self.base.iter().map(|v| v * self.scale).collect();
        if self.rows.design.bias() == Bias::Free {
            w[self.rows.x.cols()] = self.intercept;
        }
        w
    }
}

/// `½‖w‖² + …` at `w`.
fn objective<X: Rows>(problem: &MarginProblem<'_>, rows: &SgdRows<'_, X>, w: &[f64], margins: &mut [f64]) -> f64 {
    rows.design.margins(rows.y, w, margins);
    let regular = rows.design.regularised(w);
    0.5 * linalg::dot(regular, regular) + problem.risk(margins)
}

/// Averaged stochastic gradient descent: LDM's Algorithm 2, five passes.
///
/// Two rows a step: `w ← (1 − η λ) w − η λ m (φ'(γ_i) + 2 κ (γ_i − γ_j)) y_i x_i`, `λ = 1/K` with `K` the size of the loss
/// (`C m` for LDM), `η_t = η_0 / (1 + η_0 λ t)^¾`, and `w̄ ← w̄ + μ_t (w − w̄)`, `μ_t = 1 / max(1, t − 2m)`. `η_0` is found by
/// doubling and halving on at most 1,000 rows.
pub fn asgd<X: Rows>(
    problem: &MarginProblem<'_>,
    rows: SgdRows<'_, X>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Ending> {
    let m = rows.x.rows();
    let passes = settings.max_iter.unwrap_or(5);
    let eta0 = first_rate(problem, &rows, settings.seed);
    let averaged = AveragedDescent { problem, rows: &rows, eta0, control };
    let mut sampler = Sampler::new(problem.weights, Random::new(settings.seed, 0x0061_7367));
    let w = averaged.run(|_| (sampler.draw(), sampler.draw()), m * passes, 2 * m)?;
    Ok(Ending::of_weights(rows.design, w, None, StopReason::Iterations, passes, "asgd".into()))
}

/// One run of averaged SGD.
struct AveragedDescent<'r, 'p, 'a, X: Rows> {
    problem: &'r MarginProblem<'p>,
    rows: &'r SgdRows<'a, X>,
    eta0: f64,
    control: Control<'r>,
}

impl<X: Rows> AveragedDescent<'_, '_, '_, X> {
    /// Takes `steps` steps over the pairs that `draw` gives and hands back the average of the iterates from `start` on.
    fn run(&self, mut draw: impl FnMut(usize) -> (usize, usize), steps: usize, start: usize) -> Result<Vec<f64>> {
        let (problem, y) = (self.problem, self.rows.y);
        let total = problem.total_weight();
        let lambda = 1.0 / loss_size(problem);
        let mut w = ScaledWeights::new(self.rows, &vec![0.0; self.rows.design.width()]);
        // w̄ = of_base · base + of_rest · rest, so that averaging, too, costs only the row's non-zeros.
        let mut rest = vec![0.0; w.base.len()];
        let (mut of_base, mut of_rest, mut mean_intercept) = (1.0, 1.0, 0.0);
        for t in 0..steps {
            if t % 4096 == 0 {
                self.control.report(Progress { iteration: t / y.len(), objective: None, gap: None })?;
            }
            let (i, j) = draw(t);
            let eta = self.eta0 / (1.0 + self.eta0 * lambda * t as f64).powf(0.75);
            let margin = w.margin(i);
            let mut slope = problem.loss.slope(margin);
            if problem.variance > 0.0 {
                slope += 2.0 * problem.variance * (margin - w.margin(j));
            }
            let step = -eta * lambda * total * slope * y[i];
            w.scale *= 1.0 - eta * lambda;
            let mu = 1.0 / (t as f64 - start as f64).max(1.0);
            let change = step / w.scale;
            if mu < 1.0 {
                if change != 0.0 {
                    w.spread(i, -of_base * change / of_rest, &mut rest);
                }
                of_base = (1.0 - mu) * of_base + mu * w.scale;
                of_rest *= 1.0 - mu;
            } else {
                // Not averaging yet (or its first step): the average is the iterate itself.
                (of_base, of_rest) = (w.scale, 1.0);
            }
            if change != 0.0 {
                w.add(i, change);
            }
            if self.rows.design.bias() == Bias::Free {
                w.intercept += step;
            }
            mean_intercept += mu * (w.intercept - mean_intercept);
            if w.scale < 1e-50 || of_rest < 1e-50 {
                let average: Vec<f64> = w.base.iter().zip(&rest).map(|(b, r)| of_base * b + of_rest * r).collect();
                w.refresh();
                rest = average.iter().zip(&w.base).map(|(a, b)| a - b).collect();
                (of_base, of_rest) = (1.0, 1.0);
            }
        }
        let mut average: Vec<f64> = w.base.iter().zip(&rest).map(|(b, r)| of_base * b + of_rest * r).collect();
        if self.rows.design.bias() == Bias::Free {
            average[self.rows.x.cols()] = mean_intercept;
        }
        Ok(average)
    }
}

/// `m |φ'(0)|`: `C m + λ2` for LDM.
fn loss_size(problem: &MarginProblem<'_>) -> f64 {
    (problem.total_weight() * problem.loss.slope(0.0).abs()).max(f64::MIN_POSITIVE)
}

/// `η_0`: the best of doublings and halvings of 1 after a pass over at most 1,000 rows.
fn first_rate<X: Rows>(problem: &MarginProblem<'_>, rows: &SgdRows<'_, X>, seed: u64) -> f64 {
    let mut random = Random::new(seed, 0x6574_6130);
    let m = rows.x.rows();
    let sample: Vec<(usize, usize)> = (0..m.min(1000)).map(|_| (random.below(m), random.below(m))).collect();
    let cost = |eta0: f64| {
        let run = AveragedDescent { problem, rows, eta0, control: Control::default() };
        let w = run.run(|t| sample[t], sample.len(), sample.len()).unwrap_or_default();
        let (features, intercept) = rows.design.split(&w);
        let margins: Vec<f64> =
            sample.iter().map(|&(i, _)| rows.y[i] * (rows.x.dot(i, features) + intercept)).collect();
        let mean = margins.iter().sum::<f64>() / margins.len() as f64;
        let risk: f64 =
            margins.iter().map(|g| problem.loss.value(*g) + problem.variance * (g - mean).powi(2)).sum::<f64>();
        let value = 0.5 * linalg::dot(features, features) + risk * problem.total_weight() / margins.len() as f64;
        if value.is_finite() { value } else { f64::INFINITY }
    };
    let (mut best, mut at_best) = (1.0, cost(1.0));
    for factor in [2.0, 0.5] {
        let mut eta = best * factor;
        for _ in 0..30 {
            let at = cost(eta);
            if at >= at_best {
                break;
            }
            (best, at_best) = (eta, at);
            eta *= factor;
        }
    }
    best
}

/// Stochastic variance-reduced gradient: ODM's Algorithm 2, `2m` inner steps, the last iterate as the next snapshot.
///
/// `w ← w − η (∇f_i(w) − ∇f_i(w̃) + ∇f(w̃))`; Barzilai-Borwein step sizes from the third snapshot on; a snapshot that
/// climbs is taken back and the step quartered.
pub fn svrg<X: Rows>(
    problem: &MarginProblem<'_>,
    rows: SgdRows<'_, X>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<Ending> {
    let (m, n) = (rows.x.rows(), rows.design.width());
    let limit = settings.max_iter.unwrap_or(100);
    let mut sampler = Sampler::new(problem.weights, Random::new(settings.seed, 0x7376_7267));
    let mut margins = vec![0.0; m];
    let mut snapshot = vec![0.0; n];
    let mut value = objective(problem, &rows, &snapshot, &mut margins);
    let mut eta = 0.1 / steepness(problem, &rows);
    let mut last: Option<(Vec<f64>, Vec<f64>)> = None;
    let mut epochs = 0;
    while epochs < limit {
        let slopes = loss_slopes(problem, &margins);
        let pull = rows.design.combine(|i| slopes[i] * rows.y[i]);
        let gradient: Vec<f64> = (0..n).map(|j| rows.design.ridge(j) * snapshot[j] + pull[j]).collect();
        if let (Some((w, g)), true) = (&last, epochs >= 2) {
            eta = barzilai_borwein(w, g, &snapshot, &gradient, m).unwrap_or(eta);
        }
        let inner = Inner { problem, rows: &rows, margins: &margins, pull: &pull, control };
        // A step that is too long shows itself at once: the objective climbs, the snapshot stays.
        let mut next = inner.run(&snapshot, eta, 2 * m, &mut sampler)?;
        let mut after = vec![0.0; m];
        let mut climbed = objective(problem, &rows, &next, &mut after);
        let mut tries = 0;
        while (climbed > value || climbed.is_nan()) && tries < 20 {
            eta *= 0.25;
            next = inner.run(&snapshot, eta, 2 * m, &mut sampler)?;
            climbed = objective(problem, &rows, &next, &mut after);
            tries += 1;
        }
        epochs += 1;
        if tries == 20 {
            break;
        }
        last = Some((std::mem::replace(&mut snapshot, next), gradient));
        (margins, value) = (after, climbed);
        let gap = inner_gap(problem, &rows, &snapshot, &margins)?;
        control.report(Progress { iteration: epochs, objective: Some(value), gap: Some(gap) })?;
        if gap <= settings.tol {
            break;
        }
    }
    Ok(Ending::of_weights(rows.design, snapshot, None, StopReason::Iterations, epochs, "svrg".into()))
}

/// `s_i φ'(γ_i) + 2 κ s_i (γ_i − γ̄)`: minus the dual variables.
fn loss_slopes(problem: &MarginProblem<'_>, margins: &[f64]) -> Vec<f64> {
    let u = problem.variance_part(margins);
    (0..margins.len()).map(|i| problem.weights[i] * problem.loss.slope(margins[i]) - u[i]).collect()
}

/// The relative duality gap at `w`.
fn inner_gap<X: Rows>(problem: &MarginProblem<'_>, rows: &SgdRows<'_, X>, w: &[f64], margins: &[f64]) -> Result<f64> {
    let v = margins.iter().zip(problem.weights).map(|(g, s)| -s * problem.loss.slope(*g)).collect();
    Ok(certificate(&mut WeightSpace::new(rows.design, rows.y, w.to_vec()), problem, v)?.0.gap())
}

/// An upper estimate of how fast the gradient of one row's term can change.
fn steepness<X: Rows>(problem: &MarginProblem<'_>, rows: &SgdRows<'_, X>) -> f64 {
    let total = problem.total_weight();
    let curvature = (-20..=40).map(|t| problem.loss.curvature(f64::from(t) * 0.1)).fold(0.0f64, f64::max);
    // A kink has no curvature of its own; its jump over a unit of margin stands in.
    let jump = if problem.loss.is_smooth() { 0.0 } else { problem.loss.slope(0.0).abs() };
    let norms: f64 = rows.design.norms2().iter().sum::<f64>() / rows.x.rows() as f64;
    1.0 + total * (curvature + jump + 2.0 * problem.variance) * norms
}

/// `‖Δw‖² / (m Δw·Δg)` (Tan et al. 2016), if it is a sensible number.
fn barzilai_borwein(w0: &[f64], g0: &[f64], w1: &[f64], g1: &[f64], m: usize) -> Option<f64> {
    let moved = || w1.iter().zip(w0).map(|(after, before)| after - before);
    let length: f64 = moved().map(|moved| moved.powi(2)).sum();
    let along: f64 = moved().zip(g1.iter().zip(g0)).map(|(moved, (after, before))| moved * (after - before)).sum();
    let eta = length / (2.0 * m as f64 * along);
    (eta.is_finite() && eta > 0.0).then_some(eta)
}

/// The inner loop between two snapshots.
struct Inner<'r, 'p, 'a, X: Rows> {
    problem: &'r MarginProblem<'p>,
    rows: &'r SgdRows<'a, X>,
    /// Margins at the snapshot.
    margins: &'r [f64],
    /// Gradient of the loss at the snapshot.
    pull: &'r [f64],
    control: Control<'r>,
}

impl<X: Rows> Inner<'_, '_, '_, X> {
    /// With the snapshot's terms collected, `w ← (1 − η) w − η g̃ − η ρ_i y_i x_i` where `g̃` is the gradient of the loss at the
    /// snapshot; `w = scale · base + along · g̃`, so only the row's non-zeros are touched.
    fn run(&self, start: &[f64], eta: f64, steps: usize, sampler: &mut Sampler) -> Result<Vec<f64>> {
        let (problem, rows) = (self.problem, self.rows);
        let (y, d, total) = (rows.y, rows.x.cols(), problem.total_weight());
        let mut w = ScaledWeights::new(rows, start);
        let mut pull = self.pull.to_vec();
        let pull_intercept = if rows.design.bias() == Bias::Free { std::mem::take(&mut pull[d]) } else { 0.0 };
        // g̃ · x̃_i for all rows: one pass now instead of a second product in each step.
        let mut pulled = vec![0.0; y.len()];
        rows.design.margins(rows.y, &pull, &mut pulled);
        let mut along = 0.0;
        for t in 0..steps {
            if t % 4096 == 0 {
                self.control.check()?;
            }
            let i = sampler.draw();
            let margin = w.margin(i) + along * pulled[i];
            let mut change = problem.loss.slope(margin) - problem.loss.slope(self.margins[i]);
            if problem.variance > 0.0 {
                let j = sampler.draw();
                let other = w.margin(j) + along * pulled[j];
                change += 2.0 * problem.variance * ((margin - other) - (self.margins[i] - self.margins[j]));
            }
            let step = eta * total * change * y[i];
            w.scale *= 1.0 - eta;
            along = (1.0 - eta) * along - eta;
            if step != 0.0 {
                w.add(i, -step / w.scale);
            }
            w.intercept -= if rows.design.bias() == Bias::Free { eta * pull_intercept + step } else { 0.0 };
            if w.scale < 1e-50 {
                w.refresh();
            }
        }
        let mut weights = w.weights();
        let regular = if rows.design.bias() == Bias::Free { d } else { weights.len() };
        linalg::axpy(along, &pull[..regular], &mut weights[..regular]);
        Ok(weights)
    }
}
