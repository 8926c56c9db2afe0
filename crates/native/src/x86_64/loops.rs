//! The loop of the paper's Figure 1, compiled once for every combination of choices. The loop of a
//! combination is selected before it is measured, so that it contains no branch on a choice.
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
//! With K = 1 this is the paper's loop. With K > 1 the stores to the array come after the fence of
//! their group, since otherwise the fence would order nothing.

use super::instructions::{
    Append, Barrier, Cached, Clflush, ClflushOpt, Clwb, LINE, Locked, Mfence, Movdir64b, Movdiri,
    Movnti4, Movnti8, NoBarrier, NoFlush, Nt32, Nt64, Precomputed, Rand, Sfence, Source,
    SourceState, Staged, WriteBack, Xorshift, word,
};
use crate::words::{Array, Fence, Logging, Values, Variant};

/// The combination of choices for which a loop is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The way in which entries are written.
    pub variant: Variant,
    /// Entries before a fence, one of [`crate::words::ENTRIES`].
    pub entries: usize,
    /// The fence.
    pub fence: Fence,
    /// The source of values.
    pub values: Values,
    /// The contents of entries.
    pub logging: Logging,
    /// The treatment of the array's stores.
    pub array: Array,
}

/// A compiled loop, which does `groups` groups from the walk's present place.
pub type Loop = unsafe fn(walk: &mut Walk, groups: usize);

/// The place of a loop in its array and its log, where the next call goes on.
pub struct Walk {
    /// The array.
    pub array: *mut u32,
    /// The number of its elements, a multiple of 16.
    pub items: usize,
    /// The log.
    pub log: *mut u8,
    /// The bytes of the log, a multiple of every stride.
    pub log_bytes: usize,
    /// The index of the next element.
    pub index: usize,
    /// The offset of the next group in the log.
    pub at: usize,
    /// The state of the source of values.
    pub source: SourceState,
    /// A word on a line of its own, for locked instructions.
    pub own: Box<OwnLine>,
}

/// A word on a line of its own.
#[repr(align(64))]
#[derive(Default)]
pub struct OwnLine(pub u64);

/// Returns the bytes of log that a group takes: whole lines for variants that write lines.
pub fn stride(variant: Variant, entries: usize) -> usize {
    if variant.writes_lines() { (entries * 8).max(LINE) } else { entries * 8 }
}

/// Repeats an expression for each entry of a group. It is written out because the compiler might
/// not unroll a loop, whose branches would then be measured, too.
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
        // SAFETY: `index` and `at` stay below the sizes, which are multiples of the steps; the
        // caller promises the rest.
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

/// Returns the loop of a combination.
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
