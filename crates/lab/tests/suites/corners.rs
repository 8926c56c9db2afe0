//! Corners of single designs that random programs hardly reach: logs that are exactly full, and
//! waits that do not occur unless a program is made for them.

use crate::common::run;
use crate::programs::{at, counted, on, store, try_on};
use model::crash::Points;
use model::engine::{Failure, Outcome};
use model::meters::Stall;
use model::units::{CoreId, LINE_BYTES};
use model::workload::{Ptr, Stop};
use serde_json::Value;

/// Runs two transactions with a log of 1 KiB, a line of marks and a ring of 112 words: a small one,
/// so that the other begins in the middle of the ring, and one that may not fit. Caches hold all of
/// it. Returns the refusal, if there is one.
fn in_a_small_log(line: &str, words: &[u64]) -> Result<(), String> {
    let line =
        format!("{line} cores=1 pm.log_size=1KiB l1d.size=32KiB l2.size=64KiB llc.size=128KiB");
    let words = words.to_vec();
    let outcome = try_on(&line, Points::All, move |pm| {
        store(pm, &[1], 1)?;
        pm.work(100_000);
        store(pm, &words, 2)
    });
    match outcome {
        Ok(outcome) => {
            assert_eq!(outcome.report.transactions.ended, 2);
            let violations = outcome.crashes.expect("a campaign").violations;
            assert!(violations.is_empty(), "{violations:#?}");
            Ok(())
        }
        Err(Failure::Stopped(Stop::Input(text))) => Err(text),
        Err(failure) => panic!("{failure:?}"),
    }
}

/// An entry of the undo log has 16 words. Recovery finds all entries of a full ring.
#[test]
fn an_undo_log_is_full_when_no_entry_fits() {
    assert_eq!(in_a_small_log("undo-log scribble", &[1; 7]), Ok(()));
    let refused =
        in_a_small_log("undo-log scribble", &[1; 8]).expect_err("eight entries do not fit");
    assert!(refused.contains("more than 7 lines does not fit the log of 1024 bytes"), "{refused}");
}

/// When the power fails, words of an entry of the undo log may be missing, and in the next life of
/// the machine an entry of the same line brings exactly those.
#[test]
fn no_entry_of_an_undo_log_is_of_two_lives() {
    crate::common::all_hold([
        "undo-log scribble cores=2 txs=10 seed=701535 nested=false points=300 lives=3 \
         llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 l1d.size=128B l1d.assoc=2 \
         controller.domain=media controller.count=2 controller.intlv_size=64B \
         controller.arrival_jitter=500cycles controller.write_buffer_size=3 \
         core.fenced_stores=dispatch core.clwb_retains=no pm.addr_mapping=RoCoRaBaCh \
         pm.xpbuffer_entries=2 pm.tREAD=1ns pm.tWRITE=1us pm.banks_per_rank=16 \
         workload.words=16 design.entries=1"
            .to_owned(),
    ]);
}

/// A redo record of words has one word, and the words that were stored.
#[test]
fn a_redo_log_is_full_when_no_word_fits() {
    const REDO: &str = "redo-log scribble design.record=words";
    assert_eq!(in_a_small_log(REDO, &[1; 56]), Ok(()));
    let mut one_more = [1; 56];
    one_more[30] = 2;
    let refused = in_a_small_log(REDO, &one_more).expect_err("it has 113 words");
    assert!(refused.contains("do not fit the log of 1024 bytes"), "{refused}");
}

/// A region of three lines has room for the records and ID tuples of the 20 logs of Silo's buffer,
/// and for no overflow beside them.
#[test]
fn a_log_region_of_silo_has_room_for_what_is_on_chip() {
    assert_eq!(in_a_small_log("silo scribble", &[8, 8, 4]), Ok(()));
    let refused = in_a_small_log("silo scribble", &[8, 8, 5]).expect_err("it overflows");
    assert!(refused.contains("does not fit Silo's log region of 1024 bytes"), "{refused}");
}

