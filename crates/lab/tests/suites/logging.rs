//! What is special to the hardware logs: each of their paths is taken, and what they rely on is
//! what keeps them right.

use std::collections::BTreeMap;

use lab::Control;
use model::crash::Points;
use model::engine::Failure;
use model::meters::Stall;
use model::workload::Stop;
use serde_json::{Value, json};

use crate::common::{accepted, all, all_hold, crash, request, run};
use crate::programs::{at, counted, on, store, try_on};

/// Machines and structures that fill, wrap, overflow and hold back; each design takes the settings
/// of the structures that it has.
const HARD: &[&str] = &[
    "",
    "design.log_buffer=1 design.log_lines=64 design.entries=4 design.overflow_batch=3 \
     design.channel=2 design.ur_entries=2 design.r_entries=2",
    "llc.size=256B l2.size=128B l1d.size=128B design.log_lines=100 design.entries=4 \
     design.flush_mode=at_commit",
    "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
     pm.xpbuffer_entries=1 pm.tWRITE=400cycles llc.size=256B l2.size=128B l1d.size=128B \
     design.log_lines=64 design.entries=4 design.channel=2 design.told=1",
];

/// Runs for paths that need more than that: rings with room for little more than what runs, and
/// logs of one word that are still to be written when another core's overflow writes that word.
const HARDER: &[&str] = &[
    "base cores=4 seed=2 workload.words=16 design.log_lines=20 design.log_buffer=8 \
     design.flush_mode=at_commit",
    "fwb cores=4 seed=2 workload.words=16 design.log_lines=23",
    "morlog cores=4 seed=4 workload.words=16 design.log_lines=19 design.ur_entries=8 \
     design.r_entries=8",
    "morlog cores=2 seed=1 workload.words=48 design.variant=b design.slde=on",
    "morlog-dp cores=4 seed=2 workload.words=16 design.log_lines=21 design.ur_entries=8 \
     design.r_entries=8",
    "morlog-dp cores=2 seed=7 workload.words=48 design.variant=b design.slde=on",
    "silo cores=4 seed=6 workload.words=8 design.entries=2 design.overflow_batch=1 \
     controller.write_buffer_size=1 pm.xpbuffer_entries=1 pm.tWRITE=400cycles",
];

/// Every overflow, wrap, truncation, stall and hold that a hardware log counts happens in these
/// runs, and they are right wherever the power is cut.
#[test]
fn every_path_of_a_hardware_log_is_taken() {
    let mut missed = String::new();
    // Line-granular logs cannot have words of a line locked apart; they have suites of their own.
    let words = |entry: &&designs::Entry| !crate::common::is_line_granular(entry);
    for entry in all().filter(|entry| entry.card.family == "hardware logging").filter(words) {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for line in lines_of(entry) {
            let line = line.replacen(' ', " scribble txs=80 workload.lock_grain=word ", 1);
            for (name, count) in run(&line)["design_counters"].as_object().expect("counters") {
                *counts.entry(name.clone()).or_default() += count.as_u64().expect("a number");
            }
            all_hold([format!("{line} nested=false")]);
        }
        for (name, _) in counts.iter().filter(|(_, count)| **count == 0) {
            missed += &format!("{}: {name} stays 0\n", entry.card.name);
        }
    }
    assert!(missed.is_empty(), "{missed}");
}

/// Returns the runs of a design.
fn lines_of(entry: &designs::Entry) -> Vec<String> {
    let has = |word: &&str| {
        let name = word.split('=').next().and_then(|key| key.strip_prefix("design."));
        name.is_none_or(|name| entry.fields.iter().any(|field| field.name == name))
    };
    let mut lines = Vec::new();
    for hard in HARD {
        let own: Vec<&str> = hard.split_whitespace().filter(has).collect();
        for program in ["cores=2 seed=1 workload.words=16", "cores=4 seed=2 workload.words=48"] {
            lines.push(format!("{} {program} {}", entry.card.name, own.join(" ")));
        }
    }
    let is_own = |line: &&&str| line.split(' ').next() == Some(entry.card.name);
    lines.extend(HARDER.iter().filter(is_own).map(|line| (*line).to_owned()));
    lines
}

