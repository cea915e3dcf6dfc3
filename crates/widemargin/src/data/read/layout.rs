//! Which field of a table is what: features, the label, what is left out. By name where there are names, else by place.

use super::texts::TextColumn;
use super::{IdColumn, ReadOptions, is_missing};
use crate::data::schema::{LabelColumn, Remark, Schema};
use crate::{Advice, Error, Remedy, Result};

/// Names by which a column is taken for the label's.
const LABEL_NAMES: [&str; 4] = ["label", "class", "target", "y"];

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The column of this number among those of the features.
    Feature(u32),
    Label,
    /// What tells rows apart.
    Id,
    Unused,
}

/// How the label's column was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It was asked for, or a model knows it.
    Asked,
    /// It has a usual name.
    Named,
    /// It is the last.
    Last,
}

/// The fields of a table.
#[derive(Clone, Debug)]
pub(super) struct TableLayout {
    pub(super) names: Option<Vec<String>>,
    /// What each field is.
    pub(super) roles: Vec<Role>,
    /// The field of each column of features.
    pub(super) columns: Vec<usize>,
    /// Whether columns stand in another order than the features.
    pub(super) shuffled: bool,
    pub(super) label: Option<(usize, Found)>,
    pub(super) id: Option<usize>,
    pub(super) remarks: Vec<Remark>,
}

impl TableLayout {
    /// Finds the columns of a file with so many fields, in the order of a schema if there is one.
    pub(super) fn new(
        file: &str,
        names: Option<Vec<String>>,
        fields: usize,
        options: &ReadOptions,
        schema: Option<&Schema>,
    ) -> Result<Self> {
        let find = NamedFields { names: names.as_deref(), fields };
        let mut free: Vec<bool> = vec![true; fields];
        for name in &options.drop {
            // What is not there need not be left out of what a model reads.
            match find.field("drop", name) {
                Err(_) if schema.is_some() => {}
                field => free[field?] = false,
            }
        }
        let asked = match options.label.as_deref() {
            Some("none") => None,
            Some(label) => Some(find.field("label", label).map_err(or_none)?),
            None => None,
        };
        if let Some(label) = asked {
            free[label] = false;
        }
        let id = schema.map(|schema| find.id(schema, options, &free)).transpose()?.flatten();
        if let Some(id) = id {
            free[id] = false;
        }
        let unlabelled = options.label.as_deref() == Some("none");
        let (label, columns, remarks) = match schema.and_then(|s| s.columns.as_ref().map(|columns| (s, columns.len())))
        {
            Some((schema, count)) => {
                let label = asked.or_else(|| if unlabelled { None } else { find.label_of(schema, &free, count) });
                if let Some(label) = label {
                    free[label] = false;
                }
                let (columns, remarks) = find.matching(file, schema, &free)?;
                (label.map(|label| (label, Found::Asked)), columns, remarks)
            }
            None => {
                let chosen = find.chosen(options, &mut free)?;
                let label = asked.map(|label| (label, Found::Asked));
                let label = label.or_else(|| if unlabelled { None } else { find.label(&free) });
                let is_label = |field: usize| label.is_some_and(|(label, _)| label == field);
                let all = || (0..fields).filter(|&field| free[field] && !is_label(field)).collect();
                (label, chosen.unwrap_or_else(all), Vec::new())
            }
        };
        let mut roles = vec![Role::Unused; fields];
        for (j, &field) in columns.iter().enumerate() {
            roles[field] = Role::Feature(j as u32);
        }
        if let Some((label, _)) = label {
            roles[label] = Role::Label;
        }
        if let Some(id) = id {
            roles[id] = Role::Id;
        }
        let shuffled = !columns.is_sorted();
        Ok(Self { names, roles, columns, shuffled, label, id, remarks })
    }

    /// Room for what is no number in the columns.
    pub(super) fn texts(&self, options: &ReadOptions) -> Vec<TextColumn> {
        match options.schema.as_ref().and_then(|schema| schema.columns.as_ref()) {
            Some(columns) => columns.iter().map(|column| TextColumn::knowing(&column.categories)).collect(),
            None => self.columns.iter().map(|_| TextColumn::default()).collect(),
        }
    }

