//! Model files of LIBSVM (C-SVC and ν-SVC) and LIBLINEAR (its classifiers), so that people can move over.
//!
//! Both number classes in the order in which training met them, and give a pair's or a problem's positive score to the
//! class met first; here classes ascend and a positive score means the larger label.

use super::decode::pairs;
use super::{Decision, Model, ModelCertificate, Scorer};
use crate::data::{Csr, Labels, Matrix, Rows};
use crate::kernel::Kernel;
use crate::problem::Bias;
use crate::{Error, Result, memory, with_rows};
use std::collections::HashMap;
use std::path::Path;

/// A part of a file, or the line and why it is not as it should be.
type Checked<T> = std::result::Result<T, (usize, String)>;

impl Model {
    /// Whether a text begins as a model file of LIBSVM or LIBLINEAR does.
    pub fn is_foreign(start: &[u8]) -> bool {
        start.starts_with(b"svm_type ") || start.starts_with(b"solver_type ")
    }

    /// Reads a model file of LIBSVM or LIBLINEAR.
    ///
    /// Where several classes of LIBSVM's pairs have the same number of votes, LIBSVM takes the first it met in training;
    /// here the scores of the pairs decide. Probabilities are not taken over.
    pub fn load_foreign(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::File::open(path).and_then(|mut file| memory::read_to_end(&mut file));
        let bytes = bytes.map_err(Error::io(path))?;
        Self::from_foreign(&path.display().to_string(), &bytes)
    }

    /// As [`load_foreign`](Self::load_foreign), from the bytes of the file called `name`.
    pub fn from_foreign(name: &str, bytes: &[u8]) -> Result<Self> {
        let unusable = |reason| Error::Model { file: name.into(), reason };
        let text = std::str::from_utf8(bytes).map_err(|_| unusable("it is no text".into()))?;
        let read = if text.starts_with("solver_type") { liblinear } else { libsvm };
        let model = read(text).map_err(|(line, reason)| unusable(format!("line {line}: {reason}")))?;
        model.check().map_err(unusable)?;
        Ok(model)
    }
}

/// The lines `key values…` before the numbers.
struct ForeignHead<'t> {
    values: HashMap<&'t str, (usize, &'t str)>,
    /// The line behind the one that ends them, from 1.
    next: usize,
}

impl<'t> ForeignHead<'t> {
    /// Reads up to the line that is `end`.
    fn read(text: &'t str, end: &str) -> Checked<(Self, impl Iterator<Item = (usize, &'t str)>)> {
        let mut lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim_end()));
        let mut head = Self { values: HashMap::new(), next: 1 };
        for (number, line) in lines.by_ref() {
            head.next = number + 1;
            if line == end {
                return Ok((head, lines));
            }
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            head.values.insert(key, (number, value.trim()));
        }
        Err((head.next, format!("expected a line `{end}`")))
    }

    fn text(&self, key: &str) -> Checked<(usize, &'t str)> {
        self.values.get(key).copied().ok_or_else(|| (self.next, format!("expected a line `{key} …` before this one")))
    }

    fn one<T: std::str::FromStr>(&self, key: &str) -> Checked<T> {
        let (line, text) = self.text(key)?;
        text.parse().map_err(|_| (line, format!("found `{text}`, expected a number")))
    }

    fn several<T: std::str::FromStr>(&self, key: &str, count: usize) -> Checked<Vec<T>> {
        let (line, text) = self.text(key)?;
        let found: Option<Vec<T>> = text.split_whitespace().map(|number| number.parse().ok()).collect();
        let wrong = || (line, format!("expected {count} values behind `{key}`"));
        found.filter(|found| found.len() == count).ok_or_else(wrong)
    }

    /// The labels, ascending, and the place of each class of the file among them.
    fn classes(&self) -> Checked<(Vec<String>, Vec<usize>)> {
        let (line, _) = self.text("nr_class")?;
        let count: usize = self.one("nr_class")?;
        let texts: Vec<String> = self.several("label", count)?;
        let labels = Labels::new(&texts);
        if count < 2 || labels.names().len() != count {
            return Err((line, "expected two or more different labels".into()));
        }
        Ok((labels.names().to_vec(), labels.codes().iter().map(|&code| code as usize).collect()))
    }
}

