//! The caches: tags, recency and MESI states, with the directory in the last level. They hold no
//! data, call nobody, and say what happened.

use crate::config::Config;
use crate::contents::prefetch;
use crate::units::{CoreId, Line, PerCore};

/// A private cache's state of a line, in the low bits of its tag.
const SHARED: u64 = 1;
const EXCLUSIVE: u64 = 2;
const MODIFIED: u64 = 3;
const STATE: u64 = 3;

/// Ways of sets, each set in order of recency: the first entry was used last.
#[derive(Clone, Debug)]
struct Sets<T> {
    entries: Vec<T>,
    ways: usize,
    sets: u64,
    /// `sets - 1` if that is a mask.
    mask: Option<u64>,
}

impl<T: Copy + Default> Sets<T> {
    fn new(size: u64, ways: u64) -> Sets<T> {
        let sets = size / 64 / ways;
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Sets {
            entries: vec![T::default(); (sets * ways) as usize],
            ways: ways as usize,
            sets,
            mask,
        }
    }

    /// Where the set of a line begins.
    #[inline]
    fn first(&self, line: Line) -> usize {
        let set = match self.mask {
            Some(mask) => line.0 & mask,
            None => line.0 % self.sets,
        };
        set as usize * self.ways
    }

    #[inline]
    fn set(&mut self, line: Line) -> &mut [T] {
        let first = self.first(line);
        &mut self.entries[first..first + self.ways]
    }
}

/// A private cache. An entry is `line << 2 | state`, and 0 is empty.
type Private = Sets<u64>;

/// Whether an entry is that of a line, in any of the three states.
#[inline]
fn is_of(entry: u64, line: Line) -> bool {
    (entry ^ line.0 << 2).wrapping_sub(1) < 3
}

impl Private {
    /// Finds a line, makes it the most recent of its set, and returns its entry.
    #[inline]
    fn touch(&mut self, line: Line) -> Option<&mut u64> {
        let set = self.set(line);
        if is_of(set[0], line) {
            return Some(&mut set[0]);
        }
        let way = set.iter().position(|&entry| is_of(entry, line))?;
        let entry = set[way];
        set.copy_within(..way, 1);
        set[0] = entry;
        Some(&mut set[0])
    }

    #[inline]
    fn has(&self, line: Line) -> bool {
        let first = self.first(line);
        let set = &self.entries[first..first + self.ways];
        set.iter().any(|&entry| is_of(entry, line))
    }

    fn peek(&mut self, line: Line) -> Option<&mut u64> {
        self.set(line).iter_mut().find(|entry| is_of(**entry, line))
    }

    /// Puts a line first and returns the entry that had to go, or 0.
    fn insert(&mut self, line: Line, state: u64) -> u64 {
        let set = self.set(line);
        let way = set.iter().position(|&entry| entry == 0).unwrap_or(set.len() - 1);
        let out = set[way];
        set.copy_within(..way, 1);
        set[0] = line.0 << 2 | state;
        out
    }

    fn remove(&mut self, line: Line) -> u64 {
        match self.peek(line) {
            Some(entry) => std::mem::take(entry) & STATE,
            None => 0,
        }
    }
}

/// The last level and its directory. A tag is the line's number plus 1, above [`DIRTY`] and
/// [`OWNED`], and 0 is empty. The cores that may hold the line, one bit each, are apart: a search
/// looks at tags only.
#[derive(Clone, Debug)]
struct Last {
    tags: Sets<u64>,
    sharers: Vec<u64>,
}

/// Memory holds an older value than the caches.
const DIRTY: u64 = 1;
/// The only sharer may write without asking.
const OWNED: u64 = 2;

impl Last {
    fn new(size: u64, ways: u64) -> Last {
        let tags: Sets<u64> = Sets::new(size, ways);
        Last { sharers: vec![0; tags.entries.len()], tags }
    }

