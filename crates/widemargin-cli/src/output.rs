//! Where words go: results to standard output, everything for people to standard error.

use crate::failure::Outcome;
use crate::interrupt;
use comfy_table::{LineStyle, Table, TableStyle};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use widemargin::Error;
use widemargin::data::write_atomically;

/// What may be said, and how.
pub struct Output {
    /// One JSON object on standard output, and nothing else there.
    pub json: bool,
    /// Nothing but errors on standard error.
    quiet: bool,
}

impl Output {
    /// From the global options.
    pub fn new(json: bool, quiet: bool) -> Self {
        Self { json, quiet }
    }

    /// Whether somebody watches standard error.
    pub fn watched(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Whether standard error is read later, by people who did not ask for quiet.
    pub fn wants_lines(&self) -> bool {
        !self.quiet && !io::stderr().is_terminal()
    }

    /// Tells people something, unless they want quiet.
    pub fn tell(&self, text: &str) {
        if !self.quiet {
            // A closed standard error is no reason to fail.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Warns people, unless they want quiet.
    pub fn warn(&self, text: &str) {
        self.tell(&format!("warning: {text}"));
    }

    /// Prints the one JSON object.
    pub fn object(&self, value: &impl Serialize) -> Outcome {
        let text = serde_json::to_string(value).map_err(io::Error::from)?;
        print(&format!("{text}\n"))
    }
}

/// Whether a path means standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Refuses to mix several things on standard output.
pub fn one_on_stdout(wanted: &[(&str, bool)]) -> Outcome {
    let names: Vec<&str> = wanted.iter().filter(|(_, wanted)| *wanted).map(|(name, _)| *name).collect();
    match names.len() {
        0 | 1 => Ok(()),
        _ => Err(Error::Usage(format!("only one of these can go to standard output: {}", names.join(", "))).into()),
    }
}

/// Writes a text to a file, or prints it if the path is `-`.
pub fn write_text(path: &Path, text: &str) -> Outcome {
    if is_stdout(path) {
        return print(text);
    }
    interrupt::writing(|| write_atomically(path, |file| file.write_all(text.as_bytes())))
}

/// Prints to standard output.
pub fn print(text: &str) -> Outcome {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Lines of `name  text`, the texts aligned.
#[derive(Default)]
pub struct Summary(Vec<(&'static str, String)>);

impl Summary {
    /// Adds a line.
    pub fn line(&mut self, name: &'static str, text: impl Into<String>) -> &mut Self {
        self.0.push((name, text.into()));
        self
    }

    /// The lines.
    pub fn lines(&self) -> &[(&'static str, String)] {
        &self.0
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let width = self.0.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines: Vec<String> = self.0.iter().map(|(name, text)| format!("{name:width$}  {text}")).collect();
        f.write_str(&lines.join("\n"))
    }
}

/// A number for people: about five digits.
pub fn short(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        "0".into()
    } else if !(1e-3..1e6).contains(&size) {
        format!("{number:.2e}")
    } else if size >= 100.0 {
        format!("{number:.2}")
    } else {
        format!("{number:.4}")
    }
}

/// A share for people: `83.33 %`.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// A duration for people.
pub fn seconds(seconds: f64) -> String {
    if seconds < 0.001 { "under 1 ms".into() } else { format!("{seconds:.3} s") }
}

/// A count and its noun: `1 row`, `2 rows`.
pub fn count(number: usize, noun: &str) -> String {
    let plural = match noun {
        "class" => "classes".into(),
        noun => format!("{noun}s"),
    };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {plural}") }
}

/// An empty table with one line under its header.
pub fn table(header: Vec<String>) -> Table {
    const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));
    let mut table = Table::new();
    table.load_style(STYLE).set_header(header);
    table
}
