//! The rows of `tpcc`, and how a database is loaded.
//!
//! ```text
//! table (key)                       columns, each in whole words                        bytes
//! warehouse (place)                 0 tax                                                 128
//! district (place)                  0 next order   8 tax                                  128
//! customer (number)                 0 discount   8 credit   16 last name                  648
//! item (number)                     0 price   8 name   32 data                             88
//! stock (item)                      0 quantity   8 year to date   16 orders
//!                                   24 remote orders   32 information for each of 10
//!                                   districts, 24 bytes each   272 data                   328
//!     or, with its counts apart     0 quantity   8 information   248 year to date
//!                                   256 orders   264 remote orders   272 data             328
//! order (number)                    0 customer, lines, all local, carrier   8 entry date   16
//! new order (number)                0 address of the order's row                            8
//! order line (16 x order + number)  0 item, supplying warehouse, quantity
//!                                   8 amount   16 delivery date   24 information           48
//! ```
//!
//! A row is as wide as the standard's less its key, which is in the index, and columns are whole
//! words. Columns that New-Order neither reads nor writes take room and stay 0. Customers, orders,
//! new orders and order lines have tables for each district, stock for each warehouse. Texts,
//! prices and taxes follow from the key, so that a check knows them. Money is in cents, shares are
//! in hundredths of a percent. Numbers of rows begin at 1, as in the standard.

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{Pm, Ptr, Step};

use crate::index::{Kind, Table};
use crate::keyed::Supply;
use crate::rng::{Random, mix};

/// Bytes of a warehouse and of a district (89 and 95 in the standard), each alone in its lines.
pub const PLACE_BYTES: u64 = 2 * LINE_BYTES;
pub const NEXT_ORDER: u64 = 0;
pub const WAREHOUSE_TAX: u64 = 0;
pub const DISTRICT_TAX: u64 = 8;

const CUSTOMER_BYTES: u64 = 648;
pub const CUSTOMER_READ: u64 = 4;

const ITEM_BYTES: u64 = 88;
/// Words of an item's price, name and data: all of it.
pub const ITEM_WORDS: u64 = 11;

const STOCK_BYTES: u64 = 328;
pub const QUANTITY: u64 = 0;
/// Words of the information that is printed on an order line, for one of ten districts.
pub const INFORMATION_WORDS: u64 = 3;
const INFORMATION_DISTRICTS: u64 = 10;
pub const STOCK_DATA: u64 = 272;
/// Words of 50 characters of data.
pub const DATA_WORDS: u64 = 7;

const ORDER_BYTES: u64 = 16;
const NEW_ORDER_BYTES: u64 = 8;
const LINE_ROW_BYTES: u64 = 48;

/// Lines of an order (TPC-C 2.4.1.3).
pub const LINES_MIN: u64 = 5;
pub const LINES_MAX: u64 = 15;
/// Stock at the start, from 10 to 100 (4.3.3.1); New-Order keeps it there.
pub const QUANTITY_MIN: u64 = 10;
pub const QUANTITY_MAX: u64 = 100;
/// The quantity that is added to a stock when an order would leave fewer than [`QUANTITY_MIN`]
/// (2.4.2.2).
pub const REFILL: u64 = 91;
/// The largest quantity of a line (2.4.1.5).
pub const QUANTITY_ASKED_MAX: u64 = 10;
/// Carriers, one of whom delivered each of the first orders (4.3.3.1).
pub const CARRIERS: u64 = 10;
/// The quantity of each line of the first orders (4.3.3.1).
const FIRST_QUANTITY: u64 = 5;
/// The delivery date of the orders that were delivered before the start.
const DELIVERED: u64 = 1;

/// The size of a database.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u64,
    /// Items, and rows of stock of a warehouse.
    pub items: u64,
    /// Districts of a warehouse.
    pub districts: u64,
    /// Customers of a district.
    pub customers: u64,
    /// Orders of a district at the start.
    pub orders: u64,
    /// Lines of an order, at least and at most.
    pub lines: (u64, u64),
}

impl Scale {
    /// The first order of a district that is not delivered: 2,101 of 3,000 in the standard.
    pub fn first_undelivered(self) -> u64 {
        self.orders - self.orders * 3 / 10 + 1
    }

    /// Draws how many lines an order has.
    pub fn draw_lines(self, random: &mut Random) -> u64 {
        let (least, most) = self.lines;
        least + random.below(most - least + 1)
    }
}

model::choices! {
    /// Where a stock row has the counts of what was sold.
    pub enum StockCounts {
        /// In the line of all that an order changes.
        Together = "together",
        /// Behind the texts for order lines.
        Apart = "apart",
    }
}

