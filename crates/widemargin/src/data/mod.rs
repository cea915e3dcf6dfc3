//! Rows and labels: read, hold (dense or CSR, `f32` or `f64`), scale, split, write. Knows no machine.

mod atomic;
mod blocks;
mod divide;
#[cfg(feature = "embedded")]
mod embedded;
mod examples;
mod format;
mod matrix;
mod read;
mod scale;
mod schema;
mod split;
mod write;

pub use atomic::{AtomicFile, drop_unfinished_files, write_atomically};
pub use blocks::{BlockCounts, BlockFile, convert_to_blocks, is_block_file, names_block_file};
pub use divide::{Divided, divide_dataset, divide_file};
#[cfg(feature = "embedded")]
pub use embedded::{embedded, embedded_names};
pub use examples::Examples;
pub(crate) use examples::{given_weights, unusable};
pub use format::Format;
pub(crate) use matrix::dense_dot;
pub use matrix::{Csr, Dense, Matrix, Real, Rows};
pub use read::{
    ColumnProfile, IdColumn, Precision, ReadOptions, Storage, Survey, read, read_bytes, read_parts, survey,
};
pub(crate) use scale::interpolate;
pub use scale::{Ranks, Scaling, ScalingKind, UnlikeScales, unlike_scales};
pub use schema::{Column, ColumnKind, LabelColumn, LabelKind, Remark, Schema};
pub use split::{folds, train_test};
pub use write::write;

use std::collections::{HashMap, HashSet};

/// The class of each row: a code into the distinct labels, which are kept as the file wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    names: Vec<String>,
    codes: Vec<u32>,
}

/// Labels that mean the same compare equal: `+1`, `1` and `1.0` are one label, `spam` is only itself.
pub(crate) fn label_key(name: &str) -> Result<u64, &str> {
    match name.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number + 0.0).to_bits()),
        _ => Err(name),
    }
}

impl Labels {
    /// Codes the labels of the rows. Classes stand in ascending order: by value if all are numbers, else by text.
    pub fn new<S: AsRef<str>>(rows: &[S]) -> Self {
        let mut met = MetLabels::default();
        let codes = rows.iter().map(|row| met.code(row.as_ref())).collect();
        Self::sorted(met.names, codes)
    }

    /// Builds labels from distinct names in any order and codes into them, and puts the names in ascending order.
    pub fn sorted(names: Vec<String>, codes: Vec<u32>) -> Self {
        let numbers: Option<Vec<f64>> = names.iter().map(|n| n.parse().ok().filter(|v: &f64| v.is_finite())).collect();
        let mut order: Vec<usize> = (0..names.len()).collect();
        match numbers {
            Some(values) => order.sort_by(|&a, &b| values[a].total_cmp(&values[b])),
            None => order.sort_by(|&a, &b| names[a].cmp(&names[b])),
        }
        let mut rank = vec![0u32; names.len()];
        for (new, &old) in order.iter().enumerate() {
            rank[old] = new as u32;
        }
        Self {
            names: order.into_iter().map(|i| names[i].clone()).collect(),
            codes: codes.into_iter().map(|c| rank[c as usize]).collect(),
        }
    }

    /// Labels of classes that already stand in the order wanted; `None` if a name is there twice or a code has none.
    pub fn coded(names: Vec<String>, codes: Vec<u32>) -> Option<Self> {
        let distinct: HashSet<&String> = names.iter().collect();
        let fits = distinct.len() == names.len() && codes.iter().all(|&c| (c as usize) < names.len());
        fits.then_some(Self { names, codes })
    }

    /// The labels of all rows of these, one after the other; labels that mean the same (`1`, `+1`) are one.
    pub fn joined(parts: &[Self]) -> Self {
        let mut met = MetLabels::default();
        let codes = parts.iter().flat_map(|part| met.codes(&part.names, &part.codes)).collect();
        Self::sorted(met.names, codes)
    }

