//! Silo's overflow: a transaction with more logs than the buffer holds.
//!
//! The oldest logs leave as a batch: first their undo records, which are lines of the log region,
//! then the new data, word by word. A log's place is free as soon as both are accepted and the
//! logs before it have left, and logs that arrive meanwhile take the free places. Where there are
//! several controllers, a batch has as many writes on their way as updates in place have. If the
//! transaction commits while logs of a batch are still in the buffer, their records are no longer
//! needed, and these logs update their words like any others.

use std::collections::VecDeque;

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, Cycle};

use super::region::Record;
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
}

impl Silo {
    /// Begins an overflow, when the buffer is full of logs of the running transaction: saves the
    /// undo data of the oldest logs and writes their new data in place.
    pub(super) fn begin_spill(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let reserve = self.logs_on_chip();
        let buffer = &mut self.cores[core];
        let logs = buffer.logs.len().min(self.batch as usize);
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
        self.step_at(core, at, below);
    }

    pub(super) fn go_on_spilling(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &self.cores[core];
        let (sends_records, leaving) = (buffer.sends_records(), buffer.leaving());
        let first = buffer.logs.front().copied().filter(|log| log.committed.is_none());
        let Some(first) = first.filter(|_| leaving > 0) else {
            // A record that is still on its way must not come after one that takes its place.
            if !sends_records {
                self.end_spill(core, at, below);
            }
            return;
        };
        let record = buffer.spill.as_ref().and_then(|spill| spill.records.front());
        if let Some(record) = record.cloned() {
            if self.write(core, record, None, at, below).is_some() {
                let spill = self.cores[core].spill.as_mut().expect("an overflow is under way");
                spill.records.pop_front();
                // One access to the buffer has a log's undo data and its new word.
                let is_last = spill.records.is_empty();
                let next = if is_last { self.params.update_interval } else { 1 };
                self.step_at(core, at + next, below);
            }
            return;
        }
        // The undo data are durable before the first of the new data is sent.
        if sends_records {
            return;
        }
        if self.is_done(&first) {
            // An eviction has meanwhile carried these data, or newer ones, to memory.
            self.leave_spilled(core, at, below);
            return self.step_at(core, at, below);
        }
        let mut batch = self.cores[core].logs.iter().take(leaving);
        let Some(index) = batch.position(|log| !self.is_taken(log)) else { return };
        let log = self.cores[core].logs[index];
        if self.is_overtaking(&log) || self.is_delivered(log.word) {
            return self.stall(core);
        }
        let write = word_write(log.word, log.new);
        let Some(is_durable) = self.write(core, write, Some(index), at, below) else { return };
        if is_durable {
            self.supersede(core, index);
            if index == 0 {
                self.leave_spilled(core, at, below);
            } else {
                self.mark_updated(core, index);
                self.retry_stalled(at, below);
            }
        }
        // The end of the batch takes no access.
        let is_last = self.cores[core].leaving() == 0;
        let next = if is_last { 0 } else { self.params.update_interval };
        self.step_at(core, at + next, below);
    }

    /// Removes the first log from the buffer: only its undo record is left of it.
    pub(super) fn leave_spilled(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let saved = u64::from(self.rules.save_undo_on_overflow);
        let buffer = &mut self.cores[core];
        buffer.spill.as_mut().expect("an overflow is under way").logs -= 1;
        buffer.region.keep(saved);
        self.leave(core, at, below);
    }

    /// Sets the flush-bits of older committed logs of a word, when an overflow has written newer
    /// data.
    pub(super) fn supersede(&mut self, core: CoreId, index: usize) {
        let Log { word, stamp, committed, .. } = self.cores[core].logs[index];
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
