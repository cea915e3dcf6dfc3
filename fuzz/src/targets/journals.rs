//! Logs of searches, cut at any byte or damaged: a search goes on to the same model, or says which line is wrong.

use crate::case::{Failure, Outcome, require};
use crate::draw::Draw;
use crate::mutate::mutate;
use crate::run::Bench;
use std::path::Path;
use std::sync::OnceLock;
use widemargin::control::Control;
use widemargin::data::Examples;
use widemargin::data::{Dataset, embedded};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice, check_parameters, machine};
use widemargin::select::{Finished, Grid, Log, Plan, Search, Trial, fingerprint, tune};
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};
use widemargin::{Error, Result};

/// Searches that take different ways through the code: leave-one-out margins, shared matrices, folds of plain fits.
const SEARCHES: [(&str, Kernel, &str); 3] = [
    ("odm", Kernel::Linear, "c1=1:64:*8,d=0;0.4"),
    ("svm", Kernel::Rbf { gamma: 1.0 }, "c=1:1000:*10,gamma=0.1;1"),
    ("lda", Kernel::Linear, "ridge=0.001;0.1;1;10"),
];

/// What a search leaves that nobody interrupts.
struct Whole {
    log: Vec<u8>,
    model: Vec<u8>,
}

static WHOLE: [OnceLock<std::result::Result<Whole, String>>; 3] = [const { OnceLock::new() }; 3];
static DATA: OnceLock<Option<Dataset>> = OnceLock::new();

/// Damages the log of a search in one way, and goes on with it. Consecutive seeds cut at consecutive bytes.
pub fn run(seed: u64, bench: &Bench) -> Outcome {
    let draw = &mut Draw::new(seed, 6);
    let which = (seed % 3) as usize;
    let whole = WHOLE[which].get_or_init(|| first(which)).as_ref().map_err(|error| Failure(error.clone()))?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("log");
    let lines: Vec<&[u8]> = whole.log.split_inclusive(|byte| *byte == b'\n').collect();
    require(lines.len() > 3, || "a log of a few points".into())?;
    let control = Control { stop: Some(&bench.stop), observer: None };
    let kind = if (seed / 3).is_multiple_of(2) { 0 } else { draw.between(1, 4) };
    let (name, log): (&str, Vec<u8>) = match kind {
        0 => ("cut at a byte", whole.log[..(seed / 6) as usize % (whole.log.len() + 1)].to_vec()),
        1 => ("lines lost, doubled and shuffled", reordered(draw, &lines)),
        2 => {
            let at = draw.between(1, lines.len() - 2);
            return damaged_line(&lines, at, &path, which, control);
        }
        3 => ("a line half written in front of the end", {
            let mut log = lines[..lines.len() - 1].concat();
            let last = lines[lines.len() - 1];
            log.extend(&last[..draw.below(last.len())]);
            log
        }),
        _ => {
            let mut log = whole.log.clone();
            mutate(draw, &mut log);
            std::fs::write(&path, &log)?;
            let found = search(which, &path, control);
            let refused = matches!(found, Err(Error::Parse { .. } | Error::Data { .. } | Error::Parameter { .. }));
            require(found.is_ok() || refused, || format!("an error of another kind: {:?}", found.err()))?;
            return Ok(vec!["mutated anywhere".into(), if refused { "refused" } else { "went on" }.into()]);
        }
    };
    std::fs::write(&path, &log)?;
    let model = search(which, &path, control).map_err(|error| format!("{name}: it does not go on: {error}"))?;
    require(model == whole.model, || format!("{name} ({} bytes): another model", log.len()))?;
    let known = |bytes: &[u8]| {
        let mut lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    };
    require(known(&std::fs::read(&path)?) == known(&whole.log), || format!("{name}: the log has other points"))?;
    Ok(vec![name.into(), "same model".into()])
}

/// A line in the middle that is none is an error with its number, and the log stays as it is.
fn damaged_line(lines: &[&[u8]], at: usize, path: &Path, which: usize, control: Control<'_>) -> Outcome {
    let mut log = lines.iter().map(|line| line.to_vec()).collect::<Vec<_>>();
    let half = log[at].len() / 2;
    log[at].truncate(half);
    log[at].push(b'\n');
    let log = log.concat();
    std::fs::write(path, &log)?;
    match search(which, path, control) {
        Err(Error::Parse { line, .. }) if line == at as u64 + 1 => {}
        Err(error) => return Err(format!("line {} is damaged, but it says: {error}", at + 1).into()),
        Ok(_) => return Err(format!("line {} is damaged, and nobody says so", at + 1).into()),
    }
    require(std::fs::read(path)? == log, || "a log that is refused was changed".into())?;
    Ok(vec!["half a line in the middle".into(), "refused".into()])
}

fn reordered(draw: &mut Draw, lines: &[&[u8]]) -> Vec<u8> {
    let mut points: Vec<&[u8]> = lines[1..].iter().copied().filter(|_| draw.chance(0.7)).collect();
    if let Some(first) = points.first().copied() {
        points.push(first);
    }
    draw.shuffle(&mut points);
    [lines[0], &points.concat()].concat()
}

fn first(which: usize) -> std::result::Result<Whole, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("log");
    let model = search(which, &path, Control::default()).map_err(|error| error.to_string())?;
    let log = std::fs::read(&path).map_err(|error| error.to_string())?;
    Ok(Whole { log, model })
}

/// Searches with a log; the bytes of the model.
fn search(which: usize, path: &Path, control: Control<'_>) -> Result<Vec<u8>> {
    let data = DATA.get_or_init(|| embedded("sonar")).as_ref().ok_or_else(|| Error::Usage("no data".into()))?;
    let (name, kernel, grid) = SEARCHES[which];
    let machine = machine(name)?;
    let options = TrainOptions {
        machine,
        parameters: check_parameters(machine, &[])?,
        kernel,
        gamma: Gamma::Scale,
        approx: None,
        bias: Bias::Free,
        scaling: None,
        class_weight: ClassWeight::Equal,
        multiclass: None,
        solver: SolverChoice::Auto,
        settings: Settings::default(),
    };
    let plan = Plan::Grid(Grid::parse(grid)?);
    let search = Search { plan: &plan, folds: 3, ..Search::default() };
    let (log, known): (Log, Vec<Trial>) = Log::open(path, &fingerprint(Examples::of(data)?, None, &options, &search))?;
    let watcher = |finished: &Finished<'_>| log.add(finished.trial);
    let search = Search { known: &known, watcher: Some(&watcher), ..search };
    tune(data, None, &options, &search, control)?.model.to_bytes()
}
