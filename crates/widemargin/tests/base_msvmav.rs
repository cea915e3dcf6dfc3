//! MSVMAv against the paper's iteration.

mod base_common;

use base_common::{Set, dot, score, survives, weights};
use serde_json::Value;
use std::path::Path;
use widemargin::Error;
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Fit};
use widemargin::margins::MarginStatistics;
use widemargin::problem::StopReason;
use widemargin::random::Random;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn close(a: f64, b: f64, relative: f64, absolute: f64) -> bool {
    (a - b).abs() <= f64::max(absolute, relative * a.abs().max(b.abs()))
}

fn read_set(case: &Value) -> Set {
    let rows = |key: &str| case[key].as_array().unwrap().iter().map(numbers).collect::<Vec<_>>();
    let mut set = Set::new(rows("x"), numbers(&case["y"]));
    set.kernel = serde_json::from_value(case["kernel"].clone()).unwrap();
    set
}

/// Expected values made by another program, where they are at hand.
#[test]
fn fixtures() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["../../../shared/fixtures", "../../../../shared/fixtures"].map(|p| here.join(p));
    let Some(files) = places.iter().find_map(|place| std::fs::read_dir(place).ok()) else {
        eprintln!("skipped: no fixtures at {}", places[0].display());
        return;
    };
    let mut seen = 0;
    for path in files.map(|f| f.unwrap().path()) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("msvmav-") {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let set = read_set(&case);
        let parameters: Vec<(&str, f64)> =
            case["params"].as_object().unwrap().iter().map(|(k, v)| (k.as_str(), v.as_f64().unwrap())).collect();
        for rows in [set.dense(), set.sparse()] {
            let fit = set.fit_rows(&rows, "msvmav", &parameters).unwrap();
            compare(&name, &set, &fit, &case);
        }
        seen += 1;
    }
    assert!(seen > 0);
}

fn compare(name: &str, set: &Set, fit: &Fit, case: &Value) {
    let expect = &case["expect"];
    for (x, want) in case["x_test"].as_array().unwrap().iter().zip(numbers(&expect["scores_test"])) {
        let got = score(set, fit, &numbers(x));
        assert!(close(got, want, 1e-3, 1e-3), "{name}: score {got}, expected {want}");
    }
    let got = MarginStatistics::new(&fit.outcome.margins, &set.s);
    let want = |key: &str| expect[key].as_f64().unwrap();
    assert!(close(got.mean, want("mean"), 1e-5, 1e-9), "{name}: mean {} {}", got.mean, want("mean"));
    let (got, want) = (got.semivariance, want("semivariance"));
    assert!(close(got, want, 1e-5, 1e-9), "{name}: semi-variance {got} {want}");
}

/// Two features so plain that a round can be done by hand: from `w = (1, 0)`, margins 1 and 2, `θ̂ = 1.5`, `A = {1}`;
/// `α = 1`, `β = ½`: `w' = (1 + 1.5)/2 = 1.25` along the axis, and all rounds give `w = (1, 0)`.
#[test]
fn by_hand() {
    let set = Set::new(vec![vec![1.0, 0.0], vec![-2.0, 0.0]], vec![1.0, -1.0]);
    let fit = set.fit("msvmav", &[("alpha", 1.0), ("beta", 0.5)]).unwrap();
    let (w, b) = weights(&fit);
    assert!((w[0] - 1.0).abs() < 1e-12 && w[1].abs() < 1e-12 && b == 0.0);
    let term = fit.outcome.extras.iter().find(|(name, _)| *name == "bound_term").unwrap().1;
    assert!((term - 0.125 / 2.25).abs() < 1e-12);
    assert_eq!(fit.outcome.stop, StopReason::Rest);
}

/// The iteration as the paper prints it, on the smallest interesting case: plain Gauss elimination in every round.
#[test]
fn follows_the_papers_rounds() {
    let set = Set::clouds(90, 5, 0.8, 4);
    for (alpha, beta) in [(1.0, 1.0), (0.25, 0.001), (64.0, 0.01)] {
        for rounds in [1, 3, 40] {
            let fit = set.fit("msvmav", &[("alpha", alpha), ("beta", beta), ("iterations", rounds as f64)]).unwrap();
            let expected = paper(&set, alpha, beta, rounds);
            let got = weights(&fit).0;
            assert!(got.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-7), "{got:?} {expected:?}");
        }
    }
}

