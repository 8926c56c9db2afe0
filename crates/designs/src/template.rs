//! A design to begin with: a hardware undo log that every store waits for.
//!
//! The first store of a transaction to a word writes the word's old value to the log of its core,
//! and waits until that is durable. A commit writes the lines of the transaction back, and then
//! moves the log's mark behind its records, which drops them all at once. After a power failure
//! recovery stores the old values back that are behind the mark.
//!
//! ```text
//! mark         a line, whose first word is the position of the first record that counts
//! ring         two records to a line: address, old value, the record's position plus one
//! ```
//!
//! Positions only grow, so that a record of an earlier lap is not taken for one of this lap. A line
//! is there whole or not at all.

use model::controller::Notify;
use model::design::Location::AtCore;
use model::design::{
    Bare, Below, Card, Design, Disposition, Durability, Evict, Granularity, Needs, Progress, Setup,
    Shape, Store, Structure, Tx,
};
use model::device::Write;
use model::image::{Image, PowerLoss};
use model::meters::Class;
use model::units::{CoreId, Cycle, LINE_BYTES, Line, LineSet, PerCore, Word, WordSet};

model::params! {
    /// What can be chosen.
    pub struct Params {
        /// Records of a core's log, if `pm.log_size` has room for them (ours: as many as it has).
        records = 1_048_576 in 2..=1_048_576, tight [64, 200];
    }
}

model::rules! {
    /// What must hold for it to be right.
    pub struct Rules {
        /// A store waits until its record is durable.
        store_waits_for_record,
        /// A line that is evicted before its record is durable waits.
        eviction_waits_for_record,
        /// The next transaction makes records of its own.
        words_are_forgotten,
        /// The mark moves when the lines of the transaction are durable.
        lines_before_mark,
        /// A transaction is acknowledged when the mark is durable.
        mark_before_answer,
        /// What recovery writes is durable before the mark moves.
        fence_before_log_is_dropped,
    }
}

/// Bytes of a record, and words of it that mean something.
const RECORD_BYTES: u64 = 32;
const RECORD_WORDS: usize = 3;

/// The design.
pub struct Template {
    rules: Rules,
    cores: PerCore<Core>,
    /// Evicted lines that wait for records.
    held: Vec<Evict>,
    /// Counted for reports.
    records: u64,
    evictions_held: u64,
}

/// What the hardware of a core knows. A power failure loses it.
struct Core {
    area: Area,
    /// Where the mark is: records before it are dropped.
    first: u64,
    /// Where the next record goes.
    tail: u64,
    /// Words that the running transaction has a record of.
    logged: WordSet,
    /// Lines that it stored to, also in the order of their first stores.
    stored: LineSet,
    lines: Vec<Line>,
    /// The line whose record is not durable.
    pending: Option<Line>,
    /// How many lines of its commit are not durable, and one more until all have been sent.
    unwritten: u64,
}

/// What a core has sent, and is durable now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A record.
    Logged(CoreId),
    /// A line of a commit; or all lines of a commit have been sent.
    Written(CoreId),
    /// The mark.
    Marked(CoreId),
}

impl Design for Template {
    const CARD: Card = Card {
        name: "template",
        paper: "ours",
        family: "hardware logging",
        summary: "a store waits until the old value of its word is durable",
        file: file!(),
        durability: Durability::Synchronous,
        // What two transactions must not share: a commit writes whole lines back.
        granularity: Granularity::Line,
        // A write is durable when a controller has accepted it.
        needs: Needs::Adr,
    };
    type Params = Params;
    type Rules = Rules;
    type Event = Event;
    type Library = Bare;

    fn new(setup: &Setup<'_, Self>) -> Self {
        Self {
            rules: setup.rules.clone(),
            cores: PerCore::new(setup.shape.cores, |core| Core {
                area: Area::new(setup.shape, setup.params, core),
                first: 0,
                tail: 0,
                logged: WordSet::default(),
                stored: LineSet::default(),
                lines: Vec::new(),
                pending: None,
                unwritten: 0,
            }),
            held: Vec::new(),
            records: 0,
            evictions_held: 0,
        }
    }

    fn store(&mut self, store: &Store, below: &mut Below<Event>) -> Progress {
        let core = &mut self.cores[store.core];
        let line = store.word.line();
        if store.tx.is_none() {
            return Progress::Done(store.at);
        }
        if core.stored.insert(line) {
            core.lines.push(line);
        }
        if core.logged.contains(&store.word) {
            return Progress::Done(store.at);
        }
        if core.tail - core.first == core.area.records {
            below.give_up(format!(
                "a transaction changes more words than the log of {} records holds: raise \
                 design.records, or pm.log_size",
                core.area.records
            ));
            return Progress::Done(store.at);
        }
        core.logged.insert(store.word);
        core.pending = Some(line);
        let record = [store.word.address(), store.old, core.tail + 1];
        let tell = Notify::Design(Event::Logged(store.core));
        send(core.area.at(core.tail), &record, Class::Log, store.leaves, tell, below);
        core.tail += 1;
        self.records += 1;
        if self.rules.store_waits_for_record {
            return Progress::Wait;
        }
        Progress::Done(store.at)
    }

    fn commit(&mut self, tx: &Tx, below: &mut Below<Event>) -> Progress {
        let core = &mut self.cores[tx.core];
        if core.lines.is_empty() {
            return Progress::Done(tx.at);
        }
        let mut at = tx.stored;
        core.unwritten = 1;
        for line in core.lines.drain(..) {
            let tell = Notify::Design(Event::Written(tx.core));
            core.unwritten += u64::from(below.write_back(at, line, Class::Data, tell));
            at += 1;
        }
        below.at(at, Event::Written(tx.core));
        core.stored.clear();
        if self.rules.words_are_forgotten {
            core.logged.clear();
        }
        if !self.rules.lines_before_mark {
            self.move_mark(tx.core, tx.stored, below);
        }
        Progress::Wait
    }

