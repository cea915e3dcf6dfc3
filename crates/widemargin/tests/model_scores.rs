//! Scores of new rows: every storage agrees with the formula, whatever the width of the rows or the threads.

use widemargin::data::{Csr, Dense, Matrix, Scaling, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Parameters};
use widemargin::model::{Decision, KnownSupport, Model, ModelCertificate, Scorer};
use widemargin::problem::StopReason;
use widemargin::random::Random;

fn model(features: usize, scorer: Scorer, kernel: Kernel) -> Model {
    Model {
        machine: "svm".into(),
        parameters: Parameters::default(),
        kernel,
        bias_asked: None,
        bias: Bias::None,
        labels: (0..scorer.columns().max(2)).map(|l| l.to_string()).collect(),
        decision: if scorer.columns() == 1 { Decision::Sign } else { Decision::Largest },
        features,
        scaling: None,
        scorer,
        parts: Vec::new(),
        average: None,
        ranked: None,
        calibration: None,
        threshold: None,
        conformity: None,
        certificate: ModelCertificate {
            solver: "none".into(),
            objective: None,
            dual_objective: None,
            gap: None,
            stop: StopReason::Exact,
            iterations: 0,
            rows: 0,
            tol: None,
            dual: None,
        },
        support_rows: None,
        dual: None,
        origin: None,
        schema: None,
    }
}

/// Random rows with zeros, dense and the same sparse.
fn rows(count: usize, cols: usize, seed: u64) -> (Vec<f64>, Matrix<'static>, Matrix<'static>) {
    let mut random = Random::new(seed, 0);
    let values: Vec<f64> =
        (0..count * cols).map(|_| if random.below(3) == 0 { 0.0 } else { random.normal() }).collect();
    let (mut offsets, mut columns, mut stored) = (vec![0u64], vec![], vec![]);
    for row in values.chunks(cols) {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            columns.push(j as u32);
            stored.push(v);
        }
        offsets.push(stored.len() as u64);
    }
    let dense = Matrix::DenseF64(Dense::new(count, cols, values.clone()).unwrap());
    (values, dense, Matrix::SparseF64(Csr::new(cols, offsets, columns, stored).unwrap()))
}

