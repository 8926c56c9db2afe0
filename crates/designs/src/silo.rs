//! Silo: speculative hardware logging (Zhang and Hua, HPCA 2023).
//!
//! Undo and redo logs of a running transaction stay on chip, in a small buffer in the memory
//! controller that a battery backs. A transaction commits on chip; its new values then update the
//! data in place, and the logs never reach memory unless the buffer overflows or the power fails:
//! the log is the data.
//!
//! What the paper's public material leaves open is ours; each rule is a switch of [`SiloRules`].

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Corner, Design, Disposition, Durability, Evict, Gasp, Granularity, KeptBy,
    NeedlessWith, Needs, Progress, Setup, Store, Structure, Tx,
};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::sieve::Sieve;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, PerCore, TxId, Word};

mod arrive;
mod overflow;
mod region;
mod remote;
mod update;

use overflow::Spill;
use region::{Record, Region};
use remote::{Counted, Delivery, Told};

use crate::parts::raise::log_size;

model::params! {
    /// The sizes and speeds that the paper gives (HPCA'23, configuration table).
    pub struct SiloParams {
        /// Logs that one core's buffer holds (680 B of 34-B slots).
        entries = 20 in 1..=4096, tight [4, 4, 4, 4, 4, 1];
        /// Logs that one overflow moves to memory; 0: as many records of 18 B as a line of the
        /// on-DIMM buffer holds (the paper's N = S / 18: 14 with lines of 256 B).
        overflow_batch = 0 in 0..=4096, tight [3];
        /// Whether logs of an overflow leave one by one while others arrive (parallel: the paper's
        /// overflow runs in parallel with new logs), or nothing arrives before the batch has left
        /// (blocking).
        overflow: Overflow = Parallel;
        /// Cycles of an access to the log buffer.
        buffer_latency = 8 in 1..=4096;
        /// Cycles between two words that the log controller takes from a buffer to update them in
        /// place, after a commit or in an overflow (ours: one access at the paper's latency. A
        /// longer latency makes it no slower: accesses overlap).
        update_interval = 8 in 1..=4096;
        /// Logs under way from a core to its buffer before its stores wait (ours: as many as a
        /// store queue holds; reached only when the buffer is full and memory is busy).
        channel = 56 in 1..=4096, tight [1, 56];
        /// Cycles of a message between two controllers (ours: the paper has one controller); 0: as
        /// many as from a core to a controller, which is what all designs pay.
        controller_hop = 0 in 0..=4096;
        /// Writes of one core's logs, of updates and of overflows, that are on their way to other
        /// controllers at a time (ours: as many as cover a round trip of 128 cycles with a word
        /// every 8 cycles).
        deliveries = 16 in 1..=4096, tight [1, 4];
        /// Evicted lines that each controller but the first remembers one by one until the log
        /// controller knows of them; more are remembered together (ours: as many as a
        /// write-pending queue holds).
        told = 64 in 1..=4096, tight [1, 64];
        /// What the transaction number registers of 16 bits hold when power comes on (ours: a test
        /// has them wrap soon).
        first_transaction = 0 in 0..=65535;
    }
}

model::choices! {
    /// What happens to the logs that arrive while an overflow leaves.
    pub enum Overflow {
        /// They take the places that its logs have left.
        Parallel = "parallel",
        /// They wait until the batch has left.
        Blocking = "blocking",
    }
}

