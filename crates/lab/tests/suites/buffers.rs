//! Persist buffers: what they send and when, and what they count, under programs made for that.

use crate::programs::{at, counted, on};
use model::meters::{Class, Stall};
use model::units::{CoreId, DRAM_BASE};
use model::workload::Ptr;

/// Entries of HOPS's persist buffer for which no core waits are sent one an interval: a fence that
/// comes later has nothing to wait for.
#[test]
fn a_lazy_persist_buffer_sends_an_entry_an_interval() {
    let waits = |lines: u64, cycles: u64| {
        let line = "undo@hops scribble cores=1 core.width=1 design.drain=lazy \
                    design.interval=2000";
        let outcome = on(line, move |pm| {
            for line in 0..lines {
                pm.store(at(line, 0), 7);
            }
            pm.work(cycles);
            pm.durable();
            Ok(())
        });
        outcome.report.cores.stalls[Stall::Fence as usize] > 0
    };
    for lines in 1..=3 {
        let sent = 2_000 * lines;
        assert!(waits(lines, sent - 500) && !waits(lines, sent + 500), "{lines} lines");
    }
}

/// A persist buffer hears one way later that another core waits for it, even if its own core stores
/// meanwhile: with each store the buffer looks for an entry to send.
#[test]
fn a_persist_buffer_hears_of_who_waits_for_it_a_way_later() {
    let waits = |stores: u64| {
        let line = "undo@hops scribble cores=2 core.width=1 controller.noc_latency=1us \
                    design.drain=lazy design.interval=1000000 design.entries=1024 \
                    design.threshold=1024 design.poll=0";
        let outcome = on(line, move |pm| {
            if pm.core() == CoreId(0) {
                pm.store(at(0, 0), 1);
                for line in 0..stores {
                    pm.work(100);
                    pm.store(at(10 + line, 0), 1);
                }
                return Ok(());
            }
            pm.work(10_000);
            pm.load(at(0, 0));
            pm.order();
            pm.store(at(1, 0), 2);
            pm.durable();
            Ok(())
        });
        outcome.report.cores.stalls[Stall::Fence as usize]
    };
    let (idle, busy) = (waits(0), waits(400));
    assert!(idle.abs_diff(busy) < 100, "{idle} and {busy} cycles");
}

/// An entry of a persist buffer that waits for the last of some epochs of another core waits once,
/// though it looks again when each of them is durable.
#[test]
fn an_entry_that_waits_for_another_core_is_counted_once() {
    let line = "undo@hops scribble cores=2 core.width=1 controller.domain=media pm.tWRITE=2us \
                design.poll=0";
    let outcome = on(line, |pm| {
        if pm.core() == CoreId(0) {
            for line in 0..6 {
                pm.store(at(line, 0), 1);
                pm.order();
            }
            return Ok(());
        }
        pm.work(4_000);
        pm.load(at(5, 0));
        pm.order();
        pm.store(at(10, 0), 2);
        pm.durable();
        Ok(())
    });
    assert_eq!(counted(&outcome, "dependences_after_read"), 1);
    assert_eq!(counted(&outcome, "waits_for_dependences"), 1);
}

/// A line that left the caches and is fetched again before it is durable is answered by the core's
/// own persist buffer, or by the controllers' queue.
#[test]
fn a_persist_buffer_answers_its_own_core() {
    let line = "undo@dpo scribble cores=1 core.width=1 controller.domain=media pm.tWRITE=100us \
                pm.banks_per_rank=16 llc.size=256B l2.size=128B l1d.size=128B";
    let outcome = on(line, |pm| {
        pm.store(at(0, 0), 1);
        pm.order();
        // Lines of other banks, which the write does not hold up.
        (10..20).for_each(|line| _ = pm.load(at(line, 0)));
        pm.work(20_000);
        pm.load(at(0, 0));
        Ok(())
    });
    assert!(counted(&outcome, "evictions_dropped") > 0);
    assert_eq!(counted(&outcome, "misses_answered"), 1);
}