/// What the period of the scan is for (FWB, HPCA'18): with the one that
/// follows from the ring and the banks, old records are of no use when they are overwritten, and no
/// core has to wait for that; with one that is too long, committed data are lost. The design itself
/// waits and loses nothing.
#[test]
fn the_derived_period_of_fwb_is_short_enough_and_a_long_one_is_not() {
    let roomy = "scribble cores=2 txs=200 nested=false workload.words=512 design.log_lines=256 \
                 llc.size=64KiB l2.size=8KiB";
    for seed in 1..=3 {
        let trusting = format!("fwb {roomy} seed={seed} without=stall_when_full");
        all_hold([trusting.clone(), format!("fwb {roomy} seed={seed} design.period=30000")]);
        let late = crash(&format!("{trusting} design.period=30000"));
        let text = late["violations"][0]["text"].as_str().expect("a violation");
        assert!(text.starts_with("durability"), "{text}");
    }
}

/// No core waits for room in the ring either where 8 cores fill it and the write-pending queue:
/// scans end before the next one is due. With few lines under way they do not.
#[test]
fn a_scan_is_done_within_its_period_when_memory_is_busy() {
    for name in ["fwb", "morlog"] {
        let waits = |width: &str| {
            let line = format!("{name} rbtree machine=silo cores=8 txs=2000 {width}");
            run(&line)["design_counters"]["log_ring_full"].as_u64().expect("a count")
        };
        assert_eq!(waits(""), 0, "{name}");
        assert!(waits("design.scan_width=4") > 0, "{name}");
    }
}

/// A pass over the ring that has to wait is counted once, however often the log is looked at.
#[test]
fn a_pass_that_is_held_is_counted_once() {
    for name in ["base", "fwb", "morlog"] {
        let counters =
            &run(&format!("{name} scribble cores=4 txs=200 workload.words=16 design.log_lines=24"))
                ["design_counters"];
        let [held, wraps] = ["log_passes_held", "log_wraps"].map(|name| counters[name].as_u64());
        assert!(held > Some(0) && held <= wraps.map(|wraps| wraps + 1), "{name}: {counters}");
    }
}

/// One transaction that stores to so many lines; the stores leave their core at once.
fn a_burst(lines: u64) -> String {
    let stores = (0..lines).map(|line| format!("store {:#x} 1\n", 0x10000 + 64 * line));
    let stores: String = stores.collect();
    format!("region 0x10000 0x1000\nmeasured\nbegin\nwork 8000\n{stores}commit\n")
}

/// While later records of its core still wait for the log buffer.
#[test]
fn a_line_of_base_leaves_behind_its_own_records() {
    let [log, data] = ["log", "data"]
        .map(|class| accepted("base replay design.log_buffer=1", &a_burst(40), class));
    assert_eq!((log.len(), data.len()), (20, 40), "two records to a line of the log");
    let behind: Vec<u64> = (0..40).map(|line| data[line] - log[line / 2]).collect();
    assert!(behind.iter().all(|cycles| *cycles < 100), "{behind:?}");
}

/// What an overflow of Silo writes leaves the log controller one after the other: the lines of its
/// records, and then the words, each of which takes an access to the buffer.
#[test]
fn an_overflow_of_silo_writes_a_line_of_records_a_cycle_and_a_word_an_interval() {
    for (class, interval, gap) in [("log", 8, 1), ("data", 8, 8), ("data", 20, 20)] {
        let line = format!("silo replay design.update_interval={interval}");
        let times = accepted(&line, &a_burst(34), class);
        // A batch has 14 words, and fewer lines of records. The other words follow the commit.
        let gaps = times.windows(2).take(13).map(|two| two[1] - two[0]);
        assert_eq!(gaps.min(), Some(gap), "{class}: {times:?}");
    }
}

