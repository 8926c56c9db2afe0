//! A volatile log buffer over a ring in memory: records enter it in order, fill lines, and leave
//! for the controllers. The log is durable up to the first line that its controller has not
//! accepted.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Gasp, Shape, Store};
use model::device::Write;
use model::image::PowerLoss;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, PerCore};

use super::LogEvent;
use super::coming::Coming;
use super::line::Filling;
use super::record::{Kind, Record};
use super::ring::{FOOTER, Ring};
use super::rules::LogRules;

/// A place in the log: a line's number since the log began, and where in it a record ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// Where the record ends.
    pub end: u8,
}

/// The log: its buffer, and the registers that say how much of the ring is in use.
#[derive(Debug)]
pub struct Log {
    ring: Ring,
    rules: LogRules,
    path: u64,
    survives: bool,
    /// How many lines the buffer holds.
    size: usize,
    /// Lines of the ring that are kept for records that must not wait.
    reserve: u64,
    /// Records that enter when their stores have left.
    coming: Coming,
    /// Lines that are not durable as a whole, oldest first; the last one is being filled.
    lines: VecDeque<Filling>,
    /// The number of the first of these lines.
    first: u64,
    /// The place up to which the log has been sent; after a full line, the start of the next one.
    sent: Place,
    /// The place up to which the log has to be sent although its line is not full.
    wanted: Place,
    /// Records that are not durable, oldest first: place, core, kind, and line of data.
    records: VecDeque<(Place, CoreId, Kind, Line)>,
    /// How many of these undo, and how many do not, for each core.
    under_way: PerCore<[u64; 2]>,
    /// How many have become durable since each core's were last taken.
    answered: PerCore<[u64; 2]>,
    /// Lines of the ring before this one are needed by running transactions only.
    used: u64,
    /// Each core's transactions that need their undo data, oldest first: the line of the first
    /// record, and whether there is a commit record.
    running: PerCore<VecDeque<(u64, bool)>>,
    /// Whether each core's store waits.
    waiting: PerCore<bool>,
    /// Lines of the ring that are kept for other records that must not wait.
    pub owed: u64,
    /// The first line of the last pass in which a line was held back.
    held: u64,
    /// Its counts.
    pub counts: LogCounts,
}

model::counters! {
    /// The counts of a log.
    pub struct LogCounts {
        records "log_records",
        commits "commit_records",
        wraps "log_wraps",
        buffer_full "log_buffer_full",
        ring_full "log_ring_full",
        sent_in_part "log_lines_sent_in_part",
        passes_held "log_passes_held",
    }
}

impl Log {
    /// An empty log with a buffer of `size` lines. It keeps two lines of the ring at least, and so
    /// many for each core that the record of a store that has taken effect, and its commit, do not
    /// wait: any two records fit a line.
    pub fn new(shape: &Shape, ring: Ring, size: u64, rules: &LogRules) -> Log {
        Log {
            ring,
            rules: rules.clone(),
            path: shape.path,
            survives: shape.caches_survive(),
            size: size as usize,
            reserve: u64::from(shape.cores).max(2),
            lines: VecDeque::from([Filling::new(0)]),
            coming: Coming::new(shape.cores),
            first: 0,
            sent: Place::default(),
            wanted: Place::default(),
            records: VecDeque::new(),
            under_way: PerCore::new(shape.cores, |_| [0; 2]),
            answered: PerCore::new(shape.cores, |_| [0; 2]),
            used: 0,
            running: PerCore::new(shape.cores, |_| VecDeque::new()),
            waiting: PerCore::new(shape.cores, |_| false),
            owed: 0,
            held: 0,
            counts: LogCounts::default(),
        }
    }

    /// Keeps as many lines as there are cores, and one: a store may have two records to come.
    pub fn keep_more(&mut self, cores: u8) {
        self.reserve = u64::from(cores) + 1;
    }

    /// Takes the record of a store, which has its room in the ring from now on. The record enters
    /// when the store leaves its core and the buffer has room. Where the caches survive a power
    /// failure, a store that has not left survives, too, and so must its record: it enters at once.
    /// Returns whether it has entered.
    pub fn enter(&mut self, record: Record, store: &Store, below: &mut Below<LogEvent>) -> bool {
        let at_once = self.survives || store.leaves <= store.at && !self.coming.has(record.core);
        if at_once {
            self.append(&record, store.at, below);
        } else {
            self.coming.push(record, store, below);
        }
        at_once
    }

