//! What a run or a campaign found, as JSON rows.

use model::engine::Outcome;
use model::epochs::Totals;
use model::meters::{Class, Stall};
use model::report::Report;
use serde_json::{Map, Value, json};

use crate::experiment::HostTime;
use crate::machines;
use crate::spec::Resolved;

/// The identity of what was run: everything that a result depends on.
fn identity(resolved: &Resolved, txs: u64, warmup: u64, exact: bool) -> String {
    let text = format!(
        "{}\n{:?}\n{}\n{:?}\n{}\ncores {} txs {txs} warmup {warmup} seed {} exact {exact}\n{:?}\n{}",
        resolved.design.card.name,
        resolved.design_settings,
        resolved.workload.about.name,
        resolved.workload_settings,
        machines::canonical(&resolved.machine.config),
        resolved.cores,
        resolved.seed,
        resolved.script,
        crate::version(),
    );
    machines::fingerprint(&text)
}

/// The row of a run.
pub fn row(
    resolved: &Resolved,
    outcome: &Outcome,
    (txs, warmup, exact): (u64, u64, bool),
    host: HostTime,
) -> Value {
    let report = &outcome.report;
    let frequency = resolved.machine.config.core.frequency as f64;
    let simulated = report.cycles as f64 / frequency;
    let latency = &report.commit_latency;
    let card = &resolved.design.card;
    let mut row = json!({
        "design": card.name,
        "workload": resolved.workload_name,
        "machine": resolved.machine.name,
        "cores": resolved.cores,
        "txs": report.transactions,
        "aborted": report.aborted,
        "seed": resolved.seed,
        "version": crate::version(),
        "id": identity(resolved, txs, warmup, exact),
        "core_model": resolved.machine.config.core_model(),
        "domain": resolved.machine.config.domain().name(),
        "cycles": report.cycles,
        "simulated_s": simulated,
        "instructions": report.instructions,
        "throughput_tx_per_s": ratio(report.transactions as f64, simulated),
        "commit_latency_cycles": {
            "mean": latency.mean(),
            "p50": latency.value_at_quantile(0.5),
            "p99": latency.value_at_quantile(0.99),
            "max": latency.max(),
        },
        "durability": card.durability.name(),
        "pm_writes": writes(report),
        "pm_reads": report.meters.reads,
        "stalls": stalls(report),
        "write_set": write_set(report),
        "energy_uj": report.meters.energy_fj as f64 / 1e9,
        "design_counters": counters(report),
        "notes": resolved.notes,
        "cancelled": report.cancelled,
        "host": {
            "seconds": host.seconds,
            "cpu_seconds": host.cpu,
            "mem_ops": report.operations,
            "mem_ops_per_s": ratio(report.operations as f64, host.seconds),
            "peak_rss_mb": peak_rss_mb(),
        },
    });
    if report.migrations > 0 {
        row["migrations"] = report.migrations.into();
    }
    if let Some(totals) = &report.epochs {
        row["epochs"] = epochs(totals, report.transactions);
    }
    row
}

fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}

fn writes(report: &Report) -> Value {
    let meters = &report.meters;
    let by_class: Map<String, Value> = Class::ALL
        .iter()
        .map(|&(class, name)| (name.into(), meters.wpq_bytes[class as usize].into()))
        .collect();
    json!({
        "wpq_bytes": meters.wpq_bytes_total(),
        "wpq_writes": meters.wpq_writes,
        "wpq_merged": meters.wpq_merged,
        "media_lines": meters.media_lines,
        "media_bits": meters.media_bits,
        "media_fill_reads": meters.media_fill_reads,
        "wear_max": meters.wear_max,
        "by_class": by_class,
    })
}

fn stalls(report: &Report) -> Value {
    let mut map = Map::new();
    map.insert("compute".into(), report.compute.into());
    for (&(_, name), cycles) in Stall::ALL.iter().zip(report.stalls) {
        map.insert(name.into(), cycles.into());
    }
    Value::Object(map)
}

fn write_set(report: &Report) -> Value {
    let sets = &report.write_sets;
    let average = |sum: u64| ratio(sum as f64, sets.transactions as f64);
    json!({
        "lines_avg": average(sets.lines),
        "lines_max": sets.lines_max,
        "pages_avg": average(sets.pages),
        "pages_max": sets.pages_max,
        "words_avg": average(sets.words),
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

fn counters(report: &Report) -> Value {
    report.counters.iter().map(|&(name, count)| (name.to_string(), Value::from(count))).collect()
}

/// The most memory that this process has had, in MB (2^20 bytes); 0 where the host does not say.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
