//! The invariants of `vacation`: units used and free add up to the total, and a row's used units
//! are its reservations on the lists of all customers.

use std::collections::BTreeMap;

use super::database::{Database, NAMES, customer, list, reservation, row};
use crate::walk::Walk;

/// The expectations of a check, beside the database.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// Rows of each table at the start.
    pub rows: u64,
    /// Whether rows and customers come and go.
    pub is_mixed: bool,
}

/// Checks a database.
pub fn check(database: &Database, walk: &mut Walk<'_>, expect: Expected) -> Result<(), String> {
    let mut reserved = check_customers(database, walk, expect)?;
    for (kind, tree) in database.rows.iter().enumerate() {
        let mut rows = 0;
        tree.check_nodes(walk, |walk, value, id| {
            rows += 1;
            let count = reserved.remove(&(kind as u64, id)).unwrap_or(0);
            check_row(walk, walk.word(value), id, count)
        })
        .and_then(|()| check_count(expect, rows))
        .map_err(|error| format!("{}s: {error}", NAMES[kind]))?;
    }
    match reserved.first_key_value() {
        Some(((kind, id), _)) => {
            let name = NAMES[*kind as usize];
            Err(format!("{name} {id} is reserved and not there"))
        }
        None => Ok(()),
    }
}

fn check_row(walk: &mut Walk<'_>, at: u64, id: u64, reserved: u64) -> Result<(), String> {
    walk.visit(at, row::BYTES, "a row")?;
    let [found, used, free, total, price] =
        [row::ID, row::USED, row::FREE, row::TOTAL, row::PRICE].map(|field| walk.word(at + field));
    if found != id {
        return Err(format!("the row of {id} says that it is of {found}"));
    }
    if used.checked_add(free) != Some(total) || total == 0 || !total.is_multiple_of(100) {
        return Err(format!("of {id} {used} units are used and {free} free, which is not {total}"));
    }
    if used != reserved {
        return Err(format!("of {id} {used} units are used and {reserved} are on lists"));
    }
    check_price(price).map_err(|error| format!("{id}: {error}"))
}

fn check_price(price: u64) -> Result<(), String> {
    if (50..=90).contains(&price) && price.is_multiple_of(10) {
        return Ok(());
    }
    Err(format!("a price is {price}, which is not 50, 60, 70, 80 or 90"))
}

fn check_count(expect: Expected, found: u64) -> Result<(), String> {
    let is_right = if expect.is_mixed { found <= expect.rows } else { found == expect.rows };
    if is_right {
        return Ok(());
    }
    Err(format!("{found} are there of {}", expect.rows))
}

/// Checks the customers and their lists, and counts the reservations of each row.
fn check_customers(
    database: &Database,
    walk: &mut Walk<'_>,
    expect: Expected,
) -> Result<BTreeMap<(u64, u64), u64>, String> {
    let (mut reserved, mut customers) = (BTreeMap::new(), 0);
    database
        .customers
        .check_nodes(walk, |walk, value, id| {
            customers += 1;
            let at = walk.word(value);
            walk.visit(at, customer::BYTES, "a customer")?;
            let found = walk.word(at + customer::ID);
            if found != id {
                return Err(format!("the row of {id} says that it is of {found}"));
            }
            check_list(walk, walk.word(at + customer::LIST), &mut reserved)
                .map_err(|error| format!("{id}: {error}"))
        })
        .and_then(|()| check_count(expect, customers))
        .map_err(|error| format!("customers: {error}"))?;
    Ok(reserved)
}

fn check_list(
    walk: &mut Walk<'_>,
    at: u64,
    reserved: &mut BTreeMap<(u64, u64), u64>,
) -> Result<(), String> {
    walk.visit(at, list::BYTES, "a list")?;
    let (mut last, mut size) = (None, 0);
    let mut node = walk.word(at + list::NEXT);
    while node != 0 {
        walk.visit(node, list::NODE_BYTES, "a node of a list")?;
        let data = walk.word(node + list::DATA);
        walk.visit(data, reservation::BYTES, "a reservation")?;
        let (kind, id) = (walk.word(data + reservation::KIND), walk.word(data + reservation::ID));
        if kind >= NAMES.len() as u64 {
            return Err(format!("a reservation is of table {kind}"));
        }
        if last.is_some_and(|last| last >= (kind, id)) {
            return Err(format!(
                "the reservation of {} {id} is out of order",
                NAMES[kind as usize]
            ));
        }
        check_price(walk.word(data + reservation::PRICE))?;
        *reserved.entry((kind, id)).or_insert(0) += 1;
        last = Some((kind, id));
        size += 1;
        node = walk.word(node + list::NEXT);
    }
    let said = walk.word(at + list::SIZE);
    if said != size {
        return Err(format!("its list has {size} reservations and says {said}"));
    }
    Ok(())
}
