//! `widemargin tune`, `margins`, and probabilities.

mod common;
use common::Place;
use serde_json::Value;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is a number"))
}

#[test]
fn a_search_reports_and_writes_the_best() {
    let place = Place::with_data();
    let run = place.ok("tune train.libsvm m --kernel rbf --scale minmax");
    for part in ["best", "odm", "gamma", "leave-one-out", "3630", "saved", "model"] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    place.ok("predict test.libsvm m out --quiet");
    let report = place.json("tune train.libsvm --machine svm --grid c=1;10;100 --json");
    assert_eq!((&report["complete"], &report["select"]), (&true.into(), &"cv".into()));
    assert_eq!((&report["points"], &report["fits"], &report["fits_saved"]), (&3.into(), &15.into(), &0.into()));
    assert_eq!(report["fold_errors"].as_array().unwrap().len(), 5);
    let trials = report["trials"].as_array().unwrap();
    let lowest = trials.iter().map(|t| number(&t["error"])).fold(1.0, f64::min);
    assert_eq!(number(&report["error"]), lowest);
    assert!(report["model"].is_null());
    assert_eq!(place.ok("tune train.libsvm m2 --quiet --json").stderr, "");
}

#[test]
fn the_model_does_not_depend_on_threads() {
    let place = Place::with_data();
    place.ok("tune train.libsvm a --kernel rbf --threads 1 --probability");
    place.ok("tune train.libsvm b --kernel rbf --threads 4 --probability");
    assert_eq!(std::fs::read(place.path("a")).unwrap(), std::fs::read(place.path("b")).unwrap());
}

#[test]
fn parameters_that_are_given_are_not_searched() {
    let place = Place::with_data();
    let report = place.json("tune train.libsvm --c1 7 --d 0.3 --kernel rbf --gamma 0.5 --json");
    assert_eq!((number(&report["params"]["c1"]), number(&report["params"]["d"])), (7.0, 0.3));
    assert_eq!((number(&report["kernel"]["gamma"]), &report["paper_points"]), (0.5, &11.into()));
    let report = place.json("tune train.libsvm --grid c1=1;2 --c2 3 --folds 3 --repeats 2 --select cv --json");
    assert_eq!((number(&report["params"]["c2"]), &report["fits"]), (3.0, &12.into()));
    let report = place.json("tune train.libsvm --kernel rbf --grid gamma=0.1;1,lambda=2^2:2^4 --json");
    assert_eq!(report["points"], 6);
}

#[test]
fn wrong_searches_are_refused() {
    let place = Place::with_data();
    place.fails("tune train.libsvm m --grid c1", 2, &["--grid", "NAME=VALUES"]);
    place.fails("tune train.libsvm m --grid c1=4:1", 2, &["--grid", "FROM:TO"]);
    place.fails("tune train.libsvm m --grid nosuch=1;2", 2, &["nosuch"]);
    place.fails("tune train.libsvm m --grid gamma=1;2", 2, &["gamma"]);
    place.fails("tune train.libsvm m --machine svm --select loo", 2, &["--select cv"]);
    place.fails("tune train.libsvm m --select cv --folds 100", 2, &["--folds 100", "60"]);
    place.fails("tune train.libsvm m --c 3", 2, &["--c "]);
    place.fails("tune nosuch m", 1, &["nosuch"]);
    place.fails("tune train.libsvm nosuch/m --grid c1=1", 1, &["nosuch/m"]);
    assert!(!place.has("m"));
}

#[test]
fn a_log_is_taken_up() {
    let place = Place::with_data();
    let words = "tune train.libsvm m --grid c1=1;8;64 --resume log --json";
    let first = place.json(words);
    assert_eq!((&first["fits"], &first["resumed"]), (&3.into(), &0.into()));
    let again = place.json(words);
    assert_eq!((&again["fits"], &again["resumed"], &again["params"]), (&0.into(), &3.into(), &first["params"]));
    assert_eq!(place.read("log").lines().count(), 4);
    place.fails("tune train.libsvm m --grid c1=1;8;64;128 --resume log", 1, &["log", "another search"]);
    place.fails("tune test.libsvm m --resume log", 1, &["log", "another search"]);
    place.fails("tune train.libsvm m --resume test.libsvm", 1, &["test.libsvm", "not the log"]);
}

