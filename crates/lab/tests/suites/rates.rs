//! How fast designs do what they do beside the programs: how many lines leave together, how many of
//! them a cycle, and how many ways lie behind each. All of it is read from when the controllers'
//! queues accept the writes.

use serde_json::{Value, json};

use crate::common::{accepted, request};

/// Small caches, from which lines leave soon.
const SMALL: &str = "llc.size=256B llc.assoc=2 l2.size=128B l2.assoc=2 l1d.size=128B l1d.assoc=2";

/// Cycles of a way of a microsecond on the machine `silo`.
const WAY: u64 = 2_000;

/// The first line of data.
const DATA: u64 = 0x10000;

/// Bytes of a page.
const PAGE: u64 = 0x1000;

/// A trace of operations that are all measured.
fn trace(operations: &str) -> String {
    format!("region {DATA:#x} 0x100000\nmeasured\n{operations}")
}

/// One transaction.
fn transaction(operations: &str) -> String {
    format!("begin\n{operations}commit\n")
}

/// An operation on each of some lines, so many bytes apart.
fn each(operation: &str, lines: u64, apart: u64, rest: &str) -> String {
    let at = |line: u64| DATA + line * apart;
    (0..lines).map(|line| format!("{operation} {:#x}{rest}\n", at(line))).collect()
}

/// The times from each write to the next.
fn gaps(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|two| two[1] - two[0]).collect()
}

/// What a run of a trace answers on the machine `silo`.
fn answer(line: &str, trace: &str) -> Value {
    let transactions = trace.matches("commit\n").count();
    let line = format!("{line} machine=silo cores=1 txs={transactions} warmup=0");
    let mut request = request(&line);
    request["script"] = json!(["a.trace", trace]);
    let row = lab::run(&request.to_string(), &lab::Control::default()).expect("a run");
    serde_json::from_str(&row).expect("JSON")
}

/// The longest commit of such a run.
fn commit_latency(line: &str, trace: &str) -> u64 {
    let row = answer(line, trace);
    row["commit_latency_cycles"]["max"].as_u64().expect("cycles")
}

/// A line of a committed transaction that lies in the overflow area is read there, which takes a
/// way there and one back, and written to its place, one line a cycle. Kiln does that from when it
/// commits. Under LOC over Kiln the lines first go to the area once more, under their TxID, and the
/// last level hears of that.
#[test]
fn what_lies_in_an_overflow_area_goes_home_in_three_ways() {
    let ran = each("store", 8, 64, " 1") + "work 400000\n";
    let trace = trace(&(transaction(&ran) + "work 400000\n"));
    for (design, ways) in [("kiln", 3), ("loc-kiln design.sd=1", 2 + 3)] {
        let home = |way: u64| {
            let design = design.replacen("kiln", "kiln replay", 1);
            let line = format!("{design} {SMALL} controller.noc_latency={way}us");
            // The last level has room for the other half.
            let (log, home) = (accepted(&line, &trace, "log"), accepted(&line, &trace, "home"));
            assert_eq!((log.len(), home.len()), (4, 4), "{design}");
            (home, log[0])
        };
        let ((one, first), (two, second)) = (home(1), home(2));
        // The lines came to the overflow area a way after they had left.
        assert_eq!(second - first, WAY, "{design}");
        assert_eq!(two[0] - one[0], ways * WAY, "{design}");
        assert_eq!(gaps(&one), [1; 3], "{design}");
    }
}

