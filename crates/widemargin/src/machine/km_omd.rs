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

use super::{Axis, Bias, Domain, Expansion, Fit, Machine, Outcome, Parameter, Preset, Span, Training, Uses, mamc};
use crate::control::{Control, Progress};
use crate::data::Rows;
use crate::kernel::{Kernel, KernelRows};
use crate::linalg::dot;
use crate::random::Random;
use crate::solver::StopReason;
use crate::{Error, Result, with_rows};
use std::collections::HashMap;
use std::rc::Rc;

/// The machine.
pub struct KmOmd;

static PARAMETERS: &[Parameter] = &[Parameter {
    name: "lambda",
    domain: Domain::Unit,
    default: Preset::Number(0.1),
    help: "from the smallest margin (0) to the mean margin (1)",
}];

impl Machine for KmOmd {
    fn name(&self) -> &'static str {
        "km-omd"
    }
    fn title(&self) -> &'static str {
        "kernel method for the optimization of the margin distribution"
    }
    fn formula(&self) -> &'static str {
        "min γᵀ((1−λ)YGY + λI)γ over one simplex a class"
    }
    fn paper(&self) -> &'static str {
        "F. Aiolli, G. Da San Martino, A. Sperduti, A Kernel Method for the Optimization of the Margin \
         Distribution, ICANN 2008"
    }
    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }
    fn grid(&self) -> &'static [Axis] {
        &[Axis {
            name: "lambda",
            coarse: Span::List(&[0.0, 0.2, 0.6]),
            fine: Span::Steps { from: 0.0, to: 1.0, step: 0.1 },
            paper: Span::Steps { from: 0.0, to: 1.0, step: 0.1 },
            small_is_smooth: false,
        }]
    }
    fn intercept(&self, asked: Bias) -> Bias {
        if asked == Bias::Free { Bias::Free } else { Bias::None }
    }
    fn uses(&self) -> Uses {
        Uses::ONE_WAY
    }
    fn fit(&self, training: &Training<'_>) -> Result<Fit> {
        let mut problem = Problem::new(training);
        let (stop, steps) = problem.solve(training)?;
        let (expansion, scores) = problem.expand(training)?;
        let threshold = if training.bias == Bias::Free { 0.5 * dot(&problem.gamma, &scores) } else { 0.0 };
        let margins = problem.y.iter().zip(&scores).map(|(y, f)| y * (f - threshold)).collect();
        let norm2: f64 = problem.y.iter().zip(&problem.gamma).zip(&scores).map(|((y, g), f)| y * g * f).sum();
        let mut outcome = Outcome::plain("pairwise steps".into(), stop, steps, margins, norm2.max(0.0).sqrt());
        let certificate = problem.certificate();
        outcome.objective = Some(certificate.objective);
        outcome.dual_objective = Some(certificate.dual);
        outcome.gap = Some(certificate.gap);
        outcome.support = problem.gamma.iter().filter(|&&g| g > 0.0).count();
        Ok(Fit { expansion: shifted(expansion, -threshold), outcome })
    }
}

/// The expansion with this much added to its intercept.
fn shifted(mut expansion: Expansion, by: f64) -> Expansion {
    let (Expansion::Linear { intercepts, .. } | Expansion::Kernel { intercepts, .. }) = &mut expansion;
    intercepts[0] += by;
    expansion
}

/// Primal and dual value, and the relative gap between them.
struct Certificate {
    objective: f64,
    dual: f64,
    gap: f64,
}

/// Sweeps between two looks at the gap.
const SWEEPS: usize = 4;

/// The two rows of a step, the lower one of `h` first, and the kernel row of the first.
struct Pair {
    up: usize,
    down: usize,
    curvature: f64,
    up_row: Rc<[f64]>,
}

