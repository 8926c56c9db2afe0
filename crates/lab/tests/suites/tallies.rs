//! What designs count of what seldom happens, in programs so short that it can be counted by hand:
//! what waits, is held, comes again, is written out, or is found by a scan.

use crate::programs::{at, counted, on, store};
use model::engine::Outcome;
use model::units::CoreId;
use model::workload::{Pm, Ptr, Step};

/// What a design counted under these names.
fn counts<const N: usize>(outcome: &Outcome, names: [&str; N]) -> [u64; N] {
    names.map(|name| counted(outcome, name))
}

/// Transactions that store to a line, so many cycles apart: a cycle for each instruction.
fn apart(line: &str, transactions: u64, cycles: u64) -> Outcome {
    on(&format!("{line} machine=silo cores=1 core.width=1"), move |pm| {
        (1..=transactions).try_for_each(|value| {
            pm.work(cycles);
            store(pm, &[1], value)
        })
    })
}

/// A scan comes with the first store after each period. A line that a scan finds dirty is flagged,
/// and the next scan writes it back if it has been dirty since; then it begins anew.
#[test]
fn every_second_scan_forces_a_line_that_is_stored_to_in_every_period() {
    for design in ["fwb", "morlog", "morlog-dp"] {
        for (transactions, forced) in [(1, 0), (2, 1), (5, 2), (6, 3)] {
            let line = format!("{design} scribble design.period=10000");
            let found = counts(
                &apart(&line, transactions, 12_000),
                ["scans", "lines_forced", "scans_for_room"],
            );
            assert_eq!(found, [transactions, forced, 0], "{design}");
            // Two stores in a period make one scan.
            let found = counts(&apart(&line, 2 * transactions, 6_000), ["scans", "scans_for_room"]);
            assert_eq!(found, [transactions, 0], "{design}");
        }
    }
}

/// A transaction begins when the one before it on its core is complete, and not before its lines
/// are home. That takes a few ways.
#[test]
fn a_redo_log_holds_the_next_transaction_until_the_last_is_complete() {
    let line = "redo-log scribble controller.noc_latency=10us";
    for (transactions, cycles, held) in [(1, 0, 0), (4, 0, 3), (4, 1_000_000, 0)] {
        let outcome = apart(line, transactions, cycles);
        assert_eq!(counted(&outcome, "begins_held"), held, "{cycles} cycles");
    }
}

/// With one buffer the lines of a transaction go home one after the other, each in a way and back.
/// A line that another core asks for meanwhile is forced, and the core's own transaction depends on
/// the one before if it stores there.
#[test]
fn a_line_that_another_core_asks_for_is_forced() {
    let asked = |line: u64, stores: bool| {
        let settings = "redo-log scribble machine=silo cores=2 core.width=1 \
                        controller.noc_latency=10us controller.writeback_buffer_size=1";
        let outcome = on(settings, move |pm| {
            if pm.core() == CoreId(0) {
                (0..4).for_each(|line| _ = pm.load(at(line, 0)));
                return store(pm, &[1; 4], 1);
            }
            // A way is 20,000 cycles: the loads have come back, the log has, and a line.
            pm.work(170_000);
            if stores {
                pm.begin()?;
                pm.store(at(line, 1), 1);
                pm.commit();
            } else {
                pm.load(at(line, 1));
            }
            Ok(())
        });
        counts(&outcome, ["forced_write_backs", "dependences"])
    };
    assert_eq!(asked(3, false), [1, 0], "the last line");
    assert_eq!(asked(3, true), [1, 1], "the last line");
    assert_eq!(asked(0, false), [0, 0], "the first line is home");
    assert_eq!(asked(9, true), [0, 0], "another line");
}

/// A filter of two lines forgets the oldest when a third comes, which then has a second entry. What
/// is written back is each line once.
#[test]
fn an_undo_log_forgets_lines_beyond_its_filter() {
    let outcome = on("undo-log scribble machine=silo cores=1 design.entries=2", |pm| {
        pm.begin()?;
        [0, 1, 1, 2, 0, 2].into_iter().for_each(|line| pm.store(at(line, 0), 1));
        pm.commit();
        Ok(())
    });
    let names = ["entries", "filter_overflows", "lines_written_back"];
    assert_eq!(counts(&outcome, names), [4, 2, 3]);
}