#[test]
fn a_log_cut_anywhere_leads_to_the_same_model() {
    let place = Place::with_data();
    let words = |model: &str, log: &str| format!("tune train.libsvm {model} -m svm --kernel rbf --resume {log} -q");
    place.ok(&words("whole", "log"));
    let (whole, log) = (std::fs::read(place.path("whole")).unwrap(), place.read("log"));
    for part in [0, 10, 100, 333, 500, 777, 990, 1000] {
        std::fs::write(place.path("cut"), &log.as_bytes()[..part * log.len() / 1000]).unwrap();
        place.ok(&words("m", "cut"));
        assert!(std::fs::read(place.path("m")).unwrap() == whole, "{part}/1000 of the log");
        assert_eq!(place.read("cut").lines().count(), log.lines().count());
    }
}

#[test]
fn probabilities_have_a_column_a_class() {
    let place = Place::with_data();
    for words in ["train train.libsvm m --probability", "train train.libsvm m --machine svm --probability"] {
        place.ok(words);
        place.ok("predict test.libsvm m out --probabilities p --scores s");
        let (scores, probabilities) = (place.read("s"), place.read("p"));
        assert_eq!((probabilities.lines().count(), probabilities.lines().next()), (31, Some("-1 +1")));
        let info = place.json("info m --json")["calibration"].clone();
        let (slope, offset) = (number(&info["slope"]), number(&info["offsets"][0]));
        for (score, line) in scores.lines().zip(probabilities.lines().skip(1)) {
            let p: Vec<f64> = line.split(' ').map(|p| p.parse().unwrap()).collect();
            let z = slope * score.parse::<f64>().unwrap() + offset;
            assert!((p[1] - 1.0 / (1.0 + (-z).exp())).abs() < 1e-12 && (p[0] + p[1] - 1.0).abs() < 1e-12);
        }
        assert!(place.ok("info m").stdout.contains("probability"));
    }
    assert!(number(&place.json("tune train.libsvm m --probability --json")["calibration"]["slope"]) > 0.0);
    for words in ["train train.libsvm i", "tune train.libsvm i --average"] {
        place.ok(&format!("{words} --probability=isotonic"));
        assert!(place.ok("info i").stdout.contains("isotonic, "), "{words}");
        place.ok("predict test.libsvm i out --probabilities p");
        assert!(place.read("p").lines().count() == 31);
    }
    place.ok("train train.libsvm plain");
    place.fails("predict test.libsvm plain out --probabilities q", 2, &["--probability"]);
    place.fails("predict test.libsvm m --probabilities -", 2, &["standard output"]);
    assert!(!place.has("q"));
}