/// The first word of a transaction is updated in place when the log controller has looked into its
/// buffer.
#[test]
fn silo_updates_its_first_word_after_the_latency_of_its_buffer() {
    let first = |latency: u64| {
        let line = format!("silo replay design.buffer_latency={latency}");
        accepted(&line, &a_burst(1), "data")[0]
    };
    assert_eq!(first(1_008) - first(8), 1_000);
}

/// A scan has only as many lines under way as it is given: the next one leaves when a controller
/// has accepted one, and another when that is known.
#[test]
fn a_scan_has_as_many_lines_under_way_as_it_is_given() {
    let apart = |width: u64| {
        let rest = "store 0x40000 1\nwork 40000\n".repeat(3);
        let trace = a_burst(6).replace("0x1000\n", "0x100000\n");
        let trace = trace.replace("commit\n", &format!("work 40000\n{rest}commit\n"));
        let line = format!(
            "fwb replay design.period=1000 design.scan_width={width} controller.noc_latency=1us"
        );
        let times = accepted(&line, &trace, "data");
        assert!(times.len() >= 6, "{times:?}");
        times.windows(2).filter(|two| two[1] - two[0] > 2_000).count()
    };
    assert!(apart(1) >= 5 && apart(64) < 3, "{} and {}", apart(1), apart(64));
}

/// A line that leaves the caches is not dirty any more: the scan that follows finds the line dirty
/// for the first time when it is stored to again.
#[test]
fn a_line_that_left_the_caches_is_not_forced_by_the_next_scan() {
    let forced = |leaves: bool| {
        let outcome = on("fwb scribble cores=1 core.width=1 design.period=20000", move |pm| {
            pm.begin()?;
            // The first scan flags both lines.
            pm.store(at(0, 0), 1);
            pm.work(25_000);
            pm.store(at(1, 0), 1);
            if leaves {
                for line in [4, 8, 12, 16, 20, 24, 28, 32] {
                    pm.load(at(line, 0));
                }
            }
            pm.work(5_000);
            pm.store(at(0, 0), 2);
            pm.work(25_000);
            pm.store(at(1, 0), 2);
            pm.work(25_000);
            pm.commit();
            Ok(())
        });
        counted(&outcome, "lines_forced")
    };
    assert_eq!([forced(false), forced(true)], [2, 1]);
}

/// Of writes that may be under way so many at a time, the next leaves when the answer to one has
/// come back, and is on its way itself after that.
#[test]
fn no_more_writes_are_under_way_than_may_be() {
    for (design, setting, class) in [
        ("h-wal", "design.log_writes", "log"),
        ("ec-wal", "design.log_writes", "log"),
        ("redo-log", "controller.writeback_buffer_size", "data"),
    ] {
        let apart = |width: u64| {
            let line = format!("{design} replay {setting}={width} controller.noc_latency=1us");
            let times = accepted(&line, &a_burst(5), class);
            assert_eq!(times.len(), 5, "{design}: {times:?}");
            times.windows(2).filter(|two| two[1] - two[0] >= 4_000).count()
        };
        assert_eq!([1, 2, 5].map(apart), [4, 2, 0], "{design}");
    }
}

/// 62 of its 63 bytes are filled by two records of `base`, and nothing fits behind them: memory
/// that does not compare bits has nothing to read for it, as it has for a commit record.
#[test]
fn a_log_line_without_room_goes_whole() {
    let fills = |stores: &str| {
        let text = "base replay machine=silo cores=1 txs=1 warmup=0 pm.data_encoder=none \
                    pm.xpbuffer_entries=0";
        let mut request = request(text);
        let trace = format!("region 0x10000 64\nmeasured\nbegin\n{stores}commit\n");
        request["script"] = json!(["line.trace", trace]);
        let row = lab::run(&request.to_string(), &Control::default()).expect("a run");
        let row: Value = serde_json::from_str(&row).expect("JSON");
        row["pm_writes"]["media_fill_reads"].as_u64().expect("reads")
    };
    assert_eq!(fills("store 0x10000 1\nstore 0x10008 2\n"), 1, "for the commit record");
    assert_eq!(fills("store 0x10000 1\n"), 1, "the commit record lies in the record's line");
    assert_eq!(fills("store 0x10000 1\nstore 0x10008 2\nstore 0x10010 3\n"), 1);
}

