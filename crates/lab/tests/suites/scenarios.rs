//! Small programs as text (`scenarios/*.txt`), run on every design: what each wrote and why it
//! waited is what it was when the snapshots were written (`snapshots/<design>/<scenario>.txt`).
//!
//! ```text
//! begin          a transaction begins             flush 8     ask for the line to be written back
//! store 8 1      the word at byte 8 becomes 1     order       order stores in what survives
//! fill 0 30 7    30 words from byte 0 become 7    durable     wait until stores are durable
//! bytes 60 8 7   8 bytes from byte 60 become 7
//! load 8         load the word at byte 8          work 500    execute 500 instructions
//! commit         the transaction ends             evict 8     make the line leave all caches
//! abort          it is aborted                    expect 8 1  load that word, which is 1
//! ```
//!
//! Addresses are bytes from the start of the heap, which holds zeros. One core runs the program on
//! the machine `tiny`. `UPDATE=1 cargo test scenarios::` writes the snapshots anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{durable, play, resolve};
use model::crash::{Campaign, Check, Points};
use model::meters::{Class, Stall};
use model::report::Report;
use model::units::{CoreId, LINE_BYTES, WORD_BYTES};
use model::workload::{Pm, Program, Ptr, Step, Workload};

/// A program as text.
#[derive(Clone, Debug)]
struct Script {
    steps: Arc<Vec<(String, Vec<u64>)>>,
}

/// Where the heap begins, and lines that a program evicts with: beyond what programs store to.
const HEAP: u64 = LINE_BYTES;
const OTHERS: u64 = 1 << 20;
/// As many lines of a set as push any line out of it, in every cache of the machine `tiny`; and
/// how far apart the lines of a set are.
const PUSHES: u64 = 8;
const SET_BYTES: u64 = 256;

impl Script {
    fn read(text: &str) -> Script {
        let steps =
            text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let step = |line: &str| {
            let mut words = line.split_whitespace().map(str::to_owned);
            let verb = words.next().expect("a line has a word");
            let numbers = words.map(|word| word.parse().unwrap_or_else(|_| panic!("{line}")));
            (verb, numbers.collect())
        };
        Script { steps: Arc::new(steps.map(step).collect()) }
    }

    /// Whether a transaction of the script is aborted: then all are begun as abortable.
    fn aborts(&self) -> bool {
        self.steps.iter().any(|(verb, _)| verb == "abort")
    }
}

impl Workload for Script {
    fn populate(&mut self, _pm: &mut Pm<'_>) -> Step {
        Ok(())
    }

    fn program(&self, _core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(self.clone()))
    }
}

impl Program for Script {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let at = |address: u64| Ptr::to(HEAP + address);
        for (verb, numbers) in self.steps.iter() {
            match (verb.as_str(), numbers.as_slice()) {
                ("begin", []) if self.aborts() => pm.begin_abortable()?,
                ("begin", []) => pm.begin()?,
                ("commit", []) => pm.commit(),
                ("abort", []) => pm.abort(),
                ("store", &[address, value]) => pm.store(at(address), value),
                ("bytes", &[address, length, value]) => {
                    pm.store_bytes(at(address), &vec![value as u8; length as usize]);
                }
                ("load", &[address]) => _ = pm.load(at(address)),
                ("expect", &[address, value]) => {
                    assert_eq!(pm.load(at(address)), value, "at byte {address}");
                }
                ("flush", &[address]) => pm.flush(at(address)),
                ("order", []) => pm.order(),
                ("durable", []) => pm.durable(),
                ("work", &[instructions]) => pm.work(instructions),
                ("fill", &[first, words, value]) => {
                    for word in 0..words {
                        pm.store(at(first + word * WORD_BYTES), value);
                    }
                }
                ("evict", &[address]) => {
                    let set = (HEAP + address) % SET_BYTES / LINE_BYTES * LINE_BYTES;
                    for push in 0..PUSHES {
                        pm.load(Ptr::to(OTHERS + set + push * SET_BYTES));
                    }
                }
                _ => panic!("`{verb}` with {} numbers is not a step", numbers.len()),
            }
        }
        Ok(())
    }
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Every scenario: its name and its text.
fn scenarios() -> Vec<(String, String)> {
    let files = std::fs::read_dir(directory("scenarios")).expect("the scenarios");
    let mut scenarios: Vec<(String, String)> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a text"))
        })
        .collect();
    scenarios.sort();
    scenarios
}

fn script(name: &str) -> Script {
    let found = scenarios().into_iter().find(|(other, _)| other == name);
    Script::read(&found.unwrap_or_else(|| panic!("no scenario {name}")).1)
}

fn report(design: &designs::Entry, script: &Script) -> Report {
    let resolved = resolve(&format!("{} scribble cores=1", design.card.name));
    play(design, &resolved.machine.config, 1, Box::new(script.clone()), 1, None).report
}

/// The numbers of a report that say what a design did, without those that only say how long.
fn summary(report: &Report) -> String {
    let mut text = String::new();
    let meters = &report.meters;
    writeln!(text, "transactions {}", report.transactions.ended).expect("a string");
    writeln!(text, "wpq_writes {}, merged {}", meters.wpq_writes, meters.wpq_merged)
        .expect("a string");
    for (class, name) in Class::ALL {
        let bytes = meters.wpq_bytes[class as usize];
        if bytes > 0 {
            writeln!(text, "wpq_bytes {name} {bytes}").expect("a string");
        }
    }
    for (name, count) in report.counters.iter().filter(|(_, count)| *count > 0) {
        writeln!(text, "counter {name} {count}").expect("a string");
    }
    let stalls = Stall::ALL.iter().zip(report.cores.stalls).filter(|(_, cycles)| *cycles > 0);
    for ((_, name), _) in stalls.filter(|((stall, _), _)| *stall != Stall::Other) {
        writeln!(text, "stall {name}").expect("a string");
    }
    text
}

