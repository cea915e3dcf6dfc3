//! The second opinion: it agrees with what the solvers claim on small problems of every kind, computes what a pencil does,
//! and agrees with no model that was tampered with and no other rows.

use widemargin::control::Control;
use widemargin::data::Examples;
use widemargin::data::{Csr, Dataset, Dense, Labels, Matrix, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, SolverChoice, Value, check_parameters, machine};
use widemargin::model::{DualKept, Model, Scorer};
use widemargin::multiclass::Multiclass;
use widemargin::random::Random;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};
use widemargin::verify::{Verification, fingerprint, verify};
use widemargin::{problem::StopReason, solver::Settings};

/// Overlapping clouds, one a class.
fn clouds(m: usize, classes: usize, seed: u64) -> Dataset {
    let mut random = Random::new(seed, 0);
    let d = 3;
    let codes: Vec<usize> = (0..m).map(|i| (i * 7 + i / 5) % classes).collect();
    let values: Vec<f64> = (0..m)
        .flat_map(|i| {
            let centre = [codes[i] as f64, -(codes[i] as f64), (codes[i] * codes[i]) as f64 * 0.5];
            centre.map(|c| c + 0.8 * random.normal())
        })
        .collect();
    let labels: Vec<String> = codes.iter().map(|c| format!("c{c}")).collect();
    Dataset::new("clouds", Matrix::DenseF64(Dense::new(m, d, values).unwrap()), Some(Labels::new(&labels)))
}

fn options(name: &str, given: &[(&str, &str)], kernel: Kernel, bias: Bias) -> TrainOptions {
    let machine = machine(name).unwrap();
    let given: Vec<(String, Value)> = given.iter().map(|(n, v)| (n.to_string(), Value::from(*v))).collect();
    TrainOptions {
        machine,
        parameters: check_parameters(machine, &given).unwrap(),
        kernel,
        gamma: Gamma::Value(0.4),
        approx: None,
        bias,
        scaling: None,
        class_weight: ClassWeight::Equal,
        multiclass: None,
        solver: SolverChoice::Auto,
        settings: Settings::default(),
    }
}

fn checked(model: &Model, data: &Dataset, weights: Option<&[f64]>) -> Verification {
    verify(model, Examples::of(data).unwrap(), weights, Control::default()).unwrap()
}

fn kernels() -> [Kernel; 4] {
    let gamma = 1.0;
    [Kernel::Linear, Kernel::Rbf { gamma }, Kernel::Poly { gamma, degree: 2, coef0: 1.0 }, Kernel::Laplacian { gamma }]
}

const BIASES: [Bias; 3] = [Bias::Free, Bias::None, Bias::Feature(1.5)];

/// Weights of rows, some of them 0.
fn weights(m: usize) -> Vec<f64> {
    (0..m).map(|i| [1.0, 2.0, 0.0, 0.5, 1.0][i % 5]).collect()
}

fn assert_agrees(data: &Dataset, weights: Option<&[f64]>, options: &TrainOptions, what: &str) {
    let (model, outcome) = train(data, weights, options, Control::default()).unwrap();
    let model = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let found = checked(&model, data, weights);
    assert_eq!(found.agrees, Some(true), "{what}: {:?} {found:?}", outcome.solver);
    assert!(found.gap.is_some() && found.objective.is_some() && found.dual_objective.is_some());
}

#[test]
fn agrees_with_two_class_machines() {
    let data = clouds(60, 2, 1);
    let weights = weights(60);
    for name in ["svm", "l2svm", "lssvm", "svr", "odm", "ldm", "odm-l", "mamc"] {
        for kernel in kernels() {
            for bias in BIASES {
                let mut options = options(name, &[], kernel, bias);
                let what = format!("{name} {kernel:?} {bias:?}");
                assert_agrees(&data, None, &options, &what);
                options.class_weight = ClassWeight::Balanced;
                options.scaling = Some(ScalingKind::Standard);
                assert_agrees(&data, Some(&weights), &options, &format!("{what} weighted"));
            }
        }
    }
}

