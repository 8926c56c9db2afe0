//! Each structure against a simple model in host memory, and against images with known faults.

use std::collections::{BTreeMap, VecDeque};

use crate::common::{Bench, HEAP, entry, get, ground, set, settings, site};
use model::image::Image;
use model::params::Params as _;
use model::units::{CoreId, Word};
use model::workload::Pm;
use workloads::heap::{Alignment, Heap};
use workloads::index::{Kind, Table};
use workloads::keyed::{Structure, Values};
use workloads::queue::List;
use workloads::walk::Walk;
use workloads::{bplustree, btree, hash, rbtree};

/// Toggles keys in a structure and in a map, with key spaces from tiny to large, so that it is
/// often empty, often full, and often between the two.
fn compare<S: Structure>(text: &str) {
    let mut params = S::Params::default();
    for (name, value) in settings(entry(S::ABOUT.name), text) {
        params.set(&name, value);
    }
    for key_space in [1, 2, 9, 64, 1_000, 5_000] {
        let (mut view, mut heap, mut random) = ground();
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let structure = S::create(&params, key_space, &mut pm, &mut heap).expect("room");
        let mut map = BTreeMap::new();
        for stamp in 1..=4_000 {
            let key = random.below(key_space);
            if map.remove(&key).is_none() {
                map.insert(key, stamp);
            }
            let mut pm = Pm::plain(&mut view, CoreId(0));
            structure.toggle(&mut pm, &mut heap, key, stamp).expect("room");
            if stamp % 50 == 0 || key_space < 10 && stamp < 500 {
                let image = Image::over(&view.pm);
                let mut found = structure.check(&mut Walk::new(&image, &HEAP)).expect("sound");
                found.sort_unstable();
                assert_eq!(
                    found,
                    map.iter().map(|(&key, &stamp)| (key, stamp)).collect::<Vec<_>>()
                );
            }
        }
        // All keys are deleted, inserted in ascending order, and deleted in descending order.
        let mut keys: Vec<u64> = map.keys().copied().collect();
        keys.reverse();
        for key in keys.into_iter().chain(0..key_space).chain((0..key_space).rev()) {
            let mut pm = Pm::plain(&mut view, CoreId(0));
            structure.toggle(&mut pm, &mut heap, key, 1).expect("room");
        }
        let image = Image::over(&view.pm);
        let found = structure.check(&mut Walk::new(&image, &HEAP)).expect("sound");
        assert!(found.is_empty(), "{} of {key_space}: {found:?}", S::ABOUT.name);
    }
}

#[test]
fn rbtree_is_a_map() {
    compare::<rbtree::Tree>("value=64");
    compare::<rbtree::Tree>("value=8");
}

#[test]
fn btree_is_a_map() {
    for order in [4, 5, 6, 8, 64, 128] {
        compare::<btree::Tree>(&format!("value=16 order={order}"));
    }
}

#[test]
fn bplustree_is_a_map() {
    for order in [4, 5, 6, 8, 64] {
        for delete in ["merge", "lazy"] {
            compare::<bplustree::Map>(&format!("value=8 order={order} delete={delete}"));
        }
        compare::<bplustree::Map>(&format!("value=24 order={order}"));
    }
}

#[test]
fn hash_is_a_map() {
    compare::<hash::Table>("value=64");
    compare::<hash::Table>("value=8 buckets=4");
    compare::<hash::Table>("value=8 buckets=1 bucket=line");
}

/// Rows with keys in order, as a loader inserts them, and in random order. A row stays where it is.
#[test]
fn a_table_is_a_map_whatever_its_index() {
    let trees = [4, 8].map(|order| [Kind::BTree { order }, Kind::BPlusTree { order }]);
    for kind in trees.into_iter().flatten().chain([Kind::Hash]) {
        for (rows, bytes) in [(1, 24), (7, 24), (300, 24), (300, 8)] {
            let (mut view, mut heap, mut random) = ground();
            let mut pm = Pm::plain(&mut view, CoreId(0));
            let table = Table::new(kind, rows, bytes, &mut pm, &mut heap).expect("room");
            let mut map = BTreeMap::new();
            let last = bytes - 8;
            for step in 0..3 * rows {
                let key = if step < rows { step } else { random.below(8 * rows) };
                let found = table.find(&mut pm, key);
                let found = found.map(|row| (row.address, pm.load(row.plus(last))));
                assert_eq!(found, map.get(&key).copied(), "{kind:?}, key {key}");
                if found.is_none() {
                    let row = table.insert(&mut pm, &mut heap, key).expect("room");
                    pm.store(row.plus(last), step + 1);
                    map.insert(key, (row.address, step + 1));
                }
            }
            let image = Image::over(&view.pm);
            let mut found = BTreeMap::new();
            let sound = table.check(&mut Walk::new(&image, &HEAP), |walk, row, key| {
                assert_eq!(found.insert(key, (row, walk.word(row + last))), None);
                Ok(())
            });
            assert_eq!((sound, found), (Ok(()), map), "{kind:?}");
            let refused = table.check(&mut Walk::new(&image, &HEAP), |_, _, key| match key {
                0 => Err("not 0".to_owned()),
                _ => Ok(()),
            });
            assert_eq!(refused, Err("not 0".to_owned()));
        }
    }
}

