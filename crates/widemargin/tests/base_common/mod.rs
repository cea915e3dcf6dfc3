//! What the tests of these machines share: rows from lists, fits by name, random two-class data.
#![allow(dead_code)]

use widemargin::Result;
use widemargin::control::Control;
use widemargin::data::{Csr, Dense, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Fit, ScoreFunctions, SolverChoice, Training, Value, check_parameters, machine};
use widemargin::random::Random;
use widemargin::solver::{Settings, Start, Workspace};

/// A two-class training set.
#[derive(Clone)]
pub struct Set {
    pub x: Vec<Vec<f64>>,
    pub y: Vec<f64>,
    pub s: Vec<f64>,
    pub kernel: Kernel,
    pub bias: Bias,
    pub settings: Settings,
}

impl Set {
    pub fn new(x: Vec<Vec<f64>>, y: Vec<f64>) -> Self {
        let s = vec![1.0; y.len()];
        let settings = Settings { tol: 1e-9, ..Settings::default() };
        Self { x, y, s, kernel: Kernel::Linear, bias: Bias::None, settings }
    }

    /// Two overlapping clouds.
    pub fn clouds(m: usize, d: usize, distance: f64, seed: u64) -> Self {
        let mut random = Random::new(seed, 0);
        let y: Vec<f64> = (0..m).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let row = |y: &f64| (0..d).map(|j| random.normal() + if j < 2 { y * distance } else { 0.3 }).collect();
        let x = y.iter().map(row).collect();
        Self::new(x, y)
    }

    pub fn dense(&self) -> Matrix<'static> {
        let cols = self.x.first().map_or(0, Vec::len);
        Matrix::DenseF64(Dense::new(self.x.len(), cols, self.x.concat()).unwrap())
    }

    pub fn sparse(&self) -> Matrix<'static> {
        let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
        for row in &self.x {
            for (j, &v) in row.iter().enumerate().filter(|(_, v)| **v != 0.0) {
                columns.push(j as u32);
                values.push(v);
            }
            offsets.push(values.len() as u64);
        }
        Matrix::SparseF64(Csr::new(self.x[0].len(), offsets, columns, values).unwrap())
    }

    pub fn fit(&self, name: &str, parameters: &[(&str, f64)]) -> Result<Fit> {
        self.fit_rows(&self.dense(), name, parameters)
    }

    pub fn fit_rows(&self, rows: &Matrix<'_>, name: &str, parameters: &[(&str, f64)]) -> Result<Fit> {
        let machine = machine(name)?;
        let given: Vec<_> = parameters.iter().map(|(n, v)| (n.to_string(), Value::from(*v))).collect();
        let parameters = check_parameters(machine, &given)?;
        let codes: Vec<u32> = self.y.iter().map(|&y| u32::from(y > 0.0)).collect();
        let workspace = Workspace::new(rows, self.kernel, self.settings);
        machine.fit(&Training {
            workspace: &workspace,
            classes: 2,
            codes: &codes,
            weights: &self.s,
            parameters: &parameters,
            span: None,
            bias: self.bias,
            solver: SolverChoice::Auto,
            start: &Start::default(),
            settings: self.settings,
            control: Control::default(),
        })
    }

    /// Each row as often as its weight says.
    pub fn repeated(&self) -> Self {
        let mut other = Self { x: Vec::new(), y: Vec::new(), s: Vec::new(), ..self.clone() };
        for ((x, &y), &s) in self.x.iter().zip(&self.y).zip(&self.s) {
            for _ in 0..s as usize {
                other.x.push(x.clone());
                other.y.push(y);
                other.s.push(1.0);
            }
        }
        other
    }
}

