//! The loop of the paper's Figure 1, compiled once for every combination of what it may do, and
//! chosen before it is measured: nothing in it asks what it is.
//!
//! ```text
//! for each group of K entries:
//!     draw K values
//!     log K entries {index, value}, or {index, old value} for undo
//!     write the log's lines back, if the variant does
//!     fence
//!     array[index] = value, K times
//!     write the array's lines back, if that is asked for
//! ```
//!
//! With K = 1 this is the paper's loop. With K > 1 the stores to the array wait for the fence of
//! their group, or the fence would order nothing.

use super::instructions::{
    Append, Barrier, Cached, Clflush, ClflushOpt, Clwb, LINE, Locked, Mfence, Movdir64b, Movdiri,
    Movnti4, Movnti8, NoBarrier, NoFlush, Nt32, Nt64, Precomputed, Rand, Sfence, Source,
    SourceState, Staged, WriteBack, Xorshift, word,
};
use crate::words::{Array, Fence, Logging, Values, Variant};

/// What a loop is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// How entries are written.
    pub variant: Variant,
    /// Entries before a fence, one of [`crate::words::ENTRIES`].
    pub entries: usize,
    /// The fence.
    pub fence: Fence,
    /// Where values come from.
    pub values: Values,
    /// What is logged.
    pub logging: Logging,
    /// Whether the array is written back, too.
    pub array: Array,
}

/// A compiled loop: does `groups` groups from where the walk stands.
pub type Loop = unsafe fn(walk: &mut Walk, groups: usize);

/// Where a loop is in its array and its log. A later call goes on where the last one stopped.
pub struct Walk {
    /// The array, and its number of elements, a multiple of 16.
    pub array: *mut u32,
    /// Elements of the array.
    pub items: usize,
    /// The log, and its bytes, a multiple of every stride.
    pub log: *mut u8,
    /// Bytes of the log.
    pub log_bytes: usize,
    /// The element that is next.
    pub index: usize,
    /// Where in the log the next group goes.
    pub at: usize,
    /// The values.
    pub source: SourceState,
    /// A word on a line of its own, for locked instructions.
    pub own: Box<OwnLine>,
}

/// A word on a line of its own.
#[repr(align(64))]
#[derive(Default)]
pub struct OwnLine(pub u64);

/// Bytes of log that a group takes: whole lines where lines are written.
pub fn stride(variant: Variant, entries: usize) -> usize {
    if variant.writes_lines() { (entries * 8).max(LINE) } else { entries * 8 }
}

