//! Records of stores that have had their turn and have not left their cores.

use std::collections::VecDeque;

use model::design::{Below, Store};
use model::sieve::Sieve;
use model::units::{CoreId, Cycle, Line, PerCore};

use super::LogEvent;
use super::record::Record;

/// The records that are still to come to a log: the first-level controller makes one of a line
/// that is there (specs/logging.md section 3), and those of a core come in the order of its stores.
#[derive(Debug)]
pub struct Coming {
    cores: PerCore<VecDeque<(Cycle, Record)>>,
    /// Whether an event of a core will look for what has come.
    awaited: PerCore<bool>,
    count: u64,
    /// Their lines: of most lines that leave the caches none is to come.
    lines: Sieve,
}

impl Coming {
    /// None is to come.
    pub fn new(cores: u8) -> Coming {
        Coming {
            cores: PerCore::new(cores, |_| VecDeque::new()),
            awaited: PerCore::new(cores, |_| false),
            count: 0,
            lines: Sieve::default(),
        }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a core has any.
    pub fn has(&self, core: CoreId) -> bool {
        !self.cores[core].is_empty()
    }

    /// The record of a store; an event tells when it has left its core.
    pub fn push(&mut self, record: Record, store: &Store, below: &mut Below<LogEvent>) {
        self.cores[record.core].push_back((store.leaves, record));
        self.count += 1;
        self.lines.add(record.word.line().0);
        self.await_next(record.core, store.at, below);
    }

    /// An event looks for what has come of a core. Further ones follow with
    /// [`Coming::await_next`].
    pub fn look(&mut self, core: CoreId) {
        self.awaited[core] = false;
    }

    /// Whether the store of a core's next record has left.
    pub fn is_due(&self, core: CoreId, at: Cycle) -> bool {
        self.cores[core].front().is_some_and(|(leaves, _)| *leaves <= at)
    }

    /// Has an event look for a core's next record when its store has left, if it has not.
    pub fn await_next(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        if let Some(&(leaves, _)) = self.cores[core].front()
            && leaves > at
            && !std::mem::replace(&mut self.awaited[core], true)
        {
            below.at(leaves, LogEvent::Left(core));
        }
    }

    /// A core's next record, if its store has left.
    pub fn next(&mut self, core: CoreId, at: Cycle) -> Option<Record> {
        if !self.is_due(core, at) {
            return None;
        }
        let (_, record) = self.cores[core].pop_front()?;
        self.forget(&record);
        Some(record)
    }

    /// The next record of a line, whether its store has left or not.
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