    /// Notes that a store of a core has left.
    pub fn left(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        self.coming.look(core);
        self.take_in(core, at, below);
        self.counts.buffer_full += u64::from(self.coming.is_due(core, at));
        self.wake(at, below);
    }

    /// Lets the records of a core's stores that have left enter as far as the buffer has room. The
    /// others follow when a controller has accepted a line.
    fn take_in(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        while self.has_room()
            && let Some(record) = self.coming.next(core, at)
        {
            self.append(&record, at, below);
        }
        self.coming.await_next(core, at, below);
    }

    /// Whether records of a core's stores to a line wait for room although the stores have left.
    pub fn holds_back(&self, core: CoreId, line: Line, at: Cycle) -> bool {
        self.coming.is_due_of(core, line, at)
    }

    /// Whether records of a core are still to enter.
    pub fn awaits(&self, core: CoreId) -> bool {
        self.coming.has(core)
    }

    /// Appends a record, and sends lines that are full.
    pub fn append(&mut self, record: &Record, at: Cycle, below: &mut Below<LogEvent>) -> Place {
        let last = self.lines.back_mut().expect("a line is being filled");
        let (before, filled) = (last.count, last.filled);
        let (bytes, length) = record.encode();
        let bytes = &bytes[..length];
        let end = last.put(record.kind, bytes, &self.ring).unwrap_or_else(|| {
            let mut next = Filling::new(before);
            let end = next.put(record.kind, bytes, &self.ring).expect("a record fits a line");
            if self.sent == (Place { line: self.tail(), end: filled }) {
                self.sent = Place { line: self.tail() + 1, end: 0 };
            }
            self.lines.push_back(next);
            end
        });
        let line = self.tail();
        let place = Place { line, end };
        let core = record.core;
        self.records.push_back((place, core, record.kind, record.word.line()));
        self.under_way[core][usize::from(!record.kind.undoes())] += 1;
        self.count(record, line);
        self.retire();
        self.send(at, below);
        place
    }

    /// Counts a record that lies in a line, and notes the transaction that begins or ends with it.
    fn count(&mut self, record: &Record, line: u64) {
        let running = &mut self.running[record.core];
        let is_open = running.back().is_some_and(|(_, committed)| !committed);
        match record.kind {
            Kind::Commit => {
                self.counts.commits += 1;
                let first = if is_open { running.pop_back() } else { None };
                running.push_back((first.map_or(line, |(first, _)| first), true));
            }
            Kind::Count => (),
            kind => {
                self.counts.records += 1;
                if kind.undoes() && !is_open {
                    running.push_back((line, false));
                }
            }
        }
    }

    /// Sends everything up to a place, though its line may not be full.
    pub fn flush(&mut self, place: Place, at: Cycle, below: &mut Below<LogEvent>) {
        self.wanted = self.wanted.max(place);
        self.send(at, below);
    }

    /// Sends everything that has entered.
    pub fn flush_all(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        let last = self.lines.back().expect("a line is being filled");
        self.flush(Place { line: self.tail(), end: last.filled }, at, below);
    }

    /// Notes that a controller has accepted a line of the log up to `end`.
    pub fn accepted(&mut self, line: u64, end: u8, at: Cycle, below: &mut Below<LogEvent>) {
        let accepted = &mut self.lines[(line - self.first) as usize].accepted;
        *accepted = end.max(*accepted);
        self.retire();
        let durable = self.durable();
        while let Some(&(_, core, kind, _)) =
            self.records.front().filter(|(place, ..)| *place <= durable)
        {
            self.under_way[core][usize::from(!kind.undoes())] -= 1;
            self.answered[core][usize::from(!kind.undoes())] += 1;
            self.records.pop_front();
        }
        self.send(at, below);
        self.wake(at, below);
    }

    /// Removes the lines that are full and durable from the buffer.
    fn retire(&mut self) {
        while self.lines.len() > 1 && self.lines[0].accepted == self.lines[0].filled {
            self.lines.pop_front();
            self.first += 1;
        }
    }

    /// The place up to which the log is durable.
    pub fn durable(&self) -> Place {
        Place { line: self.first, end: self.lines[0].accepted }
    }

