//! Tests of where accesses find lines, which lines leave, and which movements are recorded.

use super::*;

mod reference;

const A: CoreId = CoreId(0);
const B: CoreId = CoreId(1);

/// Caches whose first level is 1 set of 2 ways, second level 1 of 4, and last level 2 of 4.
fn caches() -> Caches {
    let mut config = Config::default();
    (config.l1d.size, config.l1d.assoc) = (128, 2);
    (config.l2.size, config.l2.assoc) = (256, 4);
    (config.llc.size, config.llc.assoc) = (512, 4);
    Caches::new(2, &config, Watched { l1: true, l2: true })
}

fn load(caches: &mut Caches, core: CoreId, line: u64) -> Option<Access> {
    (!caches.hit(core, Line(line))).then(|| caches.access(core, Line(line), false))
}

fn store(caches: &mut Caches, core: CoreId, line: u64) -> Option<Access> {
    (!caches.hit_to_write(core, Line(line))).then(|| caches.access(core, Line(line), true))
}

#[test]
fn a_line_is_found_where_it_is() {
    let mut caches = caches();
    assert_eq!(load(&mut caches, A, 0).expect("a miss").found, Found::Memory);
    assert!(load(&mut caches, A, 0).is_none());
    load(&mut caches, A, 1);
    load(&mut caches, A, 2);
    assert_eq!(load(&mut caches, A, 0).expect("a miss").found, Found::L2);
    assert_eq!(load(&mut caches, B, 1).expect("a miss").found, Found::Elsewhere(A));
}

#[test]
fn an_exclusive_line_is_written_without_asking_and_a_shared_one_is_not() {
    let mut caches = caches();
    load(&mut caches, A, 0);
    assert!(store(&mut caches, A, 0).is_none());
    load(&mut caches, B, 0);
    assert_eq!(store(&mut caches, B, 0).expect("an upgrade").found, Found::Elsewhere(A));
    assert!(!caches.hit(A, Line(0)), "the other copy is gone");
    assert_eq!(caches.dirty_lines(), [Line(0)]);
}

#[test]
fn a_core_that_is_renamed_keeps_its_lines() {
    let mut caches = caches();
    store(&mut caches, A, 0);
    load(&mut caches, A, 1);
    load(&mut caches, B, 1);
    caches.rename(A, B);
    assert!(caches.hit_to_write(B, Line(0)));
    assert_eq!(load(&mut caches, A, 0).expect("a miss").found, Found::Elsewhere(B));
    assert!(caches.hit(A, Line(1)) && caches.hit(B, Line(1)));
}

/// The last level has four ways for the even lines. It sees an access only if the levels above
/// miss.
#[test]
fn the_line_leaves_the_last_level_that_it_was_asked_for_longest_ago() {
    let mut caches = caches();
    for line in [0, 2, 4, 6] {
        load(&mut caches, A, line);
    }
    load(&mut caches, B, 0);
    load(&mut caches, A, 8);
    let held = [0, 2, 4, 6, 8].map(|line| caches.holds(Line(line)));
    assert_eq!(held, [true, false, true, true, true]);
}

#[test]
fn a_line_that_leaves_the_last_level_leaves_all() {
    let mut caches = caches();
    store(&mut caches, A, 0);
    for line in [2, 4, 6] {
        load(&mut caches, B, line);
    }
    let access = load(&mut caches, B, 8).expect("a miss");
    assert_eq!(access.evicted, Some((Line(0), true)));
    assert!(!caches.hit(A, Line(0)));
    assert!(caches.dirty_lines().is_empty());
}

#[test]
fn cleaning_keeps_the_line_or_not() {
    let mut caches = caches();
    store(&mut caches, A, 0);
    assert!(caches.clean(Line(0)));
    assert!(!caches.clean(Line(0)), "it is clean now");
    assert!(store(&mut caches, A, 0).is_none(), "it is still owned");
    assert!(caches.take_out(Line(0)));
    assert!(!caches.holds(Line(0)));
}

