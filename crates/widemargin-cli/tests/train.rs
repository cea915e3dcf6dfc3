//! `widemargin train`: reports, options, wrong usage, wrong data.

mod common;
use common::Place;
use serde_json::Value;

#[test]
fn json_has_every_promised_key() {
    let place = Place::with_data();
    let report = place.json("train train.libsvm m --json --machine odm");
    for key in [
        "machine",
        "params",
        "kernel",
        "solver",
        "rows",
        "features",
        "classes",
        "objective",
        "dual_objective",
        "gap",
        "converged",
        "iterations",
        "support",
        "seconds",
        "margins",
        "loo_bound",
        "rounds",
    ] {
        assert!(report.get(key).is_some(), "{key}");
    }
    for (part, keys) in
        [("seconds", vec!["read", "train"]), ("margins", vec!["min", "mean", "variance", "semivariance"])]
    {
        keys.iter().for_each(|key| assert!(report[part][key].is_number(), "{part}.{key}"));
    }
    assert_eq!((report["rows"].as_u64(), report["features"].as_u64()), (Some(60), Some(3)));
    assert_eq!(report["classes"], 2);
    assert_eq!(report["converged"], true);
    assert!(report["gap"].as_f64().unwrap() <= 1e-3);
    assert_eq!(report["rounds"], Value::Null);
    assert_eq!(place.names(), ["m", "test.libsvm", "train.libsvm"]);
}

#[test]
fn people_get_a_summary_on_standard_error_only() {
    let place = Place::with_data();
    let run = place.ok("train train.libsvm m --kernel rbf --scale standard");
    assert!(run.stdout.is_empty());
    for part in ["machine", "odm", "rbf", "60 rows × 3 features", "within the tolerance", "support rows"] {
        assert!(run.stderr.contains(part), "{}", run.stderr);
    }
    assert_eq!(place.ok("train train.libsvm m --quiet").stderr, "");
}

#[test]
fn global_options_stand_before_or_after_the_command() {
    let place = Place::with_data();
    place.ok("--seed 3 --threads 1 train train.libsvm a --quiet");
    place.ok("train train.libsvm b --quiet --threads 1 --seed 3");
    assert_eq!(std::fs::read(place.path("a")).unwrap(), std::fs::read(place.path("b")).unwrap());
    place.json("--json train train.libsvm a");
}

#[test]
fn the_model_does_not_depend_on_the_threads() {
    let place = Place::new();
    for options in ["--scale minmax", "--kernel rbf --scale standard", "--machine svm --kernel rbf", "--machine ldm"] {
        let model = |threads: usize| {
            place.ok(&format!("train wdbc m{threads} --quiet --threads {threads} {options}"));
            std::fs::read(place.path(&format!("m{threads}"))).unwrap()
        };
        assert!(model(1) == model(2), "{options}");
    }
}

#[test]
fn machines_have_their_own_parameters() {
    let place = Place::with_data();
    let report = place.json("train train.libsvm m --json --machine odml --lambda1 0.5 --lambda2 0.25 --c 7");
    assert_eq!(report["machine"], "odm-l");
    assert_eq!((&report["params"]["lambda1"], &report["params"]["c"]), (&0.5.into(), &7.0.into()));
    place.fails("train train.libsvm m --machine svm --lambda1 2", 2, &["--lambda1", "svm", "--c"]);
    place.fails("train train.libsvm m --c1 -3", 2, &["--c1 -3", "a number > 0"]);
    place.fails("train train.libsvm m --machine svm --c nan", 2, &["--c nan", "a number > 0"]);
    place.fails("train train.libsvm m --machine odm --d 1", 2, &["--d 1", "[0, 1)"]);
}

#[test]
fn wrong_usage_ends_with_two() {
    let place = Place::with_data();
    place.fails("train train.libsvm", 2, &["<MODEL>"]);
    place.fails("train train.libsvm m --nonsense", 2, &["--nonsense"]);
    place.fails("train train.libsvm m --machine nosuch", 2, &["nosuch", "svm"]);
    place.fails("train train.libsvm m --kernel cubic", 2, &["cubic", "rbf"]);
    place.fails("train train.libsvm m --kernel rbf --gamma -1", 2, &["-1", "scale"]);
    place.fails("train train.libsvm m --gamma 1", 2, &["--gamma", "linear kernel"]);
    place.fails("train train.libsvm m --kernel rbf --degree 2", 2, &["--degree", "rbf"]);
    place.fails("train train.libsvm m --bias -1", 2, &["free", "none"]);
    place.fails("train train.libsvm m --tol 0", 2, &["a number > 0"]);
    place.fails("train train.libsvm m --max-iter 0", 2, &["a whole number >= 1"]);
    place.fails("train train.libsvm m --threads 0", 2, &["a whole number >= 1"]);
    place.fails("train train.libsvm m --memory lots", 2, &["512M"]);
    place.fails("train train.libsvm m --class-weight +1", 2, &["balanced"]);
    place.fails("train train.libsvm m --class-weight 5=2", 2, &["5", "-1, +1"]);
    assert!(!place.has("m"));
    // Found before the data is looked at.
    place.fails("train nosuch.libsvm m --c1 -3", 2, &["--c1"]);
    assert_eq!(place.run("").code, 2);
}

