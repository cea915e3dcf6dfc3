//! Ctrl-C: a quick end with status 130, and files as they were.
#![cfg(unix)]

mod common;
use common::Place;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn an_interruption_ends_within_a_second_and_leaves_files_alone() {
    let place = Place::new();
    place.file("many.libsvm", &common::rows(60_000, 3));
    place.file("m", "precious");
    let child = Command::new(assert_cmd::cargo::cargo_bin!("widemargin"))
        .current_dir(place.path(""))
        .args("train many.libsvm m --machine svm --kernel rbf --c 1000 --tol 1e-9 --solver dcd".split(' '))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(900));
    let asked = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(asked.elapsed() < Duration::from_secs(3), "a second, and some for a busy machine");
    assert_eq!(place.read("m"), "precious");
    assert_eq!(place.names(), ["m", "many.libsvm"]);
}
