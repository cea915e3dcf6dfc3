//! A Python environment of our own, `target/venv`.

use crate::run::{Run, root};
use std::path::{Path, PathBuf};

/// The environment.
pub struct Venv(PathBuf);

impl Venv {
    /// Opens it, and makes it first if it is not there. `Err` says why there is none.
    fn open() -> Result<Self, String> {
        let folder = root().join("target/venv");
        if !folder.join("bin/python").exists() {
            println!("making {}", folder.display());
            let made = Run::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).output();
            made.map_err(|why| format!("python3 cannot make a virtual environment ({why})"))?;
        }
        Ok(Self(folder))
    }

    /// Opens it and installs what a file of requirements lists. `Err` says why that cannot be.
    pub fn with(requirements: &Path) -> Result<Self, String> {
        let venv = Self::open()?;
        venv.install(requirements)?;
        Ok(venv)
    }

    /// Its Python, about to run a module.
    pub fn module(&self, name: &str) -> Run {
        self.python().args(["-m", name])
    }

    /// Its Python.
    pub fn python(&self) -> Run {
        Run::new(self.0.join("bin/python"))
    }

    /// Installs what a file of requirements lists, unless that was done before. `Err` says why it cannot.
    fn install(&self, requirements: &Path) -> Result<(), String> {
        let wanted = std::fs::read_to_string(requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
        let folder = requirements.parent().and_then(Path::file_name).unwrap_or_default();
        let done = self.0.join(format!("installed-{}.txt", folder.to_string_lossy()));
        if std::fs::read_to_string(&done).is_ok_and(|text| text == wanted) {
            return Ok(());
        }
        println!("installing into {}: {}", self.0.display(), wanted.split_whitespace().collect::<Vec<_>>().join(" "));
        let pip = self.module("pip").args(["install", "--quiet", "--requirement"]);
        pip.arg(requirements).output().map_err(|why| format!("pip cannot install the packages ({why})"))?;
        std::fs::write(&done, wanted).map_err(|e| format!("{}: {e}", done.display()))
    }
}
