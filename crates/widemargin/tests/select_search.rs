//! Searching parameters: against searches made by hand, and against itself on other numbers of threads.

mod common;

use common::{Ask, ask, dense, noisy};
use std::sync::Mutex;
use widemargin::data::Examples;
use widemargin::data::{Csr, Dataset, Labels, Matrix, ScalingKind, folds, train_test};
use widemargin::kernel::Kernel;
use widemargin::machine::{Bias, Value, check_parameters};
use widemargin::random::Random;
use widemargin::select::{
    Finished, Grid, JudgedLine, Judges, Line, Log, Plan, Search, SearchRows, Select, Trial, Tuned, error, fingerprint,
    judge_lines, logistic_loss, tune,
};
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};
use widemargin::{Error, Result};

const RBF: Kernel = Kernel::Rbf { gamma: 0.3 };

fn options(machine: &'static str, kernel: Kernel) -> TrainOptions {
    Ask { kernel, ..ask(machine) }.options()
}

fn grid(text: &str) -> Plan {
    Plan::Grid(Grid::parse(text).unwrap())
}

fn run(data: &Dataset, options: &TrainOptions, plan: &Plan, select: Select) -> Tuned {
    let search = Search { plan, select: Some(select), folds: 3, gamma_given: true, ..Search::default() };
    tune(data, None, options, &search, Default::default()).unwrap()
}

fn data(m: usize) -> Dataset {
    let (values, labels) = noisy(m, 4, 11);
    dense(&values, &labels)
}

fn at(options: &TrainOptions, given: &[(&str, f64)]) -> TrainOptions {
    let given: Vec<_> = given.iter().map(|(k, v)| (k.to_string(), Value::from(*v))).collect();
    TrainOptions { parameters: check_parameters(options.machine, &given).unwrap(), ..options.clone() }
}

fn part(data: &Dataset, rows: &[usize]) -> Dataset {
    let labels: &Labels = data.labels.as_ref().unwrap();
    Dataset { rows: data.rows.select(rows), labels: Some(labels.select(rows)), ..data.clone() }
}

/// Mean error over three folds, by nothing but `train` and `predict`.
fn by_hand(data: &Dataset, options: &TrainOptions) -> f64 {
    let labels = data.labels.as_ref().unwrap();
    let m = labels.codes().len();
    let parts = folds(labels, 3, options.settings.seed, 0);
    let fold = |test: &Vec<usize>| {
        let rest: Vec<usize> = (0..m).filter(|i| !test.contains(i)).collect();
        let (model, _) = train(&part(data, &rest), None, options, Default::default()).unwrap();
        let test_data = part(data, test);
        let predicted = model.predict(&test_data.rows).unwrap();
        let truth = test_data.labels.unwrap();
        predicted.iter().zip(truth.codes()).filter(|(p, t)| p != t).count() as f64 / test.len() as f64
    };
    parts.iter().map(fold).sum::<f64>() / 3.0
}

#[test]
fn cross_validation_is_what_train_and_predict_give() {
    let data = data(90);
    for scaling in [None, Some(ScalingKind::MinMax), Some(ScalingKind::Standard)] {
        for (machine, kernel) in
            [("odm", Kernel::Linear), ("odm", RBF), ("svm", RBF), ("ldm", Kernel::Linear), ("lda", RBF)]
        {
            let options = TrainOptions { scaling, ..options(machine, kernel) };
            let (plan, name) = match machine {
                "odm" => (grid("c1=1;64,c2=4"), "c1"),
                "lda" => (grid("ridge=0.01;1"), "ridge"),
                _ => (grid("c=0.1;10"), "c"),
            };
            let tuned = run(&data, &options, &plan, Select::Cv);
            assert_eq!(tuned.trials.len(), 2);
            for trial in &tuned.trials {
                let mut given = vec![(name, trial.params.get(name).unwrap())];
                if machine == "odm" {
                    given.push(("c2", 4.0));
                }
                let expected = by_hand(&data, &at(&options, &given));
                assert!((trial.score.error - expected).abs() < 1e-12, "{machine} {kernel:?} {scaling:?}");
                assert_eq!(trial.score.folds.len(), 3);
            }
            assert_eq!(tuned.shared, machine != "lda");
        }
    }
}

