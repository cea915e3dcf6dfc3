//! Machines with one score function a class:
//!
//! ```text
//! P = ½ Σ_l ‖w_l‖² + Σ_i ℓ_i(f_i),            f_i^l = w_l·φ(x_i) + b_l
//! D = −½ Σ_l ‖Σ_i v_i^l φ(x_i)‖² − Σ_i ℓ*_i(−v_i)
//! ```
//!
//! subject to `Σ_i v_i^l = 0` for every class `l` if the intercepts are free. A row of class `y` has `ζ^l ≥ 0` for its rivals
//! `l ≠ y` and, in mcODM, `β ≥ 0` for one rival `r`: `v^l = −ζ^l`, `v^r = β − ζ^r`, `v^y = Σ ζ − β`. `β` and `ζ^r` exclude each other,
//! so that both follow from `v`: the rival with `v^l > 0` is `r`; if there is none, `β = 0` and any rival may count as `r`, of
//! which the best is taken, for which the upper side costs least.

use super::space::{EPS, Rounded};
use super::sum::sum;
use crate::machine::StatedRivals;
use std::collections::{BTreeMap, VecDeque};

/// The dual variables of a row.
#[derive(Clone, Debug, Default)]
pub struct Dual {
    /// `ζ^l`; `ζ^y = 0`.
    pub zeta: Vec<f64>,
    /// `β` and `r`, if `β > 0`.
    pub beta: Option<(usize, f64)>,
}

impl Dual {
    /// From `v_i^l` of a row of class `y` and weight `s`, moved into the domain.
    pub fn new(v: &[f64], y: usize, s: f64, loss: StatedRivals) -> Self {
        let mut zeta: Vec<f64> = v.iter().map(|v| (-v).max(0.0)).collect();
        zeta[y] = 0.0;
        let mut beta = None;
        match loss {
            StatedRivals::CrammerSinger { c } => {
                let total = sum(zeta.iter().copied());
                if total > s * c {
                    zeta.iter_mut().for_each(|z| *z *= s * c / total);
                }
            }
            StatedRivals::WestonWatkins { c } => zeta.iter_mut().for_each(|z| *z = z.min(s * c)),
            StatedRivals::Odm { mu, .. } => {
                let rival = (0..v.len()).filter(|&l| l != y && v[l] > 0.0).max_by(|&a, &b| v[a].total_cmp(&v[b]));
                beta = rival.filter(|_| mu > 0.0).map(|r| (r, v[r]));
            }
        }
        Self { zeta, beta }
    }

    /// `v^l`
    pub fn variables(&self, y: usize) -> Vec<f64> {
        let mut v: Vec<f64> = self.zeta.iter().map(|z| -z).collect();
        v[y] = sum(self.zeta.iter().copied());
        if let Some((r, beta)) = self.beta {
            v[r] += beta;
            v[y] -= beta;
        }
        v
    }
}

impl StatedRivals {
    /// `ℓ` with the margin against the best rival.
    pub fn value(self, f: &[f64], y: usize) -> f64 {
        let gamma = f[y] - f[best_rival(f, y)];
        match self {
            Self::CrammerSinger { c } => c * (1.0 - gamma).max(0.0),
            Self::WestonWatkins { c } => {
                c * sum((0..f.len()).filter(|&l| l != y).map(|l| (1.0 - f[y] + f[l]).max(0.0)))
            }
            Self::Odm { c, mu, theta } => {
                c * ((1.0 - theta - gamma).max(0.0).powi(2) + mu * (gamma - 1.0 - theta).max(0.0).powi(2))
            }
        }
    }

    /// What a round's loss is above [`value`](Self::value): its upper side counts against the rival `r` of `β`.
    pub fn above(self, f: &[f64], y: usize, dual: &Dual) -> f64 {
        let (Self::Odm { c, mu, theta }, Some((r, _))) = (self, dual.beta) else { return 0.0 };
        let upper = |rival: usize| (f[y] - f[rival] - 1.0 - theta).max(0.0).powi(2);
        c * mu * (upper(r) - upper(best_rival(f, y)))
    }

