//! From the columns of a table to features: numbers stay, truth values become 0 and 1, text becomes categories, missing
//! values are refused or filled in.

use super::build::{Builder, Built, Chunk, Fault};
use super::layout::{Found, TableLayout, drop_it, listed};
use super::texts::{ANOTHER, TextColumn};
use super::{ReadOptions, expected_finite, field_found, is_missing, quote};
use crate::data::schema::{Column, ColumnKind, LabelKind, Remark, Schema, number_text, truth};
use crate::data::{Dataset, Ids, Labels, Matrix, Rows};
use crate::{Advice, Error, Remedy, Result, with_rows};
use std::collections::{HashMap, HashSet};

/// Most categories of a column: each becomes a feature, and a column of more texts is a name or an identifier.
const MOST_CATEGORIES: usize = 100;
/// Most classes, unless the label's column was asked for: a column of more values is a regression target or an identifier.
const MOST_CLASSES: usize = 100;
/// Of fewer rows nothing is said about values that are all different, as measured whole numbers may well be.
const FEW_ROWS: usize = 20;
/// Rows looked at before a column is looked at whole: two equal values among them spare the look at all others.
const SAMPLE: usize = 256;
/// Rows encoded at a time, so that what is between two forms stays small.
const TOGETHER: usize = 4096;

/// Texts that may be a category, but are a missing value among numbers.
const SOFT_MISSING: [&str; 3] = ["-", "none", "nil"];

/// Whether a text is a missing value where it stands among numbers.
pub(super) fn is_soft_missing(text: &str) -> bool {
    SOFT_MISSING.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// A table as it was read: numbers, and beside them what is none.
pub(super) struct Raw<'a> {
    pub(super) file: &'a str,
    pub(super) layout: TableLayout,
    pub(super) built: Built,
    /// What a typed file says of each column; `None` where values tell.
    pub(super) typed: Vec<Option<ColumnKind>>,
    /// Whether records are told by rows, not lines.
    pub(super) options: &'a ReadOptions,
}

/// What the texts of a column are, counted.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) missing: u64,
    /// Missing among numbers only.
    pub(super) soft: u64,
    plain_truths: u64,
    other_truths: u64,
    pub(super) dates: u64,
    others: u64,
    /// Numbers that are not finite, or not in the precision asked for.
    infinite: u64,
    /// The first that is neither missing nor, among numbers, taken for it.
    first: Option<(u64, String)>,
    first_missing: Option<(u64, String)>,
}

impl Texts {
    pub(super) fn of(column: &TextColumn) -> Self {
        let mut texts = Self::default();
        for seen in column.seen.iter().filter(|seen| seen.rows > 0) {
            let place = || Some((seen.line, seen.text.clone()));
            let earliest = |known: &Option<(u64, String)>| known.as_ref().is_none_or(|(line, _)| seen.line < *line);
            let missing = is_missing(seen.text.as_bytes());
            if missing || is_soft_missing(&seen.text) {
                *(if missing { &mut texts.missing } else { &mut texts.soft }) += seen.rows;
                if earliest(&texts.first_missing) {
                    texts.first_missing = place();
                }
                continue;
            }
            match truth(&seen.text) {
                Some(word) if word.is_plain => texts.plain_truths += seen.rows,
                Some(_) => texts.other_truths += seen.rows,
                None if seen.text.parse::<f64>().is_ok() => texts.infinite += seen.rows,
                None if is_date(&seen.text) => texts.dates += seen.rows,
                None => texts.others += seen.rows,
            }
            if earliest(&texts.first) {
                texts.first = place();
            }
        }
        let late = column.cells.iter().filter(|(_, code)| *code == ANOTHER).count() as u64;
        texts.others += late;
        texts
    }

    /// How many are text, not missing.
    pub(super) fn words(&self) -> u64 {
        self.plain_truths + self.other_truths + self.dates + self.others
    }

    /// Whether all words are of one pair: true and false, or yes and no.
    fn are_truths(&self) -> bool {
        let words = self.words();
        words > 0 && (self.plain_truths == words || self.other_truths == words)
    }
}

