//! The New-Order transaction (TPC-C 2.4), and the random inputs that a terminal draws for it.

use std::sync::Arc;

use model::units::WORD_BYTES;
use model::workload::{LockId, Pm, Program, Ptr, Step, Stop};

use super::schema::{
    CUSTOMER_READ, DATA_WORDS, DISTRICT_TAX, Database, ITEM_WORDS, LineRow, NEXT_ORDER, OrderRow,
    QUANTITY, QUANTITY_ASKED_MAX, QUANTITY_MIN, REFILL, STOCK_DATA, Scale, WAREHOUSE_TAX, line_key,
};
use crate::heap::Heap;
use crate::keyed::{OPERATION_WORK, Stamps};
use crate::rng::{Random, mix};

/// Instructions for each order line beside loads, stores and searches: the stock rule, the amount,
/// and looking for a word in two texts of 50 bytes, 16 bytes at a time. Ours.
const LINE_WORK: u64 = 40;
/// The standard's A plus 1, and the count to which it belongs, for customers and for items (2.1.6).
pub const CUSTOMERS_SHARE: (u64, u64) = (1_024, 3_000);
pub const ITEMS_SHARE: (u64, u64) = (8_192, 100_000);
/// Locks of a warehouse's stock (ours: the lines of two orders that meet are seldom in one group).
const STOCK_LOCKS: u64 = 64;

/// Returns the number of locks of a shared database: for each district, and for each warehouse's
/// stock.
pub fn locks(scale: Scale) -> u64 {
    scale.warehouses * (scale.districts + STOCK_LOCKS)
}

/// The random inputs of orders at a database.
#[derive(Clone, Debug)]
pub struct Inputs {
    scale: Scale,
    customers: NonUniform,
    items: NonUniform,
    remote_percent: u64,
    rollback_percent: u64,
}

impl Inputs {
    /// Makes the inputs for a database of this size. The constants of the non-uniform draws follow
    /// from the seed.
    pub fn new(seed: u64, scale: Scale, remote_percent: u64, rollback_percent: u64) -> Inputs {
        Inputs {
            scale,
            customers: NonUniform::new(scale.customers, CUSTOMERS_SHARE, mix(seed)),
            items: NonUniform::new(scale.items, ITEMS_SHARE, mix(seed.wrapping_add(1))),
            remote_percent,
            rollback_percent,
        }
    }

    /// Draws an order at one of the warehouses `homes`.
    pub fn draw(&self, homes: &[u64], random: &mut Random, order: &mut Order) {
        let percent = |random: &mut Random, percent| random.below(100) < percent;
        order.warehouse = homes[random.below(homes.len() as u64) as usize];
        order.district = random.below(self.scale.districts);
        order.customer = self.customers.draw(random);
        order.lines.clear();
        for _ in 0..self.scale.draw_lines(random) {
            let item = self.items.draw(random);
            let mut supply = order.warehouse;
            if self.scale.warehouses > 1 && percent(random, self.remote_percent) {
                supply =
                    (supply + 1 + random.below(self.scale.warehouses - 1)) % self.scale.warehouses;
            }
            order.lines.push(Line { item, supply, quantity: 1 + random.below(QUANTITY_ASKED_MAX) });
        }
        if percent(random, self.rollback_percent) {
            order.lines.last_mut().expect("an order has lines").item = self.scale.items + 1;
        }
    }
}

/// NURand of the standard (2.1.6), over numbers from 1 on.
#[derive(Clone, Copy, Debug)]
pub struct NonUniform {
    count: u64,
    /// The standard's A.
    pub most: u64,
    constant: u64,
}

impl NonUniform {
    /// Makes the distribution over `count` numbers. The standard's A is 1 less than a power of two;
    /// for another `count` A is the largest such number whose share of the count is at most the
    /// standard's `share`.
    pub fn new(count: u64, share: (u64, u64), random: u64) -> NonUniform {
        let most = (1 << (count * share.0 / share.1).max(1).ilog2()) - 1;
        NonUniform { count, most, constant: random % (most + 1) }
    }

