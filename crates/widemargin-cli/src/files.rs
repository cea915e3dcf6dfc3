//! Reading what the options name, with a spinner.

use crate::args::{DataArgs, FitArgs};
use crate::failure::{Flags, Outcome};
use crate::output::Output;
use crate::progress::Spinner;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use widemargin::data::{Dataset, IdColumn, ReadOptions, ScalingKind, embedded, embedded_names, read, read_parts};
use widemargin::kernel::{Kernel, KernelKind};
use widemargin::machine::{Machine, Parameters};
use widemargin::memory::usual_budget;
use widemargin::model::Model;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};
use widemargin::{Error, Result};

/// Reads a data file to learn from, or a set inside the program if no file has its name.
pub fn read_data(path: &str, input: &DataArgs, output: &Output) -> Outcome<Dataset> {
    read_with(path, &input.options(), output)
}

/// The same for rows that a model is to meet: columns are the model's, by name, or by place where there are no names.
pub fn read_for(model: &Model, path: &str, input: &DataArgs, output: &Output) -> Outcome<Dataset> {
    let schema = Some(model.reading_schema());
    read_with(path, &ReadOptions { schema, any_label: true, ..input.options() }, output)
}

/// As [`read_for`], some rows at a time: none are kept, so that a stream may be without end.
pub fn read_parts_for(
    model: &Model,
    path: &str,
    input: &DataArgs,
    id: IdColumn,
    output: &Output,
    deliver: &mut (dyn FnMut(Dataset) -> Result<()> + Send),
) -> Outcome {
    let options = ReadOptions { schema: Some(model.reading_schema()), any_label: true, id, ..input.options() };
    if let (false, Some(data)) = (Path::new(path).exists(), embedded(path)) {
        return Ok(deliver(data)?);
    }
    Ok(read_parts(path, &options, &mut |part| {
        part.remarks.iter().for_each(|remark| output.warn(&remark.worded(&Flags)));
        deliver(part)
    })?)
}

/// The same as these options say.
pub fn read_with(path: &str, options: &ReadOptions, output: &Output) -> Outcome<Dataset> {
    let spinner = Spinner::start(output, format!("reading {path}"));
    let inside = if Path::new(path).exists() { None } else { embedded(path) };
    let data = inside.map_or_else(|| read(path, options), Ok).map_err(|error| name_sets(path, error))?;
    drop(spinner);
    data.remarks.iter().for_each(|remark| output.warn(&remark.worded(&Flags)));
    Ok(data)
}

/// A name without an ending that no file has may be that of a set, misspelt: the error lists them.
fn name_sets(path: &str, error: Error) -> Error {
    let missing = matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound);
    if !missing || path.contains(['.', '/', '\\']) {
        return error;
    }
    let sets = embedded_names().join(", ");
    Error::data(path, format!("there is no such file, and no such set inside the program, which has {sets}"))
}

/// Reads the weights of the rows, one number a line.
pub fn read_weights(path: &Path, rows: usize) -> Result<Vec<f64>> {
    let (text, file) = (read_lines(path, rows)?, path.display().to_string());
    let wrong = |(line, text): (usize, &str)| Error::Parse {
        file: file.clone(),
        line: line as u64 + 1,
        column: 1,
        found: format!("`{}`", text.trim()),
        expected: "a weight: one finite number >= 0 a line".into(),
    };
    let weight = |(line, text): (usize, &str)| {
        let number = text.trim().parse().ok().filter(|w: &f64| w.is_finite() && *w >= 0.0);
        number.ok_or_else(|| wrong((line, text)))
    };
    let weights: Vec<f64> = text.lines().enumerate().map(weight).collect::<Result<_>>()?;
    if weights.len() != rows {
        let reason = format!("it has {} weights, the data has {rows} rows", weights.len());
        return Err(Error::Data { file, reason });
    }
    Ok(weights)
}

/// The text of a file with so many short lines. One that is longer, perhaps without end, is not read further.
fn read_lines(path: &Path, lines: usize) -> Result<String> {
    const LONGEST: u64 = 1000;
    let mut text = String::new();
    let most = (lines as u64 + 1).saturating_mul(LONGEST);
    let read = File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    match read {
        Ok(size) if size as u64 == most => {
            let reason = format!("it is longer than {lines} lines of one number each can be");
            Err(Error::Data { file: path.display().to_string(), reason })
        }
        Ok(_) => Ok(text),
        Err(source) => Err(Error::Io { path: path.into(), source }),
    }
}

/// The library's options for one machine.
pub fn fit_options(
    machine: &'static Machine,
    parameters: Parameters,
    fit: &FitArgs,
    scaling: Option<ScalingKind>,
    seed: u64,
) -> Result<TrainOptions> {
    Ok(TrainOptions {
        approx: None,
        machine,
        parameters,
        kernel: shaped(fit.kernel, fit)?,
        gamma: fit.gamma.unwrap_or(Gamma::Scale),
        bias: fit.bias,
        scaling,
        class_weight: ClassWeight::Equal,
        multiclass: fit.multiclass,
        solver: fit.solver,
        settings: Settings {
            tol: fit.tol.unwrap_or(Settings::default().tol),
            max_iter: fit.max_iter.map(Into::into),
            memory: fit.memory.unwrap_or_else(usual_budget),
            seed,
            ..Settings::default()
        },
    })
}

/// The kernel with the constants it has if nobody says; `γ` is settled with the data.
pub fn plain(kind: KernelKind) -> Kernel {
    kind.with(1.0, KernelKind::DEGREE, KernelKind::COEF0)
}

/// The kernel with the constants that were given; its `γ` is settled with the data. Options it has no use for are refused, not
/// ignored.
pub fn shaped(kernel: KernelKind, fit: &FitArgs) -> Result<Kernel> {
    let numbers = [
        ("--gamma", fit.gamma.is_some(), kernel.has_gamma()),
        ("--degree", fit.degree.is_some(), kernel.has_degree()),
        ("--coef0", fit.coef0.is_some(), kernel.has_coef0()),
    ];
    if let Some((option, ..)) = numbers.iter().find(|(_, given, has)| *given && !has) {
        return Err(Error::Usage(format!("{option} has no meaning for the {kernel} kernel")));
    }
    let (degree, coef0) = (fit.degree.unwrap_or(KernelKind::DEGREE), fit.coef0.unwrap_or(KernelKind::COEF0));
    Ok(kernel.with(1.0, degree, coef0))
}

/// Reads a data file as its ending says.
pub fn read_plain(path: &Path, output: &Output) -> Outcome<Dataset> {
    let _spinner = Spinner::start(output, format!("reading {}", path.display()));
    Ok(read(&path.to_string_lossy(), &ReadOptions::default())?)
}
