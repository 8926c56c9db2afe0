//! The log area: a circular log of block groups, each of seven data blocks and a metadata block, or
//! of one block with its metadata in its burst.
//!
//! ```text
//! line 0            the head, one word
//! line 1 + 8g + s   data block s of group g, 0 to 6; group g is turned round by g lines
//! line 8 + 8g       metadata of group g: a word for each of its blocks, and one for a commit record
//! ```
//!
//! Where banks take turns by line, groups that lay alike would have their first blocks in one bank
//! and their metadata in another, whichever transactions they belong to.
//!
//! ```text
//! line 0            the head, one word
//! line 1 + g        block g, a data block or words of entries that have none
//! behind them       a word of metadata for each block
//! ```
//!
//! These words are on the lane that memory has for error correction. A word comes in the burst of
//! its block, is durable with the block and never without it, and no write of its own is sent. The
//! lane has cells of its own, which the image has behind the blocks. Entries that have no data
//! share a block, nine at the most: the first one's word is on the lane, the others' are in the
//! block.

use std::collections::{BTreeMap, VecDeque};

use model::design::{Gasp, Shape};
use model::device::Write;
use model::image::PowerLoss;
use model::meters::Class;
use model::units::{LINE_BYTES, Line, LineData, WORD_BYTES, Word};

use super::entry::{Entry, Format, Head, Place};

/// Data blocks of a group that has a metadata block.
pub const BLOCKS: u64 = 7;
/// Words of a line.
const LINE_WORDS: u64 = LINE_BYTES / WORD_BYTES;
/// Words of a group: those of a block, and the one in its burst.
const WORDS_MAX: usize = LINE_WORDS as usize + 1;

/// A group by its number, which only grows while the power is on; its place in the log area is the
/// number modulo the area's size.
pub type Group = u64;

/// How the log is made of groups.
#[derive(Clone, Copy, Debug)]
pub struct Grouping {
    /// Whether each group begins a line further round than the one before.
    pub turned: bool,
    /// Whether a group is one block, with its metadata in its burst.
    pub in_burst: bool,
}

/// Where the groups lie.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    base: Line,
    /// How many groups there is room for.
    pub groups: u64,
    grouping: Grouping,
}

impl Area {
    /// The log area of a machine: one log for all cores.
    pub fn new(shape: &Shape, grouping: Grouping) -> Area {
        let lines = u64::from(shape.cores) * shape.log_bytes / LINE_BYTES;
        let lines = lines.saturating_sub(1);
        let groups = match grouping.in_burst {
            true => lines * LINE_WORDS / (LINE_WORDS + 1),
            false => lines / (BLOCKS + 1),
        };
        Area { base: Line::of(shape.log_base), groups, grouping }
    }

    /// Data blocks of a group.
    pub fn blocks(self) -> u64 {
        if self.grouping.in_burst { 1 } else { BLOCKS }
    }

    /// How many bytes an area of `groups` groups takes.
    pub fn bytes_for(self, groups: u64) -> u64 {
        let lines = match self.grouping.in_burst {
            true => (groups * (LINE_WORDS + 1)).div_ceil(LINE_WORDS),
            false => groups * (BLOCKS + 1),
        };
        (1 + lines) * LINE_BYTES
    }

    /// Lines of a group.
    fn group_lines(self) -> u64 {
        if self.grouping.in_burst { 1 } else { BLOCKS + 1 }
    }

    /// The word of the head.
    pub fn head(self) -> Word {
        self.base.first_word()
    }

    /// A data block of a group.
    pub fn block(self, group: Group, slot: u64) -> Line {
        let group = group % self.groups;
        let turn = if self.grouping.turned { group } else { 0 };
        let lines = self.group_lines();
        Line(self.base.0 + 1 + group * lines + (slot + turn) % lines)
    }

    /// The metadata block of a group. If metadata are in bursts, it is the block itself, for the
    /// words of further entries.
    pub fn metadata(self, group: Group) -> Line {
        self.block(group, BLOCKS)
    }

