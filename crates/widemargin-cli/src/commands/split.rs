//! `widemargin split DATA TRAIN TEST`

use crate::args::SplitArgs;
use crate::failure::Outcome;
use crate::interrupt;
use crate::output::{Output, count, is_stdout};
use crate::places::Places;
use crate::progress::Spinner;
use serde::Serialize;
use std::path::Path;
use widemargin::Error;
use widemargin::data::{Divided, ReadOptions, divide_dataset, divide_file, embedded};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    rows: usize,
    train: usize,
    test: usize,
    classes: Vec<Class<'a>>,
}

/// Rows of a class on either side.
#[derive(Serialize)]
struct Class<'a> {
    label: &'a str,
    train: usize,
    test: usize,
}

/// Cuts a file in two.
pub fn run(args: &SplitArgs, seed: u64, output: &Output) -> Outcome {
    if [&args.train, &args.test].iter().any(|path| is_stdout(path)) {
        return Err(Error::Usage("split writes two files, not standard output".into()).into());
    }
    Places::default().reads(&args.data).writes(Some(&args.train)).writes(Some(&args.test)).check()?;
    let spinner = Spinner::start(output, format!("splitting {}", args.data));
    let (train, test) = (args.train.to_string_lossy(), args.test.to_string_lossy());
    let inside = if Path::new(&args.data).exists() { None } else { embedded(&args.data) };
    let divided = interrupt::writing(|| match inside {
        Some(data) => divide_dataset(data, args.test_size, seed, &train, &test),
        // Any label can be kept in proportion.
        None => {
            let options = ReadOptions { any_label: true, ..args.input.options() };
            divide_file(&args.data, &options, args.test_size, seed, &train, &test)
        }
    })?;
    drop(spinner);
    let report = report(&divided);
    if output.json {
        return output.object(&report);
    }
    output.tell(&format!("{train}: {}, {test}: {}", count(report.train, "row"), count(report.test, "row")));
    Ok(())
}

fn report(divided: &Divided) -> Report<'_> {
    let labels = &divided.labels;
    let rows = |rows: &[usize], class: usize| rows.iter().filter(|&&row| labels.codes()[row] as usize == class).count();
    let of = |(place, label)| Class { label, train: rows(&divided.train, place), test: rows(&divided.test, place) };
    Report {
        rows: labels.codes().len(),
        train: divided.train.len(),
        test: divided.test.len(),
        classes: labels.names().iter().map(String::as_str).enumerate().map(of).collect(),
    }
}
