//! Stores past the caches: when they leave, and what the write-combining buffers limit.

use crate::common::{at, config, on};
use model::config::Config;
use model::meters::Class;
use model::units::{CoreId, DRAM_BASE};
use model::workload::{LockId, Pm, Ptr, Step};

const LINE: [u64; 8] = [7; 8];

/// Cycles of a program on one core, whose queue holds all that it writes, and the bytes that the
/// queue accepts.
fn run(
    change: impl FnOnce(&mut Config),
    body: impl Fn(&mut Pm<'_>) -> Step + 'static,
) -> (u64, u64) {
    let config = config(|config| {
        config.controller.wpq = 64;
        change(config);
    });
    let report = on(&config, 1, None, body).report;
    (report.cycles, report.meters.wpq_bytes[Class::Data as usize])
}

fn lines(pm: &mut Pm<'_>) -> Step {
    for line in 0..32 {
        pm.store_words_past_caches(at(line, 0), &LINE);
    }
    pm.durable();
    Ok(())
}

#[test]
fn a_buffer_that_was_sent_is_in_use_until_it_is_answered() {
    let with = |buffers| run(move |config| config.core.wc_buffers = buffers, lines);
    let (many, one) = (with(32), with(1));
    assert_eq!((many.1, one.1), (32 * 64, 32 * 64));
    // A cycle there, two in the controller's front end, one back.
    assert!(one.0 >= 32 * 4, "{} cycles with one buffer", one.0);
    assert!(many.0 < 32 + 20, "{} cycles with enough", many.0);
    assert_eq!(with(6), many, "as many as are under way at once, and the one that gathers");
}

/// A store to volatile memory also keeps its buffer until its answer has come: there, through the
/// controller's front end, and back.
#[test]
fn a_buffer_of_volatile_memory_is_in_use_until_it_is_answered() {
    let with = |buffers| {
        let change = move |config: &mut Config| {
            (config.core.wc_buffers, config.controller.path) = (buffers, 10_000);
        };
        let volatile = |pm: &mut Pm<'_>| {
            for line in 0..32 {
                pm.store_words_past_caches(Ptr::to(DRAM_BASE + 64 * line), &LINE);
            }
            pm.durable();
            Ok(())
        };
        run(change, volatile).0
    };
    assert!(with(1) >= 32 * 22, "{} cycles with one buffer", with(1));
    assert!((16 * 22..20 * 22).contains(&with(2)), "{} cycles with two", with(2));
    assert!(with(32) < 32 + 30, "{} cycles with enough", with(32));
}

/// A controller takes a line of volatile memory as late as one of persistent memory in the domain
/// `adr`, and a fence waits for either: past the caches, and out of them.
#[test]
fn a_fence_takes_as_long_over_volatile_memory() {
    let rounds = |rounds: u64, line: Ptr, cached: bool| {
        let body = move |pm: &mut Pm<'_>| {
            for round in 0..rounds {
                if cached {
                    pm.store(line, round);
                    pm.flush(line);
                } else {
                    pm.store_words_past_caches(line, &[round; 8]);
                }
                pm.durable();
            }
            Ok(())
        };
        run(|config| config.controller.path = 10_000, body).0
    };
    for cached in [true, false] {
        // Without the first, which brings the line in.
        let each = |line| (rounds(9, line, cached) - rounds(1, line, cached)) / 8;
        let (persistent, volatile) = (each(at(1, 0)), each(Ptr::to(DRAM_BASE + 64)));
        assert_eq!(persistent, volatile, "cached: {cached}");
        assert!(persistent >= 10 + 2 + 10, "{persistent} cycles");
    }
}

#[test]
fn a_full_queue_holds_stores_past_the_caches_back() {
    let (cycles, bytes) = run(
        |config| (config.controller.wpq, config.core.wc_buffers) = (1, 2),
        |pm| {
            lines(pm)?;
            pm.work(1);
            Ok(())
        },
    );
    assert!(cycles >= 30 * 100, "{cycles} cycles of which the only bank takes 100 a line");
    assert_eq!(bytes, 32 * 64);
}