/// Whether a text is a day, perhaps with a time: `2024-01-31`, `31.1.2024`, `1/31/24 10:00`.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or_default();
    let parts = |separator: char| {
        let parts: Vec<&str> = day.split(separator).collect();
        let fits = |part: &&str| (1..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        parts.len() == 3 && parts.iter().all(fits) && parts.iter().filter(|part| part.len() > 2).count() <= 1
    };
    ['-', '/', '.'].into_iter().any(parts)
}

impl<'a> Raw<'a> {
    /// The features, the labels, and what became of the columns: as a schema says, or as the values tell.
    pub(super) fn encoded(mut self, name: String, schema: Option<&Schema>) -> Result<Dataset> {
        let known = schema.and_then(|schema| schema.columns.as_ref());
        let columns = match known {
            Some(columns) => columns.clone(),
            None => self.columns()?,
        };
        let label = self.layout.label_column();
        let schema = match schema.filter(|_| known.is_some()) {
            Some(schema) => schema.clone(),
            None => {
                if columns.is_empty() {
                    return Err(self.no_features());
                }
                self.check_label()?;
                self.remark_on_identifiers(&columns);
                let named = self.layout.names.is_some();
                let classes = self.built.labels.as_ref().map_or(&[][..], Labels::names);
                Schema { columns: Some(columns.clone()), named, label: label.of(classes) }
            }
        };
        let plain = columns.iter().all(|column| column.kind != ColumnKind::Category && !column.indicator)
            && self.built.texts.iter().all(|texts| texts.cells.is_empty());
        let labels = self.built.labels.take();
        let remarks = std::mem::take(&mut self.layout.remarks);
        let values = std::mem::take(&mut self.built.ids);
        let ids = self.layout.id.filter(|_| !values.is_empty()).map(|id| Ids { name: self.layout.name(id), values });
        let rows = if plain { self.checked_plain(&columns)? } else { self.expanded(&columns)? };
        Ok(Dataset { name, labels, rows, schema: Some(schema), remarks, ids })
    }

    fn error(&self, j: usize, line: u64, reason: String, advice: impl Into<Advice>) -> Error {
        let column = self.layout.columns[j] as u64 + 1;
        Error::Column { file: self.file.into(), line, column, reason, advice: advice.into() }
    }

    fn name(&self, j: usize) -> String {
        self.layout.name(self.layout.columns[j])
    }

    pub(super) fn no_features(&self) -> Error {
        let reason = match self.layout.label {
            Some((field, _)) => format!(
                "it has no features beside the label, column {}; is another character between its fields?",
                quote(self.layout.name(field).as_bytes())
            ),
            None => "it has no features".into(),
        };
        Error::data(self.file, reason)
    }

    /// What the columns are, from their values.
    fn columns(&self) -> Result<Vec<Column>> {
        let mut columns: Vec<Column> = (0..self.layout.columns.len()).map(|j| self.column(j)).collect::<Result<_>>()?;
        if self.options.impute {
            self.fill_numbers(&mut columns);
        }
        Ok(columns)
    }

    /// The kind of a column from its values.
    pub(super) fn kind(&self, j: usize, texts: &Texts) -> Result<ColumnKind> {
        let numbers = self.numbers(j) + texts.infinite;
        let soft = if numbers > 0 { 0 } else { texts.soft };
        let words = texts.words() + texts.infinite + soft;
        if let Some(kind) = self.typed[j] {
            return Ok(kind);
        }
        if words == 0 {
            return Ok(ColumnKind::Number);
        }
        if numbers == 0 && texts.are_truths() && texts.soft == 0 {
            return Ok(ColumnKind::Boolean);
        }
        let name = quote(self.name(j).as_bytes());
        let (line, text) = texts.first.clone().unwrap_or_default();
        if numbers >= words {
            let found = quote(text.as_bytes());
            let expected = match text.parse::<f64>() {
                Ok(_) => expected_finite(self.options.precision).to_string(),
                Err(_) => {
                    format!("a number in column {} ({name}), as {numbers} others are", self.layout.columns[j] + 1)
                }
            };
            return Err(self.error(j, line, format!("found {found}, expected {expected}"), [drop_it(&self.name(j))]));
        }
        if 10 * texts.dates >= 9 * words {
            let reason = format!(
                "column {name} holds dates, such as {}, which are no features by themselves: make numbers of them (a year, days \
                 since a date), or leave the column out",
                quote(text.as_bytes())
            );
            return Err(self.error(j, line, reason, [drop_it(&self.name(j))]));
        }
        Ok(ColumnKind::Category)
    }

