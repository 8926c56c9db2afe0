//! MorLog: morphable hardware logging (Wei et al., ISCA 2020).
//!
//! The first store of a transaction to a word makes an undo+redo entry, which takes further stores
//! in until it is old enough to leave for memory. From then on the word's undo data are safe, and
//! its newest redo data stay in the first level: a redo entry is made when the line leaves, or when
//! a commit scans the first level. Lines go home as in FWB: steal, no force, and a forced
//! write-back that bounds the log.
//!
//! Delay-persistence acknowledges a commit before the newest redo data are logged. That is a weaker
//! promise, so it is a design of its own, `morlog-dp`.

use std::marker::PhantomData;

use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Fence, FenceKind, Gasp,
    Granularity, KeptBy, Leave, NeedlessWith, Needs, Progress, Setup, Store, Structure, Tx,
};
use model::image::{Image, PowerLoss};
use model::params::Both;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, PerCore};

use crate::parts::LogEvent;
use crate::parts::commits::Commits;
use crate::parts::corners;
use crate::parts::hardware::registers;
use crate::parts::homes::Homes;
use crate::parts::log::{Log, Place};
use crate::parts::ring::{Ring, committed};
use crate::parts::rules::{LogRules, ScanRules};
use crate::parts::scan::{self, Scan};

mod delayed;
mod entries;
mod schemes;
mod words;

use delayed::Delayed;
use schemes::Scheme;
use words::{Stored, Words};

pub use schemes::{DelayPersistence, Synchronous};

model::params! {
    /// The sizes of the paper (ISCA'20, from memory).
    pub struct MorlogParams {
        /// Entries of a core's undo+redo buffer (16, from memory).
        ur_entries = 16 in 1..=4096, tight [8, 2];
        /// Entries of a core's redo buffer (32, from memory).
        r_entries = 32 in 1..=4096, tight [8, 2];
        /// Cycles for which an undo+redo entry collects stores before it leaves; 0: as many as a
        /// line takes through the caches to a controller, the paper's limit.
        age = 0 in 0..=1_000_000;
        /// What leaves the undo+redo buffer: both data (a), or undo data while the redo data move
        /// to the redo buffer (b). Notes on the paper differ.
        variant: Variant = BothData;
        /// Whether records have only the bytes that changed, and none if none did (the data
        /// compression of SLDE; its patterns are left out).
        slde: Slde = Off;
        /// Lines of the log ring of all cores; 0: as many as `pm.log_size` has room for.
        log_lines = 0 in 0..=16_777_216, tight [24, 48, 160, 8, 48, 160];
        /// Cycles from scan to scan; 0: half the time in which the memory's banks can fill the ring
        /// (FWB, HPCA'18).
        period = 0 in 0..=1_000_000_000_000;
        /// Lines of a scan that are under way at a time; 0: as many as the controllers have buffers
        /// for, each `controller.writeback_buffer_size` (docs/fidelity/decisions.md has what it
        /// moves).
        scan_width = 0 in 0..=4096, tight [64, 1];
        /// Cycles in which a commit looks for the words whose newest data are in the first level
        /// only; 0: one for each of its sets (ours: the sources do not say; docs/fidelity/silo.md
        /// has what it moves).
        commit_scan = 0 in 0..=1_000_000;
    }
}

model::choices! {
    /// What leaves the undo+redo buffer.
    pub enum Variant {
        /// Both data.
        BothData = "a",
        /// Undo data; the redo data move on to the redo buffer.
        UndoFirst = "b",
    }

    /// Whether records have only the bytes that changed.
    pub enum Slde { Off = "off", On = "on" }
}

impl MorlogParams {
    /// Entries of a redo buffer. When entries leave as undo data, their redo data come to it all at
    /// once, and stores wait only then. The redo data of a line that leaves the first level come
    /// beside these entries (docs/fidelity/decisions.md).
    fn redo_max(&self) -> u64 {
        self.r_entries + if self.variant == Variant::UndoFirst { self.ur_entries + 1 } else { 0 }
    }
}

model::params! {
    /// What delay-persistence adds.
    pub struct DelayParams {
        /// Cycles after the end of a commit's scan at which redo data that nothing has sent before
        /// leave for the log (ours: the paper says lazily; a few transactions long).
        redo_delay = 1000 in 0..=1_000_000;
    }
}

