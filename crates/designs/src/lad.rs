//! LAD: distributed logless atomic durability (Gupta, Daglis and Falsafi, MICRO 2019).
//!
//! The queues of the controllers survive a power failure, so they can hold what a transaction
//! stored until it commits, and no log is written. A line that leaves the first level goes on to
//! its controller, with the number of its transaction, and stays in the queue as a speculative
//! entry. A commit has two phases. First the remaining lines are sent and acknowledged. Then every
//! controller is told: it records the transaction as the last one of its thread, and the entries
//! become ordinary writes. After a power failure a transaction has committed if any controller has
//! recorded it. If a queue is full of speculative entries, and only then, the old data of the
//! oldest entry are logged, and its line is written in place.
//!
//! That loads are answered from speculative entries is no rule here. The machine computes with the
//! newest bytes, wherever they lie, and a design only says when a load has them
//! ([`Memory::reserve`]). A load that misses an entry would read old bytes, which no part of the
//! machine can hand to a program. Switched off, the rule would move cycles, and no power failure
//! could show it.
//!
//! [`Memory::reserve`]: model::memory::Memory::reserve

use model::controller::Notify;
use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Gasp, Granularity, KeptBy, Leave,
    Needs, Progress, Setup, Store, Structure, Transfer, Tx,
};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineData, LineSet, PerCore};
use slab::Slab;

mod phases;
mod queue;
mod region;
mod spill;

use queue::Queue;
use region::Region;

use crate::parts::raise::log_size;

model::params! {
    /// The sizes that the paper gives, and those that it leaves open.
    pub struct LadParams {
        /// Bits of a transaction's number in its thread, which then wraps around (ours: a tag of
        /// two bytes).
        serial_bits = 16 in 2..=16, tight [2];
        /// Cycles from one line that a commit sends to the next (ours: one a cycle; the paper
        /// counts acknowledgements, so lines do not wait for each other's).
        prepare_interval = 1 in 1..=4096;
        /// Lines whose old data one controller's undo area holds, as far as the log area has room
        /// (ours: 512 KiB of them).
        undo_entries = 4096 in 1..=65536;
    }
}

model::rules! {
    /// What keeps LAD right (LAD, MICRO'19, as far as it is known here, and ours).
    pub struct LadRules {
        /// A line of a running transaction that leaves the first level goes to its controller with
        /// the transaction's number.
        send_what_leaves,
        /// A commit waits for the acknowledgements of lines that left earlier, too.
        count_what_left,
        /// The controllers are told of a commit only once they have acknowledged all of its lines.
        commit_after_lines,
        /// The acknowledgement of a transaction follows its record.
        acknowledge_after_record,
        /// A commit turns the entries of its own transaction into writes, and no others.
        commit_own_entries,
        /// A line that is sent again in a transaction replaces its entry.
        replace_own_entry,
        /// An entry has a slot of its own, and does not take that of an older transaction's write
        /// of its line: the queue may still hold the write when that transaction has committed.
        keep_committed_write,
        /// A queue that is full of speculative entries writes the oldest of them in place.
        spill_when_full,
        /// The old data of a line that a queue writes in place early are durable before the new
        /// ones are written.
        undo_before_spill,
        /// A commit drops the undo entries of its transaction.
        drop_undo_at_commit,
        /// Recovery applies undo entries youngest first.
        undo_youngest_first,
        /// Recovery applies the undo entries of transactions that did not commit, and no others.
        undo_uncommitted_only,
        /// A transaction has committed if any controller has recorded it.
        maximum_over_controllers,
        /// Recovery keeps a committed transaction's entries, though they are still marked as
        /// speculative where the commit had not arrived.
        ignore_speculative_bit,
        /// Recovery discards the entries of transactions that did not commit.
        discard_uncommitted,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
        /// A transaction number that has wrapped around is younger than the largest.
        serials_begin_anew,
    }
}

/// The design: a bitmap at each first level, and tags in the queue of each controller.
pub struct Lad {
    params: LadParams,
    rules: LadRules,
    cores: PerCore<Thread>,
    queues: Vec<Queue>,
    /// Lines on their way to a controller, and lines that wait there.
    messages: Slab<Message>,
    /// A line that has just left all caches, and was sent to its controller.
    recalled: Option<Line>,
    /// Ordinary write-backs, of data stored outside of transactions, that no controller has
    /// accepted yet, each with the time at which it arrives.
    write_backs: Vec<(Line, Cycle)>,
    counts: Counts,
}

