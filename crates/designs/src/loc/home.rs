//! Lines: the transactions that stored to them last, lines that leave the caches or are written in
//! place, and how the log is truncated.

use model::controller::Notify;
use model::design::{Below, Disposition, Evict};
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, LineData};

use super::LocEvent;
use super::drain::Receipt;
use super::engine::Engine;
use super::entry::{Entry, Place};
use super::few::Few;
use super::ring::Group;
use super::speculation::Speculates as _;
use super::window::{Issue, Number};

/// A line that a running transaction stored to, or whose newest durable version memory does not
/// have.
#[derive(Clone, Debug, Default)]
pub struct LineState {
    /// The core whose running transaction stored to it last, and whether it did so since the line
    /// was last written to the log.
    pub running: Option<(CoreId, bool)>,
    /// Versions of transactions that have ended and that are not home, oldest first: the place of
    /// the transaction, and which of its versions it is.
    pub ended: Few<(Place, Number)>,
    /// Whether the newest of these has left the caches with the version of the running transaction:
    /// if the caches have the line again, they have only what that transaction stored.
    pub old_left: bool,
    /// The newest of these that is on its way home, by its transaction.
    homing: Option<Place>,
}

/// A truncation of the log that is under way.
#[derive(Clone, Debug)]
pub struct Truncation {
    /// Transactions before this one are to be home.
    goal: Place,
    /// The version that is looked at next, and its transaction or one before.
    next: (Place, Number),
    /// Transactions before this one are home.
    home: Place,
    /// How many writes in place are under way.
    under_way: u64,
    /// When the last level may send the next one: it sends one a cycle, as in a drain.
    turn: Cycle,
    /// Where the log begins once the head is durable.
    head: Option<(Group, Place)>,
}

impl Engine {
    /// Sends a dirty line that leaves the caches to its place, if its newest version is durable. If
    /// not, all its versions that are not durable go to the log, unless the log has them: the old
    /// ones leave the caches with the newest.
    pub(super) fn leave(
        &mut self,
        evict: &Evict,
        below: &mut Below<LocEvent>,
    ) -> Disposition<LocEvent> {
        let Evict { line, data, at } = *evict;
        let home = Disposition::Home { at, notify: Notify::Nobody };
        let Some(state) = self.lines.get_mut(&line) else { return home };
        if state.running.is_some() && !self.rules.uncommitted_to_log {
            return home;
        }
        let running = state.running.as_mut().map(|(core, dirty)| (*core, std::mem::take(dirty)));
        state.old_left = running.is_some();
        if running.is_none() {
            let Some(&(place, _)) = state.ended.back() else { return home };
            if place < self.transactions.window.durable {
                state.homing = Some(place);
                let notify = Notify::Design(LocEvent::Homed(line, place));
                return Disposition::Home { at, notify };
            }
            if !self.rules.undurable_to_log {
                return home;
            }
        }
        let mut sends = self.rules.undurable_to_log && self.log_ended(line, at);
        if let Some((core, dirty)) = running {
            self.cores[core].last = None;
            if dirty {
                self.log_early(core, line, data, at);
                sends = true;
            }
        }
        if sends {
            self.pump(at, below);
        }
        Disposition::Taken
    }

    /// Sends what transactions that have ended left in a line to the log, as far as that has not
    /// got it. Returns whether there is anything.
    fn log_ended(&mut self, line: Line, at: Cycle) -> bool {
        let before = self.counts.evicted_ended;
        while let Some(state) = self.lines.get(&line)
            && let Some((place, data)) = self.transactions.issue_oldest(&state.ended)
        {
            self.counts.evicted_ended += 1;
            let receipt = self.transactions.window.get(place).receipt;
            self.enqueue(receipt, Entry::Block { line, by: place, count: 0 }, Some(data), at);
        }
        self.counts.evicted_ended > before
    }

    /// Sends a line of a running transaction that leaves the caches to the log, without a TxCnt.
    fn log_early(&mut self, core: CoreId, line: Line, data: LineData, at: Cycle) {
        self.counts.evicted_running += 1;
        let running = self.running(core);
        let receipts = &mut self.receipts;
        let transaction = &mut self.cores[core].transaction;
        transaction.issued += 1;
        let receipt =
            *transaction.receipt.get_or_insert_with(|| receipts.insert(Receipt::default()));
        self.enqueue(receipt, Entry::Early { line, running }, Some(data), at);
    }