/// A commit walks down the caches to the last level, which writes its line. Kiln then writes the
/// status table beside the last level, in as long a time; LOC over Kiln has no such table. A log
/// takes the line at a controller. With a window of two LOC drains what has ended at once, too.
#[test]
fn a_commit_walks_down_the_caches_once() {
    let stored = format!("store {DATA:#x} 1\nwork 100000\n");
    let before = format!("load {DATA:#x}\nwork 100000\n");
    // LOC announces its transaction after the commit.
    let trace = trace(&(before + &transaction(&stored) + "work 100000\n"));
    let more = |design: &str, setting: &str, unit: &str| {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        let latency = |time: u64| {
            let line = format!("{name} replay core.width=1 {own} {setting}={time}{unit}");
            commit_latency(&line, &trace)
        };
        // A cycle more or less is rounding.
        (latency(1_000) - latency(100) + 450) / 900
    };
    for (design, last) in [
        ("kiln", 2),
        ("loc-kiln design.sd=1", 1),
        ("h-wal", 1),
        ("ec-wal", 1),
        ("loc-wal design.sd=2", 1),
        ("lad", 1),
    ] {
        let times = ["l1d.data_latency", "l2.data_latency", "llc.data_latency"]
            .map(|level| more(design, level, "cycles"));
        assert_eq!(times, [1, 1, last], "{design}");
        if design.contains("kiln") {
            assert_eq!(more(design, "design.llc_write", ""), last, "{design}");
        }
    }
}

/// Writes in place that make room in a log are under way as many at a time as writes of the log:
/// the next leaves when the answer to one has come back, a way there and a way back later. Those
/// that leave together leave one a cycle. A line that has left the caches is read from the log
/// before, which takes two ways more.
#[test]
fn no_more_writes_in_place_are_under_way_than_may_be() {
    // The log has 63 lines, so 40 blocks and their metadata are more than half of it.
    let trace = trace(
        &(transaction(&each("store", 40, 64, " 1"))
            + &transaction("store 0x20000 1\n")
            + "work 400000\n"),
    );
    let in_place = |design: &str, settings: &str| {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        let line =
            format!("{name} replay {own} pm.log_size=4KiB controller.noc_latency=1us {settings}");
        gaps(&accepted(&line, &trace, "checkpoint"))
    };
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        for (width, rounds) in [(1, 40), (5, 8), (40, 1)] {
            let gaps = in_place(design, &format!("design.log_writes={width}"));
            assert_eq!(gaps.len(), 39, "{design}");
            let waits = gaps.iter().filter(|gap| (2 * WAY..2 * WAY + 100).contains(gap)).count();
            assert_eq!(waits, rounds - 1, "{design}, {width} at a time: {gaps:?}");
            // The last of 40 find the bus busy.
            let together = gaps.iter().filter(|gap| (1..10).contains(*gap)).count();
            assert_eq!(together, 39 - waits, "{design}, {width} at a time: {gaps:?}");
        }
        let gone = in_place(design, &format!("design.log_writes=1 {SMALL}"));
        let read = gone.iter().filter(|gap| (4 * WAY..4 * WAY + 200).contains(gap)).count();
        // The caches have no more than four lines.
        assert!(read >= 30, "{design}: {gone:?}");
    }
}

/// A TLB of one page.
const ONE_PAGE: &str = "tlb.entries=1 tlb.assoc=1 tlb.l2_entries=0 core.model=inorder";

/// When SSP sends the copies of lines of a page that a transaction stored to and that has left the
/// TLB. They are flushed before.
fn copied(lines: u64, settings: &str) -> Vec<u64> {
    let operations = format!("load 0x80000\nload {DATA:#x}\n")
        + &transaction(&(each("store", lines, 64, " 1") + "work 100000\n"))
        + &each("flush", lines, 64, "")
        + "fence\nwork 100000\nload 0x80000\nwork 400000\n";
    let line = format!("ssp replay {ONE_PAGE} {settings}");
    accepted(&line, &trace(&operations), "consolidation")
}

/// A page's lines are read one a cycle and copied as soon as they have been read: in the time of
/// the last level if the caches have them, and otherwise from memory, which takes a way there and
/// one back.
#[test]
fn ssp_copies_a_line_a_cycle() {
    assert_eq!(gaps(&copied(20, "")), [1; 19]);
    let later = |way: u64| {
        let [there, gone] = ["yes", "no"].map(|retains| {
            copied(1, &format!("core.clwb_retains={retains} controller.noc_latency={way}us"))[0]
        });
        gone - there
    };
    assert_eq!(later(2) - later(1), 2 * WAY);
    let first = |retains: &str, cycles: u64| {
        copied(1, &format!("core.clwb_retains={retains} llc.data_latency={cycles}cycles"))[0]
    };
    let more = |retains: &str| first(retains, 150) - first(retains, 50);
    assert_eq!(more("yes") - more("no"), 100, "the copy asks the last level once");
}

