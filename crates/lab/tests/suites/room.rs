//! What waits for room waits where there is some: no buffer and no queue of the machine or of a
//! design holds more than it has places for, however long programs go on.

use model::meters::Stall;
use serde_json::Value;

use crate::common::run;
use crate::programs::{at, counted, on};

/// The mean number of requests that were in a part of the machine which has recorded how long each
/// was there.
fn mean_inside(row: &Value, part: &str) -> f64 {
    let number = |at: &str| row.pointer(at).and_then(Value::as_f64).unwrap_or(0.0);
    let part = |of: &str| number(&format!("/controllers/{part}/{of}"));
    part("count") * part("mean") / number("/cycles")
}

/// Cores that store to more than the caches hold have no more write-backs under way than a
/// controller has buffers for.
#[test]
fn write_backs_have_buffers() {
    for cores in [2, 8] {
        let mut before = f64::INFINITY;
        for buffers in [64, 16, 2] {
            let row = run(&format!(
                "undo@x86 probe machine=silo cores={cores} txs=400 llc.size=704KiB l2.size=64KiB \
                 controller.write_buffer_size=1 workload.access=store workload.items=100000 \
                 workload.fence=none controller.writeback_buffer_size={buffers}"
            ));
            let waiting = mean_inside(&row, "write_wait_cycles");
            let most = f64::from(buffers);
            assert!(0.0 < waiting && waiting < most, "{cores} cores: {waiting} of {most}");
            assert!(waiting < before, "{cores} cores: {waiting} with fewer buffers, {before}");
            before = waiting;
        }
    }
}

/// Cores that do the same wait for buffers in turn, however few there are: each is done at the same
/// time as the others, and waits for hardly anything at the end.
#[test]
fn cores_take_turns_at_the_buffers() {
    for (cores, buffers, way) in [(2, 1, 0), (8, 1, 0), (8, 16, 500)] {
        let row = run(&format!(
            "native probe machine=silo cores={cores} txs=3000 workload.access=store \
             workload.items=400000 llc.size=1MiB l2.size=64KiB l1d.size=16KiB \
             controller.link_latency={way}ns controller.writeback_buffer_size={buffers}"
        ));
        let of = |key: &str| row.pointer(key).and_then(Value::as_f64).expect("a number");
        let last = of("/stalls/other") / of("/cycles") / f64::from(cores);
        assert!(last < 0.05, "{cores} cores wait for the last one for {last} of the time");
    }
}

/// A core in order has a miss of a load and one of a store at most under way: it needs two miss
/// registers, however many stores are in its queue. With one, a load waits for the store whose turn
/// it is alone.
#[test]
fn stores_in_the_queue_take_no_miss_registers() {
    let cycles = |mshrs: u64| {
        let line = format!(
            "native ycsb machine=silo cores=1 txs=300 core.model=inorder core.mshrs={mshrs}"
        );
        run(&line)["cycles"].as_u64().expect("a number")
    };
    let [one, two, many] = [1, 2, 64].map(cycles);
    assert_eq!(two, many);
    assert!(two < one && one < 2 * two, "{one} cycles with one register, {two} with two");
}

/// Page walks are misses like others: a core with few registers for those has few under way.
#[test]
fn page_walks_take_miss_registers() {
    for design in ["native", "ssp"] {
        let reads = |mshrs: u64| {
            let row = run(&format!(
                "{design} probe machine=ssp cores=1 txs=400 tlb.l2_entries=0 llc.size=256KiB \
                 l2.size=32KiB workload.access=load workload.items=3000000 core.mshrs={mshrs}"
            ));
            mean_inside(&row, "pm_read_cycles") + mean_inside(&row, "dram_read_cycles")
        };
        let [one, two, sixteen] = [1, 2, 16].map(reads);
        assert!(one <= 1.0 && two <= 2.0 && sixteen > 2.0, "{design}: {one}, {two}, {sixteen}");
    }
}

/// A transaction that stores to the same lines of its second level again and again has them wait
/// beside LAD's controllers, and its core waits with them.
#[test]
fn lines_that_leave_the_first_level_again_wait_for_room() {
    let waits = |rounds: u64| {
        let line = "lad scribble machine=silo cores=1 l1d.size=1KiB l1d.assoc=8 \
                    design.undo_entries=65536 pm.log_size=64MiB";
        let outcome = on(line, move |pm| {
            pm.begin()?;
            for round in 0..rounds {
                for line in 0..200 {
                    pm.store(at(line, 0), round + 1);
                }
            }
            pm.commit();
            Ok(())
        });
        let stalls = outcome.report.cores.stalls;
        [Stall::StoreBuffer, Stall::Commit].map(|stall| stalls[stall as usize])
    };
    let ([_, few], [stores, commit]) = (waits(10), waits(100));
    assert!(stores > 100 * commit, "stores wait for {stores} cycles, and the commit for {commit}");
    assert!(commit < few + 20_000, "behind 10 rounds the commit waits for {few}");
}

/// The redo data that MorLog's delay-persistence leaves in the first level go into the redo buffer
/// when a store changes their word, and the store waits if it is full: with hardly any room in it,
/// no more and more transactions are not durable.
#[test]
fn redo_data_of_a_word_that_changes_again_wait_for_room() {
    let pending = |rounds: u64| {
        let line = "morlog-dp scribble machine=silo cores=1 design.ur_entries=16 \
                    design.r_entries=1 pm.log_size=16MiB";
        let outcome = on(line, move |pm| {
            for round in 0..rounds {
                pm.begin()?;
                for word in (0..40).chain(0..40) {
                    pm.store(at(word / 8, word % 8), 1_000 * round + word);
                }
                pm.commit();
            }
            Ok(())
        });
        assert!(counted(&outcome, "stores_deferred") > rounds, "redo data are left");
        counted(&outcome, "not_durable_max")
    };
    let (few, many) = (pending(50), pending(500));
    assert!(many < 20 && many < few + 10, "{few} transactions of 50, {many} of 500");
}
