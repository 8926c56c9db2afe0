//! Silo's overflow: a transaction with more logs than the buffer holds.
//!
//! The oldest logs leave as a batch: first their undo records, which are lines of the log region,
//! then the new data, word by word. A log's place is free as soon as both are accepted, and logs
//! that arrive meanwhile take the free places. If the transaction commits while logs of a batch are
//! still in the buffer, their records are no longer needed, and these logs update their words like
//! any others.

use std::collections::VecDeque;

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, Cycle};

use super::region::Record;
use super::remote::is_remote;
use super::{Log, LogBuffer, Silo, SiloEvent, word_write};

/// A batch on its way to memory.
pub struct Spill {
    /// How many of the buffer's first logs are still in it.
    pub logs: usize,
    /// Undo records that no controller has accepted yet.
    pub records: VecDeque<Write>,
}

impl LogBuffer {
    /// How many of the buffer's first logs are leaving it.
    pub(super) fn leaving(&self) -> usize {
        self.spill.as_ref().map_or(0, |spill| spill.logs)
    }

    /// What the log controller writes next: a record of an overflow, or else the word of the first
    /// log, together with that log.
    pub(super) fn next_write(&self) -> Option<(Write, Option<Log>)> {
        if let Some(record) = self.spill.as_ref().and_then(|spill| spill.records.front()) {
            return Some((record.clone(), None));
        }
        self.logs.front().map(|log| (word_write(log.word, log.new), Some(*log)))
    }
}

impl Silo {
    /// Begins an overflow, when the buffer is full of logs of the running transaction: saves the
    /// undo data of the oldest logs and writes their new data in place.
    pub(super) fn begin_spill(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let reserve = self.logs_on_chip();
        let buffer = &mut self.cores[core];
        let logs = buffer.logs.len().min(self.params.overflow_batch as usize);
        let flush_bit = self.rules.overflow_record_is_undo;
        let record = |log: &Log| Record::of(core, log.tx, log.word, log.old);
        let batch = buffer.logs.iter().take(logs);
        let mut records = VecDeque::new();
        if self.rules.save_undo_on_overflow {
            let batch = batch.map(|log| record(log).with_flush_bit(flush_bit));
            let Some(writes) = buffer.region.append(batch, reserve) else {
                return below.give_up(format!(
                    "a transaction does not fit Silo's log region of {} bytes: raise it with --set \
                     pm.log_size=...",
                    buffer.region.bytes()
                ));
            };
            records.extend(writes);
        }
        buffer.spill = Some(Spill { logs, records });
        self.counts.overflows += 1;
        below.at(at, SiloEvent::Spill(core));
    }

    pub(super) fn go_on_spilling(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &self.cores[core];
        let is_running = buffer.logs.front().is_some_and(|log| log.committed.is_none());
        if buffer.leaving() == 0 || !is_running {
            return self.end_spill(core, at, below);
        }
        let (write, log) = buffer.next_write().expect("an overflow moves logs");
        if let Some(log) = log {
            if self.is_discarded(&log) {
                // An eviction has meanwhile carried these data, or newer ones, to memory.
                self.leave_spilled(core, at, below);
                return below.at(at, SiloEvent::Spill(core));
            }
            if self.is_overtaking(&log) || self.is_delivered(core, log.word) {
                self.stall(core, SiloEvent::Spill(core));
                return;
            }
        }
        if is_remote(write.line, below) {
            return self.deliver(core, log.map(|log| log.word), at, below);
        }
        if !below.give_if_room(at, &write) {
            below.memory.when_room(write.line, SiloEvent::Spill(core));
            return;
        }
        self.spilled(core, at, below);
        below.at(at + 1, SiloEvent::Spill(core));
    }

    /// Forgets what an overflow wrote last, now that it is durable: durable first, forgotten after.
    pub(super) fn spilled(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let spill = self.cores[core].spill.as_mut().expect("an overflow is under way");
        if spill.records.pop_front().is_some() {
            return;
        }
        let first = *self.cores[core].logs.front().expect("an overflow wrote a log's word");
        self.supersede(&first);
        self.leave_spilled(core, at, below);
    }

    /// Removes the first log from the buffer: only its undo record is left of it.
    fn leave_spilled(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let saved = u64::from(self.rules.save_undo_on_overflow);
        let buffer = &mut self.cores[core];
        buffer.spill.as_mut().expect("an overflow is under way").logs -= 1;
        buffer.region.keep(saved);
        self.leave(core, at, below);
    }

    /// Sets the flush-bits of older committed logs of a word, when an overflow has written newer
    /// data.
    fn supersede(&mut self, first: &Log) {
        let Log { word, stamp, committed, .. } = *first;
        let is_older = |log: &Log| {
            log.committed.is_some_and(|commit| committed.is_none_or(|own| commit < own))
        };
        if !self.rules.supersede_on_overflow {
            return;
        }
        for (_, buffer) in self.cores.iter_mut() {
            let same = |log: &&mut Log| log.word == word && log.stamp != stamp && !log.flushed;
            for log in buffer.logs.iter_mut().filter(same) {
                if is_older(log) || !self.rules.supersede_only_older {
                    log.flushed = true;
                    self.counts.superseded += 1;
                }
            }
        }
    }

    /// Ends an overflow: the batch has left the buffer, or the rest of it has been committed.
    fn end_spill(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        self.cores[core].spill = None;
        self.start_updating(core, at, below);
        self.go_on(core, at, below);
    }
}
