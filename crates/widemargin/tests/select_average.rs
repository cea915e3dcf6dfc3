//! Averaged models: what they are made of, what they promise, and that a file keeps them.

mod common;

use common::{Ask, ask, dense, noisy};
use widemargin::audit::audit;
use widemargin::data::{Dataset, Examples, Matrix, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::model::{Model, Scorer, UnseenBy};
use widemargin::problem::Bias;
use widemargin::random::Random;
use widemargin::select::{AverageFit, AverageOptions, AverageOver, average};
use widemargin::train::TrainOptions;
use widemargin::verify::verify;

fn averaged(data: &Dataset, options: &TrainOptions, rows: Option<usize>) -> AverageFit {
    let how = AverageOptions { judged: rows, ..AverageOptions::default() };
    average(Examples::of(data).unwrap(), None, options, how, Default::default()).unwrap()
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
        assert!((sum - 1.0).abs() < 1e-9 && average.points <= 132 && found.fits <= 132, "{sum}");
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

/// The scores of an average by its formula, kernel after kernel, over the rows as each of them sees them.
#[test]
fn kernels_see_values_or_ranks() {
    // A feature of which only the order counts, and one of two values.
    let (mut values, mut labels) = moons(300, 8);
    let mut random = Random::new(8, 1);
    for (x, label) in values.chunks_exact_mut(2).zip(&mut labels) {
        (x[0], x[1]) = ((6.0 * x[0]).exp(), f64::from(u8::from(random.unit() < 0.3)));
        *label = if (x[0] > 3.0) == (x[1] == 0.0) { "up" } else { "down" };
    }
    let data = dense(&values, &labels);
    let over_values = AverageOptions { over: AverageOver::Values, ..AverageOptions::default() };
    let plain = average(Examples::of(&data).unwrap(), None, &options("odm"), over_values, Default::default()).unwrap();
    assert!(plain.model.ranked.is_none() && plain.fits <= 77);
    let model = averaged(&data, &options("odm"), None).model;
    let ranked = model.ranked.as_ref().expect("ranks are better here");
    assert!(model.average.as_ref().unwrap().loo_log_loss < plain.model.average.as_ref().unwrap().loo_log_loss);
    let Scorer::Kernel { support, coefficients, intercepts } = &model.scorer else { panic!("no kernel") };
    let scaled = model.scaling.as_ref().unwrap().apply(&data.rows);
    let numbers = |rows: &Matrix<'_>| -> Vec<Vec<f64>> {
        let Matrix::DenseF64(x) = rows else { panic!("not dense") };
        x.values().chunks_exact(2).map(<[f64]>::to_vec).collect()
    };
    let mut expected = vec![intercepts[0]; 300];
    let parts = model.parts.iter().map(|part| (part.kernel, &part.vectors[0]));
    for ((kernel, vector), on_ranks) in [(model.kernel, &coefficients[0])].into_iter().chain(parts).zip(&ranked.which) {
        let seen = |rows: &Matrix<'_>| if *on_ranks { ranked.scaling.apply(rows) } else { rows.clone().into_owned() };
        let (rows, others) = (numbers(&seen(&scaled)), numbers(&seen(support)));
        for (f, x) in expected.iter_mut().zip(&rows) {
            let value = |z: &[f64]| match kernel {
                Kernel::Rbf { gamma } => (-gamma * ((x[0] - z[0]).powi(2) + (x[1] - z[1]).powi(2))).exp(),
                Kernel::Laplacian { gamma } => (-gamma * ((x[0] - z[0]).abs() + (x[1] - z[1]).abs())).exp(),
                kernel => panic!("{kernel:?}"),
            };
            *f += match kernel {
                Kernel::Linear => vector.iter().zip(x).map(|(w, x)| w * x).sum::<f64>(),
                _ => vector.iter().zip(&others).map(|(c, z)| c * value(z)).sum(),
            };
        }
    }
    let apart = model.scores(&data.rows).unwrap().iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-9, "{apart}");
    assert_eq!(Model::from_bytes(&model.to_bytes().unwrap()).unwrap(), model);
    let mut broken = model.clone();
    broken.ranked.as_mut().unwrap().which.pop();
    assert!(broken.to_bytes().is_err());
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
    let found = average(Examples::of(&data).unwrap(), None, &options("svm"), Default::default(), Default::default());
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