/// Pages that no core refers to any more are copied as many at a time as there may be; of the next
/// page the first line follows when the last one's copies are durable.
#[test]
fn ssp_consolidates_as_many_pages_at_a_time_as_it_may() {
    let pages = format!("load 0x80000\nload {DATA:#x}\nload {:#x}\n", DATA + PAGE);
    // Both pages are free with the commit, since the TLB has a third one by then.
    let stores = each("store", 2, PAGE, " 1") + "load 0x80000\nwork 100000\n";
    let trace = trace(&(pages + &transaction(&stores) + "work 200000\n"));
    let gap = |pages: u64| {
        let line = format!(
            "ssp replay {ONE_PAGE} design.consolidations={pages} controller.noc_latency=1us"
        );
        let times = accepted(&line, &trace, "consolidation");
        assert_eq!(times.len(), 2, "{times:?}");
        times[1] - times[0]
    };
    assert!(gap(1) > WAY && gap(2) < 100, "{} and {} cycles", gap(1), gap(2));
}

/// What a page whose frames change places writes: the lines that were stored to, a line of the
/// journal for the commit, copies of the others and a line of the journal for the switch, and the
/// page table. The page table follows the switch record three ways later: the thread hears of it,
/// asks for the write, and that comes.
#[test]
fn a_page_of_ssp_whose_frames_change_places_writes_copies_a_record_and_the_page_table() {
    let operations = format!("load 0x80000\nload {DATA:#x}\n")
        + &transaction(&(each("store", 40, 64, " 1") + "work 100000\n"))
        + "work 100000\nload 0x80000\nwork 400000\n";
    let trace = trace(&operations);
    let line = format!("ssp replay {ONE_PAGE} design.switch_records=alone");
    let row = answer(&line, &trace);
    let lines = |class: &str| row["pm_writes"]["by_class"][class].as_u64().expect("bytes") / 64;
    let found = ["data", "log", "consolidation", "metadata", "checkpoint", "home_write_back"];
    assert_eq!(found.map(lines), [40, 1, 24 + 1, 1, 0, 0], "{row}");
    let later = |way: u64| {
        let line = format!("{line} controller.noc_latency={way}us");
        let record = accepted(&line, &trace, "consolidation").pop().expect("the record");
        accepted(&line, &trace, "metadata")[0] - record
    };
    assert_eq!(later(2) - later(1), 3 * WAY);
}

/// A checkpoint begins when so many percent of the ring are used: of 20 lines each commit of a page
/// takes one. It writes each line that the journal changed once, as many at a time as it may, one a
/// cycle, and then the tail. Two entries of SSP's cache are in a line, and of the page table here.
#[test]
fn a_checkpoint_writes_each_line_once_and_then_the_tail() {
    for (design, apart) in [("ssp", 1), ("shadow-paging", 4)] {
        let times = |commits: u64, percent: u64, width: u64| {
            let one = |page: u64| {
                let store = format!("store {:#x} 1\n", DATA + page * apart * PAGE);
                transaction(&store) + "work 40000\n"
            };
            let all: String = (0..commits).map(one).collect();
            let line = format!(
                "{design} replay design.journal_lines=20 controller.noc_latency=1us \
                 design.checkpoint_percent={percent} design.checkpoint_writes={width}"
            );
            accepted(&line, &trace(&(all + "work 400000\n")), "checkpoint")
        };
        for (commits, lines) in [(9, 0), (10, 5 + 1), (11, 5 + 1)] {
            assert_eq!(times(commits, 50, 4).len(), lines, "{design}, {commits} commits");
        }
        assert_eq!((times(4, 25, 4).len(), times(5, 25, 4).len()), (0, 3 + 1), "{design}");
        for (width, rounds) in [(1, 5), (2, 3), (5, 1)] {
            let gaps = gaps(&times(10, 50, width));
            let waits = gaps.iter().filter(|gap| **gap > WAY - 100).count();
            assert_eq!(waits, rounds, "{design}, {width} at a time: {gaps:?}");
            let together = gaps.iter().filter(|gap| **gap == 1).count();
            assert_eq!(together, 5 - rounds, "{design}, {width} at a time: {gaps:?}");
        }
    }
}

