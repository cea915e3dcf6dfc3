//! A Python environment of our own, `target/venv`.

use crate::run::{Run, root};
use std::path::{Path, PathBuf};

/// The environment.
pub struct Venv(PathBuf);

impl Venv {
    /// Opens it, and makes it first if it is not there. `Err` says why there is none.
    pub fn open() -> Result<Self, String> {
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

    /// Installs what a file of requirements lists, one by one, and says which of them cannot be had: the others are still
    /// of use. A line `# with: PACKAGES` above a requirement names what it needs in the environment to be built.
    pub fn install_each(&self, requirements: &Path) -> Result<(), String> {
        let wanted = std::fs::read_to_string(requirements).map_err(|e| format!("{}: {e}", requirements.display()))?;
        let mut tools = None;
        for line in wanted.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(packages) = line.strip_prefix("# with: ") {
                tools = Some(packages);
            } else if let Err(why) = self.install_one(line, tools.take()) {
                println!("{line} cannot be installed: {why}");
            }
        }
        Ok(())
    }

    fn install_one(&self, package: &str, tools: Option<&str>) -> Result<(), String> {
        let done = self.0.join(format!("installed-{}.txt", package.replace(['<', '>', '='], "-")));
        if done.exists() {
            return Ok(());
        }
        println!("installing {package}");
        let pip = |words: &str| {
            let pip = self.python().arg("-m").arg("pip").arg("install").arg("--quiet");
            words.split(' ').fold(pip, |pip, word| pip.arg(word)).output().map(drop)
        };
        if let Some(tools) = tools {
            pip(tools)?;
            pip(&format!("--no-build-isolation {package}"))?;
        } else {
            pip(package)?;
        }
        std::fs::write(&done, "").map_err(|e| format!("{}: {e}", done.display()))
    }
}
