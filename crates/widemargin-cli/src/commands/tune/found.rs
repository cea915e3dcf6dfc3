//! What a search found, as a page: the best point, maps of the parameters, every point.

use super::{Report, judged, point};
use crate::output::{Summary, percent, short};
use crate::page::Page;
use crate::page::chart::{Axis, Cell, Map, Strip, Unit, strips};
use crate::sheet::Sheet;
use std::collections::BTreeMap;
use widemargin::machine::Value;
use widemargin::select::{GAMMA, Select, Trial};

/// Points that a page lists; the best ones of more.
const LISTED: usize = 1000;

/// The page.
pub fn page(report: &Report<'_>, best: &Trial, summary: &Summary, data: &str, seed: u64) -> String {
    let mut page = Page::new(&format!("Search of {} on {data}", report.machine), &conclusion(report, best, data));
    page.heading("What was found");
    let mut sheet = Sheet::new(["what", "found"], 2);
    summary.lines().iter().for_each(|(name, text)| sheet.row([(*name).to_string(), text.clone()]));
    page.table("As on the terminal", &sheet);
    let maps = maps(report, data);
    page.heading("Maps of the parameters");
    match maps.is_empty() {
        true => page.note("No two parameters were searched: there is no map."),
        false => page.choice(
            "Parameters",
            &maps,
            &format!("{} of the best point with these two values, over all values of the others. Brighter is better; the best has a frame. Empty places were not tried.", measure(report)),
        ),
    }
    if !report.fold_errors.is_empty() {
        let right: Vec<f64> = report.fold_errors.iter().map(|error| 1.0 - error).collect();
        let strip = Strip {
            heading: "The best point".into(),
            name: "folds".into(),
            series: 0,
            tip: format!("{} ± {} over {} folds", percent(report.accuracy), percent(report.spread), right.len()),
            values: right,
            mean: report.accuracy,
            deviation: report.spread,
        };
        page.heading("Folds");
        let axis = Axis::new("rows of a fold that are right", Unit::Percent);
        page.figure(
            &strips(&format!("Accuracy in each fold of {data}"), &axis, &[strip]),
            "A dot a fold; the line is mean ± standard deviation.",
        );
    }
    page.heading("Every point");
    let (caption, sheet) = points(report);
    page.table(&caption, &sheet);
    page.heading("Certificate");
    page.note(&match report.gap {
        Some(gap) => format!(
            "The model of the best point, fitted on all rows, has a relative duality gap of {gap:.1e}{}.",
            if report.converged { "" } else { ", above the tolerance" }
        ),
        None => "This machine has no certificate.".into(),
    });
    page.finish(seed)
}

fn conclusion(report: &Report<'_>, best: &Trial, data: &str) -> Vec<String> {
    let (by, found) = judged(report);
    let mut sentences = vec![
        format!("The best of {} points on {data} is {}.", report.points, point(report.machine, report.score, best)),
        format!("Judged by {by}: {found}."),
    ];
    if let Some(second) = report.runner_up {
        let near = report.select == Select::Cv
            && report.score.is_none()
            && (second.score.error - report.error).abs() <= report.spread;
        let near = if near { "; they differ by no more than the folds do among themselves" } else { "" };
        sentences.push(format!("The second best is {}{near}.", point(report.machine, report.score, second)));
    }
    if !report.at_edge.is_empty() {
        let names = report.at_edge.join(", ");
        sentences.push(format!("{names}: the best value is the last one tried, and better ones may lie beyond."));
    }
    sentences
}

/// What points are compared by.
fn measure(report: &Report<'_>) -> String {
    match (report.score, report.select) {
        (Some(metric), _) => format!("{} of rows left out", metric.name().replace('_', " ")),
        (None, Select::Cv) => "Accuracy in cross-validation".into(),
        (None, Select::Loo) => "Leave-one-out accuracy".into(),
        (None, Select::LooLoss) => "Logistic loss of the leave-one-out margins".into(),
    }
}

/// More is better.
fn merit(report: &Report<'_>, trial: &Trial) -> f64 {
    match (report.score, report.select) {
        (Some(_), _) => trial.score.cost.map_or(f64::NEG_INFINITY, |cost| -cost),
        (None, Select::LooLoss) => -trial.score.loss,
        (None, Select::Cv | Select::Loo) => 1.0 - trial.score.error,
    }
}

/// A merit in few letters, as what it measures is written.
fn figure(report: &Report<'_>, merit: f64) -> String {
    match (report.score, report.select) {
        (Some(metric), _) => format!("{:.3}", metric.value_of(-merit)),
        (None, Select::LooLoss) => format!("{:.3}", -merit),
        (None, Select::Cv | Select::Loo) => format!("{:.1}", 100.0 * merit),
    }
}

