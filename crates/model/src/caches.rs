//! The caches: tags, recency and MESI states, with the directory in the last level. They hold no
//! data and call no other part: their answers tell the caller what happened.

use crate::config::Config;
use crate::contents::prefetch;
use crate::units::{CoreId, Line, LineSet, PerCore, bits};

/// A private cache's state of a line, in the low bits of its tag.
const SHARED: u64 = 1;
const EXCLUSIVE: u64 = 2;
const MODIFIED: u64 = 3;
const STATE: u64 = 3;

/// The ways of all sets, each set in order of recency, most recent first. An empty entry is 0.
#[derive(Clone, Debug)]
struct Sets {
    entries: Vec<u64>,
    ways: usize,
    sets: u64,
    /// `sets - 1`, if the number of sets is a power of two.
    mask: Option<u64>,
}

impl Sets {
    fn new(size: u64, ways: u64) -> Sets {
        let sets = size / 64 / ways;
        let mask = sets.is_power_of_two().then(|| sets - 1);
        Sets { entries: vec![0; (sets * ways) as usize], ways: ways as usize, sets, mask }
    }

    /// Returns the index at which the set of a line begins.
    #[inline]
    fn first(&self, line: Line) -> usize {
        let set = match self.mask {
            Some(mask) => line.0 & mask,
            None => line.0 % self.sets,
        };
        set as usize * self.ways
    }

    #[inline]
    fn set(&self, line: Line) -> &[u64] {
        let first = self.first(line);
        &self.entries[first..first + self.ways]
    }

    #[inline]
    fn set_mut(&mut self, line: Line) -> &mut [u64] {
        let first = self.first(line);
        &mut self.entries[first..first + self.ways]
    }
}

/// A private cache. An entry is `line << 2 | state`.
#[derive(Clone, Debug)]
struct Private {
    sets: Sets,
    /// The number of empty entries.
    empty: usize,
}

/// Whether an entry holds a line, in any of the three states.
#[inline]
fn is_of(entry: u64, line: Line) -> bool {
    (entry ^ line.0 << 2).wrapping_sub(1) < 3
}

impl Private {
    fn new(size: u64, ways: u64) -> Private {
        let sets = Sets::new(size, ways);
        Private { empty: sets.entries.len(), sets }
    }

    /// Finds a line, makes it the most recent of its set, and returns its entry.
    #[inline]
    fn touch(&mut self, line: Line) -> Option<&mut u64> {
        let set = self.sets.set_mut(line);
        if is_of(set[0], line) {
            return Some(&mut set[0]);
        }
        let way = set.iter().position(|&entry| is_of(entry, line))?;
        let entry = set[way];
        set.copy_within(..way, 1);
        set[0] = entry;
        Some(&mut set[0])
    }

    /// Returns the entry of a line that is the most recent of its set.
    fn newest(&mut self, line: Line) -> &mut u64 {
        &mut self.sets.set_mut(line)[0]
    }

    #[inline]
    fn has(&self, line: Line) -> bool {
        self.sets.set(line).iter().any(|&entry| is_of(entry, line))
    }

    fn peek(&mut self, line: Line) -> Option<&mut u64> {
        self.sets.set_mut(line).iter_mut().find(|entry| is_of(**entry, line))
    }

    /// Puts a line that is not in the cache first in its set, and returns the entry that had to
    /// leave, or 0.
    fn insert(&mut self, line: Line, state: u64) -> u64 {
        let some_are_empty = self.empty > 0;
        let set = self.sets.set_mut(line);
        let mut way = set.len() - 1;
        if some_are_empty {
            way = set.iter().position(|&entry| entry == 0).unwrap_or(way);
        }
        let out = set[way];
        set.copy_within(..way, 1);
        set[0] = line.0 << 2 | state;
        self.empty -= usize::from(out == 0);
        out
    }

    fn remove(&mut self, line: Line) -> u64 {
        let Some(entry) = self.peek(line) else { return 0 };
        let state = std::mem::take(entry) & STATE;
        self.empty += 1;
        state
    }
}

/// The last level and its directory. A tag is the line's number plus 1, above the bits [`DIRTY`]
/// and [`OWNED`]; an empty one is 0, and comes after all others of its set. The cores that may hold
/// the line, one bit each, are in an array of their own, since a search looks at tags only.
#[derive(Clone, Debug)]
struct Last {
    tags: Sets,
    sharers: Vec<u64>,
}

