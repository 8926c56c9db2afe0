use super::*;
use crate::base::{Base, BaseParams};
use model::config::Config;
use model::design::{Design, Setup};
use model::machine::Machine;
use model::units::{TxId, Word};

const NOW: Cycle = Cycle(100);

/// A log with a ring of `lines` lines and a buffer of two, on a machine for its writes.
fn log(lines: u64) -> (Log, Machine<Base>) {
    let mut config = Config::default();
    (config.pm.capacity, config.pm.log) = (1 << 20, 1 << 12);
    (config.dram.capacity, config.core.cores_max) = (1 << 20, 1);
    let (params, rules) = (BaseParams::default(), Default::default());
    let setup = Setup { params: &params, rules: &rules, shape: &Shape::new(&config, 1) };
    let machine = Machine::new(&setup, Base::CARD).expect("room");
    let shape = &machine.below.shape;
    let log = Log::new(shape, Ring::new(shape, lines, 0), 2, &LogRules::default());
    (log, machine)
}

fn record(word: u64) -> Record {
    Record::of(CoreId(0), TxId(1), Word(word), 0, 1)
}

#[test]
fn two_records_fill_a_line_and_a_third_sends_it() {
    let (mut log, mut machine) = log(16);
    let below = &mut machine.below;
    let places = [0, 8, 16].map(|word| log.append(&record(word), NOW, below));
    assert_eq!(places.map(|place| (place.line, place.end)), [(0, 26), (0, 52), (1, 26)]);
    assert_eq!(log.sent, Place { line: 1, end: 0 });
    assert_eq!(log.newest(Line(1)), Some(places[1]));
    log.accepted(0, 52, NOW, below);
    assert_eq!((log.newest(Line(1)), log.newest(Line(2))), (None, Some(places[2])));
    assert_eq!(log.under_way(CoreId(0)), [1, 0]);
    log.flush(places[2], NOW, below);
    log.accepted(1, 26, NOW, below);
    assert_eq!(log.durable(), places[2]);
}

#[test]
fn what_lies_behind_a_line_that_is_not_accepted_is_not_durable() {
    let (mut log, mut machine) = log(16);
    let below = &mut machine.below;
    for word in 0..5 {
        log.append(&record(word), NOW, below);
    }
    log.accepted(1, 52, NOW, below);
    assert_eq!(log.durable(), Place { line: 0, end: 0 });
    log.accepted(0, 52, NOW, below);
    assert_eq!(log.durable(), Place { line: 2, end: 0 });
}

#[test]
fn stores_wait_while_the_buffer_is_full() {
    let (mut log, mut machine) = log(16);
    let below = &mut machine.below;
    for word in 0..4 {
        log.append(&record(word), NOW, below);
    }
    assert!(!log.is_full());
    log.append(&record(4), NOW, below);
    assert!(log.is_full(), "two lines are under way and a third is begun");
    log.accepted(0, 52, NOW, below);
    assert!(!log.is_full());
}

#[test]
fn a_ring_that_a_running_transaction_fills_is_not_overwritten() {
    let (mut log, mut machine) = log(4);
    let below = &mut machine.below;
    log.forget(u64::MAX);
    for line in 0..2 {
        log.append(&record(0), NOW, below);
        let place = log.append(&record(1), NOW, below);
        log.flush(place, NOW, below);
        log.accepted(line, 52, NOW, below);
    }
    log.append(&record(2), NOW, below);
    assert!(log.is_ring_full() && log.head() == 0);
    log.ended(CoreId(0));
    assert!(log.head() > 0 && !log.is_ring_full());
}

#[test]
fn a_pass_begins_alone() {
    let (mut log, mut machine) = log(4);
    let below = &mut machine.below;
    log.forget(u64::MAX);
    for line in 0..4 {
        log.append(&record(0), NOW, below);
        let place = log.append(&record(1), NOW, below);
        log.ended(CoreId(0));
        log.flush(place, NOW, below);
        if line < 3 {
            log.accepted(line, 52, NOW, below);
        }
    }
    for _ in 0..3 {
        log.append(&record(2), NOW, below);
        log.ended(CoreId(0));
    }
    assert_eq!(log.sent, Place { line: 4, end: 0 }, "line 4 waits for line 3");
    log.accepted(3, 52, NOW, below);
    assert_eq!((log.first, log.sent), (4, Place { line: 5, end: 0 }), "it travels alone");
    let last = Place { line: 5, end: 26 };
    log.flush(last, NOW, below);
    assert_eq!(log.sent, Place { line: 5, end: 0 });
    log.accepted(4, 52, NOW, below);
    assert_eq!(log.sent, last);
}

/// A store to a word that has its turn now, and leaves `later` cycles later.
fn store(word: u64, later: u64) -> Store {
    Store {
        core: CoreId(0),
        tx: Some(TxId(1)),
        word: Word(word),
        old: 0,
        new: 1,
        at: NOW,
        leaves: NOW + later,
        past_caches: false,
    }
}

#[test]
fn a_record_enters_when_its_store_has_left_and_the_buffer_has_room() {
    let (mut log, mut machine) = log(16);
    let below = &mut machine.below;
    for line in 0..7 {
        assert!(!log.enter(record(8 * line), &store(8 * line, 50 + line), below));
    }
    assert!(log.awaits(CoreId(0)) && log.newest(Line(0)).is_none());
    log.left(CoreId(0), NOW + 51, below);
    assert_eq!((log.tail(), log.newest(Line(1))), (0, Some(Place { line: 0, end: 52 })));
    log.left(CoreId(0), NOW + 60, below);
    assert_eq!(log.tail(), 2, "two lines of two and a record, which is one line too many");
    let held = |line| log.holds_back(CoreId(0), Line(line), NOW + 60);
    assert!(log.is_full() && !held(4) && held(5) && held(6));
    assert!(!log.holds_back(CoreId(0), Line(6), NOW + 55), "its store has not left");
    log.accepted(0, 52, NOW + 70, below);
    assert!(!log.awaits(CoreId(0)) && log.tail() == 3);
}

#[test]
fn records_that_are_to_come_have_their_room_in_the_ring() {
    let (mut log, mut machine) = log(6);
    let below = &mut machine.below;
    assert!(!log.is_ring_full());
    for word in 0..7 {
        log.enter(record(word), &store(word, 50), below);
    }
    assert!(log.is_ring_full(), "four lines for them, and two for what must not wait");
}

/// The bytes of a store are in its line from its turn on.
#[test]
fn a_line_that_goes_home_takes_the_records_of_its_words_with_it() {
    let (mut log, mut machine) = log(16);
    let below = &mut machine.below;
    for word in [0, 8, 1] {
        log.enter(record(word), &store(word, 50), below);
    }
    let after = log.send_before(Line(0), NOW + 10, below);
    assert_eq!(after, Some(Place { line: 0, end: 52 }), "two of its three");
    assert!(log.awaits(CoreId(0)) && log.newest(Line(1)).is_none());
}
