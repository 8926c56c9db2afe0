//! The words of the benchmark: what is written how, what stands between, and where values come
//! from. Each is declared once, with its name.

/// Declares an enumeration whose values have names.
macro_rules! words {
    ($(#[doc = $about:literal])+ $Word:ident, $kind:literal {
        $($(#[doc = $doc:literal])+ $Value:ident = $name:literal,)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Word { $($(#[doc = $doc])+ $Value,)+ }

        impl $Word {
            /// Every one, in order of declaration.
            pub const ALL: &'static [$Word] = &[$($Word::$Value,)+];

            /// The name, as on the command line.
            pub fn name(self) -> &'static str {
                match self { $($Word::$Value => $name,)+ }
            }
        }

        impl Word for $Word {
            const KIND: &'static str = $kind;
            fn all() -> &'static [$Word] {
                $Word::ALL
            }
            fn called(self) -> &'static str {
                self.name()
            }
        }
    };
}

/// A word of the command line.
pub trait Word: Copy + 'static {
    /// What it is called in a complaint.
    const KIND: &'static str;
    /// Every one there is.
    fn all() -> &'static [Self];
    /// Its name.
    fn called(self) -> &'static str;
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
    /// What stands between the log's entries and the stores that they are for.
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
    /// Where values come from.
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
    /// What is logged.
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
    /// What becomes of the array's stores.
    Array, "array" {
        /// They stay in the caches.
        Cached = "cached",
        /// Their lines are written back, too: true durability.
        Flushed = "flushed",
    }
}

/// How many entries may stand before one fence.
pub const ENTRIES: &[usize] = &[1, 2, 4, 8, 16];

impl Variant {
    /// Whether an entry is written as a part of a whole line, which has to be padded if there are
    /// fewer than eight before a fence.
    pub fn writes_lines(self) -> bool {
        matches!(self, Variant::Nt32 | Variant::Nt64 | Variant::Movdir64b)
    }

    /// Whether the log goes past the caches.
    pub fn is_past_caches(self) -> bool {
        !matches!(self, Variant::Cached | Variant::Clwb | Variant::ClflushOpt | Variant::Clflush)
    }

    /// What an entry's being there after a power failure rests on, in the domain ADR, once the
    /// store that it is for has been made. (Intel SDM, volume 2, of each instruction: flushes but
    /// `clflush`, non-temporal and direct stores are ordered by fences and locked instructions
    /// alone.)
    pub fn guarantee(self, fence: Fence) -> Guarantee {
        match (self, fence) {
            (Variant::Cached, _) => Guarantee::Nothing,
            // It is in order with later stores, but nobody has waited for it.
            (Variant::Clflush, Fence::None) => Guarantee::Order,
            (_, Fence::None) => Guarantee::Nothing,
            _ => Guarantee::Durability,
        }
    }
}

words! {
    /// What is promised of an entry after a power failure.
    Guarantee, "guarantee" {
        /// Nothing: it may be lost while the store that it is for is not.
        Nothing = "nothing",
        /// That it is there if the store that it is for is.
        Order = "order",
        /// That it is there, in the durability domain ADR.
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
    fn names_are_those_of_the_issue() {
        let names: Vec<&str> = Variant::ALL.iter().map(|variant| variant.name()).collect();
        assert!(names.contains(&"cached+clflushopt") && names.contains(&"movdir64b"));
        assert_eq!(names.len(), 10);
    }
}
