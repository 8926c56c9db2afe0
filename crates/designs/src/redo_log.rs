//! The redo log in hardware that SSP was compared with (Ni et al., MICRO 2019, section 5.1): the
//! logging of DHTM (Joshi, Nagarajan, Cintra and Viglas, ISCA 2018) without its transactional
//! memory.
//!
//! A small log buffer at the first level gathers what a transaction stores to a line; what leaves
//! the buffer, at the latest when the transaction commits, is a redo record in memory. A commit is
//! durable with its record. The lines are then written back in the background, and the core's next
//! transaction begins when that is complete. A line of a committed transaction that is not complete
//! is written back when another core comes to have it, and a store of that core to the line leaves
//! a dependence in the log, so that recovery replays the two in order.
//!
//! DHTM aborts a transaction when a line of it leaves the last level. Nothing aborts here: the line
//! is dropped, since its new words are in the log buffer or the log, and they are read from there
//! when the line is needed again or written back (ours; SSP's paper has the log without DHTM's
//! transactions and does not say).

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Fill, Granularity, Leave, Load,
    NeedlessWith, Needs, Progress, Setup, Store, Structure, Transfer, Tx,
};
use model::image::{Image, PowerLoss};
use model::units::{CoreId, Cycle, LINE_BYTES, LINE_WORDS, Line, LineMap, PerCore};

use crate::parts::area::Area;

mod commit;
mod record;
mod write_back;

use record::Record;

model::params! {
    /// The size that DHTM's log buffer has, and what it writes.
    pub struct RedoLogParams {
        /// Lines that one core's log buffer holds (DHTM: 64, from memory).
        entries = 64 in 1..=4096, tight [4, 4, 4, 4, 4, 1];
        /// What a record has of its line: all of it (the SSP paper's savings need one line of log
        /// for each line of data, or more), or the words that were stored (DHTM).
        record: LogRecord = Line;
        /// What a core waits for if it comes to have a line that another core's transaction
        /// committed and that is not in its place yet. (DHTM forces the write-back; whether the
        /// core waits for it is open.)
        conflict: Conflict = Sent;
        /// What a commit record has to do with the records of its transaction (ours: the papers do
        /// not say how recovery knows that they are there).
        commit: CommitRecord = Waits;
    }
}

model::choices! {
    /// What a record has of its line.
    pub enum LogRecord {
        /// All of it.
        Line = "line",
        /// The words that were stored.
        Words = "words",
    }

    /// What a core waits for that comes to have a committed line.
    pub enum Conflict {
        /// That the line is on its way to its place.
        Sent = "sent",
        /// That the line is durable there.
        Durable = "durable",
    }

    /// What a commit record has to do with the records of its transaction.
    pub enum CommitRecord {
        /// It is sent when they are durable.
        Waits = "waits",
        /// It is sent right behind them, with their number and a checksum of them.
        Counts = "counts",
    }
}

model::rules! {
    /// What keeps the log right (DHTM, ISCA'18, as SSP, MICRO'19 section 5.1, uses it, and ours).
    pub struct RedoLogRules {
        /// A line that an uncommitted transaction stored to does not reach its place in memory.
        hold_uncommitted,
        /// The commit record follows every record of its transaction.
        commit_after_records,
        /// A transaction has committed when its commit record and all of its records are durable,
        /// whichever is the last.
        commit_needs_records,
        /// Recovery replays a transaction only if its records are those that its commit record
        /// counts.
        verify_records,
        /// The acknowledgement follows the commit record.
        acknowledge_after_commit_record,
        /// Lines are written back after the commit record.
        write_back_after_commit_record,
        /// The complete record follows every line of its transaction.
        complete_after_lines,
        /// A core begins no transaction before the lines of its last one are written back and that
        /// one's complete record is on its way.
        begin_after_write_back,
        /// A committed line that is not in its place is sent there when another core comes to have
        /// it: before that core stores to it, and not with that core's stores.
        write_back_before_others,
        /// A store to a line of a transaction that is not complete leaves a dependence in the log.
        log_dependences,
        /// A transaction is not complete before the transactions that it depends on: those would be
        /// replayed over its lines.
        complete_in_order,
        /// If a line was logged twice, recovery replays the newest record last.
        replay_oldest_first,
        /// Recovery's writes are durable before the mark that drops their records.
        fence_before_log_is_dropped,
    }
}

