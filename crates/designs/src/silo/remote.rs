//! Silo on a machine with several memory controllers (ours: the paper has one, and says that all
//! logs of a transaction go to one).
//!
//! The log buffers and the log controller are in the first memory controller, so a commit needs no
//! agreement. But two messages can cross: a word of the logs on its way to another controller, and
//! the news that this controller has accepted an evicted line with a newer value of the word. The
//! other controller therefore remembers each evicted line that it accepted, until the log
//! controller has answered that it knows of the line and that nothing that was sent before is still
//! on its way, and refuses a word that such a line supersedes. Whatever a power failure interrupts,
//! every log that is needed is still in the buffer: at worst recovery writes what memory already
//! has. So what the other controller remembers needs no energy.
//!
//! It has places for so many lines (`design.told`). An evicted line that finds none cannot wait, as
//! its controller has accepted it. Such lines are counted, with the number of the newest store that
//! any of them may carry; until all have been answered, each word up to that store is refused,
//! whatever its line, and sent again.

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, Cycle, Line, Word};

use super::{Log, LogBuffer, Silo, SiloEvent};

/// A write of a core's logs that is on its way to another controller, or whose answer is on its way
/// back.
pub struct Delivery {
    /// Its number among all, by which events and its log name it.
    number: u64,
    write: Write,
    /// The log whose word it is, as it was sent; none for a record of an overflow.
    log: Option<Log>,
}

/// An evicted line that another controller accepted.
pub struct Told {
    pub line: Line,
    /// The number of the last store before the line left the caches.
    left: u64,
    stage: Stage,
    /// Whether it has no place of its own.
    is_counted: bool,
}

/// What a controller knows of the lines that have no place of their own.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    lines: u64,
    /// The largest number of the last stores before these lines left.
    left: u64,
}

/// How far the news of an evicted line has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The news is on its way to the log controller.
    Sent,
    /// The log controller has set the flush-bits, when so many deliveries had been sent.
    Known(u64),
    /// The log controller's answer is on its way.
    Answered,
}

/// Whether a line belongs to a controller other than the log controller's.
pub fn is_remote(line: Line, below: &Below<SiloEvent>) -> bool {
    below.memory.controller_of(line) != 0
}

impl LogBuffer {
    /// Whether a record of an overflow is on its way to another controller.
    pub(super) fn sends_records(&self) -> bool {
        self.deliveries.iter().any(|delivery| delivery.log.is_none())
    }
}

impl Silo {
    /// Whether some core's logs have the word on its way to its controller.
    pub(super) fn is_delivered(&self, word: Word) -> bool {
        let mut cores = self.cores.iter();
        self.rules.one_delivery_of_a_word
            && cores.any(|(_, buffer)| buffer.deliveries.iter().any(|sent| sent.carries(word)))
    }

    /// Gives a write of a core's logs, the word of one of them or a record of an overflow, to the
    /// first controller, or sends it to another one. Returns whether it is durable by now. If there
    /// is no room, or too much is on its way, it returns none, and the next step comes later.
    pub(super) fn write(
        &mut self,
        core: CoreId,
        write: Write,
        index: Option<usize>,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) -> Option<bool> {
        let line = write.line;
        if is_remote(line, below) {
            // With the next answer there is a place for another one.
            let may_send = (self.cores[core].deliveries.len() as u64) < self.params.deliveries;
            return may_send.then(|| {
                self.deliver(core, write, index, at, below);
                false
            });
        }
        if !below.give_if_room(at, &write) {
            self.cores[core].stepping = true;
            below.memory.when_room(line, SiloEvent::Step(core));
            return None;
        }
        Some(true)
    }

    fn deliver(
        &mut self,
        core: CoreId,
        write: Write,
        index: Option<usize>,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        self.counts.delivered += 1;
        let (number, buffer) = (self.counts.delivered, &mut self.cores[core]);
        let log = index.map(|index| {
            let log = &mut buffer.logs[index];
            log.sent = Some(number);
            *log
        });
        buffer.deliveries.push(Delivery { number, write, log });
        below.at(at + self.hop, SiloEvent::Reach(core, number));
    }

    /// The other controller accepts a write, refuses it, or has no room for it yet.
    pub(super) fn reach(
        &mut self,
        core: CoreId,
        number: u64,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        let back = at + self.hop;
        let mut sent = self.cores[core].deliveries.iter();
        let sent = sent.find(|sent| sent.number == number).expect("it is not answered yet");
        let line = sent.write.line;
        if sent.log.is_some_and(|log| self.is_superseded(&log, below)) {
            self.counts.refused += 1;
            return below.at(back, SiloEvent::Refused(core, number));
        }
        if !below.give_if_room(at, &sent.write) {
            return below.memory.when_room(line, SiloEvent::Reach(core, number));
        }
        below.at(back, SiloEvent::Delivered(core, number));
    }

