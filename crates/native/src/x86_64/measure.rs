//! Measuring a cell: threads that stay on their processors, memory that is there, runs that are
//! long enough, and what twenty of them have in common.

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::counters::{Counted, Counters};
use super::features::Features;
use super::host::{self, Stolen};
use super::instructions::SourceState;
use super::loops::{self, Loop, OwnLine, Walk};
use super::memory::Region;
use super::plan::Cell;
use crate::Watch;

/// Runs of a cell, as published.
pub const RUNS: usize = 20;
/// Entries of a run, at least: a few thousand instructions beside which reading the time is
/// nothing.
const ENTRIES_LEAST: usize = 4096;
/// Entries between two looks at whether the user wants an end: at 2,000 cycles an entry, a
/// twentieth of a second.
const CHUNK: usize = 1 << 16;
/// Entries by which the length of a run is chosen, and how often that is tried.
const TRIAL: usize = 2048;
const TRIALS: usize = 3;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Ticks that a run may take.
    pub ticks: f64,
    /// Whether a run is a pass over the array, whatever it takes.
    pub whole: bool,
    /// The seed of the values.
    pub seed: u64,
}

/// What was measured of a cell.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Ticks for an entry, of each run; of several threads the slowest.
    pub runs: Vec<f64>,
    /// Entries of each thread in a run.
    pub entries: usize,
    /// What the first thread's processor counted.
    pub counted: Counted,
    /// Entries that it was counted over.
    pub counted_entries: u64,
    /// Ticks for each line when the first thread's array is read after the last run.
    pub reread: f64,
    /// Percent of all processors' time that was stolen.
    pub stolen: Option<f64>,
    /// Bytes of the first thread's memory in huge pages, and all of them.
    pub huge: Option<(usize, usize)>,
    /// What did not go as it should, in sentences.
    pub notes: Vec<String>,
}

/// Measures a cell; nothing if the user asked for an end.
///
/// # Errors
/// When there is no memory for it.
pub fn cell(
    cell: &Cell,
    effort: Effort,
    processors: &[usize],
    features: &Features,
    watch: Watch<'_>,
) -> io::Result<Option<Measured>> {
    let barrier = Barrier::new(cell.threads);
    let entries = AtomicU64::new(0);
    let (failed, vendor) = (AtomicBool::new(false), &features.vendor);
    let shared = Shared {
        cell,
        effort,
        vendor,
        watch,
        barrier: &barrier,
        failed: &failed,
        entries: &entries,
    };
    let before = Stolen::now();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..cell.threads)
            .map(|number| {
                let processor = processors[number % processors.len()];
                scope.spawn(move || shared.thread(number, processor))
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().expect("a thread that measures")).collect()
    });
    let stolen = before.zip(Stolen::now()).map(|(before, after)| after.percent_since(before));
    let threads = threads.into_iter().collect::<io::Result<Vec<_>>>()?;
    // What was cut short says nothing.
    if threads.iter().any(|thread| thread.runs.len() < RUNS) {
        return Ok(None);
    }
    let slowest = |run: usize| threads.iter().map(|thread| thread.runs[run]).fold(0.0, f64::max);
    let first = &threads[0];
    Ok(Some(Measured {
        runs: (0..RUNS).map(slowest).collect(),
        entries: entries.load(Ordering::Relaxed) as usize,
        counted: first.counted,
        counted_entries: entries.load(Ordering::Relaxed) * RUNS as u64,
        reread: first.reread,
        stolen,
        huge: first.huge,
        notes: threads.iter().flat_map(|thread| thread.notes.clone()).collect(),
    }))
}

/// What the threads of a cell have in common.
#[derive(Clone, Copy)]
struct Shared<'a> {
    cell: &'a Cell,
    effort: Effort,
    vendor: &'a str,
    watch: Watch<'a>,
    barrier: &'a Barrier,
    /// Whether a thread has no memory.
    failed: &'a AtomicBool,
    /// Entries of a run, which the first thread chooses.
    entries: &'a AtomicU64,
}

/// What one thread measured.
struct OfThread {
    runs: Vec<f64>,
    counted: Counted,
    reread: f64,
    huge: Option<(usize, usize)>,
    notes: Vec<String>,
}