/// The controller reads the lines of a page one a cycle. Those that the caches have it has in the
/// time of the last level, and the others from memory, a way there and one back.
#[test]
fn shadow_paging_copies_a_line_a_cycle() {
    let stored = transaction(&format!("store {DATA:#x} 1\nwork 100000\n"));
    let copies = |before: &str, settings: &str| {
        let line = format!("shadow-paging replay core.model=inorder {settings}");
        let operations = format!("{before}work 100000\n{stored}work 100000\n");
        accepted(&line, &trace(&operations), "copy")
    };
    let all = copies(&each("load", 64, 64, ""), "");
    assert_eq!(gaps(&all), [1; 63], "the caches have the page");
    let gap = |settings: &str| {
        let times = copies(&each("load", 2, 64, ""), settings);
        assert_eq!(gaps(&times[..2]), [1], "the caches have two lines");
        times[2] - times[0]
    };
    let of = |way: u64| gap(&format!("controller.noc_latency={way}us"));
    assert_eq!(of(2) - of(1), 2 * WAY);
    let of = |cycles: u64| gap(&format!("llc.data_latency={cycles}cycles"));
    assert_eq!(of(10) - of(20), 10);
}

/// A commit that copies what was not stored to sends one line after the other, whichever page it is
/// of.
#[test]
fn a_lazy_copy_of_two_pages_sends_one_line_after_the_other() {
    let stores = each("store", 2, PAGE, " 1") + "work 100000\n";
    let operations = each("load", 128, 64, "") + "work 100000\n" + &transaction(&stores);
    let line = "shadow-paging replay core.model=inorder design.copy=lazy \
                controller.write_buffer_size=1024";
    let times = accepted(line, &trace(&operations), "copy");
    // Between the pages the second one's own line is sent.
    let mut gaps = gaps(&times);
    assert_eq!(gaps.remove(62), 2);
    assert_eq!(gaps, [1; 124]);
}

/// A record of two lines leaves a core one line a cycle, and so do the lines that are written back
/// after the commit. The bytes of one that the caches dropped are asked for when the core knows
/// that the commit record is durable, and then sent: three ways behind that record.
#[test]
fn a_log_in_hardware_sends_a_line_a_cycle() {
    let four = trace(&(transaction(&each("store", 4, 64, " 1")) + "work 100000\n"));
    let undo = gaps(&accepted("undo-log replay", &four, "log"));
    assert_eq!(undo.iter().step_by(2).collect::<Vec<_>>(), [&1; 4], "of each entry");
    assert_eq!(gaps(&accepted("redo-log replay", &four, "data")), [1; 3]);
    let loads = each("load", 6, 128, "").split_once('\n').expect("a line").1.to_owned();
    let stores = format!("store {DATA:#x} 1\n{loads}work 100000\n");
    let dropped = trace(&(transaction(&stores) + "work 100000\n"));
    let later = |way: u64| {
        let line = format!("redo-log replay {SMALL} controller.noc_latency={way}us");
        accepted(&line, &dropped, "data")[0] - accepted(&line, &dropped, "commit")[0]
    };
    assert_eq!(later(2) - later(1), 3 * WAY);
}

