//! What a design is told, and what it answers: the arguments of its hooks, in the order in which
//! [`crate::design::Design`] has them.

use crate::controller::Notify;
use crate::meters::Class;
use crate::units::{CoreId, Cycle, Line, LineData, Page, TxId, Word};
use crate::workload::Flush;

/// What a hook answers: when the core may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At this cycle, which is not before the hook was called.
    Done(Cycle),
    /// When the design wakes it ([`wake`](crate::below::Below::wake)); until then it is parked.
    Wait,
}

impl Progress {
    /// This answer of a hook that was asked at a cycle; see [`not_before`].
    #[inline]
    pub(crate) fn not_before(self, design: &str, hook: &str, asked: Cycle) -> Progress {
        if let Progress::Done(at) = self {
            not_before(design, hook, asked, at);
        }
        self
    }
}

/// An answer of a hook that was asked at a cycle.
///
/// # Panics
/// When it is before that: a design that answers so is wrong, and its times would be, too.
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
    /// When every earlier store has left the core, which may be later than `at`: what follows the
    /// stores, as a commit record does, leaves at the later of the two. Of one that ends every
    /// earlier load has its value by then, too.
    pub stored: Cycle,
}

/// Who gives a transaction up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// Its program. It ends next, as a transaction that stored nothing.
    ByProgram,
    /// Its library, which goes on with it in software: further stores of it are plain ones.
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
    /// What the word was.
    pub old: u64,
    /// What it is now.
    pub new: u64,
    /// When.
    pub at: Cycle,
    /// When it leaves the core: its line is there, and stores before it have left.
    pub leaves: Cycle,
    /// It goes past the caches: its line did not come to the core, so no
    /// [`transfer`](crate::design::Design::transfer) or [`fill`](crate::design::Design::fill) tells
    /// of whoever stored there before.
    pub past_caches: bool,
}

/// A page that a core's TLB is to gain.
#[derive(Clone, Copy, Debug)]
pub struct TlbFill {
    /// The core.
    pub core: CoreId,
    /// The page.
    pub page: Page,
    /// When the walk has read the page table.
    pub at: Cycle,
}

/// A page that a core's TLBs lose.
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
    /// When its address is translated, which may be later than now.
    pub at: Cycle,
}

/// What a design answers to a [`Claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// The store may be made: it asks for its line, and leaves the core, at this cycle at the
    /// earliest.
    At(Cycle),
    /// The core asks again when it is woken by [`retry`](crate::below::Below::retry).
    Wait,
    /// The transaction is more than the design can keep apart.
    Refused,
}

/// What a program asks for besides loads and stores.
#[derive(Clone, Copy, Debug)]
pub struct Fence {
    /// The core.
    pub core: CoreId,
    /// What it asks for.
    pub kind: FenceKind,
    /// When.
    pub at: Cycle,
    /// When every earlier store has left the core and every earlier load has its value.
    pub drained: Cycle,
}

/// The kinds of what a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// That a line be written back, for the given reason, in the given way.
    Flush(Line, Class, Flush),
    /// That earlier stores survive if later ones do (sfence, ofence).
    Order,
    /// That earlier stores are durable (sfence, dfence).
    Durable,
}

/// A line that came to a core.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    /// The core that asked for it.
    pub core: CoreId,
    /// The line.
    pub line: Line,
    /// Whether it came from memory, and not from the last level. A design that has newer bytes
    /// elsewhere reads them there ([`Memory::read`](crate::controller::Memory::read)): from `asked`
    /// on beside the line, or after it from `at` on.
    pub memory: bool,
    /// Whether the core means to write.
    pub write: bool,
    /// When its controller was asked for it, or, if it came from the last level, when that had it.
    pub asked: Cycle,
    /// When the core would have it, counted from the turn in which it asks.
    pub at: Cycle,
    /// The cycles before `at` at which it is there for the core: an access that dispatched behind a
    /// store that waits for a fence asks in its turn, and is answered as if it had asked then.
    /// [`Store::leaves`] and [`Tx::stored`] know of it.
    pub earlier: u64,
}

/// A line that leaves a level of a core's own.
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

/// What becomes of a dirty line that leaves the caches. A design that redirects it, or holds it
/// back, takes it and sends it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition<E> {
    /// It leaves for its place in memory at `at`, and `notify` is told when it is durable there.
    Home {
        /// When it leaves.
        at: Cycle,
        /// Who is told.
        notify: Notify<E>,
    },
    /// The design has it, or drops it. Loads are answered from the simulator's view all the same:
    /// in [`fill`](crate::design::Design::fill) the design charges for where the bytes come from,
    /// and nothing checks that. Bytes that were stored outside of transactions go with the line,
    /// too: a design that drops or masks it is to send those, or to say that it does not
    /// (docs/fidelity/decisions.md). Nothing is promised of them, so that no campaign sees it.
    Taken,
}

/// A line that changes owner.
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
    /// When the new owner would have it, counted from the turn in which it asks.
    pub at: Cycle,
    /// The cycles before `at` at which it is there for the new owner, as of [`Fill::earlier`].
    pub earlier: u64,
}