fn model(
    machine: &str,
    program: &str,
    kernel: Kernel,
    (labels, features): (Vec<String>, usize),
    scorer: Scorer,
    decision: Decision,
) -> Model {
    Model {
        kernel,
        certificate: ModelCertificate::none(program.into()),
        ..Model::plain(machine, labels, features, scorer, decision)
    }
}

fn libsvm(text: &str) -> Checked<Model> {
    let (head, lines) = ForeignHead::read(text, "SV")?;
    let (line, kind) = head.text("svm_type")?;
    if !["c_svc", "nu_svc"].contains(&kind) {
        return Err((line, format!("found {kind}, expected a classifier: c_svc or nu_svc")));
    }
    let kernel = libsvm_kernel(&head)?;
    let (labels, place) = head.classes()?;
    let k = labels.len();
    let rho: Vec<f64> = head.several("rho", k * (k - 1) / 2)?;
    let sizes: Vec<usize> = head.several("nr_sv", k)?;
    let rows = Support::read(lines, k - 1, head.one("total_sv")?)?;
    if sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size)) != Some(rows.offsets.len() - 1) {
        return Err((head.text("nr_sv")?.0, "expected numbers of support vectors that add up to total_sv".into()));
    }
    let of_class: Vec<usize> =
        sizes.iter().enumerate().flat_map(|(class, &size)| std::iter::repeat_n(class, size)).collect();
    let column_of = |a: usize, b: usize| pairs(k).position(|pair| pair == (a.min(b), a.max(b))).unwrap_or(0);
    let columns = k * (k - 1) / 2;
    let (mut coefficients, mut intercepts) = (vec![vec![0.0; of_class.len()]; columns], vec![0.0; columns]);
    for ((i, j), rho) in pairs(k).zip(rho) {
        // Above zero LIBSVM votes for its class i; we for the larger label.
        let sign = if place[i] > place[j] { 1.0 } else { -1.0 };
        let column = column_of(place[i], place[j]);
        intercepts[column] = -sign * rho;
        for (row, &class) in of_class.iter().enumerate() {
            if class == i {
                coefficients[column][row] = sign * rows.coefficients[row * (k - 1) + j - 1];
            } else if class == j {
                coefficients[column][row] = sign * rows.coefficients[row * (k - 1) + i];
            }
        }
    }
    let decision = if k == 2 { Decision::Sign } else { Decision::Pairs };
    let features = rows.columns.iter().max().map_or(0, |&j| j as usize + 1);
    let line = head.next;
    let support = Csr::new(features, rows.offsets, rows.columns, rows.values);
    let support = Matrix::SparseF64(support.map_err(|rule| (line, format!("expected support vectors with {rule}")))?);
    let scorer = match kernel {
        Kernel::Linear => Scorer::Linear { weights: collapsed(&support, &coefficients, line)?, intercepts },
        _ => Scorer::Kernel { support, coefficients, intercepts },
    };
    Ok(model("svm", "libsvm", kernel, (labels, features), scorer, decision))
}

/// `w = Σ c_i x_i`, one vector a column.
fn collapsed(support: &Matrix<'_>, coefficients: &[Vec<f64>], line: usize) -> Checked<Vec<Vec<f64>>> {
    let needed = (support.cols() as u64).saturating_mul(coefficients.len() as u64).saturating_mul(8);
    memory::check(|| "the weights".into(), needed, "").map_err(|error| (line, error.to_string()))?;
    let column = |c: &Vec<f64>| {
        let mut w = vec![0.0; support.cols()];
        with_rows!(support, x => for (i, c) in c.iter().enumerate().filter(|(_, c)| **c != 0.0) {
            x.visit(i, |j, v| w[j] += c * v);
        });
        w
    };
    Ok(coefficients.iter().map(column).collect())
}

