//! The piecewise-quadratic convex margin loss `φ(γ)`: the one place where a machine's formula stands.
//!
//! On each piece `φ(γ) = ½ p (γ − c)² + q (γ − c) + r`; pieces join continuously and slopes never fall. The centre `c` is where
//! a piece begins or ends: a loss that is nearly zero there keeps its digits. Every solver works with
//! the five operations here (value, slope, curvature, proximal step, conjugate), so that a machine of the family
//! is nothing but a constructor.

/// At most this many pieces: three for any machine here, five for the envelope of one with two kinks.
const MOST_PIECES: usize = 6;

/// `½ p (γ − c)² + q (γ − c) + r` up to `upto`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    upto: f64,
    centre: f64,
    p: f64,
    q: f64,
    r: f64,
}

impl Piece {
    const EMPTY: Self = Self { upto: f64::INFINITY, centre: 0.0, p: 0.0, q: 0.0, r: 0.0 };

    fn slope(&self, gamma: f64) -> f64 {
        self.p * (gamma - self.centre) + self.q
    }

    fn value(&self, gamma: f64) -> f64 {
        let d = gamma - self.centre;
        (0.5 * self.p * d + self.q) * d + self.r
    }
}

/// A convex, continuous, piecewise-quadratic function of one margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarginLoss {
    pieces: [Piece; MOST_PIECES],
    len: usize,
}

impl MarginLoss {
    /// From pieces `(upto, c, p, q)` in rising order, the last one up to infinity, with `φ(anchor) = value`.
    fn new(pieces: &[(f64, f64, f64, f64)], anchor: f64, value: f64) -> Self {
        let mut loss = Self { pieces: [Piece::EMPTY; MOST_PIECES], len: pieces.len() };
        for (i, &(upto, centre, p, q)) in pieces.iter().enumerate() {
            let plain = Piece { upto, centre, p, q, r: 0.0 };
            let r = match i {
                0 => 0.0,
                _ => {
                    let (before, at) = (loss.pieces[i - 1], loss.pieces[i - 1].upto);
                    before.value(at) - plain.value(at)
                }
            };
            loss.pieces[i] = Piece { r, ..plain };
        }
        let lift = value - loss.value(anchor);
        loss.pieces[..loss.len].iter_mut().for_each(|piece| piece.r += lift);
        loss
    }

    /// Its pieces as numbers, five each.
    pub fn numbers(&self) -> Vec<f64> {
        self.pieces().iter().flat_map(|piece| [piece.upto, piece.centre, piece.p, piece.q, piece.r]).collect()
    }

    /// From the numbers of its pieces; `None` if they are no convex loss.
    pub fn from_numbers(numbers: &[f64]) -> Option<Self> {
        let (pieces, rest) = numbers.as_chunks::<5>();
        let mut loss = Self { pieces: [Piece::EMPTY; MOST_PIECES], len: pieces.len() };
        if !rest.is_empty() || pieces.is_empty() || pieces.len() > MOST_PIECES {
            return None;
        }
        for (piece, &[upto, centre, p, q, r]) in loss.pieces.iter_mut().zip(pieces) {
            *piece = Piece { upto, centre, p, q, r };
        }
        let finite = pieces.iter().all(|piece| piece[1..].iter().all(|value| value.is_finite()) && piece[2] >= 0.0);
        let rising = pieces.windows(2).all(|pair| pair[0][0] < pair[1][0]);
        (finite && rising && loss.pieces().last()?.upto == f64::INFINITY).then_some(loss)
    }

    /// `C max(0, 1 − γ)`
    pub fn hinge(c: f64) -> Self {
        Self::new(&[(1.0, 1.0, 0.0, -c), (f64::INFINITY, 1.0, 0.0, 0.0)], 1.0, 0.0)
    }

    /// `C1 max(0, 1 − D − γ)² + C2 max(0, γ − 1 − D)²` (ODM, Eq. 7, before its `1/m`).
    pub fn band(c1: f64, c2: f64, d: f64) -> Self {
        let (low, high) = (1.0 - d, 1.0 + d);
        let pieces = [(low, low, 2.0 * c1, 0.0), (high, low, 0.0, 0.0), (f64::INFINITY, high, 2.0 * c2, 0.0)];
        // Without a band the middle piece is empty, and an empty piece would hide a kink from `is_smooth`.
        if d == 0.0 { Self::new(&[pieces[0], pieces[2]], 1.0, 0.0) } else { Self::new(&pieces, 1.0, 0.0) }
    }

