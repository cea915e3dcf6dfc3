//! Models as ONNX graphs of plain operators in double precision (ir_version 8, opset 13), written by hand: a few
//! messages of protocol buffers.

use super::decode::{code_bit, code_columns, pairs};
use super::{Curve, Decision, Model, RankedKernels, Scorer};
use crate::data::{Matrix, Ranks, Rows, Scaling};
use crate::kernel::Kernel;
use crate::{Error, Result, memory, with_rows};

/// The labels as the graph gives them.
#[derive(Clone, Debug, PartialEq)]
pub enum OnnxLabels {
    /// 64-bit whole numbers.
    Whole(Vec<i64>),
    /// Numbers.
    Number(Vec<f64>),
    /// Text.
    Text(Vec<String>),
}

impl OnnxLabels {
    /// Labels as the numbers they are, if they all are.
    pub fn of(labels: &[String]) -> Self {
        let whole: Option<Vec<i64>> = labels.iter().map(|label| label.parse().ok()).collect();
        let number = |label: &String| label.parse().ok().filter(|v: &f64| v.is_finite());
        match whole {
            Some(whole) => Self::Whole(whole),
            None => {
                let numbers: Option<Vec<f64>> = labels.iter().map(number).collect();
                numbers.map_or_else(|| Self::Text(labels.to_vec()), Self::Number)
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Whole(labels) => labels.len(),
            Self::Number(labels) => labels.len(),
            Self::Text(labels) => labels.len(),
        }
    }

    fn tensor(&self, name: &str) -> Message {
        let shape = [self.len()];
        match self {
            Self::Whole(labels) => tensor(name, &shape, INT64, labels.iter().flat_map(|v| v.to_le_bytes())),
            Self::Number(labels) => tensor(name, &shape, DOUBLE, labels.iter().flat_map(|v| v.to_le_bytes())),
            Self::Text(labels) => {
                let mut tensor = Message::default();
                shape.iter().for_each(|&n| tensor.number(1, n as u64));
                tensor.number(2, STRING);
                labels.iter().for_each(|label| tensor.bytes(6, label.as_bytes()));
                tensor.bytes(8, name.as_bytes());
                tensor
            }
        }
    }

    fn kind(&self) -> u64 {
        match self {
            Self::Whole(_) => INT64,
            Self::Number(_) => DOUBLE,
            Self::Text(_) => STRING,
        }
    }
}

/// Types of elements, by ONNX's numbers.
const FLOAT: u64 = 1;
const INT64: u64 = 7;
const STRING: u64 = 8;
const DOUBLE: u64 = 11;

impl Model {
    /// The bytes of an ONNX model of the same function: it takes `X`, one row of features a row, in double precision (or in
    /// `single`), and gives `label`, `scores` (two classes: one number a row, else one a class) and, if the model has them,
    /// `probabilities`, one column a class. Rows first go through the maps `x' = (x − shift) · factor` of `before`.
    pub fn to_onnx(
        &self,
        name: &str,
        labels: &OnnxLabels,
        single: bool,
        before: &[(Vec<f64>, Vec<f64>)],
    ) -> Result<Vec<u8>> {
        if let Scorer::Kernel { support, .. } = &self.scorer {
            // The graph holds every support row in full.
            let bytes = (support.rows() as u64).saturating_mul(self.features as u64).saturating_mul(24);
            memory::check(|| format!("{} support rows in full", support.rows()), bytes, "")?;
        }
        if labels.len() != self.labels.len() {
            return Err(Error::Usage(format!("{} labels for {} classes", labels.len(), self.labels.len())));
        }
        let mut graph = Graph::default();
        let mut rows = if single { graph.cast("X", DOUBLE) } else { "X".into() };
        // The factor 1 of a scaling by ranks is left out, and these come last.
        let own = self.scaling.iter().filter(|scaling| scaling.ranks.is_none());
        let own = own.map(|scaling| (&scaling.shift, &scaling.factor));
        for (shift, factor) in before.iter().map(|(shift, factor)| (shift, factor)).chain(own) {
            let width = [self.features];
            if [shift.len(), factor.len()] != [self.features; 2] {
                return Err(Error::Usage(format!(
                    "a map of {} features before a model of {}",
                    shift.len(),
                    self.features
                )));
            }
            let (shift, factor) = (graph.array(&width, shift), graph.array(&width, factor));
            let centred = graph.add("Sub", &[&rows, &shift]);
            rows = graph.add("Mul", &[&centred, &factor]);
        }
        if let Some(ranks) = self.scaling.as_ref().and_then(|scaling| scaling.ranks.as_ref()) {
            rows = graph.ranks(&rows, ranks)?;
        }
        let columns = self.columns_of(&mut graph, &rows)?;
        self.decide(&mut graph, &columns, labels);
        let probabilities = self.add_probabilities(&mut graph)?;
        Ok(graph.model(name, self, labels, single, probabilities))
    }

