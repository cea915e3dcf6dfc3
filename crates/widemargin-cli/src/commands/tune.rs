//! `widemargin tune DATA [MODEL]`

mod found;

use super::{scores, words};
use crate::args::TuneArgs;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::learning::Lesson;
use crate::output::{Output, Summary, count, is_stdout, one_on_stdout, percent, print, seconds, short, write_text};
use crate::places::Places;
use crate::progress::Spinner;
use crate::resources::{Laps, peak_memory};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use widemargin::data::ScalingKind;
use widemargin::kernel::Kernel;
use widemargin::machine::Parameters;
use widemargin::metrics::{Figures, Metric};
use widemargin::model::{Calibration, Model};
use widemargin::select::{Finished, Log, Plan, Search, Select, Trial, Tuned, figures_left_out, fingerprint, tune};
use widemargin::{Error, Result};

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
    label: Option<serde_json::Value>,
    feature_names: Option<Vec<&'a str>>,
    select: Select,
    folds: usize,
    repeats: usize,
    /// Rows that points were judged on.
    search_rows: usize,
    /// Rows that all points were judged on first, if only the best of these were on the others.
    first_rows: Option<usize>,
    score: Option<Metric>,
    /// Of that score.
    value: Option<f64>,
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
    seconds: &'a Laps<f64>,
    /// Of `read` and `search`; the last fit is part of the search.
    processor: &'a Laps<Option<f64>>,
    peak_memory: Option<u64>,
    gap: Option<f64>,
    converged: bool,
    training_error: f64,
    /// Of rows left out of the final model in turn; null for machines that cannot leave rows out.
    scores: Option<Figures>,
    calibration: Option<Calibration>,
    threshold: Option<f64>,
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
pub fn run(args: &TuneArgs, seed: u64, output: &Output) -> Outcome {
    if let Some(over) = args.average {
        return super::average::run(args, over, seed, output);
    }
    let search = search(args);
    let page_out = args.report.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("the page", page_out)])?;
    let places =
        Places::default().writes(args.model.as_ref()).writes(args.resume.as_ref()).writes(args.report.as_ref());
    let mut lesson = Lesson::read(&args.learn, seed, places, &|options| search.check(options), output)?;
    let tuned = find(args, &mut lesson, search, output)?;
    if let Some(path) = &args.model {
        interrupt::writing(|| tuned.model.save(path))?;
    }
    if let Some(words) = words::replaced_intercept(&tuned.model) {
        output.warn(&words);
    }
    let report = report(args, &tuned, &lesson);
    if let Some(path) = &args.report {
        write_text(
            path,
            &found::page(&report, &tuned.best, &summary(&report, args, &tuned.model), &lesson.data.name, seed),
        )?;
    }
    if output.json {
        output.object(&report)?;
    } else if !page_out {
        print(&format!("{}\n", summary(&report, args, &tuned.model)))?;
        if let Some(figures) = report.scores {
            output.tell(&scores::table(&[("left out", figures)]));
        }
    }
    if let Some(advice) = words::unconverged(&tuned.model) {
        output.warn(&advice);
    }
    Ok(())
}

/// The search that was asked for.
fn search(args: &TuneArgs) -> Search<'_> {
    Search {
        plan: args.grid.as_ref().unwrap_or(&Plan::Staged),
        select: args.select,
        folds: args.folds.into(),
        repeats: args.repeats.into(),
        score: args.score,
        given: &args.learn.given.0,
        gamma_given: args.learn.fit.gamma.is_some(),
        max_iter: None,
        rows: args.search_rows,
        known: &[],
        watcher: None,
        judges: None,
    }
}