fn value(kernel: Kernel, x: &[f64], z: &[f64]) -> f64 {
    let dot: f64 = x.iter().zip(z).map(|(a, b)| a * b).sum();
    match kernel {
        Kernel::Linear => dot,
        Kernel::Rbf { gamma } => (-gamma * x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp(),
        Kernel::Poly { gamma, degree, coef0 } => (gamma * dot + coef0).powi(degree as i32),
        Kernel::Sigmoid { gamma, coef0 } => (gamma * dot + coef0).tanh(),
        Kernel::Laplacian { gamma } => (-gamma * x.iter().zip(z).map(|(a, b)| (a - b).abs()).sum::<f64>()).exp(),
    }
}

#[test]
fn kernel_scores_are_the_formula() {
    let (z, dense, sparse) = rows(7, 5, 1);
    let (x, x_dense, x_sparse) = rows(600, 5, 2);
    let coefficients = vec![vec![1.0, -2.0, 0.5, 0.0, 3.0, -1.0, 0.25], vec![0.1; 7], vec![-1.0; 7]];
    let intercepts = vec![0.5, -0.25, 0.0];
    let kernels = [
        Kernel::Linear,
        Kernel::Rbf { gamma: 0.7 },
        Kernel::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
        Kernel::Sigmoid { gamma: 0.1, coef0: -0.5 },
        Kernel::Laplacian { gamma: 0.3 },
    ];
    for (kernel, support) in kernels.iter().flat_map(|k| [(*k, &dense), (*k, &sparse)]) {
        let (support, coefficients) = (support.clone(), coefficients.clone());
        let expected = |row: &[f64], l: usize| -> f64 {
            z.chunks(5).zip(&coefficients[l]).map(|(z, c)| c * value(kernel, row, z)).sum::<f64>() + intercepts[l]
        };
        let scorer = Scorer::Kernel { support, coefficients: coefficients.clone(), intercepts: intercepts.clone() };
        let (model, known) = (model(5, scorer, kernel), KnownSupport::default());
        for new in [&x_dense, &x_sparse] {
            let scores = model.scores(new).unwrap();
            assert_eq!(model.scores_here(new, &known).unwrap(), scores, "{kernel:?}");
            for (k, score) in scores.iter().enumerate() {
                let (i, l) = (k / 3, k % 3);
                let expected = expected(&x[i * 5..i * 5 + 5], l);
                assert!((score - expected).abs() <= 1e-10 * (1.0 + expected.abs()), "{kernel:?} {score} {expected}");
            }
        }
    }
}

#[test]
fn few_rows_score_on_the_calling_thread_as_elsewhere() {
    let (_, dense, sparse) = rows(300, 4, 5);
    for width in [2, 4, 6] {
        let weights = vec![vec![0.5; width], vec![-1.5; width]];
        let mut model = model(width, Scorer::Linear { weights, intercepts: vec![0.1, 0.2] }, Kernel::Linear);
        for x in [&dense, &sparse] {
            for scaling in [
                None,
                Some(Scaling {
                    kind: ScalingKind::MaxAbs,
                    shift: vec![0.0; width],
                    factor: vec![0.7; width],
                    ranks: None,
                }),
            ] {
                model.scaling = scaling;
                assert_eq!(model.scores_here(x, &KnownSupport::default()).unwrap(), model.scores(x).unwrap());
            }
        }
        assert!(model.is_little(&dense));
        assert!(!model.is_little(&rows(300_000, 2, 6).1));
    }
}

#[test]
fn extra_columns_are_ignored_and_missing_ones_are_zero() {
    let linear =
        |w: &[f64]| model(w.len(), Scorer::Linear { weights: vec![w.to_vec()], intercepts: vec![0.0] }, Kernel::Linear);
    let (values, dense, sparse) = rows(300, 4, 3);
    for x in [&dense, &sparse] {
        let narrow = linear(&[1.0, 2.0]).scores(x).unwrap();
        let wide = linear(&[1.0, 2.0, 0.0, 0.0, 5.0, 6.0]).scores(x).unwrap();
        for (i, row) in values.chunks(4).enumerate() {
            assert!((narrow[i] - (row[0] + 2.0 * row[1])).abs() < 1e-12);
            assert!((wide[i] - narrow[i]).abs() < 1e-12);
        }
    }
}

#[test]
fn the_scaling_is_applied_to_missing_columns_too() {
    let mut model = model(2, Scorer::Linear { weights: vec![vec![1.0, 1.0]], intercepts: vec![0.0] }, Kernel::Linear);
    model.scaling =
        Some(Scaling { kind: ScalingKind::Standard, shift: vec![1.0, 10.0], factor: vec![2.0, 0.5], ranks: None });
    let x = Matrix::DenseF64(Dense::new(1, 1, vec![4.0]).unwrap());
    assert_eq!(model.scores(&x).unwrap(), vec![6.0 - 5.0]);
}

#[test]
fn ties_go_to_the_smaller_label() {
    let sign = model(1, Scorer::Linear { weights: vec![vec![1.0]], intercepts: vec![0.0] }, Kernel::Linear);
    let x = Matrix::DenseF64(Dense::new(3, 1, vec![0.0, 1.0, -1.0]).unwrap());
    assert_eq!(sign.predict(&x).unwrap(), vec![0, 1, 0]);
    let weights = vec![vec![1.0], vec![1.0], vec![-1.0]];
    let largest = model(1, Scorer::Linear { weights, intercepts: vec![0.0; 3] }, Kernel::Linear);
    assert_eq!(largest.predict(&x).unwrap(), vec![0, 0, 2]);
}

#[test]
fn scores_do_not_depend_on_the_threads() {
    let (_, support, _) = rows(40, 6, 4);
    let (_, x, _) = rows(2000, 6, 5);
    let scorer = Scorer::Kernel { support, coefficients: vec![vec![0.3; 40]], intercepts: vec![0.0] };
    let model = model(6, scorer, Kernel::Rbf { gamma: 0.2 });
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| model.scores(&x).unwrap())
    };
    assert_eq!(with(1), with(3));
}