    /// Drops a line's version of a core's transaction that is aborted: the version before is the
    /// newest again. If the caches have the line it stays dirty, even if it was not. That costs a
    /// write of what memory has when the line leaves.
    pub(super) fn drop_running(&mut self, line: Line, core: CoreId) {
        let Some(state) = self.lines.get_mut(&line) else { return };
        if state.running.take_if(|(owner, _)| *owner == core).is_some() {
            // What the caches have of the line is the version before.
            state.old_left = false;
        }
        if state.ended.is_empty() && state.running.is_none() {
            self.lines.remove(&line);
        }
    }

    /// Notes that memory has a version of a line.
    pub(super) fn homed(
        &mut self,
        line: Line,
        version: Place,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        if let Some(state) = self.lines.get_mut(&line) {
            while let Some(&(place, _)) = state.ended.front()
                && place <= version
            {
                state.ended.pop_front();
                let window = &mut self.transactions.window;
                if place >= window.first {
                    window.get_mut(place).not_home -= 1;
                }
            }
            if state.ended.is_empty() && state.running.is_none() {
                self.lines.remove(&line);
            }
        }
        if self.truncation.is_some() {
            self.go_on_truncating(at + self.path, below);
        }
    }

    /// Notes that a version that was written in place to make room in the log is durable.
    pub(super) fn checkpointed(
        &mut self,
        line: Line,
        version: Place,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        if let Some(truncation) = &mut self.truncation {
            truncation.under_way -= 1;
        }
        self.homed(line, version, at, below);
    }

    /// Begins to truncate the log if `truncate_perc` percent of it, or of the TxIDs, are in use, or
    /// if an entry has no room. Transactions that are not drained yet must be drained, too: they
    /// could hold up the oldest group for ever.
    pub(super) fn truncate_if_pressed(
        &mut self,
        full: bool,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) {
        let window = &self.transactions.window;
        let used = self.ring.used();
        let ids = window.next() - window.first;
        let share = self.how.truncate_perc;
        let pressed = full
            || 100 * used > share * self.ring.area.groups
            || 100 * ids > share.min(50) * self.reach;
        if !pressed || self.truncation.is_some() {
            return;
        }
        if window.drained < window.next() {
            // The drain comes back here.
            return self.drain(window.next(), at, below);
        }
        let target = self.ring.first + (used / 2).max(1);
        let old = |place: &Place| {
            2 * (place - window.first) < ids
                || self.first_group(*place).is_some_and(|group| group < target)
        };
        let last = (window.first..window.durable).rev().find(old);
        self.truncate(last.map_or(window.first, |last| last + 1), at, below);
    }

    fn truncate(&mut self, goal: Place, at: Cycle, below: &mut Below<LocEvent>) {
        let window = &self.transactions.window;
        let first = window.first;
        let next = (first, window.first_version());
        let truncation = Truncation { goal, next, home: first, under_way: 0, turn: at, head: None };
        self.truncation = Some(truncation);
        self.go_on_truncating(at, below);
    }

    /// No entry that is appended from now on is of a transaction before this place: those
    /// transactions are home, and the head that leaves them out is durable or on its way.
    pub(super) fn floor(&self) -> Place {
        let head = self.truncation.as_ref().and_then(|truncation| truncation.head);
        head.map_or(self.transactions.window.first, |(_, first)| first)
    }

    fn first_group(&self, place: Place) -> Option<Group> {
        self.receipts[self.transactions.window.get(place).receipt].first_group()
    }

    fn go_on_truncating(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        let Some(mut truncation) = self.truncation.take() else { return };
        while truncation.under_way < self.how.log_writes && truncation.next.0 < truncation.goal {
            let (place, number) = truncation.next;
            let window = &self.transactions.window;
            if number == window.get(place).versions.end {
                truncation.next.0 += 1;
                continue;
            }
            let line = window.version(number).line;
            truncation.next.1 += 1;
            let turn = truncation.turn.max(at);
            if self.checkpoint(line, place, turn, below) {
                truncation.under_way += 1;
                truncation.turn = turn + 1;
            }
        }
        let goal = truncation.goal;
        let done = truncation.next.0 == goal && truncation.head.is_none();
        if done {
            let window = &self.transactions.window;
            let is_away = |place: &Place| window.get(*place).not_home > 0;
            truncation.home = (truncation.home..goal).find(is_away).unwrap_or(goal);
        }
        let all_home = truncation.home == goal || !self.rules.truncate_after_home;
        self.truncation = Some(truncation);
        if done && all_home {
            self.move_head(goal, at, below);
        }
    }

