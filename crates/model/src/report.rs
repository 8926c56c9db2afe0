//! What a run counted, as plain numbers.

use hdrhistogram::Histogram;

use crate::caches::Found;
use crate::epochs::Totals;
use crate::meters::{Meters, Stall};
use crate::units::{Line, Page, Word};
use crate::usage::Usage;

/// Sizes of what transactions wrote.
#[derive(Clone, Debug, Default)]
pub struct WriteSets {
    /// Transactions counted.
    pub transactions: u64,
    /// Distinct words written, over all transactions.
    pub words: u64,
    /// The most distinct words of one transaction.
    pub words_max: u64,
    /// Stores, over all transactions.
    pub stores: u64,
    /// Distinct lines written, over all transactions.
    pub lines: u64,
    /// The most lines of one transaction.
    pub lines_max: u64,
    /// Distinct 4 KiB pages written, over all transactions.
    pub pages: u64,
    /// The most pages of one transaction.
    pub pages_max: u64,
}

impl WriteSets {
    /// Counts one transaction's stores, and empties `words`.
    pub fn count(&mut self, words: &mut Vec<Word>) {
        self.transactions += 1;
        self.stores += words.len() as u64;
        words.sort_unstable();
        let (mut distinct, mut lines, mut pages) = (0, 0, 0);
        // The first word is compared with one that shares no line and no page with it.
        let mut last = words.first().map_or(Word(0), |word| Word(!word.0));
        for &word in words.iter() {
            distinct += u64::from(word != last);
            lines += u64::from(word.line() != last.line());
            pages += u64::from(Page::of(word.line()) != Page::of(last.line()));
            last = word;
        }
        self.words += distinct;
        self.words_max = self.words_max.max(distinct);
        self.lines += lines;
        self.lines_max = self.lines_max.max(lines);
        self.pages += pages;
        self.pages_max = self.pages_max.max(pages);
        words.clear();
    }
}

/// What became of transactions.
#[derive(Clone, Debug)]
pub struct Transactions {
    /// Those that have ended: those that were acknowledged, and those that were aborted.
    pub ended: u64,
    /// Those that were aborted.
    pub aborted: u64,
    /// Ends that programs asked for: as many as `ended`, unless a design wakes a core that waits
    /// for something else.
    pub commits: u64,
    /// Cycles from the start of a commit to the moment at which its core knows it to be durable:
    /// the acknowledgement, or what an asynchronous design announces later.
    pub commit_latency: Histogram<u64>,
    /// What the transactions wrote that were not aborted.
    pub write_sets: WriteSets,
}

impl Default for Transactions {
    fn default() -> Transactions {
        Transactions {
            ended: 0,
            aborted: 0,
            commits: 0,
            commit_latency: latencies(),
            write_sets: WriteSets::default(),
        }
    }
}

/// What cores did with their time, summed over all cores.
#[derive(Clone, Debug, Default)]
pub struct CoreTime {
    /// Instructions.
    pub instructions: u64,
    /// Core-cycles in which instructions dispatched.
    pub compute: u64,
    /// Core-cycles of waiting, in the order of [`Stall::ALL`]; with `compute` they sum to the
    /// cycles of the run times the number of cores.
    pub stalls: [u64; Stall::ALL.len()],
    /// How often a thread moved to another core.
    pub migrations: u64,
}

/// What cores asked of the memory hierarchy, and where it was found there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Loads, stores, flushes and fences of all cores.
    pub operations: u64,
    /// Loads, those of logs in software included.
    pub loads: u64,
    /// Stores to the caches and past them.
    pub stores: u64,
    /// Flushes, `clwb` and its kind, where the hardware has them.
    pub flushes: u64,
    /// Fences, or what takes their place (ofence, dfence), where the hardware has them.
    pub fences: u64,
    /// Walks of the page table.
    pub walks: u64,
    /// Loads, stores and walks that a core's second level served, since its first level did not
    /// have the line, or not with the permission to change it.
    pub in_l2: u64,
    /// Loads, stores and walks that the last level served.
    pub in_llc: u64,
    /// Loads, stores and walks for which another core's copy was fetched or invalidated.
    pub elsewhere: u64,
    /// Loads, stores and walks that persistent memory served.
    pub in_pm: u64,
    /// Loads, stores and walks that DRAM served.
    pub in_dram: u64,
    /// Dirty lines of persistent memory that left the last level to make room.
    pub pm_evictions: u64,
    /// Dirty lines of DRAM that left the last level to make room.
    pub dram_evictions: u64,
}

