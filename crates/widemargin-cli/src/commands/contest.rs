//! What `compare`, `reproduce` and `sweep` share: who competes, the run, accuracies in words.

use crate::args::{ContestArgs, FitArgs, StudyArgs};
use crate::failure::{Failure, Outcome};
use crate::files::{fit_options, plain, shaped};
use crate::interrupt;
use crate::machines;
use crate::output::{Output, count};
use crate::progress::Spinner;
use crate::values::Scale;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::kernel::{Kernel, KernelKind};
use widemargin::machine::{Machine, check_parameters};
use widemargin::select::{Plan, Select};
use widemargin::train::Gamma;
use widemargin::{Error, Result};
use widemargin_studies::{
    Amendment, Common, Comparison, Contestant, Entry, Match, Protocol, Record, Standing, Test, Tries, Verdict, compare,
    expected_seconds,
};

/// The machines of a comparison, for every kernel.
pub fn contestants(args: &ContestArgs, fit: &FitArgs, seed: u64) -> Result<Vec<Contestant>> {
    let grids = args.grid.iter().map(|text| Amendment::grid(text));
    let sets = args.set.iter().filter_map(|text| Amendment::set(text));
    let amendments: Vec<Amendment> = grids.chain(sets).collect::<Result<_>>()?;
    let kinds = if args.kernels.is_empty() { vec![fit.kernel] } else { args.kernels.clone() };
    let kernels: Vec<Kernel> = kinds.into_iter().map(plain).collect();
    let common = common(args, fit, seed)?;
    let shape = |kernel: Kernel| shaped(kernel.kind(), fit);
    let found = widemargin_studies::contestants(&args.machines, &amendments, &kernels, &common, &shape)?;
    let machines: Vec<&Machine> = found.iter().map(|contestant| contestant.options.machine).collect();
    machines::check_uses(&machines, fit)?;
    Ok(found)
}

/// The contestants on a data set, with the scaling that was asked for, or else suits it: tables are standardised, other data
/// go to [0, 1], as in the papers.
pub fn scaled(data: Dataset, machines: &[Contestant], scale: Option<Scale>) -> Match {
    let scaling = Scale::usual(scale, &data, Some(ScalingKind::MinMax));
    let mut machines = machines.to_vec();
    machines.iter_mut().for_each(|contestant| contestant.options.scaling = scaling);
    Match { data, machines }
}

/// What all of them share.
fn common(args: &ContestArgs, fit: &FitArgs, seed: u64) -> Result<Common> {
    // Machine, parameters and kernel are each contestant's own.
    let any_kernel = FitArgs { kernel: KernelKind::Linear, gamma: None, degree: None, coef0: None, ..fit.clone() };
    let any = machines::find("svm")?;
    let mut options = fit_options(any, check_parameters(any, &[])?, &any_kernel, None, seed)?;
    options.gamma = fit.gamma.unwrap_or(Gamma::Scale);
    Ok(Common {
        options,
        gamma_given: fit.gamma.is_some(),
        tries: if args.fixed { Tries::Nothing } else { Tries::Plan(Plan::Sample(args.budget.get())) },
        select: args.select.unwrap_or(Select::Cv),
        folds: args.folds.get(),
        max_iter: None,
        rows: args.search_rows.map(Into::into),
    })
}

/// Random splits, judged by the corrected test.
pub fn protocol(study: &StudyArgs, reference: usize, seed: u64) -> Protocol {
    let (repeats, test) = (study.repeats.into(), Test::Corrected);
    Protocol { repeats, train: study.train, reference, test, seed, keep_going: false }
}

