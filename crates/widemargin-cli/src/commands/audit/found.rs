//! What an audit found, as a page: how many labels are expected to be wrong, the suspects, all rows, how well probabilities hold.

use super::{Line, SHOWN, influential, left_out};
use crate::commands::reliability::Reliability;
use crate::output::{count, percent, short};
use crate::page::Page;
use crate::page::chart::{Axis, Cloud, Guide, Mark, Plot, Point, Series, Shape, Unit};
use crate::sheet::Sheet;
use widemargin::audit::{Audit, Suspect};
use widemargin::data::Dataset;
use widemargin::model::UnseenBy;
use widemargin_studies::Bin;

/// Most rows that a page lists unless someone asks for more.
pub const LISTED: usize = 500;
/// Influential rows that a page lists.
const INFLUENTIAL: usize = 10;

/// How many rows a page lists if nobody says: as many as are expected to be wrong, and never fewer than the terminal.
pub fn listed(found: &Audit) -> usize {
    (found.expected_wrong.ceil() as usize).clamp(SHOWN, LISTED)
}

/// The page.
pub fn page(found: &Audit, listed: usize, data: &Dataset, seed: u64) -> String {
    let (probabilities, true_ones) = found.forecasts();
    let Reliability { error, bins } = Reliability::new(&probabilities, &true_ones);
    let name = &data.name;
    let mut page =
        Page::new(&format!("Labels of {name} that may be wrong"), &conclusion(found, data.rows.rows(), name, error));
    let (suspects, others) = found.suspects.split_at(listed.min(found.suspects.len()));
    page.heading("Suspects");
    page.table(
        &format!(
            "The {} most likely to be labelled wrongly, of {}; rows are numbered from 1",
            count(suspects.len(), "row"),
            found.suspects.len()
        ),
        &table(suspects),
    );
    page.note(
        "P(label) is the probability of the label a row has, by a model that did not see the row: rows are in the order of it. Influence is \
         by how much the margin of a row falls when the model does not see it: what the row alone bends the model by. \
         The nearest rows that contradict a label are those closest to the row that have the likely label.",
    );
    page.heading("Margins of all rows");
    page.figure(
        &cloud(found, suspects, others, name).svg(),
        "Left of the dotted line a model that did not see the row would have labelled it otherwise. The higher a row, the \
         more it alone bends the model that saw it.",
    );
    page.table("The rows that bend the model most, each by itself", &table(influential(found, INFLUENTIAL)));
    reliable(&mut page, found, &bins, error, name);
    page.finish(seed)
}

fn conclusion(found: &Audit, rows: usize, data: &str, error: f64) -> Vec<String> {
    let share = percent(found.expected_wrong / rows.max(1) as f64);
    let mut sentences = vec![
        format!("{:.1} of the {rows} labels of {data} are expected to be wrong ({share}).", found.expected_wrong),
        format!("Judged by {}, {}.", found.model, left_out(found.by)),
    ];
    let doubted = found.suspects.iter().filter(|suspect| suspect.probability > 0.5).count();
    sentences.push(match (doubted, found.suspects.first()) {
        (1.., Some(first)) => {
            let are = if doubted == 1 { "is" } else { "are" };
            format!("{} {are} more likely wrong than right; {}.", count(doubted, "label"), tip(first))
        }
        _ => "No label is more likely wrong than right.".into(),
    });
    sentences.push(format!(
        "Foretold probabilities differ from the shares that were found by {} on average (expected calibration error).",
        percent(error)
    ));
    sentences
}

/// A suspect in words.
fn tip(suspect: &Suspect) -> String {
    format!(
        "row {} has label {}, likely is {}, wrong with probability {:.3}, margin {}, influence {}",
        suspect.row + 1,
        suspect.label,
        suspect.likely,
        suspect.probability,
        short(suspect.margin),
        short(suspect.influence)
    )
}

fn table<'a>(suspects: impl IntoIterator<Item = &'a Suspect>) -> Sheet {
    let header = [
        "row",
        "label",
        "likely label",
        "P(wrong)",
        "P(label)",
        "margin left out",
        "influence",
        "nearest rows that contradict it",
    ];
    let mut sheet = Sheet::new(header, 3);
    for (suspect, line) in suspects.into_iter().map(|suspect| (suspect, Line::new(suspect))) {
        sheet.row([
            line.row.to_string(),
            line.label.to_string(),
            line.likely.to_string(),
            format!("{:.3}", line.probability),
            format!("{:.3}", line.label_probability),
            short(suspect.margin),
            short(line.influence),
            line.neighbours(),
        ]);
    }
    sheet
}

fn cloud(found: &Audit, suspects: &[Suspect], others: &[Suspect], data: &str) -> Cloud {
    let place = |suspect: &Suspect| (suspect.margin, suspect.influence);
    let margin = match found.by {
        UnseenBy::LeaveOneOut => "leave-one-out margin".to_string(),
        UnseenBy::Folds(folds) => format!("margin when left out in one of {}", count(folds, "fold")),
    };
    Cloud {
        title: format!("Margins of the rows of {data} under models that did not see them"),
        x: Axis::new(margin, Unit::Plain),
        y: Axis::new("influence: what leaving out costs", Unit::Plain),
        dots: ("other rows".into(), others.iter().map(place).collect()),
        marks: (
            "suspects of the table".into(),
            suspects.iter().map(|suspect| Mark { place: place(suspect), tip: tip(suspect) }).collect(),
        ),
    }
}

/// How often the probabilities come true.
fn reliable(page: &mut Page, found: &Audit, bins: &[Bin], error: f64, data: &str) {
    let (foretold, true_ones) = match found.labels.as_slice() {
        [_, larger] => (format!("predicted probability of {larger}"), format!("share of the rows with label {larger}")),
        _ => (
            "predicted probability of the likely label".to_string(),
            "share of the rows with the likely label".to_string(),
        ),
    };
    page.heading("Reliability of the probabilities");
    let plot = Plot {
        title: format!("How often probabilities of rows left out come true on {data}"),
        x: Axis::share(&foretold),
        y: Axis::share(&true_ones),
        series: vec![Series {
            name: "rows left out".into(),
            shape: Shape::Line,
            points: bins.iter().map(|b| Point { x: b.predicted, y: b.found, spread: Some(b.between) }).collect(),
        }],
        guide: Guide::Diagonal,
    };
    page.figure(
        &plot.svg(),
        &format!(
            "Ten bins of equally many rows, with Wilson's intervals of 95 %. On the dotted line probabilities are right. The expected \
             calibration error is {}.",
            percent(error)
        ),
    );
    let mut sheet = Sheet::new([foretold.as_str(), true_ones.as_str(), "interval of 95 %", "rows"], 0);
    for bin in bins {
        let between = format!("{} to {}", percent(bin.between.0), percent(bin.between.1));
        sheet.row([percent(bin.predicted), percent(bin.found), between, bin.rows.to_string()]);
    }
    page.table("The bins", &sheet);
    page.note(
        "The expected calibration error is the distance between prediction and share, averaged over the rows. Scores were turned into \
         probabilities by a slope and an offset a class, fitted to these same scores of rows left out; rows are counted once each.",
    );
}
