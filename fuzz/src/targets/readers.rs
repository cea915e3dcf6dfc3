//! Damaged and invented data files through the readers: a data set that holds together, or an error that says why not.

use crate::case::{Failure, Outcome, require};
use crate::draw::Draw;
use crate::mutate::{babble, mutate};
use crate::run::Bench;
use std::fmt::Write;
use widemargin::data::{
    self, Dataset, Dense, Format, IdColumn, Labels, Matrix, Precision, ReadOptions, Rows, Schema, Storage, read_bytes,
};
use widemargin::{Error, with_rows};

/// Endings that tell a format and a packing.
const NAMES: &[&str] = &[
    "a.libsvm",
    "a.csv",
    "a.tsv",
    "a.parquet",
    "a.libsvm.gz",
    "a.csv.zst",
    "a.tsv.xz",
    "a.libsvm.zst",
    "a.libsvm.xz",
    "a.csv.gz",
];

/// Makes a file, damages it, reads it.
pub fn run(seed: u64, _: &Bench) -> Outcome {
    let draw = &mut Draw::new(seed, 3);
    let name = draw.pick(NAMES);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join(name).display().to_string();
    let (mut bytes, kind) = match draw.below(10) {
        0 => ((0..draw.below(2000)).map(|_| draw.byte()).collect(), "random bytes"),
        1 => (babble(draw, &["1:2", " 3:0.5", "\n+1", "a,b,c\n", "1,2,3\n", "\t", "x"]).into_bytes(), "random words"),
        2 | 3 => (text(draw, name).into_bytes(), "invented text"),
        _ => (written(draw, &path)?, "a file of ours"),
    };
    let damaged = draw.chance(0.85);
    if damaged {
        mutate(draw, &mut bytes);
    }
    let options = affordable(options(draw), name, &bytes);
    let found = read_bytes(name, &bytes, &options);
    same_from_a_file(&path, &bytes, &options, &found)?;
    let end = match &found {
        Ok(data) => {
            consistent(data)?;
            same_by_schema(data, name, &bytes, &options)?;
            round_trip(data, &folder.path().join("b.libsvm").display().to_string())?;
            "read"
        }
        Err(Error::Interrupted | Error::Model { .. } | Error::Numeric { .. }) => {
            return Err("an error that no reader should give".into());
        }
        Err(error) => {
            require(!error.to_string().trim().is_empty(), || "an error without words".into())?;
            "refused"
        }
    };
    Ok(vec![format!("{kind}{}", if damaged { ", damaged" } else { "" }), end.into()])
}

/// A small data set as our own writer leaves it.
fn written(draw: &mut Draw, path: &str) -> Result<Vec<u8>, Failure> {
    let (rows, cols) = (draw.between(1, 30), draw.between(1, 6));
    let values: Vec<f64> = (0..rows * cols).map(|_| if draw.chance(0.3) { 0.0 } else { draw.normal() }).collect();
    let names: Vec<&str> = (0..rows).map(|_| draw.pick(&["1", "-1", "spam", "2.50"])).collect();
    let matrix = Matrix::DenseF64(Dense::new(rows, cols, values).ok_or("values that fill the rows")?);
    let features: Vec<String> = (0..cols).map(|j| format!("f{j}")).collect();
    let labels = Labels::new(&names);
    let schema = Some(Schema::of_names(&features, labels.names()));
    let data = Dataset { schema, ..Dataset::new("a", matrix, Some(labels)) };
    data::write(&data, path, None)?;
    Ok(std::fs::read(path)?)
}

/// Text that looks like the format of the name, with what people and programs put into such files.
fn text(draw: &mut Draw, name: &str) -> String {
    let mut text = String::new();
    let separator = if name.contains("tsv") { '\t' } else { ',' };
    let libsvm = name.contains("libsvm");
    let cols = draw.between(1, 5);
    for _ in 0..draw.between(1, 20) {
        let label = draw.pick(&["1", "-1", "+1", "0", "spam", "\"a b\"", "2,3", ""]);
        let mut line = label.to_string();
        let mut index = 0;
        for _ in 0..cols {
            index += draw.pick(&[1u64, 1, 1, 2, 1000, 4_000_000_000]);
            let number = draw.pick(&["0", "1", "-2.5", "1e3", "1e-320", ".5", "7.", "0.1", "123456789012345678"]);
            let other =
                draw.pick(&["red", "blue", "", "NA", "yes", "no", "true", "2024-01-31", "\"a, b\"", "-", "inf", "ä"]);
            let number = if !libsvm && draw.chance(0.25) { other } else { number };
            let ok = if libsvm { write!(line, " {index}:{number}") } else { write!(line, "{separator}{number}") };
            // Writing into memory cannot fail.
            let _ = ok;
        }
        text += &line;
        text += draw.pick(&["\n", "\n", "\n", "\r\n", " # why\n", "\n\n"]);
    }
    text
}