fn libsvm_kernel(head: &ForeignHead<'_>) -> Checked<Kernel> {
    let (line, kind) = head.text("kernel_type")?;
    Ok(match kind {
        "linear" => Kernel::Linear,
        "rbf" => Kernel::Rbf { gamma: head.one("gamma")? },
        "polynomial" => {
            Kernel::Poly { gamma: head.one("gamma")?, degree: head.one("degree")?, coef0: head.one("coef0")? }
        }
        "sigmoid" => Kernel::Sigmoid { gamma: head.one("gamma")?, coef0: head.one("coef0")? },
        other => return Err((line, format!("found {other}, expected linear, polynomial, rbf or sigmoid"))),
    })
}

/// Support vectors with their coefficients, `k − 1` each.
struct Support {
    coefficients: Vec<f64>,
    offsets: Vec<u64>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Support {
    fn read<'t>(lines: impl Iterator<Item = (usize, &'t str)>, coefficients: usize, count: usize) -> Checked<Self> {
        let mut rows = Self { coefficients: Vec::new(), offsets: vec![0], columns: Vec::new(), values: Vec::new() };
        let mut last = 0;
        for (number, line) in lines {
            last = number;
            if line.is_empty() {
                continue;
            }
            let mut tokens = line.split_whitespace();
            for token in tokens.by_ref().take(coefficients) {
                let wrong = || (number, format!("found `{token}`, expected a coefficient"));
                rows.coefficients.push(token.parse().map_err(|_| wrong())?);
            }
            for token in tokens {
                let (index, value) =
                    pair(token).ok_or_else(|| (number, format!("found `{token}`, expected index:value")))?;
                rows.columns.push(index - 1);
                rows.values.push(value);
            }
            rows.offsets.push(rows.values.len() as u64);
            if rows.coefficients.len() != (rows.offsets.len() - 1) * coefficients {
                return Err((number, format!("expected {coefficients} coefficients")));
            }
        }
        match rows.offsets.len() - 1 {
            found if found == count => Ok(rows),
            found => Err((last, format!("found {found} support vectors, expected {count}"))),
        }
    }
}

/// `index:value`, the index from 1.
fn pair(token: &str) -> Option<(u32, f64)> {
    let (index, value) = token.split_once(':')?;
    Some((index.parse().ok().filter(|index| *index > 0)?, value.parse().ok()?))
}

/// LIBLINEAR's classifiers, and the machine of ours that minimises the same, or its own name.
const SOLVERS: [(&str, &str); 8] = [
    ("L2R_LR", "logistic"),
    ("L2R_L2LOSS_SVC_DUAL", "l2svm"),
    ("L2R_L2LOSS_SVC", "l2svm"),
    ("L2R_L1LOSS_SVC_DUAL", "svm"),
    ("MCSVM_CS", "mcsvm"),
    ("L1R_L2LOSS_SVC", "l1-regularised l2svm"),
    ("L1R_LR", "l1-regularised logistic"),
    ("L2R_LR_DUAL", "logistic"),
];

