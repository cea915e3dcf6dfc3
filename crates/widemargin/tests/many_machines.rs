//! mcODM and the multi-class SVM: identities, invariances, certificates.

mod many_common;

use many_common::{clouds, dense, fit, fit_weighted, fit_within, list, scores, sparse};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Fit, ScoreFunctions, check_parameters, machine};
use widemargin::problem::StopReason;
use widemargin::random::Random;
use widemargin::solver::Settings;

const NONE: Bias = Bias::None;
const LINEAR: Kernel = Kernel::Linear;
/// A kernel that is the linear one in another dress.
const AS_KERNEL: Kernel = Kernel::Poly { gamma: 1.0, degree: 1, coef0: 0.0 };

fn close(a: f64, b: f64, tol: f64) -> bool {
    (a - b).abs() <= tol * (1.0 + a.abs().max(b.abs()))
}

fn assert_close(a: &[Vec<f64>], b: &[Vec<f64>], tol: f64) {
    for (a, b) in a.iter().zip(b) {
        assert!(a.iter().zip(b).all(|(a, b)| close(*a, *b, tol)), "{a:?} {b:?}");
    }
}

fn margins(scores: &[Vec<f64>], codes: &[u32]) -> Vec<f64> {
    let margin = |(s, &y): (&Vec<f64>, &u32)| {
        let rivals = (0..s.len()).filter(|l| *l != y as usize).map(|l| s[l]);
        s[y as usize] - rivals.fold(f64::NEG_INFINITY, f64::max)
    };
    scores.iter().zip(codes).map(margin).collect()
}

fn half_norm(fit: &Fit) -> f64 {
    match &fit.functions {
        ScoreFunctions::Linear { weights, .. } => 0.5 * weights.iter().flatten().map(|w| w * w).sum::<f64>(),
        ScoreFunctions::Kernel { .. } => 0.5 * fit.outcome.norm.powi(2),
    }
}

#[test]
fn cccp_never_rises_and_ends_at_rest() {
    for (seed, lambda) in [(1, "16"), (2, "256"), (3, "4096"), (4, "64")] {
        let (rows, codes) = clouds(120, 5, 4, 0.8, seed);
        for (tol, mu, theta) in [(1e-3, "0.8", "0.2"), (1e-3, "1", "0"), (1e-6, "0.8", "0.4")] {
            for kernel in [LINEAR, Kernel::Rbf { gamma: 0.3 }] {
                let given = list(&[("lambda", lambda), ("mu", mu), ("theta", theta)]);
                let found = fit("mcodm", &given, &dense(&rows), &codes, kernel, NONE, tol).unwrap().outcome;
                let trace = found.rounds.unwrap();
                assert!(trace.windows(2).all(|w| w[1] <= w[0]), "{trace:?}");
                assert!(found.stop == StopReason::Rest, "{:?}", found.stop);
                assert!(found.gap.unwrap() <= tol && found.gap.unwrap() >= 0.0);
                let (objective, last) = (found.objective.unwrap(), *trace.last().unwrap());
                assert!((objective - last).abs() <= 1e-9 * last.abs(), "{objective} {last}");
            }
        }
    }
}

#[test]
fn the_objective_is_equation_1_at_the_model() {
    let (rows, codes) = clouds(90, 4, 3, 0.9, 5);
    for relaxation in ["cccp", "paper"] {
        let given =
            list(&[("lambda", "50"), ("mu", "0.7"), ("theta", "0.1"), ("relaxation", relaxation), ("rounds", "5")]);
        let found = fit("mcodm", &given, &dense(&rows), &codes, LINEAR, NONE, 1e-8).unwrap();
        let gamma = margins(&scores(&found.functions, &rows, &rows, LINEAR), &codes);
        let loss = |g: &f64| (0.9 - g).max(0.0).powi(2) + 0.7 * (g - 1.1).max(0.0).powi(2);
        let sum: f64 = gamma.iter().map(loss).sum();
        let objective = half_norm(&found) + 50.0 / (90.0 * 0.81) * sum;
        assert!(close(found.outcome.objective.unwrap(), objective, 1e-9));
        assert_close(&[found.outcome.margins], &[gamma], 1e-9);
    }
}

