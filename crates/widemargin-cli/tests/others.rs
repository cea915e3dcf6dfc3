//! `widemargin completions`, `man`, and a reader who leaves early.

mod common;
use common::Place;
use std::io::Read;
use std::process::{Command, Stdio};

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
