//! The pages that `--report` writes, and what `compare` says in words.

mod common;
use common::{Place, rows};

/// A page that stands by itself: nothing is fetched, the conclusion is first, it can be repeated.
fn whole(place: &Place, name: &str, command: &str) -> String {
    let page = place.read(name);
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{name}");
    assert!(page.len() < 2_000_000, "{name} has {} bytes", page.len());
    for fetched in ["src=\"http", "href=\"http", "url(", "@import", "fetch("] {
        assert!(!page.contains(fetched), "{name} has {fetched}");
    }
    let first = page.find("<section id=\"conclusion\"").expect("a conclusion");
    assert!(first < page.find("<table").unwrap_or(usize::MAX) && first < page.find("<figure").unwrap_or(usize::MAX));
    for part in [&format!("<code>widemargin {command}</code>"), "<dt>Seed</dt>", "<dt>Version</dt>", " UTC</dd>"] {
        assert!(page.contains(part), "{name} lacks {part}");
    }
    let shown = page.split("<script>").next().unwrap();
    assert!(!shown.contains("NaN") && !shown.contains(">inf<"), "{name}");
    page
}

#[test]
fn a_comparison() {
    let place = Place::with_data();
    let command = "compare train.libsvm test.libsvm --machines odm,ldm,svm --repeats 3 --budget 2 --report page.html";
    let run = place.ok(command);
    let page = whole(&place, "page.html", command);
    for part in
        ["Test accuracy on each split", "margin / ‖w‖", "<select", "data-plot", "it takes 7 data sets", "search s"]
    {
        assert!(page.contains(part), "{part}");
    }
    // Every table stands under its own heading.
    let tables = [
        ("<h2>Accuracy</h2>", "Test accuracy in percent"),
        ("<h2>Further scores</h2>", "Further scores of the test rows"),
        ("<h2>Margins, certificates and times</h2>", "Training margins divided by"),
        ("<h2>What was searched</h2>", "What was searched on the training rows"),
    ];
    for (heading, caption) in tables {
        let (_, below) = page.split_once(heading).expect(heading);
        assert!(below.split("<h2>").next().unwrap().contains(caption), "{heading}: {caption}");
    }
    // What the page concludes, the terminal does.
    let last: Vec<&str> = run.stdout.trim_end().lines().rev().take(3).collect();
    assert!(last.iter().any(|line| line.contains("ignificant")), "{last:?}");
    assert!(run.stdout.contains("a test over data sets takes at least six"), "{}", run.stdout);
    assert!(page.contains("ignificant"));
    assert!(
        place.ok("compare train.libsvm --machines svm --fixed --repeats 2 --report -").stdout.starts_with("<!DOCTYPE")
    );
    place.fails("compare train.libsvm --machines svm --fixed --report - --json", 2, &["standard output"]);
}

#[test]
fn enough_data_sets_are_ranked() {
    let place = Place::new();
    let names: Vec<String> = (0..7).map(|i| format!("set{i}.libsvm")).collect();
    names.iter().zip(0..).for_each(|(name, shift)| place.file(name, &rows(40, 11 * shift)));
    place.ok(&format!("compare {} --machines odm,svm,mamc --fixed --repeats 3 --report page.html", names.join(" ")));
    let page = place.read("page.html");
    assert!(page.contains("Average rank over 7 data sets") && !page.contains("No critical-difference"));
}

#[test]
fn conclusions_say_what_was_tested() {
    let place = Place::with_data();
    let said =
        |words: &str| place.json(&format!("compare train.libsvm {words} --fixed --json"))["conclusion"].to_string();
    let two = said("--machines odm,mamc --repeats 2");
    assert!(two.contains("No difference was tested") || two.contains("No significant difference"), "{two}");
    let many = place.json("compare train.libsvm test.libsvm --machines odm,lssvm,svm --repeats 4 --fixed --json");
    assert!(many["conclusion"][0].as_str().unwrap().contains("svm"), "{many}");
    for entry in many["datasets"].as_array().unwrap().iter().flat_map(|set| set["entries"].as_array().unwrap()) {
        let (p, adjusted) = (entry["p"].as_f64(), entry["p_adjusted"].as_f64());
        assert_eq!(p.is_some(), adjusted.is_some());
        assert!(p.unwrap_or(0.0) <= adjusted.unwrap_or(0.0));
    }
}

#[test]
fn a_search() {
    let place = Place::with_data();
    let command =
        "tune train.libsvm --machine svm --kernel rbf --grid c=2^0:2^2,gamma=0.25:0.5:0.25 --report page.html";
    place.ok(command);
    let page = whole(&place, "page.html", command);
    for part in ["The best of 6 points", "c and gamma", "mark best", "Every point", "duality gap of"] {
        assert!(page.contains(part), "{part}");
    }
    place.ok("tune train.libsvm --machine svm --kernel rbf --grid c=1;4,gamma=0.25;0.5 --score balanced_accuracy --report s.html");
    assert!(place.read("s.html").contains("balanced accuracy of rows left out over c and gamma"));
    // By leave-one-out there are no folds to draw.
    place.ok("tune train.libsvm --report loo.html");
    assert!(
        !place.read("loo.html").contains("<h2>Folds</h2>") && place.read("loo.html").contains("leave-one-out margins")
    );
    place.fails("tune train.libsvm --report train.libsvm", 2, &["train.libsvm"]);
}

