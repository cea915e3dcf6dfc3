//! Reports as pages: one HTML file each, with everything inside and nothing fetched. The conclusion stands first, then tables that
//! sort and pictures that answer, and last what it takes to repeat the run. Without scripts, and on paper, all of it is shown.

pub mod chart;

use crate::sheet::{Sheet, escaped};
use chart::STYLE;
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

/// A page in the making.
pub struct Page {
    title: String,
    body: String,
    /// Choices so far, which need names of their own.
    choices: usize,
}

impl Page {
    /// A page with this title that opens with what came out, in sentences.
    pub fn new(title: &str, conclusion: &[String]) -> Self {
        let sentences: String = conclusion.iter().map(|words| format!("<p>{}</p>\n", escaped(words))).collect();
        let body = format!("<section id=\"conclusion\" aria-label=\"Conclusion\">\n{sentences}</section>\n");
        Self { title: title.into(), body, choices: 0 }
    }

    /// A new section.
    pub fn heading(&mut self, words: &str) {
        let _ = writeln!(self.body, "<h2>{}</h2>", escaped(words));
    }

    /// A paragraph in small letters.
    pub fn note(&mut self, words: &str) {
        if !words.is_empty() {
            let _ = writeln!(self.body, "<p class=\"note\">{}</p>", escaped(words));
        }
    }

    /// A table that sorts.
    pub fn table(&mut self, caption: &str, sheet: &Sheet) {
        let _ = writeln!(self.body, "<div class=\"wide\" tabindex=\"0\">{}</div>", sheet.html(caption));
    }

    /// A picture, and what to know of it.
    pub fn figure(&mut self, svg: &str, caption: &str) {
        self.body += &figure(svg, caption, "");
    }

    /// Several pictures of which one is shown, chosen by name.
    pub fn choice(&mut self, label: &str, pictures: &[(String, String)], caption: &str) {
        self.choices += 1;
        let id = format!("choice{}", self.choices);
        if pictures.len() > 1 {
            let options: String =
                pictures.iter().map(|(name, _)| format!("<option>{}</option>", escaped(name))).collect();
            let _ = writeln!(
                self.body,
                "<div class=\"choice\"><label for=\"{id}\">{}</label><select id=\"{id}\" data-choice>{options}</select></div>",
                escaped(label)
            );
        }
        for (_, svg) in pictures {
            self.body += &figure(svg, caption, &format!(" data-of=\"{id}\""));
        }
    }

    /// Boxes to hide and show series in all pictures that follow.
    pub fn boxes(&mut self, label: &str, names: &[String]) {
        let _ = writeln!(self.body, "<fieldset><legend>{}</legend>", escaped(label));
        for (number, name) in names.iter().enumerate() {
            let name = escaped(name);
            let _ =
                writeln!(self.body, "<label><input type=\"checkbox\" checked data-shows=\"{number}\"> {name}</label>");
        }
        self.body += "</fieldset>\n";
    }

    /// The whole page; the seed is what the run depended on besides the command.
    pub fn finish(mut self, seed: u64) -> String {
        self.heading("To repeat this");
        let parallel = std::thread::available_parallelism().map_or(1, usize::from);
        let facts = [
            ("Command", format!("<code>{}</code>", escaped(&command()))),
            ("Version", format!("widemargin {}", env!("CARGO_PKG_VERSION"))),
            ("Seed", seed.to_string()),
            ("Date", date(SystemTime::now())),
            ("Machine", format!("{} {}, {parallel} processors", std::env::consts::OS, std::env::consts::ARCH)),
        ];
        let facts: String = facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{value}</dd>\n")).collect();
        let title = escaped(&self.title);
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"generator\" content=\"widemargin {}\">\n<title>{title}</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n\
             <a class=\"skip\" href=\"#main\">To the content</a>\n<main id=\"main\">\n<h1>{title}</h1>\n{}<dl>\n{facts}</dl>\n</main>\n\
             <script>\n{}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            include_str!("page.css"),
            self.body,
            include_str!("page.js")
        )
    }
}

fn figure(svg: &str, caption: &str, of: &str) -> String {
    let answers = svg.contains("data-plot=") || svg.contains("data-tip=");
    let help =
        if answers { " The pointer, or the arrow keys once the picture is chosen by Tab, read values." } else { "" };
    let group =
        if answers { " tabindex=\"0\" role=\"group\" aria-label=\"Picture; arrow keys read values\"" } else { "" };
    format!(
        "<figure{of}>\n<div class=\"plot\"{group}>{svg}</div>\n<output aria-live=\"polite\"></output>\n\
         <figcaption>{}{help}</figcaption>\n</figure>\n",
        escaped(caption)
    )
}

/// What was typed, as a shell would take it again.
fn command() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+^%@".contains(c);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("widemargin".to_string()).chain(words).collect::<Vec<_>>().join(" ")
}

/// The day and the minute, UTC.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, minutes) = ((seconds / 86_400) as i64, seconds % 86_400 / 60);
    // Days since the first of March of the year 0, in eras of 400 years (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let (month, day) = ((5 * of_year + 2) / 153, of_year - (153 * ((5 * of_year + 2) / 153) + 2) / 5 + 1);
    let (year, month) =
        (year_of_era + era * 400 + i64::from(month >= 10), if month < 10 { month + 3 } else { month - 9 });
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// `a`, `a and b`, `a, b and c`
pub fn list<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().into(),
        [firsts @ .., last] => {
            let firsts: Vec<&str> = firsts.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", firsts.join(", "), last.as_ref())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn days_of_the_calendar() {
        let at = |seconds: u64| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00 UTC");
        assert_eq!(at(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(at(1_767_225_599), "2025-12-31 23:59 UTC");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00 UTC");
    }

    #[test]
    fn lists_are_sentences() {
        assert_eq!([list(&["a"]), list(&["a", "b"]), list(&["a", "b", "c"])], ["a", "a and b", "a, b and c"]);
    }

    #[test]
    fn a_page_escapes_what_it_is_told() {
        let mut page = Page::new("<t>", &["a < b".into()]);
        page.choice("set", &[("x&y".into(), "<svg></svg>".into()), ("z".into(), "<svg></svg>".into())], "");
        let html = page.finish(7);
        for part in ["<h1>&lt;t&gt;</h1>", "a &lt; b", "x&amp;y", "<dd>7</dd>", "UTC"] {
            assert!(html.contains(part), "{part}");
        }
        assert!(!html.contains("http://") && !html.contains("https://"));
    }
}
