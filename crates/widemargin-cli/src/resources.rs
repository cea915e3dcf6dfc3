//! What this process has used so far, as the system tells it: on Linux; elsewhere nothing is known.

use std::fs;

/// Processor seconds of all running threads together.
pub fn processor_seconds() -> Option<f64> {
    let mut nanoseconds = 0u64;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end while we look.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else { continue };
        nanoseconds += text.split(' ').next()?.parse::<u64>().ok()?;
    }
    Some(nanoseconds as f64 * 1e-9)
}

/// The most memory held at any time, in bytes.
pub fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Processor seconds between two readings.
pub fn between(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    Some(after? - before?)
}