#[test]
fn bad_data_ends_with_one_and_names_the_place() {
    let place = Place::with_data();
    place.file("bad.libsvm", "+1 1:1\n-1 2:x 3:1\n");
    place.file("zero.libsvm", "+1 0:1\n-1 2:2\n");
    place.file("one.libsvm", "+1 1:1\n+1 2:2\n");
    place.file("empty.libsvm", "");
    place.file("bare.libsvm", "1:1\n2:2\n");
    place.file("three.libsvm", "1 1:1\n2 2:2\n3 3:3\n");
    place.fails("train bad.libsvm m", 1, &["bad.libsvm:2:"]);
    place.fails("train zero.libsvm m", 1, &["zero.libsvm:1:", "1"]);
    place.fails("train one.libsvm m", 1, &["one", "+1"]);
    place.fails("train empty.libsvm m", 1, &["empty"]);
    place.fails("train bare.libsvm m", 1, &["label"]);
    place.fails("train nosuch.libsvm m", 1, &["nosuch.libsvm", "no such file"]);
    place.fails("train wbdc m", 1, &["wbdc", "no such file", "wdbc, sonar"]);
    place.fails("train three.libsvm m --machine svm --multiclass own", 2, &["takes two classes", "svm"]);
    place.fails("train train.libsvm nosuch/m", 1, &["nosuch/m"]);
    assert!(!place.has("m"));
}

#[test]
fn weights_of_rows_are_checked_line_by_line() {
    let place = Place::with_data();
    let ones = "1\n".repeat(60);
    place.file("ones", &ones);
    place.file("short", "1\n1\n");
    place.file("bad", &ones.replacen("1\n1\n", "1\n-2\n", 1));
    place.ok("train train.libsvm plain --quiet");
    place.ok("train train.libsvm weighted --quiet --weights ones");
    assert_eq!(std::fs::read(place.path("plain")).unwrap(), std::fs::read(place.path("weighted")).unwrap());
    place.fails("train train.libsvm m --weights short", 1, &["short", "2 weights", "60 rows"]);
    place.fails("train train.libsvm m --weights bad", 1, &["bad:2:1", "`-2`", ">= 0"]);
    place.fails("train train.libsvm m --weights nosuch", 1, &["nosuch"]);
    place.ok("train train.libsvm m --class-weight balanced");
    place.ok("train train.libsvm m --class-weight -1=2.5");
}

#[test]
fn strict_fails_where_it_did_not_converge() {
    let place = Place::with_data();
    let words = "train train.libsvm m --machine svm --solver dcd --max-iter 1 --tol 1e-9";
    place.fails(&format!("{words} --strict"), 1, &["did not converge", "1 iteration", "no model"]);
    assert!(!place.has("m"));
    let run = place.ok(words);
    assert!(run.stderr.contains("warning: "), "{}", run.stderr);
    assert!(place.has("m"));
    assert_eq!(place.json(&format!("{words} --json"))["converged"], false);
}

#[test]
fn an_existing_model_survives_a_failure() {
    let place = Place::with_data();
    place.file("m", "precious");
    place.file("bad.libsvm", "+1 1:1\n-1 2:x\n");
    place.run("train bad.libsvm m");
    place.run("train train.libsvm m --machine svm --solver dcd --max-iter 1 --tol 1e-9 --strict");
    assert_eq!(place.read("m"), "precious");
}

#[test]
fn standard_input_and_tables() {
    let place = Place::with_data();
    assert_eq!(place.run_with("train - m --quiet", &common::rows(60, 0)).code, 0);
    place.ok("train train.libsvm same --quiet");
    assert_eq!(std::fs::read(place.path("m")).unwrap(), std::fs::read(place.path("same")).unwrap());
    place.file("t.csv", "a,kind,b\n1,x,2\n2,y,1\n1.5,x,2.5\n2.5,y,0.5\n");
    assert_eq!(place.json("train t.csv m --label kind --json")["labels"], serde_json::json!(["x", "y"]));
    place.fails("train t.csv m --label nosuch", 2, &["--label", "nosuch"]);
}

