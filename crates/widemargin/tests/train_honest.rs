//! What training says of itself is true: why it stopped, which intercept the model has, what it refuses.

mod common;

use common::{Ask, BIASES, CONVEX, ask, dense, noisy};
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, MACHINES, Outcome, SolverChoice};
use widemargin::problem::StopReason;
use widemargin::{Error, Result};

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };

fn two_classes(m: usize) -> Dataset {
    let (values, labels) = noisy(m, 4, 7);
    dense(&values, &labels)
}

fn three_classes(m: usize) -> Dataset {
    let (mut values, _) = noisy(m, 4, 8);
    let labels: Vec<&str> = (0..m).map(|i| ["no", "maybe", "yes"][i % 3]).collect();
    (0..m).for_each(|i| values[4 * i + i % 3] += 2.0);
    dense(&values, &labels)
}

/// A number of rounds that ran out is no convergence, whatever the gap of the last round's own problem.
#[test]
fn rounds_that_run_out_did_not_converge() {
    let (two, three) = (two_classes(150), three_classes(150));
    let cases: [(Ask, &Dataset); 5] = [
        (Ask { parameters: vec![("iterations", 1.0)], ..ask("msvmav") }, &two),
        (Ask { max_iter: Some(1), ..ask("msvmav") }, &two),
        (Ask { parameters: vec![("rounds", 3.0)], ..ask("fmm") }, &two),
        (Ask { max_iter: Some(1), ..ask("mdo") }, &two),
        (Ask { parameters: vec![("rounds", 1.0)], tol: 1e-3, ..ask("mcodm") }, &three),
    ];
    for (ask, data) in cases {
        let (model, outcome) = ask.fit(data);
        assert_eq!(outcome.stop, StopReason::Iterations, "{} {:?}", ask.machine, outcome.gap);
        assert!(!outcome.stop.converged());
        assert_eq!(model.certificate.stop, outcome.stop);
    }
    // More rounds find more; the problem of the last one was solved all the same.
    let least = |outcome: &Outcome| *outcome.rounds.as_ref().unwrap().last().unwrap();
    let one = Ask { parameters: vec![("rounds", 1.0)], tol: 1e-3, ..ask("mcodm") }.fit(&three).1;
    assert!(one.gap.unwrap() <= 1e-3);
    assert!(least(&Ask { tol: 1e-3, ..ask("mcodm") }.fit(&three).1) <= least(&one));
    assert_eq!(Ask { tol: 1e-3, ..ask("mcodm") }.fit(&three).1.stop, StopReason::Rest);
    assert_eq!(Ask { tol: 1e-3, ..ask("mcodm") }.fit(&two).1.stop, StopReason::Gap);
}

/// Few rows are solved as far as numbers go: what counts is what was asked for.
#[test]
fn the_tolerance_asked_for_decides() {
    for rows in [60, 150] {
        let (two, three) = (two_classes(rows), three_classes(rows));
        for machine in CONVEX.into_iter().chain(["km-omd", "mcsvm"]) {
            for kernel in [Kernel::Linear, RBF] {
                for data in [&two, &three] {
                    let (_, outcome) = Ask { kernel, tol: 1e-3, ..ask(machine) }.fit(data);
                    let gap = outcome.gap.unwrap();
                    assert_eq!(outcome.stop, StopReason::Gap, "{machine} {kernel:?} {rows} rows: {gap:e}");
                    assert!(gap <= 1e-3);
                }
            }
        }
        let rest = Ask { tol: 1e-3, ..ask("mcodm") }.fit(&three).1;
        assert_eq!(rest.stop, StopReason::Rest, "{rows} rows: {:?}", rest.gap);
    }
}

/// Rounding hides progress before the tolerance is reached: that is said, and it is no convergence.
#[test]
fn a_tolerance_beyond_rounding_is_not_reached() {
    for machine in ["svm", "odm", "ldm", "mcsvm", "km-omd"] {
        for kernel in [Kernel::Linear, RBF] {
            let (_, outcome) = Ask { kernel, tol: 1e-30, ..ask(machine) }.fit(&two_classes(150));
            if outcome.gap.unwrap() > 1e-30 {
                assert!(!outcome.stop.converged(), "{machine} {kernel:?}: {:?} {:?}", outcome.stop, outcome.gap);
            }
        }
    }
    let (_, outcome) = Ask { tol: 1e-30, ..ask("svm") }.fit(&two_classes(150));
    assert!(outcome.gap.unwrap() > 0.0 && outcome.stop == StopReason::Precision, "{:?}", outcome.stop);
}

