//! What a run or a campaign found, as JSON rows.

use model::engine::Outcome;
use model::epochs::Totals;
use model::meters::{Class, Meters, Stall};
use model::params::Choice;
use model::report::{CoreTime, Report, Transactions, WriteSets};
use serde_json::{Map, Value, json};

use crate::configuration::{configuration, identity};
use crate::host_time::HostTime;
use crate::spec::Resolved;
use crate::usage;

/// The name of the commit latencies in a row.
pub const COMMIT_LATENCY: &str = "commit_latency_cycles";

/// What identifies a run that failed: it counted nothing that says anything.
pub fn unfinished(resolved: &Resolved) -> Value {
    json!({
        "design": resolved.design.card.name,
        "workload": resolved.workload_name,
        "machine": resolved.machine.name,
        "cores": resolved.cores,
        "seed": resolved.seed,
        "version": crate::version(),
        "domain": resolved.machine.config.controller.domain.name(),
        "durability": resolved.design.card.durability.name(),
        "notes": resolved.notes,
        "cancelled": false,
    })
}

/// The row of a run.
pub fn row(resolved: &Resolved, outcome: &Outcome, host: HostTime) -> Value {
    let report = &outcome.report;
    let frequency = resolved.machine.config.core.frequency as f64;
    let simulated = report.cycles as f64 / frequency;
    let transactions = &report.transactions;
    // An aborted transaction is no work done.
    let committed = transactions.ended - transactions.aborted;
    let card = &resolved.design.card;
    let energy = &report.meters.energy;
    let configuration = configuration(resolved);
    let mut row = json!({
        "design": card.name,
        "workload": resolved.workload_name,
        "machine": resolved.machine.name,
        "cores": resolved.cores,
        "txs": transactions.ended,
        "aborted": transactions.aborted,
        "seed": resolved.seed,
        "version": crate::version(),
        "id": identity(&configuration),
        "core_model": resolved.machine.config.core.model.name(),
        "domain": resolved.machine.config.controller.domain.name(),
        "cycles": report.cycles,
        "simulated_s": simulated,
        "instructions": report.cores.instructions,
        "throughput_tx_per_s": ratio(committed as f64, simulated),
        COMMIT_LATENCY: commit_latency(transactions),
        "durability": card.durability.name(),
        "pm_writes": writes(&report.meters),
        "pm_reads": report.meters.reads,
        "caches": usage::caches(&report.accesses, &report.last_level),
        "controllers": usage::controllers(&report.usage),
        "pm_banks": usage::banks(&report.usage.pm, report),
        "dram_banks": usage::banks(&report.usage.dram, report),
        "stalls": stalls(&report.cores),
        "write_set": write_set(&transactions.write_sets),
        "energy_uj": microjoules(energy.total()),
        "energy_by_uj": {
            "read": microjoules(energy.read),
            "set": microjoules(energy.set),
            "reset": microjoules(energy.reset),
        },
        "design_counters": counters(&report.counters),
        "notes": notes(resolved, report),
        "config": configuration,
        "cancelled": report.cancelled,
        "host": {
            "seconds": host.seconds,
            "cpu_seconds": host.cpu,
            "mem_ops": report.accesses.operations,
            "mem_ops_per_s": ratio(report.accesses.operations as f64, host.seconds),
            "peak_rss_mb": peak_rss_mb(),
        },
    });
    if report.cores.migrations > 0 {
        row["migrations"] = report.cores.migrations.into();
    }
    if let Some(totals) = &report.epochs {
        row["epochs"] = epochs(totals, transactions.ended);
    }
    row
}

/// Commit latencies in short, each null if there are none: a short run of an asynchronous design
/// may end before any transaction is durable.
fn commit_latency(transactions: &Transactions) -> Value {
    let latency = &transactions.commit_latency;
    let is_known = !latency.is_empty();
    let known = |cycles: u64| is_known.then_some(cycles);
    json!({
        "mean": is_known.then(|| latency.mean()),
        "p50": known(latency.value_at_quantile(0.5)),
        "p90": known(latency.value_at_quantile(0.9)),
        "p99": known(latency.value_at_quantile(0.99)),
        "p999": known(latency.value_at_quantile(0.999)),
        "max": known(latency.max()),
    })
}

/// The distribution of commit latencies: pairs of cycles and the share of commits that took no
/// longer. Both rise, up to the slowest commit and 1. Each value that occurred is there, with three
/// digits.
pub fn distribution(transactions: &Transactions) -> Value {
    let latency = &transactions.commit_latency;
    let mut upto = 0;
    let steps = latency.iter_recorded().map(|step| {
        upto += step.count_since_last_iteration();
        let cycles = step.value_iterated_to().min(latency.max());
        json!([cycles, ratio(upto as f64, latency.len() as f64)])
    });
    steps.collect()
}

