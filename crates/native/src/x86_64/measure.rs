//! Measuring a cell: threads that are pinned to processors, memory that was touched before, runs
//! that are long enough, and the statistics of twenty of them.

use std::io;
use std::panic::resume_unwind;
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
/// The least entries of a run: a few thousand instructions, beside which the time to read the clock
/// is negligible.
const ENTRIES_LEAST: usize = 4096;
/// The ticks of a piece of a run (ours: half a millisecond or less, a part of a thread's time slice
/// in the system). Between two pieces the thread checks whether it was interrupted, and whether the
/// user wants an end.
const PIECE_TICKS: f64 = 1e6;
/// The multiple of its time after which a run is cut short, because the computer is busy.
const LATE: f64 = 2.0;
/// The least entries of a piece.
const PIECE_LEAST: usize = 512;
/// The entries of a trial by which the length of runs is chosen, and the number of trials.
const TRIAL: usize = 2048;
const TRIALS: usize = 3;

/// The amount of work to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The ticks that a run may take.
    pub ticks: f64,
    /// Whether a run is a pass over the array, however long that takes.
    pub whole: bool,
    /// The seed of the values.
    pub seed: u64,
}

/// The measurements of a cell.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The ticks for an entry in each run, of the slowest thread.
    pub runs: Vec<f64>,
    /// The entries of the first thread that counted in a run, on average.
    pub entries: u64,
    /// The percentage of the first thread's time in interrupted pieces, which do not count.
    pub interrupted: f64,
    /// The counts of the first thread.
    pub counted: Counted,
    /// The entries over which these were counted.
    pub counted_entries: u64,
    /// The ticks for each line when the first thread's array is read after the last run.
    pub reread: f64,
    /// The percentage of all processors' time that was stolen.
    pub stolen: Option<f64>,
    /// The bytes of the first thread's memory in huge pages, and all its bytes.
    pub huge: Option<(usize, usize)>,
    /// The problems, in sentences.
    pub notes: Vec<String>,
}

/// Measures a cell; `None` if the user asked for an end.
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
    // A thread that found this out would leave the others waiting for it for ever.
    let stride = loops::stride(cell.kind.variant, cell.kind.entries);
    assert!(cell.array_bytes.is_multiple_of(16 * 4), "an array is whole groups");
    assert!(cell.log_bytes().is_multiple_of(stride), "a log is whole groups");
    let barrier = Barrier::new(cell.threads);
    let (entries, piece) = (AtomicU64::new(0), AtomicU64::new(0));
    let (failed, cancelled) = (AtomicBool::new(false), AtomicBool::new(false));
    let shared = Shared {
        cell,
        effort,
        vendor: &features.vendor,
        watch,
        barrier: &barrier,
        failed: &failed,
        cancelled: &cancelled,
        entries: &entries,
        piece: &piece,
    };
    let before = Stolen::now();
    let threads: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..cell.threads)
            .map(|number| {
                let processor = processors[number % processors.len()];
                scope.spawn(move || shared.thread(number, processor))
            })
            .collect();
        let ends = handles.into_iter().map(|handle| handle.join());
        ends.map(|end| end.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let stolen = before.zip(Stolen::now()).map(|(before, after)| after.percent_since(before));
    let threads = threads.into_iter().collect::<io::Result<Vec<_>>>()?;
    // A cell that was cut short has no result.
    if threads.iter().any(|thread| thread.runs.len() < RUNS) {
        return Ok(None);
    }
    let slowest =
        |run: usize| threads.iter().map(|thread| thread.runs[run].each()).fold(0.0, f64::max);
    let first = &threads[0];
    let sum = |part: fn(&Run) -> u64| first.runs.iter().map(part).sum::<u64>();
    let (counted, lost) = (sum(|run| run.ticks), sum(|run| run.lost));
    Ok(Some(Measured {
        runs: (0..RUNS).map(slowest).collect(),
        entries: sum(|run| run.entries) / RUNS as u64,
        interrupted: 100.0 * lost as f64 / (counted + lost) as f64,
        counted: first.counted,
        counted_entries: sum(|run| run.executed),
        reread: first.reread,
        stolen,
        huge: first.huge,
        notes: threads.iter().flat_map(|thread| thread.notes.clone()).collect(),
    }))
}

/// The data that the threads of a cell share.
#[derive(Clone, Copy)]
struct Shared<'a> {
    cell: &'a Cell,
    effort: Effort,
    vendor: &'a str,
    watch: Watch<'a>,
    barrier: &'a Barrier,
    /// Whether a thread has no memory.
    failed: &'a AtomicBool,
    /// Whether the user asked for an end, with the same answer for all threads.
    cancelled: &'a AtomicBool,
    /// The entries of a run and of a piece, which the first thread chooses.
    entries: &'a AtomicU64,
    piece: &'a AtomicU64,
}

