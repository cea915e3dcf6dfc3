//! Scores, `cross-validate`, `tune --score`, `coefficients`, `export`, models of other programs.

mod common;
use common::Place;
use serde_json::Value;

const KEYS: [&str; 10] = [
    "accuracy",
    "majority",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "auc",
    "average_precision",
    "log_loss",
    "brier",
];

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Three classes on a line.
fn three(count: usize) -> String {
    let line =
        |i: usize| format!("{} 1:{} 2:{}\n", i % 3, (i % 3) as f64 + (i % 7) as f64 / 5.0, (i % 5) as f64 / 10.0);
    (0..count).map(line).collect()
}

#[test]
fn predictions_are_scored() {
    let place = Place::with_data();
    place.ok("train train.libsvm m --quiet");
    let report = place.json("predict test.libsvm m --json");
    let scores = &report["scores"];
    assert_eq!(keys(scores), KEYS);
    assert_eq!(scores["accuracy"], report["accuracy"]);
    assert_eq!(scores["majority"], 0.5);
    assert!(scores["auc"].as_f64().unwrap() > 0.7 && scores["log_loss"].is_null() && scores["brier"].is_null());
    let class = &report["by_class"][1];
    assert_eq!((class["label"].as_str(), class["rows"].as_u64()), (Some("+1"), Some(15)));
    assert_eq!(class["recall"], scores["recall"]);
    place.ok("train train.libsvm p --probability --quiet");
    let scores = &place.json("predict test.libsvm p --json")["scores"];
    assert!(scores["log_loss"].as_f64().unwrap() < 0.7 && scores["brier"].as_f64().unwrap() < 0.25);
    let told = place.ok("predict test.libsvm p out").stderr;
    assert!(told.contains("balanced accuracy") && told.contains("precision") && told.contains("brier"), "{told}");
    assert!(report["reliability"].is_null() && told.contains("(expected calibration error)"), "{told}");
    for (data, model) in [("test.libsvm", "p"), ("three", "q")] {
        if model == "q" {
            place.file("three", &three(90));
            place.ok("train three q --probability --quiet");
        }
        let report = place.json(&format!("predict {data} {model} --json"));
        let bins = report["reliability"]["bins"].as_array().unwrap();
        let of = |bin: &Value, key: &str| bin[key].as_f64().unwrap();
        let rows: f64 = bins.iter().map(|bin| of(bin, "rows")).sum();
        let far = |bin: &Value| of(bin, "rows") / rows * (of(bin, "predicted") - of(bin, "found")).abs();
        let error = of(&report["reliability"], "error");
        assert!(rows == report["rows"].as_f64().unwrap() && bins.len() > 1, "{report}");
        assert!((error - bins.iter().map(far).sum::<f64>()).abs() < 1e-12 && error < 0.4, "{report}");
    }
    place.file("bare.libsvm", "1:1 2:1\n1:-1\n");
    let scores = &place.json("predict bare.libsvm p --json")["scores"];
    assert!(KEYS.iter().all(|key| scores[key].is_null()));
}

#[test]
fn folds_are_scored() {
    let place = Place::with_data();
    let report = place.json("cross-validate train.libsvm -v 3 --repeats 2 --probability --json");
    let folds = report["by_fold"].as_array().unwrap();
    assert_eq!((folds.len(), keys(&report["scores"]), keys(&report["deviations"])), (6, KEYS.into(), KEYS.into()));
    for key in KEYS {
        let values: Vec<f64> = folds.iter().map(|fold| fold[key].as_f64().unwrap()).collect();
        let mean = values.iter().sum::<f64>() / 6.0;
        assert!((report["scores"][key].as_f64().unwrap() - mean).abs() < 1e-12, "{key}");
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 5.0;
        assert!((report["deviations"][key].as_f64().unwrap() - square.sqrt()).abs() < 1e-12, "{key}");
    }
    // What a search finds for the same point on the same folds.
    let one = place.json("cross-validate train.libsvm -m svm --c 2 --json");
    let tuned = place.json("tune train.libsvm -m svm --grid c=2 --select cv --json");
    let gap = one["scores"]["accuracy"].as_f64().unwrap() - tuned["accuracy"].as_f64().unwrap();
    assert!(gap.abs() < 1e-12, "{gap}");
    let text = place.ok("cross-validate train.libsvm").stdout;
    assert!(text.contains("mean") && text.contains("sd") && text.contains("fold 5") && text.contains("auc"), "{text}");
    place.fails("cross-validate train.libsvm --folds 1", 2, &[">= 2"]);
    place.fails("cross-validate train.libsvm --folds 61", 2, &["60 rows"]);
    place.file("three.libsvm", &three(60));
    let many = place.json("cross-validate three.libsvm --json");
    assert!(many["scores"]["auc"].as_f64().unwrap() > 0.7 && many["classes"] == 3);
}

