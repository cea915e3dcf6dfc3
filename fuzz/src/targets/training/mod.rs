//! Random small problems over every machine: what training claims of itself is true, and the model is what it was.

mod problem;

use crate::case::{Facts, Outcome, require};
use crate::draw::Draw;
use crate::run::Bench;
use problem::{Problem, is_convex, problem};
use std::path::Path;
use widemargin::control::Control;
use widemargin::data::Examples;
use widemargin::data::{self, Precision, Storage};
use widemargin::kernel::Kernel;
use widemargin::machine::{self, SolverChoice};
use widemargin::model::{Model, Scorer};
use widemargin::train::{ClassWeight, train};
use widemargin::verify::{Verification, verify};
use widemargin::{Error, Result};

/// One case in so many is fitted again with two threads, and one by another solver.
const SAMPLE: u64 = 8;
/// Memory that any of these problems fits in.
const AMPLE: u64 = 1 << 30;
/// What bounds and objectives of two computations may differ by, as a part of the larger: rounding, not convergence.
const ROUNDING: f64 = 1e-9;

/// Trains, and holds the result against what is promised.
pub fn run(seed: u64, bench: &Bench) -> Outcome {
    let problem = problem(seed)?;
    let checked = check(&problem, seed, bench);
    checked.map_err(|failure| crate::case::Failure(format!("{}\n    {}", failure.0, describe(&problem))))
}

fn check(problem: &Problem, seed: u64, bench: &Bench) -> Outcome {
    let control = Control { stop: Some(&bench.stop), observer: None };
    let options = &problem.options;
    let mut facts: Facts = vec![
        format!("machine {}", options.machine.name()),
        format!("kernel {}", options.kernel.name()),
        format!("solver asked {}", options.solver.name()),
    ];
    let (model, outcome) = match train(&problem.data, problem.weights.as_deref(), options, control) {
        Ok(found) => found,
        Err(error) => return refused(problem, &error, facts),
    };
    facts.push(format!("ended {:?}", outcome.stop).to_lowercase());
    facts.push(if outcome.stop.converged() { "converged" } else { "unconverged" }.into());
    finite(&outcome)?;
    earned(problem, &model, &outcome)?;
    let again = reloaded(&model)?;
    same_scores(problem, &model, &again)?;
    let second = second_opinion(problem, &again, control)?;
    facts.push(opinion(&second)?);
    below_other_points(problem, &again, &second, seed, control)?;
    if seed.is_multiple_of(SAMPLE) {
        two_threads(problem, &model)?;
        facts.push("fitted again with two threads".into());
    }
    if seed % SAMPLE == 1 && is_convex(options.machine) {
        other_solver(problem, &outcome, control)?;
        facts.push("fitted again by another solver".into());
    }
    Ok(facts)
}

/// A refusal is an error with a reason, and never of a problem there is nothing wrong with.
fn refused(problem: &Problem, error: &Error, mut facts: Facts) -> Outcome {
    require(!matches!(error, Error::Interrupted), || "it took too long".into())?;
    require(!problem.sane, || format!("refused without need: {error}"))?;
    let kind = match error {
        Error::Data { .. } => "data",
        Error::Parameter { .. } => "parameter",
        Error::Conflict { .. } => "conflict",
        Error::Numeric { .. } => "numeric",
        Error::Memory { .. } => "memory",
        other => return Err(format!("an error of another kind: {other}").into()),
    };
    facts.push(format!("refused ({kind})"));
    Ok(facts)
}

/// No number of an outcome is NaN or infinite.
fn finite(outcome: &machine::Outcome) -> std::result::Result<(), crate::case::Failure> {
    let whole = |name: &str, numbers: &mut dyn Iterator<Item = f64>| {
        let wrong = Iterator::find(&mut { numbers }, |number| !number.is_finite());
        require(wrong.is_none(), || format!("{name} is {wrong:?}"))
    };
    whole("objective", &mut outcome.objective.into_iter())?;
    // Of a bound that was not found yet a solver may say that it knows none.
    whole("dual objective", &mut outcome.dual_objective.filter(|d| *d != f64::NEG_INFINITY).into_iter())?;
    whole("gap", &mut outcome.gap.filter(|g| *g != f64::INFINITY).into_iter())?;
    whole("leave-one-out error", &mut outcome.loo_error.into_iter())?;
    whole("leave-one-out bound", &mut outcome.loo_bound.into_iter())?;
    whole("a margin", &mut outcome.margins.iter().copied())?;
    whole("a leave-one-out margin", &mut outcome.loo_margins.iter().flatten().copied())?;
    whole("a round's objective", &mut outcome.rounds.iter().flatten().copied())?;
    whole("the norm", &mut [outcome.norm].into_iter())?;
    whole("an extra", &mut outcome.extras.iter().map(|extra| extra.1))
}

