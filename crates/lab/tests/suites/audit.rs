//! What must not depend on how a run is watched, and what must add up.

use crate::common::{play, request, resolve, run, without_host};
use lab::Control;
use model::crash::{Campaign, Check, Points};
use serde_json::Value;

fn sum(object: &Value) -> u64 {
    object.as_object().expect("an object").values().filter_map(Value::as_u64).sum()
}

fn every_pair() -> impl Iterator<Item = (&'static str, &'static str)> {
    let workloads = || workloads::ALL.iter().map(|entry| entry.about.name);
    designs::ALL.iter().flat_map(move |entry| workloads().map(|name| (entry.card.name, name)))
}

#[test]
fn a_spec_determines_every_byte_but_the_hosts() {
    for (design, workload) in every_pair() {
        for exact in [false, true] {
            let line = format!("{design} {workload} cores=2 txs=5 seed=9 exact={exact}");
            assert_eq!(without_host(run(&line)), without_host(run(&line)), "{line}");
        }
    }
}

#[test]
fn what_is_counted_adds_up() {
    for (design, workload) in every_pair() {
        for machine in ["tiny cores=3 txs=10", "silo cores=2 txs=10 workload.items=2000"] {
            let line = format!("{design} {workload} machine={machine}");
            let row = run(&line);
            let number = |value: &Value| value.as_u64().expect("a number");
            let core_cycles = number(&row["cycles"]) * number(&row["cores"]);
            assert_eq!(sum(&row["stalls"]), core_cycles, "{line}: {}", row["stalls"]);
            let writes = &row["pm_writes"];
            let by_class = sum(&writes["by_class"]);
            assert_eq!(by_class, number(&writes["wpq_bytes"]), "{line}: {writes}");
            let (count, merged) = (number(&writes["wpq_writes"]), number(&writes["wpq_merged"]));
            assert!(by_class <= 64 * count, "a write is at most a line, {line}: {writes}");
            assert!(merged <= count, "{line}: {writes}");
            assert_eq!(number(&row["txs"]), number(&row["cores"]) * 10, "{line}");
            let latency = &row["commit_latency_cycles"];
            // In so short a run none may be announced in time.
            if latency["max"].is_null() && row["durability"] == "asynchronous" {
                continue;
            }
            let (p50, p99) = (number(&latency["p50"]), number(&latency["p99"]));
            assert!(p50 <= p99 && p99 <= number(&latency["max"]), "{line}: {latency}");
        }
    }
}

/// Designs that read on when the last program has come to its end.
const READ_ON: [&str; 2] = ["redo-log", "ssp"];

/// Cycles for which a bank may be booked beyond the end (ours: some ten reads and writes of cells).
const BOOKED_MAX: f64 = 4_000.0;

/// Each level is asked for what the one above does not have, and nothing is busier than it can be.
#[test]
fn what_the_machine_was_asked_for_adds_up() {
    for (design, workload) in every_pair() {
        for machine in
            ["tiny cores=3 txs=10", "silo cores=2 txs=10 workload.items=2000 controller.count=2"]
        {
            let line = format!("{design} {workload} machine={machine}");
            let row = run(&line);
            let number = |at: &str| row.pointer(at).and_then(Value::as_f64).expect("a number");
            let caches = |name: &str| number(&format!("/caches/{name}"));
            let operations = ["loads", "stores", "flushes", "fences"].map(caches);
            assert_eq!(operations.iter().sum::<f64>(), number("/host/mem_ops"), "{line}");
            let falling = [
                caches("loads") + caches("stores") + caches("page_walks"),
                caches("l1d_misses"),
                caches("l2_misses"),
                caches("llc_misses") + caches("from_other_cores"),
                caches("llc_misses_pm"),
            ];
            assert!(falling.is_sorted_by(|above, below| above >= below), "{line}: {falling:?}");
            let reads = number("/pm_reads");
            // What a design reads after the last program's end takes no core's time.
            let timed = number("/controllers/pm_read_cycles/count");
            let reads_on = READ_ON.contains(&design);
            assert!(timed == reads || timed < reads && reads_on, "{line}: {timed} of {reads}");
            let found = [timed, number("/pm_banks/reads"), number("/pm_banks/row_hits")];
            assert!(found.is_sorted_by(|all, part| all >= part), "{line}: {found:?}");
            assert!(reads >= caches("llc_misses_pm"), "{line}: {reads}");
            let queue = ["wpq_size", "wpq_entries_max", "wpq_entries_mean"]
                .map(|name| number(&format!("/controllers/{name}")));
            assert!(queue.is_sorted_by(|all, taken| all >= taken), "{line}: {queue:?}");
            // No bank does two things at a time; what it is booked for may go on after the end.
            let most = 1.0 + BOOKED_MAX / number("/cycles");
            for memory in ["pm", "dram"] {
                let share = |of: &str| number(&format!("/{memory}_banks/{of}_share"));
                let busy = [most, share("busiest"), share("busy")];
                assert!(busy.is_sorted_by(|all, some| all >= some), "{line}: {busy:?}");
                assert!(share("bus") <= most, "{line}: {}", share("bus"));
            }
        }
    }
}

