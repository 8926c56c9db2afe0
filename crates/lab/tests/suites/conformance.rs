//! Every design of the registry on every workload, with the power cut at every point of every run:
//! a design that promises something keeps its promise, and one that does not is caught.

use crate::common::{all_hold, crash, durable, fragile, only, run, tight, violations, window};
use model::design::Needs;
use model::params::Field;
use serde_json::{Value, json};

/// Returns settings that make a workload small enough for every point of a variant to be checked,
/// and for every write of every recovery if it is nested: there are as many of these as the square
/// of a write set. Four cores have as many transactions in all as two.
fn small(workload: &str, variant: &str) -> &'static str {
    let is_nested = !variant.contains("nested=false");
    let is_brief = is_nested || variant.contains("cores=4");
    match workload {
        "bplustree" if is_brief => "txs=15 workload.order=4",
        "bplustree" => "txs=30 workload.order=4",
        "ctree" | "hashmap" | "sps" if is_brief => "txs=10",
        "ctree" | "hashmap" | "sps" => "txs=20",
        "echo" if is_nested => "txs=3 workload.merge=2 workload.key=16 workload.value=48",
        "echo" => "txs=6 workload.merge=3 workload.key=16 workload.value=48",
        "memcached" if is_nested => {
            "txs=4 workload.buckets=4 workload.update_interval=2 workload.value=8"
        }
        "memcached" => "txs=8 workload.buckets=4 workload.update_interval=2 workload.value=8",
        "probe" => "txs=5 workload.items=60",
        "replay" => "txs=10",
        "scribble" if is_brief => "txs=40",
        "scribble" => "txs=80",
        // By default the few items of `tiny` are edges between two vertices.
        "sdg" if is_brief => "txs=10 workload.degree=2",
        "sdg" => "txs=20 workload.degree=2",
        "sqlite" => "txs=6 workload.rows=20",
        "tpcc" if is_nested => "txs=1 workload.districts=2",
        "tpcc" => "txs=3 workload.districts=2",
        "vacation" => "txs=15 workload.actions=mixed workload.user_percent=60 workload.queries=2",
        "ycsb" => "txs=30 workload.fieldcount=4 workload.fieldlength=20",
        _ if is_brief => "txs=15",
        _ => "txs=30",
    }
}

fn workloads() -> impl Iterator<Item = &'static str> {
    workloads::ALL.iter().map(|entry| entry.about.name)
}

/// Gives a variant a log that does not grow with the run: otherwise recovery grows, too, which is
/// done at every point. With four cores the log is as long as by default.
fn bounded(design: &str, workload: &str, variant: &str) -> String {
    let has_ring = durable()
        .filter(|entry| entry.card.name == design)
        .any(|entry| entry.fields.iter().any(|field| field.name == "log_lines"));
    if has_ring && !variant.contains("cores=4") && !variant.contains("log_lines") {
        let lines = if MICRO.contains(&workload) { 128 } else { 512 };
        return format!("{variant} design.log_lines={lines}");
    }
    variant.to_owned()
}

/// The workloads with which every corner is looked for; the others do more in a transaction.
const MICRO: &[&str] = &["array", "btree", "hash", "queue", "rbtree", "scribble"];

/// Every design on every workload, each with one of the variants, which take turns.
fn every(designs: &[&str], variants: &[&str]) -> Vec<String> {
    every_nth(1, 0, designs, variants)
}

/// The same with one in so many of the workloads that are no micro-benchmarks; each turn, and each
/// further design, takes other ones.
fn every_nth(nth: usize, turn: usize, designs: &[&str], variants: &[&str]) -> Vec<String> {
    let others = workloads().filter(|workload| !MICRO.contains(workload));
    let all: Vec<&str> = MICRO.iter().copied().chain(others).collect();
    let mut lines = Vec::new();
    for (place, design) in designs.iter().enumerate() {
        for (index, workload) in all.iter().enumerate() {
            if index >= MICRO.len() && !(2 * place + index + turn).is_multiple_of(nth) {
                continue;
            }
            let number = (place + index) % variants.len();
            lines.push(trial(design, workload, variants[number], place + index + number));
        }
    }
    lines
}

