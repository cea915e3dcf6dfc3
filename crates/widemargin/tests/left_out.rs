//! Leave-one-out margins against fits without the row.

mod common;

use common::{Ask, BIASES, ask, dense, noisy};
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::machine::Outcome;
use widemargin::multiclass::Multiclass;
use widemargin::train::{TrainOptions, train};

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };
const D: usize = 3;

/// The margin of row `i` under the model of the others, each of which counts as much as it did.
fn refitted(options: &TrainOptions, costs: &[&str], data: &Dataset, weights: &[f64], i: usize) -> f64 {
    let total: f64 = weights.iter().sum();
    let mut rest = weights.to_vec();
    rest[i] = 0.0;
    let given: Vec<_> = options
        .parameters
        .iter()
        .map(|(name, value)| {
            let share = if costs.contains(&name) { (total - weights[i]) / total } else { 1.0 };
            (name.to_string(), options.parameters.get(name).map_or(value.clone(), |v| (v * share).into()))
        })
        .collect();
    let parameters = widemargin::machine::check_parameters(options.machine, &given).unwrap();
    let (model, _) =
        train(data, Some(&rest), &TrainOptions { parameters, ..options.clone() }, Default::default()).unwrap();
    let row = data.rows.select(&[i]);
    model.margins(&model.scores(&row).unwrap(), &data.labels.as_ref().unwrap().select(&[i]))[0].unwrap()
}

fn left_out(options: &TrainOptions, data: &Dataset, weights: &[f64]) -> Outcome {
    train(data, Some(weights), options, Default::default()).unwrap().1
}

#[test]
fn every_machine_kernel_and_intercept_with_weights() {
    let (values, labels) = noisy(40, D, 21);
    let data = dense(&values, &labels);
    let weights: Vec<f64> = (0..40).map(|i| [0.5, 1.0, 3.0][i % 3]).collect();
    let cases: [(&'static str, &[&str]); 3] = [("lssvm", &["c"]), ("odm", &["c1", "c2"]), ("l2svm", &[])];
    for (machine, costs) in cases {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let options = Ask { bias, kernel, ..ask(machine) }.options();
                let margins = left_out(&options, &data, &weights).loo_margins.unwrap();
                let apart: Vec<f64> =
                    (0..40).map(|i| (margins[i] - refitted(&options, costs, &data, &weights, i)).abs()).collect();
                let exact = apart.iter().filter(|d| **d < 1e-6).count();
                // Without a band no row can cross a kink; with one, most rows leave the others on their side.
                let enough = if machine == "lssvm" { 40 } else { 14 };
                assert!(exact >= enough, "{machine} {bias:?} {kernel:?}: {exact} of 40 exact, {apart:?}");
                let mean = apart.iter().sum::<f64>() / 40.0;
                assert!(mean < 0.1, "{machine} {bias:?} {kernel:?}: {mean}");
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
            let margins = left_out(&options, &data, &ones).loo_margins.unwrap();
            for i in [0, 7, 20, 44] {
                let refit = refitted(&options, costs, &data, &ones, i);
                assert!((margins[i] - refit).abs() < 1e-6, "{scheme:?} {kernel:?} {i}: {} {refit}", margins[i]);
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
    (0..60).for_each(|i| assert_eq!(scores[i] == plain[i], i % 4 == 3, "{i}"));
}