#[test]
fn the_leave_one_out_loss_picks_what_brute_force_picks() {
    let data = data(300);
    for bias in [Bias::None, Bias::Free] {
        for kernel in [Kernel::Linear, RBF] {
            let options = TrainOptions { bias, ..options("odm", kernel) };
            let tuned = run(&data, &options, &grid("c1=1;16;256,c2=1;64,d=0;0.3"), Select::LooLoss);
            assert_eq!((tuned.trials.len(), tuned.fits), (12, 12));
            let mut best = f64::INFINITY;
            for trial in &tuned.trials {
                let [c1, c2, d] = ["c1", "c2", "d"].map(|name| trial.params.number(name));
                let (_, found) =
                    train(&data, None, &at(&options, &[("c1", c1), ("c2", c2), ("d", d)]), Default::default()).unwrap();
                let margins = found.loo_margins.unwrap();
                let loss = logistic_loss(&margins, &found.weights);
                assert!((trial.score.loss - loss).abs() < 1e-6, "{} {loss}", trial.score.loss);
                assert!((trial.score.error - error(&margins, &found.weights)).abs() < 1e-12);
                best = best.min(loss);
            }
            // Points that rounding cannot tell apart are equally good.
            assert!((tuned.best.score.loss - best).abs() < 1e-6);
            assert_eq!(tuned.model.parameters, tuned.best.params);
        }
    }
}

#[test]
fn rows_of_weight_zero_are_not_there() {
    let (data, options, plan) = (data(40), options("odm", RBF), grid("c1=4;64,c2=4"));
    let search = Search { plan: &plan, gamma_given: true, ..Search::default() };
    // Balanced classes are settled in each fold.
    let zero: Vec<f64> = (0..40).map(|i| if i < 35 { 1.0 } else { 0.0 }).collect();
    let balanced = TrainOptions { class_weight: ClassWeight::Balanced, ..options };
    let search = Search { select: Some(Select::Cv), ..search };
    let a = tune(&data, Some(&zero), &balanced, &search, Default::default()).unwrap();
    let b = tune(&part(&data, &(0..35).collect::<Vec<_>>()), None, &balanced, &search, Default::default()).unwrap();
    assert_eq!(a.trials, b.trials);
}

#[test]
fn scaling_never_sees_a_test_row() {
    // One row lies far out. Where it is tested, the scaling of the others must not know of it.
    let (mut values, labels) = noisy(60, 3, 4);
    values[7 * 3] = 1e6;
    let data = dense(&values, &labels);
    let options = TrainOptions { scaling: Some(ScalingKind::MinMax), ..options("svm", RBF) };
    let tuned = run(&data, &options, &grid("c=1;100"), Select::Cv);
    for trial in &tuned.trials {
        let expected = by_hand(&data, &at(&options, &[("c", trial.params.number("c"))]));
        assert!((trial.score.error - expected).abs() < 1e-12);
    }
}

#[test]
fn threads_change_nothing() {
    let data = data(80);
    for (machine, kernel) in [("odm", RBF), ("svm", RBF), ("odm", Kernel::Linear)] {
        let search = Search { folds: 3, ..Search::default() };
        let options = options(machine, kernel);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| tune(&data, None, &options, &search, Default::default()).unwrap())
        };
        let (one, four) = (on(1), on(4));
        assert_eq!(one.trials, four.trials);
        assert_eq!(one.model.to_bytes().unwrap(), four.model.to_bytes().unwrap());
    }
}

#[test]
fn a_staged_search_stays_small_and_comes_close_to_the_whole_grid() {
    let data = data(60);
    let options = options("odm", Kernel::Linear);
    let search = Search { select: Some(Select::LooLoss), ..Search::default() };
    let staged = tune(&data, None, &options, &search, Default::default()).unwrap();
    let whole = tune(&data, None, &options, &Search { plan: &Plan::Paper, ..search }, Default::default()).unwrap();
    assert_eq!((whole.trials.len(), staged.paper_points), (726, 726));
    assert!(staged.trials.len() < 100, "{}", staged.trials.len());
    assert!(staged.best.score.loss <= 1.01 * whole.best.score.loss);
    assert_eq!(staged.fits_saved, 726 * 5 - staged.fits);
    let mut sorted: Vec<f64> = whole.trials.iter().map(|t| t.score.loss).collect();
    sorted.sort_by(f64::total_cmp);
    assert_eq!([whole.best.score.loss, whole.runner_up.unwrap().score.loss], sorted[..2]);
}

#[test]
fn every_machine_has_a_search_that_works() {
    let data = data(40);
    for machine in widemargin::machine::MACHINES {
        let options = options(machine.name(), Kernel::Linear);
        let search = Search { folds: 2, ..Search::default() };
        let tuned = tune(&data, None, &options, &search, Default::default());
        let tuned = tuned.unwrap_or_else(|e| panic!("{}: {e}", machine.name()));
        assert!(tuned.best.score.error < 0.5, "{}", machine.name());
        assert_eq!(tuned.model.machine, machine.name());
    }
}

