//! The model file: a safetensors file whose metadata holds one JSON text, our header. Any safetensors reader can open
//! it. Nothing in a file is trusted: sizes are checked before memory is taken, and every index and number is checked.
//!
//! With `k` score columns, `d` features and `n` support rows, a file holds these arrays:
//!
//! | array | of | shape | in |
//! |---|---|---|---|
//! | `intercepts` | f64 | `k` | every model |
//! | `weights` | f64 | `k × d` | linear models, unless the next three are smaller |
//! | `weights.offsets`, `.columns`, `.values` | u64, u32, f64 | CSR of `k × d` | linear models with few weights |
//! | `coefficients` | f64 | `k × n` | kernel models |
//! | `support` | f32 or f64 | `n × d` | kernel models with dense rows |
//! | `support.offsets`, `.columns`, `.values` | u64, u32, f32 or f64 | CSR of `n × d` | kernel models with sparse rows |
//! | `scaling.shift`, `scaling.factor` | f64 | `d` | models with a scaling: `x' = (x − shift) · factor` |
//! | `scaling.offsets`, `.values`, `.ranks` | u64, f64, f64 | `d + 1`, and as many as there are | models scaled by rank |
//! | `support.rows` | u64 | `n` | kernel models: which training row each support row is |
//! | `conformity.scores`, `.offsets`, `.rows` | f64, u64, f64 | `n`, `c + 1`, `c` | models that know prediction sets of `c` classes |
//! | `ranked.shift`, `.factor`, `.offsets`, `.values`, `.ranks` | as `scaling` | as there | averages: from scaled features to the ranks that some kernels see |
//! | `part.1`, `part.2`, … | f64 | `k × n`, linear `k × d` | averages: the vectors of each further kernel |
//! | `dual` | f64 | `k × m` | models whose certificate says `"dual": "variables"`, trained on `m` rows |

use super::{
    Averaged, Calibration, ClassConformity, Conformity, Decision, KernelPart, Model, ModelCertificate, Origin,
    RankedKernels, Scorer,
};
use crate::data::{Csr, Dense, Matrix, Ranks, Real, Rows, Scaling, ScalingKind, Schema, write_atomically};
use crate::kernel::Kernel;
use crate::machine::Parameters;
use crate::problem::Bias;
use crate::{Error, Result, memory};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The key of our header in the metadata of the safetensors file.
const HEADER: &str = "widemargin";
/// What the header calls its format.
const FORMAT: &str = "widemargin model";
/// The version this program writes of a model over one kernel. Version 1, which it also reads, had neither `support.rows` nor
/// `dual`, nor their words in the header.
const VERSION: u64 = 2;
/// The version of a model over several, which programs that know one kernel must not take for one.
const VERSION_OF_PARTS: u64 = 3;
/// The version of a model with kernels that see ranks.
const VERSION_OF_RANKS: u64 = 4;
/// The version of a model with isotonic probabilities.
const VERSION_OF_CURVES: u64 = 5;
/// A part of a file, or why it is not as it should be.
type Checked<T> = std::result::Result<T, String>;
/// The largest header safetensors allows.
const LARGEST_HEADER: u64 = 100_000_000;

/// Everything about a model but its arrays.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u64,
    machine: String,
    parameters: Parameters,
    kernel: Kernel,
    bias: Bias,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bias_asked: Option<Bias>,
    labels: Vec<String>,
    decision: Decision,
    features: usize,
    scaling: Option<ScalingKind>,
    certificate: ModelCertificate,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    calibration: Option<Calibration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// The kernels of the further score functions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Kernel>,
    /// Which of the kernels, the model's first, see ranks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ranked: Vec<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    average: Option<Averaged>,
    /// The probabilities behind prediction sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conformity: Option<Calibration>,
    #[serde(default)]
    origin: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<Schema>,
}