#[test]
fn probabilities_of_three_classes_tell_the_classes_apart() {
    let place = Place::with_data();
    for way in ["own", "ova --machine odm", "ovo --machine svm", "ecoc --machine odm"] {
        place.ok(&format!("train iris i --scale minmax --probability --multiclass {way}"));
        place.ok("predict iris i out --probabilities p");
        let (labels, probabilities) = (place.read("out"), place.read("p"));
        assert_eq!(probabilities.lines().count(), 151);
        let mut agree = 0;
        for (label, line) in labels.lines().zip(probabilities.lines().skip(1)) {
            let p: Vec<f64> = line.split(' ').map(|p| p.parse().unwrap()).collect();
            let class = ["setosa", "versicolor", "virginica"].iter().position(|name| label.ends_with(name)).unwrap();
            assert!(p.len() == 3 && (p.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{line}");
            agree += usize::from((0..3).all(|l| l == class || p[l] <= p[class]));
        }
        // Offsets may make another class the most probable one, of rows between two; codes leave many rows there.
        assert!(agree >= if way.starts_with("ecoc") { 115 } else { 140 }, "{way}: {agree}");
    }
}

#[test]
fn margins_in_numbers_and_pictures() {
    let place = Place::with_data();
    let trained = place.json("train train.libsvm odm --json");
    place.ok("train train.libsvm svm --machine svm --kernel rbf --bias 2");
    let report = place.json("margins train.libsvm odm svm --json --svg p.svg");
    let models = report["models"].as_array().unwrap();
    assert_eq!(models.len(), 2);
    for name in ["min", "mean", "variance", "semivariance", "errors"] {
        let (here, there) = (number(&models[0]["margins"][name]), number(&trained["margins"][name]));
        assert!((here - there).abs() < 1e-9 * (1.0 + there.abs()), "{name}");
    }
    assert!((number(&models[0]["norm"]) - number(&trained["norm"])).abs() < 1e-9);
    let svg = place.read("p.svg");
    assert!(svg.starts_with("<svg") && svg.contains("prefers-color-scheme") && svg.contains("odm"));
    let text = place.ok("margins test.libsvm odm svm --raw").stdout;
    assert!(text.contains("100 %") && text.contains("median"), "{text}");
    assert!(place.ok("margins test.libsvm odm --svg -").stdout.starts_with("<svg"));
    place.fails("margins iris odm", 1, &["none of its labels"]);
    place.file("odd.libsvm", "+1 1:1\n7 1:2\n");
    assert_eq!(place.json("margins odd.libsvm odm --json")["models"][0]["unknown_labels"], 1);
    place.file("bare.libsvm", "1:1 2:1\n");
    place.fails("margins bare.libsvm odm", 1, &["no labels"]);
    place.fails("margins test.libsvm", 2, &["MODEL"]);
    place.fails("margins test.libsvm odm --json --svg -", 2, &["standard output"]);
}

#[cfg(unix)]
#[test]
fn an_interruption_keeps_what_is_known() {
    let place = Place::new();
    place.file("many.libsvm", &common::rows(1200, 3));
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("widemargin"))
        .current_dir(place.path(""))
        .args("tune many.libsvm m --kernel rbf --grid paper --resume log --json".split(' '))
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let finished = || place.has("log") && place.read("log").lines().count() > 2;
    while !finished() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("interrupted after") && said.contains("--resume log"), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["complete"], false);
    assert!(number(&report["best"]["loss"]) > 0.0 && number(&report["points"]) >= 2.0);
    assert_eq!(place.names(), ["log", "many.libsvm"]);
}

#[test]
fn averages_are_written_predicted_and_told() {
    let place = Place::with_data();
    let report = place.json("tune train.libsvm m --average --json");
    let kernels = report["average"]["kernels"].as_array().unwrap();
    let sum: f64 = kernels.iter().map(|k| number(&k["weight"])).sum();
    assert!((sum - 1.0).abs() < 1e-9 && number(&report["average"]["points"]) >= kernels.len() as f64);
    assert!(number(&report["average"]["loo_log_loss"]) > 0.0 && kernels[0]["kernel"].is_object());
    assert!(number(&place.json("predict test.libsvm m --json")["accuracy"]) > 0.7);
    place.ok("predict test.libsvm m out --probabilities p --coverage 0.9 --sets s");
    assert_eq!((place.read("p").lines().count(), place.read("s").lines().count()), (31, 30));
    assert!(place.ok("info m").stdout.contains("average of"));
    assert_eq!(place.json("verify train.libsvm m --json")["agrees"], serde_json::Value::Null);
    place.ok("tune train.libsvm one --average --threads 1 -q");
    place.ok("tune train.libsvm two --average --threads 3 -q");
    assert_eq!(std::fs::read(place.path("one")).unwrap(), std::fs::read(place.path("two")).unwrap());
    for machine in ["mcodm", "msvmav"] {
        let words = ["each against all others", machine, "--machine odm"];
        place.fails(&format!("tune train.libsvm x --average --machine {machine}"), 2, &words);
    }
    let useless =
        ["--grid c1=1:4", "--folds 3", "--score auc", "--solver dcd", "--multiclass ovo", "--report x", "--degree 2"];
    for words in useless {
        let option = words.split(' ').next().unwrap();
        place.fails(&format!("tune train.libsvm x --average {words}"), 2, &["--average", option]);
    }
    place.fails("tune train.libsvm x --average --c1 4", 2, &["--average", "--c1"]);
    assert!(!place.has("x"));
}

