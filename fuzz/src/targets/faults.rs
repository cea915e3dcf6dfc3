//! The program killed, starved of disk, cut off from its reader, and not alone: files are whole or not there.

use crate::case::{Failure, Outcome, require};
use crate::draw::Draw;
use crate::program::{decent, good, path, program};
use crate::run::Bench;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A command, what it writes, and how a part of its work is kept.
struct Work {
    name: &'static str,
    words: &'static [&'static str],
    /// The file that is whole or not there.
    output: Option<&'static str>,
    /// The file of lines that only grows.
    journal: Option<&'static str>,
}

const WORKS: &[Work] = &[
    Work {
        name: "train",
        words: &["train", "rows.libsvm", "out", "--machine", "svm", "--kernel", "rbf", "--quiet"],
        output: Some("out"),
        journal: None,
    },
    Work {
        name: "tune",
        words: &[
            "tune",
            "sonar",
            "out",
            "--machine",
            "svm",
            "--kernel",
            "rbf",
            "--resume",
            "log",
            "--folds",
            "3",
            "--quiet",
        ],
        output: Some("out"),
        journal: Some("log"),
    },
    Work {
        name: "convert",
        words: &["convert", "rows.libsvm", "out.csv.gz", "--quiet"],
        output: Some("out.csv.gz"),
        journal: None,
    },
    Work {
        name: "compare",
        words: &[
            "compare",
            "iris",
            "wine",
            "--machines",
            "svm,lssvm,odm",
            "--repeats",
            "4",
            "--budget",
            "6",
            "--results",
            "log",
            "--quiet",
        ],
        output: None,
        journal: Some("log"),
    },
];

/// What a command leaves that nobody disturbs, and how long it takes.
struct Whole {
    output: Option<Vec<u8>>,
    journal: Option<BTreeSet<String>>,
    took: Duration,
}

static WHOLE: [OnceLock<Result<Whole, String>>; WORKS.len()] = [const { OnceLock::new() }; WORKS.len()];

/// Disturbs one command in one way.
pub fn run(seed: u64, _: &Bench) -> Outcome {
    let draw = &mut Draw::new(seed, 7);
    let work = &WORKS[(seed % WORKS.len() as u64) as usize];
    let whole = WHOLE[(seed % WORKS.len() as u64) as usize].get_or_init(|| undisturbed(work).map_err(|f| f.0));
    let whole = whole.as_ref().map_err(|error| Failure(error.clone()))?;
    let folder = tempfile::tempdir()?;
    rows(folder.path())?;
    let kind = match draw.below(8) {
        0..=4 => {
            killed(draw, work, whole, folder.path())?;
            "killed"
        }
        5 => {
            full_disk(draw, work, whole, folder.path())?;
            "disk full"
        }
        6 => {
            closed_pipe(draw, folder.path())?;
            "reader gone"
        }
        _ => {
            not_alone(work, whole, folder.path())?;
            "two at once"
        }
    };
    Ok(vec![format!("{}, {kind}", work.name)])
}

/// A few thousand rows that take a command some tenths of a second.
fn rows(folder: &Path) -> Result<(), Failure> {
    let draw = &mut Draw::new(1, 8);
    let mut text = String::new();
    for _ in 0..3000 {
        let x: Vec<f64> = (0..10).map(|_| draw.normal()).collect();
        let label = if x[0] + x[1] * x[2] + 0.3 * draw.normal() > 0.0 { "+1" } else { "-1" };
        text += label;
        for (j, v) in x.iter().enumerate() {
            write!(text, " {}:{v:.4}", j + 1)?;
        }
        text.push('\n');
    }
    Ok(std::fs::write(folder.join("rows.libsvm"), text)?)
}

fn undisturbed(work: &Work) -> Result<Whole, Failure> {
    let folder = tempfile::tempdir()?;
    rows(folder.path())?;
    let start = Instant::now();
    good(&program(folder.path(), work.words)?.output()?)?;
    let took = start.elapsed();
    let output = work.output.map(|name| std::fs::read(folder.path().join(name))).transpose()?;
    let journal = work.journal.map(|name| points(&folder.path().join(name))).transpose()?;
    Ok(Whole { output, journal, took })
}

/// The lines of a journal without what depends on the clock; all of them must be whole.
fn points(path: &Path) -> Result<BTreeSet<String>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let line = |line: &str| {
        let mut value: serde_json::Value =
            serde_json::from_str(line).map_err(|error| format!("a line that is none: {error}: {line}"))?;
        if let Some(object) = value.as_object_mut() {
            object.retain(|name, _| !name.contains("seconds"));
        }
        Ok(value.to_string())
    };
    text.lines().map(line).collect()
}

