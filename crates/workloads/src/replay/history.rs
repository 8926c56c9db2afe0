//! The stores of a trace, word by word, and how many of them an image has.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use model::checker::Extent;
use model::units::{Cycle, LINE_BYTES, Line, LineData, WORD_BYTES, Word};
use model::workload::{Flush, Overwritten, Port, Ptr};

use super::missing::Flushes;

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
    flushes: Flushes,
    /// The places of each thread's marks.
    marks: BTreeMap<usize, Vec<usize>>,
    /// Whether the store that is being made goes past the caches.
    is_past_caches: bool,
}

/// What was recorded of a trace: the stores to each word, the flushes of each line, and the places
/// of each thread's marks.
#[derive(Debug)]
pub struct Recorded {
    pub stored: Vec<(Word, Stores)>,
    pub flushes: Flushes,
    pub marks: BTreeMap<usize, Vec<usize>>,
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
pub struct Stores {
    /// The contents of the word before all of them.
    before: u64,
    pub each: Vec<Stored>,
    /// Whether an aborted transaction stored to the word, too: a run then makes more stores.
    has_aborted: bool,
}

/// A store: its thread, the thread as which that is told of, its place in the file, and what its
/// word holds from then on.
#[derive(Debug)]
pub struct Stored {
    pub by: usize,
    pub thread: usize,
    pub place: usize,
    pub is_past_caches: bool,
    value: u64,
    /// The number of its transaction, if it is in one, among those of its thread that store to
    /// persistent memory and commit.
    tx: Option<u64>,
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

    pub fn word(&self, word: Word) -> u64 {
        self.now.get(&word).copied().unwrap_or_default()
    }

    /// Returns what was recorded since the trace began.
    pub fn recorded(self) -> Recorded {
        let Self { stored, flushes, marks, .. } = self;
        Recorded { stored: stored.into_iter().collect(), flushes, marks }
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
            let Self { thread: by, told_as: thread, place, is_past_caches, .. } = *self;
            let transactions = self.transactions.entry(by).or_default();
            transactions.has_stored = transactions.is_open;
            let tx = transactions.is_open.then_some(transactions.committed + 1);
            stores.each.push(Stored { by, thread, place, is_past_caches, value, tx });
        }
    }

    fn store_past_caches(&mut self, at: Ptr, values: &[u64]) {
        self.is_past_caches = true;
        for (word, &value) in (0..).zip(values) {
            self.store(at.plus(word * WORD_BYTES), value, u64::MAX);
        }
        self.is_past_caches = false;
    }

    fn flush(&mut self, at: Ptr, _how: Flush) {
        self.flushes.add(Line::of(at.address), self.thread, self.told_as, self.place);
    }

    fn mark(&mut self) {
        self.marks.entry(self.thread).or_default().push(self.place);
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

    /// Whether each of them is made when the program makes it: none is of a transaction.
    pub fn are_plain(&self) -> bool {
        !self.has_aborted && self.each.iter().all(|stored| stored.tx.is_none())
    }

    /// Returns how many of its stores an image may have of a word. Those of transactions are there
    /// or not as a whole, and a design may make them when it wants; others are counted one by one.
    pub fn possible(&self, extent: Extent, held: &[u64]) -> RangeInclusive<usize> {
        let all = self.each.len();
        if self.are_plain() {
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
pub type Span = (usize, usize);

/// Returns the spans of a line's words that hold these values, if the line as a whole can have been
/// so after one of its stores: what is written back is the line as it was then.
pub fn of_line(
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
pub fn of_word(stores: &Stores, value: u64, possible: &RangeInclusive<usize>) -> Option<Span> {
    let among = |mut counts: RangeInclusive<usize>| {
        let fits = |count: &usize| stores.after(*count) == value;
        let first = counts.find(fits)?;
        Some((first, counts.rfind(fits).unwrap_or(first)))
    };
    let until = *possible.end();
    among(possible.clone()).or_else(|| among(0..=until)).or_else(|| among(0..=stores.each.len()))
}