/// The designs on the micro-benchmarks, with every one of the variants.
fn micro(designs: &[&str], variants: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for (place, design) in designs.iter().enumerate() {
        for (index, workload) in MICRO.iter().enumerate() {
            for (number, variant) in variants.iter().enumerate() {
                lines.push(trial(design, workload, variant, place + index + number));
            }
        }
    }
    lines
}

/// A design on `scribble` with every one of the variants, and on half of the other micro-benchmarks
/// by turns with each of them.
fn half_of_micro(design: &str, variants: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for (index, workload) in MICRO.iter().enumerate() {
        for (number, variant) in variants.iter().enumerate() {
            if *workload == "scribble" || (index + number).is_multiple_of(2) {
                lines.push(trial(design, workload, variant, index + number));
            }
        }
    }
    lines
}

/// A trial with one of three seeds by turns; `make soak` gives more.
fn trial(design: &str, workload: &str, variant: &str, turn: usize) -> String {
    let small = small(workload, variant);
    let bounded = bounded(design, workload, variant);
    let seed = 1 + turn % 3;
    let window = short_window(design, workload);
    format!(
        "{design} {workload} {small} seed={seed} {window} {bounded} {}",
        fewer(design, workload)
    )
}

/// Gives the largest transactions, of which there are few, a window that they fill.
fn short_window(design: &str, workload: &str) -> String {
    let sd = match workload {
        "echo" | "memcached" | "sqlite" => 2,
        "tpcc" => 1,
        _ => return String::new(),
    };
    durable().find(|entry| entry.card.name == design).map_or_else(String::new, |it| window(it, sd))
}

/// Designs that write a page for a store. They have as many points as others with fewer
/// transactions.
const COPY_PAGES: &[&str] = &["shadow-paging"];

fn fewer(design: &str, workload: &str) -> &'static str {
    match workload {
        _ if !COPY_PAGES.contains(&design) => "",
        "scribble" => "txs=20",
        "tpcc" => "txs=1",
        _ => "txs=6",
    }
}

fn names() -> Vec<&'static str> {
    durable().map(|entry| entry.card.name).collect()
}

const SMALL_CACHES: &str = "llc.size=256B l2.size=128B l1d.size=128B";
const APART: &str = "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
    controller.writeback_buffer_size=64 pm.xpbuffer_entries=1 pm.tWRITE=400cycles";

#[test]
fn one_core() {
    all_hold(every(&names(), &["cores=1 nested=false"]));
}

#[test]
fn two_cores() {
    all_hold(every(&names(), &["cores=2 nested=false"]));
}

/// The power fails again after each write of recovery.
#[test]
fn a_recovery_is_interrupted_and_done_again() {
    all_hold(every_nth(3, 0, &names(), &["cores=1", "cores=2"]));
}

#[test]
fn four_cores() {
    all_hold(every_nth(3, 1, &names(), &["cores=4 nested=false"]));
}

/// Power failures of recovery with four cores, at some points of each run.
#[test]
fn a_recovery_of_four_cores_is_interrupted() {
    let some = every_nth(3, 2, &names(), &["cores=4 points=60"]);
    // Seeds that the other tests do not take.
    all_hold((1_004..).zip(some).map(|(seed, line)| format!("{line} seed={seed}")));
}

#[test]
fn caches_of_a_few_lines() {
    let one = format!("cores=1 nested=false {SMALL_CACHES}");
    let four = format!("cores=4 nested=false {SMALL_CACHES}");
    all_hold(every_nth(3, 0, &names(), &[&one, &four]));
}

#[test]
fn controllers_that_overtake_each_other() {
    let plain = format!("cores=2 nested=false {APART}");
    let small = format!("cores=2 nested=false {APART} {SMALL_CACHES}");
    let mixed = format!("{plain} controller.arrival_jitter=400cycles");
    all_hold(every_nth(3, 1, &names(), &[&plain, &small, &mixed]));
}

#[test]
fn cores_in_order_and_nobody_ahead() {
    let inorder = "cores=2 nested=false core.model=inorder";
    let exact = "cores=2 nested=false exact=true";
    all_hold(every_nth(3, 2, &names(), &[inorder, exact]));
}

/// Designs that flush do so with one flush after the other.
#[test]
fn one_store_in_flight() {
    let flushing = ["undo@x86", "redo@x86", "count@x86", "s-wal", "hops"];
    all_hold(every(&flushing, &["cores=2 nested=false core.stores_in_flight=one"]));
}

