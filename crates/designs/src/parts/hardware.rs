//! What a log in memory adds to the hardware.

use model::design::Location::{AtCore, Elsewhere};
use model::design::{KeptBy, Shape, Structure};
use model::units::LINE_BYTES;

/// The buffer of a log, and its registers. Where the caches survive a power failure, the records
/// that are not accepted survive, too, since they are the undo data of stores that survive.
pub fn buffer(shape: &Shape, size: u64) -> Vec<Structure> {
    let cores = u64::from(shape.cores);
    let kept = if shape.caches_survive() { KeptBy::Battery } else { KeptBy::Nothing };
    let line = |name, count| {
        Structure::new(name, 8 * LINE_BYTES, count, Elsewhere("memory controller")).kept(kept)
    };
    let mut structures =
        vec![line("log buffer line", size), line("record on its way to the log buffer", cores + 1)];
    structures.extend(registers(shape));
    structures
}

/// The registers of a log.
pub fn registers(shape: &Shape) -> Vec<Structure> {
    let cores = u64::from(shape.cores);
    vec![
        Structure::new("log head and tail", 2 * 64, 1, Elsewhere("memory controller")),
        Structure::new(
            "transaction id register",
            16,
            cores,
            AtCore("first-level cache controller"),
        ),
        Structure::new("thread id", 8, cores, AtCore("first-level cache controller")),
    ]
}
