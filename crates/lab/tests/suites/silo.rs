//! What is special to Silo beyond what every design is held to: numbers that wrap, and controllers
//! that have to agree.

use crate::common::{all_hold, resolve};
use crate::programs::{at, counted, on, store};
use model::crash::{Campaign, Check, Points};
use model::design::{Durability, Shape};
use model::meters::{Class, Stall};
use model::units::LINE_BYTES;
use model::workload::{Pm, Ptr};

/// Transaction numbers have 16 bits: they wrap with records in the log region and tuples on chip.
#[test]
fn transaction_numbers_wrap() {
    let small = "txs=40 nested=false design.first_transaction=65515";
    let lines =
        ["scribble cores=2", "btree cores=1", "queue cores=4"].into_iter().flat_map(|run| {
            [
                format!("silo {run} {small}"),
                format!("silo {run} {small} design.entries=4 design.overflow_batch=3"),
            ]
        });
    all_hold(lines);
}

/// Controllers that are near and far from each other, with small buffers and small caches, so that
/// deliveries, overflows and evictions cross; the other controllers can remember few lines, or as
/// many as there are.
#[test]
fn several_controllers_agree() {
    let mut lines = Vec::new();
    for controllers in [2, 3, 4] {
        for hop in [1, 3, 200] {
            for (seed, deliveries, told) in [(1, 1, 64), (2, 16, 1), (3, 16, 64), (4, 2, 2)] {
                lines.push(format!(
                    "silo scribble txs=60 cores=4 seed={seed} nested=false workload.words=48 \
                     workload.lock_grain=word controller.count={controllers} \
                     controller.intlv_size=64B llc.size=256B l2.size=128B l1d.size=128B \
                     design.entries=4 design.overflow_batch=3 design.controller_hop={hop} \
                     design.deliveries={deliveries} design.told={told}"
                ));
            }
        }
    }
    all_hold(lines);
}

/// A message to another controller takes the way that a message from a core does, unless a way is
/// given, and what waits for answers takes longer the longer the way is. Updates that are under way
/// together wait for one way, not for one after the other; with one controller there is none.
#[test]
fn deliveries_are_under_way_together() {
    let cycles = |line: &str| {
        let run = format!("silo {line} machine=silo cores=4 txs=300 controller.noc_latency=100ns");
        crate::common::run(&run)["cycles"].as_u64().expect("cycles")
    };
    for run in ["hash", "tpcc txs=20"] {
        let two = format!("{run} controller.count=2");
        let [one, four, many] = [1, 4, 16].map(|most| {
            // 100 ns are 200 cycles of 2 GHz.
            let line = format!("{two} design.deliveries={most}");
            let usual = cycles(&line);
            assert_eq!(usual, cycles(&format!("{line} design.controller_hop=200")), "{line}");
            assert!(usual > cycles(&format!("{line} design.controller_hop=20")), "{line}");
            usual
        });
        assert!(one > four && four > many, "{run}: {one}, {four}, {many}");
        let alone = |most| cycles(&format!("{run} design.deliveries={most}"));
        assert_eq!(alone(1), alone(16), "{run}");
    }
}

/// How far the words of one core are apart follows from the way as long as only one is under way.
#[test]
fn one_delivery_at_a_time_takes_a_way_and_back() {
    let cycles = |hop: u64, most: u64| {
        let run = crate::common::run(&format!(
            "silo queue machine=silo cores=1 txs=2000 controller.count=2 design.deliveries={most} \
             design.controller_hop={hop}"
        ));
        let delivered = run["design_counters"]["deliveries"].as_u64().expect("deliveries");
        (run["cycles"].as_u64().expect("cycles"), delivered)
    };
    let [(near, count), (far, _)] = [1_000, 2_000].map(|hop| cycles(hop, 1));
    let share = (far - near) as f64 / (2_000 * count) as f64;
    assert!((0.9..=1.0).contains(&share), "{share} of two ways each");
    let [(near, count), (far, _)] = [1_000, 2_000].map(|hop| cycles(hop, 16));
    let share = (far - near) as f64 / (2_000 * count) as f64;
    assert!(share < 0.3, "{share} of two ways each");
}

