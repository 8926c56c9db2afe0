//! Time on several cores: the order in which cores act, the owners of locks, and wake-ups.

use std::cell::RefCell;
use std::rc::Rc;

use crate::common::{
    CIRCLES, HURRIES, Seen, WAITS, at, card, config, on, seen, try_on, try_on_design,
};
use model::calendar::{Calendar, Places};
use model::config::Walks;
use model::controller::Notify;
use model::design::{
    Bare, Below, Card, Design, Disposition, Evict, NoParams, NoRules, Progress, Setup, Tx,
};
use model::engine::Failure;
use model::meters::Stall;
use model::units::{CoreId, DRAM_BASE, Line};
use model::workload::{LockId, Ptr};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Operations that other cores can see happen in order of time, however far cores may run ahead.
#[test]
fn what_others_see_happens_in_order_of_time() {
    for quantum in [0, 20, 1_000] {
        let config = config(|config| config.core.quantum = quantum);
        on(&config, 4, None, |pm| {
            let own = u64::from(pm.core().0);
            for round in 0..50 {
                pm.begin()?;
                pm.store(at(1 + (own + round) % 5, own), round);
                pm.work((own + 1) * 7 + round % 3);
                _ = pm.load(at(10 + own, 0));
                pm.commit();
            }
            Ok(())
        });
        let (mut latest, mut count) = (0, 0);
        for seen in seen() {
            let at = match seen {
                Seen::Begin(_, at) | Seen::Store(_, at) | Seen::Commit(_, at) => at,
                _ => continue,
            };
            assert!(at >= latest, "quantum {quantum}: {at} after {latest}");
            latest = latest.max(at);
            count += 1;
        }
        assert_eq!(count, 4 * 50 * 3);
    }
}

/// At the same time, the core with the lower number comes first.
#[test]
fn a_tie_goes_to_the_lower_number() {
    on(&config(|_| ()), 3, None, |pm| {
        pm.work(100);
        pm.begin()?;
        pm.commit();
        Ok(())
    });
    let begins: Vec<CoreId> = seen()
        .into_iter()
        .filter_map(|seen| match seen {
            Seen::Begin(core, _) => Some(core),
            _ => None,
        })
        .collect();
    assert_eq!(begins, [0, 1, 2].map(CoreId));
}

/// A lock goes to the core that has waited longest.
#[test]
fn a_lock_goes_to_whoever_asked_first() {
    // When each core asks, in instructions; the first one holds the lock for long.
    for (asks, expect) in [
        ([0, 100, 200, 300], [0, 1, 2, 3]),
        ([0, 300, 200, 100], [0, 3, 2, 1]),
        ([300, 0, 100, 200], [1, 2, 3, 0]),
    ] {
        let order = Rc::new(RefCell::new(Vec::new()));
        let had = Rc::clone(&order);
        let outcome = on(&config(|_| ()), 4, None, move |pm| {
            pm.work(asks[usize::from(pm.core().0)] * 4);
            pm.lock(LockId(0));
            had.borrow_mut().push(u64::from(pm.core().0));
            pm.work(8_000);
            pm.unlock(LockId(0));
            Ok(())
        });
        assert_eq!(*order.borrow(), expect, "{asks:?}");
        let waited = outcome.report.cores.stalls[Stall::Lock as usize];
        assert!(waited > 3 * 2_000, "{waited} core-cycles of waiting");
    }
}

/// A lock that nobody waits for is free when the stores of who had it have left, and not before.
#[test]
fn a_lock_is_free_when_the_stores_before_its_release_have_left() {
    let config = config(|config| config.pm.t_read = 10_000_000);
    on(&config, 2, None, |pm| {
        pm.work(4_000 * u64::from(pm.core().0));
        pm.lock(LockId(0));
        pm.store(at(1 + u64::from(pm.core().0), 0), 1);
        pm.unlock(LockId(0));
        Ok(())
    });
    let stores: Vec<Seen> = seen();
    let [Seen::Store(CoreId(0), first), Seen::Store(CoreId(1), second)] = stores[..] else {
        panic!("{stores:?}");
    };
    assert!(first < 1_000 && second >= 10_000, "at {first} and {second}");
}

