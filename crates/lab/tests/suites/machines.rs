//! The machines: every preset is complete and sourced, files and settings lie over one another as
//! documented, and every mistake is a sentence.

use std::path::PathBuf;

use lab::machines::{self, Machine, canonical, diff, explain, values};
use lab::quantity;
use model::config::{Config, CoreModel, FIELDS, Unit};

fn set(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect()
}

fn load(name: &str, settings: &[(&str, &str)]) -> Machine {
    machines::load(name, &set(settings)).unwrap_or_else(|error| panic!("{error}"))
}

fn error(name: &str, settings: &[(&str, &str)]) -> String {
    let error = machines::load(name, &set(settings)).expect_err("a mistake").to_string();
    assert!(!error.contains('\n'), "{error:?} is more than one line");
    error
}

/// A file of that name in a directory of this test run's own.
fn file(name: &str, text: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = directory.join(name);
    std::fs::write(&path, text).expect("the directory is there");
    path
}

fn load_file(name: &str, text: &str) -> Machine {
    load(&file(name, text).display().to_string(), &[])
}

/// What loading a file says, without the directory.
fn file_error(name: &str, text: &str) -> String {
    let path = file(name, text).display().to_string();
    error(&path, &[]).replace(path.trim_end_matches(name), "")
}

#[test]
fn every_preset_loads_and_has_a_source_for_every_value() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let files = std::fs::read_dir(folder).expect("the presets").map(|file| file.expect("a file"));
    let files = files.filter_map(|file| file.file_name().into_string().ok());
    let mut files: Vec<String> =
        files.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
    files.sort_unstable();
    assert_eq!(
        machines::names(),
        files,
        "PRESETS in crates/lab/src/machines.rs has a line for each file in machines, by name"
    );
    for name in machines::names() {
        let machine = load(name, &[]);
        assert_eq!(machine.name, name);
        assert!(!machine.summary.is_empty(), "{name} has no summary");
        assert_eq!(machine.config.check(), Ok(()));
        for (field, given) in FIELDS.iter().zip(&machine.values) {
            let of = format!("{}.{} of {name}", field.section, field.key);
            assert!(given.source.len() > 3 && given.source != "user", "{of}: {:?}", given.source);
        }
    }
}

#[test]
fn a_value_of_ours_has_a_reason() {
    for name in machines::names() {
        for (field, given) in FIELDS.iter().zip(&load(name, &[]).values) {
            let bare = given.source.trim_end_matches([':', ' ']) == "ours";
            assert!(!bare, "{}.{} of {name} gives no reason", field.section, field.key);
        }
    }
}

#[test]
fn presets_hold_what_the_papers_say() {
    let silo = load("silo", &[]).config;
    assert_eq!(silo.core.cores_max, 8);
    let levels = [silo.l1d.latency, silo.l2.latency, silo.llc.latency];
    assert_eq!(levels.map(|time| silo.cycles(time)), [4, 12, 28]);
    assert_eq!((silo.pm.t_read, silo.pm.t_write), (50_000, 150_000));
    let loc = load("loc", &[]).config;
    assert_eq!((loc.core.model, loc.core.frequency), (CoreModel::InOrder, 1_000_000_000));
    assert_eq!(loc.cycles(loc.pm.t_read), 168);
    let ssp = load("ssp", &[]).config;
    let levels = [ssp.l1d.latency, ssp.l2.latency, ssp.llc.latency];
    assert_eq!(levels.map(|time| ssp.cycles(time)), [4, 6, 27]);
    assert_eq!(ssp.dram.t_hit + ssp.dram.t_rcd + ssp.dram.t_rp, 50_000);
    assert_eq!(ssp.cycles(50_000), 185);
}

/// Returns how long an idle read from the core takes, summed as the model sums it.
fn idle_read(config: &Config, device: u64) -> u64 {
    let controller = &config.controller;
    let way = 2 * (controller.path + controller.link) + controller.frontend + controller.backend;
    config.l1d.latency + config.l2.latency + config.llc.latency + way + device + config.pm.t_burst
}