    /// Where a line is.
    #[inline]
    fn find(&self, line: Line) -> Option<usize> {
        let first = self.tags.first(line);
        let set = &self.tags.entries[first..first + self.tags.ways];
        Some(first + set.iter().position(|tag| tag >> 2 == line.0 + 1)?)
    }

    /// Makes an entry the most recent of its set, and returns where it is now.
    fn touch(&mut self, at: usize, line: Line) -> usize {
        let first = self.tags.first(line);
        for entries in [&mut self.tags.entries, &mut self.sharers] {
            let entry = entries[at];
            entries.copy_within(first..at, first + 1);
            entries[first] = entry;
        }
        first
    }

    /// The entry that a line takes: an empty one of its set, or the least recent.
    fn victim(&self, line: Line) -> usize {
        let first = self.tags.first(line);
        let set = &self.tags.entries[first..first + self.tags.ways];
        first + set.iter().position(|&tag| tag == 0).unwrap_or(set.len() - 1)
    }

    fn mark(&mut self, at: usize, flag: u64, on: bool) {
        self.tags.entries[at] = self.tags.entries[at] & !flag | if on { flag } else { 0 };
    }

    fn is(&self, at: usize, flag: u64) -> bool {
        self.tags.entries[at] & flag != 0
    }
}

/// Where an access found its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// In the core's own second level.
    L2,
    /// In the last level.
    Llc,
    /// In another core's cache, or there were other copies to invalidate.
    Elsewhere(CoreId),
    /// In memory.
    Memory,
}

/// What an access that missed the first level did.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Where the line was.
    pub found: Found,
    /// The line that had to leave the last level, and whether memory must be told its bytes.
    pub evicted: Option<(Line, bool)>,
}

/// Private first and second levels, and the shared last level that includes them.
#[derive(Clone, Debug)]
pub struct Caches {
    l1: PerCore<Private>,
    l2: PerCore<Private>,
    llc: Last,
    /// Lines that left a core's first level since somebody asked, if somebody does.
    departures: Vec<(CoreId, Line)>,
    watched: bool,
}

impl Caches {
    /// Empty caches. If they are `watched`, [`Caches::departures`] says what left a first level.
    pub fn new(cores: u8, config: &Config, watched: bool) -> Caches {
        Caches {
            l1: PerCore::new(cores, |_| Sets::new(config.l1d.size, config.l1d.assoc)),
            l2: PerCore::new(cores, |_| Sets::new(config.l2.size, config.l2.assoc)),
            llc: Last::new(config.llc.size, config.llc.assoc),
            departures: Vec::new(),
            watched,
        }
    }

    /// Lines that left a core's first level since the last call, in order.
    pub fn departures(&mut self) -> Vec<(CoreId, Line)> {
        std::mem::take(&mut self.departures)
    }

    fn depart(&mut self, core: CoreId, line: Line) {
        if self.watched {
            self.departures.push((core, line));
        }
    }

    /// A load: whether the core's first level has the line.
    #[inline]
    pub fn hit(&mut self, core: CoreId, line: Line) -> bool {
        self.l1[core].touch(line).is_some()
    }

    /// Whether the core's first level has the line. Nothing changes.
    #[inline]
    pub fn is_near(&self, core: CoreId, line: Line) -> bool {
        self.l1[core].has(line)
    }

    /// Tells the host that a search for a line in the last level comes soon.
    #[inline]
    pub fn prefetch(&self, line: Line) {
        let first = self.llc.tags.first(line);
        prefetch(&self.llc.tags.entries[first]);
        prefetch(&self.llc.sharers[first]);
    }

    /// The line that would leave the last level, and memory be told its bytes, if a core asked for
    /// `line` now.
    pub fn victim(&self, line: Line) -> Option<Line> {
        if self.llc.find(line).is_some() {
            return None;
        }
        let out = self.llc.tags.entries[self.llc.victim(line)];
        (out & DIRTY != 0).then(|| Line((out >> 2) - 1))
    }