/// The offsets of the columns of a stock row whose places depend on a parameter.
#[derive(Clone, Copy, Debug)]
pub struct StockColumns {
    /// The quantity that was sold.
    pub year_to_date: u64,
    /// The number of order lines.
    pub orders: u64,
    /// The number of order lines of other warehouses.
    pub remote_orders: u64,
    /// The information that is printed on order lines, for each district.
    information: u64,
}

impl StockColumns {
    const TOGETHER: StockColumns =
        StockColumns { year_to_date: 8, orders: 16, remote_orders: 24, information: 32 };
    const APART: StockColumns =
        StockColumns { year_to_date: 248, orders: 256, remote_orders: 264, information: 8 };

    /// Returns the columns of a row with its counts there.
    pub fn of(counts: StockCounts) -> StockColumns {
        match counts {
            StockCounts::Together => StockColumns::TOGETHER,
            StockCounts::Apart => StockColumns::APART,
        }
    }

    /// Returns the offset of the information that is printed on order lines of a district.
    pub fn information(self, district: u64) -> u64 {
        self.information + district * INFORMATION_WORDS * WORD_BYTES
    }

    /// Returns the words of the row that have texts, each with its number among the texts' words.
    pub fn texts(self) -> impl Iterator<Item = (u64, u64)> {
        let first = self.information / WORD_BYTES;
        let information = INFORMATION_DISTRICTS * INFORMATION_WORDS;
        let data = STOCK_DATA / WORD_BYTES;
        let information = (0..information).map(move |word| (first + word, FIRST_TEXT + word));
        information.chain((data..data + DATA_WORDS).map(|word| (word, word)))
    }
}

/// The number of the first word of a stock row's texts, wherever it lies.
const FIRST_TEXT: u64 = StockColumns::TOGETHER.information / WORD_BYTES;

/// A database. A compiled program has the addresses of its tables in registers or in its own
/// memory.
#[derive(Debug)]
pub struct Database {
    /// Its size at the start.
    pub scale: Scale,
    /// Whether orders have no lines, and New-Order reads neither customers nor texts.
    pub is_lean: bool,
    /// The columns of its stock.
    pub columns: StockColumns,
    /// The items.
    pub items: Table,
    /// The warehouses.
    pub warehouses: Vec<Warehouse>,
}

impl Database {
    /// Whether there is an item with a number.
    pub fn sells(&self, item: u64) -> bool {
        item <= self.scale.items
    }
}

/// A warehouse.
#[derive(Debug)]
pub struct Warehouse {
    /// The address of its row.
    pub row: u64,
    /// Its stock.
    pub stock: Table,
    /// Its districts.
    pub districts: Vec<District>,
}

/// A district.
#[derive(Debug)]
pub struct District {
    /// The address of its row.
    pub row: u64,
    /// Its customers.
    pub customers: Table,
    /// Its orders.
    pub orders: Table,
    /// The orders that are not delivered.
    pub new_orders: Table,
    /// The lines of its orders, if they are stored.
    pub lines: Option<Table>,
}

/// The key of an order line.
pub fn line_key(order: u64, number: u64) -> u64 {
    order << 4 | number
}

/// A row of an order.
#[derive(Clone, Copy, Debug)]
pub struct OrderRow {
    /// The number of its customer.
    pub customer: u64,
    /// How many lines it has.
    pub lines: u64,
    /// Whether its warehouse supplies all of them.
    pub is_local: bool,
    /// The carrier that delivered it; 0 if it is not delivered.
    pub carrier: u64,
    /// The date when it was entered; 0 is never.
    pub entered: u64,
}

impl OrderRow {
    /// Stores the row.
    pub fn store(&self, pm: &mut Pm<'_>, row: Ptr) {
        let flags = self.lines | u64::from(self.is_local) << 8 | self.carrier << 16;
        pm.store(row, self.customer | flags << 32);
        pm.store(row.plus(8), self.entered);
    }

    /// Returns the row that two words hold.
    pub fn of(words: [u64; 2]) -> OrderRow {
        let flags = words[0] >> 32;
        OrderRow {
            customer: words[0] & 0xffff_ffff,
            lines: flags & 0xff,
            is_local: flags >> 8 & 0xff == 1,
            carrier: flags >> 16,
            entered: words[1],
        }
    }
}

/// The columns of an order line's row that are not copied from stock.
#[derive(Clone, Copy, Debug)]
pub struct LineRow {
    /// The number of the item.
    pub item: u64,
    /// The number of the warehouse that supplies it.
    pub supply: u64,
    /// The quantity.
    pub quantity: u64,
    /// The price of the whole line.
    pub amount: u64,
    /// The date when it was delivered; 0 is never.
    pub delivered: u64,
}

