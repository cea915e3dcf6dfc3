//! Products with a kernel matrix that are made elsewhere, share by share, each asked through the numbers that would travel: the same
//! optimum, with a certificate, as a matrix at hand gives.

mod common;

use common::{Ask, ask};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use widemargin::cluster::{KernelProducts, ProductAsked, train_kernel};
use widemargin::control::Control;
use widemargin::data::{Csr, Dense, Examples, Labels, Matrix};
use widemargin::kernel::{Kernel, KernelRows};
use widemargin::machine::Bias;
use widemargin::random::Random;
use widemargin::solver::Settings;
use widemargin::train::{TrainOptions, train_examples};
use widemargin::{Error, Result};

/// More than are multiplied with as a whole.
const ROWS: usize = 2300;

/// So many shares of the matrix of these rows; none answers after so many questions.
struct Shares {
    rows: Matrix<'static>,
    shares: usize,
    asked: AtomicUsize,
    most: usize,
}

impl KernelProducts for Shares {
    fn multiply(&self, asked: &ProductAsked) -> Result<Vec<f64>> {
        let read = ProductAsked::from_numbers(&asked.to_numbers())?;
        assert_eq!(&read, asked);
        if self.asked.fetch_add(1, Ordering::Relaxed) >= self.most {
            return Err(Error::Interrupted);
        }
        let mut total = vec![0.0; asked.v.len()];
        for share in 0..self.shares {
            let sums = read.answer(&self.rows, share, self.shares)?;
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        Ok(total)
    }
}

fn rows(m: usize, d: usize, k: usize) -> (Matrix<'static>, Labels) {
    let mut random = Random::new(5, 0);
    let (mut values, mut codes) = (Vec::with_capacity(m * d), Vec::with_capacity(m));
    for _ in 0..m {
        let class = random.below(k);
        values.extend((0..d).map(|j| random.normal() + if j == class { 1.2 } else { 0.0 }));
        codes.push(class as u32);
    }
    let names = (0..k).map(|l| l.to_string()).collect();
    (Matrix::DenseF64(Dense::new(m, d, values).unwrap()), Labels::coded(names, codes).unwrap())
}

fn shares(rows: &Matrix<'_>, shares: usize) -> Arc<Shares> {
    let all: Vec<usize> = (0..rows.rows()).collect();
    Arc::new(Shares { rows: rows.select(&all), shares, asked: AtomicUsize::new(0), most: usize::MAX })
}

fn options(machine: &'static str, kernel: Kernel, bias: Bias, tol: f64) -> TrainOptions {
    let options = Ask { kernel, bias, ..ask(machine) }.options();
    TrainOptions { settings: Settings { tol, ..options.settings }, ..options }
}

#[test]
fn shares_add_up_to_the_product() {
    let (x, _) = rows(700, 5, 2);
    let some = two_columns(&x);
    let mut random = Random::new(1, 0);
    let v: Vec<f64> = (0..1400).map(|_| random.normal()).collect();
    let kernels = [
        Kernel::Rbf { gamma: 0.3 },
        Kernel::Laplacian { gamma: 0.2 },
        Kernel::Poly { gamma: 0.1, degree: 2, coef0: 1.0 },
    ];
    for x in [&x, &some] {
        for kernel in kernels {
            let truth: Vec<f64> = v
                .chunks_exact(700)
                .flat_map(|v| KernelRows::new(kernel, x, 0.0).product(v, Control::default()).unwrap())
                .collect();
            for (double, near) in [(true, 1e-10), (false, 1e-2)] {
                let asked = ProductAsked { kernel, offset: 0.0, double, error: 1e-5, v: v.clone() };
                for count in [1, 3, 11] {
                    let found = shares(x, count).multiply(&asked).unwrap();
                    let apart = found.iter().zip(&truth).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                    assert!(apart <= near, "{kernel:?} {count} {double}: {apart}");
                }
            }
        }
    }
}

/// The first and the last value of each row.
fn two_columns(x: &Matrix<'_>) -> Matrix<'static> {
    let Matrix::DenseF64(dense) = x else { unreachable!("dense rows") };
    let (m, d) = (x.rows(), x.cols());
    let values: Vec<f64> = dense.values().chunks_exact(d).flat_map(|row| [row[0], row[d - 1]]).collect();
    let offsets: Vec<u64> = (0..=m as u64).map(|i| 2 * i).collect();
    let columns: Vec<u32> = [0, d as u32 - 1].repeat(m);
    Matrix::SparseF64(Csr::new(d, offsets, columns, values).unwrap())
}

#[test]
fn the_same_optimum_as_with_the_matrix_at_hand() {
    let rbf = Kernel::Rbf { gamma: 1.0 };
    let cases = [("odm", Bias::Free, 2, 1e-6), ("l2svm", Bias::None, 2, 1e-6), ("lssvm", Bias::Feature(1.0), 2, 1e-3)];
    for (machine, bias, k, tol) in cases.into_iter().chain([("odm", Bias::Free, 3, 1e-6)]) {
        let (x, labels) = rows(ROWS, 4, k);
        let data = Examples { name: "rows", rows: &x, labels: &labels };
        let mut random = Random::new(3, 0);
        let weights: Vec<f64> = (0..ROWS).map(|_| 0.5 + random.unit()).collect();
        let near =
            train_examples(data, Some(&weights), &options(machine, rbf, bias, 1e-9), Control::default()).unwrap();
        let there = shares(&x, 3);
        let far = options(machine, rbf, bias, tol);
        let far = train_kernel(data, Some(&weights), &far, there.clone(), Control::default()).unwrap();
        let (objective, truth) = (far.outcome.objective.unwrap(), near.outcome.objective.unwrap());
        let gap = far.outcome.gap.unwrap();
        assert!(gap <= tol, "{machine}: {gap}");
        assert!(objective * (1.0 - gap) <= truth * (1.0 + 1e-9) && objective <= truth * (1.0 + 1.1 * tol), "{machine}");
        assert!(there.asked.load(Ordering::Relaxed) > 2, "{machine}: nobody was asked");
        let judged = widemargin::verify::verify(&far.model, data, Some(&weights), Control::default()).unwrap();
        assert_eq!(judged.agrees, Some(true), "{machine}: {:?}", judged.reason);
    }
}

#[test]
fn what_takes_more_than_products_is_refused() {
    let (x, labels) = rows(300, 3, 3);
    let data = Examples { name: "rows", rows: &x, labels: &labels };
    let rbf = Kernel::Rbf { gamma: 1.0 };
    let refused = |options: &TrainOptions| train_kernel(data, None, options, shares(&x, 2), Control::default()).err();
    for machine in ["svm", "ldm", "mcodm"] {
        let found = refused(&options(machine, rbf, Bias::None, 1e-3));
        assert!(matches!(found, Some(Error::Conflict { .. })), "{machine}");
    }
    for kernel in [Kernel::Linear, Kernel::Sigmoid { gamma: 1.0, coef0: 0.0 }] {
        assert!(matches!(refused(&options("odm", kernel, Bias::Free, 1e-3)), Some(Error::Conflict { .. })));
    }
    // Rows of weight zero are elsewhere still.
    let mut weights = vec![1.0; 300];
    weights[7] = 0.0;
    let odm = options("odm", rbf, Bias::Free, 1e-3);
    assert!(train_kernel(data, Some(&weights), &odm, shares(&x, 2), Control::default()).is_err());
    for broken in [vec![], vec![1.0; 6], vec![9.0; 8], vec![f64::NAN; 9]] {
        assert!(ProductAsked::from_numbers(&broken).is_err());
    }
    let asked = ProductAsked { kernel: rbf, offset: 0.0, double: true, error: 0.0, v: vec![1.0; 299] };
    assert!(asked.answer(&x, 0, 2).is_err());
    assert!(ProductAsked { v: vec![1.0; 300], ..asked }.answer(&x, 2, 2).is_err());
}

#[test]
fn a_product_that_fails_ends_the_fit() {
    let (x, labels) = rows(ROWS, 4, 2);
    let data = Examples { name: "rows", rows: &x, labels: &labels };
    let odm = options("odm", Kernel::Rbf { gamma: 1.0 }, Bias::Free, 1e-6);
    for most in [0, 2, 5] {
        let there = Arc::new(Shares { most, ..Arc::into_inner(shares(&x, 2)).unwrap() });
        let found = train_kernel(data, None, &odm, there, Control::default());
        assert!(matches!(found, Err(Error::Interrupted)), "{most}");
    }
}
