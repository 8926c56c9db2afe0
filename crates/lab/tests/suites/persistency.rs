//! Ordering hardware alone, without a log: random programs, checked against the persistency model
//! that the hardware declares, before any log recovers; and each of its rules, switched off, is
//! caught by that.

use std::sync::Arc;

use crate::common::orders;
use lab::litmus::Hardware;
use lab::litmus::random::{Caught, Programs, Ran};

/// The number of programs for each way of setting hardware up.
const OF_EACH_WAY: u64 = 48;

#[test]
fn every_order_keeps_its_promise() {
    let mut found = String::new();
    for order in orders() {
        let hardware = Hardware::of(order);
        let programs = Programs::of(&hardware);
        for number in 1..=OF_EACH_WAY * programs.ways() {
            match programs.run(number, &Arc::default()).expect("it fits") {
                Ran::Checked { points, images, violation: None } => {
                    assert!(images >= points && points > 0);
                }
                wrong => {
                    found += &format!("{} in program {number}: {wrong:?}\n", order.card.name);
                }
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

#[test]
fn every_wrong_rule_is_caught() {
    let mut left = String::new();
    for order in orders() {
        let hardware = Hardware::of(order);
        let programs = Programs::of(&hardware);
        for (rule, _) in order.rules {
            let caught = programs.catch(rule, &Arc::default()).expect("it fits");
            if !matches!(caught, Caught::By(..)) {
                left += &format!("{} without {rule} is not caught\n", order.card.name);
            }
        }
    }
    assert!(left.is_empty(), "{left}");
}