/// The mark that says where the records of the last complete transaction end.
const COMPLETE: u64 = 0;
/// The mark that says where the records of the last committed transaction begin and end.
const COMMIT: u64 = 1;
/// The mark with the checksum of these records, if the commit record counts them.
const CHECKSUM: u64 = 2;

/// The design: a log buffer and a log for each core.
pub struct RedoLog {
    params: RedoLogParams,
    rules: RedoLogRules,
    cores: PerCore<CoreLog>,
    /// Lines of transactions that are not complete, each with the last such transaction.
    lines: LineMap<Owner>,
    /// Words of records that are to be sent.
    words: Vec<u64>,
    counts: Counts,
}

struct CoreLog {
    area: Area,
    /// Where the next record goes, where the records of the running transaction begin, and where
    /// those of complete transactions end.
    tail: u64,
    first: u64,
    complete: u64,
    /// The log buffer: lines and which of their words, in the order of their first stores.
    buffer: VecDeque<(Line, u8)>,
    /// The write set, in the order of first stores.
    lines: Vec<Line>,
    /// Transactions of other cores that the running one comes after, by the ends of their records.
    after: Vec<(CoreId, u64)>,
    /// The checksum of the running transaction's records.
    checksum: u64,
    /// How many writes of records are not durable.
    logging: u64,
    /// Transactions from their ends until they are complete: at most two, of which the first is
    /// about to be complete.
    ended: VecDeque<Ended>,
    /// Whether the next transaction waits for the last one.
    waiting: bool,
    /// Whether the last store waits until fewer records are under way.
    holds_store: bool,
    /// The line that the core waits for until it is in its place.
    awaited: Option<Awaited>,
}

/// A line of another core's transaction that a core waits for.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    line: Line,
    /// The transaction, by its core and where its records end.
    of: (CoreId, u64),
    /// What waits, once the core has asked.
    by: Option<Access>,
}

/// An access that waits.
#[derive(Clone, Copy, Debug)]
enum Access {
    Load,
    /// A store, and when it leaves the core if nothing holds it.
    Store(Cycle),
}

/// A transaction that has ended and is not complete.
struct Ended {
    /// Where its records begin and end.
    first: u64,
    end: u64,
    stage: Stage,
    checksum: u64,
    lines: Vec<Line>,
    /// How many lines have been sent, and how many writes are not durable.
    sent: usize,
    unwritten: u64,
    /// Whether the next line waits until one of those writes is durable.
    full: bool,
    after: Vec<(CoreId, u64)>,
}

impl CoreLog {
    /// Whether the complete record of the last transaction is on its way, or there. The commit
    /// record of the next one cannot overtake it, since the two marks lie in one line.
    fn is_completing(&self) -> bool {
        self.ended.iter().all(|ended| ended.stage == Stage::Completing)
    }

    /// Has an access wait if its line is one that the core waits for. Returns whether it is.
    fn wait_for(&mut self, line: Line, access: Access) -> bool {
        let awaited = self.awaited.as_mut().filter(|awaited| awaited.line == line);
        awaited.map(|awaited| awaited.by = Some(access)).is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Records are under way.
    Logging,
    /// The commit record is under way.
    Committing,
    /// The commit record is durable, and some of the records that it counts are not.
    Counted,
    /// It is committed; its lines are being written back.
    Committed,
    /// The complete record is under way.
    Completing,
}

/// The last transaction that stored to a line, and what is known of the line.
#[derive(Clone, Copy, Debug)]
struct Owner {
    core: CoreId,
    /// Where its records end, if it has committed.
    end: Option<u64>,
    /// Words that were logged, and where the log has the newest of each.
    words: u8,
    logged: [u64; LINE_WORDS as usize],
    /// Whether it is in the overflow list, since it has left the first level.
    listed: bool,
    /// Whether it has left the last level uncommitted: the caches do not have its newest bytes.
    dropped: bool,
    /// Whether it has been sent to its place, and whether it is durable there.
    written: bool,
    home: bool,
}

/// The timed events of the redo log. A transaction is known by where its records end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedoLogEvent {
    /// A write of a record is durable, or a commit has sent all of its own.
    Logged(CoreId),
    /// A commit record is durable.
    Committed(CoreId, u64),
    /// The next line of a transaction is to be written back.
    WriteBack(CoreId, u64),
    /// A line is durable in its place.
    Written(CoreId, u64, Line),
    /// A complete record is durable.
    Completed(CoreId, u64),
}