/// A redo entry keeps its place until its core hears that its record is accepted, so a commit that
/// finds eight words in the first level only waits for a way there and one back for as many of them
/// as its redo buffer has entries. More than eight entries are of no more use.
#[test]
fn a_commit_of_morlog_has_as_many_redo_entries_under_way_as_its_buffer_holds() {
    let again = each("store", 8, 64, " 1") + "work 400000\n" + &each("store", 8, 64, " 2");
    let trace = trace(&transaction(&(again + "work 40000\n")));
    let latency = |entries: u64, way: u64| {
        let settings = format!("design.r_entries={entries} controller.noc_latency={way}us");
        commit_latency(&format!("morlog replay {settings}"), &trace)
    };
    let all = latency(8, 1);
    for (entries, rounds) in [(1, 8), (2, 4), (4, 2), (8, 1)] {
        let more = latency(entries, 1) - all;
        assert!(more >= (rounds - 1) * WAY, "{entries} entries: {more} cycles");
        // The last records and the commit record leave together.
        let ways = latency(entries, 2) - latency(entries, 1);
        assert_eq!((ways + WAY / 2) / WAY, 2 * rounds, "{entries} entries");
    }
    assert_eq!(all, latency(16, 1));
}

/// A commit of MorLog looks at a set of the first level a cycle, of which there are 64 here, unless
/// its time is given.
#[test]
fn a_commit_of_morlog_scans_a_set_a_cycle() {
    let trace = trace(&transaction(&format!("store {DATA:#x} 1\nwork 100000\n")));
    let [derived, same, more] = [0, 64, 1_064].map(|cycles| {
        let line = format!("morlog replay l1d.size=8KiB l1d.assoc=2 design.commit_scan={cycles}");
        commit_latency(&line, &trace)
    });
    assert_eq!((derived, more - same), (same, 1_000));
}

/// Redo data that nothing else sends leave for the log so many cycles after the commit's scan,
/// which takes its own time.
#[test]
fn redo_data_of_a_commit_leave_when_they_are_due() {
    let again = each("store", 8, 64, " 1") + "work 40000\n" + &each("store", 8, 64, " 2");
    let trace = trace(&(transaction(&(again + "work 40000\n")) + "work 100000\n"));
    let last = |delay: u64, scan: u64| {
        let line = format!("morlog-dp replay design.redo_delay={delay} design.commit_scan={scan}");
        accepted(&line, &trace, "log").pop().expect("records")
    };
    assert_eq!(last(5_000, 100) - last(1_000, 100), 4_000);
    assert_eq!(last(1_000, 1_100) - last(1_000, 100), 1_000);
}

/// A commit of SSP writes its line back, which walks down the three levels. If the store waits
/// before that, it has asked the second and the last level to own the other copy of its line.
#[test]
fn a_first_store_of_ssp_owns_the_other_copy_in_the_time_of_two_levels() {
    let more = |level: &str, work: &str| {
        let stored = format!("store {DATA:#x} 1\n{work}");
        let trace = trace(&(format!("load {DATA:#x}\nwork 100000\n") + &transaction(&stored)));
        let of = |cycles: u64| {
            commit_latency(&format!("ssp replay {level}.data_latency={cycles}cycles"), &trace)
        };
        of(150) - of(50)
    };
    for (level, times) in [("l1d", 1), ("l2", 2), ("llc", 2)] {
        let late = more(level, "work 100000\n");
        assert_eq!((late, more(level, "")), (100, 100 * times), "{level}");
    }
}

/// A line that left undurable is found in the overflow area, or in the log, so much later.
#[test]
fn a_line_that_left_undurable_is_found_as_much_later_as_it_says() {
    let again = each("store", 8, 64, " 1") + &format!("work 100000\nload {DATA:#x}\nwork 100000\n");
    let trace = trace(&transaction(&again));
    for design in ["kiln", "loc-kiln", "h-wal", "ec-wal", "loc-wal"] {
        let cycles = |latency: u64| {
            let line = format!("{design} replay {SMALL} design.redirect_latency={latency}");
            answer(&line, &trace)["cycles"].as_u64().expect("cycles")
        };
        assert_eq!(cycles(1_000) - cycles(0), 1_000, "{design}");
    }
}

