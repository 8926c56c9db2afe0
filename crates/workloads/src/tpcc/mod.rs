//! `tpcc`: New-Order of TPC-C, the transaction that most papers take from it.
//!
//! A customer orders 5 to 15 items: the transaction reads the warehouse, the district, the customer
//! and each item, advances the district's next order number, inserts the order and its entry among
//! the new orders, and for each line takes the quantity out of stock and inserts an order line. One
//! line in a hundred is supplied by another warehouse, if the database has one, and one transaction
//! in a hundred asks for an item that does not exist and is rolled back.
//!
//! `schema.rs` has the rows, `new_order.rs` the transaction, and `check.rs` the consistency
//! conditions of the standard that New-Order keeps. Each core has a database of its own, or all
//! share one. The shared one has a lock for each district, which covers its rows and all rows of
//! its orders, and locks for groups of stock rows. Blocks lie alone in their lines, so a lock
//! covers whole lines.
//!
//! The differences from the standard, beside its size: only New-Order is run, and terminals have no
//! think time. By default a transaction reads all items before it writes, so that one that is
//! rolled back has nothing to undo, and ends without a store; `item_reads=in_turn` has the
//! standard's order (2.4.2.2), in which all but the last line have been stored when the transaction
//! is aborted. New-Order scans nothing, so it never follows the links between a B+-tree's leaves.
//!
//! Public suites of persistent-memory benchmarks take less from the standard: `rows=lean` stores no
//! order lines and reads neither customers nor texts, and with `index=array` a row is found without
//! an index. There an order then stores 6 words and 3 for each line.

mod check;
mod new_order;
mod schema;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use model::image::Image;
use model::locks::lock_line;
use model::units::CoreId;
use model::workload::{About, Declared, LockId, Pm, Program, Reopens, Site, Step, Workload};

use crate::choices::Sharing;
use crate::heap::Alignment;
use crate::index::{Index, Kind};
use crate::keyed::{Plan, Seen, Stamps, Supply};
use crate::walk::Walk;
use new_order::{Inputs, Order, Terminal};
use schema::{Database, LINES_MAX, LINES_MIN, Loader, Scale, StockColumns, StockCounts};

/// The machine's items for each item of a warehouse, by default: a database has between four and
/// five times as many rows as items, so that it has about as many rows as the machine has items.
const ROWS_OF_AN_ITEM: u64 = 5;
/// The fewest items of a warehouse by default (ours: a machine for crash tests has 24 items, which
/// would leave next to none).
const ITEMS_MIN: u64 = 10;
/// The standard's 3,000 customers and 3,000 first orders of a district for its 100,000 items.
const PER_HUNDRED_ITEMS: u64 = 3;

model::params! {
    /// Parameters of `tpcc`. The full size of the standard is `stock=100000`; what depends on it
    /// then has the standard's size, too.
    pub struct TpccParams {
        /// Warehouses, over all cores; 0 means one for each core. A core's own database has at
        /// least one.
        warehouses = 0 in 0..=1024;
        /// Whether each core has a database of its own and takes no lock, or all use one behind
        /// locks on districts and on groups of stock rows. Only a database of several warehouses
        /// has lines supplied by another.
        shared: Sharing = Private;
        /// Items, each of them in stock at every warehouse (TPC-C: 100,000); 0 means that the rows
        /// of all tables are about as many as the machine's items (with 8 cores of machine silo
        /// 10,000, which makes 80 MB: ten times its last-level cache, and populated in a fifth of a
        /// second).
        stock = 0 in 0..=1 << 24;
        /// Districts of a warehouse (TPC-C: 10).
        districts = 10 in 1..=10;
        /// Customers of a district; 0 means 3 for 100 items, as TPC-C has.
        customers = 0 in 0..=1 << 20;
        /// Orders of a district at the start, of which the last 30 % are undelivered; 0 means 3 for
        /// 100 items, as TPC-C has.
        orders = 0 in 0..=1 << 20;
        /// Lines in a hundred that another warehouse supplies, if there is one (TPC-C: 1).
        remote = 1 in 0..=100;
        /// Lines of each order; 0 means that it has 5 to 15, as in TPC-C.
        lines = 0 in 0..=15;
        /// Transactions in a hundred that ask for an item that does not exist (TPC-C: 1).
        rollback = 1 in 0..=100;
        /// When items are read: all ahead of the first store, or each in turn with its line, as the
        /// standard says; then who asks for an item that does not exist aborts.
        item_reads: ItemReads = Ahead;
        /// What a transaction reads and stores: all that the standard says, or no order lines, and
        /// neither customers nor texts (lean: with `index=array` and `rollback=0` it stores what
        /// the TPC-C of Janus-19's suite stores).
        rows: Rows = All;
        /// Whether a row of stock has what an order changes in one line (together), or the counts
        /// of what was sold behind the texts for order lines, in another (apart: TPC-C lists its
        /// columns so, and Janus-19's suite stores them so).
        stock_counts: StockCounts = Together;
        /// The index of every table but warehouses and districts, which are few and lie at known
        /// places. An array has none: a row is found by its number, and a new order takes the place
        /// of the one that is as many orders older as there were at the start.
        index: Index = Hash;
        /// The most children of a node of a B-tree or a B+-tree, and the most items of a leaf of
        /// the latter; an odd number stands for the even one below it (PMDK's btree_map: 8; for a
        /// B+-tree ours: SSP's profile has 64 to 100).
        order = 8 in 4..=128;
    }
}