/// Designs whose log is a ring of a core's own that one transaction of the micro-benchmarks nearly
/// fills, so that it goes round often.
const RINGS: &[&str] = &["redo-log", "undo-log"];

/// Structures so small that transactions overflow, fill and wrap them again and again: each
/// structure of a design that declares a small size for it has the smallest.
#[test]
fn small_structures() {
    for entry in durable() {
        let tight = |field: &Field| match field.name {
            // A transaction of the micro-benchmarks fits in this.
            "log_lines" => Some("design.log_lines=200".to_owned()),
            name => field.tight.iter().min().map(|size| format!("design.{name}={size}")),
        };
        let small: Vec<String> = entry.fields.iter().filter_map(tight).collect();
        if small.is_empty() {
            continue;
        }
        let small = format!("nested=false {}", small.join(" "));
        let variants = [
            format!("cores=1 {small}"),
            format!("cores=4 {small} {SMALL_CACHES}"),
            format!("cores=2 {small} {SMALL_CACHES} {APART}"),
        ];
        all_hold(half_of_micro(entry.card.name, &variants));
    }
    let small = ["cores=1 nested=false pm.log_size=2KiB", "cores=4 nested=false pm.log_size=2KiB"];
    all_hold(micro(RINGS, &small));
}

/// Orders at warehouses that cores share, with stock from other warehouses, over every index by
/// turns.
#[test]
fn new_orders_that_meet() {
    let array = "array workload.rows=lean workload.stock_counts=apart";
    let indexes = ["hash", "btree", "bplustree", array];
    let mut lines = Vec::new();
    for (place, entry) in durable().enumerate() {
        let (name, window) = (entry.card.name, window(entry, 2));
        let (one, other) = (place % indexes.len(), (place + 1) % indexes.len());
        lines.push(format!(
            "{name} tpcc txs=4 cores=4 seed={} nested=false {window} workload.index={} \
             workload.shared=shared workload.warehouses=2 workload.districts=2 \
             workload.remote=30 workload.rollback=20",
            one + 1,
            indexes[one]
        ));
        lines.push(format!(
            "{name} tpcc txs=4 cores=2 seed={} nested=false {window} workload.index={} \
             workload.shared=shared workload.warehouses=1 workload.districts=2 \
             workload.rollback=50 workload.item_reads=in_turn",
            other + 1,
            indexes[other]
        ));
    }
    all_hold(lines);
}

/// Persist buffers of two entries, and persist buffers that nothing hurries.
#[test]
fn small_and_lazy_persist_buffers() {
    let lazy = |entry: &&designs::Entry| entry.fields.iter().any(|field| field.name == "poll");
    let names: Vec<&str> = durable().filter(lazy).map(|entry| entry.card.name).collect();
    assert!(!names.is_empty() || only().is_some());
    let small = format!("cores=4 nested=false design.entries=2 {SMALL_CACHES}");
    let lazy = format!("cores=2 nested=false design.drain=lazy design.poll=0 {SMALL_CACHES}");
    all_hold(micro(&names, &[&small, &lazy]));
}

/// Logs and transaction numbers that wrap, with every way of speculating.
#[test]
fn logs_that_wrap() {
    let has = |entry: &designs::Entry, name| entry.fields.iter().any(|field| field.name == name);
    let mut lines = Vec::new();
    for entry in durable().filter(|entry| has(entry, "id_bits")) {
        let ways = [
            "design.sd=2",
            "design.sd=4 design.drain=oldest",
            "design.sd=6 design.bearer=pin",
            "design.sd=6 design.bearer=pin design.drain=oldest",
        ];
        for way in if has(entry, "sd") { &ways[..] } else { &[""] } {
            for seed in 1..=2 {
                let line = |rest: &str| {
                    let name = entry.card.name;
                    format!("{name} scribble txs=120 nested=false seed={seed} {way} {rest}")
                };
                let numbers = "design.id_bits=6 pm.log_size=18KiB";
                let log = "design.truncate_perc=100 pm.log_size=4KiB";
                lines.push(line(&format!("cores=1 {numbers}")));
                lines.push(line(&format!("cores=2 {numbers} {SMALL_CACHES}")));
                lines.push(line(&format!("cores=3 {numbers} {APART}")));
                lines.push(line(&format!("cores=2 {log} {SMALL_CACHES} {APART}")));
                lines.push(line(&format!("cores=4 {log}")));
                lines.push(line(&format!("cores=2 {log} controller.domain=media")));
                lines.push(line(&format!("cores=2 {log} {SMALL_CACHES} controller.domain=eadr")));
                // Numbers that aborted transactions have used up.
                let aborts = format!("{SMALL_CACHES} workload.aborts=85 workload.words=96");
                lines.push(line(&format!("cores=1 {numbers} {aborts}")));
                lines.push(line(&format!("cores=2 {log} {aborts}")));
            }
        }
    }
    all_hold(lines);
}