/// Memory holds an older value than the caches.
const DIRTY: u64 = 1;
/// The only sharer may write without asking.
const OWNED: u64 = 2;

impl Last {
    fn new(size: u64, ways: u64) -> Last {
        let tags = Sets::new(size, ways);
        Last { sharers: vec![0; tags.entries.len()], tags }
    }

    /// Tells the host that a search for a line comes soon.
    #[inline]
    fn prefetch(&self, line: Line) {
        let first = self.tags.first(line);
        prefetch(&self.tags.entries[first]);
        prefetch(&self.sharers[first]);
    }

    /// Returns the index of a line's entry.
    #[inline]
    fn find(&self, line: Line) -> Option<usize> {
        let set = self.tags.set(line);
        Some(self.tags.first(line) + set.iter().position(|tag| tag >> 2 == line.0 + 1)?)
    }

    /// Makes an entry the most recent of its set, and returns its new index.
    fn touch(&mut self, at: usize, line: Line) -> usize {
        let first = self.tags.first(line);
        for entries in [&mut self.tags.entries, &mut self.sharers] {
            let entry = entries[at];
            entries.copy_within(first..at, first + 1);
            entries[first] = entry;
        }
        first
    }

    /// Returns the entry that a line takes: an empty one of its set, or else the least recent one
    /// that is not pinned, or the least recent one if all are pinned.
    fn victim(&self, line: Line, pinned: &LineSet) -> usize {
        let (first, set) = (self.tags.first(line), self.tags.set(line));
        let last = set.len() - 1;
        if set[last] == 0 {
            return first + set.partition_point(|&tag| tag != 0);
        }
        if pinned.is_empty() {
            return first + last;
        }
        let free = set.iter().rposition(|tag| !pinned.contains(&Line((tag >> 2) - 1)));
        first + free.unwrap_or(last)
    }

    /// Empties the entry of a line.
    fn remove(&mut self, at: usize, line: Line) {
        let last = self.tags.first(line) + self.tags.ways - 1;
        for entries in [&mut self.tags.entries, &mut self.sharers] {
            entries.copy_within(at + 1..=last, at);
            entries[last] = 0;
        }
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
    /// In another core's cache, or in the last level with copies of other cores to invalidate.
    /// Names one of those cores.
    Elsewhere(CoreId),
    /// In memory.
    Memory,
}

/// What an access that missed the first level did.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The place where the line was.
    pub found: Found,
    /// The line that had to leave the last level, and whether its bytes must go to memory.
    pub evicted: Option<(Line, bool)>,
}

/// Private first and second levels, and the shared last level that includes them.
#[derive(Clone, Debug)]
pub struct Caches {
    l1: PerCore<Private>,
    l2: PerCore<Private>,
    llc: Last,
    /// The lines that left a core's first level since the last call of [`Caches::departures`], if
    /// they are watched.
    departures: Vec<(CoreId, Line)>,
    /// The lines whose changed bytes came down to the last level since the last call of
    /// [`Caches::lowered`], if they are watched.
    lowered: Vec<(CoreId, Line)>,
    watched: Watched,
    /// Lines that leave the last level only if every line of their set is pinned.
    pub pinned: LineSet,
}

/// The movements of lines that the caches record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watched {
    /// Out of a core's first level.
    pub l1: bool,
    /// Changed bytes from a core's own levels to the last.
    pub l2: bool,
}

impl Caches {
    /// Returns empty caches, which record the `watched` movements for [`Caches::departures`] and
    /// [`Caches::lowered`].
    pub fn new(cores: u8, config: &Config, watched: Watched) -> Caches {
        Caches {
            l1: PerCore::new(cores, |_| Private::new(config.l1d.size, config.l1d.assoc)),
            l2: PerCore::new(cores, |_| Private::new(config.l2.size, config.l2.assoc)),
            llc: Last::new(config.llc.size, config.llc.assoc),
            departures: Vec::new(),
            lowered: Vec::new(),
            watched,
            pinned: LineSet::default(),
        }
    }