    /// Draws a number.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let both = random.below(self.most + 1) | (1 + random.below(self.count));
        (both + self.constant) % self.count + 1
    }
}

/// An order of a customer. Warehouses and districts are counted from 0, the rest from 1.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// The warehouse at which it is taken.
    pub warehouse: u64,
    /// The district of that warehouse.
    pub district: u64,
    /// The customer.
    pub customer: u64,
    /// The lines of the order.
    pub lines: Vec<Line>,
}

/// A line of an order.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The item; the number after the last item, which does not exist, in an order that is to be
    /// rolled back.
    pub item: u64,
    /// The warehouse that supplies it.
    pub supply: u64,
    /// The quantity.
    pub quantity: u64,
}

/// The program of one core.
pub struct Terminal {
    /// Its database.
    pub database: Arc<Database>,
    /// The warehouses at which it takes orders.
    pub homes: Vec<u64>,
    /// The random inputs of its orders.
    pub inputs: Inputs,
    /// The allocator of its rows.
    pub heap: Heap,
    /// The stamps that distinguish its orders.
    pub stamps: Stamps,
    /// Its random numbers.
    pub random: Random,
    /// Whether it takes locks.
    pub is_shared: bool,
    /// Whether it reads each item with its line, and not all ahead of the first store.
    pub reads_in_turn: bool,
    /// The present order.
    pub order: Order,
    /// The prices of its items.
    pub prices: Vec<u64>,
    /// The locks of the present transaction, ascending.
    pub locks: Vec<u32>,
}

impl Program for Terminal {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        self.inputs.draw(&self.homes, &mut self.random, &mut self.order);
        let entered = self.stamps.issue();
        pm.work(OPERATION_WORK);
        self.take_locks(pm);
        if self.reads_in_turn {
            self.run_or_abort(pm, entered)?;
        } else {
            // A transaction that is rolled back has stored nothing here.
            pm.tx(|pm| self.run(pm, entered))?;
        }
        for &lock in self.locks.iter().rev() {
            pm.unlock(LockId(lock));
        }
        Ok(())
    }
}

impl Terminal {
    /// Takes the lock of the district, and those of the stock rows.
    fn take_locks(&mut self, pm: &mut Pm<'_>) {
        if !self.is_shared {
            return;
        }
        let (scale, order) = (self.database.scale, &self.order);
        let stock = |line: &Line| {
            let table = &self.database.warehouses[line.supply as usize].stock;
            let first = scale.warehouses * scale.districts + line.supply * STOCK_LOCKS;
            (first + table.group_of(line.item) % STOCK_LOCKS) as u32
        };
        self.locks.clear();
        self.locks.push((order.warehouse * scale.districts + order.district) as u32);
        self.locks.extend(order.lines.iter().map(stock));
        self.locks.sort_unstable();
        self.locks.dedup();
        for &lock in &self.locks {
            pm.lock(LockId(lock));
        }
    }

    /// Runs the transaction, and aborts it if it asks for an item that does not exist. The blocks
    /// that it had taken from the heap are then free again.
    fn run_or_abort(&mut self, pm: &mut Pm<'_>, entered: u64) -> Step {
        let asks_for_nothing = self.order.lines.iter().any(|line| !self.database.sells(line.item));
        let heap = asks_for_nothing.then(|| self.heap.clone());
        pm.begin_abortable()?;
        match self.run(pm, entered)? {
            Ended::Entered => pm.commit(),
            Ended::RolledBack => {
                pm.abort();
                self.heap = heap.expect("only who asks for nothing is rolled back");
            }
        }
        Ok(())
    }

