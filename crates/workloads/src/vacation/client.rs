//! A client of `vacation`: it draws an action, takes the locks that it needs, and does it.

use model::workload::{LockId, Pm, Program, Step};

use super::database::{Database, KINDS, draw_price, row};
use crate::heap::Heap;
use crate::keyed::OPERATION_WORK;
use crate::rng::Random;

/// Locks for rows, and as many for customers. Ours: reservations of a few cores then seldom want
/// the same one.
const LOCKS: u64 = 1024;
/// Units that an update adds or takes away (STAMP).
const UNITS: u64 = 100;

/// An action of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reserve the dearest row of each kind.
    Reserve {
        /// The customer for whom it reserves.
        customer: u64,
        /// The rows among which it chooses.
        places: Vec<(usize, u64)>,
    },
    /// Delete a customer.
    DeleteCustomer {
        /// The customer to delete.
        customer: u64,
    },
    /// Change the tables.
    Update {
        /// The rows, each with the price of units to be added; without a price units are removed.
        changes: Vec<((usize, u64), Option<u64>)>,
    },
}

/// The distribution of actions.
#[derive(Clone, Debug)]
pub struct Draws {
    /// The random numbers.
    pub random: Random,
    /// The most rows of one action.
    pub queries: u64,
    /// The largest id that is drawn.
    pub range: u64,
    /// Reservations in a hundred actions.
    pub user_percent: u64,
}

impl Draws {
    /// Draws an action.
    pub fn draw(&mut self) -> Action {
        let choice = self.random.below(100);
        if choice < self.user_percent {
            let queries = 1 + self.random.below(self.queries);
            let customer = self.id();
            Action::Reserve { customer, places: (0..queries).map(|_| self.place()).collect() }
        } else if !choice.is_multiple_of(2) {
            Action::DeleteCustomer { customer: self.id() }
        } else {
            let updates = 1 + self.random.below(self.queries);
            let changes = (0..updates).map(|_| (self.place(), self.new_price())).collect();
            Action::Update { changes }
        }
    }

    fn id(&mut self) -> u64 {
        1 + self.random.below(self.range)
    }

    fn place(&mut self) -> (usize, u64) {
        (self.random.below(KINDS as u64) as usize, self.id())
    }

    fn new_price(&mut self) -> Option<u64> {
        self.random.one_in(2).then(|| draw_price(&mut self.random))
    }
}

/// The locks that protect the database from other clients.
#[derive(Clone, Copy, Debug)]
pub enum Locks {
    /// No lock, as the database is the client's own.
    None,
    /// One lock for the whole database.
    One(LockId),
    /// Locks for groups of rows and groups of customers, if no tree changes.
    Grouped,
}

impl Locks {
    /// The locks that an action needs, in order.
    fn of(self, action: &Action) -> Vec<LockId> {
        match (self, action) {
            (Locks::None, _) => Vec::new(),
            (Locks::Grouped, Action::Reserve { customer, places }) => {
                let row = |&(kind, id): &(usize, u64)| (id * KINDS as u64 + kind as u64) % LOCKS;
                let mut locks: Vec<u64> = places.iter().map(row).collect();
                locks.push(LOCKS + customer % LOCKS);
                locks.sort_unstable();
                locks.dedup();
                locks.into_iter().map(|lock| LockId(lock as u32)).collect()
            }
            (Locks::Grouped, _) => unreachable!("clients only reserve"),
            (Locks::One(lock), _) => vec![lock],
        }
    }
}

/// The program of one core.
pub struct Client {
    database: Database,
    heap: Heap,
    /// The distribution of its actions.
    pub draws: Draws,
    locks: Locks,
}

impl Client {
    /// A client of a database.
    pub fn new(database: Database, heap: Heap, draws: Draws, locks: Locks) -> Client {
        Client { database, heap, draws, locks }
    }

    /// Does an action, as one transaction behind its locks.
    pub fn serve(&mut self, pm: &mut Pm<'_>, action: &Action) -> Step {
        let locks = self.locks.of(action);
        locks.iter().for_each(|&lock| pm.lock(lock));
        pm.tx(|pm| match action {
            Action::Reserve { customer, places } => self.reserve(pm, *customer, places),
            Action::DeleteCustomer { customer } => {
                self.database.delete_customer(pm, &mut self.heap, *customer)
            }
            Action::Update { changes } => changes.iter().try_for_each(|&(place, price)| {
                if let Some(price) = price {
                    return self.database.add_units(pm, &mut self.heap, place, UNITS, price);
                }
                self.database.remove_units(pm, &mut self.heap, place, UNITS);
                Ok(())
            }),
        })?;
        locks.iter().rev().for_each(|&lock| pm.unlock(lock));
        Ok(())
    }

    fn reserve(&mut self, pm: &mut Pm<'_>, customer: u64, places: &[(usize, u64)]) -> Step {
        let mut dearest: [Option<(u64, u64)>; KINDS] = [None; KINDS];
        for &place in places {
            // STAMP asks for the free units and then for the price, with a search each; a row
            // without free units is found by the second question as well.
            if let Some(row) = self.database.find(pm, place) {
                pm.load(row.plus(row::FREE));
            }
            let Some(row) = self.database.find(pm, place) else { continue };
            let price = pm.load(row.plus(row::PRICE));
            let best = &mut dearest[place.0];
            if best.is_none_or(|(_, other)| price > other) {
                *best = Some((place.1, price));
            }
        }
        if dearest.iter().any(Option::is_some) {
            self.database.add_customer(pm, &mut self.heap, customer)?;
        }
        for (kind, best) in dearest.into_iter().enumerate() {
            if let Some((id, _)) = best {
                self.database.reserve(pm, &mut self.heap, customer, (kind, id))?;
            }
        }
        Ok(())
    }
}

impl Program for Client {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let action = self.draws.draw();
        pm.work(OPERATION_WORK);
        self.serve(pm, &action)
    }
}
