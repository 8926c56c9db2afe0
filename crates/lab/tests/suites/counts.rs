//! What designs count, in programs so short that it can be counted by hand.

use crate::common::{crash, run};
use crate::programs::{at, counted, on, store};
use model::engine::Outcome;
use model::meters::Class;
use model::units::CoreId;
use model::workload::LockId;
use serde_json::{Value, json};

/// Checks what a design counted.
fn counts(outcome: &Outcome, expected: &[(&str, u64)]) {
    for (name, count) in expected {
        assert_eq!(counted(outcome, name), *count, "{name}");
    }
}

/// Caches of two lines, two lines and four.
const SMALL: &str = "llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 l1d.size=128B l1d.assoc=2";

/// Eight lines, of which the level above the last keeps two and the last four: six come down, and
/// four of these leave. The commit cleans the two that are left above.
#[test]
fn kiln_counts_lines() {
    let outcome = on(&format!("kiln scribble cores=1 {SMALL}"), |pm| {
        pm.begin()?;
        (0..8).for_each(|line| pm.store(at(line, 0), 1));
        pm.work(100_000);
        pm.load(at(0, 0));
        pm.work(100_000);
        pm.commit();
        Ok(())
    });
    let four = [("lines_overflowed", 4 + 1), ("overflow_max", 4 + 1)];
    counts(&outcome, &four);
    // The first line was away and comes back, and another one leaves for it.
    let more = [("overflow_refetched", 1), ("lines_came_down", 6 + 1), ("lines_cleaned", 1)];
    counts(&outcome, &more);
    assert_eq!(counted(&outcome, "begins_waited_for_id"), 0);
}

/// A store of Silo that changes nothing makes no log, one to a word that has a log is merged with
/// it, and a fifth log finds a buffer of four: of these an overflow moves three.
#[test]
fn silo_counts_logs() {
    let line = "silo scribble cores=1 machine=silo design.entries=4 design.overflow_batch=3";
    let outcome = on(line, |pm| {
        pm.begin()?;
        pm.store(at(0, 0), 1);
        pm.store(at(0, 0), 2);
        pm.store(at(0, 1), 0);
        (1..4).for_each(|word| pm.store(at(0, word), 1));
        pm.work(10_000);
        pm.store(at(0, 4), 1);
        pm.work(10_000);
        pm.commit();
        pm.work(10_000);
        Ok(())
    });
    counts(
        &outcome,
        &[
            ("logs_generated", 6),
            ("logs_ignored", 1),
            ("logs_merged", 1),
            ("overflow_batches", 1),
            ("logs_in_buffer_max", 4),
            ("in_place_updates", 5 - 3),
        ],
    );
}

/// A word's first store makes an undo+redo entry, one soon after goes into it, and one after it has
/// left is deferred, as are all that follow: the commit's scan makes one redo entry of them.
#[test]
fn morlog_counts_stores() {
    for design in ["morlog", "morlog-dp"] {
        let outcome = on(&format!("{design} scribble cores=1 machine=silo"), |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.store(at(0, 0), 2);
            pm.store(at(0, 1), 1);
            pm.work(10_000);
            (3..6).for_each(|value| pm.store(at(0, 0), value));
            pm.commit();
            pm.durable();
            Ok(())
        });
        counts(
            &outcome,
            &[
                ("ur_entries", 2),
                ("stores_coalesced", 1),
                ("stores_deferred", 3),
                ("words_scanned_at_commit", 1),
                ("redo_entries", 1),
                ("redo_entries_merged", 0),
                ("log_records", 2 + 1),
                ("commit_records", 1),
            ],
        );
    }
}

/// A log buffer of two lines: a store to one of them is merged, and each further line drives one
/// out. Three lines make three records.
#[test]
fn a_redo_log_counts_records() {
    let line = "redo-log scribble cores=1 machine=silo design.entries=2";
    let outcome = on(line, |pm| {
        pm.begin()?;
        for line in [0, 1, 1, 2] {
            pm.store(at(line, 0), line + 1);
        }
        pm.commit();
        Ok(())
    });
    counts(&outcome, &[("stores_merged", 1), ("buffer_evictions", 1), ("records", 3)]);
}

/// Records of stores and of commits are counted apart, and each line that a store wrote is forced
/// once by `base`.
#[test]
fn hardware_logs_count_records() {
    for design in ["base", "fwb", "morlog"] {
        let outcome = on(&format!("{design} scribble cores=1 machine=silo"), |pm| {
            (1..=5).try_for_each(|value| store(pm, &[2], value))
        });
        counts(&outcome, &[("log_records", 5 * 2), ("commit_records", 5), ("log_wraps", 0)]);
        if design == "base" {
            assert_eq!(counted(&outcome, "lines_forced"), 5 * 2);
        }
    }
}

