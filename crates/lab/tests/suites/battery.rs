//! The battery table: from each design's own declaration, beside what was published.

use model::config::Config;
use model::design::{Location, Shape};
use serde_json::Value;

fn ask(names: &[&str], machine: &str, cores: Option<u64>, settings: &[(&str, &str)]) -> Value {
    try_ask(names, machine, cores, settings).unwrap_or_else(|error| panic!("{error}"))
}

fn try_ask(
    names: &[&str],
    machine: &str,
    cores: Option<u64>,
    settings: &[(&str, &str)],
) -> Result<Value, String> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let own = |text: &str| text.to_owned();
    let settings: Vec<_> = settings.iter().map(|&(key, value)| (own(key), own(value))).collect();
    let answer = lab::battery(&names, machine, cores, &settings).map_err(|error| error.text)?;
    Ok(serde_json::from_str(&answer).expect("an answer is JSON"))
}

fn rows<'a>(answer: &'a Value, source: &str) -> Vec<&'a Value> {
    let rows = answer["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["source"].as_str().unwrap().starts_with(source)).collect()
}

#[test]
fn every_design_that_declares_a_battery_has_a_row() {
    let answer = ask(&[], "silo", None, &[]);
    let mut named: Vec<&str> =
        rows(&answer, "computed").iter().filter_map(|row| row["design"].as_str()).collect();
    named.extend(answer["without"].as_array().expect("names").iter().filter_map(Value::as_str));
    named.sort_unstable();
    let mut all: Vec<&str> = designs::ALL.iter().map(|entry| entry.card.name).collect();
    all.sort_unstable();
    assert_eq!(named, all);
    for row in rows(&answer, "computed") {
        let cell = |name: &str| row[name].as_f64().expect("a number");
        assert!(cell("flush_kb") > 0.0 && cell("energy_uj") > 0.0, "{row}");
        assert!((cell("supercap_mm3") / cell("li_mm3") - 100.0).abs() < 1e-6, "{row}");
        assert!((cell("supercap_mm2").powi(3) / cell("supercap_mm3").powi(2) - 1.0).abs() < 1e-9);
    }
}

