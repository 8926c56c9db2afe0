//! The measured region: the part of a run that is counted.

use crate::common::{Watcher, at, card, config, on, try_on_design};
use model::config::Walks;
use model::design::{Abort, Bare, Below, Card, Design, NoParams, NoRules, Progress, Setup, Tx};
use model::engine::Outcome;
use model::meters::Stall;
use model::report::{Accesses, LastLevel, Report};
use model::units::{CoreId, Cycle, DRAM_BASE};
use model::workload::{Pm, Ptr, Step};

/// A design that counts commits, each of which takes 50 cycles.
struct Counting {
    commits: u64,
}

impl Design for Counting {
    const CARD: Card = card("counting", "counts commits");
    type Params = NoParams;
    type Rules = NoRules;
    type Event = ();
    type Library = Bare;

    fn new(_setup: &Setup<'_, Counting>) -> Counting {
        Counting { commits: 0 }
    }

    fn commit(&mut self, tx: &Tx, _below: &mut Below<()>) -> Progress {
        self.commits += 1;
        Progress::Done(tx.at + 50)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("commits", self.commits), ("commits_max", self.commits)]
    }
}

/// A transaction that writes a line, so often before the measured region and so often in it.
fn transactions(warmup: u64, measured: u64) -> Outcome {
    let body = |pm: &mut Pm<'_>| -> Step {
        pm.begin()?;
        pm.store(at(1, 0), 7);
        pm.commit();
        pm.store_words_past_caches(at(2, 0), &[7; 8]);
        // The write arrives before the next transaction.
        pm.work(1_000);
        Ok(())
    };
    let outcome = try_on_design::<Counting>(&config(|_| ()), 1, None, (warmup, measured), body);
    outcome.expect("the run ends")
}

#[test]
fn what_was_counted_in_the_warm_up_is_left_out() {
    for warmup in [0, 1, 7] {
        let report = transactions(warmup, 3).report;
        assert_eq!((report.transactions.ended, report.transactions.commits), (3, 3));
        assert_eq!(report.meters.wpq_writes, 3, "after {warmup} transactions");
        assert_eq!(report.counters, [("commits", 3), ("commits_max", warmup + 3)]);
        assert_eq!(
            (report.transactions.write_sets.transactions, report.transactions.write_sets.stores),
            (3, 3)
        );
    }
}

#[test]
fn the_latency_of_a_commit_is_from_its_beginning_to_its_acknowledgement() {
    let latency = transactions(2, 5).report.transactions.commit_latency;
    assert_eq!((latency.len(), latency.min(), latency.max()), (5, 50, 50));
}

