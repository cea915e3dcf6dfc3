//! `widemargin convert IN OUT`

use crate::args::ConvertArgs;
use crate::failure::Outcome;
use crate::files::read_with;
use crate::interrupt;
use crate::output::{Output, count, is_stdout, one_on_stdout};
use crate::places::Places;
use crate::progress::Spinner;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use widemargin::Error;
use widemargin::data::{BlockCounts, ReadOptions, convert_to_blocks, names_block_file, write};
use widemargin::kernel::Kernel;
use widemargin::model::Model;

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    rows: usize,
    features: usize,
    stored: usize,
}

/// What `--json` prints of a model.
#[derive(Serialize)]
struct ModelReport<'a> {
    machine: &'a str,
    kernel: Kernel,
    classes: usize,
    features: usize,
    support: Option<usize>,
}

/// Reads one format and writes another.
pub fn run(args: &ConvertArgs, output: &Output) -> Outcome {
    one_on_stdout(&[("--json", output.json), ("the data", is_stdout(&args.to))])?;
    Places::default().reads(&args.from).writes(Some(&args.to)).check()?;
    if is_foreign_model(&args.from)? {
        return convert_model(args, output);
    }
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

/// Whether a file begins as a model of LIBSVM or LIBLINEAR does.
fn is_foreign_model(path: &str) -> Outcome<bool> {
    let mut start = Vec::new();
    if Path::new(path).is_file() {
        let read = File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
        read.map_err(|source| Error::Io { path: path.into(), source })?;
    }
    Ok(Model::is_foreign(&start))
}

fn convert_model(args: &ConvertArgs, output: &Output) -> Outcome {
    let model = Model::load_foreign(&args.from)?;
    if is_stdout(&args.to) {
        return Ok(io::stdout().lock().write_all(&model.to_bytes()?)?);
    }
    interrupt::writing(|| model.save(&args.to))?;
    if output.json {
        return output.object(&ModelReport {
            machine: &model.machine,
            kernel: model.kernel,
            classes: model.labels.len(),
            features: model.features,
            support: model.scorer.support(),
        });
    }
    let (to, from) = (args.to.display(), &model.certificate.solver);
    let (classes, features) = (count(model.labels.len(), "class"), count(model.features, "feature"));
    output.tell(&format!("{to}: a model of {from}, {classes}, {features}, {} kernel", model.kernel.name()));
    Ok(())
}
