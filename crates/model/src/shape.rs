//! What a design and its recovery may know of the machine.

use crate::config::Config;
use crate::units::CoreId;

/// What a design and its recovery may know of the machine.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Cores.
    pub cores: u8,
    /// Bytes of persistent memory.
    pub capacity: u64,
    /// Where the logs begin; data lie before.
    pub log_base: u64,
    /// Bytes of log that each core has.
    pub log_bytes: u64,
    /// Memory controllers.
    pub controllers: u8,
    /// Cycles from a core to a controller, past the caches.
    pub path: u64,
    /// Cycles from a core to a controller through every level of the caches.
    pub walk: u64,
    /// How long the caches take.
    pub times: Times,
    /// The machine, completely.
    pub config: Config,
}

/// Cycles that each level of the caches adds.
#[derive(Clone, Copy, Debug)]
pub struct Times {
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
        let times = Times {
            l1: config.cycles(config.l1d.latency),
            l2: config.cycles(config.l2.latency),
            llc: config.cycles(config.llc.latency),
            transfer: config.cycles(config.llc.transfer),
        };
        Shape {
            cores,
            capacity: pm.capacity,
            log_base: pm.capacity - pm.log * u64::from(cores),
            log_bytes: pm.log,
            controllers: config.controller.count as u8,
            path,
            walk: times.l1 + times.l2 + times.llc + path,
            times,
            config: config.clone(),
        }
    }

    /// Where a core's log begins.
    pub fn log_of(&self, core: CoreId) -> u64 {
        self.log_base + self.log_bytes * u64::from(core.0)
    }
}
