//! Newton's method over rows that lie in parts elsewhere: on the workers of a cluster, or on a disk.
//!
//! All it needs of the rows are sums over them. A [`Question`] is answered for each [`PartRows`] by itself, in a list of numbers;
//! the lists are added up, by whichever engine holds the parts ([`RowParts`]), and the sum is the answer. A question says
//! everything, so that any part can be asked again anywhere; what a part remembers from one question to the next
//! ([`PartMemory`]) only spares it passes.
//!
//! The mean margin of a linear problem is `γ̄ = z·w` with `z = Σ s_i y_i x̃_i / Σ s_i`, found once: so LDM's variance needs no
//! pass of its own. Multipliers of losses with kinks, one a row, never travel: a question tells the points where they took
//! their slopes, and each part follows.

mod part;
mod wire;

pub use part::PartMemory;

use super::Settings;
use super::certify::ROUNDING;
use super::newton::{
    Aim, NORMAL_EQUATIONS, NewtonProblem, Standing, Sums, by_products, factored, first_sigma, iterate,
};
use crate::control::Control;
use crate::data::Matrix;
use crate::linalg::{axpy, dot};
use crate::loss::MarginLoss;
use crate::problem::{Bias, Certificate, MarginProblem, StopReason};
use crate::{Error, Result};

/// Rows in parts: whoever holds them answers a question by the sum of the parts' answers.
pub trait RowParts {
    /// `Σ` of [`PartMemory::answer`] over all parts.
    fn sum(&mut self, question: &Question) -> Result<Vec<f64>>;
}

/// Some of the rows of a problem.
#[derive(Clone, Copy)]
pub struct PartRows<'a> {
    /// The rows.
    pub rows: &'a Matrix<'a>,
    /// The class of each.
    pub codes: &'a [u32],
    /// `s_i > 0`
    pub weights: &'a [f64],
}

/// Up to this many weights the normal equations travel, `n (n + 1) / 2` numbers a part and step; beyond, products do.
const TRAVELLING: usize = 500;
const _: () = assert!(TRAVELLING <= NORMAL_EQUATIONS);
/// `|Σ a_i y_i|` of this part of `Σ |a_i|` is rounding.
const BALANCED: f64 = 1e-13;

/// What is asked of every part.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The problem.
    pub task: PartTask,
    /// Points at which multipliers took their slopes so far, each with the width of its envelope.
    pub rounds: Vec<(PointAsked, f64)>,
    /// The width of this round's envelope; `None` if the loss is smooth.
    pub sigma: Option<f64>,
    /// Where.
    pub place: PointAsked,
    /// What.
    pub ask: Ask,
}

/// The problem, as far as a row knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartTask {
    /// The class with `y = +1`.
    pub positive: u32,
    /// How the intercept is treated.
    pub bias: Bias,
    /// `φ`
    pub loss: MarginLoss,
    /// `κ`
    pub variance: f64,
    /// `Σ s_i y_i / Σ s_i`
    pub mean_y: f64,
}

/// A weight vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PointAsked {
    /// Its number: a part that was there knows its margins.
    pub serial: u64,
    /// `w`, the weight of the constant feature last.
    pub w: Vec<f64>,
    /// `γ̄` of all rows.
    pub mean: f64,
}