model::choices! {
    /// When items are read.
    pub enum ItemReads {
        /// All of them before the first store.
        Ahead = "ahead",
        /// Each with its line.
        InTurn = "in_turn",
    }

    /// What a transaction reads and stores.
    pub enum Rows {
        /// All that the standard says.
        All = "all",
        /// No order lines, and neither customers nor texts.
        Lean = "lean",
    }
}

/// The workload.
#[derive(Debug)]
pub struct Tpcc {
    params: TpccParams,
    plan: Plan,
    scale: Scale,
    supplies: Vec<Supply>,
    databases: Vec<Arc<Database>>,
}

impl Declared for Tpcc {
    const ABOUT: About = About {
        name: "tpcc",
        summary: "New-Order of TPC-C over hash, B-tree or B+-tree indexes, or arrays",
        source: "TPC-C, revision 5.11",
        file: file!(),
        shared: false,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = TpccParams;

    fn new(params: &TpccParams, site: &Site) -> Step<Tpcc> {
        let warehouses = match params.warehouses {
            0 => u64::from(site.cores),
            warehouses => warehouses,
        };
        // The items of the plan are warehouses.
        let plan = Plan::new(warehouses, params.shared, site);
        let supplies = Supply::of_site(site, Alignment::Line);
        let scale = Scale::new(params, &plan);
        let params = params.clone();
        Ok(Tpcc { params, plan, scale, supplies, databases: Vec::new() })
    }
}

impl Tpcc {
    /// The program of a core.
    fn terminal(&self, core: CoreId) -> Terminal {
        let params = &self.params;
        let Supply { heap, stamps } = self.supplies[usize::from(core.0)].clone();
        Terminal {
            database: Arc::clone(&self.databases[self.plan.structure_of(core)]),
            homes: self.homes(core),
            inputs: Inputs::new(self.plan.site.seed, self.scale, params.remote, params.rollback),
            heap,
            stamps,
            random: self.plan.random(core, Tpcc::ABOUT.name),
            is_shared: self.plan.lock.is_some(),
            reads_in_turn: params.item_reads == ItemReads::InTurn,
            order: Order::default(),
            prices: Vec::new(),
            locks: Vec::new(),
        }
    }

    /// Returns the warehouses at which the terminal of a core takes orders: all of its own
    /// database; of a shared one every `cores`th, or the one that it shares with other cores.
    fn homes(&self, core: CoreId) -> Vec<u64> {
        let (warehouses, cores) = (self.scale.warehouses, u64::from(self.plan.site.cores));
        let core = u64::from(core.0);
        if self.plan.lock.is_none() {
            (0..warehouses).collect()
        } else if warehouses < cores {
            vec![core % warehouses]
        } else {
            (core..warehouses).step_by(cores as usize).collect()
        }
    }
}

impl Scale {
    fn new(params: &TpccParams, plan: &Plan) -> Scale {
        let warehouses = plan.items * u64::from(plan.structures);
        let items = match params.stock {
            0 => (plan.site.items / warehouses / ROWS_OF_AN_ITEM).max(ITEMS_MIN),
            items => items,
        };
        let by_items = |asked| match asked {
            0 => (items * PER_HUNDRED_ITEMS / 100).max(1),
            asked => asked,
        };
        Scale {
            warehouses: plan.items,
            items,
            districts: params.districts,
            customers: by_items(params.customers),
            orders: by_items(params.orders),
            lines: match params.lines {
                0 => (LINES_MIN, LINES_MAX),
                lines => (lines, lines),
            },
        }
    }
}

impl Workload for Tpcc {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        if self.plan.lock.is_some() {
            let end = lock_line(LockId(new_order::locks(self.scale) as u32)).address;
            pm.check_volatile("workload tpcc", end, ", or lower --set workload.warehouses=...")?;
        }
        for structure in 0..usize::from(self.plan.structures) {
            let mut loader = Loader {
                scale: self.scale,
                kind: Kind::of(self.params.index, self.params.order),
                is_lean: self.params.rows == Rows::Lean,
                columns: StockColumns::of(self.params.stock_counts),
                random: self.plan.filling(structure, Tpcc::ABOUT.name),
                supplies: &mut self.supplies,
                pm,
            };
            let database = loader.load(|warehouse| self.plan.supplier(structure, warehouse))?;
            self.databases.push(Arc::new(database));
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(self.terminal(core)))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        self.supplies = self.plan.go_on(seed, Alignment::Line, &seen);
        Ok(())
    }
}

impl Tpcc {
    /// Checks every database.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let (mut seen, cores) = (Seen::default(), self.supplies.len() as u64);
        for (index, database) in self.databases.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let stamps = check::check(database, &mut walk)
                .map_err(|error| format!("database {index}: {error}"))?;
            let is_of_nobody = |&&entered: &&u64| Stamps::split(entered).0 >= cores;
            if let Some(entered) = stamps.iter().find(is_of_nobody) {
                return Err(format!("database {index}: no core entered an order at {entered:#x}"));
            }
            seen.stamps.extend(stamps);
            seen.reached.extend(walk.reached());
        }
        Ok(seen)
    }
}
