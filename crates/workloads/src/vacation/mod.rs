//! `vacation`: STAMP's travel reservations, as WHISPER and SSP-19 run them.
//!
//! A database has cars, flights, rooms and customers. A client reserves: of some rows that it draws
//! it takes the dearest car, flight and room, and writes each that has a unit left on the list of a
//! customer. `database.rs` has the rows and the operations on them, `client.rs` the transactions,
//! and `check.rs` the invariants between rows and lists.
//!
//! In WHISPER's tree a client overwrites the action that it drew, so that it only reserves; STAMP's
//! mix of reservations, deletions of customers and updates of rows is `actions=mixed`. Blocks lie
//! alone in their lines. When clients only reserve, no tree changes, and a shared database has
//! locks for groups of rows and of customers; in the mix trees do change, and it has one lock.

mod check;
mod client;
mod database;
#[cfg(test)]
mod tests;

use model::image::Image;
use model::units::CoreId;
use model::workload::{About, Declared, Pm, Program, Reopens, Site, Step, Workload};

use crate::choices::Sharing;
use crate::heap::{Alignment, Heap};
use crate::keyed::{Plan, Seen};
use crate::walk::Walk;
use client::{Client, Draws, Locks};
use database::{Database, LEAST_BYTES, TABLES};

model::params! {
    /// Parameters of `vacation`; the defaults are WHISPER's `-n1 -q80 -u99` but for the size.
    pub struct VacationParams {
        /// Tuples of all four tables at the start, over all cores, a quarter in each table; 0 means
        /// as many as the machine says (SSP-19: 16,000,000, which WHISPER's `-r4000000` makes).
        items = 0 in 0..=1_000_000_000;
        /// Whether all cores are clients of one database, as in STAMP, or each has a database of
        /// its own and takes no lock.
        shared: Sharing = Shared;
        /// The most rows that a reservation looks at, or that an update changes (WHISPER: `-n1`).
        queries = 1 in 1..=64;
        /// The share of each table that is asked for, in percent (WHISPER: `-q80`).
        query_range = 80 in 1..=100;
        /// Whether every action is a reservation, as in WHISPER's tree, or STAMP's mix.
        actions: Actions = Reserve;
        /// Reservations in a hundred mixed actions; half of the others delete a customer and half
        /// change the tables (WHISPER: `-u99`, which leaves one, a deletion).
        user_percent = 99 in 0..=100;
    }
}

model::choices! {
    /// What clients do.
    pub enum Actions {
        /// Reservations.
        Reserve = "reserve",
        /// STAMP's mix.
        Mixed = "mixed",
    }
}

/// The workload.
#[derive(Debug)]
pub struct Vacation {
    params: VacationParams,
    plan: Plan,
    /// Rows of each table at the start.
    rows: u64,
    heaps: Vec<Heap>,
    databases: Vec<Database>,
}

impl Declared for Vacation {
    const ABOUT: About = About {
        name: "vacation",
        summary: "travel reservations (STAMP): reserve a car, a flight or a room for a customer",
        source: "STAMP, IISWC 2008; WHISPER-17; SSP-19",
        file: file!(),
        shared: true,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = VacationParams;

    fn new(params: &VacationParams, site: &Site) -> Step<Vacation> {
        let plan = Plan::new(params.items, params.shared, site);
        let rows = (plan.items / TABLES).max(1);
        let heaps = Heap::of_site(site, Alignment::Line);
        Ok(Vacation { params: params.clone(), plan, rows, heaps, databases: Vec::new() })
    }
}

impl Vacation {
    /// The program of a core.
    fn client(&self, core: CoreId) -> Client {
        let is_mixed = self.params.actions == Actions::Mixed;
        let locks = match (self.plan.lock, is_mixed) {
            (None, _) => Locks::None,
            (Some(lock), true) => Locks::One(lock),
            (Some(_), false) => Locks::Grouped,
        };
        // Rounded as in STAMP.
        let range = ((self.rows * self.params.query_range + 50) / 100).max(1);
        let draws = Draws {
            random: self.plan.random(core, Vacation::ABOUT.name),
            queries: self.params.queries,
            range,
            user_percent: if is_mixed { self.params.user_percent } else { 100 },
        };
        let database = self.databases[self.plan.structure_of(core)].clone();
        Client::new(database, self.heaps[usize::from(core.0)].clone(), draws, locks)
    }
}

impl Workload for Vacation {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for index in 0..usize::from(self.plan.structures) {
            self.plan.must_fit(index, LEAST_BYTES)?;
            let database = Database::new(pm, &mut self.heaps[index])?;
            let mut random = self.plan.filling(index, Vacation::ABOUT.name);
            let supplier = |row| self.plan.supplier(index, row);
            database.fill(pm, &mut self.heaps, supplier, self.rows, &mut random)?;
            self.databases.push(database);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(self.client(core)))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        let supplies = self.plan.go_on(seed, Alignment::Line, &seen);
        self.heaps = supplies.into_iter().map(|supply| supply.heap).collect();
        Ok(())
    }
}

impl Vacation {
    /// Checks every database.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        let expect =
            check::Expected { rows: self.rows, is_mixed: self.params.actions == Actions::Mixed };
        for (index, database) in self.databases.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            check::check(database, &mut walk, expect)
                .map_err(|error| format!("database {index}: {error}"))?;
            seen.reached.extend(walk.reached());
        }
        Ok(seen)
    }
}
