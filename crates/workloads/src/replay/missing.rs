//! Why a store of a trace may be missing from what a power failure left.

use std::collections::{BTreeMap, BTreeSet};

use model::checker::Reached;
use model::units::{Line, Word};

use super::history::{Stored, Stores};
use super::trace::Trace;

/// The flushes of a trace, by their lines, in the order of the file.
#[derive(Debug, Default)]
pub struct Flushes(BTreeMap<Line, Vec<Flushed>>);

/// A flush: its thread, the thread as which that is told of, and its place in the file.
#[derive(Clone, Copy, Debug)]
struct Flushed {
    by: usize,
    thread: usize,
    place: usize,
}

/// Why a store may be missing, on hardware on which stores are durable behind a flush and a fence.
/// What comes later is a better reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The power failed before it.
    Unmade,
    /// Nothing is known.
    Unknown,
    /// It went past the caches, and no fence is done since.
    PastCaches,
    /// It was flushed, and no fence of the thread that flushed it is done since.
    Unfenced,
    /// It is flushed after the power failure.
    Later,
    /// It was not flushed when the power failed.
    Unflushed,
    /// It was flushed before it was made, and is not flushed again.
    NotSince,
    /// It is never flushed.
    Never,
}

/// A store of which words are missing.
#[derive(Debug)]
pub struct Missing {
    pub by: usize,
    /// The first word that is missing.
    pub word: Word,
    /// Whether the store was made, and not in a transaction.
    pub is_made: bool,
    pub why: Why,
    /// The places of the flushes that are the reason.
    pub flushes: BTreeSet<usize>,
}

impl Flushes {
    /// Adds a flush of a line.
    pub fn add(&mut self, line: Line, by: usize, thread: usize, place: usize) {
        self.0.entry(line).or_default().push(Flushed { by, thread, place });
    }

    /// Returns why the store of that index among those of a word may be missing, and the place of
    /// the flush that is the reason.
    fn why(
        &self,
        word: Word,
        stores: &Stores,
        index: usize,
        reached: &Reached,
    ) -> (Why, Option<usize>) {
        let (extent, number) = (reached.extent(word), index as u64 + 1);
        if !stores.are_plain() {
            return (Why::Unknown, None);
        }
        if extent.stores < number {
            return (Why::Unmade, None);
        }
        if !reached.needs_flushes() || number <= extent.durable {
            return (Why::Unknown, None);
        }
        let Stored { thread, place, is_past_caches, .. } = stores.each[index];
        let all = self.0.get(&word.line()).map_or(&[][..], Vec::as_slice);
        // Of two threads it is not known which one was first.
        let mut own = all.iter().filter(|flush| flush.thread == thread);
        let mut behind = own.clone().filter(|flush| flush.place > place);
        if let Some(core) = reached.flushed_by(word, number) {
            return match is_past_caches {
                true => (Why::PastCaches, None),
                false => {
                    let flush = behind.find(|flush| flush.by == usize::from(core.0));
                    (Why::Unfenced, flush.map(|flush| flush.place))
                }
            };
        }
        if let Some(next) = behind.next() {
            return (Why::Later, Some(next.place));
        }
        if all.iter().any(|flush| flush.thread != thread) {
            return (Why::Unflushed, None);
        }
        match own.rfind(|flush| flush.place < place) {
            Some(last) => (Why::NotSince, Some(last.place)),
            None => (Why::Never, None),
        }
    }

    /// Notes that an image lacks the store of that index among those of a word.
    pub fn lacks(
        &self,
        missing: &mut BTreeMap<(usize, usize), Missing>,
        (word, stores): (Word, &Stores),
        index: usize,
        reached: &Reached,
    ) {
        let Stored { by, thread, place, .. } = stores.each[index];
        let (why, flush) = self.why(word, stores, index, reached);
        let is_made = stores.are_plain() && why != Why::Unmade;
        let found = missing.entry((thread, place)).or_insert_with(|| Missing {
            by,
            word,
            is_made,
            why,
            flushes: BTreeSet::new(),
        });
        found.is_made |= is_made;
        if found.why < why {
            found.why = why;
            found.flushes.clear();
        }
        if found.why == why {
            found.flushes.extend(flush);
        }
    }
}

impl Why {
    /// Returns what is told of stores behind their places.
    pub fn told(self, flushes: &BTreeSet<usize>, trace: &Trace) -> String {
        let places: Vec<usize> = flushes.iter().copied().collect();
        let at = match places.len() {
            0 => String::new(),
            _ => format!(" in {}", trace.told(&places)),
        };
        let of = if trace.threads.len() > 1 { " of that thread" } else { "" };
        match self {
            Why::Unmade | Why::Unknown => String::new(),
            Why::PastCaches => format!(", with no fence{of} since"),
            Why::Unfenced => format!(", flushed{at} with no fence{of} since"),
            Why::Later => format!(", flushed only{at}"),
            Why::Unflushed => ", not flushed".into(),
            Why::NotSince => format!(", not flushed since{}", at.replacen(" in", "", 1)),
            Why::Never => ", never flushed".into(),
        }
    }
}