impl Model {
    /// Writes the model beside its destination and renames it: the file is there whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_bytes()?;
        write_atomically(path.as_ref(), |file| file.write_all(&bytes))
    }

    /// Reads a model file.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let unusable = |reason| Error::Model { file: path.display().to_string(), reason };
        let failed = |source| Error::Io { path: path.into(), source };
        let mut file = File::open(path).map_err(failed)?;
        let mut bytes = read_start(&mut file).map_err(failed)?;
        // A large file that is something else is not read to its end.
        if !begins_as_model(&bytes) {
            return Err(unusable("it does not begin as one (is it a data file?)".into()));
        }
        bytes.extend(memory::read_to_end(&mut file).map_err(failed)?);
        parse(&bytes).map_err(unusable)
    }

    /// Whether a file begins as a model file does. Only its first bytes are read.
    pub fn is_model_file(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        let start = File::open(path).and_then(|mut file| read_start(&mut file));
        Ok(begins_as_model(&start.map_err(|source| Error::Io { path: path.into(), source })?))
    }

    /// The bytes of a model file: the same for the same model, on any machine.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check().map_err(|reason| Error::Numeric { place: "the model", reason })?;
        let header = serde_json::to_string(&self.header()).map_err(|e| damaged(e.to_string()))?;
        let arrays = self.arrays();
        let views: std::result::Result<Vec<_>, _> =
            arrays.iter().map(|a| TensorView::new(a.dtype, a.shape.clone(), &a.bytes).map(|v| (&*a.name, v))).collect();
        let metadata = [(HEADER.to_string(), header)].into_iter().collect();
        views.and_then(|views| safetensors::serialize(views, Some(metadata))).map_err(|e| damaged(e.to_string()))
    }

    /// Reads the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        parse(bytes).map_err(damaged)
    }

    fn header(&self) -> Header {
        Header {
            format: FORMAT.into(),
            version: match (&self.ranked, self.parts.is_empty()) {
                _ if self.calibration.as_ref().is_some_and(|c| !c.curves.is_empty()) => VERSION_OF_CURVES,
                (Some(_), _) => VERSION_OF_RANKS,
                (None, false) => VERSION_OF_PARTS,
                (None, true) => VERSION,
            },
            machine: self.machine.clone(),
            parameters: self.parameters.clone(),
            kernel: self.kernel,
            bias: self.bias,
            bias_asked: self.bias_asked,
            labels: self.labels.clone(),
            decision: self.decision.clone(),
            features: self.features,
            scaling: self.scaling.as_ref().map(|s| s.kind),
            certificate: self.certificate.clone(),
            calibration: self.calibration.clone(),
            parts: self.parts.iter().map(|part| part.kernel).collect(),
            ranked: self.ranked.as_ref().map(|ranked| ranked.which.clone()).unwrap_or_default(),
            average: self.average.clone(),
            conformity: self.conformity.as_ref().map(|conformity| conformity.calibration.clone()),
            threshold: self.threshold,
            origin: self.origin.clone(),
            schema: self.schema.clone(),
        }
    }

    fn arrays(&self) -> Vec<Array> {
        let columns = self.scorer.columns();
        let mut arrays = vec![Array::new("intercepts", vec![columns], self.scorer.intercepts())];
        match &self.scorer {
            Scorer::Linear { weights, .. } => arrays.extend(weight_arrays(weights, self.features)),
            Scorer::Kernel { support, coefficients, .. } => {
                arrays.push(Array::new("coefficients", vec![columns, support.rows()], &coefficients.concat()));
                arrays.extend(support_arrays(support));
            }
        }
        if let Some(rows) = &self.support_rows {
            arrays.push(Array::new("support.rows", vec![rows.len()], rows));
        }
        if let Some(dual) = &self.dual {
            let rows = dual.first().map_or(0, Vec::len);
            arrays.push(Array::new("dual", vec![dual.len(), rows], &dual.concat()));
        }
        for (number, part) in self.parts.iter().enumerate() {
            let shape = vec![columns, part.vectors.first().map_or(0, Vec::len)];
            arrays.push(Array::new(format!("part.{}", number + 1), shape, &part.vectors.concat()));
        }
        if let Some(conformity) = &self.conformity {
            arrays.extend(conformity_arrays(conformity));
        }
        if let Some(scaling) = &self.scaling {
            arrays.extend(scaling_arrays("scaling", scaling));
        }
        if let Some(ranked) = &self.ranked {
            arrays.extend(scaling_arrays("ranked", &ranked.scaling));
        }
        arrays
    }
}

fn scaling_arrays(name: &str, scaling: &Scaling) -> Vec<Array> {
    let Scaling { shift, factor, ranks, .. } = scaling;
    let mut arrays = vec![
        Array::new(format!("{name}.shift"), vec![shift.len()], shift),
        Array::new(format!("{name}.factor"), vec![factor.len()], factor),
    ];
    if let Some(Ranks { offsets, values, ranks }) = ranks {
        arrays.push(Array::new(format!("{name}.offsets"), vec![offsets.len()], offsets));
        arrays.push(Array::new(format!("{name}.values"), vec![values.len()], values));
        arrays.push(Array::new(format!("{name}.ranks"), vec![ranks.len()], ranks));
    }
    arrays
}

