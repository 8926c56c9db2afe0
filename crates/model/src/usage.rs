//! How busy controllers and memories are: how full the write-pending queues are, how long reads and
//! writes take at the controllers, and how busy banks and buses are. None of these counts changes
//! what the machine does.

/// How many of a queue's places are taken, over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// How many places there are.
    pub places: u64,
    taken: u64,
    since: u64,
    /// Cycles that were counted.
    pub cycles: u64,
    /// Cycles times places that were taken.
    pub sum: u64,
    /// Cycles in which every place was taken.
    pub full: u64,
    /// The most places that were taken at a time.
    pub most: u64,
}

impl Occupancy {
    /// The occupancy of a queue with so many places, all free.
    pub fn new(places: u64) -> Occupancy {
        Occupancy { places, ..Occupancy::default() }
    }

    /// Notes that `taken` places are taken from `at` on.
    #[inline]
    pub fn change(&mut self, at: u64, taken: u64) {
        let passed = at.saturating_sub(self.since);
        self.cycles += passed;
        self.sum += passed * self.taken;
        self.full += if self.taken == self.places { passed } else { 0 };
        self.since += passed;
        self.taken = taken;
        self.most = self.most.max(taken);
    }

    /// Forgets what was counted before `at`; the places that are taken stay taken.
    pub fn restart(&mut self, at: u64) {
        *self =
            Occupancy { taken: self.taken, since: at, most: self.taken, ..Self::new(self.places) };
    }

    /// Returns the occupancy counted up to `at`.
    fn until(&self, at: u64) -> Occupancy {
        let mut counted = self.clone();
        counted.change(at, self.taken);
        counted
    }
}

/// How long something took, in cycles: how often it happened, the sum, and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How often it happened.
    pub count: u64,
    /// The sum of all.
    pub sum: u64,
    /// The longest.
    pub max: u64,
}

impl Durations {
    /// Counts one more, which took so many cycles.
    #[inline]
    pub fn add(&mut self, cycles: u64) {
        self.count += 1;
        self.sum += cycles;
        self.max = self.max.max(cycles);
    }

    fn join(&mut self, other: Durations) {
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

/// What the banks and the bus of one memory did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BankUse {
    /// Cycles for which each bank was booked, for reads and for writes of its cells.
    pub busy: Vec<u64>,
    /// Cycles for which the bus was booked.
    pub bus: u64,
    /// Reads that went to a bank.
    pub reads: u64,
    /// Reads that found their row open.
    pub row_hits: u64,
}

impl BankUse {
    /// The use of so many banks, of nothing yet.
    pub fn new(banks: usize) -> BankUse {
        BankUse { busy: vec![0; banks], ..BankUse::default() }
    }

    /// Adds what the memories of another controller did, whose banks are others.
    fn join(&mut self, other: BankUse) {
        self.busy.extend(other.busy);
        self.bus += other.bus;
        self.reads += other.reads;
        self.row_hits += other.row_hits;
    }
}

/// How busy the controllers and their memories were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many controllers there are.
    pub controllers: u64,
    /// The write-pending queues, all together; `most` is the maximum of one queue.
    pub wpq: Occupancy,
    /// Writes that found no room in their controller's queue, or others waiting for it, and how
    /// long they waited.
    pub waited: Durations,
    /// Reads of persistent memory, by caches and designs: from when a request reaches its
    /// controller until its answer leaves.
    pub pm_reads: Durations,
    /// The same for reads of DRAM.
    pub dram_reads: Durations,
    /// Persistent memory behind all controllers.
    pub pm: BankUse,
    /// DRAM behind all controllers.
    pub dram: BankUse,
}

impl Usage {
    /// The usage of one controller whose queue has so many places; its memories count their own.
    pub fn new(places: u64) -> Usage {
        Usage { controllers: 1, wpq: Occupancy::new(places), ..Usage::default() }
    }

    /// Begins the measured region at `at`.
    pub fn restart(&mut self, at: u64) {
        let mut wpq = std::mem::take(&mut self.wpq);
        wpq.restart(at);
        *self = Usage { controllers: 1, wpq, ..Usage::default() };
    }

    /// Returns what was counted up to `at`, with what the memories counted.
    pub fn until(&self, at: u64, pm: BankUse, dram: BankUse) -> Usage {
        Usage { wpq: self.wpq.until(at), pm, dram, ..self.clone() }
    }

    /// Adds another controller.
    pub fn join(&mut self, other: Usage) {
        self.controllers += other.controllers;
        self.wpq.places += other.wpq.places;
        self.wpq.cycles += other.wpq.cycles;
        self.wpq.sum += other.wpq.sum;
        self.wpq.full += other.wpq.full;
        self.wpq.most = self.wpq.most.max(other.wpq.most);
        self.waited.join(other.waited);
        self.pm_reads.join(other.pm_reads);
        self.dram_reads.join(other.dram_reads);
        self.pm.join(other.pm);
        self.dram.join(other.dram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_as_full_as_it_was_for_as_long_as_it_was() {
        let mut queue = Occupancy::new(4);
        queue.change(10, 2);
        queue.change(15, 4);
        queue.change(18, 3);
        let seen = queue.until(20);
        assert_eq!((seen.sum, seen.full, seen.most), (5 * 2 + 3 * 4 + 2 * 3, 3, 4));
        queue.restart(20);
        queue.change(30, 0);
        let seen = queue.until(100);
        assert_eq!((seen.sum, seen.full, seen.most), (10 * 3, 0, 3), "of the measured region");
    }

    /// A queue that is full for a single cycle is full in that one.
    #[test]
    fn a_queue_may_be_full_for_one_cycle() {
        let mut queue = Occupancy::new(1);
        for at in [10, 20] {
            queue.change(at, 1);
            queue.change(at + 1, 0);
        }
        let seen = queue.until(30);
        assert_eq!((seen.cycles, seen.sum, seen.full), (30, 2, 2));
    }

    /// The region begins at the time of the last core: an event that was due earlier may come
    /// after.
    #[test]
    fn what_happens_before_the_region_began_is_not_of_it() {
        let mut queue = Occupancy::new(4);
        queue.restart(100);
        queue.change(90, 4);
        let seen = queue.until(110);
        assert_eq!((seen.cycles, seen.sum, seen.full), (10, 40, 10));
    }

    #[test]
    fn controllers_add_up() {
        let mut one = Usage::new(4);
        one.wpq.change(0, 4);
        one.waited.add(7);
        one.pm_reads.add(100);
        let pm = BankUse { busy: vec![3, 4], bus: 5, reads: 2, row_hits: 1 };
        let mut all = one.until(10, pm.clone(), BankUse::new(1));
        let mut two = Usage::new(4);
        two.wpq.change(5, 1);
        two.waited.add(9);
        two.dram_reads.add(11);
        all.join(two.until(10, pm, BankUse::new(1)));
        assert_eq!((all.controllers, all.wpq.places), (2, 8));
        assert_eq!((all.wpq.cycles, all.wpq.sum, all.wpq.full, all.wpq.most), (20, 45, 10, 4));
        assert_eq!(all.waited, Durations { count: 2, sum: 16, max: 9 });
        assert_eq!((all.pm_reads.sum, all.dram_reads.sum), (100, 11));
        assert_eq!(all.pm, BankUse { busy: vec![3, 4, 3, 4], bus: 10, reads: 4, row_hits: 2 });
    }
}
