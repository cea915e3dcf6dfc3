//! The model file: what is written is read back to the bit, and no bytes whatever bring the reader down.

use proptest::prelude::*;
use widemargin::Error;
use widemargin::data::{Csr, Dense, Matrix, Scaling, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Domain, Parameter, Parameters, Preset};
use widemargin::model::{Decision, DualKept, Model, ModelCertificate, Origin, Scorer};
use widemargin::multiclass::Multiclass;
use widemargin::problem::StopReason;
use widemargin::random::Random;

const DECLARED: &[Parameter] = &[
    Parameter { name: "c", domain: Domain::Positive, default: Preset::Number(0.1), help: "" },
    Parameter { name: "way", domain: Domain::Choice(&["a", "b"]), default: Preset::Word("b"), help: "" },
];

fn model(features: usize, scorer: Scorer, kernel: Kernel) -> Model {
    let labels: Vec<String> = (0..scorer.columns().max(2)).map(|l| format!("klass {l} \"é\"")).collect();
    Model {
        machine: "odm".into(),
        parameters: Parameters::check(DECLARED, &[]).unwrap(),
        kernel,
        bias_asked: None,
        bias: Bias::Feature(1.5),
        decision: if labels.len() == 2 { Decision::Sign } else { Decision::Largest },
        labels,
        features,
        scaling: None,
        scorer,
        certificate: ModelCertificate {
            solver: "newton".into(),
            objective: Some(0.1 + 0.2),
            dual_objective: None,
            gap: Some(1e-7),
            stop: StopReason::Gap,
            iterations: 7,
            rows: 100,
            tol: Some(1e-3),
            dual: None,
        },
        parts: Vec::new(),
        average: None,
        ranked: None,
        calibration: None,
        threshold: None,
        conformity: None,
        support_rows: None,
        dual: None,
        origin: None,
        schema: None,
    }
}

fn linear(features: usize, columns: usize) -> Model {
    let mut random = Random::new(1, 2);
    let weights = (0..columns).map(|_| (0..features).map(|_| random.normal()).collect()).collect();
    model(features, Scorer::Linear { weights, intercepts: vec![0.25; columns] }, Kernel::Linear)
}

fn sparse_linear() -> Model {
    let mut weights = vec![vec![0.0; 100_000]];
    weights[0][77] = 1.5;
    weights[0][99_999] = -2.0;
    model(100_000, Scorer::Linear { weights, intercepts: vec![0.5] }, Kernel::Linear)
}

fn kernel_models() -> Vec<Model> {
    let dense64 = Matrix::DenseF64(Dense::new(3, 2, vec![1.0, 2.0, 0.0, -1.0, 0.5, 0.1]).unwrap());
    let dense32 = Matrix::DenseF32(Dense::new(3, 2, vec![1.0f32, 2.0, 0.0, -1.0, 0.5, 0.1]).unwrap());
    let offsets = vec![0u64, 2, 3, 5];
    let columns = vec![0u32, 1, 1, 0, 1];
    let sparse64 =
        Matrix::SparseF64(Csr::new(2, offsets.clone(), columns.clone(), vec![1.0, 2.0, -1.0, 0.5, 0.1]).unwrap());
    let sparse32 = Matrix::SparseF32(Csr::new(2, offsets, columns, vec![1.0f32, 2.0, -1.0, 0.5, 0.1]).unwrap());
    let kernels = [
        Kernel::Linear,
        Kernel::Rbf { gamma: 0.7 },
        Kernel::Poly { gamma: 0.5, degree: 3, coef0: 1.0 },
        Kernel::Sigmoid { gamma: 0.1, coef0: -0.5 },
        Kernel::Laplacian { gamma: 0.3 },
    ];
    let supports = [dense64, dense32, sparse64, sparse32];
    let scorer = |support: &Matrix<'static>| Scorer::Kernel {
        support: support.clone(),
        coefficients: vec![vec![0.5, -1.0, 2.0]],
        intercepts: vec![0.125],
    };
    kernels.iter().flat_map(|&k| supports.iter().map(move |s| model(2, scorer(s), k))).collect()
}

fn scaled(mut model: Model) -> Model {
    let (shift, factor) = (vec![0.5; model.features], vec![2.0; model.features]);
    model.scaling = Some(Scaling { kind: ScalingKind::MinMax, shift, factor, ranks: None });
    model
}

fn all_models() -> Vec<Model> {
    let mut models = vec![linear(5, 1), linear(4, 3), scaled(linear(5, 1)), sparse_linear()];
    models.extend(kernel_models());
    models.extend([empty(1), empty(3), verifiable()]);
    models
}

