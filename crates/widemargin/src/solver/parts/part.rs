//! What one part of the rows answers, and what it remembers.

use super::{Ask, PartRows, PartTask, PointAsked, Question};
use crate::design::Design;
use crate::linalg::{self, axpy, dot, ordered_sum, ordered_sums, ordered_sums_at};
use crate::problem::{Bias, MarginProblem, not_negative};
use crate::solver::newton::{Smoothed, Sums};
use crate::{Error, Result};

/// What a part remembers from one question to the next.
#[derive(Clone, Debug, Default)]
pub struct PartMemory {
    task: Option<PartTask>,
    y: Vec<f64>,
    serial: Option<u64>,
    margins: Vec<f64>,
    /// The change of margins along the direction that was last asked about, from which place.
    change: Vec<f64>,
    change_of: Option<u64>,
    /// `Σ h_i x̃_i x̃_iᵀ δ` beside it, if the matrix is known.
    taken: Vec<f64>,
    /// Multipliers after so many rounds.
    v: Vec<f64>,
    rounds: usize,
    /// `Σ a_i y_i x̃_i` and its `a`.
    combined: Vec<f64>,
    combined_of: Vec<f64>,
    /// `h` and `Σ h_i x̃_i x̃_iᵀ`.
    h: Vec<f64>,
    matrix: Vec<f64>,
}

impl PartMemory {
    /// Forgets everything but multipliers, which would take all rounds to find again.
    pub fn keep_multipliers(&mut self) {
        *self = Self { task: self.task, v: std::mem::take(&mut self.v), rounds: self.rounds, ..Self::default() };
    }

    /// Answers a question about a part: always this part, or the memory is to be a new one.
    pub fn answer(&mut self, part: PartRows<'_>, question: &Question) -> Result<Vec<f64>> {
        let task = question.task;
        check(part, question)?;
        // Multipliers of a loss that is smooth are not needed.
        let multipliers = if question.sigma.is_some() { part.codes.len() } else { 0 };
        if self.task != Some(task) || self.rounds > question.rounds.len() || self.v.len() != multipliers {
            *self = Self { task: Some(task), v: vec![0.0; multipliers], ..Self::default() };
        }
        if self.y.len() != part.codes.len() {
            self.y = part.codes.iter().map(|&c| if c == task.positive { 1.0 } else { -1.0 }).collect();
        }
        let y = std::mem::take(&mut self.y);
        let design = Design::new(part.rows, task.bias);
        let problem =
            MarginProblem { y: &y, weights: part.weights, loss: task.loss, variance: task.variance, bias: task.bias };
        let sums = self.sums(&design, &problem, question);
        self.y = y;
        Ok(sums)
    }

