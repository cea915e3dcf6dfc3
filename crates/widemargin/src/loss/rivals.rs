//! Losses of the margins against every rival.

use super::block::{RowBlock, Supply};

/// A convex loss of the `k` scores of a row, for block coordinate descent.
pub trait RivalLoss: Sync {
    /// The class `r_i` that `β_i` raises, if there is one.
    fn partner(&self, _i: usize) -> Option<u32> {
        None
    }
    /// Freezes another rival class `r_i`, where a loss does that; tells `β_i` at this margin against it.
    fn freeze(&mut self, _i: usize, _rival: u32, _margin: f64) -> Option<f64> {
        None
    }
    /// `ℓ_i` at the own class's score, the rivals' scores and the partner's score.
    fn value(&self, i: usize, own: f64, rivals: &[f64], partner: f64) -> f64;
    /// `ℓ*_i(−v)` for `Σ_l ζ_i^l = total` and `β_i`.
    fn conjugate(&self, i: usize, total: f64, beta: f64) -> f64;
    /// Solves the row's sub-problem for `A = a`.
    fn solve(&self, i: usize, a: f64, block: &mut RowBlock);
    /// How the solution for `A = a` with `Σ_l ζ^l = total` and `β` follows the scores.
    fn response(&self, i: usize, a: f64, total: f64, beta: f64) -> Response;
    /// Whether a `ζ^l > 0` follows the scores, or rests at a limit of its own.
    fn is_free(&self, _i: usize, _zeta: f64) -> bool {
        true
    }
    /// How much the loss of a row may pull: its slope where all scores are equal.
    fn height(&self, i: usize) -> f64;
    /// The largest curvature in a margin, where that has no kinks.
    fn curvature(&self) -> Option<f64> {
        None
    }
    /// The losses of some of the rows, each so many times as heavy.
    fn some(&self, rows: &[usize], factor: f64) -> Self
    where
        Self: Sized;
}

fn some_costs(cost: &[f64], rows: &[usize], factor: f64) -> Vec<f64> {
    rows.iter().map(|&i| factor * cost[i]).collect()
}

/// The derivative of a row's solution `v` by its scores `s̄`. With `Φ` the classes whose `ζ` follows the scores,
/// `n = |Φ|`, `S` the slope of the supply (0 at its cap), `T = S + n`, `β = p (A Z + s̄_y − s̄_r − …)` and
/// `u = (1 − Ap) e_y + Ap e_r`:
///
/// ```text
/// −∂v/∂s̄ = (1/A) [ diag(1_Φ) − 1_Φ1_Φᵀ/T − (S/T)(1_Φ uᵀ + u 1_Φᵀ) + (S n/T) u uᵀ ] + p (e_y − e_r)(e_y − e_r)ᵀ
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// `S`
    pub slope: f64,
    /// `p`; 0 where `β = 0`.
    pub beta: f64,
}

impl Response {
    /// Lists `(row, column, value)` of the derivative's lower triangle, by class.
    pub fn curvature(
        &self,
        a: f64,
        own: u32,
        partner: Option<u32>,
        free: impl Iterator<Item = u32>,
        list: &mut Vec<(u32, u32, f64)>,
    ) {
        list.clear();
        let p = self.beta;
        let partner = partner.filter(|_| p > 0.0);
        // Every entry by its class, with its `1_Φ` and `u`.
        let mut entries: Vec<(u32, f64, f64)> = free.map(|l| (l, 1.0, 0.0)).collect();
        let n = entries.len() as f64;
        if n == 0.0 && p == 0.0 {
            return;
        }
        entries.push((own, 0.0, 1.0 - a * p));
        entries.extend(partner.map(|r| (r, 0.0, a * p)));
        let total = self.slope + n;
        let pull = |l: u32| f64::from(l == own) - f64::from(Some(l) == partner);
        for &(row, phi, u) in &entries {
            for &(column, other_phi, other_u) in entries.iter().filter(|e| e.0 <= row) {
                let same = if row == column { phi } else { 0.0 };
                let shared = if n == 0.0 {
                    0.0
                } else {
                    phi * other_phi + self.slope * (phi * other_u + u * other_phi - n * u * other_u)
                };
                let value = (same - shared / total.max(f64::MIN_POSITIVE)) / a + p * pull(row) * pull(column);
                if value != 0.0 {
                    list.push((row, column, value));
                }
            }
        }
    }
}

