//! A hash that tells rows apart.

use crate::data::{Labels, Matrix, Rows, label_key};
use crate::with_rows;
use rayon::prelude::*;

/// A hash of labels, row weights and values, the same however the rows are stored: 16 hexadecimal digits. It tells rows
/// apart that were confused, not rows that were forged.
pub fn fingerprint(rows: &Matrix<'_>, labels: &Labels, weights: &[f64]) -> String {
    survey(rows, labels, weights, f64::INFINITY).0
}

/// The fingerprint, and whether every value is a number of at most `largest`: one pass over the rows.
pub(crate) fn survey(rows: &Matrix<'_>, labels: &Labels, weights: &[f64], largest: f64) -> (String, bool) {
    const SEED: u64 = 0xcbf2_9ce4_8422_2325;
    // Multiply and rotate for each word; the end is mixed as splitmix64 does.
    let add = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mix = |hash: u64| {
        let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^ (hash >> 31)
    };
    let label = |name: &String| match label_key(name) {
        Ok(number) => add(SEED, number),
        Err(text) => text.bytes().fold(!SEED, |hash, byte| add(hash, byte.into())),
    };
    let names: Vec<u64> = labels.names().iter().map(label).collect();
    let row = |i: usize| {
        // A sum over the values, so that none waits for the one before: every fit takes this pass.
        let (mut values, mut usable) = (0u64, true);
        with_rows!(rows, x => x.visit(i, |j, v| {
            usable &= v.abs() <= largest;
            if v != 0.0 {
                let word = (v.to_bits() ^ (j as u64).wrapping_mul(SEED)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                values = values.wrapping_add(word ^ (word >> 32));
            }
        }));
        (mix(add(add(names[labels.codes()[i] as usize], (weights[i] + 0.0).to_bits()), values)), usable)
    };
    let hashes: Vec<(u64, bool)> = (0..rows.rows()).into_par_iter().with_min_len(64).map(row).collect();
    let usable = hashes.iter().all(|hash| hash.1);
    (format!("{:016x}", mix(hashes.into_iter().fold(SEED, |all, hash| add(all, hash.0)))), usable)
}