#[test]
fn lines_that_are_not_full_make_room_for_others() {
    let parts = |buffers| {
        run(
            move |config| config.core.wc_buffers = buffers,
            |pm| {
                for line in 0..8 {
                    pm.store_past_caches(at(line, 0), 1);
                }
                pm.durable();
                Ok(())
            },
        )
    };
    let (few, enough) = (parts(2), parts(8));
    assert_eq!((few.1, enough.1), (64, 64));
    assert!(few.0 > enough.0, "{} and {} cycles", few.0, enough.0);
}

#[test]
fn a_line_at_once_is_one_store() {
    let words = |pm: &mut Pm<'_>| {
        for line in 0..32 {
            for word in 0..8 {
                pm.store_past_caches(at(line, word), 7);
            }
        }
        pm.durable();
        Ok(())
    };
    let (line, word) = (run(|_| (), lines), run(|_| (), words));
    assert_eq!(line.1, word.1);
    assert!(word.0 > 4 * line.0, "{} cycles by the word, {} by the line", word.0, line.0);
}

#[test]
fn a_full_buffer_leaves_when_its_stores_have_left() {
    let load = |pm: &mut Pm<'_>| {
        pm.load(at(100, 0));
    };
    let (alone, _) = run(
        |_| (),
        move |pm| {
            load(pm);
            pm.durable();
            Ok(())
        },
    );
    let (both, _) = run(
        |_| (),
        move |pm| {
            load(pm);
            pm.store_words_past_caches(at(1, 0), &LINE);
            pm.durable();
            Ok(())
        },
    );
    assert!(both >= alone + 4, "{both} cycles, {alone} for the load");
}

/// A store past the caches behind a fence takes its line out of them, and a load behind that asks
/// for the line no earlier: it does not have the line from before the fence.
#[test]
fn a_line_that_leaves_the_caches_is_not_asked_for_before() {
    let ends = |again: bool| {
        let body = move |pm: &mut Pm<'_>| {
            pm.load(at(1, 0));
            pm.store(at(20, 0), 1);
            pm.flush(at(20, 0));
            pm.durable();
            pm.store_past_caches(at(1, 1), 2);
            if again {
                pm.load(at(1, 0));
            }
            Ok(())
        };
        run(|config| (config.controller.path, config.pm.banks) = (100_000, 16), body).0
    };
    let more = ends(true) - ends(false);
    assert!(more >= 200, "the load ends {more} cycles after the store");
}

/// A lock sends what the buffers gather, as an instruction that is locked does, and so does a core
/// that its thread leaves.
#[test]
fn a_lock_and_a_thread_that_moves_send_what_the_buffers_gather() {
    let part = |pm: &mut Pm<'_>| pm.store_past_caches(at(1, 0), 1);
    let stays = move |pm: &mut Pm<'_>| {
        part(pm);
        Ok(())
    };
    assert_eq!(run(|_| (), stays).1, 0, "nothing has it sent");
    let locks = move |pm: &mut Pm<'_>| {
        part(pm);
        pm.lock(LockId(0));
        pm.unlock(LockId(0));
        Ok(())
    };
    assert_eq!(run(|_| (), locks).1, 8);
    let moves = move |pm: &mut Pm<'_>| {
        part(pm);
        pm.store(Ptr::to(DRAM_BASE + 64), 1);
        Ok(())
    };
    assert_eq!(run(|config| config.core.migrate = 2, moves).1, 8);
}

/// A store of another core to a line that a buffer gathers has the buffer sent in that moment.
#[test]
fn a_buffer_that_another_core_has_sent_leaves_then_and_not_before() {
    let outcome = on(&config(|_| ()), 2, None, |pm| {
        if pm.core() == CoreId(0) {
            pm.store_past_caches(at(1, 0), 1);
            return Ok(());
        }
        // The controller accepts this line, and drains it, before that store.
        pm.store(at(9, 0), 1);
        pm.flush(at(9, 0));
        pm.durable();
        pm.work(10_000);
        pm.store_past_caches(at(1, 1), 2);
        pm.durable();
        Ok(())
    });
    assert_eq!(outcome.report.meters.wpq_bytes[Class::Data as usize], 64 + 8 + 8);
}

#[test]
#[should_panic(expected = "the words lie in one line")]
fn words_of_two_lines_are_no_store() {
    let mut view = model::contents::View::new(1 << 20, 1 << 20).expect("room");
    let mut pm = Pm::plain(&mut view, model::units::CoreId(0));
    pm.store_words_past_caches(at(0, 4), &LINE);
}
