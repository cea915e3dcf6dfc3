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

/// The words of a text, however it is wrapped.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn help_tells_the_defaults_of_each_machine() {
    let place = Place::new();
    for command in ["train", "tune"] {
        let help = one_line(&place.ok(&format!("{command} --help")).stdout);
        for part in [
            "default max(512, m) in odm-l",
            "default max(64, m/4) in lssvm",
            "default 1000 in fmm",
            "default 50 in mcodm",
            "default max(64, m/16) in mcodm",
            "default max(256, m) in odm",
            "scale of the scores (a number > 0) [default 1 in mamc]",
        ] {
            assert!(help.contains(part), "{command}: {part}: {help}");
        }
    }
}

#[test]
fn help_explains_machines_and_commands() {
    let place = Place::new();
    for machine in widemargin::machine::MACHINES {
        let page = one_line(&place.ok(&format!("help {}", machine.name())).stdout);
        for part in [machine.title(), machine.formula(), machine.paper()] {
            assert!(page.contains(&one_line(part)), "{}: {part}: {page}", machine.name());
        }
        for parameter in machine.parameters() {
            assert!(page.contains(&format!("--{}", parameter.name)), "{page}");
            assert!(page.contains(&parameter.domain.describe()), "{page}");
        }
    }
    let odm = place.ok("help odm").stdout;
    for part in ["256", "a number in [0, 1)", "1, 2, …, 1024", "--bias free", "IEEE TKDE 2020"] {
        assert!(odm.contains(part), "{part}: {odm}");
    }
    assert!(place.ok("help odml").stdout.starts_with("odm-l: "));
    assert!(place.ok("help lda").stdout.contains("are refused"));
    assert!(place.ok("help train").stdout.contains("--strict"));
    assert!(place.ok("help").stdout.contains("help MACHINE"));
    place.fails("help nosuch", 2, &["nosuch", "odm", "train"]);
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