/// Converged means: within the tolerance that was asked for.
fn earned(
    problem: &Problem,
    model: &Model,
    outcome: &machine::Outcome,
) -> std::result::Result<(), crate::case::Failure> {
    let (gap, tol) = (outcome.gap, problem.options.settings.tol);
    let within = gap.is_none_or(|gap| gap <= tol);
    require(!outcome.stop.converged() || within, || format!("converged with a gap of {gap:?} above {tol:e}"))?;
    require(model.certificate.stop == outcome.stop, || "the model says otherwise than the fit why it stopped".into())?;
    let convex = is_convex(problem.options.machine) && !matches!(problem.options.kernel, Kernel::Sigmoid { .. });
    require(!convex || outcome.gap.is_some(), || "a convex fit without a gap".into())?;
    require(!convex || gap.is_none_or(|gap| gap >= 0.0), || format!("a gap below zero: {gap:?}"))
}

/// The model after a way through a file, which leaves the same bytes.
fn reloaded(model: &Model) -> std::result::Result<Model, crate::case::Failure> {
    let bytes = model.to_bytes().map_err(|error| format!("the model cannot be written: {error}"))?;
    let again = Model::from_bytes(&bytes).map_err(|error| format!("the model cannot be read: {error}"))?;
    require(again.to_bytes()? == bytes, || "a model read and written again is another one".into())?;
    Ok(again)
}

/// Scores, to the bit, and what follows from them.
fn same_scores(problem: &Problem, model: &Model, again: &Model) -> std::result::Result<(), crate::case::Failure> {
    let rows = &problem.data.rows;
    let (one, two) = match (model.scores(rows), again.scores(rows)) {
        (Ok(one), Ok(two)) => (one, two),
        (Err(one), Err(two)) => return Err(format!("its own rows cannot be scored: {one}; {two}").into()),
        _ => return Err("a model read again scores where the model did not, or the other way round".into()),
    };
    let bits = |scores: &[f64]| scores.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
    require(bits(&one) == bits(&two), || "a model read again has other scores".into())?;
    require(model.classes(&one) == again.classes(&two), || "a model read again predicts otherwise".into())
}

fn second_opinion(problem: &Problem, model: &Model, control: Control<'_>) -> Result<Verification> {
    verify(model, Examples::of(&problem.data)?, problem.weights.as_deref(), control)
}

/// The second opinion must not contradict.
fn opinion(found: &Verification) -> std::result::Result<String, crate::case::Failure> {
    match found.agrees {
        Some(true) => Ok("verified".into()),
        None => Ok("nothing to verify".into()),
        Some(false) => Err(format!(
            "FALSE CLAIM: {}; claimed objective {:?} dual {:?} gap {:?} ({:?}, {}), found objective {:?} dual {:?} gap {:?}, \
             rounding {:?}",
            found.reason.as_deref().unwrap_or("no reason"),
            found.claimed.objective,
            found.claimed.dual_objective,
            found.claimed.gap,
            found.claimed.stop,
            found.claimed.solver,
            found.objective,
            found.dual_objective,
            found.gap,
            found.rounding,
        )
        .into()),
    }
}

/// No score function has an objective below the dual bound, whatever it is: the model's own, shrunk or stretched, is one.
fn below_other_points(
    problem: &Problem,
    model: &Model,
    second: &Verification,
    seed: u64,
    control: Control<'_>,
) -> std::result::Result<(), crate::case::Failure> {
    let relaxed = problem.options.machine.name() == "mcodm";
    let (Some(dual), Some(true), false) = (model.certificate.dual_objective, second.agrees, relaxed) else {
        return Ok(());
    };
    let factor = Draw::new(seed, 2).pick(&[0.0, 0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0]);
    let mut other = model.clone();
    stretch(&mut other, factor);
    let found = second_opinion(problem, &other, control)?;
    let Some(objective) = found.objective else { return Ok(()) };
    let allowed = (ROUNDING + second.rounding.unwrap_or(0.0)) * dual.abs().max(objective.abs());
    require(dual <= objective + allowed, || {
        format!(
            "FALSE CLAIM: the dual bound {dual:e} lies above {objective:e}, the objective of {factor} times the model"
        )
    })
}

fn stretch(model: &mut Model, factor: f64) {
    let (Scorer::Linear { weights: vectors, intercepts } | Scorer::Kernel { coefficients: vectors, intercepts, .. }) =
        &mut model.scorer;
    vectors.iter_mut().flatten().chain(intercepts).for_each(|number| *number *= factor);
}

