//! The graph, the vector, and WHISPER's kernels, each against a simple model in host memory, and
//! against images with known faults.

use std::collections::BTreeMap;

use crate::common::{Bench, HEAP, entry, get, ground, set, settings, site};
use model::image::Image;
use model::params::Params as _;
use model::units::CoreId;
use model::workload::{Pm, Ptr};
use workloads::heap::{Alignment, Heap};
use workloads::pmembench::Map;
use workloads::walk::Walk;
use workloads::{ctree, echo, hashmap, sdg};

#[test]
fn sdg_is_a_set_of_pairs() {
    for is_undirected in [false, true] {
        for vertices in [2, 4, 16, 64] {
            let (mut view, mut heap, mut random) = ground();
            let mut pm = Pm::plain(&mut view, CoreId(0));
            let graph = sdg::Graph::create(vertices, is_undirected, &mut pm, &mut heap);
            let graph = graph.expect("room");
            let mut pairs = BTreeMap::new();
            for weight in 1..=3_000 {
                let from = random.below(vertices);
                let to = (from + 1 + random.below(vertices - 1)) % vertices;
                if pairs.remove(&(from, to)).is_none() {
                    pairs.insert((from, to), weight);
                    if is_undirected {
                        pairs.insert((to, from), weight);
                    }
                } else if is_undirected {
                    pairs.remove(&(to, from));
                }
                let mut pm = Pm::plain(&mut view, CoreId(0));
                graph.toggle(&mut pm, &mut heap, (from, to), weight).expect("room");
                if weight % 50 == 0 || weight < 100 {
                    let image = Image::over(&view.pm);
                    let found = graph.check(&mut Walk::new(&image, &HEAP)).expect("sound");
                    let model: Vec<_> =
                        pairs.iter().map(|(&(from, to), &weight)| (from, to, weight)).collect();
                    assert_eq!(found, model);
                }
            }
        }
    }
}

/// Inserts keys into a map of PMDK's, some of them twice, and into a map in host memory; `replaces`
/// says whether the second value of a key counts.
fn compare_inserts<M: Map>(text: &str, replaces: bool) {
    let mut params = M::Params::default();
    for (name, value) in settings(entry(M::ABOUT.name), text) {
        params.set(&name, value);
    }
    for key_space in [1, 2, 30, 5_000, u64::MAX] {
        let (mut view, mut heap, mut random) = ground();
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let structure = M::create(&params, 1, &mut random, &mut pm, &mut heap);
        let mut structure = structure.expect("room");
        let mut map = BTreeMap::new();
        for value in 1..=3_000_u64 {
            let mut pm = Pm::plain(&mut view, CoreId(0));
            structure.maintain(&mut pm, &mut heap).expect("room");
            let key = 1 + random.below(key_space);
            let address = 8 * value;
            structure.insert(&mut pm, &mut heap, key, Ptr::to(address)).expect("room");
            if replaces || !map.contains_key(&key) {
                map.insert(key, address);
            }
            if value % 100 == 0 || value < 50 {
                let image = Image::over(&view.pm);
                let mut found = structure.check(&mut Walk::new(&image, &HEAP)).expect("sound");
                found.sort_unstable();
                let model: Vec<_> = map.iter().map(|(&key, &value)| (key, value)).collect();
                assert_eq!(found, model, "{} of {key_space}", M::ABOUT.name);
            }
        }
    }
}

#[test]
fn ctree_is_a_map() {
    compare_inserts::<ctree::Tree>("", true);
}

#[test]
fn hashmap_is_a_map() {
    compare_inserts::<hashmap::Table>("rebuild_max=0", false);
    compare_inserts::<hashmap::Table>("rebuild_max=20", false);
}

