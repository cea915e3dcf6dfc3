//! `widemargin info MODEL|DATA`

use super::words;
use crate::args::InfoArgs;
use crate::failure::{Flags, Outcome};
use crate::files::read_with;
use crate::output::{Output, Summary, count, percent, print, short, table};
use crate::progress::Spinner;
use comfy_table::Table;
use serde::Serialize;
use std::path::Path;
use widemargin::data::{ColumnProfile, ReadOptions, ScalingKind, Schema, Survey, survey};
use widemargin::kernel::Kernel;
use widemargin::machine::Parameters;
use widemargin::model::{Averaged, Calibration, Model, ModelCertificate};
use widemargin_studies::{ClassCount, class_counts, profile};

/// What `--json` prints of a model.
#[derive(Serialize)]
struct ModelReport<'a> {
    kind: &'static str,
    machine: &'a str,
    params: &'a Parameters,
    kernel: Kernel,
    bias: String,
    bias_asked: String,
    scale: &'static str,
    classes: usize,
    labels: &'a [String],
    features: usize,
    label: Option<serde_json::Value>,
    feature_names: Option<Vec<&'a str>>,
    schema: Option<&'a Schema>,
    columns: usize,
    support: Option<usize>,
    average: Option<&'a Averaged>,
    calibration: Option<Calibration>,
    threshold: Option<f64>,
    prediction_sets: bool,
    certificate: &'a ModelCertificate,
    advice: Option<String>,
}

/// What `--json` prints of data.
#[derive(Serialize)]
struct DataReport<'a> {
    kind: &'static str,
    name: &'a str,
    rows: usize,
    features: Option<usize>,
    stored: Option<usize>,
    density: Option<f64>,
    storage: Option<&'static str>,
    precision: Option<&'static str>,
    classes: Option<&'a [ClassCount]>,
    feature_names: Option<Vec<&'a str>>,
    columns: Option<&'a [ColumnProfile]>,
    /// Why it cannot be learned from as it is.
    problem: Option<String>,
}

/// Looks at the file and says what is in it.
pub fn run(args: &InfoArgs, output: &Output) -> Outcome {
    if Path::new(&args.file).is_file() && Model::is_model_file(&args.file)? {
        return describe_model(&args.file, &Model::load(&args.file)?, output);
    }
    if args.file != "-" && Path::new(&args.file).is_file() {
        let spinner = Spinner::start(output, format!("reading {}", args.file));
        let found = survey(&args.file, &args.input.options())?;
        drop(spinner);
        return describe_data(&args.file, &found, output);
    }
    let data = read_with(&args.file, &ReadOptions { any_label: true, ..args.input.options() }, output)?;
    let found = Survey { columns: None, labels: data.labels.clone(), rows: data.rows.rows(), data: Ok(data) };
    describe_data(&args.file, &found, output)
}

fn describe_model(file: &str, model: &Model, output: &Output) -> Outcome {
    let certificate = &model.certificate;
    let scale = ScalingKind::word(model.scaling.as_ref().map(|s| s.kind));
    if output.json {
        return output.object(&ModelReport {
            kind: "model",
            machine: &model.machine,
            params: &model.parameters,
            kernel: model.kernel,
            bias: model.bias.to_string(),
            bias_asked: model.bias_asked.unwrap_or(model.bias).to_string(),
            scale,
            classes: model.labels.len(),
            labels: &model.labels,
            features: model.features,
            label: words::label_column(model),
            feature_names: model.schema.as_ref().and_then(|schema| schema.column_names()),
            schema: model.schema.as_ref(),
            columns: model.scorer.columns(),
            support: model.scorer.support(),
            average: model.average.as_ref(),
            calibration: model.calibration.clone(),
            prediction_sets: model.conformity.is_some(),
            threshold: model.threshold,
            certificate,
            advice: words::unconverged(model),
        });
    }
    let mut summary = Summary::default();
    let classes = format!("{} ({})", count(model.labels.len(), "class"), words::labels(&model.labels));
    summary
        .line("file", format!("{file}: a model"))
        .line("machine", words::machine(&model.machine, &model.parameters))
        .line("kernel", words::kernels(model))
        .line("intercept", words::intercept(model))
        .line("scaling", scale)
        .line("predicts", classes)
        .line("from", count(model.features, "feature"));
    words::columns(model, &mut summary);
    if let Some(names) = model.schema.as_ref().and_then(|schema| schema.column_names()) {
        summary.line("names", names.join(", "));
    }
    if let Some(support) = model.scorer.support() {
        summary.line("support", count(support, "row"));
    }
    if let Some(calibration) = &model.calibration {
        summary.line("probability", words::calibration(calibration));
    }
    if let Some(threshold) = model.threshold {
        summary.line("threshold", words::threshold(threshold, &model.labels));
    }
    summary
        .line("trained on", count(certificate.rows, "row"))
        .line("solver", format!("{}, {}", certificate.solver, count(certificate.iterations, "iteration")))
        .line("stopped", words::stop(certificate.stop));
    if let Some(text) = words::objective(certificate.objective, certificate.dual_objective, certificate.gap) {
        summary.line("objective", text);
    }
    if let Some(advice) = words::unconverged(model) {
        summary.line("advice", advice);
    }
    print(&format!("{summary}\n"))
}

