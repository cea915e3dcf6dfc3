//! `widemargin coefficients MODEL`

use crate::args::CoefficientsArgs;
use crate::failure::Outcome;
use crate::output::{Output, print, short};
use crate::sheet::Sheet;
use serde::Serialize;
use widemargin::Error;
use widemargin::model::{Decision, Model, Scorer};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    machine: &'a str,
    labels: &'a [String],
    /// What a positive score of each column speaks for.
    columns: Vec<String>,
    intercepts: Vec<f64>,
    /// The largest first.
    features: Vec<Weights>,
}

/// The weights of a feature, one a score column.
#[derive(Serialize)]
struct Weights {
    feature: String,
    weights: Vec<f64>,
    /// As the machine has them, of features as it scaled them; comparable with each other.
    scaled: Vec<f64>,
}

/// Reads a linear model and lists its weights.
pub fn run(args: &CoefficientsArgs, output: &Output) -> Outcome {
    let model = Model::load(&args.model)?;
    let Some((raw, intercepts)) = model.linear() else {
        let file = args.model.display();
        let reason = match model.scorer {
            Scorer::Kernel { .. } => {
                let kernel = model.kernel.name();
                format!("{file}: a model with the {kernel} kernel has no weight a feature; train with --kernel linear")
            }
            Scorer::Linear { .. } => format!("{file}: its weights are those of ranks, not of features"),
        };
        return Err(Error::Usage(reason).into());
    };
    let names = feature_names(&model);
    let scaled = model.scorer.vectors();
    let of = |vectors: &[Vec<f64>], j: usize| -> Vec<f64> { vectors.iter().map(|w| w[j]).collect() };
    let mut features: Vec<Weights> = names
        .into_iter()
        .enumerate()
        .map(|(j, feature)| Weights { feature, weights: of(&raw, j), scaled: of(scaled, j) })
        .collect();
    let size = |feature: &Weights| feature.scaled.iter().fold(0.0f64, |most, w| most.max(w.abs()));
    features.sort_by(|a, b| size(b).total_cmp(&size(a)));
    features.truncate(args.top.map_or(usize::MAX, Into::into));
    let report =
        Report { machine: &model.machine, labels: &model.labels, columns: columns(&model), intercepts, features };
    if output.json {
        return output.object(&report);
    }
    print(&sheet(&report, model.scaling.is_some()).print(args.style))
}

fn sheet(report: &Report<'_>, scaled: bool) -> Sheet {
    let weights = report.columns.iter().cloned();
    let comparable = report.columns.iter().filter(|_| scaled).map(|column| format!("{column}, scaled"));
    let mut sheet = Sheet::new(std::iter::once("feature".to_string()).chain(weights).chain(comparable), 1);
    for feature in &report.features {
        let numbers = feature.weights.iter().chain(feature.scaled.iter().filter(|_| scaled));
        sheet.row(std::iter::once(feature.feature.clone()).chain(numbers.map(|w| short(*w))));
    }
    sheet.row(std::iter::once("intercept".to_string()).chain(report.intercepts.iter().map(|b| short(*b))));
    sheet
}

/// What a positive score of each column speaks for.
fn columns(model: &Model) -> Vec<String> {
    let labels = &model.labels;
    match model.decision {
        Decision::Sign => vec![labels[1].clone()],
        Decision::Largest => labels.clone(),
        Decision::Pairs => (0..labels.len())
            .flat_map(|a| (a + 1..labels.len()).map(move |b| format!("{} over {}", labels[b], labels[a])))
            .collect(),
        Decision::Codes => (1..=model.scorer.columns()).map(|bit| format!("bit {bit}")).collect(),
    }
}

fn feature_names(model: &Model) -> Vec<String> {
    let named = model.feature_names().filter(|names| names.len() == model.features);
    named.unwrap_or_else(|| (1..=model.features).map(|number| format!("x{number}")).collect())
}
