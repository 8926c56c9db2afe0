//! The part of the SSP cache that the last level of the caches has: as many slots as it has room
//! for, those that were looked up last (MICRO'19 section 4.1.2: its hot part; the order is ours).

use crate::ssp::layout::SlotId;

/// The slots that the last level has, as a circle in the order in which they were looked up.
pub struct Hot {
    /// For each slot the ones looked up before it and after it; [`ABSENT`] if it is not there. The
    /// one more at the end is where the circle begins. Nothing, if all slots are there.
    links: Vec<[u32; 2]>,
}

const ABSENT: [u32; 2] = [u32::MAX; 2];
const BEFORE: usize = 0;
const AFTER: usize = 1;

impl Hot {
    /// At first the slots with the lowest numbers are there.
    pub fn new(slots: u32, room: u64) -> Hot {
        let mut hot = Hot { links: Vec::new() };
        if room < u64::from(slots) {
            hot.links = vec![ABSENT; slots as usize];
            hot.links.push([slots; 2]);
            (0..room as u32).for_each(|slot| hot.insert(slot));
        }
        hot
    }

    /// Returns whether the last level has a slot that is looked up. From then on it has, instead of
    /// the one that was not looked up for longest.
    pub fn look_up(&mut self, SlotId(slot): SlotId) -> bool {
        let Some(start) = self.links.len().checked_sub(1) else { return true };
        let is_there = self.links[slot as usize] != ABSENT;
        let leaves = if is_there { slot } else { self.links[start][AFTER] };
        if leaves as usize == start {
            // There is room for none.
            return false;
        }
        let [before, after] = std::mem::replace(&mut self.links[leaves as usize], ABSENT);
        self.links[before as usize][AFTER] = after;
        self.links[after as usize][BEFORE] = before;
        self.insert(slot);
        is_there
    }

    /// Makes a slot that is not there the last one that was looked up.
    fn insert(&mut self, slot: u32) {
        let start = self.links.len() - 1;
        let last = std::mem::replace(&mut self.links[start][BEFORE], slot);
        self.links[slot as usize] = [last, start as u32];
        self.links[last as usize][AFTER] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slot_that_was_not_looked_up_for_longest_leaves() {
        let mut hot = Hot::new(5, 2);
        let mut found = |slots: &[u32]| -> Vec<bool> {
            slots.iter().map(|&slot| hot.look_up(SlotId(slot))).collect()
        };
        assert_eq!(found(&[0, 1, 0]), [true; 3]);
        assert_eq!(found(&[4, 0, 1, 4, 1, 4]), [false, true, false, false, true, true]);
    }

    #[test]
    fn all_slots_have_room_or_none() {
        let (mut all, mut none) = (Hot::new(3, 3), Hot::new(3, 0));
        for slot in [2, 2, 0] {
            assert_eq!([&mut all, &mut none].map(|hot| hot.look_up(SlotId(slot))), [true, false]);
        }
    }
}
