//! Machines, kernels and outcomes in words, as several commands say them.

use crate::output::{Summary, count, short};
use widemargin::data::{Column, ColumnKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Domain, Machine, Parameters, Preset};
use widemargin::model::{AveragedKernel, Calibration, Model, ModelCertificate, UnseenBy};
use widemargin::problem::StopReason;

/// `odm (c1 = 1, c2 = 1, d = 0.5)`
pub fn machine(name: &str, parameters: &Parameters) -> String {
    named(name, &parameters.iter().collect::<Vec<_>>())
}

/// The same before there are rows: `odm (c1 = max(256, m), c2 = C1/8, d = 0.4)`
pub fn asked(machine: &Machine, parameters: &Parameters) -> String {
    let mut known: Vec<(&str, String)> = parameters.iter().map(|(name, value)| (name, value.to_string())).collect();
    let open = machine.parameters().iter().filter(|parameter| matches!(parameter.default, Preset::Settled(_)));
    let open = open.filter(|parameter| parameters.iter().all(|(name, _)| name != parameter.name));
    known.extend(open.map(|parameter| (parameter.name, parameter.default.to_string())));
    known.sort_unstable_by_key(|(name, _)| *name);
    named(machine.name(), &known)
}

fn named(name: &str, parameters: &[(&str, impl std::fmt::Display)]) -> String {
    let list: Vec<String> = parameters.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if list.is_empty() { name.into() } else { format!("{name} ({})", list.join(", ")) }
}

/// `rbf (gamma = 0.25)`
pub fn kernel(kernel: Kernel) -> String {
    let inside = match kernel {
        Kernel::Linear => return kernel.name().into(),
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => format!("gamma = {}", short(gamma)),
        Kernel::Poly { gamma, degree, coef0 } => {
            format!("gamma = {}, degree = {degree}, coef0 = {coef0}", short(gamma))
        }
        Kernel::Sigmoid { gamma, coef0 } => format!("gamma = {}, coef0 = {coef0}", short(gamma)),
    };
    format!("{} ({inside})", kernel.name())
}

/// Above which score the larger label is predicted.
pub fn threshold(threshold: f64, labels: &[String]) -> String {
    format!("{} above a score of {}", labels.last().map_or("", String::as_str), short(threshold))
}

/// The label's column of a model: its name, or number from 1; nothing where labels are no column.
pub fn label_column(model: &Model) -> Option<serde_json::Value> {
    let label = &model.schema.as_ref()?.label;
    label.name.clone().map(Into::into).or(label.number.map(Into::into))
}

/// What became of the columns of a table.
pub fn columns(model: &Model, summary: &mut Summary) {
    let Some(schema) = &model.schema else { return };
    let Some(columns) = &schema.columns else { return };
    match (&schema.label.name, schema.label.number) {
        (Some(name), _) => drop(summary.line("label", format!("column {name}"))),
        (None, Some(number)) => drop(summary.line("label", format!("column {number}"))),
        (None, None) => {}
    }
    let of = |kind: ColumnKind| columns.iter().filter(|column| column.kind == kind).count();
    let [numbers, truths, texts] = [ColumnKind::Number, ColumnKind::Boolean, ColumnKind::Category].map(of);
    if truths + texts == 0 && columns.iter().all(|column| !column.indicator) {
        return;
    }
    let mut parts = vec![count(numbers, "number")];
    if truths > 0 {
        parts.push(count(truths, "boolean"));
    }
    if texts > 0 {
        let categories: usize = columns.iter().map(|column| column.categories.len()).sum();
        parts.push(format!("{texts} of text with {categories} categories in all"));
    }
    let filled: Vec<&str> = columns.iter().filter(|c| c.indicator).map(|c: &Column| c.name.as_str()).collect();
    let filled = if filled.is_empty() { String::new() } else { format!("; filled in: {}", filled.join(", ")) };
    let all =
        if model.scaling.is_some() && texts > 0 { "; features of categories are scaled like the others" } else { "" };
    summary.line("columns", format!("{}{filled}{all}", parts.join(", ")));
}

/// The intercept a model has, and the one asked for where the machine cannot have it.
pub fn intercept(model: &Model) -> String {
    match model.bias_asked {
        None => model.bias.to_string(),
        Some(asked) => format!("{} ({asked} was asked for)", model.bias),
    }
}

/// What to say of an intercept that is not the one asked for.
pub fn replaced_intercept(model: &Model) -> Option<String> {
    let (machine, asked) = (&model.machine, model.bias_asked?);
    let kind = if asked == Bias::Free { "free" } else { "regularised" };
    let instead = match model.bias {
        Bias::None => "it has none".into(),
        Bias::Free => "it has a free one".into(),
        Bias::Feature(b) => format!("an appended feature {b}, regularised like the others, stands for it"),
    };
    Some(format!("{machine} cannot have a {kind} intercept (--bias {asked}): {instead}"))
}

