//! What an image may hold, and when nothing can be wrong.

use super::*;
use crate::image::Placement;
use crate::units::{PAGE_BYTES, Page};

mod sets;

const A: CoreId = CoreId(0);

/// Returns what is wrong with the image after `stores`, for an oracle that saw one transaction
/// store 1 to words 1 and 9.
fn verdict(committing: bool, acknowledged: bool, stores: &[(u64, u64)]) -> Option<String> {
    let zeros = Contents::new(0, 4096).expect("room");
    let mut durable = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, 2048, Durability::Synchronous);
    let mut oracle = oracle.expect("room");
    oracle.begin(A, TxId(1));
    oracle.store(A, Word(1), 1, u64::MAX);
    oracle.store(A, Word(9), 1, u64::MAX);
    if committing {
        oracle.committing(A);
    }
    if acknowledged {
        oracle.acknowledge(A);
        oracle.announce(A, TxId(1), &durable).expect("it was asked for");
    }
    for &(word, value) in stores {
        durable.set_word(Word(word), value);
        oracle.compare(Word(word).line(), &durable);
    }
    oracle.check(&Image::over(&durable)).err().map(|(_, text)| text)
}

#[test]
fn a_running_transaction_is_not_there() {
    assert_eq!(verdict(false, false, &[]), None);
    assert!(verdict(false, false, &[(1, 1)]).expect("in part").starts_with("atomicity"));
    assert!(verdict(false, false, &[(1, 1), (9, 1)]).is_some());
}

#[test]
fn a_transaction_in_flight_is_there_whole_or_not_at_all() {
    assert_eq!(verdict(true, false, &[]), None);
    assert_eq!(verdict(true, false, &[(1, 1), (9, 1)]), None);
    assert!(verdict(true, false, &[(9, 1)]).expect("in part").starts_with("atomicity"));
    assert!(verdict(true, false, &[(9, 2)]).is_some());
}

#[test]
fn an_acknowledged_transaction_is_there() {
    assert_eq!(verdict(true, true, &[(1, 1), (9, 1)]), None);
    assert!(verdict(true, true, &[(1, 1)]).expect("lost").starts_with("durability"));
    assert!(verdict(true, true, &[]).is_some());
}

#[test]
fn it_is_known_how_many_transactions_with_stores_were_announced() {
    let zeros = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, 2048, Durability::Asynchronous);
    let mut oracle = oracle.expect("room");
    let tx = |oracle: &mut Oracle, id, stores: bool| {
        oracle.begin(A, TxId(id));
        if stores {
            oracle.store(A, Word(1), id, u64::MAX);
        }
        oracle.committing(A);
        oracle.acknowledge(A);
    };
    let promises = |oracle: &Oracle| {
        let of = oracle.promises()[0];
        (of.acknowledged, of.announced)
    };
    tx(&mut oracle, 1, false);
    assert_eq!(promises(&oracle), (0, 0), "there is nothing to announce");
    oracle.announce(A, TxId(1), &zeros).expect("it was asked for");
    tx(&mut oracle, 2, true);
    assert_eq!(promises(&oracle), (1, 0), "what was announced has no stores");
    oracle.announce(A, TxId(2), &zeros).expect("it was asked for");
    assert_eq!(promises(&oracle), (1, 1));
    tx(&mut oracle, 3, true);
    assert_eq!(promises(&oracle), (2, 1));
    oracle.begin(A, TxId(4));
    oracle.store(A, Word(1), 4, u64::MAX);
    oracle.committing(A);
    oracle.announce(A, TxId(4), &zeros).expect("it was asked for");
    assert_eq!(promises(&oracle), (3, 3), "with those before it, acknowledged or not");
    oracle.acknowledge(A);
    assert_eq!(promises(&oracle), (3, 3));
}

