//! `widemargin export MODEL OUT.onnx`

use crate::args::ExportArgs;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::{Output, count, is_stdout, one_on_stdout, print};
use crate::places::Places;
use serde::Serialize;
use std::io::{self, Write};
use widemargin::Error;
use widemargin::data::write_atomically;
use widemargin::model::{Model, OnnxLabels};

/// What `--json` prints.
#[derive(Serialize)]
struct Report {
    inputs: usize,
    outputs: Vec<&'static str>,
    bytes: usize,
}

/// Reads a model and writes it as an ONNX graph.
pub fn run(args: &ExportArgs, output: &Output) -> Outcome {
    one_on_stdout(&[("--json", output.json), ("the model", is_stdout(&args.out))])?;
    Places::default().reads(&args.model).writes(Some(&args.out)).check()?;
    let to = args.out.display();
    if !is_stdout(&args.out) && !args.out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("onnx")) {
        return Err(Error::Usage(format!("{to}: models are exported as ONNX: name the file .onnx")).into());
    }
    let model = Model::load(&args.model)?;
    let bytes = model.to_onnx(&model.machine, &OnnxLabels::of(&model.labels), args.single, &[])?;
    if is_stdout(&args.out) {
        return Ok(io::stdout().lock().write_all(&bytes)?);
    }
    interrupt::writing(|| write_atomically(&args.out, |file| file.write_all(&bytes)))?;
    let mut outputs = vec!["label", "scores"];
    outputs.extend(model.calibration.is_some().then_some("probabilities"));
    if output.json {
        return output.object(&Report { inputs: model.features, outputs, bytes: bytes.len() });
    }
    let features = count(model.features, "feature");
    print(&format!("{to}: takes X (rows × {features}), gives {}\n", outputs.join(", ")))
}
