//! Records of stores that have had their turn and have not left their cores.

use std::collections::VecDeque;

use model::design::{Below, Store};
use model::sieve::Sieve;
use model::units::{CoreId, Cycle, Line, PerCore};

use super::LogEvent;
use super::record::Record;

/// The records that are still to come to a log. The first-level controller makes the record of a
/// store when the line is there (FWB, HPCA'18), and the records of a core come in the
/// order of its stores.
#[derive(Debug)]
pub struct Coming {
    cores: PerCore<VecDeque<(Cycle, Record)>>,
    /// Whether an event is due that looks for a core's next record.
    awaited: PerCore<bool>,
    count: u64,
    /// The lines of these records: most lines that leave the caches have none to come.
    lines: Sieve,
}

impl Coming {
    /// No record is to come.
    pub fn new(cores: u8) -> Coming {
        Coming {
            cores: PerCore::new(cores, |_| VecDeque::new()),
            awaited: PerCore::new(cores, |_| false),
            count: 0,
            lines: Sieve::default(),
        }
    }

    /// How many records are to come.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a core has any.
    pub fn has(&self, core: CoreId) -> bool {
        !self.cores[core].is_empty()
    }

    /// Adds the record of a store. An event comes when the store has left its core.
    pub fn push(&mut self, record: Record, store: &Store, below: &mut Below<LogEvent>) {
        self.cores[record.core].push_back((store.leaves, record));
        self.count += 1;
        self.lines.add(record.word.line().0);
        self.await_next(record.core, store.at, below);
    }

    /// Notes that the event that looks for a core's records has come. Further events follow with
    /// [`Coming::await_next`].
    pub fn look(&mut self, core: CoreId) {
        self.awaited[core] = false;
    }

    /// Whether the store of a core's next record has left.
    pub fn is_due(&self, core: CoreId, at: Cycle) -> bool {
        self.cores[core].front().is_some_and(|(leaves, _)| *leaves <= at)
    }

    /// Whether one of the stores of a core's records of a line has left.
    pub fn is_due_of(&self, core: CoreId, line: Line, at: Cycle) -> bool {
        let due = self.cores[core].iter().take_while(|(leaves, _)| *leaves <= at);
        self.lines.may_hold(line.0) && { due }.any(|(_, record)| record.word.line() == line)
    }

    /// Enters an event for the time when the store of a core's next record leaves, if it has not
    /// left.
    pub fn await_next(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if let Some(&(leaves, _)) = self.cores[core].front()
            && leaves > at
            && !std::mem::replace(&mut self.awaited[core], true)
        {
            below.at(leaves, LogEvent::Left(core));
        }
    }

    /// Takes a core's next record, if its store has left.
    pub fn next(&mut self, core: CoreId, at: Cycle) -> Option<Record> {
        if !self.is_due(core, at) {
            return None;
        }
        let (_, record) = self.cores[core].pop_front()?;
        self.forget(&record);
        Some(record)
    }

    /// Takes the next record of a line, whether its store has left or not.
    pub fn next_of(&mut self, line: Line) -> Option<Record> {
        if !self.lines.may_hold(line.0) {
            return None;
        }
        let (_, record) = self.cores.iter_mut().find_map(|(_, records)| {
            let index = records.iter().position(|(_, record)| record.word.line() == line)?;
            records.remove(index)
        })?;
        self.forget(&record);
        Some(record)
    }

    fn forget(&mut self, record: &Record) {
        self.count -= 1;
        self.lines.remove(record.word.line().0);
    }
}