#[test]
fn more_classes_are_cross_validated() {
    let (values, _) = noisy(60, 4, 2);
    let labels: Vec<&str> = (0..60)
        .map(|i| ["a", "b", "c"][(values[i * 4] > 0.2) as usize + (values[i * 4 + 1] >= 0.0) as usize])
        .collect();
    let data = dense(&values, &labels);
    let options = options("odm", Kernel::Linear);
    let tuned = run(&data, &options, &grid("c1=1;64"), Select::Cv);
    for trial in &tuned.trials {
        let expected = by_hand(&data, &at(&options, &[("c1", trial.params.number("c1"))]));
        assert!((trial.score.error - expected).abs() < 1e-12);
    }
    let search = Search { select: Some(Select::Loo), ..Search::default() };
    assert!(matches!(tune(&data, None, &options, &search, Default::default()), Err(Error::Conflict { .. })));
}

#[test]
fn a_log_is_taken_up_again() {
    let data = data(40);
    let options = options("odm", Kernel::Linear);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("log");
    let plan = grid("c1=1;4;16;64");
    let search = Search { plan: &plan, ..Search::default() };
    let id = fingerprint(Examples::of(&data).unwrap(), None, &options, &search);
    let whole = tune(&data, None, &options, &search, Default::default()).unwrap();

    // Stopped after two points, in the middle of writing a third.
    let (log, known) = Log::open(&path, &id).unwrap();
    assert!(known.is_empty());
    let written = Mutex::new(0);
    let stop = |finished: &Finished<'_>| -> Result<()> {
        let mut written = written.lock().unwrap();
        if *written == 2 {
            return Err(Error::Interrupted);
        }
        *written += 1;
        log.add(finished.trial)
    };
    let stopped = tune(&data, None, &options, &Search { watcher: Some(&stop), ..search }, Default::default());
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    text += "{\"params\":{\"c1\":";
    std::fs::write(&path, text).unwrap();

    let (log, known) = Log::open(&path, &id).unwrap();
    assert_eq!(known.len(), 2);
    let write = |finished: &Finished<'_>| log.add(finished.trial);
    let resumed = Search { known: &known, watcher: Some(&write), ..search };
    let tuned = tune(&data, None, &options, &resumed, Default::default()).unwrap();
    // The two that were known are fitted again: the third starts where they end.
    assert_eq!((tuned.resumed, tuned.fits), (2, 4));
    assert_eq!(tuned.model.to_bytes().unwrap(), whole.model.to_bytes().unwrap());
    assert_eq!(tuned.best.params, whole.best.params);
    assert_eq!(Log::open(&path, &id).unwrap().1.len(), 4);

    assert!(matches!(Log::open(&path, "another"), Err(Error::Data { .. })));
    std::fs::write(&path, "+1 1:2\n").unwrap();
    assert!(matches!(Log::open(&path, &id), Err(Error::Data { .. })));
    std::fs::write(&path, "precious").unwrap();
    assert!(matches!(Log::open(&path, &id), Err(Error::Data { .. })));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

/// Searches, and hands back the points in the order they were finished.
fn recorded(data: &Dataset, options: &TrainOptions, search: &Search<'_>) -> (Tuned, Vec<Trial>) {
    let finished = Mutex::new(Vec::new());
    let note = |f: &Finished<'_>| -> Result<()> {
        finished.lock().unwrap().push(f.trial.clone());
        Ok(())
    };
    let tuned = tune(data, None, options, &Search { watcher: Some(&note), ..*search }, Default::default()).unwrap();
    (tuned, finished.into_inner().unwrap())
}