/// `min F(γ) = γᵀMγ`, `M = (1−λ) Y G Y + λ diag(1/s)`.
struct Problem<'a> {
    y: Vec<f64>,
    s: &'a [f64],
    lambda: f64,
    gamma: Vec<f64>,
    /// `h = M γ`, half the gradient.
    h: Vec<f64>,
    /// `M_ii`
    diagonal: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// Starts at equal weight for all rows of a class: the optimum for `λ = 1`.
    fn new(training: &Training<'a>) -> Self {
        let (y, s) = (training.signs(), training.weights);
        let total = |sign: f64| -> f64 { y.iter().zip(s).filter(|(y, _)| **y == sign).map(|(_, s)| s).sum() };
        let (positive, negative) = (total(1.0), total(-1.0));
        let gamma = y.iter().zip(s).map(|(&y, s)| s / if y > 0.0 { positive } else { negative }).collect();
        let lambda = training.parameters.number("lambda");
        Self { y, s, lambda, gamma, h: Vec::new(), diagonal: Vec::new() }
    }

    fn expand(&self, training: &Training<'_>) -> Result<(Expansion, Vec<f64>)> {
        mamc::expand(training, None, self.y.iter().zip(&self.gamma).map(|(y, g)| y * g).collect())
    }

    /// `h` from nothing.
    fn refresh(&mut self, training: &Training<'_>) -> Result<()> {
        let (_, scores) = self.expand(training)?;
        let entry = |i: usize| (1.0 - self.lambda) * self.y[i] * scores[i] + self.lambda * self.gamma[i] / self.s[i];
        self.h = (0..scores.len()).map(entry).collect();
        if self.h.iter().chain(&self.diagonal).any(|v| !v.is_finite()) {
            let reason = "inner products of rows are too large for numbers: scale the features".into();
            return Err(Error::Numeric { place: "km-omd", reason });
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
            let used = class.iter().filter(|(a, _)| *a < level);
            level + used.map(|(a, s)| s * (level - a) / self.lambda * a).sum::<f64>()
        };
        fill(1.0) + fill(-1.0) - dot(&self.gamma, &a)
    }

    fn certificate_from(&self, lowest: [(usize, f64); 2], bound: f64) -> Certificate {
        let objective = dot(&self.gamma, &self.h).max(0.0);
        let reach = (lowest[0].1 + lowest[1].1).max(0.0);
        // Hulls that meet have the optimum 0; what is below this is made of rounding errors and counts as 0.
        let largest = self.diagonal.iter().fold(0.0f64, |a, &b| a.max(b));
        if objective <= 1e-14 * largest {
            return Certificate { objective: 0.0, dual: 0.0, gap: 0.0 };
        }
        let dual = (reach * (reach / objective)).max(bound).min(objective);
        Certificate { objective, dual, gap: (objective - dual) / objective }
    }

    /// Steps until the gap is closed; afterwards `h` is fresh. Gives the number of steps.
    fn solve(&mut self, training: &Training<'_>) -> Result<(StopReason, usize)> {
        let rows = KernelRows::new(training.kernel, training.rows, 0.0);
        let m = self.y.len();
        self.diagonal = (0..m).map(|i| (1.0 - self.lambda) * rows.diagonal(i) + self.lambda / self.s[i]).collect();
        self.refresh(training)?;
        // A step costs a pass over `m` numbers: about 10¹⁰ of them are half a minute. With λ = 0 and hulls that meet there
        // is nothing to find, and hundreds of steps a row do not find it.
        let more = (10_000_000_000 / m.max(1000)).min(500 * m.max(100));
        let (tol, mut steps) = (training.settings.tol, 0);
        if training.kernel == Kernel::Linear {
            steps = self.sweep(training, training.settings.max_iter.unwrap_or(2000 * m))?;
        }
        let limit = training.settings.max_iter.unwrap_or(steps + more);
        let mut source = None;
        // Rounding errors in the running `h` can hide a gap: look again with a fresh one.
        for _ in 0..5 {
            if self.certificate().gap <= tol {
                return Ok((StopReason::Gap, steps));
            }
            let source = match &mut source {
                Some(source) => source,
                none => none.insert(KernelSource::new(&rows, training.settings.memory, training.control)),
            };
            while steps < limit && self.step(source, tol)? {
                steps += 1;
                if steps % 1024 == 0 {
                    let now = self.certificate();
                    let progress = Progress { iteration: steps, objective: Some(now.objective), gap: Some(now.gap) };
                    training.control.report(progress)?;
                    if now.gap <= tol {
                        break;
                    }
                }
            }
            self.refresh(training)?;
            if steps >= limit {
                break;
            }
        }
        Ok(match self.certificate().gap <= tol {
            true => (StopReason::Gap, steps),
            false if steps >= limit => (StopReason::Iterations, steps),
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
            if now.gap <= training.settings.tol || last - now.objective < 2e-4 * now.gap * now.objective {
                break;
            }
            last = now.objective;
            let (Expansion::Linear { weights, .. }, _) = self.expand(training)? else { break };
            let mut w = weights.into_iter().next().unwrap_or_default();
            let mut spread = vec![0.0; w.len()];
            for _ in 0..SWEEPS {
                random.shuffle(&mut order);
                for chunk in order.chunks(1024) {
                    training.control.check()?;
                    for &i in chunk {
                        let class = &classes[usize::from(self.y[i] < 0.0)];
                        let j = class[random.below(class.len())];
                        with_rows!(training.rows, x => self.exchange(x, i, j, &mut w, &mut spread));
                    }
                }
            }
            steps += SWEEPS * m;
            self.refresh(training)?;
            let progress = Progress { iteration: steps, objective: Some(now.objective), gap: Some(now.gap) };
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
    fn step(&mut self, source: &mut KernelSource<'_>, tol: f64) -> Result<bool> {
        let lowest = self.lowest();
        // The tighter bound takes a sort: it is looked at now and then, by the caller.
        if self.certificate_from(lowest, 0.0).gap <= tol {
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
        let down_row = source.row(pair.down)?;
        self.gamma[pair.up] += size;
        self.gamma[pair.down] = if size == self.gamma[pair.down] { 0.0 } else { self.gamma[pair.down] - size };
        let factor = size * (1.0 - self.lambda) * self.y[pair.up];
        for (((h, y), a), b) in self.h.iter_mut().zip(&self.y).zip(pair.up_row.iter()).zip(down_row.iter()) {
            *h += factor * y * (a - b);
        }
        self.h[pair.up] += size * self.lambda / self.s[pair.up];
        self.h[pair.down] -= size * self.lambda / self.s[pair.down];
        Ok(true)
    }

    /// The row of the same class from which a step towards `up` gains most.
    fn partner(&self, up: usize, source: &mut KernelSource<'_>) -> Result<Option<Pair>> {
        let up_row = source.row(up)?;
        let floor = 1e-12 * self.diagonal[up].max(f64::MIN_POSITIVE);
        let (mut best, mut most) = (None, 0.0);
        for j in 0..self.h.len() {
            let fall = self.h[j] - self.h[up];
            if self.y[j] != self.y[up] || self.gamma[j] <= 0.0 || fall <= 0.0 {
                continue;
            }
            let curvature = self.diagonal[up] + self.diagonal[j] - 2.0 * (1.0 - self.lambda) * up_row[j];
            let curvature = curvature.max(floor);
            let gain = fall * fall / curvature;
            if gain > most {
                (best, most) = (Some((j, curvature)), gain);
            }
        }
        Ok(best.map(|(down, curvature)| Pair { up, down, curvature, up_row }))
    }
}

/// Kernel rows, made when asked for; as many are kept as fit, the ones used last.
struct KernelSource<'a> {
    rows: &'a KernelRows<'a>,
    kept: HashMap<usize, (u64, Rc<[f64]>)>,
    capacity: usize,
    clock: u64,
    control: Control<'a>,
}

impl<'a> KernelSource<'a> {
    fn new(rows: &'a KernelRows<'a>, memory: u64, control: Control<'a>) -> Self {
        let m = rows.len();
        let capacity = usize::try_from(memory / (8 * m.max(1) as u64)).unwrap_or(usize::MAX).max(2);
        Self { rows, kept: HashMap::new(), capacity, clock: 0, control }
    }

    fn row(&mut self, i: usize) -> Result<Rc<[f64]>> {
        self.clock += 1;
        if let Some((used, row)) = self.kept.get_mut(&i) {
            *used = self.clock;
            return Ok(row.clone());
        }
        self.control.check()?;
        if self.kept.len() >= self.capacity {
            let oldest = self.kept.iter().min_by_key(|(_, (used, _))| *used).map(|(&i, _)| i);
            oldest.map(|i| self.kept.remove(&i));
        }
        let mut row = vec![0.0; self.rows.len()];
        self.rows.row(i, &mut row);
        let row: Rc<[f64]> = row.into();
        self.kept.insert(i, (self.clock, row.clone()));
        Ok(row)
    }
}
