//! Parts that several designs share: a core's log area; what logs of words in memory share
//! (records, the ring that holds them, the way of data lines home, the forced write-back, and
//! recovery); what designs with two copies of data share (a page table and a metadata journal in
//! memory, cores that wait for each other, the way out into software); the setting that enlarges a
//! log that is too small; and the corners into which the search for mutants presses such designs.

use model::units::{CoreId, Line};

pub mod area;
pub mod coming;
pub mod commits;
pub mod corners;
pub mod counters;
pub mod fall_back;
pub mod hardware;
pub mod homes;
pub mod journal;
pub mod line;
pub mod log;
pub mod overflow;
pub mod page_table;
pub mod placed;
pub mod raise;
pub mod record;
pub mod ring;
pub mod rules;
pub mod scan;
pub mod waits;

/// The timed events of a hardware log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent {
    /// A controller has accepted the bytes of a line of the log up to `end`.
    Logged {
        /// The line's number.
        line: u64,
        /// Where the last record of this write ends.
        end: u8,
    },
    /// A controller has accepted a line of data.
    Home {
        /// The line.
        line: Line,
        /// The group that it left in ([`homes::Homes`]).
        group: u64,
        /// Whether a scan forced it.
        forced: bool,
    },
    /// A store has left its core, and its record is complete.
    Left(CoreId),
    /// The stores of a transaction that ends have left its core.
    Commit(CoreId),
    /// A core's oldest record is old enough to leave its buffer.
    Age(CoreId),
    /// A commit has scanned its core's first level.
    Scanned(CoreId),
    /// Records of a core that say nothing have left its buffer.
    Discarded(CoreId),
    /// A core hears that so many of its records are durable: those that undo, and the others.
    Heard(CoreId, [u64; 2]),
}