/// Threads that move to another core in the middle of a transaction, and leave its lines behind in
/// the caches of the former one: with small caches, small buffers, and controllers that are apart.
#[test]
fn threads_move_in_transactions() {
    let mut lines = Vec::new();
    let small = "llc.size=512B l2.size=128B l1d.size=128B";
    for design in crate::common::all().filter(|entry| entry.migrates) {
        if design.card.durability == Durability::None {
            continue;
        }
        for (seed, every) in [(1, 1), (2, 3), (3, 7)] {
            let name = design.card.name;
            let run =
                format!("txs=40 seed={seed} nested=false core.migrate={every} core.t_switch=20ns");
            lines.push(format!("{name} scribble cores=1 {run}"));
            lines.push(format!("{name} scribble cores=3 {run} {small}"));
            lines.push(format!("{name} btree cores=2 {run} {small}"));
            lines.push(format!(
                "{name} hash cores=2 {run} {small} controller.count=2 controller.intlv_size=64B"
            ));
        }
        if design.card.name == "silo" {
            lines.push(format!(
                "silo btree cores=2 txs=40 nested=false core.migrate=4 {small} design.entries=4 \
                 design.overflow_batch=3 controller.count=2 controller.intlv_size=64B"
            ));
        }
    }
    all_hold(lines);
}

/// In such runs threads do move, and their lines follow them from one core's caches to another's.
#[test]
fn a_thread_that_moves_finds_its_lines_elsewhere() {
    let stays = crate::common::run("silo array cores=1 txs=50");
    let moves = crate::common::run("silo array cores=1 txs=50 core.migrate=5 core.t_switch=0ns");
    assert!(stays.get("migrations").is_none());
    assert!(moves["migrations"].as_u64().unwrap() > 50, "{moves}");
    assert_eq!(stays["pm_writes"]["wpq_bytes"], moves["pm_writes"]["wpq_bytes"]);
    assert!(moves["cycles"].as_u64() > stays["cycles"].as_u64());
}

/// Both kinds of message cross in such a run, so the test above means something.
#[test]
fn deliveries_are_made_and_refused() {
    let (mut made, mut refused) = (0, 0);
    for seed in 1..=10 {
        let on = crate::common::resolve(&format!(
            "silo scribble cores=4 seed={seed} controller.count=2 controller.intlv_size=64B \
             llc.size=256B l2.size=128B l1d.size=128B"
        ));
        let workload = on.make_workload().expect("a workload");
        let campaign = Campaign {
            points: Points::Count,
            nested: false,
            reorders: 0,
            violations_max: 1,
            seed,
            keep: 0,
            check: Check::Transactions,
        };
        let outcome =
            crate::common::play(on.design, &on.machine.config, 4, workload, 100, Some(campaign));
        let counter = |name| {
            let found = outcome.report.counters.iter().find(|(other, _)| *other == name);
            found.expect("Silo counts it").1
        };
        made += counter("deliveries");
        refused += counter("deliveries_refused");
    }
    assert!(made > 0 && refused > 0, "{made} made and {refused} refused");
}

/// The transaction before it is in the middle of an overflow when its commit comes, and then of
/// updates. What would be undone is a record of the life before, or of the ring's last lap.
#[test]
fn a_transaction_without_logs_forgets_no_records_of_the_one_before() {
    let line = "silo scribble cores=2 txs=40 seed=11 nested=false lives=2 controller.count=2 \
                controller.intlv_size=64B controller.write_buffer_size=1 \
                controller.writeback_buffer_size=64 design.channel=1 design.entries=4 \
                design.overflow_batch=3 design.controller_hop=400 pm.tWRITE=400cycles \
                pm.xpbuffer_entries=1 workload.words=16";
    crate::common::all_hold([line.to_owned()]);
    let forgotten = crate::common::crash(&format!("{line} without=keep_records_until_updated"));
    let text = forgotten["violations"][0]["text"].as_str().expect("a violation");
    assert!(text.starts_with("durability"), "{text}");
}

/// Makes a line leave the caches of the machine `tiny`: as many lines of its set come as push any
/// line out of it.
fn push_out(pm: &mut Pm<'_>, line: u64) {
    for push in 0..8 {
        pm.load(Ptr::to((1 << 20) + LINE_BYTES * ((1 + line) % 4) + 256 * push));
    }
}

/// A store waits that finds as many logs on their way, and its core hears a way later that one of
/// them has arrived.
#[test]
fn a_channel_of_silo_holds_as_many_logs_as_it_says() {
    let run = |way: u64, words: u64| {
        let line = format!(
            "silo scribble cores=1 machine=silo design.channel=4 controller.noc_latency={way}us"
        );
        let outcome = on(&line, move |pm| {
            pm.load(at(0, 0));
            pm.work(100_000);
            store(pm, &[words], 1)
        });
        let waited = outcome.report.cores.stalls[Stall::LogFull as usize];
        (counted(&outcome, "channel_full"), waited)
    };
    assert_eq!([run(1, 4).0, run(1, 5).0], [0, 1]);
    let more = run(2, 5).1 - run(1, 5).1;
    assert_eq!((more + 1_000) / 2_000, 2, "one there and one back: {more} cycles");
}

