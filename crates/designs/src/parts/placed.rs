//! Flushes and evictions under designs that decide which physical line holds a line.

use model::design::{Below, Fence, FenceKind, Progress};
use model::device::Write;
use model::units::Line;

use crate::orders::{evictions, flush_to};

/// Does what `clwb`, `clflushopt`, `clflush` and `sfence` do: writes a line back to where it lies.
pub fn fence<E: Copy>(
    fence: &Fence,
    locate: impl Fn(Line) -> Line,
    below: &mut Below<E>,
) -> Progress {
    match fence.kind {
        FenceKind::Flush(line, class, how) => {
            flush_to(fence, (line, class, how), locate(line), below)
        }
        FenceKind::Order | FenceKind::Durable => below.fence(fence.core, fence.drained),
    }
}

/// Evictions that could have happened: of any changed line, to where it lies.
pub fn could_be_evicted<E: Copy>(
    below: &Below<E>,
    locate: impl Fn(Line) -> Line,
    arrived: &mut dyn FnMut() -> bool,
) -> Vec<Write> {
    let mut writes = evictions(below, arrived);
    writes.iter_mut().for_each(|write| write.line = locate(write.line));
    writes
}
