//! When the logs of LOC are truncated, how much of them at a time, and how many transactions their
//! TxIDs tell apart.

use crate::programs::{at, counted, on, try_on};
use model::crash::Points;
use model::engine::{Failure, Outcome};
use model::workload::{Pm, Step, Stop};

/// Makes a transaction that stores to so many lines from `first` on, and waits until it is durable
/// and nothing is under way any more.
fn settle(pm: &mut Pm<'_>, first: u64, lines: u64) -> Step {
    pm.begin()?;
    (first..first + lines).for_each(|line| pm.store(at(line, 0), 1));
    pm.commit();
    pm.durable();
    pm.work(100_000);
    Ok(())
}

/// Runs transactions of so many lines each, all of them different, on one core.
fn settled(line: &str, sizes: &[u64]) -> Outcome {
    let sizes = sizes.to_vec();
    on(&format!("{line} cores=1 machine=silo"), move |pm| {
        let firsts = sizes.iter().scan(0, |next, lines| {
            *next += lines;
            Some(*next - lines)
        });
        firsts.zip(&sizes).try_for_each(|(first, &lines)| settle(pm, first, lines))
    })
}

/// What was counted of truncations, of lines that they wrote in place, and of entries that found
/// the log full.
fn truncated(line: &str, sizes: &[u64]) -> [u64; 3] {
    let outcome = settled(line, sizes);
    ["truncations", "checkpoint_writes", "log_full"].map(|name| counted(&outcome, name))
}

/// The log has 127 lines behind its head, so 15 groups of eight. A transaction takes a group for
/// each seven lines that it stored to, and the log is truncated when more than half of the groups
/// are in use. What is then written in place is half of the transactions, or those that begin in
/// the first half of the groups, if these are more.
#[test]
fn a_truncation_writes_half_of_the_log_in_place() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        let truncated = |settings: &str, sizes: &[u64]| {
            let line = format!("{name} scribble {own} pm.log_size=8KiB {settings}");
            assert_eq!(truncated(&line, sizes)[2], 0, "{design}");
            let [truncations, writes, _] = truncated(&line, sizes);
            (truncations, writes)
        };
        // The eighth group is more than half, and four of eight go; then four are left.
        for (transactions, times) in [(7, 0), (8, 1), (11, 1), (12, 2), (16, 3)] {
            let found = truncated("", &vec![1; transactions]);
            assert_eq!(found, (times, 4 * times), "{design}, {transactions} transactions");
        }
        // Two groups each.
        for (transactions, times) in [(3, 0), (4, 1), (5, 1), (6, 2)] {
            let found = truncated("", &vec![8; transactions]);
            assert_eq!(found, (times, 2 * 8 * times), "{design}, {transactions} transactions");
        }
        // Four of the five transactions begin in the first four groups.
        assert_eq!(truncated("", &[1, 1, 1, 1, 28]), (1, 4), "{design}");
        // Only the first one does, and three are half of five.
        assert_eq!(truncated("", &[28, 1, 1, 1, 1]), (1, 28 + 2), "{design}");
        // A fifth of the groups is three, of which two transactions are half.
        assert_eq!(truncated("design.truncate_perc=20", &[1; 3]), (0, 0), "{design}");
        assert_eq!(truncated("design.truncate_perc=20", &[1; 4]), (1, 2), "{design}");
    }
}

/// With all of the log allowed to be in use, it is truncated when an entry finds no room. That is
/// the 16th transaction, and half of these are eight.
#[test]
fn a_log_that_may_fill_is_truncated_when_it_is_full() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        let line = format!("{name} scribble {own} pm.log_size=8KiB design.truncate_perc=100");
        assert_eq!(truncated(&line, &[1; 15]), [0, 0, 0], "{design}");
        assert_eq!(truncated(&line, &[1; 16]), [1, 8, 1], "{design}");
    }
}

/// TxIDs of `bits` bits tell apart half as many transactions as there are, but for two of each
/// core. The log is truncated when more than half of these are in use, however large it is.
#[test]
fn a_log_is_truncated_when_half_of_the_transaction_ids_are_in_use() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        for (bits, half) in [(5, (16 - 2) / 2), (6, (32 - 2) / 2)] {
            for percent in [50, 100] {
                let line = format!(
                    "{name} scribble {own} pm.log_size=1MiB design.id_bits={bits} \
                     design.truncate_perc={percent}"
                );
                assert_eq!(truncated(&line, &vec![1; half]), [0, 0, 0], "{design}");
                let writes = (half as u64).div_ceil(2);
                assert_eq!(truncated(&line, &vec![1; half + 1]), [1, writes, 0], "{design}");
            }
            let line = format!("{name} scribble {own} design.id_bits={bits}");
            for (transactions, wraps) in [(1 << bits, 0), ((1 << bits) + 1, 1)] {
                let outcome = settled(&line, &vec![1; transactions]);
                assert_eq!(counted(&outcome, "id_wraps"), wraps, "{design}");
            }
        }
    }
}

/// No transaction begins while as many are not truncated as TxIDs can tell apart. A truncation
/// that writes one line at a time takes longer than the transactions that come meanwhile.
#[test]
fn no_transaction_begins_without_a_transaction_id() {
    for design in ["h-wal", "ec-wal", "loc-wal design.sd=1"] {
        let (name, own) = design.split_once(' ').unwrap_or((design, ""));
        for (bits, ids) in [(5, 16_usize - 2), (6, 32 - 2)] {
            let waited = |transactions: usize| {
                let line = format!(
                    "{name} scribble {own} pm.log_size=1MiB design.id_bits={bits} \
                     design.log_writes=1 controller.noc_latency=10us"
                );
                // The first half of those that are truncated together are large.
                let size = |place: usize| if place < ids.div_ceil(4) { 20 } else { 1 };
                let sizes: Vec<u64> = (0..transactions).map(size).collect();
                counted(&settled(&line, &sizes), "out_of_ids")
            };
            assert_eq!([ids, ids + 1].map(waited), [0, 1], "{design}, {bits} bits");
        }
    }
}

/// The windows of all cores, and one more transaction of each, must have TxIDs that can be told
/// apart.
#[test]
fn the_windows_of_all_cores_fit_the_transaction_ids() {
    let fits = |line: String| {
        let tried = try_on(&line, Points::Count, |pm| {
            pm.begin()?;
            pm.store(at(u64::from(pm.core().0), 0), 1);
            pm.commit();
            Ok(())
        });
        match tried {
            Ok(_) => true,
            Err(Failure::Stopped(Stop::Input(text))) => {
                assert!(text.contains("bits are too few for the TxIDs"), "{text}");
                false
            }
            Err(failure) => panic!("{failure:?}"),
        }
    };
    for (bits, cores, most) in [(5, 1, 14 - 1), (5, 2, 12 / 2 - 1), (6, 4, 24 / 4 - 1)] {
        let fits = |sd: u64| {
            fits(format!("loc-wal scribble cores={cores} design.id_bits={bits} design.sd={sd}"))
        };
        assert_eq!([most, most + 1].map(fits), [true, false], "{bits} bits, {cores} cores");
    }
    for design in ["h-wal", "ec-wal"] {
        // Of four cores two transactions each have eight TxIDs, and of five there are only six.
        let fits = |cores: u64| {
            fits(format!("{design} scribble machine=silo cores={cores} design.id_bits=5"))
        };
        assert_eq!([4, 5].map(fits), [true, false], "{design}");
    }
}
