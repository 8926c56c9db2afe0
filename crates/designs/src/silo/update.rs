//! Silo's in-place updates after a commit, and the evicted lines that supersede or delay them.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Evict};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line};

use super::remote::is_remote;
use super::{Log, LogBuffer, Silo, SiloEvent, word_write};

impl Silo {
    /// Has the log controller look at a buffer, in whose first log there is something to do.
    pub(super) fn start_updating(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &self.cores[core];
        let due = buffer.logs.front().is_some_and(|log| log.committed.is_some());
        if due && buffer.spill.is_none() {
            self.step_at(core, at + self.params.buffer_latency, below);
        }
    }

    /// Has the log controller take the next step of a buffer at `at`, unless one is due already, or
    /// waits for something.
    pub(super) fn step_at(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        if !std::mem::replace(&mut self.cores[core].stepping, true) {
            below.at(at, SiloEvent::Step(core));
        }
    }

    pub(super) fn step(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        self.cores[core].stepping = false;
        if self.cores[core].spill.is_some() {
            return self.go_on_spilling(core, at, below);
        }
        self.retire(core, at, below);
        let waits = |log: &Log| log.committed.is_some() && !self.is_taken(log);
        if let Some(index) = self.cores[core].logs.iter().position(waits) {
            self.update_in_place(core, index, at, below);
        }
    }

    /// Whether a log has nothing to write: its value, or a newer one, is in memory.
    pub(super) fn is_discarded(&self, log: &Log) -> bool {
        log.flushed && self.rules.discard_flushed
    }

    /// Whether nothing is left to do for a log, which leaves once it is the first.
    pub(super) fn is_done(&self, log: &Log) -> bool {
        log.updated || log.sent.is_none() && self.is_discarded(log)
    }

    /// Whether a log's word is on its way to another controller, or nothing is left to do for it.
    pub(super) fn is_taken(&self, log: &Log) -> bool {
        log.sent.is_some() || self.is_done(log)
    }

    fn update_in_place(
        &mut self,
        core: CoreId,
        index: usize,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        let log = self.cores[core].logs[index];
        let in_order = if self.cores[core].full {
            self.rules.drain_others_first
        } else {
            self.rules.update_in_commit_order
        };
        let delivered = self.is_delivered(log.word);
        if delivered || in_order && self.is_preceded(core, &log) || self.is_overtaking(&log) {
            return self.stall(core);
        }
        let write = word_write(log.word, log.new);
        let Some(is_durable) = self.write(core, write, Some(index), at, below) else { return };
        if is_durable {
            self.counts.updates += 1;
            if index == 0 {
                self.cores[core].logs[0].updated = true;
            } else {
                self.mark_updated(core, index);
                self.retry_stalled(at, below);
            }
        }
        self.step_at(core, at + self.params.update_interval, below);
    }

    /// Notes that a log has updated its word. If logs before it have not, it stays, and its
    /// flush-bit says that it is not to be replayed: what other cores commit later may have been
    /// written to the word, and forgotten, by then.
    pub(super) fn mark_updated(&mut self, core: CoreId, index: usize) {
        let log = &mut self.cores[core].logs[index];
        (log.updated, log.flushed) = (true, true);
    }

    /// Removes the first logs of a buffer for which nothing is left to do.
    pub(super) fn retire(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        while let Some(&log) = self.cores[core].logs.front() {
            let buffer = &self.cores[core];
            let may_leave = match &buffer.spill {
                // A log's undo record is durable before the log is forgotten.
                Some(spill) => {
                    spill.logs > 0 && spill.records.is_empty() && !buffer.sends_records()
                }
                None => log.committed.is_some(),
            };
            if !may_leave || !self.is_done(&log) {
                return;
            }
            if self.cores[core].spill.is_some() {
                self.leave_spilled(core, at, below);
                continue;
            }
            self.counts.discarded += u64::from(!log.updated);
            self.leave(core, at, below);
        }
    }

    /// Whether another core committed the log's word earlier and has not updated it yet.
    pub(super) fn is_preceded(&self, core: CoreId, log: &Log) -> bool {
        let earlier = |other: &Log| {
            other.word == log.word
                && !other.flushed
                && other.committed.is_some_and(|commit| Some(commit) < log.committed)
        };
        if self.logged.count(log.word.0) < 2 {
            return false;
        }
        let mut others = self.cores.iter().filter(|(other, _)| *other != core);
        others.any(|(_, buffer)| buffer.logs.iter().any(earlier))
    }