#[test]
fn whatever_part_of_a_log_is_there_the_search_ends_the_same() {
    let data = data(60);
    let paper = grid("lambda1=1;64,lambda2=1;64,c=1;8;64;512,gamma=0.1;1");
    let many = grid("lambda=1;8;64;512,mu=0.1;0.5;0.9,theta=0;0.2;0.4");
    for (machine, kernel, plan) in [
        ("odm", RBF, &Plan::Staged),
        ("svm", RBF, &Plan::Staged),
        ("svm", Kernel::Linear, &Plan::Staged),
        ("ldm", RBF, &Plan::Staged),
        ("ldm", RBF, &paper),
        ("mcodm", Kernel::Linear, &many),
    ] {
        let options = options(machine, kernel);
        let search = Search { plan, folds: 3, ..Search::default() };
        let (whole, order) = recorded(&data, &options, &search);
        let bytes = whole.model.to_bytes().unwrap();
        let n = order.len();
        let cuts = [1, n / 4, n / 3, n / 2, 2 * n / 3, n - 2, n - 1, n].map(|cut| order[..cut].to_vec());
        // Threads finish in any order: also with holes.
        let holes =
            [2, 3, 5].map(|k| order.iter().enumerate().filter(move |(i, _)| i % k != 1).map(|(_, t)| t.clone()));
        for known in cuts.into_iter().chain(holes.map(Iterator::collect)) {
            let resumed = recorded(&data, &options, &Search { known: &known, ..search });
            let place = format!("{machine} {} with {} of {n} points", kernel.name(), known.len());
            assert_eq!(resumed.0.trials, whole.trials, "{place}");
            assert_eq!(resumed.0.model.to_bytes().unwrap(), bytes, "{place}");
            assert_eq!((resumed.0.resumed, resumed.1.len()), (known.len(), n - known.len()), "{place}");
        }
    }
}

/// Judges lines as another process would: what travels is text, and nothing is kept from one line to the next.
struct Others<'a> {
    data: &'a Dataset,
    options: &'a TrainOptions,
    search: Search<'a>,
    /// So many lines go to one of them.
    at_once: usize,
    /// How many lines were asked for at a time.
    asked: Mutex<Vec<usize>>,
}

impl Judges for Others<'_> {
    fn judge(&self, lines: &[Line]) -> Result<Vec<JudgedLine>> {
        self.asked.lock().unwrap().push(lines.len());
        let judge = |lines: &[Line]| -> Result<Vec<JudgedLine>> {
            let lines: Vec<Line> = serde_json::from_str(&serde_json::to_string(lines).unwrap()).unwrap();
            let data = Examples::of(self.data)?;
            let judged = judge_lines(data, None, self.options, &self.search, &lines, Default::default())?;
            Ok(serde_json::from_str(&serde_json::to_string(&judged).unwrap()).unwrap())
        };
        let judged: Vec<Vec<JudgedLine>> = lines.chunks(self.at_once).map(judge).collect::<Result<_>>()?;
        Ok(judged.into_iter().flatten().collect())
    }
}

#[test]
fn lines_that_others_judge_lead_to_the_same_search() {
    let data = data(120);
    let paper = grid("c1=1;16;256,c2=1;4;16;64,d=0;0.2;0.4");
    let cases: [(&str, Kernel, &Plan, Option<Select>, SearchRows); 7] = [
        ("odm", RBF, &Plan::Staged, None, SearchRows::All),
        ("odm", RBF, &Plan::Staged, Some(Select::Cv), SearchRows::Most(80)),
        ("odm", RBF, &paper, Some(Select::Cv), SearchRows::All),
        ("svm", RBF, &Plan::Staged, None, SearchRows::All),
        ("ldm", Kernel::Linear, &Plan::Staged, None, SearchRows::All),
        ("l2svm", Kernel::Linear, &Plan::Staged, Some(Select::Loo), SearchRows::All),
        ("lda", RBF, &Plan::Staged, None, SearchRows::All),
    ];
    for (machine, kernel, plan, select, rows) in cases {
        let place = format!("{machine} {} {select:?}", kernel.name());
        let options = options(machine, kernel);
        let search = Search { plan, select, folds: 3, rows, ..Search::default() };
        let (near, log) = recorded(&data, &options, &search);
        let at_once = if select.is_none() { 1 } else { 3 };
        let others = Others { data: &data, options: &options, search, at_once, asked: Mutex::default() };
        let away = Search { judges: Some(&others), ..search };
        // From nothing, and from every other point of a log.
        let some: Vec<Trial> = log.iter().step_by(2).cloned().collect();
        for known in [&[][..], &some] {
            let (far, told) = recorded(&data, &options, &Search { known, ..away });
            assert_eq!(far.trials, near.trials, "{place}");
            assert_eq!((&far.best, far.rows, far.select), (&near.best, near.rows, near.select), "{place}");
            assert_eq!((told.len(), far.resumed), (log.len() - known.len(), known.len()), "{place}");
            assert_eq!(far.model.to_bytes().unwrap(), near.model.to_bytes().unwrap(), "{place}");
            if known.is_empty() {
                assert_eq!((far.fits, far.shared, far.dropped), (near.fits, near.shared, near.dropped), "{place}");
            }
        }
        // Lines do not wait for others, where there is more than one.
        let together = others.asked.lock().unwrap().iter().any(|&lines| lines > 1);
        assert_eq!(together, machine != "l2svm", "{place}");
    }
}

