//! New-Order against the standard in host memory, and against databases with known faults.

use std::collections::BTreeMap;

use model::contents::View;
use model::params::Params as _;
use model::units::Word;
use model::workload::Ptr;

use super::new_order::{CUSTOMERS_SHARE, ITEMS_SHARE, NonUniform};
use super::schema::{self, LineRow, OrderRow, constant};
use super::*;

const HEAP: std::ops::Range<u64> = 4096..64 << 20;

/// A filled database, or several, and its memory.
fn filled(text: &str, cores: u8) -> (Tpcc, View) {
    let mut params = TpccParams::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        params.set(name, value.parse().expect("a number"));
    }
    let site = Site { cores, seed: 5, heap: HEAP, items: 2_000, script: None, checker: None };
    let mut workload = Tpcc::new(&params, &site).expect("a workload");
    let mut view = View::new(HEAP.end, 1 << 20).expect("room");
    workload.populate(&mut Pm::plain(&mut view, CoreId(0))).expect("room");
    (workload, view)
}

/// A terminal, to be looked into.
fn terminal(workload: &Tpcc, core: u8) -> Terminal {
    workload.terminal(CoreId(core))
}

/// The rows of a database that New-Order writes, by warehouse, district and number.
#[derive(Clone, Debug, Default, PartialEq)]
struct Books {
    next: BTreeMap<(u64, u64), u64>,
    /// Customer, lines, whether all are local, and whether the order is new.
    orders: BTreeMap<(u64, u64, u64), [u64; 4]>,
    /// Item, supplying warehouse, quantity, amount.
    lines: BTreeMap<(u64, u64, u64, u64), [u64; 4]>,
    /// By warehouse and item: quantity, year to date, orders, remote orders.
    stock: BTreeMap<(u64, u64), [u64; 4]>,
}

impl Books {
    /// Reads the rows of an image.
    fn read(database: &Database, image: &Image<'_>) -> Books {
        let mut walk = Walk::new(image, &HEAP);
        let mut books = Books::default();
        let columns = database.columns;
        let places = [0, columns.year_to_date, columns.orders, columns.remote_orders];
        for (w, warehouse) in (0..).zip(&database.warehouses) {
            let read = warehouse.stock.check(&mut walk, |walk, row, item| {
                books.stock.insert((w, item), places.map(|place| walk.word(row + place)));
                Ok(())
            });
            read.expect("sound");
            for (d, district) in (0..).zip(&warehouse.districts) {
                books.next.insert((w, d), walk.word(district.row));
                let read = district.orders.check(&mut walk, |walk, row, number| {
                    let order = OrderRow::of([walk.word(row), walk.word(row + 8)]);
                    let told = [order.customer, order.lines, order.is_local.into(), 0];
                    books.orders.insert((w, d, number), told);
                    Ok(())
                });
                read.expect("sound");
                let read = district.new_orders.check(&mut walk, |_, _, number| {
                    books.orders.get_mut(&(w, d, number)).expect("an order")[3] = 1;
                    Ok(())
                });
                read.expect("sound");
                let Some(lines) = &district.lines else { continue };
                let read = lines.check(&mut walk, |walk, row, key| {
                    let line = LineRow::of([0, 8, 16].map(|place| walk.word(row + place)));
                    let told = [line.item, line.supply - 1, line.quantity, line.amount];
                    books.lines.insert((w, d, key >> 4, key & 15), told);
                    Ok(())
                });
                read.expect("sound");
            }
        }
        books
    }

    /// Removes the rows that a database of arrays no longer keeps, and order lines if they are not
    /// stored.
    fn forget(&mut self, database: &Database) {
        if database.is_lean {
            self.lines.clear();
        }
        let any = &database.warehouses[0].districts[0];
        let (Some(orders), Some(new_orders)) = (any.orders.keeps(), any.new_orders.keeps()) else {
            return;
        };
        let next = &self.next;
        let is_kept = |w, d, number: u64, slots| number + slots >= next[&(w, d)];
        self.orders.retain(|&(w, d, number), _| is_kept(w, d, number, orders));
        self.lines.retain(|&(w, d, number, _), _| is_kept(w, d, number, orders));
        for (&(w, d, number), order) in &mut self.orders {
            order[3] &= u64::from(is_kept(w, d, number, new_orders));
        }
    }