#[test]
fn an_aborted_transaction_is_never_there() {
    let zeros = Contents::new(0, 4096).expect("room");
    let mut durable = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, 2048, Durability::Synchronous);
    let mut oracle = oracle.expect("room");
    oracle.begin(A, TxId(1));
    oracle.store(A, Word(1), 1, u64::MAX);
    oracle.aborting(A);
    for ends in [false, true] {
        if ends {
            oracle.acknowledge(A);
            oracle.announce(A, TxId(1), &durable).expect("it was asked for");
        }
        for (value, begins) in [(1, "atomicity"), (0, "")] {
            durable.set_word(Word(1), value);
            oracle.compare(Word(1).line(), &durable);
            let text = oracle.check(&Image::over(&durable)).err().map(|(_, text)| text);
            let text = text.unwrap_or_default();
            assert!(text.starts_with(begins) && text.is_empty() == begins.is_empty(), "{text}");
            assert!(text.contains("was aborted") || value == 0, "{text}");
        }
    }
    assert_eq!(oracle.history(Word(1)), ["core 0 transaction 1 (aborted, 1 stores): [0x8] = 0x1"]);
}

/// A checker that left out one place of eight would still find most of what is wrong.
#[test]
fn every_word_of_a_line_is_compared() {
    for place in 0..8 {
        let damaged = [(1, 1), (9, 1), (16 + place, 5)];
        assert!(verdict(true, true, &damaged).is_some(), "word {place}");
    }
}

/// No controller has told the oracle of a line that only the battery or recovery wrote.
#[test]
fn a_line_that_only_recovery_wrote_is_compared() {
    let durable = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&durable, 1, 2048, Durability::Synchronous).expect("room");
    for place in 0..8 {
        let mut image = Image::over(&durable);
        assert!(oracle.check(&image).is_ok());
        image.set_word(Word(16 + place), 5).expect("power");
        let (word, _) = oracle.check(&image).expect_err("nobody stored it");
        assert_eq!(word, Word(16 + place));
    }
    let mut image = Image::over(&durable);
    image.set_word(Word(256), 5).expect("power");
    assert!(oracle.check(&image).is_ok(), "logs are not data");
}

#[test]
fn of_a_line_that_was_stored_to_outside_of_a_transaction_the_other_words_are_promised() {
    let zeros = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, 2048, Durability::Synchronous);
    let mut oracle = oracle.expect("room");
    oracle.store_outside(CoreId(0), Word(20));
    for word in 16..24 {
        let mut image = Image::over(&zeros);
        image.set_word(Word(word), 5).expect("power");
        assert_eq!(oracle.check(&image).is_ok(), word == 20, "word {word}");
    }
}

#[test]
fn a_word_that_nobody_stored_to_stays() {
    assert!(verdict(true, true, &[(1, 1), (9, 1), (20, 5)]).is_some());
    assert_eq!(verdict(true, true, &[(1, 1), (9, 1), (300, 5)]), None, "logs are not data");
}

#[test]
fn a_line_that_is_elsewhere_is_compared() {
    let durable = Contents::new(0, 2 * PAGE_BYTES).expect("room");
    let mut expected = Contents::new(0, 2 * PAGE_BYTES).expect("room");
    expected.set_word(Word(1), 5);
    let oracle = Oracle::new(&expected, 1, PAGE_BYTES, Durability::Synchronous).expect("room");
    let mut moved = Contents::new(0, 2 * PAGE_BYTES).expect("room");
    moved.set_word(Word(PAGE_BYTES / 8 + 1), 5);
    for (durable, is_right) in [(&durable, false), (&moved, true)] {
        let mut placement = Placement::default();
        placement.place(Page(0), Page(1), Page(1), 0);
        let mut image = Image::over(durable);
        image.see_through(placement);
        assert_eq!(oracle.check(&image).is_ok(), is_right);
    }
}