/// However fast cores store past the caches, or write back or evict lines that they fetch or hold,
/// memory takes no more than its bus and its banks do, and a read does not wait for all that was
/// ever stored.
#[test]
fn no_memory_takes_more_than_its_bus_and_banks_do() {
    for memory in ["pm", "dram"] {
        for (access, items) in
            [("ntstore", 100_000), ("store+clwb", 100_000), ("store+clwb", 64), ("store", 100_000)]
        {
            for fence in ["none", "sfence"] {
                let line = format!(
                    "undo@x86 probe machine=silo cores=8 txs=400 llc.size=704KiB l2.size=64KiB \
                     controller.write_buffer_size=1 workload.memory={memory} \
                     workload.access={access} workload.fence={fence} workload.items={items}"
                );
                let row = run(&line);
                let share = |of: &str| {
                    row.pointer(&format!("/{memory}_banks/{of}")).and_then(Value::as_f64)
                };
                let share = share("bus_share").expect("a share");
                assert!(0.05 < share && share < 1.01, "{line}: {share}");
                let busiest = row.pointer(&format!("/{memory}_banks/busiest_share"));
                let busiest = busiest.and_then(Value::as_f64).expect("a share");
                assert!(busiest < 1.01, "{line}: {busiest}");
                let reads = row.pointer(&format!("/controllers/{memory}_read_cycles/max"));
                let longest = reads.and_then(Value::as_u64).unwrap_or(0);
                assert!(longest < 20_000, "{line}: {longest}");
            }
        }
    }
}

/// Aborted transactions are counted, and are in no write set and in no commit latency.
#[test]
fn aborted_transactions_are_counted_apart() {
    let row = |design: &str, aborts| {
        run(&format!("{design} scribble cores=2 txs=50 workload.aborts={aborts}"))
    };
    let (usual, native) = (row("native", 0), row("native", 40));
    assert_eq!(usual["aborted"], 0);
    for design in designs::ALL.iter().map(|entry| entry.card.name) {
        let (some, all) = (row(design, 40), row(design, 100));
        assert_eq!((&all["txs"], &all["aborted"]), (&100.into(), &100.into()), "{design}");
        assert_eq!((sum(&all["write_set"]), &all["write_set"]["stores_avg"]), (0, &0.0.into()));
        assert_eq!(all["commit_latency_cycles"]["max"], Value::Null, "{design}");
        let aborted = some["aborted"].as_u64().expect("a number");
        assert!((20..60).contains(&aborted) && some["txs"] == 100, "{design}: {aborted}");
        assert_eq!(some["write_set"], native["write_set"], "{design}");
        for row in [some, all] {
            let core_cycles = 2 * row["cycles"].as_u64().expect("a number");
            assert_eq!(sum(&row["stalls"]), core_cycles, "{design}: {}", row["stalls"]);
        }
    }
}

