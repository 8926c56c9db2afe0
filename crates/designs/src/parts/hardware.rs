//! What a log in memory adds to the hardware.

use model::design::{KeptBy, Shape, Structure};
use model::units::LINE_BYTES;

/// The buffer of a log, and its registers. Where the caches survive a power failure, the records
/// that are not accepted survive, too, since they are the undo data of stores that survive.
pub fn buffer(shape: &Shape, size: u64) -> Vec<Structure> {
    let cores = u64::from(shape.cores);
    let kept = if shape.caches_survive() { KeptBy::Battery } else { KeptBy::Nothing };
    let at_controller = |name, bits, count, kept_by| {
        let place = "memory controller";
        Structure { name, bits, count, place, kept_by }
    };
    let mut structures = vec![
        at_controller("log buffer line", 8 * LINE_BYTES, size, kept),
        at_controller("record on its way to the log buffer", 8 * LINE_BYTES, cores + 1, kept),
    ];
    structures.extend(registers(shape));
    structures
}

/// The registers of a log.
pub fn registers(shape: &Shape) -> Vec<Structure> {
    let cores = u64::from(shape.cores);
    let register = |name, bits, count, place| {
        let kept_by = KeptBy::Nothing;
        Structure { name, bits, count, place, kept_by }
    };
    vec![
        register("log head and tail", 2 * 64, 1, "memory controller"),
        register("transaction id register", 16, cores, "first-level cache controller"),
        register("thread id", 8, cores, "first-level cache controller"),
    ]
}