/// Runs transactions most of whose stores change nothing, under MorLog with records that have only
/// what changed.
fn silent_stores(line: &str) -> Result<Outcome, Failure> {
    let line = line.replacen(' ', " scribble design.slde=on ", 1);
    try_on(&line, Points::Count, |pm| {
        store(pm, &[8; 6], 0)?;
        store(pm, &[2], 1)
    })
}

/// An entry without bytes that changed makes no record, and leaves room all the same: a core that
/// waits for room in the ring, or in a buffer, hears of it.
#[test]
fn silent_entries_of_morlog_leave_room() {
    for design in ["morlog", "morlog-dp"] {
        for entries in [1, 2, 16] {
            let line = format!("{design} cores=1 design.log_lines=8 design.ur_entries={entries}");
            let outcome = silent_stores(&line).unwrap_or_else(|failure| panic!("{failure:?}"));
            assert_eq!(counted(&outcome, "silent_entries_discarded"), 48, "{line}");
        }
        // With as many lines as are left for what must not wait there is never room.
        let failure = silent_stores(&format!("{design} cores=2 design.log_lines=3")).err();
        let Some(Failure::Stopped(Stop::Input(text))) = failure else { panic!("{failure:?}") };
        assert!(text.contains("do not fit the log ring of 3 lines"), "{text}");
    }
}

/// The record that a line drives out of the log buffer leaves when the store that drives it out
/// does, and the line of that store may have to come first. The commit waits as long for the record
/// as if the line had been there.
#[test]
fn a_record_leaves_the_log_buffer_of_a_redo_log_with_the_store_that_drives_it_out() {
    let commit = |comes: bool| {
        // All writes are in one bank, and every answer is late.
        let line = "redo-log scribble machine=ssp cores=1 design.entries=1 pm.banks_per_rank=1 \
                    controller.static_backend_latency=20us";
        let outcome = on(line, move |pm| {
            pm.load(at(0, 0));
            pm.load(at(if comes { 2 } else { 1 }, 0));
            pm.work(1_000_000);
            store(pm, &[1, 1], 1)
        });
        outcome.report.transactions.commit_latency.max()
    };
    let (late, there) = (commit(true), commit(false));
    assert!(late.abs_diff(there) < 100, "{late} and {there} cycles");
}

/// Lines of LAD that wait beside a controller hold up what any write that waits there holds up:
/// what comes from beyond the second level, and no store whose line its core has.
#[test]
fn lines_of_lad_that_wait_for_room_hold_up_misses_as_other_writes_do() {
    let run = |buffers: u64| {
        let line = format!(
            "lad scribble cores=1 machine=silo l1d.size=2KiB controller.write_buffer_size=4 \
             controller.writeback_buffer_size={buffers}"
        );
        on(&line, |pm| {
            pm.begin()?;
            (0..256).for_each(|line| pm.store(at(line, 0), 1));
            (0..256).for_each(|line| _ = pm.load(at((1 << 12) + line, 0)));
            pm.commit();
            Ok(())
        })
    };
    let (few, many) = (run(1).report, run(4096).report);
    assert_eq!(few.cores.stalls[Stall::LogFull as usize], 0);
    assert!(few.cycles > many.cycles + 500, "{} and {} cycles", few.cycles, many.cycles);
}

/// A commit of Kiln clears the tags of its lines one a cycle, and the next transaction that needs
/// its TxID waits.
#[test]
fn kilns_tags_take_a_cycle_a_line_to_clear() {
    let cycles = |ids, lines: u64| {
        let line = format!("kiln scribble cores=1 machine=loc design.tx_ids={ids}");
        let outcome = on(&line, move |pm| {
            store(pm, &vec![1; lines as usize], 1)?;
            store(pm, &[1], 2)
        });
        outcome.report.cycles
    };
    for lines in [20, 60] {
        let waits = cycles(1, lines) - cycles(2, lines);
        assert!((lines - 10..=lines).contains(&waits), "{waits} cycles for {lines} lines");
    }
}

