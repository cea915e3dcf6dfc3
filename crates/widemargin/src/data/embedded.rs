//! Small public data sets that come with the crate; `data/README.md` tells where they are from.

use super::{Dataset, ReadOptions, read_bytes};

const NAMES: [&str; 5] = ["wdbc", "sonar", "iris", "wine", "digits"];

/// The names of the embedded data sets: two of two classes, then three of more.
pub fn embedded_names() -> &'static [&'static str] {
    &NAMES
}

/// The embedded data set of that name, if there is one. Values are as published, not scaled.
pub fn embedded(name: &str) -> Option<Dataset> {
    let bytes: &[u8] = match name {
        "wdbc" => include_bytes!("../../data/wdbc.libsvm.gz"),
        "sonar" => include_bytes!("../../data/sonar.libsvm.gz"),
        "iris" => include_bytes!("../../data/iris.libsvm.gz"),
        "wine" => include_bytes!("../../data/wine.libsvm.gz"),
        "digits" => include_bytes!("../../data/digits.libsvm.gz"),
        _ => return None,
    };
    read_bytes(&format!("{name}.libsvm.gz"), bytes, &ReadOptions::default()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_data_are_what_the_notes_say() {
        for (name, rows, cols, classes) in [
            ("wdbc", 569, 30, &[("benign", 357), ("malignant", 212)][..]),
            ("sonar", 208, 60, &[("mine", 111), ("rock", 97)]),
            ("iris", 150, 4, &[("setosa", 50), ("versicolor", 50), ("virginica", 50)]),
            ("wine", 178, 13, &[("1", 59), ("2", 71), ("3", 48)]),
        ] {
            let data = embedded(name).unwrap();
            assert_eq!((data.name.as_str(), data.rows.rows(), data.rows.cols()), (name, rows, cols));
            let labels = data.labels.unwrap();
            let counts =
                labels.names().iter().enumerate().map(|(c, name)| {
                    (name.as_str(), labels.codes().iter().filter(|&&code| code as usize == c).count())
                });
            assert_eq!(counts.collect::<Vec<_>>(), classes);
        }
        let digits = embedded("digits").unwrap();
        assert_eq!((digits.rows.rows(), digits.rows.cols()), (1797, 64));
        assert_eq!(digits.labels.unwrap().names().len(), 10);
        assert!(embedded_names().iter().all(|name| embedded(name).is_some()));
        assert!(embedded("no such").is_none());
    }
}
