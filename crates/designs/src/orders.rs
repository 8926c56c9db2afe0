//! Ordering hardware without structures of its own: x86's clwb and sfence, caches that survive,
//! and no ordering at all. Hardware with structures has a file of its own.

use model::design::{
    Bare, Below, Card, Design, Durability, Fence, FenceKind, Granularity, KeptBy, Needs, NoParams,
    NoRules, Progress, Setup, Structure,
};
use model::workload::Flush;

/// What the three have in common, as a card: they order, and leave atomicity to a log.
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

/// x86: `clwb` (or `clflushopt`, or `clflush`, which waits by itself) writes a line back, and `sfence` waits until every such line has been accepted by a
/// controller (specs/ordering.md section 3).
pub struct X86;

impl Design for X86 {
    const CARD: Card = card("x86", "clwb and sfence", Needs::Nothing);
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, X86>) -> X86 {
        X86
    }

    fn fence(&mut self, fence: &Fence, below: &mut Below<()>) -> Progress {
        match fence.kind {
            FenceKind::Flush(line, class, how) => {
                let keep = how == Flush::WriteBack;
                below.flush(fence.core, fence.drained, line, keep, class);
                match how {
                    Flush::EvictInOrder => below.fence(fence.core, fence.drained),
                    _ => Progress::Done(fence.at),
                }
            }
            // There is one fence, so an order costs what durability costs.
            FenceKind::Order | FenceKind::Durable => below.fence(fence.core, fence.drained),
        }
    }
}

/// Caches that survive (eADR): a store is durable when it is visible, and x86 makes stores visible
/// in order, so there is nothing to flush and nothing to wait for (specs/ordering.md section 10.2).
pub struct Eadr;

impl Design for Eadr {
    const CARD: Card = card("eadr", "caches that survive", Needs::Eadr);
    const HAS_FENCES: bool = false;
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Eadr>) -> Eadr {
        Eadr
    }

    fn hardware(setup: &Setup<'_, Eadr>) -> Vec<Structure> {
        let (config, cores) = (&setup.shape.config, u64::from(setup.shape.cores));
        let cache = |name, bytes: u64, count, place| Structure {
            name,
            bits: 8 * bytes,
            count,
            place,
            kept_by: KeptBy::Eadr,
        };
        vec![
            cache("first-level data cache", config.l1d.size, cores, "first-level cache"),
            cache("second-level cache", config.l2.size, cores, "second-level cache"),
            cache("last-level cache", config.llc.size, 1, "last-level cache"),
        ]
    }
}

/// No ordering: flushes and fences are free and do nothing. The denominator that keeps a log's
/// stores and none of its waiting (specs/ordering.md section 3, IDEAL); not crash consistent.
pub struct Ideal;

impl Design for Ideal {
    const CARD: Card = card("ideal", "free flushes and fences that do nothing", Needs::Nothing);
    const HAS_FENCES: bool = false;
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Ideal>) -> Ideal {
        Ideal
    }
}
