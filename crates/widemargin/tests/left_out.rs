//! Leave-one-out margins against fits without the row.

mod common;

use common::{Ask, BIASES, ask, dense, noisy, sparse};
use widemargin::calibration::ProbabilityForm;
use widemargin::data::{Dataset, Examples, ScalingKind, folds};
use widemargin::kernel::Kernel;
use widemargin::machine::{Outcome, Value};
use widemargin::model::{Model, UnseenBy};
use widemargin::multiclass::Multiclass;
use widemargin::random::Random;
use widemargin::select::{Learned, has_left_out_margins, learn_unseen, unseen_margins};
use widemargin::train::{ClassWeight, TrainOptions, train};

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };
const D: usize = 3;

/// The model of all rows but `i`, each of which counts as much as it did.
fn refit(options: &TrainOptions, costs: &[&str], data: &Dataset, weights: &[f64], i: usize) -> Model {
    let total: f64 = weights.iter().sum();
    let mut rest = weights.to_vec();
    rest[i] = 0.0;
    let settled = options.machine.settled(&options.parameters, total);
    let parameter = |(name, value): (&str, &Value)| {
        let share = if costs.contains(&name) { (total - weights[i]) / total } else { 1.0 };
        (name.to_string(), settled.get(name).map_or(value.clone(), |v| (v * share).into()))
    };
    let given: Vec<_> = settled.iter().map(parameter).collect();
    let parameters = widemargin::machine::check_parameters(options.machine, &given).unwrap();
    let options = TrainOptions { parameters, ..options.clone() };
    train(data, Some(&rest), &options, Default::default()).unwrap().0
}

fn margins(model: &Model, data: &Dataset) -> Vec<f64> {
    let found = model.margins(&model.scores(&data.rows).unwrap(), data.labels.as_ref().unwrap());
    found.into_iter().map(Option::unwrap).collect()
}

fn left_out(options: &TrainOptions, data: &Dataset, weights: &[f64]) -> Outcome {
    train(data, Some(weights), options, Default::default()).unwrap().1
}

#[test]
fn every_machine_kernel_and_intercept_with_weights() {
    let (values, labels) = noisy(40, D, 21);
    let data = dense(&values, &labels);
    let weights: Vec<f64> = (0..40).map(|i| [0.5, 1.0, 3.0][i % 3]).collect();
    // What is divided by the number of rows, and the margins at which the slope of the loss bends.
    let cases: [(&'static str, &[&str], &[f64]); 3] =
        [("lssvm", &["c"], &[]), ("odm", &["c1", "c2"], &[0.6, 1.4]), ("l2svm", &[], &[1.0])];
    for (machine, costs, kinks) in cases {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let options = Ask { bias, kernel, ..ask(machine) }.options();
                let all = left_out(&options, &data, &weights);
                let closed = all.loo_margins.unwrap();
                let (mut held, mut sum) = (0, 0.0);
                for i in 0..40 {
                    let without = margins(&refit(&options, costs, &data, &weights, i), &data);
                    let piece = |g: f64| kinks.iter().filter(|kink| g > **kink).count();
                    let holds = (0..40).all(|j| j == i || piece(without[j]) == piece(all.margins[j]));
                    let apart = (without[i] - closed[i]).abs();
                    assert!(!holds || apart < 1e-6, "{machine} {bias:?} {kernel:?} {i}: {apart}");
                    held += usize::from(holds);
                    sum += apart;
                }
                // It is close where another row crosses a kink.
                assert!(
                    held >= 8 && sum / 40.0 < 0.1,
                    "{machine} {bias:?} {kernel:?}: {held} held, mean {}",
                    sum / 40.0
                );
            }
        }
    }
}

#[test]
fn a_loose_tolerance_does_not_show() {
    let (values, labels) = noisy(300, D, 5);
    let data = dense(&values, &labels);
    for kernel in [Kernel::Linear, RBF] {
        let of = |tol: f64| Ask { kernel, tol, ..ask("odm") }.fit(&data).1.loo_margins.unwrap();
        let (loose, tight) = (of(1e-2), of(1e-11));
        assert!(common::furthest(&loose, &tight) < 1e-5, "{kernel:?}: {}", common::furthest(&loose, &tight));
    }
}