/// How mcODM's upper side `γ_i ≤ 1 + θ + ε_i` is made convex in one round.
#[derive(Clone, Debug)]
pub enum Frozen {
    /// The rival class `r_i`: `w_y·x − w_r·x ≤ 1 + θ + ε`.
    Class(Vec<u32>),
    /// The rival's score `M_i` (Eq. 2): `w_y·x − M ≤ 1 + θ + ε`.
    Score(Vec<f64>),
}

/// mcODM's loss of one round: `c_i (ξ² + μ ε²)`, `c_i = s_i λ / (m (1−θ)²)`.
#[derive(Clone, Debug)]
pub struct OdmLoss {
    /// `c_i`
    pub cost: Vec<f64>,
    /// `μ`; 0 drops the upper side.
    pub mu: f64,
    /// `θ`
    pub theta: f64,
    /// What is frozen this round.
    pub frozen: Frozen,
}

impl OdmLoss {
    /// `c_i (ξ² + μ ε²)` at a margin of the lower and of the upper side.
    pub fn at(&self, i: usize, lower: f64, upper: f64) -> f64 {
        let xi = (1.0 - self.theta - lower).max(0.0);
        let epsilon = (upper - 1.0 - self.theta).max(0.0);
        self.cost[i] * (xi * xi + self.mu * epsilon * epsilon)
    }

    /// `Z = 2c (1 − θ − s_y + ν)` with `β = p (A Z + q)` put in, as a [`Supply`].
    fn supply(&self, i: usize, a: f64, own: f64, p: f64, q: f64) -> Supply {
        let twice = 2.0 * self.cost[i];
        let slope = twice * a / (1.0 + twice * a * (1.0 - a * p));
        Supply { start: own - (1.0 - self.theta) - a * p * q, slope, cap: f64::INFINITY }
    }

    fn solve_without_norm(&self, i: usize, block: &mut RowBlock) {
        let top = block.best().map_or(f64::NEG_INFINITY, |b| block.rest[b]);
        block.put_on_best(2.0 * self.cost[i] * (1.0 - self.theta - block.own + top));
        let (q, _) = self.upper(i, 0.0, block);
        block.beta = (2.0 * self.cost[i] * self.mu * q).max(0.0);
    }

    /// `(q, p)` of `β = max(0, p (A Z + q))`: `q` is how far the upper side is broken without the row's own part.
    fn upper(&self, i: usize, a: f64, block: &RowBlock) -> (f64, f64) {
        let rival = match &self.frozen {
            Frozen::Class(_) => block.partner.map_or(0.0, |r| block.rest[r]),
            Frozen::Score(m) => m[i],
        };
        (block.own - rival - 1.0 - self.theta, self.upper_slope(i, a))
    }

    /// `p`: a partner class moves too, a frozen score does not.
    fn upper_slope(&self, i: usize, a: f64) -> f64 {
        let twice = 2.0 * self.cost[i] * self.mu;
        let moving = if matches!(self.frozen, Frozen::Class(_)) { 2.0 } else { 1.0 };
        twice / (1.0 + moving * twice * a)
    }
}

impl RivalLoss for OdmLoss {
    fn partner(&self, i: usize) -> Option<u32> {
        match &self.frozen {
            Frozen::Class(r) => Some(r[i]),
            Frozen::Score(_) => None,
        }
    }

