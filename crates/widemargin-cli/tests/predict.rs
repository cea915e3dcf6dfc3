//! `widemargin predict`, `info`, `convert`.

mod common;
use common::Place;

fn trained() -> Place {
    let place = Place::with_data();
    place.ok("train train.libsvm m --quiet");
    place
}

#[test]
fn labels_come_out_as_the_training_file_wrote_them() {
    let place = trained();
    let run = place.ok("predict test.libsvm m");
    assert_eq!(run.stdout.lines().count(), 30);
    assert!(run.stdout.lines().all(|l| l == "+1" || l == "-1"));
    assert!(run.stderr.contains("accuracy"), "{}", run.stderr);
    place.ok("predict test.libsvm m out");
    assert_eq!(place.read("out"), run.stdout);
    assert_eq!(place.ok("predict test.libsvm m out --quiet").stderr, "");
    assert_eq!(place.ok("predict test.libsvm m -").stdout, run.stdout);
    place.fails("predict test.libsvm m - --json", 2, &["standard output", "--json"]);
    place.fails("predict test.libsvm m --scores -", 2, &["standard output", "scores"]);
    assert!(!place.has("-"));
}

#[test]
fn scores_decide_the_labels() {
    let place = trained();
    place.ok("predict test.libsvm m out --scores scores");
    for (label, score) in place.read("out").lines().zip(place.read("scores").lines()) {
        let score: f64 = score.parse().unwrap();
        assert_eq!(label, if score > 0.0 { "+1" } else { "-1" });
    }
}

#[test]
fn json_counts_add_up() {
    let place = trained();
    let report = place.json("predict test.libsvm m --json");
    let counts = report["confusion"]["counts"].as_array().unwrap();
    let count = |t: usize, p: usize| counts[t][p].as_u64().unwrap();
    assert_eq!(report["rows"], 30);
    assert_eq!(count(0, 0) + count(0, 1) + count(1, 0) + count(1, 1), 30);
    let accuracy = (count(0, 0) + count(1, 1)) as f64 / 30.0;
    assert!((report["accuracy"].as_f64().unwrap() - accuracy).abs() < 1e-12);
    assert!(accuracy > 0.7);
}

#[test]
fn unknown_labels_and_features_are_told() {
    let place = trained();
    place.file("odd.libsvm", "1 1:1 9:4\n7 1:2\n-1.0 1:-1\n");
    let run = place.ok("predict odd.libsvm m out");
    assert!(run.stderr.contains("3 features") && run.stderr.contains("ignored"), "{}", run.stderr);
    assert_eq!(run.stderr.matches("ignored").count(), 1);
    assert!(run.stderr.contains("does not know") && run.stderr.contains('7'), "{}", run.stderr);
    let report = place.json("predict odd.libsvm m --json");
    assert_eq!(report["correct"], 2);
    assert_eq!(report["unknown_labels"], serde_json::json!(["7"]));
}

#[test]
fn rows_without_labels_are_predicted() {
    let place = trained();
    place.file("bare.libsvm", "1:1 2:1\n1:-1\n");
    let run = place.ok("predict bare.libsvm m");
    assert_eq!(run.stdout, "+1\n-1\n");
    assert!(!run.stderr.contains("accuracy"));
    assert!(place.json("predict bare.libsvm m --json")["accuracy"].is_null());
    assert_eq!(place.run_with("predict - m -q", "1:1 2:1\n").stdout, "+1\n");
}

#[test]
fn what_is_no_model_is_refused() {
    let place = trained();
    place.fails("predict test.libsvm train.libsvm", 1, &["train.libsvm", "not a usable model"]);
    place.fails("predict test.libsvm nosuch", 1, &["nosuch"]);
    let bytes = std::fs::read(place.path("m")).unwrap();
    std::fs::write(place.path("cut"), &bytes[..bytes.len() - 3]).unwrap();
    place.fails("predict test.libsvm cut out", 1, &["cut", "damaged"]);
    assert!(!place.has("out"));
}

#[test]
fn info_tells_models_from_data() {
    let place = trained();
    let model = place.json("info m --json");
    assert_eq!((&model["kind"], &model["machine"]), (&"model".into(), &"odm".into()));
    assert_eq!(model["labels"], serde_json::json!(["-1", "+1"]));
    let data = place.json("info train.libsvm --json");
    assert_eq!((&data["kind"], &data["rows"]), (&"data".into(), &60.into()));
    assert!(place.ok("info m").stdout.contains("trained on  60 rows"));
    assert!(place.ok("info train.libsvm").stdout.contains("+1: 30 rows (50.00 %)"));
    place.fails("info nosuch", 1, &["nosuch"]);
    place.fails("info .", 1, &["directory"]);
}

#[test]
fn converting_there_and_back_changes_nothing() {
    let place = trained();
    let expected = place.ok("predict test.libsvm m").stdout;
    for ending in ["csv", "tsv", "parquet", "libsvm.gz", "csv.zst", "tsv.xz"] {
        place.ok(&format!("convert test.libsvm x.{ending}"));
        assert_eq!(place.ok(&format!("predict x.{ending} m")).stdout, expected, "{ending}");
    }
    assert_eq!(place.ok("convert test.libsvm -").stdout, place.ok("convert x.csv -").stdout);
    place.fails("convert test.libsvm - --json", 2, &["standard output"]);
    place.ok("convert test.libsvm plain --to-format csv");
    assert_eq!(place.ok("predict plain m --format csv").stdout, expected);
    assert_eq!(place.json("convert x.csv.zst y.libsvm --json")["rows"], 30);
    place.fails("convert nosuch y.csv", 1, &["nosuch"]);
    place.fails("convert test.libsvm nosuch/y.csv", 1, &["nosuch/y.csv"]);
}