#[test]
fn agrees_with_many_class_machines() {
    let data = clouds(60, 3, 2);
    let weights = weights(60);
    for (name, given) in [("mcsvm", ("loss", "cs")), ("mcsvm", ("loss", "ww")), ("mcodm", ("theta", "0.2"))] {
        for kernel in kernels() {
            for bias in BIASES {
                let options = options(name, &[given], kernel, bias);
                let what = format!("{name} {given:?} {kernel:?} {bias:?}");
                assert_agrees(&data, None, &options, &what);
                assert_agrees(&data, Some(&weights), &options, &format!("{what} weighted"));
            }
        }
    }
}

#[test]
fn agrees_through_wrappers() {
    let data = clouds(60, 3, 3);
    let weights = weights(60);
    for name in ["svm", "odm", "ldm", "mcsvm", "mcodm", "mamc"] {
        for mode in [Multiclass::Ova, Multiclass::Ovo, Multiclass::Ecoc] {
            for kernel in &kernels()[..2] {
                for bias in BIASES {
                    let mut options = options(name, &[], *kernel, bias);
                    options.multiclass = Some(mode);
                    assert_agrees(&data, Some(&weights), &options, &format!("{name} {mode:?} {kernel:?} {bias:?}"));
                }
            }
        }
    }
}

#[test]
fn agrees_with_landmarks_and_looser_tolerances() {
    let (two, three) = (clouds(150, 2, 4), clouds(150, 3, 5));
    for bias in BIASES {
        for kernel in &kernels()[1..] {
            for (name, data) in [("svm", &two), ("odm", &two), ("ldm", &two), ("mcsvm", &three), ("mcodm", &three)] {
                let mut options = options(name, &[], *kernel, bias);
                options.approx = Some(9);
                assert_agrees(data, None, &options, &format!("{name} {kernel:?} {bias:?} landmarks"));
                options.approx = None;
                // Kernel LDM hands its dual point over in another split of the variables.
                if name != "ldm" {
                    assert_agrees(data, None, &options, &format!("{name} {kernel:?} {bias:?} loose"));
                }
            }
        }
    }
}

/// Machines whose dual point is a distribution over the rows.
#[test]
fn agrees_with_machines_about_hulls() {
    let (two, three) = (clouds(60, 2, 21), clouds(60, 3, 22));
    let weights = weights(60);
    for (name, given) in [("km-omd", [("lambda", "0")]), ("km-omd", [("lambda", "0.3")]), ("fmm", [("rounds", "50")])] {
        for kernel in kernels() {
            for bias in BIASES {
                let mut options = options(name, &given, kernel, bias);
                let what = format!("{name} {given:?} {kernel:?} {bias:?}");
                assert_agrees(&two, None, &options, &what);
                assert_agrees(&three, Some(&weights), &options, &format!("{what} of three classes"));
                if kernel != Kernel::Linear {
                    options.approx = Some(9);
                    assert_agrees(&two, Some(&weights), &options, &format!("{what} landmarks"));
                }
            }
        }
    }
}

#[test]
fn tampered_hulls_do_not_agree() {
    let data = clouds(60, 2, 23);
    for (name, kernel) in
        [("km-omd", Kernel::Linear), ("km-omd", kernels()[1]), ("fmm", Kernel::Linear), ("fmm", kernels()[1])]
    {
        let (model, _) = train(&data, None, &options(name, &[], kernel, Bias::None), Control::default()).unwrap();
        assert_eq!(checked(&model, &data, None).agrees, Some(true), "{name}");
        let mut worse = model.clone();
        let (Scorer::Linear { weights: vectors, .. } | Scorer::Kernel { coefficients: vectors, .. }) =
            &mut worse.scorer;
        vectors[0].iter_mut().for_each(|v| *v = -*v);
        assert_eq!(checked(&worse, &data, None).agrees, Some(false), "{name} {kernel:?}: another score function");
        let mut proud = model.clone();
        let dual = proud.certificate.dual_objective.unwrap();
        proud.certificate.dual_objective = Some(dual + 0.5 * dual.abs());
        assert_eq!(checked(&proud, &data, None).agrees, Some(false), "{name} {kernel:?}: a bound out of thin air");
        if let Some(dual) = model.dual.clone() {
            let mut moved = model.clone();
            let mut other = dual;
            other[0].swap(0, 30);
            other[0].iter_mut().take(20).for_each(|q| *q *= 0.5);
            moved.dual = Some(other);
            assert_eq!(checked(&moved, &data, None).agrees, Some(false), "{name} {kernel:?}: another dual point");
        }
    }
}

