//! The window: transactions that have ended and are not truncated, in the order of their places.
//!
//! ```text
//! first ..= truncated before | .. durable .. | .. drained .. | ended, nothing of them in the log yet
//! ```
//!
//! What a transaction left in a line is a *version*. When a transaction ends, its version of a line
//! absorbs the last one before it, if that has not been issued to the log (write coalescing), and a
//! dependency pair remembers it.

use std::collections::VecDeque;
use std::ops::Range;

use model::units::{CoreId, Cycle, Line, LineData};

use super::entry::{COUNT_MAX, Entry, Place, Running};
use super::{CountingRules, LocRules};

/// The number of a version among all versions of the window, in the order of their transactions.
pub type Number = u64;

/// What a transaction left in a line.
#[derive(Clone, Debug)]
pub struct Version {
    pub line: Line,
    pub data: LineData,
    pub state: Issue,
}

/// What has become of a version on its way to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Issue {
    /// Nothing yet; the caches hold it, as the newest version or as an old one.
    Kept,
    /// It was sent, or waits in the queue of the log.
    Sent,
    /// A later transaction's version has taken its place.
    Absorbed,
}

/// A transaction that has ended.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub core: CoreId,
    /// The numbers of its versions, one for each line that it stored to.
    pub versions: Range<Number>,
    /// How many versions have been neither issued nor absorbed.
    pub kept: u64,
    /// How many entries it has in the log, or in the log's queue, without those of its drain.
    pub issued: u64,
    /// The name under which it wrote entries before it ended, if it did.
    pub early: Option<Running>,
    /// When its last store has left its core.
    pub left: Cycle,
    /// Where its entries go ([`super::drain`]; LOC's logs).
    pub receipt: usize,
    /// How many of its entries are on their way (LOC over Kiln).
    pub expected: u64,
    /// Its versions that others absorbed: by which transaction, and how many. The last of these is
    /// its carrier, if it needs one.
    pub absorbed: Vec<(Place, u64)>,
    /// The versions of others that it absorbed: of which transaction, and how many.
    absorbs: Vec<(Place, u64)>,
    /// Notes of transactions that have no block left, which it carries for them.
    carried: Vec<Note>,
    /// Whether it was aborted, has no version, and is not marked as complete.
    is_unmarked: bool,
    /// Whether its commit record has been sent, and whether it is durable (H-WAL).
    pub recorded: (bool, bool),
    /// How many lines it has a version of that memory does not have as new.
    pub not_home: u64,
}

/// A metadata word without a block, before it is known which transaction's entry it will be.
#[derive(Clone, Copy, Debug)]
enum Note {
    Count { of: Place, count: u64 },
    Pair { from: Place, to: Place, blocks: u64 },
    Adopt { of: Place, running: Running },
}

/// An entry that is to be written to the log.
#[derive(Clone, Debug)]
pub struct Composed {
    pub by: Place,
    pub entry: Entry,
    pub data: Option<LineData>,
}

/// The transactions that have ended and are not truncated.
#[derive(Default)]
pub struct Window {
    transactions: VecDeque<Transaction>,
    /// What they left in lines, one transaction's versions after another's; `first_version` is the
    /// number of the first of these.
    versions: VecDeque<Version>,
    first_version: Number,
    /// The first transaction that is not truncated, not durable, not drained.
    pub first: Place,
    pub durable: Place,
    pub drained: Place,
}

/// How transactions are committed.
#[derive(Clone, Copy, Debug)]
pub struct Commit {
    /// Whether by a record of its own, and not by a count.
    pub record: bool,
    /// Whether the last version of a transaction that is not issued is never absorbed.
    pub pin: bool,
    /// Whether a TxCnt counts entries, and not lines (the rule `count_entries`).
    pub entries: bool,
}

impl Transaction {
    /// A transaction of a core that ends, whose last store leaves the core at `left`.
    pub fn new(
        (core, left): (CoreId, Cycle),
        early: Option<Running>,
        issued: u64,
        receipt: usize,
    ) -> Transaction {
        Transaction {
            core,
            versions: 0..0,
            kept: 0,
            issued,
            early,
            left,
            receipt,
            expected: 0,
            absorbed: Vec::new(),
            absorbs: Vec::new(),
            carried: Vec::new(),
            is_unmarked: false,
            recorded: (false, false),
            not_home: 0,
        }
    }

