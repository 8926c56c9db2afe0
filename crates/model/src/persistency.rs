//! What order of stores hardware promises, and whether what a power failure left keeps it: every
//! store of a run, with the stores that must be durable before it (Pelley, Chen and Wenisch, ISCA
//! 2014, for the models; what is recorded of a run is ours).
//!
//! An image is right if there is a set of stores that holds, with each of its members, all that
//! must come before it, and everything that a fence has reported durable; and each word of the
//! image holds the last store to it of that set. The set is not searched for: the least one follows
//! from the image, word by word.

use rustc_hash::FxHashMap;

use crate::card::Model;
use crate::design::FenceKind;
use crate::units::{CoreId, Line, PerCore, Word, WordMap};
use crate::workload::Flush;

impl Model {
    /// Whether a fence or flush of this kind, when it is done, has made durable what the model says
    /// a core's fence does.
    pub fn reports(self, kind: FenceKind) -> bool {
        match (self, kind) {
            (Model::Unordered, _) => false,
            (Model::Fenced, FenceKind::Flush(.., how)) => how == Flush::EvictInOrder,
            (Model::Fenced, FenceKind::Order | FenceKind::Durable) => true,
            (Model::Epoch, kind) => kind == FenceKind::Durable,
            // What is in write-combining buffers is not visible yet.
            (Model::Visible, kind) => !matches!(kind, FenceKind::Flush(..)),
        }
    }
}

/// The number of a store among all, in the order in which they became visible.
type Number = u32;

/// The stores of a run, and what is known of their order.
pub struct Persistency {
    model: Model,
    stores: Vec<Stored>,
    words: WordMap<History>,
    threads: PerCore<Thread>,
}

struct Stored {
    core: CoreId,
    word: Word,
    value: u64,
    /// The store's place in the history of its word.
    place: usize,
    /// The stores that must be durable before it. What must be durable before those is noted there.
    after: Vec<Number>,
}

/// The values that a word has held. At place 0 is the one before the first store.
struct History {
    values: Vec<u64>,
    stores: Vec<Number>,
    /// The oldest place to which a power failure may take the word back.
    durable: usize,
}

impl History {
    /// The store at a place; there is none at place 0.
    fn store(&self, place: usize) -> Option<Number> {
        place.checked_sub(1).map(|index| self.stores[index])
    }
}

#[derive(Clone, Default)]
struct Thread {
    /// The stores that must be durable before those of its epoch.
    before: Vec<Number>,
    /// The stores of its epoch: its own, and those that it saw.
    epoch: Vec<Number>,
    /// Whether one of them is its own.
    stored: bool,
    /// The stores that its next fence reports durable: its own, or those of lines that it flushed.
    unfenced: Vec<Number>,
    /// The fence or flush that is not done yet.
    fence: Option<FenceKind>,
}

impl Persistency {
    /// Begins the record of a run of programs on `cores` cores.
    pub fn new(model: Model, cores: u8) -> Persistency {
        Persistency {
            model,
            stores: Vec::new(),
            words: WordMap::default(),
            threads: PerCore::new(cores, |_| Thread::default()),
        }
    }

    /// Notes that a core stored to a word of persistent memory.
    pub fn store(&mut self, core: CoreId, word: Word, old: u64, value: u64) {
        self.append(core, word, old, value);
        if self.model == Model::Visible {
            let history = self.words.get_mut(&word).expect("it was stored to");
            history.durable = history.stores.len();
        }
    }

    /// Notes that a core stored to a word in a write-combining buffer, which survives nowhere: the
    /// core's next fence reports the store as durable.
    pub fn store_past_caches(&mut self, core: CoreId, word: Word, old: u64, value: u64) {
        let number = self.append(core, word, old, value);
        self.threads[core].unfenced.push(number);
    }

    fn append(&mut self, core: CoreId, word: Word, old: u64, value: u64) -> Number {
        let number = self.stores.len() as Number;
        let history = self.words.entry(word).or_insert_with(|| History {
            values: vec![old],
            stores: Vec::new(),
            durable: 0,
        });
        let place = history.values.len();
        let thread = &mut self.threads[core];
        let mut after = Vec::new();
        if self.model == Model::Epoch {
            after.clone_from(&thread.before);
        }
        if self.model != Model::Unordered {
            after.extend(history.stores.last());
        }
        history.values.push(value);
        history.stores.push(number);
        self.stores.push(Stored { core, word, value, place, after });
        if self.model == Model::Epoch {
            thread.epoch.push(number);
            thread.stored = true;
            thread.unfenced.push(number);
        }
        number
    }

