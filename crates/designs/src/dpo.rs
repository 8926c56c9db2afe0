//! DPO: delegated persist ordering (Kolli et al., MICRO 2016).
//!
//! Every store to persistent memory also goes to a persist buffer beside the core's first level, a
//! FIFO, and a fence is an entry of it: the core waits for neither. Coherence replies tell which
//! entries and fences of other cores come before; a register (AccumDP) gathers these, and the next
//! entry takes them along. An entry drains to the controllers when the entries that it depends on
//! have drained; the controllers keep one order of all cores' fences, and no write overtakes a
//! fence. Dirty lines that leave the caches are dropped: the buffers are the only writers of
//! persistent memory.
//!
//! The rules are those of the paper (MICRO 2016). Ours are `dsync`, which waits until a core's
//! stores are durable (the paper has no such instruction), and the protocol of several controllers.
//! No hook tells a design of requests for volatile lines, so the filters know accesses to
//! persistent memory alone, where the paper's know all.

use model::controller::Notify;
use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Fence, FenceKind, Fill,
    Gasp, Granularity, KeptBy, Load, Model, Needs, Ordering, Progress, Setup, Store, Structure,
    Transfer,
};
use model::device::Write;
use model::image::PowerLoss;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, PerCore};

mod any_order;
mod buffer;
mod drain;
mod queue;

use buffer::{Buffer, Entry, State, Wait, What};
use queue::{Found, Queue};

model::params! {
    /// Sizes and policies.
    pub struct DpoParams {
        /// Entries of a core's persist buffer, each a line or a fence (ours: as many as HOPS has;
        /// no size of the paper's is known to us).
        entries = 32 in 1..=1024, tight [1, 4, 2, 4];
        /// Entries of a controller's ordered write queue, each a line or a fence (ours: as many as
        /// a buffer has).
        queue = 32 in 1..=4096, tight [1, 2];
        /// Bits of a fence's Bloom filter, which has two hash functions (ours: with
        /// 16 lines accessed behind the fence it takes one in 270 others for one of them). With 0
        /// there is none: a store is not ordered after what another core, that had loaded the word,
        /// did before its fence.
        filter_bits = 512 in 0..=65536, tight [8, 0];
        /// Which entry takes a store. `epoch`: that of its line since the last fence, if it has not
        /// left (ours, as in HOPS). `none`: one of its own.
        merges: Merges = Epoch;
    }
}

model::choices! {
    /// Which stores share an entry.
    pub enum Merges {
        /// Those to a line since the last fence.
        Epoch = "epoch",
        None = "none",
    }
}

model::rules! {
    /// What keeps the order of stores (MICRO'16; a dsync and several controllers are ours).
    pub struct DpoRules {
        /// A fence is an entry of the buffer.
        fence_is_an_entry,
        /// A dsync waits until the controllers have retired its marker.
        dsync_waits,
        /// A buffer drains its entries in their order: no write leaves before an older fence.
        first_in_first_out,
        /// A controller starts no write before every marker that came earlier is retired.
        keep_markers,
        /// A marker is retired when every controller has reported that all before it is durable.
        /// (Ours: the paper has one controller.)
        all_controllers_report,
        /// Writes of one line without a marker between them become durable in the order in which
        /// they came.
        line_in_order,
        /// A line that is stored to before and after a fence has two entries.
        keep_versions,
        /// A store that brings dependences has an entry of its own: an older one left without them.
        own_entry_with_dependences,
        /// A load of a line that another core's buffer knows puts that entry into AccumDP (RAW).
        order_after_read,
        /// A store to a line that another core's buffer knows puts that entry into AccumDP (WAW).
        order_after_write,
        /// A load by another core leaves an entry the youngest copy of its line: a third core's
        /// load depends on it, too. (Ours: in what is known of the paper, any request clears Y.)
        read_leaves_youngest,
        /// A fence takes the dependences in AccumDP, as a write does. Otherwise writes after the
        /// fence would be ordered after no marker that follows the dependence.
        fence_takes_dependences,
        /// The oldest entry of a buffer waits until the entries that it depends on have drained.
        wait_for_dependences,
        /// A dirty line that leaves the caches is dropped: it would overtake older markers.
        drop_evictions,
        /// A line that no cache has is looked up in the buffers, which may have its youngest copy.
        look_up_misses,
    }
}