/// One run of one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// The ticks of the pieces in which the thread was not interrupted, and their entries.
    ticks: u64,
    entries: u64,
    /// The ticks of the other pieces.
    lost: u64,
    /// The entries of all pieces.
    executed: u64,
}

impl Run {
    fn each(&self) -> f64 {
        self.ticks as f64 / self.entries as f64
    }
}

/// The measurements of one thread.
struct OfThread {
    runs: Vec<Run>,
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
        // A thread that went on alone would wait for the others for ever.
        if self.failed.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let body = loops::select(self.cell.kind);
        let mut walk = memory.walk(self.effort.seed.wrapping_add(number as u64));
        if number == 0 {
            let (entries, piece) = self.lengths(body, &mut walk);
            self.entries.store(entries as u64, Ordering::Relaxed);
            self.piece.store(piece as u64, Ordering::Relaxed);
        }
        self.barrier.wait();
        let entries = self.entries.load(Ordering::Relaxed) as usize;
        let piece = self.piece.load(Ordering::Relaxed) as usize;
        let mut counters = Counters::open(self.vendor);
        notes.extend(counters.complaint().map(|why| format!("counters: {why}")));
        let mut runs = Vec::new();
        // One run more than is kept, because the first finds the caches as touching the memory has
        // left them.
        for run in 0..=RUNS {
            // One thread asks for all: two might get different answers, and a thread that went on
            // alone would wait for the others for ever.
            if self.barrier.wait().is_leader() {
                self.cancelled.store(self.watch.is_cancelled(), Ordering::Relaxed);
            }
            self.barrier.wait();
            if self.cancelled.load(Ordering::Relaxed) {
                break;
            }
            counters.count(run > 0);
            let done = self.run(body, &mut walk, entries, piece);
            counters.count(false);
            match done {
                Some(done) if run > 0 => runs.push(done),
                Some(_) => (),
                None => runs.clear(),
            }
        }
        let reread = reread(&mut memory);
        let huge = memory.huge();
        Ok(OfThread { runs, counted: counters.read(), reread, huge, notes })
    }

    /// Returns the entries of a run (as many as the time allows, but at most a pass over the
    /// array), and those of a piece of it.
    fn lengths(&self, body: Loop, walk: &mut Walk) -> (usize, usize) {
        // The best of a few trials, since one may have been interrupted.
        let trials = (0..TRIALS).filter_map(|_| self.run(body, walk, TRIAL, TRIAL));
        let each = trials.map(|run| run.each()).fold(f64::INFINITY, f64::min);
        let pass = self.cell.array_bytes / 4;
        let fit = |ticks: f64, least: usize| ((ticks / each) as usize).clamp(least, pass) / 16 * 16;
        let entries = if self.effort.whole { pass } else { fit(self.effort.ticks, ENTRIES_LEAST) };
        (entries, fit(PIECE_TICKS, PIECE_LEAST))
    }

    /// Does so many entries, piece by piece; `None` if the user asked for an end.
    fn run(&self, body: Loop, walk: &mut Walk, entries: usize, piece: usize) -> Option<Run> {
        let (mut left, mut run) = (entries, Run::default());
        let first = host::begin();
        // At least one piece must count, however busy the computer is.
        while left > 0 || run.entries == 0 {
            if self.watch.is_cancelled() {
                return None;
            }
            let count = if left > 0 { left.min(piece) } else { piece };
            let preemptions = host::preemptions();
            let start = host::begin();
            // SAFETY: `Memory` made the walk for this cell, and the plan has only cells whose
            // instructions the processor has.
            unsafe { body(walk, count / self.cell.kind.entries) };
            let ticks = host::end() - start;
            run.executed += count as u64;
            if host::preemptions() == preemptions {
                run.ticks += ticks;
                run.entries += count as u64;
            } else {
                run.lost += ticks;
            }
            left -= count.min(left);
            let late = (host::end() - first) as f64 > LATE * self.effort.ticks;
            if late && !self.effort.whole && run.entries > 0 {
                break;
            }
        }
        Some(run)
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

    fn walk(&mut self, seed: u64) -> Walk {
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

/// Returns the ticks for each line of the array when it is read in order, which are few if the log
/// left the array in the caches.
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

/// Returns the median of some numbers, the least, and the standard deviation over the mean.
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