    /// What a schema keeps of the label.
    pub(super) fn label_column(&self) -> LabelColumn {
        let Some((field, _)) = self.label else { return LabelColumn::default() };
        LabelColumn {
            name: self.names.as_ref().map(|names| names[field].clone()),
            number: Some(field + 1),
            before: self.columns.iter().filter(|&&column| column < field).count(),
            ..LabelColumn::default()
        }
    }

    /// A column of features as messages name it.
    pub(super) fn name(&self, field: usize) -> String {
        let name = self.names.as_ref().map(|names| names[field].as_str()).filter(|name| !name.is_empty());
        name.map_or_else(|| (field + 1).to_string(), str::to_string)
    }
}

/// A label column may also be none.
fn or_none(error: Error) -> Error {
    match error {
        Error::Parameter { name, value, expected } => {
            Error::Parameter { name, value, expected: format!("{expected}, or none") }
        }
        other => other,
    }
}

/// The fields by their names and numbers.
struct NamedFields<'a> {
    names: Option<&'a [String]>,
    fields: usize,
}

impl NamedFields<'_> {
    /// The field of this name, or number from 1.
    fn field(&self, parameter: &str, wanted: &str) -> Result<usize> {
        if let Some(at) = self.names.and_then(|names| names.iter().position(|name| name == wanted)) {
            return Ok(at);
        }
        let fields = self.fields;
        if let Some(number) = wanted.parse::<usize>().ok().filter(|n| (1..=fields).contains(n)) {
            return Ok(number - 1);
        }
        let expected = match self.names {
            Some(_) => format!("the name of a column or a number from 1 to {fields}"),
            None => format!("a number from 1 to {fields} (the columns have no names)"),
        };
        Err(Error::parameter(parameter, wanted, expected))
    }

    /// The column that tells rows apart: the one asked for, or one named `id` that is neither dropped nor a feature.
    fn id(&self, schema: &Schema, options: &ReadOptions, free: &[bool]) -> Result<Option<usize>> {
        let is_feature = |name: &str| schema.column_names().is_some_and(|names| names.contains(&name));
        if options.id == IdColumn::None {
            return Ok(None);
        }
        if let IdColumn::Named(wanted) = &options.id {
            let field = self.field("id", wanted)?;
            let name = self.names.map_or("", |names| &names[field]);
            return match free[field] && self.by_name(schema) && !is_feature(name) {
                true => Ok(Some(field)),
                false => Err(Error::parameter(
                    "id",
                    wanted,
                    "a column, with a name, that is neither a feature nor the label",
                )),
            };
        }
        let names = self.names.filter(|_| self.by_name(schema)).unwrap_or_default();
        let is_id = |(field, name): &(usize, &String)| name.eq_ignore_ascii_case("id") && free[*field];
        Ok(names.iter().enumerate().find(is_id).map(|(field, _)| field).filter(|&field| !is_feature(&names[field])))
    }

    /// The columns that were asked for, in the file's order.
    fn chosen(&self, options: &ReadOptions, free: &mut [bool]) -> Result<Option<Vec<usize>>> {
        if options.keep.is_empty() {
            return Ok(None);
        }
        let mut chosen = Vec::new();
        for name in &options.keep {
            let field = self.field("features", name)?;
            if !free[field] {
                return Err(Error::parameter("features", name, "a column that is neither the label nor dropped, once"));
            }
            free[field] = false;
            chosen.push(field);
        }
        chosen.sort_unstable();
        Ok(Some(chosen))
    }

    /// Where the label is if nobody says: in a column of a usual name, else in the last that is left.
    fn label(&self, free: &[bool]) -> Option<(usize, Found)> {
        let named = self.usual_label(free).map(|field| (field, Found::Named));
        named.or_else(|| (0..self.fields).rev().find(|&field| free[field]).map(|last| (last, Found::Last)))
    }

    fn usual_label(&self, free: &[bool]) -> Option<usize> {
        let names = self.names?;
        let of = |label: &str| (0..names.len()).find(|&i| free[i] && names[i].eq_ignore_ascii_case(label));
        LABEL_NAMES.iter().find_map(|label| of(label))
    }

    /// Whether the columns of a schema are found by their names.
    fn by_name(&self, schema: &Schema) -> bool {
        schema.named && self.names.is_some()
    }

    /// The label of a file whose other columns are those of a schema of `count` columns, if it has one.
    fn label_of(&self, schema: &Schema, free: &[bool], count: usize) -> Option<usize> {
        let name = schema.label.name.as_deref();
        let named =
            self.names.zip(name).and_then(|(names, label)| (0..names.len()).find(|&i| free[i] && names[i] == label));
        if named.is_some() || self.by_name(schema) {
            return named;
        }
        let left: Vec<usize> = (0..self.fields).filter(|&field| free[field]).collect();
        if left.len() != count + 1 {
            return None;
        }
        let place = if schema.label.number.is_some() { schema.label.before } else { count };
        self.usual_label(free).or(Some(left[place.min(count)]))
    }

    /// The field of each column of a schema.
    fn matching(&self, file: &str, schema: &Schema, free: &[bool]) -> Result<(Vec<usize>, Vec<Remark>)> {
        let wrong = |reason: String| Err(Error::Data { file: file.into(), reason });
        let columns = schema.columns.as_deref().unwrap_or_default();
        let left: Vec<usize> = (0..self.fields).filter(|&field| free[field]).collect();
        let (Some(names), true) = (self.names, self.by_name(schema)) else {
            return match left.len() == columns.len() {
                true => Ok((left, Vec::new())),
                false => wrong(format!(
                    "it has {} beside the label, the model knows {}; they go by their order, as {}",
                    count(left.len(), "column"),
                    count(columns.len(), "column"),
                    if schema.named { "the file has no names for them" } else { "the model has no names for them" },
                )),
            };
        };
        let mut taken = vec![false; names.len()];
        let (mut fields, mut missing) = (Vec::with_capacity(columns.len()), Vec::new());
        for column in columns {
            match left.iter().find(|&&i| !taken[i] && names[i] == column.name) {
                Some(&field) => {
                    taken[field] = true;
                    fields.push(field);
                }
                None => missing.push(column.name.as_str()),
            }
        }
        if !missing.is_empty() {
            let columns = if missing.len() == 1 { "a column" } else { "columns" };
            return wrong(format!("it lacks {columns} that the model needs: {}", listed(&missing)));
        }
        let extra: Vec<&str> =
            left.iter().filter(|&&field| !taken[field]).map(|&field| names[field].as_str()).collect();
        let remark = |extra: &[&str]| Remark {
            about: format!("{file}: columns that the model does not know are not used: {}", listed(extra)),
            advice: Advice::NONE,
        };
        Ok((fields, if extra.is_empty() { Vec::new() } else { vec![remark(&extra)] }))
    }
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Names with commas, the first twenty of them.
pub(super) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 20;
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    names[..names.len().min(SHOWN)].join(", ") + &more
}

