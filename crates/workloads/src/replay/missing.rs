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

#[cfg(test)]
mod tests {
    use model::checker::Durable;
    use model::workload::{Flush, Port, Ptr};

    use super::super::history::{History, Recorded};
    use super::*;

    /// Two words of different lines.
    const A: Word = Word(1);
    const B: Word = Word(9);

    /// What is missing of a history if nothing of it is there, and these words were stored to.
    fn missing(of: impl FnOnce(&mut History), made: &[Word]) -> Vec<Missing> {
        let (mut history, mut reached) = (History::default(), Reached::new(2, Durable::Flushed));
        of(&mut history);
        made.iter().for_each(|word| reached.stored(*word, false));
        let Recorded { stored, flushes, .. } = history.recorded();
        let mut missing = BTreeMap::new();
        for (word, stores) in &stored {
            for index in 0..stores.each.len() {
                flushes.lacks(&mut missing, (*word, stores), index, &reached);
            }
        }
        missing.into_values().collect()
    }

    fn flush(history: &mut History, thread: usize, place: usize, word: Word) {
        history.at(thread, thread, place);
        history.flush(Ptr::to(word.address()), Flush::WriteBack);
    }

    /// A store of one thread to words, at one place.
    fn store(history: &mut History, place: usize, words: &[Word]) {
        history.at(0, 0, place);
        words.iter().for_each(|word| history.store(Ptr::to(word.address()), 1, u64::MAX));
    }

    fn only(missing: &[Missing]) -> (Why, Vec<usize>, bool) {
        let [missing] = missing else { panic!("{missing:?}") };
        (missing.why, missing.flushes.iter().copied().collect(), missing.is_made)
    }

    #[test]
    fn of_flushes_before_a_store_the_last_is_told() {
        let of = |history: &mut History| {
            flush(history, 0, 1, A);
            flush(history, 0, 2, A);
            store(history, 3, &[A]);
        };
        assert_eq!(only(&missing(of, &[A])), (Why::NotSince, vec![2], true));
    }

    #[test]
    fn what_another_thread_flushes_is_not_called_never_flushed() {
        let of = |thread: usize| {
            move |history: &mut History| {
                flush(history, thread, 1, B);
                store(history, 2, &[A]);
                flush(history, thread, 3, A);
            }
        };
        assert_eq!(only(&missing(of(0), &[A])), (Why::Later, vec![3], true));
        assert_eq!(only(&missing(of(1), &[A])), (Why::Unflushed, vec![], true));
    }

    /// The flush of one line of a store is no reason if the other line is never flushed.
    #[test]
    fn of_a_store_to_two_lines_the_better_reason_is_told_alone() {
        let of = |history: &mut History| {
            store(history, 1, &[A, B]);
            flush(history, 0, 2, A);
        };
        assert_eq!(only(&missing(of, &[A, B])), (Why::Never, vec![], true));
    }

    #[test]
    fn a_store_is_made_if_one_of_its_words_is() {
        let of = |history: &mut History| store(history, 1, &[A, B]);
        for (words, expected) in [
            (&[][..], (Why::Unmade, false)),
            (&[A], (Why::Never, true)),
            (&[B], (Why::Never, true)),
        ] {
            let (why, _, is_made) = only(&missing(of, words));
            assert_eq!((why, is_made), expected, "{words:?}");
        }
    }
}
