//! Problems on which a certificate was once false: what is claimed must agree with [`verify`], and with a tighter fit.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::data::Examples;
use widemargin::data::{Dataset, embedded};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Outcome, SolverChoice};
use widemargin::problem::StopReason;
use widemargin::random::Random;
use widemargin::train::{Gamma, train};
use widemargin::verify::verify;

/// Fits as asked and to `1e-9`; the claims of both must hold, also of one against the other.
fn honest(ask: &Ask, data: &Dataset, gamma: Gamma) -> Outcome {
    let fit = |tol: f64| {
        let options = widemargin::train::TrainOptions { gamma, ..Ask { tol, ..ask.clone() }.options() };
        let (model, outcome) = train(data, None, &options, Default::default()).unwrap();
        let found = verify(&model, Examples::of(data).unwrap(), None, Default::default()).unwrap();
        assert_eq!(found.agrees, Some(true), "{} {:?} {:?}: {found:?}", ask.machine, ask.kernel, ask.bias);
        outcome
    };
    let (rough, tight) = (fit(ask.tol), fit(1e-9));
    let (dual, objective) = (tight.dual_objective.unwrap(), rough.objective.unwrap());
    let off = (objective - dual) / dual.abs().max(objective.abs());
    let claimed = rough.gap.unwrap() + tight.gap.unwrap() + 1e-9;
    assert!(off <= claimed, "{}: {off:e} above the optimum, claimed {claimed:e}", ask.machine);
    rough
}

const RBF: Kernel = Kernel::Rbf { gamma: 1.0 };

#[test]
fn kernel_ldm_is_not_the_zero_function() {
    let sonar = embedded("sonar").unwrap();
    for (machine, lambda1, c) in [("ldm", 16.0, 1.0), ("ldm", 16.0, 100.0), ("ldm", 4.0, 1.0), ("odm-l", 16.0, 208.0)] {
        let parameters = vec![("lambda1", lambda1), ("lambda2", 0.004), ("c", c)];
        let ask = Ask { kernel: RBF, parameters, tol: 1e-3, ..ask(machine) };
        let found = honest(&ask, &sonar, Gamma::Scale);
        assert!(found.stop == StopReason::Gap && found.support > 0, "{:?}", found.stop);
    }
}

#[test]
fn a_large_constant_feature_does_not_drown_the_kernel() {
    for name in ["sonar", "wdbc"] {
        let data = embedded(name).unwrap();
        for machine in ["odm", "svm"] {
            for bias in [100.0, 1000.0, 1e4] {
                let ask = Ask { kernel: RBF, bias: Bias::Feature(bias), tol: 1e-3, ..ask(machine) };
                honest(&ask, &data, Gamma::Scale);
            }
        }
    }
}

#[test]
fn single_precision_is_not_taken_where_it_does_not_suffice() {
    let sonar = embedded("sonar").unwrap();
    for c in [1e4, 1e6] {
        honest(&Ask { kernel: RBF, parameters: vec![("c", c)], tol: 1e-3, ..ask("svm") }, &sonar, Gamma::Scale);
    }
    // More rows than are solved in double precision at once, around 100.
    let (m, d, mut random) = (600, 700, Random::new(5, 0));
    let values: Vec<f64> = (0..m * d).map(|_| 100.0 + random.normal()).collect();
    let labels: Vec<&str> =
        (0..m).map(|i| if values[i * d] - 100.0 + random.normal() > 0.0 { "yes" } else { "no" }).collect();
    honest(&Ask { tol: 1e-3, ..ask("svm") }, &dense(&values, &labels), Gamma::Auto);
    let poly = Kernel::Poly { gamma: 1.0, degree: 3, coef0: 1.0 };
    let shifted: Vec<f64> = values.iter().map(|v| v - 90.0).collect();
    honest(&Ask { kernel: poly, tol: 1e-3, ..ask("odm") }, &dense(&shifted, &labels), Gamma::Auto);
}

#[test]
fn small_costs_with_a_free_intercept() {
    let wdbc = embedded("wdbc").unwrap();
    for c in [1e-9, 1e-7, 1e-5, 1e-4] {
        for solver in [SolverChoice::Auto, SolverChoice::Dcd] {
            let ask = Ask { kernel: RBF, parameters: vec![("c", c)], tol: 1e-3, solver, ..ask("svm") };
            let found = honest(&ask, &wdbc, Gamma::Scale);
            assert_eq!(found.stop, StopReason::Gap, "{c} {solver:?}");
        }
    }
}

#[test]
fn a_problem_without_a_minimum_is_said_to_be_one() {
    let (values, mut labels) = noisy(120, 3, 9);
    labels.iter_mut().enumerate().for_each(|(i, label)| *label = if i % 10 == 0 { "yes" } else { "no" });
    let parameters = vec![("lambda1", 0.0), ("lambda2", 30.0), ("c", 0.01)];
    let (_, found) = Ask { parameters, ..ask("ldm") }.fit(&dense(&values, &labels));
    assert_eq!((found.stop, found.stop.converged()), (StopReason::Unbounded, false));
}

