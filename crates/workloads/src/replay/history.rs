//! The stores of a trace, word by word, and which of them an image has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::units::{Cycle, LINE_BYTES, Line, LineData, WORD_BYTES, Word};
use model::workload::{Overwritten, Port, Ptr};

use super::trace::Trace;

/// Memory that remembers the place in the trace of each store to persistent memory.
#[derive(Default)]
pub struct History {
    /// The contents of words; others hold zeros.
    now: BTreeMap<Word, u64>,
    stored: BTreeMap<Word, Stores>,
    /// The thread that stores now, the thread as which it is told of, and the place in the file.
    thread: usize,
    told_as: usize,
    place: usize,
    /// What each thread's transaction has stored over.
    overwritten: BTreeMap<usize, Overwritten>,
}

/// The stores to a word.
#[derive(Debug)]
struct Stores {
    /// The contents of the word before all of them.
    before: u64,
    each: Vec<Stored>,
}

/// A store: its thread, the thread as which that is told of, its place in the file, and what its
/// word holds from then on.
#[derive(Debug)]
struct Stored {
    by: usize,
    thread: usize,
    place: usize,
    value: u64,
}

/// The stores by which an image can be described: those of the trace that it has.
#[derive(Debug)]
pub struct Told {
    stored: Vec<(Word, Stores)>,
    /// The number of threads that store.
    threads: usize,
    trace: Arc<Trace>,
}

impl History {
    /// Counts the stores up to now as contents from before the trace.
    pub fn measure(&mut self) {
        self.stored.clear();
    }

    /// Sets the thread of the next operations, the thread as which it is told of, and the place in
    /// the file.
    pub fn at(&mut self, thread: usize, told_as: usize, place: usize) {
        (self.thread, self.told_as, self.place) = (thread, told_as, place);
    }

    fn overwritten(&mut self) -> &mut Overwritten {
        self.overwritten.entry(self.thread).or_default()
    }

    /// Returns the words of persistent memory that were stored to, in order.
    pub fn words(&self) -> impl Iterator<Item = Word> + '_ {
        self.now.keys().copied().filter(|word| word.line().is_persistent())
    }

    /// Returns the words that were stored to since the trace began.
    pub fn stored(&self) -> impl Iterator<Item = Word> + '_ {
        self.stored.keys().copied()
    }

    /// Returns the contents of a line.
    pub fn line(&self, line: Line) -> LineData {
        let mut data = [0; LINE_BYTES as usize];
        let words = (line.first_word().0..).map(Word);
        for (word, bytes) in words.zip(data.chunks_exact_mut(WORD_BYTES as usize)) {
            bytes.copy_from_slice(&self.word(word).to_le_bytes());
        }
        data
    }

    fn word(&self, word: Word) -> u64 {
        self.now.get(&word).copied().unwrap_or_default()
    }

    /// Returns the stores by which images of the trace can be described.
    pub fn told(self, trace: &Arc<Trace>) -> Told {
        let mut stored: Vec<_> = self.stored.into_iter().collect();
        // A word of two threads says nothing, since it is not known which one stored first.
        stored.retain(|(_, Stores { each, .. })| {
            each.windows(2).all(|pair| pair[0].thread == pair[1].thread)
        });
        let each = stored.iter().flat_map(|(_, stores)| &stores.each);
        let threads = each.map(|stored| stored.thread).collect::<BTreeSet<_>>().len();
        Told { stored, threads, trace: Arc::clone(trace) }
    }
}

impl Port for History {
    fn load(&mut self, at: Ptr) -> (u64, Cycle) {
        (self.word(Word::of(at.address)), Cycle(0))
    }

    fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        let word = Word::of(at.address);
        let before = self.word(word);
        let value = (before & !mask) | (value & mask);
        self.now.insert(word, value);
        if word.line().is_persistent() {
            self.overwritten().keep(word, || before);
            let stores = self.stored.entry(word);
            let stores = stores.or_insert_with(|| Stores { before, each: Vec::new() });
            let Self { thread: by, told_as: thread, place, .. } = *self;
            stores.each.push(Stored { by, thread, place, value });
        }
    }

    fn begin(&mut self, abortable: bool) {
        self.overwritten().begin(abortable);
    }

    fn commit(&mut self) {
        self.overwritten().end();
    }

    fn abort(&mut self) {
        for (word, before) in self.overwritten().take().into_iter().rev() {
            self.now.insert(word, before);
            if let Some(Stores { each, .. }) = self.stored.get_mut(&word)
                && let Some(own) = each.iter().rposition(|stored| stored.by == self.thread)
            {
                each.remove(own);
            }
        }
    }
}

impl Told {
    /// Returns which stores memory has, and which of the earlier ones it lacks, in words. If a word
    /// holds the same value after several stores, only what is certain is said.
    pub fn of(&self, word_of: impl Fn(Word) -> u64) -> String {
        let mut there: BTreeMap<usize, usize> = BTreeMap::new();
        let mut missing: BTreeSet<(usize, usize)> = BTreeSet::new();
        for (word, Stores { before, each }) in &self.stored {
            let now = word_of(*word);
            let first = each.iter().position(|stored| stored.value == now);
            let last = each.iter().rposition(|stored| stored.value == now);
            if *before != now
                && let Some(first) = first
            {
                let newest = there.entry(each[first].thread).or_default();
                *newest = each[first].place.max(*newest);
            }
            if last.is_some() || *before == now {
                let lost = &each[last.map_or(0, |last| last + 1)..];
                missing.extend(lost.iter().map(|stored| (stored.thread, stored.place)));
            }
        }
        for (thread, newest) in &there {
            let before = missing.iter().filter(|(of, place)| of == thread && place < newest);
            let before: Vec<usize> = before.map(|(_, place)| *place).collect();
            if !before.is_empty() {
                return format!(
                    "memory has the store of {}, and not that of {}",
                    self.trace.told(&[*newest]),
                    self.trace.told(&before)
                );
            }
        }
        match there.len() {
            0 => "no store can be told to be there".to_owned(),
            _ => {
                let each = there.iter().map(|(thread, newest)| {
                    let place = self.trace.told(&[*newest]);
                    match self.threads {
                        1 => place,
                        _ => format!("{place} of thread {thread}"),
                    }
                });
                let each: Vec<String> = each.collect();
                format!("memory has the stores up to {}", each.join(" and "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trace whose places are lines, of which some come from known places in the program.
    fn trace(sources: &[(usize, &str)]) -> Arc<Trace> {
        let mut trace = Trace { unit: "line", ..Trace::default() };
        sources.iter().for_each(|(line, source)| trace.sources.add(*line, source));
        Arc::new(trace)
    }

    /// Stores of threads, each with its place, word and value.
    fn told(stores: &[(usize, usize, u64, u64)]) -> Told {
        told_of(stores, &[])
    }

    fn told_of(stores: &[(usize, usize, u64, u64)], sources: &[(usize, &str)]) -> Told {
        let mut history = History::default();
        for &(thread, place, word, value) in stores {
            history.at(thread, thread, place);
            history.store(Ptr::to(8 * word), value, u64::MAX);
        }
        history.told(&trace(sources))
    }

    fn of(told: &Told, words: &[(u64, u64)]) -> String {
        let value = |word: Word| words.iter().find(|(at, _)| *at == word.0);
        told.of(|word| value(word).map_or(0, |(_, value)| *value))
    }

    #[test]
    fn what_is_missing_is_named_with_what_is_there_behind_it() {
        let told = told(&[(0, 2, 1, 7), (0, 3, 9, 8), (0, 5, 17, 1), (0, 6, 1, 9)]);
        assert_eq!(of(&told, &[]), "no store can be told to be there");
        assert_eq!(of(&told, &[(1, 7), (9, 8)]), "memory has the stores up to line 3");
        let without = "memory has the store of line 5, and not that of line";
        assert_eq!(of(&told, &[(9, 8), (17, 1)]), format!("{without} 2"));
        assert_eq!(of(&told, &[(17, 1)]), format!("{without}s 2, 3"));
    }

    #[test]
    fn more_than_three_are_counted() {
        let told = told(&[(0, 1, 1, 1), (0, 2, 2, 1), (0, 3, 3, 1), (0, 4, 4, 1), (0, 5, 5, 1)]);
        let expect = "memory has the store of line 5, and not that of lines 1, 2, 3 and 1 more";
        assert_eq!(of(&told, &[(5, 1)]), expect);
    }

    #[test]
    fn what_is_known_of_the_program_is_told_with_the_line() {
        let stores = [(0, 1, 1, 1), (0, 2, 2, 1), (0, 3, 3, 1)];
        let of =
            |sources: &[(usize, &str)], words: &[(u64, u64)]| of(&told_of(&stores, sources), words);
        let all = &[(1, 1), (2, 1), (3, 1)];
        assert_eq!(of(&[(3, "b.c:7")], all), "memory has the stores up to line 3 (b.c:7)");
        let last = &[(3, 1)];
        assert_eq!(
            of(&[(1, "a.c:5"), (2, "a.c:5"), (3, "b.c:7")], last),
            "memory has the store of line 3 (b.c:7), and not that of lines 1, 2 (a.c:5)"
        );
        assert_eq!(
            of(&[(1, "a.c:5"), (2, "a.c:6")], last),
            "memory has the store of line 3, and not that of lines 1 (a.c:5), 2 (a.c:6)"
        );
        assert_eq!(
            of(&[(1, "a.c:5")], last),
            "memory has the store of line 3, and not that of lines 1 (a.c:5), 2"
        );
    }

    #[test]
    fn a_value_that_comes_again_is_no_evidence() {
        // The word holds 7 after line 1 and after line 5.
        let told = told(&[(0, 1, 1, 7), (0, 2, 2, 3), (0, 3, 1, 8), (0, 5, 1, 7)]);
        assert_eq!(of(&told, &[(1, 7)]), "memory has the stores up to line 1");
        let expect = "memory has the store of line 3, and not that of line 2";
        assert_eq!(of(&told, &[(1, 8)]), expect);
    }

    #[test]
    fn threads_are_told_of_apart_and_what_they_share_is_not() {
        let told = told(&[(0, 1, 1, 7), (1, 2, 2, 3), (1, 3, 3, 4), (0, 4, 9, 1), (1, 5, 9, 2)]);
        assert_eq!(of(&told, &[(3, 4)]), "memory has the store of line 3, and not that of line 2");
        let expect = "memory has the stores up to line 3 of thread 1";
        assert_eq!(of(&told, &[(2, 3), (3, 4), (9, 2)]), expect);
    }

    #[test]
    fn what_was_aborted_was_never_stored() {
        let mut history = History::default();
        history.at(0, 0, 2);
        Port::begin(&mut history, true);
        history.store(Ptr::to(8), 5, 0xff);
        history.abort();
        assert_eq!(history.line(Line(0)), [0; LINE_BYTES as usize]);
        assert_eq!(of(&history.told(&trace(&[])), &[(1, 5)]), "no store can be told to be there");
    }

    #[test]
    fn a_transaction_that_is_aborted_takes_back_its_own_stores() {
        let mut history = History::default();
        let mut act = |thread, act: &dyn Fn(&mut History)| {
            history.at(thread, 0, 2 + thread);
            act(&mut history);
        };
        act(1, &|history| Port::begin(history, true));
        act(1, &|history| history.store(Ptr::to(8), 5, 0xff));
        act(0, &|history| Port::begin(history, false));
        act(0, &|history| history.store(Ptr::to(72), 7, 0xff));
        act(0, &|history| history.commit());
        act(1, &|history| history.abort());
        assert_eq!((history.word(Word(1)), history.word(Word(9))), (0, 7));
        let told = history.told(&trace(&[]));
        assert_eq!(of(&told, &[(9, 7)]), "memory has the stores up to line 2");
    }
}
