//! `widemargin tune DATA [MODEL]`

use super::{train, words};
use crate::args::TuneArgs;
use crate::failure::{Failure, Outcome};
use crate::files::{fit_options, read_data, read_weights};
use crate::interrupt;
use crate::machines;
use crate::output::{Output, Summary, count, percent, print, seconds, short};
use crate::progress::Spinner;
use crate::resources::{between, peak_memory, processor_seconds};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use widemargin::data::Examples;
use widemargin::kernel::Kernel;
use widemargin::machine::Parameters;
use widemargin::model::{Calibration, Model};
use widemargin::select::{Finished, Grid, Log, Plan, Search, Select, Trial, Tuned, calibrate, fingerprint, tune};
use widemargin::{Error, Result};

/// Seconds, by what they were spent on.
#[derive(Serialize)]
struct Times {
    read: f64,
    search: f64,
    train: f64,
}

/// Processor seconds, where the system tells them.
#[derive(Serialize)]
struct Processor {
    read: Option<f64>,
    /// The search and the last fit.
    search: Option<f64>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    complete: bool,
    machine: &'a str,
    params: &'a Parameters,
    kernel: Kernel,
    bias: String,
    bias_asked: String,
    scale: &'static str,
    rows: usize,
    features: usize,
    classes: usize,
    select: Select,
    folds: usize,
    repeats: usize,
    accuracy: f64,
    error: f64,
    loss: f64,
    spread: f64,
    fold_errors: &'a [f64],
    runner_up: Option<&'a Trial>,
    points: usize,
    paper_points: usize,
    at_edge: &'a [String],
    resumed: usize,
    fits: usize,
    fits_saved: usize,
    dropped: usize,
    shared: bool,
    seconds: Times,
    processor: Processor,
    peak_memory: Option<u64>,
    gap: Option<f64>,
    converged: bool,
    training_error: f64,
    calibration: Option<Calibration>,
    model: Option<&'a Path>,
    trials: &'a [Trial],
}

/// What `--json` prints of a search that was stopped.
#[derive(Serialize)]
struct Unfinished<'a> {
    version: &'static str,
    complete: bool,
    machine: &'a str,
    points: usize,
    best: Option<&'a Trial>,
}

/// Reads, searches, writes, reports.
pub fn run(args: &TuneArgs, given: &[(String, String)], seed: u64, output: &Output) -> Outcome {
    train::check_early(args.machine.as_deref(), &args.fit, args.scale, given)?;
    let plan = plan(args.grid.as_deref())?;
    let places = train::places(&args.data, args.weights.as_deref());
    places.writes(args.model.as_ref()).writes(args.resume.as_ref()).check()?;
    let begin = processor_seconds();
    let (data, read) = read_data(&args.data, &args.input, output)?;
    let weights = args.weights.as_ref().map(|path| read_weights(path, data.rows.rows())).transpose()?;
    let machine = train::choose(args.machine.as_deref(), &args.fit, &data)?;
    train::check_uses(machine, &args.fit, &data)?;
    let mut options = fit_options(machine, machines::check(machine, given)?, &args.fit, args.scale, seed)?;
    options.class_weight = args.class_weight.clone().unwrap_or_default();
    let search = Search {
        plan: &plan,
        select: args.select.map(Into::into),
        folds: args.folds.into(),
        repeats: args.repeats.into(),
        given,
        gamma_given: args.fit.gamma.is_some(),
        max_iter: None,
        rows: args.search_rows.map(Into::into),
        known: &[],
        watcher: None,
    };
    let log = match &args.resume {
        Some(path) => Some(Log::open(path, &fingerprint(Examples::of(&data)?, weights.as_deref(), &options, &search))?),
        None => None,
    };
    let known = log.as_ref().map_or(Vec::new(), |(_, known)| known.clone());
    let watch = Watch::start(machine.name(), args.resume.as_deref(), output);
    let watcher = |finished: &Finished<'_>| {
        watch.show(finished);
        log.as_ref().map_or(Ok(()), |(log, _)| log.add(finished.trial))
    };

    let (start, ready) = (Instant::now(), processor_seconds());
    let search = Search { known: &known, watcher: Some(&watcher), ..search };
    let found = interrupt::stoppable(|control| {
        let mut tuned = tune(&data, weights.as_deref(), &options, &search, control)?;
        if args.probability {
            let calibration =
                calibrate(Examples::of(&data)?, weights.as_deref(), &tuned.options, &tuned.outcome, control)?;
            tuned.model.calibration = Some(calibration);
        }
        Result::Ok(tuned)
    });
    let tuned = match found {
        Err(Error::Interrupted) => return Err(watch.stopped()),
        found => found?,
    };
    watch.end();
    let times = Times { read, search: tuned.seconds, train: start.elapsed().as_secs_f64() - tuned.seconds };
    let processor = Processor { read: between(begin, ready), search: between(ready, processor_seconds()) };
    if let Some(path) = &args.model {
        interrupt::writing(|| tuned.model.save(path))?;
    }
    if let Some(words) = words::replaced_intercept(&tuned.model) {
        output.warn(&words);
    }
    let report = report(args, &tuned, &data, times, processor);
    if output.json {
        output.object(&report)?;
    } else {
        print(&format!("{}\n", summary(&report, args, &tuned.model)))?;
    }
    if let Some(advice) = words::unconverged(&tuned.model) {
        output.warn(&advice);
    }
    Ok(())
}