    /// A store: whether the core's first level has the line and may change it. It is then dirty.
    #[inline]
    pub fn hit_to_write(&mut self, core: CoreId, line: Line) -> bool {
        match self.l1[core].touch(line) {
            Some(entry) if *entry & STATE != SHARED => {
                *entry |= MODIFIED;
                true
            }
            _ => false,
        }
    }

    /// Whether an access that misses the first level needs more than the core's own second level.
    pub fn needs_others(&mut self, core: CoreId, line: Line, write: bool) -> bool {
        match self.l2[core].peek(line) {
            Some(entry) => write && *entry & STATE == SHARED,
            None => true,
        }
    }

    /// An access that [`Caches::hit`] or [`Caches::hit_to_write`] denied.
    pub fn access(&mut self, core: CoreId, line: Line, write: bool) -> Access {
        if let Some(entry) = self.l2[core].touch(line)
            && !(write && *entry & STATE == SHARED)
        {
            if write {
                *entry |= MODIFIED;
            }
            let state = *entry & STATE;
            self.fill_l1(core, line, state);
            return Access { found: Found::L2, evicted: None };
        }
        let (found, evicted, state) = self.access_llc(core, line, write);
        self.fill_l2(core, line, state);
        self.fill_l1(core, line, state);
        Access { found, evicted }
    }

    fn access_llc(
        &mut self,
        core: CoreId,
        line: Line,
        write: bool,
    ) -> (Found, Option<(Line, bool)>, u64) {
        let me = 1 << core.0;
        let Some(at) = self.llc.find(line) else {
            let evicted = self.replace(line, me);
            let state = if write { MODIFIED } else { EXCLUSIVE };
            return (Found::Memory, evicted, state);
        };
        let at = self.llc.touch(at, line);
        let others = self.llc.sharers[at] & !me;
        let mut found = Found::Llc;
        if others != 0 && (write || self.llc.is(at, OWNED)) {
            found = Found::Elsewhere(CoreId(others.trailing_zeros() as u8));
            let mut dirty = self.llc.is(at, DIRTY);
            for other in bits(others) {
                dirty |= if write {
                    self.invalidate(other, line) == MODIFIED
                } else {
                    self.downgrade(other, line)
                };
            }
            self.llc.mark(at, DIRTY, dirty);
        }
        let alone = write || others == 0;
        self.llc.sharers[at] = if alone { me } else { others | me };
        self.llc.mark(at, OWNED, alone);
        let state = match (write, alone) {
            (true, _) => MODIFIED,
            (false, true) => EXCLUSIVE,
            (false, false) => SHARED,
        };
        (found, None, state)
    }

    /// Gives a line that comes from memory the first entry of its set; what was the last one leaves
    /// all caches.
    fn replace(&mut self, line: Line, sharers: u64) -> Option<(Line, bool)> {
        let at = self.llc.touch(self.llc.victim(line), line);
        let out = std::mem::replace(&mut self.llc.tags.entries[at], (line.0 + 1) << 2 | OWNED);
        let held_by = std::mem::replace(&mut self.llc.sharers[at], sharers);
        if out == 0 {
            return None;
        }
        let victim = Line((out >> 2) - 1);
        let mut dirty = out & DIRTY != 0;
        for core in bits(held_by) {
            dirty |= self.invalidate(core, victim) == MODIFIED;
        }
        Some((victim, dirty))
    }

    fn fill_l2(&mut self, core: CoreId, line: Line, state: u64) {
        if let Some(entry) = self.l2[core].touch(line) {
            *entry = line.0 << 2 | state;
            return;
        }
        let out = self.l2[core].insert(line, state);
        if out == 0 {
            return;
        }
        let victim = Line(out >> 2);
        let above = self.l1[core].remove(victim);
        if above != 0 {
            self.depart(core, victim);
        }
        let modified = above == MODIFIED || out & STATE == MODIFIED;
        let at = self.llc.find(victim).expect("the last level includes the second");
        self.llc.sharers[at] &= !(1 << core.0);
        if modified {
            self.llc.mark(at, DIRTY, true);
        }
        if self.llc.sharers[at] == 0 {
            self.llc.mark(at, OWNED, false);
        }
    }

