//! What the columns of a table are, and how they become features. A model keeps it, so that other files of the same
//! columns, in any order, become the same features.

use super::label_key;
use crate::names::named;
use crate::{Advice, Wording};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// What the columns are and which one is the label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schema {
    /// The columns behind the features, in the order of the features; `None` where features have numbers only (LIBSVM
    /// text, arrays without names).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<Column>>,
    /// Whether the columns' names are the file's; else they only number them.
    pub named: bool,
    /// The labels.
    pub label: LabelColumn,
}

/// A column of a table.
///
/// A number or a truth value (no 0, yes 1) is one feature. A category is one feature for each of its categories, which is 1
/// where the row has it, and one more that is 1 where the row has another. Where rows of the training table had no value
/// there is a last feature that is 1 where the value is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// The categories; numbers are written as short as can be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// What stands for a missing value: a number, or the position of a category (their number: another). `None`: missing
    /// values are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<f64>,
    /// Whether a feature says where the value is missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub indicator: bool,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Numbers.
    Number,
    /// True or false, yes or no.
    Boolean,
    /// Text.
    Category,
}

named!(ColumnKind, "kind", [
    Number: "number" "numbers",
    Boolean: "boolean" "true or false",
    Category: "category" "text",
]);

/// The labels and where they stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelColumn {
    /// The name of their column, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of their column in the file, from 1; `None` where labels are no column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// How many of the schema's columns stand before it.
    #[serde(default)]
    pub before: usize,
    /// What the labels are.
    pub kind: LabelKind,
    /// Of two classes the positive one: the larger label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positive: Option<String>,
}

/// What labels are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelKind {
    /// Whole numbers.
    Whole,
    /// Numbers that are not all whole.
    Number,
    /// True and false.
    Boolean,
    /// Text.
    #[default]
    Text,
}

named!(LabelKind, "label_kind", [
    Whole: "whole" "whole numbers",
    Number: "number" "numbers",
    Boolean: "boolean" "true and false",
    Text: "text" "text",
]);

impl LabelKind {
    /// What these labels are.
    pub fn of(names: &[String]) -> Self {
        let numbers: Option<Vec<f64>> = names.iter().map(|name| label_key(name).ok().map(f64::from_bits)).collect();
        match numbers {
            Some(numbers) if numbers.iter().all(|number| number.fract() == 0.0) => Self::Whole,
            Some(_) => Self::Number,
            None if names.len() <= 2 && names.iter().all(|name| truth(name).is_some_and(|word| word.is_plain)) => {
                Self::Boolean
            }
            None => Self::Text,
        }
    }
}

/// A word for true or false.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub(super) value: bool,
    /// `true` or `false`, not `yes` or `no`.
    pub(super) is_plain: bool,
}

/// Reads `true`, `false`, `yes` and `no`, in any case.
pub(super) fn truth(text: &str) -> Option<Truth> {
    let words = [("true", true, true), ("false", false, true), ("yes", true, false), ("no", false, false)];
    let known = words.iter().find(|(word, ..)| text.eq_ignore_ascii_case(word));
    known.map(|&(_, value, is_plain)| Truth { value, is_plain })
}

/// The text a number stands for where it is a category.
pub(super) fn number_text(number: f64) -> String {
    // Minus zero is zero.
    (number + 0.0).to_string()
}

impl Column {
    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        let name = name.into();
        Self { name, kind: ColumnKind::Number, categories: Vec::new(), fill: None, indicator: false }
    }

    /// The number of features it becomes.
    pub fn width(&self) -> usize {
        let values = match self.kind {
            ColumnKind::Number | ColumnKind::Boolean => 1,
            ColumnKind::Category => self.categories.len() + 1,
        };
        values + usize::from(self.indicator)
    }

    /// The names of its features: its own; of categories `name=category`, and `name=other`; `name=missing`.
    fn feature_names(&self) -> impl Iterator<Item = String> {
        let of = |value: &str| format!("{}={value}", self.name);
        let values: Vec<String> = match self.kind {
            ColumnKind::Number | ColumnKind::Boolean => vec![self.name.clone()],
            ColumnKind::Category => self.categories.iter().map(|c| of(c)).chain([of("other")]).collect(),
        };
        values.into_iter().chain(self.indicator.then(|| of("missing")))
    }

    /// Says which rule it breaks, if any.
    fn check(&self) -> Result<(), String> {
        let wrong = |rule: &str| Err(format!("expected {rule} in the schema's column {:?}", self.name));
        let distinct: HashSet<&String> = self.categories.iter().collect();
        if distinct.len() != self.categories.len() {
            return wrong("distinct categories");
        }
        if self.kind != ColumnKind::Category && !self.categories.is_empty() {
            return wrong("no categories");
        }
        match (self.fill, self.kind) {
            (None, _) if self.indicator => wrong("something to fill in for missing values"),
            (Some(fill), _) if !fill.is_finite() => wrong("a finite number to fill in"),
            (Some(fill), ColumnKind::Boolean) if fill != 0.0 && fill != 1.0 => wrong("0 or 1 to fill in"),
            (Some(fill), ColumnKind::Category) => {
                let fits = fill >= 0.0 && fill.fract() == 0.0 && fill <= self.categories.len() as f64;
                if fits { Ok(()) } else { wrong("the number of a category to fill in") }
            }
            _ => Ok(()),
        }
    }
}