/// The sums that are wanted.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// Number of rows, `Σ s_i`, the same over the rows with `y = +1`; `Σ s_i y_i x̃_i`.
    Count,
    /// Four sums of the objective, gap, `Σ |a_i|`, `Σ a_i y_i`; `Σ a_i y_i x̃_i`; the lower triangle of `Σ h_i x̃_i x̃_iᵀ`, column
    /// after column, if it is wanted, else its diagonal. `from` is the place it was reached from and how far along the direction.
    Survey {
        /// Whether the matrix is wanted.
        matrix: bool,
        /// The number of the place, and the step.
        from: Option<(u64, f64)>,
    },
    /// The lower triangle of `Σ s_i x̃_i x̃_iᵀ`, column after column.
    Weighted,
    /// `Σ (h_i + 2 κ s_i) x̃_i (x̃_i · v)`
    Product(Vec<f64>),
    /// What the rows add to the slope along a direction, so many times that far.
    Slopes {
        /// `δ`
        direction: Vec<f64>,
        /// The mean of its margins.
        mean: f64,
        /// `t`
        steps: Vec<f64>,
    },
    /// `Σ |u_i| + |v_i|`, `Σ s_i` of the rows that may move, and `Σ (u_i + v_i) y_i` after each of these moves by `−t s_i y_i`.
    Balance {
        /// Whether rows at an end of their domain may move too.
        all: bool,
        /// `t`
        steps: Vec<f64>,
    },
    /// Objective, gap of the rows and of the variance, `Σ a_i y_i`, `Σ |a_i|`, squared rounding, number of `a_i ≠ 0`,
    /// `Σ a_i y_i x̃_i` of the dual point after these moves.
    Certify {
        /// As in [`Ask::Balance`].
        all: bool,
        /// The move of the loss's part.
        step: f64,
        /// The move of the variance's part, by `−t s_i (y_i − ȳ)`.
        variance_step: f64,
    },
}

/// The matrix again, its upper triangle zero.
fn unpacked(packed: &[f64], n: usize) -> Vec<f64> {
    let (mut matrix, mut rest) = (vec![0.0; n * n], packed);
    for j in 0..n {
        let (column, more) = rest.split_at(n - j);
        matrix[j * n + j..(j + 1) * n].copy_from_slice(column);
        rest = more;
    }
    matrix
}

/// A solution over rows that lie in parts.
#[derive(Clone, Debug)]
pub struct PartsSolution {
    /// The weights of the features.
    pub weights: Vec<f64>,
    /// `b`
    pub intercept: f64,
    /// How good it is.
    pub certificate: Certificate,
    /// Why the solver stopped.
    pub stop: StopReason,
    /// Newton steps.
    pub steps: usize,
    /// `‖w‖`, a regularised intercept included.
    pub norm: f64,
    /// Rows with a dual variable other than zero.
    pub support: usize,
    /// The weight of all rows.
    pub total: f64,
    /// The solver in words.
    pub solver: String,
}

/// Minimises `½‖w‖² + κ Σ s_i (γ_i − γ̄)² + Σ s_i φ(γ_i)` over rows of so many columns that lie in parts. `form` makes `φ` and `κ`
/// of the total weight.
pub fn solve(
    parts: &mut dyn RowParts,
    columns: usize,
    positive: u32,
    bias: Bias,
    form: impl FnOnce(f64) -> Result<(MarginLoss, f64)>,
    settings: &Settings,
    control: Control<'_>,
) -> Result<PartsSolution> {
    let n = columns + usize::from(bias != Bias::None);
    // Nothing of the loss is asked yet.
    let none = PartTask { positive, bias, loss: MarginLoss::hinge(1.0), variance: 0.0, mean_y: 0.0 };
    let first = Question { task: none, rounds: Vec::new(), sigma: None, place: PointAsked::default(), ask: Ask::Count };
    let counted = sums_of(parts, &first, 3 + n)?;
    let (rows, total, positives) = (counted[0] as usize, counted[1], counted[2]);
    if rows == 0 || total <= 0.0 {
        return Err(Error::Data { file: "the parts".into(), reason: "there are no rows in them".into() });
    }
    let (loss, variance) = form(total)?;
    let z: Vec<f64> = counted[3..].iter().map(|z| z / total).collect();
    let mean_y = (2.0 * positives - total) / total;
    let task = PartTask { positive, bias, loss, variance, mean_y };
    let sides = MarginProblem { y: &[1.0, -1.0], weights: &[positives, total - positives], loss, variance, bias };
    let sigma = (!loss.is_smooth()).then(|| first_sigma(sides.height()));
    let place = PointAsked { serial: 1, w: vec![0.0; n], mean: 0.0 };
    let question = Question { task, rounds: Vec::new(), sigma, place, ask: Ask::Count };
    let mut elsewhere = Elsewhere {
        parts,
        question,
        total,
        z,
        columns,
        from: None,
        surveyed: None,
        variance_matrix: Vec::new(),
        products: 0,
        support: 0,
    };
    let settings = settings.with_rows(rows);
    let (certificate, stop, steps) = iterate(&mut elsewhere, sigma, &settings, control)?;
    let stop = if sides.is_unbounded() { StopReason::Unbounded } else { stop };
    let Elsewhere { question, products, support, .. } = elsewhere;
    let mut w = question.place.w;
    let regularised = if bias == Bias::Free { &w[..columns] } else { &w[..] };
    let norm = dot(regularised, regularised).sqrt();
    let intercept = match (bias, w.get(columns)) {
        (Bias::Feature(value), Some(b)) => b * value,
        (_, b) => b.copied().unwrap_or(0.0),
    };
    w.truncate(columns);
    let solver = match products {
        0 => "newton over parts (normal equations)".to_string(),
        products => format!("newton over parts (conjugate gradients, {products} products)"),
    };
    Ok(PartsSolution { weights: w, intercept, certificate, stop, steps, norm, support, total, solver })
}