/// A commit of Kiln has its lines cleaned an interval after each other.
#[test]
fn kiln_cleans_a_line_an_interval() {
    for design in ["kiln", "loc-kiln design.sd=1"] {
        let latency = |interval: u64| {
            let line = design.replacen("kiln", "kiln scribble cores=1 machine=loc", 1);
            let line = format!("{line} design.flush_interval={interval}");
            on(&line, |pm| store(pm, &[1; 4], 1)).report.transactions.commit_latency.max()
        };
        let more = latency(1_001) - latency(1);
        assert!(more.abs_diff(3_000) <= 10, "{design}: {more} cycles for 4 lines");
    }
}

/// Returns how much longer the longer commit of two transactions takes if the way to a controller
/// is 200 cycles longer. They store to the same lines, which the caches have.
fn commit_on_a_longer_way(design: &str, settings: &str, lines: u64) -> u64 {
    let latency = |way: u64| {
        let line = format!(
            "{design} scribble cores=1 machine=silo controller.noc_latency={way}ns {settings}"
        );
        let outcome = on(&line, move |pm| {
            (0..lines).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            (1..3).try_for_each(|value| store(pm, &vec![1; lines as usize], value))
        });
        outcome.report.transactions.commit_latency.max()
    };
    latency(200) - latency(100)
}

/// A line that left the last level before it was durable is read from the overflow area, or from
/// the log, which takes longer.
#[test]
fn a_line_that_left_undurable_is_found_later() {
    for (design, found) in [
        ("kiln", "overflow_refetched"),
        ("loc-kiln", "overflow_refetched"),
        ("h-wal", "reads_redirected"),
    ] {
        let ended = |latency: u64| {
            let line = format!(
                "{design} scribble cores=1 llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 \
                 l1d.size=128B l1d.assoc=2 design.redirect_latency={latency}"
            );
            let outcome = on(&line, |pm| {
                pm.begin()?;
                (0..12).for_each(|line| pm.store(at(line, 0), 1));
                pm.load(at(0, 0));
                pm.commit();
                Ok(())
            });
            (outcome.report.cycles, counted(&outcome, found))
        };
        let ((soon, first), (late, second)) = (ended(0), ended(1_000));
        assert!(first > 0 && first == second, "{design}: {first} and {second} lines");
        assert!(late >= soon + 1_000, "{design}: {soon} and {late} cycles");
    }
}

/// A commit goes from its core to a controller or back as often as it has messages that wait for
/// each other, with one line that the core has. A software log asks again for each fence.
#[test]
fn a_commit_takes_as_many_ways_as_it_has_messages_one_after_the_other() {
    let designs = [
        ("base", 3),
        ("count@x86", 4),
        ("ec-wal", 2),
        ("fwb", 2),
        ("h-wal", 2),
        ("kiln", 2),
        ("lad", 4),
        ("loc-wal design.sd=1", 2),
        ("morlog", 2),
        ("morlog-dp", 2),
        ("redo-log", 4),
        ("redo-log design.commit=counts", 2),
        ("redo@x86", 6),
        ("shadow-paging", 6),
        ("silo", 2),
        ("ssp", 4),
        ("undo-log", 4),
        ("undo@x86", 4),
    ];
    for (design, ways) in designs {
        let (name, settings) = design.split_once(' ').unwrap_or((design, ""));
        let more = commit_on_a_longer_way(name, settings, 1);
        assert_eq!((more + 100) / 200, ways, "{design}: {more} cycles for 200 more a way");
    }
}

/// A last level that waits until memory has what it wrote waits for the answer, too, as logs do:
/// for a committed version that a newer one replaces, and for one that goes to the overflow area.
#[test]
fn a_last_level_hears_that_its_writes_are_durable_a_way_later() {
    let overflows = "design.sd=1 design.old_versions=1";
    for (design, settings, lines) in [("h-wal", "", 1), ("kiln", "", 1), ("loc-kiln", overflows, 2)]
    {
        let more = commit_on_a_longer_way(design, settings, lines);
        assert_eq!(more, 2 * 200, "{design}");
    }
}

