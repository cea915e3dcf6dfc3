//! Tables on the command line: the model knows its columns.

mod common;
use common::Place;
use serde_json::json;

/// Rows of a table with numbers, text, truth values and gaps; the label depends on all of them.
fn messy(rows: usize, shift: usize) -> Vec<[String; 6]> {
    let noise = |i: usize| ((i * 7919 + shift * 104_729) % 1000) as f64 / 1000.0;
    (0..rows)
        .map(|i| {
            let (age, income) = (20.0 + (50.0 * noise(i)).floor(), 1000.0 * noise(3 * i + 1));
            let city = ["Rome", "Bonn", "Oslo"][(i * 5 + shift) % 3];
            let member = (i / 3) % 2 == 0;
            let score =
                age / 50.0 + income / 500.0 + if city == "Rome" { 1.5 } else { 0.0 } + f64::from(u8::from(member));
            let age = if i % 11 == 3 { String::new() } else { age.to_string() };
            let member = if member { "yes" } else { "no" };
            let class = if score > 3.0 { "good" } else { "bad" };
            [(1000 + i).to_string(), age, format!("{income:.2}"), city.into(), member.into(), class.into()]
        })
        .collect()
}

const NAMES: [&str; 6] = ["id", "age", "income", "city", "member", "outcome"];

/// These columns as a CSV file.
fn csv(rows: &[[String; 6]], columns: &[usize]) -> String {
    let line = |fields: Vec<&str>| fields.join(",") + "\n";
    let head = line(columns.iter().map(|&c| NAMES[c]).collect());
    head + &rows.iter().map(|row| line(columns.iter().map(|&c| row[c].as_str()).collect())).collect::<String>()
}

fn place() -> Place {
    let place = Place::new();
    place.file("train.csv", &csv(&messy(200, 0), &[0, 1, 2, 3, 4, 5]));
    place
}

#[test]
fn a_messy_table_is_learned_and_predicted_by_name() {
    let place = place();
    place.fails("train train.csv m --drop id", 1, &["train.csv:5:2", "`age`", "--impute", "--drop age"]);
    let run = place.ok("train train.csv m --drop id --impute");
    for part in ["column outcome", "standard", "of text with 3 categories", "filled in: age"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let report = place.json("train train.csv m --drop id --impute --json");
    assert_eq!(report["label"], "outcome");
    assert_eq!(report["feature_names"], json!(["age", "income", "city", "member"]));
    assert_eq!((&report["scale"], &report["features"]), (&json!("standard"), &json!(8)));
    // The same rows in another order of columns, with one more, and without labels.
    let rows = messy(60, 5);
    place.file("test.csv", &csv(&rows, &[1, 2, 3, 4, 5]));
    place.file("shuffled.csv", &csv(&rows, &[5, 4, 0, 2, 3, 1]));
    place.file("bare.csv", &csv(&rows, &[3, 1, 4, 2]));
    let labels = place.ok("predict test.csv m").stdout;
    let run = place.ok("predict shuffled.csv m");
    assert_eq!(run.stdout, labels);
    assert_eq!(run.stderr.matches("not used: id").count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains("accuracy"), "{}", run.stderr);
    let run = place.ok("predict bare.csv m");
    assert_eq!(run.stdout, labels);
    assert!(run.stderr.contains("no labels"), "{}", run.stderr);
    let report = place.json("predict shuffled.csv m --json");
    assert!(report["accuracy"].as_f64().unwrap() > 0.85, "{report}");
    place.file("few.csv", &csv(&rows, &[1, 4, 5]));
    place.fails("predict few.csv m", 1, &["lacks columns", "income, city"]);
    // What the model was trained on verifies, in any order of columns.
    assert_eq!(place.json("verify train.csv m --json")["agrees"], true);
    place.file("again.csv", &csv(&messy(200, 0), &[5, 3, 4, 2, 1, 0]));
    assert_eq!(place.json("verify again.csv m --json")["agrees"], true);
    assert_eq!(place.json("margins again.csv m --json")["models"][0]["rows"], 200);
    let info = place.json("info m --json");
    assert_eq!((&info["label"], &info["schema"]["label"]["positive"]), (&json!("outcome"), &json!("good")));
}

#[test]
fn headerless_files_go_by_place() {
    let place = Place::new();
    let rows: String = (0..40).map(|i| format!("{},{},{}\n", i % 7, (i * 3) % 5, u8::from(i % 7 > 3))).collect();
    place.file("t.csv", &rows);
    let report = place.json("train t.csv m --json");
    assert_eq!((&report["label"], &report["feature_names"]), (&json!(3), &json!(null)));
    let bare: String = rows.lines().map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0)).collect();
    place.file("bare.csv", &bare);
    assert_eq!(place.ok("predict bare.csv m").stdout, place.ok("predict t.csv m").stdout);
    place.file("wide.csv", "1,2,3,4\n");
    place.fails("predict wide.csv m", 1, &["4 columns", "knows 2 columns"]);
}