#[test]
fn two_classes_are_binary_odm() {
    let (rows, codes) = clouds(80, 4, 2, 1.2, 6);
    let (lambda, mu, theta) = (40.0, 0.5, 0.2);
    let unit = 2.0 * lambda / (0.8 * 0.8);
    let many = list(&[("lambda", "40"), ("mu", "0.5"), ("theta", "0.2")]);
    let two = list(&[("c1", &unit.to_string()), ("c2", &(mu * unit).to_string()), ("d", &theta.to_string())]);
    assert_eq!(lambda, 40.0);
    for bias in [NONE, Bias::Free] {
        for kernel in [LINEAR, Kernel::Rbf { gamma: 0.2 }] {
            let a = fit("mcodm", &many, &dense(&rows), &codes, kernel, bias, 1e-8).unwrap();
            let b = fit("odm", &two, &dense(&rows), &codes, kernel, bias, 1e-9).unwrap();
            // w = 2 w_2: ½‖w‖² is twice ½(‖w_1‖² + ‖w_2‖²).
            let (pa, pb) = (a.outcome.objective.unwrap(), b.outcome.objective.unwrap());
            assert!(close(2.0 * pa, pb, 1e-6), "{bias:?} {kernel:?} {pa} {pb} {:?}", a.outcome.gap);
            assert_eq!(a.outcome.stop, StopReason::Gap);
            let sa = scores(&a.functions, &rows, &rows, kernel);
            let sb = scores(&b.functions, &rows, &rows, kernel);
            let sa: Vec<Vec<f64>> = sa.iter().map(|s| vec![s[1] - s[0]]).collect();
            assert_close(&sa, &sb, 2e-3);
        }
    }
}

#[test]
fn two_classes_are_the_binary_svm() {
    let (rows, codes) = clouds(80, 4, 2, 1.2, 7);
    for bias in [NONE, Bias::Feature(1.0), Bias::Free] {
        let b = fit("svm", &list(&[("c", "1")]), &dense(&rows), &codes, LINEAR, bias, 1e-7).unwrap();
        for loss in ["cs", "ww"] {
            let given = list(&[("c", "0.5"), ("loss", loss)]);
            let a = fit("mcsvm", &given, &dense(&rows), &codes, LINEAR, bias, 1e-6).unwrap();
            let (pa, pb) = (a.outcome.objective.unwrap(), b.outcome.objective.unwrap());
            assert!(close(2.0 * pa, pb, 1e-5), "{bias:?} {loss} {pa} {pb} {:?}", a.outcome.gap);
        }
    }
}

#[test]
fn the_order_of_the_classes_does_not_matter() {
    let (rows, codes) = clouds(120, 5, 4, 0.6, 8);
    let order = [2u32, 0, 3, 1];
    let renamed: Vec<u32> = codes.iter().map(|&c| order[c as usize]).collect();
    // Without the upper side, because the first round's rivals are the lowest classes, whatever those are.
    let odm = list(&[("lambda", "20"), ("mu", "0"), ("theta", "0.4")]);
    for (name, given) in [("mcodm", odm), ("mcsvm", list(&[("loss", "cs")])), ("mcsvm", list(&[("loss", "ww")]))] {
        for bias in [NONE, Bias::Free] {
            let a = fit(name, &given, &dense(&rows), &codes, LINEAR, bias, 1e-7).unwrap();
            let b = fit(name, &given, &dense(&rows), &renamed, LINEAR, bias, 1e-7).unwrap();
            let (pa, pb) = (a.outcome.objective.unwrap(), b.outcome.objective.unwrap());
            assert!(close(pa, pb, 1e-5), "{name} {bias:?}: {pa} {pb}");
            if bias == NONE {
                let sb = scores(&b.functions, &rows, &rows, LINEAR);
                let back: Vec<Vec<f64>> = sb.iter().map(|s| order.iter().map(|&l| s[l as usize]).collect()).collect();
                assert_close(&scores(&a.functions, &rows, &rows, LINEAR), &back, 1e-2);
            }
        }
    }
}

