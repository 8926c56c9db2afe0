//! Records what a part of the machine does and when, for a timeline. The core, the banks and the
//! controllers each record what they do as they do it. Without a timeline there is no recorder.

use std::collections::BinaryHeap;
use std::ops::Range;

/// Something that happened from one time to another.
#[derive(Clone, Debug)]
pub struct Span<T> {
    /// When it began.
    pub from: u64,
    /// When it ended; equal to `from` if it took no time.
    pub until: u64,
    /// What it was.
    pub what: T,
}

impl<T> Span<T> {
    /// Returns the same times for something else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Span<U> {
        Span { from: self.from, until: self.until, what: change(self.what) }
    }
}

/// The part of a run that is recorded.
#[derive(Clone, Debug)]
pub struct Part {
    /// The window, in cycles: what overlaps it is recorded.
    pub window: Range<u64>,
    /// How many cycles must be kept: what ended earlier may be forgotten when there is no room.
    pub keeps: u64,
}

/// What recorders have at the end.
#[derive(Clone, Debug)]
pub struct Record<T> {
    /// The spans in the order in which they were recorded, one recorder after the other.
    pub spans: Vec<Span<T>>,
    /// If there were more than some recorder remembers, so that it has none: the length of a window
    /// that would have held all of them, in cycles.
    pub holds: Option<u64>,
}

impl<T> Record<T> {
    /// Returns the same spans of something else.
    pub fn map<U>(self, mut change: impl FnMut(T) -> U) -> Record<U> {
        let spans = self.spans.into_iter().map(|span| span.map(&mut change)).collect();
        Record { spans, holds: self.holds }
    }

    /// Adds what another recorder has.
    pub fn join(&mut self, other: Record<T>) {
        self.spans.extend(other.spans);
        self.holds = self.holds.into_iter().chain(other.holds).min();
    }
}

impl<T> Default for Record<T> {
    fn default() -> Record<T> {
        Record { spans: Vec::new(), holds: None }
    }
}

/// Records what overlaps a window of time.
#[derive(Clone, Debug)]
pub struct Recorder<T> {
    part: Part,
    spans: Vec<Span<T>>,
    lack: Option<Lack>,
}

/// What is known of a window in which more happens than is remembered.
#[derive(Clone, Debug)]
enum Lack {
    /// When the earliest spans of all began, one more than are remembered: a window that ends when
    /// the last of these begins holds the others.
    Begun(BinaryHeap<u64>),
    /// The length of a window that ends when the room runs out, and fills half of the room.
    Kept(u64),
}

/// The most spans that one recorder remembers (ours: when all of a machine's recorders are full,
/// they and the rows made of them take some gigabytes of the host's memory).
pub const SPANS_MAX: usize = 1 << 18;

impl<T> Recorder<T> {
    /// Makes a recorder that records nothing before its window is opened.
    pub fn new() -> Recorder<T> {
        Recorder { part: Part { window: 0..0, keeps: 0 }, spans: Vec::new(), lack: None }
    }

    /// Begins to record.
    pub fn open(&mut self, part: &Part) {
        self.part = part.clone();
    }

    /// Whether what happens at a time is recorded.
    pub fn is_open(&self, at: u64) -> bool {
        self.part.window.contains(&at)
    }

    /// Records something.
    pub fn record(&mut self, from: u64, until: u64, what: T) {
        debug_assert!(from <= until, "it ends at {until} and begins at {from}");
        let Part { window, keeps } = &self.part;
        if from >= window.end || until < window.start {
            return;
        }
        if self.lack.is_none() && self.spans.len() == SPANS_MAX {
            let oldest = from.saturating_sub(*keeps);
            self.spans.retain(|span| span.until >= oldest);
            // A recorder that can forget only little would be full again soon, so it gives up.
            if self.spans.len() > SPANS_MAX / 2 {
                self.lack = Some(self.lacking(from));
            }
        }
        match &mut self.lack {
            None => self.spans.push(Span { from, until, what }),
            Some(Lack::Begun(begun)) if begun.peek().is_some_and(|last| from < *last) => {
                begun.pop();
                begun.push(from);
            }
            Some(_) => (),
        }
    }

