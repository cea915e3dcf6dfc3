//! How often probabilities come true: the bins of a reliability diagram, and what they come to.

use serde::Serialize;
use widemargin::data::Labels;
use widemargin::model::Model;
use widemargin_studies::{Bin, calibration_error, reliability};

/// Most bins.
const BINS: usize = 10;

/// Probabilities beside what was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// The expected calibration error.
    pub error: f64,
    /// Bins of equally many rows, the least probable first.
    pub bins: Vec<Bin>,
}

impl Reliability {
    /// Of probabilities and whether what they speak of is so.
    pub fn new(probabilities: &[f64], positive: &[bool]) -> Self {
        let bins = reliability(probabilities, positive, BINS);
        Self { error: calibration_error(&bins), bins }
    }

    /// Of rows whose label the model knows: of two classes the probability of the larger label, of more that of the most probable one.
    /// `None` if the model has no probabilities, or knows none of the labels.
    pub fn of(model: &Model, labels: &Labels, scores: &[f64]) -> Option<Self> {
        let (all, k) = (model.probabilities(scores)?, model.labels.len());
        let foretold = |(p, code): (&[f64], Option<u32>)| {
            let own = code? as usize;
            let told = if k == 2 { 1 } else { (0..k).fold(0, |best, c| if p[c] > p[best] { c } else { best }) };
            Some((p[told], own == told))
        };
        let rows = all.chunks_exact(k).zip(labels.codes_in(&model.labels));
        let (probabilities, positive): (Vec<f64>, Vec<bool>) = rows.filter_map(foretold).unzip();
        (!positive.is_empty()).then(|| Self::new(&probabilities, &positive))
    }
}
