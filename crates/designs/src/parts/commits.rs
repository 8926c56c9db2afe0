//! Commit records, and the acknowledgements that wait for them.

use model::design::{Below, Shape};
use model::units::{CoreId, Cycle, PerCore, TxId};

use super::LogEvent;
use super::log::{Log, Place};
use super::record::Record;
use super::rules::LogRules;

/// The commit records that are under way.
#[derive(Debug)]
pub struct Commits {
    rules: LogRules,
    /// Whether a transaction that is acknowledged needs its undo data no more.
    ends: bool,
    path: u64,
    records: PerCore<Option<Place>>,
    /// Transactions whose records have not all entered the log.
    ending: PerCore<Option<TxId>>,
    /// How many commit records and such transactions there are.
    under_way: u64,
}

impl Commits {
    /// No commit record is under way. With `ends`, a transaction that is acknowledged needs its
    /// undo data no more.
    pub fn new(shape: &Shape, rules: &LogRules, ends: bool) -> Commits {
        let records = PerCore::new(shape.cores, |_| None);
        let ending = PerCore::new(shape.cores, |_| None);
        Commits { rules: rules.clone(), ends, path: shape.path, records, ending, under_way: 0 }
    }

    /// Ends a core's transaction, whose stores have left the core: its commit record follows when
    /// all their records have entered the log.
    pub fn end(
        &mut self,
        core: CoreId,
        tx: TxId,
        log: &mut Log,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        log.left(core, at, below);
        if log.awaits(core) {
            self.ending[core] = Some(tx);
            self.under_way += 1;
        } else {
            self.send(core, tx, log, at, below);
        }
    }

    /// Sends the commit record of a core's transaction behind all of its records, and returns its
    /// place.
    pub fn send(
        &mut self,
        core: CoreId,
        tx: TxId,
        log: &mut Log,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) -> Place {
        let place = log.append(&Record::commit(core, tx), at, below);
        log.flush(place, at, below);
        self.records[core] = Some(place);
        self.under_way += 1;
        if !self.rules.acknowledge_after_record {
            self.accepted(place, log, at, below);
        }
        place
    }

    /// Acknowledges the transactions whose commit records are durable. `newest` is the place up to
    /// which a controller has just accepted a line of the log.
    pub fn accepted(
        &mut self,
        newest: Place,
        log: &mut Log,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        if self.under_way == 0 {
            return;
        }
        for core in (0..self.ending.cores()).map(CoreId) {
            if let Some(tx) = self.ending[core].take_if(|_| !log.awaits(core)) {
                self.under_way -= 1;
                self.send(core, tx, log, at, below);
            }
        }
        let durable = log.durable();
        let rules = &self.rules;
        let in_order = rules.acknowledge_after_record && rules.acknowledge_after_all_before;
        let mut any = false;
        for (core, record) in self.records.iter_mut() {
            let is_due = |place: &mut Place| {
                let own = place.line == newest.line && place.end <= newest.end;
                *place <= durable || own && !in_order
            };
            if record.take_if(is_due).is_some() {
                self.under_way -= 1;
                if self.ends {
                    log.ended(core);
                }
                below.wake(core, at + self.path);
                any = true;
            }
        }
        if any {
            log.go_on(at, below);
        }
    }
}