/// Advice to leave a column out.
pub(super) fn drop_it(name: &str) -> Remedy {
    Remedy::Use("drop", name.into())
}

/// Whether a field is a number, if not a finite one.
fn is_number(text: &[u8]) -> bool {
    fast_float2::parse::<f64, _>(text).is_ok()
}

/// Whether the first of some records holds names: it has text where most others have numbers; or it is text throughout, and
/// no field of it comes again in its column. A value that is missing is no name. A record alone is a row unless it cannot
/// be one, having text in two columns.
pub(super) fn looks_like_names(records: &[Vec<Vec<u8>>]) -> bool {
    let Some((first, others)) = records.split_first() else { return false };
    let is_name = |text: &[u8]| !is_number(text) && !is_missing(text);
    if others.is_empty() {
        return first.iter().filter(|text| is_name(text)).count() > 1;
    }
    let column = |j: usize| others.iter().filter_map(move |record| record.get(j));
    let over_numbers = |j: usize| {
        let numbers = column(j).filter(|text| is_number(text)).count();
        is_name(&first[j]) && 2 * numbers >= column(j).filter(|text| !is_missing(text)).count().max(1)
    };
    if (0..first.len()).any(over_numbers) {
        return true;
    }
    let mut distinct: Vec<&Vec<u8>> = first.iter().collect();
    distinct.sort_unstable();
    distinct.dedup();
    let comes_again = |j: usize| column(j).any(|text| *text == first[j]);
    others.len() > 1
        && first.len() > 1
        && distinct.len() == first.len()
        && first.iter().all(|text| is_name(text))
        && !(0..first.len()).any(comes_again)
}