/// Runs the protocol on every data set. Results go into the file as they come.
pub fn run(
    matches: &[Match],
    protocol: &Protocol,
    results: Option<&Path>,
    estimate: bool,
    output: &Output,
) -> Outcome<Vec<Comparison>> {
    let record = results.map(Record::open).transpose()?;
    if estimate {
        tell_time(matches, protocol, record.as_ref(), output)?;
    }
    let planned: usize = matches.iter().map(|m| m.machines.len() * protocol.repeats).sum();
    set_last_words(results);
    let (start, before, fresh) = (Instant::now(), AtomicUsize::new(0), AtomicUsize::new(0));
    let spinner = Spinner::start(output, "comparing");
    let mut comparisons = Vec::new();
    for Match { data, machines } in matches {
        let watch = |standing: &Standing| {
            let done = before.load(Ordering::Relaxed) + standing.done;
            let new = (fresh.load(Ordering::Relaxed) + standing.done - standing.known).max(1);
            let left = start.elapsed().as_secs_f64() / new as f64 * planned.saturating_sub(done) as f64;
            spinner.say(format!("{}: {done} of {planned} results, about {} left", data.name, time(left)));
        };
        let known = AtomicUsize::new(0);
        let comparison = interrupt::stoppable(|control| {
            let watch = |standing: &Standing| {
                known.store(standing.known, Ordering::Relaxed);
                watch(standing);
            };
            compare(data, machines, protocol, record.as_ref(), Some(&watch), control)
        });
        match comparison {
            Err(Error::Interrupted) => return Err(stopped(spinner)),
            comparison => comparisons.push(comparison?),
        }
        let cells = machines.len() * protocol.repeats;
        before.fetch_add(cells, Ordering::Relaxed);
        fresh.fetch_add(cells - known.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    interrupt::take_last_words();
    Ok(comparisons)
}

fn set_last_words(results: Option<&Path>) {
    let advice = match results {
        Some(path) => format!("what was finished is in {}: the same command goes on from there", path.display()),
        None => "with --results FILE a study can go on where it stopped".into(),
    };
    interrupt::set_last_words(Box::new(move || format!("interrupted; {advice}")));
}

/// Ctrl-C.
fn stopped(spinner: Spinner) -> Failure {
    drop(spinner);
    match interrupt::take_last_words() {
        Some(words) => Failure::Stopped(words()),
        // The signal's own thread has them, and ends the program once it has said them.
        None => loop {
            std::thread::park();
        },
    }
}

fn tell_time(matches: &[Match], protocol: &Protocol, record: Option<&Record>, output: &Output) -> Outcome {
    let spinner = Spinner::start(output, "guessing the time");
    let mut seconds = 0.0;
    for Match { data, machines } in matches {
        seconds += interrupt::stoppable(|control| expected_seconds(data, machines, protocol, record, control))?;
    }
    drop(spinner);
    let sets = count(matches.len(), "data set");
    output.tell(&format!("{sets}: roughly {} of processor time, if nothing is slower than a pilot", time(seconds)));
    Ok(())
}

/// A duration for people who wait.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

/// What the bullets mean.
pub fn legend(reference: &str, test: Test) -> String {
    let many = if test == Test::Corrected { ", Holm over all of them" } else { "" };
    format!(
        "● significantly better, ○ significantly worse than {reference} ({}, 95 %{many}), ? not tested (fewer than three splits, \
         or the difference is the same in all)",
        test.name()
    )
}

/// The papers' bullets.
pub fn bullet(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "●",
        Verdict::Worse => "○",
        Verdict::Untested => "?",
        Verdict::Tie | Verdict::Reference | Verdict::Missing => " ",
    }
}

/// `83.33 ±  1.20 ●`
pub fn accuracy(entry: &Entry) -> String {
    if entry.failure.is_some() {
        return "N/A".into();
    }
    figure(entry.accuracy, entry.deviation, entry.verdict)
}

/// `83.33 ±  1.20 ●`
pub fn figure(mean: f64, deviation: f64, verdict: Verdict) -> String {
    format!("{:.2} ± {:5.2} {}", 100.0 * mean, 100.0 * deviation, bullet(verdict))
}

/// A `p` for people.
pub fn chance(p: Option<f64>) -> String {
    match p {
        None => "–".into(),
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}