#[test]
fn fewer_rows_than_features_of_any_size_converge() {
    for scale in [1e-4, 1.0, 1e4, 1e6] {
        for (machine, bias) in [("lssvm", Bias::None), ("svm", Bias::Free), ("odm", Bias::Free), ("ldm", Bias::Free)] {
            let (values, labels) = noisy(60, 150, 3);
            let scaled: Vec<f64> = values.iter().map(|v| v * scale).collect();
            let ask = Ask { bias, tol: 1e-3, ..ask(machine) };
            let found = honest(&ask, &dense(&scaled, &labels), Gamma::Auto);
            assert_eq!(found.stop, StopReason::Gap, "{machine} {scale}: gap {:?}", found.gap);
        }
    }
}

#[test]
fn values_and_weights_that_overflow_are_refused() {
    let (mut values, labels) = noisy(20, 3, 1);
    let weights = vec![1e308; 20];
    assert!(ask("odm").try_fit(&dense(&values, &labels), Some(&weights)).is_err());
    values[7] = 1e200;
    let error = ask("odm").try_fit(&dense(&values, &labels), None).err().unwrap().to_string();
    assert!(error.contains("row 3, feature 2") && error.contains("1e200"), "{error}");
}

/// Rows that are nearly one direction: landmarks explain all but a small part of each, and of that rounding takes a share.
fn bundle(m: usize, classes: u64, seed: u64) -> Dataset {
    let mut random = Random::new(seed, 5);
    let mut whole = |range: u64| random.below(range as usize) as f64;
    let values: Vec<f64> = (0..2 * m).map(|_| 6460.276002280574 + whole(4)).collect();
    let names = ["a", "b", "c", "d"];
    let labels: Vec<&str> =
        (0..m).map(|i| names[if i < 4 { i % classes as usize } else { whole(classes) as usize }]).collect();
    dense(&values, &labels)
}

#[test]
fn landmark_rows_are_certified_as_they_are_written() {
    let poly = |coef0| Kernel::Poly { gamma: 1.0, degree: 3, coef0 };
    for seed in 0..12 {
        let cases = [
            ("odm", vec![("c1", 6.8e-4), ("c2", 1.8e-5), ("d", 0.78)], Bias::Feature(0.0025), 4),
            ("odm", vec![("c1", 1e3), ("c2", 1.0), ("d", 0.1)], Bias::Free, 2),
            ("svm", vec![("c", 1.0)], Bias::Free, 2),
            ("mamc", vec![("c", 1.0)], Bias::None, 2),
            ("mcsvm", vec![("c", 9e3)], Bias::Free, 3),
            ("km-omd", vec![("lambda", 0.2)], Bias::Free, 2),
            ("fmm", vec![], Bias::None, 2),
        ];
        for (machine, parameters, bias, classes) in cases {
            let data = bundle(33, classes, seed);
            let ask = Ask { parameters, kernel: poly(0.0), bias, tol: 1e-6, ..ask(machine) };
            let options = widemargin::train::TrainOptions { approx: Some(3), gamma: Gamma::Auto, ..ask.options() };
            let (model, outcome) = train(&data, None, &options, Default::default()).unwrap();
            let found = verify(&model, Examples::of(&data).unwrap(), None, Default::default()).unwrap();
            assert_eq!(found.agrees, Some(true), "{machine} {seed}: {} {found:?}", outcome.solver);
        }
    }
}

/// Kernel values of 1e38 in sums whose terms are 1e13: no objective that depends on the last digit of such a score is known.
#[test]
fn an_objective_that_rounding_hides_is_said_to_be_hidden() {
    let mut random = Random::new(6, 0);
    let values: Vec<f64> =
        (0..80).map(|i| if i < 20 { 25.0 } else { 25.0 + 10f64.powi(i % 8) * random.unit() }).collect();
    let data = dense(&values, &["a", "b", "c", "d"]);
    let kernel = Kernel::Poly { gamma: 1.0, degree: 3, coef0: 1.0 };
    for mu in [0.0, 0.5] {
        let parameters = vec![("lambda", 2.6e6), ("mu", mu), ("theta", 0.0), ("rounds", 5.0)];
        let ask = Ask { parameters, kernel, bias: Bias::Feature(1.7), tol: 1e-3, ..ask("mcodm") };
        let mut options = widemargin::train::TrainOptions { gamma: Gamma::Auto, ..ask.options() };
        for relaxation in ["cccp", "paper"] {
            let mut given: Vec<(String, widemargin::machine::Value)> =
                options.parameters.iter().map(|(n, v)| (n.into(), v.clone())).collect();
            given.retain(|(name, _)| name != "relaxation");
            given.push(("relaxation".into(), relaxation.into()));
            options.parameters = widemargin::machine::check_parameters(options.machine, &given).unwrap();
            let (model, outcome) = train(&data, None, &options, Default::default()).unwrap();
            assert!(!outcome.stop.converged(), "{relaxation} {mu}: gap {:?}", outcome.gap);
            let found = verify(&model, Examples::of(&data).unwrap(), None, Default::default()).unwrap();
            assert_ne!(found.agrees, Some(false), "{relaxation} {mu}: {found:?}");
        }
    }
}

