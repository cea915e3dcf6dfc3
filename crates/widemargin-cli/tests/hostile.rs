//! Files that want too much, claim what is not so, or would be written over: an error in words, never a crash.

mod common;
use common::Place;
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

/// Runs the program where only so many kilobytes of address space can be had; exit status and standard error.
#[cfg(target_os = "linux")]
fn limited(place: &Place, kilobytes: u64, words: &str) -> (Option<i32>, String) {
    let program = assert_cmd::cargo::cargo_bin!("widemargin").display();
    let output = Command::new("sh")
        .current_dir(place.path(""))
        .args(["-c", &format!("ulimit -v {kilobytes}; exec {program} {words}")])
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into())
}

/// What needs too much is refused in words that say how much it is.
#[cfg(target_os = "linux")]
fn refused(place: &Place, words: &str, says: &[&str]) {
    const FOUR_GIGABYTES: u64 = 4 << 20;
    let (code, said) = limited(place, FOUR_GIGABYTES, words);
    assert_eq!(code, Some(1), "{words}: {said}");
    for part in ["error: ", "bytes of memory"].iter().chain(says) {
        assert!(said.contains(part), "{words}: {said} should say {part}");
    }
    assert!(!place.has("m"), "{words}");
}

#[cfg(target_os = "linux")]
#[test]
fn what_memory_cannot_hold_is_refused() {
    let place = Place::with_data();
    place.file("wide.libsvm", "+1 1:1\n-1 2:1\n+1 2000000000:1\n-1 3:1\n");
    for machine in ["odm", "svm", "ldm", "mcodm", "mcsvm", "lda", "mdo", "fmm", "svm --scale standard"] {
        refused(&place, &format!("train wide.libsvm m -m {machine}"), &["wide", "2000000000 features"]);
    }
    refused(&place, "tune wide.libsvm m", &["2000000000 features"]);
    let row = |i: usize| format!("c{} 1:{} 2:{}\n", i % 10_000, i % 97, i % 89);
    place.file("classes.libsvm", &(0..20_000).map(row).collect::<String>());
    for kernel in ["linear", "rbf"] {
        let words = format!("train classes.libsvm m -m svm --multiclass ovo --kernel {kernel}");
        refused(&place, &words, &["49995000 score functions for 10000 classes"]);
    }
    place.file("many.libsvm", &common::rows(120_000, 1));
    refused(&place, "train many.libsvm m --kernel rbf --approx 100000", &["100000 landmarks", "--approx"]);
    let (code, said) = limited(&place, 4 << 20, "train train.libsvm m --kernel rbf --approx 18446744073709551615");
    assert_eq!(code, Some(0), "{said}");
}

/// A little memory, and a file that unpacks to ever more.
#[cfg(target_os = "linux")]
#[test]
fn what_unpacks_without_end_is_refused() {
    let place = Place::with_data();
    let endless = |name: &str, text: &str, packer: &str| {
        let words = format!("yes '{text}' | head -c 1200000000 | {packer} > {}", place.path(name).display());
        assert!(Command::new("sh").args(["-c", &words]).status().unwrap().success());
    };
    endless("rows.libsvm.gz", "+1 1:1 2:3 4:5", "gzip -1");
    endless("fields.csv.gz", "1,2,3,4", "gzip -1");
    for file in ["rows.libsvm.gz", "fields.csv.gz"] {
        let (code, said) = limited(&place, 700_000, &format!("train {file} m"));
        assert_eq!(code, Some(1), "{file}: {said}");
        assert!(said.contains(file) && said.contains("memory"), "{file}: {said}");
        assert!(!place.has("m"));
    }
    // One line without an end.
    let words = format!("head -c 1500000000 /dev/zero | gzip -1 > {}", place.path("line.libsvm.gz").display());
    assert!(Command::new("sh").args(["-c", &words]).status().unwrap().success());
    let (code, said) = limited(&place, 8 << 20, "train line.libsvm.gz m");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("longer than"), "{said}");
}

/// A Parquet file of 57 bytes: no columns, and more rows than can be counted to.
const NO_COLUMNS: &[u8] = b"PAR1\x15\x02\x19\x1c\x48\x06schema\x15\x00\x00\x16\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\
    \x19\x1c\x19\x0c\x16\x00\x16\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x00\x00\x2d\x00\x00\x00PAR1";

