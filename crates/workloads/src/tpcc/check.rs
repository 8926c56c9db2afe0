//! The consistency conditions of TPC-C (3.3.2) that New-Order alone keeps or could break, and
//! further ones that follow from the columns.
//!
//! 2, 3: orders of a district are numbered without a gap up to its next order number, and so are
//! its new orders, from the first undelivered one on. 4, 6: an order has as many lines as it says,
//! numbered from 1 on. 5, 7: an order has no carrier, and its lines no date of delivery, if and
//! only if it is among the new orders. Beyond these: the orders of one core in a district are in
//! the order in which it entered them, the counts of a stock row are the sums over the order lines
//! that it supplied since the start, its quantity follows from them, and every column that follows
//! from its key has that value. Conditions 1 and 8 to 12 are about payments.
//!
//! Less can be checked in a database without order lines, or in which newer orders have replaced
//! orders since the start: each stock row must be consistent in itself, and all of them together
//! give the number of lines of the orders.

use std::collections::BTreeMap;
use std::ops::Range;

use model::units::WORD_BYTES;

use super::schema::{
    CARRIERS, CUSTOMER_READ, DISTRICT_TAX, Database, District, INFORMATION_WORDS, ITEM_WORDS,
    LineRow, NEXT_ORDER, OrderRow, PLACE_BYTES, QUANTITY, QUANTITY_ASKED_MAX, QUANTITY_MAX,
    QUANTITY_MIN, REFILL, Scale, StockColumns, WAREHOUSE_TAX, constant, information_of,
};
use crate::index::Table;
use crate::keyed::Stamps;
use crate::walk::Walk;

/// Checks a database, and returns the stamps of its orders.
pub fn check(database: &Database, walk: &mut Walk<'_>) -> Result<Vec<u64>, String> {
    let (scale, mut stamps) = (database.scale, Vec::new());
    check_numbered(walk, &database.items, "item", scale.items, |walk, row, item| {
        must_hold(walk, row, 0..ITEM_WORDS, |word| constant::item(item, word))
    })?;
    let mut books = Books {
        sold: vec![Sold::default(); (scale.warehouses * scale.items) as usize],
        lines: 0,
        is_complete: true,
        has_lines: !database.is_lean,
    };
    for (warehouse, made) in (0..).zip(&database.warehouses) {
        let told = |error| format!("warehouse {}: {error}", warehouse + 1);
        walk.visit(made.row, PLACE_BYTES, "a warehouse").map_err(told)?;
        must_be(walk.word(made.row + WAREHOUSE_TAX), constant::tax(warehouse, None), "its tax")
            .map_err(told)?;
        for (district, made) in (0..).zip(&made.districts) {
            let place = Place { scale, warehouse, district };
            let orders = place.check(walk, made, &mut books).map_err(|error| {
                format!("district {} of warehouse {}: {error}", district + 1, warehouse + 1)
            })?;
            stamps.extend(orders.found.iter().map(|found| found.order.entered));
        }
    }
    let mut ordered: u64 = 0;
    for (warehouse, made) in (0..).zip(&database.warehouses) {
        check_numbered(walk, &made.stock, "stock of item", scale.items, |walk, row, item| {
            let counts = Sold::of(walk, row, database.columns);
            books.sold[sold_index(scale, warehouse, item)].check(counts, books.is_exact())?;
            ordered = ordered.saturating_add(counts.orders);
            check_quantity(walk.word(row + QUANTITY), counts.quantity, warehouse, item)?;
            for (word, text) in database.columns.texts() {
                must_hold(walk, row, word..word + 1, |_| constant::stock(warehouse, item, text))?;
            }
            Ok(())
        })
        .map_err(|error| format!("warehouse {}: {error}", warehouse + 1))?;
    }
    if ordered < books.lines || books.is_complete && ordered > books.lines {
        let lines = books.lines;
        return Err(format!("the orders have {lines} lines, and stock was taken {ordered} times"));
    }
    Ok(stamps)
}