    fn sums(&mut self, design: &Design<'_>, problem: &MarginProblem<'_>, question: &Question) -> Vec<f64> {
        let (y, s) = (problem.y, problem.weights);
        match &question.ask {
            Ask::Count => {
                let positive = ordered_sum(y.len(), |i| if y[i] > 0.0 { s[i] } else { 0.0 });
                let mut sums = vec![y.len() as f64, ordered_sum(y.len(), |i| s[i]), positive];
                sums.extend(design.combine(|i| s[i] * y[i]));
                return sums;
            }
            Ask::Weighted => return packed(&design.curve_matrix(s), design.width()),
            _ => {}
        }
        self.follow(design, problem, question);
        let smoothed = Smoothed::new(problem, question.sigma, &self.v);
        let mean = question.place.mean;
        match &question.ask {
            Ask::Survey { matrix, .. } => self.survey(design, problem, &smoothed, mean, *matrix),
            Ask::Product(v) => {
                let (mut a, mut h) = Default::default();
                smoothed.slopes(problem, &self.margins, mean, &mut a, &mut h);
                h.iter_mut().zip(s).for_each(|(h, s)| *h += 2.0 * problem.variance * s);
                design.curve(&h, v)
            }
            Ask::Slopes { direction, mean: mean_change, steps } => {
                self.look_along(design, problem, question.place.serial, direction);
                let row = |i: usize| (self.margins[i], self.change[i]);
                let slope = |i: usize, t: f64| smoothed.slope_along(problem, i, row(i), (mean, *mean_change), t);
                ordered_sums_at(y.len(), steps, slope)
            }
            Ask::Balance { all, steps } => {
                let spare = self.spare();
                let dual = PartDual::new(problem, &smoothed, &self.margins, mean, *all, spare);
                let size = |i: usize| [dual.u(i).abs() + dual.v[i].abs(), if dual.moves(i) { s[i] } else { 0.0 }];
                let excess = |i: usize, t: f64| (dual.u(i) + dual.moved(i, t)) * y[i];
                let sums = ordered_sums(y.len(), size).into_iter().chain(ordered_sums_at(y.len(), steps, excess));
                let sums = sums.collect();
                self.change = dual.v;
                sums
            }
            Ask::Certify { all, step, variance_step } => {
                let spare = self.spare();
                let mut dual = PartDual::new(problem, &smoothed, &self.margins, mean, *all, spare);
                dual.go(*step, *variance_step, question.task.mean_y);
                let sums = dual.judge(design, &question.place.w);
                self.change = dual.v;
                sums
            }
            Ask::Count | Ask::Weighted => unreachable!("answered above"),
        }
    }

    /// Brings multipliers and margins to where the question is.
    fn follow(&mut self, design: &Design<'_>, problem: &MarginProblem<'_>, question: &Question) {
        while let Some((place, sigma)) = question.rounds.get(self.rounds) {
            self.go_to(design, problem, place, None);
            let smoothed = Smoothed::new(problem, Some(*sigma), &self.v);
            self.v = smoothed.multipliers(problem.weights, &self.margins);
            self.rounds += 1;
        }
        let from = if let Ask::Survey { from, .. } = question.ask { from } else { None };
        self.go_to(design, problem, &question.place, from);
    }

    /// The margins at a place, from those of another where that is known.
    fn go_to(
        &mut self,
        design: &Design<'_>,
        problem: &MarginProblem<'_>,
        place: &PointAsked,
        from: Option<(u64, f64)>,
    ) {
        if self.serial == Some(place.serial) {
            return;
        }
        let step = from.filter(|(serial, _)| self.serial == Some(*serial)).map(|(_, step)| step);
        match step {
            Some(0.0) => {}
            Some(step) if self.change_of == self.serial => {
                axpy(step, &self.change, &mut self.margins);
                // Where no row crosses a kink, the sums follow; the others are put right when they are met.
                if self.taken.is_empty() {
                    self.combined_of.clear();
                } else {
                    axpy(-step, &self.taken, &mut self.combined);
                    for (a, (h, d)) in self.combined_of.iter_mut().zip(self.h.iter().zip(&self.change)) {
                        *a -= step * h * d;
                    }
                }
            }
            _ => {
                self.margins.clear();
                self.margins.resize(problem.y.len(), 0.0);
                if place.w.iter().any(|w| *w != 0.0) {
                    design.margins(problem.y, &place.w, &mut self.margins);
                }
                self.combined_of.clear();
            }
        }
        self.serial = Some(place.serial);
        self.change_of = None;
    }

    /// Margins along a direction.
    fn look_along(&mut self, design: &Design<'_>, problem: &MarginProblem<'_>, serial: u64, direction: &[f64]) {
        if self.change_of == Some(serial) {
            return;
        }
        self.change.resize(problem.y.len(), 0.0);
        design.margins(problem.y, direction, &mut self.change);
        self.change_of = Some(serial);
        self.taken.clear();
        if !self.matrix.is_empty() && problem.variance == 0.0 {
            self.taken.resize(direction.len(), 0.0);
            linalg::symmetric_product(&self.matrix, direction, &mut self.taken);
        }
    }

