//! What is special to the write-ahead logs of LOC (`h-wal`, `ec-wal`, `loc-wal`), and to the caches
//! that survive (`kiln`, `loc-kiln`).

use crate::common::{all_hold, crash, run, without_host};
use crate::programs::{at, counted, on, store};
use model::meters::{Class, Stall};
use model::units::LINE_BYTES;
use serde_json::Value;

/// The row of a run without what names the design.
fn anonymous(line: &str) -> String {
    let mut row: Value = serde_json::from_str(&without_host(run(line))).expect("JSON");
    for field in ["design", "durability", "id", "config"] {
        row.as_object_mut().expect("an object").remove(field);
    }
    row.to_string()
}

/// Without speculation, LOC is eager commit.
#[test]
fn loc_with_a_window_of_one_is_eager_commit_to_the_cycle() {
    for workload in ["scribble", "hash", "btree", "queue", "sqlite workload.rows=20", "ycsb"] {
        for machine in ["tiny cores=1", "tiny cores=3", "loc cores=2 workload.items=500"] {
            let machine = if workload.starts_with("sqlite") || workload == "scribble" {
                machine.replace(" workload.items=500", "")
            } else {
                machine.into()
            };
            let line = format!("{workload} txs=60 machine={machine} exact=true");
            let loc = anonymous(&format!("loc-wal {line} design.sd=1"));
            assert_eq!(loc, anonymous(&format!("ec-wal {line}")), "{line}");
        }
    }
}

