//! `widemargin compare`, `reproduce` and `sweep`.

mod common;
use common::Place;
use serde_json::Value;

#[test]
fn compare_is_the_same_each_time_but_for_the_times() {
    let place = Place::with_data();
    let words =
        "compare train.libsvm test.libsvm --machines odm,ldm,lssvm --reference lssvm --repeats 4 --budget 6 --json";
    let without_times = |threads: usize| {
        let mut report = place.json(&format!("{words} --threads {threads}"));
        for set in report["datasets"].as_array_mut().unwrap() {
            for entry in set["entries"].as_array_mut().unwrap() {
                (entry["seconds"], entry["search_seconds"]) = (0.into(), 0.into());
            }
        }
        report
    };
    let report = without_times(1);
    assert_eq!(report, without_times(2));
    assert_eq!(report["reference"], "lssvm");
    assert_eq!(report["datasets"].as_array().unwrap().len(), 2);
    let entries = report["datasets"][0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    assert_eq!(entries[2]["verdict"], "reference");
    assert_eq!(entries[0]["accuracies"].as_array().unwrap().len(), 4);
    let overall = &report["overall"][0];
    let counts: u64 = ["wins", "ties", "losses"].iter().map(|k| overall[k].as_u64().unwrap()).sum();
    assert_eq!(counts, 2);
}

#[test]
fn compare_prints_tables() {
    let place = Place::with_data();
    let run = place.ok("compare train.libsvm test.libsvm --machines odm,lssvm --repeats 3 --kernel rbf --fixed");
    for part in ["3 splits", "rbf kernel", "odm", "average", "win/tie/loss", "reference", "±", "lssvm (c = "] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    assert!(run.stderr.is_empty(), "{}", run.stderr);
}

#[test]
fn compare_needs_no_data() {
    let run = Place::new().ok("compare --machines odm,lssvm --repeats 2 --budget 2");
    assert!(run.stdout.contains("wdbc") && run.stdout.contains("sonar"), "{}", run.stdout);
}

#[test]
fn compare_takes_parameters_by_machine() {
    let place = Place::with_data();
    let set = "compare train.libsvm --machines odm,odm-l";
    let report = place.json(&format!("{set} --repeats 2 --set odm.c1=3 --set odml.c=5 --json"));
    assert_eq!(report["machines"][0]["params"]["c1"], 3.0);
    assert_eq!(report["machines"][1]["params"]["c"], 5.0);
    place.fails(&format!("{set} --set odm.nosuch=3"), 2, &["nosuch", "odm"]);
    place.fails(&format!("{set} --set odm.c1=-3"), 2, &["-3", "a number > 0"]);
    place.fails(&format!("{set} --set lssvm.c=3"), 2, &["lssvm"]);
    place.fails(&format!("{set} --set odm"), 2, &["MACHINE.PARAMETER=VALUE"]);
    place.fails(&format!("{set} --reference svm"), 2, &["svm"]);
    place.fails(&format!("{set} --train 1"), 2, &["between 0 and 1"]);
    place.fails(&format!("{set} --repeats 0"), 2, &["a whole number >= 1"]);
    place.fails("compare nosuch.libsvm", 1, &["nosuch.libsvm"]);
    place.fails("compare iris --machines odm --repeats 2 --multiclass own", 2, &["takes two classes"]);
}

#[test]
fn machines_get_the_same_budget_unless_told_otherwise() {
    let place = Place::with_data();
    let words = "compare train.libsvm --machines odm,svm,svm:rbf,odm:loo-loss --repeats 2 --json";
    let points = |more: &str| -> Vec<u64> {
        let report = place.json(&format!("{words} {more}"));
        let entries = report["datasets"][0]["entries"].as_array().unwrap();
        entries.iter().map(|entry| entry["points"].as_u64().unwrap()).collect()
    };
    assert_eq!(points("--budget 7"), [7; 4]);
    assert_eq!(points("--fixed"), [0; 4]);
    assert_eq!(points("--budget 7 --grid svm:c=1;10"), [7, 2, 2, 7]);
    let report = place.json(&format!("{words} --budget 3 --set svm.c=4"));
    assert_eq!(report["datasets"][0]["entries"][1]["chosen"][0]["params"]["c"], 4.0);
    assert_eq!(report["machines"][2]["kernel"], "rbf");
    let kernels =
        place.json("compare train.libsvm --machines odm,svm --kernels linear,rbf --repeats 2 --budget 2 --json");
    let names: Vec<&str> =
        kernels["machines"].as_array().unwrap().iter().map(|m| m["machine"].as_str().unwrap()).collect();
    assert_eq!(names, ["odm:linear", "svm:linear", "odm:rbf", "svm:rbf"]);
    place.fails("compare train.libsvm --machines odm:what", 2, &["odm:what", "kernel"]);
    place.fails("compare train.libsvm --grid c=1", 2, &["MACHINE:GRID"]);
    place.fails("compare train.libsvm --grid lda:ridge=1", 2, &["lda"]);
}

#[test]
fn contestants_say_what_is_theirs() {
    let place = Place::with_data();
    let machines = "svm:rbf:c=1;10:gamma=0.5,odm:c1=3,lssvm:fixed";
    let report = place.json(&format!("compare train.libsvm --machines {machines} --repeats 3 --budget 4 --json"));
    let entries = report["datasets"][0]["entries"].as_array().unwrap();
    let points: Vec<u64> = entries.iter().map(|entry| entry["points"].as_u64().unwrap()).collect();
    assert_eq!(points, [2, 4, 0]);
    assert_eq!(entries[0]["chosen"][0]["gamma"], 0.5);
    assert_eq!((&report["machines"][0]["kernel"], &report["machines"][1]["kernel"]), (&"rbf".into(), &"linear".into()));
    assert_eq!(report["machines"][1]["params"]["c1"], 3.0);
    assert_eq!(report["machines"][2]["search"], "none");
    // What a contestant says holds before what is said of all.
    let set = place.json("compare train.libsvm --machines odm:c1=3,odm --set odm.c1=5 --repeats 2 --fixed --json");
    let c1 = |m: usize| set["machines"][m]["params"]["c1"].as_f64();
    assert_eq!((c1(0), c1(1)), (Some(3.0), Some(5.0)));
    place.fails("compare train.libsvm --machines odm:c1=x", 2, &["c1", "a number > 0"]);
    place.fails("compare train.libsvm --machines odm:nosuch=1", 2, &["nosuch", "odm"]);
}

#[test]
fn few_data_sets_and_few_splits_prove_nothing() {
    let place = Place::with_data();
    let words = "compare train.libsvm test.libsvm --machines odm,lssvm --fixed --json";
    let report = place.json(&format!("{words} --repeats 3"));
    assert_eq!(report["test"], "corrected resampled t-test");
    assert!(report["overall"].as_array().unwrap().iter().all(|total| total["p"].is_null()), "{}", report["overall"]);
    let report = place.json(&format!("{words} --repeats 2"));
    let entries = report["datasets"].as_array().unwrap().iter().flat_map(|set| set["entries"].as_array().unwrap());
    assert!(entries.into_iter().all(|entry| entry["p"].is_null()));
}

#[test]
fn tables_come_in_every_style_and_as_a_page() {
    let place = Place::with_data();
    let words = "compare train.libsvm --machines odm,lssvm --repeats 2 --fixed";
    let print = |style: &str| place.ok(&format!("{words} --style {style}")).stdout;
    assert!(print("markdown").contains("| data | rows | features | odm | lssvm |"));
    assert!(print("csv").starts_with("data,rows,features,odm,lssvm\ntrain,60,3,"), "{}", print("csv"));
    assert!(print("latex").contains("\\begin{tabular}") && print("latex").contains("$\\pm$"));
    place.ok(&format!("{words} --report page.html"));
    let page = place.read("page.html");
    assert!(page.contains("<table>") && page.contains("<svg") && page.ends_with("</html>\n"));
}

#[test]
fn results_are_kept_and_not_computed_again() {
    let place = Place::with_data();
    let words = "compare train.libsvm --machines odm,lssvm --budget 3 --results kept.jsonl --json";
    let whole = |repeats: usize| place.json(&format!("{words} --repeats {repeats}"));
    let first = whole(2);
    let lines = |place: &Place| place.read("kept.jsonl").lines().count();
    assert_eq!(lines(&place), 1 + 4);
    // Times are measured once: the same ones mean that nothing was computed.
    assert_eq!(whole(2), first);
    // A crash may leave half a line.
    let mut text = place.read("kept.jsonl");
    text.truncate(text.len() - 20);
    place.file("kept.jsonl", &text);
    let more = whole(3);
    assert_eq!(lines(&place), 1 + 6);
    let accuracies = |report: &Value, m: usize| report["datasets"][0]["entries"][m]["accuracies"].clone();
    for m in [0, 1] {
        let (few, many) = (accuracies(&first, m), accuracies(&more, m));
        assert_eq!(few.as_array().unwrap()[..], many.as_array().unwrap()[..2]);
    }
    place.file("other.jsonl", "{\"something\": 1}\n");
    place.fails(
        &format!("compare train.libsvm --results {}", "other.jsonl"),
        1,
        &["other.jsonl", "results of studies"],
    );
    place.file("broken.jsonl", "{\"widemargin_study\":1}\nnonsense\n");
    place.fails("compare train.libsvm --results broken.jsonl", 1, &["broken.jsonl:2", "a result of a study"]);
}

/// A folder with two of LDM's data sets, one of them under another name and both too small.
fn papers_data() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path("sets")).unwrap();
    place.file("sets/sonar.libsvm", &common::rows(40, 1));
    place.file("sets/vote.csv", "label,a,b\nx,1,2\ny,3,1\nx,2,2\ny,3,0\nx,0,2\ny,4,1\nx,1,3\ny,5,1\nx,1,1\ny,3,2\n");
    place.file("sets/vehicle.libsvm", "1 1:1\n2 1:2\n3 1:3\n");
    place
}