/// A core that drains the window of LOC drains what other cores have ended, but not before their
/// stores have left: here one store waits 10 us for its line.
#[test]
fn no_block_of_loc_leaves_before_its_store() {
    for design in ["loc-wal", "loc-kiln"] {
        let line = format!(
            "{design} scribble cores=2 machine=silo core.width=1 pm.tREAD=10us design.sd=4"
        );
        let outcome = on(&line, |pm| {
            pm.load(at(50 * u64::from(pm.core().0), 0));
            if pm.core() == CoreId(1) {
                pm.work(99_900);
                pm.begin()?;
                pm.store(at(100, 0), 1);
                pm.commit();
                return Ok(());
            }
            pm.work(100_000);
            (1..3).try_for_each(|value| store(pm, &[1], value))?;
            // Until all are announced.
            pm.work(100_000);
            Ok(())
        });
        let (latency, least) = (
            &outcome.report.transactions.commit_latency,
            outcome.report.transactions.commit_latency.min(),
        );
        assert_eq!(latency.len(), 3, "{design}");
        assert!(least >= 20_000, "{design}: durable after {least} cycles");
    }
}

/// A core of LOC that is to begin learns of a place in its window when the answer has come.
#[test]
fn a_window_of_loc_has_a_place_when_its_core_has_heard_of_it() {
    let ends = |work: u64| {
        let line = "loc-wal scribble cores=1 machine=silo core.width=1 design.sd=2 \
                    controller.noc_latency=200ns";
        let outcome = on(line, move |pm| {
            (0..3).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(10_000);
            store(pm, &[1], 1)?;
            store(pm, &[0, 1], 2)?;
            pm.work(work);
            store(pm, &[0, 0, 1], 3)
        });
        outcome.report.cycles
    };
    // A core does not begin earlier because it came later.
    let waits = ends(1);
    for work in (1..1_000).step_by(50) {
        let end = ends(work);
        assert!(end + 2 >= waits, "{work} instructions: {end} and {waits} cycles");
    }
}

/// A commit record, metadata that follow their data, and lines that follow their records wait one
/// way longer where another controller may have what they wait for.
#[test]
fn between_controllers_is_one_way() {
    for design in ["base", "h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (design, settings) = design.split_once(' ').unwrap_or((design, ""));
        let latency = |count: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo controller.noc_latency=100ns \
                 controller.count={count} {settings}"
            );
            let outcome = on(&line, |pm| {
                pm.load(at(0, 0));
                pm.work(100_000);
                store(pm, &[1], 1)
            });
            outcome.report.transactions.commit_latency.max()
        };
        // A line comes through the caches meanwhile, which its records do not.
        let least = if design == "base" { 150 } else { 200 };
        let more = latency(2) - latency(1);
        assert!((least..=200).contains(&more), "{design}: {more} cycles");
    }
}

/// A commit whose pages another core may find in its TLB waits until it cannot.
#[test]
fn shooting_down_a_translation_takes_its_time() {
    let latest = |cycles: u64| {
        let line = format!("shadow-paging scribble cores=2 design.shootdown={cycles}");
        let outcome = on(&line, |pm| {
            for round in 0..4 {
                pm.load(at(0, 0));
                pm.work(20_000 + 10_000 * u64::from(pm.core().0));
                pm.begin()?;
                pm.store(at(0, u64::from(pm.core().0)), round);
                pm.commit();
            }
            Ok(())
        });
        assert!(counted(&outcome, "shootdowns") > 0);
        outcome.report.transactions.commit_latency.max()
    };
    let (at_once, slow) = (latest(0), latest(4_000));
    assert!((3_990..=4_010).contains(&(slow - at_once)), "{at_once} and {slow}");
}

