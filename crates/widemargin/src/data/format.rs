//! The file formats, and how a file's ending tells them.

use crate::names::named;
use std::path::Path;

/// How rows stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// LIBSVM text: `label index:value …`, indices from 1.
    Libsvm,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// Parquet.
    Parquet,
}

named!(Format, "format", [
    Libsvm: "libsvm" "label index:value …",
    Csv: "csv" "comma-separated",
    Tsv: "tsv" "tab-separated",
    Parquet: "parquet" "Parquet",
]);

/// How the bytes of a text file are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    /// What to say where the feature that knows this packing is off.
    #[cfg(not(all(feature = "gzip", feature = "xz", feature = "zstd")))]
    pub(super) fn is_off(self) -> std::io::Error {
        let name = match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        };
        let what = format!("this build of widemargin knows no {name} (feature `{name}` is off)");
        std::io::Error::new(std::io::ErrorKind::Unsupported, what)
    }

    /// Tells a packed file by its first bytes; no text format starts with any of these.
    pub(super) fn of_magic(head: &[u8]) -> Option<Self> {
        if head.starts_with(&[0x1f, 0x8b]) {
            Some(Self::Gzip)
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Some(Self::Zstd)
        } else if head.starts_with(&[0xfd, b'7', b'z', b'X', b'Z', 0]) {
            Some(Self::Xz)
        } else {
            None
        }
    }
}

/// What a path's endings say, and what is left of its name without them.
pub(super) struct FileEnding {
    pub(super) format: Option<Format>,
    pub(super) compression: Option<Compression>,
    pub(super) stem: String,
}

impl FileEnding {
    /// Reads the endings of a path, e.g. `dir/iris.csv.gz`.
    pub(super) fn of(path: &str) -> Self {
        if path == "-" {
            return Self { format: None, compression: None, stem: "stdin".into() };
        }
        let name = Path::new(path).file_name().map_or_else(|| path.into(), |n| n.to_string_lossy());
        let (name, compression) = split(&name, |ending| match ending {
            "gz" => Some(Compression::Gzip),
            "zst" => Some(Compression::Zstd),
            "xz" => Some(Compression::Xz),
            _ => None,
        });
        let (stem, format) = split(name, |ending| match ending {
            "libsvm" | "svm" | "txt" => Some(Format::Libsvm),
            "csv" => Some(Format::Csv),
            "tsv" => Some(Format::Tsv),
            "parquet" => Some(Format::Parquet),
            _ => None,
        });
        Self { format, compression, stem: stem.into() }
    }
}

/// Takes the last ending off a name if `known` knows it.
fn split<T>(name: &str, known: impl Fn(&str) -> Option<T>) -> (&str, Option<T>) {
    match name.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() => match known(&ending.to_ascii_lowercase()) {
            Some(what) => (stem, Some(what)),
            None => (name, None),
        },
        _ => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (path, format, compression, stem) in [
            ("a/b/iris.libsvm", Some(Format::Libsvm), None, "iris"),
            ("iris.t.SVM.GZ", Some(Format::Libsvm), Some(Compression::Gzip), "iris.t"),
            ("x.csv.zst", Some(Format::Csv), Some(Compression::Zstd), "x"),
            ("x.tsv.xz", Some(Format::Tsv), Some(Compression::Xz), "x"),
            ("x.parquet", Some(Format::Parquet), None, "x"),
            ("a9a.t", None, None, "a9a.t"),
            (".csv", None, None, ".csv"),
            ("-", None, None, "stdin"),
        ] {
            let ending = FileEnding::of(path);
            assert_eq!(
                (ending.format, ending.compression, ending.stem.as_str()),
                (format, compression, stem),
                "{path}"
            );
        }
    }
}