/// Why a solver stopped.
pub fn stop(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Gap => "the duality gap is within the tolerance",
        StopReason::Precision => "NOT CONVERGED: as far as rounding errors allow, with a gap above the tolerance",
        StopReason::Exact => "exact, nothing to converge",
        StopReason::Rest => "the rounds came to rest",
        StopReason::Iterations => "NOT CONVERGED: the limit on iterations came first",
        StopReason::Unbounded => "NO MINIMUM: the objective falls without end as the intercept runs away",
    }
}

/// What to say of a model that is not as good as was asked for, and what helps; nothing of one that is.
pub fn unconverged(model: &Model) -> Option<String> {
    let ModelCertificate { stop, gap, tol, .. } = &model.certificate;
    (!stop.converged()).then(|| advice(&model.machine, *stop, *gap, *tol, model.scaling.is_some()))
}

fn advice(machine: &str, reason: StopReason, gap: Option<f64>, tol: Option<f64>, scaled: bool) -> String {
    if reason == StopReason::Precision {
        let (gap, tol) = (gap.map_or("unknown".into(), short), tol.map_or("unknown".into(), short));
        let scale = if scaled { "" } else { "scale the features (--scale standard), or " };
        return format!("as far as rounding allows: gap {gap} above the tolerance {tol}; {scale}choose a larger --tol");
    }
    if reason == StopReason::Unbounded {
        return "the objective has no minimum, and the model is the zero function: the weight of the mean margin outweighs the \
                cost of errors; lower --lambda2, raise --c, take --lambda1 above 0, or --bias none"
            .into();
    }
    let Ok(machine) = widemargin::machine::machine(machine) else { return "the model did not converge".into() };
    let (uses, mut advice) = (machine.uses(), Vec::new());
    let rounds = machine.parameters().iter().filter(|parameter| parameter.domain == Domain::Count);
    advice.extend(rounds.map(|parameter| format!("raise --{}", parameter.name)));
    if advice.is_empty() && uses.max_iter {
        advice.push("raise --max-iter".into());
    }
    if uses.tol {
        advice.push("choose a larger --tol".into());
    }
    if !scaled {
        advice.push("scale the features (--scale standard)".into());
    }
    format!("the model is not as good as was asked for: {}", advice.join(", or "))
}

/// `12.3457 (dual 12.3456, gap 1.2e-5)`
pub fn objective(primal: Option<f64>, dual: Option<f64>, gap: Option<f64>) -> Option<String> {
    let parts = [dual.map(|d| format!("dual {}", short(d))), gap.map(|g| format!("gap {}", short(g)))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let inside = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    primal.map(|primal| format!("{}{inside}", short(primal)))
}

/// A kernel of an average.
pub fn averaged(averaged: &AveragedKernel) -> String {
    let on = if averaged.on_ranks { " on ranks" } else { "" };
    format!("{}{on}", kernel(averaged.kernel))
}

/// By what the points of an average are weighted.
pub fn judged_by(by: UnseenBy) -> String {
    match by {
        UnseenBy::LeaveOneOut => "leave-one-out loss".into(),
        UnseenBy::Folds(folds) => format!("loss of rows left out in {}", count(folds, "fold")),
    }
}

/// The kernel, or those of an average with their shares.
pub fn kernels(model: &Model) -> String {
    let Some(average) = &model.average else { return kernel(model.kernel) };
    let share = |k: &AveragedKernel| format!("{:.2} of {}", k.weight, averaged(k));
    let kernels: Vec<String> = average.kernels.iter().map(share).collect();
    let (points, by) = (average.points, judged_by(average.by));
    format!("average of {points} points by the {by}: {}", kernels.join(", "))
}

/// How scores become probabilities.
pub fn calibration(calibration: &Calibration) -> String {
    let (slope, loss) = (short(calibration.slope), short(calibration.log_loss));
    let form = match calibration.offsets.as_slice() {
        _ if !calibration.curves.is_empty() => match calibration.curves.as_slice() {
            [curve] => format!("isotonic, {}", count(curve.scores.len(), "point")),
            curves => format!("isotonic, {}", count(curves.len(), "curve")),
        },
        [] => format!("softmax of {slope} times the scores"),
        [offset] => {
            format!("1 / (1 + exp(-({slope} f {} {})))", if *offset < 0.0 { '-' } else { '+' }, short(offset.abs()))
        }
        _ => format!("softmax of {slope} times the scores and an offset a class"),
    };
    let rows = match calibration.by {
        Some(UnseenBy::Folds(folds)) => format!("rows left out in {}", count(folds, "fold")),
        _ => "rows left out one by one".into(),
    };
    format!("{form}, log loss {loss} on {rows}")
}

/// Labels separated by spaces; one that has a space or quotation mark itself stands in quotation marks, which are doubled in it.
pub fn separated<'a>(labels: impl IntoIterator<Item = &'a String>) -> String {
    let quoted = |label: &String| match label.contains(|c: char| c.is_whitespace() || c == '"') || label.is_empty() {
        true => format!("\"{}\"", label.replace('"', "\"\"")),
        false => label.clone(),
    };
    labels.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The first few of a list of labels.
pub fn labels(labels: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<&str> = labels.iter().take(SHOWN).map(String::as_str).collect();
    if labels.len() > SHOWN {
        shown.push("…");
    }
    shown.join(", ")
}