/// Keys in order: those of the newest rows are there, as many as there are slots.
#[test]
fn an_array_keeps_the_newest_rows() {
    for rows in [0, 1, 7, 300] {
        let (mut view, mut heap, _) = ground();
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let table = Table::new(Kind::Array, rows, 24, &mut pm, &mut heap).expect("room");
        let slots = table.keeps().expect("an array");
        assert_eq!(slots, rows.max(1));
        for key in 1..=3 * slots {
            let row = table.insert(&mut pm, &mut heap, key).expect("room");
            pm.store(row.plus(16), key + 1);
            let kept = (1..=key + 2).map(|key| table.find(&mut pm, key).is_some());
            let expect = (1..=key + 2).map(|other| other <= key && other + slots > key);
            assert!(kept.eq(expect), "{rows} rows, key {key}");
        }
        let image = Image::over(&view.pm);
        let mut found = Vec::new();
        let sound = table.check(&mut Walk::new(&image, &HEAP), |walk, row, key| {
            assert_eq!(walk.word(row + 16), key + 1);
            found.push(key);
            Ok(())
        });
        found.sort_unstable();
        assert_eq!((sound, found), (Ok(()), (2 * slots + 1..=3 * slots).collect()));
    }
}

#[test]
fn queue_is_a_queue() {
    let (mut view, mut heap, mut random) = ground();
    let mut pm = Pm::plain(&mut view, CoreId(0));
    let list = List::create(Values::distinct(24), &mut pm, &mut heap).expect("room");
    let mut model = VecDeque::new();
    for stamp in 1..=6_000 {
        // Lengths drift up and down, and to nothing.
        let mut pm = Pm::plain(&mut view, CoreId(0));
        if random.below(100) < if stamp / 500 % 2 == 0 { 60 } else { 40 } {
            list.enqueue(&mut pm, &mut heap, stamp).expect("room");
            model.push_back(stamp);
        } else {
            assert_eq!(list.dequeue(&mut pm, &mut heap), model.pop_front());
        }
        if stamp % 40 == 0 {
            let image = Image::over(&view.pm);
            let found = list.check(&mut Walk::new(&image, &HEAP)).expect("sound");
            assert_eq!(found, model.iter().copied().collect::<Vec<_>>());
        }
    }
}