    /// Whether a word's controller has accepted a line that may carry the same or a newer value of
    /// it, and has no answer yet.
    fn is_superseded(&self, log: &Log, below: &Below<SiloEvent>) -> bool {
        let line = log.word.line();
        let newer = |told: &Told| told.line == line && !told.is_counted && log.stamp <= told.left;
        let counted = self.counted[below.memory.controller_of(line)];
        self.rules.refuse_what_is_superseded && self.told.iter().any(newer)
            || self.rules.refuse_what_may_be_superseded
                && counted.lines > 0
                && log.stamp <= counted.left
    }

    /// Goes on when a write that was sent is durable: durable first, forgotten after.
    pub(super) fn delivered(
        &mut self,
        core: CoreId,
        number: u64,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        let was_running =
            self.take_answered(core, number).is_some_and(|log| log.committed.is_none());
        let logs = &mut self.cores[core].logs;
        if let Some(index) = logs.iter().position(|log| log.sent == Some(number)) {
            logs[index].sent = None;
            if was_running {
                self.supersede(core, index);
            } else {
                self.counts.updates += 1;
            }
            self.mark_updated(core, index);
        }
        self.after_answer(core, at, below);
    }

    /// Goes on when a write that was sent has been refused as old: the log controller has heard
    /// by now of the eviction that supersedes it. If that eviction was only counted, it may be one
    /// of another line; then the word is sent again.
    pub(super) fn refused(
        &mut self,
        core: CoreId,
        number: u64,
        at: Cycle,
        below: &mut Below<SiloEvent>,
    ) {
        self.take_answered(core, number);
        let mut logs = self.cores[core].logs.iter_mut();
        if let Some(log) = logs.find(|log| log.sent == Some(number)) {
            log.sent = None;
        }
        self.after_answer(core, at, below);
    }

    /// Removes a write that has been answered. Returns the log that was sent.
    fn take_answered(&mut self, core: CoreId, number: u64) -> Option<Log> {
        let deliveries = &mut self.cores[core].deliveries;
        let index = deliveries.iter().position(|sent| sent.number == number);
        deliveries.remove(index.expect("each is answered once")).log
    }

    /// Lets everything go on that may have waited for an answer.
    fn after_answer(&mut self, core: CoreId, at: Cycle, below: &mut Below<SiloEvent>) {
        self.retire(core, at, below);
        self.step_at(core, at, below);
        self.retry_stalled(at, below);
        self.answer(at, below);
    }

    /// Tells the log controller that another controller has accepted an evicted line.
    pub(super) fn tell(&mut self, line: Line, left: u64, at: Cycle, below: &mut Below<SiloEvent>) {
        let controller = below.memory.controller_of(line);
        let has_place =
            |told: &&Told| !told.is_counted && below.memory.controller_of(told.line) == controller;
        let placed = self.told.iter().filter(has_place).count() as u64;
        let is_counted = placed == self.params.told;
        if is_counted {
            let counted = &mut self.counted[controller];
            counted.lines += 1;
            counted.left = counted.left.max(left);
            self.counts.told_counted += 1;
        } else {
            self.counts.told_max = self.counts.told_max.max(placed + 1);
        }
        self.told.push(Told { line, left, stage: Stage::Sent, is_counted });
        below.at(at + self.hop, SiloEvent::Hear(line));
    }

    /// Sets the flush-bits for an evicted line, when the log controller hears of it.
    pub(super) fn hear(&mut self, line: Line, at: Cycle, below: &mut Below<SiloEvent>) {
        let known = Stage::Known(self.counts.delivered);
        let mut news = self.told.iter_mut().filter(|told| told.line == line);
        let told = news.find(|told| told.stage == Stage::Sent).expect("there is news of the line");
        told.stage = known;
        let left = told.left;
        if self.rules.remote_eviction_marks {
            self.mark_evicted(line, left);
        }
        self.retry_stalled(at, below);
        self.answer(at, below);
    }

    /// Answers the news that the log controller has heard, once nothing of the line is on its way
    /// that was sent before. What is sent later is newer than the line.
    fn answer(&mut self, at: Cycle, below: &mut Below<SiloEvent>) {
        let (hop, cores) = (self.hop, &self.cores);
        let on_its_way = |line: Line, sent: u64| {
            let mut deliveries = cores.iter().flat_map(|(_, buffer)| &buffer.deliveries);
            deliveries.any(|delivery| delivery.number <= sent && delivery.write.line == line)
        };
        for told in &mut self.told {
            if let Stage::Known(sent) = told.stage
                && !on_its_way(told.line, sent)
            {
                told.stage = Stage::Answered;
                below.at(at + hop, SiloEvent::Heard(told.line));
            }
        }
    }

    /// Forgets the line at the other controller, which has the answer now.
    pub(super) fn heard(&mut self, line: Line, below: &Below<SiloEvent>) {
        let mut answered = |told: &Told| told.line == line && told.stage == Stage::Answered;
        let index = self.told.iter().position(&mut answered);
        let told = self.told.remove(index.expect("what was answered was told"));
        if told.is_counted {
            self.counted[below.memory.controller_of(line)].lines -= 1;
        }
    }
}

impl Delivery {
    fn carries(&self, word: Word) -> bool {
        self.log.is_some_and(|log| log.word == word)
    }
}
