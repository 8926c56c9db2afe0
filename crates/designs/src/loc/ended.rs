//! The transactions that a core has ended and does not know to be durable, and what it waits for.

use std::collections::VecDeque;

use model::units::{Cycle, TxId};

use super::entry::Place;

/// The transactions that a core has ended and does not know to be durable.
#[derive(Default)]
pub struct Ended {
    transactions: VecDeque<Transaction>,
    /// How many have stored and are not durable: they take places of the core's window.
    not_durable: u64,
    /// When the core hears that other transactions are durable, in order: until then they take
    /// places, too. Only the last ones are kept, as many as there are places, since no other can be
    /// the one that is awaited.
    heard: VecDeque<Cycle>,
    /// When the core heard of the last transaction that was forgotten.
    told: Cycle,
    wait: Option<Wait>,
}

/// A transaction is durable when all transactions before `until` are.
struct Transaction {
    id: TxId,
    until: Place,
    stored: bool,
}

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A place in the window.
    Begin,
    /// That all transactions before a place are durable.
    Durable(Place),
}

impl Ended {
    /// Adds a transaction that has ended, and that is durable when all before `until` are.
    pub fn push(&mut self, id: TxId, until: Place, stored: bool) {
        self.transactions.push_back(Transaction { id, until, stored });
        self.not_durable += u64::from(stored);
    }

    /// How many places of the window are taken.
    pub fn not_durable(&self) -> u64 {
        self.not_durable
    }

    /// Notes that a transaction that stored is durable. The core, which has `places` places, hears
    /// of it at `heard`.
    pub fn one_is_durable(&mut self, heard: Cycle, places: u64) {
        self.not_durable -= 1;
        if self.heard.len() as u64 == places {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
    }

    /// The first time, at or after `at`, at which the core knows that one of its `places` places is
    /// free, which one is.
    pub fn knows_place(&mut self, at: Cycle, places: u64) -> Cycle {
        while self.heard.front().is_some_and(|&heard| heard <= at) {
            self.heard.pop_front();
        }
        let taken = self.not_durable + self.heard.len() as u64;
        let wanted = taken.checked_sub(places);
        wanted.and_then(|place| self.heard.get(place as usize)).map_or(at, |&heard| heard)
    }

    /// The place before which all must be durable for the oldest that stored; 0 if there is none.
    pub fn oldest_stored(&self) -> Place {
        self.transactions.iter().find(|ended| ended.stored).map_or(0, |ended| ended.until)
    }

    /// When the core has heard that the transactions that were forgotten are durable.
    pub fn told(&self) -> Cycle {
        self.told
    }

    /// The place before which all must be durable for the core's newest transaction, if any.
    pub fn newest(&self) -> Option<Place> {
        self.transactions.back().map(|ended| ended.until)
    }

    /// How many transactions have stored that are not among those before `drained`.
    pub fn stored_since(&self, drained: Place) -> u64 {
        let later = self.transactions.iter().rev().take_while(|ended| ended.until > drained);
        later.filter(|ended| ended.stored).count() as u64
    }

    /// Forgets the transactions that are durable now that all before `durable` are, of which the
    /// core hears at `at`. Returns the last of them.
    pub fn forget_durable(&mut self, durable: Place, at: Cycle) -> Option<TxId> {
        let mut last = None;
        while let Some(ended) = self.transactions.front()
            && ended.until <= durable
        {
            (last, self.told) = (Some(ended.id), at);
            self.transactions.pop_front();
        }
        last
    }

    /// Notes what the core waits for.
    pub fn wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// Whether the core waits to begin.
    pub fn waits_to_begin(&self) -> bool {
        self.wait == Some(Wait::Begin)
    }

    /// Whether a core that waits goes on, now that the transactions before `durable` are durable
    /// and that its window has a place or not.
    pub fn goes_on(&mut self, durable: Place, has_place: bool) -> bool {
        let goes_on = |wait: &mut Wait| match *wait {
            Wait::Begin => has_place,
            Wait::Durable(until) => until <= durable,
        };
        self.wait.take_if(goes_on).is_some()
    }
}
