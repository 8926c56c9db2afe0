//! What is special to MorLog: which of its entries leave, and when.

use crate::common::all_hold;
use crate::programs::{at, counted, on, store};
use model::engine::Outcome;

/// A first level of four lines.
const FOUR_LINES: &str = "l1d.size=256B l1d.assoc=4";

/// Of redo data that a full buffer sends, the oldest leave first. Lines 0, 1 and 2 leave the first
/// level one after the other, and the buffer has room for two. If a word that it still holds is
/// stored to again, its redo entry leaves before the word's new entry.
#[test]
fn the_oldest_redo_entry_leaves_first() {
    for design in ["morlog", "morlog-dp"] {
        let sent_before = |line: u64| {
            let settings = format!("{design} scribble machine=silo cores=1 {FOUR_LINES}");
            let outcome = on(&format!("{settings} design.r_entries=2"), move |pm| {
                pm.begin()?;
                for value in 1..=2 {
                    (0..3).for_each(|line| pm.store(at(line, 0), value));
                    pm.work(10_000);
                }
                for line in 0..8 {
                    pm.load(at(100 + line, 0));
                    pm.work(10_000);
                }
                pm.store(at(line, 0), 3);
                pm.work(10_000);
                pm.commit();
                Ok(())
            });
            let counts = ["stores_deferred", "redo_entries", "redo_sent_before_entry"];
            counts.map(|name| counted(&outcome, name))
        };
        assert_eq!([0, 1, 2].map(sent_before), [[3, 3, 0], [3, 3, 1], [3, 3, 1]], "{design}");
    }
}

/// Of redo data that a commit leaves in the first level, the oldest leave first when they are due.
/// One at a time is under way, so a store to another of the words finds no room for its redo data.
#[test]
fn the_oldest_redo_data_of_a_commit_leave_first() {
    let waited = |line: u64| {
        // A way is 100,000 cycles.
        let settings = "morlog-dp scribble machine=silo cores=1 core.width=1 design.r_entries=1 \
                        controller.noc_latency=50us design.redo_delay=400000";
        let outcome = on(settings, move |pm| {
            pm.begin()?;
            for value in 1..=2 {
                (0..3).for_each(|line| pm.store(at(line, 0), value));
                pm.work(1_000_000);
            }
            pm.commit();
            pm.work(300_000);
            pm.begin()?;
            pm.store(at(line, 0), 3);
            pm.commit();
            Ok(())
        });
        counted(&outcome, "ur_or_r_buffer_full")
    };
    assert_eq!([0, 1, 2].map(waited), [0, 1, 1]);
}

/// A commit finds eight words in the first level only. Each but the first finds the only place of
/// the redo buffer taken by the one before, and none does if there are eight places.
#[test]
fn a_commit_is_held_by_a_redo_buffer_that_is_full() {
    let held = |entries: u64| {
        let line = format!("morlog scribble machine=silo cores=1 design.r_entries={entries}");
        let outcome = on(&line, |pm| {
            pm.begin()?;
            for value in 1..=2 {
                (0..8).for_each(|line| pm.store(at(line, 0), value));
                pm.work(10_000);
            }
            pm.commit();
            Ok(())
        });
        assert_eq!(counted(&outcome, "words_scanned_at_commit"), 8);
        counted(&outcome, "commit_scans_held")
    };
    assert_eq!([1, 8].map(held), [7, 0]);
}

/// A line that leaves all caches sends the entries of its words, and those before them, and waits
/// for their records. Others stay.
#[test]
fn a_line_that_leaves_sends_its_entries_once() {
    let left = |age: u64| -> Outcome {
        let line = format!(
            "morlog scribble cores=1 llc.size=256B llc.assoc=4 l2.size=256B l2.assoc=4 \
             {FOUR_LINES} design.age={age} design.slde=on"
        );
        on(&line, |pm| {
            pm.begin()?;
            (0..3).for_each(|word| pm.store(at(0, word), 1));
            pm.work(10_000);
            (1..5).for_each(|line| _ = pm.load(at(line, 0)));
            pm.work(10_000);
            pm.commit();
            Ok(())
        })
    };
    let counts = ["entries_sent_for_a_line", "evictions_held"];
    assert_eq!(counts.map(|name| counted(&left(1_000_000), name)), [1, 1], "three entries, once");
    assert_eq!(counts.map(|name| counted(&left(1), name)), [0, 0], "they are durable by then");
}

/// The buffers are at the core. A store that finds 16 entries under way waits until the core has
/// heard that one of them is accepted, whenever the store comes.
#[test]
fn a_place_is_free_when_the_core_hears_of_it() {
    let full = |work: u64| {
        let line = "morlog scribble machine=silo cores=1 core.width=1 design.age=1 \
                    design.ur_entries=4 controller.noc_latency=10us \
                    controller.static_frontend_latency=0ns controller.static_backend_latency=0ns";
        let outcome = on(line, move |pm| {
            (0..2).for_each(|line| _ = pm.load(at(line, 0)));
            pm.begin()?;
            (0..4).for_each(|word| pm.store(at(0, word), 1));
            pm.work(work);
            pm.store(at(1, 0), 1);
            pm.commit();
            Ok(())
        });
        counted(&outcome, "ur_or_r_buffer_full")
    };
    // A way is 20,000 cycles. In between the records are accepted.
    assert_eq!([10_000, 30_000, 39_000, 42_000].map(full), [1, 1, 1, 0]);
}

/// The number of a transaction has 16 bits, and in a log of 4 MiB there are more transactions of
/// one store than that. Those that only store silently have a commit record and no other data.
#[test]
fn numbers_recur_among_transactions_that_only_store_silently() {
    all_hold(["morlog", "morlog-dp"].map(|design| {
        format!(
            "{design} scribble machine=silo cores=1 txs=70000 points=60 nested=false \
             workload.stores=1 workload.large=1 design.slde=on"
        )
    }));
}

/// A store that waits for a buffer may come to wait for the ring when the core hears that there is
/// room in the buffer, and nothing is under way then: a scan has to begin.
#[test]
fn a_store_that_hears_of_room_in_a_buffer_waits_for_the_ring() {
    let mut lines = Vec::new();
    for design in ["morlog", "morlog-dp"] {
        for (undo_redo, redo) in [(1, 8), (1, 2), (2, 8)] {
            for (cores, ring) in [(1, 24), (2, 32)] {
                lines.push(format!(
                    "{design} scribble cores={cores} txs=60 nested=false workload.words=16 \
                     pm.tWRITE=1us design.variant=b design.ur_entries={undo_redo} \
                     design.r_entries={redo} design.log_lines={ring}"
                ));
            }
        }
    }
    all_hold(lines);
}

/// A store that finds the buffer full of entries whose stores have not left waits until the first
/// has, and not until that entry is old.
#[test]
fn a_store_that_waits_for_room_does_not_wait_for_an_age() {
    for design in ["morlog", "morlog-dp"] {
        let cycles = |age: u64| {
            let line = format!(
                "{design} scribble machine=silo cores=1 design.ur_entries=2 design.age={age}"
            );
            on(&line, |pm| store(pm, &[8; 2], 1)).report.cycles
        };
        let (soon, late) = (cycles(1), cycles(1_000_000));
        assert!(late < soon + 1_000, "{design}: {soon} and {late} cycles");
    }
}
