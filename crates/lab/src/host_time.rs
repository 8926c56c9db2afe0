//! How long the host takes.

use std::time::Instant;

use cpu_time::ThreadTime;

/// How long the host took for something.
#[derive(Clone, Copy, Debug)]
pub struct HostTime {
    /// By the clock, in seconds.
    pub seconds: f64,
    /// How long the thread had a processor, in seconds: less than by the clock if other threads had
    /// it, too.
    pub cpu: f64,
}

/// What measures the host's time: when that began, by the clock, and in processor time of this
/// thread.
#[derive(Clone, Copy)]
pub struct Stopwatch(Instant, ThreadTime);

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now(), ThreadTime::now())
    }

    /// Returns how long it has been.
    pub fn elapsed(&self) -> HostTime {
        HostTime { seconds: self.0.elapsed().as_secs_f64(), cpu: self.1.elapsed().as_secs_f64() }
    }
}