    fn evict(&mut self, evict: &Evict, _below: &mut Below<Event>) -> Disposition<Event> {
        if self.rules.eviction_waits_for_record && self.is_pending(evict.line) {
            self.held.push(*evict);
            self.evictions_held += 1;
            return Disposition::Taken;
        }
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }

    fn event(&mut self, at: Cycle, event: Event, below: &mut Below<Event>) {
        let back = at + below.shape.path;
        match event {
            Event::Logged(core) => {
                self.cores[core].pending = None;
                if self.rules.store_waits_for_record {
                    below.wake(core, back);
                }
                self.send_held(at, below);
            }
            Event::Written(core) => {
                self.cores[core].unwritten -= 1;
                if self.cores[core].unwritten == 0 && self.rules.lines_before_mark {
                    self.move_mark(core, back, below);
                }
            }
            Event::Marked(core) => {
                self.cores[core].first = self.cores[core].tail;
                if self.rules.mark_before_answer {
                    below.wake(core, back);
                }
            }
        }
    }

    /// Energy for some of the caches may save a line and not its record.
    fn leaves_behind(&self, line: Line) -> bool {
        self.is_pending(line)
    }

    /// A campaign asks wherever it cuts the power; a sentence is a violation.
    fn invariants(&self) -> Result<(), String> {
        let is_over = |core: &Core| core.tail - core.first > core.area.records;
        match self.cores.iter().find(|(_, core)| is_over(core)) {
            Some((CoreId(core), _)) => {
                Err(format!("core {core} has written over a record behind its mark"))
            }
            None => Ok(()),
        }
    }

    fn recover(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<(), PowerLoss> {
        for core in (0..setup.shape.cores).map(CoreId) {
            recover(image, &Area::new(setup.shape, setup.params, core), setup.rules)?;
        }
        Ok(())
    }

    fn boot(image: &mut Image<'_>, setup: &Setup<'_, Self>) -> Result<Self, PowerLoss> {
        let mut design = Self::new(setup);
        for (_, core) in design.cores.iter_mut() {
            core.first = image.word(core.area.mark);
            core.tail = core.first;
        }
        Ok(design)
    }

    fn hardware(setup: &Setup<'_, Self>) -> Vec<Structure> {
        let cores = u64::from(setup.shape.cores);
        let volatile = |name, bits, count| {
            Structure::new(name, bits, count, AtCore("first-level cache controller"))
        };
        vec![
            volatile("log head, tail and mark", 3 * 48, cores),
            volatile("words that have a record", 45, 64 * cores),
        ]
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("records", self.records), ("evictions_held", self.evictions_held)]
    }
}

impl Template {
    fn move_mark(&mut self, core: CoreId, at: Cycle, below: &mut Below<Event>) {
        let Core { area, tail, .. } = &self.cores[core];
        let tell = Notify::Design(Event::Marked(core));
        send(area.mark, &[*tail], Class::Commit, at, tell, below);
        if !self.rules.mark_before_answer {
            below.wake(core, at);
        }
    }

    fn is_pending(&self, line: Line) -> bool {
        self.cores.iter().any(|(_, core)| core.pending == Some(line))
    }

    fn send_held(&mut self, at: Cycle, below: &mut Below<Event>) {
        for evict in std::mem::take(&mut self.held) {
            if self.is_pending(evict.line) {
                self.held.push(evict);
                continue;
            }
            let write = Write::whole(evict.line, evict.data, Class::HomeWriteBack);
            below.send_on(evict.at, at + below.shape.hop(), write, Notify::Nobody);
        }
    }
}

/// Where the log of a core lies: a line that holds the mark, then a ring of records.
struct Area {
    mark: Word,
    ring: u64,
    records: u64,
}

impl Area {
    fn new(shape: &Shape, params: &Params, core: CoreId) -> Area {
        let (base, lines) = (shape.log_of(core), shape.log_bytes / LINE_BYTES - 1);
        let room = lines * LINE_BYTES / RECORD_BYTES;
        let records = room.min(params.records / 2 * 2);
        Area { mark: Word::of(base), ring: base + LINE_BYTES, records }
    }

    /// The first word of the record of a position.
    fn at(&self, position: u64) -> Word {
        Word::of(self.ring + position % self.records * RECORD_BYTES)
    }
}

/// Sends words of a line past the caches. The rest of the line has its newest bytes, so that no
/// memory has to read them.
fn send(
    first: Word,
    words: &[u64],
    class: Class,
    at: Cycle,
    tell: Notify<Event>,
    below: &mut Below<Event>,
) {
    for (word, &value) in (first.0..).zip(words) {
        below.view.set_word(Word(word), value);
    }
    let write = Write::whole(first.line(), below.line(first.line()), class);
    below.send(at, write, tell);
}

/// Stores the old values back that are behind a core's mark, newest first, and then drops them.
fn recover(image: &mut Image<'_>, area: &Area, rules: &Rules) -> Result<(), PowerLoss> {
    let first = image.word(area.mark);
    let mut end = first;
    let mut undo = Vec::new();
    while end - first < area.records {
        let place = area.at(end).0;
        let [address, old, position]: [u64; RECORD_WORDS] =
            std::array::from_fn(|word| image.word(Word(place + word as u64)));
        if position != end + 1 {
            break;
        }
        undo.push((Word::of(address), old));
        end += 1;
    }
    if undo.is_empty() {
        return Ok(());
    }
    for &(word, old) in undo.iter().rev() {
        image.set_word(word, old)?;
    }
    if rules.fence_before_log_is_dropped {
        image.fence();
    }
    image.set_word(area.mark, end)
}