    /// A vector as long as there are rows to be filled and handed back: that of a change of margins, which is asked for again
    /// before it is needed. Memory that is taken anew for every question costs more than what is written there.
    fn spare(&mut self) -> Vec<f64> {
        self.change_of = None;
        std::mem::take(&mut self.change)
    }

    fn survey(
        &mut self,
        design: &Design<'_>,
        problem: &MarginProblem<'_>,
        smoothed: &Smoothed,
        mean: f64,
        matrix: bool,
    ) -> Vec<f64> {
        let (mut a, mut h) = (self.spare(), Vec::new());
        let Sums { risk, gap, size, balance } = smoothed.slopes(problem, &self.margins, mean, &mut a, &mut h);
        if self.combined_of.is_empty() {
            self.combined = design.combine(|i| a[i] * problem.y[i]);
            std::mem::swap(&mut self.combined_of, &mut a);
        } else {
            let change = design.combine_change(problem.y, &mut self.combined_of, &a);
            axpy(1.0, &change, &mut self.combined);
        }
        self.change = a;
        let mut sums = vec![risk, gap, size, balance];
        sums.extend(&self.combined);
        if matrix {
            self.curve(design, h);
            sums.extend(packed(&self.matrix, design.width()));
        } else {
            h.iter_mut().zip(problem.weights).for_each(|(h, s)| *h += 2.0 * problem.variance * s);
            sums.extend(design.curve_diagonal(&h));
        }
        sums
    }

    /// `Σ h_i x̃_i x̃_iᵀ`, from the last one where few rows changed their `h`.
    fn curve(&mut self, design: &Design<'_>, h: Vec<f64>) {
        let changed = self.h.iter().zip(&h).filter(|(old, new)| old != new).count();
        if self.matrix.is_empty() || 4 * changed >= h.len() {
            self.matrix = design.curve_matrix(&h);
        } else if changed > 0 {
            axpy(1.0, &design.curve_change(&self.h, &h), &mut self.matrix);
        }
        self.h = h;
    }
}

/// The dual point of a part.
struct PartDual<'a> {
    problem: &'a MarginProblem<'a>,
    margins: &'a [f64],
    mean: f64,
    /// Nothing: zero.
    u: Vec<f64>,
    v: Vec<f64>,
    /// The slopes that the loss can take.
    slopes: (f64, f64),
    all: bool,
}

impl<'a> PartDual<'a> {
    /// Slopes of the loss (or of its envelope, which are such), in `v`, and of the variance.
    fn new(
        problem: &'a MarginProblem<'a>,
        smoothed: &Smoothed,
        margins: &'a [f64],
        mean: f64,
        all: bool,
        mut v: Vec<f64>,
    ) -> Self {
        smoothed.multipliers_into(problem.weights, margins, &mut v);
        let pull = |(g, s): (&f64, &f64)| -2.0 * problem.variance * s * (g - mean);
        let varies = problem.variance > 0.0;
        let u = if varies { margins.iter().zip(problem.weights).map(pull).collect() } else { Vec::new() };
        Self { problem, margins, mean, u, v, slopes: problem.loss.slopes(), all }
    }

    fn u(&self, i: usize) -> f64 {
        self.u.get(i).copied().unwrap_or(0.0)
    }

    /// Moves the loss's part by `−t s_i y_i`, and the variance's by `−t s_i (y_i − ȳ)`.
    fn go(&mut self, step: f64, variance_step: f64, mean_y: f64) {
        for i in 0..self.v.len() {
            self.v[i] = self.moved(i, step);
        }
        let MarginProblem { y, weights, .. } = *self.problem;
        self.u.iter_mut().enumerate().for_each(|(i, u)| *u -= variance_step * weights[i] * (y[i] - mean_y));
    }