#[test]
fn echo_is_a_map_of_the_newest_values() {
    for (versions, merge) in [(1, 1), (2, 8), (3, 5), (16, 64)] {
        let (mut view, mut heap, mut random) = ground();
        let params = echo::EchoParams { key: 24, value: 40, versions, merge, ..Default::default() };
        let mut pm = Pm::plain(&mut view, CoreId(0));
        let store = echo::Store::create(&params, 30, &mut pm, &mut heap).expect("room");
        let (mut map, mut stamp) = (BTreeMap::new(), 0);
        for round in 0..400 {
            let mut puts = Vec::new();
            for _ in 0..=random.below(merge) {
                stamp += 1;
                let number = random.below(30 + round);
                puts.push(echo::Put { number, stamp });
                map.insert(number, stamp);
            }
            let mut pm = Pm::plain(&mut view, CoreId(0));
            store.merge(&mut pm, &mut heap, 0, &puts).expect("room");
            let number = random.below(500);
            assert_eq!(store.get(&mut pm, number), map.get(&number).copied());
            let image = Image::over(&view.pm);
            let mut found = store.check(&mut Walk::new(&image, &HEAP)).expect("sound");
            found.sort_unstable();
            let model: Vec<_> = map.iter().map(|(&number, &stamp)| (number, stamp)).collect();
            assert_eq!(found, model, "{versions} versions, {merge} puts");
        }
    }
}