/// Runs a keyed structure for a while and hands it to `spoil`, which makes a fault in the image;
/// the check must report it in words that contain `told`.
fn spoiled<S: Structure>(told: &str, spoil: impl FnOnce(&S, u64, &mut Image<'_>)) {
    let (mut view, mut heap, _) = ground();
    let mut pm = Pm::plain(&mut view, CoreId(0));
    // The root record is the first block.
    let root = Heap::new(HEAP, Alignment::Auto).alloc(64).expect("room").address;
    let structure = S::create(&S::Params::default(), 200, &mut pm, &mut heap).expect("room");
    for key in 0..200 {
        structure.toggle(&mut pm, &mut heap, key * 7 % 200, key + 1).expect("room");
    }
    let mut image = Image::over(&view.pm);
    assert_eq!(structure.check(&mut Walk::new(&image, &HEAP)).map(|items| items.len()), Ok(200));
    spoil(&structure, root, &mut image);
    let error = structure.check(&mut Walk::new(&image, &HEAP)).expect_err("a fault");
    assert!(error.contains(told), "`{error}` does not say `{told}`");
}

#[test]
fn rbtree_faults_are_told() {
    type Tree = rbtree::Tree;
    let top = |root: u64, image: &Image<'_>| get(image, root);
    spoiled::<Tree>("the root is red", |_, root, image| set(image, top(root, image) + 32, 1));
    spoiled::<Tree>("has the colour 7", |_, root, image| set(image, top(root, image) + 32, 7));
    spoiled::<Tree>("the parent of key", |_, root, image| set(image, top(root, image) + 8, 64));
    spoiled::<Tree>("out of order", |_, root, image| {
        let left = get(image, top(root, image) + 16);
        set(image, left, 199);
    });
    spoiled::<Tree>("torn", |_, root, image| set(image, top(root, image) + 48, 1));
    spoiled::<Tree>("no place in", |_, root, image| set(image, root, u64::MAX - 7));
    spoiled::<Tree>("no place in", |_, root, image| set(image, root, 4096 + 3));
    spoiled::<Tree>("and its parent are red", |_, root, image| {
        let left = get(image, top(root, image) + 16);
        set(image, left + 32, 1);
        set(image, get(image, left + 16) + 32, 1);
    });
    spoiled::<Tree>("black heights", |_, root, image| {
        set(image, top(root, image) + 16, 0);
    });
}

#[test]
fn btree_faults_are_told() {
    type Tree = btree::Tree;
    let top = |root: u64, image: &Image<'_>| get(image, root);
    spoiled::<Tree>("keys, which is not 1 to 7", |_, root, image| set(image, top(root, image), 0));
    spoiled::<Tree>("keys, which is not 1 to 7", |_, root, image| set(image, top(root, image), 8));
    spoiled::<Tree>("out of order", |_, root, image| {
        let node = top(root, image);
        set(image, node + 16, get(image, node + 8));
    });
    spoiled::<Tree>("not equally deep", |_, root, image| {
        // The last child of the root is replaced by the last of its own children.
        let node = top(root, image);
        let last = node + 128 + 8 * get(image, node);
        let child = get(image, last);
        let grandchild = get(image, child + 128 + 8 * (get(image, child) & 0xff));
        set(image, last, grandchild);
    });
    spoiled::<Tree>("a value at 0x0", |_, root, image| set(image, top(root, image) + 64, 0));
    spoiled::<Tree>("torn", |_, root, image| {
        let value = get(image, top(root, image) + 64);
        set(image, value, get(image, value) + 1);
    });
}

#[test]
fn hash_faults_are_told() {
    type Table = hash::Table;
    let chain = |root: u64, image: &Image<'_>| {
        let first = get(image, root);
        let bucket = (0..).find(|bucket| get(image, first + 8 * bucket) != 0).expect("a chain");
        first + 8 * bucket
    };
    spoiled::<Table>("is in bucket", |_, root, image| {
        let place = chain(root, image);
        let node = get(image, place);
        set(image, place, 0);
        set(image, place + 8, node);
    });
    spoiled::<Table>("more nodes are linked", |_, root, image| {
        let node = get(image, chain(root, image));
        set(image, node + 8, node);
    });
    spoiled::<Table>("buckets instead of 256", |_, root, image| set(image, root + 8, u64::MAX));
    spoiled::<Table>("the array of buckets", |_, root, image| set(image, root, HEAP.end - 64));
    spoiled::<Table>("torn", |_, root, image| {
        let node = get(image, chain(root, image));
        set(image, node + 16, 77);
    });
}

#[test]
fn queue_faults_are_told() {
    let cases: &[(&str, Spoil)] = &[
        ("the tail is", |root, image| set(image, root + 8, get(image, root))),
        ("follows its element", |root, image| {
            let second = get(image, get(image, root));
            set(image, get(image, root), get(image, second));
        }),
        ("torn", |root, image| set(image, get(image, root) + 16, 9)),
        ("more nodes are linked", |root, image| {
            set(image, get(image, get(image, root)), get(image, root));
        }),
        ("a node at", |root, image| set(image, root, 8)),
    ];
    faults("queue", "", cases);
}

#[test]
fn faults_of_padded_values_are_told() {
    faults(
        "queue",
        "contents=padded",
        &[
            ("has no stamp: 0x0", |root, image| set(image, get(image, root) + 8, 0)),
            ("follows its element", |root, image| {
                let first = get(image, root) + 8;
                set(image, first, get(image, first) - 1);
            }),
            ("torn: word 1 is 0x0", |root, image| set(image, get(image, root) + 16, 0)),
            ("torn: word 7 is", |root, image| {
                let last = get(image, root) + 64;
                set(image, last, get(image, last - 8));
            }),
        ],
    );
}

/// A value that consists of a stamp alone must have one that a core has issued.
#[test]
fn faults_of_values_of_one_word_are_told() {
    faults(
        "queue",
        "value=8",
        &[
            ("has no stamp: 0x0", |root, image| set(image, get(image, root) + 8, 0)),
            ("from core 1, and there are 1", |root, image| {
                set(image, get(image, root) + 8, 1 << 48 | 5);
            }),
        ],
    );
    let value = |root, image: &Image<'_>| {
        let mut heads = (get(image, root)..).step_by(8).map(|head| get(image, head));
        heads.find(|node| *node != 0).expect("a chain") + 16
    };
    for (stamp, told) in [(0, "has no stamp: 0x0"), (1 << 48 | 5, "0x1000000000005 of no core")] {
        faulty("hash", "value=8", told, |root, image| set(image, value(root, image), stamp));
    }
}