/// The hardware.
pub struct Dpo {
    params: DpoParams,
    rules: DpoRules,
    path: u64,
    /// Cycles of a controller's front end, which lies before the ordered queue.
    frontend: u64,
    log_base: u64,
    /// Whether the caches survive a power failure; what only buffers and queues have then does,
    /// too.
    caches_survive: bool,
    buffers: PerCore<Buffer>,
    queue: Queue,
    /// What a look at the queues finds; empty in between.
    found: Found,
    stamps: u64,
    /// The core that looks for room first when there is some the next time.
    turn: u8,
    counts: Counts,
}

/// The timed events of DPO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DpoEvent {
    /// A buffer looks whether its oldest entry may leave.
    Drain(CoreId),
    /// A core's entry has come to the controllers.
    Arrived(CoreId, u64),
    /// All buffers hear that a core's entry has drained.
    Heard(CoreId, u64),
    /// A core's write is durable.
    Durable(CoreId, u64),
    /// All controllers hear that one of them has nothing left to do before a core's marker.
    Reported(CoreId, u64, u8),
    /// All buffers hear of room for an entry: at one controller, or at all of them.
    Room(Option<u8>),
    /// A core hears that the marker that it waits for is retired.
    Synced(CoreId),
}

model::counters! {
    struct Counts {
        entries,
        merged "stores_merged",
        fences,
        after_read "dependences_after_read",
        after_write "dependences_after_write",
        by_filter "dependences_on_fences",
        waits "waits_for_dependences",
        answered "misses_answered",
        dropped "evictions_dropped",
        full "buffer_full",
        queue_full,
        entries_max,
    }
}

/// The machine below this design.
type Floor = Below<DpoEvent>;

impl Design for Dpo {
    const CARD: Card = Card {
        name: "dpo",
        paper: "Kolli et al., MICRO 2016",
        family: "ordering",
        summary: "persist buffers that delegate the order of fences to the controllers",
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const ORDERING: Ordering =
        Ordering { model: Some(Model::Epoch), fences: true, flushes: false, lines_leave: true };
    type Params = DpoParams;
    type Rules = DpoRules;
    type Event = DpoEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Dpo>) -> Dpo {
        let shape = setup.shape;
        Dpo {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            path: shape.path,
            frontend: shape.config.cycles(shape.config.controller.frontend),
            log_base: shape.log_base,
            caches_survive: shape.caches_survive(),
            buffers: PerCore::new(shape.cores, |_| Buffer::new(setup.params.filter_bits)),
            queue: Queue::new(shape.controllers, setup.params.queue),
            found: Found::default(),
            stamps: 0,
            turn: 0,
            counts: Counts::default(),
        }
    }

    #[inline]
    fn load(&mut self, load: &Load, _below: &mut Floor) -> Progress {
        self.buffers[load.core].accessed(load.word.line());
        Progress::Done(load.at)
    }

    fn brings_stores(&self) -> bool {
        true
    }

    fn store(&mut self, store: &Store, below: &mut Floor) -> Progress {
        let Store { core, word, new, at, leaves, .. } = *store;
        let line = word.line();
        if store.past_caches {
            self.order_after(core, line, true);
        }
        let buffer = &mut self.buffers[core];
        buffer.accessed(line);
        if self.params.merges == Merges::Epoch && buffer.merge(word, new, leaves, &self.rules) {
            self.counts.merged += 1;
            return Progress::Done(at);
        }
        let what = What::Write {
            line,
            data: below.line(line),
            class: if line.address() >= self.log_base { Class::Log } else { Class::Data },
            youngest: true,
        };
        buffer.supersede(line);
        self.counts.entries += 1;
        self.append(core, what, leaves);
        self.kick(core, at, below);
        self.wait_for_room(core, at)
    }

