//! Coefficients of kernel functions as a [`Space`].
//!
//! `w = Σ c_i φ(x_i)`, scores `f = G c + b`. A Newton step solves, over the rows `S` with curvature,
//! `(G_SS + diag(1/h)) Δ = r` (bordered by the conditions of a free intercept and of LDM's mean): of few rows by a factor, of many
//! by conjugate gradients on `(I + √H G_SS √H) u = √H r`, `Δ = √H u`. Half the squared residual of that system is what it adds to
//! the duality gap, with the coefficients as dual variables: it is solved no better than that asks for.

use super::preconditioner::{Preconditioner, WeightedGram};
use super::{Direction, QuadraticModel, Space};
use crate::control::Control;
use crate::kernel::{Gram, KernelRows, Tiles};
use crate::linalg::{self, Cholesky, Enough, conjugate_gradients};
use crate::problem::Bias;
use crate::solver::workspace::Factor;
use crate::{Error, Result};

/// Up to this many rows with curvature, the system is factored; beyond, conjugate gradients are quicker.
const FACTORED: usize = 1000;
/// A factor takes as long as the products of a part of the rows: beyond it, and from there on, systems are factored.
const FACTOR_ROWS: usize = 10;
/// The part of the duality gap that what is left of a system may make up, and of the tolerance; ten times less after a step that
/// gained little.
const FIRST_PART: f64 = 0.001;
const LAST_PART: f64 = 0.25;
/// A step that leaves more than this part of the gap gained little.
const LITTLE: f64 = 0.5;
/// At least so many rows make up for what rows that leave a system take from the sum of the coefficients.
const GIVERS: usize = 64;
/// Up to this part of the rows, kernel values are computed as quickly as a product reads them all (20,000 × 50).
const FEW_TERMS: usize = 16;
/// Most products of conjugate gradients; what they have not found by then, the next Newton step goes on with.
const MOST_PRODUCTS: usize = 2000;
/// The kernel matrix, whole where it is factored, as tiles where it is multiplied with.
#[derive(Clone, Copy)]
pub enum KernelMatrix<'a> {
    /// Every value.
    Whole(&'a Gram),
    /// Tiles, and the rows that they are of.
    Tiled(&'a Tiles, &'a KernelRows<'a>),
}

impl KernelMatrix<'_> {
    /// Its rows.
    fn len(&self) -> usize {
        match self {
            Self::Whole(gram) => gram.len(),
            Self::Tiled(_, rows) => rows.len(),
        }
    }

    /// `G` times each column of `v`; of a column with few terms the kernel values are computed rather than read.
    pub fn multiply(&self, v: &[f64]) -> Result<Vec<f64>> {
        let (tiles, rows) = match self {
            Self::Whole(gram) => {
                let columns: Vec<&[f64]> = v.chunks_exact(gram.len().max(1)).collect();
                return Ok(linalg::each_of(0..columns.len(), |column, _| gram.multiply(columns[column])).concat());
            }
            Self::Tiled(tiles, rows) => (tiles, rows),
        };
        let terms = v.iter().filter(|v| **v != 0.0).count();
        if terms == 0 {
            return Ok(vec![0.0; v.len()]);
        }
        if v.len() == rows.len() && FEW_TERMS * terms <= v.len() {
            let terms: Vec<(usize, f64)> = v.iter().copied().enumerate().filter(|(_, v)| *v != 0.0).collect();
            return tiles.combine(rows, &terms, Control::default());
        }
        tiles.multiply(rows, v)
    }

    /// Writes `(I + √H G_SS √H)` times each column of `v`, `root` being `√h` of the rows `S`.
    pub fn curve(&self, chosen: &[usize], root: &[f64], v: &[f64], out: &mut [f64]) -> Result<()> {
        let (k, n) = (chosen.len(), self.len());
        let mut spread = vec![0.0; v.len() / k * n];
        for (spread, v) in spread.chunks_exact_mut(n).zip(v.chunks_exact(k)) {
            chosen.iter().zip(v.iter().zip(root)).for_each(|(&i, (v, root))| spread[i] = v * root);
        }
        let products = self.multiply(&spread)?;
        for ((out, v), product) in out.chunks_exact_mut(k).zip(v.chunks_exact(k)).zip(products.chunks_exact(n)) {
            for ((out, v), (&i, root)) in out.iter_mut().zip(v).zip(chosen.iter().zip(root)) {
                *out = v + root * product[i];
            }
        }
        Ok(())
    }

    /// `G_SS + diag`, ready to be factored.
    fn principal(&self, chosen: &[usize], diagonal: &[f64], control: Control<'_>) -> Result<Vec<f64>> {
        match self {
            Self::Whole(gram) => Ok(gram.principal(chosen, diagonal)),
            Self::Tiled(_, rows) => {
                let mut matrix = rows.principal(chosen, control)?;
                let pivots = matrix.iter_mut().step_by(chosen.len() + 1);
                pivots.zip(diagonal).for_each(|(pivot, d)| *pivot += d);
                Ok(matrix)
            }
        }
    }
}

