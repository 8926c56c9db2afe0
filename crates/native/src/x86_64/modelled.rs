//! The miss rate of the last-level cache according to a model, for computers that do not count
//! misses. It is no measurement and is never shown as one.
//!
//! The model is one set-associative cache with true LRU replacement. It sees the accesses that the
//! first level lets through: for each of the two streams, the log and the array, the first touch
//! of a line, and the next touch after a flush that drops the line. Stores past the caches drop the
//! line and are no reference. There is no second level, no prefetcher and no other program.

use super::instructions::LINE;
use super::loops::stride;
use crate::Watch;
use crate::words::{Array, Variant};

/// The ways of the modelled cache (ours: 16, as most last-level caches of the last years have; for
/// two cyclic streams only its size matters).
const WAYS: usize = 16;

/// The groups after which the model looks whether the user wants an end (ours: a millisecond).
const GROUPS_PER_LOOK: usize = 4096;

/// The model, which remembers its earlier answers.
#[derive(Default)]
pub struct Model {
    known: Vec<(Question, f64)>,
}

/// The inputs on which an answer depends: the paths of the lines, and the sizes.
type Question = (bool, bool, bool, usize, usize, (usize, usize), u64);

impl Model {
    /// Returns the share of references that miss, after two passes over the array; nothing if the
    /// user asked for an end before that was known.
    pub fn miss_rate(
        &mut self,
        variant: Variant,
        array: Array,
        entries: usize,
        sizes: (usize, usize),
        cache: u64,
        watch: Watch<'_>,
    ) -> Option<f64> {
        let (past, drops) = (variant.is_past_caches(), drops_lines(variant));
        let drops_array = drops && array == Array::Flushed;
        let question = (past, drops, drops_array, stride(variant, entries), entries, sizes, cache);
        if let Some((_, rate)) = self.known.iter().find(|(known, _)| *known == question) {
            return Some(*rate);
        }
        let rate = miss_rate(variant, array, entries, sizes, cache, watch)?;
        self.known.push((question, rate));
        Some(rate)
    }
}

fn drops_lines(variant: Variant) -> bool {
    matches!(variant, Variant::ClflushOpt | Variant::Clflush)
}

fn miss_rate(
    variant: Variant,
    array: Array,
    entries: usize,
    (array_bytes, log): (usize, usize),
    cache_bytes: u64,
    watch: Watch<'_>,
) -> Option<f64> {
    let mut cache = Cache::new(cache_bytes as usize);
    let stride = stride(variant, entries);
    let groups = array_bytes / 4 / entries;
    // The log is behind the array.
    let log_start = array_bytes.next_multiple_of(LINE);
    let mut at = 0;
    for pass in 0..3 {
        if pass == 2 {
            (cache.references, cache.misses) = (0, 0);
        }
        for group in 0..groups {
            if group.is_multiple_of(GROUPS_PER_LOOK) && watch.is_cancelled() {
                return None;
            }
            for byte in (at..at + stride).step_by(LINE) {
                let line = (log_start + byte) / LINE;
                if variant.is_past_caches() {
                    cache.forget(line);
                    continue;
                }
                cache.touch(line, 1);
                if drops_lines(variant) {
                    cache.forget(line);
                }
            }
            let line = group * entries * 4 / LINE;
            cache.touch(line, 0);
            if array == Array::Flushed && drops_lines(variant) {
                cache.forget(line);
            }
            at = (at + stride) % log;
        }
    }
    Some(cache.misses as f64 / cache.references.max(1) as f64)
}

/// A cache of line numbers, most recent first in each set.
struct Cache {
    sets: Vec<Vec<usize>>,
    /// The line that each stream touched last, which the first level holds.
    last: [Option<usize>; 2],
    references: u64,
    misses: u64,
}

impl Cache {
    fn new(bytes: usize) -> Cache {
        let sets = (bytes / LINE / WAYS).max(1);
        Cache { sets: vec![Vec::new(); sets], last: [None; 2], references: 0, misses: 0 }
    }

    fn touch(&mut self, line: usize, stream: usize) {
        if self.last[stream] == Some(line) {
            return;
        }
        self.last[stream] = Some(line);
        self.references += 1;
        let sets = self.sets.len();
        let set = &mut self.sets[line % sets];
        match set.iter().position(|&held| held == line) {
            Some(way) => set[..=way].rotate_right(1),
            None => {
                self.misses += 1;
                set.insert(0, line);
                set.truncate(WAYS);
            }
        }
    }

    fn forget(&mut self, line: usize) {
        let sets = self.sets.len();
        self.sets[line % sets].retain(|&held| held != line);
        for last in &mut self.last {
            if *last == Some(line) {
                *last = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;

    const MIB: usize = 1 << 20;

    fn modelled(
        variant: Variant,
        array: Array,
        entries: usize,
        sizes: (usize, usize),
        cache: usize,
        cancelled: bool,
    ) -> Option<f64> {
        let (cancelled, nothing) = (AtomicBool::new(cancelled), AtomicU64::new(0));
        let watch = Watch { cancelled: &cancelled, done: &nothing, total: &nothing };
        Model::default().miss_rate(variant, array, entries, sizes, cache as u64, watch)
    }

    /// The paper's Figure 2: an array that fills the last level, and a log of twice its size.
    #[test]
    fn a_cached_log_drives_the_array_out_and_one_past_the_caches_does_not() {
        let sizes = (MIB, 2 * MIB);
        let rate = |variant| {
            modelled(variant, Array::Cached, 1, sizes, MIB, false).expect("nobody ends it")
        };
        assert!(rate(Variant::Cached) > 0.99);
        assert!(rate(Variant::Movnti4) < 0.01);
        assert!(rate(Variant::ClflushOpt) > 0.5);
    }

    #[test]
    fn what_fits_does_not_miss() {
        let rate = |variant, array, entries, log| {
            modelled(variant, array, entries, (MIB, log), 4 * MIB, false).expect("nobody ends it")
        };
        assert!(rate(Variant::Cached, Array::Cached, 8, 2 * MIB) < 0.01);
        assert!(rate(Variant::Cached, Array::Cached, 1, 128 << 10) < 0.01);
        // Unless lines are dropped: the log's at each entry, and the array's if it is flushed.
        assert!(rate(Variant::Clflush, Array::Cached, 1, MIB) < 0.95);
        assert!(rate(Variant::Clflush, Array::Flushed, 1, MIB) > 0.99);
        assert!(rate(Variant::Clwb, Array::Flushed, 1, MIB) < 0.01);
    }

    #[test]
    fn an_end_is_no_rate() {
        let sizes = (MIB, 2 * MIB);
        assert_eq!(modelled(Variant::Cached, Array::Cached, 1, sizes, MIB, true), None);
    }
}