#[test]
fn measured_machines_are_near_what_was_measured() {
    let optane = load("optane", &[]).config;
    let random = idle_read(&optane, optane.pm.t_read);
    let hit = idle_read(&optane, optane.pm.t_hit);
    let sequential = (random + 3 * hit) / 4;
    assert!(random.abs_diff(305_000) < 5_000, "random read: {random} ps, measured 305 ns");
    assert!(sequential.abs_diff(169_000) < 5_000, "sequential: {sequential} ps, measured 169 ns");
    let write = optane.pm.banks * optane.pm.xpline * 1_000_000 / optane.pm.t_write;
    assert!(write.abs_diff(2_300) < 50, "{write} MB/s a DIMM, measured 2.3 GB/s");
    let cxl = load("cxl", &[]).config;
    let caches = cxl.l1d.latency + cxl.l2.latency + cxl.llc.latency;
    let round_trip = idle_read(&cxl, cxl.pm.t_read) - caches;
    assert!(round_trip.abs_diff(200_000) < 2_000, "{round_trip} ps, the white paper says 200 ns");
}

#[test]
fn every_value_prints_as_it_is_read() {
    for name in machines::names() {
        let machine = load(name, &[]);
        let config = &machine.config;
        for field in FIELDS {
            let value = config.get(field.section, field.key);
            for value in [value, field.default, *field.limits.start(), *field.limits.end()] {
                let text = quantity::print(value, field.unit);
                let read = quantity::parse(&text, field.unit, config.core.frequency);
                assert_eq!(read, Ok(value), "{}.{} of {name}", field.section, field.key);
            }
        }
        let copy = load_file(&format!("copy-of-{name}.toml"), &canonical(config));
        assert_eq!(copy.config, *config);
        assert_eq!(values(&copy.config), values(config));
    }
}

#[test]
fn settings_take_the_place_of_values() {
    let machine = load("silo", &[("controller.wpq", "128"), ("pm.read_latency", "75ns")]);
    assert_eq!((machine.config.controller.wpq, machine.config.pm.t_read), (128, 75_000));
    assert_ne!(values(&machine.config), values(&load("silo", &[]).config));
    let rows = explain(&machine)["rows"].as_array().expect("rows").clone();
    let row = |key: &str| rows.iter().find(|row| row["key"] == key).expect("a row").clone();
    let wpq = row("write_buffer_size");
    assert_eq!((&wpq["value"], &wpq["source"]), (&128.into(), &"user".into()));
    assert_eq!((&wpq["range"], &wpq["unit"]), (&"1 to 4096".into(), &"count".into()));
    assert_eq!(
        (&row("tREAD")["value"], &row("tREAD")["written"]),
        (&"75ns".into(), &"75ns".into())
    );
    assert_eq!(rows.len(), FIELDS.len());
}

#[test]
fn the_order_of_settings_does_not_matter() {
    let settings = [("core.freq", "4GHz"), ("llc.latency", "40cycles"), ("l1d.size", "64KiB")];
    let machine = load("silo", &settings);
    assert_eq!(machine.config.llc.latency, 10_000);
    // The preset's own 12 cycles are of the new frequency, too.
    assert_eq!(machine.config.l2.latency, 3_000);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let other = load("silo", &order.map(|index| settings[index]));
        assert_eq!(other.config, machine.config);
    }
}

#[test]
fn differences_come_with_both_sources() {
    let silo = load("silo", &[]);
    assert_eq!(diff(&silo, &silo)["identical"], true);
    let diff = diff(&silo, &load("silo", &[("pm.tWRITE", "300ns")]));
    assert_eq!(
        (&diff["identical"], &diff["rows"].as_array().map(Vec::len)),
        (&false.into(), &Some(1))
    );
    let row = &diff["rows"][0];
    assert_eq!((&row["left"], &row["right"]), (&"150ns".into(), &"300ns".into()));
    assert_eq!(row["left_source"], "HPCA'23 slides, system table: read/write 50/150 ns");
    assert_eq!(row["right_source"], "user");
}

#[test]
fn the_list_has_a_row_for_each_preset() {
    let rows = machines::rows();
    assert_eq!(rows["rows"].as_array().map(Vec::len), Some(machines::names().len()));
    let mut rows = rows["rows"].as_array().expect("a list").iter();
    let silo = rows.find(|row| row["name"] == "silo").expect("silo");
    assert_eq!(silo["frequency"], "2GHz");
}