    /// Writes a line in place as the newest durable transaction left it, if the version at `place`
    /// or a newer one is neither home nor on its way there. Returns whether it does.
    fn checkpoint(
        &mut self,
        line: Line,
        place: Place,
        at: Cycle,
        below: &mut Below<LocEvent>,
    ) -> bool {
        let Some(state) = self.lines.get_mut(&line) else { return false };
        let missing = state.ended.front().is_some_and(|&(first, _)| first <= place);
        if !missing || state.homing.is_some_and(|homing| homing >= place) {
            return false;
        }
        let window = &self.transactions.window;
        let home = |&&(place, number): &&(Place, Number)| {
            let durable = place < window.durable || !self.rules.home_durable;
            place >= window.first && durable && window.version(number).state != Issue::Absorbed
        };
        let Some(&(newest, number)) = state.ended.iter().rev().find(home) else { return false };
        state.homing = Some(newest);
        let is_last = state.ended.back().is_some_and(|&(last, _)| last == newest);
        if state.running.is_none() && is_last {
            // The caches hold this version, and need not write it once more.
            below.caches.clean(line);
        }
        let data = window.version(number).data;
        let write = Write::whole(line, data, Class::Checkpoint);
        // Of the versions that have ended the caches hold the last one, beside that of the running
        // transaction.
        let is_cached = is_last && !state.old_left && below.caches.holds(line);
        let leaves = match self.first_group(newest).filter(|_| !is_cached) {
            // The bytes are read from the log; which of the transaction's blocks it is makes no
            // difference.
            Some(group) => {
                let block = self.ring.area.block(group, 0);
                below.memory.read(at + self.path, block) + self.path
            }
            None => at,
        };
        self.counts.checkpoints += 1;
        below.send(leaves, write, Notify::Design(LocEvent::Checkpointed(line, newest)));
        true
    }

    /// Moves the head as far as it can go, since everything before `goal` is home.
    fn move_head(&mut self, goal: Place, at: Cycle, below: &mut Below<LocEvent>) {
        let window = &self.transactions.window;
        let is_home =
            |place: &Place| window.get(*place).not_home == 0 || !self.rules.truncate_after_home;
        let durable = window.durable;
        let mut first = (goal..durable).find(|place| !is_home(place)).unwrap_or(durable);
        let group = loop {
            let group = self.oldest_group(first);
            // Old entries in a group that is in use must not be so old that they look new.
            let limit = self.ring.floor(group).map_or(first, |floor| floor + self.reach);
            if first <= limit || !self.rules.keep_head_in_reach {
                break group;
            }
            first = limit;
        };
        if (group, first) == (self.ring.first, self.transactions.window.first) {
            self.truncation = None;
            if goal < durable && (self.is_short() || self.is_full) {
                // The cores that wait need more: versions that are not home yet may hold the head
                // back.
                return self.truncate(durable, at, below);
            }
            return self.give_up_if_stuck(below);
        }
        let truncation = self.truncation.as_mut().expect("the log is being truncated");
        truncation.head = Some((group, first));
        let write = self.ring.head(group, first);
        below.send(at, write, Notify::Design(LocEvent::Head));
        if !self.rules.head_before_reuse {
            self.free(group, first);
            self.pump(at, below);
        }
    }

    /// The oldest group with an entry of a transaction at or after `first`, or of one that runs.
    fn oldest_group(&self, first: Place) -> Group {
        let ended =
            (first..self.transactions.window.next()).filter_map(|place| self.first_group(place));
        let running = self.cores.iter().filter_map(|(_, core)| core.transaction.receipt);
        let running = running.filter_map(|receipt| self.receipts[receipt].first_group());
        ended.chain(running).min().unwrap_or(self.ring.next()).min(self.ring.next())
    }

    /// Notes that the head is durable: the groups before it are free.
    pub(super) fn head_is_durable(&mut self, at: Cycle, below: &mut Below<LocEvent>) {
        let Some(truncation) = self.truncation.take() else { return };
        if let Some((group, first)) = truncation.head
            && self.rules.head_before_reuse
        {
            self.free(group, first);
        }
        self.counts.truncations += 1;
        self.pump(at + self.path, below);
        self.tell_all(at + self.path, below);
    }

    fn free(&mut self, group: Group, first: Place) {
        for transaction in self.transactions.window.truncate(first) {
            self.receipts.remove(transaction.receipt);
        }
        self.ring.free_before(group);
    }
}