impl LineRow {
    /// The offset of the columns that are copied from stock.
    pub const PRINTED: u64 = 24;

    /// Stores the row, and the information from stock to be printed on it.
    pub fn store(&self, pm: &mut Pm<'_>, row: Ptr, information: [u64; 3]) {
        pm.store(row, self.item | self.supply << 32 | self.quantity << 48);
        pm.store(row.plus(8), self.amount);
        pm.store(row.plus(16), self.delivered);
        for (place, word) in (LineRow::PRINTED..).step_by(8).zip(information) {
            pm.store(row.plus(place), word);
        }
    }

    /// Returns the row that three words hold.
    pub fn of(words: [u64; 3]) -> LineRow {
        LineRow {
            item: words[0] & 0xffff_ffff,
            supply: words[0] >> 32 & 0xffff,
            quantity: words[0] >> 48,
            amount: words[1],
            delivered: words[2],
        }
    }
}

/// The columns that never change: each word follows from its table, its key and its place.
pub mod constant {
    use super::{CUSTOMER_READ, QUANTITY_MAX, QUANTITY_MIN, mix};

    fn of(table: u64, key: u64, word: u64) -> u64 {
        mix(mix(table << 56 | key) ^ word)
    }

    /// Eight letters from A to P.
    fn text(table: u64, key: u64, word: u64) -> u64 {
        (of(table, key, word) & 0x0f0f_0f0f_0f0f_0f0f) + 0x4141_4141_4141_4141
    }

    /// A tax, up to 20 %, of a warehouse or of a district.
    pub fn tax(warehouse: u64, district: Option<u64>) -> u64 {
        of(1, warehouse << 8 | district.map_or(0, |district| district + 1), 0) % 2_001
    }

    /// A word that New-Order reads of a customer: discount, up to 50 %; credit, bad of one in ten;
    /// and two words of the last name.
    pub fn customer(key: u64, word: u64) -> u64 {
        assert!(word < CUSTOMER_READ);
        match word {
            0 => of(2, key, word) % 5_001,
            1 if of(2, key, word).is_multiple_of(10) => u64::from_le_bytes(*b"BC      "),
            1 => u64::from_le_bytes(*b"GC      "),
            _ => text(2, key, word),
        }
    }

    /// A word of an item: its price, from 1.00 to 100.00, then texts.
    pub fn item(item: u64, word: u64) -> u64 {
        if word == 0 { 100 + of(3, item, word) % 9_901 } else { text(3, item, word) }
    }

    /// The quantity that was in stock at the start.
    pub fn quantity(warehouse: u64, item: u64) -> u64 {
        QUANTITY_MIN + of(4, warehouse << 32 | item, 0) % (QUANTITY_MAX - QUANTITY_MIN + 1)
    }

    /// A word of a stock row's texts.
    pub fn stock(warehouse: u64, item: u64, word: u64) -> u64 {
        text(4, warehouse << 32 | item, word)
    }

    /// The key of a customer among all of a database.
    pub fn customer_key(warehouse: u64, district: u64, customer: u64) -> u64 {
        warehouse << 32 | district << 24 | customer
    }
}

/// Returns the information from stock that is printed on the lines of a district's orders.
pub fn information_of(warehouse: u64, item: u64, district: u64) -> [u64; 3] {
    let first = FIRST_TEXT + district * INFORMATION_WORDS;
    [0, 1, 2].map(|word| constant::stock(warehouse, item, first + word))
}

/// Fills one database.
pub struct Loader<'a, 'b> {
    /// The size of the database.
    pub scale: Scale,
    /// The kind of its indexes.
    pub kind: Kind,
    /// Whether it is to be without order lines.
    pub is_lean: bool,
    /// The columns of its stock.
    pub columns: StockColumns,
    /// The random numbers from which the first orders are drawn.
    pub random: Random,
    /// The blocks and the stamps of each core.
    pub supplies: &'a mut [Supply],
    /// Plain memory.
    pub pm: &'a mut Pm<'b>,
}

impl Loader<'_, '_> {
    /// Loads a database; `supplier` returns the core from whose part of the heap a warehouse's
    /// blocks come. Rows are loaded in the order of their keys, as a loader does.
    pub fn load(&mut self, supplier: impl Fn(u64) -> usize) -> Step<Database> {
        let items = self.table(supplier(0), self.scale.items, ITEM_BYTES)?;
        for item in 1..=self.scale.items {
            let row = items.insert(self.pm, &mut self.supplies[supplier(0)].heap, item)?;
            for word in 0..ITEM_WORDS {
                self.pm.store(row.plus(word * WORD_BYTES), constant::item(item, word));
            }
        }
        let warehouses = (0..self.scale.warehouses)
            .map(|warehouse| self.load_warehouse(warehouse, supplier(warehouse)))
            .collect::<Step<_>>()?;
        let (scale, is_lean, columns) = (self.scale, self.is_lean, self.columns);
        Ok(Database { scale, is_lean, columns, items, warehouses })
    }