#[test]
fn landmark_rows_are_told_and_predict() {
    let place = Place::with_data();
    let report = place.json("train train.libsvm m --json --kernel rbf --approx 10");
    assert_eq!(report["extras"]["landmarks"], 10.0);
    assert!(report["extras"]["kernel_left_out"].as_f64().unwrap() > 0.0);
    assert_eq!(report["support"], 10);
    assert!(place.json("predict test.libsvm m --json")["accuracy"].is_number());
    assert!(place.ok("train train.libsvm m --kernel rbf --approx 10").stderr.contains("10 landmark rows"));
    for kernel in ["linear", "sigmoid"] {
        place.fails(&format!("train train.libsvm m --kernel {kernel} --approx 10"), 2, &["leave out --approx"]);
    }
}

#[test]
fn rounding_is_no_convergence() {
    let place = Place::with_data();
    let words = "train train.libsvm m --machine svm --tol 1e-30";
    let report = place.json(&format!("{words} --json"));
    assert_eq!((&report["stop"], &report["converged"]), (&"precision".into(), &false.into()), "{report}");
    let (run, info) = (place.ok(words), place.ok("info m"));
    let (told, again) = (report["advice"].as_str().unwrap(), place.json("info m --json"));
    for part in ["as far as rounding allows", "above the tolerance 1.00e-30", "scale the features"] {
        for text in [&run.stderr, &info.stdout, told, again["advice"].as_str().unwrap()] {
            assert!(text.contains(part), "{text}");
        }
    }
    std::fs::remove_file(place.path("m")).unwrap();
    place.fails(&format!("{words} --strict"), 1, &["as far as rounding allows", "no model"]);
    assert!(!place.has("m"));
    let fine = place.json("train train.libsvm m --machine svm --json --strict");
    assert_eq!((&fine["stop"], &fine["advice"]), (&"gap".into(), &Value::Null));
}

#[test]
fn rounds_that_run_out_say_what_to_raise() {
    let place = Place::with_data();
    for (machine, option) in [("msvmav --iterations 1", "--iterations"), ("fmm --rounds 2", "--rounds")] {
        let words = format!("train train.libsvm m --machine {machine}");
        assert_eq!(place.json(&format!("{words} --json"))["stop"], "iterations", "{machine}");
        place.fails(&format!("{words} --strict"), 1, &["did not converge", &format!("raise {option}")]);
    }
}

#[test]
fn options_that_a_machine_ignores_are_refused() {
    let place = Place::with_data();
    let cases = [
        ("msvmav --solver newton", "--solver newton", "msvmav takes --tol, --max-iter, --alpha"),
        ("mamc --solver dcd", "--solver dcd", "mamc takes --c"),
        ("km-omd --solver dcd", "--solver dcd", "km-omd takes --tol, --max-iter, --lambda"),
        ("mdo --solver svrg", "--solver svrg", "mdo takes --tol, --max-iter"),
        ("fmm --solver newton", "--solver newton", "fmm takes --tol"),
        ("lda --solver newton", "--solver newton", "lda takes --ridge"),
        ("mcodm --solver newton", "--solver newton", "--solver auto|dcd"),
        ("mcsvm --solver asgd", "--solver asgd", "--solver auto|dcd"),
        ("lda --tol 1e-6", "--tol", "lda takes --ridge"),
        ("mamc --tol 1e-6", "--tol", "mamc takes --c"),
        ("mamc --max-iter 7", "--max-iter", "mamc takes --c"),
        ("lda --max-iter 7", "--max-iter", "lda takes --ridge"),
    ];
    for (words, option, takes) in cases {
        // Before the data is looked for.
        place.fails(&format!("train sonar m --machine {words}"), 2, &[option, takes]);
        place.fails(&format!("tune sonar --machine {words}"), 2, &[option, takes]);
        place.fails(&format!("compare nosuch.libsvm --machines {}", words.replacen(' ', " --fixed ", 1)), 2, &[option]);
    }
    place.ok("train train.libsvm m --quiet --machine lda --solver auto --seed 3 --memory 1G");
    // One that some of the machines use is for them alone.
    place.ok("compare train.libsvm --machines svm,lda --fixed --repeats 2 --solver dcd --tol 1e-2 --max-iter 50");
}