/// A transaction with more lines than `redo-log` has room for in its log buffer runs no further
/// ahead of memory than the machine has buffers for: its stores wait, and its commit has little
/// left to wait for.
#[test]
fn stores_wait_for_the_records_of_a_full_log_buffer() {
    let run = |buffers: u64| {
        let line = format!(
            "redo-log scribble machine=silo cores=1 pm.log_size=16MiB \
             controller.writeback_buffer_size={buffers}"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            for line in (0..1_300).chain(0..1_300) {
                pm.store(at(line, 0), line + 1);
            }
            pm.commit();
            Ok(())
        });
        let stalls = outcome.report.cores.stalls;
        let [log, commit] = [Stall::LogFull, Stall::Commit].map(|stall| stalls[stall as usize]);
        (counted(&outcome, "stores_held"), log, commit)
    };
    let (held, log, commit) = run(16);
    assert!(held > 1_000 && log > 5 * commit, "{held} stores held, {log} and {commit} cycles");
    assert!(run(4096).0 < held / 3, "more buffers hold fewer stores back");
}

/// The undo+redo buffer of MorLog holds as many entries as it says.
#[test]
fn an_undo_redo_buffer_of_morlog_holds_as_many_entries_as_it_says() {
    for design in ["morlog", "morlog-dp"] {
        let full = |words: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo design.ur_entries=4 design.age=100000"
            );
            let outcome = on(&line, move |pm| {
                pm.begin()?;
                (0..words).for_each(|word| pm.store(at(0, word), 1));
                pm.commit();
                Ok(())
            });
            counted(&outcome, "ur_or_r_buffer_full")
        };
        assert_eq!([4, 5].map(full), [0, 1], "{design}");
    }
}

/// Redo data that would be logged later are logged at once when a core waits until its transactions
/// are durable.
#[test]
fn who_waits_for_durability_does_not_wait_until_redo_data_are_due() {
    let line = "morlog-dp scribble cores=1 machine=silo design.redo_delay=1000000";
    let outcome = on(line, |pm| {
        pm.begin()?;
        pm.store(at(0, 0), 1);
        pm.work(10_000);
        pm.store(at(0, 0), 2);
        pm.commit();
        pm.durable();
        Ok(())
    });
    assert_eq!(counted(&outcome, "stores_deferred"), 1);
    assert!(outcome.report.cycles < 50_000, "{} cycles", outcome.report.cycles);
}

/// Redo data of a line that leaves the first level come to the redo buffer of MorLog whether it has
/// room or not, and the core's next store waits until it has.
#[test]
fn a_redo_buffer_of_morlog_holds_as_many_entries_as_it_says() {
    for design in ["morlog", "morlog-dp"] {
        let run = |words: u64, way: u64| {
            let line = format!(
                "{design} scribble cores=1 machine=silo l1d.size=8KiB l1d.assoc=2 \
                 design.r_entries=4 controller.noc_latency={way}us"
            );
            let outcome = on(&line, move |pm| {
                pm.load(at(1, 0));
                pm.begin()?;
                (0..words).for_each(|word| pm.store(at(0, word), 1));
                // The first level alone has what follows.
                pm.work(100_000);
                (0..words).for_each(|word| pm.store(at(0, word), 2));
                (1..10).for_each(|push| _ = pm.load(at(64 * push, 0)));
                pm.store(at(1, 0), 1);
                pm.commit();
                Ok(())
            });
            let waited = outcome.report.cores.stalls[Stall::LogFull as usize];
            (counted(&outcome, "ur_or_r_buffer_full"), waited)
        };
        assert_eq!([4, 5].map(|words| run(words, 1).0), [0, 1], "{design}");
        let more = run(5, 2).1 - run(5, 1).1;
        assert_eq!((more + 1_000) / 2_000, 2, "{design}: one there and one back: {more} cycles");
    }
}