    /// The word that comes in the burst of a block, if metadata do.
    pub fn lane(self, group: Group) -> Option<Word> {
        let first = Line(self.base.0 + 1 + self.groups).first_word();
        self.grouping.in_burst.then_some(Word(first.0 + group % self.groups))
    }

    /// How often the log has wrapped at a group.
    pub fn pass(self, group: Group) -> u64 {
        group / self.groups
    }
}

/// The groups that are in use.
pub struct Ring {
    pub area: Area,
    format: Format,
    /// The oldest group that is in use; `began` is the first that was.
    pub first: Group,
    began: Group,
    groups: VecDeque<State>,
    /// The blocks that are under way, if metadata are in bursts.
    bursting: BTreeMap<Group, Write>,
    /// The words that came in the bursts of blocks, the newest of each block.
    lane: BTreeMap<Word, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metadata {
    Kept,
    Sent,
    Durable,
}

/// A group that is in use.
#[derive(Clone, Debug)]
struct State {
    /// The words of its entries, and how many entries it has.
    words: [u64; WORDS_MAX],
    entries: usize,
    closed: bool,
    /// How many writes of data blocks are not durable.
    data: u64,
    metadata: Metadata,
    /// No entry in it, or in a later group, is of a transaction before this place.
    floor: Place,
}

impl Ring {
    pub fn new(area: Area, format: Format) -> Ring {
        let (bursting, lane) = (BTreeMap::new(), BTreeMap::new());
        Ring { area, format, first: 0, began: 0, groups: VecDeque::new(), bursting, lane }
    }

    /// Begins where a head says that the log begins.
    pub fn begin_at(&mut self, head: Head) {
        self.first = head.pass * self.area.groups + head.group;
        self.began = self.first;
    }

    /// How often the log has wrapped since power was applied.
    pub fn wraps(&self) -> u64 {
        self.area.pass(self.next()) - self.area.pass(self.began)
    }

    /// Groups in use.
    pub fn used(&self) -> u64 {
        self.groups.len() as u64
    }

    /// The group of the next entry.
    pub fn next(&self) -> Group {
        let open = self.groups.back().is_some_and(|group| !group.closed);
        self.first + self.used() - u64::from(open)
    }

    /// Whether there is room for an entry, with a data block or without.
    pub fn has_room(&self, data: bool) -> bool {
        let is_open = self.groups.back().is_some_and(|group| !group.closed);
        let joins = is_open && !(data && self.area.grouping.in_burst);
        joins || self.used() < self.area.groups
    }

    fn state(&mut self, group: Group) -> &mut State {
        &mut self.groups[(group - self.first) as usize]
    }

    /// Whether everything in a group is durable; in groups that were freed everything is.
    pub fn is_durable(&self, group: Group) -> bool {
        let Some(place) = group.checked_sub(self.first) else { return true };
        let state = &self.groups[place as usize];
        state.metadata == Metadata::Durable && state.data == 0
    }

    /// The first transaction that may have an entry in a group or in one after it.
    pub fn floor(&self, group: Group) -> Option<Place> {
        self.groups.get((group - self.first) as usize).map(|state| state.floor)
    }

    /// Appends an entry. Returns its group and the write of its data block, if it has one. The
    /// caller has seen that there is room, and has closed the open group if the entry has a burst
    /// of its own. No later entry is of a transaction before `floor`.
    pub fn append(
        &mut self,
        entry: Entry,
        data: Option<LineData>,
        floor: Place,
    ) -> (Group, Option<Write>) {
        if self.groups.back().is_none_or(|group| group.closed) {
            assert!(self.has_room(data.is_some()), "the log has room for a group");
            let words = [0; WORDS_MAX];
            let metadata = Metadata::Kept;
            let state = State { words, entries: 0, closed: false, data: 0, metadata, floor };
            self.groups.push_back(state);
        }
        let group = self.next();
        let word = self.format.encode(entry, self.area.pass(group));
        let state = self.groups.back_mut().expect("a group is open");
        let slot = state.entries as u64;
        state.words[state.entries] = word;
        state.entries += 1;
        state.data += u64::from(data.is_some());
        let line = self.area.block(group, slot);
        let write = data.map(|data| Write::whole(line, data, Class::Log));
        if !self.area.grouping.in_burst {
            state.closed = slot + 1 == BLOCKS;
        } else if let Some(write) = &write {
            (state.closed, state.metadata) = (true, Metadata::Durable);
            self.bursting.insert(group, write.clone());
        } else {
            state.closed = slot == LINE_WORDS;
        }
        (group, write)
    }