fn paper(set: &Set, alpha: f64, beta: f64, rounds: usize) -> Vec<f64> {
    let (m, d) = (set.x.len() as f64, set.x[0].len());
    let unit = |w: &mut Vec<f64>| {
        let norm = dot(w, w).sqrt();
        w.iter_mut().for_each(|v| *v /= norm);
    };
    let total = |rows: &[usize]| -> Vec<f64> {
        (0..d).map(|j| rows.iter().map(|&i| set.y[i] * set.x[i][j]).sum::<f64>()).collect()
    };
    let all: Vec<usize> = (0..set.x.len()).collect();
    let mut w = total(&all);
    unit(&mut w);
    for _ in 0..rounds {
        let margins: Vec<f64> = set.x.iter().zip(&set.y).map(|(x, y)| y * dot(x, &w)).collect();
        let theta = margins.iter().sum::<f64>() / m;
        let active: Vec<usize> = all.iter().copied().filter(|&i| margins[i] < theta).collect();
        let pull = total(&active);
        let mut system: Vec<Vec<f64>> = (0..d)
            .map(|j| {
                let entry = |k: usize| {
                    let sum: f64 = active.iter().map(|&i| set.x[i][j] * set.x[i][k]).sum();
                    f64::from(u8::from(j == k)) + sum / (m * beta)
                };
                let mut row: Vec<f64> = (0..d).map(entry).collect();
                row.push(w[j] + theta / (m * beta) * pull[j]);
                row
            })
            .collect();
        w = gauss(&mut system);
        total(&all).iter().zip(&mut w).for_each(|(t, w)| *w += t / (2.0 * alpha * m));
        unit(&mut w);
    }
    w
}

/// Solves a positive definite system given with its right-hand side as last column.
fn gauss(a: &mut [Vec<f64>]) -> Vec<f64> {
    let n = a.len();
    for k in 0..n {
        let pivot = a[k].clone();
        for row in a.iter_mut().enumerate().filter(|(i, _)| *i != k).map(|(_, row)| row) {
            let f = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(r, p)| *r -= f * p);
        }
    }
    (0..n).map(|k| a[k][n] / a[k][k]).collect()
}

#[test]
fn weights_are_repetitions() {
    for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.4 }] {
        let mut set = Set { kernel, bias: Bias::Feature(0.7), ..Set::clouds(40, 3, 0.6, 9) };
        set.s.iter_mut().enumerate().for_each(|(i, s)| *s = 1.0 + (i % 3) as f64);
        let repeated = set.repeated();
        let parameters = [("alpha", 0.5), ("beta", 0.1)];
        let (a, b) = (set.fit("msvmav", &parameters).unwrap(), repeated.fit("msvmav", &parameters).unwrap());
        for x in &set.x {
            let (a, b) = (score(&set, &a, x), score(&repeated, &b, x));
            assert!((a - b).abs() < 1e-7, "{kernel:?}: {a} {b}");
        }
    }
}

/// The same rows padded with empty columns: wide enough for conjugate gradients, with the same answer.
#[test]
fn conjugate_gradients_agree_with_the_factor() {
    let set = Set { bias: Bias::Free, ..Set::clouds(200, 6, 0.5, 3) };
    let mut wide = set.clone();
    wide.x.iter_mut().for_each(|x| x.resize(400, 0.0));
    for beta in [1.0, 1e-3] {
        let parameters = [("alpha", 4.0), ("beta", beta)];
        let narrow = set.fit("msvmav", &parameters).unwrap();
        let iterated = wide.fit_rows(&wide.sparse(), "msvmav", &parameters).unwrap();
        assert!(narrow.outcome.solver.contains("Cholesky") && iterated.outcome.solver.contains("conjugate"));
        let same = narrow.outcome.margins.iter().zip(&iterated.outcome.margins).all(|(a, b)| (a - b).abs() < 1e-7);
        assert!(same, "beta {beta}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    for (d, kernel) in [(30, Kernel::Linear), (700, Kernel::Linear), (10, Kernel::Rbf { gamma: 0.1 })] {
        let mut random = Random::new(d as u64, 1);
        let mut set = Set { kernel, ..Set::clouds(400, d, 0.3, 5) };
        set.x.iter_mut().flatten().for_each(|v| *v = if random.unit() < 0.8 { 0.0 } else { *v });
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| weights(&set.fit_rows(&set.sparse(), "msvmav", &[]).unwrap()).0.to_vec())
        };
        assert_eq!(with(1), with(5));
    }
}

#[test]
fn refuses_a_kernel_beyond_the_memory() {
    let mut set = Set { kernel: Kernel::Rbf { gamma: 1.0 }, ..Set::clouds(100, 2, 1.0, 1) };
    set.settings.memory = 200_000;
    match set.fit("msvmav", &[]) {
        Err(Error::Memory { needed, budget, .. }) => assert_eq!((needed, budget), (240_000, 200_000)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn survives_hard_cases() {
    survives("msvmav", &[Kernel::Linear, Kernel::Rbf { gamma: 0.5 }]);
}

/// A looser tolerance rests earlier, a tighter one later.
#[test]
fn the_tolerance_says_when_the_rounds_rest() {
    let mut set = Set::clouds(120, 4, 0.8, 6);
    let mut rounds = Vec::new();
    for tol in [1.0, 1e-3, 1e-6] {
        set.settings.tol = tol;
        let fit = set.fit("msvmav", &[("iterations", 5000.0)]).unwrap();
        assert_eq!(fit.outcome.stop, StopReason::Rest, "{tol}");
        rounds.push(fit.outcome.iterations);
    }
    assert!(rounds.is_sorted() && rounds[0] < rounds[2], "{rounds:?}");
}
