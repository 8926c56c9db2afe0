//! The undo log in hardware that SSP was compared with (Ni et al., MICRO 2019, section 5.1): the
//! first store to a line in a transaction makes an entry with the line's old bytes, and blocks
//! until the entry is durable. A commit writes the lines back and then leaves a mark.
//!
//! ```text
//! marks        mark 0: the position of the first entry of the running transaction
//! ring         an entry is two lines: the old bytes; address, where the next entry begins, checksum
//! ```
//!
//! An entry counts if its checksum is right for the position at which it lies, and all before it
//! do. The mark thus drops every entry of the transactions before it at once. The paper leaves open
//! how an entry lies in memory. Here it is persisted alone and takes two lines (ours).

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::Location::AtCore;
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Gasp, Granularity, KeptBy, Needs,
    Progress, Setup, Store, Structure, Tx,
};
use model::device::Write;
use model::image::{Image, PowerLoss, put_word, word_of};
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, LineData, LineSet, PerCore, Word, mix, mix_all};

use crate::parts::area::Area;

model::params! {
    /// The size of what the paper calls the log buffer.
    pub struct UndoLogParams {
        /// Lines that one core's filter of logged lines holds (ours: the paper says tuned, and
        /// the other baseline has 64; our write sets have up to 47 lines).
        entries = 64 in 1..=4096, tight [4, 4, 4, 4, 4, 1];
    }
}

model::rules! {
    /// What keeps the log right (SSP, MICRO'19 section 5.1, for the blocking store; the rest is
    /// ours).
    pub struct UndoLogRules {
        /// A store that makes an entry blocks until the entry is durable.
        block_until_entry_is_durable,
        /// A line that is evicted before its entry is durable waits for it. (The paper's store
        /// happens after its entry; in our machine it is in the caches while it blocks.)
        eviction_after_entry,
        /// The filter forgets its lines when the transaction ends.
        clear_filter_at_commit,
        /// A commit writes the lines of its transaction back.
        write_back_at_commit,
        /// The mark follows the lines.
        mark_after_lines,
        /// The acknowledgement follows the mark.
        acknowledge_after_mark,
        /// Recovery applies entries newest first: if a line was logged twice, the oldest entry
        /// wins.
        undo_newest_first,
        /// Recovery believes an entry only if its checksum is right.
        verify_checksum,
        /// Recovery's writes are durable before the mark that drops the log.
        fence_before_log_is_dropped,
    }
}

/// Words of an entry: two lines.
const ENTRY_WORDS: u64 = 16;
/// The mark that says where the running transaction's entries begin.
const FIRST: u64 = 0;

/// The design: a log and a filter for each core.
pub struct UndoLog {
    params: UndoLogParams,
    rules: UndoLogRules,
    /// Whether the caches survive: stores then survive before their entries are durable.
    caches_survive: bool,
    cores: PerCore<CoreLog>,
    /// Lines that were evicted before their entries were durable.
    held: Vec<Evict>,
    counts: Counts,
}

struct CoreLog {
    area: Area,
    /// Where the next entry goes, and where the entries of the running transaction begin.
    tail: u64,
    first: u64,
    /// Lines that are known to be logged in this transaction; `order` has the order of entry.
    filter: LineSet,
    order: VecDeque<Line>,
    /// Lines stored to in this transaction.
    lines: Vec<Line>,
    /// Entries that are not durable.
    pending: Vec<Pending>,
    /// How many lines of a commit are not durable, and one more while lines are being sent.
    writing_back: u64,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    line: Line,
    position: u64,
    entry: [u64; ENTRY_WORDS as usize],
    /// How many of its writes are not durable.
    writes: u64,
}

/// The timed events of the undo log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoLogEvent {
    /// A write of the entry at a position is durable.
    Logged(CoreId, u64),
    /// A line of a commit is durable, or all have been sent.
    WrittenBack(CoreId),
    /// The mark of a commit is durable: entries before this position are dropped.
    Marked(CoreId, u64),
}

model::counters! {
    struct Counts {
        entries,
        forgotten "filter_overflows",
        wraps "log_wraps",
        held "evictions_held",
        written_back "lines_written_back",
    }
}

impl Design for UndoLog {
    const CARD: Card = Card {
        name: "undo-log",
        paper: "Ni et al., MICRO 2019 (a baseline)",
        family: "hardware logging",
        summary: "a store blocks until the old bytes of its line are logged",
        file: file!(),
        durability: Durability::Synchronous,
        granularity: Granularity::Line,
        needs: Needs::Nothing,
    };
    type Params = UndoLogParams;
    type Rules = UndoLogRules;
    type Event = UndoLogEvent;
    type Library = Bare;