#[test]
fn numbers_are_readable() {
    let cases = [
        (36.0, "36.00000000"),
        (0.0, "0"),
        (-1234567.25, "-1234567.250"),
        (1.5e-7, "1.500000000e-7"),
        (2e12, "2.000000000e12"),
    ];
    for (number, text) in cases {
        assert_eq!(widemargin::verify::readable(number), text);
    }
}

#[test]
fn rows_may_be_stored_in_any_way() {
    let data = clouds(40, 2, 6);
    let Matrix::DenseF64(dense) = &data.rows else { unreachable!() };
    let single: Vec<f32> = dense.values().iter().map(|v| (v * 8.0).round() as f32 / 8.0).collect();
    let double: Vec<f64> = single.iter().map(|v| f64::from(*v)).collect();
    let stored: Vec<(usize, usize)> =
        (0..40).flat_map(|i| (0..3).map(move |j| (i, j))).filter(|(i, j)| double[i * 3 + j] != 0.0).collect();
    let offsets: Vec<u64> = (0..=40).map(|i| stored.iter().filter(|s| s.0 < i).count() as u64).collect();
    let columns: Vec<u32> = stored.iter().map(|s| s.1 as u32).collect();
    let values: Vec<f64> = stored.iter().map(|(i, j)| double[i * 3 + j]).collect();
    let as_rows = |rows| Dataset { rows, ..data.clone() };
    let forms = [
        as_rows(Matrix::DenseF64(Dense::new(40, 3, double).unwrap())),
        as_rows(Matrix::DenseF32(Dense::new(40, 3, single).unwrap())),
        as_rows(Matrix::SparseF64(Csr::new(3, offsets, columns, values).unwrap())),
    ];
    let print = |d: &Dataset| fingerprint(&d.rows, d.labels.as_ref().unwrap(), &[1.0; 40]);
    assert!(forms.iter().all(|d| print(d) == print(&forms[0])));
    assert_ne!(print(&data), print(&forms[0]));
    for kernel in kernels() {
        let options = options("svm", &[], kernel, Bias::Free);
        for (trained, given) in [(0, 2), (2, 1), (1, 0)] {
            let (model, _) = train(&forms[trained], None, &options, Control::default()).unwrap();
            assert_eq!(checked(&model, &forms[given], None).agrees, Some(true));
        }
    }
}

/// `x = ±1`, no intercept, `min ½w² + Σ max(0, 1 − γ)`.
fn pencil() -> (Dataset, Model) {
    let rows = Matrix::DenseF64(Dense::new(2, 1, vec![1.0, -1.0]).unwrap());
    let data = Dataset::new("two rows", rows, Some(Labels::new(&["1", "-1"])));
    let (model, _) = train(&data, None, &options("svm", &[], Kernel::Linear, Bias::None), Control::default()).unwrap();
    (data, model)
}

#[test]
fn a_problem_solved_by_hand() {
    let (data, mut model) = pencil();
    let found = checked(&model, &data, None);
    // The optimum is w = 1 with both rows at the margin.
    assert!((found.objective.unwrap() - 0.5).abs() < 1e-9 && (found.dual_objective.unwrap() - 0.5).abs() < 1e-9);
    // Any point has its gap: w = 0.8 costs 0.32 + 2 · 0.2, and a = (0.3, 0.2) bounds by 0.5 − ½ · 0.25.
    model.scorer = Scorer::Linear { weights: vec![vec![0.8]], intercepts: vec![0.0] };
    model.dual = Some(vec![vec![0.3, 0.2]]);
    model.certificate.dual = Some(DualKept::Variables);
    model.certificate.stop = StopReason::Iterations;
    (model.certificate.objective, model.certificate.dual_objective) = (Some(0.72), Some(0.375));
    model.certificate.gap = Some((0.72 - 0.375) / 0.72);
    let found = checked(&model, &data, None);
    assert_eq!(found.agrees, Some(true), "{found:?}");
    assert!((found.objective.unwrap() - 0.72).abs() < 1e-14);
    assert!((found.dual_objective.unwrap() - 0.375).abs() < 1e-14);
    // A dual variable beyond C = 1 counts as C.
    model.dual = Some(vec![vec![7.0, 0.2]]);
    let found = checked(&model, &data, None);
    assert!((found.dual_objective.unwrap() - (1.2 - 0.72)).abs() < 1e-14);
    // Who claims to have converged with such a gap does not agree.
    model.dual = Some(vec![vec![0.3, 0.2]]);
    model.certificate.stop = StopReason::Gap;
    assert_eq!(checked(&model, &data, None).agrees, Some(false));
}