    /// `s ℓ(f) + (s ℓ)*(−v) + v·f ≥ 0`: what a row of weight `s` adds to the gap of a round.
    ///
    /// With the conjugates `−Σ ζ` (mcSVM), `(Σ ζ)²/(4 s c) − (1−θ) Σ ζ + β²/(4 s c μ) + (1+θ) β` (mcODM).
    pub fn fenchel_young(self, f: &[f64], y: usize, s: f64, dual: &Dual) -> f64 {
        // `Σ ζ^l (t + f^l − f^y)`
        let product = |t: f64| sum((0..f.len()).filter(|&l| l != y).map(|l| dual.zeta[l] * (t + f[l] - f[y])));
        match self {
            Self::CrammerSinger { .. } | Self::WestonWatkins { .. } => s * self.value(f, y) - product(1.0),
            Self::Odm { c, mu, theta } => {
                let (cost, total) = (s * c, sum(dual.zeta.iter().copied()));
                let below = (1.0 - theta - f[y] + f[best_rival(f, y)]).max(0.0);
                let lower = cost * below * below + total * total / (4.0 * cost) - product(1.0 - theta);
                let (r, beta) = dual.beta.unwrap_or((best_rival(f, y), 0.0));
                let distance = f[y] - f[r] - 1.0 - theta;
                let upper = cost * mu * distance.max(0.0).powi(2) - beta * distance;
                lower + upper + if beta > 0.0 { beta * beta / (4.0 * cost * mu) } else { 0.0 }
            }
        }
    }

    /// The largest slope of `s ℓ` in a score where the margin is within `reach` of that at `f`.
    pub fn steepness(self, f: &[f64], y: usize, s: f64, reach: f64) -> f64 {
        match self {
            Self::CrammerSinger { c } => s * c,
            Self::WestonWatkins { c } => s * c * f.len() as f64,
            Self::Odm { c, mu, theta } => {
                let gamma = f[y] - f[best_rival(f, y)];
                let (below, above) = (1.0 - theta - gamma + reach, gamma - 1.0 - theta + reach);
                2.0 * s * c * (below.max(0.0) + mu * above.max(0.0))
            }
        }
    }
}

/// The lowest class among the best rivals.
fn best_rival(f: &[f64], y: usize) -> usize {
    let first = usize::from(y == 0);
    (0..f.len()).filter(|&l| l != y).fold(first, |best, l| if f[l] > f[best] { l } else { best })
}

/// Amounts that go from a class to another, by `(to, from)`.
type Flow = BTreeMap<(usize, usize), f64>;

/// Makes `Σ_i v_i^l = 0` for every class, for free intercepts: `ζ_i^l` is an amount that goes from class `l` to `y_i`, `β_i`
/// one from `y_i` to `r`. Whatever leaves a class with more than it gets is taken back along paths of such amounts, each pair of
/// classes in proportion; that some path is there is the decomposition of flows into paths and cycles.
pub fn balance(duals: &mut [Dual], codes: &[u32], classes: usize) {
    let mut flow = Flow::new();
    for (dual, &y) in duals.iter().zip(codes) {
        let y = y as usize;
        for (l, &z) in dual.zeta.iter().enumerate().filter(|(_, z)| **z > 0.0) {
            *flow.entry((y, l)).or_default() += z;
        }
        if let Some((r, beta)) = dual.beta {
            *flow.entry((r, y)).or_default() += beta;
        }
    }
    let whole = flow.clone();
    let size = sum(flow.values().copied());
    let mut net = vec![0.0; classes];
    for (&(to, from), amount) in &flow {
        net[to] += amount;
        net[from] -= amount;
    }
    // Each path empties a pair of classes or settles a class.
    for _ in 0..classes * (classes + 1) {
        let Some(path) = surplus_path(&flow, &net, EPS * size) else { break };
        let (first, last) = (path[0], path[path.len() - 1]);
        let amounts = path.windows(2).map(|step| flow[&(step[0], step[1])]);
        let taken = amounts.fold(net[first].min(-net[last]), f64::min);
        for step in path.windows(2) {
            if let Some(amount) = flow.get_mut(&(step[0], step[1])) {
                *amount = (*amount - taken).max(0.0);
            }
        }
        net[first] -= taken;
        net[last] += taken;
    }
    let factor = |to: usize, from: usize| match (flow.get(&(to, from)), whole.get(&(to, from))) {
        (Some(now), Some(before)) if now < before => now / before,
        _ => 1.0,
    };
    for (dual, &y) in duals.iter_mut().zip(codes) {
        let y = y as usize;
        dual.zeta.iter_mut().enumerate().for_each(|(l, z)| *z *= factor(y, l));
        dual.beta = dual.beta.map(|(r, beta)| (r, beta * factor(r, y)));
    }
}

