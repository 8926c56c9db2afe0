//! HOPS: ordering hardware with persist buffers (Nalli et al., ASPLOS 2017; the short paper
//! "Hands-Off Persistence System").
//!
//! Every store to persistent memory also goes to a buffer beside the core's first level, whose
//! entries have bytes of their own: a line may have an entry for each epoch. An ofence opens an
//! epoch and waits for nothing; a dfence waits until the buffer is empty. A buffer sends its oldest
//! epoch, all lines at once and to any controller, and the next epoch when every line has been
//! acknowledged. Dirty lines that leave the caches are dropped: the buffers are the only writers of
//! persistent memory.
//!
//! Where the paper's public text is silent, the rules are those of the simulator that its authors'
//! group published later (ASAP, github.com/multifacet/ASAP), or ours; each is a switch of
//! [`HopsRules`].

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
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineMap, PerCore};

mod any_order;
mod buffer;
mod drain;
mod invariants;

use buffer::{Buffer, Dependence, Entry, Polled, State};

model::params! {
    /// Sizes and policies.
    pub struct HopsParams {
        /// Entries of a core's persist buffer, a line each (short paper: 32).
        entries = 32 in 1..=1024, tight [4, 4, 4, 4, 4, 1];
        /// When entries are sent. `eager`: an epoch when it ends (the short paper: an ofence is an
        /// asynchronous flush). `lazy`: only as `threshold` and `interval` say, or when somebody
        /// waits (the artefact of ASAP, HPCA'22).
        drain: Drain = Eager;
        /// Number of unsent entries at which the oldest are sent (artefact of ASAP: 16).
        threshold = 16 in 1..=1024;
        /// Cycles without a send after which the oldest entry is sent (artefact of ASAP: 2,000).
        interval = 2000 in 1..=1_000_000;
        /// Which lines of another core make a core's epochs depend on that core's. `buffered`:
        /// those whose epoch may still be in its buffer (short paper: dependences are recorded for
        /// the buffered epochs). `sticky`: every line that it wrote last, as long as the last level
        /// has it, even if the write has long been durable (artefact of ASAP).
        depends: Depends = Buffered;
        /// Nanoseconds between two reads of the global timestamp vector (artefact of ASAP: 500); at
        /// 0 every change is seen at once.
        poll = 500 in 0..=1_000_000;
        /// What an entry holds and a write carries. `line`: the whole line, as it was after the
        /// entry's last store, which is what a clwb writes. `bytes`: the bytes that were stored;
        /// memory then has to read a line before it can write it.
        carries: Carries = Line;
        /// What happens to a line that comes from memory while a buffer still has an entry of it.
        /// `stall`: it waits until the entries are durable (the paper, from memory). `forward`: the
        /// buffer answers.
        fill: LateFill = Stall;
    }
}

model::choices! {
    /// When entries are sent.
    pub enum Drain {
        /// Without being asked for.
        Eager = "eager",
        Lazy = "lazy",
    }

    /// Which lines of another core make a core's epochs depend on that core's.
    pub enum Depends {
        /// Those whose epoch may be in its buffer.
        Buffered = "buffered",
        /// All that it wrote last, as in the artefact.
        Sticky = "sticky",
    }

    /// What an entry's write carries.
    pub enum Carries {
        /// The whole line.
        Line = "line",
        /// The bytes that were stored.
        Bytes = "bytes",
    }

    /// What happens to a line that comes from memory while a buffer has an entry of it.
    pub enum LateFill {
        /// It waits for its entries.
        Stall = "stall",
        /// The buffer answers.
        Forward = "forward",
    }
}

model::rules! {
    /// What keeps the order of stores (ASPLOS'17, ASAP's simulator, and ours).
    pub struct HopsRules {
        /// An ofence opens a new epoch.
        ofence_opens_epoch,
        /// A dfence waits until the buffer is empty.
        dfence_waits,
        /// A buffer sends only entries of its oldest epoch.
        oldest_epoch_first,
        /// An entry does not overtake an older one of its line and epoch that is under way. (Ours:
        /// the paper does not say; without it the older bytes could arrive last.)
        line_in_order,
        /// A line that is stored to in two epochs has two entries.
        keep_versions,
        /// An entry that was sent takes no more stores.
        keep_what_was_sent,
        /// A load of a line that another core wrote last orders this core's next epoch after that
        /// core's (RAW).
        order_after_read,
        /// A store to a line that another core wrote last orders this core's next epoch after that
        /// core's (WAW).
        order_after_write,
        /// The core that a dependence names closes its epoch, so that nobody waits for its later
        /// stores. Otherwise two cores could wait for each other for ever.
        split_source,
        /// An entry is sent only once the epochs that its own epoch depends on are durable.
        wait_for_dependences,
        /// A dirty line that leaves the caches is dropped: it would overtake older epochs.
        drop_evictions,
        /// A line that comes from memory is looked up in the buffers, which may have newer bytes.
        look_up_fills,
    }
}