#[test]
fn sparse_dense_and_kernel_routes_agree() {
    let (mut rows, codes) = clouds(90, 6, 3, 0.8, 9);
    let mut random = Random::new(1, 0);
    rows.iter_mut().flatten().filter(|_| random.unit() < 0.5).for_each(|v| *v = 0.0);
    for (name, given) in [("mcodm", list(&[("lambda", "20")])), ("mcsvm", list(&[("c", "0.1"), ("loss", "ww")]))] {
        for bias in [NONE, Bias::Feature(0.7), Bias::Free] {
            let run = |matrix: &_, kernel| fit(name, &given, matrix, &codes, kernel, bias, 1e-6).unwrap();
            let a = run(&dense(&rows), LINEAR);
            let pa = a.outcome.objective.unwrap();
            let sa = scores(&a.functions, &rows, &rows, LINEAR);
            for (b, kernel) in [(run(&sparse(&rows), LINEAR), LINEAR), (run(&dense(&rows), AS_KERNEL), AS_KERNEL)] {
                assert!(close(pa, b.outcome.objective.unwrap(), 1e-5), "{name} {bias:?}");
                assert!(b.outcome.gap.unwrap() <= 1e-6);
                assert!(close(a.outcome.norm, b.outcome.norm, 1e-2));
                if bias != Bias::Free {
                    assert_close(&sa, &scores(&b.functions, &rows, &rows, kernel), 1e-2);
                }
            }
        }
    }
}

#[test]
fn weights_are_repetitions() {
    let (rows, codes) = clouds(60, 4, 3, 0.9, 10);
    let weights: Vec<f64> = (0..60).map(|i| 1.0 + (i % 3) as f64).collect();
    let repeated: Vec<usize> = (0..60).flat_map(|i| vec![i; weights[i] as usize]).collect();
    let many_rows: Vec<Vec<f64>> = repeated.iter().map(|&i| rows[i].clone()).collect();
    let many_codes: Vec<u32> = repeated.iter().map(|&i| codes[i]).collect();
    for (name, given) in
        [("mcodm", list(&[("lambda", "20")])), ("mcsvm", list(&[])), ("mcsvm", list(&[("loss", "ww")]))]
    {
        let a = fit_weighted(name, &given, &dense(&rows), &codes, &weights, LINEAR, NONE, 1e-7).unwrap();
        let b = fit(name, &given, &dense(&many_rows), &many_codes, LINEAR, NONE, 1e-7).unwrap();
        assert!(close(a.outcome.objective.unwrap(), b.outcome.objective.unwrap(), 1e-6), "{name}");
    }
}

#[test]
fn classes_of_one_row_and_rows_of_zeros() {
    let (mut rows, mut codes) = clouds(30, 3, 3, 0.5, 11);
    (codes[4], codes[5]) = (3, 4);
    codes.iter_mut().enumerate().filter(|(i, _)| ![4, 5].contains(i)).for_each(|(i, c)| *c = (i % 3) as u32);
    rows[7] = vec![0.0; 3];
    for bias in [NONE, Bias::Free] {
        for name in ["mcodm", "mcsvm"] {
            let found = fit(name, &[], &dense(&rows), &codes, LINEAR, bias, 1e-5).unwrap().outcome;
            assert!(found.gap.unwrap() <= 1e-5 && found.margins.len() == 30, "{name} {bias:?}");
        }
    }
}

/// Made with LIBLINEAR 2.50, `train -s 4 -c C -e 1e-10`, on the rows below; the value is
/// `½ Σ ‖w_l‖² + C Σ max(0, 1 − γ)` at its weights.
#[test]
fn crammer_singer_reaches_liblinear_s_4() {
    for (k, d, m, c, expected) in [
        (3, 4, 150, "1", 72.94168431562431),
        (5, 6, 200, "0.5", 48.01903521931038),
        (3, 13, 178, "10", 14.177435060143484),
    ] {
        let mut random = Random::new(7, 0);
        let centres: Vec<Vec<f64>> = (0..k).map(|_| (0..d).map(|_| random.unit()).collect()).collect();
        let codes: Vec<u32> = (0..m).map(|i| (i % k) as u32).collect();
        let rows = codes.iter().map(|&c| centres[c as usize].iter().map(|v| v + random.unit()).collect());
        let rows: Vec<Vec<f64>> = rows.collect();
        let found = fit("mcsvm", &list(&[("c", c)]), &dense(&rows), &codes, LINEAR, NONE, 1e-7).unwrap().outcome;
        let objective = found.objective.unwrap();
        assert!((objective - expected).abs() <= 2e-6 * expected, "{objective} {expected}");
        assert!(found.dual_objective.unwrap() <= expected * (1.0 + 1e-9));
    }
}