    /// Removes the first log of a buffer and, with the last log of its transaction, the
    /// transaction.
    pub(super) fn leave(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &mut self.cores[core];
        let Some(log) = buffer.logs.pop_front() else { return };
        let is_last = buffer.logs.front().is_none_or(|next| next.committed != log.committed);
        if log.committed.is_some() && is_last {
            // Transactions leave in the order in which they committed, as their logs do.
            let left = buffer.committed.pop_front();
            assert!(left.is_some_and(|(tx, _)| tx == log.tx), "the first committed one leaves");
            if self.rules.truncate_after_commit {
                buffer.region.truncate();
            }
        }
        self.logged.remove(log.word.0);
        self.retry_stalled(at, below);
        self.go_on(core, at, below);
    }

    /// Lets the channel go on if its first log waited for room.
    pub(super) fn go_on(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &mut self.cores[core];
        if buffer.full {
            buffer.full = false;
            below.at(at, SiloEvent::Arrive(core));
        }
    }

    /// Whether the log's line was evicted before the log's store and no controller has accepted it
    /// yet: the line carries older data, which must not come last.
    pub(super) fn is_overtaking(&self, log: &Log) -> bool {
        let line = log.word.line();
        let older = |&(other, left): &(Line, u64)| other == line && left < log.stamp;
        self.rules.update_after_eviction && self.leaving.iter().any(older)
    }

    /// Lets a core's logs wait until older data of a word have reached memory.
    pub(super) fn stall(&mut self, core: CoreId) {
        let buffer = &mut self.cores[core];
        (buffer.stepping, buffer.stalled) = (true, true);
        self.stalls += 1;
    }

    /// Lets the logs that wait for older data try again, since something has reached memory.
    pub(super) fn retry_stalled(&mut self, at: Cycle, below: &mut Below<SiloEvent>) {
        if std::mem::take(&mut self.stalls) == 0 {
            return;
        }
        for (core, buffer) in self.cores.iter_mut() {
            if std::mem::take(&mut buffer.stalled) {
                below.at(at, SiloEvent::Step(core));
            }
        }
    }

    /// Handles an evicted line that its controller has accepted.
    pub(super) fn evicted(&mut self, line: Line, at: Cycle, below: &mut Below<SiloEvent>) {
        let index = self.leaving.iter().position(|&(other, _)| other == line);
        let (_, left) = self.leaving.remove(index.expect("an accepted line was evicted"));
        if is_remote(line, below) {
            return self.tell(line, left, at, below);
        }
        self.mark_evicted(line, left);
        self.retry_stalled(at, below);
    }

    /// Sets the flush-bits of the logs whose values an evicted line carries: they update nothing.
    pub(super) fn mark_evicted(&mut self, line: Line, left: u64) {
        let carried = |log: &&mut Log| {
            log.word.line() == line
                && (log.stamp <= left || !self.rules.eviction_marks_what_it_carries)
                && (log.committed.is_none() || self.rules.eviction_marks_committed)
        };
        let only = match self.rules.eviction_marks_all_cores {
            true => None,
            false => self.core_of_newest(line),
        };
        for (core, buffer) in self.cores.iter_mut() {
            if only.is_some_and(|only| only != core) {
                continue;
            }
            for log in buffer.logs.iter_mut().filter(carried).filter(|log| !log.flushed) {
                log.flushed = true;
                self.counts.flush_bits += 1;
            }
        }
    }

    /// The core that has the newest log of a line.
    fn core_of_newest(&self, line: Line) -> Option<CoreId> {
        let newest = |buffer: &LogBuffer| {
            let logs = buffer.logs.iter().filter(|log| log.word.line() == line);
            logs.map(|log| log.stamp).max()
        };
        self.cores.iter().max_by_key(|(_, buffer)| newest(buffer)).map(|(core, _)| core)
    }

    /// Sends the evicted lines whose logs have all arrived.
    pub(super) fn release_held(&mut self, at: Cycle, below: &mut Below<SiloEvent>) {
        if self.held.is_empty() {
            return;
        }
        let mut kept: VecDeque<(Evict, u64)> = VecDeque::new();
        for (held, stamp) in std::mem::take(&mut self.held) {
            let Evict { line, data, at: left } = held;
            let follows = kept.iter().any(|(other, _)| other.line == line);
            if follows || self.is_logged_soon(line, stamp) {
                kept.push_back((held, stamp));
                continue;
            }
            let write = Write::whole(line, data, Class::HomeWriteBack);
            below.send_on(left, at, write, Notify::Design(SiloEvent::Evicted(line)));
        }
        self.held = kept;
    }
}