fn counter(row: &Value, name: &str) -> u64 {
    row["design_counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
}

/// Everything that is counted happens.
#[test]
fn every_counter_counts() {
    let small = "llc.size=256B l2.size=128B l1d.size=128B";
    let lines = [
        format!(
            "loc-wal scribble txs=300 cores=2 {small} pm.log_size=18KiB design.id_bits=6 design.sd=4 \
             workload.aborts=10"
        ),
        format!(
            "loc-wal scribble txs=300 cores=2 {small} pm.log_size=2KiB design.sd=4 \
             design.truncate_perc=100 design.drain=oldest"
        ),
        "loc-wal scribble txs=300 cores=2 pm.log_size=1MiB design.id_bits=5 design.sd=2 \
         design.log_writes=1 controller.noc_latency=10us"
            .to_owned(),
    ];
    all_count(&lines);
}

/// Everything that a last level that survives counts happens, too.
#[test]
fn every_counter_of_a_last_level_that_survives_counts() {
    let small = "llc.size=256B l2.size=128B l1d.size=128B";
    all_count(&[
        format!("kiln scribble txs=300 cores=4 {small} design.tx_ids=1"),
        "kiln scribble txs=300 cores=2".to_owned(),
    ]);
    all_count(&[
        format!("loc-kiln scribble txs=300 cores=2 {small} design.sd=4"),
        "loc-kiln scribble txs=300 cores=2 design.sd=4 design.drain=oldest".to_owned(),
        "loc-kiln scribble txs=400 cores=4 design.overflow_lines=64".to_owned(),
    ]);
}

/// Checks that each counter of a design is above 0 in one of its runs.
fn all_count(lines: &[String]) {
    let rows: Vec<Value> = lines.iter().map(|line| run(line)).collect();
    let names = rows[0]["design_counters"].as_object().expect("an object").keys();
    for name in names {
        assert!(rows.iter().any(|row| counter(row, name) > 0), "{name}");
    }
}

/// What speculation is for, and what it costs: the program goes on sooner, hears later that its
/// transactions are durable, and memory is written less.
#[test]
fn speculation_trades_latency_for_throughput() {
    let row = |sd: u64| run(&format!("loc-wal hash machine=loc cores=1 txs=400 design.sd={sd}"));
    let (strict, loose) = (row(1), row(32));
    let number = |row: &Value, path: &str| row.pointer(path).and_then(Value::as_f64).expect(path);
    let over = |path: &str| number(&loose, path) / number(&strict, path);
    assert!(over("/throughput_tx_per_s") > 1.0);
    assert!(over("/commit_latency_cycles/mean") > 1.0);
    assert!(over("/pm_writes/wpq_bytes") < 1.0);
}

/// The writes of a transaction that fits a group: its blocks, their metadata, and with H-WAL a
/// record.
#[test]
fn a_log_writes_blocks_and_metadata_and_only_h_wal_a_record() {
    for (design, record) in [("h-wal", 64), ("ec-wal", 0)] {
        let row = run(&format!("{design} scribble cores=1 txs=50 warmup=0 workload.words=16"));
        let bytes = |class: &str| row["pm_writes"]["by_class"][class].as_u64().expect("bytes");
        let transactions = counter(&row, "transactions_with_stores");
        assert_eq!(bytes("log"), 64 * counter(&row, "log_blocks"), "{design}");
        assert_eq!(bytes("commit"), record * transactions, "{design}");
        assert_eq!(counter(&row, "log_groups"), transactions, "{design}");
        assert_eq!(bytes("metadata"), 64 * transactions, "{design}: no truncation yet");
    }
}

/// With metadata in the burst of blocks there is no write of them alone, but for entries without a
/// block, and eager commit waits for one write of memory and not for two.
#[test]
fn metadata_in_the_burst_of_their_block_are_no_write_of_their_own() {
    for (design, more) in [("ec-wal", ""), ("loc-wal", "design.sd=1")] {
        let row = |metadata: &str| {
            run(&format!(
                "{design} scribble cores=1 txs=50 warmup=0 workload.words=16 {more} \
                 design.metadata={metadata}"
            ))
        };
        let (block, burst) = (row("block"), row("burst"));
        let bytes = |class: &str| burst["pm_writes"]["by_class"][class].as_u64().expect("bytes");
        assert_eq!(bytes("log"), 64 * counter(&burst, "log_blocks"));
        assert_eq!(bytes("metadata"), 64 * counter(&burst, "log_groups"));
        assert_eq!(counter(&burst, "log_blocks"), counter(&block, "log_blocks"));
        let latency = |row: &Value| row["commit_latency_cycles"]["mean"].as_f64().expect("cycles");
        assert!(latency(&burst) < 0.75 * latency(&block), "{design}");
    }
}

/// Blocks with their metadata in their bursts are right, whatever fills, wraps or leaves early, and
/// whatever memory is in the middle of when the power fails.
#[test]
fn metadata_in_the_burst_of_their_block_hold() {
    let small = "llc.size=256B l2.size=128B l1d.size=128B";
    let corners = [
        "hash cores=1",
        "queue cores=2",
        "scribble cores=2 workload.words=16 workload.aborts=20 lives=3",
        &format!("scribble cores=2 {small} pm.log_size=4KiB design.id_bits=8 workload.aborts=10"),
        "scribble cores=4 controller.count=2 controller.intlv_size=64B",
        "scribble cores=2 pm.log_size=2KiB design.truncate_perc=100 design.log_writes=2",
    ];
    let lines = corners.iter().flat_map(|corner| {
        ["ec-wal", "loc-wal", "loc-wal design.sd=4 design.bearer=pin"].map(|design| {
            // The rest of both lines is settings.
            let (design, more) = design.split_once(' ').unwrap_or((design, ""));
            format!("{design} {corner} txs=30 design.metadata=burst {more}")
        })
    });
    let lines: Vec<String> = lines.collect();
    for domain in ["media", "adr"] {
        all_hold(lines.iter().map(|line| format!("{line} controller.domain={domain}")));
    }
}

/// Notes that are in the last group of the log are sent when a block finds no room behind them: the
/// transaction that fills the log is durable, and room is made.
#[test]
fn notes_in_the_last_group_do_not_wait_for_a_block_that_has_no_room() {
    let stores = (0..12).map(|line| format!("store {:#x} {}\n", 0x10000 + 64 * line, line + 1));
    let loads = (0..60).map(|line| format!("load {:#x}\n", 0x20000 + 64 * line));
    let first: String = stores.chain(loads).collect();
    let first = format!("measured\nbegin\n{first}work 200000\ncommit\n");
    let trace = format!("{first}begin\nstore 0x14000 5\ncommit\n");
    for (design, more) in [("ec-wal", ""), ("loc-wal", "design.sd=2"), ("loc-wal", "design.sd=4")] {
        let mut request = crate::common::request(&format!(
            "{design} replay cores=1 txs=2 points=all llc.size=256B l2.size=128B l1d.size=128B \
             pm.log_size=1KiB design.metadata=burst {more}"
        ));
        request["script"] = serde_json::json!(["mine.trace", trace]);
        let answer = crate::common::crash_as(&request);
        assert_eq!(answer["violations"], serde_json::json!([]), "{design} {more}");
    }
}

/// S-WAL's fences are needless with `clflush`, which waits by itself, and needed with `clwb`.
#[test]
fn s_wal_needs_its_fences_when_its_flushes_do_not_wait() {
    let found = |rule: &str, flush: &str, seed: u64| {
        let line = format!(
            "s-wal scribble cores=4 txs=150 nested=false workload.words=16 controller.count=4 \
             controller.intlv_size=64B controller.write_buffer_size=1 pm.xpbuffer_entries=1 \
             pm.xpline=64B pm.tWRITE=4000cycles without={rule} design.flush={flush} seed={seed}"
        );
        !crash(&line)["violations"].as_array().expect("a list").is_empty()
    };
    for rule in [
        "order_log_before_record",
        "durable_record",
        "order_data_before_truncation",
        "truncate_before_unlock",
    ] {
        assert!((1..=6).any(|seed| found(rule, "clwb", seed)), "{rule}");
        assert!(!(1..=3).any(|seed| found(rule, "clflush", seed)), "{rule}");
    }
    for flush in ["clflushopt", "clwb"] {
        all_hold(
            (1..=3).map(|seed| format!("s-wal scribble txs=80 design.flush={flush} seed={seed}")),
        );
    }
}

/// A core that waits for the overflow area may have a lock, and what ends meanwhile is drained,
/// too.
#[test]
fn who_waits_for_the_overflow_area_does_not_wait_for_ever() {
    let small = "l1d.size=64B l1d.assoc=1 l2.size=64B l2.assoc=1 llc.size=256B";
    let design = "design.overflow_lines=8 design.drain=oldest design.flush_interval=1000 \
                  workload.words=48 workload.stores=16 llc.assoc=4 pm.tWRITE=30ns";
    all_hold(
        ["cores=2 seed=464463 design.sd=4", "cores=3 seed=788810 design.sd=2"]
            .map(|rest| format!("loc-kiln scribble txs=20 nested=false {small} {design} {rest}")),
    );
}

/// Transactions that have ended fill the overflow area once they are drained, if the last level has
/// no room for them: no more transactions begin than it can take. (Transactions have 160 lines; 16
/// of each core have more than the 2,048 lines of the area.)
#[test]
fn no_more_transactions_begin_than_the_overflow_area_can_take() {
    all_hold(["loc-kiln echo cores=2 txs=40 points=40 nested=false seed=1".to_owned()]);
}

/// A line that was away and came back is clean, and has a version all the same: the cells hold no
/// more lines than there are ways.
#[test]
fn versions_of_clean_lines_leave_with_them() {
    let small = "l1d.size=64B l1d.assoc=1 l2.size=64B l2.assoc=1 llc.size=128B llc.assoc=2";
    let slow = "controller.write_buffer_size=1 controller.writeback_buffer_size=1 core.mshrs=1";
    let lines = (2..=4).map(|seed| {
        format!(
            "loc-kiln scribble cores=1 txs=1000 seed={seed} points=400 nested=false {small} {slow} \
             design.old_versions=1 design.overflow_lines=8 design.sd=1 design.redirect_latency=0 \
             workload.words=4096 workload.stores=64 pm.tWRITE=1ns"
        )
    });
    all_hold(lines);
}

/// A line that comes down to the last level of Kiln is there after the time of the levels and of
/// the write. The committed version before is written to memory only then, and the commit waits for
/// that.
#[test]
fn a_line_comes_down_to_kilns_last_level_in_the_time_of_its_write() {
    let latency = |write: u64| {
        let line = format!(
            "kiln scribble cores=1 core.width=1 l1d.size=64B l1d.assoc=1 l2.size=64B l2.assoc=1 \
             controller.noc_latency=5us design.llc_write={write}"
        );
        let outcome = on(&line, |pm| {
            pm.load(at(1, 0));
            store(pm, &[1], 1)?;
            pm.work(100_000);
            pm.begin()?;
            pm.store(at(0, 0), 2);
            // The other line takes its place above the last level.
            pm.load(at(1, 0));
            pm.commit();
            Ok(())
        });
        assert_eq!(counted(&outcome, "lines_came_down"), 1);
        assert_eq!(counted(&outcome, "versions_waited_for_home"), 1);
        outcome.report.transactions.commit_latency.max()
    };
    let more = latency(1_000) - latency(0);
    assert_eq!(more, 2 * 1_000, "the line is written, and then the status");
}

/// A line that was in Kiln's overflow area and has come back to the last level is not brought home
/// from there, too: that version is older.
#[test]
fn a_line_of_kiln_that_came_back_is_not_brought_home_from_the_overflow_area() {
    let line = "kiln scribble cores=1 llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 \
                l1d.size=128B l1d.assoc=2";
    let outcome = on(line, |pm| {
        pm.begin()?;
        // Three lines of a set of two, and the first one again.
        [0, 2, 4, 0].into_iter().for_each(|line| pm.store(at(line, 0), 1));
        pm.work(10_000);
        pm.commit();
        pm.work(10_000);
        Ok(())
    });
    assert_eq!(counted(&outcome, "lines_overflowed"), 2);
    assert_eq!(counted(&outcome, "overflow_refetched"), 1);
    let home = outcome.report.meters.wpq_bytes[Class::HomeWriteBack as usize];
    assert_eq!(home, LINE_BYTES, "the one that took its place");
}

/// A truncation writes a line in place that the caches do not have any more: its bytes are read
/// from the log.
#[test]
fn a_line_that_left_the_caches_is_read_from_the_log_to_be_written_in_place() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (design, more) = design.split_once(' ').unwrap_or((design, ""));
        let from_the_log = |leaves: bool| {
            let line = format!(
                "{design} scribble cores=1 llc.size=256B l2.size=128B l1d.size=128B \
                 pm.log_size=4KiB {more}"
            );
            let outcome = on(&line, move |pm| {
                pm.begin()?;
                pm.store(at(0, 0), 1);
                if leaves {
                    (1..8).for_each(|line| _ = pm.load(at(line, 0)));
                }
                pm.commit();
                // The log is filled with versions of one line.
                (0..20).try_for_each(|value| {
                    pm.begin()?;
                    pm.store(at(20, 0), value);
                    pm.commit();
                    Ok(())
                })
            });
            assert_eq!(counted(&outcome, "evicted_running"), u64::from(leaves), "{design}");
            assert!(counted(&outcome, "truncations") > 0, "{design}");
            let report = outcome.report;
            report.usage.pm_reads.count - report.accesses.in_pm
        };
        // Of the versions of one line some are read, too: a newer one has followed.
        assert_eq!(from_the_log(true), from_the_log(false) + 1, "{design}");
    }
}