impl Schema {
    /// Features that have numbers only.
    pub fn nameless(labels: &[String]) -> Self {
        Self { columns: None, named: false, label: LabelColumn::default().of(labels) }
    }

    /// Features of numbers with these names.
    pub fn of_names(names: &[String], labels: &[String]) -> Self {
        Self { columns: Some(names.iter().map(Column::number).collect()), named: true, ..Self::nameless(labels) }
    }

    /// The same, where features have numbers only with so many columns of numbers.
    pub fn with_columns(&self, features: usize) -> Self {
        let numbered = || (1..=features).map(|number| Column::number(format!("x{number}"))).collect();
        Self { columns: Some(self.columns.clone().unwrap_or_else(numbered)), ..self.clone() }
    }

    /// The number of features, if the columns say.
    pub fn width(&self) -> Option<usize> {
        self.columns.as_ref().map(|columns| columns.iter().map(Column::width).sum())
    }

    /// The names of the columns, if they have any.
    pub fn column_names(&self) -> Option<Vec<&str>> {
        let columns = self.columns.as_ref().filter(|_| self.named)?;
        Some(columns.iter().map(|column| column.name.as_str()).collect())
    }

    /// The names of the features, if columns have any: several where a column is a category.
    pub fn feature_names(&self) -> Option<Vec<String>> {
        let columns = self.columns.as_ref().filter(|_| self.named)?;
        Some(columns.iter().flat_map(Column::feature_names).collect())
    }

    /// Says which rule it breaks for so many features, if any.
    pub(crate) fn check(&self, features: usize) -> Result<(), String> {
        if self.width().is_some_and(|width| width != features) {
            return Err(format!("expected columns in its schema for {features} features"));
        }
        let columns = self.columns.as_deref().unwrap_or_default();
        if self.label.before > columns.len() {
            return Err("expected a place of the label among the columns".into());
        }
        columns.iter().try_for_each(Column::check)
    }
}

impl LabelColumn {
    /// The same with what these classes are.
    pub(crate) fn of(self, classes: &[String]) -> Self {
        let positive = if let [_, larger] = classes { Some(larger.clone()) } else { None };
        Self { kind: LabelKind::of(classes), positive, ..self }
    }
}

/// Something about a data set that its owner should hear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What is remarkable.
    pub about: String,
    /// What to do if it is not meant.
    pub advice: Advice,
}

impl Remark {
    /// The sentence, with parameters named as these words have it.
    pub fn worded(&self, words: &dyn Wording) -> String {
        self.advice.after(&self.about, words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(names: &[&str]) -> LabelKind {
        LabelKind::of(&names.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn kinds_of_labels() {
        assert_eq!(kind(&["-1", "+1"]), LabelKind::Whole);
        assert_eq!(kind(&["0", "1.0"]), LabelKind::Whole);
        assert_eq!(kind(&["0.5", "1"]), LabelKind::Number);
        assert_eq!(kind(&["False", "True"]), LabelKind::Boolean);
        assert_eq!(kind(&["no", "yes"]), LabelKind::Text);
        assert_eq!(kind(&["1", "spam"]), LabelKind::Text);
    }

    #[test]
    fn features_of_columns() {
        let city = Column {
            kind: ColumnKind::Category,
            categories: vec!["Bonn".into(), "Rome".into()],
            fill: Some(2.0),
            indicator: true,
            ..Column::number("city")
        };
        let labels = ["a".to_string(), "b".to_string()];
        let schema = Schema {
            columns: Some(vec![Column::number("age"), city.clone()]),
            named: true,
            ..Schema::nameless(&labels)
        };
        let names = ["age", "city=Bonn", "city=Rome", "city=other", "city=missing"];
        assert_eq!(schema.feature_names().unwrap(), names);
        assert_eq!((schema.width(), schema.label.positive.as_deref()), (Some(5), Some("b")));
        assert!(schema.check(5).is_ok() && schema.check(4).is_err());
        let broken = |column: Column| Schema { columns: Some(vec![column]), ..schema.clone() };
        for (column, width) in [
            (Column { fill: Some(3.0), ..city.clone() }, 4),
            (Column { fill: None, ..city.clone() }, 4),
            (Column { categories: vec!["a".into(), "a".into()], ..city.clone() }, 4),
            (Column { fill: Some(f64::NAN), ..Column::number("a") }, 1),
        ] {
            assert!(broken(column).check(width).is_err());
        }
        let back: Schema = serde_json::from_str(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!(back, schema);
    }
}