#[test]
fn a_file_may_extend_a_preset_or_another_file() {
    let text = "extends = \"silo\"\n[pm]\ntWRITE = \"300ns\"\ncapacity = \"8GB\"\n";
    let machine = load_file("slow.toml", text);
    assert_eq!((machine.name.as_str(), machine.config.pm.t_write), ("slow", 300_000));
    assert_eq!((machine.config.pm.capacity, machine.config.pm.t_read), (8 << 30, 50_000));
    assert_eq!(machine.summary, load("silo", &[]).summary);
    let text = "name = \"slower\"\nextends = \"./slow.toml\"\n\
        [pm]\ntWRITE = { value = \"1us\", source = \"a guess\" }\n";
    let machine = load_file("slower.toml", text);
    assert_eq!((machine.name.as_str(), machine.config.pm.t_write), ("slower", 1_000_000));
    assert_eq!(machine.config.pm.capacity, 8 << 30);
    let source = |key: &str| {
        let index = FIELDS.iter().position(|field| (field.section, field.key) == ("pm", key));
        machine.values[index.expect("a parameter")].source.clone()
    };
    assert_eq!((source("tWRITE").as_str(), source("device_size").as_str()), ("a guess", "user"));
    let numbers =
        load_file("numbers.toml", "[controller]\nwpq = 0x40\n[workload]\nitems = 1_000\n");
    assert_eq!((numbers.config.controller.wpq, numbers.config.workload.items), (64, 1_000));
}

#[test]
fn aliases_name_the_same_parameter() {
    for field in FIELDS {
        for alias in field.aliases {
            let value = quantity::print(field.default, field.unit);
            let path = format!("{}.{alias}", field.section);
            let machine = load("silo", &[(&path, &value)]);
            let read = machine.config.get(field.section, field.key);
            assert_eq!(read, field.default, "{path}");
        }
    }
}

#[test]
fn names_and_aliases_are_not_ambiguous() {
    for section in FIELDS.iter().map(|field| field.section) {
        let fields = || FIELDS.iter().filter(|field| field.section == section);
        let mut names: Vec<&str> =
            fields().flat_map(|field| field.aliases.iter().copied().chain([field.key])).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{section}");
    }
    let frequencies = FIELDS.iter().filter(|field| field.unit == Unit::Frequency).count();
    assert_eq!(frequencies, 1, "cycles are of one frequency");
}

/// A setting, its value, and how the error begins.
const SETTING_MISTAKES: &[(&str, &str, &str)] = &[
    (
        "pm.tREAD",
        "50",
        "pm.tREAD: `50` lacks its unit; write a time in ps, ns, us, ms, s or cycles, such as \
            \"50ns\"",
    ),
    (
        "pm.capacity",
        "4",
        "pm.device_size (capacity): `4` lacks its unit; write a size in B, KiB, MiB, GiB or TiB, such as \
            \"64KiB\"",
    ),
    (
        "controller.wpq",
        "64B",
        "controller.write_buffer_size (wpq): `64B` has a unit, but this counts things; write 64",
    ),
    (
        "controller.wpq",
        "0",
        "controller.write_buffer_size (wpq): `0` is out of range; it takes 1 to 4096",
    ),
    (
        "controller.wpq",
        "99999999999999999999999",
        "controller.write_buffer_size (wpq): `99999999999999999999999` is out of range; it takes 1 \
            to 4096",
    ),
    ("pm.tREAD", "1s", "pm.tREAD: `1s` is out of range; it takes 1ps to 100us"),
    (
        "core.clock",
        "1Hz",
        "core.clk_domain (clock): `1Hz` is out of range; it takes 100MHz to 10GHz",
    ),
    (
        "controller.HighWaterMark",
        "32",
        "controller.write_high_thresh_perc (HighWaterMark): `32` lacks its unit; write a share in %, such as \
            \"85%\"",
    ),
    (
        "controller.write_high_thresh_perc",
        "140%",
        "controller.write_high_thresh_perc: `140%` is out of range; it takes 1% to 100%",
    ),
    (
        "controller.domain",
        "adrr",
        "controller.domain: unknown choice `adrr`; did you mean `adr`? there are: adr, eadr, \
            media, gpf",
    ),
    (
        "l1d.assoc",
        "3",
        "machine silo: l1d.assoc: 3 ways do not divide 32768 bytes of 64-byte lines; 2 and 4 do",
    ),
    (
        "l2.size",
        "16KiB",
        "machine silo: l2.size: 16384 bytes are less than the 32768 of l1d.size, which it includes",
    ),
    (
        "l2.size",
        "16MiB",
        "machine silo: llc.size: 8388608 bytes are less than the 16777216 of l2.size, which it \
            includes",
    ),
    (
        "tlb.l2_entries",
        "8",
        "machine silo: tlb.l2_entries: 8 is less than the 64 of tlb.entries, which the second \
            level includes",
    ),
    (
        "l1d.size",
        "100B",
        "machine silo: l1d.size: 100 bytes are no whole lines of 64; 64 and 128 are",
    ),
    (
        "pm.tREED",
        "50ns",
        "unknown parameter `tREED` of pm; did you mean `tREAD`? there are: tREAD, ",
    ),
    (
        "controller.wqp",
        "4",
        "unknown parameter `wqp` of controller; did you mean `write_buffer_size` (wpq)? there \
            are: ",
    ),
    ("pm.size", "1MiB", "unknown parameter `size` of pm; did you mean `device_size`? there are: "),
    (
        "pm.latency",
        "75ns",
        "unknown parameter `latency` of pm; did you mean `tREAD` (read_latency)? there are: ",
    ),
    ("core.tREAD", "50ns", "`tREAD` is a parameter of pm, not of core; write pm.tREAD"),
    (
        "controler.wpq",
        "4",
        "unknown section `controler`; did you mean `controller`? there are: controller, ",
    ),
];