/// A commit begins when every load before it has its value. A commit that does not wait is over
/// when its stores have left the core; the program goes on earlier.
#[test]
fn a_commit_that_does_not_wait_takes_until_its_stores_have_left() {
    let latency = |t_read: u64, body: fn(&mut Pm<'_>)| {
        let transaction = move |pm: &mut Pm<'_>| -> Step {
            pm.begin()?;
            body(pm);
            pm.commit();
            pm.work(1);
            Ok(())
        };
        let config = config(|config| config.pm.t_read = t_read * 1_000);
        let report = on(&config, 1, None, transaction).report;
        (report.transactions.commit_latency.max(), report.cores.stalls[Stall::Commit as usize])
    };
    let store: fn(&mut Pm<'_>) = |pm| pm.store(at(1, 0), 7);
    let load: fn(&mut Pm<'_>) = |pm| _ = pm.load(at(1, 0));
    for (body, longer) in [(store, 100), (load, 0)] {
        let (short, long) = (latency(10, body), latency(110, body));
        assert_eq!((long.0 - short.0, long.1), (longer, 0));
    }
}

#[test]
fn the_instructions_of_all_cores_are_counted_once() {
    for cores in [1, 3] {
        let count = |work| {
            let outcome = on(&config(|_| ()), cores, None, move |pm| {
                pm.work(work);
                Ok(())
            });
            outcome.report.cores.instructions
        };
        assert_eq!(count(1_000) - count(0), 1_000 * u64::from(cores));
        assert_eq!(count(0), 0);
    }
}

/// Returns a program's requests to the caches in its measured region.
fn accesses(cores: u8, warmup: u64, body: fn(&mut Pm<'_>)) -> Accesses {
    measured(cores, warmup, body).accesses
}

fn measured(cores: u8, warmup: u64, body: fn(&mut Pm<'_>)) -> Report {
    let body = move |pm: &mut Pm<'_>| -> Step {
        body(pm);
        Ok(())
    };
    let outcome = try_on_design::<Watcher>(&config(|_| ()), cores, None, (warmup, 1), body);
    outcome.expect("the run ends").report
}

#[test]
fn accesses_are_counted_by_what_they_are() {
    let seen = accesses(1, 0, |pm| {
        pm.load(at(1, 0));
        pm.load(at(1, 1));
        pm.store(at(1, 0), 7);
        pm.flush(at(1, 0));
        pm.durable();
    });
    assert_eq!((seen.operations, seen.loads, seen.stores), (5, 2, 1));
    assert_eq!((seen.flushes, seen.fences, seen.walks), (1, 1, 0));
    assert_eq!((seen.l1_misses(), seen.in_pm), (1, 1), "the first load");
}

#[test]
fn misses_are_counted_by_who_had_the_line() {
    // The first level has room for two lines, in one set.
    let body: fn(&mut Pm<'_>) =
        |pm| [1, 2, 3, 1].into_iter().for_each(|line| _ = pm.load(at(line, 0)));
    let cold = accesses(1, 0, body);
    assert_eq!((cold.in_pm, cold.in_l2, cold.l1_misses()), (3, 1, 4));
    let warm = accesses(1, 1, body);
    assert_eq!((warm.in_pm, warm.in_l2), (0, 3), "line 1 is the newest of its set");
    let volatile = accesses(1, 0, |pm| _ = pm.load(Ptr::to(DRAM_BASE + 4096)));
    assert_eq!((volatile.in_dram, volatile.in_pm), (1, 0));
    let shared = accesses(2, 0, |pm| pm.store(at(1, 0), 7));
    assert_eq!((shared.in_pm, shared.elsewhere, shared.l2_misses()), (1, 1, 2));
}

/// The last level has four ways, and the lines go to one of its sets.
#[test]
fn dirty_lines_that_leave_the_caches_are_counted() {
    let seen = accesses(1, 0, |pm| (0..6).for_each(|turn| pm.store(at(4 * turn + 1, 0), 7)));
    assert_eq!((seen.pm_evictions, seen.dram_evictions), (2, 0));
}

/// A warm-up makes the same lines dirty, one of which is then flushed.
#[test]
fn dirty_lines_of_the_last_level_are_counted_before_and_after() {
    let body: fn(&mut Pm<'_>) = |pm| {
        (1..=3).for_each(|line| pm.store(at(line, 0), 7));
        pm.flush(at(1, 0));
        pm.durable();
        pm.load(at(4, 0));
    };
    let lines = config(|_| ()).llc.size / 64;
    let cold = LastLevel { lines, dirty_at_start: 0, dirty_at_end: 2 };
    assert_eq!(measured(1, 0, body).last_level, cold);
    assert_eq!(measured(1, 1, body).last_level, LastLevel { dirty_at_start: 2, ..cold });
}

/// A thread that moves leaves its translations behind, as it does its lines.
#[test]
fn a_thread_that_moves_walks_to_its_pages_anew() {
    let walks = |migrate: u64| {
        let config =
            config(|config| (config.tlb.walks, config.core.migrate) = (Walks::All, migrate));
        let body = |pm: &mut Pm<'_>| -> Step {
            pm.load(at(64 + 1, 0));
            pm.store(Ptr::to(DRAM_BASE + 64), 1);
            pm.load(at(64 + 1, 0));
            Ok(())
        };
        let outcome = try_on_design::<Watcher>(&config, 1, None, (0, 1), body);
        outcome.expect("the run ends").report.accesses.walks
    };
    assert_eq!(walks(1), walks(0) + 1);
}

#[test]
fn a_begin_and_a_commit_are_an_instruction_each() {
    let count = |transactions: u64| {
        let outcome = on(&config(|_| ()), 1, None, move |pm| {
            for _ in 0..transactions {
                pm.begin()?;
                pm.commit();
            }
            Ok(())
        });
        outcome.report.cores.instructions
    };
    assert_eq!([0, 1, 7].map(count), [0, 2, 14]);
}

#[test]
fn a_thread_that_moves_takes_its_time() {
    let cycles = |t_switch: u64| {
        let config = config(|config| {
            (config.core.migrate, config.core.t_switch) = (1, t_switch * 1_000);
        });
        let outcome = on(&config, 1, None, |pm| {
            (0..2).for_each(|value| pm.store(at(1, 0), value));
            Ok(())
        });
        (outcome.report.cycles, outcome.report.cores.migrations)
    };
    let (at_once, slow) = (cycles(0), cycles(500));
    assert_eq!((at_once.1, slow.1), (2, 2));
    assert_eq!(slow.0 - at_once.0, 2 * 500);
}

/// A design whose begins and aborts take `TAKES` cycles: it says so at once, or has the core wait
/// if it `WAITS`.
struct Slow<const WAITS: bool, const TAKES: u64> {
    asked: bool,
}

impl<const WAITS: bool, const TAKES: u64> Design for Slow<WAITS, TAKES> {
    const CARD: Card = card("slow", "begins and aborts late");
    const REVOKES: bool = true;
    type Params = NoParams;
    type Rules = NoRules;
    /// Whether it is over with an abort, and not with a begin.
    type Event = bool;
    type Library = Bare;

    fn new(_setup: &Setup<'_, Self>) -> Self {
        Slow { asked: false }
    }

    fn begin(&mut self, tx: &Tx, below: &mut Below<bool>) -> Progress {
        if !WAITS {
            return Progress::Done(tx.at + TAKES);
        }
        below.at(tx.at + TAKES, false);
        Progress::Wait
    }

    fn abort(&mut self, tx: &Tx, _by: Abort, below: &mut Below<bool>) -> Progress {
        if !WAITS {
            return Progress::Done(tx.at + TAKES);
        }
        if std::mem::replace(&mut self.asked, true) {
            return Progress::Done(tx.at);
        }
        below.at(tx.at + TAKES, true);
        Progress::Wait
    }

    fn event(&mut self, at: Cycle, is_abort: bool, below: &mut Below<bool>) {
        if is_abort {
            below.retry(CoreId(0), at);
        } else {
            below.wake(CoreId(0), at);
        }
    }
}

/// Returns for what a core waits whose transaction is aborted.
fn stalls<const WAITS: bool, const TAKES: u64>() -> [u64; Stall::ALL.len()] {
    let body = |pm: &mut Pm<'_>| -> Step {
        pm.begin_abortable()?;
        pm.store(at(1, 0), 7);
        pm.abort();
        Ok(())
    };
    let outcome = try_on_design::<Slow<WAITS, TAKES>>(&config(|_| ()), 1, None, (0, 1), body);
    outcome.expect("the run ends").report.cores.stalls
}

/// A core waits for the begin and for the abort of its transaction as it does for a commit.
#[test]
fn waits_for_a_begin_and_for_an_abort_are_waits_for_a_commit() {
    let pairs = [
        (stalls::<false, 100>(), stalls::<false, 1_100>()),
        (stalls::<true, 100>(), stalls::<true, 1_100>()),
    ];
    for (short, long) in pairs {
        for (stall, name) in Stall::ALL {
            let more = long[stall as usize] - short[stall as usize];
            assert_eq!(more, if stall == Stall::Commit { 2 * 1_000 } else { 0 }, "{name}");
        }
    }
}
