//! What a design and its recovery may know of the machine.

use crate::config::Config;
use crate::units::{CoreId, LINE_BYTES, Line};

/// What a design and its recovery may know of the machine.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Cores.
    pub cores: u8,
    /// Bytes of persistent memory.
    pub capacity: u64,
    /// The address at which the logs begin; data lie before it.
    pub log_base: u64,
    /// Bytes of log that each core has.
    pub log_bytes: u64,
    /// Bytes from the beginning of a core's log to that of the next one.
    log_spacing: u64,
    /// Memory controllers.
    pub controllers: u8,
    /// Cycles from a core to a controller, past the caches, for persistent memory: over the link,
    /// if there is one.
    pub path: u64,
    /// Cycles from a core to a controller, past the caches, for volatile memory, which is on the
    /// processor's own channels.
    pub near: u64,
    /// Cycles from a core to a controller of persistent memory through every level of the caches.
    pub walk: u64,
    /// How long the caches take.
    pub times: CacheLatencies,
    /// The machine, completely.
    pub config: Config,
}

/// Cycles that each level of the caches adds.
#[derive(Clone, Copy, Debug)]
pub struct CacheLatencies {
    /// The first level.
    pub l1: u64,
    /// The second level.
    pub l2: u64,
    /// The last level.
    pub llc: u64,
    /// Another core's cache.
    pub transfer: u64,
}

impl Shape {
    /// The machine of the given parameters, with so many cores.
    pub fn new(config: &Config, cores: u8) -> Shape {
        let pm = &config.pm;
        let path = config.cycles(config.controller.path + config.controller.link);
        let times = CacheLatencies {
            l1: config.cycles(config.l1d.latency),
            l2: config.cycles(config.l2.latency),
            llc: config.cycles(config.llc.latency),
            transfer: config.cycles(config.llc.transfer),
        };
        let log_spacing = log_spacing(config);
        Shape {
            cores,
            capacity: pm.capacity,
            log_base: pm.capacity - log_spacing * (u64::from(cores) - 1) - pm.log,
            log_bytes: pm.log,
            log_spacing,
            controllers: config.controller.count as u8,
            path,
            near: config.cycles(config.controller.path),
            walk: times.l1 + times.l2 + times.llc + path,
            times,
            config: config.clone(),
        }
    }

    /// Cycles from a core to the controller of a line, past the caches.
    #[inline]
    pub fn path_to(&self, line: Line) -> u64 {
        if line.is_persistent() { self.path } else { self.near }
    }

    /// Cycles from one controller to another. With one controller there is no such way.
    pub fn hop(&self) -> u64 {
        if self.controllers == 1 { 0 } else { self.path }
    }

    /// Whether any line of the caches survives a power failure, and with it what a design keeps of
    /// its stores.
    pub fn caches_survive(&self) -> bool {
        self.config.caches_survive()
    }

    /// Whether every line of the caches survives, so that stores are durable when they are visible.
    pub fn every_cache_survives(&self) -> bool {
        let is_enough = self.config.controller.flush_bytes >= self.config.cache_bytes(self.cores);
        is_enough && self.caches_survive()
    }

    /// How many lines of the caches are saved when the power fails.
    pub fn lines_saved(&self) -> u64 {
        if self.caches_survive() { self.config.controller.flush_bytes / LINE_BYTES } else { 0 }
    }

    /// Where a core's log begins.
    pub fn log_of(&self, core: CoreId) -> u64 {
        self.log_base + self.log_spacing * u64::from(core.0)
    }
}

/// Returns how far apart the logs begin. If that were their size, mostly a power of two, all would
/// begin in one bank of one controller, and so would what cores write most often, their marks. So
/// each begins one controller and one bank behind the one before (ours; software has its pages
/// where the system gives them). Logs that are smaller than one round of all banks lie close
/// together.
fn log_spacing(config: &Config) -> u64 {
    let (log, piece, controllers) = (config.pm.log, config.pm_piece(), config.controller.count);
    let interleave = if controllers == 1 { 0 } else { config.controller.interleave };
    let round = controllers * interleave.max(piece * config.pm.banks);
    if round > log {
        return log;
    }
    let turn = interleave + if piece < interleave { piece } else { piece * controllers };
    log + (turn + round - log % round) % round
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::KIB;

    fn logs(change: impl FnOnce(&mut Config)) -> (Config, Vec<u64>) {
        let mut config = Config::default();
        change(&mut config);
        let shape = Shape::new(&config, 8);
        let logs: Vec<u64> = (0..8).map(|core| shape.log_of(CoreId(core))).collect();
        assert!(logs.windows(2).all(|two| two[0] + shape.log_bytes <= two[1]));
        assert!(logs[0] == shape.log_base && logs[7] + shape.log_bytes <= shape.capacity);
        (config, logs)
    }

    #[test]
    fn logs_begin_in_banks_of_their_own() {
        for log in [4096 * KIB, 4101 * KIB] {
            let (config, logs) = logs(|config| config.pm.log = log);
            let pieces = logs.iter().map(|log| log / config.pm_piece() % config.pm.banks);
            assert_eq!(pieces.collect::<BTreeSet<_>>().len() as u64, config.pm.banks.min(8));
        }
    }

    #[test]
    fn logs_begin_at_controllers_in_turn() {
        for interleave in [64, 256, 4 * KIB] {
            let (config, logs) = logs(|config| {
                (config.controller.count, config.controller.interleave) = (4, interleave);
            });
            let places = logs.iter().map(|log| {
                let own = log / (interleave * 4) * interleave + log % interleave;
                (log / interleave % 4, own / config.pm_piece() % config.pm.banks)
            });
            let places: Vec<_> = places.collect();
            let turns: BTreeSet<_> = places[..4].iter().map(|place| place.0).collect();
            assert_eq!(turns.len(), 4, "{interleave}: {places:?}");
            assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 8, "{interleave}: {places:?}");
        }
    }

    #[test]
    fn small_logs_lie_close_together() {
        let (_, logs) = logs(|config| config.pm.log = KIB);
        assert!(logs.windows(2).all(|two| two[0] + KIB == two[1]));
    }
}
