//! The stores of a trace, word by word, and which of them an image has.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use model::checker::{Extent, Reached};
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
    transactions: BTreeMap<usize, Transactions>,
}

/// The transactions of a thread.
#[derive(Default)]
struct Transactions {
    /// How many have stored to persistent memory and committed.
    committed: u64,
    is_open: bool,
    /// Whether the open one has stored to persistent memory.
    has_stored: bool,
}

/// The stores to a word.
#[derive(Debug)]
struct Stores {
    /// The contents of the word before all of them.
    before: u64,
    each: Vec<Stored>,
    /// Whether an aborted transaction stored to the word, too: a run then makes more stores.
    has_aborted: bool,
}

/// A store: its thread, the thread as which that is told of, its place in the file, and what its
/// word holds from then on.
#[derive(Debug)]
struct Stored {
    by: usize,
    thread: usize,
    place: usize,
    value: u64,
    /// The number of its transaction, if it is in one, among those of its thread that store to
    /// persistent memory and commit.
    tx: Option<u64>,
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
            let stores =
                stores.or_insert_with(|| Stores { before, each: Vec::new(), has_aborted: false });
            let Self { thread: by, told_as: thread, place, .. } = *self;
            let transactions = self.transactions.entry(by).or_default();
            transactions.has_stored = transactions.is_open;
            let tx = transactions.is_open.then_some(transactions.committed + 1);
            stores.each.push(Stored { by, thread, place, value, tx });
        }
    }

    fn begin(&mut self, abortable: bool) {
        self.overwritten().begin(abortable);
        let transactions = self.transactions.entry(self.thread).or_default();
        (transactions.is_open, transactions.has_stored) = (true, false);
    }

    fn commit(&mut self) {
        self.overwritten().end();
        let transactions = self.transactions.entry(self.thread).or_default();
        transactions.committed += u64::from(transactions.has_stored);
        transactions.is_open = false;
    }

    fn abort(&mut self) {
        self.transactions.entry(self.thread).or_default().is_open = false;
        for (word, before) in self.overwritten().take().into_iter().rev() {
            self.now.insert(word, before);
            if let Some(Stores { each, has_aborted, .. }) = self.stored.get_mut(&word)
                && let Some(own) = each.iter().rposition(|stored| stored.by == self.thread)
            {
                each.remove(own);
                *has_aborted = true;
            }
        }
    }
}

impl Stores {
    /// What the word holds after so many of its stores.
    fn after(&self, stores: usize) -> u64 {
        stores.checked_sub(1).map_or(self.before, |last| self.each[last].value)
    }

    /// Returns how many of its stores an image may have of a word. Those of transactions are there
    /// or not as a whole, and a design may make them when it wants; others are counted one by one.
    fn possible(&self, extent: Extent, held: &[u64]) -> RangeInclusive<usize> {
        let all = self.each.len();
        if !self.has_aborted && self.each.iter().all(|stored| stored.tx.is_none()) {
            let reached = all.min(extent.stores as usize);
            return reached.min(extent.durable as usize)..=reached;
        }
        let is_held = |stored: &Stored| {
            let held = held.get(stored.by);
            stored.tx.zip(held).is_some_and(|(tx, held)| tx <= *held)
        };
        let held = self.each.iter().filter(|stored| is_held(stored)).count();
        if self.each.iter().all(|stored| stored.tx.is_some()) { held..=held } else { 0..=all }
    }
}

/// The fewest and the most stores that an image can have of a word.
type Span = (usize, usize);

