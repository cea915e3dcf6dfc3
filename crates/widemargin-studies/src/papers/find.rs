//! The files of a table's data sets: which there are in a folder, and what becomes of them.

use super::PaperTable;
use std::path::{Path, PathBuf};
use widemargin::data::Dataset;
use widemargin::{Error, Result};

/// What a file may be called after the data set's name.
const ENDINGS: [&str; 7] = ["", ".libsvm", ".svm", ".txt", ".csv", ".tsv", ".parquet"];
/// And after that.
const PACKED: [&str; 4] = ["", ".gz", ".zst", ".xz"];

/// Where the data sets of a table are.
pub struct Located {
    table: &'static PaperTable,
    folder: PathBuf,
    sets: Vec<(String, Vec<Candidate>)>,
}

/// A file that may hold a data set.
struct Candidate {
    stem: String,
    path: PathBuf,
    /// Test rows that belong to the set.
    test: Option<PathBuf>,
}

/// A data set of the table that is at hand.
pub struct Set {
    /// As the table calls it.
    pub name: String,
    /// The file's name without its endings.
    pub file: String,
    /// Its rows.
    pub data: Dataset,
}

/// A data set of the table that is not at hand, or of no use.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Missing {
    /// As the table calls it.
    pub dataset: String,
    /// Why.
    pub reason: String,
}

/// What became of the data sets of a table.
#[derive(Default)]
pub struct Found {
    /// Those at hand.
    pub sets: Vec<Set>,
    /// The others.
    pub missing: Vec<Missing>,
    /// What differs from what the paper states.
    pub notes: Vec<String>,
}

/// Looks for the files of a table's data sets, all of them or only some, in a folder.
pub fn locate(table: &'static PaperTable, folder: &Path, only: &[String]) -> Result<Located> {
    let names = table.dataset_names();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(Error::Usage(format!("{unknown}: the table's data sets are {}", names.join(", "))));
    }
    let files = files(folder)?;
    let wanted = names.into_iter().filter(|name| only.is_empty() || only.contains(name));
    let sets = wanted.map(|name| (candidates(table, &name, &files), name)).map(|(files, name)| (name, files)).collect();
    Ok(Located { table, folder: folder.into(), sets })
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |source| Error::Io { path: folder.into(), source };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<_>>().map_err(failed)?;
    files.sort();
    Ok(files)
}

fn candidates(table: &PaperTable, name: &str, files: &[PathBuf]) -> Vec<Candidate> {
    let candidate = |stem: String| {
        let path = file_of(files, &stem)?.clone();
        let test = if table.joined { file_of(files, &format!("{stem}.t")).cloned() } else { None };
        Some(Candidate { stem, path, test })
    };
    table.file_names(name).into_iter().filter_map(candidate).collect()
}

/// The file of this name, whatever its ending.
fn file_of<'a>(files: &'a [PathBuf], name: &str) -> Option<&'a PathBuf> {
    let wanted: Vec<String> =
        ENDINGS.iter().flat_map(|ending| PACKED.iter().map(move |packed| format!("{name}{ending}{packed}"))).collect();
    files
        .iter()
        .find(|path| path.file_name().is_some_and(|file| wanted.iter().any(|w| w.as_str() == file.to_string_lossy())))
}

impl Located {
    /// Every file that may be read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let candidates = self.sets.iter().flat_map(|(_, candidates)| candidates);
        candidates.flat_map(|candidate| std::iter::once(&candidate.path).chain(&candidate.test))
    }

    /// Reads them, each by `read`; sets of more rows than `most` are left out.
    pub fn read<E: From<Error>>(
        self,
        most: Option<usize>,
        read: impl Fn(&Path) -> std::result::Result<Dataset, E>,
    ) -> std::result::Result<Found, E> {
        let mut found = Found::default();
        for (name, candidates) in self.sets {
            let mut reason = "no file of this name is there".to_string();
            let mut taken = None;
            for candidate in candidates {
                let data = candidate.read(&read)?;
                match unfit(self.table, &candidate.stem, &data, most) {
                    Some(why) => reason = why,
                    None => {
                        taken = Some(Set { name: name.clone(), file: candidate.stem, data });
                        break;
                    }
                }
            }
            match taken {
                None => found.missing.push(Missing { dataset: name, reason }),
                Some(set) => {
                    found.notes.extend(difference(self.table, &set));
                    found.sets.push(set);
                }
            }
        }
        if found.sets.is_empty() {
            let reason = format!("none of the data sets of {} is there", self.table.name);
            return Err(Error::Data { file: self.folder.display().to_string(), reason }.into());
        }
        Ok(found)
    }
}