    fn fence(&mut self, fence: &Fence, below: &mut Floor) -> Progress {
        let Fence { core, at, drained, .. } = *fence;
        match fence.kind {
            FenceKind::Order if self.rules.fence_is_an_entry => {
                self.append(core, What::Fence, at);
                self.kick(core, at, below);
                self.wait_for_room(core, at)
            }
            FenceKind::Durable => {
                let id = self.append(core, What::Fence, at);
                self.kick(core, at, below);
                if !self.rules.dsync_waits {
                    return self.wait_for_room(core, at);
                }
                // What is written to volatile memory is in no buffer.
                let drained = drained.max(below.answered(core));
                self.buffers[core].wait(Wait::Sync(id, drained));
                Progress::Wait
            }
            FenceKind::Flush(line, class, _) => {
                // Nothing is flushed, but the flush says what the store was for.
                self.buffers[core].count_as(line, class);
                Progress::Done(at)
            }
            FenceKind::Order => Progress::Done(at),
        }
    }

    /// Where no cache has a line, a buffer answers, no sooner than memory would have (ours).
    fn fill(&mut self, fill: &Fill, _below: &mut Floor) -> Cycle {
        let Fill { core, line, memory, write, at, .. } = *fill;
        if !memory || self.rules.look_up_misses {
            self.order_after(core, line, write);
            self.counts.answered += u64::from(memory && self.has_write(line));
        }
        at
    }

    fn transfer(&mut self, transfer: &Transfer, _below: &mut Floor) -> Cycle {
        let Transfer { line, to, write, at, .. } = *transfer;
        self.order_after(to, line, write);
        at
    }

    fn evict(&mut self, evict: &Evict, _below: &mut Floor) -> Disposition<DpoEvent> {
        if !self.rules.drop_evictions {
            return Disposition::Home { at: evict.at, notify: Notify::Nobody };
        }
        self.counts.dropped += 1;
        Disposition::Taken
    }

    fn event(&mut self, at: Cycle, event: DpoEvent, below: &mut Floor) {
        match event {
            DpoEvent::Drain(core) => self.drain(core, at, below),
            DpoEvent::Arrived(core, id) => self.arrived(core, id, at, below),
            DpoEvent::Heard(core, id) => self.heard(core, id, at, below),
            DpoEvent::Durable(core, id) => {
                let controller = self.queue.durable(core, id);
                below.at(at + self.path, DpoEvent::Room(Some(controller)));
                self.go_on(at, below);
            }
            DpoEvent::Room(controller) => {
                self.queue.release(controller);
                self.kick_all(at, below);
            }
            DpoEvent::Reported(core, id, controller) => {
                self.queue.reported(core, id, controller);
                self.go_on(at, below);
            }
            DpoEvent::Synced(core) => {
                if let Some(Wait::Sync(_, drained)) = self.buffers[core].waits.take() {
                    below.wake(core, at.max(drained));
                }
            }
        }
    }