    /// Closes the open group, if there is one; the rest of it stays empty.
    pub fn close(&mut self) {
        if let Some(group) = self.groups.back_mut() {
            group.closed = true;
        }
    }

    /// The write of a group's metadata block, if it is due: the group is closed, and its data
    /// blocks are durable if they must be.
    pub fn metadata(&mut self, group: Group, after_data: bool) -> Option<Write> {
        let line = self.area.metadata(group);
        let in_burst = self.area.grouping.in_burst;
        let state = self.state(group);
        let waits = after_data && state.data > 0;
        if !state.closed || waits || state.metadata != Metadata::Kept {
            return None;
        }
        state.metadata = Metadata::Sent;
        let write = Write::whole(line, line_of(&state.words[in_burst.into()..]), Class::Metadata);
        if in_burst {
            self.bursting.insert(group, write.clone());
        }
        Some(write)
    }

    /// Notes that a data block of a group is durable.
    pub fn data_is_durable(&mut self, group: Group) {
        self.state(group).data -= 1;
        self.burst_is_durable(group);
    }

    /// Notes that the metadata block of a group is durable.
    pub fn metadata_is_durable(&mut self, group: Group) {
        self.state(group).metadata = Metadata::Durable;
        self.burst_is_durable(group);
    }

    /// Notes that the word in the burst of a block is durable with it.
    fn burst_is_durable(&mut self, group: Group) {
        if let Some(lane) = self.area.lane(group) {
            self.bursting.remove(&group);
            let word = self.state(group).words[0];
            self.lane.insert(lane, word);
        }
    }

    /// Blocks that are under way, each with the word in its burst, as far as they have `arrived`.
    pub fn could_be_durable(&self, arrived: &mut dyn FnMut() -> bool) -> Vec<Write> {
        let mut there = Vec::new();
        for (&group, block) in self.bursting.range(self.first..) {
            if let Some(lane) = self.area.lane(group)
                && arrived()
            {
                let word = self.groups[(group - self.first) as usize].words[0];
                let data = line_of(&[word; LINE_WORDS as usize]);
                let beside = Write { line: lane.line(), data, mask: lane.mask(), ..*block };
                there.extend([block.clone(), beside]);
            }
        }
        there
    }

    /// Saves what the lane holds.
    ///
    /// # Errors
    /// [`PowerLoss`] never, since the lane is made of cells.
    pub fn save_lane(&self, gasp: &mut Gasp<'_, '_>) -> Result<(), PowerLoss> {
        self.lane.iter().try_for_each(|(word, &value)| gasp.save_words(word.address(), &[value]))
    }

    /// The write of a commit record in the last word of a group's metadata block. The whole block
    /// is written once more, since memory would have to read it to change a part.
    pub fn record(&mut self, group: Group, by: Place) -> Write {
        let record = self.format.encode(Entry::Record { by }, self.area.pass(group));
        let line = self.area.metadata(group);
        let mut words = self.state(group).words;
        words[BLOCKS as usize] = record;
        Write::whole(line, line_of(&words), Class::Commit)
    }

    /// The write of a head: the log begins at `group`, with the transaction `first`.
    pub fn head(&self, group: Group, first: Place) -> Write {
        let pass = self.area.pass(group);
        let head = Head { group: group % self.area.groups, pass, first };
        let (word, value) = (self.area.head(), self.format.encode_head(head));
        let (line, mask) = (word.line(), word.mask());
        Write { line, data: line_of(&[value]), mask, class: Class::Metadata }
    }

    /// Frees the groups before one.
    pub fn free_before(&mut self, group: Group) {
        self.groups.drain(..(group - self.first) as usize);
        self.first = group;
    }
}

fn line_of(words: &[u64]) -> LineData {
    let mut data = [0; LINE_BYTES as usize];
    for (bytes, word) in data.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    data
}
