//! `widemargin compare`, `completions`, `man`, and a reader who leaves early.

mod common;
use common::Place;
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn compare_is_the_same_each_time_but_for_the_times() {
    let place = Place::with_data();
    let words = "compare train.libsvm test.libsvm --machines odm,ldm,lssvm --reference lssvm --repeats 4 --json";
    let without_times = |threads: usize| {
        let mut report = place.json(&format!("{words} --threads {threads}"));
        for set in report["datasets"].as_array_mut().unwrap() {
            set["entries"].as_array_mut().unwrap().iter_mut().for_each(|e| e["seconds"] = 0.into());
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
    let run = place.ok("compare train.libsvm test.libsvm --machines odm,lssvm --repeats 3 --kernel rbf");
    for part in ["3 splits", "rbf kernel", "odm", "average", "win/tie/loss", "reference", "±", "lssvm (c = "] {
        assert!(run.stdout.contains(part), "{}", run.stdout);
    }
    assert!(run.stderr.is_empty(), "{}", run.stderr);
}

#[test]
fn compare_needs_no_data() {
    let run = Place::new().ok("compare --machines odm,lssvm --repeats 2");
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
fn completions_and_manual_pages() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.ok(&format!("completions {shell}")).stdout;
        assert!(script.contains("widemargin") && script.contains("lambda1"), "{shell}");
    }
    assert!(place.ok("man").stdout.contains(".TH widemargin 1"));
    place.ok("man pages");
    let page = place.read("pages/widemargin-train.1");
    assert!(page.contains("class") && page.contains("lambda1"));
    assert!(place.has("pages/widemargin.1") && place.has("pages/widemargin-compare.1"));
    place.fails("completions klingon", 2, &["klingon", "bash"]);
}

#[test]
fn help_lists_machines_and_version_is_told() {
    let place = Place::new();
    let help = place.ok("train --help").stdout;
    for part in ["--lambda1", "--kernel", "odm-l", "Parameters of the machines"] {
        assert!(help.contains(part), "{part}");
    }
    assert!(place.ok("--version").stdout.contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    let place = Place::with_data();
    place.ok("train train.libsvm m --quiet");
    place.file("many.libsvm", &common::rows(200_000, 3));
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("widemargin"))
        .current_dir(place.path(""))
        .args(["predict", "many.libsvm", "m", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(errors, "");
}
