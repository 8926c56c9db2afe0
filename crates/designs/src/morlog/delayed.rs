//! MorLog's delay-persistence: a commit is acknowledged when undo data and the commit record are
//! durable, before the newest redo data are (ISCA 2020).
//!
//! The redo data that the commit's scan of the first level finds are logged later, and a count
//! record says how many redo records follow the commit record. Recovery takes a transaction for
//! committed if that many are there and every transaction that committed before it is complete,
//! too; it revokes the others. So a transaction is durable, and needs its undo data no more, when
//! it and all before it are complete.

use std::collections::VecDeque;

use model::design::{Below, Fence, Progress, Tx};
use model::units::{CoreId, Cycle, LoggedMap, PerCore, TxId, Word};

use super::words::Redo;
use super::{Morlog, MorlogRules, Scheme};
use crate::parts::LogEvent;
use crate::parts::log::Place;
use crate::parts::record::{Kind, Record};
use crate::parts::ring::Judged;

/// The transactions that are acknowledged, or about to be, and not durable yet.
#[derive(Debug)]
pub struct Delayed {
    /// These transactions, in the order of their commit records.
    pending: VecDeque<Pending>,
    /// Whether each core waits until its transactions are durable.
    waiting: PerCore<bool>,
    /// The most transactions that were pending at the same time.
    pub pending_max: u64,
}

#[derive(Debug)]
struct Pending {
    core: CoreId,
    tx: TxId,
    /// Whether it has records at all.
    is_logged: bool,
    /// Whether its count record is in the log.
    counted: bool,
    /// When its redo data leave for the log, if nothing sends them before.
    due: Cycle,
    /// How many redo records it has behind the commit record, and how many of them are in the log.
    redo: u64,
    sent: u64,
    /// The place of its last record.
    last: Place,
}

impl Delayed {
    /// No transaction is pending.
    pub fn new(cores: u8) -> Delayed {
        let waiting = PerCore::new(cores, |_| false);
        Delayed { pending: VecDeque::new(), waiting, pending_max: 0 }
    }

    fn of(&mut self, core: CoreId, tx: TxId) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|pending| pending.core == core && pending.tx == tx)
    }

    fn has(&self, core: CoreId) -> bool {
        self.pending.iter().any(|pending| pending.core == core)
    }

    /// Notes that a redo record of a transaction is in the log.
    pub fn sent(&mut self, core: CoreId, tx: TxId, place: Place) {
        if let Some(pending) = self.of(core, tx) {
            pending.sent += 1;
            pending.last = pending.last.max(place);
        }
    }

    /// Notes that a redo entry of a transaction was dropped, so that nothing waits for it.
    pub fn dropped(&mut self, core: CoreId, tx: TxId) {
        if let Some(pending) = self.of(core, tx) {
            pending.sent += 1;
        }
    }

    fn push(&mut self, pending: Pending) {
        self.pending.push_back(pending);
        self.pending_max = self.pending_max.max(self.pending.len() as u64);
    }
}

impl<S: Scheme> Morlog<S> {
    /// Commits a transaction without stores, which is durable when those before it are.
    pub(super) fn commit_nothing(&mut self, tx: &Tx, below: &mut Below<LogEvent>) {
        let Tx { core, id, at, .. } = *tx;
        let (counted, last) = (true, Place::default());
        self.delayed.push(Pending {
            core,
            tx: id,
            is_logged: false,
            counted,
            due: at,
            redo: 0,
            sent: 0,
            last,
        });
        self.announce(at, below);
    }

