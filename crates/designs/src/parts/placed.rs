//! Flushes and evictions under designs that decide which physical line holds a line.

use model::controller::Notify;
use model::design::{Below, Fence, FenceKind, Progress};
use model::device::Write;
use model::units::Line;
use model::workload::Flush;

use crate::orders::evictions;

/// What `clwb`, `clflushopt`, `clflush` and `sfence` do: a line is written back to where it lies.
pub fn fence<E: Copy>(
    fence: &Fence,
    locate: impl Fn(Line) -> Line,
    below: &mut Below<E>,
) -> Progress {
    let Fence { core, kind, at, drained } = *fence;
    match kind {
        FenceKind::Flush(line, class, how) => {
            let keep = how == Flush::WriteBack;
            if line.is_persistent() {
                below.write_back_to(drained, line, locate(line), keep, class, Notify::Core(core));
            } else {
                below.flush(core, drained, line, keep, class);
            }
            match how {
                Flush::EvictInOrder => below.fence(core, drained),
                _ => Progress::Done(at),
            }
        }
        FenceKind::Order | FenceKind::Durable => below.fence(core, drained),
    }
}

/// Any changed line could have been evicted, to where it lies.
pub fn could_be_evicted<E: Copy>(
    below: &Below<E>,
    locate: impl Fn(Line) -> Line,
    arrived: &mut dyn FnMut() -> bool,
) -> Vec<Write> {
    let mut writes = evictions(below, arrived);
    writes.iter_mut().for_each(|write| write.line = locate(write.line));
    writes
}