/// What a reader of the row should know.
fn notes(resolved: &Resolved, report: &Report) -> Vec<String> {
    let mut notes = resolved.notes.clone();
    let transactions = &report.transactions;
    if transactions.commit_latency.is_empty() && transactions.ended > transactions.aborted {
        notes.push("no transaction was durable when the run ended: no commit latency".into());
    }
    let stored = transactions.write_sets.words + transactions.aborted;
    if resolved.workload.about.name == "replay" && stored == 0 {
        let told = "no transaction of the trace stored to persistent memory, so there was nothing \
                    to make atomic; a thread without transactions counts as one each time that it \
                    is done";
        notes.push(told.into());
    }
    notes
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}

fn microjoules(femtojoules: u128) -> f64 {
    femtojoules as f64 / 1e9
}

fn writes(meters: &Meters) -> Value {
    let by_class = |counts: &[u64]| -> Map<String, Value> {
        let counted = Class::ALL.iter().map(|&(class, name)| (name, counts[class as usize]));
        counted.map(|(name, count)| (name.into(), count.into())).collect()
    };
    json!({
        "wpq_bytes": meters.wpq_bytes_total(),
        "wpq_writes": meters.wpq_writes,
        "wpq_merged": meters.wpq_merged,
        "media_lines": meters.media_lines,
        "media_bits": meters.media_bits_total(),
        "media_fill_reads": meters.media_fill_reads,
        "wear_max": meters.wear_max,
        "by_class": by_class(&meters.wpq_bytes),
        "bits_by_class": by_class(&meters.media_bits),
    })
}

fn stalls(cores: &CoreTime) -> Value {
    let mut map = Map::new();
    map.insert("compute".into(), cores.compute.into());
    for (&(_, name), cycles) in Stall::ALL.iter().zip(cores.stalls) {
        map.insert(name.into(), cycles.into());
    }
    Value::Object(map)
}

fn write_set(sets: &WriteSets) -> Value {
    let average = |sum: u64| ratio(sum as f64, sets.transactions as f64);
    json!({
        "lines_avg": average(sets.lines),
        "lines_max": sets.lines_max,
        "pages_avg": average(sets.pages),
        "pages_max": sets.pages_max,
        "words_avg": average(sets.words),
        "words_max": sets.words_max,
        "stores_avg": average(sets.stores),
    })
}

/// Ordering points and epochs; a row has them if they were asked for.
fn epochs(totals: &Totals, transactions: u64) -> Value {
    let share = |count: u64| ratio(count as f64, totals.epochs as f64);
    let stores = totals.pm_stores + totals.dram_stores;
    json!({
        "ordering_points": totals.ordering_points,
        "epochs": totals.epochs,
        "epochs_per_tx": ratio(totals.epochs as f64, transactions as f64),
        "lines_per_epoch": share(totals.lines),
        "singleton_share": share(totals.singletons),
        "self_dependent_share": share(totals.self_dependent),
        "cross_dependent_share": share(totals.cross_dependent),
        "pm_stores": totals.pm_stores,
        "pm_store_share": ratio(totals.pm_stores as f64, stores as f64),
    })
}

