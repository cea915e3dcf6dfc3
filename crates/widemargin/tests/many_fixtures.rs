//! mcODM against values of an independent interior-point solver, where they are at hand.

mod many_common;

use many_common::{dense, fit, scores};
use serde_json::Value;
use std::path::Path;
use widemargin::kernel::Kernel;
use widemargin::machine::{self, Bias};

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().map(|a| a.iter().filter_map(Value::as_f64).collect()).unwrap_or_default()
}

fn table(value: &Value) -> Vec<Vec<f64>> {
    value.as_array().map(|a| a.iter().map(numbers).collect()).unwrap_or_default()
}

#[test]
fn rounds_objectives_and_scores_are_as_recorded() {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let Some(entries) = above.map(|a| a.join("shared/fixtures")).find_map(|f| std::fs::read_dir(f).ok()) else {
        eprintln!("skipped: no recorded values in a folder shared/fixtures above this crate");
        return;
    };
    let mut seen = 0;
    for path in entries.filter_map(|e| e.ok()).map(|e| e.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_string();
        if !name.starts_with("mcodm-") {
            continue;
        }
        seen += 1;
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let (rows, test) = (table(&case["x"]), table(&case["x_test"]));
        let codes: Vec<u32> = numbers(&case["y"]).iter().map(|y| *y as u32 - 1).collect();
        let kernel = match case["kernel"]["kind"].as_str() {
            Some("rbf") => Kernel::Rbf { gamma: case["kernel"]["gamma"].as_f64().unwrap() },
            _ => Kernel::Linear,
        };
        let given = |relaxation: &str, rounds: &str| {
            let mut list: Vec<(String, machine::Value)> =
                ["lambda", "mu", "theta"].map(|n| (n.to_string(), case["params"][n].as_f64().unwrap().into())).to_vec();
            list.push(("relaxation".into(), relaxation.into()));
            list.push(("rounds".into(), rounds.into()));
            list
        };
        let matrix = dense(&rows);
        let run = |relaxation: &str, rounds: &str| {
            fit("mcodm", &given(relaxation, rounds), &matrix, &codes, kernel, Bias::None, 1e-9).unwrap()
        };
        let found = run("cccp", "50");
        println!("{name}: {:?} {:?} {:?}", found.outcome.rounds, found.outcome.stop, found.outcome.iterations);
        let expected = case["expect"]["cccp_objective"].as_f64().unwrap();
        let objective = found.outcome.objective.unwrap();
        assert!(objective <= expected * (1.0 + 1e-5), "{name}: {objective} above {expected}");
        let trace = found.outcome.rounds.clone().unwrap();
        assert!(!trace.is_empty() && trace.windows(2).all(|w| w[1] <= w[0] * (1.0 + 1e-7)), "{name}: {trace:?}");
        if (objective - expected).abs() <= 1e-5 * expected {
            let got = scores(&found.functions, &rows, &test, kernel);
            for (got, want) in got.iter().zip(table(&case["expect"]["cccp_scores_test"])) {
                for (a, b) in got.iter().zip(&want) {
                    assert!((a - b).abs() <= 2e-3f64.max(1e-3 * a.abs().max(b.abs())), "{name}: {got:?} {want:?}");
                }
            }
        }
        let trace = run("paper", "4").outcome.rounds.unwrap();
        let want = numbers(&case["expect"]["paper_trace_4_rounds"]);
        assert_eq!(trace.len(), want.len(), "{name}: {trace:?} {want:?}");
        assert!(trace.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-4 * b.abs()), "{name}: {trace:?} {want:?}");
    }
    assert!(seen > 0, "recorded values without mcodm cases");
}