    /// The place of the newest record that undoes a store to a line, if that is not durable.
    pub fn newest(&self, line: Line) -> Option<Place> {
        let mut newest_first = self.records.iter().rev();
        let undoes = |&&(_, _, kind, other): &&(_, _, Kind, _)| other == line && kind.undoes();
        newest_first.find(undoes).map(|(place, ..)| *place)
    }

    /// Returns the place up to which the log must be durable before a line may go; sends it that
    /// far.
    pub fn send_before(
        &mut self,
        line: Line,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) -> Option<Place> {
        if !self.rules.line_after_records {
            return None;
        }
        // A store's bytes are in its line from its turn on, so its record goes first, left or not.
        while let Some(record) = self.coming.next_of(line) {
            self.append(&record, at, below);
        }
        let after = self.newest(line);
        if let Some(place) = after {
            self.flush(place, at, below);
        }
        after
    }

    /// How many records of a core are not durable: those that undo, and the others.
    pub fn under_way(&self, core: CoreId) -> [u64; 2] {
        self.under_way[core]
    }

    /// How many records of a core have become durable since this was last asked.
    pub fn take_answers(&mut self, core: CoreId) -> [u64; 2] {
        std::mem::take(&mut self.answered[core])
    }

    /// The line that is being filled.
    pub fn tail(&self) -> u64 {
        self.first + self.lines.len() as u64 - 1
    }

    // What must wait, and when it goes on.

    /// Whether stores have to wait, for room in the buffer or in the ring.
    pub fn is_full(&self) -> bool {
        !self.has_room() || self.is_ring_full()
    }

    fn has_room(&self) -> bool {
        self.lines.len() <= self.size
    }

    /// Lines that the records of stores that have not left will take, at the most.
    fn to_come(&self) -> u64 {
        self.coming.count().div_ceil(2)
    }

    /// Whether stores have to wait for room in the ring.
    fn is_ring_full(&self) -> bool {
        let end = self.tail() + self.reserve + self.owed + self.to_come();
        self.rules.stall_when_full && end >= self.head() + self.ring.lines()
    }

    /// Lets a core's store wait until there is room, when the core is woken. Ends the run if there
    /// will never be room: the ring is full of what a running transaction has to keep.
    pub fn wait(&mut self, core: CoreId, below: &mut Below<LogEvent>) {
        self.waiting[core] = true;
        if self.is_ring_full() {
            self.counts.ring_full += 1;
            self.check(below);
        } else {
            self.counts.buffer_full += 1;
        }
    }

    /// Whether a core waits for room in the ring.
    pub fn is_short(&self) -> bool {
        self.has_waiting() && self.is_ring_full()
    }

    fn has_waiting(&self) -> bool {
        self.waiting.iter().any(|(_, waits)| *waits)
    }

    /// Whether a core waits for room in the ring that a scan can make.
    pub fn needs_cut(&self) -> bool {
        self.is_short() && self.used < self.oldest().unwrap_or(u64::MAX).min(self.tail())
    }

    fn check(&self, below: &mut Below<LogEvent>) {
        if !self.rules.keep_running || !self.is_ring_full() {
            return;
        }
        let head = self.head();
        let mut running = self.running.iter();
        // Records that are to come may enter a line that has room, and take none of their own.
        let is_stuck = self.coming.count() == 0
            && running
                .any(|(core, lines)| lines.front() == Some(&(head, false)) && self.waiting[core]);
        // A ring that is full when it is empty will never have room.
        if is_stuck || self.reserve >= self.ring.lines() {
            below.give_up(format!(
                "running transactions do not fit the log ring of {} lines: raise it with --set \
                 design.log_lines=... and pm.log_size=...",
                self.ring.lines()
            ));
        }
    }

    fn wake(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        if self.coming.count() > 0 {
            (0..self.waiting.cores()).for_each(|core| self.take_in(CoreId(core), at, below));
        }
        if !self.has_waiting() {
            return;
        }
        if self.is_full() {
            return self.check(below);
        }
        for (core, waits) in self.waiting.iter_mut().filter(|(_, waits)| **waits) {
            *waits = false;
            below.wake(core, at + self.path);
        }
    }

    // Truncation.

    /// Notes that the oldest of a core's transactions that need their undo data needs them no more.
    pub fn ended(&mut self, core: CoreId) {
        self.running[core].pop_front();
    }

    /// The first line of the ring that a transaction needs.
    fn oldest(&self) -> Option<u64> {
        let oldest = self.running.iter().filter_map(|(_, lines)| lines.front());
        oldest.map(|(line, _)| *line).min()
    }