/// What a first-level cache controller knows of its core's transaction.
struct Thread {
    /// The number of the transaction that runs, or of the next one.
    serial: u16,
    /// Lines of the first level that the transaction has stored to; `order` keeps the order of the
    /// first stores.
    marked: LineSet,
    order: Vec<Line>,
    /// Whether the transaction has stored anything.
    stored: bool,
    /// Lines that have been sent and not acknowledged.
    unacknowledged: u64,
    /// Whether the core has asked for the commit and not all lines are acknowledged.
    preparing: bool,
    /// How many controllers have not acknowledged the commit.
    untold: u64,
    /// When the last line has been sent and the last acknowledgement has come back.
    ready: Cycle,
}

/// A line on its way to its controller.
#[derive(Clone, Copy, Debug)]
struct Message {
    entry: Entry,
    /// Whether the core waits for its acknowledgement.
    counted: bool,
}

/// A line of a transaction that has not committed.
#[derive(Clone, Copy, Debug)]
struct Entry {
    line: Line,
    core: CoreId,
    serial: u16,
    data: LineData,
}

/// LAD's timed events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadEvent {
    /// A line of a transaction reaches its controller.
    Arrive(usize),
    /// A controller looks for room again, or for ordinary write-backs that wait for some.
    Look(u8),
    /// A controller has accepted an ordinary write-back.
    WrittenBack(Line),
    /// A spill takes its next step.
    Spill(u8),
    /// A controller is told that a core's transaction has committed.
    Commit(CoreId, u8, u16),
}

model::counters! {
    struct Counts {
        left "lines_sent_on_leaving",
        prepared "lines_prepared",
        replaced "entries_replaced",
        committed "entries_committed",
        spilled "spills",
        spilled_late "spills_committed_meanwhile",
        pressed "spills_for_write_backs",
        undo_dropped "undo_entries_dropped",
        room "lines_waited_for_room",
        anew "serials_begun_anew",
    }
}

