//! YCSB's property files: what they set, and what is refused in them.

use std::collections::BTreeSet;

use crate::common::{Bench, entry, site};
use crate::traffic::{mean, watch};
use model::script::Script;
use model::workload::{Site, Stop};
use workloads::properties::{Distribution, Properties};

fn with_script(text: &str) -> Site {
    Site { script: Some(Script::new("mix", text)), ..site(2, 500) }
}

#[test]
fn a_property_file_sets_the_mix() {
    let reads = watch("ycsb", "", &with_script("readproportion=1\nupdateproportion=0"), 100);
    assert!(reads.iter().all(|seen| seen.stores == 0 && seen.loads > 100));
    let text = "readproportion=0\nupdateproportion=0\nreadmodifywriteproportion=1\n\
                readallfields=false\nfieldlength=64\nrequestdistribution=latest";
    let both = watch("ycsb", "", &with_script(text), 100);
    assert!(both.iter().all(|seen| seen.stores == 8 && (8..40).contains(&seen.loads)));
    let text = "readproportion=0\nupdateproportion=0.0\nscanproportion=1\nmaxscanlength=9\n\
                fieldcount=1\nfieldlength=8\nrequestdistribution=zipfian";
    for sharing in ["", "shared=shared"] {
        let scans = watch("ycsb", sharing, &with_script(text), 300);
        let loads = mean(&scans, |seen| seen.loads);
        assert!((15.0..40.0).contains(&loads), "{loads} loads for 5 records");
        let longest =
            watch("ycsb", sharing, &with_script(&format!("{text}\nminscanlength=9")), 300);
        let ratio = mean(&longest, |seen| seen.loads) / loads;
        assert!((1.5..2.0).contains(&ratio), "{ratio} times as many for 9");
    }
}

/// As in YCSB. A field is 80 words, behind the record's key or behind that and the other field.
#[test]
fn a_scan_reads_one_field_of_all_its_records() {
    let text = "readproportion=0\nupdateproportion=0\nscanproportion=1\nminscanlength=5\n\
                maxscanlength=5\nreadallfields=false\nfieldcount=2\nfieldlength=640";
    let mut both = BTreeSet::new();
    for seen in watch("ycsb", "", &with_script(text), 100) {
        let touched = &seen.touched;
        let is_field = |word: u64| (word..word + 80).all(|word| touched.contains(&word));
        let pairs = touched.iter().zip(touched.iter().skip(1));
        let fields = pairs.filter_map(|(before, word)| match word - before {
            2 | 3 if is_field(*word) => Some(0),
            82 | 83 if is_field(*word) => Some(1),
            _ => None,
        });
        let fields: BTreeSet<u64> = fields.collect();
        assert_eq!(fields.len(), 1, "fields {fields:?} of one scan");
        both.extend(fields);
    }
    assert_eq!(both.len(), 2);
}

/// As in YCSB, proportions need not add up to 1.
#[test]
fn proportions_are_weights() {
    let mix = |read: &str, update: &str| {
        let text = format!("readproportion={read}\nupdateproportion={update}");
        let seen = watch("ycsb", "", &with_script(&text), 400);
        seen.iter().map(|seen| (seen.loads, seen.stores)).collect::<Vec<_>>()
    };
    let shares = mix("0.75", "0.25");
    let updates = shares.iter().filter(|(_, stores)| *stores > 0).count();
    assert!((70..130).contains(&updates), "{updates} updates of 400 operations");
    for (read, update) in [("75", "25"), ("3", "1"), ("0.375", "0.125")] {
        assert!(mix(read, update) == shares, "{read} and {update}");
    }
}

#[test]
fn inserted_records_are_found() {
    for distribution in ["uniform", "zipfian", "latest"] {
        for sharing in ["", "shared=shared"] {
            let text = format!(
                "recordcount=50\noperationcount=2000\nreadproportion=0.5\nupdateproportion=0\n\
                 insertproportion=0.5\nrequestdistribution={distribution}"
            );
            let mut bench =
                Bench::new(entry("ycsb"), sharing, &with_script(&text)).expect("a bench");
            bench.run(1_000).expect("every record that is chosen is there");
            bench.check().expect("sound");
        }
    }
}

