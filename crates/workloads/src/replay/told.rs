//! Which stores of a trace an image has, and which it lacks, in words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::checker::{Account, Listed, NamedStore, Reached};
use model::units::Word;

use super::history::{History, Recorded, Stored, Stores, of_line, of_word};
use super::missing::{Flushes, Missing, Why};
use super::trace::Trace;

/// The most stores that are listed (ours: the sentence names fewer).
const LISTED: usize = 16;

/// The stores by which an image can be described: those of the trace that it has.
#[derive(Debug)]
pub struct Told {
    stored: Vec<(Word, Stores)>,
    flushes: Flushes,
    marks: BTreeMap<usize, Vec<usize>>,
    /// The number of threads that store.
    threads: usize,
    trace: Arc<Trace>,
}

/// What is known of the stores of an image, by the thread as which each is told of, and its place.
#[derive(Default)]
struct Known {
    /// The newest store of each word that is there: its thread, and the first such word.
    there: BTreeMap<(usize, usize), (usize, Word)>,
    missing: BTreeMap<(usize, usize), Missing>,
}

impl Known {
    /// The newest store of each thread that is there.
    fn newest(&self) -> BTreeMap<usize, usize> {
        self.there.keys().copied().collect()
    }

    /// The stores that are missing: not those that are still to come, or of a transaction that is.
    fn lacking(&self) -> impl Iterator<Item = (&(usize, usize), &Missing)> {
        let newest = self.newest();
        let lacks = move |thread: usize, place: usize| {
            newest.get(&thread).is_some_and(|newest| place <= *newest)
        };
        let missing = self.missing.iter();
        missing.filter(move |((thread, place), missing)| missing.is_made || lacks(*thread, *place))
    }

    /// Whether only a part of a store is there.
    fn is_part(&self, thread: usize, place: usize) -> bool {
        self.there.contains_key(&(thread, place)) && self.missing.contains_key(&(thread, place))
    }
}

impl Told {
    /// Returns the stores by which images of the trace can be described.
    pub fn new(history: History, trace: &Arc<Trace>) -> Told {
        let Recorded { mut stored, flushes, marks } = history.recorded();
        // A word of two threads says nothing, since it is not known which one stored first.
        stored.retain(|(_, Stores { each, .. })| {
            each.windows(2).all(|pair| pair[0].thread == pair[1].thread)
        });
        let each = stored.iter().flat_map(|(_, stores)| &stores.each);
        let threads = each.map(|stored| stored.thread).collect::<BTreeSet<_>>().len();
        Told { stored, flushes, marks, threads, trace: Arc::clone(trace) }
    }

    /// Returns which stores memory has, and which of the earlier ones it lacks, in words and as
    /// lists, when the threads have come so far and memory holds so many of each one's
    /// transactions. If a word holds the same value after several stores that are possible, only
    /// what is certain is said.
    pub fn of(
        &self,
        word_of: impl Fn(Word) -> u64,
        reached: &Reached,
        held: &[u64],
    ) -> (String, Account) {
        let mut known = Known::default();
        for line in self.stored.chunk_by(|(one, _), (other, _)| one.line() == other.line()) {
            let values: Vec<u64> = line.iter().map(|(word, _)| word_of(*word)).collect();
            let possible =
                |(word, stores): &(Word, Stores)| stores.possible(reached.extent(*word), held);
            let possible: Vec<_> = line.iter().map(possible).collect();
            let whole = of_line(line, &values, &possible);
            for (index, (word, stores)) in line.iter().enumerate() {
                let span = match &whole {
                    Some(spans) => Some(spans[index]),
                    None => of_word(stores, values[index], &possible[index]),
                };
                let Some((fewest, most)) = span else { continue };
                if let Some(last) = fewest.checked_sub(1) {
                    let Stored { by, thread, place, .. } = stores.each[last];
                    known.there.entry((thread, place)).or_insert((by, *word));
                }
                for index in most..stores.each.len() {
                    self.flushes.lacks(&mut known.missing, (*word, stores), index, reached);
                }
            }
        }
        let behind = self.before_marks(&known, reached);
        (self.in_words(&known, &behind), self.account(&known))
    }

