//! Damaged model files: a model that can be scored and written, or an error that says why not.

use crate::case::{Failure, Outcome, require};
use crate::draw::Draw;
use crate::mutate::{mutate, mutated_text};
use crate::run::Bench;
use std::sync::OnceLock;
use widemargin::control::Control;
use widemargin::data::Examples;
use widemargin::data::{Csr, Dataset, Labels, Matrix, ScalingKind, embedded};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice, check_parameters, machine};
use widemargin::model::{Calibration, Curve, Model};
use widemargin::multiclass::Multiclass;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};
use widemargin::verify::verify;

/// Damages one of a few models, reads it, and uses what is read.
pub fn run(seed: u64, _: &Bench) -> Outcome {
    let draw = &mut Draw::new(seed, 4);
    let (data, files) = BASE.get_or_init(base).as_ref().map_err(|error| Failure(error.clone()))?;
    let mut bytes = files[draw.below(files.len())].clone();
    let kind = match draw.below(5) {
        0 => "anywhere",
        1..=3 => "header",
        _ => "undamaged",
    };
    match kind {
        "anywhere" => mutate(draw, &mut bytes),
        "header" => bytes = with_damaged_header(draw, &bytes)?,
        _ => {}
    }
    let Ok(model) = Model::from_bytes(&bytes) else {
        require(kind != "undamaged", || "a good model is refused".into())?;
        return Ok(vec![format!("damaged {kind}"), "refused".into()]);
    };
    use_it(draw, &model, data)?;
    let once = model.to_bytes().map_err(|error| format!("a model that was read cannot be written: {error}"))?;
    let again =
        Model::from_bytes(&once).map_err(|error| format!("a model that was written cannot be read: {error}"))?;
    require(again.to_bytes()? == once, || "written, read and written again, it is another one".into())?;
    Ok(vec![format!("damaged {kind}"), "read".into()])
}

type Base = Result<(Dataset, Vec<Vec<u8>>), String>;

static BASE: OnceLock<Base> = OnceLock::new();

/// Models of every kind: linear and kernel, with scaling, probabilities, landmarks, dual variables, codes.
fn base() -> Result<(Dataset, Vec<Vec<u8>>), String> {
    let text = |error: widemargin::Error| error.to_string();
    let data = embedded("iris").ok_or("the set iris is not there")?;
    let rbf = Kernel::Rbf { gamma: 1.0 };
    let poly = Kernel::Poly { gamma: 1.0, degree: 2, coef0: 1.0 };
    let asked = [
        ("svm", Kernel::Linear, Some(Multiclass::Ovo), None, None),
        ("odm", rbf, None, Some(ScalingKind::Standard), None),
        ("ldm", poly, Some(Multiclass::Ecoc), Some(ScalingKind::MinMax), None),
        ("mcsvm", Kernel::Linear, None, None, None),
        ("mcodm", rbf, None, Some(ScalingKind::MaxAbs), None),
        ("svm", rbf, Some(Multiclass::Ova), None, Some(20)),
        ("lda", Kernel::Linear, None, None, None),
    ];
    let mut files = Vec::new();
    for (name, kernel, multiclass, scaling, approx) in asked {
        let machine = machine(name).map_err(text)?;
        let options = TrainOptions {
            machine,
            parameters: check_parameters(machine, &[]).map_err(text)?,
            kernel,
            gamma: Gamma::Scale,
            approx,
            bias: if approx.is_some() { Bias::Feature(1.0) } else { Bias::Free },
            scaling,
            class_weight: ClassWeight::Balanced,
            multiclass,
            solver: SolverChoice::Auto,
            settings: Settings::default(),
        };
        let (mut model, _) = train(&data, None, &options, Control::default()).map_err(text)?;
        let offsets = vec![-0.25; if model.labels.len() == 2 { 1 } else { model.labels.len() }];
        let curve = Curve { scores: vec![-1.0, 0.5, 2.0], probabilities: vec![0.125, 0.5, 0.875] };
        let curves = if scaling.is_some() { vec![curve; offsets.len()] } else { Vec::new() };
        let known = approx.is_some() || scaling.is_some();
        model.calibration = known.then_some(Calibration { slope: 2.0, offsets, curves, log_loss: 0.5, by: None });
        files.push(model.to_bytes().map_err(text)?);
    }
    Ok((data, files))
}

/// A file is eight bytes with the length of its header, the header (JSON), the arrays. The length is made to fit again.
fn with_damaged_header(draw: &mut Draw, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let (length, rest) = bytes.split_at_checked(8).ok_or("a file without a header")?;
    let length = u64::from_le_bytes(length.try_into()?) as usize;
    let (header, arrays) = rest.split_at_checked(length).ok_or("a header without end")?;
    let mut header = mutated_text(draw, std::str::from_utf8(header)?).into_bytes();
    while !header.len().is_multiple_of(8) {
        header.push(b' ');
    }
    Ok([&(header.len() as u64).to_le_bytes(), header.as_slice(), arrays].concat())
}

/// Everything one does with a model; errors are fine, panics are not.
fn use_it(draw: &mut Draw, model: &Model, data: &Dataset) -> Result<(), Failure> {
    let width = model.features;
    let columns: Vec<u32> = if width == 0 { Vec::new() } else { vec![draw.below(width) as u32] };
    let values = vec![draw.normal(); columns.len()];
    let row = Csr::new(width, vec![0, columns.len() as u64], columns, values)?;
    // Rows of billions of features are for their owners: scaled or widened, they are copied.
    if width <= 1 << 20 {
        if let Ok(scores) = model.scores(&Matrix::SparseF64(row)) {
            require(scores.len() == model.scorer.columns(), || "not one score a column".into())?;
            require(scores.iter().all(|score| score.is_finite()), || "a score that is no number".into())?;
            let classes = model.classes(&scores);
            require((classes[0] as usize) < model.labels.len(), || "a class without label".into())?;
            model.probabilities(&scores);
            let labels = Labels::new(&[model.labels[0].as_str()]);
            model.margins(&scores, &labels);
        }
        model.norm();
        let found = verify(model, Examples::of(data)?, None, Control::default());
        drop(found);
    }
    Ok(())
}
