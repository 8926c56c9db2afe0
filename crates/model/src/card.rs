//! What is said of a design: its card, its guarantee, its corners, and the hardware that it adds.

use std::fmt::Display;

/// What the registry, the command line and the documentation say of a design.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// The name, as on the command line.
    pub name: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// The kind of design.
    pub family: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The file that holds it.
    pub file: &'static str,
    /// When an acknowledged transaction is durable.
    pub durability: Durability,
    /// What two concurrent transactions must not share.
    pub granularity: Granularity,
    /// What must survive a power failure for its guarantee to hold.
    pub needs: Needs,
}

/// A corner of a design, into which the search for what breaks the design presses one of its
/// trials, to reach what the `tight` values of single parameters do not bring about.
#[derive(Clone, Debug, Default)]
pub struct Corner {
    /// The settings, by their paths; if two have the same path, the second counts.
    pub settings: Vec<(&'static str, String)>,
    /// Whether four cores run, and no fewer, where the machine has them.
    pub has_four_cores: bool,
    /// Whether the run is a short one, with no other settings of its workload.
    pub is_alone: bool,
}

impl Corner {
    /// Adds a setting.
    pub fn set(&mut self, path: &'static str, value: impl Display) {
        self.settings.push((path, value.to_string()));
    }
}

/// What ordering hardware promises of stores to persistent memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Nothing.
    Unordered,
    /// A fence waits until what its core flushed before it is durable. A word never goes back to an
    /// older store (strong persist atomicity: Pelley, Chen and Wenisch, ISCA 2014).
    Fenced,
    /// Buffered epoch persistency (the same; HOPS, ASPLOS 2017): stores before a core's order are
    /// durable before those after it; a store that a core saw, by a load or by storing to the same
    /// word, is durable before what the core stores after its next order; a durability fence waits
    /// for all of its core's stores. A word never goes back. Loads leave no trace (a later store by
    /// another core is not ordered after them), and what cores say through volatile memory orders
    /// nothing.
    Epoch,
    /// A store is durable when it is visible: strict persistency.
    Visible,
}

impl Model {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Model::Unordered => "unordered",
            Model::Fenced => "fenced",
            Model::Epoch => "epoch",
            Model::Visible => "visible",
        }
    }
}

/// What a design makes of the order of a program's stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordering {
    /// The order of stores that it promises, if it is ordering hardware.
    pub model: Option<Model>,
    /// Whether a fence is an instruction of this hardware, which dispatches like any other.
    pub fences: bool,
    /// Whether a flush is an instruction of this hardware.
    pub flushes: bool,
    /// Whether lines may reach memory without the design being told, as ordinary evictions do. What
    /// could survive then changes with every store, and
    /// [`could_be_durable`](crate::design::Design::could_be_durable) says what that is.
    pub lines_leave: bool,
}

impl Ordering {
    /// Of a design that is no ordering hardware, is told of every line and has no instructions.
    pub const NONE: Ordering =
        Ordering { model: None, fences: false, flushes: false, lines_leave: false };
}

/// What must survive a power failure for a design's guarantee to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The cells: the design waits for whatever the machine's domain takes.
    Nothing,
    /// What a controller accepted, too.
    Adr,
    /// The caches, too.
    Eadr,
}

impl Needs {
    /// The name in reports: the least durability domain that suffices.
    pub fn name(self) -> &'static str {
        match self {
            Needs::Nothing => "nothing",
            Needs::Adr => "adr",
            Needs::Eadr => "eadr",
        }
    }
}

/// When an acknowledged transaction is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is acknowledged.
    Synchronous,
    /// Later, when the design announces it, in an order that respects dependences.
    Asynchronous,
    /// Never for certain: the design is not crash consistent.
    None,
}

impl Durability {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Synchronous => "synchronous",
            Durability::Asynchronous => "asynchronous",
            Durability::None => "none",
        }
    }
}

/// What two concurrent transactions must not share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// An 8-byte word.
    Word,
    /// A 64-byte line.
    Line,
}

impl Granularity {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Granularity::Word => "word",
            Granularity::Line => "line",
        }
    }
}

/// A piece of hardware that a design adds.
#[derive(Clone, Debug)]
pub struct Structure {
    /// The paper's name for it.
    pub name: &'static str,
    /// The bits of one such structure.
    pub bits: u64,
    /// How many there are in the machine.
    pub count: u64,
    /// Where it is.
    pub location: Location,
    /// What keeps it through a power failure.
    pub kept_by: KeptBy,
}

impl Structure {
    /// A structure that nothing keeps through a power failure.
    pub fn new(name: &'static str, bits: u64, count: u64, location: Location) -> Structure {
        Structure { name, bits, count, location, kept_by: KeptBy::Nothing }
    }

    /// The same, kept by something.
    pub fn kept(self, kept_by: KeptBy) -> Structure {
        Structure { kept_by, ..self }
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        (self.bits * self.count).div_ceil(8)
    }
}

/// Where a structure is, by its name in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location {
    /// In a core or at its first level, from where bytes pass every level on their way to memory.
    AtCore(&'static str),
    /// Anywhere else.
    Elsewhere(&'static str),
}

impl Location {
    /// The location that a script calls by a name: at a core if that is `core`, `store queue` or
    /// `first level`, or begins with `first-level`.
    pub fn named(name: &'static str) -> Location {
        let at_core = matches!(name, "core" | "store queue" | "first level");
        if at_core || name.starts_with("first-level") {
            Location::AtCore(name)
        } else {
            Location::Elsewhere(name)
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        let (Location::AtCore(name) | Location::Elsewhere(name)) = self;
        name
    }
}

/// What keeps a structure through a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptBy {
    /// Nothing.
    Nothing,
    /// The energy that drains a controller's queues.
    Adr,
    /// A battery of its own.
    Battery,
    /// The energy that saves the dirty lines of caches. The machine saves them, not the design.
    Eadr,
    /// Its own cells, which need no energy. `power_loss` says what they hold.
    Cells,
}

impl KeptBy {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            KeptBy::Nothing => "volatile",
            KeptBy::Adr => "adr",
            KeptBy::Battery => "battery",
            KeptBy::Eadr => "eadr",
            KeptBy::Cells => "cells",
        }
    }
}
