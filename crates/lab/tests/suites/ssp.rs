//! What is special to SSP: on a TLB of four entries and an SSP cache of a few slots everything that
//! happens once in a while happens all the time, and what survives is right wherever the power is
//! cut.

use std::collections::BTreeMap;

use crate::common::{all_hold, crash_as, request, resolve, run};
use crate::programs::{at, counted, on, store};
use lab::Control;
use model::design::{Shape, Structure};
use model::meters::{Class, Stall};
use model::units::{LINE_BYTES, PAGE_LINES};

/// Programs over lines of several pages.
const PROGRAMS: &[&str] = &[
    "txs=60 cores=1 seed=1 workload.words=128 workload.apart=1024",
    "txs=60 cores=2 seed=2 workload.words=128 workload.apart=2048",
    "txs=60 cores=3 seed=3 workload.words=48 workload.apart=512 workload.lock_grain=word",
    "txs=60 cores=4 seed=4 workload.words=64 workload.apart=1024 workload.lock_grain=word",
];

/// Sizes and choices under which SSP has to work hard.
const SIZES: &[&str] = &[
    "design.slots=3 design.write_set=2 design.journal_lines=20 design.direction=extra_page",
    "design.slots=6 design.journal_lines=20 design.consolidations=1 design.direction=page_table",
    "design.over_provision=0 design.write_set=3 design.journal=rewrite design.journal_lines=20 \
     llc.size=256B l2.size=128B l1d.size=128B",
    "design.slots=7 design.allocate=first_store design.journal_lines=20 controller.domain=media",
    "design.slots=5 design.journal_lines=20 design.checkpoint_percent=100 \
     design.direction=extra_page controller.count=2 controller.intlv_size=64B \
     controller.write_buffer_size=1 controller.writeback_buffer_size=64 pm.xpbuffer_entries=1 \
     pm.tWRITE=400cycles",
    "design.slots=12 design.consolidations=1 design.journal_lines=20 tlb.entries=1 tlb.assoc=1 \
     design.mode=post_hoc",
];

/// What each counter counts must have happened, in runs that are right wherever the power is cut.
#[test]
fn every_path_is_taken() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for program in PROGRAMS {
        for sizes in SIZES {
            let line = format!("ssp scribble {program} {sizes}");
            for (name, count) in run(&line)["design_counters"].as_object().expect("counters") {
                *counts.entry(name.clone()).or_default() += count.as_u64().expect("a number");
            }
            all_hold([format!("{line} nested=false")]);
        }
    }
    let never: Vec<&String> =
        counts.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name).collect();
    assert!(never.is_empty(), "{never:?} stay 0");
}

/// Recovery is interrupted at each of its writes.
#[test]
fn recovery_may_be_interrupted() {
    for (program, sizes) in PROGRAMS.iter().zip(SIZES) {
        all_hold([format!("ssp scribble {program} {sizes}").replace("txs=60", "txs=30")]);
    }
}

/// How groups lie in the journal and what shows that they are complete, beside the default.
const FORMS: &[&str] = &[
    "design.journal=group",
    "design.complete=count",
    "design.journal=group design.complete=count",
];

/// Machines on which lines of a journal's group overtake each other, or are torn.
const UNEVEN: &[&str] = &[
    "controller.domain=media",
    "controller.count=2 controller.intlv_size=64B controller.write_buffer_size=1 \
     controller.writeback_buffer_size=64 pm.xpbuffer_entries=1 pm.tWRITE=400cycles",
];

/// Each form of the journal is right wherever the power is cut, on small sizes and in later lives.
#[test]
fn every_form_of_the_journal_is_right() {
    let small = "design.slots=9 design.journal_lines=20";
    let mut lines = Vec::new();
    for form in FORMS {
        for (program, seen) in PROGRAMS.iter().zip(UNEVEN.iter().cycle()) {
            lines.push(format!("ssp scribble {program} {small} {form} nested=false"));
            let program = program.replace("txs=60", "txs=20");
            lines.push(format!("ssp scribble {program} {small} {form} {seen} lives=2"));
        }
        for (workload, uneven) in
            ["hash", "rbtree", "btree", "tpcc"].into_iter().zip(UNEVEN.iter().cycle())
        {
            lines.push(format!(
                "ssp {workload} txs=20 cores=2 points=700 nested=false {form} {uneven}"
            ));
        }
    }
    all_hold(lines);
}