    /// Notes that a core loaded a word of persistent memory.
    pub fn load(&mut self, core: CoreId, word: Word) {
        if self.model != Model::Epoch {
            return;
        }
        let Some(last) = self.words.get(&word).and_then(|history| history.stores.last()) else {
            return;
        };
        let epoch = &mut self.threads[core].epoch;
        if epoch.last() != Some(last) {
            epoch.push(*last);
        }
    }

    /// Notes that a core asks for an order, for durability, or for a line to be written back.
    pub fn fence(&mut self, core: CoreId, kind: FenceKind) {
        if let FenceKind::Flush(line, ..) = kind
            && self.model == Model::Fenced
        {
            self.flush(core, line);
        }
        let thread = &mut self.threads[core];
        thread.fence = Some(kind);
        if !matches!(kind, FenceKind::Flush(..)) {
            if std::mem::take(&mut thread.stored) {
                // What came before the epoch is before each of its own stores already.
                thread.before.clear();
            }
            thread.before.append(&mut thread.epoch);
            thread.before.sort_unstable();
            thread.before.dedup();
        }
    }

    /// Has a core's next fence report what a line holds now as durable.
    pub fn flush(&mut self, core: CoreId, line: Line) {
        let stores = line.words().filter_map(|word| self.words.get(&word)?.stores.last());
        self.threads[core].unfenced.extend(stores);
    }

    /// Notes that the fence or flush that a core asked for is done.
    pub fn fenced(&mut self, core: CoreId) {
        let thread = &mut self.threads[core];
        if thread.fence.take().is_some_and(|kind| self.model.reports(kind)) {
            let stores = std::mem::take(&mut thread.unfenced);
            self.report(stores);
        }
    }

    /// Notes that stores, and all that is before them, are durable; so are the older stores of
    /// their words, and what is before those.
    fn report(&mut self, mut stores: Vec<Number>) {
        while let Some(number) = stores.pop() {
            let Stored { word, place, .. } = self.stores[number as usize];
            let history = self.words.get_mut(&word).expect("it was stored to");
            if history.durable < place {
                let older = &history.stores[history.durable..place];
                stores.extend(older.iter().flat_map(|&store| &self.stores[store as usize].after));
                history.durable = place;
            }
        }
    }

    /// Whether a word was stored to.
    pub fn is_touched(&self, word: Word) -> bool {
        self.words.contains_key(&word)
    }

    /// The words that were stored to, in order.
    pub fn touched(&self) -> Vec<Word> {
        let mut words: Vec<Word> = self.words.keys().copied().collect();
        words.sort_unstable();
        words
    }

    /// Checks that words may hold these values after a power failure, whatever other words hold. A
    /// word that no core stored to may hold anything.
    ///
    /// # Errors
    /// The word that is wrong, and a sentence that says how.
    pub fn check(&self, image: &[(Word, u64)]) -> Result<(), (Word, String)> {
        let mut search = Search { of: self, least: FxHashMap::default(), seen: Vec::new() };
        search.seen.resize(self.stores.len(), false);
        loop {
            let mut settled = true;
            for &(word, value) in image {
                settled &= !search.place(word, value)?;
            }
            if settled {
                return Ok(());
            }
        }
    }

    /// What cores stored to a word, oldest first.
    pub fn history(&self, word: Word) -> Vec<String> {
        let Some(history) = self.words.get(&word) else { return Vec::new() };
        let line = |number: &Number| {
            let stored = &self.stores[*number as usize];
            let durable = if stored.place <= history.durable { ", durable" } else { "" };
            format!("store {number} by {}: {:#x}{durable}", stored.core, stored.value)
        };
        history.stores.iter().map(line).collect()
    }
}

/// The least set of stores that an image needs: for each word, the place that it must have reached,
/// and the store that requires this.
struct Search<'a> {
    of: &'a Persistency,
    least: FxHashMap<Word, (usize, Option<Number>)>,
    seen: Vec<bool>,
}

