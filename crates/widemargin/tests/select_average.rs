//! Averaged models: what they are made of, what they promise, and that a file keeps them.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::audit::audit;
use widemargin::data::{Dataset, Examples, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::model::{Model, UnseenBy};
use widemargin::problem::Bias;
use widemargin::random::Random;
use widemargin::select::{AverageFit, average};
use widemargin::train::TrainOptions;
use widemargin::verify::verify;

fn averaged(data: &Dataset, options: &TrainOptions, rows: Option<usize>) -> AverageFit {
    average(Examples::of(data).unwrap(), None, options, rows, Default::default()).unwrap()
}

fn options(machine: &'static str) -> TrainOptions {
    TrainOptions { scaling: Some(ScalingKind::MinMax), ..ask(machine).options() }
}

/// Two moons, which no plane parts.
fn moons(m: usize, seed: u64) -> (Vec<f64>, Vec<&'static str>) {
    let mut random = Random::new(seed, 0);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for i in 0..m {
        let (t, upper) = (std::f64::consts::PI * random.unit(), i % 2 == 0);
        let (x, y) = if upper { (t.cos(), t.sin()) } else { (1.0 - t.cos(), 0.5 - t.sin()) };
        values.extend([x + 0.2 * random.normal(), y + 0.2 * random.normal()]);
        labels.push(if upper { "up" } else { "down" });
    }
    (values, labels)
}

fn accuracy(model: &Model, data: &Dataset) -> f64 {
    let codes = data.labels.as_ref().unwrap().codes();
    let right = model.predict(&data.rows).unwrap().iter().zip(codes).filter(|(a, b)| a == b).count();
    right as f64 / codes.len() as f64
}

#[test]
fn it_is_the_sum_of_its_points() {
    // Each kernel's part, as a model of its own, adds up to the whole; and it foretells rows it did not see.
    let (values, labels) = moons(1200, 3);
    let (training, test) = (dense(&values[..400], &labels[..200]), dense(&values[400..], &labels[200..]));
    for machine in ["odm", "lssvm"] {
        let found = averaged(&training, &options(machine), None);
        let model = &found.model;
        let average = model.average.as_ref().unwrap();
        assert_eq!(average.kernels.len(), model.parts.len() + 1);
        let sum: f64 = average.kernels.iter().map(|k| k.weight).sum();
        assert!((sum - 1.0).abs() < 1e-9 && average.points <= 77 && found.fits <= 77, "{sum}");
        assert!(average.kernels.is_sorted_by(|a, b| a.weight >= b.weight));
        let right = accuracy(model, &test);
        assert!(right > 0.94 && (1.0 - found.loo_error - right).abs() < 0.04, "{machine}: {right} {}", found.loo_error);
        let scores = model.scores(&test.rows).unwrap();
        assert_eq!(scores, model.scores_here(&test.rows, &Default::default()).unwrap());
        let loss = |p: &[f64], c: u32| -p[c as usize].max(1e-12).ln();
        let codes = test.labels.as_ref().unwrap().codes();
        let p = model.probabilities(&scores).unwrap();
        let mean = p.chunks_exact(2).zip(codes).map(|(p, &c)| loss(p, c)).sum::<f64>() / codes.len() as f64;
        assert!((mean - average.loo_log_loss).abs() < 0.06, "{machine}: {mean} {}", average.loo_log_loss);
    }
}

#[test]
fn files_keep_averages_and_tell_nothing_to_verify() {
    let (values, labels) = moons(150, 5);
    let data = dense(&values, &labels);
    let model = averaged(&data, &options("odm"), None).model;
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    assert_eq!(again.scores(&data.rows).unwrap(), model.scores(&data.rows).unwrap());
    let examples = Examples::of(&data).unwrap();
    let found = verify(&model, examples, None, Default::default()).unwrap();
    assert!(found.agrees.is_none() && found.reason.unwrap().contains("average"));
    let other = moons(150, 6);
    let other = dense(&other.0, &other.1);
    let found = verify(&model, Examples::of(&other).unwrap(), None, Default::default()).unwrap();
    assert_eq!(found.agrees, Some(false));
    // A broken average is refused.
    if let Some(part) = model.parts.first() {
        let mut broken = model.clone();
        broken.parts[0].vectors[0].pop();
        assert!(broken.to_bytes().is_err(), "{:?}", part.kernel);
    }
    let mut broken = model.clone();
    broken.average.as_mut().unwrap().kernels[0].weight = f64::NAN;
    assert!(broken.to_bytes().is_err());
}

#[test]
fn many_classes_many_rows_and_threads() {
    let (values, _) = noisy(900, 3, 4);
    let label = |x: &[f64]| ["a", "b", "c"][(1..3).fold(0, |best, j| if x[j] > x[best] { j } else { best })];
    let labels: Vec<&str> = values.chunks(3).map(label).collect();
    let data = dense(&values, &labels);
    let found = averaged(&data, &options("odm"), Some(200));
    assert_eq!(found.judged_rows, 200);
    assert!(accuracy(&found.model, &data) > 0.93, "{}", accuracy(&found.model, &data));
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| averaged(&data, &options("odm"), Some(200)).model.to_bytes().unwrap())
    };
    assert!(fit(1) == fit(3));
    // Points fitted on a part, then on all rows, are as those fitted on all at once: a row counts the same.
    let (values, labels) = noisy(240, 4, 9);
    let data = dense(&values, &labels);
    let (all, some) = (averaged(&data, &options("odm"), None), averaged(&data, &options("odm"), Some(200)));
    assert!((accuracy(&all.model, &data) - accuracy(&some.model, &data)).abs() < 0.05);
}

