//! The tables of `vacation`, and the clients' operations on them.
//!
//! ```text
//! each table is a red-black tree of nodes of 48 bytes: an id, and the address of its row
//! row of cars, flights or rooms, 40 bytes    list, 32 bytes
//!   0  id: 1 to the number of rows             0  unused (STAMP's list begins with a node)
//!   8  units used                              8  first node, or 0
//!  16  units free                             16  unused (the address of a comparison)
//!  24  units in total                         24  number of nodes
//!  32  price                                list node, 16 bytes
//! row of customers, 16 bytes                   0  address of a reservation
//!   0  id                                      8  next node, or 0
//!   8  address of its list                  reservation, 24 bytes
//!                                              0  table   8  id of the row  16  price
//! ```
//!
//! A list is sorted by table and id, and holds each row at most once.

use model::units::LINE_BYTES;
use model::workload::{Pm, Ptr, Step, Stop};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, Values};
use crate::rbtree::Tree;
use crate::rng::Random;

/// The tables: cars, flights, rooms, and customers.
pub const TABLES: u64 = 4;
/// The number of tables whose rows can be reserved.
pub const KINDS: usize = 3;
/// Their names.
pub const NAMES: [&str; KINDS] = ["car", "flight", "room"];
/// The table of flights, from which only whole rows are removed.
const FLIGHTS: usize = 1;

/// Bytes of a tree's value: the address of a row.
const ADDRESS_BYTES: u64 = 8;
/// Bytes that each tuple takes at least, with its node.
pub const LEAST_BYTES: u64 = LINE_BYTES;

/// Words of a row of cars, flights or rooms.
pub mod row {
    pub const ID: u64 = 0;
    pub const USED: u64 = 8;
    pub const FREE: u64 = 16;
    pub const TOTAL: u64 = 24;
    pub const PRICE: u64 = 32;
    pub const BYTES: u64 = 40;
}

/// Words of a customer.
pub mod customer {
    pub const ID: u64 = 0;
    pub const LIST: u64 = 8;
    pub const BYTES: u64 = 16;
}

/// Words of a list and of its nodes. A list begins like a node, so that its first node has a
/// predecessor, too.
pub mod list {
    pub const DATA: u64 = 0;
    pub const NEXT: u64 = 8;
    pub const SIZE: u64 = 24;
    pub const BYTES: u64 = 32;
    pub const NODE_BYTES: u64 = 16;
}

/// Words of a reservation.
pub mod reservation {
    pub const KIND: u64 = 0;
    pub const ID: u64 = 8;
    pub const PRICE: u64 = 16;
    pub const BYTES: u64 = 24;
}

/// The units that a row begins with: 100 to 500 (STAMP).
pub fn first_units(random: &mut Random) -> u64 {
    100 * (1 + random.below(5))
}

/// A price: 50 to 90 (STAMP).
pub fn draw_price(random: &mut Random) -> u64 {
    50 + 10 * random.below(5)
}

/// A database. A compiled program has the addresses of its trees in registers.
#[derive(Clone, Debug)]
pub struct Database {
    /// Cars, flights and rooms.
    pub rows: [Tree; KINDS],
    /// Customers.
    pub customers: Tree,
}

