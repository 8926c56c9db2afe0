//! MorLog and MorLog with delay-persistence, which share all but a promise.

use model::design::{Card, Durability};
use model::params::{Both, Params};

use super::{DelayParams, MorlogParams, card};

/// One of the two designs.
pub trait Scheme: 'static {
    /// Its card.
    const CARD: Card;
    /// Rules that it does not need.
    const NEEDLESS: &'static [(&'static str, &'static str)];
    /// Whether redo data may be logged after the acknowledgement.
    const DELAYED: bool;
    /// Its parameters.
    type Params: Params;
    /// Splits the parameters into those that both designs have and the delay of redo data.
    fn split(params: &Self::Params) -> (&MorlogParams, u64);
}

/// Redo data are logged before the acknowledgement.
pub struct Synchronous;

/// Redo data are logged after the acknowledgement: delay-persistence.
pub struct DelayPersistence;

const COMPLETE: &str = "a commit record says that everything before it is logged";
const COUNTED: &str = "the count says what is missing, and nothing is promised before";

impl Scheme for Synchronous {
    const CARD: Card = card(
        "morlog",
        "undo+redo log of first stores; later redo data stay in the first level",
        Durability::Synchronous,
    );
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[
        ("count_commits", COMPLETE),
        ("commit_in_order", COMPLETE),
        ("replay_in_commit_order", COMPLETE),
        ("announce_after_redo", COMPLETE),
        ("announce_in_order", COMPLETE),
        ("keep_until_durable", COMPLETE),
    ];
    const DELAYED: bool = false;
    type Params = MorlogParams;
    fn split(params: &MorlogParams) -> (&MorlogParams, u64) {
        (params, 0)
    }
}

impl Scheme for DelayPersistence {
    const CARD: Card = card(
        "morlog-dp",
        "MorLog with delay-persistence: redo data are logged after the acknowledgement",
        Durability::Asynchronous,
    );
    const NEEDLESS: &'static [(&'static str, &'static str)] = &[
        ("redo_before_commit", COUNTED),
        ("acknowledge_after_record", COUNTED),
        ("acknowledge_after_all_before", COUNTED),
    ];
    const DELAYED: bool = true;
    type Params = Both<MorlogParams, DelayParams>;
    fn split(params: &Self::Params) -> (&MorlogParams, u64) {
        (&params.first, params.second.redo_delay)
    }
}
