//! The command line: parse, call, print. Whatever computes is in the library.

mod args;
mod commands;
mod failure;
mod files;
mod interrupt;
mod learning;
mod machines;
mod output;
mod page;
mod places;
mod progress;
mod resources;
mod sheet;
mod values;

use args::{Cli, Command};
use clap::FromArgMatches;
use failure::{Failure, Outcome};
use output::Output;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    apologise_for_panics();
    let matches = args::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    interrupt::install();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: Cli) -> Outcome {
    if let Some(threads) = cli.common.threads {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
        pool.map_err(|error| Failure::Other(format!("cannot start {threads} threads: {error}")))?;
    }
    let output = Output::new(cli.common.json, cli.common.quiet);
    match cli.command {
        Command::Train(args) => commands::train::run(&args, cli.common.seed, &output),
        Command::Predict(args) => commands::predict::run(&args, &output),
        Command::Compare(args) => commands::compare::run(&args, cli.common.seed, &output),
        Command::Reproduce(args) => commands::reproduce::run(&args, cli.common.seed, &output),
        Command::Sweep(args) => commands::sweep::run(&args, cli.common.seed, &output),
        Command::Tune(args) => commands::tune::run(&args, cli.common.seed, &output),
        Command::CrossValidate(args) => commands::cross_validate::run(&args, cli.common.seed, &output),
        Command::Split(args) => commands::split::run(&args, cli.common.seed, &output),
        Command::Audit(args) => commands::audit::run(&args, cli.common.seed, &output),
        Command::Margins(args) => commands::margins::run(&args, cli.common.seed, &output),
        Command::Verify(args) => commands::verify::run(&args, &output),
        Command::Info(args) => commands::info::run(&args, &output),
        Command::Coefficients(args) => commands::coefficients::run(&args, &output),
        Command::Export(args) => commands::export::run(&args, &output),
        Command::Convert(args) => commands::convert::run(&args, &output),
        Command::Completions { shell } => commands::shell::completions(shell),
        Command::Help { topic } => commands::help::run(topic.as_deref()),
        Command::Man { folder } => commands::shell::manual(folder.as_deref(), &output),
    }
}

/// A panic is a bug of ours: say so in two lines, and end at once, on whichever thread it happens.
fn apologise_for_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let message = text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let place = panic.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        widemargin::data::drop_unfinished_files();
        // Nobody is left to tell if even standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "error: widemargin has a bug, sorry: {message}{place}\n\
             Please report it with the command you ran. No file was left half-written."
        );
        std::process::exit(1);
    }));
}
