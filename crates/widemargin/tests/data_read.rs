//! Good files in all their forms.

use widemargin::data::{Dataset, Format, Matrix, Precision, ReadOptions, Rows, Storage, read, read_bytes};
use widemargin::with_rows;

fn get(name: &str, text: &[u8]) -> Dataset {
    with(name, text, ReadOptions::default())
}

fn with(name: &str, text: &[u8], options: ReadOptions) -> Dataset {
    read_bytes(name, text, &options).unwrap_or_else(|e| panic!("{}: {e}", String::from_utf8_lossy(text)))
}

/// All rows written out.
fn table(rows: &Matrix<'_>) -> Vec<Vec<f64>> {
    with_rows!(rows, x => (0..x.rows()).map(|i| {
        let mut row = vec![0.0; x.cols()];
        x.visit(i, |j, v| row[j] = v);
        row
    }).collect())
}

fn labels(data: &Dataset) -> Vec<&str> {
    let labels = data.labels.as_ref().unwrap();
    labels.codes().iter().map(|&c| labels.names()[c as usize].as_str()).collect()
}

#[test]
fn libsvm_in_all_its_dress() {
    let text =
        b"\xef\xbb\xbf# made by hand\r\n+1 1:0.5\t3:-2e0   # first\r\n\r\n  -1 qid:7 2:+.25 \r\n1.0\r\n-1 3:0#none";
    let data = get("x/hand.libsvm", text);
    assert_eq!(data.name, "hand");
    assert_eq!(table(&data.rows), [[0.5, 0.0, -2.0], [0.0, 0.25, 0.0], [0.0; 3], [0.0; 3]]);
    assert_eq!(data.labels.as_ref().unwrap().names(), ["-1", "+1"]);
    assert_eq!(labels(&data), ["+1", "-1", "+1", "-1"]);
    assert!(data.feature_names().is_none() && data.rows.is_f32());
}

#[test]
fn labels_may_be_words_or_missing() {
    assert_eq!(labels(&get("a", b"spam 1:1\nham\nspam 2:1\n")), ["spam", "ham", "spam"]);
    let data = get("a", b"1:1\n\n2:3 5:4\n");
    assert!(data.labels.is_none());
    assert_eq!(table(&data.rows), [[1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0, 4.0]]);
}

#[test]
fn precision_is_single_only_if_that_loses_nothing() {
    let auto = |text: &str| get("a", text.as_bytes()).rows.is_f32();
    assert!(auto("1 1:0.5 2:16777216 3:-1e10\n"));
    assert!(!auto("1 1:0.1\n"));
    assert!(!auto("1 1:16777217\n"));
    assert!(!auto("1 1:1e300\n"));
    assert!(!auto("1 1:1e-300\n"));
    let long = "1 1:1 2:2\n".repeat(200_000);
    assert!(auto(&long));
    assert!(!auto(&format!("{long}1 1:0.1\n")));
    assert_eq!(table(&get("a", format!("{long}1 1:0.1\n").as_bytes()).rows)[199_999..], [[1.0, 2.0], [0.1, 0.0]]);
    let f32 = with("a", b"1 1:0.1\n", ReadOptions { precision: Precision::F32, ..ReadOptions::default() });
    assert_eq!(table(&f32.rows), [[f64::from(0.1f32)]]);
    let f64 = with("a", b"1 1:1\n", ReadOptions { precision: Precision::F64, ..ReadOptions::default() });
    assert!(!f64.rows.is_f32());
}

#[test]
fn storage_is_the_smaller_one() {
    // Two rows, f32: sparse takes 8 bytes a value and 24, dense 4 a cell.
    for (text, dense) in [
        ("1 1:1\n1 2:1\n", true),                 // 16 < 40
        ("1 1:1\n1 5:1\n", false),                // 40 = 40
        ("1 1:1\n1 4:1\n", true),                 // 32 < 40
        ("1 1:1\n1 6:1\n", false),                // 48 > 40
        ("1 1:1 2:0 3:0\n1 6:1\n", false),        // zeros do not count
        ("1 1:1 2:1 3:1 4:1 5:1\n1 6:1\n", true), // 48 < 72
    ] {
        assert_eq!(get("a", text.as_bytes()).rows.is_dense(), dense, "{text}");
    }
    let text = b"1 1:1 2:0\n1 6:1\n";
    let dense = with("a", text, ReadOptions { storage: Storage::Dense, ..ReadOptions::default() });
    let sparse = with("a", text, ReadOptions { storage: Storage::Sparse, ..ReadOptions::default() });
    assert!(dense.rows.is_dense() && !sparse.rows.is_dense() && sparse.rows.stored() == 2);
    assert_eq!(table(&dense.rows), table(&sparse.rows));
    let wide = with("a", b"1 1:1\n", ReadOptions { features: Some(3), ..ReadOptions::default() });
    assert_eq!(table(&wide.rows), [[1.0, 0.0, 0.0]]);
}

