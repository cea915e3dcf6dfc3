//! `widemargin info MODEL|DATA`

use super::words;
use crate::args::InfoArgs;
use crate::failure::Outcome;
use crate::files::read_data;
use crate::output::{Output, Summary, count, percent, print};
use serde::Serialize;
use std::path::Path;
use widemargin::data::{Dataset, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::Parameters;
use widemargin::model::{Averaged, Calibration, Model, ModelCertificate};
use widemargin_studies::{Profile, profile};

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
    columns: usize,
    support: Option<usize>,
    average: Option<&'a Averaged>,
    calibration: Option<Calibration>,
    prediction_sets: bool,
    certificate: &'a ModelCertificate,
    advice: Option<String>,
}

/// What `--json` prints of data.
#[derive(Serialize)]
struct DataReport<'a> {
    kind: &'static str,
    name: &'a str,
    #[serde(flatten)]
    profile: &'a Profile,
    feature_names: Option<&'a [String]>,
}

/// Looks at the file and says what is in it.
pub fn run(args: &InfoArgs, output: &Output) -> Outcome {
    if Path::new(&args.file).is_file() && Model::is_model_file(&args.file)? {
        return describe_model(&args.file, &Model::load(&args.file)?, output);
    }
    let data = read_data(&args.file, &args.input, output)?;
    describe_data(&args.file, &data, output)
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
            columns: model.scorer.columns(),
            support: model.scorer.support(),
            average: model.average.as_ref(),
            calibration: model.calibration.clone(),
            prediction_sets: model.conformity.is_some(),
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
    if let Some(support) = model.scorer.support() {
        summary.line("support", count(support, "row"));
    }
    if let Some(calibration) = &model.calibration {
        summary.line("probability", words::calibration(calibration));
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

fn describe_data(file: &str, data: &Dataset, output: &Output) -> Outcome {
    let profile = profile(data);
    if output.json {
        let feature_names = data.features.as_deref();
        return output.object(&DataReport { kind: "data", name: &data.name, profile: &profile, feature_names });
    }
    let mut summary = Summary::default();
    let held = format!("{}, {}", profile.storage, profile.precision);
    let stored = format!("{} stored ({})", count(profile.stored, "value"), percent(profile.density));
    summary
        .line("file", format!("{file}: data"))
        .line("rows", profile.rows.to_string())
        .line("features", profile.features.to_string())
        .line("held", format!("{held}, {stored}"));
    if let Some(names) = &data.features {
        summary.line("names", words::labels(names));
    }
    match &profile.classes {
        None => summary.line("labels", "none"),
        Some(classes) => summary.line("labels", count(classes.len(), "class")),
    };
    const SHOWN: usize = 20;
    let classes = profile.classes.as_deref().unwrap_or_default();
    for class in classes.iter().take(SHOWN) {
        summary.line("", format!("{}: {} ({})", class.label, count(class.rows, "row"), percent(class.share)));
    }
    if classes.len() > SHOWN {
        summary.line("", "…");
    }
    print(&format!("{summary}\n"))
}
