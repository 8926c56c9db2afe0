//! The persist buffer of one core, the Bloom filters of its fences, and AccumDP.

use std::collections::VecDeque;

use model::image::put_word;
use model::meters::Class;
use model::sieve::Sieve;
use model::units::{CoreId, Cycle, Line, LineData, Word, mix};

use super::DpoRules;

/// One core's persist buffer.
pub(super) struct Buffer {
    /// The entries, oldest first, until the buffer hears that they have drained. An entry beyond
    /// the buffer's size is a store or a fence that waits for room.
    pub entries: VecDeque<Entry>,
    /// How many entries have not left.
    pub waiting: usize,
    /// The lines of the entries that are writes.
    lines: Sieve,
    /// Each fence's filter, oldest first.
    filters: VecDeque<(u64, Filter)>,
    spare: Vec<Filter>,
    filter_bits: u64,
    /// AccumDP: the dependences that came with coherence replies since the last entry.
    pub accumulated: Vec<(CoreId, u64)>,
    /// The number of its newest entry.
    newest: u64,
    /// The newest of its entries that all buffers know to have drained.
    pub drained: u64,
    /// When the buffer looks whether an entry may leave, if it is to.
    pub drain_at: Option<Cycle>,
    /// The earliest time at which the next entry leaves: one leaves a cycle.
    pub next_send: Cycle,
    /// What its core waits for.
    pub waits: Option<Wait>,
    /// The entry that waits to leave, and what it waits for, so that it is counted once.
    pub blocked: Option<(u64, Blocked)>,
}

/// What an entry waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Entries that it depends on.
    Dependences,
    /// Room at a controller.
    Room,
}

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Room for its newest entry.
    Room,
    /// Until an entry's marker is retired, and no less than until a cycle.
    Sync(u64, Cycle),
}

/// A store or a fence.
pub(super) struct Entry {
    /// Its number among the entries of its core.
    pub id: u64,
    /// Its number among all entries.
    pub stamp: u64,
    pub what: What,
    /// Entries of other cores that it depends on. Buffers drain in order, so the newest of each
    /// core is enough.
    pub after: Vec<(CoreId, u64)>,
    /// When the core sends it, with the line there; it drains no earlier.
    pub leaves: Cycle,
    pub state: State,
}

/// What an entry is.
pub(super) enum What {
    Write {
        line: Line,
        data: LineData,
        class: Class,
        /// Y: whether it is the youngest copy of the line.
        youngest: bool,
    },
    Fence,
}

/// How far an entry has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Waiting,
    /// On its way to the controllers.
    Sent,
    /// At the controllers; the buffers are about to hear of it.
    Arrived,
}

impl Buffer {
    pub fn new(filter_bits: u64) -> Buffer {
        Buffer {
            entries: VecDeque::new(),
            waiting: 0,
            lines: Sieve::default(),
            filters: VecDeque::new(),
            spare: Vec::new(),
            filter_bits,
            accumulated: Vec::new(),
            newest: 0,
            drained: 0,
            drain_at: None,
            next_send: Cycle(0),
            waits: None,
            blocked: None,
        }
    }

    /// Notes what its core waits for.
    pub fn wait(&mut self, what: Wait) {
        assert_eq!(self.waits, None, "a core waits for one thing at a time");
        self.waits = Some(what);
    }

    /// Appends an entry. Returns its number.
    pub fn push(&mut self, entry: Entry) -> u64 {
        self.newest += 1;
        self.waiting += 1;
        match entry.what {
            What::Write { line, .. } => self.lines.add(line.0),
            What::Fence if self.filter_bits > 0 => {
                let filter = self.spare.pop().unwrap_or_else(|| Filter::new(self.filter_bits));
                self.filters.push_back((self.newest, filter));
            }
            What::Fence => (),
        }
        self.entries.push_back(Entry { id: self.newest, ..entry });
        self.newest
    }