#[test]
fn three_classes_leave_the_row_out_of_every_problem() {
    let (values, _) = noisy(45, D, 8);
    let labels: Vec<&str> = values
        .chunks(D)
        .map(|x| {
            let best = (1..D).fold(0, |best, j| if x[j] > x[best] { j } else { best });
            ["a", "b", "c"][best]
        })
        .collect();
    let data = dense(&values, &labels);
    let ones = vec![1.0; 45];
    for (scheme, costs) in [(Multiclass::Ova, &["c"][..]), (Multiclass::Ecoc, &["c"])] {
        for kernel in [Kernel::Linear, RBF] {
            let options = TrainOptions { multiclass: Some(scheme), ..Ask { kernel, ..ask("lssvm") }.options() };
            let closed = left_out(&options, &data, &ones).loo_margins.unwrap();
            for i in [0, 7, 20, 44] {
                let refit = margins(&refit(&options, costs, &data, &ones, i), &data)[i];
                assert!((closed[i] - refit).abs() < 1e-6, "{scheme:?} {kernel:?} {i}: {} {refit}", closed[i]);
            }
        }
    }
}

#[test]
fn rows_of_weight_zero_have_the_margin_of_a_row_never_seen() {
    let (values, labels) = noisy(60, D, 2);
    let data = dense(&values, &labels);
    let weights: Vec<f64> = (0..60).map(|i| if i % 4 == 3 { 0.0 } else { 1.0 }).collect();
    let (model, outcome) = train(&data, Some(&weights), &ask("odm").options(), Default::default()).unwrap();
    let scores = outcome.loo_scores.unwrap();
    assert_eq!((scores.len(), outcome.loo_margins.unwrap().len()), (60, 45));
    let plain = model.scores(&data.rows).unwrap();
    (0..60).filter(|i| i % 4 == 3).for_each(|i| assert_eq!(scores[i], plain[i], "{i}"));
    assert!((0..60).filter(|&i| scores[i] != plain[i]).count() > 20);
}

#[test]
fn what_does_not_fit_is_estimated_and_says_so() {
    let (values, labels) = noisy(2200, D, 6);
    let data = dense(&values, &labels);
    let ones = vec![1.0; 2200];
    let of = |memory: u64| {
        let mut options = Ask { kernel: RBF, ..ask("odm") }.options();
        (options.settings.memory, options.settings.left_out) = (memory, true);
        left_out(&options, &data, &ones)
    };
    let (exact, estimated) = (of(1 << 30), of(32 << 20));
    assert_eq!(exact.loo_margin_error, None);
    let said = estimated.loo_margin_error.unwrap();
    let (exact, found, plain) = (exact.loo_margins.unwrap(), estimated.loo_margins.unwrap(), estimated.margins);
    let apart = |a: &[f64], b: &[f64]| (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 2200.0).sqrt();
    assert!(apart(&found, &exact) < 1.5 * said + 1e-3, "{} {said}", apart(&found, &exact));
    assert!(said < 0.5 * apart(&plain, &exact), "{said} {}", apart(&plain, &exact));
}

#[test]
fn wide_rows_that_are_too_many_for_a_factor_are_estimated() {
    let (m, d) = (900, 2100);
    let mut random = Random::new(12, 0);
    let (mut values, mut labels) = (vec![0.0; m * d], Vec::with_capacity(m));
    for row in values.chunks_exact_mut(d) {
        let class = random.unit() < 0.4;
        // Words that all rows like, and some that rows of one class like.
        (0..8).for_each(|_| row[(40.0 * random.unit().powi(2)) as usize] += 0.4);
        (0..8).for_each(|_| row[(random.unit() * d as f64 * if class { 1.0 } else { 0.7 }) as usize] += 0.6);
        labels.push(if class { "yes" } else { "no" });
    }
    let weights: Vec<f64> = (0..m).map(|i| [0.5, 1.0, 3.0][i % 3]).collect();
    for data in [dense(&values, &labels), sparse(&values, &labels)] {
        for bias in BIASES {
            let case = format!("{bias:?} {}", data.rows.is_dense());
            let parameters = vec![("c", 600.0)];
            let mut options = Ask { bias, parameters, tol: 1e-9, ..ask("lssvm") }.options();
            (options.settings.memory, options.settings.left_out) = (10 << 20, true);
            let all = left_out(&options, &data, &weights);
            let (found, said) = (all.loo_margins.unwrap(), all.loo_margin_error.unwrap());
            options.settings.left_out = false;
            let (mut far, mut moved, mut count) = (0.0, 0.0, 0.0);
            for i in (0..m).step_by(30) {
                let refit = margins(&refit(&options, &["c"], &data, &weights, i), &data)[i];
                far += (found[i] - refit).powi(2);
                moved += (all.margins[i] - refit).powi(2);
                count += 1.0;
            }
            let [far, moved] = [far, moved].map(|sum: f64| (sum / count).sqrt());
            assert!(far < 1.7 * said && said < 2.5 * far, "{case}: {far} is not {said}");
            assert!(said < 0.5 * moved, "{case}: {said} of {moved}");
        }
    }
}