    /// How many values of a column are numbers.
    fn numbers(&self, j: usize) -> u64 {
        (self.built.rows.rows() - self.built.texts[j].cells.len()) as u64
    }

    /// What a column is, but for the number to fill in.
    fn column(&self, j: usize) -> Result<Column> {
        let texts = Texts::of(&self.built.texts[j]);
        let kind = self.kind(j, &texts)?;
        let name = self.name(j);
        let mut column = Column { kind, ..Column::number(name.clone()) };
        let mut missing = texts.missing;
        if kind == ColumnKind::Category {
            column.categories = self.categories(j)?;
        } else {
            missing += texts.soft;
        }
        if missing > 0 {
            if !self.options.impute {
                let (line, text) = texts.first_missing.unwrap_or_default();
                let found = field_found(text.as_bytes());
                let rows = if missing == 1 { "1 row".into() } else { format!("{missing} rows") };
                let reason = format!(
                    "found {found}: the value of column {} ({}) is missing in {rows}; fill in what is missing, or leave the column \
                     or the rows out",
                    self.layout.columns[j] + 1,
                    quote(name.as_bytes())
                );
                return Err(self.error(j, line, reason, [Remedy::Set("impute"), drop_it(&name)]));
            }
            if missing == self.built.rows.rows() as u64 {
                let reason = format!("column {} has no value in any row", quote(name.as_bytes()));
                return Err(self.error(j, 1, reason, [drop_it(&name)]));
            }
            column.indicator = true;
        }
        Ok(column)
    }

    /// The texts of a column that two rows or more have: one that a single row has says nothing of what is to come.
    fn categories(&self, j: usize) -> Result<Vec<String>> {
        let column = &self.built.texts[j];
        let mut rows: HashMap<String, u64> = HashMap::new();
        for seen in column.seen.iter().filter(|seen| !is_missing(seen.text.as_bytes())) {
            *rows.entry(seen.text.clone()).or_default() += seen.rows;
        }
        for value in self.values(j).into_iter().filter(|value| !value.is_nan()) {
            *rows.entry(number_text(value)).or_default() += 1;
        }
        if rows.len() > MOST_CATEGORIES || column.late.is_some() {
            let more = if column.late.is_some() { "more than " } else { "" };
            let name = self.name(j);
            let (line, text) = Texts::of(column).first.unwrap_or_default();
            let reason = format!(
                "column {} has {more}{} different texts, such as {}: categories are at most {MOST_CATEGORIES} (a name or an \
                 identifier is no feature; group what belongs together)",
                quote(name.as_bytes()),
                rows.len(),
                quote(text.as_bytes())
            );
            return Err(self.error(j, line, reason, [drop_it(&name)]));
        }
        let mut kept: Vec<String> = rows.into_iter().filter(|(_, rows)| *rows > 1).map(|(text, _)| text).collect();
        kept.sort_unstable();
        Ok(kept)
    }

    /// The numbers of a column, NaN where there is text.
    pub(super) fn values(&self, j: usize) -> Vec<f64> {
        let rows = self.built.rows.rows();
        let mut values = vec![0.0; rows];
        with_rows!(&self.built.rows, x => (0..rows).for_each(|i| values[i] = x.value(i, j)));
        self.built.texts[j].cells.iter().for_each(|&(row, _)| values[row as usize] = f64::NAN);
        values
    }