    fn domain(&self, i: usize) -> (f64, f64) {
        let ((low, high), s) = (self.slopes, self.problem.weights[i]);
        (-s * high, -s * low)
    }

    fn moves(&self, i: usize) -> bool {
        let (low, high) = self.domain(i);
        self.all || (self.v[i] != 0.0 && self.v[i] > low && self.v[i] < high)
    }

    /// `v_i` after a move by `−t s_i y_i` within its domain.
    fn moved(&self, i: usize, t: f64) -> f64 {
        let (low, high) = self.domain(i);
        match self.moves(i) {
            true => (self.v[i] - t * self.problem.weights[i] * self.problem.y[i]).clamp(low, high),
            false => self.v[i].clamp(low, high),
        }
    }

    /// The sums of [`Ask::Certify`].
    fn judge(&self, design: &Design<'_>, w: &[f64]) -> Vec<f64> {
        let MarginProblem { y, weights, loss, variance, .. } = *self.problem;
        let (m, intercept) = (y.len(), design.split(w).1);
        let regularised = design.regularised(w);
        let length = dot(regularised, regularised).sqrt();
        let a = |i: usize| self.u(i) + self.v[i];
        let row = |i: usize| {
            let (s, v, g, centred) = (weights[i], self.v[i], self.margins[i], self.margins[i] - self.mean);
            let (value, pull) = (loss.value(g), 2.0 * variance * s);
            let variance_gap = if variance > 0.0 { (self.u(i) + pull * centred).powi(2) / (2.0 * pull) } else { 0.0 };
            [
                s * (variance * centred.powi(2) + value),
                not_negative(s * (value + loss.conjugate(-v / s)) + v * g),
                variance_gap,
                a(i) * y[i],
                a(i).abs(),
                f64::from(u8::from(a(i) != 0.0)),
            ]
        };
        let [objective, row_gap, variance_gap, balance, size, support] = ordered_sums(m, row);
        let pull = |i: usize| (weights[i] * loss.slope(self.margins[i])).abs().max(a(i).abs());
        let noise2 = |i: usize, norm2: f64| (pull(i) * (length * norm2.sqrt() + intercept.abs())).powi(2);
        let (combined, noise2) = design.combine_and(|i| a(i) * y[i], |i| pull(i) != 0.0, noise2);
        let mut sums = vec![objective, row_gap, variance_gap, balance, size, noise2, support];
        sums.extend(combined);
        sums
    }
}

/// Refuses a question that is not about these rows, and rows that have no place in a problem.
fn check(part: PartRows<'_>, question: &Question) -> Result<()> {
    let wrong = |reason: String| Err(Error::Data { file: "a part of the rows".into(), reason });
    let (m, n) = (part.rows.rows(), part.rows.cols() + usize::from(question.task.bias != Bias::None));
    if part.codes.len() != m || part.weights.len() != m {
        return wrong(format!("{m} rows, {} codes and {} weights", part.codes.len(), part.weights.len()));
    }
    if !part.weights.iter().all(|s| s.is_finite() && *s > 0.0) {
        return wrong("expected weights that are finite and above zero".into());
    }
    let vectors = question.rounds.iter().map(|(place, _)| &place.w).chain([&question.place.w]);
    let vectors = vectors.chain(match &question.ask {
        Ask::Slopes { direction: v, .. } | Ask::Product(v) => Some(v),
        _ => None,
    });
    let places = !matches!(question.ask, Ask::Count | Ask::Weighted);
    match vectors.map(Vec::len).find(|length| places && *length != n) {
        Some(length) => wrong(format!("asked about {length} weights, its rows have {n}")),
        None => Ok(()),
    }
}

/// The lower triangle of a column-major matrix, column after column.
fn packed(matrix: &[f64], n: usize) -> Vec<f64> {
    (0..n).flat_map(|j| &matrix[j * n + j..(j + 1) * n]).copied().collect()
}