    /// The raw score functions: `Σ_k Σ_i c_ki K_k(x_i, x) + b` over the model's kernel and those of its parts.
    fn columns_of(&self, graph: &mut Graph, rows: &str) -> Result<String> {
        let k = self.scorer.columns();
        let support = match &self.scorer {
            Scorer::Linear { .. } => None,
            Scorer::Kernel { support, .. } => Some(support),
        };
        let ranked_rows = match &self.ranked {
            Some(RankedKernels { scaling: Scaling { ranks: Some(ranks), .. }, .. }) => Some(graph.ranks(rows, ranks)?),
            _ => None,
        };
        let ranked_support = self.ranked.as_ref().zip(support).map(|(ranked, support)| ranked.scaling.apply(support));
        let mut columns = graph.array(&[k], self.scorer.intercepts());
        for (number, (kernel, vectors, on_ranks)) in self.kernels().enumerate() {
            let rows = ranked_rows.as_deref().filter(|_| on_ranks).unwrap_or(rows);
            let support = ranked_support.as_ref().filter(|_| on_ranks).or(support);
            let support = support.filter(|_| number == 0 || kernel != Kernel::Linear);
            let values = support.map_or_else(|| rows.into(), |support| kernel_values(graph, kernel, rows, support));
            let vectors = graph.array(&[vectors[0].len(), k], &transposed(vectors));
            let products = graph.add("MatMul", &[&values, &vectors]);
            columns = graph.add("Add", &[&products, &columns]);
        }
        Ok(columns)
    }
}

/// `k(x, z)` for every row `x` and support row `z`.
fn kernel_values(graph: &mut Graph, kernel: Kernel, rows: &str, support: &Matrix<'_>) -> String {
    let (n, d) = (support.rows(), support.cols());
    let dense = full(support);
    // A factor stands in the matrix: onnxruntime would fuse one behind a product into it, in single precision.
    let product = |graph: &mut Graph, factor: f64| {
        let columns: Vec<f64> =
            (0..d).flat_map(|j| (0..n).map(move |i| (i, j))).map(|(i, j)| factor * dense[i * d + j]).collect();
        let columns = graph.array(&[d, n], &columns);
        graph.add("MatMul", &[rows, &columns])
    };
    match kernel {
        Kernel::Linear => product(graph, 1.0),
        Kernel::Rbf { gamma } => {
            let products = product(graph, -2.0);
            let squares = graph.add("Mul", &[rows, rows]);
            let norms = graph.sum(&squares, 1, true);
            let own: Vec<f64> = dense.chunks(d.max(1)).map(|row| row.iter().map(|v| v * v).sum()).collect();
            let own = graph.array(&[n], &own);
            let sums = graph.add("Add", &[&norms, &own]);
            let distances = graph.add("Add", &[&sums, &products]);
            let zero = graph.scalar(0.0);
            let distances = graph.add("Max", &[&distances, &zero]);
            graph.exponential(&distances, -gamma)
        }
        Kernel::Laplacian { gamma } => {
            let axes = graph.whole(&[1]);
            let each = graph.add("Unsqueeze", &[rows, &axes]);
            let support = graph.array(&[1, n, d], &dense);
            let differences = graph.add("Sub", &[&each, &support]);
            let sizes = graph.add("Abs", &[&differences]);
            let distances = graph.sum(&sizes, 2, false);
            graph.exponential(&distances, -gamma)
        }
        Kernel::Poly { gamma, degree, coef0 } => {
            let products = product(graph, gamma);
            let shifted = shift(graph, &products, coef0);
            let degree = graph.scalar(degree.into());
            graph.add("Pow", &[&shifted, &degree])
        }
        Kernel::Sigmoid { gamma, coef0 } => {
            let products = product(graph, gamma);
            let shifted = shift(graph, &products, coef0);
            graph.add("Tanh", &[&shifted])
        }
    }
}

impl Model {
    /// From raw scores to the outputs `scores` and `label`.
    fn decide(&self, graph: &mut Graph, columns: &str, labels: &OnnxLabels) {
        let k = self.labels.len();
        let code = if k == 2 {
            let weights: &[f64] = if self.scorer.columns() == 1 { &[1.0] } else { &[-1.0, 1.0] };
            let weights = graph.array(&[weights.len()], weights);
            graph.named("MatMul", &[columns, &weights], "scores", &[]);
            let threshold = graph.scalar(self.threshold.unwrap_or(0.0));
            let above = graph.add("Greater", &["scores", &threshold]);
            graph.cast(&above, INT64)
        } else {
            match self.decision {
                Decision::Sign | Decision::Largest => graph.named("Identity", &[columns], "scores", &[]),
                Decision::Pairs => votes(graph, columns, k),
                Decision::Codes => code_words(graph, columns, k),
            };
            graph.with("ArgMax", &["scores"], &[("axis", 1), ("keepdims", 0)])
        };
        let names = graph.constant(|name| labels.tensor(name));
        graph.named("Gather", &[&names, &code], "label", &[]);
    }

