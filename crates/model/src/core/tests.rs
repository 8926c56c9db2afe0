//! What overlaps in a core, and what waits for what.

use super::*;

fn core(change: impl FnOnce(&mut Config)) -> Core {
    let mut config = Config::default();
    change(&mut config);
    Core::new(&config)
}

/// A word of a line, by its place there.
fn word(line: u64, place: u64) -> Word {
    Word(line * 8 + place)
}

fn miss(core: &mut Core, line: u64, known: Cycle, latency: u64) -> Cycle {
    assert!(core.dispatch(true));
    let (place, start) = core.miss_start(Line(line), known);
    core.load_miss(place, Line(line), start + latency)
}

#[test]
fn independent_misses_overlap_and_dependent_ones_do_not() {
    let mut apart = core(|_| ());
    for line in 0..4 {
        miss(&mut apart, line, Cycle(0), 300);
    }
    assert!(apart.drained() < Cycle(310));
    let mut chased = core(|_| ());
    let mut known = Cycle(0);
    for line in 0..4 {
        known = miss(&mut chased, line, known, 300);
    }
    assert_eq!(chased.drained(), Cycle(1200));
}

#[test]
fn the_reorder_buffer_bounds_what_a_miss_hides() {
    let mut core = core(|config| config.core.rob = 100);
    miss(&mut core, 0, Cycle(0), 300);
    assert_eq!(core.work(99), 0);
    assert_eq!(core.clock(), Cycle(25));
    assert_eq!(core.work(1), 0);
    assert_eq!(core.clock(), Cycle(300));
    assert_eq!(core.stalls()[Stall::LoadMiss as usize], 275);
}

#[test]
fn miss_status_registers_bound_the_overlap() {
    let mut core = core(|config| config.core.mshrs = 2);
    for line in 0..4 {
        miss(&mut core, line, Cycle(0), 300);
    }
    assert_eq!(core.drained(), Cycle(600));
}

#[test]
fn the_load_queue_bounds_the_overlap() {
    let mut core = core(|config| config.core.lq = 2);
    for line in 0..4 {
        miss(&mut core, line, Cycle(0), 300);
    }
    assert!(core.drained() >= Cycle(600));
}

#[test]
fn a_hit_on_a_line_under_way_waits_for_it() {
    let mut core = core(|_| ());
    miss(&mut core, 7, Cycle(0), 300);
    assert!(core.dispatch(true));
    assert_eq!(core.load_hit(word(7, 0), Cycle(0)), Cycle(300));
    assert_eq!(core.load_hit(word(8, 0), Cycle(0)), Cycle(4));
    miss(&mut core, 9, Cycle(300), 300);
    assert!(core.dispatch(true));
    assert_eq!(core.load_hit(word(7, 0), Cycle(0)), Cycle(300), "another miss came after");
}

/// The store that asked for the line does not keep the reorder buffer full; the load does.
#[test]
fn a_load_of_a_line_under_way_retires_when_it_is_there() {
    let mut core = core(|config| config.core.rob = 100);
    assert!(core.dispatch(true));
    let (place, start) = core.miss_start(Line(7), Cycle(0));
    core.store_miss(place, (word(7, 0), u64::MAX), start, start, start + 300);
    assert!(core.dispatch(true));
    assert_eq!(core.load_hit(word(7, 1), Cycle(0)), Cycle(300));
    assert_eq!(core.work(99), 0);
    assert!(core.clock() < Cycle(30), "{:?}", core.clock());
    assert_eq!(core.work(1), 0);
    assert_eq!(core.clock(), Cycle(300), "the reorder buffer is full");
    assert!(core.stalls()[Stall::LoadMiss as usize] > 270);
}