/// Two stores to a line since a fence are one entry, and a fence is one, too, under DPO.
#[test]
fn persist_buffers_count_entries() {
    for (design, fences) in [("undo@hops", 0), ("undo@dpo", 1)] {
        let line = format!("{design} scribble cores=1 machine=silo controller.noc_latency=10us");
        let outcome = on(&line, |pm| {
            (0..3).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            pm.store(at(0, 0), 1);
            pm.store(at(1, 0), 1);
            pm.store(at(1, 1), 1);
            pm.order();
            pm.store(at(1, 0), 2);
            pm.store(at(2, 0), 2);
            Ok(())
        });
        counts(&outcome, &[("entries", 4), ("stores_merged", 1), ("entries_max", 4 + fences)]);
        match fences {
            0 => counts(&outcome, &[("epochs", 1)]),
            _ => counts(&outcome, &[("fences", 1)]),
        }
    }
}

/// Of two transactions that store to the same line, or page, the second waits for the first once.
#[test]
fn a_conflict_is_counted_once() {
    for (design, conflicts) in [("ssp", "line_conflicts"), ("shadow-paging", "page_conflicts")] {
        let outcome = on(&format!("{design} scribble cores=2 machine=silo"), |pm| {
            pm.load(at(u64::from(pm.core().0), 0));
            pm.work(100_000 * (1 + u64::from(pm.core().0)));
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.store(at(0, 1), 1);
            pm.work(400_000);
            pm.commit();
            Ok(())
        });
        counts(&outcome, &[(conflicts, 1), ("fallbacks", 0)]);
    }
}

/// A TLB gains a page without a slot while another page has the only one, and cores that have
/// nothing to wait for go on in software.
#[test]
fn pages_without_slots_are_counted() {
    let line = "ssp scribble cores=1 machine=silo tlb.entries=4 tlb.assoc=4 tlb.l2_entries=0 \
                design.slots=1";
    let outcome = on(line, |pm| {
        (0..3).for_each(|page| _ = pm.load(at(64 * page, 0)));
        pm.begin()?;
        pm.store(at(64, 0), 1);
        pm.commit();
        Ok(())
    });
    counts(
        &outcome,
        &[
            ("tlb_misses", 3),
            ("fills_without_slot", 2),
            ("slots_exhausted", 1),
            ("fallbacks", 1),
            ("waits_for_slot", 0),
        ],
    );
}

/// A line of LAD that a commit sends is prepared, and becomes a write when its controller hears of
/// the commit. What was logged of lines that were written in place is dropped then.
#[test]
fn lad_counts_lines() {
    let line = "lad scribble cores=1 machine=silo controller.write_buffer_size=4";
    let outcome = on(line, |pm| store(pm, &[1; 7], 1));
    counts(
        &outcome,
        &[
            ("lines_prepared", 7),
            ("spills", 7 - 4),
            ("entries_committed", 4),
            ("undo_entries_dropped", 7 - 4),
        ],
    );
}

/// Each line of LAD that the queue does not take when it comes has waited for room, once: behind
/// others, too.
#[test]
fn a_line_of_lad_waits_for_room_once() {
    for (lines, waited) in [(4, 0), (5, 1), (7, 3), (12, 8)] {
        let line = "lad scribble machine=silo cores=1 controller.write_buffer_size=4";
        let outcome = on(line, move |pm| store(pm, &vec![1; lines], 1));
        assert_eq!(counted(&outcome, "lines_waited_for_room"), waited, "{lines} lines");
    }
    // Lines leave a first level of two. The queue takes lines 0 to 3, and then 4, 5 and 6, line 3
    // again, and 7 and 8 wait. Line 3 needs no room when its turn comes, since it has an entry.
    let line = "lad scribble machine=silo cores=1 controller.write_buffer_size=4 l1d.size=128B \
                l1d.assoc=2";
    let outcome = on(line, |pm| {
        (0..9).for_each(|line| _ = pm.load(at(line, 0)));
        pm.work(100_000);
        pm.begin()?;
        [0, 1, 2, 3, 4, 5, 6, 3, 7, 8].into_iter().for_each(|line| pm.store(at(line, 0), 1));
        pm.work(100_000);
        pm.commit();
        Ok(())
    });
    counts(
        &outcome,
        &[
            ("lines_sent_on_leaving", 8),
            ("lines_prepared", 2),
            ("entries_replaced", 1),
            ("spills", 5),
            ("lines_waited_for_room", 6),
        ],
    );
}

/// A transaction that begins while the only TxID has lines to lose waits for it.
#[test]
fn who_waits_for_a_number_of_kiln_is_counted() {
    for (ids, waits) in [(1, 1), (2, 0)] {
        let line = format!("kiln scribble cores=2 machine=silo design.tx_ids={ids}");
        let outcome = on(&line, |pm| {
            if pm.core() == CoreId(1) {
                pm.work(10_000);
            }
            pm.begin()?;
            pm.store(at(8 * u64::from(pm.core().0), 0), 1);
            pm.work(100_000);
            pm.commit();
            Ok(())
        });
        counts(&outcome, &[("begins_waited_for_id", waits)]);
    }
}