    /// The softmax of slope times score plus offset, of two classes of that and 0; or what the curves say.
    fn add_probabilities(&self, graph: &mut Graph) -> Result<bool> {
        let Some(calibration) = &self.calibration else { return Ok(false) };
        if !calibration.curves.is_empty() {
            return self.add_curves(graph, &calibration.curves).map(|()| true);
        }
        let k = self.labels.len();
        let slope = graph.scalar(calibration.slope);
        let mut odds = graph.add("Mul", &["scores", &slope]);
        if !calibration.offsets.is_empty() {
            let offsets = graph.array(&[calibration.offsets.len()], &calibration.offsets);
            odds = graph.add("Add", &[&odds, &offsets]);
        }
        if k == 2 {
            let axes = graph.whole(&[1]);
            let column = graph.add("Unsqueeze", &[&odds, &axes]);
            let both = graph.array(&[1, 2], &[0.0, 1.0]);
            odds = graph.add("MatMul", &[&column, &both]);
        }
        graph.named("Softmax", &[&odds], "probabilities", &[("axis", 1)]);
        Ok(true)
    }

    /// The probability of the larger label and what is left, or those of all classes divided by their sum.
    fn add_curves(&self, graph: &mut Graph, curves: &[Curve]) -> Result<()> {
        let ends = curves.iter().scan(0, |end, curve| {
            *end += curve.scores.len() as u64;
            Some(*end)
        });
        let tables = Ranks {
            offsets: std::iter::once(0).chain(ends).collect(),
            values: curves.iter().flat_map(|curve| curve.scores.iter().copied()).collect(),
            ranks: curves.iter().flat_map(|curve| curve.probabilities.iter().copied()).collect(),
        };
        if self.labels.len() > 2 {
            let each = graph.ranks("scores", &tables)?;
            let sum = graph.sum(&each, 1, true);
            graph.named("Div", &[&each, &sum], "probabilities", &[]);
            return Ok(());
        }
        let axes = graph.whole(&[1]);
        let column = graph.add("Unsqueeze", &["scores", &axes]);
        let larger = graph.ranks(&column, &tables)?;
        let (signs, rest) = (graph.array(&[1, 2], &[-1.0, 1.0]), graph.array(&[2], &[1.0, 0.0]));
        let both = graph.add("MatMul", &[&larger, &signs]);
        graph.named("Add", &[&both, &rest], "probabilities", &[]);
        Ok(())
    }
}

fn shift(graph: &mut Graph, products: &str, by: f64) -> String {
    let by = graph.scalar(by);
    graph.add("Add", &[products, &by])
}

/// One column a pair: votes, and between equal votes the confidences `c / (3 (|c| + 1))`.
fn votes(graph: &mut Graph, columns: &str, k: usize) {
    let count = k * (k - 1) / 2;
    let (mut signs, mut low) = (vec![0.0; count * k], vec![0.0; k]);
    for (column, (a, b)) in pairs(k).enumerate() {
        signs[column * k + a] = -1.0;
        signs[column * k + b] = 1.0;
        low[a] += 1.0;
    }
    let (signs, low) = (graph.array(&[count, k], &signs), graph.array(&[k], &low));
    let above = positive(graph, columns);
    let gained = graph.add("MatMul", &[&above, &signs]);
    let votes = graph.add("Add", &[&gained, &low]);
    let confidence = graph.add("MatMul", &[columns, &signs]);
    let size = graph.add("Abs", &[&confidence]);
    let one = graph.scalar(1.0);
    let size = graph.add("Add", &[&size, &one]);
    let three = graph.scalar(3.0);
    let size = graph.add("Mul", &[&size, &three]);
    let part = graph.add("Div", &[&confidence, &size]);
    graph.named("Add", &[&votes, &part], "scores", &[]);
}

/// One column a bit: minus the number of bits that differ from the class's code word.
fn code_words(graph: &mut Graph, columns: &str, k: usize) {
    let count = code_columns(k);
    let bits: Vec<f64> = (0..count * k).map(|at| f64::from(u8::from(code_bit(k, at / k, at % k)))).collect();
    let ones: Vec<f64> = (0..k).map(|class| (0..count).map(|column| bits[column * k + class]).sum()).collect();
    let signs = graph.array(&[count, k], &bits.iter().map(|bit| 2.0 * bit - 1.0).collect::<Vec<_>>());
    let ones = graph.array(&[k], &ones);
    let above = positive(graph, columns);
    let matches = graph.add("MatMul", &[&above, &signs]);
    graph.named("Sub", &[&matches, &ones], "scores", &[]);
}

/// 1 where a column is above zero, else 0.
fn positive(graph: &mut Graph, columns: &str) -> String {
    let zero = graph.scalar(0.0);
    let above = graph.add("Greater", &[columns, &zero]);
    graph.cast(&above, DOUBLE)
}

/// Vectors as the columns of a matrix, row by row.
fn transposed(vectors: &[Vec<f64>]) -> Vec<f64> {
    let length = vectors.first().map_or(0, Vec::len);
    (0..length).flat_map(|i| vectors.iter().map(move |v| v[i])).collect()
}

/// Every number of the rows.
fn full(rows: &Matrix<'_>) -> Vec<f64> {
    let cols = rows.cols();
    let mut all = vec![0.0; rows.rows() * cols];
    with_rows!(rows, x => for (i, row) in all.chunks_exact_mut(cols.max(1)).enumerate() {
        x.visit(i, |j, v| row[j] = v);
    });
    all
}

/// A graph in the making: operators and constants, each under its own name.
#[derive(Default)]
struct Graph {
    nodes: Vec<Message>,
    constants: Vec<Message>,
}

impl Graph {
    /// Appends an operator; hands back the name of its output.
    fn add(&mut self, operator: &str, inputs: &[&str]) -> String {
        self.with(operator, inputs, &[])
    }