/// Every design in each way of working that it offers, one at a time and all at once, by turns with
/// four cores and with two controllers.
#[test]
fn every_choice_of_a_design() {
    for entry in durable() {
        let choices: Vec<String> = entry
            .fields
            .iter()
            .flat_map(|field| {
                let others = field.choices.iter().enumerate();
                let others = others.filter(|(index, _)| *index as u64 != field.default);
                others.map(|(_, choice)| format!("design.{}={choice}", field.name))
            })
            .collect();
        let mut ways = choices.clone();
        if choices.len() > 1 {
            ways.push(choices.join(" "));
        }
        let window = window(entry, 4);
        let variants: Vec<String> = ways
            .iter()
            .enumerate()
            .map(|(index, way)| match index % 2 {
                0 => format!("cores=4 nested=false {SMALL_CACHES} {window} {way}"),
                _ => format!("cores=2 nested=false {SMALL_CACHES} {APART} {window} {way}"),
            })
            .collect();
        all_hold(half_of_micro(entry.card.name, &variants));
    }
}

/// Every domain is tried with the designs that accept it; in a domain that it does not accept, a
/// design brings its own.
#[test]
fn durability_domains() {
    for (turn, (domain, enough)) in (0..).zip([
        ("media", &[Needs::Nothing][..]),
        ("eadr", &[Needs::Nothing, Needs::Adr, Needs::Eadr]),
    ]) {
        let accepts = |entry: &&designs::Entry| enough.contains(&entry.card.needs);
        let names: Vec<&str> = durable().filter(accepts).map(|entry| entry.card.name).collect();
        let plain = format!("cores=2 nested=false controller.domain={domain}");
        // Lines that leave the caches again and again are on their way to the cells twice.
        let again = format!("{plain} llc.assoc=1 l2.assoc=1 l1d.assoc=1");
        // Fast cells, so that the order of the bus is the order in which writes are durable.
        let fast = format!(
            "cores=4 nested=false controller.domain={domain} pm.tREAD=1ns pm.tWRITE=1ns \
             pm.banks_per_rank=16 {SMALL_CACHES}"
        );
        all_hold(every_nth(3, turn, &names, &[&plain, &again, &fast]));
        for entry in durable().filter(|entry| !accepts(entry)) {
            let name = entry.card.name;
            let line = format!("{name} scribble txs=2 cores=2 controller.domain={domain}");
            let answer = crash(&line);
            assert_ne!(answer["domain"].as_str().expect("a domain"), domain, "{line}");
            let notes = answer["notes"].as_array().expect("a list").iter();
            let brought = notes.filter_map(Value::as_str).filter(|note| note.contains("domain"));
            assert_eq!(brought.count(), 1, "{line}: {}", answer["notes"]);
        }
    }
}

/// A global persistent flush of every cache, at the far end of a link.
#[test]
fn a_global_flush() {
    let gpf = "nested=false controller.domain=gpf controller.link_latency=70ns";
    let plain = format!("cores=2 {gpf}");
    let again = format!("cores=4 {gpf} llc.assoc=1 l2.assoc=1 l1d.assoc=1");
    all_hold(durable().enumerate().flat_map(|(place, entry)| {
        let other = MICRO[place % MICRO.len()];
        [("scribble", &plain), ("scribble", &again), (other, &again)]
            .map(|(workload, variant)| trial(entry.card.name, workload, variant, place))
    }));
}