impl Accesses {
    /// Counts an access that a core's first level could not serve.
    pub fn found(&mut self, line: Line, found: Found) {
        let count = match found {
            Found::L2 => &mut self.in_l2,
            Found::Llc => &mut self.in_llc,
            Found::Elsewhere(_) => &mut self.elsewhere,
            Found::Memory if line.is_persistent() => &mut self.in_pm,
            Found::Memory => &mut self.in_dram,
        };
        *count += 1;
    }

    /// Counts a dirty line that leaves the last level to make room.
    pub fn evicted(&mut self, line: Line) {
        let is_persistent = line.is_persistent();
        *if is_persistent { &mut self.pm_evictions } else { &mut self.dram_evictions } += 1;
    }

    /// Returns how many accesses the first levels could not serve.
    pub fn l1_misses(&self) -> u64 {
        self.in_l2 + self.l2_misses()
    }

    /// Returns how many accesses the cores' second levels could not serve, either.
    pub fn l2_misses(&self) -> u64 {
        self.in_llc + self.elsewhere + self.llc_misses()
    }

    /// Returns how many accesses memory served.
    pub fn llc_misses(&self) -> u64 {
        self.in_pm + self.in_dram
    }
}

/// How much of the last level of the caches has been stored to. While that grows, fewer dirty lines
/// leave it than in a longer run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastLevel {
    /// Lines that it has room for.
    pub lines: u64,
    /// Dirty lines at the start of the measured region.
    pub dirty_at_start: u64,
    /// Dirty lines at the end of the last core's program.
    pub dirty_at_end: u64,
}

/// What a run counted in its measured region.
#[derive(Clone, Debug)]
pub struct Report {
    /// Cycles from the start of the measured region to the end of the last core's program.
    pub cycles: u64,
    /// What became of transactions.
    pub transactions: Transactions,
    /// What the cores did with their time.
    pub cores: CoreTime,
    /// What the cores asked of the memory hierarchy.
    pub accesses: Accesses,
    /// How much of the last level has been stored to.
    pub last_level: LastLevel,
    /// What the persistent memories counted.
    pub meters: Meters,
    /// How busy controllers and memories were.
    pub usage: Usage,
    /// Ordering points and epochs, if the caller asked for them.
    pub epochs: Option<Totals>,
    /// What the design counted.
    pub counters: Vec<(&'static str, u64)>,
    /// Whether the run ended before its programs did.
    pub cancelled: bool,
}

/// Makes an empty histogram of commit latencies.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 1 << 40, 3).expect("the bounds are in order")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{CoreId, DRAM_BASE};

    #[test]
    fn a_write_set_is_counted_in_words_lines_and_pages() {
        let mut sets = WriteSets::default();
        let mut words = vec![Word(0), Word(7), Word(8), Word(0), Word(1024)];
        sets.count(&mut words);
        assert!(words.is_empty());
        assert_eq!((sets.stores, sets.words, sets.lines, sets.pages), (5, 4, 3, 2));
        assert_eq!((sets.words_max, sets.lines_max, sets.pages_max), (4, 3, 2));
        sets.count(&mut vec![Word(512), Word(8)]);
        assert_eq!((sets.stores, sets.words, sets.lines, sets.pages), (7, 6, 5, 4));
        assert_eq!((sets.words_max, sets.lines_max, sets.pages_max), (4, 3, 2));
        sets.count(&mut vec![Word(0), Word(512), Word(1024), Word(1536), Word(1537)]);
        assert_eq!((sets.words_max, sets.lines_max, sets.pages_max), (5, 4, 4));
        sets.count(&mut vec![Word(0)]);
        assert_eq!((sets.words_max, sets.lines_max, sets.pages_max), (5, 4, 4));
        assert_eq!(sets.transactions, 4);
    }

    #[test]
    fn an_access_is_counted_where_its_line_was() {
        let (pm, dram) = (Line(1), Line::of(DRAM_BASE));
        let mut accesses = Accesses::default();
        for found in [Found::L2, Found::Llc, Found::Elsewhere(CoreId(1)), Found::Memory] {
            accesses.found(pm, found);
        }
        accesses.found(dram, Found::Memory);
        accesses.found(dram, Found::Memory);
        accesses.evicted(pm);
        accesses.evicted(dram);
        accesses.evicted(dram);
        assert_eq!((accesses.in_l2, accesses.in_llc, accesses.elsewhere), (1, 1, 1));
        assert_eq!((accesses.in_pm, accesses.in_dram), (1, 2));
        assert_eq!((accesses.l1_misses(), accesses.l2_misses(), accesses.llc_misses()), (6, 5, 3));
        assert_eq!((accesses.pm_evictions, accesses.dram_evictions), (1, 2));
    }
}