/// What follows a lock begins when the core has the lock, as behind any instruction that is locked.
#[test]
fn a_load_does_not_pass_a_lock() {
    let cycles = |loads: bool| {
        let outcome = on(&config(|config| config.pm.t_read = 1_000_000), 1, None, move |pm| {
            pm.lock(LockId(0));
            if loads {
                pm.load(at(1, 0));
            }
            pm.unlock(LockId(0));
            Ok(())
        });
        outcome.report.cycles
    };
    let more = cycles(true) - cycles(false);
    assert!(more >= 1_000, "the load takes {more} cycles behind the lock");
}

/// The line of a lock moves once from who gives it back to who waits for it.
#[test]
fn the_line_of_a_lock_moves_once() {
    let cycles = |transfer: u64| {
        let config = config(|config| config.llc.transfer = transfer * 1_000);
        let outcome = on(&config, 2, None, |pm| {
            pm.work(100 * u64::from(pm.core().0));
            pm.lock(LockId(0));
            pm.work(10_000);
            pm.unlock(LockId(0));
            Ok(())
        });
        outcome.report.cycles
    };
    // The one that waits stores to the line twice, and has it from the first time on.
    assert_eq!(cycles(500), cycles(0) + 500);
}

/// Between a lock and its release no other core holds it, and the stores of earlier holders are
/// seen.
#[test]
fn a_counter_behind_a_lock_loses_nothing() {
    for quantum in [0, 1_000] {
        let values = Rc::new(RefCell::new(Vec::new()));
        let saw = Rc::clone(&values);
        on(&config(|config| config.core.quantum = quantum), 4, None, move |pm| {
            for _ in 0..50 {
                pm.lock(LockId(3));
                let value = pm.load(at(1, 0));
                saw.borrow_mut().push(value);
                pm.work(value % 11);
                pm.store(at(1, 0), value + 1);
                pm.unlock(LockId(3));
            }
            Ok(())
        });
        assert_eq!(*values.borrow(), (0..200).collect::<Vec<u64>>(), "quantum {quantum}");
    }
}

#[test]
fn programs_that_wait_for_each_other_are_reported() {
    let failure = try_on(&config(|_| ()), 2, None, |pm| {
        let own = u32::from(pm.core().0);
        pm.lock(LockId(own));
        pm.work(1_000);
        pm.lock(LockId(1 - own));
        Ok(())
    });
    let Err(Failure::Deadlock(text)) = failure else { panic!("they go on") };
    let since = |core| format!("core {core} has waited for a lock since cycle ");
    assert!(text.starts_with(&since(0)) && text.contains(&since(1)), "{text}");
    assert!(text.ends_with(", and nothing is due"), "{text}");
}

#[test]
fn a_hook_that_has_a_core_wait_and_never_wakes_it_is_reported_by_its_name() {
    let failure = try_on(&config(|_| ()), 2, None, |pm| {
        pm.work(1_000);
        pm.store(at(1 + u64::from(pm.core().0), 0), WAITS);
        Ok(())
    });
    let Err(Failure::Deadlock(text)) = failure else { panic!("they go on") };
    let parts: Vec<&str> = text.split(", ").collect();
    assert_eq!(parts.len(), 3, "{text}");
    for (core, part) in parts[..2].iter().enumerate() {
        assert!(part.starts_with(&format!("core {core}'s `store` answered WAIT at cycle ")));
        assert!(part.ends_with(" and was never woken"), "{text}");
    }
    assert_eq!(parts[2], "and nothing is due");
}

/// A design whose commit waits until a line leaves the caches.
struct Waiting(Option<CoreId>);

