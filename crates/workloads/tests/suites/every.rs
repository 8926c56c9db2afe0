//! Properties of every workload in the registry.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Bench, copy, entry, settings, site};
use model::image::Image;
use model::script::Script;
use model::units::{CoreId, Line, Word};
use model::workload::{Reopens, Site, Stop};
use workloads::rng::Random;
use workloads::{ALL, Entry};

/// Settings under which every workload that has them is tested.
const VARIANTS: &[&str] = &[
    "",
    "shared=shared",
    "distribution=hot value=8 element=8 lock_grain=word",
    "shared=shared order=5 value=8 alignment=packed bucket=line update=all edges=undirected key=8 \
     index=btree warehouses=3 districts=2 remote=30 actions=mixed user_percent=50 queries=4 \
     alloc_meta=logged count=stored",
    "alignment=line order=128 fieldcount=3 fieldlength=5 words=7 stores=20 distribution=zipf \
     index=btree districts=3 queries=6 query_range=100 sizes=four memory_percent=70 carve=at-once \
     contents=padded",
    "order=4 buckets=1 items=100 fieldlength=9 read_percent=0 degree=2 ends=uniform element=24 \
     index=bplustree districts=3",
    "operations=5 items=20 straddle=yes alloc_meta=logged contents=padded \
     index=array rows=lean stock_counts=apart orders=7 districts=3",
    "alloc_meta=logged count=stored value=8 bucket=line alignment=packed order=6",
    "order=6 delete=lazy value=24 degree=30 merge=1 versions=1 element=104 edges=undirected \
     index=array stock_counts=apart buckets=4 growth=at-once alloc_meta=volatile \
     set_percent=60 overwrite_percent=40 \
     update_interval=9",
    "variant=movnti4 entries_per_fence=8 logging=undo verify=order",
    "variant=nt64 entries_per_fence=2 log=circular array_writes=flushed verify=order",
    "variant=movdir64b entries_per_fence=16 log_in=dram",
    "access=load dependent=yes block=256",
    "access=load dependent=yes pattern=sequential items=40 memory=dram",
    "access=store pattern=sequential block=128 accesses=5",
    "access=ntstore block=512 fence=sfence work=9",
];

/// Whether a workload's script fixes all its operations, so that items and seed have no effect.
fn is_scripted(entry: &Entry) -> bool {
    ["sqlite", "replay"].contains(&entry.about.name)
}

/// Whether every store is in a transaction, as in all workloads except those that measure stores
/// and flushes of their own.
fn is_transactional(entry: &Entry) -> bool {
    let name = entry.about.name;
    !is_scripted(entry) && name != "logcache" && name != "probe"
}

/// Whether the workload has anything to check: for `scribble` any words are right.
fn has_structure(entry: &Entry) -> bool {
    entry.about.name != "scribble"
}

/// The entries that need no input file and have a heap to check.
fn each(mut body: impl FnMut(&Entry, &str)) {
    for entry in ALL.iter().filter(|entry| !is_scripted(entry)) {
        for variant in VARIANTS {
            body(entry, variant);
        }
    }
}

#[test]
fn names_are_sorted_and_files_exist() {
    assert!(ALL.is_sorted_by_key(|entry| entry.about.name));
    for entry in ALL {
        assert!(entry.about.file.ends_with(".rs"), "{}", entry.about.file);
        assert!(!entry.about.summary.is_empty() && !entry.about.source.is_empty());
    }
}

#[test]
fn thousands_of_transactions_leave_a_sound_structure() {
    each(|entry, variant| {
        let name = entry.about.name;
        for cores in [1, 3] {
            let mut bench = Bench::new(entry, variant, &site(cores, 600)).expect("a bench");
            bench.check().unwrap_or_else(|error| panic!("{name} {variant}, filled: {error}"));
            for round in 0..20 {
                bench.run(150).expect("transactions");
                let sound = bench.check();
                sound.unwrap_or_else(|error| panic!("{name} {variant}, {round}: {error}"));
            }
        }
    });
}

/// The volatile state that a workload rebuilds is right: blocks that it allocates are not in use,
/// and stamps and keys that it takes for new are new.
#[test]
fn a_workload_that_is_reopened_goes_on() {
    each(|entry, variant| {
        if entry.reopens == Reopens::Never {
            return;
        }
        let name = entry.about.name;
        for cores in [1, 3] {
            let mut bench = Bench::new(entry, variant, &site(cores, 200)).expect("a bench");
            for life in 1..6 {
                bench.run(60).expect("transactions");
                bench.check().unwrap_or_else(|error| panic!("{name} {variant}, {life}: {error}"));
                bench.reopen(life);
            }
        }
    });
}

