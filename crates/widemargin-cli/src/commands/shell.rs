//! `widemargin completions SHELL` and `widemargin man [DIR]`

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::output::{Output, count, print};
use clap_mangen::Man;
use std::path::Path;
use widemargin::data::write_atomically;

/// Prints a completion script.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "widemargin", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page of the program, or writes those of all commands into a folder.
pub fn manual(folder: Option<&Path>, output: &Output) -> Outcome {
    let mut command = args::command();
    command.build();
    let Some(folder) = folder else {
        return print(&String::from_utf8_lossy(&page(&command)?));
    };
    let failed = |error| Failure::Other(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let subcommands: Vec<_> = command.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
    for subcommand in std::iter::once(&command).chain(&subcommands) {
        let name = if subcommand.get_name() == "widemargin" {
            "widemargin".to_string()
        } else {
            format!("widemargin-{}", subcommand.get_name())
        };
        let page = page(&subcommand.clone().name(name.clone()))?;
        let path = folder.join(format!("{name}.1"));
        interrupt::writing(|| write_atomically(&path, |file| file.write_all(&page)))?;
    }
    output.tell(&format!("{} written to {}", count(subcommands.len() + 1, "page"), folder.display()));
    Ok(())
}

fn page(command: &clap::Command) -> Outcome<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