    /// Where the caches survive, so do the writes in queues and buffers, in the order in which they
    /// would have drained. They have every byte that is not durable, whichever lines the energy for
    /// the caches was enough for.
    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        if !self.caches_survive {
            return Ok(());
        }
        for write in self.queue.writes() {
            gasp.save(write.line.address(), &write.data)?;
        }
        for (_, entry) in self.undrained() {
            if let What::Write { line, data, .. } = &entry.what {
                gasp.save(line.address(), data)?;
            }
        }
        Ok(())
    }

    fn could_be_durable(&self, below: &Floor, arrived: &mut dyn FnMut() -> bool) -> Vec<Write> {
        self.any_order(below, arrived)
    }

    /// Many words, most of whose lines several cores store to, and hardly any room (all numbers are
    /// ours): a log seldom needs an order that only a load has seen.
    fn corner(trial: u64, _has_lives: bool) -> Corner {
        let mut corner = Corner::default();
        if trial % 8 == 6 {
            corner.has_four_cores = true;
            corner.set("workload.words", 128);
            corner.set("controller.arrival_jitter", "300cycles");
            corner.set("design.entries", 4);
            corner.set("design.queue", 1);
            corner.set("design.filter_bits", 0);
        }
        corner
    }

    fn hardware(setup: &Setup<'_, Dpo>) -> Vec<Structure> {
        hardware(setup)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

// Entries, and what they come after.

impl Dpo {
    /// Appends an entry with what AccumDP holds. Returns its number among the entries of its core.
    fn append(&mut self, core: CoreId, what: What, leaves: Cycle) -> u64 {
        self.stamps += 1;
        let is_fence = matches!(what, What::Fence);
        let buffer = &mut self.buffers[core];
        let takes = !is_fence || self.rules.fence_takes_dependences;
        let after = if takes { std::mem::take(&mut buffer.accumulated) } else { Vec::new() };
        let (stamp, state) = (self.stamps, State::Waiting);
        let id = buffer.push(Entry { id: 0, stamp, what, after, leaves, state });
        self.counts.fences += u64::from(is_fence);
        let held = (buffer.entries.len() as u64).min(self.params.entries);
        self.counts.entries_max = self.counts.entries_max.max(held);
        id
    }

    /// Makes a core wait if the buffer has no room for its newest entry.
    fn wait_for_room(&mut self, core: CoreId, at: Cycle) -> Progress {
        let buffer = &mut self.buffers[core];
        if buffer.entries.len() as u64 <= self.params.entries {
            return Progress::Done(at);
        }
        self.counts.full += 1;
        buffer.wait(Wait::Room);
        Progress::Wait
    }

    /// Orders a core that asks for a line after every other buffer that knows the line: as the
    /// youngest copy, or in a fence's filter. The newest such entry of each comes before the core's
    /// next one.
    fn order_after(&mut self, core: CoreId, line: Line, write: bool) {
        let ordered =
            if write { self.rules.order_after_write } else { self.rules.order_after_read };
        let clears = write || !self.rules.read_leaves_youngest;
        for on in (0..self.buffers.cores()).map(CoreId).filter(|on| *on != core) {
            let copy = self.buffers[on].youngest(line, clears);
            let fence = self.buffers[on].accessed_after(line);
            let Some(id) = copy.max(fence).filter(|_| ordered) else { continue };
            self.counts.by_filter += u64::from(fence > copy);
            self.counts.after_write += u64::from(write);
            self.counts.after_read += u64::from(!write);
            self.buffers[core].accumulate(on, id);
        }
    }

    /// Whether a buffer, the core's own included, or an ordered queue has a write of a line.
    fn has_write(&self, line: Line) -> bool {
        self.buffers.iter().any(|(_, buffer)| buffer.has_write(line))
            || self.queue.writes().any(|write| write.line == line)
    }

    /// The entries that have not come to the controllers, in the order in which they were made.
    fn undrained(&self) -> Vec<(CoreId, &Entry)> {
        let entries = self.buffers.iter().flat_map(|(core, buffer)| {
            let left = buffer.entries.iter().filter(|entry| entry.state != State::Arrived);
            left.map(move |entry| (core, entry))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.stamp);
        entries
    }
}

/// Where a width is not known, an entry's number has 64 bits and a line's address 58.
fn hardware(setup: &Setup<'_, Dpo>) -> Vec<Structure> {
    let (shape, params) = (setup.shape, setup.params);
    let cores = u64::from(shape.cores);
    let entries = params.entries * cores;
    let queued = params.queue * u64::from(shape.controllers);
    let plain = Structure::new;
    let kept_by = if shape.caches_survive() { KeptBy::Battery } else { KeptBy::Nothing };
    let kept = |name, bits, count, location| plain(name, bits, count, location).kept(kept_by);
    let (id, write) = (8 + 64, 64 * 8 + 58);
    let (first_level, controller) = (AtCore("first level"), Elsewhere("memory controller"));
    vec![
        kept("persist buffer entry: data (64 B), address", write, entries, first_level),
        kept("store that waits for room: data, address", write, cores, AtCore("store queue")),
        kept("ordered write queue entry: data, address", write, queued, controller),
        plain("persist buffer entry: type, Y, id", 1 + 1 + 64, entries, first_level),
        plain("persist buffer entry: dependence (core, id)", id, entries * cores, first_level),
        plain("Bloom filter of a fence", params.filter_bits, entries, first_level),
        plain("AccumDP: dependence (core, id)", id, cores * cores, first_level),
        plain("newest id that has drained", 64, cores * cores, first_level),
        plain("ordered write queue entry: type, id", 1 + id, queued, controller),
    ]
}
