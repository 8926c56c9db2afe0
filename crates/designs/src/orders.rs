//! Ordering hardware without structures of its own: x86's clwb and sfence, caches that survive,
//! and no ordering at all. Hardware with structures has a file of its own.

use model::controller::Notify;
use model::design::Location::{AtCore, Elsewhere};
use model::design::{
    Bare, Below, Card, Design, Durability, Fence, FenceKind, Granularity, KeptBy, Model, Needs,
    NoParams, NoRules, Ordering, Progress, Setup, Structure,
};
use model::device::Write;
use model::meters::Class;
use model::units::Line;
use model::workload::Flush;

/// What the three designs have in common, as a card: they order, and leave atomicity to a log.
const fn card(name: &'static str, summary: &'static str, needs: Needs) -> Card {
    Card {
        name,
        paper: "none",
        family: "ordering",
        summary,
        file: file!(),
        durability: Durability::None,
        granularity: Granularity::Word,
        needs,
    }
}

/// Evictions that could have happened: any dirty line may leave the caches at any time.
pub(crate) fn evictions<E: Copy>(
    below: &Below<E>,
    arrived: &mut dyn FnMut() -> bool,
) -> Vec<Write> {
    let dirty = below.caches.dirty_lines().into_iter().filter(|line| line.is_persistent());
    let leaves = dirty.filter(|_| arrived());
    let class = Class::HomeWriteBack;
    leaves.map(|line| Write::whole(line, below.line(line), class)).collect()
}

/// Flushes a line as x86 does: writes it back, and the core's next fence waits for that. A flush
/// that evicts in order is a fence itself.
pub(crate) fn flush<E: Copy>(
    fence: &Fence,
    (line, class, how): (Line, Class, Flush),
    below: &mut Below<E>,
) -> Progress {
    flush_to(fence, (line, class, how), line, below)
}

/// Flushes a line that lies elsewhere in persistent memory in the same way.
pub(crate) fn flush_to<E: Copy>(
    fence: &Fence,
    (line, class, how): (Line, Class, Flush),
    to: Line,
    below: &mut Below<E>,
) -> Progress {
    let at = fence.drained;
    match line.is_persistent() {
        true => _ = below.flush_to(at, line, to, how, class, Notify::Core(fence.core)),
        false => below.flush(fence.core, at, line, how, class),
    }
    match how {
        Flush::EvictInOrder => below.fence(fence.core, fence.drained),
        _ => Progress::Done(fence.at),
    }
}

/// x86: `clwb` (or `clflushopt`, or `clflush`, which waits by itself) writes a line back, and
/// `sfence` waits until every such line has been accepted by a controller (Intel's manual, and
/// ADR).
pub struct X86 {
    rules: X86Rules,
}

model::rules! {
    /// What keeps the order of stores.
    pub struct X86Rules {
        /// A flush writes the line back.
        flush_writes_back,
        /// A fence waits until every line that was flushed is durable.
        fence_waits,
    }
}

impl Design for X86 {
    const CARD: Card = card("x86", "clwb and sfence", Needs::Nothing);
    const ORDERING: Ordering =
        Ordering { model: Some(Model::Fenced), fences: true, flushes: true, lines_leave: true };
    const MIGRATES: bool = true;
    type Params = NoParams;
    type Rules = X86Rules;
    type Event = ();
    type Library = Bare;

    fn new(setup: &Setup<'_, X86>) -> X86 {
        X86 { rules: setup.rules.clone() }
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<()>) -> Progress {
        match fence.kind {
            FenceKind::Flush(..) if !self.rules.flush_writes_back => Progress::Done(fence.at),
            FenceKind::Flush(line, class, how) => flush(fence, (line, class, how), below),
            FenceKind::Order | FenceKind::Durable if !self.rules.fence_waits => {
                Progress::Done(fence.at)
            }
            // There is one fence, so an order costs what durability costs.
            FenceKind::Order | FenceKind::Durable => below.fence(fence.core, fence.drained),
        }
    }

    fn could_be_durable(&self, below: &Below<()>, arrived: &mut dyn FnMut() -> bool) -> Vec<Write> {
        evictions(below, arrived)
    }
}

/// Caches that survive (eADR): a store is durable when it is visible, and x86 makes stores visible
/// in order, so there is nothing to flush and nothing to wait for. Stores past the caches are the
/// exception: write-combining buffers are lost, and a fence waits until what they held has been
/// accepted (ours).
pub struct Eadr {
    rules: EadrRules,
}

model::rules! {
    /// What keeps the order of stores past the caches.
    pub struct EadrRules {
        /// A fence waits until earlier stores past the caches are durable.
        fence_waits,
    }
}

impl Design for Eadr {
    const CARD: Card = card("eadr", "caches that survive", Needs::Eadr);
    const ORDERING: Ordering = Ordering { model: Some(Model::Visible), ..Ordering::NONE };
    const MIGRATES: bool = true;
    type Params = NoParams;
    type Rules = EadrRules;
    type Event = ();
    type Library = Bare;

    fn new(setup: &Setup<'_, Eadr>) -> Eadr {
        Eadr { rules: setup.rules.clone() }
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<()>) -> Progress {
        match fence.kind {
            FenceKind::Order | FenceKind::Durable
                if self.rules.fence_waits && below.has_unacknowledged(fence.core, fence.at) =>
            {
                below.fence(fence.core, fence.drained)
            }
            _ => Progress::Done(fence.at),
        }
    }

    fn hardware(setup: &Setup<'_, Eadr>) -> Vec<Structure> {
        let (config, cores) = (&setup.shape.config, u64::from(setup.shape.cores));
        let cache = |name, bytes: u64, count, place| {
            Structure::new(name, 8 * bytes, count, place).kept(KeptBy::Eadr)
        };
        vec![
            cache("first-level data cache", config.l1d.size, cores, AtCore("first-level cache")),
            cache("second-level cache", config.l2.size, cores, Elsewhere("second-level cache")),
            cache("last-level cache", config.llc.size, 1, Elsewhere("last-level cache")),
        ]
    }
}

/// No ordering: flushes and fences are free and do nothing. The denominator that keeps a log's
/// stores and none of its waiting (HOPS's "ideal", ASPLOS'17); not crash consistent.
pub struct Ideal;

impl Design for Ideal {
    const CARD: Card = card("ideal", "free flushes and fences that do nothing", Needs::Nothing);
    const ORDERING: Ordering =
        Ordering { model: Some(Model::Unordered), lines_leave: true, ..Ordering::NONE };
    const MIGRATES: bool = true;
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Ideal>) -> Ideal {
        Ideal
    }

    fn could_be_durable(&self, below: &Below<()>, arrived: &mut dyn FnMut() -> bool) -> Vec<Write> {
        evictions(below, arrived)
    }
}