/// A kernel model that needs no row at all: its score is the intercept.
fn empty(columns: usize) -> Model {
    let support = Matrix::DenseF64(Dense::new(0, 2, vec![]).unwrap());
    let scorer = Scorer::Kernel { support, coefficients: vec![vec![]; columns], intercepts: vec![0.5; columns] };
    Model { support_rows: Some(vec![]), ..model(2, scorer, Kernel::Rbf { gamma: 0.5 }) }
}

/// A model with all that a check of its certificate needs.
fn verifiable() -> Model {
    let mut model = kernel_models().remove(0);
    let columns = model.scorer.columns();
    model.certificate.dual = Some(DualKept::Variables);
    model.dual = Some(vec![vec![0.5, 0.0, -1.5, 2.0]; columns]);
    model.support_rows = Some(vec![0, 2, 3]);
    model.origin = Some(Origin {
        rows: 4,
        fingerprint: "00ff00ff00ff00ff".into(),
        weighted: true,
        class_weights: model.labels.iter().map(|label| (label.clone(), 2.0)).collect(),
        multiclass: Multiclass::Own,
        landmarks: None,
    });
    model
}

#[test]
fn what_is_written_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.model");
    for model in all_models() {
        model.save(&path).unwrap();
        assert_eq!(Model::load(&path).unwrap(), model);
        assert_eq!(model.to_bytes().unwrap(), model.to_bytes().unwrap());
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the model");
}

#[test]
fn few_weights_among_many_features_make_a_small_file() {
    assert!(sparse_linear().to_bytes().unwrap().len() < 2000);
}

