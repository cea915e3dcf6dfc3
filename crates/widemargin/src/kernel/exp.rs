//! `eˣ` for many numbers at once: plain arithmetic without branches or calls, so that the compiler vectorises it.

use crate::data::Real;
use crate::linalg::Scalar;
use std::ops::{Add, Mul};

/// A number in which kernel values are computed: `f32` or `f64`.
pub trait KernelValue: Real + Scalar + Add<Output = Self> + Mul<Output = Self> {
    /// `eˣ` for `x` up to 80 (700 in double precision), 0 or nearly so far below; within two units in the last place.
    /// `fused`: products and sums may be one instruction.
    fn exp(self, fused: bool) -> Self;
    /// `xᵖ`
    fn powi(self, p: i32) -> Self;
    /// `tanh x`
    fn tanh(self) -> Self;
    /// `a x + b`
    fn times_plus(self, a: Self, b: Self, fused: bool) -> Self;
    /// The larger of the two.
    fn larger(self, other: Self) -> Self;
}

/// `eˣ = 2ᵏ eʳ`, `|r| ≤ ln 2 / 2`, with Taylor's series for `eʳ`. Adding and taking away 1.5 · 2ᵐ, `m` the bits of a
/// fraction, rounds to the nearest whole number, which is then in the low bits.
macro_rules! value {
    ($number:ident, $bits:ident, $fraction:literal, $bias:literal, $least:literal, $ln2_high:literal, $ln2_low:literal,
     [$last:literal, $($factorial:literal),*]) => {
        impl KernelValue for $number {
            #[inline(always)]
            fn exp(self, fused: bool) -> Self {
                const ROUND: $number = 1.5 * (1u64 << $fraction) as $number;
                let x = if self < $least { $least } else { self };
                let shifted = x.times_plus(std::$number::consts::LOG2_E, ROUND, fused);
                let k = shifted - ROUND;
                let r = k.times_plus(-$ln2_low, k.times_plus(-$ln2_high, x, fused), fused);
                let mut p: $number = 1.0 / $last;
                for c in [$($factorial),*] {
                    p = p.times_plus(r, 1.0 / c, fused);
                }
                let exponent: $bits = shifted.to_bits().wrapping_shl($fraction).wrapping_add($bias << $fraction);
                p * $number::from_bits(exponent)
            }
            #[inline(always)]
            fn powi(self, p: i32) -> Self {
                $number::powi(self, p)
            }
            #[inline(always)]
            fn tanh(self) -> Self {
                $number::tanh(self)
            }
            #[inline(always)]
            fn times_plus(self, a: Self, b: Self, fused: bool) -> Self {
                if fused { self.mul_add(a, b) } else { self * a + b }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
        }
    };
}

value!(
    f64,
    u64,
    52,
    1023,
    -708.0,
    6.931_471_803_691_238e-1,
    1.908_214_929_270_587_7e-10,
    [
        6_227_020_800.0,
        479_001_600.0,
        39_916_800.0,
        3_628_800.0,
        362_880.0,
        40_320.0,
        5_040.0,
        720.0,
        120.0,
        24.0,
        6.0,
        2.0,
        1.0,
        1.0
    ]
);
value!(f32, u32, 23, 127, -87.0, 6.933_594e-1, -2.121_944_4e-4, [5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0]);

#[cfg(test)]
mod tests {
    use super::KernelValue;

    #[test]
    fn agrees_with_the_library() {
        for i in -7000..7000 {
            let x = f64::from(i) * 0.1 + 0.013;
            for fused in [false, true] {
                let (got, expected) = (KernelValue::exp(x, fused), x.exp());
                assert!((got - expected).abs() <= 5e-16 * expected, "{got:e} {expected:e}");
                let x = (0.01 * x) as f32;
                let (got, expected) = (f64::from(KernelValue::exp(x, fused)), f64::from(x).exp());
                assert!((got - expected).abs() <= 2e-7 * expected, "{got:e} {expected:e}");
            }
        }
        for (x, most) in [(-1e9, 1e-300), (-708.5, 1e-300)] {
            assert!(KernelValue::exp(x, false) < most);
        }
        assert!(
            KernelValue::exp(0.0f64, true) == 1.0
                && KernelValue::exp(0.0f32, true) == 1.0
                && KernelValue::exp(-1e9f32, true) < 2e-38
        );
    }
}