/// Makes a fault in the image of a structure with its root record at this address.
type Spoil = fn(u64, &mut Image<'_>);

fn faults(name: &str, text: &str, cases: &[(&str, Spoil)]) {
    for (told, spoil) in cases {
        faulty(name, text, told, spoil);
    }
}

/// Runs a workload whose first block is a root record, and makes a fault in the image, which the
/// check must report.
fn faulty(name: &str, text: &str, told: &str, spoil: impl FnOnce(u64, &mut Image<'_>)) {
    let site = site(1, 50);
    let root = Heap::new(site.heap.clone(), Alignment::Auto).alloc(64).expect("room").address;
    let mut bench = Bench::new(entry(name), text, &site).expect("a bench");
    bench.run(101).expect("transactions");
    let mut image = Image::over(&bench.view.pm);
    spoil(root, &mut image);
    let error = bench.workload.check(&image).expect_err("a fault");
    assert!(error.contains(told), "`{error}` does not say `{told}`");
}

#[test]
fn bplustree_faults_are_told() {
    type Map = bplustree::Map;
    const CHILDREN: u64 = 16 + 8 * 64;
    let top = |root: u64, image: &Image<'_>| get(image, root);
    let leaf = |root: u64, image: &Image<'_>, index: u64| {
        get(image, get(image, root) + CHILDREN + 8 * index)
    };
    spoiled::<Map>("keys, which is not 1 to 63", |_, root, image| set(image, top(root, image), 0));
    spoiled::<Map>("which is not 32 to 64", |_, root, image| {
        let leaf = leaf(root, image, 0);
        set(image, leaf, 1 << 32 | 31);
    });
    spoiled::<Map>("out of order", |_, root, image| {
        let leaf = leaf(root, image, 1);
        set(image, leaf + 16, get(image, leaf + 24));
    });
    spoiled::<Map>("out of order", |_, root, image| {
        // A key that belongs to the leaf after it.
        let leaf = leaf(root, image, 0);
        let last = (get(image, leaf) & 0xffff) - 1;
        set(image, leaf + 16 + 8 * last, 199);
    });
    spoiled::<Map>("is linked to", |_, root, image| {
        let leaf = leaf(root, image, 0);
        set(image, leaf + 8, 0);
    });
    spoiled::<Map>("a value at 0x0", |_, root, image| {
        let leaf = leaf(root, image, 0);
        set(image, leaf + CHILDREN, 0);
    });
    spoiled::<Map>("torn", |_, root, image| {
        let leaf = leaf(root, image, 0);
        let value = get(image, leaf + CHILDREN);
        set(image, value, get(image, value) + 1);
    });
}

#[test]
fn array_faults_are_told() {
    let site = site(2, 50);
    let bench = Bench::new(entry("array"), "", &site).expect("a bench");
    let second = site.part(CoreId(1)).start;
    for (offset, value, told) in [
        (0, 2, "array 1: id 2 is in the array twice"),
        (64, 0, "array 1: element 1 has the id 0"),
        (128, 26, "array 1: element 2 has the id 26, which is not 1 to 25"),
        (72, 1, "array 1: word 1 of element 1"),
    ] {
        let mut image = Image::over(&bench.view.pm);
        set(&mut image, second + offset, value);
        let error = bench.workload.check(&image).expect_err("a fault");
        assert!(error.starts_with(told), "`{error}` does not say `{told}`");
    }
}

#[test]
fn nodes_are_spread_over_memory() {
    // The nodes of successive keys are seldom neighbours, whatever the structure.
    let bench = Bench::new(entry("queue"), "", &site(1, 1_000)).expect("a bench");
    let root = Heap::new(site(1, 1_000).heap, Alignment::Auto).alloc(64).expect("room");
    let mut node = bench.view.pm.word(Word::of(root.address));
    let mut near = 0;
    while node != 0 {
        let next = bench.view.pm.word(Word::of(node));
        near += u32::from(next.abs_diff(node) <= 256);
        node = next;
    }
    assert!(near < 50, "{near} of 1000 nodes are followed by a neighbour");
}

/// Bytes that go beyond one lock's line stay in it if the next line is elsewhere.
#[test]
fn scribble_has_nothing_between_lines_that_are_apart() {
    let text = "apart=4096 straddle=yes";
    let mut bench = Bench::new(entry("scribble"), text, &site(3, 0)).expect("it fits");
    for core in (0..3).cycle().take(2_000) {
        let seen = bench.watch(core);
        // The lines begin at 4096.
        assert!(seen.touched.iter().all(|word| word % 512 < 8), "{:?}", seen.touched);
    }
}