#[test]
fn the_seed_of_a_later_life_counts() {
    for entry in ALL.iter().filter(|entry| entry.reopens == Reopens::Always) {
        let after = |seed| {
            let site = Site { heap: 4096..2 << 20, ..site(2, 100) };
            let mut bench = Bench::new(entry, "", &site).expect("a bench");
            bench.reopen(seed);
            bench.run(30).expect("transactions");
            bench.bytes(site.heap).to_vec()
        };
        let first = after(1);
        assert!(first == after(1), "{}", entry.about.name);
        assert!(first != after(2), "{}", entry.about.name);
    }
}

/// A store to which records are added knows in its next life which records it has.
#[test]
fn keys_that_were_added_are_known_when_a_store_is_reopened() {
    let script = "insertproportion=0.5\nreadproportion=0.5\nrequestdistribution=latest";
    for shared in ["shared=private", "shared=shared"] {
        let mut site = site(3, 60);
        site.script = Some(Script::new("mix", script));
        let mut bench = Bench::new(entry("ycsb"), shared, &site).expect("a bench");
        for life in 0..4 {
            bench.run(100).expect("no record is missing");
            bench.check().expect("and none is there twice");
            bench.reopen(life);
        }
    }
}

#[test]
fn a_seed_determines_every_byte() {
    each(|entry, variant| {
        let run = |site: &Site| {
            let mut bench = Bench::new(entry, variant, site).expect("a bench");
            bench.run(200).expect("transactions");
            bench.bytes(0..4 << 20).to_vec()
        };
        let small = Site { heap: 4096..4 << 20, ..site(2, 200) };
        // Megabytes are not to be printed.
        let first = run(&small);
        assert!(first == run(&small), "{} {variant}", entry.about.name);
        let other = run(&Site { seed: 8, ..small });
        assert!(first != other, "{} {variant}", entry.about.name);
    });
}

#[test]
fn the_core_s_own_part_is_all_that_a_private_structure_touches() {
    for entry in ALL.iter().filter(|entry| entry.fields.iter().any(|field| field.name == "shared"))
    {
        let site = site(3, 300);
        let mut bench = Bench::new(entry, "shared=private", &site).expect("a bench");
        for round in 0..300 {
            let core = round % 3;
            let seen = bench.watch(core);
            assert!(seen.locks.is_empty());
            let part = site.part(CoreId(core as u8));
            assert!(seen.touched.iter().all(|&word| part.contains(&Word(word).address())));
        }
    }
}

#[test]
fn locks_are_taken_before_and_given_back_after() {
    each(|entry, variant| {
        if !is_transactional(entry) {
            return;
        }
        let mut bench = Bench::new(entry, variant, &site(2, 100)).expect("a bench");
        let locked = entry.about.shared || variant.contains("shared=shared");
        for round in 0..400 {
            // The bench checks the order of locks, begin, commit and unlocks.
            let seen = bench.watch(round % 2);
            assert_eq!(!seen.locks.is_empty(), locked, "{} {variant}", entry.about.name);
        }
        bench.check().expect("a sound structure");
    });
}

/// Whether each line that one core stores to and another touches has a lock that both hold.
fn shares_behind_locks(entry: &Entry, variant: &str) -> bool {
    let script = "readproportion=0.5\nupdateproportion=0.3\ninsertproportion=0.2\nfieldlength=3";
    let mut site = site(3, 200);
    site.script = Some(Script::new("mix", script));
    let mut bench = Bench::new(entry, variant, &site).expect("a bench");
    // For each line: the cores that touched it, whether it was stored to, and the common locks.
    let mut lines: BTreeMap<Line, (BTreeSet<usize>, bool, BTreeSet<u32>)> = BTreeMap::new();
    for round in 0..1_500 {
        let core = round % 3;
        let seen = bench.watch(core);
        let locks: BTreeSet<u32> = seen.locks.iter().copied().collect();
        for &word in &seen.touched {
            let line = lines.entry(Word(word).line()).or_default();
            if line.0.is_empty() {
                line.2 = locks.clone();
            }
            line.0.insert(core);
            line.1 |= seen.words.contains(&word);
            line.2.retain(|lock| locks.contains(lock));
        }
    }
    assert!(lines.values().any(|(cores, stored, _)| cores.len() == 3 && *stored));
    lines.values().all(|(cores, stored, locks)| cores.len() < 2 || !stored || !locks.is_empty())
}