#[test]
fn a_search_goes_by_any_score() {
    let place = Place::with_data();
    for score in ["accuracy", "balanced_accuracy", "f1", "precision", "recall", "auc", "average_precision"] {
        for (machine, select) in [("odm", "loo"), ("svm", "cv")] {
            let c = if machine == "odm" { "c1" } else { "c" };
            let words = format!("tune train.libsvm -m {machine} --grid {c}=0.01;1;100 --score {score} --json");
            let report = place.json(&words);
            assert_eq!((report["score"].as_str(), report["select"].as_str()), (Some(score), Some(select)));
            let best = report["value"].as_f64().unwrap();
            for trial in report["trials"].as_array().unwrap() {
                assert!(1.0 - trial["cost"].as_f64().unwrap() <= best + 1e-12, "{words}: {trial}");
            }
        }
    }
    let one = place.json("cross-validate train.libsvm -m svm --c 1 --json");
    let tuned = place.json("tune train.libsvm -m svm --grid c=1 --score auc --json");
    assert!((one["scores"]["auc"].as_f64().unwrap() - tuned["value"].as_f64().unwrap()).abs() < 1e-12);
    let told = place.ok("tune train.libsvm -m svm --grid c=1 --score f1").stdout;
    assert!(told.contains("f1, the mean of the folds"), "{told}");
    place.fails("tune train.libsvm --score f1 --select loo-loss", 2, &["f1"]);
    place.fails("tune train.libsvm --score best", 2, &["balanced_accuracy"]);
}

#[test]
fn weights_are_listed_by_size() {
    let place = Place::with_data();
    place.ok("train train.libsvm m --scale standard --quiet");
    let report = place.json("coefficients m --json");
    let weights = |j: usize, key: &str| report["features"][j][key][0].as_f64().unwrap();
    assert!(weights(0, "scaled").abs() >= weights(1, "scaled").abs());
    // They are the score, of rows as they come.
    place.file("rows.libsvm", "1:0.3 2:-2.1 3:1.7\n");
    place.ok("predict rows.libsvm m --scores scores out --quiet");
    let x = |name: &str| match name {
        "x1" => 0.3,
        "x2" => -2.1,
        _ => 1.7,
    };
    let sum: f64 = (0..3).map(|j| weights(j, "weights") * x(report["features"][j]["feature"].as_str().unwrap())).sum();
    let score: f64 = place.read("scores").trim().parse().unwrap();
    assert!((sum + report["intercepts"][0].as_f64().unwrap() - score).abs() < 1e-9);
    assert_eq!(place.ok("coefficients m --top 2 --style csv").stdout.lines().count(), 4);
    place.ok("train train.libsvm k --kernel rbf --quiet");
    place.fails("coefficients k", 2, &["rbf kernel", "--kernel linear"]);
}

#[test]
fn models_leave_as_onnx() {
    let place = Place::with_data();
    place.ok("train train.libsvm m --kernel rbf --quiet");
    let report = place.json("export m m.onnx --json");
    assert_eq!((report["inputs"].as_u64(), report["outputs"][1].as_str()), (Some(3), Some("scores")));
    assert_eq!(std::fs::read(place.path("m.onnx")).unwrap().len() as u64, report["bytes"].as_u64().unwrap());
    place.fails("export m m.bin", 2, &[".onnx"]);
    place.fails("export m m", 2, &["written over"]);
    place.fails("export train.libsvm t.onnx", 1, &["not a usable model"]);
}

