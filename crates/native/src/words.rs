//! The words of a benchmark's request: the ways to write entries, the fences, the sources of values
//! and so on. Each is declared once, with its name.

/// Declares an enumeration whose values have names.
macro_rules! words {
    ($(#[doc = $about:literal])+ $Word:ident, $kind:literal {
        $($(#[doc = $doc:literal])+ $Value:ident = $name:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Word { $($(#[doc = $doc])+ $Value,)+ }

        impl Word for $Word {
            const KIND: &'static str = $kind;
            const ALL: &'static [$Word] = &[$($Word::$Value,)+];

            fn name(self) -> &'static str {
                match self { $($Word::$Value => $name,)+ }
            }
        }
    };
}

/// A word of the command line.
pub trait Word: Copy + 'static {
    /// The name of its kind, for error messages.
    const KIND: &'static str;
    /// All words of this kind, in order of declaration.
    const ALL: &'static [Self];

    /// The name, as on the command line.
    fn name(self) -> &'static str;
}

words! {
    /// How an entry of the log is written.
    Variant, "variant" {
        /// Two ordinary stores of 4 bytes, as the paper has them.
        Cached = "cached",
        /// The same, and the line is written back and kept.
        Clwb = "cached+clwb",
        /// The same, and the line is written back and dropped.
        ClflushOpt = "cached+clflushopt",
        /// The same, with the older flush, which is in order with stores.
        Clflush = "cached+clflush",
        /// Two non-temporal stores of 4 bytes, as the paper has them.
        Movnti4 = "movnti4",
        /// One non-temporal store of 8 bytes.
        Movnti8 = "movnti8",
        /// One direct store of 8 bytes.
        Movdiri = "movdiri",
        /// A whole line by two non-temporal stores of 32 bytes (AVX2).
        Nt32 = "nt32",
        /// A whole line by one non-temporal store of 64 bytes (AVX-512).
        Nt64 = "nt64",
        /// A whole line by one direct store of 64 bytes.
        Movdir64b = "movdir64b",
    }
}

words! {
    /// The fence between the log's entries and the stores for which they are written.
    Fence, "fence" {
        /// `sfence`.
        Sfence = "sfence",
        /// `mfence`.
        Mfence = "mfence",
        /// A locked instruction on a line of its own.
        Lock = "lock",
        /// Nothing.
        None = "none",
    }
}

words! {
    /// The source of the values that are stored.
    Values, "value source" {
        /// A table of 4 KiB that was filled before.
        Precomputed = "precomputed",
        /// Marsaglia's xorshift, six instructions.
        Xorshift = "xorshift",
        /// `rand()` of the C library, which may take a lock.
        Rand = "rand",
    }
}

words! {
    /// The contents of an entry.
    Logging, "kind of log" {
        /// The new value, before it is stored.
        Redo = "redo",
        /// The old value, before it is overwritten.
        Undo = "undo",
    }
}

words! {
    /// The shape of the log.
    Shape, "shape of log" {
        /// Twice the size of the array: it is written once in a pass.
        Linear = "linear",
        /// 128 KiB, which every second level since 2008 holds: it is written again and again.
        Circular = "circular",
    }
}

words! {
    /// The treatment of the array's stores.
    Array, "array" {
        /// They stay in the caches.
        Cached = "cached",
        /// Their lines are written back, too: true durability.
        Flushed = "flushed",
    }
}

/// The possible numbers of entries before one fence.
pub const ENTRIES: &[usize] = &[1, 2, 4, 8, 16];

impl Variant {
    /// Whether entries are written as whole lines, which have to be padded if there are fewer than
    /// eight entries before a fence.
    pub fn writes_lines(self) -> bool {
        matches!(self, Variant::Nt32 | Variant::Nt64 | Variant::Movdir64b)
    }

    /// Whether the log goes past the caches.
    pub fn is_past_caches(self) -> bool {
        !matches!(self, Variant::Cached | Variant::Clwb | Variant::ClflushOpt | Variant::Clflush)
    }

    /// The promise about an entry after a power failure, in the domain ADR, once the store for
    /// which it was written has been made. (Intel SDM, volume 2, at each instruction: flushes
    /// except `clflush`, non-temporal and direct stores are ordered only by fences and locked
    /// instructions.)
    pub fn guarantee(self, fence: Fence) -> Guarantee {
        match (self, fence) {
            (Variant::Cached, _) => Guarantee::Nothing,
            // The flush is in order with later stores, but nothing has waited for it.
            (Variant::Clflush, Fence::None) => Guarantee::Order,
            (_, Fence::None) => Guarantee::Nothing,
            _ => Guarantee::Durability,
        }
    }
}

words! {
    /// The promise about an entry after a power failure.
    Guarantee, "guarantee" {
        /// No promise: the entry may be lost while the store for which it was written survives.
        Nothing = "nothing",
        /// The entry survives if the store for which it was written does.
        Order = "order",
        /// The entry survives, in the durability domain ADR.
        Durability = "durable (ADR)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_cached_log_promises_nothing_and_a_flush_or_a_bypass_does() {
        for &fence in Fence::ALL {
            assert_eq!(Variant::Cached.guarantee(fence), Guarantee::Nothing);
            for &variant in &Variant::ALL[1..] {
                let durable = variant.guarantee(fence) == Guarantee::Durability;
                assert_eq!(durable, fence != Fence::None, "{variant:?} {fence:?}");
            }
        }
    }

    #[test]
    fn variants_have_the_names_of_the_workload_logcache() {
        let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
        let cached = ["cached", "cached+clwb", "cached+clflushopt", "cached+clflush"];
        let past = ["movnti4", "movnti8", "movdiri", "nt32", "nt64", "movdir64b"];
        assert_eq!(names, [&cached[..], &past[..]].concat());
    }
}