/// Does something for each entry of a group, written out: a loop would be unrolled or not, as the
/// compiler likes, and its branches measured.
macro_rules! each {
    ($entry:ident of $count:ident => $body:expr) => {
        each!(@ $entry $count $body, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $entry:ident $count:ident $body:expr, $($number:literal)+) => {
        $(if $number < $count {
            let $entry: usize = $number;
            $body;
        })+
    };
}

/// The loop. See the module for what it does.
///
/// # Safety
/// The walk's array and log are mapped, as large as it says, and aligned to lines; the processor
/// has every instruction of the combination.
#[inline(never)]
unsafe fn run<A, F, V, W, const K: usize, const UNDO: bool>(walk: &mut Walk, groups: usize)
where
    A: Append,
    F: Barrier,
    V: Source,
    W: WriteBack,
{
    let stride = if A::LINES { (K * 8).max(LINE) } else { K * 8 };
    let Walk { array, items, log, log_bytes, mut index, mut at, mut source, .. } = *walk;
    let mut lines = [const { Staged([0; 8]) }; 2];
    for _ in 0..groups {
        // SAFETY: `index` and `at` stay below the sizes, which are multiples of what is added, and
        // the caller says the rest.
        unsafe {
            let element = array.add(index);
            let place = log.add(at);
            let mut values = [0; K];
            each!(entry of K => {
                values[entry] = V::next(&mut source);
                let logged =
                    if UNDO { element.add(entry).read_volatile() } else { values[entry] };
                let key = (index + entry) as u32;
                if A::LINES {
                    let staged = &raw mut lines[entry / 8].0[entry % 8];
                    staged.write_volatile(word(key, logged));
                } else {
                    A::entry(place.add(entry * 8), key, logged);
                }
            });
            for (line, staged) in lines.iter().enumerate().take(stride.div_ceil(LINE)) {
                if A::LINES {
                    A::line(place.add(line * LINE), staged);
                }
                A::Flush::line(place.add(line * LINE));
            }
            F::execute(&mut walk.own.0);
            each!(entry of K => element.add(entry).write_volatile(values[entry]));
            W::line(element.cast());
        }
        index += K;
        if index == items {
            index = 0;
        }
        at += stride;
        if at == log_bytes {
            at = 0;
        }
    }
    walk.index = index;
    walk.at = at;
    walk.source = source;
}

/// The loop of a combination.
///
/// # Panics
/// When the number of entries is none of [`crate::words::ENTRIES`].
pub fn select(kind: Kind) -> Loop {
    match kind.variant {
        Variant::Cached => by_fence::<Cached<NoFlush>, Clwb>(kind),
        Variant::Clwb => by_fence::<Cached<Clwb>, Clwb>(kind),
        Variant::ClflushOpt => by_fence::<Cached<ClflushOpt>, ClflushOpt>(kind),
        Variant::Clflush => by_fence::<Cached<Clflush>, Clflush>(kind),
        Variant::Movnti4 => by_fence::<Movnti4, Clwb>(kind),
        Variant::Movnti8 => by_fence::<Movnti8, Clwb>(kind),
        Variant::Movdiri => by_fence::<Movdiri, Clwb>(kind),
        Variant::Nt32 => by_fence::<Nt32, Clwb>(kind),
        Variant::Nt64 => by_fence::<Nt64, Clwb>(kind),
        Variant::Movdir64b => by_fence::<Movdir64b, Clwb>(kind),
    }
}

fn by_fence<A: Append, W: WriteBack>(kind: Kind) -> Loop {
    match kind.fence {
        Fence::Sfence => by_values::<A, W, Sfence>(kind),
        Fence::Mfence => by_values::<A, W, Mfence>(kind),
        Fence::Lock => by_values::<A, W, Locked>(kind),
        Fence::None => by_values::<A, W, NoBarrier>(kind),
    }
}

fn by_values<A: Append, W: WriteBack, F: Barrier>(kind: Kind) -> Loop {
    match kind.values {
        Values::Precomputed => by_entries::<A, W, F, Precomputed>(kind),
        Values::Xorshift => by_entries::<A, W, F, Xorshift>(kind),
        Values::Rand => by_entries::<A, W, F, Rand>(kind),
    }
}

fn by_entries<A: Append, W: WriteBack, F: Barrier, V: Source>(kind: Kind) -> Loop {
    match kind.entries {
        1 => by_rest::<A, W, F, V, 1>(kind),
        2 => by_rest::<A, W, F, V, 2>(kind),
        4 => by_rest::<A, W, F, V, 4>(kind),
        8 => by_rest::<A, W, F, V, 8>(kind),
        16 => by_rest::<A, W, F, V, 16>(kind),
        other => panic!("no loop has {other} entries before a fence"),
    }
}

fn by_rest<A: Append, W: WriteBack, F: Barrier, V: Source, const K: usize>(kind: Kind) -> Loop {
    match (kind.logging, kind.array) {
        (Logging::Redo, Array::Cached) => run::<A, F, V, NoFlush, K, false>,
        (Logging::Redo, Array::Flushed) => run::<A, F, V, W, K, false>,
        (Logging::Undo, Array::Cached) => run::<A, F, V, NoFlush, K, true>,
        (Logging::Undo, Array::Flushed) => run::<A, F, V, W, K, true>,
    }
}