#[test]
fn what_cores_share_is_behind_locks_line_by_line() {
    for entry in ALL.iter().filter(|entry| is_transactional(entry)) {
        let variant = if entry.about.shared { "" } else { "shared=shared" };
        let mixed = " index=btree actions=mixed user_percent=60 queries=3";
        for more in ["", mixed, " index=bplustree", " index=array", " index=array rows=lean"] {
            let variant = format!("{variant} remote=50 districts=2{more}");
            assert!(shares_behind_locks(entry, &variant), "{} {variant}", entry.about.name);
        }
    }
    // Locks on words share lines falsely, on purpose.
    assert!(!shares_behind_locks(entry("scribble"), "lock_grain=word"));
}

#[test]
fn a_heap_that_is_too_small_says_so() {
    for entry in ALL.iter().filter(|entry| !is_scripted(entry)) {
        let small = Site { heap: 4096..4096 + 256, ..site(1, 100_000) };
        let stop = Bench::new(entry, "", &small).err();
        let told = matches!(stop, Some(Stop::OutOfMemory { asked, free }) if asked > free);
        assert!(told, "{}: {stop:?}", entry.about.name);
    }
}

/// The error has the room that all items need, and not one of them: the workload fails before the
/// host's memory is filled with the numbers of a thousand million items.
#[test]
fn items_that_do_not_fit_are_told_before_they_are_numbered() {
    for name in ["echo", "hash", "vacation", "ycsb"] {
        let site = Site { heap: 4096..2 << 20, ..site(1, 60_000) };
        let stop = Bench::new(entry(name), "items=60000", &site).err();
        let told = matches!(stop, Some(Stop::OutOfMemory { asked, .. }) if asked > 2 << 20);
        assert!(told, "{name}: {stop:?}");
    }
}

#[test]
fn a_structure_may_run_out_of_memory_later() {
    // Random inserts and deletes wander away from the initial size.
    let mut seen = 0;
    for name in ["rbtree", "hash", "btree"] {
        let full = (1..64)
            .map(|kib| Site { heap: 4096..4096 + (kib << 10), ..site(1, 100) })
            .find_map(|site| Bench::new(entry(name), "", &site).ok());
        let stop = full.expect("a heap that is just large enough").run(2_000);
        seen += u32::from(matches!(stop, Err(Stop::OutOfMemory { .. })));
    }
    assert!(seen > 0);
}

#[test]
fn bytes_that_are_no_words_are_refused() {
    for (name, field) in [("array", "element"), ("queue", "value"), ("hash", "value")] {
        let entry = entry(name);
        let stop = (entry.make)(&settings(entry, &format!("{field}=12")), &site(1, 10)).err();
        let Some(Stop::Input(text)) = stop else { panic!("{name}: {stop:?}") };
        assert!(text.contains(field) && text.contains("12"), "{text}");
    }
}

/// The settings with which a keyed structure has further metadata in persistent memory.
const META: &str = "alloc_meta=logged count=stored value=8";

/// Values of which only a stamp changes.
const PADDED: &str = "contents=padded";

/// The approximate number of parts that are checked; a large transaction has a thousand.
const PARTS_MAX: u32 = 20_000;

/// The least share in percent of the parts of transactions that the check must detect, by workload
/// and settings.
const TOLD: &[(&str, &str, u32)] = &[
    ("array", "", 100),
    ("bplustree", "", 85),
    ("bplustree", META, 95),
    ("bplustree", PADDED, 85),
    ("btree", "", 40),
    ("btree", META, 80),
    ("btree", PADDED, 40),
    ("ctree", "", 5),
    ("echo", "", 80),
    ("hash", "", 70),
    ("hash", META, 75),
    ("hash", PADDED, 15),
    ("hashmap", "", 45),
    ("memcached", "", 90),
    ("memcached", "buckets=2 set_percent=50 overwrite_percent=50 update_interval=9", 90),
    ("queue", "", 5),
    ("queue", PADDED, 5),
    ("rbtree", "", 30),
    ("rbtree", META, 70),
    ("rbtree", PADDED, 30),
    ("sdg", "", 45),
    ("sps", "", 100),
    ("tpcc", "", 100),
    ("tpcc", "index=btree warehouses=2 remote=30 districts=3", 100),
    ("tpcc", "index=bplustree warehouses=2 remote=30 districts=3", 100),
    ("tpcc", "index=array orders=160 districts=2", 100),
    ("tpcc", "rows=lean", 100),
    ("tpcc", "index=array rows=lean orders=160 districts=2", 100),
    ("tpcc", "index=array rows=lean", 40),
    ("vacation", "", 100),
    ("vacation", "actions=mixed user_percent=40 queries=3", 60),
    ("ycsb", "", 100),
];
/// The same for a workload without a line above: a check that detects fewer is blind.
const TOLD_AT_LEAST: u32 = 5;