    fn freeze(&mut self, i: usize, rival: u32, margin: f64) -> Option<f64> {
        let Frozen::Class(rivals) = &mut self.frozen else { return None };
        if self.mu == 0.0 || rivals[i] == rival {
            return None;
        }
        rivals[i] = rival;
        Some(2.0 * self.cost[i] * self.mu * (margin - 1.0 - self.theta).max(0.0))
    }

    fn value(&self, i: usize, own: f64, rivals: &[f64], partner: f64) -> f64 {
        let top = rivals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let upper = match &self.frozen {
            Frozen::Class(_) => own - partner,
            Frozen::Score(m) => own - m[i],
        };
        self.at(i, own - top, upper)
    }

    fn conjugate(&self, i: usize, total: f64, beta: f64) -> f64 {
        let (c, shift) = match &self.frozen {
            Frozen::Class(_) => (self.cost[i], 0.0),
            Frozen::Score(m) => (self.cost[i], m[i]),
        };
        let upper =
            if beta == 0.0 { 0.0 } else { (1.0 + self.theta + shift) * beta + beta * beta / (4.0 * c * self.mu) };
        total * total / (4.0 * c) - (1.0 - self.theta) * total + upper
    }

    /// Algorithm 2 with both relaxations in one: first with `β = 0` (case 1); if that breaks the upper side, with
    /// `β > 0` (case 2), where a partner class has `ζ^r = 0`, because its two constraints exclude each other.
    fn solve(&self, i: usize, a: f64, block: &mut RowBlock) {
        if a <= 0.0 {
            return self.solve_without_norm(i, block);
        }
        block.beta = 0.0;
        let level = block.level(self.supply(i, a, block.own, 0.0, 0.0));
        let total = block.share(level, a);
        if self.mu == 0.0 {
            return;
        }
        let (q, p) = self.upper(i, a, block);
        let rival = block.partner.map_or(0.0, |r| block.zeta[r]);
        if q + a * (total + rival) <= 0.0 {
            return;
        }
        let level = block.level_without_partner(self.supply(i, a, block.own, p, q));
        let mut total = block.share(level, a);
        if let Some(partner) = block.partner {
            total -= std::mem::take(&mut block.zeta[partner]);
        }
        block.beta = (p * (a * total + q)).max(0.0);
    }

    fn response(&self, i: usize, a: f64, _total: f64, beta: f64) -> Response {
        let p = if beta > 0.0 { self.upper_slope(i, a) } else { 0.0 };
        Response { slope: self.supply(i, a, 0.0, p, 0.0).slope, beta: p }
    }

    fn height(&self, i: usize) -> f64 {
        2.0 * self.cost[i] * (1.0 - self.theta)
    }

    fn curvature(&self) -> Option<f64> {
        Some(2.0 * self.mu.max(1.0) * self.cost.iter().copied().fold(0.0, f64::max))
    }

    fn some(&self, rows: &[usize], factor: f64) -> Self {
        let frozen = match &self.frozen {
            Frozen::Class(r) => Frozen::Class(rows.iter().map(|&i| r[i]).collect()),
            Frozen::Score(m) => Frozen::Score(rows.iter().map(|&i| m[i]).collect()),
        };
        Self { cost: some_costs(&self.cost, rows, factor), frozen, ..*self }
    }
}

/// Crammer and Singer's loss `C_i max(0, 1 − s_y + max_{l≠y} s_l)`.
#[derive(Clone, Debug)]
pub struct CrammerSinger {
    /// `C_i = s_i C`
    pub cost: Vec<f64>,
}

impl RivalLoss for CrammerSinger {
    fn value(&self, i: usize, own: f64, rivals: &[f64], _partner: f64) -> f64 {
        let top = rivals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        self.cost[i] * (1.0 - own + top).max(0.0)
    }

    fn conjugate(&self, _i: usize, total: f64, _beta: f64) -> f64 {
        -total
    }

