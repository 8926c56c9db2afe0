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

/// Records what overlaps a window of time.
#[derive(Clone, Debug)]
pub struct Recorder<T> {
    window: Range<u64>,
    spans: Vec<Span<T>>,
}

impl<T> Recorder<T> {
    /// A recorder that records nothing before its window is opened.
    pub fn new() -> Recorder<T> {
        Recorder { window: 0..0, spans: Vec::new() }
    }

    /// Begins to record what overlaps a window, in cycles.
    pub fn open(&mut self, window: Range<u64>) {
        self.window = window;
    }

    /// Records something.
    pub fn record(&mut self, from: u64, until: u64, what: T) {
        debug_assert!(from <= until, "it ends at {until} and begins at {from}");
        if from < self.window.end && until >= self.window.start {
            self.spans.push(Span { from, until, what });
        }
    }

    /// What was recorded, in the order in which it was.
    pub fn take(&mut self) -> Vec<Span<T>> {
        std::mem::take(&mut self.spans)
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
        recorder.open(10..20);
        for (from, until, what) in [(0, 9, 'b'), (0, 10, 'c'), (12, 12, 'd'), (19, 30, 'e')] {
            recorder.record(from, until, what);
        }
        recorder.record(20, 20, 'f');
        let kept: String = recorder.take().into_iter().map(|span| span.what).collect();
        assert_eq!(kept, "cde");
    }
}
