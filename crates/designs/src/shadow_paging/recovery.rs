//! Recovery, which has only the image: it sets the page table as the groups of the journal that
//! count say, and then undoes transactions that ran in software. The page table shows which frames
//! are free.

use std::collections::BTreeMap;

use model::design::Design;
use model::design::Setup;
use model::image::{Image, Placement, PowerLoss};
use model::units::Page;

use crate::parts::fall_back;
use crate::parts::journal::{self, Belief, Journal};
use crate::shadow_paging::{FORM, ShadowPaging, layout_of};

/// See the module.
pub fn recover(image: &mut Image<'_>, setup: &Setup<'_, ShadowPaging>) -> Result<(), PowerLoss> {
    image.see_through(Placement::default());
    let (layout, rules) = (layout_of(setup), &setup.rules.first);
    let belief = Belief {
        commit_record: rules.wait_for_commit_record,
        checksum: rules.verify_checksum_of_group,
    };
    let found = journal::read(image, &layout.ring, FORM, belief);
    let records = found.records.iter();
    let frames: BTreeMap<Page, Page> =
        records.filter_map(|&record| layout.decode(record)).collect();
    for (page, frame) in frames {
        if rules.redo_page_table {
            layout.table.set(page, frame, image)?;
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
pub fn boot(image: &Image<'_>, setup: &Setup<'_, ShadowPaging>) -> ShadowPaging {
    let mut design = ShadowPaging::new(setup);
    let layout = &design.layout;
    let mapped = layout.table.read(image).expect("who resolved it saw one use a frame");
    design.journal = Journal::boot(image, layout.ring.clone(), FORM);
    for &(page, frame) in &mapped.moved {
        design.frames.set(page, frame);
    }
    let left = mapped.moved.iter().map(|&(page, _)| page);
    let frames = layout.shadow_frames().chain(left);
    design.free = frames.filter(|&frame| mapped.page_in(frame).is_none()).collect();
    design
}

/// Where every page lies, from the page table.
///
/// # Errors
/// A sentence, if a frame has two uses.
pub fn resolve(image: &Image<'_>, setup: &Setup<'_, ShadowPaging>) -> Result<Placement, String> {
    let layout = layout_of(setup);
    let mapped = layout.table.read(image)?;
    let mut placement = Placement::default();
    for &(page, frame) in &mapped.moved {
        if !layout.is_frame(frame) {
            return Err(format!("page {page:?} has the frame {frame:?}, which is none"));
        }
        placement.place(page, frame, frame, 0);
    }
    Ok(placement)
}
