//! Random problems: rows, labels, weights and options, pleasant and unpleasant.

use crate::draw::Draw;
use widemargin::data::{Csr, Dataset, Dense, Labels, Matrix, ScalingKind};
use widemargin::kernel::Kernel;
use widemargin::machine::{
    Bias, Classes, Domain, MACHINES, Machine, Parameter, SolverChoice, Value, check_parameters, machine,
};
use widemargin::multiclass::Multiclass;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions};

/// A problem to pose.
pub struct Problem {
    /// Rows and labels.
    pub data: Dataset,
    /// Row weights.
    pub weights: Option<Vec<f64>>,
    /// Everything else.
    pub options: TrainOptions,
    /// The machine's parameters that are given.
    pub given: Vec<(String, Value)>,
    /// What the rows are like, in words.
    pub words: Vec<&'static str>,
    /// Whether nothing about it excuses a refusal.
    pub sane: bool,
}

/// Values of one problem before they are stored, row after row.
struct Values {
    rows: usize,
    cols: usize,
    numbers: Vec<f64>,
    codes: Vec<usize>,
    words: Vec<&'static str>,
}

/// The problem of a seed.
pub fn problem(seed: u64) -> Result<Problem, String> {
    let draw = &mut Draw::new(seed, 1);
    let machine = choose_machine(draw);
    let classes = if draw.chance(0.6) { 2 } else { draw.between(3, 5) };
    let mut values = values(draw, classes);
    spoil(draw, &mut values);
    every_class(&mut values, classes);
    let kernel = kernel(draw, machine);
    let gamma = gamma(draw, &values);
    let given = parameters(draw, machine);
    let parameters = check_parameters(machine, &given).map_err(|error| error.to_string())?;
    let names = names(draw, classes);
    let (weights, class_weight) = (row_weights(draw, &values), class_weights(draw, &names));
    let (solver, multiclass) = (solver(draw, machine, kernel), multiclass(draw, machine));
    let scaling = draw.weighted(&[
        (0.64, None),
        (0.12, Some(ScalingKind::MinMax)),
        (0.12, Some(ScalingKind::MaxAbs)),
        (0.12, Some(ScalingKind::Standard)),
    ]);
    let approx = (kernel != Kernel::Linear && draw.chance(0.1)).then(|| draw.between(1, values.rows + 5));
    let bias =
        draw.weighted(&[(0.5, Bias::Free), (0.2, Bias::None), (0.15, Bias::Feature(1.0)), (0.15, Bias::Feature(0.0))]);
    let bias = if bias == Bias::Feature(0.0) { Bias::Feature(draw.power(-3.0, 3.0)) } else { bias };
    let settings = Settings {
        tol: draw.weighted(&[(0.4, 1e-3), (0.2, 1e-6), (0.1, 1e-2), (0.1, 1e-9), (0.1, 1e-4), (0.1, 1e-5)]),
        max_iter: draw.chance(0.1).then(|| draw.between(1, 30)),
        memory: draw.weighted(&[(0.9, 2 << 30), (0.1, 1 << 16)]),
        seed: draw.below(3) as u64,
        ..Settings::default()
    };
    let options = TrainOptions {
        machine,
        parameters,
        kernel,
        gamma,
        approx,
        bias,
        scaling,
        class_weight,
        multiclass,
        solver,
        settings,
    };
    let (rows, labels) = (store(draw, &mut values), Labels::new(&text_of(&names, &values.codes)));
    let sane = is_sane(&values, &options);
    let data = Dataset::new(format!("case {seed}"), rows, Some(labels));
    Ok(Problem { data, weights, options, given, words: values.words, sane })
}

/// The convex family, of which a certificate is demanded, more often than the rest.
const CONVEX: [&str; 8] = ["odm", "ldm", "odm-l", "svm", "l2svm", "lssvm", "svr", "huber-svm"];

/// Whether a machine is a member of the convex family.
pub fn is_convex(machine: &Machine) -> bool {
    CONVEX.contains(&machine.name())
}

fn choose_machine(draw: &mut Draw) -> &'static Machine {
    if draw.chance(0.6) {
        let name = draw.pick(&CONVEX);
        return machine(name).unwrap_or(MACHINES[0]);
    }
    let others: Vec<&Machine> = MACHINES.iter().copied().filter(|m| !is_convex(m)).collect();
    others[draw.below(others.len())]
}

