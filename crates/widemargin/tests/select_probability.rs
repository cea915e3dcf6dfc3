//! Probabilities: calibrated on rows that no model saw, and never at odds with the predictions.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::data::Dataset;
use widemargin::data::Examples;
use widemargin::kernel::Kernel;
use widemargin::model::Model;
use widemargin::multiclass::Multiclass;
use widemargin::select::calibrate;
use widemargin::train::{TrainOptions, train};

fn calibrated(machine: &'static str, kernel: Kernel, data: &Dataset) -> Model {
    let options = Ask { kernel, tol: 1e-5, ..ask(machine) }.options();
    let (mut model, outcome) = train(data, None, &options, Default::default()).unwrap();
    model.calibration =
        Some(calibrate(Examples::of(data).unwrap(), None, &options, &outcome, Default::default()).unwrap());
    model
}

/// The expected calibration error over ten bins.
fn calibration_error(probabilities: &[f64], codes: &[u32]) -> f64 {
    let mut bins = [(0.0, 0.0, 0.0); 10];
    for (p, &c) in probabilities.iter().zip(codes) {
        let bin = &mut bins[((p * 10.0) as usize).min(9)];
        *bin = (bin.0 + 1.0, bin.1 + p, bin.2 + f64::from(c));
    }
    bins.iter().map(|(_, p, c)| (p - c).abs()).sum::<f64>() / probabilities.len() as f64
}

#[test]
fn probabilities_hold_on_rows_never_seen() {
    let (values, labels) = noisy(4300, 5, 3);
    let split = 300;
    let training = dense(&values[..split * 5], &labels[..split]);
    let test = dense(&values[split * 5..], &labels[split..]);
    let codes = test.labels.as_ref().unwrap().codes();
    let cases = [
        ("odm", Kernel::Linear),
        ("odm", Kernel::Rbf { gamma: 0.1 }),
        ("svm", Kernel::Linear),
        ("lssvm", Kernel::Linear),
        ("mcodm", Kernel::Linear),
    ];
    for (machine, kernel) in cases {
        let model = calibrated(machine, kernel, &training);
        let scores = model.scores(&test.rows).unwrap();
        let probabilities = model.probabilities(&scores).unwrap();
        let wrong = calibration_error(&probabilities, codes);
        assert!(wrong < 0.08, "{machine} {kernel:?}: {wrong}");
        for (p, class) in probabilities.iter().zip(model.classes(&scores)) {
            assert!(if class == 1 { *p >= 0.5 } else { *p <= 0.5 });
        }
    }
}

#[test]
fn a_calibration_is_kept_in_the_file_and_old_files_have_none() {
    let (values, labels) = noisy(60, 3, 1);
    let data = dense(&values, &labels);
    let model = calibrated("odm", Kernel::Linear, &data);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    let plain = Model { calibration: None, ..model.clone() };
    let bytes = plain.to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("calibration"));
    assert_eq!(Model::from_bytes(&bytes).unwrap(), plain);
    assert!(plain.probabilities(&[1.0]).is_none());
    for slope in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut broken = model.clone();
        broken.calibration.as_mut().unwrap().slope = slope;
        assert!(broken.to_bytes().is_err());
    }
}

#[test]
fn probabilities_of_three_classes_hold_and_agree_with_predictions() {
    let (values, _) = noisy(1500, 3, 1);
    let noise: Vec<f64> = noisy(1500, 1, 2).0;
    // The class by the largest of three noisy numbers.
    let label = |i: usize| {
        let x = &values[3 * i..3 * i + 3];
        let noisy = [x[0] + noise[i], x[1] - noise[i], x[2]];
        ["a", "b", "c"][(1..3).fold(0, |best, l| if noisy[l] > noisy[best] { l } else { best })]
    };
    let labels: Vec<&str> = (0..1500).map(label).collect();
    let (training, test) = (dense(&values[..900], &labels[..300]), dense(&values[900..], &labels[300..]));
    for (machine, multiclass) in [("mcodm", None), ("odm", Some(Multiclass::Ova)), ("svm", Some(Multiclass::Ovo))] {
        let options = TrainOptions { multiclass, ..ask(machine).options() };
        let (mut model, outcome) = train(&training, None, &options, Default::default()).unwrap();
        let examples = Examples::of(&training).unwrap();
        model.calibration = Some(calibrate(examples, None, &options, &outcome, Default::default()).unwrap());
        let scores = model.scores(&test.rows).unwrap();
        let probabilities = model.probabilities(&scores).unwrap();
        let codes = test.labels.as_ref().unwrap().codes();
        for (p, class) in probabilities.chunks_exact(3).zip(model.classes(&scores)) {
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!((0..3).all(|l| l == class as usize || p[l] < p[class as usize]), "{machine}: {p:?}");
        }
        for class in 0..3 {
            let column: Vec<f64> = probabilities.iter().skip(class).step_by(3).copied().collect();
            let is: Vec<u32> = codes.iter().map(|&c| u32::from(c as usize == class)).collect();
            let wrong = calibration_error(&column, &is);
            assert!(wrong < 0.1, "{machine}, class {class}: {wrong}");
        }
    }
}
