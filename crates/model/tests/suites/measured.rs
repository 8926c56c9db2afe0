//! The measured region: what of a run is counted.

use crate::common::{at, card, config, on, try_on_design};
use model::design::{Bare, Below, Card, Design, NoParams, NoRules, Progress, Setup, Tx};
use model::engine::Outcome;
use model::workload::{Pm, Step};

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
        assert_eq!((report.transactions, report.commits), (3, 3));
        assert_eq!(report.meters.wpq_writes, 3, "after {warmup} transactions");
        assert_eq!(report.counters, [("commits", 3), ("commits_max", warmup + 3)]);
        assert_eq!((report.write_sets.transactions, report.write_sets.stores), (3, 3));
    }
}

#[test]
fn the_latency_of_a_commit_is_from_its_beginning_to_its_acknowledgement() {
    let latency = transactions(2, 5).report.commit_latency;
    assert_eq!((latency.len(), latency.min(), latency.max()), (5, 50, 50));
}

#[test]
fn the_instructions_of_all_cores_are_counted_once() {
    for cores in [1, 3] {
        let count = |work| {
            let outcome = on(&config(|_| ()), cores, None, move |pm| {
                pm.work(work);
                Ok(())
            });
            outcome.report.instructions
        };
        assert_eq!(count(1_000) - count(0), 1_000 * u64::from(cores));
        assert_eq!(count(0), 0);
    }
}
