//! Silo's overflow: a transaction with more logs than the buffer holds.

use std::collections::VecDeque;

use model::design::Below;
use model::units::{CoreId, Cycle, Word};

use super::region::Record;
use super::remote::is_remote;
use super::{Log, Silo, SiloEvent, Spill, word_write};

impl Silo {
    /// The buffer is full of logs of the running transaction: the oldest have their undo data
    /// saved, and their new data written in place.
    pub(super) fn begin_spill(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let reserve = self.logs_on_chip();
        let buffer = &mut self.cores[core];
        let logs = buffer.logs.len().min(self.params.overflow_batch as usize);
        let batch: Vec<Log> = buffer.logs.iter().take(logs).copied().collect();
        let flush_bit = self.rules.overflow_record_is_undo;
        let record = |log: &Log| Record::of(core, log.tx, log.word, log.old);
        let records = batch.iter().map(|log| record(log).with_flush_bit(flush_bit));
        let mut writes = VecDeque::new();
        if self.rules.save_undo_on_overflow {
            let Some(records) = buffer.region.append(records, reserve) else {
                return below.give_up(format!(
                    "a transaction does not fit Silo's log region of {} bytes: raise it with --set \
                     pm.log_size=...",
                    buffer.region.bytes()
                ));
            };
            writes.extend(records.into_iter().map(|write| (write, None)));
        }
        writes.extend(batch.iter().map(|log| (word_write(log.word, log.new), Some(log.word))));
        buffer.spill = Some(Spill { logs, writes });
        self.counts.overflows += 1;
        below.at(at, SiloEvent::Spill(core));
    }

    pub(super) fn go_on_spilling(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let next = self.spill(core).writes.front().cloned();
        let Some((write, word)) = next else {
            return self.end_spill(core, at, below);
        };
        if word.and_then(|word| self.running(core, word)).is_some_and(|log| log.flushed) {
            // An eviction has carried the new data meanwhile, or newer ones.
            self.spill(core).writes.pop_front();
            below.at(at, SiloEvent::Spill(core));
            return;
        }
        let log = word.and_then(|word| self.running(core, word));
        if log.is_some_and(|log| self.is_overtaking(log) || self.is_delivered(core, log.word)) {
            self.cores[core].stalled = Some(SiloEvent::Spill(core));
            return;
        }
        if is_remote(write.line, below) {
            return self.deliver(core, word, at, below);
        }
        if !below.memory.has_room(write.line) {
            below.memory.when_room(write.line, SiloEvent::Spill(core));
            return;
        }
        below.give(at, write);
        self.write_spilled(core, at, below);
        below.at(at + 1, SiloEvent::Spill(core));
    }

    /// The first write of an overflow is durable.
    pub(super) fn write_spilled(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        if let Some((_, Some(word))) = self.spill(core).writes.pop_front() {
            self.spilled(core, word);
            self.retry_stalled(at, below);
        }
    }

    pub(super) fn spill(&mut self, core: CoreId) -> &mut Spill {
        self.cores[core].spill.as_mut().expect("an overflow is under way")
    }

    pub(super) fn running(&self, core: CoreId, word: Word) -> Option<&Log> {
        let mut logs = self.cores[core].logs.iter();
        logs.find(|log| log.word == word && log.committed.is_none())
    }

    /// New data of a running transaction have been written in place.
    pub(super) fn spilled(&mut self, core: CoreId, word: Word) {
        for (other, buffer) in self.cores.iter_mut() {
            for log in buffer.logs.iter_mut().filter(|log| log.word == word && !log.flushed) {
                if other == core && log.committed.is_none() {
                    log.flushed = true;
                } else if self.rules.supersede_on_overflow {
                    log.flushed = true;
                    self.counts.superseded += 1;
                }
            }
        }
    }

    /// Everything that an overflow had to write is durable: its logs leave.
    pub(super) fn end_spill(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let buffer = &mut self.cores[core];
        let spill = buffer.spill.take().expect("an overflow is under way");
        buffer.logs.drain(..spill.logs);
        buffer.region.keep(spill.logs as u64 * u64::from(self.rules.save_undo_on_overflow));
        self.go_on(core, at, below);
    }
}