#[test]
fn a_free_intercept_cannot_be_improved() {
    let (mut rows, codes) = clouds(90, 3, 3, 0.7, 12);
    rows.iter_mut().for_each(|x| x[0] += 3.0);
    for (name, given) in
        [("mcodm", list(&[("lambda", "30")])), ("mcsvm", list(&[])), ("mcsvm", list(&[("loss", "ww")]))]
    {
        let free = fit(name, &given, &dense(&rows), &codes, LINEAR, Bias::Free, 1e-6).unwrap();
        let big = fit(name, &given, &dense(&rows), &codes, LINEAR, Bias::Feature(30.0), 1e-5).unwrap();
        let (pf, pb) = (free.outcome.objective.unwrap(), big.outcome.objective.unwrap());
        assert!(free.outcome.gap.unwrap() <= 1e-6, "{name}");
        assert!(pf <= pb * (1.0 + 1e-5) && pb <= pf * 1.05, "{name}: {pf} {pb}");
        assert!(free.outcome.dual_objective.unwrap() <= pb, "{name}");
    }
    let paper = list(&[("relaxation", "paper")]);
    assert!(fit("mcodm", &paper, &dense(&rows), &codes, LINEAR, Bias::Free, 1e-3).is_err());
}

/// Passes alone would need millions here; a tight gap shows that Newton's method takes over and gets there.
#[test]
fn features_of_unlike_scales_are_solved_tightly() {
    let (mut rows, codes) = clouds(150, 5, 4, 0.9, 31);
    for row in &mut rows {
        for (j, x) in row.iter_mut().enumerate() {
            *x = (*x + 3.0) * 10f64.powi(2 * j as i32 - 4);
        }
    }
    let machines =
        [("mcodm", list(&[("lambda", "1000")])), ("mcsvm", list(&[("c", "10")])), ("mcsvm", list(&[("loss", "ww")]))];
    for (machine, given) in &machines {
        for bias in [Bias::Free, Bias::None, Bias::Feature(1.0)] {
            let found = fit(machine, given, &dense(&rows), &codes, LINEAR, bias, 1e-8).unwrap();
            let gap = found.outcome.gap.unwrap();
            assert!((0.0..=1e-8).contains(&gap), "{machine} {bias:?} {gap}");
            let again = fit(machine, given, &sparse(&rows), &codes, LINEAR, bias, 1e-8).unwrap();
            assert!(close(found.outcome.objective.unwrap(), again.outcome.objective.unwrap(), 1e-7));
        }
    }
}

/// The kernel route knows passes only, the linear one ends with Newton's method.
#[test]
fn newton_and_passes_find_the_same_free_intercepts() {
    let (rows, codes) = clouds(60, 3, 3, 1.0, 32);
    for (machine, given) in [("mcodm", list(&[("lambda", "20")])), ("mcsvm", list(&[("c", "0.5")]))] {
        let newton = fit(machine, &given, &dense(&rows), &codes, LINEAR, Bias::Free, 1e-9).unwrap();
        let passes = fit(machine, &given, &dense(&rows), &codes, AS_KERNEL, Bias::Free, 1e-5).unwrap();
        assert!(newton.outcome.gap.unwrap() <= 1e-9);
        let (a, b) = (newton.outcome.objective.unwrap(), passes.outcome.objective.unwrap());
        assert!(a <= b + 1e-8 * b && close(a, b, 2e-5), "{machine} {a} {b}");
        // They may all rise together at no cost: the sum is settled.
        for found in [newton, passes] {
            let (ScoreFunctions::Linear { intercepts, .. } | ScoreFunctions::Kernel { intercepts, .. }) =
                found.functions;
            assert!(intercepts.iter().sum::<f64>().abs() < 1e-12 && intercepts[0] != 0.0, "{machine} {intercepts:?}");
        }
    }
}