    fn new(setup: &Setup<'_, UndoLog>) -> UndoLog {
        UndoLog {
            params: setup.params.clone(),
            rules: setup.rules.clone(),
            caches_survive: setup.shape.caches_survive(),
            cores: PerCore::new(setup.shape.cores, |core| CoreLog {
                area: Area::new(setup.shape, core),
                tail: 0,
                first: 0,
                filter: LineSet::default(),
                order: VecDeque::new(),
                lines: Vec::new(),
                pending: Vec::new(),
                writing_back: 0,
            }),
            held: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<UndoLogEvent>) -> Progress {
        let line = store.word.line();
        let log = &mut self.cores[store.core];
        if store.tx.is_none() || !log.filter.insert(line) {
            return Progress::Done(store.at);
        }
        log.order.push_back(line);
        if log.order.len() as u64 > self.params.entries {
            let oldest = log.order.pop_front().expect("the filter has lines");
            log.filter.remove(&oldest);
            self.counts.forgotten += 1;
        }
        log.lines.push(line);
        let mut old = below.line(line);
        put_word(&mut old, store.word, store.old);
        self.log(store, line, &old, below);
        if self.rules.block_until_entry_is_durable {
            return Progress::Wait;
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<UndoLogEvent>) -> Progress {
        let log = &mut self.cores[tx.core];
        if log.lines.is_empty() {
            return Progress::Done(tx.at);
        }
        if self.rules.clear_filter_at_commit {
            log.filter.clear();
            log.order.clear();
        }
        log.lines.sort_unstable();
        log.lines.dedup();
        let mut at = tx.stored;
        for line in std::mem::take(&mut log.lines) {
            let notify = Notify::Design(UndoLogEvent::WrittenBack(tx.core));
            if self.rules.write_back_at_commit && below.write_back(at, line, Class::Data, notify) {
                log.writing_back += 1;
                self.counts.written_back += 1;
            }
            at += 1;
        }
        log.writing_back += 1;
        below.at(at, UndoLogEvent::WrittenBack(tx.core));
        if !self.rules.mark_after_lines {
            self.mark(tx.core, tx.stored, below);
        }
        Progress::Wait
    }

    fn evict(
        &mut self,
        evict: &Evict,
        _below: &mut Below<UndoLogEvent>,
    ) -> Disposition<UndoLogEvent> {
        if self.rules.eviction_after_entry && self.is_pending(evict.line) {
            self.counts.held += 1;
            self.held.push(*evict);
            return Disposition::Taken;
        }
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }

    fn event(&mut self, at: Cycle, event: UndoLogEvent, below: &mut Below<UndoLogEvent>) {
        match event {
            UndoLogEvent::Logged(core, position) => self.logged(core, position, at, below),
            UndoLogEvent::WrittenBack(core) => {
                let log = &mut self.cores[core];
                log.writing_back -= 1;
                if log.writing_back == 0 && self.rules.mark_after_lines {
                    self.mark(core, at + below.shape.path, below);
                }
            }
            UndoLogEvent::Marked(core, position) => {
                self.cores[core].first = position;
                if self.rules.acknowledge_after_mark {
                    below.wake(core, at + below.shape.path);
                }
            }
        }
    }

    fn power_loss(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        if !self.caches_survive {
            return Ok(());
        }
        for (_, log) in self.cores.iter() {
            for pending in &log.pending {
                for (place, word) in (pending.position..).zip(pending.entry) {
                    gasp.save_words(log.area.word(place).address(), &[word])?;
                }
            }
        }
        Ok(())
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, UndoLog>) -> Result<(), PowerLoss> {
        for core in (0..setup.shape.cores).map(CoreId) {
            recover(image, &Area::new(setup.shape, core), setup.rules)?;
        }
        Ok(())
    }

    /// A core's store blocks until its entry is durable, so behind the last whole entry there is at
    /// most one that is there in part. Its place is passed over: with words of another entry of the
    /// same line it could be whole.
    fn boot(image: &mut Image<'_>, setup: &Setup<'_, UndoLog>) -> Result<UndoLog, PowerLoss> {
        let mut design = UndoLog::new(setup);
        for (_, log) in design.cores.iter_mut() {
            log.first = image.word(log.area.mark(FIRST)) + ENTRY_WORDS;
            image.set_word(log.area.mark(FIRST), log.first)?;
            log.tail = log.first;
        }
        Ok(design)
    }

    fn hardware(setup: &Setup<'_, UndoLog>) -> Vec<Structure> {
        let cores = u64::from(setup.shape.cores);
        let volatile = |name, bits, count| {
            Structure::new(name, bits, count, AtCore("first-level cache controller"))
        };
        let mut structures = vec![
            volatile("filter of logged lines (line address)", 42, setup.params.entries * cores),
            volatile("log head and tail", 2 * 48, cores),
        ];
        if setup.shape.caches_survive() {
            let entry = volatile("entry under way (kept because the caches are)", 128 * 8, cores);
            structures.push(entry.kept(KeptBy::Battery));
        }
        structures
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts.list()
    }
}

impl UndoLog {
    /// Makes the entry of a line, and sends it.
    fn log(&mut self, store: &Store, line: Line, old: &LineData, below: &mut Below<UndoLogEvent>) {
        let log = &mut self.cores[store.core];
        let position = log.tail;
        if position + ENTRY_WORDS - log.first > log.area.words() {
            return below.give_up(format!(
                "a transaction of more than {} lines does not fit the log of {} bytes: raise it \
                 with --set pm.log_size=...",
                log.area.words() / ENTRY_WORDS,
                log.area.bytes()
            ));
        }
        let entry = entry(position, line, old);
        let notify = Notify::Design(UndoLogEvent::Logged(store.core, position));
        // The old bytes are there when the line is.
        let writes = log.area.append(position, &entry, store.leaves, notify, below);
        log.pending.push(Pending { line, position, entry, writes });
        log.tail += ENTRY_WORDS;
        self.counts.entries += 1;
        self.counts.wraps += u64::from(log.area.wraps(position, ENTRY_WORDS));
    }

    /// Counts a durable write of an entry. After the last one the store goes on, and so does its
    /// line if that was evicted.
    fn logged(&mut self, core: CoreId, position: u64, at: Cycle, below: &mut Below<UndoLogEvent>) {
        let log = &mut self.cores[core];
        let index = log.pending.iter().position(|pending| pending.position == position);
        let index = index.expect("an entry is under way until its last write is durable");
        log.pending[index].writes -= 1;
        if log.pending[index].writes > 0 {
            return;
        }
        log.pending.remove(index);
        if self.rules.block_until_entry_is_durable {
            below.wake(core, at + below.shape.path);
        }
        for evict in std::mem::take(&mut self.held) {
            if self.is_pending(evict.line) {
                self.held.push(evict);
                continue;
            }
            let Evict { line, data, at: left } = evict;
            let write = Write::whole(line, data, Class::HomeWriteBack);
            below.send_on(left, at + below.shape.hop(), write, Notify::Nobody);
        }
    }

    fn is_pending(&self, line: Line) -> bool {
        let pends = |log: &CoreLog| log.pending.iter().any(|pending| pending.line == line);
        self.cores.iter().any(|(_, log)| pends(log))
    }

    /// Sends the mark that drops the entries of a transaction.
    fn mark(&mut self, core: CoreId, at: Cycle, below: &mut Below<UndoLogEvent>) {
        let log = &self.cores[core];
        let notify = Notify::Design(UndoLogEvent::Marked(core, log.tail));
        log.area.set_mark(FIRST, log.tail, at, notify, below);
        if !self.rules.acknowledge_after_mark {
            below.wake(core, at);
        }
    }
}

fn entry(position: u64, line: Line, old: &LineData) -> [u64; ENTRY_WORDS as usize] {
    let mut entry = [0; ENTRY_WORDS as usize];
    for (place, word) in entry[..8].iter_mut().enumerate() {
        *word = word_of(old, Word(place as u64));
    }
    let sum = checksum(position, line.address(), &entry[..8]);
    entry[8..11].copy_from_slice(&[line.address(), position + ENTRY_WORDS, sum]);
    entry
}

fn checksum(position: u64, address: u64, old: &[u64]) -> u64 {
    mix_all(mix(address ^ position.rotate_left(32)), old)
}

/// Revokes what the running transaction of a core stored, and drops its entries.
fn recover(image: &mut Image<'_>, area: &Area, rules: &UndoLogRules) -> Result<(), PowerLoss> {
    let first = image.word(area.mark(FIRST));
    let mut end = first;
    let mut entries: Vec<(Line, LineData)> = Vec::new();
    while end + ENTRY_WORDS - first <= area.words() {
        let entry: [u64; ENTRY_WORDS as usize] =
            std::array::from_fn(|place| image.word(area.word(end + place as u64)));
        let [address, after, sum] = [entry[8], entry[9], entry[10]];
        let is_right = sum == checksum(end, address, &entry[..8]);
        if after != end + ENTRY_WORDS || rules.verify_checksum && !is_right {
            break;
        }
        entries.push((Line::of(address), *image.line(area.word(end).line())));
        end += ENTRY_WORDS;
    }
    if entries.is_empty() {
        return Ok(());
    }
    if rules.undo_newest_first {
        entries.reverse();
    }
    for (line, old) in entries {
        image.set_line(line, &old, u64::MAX)?;
    }
    if rules.fence_before_log_is_dropped {
        image.fence();
    }
    image.set_word(area.mark(FIRST), end)
}