#[test]
fn a_log_belongs_to_what_is_tried() {
    let data = data(20);
    let options = options("svm", RBF);
    let examples = Examples::of(&data).unwrap();
    let id = |search: &Search<'_>| fingerprint(examples, None, &options, search);
    let (one, other) = (grid("c=1;2"), grid("c=1;3"));
    let plain = Search { plan: &one, ..Search::default() };
    assert_eq!(id(&plain), id(&plain));
    assert_ne!(id(&plain), id(&Search { plan: &other, ..plain }));
    assert_ne!(id(&plain), id(&Search { plan: &Plan::Paper, ..plain }));
    assert_ne!(id(&plain), id(&Search { gamma_given: true, ..plain }));
}

#[test]
fn what_cannot_be_searched_is_told() {
    let data = data(20);
    let linear = options("odm", Kernel::Linear);
    let fails = |data: &Dataset, options: &TrainOptions, plan: &Plan, search: &Search<'_>| {
        let search = Search { plan, ..*search };
        tune(data, None, options, &search, Default::default()).err().expect("an error")
    };
    let usual = Search::default();
    assert!(matches!(fails(&data, &linear, &grid("nosuch=1;2"), &usual), Error::Parameter { .. }));
    assert!(matches!(fails(&data, &linear, &grid("c1=0;2"), &usual), Error::Parameter { .. }));
    assert!(matches!(fails(&data, &linear, &grid("gamma=1;2"), &usual), Error::Conflict { .. }));
    assert!(matches!(fails(&data, &options("odm", RBF), &grid("gamma=0;2"), &usual), Error::Parameter { .. }));
    let cv = Search { select: Some(Select::Cv), ..usual };
    for folds in [0, 1, 21] {
        assert!(matches!(fails(&data, &linear, &Plan::Staged, &Search { folds, ..cv }), Error::Parameter { .. }));
    }
    assert!(matches!(fails(&data, &linear, &Plan::Staged, &Search { repeats: 0, ..cv }), Error::Parameter { .. }));
    let loo = Search { select: Some(Select::LooLoss), ..usual };
    assert!(matches!(fails(&data, &options("svm", Kernel::Linear), &Plan::Staged, &loo), Error::Conflict { .. }));
    let lonely =
        part(&data, &(0..20).filter(|i| *i < 2 || data.labels.as_ref().unwrap().codes()[*i] == 0).collect::<Vec<_>>());
    assert!(matches!(fails(&lonely, &linear, &Plan::Staged, &cv), Error::Data { .. }));
    let bare = Dataset { labels: None, ..data.clone() };
    assert!(matches!(fails(&bare, &linear, &Plan::Staged, &usual), Error::Data { .. }));
}

/// The two smallest errors by hand over all points of a grid of this machine.
fn two_best_by_hand(data: &Dataset, options: &TrainOptions, trials: &[widemargin::select::Trial]) -> [f64; 2] {
    let by_hand = |trial: &widemargin::select::Trial| {
        let given: Vec<(String, f64)> =
            trial.params.iter().filter_map(|(n, _)| trial.params.get(n).map(|v| (n.to_string(), v))).collect();
        let given: Vec<(&str, f64)> = given.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        let gamma = trial.gamma.map_or(options.gamma, Gamma::Value);
        by_hand(data, &TrainOptions { gamma, ..at(options, &given) })
    };
    let mut errors: Vec<f64> = trials.iter().map(by_hand).collect();
    errors.sort_by(f64::total_cmp);
    [errors[0], errors[1]]
}

#[test]
fn dropping_points_early_changes_neither_the_best_nor_the_second() {
    let data = data(90);
    let cases = [
        // With the second width every row is alone: nothing is learnt, and it shows after a fold or two.
        ("odm", RBF, "c1=1;64,c2=1;4;16;64,d=0;0.2,gamma=0.3;5000"),
        ("odm", Kernel::Linear, "c1=0.001;1;64,c2=0.001;1;16;64,d=0;0.2;0.4"),
        ("lda", RBF, "ridge=1e-6;1e-5;1e-4;1e-3;1e-2;0.1;1;10;100"),
    ];
    for (machine, kernel, text) in cases {
        let options = options(machine, kernel);
        let tuned = run(&data, &options, &grid(text), Select::Cv);
        let [best, second] = two_best_by_hand(&data, &options, &tuned.trials);
        assert!((tuned.best.score.error - best).abs() < 1e-12, "{machine}");
        assert!((tuned.runner_up.unwrap().score.error - second).abs() < 1e-12, "{machine}");
        let points = tuned.trials.len();
        assert_eq!(tuned.dropped, tuned.trials.iter().filter(|t| t.score.folds.len() < 3).count());
        assert_eq!(tuned.fits, tuned.trials.iter().map(|t| t.score.folds.len()).sum::<usize>());
        if kernel == RBF && machine == "odm" {
            assert!(tuned.dropped > 0 && tuned.fits < 3 * points, "{machine}: {} of {points}", tuned.dropped);
        }
    }
}