    /// What stands for missing values: the median, the most frequent category.
    fn fill_numbers(&self, columns: &mut [Column]) {
        for (j, column) in columns.iter_mut().enumerate() {
            let mut values: Vec<f64> = self.values(j).into_iter().filter(|value| !value.is_nan()).collect();
            column.fill = Some(match column.kind {
                ColumnKind::Number => median(&mut values),
                ColumnKind::Boolean => {
                    let texts = &self.built.texts[j].seen;
                    let rows = |wanted: bool| {
                        let is = |text: &str| truth(text).is_some_and(|word| word.value == wanted);
                        let numbers = values.iter().filter(|v| (**v != 0.0) == wanted).count() as u64;
                        texts.iter().filter(|seen| is(&seen.text)).map(|seen| seen.rows).sum::<u64>() + numbers
                    };
                    f64::from(u8::from(rows(true) > rows(false)))
                }
                ColumnKind::Category => {
                    let encoder = CategoryEncoder::new(column);
                    let mut rows = vec![0u64; column.categories.len() + 1];
                    for seen in self.built.texts[j].seen.iter().filter(|s| !is_missing(s.text.as_bytes())) {
                        rows[encoder.place(&seen.text)] += seen.rows;
                    }
                    values.iter().for_each(|value| rows[encoder.place(&number_text(*value))] += 1);
                    let best = (0..rows.len()).rev().max_by_key(|&c| rows[c]);
                    best.unwrap_or(0) as f64
                }
            });
        }
    }

    /// Refuses labels that look like something else.
    fn check_label(&self) -> Result<()> {
        let (Some(labels), Some((field, found))) = (&self.built.labels, self.layout.label) else { return Ok(()) };
        if self.options.any_label {
            return Ok(());
        }
        let (names, rows) = (labels.names(), labels.codes().len());
        let fractional = LabelKind::of(names) == LabelKind::Number && {
            let broken: Vec<bool> = names.iter().map(|n| n.parse::<f64>().is_ok_and(|v| v.fract() != 0.0)).collect();
            let fractions = labels.codes().iter().filter(|&&code| broken[code as usize]).count();
            2 * fractions > rows && names.len() > 2
        };
        let many = names.len() > MOST_CLASSES;
        let asked = found == Found::Asked;
        let looks = match (many, fractional) {
            (true, true) | (false, true) if !asked || many => "a regression target",
            (true, false) if !asked && names.len() == rows => "an identifier",
            (true, false) if !asked && LabelKind::of(names) != LabelKind::Text => {
                "a regression target or an identifier"
            }
            (true, false) if !asked => "a text or an identifier",
            _ => return Ok(()),
        };
        let how = match found {
            Found::Asked => "",
            Found::Named => ", taken for the label because of its name,",
            Found::Last => ", taken for the label because it is the last,",
        };
        let shown: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
        let reason = format!(
            "column {}{how} has {} different values ({}, …) and looks like {looks}; classes are few",
            quote(self.layout.name(field).as_bytes()),
            names.len(),
            listed(&shown)
        );
        let advice = [Remedy::Use("label", "COLUMN to name the label".into())];
        Err(Error::Column { file: self.file.into(), line: 1, column: field as u64 + 1, reason, advice: advice.into() })
    }

    /// Tells of columns whose values are all different whole numbers, or texts.
    fn remark_on_identifiers(&mut self, columns: &[Column]) {
        let rows = self.built.rows.rows();
        if rows < FEW_ROWS {
            return;
        }
        let suspects: Vec<usize> = (0..columns.len())
            .filter(|&j| match columns[j].kind {
                ColumnKind::Boolean => false,
                ColumnKind::Category => columns[j].categories.is_empty() && columns[j].fill.is_none(),
                ColumnKind::Number => {
                    let part = |rows| {
                        let mut seen = HashSet::new();
                        let mut value = |i| with_rows!(&self.built.rows, x => x.value(i, j));
                        let is_new = |v: f64| v.fract() == 0.0 && seen.insert(v.to_bits());
                        (0..rows).map(&mut value).all(is_new)
                    };
                    self.built.texts[j].cells.is_empty() && part(rows.min(SAMPLE)) && part(rows)
                }
            })
            .collect();
        for j in suspects {
            let name = self.name(j);
            let about = format!(
                "{}: column {} has another value in every row: an identifier is no feature",
                self.file,
                quote(name.as_bytes())
            );
            self.layout.remarks.push(Remark { about, advice: [drop_it(&name)].into() });
        }
    }

