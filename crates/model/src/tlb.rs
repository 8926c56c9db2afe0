//! Translation look-aside buffers, for runs in which translation takes time (the design translates,
//! or the machine charges walks to every design): the pages whose translations each core has, and
//! when these arrive. The contents of a translation are the design's business.

use std::ops::Range;

use crate::config::Config;
use crate::units::{CoreId, Cycle, Page, PerCore};

/// The TLBs of every core: a first level, and a second that includes it, if there is one.
#[derive(Clone, Debug)]
pub struct Tlbs {
    cores: PerCore<Tlb>,
    /// The cycles that a hit in the second level adds.
    second_level: u64,
}

#[derive(Clone, Debug)]
struct Tlb {
    /// The page of the last hit, which is the most recent of its set in the first level.
    last: Option<Page>,
    first: Level,
    second: Option<Level>,
    /// The translations that are on their way from the page table, and when they arrive.
    coming: Vec<(Page, Cycle)>,
    /// The time before which the core asks for no translation any more.
    front: Cycle,
}

impl Tlbs {
    /// Returns empty TLBs.
    pub fn new(cores: u8, config: &Config) -> Tlbs {
        let tlb = &config.tlb;
        let second = (tlb.l2_entries > 0).then(|| Level::new(tlb.l2_entries, tlb.l2_assoc));
        let first = Level::new(tlb.entries, tlb.assoc);
        let one = Tlb { last: None, first, second, coming: Vec::new(), front: Cycle(0) };
        Tlbs {
            cores: PerCore::new(cores, |_| one.clone()),
            second_level: config.cycles(tlb.l2_latency),
        }
    }

    /// Exchanges the TLBs of two cores: what ran on the one now runs on the other, and takes its
    /// translations along.
    pub fn rename(&mut self, core: CoreId, other: CoreId) {
        self.cores.swap(core, other);
    }

    /// Looks a page's translation up in a core's TLBs. Returns the cycles that this adds, if the
    /// core has the translation or is going to have it ([`Tlbs::arrival`]).
    #[inline]
    pub fn hit(&mut self, core: CoreId, page: Page) -> Option<u64> {
        let tlb = &mut self.cores[core];
        if tlb.last == Some(page) {
            return Some(0);
        }
        if tlb.first.touch(page) {
            tlb.last = Some(page);
            return Some(0);
        }
        if !tlb.second.as_mut()?.touch(page) {
            return None;
        }
        tlb.first.insert(page);
        tlb.last = Some(page);
        Some(self.second_level)
    }

    /// Returns when a core's translation arrives, or `now` if it has arrived. The core must not ask
    /// for an earlier time than `now` afterwards.
    #[inline]
    pub fn arrival(&mut self, core: CoreId, page: Page, now: Cycle) -> Cycle {
        let tlb = &mut self.cores[core];
        tlb.front = now;
        let coming = tlb.coming.iter().find(|&&(other, _)| other == page);
        coming.map_or(now, |&(_, at)| at.max(now))
    }

    /// Returns the cores that have the translation of a page, one bit each.
    pub fn holders(&self, page: Page) -> u64 {
        let holds = |tlb: &Tlb| tlb.second.as_ref().unwrap_or(&tlb.first).holds(page);
        let holders = self.cores.iter().filter(|(_, tlb)| holds(tlb));
        holders.fold(0, |bits, (core, _)| bits | 1 << core.0)
    }

    /// Removes and returns the page whose translation a new one of `page` would replace, if there
    /// is no room.
    pub fn make_room(&mut self, core: CoreId, page: Page) -> Option<Page> {
        let tlb = &mut self.cores[core];
        let victim = match &mut tlb.second {
            Some(second) => second.make_room(page),
            None => tlb.first.make_room(page),
        }?;
        if tlb.second.is_some() {
            tlb.first.remove(victim);
        }
        tlb.last = tlb.last.filter(|&last| last != victim);
        Some(victim)
    }

    /// Removes a page's translation from a core's TLBs.
    pub fn remove(&mut self, core: CoreId, page: Page) {
        let tlb = &mut self.cores[core];
        tlb.first.remove(page);
        if let Some(second) = &mut tlb.second {
            second.remove(page);
        }
        tlb.last = tlb.last.filter(|&last| last != page);
    }