/// Cutting the power changes nothing of the run, which goes on: with a campaign it takes the same
/// time.
#[test]
fn a_campaign_does_not_disturb_the_run() {
    let campaign = |points, nested| Campaign {
        points,
        nested,
        reorders: 2,
        violations_max: usize::MAX,
        seed: 1,
        keep: 0,
        check: Check::Transactions,
    };
    for (design, workload) in every_pair() {
        let aborts = if workload == "scribble" { "workload.aborts=30" } else { "" };
        let line = format!("{design} {workload} cores=2 seed=3 {aborts}");
        let resolved = resolve(&line);
        let report = |campaign| {
            let workload = resolved.make_workload().expect("a workload");
            let config = &resolved.machine.config;
            let outcome = play(resolved.design, config, 2, workload, 6, campaign);
            format!("{:?}", outcome.report)
        };
        let plain = report(None);
        let is_nested = workload == "scribble";
        assert_eq!(report(Some(campaign(Points::Count, is_nested))), plain, "{line}");
        let some = Points::These((1..50).map(|point| point * 14).collect());
        assert_eq!(report(Some(campaign(some, is_nested))), plain, "{line}");
    }
}

/// A request for epochs gets them, and the row is otherwise the same.
#[test]
fn counting_epochs_changes_nothing_else() {
    for (design, workload) in every_pair() {
        let line = format!("{design} {workload} cores=2 txs=5 seed=9");
        let mut row = run(&format!("{line} epochs=true"));
        let epochs = row.as_object_mut().expect("an object").remove("epochs");
        assert!(epochs.is_some_and(|epochs| epochs["pm_stores"] != 0), "{line}");
        assert_eq!(without_host(row), without_host(run(&line)), "{line}");
    }
}

