//! What is in the columns of a table, whatever that is.

use super::encode::{Raw, Texts, is_soft_missing};
use super::is_missing;
use super::layout::Role;
use crate::data::schema::{ColumnKind, LabelKind, number_text};
use serde::Serialize;
use std::collections::HashSet;

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ColumnProfile {
    /// Its name, or its number from 1.
    pub name: String,
    /// `feature`, `label` or `unused`.
    pub role: &'static str,
    /// `number`, `boolean`, `category`, `date`, `mixed` (numbers, and text that is none) or `empty`; of labels `whole`,
    /// `number`, `boolean` or `text`; `null` if it is not used.
    pub kind: Option<&'static str>,
    /// Rows without a value.
    pub missing: usize,
    /// Different values.
    pub distinct: usize,
    /// Whether there are more that were not told apart.
    pub more: bool,
    /// The smallest number.
    pub min: Option<f64>,
    /// The mean of the numbers.
    pub mean: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// The most frequent text, if there is text.
    pub most: Option<String>,
}

impl Raw<'_> {
    /// What is in each column of the file.
    pub(super) fn profile(&self) -> Vec<ColumnProfile> {
        let fields = self.layout.roles.iter().enumerate();
        fields
            .map(|(field, role)| match role {
                Role::Feature(j) => self.feature(field, *j as usize),
                Role::Label => self.label(field),
                Role::Id => self.blank(field, "id"),
                Role::Unused => self.blank(field, "unused"),
            })
            .collect()
    }

    fn blank(&self, field: usize, role: &'static str) -> ColumnProfile {
        ColumnProfile { name: self.layout.name(field), role, ..ColumnProfile::default() }
    }

    fn label(&self, field: usize) -> ColumnProfile {
        let blank = self.blank(field, "label");
        let Some(labels) = &self.built.labels else { return blank };
        let named = |code: &u32| !is_missing(labels.names()[*code as usize].as_bytes());
        let names: Vec<String> = labels.names().iter().filter(|name| !is_missing(name.as_bytes())).cloned().collect();
        let missing = labels.codes().iter().filter(|code| !named(code)).count();
        ColumnProfile { kind: Some(LabelKind::of(&names).name()), missing, distinct: names.len(), ..blank }
    }

    fn feature(&self, field: usize, j: usize) -> ColumnProfile {
        let column = &self.built.texts[j];
        let texts = Texts::of(column);
        let numbers: Vec<f64> = self.values(j).into_iter().filter(|value| !value.is_nan()).collect();
        let kind = match self.kind(j, &texts) {
            _ if numbers.is_empty() && texts.words() == 0 => "empty",
            Ok(kind) => kind.name(),
            Err(_) if numbers.is_empty() || numbers.len() < texts.dates as usize => "date",
            Err(_) => "mixed",
        };
        let among_numbers = !matches!(self.kind(j, &texts), Ok(ColumnKind::Category));
        let missing = texts.missing + if among_numbers { texts.soft } else { 0 };
        // What counts as missing is no value: neither a different one nor the most frequent.
        let is_word = |text: &str| !(is_missing(text.as_bytes()) || among_numbers && is_soft_missing(text));
        let words = column.seen.iter().filter(|seen| seen.rows > 0 && is_word(&seen.text));
        let most = words.clone().rev().max_by_key(|seen| seen.rows).map(|seen| seen.text.clone());
        let mut distinct: HashSet<String> = words.map(|seen| seen.text.clone()).collect();
        let different: HashSet<u64> = numbers.iter().map(|v| (v + 0.0).to_bits()).collect();
        distinct.extend(different.iter().map(|bits| number_text(f64::from_bits(*bits))));
        let sum: f64 = numbers.iter().sum();
        let some = |value: f64| (!numbers.is_empty()).then_some(value);
        ColumnProfile {
            kind: Some(kind),
            missing: missing as usize,
            distinct: distinct.len(),
            more: column.late.is_some(),
            min: some(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
            mean: some(sum / numbers.len() as f64),
            max: some(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            most,
            ..self.blank(field, "feature")
        }
    }
}