/// `f(x)` of a fit.
pub fn score(set: &Set, fit: &Fit, x: &[f64]) -> f64 {
    match &fit.functions {
        ScoreFunctions::Linear { weights, intercepts } => dot(&weights[0], x) + intercepts[0],
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => {
            set.x.iter().zip(&coefficients[0]).map(|(z, c)| c * kernel(set.kernel, x, z)).sum::<f64>() + intercepts[0]
        }
    }
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub fn kernel(kernel: Kernel, x: &[f64], z: &[f64]) -> f64 {
    match kernel {
        Kernel::Linear => dot(x, z),
        Kernel::Rbf { gamma } => (-gamma * x.iter().zip(z).map(|(a, b)| (a - b).powi(2)).sum::<f64>()).exp(),
        other => panic!("no formula for the {} kernel here", other.name()),
    }
}

pub fn weights(fit: &Fit) -> (&[f64], f64) {
    match &fit.functions {
        ScoreFunctions::Linear { weights, intercepts } => (&weights[0], intercepts[0]),
        ScoreFunctions::Kernel { coefficients, intercepts, .. } => (&coefficients[0], intercepts[0]),
    }
}

/// Data that breaks careless programs, by name.
pub fn hard_cases() -> Vec<(&'static str, Set)> {
    let set = |x: &[&[f64]], y: &[f64]| Set::new(x.iter().map(|r| r.to_vec()).collect(), y.to_vec());
    vec![
        ("two rows", set(&[&[1.0, 2.0], &[-1.0, 0.5]], &[1.0, -1.0])),
        ("two equal rows, opposite labels", set(&[&[1.0, 2.0], &[1.0, 2.0]], &[1.0, -1.0])),
        ("all zero", set(&[&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0]], &[1.0, -1.0, 1.0])),
        ("a zero row", set(&[&[0.0, 0.0], &[1.0, 0.0], &[-1.0, 0.3]], &[1.0, 1.0, -1.0])),
        ("constant feature", set(&[&[5.0, 1.0], &[5.0, -1.0], &[5.0, 2.0]], &[1.0, -1.0, 1.0])),
        ("all rows equal", set(&[&[3.0, 1.0] as &[f64]; 4], &[1.0, -1.0, 1.0, 1.0])),
        ("duplicates", set(&[&[1.0, 1.0], &[1.0, 1.0], &[-1.0, 0.0], &[-1.0, 0.0]], &[1.0, 1.0, -1.0, -1.0])),
        ("contradictions", set(&[&[1.0], &[1.0], &[-1.0], &[-1.0]], &[1.0, -1.0, 1.0, -1.0])),
        ("one positive", set(&[&[1.0], &[0.9], &[0.8], &[0.7], &[0.6]], &[1.0, -1.0, -1.0, -1.0, -1.0])),
        ("wide", set(&[&[1.0, 0.0, 2.0, 1.0, 0.0, 1.0], &[0.0, 1.0, 0.0, 1.0, 2.0, 0.0]], &[1.0, -1.0])),
        ("large and small", set(&[&[1e6, 1e-6], &[-1e6, 2e-6], &[1e5, -1e-6]], &[1.0, -1.0, 1.0])),
    ]
}

/// Trains on every hard case, with every intercept, and checks that all numbers are finite.
pub fn survives(name: &str, kernels: &[Kernel]) {
    for (case, set) in hard_cases() {
        for &kernel in kernels {
            for bias in [Bias::None, Bias::Feature(1.0), Bias::Free] {
                let set = Set { kernel, bias, ..set.clone() };
                for rows in [set.dense(), set.sparse()] {
                    let fit =
                        set.fit_rows(&rows, name, &[]).unwrap_or_else(|e| panic!("{name}, {case}, {kernel:?}: {e}"));
                    let (w, b) = weights(&fit);
                    let (o, at) = (&fit.outcome, format!("{name}, {case}, {kernel:?}, {bias:?}"));
                    assert!(w.iter().chain(&o.margins).all(|v| v.is_finite()) && b.is_finite(), "{at}: {fit:?}");
                    assert!(o.norm.is_finite(), "{at}");
                    assert!(
                        [o.objective, o.dual_objective, o.gap].iter().flatten().all(|v| v.is_finite()),
                        "{at}: {o:?}"
                    );
                    assert!(o.extras.iter().all(|(_, v)| v.is_finite()), "{at}: {o:?}");
                    for ((x, y), margin) in set.x.iter().zip(&set.y).zip(&o.margins) {
                        let expected = y * score(&set, &fit, x);
                        assert!(
                            (margin - expected).abs() <= 1e-6 * (1.0 + expected.abs()),
                            "{at}: {margin} {expected}"
                        );
                    }
                }
            }
        }
    }
}
