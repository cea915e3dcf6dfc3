//! What the tests of the multi-class machines share.
#![allow(dead_code)]

use widemargin::Result;
use widemargin::control::Control;
use widemargin::data::{Csr, Dense, Matrix};
use widemargin::kernel::{Kernel, KernelRows};
use widemargin::machine::{
    Bias, Fit, Parameters, ScoreFunctions, SolverChoice, Training, Value, check_parameters, machine,
};
use widemargin::random::Random;
use widemargin::solver::{Settings, Workspace};

pub fn dense(rows: &[Vec<f64>]) -> Matrix<'static> {
    let d = rows.first().map_or(0, Vec::len);
    Matrix::DenseF64(Dense::new(rows.len(), d, rows.concat()).unwrap())
}

pub fn sparse(rows: &[Vec<f64>]) -> Matrix<'static> {
    let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
    for row in rows {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            columns.push(j as u32);
            values.push(v);
        }
        offsets.push(values.len() as u64);
    }
    Matrix::SparseF64(Csr::new(rows[0].len(), offsets, columns, values).unwrap())
}

pub fn list(given: &[(&str, &str)]) -> Vec<(String, Value)> {
    given.iter().map(|(n, v)| (n.to_string(), Value::from(*v))).collect()
}

pub fn fit(
    name: &str,
    given: &[(String, Value)],
    rows: &Matrix<'_>,
    codes: &[u32],
    kernel: Kernel,
    bias: Bias,
    tol: f64,
) -> Result<Fit> {
    fit_weighted(name, given, rows, codes, &vec![1.0; codes.len()], kernel, bias, tol)
}

#[allow(clippy::too_many_arguments)]
pub fn fit_weighted(
    name: &str,
    given: &[(String, Value)],
    rows: &Matrix<'_>,
    codes: &[u32],
    weights: &[f64],
    kernel: Kernel,
    bias: Bias,
    tol: f64,
) -> Result<Fit> {
    let parameters = check_parameters(machine(name)?, given)?;
    fit_within(name, &parameters, rows, codes, weights, kernel, bias, Settings { tol, ..Settings::default() })
}

/// With little memory, say.
#[allow(clippy::too_many_arguments)]
pub fn fit_within(
    name: &str,
    parameters: &Parameters,
    rows: &Matrix<'_>,
    codes: &[u32],
    weights: &[f64],
    kernel: Kernel,
    bias: Bias,
    settings: Settings,
) -> Result<Fit> {
    let machine = machine(name)?;
    let workspace = Workspace::new(rows, kernel, settings);
    let training = Training {
        workspace: &workspace,
        classes: *codes.iter().max().unwrap() as usize + 1,
        codes,
        weights,
        parameters,
        span: None,
        bias,
        solver: SolverChoice::Auto,
        start: &widemargin::solver::Start::default(),
        settings,
        control: Control::default(),
    };
    machine.fit(&training)
}

/// Scores of `test`, one vector a row.
pub fn scores(expansion: &ScoreFunctions, train: &[Vec<f64>], test: &[Vec<f64>], kernel: Kernel) -> Vec<Vec<f64>> {
    match expansion {
        ScoreFunctions::Linear { weights, intercepts } => test
            .iter()
            .map(|x| {
                let score = |w: &Vec<f64>| w.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
                weights.iter().zip(intercepts).map(|(w, b)| score(w) + b).collect()
            })
            .collect(),
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            let (train, test) = (dense(train), dense(test));
            let (train, test) = (KernelRows::new(kernel, &train, 0.0), KernelRows::new(kernel, &test, 0.0));
            let raw = train.expand(&test, coefficients, Default::default()).unwrap();
            raw.chunks(intercepts.len()).map(|s| s.iter().zip(intercepts).map(|(s, b)| s + b).collect()).collect()
        }
    }
}

/// `k` overlapping clouds in `d` dimensions.
pub fn clouds(m: usize, d: usize, k: usize, spread: f64, seed: u64) -> (Vec<Vec<f64>>, Vec<u32>) {
    let mut random = Random::new(seed, 0);
    let centres: Vec<Vec<f64>> = (0..k).map(|_| (0..d).map(|_| random.normal()).collect()).collect();
    let codes: Vec<u32> = (0..m).map(|i| (i % k) as u32).collect();
    let rows = codes.iter().map(|&c| centres[c as usize].iter().map(|v| v + spread * random.normal()).collect());
    (rows.collect(), codes)
}