/// Searches, and fits the best point; what is found goes into the log as it comes.
fn find(args: &TuneArgs, lesson: &mut Lesson, search: Search<'_>, output: &Output) -> Outcome<Tuned> {
    let weights = lesson.weights.as_deref();
    let open = |path| Log::open(path, &fingerprint(lesson.examples()?, weights, &lesson.options, &search));
    let log = args.resume.as_ref().map(open).transpose()?;
    let known = log.as_ref().map_or(&[][..], |(_, known)| known.as_slice());
    let watch = Watch::start(lesson.options.machine.name(), args.score, args.resume.as_deref(), output);
    let watcher = |finished: &Finished<'_>| {
        watch.show(finished);
        log.as_ref().map_or(Ok(()), |(log, _)| log.add(finished.trial))
    };
    let search = Search { known, watcher: Some(&watcher), ..search };
    let found = interrupt::stoppable(|control| {
        let mut tuned = tune(&lesson.data, weights, &lesson.options, &search, control)?;
        lesson.learn_unseen(&tuned.options, (&mut tuned.model, &tuned.outcome), control)?;
        Result::Ok(tuned)
    });
    let tuned = match found {
        Err(Error::Interrupted) => return Err(watch.stopped()),
        found => found?,
    };
    watch.end();
    lesson.clock.lap("search");
    lesson.clock.split(tuned.seconds, "train");
    Ok(tuned)
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
    fn start(machine: &'static str, metric: Option<Metric>, log: Option<&Path>, output: &Output) -> Self {
        let so_far = Arc::new(Mutex::new(SoFar::default()));
        let (kept, json) = (so_far.clone(), output.json);
        let advice = match log {
            Some(log) => format!("go on with --resume {}", log.display()),
            None => "with --resume FILE a search can go on where it stopped".into(),
        };
        interrupt::set_last_words(Box::new(move || {
            let so_far = locked(&kept);
            tell_best(machine, metric, &so_far, json);
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
        let best = so_far
            .best
            .as_ref()
            .map_or(String::new(), |best| format!(", best {} correct", percent(1.0 - best.score.error)));
        self.spinner.say(format!(
            "searching {}: {} of {} points{best}, about {needed:.0} s left",
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
fn tell_best(machine: &str, metric: Option<Metric>, so_far: &SoFar, json: bool) {
    let best = so_far.best.as_ref();
    let unfinished =
        Unfinished { version: env!("CARGO_PKG_VERSION"), complete: false, machine, points: so_far.points, best };
    let text = match (json, best) {
        (true, _) => serde_json::to_string(&unfinished).unwrap_or_default(),
        (false, Some(best)) => format!("best so far  {}", point(machine, metric, best)),
        (false, None) => return,
    };
    let _ = print(&format!("{text}\n"));
}

/// A point, with the figure that decides if one was named.
fn point(machine: &str, metric: Option<Metric>, trial: &Trial) -> String {
    let gamma = trial.gamma.map_or(String::new(), |gamma| format!(", gamma {}", short(gamma)));
    let right = percent(1.0 - trial.score.error);
    let figures = match metric.zip(trial.score.cost.filter(|cost| cost.is_finite())) {
        Some((metric, cost)) => {
            format!("{} {}, {right} correct", metric.name().replace('_', " "), short(metric.value_of(cost)))
        }
        None => format!("{right} correct, loss {}", short(trial.score.loss)),
    };
    format!("{}{gamma}: {figures}", words::machine(machine, &trial.params))
}

fn report<'a>(args: &'a TuneArgs, tuned: &'a Tuned, lesson: &'a Lesson) -> Report<'a> {
    let (rows, clock) = (lesson.data.rows.rows(), &lesson.clock);
    let scores = lesson.unseen(tuned).map(|unseen| figures_left_out(&unseen, &tuned.model));
    let score = &tuned.best.score;
    Report {
        version: env!("CARGO_PKG_VERSION"),
        complete: true,
        machine: &tuned.model.machine,
        params: &tuned.model.parameters,
        kernel: tuned.model.kernel,
        bias: tuned.model.bias.to_string(),
        bias_asked: tuned.options.bias.to_string(),
        scale: ScalingKind::word(tuned.options.scaling),
        rows,
        features: tuned.model.features,
        classes: tuned.model.labels.len(),
        label: words::label_column(&tuned.model),
        feature_names: tuned.model.schema.as_ref().and_then(|schema| schema.column_names()),
        select: tuned.select,
        folds: args.folds.into(),
        repeats: args.repeats.into(),
        search_rows: tuned.rows,
        first_rows: tuned.first_rows,
        score: args.score,
        value: args.score.zip(score.cost).map(|(metric, cost)| metric.value_of(cost)),
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
        seconds: clock.seconds(),
        processor: clock.processor(),
        peak_memory: peak_memory(),
        gap: tuned.outcome.gap,
        converged: tuned.outcome.stop.converged(),
        training_error: tuned.outcome.statistics().errors,
        scores,
        calibration: tuned.model.calibration.clone(),
        threshold: tuned.model.threshold,
        model: args.model.as_deref(),
        trials: &tuned.trials,
    }
}

/// By what points were compared, and how good the best one is.
fn judged(report: &Report<'_>) -> (String, String) {
    let spread = report.spread;
    if let (Some(metric), Some(value)) = (report.score, report.value) {
        let (by, deviation) = match report.select {
            Select::Cv => ("the mean of the folds".to_string(), format!(" ± {}", short(spread))),
            Select::Loo | Select::LooLoss => ("of rows left out in turn".to_string(), String::new()),
        };
        let (name, right) = (metric.name().replace('_', " "), percent(report.accuracy));
        return (format!("{name}, {by}"), format!("{}{deviation}; {right} correct", short(value)));
    }
    match report.select {
        Select::Cv => (
            format!("cross-validation, {}, {}", count(report.folds, "fold"), count(report.repeats, "time")),
            format!("{:.2} ± {} correct", 100.0 * report.accuracy, percent(spread)),
        ),
        Select::LooLoss => (
            "logistic loss of the leave-one-out margins".into(),
            format!("loss {} ± {}; {} correct", short(report.loss), short(spread), percent(report.accuracy)),
        ),
        Select::Loo => ("leave-one-out error".into(), format!("{} correct", percent(report.accuracy))),
    }
}

/// The rows that points were judged on, where these were not all of them for every point.
fn judged_on(report: &Report<'_>) -> Option<String> {
    let rows = match report.search_rows < report.rows {
        true => format!("{} of {}", count(report.search_rows, "row"), report.rows),
        false => count(report.search_rows, "row"),
    };
    match report.first_rows {
        Some(first) => {
            let screened = report.trials.iter().filter(|trial| trial.score.rows.is_some()).count();
            Some(format!("{first} rows first, the best {} on {rows}", count(report.points - screened, "point")))
        }
        None => (report.search_rows < report.rows).then_some(rows),
    }
}

/// How many points and fits it took.
fn effort(report: &Report<'_>) -> (String, String) {
    let points = count(report.points, "point");
    let tried = match report.resumed {
        0 => points,
        resumed => format!("{points} ({resumed} of them from the log)"),
    };
    let screened = report.trials.iter().filter(|trial| trial.score.rows.is_some()).count();
    let dropped = match report.dropped - screened {
        0 => String::new(),
        dropped => format!("; {} dropped early, which could not win any more", count(dropped, "point")),
    };
    (
        format!("{tried}; the papers' grid has {}", report.paper_points),
        format!("{}, {} saved{dropped}", report.fits, report.fits_saved),
    )
}

fn summary(report: &Report<'_>, args: &TuneArgs, model: &Model) -> Summary {
    let mut summary = Summary::default();
    let size = format!("{} × {}", count(report.rows, "row"), count(report.features, "feature"));
    let ((judged, found), (tried, fits)) = (judged(report), effort(report));
    summary
        .line("best", words::machine(report.machine, report.params))
        .line("kernel", words::kernel(report.kernel))
        .line("judged by", judged)
        .line("found", found);
    if let Some(rows) = judged_on(report) {
        summary.line("judged on", format!("{rows}; --search-rows all judges every point on every row"));
    }
    if let Some(second) = report.runner_up {
        summary.line("second", point(report.machine, report.score, second));
    }
    if !report.at_edge.is_empty() {
        let names = report.at_edge.join(", ");
        summary.line("edge", format!("{names}: the best value is the last one tried; a wider --grid may find better"));
    }
    let (search, fit) = (seconds(report.seconds.of("search")), seconds(report.seconds.of("train")));
    summary
        .line("data", format!("{}: {size}, {}", args.learn.data, count(report.classes, "class")))
        .line("scaling", report.scale);
    words::columns(model, &mut summary);
    summary
        .line("tried", tried)
        .line("fits", fits)
        .line("time", format!("{search} searching, {fit} for the final fit"));
    if let Some(calibration) = &model.calibration {
        summary.line("probability", words::calibration(calibration));
    }
    if let Some(threshold) = model.threshold {
        summary.line("threshold", words::threshold(threshold, &model.labels));
    }
    let place = args.model.as_ref().map_or("not written (no MODEL was named)".into(), |p| p.display().to_string());
    summary.line("model", place);
    summary
}