/// Rounds that each fail to converge share one budget of passes.
#[test]
fn rounds_that_do_not_converge_end_in_time() {
    let (values, labels) = noisy(60, 4, 9);
    let labels: Vec<&str> = labels.iter().enumerate().map(|(i, l)| if i % 3 == 0 { "third" } else { l }).collect();
    let data = dense(&values, &labels);
    let parameters = vec![("lambda", 0.9), ("mu", 1e-6), ("theta", 0.999999), ("rounds", 20.0)];
    let ask = Ask { parameters, kernel: RBF, bias: Bias::Feature(1.0), tol: 1e-9, ..ask("mcodm") };
    let options = widemargin::train::TrainOptions { gamma: Gamma::Value(0.02), ..ask.options() };
    let (_, outcome) = train(&data, None, &options, Default::default()).unwrap();
    assert!(outcome.iterations < 45_000, "{} passes, {:?}", outcome.iterations, outcome.stop);
}

/// Beside rows of length 1e8 the optimum of KM-OMD is small, but it is not zero as long as the mean counts.
#[test]
fn long_rows_do_not_make_an_optimum_zero() {
    for seed in 0..4 {
        let (values, labels) = noisy(80, 20, seed);
        let values: Vec<f64> =
            values.iter().enumerate().map(|(i, v)| v * 10f64.powi((i % 20) as i32 / 2) + 7.0).collect();
        for bias in [Bias::Free, Bias::None] {
            let ask = Ask { parameters: vec![("lambda", 0.25)], bias, tol: 1e-3, ..ask("km-omd") };
            let data = dense(&values, &labels);
            let (model, outcome) = train(&data, None, &ask.options(), Default::default()).unwrap();
            let found = verify(&model, Examples::of(&data).unwrap(), None, Default::default()).unwrap();
            assert_eq!(found.agrees, Some(true), "{seed} {bias:?}: {:?} {found:?}", outcome.stop);
            // λ Σ γ²/s is at least λ over the number of rows of each class.
            assert!(outcome.objective.unwrap() >= 0.25 * 4.0 / 80.0, "{:?}", outcome.objective);
        }
    }
}

/// Margins of 1e17: the dual variables of their variance follow from the last digits, and so does the bound. Whoever computes the
/// margins in another way finds another one, and the claim must leave space for it.
#[test]
fn a_bound_that_rounding_sways_leaves_space_for_it() {
    for seed in 0..40 {
        let (values, labels) = noisy(7, 150, seed);
        let data = dense(&values.iter().map(|v| v * 1e8).collect::<Vec<f64>>(), &labels);
        let parameters = vec![("lambda1", 5e-6), ("lambda2", 0.07), ("c", 1.3e5)];
        let ask = Ask { parameters, bias: Bias::Free, solver: SolverChoice::Newton, tol: 1e-3, ..ask("odm-l") };
        let (model, outcome) = train(&data, None, &ask.options(), Default::default()).unwrap();
        let found = verify(&model, Examples::of(&data).unwrap(), None, Default::default()).unwrap();
        assert_eq!(found.agrees, Some(true), "{seed}: {:?} {found:?}", outcome.stop);
    }
}

/// Without an upper side the rounds of both relaxations are one convex problem: one round, whatever scores would be frozen.
#[test]
fn no_upper_side_is_one_round() {
    let (values, labels) = noisy(60, 4, 9);
    let labels: Vec<&str> = labels.iter().enumerate().map(|(i, l)| if i % 3 == 0 { "third" } else { l }).collect();
    let data = dense(&values, &labels);
    let fit = |relaxation: &str| {
        let ask = Ask { parameters: vec![("mu", 0.0)], bias: Bias::None, tol: 1e-6, ..ask("mcodm") };
        let mut options = ask.options();
        let mut given: Vec<(String, widemargin::machine::Value)> =
            options.parameters.iter().map(|(n, v)| (n.into(), v.clone())).collect();
        given.retain(|(name, _)| name != "relaxation");
        given.push(("relaxation".into(), relaxation.into()));
        options.parameters = widemargin::machine::check_parameters(options.machine, &given).unwrap();
        train(&data, None, &options, Default::default()).unwrap().1
    };
    let (ours, paper) = (fit("cccp"), fit("paper"));
    assert_eq!((ours.rounds.as_ref().unwrap().len(), paper.rounds.as_ref().unwrap().len()), (1, 1));
    assert_eq!((ours.stop, paper.stop), (StopReason::Gap, StopReason::Gap));
    let (a, b) = (ours.objective.unwrap(), paper.objective.unwrap());
    assert!((a - b).abs() <= 2e-6 * a, "{a} {b}");
}