fn liblinear(text: &str) -> Checked<Model> {
    let (head, lines) = ForeignHead::read(text, "w")?;
    let (line, kind) = head.text("solver_type")?;
    let Some((_, machine)) = SOLVERS.iter().find(|(name, _)| *name == kind) else {
        return Err((
            line,
            format!("found {kind}, expected a classifier: {}", SOLVERS.map(|(name, _)| name).join(", ")),
        ));
    };
    let (labels, place) = head.classes()?;
    let (k, features, bias): (usize, usize, f64) = (labels.len(), head.one("nr_feature")?, head.one("bias")?);
    let single = k == 2 && kind != "MCSVM_CS";
    let columns = if single { 1 } else { k };
    let rows = features.saturating_add(usize::from(bias >= 0.0));
    let mut table: Vec<Vec<f64>> = Vec::new();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let row: Option<Vec<f64>> = line.split_whitespace().map(|text| text.parse().ok()).collect();
        match row.filter(|row| row.len() == columns) {
            Some(row) if table.len() < rows => table.push(row),
            Some(_) => return Err((number, format!("expected no more than {rows} lines of weights"))),
            None => return Err((number, format!("expected {columns} weights"))),
        }
    }
    if table.len() != rows {
        return Err((head.next + table.len(), format!("found {} lines of weights, expected {rows}", table.len())));
    }
    let constant = if bias >= 0.0 { table.pop() } else { None };
    // Above zero LIBLINEAR means its first class.
    let sign = if single && place[0] == 0 { -1.0 } else { 1.0 };
    let from = |column: usize| if single { 0 } else { place.iter().position(|&p| p == column).unwrap_or(0) };
    let weights = (0..columns).map(|column| table.iter().map(|row| sign * row[from(column)]).collect()).collect();
    let intercept = |column: usize| constant.as_ref().map_or(0.0, |row| sign * bias * row[from(column)]);
    let scorer = Scorer::Linear { weights, intercepts: (0..columns).map(intercept).collect() };
    let decision = if single { Decision::Sign } else { Decision::Largest };
    let bias = if bias > 0.0 { Bias::Feature(bias) } else { Bias::None };
    Ok(Model { bias, ..model(machine, "liblinear", Kernel::Linear, (labels, features), scorer, decision) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dense;

    fn predict(model: &Model, rows: &[f64]) -> (Vec<f64>, Vec<String>) {
        let rows = Matrix::DenseF64(Dense::new(rows.len() / 2, 2, rows).unwrap());
        let scores = model.scores(&rows).unwrap();
        let labels = model.classes(&scores).iter().map(|&c| model.labels[c as usize].clone()).collect();
        (scores, labels)
    }

    #[test]
    fn libsvm_with_labels_in_any_order() {
        let text = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n\
                    1 1:2 \n-1 2:1 \n";
        let model = Model::from_foreign("m", text.as_bytes()).unwrap();
        // LIBSVM: 2 x₁ − x₂ − 0.5, above zero means 1.
        assert_eq!(predict(&model, &[1.0, 0.0, 0.0, 1.0]), (vec![1.5, -1.5], vec!["1".into(), "-1".into()]));
        let turned = text.replace("label 1 -1", "label -1 1");
        let model = Model::from_foreign("m", turned.as_bytes()).unwrap();
        assert_eq!(predict(&model, &[1.0, 0.0, 0.0, 1.0]), (vec![-1.5, 1.5], vec!["-1".into(), "1".into()]));
    }

    #[test]
    fn liblinear_with_a_bias_and_more_classes() {
        let text = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 2 1\nnr_feature 2\nbias 1\nw\n1 \n-1 \n0.25 \n";
        let model = Model::from_foreign("m", text.as_bytes()).unwrap();
        assert_eq!(predict(&model, &[1.0, 0.0, 0.0, 1.0]), (vec![1.25, -0.75], vec!["2".into(), "1".into()]));
        let text = "solver_type MCSVM_CS\nnr_class 3\nlabel 7 5 6\nnr_feature 2\nbias -1\nw\n1 0 0 \n0 2 1 \n";
        let model = Model::from_foreign("m", text.as_bytes()).unwrap();
        assert_eq!(model.labels, ["5", "6", "7"]);
        assert_eq!(predict(&model, &[1.0, 0.0, 0.0, 1.0]).1, ["7", "5"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let text = "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0.5\nlabel 1 -1\nnr_sv 1 1\nSV\n1 1:2\n-1 2:1\n";
        for (from, to, told) in [
            ("c_svc", "epsilon_svr", "line 1"),
            ("linear", "precomputed", "line 2"),
            ("rho 0.5", "rho 0.5 1", "line 5"),
            ("label 1 -1", "label 1 1", "different labels"),
            ("nr_sv 1 1", "nr_sv 1 2", "line 7"),
            ("1:2", "0:2", "line 9"),
            ("1:2", "1:x", "line 9"),
            ("1:2", "3:1 2:1", "line 9"),
            ("-1 2:1", "", "line"),
            ("SV", "", "SV"),
            ("1:2", "1:inf", "finite"),
        ] {
            let error = Model::from_foreign("m", text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(told), "{from} → {to}: {error}");
        }
    }
}
