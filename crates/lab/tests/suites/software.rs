//! Software logs: what they cost beside their accesses, what they flush, and where entries go.

use crate::common::{all_hold, durable, replayed, resolve, run, timeline};
use crate::programs::{at, on, store};
use model::design::Shape;
use model::meters::Class;
use model::units::CoreId;

/// Each store of a transaction to a word looks the word, or its line, up, and so does each load
/// behind its first store if the stores are kept apart. An entry has its own instructions: that of
/// a line, or that of a word.
#[test]
fn a_software_log_is_charged_for_its_instructions() {
    let cycles = |design: &str, parameter: &str, instructions: u64| {
        let line = format!(
            "{design} scribble cores=1 machine=silo core.model=inorder core.width=1 \
             design.{parameter}={instructions}"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            pm.load(at(0, 0));
            pm.store(at(0, 0), 1);
            pm.store(at(0, 1), 1);
            pm.store(at(1, 0), 1);
            pm.load(at(2, 0));
            pm.commit();
            Ok(())
        });
        outcome.report.cycles
    };
    for (design, parameter, times) in [
        ("undo@ideal", "lookup", 3),
        ("undo@ideal", "record", 2),
        ("redo@ideal", "lookup", 4),
        ("count@ideal", "lookup", 4),
        ("count@ideal", "record", 3),
        ("s-wal", "lookup", 4),
    ] {
        let more = cycles(design, parameter, 1_000) - cycles(design, parameter, 0);
        // Some of it passes while a line is on its way.
        let range = 1_000 * times - 400..=1_000 * times;
        assert!(range.contains(&more), "{design}: {more} cycles for {parameter}");
    }
}

/// A log flushes its entries, the lines of data and its marks, each of these lines once. Two
/// entries of a redo log are in a line.
#[test]
fn a_software_log_flushes_each_line_once() {
    for (design, one_line, three_words) in [
        ("undo@x86", 2 + 1 + 1, 2 + 1 + 1),
        ("redo@x86", 1 + 1 + 1 + 1, 2 + 1 + 1 + 1),
        ("count@x86", 1 + 1 + 1, 2 + 1 + 1),
        ("s-wal", 2 + 1 + 1 + 1, 2 + 1 + 1 + 1),
    ] {
        let flushes = |words: u64| {
            let line = format!("{design} scribble cores=1");
            on(&line, move |pm| store(pm, &[words], 1)).report.accesses.flushes
        };
        assert_eq!([2, 3].map(flushes), [one_line, three_words], "{design}");
    }
}

/// What a log writes counts as what it is: log, a mark that commits, data, and what is known of the
/// log itself.
#[test]
fn what_a_software_log_writes_is_counted_as_what_it_is() {
    for (design, lines) in [
        ("undo@x86", [2, 1, 1, 0]),
        ("redo@x86", [1, 1, 1, 1]),
        ("count@x86", [1, 0, 1, 1]),
        ("s-wal", [1, 1, 1, 2]),
    ] {
        let outcome = on(&format!("{design} scribble cores=1"), |pm| store(pm, &[1], 1));
        let bytes = outcome.report.meters.wpq_bytes;
        let found = [Class::Log, Class::Commit, Class::Data, Class::Metadata]
            .map(|class| bytes[class as usize] / 64);
        assert_eq!(found, lines, "{design}");
    }
}

/// The lines of its log that a core flushes in the transactions of a trace, but for those of marks,
/// each by how many bytes lie before it.
fn lines_of_entries(line: &str, trace: &str, marks: &[u64]) -> Vec<u64> {
    let config = resolve(&replayed(line, trace)).machine.config;
    let log = Shape::new(&config, 1).log_of(CoreId(0));
    let events = timeline(line, trace);
    let flushed = events.iter().filter_map(|event| event["what"].as_str()?.strip_prefix("clwb 0x"));
    let addresses = flushed.map(|line| u64::from_str_radix(line, 16).expect("an address"));
    let in_log = addresses.filter_map(|address| address.checked_sub(log));
    in_log.filter(|place| !marks.contains(place)).collect()
}

/// Every transaction begins in the first place, or where the one before has ended. Behind the last
/// place comes the first, also within a transaction, whose entries lie on both ends then.
#[test]
fn entries_begin_anew_or_go_round() {
    const TRANSACTIONS: u64 = 30;
    let stores = [0x00, 0x08, 0x10, 0x18, 0x40, 0x48, 0x50, 0x58];
    let stores = stores.map(|at| format!("store {:#x} 1\n", 0x10000 + at)).concat();
    let one = format!("begin\n{stores}commit\n");
    let trace = format!("region 0x10000 0x1000\nmeasured\n{}", one.repeat(TRANSACTIONS as usize));
    for (design, entries, first, bytes, marks) in [
        ("undo@x86", 2, 64, 128, &[0][..]),
        ("redo@x86", 8, 128, 32, &[0, 64]),
        ("count@x86", 8, 64, 32, &[0]),
    ] {
        let places = (1024 - first) / bytes;
        assert!(places % entries > 0 && TRANSACTIONS * entries > 2 * places, "{design}");
        for place in ["anew", "ring"] {
            let mut expected = Vec::new();
            for transaction in 0..TRANSACTIONS {
                let begin = if place == "ring" { transaction * entries } else { 0 };
                let all = (begin..begin + entries).map(|entry| first + bytes * (entry % places));
                let mut lines: Vec<u64> = all
                    .flat_map(|at| (at..at + bytes).step_by(32).map(|at| at / 64 * 64))
                    .collect();
                lines.dedup();
                expected.extend(lines);
            }
            let line = format!("{design} replay pm.log_size=1KiB design.log_place={place}");
            assert_eq!(lines_of_entries(&line, &trace, marks), expected, "{line}");
        }
    }
}

/// Whether the entries of every core go round the log of 2 KiB of a request.
fn goes_round(line: &str) -> bool {
    let answer = run(line);
    let txs = answer["config"]["txs_per_core"].as_f64().expect("a number");
    let entries = |of: &str| answer["write_set"][of].as_f64().expect("a number") * txs;
    // An undo log has 15 places for lines; a redo log has 60, and one that counts 62, for words.
    entries("lines_avg") > 15.0 && entries("words_avg") > 62.0
}

/// A log that is a ring holds what it promises while its entries go round: on all ordering
/// hardware, with aborts, where words are torn, and over several lives.
#[test]
fn rings_keep_what_they_promise() {
    let small = "pm.log_size=2KiB design.log_place=ring";
    let mut lines = Vec::new();
    let has_place = |entry: &&designs::Entry| entry.fields.iter().any(|f| f.name == "log_place");
    let software = durable().filter(has_place).filter(|entry| entry.stands_on.is_some());
    for (turn, name) in software.map(|entry| entry.card.name).enumerate() {
        for (index, workload) in
            ["scribble txs=40", "hash txs=20", "btree txs=20", "scribble txs=40 workload.aborts=40"]
                .iter()
                .enumerate()
        {
            for cores in [1, 2, 4] {
                let seed = 1 + (turn + index + cores) % 5;
                lines.push(format!("{name} {workload} cores={cores} seed={seed} {small}"));
            }
        }
        lines.push(format!("{name} scribble txs=40 cores=2 lives=3 {small}"));
        lines.push(format!("{name} scribble txs=40 cores=2 nested=false {small} {TORN}"));
    }
    for line in &lines {
        assert!(goes_round(line), "{line}");
    }
    all_hold(lines);
}

/// Words tear, and lines overtake each other on the way to several controllers.
const TORN: &str = "controller.domain=media controller.count=2 controller.intlv_size=64B";