/// An old version is in the caches with the newest of its line, and leaves them with it. The log,
/// or the overflow area, then has it, so no later version absorbs it.
#[test]
fn an_old_version_that_left_the_caches_with_its_line_is_not_absorbed() {
    for (design, left, absorbed) in [
        ("loc-wal", "evicted_ended", "blocks_coalesced"),
        ("loc-kiln", "lines_overflowed", "lines_coalesced"),
    ] {
        let counts = |lines: &'static [u64]| {
            let line = format!(
                "{design} scribble cores=1 llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 \
                 l1d.size=128B l1d.assoc=2 design.sd=4 design.drain=oldest"
            );
            let outcome = on(&line, |pm| {
                store(pm, &[1], 1)?;
                pm.begin()?;
                lines.iter().for_each(|&line| pm.store(at(line, 0), 2));
                pm.commit();
                Ok(())
            });
            [left, absorbed].map(|name| counted(&outcome, name))
        };
        assert_eq!(counts(&[0]), [0, 1], "{design}: the line stays");
        assert_eq!(counts(&[0, 2, 4]), [1, 0], "{design}: three lines of a set of two");
    }
}

/// A truncation that finds a newer version of a transaction that has ended in the caches reads the
/// version that it writes in place from the log.
#[test]
fn a_version_that_a_newer_one_has_followed_is_read_from_the_log() {
    for design in ["h-wal", "ec-wal", "loc-wal"] {
        let from_the_log = |lines: u64| {
            let line = format!(
                "{design} scribble cores=1 llc.size=16KiB l2.size=16KiB l1d.size=16KiB \
                 pm.log_size=4KiB"
            );
            let outcome = on(&line, move |pm| {
                (0..40).try_for_each(|value| {
                    pm.begin()?;
                    pm.store(at(value % lines, 0), value);
                    pm.commit();
                    Ok(())
                })
            });
            assert!(counted(&outcome, "checkpoint_writes") > 0, "{design}");
            let report = outcome.report;
            report.usage.pm_reads.count - report.accesses.in_pm
        };
        assert_eq!(from_the_log(40), 0, "{design}: each line has one version");
        assert!(from_the_log(1) > 0, "{design}");
    }
}

