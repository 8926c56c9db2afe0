//! Clients against a simple model in host memory, and databases with known faults.

use std::collections::{BTreeMap, BTreeSet};

use model::contents::View;
use model::params::Params as _;
use model::units::Word;

use super::client::Action;
use super::database::{KINDS, customer, list, reservation, row};
use super::*;

const HEAP: std::ops::Range<u64> = 4096..32 << 20;

/// A filled database, or several, and its memory.
fn filled(text: &str, cores: u8) -> (Vacation, View) {
    let mut params = VacationParams::default();
    for pair in text.split_whitespace() {
        let (name, value) = pair.split_once('=').expect("name=value");
        params.set(name, value.parse().expect("a number"));
    }
    let site = Site { cores, seed: 5, heap: HEAP, items: 400, script: None, checker: None };
    let mut workload = Vacation::new(&params, &site).expect("a workload");
    let mut view = View::new(HEAP.end, 1 << 20).expect("room");
    workload.populate(&mut Pm::plain(&mut view, CoreId(0))).expect("room");
    (workload, view)
}

/// The contents of a database.
#[derive(Clone, Debug, Default, PartialEq)]
struct Books {
    /// Used, free, total and price, by table and id.
    rows: BTreeMap<(usize, u64), [u64; 4]>,
    /// The table, the id and the price of each customer's reservations.
    lists: BTreeMap<u64, BTreeSet<(usize, u64, u64)>>,
}

impl Books {
    fn read(database: &Database, image: &Image<'_>) -> Books {
        let mut walk = Walk::new(image, &HEAP);
        let mut books = Books::default();
        for (kind, tree) in database.rows.iter().enumerate() {
            let read = tree.check_nodes(&mut walk, |walk, value, id| {
                let fields = [row::USED, row::FREE, row::TOTAL, row::PRICE];
                let at = walk.word(value);
                books.rows.insert((kind, id), fields.map(|field| walk.word(at + field)));
                Ok(())
            });
            read.expect("sound");
        }
        let read = database.customers.check_nodes(&mut walk, |walk, value, id| {
            let list = walk.word(walk.word(value) + customer::LIST);
            let mut node = walk.word(list + list::NEXT);
            let reserved = books.lists.entry(id).or_default();
            while node != 0 {
                let at = walk.word(node + list::DATA);
                let fields = [reservation::KIND, reservation::ID, reservation::PRICE];
                let [kind, id, price] = fields.map(|field| walk.word(at + field));
                reserved.insert((kind as usize, id, price));
                node = walk.word(node + list::NEXT);
            }
            Ok(())
        });
        read.expect("sound");
        books
    }

    /// Does the transaction as STAMP's manager does.
    fn serve(&mut self, action: &Action) {
        match action {
            Action::Reserve { customer, places } => self.reserve(*customer, places),
            Action::DeleteCustomer { customer } => {
                for (kind, id, _) in self.lists.remove(customer).unwrap_or_default() {
                    let row = self.rows.get_mut(&(kind, id)).expect("a row");
                    row[0] -= 1;
                    row[1] += 1;
                }
            }
            Action::Update { changes } => {
                for &(place, price) in changes {
                    self.update(place, price);
                }
            }
        }
    }

    fn reserve(&mut self, customer: u64, places: &[(usize, u64)]) {
        for kind in 0..KINDS {
            // The first of the dearest rows.
            let prices = places.iter().filter(|place| place.0 == kind);
            let prices = prices.filter_map(|place| Some((*place, self.rows.get(place)?[3])));
            let Some((place, price)) = prices.rev().max_by_key(|&(_, price)| price) else {
                continue;
            };
            let has = self.lists.entry(customer).or_default();
            let is_there = has.iter().any(|&(kind, id, _)| (kind, id) == place);
            let row = self.rows.get_mut(&place).expect("a row");
            if row[1] > 0 && !is_there {
                has.insert((kind, place.1, price));
                row[0] += 1;
                row[1] -= 1;
            }
        }
    }

    fn update(&mut self, place: (usize, u64), price: Option<u64>) {
        if let Some(price) = price {
            let row = self.rows.entry(place).or_insert([0, 0, 0, 0]);
            *row = [row[0], row[1] + 100, row[2] + 100, price];
            return;
        }
        let Some(row) = self.rows.get_mut(&place) else { return };
        let units = match place.0 {
            1 if row[0] > 0 => return,
            1 => row[2],
            _ => 100,
        };
        if row[1] >= units {
            row[1] -= units;
            row[2] -= units;
            if row[2] == 0 {
                self.rows.remove(&place);
            }
        }
    }
}