fn values(draw: &mut Draw, classes: usize) -> Values {
    let size = draw.weighted(&[(0.2, (2, 8)), (0.35, (8, 60)), (0.3, (60, 150)), (0.15, (150, 300))]);
    let rows = draw.between(size.0, size.1).max(classes);
    let cols = match draw.weighted(&[(0.02, 0), (0.68, 1), (0.3, 2)]) {
        0 => 0,
        1 => draw.pick(&[1, 2, 3, 5, 10, 20]),
        _ => draw.pick(&[30, 60, 150, 400]),
    };
    let kind = draw.weighted(&[
        (0.25, "normal"),
        (0.2, "uniform"),
        (0.15, "sparse"),
        (0.12, "whole numbers"),
        (0.12, "separable"),
        (0.1, "clusters"),
        (0.03, "identical rows"),
        (0.03, "noise labels"),
    ]);
    let whole: Vec<f64> = (0..cols).map(|_| draw.normal()).collect();
    let centres: Vec<f64> = (0..cols * classes).map(|_| 3.0 * draw.normal()).collect();
    let mut numbers = Vec::with_capacity(rows * cols);
    for i in 0..rows {
        for j in 0..cols {
            numbers.push(match kind {
                "uniform" => draw.uniform(0.0, 1.0),
                "sparse" if draw.chance(0.9) => 0.0,
                "whole numbers" => draw.below(4) as f64,
                "clusters" => centres[(i % classes) * cols + j] + draw.normal(),
                "identical rows" => whole[j],
                _ => draw.normal(),
            });
        }
    }
    let noise = if kind == "separable" { 0.0 } else { draw.pick(&[0.1, 1.0, 3.0]) * (cols.max(1) as f64).sqrt() };
    let plain = matches!(kind, "identical rows" | "noise labels") || cols == 0;
    let direction: Vec<f64> = (0..cols * classes).map(|_| draw.normal()).collect();
    // A class whose offset is low has few rows.
    let offsets: Vec<f64> = (0..classes).map(|_| if draw.chance(0.2) { -3.0 } else { 0.0 }).collect();
    let mut codes = Vec::with_capacity(rows);
    for i in 0..rows {
        let score = |class: usize, draw: &mut Draw| {
            let w = &direction[class * cols..(class + 1) * cols];
            let product: f64 = w.iter().zip(&numbers[i * cols..(i + 1) * cols]).map(|(w, x)| w * x).sum();
            product + noise * draw.normal() + offsets[class] * (cols.max(1) as f64).sqrt()
        };
        codes.push(match kind {
            "clusters" => i % classes,
            _ if plain => draw.below(classes),
            _ => {
                let scores: Vec<f64> = (0..classes).map(|class| score(class, draw)).collect();
                (0..classes).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0)
            }
        });
    }
    Values { rows, cols, numbers, codes, words: vec![kind] }
}

/// Duplicates, constant columns, features of unlike scales, offsets, zero rows, and numbers beyond reason.
fn spoil(draw: &mut Draw, values: &mut Values) {
    let (rows, cols) = (values.rows, values.cols);
    if draw.chance(0.15) && rows >= 4 {
        let half = rows / 2;
        values.numbers.copy_within(0..half * cols, half * cols);
        if draw.chance(0.5) {
            values.codes.copy_within(0..half, half);
        }
        values.words.push("duplicates");
    }
    if draw.chance(0.15) && cols > 0 {
        let (column, value) = (draw.below(cols), draw.pick(&[0.0, 1.0, 1e6]));
        (0..rows).for_each(|i| values.numbers[i * cols + column] = value);
        values.words.push("constant column");
    }
    if draw.chance(0.12) {
        let scales: Vec<f64> = (0..cols).map(|_| draw.power(-8.0, 8.0)).collect();
        values.numbers.iter_mut().enumerate().for_each(|(at, v)| *v *= scales[at % cols]);
        values.words.push("unlike scales");
    } else if draw.chance(0.12) {
        let scale = draw.pick(&[1e-8, 1e-4, 1e4, 1e8]);
        values.numbers.iter_mut().for_each(|v| *v *= scale);
        values.words.push("scaled");
    }
    if draw.chance(0.08) {
        for i in 0..rows {
            if draw.chance(0.3) {
                values.numbers[i * cols..(i + 1) * cols].fill(0.0);
            }
        }
        values.words.push("zero rows");
    }
    if draw.chance(0.1) {
        let offset = draw.power(0.0, 5.0);
        values.numbers.iter_mut().for_each(|v| *v += offset);
        values.words.push("offset");
    }
    if draw.chance(0.02) {
        let scale = draw.power(-320.0, 160.0);
        values.numbers.iter_mut().for_each(|v| *v = (*v * scale).clamp(-1e300, 1e300));
        values.words.push("beyond reason");
    }
}

