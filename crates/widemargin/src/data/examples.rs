//! Labelled rows, as every machine takes them.

use super::{Dataset, Labels, Matrix};
use crate::{Error, Result};

/// Labelled rows to learn from, borrowed.
#[derive(Clone, Copy)]
pub struct Examples<'a> {
    /// Where they come from, for messages.
    pub name: &'a str,
    /// The rows.
    pub rows: &'a Matrix<'a>,
    /// Their labels.
    pub labels: &'a Labels,
}

impl<'a> Examples<'a> {
    /// Those of a data set, which must have labels.
    pub fn of(data: &'a Dataset) -> Result<Self> {
        let labels = data.labels.as_ref().ok_or_else(|| unusable(&data.name, "it has no labels to learn from"))?;
        Ok(Self { name: &data.name, rows: &data.rows, labels })
    }
}

/// The row weights, checked; all 1 if none are given.
pub fn given_weights(name: &str, labels: &Labels, rows: Option<&[f64]>) -> Result<Vec<f64>> {
    let m = labels.codes().len();
    let rows = rows.map_or_else(|| vec![1.0; m], <[f64]>::to_vec);
    if rows.len() != m {
        return Err(unusable(name, &format!("it has {m} rows, but {} row weights were given", rows.len())));
    }
    match rows.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        None => Ok(rows),
        Some(i) => {
            let reason = format!("the weight of row {} is {}; expected a finite number >= 0", i + 1, rows[i]);
            Err(unusable(name, &reason))
        }
    }
}

/// What is wrong with a data set, as an error.
pub fn unusable(name: &str, reason: &str) -> Error {
    Error::data(name, reason)
}