/// The answer to a question, which has to be so long and in numbers.
fn sums_of(parts: &mut dyn RowParts, question: &Question, length: usize) -> Result<Vec<f64>> {
    let sums = parts.sum(question)?;
    let reason = if sums.len() != length {
        format!("expected {length} sums over the rows, found {}", sums.len())
    } else if sums.iter().any(|sum| !sum.is_finite()) {
        "numbers overflow on these rows: scale the features, or check for values and weights that are far too large"
            .into()
    } else {
        return Ok(sums);
    };
    Err(Error::Numeric { place: "sums over parts", reason })
}

/// What a survey found.
struct Surveyed {
    combined: Vec<f64>,
    /// The packed matrix, or its diagonal.
    curve: Vec<f64>,
}

/// Rows elsewhere, as Newton's method sees them.
struct Elsewhere<'p> {
    parts: &'p mut dyn RowParts,
    /// What every question says.
    question: Question,
    total: f64,
    z: Vec<f64>,
    columns: usize,
    /// How the place was reached.
    from: Option<(u64, f64)>,
    surveyed: Option<Surveyed>,
    /// `2 κ (Σ s_i x̃_i x̃_iᵀ − m z zᵀ)`; empty until it is needed.
    variance_matrix: Vec<f64>,
    products: usize,
    support: usize,
}