    /// The distinct labels, ascending, as they were first written.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// For each row the position of its label in [`names`](Self::names).
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The labels of the chosen rows; classes none of them has stay listed.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self { names: self.names.clone(), codes: rows.iter().map(|&i| self.codes[i]).collect() }
    }

    /// For each row the position of its label among `classes`, or `None` for a label that is not there.
    pub fn codes_in(&self, classes: &[String]) -> Vec<Option<u32>> {
        let numbered = || (0u32..).zip(classes);
        let meant: HashMap<_, u32> = numbered().map(|(i, c)| (label_key(c), i)).collect();
        // Numbers too long for an f64 may mean the same and still be two labels.
        let written: HashMap<&str, u32> = numbered().map(|(i, c)| (c.as_str(), i)).collect();
        let code = |n: &String| written.get(n.as_str()).or_else(|| meant.get(&label_key(n))).copied();
        let map: Vec<Option<u32>> = self.names.iter().map(code).collect();
        self.codes.iter().map(|&c| map[c as usize]).collect()
    }
}

/// The labels met so far, numbered as they come; those that mean the same have one number.
#[derive(Default)]
pub(crate) struct MetLabels {
    names: Vec<String>,
    numbers: HashMap<u64, u32>,
    texts: HashMap<String, u32>,
}

impl MetLabels {
    /// The number of a label.
    fn code(&mut self, name: &str) -> u32 {
        let key = label_key(name);
        let known = key.map_or_else(|text| self.texts.get(text), |number| self.numbers.get(&number));
        if let Some(&code) = known {
            return code;
        }
        let code = self.names.len() as u32;
        self.names.push(name.into());
        key.map_or_else(|text| self.texts.insert(text.into(), code), |number| self.numbers.insert(number, code));
        code
    }

    /// The number of each row's label, given as a place among some names.
    fn codes(&mut self, names: &[String], rows: &[u32]) -> Vec<u32> {
        let codes: Vec<u32> = names.iter().map(|name| self.code(name)).collect();
        rows.iter().map(|&place| codes[place as usize]).collect()
    }
}

/// A data set in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Where it comes from, for messages and tables.
    pub name: String,
    /// The rows.
    pub rows: Matrix<'static>,
    /// The labels, if the file has any.
    pub labels: Option<Labels>,
    /// What the columns of a table are (CSV, Parquet), or of an array with names.
    pub schema: Option<Schema>,
    /// What its owner should hear.
    pub remarks: Vec<Remark>,
    /// How the rows are called, where a table that is read for a model says so.
    pub ids: Option<Ids>,
}

/// A column that tells rows apart and is no feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// Its name.
    pub name: String,
    /// Its text in each row.
    pub values: Vec<String>,
}

impl Dataset {
    /// Rows whose features have numbers only.
    pub fn new(name: impl Into<String>, rows: Matrix<'static>, labels: Option<Labels>) -> Self {
        Self { name: name.into(), rows, labels, schema: None, remarks: Vec::new(), ids: None }
    }

    /// Whether it was a table, whose columns may be anything.
    pub fn is_table(&self) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.columns.is_some())
    }

    /// The names of the features, if they have any that do more than number them (`x1`, `x2`, …), as files written here do.
    pub fn feature_names(&self) -> Option<Vec<String>> {
        let names = self.schema.as_ref()?.feature_names()?;
        let numbered = names.iter().enumerate().all(|(i, name)| *name == format!("x{}", i + 1));
        (!numbered).then_some(names)
    }

    /// The rows of both, these first; the labels of both, or none if either has none.
    ///
    /// Labels that mean the same (`1`, `+1`) are one; the narrower set gets features that are zero.
    pub fn joined(&self, other: &Dataset) -> Dataset {
        let labels = self.labels.clone().zip(other.labels.clone());
        let labels = labels.map(|(a, b)| Labels::joined(&[a, b]));
        let joined = Dataset::new(self.name.clone(), self.rows.stacked(&other.rows), labels);
        Dataset { schema: self.schema.clone(), ..joined }
    }
}