    /// Enters an order, as in TPC-C 2.4.2.
    fn enter(&mut self, order: &Order, items: u64) {
        if order.lines.iter().any(|line| line.item > items) {
            return;
        }
        let (w, d) = (order.warehouse, order.district);
        let next = self.next.get_mut(&(w, d)).expect("a district");
        let number = *next;
        *next += 1;
        let is_local = order.lines.iter().all(|line| line.supply == w);
        let lines = order.lines.len() as u64;
        self.orders.insert((w, d, number), [order.customer, lines, is_local.into(), 1]);
        for (count, line) in (1..).zip(&order.lines) {
            let stock = self.stock.get_mut(&(line.supply, line.item)).expect("a stock");
            stock[0] = match stock[0] as i64 - line.quantity as i64 {
                left if left >= 10 => left as u64,
                left => (left + 91) as u64,
            };
            stock[1] += line.quantity;
            stock[2] += 1;
            stock[3] += u64::from(line.supply != w);
            let amount = constant::item(line.item, 0) * line.quantity;
            let told = [line.item, line.supply, line.quantity, amount];
            self.lines.insert((w, d, number, count), told);
        }
    }
}

#[test]
fn new_order_does_what_the_standard_says() {
    let meeting = "shared=1 remote=20 stock=40 rollback=10";
    for text in [
        "index=0",
        "index=1 order=4",
        "index=2 order=4",
        &format!("index=0 {meeting}"),
        "index=0 lines=1",
        &format!("index=0 {meeting} item_reads=1"),
        &format!("index=1 order=4 {meeting} item_reads=1"),
        &format!("index=2 order=4 {meeting} item_reads=1"),
        &format!("index=3 orders=9 {meeting}"),
        &format!("index=3 orders=9 {meeting} item_reads=1"),
        "index=3 orders=1000",
        &format!("rows=1 {meeting}"),
        &format!("stock_counts=1 {meeting}"),
        &format!("rows=1 {meeting} index=3 orders=9"),
    ] {
        let (workload, mut view) = filled(&format!("{text} warehouses=6"), 3);
        let mut terminals: Vec<Terminal> = (0..3).map(|core| terminal(&workload, core)).collect();
        let database = Arc::clone(&terminals[0].database);
        let mut books = Books::read(&database, &Image::over(&view.pm));
        for round in 0..600 {
            let terminal = &mut terminals[round % 3];
            let mut pm = Pm::plain(&mut view, CoreId((round % 3) as u8));
            terminal.transaction(&mut pm).expect("a transaction");
            if Arc::ptr_eq(&terminal.database, &database) {
                books.enter(&terminal.order, database.scale.items);
            }
        }
        books.forget(&database);
        let mut found = Books::read(&database, &Image::over(&view.pm));
        found.forget(&database);
        assert!(found == books, "{text}");
        workload.check(&Image::over(&view.pm)).expect("consistent");
        let refills = books.stock.values().filter(|stock| stock[1] > 100).count();
        assert!(refills > 0 || !text.contains("stock=40"), "no stock was refilled");
    }
}

#[test]
fn the_full_size_is_the_standard_s() {
    let site = Site { cores: 8, seed: 1, heap: HEAP, items: 400_000, script: None, checker: None };
    let of = |params: &TpccParams| Tpcc::new(params, &site).expect("a workload").scale;
    let full = of(&TpccParams { stock: 100_000, ..TpccParams::default() });
    assert_eq!((full.warehouses, full.districts), (1, 10));
    assert_eq!((full.customers, full.orders, full.first_undelivered()), (3_000, 3_000, 2_101));
    let most = |count, share| NonUniform::new(count, share, 0).most;
    assert_eq!(most(3_000, CUSTOMERS_SHARE), 1_023);
    assert_eq!(most(100_000, ITEMS_SHARE), 8_191);
    // The default is a tenth of it.
    let usual = of(&TpccParams::default());
    assert_eq!((usual.items, usual.customers, usual.orders), (10_000, 300, 300));
    let all = of(&TpccParams { shared: Sharing::Shared, ..TpccParams::default() });
    assert_eq!((all.warehouses, all.items), (8, 10_000));
}

#[test]
fn each_core_has_warehouses_of_its_own() {
    let homes = |text: &str, cores: u8| -> Vec<Vec<u64>> {
        let (workload, _) = filled(&format!("{text} stock=10 districts=1"), cores);
        (0..cores).map(|core| terminal(&workload, core).homes).collect()
    };
    assert_eq!(homes("", 2), [[0], [0]]);
    assert_eq!(homes("warehouses=5", 2), [[0, 1], [0, 1]]);
    assert_eq!(homes("shared=1", 3), [[0], [1], [2]]);
    assert_eq!(homes("shared=1 warehouses=2", 3), [[0], [1], [0]]);
    assert_eq!(homes("shared=1 warehouses=5", 2), [vec![0, 2, 4], vec![1, 3]]);
}