/// Value of every parameter of a point, the kernel's width among them.
fn values(trial: &Trial) -> Vec<(String, Value)> {
    let parameters = trial.params.iter().map(|(name, value)| (name.to_string(), value.clone()));
    parameters.chain(trial.gamma.map(|gamma| (GAMMA.to_string(), Value::Number(gamma)))).collect()
}

/// A value in few letters; powers of two as such.
fn tag(value: &Value) -> String {
    match value {
        Value::Number(number) if *number > 0.0 && number.log2().fract() == 0.0 && !(0.1..=64.0).contains(number) => {
            format!("2^{}", number.log2())
        }
        Value::Number(number) => short(*number).trim_end_matches('0').trim_end_matches('.').to_string(),
        Value::Word(word) => word.clone(),
    }
}

/// Whether a point's figures are of all rows that it was judged on, or were to be.
fn whole_or_screened(trial: &Trial) -> bool {
    !trial.score.dropped || trial.score.rows.is_some()
}

/// A map for each pair of parameters that were searched.
fn maps(report: &Report<'_>, data: &str) -> Vec<(String, String)> {
    let trials: Vec<&Trial> =
        report.trials.iter().filter(|t| whole_or_screened(t) && merit(report, t).is_finite()).collect();
    let mut axes: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (name, value) in report.trials.iter().flat_map(values) {
        let seen = axes.entry(name).or_default();
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    let order = |a: &Value, b: &Value| match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.total_cmp(b),
        (a, b) => a.to_string().cmp(&b.to_string()),
    };
    axes.values_mut().for_each(|seen| seen.sort_by(order));
    let axes: Vec<(String, Vec<Value>)> = axes.into_iter().filter(|(_, seen)| seen.len() > 1).collect();
    let mut maps = Vec::new();
    for (a, across) in axes.iter().enumerate() {
        for down in &axes[a + 1..] {
            let title = format!("{} over {} and {}, {} on {data}", measure(report), across.0, down.0, report.machine);
            let cells = cells(report, &trials, across, down);
            let tags = |axis: &(String, Vec<Value>)| (axis.0.clone(), axis.1.iter().map(tag).collect());
            let map = Map { title, columns: tags(across), rows: tags(down), cells };
            maps.push((format!("{} and {}", across.0, down.0), map.svg()));
        }
    }
    maps
}

fn cells(
    report: &Report<'_>,
    trials: &[&Trial],
    across: &(String, Vec<Value>),
    down: &(String, Vec<Value>),
) -> Vec<Cell> {
    let mut best: BTreeMap<(usize, usize), &Trial> = BTreeMap::new();
    for trial in trials {
        let values = values(trial);
        let at = |axis: &(String, Vec<Value>)| {
            let value = values.iter().find(|(name, _)| *name == axis.0)?;
            axis.1.iter().position(|v| *v == value.1)
        };
        let (Some(x), Some(y)) = (at(across), at(down)) else { continue };
        let kept = best.entry((x, y)).or_insert(trial);
        let later = kept.score.dropped.cmp(&trial.score.dropped);
        if later.then(merit(report, trial).total_cmp(&merit(report, kept))).is_gt() {
            *kept = trial;
        }
    }
    let cell = |(place, trial): (&(usize, usize), &&Trial)| {
        let value = merit(report, trial);
        Cell { place: *place, value, short: figure(report, value), tip: point(report.machine, report.score, trial) }
    };
    best.iter().map(cell).collect()
}

/// The points, the best first.
fn points(report: &Report<'_>) -> (String, Sheet) {
    let mut trials: Vec<&Trial> = report.trials.iter().collect();
    trials.sort_by(|a, b| {
        let dropped = a.score.dropped.cmp(&b.score.dropped);
        dropped.then(merit(report, b).total_cmp(&merit(report, a)))
    });
    let names: Vec<String> =
        trials.first().map_or(Vec::new(), |t| values(t).into_iter().map(|(name, _)| name).collect());
    let figures = ["correct %", "loss", "spread", "remark"].map(str::to_string);
    let metric = report.score.map(|metric| metric.name().replace('_', " "));
    let mut sheet = Sheet::new(names.iter().cloned().chain(metric).chain(figures), 0);
    for trial in trials.iter().take(LISTED) {
        let score = &trial.score;
        let figures = [
            format!("{:.2}", 100.0 * (1.0 - score.error)),
            short(score.loss),
            if report.select == Select::LooLoss {
                short(score.spread)
            } else {
                format!("{:.2} %", 100.0 * score.spread)
            },
            match score.rows {
                Some(rows) => format!("judged on {rows} rows only"),
                None if score.dropped => "given up: it could not win any more".into(),
                None => String::new(),
            },
        ];
        let metric = report.score.map(|_| figure(report, merit(report, trial)));
        sheet.row(values(trial).iter().map(|(_, value)| tag(value)).chain(metric).chain(figures));
    }
    let caption = match trials.len() > LISTED {
        true => format!("The best {LISTED} of {} points", trials.len()),
        false => format!("{} points", trials.len()),
    };
    (caption, sheet)
}