    /// Forgets all spans, since there is no room for one that began at `from`, and returns what is
    /// known of a window that would hold all.
    fn lacking(&mut self, from: u64) -> Lack {
        let spans = std::mem::take(&mut self.spans);
        if self.part.keeps == u64::MAX {
            return Lack::Begun(spans.iter().map(|span| span.from).chain([u64::MAX]).collect());
        }
        let mut ends: Vec<u64> = spans.iter().map(|span| span.until).collect();
        let (_, last, _) = ends.select_nth_unstable_by(SPANS_MAX / 2, |one, other| other.cmp(one));
        Lack::Kept(from.saturating_sub(*last + 1))
    }

    /// Returns what was recorded.
    pub fn take(&mut self) -> Record<T> {
        let holds = self.lack.as_ref().map(|lack| match lack {
            Lack::Begun(begun) => {
                begun.peek().map_or(0, |last| last.saturating_sub(self.part.window.start))
            }
            Lack::Kept(length) => *length,
        });
        Record { spans: std::mem::take(&mut self.spans), holds }
    }
}

impl<T> Default for Recorder<T> {
    fn default() -> Recorder<T> {
        Recorder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_the_window_is_recorded() {
        let mut recorder = Recorder::new();
        recorder.record(0, 9, 'a');
        recorder.open(&Part { window: 10..20, keeps: u64::MAX });
        for (from, until, what) in [(0, 9, 'b'), (0, 10, 'c'), (12, 12, 'd'), (19, 30, 'e')] {
            recorder.record(from, until, what);
        }
        recorder.record(20, 20, 'f');
        let kept: String = recorder.take().spans.into_iter().map(|span| span.what).collect();
        assert_eq!(kept, "cde");
    }

    #[test]
    fn a_recorder_that_may_forget_is_not_full() {
        let (mut forgets, mut remembers) = (Recorder::new(), Recorder::new());
        forgets.open(&Part { window: 0..u64::MAX, keeps: 100 });
        remembers.open(&Part { window: 0..u64::MAX, keeps: u64::MAX });
        for at in 0..2 * SPANS_MAX as u64 + 5 {
            forgets.record(at, at, ());
            remembers.record(at, at, ());
        }
        let kept = forgets.take();
        assert_eq!((kept.holds, remembers.take().holds), (None, Some(SPANS_MAX as u64)));
        let last: Vec<u64> = kept.spans.into_iter().rev().map(|span| span.from).collect();
        assert!(last.iter().take(100).rev().copied().eq(last[0] - 99..=last[0]));
        assert_eq!(last[0], 2 * SPANS_MAX as u64 + 4);
    }

    /// Spans of three cycles, ten a cycle, of which one in a thousand is recorded late.
    #[test]
    fn a_window_that_is_too_long_says_how_long_one_would_hold_all() {
        let record = |length, keeps| {
            let mut recorder = Recorder::new();
            recorder.open(&Part { window: 500..length, keeps });
            let count = 2 * SPANS_MAX as u64;
            let (late, soon): (Vec<u64>, Vec<u64>) = (0..count).partition(|n| n % 1000 == 0);
            for n in soon.into_iter().chain(late) {
                recorder.record(500 + n / 10, 503 + n / 10, n);
            }
            recorder.take()
        };
        let holds = record(u64::MAX, u64::MAX).holds.expect("it is too long");
        assert_eq!(holds, SPANS_MAX as u64 / 10);
        let all = record(500 + holds, u64::MAX);
        assert_eq!((all.spans.len() as u64, all.holds), (10 * holds, None));
        assert!(record(500 + holds + 1, u64::MAX).holds.is_some());
        let kept = record(u64::MAX, SPANS_MAX as u64).holds.expect("it is too long");
        assert_eq!(record(u64::MAX, kept).holds, None);
    }
}
