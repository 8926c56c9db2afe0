//! What a core has ended and does not know to be durable, and what it waits for.

use std::collections::VecDeque;

use model::units::{Cycle, TxId};

use super::entry::Place;

/// The transactions that a core has ended and of which it has not heard that they are durable.
#[derive(Default)]
pub struct Ended {
    transactions: VecDeque<Transaction>,
    /// Those that stored and are not durable: they take places of the core's window.
    not_durable: u64,
    /// When the core hears of others that they are durable, in order: so long they do, too. Of the
    /// last ones, as many as there are places, since no other can be the one that is awaited.
    heard: VecDeque<Cycle>,
    /// When it heard of the last of the transactions that were forgotten.
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
    /// A transaction has ended, which is durable when all before `until` are.
    pub fn push(&mut self, id: TxId, until: Place, stored: bool) {
        self.transactions.push_back(Transaction { id, until, stored });
        self.not_durable += u64::from(stored);
    }

    /// How many places of the window are taken.
    pub fn not_durable(&self) -> u64 {
        self.not_durable
    }

    /// One that stored is durable, of which the core, which has so many places, hears at a cycle.
    pub fn one_is_durable(&mut self, heard: Cycle, places: u64) {
        self.not_durable -= 1;
        if self.heard.len() as u64 == places {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
    }

    /// From when on, at or after a cycle, the core knows that one of so many places is free, which
    /// it is.
    pub fn knows_place(&mut self, at: Cycle, places: u64) -> Cycle {
        while self.heard.front().is_some_and(|&heard| heard <= at) {
            self.heard.pop_front();
        }
        let taken = self.not_durable + self.heard.len() as u64;
        let wanted = taken.checked_sub(places);
        wanted.and_then(|place| self.heard.get(place as usize)).map_or(at, |&heard| heard)
    }

    /// What must be durable for the oldest that stored; nothing, if there is none.
    pub fn oldest_stored(&self) -> Place {
        self.transactions.iter().find(|ended| ended.stored).map_or(0, |ended| ended.until)
    }

    /// From when on the core knows that the transactions that were forgotten are durable.
    pub fn told(&self) -> Cycle {
        self.told
    }

    /// What must be durable for all.
    pub fn newest(&self) -> Option<Place> {
        self.transactions.back().map(|ended| ended.until)
    }

    /// How many have stored since the transactions before `drained`.
    pub fn stored_since(&self, drained: Place) -> u64 {
        let later = self.transactions.iter().rev().take_while(|ended| ended.until > drained);
        later.filter(|ended| ended.stored).count() as u64
    }

    /// The transactions before `durable` are, and the core hears of it at a cycle: forgets those
    /// that are so with that, and returns the last of them.
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

    /// The core waits.
    pub fn wait(&mut self, wait: Wait) {
        self.wait = Some(wait);
    }

    /// Whether the core waits to begin.
    pub fn waits_to_begin(&self) -> bool {
        self.wait == Some(Wait::Begin)
    }

    /// Whether a core that waits goes on, now that the transactions before `durable` are so and
    /// that its window has a place or not.
    pub fn goes_on(&mut self, durable: Place, has_place: bool) -> bool {
        let goes_on = |wait: &mut Wait| match *wait {
            Wait::Begin => has_place,
            Wait::Durable(until) => until <= durable,
        };
        self.wait.take_if(goes_on).is_some()
    }
}
