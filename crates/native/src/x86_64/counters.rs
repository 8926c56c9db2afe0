//! The processor's counters, through `perf_event_open`. A missing counter is reported as
//! unsupported, with the reason, and never as a zero.

use std::io;
use std::time::Duration;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Event, Raw};
use perf_event::{Builder, Counter};
use serde_json::{Value, json};

/// The text in place of a missing count.
pub const UNSUPPORTED: &str = "unsupported";

/// L1D_PEND_MISS.FB_FULL, cycles in which a request found no fill buffer: event 48h, mask 02h, on
/// Intel's cores from Nehalem to Sapphire Rapids (Intel SDM, volume 3, performance events). Other
/// makers have no event of that name.
const FILL_BUFFER_FULL: u64 = 0x0248;

/// The counters of one thread.
pub struct Counters {
    loads: io::Result<Counter>,
    misses: io::Result<Counter>,
    fill_buffer_full: io::Result<Counter>,
}

impl Counters {
    /// Opens the calling thread's counters, which do not count yet.
    pub fn open(vendor: &str) -> Counters {
        let last_level = |result| Cache { which: CacheId::LL, operation: CacheOp::READ, result };
        Counters {
            loads: open(last_level(CacheResult::ACCESS)),
            misses: open(last_level(CacheResult::MISS)),
            fill_buffer_full: match vendor {
                "GenuineIntel" => open(Raw::new(FILL_BUFFER_FULL)),
                _ => Err(io::Error::other("an event of Intel's processors alone")),
            },
        }
    }

    /// Starts the counters, or stops them.
    pub fn count(&mut self, on: bool) {
        for counter in [&mut self.loads, &mut self.misses, &mut self.fill_buffer_full] {
            let Ok(open) = counter else { continue };
            let done = if on { open.enable() } else { open.disable() };
            if let Err(error) = done {
                *counter = Err(error);
            }
        }
    }

    /// Returns the counts since the counters were opened.
    pub fn read(&mut self) -> Counted {
        Counted {
            loads: read(&mut self.loads),
            misses: read(&mut self.misses),
            fill_buffer_full: read(&mut self.fill_buffer_full),
        }
    }

    /// Returns why the last level is not counted, in a sentence; `None` if it is.
    pub fn complaint(&self) -> Option<String> {
        let error = self.loads.as_ref().err().or(self.misses.as_ref().err())?;
        Some(match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "no permission (kernel.perf_event_paranoid is above 2)".into()
            }
            io::ErrorKind::NotFound => "the system has no counters of this processor".into(),
            _ => format!("perf_event_open: {error}"),
        })
    }
}

/// The counts; `None` where there is no counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    loads: Option<u64>,
    misses: Option<u64>,
    fill_buffer_full: Option<u64>,
}

impl Counted {
    /// Returns the counts for each of `entries` entries, as fields of a row.
    pub fn row(&self, entries: u64) -> Value {
        let each = |count: Option<u64>| match count {
            Some(count) => json!(count as f64 / entries.max(1) as f64),
            None => UNSUPPORTED.into(),
        };
        let miss_rate = match (self.loads, self.misses) {
            (Some(loads), Some(misses)) if loads > 0 => json!(misses as f64 / loads as f64),
            _ => UNSUPPORTED.into(),
        };
        json!({
            "llc_loads_per_entry": each(self.loads),
            "llc_misses_per_entry": each(self.misses),
            "llc_miss_rate": miss_rate,
            "fill_buffer_full_cycles_per_entry": each(self.fill_buffer_full),
        })
    }
}

fn open(event: impl Event) -> io::Result<Counter> {
    Builder::new(event).build()
}

fn read(counter: &mut io::Result<Counter>) -> Option<u64> {
    let counted = counter.as_mut().ok()?.read_full().ok()?;
    whole(counted.count(), counted.time_enabled()?, counted.time_running()?)
}

/// Returns the count that a counter would have had if it had run all of the time. A processor with
/// too few counters makes them take turns, so each counts a part; `None` if it never ran.
fn whole(count: u64, enabled: Duration, running: Duration) -> Option<u64> {
    let all = u128::from(count) * enabled.as_nanos();
    all.checked_div(running.as_nanos()).map(|whole| whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perf_event::events::Software;

    #[test]
    fn what_is_not_counted_is_no_zero() {
        let row = Counted::default().row(10);
        assert!(row.as_object().expect("an object").values().all(|value| value == UNSUPPORTED));
    }

    #[test]
    fn what_was_counted_in_turns_stands_for_all_of_the_time() {
        let [none, some, all] = [0, 3, 4].map(Duration::from_millis);
        assert_eq!(whole(600, all, all), Some(600));
        assert_eq!(whole(600, all, some), Some(800));
        assert_eq!(whole(0, all, none), None);
    }

    #[test]
    fn a_counter_that_exists_counts() {
        let Ok(counter) = open(Software::PAGE_FAULTS) else { return };
        let none = || Err(io::Error::other("none"));
        let mut counters =
            Counters { loads: Ok(counter), misses: none(), fill_buffer_full: none() };
        counters.count(true);
        std::hint::black_box(vec![1_u8; 8 << 20]);
        counters.count(false);
        let counted = counters.read();
        assert!(counted.loads.is_some_and(|faults| faults > 0), "{counted:?}");
        assert_eq!(counted.row(1)["llc_misses_per_entry"], UNSUPPORTED);
        assert!(counters.complaint().is_some());
    }
}