#[test]
fn terminals_draw_what_the_standard_says() {
    let (workload, _) = filled("shared=1 warehouses=3 stock=1000 customers=300", 3);
    let mut terminal = terminal(&workload, 1);
    let (orders, mut lines, mut remote, mut rolled_back) = (20_000, 0, 0, 0);
    let mut lengths = [0; 16];
    let (mut items, mut customers) = (vec![0; 1_001], vec![0; 300]);
    for _ in 0..orders {
        terminal.inputs.draw(&terminal.homes, &mut terminal.random, &mut terminal.order);
        let order = &terminal.order;
        assert!(order.warehouse == 1 && order.district < 10);
        customers[order.customer as usize - 1] += 1;
        lengths[order.lines.len()] += 1;
        lines += order.lines.len();
        for line in &order.lines {
            assert!((1..=10).contains(&line.quantity) && line.supply < 3);
            remote += usize::from(line.supply != 1);
            items[line.item as usize - 1] += 1;
        }
        rolled_back += usize::from(order.lines.iter().any(|line| line.item == 1_001));
    }
    assert!(lengths[5..].iter().all(|&count| (1_600..2_100).contains(&count)), "{lengths:?}");
    assert!((remote as f64 / lines as f64 - 0.01).abs() < 0.002, "{remote} of {lines}");
    assert!((rolled_back as f64 / f64::from(orders) - 0.01).abs() < 0.003, "{rolled_back}");
    assert!(items[..1_000].iter().all(|&count| count > 0), "every item is ordered");
    // A customer whose number has no bit of A is drawn once in 20,000 orders.
    let seen = customers.iter().filter(|&&count| count > 0).count();
    assert!(seen > 280, "{seen} of 300 customers order");
    // Not uniformly: the tenth of the items that is ordered most is ordered by far more often.
    items[..1_000].sort_unstable();
    let most: usize = items[900..1_000].iter().sum();
    assert!(most * 10 > lines * 15 / 10, "{most} of {lines}");
}

/// A word to be changed, its new value, and a part of the sentence that must report it.
type Fault = (fn(&Database, &mut Pm<'_>) -> Ptr, u64, &'static str);

fn first(database: &Database) -> &schema::District {
    &database.warehouses[0].districts[0]
}

/// Finds a row that is there.
fn row(table: &crate::index::Table, pm: &mut Pm<'_>, key: u64) -> Ptr {
    table.find(pm, key).expect("a row")
}

/// The order lines of the first district.
fn lines(database: &Database) -> &crate::index::Table {
    first(database).lines.as_ref().expect("order lines")
}

/// A slot of an array.
fn slot(table: &crate::index::Table, pm: &mut Pm<'_>, key: u64) -> Ptr {
    Ptr::to(row(table, pm, key).address - 8)
}

/// Faults of a database with 20 orders in each district at the start, the last six undelivered.
const FAULTS: &[Fault] = &[
    (|base, _| Ptr::to(first(base).row), 12, "the next order is 12 and the last one is 20"),
    (|base, _| Ptr::to(first(base).row + 8), 9_999, "its tax is 9999 instead of"),
    (|base, pm| row(&first(base).orders, pm, 20), 1 << 32 | 1, "order 20 cannot be"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 0, "order 20 cannot be"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 3, "did not enter order 20 after its"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 1 << 48 | 1, "no core entered an order"),
    (|base, pm| row(&first(base).orders, pm, 20), 1 | 0x1_0105 << 32, "order 20 cannot be"),
    (|base, pm| row(&first(base).orders, pm, 3), 1 | 0x0105 << 32, "order 3 cannot be"),
    (|base, pm| row(&first(base).orders, pm, 3), 1 | 0x1_0005 << 32, "order 3 "),
    (|base, pm| row(&first(base).new_orders, pm, 15), 64, "new order 15 is not the order of"),
    (|base, pm| row(lines(base), pm, 20 << 4 | 2).plus(8), 1, "line 2 of order 20: it"),
    (|base, pm| row(lines(base), pm, 20 << 4 | 2).plus(16), 1, "line 2 of order 20: it"),
    (|base, pm| row(lines(base), pm, 3 << 4 | 2).plus(16), 0, "line 2 of order 3: it"),
    (|base, pm| row(lines(base), pm, 3 << 4 | 2).plus(40), 0, "line 2 of order 3: word 2"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7), 9, "stock of item 7: 9 are left of"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(8), 5, "item 7: its quantity sold is"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(16), 1, "item 7: its count of orders"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(24), 1, "its count of remote orders"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(320), 1, "item 7: word 40 is"),
    (|base, pm| row(&base.items, pm, 7).plus(80), 1, "item 7: word 10 is"),
    (|base, pm| row(&first(base).customers, pm, 2).plus(8), 1, "customer 2: word 1 is"),
    (|base, _| Ptr::to(base.warehouses[0].row), 5_000, "its tax is 5000 instead of"),
];

