//! The SSP cache as the memory controller sees it: slots, the pages that they are bound to, and the
//! cores that refer to them (MICRO'19 section 4.1.2).

use std::collections::VecDeque;

use model::image::Image;
use model::units::{CoreId, Line, Page};

use crate::parts::page_table::Frames;
use crate::ssp::layout::{Kept, Layout, SlotId};

/// The slots, and the frame of every page.
pub struct Slots {
    slots: Vec<Slot>,
    /// For each page its slot's number plus 1; 0 if it has no slot.
    slot_of: Vec<u32>,
    frames: Frames,
    /// Slots that were idle when they were put here, and may be bound to another page.
    free: VecDeque<SlotId>,
    /// How many pages were bound in place of others.
    pub reused: u64,
}

/// An entry of the transient SSP cache.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The page that it is bound to, if it ever was bound.
    pub page: Option<Page>,
    /// The page's frame, the slot's extra page, and which lines are committed in the latter.
    pub kept: Kept,
    /// Lines whose newest bytes are in the extra page: the current bitmap, of which every TLB entry
    /// has a copy.
    pub cur: u64,
    /// Cores whose TLBs have the page: the TLB reference count.
    pub tlbs: u64,
    /// Cores in a transaction that stored to the page: the core references.
    pub cores: u64,
    /// What it is doing.
    pub state: State,
    is_listed: bool,
}

/// What a slot is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No core refers to it, and its page is in one piece.
    Idle,
    /// A core refers to it.
    Bound,
    /// Its page is to be consolidated.
    Queued,
    /// Its page is being consolidated.
    Consolidating,
}

impl Slots {
    /// Slots that are bound to nothing.
    pub fn new(layout: &Layout) -> Slots {
        let empty = |slot| Slot {
            page: None,
            kept: layout.first_kept(slot),
            cur: 0,
            tlbs: 0,
            cores: 0,
            state: State::Idle,
            is_listed: true,
        };
        Slots {
            slots: layout.all_slots().map(empty).collect(),
            slot_of: vec![0; layout.table.pages as usize],
            frames: Frames::new(&layout.table),
            free: layout.all_slots().collect(),
            reused: 0,
        }
    }

    /// Slots as an image has them. Those whose pages are in two frames are to be consolidated.
    ///
    /// # Errors
    /// A sentence, if a frame has two uses.
    pub fn boot(image: &Image<'_>, layout: &Layout) -> Result<(Slots, VecDeque<SlotId>), String> {
        let mut slots = Slots::new(layout);
        let mapped = layout.table.read(image)?;
        for &(page, frame) in &mapped.moved {
            slots.frames.set(page, frame);
        }
        let mut queue = VecDeque::new();
        for id in layout.written_slots(image) {
            let kept = layout.read_entry(id, image);
            slots[id].kept = kept;
            if let Some(page) = mapped.page_in(kept.ppn0).filter(|_| kept.com != 0) {
                let slot = &mut slots[id];
                (slot.page, slot.cur, slot.state) = (Some(page), kept.com, State::Queued);
                slot.is_listed = false;
                slots.slot_of[page.0 as usize] = id.0 + 1;
                queue.push_back(id);
            }
        }
        slots.free.retain(|id| slots.slots[id.0 as usize].is_listed);
        Ok((slots, queue))
    }

    /// The slot that a page is bound to.
    #[inline]
    pub fn of(&self, page: Page) -> Option<SlotId> {
        self.slot_of[page.0 as usize].checked_sub(1).map(SlotId)
    }

    /// The physical line that holds the newest bytes of a line.
    #[inline]
    pub fn locate(&self, line: Line) -> Line {
        let (page, place) = (Page::of(line), line.place_in_page());
        let Some(slot) = self.of(page) else { return self.frames.of(page).line(place) };
        let slot = &self[slot];
        let extra = slot.cur >> place & 1 == 1;
        (if extra { slot.kept.ppn1 } else { slot.kept.ppn0 }).line(place)
    }

    /// Binds a page that has no slot to the slot that has been idle longest, if one is idle.
    pub fn bind(&mut self, page: Page, tlbs: u64) -> Option<SlotId> {
        let id = loop {
            let id = self.free.pop_front()?;
            self[id].is_listed = false;
            if self[id].state == State::Idle {
                break id;
            }
        };
        if let Some(before) = self[id].page {
            self.slot_of[before.0 as usize] = 0;
            self.reused += 1;
        }
        self.slot_of[page.0 as usize] = id.0 + 1;
        let ppn0 = self.frames.of(page);
        let slot = &mut self[id];
        (slot.page, slot.kept.ppn0, slot.kept.com, slot.cur) = (Some(page), ppn0, 0, 0);
        (slot.tlbs, slot.cores, slot.state) = (tlbs, 0, State::Bound);
        Some(id)
    }

    /// Makes a slot idle, so that it is bound to another page when it is its turn.
    pub fn release(&mut self, id: SlotId) {
        self[id].state = State::Idle;
        if !std::mem::replace(&mut self[id].is_listed, true) {
            self.free.push_back(id);
        }
    }

    /// Notes that a page has been consolidated: sets its frame and the slot's extra page.
    pub fn switch(&mut self, id: SlotId, ppn0: Page, ppn1: Page) {
        let slot = &mut self[id];
        slot.kept = Kept { ppn0, ppn1, com: 0 };
        slot.cur = 0;
        if let Some(page) = slot.page {
            self.frames.set(page, ppn0);
        }
    }
}

impl Slot {
    /// Whether no core refers to it.
    pub fn is_unused(&self) -> bool {
        self.tlbs == 0 && self.cores == 0
    }

    /// A core's bit in a vector of references.
    pub fn bit(core: CoreId) -> u64 {
        1 << core.0
    }
}

impl std::ops::Index<SlotId> for Slots {
    type Output = Slot;
    fn index(&self, id: SlotId) -> &Slot {
        &self.slots[id.0 as usize]
    }
}

impl std::ops::IndexMut<SlotId> for Slots {
    fn index_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }
}