/// The quadratic pieces of the loss that rows are on at some margins.
pub struct Pieces {
    /// The margins.
    pub margins: Vec<f64>,
    /// `−s_i φ'` there.
    pub a: Vec<f64>,
    /// `s_i φ''` there.
    pub curvature: Vec<f64>,
}

impl Pieces {
    /// Those of some rows.
    pub fn of_rows(&self, chosen: &[usize]) -> Self {
        let some = |values: &[f64]| chosen.iter().map(|&i| values[i]).collect();
        Self { margins: some(&self.margins), a: some(&self.a), curvature: some(&self.curvature) }
    }
}

/// `w = Σ c_i φ(x_i)` with its scores.
pub struct CoefficientSpace<'a> {
    gram: KernelMatrix<'a>,
    y: &'a [f64],
    bias: Bias,
    c: Vec<f64>,
    /// `G c`, without the intercept.
    scores: Vec<f64>,
    /// `b`, explicit whether it is free or the weight of a constant feature: `½ r b²` is all that tells them apart
    /// ([`Bias::ridge`]), and `B²` never meets the kernel values.
    intercept: f64,
    margins: Vec<f64>,
    delta: (Vec<f64>, Vec<f64>, f64),
    /// The factor of the last system, if it was factored.
    factor: Option<Factor>,
    /// The part of the gap to which the last system was solved by conjugate gradients, and the gap before it.
    solved_to: (f64, f64),
    /// Whether conjugate gradients took longer than a factor.
    factored: bool,
    /// What the last system was preconditioned by.
    weighted: Option<WeightedGram>,
    /// Products of conjugate gradients so far.
    pub products: usize,
    /// On which piece of the loss each row is believed to end.
    guess: Option<Pieces>,
}

impl<'a> CoefficientSpace<'a> {
    /// The space at coefficients `c` and free intercept `b`; any other intercept follows from `c`.
    pub fn new(gram: KernelMatrix<'a>, y: &'a [f64], bias: Bias, c: Vec<f64>, intercept: f64) -> Result<Self> {
        let intercept = match bias {
            Bias::None => 0.0,
            Bias::Feature(value) => value * value * c.iter().sum::<f64>(),
            Bias::Free => intercept,
        };
        let scores = gram.multiply(&c)?;
        let margins = scores.iter().zip(y).map(|(f, y)| y * (f + intercept)).collect();
        Ok(Self {
            gram,
            y,
            bias,
            c,
            scores,
            intercept,
            margins,
            delta: Default::default(),
            factor: None,
            solved_to: (1.0, f64::INFINITY),
            factored: false,
            weighted: None,
            products: 0,
            guess: None,
        })
    }

    /// The same with the pieces of the loss on which the rows are believed to end: the first step is made for these.
    pub fn guessing(self, pieces: Option<Pieces>) -> Self {
        Self { guess: pieces, ..self }
    }

    /// The same space at other coefficients, with the same intercept.
    pub fn at(&self, c: Vec<f64>) -> Result<Self> {
        Self::new(self.gram, self.y, self.bias, c, self.intercept)
    }

    /// The coefficients.
    pub fn coefficients(&self) -> &[f64] {
        &self.c
    }

    /// Takes over the factor that another space found last, and its count of products.
    pub fn take_factor(&mut self, from: &mut Self) {
        self.factor = from.factor.take();
        self.products = from.products;
    }

    /// The factor of the last system, if it was factored.
    pub fn into_factor(self) -> Option<Factor> {
        self.factor
    }

    /// `r`, zero where there is no intercept to draw at.
    fn ridge(&self) -> f64 {
        if self.bias == Bias::None { 0.0 } else { self.bias.ridge() }
    }

    /// `b`
    pub fn intercept(&self) -> f64 {
        self.intercept
    }