/// The blocks that the last level sends to the log when a transaction ends leave it one a cycle.
#[test]
fn blocks_of_loc_leave_the_last_level_one_a_cycle() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (design, settings) = design.split_once(' ').unwrap_or((design, ""));
        let latency = |lines: u64| {
            let line = format!("{design} scribble cores=1 machine=silo {settings}");
            let outcome = on(&line, move |pm| {
                (0..7).for_each(|line| _ = pm.load(at(line, 0)));
                pm.work(100_000);
                // The number of words is the same in either case.
                let words: Vec<u64> = (0..lines).map(|_| 7 / lines).collect();
                store(pm, &words, 1)
            });
            outcome.report.transactions.commit_latency.max()
        };
        assert_eq!(latency(7) - latency(1), 6, "{design}");
    }
}

/// An acknowledgement of Silo comes from its log buffer, and takes that buffer's latency.
#[test]
fn silo_acknowledges_after_the_latency_of_its_buffer() {
    let latency = |cycles: u64| {
        let line = format!("silo scribble cores=1 design.buffer_latency={cycles}");
        on(&line, |pm| store(pm, &[3], 1)).report.transactions.commit_latency.max()
    };
    assert_eq!(latency(1_008) - latency(8), 1_000);
}

/// A buffer that is full of committed words has room when they have been updated, one an interval.
#[test]
fn silo_updates_a_word_an_interval() {
    let cycles = |interval: u64| {
        let line = format!(
            "silo scribble cores=1 machine=silo design.entries=20 design.update_interval={interval}"
        );
        let outcome = on(&line, |pm| {
            store(pm, &[8, 8, 4], 1)?;
            store(pm, &[8, 8, 4], 2)
        });
        outcome.report.cycles
    };
    let more = cycles(1_008) - cycles(8);
    assert!(more >= 15 * 1_000, "{more} cycles for 20 words that wait 1,000 more each");
}

/// The records of an overflow do not take the places of those of the transaction before, which are
/// forgotten: they would be merged with those on their way, and few would reach the cells.
#[test]
fn the_records_of_each_overflow_of_silo_reach_the_cells() {
    let lines = |txs: u64| {
        let outcome = on("silo scribble cores=1 machine=silo", move |pm| {
            (1..=txs).try_for_each(|value| store(pm, &[8, 8, 5], value))
        });
        outcome.report.meters.media_lines
    };
    assert_eq!(lines(6) - lines(1), 5, "a batch is a line");
}

/// A line is evicted twice in a transaction that stored to a word of it before each time: the first
/// log has its flush-bit by the second time.
#[test]
fn a_flush_bit_of_silo_is_set_once() {
    let outcome = on("silo scribble cores=1", |pm| {
        pm.begin()?;
        for word in 0..2 {
            pm.store(at(0, word), 7);
            // As many lines of the set as push any line out of it.
            for push in 0..8 {
                pm.load(Ptr::to((1 << 20) + LINE_BYTES + 256 * push));
            }
        }
        pm.work(10_000);
        pm.commit();
        Ok(())
    });
    assert_eq!(counted(&outcome, "flush_bits_set"), 2);
}

/// A software log that no core flushes still counts as log when it reaches memory.
#[test]
fn an_evicted_line_of_a_log_is_counted_as_log() {
    let bytes = |design: &str| {
        let small = "llc.size=256B l2.size=128B l1d.size=128B";
        let row: Value = run(&format!("{design} scribble cores=1 txs=50 warmup=0 {small}"));
        ["log", "home_write_back", "data"]
            .map(|class| row["pm_writes"]["by_class"][class].as_u64().expect("a number"))
    };
    let [log, home, data] = bytes("undo@eadr");
    assert!(log > 0 && home > 0 && data == 0, "{log}, {home}, {data}");
    let [log, home, _] = bytes("native");
    assert!(log == 0 && home > 0, "{log}, {home}");
}

/// Designs in hardware that acknowledge a transaction when it is durable.
const IN_HARDWARE: [&str; 11] = [
    "base",
    "fwb",
    "morlog",
    "lad",
    "silo",
    "undo-log",
    "redo-log",
    "ssp",
    "shadow-paging",
    "kiln",
    "h-wal",
];