#[test]
fn published_rows_stand_beside_what_they_are_about() {
    let published = |names: &[&str], machine: &str, cores, settings: &[(&str, &str)]| {
        let answer = ask(names, machine, cores, settings);
        let found = rows(&answer, "HPCA'23");
        found.iter().map(|row| row["design"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut all = published(&[], "silo", Some(8), &[]);
    all.sort_unstable();
    assert_eq!(all, ["silo", "undo@bbb", "undo@eadr"]);
    assert_eq!(published(&["silo", "undo@x86"], "silo", None, &[]), ["silo"]);
    assert!(published(&[], "silo", Some(4), &[]).is_empty());
    assert!(published(&[], "optane", None, &[]).is_empty());
    assert!(published(&["silo"], "silo", None, &[("design.entries", "40")]).is_empty());
}

/// What a design must save does not depend on whose energy saves it.
#[test]
fn what_adr_keeps_is_saved_and_in_no_battery() {
    let answer = ask(&["silo", "lad", "undo@bbb", "native"], "silo", Some(8), &[]);
    let saved = answer["saved"].as_array().expect("rows");
    let bytes = |name: &str| {
        let row = saved.iter().find(|row| row["design"] == name).expect("a row");
        assert_eq!(row["energy_uj"].as_f64() > Some(0.0), row["bytes"] != 0, "{row}");
        row["bytes"].as_u64().expect("bytes")
    };
    let battery = |name: &str| {
        let row = rows(&answer, "computed").into_iter().find(|row| row["design"] == name);
        row.map_or(0.0, |row| row["flush_kb"].as_f64().expect("KB") * 1024.0)
    };
    assert!(bytes("silo") as f64 > battery("silo"), "its head and tail are kept by ADR");
    assert_eq!((bytes("lad") > 0, battery("lad")), (true, 0.0));
    assert_eq!(bytes("undo@bbb") as f64, battery("undo@bbb"));
    assert_eq!(bytes("native"), 0);
}

#[test]
fn a_battery_grows_with_what_it_keeps() {
    let kb = |name: &str, cores, settings: &[(&str, &str)]| {
        ask(&[name], "silo", Some(cores), settings)["rows"][0]["flush_kb"].as_f64().expect("KB")
    };
    assert_eq!(kb("silo", 8, &[]) * 1024.0, 8.0 * 680.0);
    assert_eq!(kb("silo", 1, &[]) * 1024.0, 680.0);
    assert_eq!(kb("silo", 8, &[("design.entries", "40")]), 2.0 * kb("silo", 8, &[]));
    assert_eq!(kb("undo@eadr", 8, &[]), 10_496.0);
    assert_eq!(kb("undo@eadr", 4, &[("llc.size", "1MiB")]), 4.0 * (32.0 + 256.0) + 1_024.0);
    let energy = |settings: &[(&str, &str)]| {
        let answer = ask(&["undo@eadr"], "silo", None, settings);
        answer["rows"][0]["energy_uj"].as_f64().expect("an energy")
    };
    let half = energy(&[("energy.dirty_share", "45%")]) * 2.0;
    assert!((energy(&[("energy.dirty_share", "90%")]) / half - 1.0).abs() < 1e-12);
}

/// Persist buffers are beside the first level, and a store that waits for room is in front of it.
#[test]
fn what_is_at_a_core_passes_every_level() {
    let energy = Config::default().energy;
    for domain in ["eadr", "gpf"] {
        let names = ["hops", "undo@hops", "undo@dpo", "undo@bbb"];
        let answer = ask(&names, "silo", Some(8), &[("controller.domain", domain)]);
        for row in rows(&answer, "computed") {
            let cell = |name: &str| row[name].as_f64().expect("a number");
            // DPO also has a queue of 32 lines with their addresses at the controller.
            let far = if row["design"] == "undo@dpo" { 32.0 * (64.0 + 58.0 / 8.0) } else { 0.0 };
            let near = 1024.0 * cell("flush_kb") - far;
            let femtojoules = near * energy.drain_l1 as f64 + far * energy.drain_llc as f64;
            assert!((cell("energy_uj") / (femtojoules / 1e9) - 1.0).abs() < 1e-12, "{row}");
        }
    }
}

/// A script says where a structure is by a name alone.
#[test]
fn a_name_says_where_a_structure_is() {
    let shape = Shape::new(&Config::default(), 4);
    for entry in designs::ALL {
        for structure in (entry.hardware)(&[], &shape) {
            let location = structure.location;
            assert_eq!(Location::named(location.name()), location, "{structure:?}");
        }
    }
}

/// What is in a core or at its first level is there as often as there are cores, at the least. A
/// forced write-back has a bit for each line of each cache.
#[test]
fn what_is_at_a_core_is_declared_for_each_core() {
    let config = Config::default();
    for entry in designs::ALL.iter().chain(designs::ORDERS) {
        let declared = |cores: u8| (entry.hardware)(&[], &Shape::new(&config, cores));
        let (one, four) = (declared(1), declared(4));
        for structure in four.iter().filter(|own| matches!(own.location, Location::AtCore(_))) {
            let alone = one.iter().find(|other| other.name == structure.name);
            let alone = alone.map_or(0, |alone| alone.bits * alone.count);
            let name = entry.card.name;
            assert!(structure.bits * structure.count >= 4 * alone, "{name}: {structure:?}");
        }
        if let Some(bits) = four.iter().find(|structure| structure.name == "fwb bit") {
            let bytes = 4 * (config.l1d.size + config.l2.size) + config.llc.size;
            assert_eq!(bits.count * bits.bits, bytes / 64, "{}", entry.card.name);
        }
    }
}

#[test]
fn explain_shows_the_same_structures() {
    let about: Value =
        serde_json::from_str(&lab::explain("undo@eadr", &[], None, None).expect("an answer"))
            .expect("JSON");
    let kept = about["hardware"].as_array().expect("structures");
    assert!(kept.iter().all(|structure| structure["domain"] == "eadr"), "{kept:?}");
    let bytes: u64 = kept.iter().filter_map(|structure| structure["bytes"].as_u64()).sum();
    let answer = ask(&["undo@eadr"], "silo", None, &[]);
    assert_eq!(answer["rows"][0]["flush_kb"].as_f64(), Some(bytes as f64 / 1024.0));
}

#[test]
fn a_mistake_is_one_sentence() {
    let error = |names: &[&str], machine, cores, settings: &[(&str, &str)]| {
        try_ask(names, machine, cores, settings).expect_err("a mistake")
    };
    assert!(error(&["sillo"], "silo", None, &[]).starts_with("unknown design `sillo`; did you"));
    assert!(error(&[], "sillo", None, &[]).starts_with("unknown machine `sillo`; did you mean"));
    let told = error(&[], "silo", Some(9), &[]);
    assert_eq!(told, "cores is 9; machine silo takes 1 to 8 (core.cores_max)");
    let told = error(&["undo@x86"], "silo", None, &[("design.entries", "4")]);
    assert!(told.starts_with("unknown parameter `entries` of design undo@x86; "), "{told}");
    let told = error(&[], "silo", None, &[("workload.value", "8")]);
    assert_eq!(told, "no workload is run, so workload.value changes nothing");
    let told = error(&[], "silo", None, &[("energy.supercap_density", "1J")]);
    assert!(told.contains("`J` is not a unit of energy density; write an energy density in uWh"));
}

/// Bits of an entry and how many entries there are, of each structure of a design.
type Declared = Vec<(u64, u64)>;

/// Bits of a word, and of a line.
const WORD: u64 = 64;
const LINE: u64 = 512;

/// Lines of the private levels of two cores of the machine `tiny`, which are of 2 and of 4 lines,
/// and of all caches: the last level has 16.
const PRIVATE: u64 = 2 * (2 + 4);
const CACHED: u64 = PRIVATE + 16;

/// Checks what designs declare for two cores of the machine `tiny`, in any order.
fn declare(expected: &[(&str, Declared)]) {
    for (name, expected) in expected {
        let own = if *name == "lad" { "design.undo_entries=10" } else { "" };
        let resolved = crate::common::resolve(&format!("{name} scribble cores=2 {own}"));
        let shape = Shape::new(&resolved.machine.config, 2);
        let structures = (resolved.design.hardware)(&resolved.design_settings, &shape);
        let mut found: Declared = structures.iter().map(|one| (one.bits, one.count)).collect();
        let mut expected = expected.clone();
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{name}: {structures:#?}");
    }
}

/// A line of a log buffer, and a record of each core, and one more, on their way there. Entries of
/// MorLog have 32 and 18 bytes; each core has one more of the first for a store that waits, and
/// with delay-persistence one more of the second.
#[test]
fn logs_in_hardware_declare_what_they_keep() {
    // Head and tail; the number of a transaction and of a thread.
    let registers = [(2 * 64, 1), (16, 2), (8, 2)];
    let with = |own: &[(u64, u64)]| [own, &registers].concat();
    let entries = (32 * 8, 2 * (16 + 1));
    // Of each line of a first level: thread and transaction, states and dirty flags.
    let tags = [(8 + 16, 4), (8 * 2, 4), (8 * 8, 4), (1, CACHED)];
    let morlog = |redo| [vec![entries, (18 * 8, redo)], tags.to_vec(), registers.to_vec()].concat();
    declare(&[
        ("base", with(&[(LINE, 4), (LINE, 2 + 1)])),
        ("fwb", with(&[(LINE, 15), (LINE, 2 + 1), (1, CACHED)])),
        ("morlog", morlog(2 * 32)),
        ("morlog-dp", morlog(2 * (32 + 1))),
        ("silo", vec![(34 * 8, 2 * 20), (16 * 8, 2), (64, 2 * 20), (16, 2), (8, 2)]),
        ("undo-log", vec![(42, 2 * 64), (2 * 48, 2)]),
        // A line of the buffer has its address and its words; a line that was dropped, of which the
        // logs of 1,024 lines may have as many, also the place of each word.
        (
            "redo-log",
            vec![(42 + 8 + LINE, 2 * 64), (1, 4), (4 * 48, 2), (36 + 8 * (1 + 32), 2 * 1024)],
        ),
    ]);
}

/// A queue of LAD has 4 entries of a line, its address, thread, number and a bit, and a register
/// for one more; 256 threads, and here 10 undo entries.
#[test]
fn lad_declares_what_it_keeps() {
    let entry = LINE + 40 + 8 + 16 + 1;
    let at_controllers = vec![(entry, 4), (entry, 1), (16, 256), (1, 10), (8, 10)];
    declare(&[("lad", [at_controllers, vec![(1, 2 * 2), (16, 2), (16, 2)]].concat())]);
}

/// A line of a last level that survives has its bytes, its address, and its TxID with its age. As
/// many may have left it as wait at the controller (4 and 2) and as there are misses (2 a core, and
/// one more).
#[test]
fn last_levels_that_survive_declare_what_they_keep() {
    let (held, leaving) = (LINE + 2 * WORD, 4 + 2 + 2 * (2 + 1));
    // 64 TxIDs are of 6 bits, and a state is of 2; a FIFO has the places of lines. An entry of the
    // overflow table has three words.
    let kiln = vec![
        (held, 16),
        (held, leaving),
        (2, 64),
        (3 * WORD, 1024),
        (3 * WORD, 1),
        (6 + 2, PRIVATE),
        (6 + 16, PRIVATE),
    ];
    // The 32 transactions in both windows are told apart from those before them by 6 bits. Each may
    // have a pair with each, a TxCnt and one more. The overflow area has the 2,048 lines of logs.
    let loc_kiln = vec![
        (held, 16),
        (held, 4096),
        (held, leaving),
        (WORD, 32 * (32 + 2)),
        (3 * WORD, 2048),
        (5 * WORD, 1),
        (6 + 1, PRIVATE),
        (LOC_ENTRY, 32),
    ];
    declare(&[("kiln", kiln), ("loc-kiln", loc_kiln)]);
}

/// What LOC's windows of 16 keep of a transaction: TxID, state, TxCnt and writes, and of each of 31
/// others how many blocks it absorbed and whether it carries the TxCnt.
const LOC_ENTRY: u64 = 16 + 2 + 18 + 18 + 31 * (18 + 1);

/// 2,047 lines of log beside the head are 255 groups of seven blocks and their metadata, and the
/// table has a line's number and a slot for each block. Metadata are kept of the open group, of 16
/// writes under way and, with records, of one for each core.
#[test]
fn write_ahead_logs_declare_what_they_keep() {
    let wal = |id: u64, entry: (u64, u64), groups: u64| {
        vec![(id + 1, CACHED), entry, (36 + 32, 255 * 7), (LINE, groups), (32, 1)]
    };
    let alone = (16 + 2 + 18 + 18, 2);
    declare(&[
        ("h-wal", wal(2, alone, 1 + 16 + 2)),
        ("ec-wal", wal(2, alone, 1 + 16)),
        ("loc-wal", wal(6, (LOC_ENTRY, 32), 1 + 16)),
    ]);
}

/// Buffers of 32 entries beside each core, with a store that waits for room. An address is of 58
/// bits, an epoch or the number of an entry of 64, and with its core of 72.
#[test]
fn persist_buffers_declare_what_they_keep() {
    let (entries, id) = (2 * 32, 8 + 64);
    // A dependence on the other core for each entry, and for the epoch that is open; the registers
    // and vectors of timestamps; the filter for buffered lines, and the last writer of each line.
    let hops = vec![
        (LINE, entries),
        (58 + 64, entries),
        (LINE + 58 + 64, 2),
        (64, entries),
        (id, entries + 2),
        (64, 2),
        (2 * 64, 2),
        (64, 2),
        (58, entries),
        (2, 16),
    ];
    // An entry has a type, Y and a number, a dependence on each core, and a filter. So has AccumDP
    // dependences, and each core knows what each has drained. The queue is of 32 entries, too.
    let dpo = vec![
        (LINE + 58, entries),
        (LINE + 58, 2),
        (LINE + 58, 32),
        (1 + 1 + 64, entries),
        (id, entries * 2),
        (512, entries),
        (id, 2 * 2),
        (64, 2 * 2),
        (1 + id, 32),
    ];
    let bbb = vec![((64 + 8) * 8, entries), ((64 + 8) * 8, 2)];
    declare(&[("undo@hops", hops), ("undo@dpo", dpo), ("undo@bbb", bbb)]);
}
