//! Smooth losses over a kernel are solved over the rows that support the solution, as some of the rows foretell: held against Newton's
//! method over all rows, on rows that foretell ill too.

mod common;

use common::{Ask, BIASES, ask, dense, noisy, sparse};
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Outcome};
use widemargin::problem::StopReason;
use widemargin::random::Random;
use widemargin::train::train;

/// More rows than are factored at once.
const ROWS: usize = 2600;

/// Two curved classes of which most rows are easy: few pull.
fn easy(m: usize, seed: u64) -> (Vec<f64>, Vec<&'static str>) {
    let mut random = Random::new(seed, 5);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..m {
        let (x, z) = (3.0 * random.normal(), 3.0 * random.normal());
        labels.push(if x * x + z > 4.0 + random.normal() { "yes" } else { "no" });
        values.extend([x, z]);
    }
    (labels[0], labels[1]) = ("yes", "no");
    (values, labels)
}

fn rbf(machine: &'static str, bias: Bias) -> Ask {
    let parameters = match machine {
        "l2svm" => vec![("c", 1.0)],
        _ => vec![("c1", ROWS as f64), ("c2", ROWS as f64 / 8.0), ("d", 0.3)],
    };
    Ask { kernel: Kernel::Rbf { gamma: 0.2 }, bias, tol: 1e-3, parameters, ..ask(machine) }
}

/// Over some of the rows to a tolerance, and over all of them to a tighter one: an explicit limit of the steps says so.
fn both(ask: &Ask, data: &Dataset, weights: Option<&[f64]>) -> (Outcome, Outcome) {
    let (model, found) = ask.try_fit(data, weights).unwrap();
    let whole = Ask { max_iter: Some(500), tol: 1e-6, ..ask.clone() };
    let (_, exact) = whole.try_fit(data, weights).unwrap();
    assert!(!exact.solver.contains(" rows"), "{}", exact.solver);
    assert!(found.stop == StopReason::Gap && found.gap.unwrap() <= ask.tol, "{:?} {}", found.gap, found.solver);
    let (objective, optimum) = (found.objective.unwrap(), exact.objective.unwrap());
    assert!(
        objective <= optimum * (1.0 + 2.0 * ask.tol) && objective >= optimum * (1.0 - 1e-5),
        "{objective} {optimum}"
    );
    let scores = model.scores(&data.rows).unwrap();
    let margins = model.margins(&scores, data.labels.as_ref().unwrap());
    assert!(margins.iter().zip(&found.margins).all(|(a, b)| (a.unwrap() - b).abs() < 1e-6), "{}", found.solver);
    (found, exact)
}

#[test]
fn every_intercept_reaches_the_optimum_over_all_rows() {
    let (values, labels) = easy(ROWS, 3);
    for data in [dense(&values, &labels), sparse(&values, &labels)] {
        for machine in ["odm", "l2svm"] {
            for bias in BIASES {
                let (found, _) = both(&rbf(machine, bias), &data, None);
                assert!(found.solver.contains(" rows"), "{machine} {bias:?}: {}", found.solver);
            }
        }
    }
}

#[test]
fn tolerances_and_strengths() {
    let (values, labels) = easy(ROWS, 4);
    let data = dense(&values, &labels);
    for tol in [1e-1, 1e-2, 1e-4, 1e-5] {
        both(&Ask { tol, ..rbf("odm", Bias::Free) }, &data, None);
    }
    for factor in [1e-4, 1e-2, 30.0, 1000.0] {
        let c = factor * ROWS as f64;
        both(&Ask { parameters: vec![("c1", c), ("c2", 2.0 * c)], ..rbf("odm", Bias::Free) }, &data, None);
    }
    // Without a band every row pulls.
    let (found, _) = both(&Ask { parameters: vec![("d", 0.0)], ..rbf("odm", Bias::Free) }, &data, None);
    assert!(!found.solver.contains(" rows"), "{}", found.solver);
}