impl Design for Waiting {
    const CARD: Card = card("waiting", "commits when a line leaves");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Waiting>) -> Waiting {
        Waiting(None)
    }
    fn commit(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        self.0 = Some(tx.core);
        Progress::Wait
    }
    fn evict(&mut self, evict: &Evict, below: &mut Below<()>) -> Disposition<()> {
        if let Some(core) = self.0.take() {
            below.wake(core, evict.at);
        }
        Disposition::Home { at: evict.at, notify: Notify::Nobody }
    }
}

/// A core that is woken when a line leaves goes on before anything else happens, also if an access
/// of volatile memory, or a store past the caches, drives the line out.
#[test]
fn a_wake_from_the_caches_is_heard_at_once() {
    for way in ["load", "store", "past"] {
        let outcome = try_on_design::<Waiting>(&config(|_| ()), 2, None, (0, 1), move |pm| {
            if pm.core() == CoreId(0) {
                pm.begin()?;
                pm.store(at(1, 0), 1);
                pm.commit();
                return Ok(());
            }
            pm.work(1_000);
            // As many lines of its set as the last level has.
            for line in 1..=4 {
                let volatile = Ptr::to(DRAM_BASE + 64 * (1 + 4 * line));
                match way {
                    "load" => _ = pm.load(volatile),
                    "store" => pm.store(volatile, 2),
                    _ => pm.store_past_caches(at(1, 0), 3),
                }
            }
            pm.work(1_000);
            _ = pm.load(at(40, 0));
            Ok(())
        });
        assert_eq!(outcome.expect("the commit ends").report.transactions.ended, 1, "{way}");
    }
}

/// A design whose events follow each other in one cycle neither lets its cores go on nor hangs.
#[test]
fn events_without_end_are_reported() {
    for cores in [1, 2] {
        let failure = try_on(&config(|_| ()), cores, None, |pm| {
            pm.store(at(1 + u64::from(pm.core().0), 0), CIRCLES);
            pm.work(1_000);
            _ = pm.load(at(10, 0));
            Ok(())
        });
        let Err(Failure::Deadlock(text)) = failure else { panic!("they go on") };
        assert!(text.starts_with("at cycle ") && text.contains("for ever"), "{text}");
    }
}

/// A design that answers with a time that has passed is reported with its name and the hook's.
#[test]
#[should_panic(expected = "design watcher: `store` was asked at cycle ")]
fn an_answer_from_the_past_ends_the_run() {
    on(&config(|_| ()), 1, None, |pm| {
        pm.work(1_000);
        pm.store(at(1, 0), HURRIES);
        Ok(())
    });
}

/// Inclusion: when the last level lets a line go, private caches lose it too, and what leaves is
/// the newest of its bytes, which only a first level had.
#[test]
fn a_line_that_the_last_level_lets_go_carries_the_newest_bytes() {
    let config = config(|config| {
        (config.l2.size, config.l2.assoc) = (256, 4);
        (config.llc.size, config.llc.assoc) = (256, 1);
    });
    on(&config, 2, None, |pm| {
        pm.store(at(1, 0), 1);
        if pm.core() == CoreId(0) {
            pm.store(at(1, 0), 2);
            // The private levels have room for both lines, and the last level has not.
            for line in (5..200).step_by(4) {
                _ = pm.load(at(line, 0));
                if line < 80 {
                    pm.store(at(1, 3), line);
                }
            }
        }
        Ok(())
    });
    let mut evicted = Vec::new();
    for seen in seen() {
        if let Seen::Evict(line, data) = seen {
            assert_eq!(line, Line(1), "nothing else was stored to");
            evicted.push(u64::from_le_bytes(data[24..32].try_into().expect("8 bytes")));
        }
    }
    assert!(evicted.len() > 1, "it was let go while in use: {evicted:?}");
    assert!(evicted.is_sorted(), "{evicted:?}");
    assert_eq!(evicted.last(), Some(&77));
}