/// Primal and dual of a linear LDM with an appended feature, as the formulas say.
#[test]
fn the_formulas_with_variance_and_weights() {
    let data = clouds(30, 2, 7);
    let weights: Vec<f64> = (0..30).map(|i| 0.5 + f64::from(i % 3)).collect();
    let b_feature = 2.0;
    let parameters = [("lambda1", "3"), ("lambda2", "0.7"), ("c", "0.8")];
    let options = options("ldm", &parameters, Kernel::Linear, Bias::Feature(b_feature));
    let (mut model, _) = train(&data, Some(&weights), &options, Control::default()).unwrap();
    let (w, b) = (vec![0.3, -0.4, 0.1], 0.25);
    model.scorer = Scorer::Linear { weights: vec![w.clone()], intercepts: vec![b] };
    let v: Vec<f64> =
        (0..30).map(|i| weights[i] * (0.8 * (i % 4) as f64 / 3.0 + 0.7 / weights.iter().sum::<f64>())).collect();
    model.dual = Some(vec![v.clone()]);
    let found = checked(&model, &data, Some(&weights));
    let Matrix::DenseF64(x) = &data.rows else { unreachable!() };
    let codes = data.labels.as_ref().unwrap().codes();
    let y: Vec<f64> = codes.iter().map(|&c| if c == 1 { 1.0 } else { -1.0 }).collect();
    let m: f64 = weights.iter().sum();
    let gamma: Vec<f64> =
        (0..30).map(|i| y[i] * (x.row(i).iter().zip(&w).map(|(x, w)| x * w).sum::<f64>() + b)).collect();
    let mean = gamma.iter().zip(&weights).map(|(g, s)| g * s).sum::<f64>() / m;
    let variance = gamma.iter().zip(&weights).map(|(g, s)| s * (g - mean).powi(2)).sum::<f64>() / m;
    let hinge = gamma.iter().zip(&weights).map(|(g, s)| s * (1.0 - g).max(0.0)).sum::<f64>();
    let norm2 = w.iter().map(|w| w * w).sum::<f64>() + (b / b_feature).powi(2);
    let primal = 0.5 * norm2 + 2.0 * 3.0 * variance - 0.7 * mean + 0.8 * hinge;
    assert!((found.objective.unwrap() - primal).abs() < 1e-12 * primal.abs());
    let kappa = 2.0 * 3.0 / m;
    let u: Vec<f64> = (0..30).map(|i| -2.0 * kappa * weights[i] * (gamma[i] - mean)).collect();
    let a: Vec<f64> = (0..30).map(|i| u[i] + v[i]).collect();
    let mut wa = [0.0; 4];
    for i in 0..30 {
        x.row(i).iter().chain([&b_feature]).zip(&mut wa).for_each(|(x, wa)| *wa += a[i] * y[i] * x);
    }
    // φ*(q) = q + λ2/m for the hinge with −λ2/m γ.
    let conjugates: f64 = (0..30).map(|i| weights[i] * (-v[i] / weights[i] + 0.7 / m)).sum();
    let spread: f64 = (0..30).map(|i| u[i] * u[i] / (4.0 * kappa * weights[i])).sum();
    let dual = -0.5 * wa.iter().map(|w| w * w).sum::<f64>() - conjugates - spread;
    assert!((found.dual_objective.unwrap() - dual).abs() < 1e-11 * dual.abs(), "{found:?} {dual}");
}