impl Candidate {
    fn read<E>(&self, read: &impl Fn(&Path) -> std::result::Result<Dataset, E>) -> std::result::Result<Dataset, E> {
        let data = read(&self.path)?;
        Ok(match &self.test {
            Some(test) => data.joined(&read(test)?),
            None => data,
        })
    }
}

/// Why a file cannot be the table's data set.
fn unfit(table: &PaperTable, stem: &str, data: &Dataset, most: Option<usize>) -> Option<String> {
    let (rows, classes) = (data.rows.rows(), data.labels.as_ref().map_or(0, |labels| labels.names().len()));
    match table.classes {
        Some(wanted) if wanted != classes => Some(format!("{stem} has {classes} classes, the table is of {wanted}")),
        _ if most.is_some_and(|most| rows > most) => Some(format!("{stem} has {rows} rows, more than were asked for")),
        _ => None,
    }
}

/// What differs from the size that the paper states.
fn difference(table: &PaperTable, set: &Set) -> Option<String> {
    let Set { name, file, data } = set;
    let (rows, features) = (data.rows.rows(), data.rows.cols());
    let other_name = if file == name { String::new() } else { format!(" (file {file})") };
    match table.stated(name) {
        Some(stated) if (stated.rows, stated.features) != (rows, features) => Some(format!(
            "{name}{other_name}: {rows} rows × {features} features; the paper states {} × {}",
            stated.rows, stated.features
        )),
        _ if !other_name.is_empty() => Some(format!("{name} is the file {file}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use widemargin::data::{ReadOptions, read};

    fn plain(path: &Path) -> Result<Dataset> {
        read(&path.to_string_lossy(), &ReadOptions::default())
    }

    #[test]
    fn files_are_found_by_any_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("sonar.libsvm", "1 1:1\n2 1:2\n");
        write("vote.csv", "label,a\nx,1\ny,2\nx,3\n");
        write("vehicle.libsvm", "1 1:1\n2 1:2\n3 1:3\n");
        let table = super::super::table("ldm-table2").unwrap();
        let only = ["sonar", "house", "vehicle", "german"].map(str::to_string);
        let located = locate(table, folder.path(), &only).unwrap();
        assert_eq!(located.files().count(), 3);
        let found = located.read(None, plain).unwrap();
        let mut sets: Vec<(&str, &str)> = found.sets.iter().map(|s| (s.name.as_str(), s.file.as_str())).collect();
        sets.sort_unstable();
        assert_eq!(sets, [("house", "vote"), ("sonar", "sonar")]);
        let mut missing: Vec<&str> = found.missing.iter().map(|m| m.reason.as_str()).collect();
        missing.sort_unstable();
        assert_eq!(missing, ["no file of this name is there", "vehicle has 3 classes, the table is of 2"]);
        assert!(found.notes.iter().any(|note| note.starts_with("house (file vote): 3 rows × 1 features")));
        let few = locate(table, folder.path(), &only[..2]).unwrap().read(Some(2), plain).unwrap();
        assert_eq!((few.sets.len(), few.missing.len()), (1, 1));
        assert!(matches!(locate(table, folder.path(), &["mars".into()]), Err(Error::Usage(_))));
        assert!(matches!(locate(table, Path::new("nowhere"), &[]), Err(Error::Io { .. })));
        let none = locate(table, folder.path(), &["german".into()]).unwrap();
        assert!(matches!(none.read(None, plain), Err(Error::Data { .. })));
    }

    #[test]
    fn test_rows_belong_to_the_set_where_the_paper_joins_them() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["iris.libsvm", "iris.t.libsvm"] {
            std::fs::write(folder.path().join(name), "1 1:1\n2 1:2\n3 1:3\n").unwrap();
        }
        let located = locate(super::super::table("mcodm-table2").unwrap(), folder.path(), &["iris".into()]).unwrap();
        assert_eq!(located.files().count(), 2);
        assert_eq!(located.read(None, plain).unwrap().sets[0].data.rows.rows(), 6);
    }
}
