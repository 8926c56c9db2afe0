//! Recovery, which has only the image: it applies the groups of the journal that count to the
//! persistent SSP cache and the page table, and then undoes transactions that ran in software
//! (MICRO'19 section 4.4 for the journal; the rest is ours).

use model::design::Design;
use model::design::Setup;
use model::image::{Image, Placement, PowerLoss};
use model::units::PageSet;

use crate::parts::fall_back;
use crate::parts::journal::{self, Belief, Journal};
use crate::ssp::checkpoint::Known;
use crate::ssp::layout::Kept;
use crate::ssp::record::{Entry, apply, frames_of};
use crate::ssp::slots::Slots;
use crate::ssp::{Ssp, form, layout_of};

/// See the module.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Ssp>) -> Result<(), PowerLoss> {
    image.see_through(Placement::default());
    let layout = layout_of(setup);
    let rules = &setup.rules.first;
    let mut before: Vec<Kept> = layout.all_slots().map(|slot| layout.first_kept(slot)).collect();
    for slot in layout.written_slots(image) {
        before[slot.0 as usize] = layout.read_entry(slot, image);
    }
    let mut kept = before.clone();
    let belief = Belief {
        commit_record: rules.wait_for_commit_record,
        checksum: rules.verify_checksum_of_group,
    };
    let found = journal::read(image, &layout.ring, form(&setup.params.first), belief);
    let mut entries = Vec::new();
    for records in found.groups() {
        entries.clear();
        entries.extend(records.iter().map(|&record| Entry::decode(record)));
        for &entry in &entries {
            apply(entry, rules.log_both_pages, &mut kept);
        }
        for (page, frame) in frames_of(&entries).filter(|_| rules.redo_page_table) {
            layout.table.set(page, frame, image)?;
        }
    }
    let slots = layout.all_slots().zip(before.iter().zip(&kept));
    for (slot, (_, kept)) in slots.filter(|(_, (before, kept))| before != kept) {
        for (word, value) in layout.entry_words(slot, kept) {
            image.merge_word(word, value, u64::MAX)?;
        }
    }
    if rules.fence_before_journal_restarts {
        image.fence();
    }
    journal::restart(&found, rules.restart_a_lap_later, image, &layout.ring)?;
    // If what survived contradicts itself, the checkers that read the image say so.
    let placement = resolve(image, setup).unwrap_or_default();
    fall_back::recover(image, placement, &setup.rules.second, setup.shape)
}

/// The design on a machine that boots from an image after recovery.
pub fn boot(image: &Image<'_>, setup: &Setup<'_, Ssp>) -> Ssp {
    let design = Ssp::new(setup);
    let layout = &design.layout;
    let (slots, queue) = Slots::boot(image, layout).expect("who resolved it saw one use a frame");
    let journal = Journal::boot(image, layout.ring.clone(), form(&setup.params.first));
    Ssp { slots, queue, journal, known: Known::boot(image, layout), ..design }
}

/// Where every page's lines lie, from the page table and the persistent SSP cache.
///
/// # Errors
/// A sentence, if a frame has two uses.
pub fn resolve(image: &Image<'_>, setup: &Setup<'_, Ssp>) -> Result<Placement, String> {
    let layout = layout_of(setup);
    let mapped = layout.table.read(image)?;
    let mut placement = Placement::default();
    for &(page, frame) in &mapped.moved {
        placement.place(page, frame, frame, 0);
    }
    let written = layout.written_slots(image);
    let mut extras = PageSet::with_capacity_and_hasher(written.len(), Default::default());
    let mut is_written = vec![false; layout.all_slots().count()];
    written.iter().for_each(|slot| is_written[slot.0 as usize] = true);
    let unwritten = |page| layout.slot_of_extra(page).filter(|slot| !is_written[slot.0 as usize]);
    let extra = mapped.moved.iter().find(|(_, frame)| unwritten(*frame).is_some());
    if let Some((page, frame)) = extra {
        return Err(format!("page {page:?} has the frame {frame:?}, which is an extra page"));
    }
    for &slot in &written {
        let Kept { ppn0, ppn1, com } = layout.read_entry(slot, image);
        if unwritten(ppn1).is_some() || mapped.page_in(ppn1).is_some() || !extras.insert(ppn1) {
            return Err(format!("{ppn1:?} is the extra page of {slot:?}, and has another use"));
        }
        if com == 0 {
            continue;
        }
        let Some(page) = mapped.page_in(ppn0) else {
            return Err(format!("{slot:?} has lines of the frame {ppn0:?}, which no page has"));
        };
        placement.place(page, ppn0, ppn1, com);
    }
    Ok(placement)
}