/// Every class has a row; now and then one of them exactly one.
fn every_class(values: &mut Values, classes: usize) {
    (0..classes).for_each(|class| values.codes[class] = class);
}

fn kernel(draw: &mut Draw, machine: &Machine) -> Kernel {
    let coef0 = draw.pick(&[0.0, 1.0, 0.1, 10.0]);
    let kernel = draw.weighted(&[
        (0.42, Kernel::Linear),
        (0.25, Kernel::Rbf { gamma: 1.0 }),
        (0.12, Kernel::Poly { gamma: 1.0, degree: 1, coef0 }),
        (0.13, Kernel::Laplacian { gamma: 1.0 }),
        (0.08, Kernel::Sigmoid { gamma: 1.0, coef0: coef0 - 1.0 }),
    ]);
    match kernel {
        Kernel::Poly { gamma, coef0, .. } => Kernel::Poly { gamma, degree: draw.pick(&[1, 2, 3, 3, 5]), coef0 },
        // It knows no kernels; that it says so is worth a case now and then.
        _ if machine.name() == "mdo" && draw.chance(0.9) => Kernel::Linear,
        kernel => kernel,
    }
}

fn gamma(draw: &mut Draw, values: &Values) -> Gamma {
    match draw.below(4) {
        0 => Gamma::Scale,
        1 => Gamma::Auto,
        kind => {
            let width = if draw.chance(0.4) { draw.power(-6.0, 6.0) } else { draw.power(-2.0, 1.0) };
            let squares: f64 = values.numbers.iter().map(|v| v * v).sum::<f64>() / values.rows as f64;
            let sensible = kind == 2 && squares.is_finite() && squares > 1e-30;
            Gamma::Value((if sensible { width / squares } else { width }).clamp(1e-12, 1e12))
        }
    }
}

fn parameters(draw: &mut Draw, machine: &Machine) -> Vec<(String, Value)> {
    if draw.chance(0.3) {
        return Vec::new();
    }
    let wild = draw.chance(0.4);
    let other_notation = draw.chance(0.3);
    let is_other = |p: &Parameter| matches!(p.name, "lambda" | "mu" | "theta");
    let declared = machine.parameters().iter().filter(|p| machine.name() != "odm" || is_other(p) == other_notation);
    let mut value = |parameter: &Parameter| -> Value {
        let size = if wild { draw.power(-6.0, 8.0) } else { draw.power(-2.0, 4.0) };
        let share = draw.uniform(0.0, 1.0);
        match parameter.domain {
            Domain::Finite | Domain::Positive => size.into(),
            Domain::NonNegative => draw.weighted(&[(0.25, 0.0), (0.75, size / 100.0)]).into(),
            Domain::BelowOne => draw.pick(&[0.0, 1e-9, 0.9 * share, 0.999999, 0.5]).into(),
            Domain::Unit => draw.pick(&[0.0, 1.0, share, share, 1e-6]).into(),
            Domain::Count => draw.pick(&[1.0, 2.0, 5.0, 20.0, 100.0]).into(),
            Domain::Choice(words) => Value::Word(draw.pick(words).to_string()),
        }
    };
    declared.map(|parameter| (parameter.name.to_string(), value(parameter))).collect()
}

fn names(draw: &mut Draw, classes: usize) -> Vec<String> {
    let kind = draw.below(3);
    (0..classes)
        .map(|class| match kind {
            0 if classes == 2 => ["-1", "+1"][class].to_string(),
            1 => ["spam", "ham", "eggs", "tea", "é"][class].to_string(),
            _ => (class + 1).to_string(),
        })
        .collect()
}

fn text_of(names: &[String], codes: &[usize]) -> Vec<String> {
    codes.iter().map(|&code| names[code].clone()).collect()
}

fn row_weights(draw: &mut Draw, values: &Values) -> Option<Vec<f64>> {
    if !draw.chance(0.25) {
        return None;
    }
    let whole = draw.chance(0.5);
    let mut weight = |_| if whole { draw.below(3) as f64 } else { draw.power(-2.0, 2.0) };
    let mut weights: Vec<f64> = (0..values.rows).map(&mut weight).collect();
    // The first rows are one of each class.
    let classes = values.codes.iter().max().map_or(0, |most| most + 1);
    weights[..classes].iter_mut().for_each(|w| *w = w.max(1.0));
    Some(weights)
}