/// Makes a fault in an image, given the address of the first block.
type Spoil = fn(u64, &mut Image<'_>);

/// Runs a workload for a while and spoils its image in ways that its check must detect.
fn workload_faults(name: &str, text: &str, cases: &[(&str, Spoil)]) {
    let site = site(1, 64);
    let first = Heap::new(site.heap.clone(), Alignment::Auto).alloc(64).expect("room").address;
    for (told, spoil) in cases {
        let mut bench = Bench::new(entry(name), text, &site).expect("a bench");
        bench.run(100).expect("transactions");
        let mut image = Image::over(&bench.view.pm);
        spoil(first, &mut image);
        let error = bench.workload.check(&image).expect_err(told);
        assert!(error.contains(told), "`{error}` does not say `{told}`");
    }
}

#[test]
fn sps_faults_are_told() {
    workload_faults(
        "sps",
        "element=16",
        &[
            ("is there twice", |first, image| {
                for word in [0, 8] {
                    set(image, first + 16 + word, get(image, first + word));
                }
            }),
            ("which is not 1 to 64", |first, image| set(image, first, 65)),
            ("torn at word 1", |first, image| set(image, first + 8, 1)),
        ],
    );
}

#[test]
fn sdg_faults_are_told() {
    // The first vertex with an edge.
    fn vertex(root: u64, image: &Image<'_>) -> u64 {
        let first = get(image, root);
        let found = (0..4).map(|vertex| first + 16 * vertex);
        found.into_iter().find(|&vertex| get(image, vertex) != 0).expect("an edge")
    }
    workload_faults(
        "sdg",
        "edges=undirected",
        &[
            ("vertices instead of 4", |root, image| set(image, root + 8, 5)),
            ("and says", |root, image| {
                let vertex = vertex(root, image);
                set(image, vertex + 8, get(image, vertex + 8) + 1);
            }),
            ("leads from vertex", |root, image| {
                let edge = get(image, vertex(root, image));
                set(image, edge, 4);
            }),
            ("wrong one before it", |root, image| {
                let edge = get(image, vertex(root, image));
                set(image, edge + 16, edge);
            }),
            ("is not in the list of vertex", |root, image| {
                let edge = get(image, vertex(root, image));
                set(image, edge + 24, 99);
            }),
        ],
    );
    workload_faults(
        "sdg",
        "",
        &[("has the weight", |root, image| {
            let edge = get(image, vertex(root, image));
            set(image, edge + 24, 7 << 48 | 1);
        })],
    );
}

/// The address of the map of `ctree` or `hashmap`, after the first block, which is the root object
/// and has a slab of its own.
const MAP: u64 = 4096;

#[test]
fn ctree_faults_are_told() {
    fn top(first: u64, image: &Image<'_>) -> u64 {
        get(image, first + MAP + 16)
    }
    workload_faults(
        "ctree",
        "alloc_meta=volatile",
        &[
            ("is of pool", |first, image| set(image, first + MAP + 8, 1)),
            ("below one for", |first, image| set(image, top(first, image), 64)),
            ("are told apart by bit", |first, image| {
                // The two sides change places.
                let node = top(first, image);
                for word in [8, 16, 24] {
                    let left = get(image, node + word);
                    set(image, node + word, get(image, node + word + 24));
                    set(image, node + word + 24, left);
                }
            }),
            ("and had 64 at the start", |first, image| {
                // The empty map.
                set(image, first + MAP + 8, 0);
                set(image, first + MAP + 16, 0);
            }),
        ],
    );
}

#[test]
fn hashmap_faults_are_told() {
    fn chain(first: u64, image: &Image<'_>) -> u64 {
        let buckets = get(image, first + MAP + 40);
        let heads = (0..get(image, buckets)).map(|bucket| buckets + 8 + 16 * bucket);
        heads.into_iter().find(|&head| get(image, head) != 0).expect("a chain")
    }
    workload_faults(
        "hashmap",
        "alloc_meta=volatile",
        &[
            ("entries and says", |first, image| {
                set(image, first + MAP + 24, get(image, first + MAP + 24) + 1);
            }),
            ("modulo 12", |first, image| set(image, first + MAP + 16, 12)),
            ("is of pool", |first, image| {
                let head = chain(first, image);
                set(image, head, 0);
            }),
            ("more nodes are linked", |first, image| {
                let entry = get(image, chain(first, image) + 8);
                let pool = get(image, chain(first, image));
                set(image, entry + 24, pool);
                set(image, entry + 32, entry);
            }),
            ("the value of key", |first, image| {
                let entry = get(image, chain(first, image) + 8);
                set(image, entry + 16, first + 64);
            }),
        ],
    );
}

#[test]
fn echo_faults_are_told() {
    // The version table of the first key of some bucket.
    fn table(master: u64, image: &Image<'_>) -> u64 {
        let heads = (0..get(image, master + 8)).map(|bucket| get(image, master) + 8 * bucket);
        heads.into_iter().map(|head| get(image, head)).find(|&table| table != 0).expect("a key")
    }
    // The record of the last merge; with eight puts it fills two lines.
    fn record(master: u64, image: &Image<'_>) -> u64 {
        get(image, master + 32) + get(image, master + 16) % 64 * 128
    }
    workload_faults(
        "echo",
        "value=64 key=16",
        &[
            ("buckets instead of 64", |master, image| set(image, master + 8, 0)),
            ("the record of snapshot", |master, image| {
                set(image, master + 16, get(image, master + 16) + 1);
            }),
            ("keys and says", |master, image| set(image, master + 24, 1)),
            ("is torn at word 1", |master, image| {
                let table = table(master, image);
                set(image, table + 32, 1);
            }),
            ("is in bucket", |master, image| {
                let (table, buckets) = (table(master, image), get(image, master));
                set(image, buckets, 0);
                set(image, buckets + 8, table);
                set(image, table, 0);
            }),
            ("says 7000", |master, image| {
                let version = get(image, table(master, image) + 8);
                set(image, version + 16, 7_000);
            }),
            ("not as many versions", |master, image| {
                let table = table(master, image);
                let newest = get(image, table + 8);
                if get(image, table + 16) == 1 {
                    set(image, newest + 32, newest);
                } else {
                    let older = get(image, newest + 32);
                    set(image, older + 32, newest);
                }
            }),
            ("has 63 bytes", |master, image| {
                let version = get(image, table(master, image) + 8);
                set(image, version + 8, 63);
            }),
            ("torn", |master, image| {
                let value = get(image, get(image, table(master, image) + 8));
                set(image, value + 8, 1);
            }),
            ("is of snapshot 100, whose record does not have it", |master, image| {
                set(image, record(master, image) + 24, 0);
            }),
            ("is of snapshot 0 and core 0, and the log says 100 and 0", |master, image| {
                let version = get(image, record(master, image) + 24);
                set(image, version + 24, 0);
            }),
            ("is of snapshot 100 and core 0, and the log says 100 and 3", |master, image| {
                set(image, record(master, image) + 8, 3);
            }),
        ],
    );
}