    /// Exchanges the private levels of two cores: what ran on the one now runs on the other, and
    /// takes its lines along.
    pub(crate) fn rename(&mut self, core: CoreId, other: CoreId) {
        self.l1.swap(core, other);
        self.l2.swap(core, other);
        let both = 1 << core.0 | 1 << other.0;
        for sharers in &mut self.llc.sharers {
            if (*sharers & both).count_ones() == 1 {
                *sharers ^= both;
            }
        }
    }

    /// Replaces `lines` by the lines that left a core's first level since the last call, in order.
    pub(crate) fn departures(&mut self, lines: &mut Vec<(CoreId, Line)>) {
        lines.clear();
        std::mem::swap(&mut self.departures, lines);
    }

    fn depart(&mut self, core: CoreId, line: Line) {
        if self.watched.l1 {
            self.departures.push((core, line));
        }
    }

    /// Replaces `lines` by those whose changed bytes a core's second level gave to the last level
    /// since the last call, to make room or because another core asked. Lines that went on to
    /// memory at once are not among them.
    pub(crate) fn lowered(&mut self, lines: &mut Vec<(CoreId, Line)>) {
        lines.clear();
        std::mem::swap(&mut self.lowered, lines);
    }

    fn come_down(&mut self, core: CoreId, line: Line) {
        if self.watched.l2 {
            self.lowered.push((core, line));
        }
    }

    /// Loads from a line if the core's first level has it. Returns whether it had.
    #[inline]
    pub(crate) fn hit(&mut self, core: CoreId, line: Line) -> bool {
        self.l1[core].touch(line).is_some()
    }

    /// Whether the core's first level has the line. The order of recency stays as it is.
    #[inline]
    pub(crate) fn is_near(&self, core: CoreId, line: Line) -> bool {
        self.l1[core].has(line)
    }

    /// Tells the host that a search for a line in the last level comes soon, and one for the line
    /// that leaves the core's second level for it.
    #[inline]
    pub fn prefetch(&self, core: CoreId, line: Line) {
        self.llc.prefetch(line);
        if let Some(&out) = self.l2[core].sets.set(line).last()
            && out != 0
        {
            self.llc.prefetch(Line(out >> 2));
        }
    }

    /// Returns the dirty line that would leave the last level if a core asked for `line` now, as
    /// far as the last level knows that it is dirty.
    pub(crate) fn victim(&self, line: Line) -> Option<Line> {
        if self.llc.find(line).is_some() {
            return None;
        }
        let out = self.llc.tags.entries[self.llc.victim(line, &self.pinned)];
        (out & DIRTY != 0).then(|| Line((out >> 2) - 1))
    }

    /// Stores to a line, and makes it dirty, if the core's first level has it and may change it.
    /// Returns whether it did.
    #[inline]
    pub(crate) fn hit_to_write(&mut self, core: CoreId, line: Line) -> bool {
        match self.l1[core].touch(line) {
            Some(entry) if *entry & STATE != SHARED => {
                *entry |= MODIFIED;
                true
            }
            _ => false,
        }
    }

    /// Whether an access that misses the first level needs more than the core's own second level.
    pub(crate) fn needs_others(&mut self, core: CoreId, line: Line, write: bool) -> bool {
        match self.l2[core].peek(line) {
            Some(entry) => write && *entry & STATE == SHARED,
            None => true,
        }
    }