    /// `0 ≤ Σ ζ ≤ C`: the level, or the level at which `Σ ζ = C`.
    fn solve(&self, i: usize, a: f64, block: &mut RowBlock) {
        let start = block.own - 1.0;
        if a <= 0.0 {
            let above = block.best().is_some_and(|b| block.rest[b] > start);
            return block.put_on_best(if above { self.cost[i] } else { 0.0 });
        }
        let level = block.level(Supply { start, slope: 1.0, cap: a * self.cost[i] });
        let total = block.share(level, a);
        if total > self.cost[i] {
            // Rounding: `s̄ − ν` loses digits, the limit must hold to the last one.
            block.zeta.iter_mut().for_each(|z| *z *= self.cost[i] / total);
        }
    }

    fn response(&self, i: usize, _a: f64, total: f64, _beta: f64) -> Response {
        let at_limit = total >= self.cost[i] * (1.0 - 1e-12);
        Response { slope: if at_limit { 0.0 } else { 1.0 }, beta: 0.0 }
    }

    fn height(&self, i: usize) -> f64 {
        self.cost[i]
    }

    fn some(&self, rows: &[usize], factor: f64) -> Self {
        Self { cost: some_costs(&self.cost, rows, factor) }
    }
}

/// Weston and Watkins' loss `C_i Σ_{l≠y} max(0, 1 − s_y + s_l)`.
#[derive(Clone, Debug)]
pub struct WestonWatkins {
    /// `C_i = s_i C`
    pub cost: Vec<f64>,
}

impl RivalLoss for WestonWatkins {
    fn value(&self, i: usize, own: f64, rivals: &[f64], _partner: f64) -> f64 {
        self.cost[i] * rivals.iter().map(|s| (1.0 - own + s).max(0.0)).sum::<f64>()
    }

    fn conjugate(&self, _i: usize, total: f64, _beta: f64) -> f64 {
        -total
    }

    /// `ζ^l = clip((s̄_l − ν)/A, 0, C)` where `Σ_l clip(s̄_l − ν, 0, AC) = ν − (s̄_y − 1)`: walk down the sorted kinks.
    fn solve(&self, i: usize, a: f64, block: &mut RowBlock) {
        let (cost, start) = (self.cost[i], block.own - 1.0);
        block.zeta.clear();
        if a <= 0.0 {
            block.zeta.extend(block.rest.iter().map(|&s| if s > start { cost } else { 0.0 }));
            return;
        }
        block.sorted.clear();
        block.sorted.extend(block.rest.iter().copied().filter(|&s| s > start));
        block.sorted.sort_unstable_by(|x, y| y.total_cmp(x));
        let level = clipped_level(&block.sorted, start, a * cost);
        block.zeta.extend(block.rest.iter().map(|s| (s - level).clamp(0.0, a * cost) / a));
    }

    fn response(&self, _i: usize, _a: f64, _total: f64, _beta: f64) -> Response {
        Response { slope: 1.0, beta: 0.0 }
    }

    fn is_free(&self, i: usize, zeta: f64) -> bool {
        zeta < self.cost[i] * (1.0 - 1e-12)
    }

    fn height(&self, i: usize) -> f64 {
        self.cost[i]
    }

    fn some(&self, rows: &[usize], factor: f64) -> Self {
        Self { cost: some_costs(&self.cost, rows, factor) }
    }
}