#[test]
fn reproduce_shows_our_figures_beside_the_papers() {
    let place = papers_data();
    let words = "reproduce ldm-table2 --data sets --repeats 3 --only sonar,house,vehicle,german";
    let run = place.ok(words);
    for part in [
        "(paired t-test, 95 %)",
        "LDM, Table 2",
        "sonar",
        "house",
        "ours",
        "paper",
        "72.50",
        "win/tie/loss",
        "not run: german",
        "Welch",
    ] {
        assert!(run.stdout.contains(part), "{part}: {}", run.stdout);
    }
    assert!(run.stdout.contains("vehicle has 3 classes"), "{}", run.stdout);
    assert!(run.stdout.contains("house (file vote): 10 rows"), "{}", run.stdout);
    assert!(run.stderr.contains("processor time"), "{}", run.stderr);
    let report = place.json(&format!("{words} --json --results r.jsonl"));
    assert_eq!(report["missing"].as_array().unwrap().len(), 2);
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * 5);
    let ldm = cells.iter().find(|c| c["dataset"] == "sonar" && c["machine"] == "LDM").unwrap();
    assert_eq!((ldm["paper_accuracy"].as_f64(), ldm["paper_verdict"].as_str()), (Some(0.736), Some("tie")));
    let points = |report: &Value, m: usize| report["datasets"][0]["entries"][m]["points"].as_u64().unwrap();
    assert_eq!((points(&report, 0), points(&report, 4)), (3, 3 * 4 * 4));
    let coarse = place.json(&format!("{words} --json --step 64"));
    assert_eq!((points(&coarse, 0), points(&coarse, 4)), (3, 3 * 2 * 2));
    place.fails(&format!("{words} --step 1"), 2, &["a number > 1"]);
    let equal = place.json(&format!("{words} --json --protocol equal --budget 6"));
    assert_eq!((points(&equal, 0), points(&equal, 4)), (6, 6));
    let csv = place.ok(&format!("{words} --style csv")).stdout;
    assert_eq!(csv.lines().count(), 1 + 10);
}