    /// Solves `(G_SS + diag(1/h)) Z = R` for several right-hand sides, column after column, by a factor.
    fn by_factor(&mut self, chosen: &[usize], h: &[f64], mut rhs: Vec<f64>, control: Control<'_>) -> Result<Vec<f64>> {
        let diagonal: Vec<f64> = h.iter().map(|h| 1.0 / h).collect();
        let mut matrix = Some(self.gram.principal(chosen, &diagonal, control)?);
        let matrix = || match matrix.take() {
            Some(matrix) => matrix,
            None => self.gram.principal(chosen, &diagonal, Control::default()).unwrap_or_default(),
        };
        let factor = Cholesky::lifted(matrix, chosen.len()).map_err(|_| Error::Numeric {
            place: "kernel system",
            reason: "the kernel matrix is not positive semidefinite".into(),
        })?;
        factor.solve(&mut rhs);
        let mut curvature = vec![0.0; self.y.len()];
        chosen.iter().zip(h).for_each(|(&i, h)| curvature[i] = *h);
        self.factor = Some(Factor { curvature, cholesky: factor });
        Ok(rhs)
    }

    /// The same by conjugate gradients, if that is not longer than a factor takes.
    fn by_gradients(
        &mut self,
        system: &System<'_>,
        mut rhs: Vec<f64>,
        model: &QuadraticModel<'_>,
        control: Control<'_>,
    ) -> Result<Option<Vec<f64>>> {
        let System { chosen, root, most, .. } = system;
        let k = chosen.len();
        rhs.chunks_exact_mut(k).for_each(|rhs| rhs.iter_mut().zip(root).for_each(|(r, root)| *r *= root));
        let enough = self.enough(model);
        let apply = |v: &[f64], out: &mut [f64]| {
            control.check()?;
            self.gram.curve(chosen, root, v, out)
        };
        let precondition = |r: &[f64], out: &mut [f64]| system.preconditioner.apply(r, out);
        let length = linalg::dot(&rhs[..k], &rhs[..k]).sqrt();
        let accuracy = ((2.0 * enough).sqrt() / length.max(f64::MIN_POSITIVE)).clamp(f64::EPSILON, 0.5);
        let mut solution = vec![0.0; rhs.len()];
        let end = conjugate_gradients(k, apply, precondition, &rhs, &mut solution, Enough::Residual(accuracy), *most)?;
        self.products += end.products;
        self.factored = system.factor_fits && !end.converged && end.products >= *most;
        solution.chunks_exact_mut(k).for_each(|u| u.iter_mut().zip(root).for_each(|(u, root)| *u *= root));
        Ok((!self.factored).then_some(solution))
    }

    /// What the squared residual of a system may add to the gap.
    fn enough(&mut self, model: &QuadraticModel<'_>) -> f64 {
        let (before, gap_before) = self.solved_to;
        let tightness = if model.gap < LITTLE * gap_before { before } else { 0.1 * before };
        self.solved_to = (tightness, model.gap);
        tightness * (FIRST_PART * model.gap).max(LAST_PART * model.tol) * model.scale
    }

    /// The step that a model asks for: the changes of the coefficients, of the scores (without the intercept) and of the intercept.
    fn step(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<(Vec<f64>, Vec<f64>, f64)> {
        let double = 2.0 * model.variance;
        let all: Vec<f64> = model.curvature.iter().zip(model.weights).map(|(h, s)| h + double * s).collect();
        let chosen: Vec<usize> = (0..all.len()).filter(|&i| all[i] > 0.0).collect();
        let h: Vec<f64> = chosen.iter().map(|&i| all[i]).collect();
        self.factor = None;
        let system = match self.gram {
            KernelMatrix::Tiled(tiles, rows) if chosen.len() > FACTORED && !self.factored => {
                Some(self.system(tiles, rows, chosen.clone(), &h, control)?)
            }
            _ => None,
        };
        if let (Some(system), 0.0, Bias::Free | Bias::None) = (&system, double, self.bias)
            && let Some(step) = self.tracked(system, model, control)?
        {
            return Ok(step);
        }
        let system = system.filter(|_| !self.factored);
        let (target, change_b) = self.bordered(model, &chosen, &h, system.as_ref(), control)?;
        let change: Vec<f64> = target.iter().zip(&self.c).map(|(t, c)| t - c).collect();
        let scores = self.gram.multiply(&change)?;
        Ok((change, scores, change_b))
    }

    /// The system of the rows with curvature, for conjugate gradients.
    fn system(
        &mut self,
        tiles: &'a Tiles,
        rows: &'a KernelRows<'a>,
        chosen: Vec<usize>,
        h: &[f64],
        control: Control<'_>,
    ) -> Result<System<'a>> {
        let root: Vec<f64> = h.iter().map(|h| h.sqrt()).collect();
        let part = tiles.low_rank(rows, h, control)?;
        let preconditioner = Preconditioner::new(part, rows.len(), chosen.clone(), root.clone(), &mut self.weighted)?;
        let factor_fits = 8 * (chosen.len() as u64).pow(2) <= tiles.memory();
        let most = if factor_fits { (chosen.len() / FACTOR_ROWS).min(MOST_PRODUCTS) } else { MOST_PRODUCTS };
        Ok(System { chosen, h: h.to_vec(), root, preconditioner, factor_fits, most })
    }