fn describe_data(file: &str, found: &Survey, output: &Output) -> Outcome {
    let profile = found.data.as_ref().ok().map(profile);
    let counts = found.labels.as_ref().map(class_counts);
    let names = found.data.as_ref().ok().and_then(|data| data.schema.as_ref()).and_then(|schema| schema.column_names());
    if output.json {
        return output.object(&DataReport {
            kind: "data",
            name: found.data.as_ref().map_or(file, |data| &data.name),
            rows: found.rows,
            features: profile.as_ref().map(|profile| profile.features),
            stored: profile.as_ref().map(|profile| profile.stored),
            density: profile.as_ref().map(|profile| profile.density),
            storage: profile.as_ref().map(|profile| profile.storage),
            precision: profile.as_ref().map(|profile| profile.precision),
            classes: counts.as_deref(),
            feature_names: names,
            columns: found.columns.as_deref(),
            problem: found.data.as_ref().err().map(|error| error.worded(&Flags)),
        });
    }
    let mut summary = Summary::default();
    summary.line("file", format!("{file}: data")).line("rows", found.rows.to_string());
    if let Some(profile) = &profile {
        let held = format!("{}, {}", profile.storage, profile.precision);
        let stored = format!("{} stored ({})", count(profile.stored, "value"), percent(profile.density));
        summary.line("features", profile.features.to_string()).line("held", format!("{held}, {stored}"));
    }
    if let Err(error) = &found.data {
        summary.line("problem", error.worded(&Flags));
    }
    match &counts {
        None => summary.line("labels", "none"),
        Some(classes) => summary.line("labels", count(classes.len(), "class")),
    };
    const SHOWN: usize = 20;
    let classes = counts.as_deref().unwrap_or_default();
    for class in classes.iter().take(SHOWN) {
        summary.line("", format!("{}: {} ({})", class.label, count(class.rows, "row"), percent(class.share)));
    }
    if classes.len() > SHOWN {
        summary.line("", "…");
    }
    let columns =
        found.columns.as_deref().map_or(String::new(), |columns| format!("\n{}\n", table_of(columns).trim_fmt()));
    print(&format!("{summary}\n{columns}"))
}

/// The columns of a table.
fn table_of(columns: &[ColumnProfile]) -> Table {
    let header = ["column", "is", "of", "missing", "distinct", "min", "mean", "max", "most frequent"];
    let mut table = table(header.map(str::to_string).to_vec());
    for column in columns {
        let number = |value: Option<f64>| value.map_or(String::new(), short);
        let more = if column.more { "more than " } else { "" };
        table.add_row([
            column.name.clone(),
            column.role.into(),
            column.kind.unwrap_or_default().into(),
            column.missing.to_string(),
            format!("{more}{}", column.distinct),
            number(column.min),
            number(column.mean),
            number(column.max),
            column.most.clone().unwrap_or_default(),
        ]);
    }
    table
}
