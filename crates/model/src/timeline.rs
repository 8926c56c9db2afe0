//! The timeline of a part of a run: what happened in it, and when.

use std::cell::RefCell;
use std::ops::Range;

use crate::device::{Use, Write};
use crate::meters::{Class, Stall};
use crate::recorder::{Part, Record, Recorder, Span};
use crate::units::{CoreId, Cycle, Line, PerCore, TxId, Word};
use crate::workload::Flush;

/// The part of a run that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A window from some time on.
    From {
        /// When it begins, in cycles after measuring does.
        after: u64,
        /// How many cycles it lasts.
        length: u64,
    },
    /// A window that ends with the run.
    Last {
        /// How many cycles it lasts.
        length: u64,
    },
    /// A window that ends at a crash point.
    Until {
        /// The number of the crash point.
        point: u64,
        /// How many cycles it lasts.
        length: u64,
    },
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A transaction ran, from its begin until its commit or abort was asked for.
    Transaction(CoreId, TxId),
    /// A commit, from when it was asked for until the core heard that it is durable.
    Commit(CoreId, TxId),
    /// A core waited.
    Wait(CoreId, Stall),
    /// A store to persistent memory took effect: the old and the new value.
    Store(CoreId, Word, u64, u64),
    /// A flush of a line was asked for.
    Flush(CoreId, Line, Flush),
    /// A fence was asked for, so that earlier stores survive if later ones do, or so that they are
    /// durable.
    Fence(CoreId, Awaits),
    /// A line was fetched into a core's first level.
    Fetch(CoreId, Fetch),
    /// A write waited at a controller, from its arrival until it was accepted.
    Arriving(usize, ArrivingWrite),
    /// A controller's write-pending queue held a line, from the line's first write until the
    /// controller forgot it.
    Queued(usize, Queued),
    /// A bank of a controller's persistent memory was busy.
    Bank(usize, Use),
    /// A bank of a controller's volatile memory was busy.
    VolatileBank(usize, Use),
    /// A transaction was given up, and the core heard that nothing of it is left.
    Aborted(CoreId, TxId),
    /// An event of the design.
    Design(String),
    /// The power failed.
    PowerLoss,
}

/// A line that comes to a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The line.
    pub line: Line,
    /// Whether the core fetches it to write to it.
    pub write: bool,
    /// How many cycles before the hierarchy's answer the core has the line, since the access
    /// dispatched behind a store that waited for a fence, and the hierarchy was asked at the core's
    /// turn.
    pub earlier: u64,
}

/// What a fence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// An order of stores.
    Order,
    /// That stores are durable.
    Durability,
}

/// A write that reached a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivingWrite {
    /// Its number among all writes sent to controllers.
    pub number: u64,
    /// The line.
    pub line: Line,
    /// Why it is written.
    pub class: Class,
    /// How many bytes it has.
    pub bytes: u32,
    /// Whether it was accepted, and not still waiting when the power failed.
    pub accepted: bool,
}

/// A line of a write-pending queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The line.
    pub line: Line,
    /// The class of its first write; none if a design keeps the line there itself.
    pub class: Option<Class>,
    /// How many writes the slot has taken.
    pub writes: u64,
    /// The number of its first write, if that came from elsewhere.
    pub first: Option<u64>,
}

/// A request for a timeline.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The part of the run.
    pub part: Asked,
    /// Where the timeline is put when the run ends, also if it ends badly.
    pub kept: &'a RefCell<Option<Recorded>>,
}

/// A timeline under way.
#[derive(Clone, Debug)]
pub struct Timeline {
    asked: Asked,
    /// When measuring began.
    started: u64,
    window: Range<u64>,
    recorder: Recorder<Happening>,
    /// When each core's transaction began.
    begun: PerCore<Cycle>,
    /// What the slots of each controller hold, and since when.
    slots: Vec<Vec<Option<(u64, Queued)>>>,
    cut: Option<u64>,
}

/// A timeline that is done.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// When measuring began, in cycles since power came on, like all times here.
    pub started: u64,
    /// The window; what lies outside of it is not recorded.
    pub window: Range<u64>,
    /// When the run ended.
    pub ended: u64,
    /// When the power failed, if that was asked for and happened.
    pub cut: Option<u64>,
    /// The spans that overlap the window, ordered by their beginnings.
    pub spans: Vec<Span<Happening>>,
    /// If there was more than is remembered, so that something is missing: the length of a window
    /// that would hold all, in cycles. A window that ends with a crash point long after the room
    /// ran out may have to be a little shorter.
    pub holds: Option<u64>,
}

impl Recorded {
    /// Whether the run came to the part that was asked for: if that ends with a power failure, to
    /// its end.
    pub fn has_reached(&self, part: Asked) -> bool {
        match part {
            Asked::From { .. } | Asked::Last { .. } => {
                !self.window.is_empty() && self.window.start < self.ended
            }
            Asked::Until { .. } => self.cut.is_some(),
        }
    }
}

