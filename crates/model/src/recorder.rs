//! What a part of the machine does and when, for a timeline. The core, the banks and the
//! controllers each record what they do as they do it; where nobody has asked there is no recorder.

use std::ops::Range;

/// Something that happened from one time to another.
#[derive(Clone, Debug)]
pub struct Span<T> {
    /// When it began.
    pub from: u64,
    /// When it ended; the same where it took no time.
    pub until: u64,
    /// What it was.
    pub what: T,
}

impl<T> Span<T> {
    /// The same times of something else.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Span<U> {
        Span { from: self.from, until: self.until, what: change(self.what) }
    }
}

/// The part of a run that is recorded.
#[derive(Clone, Debug)]
pub struct Part {
    /// What overlaps this window, in cycles.
    pub window: Range<u64>,
    /// What ended so many cycles ago may be forgotten when there is no room.
    pub keeps: u64,
}

/// Records what overlaps a window of time.
#[derive(Clone, Debug)]
pub struct Recorder<T> {
    part: Part,
    spans: Vec<Span<T>>,
    full: bool,
}

/// The most that one recorder remembers (ours: with all of a machine's recorders full, and the rows
/// that are made of that, it is some gigabytes of the host's memory).
pub const SPANS_MAX: usize = 1 << 18;

impl<T> Recorder<T> {
    /// A recorder that records nothing before its window is opened.
    pub fn new() -> Recorder<T> {
        Recorder { part: Part { window: 0..0, keeps: 0 }, spans: Vec::new(), full: false }
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
        if from >= window.end || until < window.start || self.full {
            return;
        }
        if self.spans.len() == SPANS_MAX {
            let oldest = from.saturating_sub(*keeps);
            self.spans.retain(|span| span.until >= oldest);
            // Who could forget little would be asked again soon.
            self.full = self.spans.len() > SPANS_MAX / 2;
        }
        if !self.full {
            self.spans.push(Span { from, until, what });
        }
    }

    /// What was recorded, in the order in which it was, and whether there was more than is
    /// remembered.
    pub fn take(&mut self) -> (Vec<Span<T>>, bool) {
        (std::mem::take(&mut self.spans), self.full)
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
        let kept: String = recorder.take().0.into_iter().map(|span| span.what).collect();
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
        let (kept, full) = forgets.take();
        assert!(!full && remembers.take().1);
        let last: Vec<u64> = kept.into_iter().rev().map(|span| span.from).collect();
        assert!(last.iter().take(100).rev().copied().eq(last[0] - 99..=last[0]));
        assert_eq!(last[0], 2 * SPANS_MAX as u64 + 4);
    }
}