    /// Sends a commit record; redo data of the transaction follow it when there is room.
    pub(super) fn commit_early(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let (tx, before) = (self.cores[core].tx, self.cores[core].left.len());
        self.scan_first_level(core, below);
        for redo in self.cores[core].left.split_off(before) {
            let same = |other: &&mut Redo| other.word == redo.word && other.tx == tx;
            let words = &mut self.cores[core];
            match words.r.iter_mut().find(same) {
                Some(entry) => *entry = Redo { bytes: entry.bytes | redo.bytes, ..redo },
                None => words.left.push_back(redo),
            }
        }
        let words = &mut self.cores[core];
        words.counts_left += 1;
        let in_buffer = words.r.iter().filter(|entry| entry.tx == tx).count();
        let redo = (in_buffer + words.left.len() - before) as u64;
        self.counts.scanned += words.left.len() as u64 - before as u64;
        let last = self.commits.send(core, tx, &mut self.log, at, below);
        self.delayed.push(Pending {
            core,
            tx,
            is_logged: true,
            counted: false,
            due: at + self.scan_cycles + self.redo_delay,
            redo,
            sent: 0,
            last,
        });
        self.tell_owed(core);
        below.at(at + self.scan_cycles, LogEvent::Scanned(core));
    }

    /// Logs the count record of a commit that has scanned the first level, and so knows how many
    /// redo records there will be.
    pub(super) fn log_count(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let mut own = self.delayed.pending.iter_mut().filter(|pending| pending.core == core);
        let pending = own.find(|pending| !pending.counted).expect("a commit is being counted");
        let place = self.log.append(&Record::count(core, pending.tx, pending.redo), at, below);
        pending.counted = true;
        pending.last = pending.last.max(place);
        self.cores[core].counts_left -= 1;
        self.log.flush(place, at, below);
        self.tell_owed(core);
        below.at(at + self.redo_delay, LogEvent::Age(core));
    }

    /// Puts redo data of transactions that have committed into the redo buffer, since the first
    /// level is about to lose them: a store changes their word, or their line leaves.
    pub(super) fn make_way(&mut self, core: CoreId, goes: impl Fn(Word) -> bool) {
        for redo in self.cores[core].take_left(goes) {
            self.put(core, redo);
        }
    }

    /// Logs redo data of transactions that have committed, as far as there is room: the data that
    /// are due, or all of them if a core waits for room in the ring or for durability.
    pub(super) fn drain(&mut self, core: CoreId, at: Cycle, below: &mut Below<LogEvent>) {
        let is_pressed =
            self.log.is_short() || self.delayed.waiting.iter().any(|(_, waits)| *waits);
        let mut last = None;
        while self.has_room_for_redo(core) {
            let delayed = &mut self.delayed;
            let mut leaves = |redo: &Redo| {
                delayed.of(core, redo.tx).is_some_and(|pending| is_pressed || pending.due <= at)
            };
            let words = &mut self.cores[core];
            let redo = if let Some(index) = words.r.iter().position(&mut leaves) {
                words.r.remove(index)
            } else if words.left.front().is_some_and(&mut leaves) {
                self.counts.redo_entries += 1;
                words.left.pop_front()
            } else {
                None
            };
            let Some(redo) = redo else { break };
            last = Some(self.append_redo(core, &redo, at, below));
        }
        if let Some(place) = last {
            self.log.flush(place, at, below);
        }
        self.tell_owed(core);
    }

    /// Has every core drain what it must.
    pub(super) fn drain_all(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        for core in (0..self.cores.cores()).map(CoreId) {
            self.drain(core, at, below);
        }
    }

    /// Announces the transactions that have become durable.
    pub(super) fn announce(&mut self, at: Cycle, below: &mut Below<LogEvent>) {
        let durable = self.log.durable();
        let rules = &self.rules;
        let is_complete = |pending: &Pending| {
            let is_logged = pending.counted && pending.sent >= pending.redo;
            (is_logged || !rules.announce_after_redo) && pending.last <= durable
        };
        let mut any = false;
        loop {
            let mut pending = self.delayed.pending.iter();
            let next = match rules.announce_in_order {
                true => pending.next().filter(|first| is_complete(first)).map(|_| 0),
                false => pending.position(is_complete),
            };
            let Some(done) = next.and_then(|index| self.delayed.pending.remove(index)) else {
                break;
            };
            if done.is_logged && rules.keep_until_durable {
                self.log.ended(done.core);
            }
            below.durable(done.core, done.tx, at + self.path);
            any = true;
        }
        if !any {
            return;
        }
        for core in (0..self.cores.cores()).map(CoreId) {
            if self.delayed.waiting[core] && !self.delayed.has(core) {
                self.delayed.waiting[core] = false;
                below.wake(core, at + self.path);
            }
        }
        self.log.go_on(at, below);
    }