    /// An aborted transaction that has entries in the log. Recovery must find it complete, or it
    /// would end the prefix there; its TxCnt counts the entry that says so.
    pub fn aborted(core: (CoreId, Cycle), receipt: usize, rules: &LocRules) -> Transaction {
        let is_unmarked = !rules.mark_aborted;
        let recorded = (is_unmarked, is_unmarked);
        let empty = Transaction::new(core, None, 0, receipt);
        Transaction { is_unmarked, recorded, ..empty }
    }
}

impl Window {
    /// An empty window, whose next transaction has the place `first`.
    pub fn beginning_at(first: Place) -> Window {
        Window { first, durable: first, drained: first, ..Window::default() }
    }

    /// The place of the transaction that ends next.
    pub fn next(&self) -> Place {
        self.first + self.transactions.len() as u64
    }

    /// A transaction that is not truncated.
    pub fn get(&self, place: Place) -> &Transaction {
        &self.transactions[(place - self.first) as usize]
    }

    /// A transaction that is not truncated.
    pub fn get_mut(&mut self, place: Place) -> &mut Transaction {
        &mut self.transactions[(place - self.first) as usize]
    }

    /// A version of a transaction that is not truncated.
    pub fn version(&self, number: Number) -> &Version {
        &self.versions[(number - self.first_version) as usize]
    }

    /// The number of the first of these versions.
    pub fn first_version(&self) -> Number {
        self.first_version
    }

    fn version_mut(&mut self, number: Number) -> &mut Version {
        &mut self.versions[(number - self.first_version) as usize]
    }

    fn next_version(&self) -> Number {
        self.first_version + self.versions.len() as u64
    }

    /// Adds a transaction that ends. Returns its place.
    pub fn push(&mut self, transaction: Transaction) -> Place {
        let versions = self.next_version()..self.next_version();
        self.transactions.push_back(Transaction { versions, ..transaction });
        self.next() - 1
    }

    /// Adds a version that the last transaction that ended left. Returns its number.
    pub fn push_version(&mut self, version: Version) -> Number {
        let number = self.next_version();
        let transaction = self.transactions.back_mut().expect("a transaction has ended");
        transaction.versions.end = number + 1;
        transaction.kept += u64::from(version.state == Issue::Kept);
        transaction.not_home += 1;
        self.versions.push_back(version);
        number
    }

    /// Lets the transaction at `by` absorb a version of another, if that has not been issued.
    /// Returns whether it does.
    pub fn absorb(
        &mut self,
        by: Place,
        (from, number): (Place, Number),
        how: Commit,
        rules: &CountingRules,
    ) -> bool {
        if from < self.durable || from == by {
            return false;
        }
        let state = self.version(number).state;
        let other = self.get_mut(from);
        match state {
            Issue::Absorbed => return false,
            Issue::Sent if rules.absorb_unissued => return false,
            Issue::Kept if how.pin && other.kept == 1 => return false,
            Issue::Kept => other.kept -= 1,
            Issue::Sent => (),
        }
        add(&mut other.absorbed, by);
        self.version_mut(number).state = Issue::Absorbed;
        add(&mut self.get_mut(by).absorbs, from);
        true
    }

    /// Issues a version before its transaction is drained. Returns its bytes, if it was kept until
    /// now.
    pub fn issue(&mut self, place: Place, number: Number) -> Option<LineData> {
        let version = self.version_mut(number);
        if version.state != Issue::Kept {
            return None;
        }
        version.state = Issue::Sent;
        let data = version.data;
        let transaction = self.get_mut(place);
        transaction.kept -= 1;
        transaction.issued += 1;
        Some(data)
    }

    /// The end of the transactions that must be drained with those before `end`: behind the last
    /// one that has absorbed a version of theirs.
    pub fn closure(&self, end: Place) -> Place {
        let mut end = end;
        let mut place = self.drained;
        while place < end {
            let targets = self.get(place).absorbed.iter().map(|&(by, _)| by + 1);
            end = targets.fold(end, Place::max);
            place += 1;
        }
        end
    }

    /// Adds the entries of all transactions before `end`, which are drained by that.
    pub fn compose(
        &mut self,
        end: Place,
        how: Commit,
        rules: &CountingRules,
        entries: &mut Vec<Composed>,
    ) {
        for place in self.drained..end {
            self.compose_one(place, how, rules, entries);
        }
        self.drained = self.drained.max(end);
    }