/// A load whose address is known late starts late; one that is known now does not wait for it.
#[test]
fn dependent_loads_wait_and_independent_ones_do_not() {
    let cycles = |dependent: bool| {
        let outcome = on(&config(|config| config.pm.banks = 16), 1, None, move |pm| {
            let mut known = Ptr::to(0).known;
            for index in 0..8 {
                let from = Ptr { known, ..at(4 * index + 1, 0) };
                let next = pm.load_ptr(from);
                if dependent {
                    known = next.known;
                }
            }
            Ok(())
        });
        outcome.report.cycles
    };
    let (chased, together) = (cycles(true), cycles(false));
    assert!(chased > 3 * together, "{chased} cycles one by one, {together} together");
}

/// A walk that hits a line of the page table that another walk has asked for waits until it is
/// there: a page's first load cannot be faster because its neighbour is walked to at the same time.
#[test]
fn a_walk_waits_for_the_line_of_the_table_that_it_hits() {
    let config = config(|config| {
        config.tlb.walks = Walks::All;
        config.pm.banks = 16;
    });
    let cycles = |neighbour: bool| {
        let outcome = on(&config, 1, None, move |pm| {
            if neighbour {
                _ = pm.load(at(2 * 64 + 7, 0));
            }
            let mut known = Ptr::to(0).known;
            for index in 0..4 {
                known = pm.load_ptr(Ptr { known, ..at(64 + 4 * index + 1, 0) }).known;
            }
            Ok(())
        });
        outcome.report.cycles
    };
    let (alone, together) = (cycles(false), cycles(true));
    assert!(together >= alone, "{together} cycles with the neighbour, {alone} without");
}

/// A load waits for the walk of another load of its page: it cannot be faster than without that.
#[test]
fn a_load_waits_for_the_walk_that_brings_its_page() {
    let config = config(|config| (config.tlb.walks, config.pm.banks) = (Walks::All, 16));
    let cycles = |another: bool| {
        let outcome = on(&config, 1, None, move |pm| {
            if another {
                pm.load(at(64 + 1, 0));
            }
            let first = pm.load_ptr(at(64 + 5, 0));
            pm.load(Ptr { known: first.known, ..at(64 + 9, 0) });
            Ok(())
        });
        outcome.report.cycles
    };
    let (alone, after) = (cycles(false), cycles(true));
    assert!(after >= alone, "{after} cycles after another load of the page, {alone} without");
}

/// A walk begins when its load dispatches, also if the address was known long before.
#[test]
fn a_walk_takes_as_long_for_an_address_that_was_known_before() {
    let walk = |work: u64| {
        let cycles = |walks| {
            let config = config(|config| config.tlb.walks = walks);
            let outcome = on(&config, 1, None, move |pm| {
                pm.work(work);
                pm.load(at(64 + 1, 0));
                Ok(())
            });
            outcome.report.cycles
        };
        cycles(Walks::All) - cycles(Walks::Designs)
    };
    assert_eq!(walk(10_000), walk(0));
}

/// A store asks for its line when its page is translated, as a load does: a walk takes as long
/// before either.
#[test]
fn a_store_asks_for_its_line_when_its_page_is_translated() {
    let cycles = |walks, stores: bool| {
        let config = config(|config| config.tlb.walks = walks);
        let outcome = on(&config, 1, None, move |pm| {
            match stores {
                true => pm.store(at(64 + 1, 0), 1),
                false => _ = pm.load(at(64 + 1, 0)),
            }
            Ok(())
        });
        outcome.report.cycles
    };
    let walk = |stores| cycles(Walks::All, stores) - cycles(Walks::Designs, stores);
    let (before_a_load, before_a_store) = (walk(false), walk(true));
    assert!(before_a_load > 50, "{before_a_load} cycles");
    assert_eq!(before_a_store, before_a_load);
}

