//! Figures against scikit-learn's (1.9), computed from the same numbers.

use widemargin::Named;
use widemargin::data::Labels;
use widemargin::metrics::{Evaluation, Figures, Metric, Predictions, auc, average_precision, best_threshold};

const TRUTH: [u32; 40] = [
    0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0,
    0, 0,
];
const SCORES: [f64; 40] = [
    -1.8, 2.2, 2.0, 1.5, -0.2, -0.8, 1.0, 1.5, 1.3, 0.8, -0.1, -0.5, -0.5, 1.4, -1.8, 1.1, -0.1, 0.2, -0.5, -1.2, 0.3,
    -0.5, 1.2, -1.0, -0.2, -0.8, 1.1, 0.8, 0.1, -2.7, -0.4, 0.2, 1.7, -1.1, 1.3, -1.8, -1.2, 0.4, -0.5, 1.5,
];
const WEIGHTS: [f64; 40] = [
    1.59, 2.36, 1.24, 0.0, 2.13, 2.8, 0.34, 2.19, 2.78, 2.9, 0.04, 2.59, 2.94, 2.87, 0.45, 2.92, 2.67, 2.47, 1.44, 0.7,
    2.41, 2.77, 0.8, 1.62, 1.33, 2.79, 0.12, 2.2, 1.84, 0.09, 2.16, 0.05, 2.27, 1.54, 2.79, 0.2, 2.52, 0.2, 1.03, 1.29,
];
const PROBABILITIES: [f64; 40] = [
    0.073, 0.935, 0.917, 0.852, 0.387, 0.224, 0.75, 0.852, 0.816, 0.698, 0.418, 0.299, 0.299, 0.835, 0.073, 0.774,
    0.418, 0.515, 0.299, 0.147, 0.547, 0.299, 0.796, 0.182, 0.387, 0.224, 0.774, 0.698, 0.483, 0.024, 0.327, 0.515,
    0.882, 0.164, 0.816, 0.073, 0.147, 0.579, 0.299, 0.852,
];
const MANY: [u32; 30] = [2, 2, 0, 1, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 2, 1, 2, 1, 2, 2, 0, 1, 1, 0, 1, 1, 1, 2];
const MANY_SCORES: [[f64; 3]; 30] = [
    [-0.0, 1.0, 2.4],
    [1.2, -2.4, 2.2],
    [1.3, 0.4, 0.4],
    [0.4, 1.3, -0.4],
    [-1.9, -0.1, 0.2],
    [2.1, -0.3, 0.1],
    [0.2, -0.5, -0.0],
    [-0.5, 0.3, -0.1],
    [-0.2, -2.4, 0.5],
    [-0.3, -0.5, 0.8],
    [2.8, -0.0, 0.1],
    [-0.5, 1.6, 0.9],
    [2.1, 0.0, 0.9],
    [1.4, 0.6, -0.2],
    [-1.5, 1.0, -0.9],
    [0.8, -0.2, -1.0],
    [0.6, -0.2, 0.6],
    [0.5, 0.5, 1.4],
    [0.4, -0.5, -0.9],
    [-1.3, 2.1, -0.1],
    [-0.3, 1.6, -0.3],
    [-0.6, -0.5, 1.6],
    [0.3, -0.6, -1.6],
    [0.7, 1.8, -0.5],
    [0.2, -0.3, -0.5],
    [2.4, 0.1, 2.3],
    [-0.8, 1.6, -0.2],
    [0.6, 1.0, -0.6],
    [-0.9, 4.1, -0.1],
    [-2.0, -0.6, 1.7],
];
const MANY_WEIGHTS: [f64; 30] = [
    0.95, 2.13, 1.38, 1.52, 2.37, 0.28, 1.74, 0.59, 2.42, 1.47, 2.97, 0.55, 2.89, 2.4, 1.44, 2.44, 1.81, 1.97, 2.74,
    0.2, 2.5, 1.15, 0.98, 2.98, 2.34, 1.46, 1.27, 2.63, 0.26, 2.13,
];

/// Accuracy, balanced accuracy, F1, precision, recall, AUC, average precision, log loss, Brier score.
fn assert_figures(predictions: &Predictions<'_>, expected: [f64; 9]) {
    let scores = Figures::of(predictions);
    for ((metric, ..), expected) in Metric::WORDS.iter().zip(expected) {
        let found = scores.get(*metric).unwrap();
        assert!((found - expected).abs() < 1e-13, "{metric}: {found}, scikit-learn has {expected}");
        assert_eq!(metric.of(predictions), Some(found));
    }
}

#[test]
fn two_classes() {
    let predicted = SCORES.map(|score| u32::from(score > 0.0));
    let mut predictions = Predictions {
        classes: 2,
        truth: &TRUTH,
        predicted: &predicted,
        scores: Some(&SCORES),
        probabilities: Some(&PROBABILITIES),
        weights: None,
    };
    assert_figures(
        &predictions,
        [
            0.6,
            0.6333333333333333,
            0.4666666666666667,
            0.35,
            0.7,
            0.7483333333333333,
            0.6292717086834734,
            0.6690671429033006,
            0.240290625,
        ],
    );
    assert_eq!(Figures::of(&predictions).majority, Some(0.75));
    predictions.weights = Some(&WEIGHTS);
    let weighted = [
        0.6030545670225386,
        0.622678309923729,
        0.5124749590238572,
        0.41333725029377194,
        0.6741734547196935,
        0.7093545851035055,
        0.6377498578213351,
        0.6958051465638185,
        0.24914898947212338,
    ];
    assert_figures(&predictions, weighted);
    // One score a class means the difference.
    let both = SCORES.map(|score| [1.0, score + 1.0]).concat();
    assert_figures(&Predictions { scores: Some(&both), ..predictions }, weighted);
}