/// Returns the spans of a line's words that hold these values, if the line as a whole can have been
/// so after one of its stores: what is written back is the line as it was then.
fn of_line(
    line: &[(Word, Stores)],
    values: &[u64],
    possible: &[RangeInclusive<usize>],
) -> Option<Vec<Span>> {
    let each = line.iter().map(|(_, stores)| &stores.each);
    let mut all: Vec<(usize, usize, usize)> = each
        .enumerate()
        .flat_map(|(word, each)| each.iter().map(move |of| (of.place, word, of.thread)))
        .collect();
    // It is not known which of two threads stored first.
    if all.windows(2).any(|pair| pair[0].2 != pair[1].2) {
        return None;
    }
    all.sort_by_key(|(place, ..)| *place);
    let fits = |word: usize, count: usize| {
        possible[word].contains(&count) && line[word].1.after(count) == values[word]
    };
    let mut counts = vec![0; line.len()];
    let mut wrong = (0..line.len()).filter(|&word| !fits(word, 0)).count();
    let mut spans = (wrong == 0).then(|| vec![(0, 0); line.len()]);
    for (_, word, _) in all {
        wrong -= usize::from(!fits(word, counts[word]));
        counts[word] += 1;
        wrong += usize::from(!fits(word, counts[word]));
        if wrong == 0 {
            let spans = spans.get_or_insert_with(|| counts.iter().map(|&at| (at, at)).collect());
            spans.iter_mut().zip(&counts).for_each(|(span, count)| span.1 = *count);
        }
    }
    spans
}

/// Returns the span of a word that holds a value, if any number of its stores explains that.
/// Hardware that is wrong may have lost what was durable, or have what was not yet stored.
fn of_word(stores: &Stores, value: u64, possible: &RangeInclusive<usize>) -> Option<Span> {
    let among = |mut counts: RangeInclusive<usize>| {
        let fits = |count: &usize| stores.after(*count) == value;
        let first = counts.find(fits)?;
        Some((first, counts.rfind(fits).unwrap_or(first)))
    };
    let until = *possible.end();
    among(possible.clone()).or_else(|| among(0..=until)).or_else(|| among(0..=stores.each.len()))
}

impl Told {
    /// Returns which stores memory has, and which of the earlier ones it lacks, in words, when the
    /// threads have come so far and memory holds so many of each one's transactions. If a word
    /// holds the same value after several stores that are possible, only what is certain is said.
    pub fn of(&self, word_of: impl Fn(Word) -> u64, reached: &Reached, held: &[u64]) -> String {
        let mut there: BTreeMap<usize, usize> = BTreeMap::new();
        let mut missing: BTreeSet<(usize, usize)> = BTreeSet::new();
        for line in self.stored.chunk_by(|(one, _), (other, _)| one.line() == other.line()) {
            let values: Vec<u64> = line.iter().map(|(word, _)| word_of(*word)).collect();
            let possible =
                |(word, stores): &(Word, Stores)| stores.possible(reached.extent(*word), held);
            let possible: Vec<_> = line.iter().map(possible).collect();
            let whole = of_line(line, &values, &possible);
            for (index, (_, stores)) in line.iter().enumerate() {
                let span = match &whole {
                    Some(spans) => Some(spans[index]),
                    None => of_word(stores, values[index], &possible[index]),
                };
                let Some((fewest, most)) = span else { continue };
                if let Some(last) = fewest.checked_sub(1) {
                    let Stored { thread, place, .. } = stores.each[last];
                    let newest = there.entry(thread).or_default();
                    *newest = place.max(*newest);
                }
                let lost = stores.each[most..].iter();
                missing.extend(lost.map(|stored| (stored.thread, stored.place)));
            }
        }
        self.in_words(&there, &missing)
    }