/// The ring keeps two lines, since a core's last record and its commit may need one each. So the
/// smallest ring for a core and a transaction of one store has three.
#[test]
fn the_smallest_ring_of_one_core_has_three_lines() {
    for design in ["base", "fwb", "morlog", "morlog-dp"] {
        let fits = |lines: u64| {
            let line = format!("{design} scribble cores=1 machine=silo design.log_lines={lines}");
            try_on(&line, Points::Count, |pm| store(pm, &[1], 1)).is_ok()
        };
        assert_eq!([2, 3].map(fits), [false, true], "{design}");
    }
}

/// Records that are to come may share the line that is being filled: a transaction of two words is
/// not refused before it is known that they do.
#[test]
fn records_that_share_a_line_fit_a_ring_with_room_for_one_line() {
    for design in ["base", "fwb"] {
        let fits = |words: u64| {
            let line = format!("{design} scribble cores=1 machine=silo design.log_lines=3");
            try_on(&line, Points::Count, move |pm| store(pm, &[words], 1)).is_ok()
        };
        assert_eq!([2, 3].map(fits), [true, false], "{design}");
    }
}

/// The ring of `base` keeps a line for each core, and two at least. The records of the transactions
/// that run, two in a line, may begin in the middle of a line. So the ring has to have one line
/// more than all of these, whichever core is the first; for one core no shorter ring will do.
#[test]
fn the_smallest_ring_of_base_has_room_for_what_runs_on_all_cores() {
    for (cores, words) in
        [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (2, 4), (3, 1), (3, 3), (4, 1), (4, 2)]
    {
        let fits = |lines: u64| {
            let line = format!(
                "base scribble cores={cores} machine=silo design.log_lines={lines} \
                 controller.arrival_jitter=100cycles"
            );
            let outcome = try_on(&line, Points::All, move |pm| {
                for value in 1..=10 {
                    pm.begin()?;
                    let first = 2 * u64::from(pm.core().0);
                    (0..words).for_each(|word| pm.store(at(first, word), value));
                    pm.commit();
                }
                Ok(())
            });
            match outcome {
                Ok(outcome) => {
                    let violations = outcome.crashes.expect("a campaign").violations;
                    assert!(violations.is_empty(), "{line}: {violations:?}");
                    true
                }
                Err(Failure::Stopped(Stop::Input(text))) => {
                    let sentence = format!("do not fit the log ring of {lines} lines");
                    assert!(text.contains(&sentence), "{line}: {text}");
                    false
                }
                Err(failure) => panic!("{line}: {failure:?}"),
            }
        };
        let needed = cores.max(2) + cores * words / 2 + 1;
        assert!((needed..needed + 4).all(fits), "{cores} cores, {words} words");
        assert!(cores > 1 || !fits(needed - 1), "{words} words");
    }
}

/// Who waits for durability has the redo data sent that are left, and hears a way later that they
/// are durable.
#[test]
fn who_waits_for_redo_data_waits_for_a_way_there_and_one_back() {
    let waits = |way: u64| {
        let line = format!(
            "morlog-dp scribble cores=1 machine=silo design.redo_delay=1000000 \
             controller.noc_latency={way}us"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.work(100_000);
            pm.store(at(0, 0), 2);
            pm.commit();
            pm.work(100_000);
            pm.durable();
            Ok(())
        });
        outcome.report.cores.stalls[Stall::Fence as usize]
    };
    // A microsecond is 2,000 cycles.
    assert_eq!(waits(2) - waits(1), 2 * 2_000);
}