/// The same bytes whatever the number of threads.
fn two_threads(problem: &Problem, model: &Model) -> std::result::Result<(), crate::case::Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build()?;
    let fit = || train(&problem.data, problem.weights.as_deref(), &problem.options, Control::default());
    let (other, _) = pool.install(fit)?;
    require(other.to_bytes()? == model.to_bytes()?, || "two threads leave another model than one".into())
}

/// Two solvers of one problem: the bound of each is below the objective of the other.
fn other_solver(
    problem: &Problem,
    outcome: &machine::Outcome,
    control: Control<'_>,
) -> std::result::Result<(), crate::case::Failure> {
    // Newton's method refuses what does not fit the memory.
    if matches!(problem.options.kernel, Kernel::Sigmoid { .. }) || problem.options.settings.memory < AMPLE {
        return Ok(());
    }
    let mut options = problem.options.clone();
    options.solver = if options.solver == SolverChoice::Newton { SolverChoice::Dcd } else { SolverChoice::Newton };
    let other = match train(&problem.data, problem.weights.as_deref(), &options, control) {
        Ok((_, other)) => other,
        Err(error) => return refused(problem, &error, Facts::new()).map(drop),
    };
    for (one, two) in [(outcome, &other), (&other, outcome)] {
        let (Some(dual), Some(objective)) = (one.dual_objective, two.objective) else { continue };
        let allowed = 1e-6 * dual.abs().max(objective.abs());
        require(dual <= objective + allowed, || {
            format!(
                "FALSE CLAIM: the bound {dual:e} of {} lies above the objective {objective:e} of {}",
                one.solver, two.solver
            )
        })?;
    }
    Ok(())
}

/// The problem in a few lines.
fn describe(problem: &Problem) -> String {
    let (rows, options) = (&problem.data.rows, &problem.options);
    format!(
        "{} rows x {} features ({}), {}",
        rows.rows(),
        rows.cols(),
        problem.words.join(", "),
        words(problem).join(" ") + if options.settings.memory < 1 << 20 { " --memory 64K" } else { "" }
    )
}

/// The options as they are typed.
fn words(problem: &Problem) -> Vec<String> {
    let options = &problem.options;
    let mut words = vec!["--machine".to_string(), options.machine.name().into()];
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    problem.given.iter().for_each(|(name, value)| add(name, value.to_string()));
    add("kernel", options.kernel.name().into());
    if options.kernel != Kernel::Linear {
        add("gamma", options.gamma.to_string());
    }
    if let Kernel::Poly { degree, .. } = options.kernel {
        add("degree", degree.to_string());
    }
    if let Kernel::Poly { coef0, .. } | Kernel::Sigmoid { coef0, .. } = options.kernel {
        add("coef0", coef0.to_string());
    }
    add("bias", options.bias.to_string());
    add("tol", options.settings.tol.to_string());
    add("solver", options.solver.name().into());
    add("seed", options.settings.seed.to_string());
    let optional = [
        options.approx.map(|rank| ("approx", rank.to_string())),
        options.settings.max_iter.map(|most| ("max-iter", most.to_string())),
        options.scaling.map(|kind| ("scale", kind.to_string())),
        options.multiclass.map(|mode| ("multiclass", mode.to_string())),
        problem.weights.as_ref().map(|_| ("weights", "weights.txt".into())),
    ];
    optional.into_iter().flatten().for_each(|(name, value)| add(name, value));
    if options.class_weight != ClassWeight::Equal {
        add("class-weight", options.class_weight.to_string());
    }
    words
}

/// Writes the problem of a seed into a folder; the command that trains on it.
pub fn write(seed: u64, folder: &str) -> std::result::Result<String, String> {
    let problem = problem(seed)?;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    std::fs::create_dir_all(folder).map_err(|error| text(&error))?;
    let place = |name: &str| Path::new(folder).join(name).display().to_string();
    data::write(&problem.data, &place("rows.libsvm"), None).map_err(|error| text(&error))?;
    if let Some(weights) = &problem.weights {
        let lines: String = weights.iter().map(|weight| format!("{weight}\n")).collect();
        std::fs::write(place("weights.txt"), lines).map_err(|error| text(&error))?;
    }
    let rows = &problem.data.rows;
    let storage = if rows.is_dense() { Storage::Dense } else { Storage::Sparse };
    let precision = if rows.is_f32() { Precision::F32 } else { Precision::F64 };
    let held = format!("--storage {storage:?} --precision {precision:?} --features {}", rows.cols()).to_lowercase();
    Ok(format!("cd {folder} && widemargin train rows.libsvm model {} {held}", words(&problem).join(" ")))
}
