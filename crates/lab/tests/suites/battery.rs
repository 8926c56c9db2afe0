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
