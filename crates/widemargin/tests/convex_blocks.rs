//! Block descent over kernel rows, and landmark rows in place of all: held against Newton's method on the kernel matrix.

mod common;

use common::{Ask, ask, dense, noisy, sparse};
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Outcome, SolverChoice};
use widemargin::model::{Model, Scorer};
use widemargin::problem::StopReason;
use widemargin::train::train;

/// More rows than one block and than a start from nothing takes.
const ROWS: usize = 2200;

fn by_blocks(machine: &'static str, bias: Bias) -> Ask {
    Ask { kernel: Kernel::Rbf { gamma: 0.2 }, bias, tol: 1e-3, solver: SolverChoice::Dcd, ..ask(machine) }
}

fn fit_within(ask: &Ask, data: &Dataset, memory: u64) -> (Model, Outcome) {
    let mut options = ask.options();
    options.settings.memory = memory;
    train(data, None, &options, Default::default()).unwrap()
}

/// The optimum lies between dual and primal objective of both.
fn assert_same_optimum(a: &Outcome, b: &Outcome) {
    let bounds = |o: &Outcome| (o.dual_objective.unwrap(), o.objective.unwrap());
    let (a, b) = (bounds(a), bounds(b));
    let slack = 1e-6 * (1.0 + a.1.abs());
    assert!(a.0 <= b.1 + slack && b.0 <= a.1 + slack, "{a:?} {b:?}");
}

#[test]
fn every_machine_and_intercept_reaches_newtons_optimum() {
    let (values, labels) = noisy(ROWS, 5, 11);
    let data = dense(&values, &labels);
    let cases = [
        ("svm", Bias::Free),
        ("svm", Bias::None),
        ("svm", Bias::Feature(0.5)),
        ("ldm", Bias::Free),
        ("odm", Bias::Free),
        ("l2svm", Bias::None),
        ("svr", Bias::Free),
    ];
    for (machine, bias) in cases {
        let ask = by_blocks(machine, bias);
        let (model, found) = ask.fit(&data);
        assert!(found.solver.starts_with("dcd ("), "{machine}: {}", found.solver);
        assert!(found.gap.unwrap() <= 1e-3 && found.stop == StopReason::Gap, "{machine} {bias:?}: {:?}", found.gap);
        let (_, exact) = Ask { solver: SolverChoice::Newton, tol: 1e-6, ..ask }.fit(&data);
        assert_same_optimum(&found, &exact);
        // What single precision was told of the margins is what the model says in double precision.
        let scores = model.scores(&data.rows).unwrap();
        let margins = model.margins(&scores, data.labels.as_ref().unwrap());
        let close = |(a, b): (&Option<f64>, &f64)| (a.unwrap() - b).abs() < 1e-4;
        assert!(margins.iter().zip(&found.margins).all(close), "{machine} {bias:?}");
        if let (Scorer::Kernel { coefficients, .. }, Bias::Free) = (&model.scorer, bias) {
            let size: f64 = coefficients[0].iter().map(|c| c.abs()).sum();
            assert!(coefficients[0].iter().sum::<f64>().abs() <= 1e-9 * size, "{machine}");
        }
    }
}

#[test]
fn more_rows_between_their_bounds_than_a_block_holds() {
    // Blocks that only took turns would need thousands here: descent has to go on along the valley.
    let (values, labels) = noisy(3000, 20, 13);
    let data = dense(&values, &labels);
    for bias in [Bias::Free, Bias::None, Bias::Feature(1.0)] {
        for (tol, most) in [(1e-3, 300), (1e-6, 1000)] {
            let kernel = Kernel::Rbf { gamma: 0.01 };
            let ask = Ask { kernel, tol, parameters: vec![("c", 300.0)], ..by_blocks("svm", bias) };
            let (_, found) = ask.fit(&data);
            let (gap, blocks) = (found.gap.unwrap(), found.iterations);
            assert!(
                found.stop == StopReason::Gap && gap <= tol && blocks <= most,
                "{bias:?} {tol:e}: {gap:e} in {blocks}"
            );
        }
    }
}

#[test]
fn little_memory_sparse_rows_and_threads_change_nothing_that_matters() {
    let (values, labels) = noisy(ROWS, 5, 12);
    let (data, thin) = (dense(&values, &labels), sparse(&values, &labels));
    let ask = by_blocks("svm", Bias::Free);
    let (_, found) = ask.fit(&data);
    for data in [&data, &thin] {
        let (_, little) = fit_within(&ask, data, 300 * ROWS as u64 * 4);
        assert!(little.gap.unwrap() <= 1e-3);
        assert_same_optimum(&found, &little);
    }
    let bytes = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ask.fit(&data).0.to_bytes().unwrap())
    });
    assert!(bytes[0] == bytes[1]);
}

#[test]
fn landmark_rows_bound_the_optimum_from_above_and_meet_it() {
    let (values, labels) = noisy(500, 3, 13);
    let data = dense(&values, &labels);
    for (machine, bias) in [("svm", Bias::Free), ("odm", Bias::Feature(1.0)), ("ldm", Bias::None)] {
        let ask = Ask { solver: SolverChoice::Auto, tol: 1e-7, ..by_blocks(machine, bias) };
        let (_, exact) = ask.fit(&data);
        let mut before = f64::INFINITY;
        for rank in [10, 60, 500] {
            let mut options = ask.options();
            options.approx = Some(rank);
            let (model, found) = train(&data, None, &options, Default::default()).unwrap();
            assert!(model.scorer.support().unwrap() <= rank && found.solver.contains("landmark rows"));
            let objective = found.objective.unwrap();
            assert!(objective >= exact.dual_objective.unwrap() * (1.0 - 1e-6), "{machine} {rank}");
            let left_out = found.extras.iter().find(|(name, _)| *name == "kernel_left_out").unwrap().1;
            assert!(left_out < before, "{machine} {rank}: {left_out}");
            before = left_out;
            let scores = model.scores(&data.rows).unwrap();
            let margins = model.margins(&scores, data.labels.as_ref().unwrap());
            assert!(margins.iter().zip(&found.margins).all(|(a, b)| (a.unwrap() - b).abs() < 1e-5), "{machine} {rank}");
            if rank == 500 {
                assert!((objective / exact.objective.unwrap() - 1.0).abs() < 1e-4, "{machine}: {objective}");
            }
        }
    }
}