/// A load of a word that is stored whole has it from the store queue. Any other load of the line,
/// and one of a word of which the newest store has a part alone, waits for the line.
#[test]
fn the_store_queue_forwards_words_that_it_has_whole() {
    for in_order in [false, true] {
        let change = |config: &mut Config| {
            config.core.model = if in_order { CoreModel::InOrder } else { CoreModel::Window };
        };
        let load = |stored: &[(Word, u64)], wanted: Word, known: u64| {
            let mut core = core(change);
            for (index, &bits) in stored.iter().enumerate() {
                assert!(core.dispatch(true));
                core.make_room_for_store();
                if index == 0 {
                    let (place, start) = core.miss_start(Line(7), Cycle(0));
                    core.store_miss(place, bits, start, start, start + 300);
                } else {
                    core.store_hit(bits.0, bits.1);
                }
            }
            core.load_hit(wanted, Cycle(known)).0
        };
        let (whole, half) = ((word(7, 0), u64::MAX), (word(7, 0), 0xffff));
        assert_eq!(load(&[whole], word(7, 0), 0), 4, "in order: {in_order}");
        assert_eq!(load(&[half, whole], word(7, 0), 0), 4);
        assert_eq!(load(&[whole, (word(7, 1), u64::MAX)], word(7, 0), 0), 4);
        assert_eq!(load(&[whole], word(7, 1), 0), 300, "another word of the line");
        assert_eq!(load(&[half], word(7, 0), 0), 300, "half of the word");
        assert_eq!(load(&[whole, half], word(7, 0), 0), 300, "the newest store has half of it");
        assert_eq!(load(&[whole], word(7, 0), 400), 404, "the store has left");
    }
}

#[test]
fn stores_leave_in_order_and_a_full_queue_stalls() {
    let mut core = core(|config| config.core.sq = 2);
    for line in 0..3 {
        assert!(core.dispatch(true));
        core.make_room_for_store();
        let (place, start) = core.miss_start(Line(line), Cycle(0));
        core.store_miss(place, (word(line, 0), u64::MAX), start, start, start + 300);
    }
    assert!(core.stalls()[Stall::StoreBuffer as usize] >= 299);
}

#[test]
fn a_core_in_order_waits_for_each_load() {
    let mut core = core(|config| config.core.model = CoreModel::InOrder);
    for line in 0..2 {
        miss(&mut core, line, Cycle(0), 300);
    }
    assert!(core.clock() >= Cycle(600));
}

/// A fence retires behind the loads before it, and has nothing to do with the wait for them.
#[test]
fn the_wait_for_a_fence_is_first_one_for_the_loads_before_it() {
    for (done, expect) in [(Some(500), (100, 400)), (Some(100), (100, 0)), (None, (100, 400))] {
        let mut core = core(|_| ());
        miss(&mut core, 1, Cycle(0), 100);
        core.hold(done.map(Cycle), Holder::Fence);
        if done.is_none() {
            core.complete(Cycle(500));
        }
        core.settle();
        let stalls = core.stalls();
        let of = |stall: Stall| stalls[stall as usize];
        assert_eq!((of(Stall::LoadMiss), of(Stall::Fence)), expect, "{done:?}");
        assert_eq!(stalls.iter().sum::<u64>(), core.clock().0, "all of its time");
    }
}

#[test]
fn loads_pass_a_fence_that_is_not_done_until_the_reorder_buffer_is_full() {
    let mut core = core(|config| config.core.rob = 100);
    assert!(core.dispatch(false));
    core.hold(None, Holder::Fence);
    assert_eq!(miss(&mut core, 0, Cycle(0), 300), Cycle(300));
    assert_eq!(core.work(200), 102, "the fence and 99 more are in the reorder buffer");
    assert!(!core.dispatch(true));
    core.complete(Cycle(1000));
    assert_eq!(core.work(102), 0);
    assert_eq!(core.stalls()[Stall::Fence as usize], 1000 - 25);
    assert!(core.drained() >= Cycle(1000), "the load retires after the fence");
}

#[test]
fn a_fence_takes_no_place_of_the_load_queue() {
    let mut core = core(|config| config.core.lq = 2);
    core.hold(Some(Cycle(500)), Holder::Fence);
    for line in 0..2 {
        miss(&mut core, line, Cycle(0), 10);
        assert_eq!(core.front(), Cycle(0), "load {line}");
    }
    // The queue is full of loads that retire behind the fence.
    miss(&mut core, 2, Cycle(0), 10);
    assert_eq!(core.front(), Cycle(500));
}

