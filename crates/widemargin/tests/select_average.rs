//! Averaged models: what they are made of, what they promise, and that a file keeps them.

mod common;

use common::{Ask, ask, dense, furthest, noisy};
use widemargin::audit::audit;
use widemargin::data::{Dataset, Examples, Matrix, ScalingKind, folds};
use widemargin::kernel::Kernel;
use widemargin::machine::{MACHINES, check_parameters};
use widemargin::model::{Model, Scorer, UnseenBy};
use widemargin::problem::Bias;
use widemargin::random::Random;
use widemargin::select::{AverageFit, AverageOptions, AverageOver, average, average_distance};
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
fn other_machines_are_averaged_by_folds() {
    let (values, labels) = moons(900, 4);
    let (training, test) = (dense(&values[..400], &labels[..200]), dense(&values[400..], &labels[200..]));
    for machine in ["svm", "ldm", "odm-l", "svr", "huber-svm"] {
        let found = averaged(&training, &options(machine), None);
        let average = found.model.average.as_ref().unwrap();
        assert_eq!((average.by, found.unseen.by), (UnseenBy::Folds(5), UnseenBy::Folds(5)), "{machine}");
        assert_eq!(found.model.calibration.as_ref().unwrap().by, Some(UnseenBy::Folds(5)));
        let sum: f64 = average.kernels.iter().map(|k| k.weight).sum();
        assert!((sum - 1.0).abs() < 1e-9 && found.fits > 5 * average.points, "{machine}: {sum} {}", found.fits);
        let right = accuracy(&found.model, &test);
        assert!(right > 0.94 && (1.0 - found.loo_error - right).abs() < 0.04, "{machine}: {right} {}", found.loo_error);
        let codes = test.labels.as_ref().unwrap().codes();
        let p = found.model.probabilities(&found.model.scores(&test.rows).unwrap()).unwrap();
        let loss = |(p, &c): (&[f64], &u32)| -p[c as usize].max(1e-12).ln();
        let mean = p.chunks_exact(2).zip(codes).map(loss).sum::<f64>() / codes.len() as f64;
        assert!((mean - average.loo_log_loss).abs() < 0.06, "{machine}: {mean} {}", average.loo_log_loss);
        assert_eq!(Model::from_bytes(&found.model.to_bytes().unwrap()).unwrap(), found.model);
    }
}

#[test]
fn folds_of_many_classes_many_rows_and_threads() {
    let (values, _) = noisy(600, 3, 4);
    let label = |x: &[f64]| ["a", "b", "c"][(1..3).fold(0, |best, j| if x[j] > x[best] { j } else { best })];
    let labels: Vec<&str> = values.chunks(3).map(label).collect();
    let data = dense(&values, &labels);
    let fit = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| averaged(&data, &options("svm"), Some(150)))
    };
    let found = fit(1);
    assert_eq!((found.judged_rows, found.unseen.columns), (150, 3));
    assert!(accuracy(&found.model, &data) > 0.92, "{}", accuracy(&found.model, &data));
    assert!(found.model.to_bytes().unwrap() == fit(3).model.to_bytes().unwrap());
}

#[test]
fn what_moves_in_closed_form_is_averaged_so_and_all_of_two_classes_are_averaged() {
    let (values, labels) = noisy(40, 3, 1);
    let data = dense(&values, &labels);
    for machine in MACHINES {
        let form = machine.form(&check_parameters(machine, &[]).unwrap(), 1.0);
        let closed = form.is_some_and(|form| form.loss.leaves_out() && form.variance == 0.0);
        assert_eq!(machine.averaged_band().is_some(), closed, "{}", machine.name());
        let found = average(
            Examples::of(&data).unwrap(),
            None,
            &TrainOptions { machine, ..options("odm") },
            Default::default(),
            Default::default(),
        );
        match found {
            Ok(found) => assert!(form.is_some() && (found.unseen.by == UnseenBy::LeaveOneOut) == closed),
            Err(error) => {
                assert!(form.is_none(), "{}: {error}", machine.name());
                assert!(error.to_string().contains("each against all others"), "{error}");
            }
        }
    }
    let few = dense(&values[..30], &["a", "a", "a", "a", "b", "b", "b", "b", "b", "c"]);
    let alone =
        |machine| average(Examples::of(&few).unwrap(), None, &options(machine), Default::default(), Default::default());
    assert!(alone("odm").is_ok());
    assert!(alone("svm").is_err_and(|error| error.to_string().contains("c has 1")));
}