#[test]
fn data_that_change_their_nature_midway_stay_right() {
    let narrow: String = (0..150_000).map(|i| format!("a 1:{} 2:1\n", i % 7)).collect();
    let sparse: String = (0..150_000).map(|i| format!("b {}:0.3\n", 1 + i % 9000)).collect();
    let wider: String = (0..150_000).map(|i| format!("c 1:1 2:{} 3:2\n", i % 5)).collect();
    for parts in [[&narrow, &sparse, &wider], [&sparse, &narrow, &wider], [&narrow, &wider, &narrow]] {
        let data = get("a", parts.map(String::as_str).concat().as_bytes());
        assert_eq!(data.rows.rows(), 450_000);
        let mut at = 0;
        for part in parts {
            let alone = get("a", part.as_bytes());
            let rows: Vec<usize> = [0, 1, 77_777, 149_998, 149_999].to_vec();
            let (sought, _) = alone.rows.select(&rows).with_cols(data.rows.cols());
            let found = data.rows.select(&rows.iter().map(|i| i + at).collect::<Vec<_>>());
            assert_eq!(table(&found), table(&sought));
            at += 150_000;
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let text: String = (0..300_000).map(|i| format!("{} {}:0.{i} 40:1\n", i % 3, 1 + i % 39)).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.libsvm");
    std::fs::write(&path, &text).unwrap();
    let sets: Vec<(Dataset, Dataset)> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let ranges = read(path.to_str().unwrap(), &ReadOptions::default()).unwrap();
                (ranges, get("many.libsvm", text.as_bytes()))
            })
        })
        .collect();
    assert_eq!(sets[0].0.rows.rows(), 300_000);
    for (ranges, stream) in &sets {
        assert!(*ranges == sets[0].0 && *stream == sets[0].0);
    }
}

#[test]
fn packed_files_are_known_by_ending_or_first_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..100_000).map(|i| format!("{} 1:{i} 2:0.5\n", i % 2)).collect();
    let data = get("a.libsvm", text.as_bytes());
    for ending in ["gz", "zst", "xz"] {
        let path = folder.path().join(format!("a.libsvm.{ending}"));
        widemargin::data::write(&data, path.to_str().unwrap(), None).unwrap();
        assert!(std::fs::metadata(&path).unwrap().len() < text.len() as u64 / 2);
        assert_eq!(read(path.to_str().unwrap(), &ReadOptions::default()).unwrap(), data);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(get("a.libsvm", &bytes), data);
        let plain = folder.path().join("a");
        // Two packed files, one after the other, are one.
        std::fs::write(&plain, bytes.repeat(2)).unwrap();
        assert_eq!(read(plain.to_str().unwrap(), &ReadOptions::default()).unwrap().rows.rows(), 200_000);
    }
}

#[test]
fn tables_find_header_and_label() {
    let options =
        |label: Option<&str>, header| ReadOptions { label: label.map(String::from), header, ..ReadOptions::default() };
    for (text, label, header, names, found, first) in [
        ("a,b,Class\n1,2,x\n3,4,y\n", None, None, Some("a b"), "x y", [1.0, 2.0]),
        ("1,2,x\n3,4,y\n", None, None, None, "x y", [1.0, 2.0]),
        ("u,1,2\nv,3,4\n", Some("1"), None, None, "u v", [1.0, 2.0]),
        ("1,2,3\n4,5,6\n", None, None, None, "3 6", [1.0, 2.0]),
        ("1,2,3\n4,5,6\n", Some("3"), None, None, "3 6", [1.0, 2.0]),
        ("1,2,3\n4,5,6\n", None, Some(true), Some("1 2"), "6", [4.0, 5.0]),
        ("a,b,c\n1,2,3\n4,5,6\n", Some("b"), None, Some("a c"), "2 5", [1.0, 3.0]),
        ("a,b,c\n1,2,3\n4,5,6\n", Some("2"), None, Some("a c"), "2 5", [1.0, 3.0]),
        (
            "\u{feff}\"a\", \"b\" ,y\r\n\r\n 1 ,\" 2\",\"x\"\"z\"\r\n3,4,t",
            None,
            None,
            Some("a b"),
            "x\"z t",
            [1.0, 2.0],
        ),
        ("x1,label,x2\n1,p,2\n", None, None, None, "p", [1.0, 2.0]),
    ] {
        for (name, text) in [("t.csv", text.to_string()), ("t.tsv", text.replace(',', "\t"))] {
            let data = with(name, text.as_bytes(), options(label, header));
            let names: Option<Vec<String>> = names.map(|n: &str| n.split(' ').map(String::from).collect());
            assert_eq!(data.feature_names(), names, "{text}");
            assert_eq!(labels(&data).join(" "), found, "{text}");
            assert_eq!(table(&data.rows)[0], first, "{text}");
        }
    }
    let data = with("t.csv", b"a,y\n1,2\n", options(Some("none"), None));
    assert!(data.labels.is_none() && data.rows.cols() == 2);
    let forced = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    assert_eq!(with("t.libsvm", b"u,1\nv,2\n", forced).rows.cols(), 1);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_as_a_file_is() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    let text: String = (0..200_000).map(|i| format!("{} 1:{i} 2:0.5\n", i % 2)).collect();
    let expected = get("a.libsvm", text.as_bytes());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(text.as_bytes()));
    let found = read(&format!("/dev/fd/{}", reader.as_raw_fd()), &ReadOptions::default()).unwrap();
    writing.join().unwrap().unwrap();
    assert_eq!((found.rows, found.labels), (expected.rows, expected.labels));
}