model::rules! {
    /// What keeps Silo right (HPCA'23 as far as it is public, and ours).
    pub struct SiloRules {
        /// Merging a log clears its flush-bit: what an eviction carried was an older value.
        flush_bit_reset_on_merge,
        /// A log merges only with a log of its own transaction.
        merge_within_transaction,
        /// An evicted line sets the flush-bits of its logs in the buffers of all cores.
        eviction_marks_all_cores,
        /// An evicted line also sets the flush-bits of logs that are committed and have not updated
        /// their words.
        eviction_marks_committed,
        /// A log whose flush-bit is set updates nothing, and is not replayed.
        discard_flushed,
        /// Recovery applies a core's undo records newest first.
        undo_newest_first,
        /// Recovery replays redo records in the order of the commits of all cores.
        replay_in_commit_order,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A word is updated in place in the order of the commits of all cores.
        update_in_commit_order,
        /// The records of an overflow are forgotten once their transaction's updates are done.
        truncate_after_commit,
        /// A transaction that logged nothing does not drop the records of an earlier one whose
        /// updates are not done. (The rest of that one's batch would count again as it leaves, in a
        /// place where nothing has been written.)
        keep_records_until_updated,
        /// The records of an overflow carry a set flush-bit, so that recovery does not take them
        /// for redo records.
        overflow_record_is_undo,
        /// An evicted line does not overtake the logs of its words.
        eviction_after_logs,
        /// An evicted line sets the flush-bits only of logs whose values it carries, not of a log
        /// whose store came after the line had left. (On the paper's long paths that cannot happen;
        /// on ours it can, and a full write-pending queue delays an eviction.)
        eviction_marks_what_it_carries,
        /// An update in place does not overtake an earlier eviction of its word's line.
        update_after_eviction,
        /// A commit waits for the logs that are under way.
        commit_after_logs,
        /// A log whose new value is its old one again stays: the value in between may be in memory.
        keep_net_silent,
        /// Also when the buffer is full, older updates of the same word by other cores go first.
        drain_others_first,
        /// An overflow's update in place supersedes older committed logs of the word.
        supersede_on_overflow,
        /// An overflow's update in place supersedes no newer log of the word, which may have
        /// arrived since the batch was chosen.
        supersede_only_older,
        /// A log that is leaving in an overflow merges with no further store: its word may be on
        /// its way.
        keep_leaving,
        /// The undo data of logs that leave the buffer in an overflow are saved.
        save_undo_on_overflow,
        /// A power failure saves a running transaction's undo data even if their flush-bit is set:
        /// data that an eviction has carried to memory must be revoked.
        save_undo_of_flushed,
        /// An evicted line that another controller accepted sets flush-bits like any other.
        remote_eviction_marks,
        /// Another controller refuses a word that an eviction has superseded there, until the log
        /// controller has heard of the eviction.
        refuse_what_is_superseded,
        /// Another controller that has accepted more lines than it can remember refuses every word
        /// that one of them may supersede.
        refuse_what_may_be_superseded,
        /// Only one update of a word at a time is on its way to another controller.
        one_delivery_of_a_word,
    }
}

/// The design: a log buffer for each core, and the log controller that they share.
pub struct Silo {
    params: SiloParams,
    rules: SiloRules,
    path: u64,
    /// Cycles of a message between two controllers.
    hop: u64,
    /// Logs that one overflow moves to memory.
    batch: u64,
    /// Where the caches survive a power failure, so do the logs under way: they arrive long before
    /// the caches are saved.
    channel_survives: bool,
    cores: PerCore<LogBuffer>,
    /// Evicted lines that wait for logs of their words to arrive, oldest first, each with the
    /// number of the last store before it left the caches.
    held: VecDeque<(Evict, u64)>,
    /// Evicted lines that no controller has accepted yet, each with the same number.
    leaving: Vec<(Line, u64)>,
    /// Evicted lines that another controller accepted, until that controller hears that the log
    /// controller knows of them.
    told: Vec<Told>,
    /// Those for which a controller had no place, by controller.
    counted: Vec<Counted>,
    /// The words of the logs in the buffers of all cores.
    logged: Sieve,
    /// How many cores wait until older data of a word reach memory: most often none.
    stalls: u64,
    commits: u64,
    stamps: u64,
    counts: Counts,
}