#[test]
fn damaged_parquet_files_are_told_in_one_line() {
    let place = Place::with_data();
    std::fs::write(place.path("none.parquet"), NO_COLUMNS).unwrap();
    place.fails("info none.parquet", 1, &["none.parquet", "no columns"]);
    place.ok("convert train.libsvm good.parquet");
    let good = std::fs::read(place.path("good.parquet")).unwrap();
    // The metadata stand at the end, the pages before them.
    for at in (0..good.len()).rev().step_by(11) {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        std::fs::write(place.path("bad.parquet"), bad).unwrap();
        let run = place.run("train bad.parquet m -q --scale none --max-iter 1");
        assert!(run.code == 0 || run.code == 1, "byte {at}: {}", run.stderr);
        assert!(!run.stderr.contains("bug") && !run.stderr.contains("panic"), "byte {at}: {}", run.stderr);
    }
}

/// Runs that must be refused because a file would be written over, and what stands in it afterwards.
fn kept(place: &Place, words: &str, file: &str) {
    let before = std::fs::read(place.path(file)).unwrap();
    place.fails(words, 2, &["would be written over"]);
    assert!(std::fs::read(place.path(file)).unwrap() == before, "{words}");
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let place = Place::with_data();
    place.ok("train train.libsvm model -q");
    place.file("weights", &"1\n".repeat(60));
    place.file("nofile", "");
    for words in [
        "train train.libsvm train.libsvm",
        "train train.libsvm ./train.libsvm",
        "tune train.libsvm train.libsvm",
        "tune train.libsvm m --resume train.libsvm",
        "predict train.libsvm model train.libsvm",
        "predict train.libsvm model --scores train.libsvm",
        "predict train.libsvm model --probability train.libsvm",
        "convert train.libsvm train.libsvm --to-format csv",
        "margins train.libsvm model --svg train.libsvm",
        "compare test.libsvm train.libsvm --results train.libsvm",
        "compare test.libsvm train.libsvm --report train.libsvm",
        "sweep train.libsvm --over c1=1;2 --machines odm --results train.libsvm",
        "sweep train.libsvm --over c1=1;2 --machines odm --svg train.libsvm",
    ] {
        kept(&place, words, "train.libsvm");
    }
    kept(&place, "train train.libsvm weights --weights weights", "weights");
    kept(&place, "tune train.libsvm weights --weights weights", "weights");
    kept(&place, "tune train.libsvm m --weights weights --resume weights", "weights");
    kept(&place, "predict train.libsvm model model", "model");
    kept(&place, "predict train.libsvm model --scores model", "model");
    kept(&place, "margins train.libsvm model --svg model", "model");
    std::fs::copy(place.path("train.libsvm"), place.path("hepatitis.libsvm")).unwrap();
    kept(&place, "reproduce odm-table2 --data . --results hepatitis.libsvm", "hepatitis.libsvm");
    for words in [
        "predict train.libsvm model out --scores ./out",
        "tune train.libsvm out --resume out",
        "compare train.libsvm --report out --results out",
    ] {
        place.fails(words, 2, &["two outputs"]);
        assert!(!place.has("out"));
    }
    place.ok("predict train.libsvm model /dev/null --scores /dev/null");
}

#[cfg(unix)]
#[test]
fn links_and_redirections_are_seen_through() {
    let place = Place::with_data();
    std::os::unix::fs::symlink(place.path("train.libsvm"), place.path("soft")).unwrap();
    std::fs::hard_link(place.path("train.libsvm"), place.path("hard")).unwrap();
    kept(&place, "train train.libsvm soft", "train.libsvm");
    kept(&place, "train soft train.libsvm", "train.libsvm");
    kept(&place, "train train.libsvm hard", "train.libsvm");
    kept(&place, "convert soft hard --to-format csv", "train.libsvm");
    let before = place.read("train.libsvm");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("widemargin"))
        .current_dir(place.path(""))
        .args(["train", "-", "train.libsvm"])
        .stdin(std::fs::File::open(place.path("train.libsvm")).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.read("train.libsvm"), before);
}

/// Stops the program with a signal once it has begun to write; what it leaves in the folder.
#[cfg(unix)]
fn stopped_writing(signal: &str) {
    let place = Place::new();
    place.file("many.libsvm", &common::rows(400_000, 3));
    place.file("out.libsvm.xz", "precious");
    let child = Command::new(assert_cmd::cargo::cargo_bin!("widemargin"))
        .current_dir(place.path(""))
        .args(["convert", "many.libsvm", "out.libsvm.xz"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !place.names().iter().any(|name| name.ends_with(".tmp")) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is written");
        std::thread::sleep(Duration::from_millis(5));
    }
    Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.names(), ["many.libsvm", "out.libsvm.xz"], "{signal}");
    assert_eq!(place.read("out.libsvm.xz"), "precious");
}

#[cfg(unix)]
#[test]
fn a_signal_while_a_file_is_written_leaves_the_old_one() {
    stopped_writing("-INT");
    stopped_writing("-TERM");
}

