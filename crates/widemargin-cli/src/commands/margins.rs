//! `widemargin margins DATA MODEL…`

use super::pictures::{self, Curve};
use crate::args::MarginsArgs;
use crate::failure::Outcome;
use crate::files::read_for;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, short, table, write_text};
use crate::places::Places;
use comfy_table::{CellAlignment, Table};
use serde::Serialize;
use std::path::Path;
use widemargin::data::{Dataset, Schema};
use widemargin::margins::MarginStatistics;
use widemargin::model::Model;
use widemargin::{Error, Result};

/// One model's margins.
#[derive(Serialize)]
struct Distribution {
    model: String,
    machine: String,
    rows: usize,
    /// Rows whose label the model does not know; they have no margin.
    unknown_labels: usize,
    /// `‖w‖`
    norm: f64,
    margins: MarginStatistics,
    normalised: MarginStatistics,
    #[serde(skip)]
    sorted: Vec<f64>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    data: &'a str,
    models: &'a [Distribution],
}

/// Reads, scores, draws.
pub fn run(args: &MarginsArgs, output: &Output) -> Outcome {
    let svg_to_stdout = args.svg.as_deref().is_some_and(is_stdout);
    one_on_stdout(&[("--json", output.json), ("the picture", svg_to_stdout)])?;
    let places = args.models.iter().fold(Places::default().reads(&args.data), Places::reads);
    places.writes(args.svg.as_ref()).check()?;
    let models: Vec<Model> = args.models.iter().map(Model::load).collect::<Result<_>>()?;
    let (mut read, mut distributions) = (Vec::<(Schema, Dataset)>::new(), Vec::new());
    for (path, model) in args.models.iter().zip(&models) {
        // Models of the same columns share the rows.
        let schema = model.reading_schema();
        if read.iter().all(|(known, _)| known.columns != schema.columns) {
            read.push((schema.clone(), read_for(model, &args.data, &args.input, output)?));
        }
        if let Some((_, data)) = read.iter().find(|(known, _)| known.columns == schema.columns) {
            distributions.push(distribution(path, model, data)?);
        }
    }
    let data = &read[0].1;
    for d in distributions.iter().filter(|d| d.unknown_labels > 0) {
        let rows = count(d.unknown_labels, "row");
        output.warn(&format!("{}: {rows} with labels the model does not know are left out", d.model));
    }
    let curves: Vec<Curve> = distributions.iter().map(|d| curve(d, args.raw)).collect();
    let axis = if args.raw { "margin" } else { "margin / ‖w‖" };
    if let Some(path) = &args.svg {
        write_text(path, &pictures::svg(&curves, &data.name, axis))?;
    }
    if output.json {
        let report = Report { version: env!("CARGO_PKG_VERSION"), data: &args.data, models: &distributions };
        return output.object(&report);
    }
    if svg_to_stdout {
        return Ok(());
    }
    let (plain, normalised) = (|d: &Distribution| d.margins.clone(), |d: &Distribution| d.normalised.clone());
    print(&format!(
        "Margins of {} of {}\n{}\n\nDivided by ‖w‖\n{}\n\nCumulative distribution of the {axis}\n{}",
        count(data.rows.rows(), "row"),
        args.data,
        numbers(&distributions, plain).trim_fmt(),
        numbers(&distributions, normalised).trim_fmt(),
        pictures::text(&curves),
    ))
}

fn distribution(path: &Path, model: &Model, data: &Dataset) -> Result<Distribution> {
    let unusable = |reason: &str| Error::Data { file: data.name.clone(), reason: reason.into() };
    let labels = data.labels.as_ref().ok_or_else(|| unusable("it has no labels, so its rows have no margins"))?;
    let scores = model.scores(&data.rows)?;
    let mut sorted: Vec<f64> = model.margins(&scores, labels).into_iter().flatten().collect();
    if sorted.is_empty() {
        return Err(unusable(&format!("{} knows none of its labels", path.display())));
    }
    sorted.sort_by(f64::total_cmp);
    let (norm, margins) = (model.norm(), MarginStatistics::new(&sorted, &vec![1.0; sorted.len()]));
    Ok(Distribution {
        model: path.display().to_string(),
        machine: model.machine.clone(),
        rows: sorted.len(),
        unknown_labels: data.rows.rows() - sorted.len(),
        norm,
        normalised: margins.normalised(norm),
        margins,
        sorted,
    })
}

fn curve(distribution: &Distribution, raw: bool) -> Curve {
    let by = if raw || distribution.norm == 0.0 { 1.0 } else { 1.0 / distribution.norm };
    let name = Path::new(&distribution.model).file_name().map_or_else(String::new, |n| n.to_string_lossy().into());
    let name = if name.contains(&distribution.machine) { name } else { format!("{name} ({})", distribution.machine) };
    Curve { name, sorted: distribution.sorted.iter().map(|g| g * by).collect() }
}

fn numbers(distributions: &[Distribution], of: impl Fn(&Distribution) -> MarginStatistics) -> Table {
    let header =
        ["model", "min", "5 %", "25 %", "median", "75 %", "95 %", "mean", "variance", "semivariance", "errors"];
    let mut table = table(header.map(str::to_string).to_vec());
    for d in distributions {
        let s = of(d);
        let middle = [s.min].into_iter().chain(s.quantiles).chain([s.mean, s.variance, s.semivariance]).map(short);
        table.add_row(std::iter::once(d.model.clone()).chain(middle).chain([percent(s.errors)]));
    }
    table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table
}
