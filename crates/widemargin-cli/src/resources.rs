//! What this process has used so far, as the system tells it: on Linux; elsewhere nothing is known.

use serde::{Serialize, Serializer};
use std::fs;
use std::time::Instant;

/// Seconds by what they were spent on, and processor seconds where the system tells them.
pub struct Clock {
    seconds: Laps<f64>,
    processor: Laps<Option<f64>>,
    started: Instant,
    used: Option<f64>,
}

impl Clock {
    /// Starts to run.
    pub fn start() -> Self {
        Self {
            seconds: Laps(Vec::new()),
            processor: Laps(Vec::new()),
            started: Instant::now(),
            used: processor_seconds(),
        }
    }

    /// What was done since the start or the last lap; laps of one name are added.
    pub fn lap(&mut self, name: &'static str) {
        let (now, used) = (Instant::now(), processor_seconds());
        let seconds = (now - self.started).as_secs_f64();
        let processor = used.zip(self.used).map(|(after, before)| after - before);
        match self.seconds.0.iter().position(|(lap, _)| *lap == name) {
            Some(at) => {
                self.seconds.0[at].1 += seconds;
                let before = &mut self.processor.0[at].1;
                *before = before.zip(processor).map(|(before, more)| before + more);
            }
            None => {
                self.seconds.0.push((name, seconds));
                self.processor.0.push((name, processor));
            }
        }
        (self.started, self.used) = (now, used);
    }

    /// Of the last lap, all but its first so many seconds were spent on something else.
    pub fn split(&mut self, seconds: f64, rest: &'static str) {
        if let Some((_, last)) = self.seconds.0.last_mut() {
            let left = *last - seconds;
            *last = seconds;
            self.seconds.0.push((rest, left));
        }
    }

    /// Seconds of each lap.
    pub fn seconds(&self) -> &Laps<f64> {
        &self.seconds
    }

    /// Processor seconds of each lap.
    pub fn processor(&self) -> &Laps<Option<f64>> {
        &self.processor
    }
}

/// Figures by name, in order; an object in JSON.
#[derive(Clone)]
pub struct Laps<T>(Vec<(&'static str, T)>);

impl Laps<f64> {
    /// The figure of this name; 0 if there is none.
    pub fn of(&self, name: &str) -> f64 {
        self.0.iter().find(|(lap, _)| *lap == name).map_or(0.0, |(_, figure)| *figure)
    }
}

impl<T: Serialize> Serialize for Laps<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, figure)| (name, figure)))
    }
}

/// Processor seconds of all running threads together.
fn processor_seconds() -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_are_told_in_order() {
        let mut clock = Clock::start();
        clock.lap("read");
        clock.lap("search");
        clock.split(0.0, "train");
        let text = serde_json::to_string(clock.seconds()).unwrap();
        let places = ["read", "search", "train"].map(|name| text.find(name).unwrap());
        assert!(places.is_sorted() && clock.seconds().of("search") == 0.0 && clock.seconds().of("train") >= 0.0);
        let processor = serde_json::to_value(clock.processor()).unwrap();
        assert_eq!(processor.as_object().unwrap().len(), 2);
    }
}