impl Timeline {
    /// Makes a timeline that begins when measuring does.
    pub fn new(asked: Asked, cores: u8, controllers: usize, slots: usize) -> Timeline {
        Timeline {
            asked,
            started: 0,
            window: 0..0,
            recorder: Recorder::new(),
            begun: PerCore::new(cores, |_| Cycle(0)),
            slots: vec![vec![None; slots]; controllers],
            cut: None,
        }
    }

    /// Begins the timeline with measuring, and returns the part that every recorder of the machine
    /// is to record.
    pub fn start(&mut self, at: Cycle) -> Part {
        self.started = at.0;
        let part = match self.asked {
            Asked::From { after, length } => {
                let from = at.0.saturating_add(after);
                Part { window: from..from.saturating_add(length), keeps: u64::MAX }
            }
            Asked::Last { length } | Asked::Until { length, .. } => {
                Part { window: at.0..u64::MAX, keeps: length }
            }
        };
        self.recorder.open(&part);
        self.window = part.window.clone();
        part
    }

    /// Notes that a crash point has passed. If the power fails there, that ends the window, and
    /// every recorder of the machine is to record the returned part from now on.
    pub fn pass(&mut self, point: u64, at: Cycle) -> Option<Part> {
        let Asked::Until { point: wanted, length } = self.asked else { return None };
        if point != wanted || self.cut.is_some() {
            return None;
        }
        // The power failure ends the spans of all that the queues hold now, even if it is forgotten
        // later.
        for controller in 0..self.slots.len() {
            for slot in 0..self.slots[controller].len() {
                self.forget(controller, slot, at);
            }
        }
        self.recorder.record(at.0, at.0, Happening::PowerLoss);
        self.cut = Some(at.0);
        let from = at.0.saturating_sub(length).max(self.started);
        self.window = from..at.0 + 1;
        // Whatever begins in this cycle and is not recorded yet does not happen.
        let part = Part { window: from..at.0, keeps: length };
        self.recorder.open(&part);
        Some(part)
    }

    /// Whether what happens at a time is recorded.
    pub fn is_open(&self, at: Cycle) -> bool {
        self.recorder.is_open(at.0)
    }

    /// Records something that happened at one time.
    pub fn at(&mut self, at: Cycle, what: Happening) {
        self.recorder.record(at.0, at.0, what);
    }

    /// Records something that lasted from one time to another.
    pub fn span(&mut self, from: Cycle, until: Cycle, what: Happening) {
        self.recorder.record(from.0, until.0, what);
    }

    /// Notes that a core begins a transaction.
    pub fn begin(&mut self, core: CoreId, at: Cycle) {
        self.begun[core] = at;
    }

    /// Records a core's transaction, whose commit or abort is asked for.
    pub fn commit(&mut self, core: CoreId, tx: TxId, at: Cycle) {
        self.span(self.begun[core], at, Happening::Transaction(core, tx));
    }

    /// Records a write that reached its controller and is accepted, if the power has not failed.
    pub fn arrived(
        &mut self,
        controller: usize,
        (reached, accepted): (Cycle, Cycle),
        write: &Write,
        number: u64,
    ) {
        let &Write { line, class, mask, .. } = write;
        let (bytes, is_on) = (mask.count_ones(), self.cut.is_none());
        let sent = ArrivingWrite { number, line, class, bytes, accepted: is_on };
        self.span(reached, accepted, Happening::Arriving(controller, sent));
    }

    /// Notes that a slot of a controller's queue takes a write, with its number if it came from
    /// elsewhere, or a line that a design keeps there itself.
    pub fn queue(
        &mut self,
        (controller, slot): (usize, usize),
        at: Cycle,
        line: Line,
        write: Option<(&Write, Option<u64>)>,
    ) {
        if self.cut.is_some() {
            return;
        }
        let class = write.map(|(write, _)| write.class);
        let first = write.and_then(|(_, number)| number);
        let (_, queued) = self.slots[controller][slot]
            .get_or_insert((at.0, Queued { line, class, writes: 0, first }));
        queued.writes += u64::from(write.is_some());
    }

    /// Records what a slot held, which is free again.
    pub fn forget(&mut self, controller: usize, slot: usize, at: Cycle) {
        if let Some((from, queued)) = self.slots[controller][slot].take() {
            self.recorder.record(from, at.0, Happening::Queued(controller, queued));
        }
    }