#[test]
fn a_store_waits_for_the_fence_before_it() {
    let mut core = core(|_| ());
    core.hold(Some(Cycle(500)), Holder::Fence);
    assert!(!core.is_settled());
    core.settle();
    assert_eq!((core.clock(), core.is_settled()), (Cycle(500), true));
    core.hold(Some(Cycle(400)), Holder::Fence);
    assert!(core.is_settled(), "it is done already");
}

#[test]
fn what_follows_a_store_behind_a_fence_dispatches_before_the_fence_is_done() {
    let mut core = core(|config| config.core.rob = 100);
    assert!(core.dispatch(false));
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    assert!(core.dispatch(false));
    core.make_room_for_store();
    core.store_hit(word(1, 0), u64::MAX);
    assert_eq!(core.stored(), Cycle(501), "the store leaves after the fence");
    assert_eq!(miss(&mut core, 2, Cycle(0), 300), Cycle(300));
    assert_eq!((core.front(), core.clock()), (Cycle(0), Cycle(500)));
    assert_eq!(core.work(97), 0);
    assert_eq!((core.front(), core.clock()), (Cycle(25), Cycle(500)));
    assert_eq!(core.work(1), 0);
    assert_eq!(core.front(), Cycle(500), "the reorder buffer is full");
    assert_eq!(core.stalls()[Stall::Fence as usize], 500);
    assert_eq!(core.stalls().iter().sum::<u64>(), 500);
}

#[test]
fn a_line_that_was_flushed_away_is_not_asked_for_before() {
    let mut core = core(|_| ());
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    core.drops(Line(1), Cycle(500));
    assert_eq!(core.miss_start(Line(1), Cycle(0)).1, Cycle(500));
    assert_eq!(core.miss_start(Line(2), Cycle(0)).1, Cycle(0));
    core.drops(Line(3), Cycle(510));
    assert_eq!(core.miss_start(Line(1), Cycle(0)).1, Cycle(500), "another one left after it");
    assert_eq!(core.miss_start(Line(3), Cycle(0)).1, Cycle(510));
}

#[test]
fn stores_behind_a_fence_fill_the_store_queue() {
    let mut core = core(|config| config.core.sq = 2);
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    for _ in 0..2 {
        core.make_room_for_store();
        core.store_hit(word(1, 0), u64::MAX);
    }
    assert_eq!(core.front(), Cycle(0));
    core.make_room_for_store();
    assert_eq!(core.front(), Cycle(501));
}

/// A store that finds no room in a log for a cycle costs that cycle, and not what has dispatched
/// behind the fence before it.
#[test]
fn a_store_that_waits_for_room_keeps_what_is_behind_it_dispatching() {
    let mut core = core(|config| config.core.sq = 2);
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    core.make_room_for_store();
    core.store_hit(word(1, 0), u64::MAX);
    core.hold_store(Cycle(520), Stall::LogFull);
    assert_eq!((core.front(), core.clock(), core.stored()), (Cycle(0), Cycle(520), Cycle(520)));
    assert_eq!(core.stalls()[Stall::LogFull as usize], 20);
    core.resume(Cycle(525), Stall::LogFull);
    assert_eq!(core.stalls()[Stall::LogFull as usize], 25);
    core.resume(Cycle(530), Stall::StoreBuffer);
    assert_eq!((core.front(), core.clock()), (Cycle(0), Cycle(530)));
    assert_eq!(core.stalls()[Stall::StoreBuffer as usize], 5);
    core.store_past();
    assert_eq!(core.stored(), Cycle(531));
    core.make_room_for_store();
    assert_eq!(core.front(), Cycle(520), "the store queue is full");
    assert_eq!(core.stalls().iter().sum::<u64>(), 530);
}

#[test]
fn a_load_that_waits_for_its_turn_is_as_far_ahead_as_before() {
    let mut core = core(|_| ());
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    core.resume(Cycle(540), Stall::LoadMiss);
    assert_eq!((core.front(), core.clock()), (Cycle(40), Cycle(540)));
    core.resume(Cycle(600), Stall::Lock);
    assert_eq!((core.front(), core.clock()), (Cycle(600), Cycle(600)));
}