    /// Removes an entry that has drained, and the filter of a fence with it.
    pub fn remove(&mut self, id: u64) {
        let index = self.position(id);
        if let Some(Entry { what: What::Write { line, .. }, .. }) = self.entries.remove(index) {
            self.lines.remove(line.0);
        }
        self.drained = self.drained.max(id);
        if self.filters.front().is_some_and(|(fence, _)| *fence <= id)
            && let Some((_, mut filter)) = self.filters.pop_front()
        {
            filter.clear();
            self.spare.push(filter);
        }
    }

    pub fn position(&self, id: u64) -> usize {
        let found = self.entries.binary_search_by_key(&id, |entry| entry.id);
        found.expect("an entry stays until its buffer hears that it has drained")
    }

    /// Puts a store into the entry of its line, if one takes it. Returns whether one did.
    pub fn merge(&mut self, word: Word, value: u64, leaves: Cycle, rules: &DpoRules) -> bool {
        if rules.own_entry_with_dependences && !self.accumulated.is_empty() {
            return false;
        }
        let own = word.line();
        if !self.lines.may_hold(own.0) {
            return false;
        }
        let goes_on = |what: &What| !(rules.keep_versions && matches!(what, What::Fence));
        let recent = self.entries.iter_mut().rev().take_while(|entry| goes_on(&entry.what));
        for entry in recent {
            match &mut entry.what {
                What::Write { line, data, .. } if *line == own => {
                    if entry.state != State::Waiting {
                        return false;
                    }
                    put_word(data, word, value);
                    entry.leaves = entry.leaves.max(leaves);
                    return true;
                }
                _ => (),
            }
        }
        false
    }

    /// Notes an access of the core to a line in the filter of its newest fence.
    #[inline]
    pub fn accessed(&mut self, line: Line) {
        if let Some((_, filter)) = self.filters.back_mut() {
            filter.add(bits_of(line, self.filter_bits));
        }
    }

    /// The newest fence behind which the core accessed a line, as far as its filter can tell.
    pub fn accessed_after(&self, line: Line) -> Option<u64> {
        if self.filters.is_empty() {
            return None;
        }
        let bits = bits_of(line, self.filter_bits);
        let mut fences = self.filters.iter().rev();
        fences.find(|(_, filter)| filter.may_hold(bits)).map(|(fence, _)| *fence)
    }

    /// The entry that has the youngest copy of a line. If it `clears`, it is no longer the
    /// youngest.
    pub fn youngest(&mut self, line: Line, clears: bool) -> Option<u64> {
        if !self.lines.may_hold(line.0) {
            return None;
        }
        self.entries.iter_mut().rev().find_map(|entry| match &mut entry.what {
            What::Write { line: own, youngest, .. } if *own == line && *youngest => {
                *youngest = !clears;
                Some(entry.id)
            }
            _ => None,
        })
    }

    /// Whether an entry is a write of a line.
    pub fn has_write(&self, line: Line) -> bool {
        let is_its = |what: &What| matches!(what, What::Write { line: own, .. } if *own == line);
        self.lines.may_hold(line.0) && self.entries.iter().any(|entry| is_its(&entry.what))
    }

    /// Notes that the core stores to a line again: an older entry of it is not the youngest copy.
    pub fn supersede(&mut self, line: Line) {
        self.youngest(line, true);
    }

    /// Sets what the newest write of a line, if it is still there, counts as.
    pub fn count_as(&mut self, line: Line, class: Class) {
        let mut writes = self.entries.iter_mut().rev().filter_map(|entry| match &mut entry.what {
            What::Write { line, class, .. } => Some((*line, class)),
            What::Fence => None,
        });
        if let Some((_, known)) = writes.find(|(own, _)| *own == line) {
            *known = class;
        }
    }

    /// Puts an entry of another core before the next one of this core.
    pub fn accumulate(&mut self, on: CoreId, id: u64) {
        match self.accumulated.iter_mut().find(|(core, _)| *core == on) {
            Some((_, newest)) => *newest = id.max(*newest),
            None => self.accumulated.push((on, id)),
        }
    }
}

/// A Bloom filter of lines.
struct Filter {
    words: Vec<u64>,
}

/// The two bits of a line in a filter: their words, and the bits in those.
type Bits = [(usize, u64); 2];

