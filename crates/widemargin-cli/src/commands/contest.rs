//! What `compare`, `reproduce` and `sweep` share: machines as they are typed, the run, accuracies in words.

use crate::args::{ContestArgs, FitArgs};
use crate::failure::{Failure, Outcome};
use crate::files::fit_options;
use crate::interrupt;
use crate::machines;
use crate::output::{Output, count};
use crate::progress::Spinner;
use crate::values::Scale;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use widemargin::data::Dataset;
use widemargin::kernel::KernelKind;
use widemargin::machine::{Machine, SolverChoice, Value};
use widemargin::multiclass::Multiclass;
use widemargin::select::{Grid, Plan, Select};
use widemargin::study::{
    Comparison, Contestant, Entry, Protocol, Record, Standing, Tuning, Verdict, compare, expected_seconds,
};
use widemargin::{Error, Result};

/// A machine as it is typed: `MACHINE[:WORD…]`, where the words name a kernel, a way to meet more classes, or what decides
/// in the search.
pub struct Typed {
    name: String,
    machine: &'static dyn Machine,
    kernel: Option<KernelKind>,
    multiclass: Option<Multiclass>,
    select: Option<Select>,
}

impl Typed {
    /// Reads one.
    pub fn parse(text: &str) -> Result<Self> {
        let mut words = text.split(':');
        let machine = machines::find(words.next().unwrap_or_default())?;
        let mut typed = Self { name: text.into(), machine, kernel: None, multiclass: None, select: None };
        for word in words {
            let lower = word.to_ascii_lowercase();
            let known = (lower.parse().ok(), lower.parse().ok(), lower.parse().ok());
            match known {
                (Some(kernel), ..) => typed.kernel = Some(kernel),
                (_, Some(multiclass), _) => typed.multiclass = Some(multiclass),
                (_, _, Some(select)) => typed.select = Some(select),
                _ => {
                    return Err(Error::Usage(format!(
                        "{text}: after the machine may stand a kernel (rbf), a way to meet more classes (ovo) or what \
                         decides in the search (loo-loss), not {word}"
                    )));
                }
            }
        }
        Ok(typed)
    }
}

/// The machines of a comparison, for every kernel.
pub fn contestants(args: &ContestArgs, fit: &FitArgs, scale: Scale, seed: u64) -> Result<Vec<Contestant>> {
    let typed: Vec<Typed> = args.machines.iter().map(|text| Typed::parse(text)).collect::<Result<_>>()?;
    for (name, parameter, value) in &args.set {
        let set = machines::find(name)?.name();
        if !typed.iter().any(|t| t.machine.name() == set) {
            return Err(Error::Usage(format!("--set {name}.{parameter}={value}: {name} is not among the machines")));
        }
    }
    let machines: Vec<&dyn Machine> = typed.iter().map(|t| t.machine).collect();
    machines::check_uses(&machines, fit)?;
    let plans = args.grid.iter().map(|text| plan_of(text, &typed)).collect::<Result<Vec<_>>>()?;
    let kernels = if args.kernels.is_empty() { vec![fit.kernel] } else { args.kernels.clone() };
    let mut found: Vec<Contestant> = Vec::new();
    for &kernel in &kernels {
        for typed in &typed {
            // A machine with a kernel of its own enters once.
            if typed.kernel.is_none() || kernel == kernels[0] {
                found.push(contestant(typed, kernel, kernels.len() > 1, args, fit, scale, seed, &plans)?);
            }
        }
    }
    Ok(found)
}

/// `--grid paper`, `--grid staged` for all machines, or `--grid MACHINE:GRID` for one.
fn plan_of(text: &str, typed: &[Typed]) -> Result<(Option<String>, Plan)> {
    match text.split_once(':') {
        _ if text == "paper" => Ok((None, Plan::Paper)),
        _ if text == "staged" => Ok((None, Plan::Staged)),
        Some((name, grid)) if !name.contains('=') => {
            let machine = machines::find(name)?.name();
            if !typed.iter().any(|t| t.machine.name() == machine) {
                return Err(Error::Usage(format!("--grid {text}: {name} is not among the machines")));
            }
            let plan = match grid {
                "paper" => Plan::Paper,
                "staged" => Plan::Staged,
                grid => Plan::Grid(Grid::parse(grid)?),
            };
            Ok((Some(machine.into()), plan))
        }
        _ => Err(Error::Usage(format!("--grid {text}: expected paper, staged or MACHINE:GRID, such as svm:c=1;10"))),
    }
}

#[allow(clippy::too_many_arguments)]
fn contestant(
    typed: &Typed,
    kernel: KernelKind,
    tell_kernel: bool,
    args: &ContestArgs,
    fit: &FitArgs,
    scale: Scale,
    seed: u64,
    plans: &[(Option<String>, Plan)],
) -> Result<Contestant> {
    let machine = typed.machine;
    let is_its = |name: &str| machines::find(name).is_ok_and(|m| m.name() == machine.name());
    let its = args.set.iter().filter(|(name, ..)| is_its(name));
    let given: Vec<(String, Value)> = its.map(|(_, parameter, value)| (parameter.clone(), value.clone())).collect();
    let own_kernel = typed.kernel.unwrap_or(kernel);
    let fit = FitArgs { kernel: own_kernel, multiclass: typed.multiclass.or(fit.multiclass), ..fit.clone() };
    let mut options = fit_options(machine, machines::check(machine, &given)?, &fit, scale, seed)?;
    // A solver that another machine knows is not for this one.
    if !machine.uses().solvers.contains(&options.solver) {
        options.solver = SolverChoice::Auto;
    }
    let own = plans.iter().rev().find(|(name, _)| name.as_deref() == Some(machine.name()));
    let plan = own.or(plans.iter().rev().find(|(name, _)| name.is_none())).map(|(_, plan)| plan.clone());
    let select = typed.select.or(args.select).unwrap_or(Select::Cv);
    let tuning = Tuning {
        plan: plan.unwrap_or(Plan::Sample(args.budget.get())),
        select: Some(select),
        folds: args.folds.get(),
        repeats: 1,
        given,
        gamma_given: fit.gamma.is_some(),
        max_iter: None,
        rows: args.search_rows.map(Into::into),
    };
    let name = match tell_kernel && typed.kernel.is_none() {
        true => format!("{}:{}", typed.name, options.kernel.name()),
        false => typed.name.clone(),
    };
    Ok(Contestant { name, options, tuning: (!args.fixed).then_some(tuning) })
}

/// A data set with those who compete on it.
pub struct Match {
    pub data: Dataset,
    pub machines: Vec<Contestant>,
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
pub fn legend(reference: &str) -> String {
    format!(
        "● significantly better, ○ significantly worse than {reference} (paired t-test, 95 %), ? not tested (fewer than \
         three splits, or the difference is the same in all)"
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
