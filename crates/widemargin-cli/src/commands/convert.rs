//! `widemargin convert IN OUT`

use crate::args::ConvertArgs;
use crate::failure::Outcome;
use crate::files::read_with;
use crate::interrupt;
use crate::output::{Output, count, is_stdout, one_on_stdout};
use crate::places::Places;
use crate::progress::Spinner;
use serde::Serialize;
use widemargin::data::{BlockCounts, ReadOptions, convert_to_blocks, names_block_file, write};

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
    if names_block_file(&args.to.display().to_string()) && args.to_format.is_none() {
        return to_blocks(args, output);
    }
    let data = read_with(&args.from, &ReadOptions { any_label: true, ..args.input.options() }, output)?;
    let to = args.to.display().to_string();
    let spinner = Spinner::start(output, format!("writing {to}"));
    interrupt::writing(|| write(&data, &to, args.to_format))?;
    drop(spinner);
    tell(args, BlockCounts { rows: data.rows.rows(), features: data.rows.cols(), stored: data.rows.stored() }, output)
}

/// Writes a file of blocks, never holding more than a few of them.
fn to_blocks(args: &ConvertArgs, output: &Output) -> Outcome {
    let spinner = Spinner::start(output, format!("converting {}", args.from));
    let counts = interrupt::writing(|| convert_to_blocks(&args.from, &args.input.options(), &args.to))?;
    drop(spinner);
    tell(args, counts, output)
}

fn tell(args: &ConvertArgs, counts: BlockCounts, output: &Output) -> Outcome {
    let BlockCounts { rows, features, stored } = counts;
    if output.json {
        return output.object(&Report { rows, features, stored });
    }
    output.tell(&format!("{}: {} × {}", args.to.display(), count(rows, "row"), count(features, "feature")));
    Ok(())
}
