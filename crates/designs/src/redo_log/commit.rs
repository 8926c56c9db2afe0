//! From a store to the commit record: the write set, records, and their order.

use model::controller::Notify;
use model::design::{Below, Store};
use model::units::{CoreId, Cycle, LINE_WORDS, Line, bits, mix_all};

use super::record::{self, Record};
use super::{
    CHECKSUM, COMMIT, CommitRecord, Ended, LogRecord, Owner, RedoLog, RedoLogEvent, Stage,
};

impl RedoLog {
    /// Adds a store of a transaction to its core's log buffer, which may hold a line too many then.
    pub(super) fn gather(&mut self, store: &Store) {
        let whole_lines = self.params.record == LogRecord::Line;
        let line = store.word.line();
        let word = if whole_lines { u8::MAX } else { 1 << store.word.place() };
        let log = &mut self.cores[store.core];
        if let Some((_, words)) = log.buffer.iter_mut().rev().find(|(other, _)| *other == line) {
            *words |= word;
            self.counts.merged += 1;
            return;
        }
        self.own(store.core, line);
        self.cores[store.core].buffer.push_back((line, word));
    }

    /// Sends the record of the oldest line in a core's log buffer if the buffer holds a line too
    /// many. Returns whether the store that brought that line waits for records.
    pub(super) fn make_room(
        &mut self,
        core: CoreId,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) -> bool {
        let buffer = &mut self.cores[core].buffer;
        if buffer.len() as u64 <= self.params.entries {
            return false;
        }
        let (line, words) = buffer.pop_front().expect("the buffer has lines");
        self.counts.buffer_evictions += 1;
        self.log(core, Record::Redo(line, words), at, below);
        let log = &mut self.cores[core];
        log.holds_store = log.logging >= below.shape.config.controller.writebacks;
        self.counts.held_store += u64::from(log.holds_store);
        log.holds_store
    }

    /// Adds a line that is not in a core's log buffer to the core's write set, if it is not there.
    fn own(&mut self, core: CoreId, line: Line) {
        let log = &mut self.cores[core];
        let new = Owner {
            core,
            end: None,
            words: 0,
            logged: [0; LINE_WORDS as usize],
            listed: false,
            dropped: false,
            written: false,
            home: false,
        };
        match self.lines.insert(line, new) {
            // The line has left the log buffer, and is stored to again.
            Some(same) if same.core == core && same.end.is_none() => {
                self.lines.insert(line, same);
                return;
            }
            Some(Owner { core: other, end: Some(end), .. })
                if other != core && !log.after.contains(&(other, end)) =>
            {
                log.after.push((other, end));
                self.counts.dependences += 1;
            }
            _ => (),
        }
        log.lines.push(line);
    }

    /// Sends a record to a core's log.
    pub(super) fn log(
        &mut self,
        core: CoreId,
        record: Record,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        self.put(core, record, below);
        self.send(core, at, below);
    }

    /// Puts a record behind those that are to be sent.
    fn put(&mut self, core: CoreId, record: Record, below: &Below<RedoLogEvent>) {
        let at = self.cores[core].tail + self.words.len() as u64;
        record.write(&below.view, &mut self.words);
        self.counts.records += 1;
        if let Record::Redo(line, words) = record
            && let Some(owner) = self.lines.get_mut(&line).filter(|owner| owner.core == core)
        {
            owner.words |= words;
            for (word, place) in (at + 1..).zip(bits(words.into())) {
                owner.logged[place as usize] = word;
            }
        }
    }

    /// Sends the records that were put. Returns how many writes that takes.
    fn send(&mut self, core: CoreId, at: Cycle, below: &mut Below<RedoLogEvent>) -> u64 {
        let log = &mut self.cores[core];
        let length = self.words.len() as u64;
        if log.tail + length - log.complete > log.area.words() {
            below.give_up(format!(
                "a transaction's redo records do not fit the log of {} bytes, beside those of the \
                 one before as long as that is not complete: raise it with --set pm.log_size=...",
                log.area.bytes()
            ));
            return 0;
        }
        let notify = Notify::Design(RedoLogEvent::Logged(core));
        let writes = log.area.append(log.tail, &self.words, at, notify, below);
        log.logging += writes;
        self.counts.wraps += u64::from(log.area.wraps(log.tail, length));
        log.tail += length;
        log.checksum = mix_all(log.checksum, &self.words);
        self.words.clear();
        writes
    }