#[test]
fn every_design_does_what_it_did() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut differ = String::new();
    for (name, text) in scenarios() {
        let script = Script::read(&text);
        for design in designs::ALL {
            let path = directory("snapshots").join(design.card.name).join(format!("{name}.txt"));
            let now = summary(&report(design, &script));
            if update {
                std::fs::create_dir_all(path.parent().expect("a directory")).expect("room");
                std::fs::write(&path, now).expect("room");
                continue;
            }
            let was = std::fs::read_to_string(&path).unwrap_or_default();
            if was != now {
                differ += &format!("{}\nwas:\n{was}now:\n{now}\n", path.display());
            }
        }
    }
    assert!(differ.is_empty(), "{differ}If this is meant: UPDATE=1 cargo test scenarios::");
}

/// Machines on which the power is cut: `tiny` as it is; and with two controllers of one-entry
/// queues over slow cells, so that writes overtake each other.
const MACHINES: &[&str] = &[
    "",
    "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
     pm.xpbuffer_entries=1 pm.tWRITE=400cycles",
];

#[test]
fn every_scenario_survives_a_power_failure_anywhere() {
    let mut found = String::new();
    for (name, text) in scenarios() {
        for (design, machine) in
            durable().flat_map(|entry| MACHINES.iter().map(move |m| (entry, m)))
        {
            let resolved = resolve(&format!("{} scribble cores=1 {machine}", design.card.name));
            let campaign = Campaign {
                points: Points::All,
                nested: true,
                reorders: 8,
                violations_max: 1,
                seed: 1,
                keep: 0,
                check: Check::Transactions,
            };
            let workload = Box::new(Script::read(&text));
            let outcome = play(design, &resolved.machine.config, 1, workload, 1, Some(campaign));
            let crashes = outcome.crashes.expect("a campaign");
            assert!(crashes.points > 0, "{name} on {}", design.card.name);
            if let Some(violation) = crashes.violations.first() {
                found += &format!("{name} on {} {machine}: {violation:?}\n", design.card.name);
            }
        }
    }
    assert!(found.is_empty(), "{found}");
}

/// Scenarios of transactions that store to few words, and how many different words change in all.
const SHORT: &[(&str, u64)] = &[
    ("one_store", 1),
    ("repeated_stores", 1),
    ("two_words", 2),
    ("there_and_back", 1),
    ("silent_stores", 0),
    ("words_of_two_lines", 4),
];

/// What Silo's paper promises (HPCA'23, sections III and IV): a transaction that fits the buffer
/// writes each word that it changes once, and no log.
#[test]
fn silo_writes_each_word_of_a_short_transaction_once_and_no_log() {
    for &(name, words) in SHORT {
        let report = silo(name);
        let bytes = |class| report.meters.wpq_bytes[class as usize];
        assert_eq!(bytes(Class::Data), WORD_BYTES * words, "{name}");
        assert_eq!(bytes(Class::Log), 0, "{name}");
        assert_eq!(report.meters.wpq_bytes_total(), WORD_BYTES * words, "{name}");
    }
}

#[test]
fn silo_ignores_what_changes_nothing_and_merges_what_changes_again() {
    for (name, generated, ignored, merged) in [
        ("silent_stores", 0, 3, 0),
        ("repeated_stores", 4, 0, 3),
        ("there_and_back", 2, 0, 1),
        ("two_transactions", 2, 0, 0),
    ] {
        let report = silo(name);
        let count = |wanted: &str| {
            let found = report.counters.iter().find(|(name, _)| *name == wanted);
            found.unwrap_or_else(|| panic!("no counter {wanted}: {:?}", report.counters)).1
        };
        let found = (count("logs_generated"), count("logs_ignored"), count("logs_merged"));
        assert_eq!(found, (generated, ignored, merged), "{name}");
    }
}

/// An overflow writes the records of 14 logs: 252 bytes, one line of the on-DIMM buffer.
#[test]
fn silo_overflows_in_batches() {
    for (name, batches) in [("one_store", 0), ("exactly_full", 0), ("overflow", 1), ("large", 6)] {
        let log = silo(name).meters.wpq_bytes[Class::Log as usize];
        assert_eq!(log, batches * 252, "{name}");
    }
}

fn silo(name: &str) -> Report {
    let design = designs::ALL.iter().find(|entry| entry.card.name == "silo").expect("silo");
    report(design, &script(name))
}

/// The interpreter does what it says: a line that is evicted is written home.
#[test]
fn an_evicted_line_leaves() {
    let native = designs::ALL.iter().find(|entry| entry.card.name == "native").expect("native");
    for (text, lines) in [
        ("begin\nstore 8 1\ncommit", 0),
        ("begin\nstore 8 1\nevict 8\ncommit", 1),
        ("begin\nstore 0 1\nstore 64 1\nevict 64\ncommit", 1),
    ] {
        let report = report(native, &Script::read(text));
        let home = report.meters.wpq_bytes[Class::HomeWriteBack as usize];
        assert_eq!(home, lines * LINE_BYTES, "{text}");
    }
}