    /// Gives a core the translation of a page, which arrives at `at`. There must be room for it.
    pub fn fill(&mut self, core: CoreId, page: Page, at: Cycle) {
        let tlb = &mut self.cores[core];
        tlb.coming.retain(|&(other, arrives)| other != page && arrives > tlb.front);
        tlb.coming.push((page, at));
        if let Some(second) = &mut tlb.second {
            second.insert(page);
        }
        tlb.first.insert(page);
        tlb.last = Some(page);
    }
}

/// One level: the ways of all sets. It remembers where pages were found last, since a level may be
/// one large set, which is slow to search.
#[derive(Clone, Debug)]
struct Level {
    /// The pages' numbers plus 1. An empty entry is 0.
    entries: Vec<u64>,
    /// For each entry, the number of its last use, as the level counts its uses.
    used: Vec<u64>,
    uses: u64,
    ways: usize,
    sets: u64,
    /// For each class of pages with the same index here, the place of the page that was found or
    /// inserted last.
    hints: [u32; HINTS],
}

/// The number of places of pages that a level remembers (ours).
const HINTS: usize = 256;

impl Level {
    fn new(entries: u64, ways: u64) -> Level {
        Level {
            entries: vec![0; entries as usize],
            used: vec![0; entries as usize],
            uses: 0,
            ways: ways as usize,
            sets: entries / ways,
            hints: [0; HINTS],
        }
    }

    /// Returns the places of a page's set.
    fn set(&self, page: Page) -> Range<usize> {
        let first = (page.0 % self.sets) as usize * self.ways;
        first..first + self.ways
    }

    /// Returns the place of an entry in a page's set: the page's own, or an empty one if `entry` is
    /// 0.
    fn find(&self, page: Page, entry: u64) -> Option<usize> {
        let set = self.set(page);
        let place = self.entries[set.clone()].iter().position(|&other| other == entry)?;
        Some(set.start + place)
    }

    fn holds(&self, page: Page) -> bool {
        self.find(page, page.0 + 1).is_some()
    }

    /// Makes the page in a place the most recent.
    #[inline]
    fn use_place(&mut self, place: usize) {
        self.uses += 1;
        self.used[place] = self.uses;
    }

    /// Makes a page the most recent of its set, if it is there. Returns whether it is.
    #[inline]
    fn touch(&mut self, page: Page) -> bool {
        let hint = self.hints[page.0 as usize % HINTS] as usize;
        if self.entries[hint] == page.0 + 1 {
            self.use_place(hint);
            return true;
        }
        let found = self.find(page, page.0 + 1);
        if let Some(place) = found {
            self.hints[page.0 as usize % HINTS] = place as u32;
            self.use_place(place);
        }
        found.is_some()
    }

    /// Returns the place of the least recent page of a set that is full.
    fn least_recent(&self, page: Page) -> usize {
        let set = self.set(page);
        let used = self.used[set.clone()].iter().zip(set);
        used.min().expect("a set has ways").1
    }

    /// Puts a page into its set, in place of an empty entry or of the least recent.
    fn insert(&mut self, page: Page) {
        let place = self.find(page, 0).unwrap_or_else(|| self.least_recent(page));
        self.entries[place] = page.0 + 1;
        self.hints[page.0 as usize % HINTS] = place as u32;
        self.use_place(place);
    }

    /// Removes and returns the least recent page of the set of `page`, if that set is full.
    fn make_room(&mut self, page: Page) -> Option<Page> {
        if self.find(page, 0).is_some() {
            return None;
        }
        let place = self.least_recent(page);
        Some(Page(std::mem::take(&mut self.entries[place]) - 1))
    }