#[test]
fn more_classes() {
    let largest = |row: [f64; 3]| (1..3).fold(0, |best, l| if row[l] > row[best] { l } else { best }) as u32;
    let predicted = MANY_SCORES.map(largest);
    let softmax = |row: [f64; 3]| {
        let sum: f64 = row.iter().map(|f| f.exp()).sum();
        row.map(|f| f.exp() / sum)
    };
    let (scores, probabilities) = (MANY_SCORES.concat(), MANY_SCORES.map(softmax).concat());
    let mut predictions = Predictions {
        classes: 3,
        truth: &MANY,
        predicted: &predicted,
        scores: Some(&scores),
        probabilities: Some(&probabilities),
        weights: None,
    };
    assert_figures(
        &predictions,
        [
            0.7,
            0.7000000000000001,
            0.6944444444444443,
            0.7000000000000001,
            0.7000000000000001,
            0.770172558922559,
            0.7107152575442385,
            0.7680867785053453,
            0.44065711802415286,
        ],
    );
    predictions.weights = Some(&MANY_WEIGHTS);
    assert_figures(
        &predictions,
        [
            0.6851424172440339,
            0.6804576795967899,
            0.6755165971348666,
            0.6802075351776784,
            0.6804576795967899,
            0.7540051760740846,
            0.689285868043109,
            0.7847120739826663,
            0.4606032538559975,
        ],
    );
}

#[test]
fn what_is_not_there_has_no_figure() {
    let ones = [1.0; 3];
    assert_eq!(auc(&[1.0, 2.0, 3.0], &[true; 3], &ones), None);
    assert_eq!(auc(&[1.0, 2.0, 3.0], &[false; 3], &ones), None);
    assert_eq!(average_precision(&[1.0, 2.0, 3.0], &[false; 3], &ones), None);
    assert_eq!(auc(&[0.0, -0.0, 0.0], &[true, false, false], &ones), Some(0.5));
    let predictions = Predictions {
        classes: 2,
        truth: &[0, 1, 2],
        predicted: &[0, 1, 1],
        scores: Some(&[-1.0, 1.0, 2.0]),
        probabilities: Some(&[0.1, 0.9, 0.8]),
        weights: None,
    };
    let scores = Figures::of(&predictions);
    assert_eq!([scores.auc, scores.average_precision, scores.log_loss, scores.brier], [None; 4]);
    assert_eq!((scores.accuracy, scores.balanced_accuracy), (Some(2.0 / 3.0), Some(2.0 / 3.0)));
    let none = Predictions { truth: &[], predicted: &[], scores: Some(&[]), probabilities: None, ..predictions };
    assert_eq!(Figures::of(&none), Figures::default());
    // A certain probability that is wrong is a finite loss, as scikit-learn has it.
    let certain =
        Predictions { truth: &[0], predicted: &[1], probabilities: Some(&[1.0]), scores: None, ..predictions };
    assert!((Metric::LogLoss.of(&certain).unwrap() - 36.04365338911715).abs() < 1e-12);
    let one = Figures { accuracy: Some(0.5), ..Figures::default() };
    assert_eq!(Figures::over(&[one, scores], |values| values[0]).accuracy, Some(0.5));
    assert_eq!(Figures::over(&[one, scores], |values| values[0]).f1, None);
}

#[test]
fn unknown_labels_count_as_wrong_and_are_listed() {
    let classes = ["-1".to_string(), "+1".to_string()];
    let truth = Labels::new(&["1", "-1.0", "7", "1", "7", "8"]);
    let result = Evaluation::new(&classes, &truth, &[1, 1, 0, 1, 1, 0], None, None);
    assert_eq!((result.rows, result.correct), (6, 2));
    assert_eq!(result.unknown, ["7", "8"]);
    assert_eq!(result.confusion, [[0, 1], [0, 2], [1, 1], [1, 0]]);
    let of = |class: usize| (result.by_class[class].precision, result.by_class[class].recall);
    assert_eq!((of(0), of(1), of(2)), ((0.0, 0.0), (0.5, 1.0), (0.0, 0.0)));
    assert_eq!((result.by_class[2].rows, result.by_class[1].predicted), (2, 4));
}

/// The best of all thresholds, tried one by one.
#[test]
fn thresholds_are_the_best_there_are() {
    let positive = TRUTH.map(|code| code == 1);
    for shift in [0.0, 0.45, -3.0, 3.0] {
        let scores = SCORES.map(|score| score + shift);
        for metric in Metric::OF_A_THRESHOLD {
            for weights in [[1.0; 40], WEIGHTS] {
                let value = |threshold: f64| {
                    let predicted = scores.map(|score| u32::from(score > threshold));
                    let predictions = Predictions {
                        classes: 2,
                        truth: &TRUTH,
                        predicted: &predicted,
                        scores: None,
                        probabilities: None,
                        weights: Some(&weights),
                    };
                    metric.of(&predictions).unwrap()
                };
                let tried = scores.iter().flat_map(|score| [*score, score.next_down()]).map(value);
                let most = tried.fold(0.0, f64::max);
                let found = best_threshold(metric, &scores, &positive, &weights).unwrap();
                assert!((value(found) - most).abs() < 1e-12, "{metric} {shift}: {} at {found}, {most}", value(found));
                if (value(0.0) - most).abs() < 1e-12 {
                    assert_eq!(found, 0.0, "{metric} {shift}");
                }
            }
        }
    }
    assert!(best_threshold(Metric::Auc, &SCORES, &positive, &WEIGHTS).is_err());
}