model::rules! {
    /// What keeps MorLog right beside the rules of its log and of the scan (ISCA'20, and ours).
    pub struct MorlogRules {
        /// The commit record follows the transaction's undo+redo entries.
        undo_before_commit,
        /// A commit makes redo entries of the words whose newest data are in the first level only.
        scan_before_commit,
        /// The commit record follows the transaction's redo entries.
        redo_before_commit,
        /// When a line leaves the first level, redo entries are made of its words whose newest data
        /// are there only.
        redo_of_what_leaves,
        /// A redo entry leaves before a newer entry of its word.
        redo_in_order,
        /// A redo entry stays when its line is home. (Otherwise recovery would replay the older
        /// redo data of an undo+redo record over the newer data in place.)
        keep_redo_of_evicted,
        /// For the next transaction every word is clean again.
        reset_at_commit,
        /// Recovery takes a transaction for committed only if it finds as many redo records behind
        /// the commit record as the count record says.
        count_commits,
        /// Recovery commits nothing after a transaction that is not complete.
        commit_in_order,
        /// Recovery replays redo records in the order of the commits.
        replay_in_commit_order,
        /// A transaction is announced as durable only once its count record and redo records are
        /// accepted.
        announce_after_redo,
        /// A transaction is announced as durable only once all that committed before it are
        /// durable.
        announce_in_order,
        /// The undo data of a transaction that is not durable are not overwritten.
        keep_until_durable,
    }
}

const fn card(name: &'static str, summary: &'static str, durability: Durability) -> Card {
    Card {
        name,
        paper: "Wei, Feng, Tong, Liu and Ye, ISCA 2020",
        family: "hardware logging",
        summary,
        file: file!(),
        durability,
        granularity: Granularity::Word,
        needs: Needs::Adr,
    }
}

/// The design.
pub struct Morlog<S> {
    params: MorlogParams,
    redo_delay: u64,
    rules: MorlogRules,
    line_after_records: bool,
    path: u64,
    age: u64,
    /// Cycles of a commit's scan of a first level: one for each set (ours), or as the parameter
    /// says.
    scan_cycles: u64,
    cores: PerCore<Words>,
    log: Log,
    homes: Homes,
    scan: Scan,
    commits: Commits,
    delayed: Delayed,
    /// Evicted lines, each with the mark before which it is home; kept only for a test of what
    /// happens if redo entries do not stay.
    leaving: Vec<(u64, Line)>,
    /// Records of all cores that are still to come, at the most.
    owed: u64,
    counts: Counts,
    scheme: PhantomData<S>,
}

model::counters! {
    struct Counts {
        entries "ur_entries",
        coalesced "stores_coalesced",
        deferred "stores_deferred",
        redo_entries,
        redo_merged "redo_entries_merged",
        redo_first "redo_sent_before_entry",
        scanned "words_scanned_at_commit",
        forced "entries_sent_for_a_line",
        full "ur_or_r_buffer_full",
        discarded "silent_entries_discarded",
        scans_held "commit_scans_held",
    }
}

/// The rule that is needless if only redo entries have redo data.
const UNDO_FIRST: &[NeedlessWith] = &[NeedlessWith {
    field: "variant",
    choice: "b",
    rule: "redo_in_order",
    why: "an undo record has no redo data that could come before older ones",
}];