/// Classes from one that gets too much to one that gets too little, each fed by the next; the shortest way.
fn surplus_path(flow: &Flow, net: &[f64], rounding: f64) -> Option<Vec<usize>> {
    let start = (0..net.len()).filter(|&l| net[l] > rounding).max_by(|&a, &b| net[a].total_cmp(&net[b]))?;
    let mut before = vec![None; net.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(l) = queue.pop_front() {
        if net[l] < 0.0 {
            let mut path = vec![l];
            let mut at = l;
            while let Some(previous) = before[at].filter(|_| at != start) {
                path.push(previous);
                at = previous;
            }
            path.reverse();
            return Some(path);
        }
        for ((_, next), _) in flow.range((l, 0)..(l + 1, 0)).filter(|(_, amount)| **amount > 0.0) {
            if before[*next].is_none() && *next != start {
                before[*next] = Some(l);
                queue.push_back(*next);
            }
        }
    }
    None
}

/// The scores of one row with intercepts, and how far they may be off.
pub fn row(values: &[Vec<Rounded>], intercepts: &[f64], i: usize) -> (Vec<f64>, f64) {
    let f: Vec<f64> = values.iter().zip(intercepts).map(|(f, b)| f[i].value + b).collect();
    let errors = values.iter().zip(&f).map(|(v, f)| v[i].error + EPS * f.abs());
    (f.clone(), errors.fold(0.0, f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_variables_sum_to_zero_and_never_grow() {
        let codes = [0, 1, 2, 0, 1, 2];
        let v = [
            [0.5, -0.2, -0.3],
            [-0.4, 0.7, -0.3],
            [-0.1, 0.0, 0.1],
            [-0.2, 0.6, -0.4],
            [0.0, 0.25, -0.25],
            [-0.6, 0.0, 0.6],
        ];
        let loss = StatedRivals::Odm { c: 1.0, mu: 0.5, theta: 0.1 };
        let mut duals: Vec<Dual> = v.iter().zip(codes).map(|(v, y)| Dual::new(v, y as usize, 1.0, loss)).collect();
        let before = duals.clone();
        balance(&mut duals, &codes, 3);
        for l in 0..3 {
            let total: f64 = duals.iter().zip(codes).map(|(d, y)| d.variables(y as usize)[l]).sum();
            assert!(total.abs() < 1e-12, "{total}");
        }
        for (now, then) in duals.iter().zip(&before) {
            assert!(now.zeta.iter().zip(&then.zeta).all(|(a, b)| *a <= *b && *a >= 0.0));
        }
        assert!(duals.iter().any(|d| d.zeta.iter().any(|z| *z > 0.0)));
    }

    #[test]
    fn rows_add_nothing_below_zero_and_nothing_at_their_own_slopes() {
        let losses = [
            StatedRivals::CrammerSinger { c: 2.0 },
            StatedRivals::WestonWatkins { c: 2.0 },
            StatedRivals::Odm { c: 1.5, mu: 0.5, theta: 0.2 },
        ];
        let (y, s) = (1, 1.5);
        for f in [[0.3, 0.1, -0.4], [0.0, 3.0, 0.5], [1.0, 2.0, 0.9], [-1.0, -1.0, -1.0]] {
            for loss in losses {
                // Minus the slopes of `s ℓ`, by differences: `v` where nothing is left of the gap.
                let slope = |l: usize| {
                    let (mut up, mut down) = (f, f);
                    up[l] += 1e-6;
                    down[l] -= 1e-6;
                    s * (loss.value(&up, y) - loss.value(&down, y)) / 2e-6
                };
                let smooth = f.iter().filter(|s| **s == f[0]).count() == 1;
                let v: Vec<f64> = (0..3).map(|l| -slope(l)).collect();
                let dual = Dual::new(&v, y, s, loss);
                let gap = loss.fenchel_young(&f, y, s, &dual);
                assert!(!smooth || gap.abs() < 1e-5, "{loss:?} {f:?} {gap}");
                for other in [[-0.3, 0.9, -0.6], [-0.2, -0.2, 0.4], [0.0; 3]] {
                    let dual = Dual::new(&other, y, s, loss);
                    assert!(loss.fenchel_young(&f, y, s, &dual) >= -1e-12, "{loss:?} {f:?}");
                }
            }
        }
    }
}