    fn table(&mut self, core: usize, rows: u64, bytes: u64) -> Step<Table> {
        Table::new(self.kind, rows, bytes, self.pm, &mut self.supplies[core].heap)
    }

    fn load_warehouse(&mut self, warehouse: u64, core: usize) -> Step<Warehouse> {
        let row = self.supplies[core].heap.alloc(PLACE_BYTES)?;
        self.pm.store(row.plus(WAREHOUSE_TAX), constant::tax(warehouse, None));
        let stock = self.table(core, self.scale.items, STOCK_BYTES)?;
        for item in 1..=self.scale.items {
            let row = stock.insert(self.pm, &mut self.supplies[core].heap, item)?;
            self.pm.store(row.plus(QUANTITY), constant::quantity(warehouse, item));
            for (word, text) in self.columns.texts() {
                let text = constant::stock(warehouse, item, text);
                self.pm.store(row.plus(word * WORD_BYTES), text);
            }
        }
        let districts = (0..self.scale.districts)
            .map(|district| self.load_district(warehouse, district, core))
            .collect::<Step<_>>()?;
        Ok(Warehouse { row: row.address, stock, districts })
    }

    fn load_district(&mut self, warehouse: u64, district: u64, core: usize) -> Step<District> {
        let scale = self.scale;
        let undelivered = scale.orders + 1 - scale.first_undelivered();
        let row = self.supplies[core].heap.alloc(PLACE_BYTES)?;
        self.pm.store(row.plus(NEXT_ORDER), scale.orders + 1);
        self.pm.store(row.plus(DISTRICT_TAX), constant::tax(warehouse, Some(district)));
        let lines = match self.kind {
            Kind::Array => line_key(scale.orders, 0),
            Kind::Hash | Kind::BTree { .. } | Kind::BPlusTree { .. } => {
                scale.orders * (scale.lines.0 + scale.lines.1) / 2
            }
        };
        let made = District {
            row: row.address,
            customers: self.table(core, scale.customers, CUSTOMER_BYTES)?,
            orders: self.table(core, scale.orders, ORDER_BYTES)?,
            new_orders: self.table(core, undelivered, NEW_ORDER_BYTES)?,
            lines: match self.is_lean {
                true => None,
                false => Some(self.table(core, lines, LINE_ROW_BYTES)?),
            },
        };
        for customer in 1..=scale.customers {
            let row = made.customers.insert(self.pm, &mut self.supplies[core].heap, customer)?;
            let key = constant::customer_key(warehouse, district, customer);
            for word in 0..CUSTOMER_READ {
                self.pm.store(row.plus(word * WORD_BYTES), constant::customer(key, word));
            }
        }
        for order in 1..=scale.orders {
            self.load_order(&made, (warehouse, district, order), core)?;
        }
        Ok(made)
    }

    fn load_order(
        &mut self,
        district: &District,
        (warehouse, number, order): (u64, u64, u64),
        core: usize,
    ) -> Step {
        let Supply { heap, stamps } = &mut self.supplies[core];
        let is_new = order >= self.scale.first_undelivered();
        let row = district.orders.insert(self.pm, heap, order)?;
        let first = OrderRow {
            customer: 1 + self.random.below(self.scale.customers),
            lines: self.scale.draw_lines(&mut self.random),
            is_local: true,
            carrier: if is_new { 0 } else { 1 + self.random.below(CARRIERS) },
            entered: stamps.issue(),
        };
        first.store(self.pm, row);
        if is_new {
            let entry = district.new_orders.insert(self.pm, heap, order)?;
            self.pm.store_ptr(entry, row);
        }
        let Some(lines) = &district.lines else { return Ok(()) };
        for line in 1..=first.lines {
            let item = 1 + self.random.below(self.scale.items);
            let row = lines.insert(self.pm, heap, line_key(order, line))?;
            let made = LineRow {
                item,
                supply: warehouse + 1,
                quantity: FIRST_QUANTITY,
                amount: FIRST_QUANTITY * constant::item(item, 0),
                delivered: if is_new { 0 } else { DELIVERED },
            };
            made.store(self.pm, row, information_of(warehouse, item, number));
        }
        Ok(())
    }
}