/// What comes back into the caches is the newest version. If that is of the transaction that runs,
/// a truncation reads the version before from the log.
#[test]
fn an_old_version_does_not_come_back_into_the_caches() {
    for design in ["h-wal", "ec-wal"] {
        let from_the_log = |leaves: bool| {
            let line = format!(
                "{design} scribble cores=1 llc.size=256B l2.size=128B l1d.size=128B \
                 pm.log_size=4KiB"
            );
            let outcome = on(&line, move |pm| {
                store(pm, &[1], 1)?;
                pm.begin()?;
                pm.store(at(0, 0), 2);
                if leaves {
                    (1..8).for_each(|line| _ = pm.load(at(line, 0)));
                }
                // The lines of the transaction fill the log.
                (20..56).for_each(|line| {
                    pm.load(at(0, 0));
                    pm.store(at(line, 0), 2);
                });
                pm.commit();
                Ok(())
            });
            assert!(counted(&outcome, "checkpoint_writes") > 0, "{design}");
            let report = outcome.report;
            report.usage.pm_reads.count - report.accesses.in_pm
        };
        assert_eq!(from_the_log(true), from_the_log(false) + 1, "{design}");
    }
}

/// LOC over Kiln has some of the parameters of both, under its own words: "As in `kiln`."
#[test]
fn what_loc_over_kiln_has_as_in_another_design_is_as_there() {
    let named = |name| designs::ALL.iter().find(|entry| entry.card.name == name).expect("a design");
    let of_both = named("loc-kiln").fields.iter().filter_map(|own| {
        let name = own.doc.strip_prefix(" As in `")?.strip_suffix("`.")?;
        let other = named(name).fields.iter().find(|other| other.name == own.name);
        Some((own, other.unwrap_or_else(|| panic!("{name} has no {}", own.name))))
    });
    let mut compared = 0;
    for (own, other) in of_both {
        assert_eq!(
            (own.default, &own.limits, own.choices),
            (other.default, &other.limits, other.choices),
            "{}",
            own.name
        );
        compared += 1;
    }
    assert!(compared > 0, "no parameter is as in another design");
}

