//! The computer on which this runs: its clock, its processors, and the time that a hypervisor
//! took away.

use std::arch::x86_64::{__rdtscp, _mm_lfence, _rdtsc};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::Pid;

/// Reads the time stamp counter, after all earlier instructions have been executed and before any
/// later one is.
#[inline(always)]
pub fn begin() -> u64 {
    // SAFETY: every x86-64 processor has these.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Does the same at the end of a measurement: `rdtscp` waits for the earlier instructions.
#[inline(always)]
pub fn end() -> u64 {
    let mut processor = 0;
    // SAFETY: every measurement first checks for `rdtscp` (`Features::rdtscp`).
    unsafe {
        let now = __rdtscp(&mut processor);
        _mm_lfence();
        now
    }
}

/// Returns the counter's ticks in a second, by the system's clock.
pub fn ticks_per_second() -> f64 {
    let (clock, first) = (Instant::now(), begin());
    while clock.elapsed() < Duration::from_millis(50) {
        std::hint::spin_loop();
    }
    let (seconds, last) = (clock.elapsed().as_secs_f64(), end());
    (last - first) as f64 / seconds
}

/// Returns the processors that this process may use, the highest numbers first, since processors
/// with low numbers handle the interrupts.
pub fn processors() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return vec![0] };
    (0..CpuSet::count()).rev().filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).collect()
}

/// Keeps the calling thread on one processor.
///
/// # Errors
/// Why the system does not allow it.
pub fn pin(processor: usize) -> Result<(), String> {
    let mut only = CpuSet::new();
    only.set(processor)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &only))
        .map_err(|error| format!("not pinned to processor {processor}: {}", error.desc()))
}

/// Returns how often the system has preempted the calling thread; 0 if it does not say.
pub fn preemptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}

/// The time that the hypervisor gave to other machines, and all time, over all processors, in ticks
/// of the system.
#[derive(Clone, Copy, Debug)]
pub struct Stolen {
    stolen: u64,
    all: u64,
}

impl Stolen {
    /// Returns the times up to now; `None` if the system does not say.
    pub fn now() -> Option<Stolen> {
        Stolen::read(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn read(text: &str) -> Option<Stolen> {
        let numbers: Vec<u64> = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace()
            .map_while(|number| number.parse().ok())
            .collect();
        // Columns: user nice system idle iowait irq softirq steal; guests are in the first.
        Some(Stolen { stolen: *numbers.get(7)?, all: numbers[..8].iter().sum() })
    }

    /// Returns the percentage of the time since `before` that was stolen.
    pub fn percent_since(self, before: Stolen) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let stolen = self.stolen.saturating_sub(before.stolen);
        if all == 0 { 0.0 } else { 100.0 * stolen as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_goes_on() {
        let first = begin();
        assert!(end() > first);
        assert!(ticks_per_second() > 1e8);
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let processor = processors()[0];
        std::thread::spawn(move || {
            pin(processor).expect("a processor that we may use");
            assert_eq!(processors(), [processor]);
        })
        .join()
        .expect("pinned");
        assert!(pin(CpuSet::count()).expect_err("no such processor").contains("not pinned"));
    }

    #[test]
    fn stolen_time_is_the_eighth_number() {
        let before = Stolen::read("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1").expect("numbers");
        let after = Stolen::read("cpu  20 0 20 120 0 0 0 40 5 0").expect("numbers");
        assert!((after.percent_since(before) - 30.0).abs() < 1e-9);
        assert!(Stolen::read("cpu 1 2 3").is_none());
    }
}
