//! The consistency conditions of TPC-C (3.3.2) that New-Order alone keeps or could break, and what
//! else follows from the columns.
//!
//! 2, 3: orders of a district are numbered without a gap up to its next order number, and so are
//! its new orders, from the first undelivered one on. 4, 6: an order has as many lines as it says,
//! numbered from 1 on. 5, 7: an order has no carrier, and its lines no date of delivery, just if it
//! is among the new orders. Beyond these: the counts of a stock row are the sums over the order
//! lines that it supplied since the start, its quantity follows from them, and every column that
//! follows from its key is what it should be. Conditions 1 and 8 to 12 are about payments.

use std::ops::Range;

use model::units::WORD_BYTES;

use super::schema::{
    CARRIERS, CUSTOMER_READ, DISTRICT_TAX, Database, District, INFORMATION_WORDS, ITEM_WORDS,
    LineRow, NEXT_ORDER, ORDERS, OrderRow, PLACE_BYTES, QUANTITY, QUANTITY_ASKED_MAX, QUANTITY_MAX,
    QUANTITY_MIN, REFILL, REMOTE_ORDERS, Scale, WAREHOUSE_TAX, YEAR_TO_DATE, constant,
    information_of, stock_texts,
};
use crate::index::Table;
use crate::walk::Walk;

/// Checks a database, and returns the stamps of its orders.
pub fn check(database: &Database, walk: &mut Walk<'_>) -> Result<Vec<u64>, String> {
    let (scale, mut stamps) = (database.scale, Vec::new());
    check_numbered(walk, &database.items, "item", scale.items, |walk, row, item| {
        must_hold(walk, row, 0..ITEM_WORDS, |word| constant::item(item, word))
    })?;
    let mut sold = vec![Sold::default(); (scale.warehouses * scale.items) as usize];
    for (warehouse, made) in (0..).zip(&database.warehouses) {
        let told = |error| format!("warehouse {}: {error}", warehouse + 1);
        walk.visit(made.row, PLACE_BYTES, "a warehouse").map_err(told)?;
        must_be(walk.word(made.row + WAREHOUSE_TAX), constant::tax(warehouse, None), "its tax")
            .map_err(told)?;
        for (district, made) in (0..).zip(&made.districts) {
            let place = Place { scale, warehouse, district };
            let orders = place.check(walk, made, &mut sold).map_err(|error| {
                format!("district {} of warehouse {}: {error}", district + 1, warehouse + 1)
            })?;
            stamps.extend(orders.iter().map(|found| found.order.entered));
        }
    }
    for (warehouse, made) in (0..).zip(&database.warehouses) {
        check_numbered(walk, &made.stock, "stock of item", scale.items, |walk, row, item| {
            sold[sold_index(scale, warehouse, item)].check(walk, row, warehouse, item)
        })
        .map_err(|error| format!("warehouse {}: {error}", warehouse + 1))?;
    }
    Ok(stamps)
}

/// What order lines say was taken from a stock row.
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
    fn check(&self, walk: &Walk<'_>, row: u64, warehouse: u64, item: u64) -> Result<(), String> {
        for (column, expect, what) in [
            (YEAR_TO_DATE, self.quantity, "its quantity sold"),
            (ORDERS, self.orders, "its count of orders"),
            (REMOTE_ORDERS, self.remote, "its count of remote orders"),
        ] {
            must_be(walk.word(row + column), expect, what)?;
        }
        // Each order took its quantity, and each refill gave as much: the rest of a division says
        // what is there.
        let quantity = walk.word(row + QUANTITY);
        let first = constant::quantity(warehouse, item);
        let fits = (QUANTITY_MIN..=QUANTITY_MAX).contains(&quantity)
            && (quantity + self.quantity) % REFILL == first % REFILL;
        if !fits {
            let sold = self.quantity;
            return Err(format!("{quantity} are left of {first} after {sold} were sold"));
        }
        must_hold(walk, row, stock_texts(), |word| constant::stock(warehouse, item, word))
    }
}

/// A district that is checked.
#[derive(Clone, Copy)]
struct Place {
    scale: Scale,
    warehouse: u64,
    district: u64,
}

/// An order that was found, its row's address, and what its lines say.
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
        sold: &mut [Sold],
    ) -> Result<Vec<Found>, String> {
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
        let mut orders = self.check_orders(walk, &made.orders)?;
        if orders.len() as u64 + 1 != next {
            let last = orders.len();
            return Err(format!("the next order is {next} and the last one is {last}"));
        }
        self.check_new_orders(walk, &made.new_orders, &orders)?;
        made.lines.check(walk, |walk, row, key| {
            self.check_line(walk, row, key, &mut orders, sold)
                .map_err(|error| format!("line {} of order {}: {error}", key & 15, key >> 4))
        })?;
        for (order, found) in (1..).zip(&orders) {
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

    /// Checks each order and that their numbers have no gap, and returns them.
    fn check_orders(self, walk: &mut Walk<'_>, table: &Table) -> Result<Vec<Found>, String> {
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
        must_count(found.iter().map(|&(number, _)| number), 1, "order")?;
        Ok(found.into_iter().map(|(_, found)| found).collect())
    }

    /// Whether an order is undelivered: New-Order delivers none.
    fn is_new(self, order: u64) -> bool {
        order >= self.scale.first_undelivered()
    }

    fn check_new_orders(
        self,
        walk: &mut Walk<'_>,
        table: &Table,
        orders: &[Found],
    ) -> Result<(), String> {
        let mut numbers = Vec::new();
        table.check(walk, |walk, row, number| {
            let order = number.checked_sub(1).and_then(|index| orders.get(index as usize));
            if order.is_none_or(|order| order.row != walk.word(row)) {
                return Err(format!("new order {number} is not the order of that number"));
            }
            numbers.push(number);
            Ok(())
        })?;
        numbers.sort_unstable();
        let (first, found) = (self.scale.first_undelivered(), numbers.len() as u64);
        must_count(numbers.into_iter(), first, "new order")?;
        let last = orders.len() as u64;
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
        orders: &mut [Found],
        sold: &mut [Sold],
    ) -> Result<(), String> {
        let line = LineRow::of([0, 1, 2].map(|word| walk.word(row + word * WORD_BYTES)));
        let (order, number) = (key >> 4, key & 15);
        let found = order.checked_sub(1).and_then(|index| orders.get_mut(index as usize));
        let found = found.ok_or("there is no such order")?;
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
    inspect: impl Fn(&Walk<'_>, u64, u64) -> Result<(), String>,
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

fn must_be(found: u64, expect: u64, what: &str) -> Result<(), String> {
    if found == expect { Ok(()) } else { Err(format!("{what} is {found} instead of {expect}")) }
}

/// The words of a row must be what follows from its key.
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
