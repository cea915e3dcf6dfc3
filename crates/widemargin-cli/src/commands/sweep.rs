//! `widemargin sweep DATA… --over NAME=VALUES`

use super::contest;
use super::pictures::{self, Line};
use crate::args::SweepArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, is_stdout, one_on_stdout, print, write_text};
use crate::places::Places;
use crate::sheet::Sheet;
use crate::values::Scale;
use serde::Serialize;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::machine::Value;
use widemargin::select::GridAxis;
use widemargin_studies::{Curve, Match, Protocol, Sweep, Test};

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
    let to_stdout = args.svg.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("the picture", to_stdout)])?;
    let places = args.data.iter().fold(Places::default(), Places::reads);
    places.writes(args.results.as_ref()).writes(args.svg.as_ref()).check()?;
    let mut machines = contest::contestants(&args.contest, &args.fit, seed)?;
    let data: Vec<Dataset> =
        args.data.iter().map(|path| read_data(path, &args.input, output)).collect::<Outcome<_>>()?;
    if let Some(first) = data.first() {
        let scaling = Scale::usual(args.scale, first, Some(ScalingKind::MinMax));
        machines.iter_mut().for_each(|contestant| contestant.options.scaling = scaling);
    }
    let sweep = Sweep::new(&args.over, data, machines)?;
    let (repeats, test) = (args.repeats.into(), Test::Corrected);
    let protocol = Protocol { repeats, train: args.train, reference: 0, test, seed, keep_going: false };
    let run = |matches: &[Match], protocol: &Protocol| {
        contest::run(matches, protocol, args.results.as_deref(), false, output)
    };
    let first = Protocol { repeats: 1, ..protocol };
    let searched = sweep.searches().map(|matches| run(&matches, &first)).transpose()?;
    let curves = sweep.curves(&run(&sweep.matches(searched.as_deref())?, &protocol)?);
    let axis = &sweep.axis;
    if let Some(path) = &args.svg {
        write_text(path, &picture(&curves, axis))?;
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
    if to_stdout { Ok(()) } else { print(&sheet(&curves, axis).print(args.style)) }
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

fn picture(curves: &[Curve], axis: &GridAxis) -> String {
    let at = |(place, value): (usize, &Value)| match value {
        Value::Number(number) => *number,
        Value::Word(_) => place as f64,
    };
    let positions: Vec<f64> = axis.values.iter().enumerate().map(at).collect();
    let line = |curve: &Curve| Line {
        name: curve.name.clone(),
        points: positions.iter().copied().zip(curve.accuracy.iter().copied()).collect(),
    };
    pictures::lines(&curves.iter().map(line).collect::<Vec<_>>(), "Test accuracy", &axis.name)
}