/// More weights than a Newton matrix is formed of, and many rows: conjugate gradients take its place.
#[test]
fn many_weights_that_crawl_are_certified() {
    let (mut rows, codes) = clouds(1200, 101, 10, 5.0, 21);
    for row in &mut rows {
        row.iter_mut().enumerate().for_each(|(j, x)| *x *= 1.03f64.powi(j as i32));
    }
    for (name, given, bias) in [("mcsvm", ("c", "1"), NONE), ("mcodm", ("lambda", "4096"), Bias::Free)] {
        let found = fit(name, &list(&[given]), &dense(&rows), &codes, LINEAR, bias, 1e-3).unwrap();
        let gap = found.outcome.gap.unwrap();
        assert!((0.0..=1e-3).contains(&gap), "{name} {bias:?}: {gap}");
        assert!(found.outcome.solver.contains("Newton"), "{}", found.outcome.solver);
    }
}

#[test]
fn many_classes_are_certified() {
    let (rows, codes) = clouds(600, 12, 70, 0.5, 13);
    for (name, given) in
        [("mcodm", list(&[("lambda", "500")])), ("mcsvm", list(&[])), ("mcsvm", list(&[("loss", "ww")]))]
    {
        let found = fit(name, &given, &dense(&rows), &codes, LINEAR, NONE, 1e-4).unwrap();
        assert!(found.outcome.gap.unwrap() <= 1e-4);
        let got = scores(&found.functions, &rows, &rows, LINEAR);
        assert_close(&[margins(&got, &codes)], std::slice::from_ref(&found.outcome.margins), 1e-8);
        if name == "mcsvm" {
            let each = |(s, &y): (&Vec<f64>, &u32)| {
                let hinge = |l: &usize| (1.0 - s[y as usize] + s[*l]).max(0.0);
                let losses: Vec<f64> = (0..70).filter(|l| *l != y as usize).map(|l| hinge(&l)).collect();
                if given.is_empty() { losses.iter().copied().fold(0.0, f64::max) } else { losses.iter().sum() }
            };
            let sum: f64 = got.iter().zip(&codes).map(each).sum();
            assert!(close(found.outcome.objective.unwrap(), half_norm(&found) + sum, 1e-9));
        }
    }
}

#[test]
fn kernel_rows_in_blocks_are_as_good_as_all_at_once() {
    let (rows, codes) = clouds(400, 5, 4, 0.8, 21);
    let (matrix, ones, kernel) = (dense(&rows), vec![1.0; 400], Kernel::Rbf { gamma: 0.2 });
    for (name, given) in [("mcodm", list(&[("lambda", "100"), ("mu", "0")])), ("mcsvm", list(&[("c", "1")]))] {
        let parameters = check_parameters(machine(name).unwrap(), &given).unwrap();
        for bias in [NONE, Bias::Feature(0.5), Bias::Free] {
            let run = |memory: u64, tol: f64, threads: usize| {
                let settings = Settings { tol, memory, ..Settings::default() };
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let fit = || fit_within(name, &parameters, &matrix, &codes, &ones, kernel, bias, settings);
                pool.install(fit).unwrap()
            };
            // The matrix of 1.3 MB as features; a part of its rows at a time, in either precision.
            let whole = run(1 << 30, 1e-6, 2);
            assert!(whole.outcome.gap.unwrap() <= 1e-6, "{name} {bias:?} {:?}", whole.outcome.gap);
            for tol in [1e-3, 1e-6] {
                let blocks = run(700_000, tol, 2);
                let (a, b) = (whole.outcome.objective.unwrap(), blocks.outcome.objective.unwrap());
                assert!(blocks.outcome.gap.unwrap() <= tol, "{name} {bias:?} {:?}", blocks.outcome.gap);
                assert!((a - b).abs() <= 1.01 * (tol + 1e-6) * a, "{name} {bias:?} {a} {b}");
                assert_eq!(blocks.functions, run(700_000, tol, 1).functions);
            }
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let (rows, codes) = clouds(700, 5, 4, 0.8, 14);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit("mcodm", &[], &dense(&rows), &codes, LINEAR, Bias::Free, 1e-4).unwrap())
    };
    let (a, b) = (run(1), run(3));
    assert_eq!(a.functions, b.functions);
    assert_eq!(a.outcome.gap, b.outcome.gap);
}
