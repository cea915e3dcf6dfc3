//! Seeded splits that keep the proportions of the classes.

use super::Labels;
use crate::random::Random;

/// Streams of random numbers of their own, so that folds and halves of one seed have nothing in common.
const TRAIN_TEST: u64 = 1 << 62;
const FOLDS: u64 = 1 << 63;

/// Splits rows at random into training and test rows, class by class, and returns the (sorted) indices of both.
///
/// `train_fraction` of all rows, rounded, go to training; of each class as many as its share is, rounded up or down.
/// Only so that a class of two or more rows has a row on either side may one row more change sides. `repeat` numbers
/// the splits of one seed.
pub fn train_test(labels: &Labels, train_fraction: f64, seed: u64, repeat: u64) -> (Vec<usize>, Vec<usize>) {
    let mut random = Random::new(seed, TRAIN_TEST + repeat);
    let classes = shuffled_classes(labels, &mut random);
    let sizes: Vec<usize> = classes.iter().map(Vec::len).collect();
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (rows, count) in classes.iter().zip(train_counts(&sizes, train_fraction.clamp(0.0, 1.0))) {
        train.extend_from_slice(&rows[..count]);
        test.extend_from_slice(&rows[count..]);
    }
    train.sort_unstable();
    test.sort_unstable();
    (train, test)
}

/// Splits rows at random into `k` folds, class by class, and returns the (sorted) indices of each.
///
/// Folds differ by at most one row in size, and by at most one row of any class; the rows of a class smaller than `k`
/// go to different folds. `repeat` numbers the splits of one seed.
pub fn folds(labels: &Labels, k: usize, seed: u64, repeat: u64) -> Vec<Vec<usize>> {
    let mut random = Random::new(seed, FOLDS + repeat);
    let mut folds = vec![Vec::new(); k];
    if k == 0 {
        return folds;
    }
    // Dealt like cards, each class from where the one before ended.
    let rows = shuffled_classes(labels, &mut random).into_iter().flatten();
    for (turn, row) in rows.enumerate() {
        folds[turn % k].push(row);
    }
    folds.iter_mut().for_each(|fold| fold.sort_unstable());
    folds
}

/// The rows of each class in random order, classes in random order too: no class is always the one that is rounded.
fn shuffled_classes(labels: &Labels, random: &mut Random) -> Vec<Vec<usize>> {
    let mut classes = vec![Vec::new(); labels.names().len()];
    for (i, &code) in labels.codes().iter().enumerate() {
        classes[code as usize].push(i);
    }
    random.shuffle(&mut classes);
    classes.iter_mut().for_each(|rows| random.shuffle(rows));
    classes
}

/// How many rows of each class are for training: its share rounded down, and one more for those with the largest
/// remainders until the total is right.
fn train_counts(sizes: &[usize], fraction: f64) -> Vec<usize> {
    let share = |size: usize| size as f64 * fraction;
    let mut counts: Vec<usize> = sizes.iter().map(|&size| share(size).floor() as usize).collect();
    let total = share(sizes.iter().sum()).round() as usize;
    let missing = total.saturating_sub(counts.iter().sum());
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&c| counts[c] < sizes[c]).collect();
    order.sort_by(|&a, &b| share(sizes[b]).fract().total_cmp(&share(sizes[a]).fract()));
    for &class in order.iter().take(missing) {
        counts[class] += 1;
    }
    for (count, &size) in counts.iter_mut().zip(sizes).filter(|(_, size)| **size >= 2) {
        *count = (*count).clamp(1, size - 1);
    }
    counts
}