    /// `C` times the hinge with its corner rounded: `(1 − γ)²/2δ` for `1 − δ < γ ≤ 1`, `1 − γ − δ/2` below, 0 above.
    pub fn huber(c: f64, delta: f64) -> Self {
        let low = 1.0 - delta;
        Self::new(&[(low, low, 0.0, -c), (1.0, 1.0, c / delta, 0.0), (f64::INFINITY, 1.0, 0.0, 0.0)], 1.0, 0.0)
    }

    /// `C max(0, |1 − γ| − ε)`
    pub fn insensitive(c: f64, epsilon: f64) -> Self {
        let (low, high) = (1.0 - epsilon, 1.0 + epsilon);
        let pieces = [(low, low, 0.0, -c), (high, low, 0.0, 0.0), (f64::INFINITY, high, 0.0, c)];
        if epsilon == 0.0 { Self::new(&[pieces[0], pieces[2]], 1.0, 0.0) } else { Self::new(&pieces, 1.0, 0.0) }
    }

    /// Whether a row that is left out of a solution moves in closed form: the loss is smooth, and where it is flat it does not
    /// pull.
    pub fn leaves_out(&self) -> bool {
        self.is_smooth() && self.pieces().iter().all(|piece| piece.p > 0.0 || piece.q == 0.0)
    }

    /// `φ(γ) + ½ p γ² + q γ`; used for LDM's mean term and, at a fixed shift, for its variance.
    pub fn plus(mut self, p: f64, q: f64, r: f64) -> Self {
        for piece in &mut self.pieces[..self.len] {
            let c = piece.centre;
            piece.r += (0.5 * p * c + q) * c + r;
            piece.q += p * c + q;
            piece.p += p;
        }
        self
    }

    /// `factor · φ(γ)`
    pub fn times(mut self, factor: f64) -> Self {
        for piece in &mut self.pieces[..self.len] {
            piece.p *= factor;
            piece.q *= factor;
            piece.r *= factor;
        }
        self
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces[..self.len]
    }

    #[inline]
    fn at(&self, gamma: f64) -> &Piece {
        // Counted, not searched: no processor foresees where a margin lies. Beyond the last piece nothing ends.
        let past = |k: usize| usize::from(gamma > self.pieces[k].upto);
        &self.pieces[past(0) + past(1) + past(2) + past(3) + past(4)]
    }

    /// `φ(γ)`
    #[inline]
    pub fn value(&self, gamma: f64) -> f64 {
        self.at(gamma).value(gamma)
    }

    /// `φ'(γ)`; at a kink the slope from the left.
    #[inline]
    pub fn slope(&self, gamma: f64) -> f64 {
        self.at(gamma).slope(gamma)
    }

    /// `φ''(γ)`; at a breakpoint that of the piece on the left.
    #[inline]
    pub fn curvature(&self, gamma: f64) -> f64 {
        self.at(gamma).p
    }

    /// `φ(γ)`, `φ'(γ)` and `φ''(γ)`; at a breakpoint those of the piece on the left.
    #[inline]
    pub fn jet(&self, gamma: f64) -> (f64, f64, f64) {
        let piece = self.at(gamma);
        (piece.value(gamma), piece.slope(gamma), piece.p)
    }

    /// The slopes `φ'` can take: `(infimum, supremum)`, infinite where a side curves upward for ever.
    pub fn slopes(&self) -> (f64, f64) {
        let (first, last) = (&self.pieces[0], &self.pieces[self.len - 1]);
        let low = if first.p > 0.0 { f64::NEG_INFINITY } else { first.q };
        let high = if last.p > 0.0 { f64::INFINITY } else { last.q };
        (low, high)
    }

    /// Whether the slope never jumps.
    pub fn is_smooth(&self) -> bool {
        let scale: f64 = self.pieces().iter().map(|piece| piece.p.abs() + piece.q.abs()).sum();
        self.pieces().windows(2).all(|pair| {
            let (left, right) = (pair[0].slope(pair[0].upto), pair[1].slope(pair[0].upto));
            right - left <= 1e-12 * scale
        })
    }

