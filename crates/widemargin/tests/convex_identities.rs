//! What must be equal: storage, precision, repetition and weight, one solver and another, one machine and another.

mod common;
use common::{Ask, BIASES, CONVEX, ask, dense, furthest, noisy, single, sparse, weights};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice};
use widemargin::train::ClassWeight;

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };

#[test]
fn dense_is_sparse_and_single_is_nearly_double() {
    let (values, labels) = noisy(80, 6, 1);
    for machine in CONVEX {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let ask = Ask { bias, kernel, ..ask(machine) };
                let (_, a) = ask.fit(&dense(&values, &labels));
                let (_, b) = ask.fit(&sparse(&values, &labels));
                let (_, c) = ask.fit(&single(&values, &labels));
                let context = format!("{machine} {bias:?} {kernel:?}");
                assert!(furthest(&a.margins, &b.margins) < 1e-6, "{context}");
                assert!(furthest(&a.margins, &c.margins) < 1e-3, "{context}");
                let (a, c) = (a.objective.unwrap(), c.objective.unwrap());
                assert!((a - c).abs() < 1e-5 * a.abs(), "{context}: {a} {c}");
            }
        }
    }
}

#[test]
fn solvers_agree() {
    let (values, labels) = noisy(120, 5, 2);
    let data = sparse(&values, &labels);
    for machine in CONVEX {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let newton = Ask { bias, kernel, solver: SolverChoice::Newton, ..ask(machine) };
                let (_, exact) = newton.fit(&data);
                assert!(exact.stop.converged() && exact.gap.unwrap() < 1e-8, "{machine} {bias:?}: {exact:?}");
                let (_, dcd) = Ask { solver: SolverChoice::Dcd, tol: 1e-6, ..newton }.fit(&data);
                let (a, b) = (exact.objective.unwrap(), dcd.objective.unwrap());
                let context = format!("{machine} {bias:?} {kernel:?} {} {:?}", dcd.solver, dcd.stop);
                assert!((a - b).abs() < 2e-6 * a.abs(), "{context}: {a} {b}");
                assert!(dcd.dual_objective.unwrap() <= a + 1e-9 * a.abs(), "{context}: the dual is a lower bound");
            }
        }
    }
}

#[test]
fn coordinate_descent_needs_no_help_on_easy_problems() {
    let (values, labels) = noisy(200, 8, 3);
    for machine in ["svm", "odm", "ldm", "svr"] {
        for bias in BIASES {
            let ask = Ask { bias, solver: SolverChoice::Dcd, tol: 1e-3, max_iter: Some(1000), ..ask(machine) };
            let (_, outcome) = ask.fit(&sparse(&values, &labels));
            assert!(outcome.stop.converged(), "{machine} {bias:?}: {:?} {:?}", outcome.gap, outcome.solver);
        }
    }
}

#[test]
fn a_weight_is_a_repetition() {
    let (values, labels) = noisy(40, 4, 4);
    let times: Vec<usize> = (0..40).map(|i| 1 + i % 3).collect();
    let (mut repeated, mut repeated_labels) = (Vec::new(), Vec::new());
    for i in 0..40 {
        for _ in 0..times[i] {
            repeated.extend_from_slice(&values[i * 4..(i + 1) * 4]);
            repeated_labels.push(labels[i]);
        }
    }
    let counts: Vec<f64> = times.iter().map(|t| *t as f64).collect();
    for machine in CONVEX {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let ask = Ask { bias, kernel, ..ask(machine) };
                let (_, a) = ask.try_fit(&dense(&values, &labels), Some(&counts)).unwrap();
                let (_, b) = ask.fit(&dense(&repeated, &repeated_labels));
                let spread: Vec<f64> = (0..40).flat_map(|i| vec![a.margins[i]; times[i]]).collect();
                let context = format!("{machine} {bias:?} {kernel:?}");
                assert!(furthest(&spread, &b.margins) < 1e-5, "{context}: {}", furthest(&spread, &b.margins));
                let (x, y) = (a.objective.unwrap(), b.objective.unwrap());
                assert!((x - y).abs() < 1e-7 * x.abs(), "{context}: {x} {y}");
            }
        }
    }
}