fn class_weights(draw: &mut Draw, names: &[String]) -> ClassWeight {
    match draw.below(10) {
        0 => ClassWeight::Balanced,
        1 => ClassWeight::ByLabel(names.iter().map(|name| (name.clone(), draw.power(-2.0, 2.0))).collect()),
        _ => ClassWeight::Equal,
    }
}

fn solver(draw: &mut Draw, machine: &Machine, kernel: Kernel) -> SolverChoice {
    use SolverChoice::{Asgd, Auto, Dcd, Newton, Svrg};
    let choice = draw.weighted(&[(0.55, Auto), (0.18, Newton), (0.18, Dcd), (0.05, Asgd), (0.04, Svrg)]);
    let linear_only = matches!(choice, Asgd | Svrg) && kernel != Kernel::Linear;
    if machine.uses().solvers.contains(&choice) && !linear_only { choice } else { Auto }
}

fn multiclass(draw: &mut Draw, machine: &Machine) -> Option<Multiclass> {
    let many = machine.classes() == Classes::Many;
    match draw.weighted(&[(0.4, 0), (0.2, 1), (0.2, 2), (0.2, 3)]) {
        0 if many && draw.chance(0.5) => Some(Multiclass::Own),
        0 => None,
        1 => Some(Multiclass::Ova),
        2 => Some(Multiclass::Ovo),
        _ => Some(Multiclass::Ecoc),
    }
}

/// Dense or sparse, single or double precision; values that single precision rounds are rounded.
fn store(draw: &mut Draw, values: &mut Values) -> Matrix<'static> {
    let (rows, cols) = (values.rows, values.cols);
    let single = draw.chance(0.3);
    if single {
        values.words.push("f32");
        let most = f64::from(f32::MAX);
        values.numbers.iter_mut().for_each(|v| *v = f64::from(v.clamp(-most, most) as f32));
    }
    if draw.chance(0.65) {
        let dense = Dense::new(rows, cols, values.numbers.clone());
        let of = |v: &f64| *v as f32;
        let singles = || Dense::new(rows, cols, values.numbers.iter().map(of).collect::<Vec<f32>>());
        let held = if single { singles().map(Matrix::DenseF32) } else { dense.map(Matrix::DenseF64) };
        if let Some(held) = held {
            return held;
        }
    }
    values.words.push("sparse storage");
    let (mut offsets, mut columns, mut numbers) = (vec![0u64], Vec::new(), Vec::new());
    for row in 0..rows {
        for column in 0..cols {
            let value = values.numbers[row * cols + column];
            if value != 0.0 {
                columns.push(column as u32);
                numbers.push(value);
            }
        }
        offsets.push(numbers.len() as u64);
    }
    let singles: Vec<f32> = numbers.iter().map(|v| *v as f32).collect();
    let held = if single {
        Csr::new(cols, offsets, columns, singles).map(Matrix::SparseF32)
    } else {
        Csr::new(cols, offsets, columns, numbers).map(Matrix::SparseF64)
    };
    held.expect("offsets and columns that rise")
}

/// Values up to a million, kernel values that stay numbers, and a machine of the convex family: nothing to refuse.
fn is_sane(values: &Values, options: &TrainOptions) -> bool {
    let largest = values.numbers.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
    let norm2 = largest * largest * values.cols as f64;
    let kernel = match (options.kernel, options.gamma) {
        (Kernel::Linear, _) => true,
        (Kernel::Sigmoid { .. }, _) => false,
        (Kernel::Poly { .. }, Gamma::Value(gamma)) => gamma * norm2 < 1e4,
        (Kernel::Poly { .. }, _) => largest <= 10.0,
        (Kernel::Rbf { .. } | Kernel::Laplacian { .. }, Gamma::Scale) => largest >= 1e-3,
        (Kernel::Rbf { .. } | Kernel::Laplacian { .. }, _) => true,
    };
    let usual = largest <= 1e6 && values.cols > 0 && options.multiclass != Some(Multiclass::Own);
    // The papers' stochastic solvers may run away, and Newton's method refuses what does not fit the memory.
    let solver = match options.solver {
        SolverChoice::Auto | SolverChoice::Dcd => true,
        SolverChoice::Newton => options.settings.memory > 1 << 20,
        SolverChoice::Asgd | SolverChoice::Svrg => false,
    };
    kernel && usual && solver && is_convex(options.machine) && options.approx.is_none()
}
