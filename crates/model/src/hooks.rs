//! The arguments and answers of a design's hooks, in the order of [`crate::design::Design`].

use crate::controller::Notify;
use crate::meters::Class;
use crate::units::{CoreId, Cycle, Line, LineData, Page, TxId, Word};
use crate::workload::Flush;

/// A hook's answer: when the core may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At this cycle, which is not before the hook was called.
    Done(Cycle),
    /// When the design wakes the core ([`wake`](crate::below::Below::wake), or for a load
    /// [`wake_load`](crate::below::Below::wake_load)); until then the core is parked.
    Wait,
}

/// Checks the answer of a hook that was called at a cycle, and returns it.
///
/// # Panics
/// When the answer is before that cycle: the design is wrong, and all later times would be, too.
#[inline]
pub(crate) fn not_before(design: &str, hook: &str, asked: Cycle, answer: Cycle) -> Cycle {
    if answer < asked {
        too_early(design, hook, asked, answer);
    }
    answer
}

#[cold]
fn too_early(design: &str, hook: &str, asked: Cycle, answer: Cycle) -> ! {
    panic!(
        "design {design}: `{hook}` was asked at cycle {} and answered {}, which is before",
        asked.0, answer.0
    )
}

/// A transaction of a core, at the time at which it begins or ends.
#[derive(Clone, Copy, Debug)]
pub struct Tx {
    /// The core.
    pub core: CoreId,
    /// Its number.
    pub id: TxId,
    /// When.
    pub at: Cycle,
    /// When every earlier store has left the core, which may be later than `at`. A message that
    /// follows the stores, such as a commit record, leaves at the later of the two. At the end of a
    /// transaction every earlier load has its value by then, too.
    pub stored: Cycle,
}

/// Who gives up a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Its program. The transaction ends next, as one that stored nothing.
    ByProgram,
    /// Its library, which continues it in software: its further stores are plain ones.
    ByLibrary,
}

/// A load of an aligned word of persistent memory.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The word.
    pub word: Word,
    /// When the core has the value.
    pub at: Cycle,
}

/// A store to an aligned word of persistent memory; one to a part of it counts as the whole.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The word.
    pub word: Word,
    /// The word before the store.
    pub old: u64,
    /// The word after the store.
    pub new: u64,
    /// When it takes effect.
    pub at: Cycle,
    /// When it leaves the core: its line is there, and every earlier store has left.
    pub leaves: Cycle,
    /// Whether it goes past the caches. Its line did not come to the core then, so no
    /// [`transfer`](crate::design::Design::transfer) or [`fill`](crate::design::Design::fill) has
    /// told the design which core stored there before.
    pub past_caches: bool,
}

/// A page whose translation a core's TLB is about to gain.
#[derive(Clone, Copy, Debug)]
pub struct TlbFill {
    /// The core.
    pub core: CoreId,
    /// The page.
    pub page: Page,
    /// When the walk has read the page table.
    pub at: Cycle,
}

/// A page whose translation leaves a core's TLBs.
#[derive(Clone, Copy, Debug)]
pub struct TlbEvict {
    /// The core.
    pub core: CoreId,
    /// The page.
    pub page: Page,
    /// When.
    pub at: Cycle,
}

/// A store that a core is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The core.
    pub core: CoreId,
    /// The transaction that it belongs to, if any.
    pub tx: Option<TxId>,
    /// The line.
    pub line: Line,
    /// When the translation of its address is known, which may be later than now.
    pub at: Cycle,
}

/// A design's answer to a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The core may store. The store asks for its line, and leaves the core, no earlier than this
    /// cycle.
    At(Cycle),
    /// The core asks again when [`retry`](crate::below::Below::retry) wakes it.
    Wait,
    /// The transaction writes more than the design can track, and has to be given up.
    Refused,
}

/// A fence or a flush of a program.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// The core.
    pub core: CoreId,
    /// What the program asks for.
    pub kind: FenceKind,
    /// When.
    pub at: Cycle,
    /// When every earlier store has left the core and every earlier load has its value.
    pub drained: Cycle,
}

/// What a program asks for with a fence or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// That a line be written back: what the write counts as, and by which instruction.
    Flush(Line, Class, Flush),
    /// That earlier stores survive if later ones do (sfence, ofence).
    Order,
    /// That earlier stores are durable (sfence, dfence).
    Durable,
}

/// A line that comes to a core.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// The core that asked for it.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// Whether it comes from memory, and not from the last level. A design that keeps newer bytes
    /// of the line elsewhere reads them there
    /// ([`Memory::read`](crate::memory::Memory::read)): beside the line, from `asked` on, or
    /// after it, from `at` on.
    pub memory: bool,
    /// Whether the core means to write.
    pub write: bool,
    /// When the request reached its controller or, for a line from the last level, when that level
    /// had it.
    pub asked: Cycle,
    /// When the core would have it, counted from the core's turn.
    pub at: Cycle,
    /// How many cycles before `at` the core really has it. An access behind a store that waits for
    /// a fence asks in its turn, and is answered as if it had asked when it dispatched.
    /// [`Store::leaves`] and [`Tx::stored`] take that into account.
    pub earlier: u64,
}

/// A line that leaves one of a core's own cache levels.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// The core.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// When.
    pub at: Cycle,
}

/// A dirty line that leaves the caches.
#[derive(Clone, Copy, Debug)]
pub struct Evict {
    /// The line.
    pub line: Line,
    /// Its newest bytes.
    pub data: LineData,
    /// When it leaves the last level.
    pub at: Cycle,
}

/// What becomes of a dirty line that leaves the caches. A design that redirects a line, or holds it
/// back, takes it ([`Disposition::Taken`]) and sends it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<E> {
    /// The line leaves for its place in memory at `at`, and `notify` is told when it is durable.
    Home {
        /// When it leaves.
        at: Cycle,
        /// Who is told.
        notify: Notify<E>,
    },
    /// The design keeps the line, or drops it.
    ///
    /// Loads are answered from the simulator's view all the same. In
    /// [`fill`](crate::design::Design::fill) the design charges for the place that the bytes come
    /// from, and nothing checks that it does. The line also holds bytes that were stored outside of
    /// transactions: a design that drops or masks it must send those, or say that it does not
    /// (docs/fidelity/decisions.md). No durability is promised for them, so no campaign would
    /// notice.
    Taken,
}

/// A line that moves from one core's caches to another's.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The line.
    pub line: Line,
    /// The core that had it.
    pub from: CoreId,
    /// The core that gets it.
    pub to: CoreId,
    /// Whether the new owner means to write.
    pub write: bool,
    /// When the new owner would have it, counted from that core's turn.
    pub at: Cycle,
    /// How many cycles before `at` the new owner really has it, as in [`Fill::earlier`].
    pub earlier: u64,
}