    /// The stores that are missing behind the newest one that is there, and that were made before
    /// the last mark of their thread.
    fn before_marks(&self, known: &Known, reached: &Reached) -> Vec<(usize, usize)> {
        let last = |thread: usize| {
            let made = *reached.marks().get(thread)? as usize;
            self.marks.get(&thread)?.get(made.checked_sub(1)?).copied()
        };
        let is_promised = |((_, place), missing): &(&(usize, usize), &Missing)| {
            missing.is_made && last(missing.by).is_some_and(|mark| *place < mark)
        };
        known.missing.iter().filter(is_promised).map(|(at, _)| *at).collect()
    }

    /// Tells of the newest store of each thread that is there, and of the stores that are missing.
    fn in_words(&self, known: &Known, behind: &[(usize, usize)]) -> String {
        let newest = known.newest();
        for (&thread, &newest) in &newest {
            let before =
                known.missing.keys().filter(|(of, place)| *of == thread && *place < newest);
            let (parts, without): (Vec<_>, Vec<_>) =
                before.partition(|(_, place)| known.is_part(thread, *place));
            let is_part = known.is_part(thread, newest);
            if !is_part && parts.is_empty() && without.is_empty() {
                continue;
            }
            let last = self.trace.told(&[newest]);
            let mut told = match is_part {
                true => {
                    let Missing { why, flushes, .. } = &known.missing[&(thread, newest)];
                    let why = match why {
                        Why::Unmade => ", in the middle of which the power failed".to_owned(),
                        why => why.told(flushes, &self.trace),
                    };
                    format!("memory has only a part of the store of {last}{why}")
                }
                false => format!("memory has the store of {last}"),
            };
            if !parts.is_empty() {
                let of = self.reasons(known, parts).join(" and of ");
                told += &format!(", and only a part of that of {of}");
            }
            if !without.is_empty() {
                let of = self.reasons(known, without).join(", nor of ");
                told += &format!(", and not that of {of}");
            }
            return told;
        }
        let each = newest.iter().map(|(thread, newest)| {
            let place = self.trace.told(&[*newest]);
            match self.threads {
                1 => place,
                _ => format!("{place} of thread {thread}"),
            }
        });
        let each: Vec<String> = each.collect();
        let without = self.reasons(known, behind.iter()).join(", nor of ");
        match (each.is_empty(), without.is_empty()) {
            (true, true) => "no store can be told to be there".to_owned(),
            (true, false) => format!("memory does not have the store of {without}"),
            (false, true) => format!("memory has the stores up to {}", each.join(" and ")),
            (false, false) => {
                let each = each.join(" and ");
                format!("memory has the stores up to {each}, and not that of {without}")
            }
        }
    }

    /// Returns the places of stores that are missing, those with the same reason together, with
    /// that reason.
    fn reasons<'a>(
        &self,
        known: &Known,
        stores: impl IntoIterator<Item = &'a (usize, usize)>,
    ) -> Vec<String> {
        let mut groups: Vec<(Why, Vec<usize>, BTreeSet<usize>)> = Vec::new();
        for at in stores {
            let Missing { why, flushes, .. } = &known.missing[at];
            let index = groups.iter().position(|(other, ..)| other == why).unwrap_or_else(|| {
                groups.push((*why, Vec::new(), BTreeSet::new()));
                groups.len() - 1
            });
            groups[index].1.push(at.1);
            groups[index].2.extend(flushes);
        }
        let told = groups.into_iter().map(|(why, mut places, flushes)| {
            places.dedup();
            format!("{}{}", self.trace.told(&places), why.told(&flushes, &self.trace))
        });
        told.collect()
    }

    /// Lists the newest stores that are there, and the oldest ones that are missing.
    fn account(&self, known: &Known) -> Account {
        let named = |place: usize, by: usize, word: Word| NamedStore {
            place: place as u64,
            source: self.trace.sources.get(place).map(str::to_owned),
            word,
            thread: by as u64,
        };
        let mut there: Vec<_> =
            known.there.iter().map(|((_, place), (by, word))| (*place, *by, *word)).collect();
        let missing = known.lacking();
        let mut missing: Vec<_> =
            missing.map(|((_, place), of)| (*place, of.by, of.word)).collect();
        there.sort_unstable();
        missing.sort_unstable();
        let listed = |all: &[(usize, usize, Word)], total: usize| Listed {
            stores: all.iter().map(|(place, by, word)| named(*place, *by, *word)).collect(),
            total: total as u64,
        };
        let shown = there.len().saturating_sub(LISTED);
        Account {
            there: listed(&there[shown..], there.len()),
            missing: listed(&missing[..missing.len().min(LISTED)], missing.len()),
            reason: self.reason(known),
            alike: 0,
        }
    }

    /// What images that show the same mistake have in common: of the stores that are missing, those
    /// with the worst reason, or if none is, the newest ones that are there; by their places in the
    /// program, since it may make them again and again.
    fn reason(&self, known: &Known) -> String {
        let worst = known.lacking().map(|(_, missing)| missing.why).max();
        let places: Vec<usize> = match worst {
            None => known.newest().into_values().collect(),
            Some(worst) => {
                let worst = known.lacking().filter(|(_, missing)| missing.why == worst);
                worst.map(|((_, place), _)| *place).collect()
            }
        };
        let named = |place: &usize| match self.trace.sources.get(*place) {
            Some(source) => source.to_owned(),
            None => place.to_string(),
        };
        let named: BTreeSet<String> = places.iter().map(named).collect();
        format!("{worst:?} of {named:?}")
    }
}