/// One core's log buffer, with the path that leads to it.
struct LogBuffer {
    /// Messages on their way from the core, in order. They are not in the battery's domain.
    channel: VecDeque<(Cycle, Message)>,
    /// Logs in the buffer, oldest first.
    logs: VecDeque<Log>,
    /// Committed transactions with logs in the buffer, each with the place of its commit.
    committed: VecDeque<(TxId, u64)>,
    region: Region,
    /// An overflow that is under way.
    spill: Option<Spill>,
    /// Whether a step of the log controller is due, or waits for older data or for room.
    stepping: bool,
    /// Writes that are on their way to other controllers, oldest first.
    deliveries: Vec<Delivery>,
    /// Whether the next step waits until older data of its word have reached memory.
    stalled: bool,
    /// Whether the channel's first log waits for room in the buffer.
    full: bool,
    /// Whether the core's store waits for room in the channel.
    waiting: bool,
}

impl LogBuffer {
    /// The logs of the running transaction, newest first. The committed ones lie before them.
    fn running(&mut self) -> impl Iterator<Item = &mut Log> {
        self.logs.iter_mut().rev().take_while(|log| log.committed.is_none())
    }
}

#[derive(Clone, Copy, Debug)]
enum Message {
    Log(Log),
    Commit(TxId),
}

#[derive(Clone, Copy, Debug)]
struct Log {
    tx: TxId,
    word: Word,
    old: u64,
    new: u64,
    /// The flush-bit: the new value has reached memory by another way.
    flushed: bool,
    /// The place of its transaction's commit among all; none while the transaction runs.
    committed: Option<u64>,
    /// The number of its last store, among the stores of all cores.
    stamp: u64,
    /// The delivery that carries its word to another controller, until it is answered.
    sent: Option<u64>,
    /// Whether it has updated its word, and leaves once it is the first: durable first, forgotten
    /// after.
    updated: bool,
}

impl Log {
    /// A log of a store that changes a word from the first of two values to the second.
    fn of(tx: TxId, word: Word, [old, new]: [u64; 2], stamp: u64) -> Log {
        let (flushed, committed, sent, updated) = (false, None, None, false);
        Log { tx, word, old, new, flushed, committed, stamp, sent, updated }
    }
}

const fn blocking(rule: &'static str, why: &'static str) -> NeedlessWith {
    NeedlessWith { field: "overflow", choice: "blocking", rule, why }
}

/// The rules that are needless if nothing arrives while an overflow's batch is in the buffer.
const BLOCKING: &[NeedlessWith] = &[
    blocking(
        "keep_leaving",
        "no store arrives that could merge with a log of the batch before all of them have left",
    ),
    blocking(
        "supersede_only_older",
        "while a batch leaves, its words have no newer log: no store of its core arrives, and \
         other cores may not store to words of a running transaction",
    ),
    blocking(
        "keep_records_until_updated",
        "a batch has left before its transaction's commit arrives, and recovery needs no undo \
         records of what has committed",
    ),
];

/// Silo's timed events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiloEvent {
    /// The first message of a core's channel reaches the log controller.
    Arrive(CoreId),
    /// The log controller takes the next step of a buffer: logs that have updated their words
    /// leave, and the next committed log updates its word, or an overflow goes on.
    Step(CoreId),
    /// A controller accepted an evicted line.
    Evicted(Line),
    /// A write of a core's logs, the delivery of that number, reaches another controller.
    Reach(CoreId, u64),
    /// The log controller hears that the write is accepted.
    Delivered(CoreId, u64),
    /// The log controller hears that the write is refused.
    Refused(CoreId, u64),
    /// The log controller hears that another controller accepted an evicted line.
    Hear(Line),
    /// That controller hears that the log controller knows of the line.
    Heard(Line),
}

model::counters! {
    struct Counts {
        generated "logs_generated",
        ignored "logs_ignored",
        merged "logs_merged",
        flush_bits "flush_bits_set",
        updates "in_place_updates",
        discarded "logs_discarded",
        overflows "overflow_batches",
        superseded "logs_superseded",
        held "evictions_held",
        delivered "deliveries",
        refused "deliveries_refused",
        told_max "lines_told_max",
        told_counted "lines_told_without_place",
        channel_full,
        logs_max "logs_in_buffer_max",
    }
}

