//! The engine from TxBegin to TxEnd, and its state. The rest of a transaction's way is in
//! [`super::drain`], the way of a line in [`super::home`].

use std::collections::VecDeque;

use model::design::{Below, Progress, Shape, Store, Tx};
use model::params::Both;
use model::units::{CoreId, Line, LineMap, PerCore};
use slab::Slab;

use super::drain::{Queued, Receipt};
use super::entry::{Format, Head, LINES_MAX, Running};
use super::home::{LineState, Truncation};
use super::ring::{Area, Ring};
use super::speculation::{Speculates as _, Transactions};
use super::window::{Issue, Transaction, Version, Window};
use super::{How, LocEvent, LocRules, WalRules};
use crate::parts::raise::log_size;

/// The fewest block groups of a log.
const GROUPS_MIN: u64 = 4;

/// The engine: the window, the log, and what lies between them and the caches.
pub(super) struct Engine {
    pub(super) how: How,
    pub(super) rules: LocRules,
    pub(super) path: u64,
    /// Cycles from a first level to the way out of the last level.
    pub(super) walk: u64,
    /// Cycles from one controller to another.
    pub(super) hop: u64,
    /// How many transactions TxIDs can tell apart.
    pub(super) reach: u64,
    /// Why the settings do not fit, if they do not.
    pub(super) misfit: Option<String>,
    pub(super) cores: PerCore<Core>,
    pub(super) transactions: Transactions,
    pub(super) ring: Ring,
    pub(super) queue: VecDeque<Queued>,
    /// Where the entries of each transaction are.
    pub(super) receipts: Slab<Receipt>,
    /// Whether the first step in the queue waits for room in the log.
    pub(super) is_full: bool,
    /// How many writes of the log are under way.
    pub(super) under_way: u64,
    pub(super) lines: LineMap<LineState>,
    pub(super) truncation: Option<Truncation>,
    pub(super) counts: Counts,
}

/// The state of a core.
#[derive(Default)]
pub(super) struct Core {
    pub(super) transaction: Current,
    /// The line that the transaction stored to last, if it has not left the caches since.
    pub(super) last: Option<Line>,
    /// How many transactions have stored so far.
    pub(super) number: u64,
}

/// The transaction that runs on a core.
#[derive(Default)]
pub(super) struct Current {
    /// Lines that it stored to, in order of the first stores.
    pub(super) lines: Vec<Line>,
    /// How many entries it has in the log already; `receipt` says where.
    pub(super) issued: u64,
    pub(super) receipt: Option<usize>,
}

model::counters! {
    pub(super) struct Counts {
        transactions "transactions_with_stores",
        log_blocks,
        log_notes,
        groups "log_groups",
        drains,
        durable_at_once_max,
        window_full,
        out_of_ids,
        log_full,
        aborts_logged,
        evicted_running,
        redirected "reads_redirected",
        checkpoints "checkpoint_writes",
        truncations,
        wraps "log_wraps",
        id_wraps,
        coalesced "blocks_coalesced",
        closure_max,
        evicted_ended,
    }
}

impl Engine {
    pub(super) fn new(
        mut how: How,
        Both { first: counting, second: rules }: WalRules,
        asynchronous: bool,
        shape: &Shape,
    ) -> Engine {
        how.commit.entries = rules.count_entries;
        let cores = u64::from(shape.cores);
        let format = Format { id_bits: how.id_bits };
        let ring = Ring::new(Area::new(shape, how.grouping), format);
        let reach = format.reach().saturating_sub(2 * cores);
        let misfit = if (how.sd + 1) * cores > reach {
            let lower = if how.sd > 1 { "design.sd" } else { "--cores" };
            Some(format!(
                "{} bits are too few for the TxIDs of {cores} cores with {} transactions each in \
                 the window: raise --set design.id_bits=..., or lower {lower}",
                how.id_bits, how.sd
            ))
        } else if ring.area.groups < GROUPS_MIN {
            let size = log_size(ring.area.bytes_for(GROUPS_MIN).div_ceil(cores));
            Some(format!(
                "the log has room for fewer than {GROUPS_MIN} block groups: raise it with {size}"
            ))
        } else {
            None
        };
        let kind = (how.sd, how.drain, how.commit);
        let transactions = Transactions::new(shape.cores, kind, counting, asynchronous);
        Engine {
            how,
            rules,
            path: shape.path,
            walk: shape.walk - shape.path,
            hop: shape.hop(),
            reach,
            misfit,
            cores: PerCore::new(shape.cores, |_| Core::default()),
            transactions,
            ring,
            queue: VecDeque::new(),
            is_full: false,
            receipts: Slab::new(),
            under_way: 0,
            lines: LineMap::default(),
            truncation: None,
            counts: Counts::default(),
        }
    }

    /// Begins where a head says that the log begins.
    pub(super) fn begin_at(&mut self, head: Head) {
        self.ring.begin_at(head);
        self.transactions.window = Window::beginning_at(head.first);
    }

    /// The name under which a core's transaction writes to the log before it ends.
    pub(super) fn running(&self, core: CoreId) -> Running {
        Running { core, number: self.cores[core].number }
    }

