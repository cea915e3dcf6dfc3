//! Files that are there whole or not at all.

use crate::{Error, Result};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Writes a file by [`AtomicFile`].
///
/// # Errors
/// [`Error::Io`] with `path`, whatever went wrong.
pub fn write_atomically(path: &Path, f: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    f(&mut file).map_err(Error::io(path))?;
    file.finish()
}

/// A file that is written beside its destination and renamed in the end: a write that fails leaves the old file as it was, and no
/// other. The new file has the old one's permissions. What is no regular file (`/dev/stdout`, a pipe) is written
/// directly.
pub struct AtomicFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// What it is to replace, and the permissions of that.
    place: Option<(Temporary, PathBuf, Option<Permissions>)>,
}

impl AtomicFile {
    /// Begins to write the file.
    ///
    /// # Errors
    /// [`Error::Io`] with `path`.
    pub fn create(path: &Path) -> Result<Self> {
        Self::begin(path).map_err(Error::io(path))
    }

    fn begin(path: &Path) -> io::Result<Self> {
        let old = fs::metadata(path).ok();
        if is_open_already(path) || old.as_ref().is_some_and(|m| !m.is_file() && !m.is_dir()) {
            // Appending is all one can do to a pipe, and what `>>` means for a file.
            let out = BufWriter::new(OpenOptions::new().append(true).open(path)?);
            return Ok(Self { path: path.into(), out, place: None });
        }
        // A link stays a link: what it leads to is replaced.
        let target = if old.is_some() { fs::canonicalize(path)? } else { path.into() };
        if old.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory"));
        }
        let (file, temporary) = Temporary::beside(&target)?;
        let out = BufWriter::with_capacity(1 << 16, file);
        Ok(Self { path: path.into(), out, place: Some((temporary, target, old.map(|old| old.permissions()))) })
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// [`Error::Io`] with the path.
    pub fn finish(self) -> Result<()> {
        let Self { path, out, place } = self;
        let finish = || {
            let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
            let Some((temporary, target, permissions)) = place else { return Ok(()) };
            if let Some(permissions) = permissions {
                file.set_permissions(permissions)?;
            }
            file.sync_all()?;
            drop(file);
            temporary.rename(&target)
        };
        finish().map_err(Error::io(path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Whether a path names an open file of the process. It may be a regular one, but is the shell's, not ours to replace.
fn is_open_already(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc"].iter().any(|open| path.starts_with(open))
}

/// The files that are being written, for a program that ends in the middle of it.
static UNFINISHED: Mutex<Unfinished> = Mutex::new(Unfinished { files: Vec::new(), ending: false });

struct Unfinished {
    files: Vec<PathBuf>,
    /// Whether nothing is finished any more.
    ending: bool,
}

fn unfinished() -> MutexGuard<'static, Unfinished> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that [`write_atomically`] has not finished, and lets it finish none from now on: for a program that is
/// about to end, at a signal or after a panic, while other threads may still be writing.
pub fn drop_unfinished_files() {
    let mut unfinished = unfinished();
    unfinished.ending = true;
    for path in unfinished.files.drain(..) {
        // Nothing more can be done if it cannot be removed.
        let _ = fs::remove_file(path);
    }
}

/// A file that is removed unless it is renamed, also if the writer panics.
struct Temporary(Option<PathBuf>);

impl Temporary {
    /// Creates a new file in the folder of `target`, so that it can be renamed to it.
    fn beside(target: &Path) -> io::Result<(File, Self)> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        if target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no file name"));
        }
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = target.with_file_name(format!(".widemargin-{}-{count}.tmp", std::process::id()));
            // Held from before the file exists, so that none is overlooked by a program that ends.
            let mut unfinished = unfinished();
            if unfinished.ending {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    unfinished.files.push(path.clone());
                    return Ok((file, Self(Some(path))));
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        let mut unfinished = unfinished();
        if unfinished.ending {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if let Some(path) = &self.0 {
            fs::rename(path, target)?;
            unfinished.files.retain(|file| file != path);
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            unfinished().files.retain(|file| file != path);
            // Nothing more can be done if it cannot be removed; the error under way matters more.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("full"))
        });
        assert!(failed.unwrap_err().to_string().ends_with("model: full"));
        let panicked = std::panic::catch_unwind(|| write_atomically(&path, |_| panic!("stop")));
        assert!(panicked.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write_atomically(folder.path(), |_| Ok(())).is_err());
        assert!(write_atomically(&folder.path().join("no/file"), |_| Ok(())).is_err());
        assert!(write_atomically(Path::new(""), |_| Ok(())).is_err());
        assert!(write_atomically(Path::new("/"), |_| Ok(())).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn permissions_and_links_stay_and_devices_are_written() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_atomically(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
    }
}