/// A hit of a last level whose cells keep their state takes their read, too.
#[test]
fn a_read_of_a_last_level_of_kiln_takes_its_time() {
    for design in ["kiln", "loc-kiln"] {
        let cycles = |read: u64| {
            let line = format!(
                "{design} scribble cores=1 core.model=inorder llc.assoc=16 design.llc_read={read}"
            );
            let outcome = on(&line, |pm| {
                // The first line has left the levels above when it is asked for again.
                (0..10).chain([0]).for_each(|line| _ = pm.load(at(line, 0)));
                Ok(())
            });
            outcome.report.cycles
        };
        assert_eq!(cycles(1_000) - cycles(0), 1_000, "{design}");
    }
}

/// An aborted transaction is over when the last level has been told of each of its lines: Kiln's
/// FIFOs name one a cycle.
#[test]
fn an_abort_reaches_the_last_level() {
    for (design, each) in [("kiln", true), ("loc-kiln", false), ("loc-wal", false)] {
        let cycles = |latency: u64, lines: u64, aborts: bool| {
            let line = format!(
                "{design} scribble cores=1 machine=silo core.model=inorder \
                 llc.data_latency={latency}cycles"
            );
            let outcome = on(&line, move |pm| {
                (0..lines).for_each(|line| _ = pm.load(at(line, 0)));
                if aborts {
                    pm.begin_abortable()?;
                    (0..40).for_each(|word| pm.store(at(word % lines, word / lines % 8), 1));
                    pm.abort();
                }
                Ok(())
            });
            outcome.report.cycles
        };
        let takes = |latency, lines| cycles(latency, lines, true) - cycles(latency, lines, false);
        let (near, far) = (takes(12, 8), takes(1_012, 8));
        assert!((1_000..3_000).contains(&(far - near)), "{design}: {near} and {far} cycles");
        let more = takes(12, 40).saturating_sub(takes(12, 8));
        assert!(!each || (25..=40).contains(&more), "{design}: {more} cycles for 32 lines more");
    }
}

