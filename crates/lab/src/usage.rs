//! How busy the machine was, as the fields of a row.

use model::report::{Accesses, LastLevel, Report};
use model::usage::{BankUse, Durations, Usage};
use serde_json::{Value, json};

/// What the cores asked of the caches, and what the caches did not have. Misses of a level are
/// accesses that go on to the next: loads, stores and page walks whose line is not there, or must
/// not be changed there. The last level's dirty lines are a share of all that it has room for.
pub fn caches(accesses: &Accesses, last_level: &LastLevel) -> Value {
    let LastLevel { lines, dirty_at_start, dirty_at_end } = *last_level;
    json!({
        "loads": accesses.loads,
        "stores": accesses.stores,
        "flushes": accesses.flushes,
        "fences": accesses.fences,
        "page_walks": accesses.walks,
        "l1d_misses": accesses.l1_misses(),
        "l2_misses": accesses.l2_misses(),
        "llc_misses": accesses.llc_misses(),
        "llc_misses_pm": accesses.in_pm,
        "from_other_cores": accesses.elsewhere,
        "pm_evictions": accesses.pm_evictions,
        "dram_evictions": accesses.dram_evictions,
        "llc_dirty_share_at_start": share(dirty_at_start, lines),
        "llc_dirty_share_at_end": share(dirty_at_end, lines),
    })
}

/// How full the write-pending queues were, and how long reads and writes took at the controllers.
pub fn controllers(usage: &Usage) -> Value {
    let Usage { controllers, wpq, waited, pm_reads, dram_reads, .. } = usage;
    json!({
        "wpq_size": wpq.places / controllers,
        "wpq_entries_mean": share(wpq.sum, wpq.cycles),
        "wpq_entries_max": wpq.most,
        "wpq_full_share": share(wpq.full, wpq.cycles),
        "write_wait_cycles": times(waited),
        "pm_read_cycles": times(pm_reads),
        "dram_read_cycles": times(dram_reads),
    })
}

/// How busy the banks of a kind of memory were. What is booked when the run ends may go on after
/// it, and is counted with the run, so a share of a short run may exceed 1.
pub fn banks(banks: &BankUse, report: &Report) -> Value {
    let all = report.cycles * banks.busy.len() as u64;
    let busiest = banks.busy.iter().max().copied().unwrap_or(0);
    json!({
        "busy_share": share(banks.busy.iter().sum(), all),
        "busiest_share": share(busiest, report.cycles),
        "bus_share": share(banks.bus, report.cycles * report.usage.controllers),
        "reads": banks.reads,
        "row_hits": banks.row_hits,
    })
}

/// How long something took; null where it never happened.
fn times(times: &Durations) -> Value {
    let is_known = times.count > 0;
    json!({
        "count": times.count,
        "mean": is_known.then(|| share(times.sum, times.count)),
        "max": is_known.then_some(times.max),
    })
}

fn share(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}