/// The bits of a line in every filter of `filter_bits` bits.
fn bits_of(line: Line, filter_bits: u64) -> Bits {
    let hash = mix(line.0);
    [hash >> 32, hash & 0xffff_ffff].map(|hash| {
        let bit = hash % filter_bits;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

impl Filter {
    fn new(bits: u64) -> Filter {
        Filter { words: vec![0; bits.div_ceil(64) as usize] }
    }

    fn add(&mut self, bits: Bits) {
        for (word, bit) in bits {
            self.words[word] |= bit;
        }
    }

    fn may_hold(&self, bits: Bits) -> bool {
        bits.iter().all(|&(word, bit)| self.words[word] & bit != 0)
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fence(buffer: &mut Buffer) -> u64 {
        let (what, after, leaves) = (What::Fence, Vec::new(), Cycle(0));
        buffer.push(Entry { id: 0, stamp: 0, what, after, leaves, state: State::Waiting })
    }

    #[test]
    fn a_filter_forgets_no_line() {
        for bits in [1, 7, 64, 65, 512] {
            let mut filter = Filter::new(bits);
            let of = |line| bits_of(Line(line), bits);
            assert!((0..100).all(|line| !filter.may_hold(of(line))), "{bits} bits");
            (0..40).for_each(|line| filter.add(of(line)));
            assert!((0..40).all(|line| filter.may_hold(of(line))), "{bits} bits");
        }
    }

    #[test]
    fn a_filter_takes_few_lines_for_others() {
        let mut filter = Filter::new(512);
        let of = |line| bits_of(Line(line), 512);
        (0..16).for_each(|line| filter.add(of(line)));
        let taken = (1000..2000).filter(|&line| filter.may_hold(of(line))).count();
        assert!(taken < 30, "{taken} of 1,000");
    }

    /// A filter has as many bits as it says. With n lines in it, each of the two bits of another
    /// line is set with the probability 1 - (1 - 1/bits)^2n.
    #[test]
    fn a_fence_takes_as_many_lines_for_others_as_its_bits_let_it() {
        for (bits, lines) in [(64, 4), (256, 16), (500, 32), (512, 16), (512, 32), (4096, 256)] {
            let (mut taken, mut asked) = (0, 0);
            for first in (0..400).map(|filter| 1_000_000 * filter) {
                let mut buffer = Buffer::new(bits);
                fence(&mut buffer);
                (first..first + lines).for_each(|line| buffer.accessed(Line(line)));
                let others = first + 10_000..first + 10_500;
                asked += 500;
                taken += others.filter(|&line| buffer.accessed_after(Line(line)).is_some()).count();
            }
            let is_set = 1.0 - (1.0 - 1.0 / bits as f64).powi(2 * lines as i32);
            let share = taken as f64 / f64::from(asked) / is_set.powi(2);
            assert!((0.9..1.1).contains(&share), "{bits} bits, {lines} lines: {share}");
        }
    }

    #[test]
    fn an_access_is_known_to_the_newest_fence_before_it() {
        let mut buffer = Buffer::new(512);
        buffer.accessed(Line(1));
        let first = fence(&mut buffer);
        buffer.accessed(Line(2));
        let second = fence(&mut buffer);
        buffer.accessed(Line(3));
        let fences = [1, 2, 3].map(|line| buffer.accessed_after(Line(line)));
        assert_eq!(fences, [None, Some(first), Some(second)]);
        buffer.remove(first);
        assert_eq!(buffer.accessed_after(Line(2)), None, "it has drained");
        buffer.remove(second);
        fence(&mut buffer);
        assert_eq!(buffer.accessed_after(Line(3)), None, "a filter that is used again is empty");
    }

    #[test]
    fn the_newest_dependence_on_a_core_is_enough() {
        let mut buffer = Buffer::new(0);
        for (core, id) in [(1, 5), (2, 1), (1, 3), (1, 9)] {
            buffer.accumulate(CoreId(core), id);
        }
        assert_eq!(buffer.accumulated, [(CoreId(1), 9), (CoreId(2), 1)]);
        fence(&mut buffer);
        buffer.accessed(Line(1));
        assert_eq!(buffer.accessed_after(Line(1)), None, "there is no filter");
    }
}
