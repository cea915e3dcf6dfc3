//! A table that can be printed for a terminal, a page, a paper or another program.

use crate::output::table;
use clap::ValueEnum;
use comfy_table::CellAlignment;

/// `--style`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Style {
    /// For a terminal
    #[default]
    Text,
    /// For Markdown
    Markdown,
    /// Comma-separated values
    Csv,
    /// A LaTeX tabular
    Latex,
}

/// An average over data sets beside the average rank over the same: where no data set has figures of every machine, there is
/// no rank, and no average.
pub fn average(rank: f64, value: f64) -> String {
    if rank > 0.0 { format!("{value:.2}") } else { "N/A".into() }
}

/// A header and rows of the same length.
pub struct Sheet {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    /// So many of the last rows sum up the others.
    totals: usize,
    /// So many columns hold words and stand on the left.
    words: usize,
}

impl Sheet {
    /// An empty table of which the first `words` columns are words.
    pub fn new<S: Into<String>>(header: impl IntoIterator<Item = S>, words: usize) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new(), totals: 0, words }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// Adds a row that sums up those before: it stays at the end however the others are sorted.
    pub fn total<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.row(cells);
        self.totals += 1;
    }

    /// The table as text that ends with a line end.
    pub fn print(&self, style: Style) -> String {
        match style {
            Style::Text => self.text(),
            Style::Markdown => self.markdown(),
            Style::Csv => self.csv(),
            Style::Latex => self.latex(),
        }
    }

    fn text(&self) -> String {
        let mut table = table(self.header.clone());
        self.rows.iter().for_each(|row| {
            table.add_row(row.clone());
        });
        let numbers = table.column_iter_mut().skip(self.words);
        numbers.for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table.trim_fmt() + "\n"
    }

    fn markdown(&self) -> String {
        let cell = |cell: &String| cell.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = |cells: &[String]| format!("| {} |\n", cells.iter().map(cell).collect::<Vec<_>>().join(" | "));
        let rule = (0..self.header.len()).map(|at| if at < self.words { "---" } else { "--:" });
        let rule: Vec<String> = rule.map(str::to_string).collect();
        [line(&self.header), line(&rule)].into_iter().chain(self.rows.iter().map(|row| line(row))).collect()
    }

    fn csv(&self) -> String {
        let trimmed = |cells: &Vec<String>| cells.iter().map(|cell| cell.trim().to_string()).collect();
        csv_text(std::iter::once(&self.header).chain(&self.rows).map(trimmed))
    }

    fn latex(&self) -> String {
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| for_latex(cell.trim())).collect();
            format!("{} \\\\\n", cells.join(" & "))
        };
        let columns: String = (0..self.header.len()).map(|at| if at < self.words { 'l' } else { 'r' }).collect();
        let rows: String = self.rows.iter().map(line).collect();
        format!(
            "\\begin{{tabular}}{{{columns}}}\n\\hline\n{}\\hline\n{rows}\\hline\n\\end{{tabular}}\n",
            line(&self.header)
        )
    }

    /// The table for a page, with a button in the head of each column.
    pub fn html(&self, caption: &str) -> String {
        let class = |at: usize| if at < self.words { "" } else { " class=\"number\"" };
        let line = |cells: &Vec<String>| {
            let cell = |(at, cell): (usize, &String)| format!("<td{}>{}</td>", class(at), escaped(cell.trim()));
            format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
        };
        let head = |(at, name): (usize, &String)| {
            format!("<th scope=\"col\"{}><button type=\"button\">{}</button></th>", class(at), escaped(name))
        };
        let header: String = self.header.iter().enumerate().map(head).collect();
        let (rows, totals) = self.rows.split_at(self.rows.len() - self.totals);
        let foot: String = totals.iter().map(line).collect();
        let foot = if foot.is_empty() { foot } else { format!("<tfoot>\n{foot}</tfoot>\n") };
        format!(
            "<table>\n<caption>{}</caption>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{}</tbody>\n{foot}</table>\n",
            escaped(caption),
            rows.iter().map(line).collect::<String>()
        )
    }
}

/// Text inside HTML or SVG.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn for_latex(text: &str) -> String {
    let sign = |sign: char| match sign {
        '±' => "$\\pm$".into(),
        '●' => "$\\bullet$".into(),
        '○' => "$\\circ$".into(),
        '▲' => "$\\uparrow$".into(),
        '▼' => "$\\downarrow$".into(),
        '‖' => "$\\|$".into(),
        '–' => "--".into(),
        '^' => "\\^{}".into(),
        '&' | '%' | '_' | '#' | '$' | '{' | '}' => format!("\\{sign}"),
        other => other.to_string(),
    };
    text.chars().map(sign).collect()
}

/// Rows of cells, all of the same number, as CSV.
pub fn csv_text(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    rows.for_each(|cells| table.write_record(&cells).expect("memory takes rows of one length"));
    String::from_utf8(table.into_inner().expect("memory can be flushed")).expect("cells are text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet() -> Sheet {
        let mut sheet = Sheet::new(["data", "odm, tuned"], 1);
        sheet.row(["a_b", "80.1 ± 2.0 ●"]);
        sheet.row(["short"]);
        sheet
    }

    #[test]
    fn every_style_has_every_cell() {
        assert!(sheet().print(Style::Text).contains("80.1 ± 2.0 ●"));
        assert_eq!(sheet().print(Style::Csv), "data,\"odm, tuned\"\na_b,80.1 ± 2.0 ●\nshort,\n");
        let markdown = "| data | odm, tuned |\n| --- | --: |\n| a_b | 80.1 ± 2.0 ● |\n| short |  |\n";
        assert_eq!(sheet().print(Style::Markdown), markdown);
        let latex = sheet().print(Style::Latex);
        assert!(latex.contains("a\\_b & 80.1 $\\pm$ 2.0 $\\bullet$ \\\\"), "{latex}");
        let html = sheet().html("a < b");
        assert!(html.contains("<td class=\"number\">80.1 ± 2.0 ●</td>") && html.contains("a &lt; b"));
        let mut with_total = sheet();
        with_total.total(["all", "9"]);
        assert!(with_total.html("").contains("<tfoot>\n<tr><td>all</td>"));
        assert!(with_total.print(Style::Csv).ends_with("all,9\n"));
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