#[test]
fn averages_come_from_folds_where_there_is_no_closed_form() {
    let place = Place::with_data();
    assert_eq!(place.json("tune train.libsvm m --average --machine l2svm --json")["by"], "leave-one-out");
    for machine in ["svm", "ldm"] {
        let report = place.json(&format!("tune train.libsvm m --average --machine {machine} --json"));
        assert_eq!((number(&report["by"]["folds"]), number(&report["average"]["by"]["folds"])), (5.0, 5.0));
        assert_eq!(number(&report["calibration"]["by"]["folds"]), 5.0);
        assert_eq!(number(&place.json("info m --json")["average"]["by"]["folds"]), 5.0);
    }
    assert!(place.ok("tune train.libsvm m --average --machine svm").stdout.contains("rows left out in 5 folds"));
    assert!(place.ok("info m").stdout.contains("by the loss of rows left out in 5 folds"));
    assert_eq!(place.json("verify train.libsvm m --json")["agrees"], serde_json::Value::Null);
    place.ok("predict test.libsvm m out --probabilities p --coverage 0.9 --sets s");
    place.ok("export m m.onnx");
    assert!(place.json("predict test.libsvm m --json")["accuracy"].as_f64().unwrap() > 0.7);
    for words in ["--folds 3", "--score auc", "--select cv"] {
        let option = words.split(' ').next().unwrap();
        let asked = format!("tune train.libsvm x --average --machine svm {words}");
        place.fails(&asked, 2, &["--average", option]);
    }
    place.fails("tune train.libsvm x --average --machine ldm --lambda1 0.1", 2, &["--average", "--lambda1"]);
    assert!(!place.has("x"));
}

#[test]
fn averages_have_a_threshold_and_the_scores_of_rows_left_out() {
    let place = Place::with_data();
    let plain = place.json("tune sonar m --average --json");
    assert!(plain["threshold"].is_null() && plain["feature_names"].is_null());
    let accuracy = number(&plain["scores"]["accuracy"]);
    assert!((accuracy - number(&plain["accuracy"])).abs() < 1e-12 && number(&plain["scores"]["log_loss"]) > 0.0);
    let report = place.json("tune sonar m --average --threshold recall --json");
    let threshold = number(&report["threshold"]);
    assert_eq!(number(&place.json("info m --json")["threshold"]), threshold);
    assert!(number(&report["scores"]["recall"]) > number(&plain["scores"]["recall"]) && threshold < 0.0);
    assert!(place.ok("tune train.libsvm m --average --threshold 0.5").stdout.contains("above a score of 0.5"));
    place.fails("tune iris x --average --threshold f1", 2, &["two classes"]);
}

#[test]
fn margins_left_out_are_written_and_tell_where_they_come_from() {
    let place = Place::with_data();
    place.ok("train train.libsvm m --loo loo");
    let margins: Vec<f64> = place.read("loo").lines().map(|line| line.parse().unwrap()).collect();
    let rows = place.read("train.libsvm").lines().count();
    assert!(margins.len() == rows && margins.iter().all(|g| g.is_finite()));
    let error = number(&place.json("train train.libsvm m --loo loo --json")["loo_error"]);
    let wrong = margins.iter().filter(|g| **g <= 0.0).count() as f64 / rows as f64;
    assert!((error - wrong).abs() < 1e-12);
    place.fails("train train.libsvm x --loo train.libsvm", 2, &["written over"]);
    place.fails("train train.libsvm x --loo - --json", 2, &["standard output"]);
    assert!(!place.has("x") && !place.has("y"));
    place.ok("train iris i --machine odm --loo three");
    assert_eq!(place.read("three").lines().count(), 150);
    for asked in ["train.libsvm --machine svm", "train.libsvm --machine ldm", "train.libsvm --machine msvmav", "iris"] {
        let said = place.ok(&format!("train {asked} m --loo loo"));
        assert!(said.stderr.contains("margins of rows left out are from 5 folds"), "{}", said.stderr);
        assert!(said.stderr.contains("% left out in 5 folds"), "{}", said.stderr);
        let margins: Vec<f64> = place.read("loo").lines().map(|line| line.parse().unwrap()).collect();
        let rows = if asked == "iris" { 150 } else { rows };
        assert!(margins.len() == rows && margins.iter().all(|g| g.is_finite()));
        let report = place.json(&format!("train {asked} m --loo loo --json"));
        let wrong = margins.iter().filter(|g| **g <= 0.0).count() as f64 / rows as f64;
        assert!((number(&report["loo_error"]) - wrong).abs() < 1e-12 && number(&report["loo_by"]["folds"]) == 5.0);
    }
    // Nobody asked: no folds are fitted.
    assert!(place.json("train train.libsvm m --machine svm --json")["loo_by"].is_null());
    assert_eq!(place.json("train train.libsvm m --machine odm --json")["loo_by"], "leave-one-out");
    place.file("alone", "a 1:1\na 1:2\na 1:1.5\nb 1:3\n");
    place.fails("train alone x --machine svm --loo y", 1, &["at least two rows"]);
    assert!(!place.has("x") && !place.has("y"));
}

