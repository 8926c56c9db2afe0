//! Settings of a machine with which a power failure shows what it hardly shows with a paper's.

/// Settings by their paths, with the texts of their values.
pub type Settings = &'static [(&'static str, &'static str)];

/// Caches so small that lines leave them soon.
pub const SMALL: Settings = &[("llc.size", "256B"), ("l2.size", "128B"), ("l1d.size", "128B")];

/// Two controllers with queues of one entry over slow cells, so that writes overtake each other.
pub const APART: Settings = &[
    ("controller.count", "2"),
    ("controller.intlv_size", "64B"),
    ("controller.write_buffer_size", "1"),
    ("pm.xpbuffer_entries", "1"),
    ("pm.tWRITE", "400cycles"),
];