/// A few rows far from all others, of the wrong class and of great weight, which hardly any part of the rows has seen.
#[test]
fn rows_that_nothing_foretells() {
    let (mut values, mut labels) = easy(ROWS, 5);
    let mut weights = vec![1.0; ROWS];
    for k in 0..7 {
        let i = 11 + 300 * k;
        values[2 * i] = 40.0 + 3.0 * k as f64;
        values[2 * i + 1] = -20.0;
        labels[i] = if k % 2 == 0 { "no" } else { "yes" };
        weights[i] = 50.0;
    }
    for machine in ["odm", "l2svm"] {
        for bias in BIASES {
            both(&rbf(machine, bias), &dense(&values, &labels), Some(&weights));
        }
    }
}

/// One class has a handful of rows.
#[test]
fn a_rare_class() {
    let (values, labels) = easy(ROWS, 6);
    for few in [1, 5, 40] {
        let mut left = few;
        let rare: Vec<&str> = labels
            .iter()
            .map(|label| match (*label, left) {
                ("no", 1..) => {
                    left -= 1;
                    "no"
                }
                _ => "yes",
            })
            .collect();
        for bias in BIASES {
            both(&rbf("odm", bias), &dense(&values, &rare), None);
        }
    }
}

#[test]
fn noise_and_little_memory() {
    let (values, labels) = noisy(ROWS, 4, 7);
    let data = dense(&values, &labels);
    for bias in BIASES {
        both(&Ask { parameters: vec![("c1", 10.0), ("c2", 10.0), ("d", 0.9)], ..rbf("odm", bias) }, &data, None);
    }
    let (values, labels) = easy(ROWS, 8);
    let data = dense(&values, &labels);
    let ask = rbf("odm", Bias::Free);
    let (_, plenty) = ask.fit(&data);
    let mut options = ask.options();
    options.settings.memory = 1 << 18;
    let (_, little) = train(&data, None, &options, Default::default()).unwrap();
    assert!(little.gap.unwrap() <= ask.tol && little.solver.contains(" rows"), "{}", little.solver);
    let (plenty, little) = (plenty.objective.unwrap(), little.objective.unwrap());
    assert!((plenty - little).abs() <= 1e-3 * plenty, "{plenty} {little}");
}

/// More rows pull than are factored at once, so that there are tiles; which of them the solution over some foretells, and which it leaves
/// out again, is mostly noise.
#[test]
fn tiles_of_noisy_rows() {
    let m = 4000;
    let (values, labels) = noisy(m, 4, 10);
    let data = dense(&values, &labels);
    for (factor, d) in [(1.0, 0.5), (10.0, 0.5), (40.0, 0.3)] {
        for bias in BIASES {
            let c = factor * m as f64;
            let (found, _) =
                both(&Ask { parameters: vec![("c1", c), ("c2", c / 8.0), ("d", d)], ..rbf("odm", bias) }, &data, None);
            assert!(found.solver.contains("products"), "{}", found.solver);
        }
    }
}

/// Features that are 0 or 1: there are few kernel values, and those of equal distances are rounded alike in fixed point.
#[test]
fn values_that_round_alike() {
    let (m, d, mut random) = (4000, 12, Random::new(11, 0));
    let values: Vec<f64> = (0..m * d).map(|_| f64::from(u8::from(random.unit() < 0.3))).collect();
    let noisy_side = |x: &[f64]| if x.iter().sum::<f64>() + random.normal() > 3.5 { "yes" } else { "no" };
    let labels: Vec<&str> = values.chunks_exact(d).map(noisy_side).collect();
    let data = dense(&values, &labels);
    for factor in [1.0, 10.0, 60.0] {
        for bias in BIASES {
            let c = factor * m as f64;
            let parameters = vec![("c1", c), ("c2", c / 8.0), ("d", 0.4)];
            both(&Ask { kernel: Kernel::Rbf { gamma: 0.4 }, parameters, ..rbf("odm", bias) }, &data, None);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let (values, labels) = easy(ROWS, 9);
    let data = dense(&values, &labels);
    let ask = rbf("odm", Bias::Free);
    let bytes = [1, 2, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ask.fit(&data).0.to_bytes().unwrap())
    });
    assert!(bytes[0] == bytes[1] && bytes[1] == bytes[2]);
}