/// What has ended is drained when it is half of a window.
#[test]
fn a_window_is_drained_when_half_of_it_has_ended() {
    for design in ["loc-wal", "loc-kiln"] {
        let drains = |txs: u64| {
            let line = format!("{design} scribble cores=1 machine=silo design.sd=4");
            let outcome = on(&line, move |pm| (1..=txs).try_for_each(|tx| store(pm, &[1], tx)));
            counted(&outcome, "drains")
        };
        assert_eq!([1, 2, 3, 4].map(drains), [0, 1, 1, 2], "{design}");
    }
}

/// A window holds the transactions of a core that run or are not durable.
#[test]
fn a_window_holds_as_many_transactions_as_it_says() {
    for (design, slow) in [("loc-wal", ""), ("loc-kiln", "design.llc_write=1000")] {
        let full = |transactions: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo controller.noc_latency=100us design.sd=3 \
                 design.drain=oldest {slow}"
            );
            let outcome = on(&line, move |pm| {
                (0..transactions).try_for_each(|value| store(pm, &[1], value + 1))
            });
            counted(&outcome, "window_full")
        };
        assert_eq!([3, 4].map(full), [0, 1], "{design}");
    }
}

/// No transaction of LOC over Kiln begins while more than half of the overflow area would be in use
/// if every line that is not retired had to leave.
#[test]
fn a_transaction_begins_while_half_of_the_overflow_area_would_do() {
    let full = |lines: usize| {
        let line = "loc-kiln scribble cores=1 machine=silo design.sd=4 design.drain=oldest \
                    design.overflow_lines=8 design.llc_write=1000";
        let outcome = on(line, move |pm| {
            store(pm, &vec![1; lines], 1)?;
            store(pm, &[], 2)
        });
        counted(&outcome, "overflow_crowded")
    };
    assert_eq!([4, 5].map(full), [0, 1]);
}

/// Who waits for durability has what it ended drained, which walks down the caches.
#[test]
fn a_flush_of_loc_walks_down_the_caches_once() {
    for design in ["loc-wal", "loc-kiln"] {
        let waits = |level: &str, cycles: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo core.width=1 \
                 {level}.data_latency={cycles}cycles"
            );
            let outcome = on(&line, |pm| {
                store(pm, &[1], 1)?;
                pm.work(100_000);
                pm.durable();
                Ok(())
            });
            outcome.report.cores.stalls[Stall::Fence as usize]
        };
        for level in ["l1d", "l2", "llc"] {
            let more = waits(level, 1_000) - waits(level, 100);
            assert!((895..=905).contains(&more), "{design}, {level}: {more} cycles");
        }
    }
}

/// A truncation writes the head, which is one word, and what is known of the log counts as such.
#[test]
fn a_truncation_writes_a_word_of_metadata() {
    for design in ["h-wal", "ec-wal"] {
        let line = format!("{design} scribble cores=1 pm.log_size=4KiB");
        let outcome = on(&line, |pm| (1..40).try_for_each(|value| store(pm, &[1], value)));
        let truncations = counted(&outcome, "truncations");
        assert!(truncations > 0, "{design}");
        let bytes = outcome.report.meters.wpq_bytes[Class::Metadata as usize];
        assert_eq!(bytes, 64 * counted(&outcome, "log_groups") + 8 * truncations, "{design}");
    }
}