model::counters! {
    struct Counts {
        records,
        merged "stores_merged",
        buffer_evictions,
        wraps "log_wraps",
        listed "lines_in_overflow_list",
        dropped "evictions_dropped",
        fetched_from_log "fetches_from_log",
        forced "forced_write_backs",
        dependences,
        full "write_back_buffers_full",
        held_complete "completions_held",
        held_begin "begins_held",
        held_store "stores_held",
        held_access "accesses_held",
    }
}

/// A rule that is needless with one choice of `commit`.
const fn with_commit(choice: &'static str, rule: &'static str, why: &'static str) -> NeedlessWith {
    NeedlessWith { field: "commit", choice, rule, why }
}

impl Design for RedoLog {
    const CARD: Card = Card {
        name: "redo-log",
        paper: "Ni et al., MICRO 2019 (a baseline); Joshi et al., ISCA 2018",
        family: "hardware logging",
        summary: "a log buffer makes redo records; lines are written back after the commit",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Line,
        needs: Needs::Nothing,
    };
    const NEEDLESS_WITH: &'static [NeedlessWith] = &[
        with_commit(
            "counts",
            "commit_after_records",
            "recovery looks whether the records are there",
        ),
        with_commit("waits", "commit_needs_records", "the commit record is the last"),
        with_commit("waits", "verify_records", "the records are there before the commit record is"),
    ];
    const WATCHES_L1: bool = true;
    type Params = RedoLogParams;
    type Rules = RedoLogRules;
    type Event = RedoLogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, RedoLog>) -> RedoLog {
        RedoLog {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            cores: PerCore::new(setup.shape.cores, |core| CoreLog {
                area: Area::new(setup.shape, core),
                tail: 0,
                first: 0,
                complete: 0,
                buffer: VecDeque::new(),
                lines: Vec::new(),
                after: Vec::new(),
                checksum: 0,
                logging: 0,
                ended: VecDeque::new(),
                waiting: false,
                holds_store: false,
                awaited: None,
            }),
            lines: LineMap::default(),
            words: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn begin(&mut self, tx: &Tx, _below: &mut Below<RedoLogEvent>) -> Progress {
        let log = &mut self.cores[tx.core];
        if log.is_completing() || !self.rules.begin_after_write_back {
            return Progress::Done(tx.at);
        }
        log.waiting = true;
        self.counts.held_begin += 1;
        Progress::Wait
    }

    fn load(&mut self, load: &Load, _below: &mut Below<RedoLogEvent>) -> Progress {
        match self.cores[load.core].wait_for(load.word.line(), Access::Load) {
            true => Progress::Wait,
            false => Progress::Done(load.at),
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<RedoLogEvent>) -> Progress {
        if store.tx.is_some() {
            self.gather(store);
        }
        let access = Access::Store(store.leaves);
        if self.cores[store.core].wait_for(store.word.line(), access)
            || self.make_room(store.core, store.leaves, below)
        {
            return Progress::Wait;
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<RedoLogEvent>) -> Progress {
        if self.cores[tx.core].lines.is_empty() {
            return Progress::Done(tx.at);
        }
        self.end(tx.core, tx.stored, below);
        Progress::Wait
    }

    fn fill(&mut self, fill: &Fill, below: &mut Below<RedoLogEvent>) -> Cycle {
        self.touch(fill.core, fill.line, fill.at, fill.memory, below)
    }

    fn leave(&mut self, leave: &Leave, below: &mut Below<RedoLogEvent>) {
        let Some(owner) = self.lines.get_mut(&leave.line) else { return };
        if owner.core == leave.core && owner.end.is_none() && !owner.listed {
            owner.listed = true;
            self.counts.listed += 1;
            self.log(leave.core, Record::Overflow(leave.line), leave.at, below);
        }
    }

    fn evict(
        &mut self,
        evict: &Evict,
        _below: &mut Below<RedoLogEvent>,
    ) -> Disposition<RedoLogEvent> {
        let home = |notify| Disposition::Home { at: evict.at, notify };
        let Some(owner) = self.lines.get_mut(&evict.line) else { return home(Notify::Nobody) };
        match owner.end {
            None if self.rules.hold_uncommitted => {
                owner.dropped = true;
                self.counts.dropped += 1;
                Disposition::Taken
            }
            Some(end) if !owner.written => {
                // The eviction writes the line back.
                owner.written = true;
                let core = owner.core;
                self.ended(core, end).expect("its transaction is not complete").unwritten += 1;
                home(Notify::Design(RedoLogEvent::Written(core, end, evict.line)))
            }
            _ => home(Notify::Nobody),
        }
    }

    fn transfer(&mut self, transfer: &Transfer, below: &mut Below<RedoLogEvent>) -> Cycle {
        self.touch(transfer.to, transfer.line, transfer.at, false, below)
    }

    fn event(&mut self, at: Cycle, event: RedoLogEvent, below: &mut Below<RedoLogEvent>) {
        match event {
            RedoLogEvent::Logged(core) => self.logged(core, at, below),
            RedoLogEvent::Committed(core, end) => self.committed(core, end, at, below),
            RedoLogEvent::WriteBack(core, end) => self.write_next(core, end, at, below),
            RedoLogEvent::Written(core, end, line) => self.written((core, end), line, at, below),
            RedoLogEvent::Completed(core, end) => self.completed(core, end, at, below),
        }
    }

    fn leaves_behind(&self, line: Line) -> bool {
        self.lines.get(&line).is_some_and(|owner| owner.end.is_none())
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, RedoLog>) -> Result<(), PowerLoss> {
        record::recover(image, setup)
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, RedoLog>) -> Result<RedoLog, PowerLoss> {
        let mut design = RedoLog::new(setup);
        for (_, log) in design.cores.iter_mut() {
            log.complete = image.word(log.area.mark(COMPLETE));
            (log.tail, log.first) = (log.complete, log.complete);
            if setup.params.commit == CommitRecord::Counts {
                image.set_word(log.area.mark(CHECKSUM), 0)?;
            }
        }
        Ok(design)
    }

    fn hardware(setup: &Setup<'_, RedoLog>) -> Vec<Structure> {
        let cores = u64::from(setup.shape.cores);
        let l1_lines = setup.shape.config.l1d.size / 64;
        let volatile = |name, bits, count| {
            Structure::new(name, bits, count, AtCore("first-level cache controller"))
        };
        let entry = 42 + 8 + 512;
        let mut structures = vec![
            volatile(
                "log buffer entry (address, words, 64 B)",
                entry,
                setup.params.entries * cores,
            ),
            volatile("write bit of a line", 1, l1_lines * cores),
            volatile("log and overflow list registers", 4 * 48, cores),
            // A dropped line is looked for in the log: there are at most as many as the log holds.
            Structure::new(
                "dropped line's entry (line, its words, where the log has them)",
                36 + 8 * (1 + 32),
                cores * setup.shape.log_bytes / LINE_BYTES,
                Elsewhere("memory controller"),
            ),
        ];
        if setup.params.commit == CommitRecord::Counts {
            structures.push(volatile("checksum of the running transaction's records", 64, cores));
        }
        structures
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}