    /// `argmin_g φ(g) + (g − v)² / (2 step)`, for `step > 0`.
    #[inline]
    pub fn prox(&self, v: f64, step: f64) -> f64 {
        let mut from = f64::NEG_INFINITY;
        for piece in self.pieces() {
            let g = piece.centre + ((v - piece.centre) - step * piece.q) / (1.0 + step * piece.p);
            if g <= piece.upto {
                return g.max(from);
            }
            from = piece.upto;
        }
        from
    }

    /// `φ*(u) = sup_γ u γ − φ(γ)`; `u` is first moved into the slopes that `φ` can take.
    pub fn conjugate(&self, u: f64) -> f64 {
        let (low, high) = self.slopes();
        let u = u.clamp(low, high);
        let (piece, gamma) = self.at_slope(u);
        u * gamma - piece.value(gamma)
    }

    /// A margin at which `φ` has the slope `u`, once that is moved into the slopes that `φ` can take.
    pub fn margin_of(&self, u: f64) -> f64 {
        let (low, high) = self.slopes();
        self.at_slope(u.clamp(low, high)).1
    }

    fn at_slope(&self, u: f64) -> (&Piece, f64) {
        let mut from = f64::NEG_INFINITY;
        for (k, piece) in self.pieces().iter().enumerate() {
            let last = k + 1 == self.len;
            if last || u <= piece.slope(piece.upto) {
                let gamma = if piece.p > 0.0 {
                    (piece.centre + (u - piece.q) / piece.p).clamp(from, piece.upto)
                } else if piece.upto.is_finite() && (u >= piece.q || from.is_infinite()) {
                    piece.upto
                } else if from.is_finite() {
                    from
                } else {
                    0.0
                };
                return (piece, gamma);
            }
            from = piece.upto;
        }
        unreachable!("the last piece takes every slope")
    }

    /// `φ''` where the slope is `u`: infinite between the two slopes of a kink, zero on a straight piece.
    pub fn curvature_of(&self, u: f64) -> f64 {
        let same = 1e-12 * u.abs();
        let mut end = f64::NEG_INFINITY;
        for (k, piece) in self.pieces().iter().enumerate() {
            let begin = if k == 0 { end } else { piece.slope(self.pieces[k - 1].upto) };
            if u > end + same && u < begin - same {
                return f64::INFINITY;
            }
            end = if piece.upto.is_finite() { piece.slope(piece.upto) } else { f64::INFINITY };
            if u <= end + same {
                return piece.p;
            }
        }
        0.0
    }

    /// How far `γ` lies inside a straight piece whose slope is `slope` already: a dual variable there will not move until
    /// the margin has moved that far. Zero elsewhere.
    pub fn rest(&self, gamma: f64, slope: f64) -> f64 {
        let mut from = f64::NEG_INFINITY;
        for piece in self.pieces() {
            if gamma <= piece.upto {
                let flat = piece.p == 0.0 && (slope - piece.q).abs() <= 1e-12 * slope.abs().max(piece.q.abs());
                return if flat { (gamma - from).min(piece.upto - gamma) } else { 0.0 };
            }
            from = piece.upto;
        }
        0.0
    }

