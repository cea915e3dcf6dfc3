//! What a data set looks like in numbers.

use serde::Serialize;
use widemargin::data::{Dataset, Labels};

/// A class and how many rows have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCount {
    /// The label.
    pub label: String,
    /// Number of rows.
    pub rows: usize,
    /// Share of all rows.
    pub share: f64,
}

/// What a data set looks like in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Profile {
    /// Number of rows.
    pub rows: usize,
    /// Number of features.
    pub features: usize,
    /// Stored values.
    pub stored: usize,
    /// Stored values by rows × features.
    pub density: f64,
    /// `dense` or `sparse`.
    pub storage: &'static str,
    /// `f32` or `f64`.
    pub precision: &'static str,
}

/// Looks a data set over.
pub fn profile(data: &Dataset) -> Profile {
    let (rows, features, stored) = (data.rows.rows(), data.rows.cols(), data.rows.stored());
    let places = rows as f64 * features as f64;
    Profile {
        rows,
        features,
        stored,
        density: if places > 0.0 { stored as f64 / places } else { 0.0 },
        storage: if data.rows.is_dense() { "dense" } else { "sparse" },
        precision: if data.rows.is_f32() { "f32" } else { "f64" },
    }
}

/// How many rows each class has.
pub fn class_counts(labels: &Labels) -> Vec<ClassCount> {
    let mut counts = vec![0usize; labels.names().len()];
    labels.codes().iter().for_each(|&code| counts[code as usize] += 1);
    let total = labels.codes().len().max(1) as f64;
    let class = |(label, rows): (&String, usize)| ClassCount { label: label.clone(), rows, share: rows as f64 / total };
    labels.names().iter().zip(counts).map(class).collect()
}
