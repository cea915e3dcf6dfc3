//! Figures as people read them.

use crate::sheet::{Sheet, Style};
use widemargin::metrics::{ClassScores, Figures};

/// A figure with four digits behind the point.
fn figure(value: f64) -> String {
    format!("{value:.4}")
}

/// One line a score that there is, one column for each of the named sets.
pub fn table(columns: &[(&str, Figures)]) -> String {
    let mut sheet = Sheet::new(std::iter::once("").chain(columns.iter().map(|(name, _)| *name)), 1);
    let figures: Vec<_> = columns.iter().map(|(_, scores)| scores.named()).collect();
    for line in 0..figures.first().map_or(0, |first| first.len()) {
        let values: Vec<Option<f64>> = figures.iter().map(|set| set[line].1).collect();
        if values.iter().any(Option::is_some) {
            let name = figures[0][line].0.replace('_', " ");
            sheet.row(std::iter::once(name).chain(values.iter().map(|value| value.map_or("–".into(), figure))));
        }
    }
    sheet.print(Style::Text).trim_end().into()
}

/// One line a class.
pub fn by_class(classes: &[ClassScores]) -> String {
    let mut sheet = Sheet::new(["class", "precision", "recall", "f1", "rows", "predicted"], 1);
    for class in classes {
        let figures = [class.precision, class.recall, class.f1].map(figure);
        let counts = [class.rows, class.predicted].map(|n| n.to_string());
        sheet.row(std::iter::once(class.label.clone()).chain(figures).chain(counts));
    }
    sheet.print(Style::Text).trim_end().into()
}