/// What is written to volatile memory is in no persist buffer, and a fence waits for it all the
/// same: for the answer to a store past the caches, and until other stores have left the core.
#[test]
fn a_fence_waits_for_volatile_memory_beside_a_persist_buffer() {
    for design in ["undo@hops", "undo@dpo"] {
        let cycles = |settings: &str, past_caches: bool| {
            let line = format!("{design} scribble cores=1 machine=silo {settings}");
            let outcome = on(&line, move |pm| {
                let volatile = Ptr::to(DRAM_BASE + (1 << 12));
                if past_caches {
                    pm.store_words_past_caches(volatile, &[1; 8]);
                } else {
                    pm.load(at(0, 0));
                    pm.work(100_000);
                    pm.store(at(0, 0), 1);
                    pm.store(volatile, 1);
                }
                pm.durable();
                // More than may be done before the fence is.
                pm.work(100_000);
                Ok(())
            });
            outcome.report.cycles
        };
        for (setting, past_caches, least) in [
            ("controller.static_frontend_latency=1us", true, 1_900),
            ("dram.tRCD=10us", false, 19_000),
        ] {
            let more = cycles(setting, past_caches) - cycles("", past_caches);
            assert!(more >= least, "{design} with {setting}: {more} cycles");
        }
    }
}

/// The time for which a fence waits that comes long after stores to so many lines.
fn fence_waits(line: &str, lines: u64) -> u64 {
    let outcome = on(line, move |pm| {
        (0..lines).for_each(|line| pm.store(at(line, 0), 1));
        pm.work(100_000);
        pm.durable();
        Ok(())
    });
    outcome.report.cores.stalls[Stall::Fence as usize]
}

/// A fence has the entries of HOPS's buffer sent, one a cycle.
#[test]
fn a_persist_buffer_sends_an_entry_a_cycle_when_it_is_asked_to() {
    let line = "undo@hops scribble cores=1 machine=silo design.drain=lazy \
                design.interval=1000000 design.entries=64 design.threshold=64";
    assert_eq!(fence_waits(line, 31) - fence_waits(line, 1), 30);
}

/// BBB's buffer drains an entry a cycle, also when several stores a cycle come to it: of stores for
/// which it has no room each waits a cycle longer than the one before.
#[test]
fn a_battery_backed_buffer_drains_an_entry_a_cycle() {
    let waits = |more: u64| {
        let line = "undo@bbb scribble cores=1 machine=silo core.width=8 design.entries=32 \
                    design.threshold=50";
        let outcome = on(line, move |pm| {
            (0..47).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            // One less than makes the buffer drain, and when these have left the others.
            (0..15).for_each(|line| pm.store(at(line, 0), 1));
            pm.work(100_000);
            (15..32 + more).for_each(|line| pm.store(at(line, 0), 1));
            pm.work(100_000);
            Ok(())
        });
        assert_eq!(counted(&outcome, "buffer_full"), more);
        outcome.report.cores.stalls[Stall::LogFull as usize]
    };
    assert_eq!(waits(15) - waits(1), 14);
}

/// A buffer of DPO hears a way later that the controllers have room: behind a queue of one entry
/// each write, and each fence, waits for the way there and for the way back.
#[test]
fn a_persist_buffer_hears_of_room_in_the_queue_a_way_later() {
    let waits = |way: u64, lines: u64, fences: bool| {
        let line = format!(
            "undo@dpo scribble cores=1 machine=silo design.queue=1 controller.noc_latency={way}us"
        );
        let outcome = on(&line, move |pm| {
            for line in 0..lines {
                pm.store(at(line, 0), 1);
                if fences {
                    pm.order();
                }
            }
            pm.durable();
            Ok(())
        });
        outcome.report.cores.stalls[Stall::Fence as usize]
    };
    // A microsecond is 2,000 cycles.
    for (fences, ways) in [(false, 2), (true, 4)] {
        let each = |way| (waits(way, 11, fences) - waits(way, 1, fences)) / 10;
        let more = each(2) - each(1);
        assert_eq!((more + 1_000) / 2_000, ways, "{more} cycles, fences: {fences}");
    }
}

