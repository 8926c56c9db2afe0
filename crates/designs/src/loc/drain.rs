//! From the end of a transaction to its durability: the window is drained into the log, and the
//! durable prefix moves.

use model::controller::Notify;
use model::design::Below;
use model::units::{Cycle, LineData};

use super::LocEvent;
use super::engine::Engine;
use super::entry::{Entry, Place};
use super::few::Few;
use super::ring::{Group, Ring};
use super::speculation::{Speculates, Transactions};
use super::window::{Composed, Transaction};

/// A step that waits in the queue of the log.
#[derive(Clone, Debug)]
pub enum Queued {
    /// An entry of the transaction with this receipt leaves the last level at `ready`.
    Append { receipt: usize, entry: Entry, data: Option<LineData>, ready: Cycle },
    /// The open group is to be closed.
    Close { ready: Cycle },
}

/// Where the entries of one transaction are.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    /// How many entries wait in the queue.
    queued: u64,
    /// The groups of its other entries, ascending.
    groups: Few<Group>,
}

impl Receipt {
    /// The first group with an entry of the transaction.
    pub fn first_group(&self) -> Option<Group> {
        self.groups.front().copied()
    }

    /// Whether all entries of the transaction are durable.
    fn is_durable(&self, ring: &Ring) -> bool {
        self.queued == 0 && self.groups.iter().all(|&group| ring.is_durable(group))
    }
}

impl Speculates<LocEvent> for Engine {
    fn transactions(&mut self) -> &mut Transactions {
        &mut self.transactions
    }

    /// Whether all TxIDs that can be told apart are in use.
    fn is_short(&self) -> bool {
        let window = &self.transactions.window;
        window.next() - window.first >= self.reach
    }

    fn may_begin(&self) -> bool {
        !(self.rules.begin_in_reach && self.is_short())
    }

    /// Lets the entries leave the last level for the log, a block a cycle.
    fn drain(&mut self, end: Place, ready: Cycle, below: &mut Below<LocEvent>) {
        let Some(mut entries) = self.transactions.drain(end) else { return };
        if self.how.grouping.in_burst {
            // Entries without a block share one.
            entries.sort_by_key(|composed| composed.data.is_some());
        }
        let (mut turn, mut last) = (ready, ready);
        for Composed { by, entry, data } in entries.drain(..) {
            let transaction = self.transactions.window.get(by);
            let (receipt, ready) = (transaction.receipt, turn.max(transaction.left + self.walk));
            turn += u64::from(data.is_some());
            last = last.max(ready);
            self.enqueue(receipt, entry, data, ready);
        }
        self.transactions.composed = entries;
        self.queue.push_back(Queued::Close { ready: last });
        self.pump(ready, below);
    }
}

impl Engine {
    pub(super) fn enqueue(
        &mut self,
        receipt: usize,
        entry: Entry,
        data: Option<LineData>,
        ready: Cycle,
    ) {
        match data {
            Some(_) => self.counts.log_blocks += 1,
            None => self.counts.log_notes += 1,
        }
        self.receipts[receipt].queued += 1;
        self.queue.push_back(Queued::Append { receipt, entry, data, ready });
    }

    /// Sends what waits in the queue, as far as the log has room and few enough writes are under
    /// way. `at` is when the last level may send.
    pub(super) fn pump(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        let mut full = false;
        while let Some(queued) = self.queue.front() {
            match *queued {
                Queued::Close { ready } => self.close(at.max(ready), below),
                Queued::Append { .. } if self.under_way >= self.how.log_writes => break,
                Queued::Append { data, ready, .. } if !self.ring.has_room(data.is_some()) => {
                    // Notes in the last group that there is do not wait for more notes.
                    self.close(at.max(ready), below);
                    full = true;
                    break;
                }
                Queued::Append { receipt, entry, data, ready } => {
                    self.append(receipt, entry, data, at.max(ready), below);
                }
            }
            self.queue.pop_front();
        }
        let was_full = std::mem::replace(&mut self.is_full, full);
        self.counts.log_full += u64::from(full && !was_full);
        self.send_records(at, below);
        self.truncate_if_pressed(full, at, below);
        self.give_up_if_stuck(below);
    }

    /// Ends the run if the log is full and nothing is under way that would make room.
    pub(super) fn give_up_if_stuck(&self, below: &mut Below<LocEvent>) {
        if self.is_full && self.under_way == 0 && self.truncation.is_none() {
            below.give_up(format!(
                "the log of {} block groups is full, and its oldest entries are of a transaction \
                 that runs or is not durable: raise it with --set pm.log_size=...",
                self.ring.area.groups
            ));
        }
    }