/// An undo+redo entry of MorLog leaves when it is as old as a line is that comes through the caches
/// to a controller, unless another age is given.
#[test]
fn an_entry_of_morlog_is_as_old_as_the_way_through_the_caches() {
    let stored = transaction(&format!("store {DATA:#x} 1\nwork 100000\n"));
    let trace = trace(&(format!("load {DATA:#x}\nwork 100000\n") + &stored));
    let more = |settings: [String; 2], age: u64| {
        let [soon, late] = settings.map(|setting| {
            accepted(&format!("morlog replay design.age={age} {setting}"), &trace, "log")[0]
        });
        late - soon
    };
    for level in ["l1d", "l2", "llc"] {
        let settings = || [50, 150].map(|time| format!("{level}.data_latency={time}cycles"));
        assert_eq!(more(settings(), 0) - more(settings(), 1), 100, "{level}");
    }
    let settings = || [1, 2].map(|way| format!("controller.noc_latency={way}us"));
    assert_eq!(more(settings(), 0) - more(settings(), 1), WAY);
}

/// The log controller of Silo takes a word from a buffer an interval after the one before.
#[test]
fn silo_updates_a_word_an_interval() {
    let stores = each("store", 8, 64, " 1") + "work 100000\n";
    let trace = trace(&(transaction(&stores) + "work 100000\n"));
    for interval in [8, 100] {
        let line = format!("silo replay design.update_interval={interval}");
        assert_eq!(gaps(&accepted(&line, &trace, "data")), [interval; 7]);
    }
}

/// So many words of a core are on their way to other controllers. The next one leaves when the
/// answer to one has come back, a way there and a way back later.
#[test]
fn no_more_deliveries_of_silo_are_under_way_than_may_be() {
    // Every other line is the second controller's.
    let lines = (0..8).map(|line| DATA + 64 + 128 * line);
    let stores: String = lines.map(|line| format!("store {line:#x} 1\n")).collect();
    let trace = trace(&(transaction(&(stores + "work 100000\n")) + "work 400000\n"));
    for (deliveries, rounds) in [(1, 8), (2, 4), (4, 2), (8, 1), (16, 1)] {
        let line = format!(
            "silo replay controller.count=2 controller.intlv_size=64B \
             design.controller_hop=4000 design.deliveries={deliveries}"
        );
        let gaps = gaps(&accepted(&line, &trace, "data"));
        let waits = gaps.iter().filter(|gap| (7_000..8_100).contains(*gap)).count();
        assert_eq!(waits, rounds - 1, "{deliveries} at a time: {gaps:?}");
        let more = gaps.iter().filter(|gap| **gap > 4_000).count();
        assert!(more <= rounds, "{deliveries} at a time: {gaps:?}");
    }
}

/// A buffer of DPO sends an entry a cycle, as fast as stores leave the core. Each passes the front
/// end of its controller once, as the load before it did.
#[test]
fn a_buffer_of_dpo_sends_an_entry_a_cycle() {
    let operations = each("load", 10, 64, "") + "work 100000\n" + &each("store", 10, 64, " 1");
    let trace = trace(&(operations + "work 100000\n" + &transaction("store 0x80000 1\n")));
    let times = |ns: u64| {
        let line = format!("undo@dpo replay controller.static_frontend_latency={ns}ns");
        accepted(&line, &trace, "data")[..10].to_vec()
    };
    assert_eq!(gaps(&times(10)), [1; 9]);
    // 100 ns are 200 cycles.
    assert_eq!(times(200)[0] - times(100)[0], 2 * 200);
}

/// A line that `base` writes back with its store walks down the caches, past which its record goes.
#[test]
fn a_line_of_base_walks_down_the_caches_and_its_record_does_not() {
    let stored = transaction(&format!("store {DATA:#x} 1\nwork 100000\n"));
    let trace = trace(&(format!("load {DATA:#x}\nwork 100000\n") + &stored));
    let behind = |level: &str, cycles: u64| {
        let line = format!("base replay {level}.data_latency={cycles}cycles");
        accepted(&line, &trace, "data")[0] - accepted(&line, &trace, "log")[0]
    };
    for level in ["l1d", "l2", "llc"] {
        assert_eq!(behind(level, 150) - behind(level, 50), 100, "{level}");
    }
}