#[test]
fn clients_do_what_stamp_s_manager_does() {
    for text in [
        "items=400",
        "items=40 queries=8 query_range=100",
        "items=60 queries=5 actions=1 user_percent=60",
        "items=60 queries=3 actions=1 user_percent=0",
        "items=24 actions=1 user_percent=90 shared=0 query_range=50",
    ] {
        let (workload, mut view) = filled(text, 2);
        let mut clients = [0, 1].map(|core| workload.client(CoreId(core)));
        let mut draws = workload.client(CoreId(0)).draws;
        let databases: Vec<Database> = workload.databases.clone();
        let read = |view: &View| -> Vec<Books> {
            let image = Image::over(&view.pm);
            databases.iter().map(|database| Books::read(database, &image)).collect()
        };
        let mut books = read(&view);
        for round in 0..1_500 {
            let core = round % 2;
            let action = draws.draw();
            let mut pm = Pm::plain(&mut view, CoreId(core as u8));
            clients[core].serve(&mut pm, &action).expect("an action");
            books[core % databases.len()].serve(&action);
            if round % 50 == 0 || round < 100 {
                assert_eq!(read(&view), books, "{text}, {action:?}");
                assert_eq!(workload.check(&Image::over(&view.pm)), Ok(()), "{text}");
            }
        }
    }
}

/// STAMP: half of the actions other than reservations are odd and delete a customer.
#[test]
fn whisper_only_reserves_and_stamp_mixes() {
    let share = |text: &str| {
        let (workload, _) = filled(text, 1);
        let mut draws = workload.client(CoreId(0)).draws;
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            counts[match draws.draw() {
                Action::Reserve { .. } => 0,
                Action::DeleteCustomer { .. } => 1,
                Action::Update { .. } => 2,
            }] += 1;
        }
        counts
    };
    assert_eq!(share("user_percent=50"), [10_000, 0, 0]);
    let [reservations, deletions, updates] = share("actions=1 user_percent=60");
    for (count, expect) in [(reservations, 6_000), (deletions, 2_000), (updates, 2_000)] {
        assert!((expect - 200..expect + 200).contains(&count), "{count} of {expect}");
    }
}

#[test]
fn faults_are_told() {
    let (workload, mut view) = filled("items=40 queries=4", 1);
    let mut client = workload.client(CoreId(0));
    for _ in 0..200 {
        client.transaction(&mut Pm::plain(&mut view, CoreId(0))).expect("a transaction");
    }
    let database = &workload.databases[0];
    let mut pm = Pm::plain(&mut view, CoreId(0));
    let car = database.find(&mut pm, (0, 3)).expect("a car").address;
    let value = database.customers.find(&mut pm, 2).expect("a customer");
    let customer = pm.load(value);
    let list = view.pm.word(Word::of(customer + customer::LIST));
    let node = view.pm.word(Word::of(list + list::NEXT));
    let reserved = view.pm.word(Word::of(node + list::DATA));
    assert_ne!(node, 0);
    for (address, value, told) in [
        (car + row::USED, 1_000, "which is not"),
        (car + row::TOTAL, 0, "which is not"),
        (car + row::ID, 4, "says that it is of 4"),
        (car + row::PRICE, 55, "a price is 55"),
        (customer + customer::ID, 9, "the row of 2 says that it is of 9"),
        (customer + customer::LIST, 0, "a list at 0x0"),
        (list + list::SIZE, 0, "and says 0"),
        (list + list::NEXT, 0, "its list has 0 reservations"),
        (node + list::NEXT, node, "out of order"),
        (reserved + reservation::KIND, 3, "is of table 3"),
        (reserved + reservation::ID, 0, "are on lists"),
        (reserved + reservation::PRICE, 0, "a price is 0"),
    ] {
        let mut image = Image::over(&view.pm);
        image.set_word(Word::of(address), value).expect("power");
        let error = workload.check(&image).expect_err(told);
        assert!(error.contains(told), "`{error}` does not say `{told}`");
    }
    // Used units that no customer has reserved, with a total that fits.
    let mut image = Image::over(&view.pm);
    for (field, more) in [(row::USED, 100), (row::TOTAL, 100)] {
        let word = Word::of(car + field);
        image.set_word(word, image.word(word) + more).expect("power");
    }
    let error = workload.check(&image).expect_err("a unit too many");
    assert!(error.contains("are on lists"), "{error}");
}