    fn with(&mut self, operator: &str, inputs: &[&str], attributes: &[(&str, u64)]) -> String {
        let name = format!("{}_{}", operator.to_lowercase(), self.nodes.len());
        self.named(operator, inputs, &name, attributes);
        name
    }

    fn named(&mut self, operator: &str, inputs: &[&str], output: &str, attributes: &[(&str, u64)]) {
        const INTEGER: u64 = 2;
        let mut node = Message::default();
        inputs.iter().for_each(|input| node.bytes(1, input.as_bytes()));
        node.bytes(2, output.as_bytes());
        node.bytes(4, operator.as_bytes());
        for (name, value) in attributes {
            let mut attribute = Message::default();
            attribute.bytes(1, name.as_bytes());
            attribute.number(3, *value);
            attribute.number(20, INTEGER);
            node.message(5, &attribute);
        }
        self.nodes.push(node);
    }

    fn cast(&mut self, input: &str, to: u64) -> String {
        self.with("Cast", &[input], &[("to", to)])
    }

    /// `r_0 + Σ_k (r_{k+1} − r_k) / (u_{k+1} − u_k) · min(max(x − u_k, 0), u_{k+1} − u_k)` of each feature: on the line between two
    /// known values `u`, beyond them the last rank `r`.
    fn ranks(&mut self, rows: &str, ranks: &Ranks) -> Result<String> {
        let known: Vec<(&[f64], &[f64])> = ranks.by_feature().collect();
        let (d, k) = (known.len(), known.iter().map(|(values, _)| values.len() - 1).max().unwrap_or(0).max(1));
        let bytes = (d as u64).saturating_mul(k as u64).saturating_mul(24);
        memory::check(|| format!("the ranks of {d} features, {k} values each"), bytes, "")?;
        let (mut from, mut width, mut slope) = (vec![0.0; d * k], vec![0.0; d * k], vec![0.0; d * k]);
        for (j, (values, ranks)) in known.iter().enumerate() {
            for (p, (u, r)) in values.windows(2).zip(ranks.windows(2)).enumerate() {
                (from[j * k + p], width[j * k + p]) = (u[0], u[1] - u[0]);
                slope[j * k + p] = (r[1] - r[0]) / (u[1] - u[0]);
            }
        }
        let first: Vec<f64> = known.iter().map(|(_, ranks)| ranks[0]).collect();
        let [from, width, slope] = [from, width, slope].map(|values| self.array(&[1, d, k], &values));
        let (axis, zero, first) = (self.whole(&[2]), self.scalar(0.0), self.array(&[d], &first));
        let each = self.add("Unsqueeze", &[rows, &axis]);
        let beyond = self.add("Sub", &[&each, &from]);
        let beyond = self.add("Max", &[&beyond, &zero]);
        let within = self.add("Min", &[&beyond, &width]);
        let risen = self.add("Mul", &[&within, &slope]);
        let risen = self.sum(&risen, 2, false);
        Ok(self.add("Add", &[&risen, &first]))
    }