#[test]
fn models_of_libsvm_come_in() {
    let place = Place::with_data();
    let head =
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.1\nlabel -1 1\nnr_sv 1 1\nSV\n";
    place.file("old.model", &format!("{head}1 1:-1 \n-1 1:1 \n"));
    place.ok("convert old.model new.model");
    assert_eq!(place.json("info new.model --json")["machine"], "svm");
    place.file("rows.libsvm", "1:-1\n1:1\n");
    assert_eq!(place.ok("predict rows.libsvm new.model").stdout, "-1\n1\n");
    place.file("bad.model", &format!("{head}1 1:-1 \n"));
    place.fails("convert bad.model new2.model", 1, &["bad.model", "line 10", "expected 2"]);
    assert!(!place.has("new2.model"));
}

#[test]
fn files_are_cut_in_two() {
    let place = Place::new();
    let rows: Vec<String> =
        (0..40).map(|i| format!("{i}.50, {} ,{}\r\n", i * i, if i % 4 == 0 { "yes" } else { "no" })).collect();
    place.file("all.csv", &format!("a,b,class\r\n{}", rows.concat()));
    let report = place.json("split all.csv train.csv test.csv.gz --test-size 0.25 --seed 3 --json");
    assert_eq!((report["train"].as_u64(), report["test"].as_u64()), (Some(30), Some(10)));
    let (label, test) = (report["classes"][0]["label"].as_str(), report["classes"][0]["test"].as_u64().unwrap());
    assert!(label == Some("no") && (7..=8).contains(&test));
    place.ok("convert test.csv.gz plain.libsvm");
    let train = place.read("train.csv");
    assert!(train.starts_with("a,b,class\r\n"));
    let kept: Vec<&str> = train.split_inclusive('\n').skip(1).collect();
    assert!(kept.len() == 30 && kept.iter().all(|line| rows.iter().any(|row| row == line)));
    assert_eq!(place.read("plain.libsvm").lines().count(), 10);
    place.ok("split all.csv again.csv other.csv --test-size 0.25 --seed 3");
    assert_eq!(place.read("again.csv"), train);
    place.ok("split all.csv again.csv other.csv --test-size 0.25 --seed 4");
    assert_ne!(place.read("again.csv"), train);
    place.file("t.libsvm", "# head\n+1 1:1 # x\n\n-1 2:1\n+1 1:2\n-1 2:2\n");
    place.ok("split t.libsvm a.libsvm b.libsvm --test-size 0.5");
    let mut lines: Vec<String> = ["a.libsvm", "b.libsvm"]
        .iter()
        .flat_map(|f| place.read(f).lines().map(str::to_string).collect::<Vec<_>>())
        .collect();
    lines.sort();
    assert_eq!(lines, ["+1 1:1 # x", "+1 1:2", "-1 2:1", "-1 2:2"]);
    place.ok("split wdbc w.libsvm v.libsvm");
    place.fails("split t.libsvm t.libsvm b.libsvm", 2, &["written over"]);
    place.fails("split t.libsvm a.libsvm a.libsvm", 2, &["one file"]);
    place.fails("split t.libsvm a.csv b.libsvm", 2, &["a.csv", "libsvm"]);
    place.fails("split t.libsvm a.libsvm b.libsvm --test-size 1", 2, &["between 0 and 1"]);
    place.file("bare.libsvm", "1:1\n1:2\n");
    place.fails("split bare.libsvm c.libsvm d.libsvm", 1, &["no labels"]);
    assert!(!place.has("c.libsvm"));
}

#[test]
fn only_the_label_matters_to_what_is_cut_in_two() {
    let place = Place::new();
    // Names, dates, numbers with text among them, gaps: no features as they are.
    let row = |i: usize| format!("name {i},2024-01-{:02},{},,{}\n", i % 28 + 1, ["7", "x", "8"][i % 3], i % 2);
    place.file("all.csv", &format!("who,day,odd,empty,class\n{}", (0..300).map(row).collect::<String>()));
    place.fails("train all.csv m", 1, &["all.csv"]);
    let report = place.json("split all.csv train.csv test.csv --test-size 0.2 --json");
    assert_eq!((&report["rows"], &report["train"], &report["test"]), (&300.into(), &240.into(), &60.into()));
    let mut rows: Vec<String> = ["train.csv", "test.csv"]
        .iter()
        .flat_map(|f| place.read(f).lines().skip(1).map(|line| format!("{line}\n")).collect::<Vec<_>>())
        .collect();
    let mut whole: Vec<String> = (0..300).map(row).collect();
    rows.sort();
    whole.sort();
    assert_eq!(rows, whole);
    // One column only: most likely its fields were not told apart.
    place.file("one.csv", "a:b\n1:2\n2:3\n3:4\n");
    place.fails("split one.csv x.csv z.csv", 1, &["no features beside the label"]);
    place.file("t.csv", "a,b\n1,u\n2,v\n3\n");
    place.fails("split t.csv x.csv z.csv", 1, &["t.csv:4"]);
}