    /// Rows that need no more than a look: there is no text, and truth values are 0 or 1.
    fn checked_plain(self, columns: &[Column]) -> Result<Matrix<'static>> {
        for (j, _) in columns.iter().enumerate().filter(|(_, column)| column.kind == ColumnKind::Boolean) {
            if let Some(row) = self.values(j).iter().position(|value| *value != 0.0 && *value != 1.0) {
                return Err(self.not_a_truth(j, row as u64 + 1, "a number"));
            }
        }
        Ok(self.built.rows)
    }

    fn not_a_truth(&self, j: usize, line: u64, found: &str) -> Error {
        let name = quote(self.name(j).as_bytes());
        self.error(j, line, format!("found {found}, expected true or false in column {name}"), Advice::NONE)
    }

    /// The features of all rows.
    fn expanded(&self, columns: &[Column]) -> Result<Matrix<'static>> {
        let encoders: Vec<Encoder> =
            columns.iter().enumerate().map(|(j, column)| self.encoder(j, column)).collect::<Result<_>>()?;
        let mut offsets = vec![0u32];
        let total: usize = columns.iter().map(Column::width).sum();
        offsets.extend(columns.iter().scan(0, |at, column| {
            *at += column.width() as u32;
            Some(*at)
        }));
        let mut next = vec![0usize; columns.len()];
        let rows = self.built.rows.rows();
        let options = ReadOptions { features: None, ..self.options.clone() };
        let mut builder = Builder::new(self.file, &options);
        let mut numbers = vec![0.0; columns.len()];
        for from in (0..rows).step_by(TOGETHER) {
            let mut chunk = Chunk { cols: total, head: Some((false, Fault::default())), ..Chunk::default() };
            for i in from..rows.min(from + TOGETHER) {
                numbers.fill(0.0);
                with_rows!(&self.built.rows, x => x.visit(i, |j, v| numbers[j] = v));
                for (j, encoder) in encoders.iter().enumerate() {
                    let cell = self.built.texts[j].cells.get(next[j]).filter(|(row, _)| *row as usize == i);
                    next[j] += usize::from(cell.is_some());
                    let feature = match cell {
                        Some(&(_, code)) => encoder.text(code),
                        None => encoder.number(numbers[j]),
                    };
                    feature.push(&mut chunk, offsets[j], offsets[j + 1]);
                }
                chunk.end_row();
            }
            builder.append(chunk)?;
        }
        Ok(builder.finish()?.rows)
    }

    /// How the values of a column become features; an error if one cannot.
    fn encoder<'c>(&'c self, j: usize, column: &'c Column) -> Result<Encoder<'c>> {
        let texts = &self.built.texts[j];
        let filled = |seen: &super::texts::SeenText| match column.fill {
            Some(fill) if column.kind == ColumnKind::Category => {
                Ok(Feature::Missing { place: fill as u32, value: 1.0, indicator: column.indicator })
            }
            Some(value) => Ok(Feature::Missing { place: 0, value, indicator: column.indicator }),
            None => {
                let found = field_found(seen.text.as_bytes());
                let name = quote(self.name(j).as_bytes());
                let reason = format!(
                    "found {found}, expected a value in column {name}: the model was trained without imputation, so it has \
                     nothing to put in its place"
                );
                Err(self.error(j, seen.line, reason, Advice::NONE))
            }
        };
        let category = CategoryEncoder::new(column);
        let feature = |seen: &super::texts::SeenText| {
            let missing = is_missing(seen.text.as_bytes());
            let soft = is_soft_missing(&seen.text);
            match column.kind {
                _ if seen.rows == 0 => Ok(Feature::Value(0.0)),
                _ if missing => filled(seen),
                ColumnKind::Category => Ok(Feature::Hot(category.place(&seen.text))),
                _ if soft => filled(seen),
                ColumnKind::Boolean => match truth(&seen.text) {
                    Some(word) => Ok(Feature::Value(f64::from(u8::from(word.value)))),
                    None => Err(self.not_a_truth(j, seen.line, &quote(seen.text.as_bytes()))),
                },
                ColumnKind::Number => {
                    let (found, name) = (quote(seen.text.as_bytes()), quote(self.name(j).as_bytes()));
                    let reason = format!("found {found}, expected a number in column {name}");
                    Err(self.error(j, seen.line, reason, Advice::NONE))
                }
            }
        };
        // The first that is wrong, in the order of the lines.
        let mut order: Vec<usize> = (0..texts.seen.len()).collect();
        order.sort_by_key(|&code| texts.seen[code].line);
        let mut features = vec![Feature::Value(0.0); texts.seen.len()];
        for code in order {
            features[code] = feature(&texts.seen[code])?;
        }
        if let (Some(line), ColumnKind::Number | ColumnKind::Boolean) = (texts.late, column.kind) {
            return Err(self.not_a_truth(j, line, "text"));
        }
        if column.kind == ColumnKind::Boolean
            && let Some(row) = self.values(j).iter().position(|v| !v.is_nan() && *v != 0.0 && *v != 1.0)
        {
            return Err(self.not_a_truth(j, row as u64 + 1, "a number"));
        }
        Ok(Encoder { kind: column.kind, features, category })
    }
}