/// The orders of a database since the start.
struct Books {
    /// The sums over their lines, for each stock row.
    sold: Vec<Sold>,
    /// The number of their lines.
    lines: u64,
    /// Whether all of these orders are there.
    is_complete: bool,
    /// Whether their lines are stored.
    has_lines: bool,
}

impl Books {
    /// Whether the lines determine the counts of a stock row.
    fn is_exact(&self) -> bool {
        self.is_complete && self.has_lines
    }
}

/// The sales from a stock row.
#[derive(Clone, Copy, Debug, Default)]
struct Sold {
    quantity: u64,
    orders: u64,
    remote: u64,
}

fn sold_index(scale: Scale, warehouse: u64, item: u64) -> usize {
    (warehouse * scale.items + item - 1) as usize
}

impl Sold {
    /// Reads the counts of a stock row.
    fn of(walk: &Walk<'_>, row: u64, columns: StockColumns) -> Sold {
        let [quantity, orders, remote] =
            [columns.year_to_date, columns.orders, columns.remote_orders]
                .map(|column| walk.word(row + column));
        Sold { quantity, orders, remote }
    }

    /// Checks the counts of a stock row against the sums over order lines, which are exact, or else
    /// lower bounds.
    fn check(&self, counts: Sold, is_exact: bool) -> Result<(), String> {
        let Sold { quantity: sold, orders, remote } = counts;
        if is_exact {
            must_be(sold, self.quantity, "its quantity sold")?;
            must_be(orders, self.orders, "its count of orders")?;
            return must_be(remote, self.remote, "its count of remote orders");
        }
        let fits = (orders..=orders.saturating_mul(QUANTITY_ASKED_MAX)).contains(&sold)
            && (self.remote..=orders).contains(&remote)
            && self.quantity <= sold
            && self.orders <= orders;
        if !fits {
            return Err(format!("{sold} sold in {orders} orders, {remote} of them remote"));
        }
        Ok(())
    }
}

/// Checks the quantity that is left of a stock of which so many were sold.
fn check_quantity(quantity: u64, sold: u64, warehouse: u64, item: u64) -> Result<(), String> {
    // Each order takes its quantity, and each refill gives `REFILL`, so the quantity is known
    // modulo `REFILL`.
    let first = constant::quantity(warehouse, item);
    let fits = (QUANTITY_MIN..=QUANTITY_MAX).contains(&quantity)
        && (quantity + sold % REFILL) % REFILL == first % REFILL;
    if !fits {
        return Err(format!("{quantity} are left of {first} after {sold} were sold"));
    }
    Ok(())
}

/// A district that is checked.
#[derive(Clone, Copy)]
struct Place {
    scale: Scale,
    warehouse: u64,
    district: u64,
}

/// The orders of a district.
struct Orders {
    /// The number of the first order that is there.
    first: u64,
    /// All orders that are there, by their numbers.
    found: Vec<Found>,
}

