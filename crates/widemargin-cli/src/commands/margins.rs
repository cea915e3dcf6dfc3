//! `widemargin margins DATA MODEL…`

use super::pictures::{self, Curve};
use super::reliability::Reliability;
use super::words;
use crate::args::MarginsArgs;
use crate::failure::Outcome;
use crate::files::read_for;
use crate::output::{Output, count, is_stdout, one_on_stdout, percent, print, short, write_text};
use crate::page::chart::{Axis, Guide, Plot, Point, Series, Shape, Unit, alone};
use crate::page::{Page, list};
use crate::places::Places;
use crate::sheet::{Sheet, Style};
use serde::Serialize;
use std::path::{Path, PathBuf};
use widemargin::data::{Dataset, Labels, Schema};
use widemargin::margins::MarginStatistics;
use widemargin::model::Model;
use widemargin::{Error, Result};
use widemargin_studies::{Bin, area, roc};

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
pub fn run(args: &MarginsArgs, seed: u64, output: &Output) -> Outcome {
    let to_stdout = |path: &Option<PathBuf>| path.as_deref().is_some_and(is_stdout);
    let (picture_out, page_out) = (to_stdout(&args.svg), to_stdout(&args.report));
    one_on_stdout(&[("--json", output.json), ("the picture", picture_out), ("the page", page_out)])?;
    let places = args.models.iter().fold(Places::default().reads(&args.data), Places::reads);
    places.writes(args.svg.as_ref()).writes(args.report.as_ref()).check()?;
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
        write_text(path, &alone(&picture(&curves, &data.name, axis)))?;
    }
    if let Some(path) = &args.report {
        let of = |model: &Model| read.iter().position(|(known, _)| known.columns == model.reading_schema().columns);
        let sets = models.iter().map(|model| &read[of(model).unwrap_or(0)].1).collect();
        let found = Found { data, sets, models: &models, distributions: &distributions };
        write_text(path, &found.page(&curves, axis, seed)?)?;
    }
    if output.json {
        let report = Report { version: env!("CARGO_PKG_VERSION"), data: &args.data, models: &distributions };
        return output.object(&report);
    }
    if picture_out || page_out {
        return Ok(());
    }
    let (plain, normalised) = (|d: &Distribution| d.margins.clone(), |d: &Distribution| d.normalised.clone());
    print(&format!(
        "Margins of {} of {}\n{}\n\nDivided by ‖w‖\n{}\n\nCumulative distribution of the {axis}\n{}",
        count(data.rows.rows(), "row"),
        args.data,
        numbers(&distributions, plain).print(Style::Text).trim_end(),
        numbers(&distributions, normalised).print(Style::Text).trim_end(),
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

fn numbers(distributions: &[Distribution], of: impl Fn(&Distribution) -> MarginStatistics) -> Sheet {
    let header =
        ["model", "min", "5 %", "25 %", "median", "75 %", "95 %", "mean", "variance", "semivariance", "errors"];
    let mut sheet = Sheet::new(header, 1);
    for d in distributions {
        let s = of(d);
        let middle = [s.min].into_iter().chain(s.quantiles).chain([s.mean, s.variance, s.semivariance]).map(short);
        sheet.row(std::iter::once(d.model.clone()).chain(middle).chain([percent(s.errors)]));
    }
    sheet
}

/// Points of all curves of a page together: so it stays below two megabytes.
const CURVE_POINTS: usize = 40_000;

fn picture(curves: &[Curve], data: &str, axis: &str) -> String {
    let most = CURVE_POINTS / curves.len().max(1);
    let plot = Plot {
        title: format!("Share of the rows of {data} with a smaller margin"),
        x: Axis::new(axis, Unit::Plain),
        y: Axis::share("share of the rows"),
        series: curves.iter().map(|curve| Series::distribution(&curve.name, &curve.sorted, most)).collect(),
        guide: Guide::Zero,
    };
    plot.svg()
}

/// What a page tells of.
struct Found<'a> {
    data: &'a Dataset,
    /// The rows as each model reads them.
    sets: Vec<&'a Dataset>,
    models: &'a [Model],
    distributions: &'a [Distribution],
}

impl Found<'_> {
    fn page(&self, curves: &[Curve], axis: &str, seed: u64) -> Result<String> {
        let names: Vec<String> = curves.iter().map(|curve| curve.name.clone()).collect();
        let mut page = Page::new(&format!("Margins of {} on {}", list(&names), self.data.name), &self.conclusion());
        page.heading("Margins");
        page.boxes("Models shown in the pictures", &names);
        page.figure(
            &picture(curves, &self.data.name, axis),
            "Left of zero rows are on the wrong side; the steeper the curve, the more alike the margins.",
        );
        let rows = count(self.data.rows.rows(), "row");
        page.table(
            &format!("Margins of {rows} of {}", self.data.name),
            &numbers(self.distributions, |d| d.margins.clone()),
        );
        page.table("Divided by ‖w‖", &numbers(self.distributions, |d| d.normalised.clone()));
        self.predictions(&mut page, &names)?;
        page.heading("Certificates");
        page.table(
            "As training left them; widemargin verify recomputes them from the training rows",
            &self.certificates(),
        );
        Ok(page.finish(seed))
    }

    fn conclusion(&self) -> Vec<String> {
        let best = |of: fn(&Distribution) -> f64| {
            self.distributions.iter().max_by(|a, b| of(a).total_cmp(&of(b))).map_or("", |d| d.model.as_str())
        };
        let fewest = best(|d| -d.margins.errors);
        let each = |d: &Distribution| {
            let s = &d.normalised;
            format!(
                "{}: {} of the rows are on the wrong side; margin / ‖w‖ {} on average, variance {}, smallest {}.",
                d.model,
                percent(s.errors),
                short(s.mean),
                short(s.variance),
                short(s.min)
            )
        };
        let mut sentences = Vec::new();
        if self.distributions.len() > 1 {
            let (mean, least) = (best(|d| d.normalised.mean), best(|d| d.normalised.min));
            sentences.push(format!(
                "On {}, {fewest} has the fewest rows on the wrong side, {mean} the largest mean margin, {least} the largest smallest margin.",
                self.data.name
            ));
        }
        sentences.extend(self.distributions.iter().map(each));
        sentences
    }

    /// ROC curves of models with two classes, calibration curves of those that know probabilities.
    fn predictions(&self, page: &mut Page, names: &[String]) -> Result<()> {
        let (mut operating, mut calibrated) = (Vec::new(), Vec::new());
        for ((model, name), data) in self.models.iter().zip(names).zip(&self.sets) {
            operating.push(Series { name: name.clone(), shape: Shape::Line, points: Vec::new() });
            calibrated.push(Series { name: name.clone(), shape: Shape::Line, points: Vec::new() });
            let Some(labels) = data.labels.as_ref() else { continue };
            let scores = model.scores(&data.rows)?;
            if let (Some(found), Some(last)) = (Reliability::of(model, labels, &scores), calibrated.last_mut()) {
                last.name = format!("{name} (error {})", percent(found.error));
                let point = |b: &Bin| Point { x: b.predicted, y: b.found, spread: Some(b.between) };
                last.points = found.bins.iter().map(point).collect();
            }
            if model.labels.len() != 2 {
                continue;
            }
            let (positive, score) = known(model, labels, &scores);
            if let (Some(curve), Some(last)) = (roc(&score, &positive), operating.last_mut()) {
                last.name = format!("{name} (area {:.4})", area(&curve));
                last.points = thinned(&curve).into_iter().map(|(x, y)| Point { x, y, spread: None }).collect();
            }
        }
        let drawn = |series: &[Series]| series.iter().any(|s| !s.points.is_empty());
        let mut larger =
            self.models.iter().filter(|model| model.labels.len() == 2).map(|model| model.labels[1].as_str());
        let positive = larger.next().filter(|one| larger.all(|other| other == *one)).unwrap_or("the larger label");
        if drawn(&operating) {
            page.heading("Receiver operating characteristic");
            let plot = Plot {
                title: format!("True and false positive rates on {}", self.data.name),
                x: Axis::share("false positive rate"),
                y: Axis::share("true positive rate"),
                series: operating,
                guide: Guide::Diagonal,
            };
            page.figure(&plot.svg(), &format!("Positive is {positive}. The dotted line is guessing."));
        }
        page.heading("Calibration");
        if !drawn(&calibrated) {
            page.note("None of the models gives probabilities: train with --probability.");
            return Ok(());
        }
        let of_two =
            self.models.iter().filter(|model| model.calibration.is_some()).all(|model| model.labels.len() == 2);
        let foretold = if of_two { positive } else { "the most probable label (of two classes of the larger one)" };
        let plot = Plot {
            title: format!("How often probabilities come true on {}", self.data.name),
            x: Axis::share(format!("predicted probability of {foretold}")),
            y: Axis::share("share of the rows that have this label"),
            series: calibrated,
            guide: Guide::Diagonal,
        };
        page.figure(
            &plot.svg(),
            "Ten bins of equally many rows, with Wilson's intervals of 95 %. On the dotted line probabilities are right; the expected \
             calibration error is the distance from it, averaged over the rows.",
        );
        Ok(())
    }

    fn certificates(&self) -> Sheet {
        let header = ["model", "machine", "kernel", "solver", "objective", "dual", "gap", "tolerance", "stopped"];
        let mut sheet = Sheet::new(header, 4);
        let number = |value: Option<f64>| value.map_or("–".into(), short);
        for (model, d) in self.models.iter().zip(self.distributions) {
            let c = &model.certificate;
            sheet.row([
                d.model.clone(),
                words::machine(&model.machine, &model.parameters),
                words::kernel(model.kernel),
                c.solver.clone(),
                number(c.objective),
                number(c.dual_objective),
                c.gap.map_or("–".into(), |gap| format!("{gap:.1e}")),
                c.tol.map_or("–".into(), |tol| format!("{tol:.0e}")),
                words::stop(c.stop).into(),
            ]);
        }
        sheet
    }
}

/// Of the rows whose label a model of two classes knows, whether it is the larger one, and how much speaks for that.
fn known(model: &Model, labels: &Labels, scores: &[f64]) -> (Vec<bool>, Vec<f64>) {
    let codes = labels.codes_in(&model.labels).into_iter();
    let signed = |(code, margin): (Option<u32>, Option<f64>)| match (code?, margin?) {
        (1, margin) => Some((true, margin)),
        (_, margin) => Some((false, -margin)),
    };
    codes.zip(model.margins(scores, labels)).filter_map(signed).unzip()
}

/// At most a thousand points of a curve, the ends among them.
fn thinned(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const MOST: usize = 1000;
    if curve.len() <= MOST {
        return curve.to_vec();
    }
    (0..MOST).map(|k| curve[k * (curve.len() - 1) / (MOST - 1)]).collect()
}