/// The hardware.
pub struct Hops {
    params: HopsParams,
    rules: HopsRules,
    path: u64,
    log_base: u64,
    /// Whether the caches survive a power failure; what only the buffers have then does, too.
    caches_survive: bool,
    buffers: PerCore<Buffer>,
    polled: Polled,
    /// The core that wrote each line last, which the directory remembers while the last level has
    /// the line, or a buffer has an entry of it.
    writers: LineMap<CoreId>,
    /// How many entries each line has in the buffers of all cores. (The paper has a counting Bloom
    /// filter of a size that is not known; this one is exact.)
    buffered: LineMap<u32>,
    now: Cycle,
    stamps: u64,
    counts: Counts,
}

/// The timed events of HOPS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopsEvent {
    /// A buffer looks for an entry to send.
    Drain(CoreId),
    /// A core's entry is durable.
    Durable(CoreId, u64),
    /// A buffer hears that another core waits for everything up to an epoch.
    Asked(CoreId, u64),
    /// The acknowledgement of a core's entry is back at its buffer.
    Acknowledged(CoreId, u64),
    /// A timer has run out: nothing may have been sent for long.
    Timer(CoreId),
}

model::counters! {
    struct Counts {
        entries,
        merged "stores_merged",
        epochs,
        after_read "dependences_after_read",
        after_write "dependences_after_write",
        waits "waits_for_dependences",
        fills "fills_stalled",
        dropped "evictions_dropped",
        full "buffer_full",
        entries_max,
    }
}

/// The machine below this design.
type Floor = Below<HopsEvent>;

impl Design for Hops {
    const CARD: Card = Card {
        name: "hops",
        paper: "Nalli et al., ASPLOS 2017",
        family: "ordering",
        summary: "persist buffers, ofence and dfence",
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const ORDERING: Ordering =
        Ordering { model: Some(Model::Epoch), fences: true, flushes: false, lines_leave: true };
    type Params = HopsParams;
    type Rules = HopsRules;
    type Event = HopsEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Hops>) -> Hops {
        let shape = setup.shape;
        let interval = shape.config.cycles(setup.params.poll * 1_000);
        Hops {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            path: shape.path,
            log_base: shape.log_base,
            caches_survive: setup.shape.caches_survive(),
            buffers: PerCore::new(shape.cores, |_| Buffer::new()),
            polled: Polled::new(interval, shape.cores),
            writers: LineMap::default(),
            buffered: LineMap::default(),
            now: Cycle(0),
            stamps: 0,
            counts: Counts::default(),
        }
    }

    #[inline]
    fn load(&mut self, load: &Load, below: &mut Floor) -> Progress {
        if self.buffers[load.core].fill_waits.is_none() {
            return Progress::Done(load.at);
        }
        self.buffers[load.core].load_waits = true;
        self.hurry_line(load.core, load.at, below);
        Progress::Wait
    }

    fn brings_stores(&self) -> bool {
        true
    }

    fn store(&mut self, store: &Store, below: &mut Floor) -> Progress {
        let Store { core, word, new, at, leaves, .. } = *store;
        self.now = self.now.max(at);
        if store.past_caches {
            self.order_after(core, word.line(), true, at, below);
        }
        if self.buffers[core].merge(word, new, leaves, &self.rules) {
            // If anything, the entry leaves later now, so no entry becomes ready to be sent.
            self.counts.merged += 1;
        } else {
            self.append(store, below);
            self.arm_timer(core, at, below);
            self.kick(core, at, below);
        }
        let buffer = &mut self.buffers[core];
        buffer.store_waits = buffer.entries.len() as u64 > self.params.entries;
        self.counts.full += u64::from(buffer.store_waits);
        if buffer.fill_waits.is_some() {
            self.hurry_line(core, at, below);
            return Progress::Wait;
        }
        if buffer.store_waits { Progress::Wait } else { Progress::Done(at) }
    }