#[cfg(test)]
mod tests {
    use model::checker::Durable;
    use model::units::{CoreId, LINE_BYTES, Line};
    use model::workload::{Port, Ptr};

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
        Told::new(history, &trace(sources))
    }

    /// What is told of an image behind all stores of which none is known to be durable.
    fn of(told: &Told, words: &[(u64, u64)]) -> String {
        behind(told, words, &[])
    }

    /// What is told when a fence has made durable what some words held after so many stores.
    fn behind(told: &Told, words: &[(u64, u64)], durable: &[(u64, usize)]) -> String {
        let mut reached = Reached::new(1, Durable::Otherwise);
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
        told.of(|word| value(word).map_or(0, |(_, value)| *value), reached, held).0
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
        let mut reached = Reached::new(1, Durable::Visible);
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
        let told = Told::new(history, &trace(&[]));
        let of = |held| {
            holding(&told, &[(9, 5), (17, 5)], &Reached::new(1, Durable::Otherwise), &[held])
        };
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
        assert_eq!(
            of(&Told::new(history, &trace(&[])), &[(1, 5)]),
            "no store can be told to be there"
        );
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
        let told = Told::new(history, &trace(&[]));
        assert_eq!(of(&told, &[(9, 7)]), "memory has the stores up to line 2");
    }

    /// What a thread does in tests: each operation has the next line of the trace.
    enum Did {
        Store(u64, u64),
        Flush(u64),
        Fence,
        Mark,
        Past(u64, u64),
        /// A store of several words, up to the second one.
        Copy(u64, u64),
    }

    /// What is told on hardware that needs flushes when the power fails behind so many stores to
    /// words, and memory holds these values.
    fn needing(ops: &[Did], stores: usize, words: &[(u64, u64)]) -> (String, Account) {
        let (mut history, mut reached) = (History::default(), Reached::new(1, Durable::Flushed));
        let mut left = stores;
        let mut store = |history: &mut History, reached: &mut Reached, word: u64, value, past| {
            let at = Ptr::to(8 * word);
            match past {
                true => history.store_past_caches(at, &[value]),
                false => history.store(at, value, u64::MAX),
            }
            if left > 0 {
                left -= 1;
                reached.stored(Word(word), past);
                if past {
                    reached.flush(CoreId(0), Word(word).line());
                }
            }
            left > 0
        };
        let mut runs = stores > 0;
        for (place, op) in (1..).zip(ops) {
            history.at(0, 0, place);
            match *op {
                Did::Store(word, value) => {
                    runs = store(&mut history, &mut reached, word, value, false);
                }
                Did::Past(word, value) => {
                    runs = store(&mut history, &mut reached, word, value, true);
                }
                Did::Copy(first, last) => (first..=last).for_each(|word| {
                    runs = store(&mut history, &mut reached, word, 1, false);
                }),
                Did::Flush(word) => {
                    history.flush(Ptr::to(8 * word), model::workload::Flush::WriteBack);
                    if runs {
                        reached.flush(CoreId(0), Word(word).line());
                    }
                }
                Did::Fence if runs => reached.fenced(CoreId(0)),
                Did::Fence => (),
                Did::Mark => {
                    history.mark();
                    if runs {
                        reached.marked(CoreId(0));
                    }
                }
            }
        }
        let told = Told::new(history, &trace(&[]));
        let value = |word: Word| words.iter().find(|(at, _)| *at == word.0);
        told.of(|word| value(word).map_or(0, |(_, value)| *value), &reached, &[0])
    }

    #[test]
    fn why_a_store_is_missing_is_told() {
        use Did::{Fence, Flush, Past, Store};
        let flag = Store(17, 1);
        let because = |ops: Vec<Did>, stores| {
            let told = needing(&ops, stores, &[(17, 1)]).0;
            let (_, why) = told.split_once(" of line 1").expect(&told);
            why.to_owned()
        };
        let ops = vec![Store(1, 1), flag];
        assert_eq!(because(ops, 2), ", never flushed");
        let ops = vec![Store(1, 1), Store(17, 1), Flush(1), Flush(17), Fence];
        assert_eq!(because(ops, 2), ", flushed only in line 3");
        let ops = vec![Store(1, 1), Flush(1), Store(17, 1), Store(25, 1), Fence];
        assert_eq!(because(ops, 3), ", flushed in line 2 with no fence since");
        let ops = vec![Past(1, 1), Store(17, 1), Store(25, 1)];
        assert_eq!(because(ops, 3), ", with no fence since");
        let ops = vec![Store(1, 1), Flush(1), Fence, Store(17, 1), Store(25, 1)];
        assert_eq!(because(ops, 3), "", "the hardware lost it");
        let ops = [Store(9, 5), Flush(1), Fence, Store(1, 1), Store(17, 1)];
        let told = needing(&ops, 3, &[(9, 5), (17, 1)]).0;
        let expect =
            "memory has the store of line 5, and not that of line 4, not flushed since line 2";
        assert_eq!(told, expect);
    }

    #[test]
    fn stores_that_are_missing_for_one_reason_are_told_together() {
        use Did::{Flush, Store};
        let ops = [Store(1, 1), Store(9, 1), Store(25, 1), Flush(9), Store(17, 1), Store(33, 1)];
        assert_eq!(
            needing(&ops, 5, &[(17, 1)]).0,
            "memory has the store of line 5, and not that of lines 1, 3, never flushed, nor of \
             line 2, flushed in line 4 with no fence since"
        );
    }

    #[test]
    fn a_part_of_a_store_is_told_as_a_part() {
        use Did::{Copy, Flush, Store};
        let part = "memory has only a part of the store of line 2";
        let ops = [Store(1, 1), Copy(14, 17), Flush(14), Flush(17), Store(25, 1)];
        // The power failed in the middle, between two words of a line and of two lines.
        let within = format!("{part}, in the middle of which the power failed");
        assert_eq!(needing(&ops, 2, &[(1, 1), (14, 1)]).0, within);
        let (told, account) = needing(&ops, 5, &[(1, 1), (16, 1), (17, 1)]);
        assert_eq!(told, format!("{part}, flushed only in line 3"));
        let places = |of: &Listed| of.stores.iter().map(|store| store.place).collect::<Vec<_>>();
        assert_eq!((places(&account.there), places(&account.missing)), (vec![1, 2], vec![2]));
        assert_eq!((account.missing.total, account.missing.stores[0].word), (1, Word(14)));
        let told = needing(&ops, 5, &[(16, 1), (17, 1)]).0;
        let expect =
            format!("{part}, flushed only in line 3, and not that of line 1, never flushed");
        assert_eq!(told, expect);
        assert_eq!(
            needing(&ops, 6, &[(1, 1), (16, 1), (17, 1), (25, 1)]).0,
            "memory has the store of line 5, and only a part of that of line 2, flushed in line 3 \
             with no fence since"
        );
    }

    #[test]
    fn of_stores_before_a_mark_those_that_are_missing_are_told() {
        use Did::{Fence, Flush, Mark, Store};
        let ops = [Store(1, 1), Flush(1), Fence, Store(9, 1), Flush(9), Mark, Fence, Store(17, 1)];
        let up_to = "memory has the stores up to line 1";
        let lost = "that of line 4, flushed in line 5 with no fence since";
        let stored = [Store(1, 1), Flush(1), Fence, Store(9, 1), Flush(9), Mark, Store(17, 1)];
        assert_eq!(needing(&stored, 3, &[(1, 1)]).0, format!("{up_to}, and not {lost}"));
        assert_eq!(needing(&ops, 2, &[(1, 1)]).0, up_to, "the mark is not there yet");
        // Of what is behind the mark nothing is promised.
        let behind = [Store(1, 1), Flush(1), Fence, Mark, Store(9, 1), Store(17, 1)];
        assert_eq!(needing(&behind, 3, &[(1, 1)]).0, up_to);
        let first = [Store(1, 1), Mark, Store(9, 1)];
        let expect = "memory does not have the store of line 1, never flushed";
        assert_eq!(needing(&first, 2, &[]).0, expect);
    }
}
