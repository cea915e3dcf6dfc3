//! `cargo xtask bench-data`: one data set of the benchmark, as LIBSVM text for everybody, and as plain arrays so that
//! programs without a quick reader need not read text.

use super::random::Random;
use super::shapes::{Row, Shape};
use crate::run::{Run, root};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Changes whenever the same shape would give other data.
const VERSION: &str = "2";

/// Writes the set `what` into `folder`, unless it is there already.
///
/// `what` is a [`Shape`], or `file:SCALING:PATH` for a real one; `SCALING` is `none`, `max` (divided by the largest
/// value), `columns` (each feature by its largest) or `unit` (rows of length 1). The rows to test with are those of
/// `NAME.t.ENDING` beside `NAME.ENDING`; where there is no such file, every tenth.
pub fn write(what: &str, folder: &Path) -> Result<(), String> {
    let mark = folder.join("made");
    let wanted = format!("{VERSION} {what}\n");
    if fs::read_to_string(&mark).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(at(folder))?;
    match what.strip_prefix("file:") {
        Some(rest) => {
            let (scaling, path) = rest.split_once(':').ok_or("expected file:SCALING:PATH")?;
            real(scaling, Path::new(path), folder)?;
        }
        None => {
            let shape = Shape::read(what)?;
            let mut random = Random::of(what);
            let test = (shape.rows() / 4).clamp(250, 5000);
            let mut files = [Files::new(folder, "train")?, Files::new(folder, "test")?];
            let (mut seen, mut outcome) = (0, Ok(()));
            shape.draw(shape.rows() + test, &mut random, |row| {
                let part = &mut files[usize::from(seen >= shape.rows())];
                seen += 1;
                if outcome.is_ok() {
                    outcome = part.add(&row.label_text(&shape), &row.pairs);
                }
            });
            outcome?;
            files.into_iter().try_for_each(|part| part.finish(shape.cols()))?;
        }
    }
    fs::write(&mark, wanted).map_err(at(&mark))
}

impl Row {
    fn label_text(&self, shape: &Shape) -> String {
        match (shape, self.label) {
            (Shape::Dense { .. } | Shape::Text { .. } | Shape::Curved { .. }, 0) => "-1".into(),
            (Shape::Dense { .. } | Shape::Text { .. } | Shape::Curved { .. }, _) => "+1".into(),
            (_, label) => (label + 1).to_string(),
        }
    }
}

fn at(path: &Path) -> impl Fn(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}

/// One half of a set: `NAME.libsvm`, and `NAME.values` (f64), `NAME.columns` (i32), `NAME.offsets` (i64), `NAME.labels`
/// (f64), `NAME.shape` (rows and columns).
struct Files {
    folder: PathBuf,
    name: &'static str,
    text: BufWriter<File>,
    values: BufWriter<File>,
    columns: BufWriter<File>,
    offsets: Vec<i64>,
    labels: Vec<f64>,
    line: String,
}

impl Files {
    fn new(folder: &Path, name: &'static str) -> Result<Self, String> {
        let open = |ending: &str| {
            let path = folder.join(format!("{name}.{ending}"));
            File::create(&path).map(|file| BufWriter::with_capacity(1 << 20, file)).map_err(at(&path))
        };
        Ok(Self {
            text: open("libsvm")?,
            values: open("values")?,
            columns: open("columns")?,
            folder: folder.into(),
            name,
            offsets: vec![0],
            labels: Vec::new(),
            line: String::new(),
        })
    }

