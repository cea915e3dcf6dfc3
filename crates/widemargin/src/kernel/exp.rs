//! `eˣ` for many numbers at once: plain arithmetic without branches or calls, so that the compiler vectorises it.

/// Replaces each `x ≤ 700` by `eˣ` (0 below −708), within two units in the last place.
pub fn exp_all(values: &mut [f64]) {
    for value in values {
        *value = exp(*value);
    }
}

#[inline(always)]
fn exp(x: f64) -> f64 {
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // Adding and taking away 1.5 · 2⁵² rounds to the nearest whole number, which is then in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = if x < -708.0 { -708.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    // Taylor's series on |r| ≤ ln 2 / 2: the first term left out is below 1e-17.
    let mut p = 1.0 / 6_227_020_800.0;
    for c in
        [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0]
    {
        p = p * r + 1.0 / c;
    }
    let exponent = shifted.to_bits().wrapping_shl(52).wrapping_add(1023 << 52);
    p * f64::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    #[test]
    fn agrees_with_the_library() {
        let mut values: Vec<f64> = (-7000..7000).map(|i| f64::from(i) * 0.1 + 0.013).collect();
        let expected: Vec<f64> = values.iter().map(|v| v.exp()).collect();
        super::exp_all(&mut values);
        for (got, expected) in values.iter().zip(expected) {
            assert!((got - expected).abs() <= 5e-16 * expected, "{got:e} {expected:e}");
        }
        let mut edge = [0.0, -1e9, -708.5];
        super::exp_all(&mut edge);
        assert!(edge[0] == 1.0 && edge[1] < 1e-300 && edge[2] < 1e-300);
    }
}