/// The `ν` with `Σ_l clip(s_l − ν, 0, cap) = ν − start`, for a falling list.
fn clipped_level(falling: &[f64], start: f64, cap: f64) -> f64 {
    let Some(&top) = falling.first() else { return start };
    // `entered` numbers lie above the level, the first `full` of them by `cap` or more.
    let (mut entered, mut full, mut level) = (0, 0, top);
    let mut excess = start - top;
    loop {
        let slope = 1.0 + (entered - full) as f64;
        let enter = falling.get(entered).copied().unwrap_or(f64::NEG_INFINITY);
        let fill = if full < entered { falling[full] - cap } else { f64::NEG_INFINITY };
        let next = enter.max(fill);
        let reached = level + excess / slope;
        // Numbers that are none end it as well.
        if next <= reached || next == f64::NEG_INFINITY {
            return reached;
        }
        excess += slope * (level - next);
        level = next;
        if enter >= fill {
            entered += 1;
        } else {
            full += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Among scores that overflowed the search for a level ends all the same.
    #[test]
    fn no_number_has_no_level() {
        for falling in [&[f64::NAN][..], &[f64::INFINITY], &[f64::INFINITY, f64::NEG_INFINITY]] {
            for (start, cap) in [(0.0, 1.0), (f64::NAN, 1.0), (f64::INFINITY, f64::INFINITY), (0.0, f64::NAN)] {
                let level = clipped_level(falling, start, cap);
                assert!(!level.is_finite(), "{falling:?} {start} {cap}: {level}");
            }
        }
    }

    /// Coefficients `v` (own first, then the block) of a solved block.
    fn coefficients(block: &RowBlock) -> Vec<f64> {
        let total: f64 = block.zeta.iter().sum();
        let mut v = vec![total - block.beta];
        v.extend(block.zeta.iter().map(|z| -z));
        if let Some(r) = block.partner {
            v[r + 1] += block.beta;
        }
        v
    }

    /// `A/2 ‖v‖² + s̄·v + ℓ*(−v)`
    fn dual(loss: &impl RivalLoss, a: f64, block: &RowBlock) -> f64 {
        let v = coefficients(block);
        let linear: f64 = block.own * v[0] + block.rest.iter().zip(&v[1..]).map(|(s, v)| s * v).sum::<f64>();
        let total = block.zeta.iter().sum();
        a / 2.0 * v.iter().map(|v| v * v).sum::<f64>() + linear + loss.conjugate(0, total, block.beta)
    }

    /// `ℓ(s') + ℓ*(−v) + v·s'` at `s' = s̄ + A v`: never negative, and zero exactly where the KKT conditions hold.
    fn residual(loss: &impl RivalLoss, a: f64, block: &RowBlock) -> f64 {
        let v = coefficients(block);
        let own = block.own + a * v[0];
        let rivals: Vec<f64> = block.rest.iter().zip(&v[1..]).map(|(s, v)| s + a * v).collect();
        let partner = block.partner.map_or(0.0, |r| rivals[r]);
        let product = own * v[0] + rivals.iter().zip(&v[1..]).map(|(s, v)| s * v).sum::<f64>();
        loss.value(0, own, &rivals, partner) + loss.conjugate(0, block.zeta.iter().sum(), block.beta) + product
    }

    fn random_block(random: &mut Random, partner: bool) -> (f64, RowBlock) {
        let classes = 1 + random.below(8);
        let scale = 10f64.powf(2.0 * random.unit() - 1.0);
        // Ties are where sorting goes wrong: some blocks take their scores from a coarse grid.
        let grid = random.unit() < 0.3;
        let mut score = || {
            let s = scale * random.normal();
            if grid { (2.0 * s).round() / 2.0 } else { s }
        };
        let block = RowBlock { own: score(), rest: (0..classes).map(|_| score()).collect(), ..RowBlock::default() };
        let partner = partner.then(|| random.below(classes));
        (10f64.powf(3.0 * random.unit() - 2.0), RowBlock { partner, ..block })
    }

    fn random_odm(random: &mut Random, score: bool) -> OdmLoss {
        let frozen = if score { Frozen::Score(vec![random.normal()]) } else { Frozen::Class(vec![0]) };
        let pick = |random: &mut Random, list: [f64; 4]| list[random.below(4)];
        OdmLoss {
            cost: vec![10f64.powf(5.0 * random.unit() - 2.0)],
            mu: pick(random, [0.0, 0.2, 0.7, 1.0]),
            theta: pick(random, [0.0, 0.1, 0.4, 0.9]),
            frozen,
        }
    }

    /// Minimises the same dual by going over single variables again and again: slow, and shares nothing with sorting.
    fn by_coordinates(loss: &impl RivalLoss, a: f64, block: &RowBlock, upper: (f64, f64), beta: bool) -> f64 {
        let mut point = RowBlock { zeta: vec![0.0; block.rest.len()], beta: 0.0, ..block.clone() };
        let mut best = dual(loss, a, &point);
        let mut step = 1.0;
        while step > 1e-9 {
            let before = best;
            for j in 0..=point.zeta.len() + point.zeta.len() * point.zeta.len() {
                for sign in [step, -step] {
                    let mut trial = point.clone();
                    let n = trial.zeta.len();
                    match j {
                        0 if beta => trial.beta = (trial.beta + sign).max(0.0),
                        0 => continue,
                        j if j <= n => trial.zeta[j - 1] = (trial.zeta[j - 1] + sign).clamp(0.0, upper.0),
                        j => {
                            // Exchange between two classes: needed where their sum is at its limit.
                            let (from, to) = ((j - n - 1) / n, (j - n - 1) % n);
                            let amount = sign.abs().min(trial.zeta[from]).min(upper.0 - trial.zeta[to]);
                            trial.zeta[from] -= amount;
                            trial.zeta[to] += amount;
                        }
                    }
                    if trial.zeta.iter().sum::<f64>() > upper.1 {
                        continue;
                    }
                    let value = dual(loss, a, &trial);
                    if value < best {
                        (best, point) = (value, trial);
                    }
                }
            }
            if before - best <= 1e-12 * best.abs() {
                step *= 0.5;
            } else {
                step *= 1.5;
            }
        }
        best
    }

    fn check(loss: &impl RivalLoss, a: f64, block: &mut RowBlock) {
        loss.solve(0, a, block);
        assert!(block.beta >= 0.0 && block.zeta.iter().all(|z| *z >= 0.0), "{block:?}");
        let scale = 1.0 + dual(loss, a, block).abs() + loss.value(0, block.own, &block.rest, 0.0);
        let residual = residual(loss, a, block);
        assert!(residual.abs() <= 1e-10 * scale, "{residual:e} of {scale:e}: {a} {block:?}");
    }

    #[test]
    fn every_solution_meets_the_optimality_conditions() {
        let mut random = Random::new(17, 0);
        for round in 0..40_000 {
            let (a, mut block) = random_block(&mut random, round % 2 == 0);
            check(&random_odm(&mut random, round % 2 == 1), a, &mut block);
            block.partner = None;
            block.beta = 0.0;
            let cost = vec![10f64.powf(4.0 * random.unit() - 2.0)];
            check(&CrammerSinger { cost: cost.clone() }, a, &mut block);
            assert!(block.zeta.iter().sum::<f64>() <= cost[0] * (1.0 + 1e-12));
            check(&WestonWatkins { cost: cost.clone() }, a, &mut block);
            assert!(block.zeta.iter().all(|z| *z <= cost[0] * (1.0 + 1e-12)));
        }
    }

    #[test]
    fn a_slow_solver_finds_nothing_better() {
        let mut random = Random::new(18, 0);
        for round in 0..60 {
            let (a, mut block) = random_block(&mut random, round % 2 == 0);
            block.rest.truncate(4);
            block.partner = block.partner.map(|p| p.min(block.rest.len() - 1));
            let odm = random_odm(&mut random, round % 2 == 1);
            odm.solve(0, a, &mut block);
            let (fast, free) = (dual(&odm, a, &block), (f64::INFINITY, f64::INFINITY));
            let slow = by_coordinates(&odm, a, &block, free, odm.mu > 0.0);
            assert!((fast - slow).abs() <= 1e-5 * (1.0 + slow.abs()) && fast <= slow + 1e-9, "odm {fast} {slow}");
            (block.partner, block.beta) = (None, 0.0);
            let cost = vec![random.unit() + 0.01];
            let cs = CrammerSinger { cost: cost.clone() };
            cs.solve(0, a, &mut block);
            let (fast, slow) = (dual(&cs, a, &block), by_coordinates(&cs, a, &block, (f64::INFINITY, cost[0]), false));
            assert!((fast - slow).abs() <= 1e-4 * (1.0 + slow.abs()), "cs {fast} {slow}");
            let ww = WestonWatkins { cost: cost.clone() };
            ww.solve(0, a, &mut block);
            let (fast, slow) = (dual(&ww, a, &block), by_coordinates(&ww, a, &block, (cost[0], f64::INFINITY), false));
            assert!((fast - slow).abs() <= 1e-4 * (1.0 + slow.abs()), "ww {fast} {slow}");
        }
    }

    /// Compares `−∂v/∂s̄` with differences of the solution, unless a step crosses a kink.
    fn check_response(loss: &impl RivalLoss, a: f64, block: &RowBlock) -> bool {
        let solve = |entry: usize, step: f64| {
            let mut moved = block.clone();
            if entry == 0 {
                moved.own += step
            } else {
                moved.rest[entry - 1] += step
            }
            loss.solve(0, a, &mut moved);
            coefficients(&moved)
        };
        let mut at = block.clone();
        loss.solve(0, a, &mut at);
        // The own class is 0, the block's are 1, 2, ….
        let free: Vec<u32> = (0..at.zeta.len())
            .filter(|&p| at.zeta[p] > 0.0 && loss.is_free(0, at.zeta[p]))
            .map(|p| p as u32 + 1)
            .collect();
        let mut list = Vec::new();
        let response = loss.response(0, a, at.zeta.iter().sum(), at.beta);
        response.curvature(a, 0, at.partner.map(|p| p as u32 + 1), free.into_iter(), &mut list);
        let n = at.rest.len() + 1;
        let mut matrix = vec![0.0; n * n];
        for (row, column, value) in list {
            matrix[row as usize * n + column as usize] = value;
            matrix[column as usize * n + row as usize] = value;
        }
        let step = 1e-6 * (1.0 + a);
        (0..n).all(|entry| {
            let (up, down, here) = (solve(entry, step), solve(entry, -step), coefficients(&at));
            (0..n).all(|row| {
                let (right, left) = ((up[row] - here[row]) / step, (here[row] - down[row]) / step);
                let scale = 1e-4 * (1.0 + 1.0 / a);
                (right - left).abs() > scale || (0.5 * (left + right) + matrix[row * n + entry]).abs() <= scale
            })
        })
    }

    #[test]
    fn the_response_is_the_derivative_of_the_solution() {
        let mut random = Random::new(20, 0);
        for round in 0..3000 {
            let (a, mut block) = random_block(&mut random, round % 2 == 0);
            let odm = random_odm(&mut random, round % 2 == 1);
            assert!(check_response(&odm, a, &block), "odm {odm:?} {a} {block:?}");
            block.partner = None;
            let cost = vec![3.0 * random.unit() + 0.01];
            assert!(check_response(&CrammerSinger { cost: cost.clone() }, a, &block), "cs {cost:?} {a} {block:?}");
            assert!(check_response(&WestonWatkins { cost: cost.clone() }, a, &block), "ww {cost:?} {a} {block:?}");
        }
    }

    #[test]
    fn rows_without_norm_still_certify_their_loss() {
        let mut random = Random::new(19, 0);
        for round in 0..1000 {
            let (_, mut block) = random_block(&mut random, round % 2 == 0);
            let odm = random_odm(&mut random, round % 2 == 1);
            odm.solve(0, 0.0, &mut block);
            assert!(residual(&odm, 0.0, &block).abs() < 1e-9 * (1.0 + odm.value(0, block.own, &block.rest, 0.0)));
        }
    }
}