#[test]
fn mistakes_in_settings_are_explained() {
    for (path, value, expect) in SETTING_MISTAKES {
        let error = error("silo", &[(path, value)]);
        assert!(error.starts_with(expect), "{error}\nis not\n{expect}");
    }
    assert_eq!(
        error("silo", &[("controller.wpq", "4"), ("controller.write_buffer_size", "4")]),
        "controller.write_buffer_size is set twice; keep one"
    );
}

#[test]
fn an_unknown_machine_is_explained() {
    let sentence = error("sillo", &[]);
    let start = "unknown machine `sillo`; did you mean `silo`? there are: silo, ";
    assert!(sentence.starts_with(start), "{sentence}");
    assert!(sentence.ends_with(", or the path of a TOML file"), "{sentence}");
    assert!(machines::names().iter().all(|name| sentence.contains(name)), "{sentence}");
    let error = error("./no/such.toml", &[]);
    let expect = "machine file ./no/such.toml: No such file or directory";
    assert!(error.starts_with(expect), "{error}");
}

/// A file named bad.toml, and how the error begins.
const FILE_MISTAKES: &[(&str, &str)] = &[
    ("[pm]\ntREAD = 50", "bad.toml:2: pm.tREAD: `50` lacks its unit; "),
    ("[pm]\ntREAD = 50.5", "bad.toml:2: pm.tREAD: `50.5` lacks its unit; "),
    (
        "\n\n[pm]\ntREAD = { value = \"0ns\" }",
        "bad.toml:4: pm.tREAD: `0ns` is out of range; it takes 1ps to 100us",
    ),
    (
        "[controller]\nwpq = \"64B\"",
        "bad.toml:2: controller.write_buffer_size (wpq): `64B` has a unit, ",
    ),
    (
        "[controller]\nwpq = -1",
        "bad.toml:2: controller.write_buffer_size (wpq): `-1` is out of range; it takes 1 to 4096",
    ),
    (
        "[controller]\nwpq = true",
        "bad.toml:2: controller.write_buffer_size (wpq): `true` is not a whole number; ",
    ),
    (
        "[controller]\nwpq = [4]",
        "bad.toml:2: controller.wpq: a value must be a string or a number, not array",
    ),
    (
        "[pm]\ntREED = \"50ns\"",
        "bad.toml:2: unknown parameter `tREED` of pm; did you mean `tREAD`? ",
    ),
    (
        "[pn]\ntREAD = \"50ns\"",
        "bad.toml:2: unknown section `pn`; did you mean `pm`? there are: pm, ",
    ),
    ("wpq = 4", "bad.toml:1: `wpq` is outside of a section; put it into one, such as [controller]"),
    ("name = 4", "bad.toml:1: name: write a string in quotes"),
    (
        "[pm]\ntREAD = { val = \"50ns\" }",
        "bad.toml:2: pm.tREAD: unknown key `val`; did you mean `value`? there are: value, \
            source",
    ),
    (
        "[pm]\ntREAD = { source = \"me\" }",
        "bad.toml:2: pm.tREAD: `value` is missing; write { value = ",
    ),
    (
        "[controller]\nwpq = 4\nwrite_buffer_size = 4",
        "bad.toml:3: controller.write_buffer_size is set twice; keep one",
    ),
    ("[controller]\nwpq = 4\nwpq = 4", "bad.toml:3: duplicate key"),
    ("[pm]\ntREAD = ", "bad.toml:2: "),
    ("[pm\n", "bad.toml:1: "),
    (
        "extends = \"sillo\"",
        "bad.toml:1: extends: unknown machine `sillo`; did you mean `silo`? there are: ",
    ),
    (
        "extends = \"bad.toml\"",
        "bad.toml:1: extends: bad.toml: extends itself; name another machine",
    ),
    (
        "[controller]\nwpq = { value = 4, source = 5 }",
        "bad.toml:2: controller.wpq: `source` must be text, not integer",
    ),
    ("name = \"\"", "bad.toml:1: name: write one line of text"),
    ("\nsummary = \"a\\nb\"", "bad.toml:2: summary: write one line of text"),
    (
        "[llc]\nassoc = 7",
        "machine bad: llc.assoc: 7 ways do not divide 8388608 bytes of 64-byte lines; 4 and 8 do",
    ),
];