    /// Notes that lines of the ring before this one are needed by running transactions only.
    /// Returns whether that is new.
    pub fn forget(&mut self, before: u64) -> bool {
        let is_new = before > self.used;
        self.used = self.used.max(before);
        is_new
    }

    /// Sends lines and wakes cores that waited, since the ring has room or a transaction has ended.
    pub fn go_on(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        self.send(at, below);
        self.wake(at, below);
    }

    /// The first line of the ring that must not be overwritten.
    fn head(&self) -> u64 {
        match self.oldest() {
            Some(line) if self.rules.keep_running => self.used.min(line).min(self.first),
            _ => self.used.min(self.first),
        }
    }

    // To the controllers.

    #[inline]
    fn send(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        while self.has_more_to_send() && self.send_line(at, below) {}
    }

    /// Whether there is a full line to send, or a part of the last one that has to be sent.
    #[inline]
    fn has_more_to_send(&self) -> bool {
        self.sent.line < self.tail() || self.sent < self.wanted
    }

    fn may_send(&mut self, number: u64) -> bool {
        if self.rules.stall_when_full && number >= self.head() + self.ring.lines() {
            return false;
        }
        let pass = self.ring.pass_of(number);
        let alone = match pass == number {
            true => self.first == number,
            false => self.first > pass || self.lines[(pass - self.first) as usize].accepted > 0,
        };
        let may = alone || !self.rules.pass_begins_alone || number < self.ring.lines();
        if !may && self.held < pass {
            self.held = pass;
            self.counts.passes_held += 1;
        }
        may
    }

    /// Sends a line if it may go, and returns whether it did. Most of the times that the log looks,
    /// there is none to send.
    #[inline(never)]
    fn send_line(&mut self, at: Cycle, below: &mut Below<LogEvent>) -> bool {
        let Place { line: number, end: sent } = self.sent;
        if !self.may_send(number) {
            return false;
        }
        let is_last = number == self.tail();
        let line = &self.lines[(number - self.first) as usize];
        let (fresh, filled) = (sent == 0, line.filled);
        self.counts.wraps += u64::from(fresh && number > 0 && self.ring.pass_of(number) == number);
        self.counts.sent_in_part += u64::from(!fresh);
        let ones = |bytes: u8| (1_u64 << bytes) - 1;
        // A full line goes whole, so that no memory has to read the rest of it.
        let is_full = !is_last || line.is_full(&self.ring);
        let end = if is_full { u64::MAX } else { ones(filled) | 1 << FOOTER };
        let mask = end & !ones(sent);
        let class = if line.logged > sent { Class::Log } else { Class::Commit };
        let data = line.bytes(&self.ring, number, self.rules.torn_bit_flips);
        let write = Write { line: self.ring.place(number), data, mask, class };
        let notify = Notify::Design(LogEvent::Logged { line: number, end: filled });
        self.sent = match is_last {
            false => Place { line: number + 1, end: 0 },
            true => Place { line: number, end: filled },
        };
        below.send_direct(at + self.path, write, notify);
        true
    }

    /// Where the caches survive a power failure: saves what no controller has accepted, and behind
    /// it the records in `more`, which have not entered the log.
    ///
    /// # Errors
    /// [`PowerLoss`] when the battery is empty.
    pub fn save(
        &self,
        gasp: &mut Gasp<'_, '_>,
        more: impl Iterator<Item = Record>,
    ) -> Result<(), PowerLoss> {
        if !self.survives {
            return Ok(());
        }
        let mut save = |number: u64, line: &Filling| {
            if line.accepted == line.filled {
                return Ok(());
            }
            let data = line.bytes(&self.ring, number, self.rules.torn_bit_flips);
            gasp.save(self.ring.place(number).address(), &data)
        };
        let mut last = *self.lines.back().expect("a line is being filled");
        let mut number = self.tail();
        for (number, line) in (self.first..number).zip(&self.lines) {
            save(number, line)?;
        }
        for record in more {
            let (bytes, length) = record.encode();
            let bytes = &bytes[..length];
            if last.put(record.kind, bytes, &self.ring).is_none() {
                save(number, &last)?;
                (number, last) = (number + 1, Filling::new(last.count));
                last.put(record.kind, bytes, &self.ring).expect("a record fits a line");
            }
        }
        save(number, &last)
    }
}

#[cfg(test)]
mod tests;