#[test]
fn a_sample_is_of_the_asked_size_and_always_the_same() {
    let data = data(60);
    let search = |count: usize| {
        let plan = Plan::Sample(count);
        let search = Search { plan: &plan, select: Some(Select::Cv), folds: 3, ..Search::default() };
        let tuned = tune(&data, None, &options("odm", RBF), &search, Default::default()).unwrap();
        tuned.trials.into_iter().map(|t| (t.params, t.gamma)).collect::<Vec<_>>()
    };
    let seven = search(7);
    assert_eq!(seven.len(), 7);
    assert!((1..7).all(|i| !seven[..i].contains(&seven[i])));
    assert_eq!(seven, search(7));
    let plan = Plan::Sample(1000);
    let all = Search { plan: &plan, folds: 3, ..Search::default() };
    let tuned = tune(&data, None, &options("svm", Kernel::Linear), &all, Default::default()).unwrap();
    assert_eq!(tuned.trials.len(), 21);
}

#[test]
fn the_papers_widths_can_be_asked_for() {
    let data = data(40);
    let search = |plan: &Plan| {
        let search = Search { plan, select: Some(Select::Cv), folds: 3, ..Search::default() };
        tune(&data, None, &options("mamc", RBF), &search, Default::default()).map(|t| t.trials.len())
    };
    assert_eq!(search(&grid("gamma=widths")).unwrap(), 5);
    assert!(matches!(search(&grid("gamma=sizes")), Err(Error::Parameter { .. })));
}

#[test]
fn points_can_be_judged_on_some_of_the_rows() {
    let (data, options, plan) = (data(200), options("svm", RBF), grid("c=1;100"));
    let search = Search { plan: &plan, select: Some(Select::Cv), folds: 3, ..Search::default() };
    let search = Search { rows: SearchRows::Most(50), ..search };
    let few = tune(&data, None, &options, &search, Default::default()).unwrap();
    let labels = data.labels.as_ref().unwrap();
    let (drawn, _) = train_test(labels, 0.25, options.settings.seed, 0);
    assert_eq!(drawn.len(), 50);
    let alone =
        tune(&part(&data, &drawn), None, &options, &Search { rows: SearchRows::All, ..search }, Default::default())
            .unwrap();
    assert_eq!(few.trials, alone.trials);
    // The model has learnt from all rows.
    assert_eq!((few.model.certificate.rows, alone.model.certificate.rows), (200, 50));
    let (whole, _) = train(&data, None, &few.options, Default::default()).unwrap();
    assert_eq!(few.model.to_bytes().unwrap(), whole.to_bytes().unwrap());
}

#[test]
fn every_point_is_judged_on_a_part_and_the_best_on_all() {
    let data = data(750);
    for (machine, kernel, select) in
        [("odm", RBF, Select::LooLoss), ("svm", RBF, Select::Cv), ("odm", Kernel::Linear, Select::LooLoss)]
    {
        let place = format!("{machine} {}", kernel.name());
        let options = options(machine, kernel);
        let search = Search { folds: 3, ..Search::default() };
        let tuned = tune(&data, None, &options, &search, Default::default()).unwrap();
        assert_eq!((tuned.first_rows, tuned.rows, tuned.select), (Some(300), 750, select), "{place}");
        let (whole, part): (Vec<&Trial>, Vec<&Trial>) = tuned.trials.iter().partition(|t| t.score.rows.is_none());
        assert!((2..=13).contains(&whole.len()), "{place}: {}", whole.len());
        assert!(part.iter().all(|t| t.score.dropped && t.score.rows == Some(300)), "{place}");
        assert_eq!(tuned.dropped, part.len(), "{place}");
        assert!(tuned.fits > tuned.trials.len(), "{place}");
        assert!(whole.contains(&&tuned.best) && whole.contains(&&tuned.runner_up.unwrap()), "{place}");
        let point = |t: &Trial| (t.params.clone(), t.gamma.map(f64::to_bits));
        let again = tuned.trials.iter().filter(|t| point(t) == point(&tuned.best)).count();
        assert_eq!(again, 1, "{place}");
        // What all rows say of the best point is what a search of every point on all of them says.
        let all = Search { rows: SearchRows::All, ..search };
        let all = tune(&data, None, &options, &all, Default::default()).unwrap();
        assert_eq!(all.first_rows, None, "{place}");
        let (found, best) = (&tuned.best.score, &all.best.score);
        let close = match select {
            Select::Cv => found.error <= best.error + (best.error / 750.0).sqrt(),
            _ => found.loss <= best.loss + 0.1 * best.spread,
        };
        assert!(close, "{place}: {found:?} {best:?}");
        let same = all.trials.iter().find(|t| point(t) == point(&tuned.best)).map(|t| &t.score);
        assert!(same.is_none_or(|s| s.dropped || (s.loss - found.loss).abs() < 0.01 * s.loss), "{place}");
    }
}