    fn remove(&mut self, page: Page) {
        if let Some(place) = self.find(page, page.0 + 1) {
            self.entries[place] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::mix;

    const CORE: CoreId = CoreId(0);

    /// Returns TLBs with a first level of 2 entries in one set, and a second level of `second`
    /// entries in one set, if that is not 0.
    fn tlbs(second: u64) -> Tlbs {
        let mut config = Config::default();
        (config.tlb.entries, config.tlb.assoc) = (2, 2);
        (config.tlb.l2_entries, config.tlb.l2_assoc) = (second, second.max(1));
        Tlbs::new(1, &config)
    }

    fn fill(tlbs: &mut Tlbs, page: u64) -> Option<Page> {
        let victim = tlbs.make_room(CORE, Page(page));
        tlbs.fill(CORE, Page(page), Cycle(0));
        victim
    }

    #[test]
    fn the_least_recent_page_leaves() {
        let mut tlbs = tlbs(0);
        assert_eq!(tlbs.hit(CORE, Page(0)), None);
        assert_eq!((fill(&mut tlbs, 0), fill(&mut tlbs, 1)), (None, None));
        assert_eq!(tlbs.hit(CORE, Page(0)), Some(0));
        assert_eq!(fill(&mut tlbs, 2), Some(Page(1)));
        assert_eq!((tlbs.holders(Page(1)), tlbs.holders(Page(2))), (0, 1));
        assert_eq!(tlbs.hit(CORE, Page(1)), None);
        assert_eq!(tlbs.hit(CORE, Page(0)), Some(0));
    }

    #[test]
    fn a_translation_is_not_there_before_it_has_arrived() {
        let mut tlbs = tlbs(0);
        tlbs.fill(CORE, Page(0), Cycle(90));
        tlbs.fill(CORE, Page(1), Cycle(50));
        let mut arrival = |page, now| tlbs.arrival(CORE, Page(page), Cycle(now)).0;
        assert_eq!([arrival(0, 10), arrival(1, 10), arrival(2, 10)], [90, 50, 10]);
        assert_eq!([arrival(1, 60), arrival(0, 60), arrival(0, 90)], [60, 90, 90]);
        tlbs.fill(CORE, Page(1), Cycle(200));
        tlbs.fill(CORE, Page(1), Cycle(300));
        assert_eq!(tlbs.arrival(CORE, Page(1), Cycle(250)), Cycle(300));
    }

    #[test]
    fn a_page_that_leaves_the_second_level_leaves_the_first() {
        let mut tlbs = tlbs(3);
        for page in 0..3 {
            assert_eq!(fill(&mut tlbs, page), None);
        }
        assert!(tlbs.hit(CORE, Page(0)).is_some_and(|cycles| cycles > 0), "in the second level");
        assert_eq!(tlbs.hit(CORE, Page(0)), Some(0), "in the first by now");
        tlbs.hit(CORE, Page(1));
        tlbs.hit(CORE, Page(2));
        assert_eq!(fill(&mut tlbs, 3), Some(Page(0)));
        assert_eq!(tlbs.hit(CORE, Page(0)), None);
    }

    #[test]
    fn a_page_that_leaves_the_second_level_leaves_the_first_however_recent_it_is_there() {
        let mut tlbs = tlbs(3);
        for page in 0..3 {
            assert_eq!(fill(&mut tlbs, page), None);
        }
        for (page, victim) in [(3, 0), (4, 1)] {
            // A hit in the first level is none in the second.
            assert_eq!(tlbs.hit(CORE, Page(1)), Some(0));
            assert_eq!(fill(&mut tlbs, page), Some(Page(victim)));
        }
        assert_eq!(tlbs.hit(CORE, Page(1)), None);
    }

    #[test]
    fn a_page_that_is_taken_from_a_core_is_in_no_level() {
        let mut tlbs = tlbs(4);
        fill(&mut tlbs, 0);
        fill(&mut tlbs, 1);
        tlbs.remove(CORE, Page(1));
        assert_eq!((tlbs.hit(CORE, Page(1)), tlbs.holders(Page(1))), (None, 0));
        assert_eq!((tlbs.hit(CORE, Page(0)), tlbs.holders(Page(0))), (Some(0), 1));
    }

    /// Whatever places a level remembers, a set acts as a list in order of recency.
    #[test]
    fn a_level_is_sets_in_order_of_recency() {
        for (entries, ways) in [(8, 8), (8, 2), (512, 512), (3, 1)] {
            let mut level = Level::new(entries, ways);
            let sets = entries / ways;
            let mut lists: Vec<Vec<Page>> = vec![Vec::new(); sets as usize];
            for turn in 0..20_000 {
                let random = mix(turn);
                let page = Page(random % (2 * entries) + (random >> 20 & 1) * HINTS as u64);
                let list = &mut lists[(page.0 % sets) as usize];
                let held = list.iter().position(|&other| other == page);
                assert_eq!(level.holds(page), held.is_some());
                if random >> 40 & 7 == 0 {
                    level.remove(page);
                    list.retain(|&other| other != page);
                    continue;
                }
                assert_eq!(level.touch(page), held.is_some());
                if let Some(place) = held {
                    list.remove(place);
                } else {
                    let full = list.len() == ways as usize;
                    let victim = full.then(|| list.pop()).flatten();
                    assert_eq!(level.make_room(page), victim, "turn {turn}");
                    level.insert(page);
                }
                list.insert(0, page);
            }
        }
    }
}
