//! Splits: partitions that keep the classes' proportions, the same for the same seed.

use proptest::prelude::*;
use widemargin::data::{Labels, folds, train_test};

fn labels() -> impl Strategy<Value = Labels> {
    proptest::collection::vec(0..5u32, 1..120).prop_map(|codes| {
        // Uneven classes.
        let names: Vec<String> = codes.iter().map(|c| (c * c / 6).to_string()).collect();
        Labels::new(&names)
    })
}

fn count(labels: &Labels, rows: &[usize], class: usize) -> usize {
    rows.iter().filter(|&&i| labels.codes()[i] as usize == class).count()
}

fn is_partition(parts: &[&[usize]], rows: usize) -> bool {
    let mut all = parts.concat();
    all.sort_unstable();
    all == (0..rows).collect::<Vec<_>>() && parts.iter().all(|p| p.is_sorted())
}

proptest! {
    #[test]
    fn train_and_test(labels in labels(), fraction in 0.05..0.95f64, seed in any::<u64>(), repeat in 0..1000u64) {
        let m = labels.codes().len();
        let (train, test) = train_test(&labels, fraction, seed, repeat);
        prop_assert!(is_partition(&[&train, &test], m));
        let all: Vec<usize> = (0..m).collect();
        for class in 0..labels.names().len() {
            let (n, k) = (count(&labels, &all, class), count(&labels, &train, class));
            prop_assert!((k as f64 - n as f64 * fraction).abs() <= 1.0 + 1e-9, "{} of {}", k, n);
            prop_assert!(n < 2 || (k >= 1 && k < n));
        }
        prop_assert_eq!(train_test(&labels, fraction, seed, repeat), (train, test));
    }

    #[test]
    fn all_folds(labels in labels(), k in 1..12usize, seed in any::<u64>(), repeat in 0..1000u64) {
        let m = labels.codes().len();
        let parts = folds(&labels, k, seed, repeat);
        prop_assert_eq!(parts.len(), k);
        prop_assert!(is_partition(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>(), m));
        let near = |counts: Vec<usize>| counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1;
        prop_assert!(near(parts.iter().map(Vec::len).collect()));
        for class in 0..labels.names().len() {
            prop_assert!(near(parts.iter().map(|p| count(&labels, p, class)).collect()));
        }
        prop_assert_eq!(folds(&labels, k, seed, repeat), parts);
    }
}

#[test]
fn seeds_and_repeats_differ() {
    let names: Vec<String> = (0..100).map(|i| (i % 2).to_string()).collect();
    let labels = Labels::new(&names);
    let half = |seed, repeat| train_test(&labels, 0.5, seed, repeat).0;
    assert_eq!(half(0, 0).len(), 50);
    assert_ne!(half(0, 0), half(0, 1));
    assert_ne!(half(0, 0), half(1, 0));
    assert_ne!(folds(&labels, 5, 0, 0), folds(&labels, 5, 0, 1));
    assert!(folds(&labels, 0, 0, 0).is_empty());
}
