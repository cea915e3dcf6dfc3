//! Probabilities and prediction sets: calibrated on rows that no model saw, right for the classes as they come.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::calibration::ProbabilityForm;
use widemargin::data::Dataset;
use widemargin::data::Examples;
use widemargin::kernel::Kernel;
use widemargin::machine::Outcome;
use widemargin::model::Model;
use widemargin::multiclass::Multiclass;
use widemargin::random::Random;
use widemargin::select::{Learned, learn_unseen};
use widemargin::train::{ClassWeight, TrainOptions, train};

fn calibrated(machine: &'static str, kernel: Kernel, data: &Dataset) -> Model {
    let options = Ask { kernel, tol: 1e-5, ..ask(machine) }.options();
    let (mut model, outcome) = train(data, None, &options, Default::default()).unwrap();
    by(ProbabilityForm::Sigmoid, data, &options, (&mut model, &outcome));
    model
}

fn by(form: ProbabilityForm, data: &Dataset, options: &TrainOptions, fitted: (&mut Model, &Outcome)) {
    let learned = Learned { probability: Some(form), ..Learned::default() };
    learn_unseen(Examples::of(data).unwrap(), None, options, learned, fitted, Default::default()).unwrap();
}

/// The probabilities of one class.
fn column(probabilities: &[f64], classes: usize, class: usize) -> Vec<f64> {
    probabilities.iter().skip(class).step_by(classes).copied().collect()
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
        let wrong = calibration_error(&column(&probabilities, 2, 1), codes);
        assert!(wrong < 0.08, "{machine} {kernel:?}: {wrong}");
        // The larger the score, the more probable the larger label; which is predicted is decided by the score alone.
        let offset = model.calibration.as_ref().unwrap().offsets[0];
        let lead = |row: &[f64]| if row.len() == 1 { row[0] } else { row[1] - row[0] };
        for (p, row) in probabilities.chunks_exact(2).zip(scores.chunks_exact(model.scorer.columns())) {
            let z = model.calibration.as_ref().unwrap().slope * lead(row) + offset;
            assert!((p[1] - 1.0 / (1.0 + (-z).exp())).abs() < 1e-12 && (p[0] + p[1] - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn probabilities_are_those_of_the_classes_as_they_come() {
    // One row in ten is positive; weights of classes move the scores, not what is probable.
    let (mut random, m) = (widemargin::random::Random::new(4, 0), 6000);
    let values: Vec<f64> = (0..m).map(|_| random.normal()).collect();
    let positive = |x: f64, u: f64| u < 1.0 / (1.0 + (-(1.5 * x - 3.0)).exp());
    let labels: Vec<&str> = values.iter().map(|x| if positive(*x, random.unit()) { "yes" } else { "no" }).collect();
    let (training, test) = (dense(&values[..1000], &labels[..1000]), dense(&values[1000..], &labels[1000..]));
    let codes = test.labels.as_ref().unwrap().codes();
    let share = codes.iter().map(|&c| f64::from(c)).sum::<f64>() / codes.len() as f64;
    for machine in ["odm", "svm"] {
        for class_weight in [ClassWeight::Equal, ClassWeight::Balanced] {
            let options = Ask { class_weight: class_weight.clone(), ..ask(machine) }.options();
            let (mut model, outcome) = train(&training, None, &options, Default::default()).unwrap();
            by(ProbabilityForm::Sigmoid, &training, &options, (&mut model, &outcome));
            let p = column(&model.probabilities(&model.scores(&test.rows).unwrap()).unwrap(), 2, 1);
            let mean = p.iter().sum::<f64>() / p.len() as f64;
            assert!((mean - share).abs() < 0.02, "{machine} {class_weight}: {mean}, {share}");
            let wrong = calibration_error(&p, codes);
            assert!(wrong < 0.03, "{machine} {class_weight}: {wrong}");
        }
    }
}

#[test]
fn prediction_sets_hold_the_label_as_often_as_they_promise() {
    let (values, labels) = noisy(4400, 5, 9);
    let (training, test) = (dense(&values[..2000], &labels[..400]), dense(&values[2000..], &labels[400..]));
    let codes = test.labels.as_ref().unwrap().codes();
    for (machine, kernel) in [("odm", Kernel::Linear), ("lssvm", Kernel::Rbf { gamma: 0.1 }), ("svm", Kernel::Linear)] {
        let model = calibrated(machine, kernel, &training);
        let scores = model.scores(&test.rows).unwrap();
        for (coverage, per_class) in [(0.8, false), (0.9, false), (0.95, false), (0.9, true)] {
            let sets = model.prediction_sets(&scores, coverage, per_class).unwrap();
            for class in 0..2u32 {
                let rows = || codes.iter().zip(sets.chunks_exact(2)).filter(|(c, _)| !per_class || **c == class);
                let held = rows().filter(|(c, set)| set[**c as usize]).count() as f64 / rows().count() as f64;
                assert!(held > coverage - 0.04 && held < coverage + 0.06, "{machine} {coverage} {per_class}: {held}");
            }
            assert!(sets.chunks_exact(2).all(|set| set[0] || set[1]));
        }
    }
    // The closed form is free: a machine that has it knows sets without being asked.
    let plain = train(&training, None, &ask("odm").options(), Default::default()).unwrap().0;
    assert!(plain.prediction_sets(&[0.5], 0.9, false).is_some() && plain.calibration.is_none());
    let svm = train(&training, None, &ask("svm").options(), Default::default()).unwrap().0;
    assert!(svm.prediction_sets(&[0.5], 0.9, false).is_none());
}

#[test]
fn a_calibration_is_kept_in_the_file_and_old_files_have_none() {
    let (values, labels) = noisy(60, 3, 1);
    let data = dense(&values, &labels);
    let model = calibrated("odm", Kernel::Linear, &data);
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    let plain = Model { calibration: None, conformity: None, ..model.clone() };
    let bytes = plain.to_bytes().unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("calibration"));
    assert_eq!(Model::from_bytes(&bytes).unwrap(), plain);
    assert!(plain.probabilities(&[1.0]).is_none());
    // Files of older programs have a slope and no offset.
    let older: widemargin::model::Calibration = serde_json::from_str(r#"{"slope":2.0,"log_loss":0.5}"#).unwrap();
    assert!((older.probabilities(&[1.0])[1] - 1.0 / (1.0 + (-2.0f64).exp())).abs() < 1e-15);
    for slope in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut broken = model.clone();
        broken.calibration.as_mut().unwrap().slope = slope;
        assert!(broken.to_bytes().is_err());
    }
}

#[test]
fn probabilities_of_three_classes_hold() {
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
        by(ProbabilityForm::Sigmoid, &training, &options, (&mut model, &outcome));
        let scores = model.scores(&test.rows).unwrap();
        let probabilities = model.probabilities(&scores).unwrap();
        let codes = test.labels.as_ref().unwrap().codes();
        assert!(probabilities.chunks_exact(3).all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-12));
        for class in 0..3 {
            let column = column(&probabilities, 3, class);
            let is: Vec<u32> = codes.iter().map(|&c| u32::from(c as usize == class)).collect();
            let wrong = calibration_error(&column, &is);
            assert!(wrong < 0.1, "{machine}, class {class}: {wrong}");
        }
    }
}

#[test]
fn isotonic_probabilities_rise_hold_and_are_kept() {
    // P(larger) is no sigmoid of the score: it is 0.1, 0.5 or 0.9.
    let mut random = Random::new(3, 0);
    let values: Vec<f64> = (0..6000).map(|_| random.normal()).collect();
    let truth = |x: &[f64]| {
        if x[0] < -0.5 {
            0.1
        } else if x[0] > 0.5 {
            0.9
        } else {
            0.5
        }
    };
    let labels: Vec<&str> = values.chunks(2).map(|x| if random.unit() < truth(x) { "b" } else { "a" }).collect();
    let (training, test) = (dense(&values[..4000], &labels[..2000]), dense(&values[4000..], &labels[2000..]));
    let options = Ask { kernel: Kernel::Linear, tol: 1e-5, ..ask("odm") }.options();
    let (mut model, outcome) = train(&training, None, &options, Default::default()).unwrap();
    let off = |model: &Model| {
        let p = model.probabilities(&model.scores(&test.rows).unwrap()).unwrap();
        let apart = |(p, x): (&f64, &[f64])| (p - truth(x)).abs();
        column(&p, 2, 1).iter().zip(values[4000..].chunks(2)).map(apart).sum::<f64>() / 1000.0
    };
    by(ProbabilityForm::Sigmoid, &training, &options, (&mut model, &outcome));
    let (by_sigmoid, sets) = (off(&model), model.conformity.clone());
    by(ProbabilityForm::Isotonic, &training, &options, (&mut model, &outcome));
    let by_curve = off(&model);
    assert!(by_curve < 0.8 * by_sigmoid, "{by_curve} {by_sigmoid}");
    assert_eq!(model.conformity, sets, "prediction sets go by slope and offset");
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    let mut broken = model.clone();
    broken.calibration.as_mut().unwrap().curves[0].probabilities.reverse();
    assert!(broken.to_bytes().is_err());
}