impl Orders {
    /// Returns the number of the last order.
    fn last(&self) -> u64 {
        self.first + self.found.len() as u64 - 1
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Found> {
        self.found.get_mut(number.checked_sub(self.first)? as usize)
    }
}

/// An order that was found: its row's address, its row, and a summary of its lines.
struct Found {
    row: u64,
    order: OrderRow,
    /// A bit for the number of each line.
    lines: u64,
    is_local: bool,
}

impl Place {
    /// Checks the district and returns its orders.
    fn check(
        self,
        walk: &mut Walk<'_>,
        made: &District,
        books: &mut Books,
    ) -> Result<Orders, String> {
        walk.visit(made.row, PLACE_BYTES, "a district")?;
        let tax = constant::tax(self.warehouse, Some(self.district));
        must_be(walk.word(made.row + DISTRICT_TAX), tax, "its tax")?;
        let next = walk.word(made.row + NEXT_ORDER);
        check_numbered(
            walk,
            &made.customers,
            "customer",
            self.scale.customers,
            |walk, row, key| {
                let key = constant::customer_key(self.warehouse, self.district, key);
                must_hold(walk, row, 0..CUSTOMER_READ, |word| constant::customer(key, word))
            },
        )?;
        let mut orders = self.check_orders(walk, &made.orders, next)?;
        books.is_complete &= orders.first <= self.scale.orders + 1;
        let numbered = (orders.first..).zip(&orders.found);
        let since = numbered.filter(|&(number, _)| number > self.scale.orders);
        books.lines += since.map(|(_, found)| found.order.lines).sum::<u64>();
        self.check_new_orders(walk, &made.new_orders, &mut orders)?;
        let Some(lines) = &made.lines else { return Ok(orders) };
        lines.check(walk, |walk, row, key| {
            self.check_line(walk, row, key, &mut orders, &mut books.sold)
                .map_err(|error| format!("line {} of order {}: {error}", key & 15, key >> 4))
        })?;
        for (order, found) in (orders.first..).zip(&orders.found) {
            let lines = found.order.lines;
            if found.lines != (1 << lines) - 1 {
                return Err(format!("order {order} has not just the lines 1 to {lines}"));
            }
            if found.is_local != found.order.is_local {
                return Err(format!("order {order} is wrong about who supplies its lines"));
            }
        }
        Ok(orders)
    }

    /// Checks each order and that their numbers have no gap up to the next one, and returns them.
    fn check_orders(self, walk: &mut Walk<'_>, table: &Table, next: u64) -> Result<Orders, String> {
        let mut found = Vec::new();
        let (least, most) = self.scale.lines;
        table.check(walk, |walk, row, number| {
            let order = OrderRow::of([walk.word(row), walk.word(row + WORD_BYTES)]);
            let carriers = if self.is_new(number) { 0..=0 } else { 1..=CARRIERS };
            let fits = (1..=self.scale.customers).contains(&order.customer)
                && (least..=most).contains(&order.lines)
                && carriers.contains(&order.carrier)
                && order.entered != 0;
            if !fits {
                return Err(format!("order {number} cannot be: {order:?}"));
            }
            found.push((number, Found { row, order, lines: 0, is_local: true }));
            Ok(())
        })?;
        found.sort_unstable_by_key(|&(number, _)| number);
        let last = found.last().map_or(0, |&(number, _)| number);
        if last.checked_add(1) != Some(next) {
            return Err(format!("the next order is {next} and the last one is {last}"));
        }
        // A table that has lost orders to newer ones is full.
        let first = match table.keeps() {
            Some(slots) if found.len() as u64 == slots => found[0].0,
            _ => 1,
        };
        must_count(found.iter().map(|&(number, _)| number), first, "order")?;
        must_follow(found.iter().map(|(number, found)| (*number, found.order.entered)))?;
        Ok(Orders { first, found: found.into_iter().map(|(_, found)| found).collect() })
    }

    /// Whether an order is undelivered: New-Order delivers none.
    fn is_new(self, order: u64) -> bool {
        order >= self.scale.first_undelivered()
    }

    fn check_new_orders(
        self,
        walk: &mut Walk<'_>,
        table: &Table,
        orders: &mut Orders,
    ) -> Result<(), String> {
        let mut numbers = Vec::new();
        table.check(walk, |walk, row, number| {
            if orders.get_mut(number).is_none_or(|order| order.row != walk.word(row)) {
                return Err(format!("new order {number} is not the order of that number"));
            }
            numbers.push(number);
            Ok(())
        })?;
        numbers.sort_unstable();
        let (last, found) = (orders.last(), numbers.len() as u64);
        let kept = table.keeps().map_or(1, |slots| (last + 1).saturating_sub(slots));
        let first = self.scale.first_undelivered().max(kept);
        must_count(numbers.into_iter(), first, "new order")?;
        if first + found != last + 1 {
            return Err(format!("{found} of the orders {first} to {last} are new orders"));
        }
        Ok(())
    }