/// Begins a transaction of core 0 that stores to two words of a line.
fn stored_by(oracle: &mut Oracle, id: u64) {
    oracle.begin(A, TxId(id));
    oracle.store(A, Word(1), id, u64::MAX);
    oracle.store(A, Word(2), 7, u64::MAX);
}

#[test]
fn a_history_has_the_last_transactions_that_stored_to_the_word_with_their_lines() {
    let zeros = Contents::new(0, 4096).expect("room");
    let oracle = Oracle::new(&zeros, 1, 2048, Durability::Asynchronous);
    let mut oracle = oracle.expect("room");
    let count = RECENT as u64 + 1;
    for id in 1..=count + 1 {
        stored_by(&mut oracle, id);
        oracle.committing(A);
        oracle.acknowledge(A);
        if id <= count {
            oracle.announce(A, TxId(id), &zeros).expect("it was asked for");
        }
    }
    stored_by(&mut oracle, count + 2);
    let told = |id: u64, state: &str| {
        format!("core 0 transaction {id} ({state}, 2 stores): [0x8] = {id:#x}, [0x10] = 0x7")
    };
    let mut expect: Vec<String> = (2..=count).map(|id| told(id, "durable")).collect();
    expect.extend([told(count + 1, "acknowledged"), told(count + 2, "running")]);
    assert_eq!(oracle.history(Word(1)), expect);
    oracle.committing(A);
    assert_eq!(oracle.history(Word(1)).last(), Some(&told(count + 2, "committing")));
    assert_eq!(oracle.history(Word(3)), [""; 0]);
}

/// A value that one transaction stored and another stored over is an old one, not an aborted one's.
#[test]
fn what_is_lost_is_told() {
    let zeros = Contents::new(0, 4096).expect("room");
    for (durability, left) in [
        (Durability::Synchronous, "an acknowledged transaction"),
        (Durability::Asynchronous, "a transaction that was announced as durable"),
    ] {
        let mut oracle = Oracle::new(&zeros, 1, 2048, durability).expect("room");
        for id in 1..=2 {
            stored_by(&mut oracle, id);
            oracle.committing(A);
            oracle.acknowledge(A);
            oracle.announce(A, TxId(id), &zeros).expect("it was asked for");
        }
        let mut image = Image::over(&zeros);
        image.set_word(Word(1), 1).expect("power");
        let text = format!(
            "durability: the image holds 0x1 at 0x8 and should hold 0x2, which {left} left"
        );
        assert_eq!(oracle.check(&image), Err((Word(1), text)));
    }
}

/// The rest is what the transaction itself has left there, or else the last that was acknowledged,
/// or else what was durable before.
#[test]
fn a_store_of_a_part_of_a_word_keeps_the_rest() {
    let mut populated = Contents::new(0, 4096).expect("room");
    populated.set_word(Word(1), 0x4444);
    let mut oracle = Oracle::new(&populated, 1, 2048, Durability::Asynchronous).expect("room");
    let mut durable = populated.copy().expect("room");
    let mut id = 0;
    let mut left = |stores: &[(u64, u64)], is: u64| {
        id += 1;
        oracle.begin(A, TxId(id));
        for &(value, mask) in stores {
            oracle.store(A, Word(1), value, mask);
        }
        oracle.committing(A);
        oracle.acknowledge(A);
        durable.set_word(Word(1), is);
        oracle.compare(Word(1).line(), &durable);
        oracle.check(&Image::over(&durable)).map(|held| held[0] == id)
    };
    assert_eq!(left(&[(0x11, 0xff)], 0x4411), Ok(true), "of what was there");
    assert_eq!(left(&[(0x2200, 0xff00)], 0x2211), Ok(true), "of the transaction before");
    let own = [(0x33, 0xff), (0x9999, u64::MAX), (0x55, 0xff), (0x6600, 0xff00)];
    assert_eq!(left(&own, 0x6655), Ok(true), "of its own");
    assert_ne!(left(&[(0x77, 0xff)], 0x77), Ok(true), "the rest is gone");
}