impl<S: Scheme> Design for Morlog<S> {
    const CARD: Card = S::CARD;
    const NEEDLESS: &'static [(&'static str, &'static str)] = S::NEEDLESS;
    const NEEDLESS_WITH: &'static [NeedlessWith] = UNDO_FIRST;
    const WATCHES_L1: bool = true;
    type Params = S::Params;
    type Rules = Both<LogRules, Both<ScanRules, MorlogRules>>;
    type Event = LogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Self>) -> Self {
        let Setup { params, rules, shape } = setup;
        let (params, redo_delay) = S::split(params);
        let Both { first: common, second: Both { first: of_scan, second: own } } = rules;
        let (ring, l1) = (ring(setup), &shape.config.l1d);
        let mut log = Log::new(shape, ring, lines_under_way(setup), common);
        log.keep_more(shape.cores);
        Morlog {
            params: params.clone(),
            redo_delay,
            rules: own.clone(),
            line_after_records: common.line_after_records,
            path: shape.path,
            age: if params.age == 0 { shape.walk } else { params.age },
            scan_cycles: match params.commit_scan {
                0 => l1.size / LINE_BYTES / l1.assoc,
                cycles => cycles,
            },
            cores: PerCore::new(shape.cores, |_| Words::default()),
            log,
            homes: Homes::new(shape),
            scan: Scan::new(shape, params.period, params.scan_width, ring.lines(), of_scan),
            commits: Commits::new(shape, common, !S::DELAYED || !own.keep_until_durable),
            delayed: Delayed::new(shape.cores),
            leaving: Vec::new(),
            owed: 0,
            counts: Counts::default(),
            scheme: PhantomData,
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<LogEvent>) -> Progress {
        let Some(tx) = store.tx else { return Progress::Done(store.at) };
        let Store { core, word, old, new, at, leaves, .. } = *store;
        if S::DELAYED {
            self.make_way(core, |other| other == word);
        }
        let words = &mut self.cores[core];
        (words.tx, words.stored) = (tx, true);
        match words.store(word, (old, new), leaves, self.age) {
            Stored::Entry { first } => {
                self.counts.entries += 1;
                if first {
                    below.at(leaves + self.age, LogEvent::Age(core));
                }
            }
            Stored::Coalesced => self.counts.coalesced += 1,
            Stored::Deferred => self.counts.deferred += 1,
        }
        self.tell_owed(core);
        let waits = self.make_room(core, at, below);
        self.scan.begin(at, &self.log, below);
        self.scan_tags(at, below);
        if waits { Progress::Wait } else { Progress::Done(at) }
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<LogEvent>) -> Progress {
        match fence.kind {
            FenceKind::Durable if S::DELAYED => self.wait_for_durability(fence, below),
            _ => Progress::Done(fence.at),
        }
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LogEvent>) -> Progress {
        if !std::mem::take(&mut self.cores[tx.core].stored) {
            if S::DELAYED {
                self.commit_nothing(tx, below);
            }
            return Progress::Done(tx.at);
        }
        below.at(tx.stored.max(tx.at), LogEvent::Commit(tx.core));
        Progress::Wait
    }

    fn leave(&mut self, leave: &Leave, below: &mut Below<LogEvent>) {
        let Leave { core, line, at } = *leave;
        self.scan.leave(line);
        if S::DELAYED {
            self.make_way(core, |word| word.line() == line);
            self.send_redo(core, self.params.r_entries, at, below);
        }
        for (word, bytes) in self.cores[core].lose(line) {
            if self.rules.redo_of_what_leaves {
                self.put_redo(core, word, bytes, at, below);
            }
        }
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<LogEvent>) -> Disposition<LogEvent> {
        let Evict { line, at, .. } = *evict;
        self.scan.clear(line);
        if self.line_after_records {
            self.send_entries_of(line, at, below);
        }
        let disposition = self.homes.evict(evict, &mut self.log, below);
        if !self.rules.keep_redo_of_evicted {
            self.leaving.push((self.homes.mark(), line));
        }
        disposition
    }

    fn event(&mut self, at: Cycle, event: LogEvent, below: &mut Below<LogEvent>) {
        match event {
            LogEvent::Logged { line, end } => {
                self.log.accepted(line, end, at, below);
                self.homes.release(self.log.durable(), at, below);
                self.commits.accepted(Place { line, end }, &mut self.log, at, below);
                self.announce(at, below);
                self.answer(at, below);
                self.scan_for_room(at, below);
            }
            LogEvent::Home { group, forced, .. } => {
                self.homes.accepted(group);
                if forced {
                    self.scan.forced();
                }
                self.drop_redo();
                self.scan_tags(at, below);
            }
            LogEvent::Age(core) => {
                self.send_aged(core, at, below);
                if S::DELAYED {
                    self.drain(core, at, below);
                }
            }
            // A store that waited for a buffer may have to wait for the ring from now on.
            LogEvent::Discarded(core) => {
                self.discarded(core, at, below);
                self.scan_for_room(at, below);
            }
            LogEvent::Heard(core, records) => {
                self.hear(core, records, at, below);
                self.scan_for_room(at, below);
            }
            LogEvent::Left(_) => unreachable!("its records wait in its own buffers"),
            LogEvent::Commit(core) => {
                if self.rules.undo_before_commit {
                    self.send_entries(core, usize::MAX, at, below);
                }
                if S::DELAYED {
                    return self.commit_early(core, at, below);
                }
                below.at(at + self.scan_cycles, LogEvent::Scanned(core));
            }
            LogEvent::Scanned(core) if S::DELAYED => self.log_count(core, at, below),
            LogEvent::Scanned(core) => self.scanned(core, at, below),
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        // Where the caches survive, so do the stores whose undo data are in the buffer.
        let cores = self.cores.iter();
        let entries = cores.flat_map(|(core, words)| words.ur.iter().map(move |e| (core, e)));
        self.log.save(gasp, entries.map(|(core, entry)| self.record(core, entry)))
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        let Both { first: common, second: Both { second: own, .. } } = setup.rules;
        ring(setup).recover(image, common, |records| match S::DELAYED {
            true => delayed::judge(records, setup.shape.cores, own),
            false => committed(records, setup.shape.cores),
        })
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        ring(setup).boot(image, &setup.rules.first)?;
        Ok(Morlog::new(setup))
    }

    fn hardware(setup: &Setup<'_, Self>) -> Vec<Structure> {
        hardware(setup)
    }

    fn corner(trial: u64, _has_lives: bool) -> Corner {
        corners::of_a_ring(trial)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut own = self.counts.list();
        if S::DELAYED {
            own.retain(|(name, _)| *name != "commit_scans_held");
            own.push(("not_durable_max", self.delayed.pending_max));
        }
        let shared = [self.log.counts.list(), self.homes.counts.list(), self.scan.counts.list()];
        // MorLog's own buffers are the ones that fill, and not the log's.
        let shared = shared.concat().into_iter().filter(|(name, _)| *name != "log_buffer_full");
        own.into_iter().chain(shared).collect()
    }
}

// What waits, and goes on.

impl<S: Scheme> Morlog<S> {
    /// Whether a core's store has to wait for room. If it has, room is being made.
    fn make_room(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) -> bool {
        if self.is_over(core) {
            self.counts.full += 1;
            self.send_complete(core, at, below);
            self.send_redo(core, self.params.r_entries, at, below);
            // Silent entries leave at once.
            self.cores[core].waiting = self.is_over(core);
            if self.cores[core].waiting {
                self.await_complete(core, below);
                return true;
            }
        }
        let is_full = self.log.is_full();
        if is_full {
            self.wait_for_log(core, at, below);
        }
        is_full
    }

    /// Lets a core's store wait for room in the log.
    fn wait_for_log(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        self.log.wait(core, below);
        if S::DELAYED {
            self.drain_all(at, below);
        }
    }

    /// Whether a core's buffers, with the entries under way, hold more than they have room for.
    fn is_over(&self, core: CoreId) -> bool {
        let (words, under_way) = (&self.cores[core], self.under_way(core));
        words.ur.len() as u64 + under_way[0] > self.params.ur_entries
            || words.r.len() as u64 + under_way[1] > self.params.r_entries
    }

    /// How many entries of a core have left and keep their places: the core has not heard that
    /// their records are durable.
    fn under_way(&self, core: CoreId) -> [u64; 2] {
        let (sent, told) = (self.log.under_way(core), self.cores[core].unheard);
        [sent[0] + told[0], sent[1] + told[1]]
    }

    /// Tells the cores of records that have become durable. The buffers are at the cores, which
    /// hear of it one way later.
    fn answer(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        for (core, words) in self.cores.iter_mut() {
            let records = self.log.take_answers(core);
            if records != [0; 2] {
                (0..2).for_each(|kind| words.unheard[kind] += records[kind]);
                below.at(at + self.path, LogEvent::Heard(core, records));
            }
        }
    }

    /// Frees the places of a core's entries, and continues what waits for that.
    fn hear(&mut self, core: CoreId, records: [u64; 2], at: Cycle, below: &mut Below<LogEvent>) {
        let words = &mut self.cores[core];
        (0..2).for_each(|kind| words.unheard[kind] -= records[kind]);
        if words.waits_for_log() {
            self.go_on(core, at, below);
        }
    }

    /// Continues a core's redo entries, commit and store, since its buffers may have room.
    fn go_on(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        self.send_redo(core, self.params.r_entries, at, below);
        if S::DELAYED {
            self.drain(core, at, below);
        }
        self.go_on_committing(core, at, below);
        if self.cores[core].waiting && !self.is_over(core) {
            self.cores[core].waiting = false;
            if self.log.is_full() {
                self.wait_for_log(core, at, below);
            } else {
                below.wake(core, at);
            }
        } else if self.cores[core].waiting {
            self.send_redo(core, 0, at, below);
        }
    }

    /// Continues a commit that has scanned the first level.
    fn scanned(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        self.scan_first_level(core, below);
        self.cores[core].scanned = true;
        self.go_on_committing(core, at, below);
    }

    /// Makes a commit's redo entries as far as there is room, and then sends its commit record.
    fn go_on_committing(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if !self.cores[core].scanned {
            return;
        }
        if !self.rules.redo_before_commit {
            self.send_commit(core, at, below);
        }
        while let Some(redo) = self.cores[core].left.pop_front() {
            self.counts.scanned += 1;
            self.put(core, redo);
            self.send_redo(core, self.params.r_entries, at, below);
            if self.is_over(core) {
                self.counts.scans_held += 1;
                break;
            }
        }
        self.send_redo(core, 0, at, below);
        let words = &self.cores[core];
        if words.left.is_empty() && words.r.is_empty() {
            self.send_commit(core, at, below);
        }
    }

    fn send_commit(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if std::mem::take(&mut self.cores[core].scanned) {
            self.commits.send(core, self.cores[core].tx, &mut self.log, at, below);
        }
    }

    /// Begins a scan of the tags if a core waits for room in the ring, and continues the scan.
    fn scan_for_room(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        self.scan.begin_for_room(at, &self.log, below);
        self.scan_tags(at, below);
    }

    /// Continues the scan of the tags. Each line that it writes back goes behind the undo data of
    /// the line that the buffers hold.
    fn scan_tags(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        loop {
            while let Some(line) = self.scan.next_line(&mut self.homes) {
                if self.line_after_records {
                    self.send_entries_of(line, at, below);
                }
                self.scan.write(line, at, &mut self.log, &mut self.homes, below);
            }
            if !self.scan.end(at, &mut self.log, &self.homes, below) {
                return;
            }
        }
    }
}

fn ring<S: Scheme>(setup: &Setup<'_, Morlog<S>>) -> Ring {
    Ring::new(setup.shape, S::split(setup.params).0.log_lines, 0)
}

/// Log lines that are under way at the most: one for each entry under way, of which each undo+redo
/// entry may have a redo entry before it and one store's may be beyond its buffer, and one for each
/// commit and its count.
fn lines_under_way<S: Scheme>(setup: &Setup<'_, Morlog<S>>) -> u64 {
    let (params, _) = S::split(setup.params);
    let counts = u64::from(S::DELAYED);
    let each = 2 * (params.ur_entries + 1) + params.r_entries + 1 + counts;
    each * u64::from(setup.shape.cores)
}

fn hardware<S: Scheme>(setup: &Setup<'_, Morlog<S>>) -> Vec<Structure> {
    let (shape, (params, _)) = (setup.shape, S::split(setup.params));
    let cores = u64::from(shape.cores);
    let lines = shape.config.l1d.size / LINE_BYTES * cores;
    let at_core = |name, bytes: u64, count| {
        Structure::new(name, 8 * bytes, count, AtCore("first-level cache controller"))
    };
    let tag = |name, bits| Structure::new(name, bits, lines, AtCore("first-level tags"));
    let kept = |structure: Structure| match shape.caches_survive() {
        true => structure.kept(KeptBy::Battery),
        false => structure,
    };
    let mut structures = vec![
        // The entry of the store that waits for the buffer is beyond it.
        kept(at_core("undo+redo buffer entry", 32, (params.ur_entries + 1) * cores)),
        at_core("redo buffer entry", 18, (params.redo_max() + u64::from(S::DELAYED)) * cores),
        tag("thread and transaction of a line", 8 + 16),
        tag("word states", 2 * 8),
        tag("dirty flags", 64),
        scan::fwb_bits(shape),
    ];
    structures.extend(registers(shape));
    if shape.caches_survive() {
        let place = Elsewhere("memory controller");
        let (bits, count) = (8 * LINE_BYTES, lines_under_way(setup) + 1);
        let name = "log line under way (kept because the caches are)";
        structures.push(Structure::new(name, bits, count, place).kept(KeptBy::Battery));
    }
    structures
}
