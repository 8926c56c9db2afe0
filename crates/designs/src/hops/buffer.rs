//! The persist buffer of one core, and the global timestamp vector as all of the buffers poll it.

use std::collections::VecDeque;

use model::image::put_word;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, LineData, PerCore, Word};

use super::HopsRules;

/// One core's persist buffer, with its timestamp register.
pub(super) struct Buffer {
    /// The entries, oldest first. An entry beyond the buffer's size is a store that waits for room
    /// at the head of the store queue.
    pub entries: VecDeque<Entry>,
    /// How many entries have not been sent.
    pub unsent: usize,
    /// The thread's timestamp: the epoch that is open.
    pub epoch: u64,
    /// What its epochs wait for, in the order of the epochs.
    pub dependences: VecDeque<Dependence>,
    /// The epoch up to which another core, a fill or a fence has asked for everything to be sent.
    pub requested: u64,
    /// When the buffer looks for an entry to send, if it is to.
    pub drain_at: Option<Cycle>,
    /// The earliest time of the next send: the buffer sends one entry a cycle.
    pub next_send: Cycle,
    /// Whether a timer runs, and whether the last one found that nothing had been sent for long.
    pub timer: bool,
    pub overdue: bool,
    /// Whether its oldest entry waits for another core's epoch.
    pub blocked: bool,
    /// The stamp of the newest entry that did, so that it is counted once.
    pub waited: u64,
    /// When the core has drained, if its dfence waits until the buffer is empty.
    pub fence: Option<Cycle>,
    /// Whether the core's store waits for room.
    pub store_waits: bool,
    /// The line, and the stamp up to which its entries must be gone, before a load or store goes
    /// on.
    pub fill_waits: Option<(Line, u64)>,
    /// Whether it is a load.
    pub load_waits: bool,
}

/// An update of a line in one epoch.
pub(super) struct Entry {
    pub line: Line,
    pub data: LineData,
    /// The bytes that it writes, one bit each.
    pub mask: u64,
    pub epoch: u64,
    pub class: Class,
    /// When its last store leaves the core, with the line there; the entry is sent no earlier.
    pub leaves: Cycle,
    /// Its number among all entries of all cores.
    pub stamp: u64,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// In the buffer alone.
    Unsent,
    /// On its way to a controller.
    Sent,
    /// Durable; the acknowledgement is on its way back.
    Durable,
}

/// A dependence: an epoch, and all later ones of its core, wait until another core's is durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dependence {
    pub epoch: u64,
    pub on: CoreId,
    pub until: u64,
}

impl Buffer {
    pub fn new() -> Buffer {
        Buffer {
            entries: VecDeque::new(),
            unsent: 0,
            epoch: 1,
            dependences: VecDeque::new(),
            requested: 0,
            drain_at: None,
            next_send: Cycle(0),
            timer: false,
            overdue: false,
            blocked: false,
            waited: 0,
            fence: None,
            store_waits: false,
            fill_waits: None,
            load_waits: false,
        }
    }

    /// The newest epoch that is completely durable: the core's entry in the global vector.
    pub fn durable_epoch(&self) -> u64 {
        self.entries.front().map_or(self.epoch, |entry| entry.epoch) - 1
    }

    /// Puts a store into the entry of its line, if one takes it. Returns whether one did.
    pub fn merge(&mut self, word: Word, value: u64, leaves: Cycle, rules: &HopsRules) -> bool {
        let (line, epoch) = (word.line(), self.epoch);
        let mut recent = self
            .entries
            .iter_mut()
            .rev()
            .take_while(|entry| entry.epoch == epoch || !rules.keep_versions);
        let Some(entry) = recent.find(|entry| entry.line == line) else { return false };
        if entry.state != State::Unsent && rules.keep_what_was_sent {
            return false;
        }
        entry.put(word, value);
        entry.leaves = entry.leaves.max(leaves);
        true
    }

    pub fn position(&self, stamp: u64) -> usize {
        let found = self.entries.binary_search_by_key(&stamp, |entry| entry.stamp);
        found.expect("an entry stays until it is acknowledged")
    }

    /// Whether an older entry of the same line is on its way, as far as the buffer knows: it hears
    /// of durability only with the acknowledgement.
    pub fn is_overtaking(&self, index: usize) -> bool {
        let line = self.entries[index].line;
        self.entries.range(..index).any(|older| older.line == line && older.state != State::Unsent)
    }