    /// Where rows without curvature go at once: to their dual variable. The others stay.
    fn at_once(&self, model: &QuadraticModel<'_>, chosen: &[usize]) -> Vec<f64> {
        let mut target: Vec<f64> = model.a.iter().zip(self.y).map(|(a, y)| a * y).collect();
        chosen.iter().for_each(|&i| target[i] = self.c[i]);
        target
    }

    /// The step by conjugate gradients among coefficients whose sum is zero, if the intercept is free; the scores follow every
    /// step of theirs, and no product is made beside. `None` if they took longer than a factor.
    fn tracked(
        &mut self,
        system: &System<'_>,
        model: &QuadraticModel<'_>,
        control: Control<'_>,
    ) -> Result<Option<TrackedStep>> {
        let System { chosen, h, root, most, .. } = system;
        let (n, k, free) = (self.y.len(), chosen.len(), self.bias == Bias::Free);
        let mut target = self.at_once(model, chosen);
        if free {
            // What rows that go at once take from the sum, some of the others give.
            let gone = target.iter().zip(&self.c).filter(|(t, c)| t != c).count();
            let givers = (2 * gone).max(GIVERS).min(k);
            let share = target.iter().sum::<f64>() / givers as f64;
            (0..givers).for_each(|g| target[chosen[g * k / givers]] -= share);
        }
        let mut change: Vec<f64> = target.iter().zip(&self.c).map(|(t, c)| t - c).collect();
        let mut scores = self.gram.multiply(&change)?;
        let mut residual: Vec<f64> = (0..k)
            .map(|p| {
                let i = chosen[p];
                root[p] * ((self.y[i] * model.a[i] - target[i]) / h[p] - scores[i])
            })
            .collect();
        // The constraint's normal is √h; the system holds up to it (Gould, Hribar & Nocedal 2001).
        let mut pull = vec![0.0; k];
        system.preconditioner.apply(root, &mut pull);
        let total = linalg::dot(&pull, root);
        let project = |v: &mut [f64]| {
            if free {
                let part = linalg::dot(&pull, v) / total;
                linalg::axpy(-part, root, v);
            }
        };
        project(&mut residual);
        let enough = 2.0 * self.enough(model);
        let (mut scaled, mut spread, mut products) = (vec![0.0; k], vec![0.0; n], 0);
        system.preconditioner.apply(&residual, &mut scaled);
        let (mut direction, mut rho) = (scaled.clone(), linalg::dot(&residual, &scaled));
        // What is not above zero is rounding, or no number.
        while linalg::dot(&residual, &residual) > enough && rho > 0.0 && products < *most {
            control.check()?;
            (0..k).for_each(|p| spread[chosen[p]] = root[p] * direction[p]);
            let product = self.gram.multiply(&spread)?;
            products += 1;
            let mut applied: Vec<f64> = (0..k).map(|p| direction[p] + root[p] * product[chosen[p]]).collect();
            project(&mut applied);
            let curvature = linalg::dot(&direction, &applied);
            if curvature <= 0.0 || curvature.is_nan() {
                break;
            }
            let step = rho / curvature;
            linalg::axpy(step, &spread, &mut change);
            linalg::axpy(step, &product, &mut scores);
            linalg::axpy(-step, &applied, &mut residual);
            system.preconditioner.apply(&residual, &mut scaled);
            let next = linalg::dot(&residual, &scaled);
            direction.iter_mut().zip(&scaled).for_each(|(p, z)| *p = z + next / rho * *p);
            rho = next;
        }
        self.products += products;
        self.factored = system.factor_fits && products >= *most && linalg::dot(&residual, &residual) > enough;
        if self.factored {
            return Ok(None);
        }
        let change_b = if free { self.intercept_change(model, &change, &scores) } else { 0.0 };
        Ok(Some((change, scores, change_b)))
    }

