//! `widemargin sweep DATA… --over NAME=VALUES`

use super::contest;
use crate::args::SweepArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, write_text};
use crate::page::chart::{Axis, Guide, Plot, Point, Series, Shape, Unit, alone};
use crate::page::{Page, list};
use crate::places::Places;
use crate::sheet::Sheet;
use crate::values::Scale;
use serde::Serialize;
use std::path::PathBuf;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::machine::Value;
use widemargin::select::GridAxis;
use widemargin_studies::{Curve, Match, Protocol, Sweep};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    over: &'a str,
    values: &'a [Value],
    repeats: usize,
    train: f64,
    seed: u64,
    curves: &'a [Curve],
}

/// Runs every value and shows the accuracies.
pub fn run(args: &SweepArgs, seed: u64, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let (picture_out, page_out) = (to_stdout(&args.svg), to_stdout(&args.report));
    one_on_stdout(&[("--json", output.json), ("the picture", picture_out), ("the page", page_out)])?;
    let places = args.data.iter().fold(Places::default(), Places::reads);
    let study = &args.study;
    places.writes(study.results.as_ref()).writes(args.svg.as_ref()).writes(args.report.as_ref()).check()?;
    let mut machines = contest::contestants(&study.contest, &study.fit, seed)?;
    let data: Vec<Dataset> =
        args.data.iter().map(|path| read_data(path, &study.input, output)).collect::<Outcome<_>>()?;
    if let Some(first) = data.first() {
        let scaling = Scale::usual(study.scale, first, Some(ScalingKind::MinMax));
        machines.iter_mut().for_each(|contestant| contestant.options.scaling = scaling);
    }
    let sweep = Sweep::new(&args.over, data, machines)?;
    let protocol = contest::protocol(study, 0, seed);
    let run = |matches: &[Match], protocol: &Protocol| {
        contest::run(matches, protocol, study.results.as_deref(), false, output)
    };
    let first = Protocol { repeats: 1, ..protocol };
    let searched = sweep.searches().map(|matches| run(&matches, &first)).transpose()?;
    let curves = sweep.curves(&run(&sweep.matches(searched.as_deref())?, &protocol)?);
    let axis = &sweep.axis;
    if let Some(path) = &args.svg {
        write_text(path, &alone(&picture(&curves, axis)))?;
    }
    if let Some(path) = &args.report {
        write_text(path, &page(&curves, axis, &protocol))?;
    }
    if output.json {
        return output.object(&Report {
            version: env!("CARGO_PKG_VERSION"),
            over: &axis.name,
            values: &axis.values,
            repeats: protocol.repeats,
            train: protocol.train,
            seed,
            curves: &curves,
        });
    }
    if picture_out || page_out { Ok(()) } else { print(&sheet(&curves, axis).print(study.style)) }
}

fn sheet(curves: &[Curve], axis: &GridAxis) -> Sheet {
    let names = curves.iter().map(|curve| curve.name.clone());
    let mut sheet = Sheet::new(std::iter::once(axis.name.clone()).chain(names), 1);
    for (place, value) in axis.values.iter().enumerate() {
        let cell =
            |curve: &Curve| format!("{:.2} ± {:5.2}", 100.0 * curve.accuracy[place], 100.0 * curve.deviation[place]);
        let cells = curves.iter().map(cell);
        sheet.row(std::iter::once(value.to_string()).chain(cells));
    }
    sheet
}

/// Where the values stand along the axis.
fn positions(axis: &GridAxis) -> Vec<f64> {
    let at = |(place, value): (usize, &Value)| match value {
        Value::Number(number) => *number,
        Value::Word(_) => place as f64,
    };
    axis.values.iter().enumerate().map(at).collect()
}

fn picture(curves: &[Curve], axis: &GridAxis) -> String {
    let positions = positions(axis);
    let series = |curve: &Curve| {
        let point = |(&x, (&y, &deviation)): (&f64, (&f64, &f64))| Point {
            x,
            y,
            spread: (deviation > 0.0).then_some((y - deviation, y + deviation)),
        };
        let figures = curve.accuracy.iter().zip(&curve.deviation);
        Series {
            name: curve.name.clone(),
            shape: Shape::Line,
            points: positions.iter().zip(figures).map(point).collect(),
        }
    };
    let plot = Plot {
        title: format!("Test accuracy over {}, {}", axis.name, subject(curves)),
        x: Axis::new(axis.name.clone(), Unit::of(positions.iter().copied())),
        y: Axis::new("test accuracy", Unit::Percent),
        series: curves.iter().map(series).collect(),
        guide: Guide::Nothing,
    };
    plot.svg()
}

/// What all curves have in common: the machine, or the data set.
fn subject(curves: &[Curve]) -> String {
    let distinct = |of: fn(&Curve) -> &str| {
        let mut names: Vec<&str> = Vec::new();
        curves.iter().map(of).for_each(|name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names
    };
    let (sets, machines) = (distinct(|c| &c.dataset), distinct(|c| &c.machine));
    let named = format!("{} on {}", list(&machines), list(&sets));
    if named.chars().count() <= SUBJECT {
        return named;
    }
    // The names stand beside the curves.
    let few =
        |names: &[&str], what: &str| if names.len() == 1 { names[0].to_string() } else { count(names.len(), what) };
    format!("{} on {}", few(&machines, "machine"), few(&sets, "data set"))
}

/// Letters of a subject that fit into the title of a picture.
const SUBJECT: usize = 48;

fn page(curves: &[Curve], axis: &GridAxis, protocol: &Protocol) -> String {
    let conclusion: Vec<String> = curves.iter().filter_map(|curve| best(curve, axis)).collect();
    let mut page = Page::new(&format!("Test accuracy over {}, {}", axis.name, subject(curves)), &conclusion);
    page.boxes("Curves shown", &curves.iter().map(|curve| curve.name.clone()).collect::<Vec<_>>());
    let splits = count(protocol.repeats, "split");
    page.figure(
        &picture(curves, axis),
        &format!("Means over {splits}; bands are ± one standard deviation over the splits."),
    );
    page.heading("Figures");
    let share = 100.0 * protocol.train;
    page.table(
        &format!(
            "Test accuracy in percent, mean ± standard deviation of {splits}, {share:.0} % of the rows to train on"
        ),
        &sheet(curves, axis),
    );
    page.finish(protocol.seed)
}

/// Where a curve is highest, and where it is within its spread of that.
fn best(curve: &Curve, axis: &GridAxis) -> Option<String> {
    let place = (0..curve.accuracy.len()).max_by(|&a, &b| curve.accuracy[a].total_cmp(&curve.accuracy[b]))?;
    let (most, deviation) = (curve.accuracy[place], curve.deviation[place]);
    let near: Vec<&Value> =
        axis.values.iter().zip(&curve.accuracy).filter(|(_, a)| **a >= most - deviation).map(|(v, _)| v).collect();
    let within = match near.as_slice() {
        [first, .., last] => format!(
            "; {} of {} values, from {first} to {last}, are within that deviation",
            near.len(),
            axis.values.len()
        ),
        _ => String::new(),
    };
    Some(format!(
        "{} on {} is best at {} = {}: {} ± {} correct{within}.",
        curve.machine,
        curve.dataset,
        axis.name,
        axis.values[place],
        percent(most),
        percent(deviation)
    ))
}
