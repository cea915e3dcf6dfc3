//! Probabilities: calibrated on rows that no model saw, and never at odds with the predictions.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::Error;
use widemargin::data::Dataset;
use widemargin::kernel::Kernel;
use widemargin::model::Model;
use widemargin::select::calibrate;
use widemargin::train::train;

fn calibrated(machine: &'static str, kernel: Kernel, data: &Dataset) -> Model {
    let options = Ask { kernel, tol: 1e-5, ..ask(machine) }.options();
    let (mut model, outcome) = train(data, None, &options, Default::default()).unwrap();
    model.calibration = Some(calibrate(data, None, &options, &outcome, Default::default()).unwrap());
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
fn more_classes_are_refused() {
    let (values, _) = noisy(30, 3, 1);
    let labels: Vec<&str> = (0..30).map(|i| ["a", "b", "c"][i % 3]).collect();
    let data = dense(&values, &labels);
    let options = ask("odm").options();
    let (_, outcome) = train(&data, None, &options, Default::default()).unwrap();
    assert!(matches!(calibrate(&data, None, &options, &outcome, Default::default()), Err(Error::Usage(_))));
}