#[test]
fn mistakes_in_files_are_explained_with_their_line() {
    for (text, expect) in FILE_MISTAKES {
        let error = file_error("bad.toml", text);
        assert!(error.starts_with(expect), "{error}\nis not\n{expect}");
    }
}

#[test]
fn a_file_that_extends_itself_by_way_of_another_folder_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, other) in [("a", "b"), ("b", "a")] {
        std::fs::create_dir(folder.path().join(name)).expect("room");
        let text = format!("extends = \"../{other}/m.toml\"\n");
        std::fs::write(folder.path().join(name).join("m.toml"), text).expect("room");
    }
    let error = error(&folder.path().join("a/m.toml").display().to_string(), &[]);
    assert!(error.ends_with("a/m.toml: extends itself; name another machine"), "{error}");
    assert!(error.len() < 1000, "{error}");
}

#[test]
fn a_file_that_extends_itself_is_called_by_its_plain_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.toml");
    std::fs::write(&path, "extends = \"./m.toml\"\n").expect("room");
    let error = error(&path.display().to_string(), &[]);
    assert!(error.ends_with("/m.toml: extends itself; name another machine"), "{error}");
    assert!(!error.contains("/./"), "{error}");
}

/// Some workloads have fewer items than a machine says, as the program that they stand for has, but
/// not fewer than the user says.
#[test]
fn as_many_items_as_the_user_asks_for() {
    for (workload, usual, many) in
        [("echo", 10_000, 14_000), ("memcached", 10_000, 14_000), ("hashmap", 102_400, 130_000)]
    {
        let cycles = |items: u64| {
            let line = format!(
                "native {workload} machine=silo cores=1 txs=200 workload.items={items} \
                 workload.value=64"
            );
            crate::common::run(&line)["cycles"].clone()
        };
        assert_ne!(cycles(usual), cycles(many), "{workload}");
    }
}

#[test]
fn a_copy_of_a_preset_is_not_called_what_the_preset_is() {
    let path = std::env::temp_dir().join(format!("indelible-copy-{}.toml", std::process::id()));
    std::fs::write(&path, "name = \"silo\"\nextends = \"silo\"\n[pm]\ntWRITE = \"1500ns\"\n")
        .expect("a file");
    let path = path.to_str().expect("a name");
    let machine = machines::load(path, &[]).expect("a machine");
    assert_eq!(machine.name, format!("silo ({path})"));
    assert_eq!(machines::load("silo", &[]).expect("a preset").name, "silo");
    std::fs::remove_file(path).expect("the file");
}