impl Search<'_> {
    /// Finds the first place at which a word may hold a value, and adds what must be before it.
    /// Returns whether anything was added.
    fn place(&mut self, word: Word, value: u64) -> Result<bool, (Word, String)> {
        let Some(history) = self.of.words.get(&word) else { return Ok(false) };
        let (needed, why) = self.least.get(&word).copied().unwrap_or((0, None));
        let from = needed.max(history.durable);
        let mut values = history.values.iter().enumerate().skip(from);
        let Some((place, _)) = values.find(|(_, held)| **held == value) else {
            return Err((word, self.explain(word, value, from, why)));
        };
        let Some(number) = history.store(place) else { return Ok(false) };
        if std::mem::replace(&mut self.seen[number as usize], true) {
            return Ok(false);
        }
        let mut left = vec![number];
        while let Some(number) = left.pop() {
            for &before in &self.of.stores[number as usize].after {
                let stored = &self.of.stores[before as usize];
                let least = self.least.entry(stored.word).or_default();
                if least.0 < stored.place {
                    *least = (stored.place, Some(number));
                }
                if !std::mem::replace(&mut self.seen[before as usize], true) {
                    left.push(before);
                }
            }
        }
        Ok(true)
    }

    fn explain(&self, word: Word, is: u64, from: usize, why: Option<Number>) -> String {
        let history = &self.of.words[&word];
        let address = word.address();
        if !history.values.contains(&is) {
            return format!("order: the image holds {is:#x} at {address:#x}, which nobody stored");
        }
        let lost = history.store(from).map_or(0, |number| self.of.stores[number as usize].value);
        let lacks = format!("order: the image holds {is:#x} at {address:#x} and lacks {lost:#x}");
        match why.filter(|_| from > history.durable) {
            Some(number) => {
                let Stored { core, word, value, .. } = &self.of.stores[number as usize];
                format!(
                    "{lacks}, which comes before the store of {value:#x} to {:#x} by {core}, which \
                     is there or comes before one that is",
                    word.address()
                )
            }
            None => format!("{lacks}, which was durable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Word = Word(0);
    const B: Word = Word(8);
    const ZERO: CoreId = CoreId(0);
    const ONE: CoreId = CoreId(1);

    fn fence(run: &mut Persistency, core: CoreId, kind: FenceKind) {
        run.fence(core, kind);
        run.fenced(core);
    }

    /// A request to write the line of a word back.
    fn flush(word: Word, how: Flush) -> FenceKind {
        FenceKind::Flush(word.line(), crate::meters::Class::Data, how)
    }

    fn allows(run: &Persistency, a: u64, b: u64) -> bool {
        run.check(&[(A, a), (B, b)]).is_ok()
    }

    #[test]
    fn an_order_separates_epochs() {
        for (model, allowed) in [(Model::Unordered, true), (Model::Epoch, false)] {
            let mut run = Persistency::new(model, 1);
            run.store(ZERO, A, 0, 1);
            fence(&mut run, ZERO, FenceKind::Order);
            run.store(ZERO, B, 0, 1);
            assert_eq!(allows(&run, 0, 1), allowed, "{model:?}");
            assert!(allows(&run, 1, 0) && allows(&run, 0, 0) && allows(&run, 1, 1));
        }
    }

    #[test]
    fn stores_of_one_epoch_are_not_ordered() {
        let mut run = Persistency::new(Model::Epoch, 1);
        run.store(ZERO, A, 0, 1);
        fence(&mut run, ZERO, flush(A, Flush::WriteBack));
        run.store(ZERO, B, 0, 1);
        assert!(allows(&run, 0, 1) && allows(&run, 1, 0), "a flush opens none");
    }

    /// What comes before a store comes before those after it, whatever its word holds later.
    #[test]
    fn a_word_reaches_the_newest_of_the_places_that_others_need() {
        let mut run = Persistency::new(Model::Epoch, 1);
        for value in 1..3 {
            run.store(ZERO, A, value - 1, value);
            fence(&mut run, ZERO, FenceKind::Order);
        }
        run.store(ZERO, B, 0, 1);
        assert!(allows(&run, 2, 1) && !allows(&run, 1, 1));
    }

    #[test]
    fn an_epoch_of_loads_passes_on_what_came_before_it() {
        let c = Word(16);
        let mut run = Persistency::new(Model::Epoch, 2);
        run.store(ZERO, A, 0, 1);
        fence(&mut run, ZERO, FenceKind::Order);
        run.store(ONE, c, 0, 1);
        run.load(ZERO, c);
        fence(&mut run, ZERO, FenceKind::Order);
        run.store(ZERO, B, 0, 1);
        assert!(!allows(&run, 0, 1), "from the epoch before");
        assert!(run.check(&[(c, 0), (B, 1)]).is_err(), "from the loads");
        assert!(run.check(&[(A, 1), (c, 1), (B, 1)]).is_ok());
    }

    /// A store that is durable makes the store that it overwrote durable, with what came before
    /// that.
    #[test]
    fn what_comes_before_an_overwritten_store_is_durable_with_the_newer_one() {
        let c = Word(16);
        let mut run = Persistency::new(Model::Epoch, 2);
        run.store(ZERO, A, 0, 1);
        fence(&mut run, ZERO, FenceKind::Order);
        run.store(ZERO, B, 0, 1);
        run.store(ONE, B, 1, 2);
        assert!(run.check(&[(A, 0)]).is_ok());
        fence(&mut run, ONE, FenceKind::Durable);
        assert!(run.check(&[(A, 0)]).is_err());
        run.store(ONE, c, 0, 1);
        assert!(run.check(&[(A, 0), (c, 1)]).is_err(), "whatever the other words hold");
        assert!(run.check(&[(A, 1), (c, 0)]).is_ok());
    }

    #[test]
    fn what_a_core_saw_comes_before_its_next_epoch() {
        let mut run = Persistency::new(Model::Epoch, 2);
        run.store(ZERO, A, 0, 1);
        run.load(ONE, A);
        run.store(ONE, B, 0, 1);
        assert!(allows(&run, 0, 1), "no order came between");
        fence(&mut run, ONE, FenceKind::Order);
        run.store(ONE, B, 1, 2);
        assert!(allows(&run, 0, 1) && !allows(&run, 0, 2));
        assert!(run.check(&[(A, 0)]).is_ok());
        fence(&mut run, ONE, FenceKind::Durable);
        assert!(run.check(&[(A, 0)]).is_err(), "it is durable with what it comes before");
    }

    #[test]
    fn a_word_does_not_go_back_behind_what_a_fence_reported() {
        for model in [Model::Fenced, Model::Epoch] {
            let mut run = Persistency::new(model, 2);
            run.store(ZERO, A, 0, 1);
            run.store(ONE, A, 1, 2);
            fence(&mut run, ONE, flush(A, Flush::WriteBack));
            assert!(allows(&run, 1, 0) && allows(&run, 0, 0));
            fence(&mut run, ONE, FenceKind::Durable);
            assert!(run.check(&[(A, 2)]).is_ok());
            let (_, text) = run.check(&[(A, 1)]).expect_err("it went back");
            assert!(text.ends_with("which was durable"), "{text}");
        }
    }

    #[test]
    fn a_flush_covers_every_word_of_its_line() {
        for word in (0..16).map(Word) {
            let mut run = Persistency::new(Model::Fenced, 1);
            run.store(ZERO, word, 0, 1);
            fence(&mut run, ZERO, flush(A, Flush::WriteBack));
            fence(&mut run, ZERO, FenceKind::Durable);
            assert_eq!(run.check(&[(word, 0)]).is_err(), word.line() == A.line(), "{word:?}");
        }
    }

    #[test]
    fn a_value_that_was_stored_twice_is_taken_for_the_one_that_fits() {
        let mut run = Persistency::new(Model::Epoch, 1);
        run.store(ZERO, A, 0, 1);
        fence(&mut run, ZERO, FenceKind::Order);
        run.store(ZERO, B, 0, 1);
        fence(&mut run, ZERO, FenceKind::Order);
        run.store(ZERO, A, 1, 0);
        assert!(allows(&run, 0, 0), "the first 0, before B");
        assert!(allows(&run, 0, 1), "the second 0, after B");
        assert!(!allows(&run, 0, 2));
        let (_, text) = run.check(&[(A, 0), (B, 7)]).expect_err("nobody stored it");
        assert!(text.ends_with("which nobody stored"), "{text}");
    }

    #[test]
    fn a_store_past_the_caches_is_durable_behind_a_fence() {
        for (model, kind) in [
            (Model::Fenced, FenceKind::Order),
            (Model::Fenced, FenceKind::Durable),
            (Model::Visible, FenceKind::Order),
            (Model::Visible, FenceKind::Durable),
            (Model::Epoch, FenceKind::Durable),
        ] {
            let mut run = Persistency::new(model, 1);
            run.store_past_caches(ZERO, A, 0, 1);
            assert!(run.check(&[(A, 0)]).is_ok(), "{model:?}");
            fence(&mut run, ZERO, kind);
            assert!(run.check(&[(A, 0)]).is_err(), "{model:?} {kind:?}");
        }
    }

    #[test]
    fn a_flush_in_order_is_a_fence_and_another_is_none() {
        for how in [Flush::EvictInOrder, Flush::Evict, Flush::WriteBack] {
            let mut run = Persistency::new(Model::Fenced, 1);
            run.store(ZERO, A, 0, 1);
            fence(&mut run, ZERO, flush(A, how));
            assert_eq!(run.check(&[(A, 0)]).is_err(), how == Flush::EvictInOrder, "{how:?}");
        }
    }

    #[test]
    fn a_history_says_who_stored_and_what_is_durable() {
        let mut run = Persistency::new(Model::Epoch, 2);
        run.store(ZERO, A, 0, 7);
        fence(&mut run, ZERO, FenceKind::Durable);
        run.store(ONE, A, 7, 8);
        let told = ["store 0 by core 0: 0x7, durable", "store 1 by core 1: 0x8"];
        assert_eq!(run.history(A), told);
    }

    #[test]
    fn a_visible_store_is_durable() {
        let mut run = Persistency::new(Model::Visible, 1);
        run.store(ZERO, A, 0, 1);
        assert!(allows(&run, 1, 0) && !allows(&run, 0, 0));
    }
}
