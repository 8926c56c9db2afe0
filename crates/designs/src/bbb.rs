//! BBB: battery-backed buffers (HPCA 2021). A small buffer beside each core's first level takes
//! every store to persistent memory at the moment at which it becomes visible, and a battery keeps
//! the buffer. So there is nothing to flush and nothing to wait for, and only some lines need a
//! battery.
//!
//! A line is in one buffer at most: it moves when another core stores to it. Buffers drain in the
//! background from a threshold on. Dirty lines that leave the caches are dropped. Two rules of such
//! buffers are no switches, since no campaign could notice their absence here: an eviction that is
//! not dropped writes bytes that survive already, and a fill that misses an entry has the newest
//! bytes all the same, since the caches of the simulator hold no bytes. Sizes are from memory of
//! the paper (HPCA 2021).

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::Location::AtCore;
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Gasp, Granularity, KeptBy, Model,
    Needs, Ordering, Progress, Setup, Store, Structure,
};
use model::device::Write;
use model::image::PowerLoss;
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineData, LineMap, PerCore};

model::params! {
    /// Sizes.
    pub struct BbbParams {
        /// Entries of a core's buffer, a line each (paper, from memory: 32).
        entries = 32 in 1..=1024, tight [4, 4, 4, 4, 4, 1];
        /// Percent of the entries in use at which the oldest are drained (paper, from memory: 75).
        threshold = 75 in 1..=100;
    }
}

model::rules! {
    /// What keeps a store durable from when it is visible.
    pub struct BbbRules {
        /// A line is in one buffer only: when another core stores to it, the entry moves to that
        /// core's.
        move_on_write,
        /// An entry stays until a controller has accepted its bytes.
        keep_until_durable,
        /// An entry that was stored to while its older bytes were under way stays, and drains
        /// again.
        keep_what_changed,
        /// A store waits while the buffer is full: the battery saves no more than the buffer holds.
        stall_when_full,
    }
}

/// The hardware.
pub struct Bbb {
    params: BbbParams,
    rules: BbbRules,
    path: u64,
    log_base: u64,
    /// The number of undrained entries from which on the oldest are drained.
    drain_from: usize,
    buffers: PerCore<Buffer>,
    /// The core whose buffer has each line.
    holders: LineMap<CoreId>,
    stamps: u64,
    counts: Counts,
}

/// One core's buffer.
struct Buffer {
    /// The entries, oldest first. One beyond the buffer's size is a store that waits for room.
    entries: VecDeque<Entry>,
    /// How many entries are not under way.
    kept: usize,
    /// The earliest time of the next drain: the buffer drains one entry a cycle.
    next_drain: Cycle,
    draining: bool,
    store_waits: bool,
}

struct Entry {
    line: Line,
    /// The line's newest bytes.
    data: LineData,
    /// When its last store leaves the core, with the line there; the entry is drained no earlier.
    leaves: Cycle,
    stamp: u64,
    /// Whether its bytes, or older ones, are on their way to a controller.
    under_way: bool,
    /// Whether it was stored to since.
    changed: bool,
}

/// The timed events of BBB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbbEvent {
    /// A buffer drains its oldest entry.
    Drain(CoreId),
    /// A core's entry is durable in memory.
    Durable(CoreId, u64),
    /// The acknowledgement of a core's entry is back at its buffer.
    Acknowledged(CoreId, u64),
}

model::counters! {
    struct Counts {
        entries,
        merged "stores_merged",
        moved "entries_moved",
        drained "entries_drained",
        dropped "evictions_dropped",
        full "buffer_full",
        entries_max,
    }
}