#[test]
fn zero_weight_is_absence_and_class_weights_multiply() {
    let (values, labels) = noisy(30, 3, 5);
    let ask = ask("odm");
    let mut kept = vec![1.0; 30];
    kept[7] = 0.0;
    let (model, _) = ask.try_fit(&dense(&values, &labels), Some(&kept)).unwrap();
    let rest: Vec<f64> = values.iter().enumerate().filter(|(k, _)| k / 3 != 7).map(|(_, v)| *v).collect();
    let rest_labels: Vec<&str> = labels.iter().enumerate().filter(|(i, _)| *i != 7).map(|(_, l)| *l).collect();
    let (other, _) = ask.fit(&dense(&rest, &rest_labels));
    assert!(furthest(&weights(&model), &weights(&other)) < 1e-9);

    let by_class = Ask { class_weight: ClassWeight::ByLabel(vec![("yes".into(), 3.0)]), ..ask.clone() };
    let by_row: Vec<f64> = labels.iter().map(|l| if *l == "yes" { 3.0 } else { 1.0 }).collect();
    let (a, _) = by_class.fit(&dense(&values, &labels));
    let (b, _) = ask.try_fit(&dense(&values, &labels), Some(&by_row)).unwrap();
    assert!(furthest(&weights(&a), &weights(&b)) < 1e-12);
}