#[test]
fn reproduce_says_what_is_wrong() {
    let place = papers_data();
    place.fails("reproduce ldm-table9 --data sets", 2, &["ldm-table9", "ldm-table2"]);
    place.fails("reproduce ldm-table2 --data nowhere", 1, &["nowhere"]);
    place.fails("reproduce ldm-table2 --data sets --only mars", 2, &["mars", "promoters"]);
    place.fails("reproduce mcodm-table2 --data sets --only iris", 1, &["none of the data sets"]);
}

#[test]
fn sweep_over_a_parameter_and_over_classes() {
    let place = Place::with_data();
    let words = "sweep train.libsvm test.libsvm --machines svm --over c=2^-4:2^8:*16 --repeats 3 --fixed";
    let report = place.json(&format!("{words} --json --svg picture.svg"));
    assert_eq!(report["values"].as_array().unwrap().len(), 4);
    let curves = report["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 2);
    // The same as a comparison with that value.
    let single = place.json("compare train.libsvm --machines svm --set svm.c=16 --fixed --repeats 3 --json");
    assert_eq!(curves[0]["accuracy"][2], single["datasets"][0]["entries"][0]["accuracy"]);
    assert!(place.read("picture.svg").contains("Test accuracy over c"));
    assert!(place.ok(words).stdout.contains("0.0625"));
    let tuned = place.json("sweep train.libsvm --machines odm --over d=0:0.4:0.2 --repeats 2 --budget 3 --json");
    assert_eq!(tuned["curves"][0]["accuracy"].as_array().unwrap().len(), 3);
    let classes = place.json("sweep iris --machines svm,svm:ovo --over classes=2:3 --repeats 2 --fixed --json");
    assert_eq!(classes["curves"][1]["name"], "svm:ovo");
    assert_eq!(classes["curves"][0]["accuracy"][0], 1.0);
    place.fails("sweep iris --machines svm --over classes=4", 1, &["2 to its 3 classes"]);
    place.fails("sweep train.libsvm --machines svm --over c=1,d=2", 2, &["one NAME=VALUES"]);
    place.fails("sweep train.libsvm --machines svm --over nosuch=1", 2, &["nosuch"]);
}