/// A model, its rows, and how its file was changed.
type Change = (&'static str, fn(&mut Model));

#[test]
fn tampered_models_do_not_agree() {
    let (two, three) = (clouds(60, 2, 8), clouds(60, 3, 9));
    let changes: [Change; 9] = [
        ("a weight or coefficient", |model| match &mut model.scorer {
            Scorer::Linear { weights, .. } => weights[0][1] += 0.05,
            Scorer::Kernel { coefficients, .. } => coefficients[0][3] = 1.3 * coefficients[0][3] + 0.05,
        }),
        ("an intercept", |model| match &mut model.scorer {
            Scorer::Linear { intercepts, .. } | Scorer::Kernel { intercepts, .. } => intercepts[0] += 0.05,
        }),
        ("the objective", |model| *model.certificate.objective.as_mut().unwrap() *= 1.0 + 1e-5),
        ("a higher bound", |model| *model.certificate.dual_objective.as_mut().unwrap() *= 1.0 + 1e-5),
        ("a lower bound", |model| *model.certificate.dual_objective.as_mut().unwrap() *= 1.0 - 1e-4),
        ("the dual point", |model| match &mut model.dual {
            Some(dual) => dual.iter_mut().for_each(|v| v.iter_mut().for_each(|v| *v *= 0.9)),
            None => model.certificate.dual = Some(DualKept::Slopes),
        }),
        ("a parameter", |model| {
            let name = ["c", "lambda", "c1"].into_iter().find(|n| model.parameters.get(n).is_some()).unwrap();
            let value = model.parameters.number(name);
            model.parameters.set(name, 1.01 * value);
        }),
        ("a class weight", |model| model.origin.as_mut().unwrap().class_weights[0].1 = 1.01),
        ("the fingerprint", |model| model.origin.as_mut().unwrap().fingerprint = "0123456789abcdef".into()),
    ];
    for (name, data) in
        [("svm", &two), ("ldm", &two), ("odm", &two), ("svr", &two), ("mcsvm", &three), ("mcodm", &three)]
    {
        for kernel in &kernels()[..2] {
            for bias in BIASES {
                let (model, _) = train(data, None, &options(name, &[], *kernel, bias), Control::default()).unwrap();
                assert_eq!(checked(&model, data, None).agrees, Some(true));
                for (what, change) in changes {
                    let mut changed = model.clone();
                    change(&mut changed);
                    // A smooth loss's slopes are as good a dual point as the one that is kept.
                    let same = name == "odm" && changed.certificate.dual == Some(DualKept::Slopes);
                    let found = checked(&changed, data, None);
                    assert!(same || found.agrees == Some(false), "{name} {kernel:?} {bias:?}, {what}: {found:?}");
                    assert!(same || found.reason.is_some());
                }
            }
        }
    }
}

#[test]
fn other_rows_and_weights_do_not_agree() {
    let data = clouds(50, 2, 10);
    let row_weights = weights(50);
    for kernel in &kernels()[..2] {
        let options = options("svm", &[], *kernel, Bias::Free);
        let (plain, _) = train(&data, None, &options, Control::default()).unwrap();
        let (weighted, _) = train(&data, Some(&row_weights), &options, Control::default()).unwrap();
        let no = |model: &Model, data: &Dataset, weights: Option<&[f64]>, words: &str| {
            let found = checked(model, data, weights);
            assert_eq!(found.agrees, Some(false));
            let reason = found.reason.unwrap();
            assert!(reason.starts_with("these are not the rows the model was trained on") && reason.contains(words));
        };
        assert_eq!(checked(&plain, &data, Some(&[1.0; 50])).agrees, Some(true));
        no(&plain, &data, Some(&row_weights), "without row weights");
        no(&weighted, &data, None, "with row weights");
        no(&weighted, &data, Some(&[2.0; 50]), "differ");
        no(&plain, &clouds(50, 2, 11), None, "differ");
        no(&plain, &clouds(51, 2, 10), None, "50 rows");
        let labels = data.labels.as_ref().unwrap();
        let mut codes = labels.codes().to_vec();
        codes[7] = 1 - codes[7];
        let relabelled = Dataset { labels: Labels::coded(labels.names().to_vec(), codes), ..data.clone() };
        no(&plain, &relabelled, None, "differ");
    }
}

#[test]
fn support_rows_must_be_rows_of_the_data() {
    let data = clouds(50, 2, 12);
    let options = options("svm", &[], Kernel::Rbf { gamma: 1.0 }, Bias::Free);
    let (model, _) = train(&data, None, &options, Control::default()).unwrap();
    let mut swapped = model.clone();
    swapped.support_rows.as_mut().unwrap().swap(0, 1);
    let found = checked(&swapped, &data, None);
    assert!(found.agrees == Some(false) && found.reason.unwrap().contains("support row 1 is not row"));
    let mut twice = model.clone();
    let rows = twice.support_rows.as_mut().unwrap();
    rows[0] = rows[1];
    assert_eq!(checked(&twice, &data, None).agrees, Some(false));
}

/// Where the objective has no minimum the bound is the trivial one, which needs no dual point; any other does.
#[test]
fn a_problem_without_minimum_claims_no_bound() {
    let data = clouds(60, 2, 16);
    let given = [("lambda1", "0"), ("lambda2", "30"), ("c", "0.004")];
    for kernel in [Kernel::Linear, Kernel::Rbf { gamma: 0.5 }] {
        let (model, outcome) =
            train(&data, None, &options("odm-l", &given, kernel, Bias::Free), Control::default()).unwrap();
        assert_eq!(outcome.stop, StopReason::Unbounded);
        let found = checked(&model, &data, None);
        assert_eq!((found.agrees, found.gap), (Some(true), None), "{:?}", found.reason);
        let mut bold = model.clone();
        bold.certificate.dual_objective = Some(-1e9);
        assert_eq!(checked(&bold, &data, None).agrees, Some(false));
        let mut proud = model.clone();
        (proud.certificate.dual_objective, proud.certificate.gap) = (None, None);
        proud.certificate.stop = StopReason::Gap;
        assert_eq!(checked(&proud, &data, None).agrees, Some(false));
    }
}

#[test]
fn what_has_no_gap_says_so() {
    let (two, three) = (clouds(50, 2, 13), clouds(50, 3, 14));
    for (name, kernel) in
        [("msvmav", Kernel::Linear), ("lda", Kernel::Linear), ("svm", Kernel::Sigmoid { gamma: 0.1, coef0: 0.0 })]
    {
        let (model, _) = train(&two, None, &options(name, &[], kernel, Bias::None), Control::default()).unwrap();
        let found = checked(&model, &two, None);
        assert!(found.agrees.is_none() && found.gap.is_none() && found.reason.is_some());
        // Other rows are noticed all the same.
        assert_eq!(checked(&model, &clouds(50, 2, 15), None).agrees, Some(false));
    }
    let paper = options("mcodm", &[("relaxation", "paper")], Kernel::Linear, Bias::None);
    let (mut model, _) = train(&three, None, &paper, Control::default()).unwrap();
    let found = checked(&model, &three, None);
    assert!(found.agrees.is_none() && found.gap.is_none() && found.objective.is_some(), "{found:?}");
    *model.certificate.objective.as_mut().unwrap() += 1.0;
    assert_eq!(checked(&model, &three, None).agrees, Some(false));
    let wrapped = TrainOptions { multiclass: Some(Multiclass::Ova), ..paper };
    let (model, _) = train(&three, None, &wrapped, Control::default()).unwrap();
    let found = checked(&model, &three, None);
    assert!(found.agrees.is_none() && found.reason.is_some(), "{found:?}");
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let data = clouds(150, 3, 16);
    for kernel in &kernels()[..2] {
        let (model, _) = train(&data, None, &options("mcodm", &[], *kernel, Bias::Free), Control::default()).unwrap();
        let of = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let found = pool.install(|| checked(&model, &data, None));
            [found.objective, found.dual_objective, found.gap].map(|x| x.unwrap().to_bits())
        };
        assert_eq!(of(1), of(3));
    }
}