#[test]
fn a_torn_or_lost_record_is_told() {
    let site = Site { heap: 4096..1 << 20, ..site(1, 60) };
    let bench = Bench::new(entry("ycsb"), "", &site).expect("a bench");
    let mut told = BTreeSet::new();
    for word in 512..(80 << 10) / 8 {
        let mut image = model::image::Image::over(&bench.view.pm);
        let word = model::units::Word(word);
        image.set_word(word, image.word(word) ^ 1 << 33).expect("power");
        if let Err(error) = bench.workload.check(&image) {
            let words = error.split(' ').filter(|word| !word.contains(|c: char| c.is_numeric()));
            told.insert(words.collect::<Vec<_>>().join(" "));
        }
    }
    for text in ["torn", "says it has", "is in bucket", "no place in"] {
        assert!(told.iter().any(|error| error.contains(text)), "nothing says `{text}`: {told:?}");
    }
}

/// The check detects a missing part also where a field has no room for a stamp.
#[test]
fn a_missing_part_of_short_fields_is_told() {
    for length in [1_u64, 3, 7] {
        let text = format!("recordcount=60\nfieldlength={length}\nupdateproportion=0.5");
        let site = Site { cores: 1, heap: 4096..1 << 20, ..with_script(&text) };
        let mut bench = Bench::new(entry("ycsb"), "", &site).expect("a bench");
        bench.run(500).expect("transactions");
        bench.check().expect("sound");
        let mut told = 0;
        for word in 512..(80 << 10) / 8 {
            let mut image = model::image::Image::over(&bench.view.pm);
            image.set_word(model::units::Word(word), 0).expect("power");
            let error = bench.workload.check(&image).err().unwrap_or_default();
            told += u32::from(error.contains("is torn"));
        }
        // Ten fields of each record.
        assert_eq!(u64::from(told), 60 * (10 * length).div_ceil(8), "fields of {length} bytes");
        bench.reopen(3);
        bench.run(500).expect("transactions");
        bench.check().expect("sound");
    }
}

#[test]
fn real_property_files_are_read() {
    let text = "# Yahoo! Cloud System Benchmark\n! Workload A\n\nrecordcount=1000\n\
                operationcount = 2000\nworkload=site.ycsb.workloads.CoreWorkload\n\
                readallfields=true\nreadproportion: 0.5\nupdateproportion:0.25\r\n\
                \tscanproportion=0\ninsertproportion=0.25\nrequestdistribution=zipfian\n\
                fieldlengthdistribution=constant\nwriteallfields=TRUE\nfieldcount=5\n";
    let read = Properties::read("workloada", text).expect("a sound file");
    assert_eq!((read.record_count, read.operation_count), (Some(1_000), 2_000));
    assert_eq!((read.read, read.update, read.insert), (0.5, 0.25, 0.25));
    assert_eq!(read.distribution, Distribution::Zipfian);
    assert!(read.read_all_fields && read.write_all_fields);
    assert_eq!((read.field_count, read.field_length), (5, 100));
    assert_eq!(read.expected_inserts(), 1_000);
    assert_eq!((read.scan_length_min, read.scan_length_max), (1, 1_000));
}

#[test]
fn property_files_are_read_as_java_reads_them() {
    let text = "recordcount 1000\noperationcount\t\\\n   = \\\n\t20\\\n00\n\
                readproportion \\\r\n:0.5\r\n#fieldcount=1\\\nfieldlength:7\n\
                table=a\\\n#fieldlength=9\nminscanlength=5\\";
    let read = Properties::read("workloada", text).expect("a sound file");
    assert_eq!((read.record_count, read.operation_count), (Some(1_000), 2_000));
    assert_eq!((read.read, read.scan_length_min), (0.5, 5));
    assert_eq!((read.field_count, read.field_length), (10, 7));
}

#[test]
fn no_number_of_a_property_file_is_too_large_to_be_run() {
    for distribution in ["uniform", "zipfian", "latest"] {
        for count in [u64::MAX, u64::MAX / 2, 1 << 53] {
            let text = format!(
                "recordcount=1\noperationcount={count}\nrequestdistribution={distribution}\n\
                 readproportion=0.5\ninsertproportion=1e9\nscanproportion=1e9\n\
                 minscanlength=4294967296\nmaxscanlength=4294967296\n"
            );
            let site = Site { cores: 1, ..with_script(&text) };
            let mut bench = Bench::new(entry("ycsb"), "", &site).expect("a bench");
            bench.run(20).expect("room");
            bench.check().expect("sound");
        }
    }
}