    /// The epoch in which the core last stored to a line that it was the last to store to, as far
    /// as the buffer knows: the epoch of the line's newest entry, the oldest epoch in the buffer if
    /// the line has no entry, or none if the buffer is empty. (Ours: the paper does not say how a
    /// buffer finds it. Epochs leave in order, so the line's is no later than the oldest.)
    pub fn epoch_of(&self, line: Line) -> Option<u64> {
        let oldest = self.entries.front()?.epoch;
        Some(self.youngest(line).map_or(oldest, |(epoch, _)| epoch))
    }

    /// The youngest epoch with an entry of a line, and that entry's stamp.
    pub fn youngest(&self, line: Line) -> Option<(u64, u64)> {
        let entry = self.entries.iter().rev().find(|entry| entry.line == line)?;
        Some((entry.epoch, entry.stamp))
    }
}

impl Entry {
    pub fn put(&mut self, word: Word, value: u64) {
        put_word(&mut self.data, word, value);
        self.mask |= word.mask();
    }

    /// The words that it writes, with their values.
    pub fn words(&self) -> impl Iterator<Item = (Word, &[u8])> {
        let first = self.line.first_word().0;
        (0..8).map(move |place| Word(first + place)).filter_map(|word| {
            let at = word.place() * 8;
            (self.mask & word.mask() != 0).then(|| (word, &self.data[at..at + 8]))
        })
    }
}

/// The global timestamp vector as the buffers see it: all of them read it at multiples of an
/// interval.
pub(super) struct Polled {
    interval: u64,
    period: u64,
    seen: PerCore<u64>,
}

impl Polled {
    pub fn new(interval: u64, cores: u8) -> Polled {
        Polled { interval, period: 0, seen: PerCore::new(cores, |_| 0) }
    }

    /// Takes the time forward to `at`. To be called before anything changes the vector, and before
    /// it is read: between two calls it was constant, so it need not be read at every multiple.
    pub fn refresh(&mut self, at: Cycle, buffers: &PerCore<Buffer>) {
        let period = at.0.checked_div(self.interval).unwrap_or(self.period + 1);
        if period > self.period {
            self.period = period;
            for (core, buffer) in buffers.iter() {
                self.seen[core] = buffer.durable_epoch();
            }
        }
    }

    /// The newest epoch of a core that is known to be durable.
    pub fn seen(&self, core: CoreId) -> u64 {
        self.seen[core]
    }

    /// Whether a dependence is known to be satisfied.
    pub fn satisfies(&self, dependence: &Dependence) -> bool {
        self.seen[dependence.on] >= dependence.until
    }

    /// When a change of the vector at `at` is seen.
    pub fn next(&self, at: Cycle) -> Cycle {
        if self.interval == 0 {
            return at;
        }
        Cycle((at.0 / self.interval + 1) * self.interval)
    }
}

#[cfg(test)]
impl Entry {
    /// An entry of a test, which looks at nothing else of it.
    pub fn of(line: u64, epoch: u64, state: State) -> Entry {
        let (line, data, mask, class) = (Line(line), [0; 64], 1, Class::Data);
        Entry { line, data, mask, epoch, class, leaves: Cycle(0), stamp: epoch, state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_is_seen_at_multiples_of_the_interval() {
        let mut buffers = PerCore::new(2, |_| Buffer::new());
        let mut polled = Polled::new(100, 2);
        let wait = Dependence { epoch: 1, on: CoreId(1), until: 1 };
        polled.refresh(Cycle(110), &buffers);
        buffers[CoreId(1)].epoch = 2;
        polled.refresh(Cycle(199), &buffers);
        assert!(!polled.satisfies(&wait));
        assert_eq!(polled.next(Cycle(110)), Cycle(200));
        polled.refresh(Cycle(200), &buffers);
        assert!(polled.satisfies(&wait));
    }

    #[test]
    fn a_line_is_of_its_entry_s_epoch_or_of_the_oldest_that_is_there() {
        let mut buffer = Buffer::new();
        assert_eq!(buffer.epoch_of(Line(1)), None, "all is durable");
        for (line, epoch) in [(1, 3), (2, 4), (1, 5)] {
            buffer.entries.push_back(Entry::of(line, epoch, State::Unsent));
        }
        let epochs = [1, 2, 9].map(|line| buffer.epoch_of(Line(line)));
        assert_eq!(epochs, [Some(5), Some(4), Some(3)]);
    }

    #[test]
    fn without_an_interval_it_is_seen_at_once() {
        let mut buffers = PerCore::new(2, |_| Buffer::new());
        let mut polled = Polled::new(0, 2);
        buffers[CoreId(1)].epoch = 2;
        polled.refresh(Cycle(7), &buffers);
        assert!(polled.satisfies(&Dependence { epoch: 1, on: CoreId(1), until: 1 }));
        assert_eq!(polled.next(Cycle(7)), Cycle(7));
    }
}