    /// Ends a transaction: turns what the log buffer holds into records.
    pub(super) fn end(&mut self, core: CoreId, at: Cycle, below: &mut Below<RedoLogEvent>) {
        let after = std::mem::take(&mut self.cores[core].after);
        if self.rules.log_dependences {
            after.iter().for_each(|&(other, end)| self.put(core, Record::After(other, end), below));
        }
        while let Some((line, words)) = self.cores[core].buffer.pop_front() {
            self.put(core, Record::Redo(line, words), below);
        }
        let sent = at + self.send(core, at, below);
        let log = &mut self.cores[core];
        let (end, lines) = (log.tail, std::mem::take(&mut log.lines));
        let stage = Stage::Logging;
        log.ended.push_back(Ended {
            first: std::mem::replace(&mut log.first, end),
            end,
            stage,
            checksum: std::mem::take(&mut log.checksum),
            lines,
            sent: 0,
            unwritten: 0,
            full: false,
            after,
        });
        log.logging += 1;
        below.at(sent, RedoLogEvent::Logged(core));
        if !self.commit_record_waits() {
            self.try_to_commit(core, sent, below);
        }
        if !self.rules.write_back_after_commit_record {
            self.start_writing_back(core, end, sent, below);
        }
    }

    pub(super) fn logged(&mut self, core: CoreId, at: Cycle, below: &mut Below<RedoLogEvent>) {
        let log = &mut self.cores[core];
        log.logging -= 1;
        if log.holds_store && log.logging < below.shape.config.controller.writebacks {
            log.holds_store = false;
            below.wake(core, at + below.shape.path);
        }
        self.try_to_commit(core, at + below.shape.path, below);
        let log = &self.cores[core];
        let ended = log.ended.back().filter(|ended| ended.stage == Stage::Counted);
        if let Some(end) = ended.map(|ended| ended.end).filter(|_| log.logging == 0) {
            self.has_committed(core, end, at, below);
        }
    }

    fn commit_record_waits(&self) -> bool {
        self.params.commit == CommitRecord::Waits && self.rules.commit_after_records
    }

    /// Sends the commit record of a core's transaction once its records are durable, if it is to
    /// wait for them.
    pub(super) fn try_to_commit(
        &mut self,
        core: CoreId,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let waits = self.commit_record_waits();
        let log = &mut self.cores[core];
        let ended = log.ended.back_mut().filter(|ended| ended.stage == Stage::Logging);
        let Some(ended) = ended else { return };
        if log.logging > 0 && waits {
            return;
        }
        ended.stage = Stage::Committing;
        let notify = Notify::Design(RedoLogEvent::Committed(core, ended.end));
        let mark = record::commit(ended.first, ended.end);
        if self.params.commit == CommitRecord::Counts {
            let checksum = record::checksum(mark, ended.checksum);
            below.view.set_word(log.area.mark(CHECKSUM), checksum);
        }
        log.area.set_mark(COMMIT, mark, at, notify, below);
        if !self.rules.acknowledge_after_commit_record {
            below.wake(core, at);
        }
    }

    /// Notes that a commit record is durable. Records that it counts may not be.
    pub(super) fn committed(
        &mut self,
        core: CoreId,
        end: u64,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let counts = self.params.commit == CommitRecord::Counts && self.rules.commit_needs_records;
        if counts && self.cores[core].logging > 0 {
            self.ended(core, end).expect("a transaction has ended").stage = Stage::Counted;
            return;
        }
        self.has_committed(core, end, at, below);
    }

    fn has_committed(
        &mut self,
        core: CoreId,
        end: u64,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        self.ended(core, end).expect("a transaction has ended").stage = Stage::Committed;
        if self.rules.acknowledge_after_commit_record {
            below.wake(core, at + below.shape.path);
        }
        if self.rules.write_back_after_commit_record {
            self.start_writing_back(core, end, at + below.shape.path, below);
        }
        self.try_to_complete(core, at, below);
    }

    /// A transaction of a core that is not complete, found by where its records end.
    pub(super) fn ended(&mut self, core: CoreId, end: u64) -> Option<&mut Ended> {
        self.cores[core].ended.iter_mut().find(|ended| ended.end == end)
    }
}
