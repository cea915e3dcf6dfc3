//! `widemargin verify`: what it prints and how it ends.

mod common;

use common::Place;

#[test]
fn a_fresh_model_agrees() {
    let place = Place::with_data();
    for options in ["--machine svm", "--machine odm --kernel rbf --bias none", "--machine ldm --bias 2 --scale minmax"]
    {
        assert_eq!(place.run(&format!("train train.libsvm a.model {options}")).code, 0);
        let run = place.run("verify train.libsvm a.model");
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
        assert!(run.stderr.contains("claimed") && run.stderr.contains("recomputed") && run.stderr.contains("agrees"));
        // Numbers of a common size have no exponent.
        let objective = run.stderr.lines().find(|line| line.starts_with("objective")).unwrap();
        assert!(objective.split_whitespace().skip(1).all(|number| !number.contains('e')), "{objective}");
        let found = place.json("verify train.libsvm a.model --json");
        assert_eq!(found["agrees"], true);
        assert!(found["reason"].is_null());
        let close = |name: &str| {
            let (now, then) = (found[name].as_f64().unwrap(), found["claimed"][name].as_f64().unwrap());
            (now - then).abs() <= 1e-6 * now.abs().max(1.0)
        };
        assert!(close("objective") && close("dual_objective") && close("gap"));
        assert_eq!(found["claimed"]["converged"], true);
        assert_eq!(found["claimed"]["tol"], 1e-3);
    }
}

#[test]
fn other_rows_end_with_status_1() {
    let place = Place::with_data();
    assert_eq!(place.run("train train.libsvm a.model --machine svm").code, 0);
    let run = place.run("verify test.libsvm a.model --json");
    assert_eq!(run.code, 1);
    let found: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(found["agrees"], false);
    assert!(run.stderr.contains("these are not the rows the model was trained on"), "{}", run.stderr);
    assert_eq!(place.run("verify missing.libsvm a.model").code, 1);
    assert_eq!(place.run("verify train.libsvm").code, 2);
}

#[test]
fn weights_are_given_again() {
    let place = Place::with_data();
    let rows = place.read("train.libsvm").lines().count();
    let weights: String = (0..rows).map(|i| format!("{}\n", [1, 2, 0][i % 3])).collect();
    place.file("weights.txt", &weights);
    let train = "train train.libsvm a.model --machine svm --kernel rbf --weights weights.txt --class-weight balanced";
    assert_eq!(place.run(train).code, 0);
    assert_eq!(place.json("verify train.libsvm a.model --weights weights.txt --json")["agrees"], true);
    let run = place.run("verify train.libsvm a.model");
    assert!(run.code == 1 && run.stderr.contains("row weights"), "{}", run.stderr);
}

/// Such a model could once be written and not be read.
#[test]
fn a_model_without_support_rows_is_read_again() {
    let place = Place::new();
    assert_eq!(place.run("train iris a.model --machine svr --epsilon 5 --kernel rbf").code, 0);
    assert_eq!(place.run("predict iris a.model out.txt").code, 0);
    assert_eq!(place.run("info a.model").code, 0);
    assert_eq!(place.json("verify iris a.model --json")["agrees"], true);
}

#[test]
fn a_machine_without_a_gap_says_so() {
    let place = Place::with_data();
    assert_eq!(place.run("train train.libsvm a.model --machine msvmav").code, 0);
    let found = place.json("verify train.libsvm a.model --json");
    assert!(found["agrees"].is_null() && found["gap"].is_null());
    assert!(found["reason"].as_str().unwrap().contains("no duality gap"));
}