#[test]
fn a_newer_version_is_named() {
    let bytes = linear(2, 1).to_bytes().unwrap();
    let newer = replaced(&bytes, br#"\"version\":2"#, br#"\"version\":9"#);
    let message = Model::from_bytes(&newer).unwrap_err().to_string();
    assert!(message.contains("version 9"), "{message}");
}

/// Written by a program that knew version 1 only.
#[test]
fn a_file_of_version_1_is_read() {
    let model = Model::from_bytes(include_bytes!("files/version1.model")).unwrap();
    assert_eq!((model.machine.as_str(), model.bias, model.features), ("svm", Bias::Feature(1.0), 2));
    assert_eq!(model.certificate.objective, Some(2.177493321088088));
    assert!(model.origin.is_none() && model.support_rows.is_none() && model.certificate.tol.is_none());
    let rows = Matrix::DenseF64(Dense::new(2, 2, vec![1.0, 2.0, -2.0, -1.0]).unwrap());
    let scores = model.scores(&rows).unwrap();
    assert!((scores[0] - 0.99999999999634).abs() < 1e-12 && (scores[1] + 0.998237490895396).abs() < 1e-12);
    // Written again it is a file of this version.
    let again = model.to_bytes().unwrap();
    assert!(String::from_utf8_lossy(&again).contains(r#"\"version\":2"#));
    assert_eq!(Model::from_bytes(&again).unwrap(), model);
}

#[test]
fn what_belongs_to_a_certificate_must_fit() {
    let good = verifiable();
    assert_eq!(Model::from_bytes(&good.to_bytes().unwrap()).unwrap(), good);
    let changes: [fn(&mut Model); 10] = [
        |model| model.certificate.objective = Some(f64::NAN),
        |model| model.certificate.dual_objective = Some(f64::NEG_INFINITY),
        |model| model.certificate.gap = Some(f64::INFINITY),
        |model| model.certificate.tol = Some(f64::NAN),
        |model| model.dual.as_mut().unwrap()[0][1] = f64::INFINITY,
        |model| model.dual.as_mut().unwrap()[0].truncate(3),
        |model| model.dual = None,
        |model| model.certificate.dual = Some(DualKept::Slopes),
        |model| model.support_rows = Some(vec![0, 2, 4]),
        |model| model.origin.as_mut().unwrap().class_weights[1].1 = -1.0,
    ];
    for (number, change) in changes.iter().enumerate() {
        let mut bad = good.clone();
        change(&mut bad);
        assert!(bad.to_bytes().is_err(), "change {number}");
    }
}

#[test]
fn a_model_without_support_rows_scores_its_intercepts() {
    let rows = Matrix::DenseF64(Dense::new(2, 2, vec![1.0, 2.0, -2.0, -1.0]).unwrap());
    for columns in [1, 3] {
        let model = Model::from_bytes(&empty(columns).to_bytes().unwrap()).unwrap();
        assert_eq!(model.scores(&rows).unwrap(), vec![0.5; 2 * columns]);
        assert!((model.norm() - 0.5 / 1.5 * (columns as f64).sqrt()).abs() < 1e-12);
    }
}

#[test]
fn other_safetensors_and_other_files_are_refused() {
    let foreign = safetensors::serialize(Vec::<(&str, safetensors::tensor::TensorView<'_>)>::new(), None).unwrap();
    for bytes in [&foreign[..], b"", b"+1 1:2 3:4\n-1 1:3\n", &[0xff; 64]] {
        assert!(matches!(Model::from_bytes(bytes), Err(Error::Model { .. })));
    }
}

#[test]
fn numbers_that_are_not_finite_are_neither_written_nor_read() {
    let mut bad = linear(2, 1);
    bad.scorer = Scorer::Linear { weights: vec![vec![f64::NAN, 0.0]], intercepts: vec![0.0] };
    assert!(bad.to_bytes().is_err());
    let bytes = linear(2, 1).to_bytes().unwrap();
    let infinite = replaced(&bytes, &0.25f64.to_le_bytes(), &f64::INFINITY.to_le_bytes());
    assert!(matches!(Model::from_bytes(&infinite), Err(Error::Model { .. })));
}

#[test]
fn a_file_cannot_announce_more_than_it_holds() {
    let bytes = sparse_linear().to_bytes().unwrap();
    for lie in [br#"\"features\":4e9999,"#, br#"\"features\":099999,"#, br#"\"features\": 99999,"#] {
        let lying = replaced(&bytes, br#"\"features\":100000,"#, lie);
        assert!(matches!(Model::from_bytes(&lying), Err(Error::Model { .. })));
    }
}

#[test]
fn a_small_file_that_announces_four_billion_features_does_no_harm() {
    let bytes = sparse_linear().to_bytes().unwrap();
    let huge = replaced_anywhere(&bytes, br#"\"features\":100000,"#, br#"\"features\":99999999999,"#);
    assert!(matches!(Model::from_bytes(&huge), Err(Error::Model { .. })));
}

#[test]
fn thousands_of_mutated_files_do_no_harm() {
    let files: Vec<Vec<u8>> = all_models().iter().map(|m| m.to_bytes().unwrap()).collect();
    let mut random = Random::new(7, 0);
    for _ in 0..6000 {
        let mut bytes = files[random.below(files.len())].clone();
        for _ in 0..1 + random.below(4) {
            mutate(&mut bytes, &mut random);
        }
        survives(&bytes);
    }
}

fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(5) {
        0 => bytes.truncate(at.max(1)),
        1 => bytes[at] = random.bits() as u8,
        2 => bytes[at] ^= 1 << random.below(8),
        3 => {
            // A digit for a digit: the text stays well-formed and the numbers lie.
            if let Some(digit) = bytes[at..].iter_mut().find(|b| b.is_ascii_digit()) {
                *digit = b'0' + random.below(10) as u8;
            }
        }
        _ => bytes.insert(at, random.bits() as u8),
    }
}

/// Reads the bytes; a model that comes out of them must score and be written again.
fn survives(bytes: &[u8]) {
    match Model::from_bytes(bytes) {
        Ok(model) => {
            let rows = Matrix::DenseF64(Dense::new(2, 3, vec![1.0; 6]).unwrap());
            match model.predict(&rows) {
                Ok(classes) => {
                    assert!(classes.len() == 2 && classes.iter().all(|c| (*c as usize) < model.labels.len()))
                }
                Err(error) => assert!(matches!(error, Error::Numeric { .. }), "unexpected {error:?}"),
            }
            assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
        }
        Err(Error::Model { .. }) => {}
        Err(other) => panic!("unexpected {other:?}"),
    }
}

fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = bytes.windows(from.len()).position(|w| w == from).expect("the pattern is there");
    let mut bytes = bytes.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to);
    bytes
}

/// Replaces by bytes of another length and corrects the length of the header.
fn replaced_anywhere(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|w| w == from).expect("the pattern is there");
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) + to.len() as u64 - from.len() as u64;
    [&length.to_le_bytes(), &bytes[8..at], to, &bytes[at + from.len()..]].concat()
}

proptest! {
    #[test]
    fn random_bytes_are_no_model(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Model::from_bytes(&bytes).is_err());
    }

    #[test]
    fn any_header_text_is_survived(text in "\\PC{0,120}") {
        let metadata = [("widemargin".to_string(), text)].into_iter().collect();
        let none = Vec::<(&str, safetensors::tensor::TensorView<'_>)>::new();
        survives(&safetensors::serialize(none, Some(metadata)).unwrap());
    }
}