#[test]
fn machines_without_margins_left_out_are_refused() {
    let (values, labels) = noisy(40, 3, 1);
    let data = dense(&values, &labels);
    let found = average(Examples::of(&data).unwrap(), None, &options("svm"), None, Default::default());
    assert!(found.is_err_and(|error| error.to_string().contains("odm and lssvm")));
}

#[test]
fn flipped_labels_are_found() {
    let (values, mut labels) = moons(400, 12);
    let mut random = Random::new(3, 0);
    let flipped: Vec<usize> = (0..400).filter(|_| random.unit() < 0.1).collect();
    flipped.iter().for_each(|&i| labels[i] = if labels[i] == "up" { "down" } else { "up" });
    let data = dense(&values, &labels);
    let examples = Examples::of(&data).unwrap();
    let rbf = Ask { kernel: Kernel::Rbf { gamma: 1.0 }, bias: Bias::Free, ..ask("svm") };
    for (base, chosen, by) in [
        (options("odm"), false, UnseenBy::LeaveOneOut),
        (Ask { machine: "odm", ..rbf.clone() }.options(), true, UnseenBy::LeaveOneOut),
        (rbf.options(), true, UnseenBy::Folds(5)),
    ] {
        let found = audit(examples, None, &base, chosen, 5, Default::default()).unwrap();
        assert_eq!((found.by, found.suspects.len()), (by, 400));
        let first = found.suspects.iter().take(flipped.len()).filter(|s| flipped.contains(&s.row)).count();
        assert!(first as f64 > 0.75 * flipped.len() as f64, "{}: {first} of {}", found.model, flipped.len());
        assert!(found.suspects.is_sorted_by(|a, b| a.probability >= b.probability));
        let (expected, truth) = (found.expected_wrong, flipped.len() as f64);
        assert!(expected > 0.6 * truth && expected < 1.6 * truth, "{}: {expected} of {truth}", found.model);
        let top = &found.suspects[0];
        assert!(top.label != top.likely && top.contradicted_by.len() == 3);
        assert!(top.contradicted_by.iter().all(|&j| labels[j] == top.likely));
    }
}