#[test]
fn an_intercept_that_is_not_the_one_asked_for_is_told() {
    let place = Place::with_data();
    for (machine, asked, used) in
        [("fmm", "free", "1"), ("msvmav", "free", "1"), ("mamc", "free", "none"), ("lda", "2", "none")]
    {
        let words = format!("train train.libsvm m --machine {machine} --bias {asked}");
        let report = place.json(&format!("{words} --json"));
        assert_eq!((&report["bias"], &report["bias_asked"]), (&used.into(), &asked.into()), "{machine}");
        let run = place.ok(&words);
        let warning = format!("warning: {machine} cannot have a");
        assert_eq!(run.stderr.matches(&warning).count(), 1, "{}", run.stderr);
        assert!(!place.ok(&format!("{words} --quiet")).stderr.contains("warning"));
        let told = place.json("info m --json");
        assert_eq!((&told["bias"], &told["bias_asked"]), (&used.into(), &asked.into()), "{machine}");
        assert!(place.ok("info m").stdout.contains(&format!("{used} ({asked} was asked for)")), "{machine}");
        // Margins are divided by the norm that goes with it.
        let norm = |report: &serde_json::Value| report.as_f64().unwrap();
        let margins = place.json("margins train.libsvm m --json");
        assert!((norm(&margins["models"][0]["norm"]) - norm(&report["norm"])).abs() < 1e-9, "{machine}");
    }
    let report = place.json("train train.libsvm m --machine svm --json");
    assert_eq!((&report["bias"], &report["bias_asked"]), (&"free".into(), &"free".into()));
}

#[test]
fn values_outside_their_domain_are_refused_before_any_work() {
    let place = Place::with_data();
    let cases = [
        ("--kernel rbf --gamma 0", "--gamma"),
        ("--kernel rbf --gamma -1", "--gamma"),
        ("--kernel rbf --gamma nan", "--gamma"),
        ("--kernel poly --degree 0", "--degree"),
        ("--kernel poly --coef0 inf", "--coef0"),
        ("--bias 0", "none (for no intercept)"),
        ("--bias nan", "--bias"),
        ("--bias inf", "--bias"),
        ("--tol 0", "--tol"),
        ("--tol nan", "--tol"),
        ("--tol inf", "--tol"),
        ("--max-iter 0", "--max-iter"),
        ("--machine svr --epsilon -0.1", "--epsilon"),
        ("--machine svm --c nan", "--c"),
        ("--approx 10", "leave out --approx"),
        ("--kernel sigmoid --approx 10", "use --kernel rbf"),
        ("--c1 much", "--c1 much"),
        ("--class-weight 1=0", "--class-weight"),
        ("--machine mcodm --relaxation none", "--relaxation none"),
    ];
    for (words, says) in cases {
        place.fails(&format!("train nosuch.libsvm m {words}"), 2, &[says]);
    }
    let searches = [
        ("--folds 1", "a whole number >= 2"),
        ("--grid c1=0;1", "--c1 0"),
        ("--grid c9=1;2", "--c9 1"),
        ("--grid c1=2:1", "FROM <= TO"),
        ("--grid gamma=1;2", "linear kernel"),
        ("--kernel rbf --grid gamma=0;1", "--gamma 0"),
        ("--select luck", "loo-loss"),
    ];
    for (words, says) in searches {
        place.fails(&format!("tune nosuch.libsvm {words}"), 2, &[says]);
    }
}

#[test]
fn advice_names_options_as_they_are_typed() {
    let place = Place::with_data();
    let cases = [
        ("train sonar m --kernel rbf --solver asgd", "asgd works on the linear kernel, not on rbf: use --solver auto"),
        ("train sonar m --kernel sigmoid --solver newton", "use --solver dcd"),
        ("train sonar m --machine mdo --kernel rbf", "mdo cannot have the rbf kernel: use --kernel linear"),
        ("train iris m --machine svm --multiclass own", "use --multiclass ova, --multiclass ovo or --multiclass ecoc"),
        ("train iris m --relaxation paper", "use --relaxation cccp or --bias none"),
        ("tune sonar --machine svm --select loo", "use --select cv"),
    ];
    for (words, says) in cases {
        place.fails(words, 2, &[says]);
    }
    let memory = "train train.libsvm m --machine svm --kernel rbf --solver newton --memory 1K";
    place.fails(memory, 1, &["use --solver dcd or raise --memory"]);
}