    fn fence(&mut self, fence: &Fence, below: &mut Floor) -> Progress {
        let Fence { core, at, drained, .. } = *fence;
        self.now = self.now.max(at);
        match fence.kind {
            FenceKind::Flush(line, class, _) => {
                // Nothing is flushed, but the flush says what the store was for.
                let mut entries = self.buffers[core].entries.iter_mut().rev();
                if let Some(entry) = entries.find(|entry| entry.line == line) {
                    entry.class = class;
                }
            }
            FenceKind::Order if self.rules.ofence_opens_epoch => self.close(core, at, below),
            FenceKind::Order => (),
            FenceKind::Durable => {
                self.close(core, at, below);
                // What is written to volatile memory is in no buffer.
                let drained = drained.max(below.answered(core));
                let buffer = &mut self.buffers[core];
                if buffer.entries.is_empty() {
                    return Progress::Done(drained);
                }
                buffer.requested = buffer.epoch - 1;
                if self.rules.dfence_waits {
                    buffer.fence = Some(drained);
                }
                self.kick(core, at, below);
                if self.rules.dfence_waits {
                    return Progress::Wait;
                }
            }
        }
        Progress::Done(at)
    }

    /// If every line that a core wrote last makes a dependence, cores may wait for each other for
    /// ever that otherwise would not.
    fn corner(trial: u64, _has_lives: bool) -> Corner {
        let mut corner = Corner::default();
        if trial % 8 == 4 {
            corner.set("design.depends", "sticky");
        }
        corner
    }

    fn fill(&mut self, fill: &Fill, below: &mut Floor) -> Cycle {
        let Fill { core, line, memory, write, at, .. } = *fill;
        if memory && !(self.rules.look_up_fills && self.buffered.contains_key(&line)) {
            self.writers.remove(&line);
            return at;
        }
        self.order_after(core, line, write, at, below);
        if memory && self.params.fill == LateFill::Stall {
            self.counts.fills += 1;
            self.buffers[core].fill_waits = Some((line, self.stamps));
        }
        at
    }

    fn transfer(&mut self, transfer: &Transfer, below: &mut Floor) -> Cycle {
        let Transfer { line, to, write, at, .. } = *transfer;
        self.order_after(to, line, write, at, below);
        at
    }

    fn evict(&mut self, evict: &Evict, _below: &mut Floor) -> Disposition<HopsEvent> {
        let Evict { line, at, .. } = *evict;
        let buffered = self.buffered.contains_key(&line);
        if !(buffered && self.rules.look_up_fills) {
            self.writers.remove(&line);
        }
        if !self.rules.drop_evictions {
            return Disposition::Home { at, notify: Notify::Nobody };
        }
        self.counts.dropped += 1;
        Disposition::Taken
    }

    fn event(&mut self, at: Cycle, event: HopsEvent, below: &mut Floor) {
        self.now = self.now.max(at);
        match event {
            HopsEvent::Drain(core) => self.drain(core, at, below),
            HopsEvent::Asked(core, epoch) => self.request(core, epoch, at, below),
            HopsEvent::Durable(core, stamp) => {
                let index = self.buffers[core].position(stamp);
                self.buffers[core].entries[index].state = State::Durable;
                below.at(at + self.path, HopsEvent::Acknowledged(core, stamp));
            }
            HopsEvent::Acknowledged(core, stamp) => self.acknowledged(core, stamp, at, below),
            HopsEvent::Timer(core) => {
                let buffer = &mut self.buffers[core];
                buffer.timer = false;
                if buffer.unsent > 0 && !buffer.blocked {
                    buffer.overdue = at.since(buffer.next_send) >= self.params.interval - 1;
                    self.kick(core, at, below);
                    self.arm_timer(core, at, below);
                }
            }
        }
    }

    fn invariants(&self) -> Result<(), String> {
        self.check_invariants()
    }