fn damaged(reason: String) -> Error {
    Error::Model { file: "the model".into(), reason }
}

fn read_start(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(9).read_to_end(&mut start)?;
    Ok(start)
}

/// A safetensors file starts with the length of its header, then the header's brace. No text file does.
fn begins_as_model(start: &[u8]) -> bool {
    let header = start.split_first_chunk::<8>();
    header.is_some_and(|(length, rest)| u64::from_le_bytes(*length) <= LARGEST_HEADER && rest.starts_with(b"{"))
}

/// A number as the file holds it: little-endian.
trait StoredArray: Copy {
    const DTYPE: Dtype;
    const NAME: &'static str;
    fn append(self, bytes: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! stored {
    ($type:ty, $dtype:ident, $name:literal) => {
        impl StoredArray for $type {
            const DTYPE: Dtype = Dtype::$dtype;
            const NAME: &'static str = $name;
            fn append(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Vec<Self> {
                bytes.as_chunks().0.iter().map(|chunk| Self::from_le_bytes(*chunk)).collect()
            }
        }
    };
}

stored!(f32, F32, "32-bit floats");
stored!(f64, F64, "64-bit floats");
stored!(u32, U32, "32-bit whole numbers");
stored!(u64, U64, "64-bit whole numbers");

/// One array on its way into a file.
struct Array {
    name: Cow<'static, str>,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Array {
    fn new<T: StoredArray>(name: impl Into<Cow<'static, str>>, shape: Vec<usize>, values: &[T]) -> Self {
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|v| v.append(&mut bytes));
        Self { name: name.into(), dtype: T::DTYPE, shape, bytes }
    }
}

/// The weights, column after column, or only those that are not zero where that is smaller.
fn weight_arrays(weights: &[Vec<f64>], features: usize) -> Vec<Array> {
    let stored = weights.iter().flatten().filter(|w| **w != 0.0).count();
    if 12 * stored + 8 * (weights.len() + 1) >= 8 * weights.len() * features {
        return vec![Array::new("weights", vec![weights.len(), features], &weights.concat())];
    }
    let (mut offsets, mut columns, mut values) = (vec![0u64], Vec::with_capacity(stored), Vec::with_capacity(stored));
    for w in weights {
        for (j, &value) in w.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            columns.push(j as u32);
            values.push(value);
        }
        offsets.push(values.len() as u64);
    }
    vec![
        Array::new("weights.offsets", vec![offsets.len()], &offsets),
        Array::new("weights.columns", vec![columns.len()], &columns),
        Array::new("weights.values", vec![values.len()], &values),
    ]
}

fn conformity_arrays(conformity: &Conformity) -> [Array; 3] {
    let (mut scores, mut offsets, mut rows) = (Vec::new(), vec![0u64], Vec::new());
    for class in &conformity.by_class {
        scores.extend_from_slice(&class.scores);
        offsets.push(scores.len() as u64);
        rows.push(class.rows);
    }
    [
        Array::new("conformity.scores", vec![scores.len()], &scores),
        Array::new("conformity.offsets", vec![offsets.len()], &offsets),
        Array::new("conformity.rows", vec![rows.len()], &rows),
    ]
}

fn support_arrays(support: &Matrix<'_>) -> Vec<Array> {
    fn sparse<T: Real + StoredArray>(x: &Csr<'_, T>) -> Vec<Array> {
        vec![
            Array::new("support.offsets", vec![x.offsets().len()], x.offsets()),
            Array::new("support.columns", vec![x.columns().len()], x.columns()),
            Array::new("support.values", vec![x.values().len()], x.values()),
        ]
    }
    let shape = vec![support.rows(), support.cols()];
    match support {
        Matrix::DenseF32(x) => vec![Array::new("support", shape, x.values())],
        Matrix::DenseF64(x) => vec![Array::new("support", shape, x.values())],
        Matrix::SparseF32(x) => sparse(x),
        Matrix::SparseF64(x) => sparse(x),
    }
}

/// Reads a model; `Err` says why these bytes are none.
fn parse(bytes: &[u8]) -> Checked<Model> {
    let header = read_header(bytes)?;
    u32::try_from(header.features).map_err(|_| format!("it claims {} features", header.features))?;
    let file = Arrays(SafeTensors::deserialize(bytes).map_err(|e| format!("its frame is damaged ({e})"))?);
    let model = Model {
        scorer: file.scorer(header.features)?,
        scaling: header.scaling.map(|kind| file.scaling("scaling", kind)).transpose()?,
        ranked: match header.ranked.is_empty() {
            true => None,
            false => Some(RankedKernels { scaling: file.scaling("ranked", ScalingKind::Rank)?, which: header.ranked }),
        },
        machine: header.machine,
        parameters: header.parameters,
        kernel: header.kernel,
        bias: header.bias,
        bias_asked: header.bias_asked,
        labels: header.labels,
        features: header.features,
        decision: header.decision,
        certificate: header.certificate,
        parts: file.parts(&header.parts)?,
        average: header.average,
        conformity: header.conformity.map(|calibration| file.conformity(calibration)).transpose()?,
        calibration: header.calibration,
        threshold: header.threshold,
        support_rows: file.has("support.rows").then(|| file.vector("support.rows")).transpose()?,
        dual: file.has("dual").then(|| file.dual()).transpose()?,
        origin: header.origin,
        schema: header.schema,
    };
    model.check()?;
    Ok(model)
}

/// The header, once format and version are known to be ours.
fn read_header(bytes: &[u8]) -> Checked<Header> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|e| format!("its frame is damaged ({e})"))?;
    let text = metadata.metadata().as_ref().and_then(|m| m.get(HEADER)).ok_or("it holds no widemargin header")?;
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("its header is damaged ({e})"))?;
    if value["format"] != FORMAT {
        return Err("its header is of another program".into());
    }
    match value["version"].as_u64() {
        Some(1..=VERSION_OF_CURVES) => serde_json::from_str(text).map_err(|e| format!("its header is damaged ({e})")),
        Some(newer) if newer > VERSION_OF_CURVES => {
            let reads = format!("this program reads versions 1 to {VERSION_OF_CURVES}");
            Err(format!("it has format version {newer}, {reads}: use a newer widemargin"))
        }
        _ => Err(format!("its format version is unknown, this program reads versions 1 to {VERSION_OF_CURVES}")),
    }
}

