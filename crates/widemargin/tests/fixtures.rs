//! The convex machines against an independent interior-point solver. The cases are not part of the project: the test
//! says so and passes where they are absent.

use serde_json::Value as Json;
use std::path::PathBuf;
use widemargin::data::{Dataset, Dense, Labels, Matrix};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Outcome, SolverChoice, Value, check_parameters, machine};
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures")
}

fn numbers(value: &Json) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn kernel(case: &Json) -> (Kernel, Gamma) {
    let k = &case["kernel"];
    let (degree, coef0) = (k["degree"].as_u64().unwrap_or(3) as u32, k["coef0"].as_f64().unwrap_or(0.0));
    let kernel = match k["kind"].as_str().unwrap() {
        "linear" => Kernel::Linear,
        "rbf" => Kernel::Rbf { gamma: 1.0 },
        "laplacian" => Kernel::Laplacian { gamma: 1.0 },
        "poly" => Kernel::Poly { gamma: 1.0, degree, coef0 },
        other => panic!("kernel {other}"),
    };
    (kernel, k["gamma"].as_f64().map_or(Gamma::Scale, Gamma::Value))
}

fn fit(case: &Json, solver: SolverChoice, tol: f64) -> Outcome {
    let rows: Vec<Vec<f64>> = case["x"].as_array().unwrap().iter().map(numbers).collect();
    let labels: Vec<String> = case["y"].as_array().unwrap().iter().map(|y| y.to_string()).collect();
    let (m, d) = (rows.len(), rows[0].len());
    let rows = Matrix::DenseF64(Dense::new(m, d, rows.concat()).unwrap());
    let data = Dataset::new(case["name"].as_str().unwrap(), rows, Some(Labels::new(&labels)));
    let machine = machine(case["machine"].as_str().unwrap()).unwrap();
    let params = case["params"].as_object().unwrap().iter();
    let given: Vec<(String, Value)> = params.map(|(k, v)| (k.clone(), v.as_f64().unwrap().into())).collect();
    let (kernel, gamma) = kernel(case);
    let options = TrainOptions {
        approx: None,
        machine,
        parameters: check_parameters(machine, &given).unwrap(),
        kernel,
        gamma,
        bias: Bias::None,
        scaling: None,
        class_weight: ClassWeight::Equal,
        multiclass: None,
        solver,
        settings: Settings { tol, ..Settings::default() },
    };
    train(&data, None, &options, Default::default()).unwrap().1
}

fn check(prefixes: &[&str], solver: SolverChoice, tol: f64, objective: f64, margin: f64) {
    let Ok(entries) = std::fs::read_dir(folder()) else {
        eprintln!("skipped: {} is absent", folder().display());
        return;
    };
    let mut paths: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    paths.sort();
    let mut wrong = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.extension().is_none_or(|e| e != "json") || !prefixes.iter().any(|p| name.starts_with(p)) {
            continue;
        }
        let case: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let expect = &case["expect"];
        let got = fit(&case, solver, tol);
        if let Some(value) = expect["objective"].as_f64() {
            let reached = got.objective.unwrap();
            if (reached - value).abs() > objective * value.abs() {
                wrong.push(format!("{name}: objective {reached}, expected {value} ({}, {:?})", got.solver, got.stop));
            }
            let gap = got.gap.unwrap();
            if !(-1e-9..=tol.max(1e-6)).contains(&gap) {
                wrong.push(format!("{name}: gap {gap:e} ({}, {} steps)", got.solver, got.iterations));
            }
        }
        if expect["margins"].is_array() {
            let worst =
                numbers(&expect["margins"]).iter().zip(&got.margins).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            if worst > margin {
                wrong.push(format!("{name}: margins differ by {worst}"));
            }
        }
        if let (Some(value), true) = (expect["loo_bound"].as_f64(), tol <= 1e-8) {
            let bound = got.loo_bound.unwrap_or(f64::NAN);
            if (bound - value).abs() > 2e-3 * value.abs() || bound.is_nan() {
                wrong.push(format!("{name}: leave-one-out bound {bound}, expected {value}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} wrong", wrong.join("\n"), wrong.len());
}

#[test]
fn newton_is_exact() {
    check(&["svm", "ldm", "odm", "lssvm"], SolverChoice::Newton, 1e-9, 1e-6, 1e-3);
}

#[test]
fn automatic_choice_is_exact() {
    check(&["svm", "ldm", "odm", "lssvm"], SolverChoice::Auto, 1e-9, 1e-6, 1e-3);
}

#[test]
fn coordinate_descent_with_its_fallback_is_exact() {
    check(&["svm", "ldm", "odm", "lssvm"], SolverChoice::Dcd, 1e-7, 1e-6, 1e-2);
}

#[test]
fn svrg_comes_close_on_smooth_losses() {
    check(&["odm-plain-linear", "odm-skewed-linear", "odm-clash-linear"], SolverChoice::Svrg, 1e-4, 1e-3, 0.2);
}
