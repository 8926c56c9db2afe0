//! A link to memory (CXL) is in front of persistent memory, and of no other.

use crate::common::{config, on};
use model::units::DRAM_BASE;
use model::workload::{Flush, Pm, Ptr, Step};

/// Returns the cycles of a program over a link of so many nanoseconds, on memory from this address.
fn cycles(link: u64, base: u64, body: fn(&mut Pm<'_>, u64)) -> u64 {
    let config = config(|config| config.controller.link = link * 1_000);
    let run = move |pm: &mut Pm<'_>| -> Step {
        body(pm, base);
        Ok(())
    };
    on(&config, 1, None, run).report.cycles
}

fn loads(pm: &mut Pm<'_>, base: u64) {
    let first = pm.load_ptr(Ptr::to(base));
    pm.load(Ptr { address: base + 64, ..first });
}

fn flushes(pm: &mut Pm<'_>, base: u64) {
    pm.store(Ptr::to(base), 1);
    pm.flush_as(Ptr::to(base), Flush::WriteBack);
    pm.durable();
}

fn stores_past_caches(pm: &mut Pm<'_>, base: u64) {
    pm.store_words_past_caches(Ptr::to(base), &[7; 8]);
    pm.durable();
}

#[test]
fn persistent_memory_is_behind_the_link_and_volatile_memory_is_not() {
    // Loads that wait for each other go there and back twice, a fetch and a flush do, too.
    for (body, ways) in [(loads as fn(&mut Pm<'_>, u64), 4), (flushes, 4), (stores_past_caches, 2)]
    {
        assert_eq!(cycles(50, DRAM_BASE, body), cycles(0, DRAM_BASE, body));
        assert_eq!(cycles(50, 64, body), cycles(0, 64, body) + ways * 50);
    }
}
