//! Affine scaling of features (placeholder until the data layer lands).
use super::Matrix;
use serde::{Deserialize, Serialize};
/// Kind of scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScalingKind {
    /// [0,1]
    MinMax,
    /// [-1,1]
    MaxAbs,
    /// mean 0 sd 1
    Standard,
}
/// x' = (x − shift) · factor
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// kind
    pub kind: ScalingKind,
    /// shift
    pub shift: Vec<f64>,
    /// factor
    pub factor: Vec<f64>,
}
impl Scaling {
    /// fit
    pub fn fit(kind: ScalingKind, rows: &Matrix<'_>, _weights: Option<&[f64]>) -> Self {
        Self { kind, shift: vec![0.0; rows.cols()], factor: vec![1.0; rows.cols()] }
    }
    /// apply
    pub fn apply(&self, rows: &Matrix<'_>) -> Matrix<'static> {
        rows.select(&(0..rows.rows()).collect::<Vec<_>>())
    }
}