/// The check detects a transaction of which only the first stores are there, unless the missing
/// part is not linked yet.
#[test]
fn a_part_of_a_transaction_is_told() {
    let has_line = |name: &str| TOLD.iter().any(|(listed, _, _)| *listed == name);
    let others = ALL.iter().filter(|entry| is_transactional(entry) && has_structure(entry));
    let others = others.map(|entry| entry.about.name).filter(|name| !has_line(name));
    let others = others.map(|name| (name, "", TOLD_AT_LEAST));
    for (name, variant, least) in TOLD.iter().copied().chain(others) {
        let (told, parts) = parts_told(entry(name), variant);
        assert!(
            parts > 0 && told * 100 / parts >= least,
            "the check of {name} ({variant}) tells {told} of {parts} images that hold a part of a \
             transaction, and {least} % are asked of it (TOLD in crates/workloads/tests/suites/every.rs): \
             words of a transaction have to agree with each other, or its check has to look at more"
        );
    }
}

/// Returns how many images with a part of a transaction the check detects, and how many there are.
fn parts_told(entry: &Entry, variant: &str) -> (u32, u32) {
    let site = Site { heap: 4096..1 << 20, ..site(1, 60) };
    let mut bench = Bench::new(entry, variant, &site).expect("a bench");
    let (mut told, mut parts) = (0, 0);
    for _ in 0..300 {
        if parts > PARTS_MAX {
            break;
        }
        let seen = bench.watch(0);
        let changes: Vec<_> = seen.log.iter().filter(|(_, old, new)| old != new).collect();
        let mut image = Image::over(&bench.view.pm);
        for &&(word, old, _) in changes.iter().skip(1).rev() {
            image.set_word(word, old).expect("power");
            parts += 1;
            told += u32::from(bench.workload.check(&image).is_err());
        }
    }
    (told, parts)
}

/// Garbage in an image is detected or, in free memory, ignored; it never makes the check fail in
/// another way.
#[test]
fn no_garbage_makes_the_check_panic_or_go_on_for_ever() {
    each(|entry, variant| {
        let site = Site { heap: 4096..2 << 20, ..site(2, 120) };
        let mut bench = Bench::new(entry, variant, &site).expect("a bench");
        bench.run(100).expect("transactions");
        let mut random = Random::new(1, CoreId(0), entry.about.name);
        let used: Vec<u64> =
            (512..(1 << 18)).filter(|&word| bench.view.pm.word(Word(word)) != 0).collect();
        let mut told = 0;
        for _ in 0..400 {
            let mut image = Image::over(&bench.view.pm);
            for _ in 0..=random.below(3) {
                let word = Word(used[random.below(used.len() as u64) as usize]);
                let other = used[random.below(used.len() as u64) as usize];
                let garbage = match random.below(6) {
                    0 => random.any(),
                    1 => u64::MAX,
                    2 => 0,
                    3 => Word(other).address(),
                    4 => bench.view.pm.word(Word(other)),
                    _ => bench.view.pm.word(word) ^ 1 << random.below(64),
                };
                image.set_word(word, garbage).expect("power");
            }
            told += u32::from(bench.workload.check(&image).is_err());
        }
        let name = entry.about.name;
        assert!(
            told > 100 || !has_structure(entry),
            "the check of {name} ({variant}) tells {told} of 400 images in which a few words that \
             are in use hold garbage, and more than 100 are asked of it: what it does not look at no \
             campaign looks at either"
        );
    });
}

#[test]
fn an_empty_or_random_image_is_told() {
    each(|entry, variant| {
        if !has_structure(entry) {
            return;
        }
        let site = Site { heap: 4096..1 << 20, ..site(2, 120) };
        let bench = Bench::new(entry, variant, &site).expect("a bench");
        let mut random = Random::new(2, CoreId(0), entry.about.name);
        for masks in [[u64::MAX, 0], [(1 << 20) - 8, 0], [0, u64::MAX]] {
            let mut wrong = copy(&bench.view.pm);
            for word in 512..(1 << 17) {
                wrong.set_word(Word(word), (random.any() & masks[0]) | masks[1]);
            }
            let told = bench.workload.check(&Image::over(&wrong));
            let name = entry.about.name;
            assert!(
                told.is_err(),
                "the check of {name} ({variant}) takes an image of ones or random words \
                 ({masks:x?}) for a sound one"
            );
        }
    });
}