    /// What the rows with curvature still lack once all coefficients are these: `(y_i a_i − c_i)/h_i + (G (c_before − c))_i`.
    fn right_hand_side(
        &self,
        model: &QuadraticModel<'_>,
        target: &[f64],
        chosen: &[usize],
        h: &[f64],
    ) -> Result<Vec<f64>> {
        let moved: Vec<f64> = self.c.iter().zip(target).map(|(c, t)| c - t).collect();
        let shift = self.gram.multiply(&moved)?;
        let row = |(&i, h): (&usize, &f64)| (self.y[i] * model.a[i] - target[i]) / h + shift[i];
        Ok(chosen.iter().zip(h).map(row).collect())
    }

    /// The new coefficients and the change of the intercept, with the conditions of the intercept and of the mean margin as further
    /// right-hand sides.
    fn bordered(
        &mut self,
        model: &QuadraticModel<'_>,
        chosen: &[usize],
        h: &[f64],
        system: Option<&System<'_>>,
        control: Control<'_>,
    ) -> Result<(Vec<f64>, f64)> {
        let (k, double) = (chosen.len(), 2.0 * model.variance);
        let (free, ridge) = (self.bias != Bias::None, self.ridge());
        let mut target = self.at_once(model, chosen);
        // `Σ c = r b` holds in the end.
        let balance: f64 = target.iter().sum::<f64>() - ridge * self.intercept;
        let mut rhs = self.right_hand_side(model, &target, chosen, h)?;
        if free {
            rhs.extend(std::iter::repeat_n(1.0, k));
        }
        if double > 0.0 {
            rhs.extend((0..k).map(|p| self.y[chosen[p]] * double * model.weights[chosen[p]] / h[p]));
        }
        let z = match system {
            _ if k == 0 => Vec::new(),
            None => self.by_factor(chosen, h, rhs, control)?,
            Some(system) => match self.by_gradients(system, rhs.clone(), model, control)? {
                Some(z) => z,
                None => self.by_factor(chosen, h, rhs, control)?,
            },
        };
        let column = |number: usize| &z[number * k..(number + 1) * k];
        let (change_b, change_mean) = if double > 0.0 {
            self.border(model, chosen, h, column(0), free.then(|| column(1)), column(1 + usize::from(free)), balance)
        } else if free {
            let pull: f64 = ridge + if k > 0 { column(1).iter().sum() } else { 0.0 };
            let excess: f64 = balance + if k > 0 { column(0).iter().sum() } else { 0.0 };
            // Where nothing curves, go downhill; the line search finds how far.
            (if pull > 0.0 { excess / pull } else { excess / self.y.len() as f64 }, 0.0)
        } else {
            (0.0, 0.0)
        };
        for p in 0..k {
            let mut change = column(0)[p];
            if free {
                change -= change_b * column(1)[p];
            }
            if double > 0.0 {
                change += change_mean * column(1 + usize::from(free))[p];
            }
            target[chosen[p]] += change;
        }
        Ok((target, change_b))
    }

    /// The change of a free intercept that leaves least of the system, given the change of the scores:
    /// `Δb` is the mean, weighed by `h`, of `(y_i a_i − c_i)/h_i − Δf_i` over the rows with curvature.
    fn intercept_change(&self, model: &QuadraticModel<'_>, change: &[f64], scores: &[f64]) -> f64 {
        let rows = (0..change.len()).filter(|&i| model.curvature[i] > 0.0);
        let (mut sum, mut weight) = (0.0, 0.0);
        for i in rows {
            sum += self.y[i] * model.a[i] - self.c[i] - change[i] - model.curvature[i] * scores[i];
            weight += model.curvature[i];
        }
        sum / weight
    }

