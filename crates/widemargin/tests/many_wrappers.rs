//! One-against-all, pairs and codes over two-class machines.

mod many_common;

use many_common::{clouds, dense, fit, list, scores};
use std::sync::atomic::AtomicBool;
use widemargin::control::Control;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Fit, ScoreFunctions, SolverChoice, Training, check_parameters, machine};
use widemargin::model::Decision;
use widemargin::multiclass::{self, Multiclass};
use widemargin::solver::{Settings, Workspace};
use widemargin::{Error, Result};

fn wrapped(
    mode: Multiclass,
    name: &str,
    rows: &[Vec<f64>],
    codes: &[u32],
    kernel: Kernel,
    stop: &AtomicBool,
) -> Result<(Fit, Decision)> {
    let machine = machine(name)?;
    let parameters = check_parameters(machine, &[])?;
    let rows = dense(rows);
    let settings = Settings { tol: 1e-6, ..Settings::default() };
    let workspace = Workspace::new(&rows, kernel, settings);
    let training = Training {
        workspace: &workspace,
        classes: *codes.iter().max().unwrap() as usize + 1,
        codes,
        weights: &vec![1.0; codes.len()],
        parameters: &parameters,
        span: None,
        bias: Bias::Free,
        solver: SolverChoice::Auto,
        start: &widemargin::solver::Start::default(),
        settings,
        control: Control { stop: Some(stop), observer: None },
    };
    multiclass::fit(mode, machine, &training)
}

static RUN: AtomicBool = AtomicBool::new(false);

fn columns(expansion: &ScoreFunctions) -> (&Vec<Vec<f64>>, &Vec<f64>) {
    match expansion {
        ScoreFunctions::Linear { weights, intercepts } => (weights, intercepts),
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => (coefficients, intercepts),
    }
}

#[test]
fn one_against_all_is_a_fit_a_class() {
    let (rows, codes) = clouds(90, 4, 3, 0.7, 1);
    for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.4 }] {
        for name in ["odm", "svm"] {
            let (found, decision) = wrapped(Multiclass::Ova, name, &rows, &codes, kernel, &RUN).unwrap();
            assert_eq!(decision, Decision::Largest);
            let mut sum = 0.0;
            for l in 0..3 {
                let split: Vec<u32> = codes.iter().map(|&c| u32::from(c == l)).collect();
                let one = fit(name, &[], &dense(&rows), &split, kernel, Bias::Free, 1e-6).unwrap();
                assert_eq!(columns(&one.functions).0[0], columns(&found.functions).0[l as usize]);
                assert_eq!(columns(&one.functions).1[0], columns(&found.functions).1[l as usize]);
                sum += one.outcome.objective.unwrap();
            }
            assert!((found.outcome.objective.unwrap() - sum).abs() < 1e-9 * sum);
            assert!(found.outcome.gap.unwrap() <= 1e-6);
            assert!(found.outcome.solver.starts_with("ova of 3 × "), "{}", found.outcome.solver);
            check_margins(&found, &decision, &rows, &codes, kernel);
        }
    }
}

fn check_margins(found: &Fit, decision: &Decision, rows: &[Vec<f64>], codes: &[u32], kernel: Kernel) {
    for (i, raw) in scores(&found.functions, rows, rows, kernel).iter().enumerate() {
        let (scores, y) = (decision.class_scores(raw), codes[i] as usize);
        let rival = (0..scores.len()).filter(|l| *l != y).map(|l| scores[l]).fold(f64::NEG_INFINITY, f64::max);
        assert!((scores[y] - rival - found.outcome.margins[i]).abs() < 1e-9);
        if scores[y] > rival {
            assert_eq!(decision.class(raw) as usize, y);
        }
    }
}