impl Elsewhere<'_> {
    fn ask(&mut self, ask: Ask, length: usize) -> Result<Vec<f64>> {
        self.question.ask = ask;
        sums_of(self.parts, &self.question, length)
    }

    fn width(&self) -> usize {
        self.question.place.w.len()
    }

    fn by_matrix(&self) -> bool {
        self.width() <= TRAVELLING
    }

    fn regularised<'w>(&self, w: &'w [f64]) -> &'w [f64] {
        if self.question.task.bias == Bias::Free { &w[..self.columns] } else { w }
    }

    fn apart2(&self, combined: &[f64]) -> f64 {
        let (w, c) = (self.regularised(&self.question.place.w), self.regularised(combined));
        w.iter().zip(c).map(|(w, c)| (w - c).powi(2)).sum()
    }

    fn norm2(&self) -> f64 {
        let w = self.regularised(&self.question.place.w);
        dot(w, w)
    }

    /// `√(2 κ m) z`
    fn mean_direction(&self) -> Vec<f64> {
        let root = (2.0 * self.question.task.variance * self.total).sqrt();
        self.z.iter().map(|z| root * z).collect()
    }

    fn direction(&mut self, surveyed: &Surveyed, gap: f64, control: Control<'_>) -> Result<Vec<f64>> {
        let (n, bias, variance) = (self.width(), self.question.task.bias, self.question.task.variance);
        let mut rhs = surveyed.combined.clone();
        let kept = self.regularised(&self.question.place.w).len();
        rhs[..kept].iter_mut().zip(&self.question.place.w).for_each(|(r, w)| *r -= w);
        if self.by_matrix() {
            let mut matrix = unpacked(&surveyed.curve, n);
            if variance > 0.0 {
                self.add_variance(&mut matrix)?;
            }
            if n > 0 {
                factored(&matrix, n, bias)?.solve(&mut rhs);
            }
            return Ok(rhs);
        }
        let rank_one = (variance > 0.0).then(|| self.mean_direction());
        let accuracy = (0.3 * gap.sqrt()).clamp(1e-9, 0.1);
        let diagonal = surveyed.curve.clone();
        let curve = |v: &[f64]| self.ask(Ask::Product(v.to_vec()), n);
        let (solution, products) = by_products(curve, diagonal, bias, rank_one.as_deref(), &rhs, accuracy, control)?;
        self.products += products;
        Ok(solution)
    }

    fn add_variance(&mut self, matrix: &mut [f64]) -> Result<()> {
        let n = self.width();
        if self.variance_matrix.is_empty() {
            let weighted = self.ask(Ask::Weighted, n * (n + 1) / 2)?;
            self.variance_matrix = unpacked(&weighted, n);
            let factor = 2.0 * self.question.task.variance;
            self.variance_matrix.iter_mut().for_each(|value| *value *= factor);
            let z = self.mean_direction();
            for j in 0..n {
                axpy(-z[j], &z[j..], &mut self.variance_matrix[j * n + j..(j + 1) * n]);
            }
        }
        axpy(1.0, &self.variance_matrix, matrix);
        Ok(())
    }

    /// Moves that make the dual point feasible with a free intercept: of the loss's part (by all rows or not), of the variance's.
    fn balanced(&mut self) -> Result<(bool, f64, f64)> {
        for all in [false, true] {
            let start = self.ask(Ask::Balance { all, steps: vec![0.0] }, 3)?;
            let (size, movable, excess) = (start[0], start[1], start[2]);
            if excess.abs() <= f64::EPSILON * size {
                return Ok((all, 0.0, 0.0));
            }
            if movable > 0.0 {
                let moves = |steps: &[f64]| -> Result<Vec<f64>> {
                    Ok(self.ask(Ask::Balance { all, steps: steps.to_vec() }, 2 + steps.len())?.split_off(2))
                };
                let (guess, enough) = (excess.abs() / movable, f64::EPSILON * size);
                let (step, left) = zero_of_falling(moves, &FIRST_MOVES, excess, guess, enough)?;
                if left.abs() <= BALANCED * size {
                    return Ok((all, step, 0.0));
                }
            }
            let PartTask { variance, mean_y, .. } = self.question.task;
            if variance > 0.0 {
                return Ok((false, 0.0, excess / (self.total * (1.0 - mean_y * mean_y))));
            }
        }
        // No move does: the certificate will say so.
        Ok((false, 0.0, 0.0))
    }
}

