//! `widemargin completions SHELL` and `widemargin man [DIR]`

use crate::args;
use crate::failure::{Failure, Outcome};
use crate::output::{Output, count, print, write_text};
use clap_mangen::Man;
use std::path::Path;

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
        return print(&String::from_utf8_lossy(&render(&Man::new(command))?));
    };
    let failed = |error| Failure::Other(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let subcommands = command.get_subcommands().filter(|c| c.get_name() != "help").cloned();
    let pages: Vec<Man> = std::iter::once(command.clone()).chain(subcommands).map(Man::new).collect();
    for page in &pages {
        let (path, text) = (folder.join(page.get_filename()), render(page)?);
        write_text(&path, &String::from_utf8_lossy(&text))?;
    }
    output.tell(&format!("{} written to {}", count(pages.len(), "page"), folder.display()));
    Ok(())
}

fn render(page: &Man) -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    page.render(&mut text)?;
    Ok(text)
}