/// One kernel and one strength, through `train` alone: scores of rows left out by folds, and of all rows under the model of all.
fn point(data: &Dataset, machine: &'static str, kernel: Kernel, [ridge, size]: [f64; 2]) -> [Vec<f64>; 2] {
    let labels = data.labels.as_ref().unwrap();
    let m = data.rows.rows();
    let fit = |rows: &[usize]| {
        let share = rows.len() as f64 / m as f64;
        let c = if machine == "odm-l" { rows.len() as f64 } else { 1.0 } / ridge / size;
        let mut parameters = vec![("c", c)];
        if machine != "svm" {
            parameters.extend(["lambda1", "lambda2"].map(|name| (name, share / 32.0 / size)));
        }
        let part = Dataset::new("part", data.rows.select(rows), Some(labels.select(rows)));
        Ask { parameters, kernel, tol: 1e-10, ..ask(machine) }.fit(&part).0
    };
    let all: Vec<usize> = (0..m).collect();
    let mut unseen = vec![0.0; m];
    for test in folds(labels, 5, 0, 0) {
        let train: Vec<usize> = all.iter().copied().filter(|i| !test.contains(i)).collect();
        let scores = fit(&train).scores(&data.rows.select(&test)).unwrap();
        test.iter().zip(scores).for_each(|(&i, f)| unseen[i] = f);
    }
    [unseen, fit(&all).scores(&data.rows).unwrap()]
}

/// The slope of the least mean logistic loss with its small ridge, and the sum of that loss, by trisection.
fn slope(scores: &[f64], codes: &[u32]) -> (f64, f64) {
    let margins: Vec<f64> = scores.iter().zip(codes).map(|(f, &c)| if c == 1 { *f } else { -f }).collect();
    let m = margins.len() as f64;
    let size = (margins.iter().map(|g| g * g).sum::<f64>() / m).sqrt();
    let loss = |t: f64| margins.iter().map(|g| (1.0 + (-t * g / size).exp()).ln()).sum::<f64>();
    let (mut low, mut high) = (0.0, 50.0);
    for _ in 0..200 {
        let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        let of = |t: f64| loss(t) / m + 0.5e-3 * t * t;
        if of(a) < of(b) { high = b } else { low = a }
    }
    (low / size, loss(low))
}

#[test]
fn an_average_from_folds_is_that_of_plain_fits() {
    let (values, labels) = moons(90, 14);
    let data = dense(&values, &labels);
    let codes = data.labels.as_ref().unwrap().codes();
    let m = labels.len() as f64;
    let mean = [0, 1].map(|j| values.iter().skip(j).step_by(2).sum::<f64>() / m);
    let variance = values.iter().map(|x| x * x).sum::<f64>() / m - mean.iter().map(|x| x * x).sum::<f64>();
    let mut kernels = vec![(Kernel::Linear, variance)];
    kernels.extend((-2..=2).map(|k| (Kernel::Rbf { gamma: 4f64.powi(-k) / (4.0 * variance) }, 1.0)));
    kernels.push((Kernel::Laplacian { gamma: 0.5 / average_distance(&data.rows, 0, true) }, 1.0));
    for machine in ["svm", "ldm", "odm-l"] {
        let options = TrainOptions { scaling: None, ..Ask { tol: 1e-10, ..ask(machine) }.options() };
        let how = AverageOptions { over: AverageOver::Values, ..AverageOptions::default() };
        let found = average(Examples::of(&data).unwrap(), None, &options, how, Default::default()).unwrap();
        let (mut points, mut least) = (Vec::new(), f64::INFINITY);
        for (k, &(kernel, size)) in kernels.iter().enumerate() {
            for j in 0..11 {
                let [unseen, scores] = point(&data, machine, kernel, [2f64.powf(4.0 - 1.5 * f64::from(j)), size]);
                let (slope, loss) = slope(&unseen, codes);
                least = least.min(loss);
                points.push((k, loss, slope, scores));
            }
        }
        let weight = |loss: f64| (-(loss - least) / 3.0).exp();
        let of = |k: usize, from: f64| -> f64 {
            points.iter().filter(|p| p.0 == k && weight(p.1) >= from).map(|p| weight(p.1)).sum()
        };
        let all: f64 = (0..7).map(|k| of(k, 0.0)).sum::<f64>();
        let stay: Vec<usize> = (0..7).filter(|&k| of(k, 0.0) / all >= 0.5 / 7.0).collect();
        let sum: f64 = stay.iter().map(|&k| of(k, 1e-3)).sum::<f64>();
        let kept = found.model.average.as_ref().unwrap();
        assert_eq!(kept.kernels.len(), stay.len(), "{machine}");
        for &k in &stay {
            let near = |other: &Kernel| {
                other.name() == kernels[k].0.name() && (gamma(*other) - gamma(kernels[k].0)).abs() < 1e-9
            };
            let found = kept.kernels.iter().find(|found| near(&found.kernel)).unwrap().weight;
            assert!(
                (found - of(k, 1e-3) / sum).abs() < 1e-5,
                "{machine} {:?}: {found} {}",
                kernels[k].0,
                of(k, 1e-3) / sum
            );
        }
        let mut expected = vec![0.0; labels.len()];
        for (_, loss, slope, scores) in points.iter().filter(|p| stay.contains(&p.0) && weight(p.1) >= 1e-3) {
            expected.iter_mut().zip(scores).for_each(|(f, x)| *f += weight(*loss) / sum * slope * x);
        }
        let apart = furthest(&found.model.scores(&data.rows).unwrap(), &expected);
        assert!(apart < 1e-4, "{machine}: {apart}");
    }
}

fn gamma(kernel: Kernel) -> f64 {
    match kernel {
        Kernel::Rbf { gamma } | Kernel::Laplacian { gamma } => gamma,
        _ => 0.0,
    }
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
