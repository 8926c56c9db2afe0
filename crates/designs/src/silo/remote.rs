//! Silo on a machine with several memory controllers (ours: the paper has one, and says that all
//! logs of a transaction go to one).
//!
//! The log buffers and the log controller are in the first memory controller, so a commit needs no
//! agreement. But two messages can cross: a word of the logs on its way to another controller, and
//! the news that this controller has accepted an evicted line with a newer value of the word. The
//! other controller therefore remembers each evicted line that it accepted, until the log
//! controller has answered that it knows of the line and that nothing of the line is on its way,
//! and refuses a word that such a line supersedes. Whatever a power failure interrupts, every log
//! that is needed is still in the buffer: at worst recovery writes what memory already has.

use model::design::Below;
use model::units::{CoreId, Cycle, Line, PerCore, Word};

use super::{LogBuffer, Silo, SiloEvent};

/// An evicted line that another controller accepted.
pub struct Told {
    pub line: Line,
    /// The number of the last store before the line left the caches.
    left: u64,
    stage: Stage,
}

/// How far the news of an evicted line has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The news is on its way to the log controller.
    Sent,
    /// The log controller has set the flush-bits.
    Known,
    /// The log controller's answer is on its way.
    Answered,
}

/// Whether a line belongs to a controller other than the log controller's.
pub fn is_remote(line: Line, below: &Below<SiloEvent>) -> bool {
    below.memory.controller_of(line) != 0
}

impl Silo {
    /// Whether another core's logs have the word on its way to its controller.
    pub(super) fn is_delivered(&self, core: CoreId, word: Word) -> bool {
        let same = |other: CoreId, delivery: Option<Option<Word>>| {
            other != core && delivery == Some(Some(word))
        };
        self.deliveries > 0
            && self.rules.one_delivery_of_a_word
            && self.cores.iter().any(|(other, buffer)| same(other, buffer.delivery))
    }

    /// Sends the next write of a core's logs to another controller: a word, or records.
    pub(super) fn deliver(
        &mut self,
        core: CoreId,
        word: Option<Word>,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        self.cores[core].delivery = Some(word);
        self.deliveries += 1;
        self.counts.delivered += 1;
        below.at(at + self.params.controller_hop, SiloEvent::Reach(core));
    }

    /// The other controller accepts the write, refuses it, or has no room for it yet.
    pub(super) fn reach(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        let back = at + self.params.controller_hop;
        let (write, log) = self.cores[core].next_write().expect("what is sent is not forgotten");
        let newer =
            |told: &Told| told.line == write.line && log.is_some_and(|log| log.stamp <= told.left);
        if self.rules.refuse_what_is_superseded && self.told.iter().any(newer) {
            self.counts.refused += 1;
            return below.at(back, SiloEvent::Refused(core));
        }
        if !below.give_if_room(at, &write) {
            return below.memory.when_room(write.line, SiloEvent::Reach(core));
        }
        below.at(back, SiloEvent::Delivered(core));
    }

    /// Goes on when the write that was sent is durable: durable first, forgotten after.
    pub(super) fn delivered(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        self.cores[core].delivery = None;
        self.deliveries -= 1;
        if self.cores[core].spill.is_some() {
            self.spilled(core, at, below);
            below.at(at, SiloEvent::Spill(core));
        } else {
            self.counts.updates += 1;
            self.cores[core].updated = true;
            below.at(at, SiloEvent::Update(core));
        }
        self.retry_stalled(at, below);
        self.answer(at, below);
    }

    /// Goes on when the write that was sent has been refused as old: the log controller has heard
    /// by now of the eviction that supersedes it.
    pub(super) fn refused(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        self.cores[core].delivery = None;
        self.deliveries -= 1;
        let again = match self.cores[core].spill {
            Some(_) => SiloEvent::Spill(core),
            None => SiloEvent::Update(core),
        };
        below.at(at, again);
        self.retry_stalled(at, below);
        self.answer(at, below);
    }

    /// Tells the log controller that another controller has accepted an evicted line.
    pub(super) fn tell(&mut self, line: Line, left: u64, at: Cycle, below: &mut Below<SiloEvent>) {
        self.told.push(Told { line, left, stage: Stage::Sent });
        below.at(at + self.params.controller_hop, SiloEvent::Hear(line));
    }

    /// Sets the flush-bits for an evicted line, when the log controller hears of it.
    pub(super) fn hear(&mut self, line: Line, at: Cycle, below: &mut Below<SiloEvent>) {
        let left = self.advance(line, Stage::Sent, Stage::Known);
        if self.rules.remote_eviction_marks {
            self.mark_evicted(line, left);
        }
        self.retry_stalled(at, below);
        self.answer(at, below);
    }

    /// Answers the news that the log controller has heard, once nothing of the line is on its way.
    fn answer(&mut self, at: Cycle, below: &mut Below<SiloEvent>) {
        let on_its_way = |line: Line, cores: &PerCore<LogBuffer>| {
            let mut deliveries = cores.iter().filter_map(|(_, buffer)| buffer.delivery);
            deliveries.any(|word| word.is_some_and(|word| word.line() == line))
        };
        for told in &mut self.told {
            if told.stage == Stage::Known && !on_its_way(told.line, &self.cores) {
                told.stage = Stage::Answered;
                below.at(at + self.params.controller_hop, SiloEvent::Heard(told.line));
            }
        }
    }

    /// Forgets the line at the other controller, which has the answer now.
    pub(super) fn heard(&mut self, line: Line) {
        let mut answered = |told: &Told| told.line == line && told.stage == Stage::Answered;
        let index = self.told.iter().position(&mut answered);
        self.told.remove(index.expect("what was answered was told"));
    }

    /// Moves the first news of a line from one stage to another. Returns the number of the last
    /// store before the line left.
    fn advance(&mut self, line: Line, from: Stage, to: Stage) -> u64 {
        let mut news = self.told.iter_mut().filter(|told| told.line == line);
        let told = news.find(|told| told.stage == from).expect("there is news of the line");
        told.stage = to;
        told.left
    }
}