/// `base` writes a line back with each store, while its record is on its way.
#[test]
fn lines_that_base_forces_wait_for_their_records() {
    let outcome = apart("base scribble controller.noc_latency=1us", 5, 10_000);
    let names = ["lines_forced", "lines_forced_held", "evictions_held"];
    assert_eq!(counts(&outcome, names), [5, 5, 0]);
}

/// Numbers of two bits begin at 1, so the third transaction of a core has the last one.
#[test]
fn numbers_of_lad_begin_anew() {
    for (transactions, anew) in [(2, 0), (3, 1), (6, 1), (7, 2)] {
        let outcome = apart("lad scribble design.serial_bits=2", transactions, 0);
        assert_eq!(counted(&outcome, "serials_begun_anew"), anew, "{transactions}");
    }
}

/// A line that leaves the first level of LAD is sent, and if it comes back and is stored to, the
/// commit sends it again and its entry is replaced.
#[test]
fn a_line_of_lad_that_left_is_sent_again() {
    let sent = |again: bool| {
        let line = "lad scribble machine=silo cores=1 l1d.size=128B l1d.assoc=2";
        let outcome = on(line, move |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            (1..3).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(10_000);
            if again {
                pm.store(at(0, 1), 1);
            }
            pm.commit();
            Ok(())
        });
        let names =
            ["lines_sent_on_leaving", "lines_prepared", "entries_replaced", "entries_committed"];
        counts(&outcome, names)
    };
    assert_eq!((sent(false), sent(true)), ([1, 0, 0, 1], [1, 1, 1, 1]));
}

/// A line that a second transaction stores to while the last level has a committed version of it:
/// that version is written out, for each transaction but the first.
#[test]
fn kiln_writes_each_committed_version_out_but_the_last() {
    for transactions in [1, 2, 5] {
        let outcome = apart("kiln scribble", transactions, 100_000);
        assert_eq!(counted(&outcome, "committed_written_out"), transactions - 1);
    }
}

/// What a transaction of LOC says in entries without a block: a pair for each transaction whose
/// blocks it absorbed, and the TxCnt of one that has no block left. With `pin` the last block is
/// not absorbed.
#[test]
fn notes_of_loc_are_pairs_and_counts() {
    let written = |bearer: &str, transactions: &'static [&'static [u64]]| {
        let line = format!(
            "loc-wal scribble machine=silo cores=1 design.sd=32 design.bearer={bearer} \
             design.drain=oldest"
        );
        let outcome = on(&line, move |pm| {
            for lines in transactions {
                pm.begin()?;
                lines.iter().for_each(|&line| pm.store(at(line, 0), 1));
                pm.commit();
            }
            pm.durable();
            Ok(())
        });
        counts(&outcome, ["log_blocks", "blocks_coalesced", "log_notes"])
    };
    for bearer in ["carry", "pin"] {
        assert_eq!(written(bearer, &[&[0], &[1]]), [2, 0, 0], "{bearer}: nothing in common");
        assert_eq!(written(bearer, &[&[0, 1], &[0]]), [2, 1, 1], "{bearer}: a pair");
        assert_eq!(written(bearer, &[&[0, 1, 2], &[0], &[1]]), [3, 2, 2], "{bearer}: two pairs");
    }
    assert_eq!(written("carry", &[&[0], &[0]]), [1, 1, 2], "a pair and a count");
    assert_eq!(written("pin", &[&[0], &[0]]), [2, 0, 0]);
    assert_eq!(written("carry", &[&[0, 1], &[0, 1]]), [2, 2, 2], "one pair for both, and a count");
    assert_eq!(written("pin", &[&[0, 1], &[0, 1]]), [3, 1, 1]);
}