/// A core that waits for room in BBB's buffer hears a way later that a controller has an entry, and
/// at once if an entry moves to the buffer of another core, which stores to its line.
#[test]
fn who_waits_for_a_battery_backed_buffer_hears_of_room() {
    let waits = |way: u64, moves: bool| {
        let line = format!(
            "undo@bbb scribble cores=2 machine=silo core.width=1 design.entries=2 \
             design.threshold=100 controller.noc_latency={way}us"
        );
        let outcome = on(&line, move |pm| {
            if pm.core() == CoreId(0) {
                (0..3).for_each(|line| _ = pm.load(at(line, 0)));
                pm.work(200_000);
                (0..3).for_each(|line| pm.store(at(line, 0), 1));
            } else if moves {
                // A little later than the other core stores.
                pm.load(at(10, 0));
                pm.work(210_000);
                pm.store(at(1, 1), 1);
            }
            Ok(())
        });
        assert_eq!(counted(&outcome, "buffer_full"), 1);
        assert_eq!(counted(&outcome, "entries_moved"), u64::from(moves));
        outcome.report.cores.stalls[Stall::LogFull as usize]
    };
    let more = waits(2, false) - waits(1, false);
    assert_eq!((more + 1_000) / 2_000, 2, "one there and one back: {more} cycles");
    let (alone, moved) = (waits(20, false), waits(20, true));
    assert!(moved < alone / 2, "{moved} and {alone} cycles");
}

/// A lazy buffer of HOPS sends its oldest entry as soon as it has as many as the threshold, so that
/// a fence later has one less to wait for.
#[test]
fn a_lazy_persist_buffer_sends_at_its_threshold() {
    let line = "undo@hops scribble cores=1 machine=silo design.drain=lazy \
                design.interval=1000000 design.entries=8 design.threshold=4";
    let [two, three, four, five] = [2, 3, 4, 5].map(|lines| fence_waits(line, lines));
    assert_eq!([three, four, five], [two + 1; 3]);
}

/// What BBB's buffer drains counts as log or as data by where it lies.
#[test]
fn a_battery_backed_buffer_knows_log_from_data() {
    let line = "undo@bbb scribble cores=1 txs=50 warmup=0 design.entries=4";
    let row = crate::common::run(line);
    let [log, data, home] = ["log", "data", "home_write_back"]
        .map(|class| row["pm_writes"]["by_class"][class].as_u64().expect("a number"));
    assert!(log > 0 && data > 0 && home == 0, "{log}, {data}, {home}");
}

/// A core that asks for a line which another core's buffer has, and no cache, has that buffer send
/// it.
#[test]
fn a_fill_hurries_the_buffer_of_another_core() {
    let line = "undo@hops scribble cores=2 core.width=1 design.drain=lazy \
                design.interval=1000000 design.poll=0";
    let outcome = on(line, |pm| {
        if pm.core() == CoreId(0) {
            pm.store(at(0, 0), 1);
            (0..8).for_each(|push| _ = pm.load(at(100 + 4 * push, 0)));
            return Ok(());
        }
        pm.work(10_000);
        pm.load(at(0, 0));
        Ok(())
    });
    assert_eq!(counted(&outcome, "fills_stalled"), 1);
    assert!(outcome.report.cycles < 100_000, "{} cycles", outcome.report.cycles);
}

/// If a buffer of HOPS is to send bytes, it sends those that were stored.
#[test]
fn a_persist_buffer_sends_the_bytes_that_were_stored() {
    let data = |carries: &str| {
        let line = format!("undo@hops scribble cores=1 design.carries={carries}");
        let outcome = on(&line, |pm| {
            pm.store(at(0, 1), 7);
            pm.store(at(0, 3), 7);
            pm.durable();
            Ok(())
        });
        outcome.report.meters.wpq_bytes[Class::Data as usize]
    };
    assert_eq!(["line", "bytes"].map(data), [64, 16]);
}

/// What was flushed counts as what the flush says that it was for.
#[test]
fn a_flush_says_what_a_store_was_for() {
    for design in ["undo@hops", "undo@dpo"] {
        let row = crate::common::run(&format!("{design} scribble cores=1 txs=20 warmup=0"));
        let bytes = |class: &str| row["pm_writes"]["by_class"][class].as_u64().expect("a number");
        // A mark for each transaction, in the log area.
        assert_eq!(bytes("commit"), 20 * 64, "{design}: {row}");
    }
}

