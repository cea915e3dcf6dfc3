//! Parquet files as others write them.
#![cfg(feature = "parquet")]

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::sync::Arc;
use widemargin::data::{Dataset, Matrix, ReadOptions, read, read_bytes};

/// The columns of a test file; `None` is a null.
enum Column<'a> {
    Bool(&'a [bool]),
    Int(&'a [i32]),
    Long(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [Option<f64>]),
    Text(&'a [&'a str]),
}

/// A file of the given schema, each group of columns a row group.
fn file(schema: &str, groups: &[&[Column<'_>]]) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message m {{ {schema} }}")).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
    for columns in groups {
        let mut group = writer.next_row_group().unwrap();
        for column in *columns {
            let mut out = group.next_column().unwrap().unwrap();
            match column {
                Column::Bool(v) => out.typed::<BoolType>().write_batch(v, None, None),
                Column::Int(v) => out.typed::<Int32Type>().write_batch(v, None, None),
                Column::Long(v) => out.typed::<Int64Type>().write_batch(v, None, None),
                Column::Float(v) => out.typed::<FloatType>().write_batch(v, None, None),
                Column::Double(v) => {
                    let levels: Vec<i16> = v.iter().map(|v| i16::from(v.is_some())).collect();
                    let values: Vec<f64> = v.iter().flatten().copied().collect();
                    out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)
                }
                Column::Text(v) => {
                    let texts: Vec<ByteArray> = v.iter().map(|&s| s.into()).collect();
                    out.typed::<ByteArrayType>().write_batch(&texts, None, None)
                }
            }
            .unwrap();
            out.close().unwrap();
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

fn get(bytes: &[u8], label: Option<&str>) -> Result<Dataset, String> {
    let options = ReadOptions { label: label.map(String::from), ..ReadOptions::default() };
    read_bytes("t.parquet", bytes, &options).map_err(|e| e.to_string())
}

#[test]
fn numbers_of_all_kinds_and_text_labels() {
    let schema = "required boolean a; required int32 b; required int32 c (UINT_32); required int64 d; required float e;
                  optional double f; required binary kind (UTF8);";
    let first = [
        Column::Bool(&[true, false]),
        Column::Int(&[-1, 2]),
        Column::Int(&[-1, 2]),
        Column::Long(&[3, -(1 << 40)]),
        Column::Float(&[0.5, 0.0]),
        Column::Double(&[Some(0.1), Some(7.0)]),
        Column::Text(&["u", "v"]),
    ];
    let second = [
        Column::Bool(&[true]),
        Column::Int(&[0]),
        Column::Int(&[0]),
        Column::Long(&[0]),
        Column::Float(&[0.0]),
        Column::Double(&[Some(1.0)]),
        Column::Text(&["u"]),
    ];
    let bytes = file(schema, &[&first, &second]);
    let data = get(&bytes, None).unwrap();
    let Matrix::DenseF64(x) = &data.rows else { panic!("{:?}", data.rows) };
    assert_eq!(x.row(0), [1.0, -1.0, 4294967295.0, 3.0, 0.5, 0.1]);
    assert_eq!(x.row(1), [0.0, 2.0, 2.0, -1099511627776.0, 0.0, 7.0]);
    assert_eq!(x.row(2), [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(data.labels.as_ref().unwrap().codes(), [0, 1, 0]);
    assert_eq!(data.feature_names().unwrap(), ["a", "b", "c", "d", "e", "f"]);
    // The format shows in the first bytes too.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nameless");
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(read(path.to_str().unwrap(), &ReadOptions::default()).unwrap().rows.rows(), 3);
}

#[test]
fn numbers_as_labels() {
    let bytes = file("required int32 a; required float y;", &[&[Column::Int(&[1, 2]), Column::Float(&[1.0, -1.0])]]);
    assert_eq!(get(&bytes, None).unwrap().labels.unwrap().names(), ["-1", "1"]);
    assert_eq!(get(&bytes, Some("a")).unwrap().labels.unwrap().names(), ["1", "2"]);
    assert_eq!(get(&bytes, Some("1")).unwrap().feature_names().unwrap(), ["y"]);
    assert!(get(&bytes, Some("none")).unwrap().labels.is_none());
    assert!(get(&bytes, Some("z")).unwrap_err().contains("label = z"));
}

#[test]
fn what_cannot_be_used_is_named() {
    let nulls = [Column::Int(&[0, 1, 2]), Column::Double(&[Some(1.0), None, None])];
    let message = get(&file("required int32 y; optional double f;", &[&nulls]), None).unwrap_err();
    assert!(
        message.starts_with("t.parquet:2:2: found an empty field: the value of column 2 (`f`) is missing in 2 rows"),
        "{message}"
    );
    let infinite = [Column::Int(&[0, 1]), Column::Double(&[Some(1.0), Some(f64::INFINITY)])];
    let message = get(&file("required int32 y; optional double f;", &[&infinite]), None).unwrap_err();
    assert!(message.starts_with("t.parquet:2:2: found `inf`, expected a finite number"), "{message}");
    let date = [Column::Int(&[0]), Column::Int(&[1])];
    let message = get(&file("required int32 y; required int32 day (DATE);", &[&date]), None).unwrap_err();
    assert!(message.contains("found times in column `day`"), "{message}");
    let message = get(&file("required int32 y; required int32 a;", &[]), None).unwrap_err();
    assert!(message.contains("no rows"), "{message}");
}