    fn check_line(
        self,
        walk: &Walk<'_>,
        row: u64,
        key: u64,
        orders: &mut Orders,
        sold: &mut [Sold],
    ) -> Result<(), String> {
        let line = LineRow::of([0, 1, 2].map(|word| walk.word(row + word * WORD_BYTES)));
        let (order, number) = (key >> 4, key & 15);
        if (1..orders.first).contains(&order) {
            // A newer order of fewer lines has left it.
            return Ok(());
        }
        let found = orders.get_mut(order).ok_or("there is no such order")?;
        let fits = number > 0
            && (1..=self.scale.items).contains(&line.item)
            && (1..=self.scale.warehouses).contains(&line.supply)
            && (1..=QUANTITY_ASKED_MAX).contains(&line.quantity)
            && line.amount == line.quantity * constant::item(line.item, 0)
            && (line.delivered == 0) == self.is_new(order);
        if !fits {
            return Err(format!("it cannot be: {line:?}"));
        }
        let supply = line.supply - 1;
        let printed = information_of(supply, line.item, self.district);
        must_hold(walk, row + LineRow::PRINTED, 0..INFORMATION_WORDS, |word| {
            printed[word as usize]
        })?;
        found.lines |= 1 << (number - 1);
        let is_remote = supply != self.warehouse;
        found.is_local &= !is_remote;
        if order > self.scale.orders {
            let sold = &mut sold[sold_index(self.scale, supply, line.item)];
            sold.quantity += line.quantity;
            sold.orders += 1;
            sold.remote += u64::from(is_remote);
        }
        Ok(())
    }
}

/// Checks a table whose keys are the numbers from 1 to `count`.
fn check_numbered(
    walk: &mut Walk<'_>,
    table: &Table,
    what: &str,
    count: u64,
    mut inspect: impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
) -> Result<(), String> {
    let mut numbers = Vec::new();
    table.check(walk, |walk, row, number| {
        if !(1..=count).contains(&number) {
            return Err(format!("{what} {number} is there, and there are {count}"));
        }
        numbers.push(number);
        inspect(walk, row, number).map_err(|error| format!("{what} {number}: {error}"))
    })?;
    numbers.sort_unstable();
    let found = numbers.len() as u64;
    must_count(numbers.into_iter(), 1, what)?;
    if found != count { Err(format!("{what} {} is gone", found + 1)) } else { Ok(()) }
}

/// Numbers, ascending, must have no gap and none twice.
fn must_count(numbers: impl Iterator<Item = u64>, first: u64, what: &str) -> Result<(), String> {
    for (expect, number) in (first..).zip(numbers) {
        if number != expect {
            return Err(format!("the {what} after {} is {number}", expect - 1));
        }
    }
    Ok(())
}

/// Each order of a core, by number, must have been entered after the core's orders before it.
fn must_follow(orders: impl Iterator<Item = (u64, u64)>) -> Result<(), String> {
    let mut last = BTreeMap::new();
    for (number, entered) in orders {
        let (core, count) = Stamps::split(entered);
        if last.insert(core, count).unwrap_or(0) >= count {
            return Err(format!("core {core} did not enter order {number} after its others"));
        }
    }
    Ok(())
}

fn must_be(found: u64, expect: u64, what: &str) -> Result<(), String> {
    if found == expect { Ok(()) } else { Err(format!("{what} is {found} instead of {expect}")) }
}

/// The words of a row must be those that follow from its key.
fn must_hold(
    walk: &Walk<'_>,
    row: u64,
    words: Range<u64>,
    expect: impl Fn(u64) -> u64,
) -> Result<(), String> {
    for word in words {
        let (found, expect) = (walk.word(row + word * WORD_BYTES), expect(word));
        if found != expect {
            return Err(format!("word {word} is {found:#x} and should be {expect:#x}"));
        }
    }
    Ok(())
}