/// The undo log orders each entry before the store, the lines before the mark, and the mark: two
/// epochs more than lines. The last two store to one line each (the last store, and the mark); the
/// others to the two lines of an entry, and all but the first to a line of data.
#[test]
fn the_undo_log_has_two_epochs_more_than_lines() {
    let row = run("undo@x86 sps cores=1 txs=200 epochs=true workload.items=4096");
    let (sets, epochs) = (&row["write_set"], &row["epochs"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    assert_eq!(number(&epochs["epochs_per_tx"]), number(&sets["lines_avg"]) + 2.0);
    assert_eq!(epochs["ordering_points"], epochs["epochs"]);
    assert_eq!(number(&sets["lines_avg"]), 2.0, "no swap is within a line");
    assert_eq!(number(&epochs["singleton_share"]), 2.0 / 4.0);
    assert_eq!(number(&epochs["lines_per_epoch"]), (2.0 + 3.0 + 1.0 + 1.0) / 4.0);
    assert_eq!(number(&epochs["cross_dependent_share"]), 0.0);
    // Hardware executes no fences.
    let epochs = &run("silo sps cores=1 txs=200 epochs=true")["epochs"];
    assert_eq!((&epochs["ordering_points"], &epochs["epochs"]), (&0.into(), &0.into()));
}

/// Running ahead on private hits costs less than a hundredth (docs/model.md).
#[test]
fn running_ahead_changes_throughput_by_less_than_a_hundredth() {
    let mut found = String::new();
    for design in ["native", "undo@x86", "silo"] {
        for workload in ["hash", "btree", "scribble", "queue workload.shared=shared"] {
            let line =
                format!("{design} {workload} machine=silo cores=8 txs=300 workload.items=4000");
            let line = line.replace(
                "scribble machine=silo cores=8 txs=300 workload.items=4000",
                "scribble machine=silo cores=8 txs=1000",
            );
            let of = |exact| run(&format!("{line} exact={exact}"))["throughput_tx_per_s"].as_f64();
            let (default, exact) = (of(false).expect("a rate"), of(true).expect("a rate"));
            let off = (default / exact - 1.0) * 100.0;
            if off.abs() > 1.0 {
                found += &format!("{line}: {off:+.2} %\n");
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Ctrl-C ends a run with what it has.
#[test]
fn a_cancelled_run_ends_and_says_so() {
    let control = Control::default();
    control.cancel();
    let text = request("native hash cores=2 txs=100000").to_string();
    let row: Value =
        serde_json::from_str(&lab::run(&text, &control).expect("a row")).expect("JSON");
    assert_eq!((&row["cancelled"], &row["txs"]), (&true.into(), &0.into()));
}

/// Where the machine says so, designs that do not use translation pay for it, too; where it does
/// not, the sizes of TLBs change nothing.
#[test]
fn walks_take_time_under_every_design_if_they_are_to() {
    for design in ["native", "undo@x86", "silo"] {
        let cycles = |settings: &str| {
            let line = format!(
                "{design} array txs=100 cores=2 workload.items=1000 core.model=inorder {settings}"
            );
            run(&line)["cycles"].as_u64().expect("cycles")
        };
        let one_entry = "tlb.entries=1 tlb.assoc=1 tlb.l2_entries=0";
        let free = cycles("");
        assert_eq!(cycles(one_entry), free, "{design}");
        let enough = cycles("tlb.walks=all tlb.entries=64 tlb.assoc=64");
        let one = cycles(&format!("tlb.walks=all {one_entry}"));
        assert!(free < one && enough < one, "{design}: {free}, {enough}, {one}");
    }
}

/// Lookups pass the fences of the software log and the commits of the hardware log before them,
/// which changes when things happen and not which.
#[test]
fn what_stands_behind_a_fenced_store_is_not_held_up_by_it() {
    for design in ["undo@x86", "silo"] {
        let row = |stores: &str| {
            let spec = "hash machine=silo cores=1 txs=500 workload.items=100000";
            run(&format!("{design} {spec} core.fenced_stores={stores}"))
        };
        let (queue, dispatch) = (row("queue"), row("dispatch"));
        let cycles = |row: &Value| row["cycles"].as_u64().expect("cycles");
        assert!(cycles(&queue) * 5 < cycles(&dispatch) * 4, "{design}: {queue} {dispatch}");
        assert_eq!(queue["write_set"], dispatch["write_set"], "{design}");
        assert_eq!(queue["host"]["mem_ops"], dispatch["host"]["mem_ops"], "{design}");
        let in_order = |stores: &str| {
            let spec = "hash machine=loc cores=1 txs=100";
            run(&format!("{design} {spec} core.fenced_stores={stores}"))["cycles"].clone()
        };
        assert_eq!(in_order("queue"), in_order("dispatch"), "{design}: a core in order waits");
    }
}

/// On cores whose `clwb` drops lines it is `clflushopt` to the cycle, and costs a log that stores
/// to its lines again.
#[test]
fn clwb_may_drop_lines_as_clflushopt_does() {
    let row = |design: &str, settings: &str| {
        run(&format!("{design} hash machine=silo cores=8 txs=300 {settings}"))
    };
    let dropped = row("s-wal", "core.clwb_retains=no design.flush=clwb");
    let told = row("s-wal", "core.clwb_retains=yes design.flush=clflushopt");
    for field in ["cycles", "stalls", "pm_writes", "pm_reads"] {
        assert_eq!(dropped[field], told[field], "{field}");
    }
    let cycles = |retains: &str| {
        row("undo@x86", &format!("core.clwb_retains={retains}"))["cycles"].as_u64().expect("cycles")
    };
    assert!(cycles("no") * 10 > cycles("yes") * 11, "where cores share the banks");
}

/// Where one store is in flight at a time, flushes do not overlap, which costs software that
/// flushes and not hardware that writes back by itself; what is done is the same. A core in order
/// has a buffer of its own.
#[test]
fn one_store_in_flight_costs_those_that_flush() {
    let row = |design: &str, machine: &str, stores: &str| {
        let spec = format!("machine={machine} cores=2 txs=300 core.stores_in_flight={stores}");
        run(&format!("{design} hashmap {spec}"))
    };
    let slower = |design: &str, machine: &str| {
        let (many, one) = (row(design, machine, "many"), row(design, machine, "one"));
        for field in ["write_set", "instructions"] {
            assert_eq!(many[field], one[field], "{design}: {field}");
        }
        let cycles = |row: &Value| row["cycles"].as_f64().expect("cycles");
        cycles(&one) / cycles(&many)
    };
    let (flushes, does_not) = (slower("undo@x86", "hops"), slower("hops", "hops"));
    assert!(flushes > 1.1 && flushes > does_not * 1.1, "{flushes} {does_not}");
    assert!((slower("undo@x86", "loc") - 1.0).abs() < f64::EPSILON, "in order");
}

/// A store that waits, behind a fence or for room in a log, costs no more in the store queue than
/// at dispatch.
#[test]
fn no_design_is_slower_where_fenced_stores_wait_in_the_store_queue() {
    for design in designs::ALL.iter().map(|entry| entry.card.name) {
        for workload in ["array", "hash", "queue"] {
            let cycles = |stores: &str| {
                let spec = "machine=silo cores=1 txs=300 workload.items=20000";
                let row = run(&format!("{design} {workload} {spec} core.fenced_stores={stores}"));
                row["cycles"].as_u64().expect("cycles")
            };
            let (queue, dispatch) = (cycles("queue"), cycles("dispatch"));
            assert!(queue * 100 <= dispatch * 103, "{design} {workload}: {queue} {dispatch}");
        }
    }
}

/// Where the borders of transactions are barriers, lookups wait for the commit before them: a run
/// takes longer, does the same, and its reasons for waiting still add up.
#[test]
fn nothing_passes_the_border_of_a_transaction_that_is_a_barrier() {
    for design in ["native", "undo-log", "silo", "ssp"] {
        let row = |barriers: &str| {
            let spec = "hash machine=silo cores=2 txs=500 workload.items=100000";
            run(&format!("{design} {spec} core.tx_barriers={barriers}"))
        };
        let (with, without) = (row("yes"), row("no"));
        let cycles = |row: &Value| row["cycles"].as_u64().expect("cycles");
        assert!(cycles(&with) * 10 > cycles(&without) * 11, "{design}: {with} {without}");
        assert_eq!(with["write_set"], without["write_set"], "{design}");
        assert_eq!(with["host"]["mem_ops"], without["host"]["mem_ops"], "{design}");
        let stalls = with["stalls"].as_object().expect("stalls").values();
        let all: u64 = stalls.map(|cycles| cycles.as_u64().expect("a number")).sum();
        assert_eq!(all, 2 * cycles(&with), "{design}");
    }
}

/// Page walks pass a fence like the loads that they are for.
#[test]
fn walks_overlap_with_fences() {
    let cycles = |walks: &str| {
        let spec = "hash machine=silo cores=1 txs=500 workload.items=100000";
        let row = run(&format!("silo {spec} tlb.walks={walks}"));
        row["cycles"].as_u64().expect("cycles")
    };
    let (with, without) = (cycles("all"), cycles("designs"));
    assert!(with * 4 < without * 5, "{with} {without}");
}

/// If one store is in flight at a time, none queues behind another one of its core.
#[test]
fn a_store_that_is_alone_in_flight_waits_for_no_other() {
    let of_a_line = |block: u64| {
        let row = run(&format!(
            "undo@x86 probe machine=hops cores=1 txs=100 workload.access=store \
             workload.fence=sfence workload.block={block}"
        ));
        row["cycles"].as_u64().expect("a number") as f64 / block as f64
    };
    let alone = of_a_line(64);
    for block in [256, 512] {
        assert!(of_a_line(block) <= alone, "{} for {alone}, {block} bytes", of_a_line(block));
    }
}

/// A program that has no fence waits for none, also where a transaction's borders are barriers.
#[test]
fn a_border_of_a_transaction_waits_for_loads_and_stores() {
    let row = run("native hash machine=ssp cores=2 txs=100");
    let of = |reason: &str| row["stalls"][reason].as_u64().expect("a number");
    assert_eq!((row["caches"]["fences"].as_u64(), of("fence")), (Some(0), 0), "{row}");
    assert!(of("load_miss") > 0 && of("store_buffer_full") > 0, "{row}");
}

/// What is announced when no program runs any more is in no latency.
#[test]
fn no_latency_is_longer_than_its_run() {
    let line = "morlog-dp btree machine=silo cores=1 txs=20 warmup=0 design.redo_delay=1000000";
    let row = run(line);
    let most = row["commit_latency_cycles"]["max"].as_u64().expect("most were announced in time");
    assert!(most <= row["cycles"].as_u64().expect("cycles"), "{most}");
}