#[test]
fn nothing_passes_a_core_that_drains() {
    let mut core = core(|_| ());
    core.hold(Some(Cycle(500)), Holder::Fence);
    core.settle();
    assert_eq!((core.front(), core.drained()), (Cycle(0), Cycle(500)));
    core.drain(Stall::Lock);
    assert_eq!(core.front(), Cycle(500));
}

#[test]
fn nothing_passes_a_store_behind_a_fence_in_order_or_where_it_waits_at_dispatch() {
    let changes: [fn(&mut Config); 2] = [
        |config| config.core.model = CoreModel::InOrder,
        |config| config.core.fenced_stores = FencedStores::Dispatch,
    ];
    for change in changes {
        let mut core = core(change);
        core.hold(Some(Cycle(500)), Holder::Fence);
        core.settle();
        assert_eq!(core.front(), Cycle(500));
    }
}

fn store(core: &mut Core, line: u64, latency: u64) {
    assert!(core.dispatch(false));
    core.make_room_for_store();
    let (place, start) = core.miss_start(Line(line), Cycle(0));
    let asked = core.asks(start);
    core.store_miss(place, (word(line, 0), u64::MAX), start, asked, asked + latency);
}

#[test]
fn misses_of_stores_overlap_unless_one_store_is_in_flight() {
    for (stores_in_flight, left) in
        [(StoresInFlight::Many, [300, 301, 302]), (StoresInFlight::One, [300, 600, 604])]
    {
        let mut core = core(|config| config.core.stores_in_flight = stores_in_flight);
        let mut times = Vec::new();
        for line in 0..2 {
            store(&mut core, line, 300);
            times.push(core.stored().0);
        }
        core.make_room_for_store();
        core.store_hit(word(0, 0), u64::MAX);
        times.push(core.stored().0);
        assert_eq!(times, left);
        assert_eq!(core.clock(), Cycle(0), "they wait in the store queue");
    }
}

/// A store whose turn comes later asks for its line then, and leaves loads one register less while
/// it waits.
#[test]
fn a_store_that_is_in_flight_alone_has_a_register_of_its_own() {
    for (registers, loads) in [(1, [600, 900]), (2, [300, 600]), (3, [300, 300])] {
        let mut core = core(|config| {
            config.core.mshrs = registers;
            config.core.stores_in_flight = StoresInFlight::One;
        });
        store(&mut core, 0, 300);
        let arrive = [1, 2].map(|line| miss(&mut core, line, Cycle(0), 300).0);
        assert_eq!(arrive, loads, "{registers}");
    }
}

/// Unlike a fence, the flush has retired; unlike a store, it may be answered at an open time.
#[test]
fn a_flush_that_is_in_flight_alone_holds_back_stores_and_nothing_else() {
    let mut core =
        core(|config| (config.core.rob, config.core.stores_in_flight) = (100, StoresInFlight::One));
    core.hold_stores(None);
    assert!(!core.is_settled() && core.is_held_by_flush());
    assert_eq!((core.open(), core.work(400)), (Some(Holder::Flush), 0));
    assert_eq!(miss(&mut core, 0, Cycle(0), 300), Cycle(400));
    core.complete(Cycle(1000));
    core.settle();
    assert_eq!((core.front(), core.clock()), (Cycle(100), Cycle(1000)));
    assert_eq!(core.drained(), Cycle(1000));
    core.hold_stores(Some(Cycle(900)));
    assert!(core.is_settled(), "it is answered already");
}

#[test]
fn a_fence_behind_a_flush_in_flight_fills_the_reorder_buffer() {
    let mut core =
        core(|config| (config.core.rob, config.core.stores_in_flight) = (100, StoresInFlight::One));
    core.hold_stores(None);
    assert!(core.dispatch(false));
    core.hold(None, Holder::Fence);
    assert_eq!((core.open(), core.is_held_by_flush()), (Some(Holder::Fence), false));
    assert_eq!(core.work(200), 101, "the fence and 99 more are in the reorder buffer");
    core.complete(Cycle(1000));
    assert_eq!(core.work(101), 0);
    assert!(core.front() >= Cycle(1000));
}