/// What recovery demands of a group is needed under each form. Beside a rule are the seeds of short
/// trials that catch it, one for each form; to begin there spares the search.
#[test]
fn what_recovery_demands_of_a_group_is_needed_under_each_form() {
    const RULES: &[(&str, [u64; 3])] =
        &[("wait_for_commit_record", [1, 135, 243]), ("verify_checksum_of_group", [2, 2, 2])];
    let mut wrong = Vec::new();
    for (place, form) in FORMS.iter().enumerate() {
        for (rule, seeds) in RULES {
            let line = format!(
                "ssp scribble cores=2 txs=40 nested=false lives=2 points=1 mutants={rule} {form}"
            );
            let mut request = request(&line);
            request["caught_with"] = serde_json::json!({ *rule: seeds[place] });
            let mutant = &crash_as(&request)["mutants"][0];
            let seed = mutant["seed"].as_u64().unwrap_or(0);
            if mutant["caught"] != true || seed != seeds[place] {
                wrong.push(format!("{line}: {mutant}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Commits of several cores share lines of the journal if they are grouped, and a count leaves the
/// place of a commit record to a fourth page.
#[test]
fn grouped_commits_and_counts_write_fewer_lines_of_the_journal() {
    let lines = |run_of: &str| {
        let row = run(&format!("ssp {run_of} machine=ssp txs=200"));
        row["pm_writes"]["by_class"]["log"].as_u64().expect("a number") / LINE_BYTES
    };
    let busy = "scribble cores=4 workload.words=512 workload.stores=1 workload.apart=64";
    let (alone, grouped) = (lines(busy), lines(&format!("{busy} design.journal=group")));
    assert!(grouped * 6 < alone * 5, "{grouped} and {alone}");
    let one = "hash-rand cores=1";
    let (records, counts) = (lines(one), lines(&format!("{one} design.complete=count")));
    assert!(counts * 6 < records * 5, "{counts} and {records}");
}

/// A line with a checksum of all that it holds cannot be written again.
#[test]
fn a_journal_that_rewrites_lines_has_no_counts() {
    let line = "ssp scribble txs=2 design.journal=rewrite design.complete=count";
    let error = lab::run(&request(line).to_string(), &Control::default()).expect_err("a sentence");
    assert!(error.to_string().contains("--set design.journal=pad"), "{error}");
}

/// What the paper says of its hardware (MICRO'19 section 4.3), of one core: 832 bytes beside a data
/// TLB of 64 entries, 13 KB beside a second level of 1,024, 800 bytes of write-set buffer; 14.6 KB.
/// It gives no sizes for the controller: ours are as many updates as the write-set buffer has
/// pages, a line of the journal, and two registers.
#[test]
fn the_declared_hardware_is_the_paper_s() {
    let resolved = resolve("ssp scribble cores=1 tlb.entries=64 tlb.l2_entries=1024");
    let shape = Shape::new(&resolved.machine.config, 1);
    let structures = (resolved.design.hardware)(&[], &shape);
    let bytes = |place| -> Vec<u64> {
        let there = structures.iter().filter(|structure| structure.location.name() == place);
        there.map(Structure::bytes).collect()
    };
    let core = bytes("core");
    assert_eq!(core, [832, 13 * 1024, 800]);
    assert_eq!(core.iter().sum::<u64>() * 10 / 1024, 145, "14.59 KiB");
    assert_eq!(bytes("memory controller"), [64 * (40 + 64) / 8, 64, 16]);
}

/// What `post_hoc` leaves out of the time and counts is what a core that waits would wait, a
/// transaction that falls back included.
#[test]
fn what_is_added_afterwards_is_what_was_left_out() {
    for rest in ["hash-rand", "scribble workload.apart=4096 design.write_set=1 design.flip=10000"] {
        let of = |mode| {
            run(&format!(
                "ssp {rest} machine=ssp cores=1 txs=200 core.model=inorder design.mode={mode}"
            ))
        };
        let (full, short) = (of("full"), of("post_hoc"));
        let cycles = |row: &serde_json::Value| row["cycles"].as_u64().expect("a number");
        let left_out = cycles(&full) - cycles(&short);
        let counted = short["design_counters"]["post_hoc_cycles"].as_u64().expect("a number");
        assert!(counted > 0 && left_out.abs_diff(counted) * 20 < counted, "{left_out} {counted}");
    }
}

/// A store whose page is in no TLB waits for the SSP cache, as a load does, although the library
/// asks for leave to store before it stores. (A few stores of one transaction wait together.)
#[test]
fn stores_wait_for_the_ssp_cache() {
    let of = |latency| {
        run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 core.model=inorder workload.words=2048 \
             workload.apart=4096 workload.stores=1 design.ssp_cache_latency={latency}"
        ))
    };
    let (short, long) = (of(1), of(5001));
    let cycles = |row: &serde_json::Value| row["cycles"].as_u64().expect("a number");
    let misses = long["design_counters"]["tlb_misses"].as_u64().expect("a number");
    let waited = cycles(&long) - cycles(&short);
    assert!(misses > 400 && waited > misses * 3_500, "{waited} for {misses} misses");
}

/// The other copy of a line is known when its page is translated: what the first store to a line
/// takes comes after the SSP cache, once, though the library asks before it stores.
#[test]
fn a_line_is_remapped_when_its_page_is_translated() {
    let of = |flip| {
        run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 core.model=inorder workload.words=2048 \
             workload.apart=4096 workload.stores=1 design.ssp_cache_latency=5000 design.flip={flip}"
        ))
    };
    let (free, slow) = (of(0), of(5_000));
    let number = |value: &serde_json::Value| value.as_u64().expect("a number");
    let flips = number(&slow["design_counters"]["flips"]);
    let waited = number(&slow["cycles"]) - number(&free["cycles"]);
    assert!(number(&slow["design_counters"]["tlb_misses"]) > 400 && flips > 400);
    // A few stores of one transaction wait together.
    assert!((flips * 4_000..flips * 5_500).contains(&waited), "{waited} for {flips} flips");
}

/// A store whose page is in the second level of the TLB waits for that, though its address was
/// known long before.
#[test]
fn stores_wait_for_the_second_level_of_the_tlb() {
    let cycles = |latency: &str| {
        let row = run(&format!(
            "ssp scribble machine=ssp cores=1 txs=500 workload.words=2048 workload.apart=4096 \
             workload.stores=1 workload.large=1 tlb.entries=4 tlb.assoc=4 tlb.l2_entries=1024 \
             tlb.l2_latency={latency}"
        ));
        row["cycles"].as_u64().expect("a number")
    };
    let (short, long) = (cycles("1ns"), cycles("1us"));
    assert!(long > short * 3 / 2, "{short} and {long}");
}

/// The TLBs of no machine hold more pages than there are slots, so no transaction has to run in
/// software.
#[test]
fn there_are_slots_for_all_that_tlbs_hold() {
    for machine in ["silo", "optane", "cxl"] {
        let row = run(&format!("ssp rbtree machine={machine} cores=8 txs=200"));
        let counters = &row["design_counters"];
        let [fallbacks, exhausted] =
            ["fallbacks", "slots_exhausted"].map(|name| counters[name].as_u64());
        assert_eq!((fallbacks, exhausted), (Some(0), Some(0)), "{machine}");
    }
    let tlbs = run("ssp array machine=silo cores=8 txs=1 design.slots=8192");
    assert_eq!(tlbs["design_counters"]["slots_exhausted"], 0, "and so many can be named");
}

/// A TLB of one page, so that any other page makes it lose the one that it has.
const ONE_PAGE: &str = "tlb.entries=1 tlb.assoc=1 tlb.l2_entries=0 core.model=inorder";

/// The last level has as many slots as it has room for, those that were looked up last whatever
/// their numbers are. Others, and pages without a slot, are looked up in DRAM.
#[test]
fn the_last_level_has_the_slots_that_were_looked_up_last() {
    let cycles = |slots: u64, pages: &'static [u64]| {
        let line = format!("ssp scribble cores=1 {ONE_PAGE} dram.tRCD=1us design.l3_slots={slots}");
        let outcome = on(&line, |pm| {
            pages.iter().for_each(|page| _ = pm.load(at(PAGE_LINES * page, 0)));
            Ok(())
        });
        assert_eq!(counted(&outcome, "tlb_misses"), pages.len() as u64);
        outcome.report.cycles
    };
    // DRAM takes 3 + 1,000 + 2 cycles, and the last level 4.
    let saved = |pages| [1, 2, 3].map(|slots| (cycles(0, pages) - cycles(slots, pages)) / 1_001);
    // Pages get slots as they come: here the first, the second, and the first again.
    assert_eq!(saved(&[0, 1, 0]), [0, 1, 1]);
    // The last two pages are in the fourth and the fifth slot.
    assert_eq!(saved(&[0, 1, 2, 3, 4, 3, 4, 3]), [0, 3, 3]);
    assert_eq!(saved(&[0, 1, 2, 3, 4, 2, 3, 4]), [0, 0, 3]);
}

/// If pages get their slots with their first stores, such a store waits for DRAM, as the fill of a
/// TLB does that finds no slot, and the next transaction's does not.
#[test]
fn a_slot_that_a_store_asks_for_comes_from_dram() {
    let cycles = |latency: &str, transactions: u64| {
        let line = format!(
            "ssp scribble cores=1 machine=silo core.model=inorder design.allocate=first_store \
             dram.tRCD={latency}"
        );
        let outcome = on(&line, move |pm| {
            pm.load(at(0, 0));
            (0..transactions).try_for_each(|value| store(pm, &[1], value))
        });
        outcome.report.cycles
    };
    let more = |transactions| cycles("1us", transactions) - cycles("0ns", transactions);
    // A microsecond is 2,000 cycles: one for the fill, and one for the first store.
    assert_eq!([0, 1, 2].map(more), [2_000, 4_000, 4_000]);
}

/// The TLBs hear of each page of a transaction that is given up, which is counted as it is charged.
#[test]
fn flips_of_what_is_given_up_are_counted() {
    for pages in [1, 3] {
        let line = format!("ssp scribble cores=1 machine=silo design.write_set={pages}");
        let outcome = on(&line, move |pm| {
            pm.begin()?;
            (0..=pages).for_each(|page| pm.store(at(PAGE_LINES * page, 0), 1));
            pm.commit();
            Ok(())
        });
        let counts = ["flips", "flips_revoked", "fallbacks"].map(|name| counted(&outcome, name));
        assert_eq!(counts, [pages, pages, 1]);
    }
}

/// A core that needs a page that is being consolidated waits for four ways, one after the other: of
/// the copies, of the answer to the thread that makes them, of the thread's word that the journal
/// may have the record, and of the news that the page is free.
#[test]
fn a_page_that_is_being_consolidated_is_free_after_four_ways() {
    let cycles = |way: u64, again: bool| {
        let line =
            format!("ssp scribble cores=1 machine=silo {ONE_PAGE} controller.noc_latency={way}us");
        let outcome = on(&line, move |pm| {
            [0, 1, 0].into_iter().for_each(|page| _ = pm.load(at(PAGE_LINES * page, 0)));
            store(pm, &[1], 1)?;
            pm.work(100_000);
            pm.load(at(PAGE_LINES, 0));
            if again {
                pm.load(at(0, 0));
            }
            Ok(())
        });
        assert_eq!(counted(&outcome, "consolidations"), 1);
        assert_eq!(counted(&outcome, "fills_delayed"), u64::from(again));
        outcome.report.cycles
    };
    let waits = |way| cycles(way, true) - cycles(way, false);
    // A microsecond is 2,000 cycles.
    assert_eq!(waits(2) - waits(1), 4 * 2_000);
}

/// A core whose page is being consolidated has walked the page table when it waits, and does not
/// walk again when it is woken, be it for a load or for a store.
#[test]
fn a_fill_that_waits_for_a_consolidation_has_walked_once() {
    let mut waited = 0;
    for program in PROGRAMS {
        let row = run(&format!("ssp scribble {program} warmup=0 {ONE_PAGE}"));
        let [fills, delayed] = ["tlb_misses", "fills_delayed"]
            .map(|name| row["design_counters"][name].as_u64().expect("a number"));
        assert_eq!(row["caches"]["page_walks"], fills, "{program}: {delayed} fills wait");
        waited += delayed;
    }
    assert!(waited > 10, "{waited} fills wait");
}

/// A page goes into the frame that has more of its lines, and stays where it is if both have half.
#[test]
fn a_page_is_consolidated_by_copying_the_fewer_lines() {
    for (lines, copied, swapped) in [(31, 31, 0), (32, 32, 0), (33, 31, 1)] {
        let outcome = on(&format!("ssp scribble cores=1 machine=silo {ONE_PAGE}"), move |pm| {
            pm.begin()?;
            (0..lines).for_each(|line| pm.store(at(PAGE_LINES - 1 + line, 0), 1));
            pm.commit();
            pm.load(at(0, 0));
            pm.work(100_000);
            Ok(())
        });
        let counts = ["consolidations", "lines_copied", "frames_swapped"];
        assert_eq!(counts.map(|name| counted(&outcome, name)), [1, copied, swapped], "{lines}");
    }
}

/// What it takes to give a transaction up is waited for where the store waits that did not fit.
#[test]
fn a_core_whose_transaction_goes_on_in_software_waits_for_its_store() {
    let stalls = |flip: u64| {
        let line = format!(
            "ssp scribble cores=1 machine=silo core.model=inorder design.write_set=1 \
             design.flip={flip}"
        );
        let outcome = on(&line, |pm| {
            pm.begin()?;
            pm.store(at(0, 0), 1);
            pm.work(100_000);
            pm.store(at(PAGE_LINES, 0), 1);
            pm.commit();
            Ok(())
        });
        assert_eq!(counted(&outcome, "fallbacks"), 1);
        [Stall::LogFull, Stall::Commit].map(|stall| outcome.report.cores.stalls[stall as usize])
    };
    let ([at_once, none], [late, neither]) = (stalls(0), stalls(1_000));
    assert_eq!((late - at_once, none, neither), (1_000, 0, 0));
}

/// The lines of a commit leave their core one a cycle, and so do the updates of its pages.
#[test]
fn a_commit_sends_a_line_and_a_page_a_cycle() {
    let latency = |design: &str, lines: u64, apart: u64| {
        let line = format!("{design} scribble cores=1 machine=silo");
        let outcome = on(&line, move |pm| {
            (0..lines).for_each(|line| _ = pm.load(at(line * apart, 0)));
            pm.work(100_000);
            pm.begin()?;
            (0..lines).for_each(|line| pm.store(at(line * apart, 0), 1));
            pm.work(100_000);
            pm.commit();
            Ok(())
        });
        outcome.report.transactions.commit_latency.max()
    };
    for design in ["undo-log", "ssp", "shadow-paging"] {
        let more = latency(design, 7, 1) - latency(design, 1, 1);
        assert!((5..=6).contains(&more), "{design}: {more} cycles for 6 lines more");
    }
    for design in ["ssp", "shadow-paging"] {
        let more = latency(design, 7, PAGE_LINES) - latency(design, 7, 1);
        assert_eq!(more, 6, "{design}: six pages more");
    }
}

/// There is a slot for each page that the larger TLB holds, and as many more as are provided. Pages
/// that left it with nothing to consolidate give theirs to others.
#[test]
fn there_are_as_many_slots_as_pages_in_tlbs_and_some_more() {
    for tlb in [
        "tlb.entries=4 tlb.assoc=4 tlb.l2_entries=0",
        "tlb.entries=2 tlb.assoc=2 tlb.l2_entries=4 tlb.l2_assoc=4",
    ] {
        let reused = |pages: u64| {
            let line = format!("ssp scribble cores=1 machine=silo {tlb} design.over_provision=1");
            let outcome = on(&line, move |pm| {
                (0..pages).for_each(|page| _ = pm.load(at(PAGE_LINES * page, 0)));
                Ok(())
            });
            counted(&outcome, "slots_reused")
        };
        assert_eq!([5, 6, 7].map(reused), [0, 1, 2], "{tlb}");
    }
}

/// A transaction of more pages than the buffer of a core holds runs in software, and one of as many
/// does not.
#[test]
fn a_write_set_holds_as_many_pages_as_it_says() {
    for design in ["ssp", "shadow-paging"] {
        let fallbacks = |pages: u64| {
            let line = format!("{design} scribble cores=1 machine=silo design.write_set=3");
            let outcome = on(&line, move |pm| {
                pm.begin()?;
                (0..pages).for_each(|page| pm.store(at(PAGE_LINES * page, 0), 1));
                pm.commit();
                Ok(())
            });
            counted(&outcome, "fallbacks")
        };
        assert_eq!([3, 4].map(fallbacks), [0, 1], "{design}");
    }
}

/// What was stored to a line outside of transactions is written home before a transaction stores to
/// it, as a line that leaves the caches is; what the transaction stored is data.
#[test]
fn what_was_stored_before_goes_home_first() {
    for design in ["ssp", "shadow-paging"] {
        let outcome = on(&format!("{design} scribble cores=1 machine=silo"), |pm| {
            pm.store(at(0, 1), 7);
            pm.work(10_000);
            store(pm, &[1], 1)
        });
        let bytes = outcome.report.meters.wpq_bytes;
        let found = [Class::HomeWriteBack, Class::Data].map(|class| bytes[class as usize]);
        assert_eq!(found, [LINE_BYTES, LINE_BYTES], "{design}");
    }
}

/// A ring of 20 lines, of which each commit of a page takes one, begins a new lap with every 20th.
#[test]
fn laps_of_a_journal_are_counted() {
    for design in ["ssp", "shadow-paging"] {
        let wraps = |commits: u64| {
            let line = format!("{design} scribble cores=1 machine=silo design.journal_lines=20");
            let outcome =
                on(&line, move |pm| (1..=commits).try_for_each(|value| store(pm, &[1], value)));
            counted(&outcome, "journal_wraps")
        };
        assert_eq!([19, 20, 39, 60].map(wraps), [0, 1, 1, 3], "{design}");
    }
}
