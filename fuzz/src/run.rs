//! Runs cases on all processors, catches what breaks, and counts.

use crate::case::{Failure, Outcome};
use crate::targets::Target;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Which cases to run.
#[derive(Clone, Copy)]
pub struct Plan {
    /// The first seed; those after it follow one by one.
    pub seed: u64,
    /// How many, if that is limited.
    pub count: Option<u64>,
    /// For how long, if that is limited.
    pub seconds: Option<u64>,
    /// Cases at the same time.
    pub jobs: usize,
}

/// A case that takes this long is asked to stop. Generous, because the machine may be busy with other things.
const STOP_AFTER: Duration = Duration::from_secs(60);
/// One that goes on nevertheless ends the run.
const GIVE_UP_AFTER: Duration = Duration::from_secs(120);
/// More memory than this was taken for no good reason.
const MOST_MEMORY: u64 = 3 << 30;

/// What a case is run with.
pub struct Bench {
    /// Set when the case has taken too long.
    pub stop: AtomicBool,
    running: Mutex<Option<(u64, Instant)>>,
}

/// What was counted.
#[derive(Default)]
struct Tally {
    facts: BTreeMap<String, u64>,
    cases: u64,
    failed: u64,
    slowest: (f64, u64),
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs the cases of a target; whether all went well. The last line is `N passed, M failed`.
pub fn all(target: &'static Target, plan: Plan) -> bool {
    remember_panics();
    let start = Instant::now();
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let benches: Vec<Arc<Bench>> = (0..plan.jobs).map(|_| Arc::new(Bench::new())).collect();
    let wanted = |index: u64| {
        plan.count.is_none_or(|count| index < count)
            && plan.seconds.is_none_or(|seconds| start.elapsed() < Duration::from_secs(seconds))
    };
    watch(target.name, &benches);
    std::thread::scope(|scope| {
        for bench in &benches {
            scope.spawn(|| {
                let pool = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
                    Ok(pool) => pool,
                    Err(error) => return report(target, plan.seed, &Failure(error.to_string()), &tally),
                };
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if !wanted(index) {
                        return;
                    }
                    let seed = plan.seed.wrapping_add(index);
                    let (outcome, seconds) = pool.install(|| one(target, seed, bench));
                    locked(&tally).count(seed, seconds, &outcome);
                    if let Err(failure) = outcome {
                        report(target, seed, &failure, &tally);
                    }
                }
            });
        }
    });
    let tally = locked(&tally);
    println!("{}: {} cases from seed {}, {:.0} s", target.name, tally.cases, plan.seed, start.elapsed().as_secs_f64());
    println!("  slowest: {:.2} s of processor time (seed {})", tally.slowest.0, tally.slowest.1);
    tally.facts.iter().for_each(|(fact, count)| println!("  {fact}: {count}"));
    println!("{} passed, {} failed", tally.cases - tally.failed.min(tally.cases), tally.failed);
    tally.failed == 0 && tally.cases > 0
}

/// Runs one case on this thread; how it ended, and the processor time it took.
fn one(target: &Target, seed: u64, bench: &Bench) -> (Outcome, f64) {
    bench.stop.store(false, Ordering::Relaxed);
    *locked(&bench.running) = Some((seed, Instant::now()));
    let (wall, begin) = (Instant::now(), processor_seconds());
    let found = catch_unwind(AssertUnwindSafe(|| (target.run)(seed, bench)));
    let seconds = begin.zip(processor_seconds()).map_or(wall.elapsed().as_secs_f64(), |(from, to)| to - from);
    *locked(&bench.running) = None;
    let outcome = found.unwrap_or_else(|payload| Err(Failure(format!("panic: {}", panic_text(&*payload)))));
    let outcome = outcome.and_then(|facts| match peak_memory() {
        Some(bytes) if bytes > MOST_MEMORY => {
            forget_peak_memory();
            Err(Failure(format!("{bytes} bytes of memory were taken, by it or by a case at the same time")))
        }
        _ if seconds > target.limit => Err(Failure(format!(
            "it took {seconds:.1} s of processor time, more than {} ({})",
            target.limit,
            facts.join(", ")
        ))),
        _ => Ok(facts),
    });
    (outcome, seconds)
}

impl Bench {
    fn new() -> Self {
        Self { stop: AtomicBool::new(false), running: Mutex::new(None) }
    }
}

impl Tally {
    fn count(&mut self, seed: u64, seconds: f64, outcome: &Outcome) {
        self.cases += 1;
        if seconds > self.slowest.0 {
            self.slowest = (seconds, seed);
        }
        for fact in outcome.as_ref().into_iter().flatten() {
            *self.facts.entry(fact.clone()).or_default() += 1;
        }
    }
}

fn report(target: &Target, seed: u64, failure: &Failure, tally: &Mutex<Tally>) {
    locked(tally).failed += 1;
    println!("FAILED {} --seed {seed}: {}", target.name, failure.0);
}

/// Asks cases to stop that take too long, and ends the run if one does not.
fn watch(name: &'static str, benches: &[Arc<Bench>]) {
    let benches = benches.to_vec();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(200));
            for bench in &benches {
                let Some((seed, since)) = *locked(&bench.running) else { continue };
                if since.elapsed() > STOP_AFTER {
                    bench.stop.store(true, Ordering::Relaxed);
                }
                if since.elapsed() > GIVE_UP_AFTER {
                    println!("FAILED {name} --seed {seed}: it does not end\n0 passed, 1 failed");
                    std::process::exit(1);
                }
            }
        }
    });
}

fn remember_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        PANIC.with(|slot| *slot.borrow_mut() = Some(place));
    }));
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into());
    text + &PANIC.with(|slot| slot.borrow_mut().take()).unwrap_or_default()
}

/// A panic elsewhere does not spoil what was counted.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processor time of this thread so far, where the system tells.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}

/// Begins the count of [`peak_memory`] anew; where the system does not let us, later cases are reported too.
fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The most memory this process has had since the last count, where the system tells.
fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