#[test]
fn sets_are_written_or_refused() {
    let place = Place::with_data();
    place.ok("train train.libsvm m");
    place.ok("predict test.libsvm m out --coverage 0.9 --sets s");
    let sets = place.read("s");
    let inside = |line: &str| line.split(' ').all(|label| label == "+1" || label == "-1");
    assert!(sets.lines().count() == 30 && sets.lines().all(inside));
    place.ok("predict test.libsvm m out --coverage 0.9 --sets s --per-class");
    place.ok("train train.libsvm svm --machine svm");
    place.fails("predict test.libsvm svm out --coverage 0.9 --sets q", 2, &["prediction sets", "--probability"]);
    for coverage in ["0", "1", "-0.5", "x", "nan"] {
        place.fails(&format!("predict test.libsvm m out --sets q --coverage {coverage}"), 2, &["coverage"]);
    }
    place.fails("predict test.libsvm m out --coverage 0.9", 2, &["--sets"]);
    assert!(!place.has("q"));
    place.ok("train train.libsvm svm --machine svm --probability");
    place.ok("predict test.libsvm svm out --coverage 0.9 --sets q");
}

#[test]
fn the_second_best_is_told_by_the_score_that_decided() {
    let place = Place::with_data();
    let second = |words: &str| {
        let run = place.ok(&format!("tune train.libsvm --machine svm --grid c=0.01;1;4 {words}"));
        run.stdout.lines().find(|line| line.starts_with("second")).expect("a second point").to_string()
    };
    for words in ["--score auc", "--score balanced_accuracy", "--score log_loss"] {
        let report = place.json(&format!("tune train.libsvm --machine svm --grid c=0.01;1;4 {words} --json"));
        let cost = number(&report["runner_up"]["cost"]);
        let value = if words.ends_with("log_loss") { cost } else { 1.0 - cost };
        let name = words.split_whitespace().last().unwrap().replace('_', " ");
        let line = second(words);
        assert!(line.contains(&format!("{name} {value:.4}, ")) && line.contains("% correct"), "{line}: {report}");
    }
    assert!(second("").contains("correct, loss "));
}

#[test]
fn an_audit_names_rows() {
    let place = Place::with_data();
    let report = place.json("audit train.libsvm --json");
    let suspects = report["suspects"].as_array().unwrap();
    let rows = place.read("train.libsvm").lines().count();
    assert_eq!(suspects.len(), rows);
    let p: Vec<f64> = suspects.iter().map(|s| number(&s["probability"])).collect();
    assert!(p.is_sorted_by(|a, b| a >= b) && p.iter().all(|p| (0.0..=1.0).contains(p)));
    assert!((number(&report["expected_wrong"]) - p.iter().sum::<f64>()).abs() < 1e-6);
    let numbers: std::collections::BTreeSet<u64> = suspects.iter().map(|s| s["row"].as_u64().unwrap()).collect();
    assert_eq!((numbers.first(), numbers.last()), (Some(&1), Some(&(rows as u64))));
    // In the order of the probability of the label they have, which is that of their margins.
    let of = |key: &str| suspects.iter().map(|s| number(&s[key])).collect::<Vec<_>>();
    assert!(of("label_probability").is_sorted() && of("margin")[0] < of("margin")[rows - 1]);
    assert_eq!(place.json("audit train.libsvm --json --top 3")["suspects"].as_array().unwrap().len(), 3);
    let run = place.ok("audit train.libsvm --out a.csv --machine svm");
    assert!(run.stdout.lines().count() > 20 && run.stderr.contains("5 folds"), "{}", run.stderr);
    assert_eq!(place.read("a.csv").lines().count(), rows + 1);
    assert!(
        place
            .read("a.csv")
            .starts_with("row,label,likely,probability,label_probability,margin,influence,contradicted_by\n")
    );
    // The rows of the greatest influence are named, whatever their label.
    let influence = suspects.iter().max_by(|a, b| number(&a["influence"]).total_cmp(&number(&b["influence"]))).unwrap();
    let told = place.ok("audit train.libsvm").stderr;
    assert!(told.contains(&format!("bend the model most: {} (", influence["row"])), "{told}");
}