    /// Sums over an axis.
    fn sum(&mut self, input: &str, axis: i64, keep: bool) -> String {
        let axis = self.whole(&[axis]);
        self.with("ReduceSum", &[input, &axis], &[("keepdims", u64::from(keep))])
    }

    /// `exp(factor · t)`
    fn exponential(&mut self, input: &str, factor: f64) -> String {
        let factor = self.scalar(factor);
        let scaled = self.add("Mul", &[input, &factor]);
        self.add("Exp", &[&scaled])
    }

    fn constant(&mut self, tensor: impl FnOnce(&str) -> Message) -> String {
        let name = format!("constant_{}", self.constants.len());
        self.constants.push(tensor(&name));
        name
    }

    fn array(&mut self, shape: &[usize], values: &[f64]) -> String {
        self.constant(|name| tensor(name, shape, DOUBLE, values.iter().flat_map(|v| v.to_le_bytes())))
    }

    fn scalar(&mut self, value: f64) -> String {
        self.array(&[], &[value])
    }

    fn whole(&mut self, values: &[i64]) -> String {
        self.constant(|name| tensor(name, &[values.len()], INT64, values.iter().flat_map(|v| v.to_le_bytes())))
    }

    /// The finished model.
    fn model(&self, name: &str, model: &Model, labels: &OnnxLabels, single: bool, probabilities: bool) -> Vec<u8> {
        let k = model.labels.len();
        let mut graph = Message::default();
        self.nodes.iter().for_each(|node| graph.message(1, node));
        graph.bytes(2, name.as_bytes());
        self.constants.iter().for_each(|constant| graph.message(5, constant));
        graph.message(11, &value("X", if single { FLOAT } else { DOUBLE }, Some(model.features)));
        graph.message(12, &value("label", labels.kind(), None));
        graph.message(12, &value("scores", DOUBLE, (k > 2).then_some(k)));
        if probabilities {
            graph.message(12, &value("probabilities", DOUBLE, Some(k)));
        }
        let mut opset = Message::default();
        opset.bytes(1, b"");
        opset.number(2, 13);
        let mut whole = Message::default();
        whole.number(1, 8);
        whole.bytes(2, b"widemargin");
        whole.bytes(3, env!("CARGO_PKG_VERSION").as_bytes());
        whole.message(7, &graph);
        whole.message(8, &opset);
        whole.0
    }
}

/// What goes in or out: one row a sample, with this many columns if it has any.
fn value(name: &str, kind: u64, columns: Option<usize>) -> Message {
    let mut rows = Message::default();
    rows.bytes(2, b"rows");
    let mut shape = Message::default();
    shape.message(1, &rows);
    if let Some(columns) = columns {
        let mut width = Message::default();
        width.number(1, columns as u64);
        shape.message(1, &width);
    }
    let mut tensor = Message::default();
    tensor.number(1, kind);
    tensor.message(2, &shape);
    let mut typed = Message::default();
    typed.message(1, &tensor);
    let mut value = Message::default();
    value.bytes(1, name.as_bytes());
    value.message(2, &typed);
    value
}

/// A constant of numbers.
fn tensor(name: &str, shape: &[usize], kind: u64, bytes: impl Iterator<Item = u8>) -> Message {
    let mut tensor = Message::default();
    shape.iter().for_each(|&n| tensor.number(1, n as u64));
    tensor.number(2, kind);
    tensor.bytes(8, name.as_bytes());
    tensor.bytes(9, &bytes.collect::<Vec<u8>>());
    tensor
}

/// A message of protocol buffers: fields, each a number and a value.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_protocol_buffers_have_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.bytes(2, b"testing");
        assert_eq!(message.0, b"\x08\x96\x01\x12\x07testing");
        message.number(20, 2);
        assert_eq!(message.0[12..], [0xa0, 0x01, 0x02]);
    }

    #[test]
    fn labels_are_the_numbers_they_are() {
        let of = |labels: &[&str]| OnnxLabels::of(&labels.iter().map(|l| l.to_string()).collect::<Vec<_>>());
        assert_eq!(of(&["-1", "+1"]), OnnxLabels::Whole(vec![-1, 1]));
        assert_eq!(of(&["0.5", "1"]), OnnxLabels::Number(vec![0.5, 1.0]));
        assert_eq!(of(&["1", "spam"]), OnnxLabels::Text(vec!["1".into(), "spam".into()]));
    }
}