impl Design for Lad {
    const CARD: Card = Card {
        name: "lad",
        paper: "Gupta, Daglis and Falsafi, MICRO 2019",
        family: "hardware, no log",
        summary: "controllers' queues hold a transaction's lines until it commits in two phases",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Line,
        needs: Needs::Adr,
    };
    const WATCHES_L1: bool = true;
    const L1_NEEDS_ROOM: bool = true;
    type Params = LadParams;
    type Rules = LadRules;
    type Event = LadEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, Lad>) -> Lad {
        let region = Region::new(setup.shape, setup.params);
        let queue = |number| Queue::new(number, setup.shape, region.clone());
        Lad {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            cores: PerCore::new(setup.shape.cores, |_| Thread {
                serial: 1,
                marked: LineSet::default(),
                order: Vec::new(),
                stored: false,
                unacknowledged: 0,
                preparing: false,
                untold: 0,
                ready: Cycle(0),
            }),
            queues: (0..setup.shape.controllers).map(queue).collect(),
            messages: Slab::new(),
            recalled: None,
            write_backs: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<LadEvent>) -> Progress {
        let region = &self.queues[0].region;
        if !region.fits() {
            below.give_up(format!(
                "the queues of LAD do not fit the log area of {} bytes at a power failure: raise \
                 it with {}",
                region.bytes(),
                log_size(region.bytes_saved().div_ceil(u64::from(below.shape.cores)))
            ));
        }
        Progress::Done(tx.at)
    }

    fn store(&mut self, store: &Store, _below: &mut Below<LadEvent>) -> Progress {
        if store.tx.is_none() {
            return Progress::Done(store.at);
        }
        let thread = &mut self.cores[store.core];
        thread.stored = true;
        if thread.marked.insert(store.word.line()) {
            thread.order.push(store.word.line());
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<LadEvent>) -> Progress {
        if !self.cores[tx.core].stored {
            return Progress::Done(tx.at);
        }
        self.prepare(tx.core, tx.stored, below);
        Progress::Wait
    }

    fn leave(&mut self, leave: &Leave, below: &mut Below<LadEvent>) {
        let Leave { core, line, at } = *leave;
        if self.rules.send_what_leaves && self.cores[core].marked.remove(&line) {
            self.send_what_left(core, line, at, below);
            if !below.caches.holds(line) {
                self.recalled = Some(line);
            }
        }
    }

    fn evict(&mut self, evict: &Evict, below: &mut Below<LadEvent>) -> Disposition<LadEvent> {
        let Evict { line, at, .. } = *evict;
        if let Some(recalled) = self.recalled.take() {
            assert!(recalled == line, "a changed line that has left all caches is evicted at once");
            // The line's data have been sent already.
            return Disposition::Taken;
        }
        let arrives = below.memory.next_comes(at + below.shape.path, line);
        self.write_backs.push((line, arrives));
        below.at(arrives + 1, LadEvent::Look(below.memory.controller_of(line) as u8));
        Disposition::Home { at, notify: Notify::Design(LadEvent::WrittenBack(line)) }
    }

    /// Sends a line that a running transaction stored to when another core loads it, as if the line
    /// had left the first level.
    fn transfer(&mut self, transfer: &Transfer, below: &mut Below<LadEvent>) -> Cycle {
        let Transfer { line, from, write, at, .. } = *transfer;
        if !write && self.cores[from].marked.remove(&line) {
            self.send_what_left(from, line, at, below);
        }
        at
    }

    fn event(&mut self, at: Cycle, event: LadEvent, below: &mut Below<LadEvent>) {
        match event {
            LadEvent::Arrive(message) => {
                let line = self.messages[message].entry.line;
                below.memory.came(at, line);
                let controller = below.memory.controller_of(line);
                self.queues[controller].arrived.push_back(message);
                self.look(controller, at, below);
            }
            LadEvent::Look(controller) => {
                self.queues[usize::from(controller)].asked = false;
                self.look(usize::from(controller), at, below);
            }
            LadEvent::WrittenBack(line) => {
                let index = self.write_backs.iter().position(|&(other, _)| other == line);
                self.write_backs.remove(index.expect("an accepted line was evicted"));
            }
            LadEvent::Spill(controller) => self.go_on_spilling(usize::from(controller), at, below),
            LadEvent::Commit(core, controller, serial) => {
                self.commit_arrives(core, usize::from(controller), serial, at, below);
            }
        }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        self.cores.iter().any(|(_, thread)| thread.marked.contains(&line))
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        if self.queues.iter().all(Queue::is_at_rest) {
            return Ok(());
        }
        for queue in &self.queues {
            queue.save(gasp)?;
        }
        self.queues[0].region.arm(gasp)
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Lad>) -> Result<(), PowerLoss> {
        region::recover(image, setup)
    }

    fn hardware(setup: &Setup<'_, Lad>) -> Vec<Structure> {
        let (cores, controllers) =
            (u64::from(setup.shape.cores), u64::from(setup.shape.controllers));
        let slots = Region::new(setup.shape, setup.params).slots() as u64;
        let wpq = setup.shape.config.controller.wpq;
        let l1_lines = setup.shape.config.l1d.size / LINE_BYTES;
        let kept = |name, bits, count| {
            Structure::new(name, bits, count, Elsewhere("memory controller")).kept(KeptBy::Adr)
        };
        let plain = |name, bits, count| {
            Structure::new(name, bits, count, AtCore("first-level cache controller"))
        };
        let entry = LINE_BYTES * 8 + 40 + 8 + 16 + 1;
        let name = "queue entry (64 B, address, thread, number, speculative bit)";
        vec![
            kept(name, entry, wpq * controllers),
            kept("spill register (the same)", entry, controllers),
            kept("last committed number of a thread", 16, region::THREADS * controllers),
            kept("valid bit of an undo entry", 1, slots * controllers),
            kept("thread of an undo entry", 8, slots * controllers).kept(KeptBy::Nothing),
            plain("bitmap of lines stored to", 1, l1_lines * cores),
            plain("transaction number", 16, cores),
            plain("counter of acknowledgements", 16, cores),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

impl LadParams {
    /// The number that follows another.
    fn next(&self, serial: u16) -> u16 {
        serial.wrapping_add(1) & self.mask()
    }

    fn mask(&self) -> u16 {
        (1_u32 << self.serial_bits).wrapping_sub(1) as u16
    }

    /// Whether a number is younger than another: it follows within half of all numbers.
    fn is_younger(&self, serial: u16, than: u16, rules: &LadRules) -> bool {
        if !rules.serials_begin_anew {
            return serial > than;
        }
        let distance = u32::from(serial.wrapping_sub(than) & self.mask());
        distance != 0 && distance < 1 << (self.serial_bits - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_begins_anew_is_younger() {
        let params = LadParams { serial_bits: 2, ..LadParams::default() };
        let rules = LadRules::default();
        assert_eq!((params.next(2), params.next(3)), (3, 0));
        assert!(params.is_younger(0, 3, &rules) && !params.is_younger(3, 0, &rules));
        let params = LadParams::default();
        assert_eq!(params.next(u16::MAX), 0);
        assert!(params.is_younger(3, u16::MAX, &rules) && !params.is_younger(7, 7, &rules));
    }
}
