//! What can be due in a machine: the events of its agenda.

use crate::units::{CoreId, TxId};

/// An event of the agenda. `E` is the type of a design's own events.
#[derive(Clone, Copy, Debug)]
pub enum Event<E> {
    /// A write reaches a controller.
    Arrive {
        /// Which controller.
        controller: usize,
        /// Which of the writes under way.
        write: usize,
    },
    /// A controller accepts the first of the writes that wait for room.
    Accept {
        /// Which controller.
        controller: usize,
    },
    /// A controller may send a write to the device.
    Drain {
        /// Which controller.
        controller: usize,
    },
    /// A controller may forget a write that the device took.
    Free {
        /// Which controller.
        controller: usize,
        /// Which of its slots.
        slot: usize,
    },
    /// The cells hold a write.
    Programmed {
        /// Which controller.
        controller: usize,
        /// Which of its slots.
        slot: usize,
    },
    /// A core's transaction is acknowledged.
    Acknowledge {
        /// Which core.
        core: CoreId,
    },
    /// A core's fence is done. This event is entered only if the order of stores is checked.
    Fenced {
        /// Which core.
        core: CoreId,
    },
    /// A core hears that a transaction, and those before it, are durable.
    Announce {
        /// Which core.
        core: CoreId,
        /// Which transaction.
        tx: TxId,
    },
    /// An event of the design.
    Design(E),
}