fn counters(counters: &[(&'static str, u64)]) -> Value {
    counters.iter().map(|&(name, count)| (name.to_string(), Value::from(count))).collect()
}

/// The most memory that this process has had, in MB (2^20 bytes); 0 where the host does not say.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

#[cfg(test)]
mod tests {
    use model::meters::{CellEnergy, Meters};
    use model::report::{Accesses, LastLevel, latencies};
    use model::usage::{BankUse, Durations, Usage};

    use super::*;
    use crate::spec::{Spec, Usual};

    fn resolved(change: &str) -> Resolved {
        let spec = format!(
            r#"{{"design": "silo", "workload": "hash", "cores": 3,
                "settings": {{"core.frequency": "1GHz"}}{change}}}"#
        );
        Spec::read(&spec).and_then(|spec| spec.resolve(Usual::RUN)).expect("a spec")
    }

    /// A report whose counts all differ, so that none can pass for another.
    fn report() -> Report {
        let mut commit_latency = latencies();
        (1..=100).for_each(|cycles| commit_latency.record(cycles).expect("in range"));
        Report {
            cycles: 1_009,
            transactions: Transactions {
                ended: 103,
                aborted: 2,
                commits: 107,
                commit_latency,
                write_sets: WriteSets {
                    transactions: 101,
                    words: 277,
                    words_max: 278,
                    stores: 281,
                    lines: 283,
                    lines_max: 293,
                    pages: 307,
                    pages_max: 311,
                },
            },
            cores: CoreTime {
                instructions: 131,
                compute: 137,
                stalls: [139, 149, 151, 157, 163, 167, 173],
                migrations: 127,
            },
            accesses: Accesses {
                operations: 11_300,
                loads: 379,
                stores: 10_149,
                flushes: 383,
                fences: 389,
                walks: 397,
                in_l2: 401,
                in_llc: 409,
                elsewhere: 419,
                in_pm: 421,
                in_dram: 431,
                pm_evictions: 433,
                dram_evictions: 439,
            },
            last_level: LastLevel { lines: 400, dirty_at_start: 11, dirty_at_end: 90 },
            meters: Meters {
                wpq_bytes: [179, 181, 191, 193, 197, 199, 211, 223, 227],
                wpq_writes: 229,
                wpq_merged: 233,
                media_lines: 239,
                media_bits: [541, 547, 557, 563, 569, 571, 577, 587, 593],
                media_fill_reads: 251,
                reads: 257,
                reads_forwarded: 263,
                energy: CellEnergy { read: 269_000_000, set: 599_000_000, reset: 601_000_000 },
                wear_max: 271,
            },
            usage: usage(),
            epochs: Some(Totals {
                ordering_points: 313,
                epochs: 317,
                lines: 331,
                singletons: 337,
                self_dependent: 347,
                cross_dependent: 349,
                pm_stores: 353,
                dram_stores: 359,
            }),
            counters: vec![("merged", 367), ("overflows", 373)],
            cancelled: true,
        }
    }

    /// How busy two controllers were.
    fn usage() -> Usage {
        let mut usage = Usage::new(10);
        usage.controllers = 2;
        (usage.wpq.cycles, usage.wpq.sum, usage.wpq.full, usage.wpq.most) = (1_013, 443, 449, 3);
        usage.waited = Durations { count: 457, sum: 461, max: 463 };
        usage.pm_reads = Durations { count: 467, sum: 479, max: 487 };
        usage.pm = BankUse { busy: vec![491, 499, 503], bus: 509, reads: 521, row_hits: 523 };
        usage.dram = BankUse { busy: vec![541, 5_470], bus: 5_570, reads: 563, row_hits: 569 };
        usage
    }

    fn row_of(resolved: &Resolved, report: Report) -> Value {
        let outcome = Outcome { report, crashes: None };
        row(resolved, &outcome, HostTime { seconds: 0.5, cpu: 0.25 })
    }

    /// What a row says of a run; names, the identity and the notes are left out.
    fn expected() -> Value {
        json!({
            "cores": 3,
            "seed": 1,
            "txs": 103,
            "aborted": 2,
            "cycles": 1_009,
            "simulated_s": 1_009.0 / 1e9,
            "instructions": 131,
            "throughput_tx_per_s": 101.0 / (1_009.0 / 1e9),
            "commit_latency_cycles": {
                "mean": 50.5, "p50": 50, "p90": 90, "p99": 99, "p999": 100, "max": 100
            },
            "pm_writes": {
                "wpq_bytes": 179 + 181 + 191 + 193 + 197 + 199 + 211 + 223 + 227,
                "wpq_writes": 229,
                "wpq_merged": 233,
                "media_lines": 239,
                "media_bits": 541 + 547 + 557 + 563 + 569 + 571 + 577 + 587 + 593,
                "media_fill_reads": 251,
                "wear_max": 271,
                "by_class": {
                    "data": 179, "log": 181, "metadata": 191, "commit": 193, "home_write_back": 197,
                    "consolidation": 199, "checkpoint": 211, "garbage_collection": 223,
                    "copy_on_write": 227
                },
                "bits_by_class": {
                    "data": 541, "log": 547, "metadata": 557, "commit": 563, "home_write_back": 569,
                    "consolidation": 571, "checkpoint": 577, "garbage_collection": 587,
                    "copy_on_write": 593
                },
            },
            "pm_reads": 257,
            "stalls": {
                "compute": 137,
                "load_miss": 139,
                "store_buffer_full": 149,
                "fence": 151,
                "commit_wait": 157,
                "log_structure_full": 163,
                "lock": 167,
                "other": 173,
            },
            "write_set": {
                "lines_avg": 283.0 / 101.0,
                "lines_max": 293,
                "pages_avg": 307.0 / 101.0,
                "pages_max": 311,
                "words_avg": 277.0 / 101.0,
                "words_max": 278,
                "stores_avg": 281.0 / 101.0,
            },
            "energy_uj": 1.469,
            "energy_by_uj": { "read": 0.269, "set": 0.599, "reset": 0.601 },
            "design_counters": { "merged": 367, "overflows": 373 },
            "cancelled": true,
            "migrations": 127,
            "epochs": {
                "ordering_points": 313,
                "epochs": 317,
                "epochs_per_tx": 317.0 / 103.0,
                "lines_per_epoch": 331.0 / 317.0,
                "singleton_share": 337.0 / 317.0,
                "self_dependent_share": 347.0 / 317.0,
                "cross_dependent_share": 349.0 / 317.0,
                "pm_stores": 353,
                "pm_store_share": 353.0 / (353.0 + 359.0),
            },
        })
    }

    /// What a row says of how busy the machine was.
    fn expected_usage() -> Value {
        json!({
            "caches": {
                "loads": 379,
                "stores": 10_149,
                "flushes": 383,
                "fences": 389,
                "page_walks": 397,
                "l1d_misses": 401 + 409 + 419 + 421 + 431,
                "l2_misses": 409 + 419 + 421 + 431,
                "llc_misses": 421 + 431,
                "llc_misses_pm": 421,
                "from_other_cores": 419,
                "pm_evictions": 433,
                "dram_evictions": 439,
                "llc_dirty_share_at_start": 11.0 / 400.0,
                "llc_dirty_share_at_end": 90.0 / 400.0,
            },
            "controllers": {
                "wpq_size": 5,
                "wpq_entries_mean": 443.0 / 1_013.0,
                "wpq_entries_max": 3,
                "wpq_full_share": 449.0 / 1_013.0,
                "write_wait_cycles": { "count": 457, "mean": 461.0 / 457.0, "max": 463 },
                "pm_read_cycles": { "count": 467, "mean": 479.0 / 467.0, "max": 487 },
                "dram_read_cycles": { "count": 0, "mean": null, "max": null },
            },
            "pm_banks": {
                "busy_share": 1_493.0 / 3_027.0,
                "busiest_share": 503.0 / 1_009.0,
                "bus_share": 509.0 / 2_018.0,
                "reads": 521,
                "row_hits": 523,
            },
            "dram_banks": {
                "busy_share": 6_011.0 / 2_018.0,
                "busiest_share": 5_470.0 / 1_009.0,
                "bus_share": 5_570.0 / 2_018.0,
                "reads": 563,
                "row_hits": 569,
            },
        })
    }

    #[test]
    fn a_row_says_what_was_counted() {
        let mut row = row_of(&resolved(""), report());
        let fields = row.as_object_mut().expect("an object");
        for (name, expected) in expected_usage().as_object().expect("an object") {
            assert_eq!(fields.remove(name).as_ref(), Some(expected), "{name}");
        }
        let host = fields.remove("host").expect("the host");
        assert_eq!((&host["seconds"], &host["cpu_seconds"]), (&0.5.into(), &0.25.into()));
        let (count, speed) = (&host["mem_ops"], &host["mem_ops_per_s"]);
        assert_eq!((count, speed), (&11_300.into(), &22_600.0.into()));
        for name in [
            "design",
            "workload",
            "machine",
            "version",
            "id",
            "config",
            "core_model",
            "domain",
            "durability",
            "notes",
        ] {
            assert!(fields.remove(name).is_some(), "a row has {name}");
        }
        assert_eq!(row, expected());
    }

    #[test]
    fn a_row_has_epochs_and_migrations_if_there_were_any() {
        let counted = report();
        let cores = CoreTime { migrations: 0, ..counted.cores };
        let row = row_of(&resolved(""), Report { cores, epochs: None, ..counted });
        assert_eq!((row.get("migrations"), row.get("epochs")), (None, None));
    }

    #[test]
    fn a_distribution_rises_to_the_slowest_commit() {
        let mut latency = latencies();
        for cycles in [7, 7, 9, 1_234_567] {
            latency.record(cycles).expect("in range");
        }
        let slowest = latency.max();
        let transactions = Transactions { commit_latency: latency, ..Transactions::default() };
        assert_eq!(distribution(&transactions), json!([[7, 0.5], [9, 0.75], [slowest, 1.0]]));
        assert!(slowest.abs_diff(1_234_567) < 1_235, "three digits of {slowest}");
    }
}
