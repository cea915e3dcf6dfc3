//! What is written is read back the same, in every format.

use proptest::prelude::*;
use widemargin::data::{Csr, Dataset, Dense, Labels, Matrix, Precision, ReadOptions, Schema, Storage, read, write};

const ENDINGS: [&str; 7] = ["libsvm", "csv", "tsv", "libsvm.gz", "csv.zst", "tsv.xz", "txt"];

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => Just(0.0),
        1 => (-9..9i32).prop_map(f64::from),
        1 => -1.0..1.0f64,
        1 => proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
    ]
}

fn labels(rows: usize) -> impl Strategy<Value = Option<Vec<&'static str>>> {
    let words = prop_oneof![Just("spam"), Just("+1"), Just("-1"), Just("2.50"), Just("größer"), Just("a\"b")];
    proptest::option::of(proptest::collection::vec(words, rows))
}

fn dataset() -> impl Strategy<Value = Dataset> {
    (1..8usize, 1..6usize).prop_flat_map(|(m, d)| {
        (proptest::collection::vec(value(), m * d), labels(m), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
            move |(values, labels, dense, single, named)| {
                let names: Vec<String> = (0..d).map(|j| format!("näme, \"{j}\"")).collect();
                let labels = labels.map(|labels| Labels::new(&labels));
                let classes = labels.as_ref().map_or(&[][..], Labels::names);
                let schema = named.then(|| Schema::of_names(&names, classes));
                let rows = matrix(m, d, &values, dense, single);
                Dataset { schema, ..Dataset::new("trip", rows, labels) }
            },
        )
    })
}

fn matrix(m: usize, d: usize, values: &[f64], dense: bool, single: bool) -> Matrix<'static> {
    // Far values have no place in single precision.
    let narrow: Vec<f32> = values.iter().map(|&v| v as f32).map(|v| if v.is_finite() { v } else { 1.0 }).collect();
    match (dense, single) {
        (true, true) => Matrix::DenseF32(Dense::new(m, d, narrow).unwrap()),
        (true, false) => Matrix::DenseF64(Dense::new(m, d, values.to_vec()).unwrap()),
        (false, true) => Matrix::SparseF32(sparse(m, d, &narrow)),
        (false, false) => Matrix::SparseF64(sparse(m, d, values)),
    }
}

fn sparse<T: widemargin::data::Real>(m: usize, d: usize, values: &[T]) -> Csr<'static, T> {
    let (mut offsets, mut columns, mut stored) = (vec![0u64], Vec::new(), Vec::new());
    for i in 0..m {
        for (j, &v) in values[i * d..(i + 1) * d].iter().enumerate().filter(|(_, v)| **v != T::default()) {
            columns.push(j as u32);
            stored.push(v);
        }
        offsets.push(stored.len() as u64);
    }
    Csr::new(d, offsets, columns, stored).unwrap()
}

/// Options that read the data set as it is held.
fn options(data: &Dataset) -> ReadOptions {
    ReadOptions {
        // Asked for by its name: of labels that are mostly fractions it would else be taken for a regression target.
        label: Some(if data.labels.is_none() { "none" } else { "label" }.into()),
        precision: if data.rows.is_f32() { Precision::F32 } else { Precision::F64 },
        storage: if data.rows.is_dense() { Storage::Dense } else { Storage::Sparse },
        ..ReadOptions::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_format_gives_back_what_it_got(data in dataset()) {
        let folder = tempfile::tempdir().unwrap();
        let parquet = cfg!(feature = "parquet").then_some("parquet");
        for ending in ENDINGS.into_iter().chain(parquet) {
            let path = folder.path().join(format!("trip.{ending}"));
            let path = path.to_str().unwrap();
            write(&data, path, None).unwrap();
            let back = read(path, &options(&data)).unwrap();
            if ending.contains("libsvm") || ending == "txt" {
                prop_assert!(back.schema.is_none());
            } else {
                prop_assert_eq!(back.feature_names(), data.feature_names(), "{}", ending);
            }
            prop_assert_eq!((&back.rows, &back.labels), (&data.rows, &data.labels), "{}", ending);
            // Read with no word on precision, single stays single, and values are the same anyway.
            let auto = ReadOptions { precision: Precision::Auto, ..options(&data) };
            let auto = read(path, &auto).unwrap();
            prop_assert!(!data.rows.is_f32() || auto.rows.is_f32());
            if auto.rows.is_f32() == data.rows.is_f32() {
                prop_assert_eq!(&auto.rows, &data.rows);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        for name in ["a.libsvm", "a.csv", "a.tsv", "a.gz", "a.parquet"] {
            let _ = widemargin::data::read_bytes(name, &bytes, &ReadOptions::default());
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9a:., \"\t\r\n#eqid\u{feff}]{0,80}") {
        for name in ["a.libsvm", "a.csv", "a.tsv"] {
            let _ = widemargin::data::read_bytes(name, text.as_bytes(), &ReadOptions::default());
        }
    }
}

#[test]
fn labels_a_format_cannot_hold_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = |label: &str| Dataset::new("a", matrix(1, 1, &[1.0], true, true), Some(Labels::new(&[label])));
    for (label, libsvm, csv) in [
        ("two words", false, true),
        ("a:b", false, true),
        ("a,b", false, true),
        ("#", false, true),
        ("", false, false),
        (" a", false, false),
    ] {
        for (ending, fits) in [("libsvm", libsvm), ("csv", csv), ("tsv", csv)] {
            let path = folder.path().join(format!("a.{ending}"));
            let path = path.to_str().unwrap();
            let written = write(&data(label), path, None);
            assert_eq!(written.is_ok(), fits, "{label:?} {ending}");
            if fits {
                let back = read(path, &ReadOptions::default()).unwrap();
                assert_eq!((back.rows, back.labels), (data(label).rows, data(label).labels));
            }
            let _ = std::fs::remove_file(path);
        }
    }
    let wide =
        Dataset { rows: Matrix::SparseF32(Csr::new(4_000_000_000, vec![0, 0], vec![], vec![]).unwrap()), ..data("a") };
    assert!(write(&wide, folder.path().join("w.csv").to_str().unwrap(), None).is_err());
    let path = folder.path().join("w.libsvm");
    write(&wide, path.to_str().unwrap(), None).unwrap();
    assert_eq!(read(path.to_str().unwrap(), &ReadOptions::default()).unwrap().rows.cols(), 4_000_000_000);
}