    /// Changes of `b` and of the mean margin from their two linear conditions, `Σ c = r b` and `m Δγ̄ = Σ s_i Δγ_i`, with
    /// `Δ = z0 − Δb z1 + Δγ̄ z2` and `Δγ_i = (a_i − y_i (c_i + Δ_i) + 2 κ s_i Δγ̄) / h_i`. Every row has curvature here.
    #[allow(clippy::too_many_arguments)]
    fn border(
        &self,
        model: &QuadraticModel<'_>,
        chosen: &[usize],
        h: &[f64],
        z0: &[f64],
        z1: Option<&[f64]>,
        z2: &[f64],
        balance: f64,
    ) -> (f64, f64) {
        let (mut constant, mut by_b, mut by_mean) = (0.0, 0.0, -model.weights.iter().sum::<f64>());
        for (p, &i) in chosen.iter().enumerate() {
            let (s, y) = (model.weights[i] / h[p], self.y[i]);
            constant += s * (model.a[i] - y * (self.c[i] + z0[p]));
            by_mean += s * (2.0 * model.variance * model.weights[i] - y * z2[p]);
            by_b += z1.map_or(0.0, |z1| s * y * z1[p]);
        }
        let Some(z1) = z1 else { return (0.0, -constant / by_mean) };
        let sum = |z: &[f64]| z.iter().sum::<f64>();
        // balance + Σz0 − Δb (Σz1 + r) + Δγ̄ Σz2 = 0  and  constant + Δb by_b + Δγ̄ by_mean = 0
        let (a11, a12, r1) = (sum(z1) + self.ridge(), -sum(z2), balance + sum(z0));
        let (a21, a22, r2) = (by_b, by_mean, -constant);
        let determinant = a11 * a22 - a12 * a21;
        ((r1 * a22 - a12 * r2) / determinant, (a11 * r2 - a21 * r1) / determinant)
    }
}

/// What a step changes in coefficients, scores and intercept.
type TrackedStep = (Vec<f64>, Vec<f64>, f64);

/// A Newton system that conjugate gradients solve.
struct System<'a> {
    chosen: Vec<usize>,
    h: Vec<f64>,
    /// `√h_i`
    root: Vec<f64>,
    preconditioner: Preconditioner<'a>,
    /// Whether a factor of the system fits the memory, and after how many products it is the quicker way.
    factor_fits: bool,
    most: usize,
}

impl Space for CoefficientSpace<'_> {
    fn margins(&self) -> &[f64] {
        &self.margins
    }

    fn norm2(&self) -> f64 {
        linalg::dot(&self.c, &self.scores).max(0.0) + self.ridge() * self.intercept.powi(2)
    }

    /// Only where products are dear: a factored system costs more than the one that slopes ask for.
    fn own_dual(&self) -> Option<Vec<f64>> {
        let KernelMatrix::Tiled(..) = self.gram else { return None };
        let near = |ridge: f64| (self.c.iter().sum::<f64>() - ridge * self.intercept).abs();
        let size = self.c.iter().map(|c| c.abs()).sum::<f64>();
        let balanced = self.bias == Bias::None || near(self.ridge()) <= 1e-9 * size;
        balanced.then(|| self.c.iter().zip(self.y).map(|(c, y)| c * y).collect())
    }

    fn distance2(&mut self, a: &[f64]) -> Result<f64> {
        let apart: Vec<f64> = (0..a.len()).map(|i| self.c[i] - a[i] * self.y[i]).collect();
        let distance2 = linalg::dot(&apart, &self.gram.multiply(&apart)?);
        let constant = match self.bias {
            Bias::Feature(value) => {
                self.intercept / value - value * a.iter().zip(self.y).map(|(a, y)| a * y).sum::<f64>()
            }
            Bias::None | Bias::Free => 0.0,
        };
        Ok(distance2.max(0.0) + constant * constant)
    }

    fn direction(&mut self, model: &QuadraticModel<'_>, control: Control<'_>) -> Result<Direction> {
        let (change, scores, change_b) = match self.guess.take() {
            None => self.step(model, control)?,
            Some(guess) => {
                let a =
                    (0..guess.a.len()).map(|i| guess.a[i] - guess.curvature[i] * (self.margins[i] - guess.margins[i]));
                let (a, curvature) = (a.collect::<Vec<_>>(), guess.curvature.as_slice());
                self.step(&QuadraticModel { a: &a, curvature, ..*model }, control)?
            }
        };
        let direction = Direction {
            margins: scores.iter().zip(self.y).map(|(f, y)| y * (f + change_b)).collect(),
            along: linalg::dot(&self.scores, &change) + self.ridge() * self.intercept * change_b,
            norm2: linalg::dot(&change, &scores).max(0.0) + self.ridge() * change_b.powi(2),
        };
        self.delta = (change, scores, change_b);
        Ok(direction)
    }

    fn advance(&mut self, step: f64, direction: Direction, _model: &QuadraticModel<'_>) {
        let (change, scores, change_b) = &self.delta;
        linalg::axpy(step, change, &mut self.c);
        linalg::axpy(step, scores, &mut self.scores);
        linalg::axpy(step, &direction.margins, &mut self.margins);
        self.intercept += step * change_b;
    }
}