/// A transaction has ended when its loads have their values, too: a commit that left the core
/// before would be one of instructions that have not retired.
#[test]
fn a_commit_waits_for_the_loads_of_its_transaction() {
    for design in IN_HARDWARE {
        let cycles = |commits: bool| {
            let outcome = on(&format!("{design} scribble cores=1 machine=silo"), move |pm| {
                // The line that is stored to is there.
                pm.load(at(0, 0));
                pm.work(40_000);
                if commits {
                    pm.begin()?;
                    pm.store(at(0, 0), 1);
                }
                // This one comes in 211 cycles.
                pm.load(at(1 << 12, 0));
                if commits {
                    pm.commit();
                }
                Ok(())
            });
            outcome.report.cycles
        };
        // What the commit sends goes to a controller and back after that.
        let (alone, committed) = (cycles(false), cycles(true));
        assert!(committed >= alone + 20, "{design}: {committed} and {alone} cycles");
    }
}

/// A transaction that stored nothing is as durable as what it loaded, which was acknowledged
/// before. (Silo's log generator tells the log controller of every end.)
#[test]
fn a_transaction_that_stored_nothing_waits_for_nothing() {
    for design in IN_HARDWARE.into_iter().filter(|&design| design != "silo") {
        let outcome = on(&format!("{design} scribble cores=1 machine=silo"), |pm| {
            pm.begin()?;
            pm.load(at(0, 0));
            pm.commit();
            Ok(())
        });
        let longest = outcome.report.transactions.commit_latency.max();
        assert!(longest <= 1, "{design}: {longest} cycles");
    }
}

/// The lines of a transaction of LAD leave their core an interval after each other, and both its
/// lines and its commit pass the front end of a controller.
#[test]
fn lad_sends_a_line_an_interval_and_its_commit_through_the_front_end() {
    let latency = |settings: &str| {
        let outcome = on(&format!("lad scribble cores=1 machine=silo {settings}"), |pm| {
            (0..4).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            store(pm, &[1; 4], 1)
        });
        outcome.report.transactions.commit_latency.max()
    };
    let interval = |cycles: u64| latency(&format!("design.prepare_interval={cycles}"));
    assert_eq!(interval(21) - interval(1), 3 * 20);
    let front_end = |ns: u64| latency(&format!("controller.static_frontend_latency={ns}ns"));
    assert_eq!(front_end(200) - front_end(100), 2 * 200);
}

/// A core that waits for room in a log buffer hears of it a way after a controller has accepted a
/// line of the log, which took a way to get there.
#[test]
fn who_waits_for_a_log_buffer_hears_of_room_a_way_later() {
    let waits = |way: u64| {
        let line = format!(
            "base scribble cores=1 machine=silo design.log_buffer=1 controller.noc_latency={way}ns"
        );
        let outcome = on(&line, |pm| {
            (0..8).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(100_000);
            store(pm, &[4; 8], 1)
        });
        assert!(counted(&outcome, "log_buffer_full") > 0);
        outcome.report.cores.stalls[Stall::LogFull as usize]
    };
    assert_eq!((waits(2_000) - waits(1_000) + 1_000) / 2_000, 2, "one there and one back");
}

/// A line that a flush behind a fence takes out of the caches is not asked for before the fence is
/// done, though a load of it dispatches earlier.
#[test]
fn a_line_that_was_flushed_away_behind_a_fence_is_asked_for_behind_it() {
    let ends = |again: bool| {
        let line = "undo@x86 scribble cores=1 machine=silo core.clwb_retains=no \
                    controller.noc_latency=1us";
        let outcome = on(line, move |pm| {
            pm.load(at(0, 0));
            pm.store(at(100, 0), 1);
            pm.flush(at(100, 0));
            pm.durable();
            pm.flush(at(0, 0));
            if again {
                pm.load(at(0, 0));
            }
            Ok(())
        });
        outcome.report.cycles
    };
    let more = ends(true) - ends(false);
    assert!(more >= 4_000, "there and back takes 4,000 cycles, and the load ends after {more}");
}