#[test]
fn what_leaves_a_first_level_is_told() {
    let mut caches = caches();
    for line in 0..3 {
        store(&mut caches, A, line);
    }
    let mut left = Vec::new();
    caches.departures(&mut left);
    assert_eq!(left, [(A, Line(0))], "the first level has two ways");
    load(&mut caches, B, 1);
    caches.departures(&mut left);
    assert_eq!(left, [], "a copy stays");
    store(&mut caches, B, 1);
    caches.departures(&mut left);
    assert_eq!(left, [(A, Line(1))]);
    caches.take_out(Line(2));
    caches.departures(&mut left);
    assert_eq!(left, [(A, Line(2))]);
}

#[test]
fn what_comes_down_to_the_last_level_is_told() {
    let mut caches = caches();
    for line in 0..5 {
        store(&mut caches, A, line);
    }
    let mut down = Vec::new();
    caches.lowered(&mut down);
    assert_eq!(down, [(A, Line(0))], "the second level has four ways");
    load(&mut caches, B, 4);
    caches.lowered(&mut down);
    assert_eq!(down, [(A, Line(4))], "another core asked");
    assert!(caches.lower(Line(3)));
    assert!(!caches.lower(Line(3)), "the copy above is clean now");
    assert_eq!(caches.dirty_lines(), (0..5).map(Line).collect::<Vec<_>>());
    caches.lowered(&mut down);
    assert_eq!(down, [], "who lowers a line knows it");
}

#[test]
fn a_pinned_line_leaves_after_the_others() {
    let mut caches = caches();
    for line in [0, 2, 4, 6] {
        store(&mut caches, A, line);
    }
    caches.pinned.insert(Line(0));
    let evicted = |caches: &mut Caches, line| load(caches, B, line).expect("a miss").evicted;
    assert_eq!(evicted(&mut caches, 8), Some((Line(2), true)));
    caches.pinned.extend([4, 6, 8].map(Line));
    assert_eq!(evicted(&mut caches, 10), Some((Line(0), true)), "all are pinned");
}

#[test]
fn every_level_includes_the_ones_above() {
    let mut caches = caches();
    let mut state = 1_u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (core, line) = (CoreId((state >> 60 & 1) as u8), state >> 40 & 15);
        match state >> 33 & 7 {
            0 if state >> 36 & 1 == 0 => _ = caches.clean(Line(line)),
            0 => _ = caches.take_out(Line(line)),
            1 | 2 => _ = store(&mut caches, core, line),
            _ => _ = load(&mut caches, core, line),
        }
        for core in [A, B] {
            for entry in caches.l1[core].sets.entries.clone() {
                let below = caches.l2[core].peek(Line(entry >> 2));
                let agrees = |below: u64| (below & STATE == SHARED) == (entry & STATE == SHARED);
                assert!(entry == 0 || below.is_some_and(|below| agrees(*below)));
            }
            for cache in [&caches.l1[core], &caches.l2[core]] {
                let empty = cache.sets.entries.iter().filter(|&&entry| entry == 0).count();
                assert_eq!(cache.empty, empty);
            }
            for entry in caches.l2[core].sets.entries.clone() {
                let holds = entry == 0 || caches.holds(Line(entry >> 2));
                assert!(holds, "line {} is in a second level only", entry >> 2);
            }
        }
        one_writer(&mut caches);
    }
}

fn one_writer(caches: &mut Caches) {
    for line in (0..16).map(Line) {
        let state = |cache: &mut Private| cache.peek(line).map_or(0, |entry| *entry & STATE);
        let a = state(&mut caches.l2[A]).max(state(&mut caches.l1[A]));
        let b = state(&mut caches.l2[B]).max(state(&mut caches.l1[B]));
        assert!(a <= SHARED || b == 0, "{line:?}: {a} and {b}");
        assert!(b <= SHARED || a == 0, "{line:?}: {a} and {b}");
    }
}