    fn compose_one(
        &mut self,
        place: Place,
        how: Commit,
        rules: &CountingRules,
        entries: &mut Vec<Composed>,
    ) {
        let transaction = self.get_mut(place);
        if transaction.is_unmarked {
            return;
        }
        let versions = transaction.versions.clone();
        let mut notes = std::mem::take(&mut transaction.carried);
        let pairs = transaction.absorbs.iter();
        notes.extend(pairs.map(|&(from, blocks)| Note::Pair { from, to: place, blocks }));
        notes.extend(transaction.early.map(|running| Note::Adopt { of: place, running }));
        let absorbed: u64 = transaction.absorbed.iter().map(|&(_, blocks)| blocks).sum();
        let elsewhere = match how.entries {
            true => transaction.issued + absorbed,
            false => versions.end - versions.start - transaction.kept,
        };
        if transaction.kept == 0
            && !how.pin
            && let Some(&(carrier, _)) = transaction.absorbed.last()
        {
            if rules.carry_count {
                notes.push(Note::Count { of: place, count: elsewhere });
            }
            notes.retain(|note| rules.rehome_pairs || !matches!(note, Note::Pair { .. }));
            self.get_mut(carrier).carried.extend(notes);
            return;
        }
        let mut count = elsewhere + transaction.kept + notes.len() as u64;
        if how.record {
            if versions.is_empty() {
                // A group has room for one record, so the transaction needs an entry in a group of
                // its own.
                notes.push(Note::Count { of: place, count: 1 });
            }
            count = 0;
        } else if transaction.kept == 0 && rules.count_without_blocks || count > COUNT_MAX {
            count += 1;
            notes.push(Note::Count { of: place, count });
            count = 0;
        }
        entries.extend(notes.into_iter().map(|note| note.of(place)));
        // The block that is issued last has the TxCnt.
        let mut left = std::mem::take(&mut transaction.kept);
        let place_of = |number: Number| (number - self.first_version) as usize;
        let versions = place_of(versions.start)..place_of(versions.end);
        for version in self.versions.range_mut(versions) {
            if version.state != Issue::Kept {
                continue;
            }
            left -= 1;
            let count = if left == 0 { count } else { 0 };
            let entry = Entry::Block { line: version.line, by: place, count };
            entries.push(Composed { by: place, entry, data: Some(version.data) });
            version.state = Issue::Sent;
        }
    }

    /// The end of the durable prefix, where `is_written` says of which drained transactions all
    /// entries are durable: the longest prefix of these in which none depends on one outside.
    pub fn settled(
        &self,
        is_written: impl Fn(&Transaction) -> bool,
        rules: &CountingRules,
    ) -> Place {
        let written = |place: &Place| is_written(self.get(*place));
        let mut end = if rules.acknowledge_in_order {
            (self.durable..self.drained).find(|place| !written(place)).unwrap_or(self.drained)
        } else {
            (self.durable..self.drained).rev().find(written).map_or(self.durable, |last| last + 1)
        };
        if !rules.acknowledge_closed {
            return end;
        }
        let outside =
            |place: Place, end: Place| self.get(place).absorbed.iter().any(|&(by, _)| by >= end);
        while let Some(place) = (self.durable..end).find(|&place| outside(place, end)) {
            end = place;
        }
        end
    }

    /// The versions of the transactions before `end`.
    pub fn versions_before(&self, end: Place) -> impl Iterator<Item = &Version> {
        self.versions.range(..self.count_before(end))
    }

    /// How many versions the transactions before `end` have.
    fn count_before(&self, end: Place) -> usize {
        let next = self.transactions.get((end - self.first) as usize);
        (next.map_or(self.next_version(), |next| next.versions.start) - self.first_version) as usize
    }

    /// Forgets the transactions before `end`, and returns them.
    pub fn truncate(&mut self, end: Place) -> impl Iterator<Item = Transaction> + '_ {
        let count = end - self.first;
        let versions = self.count_before(end);
        self.first = end;
        self.first_version += versions as u64;
        self.versions.drain(..versions);
        self.transactions.drain(..count as usize)
    }
}

impl Note {
    /// The note as an entry of a transaction.
    fn of(self, by: Place) -> Composed {
        let entry = match self {
            Note::Count { of, count } => Entry::Count { by, of, count },
            Note::Pair { from, to, blocks } => Entry::Pair { by, from, to, blocks },
            Note::Adopt { of, running } => Entry::Adopt { by, of, running },
        };
        Composed { by, entry, data: None }
    }
}

/// Counts one more block of a transaction.
fn add(blocks: &mut Vec<(Place, u64)>, of: Place) {
    match blocks.iter_mut().find(|(place, _)| *place == of) {
        Some((_, count)) => *count += 1,
        None => blocks.push((of, 1)),
    }
}