#[test]
fn pairs_are_fits_on_two_classes() {
    let (rows, codes) = clouds(120, 4, 4, 0.7, 2);
    for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.4 }] {
        let (found, decision) = wrapped(Multiclass::Ovo, "odm", &rows, &codes, kernel, &RUN).unwrap();
        assert_eq!(decision, Decision::Pairs);
        let all = scores(&found.functions, &rows, &rows, kernel);
        let mut column = 0;
        for a in 0..4 {
            for b in a + 1..4 {
                let chosen: Vec<usize> = (0..codes.len()).filter(|&i| codes[i] == a || codes[i] == b).collect();
                let some: Vec<Vec<f64>> = chosen.iter().map(|&i| rows[i].clone()).collect();
                let split: Vec<u32> = chosen.iter().map(|&i| u32::from(codes[i] == b)).collect();
                let one = fit("odm", &[], &dense(&some), &split, kernel, Bias::Free, 1e-6).unwrap();
                for (all, one) in all.iter().zip(scores(&one.functions, &some, &rows, kernel)) {
                    assert!((all[column] - one[0]).abs() < 1e-9);
                }
                column += 1;
            }
        }
        check_margins(&found, &decision, &rows, &codes, kernel);
        let errors = found.outcome.margins.iter().filter(|g| **g <= 0.0).count();
        assert!(errors < 40, "{errors} errors");
    }
}

#[test]
fn codes_have_every_split_once_and_refuse_too_many_classes() {
    let (rows, codes) = clouds(100, 4, 4, 0.6, 3);
    let (found, decision) = wrapped(Multiclass::Ecoc, "odm", &rows, &codes, Kernel::Linear, &RUN).unwrap();
    assert_eq!((decision.clone(), columns(&found.functions).0.len()), (Decision::Codes, 7));
    check_margins(&found, &decision, &rows, &codes, Kernel::Linear);
    let (rows, codes) = clouds(64, 2, 16, 0.5, 4);
    let refused = wrapped(Multiclass::Ecoc, "odm", &rows, &codes, Kernel::Linear, &RUN);
    assert!(matches!(refused, Err(Error::Conflict { reason, .. }) if reason.contains("16 classes")));
}

#[test]
fn machines_take_the_classes_they_say() {
    let (rows, codes) = clouds(60, 4, 3, 0.7, 5);
    let own = |name| wrapped(Multiclass::Own, name, &rows, &codes, Kernel::Linear, &RUN);
    assert!(matches!(own("odm"), Err(Error::Conflict { .. })));
    assert_eq!(own("mcsvm").unwrap().1, Decision::Largest);
    // A machine of many classes inside a wrapper gives one column a problem.
    let (inside, _) = wrapped(Multiclass::Ova, "mcsvm", &rows, &codes, Kernel::Linear, &RUN).unwrap();
    assert_eq!(columns(&inside.functions).0.len(), 3);
    let (rows, codes) = clouds(60, 4, 2, 0.7, 5);
    assert_eq!(wrapped(Multiclass::Ova, "odm", &rows, &codes, Kernel::Linear, &RUN).unwrap().1, Decision::Sign);
    assert_eq!(wrapped(Multiclass::Own, "mcodm", &rows, &codes, Kernel::Linear, &RUN).unwrap().1, Decision::Largest);
}

#[test]
fn a_stop_is_heard() {
    let (rows, codes) = clouds(60, 4, 3, 0.7, 6);
    let stop = AtomicBool::new(true);
    for mode in [Multiclass::Own, Multiclass::Ova] {
        let result = wrapped(mode, "mcodm", &rows, &codes, Kernel::Linear, &stop);
        assert!(matches!(result, Err(Error::Interrupted)));
    }
}

#[test]
fn unused_parameters_are_refused() {
    assert!(check_parameters(machine("mcodm").unwrap(), &list(&[("relaxation", "other")])).is_err());
    assert!(check_parameters(machine("mcodm").unwrap(), &list(&[("theta", "1")])).is_err());
    assert!(check_parameters(machine("mcsvm").unwrap(), &list(&[("loss", "hinge")])).is_err());
}