#[test]
fn rows_that_are_fitted_to_the_letter_keep_their_digits() {
    let (m, d) = (30, 300);
    let mut random = Random::new(17, 0);
    let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
    let labels: Vec<&str> = values.chunks_exact(d).map(|x| if x[0] > 0.0 { "yes" } else { "no" }).collect();
    let (data, ones) = (dense(&values, &labels), vec![1.0; m]);
    for (machine, costs) in [("lssvm", ["c"].as_slice()), ("l2svm", &[]), ("odm", &["c1", "c2"])] {
        for bias in BIASES {
            // Residuals of 1e-11 and less, of which the margins show little. Where they show nothing the squared hinge takes rows for
            // flat.
            let given = match machine {
                "odm" => vec![("c1", 1e12), ("c2", 1e12), ("d", 0.0)],
                "lssvm" => vec![("c", 1e12)],
                _ => vec![("c", 1e9)],
            };
            let options = Ask { bias, parameters: given, ..ask(machine) }.options();
            let closed = left_out(&options, &data, &ones).loo_margins.unwrap();
            for i in [0, 11, 23] {
                let refit = margins(&refit(&options, costs, &data, &ones, i), &data)[i];
                assert!((closed[i] - refit).abs() < 1e-9, "{machine} {bias:?} {i}: {} is not {refit}", closed[i]);
            }
        }
    }
}

/// Options of machines, kernels and ways to meet classes that have no margins left out in closed form, and whether the data has three
/// classes.
fn without_closed_form() -> Vec<(TrainOptions, bool)> {
    let balanced = |options| TrainOptions { class_weight: ClassWeight::Balanced, ..options };
    let scaled = |options| TrainOptions { scaling: Some(ScalingKind::Standard), ..options };
    let by = |scheme, options| TrainOptions { multiclass: Some(scheme), ..options };
    vec![
        (scaled(Ask { kernel: RBF, ..ask("svm") }.options()), false),
        (balanced(ask("ldm").options()), false),
        (Ask { kernel: Kernel::Sigmoid { gamma: 0.01, coef0: 0.0 }, ..ask("odm") }.options(), false),
        (Ask { tol: 1e-6, ..ask("mcodm") }.options(), false),
        (Ask { tol: 1e-6, kernel: RBF, ..ask("mcodm") }.options(), true),
        (Ask { tol: 1e-6, ..ask("mcsvm") }.options(), true),
        (by(Multiclass::Ovo, ask("svm").options()), true),
        (by(Multiclass::Ecoc, Ask { kernel: RBF, ..ask("svm") }.options()), true),
        (by(Multiclass::Ova, ask("lda").options()), true),
    ]
}

