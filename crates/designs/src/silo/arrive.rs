//! The way of Silo's logs and commits from the core to the log buffer.

use model::design::Below;
use model::units::{CoreId, Cycle, Line, TxId};

use super::{Log, Message, Overflow, Silo, SiloEvent};

impl Silo {
    /// The number that the register of 16 bits holds for a transaction. Numbers that are in a
    /// buffer or a region at the same time are far closer together than a wrap.
    pub(super) fn number(&self, tx: TxId) -> TxId {
        TxId(tx.0.wrapping_add(self.params.first_transaction) & 0xffff)
    }

    /// How many logs of one core a power failure may have to save, at the most.
    pub(super) fn logs_on_chip(&self) -> u64 {
        self.params.entries + u64::from(self.channel_survives) * (self.params.channel + 1)
    }

    pub(super) fn send(
        &mut self,
        core: CoreId,
        at: Cycle,
        message: Message,
        below: &mut Below<SiloEvent>,
    ) {
        let path = self.path;
        let channel = &mut self.cores[core].channel;
        let before = channel.back().map_or(Cycle(0), |&(at, _)| at);
        let arrival = before.max(at + path);
        if channel.is_empty() {
            below.at(arrival, SiloEvent::Arrive(core));
        }
        channel.push_back((arrival, message));
    }

    /// Whether a log of one of a line's words, from a store up to `stamp`, is on its way.
    pub(super) fn is_logged_soon(&self, line: Line, stamp: u64) -> bool {
        let logs_line = |(_, message): &(Cycle, Message)| match message {
            Message::Log(log) => log.word.line() == line && log.stamp <= stamp,
            Message::Commit(_) => false,
        };
        self.cores.iter().any(|(_, buffer)| buffer.channel.iter().any(logs_line))
    }

    pub(super) fn arrive(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let Some(&(_, message)) = self.cores[core].channel.front() else { return };
        match message {
            Message::Log(log) => {
                if !self.merge(core, &log) && !self.append(core, log, at, below) {
                    self.cores[core].full = true;
                    return;
                }
            }
            Message::Commit(tx) => self.commit_arrives(core, tx, at, below),
        }
        let buffer = &mut self.cores[core];
        buffer.channel.pop_front();
        if let Some(&(next, _)) = buffer.channel.front() {
            below.at(next.max(at), SiloEvent::Arrive(core));
        }
        if buffer.waiting && buffer.channel.len() as u64 <= self.params.channel {
            buffer.waiting = false;
            below.wake(core, at + self.path);
        }
        self.release_held(at, below);
    }

    /// Log merging: updates the log that the word has in the transaction, if any, which keeps its
    /// first old value and takes the last new one. Returns whether there was one.
    fn merge(&mut self, core: CoreId, log: &Log) -> bool {
        let (stamp, rules) = (log.stamp, &self.rules);
        let buffer = &mut self.cores[core];
        if buffer.spill.is_some() && self.params.overflow == Overflow::Blocking
            || !self.logged.may_hold(log.word.0)
        {
            return false;
        }
        // A log that an overflow moves out takes no store in; those logs are the first.
        let leaving = if rules.keep_leaving { buffer.leaving() } else { 0 };
        let staying = buffer.logs.len() - leaving;
        let any = !rules.merge_within_transaction;
        let same = |other: &&mut Log| {
            other.word == log.word && (other.tx == log.tx && other.committed.is_none() || any)
        };
        let Some(merged) = buffer.logs.iter_mut().rev().take(staying).find(same) else {
            return false;
        };
        merged.new = log.new;
        merged.stamp = stamp;
        if rules.flush_bit_reset_on_merge {
            merged.flushed = false;
        }
        if !rules.keep_net_silent && merged.new == merged.old {
            buffer.logs.retain(|other| other.stamp != stamp);
            self.logged.remove(log.word.0);
        }
        self.counts.merged += 1;
        true
    }

    /// Appends a log. If there is no room, has some made and returns false.
    fn append(&mut self, core: CoreId, log: Log, at: Cycle, below: &mut Below<SiloEvent>) -> bool {
        let buffer = &mut self.cores[core];
        let held_up = buffer.spill.is_some() && self.params.overflow == Overflow::Blocking;
        if (buffer.logs.len() as u64) < self.params.entries && !held_up {
            buffer.logs.push_back(log);
            self.logged.add(log.word.0);
            self.counts.logs_max = self.counts.logs_max.max(buffer.logs.len() as u64);
            return true;
        }
        let running = buffer.logs.iter().all(|log| log.committed.is_none());
        if buffer.spill.is_none() && running {
            self.begin_spill(core, at, below);
        }
        // Committed logs leave by themselves, and the channel goes on when one has left.
        false
    }

    pub(super) fn commit_arrives(
        &mut self,
        core: CoreId,
        tx: TxId,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        self.commits += 1;
        let commits = self.commits;
        let buffer = &mut self.cores[core];
        let mut any = false;
        for log in buffer.running().filter(|log| log.tx == tx) {
            log.committed = Some(commits);
            any = true;
        }
        if any {
            buffer.committed.push_back((tx, commits));
        } else if self.rules.truncate_after_commit
            && (buffer.committed.is_empty() || !self.rules.keep_records_until_updated)
        {
            buffer.region.truncate();
        }
        below.wake(core, at + self.params.buffer_latency + self.path);
        self.start_updating(core, at, below);
    }
}