fn plan(grid: Option<&str>) -> Result<Plan> {
    match grid {
        None => Ok(Plan::Staged),
        Some("paper") => Ok(Plan::Paper),
        Some(text) => Grid::parse(text).map(Plan::Grid),
    }
}

/// What is known so far, for the line on the terminal and for Ctrl-C.
#[derive(Default)]
struct SoFar {
    best: Option<Trial>,
    points: usize,
}

/// Shows how far a search got, and keeps the best point in case it is stopped.
struct Watch {
    so_far: Arc<Mutex<SoFar>>,
    spinner: Spinner,
    machine: &'static str,
    start: Instant,
}

fn locked(so_far: &Mutex<SoFar>) -> MutexGuard<'_, SoFar> {
    so_far.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    fn start(machine: &'static str, log: Option<&Path>, output: &Output) -> Self {
        let so_far = Arc::new(Mutex::new(SoFar::default()));
        let (kept, json) = (so_far.clone(), output.json);
        let advice = match log {
            Some(log) => format!("go on with --resume {}", log.display()),
            None => "with --resume FILE a search can go on where it stopped".into(),
        };
        interrupt::set_last_words(Box::new(move || {
            let so_far = locked(&kept);
            tell_best(machine, &so_far, json);
            format!("interrupted after {}; no model was written; {advice}", count(so_far.points, "point"))
        }));
        let spinner = Spinner::start(output, format!("searching {machine}"));
        Self { so_far, spinner, machine, start: Instant::now() }
    }

    fn show(&self, finished: &Finished<'_>) {
        let mut so_far = locked(&self.so_far);
        so_far.points = finished.done;
        if finished.best {
            so_far.best = Some(finished.trial.clone());
        }
        let left = finished.planned.saturating_sub(finished.done) as f64;
        let needed = self.start.elapsed().as_secs_f64() / finished.done as f64 * left;
        let best = so_far.best.as_ref().map_or(String::new(), |best| format!(", best {}", percent(best.score.error)));
        self.spinner.say(format!(
            "searching {}: {} of {} points{best} wrong, about {needed:.0} s left",
            self.machine, finished.done, finished.planned
        ));
    }

    /// The search is over: nothing is left to be said.
    fn end(&self) {
        interrupt::take_last_words();
    }

    /// Ctrl-C.
    fn stopped(self) -> Failure {
        drop(self.spinner);
        match interrupt::take_last_words() {
            Some(words) => Failure::Stopped(words()),
            // The signal's own thread has them, and ends the program once it has said them.
            None => loop {
                std::thread::park();
            },
        }
    }
}

/// The best point so far: standard output is all that is left of it. It may be closed; nobody is told then.
fn tell_best(machine: &str, so_far: &SoFar, json: bool) {
    let best = so_far.best.as_ref();
    let unfinished =
        Unfinished { version: env!("CARGO_PKG_VERSION"), complete: false, machine, points: so_far.points, best };
    let text = match (json, best) {
        (true, _) => serde_json::to_string(&unfinished).unwrap_or_default(),
        (false, Some(best)) => format!("best so far  {}", point(machine, best)),
        (false, None) => return,
    };
    let _ = print(&format!("{text}\n"));
}