    /// The Moreau envelope `e(v) = min_g φ(g) + (g − v)² / (2 σ)`: smooth, and a margin loss itself.
    pub fn envelope(&self, sigma: f64) -> Self {
        let mut pieces: Vec<(f64, f64, f64, f64)> = Vec::with_capacity(MOST_PIECES);
        for (k, piece) in self.pieces().iter().enumerate() {
            let shrink = 1.0 + sigma * piece.p;
            let end = piece.slope(piece.upto);
            let upto = if piece.upto.is_finite() { piece.upto + sigma * end } else { f64::INFINITY };
            pieces.push((upto, piece.centre, piece.p / shrink, piece.q / shrink));
            if let Some(next) = self.pieces().get(k + 1) {
                let begin = next.slope(piece.upto);
                if begin > end {
                    pieces.push((piece.upto + sigma * begin, piece.upto, 1.0 / sigma, 0.0));
                }
            }
        }
        let anchor = self.pieces[0].upto;
        let v = if anchor.is_finite() { anchor + sigma * self.pieces[0].slope(anchor) } else { 0.0 };
        let g = self.prox(v, sigma);
        Self::new(&pieces, v, self.value(g) + (g - v).powi(2) / (2.0 * sigma))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_loss() -> impl Strategy<Value = MarginLoss> {
        let number = 0.01..50.0f64;
        prop_oneof![
            number.clone().prop_map(MarginLoss::hinge),
            (number.clone(), 0.0..50.0f64, 0.0..0.9f64).prop_map(|(c1, c2, d)| MarginLoss::band(c1, c2, d)),
            (number.clone(), 0.0..0.9f64).prop_map(|(c, e)| MarginLoss::insensitive(c, e)),
            (number, 0.0..3.0f64, -2.0..2.0f64).prop_map(|(c, k, t)| MarginLoss::hinge(c).plus(
                2.0 * k,
                -2.0 * k * t,
                k * t * t
            )),
        ]
    }

    #[test]
    fn formulas() {
        let odm = MarginLoss::band(3.0, 5.0, 0.2);
        assert!((odm.value(0.3) - 3.0 * 0.25).abs() < 1e-12);
        assert_eq!(odm.value(1.1), 0.0);
        assert!((odm.value(2.0) - 5.0 * 0.64).abs() < 1e-12);
        assert!(odm.is_smooth() && MarginLoss::band(1.0, 2.0, 0.0).is_smooth());
        let hinge = MarginLoss::hinge(2.0);
        assert_eq!((hinge.value(0.0), hinge.value(3.0), hinge.slope(0.5)), (2.0, 0.0, -2.0));
        assert!(!hinge.is_smooth());
        assert_eq!(hinge.conjugate(-1.0), -1.0);
        assert_eq!([-2.0, -1.0, 0.0].map(|u| hinge.curvature_of(u)), [0.0, f64::INFINITY, 0.0]);
        assert_eq!([-1.0, 0.0, 1.0].map(|u| odm.curvature_of(u)), [6.0, 6.0, 10.0]);
        assert_eq!(MarginLoss::band(1.0, 0.0, 0.2).curvature_of(-1e-3), 2.0);
        let svr = MarginLoss::insensitive(2.0, 0.1);
        assert!((svr.value(-1.0) - 3.8).abs() < 1e-12 && (svr.value(2.0) - 1.8).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn prox_is_the_minimiser(loss in any_loss(), v in -5.0..5.0f64, step in 0.01..20.0f64) {
            let g = loss.prox(v, step);
            let objective = |x: f64| loss.value(x) + (x - v).powi(2) / (2.0 * step);
            for delta in [-1.0, -1e-3, 1e-3, 1.0] {
                prop_assert!(objective(g) <= objective(g + delta) + 1e-9 * (1.0 + objective(g).abs()));
            }
        }

        #[test]
        fn fenchel_young_holds_and_is_tight(loss in any_loss(), gamma in -5.0..5.0f64, other in -5.0..5.0f64) {
            let u = loss.slope(gamma);
            let scale = 1.0 + loss.value(gamma).abs() + u.abs();
            prop_assert!((loss.value(gamma) + loss.conjugate(u) - u * gamma).abs() < 1e-9 * scale);
            prop_assert!(loss.value(other) + loss.conjugate(u) - u * other > -1e-9 * (scale + loss.value(other).abs()));
        }

        #[test]
        fn envelope_is_what_it_says(loss in any_loss(), v in -5.0..5.0f64, sigma in 0.01..10.0f64) {
            let envelope = loss.envelope(sigma);
            let g = loss.prox(v, sigma);
            let direct = loss.value(g) + (g - v).powi(2) / (2.0 * sigma);
            prop_assert!(envelope.is_smooth());
            prop_assert!((envelope.value(v) - direct).abs() < 1e-8 * (1.0 + direct.abs()));
            prop_assert!((envelope.slope(v) - (v - g) / sigma).abs() < 1e-8 * (1.0 + envelope.slope(v).abs()));
        }
    }
}