    /// Tells of the newest store of each thread that is there, and of the stores that are missing.
    fn in_words(
        &self,
        there: &BTreeMap<usize, usize>,
        missing: &BTreeSet<(usize, usize)>,
    ) -> String {
        for (thread, newest) in there {
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
    use model::units::CoreId;

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

    /// What is told of an image behind all stores of which none is known to be durable.
    fn of(told: &Told, words: &[(u64, u64)]) -> String {
        behind(told, words, &[])
    }

    /// What is told when a fence has made durable what some words held after so many stores.
    fn behind(told: &Told, words: &[(u64, u64)], durable: &[(u64, usize)]) -> String {
        let mut reached = Reached::new(1, false);
        for (word, Stores { each, .. }) in &told.stored {
            let known = durable.iter().find(|(at, _)| *at == word.0);
            for number in 0..=each.len() {
                if known.is_some_and(|(_, durable)| *durable == number) {
                    reached.flush(CoreId(0), word.line());
                    reached.fenced(CoreId(0));
                }
                if number < each.len() {
                    reached.stored(*word, false);
                }
            }
        }
        holding(told, words, &reached, &[0, 0])
    }

    fn holding(told: &Told, words: &[(u64, u64)], reached: &Reached, held: &[u64]) -> String {
        let value = |word: Word| words.iter().find(|(at, _)| *at == word.0);
        told.of(|word| value(word).map_or(0, |(_, value)| *value), reached, held)
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

    /// A flag that is set and cleared again holds what it held at first.
    #[test]
    fn behind_a_fence_a_word_has_that_store_or_a_newer_one() {
        let told = told(&[(0, 3, 1, 1), (0, 6, 9, 5), (0, 8, 17, 5), (0, 10, 1, 0)]);
        let without = "memory has the store of line 10, and not that of line 8";
        assert_eq!(behind(&told, &[(9, 5)], &[(1, 1)]), without);
        assert_eq!(behind(&told, &[(9, 5)], &[(1, 2)]), without);
        let all = "memory has the stores up to line 10";
        assert_eq!(behind(&told, &[(9, 5), (17, 5)], &[(1, 1)]), all);
        // Without the fence it may hold what it held at first, but nothing says so.
        assert_eq!(behind(&told, &[(9, 5)], &[]), "memory has the stores up to line 6");
        let lost = "memory has the store of line 6, and not that of line 3";
        let early = told_of(&[(0, 3, 1, 1), (0, 6, 9, 5)], &[]);
        assert_eq!(behind(&early, &[(9, 5)], &[(1, 1)]), lost, "hardware that loses it is wrong");
    }

    /// A store that is still to come explains nothing.
    #[test]
    fn what_was_not_stored_yet_is_not_there() {
        let told = told(&[(0, 1, 1, 7), (0, 2, 1, 8), (0, 3, 1, 7), (0, 4, 9, 1)]);
        let mut reached = Reached::new(1, true);
        let mut of = |stores: &[u64], words| {
            stores.iter().for_each(|&word| reached.stored(Word(word), false));
            holding(&told, words, &reached, &[0])
        };
        assert_eq!(of(&[], &[]), "no store can be told to be there");
        assert_eq!(of(&[1], &[(1, 7)]), "memory has the stores up to line 1");
        assert_eq!(of(&[1, 1], &[(1, 7)]), "memory has the stores up to line 3");
    }

    #[test]
    fn the_words_of_a_line_leave_the_caches_together() {
        let told = told(&[(0, 1, 1, 1), (0, 2, 2, 5), (0, 3, 1, 0), (0, 4, 9, 1)]);
        let without = "memory has the store of line 4, and not that of line";
        assert_eq!(of(&told, &[(9, 1)]), format!("{without}s 1, 2, 3"));
        assert_eq!(of(&told, &[(1, 1), (9, 1)]), format!("{without}s 2, 3"));
        assert_eq!(of(&told, &[(2, 5)]), "memory has the stores up to line 3");
        // Words that do not go together are told of one by one.
        assert_eq!(of(&told, &[(2, 6), (9, 1)]), "memory has the stores up to line 4");
    }

    #[test]
    fn the_transactions_that_memory_holds_tell_of_their_stores() {
        let mut history = History::default();
        let txs: [&[(u64, u64)]; 4] = [&[(1, 1)], &[], &[(9, 5), (17, 5)], &[(1, 0)]];
        for (place, stores) in (1..).zip(txs) {
            history.at(0, 0, place);
            Port::begin(&mut history, false);
            stores.iter().for_each(|&(word, value)| {
                history.store(Ptr::to(8 * word), value, u64::MAX);
            });
            history.commit();
        }
        let told = history.told(&trace(&[]));
        let of = |held| holding(&told, &[(9, 5), (17, 5)], &Reached::new(1, false), &[held]);
        assert_eq!(of(3), "memory has the stores up to line 4");
        let lost = "memory has the store of line 3, and not that of line 1";
        assert_eq!(of(2), lost, "it has the second one, and so the first is missing");
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