fn point(machine: &str, trial: &Trial) -> String {
    let gamma = trial.gamma.map_or(String::new(), |gamma| format!(", gamma {}", short(gamma)));
    let (wrong, loss) = (percent(trial.score.error), short(trial.score.loss));
    format!("{}{gamma}: {wrong} wrong, loss {loss}", words::machine(machine, &trial.params))
}

fn report<'a>(
    args: &'a TuneArgs,
    tuned: &'a Tuned,
    data: &widemargin::data::Dataset,
    seconds: Times,
    processor: Processor,
) -> Report<'a> {
    let score = &tuned.best.score;
    Report {
        version: env!("CARGO_PKG_VERSION"),
        complete: true,
        machine: &tuned.model.machine,
        params: &tuned.model.parameters,
        kernel: tuned.model.kernel,
        bias: words::bias(tuned.model.bias),
        bias_asked: words::bias(tuned.options.bias),
        scale: words::scaling(args.scale.kind()),
        rows: data.rows.rows(),
        features: tuned.model.features,
        classes: tuned.model.labels.len(),
        select: tuned.select,
        folds: args.folds.into(),
        repeats: args.repeats.into(),
        accuracy: 1.0 - score.error,
        error: score.error,
        loss: score.loss,
        spread: score.spread,
        fold_errors: &score.folds,
        runner_up: tuned.runner_up.as_ref(),
        points: tuned.trials.len(),
        paper_points: tuned.paper_points,
        at_edge: &tuned.at_edge,
        resumed: tuned.resumed,
        fits: tuned.fits,
        fits_saved: tuned.fits_saved,
        dropped: tuned.dropped,
        shared: tuned.shared,
        seconds,
        processor,
        peak_memory: peak_memory(),
        gap: tuned.outcome.gap,
        converged: tuned.outcome.stop.converged(),
        training_error: tuned.outcome.statistics().errors,
        calibration: tuned.model.calibration,
        model: args.model.as_deref(),
        trials: &tuned.trials,
    }
}

fn summary(report: &Report<'_>, args: &TuneArgs, model: &Model) -> Summary {
    let mut summary = Summary::default();
    let size = format!("{} × {}", count(report.rows, "row"), count(report.features, "feature"));
    let (times, spread) = (&report.seconds, report.spread);
    let (judged, found) = match report.select {
        Select::Cv => (
            format!("cross-validation, {}, {}", count(report.folds, "fold"), count(report.repeats, "time")),
            format!("{:.2} ± {} of the folds correct", 100.0 * report.accuracy, percent(spread)),
        ),
        Select::LooLoss => (
            "logistic loss of the leave-one-out margins".into(),
            format!("loss {} ± {}; {} correct", short(report.loss), short(spread), percent(report.accuracy)),
        ),
        Select::Loo => ("leave-one-out error".into(), format!("{} correct", percent(report.accuracy))),
    };
    let dropped = match report.dropped {
        0 => String::new(),
        dropped => format!("; {} dropped early, which could not win any more", count(dropped, "point")),
    };
    let tried = match report.resumed {
        0 => count(report.points, "point"),
        resumed => format!("{} ({resumed} of them from the log)", count(report.points, "point")),
    };
    summary
        .line("best", words::machine(report.machine, report.params))
        .line("kernel", words::kernel(report.kernel))
        .line("judged by", judged)
        .line("found", found);
    if let Some(second) = report.runner_up {
        summary.line("second", point(report.machine, second));
    }
    if !report.at_edge.is_empty() {
        let names = report.at_edge.join(", ");
        summary.line("edge", format!("{names}: the best value is the last one tried; a wider --grid may find better"));
    }
    summary
        .line("data", format!("{}: {size}, {}", args.data, count(report.classes, "class")))
        .line("tried", format!("{tried}; the papers' grid has {}", report.paper_points))
        .line("fits", format!("{}, {} saved{dropped}", report.fits, report.fits_saved))
        .line("time", format!("{} searching, {} for the final fit", seconds(times.search), seconds(times.train)));
    if let Some(calibration) = &model.calibration {
        summary.line("probability", words::calibration(calibration));
    }
    let place = args.model.as_ref().map_or("not written (no MODEL was named)".into(), |p| p.display().to_string());
    summary.line("model", place);
    summary
}
