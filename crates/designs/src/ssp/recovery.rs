//! Recovery, which has the image alone: the groups of the journal that count are applied to the
//! persistent SSP cache and the page table (specs/remapping.md 1.7), and then transactions that
//! ran in software are undone.

use std::collections::{BTreeMap, BTreeSet};

use model::design::Setup;
use model::image::{Image, Placement, PowerLoss};
use model::units::Page;

use crate::software::Log;
use crate::ssp::journal::{apply, frame_of, record_words};
use crate::ssp::layout::{Kept, Layout, SlotId};
use crate::ssp::record::{Entry, LINE_RECORDS, Record, checksum};
use crate::ssp::{Ssp, SspRules, layout_of};
use crate::undo::Undo;

/// Records of a group, at most: one for each page of a write-set buffer.
const GROUP_RECORDS: usize = 64;

/// See the module.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, Ssp>) -> Result<(), PowerLoss> {
    image.see_through(Placement::default());
    let layout = layout_of(setup);
    let rules = &setup.rules.first;
    let mut before: Vec<Kept> = layout.all_slots().map(|slot| layout.first_kept(slot)).collect();
    for slot in layout.written_slots(image) {
        before[usize::from(slot.0)] = layout.read_entry(slot, image);
    }
    let mut kept = before.clone();
    let tail = image.word(layout.tail());
    let mut at = tail;
    while at - tail < layout.ring_lines * LINE_RECORDS
        && let Some((entries, end)) = group(at, image, &layout, rules)
    {
        for &entry in &entries {
            apply(entry, rules.log_both_pages, &mut kept);
        }
        if let Some((page, frame)) = frame_of(&entries).filter(|_| rules.redo_page_table) {
            layout.set_frame(page, frame, image)?;
        }
        let pads = setup.params.first.journal == 0;
        at = if pads { end.next_multiple_of(LINE_RECORDS) } else { end };
    }
    let slots = layout.all_slots().zip(before.iter().zip(&kept));
    for (slot, (_, kept)) in slots.filter(|(_, (before, kept))| before != kept) {
        for (word, value) in layout.entry_words(slot, kept) {
            if image.word(word) != value {
                image.set_word(word, value)?;
            }
        }
    }
    if at != tail {
        image.set_word(layout.tail(), at)?;
    }
    // The software log has the addresses that programs use. If what survived contradicts itself,
    // whoever reads the image says so.
    image.see_through(resolve(image, setup).unwrap_or_default());
    Undo::recover(image, &setup.rules.second, setup.shape)?;
    image.see_through(Placement::default());
    Ok(())
}

/// The group that begins at a position, if it counts, and where it ends.
fn group(
    start: u64,
    image: &Image<'_>,
    layout: &Layout,
    rules: &SspRules,
) -> Option<(Vec<Entry>, u64)> {
    let mut records: Vec<Record> = Vec::new();
    while records.len() <= GROUP_RECORDS {
        let at = start + records.len() as u64;
        let record = record_words(layout, at).map(|word| image.word(word));
        let Entry::Commit { count, position, sum } = Entry::decode(record) else {
            records.push(record);
            continue;
        };
        let is_right =
            !rules.verify_checksum_of_group || sum == checksum(&records, start & 0xffff_ffff);
        if count == records.len() as u64 && position == start & 0xffff_ffff && is_right {
            return Some((records.into_iter().map(Entry::decode).collect(), at + 1));
        }
        break;
    }
    if rules.wait_for_commit_record || records.is_empty() {
        return None;
    }
    let tid = |record: &Record| record[1] & 0xfff;
    let of_first = records.iter().take_while(|record| tid(record) == tid(&records[0])).count();
    let entries: Vec<Entry> =
        records[..of_first].iter().map(|&record| Entry::decode(record)).collect();
    Some((entries, start + of_first as u64))
}

/// Where every page's lines lie, from the page table and the persistent SSP cache.
///
/// # Errors
/// A sentence, if a frame has two uses.
pub fn resolve(image: &Image<'_>, setup: &Setup<'_, Ssp>) -> Result<Placement, String> {
    let layout = layout_of(setup);
    let moved = layout.moved_pages(image);
    let mut page_of: BTreeMap<Page, Page> = BTreeMap::default();
    let mut placement = Placement::default();
    for &(page, frame) in &moved {
        placement.place(page, frame, frame, 0);
        if let Some(other) = page_of.insert(frame, page) {
            return Err(format!("pages {page:?} and {other:?} have the frame {frame:?}"));
        }
    }
    let left: BTreeSet<Page> = moved.iter().map(|&(page, _)| page).collect();
    let is_home = |frame: Page| frame.0 < layout.pages && !left.contains(&frame);
    if let Some((page, frame)) = moved.iter().find(|(_, frame)| is_home(*frame)) {
        return Err(format!("page {page:?} has the frame {frame:?}, which is another's"));
    }
    let mut extras: BTreeSet<Page> = BTreeSet::default();
    let written = layout.written_slots(image);
    let is_written = |slot: &SlotId| written.binary_search_by_key(&slot.0, |slot| slot.0).is_ok();
    let unwritten = |page| layout.slot_of_extra(page).filter(|slot| !is_written(slot));
    if let Some((page, frame)) = moved.iter().find(|(_, frame)| unwritten(*frame).is_some()) {
        return Err(format!("page {page:?} has the frame {frame:?}, which is an extra page"));
    }
    for &slot in &written {
        let Kept { ppn0, ppn1, com } = layout.read_entry(slot, image);
        if unwritten(ppn1).is_some()
            || is_home(ppn1)
            || page_of.contains_key(&ppn1)
            || !extras.insert(ppn1)
        {
            return Err(format!("{ppn1:?} is the extra page of {slot:?}, and has another use"));
        }
        if com == 0 {
            continue;
        }
        let page = page_of.get(&ppn0).copied().or_else(|| is_home(ppn0).then_some(ppn0));
        let Some(page) = page else {
            return Err(format!("{slot:?} has lines of the frame {ppn0:?}, which no page has"));
        };
        placement.place(page, ppn0, ppn1, com);
    }
    Ok(placement)
}