impl Design for Silo {
    const CARD: Card = Card {
        name: "silo",
        paper: "Zhang and Hua, HPCA 2023",
        family: "hardware logging",
        summary: "logs stay in a battery-backed buffer and become the data at commit",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Word,
        needs: Needs::Adr,
    };
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[(
        "remote_eviction_marks",
        "a log that is not marked is sent again once its controller has the answer, in the order of \
         the commits like any other: the mark saves that write",
    )];
    const NEEDLESS_WITH: &'static [NeedlessWith] = BLOCKING;
    const MIGRATES: bool = true;
    type Params = SiloParams;
    type Rules = SiloRules;
    type Event = SiloEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Silo>) -> Silo {
        let buffer = |core| LogBuffer {
            channel: VecDeque::new(),
            logs: VecDeque::new(),
            committed: VecDeque::new(),
            region: Region::new(setup.shape, core),
            spill: None,
            stepping: false,
            deliveries: Vec::new(),
            stalled: false,
            full: false,
            waiting: false,
        };
        let or = |given: u64, usual: u64| if given == 0 { usual } else { given };
        Silo {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            path: setup.shape.path,
            hop: or(setup.params.controller_hop, setup.shape.hop()),
            batch: or(setup.params.overflow_batch, region::records_in_line(setup.shape)),
            channel_survives: setup.shape.caches_survive(),
            cores: PerCore::new(setup.shape.cores, buffer),
            held: VecDeque::new(),
            leaving: Vec::new(),
            told: Vec::new(),
            counted: vec![Counted::default(); usize::from(setup.shape.controllers)],
            logged: Sieve::default(),
            stalls: 0,
            commits: 0,
            stamps: 0,
            counts: Counts::default(),
        }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<SiloEvent>) -> Progress {
        let logs = self.logs_on_chip();
        if !self.cores[tx.core].region.holds(logs) {
            below.give_up(format!(
                "{logs} logs on chip do not fit Silo's log region of {} bytes at a power failure: \
                 raise it with {}, or lower design.entries",
                self.cores[tx.core].region.bytes(),
                log_size(self.cores[tx.core].region.bytes_for(logs))
            ));
        }
        Progress::Done(tx.at)
    }

    fn store(&mut self, store: &Store, below: &mut Below<SiloEvent>) -> Progress {
        let Some(tx) = store.tx else { return Progress::Done(store.at) };
        // Log ignorance: a store that changes nothing needs no log.
        if store.old == store.new {
            self.counts.ignored += 1;
            return Progress::Done(store.at);
        }
        self.counts.generated += 1;
        self.stamps += 1;
        let Store { core, word, old, new, .. } = *store;
        let stamp = self.stamps;
        let tx = self.number(tx);
        let log = Log::of(tx, word, [old, new], stamp);
        below.memory.prefetch(word.line());
        self.send(core, store.leaves, Message::Log(log), below);
        let buffer = &mut self.cores[core];
        if buffer.channel.len() as u64 > self.params.channel {
            buffer.waiting = true;
            self.counts.channel_full += 1;
            return Progress::Wait;
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<SiloEvent>) -> Progress {
        let number = self.number(tx.id);
        if self.rules.commit_after_logs {
            self.send(tx.core, tx.stored, Message::Commit(number), below);
            return Progress::Wait;
        }
        self.commit_arrives(tx.core, number, tx.at, below);
        Progress::Wait
    }

    fn evict(&mut self, evict: &Evict, _below: &mut Below<SiloEvent>) -> Disposition<SiloEvent> {
        let Evict { line, at, .. } = *evict;
        self.leaving.push((line, self.stamps));
        let follows = self.held.iter().any(|(held, _)| held.line == line);
        if self.rules.eviction_after_logs && (follows || self.is_logged_soon(line, self.stamps)) {
            self.counts.held += 1;
            self.held.push_back((*evict, self.stamps));
            return Disposition::Taken;
        }
        Disposition::Home { at, notify: Notify::Design(SiloEvent::Evicted(line)) }
    }

    fn event(&mut self, at: Cycle, event: SiloEvent, below: &mut Below<SiloEvent>) {
        match event {
            SiloEvent::Arrive(core) => self.arrive(core, at, below),
            SiloEvent::Step(core) => self.step(core, at, below),
            SiloEvent::Evicted(line) => self.evicted(line, at, below),
            SiloEvent::Reach(core, number) => self.reach(core, number, at, below),
            SiloEvent::Delivered(core, number) => self.delivered(core, number, at, below),
            SiloEvent::Refused(core, number) => self.refused(core, number, at, below),
            SiloEvent::Hear(line) => self.hear(line, at, below),
            SiloEvent::Heard(line) => self.heard(line, below),
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        for (core, buffer) in self.cores.iter() {
            let arriving = buffer.channel.iter().filter_map(|(_, message)| match message {
                Message::Log(log) if self.channel_survives => Some(log),
                _ => None,
            });
            let records =
                buffer.logs.iter().chain(arriving).filter_map(|log| match log.committed {
                    // Undo logs of a running transaction, whatever their flush-bits say; redo logs
                    // of a committed one that have not updated their words.
                    None if log.flushed && !self.rules.save_undo_of_flushed => None,
                    None => Some(
                        Record::of(core, log.tx, log.word, log.old).with_flush_bit(log.flushed),
                    ),
                    Some(_) if self.is_discarded(log) => None,
                    Some(_) => Some(Record::of(core, log.tx, log.word, log.new)),
                });
            buffer.region.save(records, &buffer.committed, gasp)?;
        }
        self.cores[CoreId(0)].region.arm(gasp)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Silo>) -> Result<(), PowerLoss> {
        region::recover(image, setup)
    }

    fn hardware(setup: &Setup<'_, Silo>) -> Vec<Structure> {
        let (entries, cores) = (setup.params.entries, u64::from(setup.shape.cores));
        let battery = |name, bits, count| {
            Structure::new(name, bits, count, Elsewhere("memory controller")).kept(KeptBy::Battery)
        };
        let plain = Structure::new;
        let mut structures = vec![
            battery("log buffer entry (26 B log, 8 B address)", 34 * 8, entries * cores),
            battery("log head and tail", 16 * 8, cores).kept(KeptBy::Adr),
            plain("comparator", 64, entries * cores, Elsewhere("memory controller")),
            plain("transaction id register", 16, cores, AtCore("first-level cache controller")),
            plain("thread id", 8, cores, AtCore("first-level cache controller")),
        ];
        let others = u64::from(setup.shape.controllers) - 1;
        if others > 0 {
            // Each with the number of a store. After a power failure nobody asks for them.
            let (deliveries, told) = (setup.params.deliveries * cores, setup.params.told * others);
            let place = Elsewhere("memory controller");
            structures.extend([
                plain("update on its way to another controller", 24 * 8, deliveries, place),
                plain("evicted line that the log controller may not know", 14 * 8, told, place),
                plain("count of further such lines, and the newest", 16 * 8, others, place),
            ]);
        }
        if setup.shape.caches_survive() {
            let logs = (setup.params.channel + 1) * cores;
            structures.push(battery("log under way (kept because the caches are)", 26 * 8, logs));
        }
        structures
    }

    /// On a long way between controllers more happens before an answer comes.
    fn corner(trial: u64, _has_lives: bool) -> Corner {
        let mut corner = Corner::default();
        if trial % 8 == 2 || trial % 16 == 11 {
            corner.set("design.controller_hop", 400);
        }
        corner
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

fn word_write(word: Word, value: u64) -> Write {
    // The mask selects one word. Filling the whole line with its value spares the host a partial
    // store that a load of the whole line would have to wait for.
    let mut data = [0; LINE_BYTES as usize];
    data.chunks_exact_mut(8).for_each(|bytes| bytes.copy_from_slice(&value.to_le_bytes()));
    Write { line: word.line(), data, mask: word.mask(), class: Class::Data }
}