    fn fill_l1(&mut self, core: CoreId, line: Line, state: u64) {
        if let Some(entry) = self.l1[core].touch(line) {
            *entry = line.0 << 2 | state;
            return;
        }
        let out = self.l1[core].insert(line, state);
        if out != 0 {
            self.depart(core, Line(out >> 2));
        }
        if out & STATE == MODIFIED {
            let entry = self.l2[core].peek(Line(out >> 2));
            *entry.expect("the second level includes the first") |= MODIFIED;
        }
    }

    /// Takes a line from a core's caches and returns the state it had there.
    fn invalidate(&mut self, core: CoreId, line: Line) -> u64 {
        let above = self.l1[core].remove(line);
        if above != 0 {
            self.depart(core, line);
        }
        above.max(self.l2[core].remove(line))
    }

    /// Leaves a core a copy that it may not change; whether it had changed it.
    fn downgrade(&mut self, core: CoreId, line: Line) -> bool {
        let mut modified = false;
        for cache in [&mut self.l1[core], &mut self.l2[core]] {
            if let Some(entry) = cache.peek(line) {
                modified |= *entry & STATE == MODIFIED;
                *entry = line.0 << 2 | SHARED;
            }
        }
        modified
    }

    /// Makes a line clean wherever it is, since memory is being told its bytes; it leaves the
    /// caches unless it is to be kept. Returns whether memory did not have its bytes.
    pub fn clean(&mut self, line: Line, keep: bool) -> bool {
        let Some(at) = self.llc.find(line) else { return false };
        let (sharers, mut dirty) = (self.llc.sharers[at], self.llc.is(at, DIRTY));
        if keep {
            self.llc.mark(at, DIRTY, false);
        } else {
            (self.llc.tags.entries[at], self.llc.sharers[at]) = (0, 0);
        }
        for core in bits(sharers) {
            if !keep {
                dirty |= self.invalidate(core, line) == MODIFIED;
                continue;
            }
            for cache in [&mut self.l1[core], &mut self.l2[core]] {
                if let Some(entry) = cache.peek(line)
                    && *entry & STATE == MODIFIED
                {
                    dirty = true;
                    *entry = line.0 << 2 | EXCLUSIVE;
                }
            }
        }
        dirty
    }

    /// Whether any cache holds the line.
    pub fn holds(&self, line: Line) -> bool {
        self.llc.find(line).is_some()
    }

