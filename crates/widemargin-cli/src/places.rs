//! Refusing, before anything is read, to write over what is to be read.

use crate::failure::Outcome;
use crate::output::is_stdout;
use std::path::{Path, PathBuf};
use widemargin::Error;

/// The files of a command: what it reads, and what it writes.
#[derive(Default)]
pub struct Places {
    inputs: Vec<(String, Identity)>,
    outputs: Vec<(String, PathBuf)>,
}

impl Places {
    /// A file that is read; `-` is standard input.
    pub fn reads(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let found = if is_stdout(path) { Identity::of_stdin() } else { Identity::of(path) };
        self.inputs.extend(found.map(|identity| (path.display().to_string(), identity)));
        self
    }

    /// A file that is written; `-` is standard output.
    pub fn writes(mut self, path: Option<impl AsRef<Path>>) -> Self {
        if let Some(path) = path.as_ref().map(AsRef::as_ref).filter(|path| !is_stdout(path)) {
            self.outputs.push((path.display().to_string(), path.into()));
        }
        self
    }

    /// Refuses outputs that are inputs, or the same as another output, by whatever name.
    pub fn check(&self) -> Outcome {
        for (place, (name, path)) in self.outputs.iter().enumerate() {
            let Some(identity) = Identity::of(path).or_else(|| Identity::of_new(path)) else { continue };
            if let Some((input, _)) = self.inputs.iter().find(|(_, input)| *input == identity) {
                return Err(
                    Error::Usage(format!("{name}: it is to be read ({input}), and would be written over")).into()
                );
            }
            let same = |(_, other): &&(String, PathBuf)| {
                Identity::of(other).or_else(|| Identity::of_new(other)) == Some(identity.clone())
            };
            if let Some((other, _)) = self.outputs[..place].iter().find(same) {
                return Err(Error::Usage(format!("{name}: two outputs cannot go to one file ({other})")).into());
            }
        }
        Ok(())
    }
}

/// What makes a file itself, whatever name leads to it.
#[derive(Clone, PartialEq)]
enum Identity {
    #[cfg(unix)]
    Node {
        device: u64,
        inode: u64,
    },
    Path(PathBuf),
}

impl Identity {
    /// Of a regular file; nothing is lost by writing to a terminal, a pipe or `/dev/null` twice.
    #[cfg(unix)]
    fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        Some(Self::Node { device: metadata.dev(), inode: metadata.ino() })
    }

    /// Of a regular file.
    #[cfg(not(unix))]
    fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        std::fs::canonicalize(path).ok().map(Self::Path)
    }

    /// Of a file that is not there yet: its folder's true name, and its own.
    fn of_new(path: &Path) -> Option<Self> {
        if path.exists() {
            return None;
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(Self::Path(std::fs::canonicalize(folder).ok()?.join(path.file_name()?)))
    }

    /// Of what stands behind `<`.
    fn of_stdin() -> Option<Self> {
        if cfg!(unix) { Self::of(Path::new("/dev/stdin")) } else { None }
    }
}