    /// Lets a core wait until its transactions are durable.
    pub(super) fn wait_for_durability(
        &mut self,
        fence: &Fence,
        below: &mut Below<LogEvent>,
    ) -> Progress {
        if !self.delayed.has(fence.core) {
            return Progress::Done(fence.at);
        }
        self.delayed.waiting[fence.core] = true;
        self.drain_all(fence.at, below);
        Progress::Wait
    }
}

/// A transaction as its records show it.
#[derive(Default)]
struct Found {
    /// The place of its commit record among all commit records.
    commit: Option<u64>,
    /// How many commit records of its core lie before its records.
    follows: u64,
    /// How many redo records lie behind that record, and how many there should be.
    redo: u64,
    count: Option<u64>,
}

/// Replays transactions that are complete, up to the first one that is not, and revokes the others.
pub fn judge<'a>(records: &'a [Record], cores: u8, rules: &MorlogRules) -> Judged<'a> {
    let mut found: Vec<Found> = Vec::new();
    let mut newest: LoggedMap<usize> = LoggedMap::default();
    let mut ended: PerCore<u64> = PerCore::new(cores, |_| 0);
    let mut commits = 0;
    let mut whose = Vec::with_capacity(records.len());
    for record in records {
        let place = newest.entry((record.core, record.tx)).or_insert(usize::MAX);
        // A number recurs. A core's transactions follow each other, so whatever has undo data or a
        // commit record behind a commit record of its core began there: also if it only stored
        // silently and has no undo data, and if no more than the end of the one before is left.
        let may_be_over = record.kind.undoes() || record.kind == Kind::Commit;
        let follows = ended[record.core];
        let is_over = |at: usize| may_be_over && found[at].follows < follows;
        if *place == usize::MAX || is_over(*place) {
            *place = found.len();
            found.push(Found { follows, ..Found::default() });
        }
        whose.push(*place);
        let tx = &mut found[*place];
        match record.kind {
            Kind::Commit => {
                tx.commit = Some(commits);
                commits += 1;
                ended[record.core] += 1;
            }
            Kind::Count => tx.count = Some(record.redo),
            Kind::Redo => tx.redo += u64::from(tx.commit.is_some()),
            Kind::UndoRedo | Kind::Undo => (),
        }
    }
    let is_complete =
        |tx: &Found| tx.commit.is_some() && (tx.count == Some(tx.redo) || !rules.count_commits);
    let broken = found.iter().filter(|tx| !is_complete(tx)).filter_map(|tx| tx.commit).min();
    let end = broken.filter(|_| rules.commit_in_order).unwrap_or(u64::MAX);
    let has_won = |tx: &Found| is_complete(tx) && tx.commit < Some(end);
    let won: Vec<Option<u64>> = found.iter().map(|tx| tx.commit.filter(|_| has_won(tx))).collect();
    let mut redo: Vec<(u64, &Record)> = Vec::new();
    let mut undo = Vec::new();
    for (record, tx) in records.iter().zip(whose) {
        match won[tx] {
            Some(commit) if record.kind.redoes() => redo.push((commit, record)),
            None if record.kind.undoes() => undo.push(record),
            _ => (),
        }
    }
    if rules.replay_in_commit_order {
        redo.sort_by_key(|(commit, _)| *commit);
    }
    Judged { redo: redo.into_iter().map(|(_, record)| record).collect(), undo }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(tx: u64, word: u64, undo: u64, redo: u64) -> Record {
        Record::of(CoreId(0), TxId(tx), Word(word), undo, redo)
    }

    fn later(tx: u64, word: u64, redo: u64) -> Record {
        Record { kind: Kind::Redo, ..store(tx, word, 0, redo) }
    }

    fn commit(tx: u64) -> Record {
        Record::commit(CoreId(0), TxId(tx))
    }

    fn count(tx: u64, records: u64) -> Record {
        Record::count(CoreId(0), TxId(tx), records)
    }

    /// The new values that are replayed, and the old ones that are brought back.
    fn judged(records: &[Record]) -> (Vec<u64>, Vec<u64>) {
        let Judged { redo, undo } = judge(records, 1, &MorlogRules::default());
        (redo.iter().map(|record| record.redo).collect(), undo.iter().map(|r| r.undo).collect())
    }

    #[test]
    fn a_transaction_is_there_when_all_that_was_counted_is() {
        let records = [store(1, 0, 5, 6), commit(1), count(1, 1), later(1, 0, 7)];
        assert_eq!(judged(&records), (vec![6, 7], vec![]));
        assert_eq!(judged(&records[..3]), (vec![], vec![5]), "a redo record is missing");
        assert_eq!(judged(&[records[0], records[1], records[3]]), (vec![], vec![5]), "no count");
    }

    #[test]
    fn nothing_is_there_behind_a_transaction_that_is_not_complete() {
        let first = [store(1, 0, 5, 6), commit(1)];
        let second = [store(2, 8, 1, 2), commit(2), count(2, 0)];
        let records = [&first[..], &second].concat();
        assert_eq!(judged(&records), (vec![], vec![5, 1]));
        let records = [&records[..], &[count(1, 0)]].concat();
        assert_eq!(judged(&records), (vec![6, 2], vec![]));
    }

    #[test]
    fn later_records_are_replayed_where_their_transaction_committed() {
        let records = [
            store(1, 0, 5, 6),
            commit(1),
            store(2, 0, 7, 8),
            commit(2),
            count(2, 0),
            count(1, 1),
            later(1, 0, 7),
        ];
        assert_eq!(judged(&records), (vec![6, 7, 8], vec![]));
    }

    #[test]
    fn a_number_comes_again() {
        let records = [store(1, 0, 5, 6), commit(1), count(1, 0), store(1, 0, 6, 9)];
        assert_eq!(judged(&records), (vec![6], vec![6]));
    }

    /// A transaction that only stores silently has a commit record and a count record. It neither
    /// takes an earlier one's place nor is taken for a part of a later one.
    #[test]
    fn a_number_comes_again_without_undo_data() {
        let first = [store(1, 0, 5, 6), commit(1), count(1, 1), later(1, 0, 7)];
        let silent = [commit(1), count(1, 0)];
        assert_eq!(judged(&[&first[..], &silent].concat()), (vec![6, 7], vec![]));
        assert_eq!(judged(&[&silent[..], &first].concat()), (vec![6, 7], vec![]));
        let records = [&first[..], &silent[..1]].concat();
        assert_eq!(judged(&records), (vec![6, 7], vec![]), "it is not counted yet");
    }

    /// Of the oldest transaction that the ring has, a part may have been overwritten: what was in
    /// it before the commit, or all but its last redo record.
    #[test]
    fn a_number_comes_again_when_the_end_of_a_transaction_is_left() {
        let (older, newer) = (later(1, 0, 7), [store(1, 8, 1, 2), commit(1), count(1, 0)]);
        let between = [store(2, 0, 7, 8), commit(2), count(2, 0)];
        let records = [&[older][..], &between, &newer].concat();
        assert_eq!(judged(&records), (vec![8, 2], vec![]), "the older value is not replayed");
        let records = [&[older][..], &newer].concat();
        assert_eq!(judged(&records), (vec![7, 2], vec![]), "it is of the same transaction");
    }
}
