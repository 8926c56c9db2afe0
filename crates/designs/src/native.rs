//! Native: no logging, no persistence. What a program costs on the machine as it is.
//!
//! The lower bound that some papers divide by (LOC, ICCD 2014; Kiln, MICRO 2013). After a power
//! failure persistent memory holds whatever the caches happened to evict.

use model::design::{Bare, Card, Design, Durability, Granularity, Needs, NoParams, NoRules, Setup};

/// No persistence at all.
pub struct Native;

impl Design for Native {
    const CARD: Card = Card {
        name: "native",
        paper: "none",
        family: "bound",
        summary: "no logging and no persistence; the machine as it is",
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs: Needs::Nothing,
    };
    const MIGRATES: bool = true;
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Native>) -> Native {
        Native
    }
}