/// An opened file, from which arrays are taken by name.
struct Arrays<'a>(SafeTensors<'a>);

impl Arrays<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    /// An array of this type and number of dimensions.
    fn array<T: StoredArray, const N: usize>(&self, name: &str) -> Checked<([usize; N], Vec<T>)> {
        let view = self.0.tensor(name).map_err(|_| format!("its array `{name}` is missing"))?;
        match <[usize; N]>::try_from(view.shape()) {
            Ok(shape) if view.dtype() == T::DTYPE => Ok((shape, T::read(view.data()))),
            _ => Err(format!("its array `{name}` should be {} in {N} dimensions", T::NAME)),
        }
    }

    fn vector<T: StoredArray>(&self, name: &str) -> Checked<Vec<T>> {
        Ok(self.array::<T, 1>(name)?.1)
    }

    /// A matrix as one vector for each of so many columns of scores.
    fn vectors(&self, name: &str, columns: usize) -> Checked<Vec<Vec<f64>>> {
        let ([rows, cols], values) = self.array::<f64, 2>(name)?;
        if rows != columns {
            return Err(format!("its array `{name}` does not fit the intercepts"));
        }
        if cols == 0 {
            // No features, or no support rows: the intercepts are all there is.
            return Ok(vec![Vec::new(); columns]);
        }
        Ok(values.chunks_exact(cols).map(<[f64]>::to_vec).collect())
    }

    /// The dual variables, one vector a score column.
    fn dual(&self) -> Checked<Vec<Vec<f64>>> {
        self.vectors("dual", self.vector::<f64>("intercepts")?.len())
    }

    fn scorer(&self, features: usize) -> Checked<Scorer> {
        let intercepts: Vec<f64> = self.vector("intercepts")?;
        if self.has("coefficients") {
            let coefficients = self.vectors("coefficients", intercepts.len())?;
            return Ok(Scorer::Kernel { support: self.support(features)?, coefficients, intercepts });
        }
        let dense = self.has("weights");
        let columns = intercepts.len();
        let weights = if dense { self.vectors("weights", columns)? } else { self.sparse_weights(features, columns)? };
        Ok(Scorer::Linear { weights, intercepts })
    }

    fn sparse_weights(&self, features: usize, columns: usize) -> Checked<Vec<Vec<f64>>> {
        let stored: Csr<'_, f64> = self.csr("weights", features)?;
        if stored.rows() != columns {
            return Err("its array `weights.offsets` does not fit the intercepts".into());
        }
        let too_large = || format!("its {features} features need more memory than there is");
        // A few bytes of file may announce any number of features: ask for the memory before relying on it.
        let total = features.checked_mul(columns).ok_or_else(too_large)?;
        memory::check(too_large, (total as u64).saturating_mul(8), "").map_err(|_| too_large())?;
        Vec::<f64>::new().try_reserve_exact(total).map_err(|_| too_large())?;
        let weights = (0..columns).map(|l| {
            let mut w = vec![0.0; features];
            let (columns, values) = stored.row(l);
            columns.iter().zip(values).for_each(|(&j, &value)| w[j as usize] = value);
            w
        });
        Ok(weights.collect())
    }

    fn csr<T: Real + StoredArray>(&self, name: &str, cols: usize) -> Checked<Csr<'static, T>> {
        let offsets: Vec<u64> = self.vector(&format!("{name}.offsets"))?;
        let columns: Vec<u32> = self.vector(&format!("{name}.columns"))?;
        let values: Vec<T> = self.vector(&format!("{name}.values"))?;
        Csr::new(cols, offsets, columns, values).map_err(|rule| format!("its `{name}` arrays should have {rule}"))
    }

    fn support(&self, features: usize) -> Checked<Matrix<'static>> {
        if !self.has("support") {
            return match self.0.tensor("support.values").map(|view| view.dtype()) {
                Ok(Dtype::F32) => Ok(Matrix::SparseF32(self.csr("support", features)?)),
                _ => Ok(Matrix::SparseF64(self.csr("support", features)?)),
            };
        }
        match self.0.tensor("support").map(|view| view.dtype()) {
            Ok(Dtype::F32) => Ok(Matrix::DenseF32(self.dense("support")?)),
            _ => Ok(Matrix::DenseF64(self.dense("support")?)),
        }
    }

    fn dense<T: Real + StoredArray>(&self, name: &str) -> Checked<Dense<'static, T>> {
        let ([rows, cols], values) = self.array::<T, 2>(name)?;
        Dense::new(rows, cols, values).ok_or_else(|| format!("its array `{name}` has the wrong size"))
    }

    fn parts(&self, kernels: &[Kernel]) -> Checked<Vec<KernelPart>> {
        let columns = self.vector::<f64>("intercepts")?.len();
        let part = |(number, &kernel): (usize, &Kernel)| {
            Ok(KernelPart { kernel, vectors: self.vectors(&format!("part.{}", number + 1), columns)? })
        };
        kernels.iter().enumerate().map(part).collect()
    }

    fn conformity(&self, calibration: Calibration) -> Checked<Conformity> {
        let scores: Vec<f64> = self.vector("conformity.scores")?;
        let offsets: Vec<u64> = self.vector("conformity.offsets")?;
        let rows: Vec<f64> = self.vector("conformity.rows")?;
        let ends = offsets.first() == Some(&0) && offsets.last() == Some(&(scores.len() as u64));
        if !ends || !offsets.is_sorted() || offsets.len() != rows.len() + 1 {
            return Err("its `conformity` arrays do not fit each other".into());
        }
        let class = |(ends, rows): (&[u64], &f64)| ClassConformity {
            rows: *rows,
            scores: scores[ends[0] as usize..ends[1] as usize].to_vec(),
        };
        Ok(Conformity { calibration, by_class: offsets.windows(2).zip(&rows).map(class).collect() })
    }

    fn scaling(&self, name: &str, kind: ScalingKind) -> Checked<Scaling> {
        let ranks = || {
            Ok::<Ranks, String>(Ranks {
                offsets: self.vector(&format!("{name}.offsets"))?,
                values: self.vector(&format!("{name}.values"))?,
                ranks: self.vector(&format!("{name}.ranks"))?,
            })
        };
        let ranks = if kind == ScalingKind::Rank { Some(ranks()?) } else { None };
        let (shift, factor) = (self.vector(&format!("{name}.shift"))?, self.vector(&format!("{name}.factor"))?);
        Ok(Scaling { kind, shift, factor, ranks })
    }
}