/// The logs of a line that has left the caches are discarded, and the others update their words.
#[test]
fn a_log_of_silo_updates_its_word_or_is_discarded() {
    let outcome = on("silo scribble cores=1", |pm| {
        pm.begin()?;
        (0..2).for_each(|word| pm.store(at(0, word), 7));
        push_out(pm, 0);
        pm.work(10_000);
        pm.store(at(1, 0), 7);
        pm.commit();
        pm.work(10_000);
        Ok(())
    });
    let counts = ["in_place_updates", "logs_discarded"].map(|name| counted(&outcome, name));
    assert_eq!(counts, [1, 2]);
}

/// A line that waits for the logs of its words before it may leave is a write-back like any other.
#[test]
fn a_line_that_waits_for_its_logs_is_written_back() {
    let outcome = on("silo scribble cores=1 controller.noc_latency=2us", |pm| {
        pm.begin()?;
        pm.store(at(0, 0), 7);
        push_out(pm, 0);
        pm.commit();
        pm.work(10_000);
        Ok(())
    });
    assert_eq!(counted(&outcome, "evictions_held"), 1);
    let bytes = outcome.report.meters.wpq_bytes;
    let [home, data] = [Class::HomeWriteBack, Class::Data].map(|class| bytes[class as usize]);
    assert_eq!((home, data), (LINE_BYTES, 0));
}

/// Each controller but the first has places of its own for the evicted lines that it has accepted.
#[test]
fn each_controller_remembers_its_own_evicted_lines() {
    let without_place = |lines: &'static [u64]| {
        let line = "silo scribble cores=1 controller.count=4 controller.intlv_size=64B \
                    design.controller_hop=4096 design.told=1";
        let outcome = on(line, move |pm| {
            pm.begin()?;
            for &line in lines {
                pm.store(at(line, 0), 7);
                push_out(pm, line);
            }
            pm.commit();
            pm.work(100_000);
            Ok(())
        });
        counted(&outcome, "lines_told_without_place")
    };
    // The lines 0, 1 and 2 are of the other controllers, and 3 is of the first.
    assert_eq!(without_place(&[0, 1, 2, 3]), 0);
    assert_eq!(without_place(&[0, 4]), 1);
}

/// Lines without a place may be accepted in another order than they left the caches in. What is
/// refused until all of them have been answered goes by the newest store that any of them carries.
#[test]
fn lines_without_a_place_are_remembered_by_their_newest_store() {
    let line = "silo scribble cores=4 txs=60 nested=false workload.words=24 \
                workload.lock_grain=word llc.size=256B llc.assoc=4 l2.size=128B l1d.size=128B \
                controller.count=2 controller.intlv_size=64B controller.arrival_jitter=2000cycles \
                controller.writeback_buffer_size=64 design.told=1 design.controller_hop=2000 \
                design.entries=8";
    all_hold((1..=12).map(|seed| format!("{line} seed={seed}")));
}

/// What Silo declares for each core: the entries of its log buffer with a comparator each, the head
/// and tail of its log, and two registers at its first level. What controllers beyond the first
/// need is there for each core, or for each of them.
#[test]
fn the_declared_hardware_is_there_for_each_core_and_controller() {
    let counts = |cores: u8, controllers: u64| -> Vec<u64> {
        let line = format!("silo scribble cores={cores} controller.count={controllers}");
        let resolved = resolve(&line);
        let shape = Shape::new(&resolved.machine.config, cores);
        let structures = (resolved.design.hardware)(&[], &shape);
        structures.iter().map(|structure| structure.count).collect()
    };
    assert_eq!(counts(1, 1), [20, 1, 20, 1, 1]);
    assert_eq!(counts(4, 1), [80, 4, 80, 4, 4]);
    let of_the_others = |cores, controllers| counts(cores, controllers).split_off(5);
    assert_eq!(of_the_others(1, 2), [16, 64, 1]);
    assert_eq!(of_the_others(4, 4), [4 * 16, 3 * 64, 3]);
}

/// The log controller takes words from a buffer an interval after each other, in an overflow as
/// well as after a commit. Of 48 logs 28 leave a buffer of 20 before the commit arrives.
#[test]
fn an_overflow_takes_a_word_an_interval() {
    let latency = |interval: u64| {
        let line = format!("silo scribble machine=silo cores=1 design.update_interval={interval}");
        let outcome = on(&line, |pm| store(pm, &[8; 6], 1));
        assert_eq!(counted(&outcome, "overflow_batches"), 2);
        outcome.report.transactions.commit_latency.max()
    };
    let more = latency(2_000) - latency(1_000);
    assert!(more.abs_diff(28_000) < 100, "{more} cycles");
}
