//! Less energy at a power failure than a design declares to need (`controller.battery_perc`): as
//! many whole words as it is enough for are saved, recovery gets along with what is there, and the
//! oracle sees what is missing.

use serde_json::Value;

use crate::common::{all_hold, crash, durable, tight, violations};

/// A campaign on structures as small as they can be, with a share of the energy.
fn line(entry: &designs::Entry, domain: &str, percent: u64) -> String {
    let name = entry.card.name;
    format!(
        "{name} scribble cores=2 txs=60 nested=false controller.domain={domain} \
         controller.battery_perc={percent}%{}",
        tight(entry)
    )
}

fn number(answer: &Value, field: &str) -> u64 {
    answer[field].as_u64().unwrap_or_else(|| panic!("`{field}` of {answer}"))
}

/// Designs, each in a domain, that are wrong if no energy is left. The others do not show that
/// here: `base` and `undo-log` hold a line back until its record is in memory, `kiln` and
/// `loc-kiln` have cells that need no energy, and the rest saves nothing here.
const NEED_IT: &[(&str, &str)] = &[
    ("count@bbb", "adr"),
    ("fwb", "eadr"),
    ("hops", "eadr"),
    ("lad", "adr"),
    ("morlog", "eadr"),
    ("morlog-dp", "eadr"),
    ("redo@bbb", "adr"),
    ("silo", "adr"),
    ("silo", "eadr"),
    ("undo@bbb", "adr"),
];

#[test]
fn what_a_power_failure_takes_is_enough_and_nothing_is_not() {
    for entry in durable() {
        for domain in ["adr", "eadr"] {
            let whole = crash(&line(entry, domain, 100));
            let [most, declared] =
                ["saved_bytes_max", "declared_bytes"].map(|of| number(&whole, of));
            assert_eq!(number(&whole, "energy_bytes"), declared);
            if most == 0 || entry.card.name.contains("kiln") {
                continue;
            }
            let percent = (100 * most).div_ceil(declared);
            let enough = line(entry, domain, percent);
            let answer = crash(&enough);
            assert_eq!(violations(&enough, &answer), "");
            assert_eq!(number(&answer, "energy_ended"), 0, "{enough}");
            assert_eq!(number(&answer, "energy_bytes"), declared * percent / 100, "{enough}");

            let nothing = line(entry, domain, 0);
            let answer = crash(&nothing);
            assert_ne!(number(&answer, "energy_ended"), 0, "{nothing}");
            assert_eq!(number(&answer, "saved_bytes_max"), 0, "{nothing}");
            if NEED_IT.contains(&(entry.card.name, domain)) {
                assert_ne!(violations(&nothing, &answer), "", "{nothing}");
            }
        }
    }
}

/// A last level that keeps its cells keeps what left it until memory has it, however long the ways
/// are in a campaign that makes them vary.
#[test]
fn lines_on_ways_that_vary_are_declared() {
    let machine = "nested=false controller.arrival_jitter=20000cycles pm.tREAD=1ns pm.tWRITE=1ns \
                   pm.banks_per_rank=1 controller.write_buffer_size=1";
    all_hold([
        format!(
            "kiln vacation cores=1 txs=10 {machine} llc.size=256B l2.size=128B l1d.size=128B \
             controller.domain=media core.model=inorder design.write_out=never \
             design.overflow_lines=8"
        ),
        format!(
            "kiln hash cores=2 txs=60 {machine} llc.size=1KiB l2.size=512B l1d.size=256B \
             core.model=inorder design.overflow_lines=3"
        ),
    ]);
}

#[test]
fn cells_need_no_energy() {
    for entry in durable().filter(|entry| entry.card.name.contains("kiln")) {
        let line = line(entry, "adr", 0);
        let answer = crash(&line);
        assert_eq!(violations(&line, &answer), "");
        assert_eq!(answer["energy_bytes"], answer["declared_bytes"]);
        assert_ne!(answer["saved_bytes_max"], 0);
    }
}

/// Energy for every cache is enough for what has just left the caches and waits for memory.
#[test]
fn energy_for_every_cache_saves_what_has_left_them_too() {
    let line = "undo@eadr scribble cores=1 txs=60 nested=false controller.domain=eadr \
                controller.flush_bytes=1408B controller.write_buffer_size=1 \
                controller.writeback_buffer_size=4096 pm.tWRITE=3us pm.xpbuffer_entries=0";
    all_hold(vec![line.to_owned()]);
    let less = line.replace("1408B", "1344B");
    assert_ne!(violations(&less, &crash(&less)), "", "with less, what has left takes some of it");
}
