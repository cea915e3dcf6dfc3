//! Predictions against the truth.

use serde::Serialize;
use widemargin::data::Labels;

/// How predictions compare with the labels of the rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of rows.
    pub rows: usize,
    /// Rows whose class was predicted.
    pub correct: usize,
    /// `correct / rows`.
    pub accuracy: f64,
    /// Labels of the rows that the model does not know; such rows count as wrong.
    pub unknown: Vec<String>,
    /// The labels of the rows of the confusion matrix: the model's, then the unknown ones.
    pub labels: Vec<String>,
    /// `confusion[t][p]`: number of rows of label `labels[t]` for which the model's label `p` was predicted.
    pub confusion: Vec<Vec<usize>>,
}

/// Compares predicted classes (positions among `classes`, the model's labels) with the labels of the rows.
pub fn evaluate(classes: &[String], predicted: &[u32], truth: &Labels) -> Evaluation {
    let known = truth.codes_in(classes);
    let mut labels = classes.to_vec();
    let mut unknown_code = vec![None; truth.names().len()];
    let mut confusion = vec![vec![0; classes.len()]; classes.len()];
    for ((&predicted, known), &code) in predicted.iter().zip(&known).zip(truth.codes()) {
        let row = known.map(|k| k as usize).or(unknown_code[code as usize]).unwrap_or_else(|| {
            unknown_code[code as usize] = Some(labels.len());
            labels.push(truth.names()[code as usize].clone());
            confusion.push(vec![0; classes.len()]);
            labels.len() - 1
        });
        confusion[row][predicted as usize] += 1;
    }
    let correct = (0..classes.len()).map(|l| confusion[l][l]).sum();
    let rows = predicted.len();
    let accuracy = if rows == 0 { 0.0 } else { correct as f64 / rows as f64 };
    Evaluation { rows, correct, accuracy, unknown: labels[classes.len()..].to_vec(), labels, confusion }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_labels_count_as_wrong_and_are_listed() {
        let classes = ["-1".to_string(), "+1".to_string()];
        let truth = Labels::new(&["1", "-1.0", "7", "1", "7", "8"]);
        let result = evaluate(&classes, &[1, 1, 0, 1, 1, 0], &truth);
        assert_eq!((result.rows, result.correct), (6, 2));
        assert_eq!(result.unknown, ["7", "8"]);
        assert_eq!(result.confusion, [[0, 1], [0, 2], [1, 1], [1, 0]]);
    }
}
