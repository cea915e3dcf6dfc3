//! Bad files: each gives an error that names the place, what was found and what was expected. None panics.

use widemargin::Error;
use widemargin::data::{Precision, ReadOptions, Storage, read, read_bytes};

/// Reads text that must be refused; the message after the file's name.
fn refuse(name: &str, text: &[u8], options: &ReadOptions) -> String {
    let error = read_bytes(name, text, options).expect_err(&String::from_utf8_lossy(text));
    let message = error.to_string();
    message.strip_prefix(name).unwrap_or_else(|| panic!("no file in {message}")).to_string()
}

#[test]
fn libsvm_errors_name_line_and_column() {
    for (text, place, words) in [
        (&b"1 0:1\n"[..], ":1:3:", "indices start at 1"),
        (b"1 1:1\n\n# c\n-1 2:1 2:3\n", ":4:8:", "index 2 after index 2"),
        (b"1 3:1 2:1", ":1:7:", "index 2 after index 3"),
        (b"1 1:nan\n", ":1:5:", "finite"),
        (b"1 1:inf\n", ":1:5:", "finite"),
        (b"1 1:-1e999\n", ":1:5:", "finite"),
        (b"1 1:\n", ":1:5:", "found nothing"),
        (b"1 1:x\n", ":1:5:", "found `x`"),
        (b"1 1:1x 2:1\n", ":1:5:", "found `1x`"),
        (b"1 1:1:1\n", ":1:5:", "found `1:1`"),
        (b"1 1: 2\n", ":1:5:", "found nothing"),
        (b"1 :2\n", ":1:3:", "index:value"),
        (b"1 -1:2\n", ":1:3:", "index:value"),
        (b"1 +1:2\n", ":1:3:", "index:value"),
        (b"1 a:2\n", ":1:3:", "found `a:2`"),
        (b"1 2\n", ":1:3:", "found `2`"),
        (b"1 1:1 1", ":1:7:", "index:value"),
        (b"1 4294967296:1\n", ":1:3:", "at most 4294967295"),
        (b"1 99999999999999999999999999:1\n", ":1:3:", "at most 4294967295"),
        (b"1 1:1\n1,3 1:1\n", ":2:1:", "one label"),
        (b"1 1:1\n  1:1\n", ":2:3:", "a label, as the first row has one"),
        (b"1:1\n1 1:1\n", ":2:1:", "no label"),
        (b"1 qid:x 1:1\n", ":1:3:", "query number"),
        (b"1 1:1 qid:1\n", ":1:7:", "index:value"),
        (b"\xff\xfe 1:1\n", ":1:1:", "UTF-8"),
        (b"1 1:\xff\n", ":1:5:", "a number"),
        (b"1 \xff:1\n", ":1:3:", "index:value"),
        (b"\xef\xbb\xbf1 0:1\r\n", ":1:3:", "indices start at 1"),
        (b"1 1:1\r\n\r\n1\t0:1\r\n", ":3:3:", "indices start at 1"),
        (b"1 1:1\0\n", ":1:5:", "a number"),
    ] {
        let message = refuse("a.libsvm", text, &ReadOptions::default());
        assert!(
            message.starts_with(place) && message.contains(words),
            "{} gave {message}",
            String::from_utf8_lossy(text)
        );
    }
}

#[test]
fn table_errors_name_line_and_field() {
    for (text, place, words) in [
        ("a,b,y\n1,2,0\n1,2\n", ":3:2:", "found 2 fields"),
        ("a,b,y\n1,2,0\n\n1,2,3,4\n", ":4:4:", "found 4 fields"),
        ("a,b,y\n1,2,0\n1,,1\n", ":3:2:", "missing"),
        ("a,b,y\n1,2,0\n1,NA,1\n", ":3:2:", "column 2 (`b`)"),
        ("a,b,y\n1,2,0\n1,red,1\n", ":3:2:", "drop = b"),
        ("a,b,y\n1,2,0\n1,2x,1\n", ":3:2:", "found `2x`"),
        ("a,b,y\n1,2,0\n1,nan,1\n", ":3:2:", "missing in 1 row"),
        ("a,b,y\n1,2,0\n1,inf,1\n", ":3:2:", "finite"),
        ("a,b,y\n1,2,0\n1,3,\n", ":3:3:", "a label"),
        ("a,b,y\r\n1,2,0\r\n\r\n1,x,1\r\n", ":4:2:", "found `x`"),
        ("a,y\n1,\"one\ntwo\"\nx,1\n", ":4:1:", "found `x`"),
        ("y,a\n0,1\n\"one\ntwo\",x\n", ":4:2:", "found `x`"),
        ("a,y\n1,\"open\n1,2\n", ":2:2:", "closing quote"),
        ("a,y\n1,\"a\"b\n1,2\n", ":2:2:", "closing quote"),
        ("red,1,blue\n", "", "no rows"),
    ] {
        let message = refuse("a.csv", text.as_bytes(), &ReadOptions::default());
        assert!(message.starts_with(place) && message.contains(words), "{text} gave {message}");
        let tabs = refuse("a.tsv", text.replace(',', "\t").as_bytes(), &ReadOptions::default());
        assert!(tabs.starts_with(place) && tabs.contains(words), "{text} gave {tabs}");
    }
}

