//! How much memory there is, asked before much is taken: an allocation that fails cannot be turned into an error message.

use crate::{Advice, Error, Remedy, Result};
use bytemuck::Pod;
use memmap2::MmapMut;
use std::io::{self, Read};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

/// The memory for kernel rows if nobody says how much: a quarter of the machine's, or of what the process may have of
/// it; 2 GiB if the system does not say.
pub fn usual_budget() -> u64 {
    let known = [field("/proc/meminfo", "MemTotal:"), address_space(), container()];
    known.into_iter().flatten().min().map_or(2 << 30, |bytes| bytes / 4)
}

/// Bytes that can still be had, as far as the system says: free memory, and what limits of the process leave. Without
/// bound where the system does not say.
pub(crate) fn available() -> u64 {
    let used = |name: &str| field("/proc/self/status", name).unwrap_or(0);
    let address_space = address_space().map(|bytes| bytes.saturating_sub(used("VmSize:")));
    let container = container().map(|bytes| bytes.saturating_sub(used("VmRSS:")));
    let known = [field("/proc/meminfo", "MemAvailable:"), address_space, container];
    known.into_iter().flatten().min().unwrap_or(u64::MAX / 2)
}

/// What `ulimit -v` allows.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// What the container allows.
fn container() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    group_limit(Path::new("/sys/fs/cgroup"), &groups)
}

/// The least limit of the control groups that the process is in (`/proc/self/cgroup`) and of those above them: of version 2
/// (`0::/path`, `memory.max`) and of version 1 (`n:memory:/path`, `memory/…/memory.limit_in_bytes`). Inside a container the path may
/// be that of the host; the root then is the container's own group.
fn group_limit(root: &Path, groups: &str) -> Option<u64> {
    let read = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse().ok();
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (root, file) = match controllers {
            "" => (root.to_path_buf(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let group = root.join(path.trim_start_matches('/'));
        let above = group.ancestors().take_while(|above| above.starts_with(&root));
        above.filter_map(|above| read(above.join(file))).collect::<Vec<u64>>()
    });
    limits.min()
}

/// A field of a file of the system that is told in kilobytes, in bytes.
fn field(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes.saturating_mul(1024))
}

/// Sizes below this, 64 MiB, are not worth a look at the system, which is to read files.
const SMALL: u64 = 1 << 26;

/// Refuses work that needs more memory than can be had.
pub(crate) fn check(what: impl FnOnce() -> String, needed: u64, advice: impl Into<Advice>) -> Result<()> {
    if needed < SMALL {
        return Ok(());
    }
    let budget = available();
    if needed <= budget {
        return Ok(());
    }
    Err(Error::Memory { what: what(), needed, budget, advice: advice.into() })
}

/// Reads all there is, or says that there is more than memory can hold: what is packed may be without end.
pub(crate) fn read_to_end(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let step = bytes.len().clamp(1 << 20, 1 << 28);
        grow(&mut bytes, step)?;
        let read = reader.by_ref().take(step as u64).read_to_end(&mut bytes)?;
        if read == 0 {
            return Ok(bytes);
        }
    }
}

/// Makes room for so many bytes more, if there is any.
fn grow(bytes: &mut Vec<u8>, more: usize) -> io::Result<()> {
    let needed = (bytes.len() + more) as u64;
    if needed > SMALL && more as u64 > available() {
        let what = format!("more than {} bytes, which is all the memory there is", bytes.len());
        return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
    }
    bytes.try_reserve(more).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))
}

/// Zeros in the largest pages that the system has: to be given 4 GB costs 0.2 s of processor time in pages of 2 MB, 1.7 s in pages of
/// 4 KB, and products that go through them miss fewer addresses.
pub(crate) struct Zeros<T> {
    bytes: MmapMut,
    length: usize,
    number: PhantomData<T>,
}

impl<T: Pod> Zeros<T> {
    /// So many of them.
    pub fn new(length: usize) -> Result<Self> {
        let needed = (length * size_of::<T>()).max(1);
        let refused = |_| Error::Memory {
            what: format!("{length} numbers"),
            needed: needed as u64,
            budget: available(),
            advice: [Remedy::Lower("memory")].into(),
        };
        let bytes = MmapMut::map_anon(needed).map_err(refused)?;
        // A wish: where it is not granted, pages are small.
        #[cfg(target_os = "linux")]
        let _ = bytes.advise(memmap2::Advice::HugePage);
        Ok(Self { bytes, length, number: PhantomData })
    }
}

impl<T: Pod> Deref for Zeros<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        bytemuck::cast_slice(&self.bytes[..self.length * size_of::<T>()])
    }
}

impl<T: Pod> DerefMut for Zeros<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.bytes[..self.length * size_of::<T>()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_containers_are_found() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let limit = |groups: &str| group_limit(root.path(), groups);
        assert_eq!(limit("0::/\n"), None);
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), None);
        write("a/memory.max", "4096\n");
        assert_eq!(limit("0::/a/b\n"), Some(4096), "that of a group above");
        write("a/b/memory.max", "1024\n");
        assert_eq!(limit("0::/a/b\n"), Some(1024));
        write("memory.max", "512\n");
        assert_eq!(limit("0::/of/the/host\n"), Some(512), "the root is the container's own");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/x/memory.limit_in_bytes", "256\n");
        assert_eq!(limit("5:cpu,memory:/x\n3:pids:/x\n"), Some(256), "version 1");
        assert_eq!(limit("3:pids:/x\n"), None);
    }

    #[test]
    fn zeros_are_zero_until_something_else_is_written() {
        let mut zeros = Zeros::<f64>::new(100_000).unwrap();
        assert!(zeros.len() == 100_000 && zeros.iter().all(|value| *value == 0.0));
        zeros[99_999] = 3.5;
        assert_eq!(zeros.iter().sum::<f64>(), 3.5);
        assert!(Zeros::<u16>::new(0).unwrap().is_empty());
    }

    #[test]
    fn what_does_not_fit_is_told() {
        assert!(check(|| "little".into(), 1000, "").is_ok());
        let error = check(|| "much".into(), u64::MAX, "take less").unwrap_err().to_string();
        assert!(error.starts_with("much needs") && error.ends_with("take less"), "{error}");
        assert_eq!(read_to_end(&mut &b"abc"[..]).unwrap(), b"abc");
        let long = vec![7; (1 << 20) + 5];
        assert_eq!(read_to_end(&mut long.as_slice()).unwrap(), long);
        #[cfg(target_os = "linux")]
        assert!(available() < u64::MAX / 2 && usual_budget() > 0);
    }
}