/// The middle of some numbers, of an even number of them the mean of both.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    let (below, &mut high, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    if below.len() > middle || values.len() % 2 == 1 {
        return high;
    }
    let low = values[..middle].iter().copied().fold(f64::NEG_INFINITY, f64::max);
    low / 2.0 + high / 2.0
}

/// What a value becomes.
#[derive(Clone, Copy)]
enum Feature {
    Value(f64),
    /// A one at this place.
    Hot(usize),
    /// What stands for a missing value, and whether the last feature says so.
    Missing {
        place: u32,
        value: f64,
        indicator: bool,
    },
}

impl Feature {
    /// Adds the features from `from` to before `to`.
    fn push(self, chunk: &mut Chunk, from: u32, to: u32) {
        match self {
            Self::Value(value) => chunk.push(from, value),
            Self::Hot(place) => chunk.push(from + place as u32, 1.0),
            Self::Missing { place, value, indicator } => {
                chunk.push(from + place, value);
                if indicator {
                    chunk.push(to - 1, 1.0);
                }
            }
        }
    }
}

/// The place of each category of a column.
struct CategoryEncoder<'c> {
    places: HashMap<&'c str, usize>,
}

impl<'c> CategoryEncoder<'c> {
    fn new(column: &'c Column) -> Self {
        Self { places: column.categories.iter().map(String::as_str).zip(0..).collect() }
    }

    /// Where a text has its one: behind all others if it is none of them.
    fn place(&self, text: &str) -> usize {
        self.places.get(text).copied().unwrap_or(self.places.len())
    }
}

/// How the values of a column become features.
struct Encoder<'c> {
    kind: ColumnKind,
    /// Of each text.
    features: Vec<Feature>,
    category: CategoryEncoder<'c>,
}

impl Encoder<'_> {
    fn text(&self, code: u32) -> Feature {
        match self.features.get(code as usize) {
            Some(feature) => *feature,
            None => Feature::Hot(self.category.places.len()),
        }
    }

    fn number(&self, value: f64) -> Feature {
        match self.kind {
            ColumnKind::Category => Feature::Hot(self.category.place(&number_text(value))),
            _ => Feature::Value(value),
        }
    }
}