#[cfg(target_os = "linux")]
#[test]
fn full_disks_and_closed_pipes_are_told_or_quiet() {
    let place = Place::with_data();
    place.ok("train train.libsvm model -q --probability");
    for words in [
        "train train.libsvm /dev/full",
        "tune train.libsvm /dev/full --grid c1=1",
        "tune train.libsvm m --resume /dev/full --grid c1=1",
        "predict train.libsvm model /dev/full",
        "predict train.libsvm model --scores /dev/full",
        "convert train.libsvm /dev/full --to-format csv",
        "convert train.libsvm /dev/full --to-format parquet",
        "margins train.libsvm model --svg /dev/full",
        "compare train.libsvm --fixed --repeats 1 --results /dev/full",
        "compare train.libsvm --fixed --repeats 1 --report /dev/full",
    ] {
        let run = place.run(words);
        assert_eq!(run.code, 1, "{words}: {}", run.stderr);
        assert!(run.stderr.contains("/dev/full") && !run.stderr.contains("bug"), "{words}: {}", run.stderr);
    }
    place.fails("train train.libsvm m --weights /dev/zero", 1, &["/dev/zero", "longer than 60 lines"]);
    place.fails("predict train.libsvm /dev/zero", 1, &["/dev/zero"]);
    let program = assert_cmd::cargo::cargo_bin!("widemargin").display().to_string();
    let shell = |words: &str| {
        let line = format!("{program} {words}");
        let output = Command::new("bash").current_dir(place.path("")).args(["-c", &line]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for words in [
        "info model",
        "predict train.libsvm model",
        "train train.libsvm m --json",
        "compare --fixed --repeats 1",
        "man",
        "completions bash",
        "convert train.libsvm -",
    ] {
        let (code, said) = shell(&format!("{words} > /dev/full"));
        assert_eq!(code, Some(1), "{words}: {said}");
        assert!(said.contains("standard output") || said.contains("error: -"), "{words}: {said}");
        assert!(!said.contains("bug"), "{words}: {said}");
        let (_, said) = shell(&format!("{words} 2>err | true; test ${{PIPESTATUS[0]}} = 0 || cat err >&2"));
        assert!(!said.contains("error"), "{words}: {said}");
        let (code, said) = shell(&format!("{words} > /dev/null 2>&-"));
        assert_eq!(code, Some(0), "{words} without standard error: {said}");
    }
    assert_eq!(place.names().iter().filter(|name| name.ends_with(".tmp")).count(), 0);
}

#[test]
fn rows_without_features_give_a_model_of_the_majority() {
    let place = Place::new();
    place.file("two.libsvm", "1\n-1\n1\n-1\n1\n");
    place.file("three.libsvm", "1\n2\n3\n1\n2\n3\n2\n");
    for machine in ["odm", "ldm", "odm-l", "svm", "l2svm", "lssvm", "mcodm", "mcsvm"] {
        for file in ["two", "three"] {
            for bias in ["free", "none", "1"] {
                let words = format!("train {file}.libsvm m -m {machine} --bias {bias} -q");
                let run = place.run(&words);
                assert!(!run.stderr.contains("bug"), "{words}: {}", run.stderr);
                assert!(run.code == 0 || run.code == 1, "{words}: {}", run.stderr);
                if run.code == 0 {
                    assert_eq!(place.json("info m --json")["features"], 0, "{words}");
                    place.ok(&format!("predict {file}.libsvm m out"));
                }
            }
        }
        if machine.starts_with("mc") {
            // Two free intercepts of which only the difference counts: no smallest objective, and an error that says so.
            continue;
        }
        place.ok(&format!("train two.libsvm m -m {machine} -q"));
        place.ok("predict two.libsvm m out -q");
        assert_eq!(place.read("out"), "1\n1\n1\n1\n1\n", "{machine}");
    }
}

#[test]
fn weights_beyond_all_numbers_are_refused() {
    let place = Place::with_data();
    place.file("weights", &"1e308\n".repeat(60));
    for machine in ["odm", "ldm", "svm", "l2svm", "lssvm", "mcodm"] {
        place.fails(&format!("train train.libsvm m -m {machine} --weights weights"), 1, &["train", "add up"]);
    }
    place.fails("tune train.libsvm m --weights weights", 1, &["add up"]);
}

#[test]
fn an_approximation_of_nothing_is_refused() {
    let place = Place::new();
    place.fails(
        "train sonar m --kernel poly --coef0=-1 --gamma 0.001 --approx 10",
        1,
        &["landmarks", "nothing to approximate"],
    );
}