#[test]
fn margins_of_models() {
    let place = Place::with_data();
    place.ok("train train.libsvm odm --probability");
    place.ok("train train.libsvm svm --machine svm");
    let command = "margins test.libsvm odm svm --report page.html";
    place.ok(command);
    let page = whole(&place, "page.html", command);
    for part in ["false positive rate", "How often probabilities come true", " (area ", "Certificates"] {
        assert!(page.contains(part), "{part}");
    }
    // Rows with larger probabilities more often have the label; a model without probabilities has no name there.
    place.ok("train wdbc sure --probability");
    place.ok("train wdbc plain --machine svm");
    place.ok("margins wdbc sure plain --report sure.html");
    let page = place.read("sure.html");
    let (_, below) = page.split_once("<h2>Calibration</h2>").unwrap();
    assert!(below.contains("predicted probability of malignant"), "{below}");
    let plot = below.split_once("data-plot=\"").unwrap().1.split('"').next().unwrap().replace("&quot;", "\"");
    let plot: serde_json::Value = serde_json::from_str(&plot).unwrap();
    let points = plot["series"][0]["points"].as_array().unwrap();
    let found = |at: usize| points[at][1].as_f64().unwrap();
    assert!(found(0) < 0.1 && found(points.len() - 1) > 0.9, "{points:?}");
    assert!(!below.split("</svg>").next().unwrap().contains(">plain (svm)<"));
    place.ok("margins test.libsvm svm --report plain.html");
    assert!(place.read("plain.html").contains("train with --probability"));
    place.ok("train iris many --scale minmax");
    place.ok("margins iris many --report many.html");
    assert!(!place.read("many.html").contains("false positive rate"));
    // Of many classes it is the probability of the most probable one that is held against what was found.
    place.ok("train iris known --scale minmax --probability");
    place.ok("margins iris known --report known.html");
    let page = place.read("known.html");
    assert!(
        page.contains("predicted probability of the most probable label") && page.contains("known (mcodm) (error "),
        "{page}"
    );
}

#[test]
fn a_sweep() {
    let place = Place::with_data();
    let command = "sweep train.libsvm --machines svm --over c=2^-4:2^4 --repeats 3 --fixed --report page.html";
    place.ok(command);
    let page = whole(&place, "page.html", command);
    for part in ["is best at c = ", "class=\"band\"", "standard deviation", "2^-4"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn an_audit() {
    let place = Place::new();
    // Every ninth label is swapped.
    let swapped = |(i, line): (usize, &str)| match (i % 9, line.split_once(' ')) {
        (4, Some(("+1", rest))) => format!("-1 {rest}\n"),
        (4, Some((_, rest))) => format!("+1 {rest}\n"),
        _ => format!("{line}\n"),
    };
    place.file("t.libsvm", &rows(120, 0).lines().enumerate().map(swapped).collect::<String>());
    let command = "audit t.libsvm --report page.html";
    let run = place.ok(command);
    let page = whole(&place, "page.html", command);
    for part in [
        " of the 120 labels of t are expected to be wrong",
        "Judged by the average of odm over ",
        "nearest rows that contradict it",
        "leave-one-out margin",
        "predicted probability of +1",
        "expected calibration error",
        "slope and an offset",
        "The rows that bend the model most",
        "P(label)",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert_eq!(page.matches("class=\"diamond\"").count(), 1 + 20);
    // The terminal and the page say the same of the first suspect.
    let row = |text: &str| text.split_whitespace().next().map(str::to_string);
    let first = row(run.stdout.lines().nth(2).unwrap()).unwrap();
    assert!(page.contains(&format!("<tbody>\n<tr><td>{first}</td>")), "{first}: {}", run.stdout);
    // Every row is in a bin.
    let bins = page.split("<caption>The bins</caption>").nth(1).unwrap().split("</table>").next().unwrap();
    let last = |line: &str| line.rsplit("\">").next()?.split('<').next()?.parse::<usize>().ok();
    assert_eq!(bins.lines().filter(|line| line.starts_with("<tr><td")).filter_map(last).sum::<usize>(), 120);
    let many = "audit iris --machine mcodm --top 7 --report many.html";
    place.ok(many);
    let page = whole(&place, "many.html", many);
    assert!(page.contains("probability of the likely label") && page.contains("The 7 rows most likely"));
    assert_eq!(page.matches("class=\"diamond\"").count(), 1 + 7);
    assert!(place.ok("audit t.libsvm --report -").stdout.starts_with("<!DOCTYPE"));
    place.fails("audit t.libsvm --report - --json", 2, &["standard output"]);
    place.fails("audit t.libsvm --report t.libsvm", 2, &["t.libsvm"]);
}