#[test]
fn what_a_part_of_the_rows_says_does_not_depend_on_threads_logs_or_who_judges() {
    let data = data(650);
    for (machine, kernel) in [("odm", RBF), ("svm", Kernel::Linear)] {
        let options = options(machine, kernel);
        let search = Search { folds: 3, ..Search::default() };
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| recorded(&data, &options, &search))
        };
        let ((whole, order), (four, _)) = (on(1), on(4));
        assert_eq!(whole.first_rows, Some(300));
        assert_eq!(whole.trials, four.trials, "{machine}");
        let (bytes, n) = (whole.model.to_bytes().unwrap(), order.len());
        assert_eq!(bytes, four.model.to_bytes().unwrap(), "{machine}");
        let holes = order.iter().enumerate().filter(|(i, _)| i % 3 != 1).map(|(_, trial)| trial.clone()).collect();
        for known in [order[..n / 2].to_vec(), order[..n - 2].to_vec(), order.clone(), holes] {
            let (resumed, told) = recorded(&data, &options, &Search { known: &known, ..search });
            assert_eq!(resumed.trials, whole.trials, "{machine} with {} of {n} points", known.len());
            assert_eq!(resumed.model.to_bytes().unwrap(), bytes, "{machine}");
            assert_eq!((resumed.resumed, told.len()), (known.len(), n - known.len()), "{machine}");
        }
        let others = Others { data: &data, options: &options, search, at_once: 3, asked: Mutex::default() };
        let (far, _) = recorded(&data, &options, &Search { judges: Some(&others), ..search });
        assert_eq!((&far.trials, far.fits), (&whole.trials, whole.fits), "{machine}");
        assert_eq!(far.model.to_bytes().unwrap(), bytes, "{machine}");
    }
}

#[test]
fn only_a_search_left_to_itself_judges_on_a_part_of_many_rows() {
    let first = |data: &Dataset, search: &Search<'_>| {
        let options = options("lssvm", Kernel::Linear);
        tune(data, None, &options, search, Default::default()).unwrap().first_rows
    };
    let usual = Search::default();
    assert_eq!(first(&data(599), &usual), None);
    assert_eq!(first(&data(600), &usual), Some(300));
    assert_eq!(first(&data(2000), &usual), Some(800));
    assert_eq!(first(&data(600), &Search { plan: &grid("c=1;2;4"), ..usual }), None);
    assert_eq!(first(&data(600), &Search { rows: SearchRows::All, ..usual }), None);
    assert_eq!(first(&data(900), &Search { rows: SearchRows::Most(700), ..usual }), None);
    // Of a class with few rows, as many as tell something.
    let (values, _) = noisy(1000, 4, 11);
    let labels = |every: usize| (0..1000).map(|i| if i % every == 0 { "few" } else { "many" }).collect::<Vec<_>>();
    assert_eq!(first(&dense(&values, &labels(10)), &usual), Some(400));
    assert_eq!(first(&dense(&values, &labels(25)), &usual), Some(500));
    assert_eq!(first(&dense(&values, &labels(50)), &usual), None);
}

/// `m` rows of `n` features, `stored` of them a row.
fn wide(m: usize, n: usize, stored: usize) -> Dataset {
    let mut random = Random::new(3, 0);
    let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
    for _ in 0..m {
        let mut chosen: Vec<u32> = (0..stored).map(|_| random.below(n) as u32).collect();
        chosen.sort_unstable();
        chosen.dedup();
        values.extend(chosen.iter().map(|_| random.normal()));
        columns.extend(chosen);
        offsets.push(values.len() as u64);
    }
    let labels: Vec<String> = (0..m).map(|i| (i % 2).to_string()).collect();
    let rows = Matrix::SparseF64(Csr::new(n, offsets, columns, values).unwrap());
    Dataset::new("wide", rows, Some(Labels::new(&labels)))
}