/// An aborted transaction takes a TxID if a line of it is in the log, and then only.
#[test]
fn an_aborted_transaction_of_loc_is_logged_if_a_line_left() {
    for (design, lines, logged) in
        [("ec-wal", 1, 0), ("ec-wal", 8, 1), ("h-wal", 8, 1), ("loc-wal", 1, 0), ("loc-wal", 8, 1)]
    {
        let settings = "llc.size=256B llc.assoc=4 l2.size=128B l1d.size=128B";
        let outcome = on(&format!("{design} scribble cores=1 {settings}"), move |pm| {
            pm.begin_abortable()?;
            (0..lines).for_each(|line| pm.store(at(line, 0), 1));
            pm.work(10_000);
            pm.abort();
            Ok(())
        });
        assert_eq!(counted(&outcome, "aborts_logged"), logged, "{design}, {lines} lines");
    }
}

/// A fence of DPO that has not drained comes before what another core does to a line that was
/// accessed behind it, as its filter knows, and not before what it does to other lines.
#[test]
fn a_filter_orders_what_follows_an_access_behind_a_fence() {
    let ordered = |line: u64, bits: u64| {
        let settings = format!(
            "undo@dpo scribble machine=silo cores=2 core.width=1 controller.noc_latency=100us \
             design.filter_bits={bits}"
        );
        let outcome = on(&settings, move |pm| {
            // Both lines come from memory before the fence, which is on its way for 200,000 cycles.
            let first = 10 * u64::from(pm.core().0);
            (first..first + 2).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(1_900_000 + 50_000 * first / 10);
            if pm.core() == CoreId(1) {
                pm.store(at(line, 0), 1);
                return Ok(());
            }
            pm.order();
            pm.load(at(1, 0));
            Ok(())
        });
        counts(&outcome, ["dependences_on_fences", "dependences_after_write"])
    };
    assert_eq!([ordered(0, 512), ordered(1, 512), ordered(1, 0)], [[0, 0], [1, 1], [0, 0]]);
}

/// Makes a line leave the caches of the machine `tiny`.
fn push_out(pm: &mut Pm<'_>, line: u64) {
    for push in 0..8 {
        pm.load(Ptr::to((1 << 20) + 64 * ((1 + line) % 4) + 256 * push));
    }
}

/// An evicted line sets the flush-bit of each of its words that has a log, and once only.
#[test]
fn an_evicted_line_sets_the_flush_bits_of_its_words() {
    for words in [0, 1, 5] {
        let outcome = on("silo scribble cores=1", move |pm: &mut Pm<'_>| -> Step {
            pm.begin()?;
            (0..words).for_each(|word| pm.store(at(0, word), 7));
            pm.store(at(1, 0), 7);
            push_out(pm, 0);
            pm.work(10_000);
            pm.load(at(0, 0));
            push_out(pm, 0);
            pm.commit();
            pm.work(10_000);
            Ok(())
        });
        let found = counts(&outcome, ["flush_bits_set", "logs_discarded", "in_place_updates"]);
        assert_eq!(found, [words, words, 1]);
    }
}

/// A controller remembers as many evicted lines as it has places, and counts the others.
#[test]
fn a_controller_remembers_as_many_evicted_lines_as_it_has_places() {
    for (places, lines, most, counted) in [(4, 3, 3, 0), (2, 3, 2, 1), (1, 3, 1, 2)] {
        let line = format!(
            "silo scribble cores=1 controller.count=4 controller.intlv_size=64B \
             design.controller_hop=4096 design.told={places}"
        );
        let outcome = on(&line, move |pm| {
            pm.begin()?;
            // Every fourth line is the second controller's.
            for line in (0..lines).map(|line| 4 * line) {
                pm.store(at(line, 0), 7);
                push_out(pm, line);
            }
            pm.commit();
            pm.work(100_000);
            Ok(())
        });
        let found = counts(&outcome, ["lines_told_max", "lines_told_without_place"]);
        assert_eq!(found, [most, counted], "{places} places");
    }
}