    fn add(&mut self, label: &str, pairs: &[(u32, f64)]) -> Result<(), String> {
        use std::fmt::Write as _;
        self.line.clear();
        self.line.push_str(label);
        for &(column, value) in pairs {
            let _ = write!(self.line, " {}:", column + 1);
            let from = self.line.len();
            // Six significant digits, as such files usually have; what counts for everybody is the number written.
            let digits = (5 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
            let _ = write!(self.line, "{value:.digits$}");
            let written: f64 = self.line[from..].parse().map_err(|_| format!("{value} cannot be written"))?;
            self.values.write_all(&written.to_le_bytes()).map_err(at(&self.folder))?;
            self.columns.write_all(&(column as i32).to_le_bytes()).map_err(at(&self.folder))?;
        }
        self.line.push('\n');
        self.text.write_all(self.line.as_bytes()).map_err(at(&self.folder))?;
        self.offsets.push(self.offsets[self.offsets.len() - 1] + pairs.len() as i64);
        self.labels.push(label.parse().map_err(|_| format!("label {label} is no number"))?);
        Ok(())
    }

    fn finish(mut self, cols: usize) -> Result<(), String> {
        let file = |ending: &str| self.folder.join(format!("{}.{ending}", self.name));
        let offsets: Vec<u8> = self.offsets.iter().flat_map(|o| o.to_le_bytes()).collect();
        let labels: Vec<u8> = self.labels.iter().flat_map(|l| l.to_le_bytes()).collect();
        let shape = format!("{} {cols}\n", self.labels.len());
        for (ending, bytes) in [("offsets", offsets), ("labels", labels), ("shape", shape.into_bytes())] {
            fs::write(file(ending), bytes).map_err(at(&file(ending)))?;
        }
        let folder = at(&self.folder);
        [&mut self.text, &mut self.values, &mut self.columns].into_iter().try_for_each(|f| f.flush().map_err(&folder))
    }
}

/// A label and its pairs.
type Line = (String, Vec<(u32, f64)>);

fn real(scaling: &str, path: &Path, folder: &Path) -> Result<(), String> {
    let train = read(path, folder)?;
    let tests = tests_of(path)?;
    let (train, test) = if tests.exists() { (train, read(&tests, folder)?) } else { every_tenth_apart(train) };
    let cols = train.iter().chain(&test).flat_map(|(_, pairs)| pairs.last()).map(|(j, _)| *j as usize + 1).max();
    let cols = cols.unwrap_or(0);
    let mut largest = vec![0.0f64; cols];
    for (j, v) in train.iter().flat_map(|(_, pairs)| pairs) {
        largest[*j as usize] = largest[*j as usize].max(v.abs());
    }
    let most = largest.iter().copied().fold(0.0, f64::max);
    let length = |pairs: &[(u32, f64)]| pairs.iter().map(|(_, v)| v * v).sum::<f64>().sqrt();
    for (name, rows) in [("train", train), ("test", test)] {
        let mut files = Files::new(folder, name)?;
        for (label, mut pairs) in rows {
            let length = length(&pairs);
            for (j, v) in &mut pairs {
                let divisor = match scaling {
                    "none" => 1.0,
                    "max" => most,
                    "columns" => largest[*j as usize],
                    "unit" => length,
                    other => return Err(format!("there is no scaling {other}: none, max, columns or unit")),
                };
                *v /= if divisor > 0.0 { divisor } else { 1.0 };
            }
            files.add(&label, &pairs)?;
        }
        files.finish(cols)?;
    }
    Ok(())
}

fn every_tenth_apart(rows: Vec<Line>) -> (Vec<Line>, Vec<Line>) {
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (i, row) in rows.into_iter().enumerate() {
        if i % 10 == 9 { test.push(row) } else { train.push(row) }
    }
    (train, test)
}

/// `letter.t.libsvm.gz` for `letter.libsvm.gz`.
fn tests_of(path: &Path) -> Result<PathBuf, String> {
    let name = path.file_name().and_then(|n| n.to_str()).ok_or_else(|| format!("{}: no file name", path.display()))?;
    let (stem, ending) = name.split_once('.').ok_or_else(|| format!("{name}: expected an ending"))?;
    Ok(path.with_file_name(format!("{stem}.t.{ending}")))
}

/// Reads a file in any format the program knows, by letting it convert.
fn read(path: &Path, folder: &Path) -> Result<Vec<Line>, String> {
    let plain = folder.join("plain.libsvm");
    let program = root().join("target/release/widemargin");
    Run::new(program).arg("convert").arg(path).arg(&plain).arg("--quiet").output()?;
    let text = fs::read_to_string(&plain).map_err(at(&plain))?;
    fs::remove_file(&plain).map_err(at(&plain))?;
    let line = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let label = words.next()?.to_string();
        let pair = |word: &str| {
            let (column, value) = word.split_once(':')?;
            Some((column.parse::<u32>().ok()?.checked_sub(1)?, value.parse().ok()?))
        };
        Some((label, words.map(pair).collect::<Option<_>>()?))
    };
    text.lines().map(|l| line(l).ok_or_else(|| format!("{}: `{l}` is no row", path.display()))).collect()
}