#[test]
fn a_search_judges_on_as_many_rows_as_it_can_afford() {
    let settle = |data: &Dataset, machine, kernel, search: &Search<'_>| {
        search.settle(Examples::of(data).unwrap(), &options(machine, kernel)).unwrap()
    };
    let usual = Search::default();
    assert_eq!(settle(&data(500), "odm", RBF, &usual), (Select::LooLoss, 500));
    let many = data(20_000);
    let (select, rows) = settle(&many, "odm", RBF, &usual);
    assert!(select == Select::LooLoss && (1000..5000).contains(&rows), "{rows}");
    // More points, fewer rows; a search by folds takes more rows for the same work.
    let one = grid("c1=4");
    let (_, for_one) = settle(&many, "odm", RBF, &Search { plan: &one, ..usual });
    assert!(for_one > rows);
    let (select, _) = settle(&many, "svm", RBF, &usual);
    assert_eq!(select, Select::Cv);
    // What was asked for stays.
    assert_eq!(settle(&many, "odm", RBF, &Search { rows: SearchRows::All, ..usual }), (Select::LooLoss, 20_000));
    assert_eq!(settle(&many, "odm", RBF, &Search { rows: SearchRows::Most(70), ..usual }), (Select::LooLoss, 70));
    assert_eq!(settle(&many, "odm", Kernel::Linear, &usual), (Select::LooLoss, 20_000));
    // Short rows of many features: all of them in folds, rather than some left out one by one.
    let text = wide(20_000, 5_000, 20);
    assert_eq!(settle(&text, "odm", Kernel::Linear, &usual), (Select::Cv, 20_000));
    let (select, rows) = settle(&text, "odm", Kernel::Linear, &Search { select: Some(Select::Loo), ..usual });
    assert!(select == Select::Loo && rows < 20_000);
    // Little memory, fewer rows.
    let mut small = options("odm", RBF);
    small.settings.memory = 1 << 26;
    let (_, rows) = usual.settle(Examples::of(&many).unwrap(), &small).unwrap();
    assert!((1000..1500).contains(&rows), "{rows}");
    for text in ["0", "-1", "some", ""] {
        assert!(text.parse::<SearchRows>().is_err(), "{text}");
    }
    assert_eq!("all".parse::<SearchRows>().unwrap().to_string(), "all");
}

#[test]
fn a_row_counts_as_much_among_some_of_the_rows_as_among_all() {
    // Parameters that weigh means: a quarter of the rows, judged for all, is judged with a quarter of them.
    let cases = [
        ("odm", RBF, "c1=4;64,c2=8,d=0.25", "c1=1;16,c2=2,d=0.25", Select::LooLoss),
        ("odm", Kernel::Linear, "c1=4;64,c2=8,d=0.25", "c1=1;16,c2=2,d=0.25", Select::Cv),
        ("ldm", Kernel::Linear, "lambda1=1;8,lambda2=1,c=1", "lambda1=0.25;2,lambda2=0.25,c=1", Select::Cv),
        ("odm-l", RBF, "lambda1=1;8,lambda2=1,c=32", "lambda1=0.25;2,lambda2=0.25,c=8", Select::Cv),
        ("lssvm", RBF, "c=4;64", "c=1;16", Select::Loo),
        ("mcodm", Kernel::Linear, "lambda=4;64", "lambda=1;16", Select::Cv),
    ];
    let data = data(200);
    let (drawn, _) = train_test(data.labels.as_ref().unwrap(), 0.25, 0, 0);
    let part = part(&data, &drawn);
    for (machine, kernel, all, quarter, select) in cases {
        let options = options(machine, kernel);
        assert_eq!(options.settings.seed, 0);
        let scores = |data: &Dataset, text: &str, rows: SearchRows| {
            let plan = grid(text);
            let search = Search { plan: &plan, select: Some(select), folds: 3, rows, ..Search::default() };
            let tuned = tune(data, None, &options, &search, Default::default()).unwrap();
            tuned.trials.into_iter().map(|trial| trial.score).collect::<Vec<_>>()
        };
        assert_eq!(scores(&data, all, SearchRows::Most(50)), scores(&part, quarter, SearchRows::All), "{machine}");
    }
}
