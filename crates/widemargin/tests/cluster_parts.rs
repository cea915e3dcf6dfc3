//! Rows in parts, each asked through the numbers that would travel: the same optimum, with a certificate, as rows at hand.

use widemargin::cluster::{PartMemory, PartRows, Question, RowParts, Whole, train as train_parts};
use widemargin::control::Control;
use widemargin::data::{Csr, Dense, Examples, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{self, Bias, SolverChoice, Value};
use widemargin::model::Scorer;
use widemargin::random::Random;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train_examples};
use widemargin::{Error, Result};

fn options(name: &str, given: &[(&str, f64)], bias: Bias, tol: f64) -> TrainOptions {
    let machine = machine::machine(name).unwrap();
    let given: Vec<(String, Value)> = given.iter().map(|(name, v)| (name.to_string(), Value::Number(*v))).collect();
    TrainOptions {
        machine,
        parameters: machine::check_parameters(machine, &given).unwrap(),
        kernel: Kernel::Linear,
        gamma: Gamma::Scale,
        approx: None,
        bias,
        scaling: None,
        class_weight: ClassWeight::Equal,
        multiclass: None,
        solver: SolverChoice::Auto,
        settings: Settings { tol, ..Settings::default() },
    }
}

/// Rows cut at these places, some of which forget everything from time to time, as a worker that died has.
struct Cut {
    parts: Vec<(Matrix<'static>, Vec<u32>, Vec<f64>)>,
    memories: Vec<PartMemory>,
    forget: usize,
    asked: usize,
}

impl Cut {
    fn new(rows: &Matrix<'_>, codes: &[u32], weights: &[f64], ends: &[usize], forget: usize) -> Self {
        let mut from = 0;
        let parts = ends.iter().map(|&end| {
            let chosen: Vec<usize> = (std::mem::replace(&mut from, end)..end).collect();
            let codes = chosen.iter().map(|&i| codes[i]).collect();
            (rows.select(&chosen), codes, chosen.iter().map(|&i| weights[i]).collect())
        });
        let parts: Vec<_> = parts.collect();
        let memories = vec![PartMemory::default(); parts.len()];
        Self { parts, memories, forget, asked: 0 }
    }
}

impl RowParts for Cut {
    fn sum(&mut self, question: &Question) -> Result<Vec<f64>> {
        let numbers = question.to_numbers();
        let read = Question::from_numbers(&numbers)?;
        assert_eq!(&read, question);
        self.asked += 1;
        let mut total: Vec<f64> = Vec::new();
        for (number, ((rows, codes, weights), memory)) in self.parts.iter().zip(&mut self.memories).enumerate() {
            if self.forget > 0 && (self.asked + number).is_multiple_of(self.forget) {
                *memory = PartMemory::default();
            }
            let sums = memory.answer(PartRows { rows, codes, weights }, &read)?;
            total.resize(sums.len(), 0.0);
            total.iter_mut().zip(sums).for_each(|(total, sum)| *total += sum);
        }
        Ok(total)
    }
}

/// Rows of `k` classes that overlap, with weights.
fn rows(m: usize, d: usize, k: usize, seed: u64) -> (Matrix<'static>, Vec<u32>, Vec<f64>) {
    let mut random = Random::new(seed, 0);
    let mut values = Vec::with_capacity(m * d);
    let mut codes = Vec::with_capacity(m);
    for _ in 0..m {
        let class = random.below(k);
        values.extend((0..d).map(|j| random.normal() + if j == class { 1.2 } else { 0.0 }));
        codes.push(class as u32);
    }
    let weights = (0..m).map(|_| 0.5 + random.unit()).collect();
    (Matrix::DenseF64(Dense::new(m, d, values).unwrap()), codes, weights)
}

fn labels(k: usize) -> Vec<String> {
    (0..k).map(|l| l.to_string()).collect()
}

fn agree(
    name: &str,
    rows: &Matrix<'_>,
    codes: &[u32],
    weights: &[f64],
    k: usize,
    options: &TrainOptions,
    forget: usize,
) {
    let m = rows.rows();
    let names = labels(k);
    let coded = Labels::coded(names.clone(), codes.to_vec()).unwrap();
    let data = Examples { name, rows, labels: &coded };
    let here = train_examples(data, Some(weights), options, Control::default()).unwrap();
    // Uneven, one of them empty, one a single row.
    let mut parts = Cut::new(rows, codes, weights, &[m / 7, m / 7, m / 7 + 1, m / 2, m], forget);
    let whole = Whole { labels: names, features: rows.cols(), rows: m };
    let (model, outcome) = train_parts(&mut parts, whole, options, Control::default()).unwrap();
    let (here_objective, objective) = (here.outcome.objective.unwrap(), outcome.objective.unwrap());
    let gap = outcome.gap.unwrap();
    assert!(
        outcome.stop.converged() && (0.0..=options.settings.tol).contains(&gap),
        "{name}: {:?} {gap}",
        outcome.stop
    );
    assert!(
        (objective - here_objective).abs() <= 2.0 * options.settings.tol * here_objective.abs(),
        "{name}: {objective} {here_objective}"
    );
    // What is claimed holds of the other solver's result too.
    assert!(outcome.dual_objective.unwrap() <= here_objective * (1.0 + 1e-12) + 1e-12, "{name}");
    let (Scorer::Linear { weights: there, .. }, Scorer::Linear { weights: here, .. }) =
        (&model.scorer, &here.model.scorer)
    else {
        panic!("{name}: not linear")
    };
    for (there, here) in there.iter().flatten().zip(here.iter().flatten()) {
        assert!((there - here).abs() <= 1e-3 * (1.0 + here.abs()), "{name}: {there} {here}");
    }
}

const MACHINES: [(&str, &[(&str, f64)]); 6] = [
    ("odm", &[("c1", 50.0), ("c2", 5.0), ("d", 0.3)]),
    ("l2svm", &[("c", 0.3)]),
    ("lssvm", &[("c", 0.3)]),
    ("svm", &[("c", 0.7)]),
    ("ldm", &[("c", 0.5), ("lambda1", 20.0), ("lambda2", 3.0)]),
    ("huber-svm", &[("c", 0.7)]),
];

#[test]
fn parts_reach_the_optimum_of_rows_at_hand() {
    let (x, codes, weights) = rows(700, 6, 2, 3);
    for (name, given) in MACHINES {
        for bias in [Bias::Free, Bias::None, Bias::Feature(2.0)] {
            for forget in [0, 3] {
                let options = options(name, given, bias, 1e-8);
                agree(&format!("{name} {bias} {forget}"), &x, &codes, &weights, 2, &options, forget);
            }
        }
    }
}

#[test]
fn more_classes_go_one_against_all() {
    let (x, codes, weights) = rows(600, 5, 4, 9);
    for (name, given) in &MACHINES[..4] {
        let options = options(name, given, Bias::Free, 1e-8);
        agree(name, &x, &codes, &weights, 4, &options, 0);
    }
}

#[test]
fn wide_sparse_rows_go_by_products() {
    let (m, d, mut random) = (400, 900, Random::new(5, 0));
    let (mut offsets, mut columns, mut values, mut codes) = (vec![0u64], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..m {
        let class = random.below(2) as u32;
        let mut chosen: Vec<u32> = (0..20).map(|_| random.below(d) as u32).collect();
        chosen.push(class);
        chosen.sort_unstable();
        chosen.dedup();
        values.extend(chosen.iter().map(|_| random.unit() as f32));
        columns.extend(&chosen);
        offsets.push(columns.len() as u64);
        codes.push(class);
    }
    let x = Matrix::SparseF32(Csr::new(d, offsets, columns, values).unwrap());
    let weights = vec![1.0; m];
    for (name, given) in MACHINES {
        let options = options(name, given, Bias::Free, 1e-7);
        agree(name, &x, &codes, &weights, 2, &options, 0);
    }
}

#[test]
fn what_cannot_be_a_sum_is_refused() {
    let (x, codes, weights) = rows(50, 3, 2, 1);
    let mut parts = Cut::new(&x, &codes, &weights, &[20, 50], 0);
    let whole = || Whole { labels: labels(2), features: 3, rows: 50 };
    let kernel = TrainOptions { kernel: Kernel::Rbf { gamma: 1.0 }, ..options("odm", &[], Bias::Free, 1e-3) };
    let refused =
        |parts: &mut Cut, options: &TrainOptions| train_parts(parts, whole(), options, Control::default()).err();
    assert!(matches!(refused(&mut parts, &kernel), Some(Error::Conflict { .. })));
    let own = options("mcodm", &[], Bias::None, 1e-3);
    assert!(matches!(refused(&mut parts, &own), Some(Error::Conflict { .. })));
    let one = Whole { labels: labels(1), features: 3, rows: 50 };
    let plain = options("odm", &[], Bias::Free, 1e-3);
    assert!(matches!(train_parts(&mut parts, one, &plain, Control::default()), Err(Error::Data { .. })));
    // Rows of another width, and numbers that are no question.
    let wrong = Whole { labels: labels(2), features: 4, rows: 50 };
    assert!(train_parts(&mut parts, wrong, &plain, Control::default()).is_err());
    for broken in [vec![], vec![1.0], vec![0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1e300], vec![f64::NAN; 40]] {
        assert!(Question::from_numbers(&broken).is_err());
    }
    // Numbers that overflow end in an error, not in a model.
    let huge = Matrix::DenseF64(Dense::new(2, 1, vec![1e308, -1e308]).unwrap());
    let mut parts = Cut::new(&huge, &[0, 1], &[1.0, 1.0], &[2], 0);
    let whole = Whole { labels: labels(2), features: 1, rows: 2 };
    assert!(matches!(train_parts(&mut parts, whole, &plain, Control::default()), Err(Error::Numeric { .. })));
}