/// Kills it a few times at any moment, then lets it finish.
fn killed(draw: &mut Draw, work: &Work, whole: &Whole, folder: &Path) -> Result<(), Failure> {
    let precious = work.output.filter(|_| draw.chance(0.5)).map(|name| folder.join(name));
    if let Some(path) = &precious {
        std::fs::write(path, "precious")?;
    }
    for _ in 0..draw.between(1, 3) {
        let mut child = program(folder, work.words)?.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        std::thread::sleep(whole.took.mul_f64(draw.uniform(0.0, 1.1)));
        // It may have ended by itself.
        let _ = child.kill();
        child.wait()?;
        if let Some(name) = work.output {
            let found = std::fs::read(folder.join(name)).ok();
            let before = if precious.is_some() { Some(b"precious".to_vec()) } else { None };
            require(found == before || found == whole.output, || {
                format!("killed, {name} is neither whole nor as before")
            })?;
        }
    }
    good(&program(folder, work.words)?.output()?)?;
    finished(work, whole, folder)
}

/// What a command leaves in the end is what it leaves undisturbed.
fn finished(work: &Work, whole: &Whole, folder: &Path) -> Result<(), Failure> {
    if let Some(name) = work.output {
        let found = std::fs::read(folder.join(name)).ok();
        require(found == whole.output, || format!("in the end, {name} is another one"))?;
    }
    if let Some(name) = work.journal {
        let found = points(&folder.join(name))?;
        require(Some(&found) == whole.journal.as_ref(), || format!("in the end, {name} has other points"))?;
    }
    Ok(())
}

/// No file may grow beyond a few kilobytes: every write after that fails, as on a full disk.
fn full_disk(draw: &mut Draw, work: &Work, whole: &Whole, folder: &Path) -> Result<(), Failure> {
    let program_path = path()?;
    let blocks = draw.between(0, 3).to_string();
    // An ignored signal stays ignored: the write fails, the process lives.
    let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
    let shell = || {
        let mut command = Command::new("sh");
        command
            .current_dir(folder)
            .arg("-c")
            .arg(&script)
            .arg(&program_path)
            .args(work.words)
            .env("RAYON_NUM_THREADS", "1");
        command.stdin(Stdio::null());
        command
    };
    let output = shell().output()?;
    decent(&output)?;
    if let Some(name) = work.output {
        let found = std::fs::read(folder.join(name)).ok();
        require(found.is_none() || found == whole.output, || format!("on a full disk, {name} was left in part"))?;
        let room = output.status.success();
        require(room == (found == whole.output), || format!("on a full disk it ended with {}", output.status))?;
    }
    let names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| {
            name != "rows.libsvm" && Some(name.as_str()) != work.output && Some(name.as_str()) != work.journal
        })
        .collect();
    require(names.is_empty(), || format!("on a full disk, {names:?} were left"))?;
    if let Some(name) = work.journal.filter(|name| folder.join(name).exists()) {
        points(&folder.join(name))?;
    }
    // With room again, all goes well.
    good(&program(folder, work.words)?.output()?)?;
    finished(work, whole, folder)
}

/// Whoever reads the output goes away: no panic, no complaint.
fn closed_pipe(draw: &mut Draw, folder: &Path) -> Result<(), Failure> {
    let words: &[&[&str]] = &[
        &["convert", "rows.libsvm", "-", "--quiet"],
        &["info", "rows.libsvm", "--json"],
        &["train", "--help"],
        &["completions", "bash"],
        &["compare", "iris", "--machines", "svm,lda", "--fixed", "--repeats", "2"],
    ];
    let words = draw.pick(words);
    let mut child = program(folder, words)?.spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    require(!errors.contains("has a bug") && !errors.contains("panicked"), || format!("{words:?}: panic: {errors}"))?;
    require(matches!(output.status.code(), Some(0..=2)), || format!("{words:?} ended with {}: {errors}", output.status))
}

/// Two of the same at once: both end well and leave what one would.
fn not_alone(work: &Work, whole: &Whole, folder: &Path) -> Result<(), Failure> {
    let one = program(folder, work.words)?.spawn()?;
    let two = program(folder, work.words)?.spawn()?;
    good(&one.wait_with_output()?)?;
    good(&two.wait_with_output()?)?;
    finished(work, whole, folder)
}
