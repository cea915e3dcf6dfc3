//! Files of blocks: what is written is what is read, damage is an error, and training from the disk finds the optimum of memory.

use std::fmt::Write as _;
use std::fs;
use widemargin::Error;
use widemargin::cluster::train_file;
use widemargin::control::Control;
use widemargin::data::{BlockFile, ReadOptions, convert_to_blocks, is_block_file, read};
use widemargin::kernel::Kernel;
use widemargin::machine::{self, Bias, SolverChoice};
use widemargin::random::Random;
use widemargin::solver::Settings;
use widemargin::train::{ClassWeight, Gamma, TrainOptions, train};

fn options(name: &str, memory: u64) -> TrainOptions {
    let machine = machine::machine(name).unwrap();
    TrainOptions {
        machine,
        parameters: machine::check_parameters(machine, &[]).unwrap(),
        kernel: Kernel::Linear,
        gamma: Gamma::Scale,
        approx: None,
        bias: Bias::Free,
        scaling: None,
        class_weight: ClassWeight::Balanced,
        multiclass: None,
        solver: SolverChoice::Auto,
        settings: Settings { tol: 1e-6, memory, ..Settings::default() },
    }
}

/// LIBSVM text of rows of two classes that overlap; the first label that is met is the larger.
fn text(rows: usize, features: usize) -> String {
    let (mut random, mut text) = (Random::new(4, 0), String::new());
    for i in 0..rows {
        let label = if i == 0 || random.unit() < 0.4 { 1 } else { -1 };
        let _ = write!(text, "{label}");
        for j in 1..=features {
            let _ = write!(text, " {j}:{:.6}", random.normal() + if j == 1 { 0.7 * f64::from(label) } else { 0.0 });
        }
        text.push('\n');
    }
    text
}

#[test]
fn training_from_the_disk_finds_the_optimum_of_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("rows.libsvm"), text(260_000, 10)).unwrap();
    let counts = convert_to_blocks(&path("rows.libsvm"), &ReadOptions::default(), path("rows.wmx").as_ref()).unwrap();
    assert_eq!((counts.rows, counts.features), (260_000, 10));
    let file = BlockFile::open(&path("rows.wmx")).unwrap();
    assert!(file.len() > 1, "{} blocks", file.len());
    let here = read(&path("rows.libsvm"), &ReadOptions::default()).unwrap();
    assert!(is_block_file(&path("rows.wmx")) && !is_block_file(&path("rows.libsvm")));
    let whole = read(&path("rows.wmx"), &ReadOptions::default()).unwrap();
    assert_eq!((&whole.rows, &whole.labels), (&here.rows, &here.labels));
    let least = 8 * (0..file.len()).map(|number| file.bytes(number)).max().unwrap() + 8 * 260_000;
    for name in ["odm", "svm"] {
        let (_, near) = train(&here, None, &options(name, 1 << 30), Control::default()).unwrap();
        // With room for everything, and with none beyond what a pass takes.
        for memory in [1 << 30, least] {
            let (model, far) = train_file(&file, &options(name, memory), None, Control::default()).unwrap();
            let (near, far_objective) = (near.objective.unwrap(), far.objective.unwrap());
            assert!(far.stop.converged() && far.gap.unwrap() <= 1e-6, "{name}: {:?} {:?}", far.stop, far.gap);
            assert!((near - far_objective).abs() <= 2e-6 * near, "{name}: {near} {far_objective}");
            assert_eq!(model.labels, ["-1", "1"]);
        }
    }
    assert!(matches!(train_file(&file, &options("odm", 1000), None, Control::default()), Err(Error::Memory { .. })));
}

#[test]
fn damage_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("rows.libsvm"), "a 1:0.5 7:2\nb 2:1\n\na 3:-1e-3\n").unwrap();
    convert_to_blocks(&path("rows.libsvm"), &ReadOptions::default(), path("rows.wmx").as_ref()).unwrap();
    let bytes = fs::read(path("rows.wmx")).unwrap();
    let opened = |bytes: &[u8]| {
        fs::write(path("other.wmx"), bytes).unwrap();
        BlockFile::open(&path("other.wmx")).and_then(|file| file.block(0).map(drop))
    };
    opened(&bytes).unwrap();
    for length in 0..bytes.len() {
        assert!(opened(&bytes[..length]).is_err(), "cut to {length} bytes");
    }
    for at in 8..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 0x10;
        assert!(opened(&other).is_err(), "byte {at} changed");
    }
    // What cannot be read leaves no file, and says where it is wrong.
    fs::write(path("wrong.libsvm"), "a 1:1\nb 2:x\n").unwrap();
    let wrong = convert_to_blocks(&path("wrong.libsvm"), &ReadOptions::default(), path("wrong.wmx").as_ref());
    assert!(matches!(wrong, Err(Error::Parse { line: 2, .. })), "{wrong:?}");
    assert!(!fs::exists(path("wrong.wmx")).unwrap());
    fs::write(path("empty.libsvm"), "").unwrap();
    assert!(convert_to_blocks(&path("empty.libsvm"), &ReadOptions::default(), path("e.wmx").as_ref()).is_err());
}

/// Run under a limit: `ulimit -v 2097152; WIDEMARGIN_ROWS=20000000 cargo test --release --test cluster_disk -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes and gigabytes of disk"]
fn more_rows_than_memory_would_hold() {
    let rows: usize = std::env::var("WIDEMARGIN_ROWS").map_or(1_000_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut out = std::io::BufWriter::new(fs::File::create(path("rows.libsvm")).unwrap());
    let block = text(100_000, 12);
    for _ in 0..rows.div_ceil(100_000) {
        std::io::Write::write_all(&mut out, block.as_bytes()).unwrap();
    }
    drop(out);
    let start = std::time::Instant::now();
    let counts = convert_to_blocks(&path("rows.libsvm"), &ReadOptions::default(), path("rows.wmx").as_ref()).unwrap();
    let size = |name: &str| fs::metadata(path(name)).unwrap().len() as f64 / 1e9;
    println!(
        "{} rows: {:.2} GB of text to {:.2} GB in {:?}",
        counts.rows,
        size("rows.libsvm"),
        size("rows.wmx"),
        start.elapsed()
    );
    let file = BlockFile::open(&path("rows.wmx")).unwrap();
    for name in ["odm", "svm"] {
        let start = std::time::Instant::now();
        let (_, found) = train_file(&file, &options(name, 1 << 30), None, Control::default()).unwrap();
        let memory = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak =
            memory.lines().filter(|line| line.starts_with("VmPeak") || line.starts_with("VmHWM")).collect::<Vec<_>>();
        println!("{name}: {}, gap {:?}, {:?}, {peak:?}", found.solver, found.gap, start.elapsed());
        assert!(found.stop.converged());
    }
}