/// Property files with a mistake, and how the error begins.
const WRONG: &[(&str, &str)] = &[
    ("# fine\nreadproportion", "mix, line 2: expected `name=value`"),
    (
        "scanproportion\\\n\\\n  2\n",
        "mix, line 1: expected `name=value`, a comment or nothing, not",
    ),
    ("fieldcount=5\n\nfieldlength \\\n\t= \\\n many", "mix, line 3: `fieldlength` must be a whole"),
    ("# one\\\nfieldcount=0", "mix, line 2: `fieldcount` must be a whole number from 1 to 1024"),
    (
        "fieldcount=5\\\\\nfieldlength=1",
        "mix, line 1: `fieldcount` must be a whole number from 1 to",
    ),
    ("minscanlength=0", "mix, line 1: `minscanlength` must be a whole number from 1 to"),
    (
        "minscanlength=6\nmaxscanlength=5",
        "mix: `minscanlength` must not be above `maxscanlength`, 5; it is 6",
    ),
    ("recordcount=many", "mix, line 1: `recordcount` must be a whole number from 1 to"),
    ("\n\nrecordcount=0", "mix, line 3: `recordcount` must be a whole number from 1 to"),
    ("fieldlength=", "mix, line 1: `fieldlength` must be a whole number from 1 to 65536, not ``"),
    (
        "readproportion=-1",
        "mix, line 1: `readproportion` must be a number from 0 to 1000000000, no",
    ),
    ("scanproportion=NaN", "mix, line 1: `scanproportion` must be a number from 0 to 1000000000"),
    (
        "scanproportion=Infinity",
        "mix, line 1: `scanproportion` must be a number from 0 to 10000000",
    ),
    (
        "requestdistribution=zipf",
        "mix, line 1: `requestdistribution` must be `uniform`, \
         `zipfian`",
    ),
    ("readallfields=yes", "mix, line 1: `readallfields` must be `true` or `false`, not `yes`"),
    ("fieldlengthdistribution=zipfian", "mix, line 1: `fieldlengthdistribution` can only be"),
    (
        "fieldlengthdistributon=zipfian",
        "mix, line 1: unknown property \
         `fieldlengthdistributon`",
    ),
    ("readproporton=1", "mix, line 1: unknown property `readproporton`; did you mean `readprop"),
    (
        "readModifyWriteProportion=1",
        "mix, line 1: unknown property \
         `readModifyWriteProportion`;",
    ),
    ("recordcount 9\nread half", "mix, line 2: expected `name=value`, not `read half`"),
    ("=5", "mix, line 1: expected a name before `=`"),
    ("readproportion=0\nupdateproportion=0", "mix: the proportions of all operations are 0"),
];

#[test]
fn errors_in_property_files_name_file_line_and_what_was_expected() {
    for (text, told) in WRONG {
        let stop = (entry("ycsb").make)(&[], &with_script(text)).err();
        let Some(Stop::Input(error)) = stop else { panic!("{text}: {stop:?}") };
        assert!(error.starts_with(told), "`{error}` does not begin with `{told}`");
    }
}

/// The property file would otherwise override the setting silently.
#[test]
fn a_setting_of_what_the_property_file_decides_is_refused() {
    let made = |(name, value): (&str, u64), text| {
        (entry("ycsb").make)(&[(name.to_owned(), value)], &with_script(text)).err()
    };
    let count = "recordcount=9";
    for (name, value) in
        [("fieldcount", 3), ("fieldlength", 9), ("read_percent", 50), ("update", 1)]
    {
        let told = format!("workload.{name} does nothing with a property file: change mix instead");
        let stop = made((name, value), "");
        assert!(matches!(&stop, Some(Stop::Input(error)) if *error == told), "{name}: {stop:?}");
    }
    // A setting for all workloads of a comparison is accepted by each of them.
    for setting in [("items", 5), ("shared", 1), ("fieldcount", 10)] {
        assert!(made(setting, count).is_none(), "{setting:?}");
    }
}