/// A page that both cores' TLBs have is shot down once when its commit remaps it, and the frame
/// that it leaves is free.
#[test]
fn shadow_paging_counts_frames() {
    let outcome = on("shadow-paging scribble cores=2 machine=silo", |pm| {
        pm.load(at(0, 0));
        pm.lock(LockId(0));
        store(pm, &[1, 1], 1)?;
        pm.unlock(LockId(0));
        Ok(())
    });
    // The first commit finds the page in the other core's TLB, and so does the second if it has
    // been used since.
    counts(
        &outcome,
        &[("pages_shadowed", 2), ("frames_freed", 2), ("lines_copied", 2 * 64), ("fallbacks", 0)],
    );
    assert!((1..=2).contains(&counted(&outcome, "shootdowns")));
}

/// A buffer of 20 logs overflows with the 21st. The overflow moves as many records of 18 bytes as a
/// line of the on-DIMM buffer holds, which has 256, and the other words are updated after the
/// commit.
#[test]
fn an_overflow_of_silo_moves_what_a_line_holds() {
    for (words, overflows, updates) in [(20, 0, 20), (21, 1, 21 - 256 / 18)] {
        let outcome = on("silo scribble cores=1 machine=silo", move |pm| {
            pm.begin()?;
            (0..words).for_each(|word| pm.store(at(word / 8, word % 8), 1));
            pm.work(10_000);
            pm.commit();
            pm.work(10_000);
            Ok(())
        });
        counts(&outcome, &[("overflow_batches", overflows), ("in_place_updates", updates)]);
    }
}

/// Three quarters of the 32 entries of BBB's buffer are used when the oldest is drained. Stores to
/// a line that has an entry are merged.
#[test]
fn a_battery_backed_buffer_counts_entries() {
    for (lines, drained) in [(23, 0), (24, 1), (26, 3)] {
        let outcome = on("undo@bbb scribble cores=1 machine=silo", move |pm| {
            (0..lines).for_each(|line| pm.store(at(line, 0), 1));
            pm.store(at(lines - 1, 1), 1);
            pm.work(100_000);
            Ok(())
        });
        counts(
            &outcome,
            &[
                ("entries", lines),
                ("stores_merged", 1),
                ("entries_max", lines),
                ("entries_drained", drained),
            ],
        );
    }
}

/// Of eight lines of a running transaction the last level keeps four. The others go to the overflow
/// area, and once more when the transaction is drained, in the same cycle as the rest.
#[test]
fn loc_over_kiln_counts_lines() {
    let line = format!("loc-kiln scribble cores=1 design.sd=1 {SMALL}");
    let outcome = on(&line, |pm| {
        store(pm, &[1; 8], 1)?;
        pm.work(100_000);
        Ok(())
    });
    counts(
        &outcome,
        &[
            ("transactions_with_stores", 1),
            ("lines_cleaned", 8),
            ("notes", 0),
            ("drains", 1),
            ("closure_max", 1),
            ("durable_at_once_max", 1),
            ("lines_overflowed_running", 4),
            ("lines_overflowed", 4),
        ],
    );
}

/// What a transaction of one word writes, in bytes of log, of marks, of data, and of evicted lines.
/// A log of lines has two lines for each, and a mark takes a line; `redo-log` has two marks. Kiln
/// writes nothing, but for the version before that a second transaction replaces.
#[test]
fn what_a_transaction_writes_counts_as_what_it_is() {
    for (design, bytes) in [
        ("undo-log", [128, 64, 64, 0]),
        ("redo-log", [128, 2 * 64, 64, 0]),
        ("undo@hops", [128, 64, 64, 0]),
        ("undo@dpo", [128, 64, 64, 0]),
        ("lad", [0, 0, 64, 0]),
        ("silo", [0, 0, 8, 0]),
        ("kiln", [0, 0, 0, 32]),
    ] {
        let outcome = on(&format!("{design} scribble cores=1 machine=silo"), |pm| {
            for value in 1..=2 {
                store(pm, &[1], value)?;
                pm.work(100_000);
            }
            Ok(())
        });
        let written = outcome.report.meters.wpq_bytes;
        let classes = [Class::Log, Class::Commit, Class::Data, Class::HomeWriteBack];
        let found = classes.map(|class| written[class as usize] / 2);
        assert_eq!(found, bytes, "{design}");
    }
}

/// A campaign counts what the same run without a power failure does.
#[test]
fn a_campaign_lists_what_its_run_does_not_count() {
    for words in ["ssp hash", "ssp scribble design.slots=3 design.write_set=2", "silo btree"] {
        let line = format!("{words} machine=tiny cores=2 txs=40 seed=3");
        let answer = crash(&format!("{line} points=20 lives=1 nested=false"));
        let counters = &run(&format!("{line} warmup=0"))["design_counters"];
        let listed = answer["never"].as_array().expect("the run ended");
        for (name, count) in counters.as_object().expect("counters") {
            let is_listed = listed.contains(&json!(name));
            let is_of_events = !name.ends_with("_max") && !name.ends_with("_cycles");
            assert_eq!(is_listed, *count == json!(0) && is_of_events, "{line}: {name}");
        }
    }
    let stopped = crash("native scribble cores=2 txs=40 seed=1 lives=1");
    assert_eq!((&stopped["stopped"], &stopped["never"]), (&json!(true), &Value::Null));
}