    /// Makes an access that [`Caches::hit`] or [`Caches::hit_to_write`] denied.
    pub fn access(&mut self, core: CoreId, line: Line, write: bool) -> Access {
        let own = self.l2[core].touch(line);
        // A copy that may not be changed is exchanged for one that may.
        let shared = own.as_ref().is_some_and(|entry| write && **entry & STATE == SHARED);
        if let Some(entry) = own.filter(|_| !shared) {
            if write {
                *entry |= MODIFIED;
            }
            let state = *entry & STATE;
            self.fill_l1(core, line, state);
            return Access { found: Found::L2, evicted: None };
        }
        let (found, evicted, state) = self.access_llc(core, line, write);
        if shared {
            *self.l2[core].newest(line) = line.0 << 2 | state;
            if let Some(entry) = self.l1[core].touch(line) {
                *entry = line.0 << 2 | state;
                return Access { found, evicted };
            }
        } else {
            self.fill_l2(core, line, state);
        }
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
            for other in cores(others) {
                let modified = if write {
                    self.invalidate(other, line) == MODIFIED
                } else {
                    self.downgrade(other, line)
                };
                if modified {
                    self.come_down(other, line);
                }
                dirty |= modified;
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

    /// Gives a line that comes from memory the first entry of its set. Returns the line that leaves
    /// all caches for it, if the set was full, and whether that line was dirty.
    fn replace(&mut self, line: Line, sharers: u64) -> Option<(Line, bool)> {
        let at = self.llc.touch(self.llc.victim(line, &self.pinned), line);
        let out = std::mem::replace(&mut self.llc.tags.entries[at], (line.0 + 1) << 2 | OWNED);
        let held_by = std::mem::replace(&mut self.llc.sharers[at], sharers);
        if out == 0 {
            return None;
        }
        let victim = Line((out >> 2) - 1);
        let mut dirty = out & DIRTY != 0;
        for core in cores(held_by) {
            dirty |= self.invalidate(core, victim) == MODIFIED;
        }
        Some((victim, dirty))
    }

    fn fill_l2(&mut self, core: CoreId, line: Line, state: u64) {
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
        if modified {
            self.come_down(core, victim);
        }
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

    /// Leaves a core a copy that it may not change. Returns whether the core had changed it.
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

    /// Makes a line clean in all caches, since its bytes go to memory. Returns whether it was
    /// dirty.
    pub fn clean(&mut self, line: Line) -> bool {
        let Some(at) = self.llc.find(line) else { return false };
        let dirty = self.llc.is(at, DIRTY);
        self.llc.mark(at, DIRTY, false);
        self.clean_above(at, line) || dirty
    }

    /// Takes a line out of all caches. Returns whether it was dirty.
    pub fn take_out(&mut self, line: Line) -> bool {
        let Some(at) = self.llc.find(line) else { return false };
        let (sharers, mut dirty) = (self.llc.sharers[at], self.llc.is(at, DIRTY));
        self.llc.remove(at, line);
        for core in cores(sharers) {
            dirty |= self.invalidate(core, line) == MODIFIED;
        }
        dirty
    }

    /// Gives a line's changed bytes to the last level and leaves clean copies above. Returns
    /// whether a private level had changed bytes.
    pub fn lower(&mut self, line: Line) -> bool {
        let Some(at) = self.llc.find(line) else { return false };
        let changed = self.clean_above(at, line);
        if changed {
            self.llc.mark(at, DIRTY, true);
        }
        changed
    }

    /// Leaves clean copies above the last level, which has the line at `at`. Returns whether a
    /// private level had changed bytes.
    fn clean_above(&mut self, at: usize, line: Line) -> bool {
        let mut changed = false;
        for core in cores(self.llc.sharers[at]) {
            for cache in [&mut self.l1[core], &mut self.l2[core]] {
                if let Some(entry) = cache.peek(line)
                    && *entry & STATE == MODIFIED
                {
                    changed = true;
                    *entry = line.0 << 2 | EXCLUSIVE;
                }
            }
        }
        changed
    }

    /// Marks a line dirty in the last level, if it is there, so that its bytes go to memory when it
    /// leaves.
    pub fn mark_dirty(&mut self, line: Line) {
        if let Some(at) = self.llc.find(line) {
            self.llc.mark(at, DIRTY, true);
        }
    }

    /// Whether any cache holds the line.
    pub fn holds(&self, line: Line) -> bool {
        self.llc.find(line).is_some()
    }

    /// Returns how many lines the last level has room for.
    pub(crate) fn last_level_lines(&self) -> u64 {
        self.llc.tags.entries.len() as u64
    }

    /// Returns the dirty lines in ascending order.
    pub fn dirty_lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let dirty = self.llc.tags.entries.iter().filter(|&&tag| tag & DIRTY != 0);
        lines.extend(dirty.map(|tag| Line((tag >> 2) - 1)));
        for caches in [&self.l1, &self.l2] {
            for (_, cache) in caches.iter() {
                let modified =
                    cache.sets.entries.iter().filter(|&&entry| entry & STATE == MODIFIED);
                lines.extend(modified.map(|entry| Line(entry >> 2)));
            }
        }
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

fn cores(mask: u64) -> impl Iterator<Item = CoreId> {
    bits(mask).map(|bit| CoreId(bit as u8))
}

#[cfg(test)]
mod tests;