#[test]
fn the_label_is_said_or_refused() {
    let place = Place::new();
    let prices: String = (0..50).map(|i| format!("{},{}.5\n", i % 9, i)).collect();
    place.file("price.csv", &format!("rooms,price\n{prices}"));
    place.fails("train price.csv m", 1, &["`price`", "regression target", "--label"]);
    let ids: String = (0..150).map(|i| format!("{},{},{i}\n", i % 9, i % 2)).collect();
    place.file("ids.csv", &format!("a,b,id\n{ids}"));
    place.fails("train ids.csv m", 1, &["150 different values", "identifier", "--label"]);
    let run = place.ok("train ids.csv m --label b");
    assert!(run.stderr.contains("warning") && run.stderr.contains("--drop id"), "{}", run.stderr);
    assert_eq!(place.json("train ids.csv m --label b --features a --json")["feature_names"], json!(["a"]));
    place.file("semicolon.csv", "a;b;y\n1;2;u\n3;1;v\n2;2;u\n4;0;v\n");
    assert_eq!(place.json("train semicolon.csv m --json")["feature_names"], json!(["a", "b"]));
    assert_eq!(place.json("train semicolon.csv m --json --delimiter ; --header yes")["features"], 2);
    place.fails("train semicolon.csv m --header perhaps", 2, &["yes or no"]);
}

#[test]
fn scaling_is_that_of_tables_unless_said() {
    let place = Place::with_data();
    place.ok("convert train.libsvm train.csv");
    for (words, scale) in [
        ("train.csv", "standard"),
        ("train.libsvm", "none"),
        ("wdbc", "none"),
        ("train.csv --scale none", "none"),
        ("train.libsvm --scale rank", "rank"),
    ] {
        assert_eq!(place.json(&format!("train {words} m --json"))["scale"], scale, "{words}");
        assert_eq!(place.json("info m --json")["scale"], scale, "{words}");
    }
    assert_eq!(place.json("tune train.csv --grid c1=1 --json")["scale"], "standard");
    assert_eq!(place.json("verify train.libsvm m --json")["agrees"], true);
    let run = place.ok("train wine m --kernel rbf");
    assert_eq!(run.stderr.matches("very unlike scales").count(), 1, "{}", run.stderr);
    assert!(!place.ok("train wine m --kernel rbf --scale standard").stderr.contains("unlike"));
    assert!(!place.ok("train wine m").stderr.contains("unlike"));
}

#[test]
fn info_describes_any_table() {
    let place = place();
    let report = place.json("info train.csv --json");
    let columns = report["columns"].as_array().unwrap();
    let of = |name: &str| columns.iter().find(|column| column["name"] == name).unwrap();
    assert_eq!((&of("age")["kind"], &of("age")["missing"]), (&json!("number"), &json!(18)));
    assert_eq!((&of("city")["kind"], &of("city")["distinct"]), (&json!("category"), &json!(3)));
    assert_eq!((&of("member")["kind"], &of("outcome")["role"]), (&json!("boolean"), &json!("label")));
    assert!(report["problem"].as_str().unwrap().contains("--impute"), "{report}");
    assert_eq!(report["rows"], 200);
    assert!(place.ok("info train.csv").stdout.contains("outcome"));
    place.file("odd.csv", "day,x,y\n2024-01-02,inf,\n2024-01-03,2,a\n2024-01-04,3,b\n");
    let report = place.json("info odd.csv --json");
    assert_eq!((&report["columns"][0]["kind"], &report["columns"][2]["missing"]), (&json!("date"), &json!(1)));
    // Among numbers `-` and `none` are missing; among texts they are texts.
    place.file("gaps.csv", "n,c,y\n1,-,u\n-,-,v\n-,a,u\n2,b,v\nNone,-,u\n");
    let columns = &place.json("info gaps.csv --json")["columns"];
    let of = |j: usize| ["missing", "distinct", "most"].map(|what| columns[j][what].clone());
    assert_eq!(of(0), [json!(3), json!(2), json!(null)]);
    assert_eq!(of(1), [json!(0), json!(3), json!("-")]);
}

#[test]
fn predictions_as_a_table_and_from_a_stream() {
    let place = place();
    place.ok("train train.csv m --drop id --impute --probability");
    place.file("test.csv", &csv(&messy(60, 5), &[4, 1, 2, 3]));
    place.ok("predict test.csv m out.csv");
    let table = place.read("out.csv");
    assert!(table.starts_with("label,score,probability bad,probability good\n"), "{table}");
    let labels: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    place.file("ids.csv", &csv(&messy(60, 5), &[4, 1, 0, 2, 3]));
    let run = place.ok("predict ids.csv m with-ids.csv");
    assert!(!run.stderr.contains("not used"), "{}", run.stderr);
    let with_ids = place.read("with-ids.csv");
    assert!(with_ids.starts_with("id,label,score,") && with_ids.contains("\n1000,"), "{with_ids}");
    assert_eq!(
        with_ids.lines().map(|line| line.split_once(',').unwrap().1).collect::<Vec<_>>(),
        table.lines().collect::<Vec<_>>()
    );
    place.fails("predict ids.csv m out.csv --id age", 2, &["--id", "age"]);
    let stdin = place.read("test.csv");
    let run = place.run_with("predict - m --format csv", &stdin);
    assert_eq!((run.code, run.stdout.lines().collect::<Vec<_>>()), (0, labels), "{}", run.stderr);
}

#[test]
fn a_long_stream_takes_little_memory() {
    let place = Place::with_data();
    place.ok("train train.libsvm m");
    // Sixty mebibytes of text without labels, of which some sixteen are held at a time.
    let row = place.read("test.libsvm").lines().next().unwrap().split_once(' ').unwrap().1.to_string() + "\n";
    let rows = (60 << 20) / row.len();
    let run = place.run_with("predict - m out --json", &row.repeat(rows));
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["rows"], rows);
    if let Some(peak) = report["peak_memory"].as_u64() {
        // What one part takes, thrice.
        assert!(peak < (100 << 20), "{peak}");
    }
}
