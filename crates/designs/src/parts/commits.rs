//! Commit records, and the acknowledgements that wait for them.

use model::design::{Below, Shape};
use model::units::{CoreId, Cycle, PerCore, TxId};

use super::LogEvent;
use super::log::{Log, Place};
use super::record::Record;

/// What an acknowledgement obeys.
#[derive(Clone, Copy, Debug)]
pub struct CommitRules {
    /// It waits until the commit record is accepted.
    pub after_record: bool,
    /// It waits until every record before is accepted, too.
    pub after_all_before: bool,
    /// With it the transaction needs its undo data no more.
    pub ends: bool,
}

/// The commit records that are under way.
#[derive(Debug)]
pub struct Commits {
    rules: CommitRules,
    path: u64,
    records: PerCore<Option<Place>>,
}

impl Commits {
    /// None is under way.
    pub fn new(shape: &Shape, rules: CommitRules) -> Commits {
        Commits { rules, path: shape.path, records: PerCore::new(shape.cores, |_| None) }
    }

    /// Sends the commit record of a core's transaction behind all of its records, and says where
    /// it is.
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
        if !self.rules.after_record {
            self.accepted(place, log, at, below);
        }
        place
    }

    /// Acknowledges the transactions whose commit records are durable, `newest` being the place
    /// up to which a controller has just accepted a line of the log.
    pub fn accepted(
        &mut self,
        newest: Place,
        log: &mut Log,
        at: Cycle,
        below: &mut Below<LogEvent>,
    ) {
        let durable = log.durable();
        let in_order = self.rules.after_record && self.rules.after_all_before;
        let mut any = false;
        for (core, record) in self.records.iter_mut() {
            let is_due = |place: &mut Place| {
                let own = place.line == newest.line && place.end <= newest.end;
                *place <= durable || own && !in_order
            };
            if record.take_if(is_due).is_some() {
                if self.rules.ends {
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