    /// Lines whose bytes memory does not have, in no order that means anything, but always the
    /// same.
    pub fn dirty_lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let dirty = self.llc.tags.entries.iter().filter(|&&tag| tag & DIRTY != 0);
        lines.extend(dirty.map(|tag| Line((tag >> 2) - 1)));
        for caches in [&self.l1, &self.l2] {
            for (_, cache) in caches.iter() {
                let modified = cache.entries.iter().filter(|&&entry| entry & STATE == MODIFIED);
                lines.extend(modified.map(|entry| Line(entry >> 2)));
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

fn bits(mut mask: u64) -> impl Iterator<Item = CoreId> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 64).then_some(CoreId(bit as u8))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: CoreId = CoreId(0);
    const B: CoreId = CoreId(1);

    /// First level 1 set of 2 ways, second level 1 of 4, last level 2 of 4.
    fn caches() -> Caches {
        let mut config = Config::default();
        (config.l1d.size, config.l1d.assoc) = (128, 2);
        (config.l2.size, config.l2.assoc) = (256, 4);
        (config.llc.size, config.llc.assoc) = (512, 4);
        Caches::new(2, &config, true)
    }

    fn load(caches: &mut Caches, core: CoreId, line: u64) -> Option<Access> {
        (!caches.hit(core, Line(line))).then(|| caches.access(core, Line(line), false))
    }

    fn store(caches: &mut Caches, core: CoreId, line: u64) -> Option<Access> {
        (!caches.hit_to_write(core, Line(line))).then(|| caches.access(core, Line(line), true))
    }

    #[test]
    fn a_line_is_found_where_it_is() {
        let mut caches = caches();
        assert_eq!(load(&mut caches, A, 0).expect("a miss").found, Found::Memory);
        assert!(load(&mut caches, A, 0).is_none());
        load(&mut caches, A, 1);
        load(&mut caches, A, 2);
        assert_eq!(load(&mut caches, A, 0).expect("a miss").found, Found::L2);
        assert_eq!(load(&mut caches, B, 1).expect("a miss").found, Found::Elsewhere(A));
    }

    #[test]
    fn an_exclusive_line_is_written_without_asking_and_a_shared_one_is_not() {
        let mut caches = caches();
        load(&mut caches, A, 0);
        assert!(store(&mut caches, A, 0).is_none());
        load(&mut caches, B, 0);
        assert_eq!(store(&mut caches, B, 0).expect("an upgrade").found, Found::Elsewhere(A));
        assert!(!caches.hit(A, Line(0)), "the other copy is gone");
        assert_eq!(caches.dirty_lines(), [Line(0)]);
    }

    #[test]
    fn a_line_that_leaves_the_last_level_leaves_all() {
        let mut caches = caches();
        store(&mut caches, A, 0);
        for line in [2, 4, 6] {
            load(&mut caches, B, line);
        }
        let access = load(&mut caches, B, 8).expect("a miss");
        assert_eq!(access.evicted, Some((Line(0), true)));
        assert!(!caches.hit(A, Line(0)));
        assert!(caches.dirty_lines().is_empty());
    }

    #[test]
    fn cleaning_keeps_the_line_or_not() {
        let mut caches = caches();
        store(&mut caches, A, 0);
        assert!(caches.clean(Line(0), true));
        assert!(!caches.clean(Line(0), true), "it is clean now");
        assert!(store(&mut caches, A, 0).is_none(), "it is still owned");
        assert!(caches.clean(Line(0), false));
        assert!(!caches.holds(Line(0)));
    }

    #[test]
    fn what_leaves_a_first_level_is_told() {
        let mut caches = caches();
        for line in 0..3 {
            store(&mut caches, A, line);
        }
        assert_eq!(caches.departures(), [(A, Line(0))], "the first level has two ways");
        load(&mut caches, B, 1);
        assert_eq!(caches.departures(), [], "a copy stays");
        store(&mut caches, B, 1);
        assert_eq!(caches.departures(), [(A, Line(1))]);
        caches.clean(Line(2), false);
        assert_eq!(caches.departures(), [(A, Line(2))]);
    }

    #[test]
    fn every_level_includes_the_ones_above() {
        let mut caches = caches();
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (core, line) = (CoreId((state >> 60 & 1) as u8), state >> 40 & 15);
            match state >> 33 & 7 {
                0 => _ = caches.clean(Line(line), state >> 36 & 1 == 0),
                1 | 2 => _ = store(&mut caches, core, line),
                _ => _ = load(&mut caches, core, line),
            }
            for core in [A, B] {
                for entry in caches.l1[core].entries.clone() {
                    assert!(entry == 0 || caches.l2[core].peek(Line(entry >> 2)).is_some());
                }
                for entry in caches.l2[core].entries.clone() {
                    let holds = entry == 0 || caches.holds(Line(entry >> 2));
                    assert!(holds, "line {} is in a second level only", entry >> 2);
                }
            }
            one_writer(&mut caches);
        }
    }

    fn one_writer(caches: &mut Caches) {
        for line in (0..16).map(Line) {
            let state = |cache: &mut Private| cache.peek(line).map_or(0, |entry| *entry & STATE);
            let a = state(&mut caches.l2[A]).max(state(&mut caches.l1[A]));
            let b = state(&mut caches.l2[B]).max(state(&mut caches.l1[B]));
            assert!(a <= SHARED || b == 0, "{line:?}: {a} and {b}");
            assert!(b <= SHARED || a == 0, "{line:?}: {a} and {b}");
        }
    }
}