    /// Runs the transaction. Its first store is that of the next order number: with that store
    /// alone, or with any part of the later ones, the database is inconsistent.
    fn run(&mut self, pm: &mut Pm<'_>, entered: u64) -> Step<Ended> {
        let (database, order) = (&self.database, &self.order);
        let warehouse = &database.warehouses[order.warehouse as usize];
        let district = &warehouse.districts[order.district as usize];
        let place = Ptr::to(district.row);
        pm.load(Ptr::to(warehouse.row + WAREHOUSE_TAX));
        pm.load(place.plus(DISTRICT_TAX));
        let number = pm.load(place.plus(NEXT_ORDER));
        if !database.is_lean {
            let customer = found(district.customers.find(pm, order.customer), "customer")?;
            load(pm, customer, CUSTOMER_READ);
        }
        self.prices.clear();
        if !self.reads_in_turn {
            for line in &order.lines {
                let Some(price) = price(pm, database, line) else { return Ok(Ended::RolledBack) };
                self.prices.push(price);
            }
        }
        pm.store(place.plus(NEXT_ORDER), number + 1);
        let row = district.orders.insert(pm, &mut self.heap, number)?;
        let entry = OrderRow {
            customer: order.customer,
            lines: order.lines.len() as u64,
            is_local: order.lines.iter().all(|line| line.supply == order.warehouse),
            carrier: 0,
            entered,
        };
        entry.store(pm, row);
        let new_order = district.new_orders.insert(pm, &mut self.heap, number)?;
        pm.store_ptr(new_order, row);
        for (line, count) in order.lines.iter().zip(1..) {
            let known = self.prices.get(count as usize - 1).copied();
            let Some(price) = known.or_else(|| price(pm, database, line)) else {
                return Ok(Ended::RolledBack);
            };
            pm.work(LINE_WORK);
            let printed = take_from_stock(pm, database, order, line)?;
            let Some(lines) = &district.lines else { continue };
            let row = lines.insert(pm, &mut self.heap, line_key(number, count))?;
            let entry = LineRow {
                item: line.item,
                supply: line.supply + 1,
                quantity: line.quantity,
                amount: line.quantity * price,
                delivered: 0,
            };
            entry.store(pm, row, printed);
        }
        Ok(Ended::Entered)
    }
}

/// How a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The order is entered.
    Entered,
    /// It asks for an item that does not exist.
    RolledBack,
}

/// Reads the item of a line, if it exists, and returns its price.
fn price(pm: &mut Pm<'_>, database: &Database, line: &Line) -> Option<u64> {
    let Some(item) = database.items.find(pm, line.item) else {
        assert!(!database.sells(line.item), "item {} is gone", line.item);
        return None;
    };
    let price = pm.load(item);
    if !database.is_lean {
        load(pm, item.plus(WORD_BYTES), ITEM_WORDS - 1);
    }
    Some(price)
}

/// Takes the quantity of a line from stock and returns the information to be printed on the line.
fn take_from_stock(
    pm: &mut Pm<'_>,
    database: &Database,
    order: &Order,
    line: &Line,
) -> Step<[u64; 3]> {
    let (columns, stock) = (database.columns, &database.warehouses[line.supply as usize].stock);
    let row = found(stock.find(pm, line.item), "stock")?;
    let quantity = pm.load(row.plus(QUANTITY));
    let mut printed = [0; 3];
    if !database.is_lean {
        let place = row.plus(columns.information(order.district));
        printed = [0, 1, 2].map(|word| pm.load(place.plus(word * WORD_BYTES)));
        load(pm, row.plus(STOCK_DATA), DATA_WORDS);
    }
    pm.store(row.plus(QUANTITY), left(quantity, line.quantity));
    add(pm, row.plus(columns.year_to_date), line.quantity);
    add(pm, row.plus(columns.orders), 1);
    if line.supply != order.warehouse {
        add(pm, row.plus(columns.remote_orders), 1);
    }
    Ok(printed)
}

/// Returns the quantity that is left in stock (2.4.2.2).
fn left(quantity: u64, taken: u64) -> u64 {
    if quantity >= taken + QUANTITY_MIN { quantity - taken } else { quantity + REFILL - taken }
}

fn add(pm: &mut Pm<'_>, at: Ptr, amount: u64) {
    let old = pm.load(at);
    pm.store(at, old + amount);
}

/// Loads so many words.
fn load(pm: &mut Pm<'_>, at: Ptr, words: u64) {
    for word in 0..words {
        pm.load(at.plus(word * WORD_BYTES));
    }
}

fn found(row: Option<Ptr>, what: &str) -> Step<Ptr> {
    row.ok_or_else(|| Stop::Failed(format!("a row of {what} is gone")))
}