impl NewtonProblem for Elsewhere<'_> {
    fn evaluate(&mut self) -> Result<Standing> {
        let n = self.width();
        let matrix = self.by_matrix();
        let length = 4 + n + if matrix { n * (n + 1) / 2 } else { n };
        let sums = self.ask(Ask::Survey { matrix, from: self.from }, length)?;
        let combined = sums[4..4 + n].to_vec();
        let distance2 = self.apart2(&combined);
        self.surveyed = Some(Surveyed { combined, curve: sums[4 + n..].to_vec() });
        let sums = Sums { risk: sums[0], gap: sums[1], size: sums[2], balance: sums[3] };
        Ok(sums.standing(self.question.task.bias, self.norm2(), distance2))
    }

    fn certify(&mut self) -> Result<Certificate> {
        let free = self.question.task.bias == Bias::Free;
        let (all, step, variance_step) = if free { self.balanced()? } else { (false, 0.0, 0.0) };
        let sums = self.ask(Ask::Certify { all, step, variance_step }, 7 + self.width())?;
        let (norm2, risk) = (self.norm2(), sums[0]);
        let primal = 0.5 * norm2 + risk;
        let gap = sums[1] + sums[2] + 0.5 * self.apart2(&sums[7..]);
        let noise = ROUNDING * (sums[5].sqrt() + 0.5 * norm2 + risk.abs());
        let feasible = !free || sums[3].abs() <= BALANCED * sums[4];
        self.support = sums[6] as usize;
        Ok(Certificate { primal, dual: if feasible { primal - gap - noise } else { f64::MIN } })
    }

    fn next_round(&mut self, sigma: f64) {
        let Question { rounds, place, sigma: width, .. } = &mut self.question;
        rounds.push((place.clone(), width.unwrap_or(sigma)));
        *width = Some(sigma);
        self.from = Some((place.serial, 0.0));
        place.serial += 1;
    }

    fn step(&mut self, aim: &Aim, control: Control<'_>) -> Result<()> {
        control.check()?;
        let Some(surveyed) = self.surveyed.take() else { return Ok(()) };
        let direction = self.direction(&surveyed, aim.gap, control)?;
        let mean = dot(&self.z, &direction);
        let (w, delta) = (self.regularised(&self.question.place.w), self.regularised(&direction));
        let (along, norm2) = (dot(w, delta), dot(delta, delta));
        let slope0 = along - dot(&surveyed.combined, &direction);
        let mut step = 0.0;
        if slope0 < 0.0 {
            let falling = |steps: &[f64]| -> Result<Vec<f64>> {
                let ask = Ask::Slopes { direction: direction.clone(), mean, steps: steps.to_vec() };
                let rows = self.ask(ask, steps.len())?;
                Ok(rows.iter().zip(steps).map(|(rows, t)| -(along + t * norm2 + rows)).collect())
            };
            step = zero_of_falling(falling, &FIRST_STEPS, -slope0, 1.0, 0.01 * slope0.abs())?.0;
        }
        let place = &mut self.question.place;
        self.from = Some((place.serial, step));
        axpy(step, &direction, &mut place.w);
        place.mean = dot(&self.z, &place.w);
        place.serial += 1;
        Ok(())
    }
}

/// The points at which a function that never rises is asked for first, in parts of the first guess.
const FIRST_STEPS: [f64; 8] = [0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0];
/// The same where the guess is exact unless rows meet an end of their domain.
const FIRST_MOVES: [f64; 3] = [0.5, 1.0, 2.0];
/// A zero that is not found within this many first guesses is not there.
const FURTHEST: f64 = 1e6;

/// Where a function that never rises is zero, to within `enough`, several values being asked for at a time; and the value there.
/// It is `at_zero` at 0, and its zero may be near `guess` (or `−guess`).
fn zero_of_falling(
    mut f: impl FnMut(&[f64]) -> Result<Vec<f64>>,
    first: &[f64],
    at_zero: f64,
    guess: f64,
    enough: f64,
) -> Result<(f64, f64)> {
    let side = at_zero.signum();
    let mut values = |steps: &[f64]| -> Result<Vec<(f64, f64)>> {
        let places: Vec<f64> = steps.iter().map(|t| side * t).collect();
        Ok(steps.iter().copied().zip(f(&places)?.into_iter().map(|value| side * value)).collect())
    };
    // From here on it falls from above zero.
    let (mut low, mut high): ((f64, f64), Option<(f64, f64)>) = ((0.0, at_zero.abs()), None);
    let mut steps: Vec<f64> = first.iter().map(|t| t * guess).collect();
    let mut best = low;
    for _ in 0..40 {
        for (t, value) in values(&steps)? {
            if value.abs() < best.1.abs() {
                best = (t, value);
            }
            if value > 0.0 && t > low.0 {
                low = (t, value);
            }
            if value <= 0.0 && high.is_none_or(|(far, _)| t < far) {
                high = Some((t, value));
            }
        }
        if best.1.abs() <= enough {
            break;
        }
        steps = match high {
            Some((far, value)) => {
                let width = far - low.0;
                if width <= 2.0 * f64::EPSILON * far {
                    break;
                }
                let secant = low.0 + width * low.1 / (low.1 - value);
                let even = (1..8).map(|k| low.0 + width * f64::from(k) / 8.0);
                even.chain([secant]).filter(|t| *t > low.0 && *t < far).collect()
            }
            None if low.0 > FURTHEST * guess => break,
            None => (1..=4).map(|k| low.0 * 4f64.powi(k)).collect(),
        };
        if steps.is_empty() {
            break;
        }
    }
    Ok((side * best.0, side * best.1))
}