    /// TxBegin: gives a transaction a place in its core's window, or lets it wait for one.
    pub(super) fn begin(&mut self, tx: &Tx, below: &mut Below<LocEvent>) -> Progress {
        if let Some(text) = self.misfit.take() {
            below.give_up(text);
        }
        self.take_place(tx, tx.at + self.walk, below)
    }

    pub(super) fn store(&mut self, store: &Store) {
        let (core, line) = (store.core, store.word.line());
        if store.tx.is_none() || self.cores[core].last == Some(line) {
            return;
        }
        let state = self.lines.entry(line).or_default();
        match state.running.replace((core, true)) {
            Some((owner, _)) if owner == core => (),
            Some((owner, _)) => {
                // Two cores store to one line, which locks of lines would not let them do.
                self.cores[owner].last = None;
                self.cores[core].transaction.lines.push(line);
            }
            None => self.cores[core].transaction.lines.push(line),
        }
        self.cores[core].last = Some(line);
    }

    /// TxEnd: gives the transaction its place, and makes its lines versions.
    pub(super) fn end(&mut self, tx: &Tx, below: &mut Below<LocEvent>) -> Progress {
        let core = tx.core;
        self.cores[core].last = None;
        let mut current = std::mem::take(&mut self.cores[core].transaction);
        let stored = !current.lines.is_empty();
        let lines = current.lines.len() as u64;
        if !self.how.commit.record && lines > LINES_MAX {
            below.give_up(format!(
                "a TxCnt counts {LINES_MAX} lines at most, and a transaction wrote {lines}; use \
                 h-wal, or smaller transactions"
            ));
            return Progress::Done(tx.at);
        }
        if stored {
            self.become_versions(tx, &current, below);
            self.cores[core].number += 1;
        }
        // The next transaction takes over the list's memory, and nothing of its contents.
        current.lines.clear();
        self.cores[core].transaction.lines = current.lines;
        self.finish(tx, stored, tx.stored + self.walk, below)
    }

    /// TxAbort: drops the transaction's versions, wherever they are. If the log has none of them
    /// there is nothing to write. Otherwise the transaction ends as one without a block, in its
    /// place: the next number is then as far from those that recovery may still find as a TxID is.
    pub(super) fn abort(&mut self, tx: &Tx, below: &mut Below<LocEvent>) -> Progress {
        let (core, left) = (tx.core, tx.stored.max(tx.at) + self.walk);
        self.cores[core].last = None;
        let Current { lines, issued, receipt } = std::mem::take(&mut self.cores[core].transaction);
        for line in lines {
            if self.rules.drop_aborted {
                self.drop_running(line, core);
            }
        }
        let Some(receipt) = receipt.filter(|_| issued > 0) else { return Progress::Done(left) };
        let transaction = Transaction::aborted((core, tx.stored), receipt, &self.rules);
        let until = self.transactions.window.push(transaction) + 1;
        self.counts.aborts_logged += 1;
        self.transactions.ended[core].push(tx.id, until, true);
        self.cores[core].number += u64::from(self.rules.abandon_early);
        if self.how.sd == 1 {
            // Without speculation every end drains at once. The core goes on, and its next one
            // waits.
            self.drain(until, left, below);
        } else {
            self.drain_if_due(core, left, below);
        }
        Progress::Done(left)
    }

    fn become_versions(&mut self, tx: &Tx, current: &Current, below: &Below<LocEvent>) {
        let receipts = &mut self.receipts;
        let receipt = current.receipt.unwrap_or_else(|| receipts.insert(Receipt::default()));
        let early = current.issued > 0 && self.rules.adopt_early;
        let early = early.then(|| self.running(tx.core));
        let transaction = Transaction::new((tx.core, tx.stored), early, current.issued, receipt);
        let place = self.transactions.window.push(transaction);
        for &line in &current.lines {
            let state = self.lines.entry(line).or_default();
            state.old_left = false;
            let kept = match state.running {
                Some((core, dirty)) if core == tx.core => {
                    state.running = None;
                    dirty
                }
                _ => true,
            };
            let issue = if kept { Issue::Kept } else { Issue::Sent };
            let version = Version { line, data: below.line(line), state: issue };
            self.transactions.add(place, version, &mut state.ended);
        }
        self.counts.id_wraps += u64::from(place > 0 && place.is_multiple_of(1 << self.how.id_bits));
    }
}

/// Counts of what happens only with speculation: without it nothing is absorbed, kept or drained
/// with others.
const SPECULATIVE: [&str; 3] = ["blocks_coalesced", "closure_max", "evicted_ended"];

impl Engine {
    /// The counts by name, of what can happen.
    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        let shared = self.transactions.counts;
        let counts = Counts {
            transactions: shared.transactions,
            drains: shared.drains,
            durable_at_once_max: shared.durable_at_once_max,
            window_full: shared.window_full,
            out_of_ids: shared.short,
            coalesced: shared.coalesced,
            closure_max: shared.closure_max,
            ..self.counts
        };
        let mut counts = counts.list();
        counts.retain(|(name, _)| self.how.sd > 1 || !SPECULATIVE.contains(name));
        counts
    }
}
