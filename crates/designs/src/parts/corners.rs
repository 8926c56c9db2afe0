//! Corners for families of designs: settings into which the search for what breaks them presses its
//! trials ([`Design::corner`](model::design::Design::corner)). All numbers are ours: with them
//! every rule is caught.

use model::design::Corner;

/// For designs with two copies of a page: pages that come and go, and have a few lines each.
pub fn of_pages(trial: u64) -> Corner {
    let mut corner = Corner::default();
    corner.set("workload.apart", [1024, 4096, 512][trial as usize / 2 % 3]);
    corner.set("tlb.entries", [4, 1][trial as usize % 2]);
    corner.set("tlb.assoc", 1);
    if trial % 4 == 2 {
        // With rows of one line, consecutive lines of a journal overtake each other.
        corner.set("pm.device_rowbuffer_size", "64B");
    }
    if trial % 16 == 2 {
        // The lines that the on-DIMM buffer writes then overtake each other, too.
        corner.set("pm.xpline", "64B");
    }
    corner
}

/// For logs of words in a ring: much in flight over few words, and a ring that is nearly full.
pub fn of_a_ring(trial: u64) -> Corner {
    let mut corner = Corner::default();
    if trial % 4 == 2 && trial % 3 != 1 {
        corner.set("workload.words", 16);
        corner.set("workload.lock_grain", "word");
        corner.set("controller.count", [2, 4][trial as usize / 12 % 2]);
        corner.set("design.log_lines", 20);
        corner.has_four_cores = true;
    }
    corner
}

/// For logs whose transactions have numbers of a few bits: the numbers recur when the log goes
/// round, and with `few` bits even while one transaction runs.
pub fn of_numbers(trial: u64, few: u64) -> Corner {
    let mut corner = Corner::default();
    if trial % 4 == 1 {
        let share = 36 / (trial % 3 + 2) + trial / 8;
        corner.set("design.id_bits", 6);
        corner.set("pm.log_size", format_args!("{share}KiB"));
    }
    if trial % 4 == 2 {
        corner.set("design.truncate_perc", 100);
        corner.set("pm.log_size", format_args!("{}KiB", 2 + trial % 3));
    }
    if trial % 16 == 12 {
        corner.set("workload.words", 1024);
        corner.set("workload.long", 400_000);
        corner.set("pm.log_size", "8KiB");
        corner.set("design.id_bits", [few, 16][trial as usize / 16 % 2]);
    }
    corner
}

/// For LOC's window of transactions: a small one, and one that drains its oldest transaction, with
/// no more than must go with it.
pub fn of_a_window(trial: u64, corner: &mut Corner) {
    if !trial.is_multiple_of(4) || trial % 16 == 12 {
        corner.set("design.sd", 4);
    }
    if trial % 5 == 2 {
        corner.set("design.drain", "oldest");
    }
}