fn options(draw: &mut Draw) -> ReadOptions {
    let label =
        draw.weighted(&[(0.6, None), (0.1, Some("1")), (0.1, Some("none")), (0.1, Some("f0")), (0.1, Some("99"))]);
    ReadOptions {
        format: draw.chance(0.1).then(|| draw.pick(&[Format::Libsvm, Format::Csv, Format::Tsv, Format::Parquet])),
        label: label.map(str::to_string),
        precision: draw.pick(&[Precision::Auto, Precision::F32, Precision::F64]),
        storage: draw.pick(&[Storage::Auto, Storage::Dense, Storage::Sparse]),
        features: draw.chance(0.1).then(|| draw.pick(&[0, 1, 10, 100_000, usize::MAX])),
        header: draw.pick(&[None, None, Some(true), Some(false)]),
        delimiter: draw.pick(&[None, None, None, Some(b','), Some(b';')]),
        drop: draw.pick(&[&[][..], &[], &["1"], &["f1", "2"]]).iter().map(ToString::to_string).collect(),
        keep: draw.pick(&[&[][..], &[], &[], &["2"], &["f0", "3"]]).iter().map(ToString::to_string).collect(),
        impute: draw.chance(0.5),
        any_label: draw.chance(0.5),
        id: if draw.chance(0.1) {
            IdColumn::Named("f2".into())
        } else {
            draw.pick(&[Some(()), None]).map_or(IdColumn::None, |()| IdColumn::Usual)
        },
        schema: None,
    }
}

/// Rows of billions of columns held densely take what they take: whoever asks for that gets it, but not here.
fn affordable(options: ReadOptions, name: &str, bytes: &[u8]) -> ReadOptions {
    const MOST: usize = 1 << 24;
    let sparse = ReadOptions { storage: Storage::Sparse, ..options.clone() };
    let size = |data: Dataset| data.rows.rows().saturating_mul(data.rows.cols());
    let wide =
        options.storage == Storage::Dense && read_bytes(name, bytes, &sparse).is_ok_and(|data| size(data) > MOST);
    if wide { sparse } else { options }
}

/// A file on the disk says what the same bytes in memory do; only that a file whose ending promises packed text must hold some,
/// while bytes may be packed or not.
fn same_from_a_file(
    path: &str,
    bytes: &[u8],
    options: &ReadOptions,
    found: &widemargin::Result<Dataset>,
) -> Result<(), Failure> {
    std::fs::write(path, bytes)?;
    match (data::read(path, options), found) {
        (Ok(one), Ok(two)) => require(&one == two, || "a file and its bytes are read differently".into()),
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(error)) => Err(format!("a file is read, its bytes are not: {error}").into()),
        (Err(Error::Io { .. }), Ok(_)) if [".gz", ".zst", ".xz"].iter().any(|ending| path.ends_with(ending)) => Ok(()),
        (Err(error), Ok(_)) => Err(format!("bytes are read, their file is not: {error}").into()),
    }
}

/// Read again as a model would that was trained on it, a table gives the same features and labels.
fn same_by_schema(data: &Dataset, name: &str, bytes: &[u8], options: &ReadOptions) -> Result<(), Failure> {
    let Some(schema) = &data.schema else { return Ok(()) };
    let again = ReadOptions { schema: Some(schema.clone()), any_label: true, ..options.clone() };
    match read_bytes(name, bytes, &again) {
        Ok(again) if schema.label.number.is_some() => {
            require(again.rows == data.rows && again.labels == data.labels, || {
                "a schema reads its own file otherwise".into()
            })
        }
        Ok(_) => Ok(()),
        // Columns that were left out by place may be in the way of those that go by place; a feature is no id.
        Err(_) if !options.keep.is_empty() || !schema.named || matches!(options.id, IdColumn::Named(_)) => Ok(()),
        Err(error) => Err(format!("a schema does not read its own file: {error}").into()),
    }
}

/// Shapes fit, numbers are numbers.
fn consistent(data: &Dataset) -> Result<(), Failure> {
    let (rows, cols) = (data.rows.rows(), data.rows.cols());
    require(rows > 0, || "a data set without rows".into())?;
    if let Some(labels) = &data.labels {
        require(labels.codes().len() == rows, || "not one label a row".into())?;
        require(labels.codes().iter().all(|&c| (c as usize) < labels.names().len()), || "a label without name".into())?;
    }
    require(data.feature_names().is_none_or(|names| names.len() <= cols), || "more names than features".into())?;
    let width = data.schema.as_ref().and_then(Schema::width);
    require(width.is_none_or(|width| width <= cols), || "more features in the schema than in the rows".into())?;
    let (mut finite, mut inside) = (true, true);
    with_rows!(&data.rows, x => (0..rows).for_each(|i| x.visit(i, |j, v| {
        finite &= v.is_finite();
        inside &= j < cols;
    })));
    require(finite, || "a value that is no number".into())?;
    require(inside, || "a value beyond the last column".into())
}

/// Written as LIBSVM text and read again, it has the same values; unless that text cannot say them.
fn round_trip(data: &Dataset, path: &str) -> Result<(), Failure> {
    if data::write(data, path, None).is_err() {
        return Ok(());
    }
    let precision = if data.rows.is_f32() { Precision::F32 } else { Precision::F64 };
    let storage = if data.rows.is_dense() { Storage::Dense } else { Storage::Sparse };
    let options = ReadOptions { precision, storage, features: Some(data.rows.cols()), ..ReadOptions::default() };
    let again = data::read(path, &options).map_err(|error| format!("what was written cannot be read: {error}"))?;
    let entries = |data: &Dataset| {
        let mut entries = Vec::new();
        let rows = data.rows.rows();
        with_rows!(&data.rows, x => (0..rows).for_each(|i| x.visit(i, |j, v| if v != 0.0 { entries.push((i, j, v)) })));
        entries
    };
    require(entries(&again) == entries(data), || "written and read again, it has other values".into())?;
    let texts = |data: &Dataset| data.labels.as_ref().map(|l| (l.names().to_vec(), l.codes().to_vec()));
    require(texts(&again) == texts(data), || "written and read again, it has other labels".into())
}