#[test]
fn volatile_memory_is_no_business_of_persistence() {
    let outcome = on(&config(|_| ()), 1, None, |pm| {
        for line in 0..100 {
            pm.store(Ptr::to(DRAM_BASE + 4096 + 64 * line), 1);
            pm.flush(Ptr::to(DRAM_BASE + 4096 + 64 * line));
        }
        pm.durable();
        Ok(())
    });
    assert_eq!(outcome.report.meters.wpq_writes, 0);
    assert_eq!(seen(), []);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::with_cases(2_000)
    })]

    /// A request gets the first interval that is free, at or after its time; none overlap.
    #[test]
    fn a_calendar_gives_the_first_free_interval(
        requests in prop::collection::vec((0_u64..200, 1_u64..30, 0_u64..4), 1..80),
    ) {
        let mut calendar = Calendar::default();
        let mut taken: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for (ahead, duration, advance) in requests {
            now += advance;
            let at = now + ahead;
            let free = |start: u64| {
                start >= at && taken.iter().all(|&(from, to)| start + duration <= from || to <= start)
            };
            let ends = taken.iter().map(|&(_, end)| end);
            let expect = ends.chain([at]).filter(|&start| free(start)).min().expect("after all");
            let idle = taken.iter().all(|&(from, to)| at < from || to <= at);
            prop_assert_eq!(calendar.free_from(at) == at, idle);
            let start = calendar.reserve(at, duration, now);
            prop_assert_eq!(start, expect);
            taken.push((start, start + duration));
        }
    }

    /// No more requests are in than there are places, and each starts as soon as one is free.
    #[test]
    fn places_hold_so_many_and_no_more(
        places in 1_u64..5,
        requests in prop::collection::vec((0_u64..20, 1_u64..30), 1..60),
    ) {
        let mut pool = Places::new(places);
        let mut inside: Vec<(u64, u64)> = Vec::new();
        let mut at = 0;
        for (gap, duration) in requests {
            at += gap;
            let (place, start) = pool.first_free(at);
            prop_assert!(start >= at);
            pool.take(place, start + duration);
            inside.push((start, start + duration));
            let count = inside.iter().filter(|&&(from, to)| from <= start && start < to).count();
            prop_assert!(count as u64 <= places);
            let full = |time: u64| {
                let inside = inside[..inside.len() - 1].iter();
                inside.filter(|&&(from, to)| from <= time && time < to).count() as u64 == places
            };
            prop_assert!(start == at || full(start - 1), "it waited for nothing");
        }
    }
}

/// A line is with one core after the other, also while it is on its way.
#[test]
fn a_line_goes_from_core_to_core_one_way_after_the_other() {
    let (cores, stores) = (8, 50);
    let outcome = on(&config(|_| ()), cores, None, move |pm| {
        for value in 0..stores {
            pm.store(at(1, 0), value);
        }
        Ok(())
    });
    // Another core's cache is 3 cycles away, and a core has 4 stores in its turn.
    let least = 3 * u64::from(cores) * stores / 4;
    assert!(outcome.report.cycles > least, "{} cycles", outcome.report.cycles);
}

/// Who shares a line before it has come from memory has it no earlier, whichever core that is.
#[test]
fn a_line_that_cores_share_while_it_is_on_its_way_is_there_for_none_of_them() {
    let config = config(|config| (config.pm.banks, config.pm.t_read) = (2, 1_000_000));
    let outcome = on(&config, 3, None, |pm| {
        pm.work(20 * u64::from(pm.core().0));
        let first = pm.load_ptr(at(1, 0));
        if pm.core() == CoreId(2) {
            // A line of the other bank.
            pm.load(Ptr { known: first.known, ..at(5, 0) });
        }
        Ok(())
    });
    assert!(outcome.report.cycles >= 2_000, "{} cycles", outcome.report.cycles);
}
