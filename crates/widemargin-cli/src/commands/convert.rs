//! `widemargin convert IN OUT`

use crate::args::ConvertArgs;
use crate::failure::Outcome;
use crate::files::read_with;
use crate::interrupt;
use crate::output::{Output, count, is_stdout, one_on_stdout};
use crate::places::Places;
use crate::progress::Spinner;
use serde::Serialize;
use widemargin::data::{ReadOptions, write};

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    rows: usize,
    features: usize,
    stored: usize,
}

/// Reads one format and writes another.
pub fn run(args: &ConvertArgs, output: &Output) -> Outcome {
    one_on_stdout(&[("--json", output.json), ("the data", is_stdout(&args.to))])?;
    Places::default().reads(&args.from).writes(Some(&args.to)).check()?;
    let data = read_with(&args.from, &ReadOptions { any_label: true, ..args.input.options() }, output)?;
    let to = args.to.display().to_string();
    let spinner = Spinner::start(output, format!("writing {to}"));
    interrupt::writing(|| write(&data, &to, args.to_format))?;
    drop(spinner);
    let report = Report { rows: data.rows.rows(), features: data.rows.cols(), stored: data.rows.stored() };
    if output.json {
        return output.object(&report);
    }
    output.tell(&format!("{to}: {} × {}", count(report.rows, "row"), count(report.features, "feature")));
    Ok(())
}