/// A design that does not need the caches to survive is right whichever of their lines are saved.
#[test]
fn energy_for_some_of_the_caches() {
    let names = durable().filter(|entry| entry.card.needs != Needs::Eadr);
    all_hold(names.flat_map(|entry| {
        let name = entry.card.name;
        let line = |domain: &str, bytes: u64| {
            format!(
                "{name} scribble cores=2 txs=40 nested=false controller.domain={domain} \
                 controller.flush_bytes={bytes}B"
            )
        };
        let nested = format!(
            "{name} scribble cores=2 txs=15 controller.domain=eadr controller.flush_bytes=256B"
        );
        [line("gpf", 128), line("eadr", 256), line("gpf", 1024), nested]
    }));
}

/// Without energy for even one line the caches are lost, and everything is as under `adr`.
#[test]
fn a_global_flush_without_energy_is_adr() {
    for entry in durable().filter(|entry| entry.card.needs != Needs::Eadr) {
        let name = entry.card.name;
        let [adr, gpf] = ["adr", "gpf controller.flush_bytes=0B"]
            .map(|domain| run(&format!("{name} hash cores=2 txs=60 controller.domain={domain}")));
        for field in ["cycles", "stalls", "pm_writes", "commit_latency_cycles"] {
            assert_eq!(gpf[field], adr[field], "{name}: {field}");
        }
    }
    let line = "undo@x86 scribble txs=60 cores=2 without=fence_before_log_is_dropped \
        controller.domain=gpf";
    // A recovery that drops its log too early is caught wherever lines can be lost.
    for energy in ["0B", "63B", "64B"] {
        let answer = crash(&format!("{line} controller.flush_bytes={energy}"));
        assert_ne!(answer["violations"], json!([]), "with energy for {energy}");
    }
}

/// A campaign comes near what a design declares that it saves. So the energy is not enough for a
/// structure that is not declared, or not in its size. A third is near: for an entry of a persist
/// buffer the words that were stored are saved, and declared are all words, its address and its
/// mask.
#[test]
fn what_is_saved_is_what_is_declared() {
    // Cells of the last level, and log buffers as large as what the caches hold, are never full.
    let is_vast = |name: &str| name.contains("kiln") || name.starts_with("morlog");
    for entry in durable() {
        let name = entry.card.name;
        let line = format!(
            "{name} scribble cores=4 txs=100 lives=1 nested=false controller.domain=eadr \
             workload.large=16{}",
            tight(entry)
        );
        let answer = crash(&line);
        let found = violations(&line, &answer);
        assert!(found.is_empty(), "{found}");
        let bytes = |field: &str| answer[field].as_u64().expect("bytes");
        let (saved, declared) = (bytes("saved_bytes_max"), bytes("declared_bytes"));
        assert!(is_vast(name) || 3 * saved >= declared, "{name} saves {saved} of {declared} bytes");
    }
}

/// What a design brings is enough: where caches survive, it brings the energy to save them, too. If
/// the user asks for less, that is done, with a note.
#[test]
fn what_a_design_brings_is_enough() {
    for entry in durable().filter(|entry| entry.card.needs == Needs::Eadr) {
        let name = entry.card.name;
        all_hold(vec![format!("{name} scribble machine=cxl cores=2 txs=20 nested=false")]);
        // Under `adr`, the machine's own domain, the design brings the domain and leaves the
        // energy.
        for (domain, note) in [("eadr", 0), ("gpf", 0), ("adr", 1)] {
            let short = crash(&format!(
                "{name} scribble cores=2 txs=20 controller.domain={domain} \
                 controller.flush_bytes=64B"
            ));
            let said = short["notes"][note].as_str().expect("a note");
            assert!(said.contains("flush_bytes is 64 for"), "{name}, {domain}: {said}");
            assert!(!short["violations"].as_array().expect("a list").is_empty(), "{domain}");
        }
    }
    let eadr = "scribble cores=2 txs=20 nested=false controller.domain=eadr";
    let answer = crash(&format!("undo@eadr {eadr} controller.flush_bytes=63B"));
    assert!(answer["violations"].as_array().expect("a list").is_empty());
    let note = "undo@eadr needs caches that survive, and gives machine tiny energy for every \
                cache (controller.flush_bytes is 63)";
    assert_eq!(answer["notes"], json!([note]));
    for entry in durable().filter(|entry| crate::common::is_line_granular(entry)) {
        let line = format!("{} scribble txs=2 cores=2 workload.lock_grain=word", entry.card.name);
        let answer = crash(&line);
        let notes = answer["notes"].as_array().expect("a list");
        let mut told = notes.iter().filter_map(|note| note.as_str());
        assert!(told.any(|note| note.contains("locks on words")), "{line}: {notes:?}");
    }
}