/// Faults of arrays without order lines.
const LEAN_FAULTS: &[Fault] = &[
    (|base, _| Ptr::to(first(base).row), 12, "the next order is 12 and the last one is 20"),
    (|base, pm| slot(&first(base).orders, pm, 3), 4, "key 4 is in the slot at"),
    (|base, pm| slot(&first(base).orders, pm, 3), 0, "the order after 2 is 4"),
    (|base, pm| slot(&first(base).orders, pm, 1), 21, "order 21 cannot be"),
    (|base, pm| slot(&first(base).orders, pm, 20), u64::MAX - 15, "and the last one is 18446"),
    (|base, pm| slot(&first(base).new_orders, pm, 17), 0, "the new order after 16 is 18"),
    (|base, pm| slot(&first(base).new_orders, pm, 17), 23, "new order 23 is not the order of"),
    (|base, pm| row(&first(base).new_orders, pm, 15), 64, "new order 15 is not the order of"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 0, "order 20 cannot be"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 3, "did not enter order 20 after its"),
    (|base, pm| row(&first(base).orders, pm, 20).plus(8), 1 << 48 | 1, "no core entered an order"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7), 9, "stock of item 7: 9 are left of"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(8), 5, "item 7: 5 sold in 0 orders"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(16), 1, "item 7: 0 sold in 1 orders"),
    (|base, pm| row(&base.warehouses[0].stock, pm, 7).plus(24), 1, "0 orders, 1 of them remote"),
    (|base, pm| slot(&base.items, pm, 7), 0, "the item after 6 is 8"),
];

#[test]
fn faults_are_told() {
    for (index, faults) in [("0", FAULTS), ("1", FAULTS), ("2", FAULTS), ("3 rows=1", LEAN_FAULTS)]
    {
        let text = format!("index={index} stock=50 districts=2 customers=3 orders=20");
        for &(place, value, told) in faults {
            let (workload, mut view) = filled(&text, 1);
            workload.check(&Image::over(&view.pm)).expect("consistent");
            let address = place(&workload.databases[0], &mut Pm::plain(&mut view, CoreId(0)));
            let mut image = Image::over(&view.pm);
            image.set_word(Word::of(address.address), value).expect("power");
            let error = workload.check(&image).expect_err("a fault");
            assert!(error.contains(told), "{text}: `{error}` does not say `{told}`");
        }
    }
}

/// A fault that no single row shows: more, or less, was taken from stock than was ordered.
#[test]
fn stock_and_orders_that_disagree_are_told() {
    for (text, rounds, told) in [
        ("orders=20", 0, "the orders have 0 lines, and stock was taken 10 times"),
        ("orders=20", 6, "lines, and stock was taken"),
        // Orders that newer ones have replaced may have taken any quantities of at least 1 a line.
        ("orders=2", 30, ""),
    ] {
        let text = format!("{text} index=3 rows=1 stock=50 districts=2 customers=3 rollback=0");
        let (workload, mut view) = filled(&text, 1);
        let mut terminal = terminal(&workload, 0);
        let mut pm = Pm::plain(&mut view, CoreId(0));
        for _ in 0..rounds {
            terminal.transaction(&mut pm).expect("a transaction");
        }
        let stock = row(&workload.databases[0].warehouses[0].stock, &mut pm, 7);
        // The quantity of one refill.
        for (place, more) in [(8, 91), (16, 10)] {
            let old = pm.load(stock.plus(place));
            pm.store(stock.plus(place), old + more);
        }
        let found = workload.check(&Image::over(&view.pm));
        match found {
            Ok(()) => assert!(told.is_empty(), "{text}: `{told}` is not told"),
            Err(error) => assert!(!told.is_empty() && error.contains(told), "{text}: {error}"),
        }
    }
}

/// Conditions 2 to 4: a missing row, in each of the tables into which New-Order inserts.
#[test]
fn lost_rows_are_told() {
    let unlink = |table: fn(&Database) -> &crate::index::Table, key: u64, told: &str| {
        let (workload, mut view) = filled("stock=50 districts=2 customers=3 orders=20", 1);
        let table = table(&workload.databases[0]);
        let crate::index::Table::Hash(chains) = table else { panic!("a hash table") };
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let (place, node) = chains.find(&mut pm, key);
        let next = pm.load(node.plus(8));
        pm.store(place, next);
        let error = workload.check(&Image::over(&view.pm)).expect_err("a fault");
        assert!(error.contains(told), "`{error}` does not say `{told}`");
    };
    unlink(|base| &first(base).orders, 20, "the next order is 21 and the last one is 19");
    unlink(|base| &first(base).orders, 4, "the order after 3 is 5");
    unlink(|base| &first(base).new_orders, 20, "5 of the orders 15 to 20 are new orders");
    unlink(|base| &first(base).new_orders, 17, "the new order after 16 is 18");
    unlink(|base| lines(base), 20 << 4 | 1, "order 20 has not just the lines 1 to");
    unlink(|base| &base.warehouses[0].stock, 50, "stock of item 50 is gone");
}
