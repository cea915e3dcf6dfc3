//! A folder of its own for each test, and the program run inside it.
#![allow(dead_code, reason = "each test file uses its part")]

use serde_json::Value;
use std::path::PathBuf;

/// A folder that is removed at the end of the test.
pub struct Place(tempfile::TempDir);

/// What a run left.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// A folder with two well separated classes in `train.libsvm` and more of the same in `test.libsvm`.
    pub fn with_data() -> Self {
        let place = Self::new();
        place.file("train.libsvm", &rows(60, 0));
        place.file("test.libsvm", &rows(30, 7));
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn file(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// The names of all files, also hidden ones.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs the program with these words, split at spaces.
    pub fn run(&self, words: &str) -> Run {
        self.run_with(words, "")
    }

    /// The same with something on standard input.
    pub fn run_with(&self, words: &str, stdin: &str) -> Run {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("widemargin");
        let output = command.current_dir(self.0.path()).args(words.split_whitespace()).write_stdin(stdin).output();
        let output = output.unwrap();
        Run {
            code: output.status.code().expect("the program ends by itself"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Runs it and expects success.
    pub fn ok(&self, words: &str) -> Run {
        let run = self.run(words);
        assert_eq!(run.code, 0, "{words}: {}", run.stderr);
        run
    }

    /// Runs it and expects one JSON object, and nothing else, on standard output.
    pub fn json(&self, words: &str) -> Value {
        let run = self.ok(words);
        let value: Value = serde_json::from_str(&run.stdout).expect("one JSON value and nothing else");
        assert!(value.is_object(), "{}", run.stdout);
        value
    }

    /// Runs it and expects this exit status and these words among the errors.
    pub fn fails(&self, words: &str, code: i32, says: &[&str]) {
        let run = self.run(words);
        assert_eq!(run.code, code, "{words}: {}", run.stderr);
        assert!(run.stdout.is_empty(), "{words}: {}", run.stdout);
        assert!(run.stderr.starts_with("error: "), "{words}: {}", run.stderr);
        for part in says {
            assert!(run.stderr.contains(part), "{words}: {} should say {part}", run.stderr);
        }
    }
}

/// Rows of two overlapping classes in three features, always the same.
pub fn rows(count: usize, shift: u64) -> String {
    let noise = |i: u64| ((i.wrapping_mul(2_654_435_761).wrapping_add(shift * 97) >> 7) % 1000) as f64 / 500.0 - 1.0;
    let line = |i: u64| {
        let (sign, label) = if i.is_multiple_of(2) { (1.0, "+1") } else { (-1.0, "-1") };
        let (a, b, c) = (sign + 2.0 * noise(3 * i), 0.5 * sign + noise(3 * i + 1), noise(3 * i + 2));
        format!("{label} 1:{a:.4} 2:{b:.4} 3:{c:.4}\n")
    };
    (0..count as u64).map(line).collect()
}
