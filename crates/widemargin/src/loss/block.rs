//! The sub-problem of one row, solved by sorting.
//!
//! With every other row held fixed, let `s̄_l` be the score of class `l` without the row's own part and `A = k(x, x)`.
//! The row's dual variables `ζ^l ≥ 0` (`l ≠ y`) and `β ≥ 0` give it the coefficients `v_y = Σ ζ − β`, `v_l = −ζ^l`
//! (and `v_r = −ζ^r + β` for a partner class `r`), and minimise
//!
//! ```text
//! A/2 ‖v‖² + s̄·v + ℓ*(−v)          equivalently          v ∈ −∂ℓ(s̄ + A v)
//! ```
//!
//! For every loss here all classes with `ζ^l > 0` end at one common score `ν` (mcODM paper, Eqs. 14-15), and what is
//! left is one equation in `ν` whose sides are monotone and piecewise linear.

/// The sub-problem of one row: what is given and what is found.
#[derive(Clone, Debug, Default)]
pub struct RowBlock {
    /// `s̄_y`
    pub own: f64,
    /// `s̄_l` of the classes in the block.
    pub rest: Vec<f64>,
    /// Where in `rest` the partner class stands, if the loss has one.
    pub partner: Option<usize>,
    /// Found: `ζ^l` of the classes in the block.
    pub zeta: Vec<f64>,
    /// Found: `β`
    pub beta: f64,
    pub(super) sorted: Vec<f64>,
}

/// The right-hand side of `Σ_l max(0, s̄_l − ν) = min(cap, slope (ν − start))`; all three times `A` of the dual scale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Supply {
    pub(super) start: f64,
    pub(super) slope: f64,
    pub(super) cap: f64,
}

impl RowBlock {
    /// The common score `ν` of the classes with `ζ > 0` (Eq. 24): classes are added in falling order of `s̄` while
    /// they stand above the level of those before.
    #[inline]
    pub(super) fn level(&mut self, supply: Supply) -> f64 {
        let top = self.rest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if top <= supply.start {
            return supply.start;
        }
        // The level only rises as classes are added, so whatever lies below that of the top class never counts.
        let lower = (supply.slope * supply.start + top) / (supply.slope + 1.0);
        self.sorted.clear();
        for &s in &self.rest {
            if s >= lower {
                self.sorted.push(s);
            }
        }
        self.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let level = fill(&self.sorted, supply.slope * supply.start, supply.slope);
        if supply.slope * (level - supply.start) <= supply.cap { level } else { fill(&self.sorted, -supply.cap, 0.0) }
    }

    /// [`level`](Self::level) without the partner class.
    pub(super) fn level_without_partner(&mut self, supply: Supply) -> f64 {
        let Some(partner) = self.partner else { return self.level(supply) };
        let score = std::mem::replace(&mut self.rest[partner], f64::NEG_INFINITY);
        let level = self.level(supply);
        self.rest[partner] = score;
        level
    }

    /// `ζ^l = max(0, s̄_l − ν) / A`; returns their sum.
    #[inline]
    pub(super) fn share(&mut self, level: f64, a: f64) -> f64 {
        self.zeta.clear();
        self.zeta.extend(self.rest.iter().map(|s| (s - level).max(0.0) / a));
        self.zeta.iter().sum()
    }

    /// A row with `k(x, x) = 0` moves no score: all of `ζ` goes to the first of the best rivals.
    pub(super) fn put_on_best(&mut self, amount: f64) {
        self.zeta.clear();
        self.zeta.resize(self.rest.len(), 0.0);
        let best = self.best();
        if let Some(best) = best {
            self.zeta[best] = amount.max(0.0);
        }
    }

    /// Where the largest `s̄` stands; the first among equals.
    #[inline]
    pub(super) fn best(&self) -> Option<usize> {
        let mut best = None;
        for (i, &s) in self.rest.iter().enumerate() {
            if best.is_none_or(|b: usize| s > self.rest[b]) {
                best = Some(i);
            }
        }
        best
    }
}

/// `ν = (sum + Σ_Φ s) / (weight + |Φ|)` for the shortest head `Φ` of the falling list whose `ν` reaches the next number.
#[inline]
fn fill(falling: &[f64], mut sum: f64, mut weight: f64) -> f64 {
    for &s in falling {
        if weight > 0.0 && sum >= s * weight {
            break;
        }
        sum += s;
        weight += 1.0;
    }
    sum / weight
}