    /// Ends the timeline with the run: `others` are what the recorders of cores and banks have.
    pub fn finish(mut self, now: Cycle, mut others: Record<Happening>) -> Recorded {
        for controller in 0..self.slots.len() {
            for slot in 0..self.slots[controller].len() {
                self.forget(controller, slot, now);
            }
        }
        let until = self.cut.unwrap_or(u64::MAX);
        others.spans.retain(|span| span.from < until);
        let mut all = self.recorder.take();
        all.join(others);
        let Record { mut spans, holds } = all;
        if let Asked::Last { length } = self.asked
            && !self.window.is_empty()
        {
            self.window.start = now.0.saturating_sub(length).max(self.started);
        }
        let Range { start, end } = self.window;
        spans.retain(|span| span.from < end && span.until >= start);
        spans.sort_by_key(|span| span.from);
        let Timeline { started, window, cut, .. } = self;
        Recorded { started, window, ended: now.0, cut, spans, holds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_failure_ends_the_window() {
        let mut timeline = Timeline::new(Asked::Until { point: 2, length: 50 }, 1, 1, 1);
        timeline.start(Cycle(1_000));
        let store = |n| Happening::Store(CoreId(0), Word(n), 0, 1);
        for n in 0..10 {
            timeline.at(Cycle(1_000 + 20 * n), store(n));
            if n % 4 == 3 {
                assert_eq!(timeline.pass(n / 4 + 1, Cycle(1_000 + 20 * n)).is_some(), n == 7);
            }
        }
        let recorded = timeline.finish(Cycle(2_000), Record::default());
        assert_eq!((recorded.window, recorded.cut), (1_090..1_141, Some(1_140)));
        let whats: Vec<_> = recorded.spans.into_iter().map(|span| span.what).collect();
        assert_eq!(whats, [store(5), store(6), store(7), Happening::PowerLoss]);
    }

    #[test]
    fn what_queues_hold_when_the_power_fails_is_what_they_hold_then() {
        let mut timeline = Timeline::new(Asked::Until { point: 1, length: 100 }, 1, 1, 3);
        timeline.start(Cycle(0));
        let write = |line| Write { line, data: [0; 64], mask: 1, class: Class::Log };
        let queue = |timeline: &mut Timeline, slot, at, line| {
            timeline.queue((0, slot), Cycle(at), Line(line), Some((&write(Line(line)), None)));
        };
        queue(&mut timeline, 0, 5, 7);
        queue(&mut timeline, 1, 20, 8);
        assert!(timeline.pass(1, Cycle(20)).is_some());
        // All this comes too late.
        queue(&mut timeline, 0, 20, 7);
        queue(&mut timeline, 2, 20, 9);
        timeline.forget(0, 0, Cycle(30));
        let recorded = timeline.finish(Cycle(40), Record::default());
        let held: Vec<_> = recorded
            .spans
            .iter()
            .filter_map(|span| match &span.what {
                Happening::Queued(_, queued) => Some((span.from, queued.line.0, queued.writes)),
                _ => None,
            })
            .collect();
        assert_eq!(held, [(5, 7, 1), (20, 8, 1)]);
        assert_eq!(recorded.spans.last().map(|span| &span.what), Some(&Happening::PowerLoss));
    }

    #[test]
    fn a_write_that_waits_when_the_power_fails_is_not_accepted() {
        let mut timeline = Timeline::new(Asked::Until { point: 1, length: 100 }, 1, 1, 1);
        timeline.start(Cycle(0));
        let write = |line| Write { line, data: [0; 64], mask: 1, class: Class::Log };
        let arrived = |timeline: &mut Timeline, line, times: (u64, u64)| {
            let times = (Cycle(times.0), Cycle(times.1));
            timeline.arrived(0, times, &write(Line(line)), line);
        };
        arrived(&mut timeline, 1, (5, 20));
        assert!(timeline.pass(1, Cycle(20)).is_some());
        // The power fails just before the second is accepted; the third is not there yet.
        arrived(&mut timeline, 2, (6, 20));
        arrived(&mut timeline, 3, (20, 30));
        let spans = timeline.finish(Cycle(40), Record::default()).spans;
        let known: Vec<_> = spans
            .iter()
            .filter_map(|span| match span.what {
                Happening::Arriving(_, sent) => Some((sent.line.0, sent.accepted)),
                _ => None,
            })
            .collect();
        assert_eq!(known, [(1, true), (2, false)]);
    }

    #[test]
    fn a_slot_is_busy_from_its_first_write_until_it_is_forgotten() {
        let mut timeline = Timeline::new(Asked::From { after: 0, length: 100 }, 1, 1, 2);
        timeline.start(Cycle(0));
        let write = |line| Write { line, data: [0; 64], mask: 1, class: Class::Log };
        timeline.queue((0, 1), Cycle(5), Line(7), Some((&write(Line(7)), Some(1))));
        timeline.queue((0, 1), Cycle(8), Line(7), Some((&write(Line(7)), Some(2))));
        timeline.forget(0, 1, Cycle(30));
        timeline.queue((0, 1), Cycle(40), Line(9), None);
        let recorded = timeline.finish(Cycle(120), Record::default());
        let spans: Vec<_> =
            recorded.spans.iter().map(|span| (span.from, span.until, &span.what)).collect();
        let queued = |line, class, writes, first| {
            Happening::Queued(0, Queued { line, class, writes, first })
        };
        let first = queued(Line(7), Some(Class::Log), 2, Some(1));
        assert_eq!(spans, [(5, 30, &first), (40, 120, &queued(Line(9), None, 0, None))]);
    }
}