impl Database {
    /// Makes an empty database.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Database> {
        let mut tree = || Tree::new(Values::distinct(ADDRESS_BYTES), pm, heap);
        Ok(Database { rows: [tree()?, tree()?, tree()?], customers: tree()? })
    }

    /// Fills each table with the ids from 1 to `rows`, in random order; `supplier` returns the heap
    /// from which the blocks of a row come.
    ///
    /// # Errors
    /// When a heap is full.
    pub fn fill(
        &self,
        pm: &mut Pm<'_>,
        heaps: &mut [Heap],
        supplier: impl Fn(u64) -> usize,
        rows: u64,
        random: &mut Random,
    ) -> Step {
        let mut ids: Vec<u64> = (1..=rows).collect();
        for kind in 0..KINDS {
            random.shuffle(&mut ids);
            for &id in &ids {
                let (units, price) = (first_units(random), draw_price(random));
                let heap = &mut heaps[supplier(id)];
                self.add_units(pm, heap, (kind, id), units, price)?;
            }
        }
        random.shuffle(&mut ids);
        ids.iter().try_for_each(|&id| self.add_customer(pm, &mut heaps[supplier(id)], id))
    }

    /// The row of an id, whose address is loaded from the tree.
    pub fn find(&self, pm: &mut Pm<'_>, (kind, id): (usize, u64)) -> Option<Ptr> {
        self.rows[kind].find(pm, id).map(|value| pm.load_ptr(value))
    }

    /// Adds units to a row and gives it a price; makes the row if it is not there.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn add_units(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        place: (usize, u64),
        units: u64,
        price: u64,
    ) -> Step {
        if let Some(found) = self.find(pm, place) {
            add(pm, found.plus(row::FREE), units);
            add(pm, found.plus(row::TOTAL), units);
            pm.store(found.plus(row::PRICE), price);
            return Ok(());
        }
        let new = heap.alloc(row::BYTES)?;
        pm.store(new.plus(row::ID), place.1);
        pm.store(new.plus(row::USED), 0);
        pm.store(new.plus(row::FREE), units);
        pm.store(new.plus(row::TOTAL), units);
        pm.store(new.plus(row::PRICE), price);
        self.rows[place.0].insert(pm, heap, place.1, new)
    }

    /// Removes `units` free units of a row, if it has as many, and the row itself with its last
    /// units; of a flight all units, if none is used.
    pub fn remove_units(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        place: (usize, u64),
        mut units: u64,
    ) {
        let Some(found) = self.find(pm, place) else { return };
        if place.0 == FLIGHTS {
            if pm.load(found.plus(row::USED)) > 0 {
                return;
            }
            units = pm.load(found.plus(row::TOTAL));
        }
        let free = pm.load(found.plus(row::FREE));
        if free < units {
            return;
        }
        let total = pm.load(found.plus(row::TOTAL)) - units;
        pm.store(found.plus(row::FREE), free - units);
        pm.store(found.plus(row::TOTAL), total);
        if total == 0 {
            self.rows[place.0].delete(pm, heap, place.1);
            heap.free(found, row::BYTES);
        }
    }

    /// Adds a customer who is not there yet.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn add_customer(&self, pm: &mut Pm<'_>, heap: &mut Heap, id: u64) -> Step {
        if self.customers.find(pm, id).is_some() {
            return Ok(());
        }
        let new = heap.alloc(customer::BYTES)?;
        let list = heap.alloc(list::BYTES)?;
        pm.store_ptr(list.plus(list::NEXT), Ptr::NULL);
        pm.store(list.plus(list::SIZE), 0);
        pm.store(new.plus(customer::ID), id);
        pm.store_ptr(new.plus(customer::LIST), list);
        self.customers.insert(pm, heap, id, new)
    }

    /// Reserves a unit of a row for a customer, if one is free and the customer has none yet.
    ///
    /// STAMP takes the unit and gives it back if the customer already has one; here the list is
    /// searched first, which has the same result.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn reserve(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        customer: u64,
        place: (usize, u64),
    ) -> Step {
        let Some(list) = self.list_of(pm, customer) else { return Ok(()) };
        let Some(found) = self.find(pm, place) else { return Ok(()) };
        let free = pm.load(found.plus(row::FREE));
        if free == 0 {
            return Ok(());
        }
        let Some((before, after)) = gap(pm, list, place) else { return Ok(()) };
        add(pm, found.plus(row::USED), 1);
        pm.store(found.plus(row::FREE), free - 1);
        let price = pm.load(found.plus(row::PRICE));
        let reserved = heap.alloc(reservation::BYTES)?;
        pm.store(reserved.plus(reservation::KIND), place.0 as u64);
        pm.store(reserved.plus(reservation::ID), place.1);
        pm.store(reserved.plus(reservation::PRICE), price);
        let node = heap.alloc(list::NODE_BYTES)?;
        pm.store_ptr(node.plus(list::DATA), reserved);
        pm.store_ptr(node.plus(list::NEXT), after);
        pm.store_ptr(before.plus(list::NEXT), node);
        add(pm, list.plus(list::SIZE), 1);
        Ok(())
    }

    /// Adds up the bill of a customer, gives back the reserved units, and deletes the customer.
    ///
    /// # Errors
    /// [`Stop::Failed`] when a reserved row is not there.
    pub fn delete_customer(&self, pm: &mut Pm<'_>, heap: &mut Heap, id: u64) -> Step {
        let Some(value) = self.customers.find(pm, id) else { return Ok(()) };
        let gone = pm.load_ptr(value);
        let list = pm.load_ptr(gone.plus(customer::LIST));
        let mut node = pm.load_ptr(list.plus(list::NEXT));
        while !node.is_null() {
            let reserved = pm.load_ptr(node.plus(list::DATA));
            pm.load(reserved.plus(reservation::PRICE));
            pm.work(COMPARE_WORK);
            node = pm.load_ptr(node.plus(list::NEXT));
        }
        node = pm.load_ptr(list.plus(list::NEXT));
        while !node.is_null() {
            let reserved = pm.load_ptr(node.plus(list::DATA));
            let place = place_of(pm, reserved);
            let Some(found) = self.find(pm, place) else {
                let (kind, id) = (NAMES[place.0], place.1);
                return Err(Stop::Failed(format!("{kind} {id} is reserved and not there")));
            };
            let used = pm.load(found.plus(row::USED));
            pm.store(found.plus(row::USED), used - 1);
            add(pm, found.plus(row::FREE), 1);
            let next = pm.load_ptr(node.plus(list::NEXT));
            heap.free(reserved, reservation::BYTES);
            heap.free(node, list::NODE_BYTES);
            node = next;
        }
        self.customers.delete(pm, heap, id);
        heap.free(list, list::BYTES);
        heap.free(gone, customer::BYTES);
        Ok(())
    }

    fn list_of(&self, pm: &mut Pm<'_>, id: u64) -> Option<Ptr> {
        let found = self.customers.find(pm, id)?;
        let found = pm.load_ptr(found);
        Some(pm.load_ptr(found.plus(customer::LIST)))
    }
}

fn add(pm: &mut Pm<'_>, at: Ptr, more: u64) {
    let value = pm.load(at);
    pm.store(at, value + more);
}

/// The table and the row of a reservation.
fn place_of(pm: &mut Pm<'_>, reserved: Ptr) -> (usize, u64) {
    let kind = pm.load(reserved.plus(reservation::KIND)) as usize;
    (kind, pm.load(reserved.plus(reservation::ID)))
}

/// Returns the nodes of a list between which a reservation belongs: the last one before it, which
/// may be the list itself, and the next one, which may be null. `None` if the reservation is there.
fn gap(pm: &mut Pm<'_>, list: Ptr, place: (usize, u64)) -> Option<(Ptr, Ptr)> {
    let mut before = list;
    loop {
        let node = pm.load_ptr(before.plus(list::NEXT));
        if node.is_null() {
            return Some((before, node));
        }
        pm.work(COMPARE_WORK);
        let reserved = pm.load_ptr(node.plus(list::DATA));
        let here = place_of(pm, reserved);
        if here >= place {
            return (here > place).then_some((before, node));
        }
        before = node;
    }
}