impl Design for Bbb {
    const CARD: Card = Card {
        name: "bbb",
        paper: "BBB, HPCA 2021",
        family: "ordering",
        summary: "battery-backed persist buffers",
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs: Needs::Adr,
    };
    const ORDERING: Ordering = Ordering { model: Some(Model::Visible), ..Ordering::NONE };
    type Params = BbbParams;
    type Rules = BbbRules;
    type Event = BbbEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Bbb>) -> Bbb {
        let share = setup.params.entries * setup.params.threshold / 100;
        Bbb {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            path: setup.shape.path,
            log_base: setup.shape.log_base,
            drain_from: share.max(1) as usize,
            buffers: PerCore::new(setup.shape.cores, |_| Buffer {
                entries: VecDeque::new(),
                kept: 0,
                next_drain: Cycle(0),
                draining: false,
                store_waits: false,
            }),
            holders: LineMap::default(),
            stamps: 0,
            counts: Counts::default(),
        }
    }

    fn brings_stores(&self) -> bool {
        true
    }

    fn store(&mut self, store: &Store, below: &mut Below<BbbEvent>) -> Progress {
        let (core, line, at) = (store.core, store.word.line(), store.at);
        let data = below.line(line);
        match self.holders.get(&line) {
            Some(&holder) if holder == core => {
                let entries = &mut self.buffers[core].entries;
                let entry = entries.iter_mut().rev().find(|entry| entry.line == line);
                let entry = entry.expect("the holder has the line");
                (entry.data, entry.changed) = (data, entry.under_way);
                entry.leaves = entry.leaves.max(store.leaves);
                self.counts.merged += 1;
                return Progress::Done(at);
            }
            Some(&holder) if self.rules.move_on_write => {
                self.counts.moved += 1;
                self.take(holder, line);
                self.wake_if_there_is_room(holder, at, below);
            }
            _ => (),
        }
        self.append(store, data);
        self.drain_soon(core, at, below);
        let buffer = &mut self.buffers[core];
        let full = buffer.entries.len() as u64 > self.params.entries;
        if full && self.rules.stall_when_full {
            self.counts.full += 1;
            buffer.store_waits = true;
            return Progress::Wait;
        }
        Progress::Done(at)
    }

    fn evict(&mut self, _evict: &Evict, _below: &mut Below<BbbEvent>) -> Disposition<BbbEvent> {
        self.counts.dropped += 1;
        Disposition::Taken
    }

    fn event(&mut self, at: Cycle, event: BbbEvent, below: &mut Below<BbbEvent>) {
        match event {
            BbbEvent::Drain(core) => self.drain(core, at, below),
            BbbEvent::Durable(core, stamp) => {
                below.at(at + self.path, BbbEvent::Acknowledged(core, stamp));
            }
            BbbEvent::Acknowledged(core, stamp) => self.acknowledged(core, stamp, at, below),
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        for entry in self.buffers.iter().flat_map(|(_, buffer)| &buffer.entries) {
            gasp.save(entry.line.address(), &entry.data)?;
        }
        Ok(())
    }

    fn hardware(setup: &Setup<'_, Bbb>) -> Vec<Structure> {
        let cores = u64::from(setup.shape.cores);
        let battery = |name, count, place| {
            Structure::new(name, (LINE_BYTES + 8) * 8, count, place).kept(KeptBy::Battery)
        };
        let entries = setup.params.entries * cores;
        vec![
            battery("bbPB entry (64 B line, 8 B address)", entries, AtCore("first-level cache")),
            battery("store that waits for room", cores, AtCore("store queue")),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

impl Bbb {
    fn append(&mut self, store: &Store, data: LineData) {
        let (core, line, leaves) = (store.core, store.word.line(), store.leaves);
        self.stamps += 1;
        let buffer = &mut self.buffers[core];
        let stamp = self.stamps;
        buffer.entries.push_back(Entry {
            line,
            data,
            leaves,
            stamp,
            under_way: false,
            changed: false,
        });
        buffer.kept += 1;
        self.holders.insert(line, core);
        self.counts.entries += 1;
        let held = (buffer.entries.len() as u64).min(self.params.entries);
        self.counts.entries_max = self.counts.entries_max.max(held);
    }

    /// Takes a line's entry from a buffer. Older bytes of the line may be on their way; bytes that
    /// are sent later arrive later.
    fn take(&mut self, holder: CoreId, line: Line) {
        let buffer = &mut self.buffers[holder];
        let index = buffer.entries.iter().position(|entry| entry.line == line);
        let entry = buffer.entries.remove(index.expect("the holder has the line"));
        buffer.kept -= usize::from(entry.is_some_and(|entry| !entry.under_way));
    }

    fn drain_soon(&mut self, core: CoreId, at: Cycle, below: &mut Below<BbbEvent>) {
        let buffer = &mut self.buffers[core];
        if !buffer.draining && buffer.kept >= self.drain_from {
            buffer.draining = true;
            below.at(at.max(buffer.next_drain), BbbEvent::Drain(core));
        }
    }

    fn drain(&mut self, core: CoreId, at: Cycle, below: &mut Below<BbbEvent>) {
        let buffer = &mut self.buffers[core];
        buffer.draining = false;
        buffer.next_drain = at + 1;
        if buffer.kept < self.drain_from {
            return;
        }
        let left = |entry: &Entry| !entry.under_way && entry.leaves <= at;
        let Some(index) = buffer.entries.iter().position(left) else {
            let kept = buffer.entries.iter().filter(|entry| !entry.under_way);
            let first = kept.map(|entry| entry.leaves).min().expect("an entry is kept");
            buffer.draining = true;
            return below.at(first, BbbEvent::Drain(core));
        };
        let entry = &mut buffer.entries[index];
        (entry.under_way, entry.changed) = (true, false);
        buffer.kept -= 1;
        let Entry { line, data, stamp, .. } = *entry;
        self.counts.drained += 1;
        let class = if line.address() >= self.log_base { Class::Log } else { Class::Data };
        let write = Write::whole(line, data, class);
        below.send(at, write, Notify::Design(BbbEvent::Durable(core, stamp)));
        if !self.rules.keep_until_durable {
            self.forget(core, index);
        }
        self.drain_soon(core, at, below);
    }

    fn forget(&mut self, core: CoreId, index: usize) {
        let entry = self.buffers[core].entries.remove(index).expect("it was found");
        if self.holders.get(&entry.line) == Some(&core) {
            self.holders.remove(&entry.line);
        }
    }

    fn acknowledged(&mut self, core: CoreId, stamp: u64, at: Cycle, below: &mut Below<BbbEvent>) {
        let buffer = &mut self.buffers[core];
        // The entry may have moved to another buffer.
        if let Ok(index) = buffer.entries.binary_search_by_key(&stamp, |entry| entry.stamp) {
            let entry = &mut buffer.entries[index];
            if entry.changed && self.rules.keep_what_changed {
                (entry.under_way, entry.changed) = (false, false);
                buffer.kept += 1;
            } else {
                self.forget(core, index);
            }
        }
        self.wake_if_there_is_room(core, at, below);
        self.drain_soon(core, at, below);
    }

    fn wake_if_there_is_room(&mut self, core: CoreId, at: Cycle, below: &mut Below<BbbEvent>) {
        let buffer = &mut self.buffers[core];
        if buffer.store_waits && buffer.entries.len() as u64 <= self.params.entries {
            buffer.store_waits = false;
            below.wake(core, at);
        }
    }
}
