//! A comparison as a page that stands by itself: the tables and the margin distributions.

use super::pictures::{self, Curve};
use crate::sheet::{Sheet, escaped};
use widemargin_studies::Comparison;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222;\
    background:#fff}table{border-collapse:collapse;margin:.5rem 0;font-variant-numeric:tabular-nums}\
    th,td{padding:.2rem .7rem;border-bottom:1px solid #ddd;text-align:left;white-space:pre}\
    .number{text-align:right}.note{color:#555}.wide{overflow-x:auto}svg{max-width:100%}\
    @media (prefers-color-scheme:dark){body{color:#eee;background:#16181d}th,td{border-color:#333}.note{color:#aaa}}";

/// The page: captions, tables and notes, then a picture for each data set.
pub fn page(sections: &[(String, Sheet, String)], comparisons: &[Comparison]) -> String {
    let section = |(caption, sheet, note): &(String, Sheet, String)| {
        let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", escaped(note)) };
        format!("<h2>{}</h2>\n<div class=\"wide\">{}</div>\n{note}", escaped(caption), sheet.html())
    };
    let tables: String = sections.iter().map(section).collect();
    let pictures: String = comparisons.iter().map(picture).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>Comparison of machines</title>\n\
         <style>{STYLE}</style>\n<h1>Comparison of machines</h1>\n{tables}\
         <h2>Margins of the training rows of the first split, divided by ‖w‖</h2>\n{pictures}</html>\n"
    )
}

fn picture(comparison: &Comparison) -> String {
    let with_curves = comparison.entries.iter().filter(|entry| !entry.curve.is_empty());
    let curves: Vec<Curve> =
        with_curves.map(|entry| Curve { name: entry.machine.clone(), sorted: entry.curve.clone() }).collect();
    if curves.is_empty() { String::new() } else { pictures::svg(&curves, &comparison.dataset, "margin / ‖w‖") }
}