#[test]
fn machines_that_are_one_another() {
    let (values, labels) = noisy(60, 4, 6);
    let data = dense(&values, &labels);
    let same = |a: Ask, b: Ask, what: &str| {
        for bias in BIASES {
            for kernel in [Kernel::Linear, RBF] {
                let (_, x) = Ask { bias, kernel, ..a.clone() }.fit(&data);
                let (_, y) = Ask { bias, kernel, ..b.clone() }.fit(&data);
                assert!(furthest(&x.margins, &y.margins) < 1e-5, "{what} {bias:?} {kernel:?}");
            }
        }
    };
    let with = |machine, parameters: &[(&'static str, f64)]| Ask { parameters: parameters.to_vec(), ..ask(machine) };
    same(with("ldm", &[("lambda1", 0.0), ("lambda2", 0.0), ("c", 2.0)]), with("svm", &[("c", 2.0)]), "ldm = svm");
    same(
        with("odm-l", &[("lambda1", 0.5), ("lambda2", 0.1), ("c", 120.0)]),
        with("ldm", &[("lambda1", 0.25), ("lambda2", 0.1), ("c", 2.0)]),
        "odm-l = ldm",
    );
    same(with("odm", &[("c1", 120.0), ("c2", 0.0), ("d", 0.0)]), with("l2svm", &[("c", 2.0)]), "odm = squared hinge");
    same(with("odm", &[("c1", 9.0), ("c2", 9.0), ("d", 0.0)]), with("lssvm", &[("c", 9.0)]), "odm = lssvm");
    same(
        with("odm", &[("lambda", 32.0), ("mu", 0.5), ("theta", 0.2)]),
        with("odm", &[("c1", 50.0), ("c2", 25.0), ("d", 0.2)]),
        "both notations",
    );
}

#[test]
fn linear_is_the_linear_kernel_whatever_the_route() {
    // More features than rows and more than the normal equations take: solved through inner products of rows.
    let (m, d) = (25, 2100);
    let (values, labels) = noisy(m, d, 7);
    for machine in ["odm", "svm", "ldm"] {
        for bias in BIASES {
            let ask = Ask { bias, ..ask(machine) };
            let (_, products) = ask.fit(&sparse(&values, &labels));
            assert!(products.solver.contains("inner products"), "{}", products.solver);
            let poly = Kernel::Poly { gamma: 1.0, degree: 1, coef0: 0.0 };
            let (_, kernel) = Ask { kernel: poly, ..ask }.fit(&sparse(&values, &labels));
            assert!(furthest(&products.margins, &kernel.margins) < 1e-6, "{machine} {bias:?}");
        }
    }
}

#[test]
fn conjugate_gradients_reach_the_same_point() {
    // Wide and tall enough that neither normal equations nor inner products are used.
    let (m, d) = (3100, 2200);
    let mut random = widemargin::random::Random::new(9, 0);
    let (mut offsets, mut columns, mut stored, mut labels) = (vec![0u64], Vec::new(), Vec::new(), Vec::new());
    for _ in 0..m {
        let mut chosen: Vec<u32> = (0..8).map(|_| random.below(d) as u32).collect();
        chosen.sort_unstable();
        chosen.dedup();
        labels.push(if chosen[0].is_multiple_of(3) || random.unit() < 0.2 { "a" } else { "b" });
        stored.extend(chosen.iter().map(|_| 1.0));
        columns.extend(chosen);
        offsets.push(stored.len() as u64);
    }
    let rows = widemargin::data::Csr::new(d, offsets, columns, stored).unwrap();
    let data =
        widemargin::data::Dataset { rows: widemargin::data::Matrix::SparseF64(rows), ..dense(&vec![0.0; m], &labels) };
    for machine in ["odm", "svm", "ldm"] {
        let newton = Ask { solver: SolverChoice::Newton, tol: 1e-6, ..ask(machine) };
        let (_, a) = newton.fit(&data);
        assert!(a.solver.contains("conjugate") && a.stop.converged(), "{machine}: {} {:?}", a.solver, a.gap);
        let (_, b) = Ask { solver: SolverChoice::Dcd, tol: 1e-5, ..newton }.fit(&data);
        let (x, y) = (a.objective.unwrap(), b.objective.unwrap());
        assert!((x - y).abs() < 1e-5 * x.abs(), "{machine}: {x} {y} ({}, {:?})", b.solver, b.gap);
    }
}

#[test]
fn stochastic_solvers_come_near_and_say_how_near() {
    let (values, labels) = noisy(500, 6, 10);
    let data = sparse(&values, &labels);
    for (machine, solver) in [
        ("ldm", SolverChoice::Asgd),
        ("odm", SolverChoice::Svrg),
        ("odm-l", SolverChoice::Svrg),
        ("svm", SolverChoice::Asgd),
    ] {
        for bias in BIASES {
            let exact = ask(machine);
            let (_, best) = Ask { bias, ..exact.clone() }.fit(&data);
            let (_, got) = Ask { bias, solver, tol: 1e-3, ..exact }.fit(&data);
            let (a, b) = (best.objective.unwrap(), got.objective.unwrap());
            let context = format!("{machine} {solver:?} {bias:?}");
            assert!(b >= a - 1e-9 * a.abs() && b < a + 0.15 * a.abs(), "{context}: {a} {b}");
            assert!(got.dual_objective.unwrap() <= a + 1e-9 * a.abs(), "{context}");
        }
    }
}

#[test]
fn leaving_one_out_in_closed_form_is_leaving_one_out() {
    let (values, labels) = noisy(40, 3, 11);
    for bias in BIASES {
        for kernel in [Kernel::Linear, RBF] {
            // Without a band every row stays active, and the closed form is exact.
            let ask = Ask { bias, kernel, ..ask("lssvm") };
            let (_, all) = ask.fit(&dense(&values, &labels));
            let closed = all.loo_margins.unwrap();
            for i in [0, 13, 39] {
                // The loss is divided by the number of rows: keep the same cost for each.
                let weights: Vec<f64> = (0..40).map(|j| if j == i { 0.0 } else { 1.0 }).collect();
                let refit = Ask { parameters: vec![("c", 64.0 * 39.0 / 40.0)], ..ask.clone() };
                let (model, _) = refit.try_fit(&dense(&values, &labels), Some(&weights)).unwrap();
                let row = dense(&values[i * 3..(i + 1) * 3], &labels[i..=i]);
                let score = model.scores(&row.rows).unwrap()[0];
                let margin = if labels[i] == "yes" { score } else { -score };
                assert!((margin - closed[i]).abs() < 1e-7, "{bias:?} {kernel:?}: {margin} {}", closed[i]);
            }
        }
    }
}

#[test]
fn a_weighted_row_is_left_out_with_all_of_its_weight() {
    let (values, labels) = noisy(40, 3, 21);
    let weights: Vec<f64> = (0..40).map(|i| [0.25, 1.0, 7.0][i % 3]).collect();
    let total: f64 = weights.iter().sum();
    for bias in BIASES {
        for kernel in [Kernel::Linear, RBF] {
            let ask = Ask { bias, kernel, ..ask("lssvm") };
            let (_, all) = ask.try_fit(&dense(&values, &labels), Some(&weights)).unwrap();
            let closed = all.loo_margins.unwrap();
            for i in [0, 13, 38] {
                let others: Vec<f64> = (0..40).map(|j| if j == i { 0.0 } else { weights[j] }).collect();
                let cost = 64.0 * (total - weights[i]) / total;
                let refit = Ask { parameters: vec![("c", cost)], ..ask.clone() };
                let (model, _) = refit.try_fit(&dense(&values, &labels), Some(&others)).unwrap();
                let row = dense(&values[i * 3..(i + 1) * 3], &labels[i..=i]);
                let score = model.scores(&row.rows).unwrap()[0];
                let margin = if labels[i] == "yes" { score } else { -score };
                assert!((margin - closed[i]).abs() < 1e-7, "{bias:?} {kernel:?}: {margin} {}", closed[i]);
            }
        }
    }
}

#[test]
fn balanced_classes_do_not_hide_errors_left_out() {
    // One row in ten is positive, and hard to tell: as one of ten copies each would vouch for itself.
    let (m, d, mut random) = (120, 6, widemargin::random::Random::new(31, 0));
    let values: Vec<f64> = (0..m * d).map(|_| random.normal()).collect();
    let labels: Vec<&str> = (0..m).map(|i| if i % 10 == 0 { "yes" } else { "no" }).collect();
    let class_weight = widemargin::train::ClassWeight::Balanced;
    let ask = Ask { kernel: RBF, class_weight, ..ask("odm") };
    let (_, all) = ask.fit(&dense(&values, &labels));
    let weight = |i: usize| if labels[i] == "yes" { 5.0 } else { 5.0 / 9.0 };
    let refit = |i: usize| {
        let by_label = vec![("yes".to_string(), 5.0), ("no".to_string(), 5.0 / 9.0)];
        let rest: Vec<f64> = (0..m).map(|j| if j == i { 0.0 } else { 1.0 }).collect();
        let scale = (m as f64 - weight(i)) / m as f64;
        let parameters = vec![("c1", 256.0 * scale), ("c2", 32.0 * scale), ("d", 0.4)];
        let class_weight = widemargin::train::ClassWeight::ByLabel(by_label);
        let (model, _) =
            Ask { parameters, class_weight, ..ask.clone() }.try_fit(&dense(&values, &labels), Some(&rest)).unwrap();
        let score = model.scores(&dense(&values[i * d..(i + 1) * d], &labels[i..=i]).rows).unwrap()[0];
        if (score > 0.0) == (labels[i] == "yes") { 0.0 } else { weight(i) }
    };
    let wrong: f64 = (0..m).map(refit).sum::<f64>() / m as f64;
    let closed = all.loo_error.unwrap();
    assert!(wrong > 0.3 && (wrong - closed).abs() < 0.06, "refits {wrong}, closed form {closed}");
}

#[test]
fn threads_do_not_change_a_bit() {
    let (values, labels) = noisy(3000, 20, 12);
    let fit_with = |threads: usize, ask: &Ask| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| ask.fit(&dense(&values, &labels))).0
    };
    for machine in ["odm", "svm", "ldm"] {
        let ask = Ask { tol: 1e-4, ..ask(machine) };
        assert_eq!(fit_with(1, &ask), fit_with(2, &ask), "{machine}");
        assert_eq!(fit_with(1, &ask), fit_with(5, &ask), "{machine}");
    }
    let (values, labels) = noisy(400, 6, 13);
    let kernel = Ask { kernel: RBF, bias: Bias::Free, ..ask("odm") };
    let fit_with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| kernel.fit(&sparse(&values, &labels))).0
    };
    assert_eq!(fit_with(1), fit_with(3));
}

#[test]
fn few_rows_are_solved_to_rounding_and_their_order_does_not_show() {
    let (values, labels) = noisy(60, 5, 8);
    let backwards: Vec<f64> = values.chunks(5).rev().flatten().copied().collect();
    let reversed: Vec<&str> = labels.iter().rev().copied().collect();
    for machine in CONVEX {
        for kernel in [Kernel::Linear, RBF] {
            let rough = Ask { kernel, tol: 1e-3, ..ask(machine) };
            let (_, a) = rough.fit(&dense(&values, &labels));
            let (_, b) = rough.fit(&dense(&backwards, &reversed));
            let there: Vec<f64> = b.margins.iter().rev().copied().collect();
            assert!(a.stop.converged() && furthest(&a.margins, &there) < 1e-7, "{machine} {kernel:?}: {:?}", a.gap);
        }
    }
}