    /// Where the caches survive, so do the entries, in the order of their stores. They have every
    /// byte that is not durable, whichever lines the energy for the caches was enough for.
    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        if !self.caches_survive {
            return Ok(());
        }
        let entries = self.buffers.iter().flat_map(|(_, buffer)| &buffer.entries);
        let mut entries: Vec<&Entry> =
            entries.filter(|entry| entry.state != State::Durable).collect();
        entries.sort_by_key(|entry| entry.stamp);
        for (word, bytes) in entries.iter().flat_map(|entry| entry.words()) {
            gasp.save(word.address(), bytes)?;
        }
        Ok(())
    }

    fn could_be_durable(&self, below: &Floor, arrived: &mut dyn FnMut() -> bool) -> Vec<Write> {
        self.any_order(below, arrived)
    }

    fn hardware(setup: &Setup<'_, Hops>) -> Vec<Structure> {
        hardware(setup)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

// Stores, epochs and what they wait for.

impl Hops {
    fn append(&mut self, store: &Store, below: &Floor) {
        let line = store.word.line();
        self.stamps += 1;
        let log = line.address() >= self.log_base;
        let buffer = &mut self.buffers[store.core];
        let mut entry = Entry {
            line,
            data: below.line(line),
            mask: if self.params.carries == Carries::Line { u64::MAX } else { 0 },
            epoch: buffer.epoch,
            class: if log { Class::Log } else { Class::Data },
            leaves: store.leaves,
            stamp: self.stamps,
            state: State::Unsent,
        };
        entry.put(store.word, store.new);
        buffer.entries.push_back(entry);
        buffer.unsent += 1;
        *self.buffered.entry(line).or_default() += 1;
        self.writers.insert(line, store.core);
        self.counts.entries += 1;
        let held = (buffer.entries.len() as u64).min(self.params.entries);
        self.counts.entries_max = self.counts.entries_max.max(held);
    }

    /// Closes a core's epoch and opens the next.
    fn close(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        self.polled.refresh(self.now, &self.buffers);
        self.buffers[core].epoch += 1;
        self.counts.epochs += 1;
        if self.buffers[core].entries.is_empty() {
            self.tell_blocked(at, below);
        } else {
            self.kick(core, at, below);
        }
    }

    /// Orders a core after the last writer of a line that comes to it, if the writer's epoch may
    /// not be durable: this core closes its epoch, and what it stores from now on waits for that
    /// epoch.
    fn order_after(&mut self, core: CoreId, line: Line, write: bool, at: Cycle, below: &mut Floor) {
        let ordered =
            if write { self.rules.order_after_write } else { self.rules.order_after_read };
        let Some(&on) = self.writers.get(&line) else { return };
        if on == core || !ordered {
            return;
        }
        let source = &self.buffers[on];
        let until = if self.params.depends == Depends::Sticky {
            source.epoch
        } else {
            let Some(until) = source.epoch_of(line) else { return };
            until
        };
        self.counts.after_write += u64::from(write);
        self.counts.after_read += u64::from(!write);
        if until == source.epoch && self.rules.split_source {
            self.close(on, at, below);
        }
        self.close(core, at, below);
        let epoch = self.buffers[core].epoch;
        let polled = &self.polled;
        let dependences = &mut self.buffers[core].dependences;
        dependences.retain(|dependence| !polled.satisfies(dependence));
        dependences.push_back(Dependence { epoch, on, until });
    }

    /// Has the entries of a line sent, since a load or store waits until they are durable.
    fn hurry_line(&mut self, core: CoreId, at: Cycle, below: &mut Floor) {
        let Some((line, _)) = self.buffers[core].fill_waits else { return };
        for owner in (0..self.buffers.cores()).map(CoreId) {
            if let Some((epoch, _)) = self.buffers[owner].youngest(line) {
                self.request(owner, epoch, at, below);
            }
        }
    }

    fn request(&mut self, core: CoreId, epoch: u64, at: Cycle, below: &mut Floor) {
        let buffer = &mut self.buffers[core];
        if epoch > buffer.requested {
            buffer.requested = epoch;
            self.kick(core, at, below);
        }
    }
}

/// Where the paper gives no width, an epoch has 64 bits and a line's address 58. An epoch has as
/// many dependences as there are other cores; a buffer has no more epochs than entries, and the one
/// that is open.
fn hardware(setup: &Setup<'_, Hops>) -> Vec<Structure> {
    let cores = u64::from(setup.shape.cores);
    let entries = setup.params.entries * cores;
    let plain = Structure::new;
    let kept_by = if setup.shape.caches_survive() { KeptBy::Battery } else { KeptBy::Nothing };
    let kept = |name, bits, count, location| plain(name, bits, count, location).kept(kept_by);
    let store = 64 * 8 + 58 + 64;
    let dependences = (entries + cores) * (cores - 1);
    let lines = setup.shape.config.llc.size / LINE_BYTES;
    let writer = 64 - u64::from(setup.shape.cores).leading_zeros();
    vec![
        kept("persist buffer entry: data (64 B)", 64 * 8, entries, AtCore("first level")),
        kept("persist buffer entry: address, byte mask", 58 + 64, entries, AtCore("first level")),
        kept(
            "store that waits for room: data, address, byte mask",
            store,
            cores,
            AtCore("store queue"),
        ),
        plain("persist buffer entry: epoch", 64, entries, AtCore("first level")),
        plain("dependence (core, epoch)", 8 + 64, dependences, AtCore("first level")),
        plain("timestamp register", 64, cores, AtCore("first level")),
        plain("copy of the global timestamp vector", 64 * cores, cores, AtCore("first level")),
        plain("global timestamp", 64, cores, Elsewhere("last level")),
        plain("buffered line (for a Bloom filter)", 58, entries, Elsewhere("last level")),
        plain("last writer of a line", writer.into(), lines, Elsewhere("directory")),
    ]
}