impl Shared<'_> {
    fn thread(&self, number: usize, processor: usize) -> io::Result<OfThread> {
        let mut notes: Vec<String> = host::pin(processor).err().into_iter().collect();
        let memory = Memory::of(self.cell);
        if memory.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        self.barrier.wait();
        let mut memory = memory?;
        // One that goes on alone would wait for the others for ever.
        if self.failed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let body = loops::select(self.cell.kind);
        let mut walk = memory.walk(self.cell, self.effort.seed + number as u64);
        if number == 0 {
            let entries = self.entries_of_a_run(body, &mut walk);
            self.entries.store(entries as u64, Ordering::Relaxed);
        }
        self.barrier.wait();
        let entries = self.entries.load(Ordering::Relaxed) as usize;
        let mut counters = Counters::open(self.vendor);
        notes.extend(counters.complaint().map(|why| format!("counters: {why}")));
        let mut runs = Vec::new();
        // One more run than is kept: the first one finds the caches as the memory was touched.
        for run in 0..=RUNS {
            self.barrier.wait();
            let cancelled = self.watch.is_cancelled();
            // All threads see the same before any of them goes on.
            self.barrier.wait();
            if cancelled {
                break;
            }
            counters.count(run > 0);
            let ticks = self.run(body, &mut walk, entries);
            counters.count(false);
            match ticks {
                Some(ticks) if run > 0 => runs.push(ticks as f64 / entries as f64),
                Some(_) => (),
                None => runs.clear(),
            }
        }
        let reread = reread(&mut memory);
        let huge = memory.huge();
        Ok(OfThread { runs, counted: counters.read(), reread, huge, notes })
    }

    /// As many entries as the time allows, but no more than a pass over the array.
    fn entries_of_a_run(&self, body: Loop, walk: &mut Walk) -> usize {
        let pass = self.cell.array_bytes / 4;
        if self.effort.whole {
            return pass;
        }
        // The best of a few: one may have been interrupted.
        let trials = (0..TRIALS).filter_map(|_| self.run(body, walk, TRIAL));
        let ticks = trials.min().unwrap_or(u64::MAX).max(1);
        let fit = self.effort.ticks / (ticks as f64 / TRIAL as f64);
        (fit as usize).clamp(ENTRIES_LEAST, pass) / 16 * 16
    }

    /// Ticks of so many entries; nothing if the user asked for an end.
    fn run(&self, body: Loop, walk: &mut Walk, entries: usize) -> Option<u64> {
        let (mut left, mut ticks) = (entries, 0);
        while left > 0 {
            if self.watch.is_cancelled() {
                return None;
            }
            let chunk = left.min(CHUNK);
            let groups = chunk / self.cell.kind.entries;
            let start = host::begin();
            // SAFETY: `Memory` made the walk for this cell, and whoever planned it asked the
            // processor for the instructions.
            unsafe { body(walk, groups) };
            ticks += host::end() - start;
            left -= chunk;
        }
        Some(ticks)
    }
}

/// The memory of one thread.
struct Memory {
    array: Region,
    log: Region,
}

impl Memory {
    fn of(cell: &Cell) -> io::Result<Memory> {
        Ok(Memory { array: Region::new(cell.array_bytes)?, log: Region::new(cell.log_bytes())? })
    }

    fn walk(&mut self, cell: &Cell, seed: u64) -> Walk {
        let stride = loops::stride(cell.kind.variant, cell.kind.entries);
        assert!(self.array.bytes().is_multiple_of(16 * 4), "an array is whole groups");
        assert!(self.log.bytes().is_multiple_of(stride), "a log is whole groups");
        Walk {
            array: self.array.address().cast(),
            items: self.array.bytes() / 4,
            log: self.log.address(),
            log_bytes: self.log.bytes(),
            index: 0,
            at: 0,
            source: SourceState::new(seed),
            own: Box::new(OwnLine::default()),
        }
    }

    fn huge(&self) -> Option<(usize, usize)> {
        let huge = self.array.huge_bytes()? + self.log.huge_bytes()?;
        let all = self.array.bytes() + self.log.bytes();
        Some((huge.min(all), all))
    }
}

/// Ticks for each line of the array when it is read in order: few if the log left it in the
/// caches.
fn reread(memory: &mut Memory) -> f64 {
    let lines = memory.array.bytes() / 64;
    let first = memory.array.address();
    let mut sum = 0_u64;
    let start = host::begin();
    for line in 0..lines {
        // SAFETY: the line lies in the region.
        sum = sum.wrapping_add(unsafe { first.add(line * 64).cast::<u64>().read_volatile() });
    }
    let ticks = host::end() - start;
    std::hint::black_box(sum);
    ticks as f64 / lines as f64
}

/// The middle of some numbers, the least, and the standard deviation over the mean.
pub fn statistics(numbers: &[f64]) -> (f64, f64, f64) {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    };
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|number| (number - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
    (median, sorted[0], deviation / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_textbook() {
        let (median, least, cv) = statistics(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!((median, least), (4.5, 2.0));
        assert!((cv - 2.138_089_935 / 5.0).abs() < 1e-6);
        assert_eq!(statistics(&[3.0]), (3.0, 3.0, 0.0));
    }
}
