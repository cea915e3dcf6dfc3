//! Small problems and short ways to fit them, shared by the tests.
#![allow(dead_code)]

use widemargin::Result;
use widemargin::data::{Csr, Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Outcome, SolverChoice, Value, check_parameters, machine};
use widemargin::model::{Model, Scorer};
use widemargin::random::Random;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};

/// Two noisy, overlapping classes: `m` rows, `d` features, about half of them zero.
pub fn noisy(m: usize, d: usize, seed: u64) -> (Vec<f64>, Vec<&'static str>) {
    let mut random = Random::new(seed, 1);
    let direction: Vec<f64> = (0..d).map(|_| random.normal()).collect();
    let (mut values, mut labels) = (Vec::with_capacity(m * d), Vec::with_capacity(m));
    for _ in 0..m {
        let row: Vec<f64> = (0..d).map(|_| if random.unit() < 0.5 { 0.0 } else { random.normal() }).collect();
        let score: f64 = row.iter().zip(&direction).map(|(x, w)| x * w).sum();
        labels.push(if score + random.normal() + 0.3 > 0.0 { "yes" } else { "no" });
        values.extend(row);
    }
    (labels[0], labels[1]) = ("yes", "no");
    (values, labels)
}

pub fn dense(values: &[f64], labels: &[&str]) -> Dataset {
    let m = labels.len();
    let rows = Matrix::DenseF64(Dense::new(m, values.len() / m, values.to_vec()).unwrap());
    Dataset::new("test", rows, Some(Labels::new(labels)))
}

pub fn single(values: &[f64], labels: &[&str]) -> Dataset {
    let m = labels.len();
    let values32: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    let rows = Matrix::DenseF32(Dense::new(m, values.len() / m, values32).unwrap());
    Dataset { rows, ..dense(values, labels) }
}

pub fn sparse(values: &[f64], labels: &[&str]) -> Dataset {
    let d = values.len() / labels.len();
    let (mut offsets, mut columns, mut stored) = (vec![0u64], Vec::new(), Vec::new());
    for row in values.chunks(d) {
        for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
            columns.push(j as u32);
            stored.push(v);
        }
        offsets.push(stored.len() as u64);
    }
    let rows = Matrix::SparseF64(Csr::new(d, offsets, columns, stored).unwrap());
    Dataset { rows, ..dense(values, labels) }
}

/// What to fit, with defaults that a test changes where it cares.
#[derive(Clone)]
pub struct Ask {
    pub machine: &'static str,
    pub parameters: Vec<(&'static str, f64)>,
    pub kernel: Kernel,
    pub bias: Bias,
    pub solver: SolverChoice,
    pub tol: f64,
    pub class_weight: ClassWeight,
    pub max_iter: Option<usize>,
}

pub fn ask(machine: &'static str) -> Ask {
    Ask {
        machine,
        parameters: Vec::new(),
        kernel: Kernel::Linear,
        bias: Bias::Free,
        solver: SolverChoice::Auto,
        tol: 1e-9,
        class_weight: ClassWeight::Equal,
        max_iter: None,
    }
}

impl Ask {
    pub fn options(&self) -> TrainOptions {
        let machine = machine(self.machine).unwrap();
        let given: Vec<_> = self.parameters.iter().map(|(k, v)| (k.to_string(), Value::from(*v))).collect();
        let gamma = match self.kernel {
            Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => gamma,
            Kernel::Poly { gamma, .. } | Kernel::Sigmoid { gamma, .. } => gamma,
            Kernel::Linear => 1.0,
        };
        TrainOptions {
            approx: None,
            machine,
            parameters: check_parameters(machine, &given).unwrap(),
            kernel: self.kernel,
            gamma: Gamma::Value(gamma),
            bias: self.bias,
            scaling: None,
            class_weight: self.class_weight.clone(),
            multiclass: None,
            solver: self.solver,
            settings: Settings { tol: self.tol, max_iter: self.max_iter, ..Settings::default() },
        }
    }

    pub fn try_fit(&self, data: &Dataset, weights: Option<&[f64]>) -> Result<(Model, Outcome)> {
        train(data, weights, &self.options(), Default::default())
    }

    pub fn fit(&self, data: &Dataset) -> (Model, Outcome) {
        self.try_fit(data, None).unwrap_or_else(|e| panic!("{}: {e}", self.machine))
    }
}

/// The weight vector of a linear two-class model, intercept last.
pub fn weights(model: &Model) -> Vec<f64> {
    match &model.scorer {
        Scorer::Linear { weights, intercepts } => [weights[0].clone(), intercepts.clone()].concat(),
        Scorer::Kernel { .. } => panic!("a linear model"),
    }
}

pub fn furthest(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

pub const CONVEX: [&str; 8] = ["odm", "ldm", "odm-l", "svm", "l2svm", "lssvm", "svr", "huber-svm"];
pub const BIASES: [Bias; 3] = [Bias::None, Bias::Feature(0.7), Bias::Free];
