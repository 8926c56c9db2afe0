//! What is said of a design: its card, its guarantee, and the hardware that it adds.

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

/// When an acknowledged transaction is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// When it is acknowledged.
    Synchronous,
    /// Later, when the design says so, in an order that respects dependences.
    Asynchronous,
    /// Never for certain: it is not crash consistent.
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
    /// Bits of one of it.
    pub bits: u64,
    /// How many there are in the machine.
    pub count: u64,
    /// Where it is.
    pub place: &'static str,
    /// What keeps it through a power failure.
    pub kept_by: KeptBy,
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
}

impl KeptBy {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            KeptBy::Nothing => "volatile",
            KeptBy::Adr => "adr",
            KeptBy::Battery => "battery",
        }
    }
}