#[test]
fn a_label_column_that_is_not_there() {
    let with = |label: &str| ReadOptions { label: Some(label.into()), ..ReadOptions::default() };
    for (text, label) in [("a,b\n1,2\n", "c"), ("a,b\n1,2\n", "3"), ("a,b\n1,2\n", "0"), ("1,2\n", "a")] {
        let error = read_bytes("a.csv", text.as_bytes(), &with(label)).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
}

#[test]
fn nothing_to_read() {
    for name in ["a.libsvm", "a.csv", "a.tsv"] {
        for text in ["", "\n", "\r\n \r\n\t\n", "\u{feff}"] {
            let error = read_bytes(name, text.as_bytes(), &ReadOptions::default()).unwrap_err();
            assert!(matches!(error, Error::Data { .. }), "{error}");
        }
    }
    assert!(refuse("a.libsvm", b"# only\n#comments", &ReadOptions::default()).contains("no rows"));
    assert!(refuse("a.csv", b"a,b,y\n", &ReadOptions::default()).contains("no rows"));
    assert!(matches!(read("/no/such/file", &ReadOptions::default()).unwrap_err(), Error::Io { .. }));
    assert!(matches!(read("/", &ReadOptions::default()).unwrap_err(), Error::Io { .. }));
}

#[test]
fn memory_is_bounded_by_the_file() {
    let data = read_bytes("a.libsvm", b"1 4294967295:1\n-1 1:1\n", &ReadOptions::default()).unwrap();
    assert_eq!((data.rows.cols(), data.rows.stored(), data.rows.is_dense()), (4294967295, 2, false));
    let dense = ReadOptions { storage: Storage::Dense, ..ReadOptions::default() };
    let wide = b"1 4294967295:1\n".repeat(1000);
    assert!(matches!(read_bytes("a.libsvm", &wide, &dense), Err(Error::Memory { .. })));
    let features = ReadOptions { features: Some(1 << 40), ..ReadOptions::default() };
    assert!(matches!(read_bytes("a.libsvm", b"1 1:1\n", &features), Err(Error::Parameter { .. })));
}

#[test]
fn values_beyond_single_precision_are_refused_there() {
    let single = ReadOptions { precision: Precision::F32, ..ReadOptions::default() };
    assert!(refuse("a.libsvm", b"1 1:1e300\n", &single).starts_with(":1:5: found `1e300`"));
    assert!(refuse("a.csv", b"y,a\n1,1e300\n", &single).starts_with(":2:2: found `1e300`"));
}

#[test]
fn the_line_is_right_in_a_long_file_whatever_the_threads() {
    // Several blocks of a mebibyte, read by ranges, as a stream, and as a table.
    let rows = 300_000;
    let mut text: Vec<u8> = (0..rows).flat_map(|i| format!("1 1:{i} 2:0.5\n").into_bytes()).collect();
    text.extend_from_slice(b"1 1:1 oops\n");
    text.extend((0..rows).flat_map(|_| *b"1 0:bad\n"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.libsvm");
    std::fs::write(&path, &text).unwrap();
    let table: Vec<u8> = text.iter().map(|&b| if b == b' ' || b == b':' { b',' } else { b }).collect();
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let message = read(path.to_str().unwrap(), &ReadOptions::default()).unwrap_err().to_string();
            assert!(message.contains("long.libsvm:300001:7: found `oops`"), "{message}");
            let message = refuse("a.libsvm", &text, &ReadOptions::default());
            assert!(message.starts_with(":300001:7: found `oops`"), "{message}");
            let message = refuse("a.csv", &table, &ReadOptions::default());
            assert!(message.starts_with(":300001:4: found 4 fields"), "{message}");
        });
    }
}

#[test]
fn a_label_missing_at_a_block_boundary_is_found() {
    let mut text: Vec<u8> = b"1 1:1 2:0.5\n".repeat(200_000);
    text.extend(b"1:1 2:0.5\n".repeat(200_000));
    assert!(refuse("a.libsvm", &text, &ReadOptions::default()).starts_with(":200001:1: found `1:1`, expected a label"));
    // The later rows fill blocks of their own, whose first row decides nothing.
    let mut text = b"1:1\n".to_vec();
    text.extend(b"\n".repeat(1 << 21));
    text.extend(b"1 1:1\n1:1\n");
    let message = refuse("a.libsvm", &text, &ReadOptions::default());
    assert!(message.starts_with(":2097154:1: found `1`"), "{message}");
}

#[test]
fn broken_packing_is_an_error_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = b"1 1:0.5 2:0.25\n".repeat(5000);
    let data = read_bytes("a.libsvm", &text, &ReadOptions::default()).unwrap();
    for ending in ["gz", "zst", "xz"] {
        let path = folder.path().join(format!("a.libsvm.{ending}"));
        let path = path.to_str().unwrap();
        widemargin::data::write(&data, path, None).unwrap();
        let packed = std::fs::read(path).unwrap();
        for size in [packed.len() - 3, packed.len() / 2, 12, 7, 3, 1] {
            std::fs::write(path, &packed[..size]).unwrap();
            let error = read(path, &ReadOptions::default()).unwrap_err();
            assert!(matches!(error, Error::Io { .. }) && error.to_string().contains(path), "{ending} {size}: {error}");
        }
        std::fs::write(path, &text).unwrap();
        assert!(matches!(read(path, &ReadOptions::default()), Err(Error::Io { .. })), "plain text named .{ending}");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn damaged_parquet_files_do_not_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let path = path.to_str().unwrap();
    let data = read_bytes("a.csv", b"y,a,b\nu,1,0.1\nv,2,0.5\n", &ReadOptions::default()).unwrap();
    widemargin::data::write(&data, path, None).unwrap();
    let good = std::fs::read(path).unwrap();
    for size in (0..good.len()).step_by(7) {
        assert!(read_bytes("a.parquet", &good[..size], &ReadOptions::default()).is_err());
    }
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x55;
        // Some changes are harmless; none may panic or take all memory.
        let _ = read_bytes("a.parquet", &bad, &ReadOptions::default());
    }
}
