//! The small languages of options, such as `c1=2^0:2^10,c2=1;10`: anything typed is understood or refused with a reason.

use crate::case::{Outcome, require};
use crate::draw::Draw;
use crate::mutate::{babble, mutated_text};
use crate::program::{decent, program};
use crate::run::Bench;
use widemargin::machine::{MACHINES, check_parameters};
use widemargin::select::Grid;
use widemargin_studies::{Amendment, Builder};

/// An option, commands that take it before any data is read, and words in its language.
struct Language {
    command: &'static [&'static str],
    option: &'static str,
    words: &'static [&'static str],
}

const COMPARE: &[&str] = &["compare", "absent.libsvm"];
const TRAIN: &[&str] = &["train", "absent.libsvm", "model"];
const TUNE: &[&str] = &["tune", "absent.libsvm", "model"];

const LANGUAGES: &[Language] = &[
    Language {
        command: TUNE,
        option: "--grid",
        words: &["c1=2^0:2^10,c2=1;10", "c=1:1024:*4", "d=0:0.5:0.1", "paper", "gamma=widths"],
    },
    Language { command: TRAIN, option: "--class-weight", words: &["A=1,B=2", "balanced", "+1=0.5", "a=b=3"] },
    Language { command: TRAIN, option: "--memory", words: &["2G", "512M", "1.5KiB", "7", "1tb"] },
    Language { command: TRAIN, option: "--gamma", words: &["scale", "auto", "0.5", "1e-300"] },
    Language { command: TRAIN, option: "--bias", words: &["free", "none", "1.5"] },
    Language { command: TRAIN, option: "--tol", words: &["1e-3", "0.1"] },
    Language { command: TRAIN, option: "--machine", words: &["svm", "odm", "mcodm"] },
    Language {
        command: COMPARE,
        option: "--machines",
        words: &["svm:rbf:loo-loss,odm", "ldm:ovo", "mcsvm:own:cv", "lssvm:fixed", "odm:c1=2^0:2^4:d=0.2:gamma=widths"],
    },
    Language { command: COMPARE, option: "--grid", words: &["svm:c=1;10", "odm:paper", "staged"] },
    Language { command: COMPARE, option: "--set", words: &["odm.c1=10", "svm.c=2^3"] },
    Language { command: COMPARE, option: "--kernels", words: &["linear,rbf", "poly", "sigmoid,laplacian"] },
];

/// Says something in one of the languages.
pub fn run(seed: u64, _: &Bench) -> Outcome {
    let draw = &mut Draw::new(seed, 5);
    let language = &LANGUAGES[draw.below(LANGUAGES.len())];
    let text = match draw.below(8) {
        0 => babble(draw, language.words),
        1 => draw.pick(language.words).to_string(),
        _ => {
            let word = draw.pick(language.words);
            mutated_text(draw, word)
        }
    };
    let text = text.replace('\0', "");
    in_process(draw, &text)?;
    // Each start of the program takes longer than a thousand calls.
    if !seed.is_multiple_of(4) {
        return Ok(vec!["called".into()]);
    }
    let folder = tempfile::tempdir()?;
    let option = format!("{}={text}", language.option);
    let words = [language.command, &[option.as_str()]].concat();
    let output = program(folder.path(), &words)?.output()?;
    decent(&output)?;
    require(output.status.code() != Some(0), || format!("{words:?} went well without data"))?;
    let left = std::fs::read_dir(folder.path())?.count();
    require(left == 0, || format!("{words:?} failed and left {left} files"))?;
    Ok(vec![format!("program {}", language.option)])
}

/// What the crates read themselves: grids, contestants, and the parameters of machines.
fn in_process(draw: &mut Draw, text: &str) -> Result<(), crate::case::Failure> {
    if let Ok(grid) = Grid::parse(text) {
        let points = grid.points();
        require((1..=1_000_000).contains(&points), || format!("{text:?} is a grid of {points} points"))?;
        if points <= 1000 {
            require(grid.positions().len() == points, || format!("{text:?} has not the points it says"))?;
        }
    }
    let machine = MACHINES[draw.below(MACHINES.len())];
    if !machine.parameters().is_empty() {
        let name = machine.parameters()[draw.below(machine.parameters().len())].name;
        // Refusals are fine, here and below.
        let _ = check_parameters(machine, &[(name.to_string(), text.into())]);
    }
    let _ = (Builder::parse(text), Amendment::grid(text), Amendment::set(text));
    Ok(())
}
