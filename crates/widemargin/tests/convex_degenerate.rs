//! Data that are no good: every machine must converge or say why not, never fail or hand out nonsense.

mod common;
use common::{Ask, BIASES, CONVEX, ask, dense, noisy, sparse};
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::machine::SolverChoice;

fn survives(data: &Dataset, what: &str) {
    for machine in CONVEX {
        for bias in BIASES {
            for (kernel, solver) in [
                (Kernel::Linear, SolverChoice::Auto),
                (Kernel::Linear, SolverChoice::Dcd),
                (Kernel::Rbf { gamma: 0.5 }, SolverChoice::Auto),
                (Kernel::Rbf { gamma: 0.5 }, SolverChoice::Dcd),
                (Kernel::Laplacian { gamma: 0.5 }, SolverChoice::Auto),
            ] {
                let ask = Ask { bias, kernel, solver, tol: 1e-3, ..ask(machine) };
                let context = format!("{what}: {machine} {bias:?} {kernel:?} {solver:?}");
                let (model, outcome) = ask.try_fit(data, None).unwrap_or_else(|e| panic!("{context}: {e}"));
                assert!(outcome.margins.iter().all(|g| g.is_finite()), "{context}");
                let gap = outcome.gap.unwrap();
                assert!(outcome.stop.converged() && gap <= 1e-3, "{context}: gap {gap:e}, {:?}", outcome.stop);
                assert!(model.scores(&data.rows).unwrap().iter().all(|f| f.is_finite()), "{context}");
            }
        }
    }
}

#[test]
fn two_rows() {
    survives(&dense(&[1.0, 0.0, 0.0, 1.0], &["a", "b"]), "two rows");
    survives(&dense(&[1.0, 1.0], &["a", "b"]), "two equal rows of different classes");
}

#[test]
fn only_zeros() {
    survives(&dense(&[0.0; 12], &["a", "b", "a", "b"]), "zero rows");
    survives(&sparse(&[0.0; 12], &["a", "b", "a", "a"]), "sparse zero rows");
}

#[test]
fn contradicting_labels_and_duplicates() {
    let (values, _) = noisy(10, 3, 1);
    let twice = [values.clone(), values].concat();
    let labels: Vec<&str> = (0..20).map(|i| if (i < 10) == (i % 3 == 0) { "a" } else { "b" }).collect();
    survives(&dense(&twice, &labels), "contradictions");
}

#[test]
fn constant_features() {
    let (mut values, labels) = noisy(30, 4, 2);
    values.chunks_mut(4).for_each(|row| row[2] = 5.0);
    survives(&dense(&values, &labels), "a constant feature");
}

#[test]
fn more_features_than_rows() {
    let (values, labels) = noisy(8, 50, 3);
    survives(&sparse(&values, &labels), "wide");
}

#[test]
fn one_against_many() {
    let (values, _) = noisy(40, 3, 4);
    let labels: Vec<&str> = (0..40).map(|i| if i == 5 { "rare" } else { "usual" }).collect();
    survives(&dense(&values, &labels), "one row of a class");
}

#[test]
fn badly_scaled_features() {
    let (mut values, labels) = noisy(60, 4, 5);
    values.chunks_mut(4).for_each(|row| {
        row[0] *= 1e4;
        row[1] *= 1e-4;
        row[2] += 300.0;
    });
    for machine in CONVEX {
        for bias in BIASES {
            let ask = Ask { bias, tol: 1e-3, ..ask(machine) };
            let (_, outcome) = ask.fit(&dense(&values, &labels));
            assert!(outcome.stop.converged(), "{machine} {bias:?}: {:?} {}", outcome.gap, outcome.solver);
        }
    }
}

#[test]
fn sigmoid_kernel_gives_a_model_without_a_certificate_or_says_why_not() {
    let (values, labels) = noisy(50, 4, 6);
    let fit = |machine, coef0| {
        let kernel = Kernel::Sigmoid { gamma: 0.1, coef0 };
        Ask { kernel, tol: 1e-3, ..ask(machine) }.try_fit(&dense(&values, &labels), None)
    };
    for (machine, coef0) in [("svm", -0.2), ("svm", 0.2), ("odm", 0.2)] {
        let (_, outcome) = fit(machine, coef0).unwrap();
        assert!(outcome.gap.is_none());
        assert!(outcome.margins.iter().all(|g| g.is_finite()));
    }
    match fit("odm", -0.2) {
        Ok((_, outcome)) => assert!(outcome.gap.is_none() && outcome.margins.iter().all(|g| g.is_finite())),
        Err(error) => assert!(error.to_string().contains("positive semidefinite"), "{error}"),
    }
}