/// Four rows in five of one class, which overlap.
fn uneven(count: u64) -> String {
    let noise = |i: u64| ((i.wrapping_mul(2_654_435_761) >> 7) % 1000) as f64 / 500.0 - 1.0;
    let line = |i: u64| {
        let (shift, label) = if i.is_multiple_of(5) { (0.5, "rare") } else { (-0.1, "usual") };
        format!("{label} 1:{:.4} 2:{:.4}\n", shift + noise(2 * i), noise(2 * i + 1))
    };
    (0..count).map(line).collect()
}

#[test]
fn a_threshold_is_chosen_and_kept() {
    let place = Place::new();
    place.file("all.libsvm", &uneven(200));
    // The larger label is the usual one.
    for machine in ["odm", "svm", "mcodm"] {
        let plain = place.json(&format!("train all.libsvm plain -m {machine} --json"));
        assert!(plain["threshold"].is_null());
        let report = place.json(&format!("train all.libsvm m -m {machine} --threshold balanced_accuracy --json"));
        let threshold = report["threshold"].as_f64().unwrap();
        assert!(threshold.is_finite() && threshold != 0.0, "{machine}: {threshold}");
        assert_eq!(place.json("info m --json")["threshold"], report["threshold"]);
        place.ok("predict all.libsvm m out --scores scores --quiet");
        for (label, scores) in place.read("out").lines().zip(place.read("scores").lines()) {
            let scores: Vec<f64> = scores.split(' ').map(|score| score.parse().unwrap()).collect();
            let lead = if scores.len() == 2 { scores[1] - scores[0] } else { scores[0] };
            assert_eq!(label, if lead > threshold { "usual" } else { "rare" });
        }
        let balanced = |model: &str| {
            let scores = &place.json(&format!("predict all.libsvm {model} --json"))["scores"];
            scores["balanced_accuracy"].as_f64().unwrap()
        };
        // The hinge finds the rare class by itself here.
        let gained = if machine == "svm" { 0.0 } else { 0.05 };
        assert!(balanced("m") >= balanced("plain") + gained, "{machine}: {} {}", balanced("m"), balanced("plain"));
    }
    assert_eq!(place.json("train all.libsvm m --threshold -0.25 --json")["threshold"], -0.25);
    let tuned = place.json("tune all.libsvm t --grid c1=1;100 --score f1 --threshold f1 --json");
    assert_eq!(place.json("info t --json")["threshold"], tuned["threshold"]);
    let folds = |more: &str| {
        let report = place.json(&format!("cross-validate all.libsvm {more} --json"));
        report["scores"]["balanced_accuracy"].as_f64().unwrap()
    };
    assert!(folds("--threshold balanced_accuracy") > folds("") + 0.02);
    place.file("three.libsvm", &three(60));
    place.fails("train three.libsvm x --threshold f1", 2, &["two classes, not 3"]);
    place.fails("train all.libsvm x --threshold auc", 2, &["balanced_accuracy"]);
    place.fails("train all.libsvm x --threshold nan", 2, &["a number"]);
    assert!(!place.has("x"));
}

#[test]
fn a_search_may_be_judged_by_probabilities() {
    let place = Place::with_data();
    place.file("three", &three(60));
    for (data, score) in [("train.libsvm", "log_loss"), ("train.libsvm", "brier"), ("three", "log_loss")] {
        for select in ["loo", "cv"] {
            if data == "three" && select == "loo" {
                continue;
            }
            let words =
                format!("tune {data} m --machine lssvm --grid c=0.001;1;1000 --score {score} --select {select} --json");
            let report = place.json(&words);
            let best = report["score"].as_f64().or(report["value"].as_f64());
            assert!(report["complete"] == true && best.is_none_or(|loss| (0.0..1.2).contains(&loss)), "{report}");
        }
    }
}
