//! What a developer runs: `cargo xtask help` lists it. No dependencies, so that it starts within seconds of a clone.

mod bench;
mod commands;
mod deny;
mod fuzz;
mod python;
mod run;
mod site;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test [--quick] [--no-licences] [--no-peers] [--no-python] [--no-clusters] [--no-guide] [--no-browser]
                 [--only NAME]
    Everything that must hold before a change is merged, step by step; stops at the first step that fails. A step that
    cannot run here (no python3, no pip) fails too, unless it is left out by an option.
    --quick      format, lints and tests only: the inner loop
    --no-licences  leave out the licences of the dependencies, which needs cargo-deny
    --no-peers   leave out the comparison with LIBLINEAR, LIBSVM and scikit-learn, which needs pip
    --no-python  leave out the Python package, which needs pip too, and with it the clusters
    --no-clusters  leave out the clusters, which need dask and Spark
    --no-guide   leave out the guide, which needs pip
    --no-browser leave out the pages in a browser, which need Chromium and ChromeDriver
    --only NAME  only the steps with this in their name, such as python
cargo xtask bench [--quick] [--only NAME,…] [--data DIR] [--liblinear DIR] [--growth] [--again]
    Our speed, memory and accuracy beside those of other programs, into BENCHMARKS.md. Rows measured before are kept.
    --quick          small data, one round, nothing written: does it work?
    --only NAME,…    only these rows (an unknown name lists them)
    --data DIR       also the real sets in DIR: letter, mnist, news20
    --liblinear DIR  LIBLINEAR's C sources, to time its own reader (the Python package has none)
    --growth         only the figure of growth, docs/growth.svg
    --again          measure again what was measured before
cargo xtask bench-data WHAT DIR
    One of its data sets, such as dense:1000:50
cargo xtask fuzz [TARGET] [--count N] [--seconds S] [--seed N] [--jobs N]
    Random cases against what RELIABILITY.md promises; a failure names the seed that repeats it.
    TARGET     readers, models, journals, languages, training or faults; all of them one after the other unless told
    --count N, --seconds S  how many cases of a target, or for how long (the number that the tests run unless told)
    --seed N   the first seed (0)
    --jobs N   cases at the same time (one a processor)
cargo xtask docs
    The guide as a site that opens from disk, target/site/index.html
cargo xtask help
    This text
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.split_first() {
        Some((&"test", options)) => match test::Options::read(options) {
            Ok(options) => test::all(options),
            Err(unknown) => wrong(&format!("cargo xtask test has no option {unknown}")),
        },
        Some((&"docs", &[])) => match site::build() {
            Ok(_) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("error: {}", failure.reason);
                ExitCode::FAILURE
            }
        },
        Some((&"docs", _)) => wrong("cargo xtask docs takes no options"),
        Some((&"bench", options)) => bench::all(options),
        Some((&"fuzz", options)) => fuzz::all(options),
        Some((&"bench-data", &[what, folder])) => bench::write_data(what, folder),
        Some((&"bench-data", _)) => wrong("cargo xtask bench-data takes a shape and a folder"),
        None | Some((&("help" | "--help" | "-h"), _)) => {
            print!("{HELP}");
            ExitCode::SUCCESS
        }
        Some((command, _)) => wrong(&format!("there is no command {command}")),
    }
}

fn wrong(message: &str) -> ExitCode {
    eprint!("error: {message}\n\n{HELP}");
    ExitCode::from(2)
}

/// Whether `cargo xtask WORD` means something.
fn knows(word: &str) -> bool {
    HELP.lines().any(|line| line.strip_prefix("cargo xtask ").and_then(|l| l.split(' ').next()) == Some(word))
}