/// The model keeps the intercept it has, so that its norm, by which margins are divided, is that of the fit.
#[test]
fn the_model_says_which_intercept_it_has() {
    let data = two_classes(40);
    for machine in MACHINES {
        for kernel in [Kernel::Linear, RBF] {
            if machine.name() == "mdo" && kernel != Kernel::Linear {
                continue;
            }
            for bias in BIASES {
                let (model, outcome) = Ask { kernel, bias, tol: 1e-6, ..ask(machine.name()) }.fit(&data);
                let context = format!("{} {kernel:?} {bias:?}", machine.name());
                let used = match (machine.name(), bias) {
                    ("msvmav" | "fmm", Bias::Free) => Bias::Feature(1.0),
                    ("mamc", Bias::Free) | ("lda" | "km-omd", Bias::Feature(_)) => Bias::None,
                    _ => bias,
                };
                assert_eq!((model.bias, model.bias_asked), (used, (used != bias).then_some(bias)), "{context}");
                let (norm, told) = (model.norm(), outcome.norm);
                assert!((norm - told).abs() <= 1e-6 * (1.0 + norm), "{context}: {norm} {told}");
                if used == Bias::None {
                    assert!(model.scorer.intercepts().iter().all(|b| *b == 0.0), "{context}");
                }
                let again = widemargin::model::Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
                assert_eq!((again.bias, again.bias_asked), (model.bias, model.bias_asked));
            }
        }
    }
}

fn refusal(result: Result<impl Sized>) -> (String, String) {
    match result {
        Err(Error::Parameter { name, value, .. }) => (name, value),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused"),
    }
}

#[test]
fn options_outside_their_domain_are_refused() {
    let data = two_classes(20);
    let poly = |degree, coef0| Kernel::Poly { gamma: 1.0, degree, coef0 };
    let cases = [
        (Ask { kernel: Kernel::Rbf { gamma: 0.0 }, ..ask("svm") }, "gamma"),
        (Ask { kernel: Kernel::Laplacian { gamma: -1.0 }, ..ask("svm") }, "gamma"),
        (Ask { kernel: Kernel::Rbf { gamma: f64::NAN }, ..ask("odm") }, "gamma"),
        (Ask { kernel: poly(0, 0.0), ..ask("odm") }, "degree"),
        (Ask { kernel: poly(70_000, 0.0), ..ask("odm") }, "degree"),
        (Ask { kernel: poly(2, f64::INFINITY), ..ask("odm") }, "coef0"),
        (Ask { bias: Bias::Feature(0.0), ..ask("svm") }, "bias"),
        (Ask { bias: Bias::Feature(f64::NAN), ..ask("fmm") }, "bias"),
        (Ask { bias: Bias::Feature(f64::INFINITY), ..ask("mcodm") }, "bias"),
        (Ask { tol: 0.0, ..ask("svm") }, "tol"),
        (Ask { tol: f64::NAN, ..ask("svm") }, "tol"),
        (Ask { tol: f64::INFINITY, ..ask("svm") }, "tol"),
        (Ask { max_iter: Some(0), ..ask("svm") }, "max_iter"),
        (Ask { solver: SolverChoice::Newton, ..ask("lda") }, "solver"),
        (Ask { solver: SolverChoice::Dcd, ..ask("msvmav") }, "solver"),
        (Ask { solver: SolverChoice::Svrg, ..ask("mcsvm") }, "solver"),
    ];
    for (ask, name) in cases {
        assert_eq!(refusal(ask.try_fit(&data, None)).0, name);
    }
}

#[test]
fn rows_that_are_no_numbers_are_refused() {
    let (mut values, labels) = noisy(20, 4, 7);
    for wrong in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        values[4 * 6 + 2] = wrong;
        for data in [dense(&values, &labels), common::sparse(&values, &labels), common::single(&values, &labels)] {
            for machine in MACHINES {
                match ask(machine.name()).try_fit(&data, None) {
                    Err(Error::Data { reason, .. }) => {
                        let found = format!("row 7, feature 3 is {wrong:e}");
                        assert!(reason.contains(&found), "{}: {reason}", machine.name());
                    }
                    other => panic!("{}: {:?}", machine.name(), other.map(|(_, outcome)| outcome.stop)),
                }
            }
        }
    }
}

/// Values whose products overflow: an error, or a fit that does not call itself converged.
#[test]
fn results_that_are_no_numbers_did_not_converge() {
    let (mut values, labels) = noisy(40, 4, 7);
    values.iter_mut().for_each(|v| *v *= 1e100);
    for machine in MACHINES {
        let Ok((_, outcome)) = (Ask { tol: 1e-3, ..ask(machine.name()) }).try_fit(&dense(&values, &labels), None)
        else {
            continue;
        };
        let finite = [outcome.norm].iter().chain(&outcome.margins).chain(&outcome.objective).all(|v| v.is_finite());
        assert!(finite || !outcome.stop.converged(), "{}: {:?} {:?}", machine.name(), outcome.stop, outcome.objective);
    }
}