#[test]
fn margins_from_folds_are_those_of_models_of_the_other_folds() {
    let (values, labels) = noisy(64, D, 33);
    let three: Vec<&str> =
        values.chunks(D).map(|x| ["a", "b", "c"][(1..D).fold(0, |b, j| if x[j] > x[b] { j } else { b })]).collect();
    let weights: Vec<f64> = (0..64).map(|i| [1.0, 0.0, 2.5, 1.0, 0.5][i % 5]).collect();
    for (number, (options, many)) in without_closed_form().into_iter().enumerate() {
        assert!(!has_left_out_margins(&options), "{number}");
        let data = dense(&values, if many { &three } else { &labels });
        let examples = Examples::of(&data).unwrap();
        let (mut model, outcome) = train(&data, Some(&weights), &options, Default::default()).unwrap();
        let asked = Learned { margins: true, ..Learned::default() };
        let unseen =
            learn_unseen(examples, Some(&weights), &options, asked, (&mut model, &outcome), Default::default());
        let found = unseen_margins(examples, &options, &unseen.unwrap().unwrap()).unwrap();
        assert_eq!(found.by, UnseenBy::Folds(5));
        let kept: Vec<usize> = (0..64).filter(|&i| weights[i] > 0.0).collect();
        let part = |rows: &[usize]| {
            let labels = data.labels.as_ref().unwrap().select(rows);
            Dataset::new("part", data.rows.select(rows), Some(labels))
        };
        // Rows of weight 0 no model has seen.
        let mut expected = margins(&model, &data);
        for test in folds(&data.labels.as_ref().unwrap().select(&kept), 5, options.settings.seed, 0) {
            let test: Vec<usize> = test.iter().map(|&p| kept[p]).collect();
            let others: Vec<usize> = kept.iter().copied().filter(|i| !test.contains(i)).collect();
            let given: Vec<f64> = others.iter().map(|&i| weights[i]).collect();
            let without = train(&part(&others), Some(&given), &options, Default::default()).unwrap().0;
            test.iter().zip(margins(&without, &part(&test))).for_each(|(&i, g)| expected[i] = g);
        }
        let apart = common::furthest(&found.margins, &expected);
        assert!(apart < 1e-6, "{number}: {apart}");
        if options.class_weight == ClassWeight::Equal {
            let wrong: f64 = expected.iter().zip(&weights).filter(|(g, _)| **g <= 0.0).map(|(_, s)| s).sum();
            assert!((found.error - wrong / weights.iter().sum::<f64>()).abs() < 1e-12, "{number}");
        }
    }
}

#[test]
fn folds_serve_margins_and_probabilities_at_once() {
    let (values, labels) = noisy(80, D, 3);
    let (data, options) = (dense(&values, &labels), ask("svm").options());
    let examples = Examples::of(&data).unwrap();
    let learn = |asked: Learned| {
        let (mut model, outcome) = train(&data, None, &options, Default::default()).unwrap();
        let found = learn_unseen(examples, None, &options, asked, (&mut model, &outcome), Default::default()).unwrap();
        (model, found)
    };
    let probability = Some(ProbabilityForm::Sigmoid);
    let (alone, (both, unseen)) = (
        learn(Learned { probability, ..Learned::default() }).0,
        learn(Learned { probability, margins: true, ..Learned::default() }),
    );
    assert_eq!(alone, both);
    assert_eq!(both.calibration.unwrap().by, Some(unseen.unwrap().by));
    assert!(learn(Learned::default()).1.is_none());
}

#[test]
fn a_label_of_one_row_has_no_margins_from_folds() {
    let (values, _) = noisy(30, D, 4);
    let labels: Vec<&str> = (0..30).map(|i| if i == 7 { "alone" } else { ["a", "b"][i % 2] }).collect();
    let data = dense(&values, &labels);
    let examples = Examples::of(&data).unwrap();
    let found = |options: &TrainOptions, weights: &[f64]| {
        let (mut model, outcome) = train(&data, Some(weights), options, Default::default()).unwrap();
        let asked = Learned { margins: true, ..Learned::default() };
        let fitted = (&mut model, &outcome);
        let unseen = learn_unseen(examples, Some(weights), options, asked, fitted, Default::default())?;
        unseen_margins(examples, options, &unseen.unwrap())
    };
    let (ones, options) = (vec![1.0; 30], ask("svm").options());
    let error = found(&options, &ones).unwrap_err().to_string();
    assert!(error.contains("alone") && error.contains("two rows"), "{error}");
    let without: Vec<f64> = (0..30).map(|i| if i == 7 { 0.0 } else { 1.0 }).collect();
    let error = found(&options, &without).unwrap_err().to_string();
    assert!(error.contains("row 8") && error.contains("weight 0"), "{error}");
    // In closed form it can be left out.
    assert_eq!(found(&ask("lssvm").options(), &ones).unwrap().by, UnseenBy::LeaveOneOut);
}