    fn append(
        &mut self,
        receipt: usize,
        entry: Entry,
        data: Option<LineData>,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        if data.is_some() && self.how.grouping.in_burst {
            self.close(at, below);
        }
        let (group, write) = self.ring.append(entry, data, self.floor());
        self.counts.wraps = self.ring.wraps();
        let receipt = &mut self.receipts[receipt];
        receipt.queued -= 1;
        if receipt.groups.back() != Some(&group) {
            receipt.groups.push_back(group);
        }
        if let Some(write) = write {
            self.under_way += 1;
            below.send(at, write, Notify::Design(LocEvent::Data(group)));
        }
        self.send_metadata(group, at, below);
    }

    /// Closes the open group, if there is one.
    fn close(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        let open = self.ring.next();
        self.ring.close();
        self.send_metadata(open, at, below);
    }

    /// Sends a group's metadata from the last level, if the group is closed and nothing holds them
    /// back.
    fn send_metadata(&mut self, group: Group, at: Cycle, below: &mut Below<LocEvent>) {
        if group >= self.ring.first + self.ring.used() {
            return;
        }
        if let Some(write) = self.ring.metadata(group, self.metadata_after_data()) {
            self.under_way += 1;
            self.counts.groups += 1;
            below.send(at, write, Notify::Design(LocEvent::Metadata(group)));
        }
    }

    /// Whether metadata wait for their data: with a count they must not be durable first. A commit
    /// record waits for both.
    fn metadata_after_data(&self) -> bool {
        !self.how.commit.record && self.rules.data_before_metadata
    }

    /// Notes that a data block of a group is durable.
    pub(super) fn data_is_durable(&mut self, group: Group, at: Cycle, below: &mut Below<LocEvent>) {
        self.under_way -= 1;
        self.ring.data_is_durable(group);
        if let Some(write) = self.ring.metadata(group, self.metadata_after_data()) {
            // The log's controller sends the metadata on as soon as the data are there.
            self.under_way += 1;
            self.counts.groups += 1;
            below.send_direct(at + self.hop, write, Notify::Design(LocEvent::Metadata(group)));
        }
        self.group_may_be_durable(group, at, below);
    }

    /// Notes that the metadata block of a group is durable.
    pub(super) fn metadata_is_durable(
        &mut self,
        group: Group,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        self.under_way -= 1;
        self.ring.metadata_is_durable(group);
        self.group_may_be_durable(group, at, below);
    }

    fn group_may_be_durable(&mut self, group: Group, at: Cycle, below: &mut Below<LocEvent>) {
        if self.ring.is_durable(group) {
            self.advance(at, below);
        }
        self.pump(at + self.path, below);
    }

    /// Sends the commit records of transactions whose entries are durable (H-WAL).
    fn send_records(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        if !self.how.commit.record {
            return;
        }
        let window = &mut self.transactions.window;
        for place in window.durable..window.drained {
            let transaction = window.get(place);
            let receipt = &self.receipts[transaction.receipt];
            let due = receipt.queued == 0
                && (!self.rules.record_after_log || receipt.is_durable(&self.ring));
            if let Some(&group) = receipt.groups.back()
                && due
                && !transaction.recorded.0
            {
                let write = self.ring.record(group, place);
                window.get_mut(place).recorded.0 = true;
                self.under_way += 1;
                // A record that may go before the log need not wait for news of it: it leaves at
                // once.
                let leaves = Cycle(at.since(Cycle(self.path))).max(below.memory.now()) + self.hop;
                below.send_direct(leaves, write, Notify::Design(LocEvent::Record(place)));
            }
        }
    }

    /// Notes that a commit record is durable.
    pub(super) fn record_is_durable(
        &mut self,
        place: Place,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        self.under_way -= 1;
        let window = &mut self.transactions.window;
        if place >= window.first {
            window.get_mut(place).recorded.1 = true;
            self.advance(at, below);
        }
        self.pump(at + self.path, below);
    }

    fn is_written(&self, transaction: &Transaction) -> bool {
        let recorded = transaction.recorded.1 || !self.rules.acknowledge_after_record;
        self.receipts[transaction.receipt].is_durable(&self.ring)
            && (recorded || !self.how.commit.record)
    }

    /// Moves the end of the durable prefix, and tells the cores that wait for that.
    fn advance(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        let Transactions { window, rules, .. } = &self.transactions;
        let end = window.settled(|transaction| self.is_written(transaction), rules);
        self.settle(end, at + self.path, below);
    }
}