/// What comes to DPO's ordered queue passes the front end of its controller.
#[test]
fn entries_pass_the_front_end_before_the_ordered_queue() {
    let waits = |ns: u64| {
        let line = format!(
            "undo@dpo scribble cores=1 machine=silo controller.static_frontend_latency={ns}ns"
        );
        fence_waits(&line, 1)
    };
    // 100 ns are 200 cycles.
    assert_eq!(waits(200) - waits(100), 200);
}

/// A line that a core stores to on both sides of a fence has one youngest copy, and a core that
/// stores to it next takes that from it.
#[test]
fn an_older_entry_is_no_youngest_copy() {
    let line = "undo@dpo scribble cores=3 machine=silo core.width=1 design.filter_bits=0 \
                controller.noc_latency=100us";
    let outcome = on(line, |pm| {
        pm.work(10_000 * u64::from(pm.core().0));
        pm.store(at(0, 0), 1);
        if pm.core() == CoreId(0) {
            pm.order();
            pm.store(at(0, 0), 2);
        }
        Ok(())
    });
    assert_eq!(counted(&outcome, "dependences_after_write"), 2, "each on the core before");
}

/// A persist buffer has as many entries as it says before a store waits.
#[test]
fn a_persist_buffer_holds_as_many_entries_as_it_says() {
    for design in ["undo@hops", "undo@dpo", "undo@bbb"] {
        let full = |lines: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo design.entries=4 \
                 controller.noc_latency=10us"
            );
            let outcome = on(&line, move |pm| {
                (0..lines).for_each(|line| _ = pm.load(at(line, 0)));
                pm.work(100_000);
                (0..lines).for_each(|line| pm.store(at(line, 0), 1));
                Ok(())
            });
            counted(&outcome, "buffer_full")
        };
        assert_eq!([4, 5].map(full), [0, 1], "{design}");
    }
}

/// A fence that waits for one entry waits for its way to a controller and for the answer's way
/// back. What DPO's fence leaves before is durable already; its marker goes the same ways, and of
/// several controllers each has to hear what the others have left to do.
#[test]
fn a_fence_waits_for_as_many_ways_as_there_are_messages() {
    // Nothing leaves HOPS's buffer before the fence.
    const HOPS: &str = "design.drain=lazy design.interval=1000000";
    for (design, settings, controllers, ways) in [
        ("undo@hops", HOPS, 1, 2),
        ("undo@hops", HOPS, 2, 2),
        ("undo@dpo", "", 1, 2),
        ("undo@dpo", "", 2, 3),
    ] {
        let waits = |way: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo controller.noc_latency={way}us \
                 controller.count={controllers} {settings}"
            );
            fence_waits(&line, 1)
        };
        // A microsecond is 2,000 cycles.
        assert_eq!(waits(2) - waits(1), 2_000 * ways, "{design}, {controllers} controllers");
    }
}

/// A buffer of HOPS sees that another core's epoch is durable when the vector is read next, at a
/// multiple of so many nanoseconds.
#[test]
fn a_dependence_of_hops_is_seen_at_a_multiple_of_the_interval() {
    for poll in [100_000, 300_000] {
        let line = format!(
            "undo@hops scribble cores=2 core.width=1 design.poll={poll} \
                            design.interval=1000000"
        );
        let outcome = on(&line, |pm| {
            if pm.core() == CoreId(0) {
                pm.store(at(0, 0), 1);
                return Ok(());
            }
            pm.work(10_000);
            pm.load(at(0, 0));
            pm.order();
            pm.store(at(10, 0), 2);
            pm.durable();
            Ok(())
        });
        assert_eq!(counted(&outcome, "waits_for_dependences"), 1);
        // A nanosecond is a cycle, and the entry takes some more.
        let cycles = outcome.report.cycles;
        assert!((poll - 500..poll + 500).contains(&cycles), "{poll}: {cycles} cycles");
    }
}