/// A word-granular design does not need locks to keep words of one line apart; a line-granular one
/// does, and the checker sees what happens without them.
#[test]
fn false_sharing() {
    for entry in durable() {
        let name = entry.card.name;
        let line = |seed: u64| {
            format!(
                "{name} scribble workload.lock_grain=word nested=false txs=60 cores=4 seed={seed}"
            )
        };
        if crate::common::is_line_granular(entry) {
            let shows = |seed| !crash(&line(seed))["violations"].as_array().unwrap().is_empty();
            assert!((1..=10).any(shows), "{name} shares lines falsely and comes to no harm");
        } else {
            all_hold((1..=3).map(line));
        }
    }
}

/// Transactions are aborted among others that are not: nothing of them is ever there, and the
/// others are as if they had not been. A few are aborted, or nearly all, by turns.
#[test]
fn aborted_transactions() {
    let mut lines = Vec::new();
    for (place, entry) in durable().enumerate() {
        for (seed, variant) in (1..).zip(ways_to_abort(entry)) {
            let name = entry.card.name;
            let variant = bounded(name, "scribble", &variant);
            let (aborts, window) = ([30, 90][(place + seed) % 2], window(entry, 2));
            lines.push(format!(
                "{name} scribble seed={seed} workload.words=24 workload.aborts={aborts} {window} \
                 {variant}"
            ));
        }
    }
    all_hold(lines);
}

/// Variants with structures as they are and as small as they go, and in each way of working that
/// the design offers.
fn ways_to_abort(entry: &designs::Entry) -> Vec<String> {
    let small = format!("cores=3 txs=40 nested=false {SMALL_CACHES}");
    let fields = entry.fields.iter().filter(|field| field.name != "log_lines");
    let tight: Vec<String> = fields
        .filter_map(|field| Some(format!("design.{}={}", field.name, field.tight.iter().min()?)))
        .collect();
    let grain = if crate::common::is_line_granular(entry) { "line" } else { "word" };
    let mut ways = vec![
        "cores=1 txs=20".to_owned(),
        "cores=2 txs=20".to_owned(),
        format!("cores=2 txs=20 {SMALL_CACHES}"),
        format!("cores=4 txs=40 nested=false {SMALL_CACHES} {APART}"),
        format!("{small} {}", tight.join(" ")),
        format!("{small} controller.domain=media"),
        format!("{small} controller.domain=eadr"),
        format!("{small} workload.lock_grain={grain}"),
    ];
    for field in entry.fields {
        let choices = field.choices.iter();
        ways.extend(choices.map(|choice| format!("{small} design.{}={choice}", field.name)));
    }
    if entry.migrates {
        ways.push("cores=2 txs=60 nested=false core.migrate=5".to_owned());
    }
    if entry.fields.iter().any(|field| field.name == "write_set") {
        // Transactions have more pages than the hardware holds, so that it aborts in software.
        let pages = "workload.apart=4096 tlb.entries=1 tlb.assoc=1 design.write_set=1";
        ways.push(format!("cores=3 txs=40 nested=false {pages}"));
    }
    ways
}

/// Stores across the ends of lines, and of words that others may store to.
#[test]
fn stores_that_straddle() {
    let mut lines = Vec::new();
    for entry in durable() {
        let grains =
            if crate::common::is_line_granular(entry) { &["line"][..] } else { &["line", "word"] };
        for grain in grains {
            lines.push(format!(
                "{} scribble txs=60 cores=2 nested=false {SMALL_CACHES} workload.straddle=yes \
                 workload.words=24 workload.lock_grain={grain}",
                entry.card.name
            ));
        }
    }
    all_hold(lines);
}

/// The check of the checks: where nothing is promised, something is found.
#[test]
fn designs_that_promise_nothing_are_caught() {
    for name in fragile().map(|entry| entry.card.name) {
        for workload in ["scribble", "hash"] {
            let line = format!(
                "{name} {workload} {} cores=2 nested=false",
                small(workload, "nested=false")
            );
            let found = crash(&line);
            assert!(!found["violations"].as_array().expect("a list").is_empty(), "{line}");
        }
    }
}
