//! What a recovered image may hold: the exact answer, from what the programs did.

use std::cell::OnceCell;
use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use crate::checker::Account;
use crate::contents::Contents;
use crate::design::Durability;
use crate::device::Write;
use crate::image::Image;
use crate::meters::Class;
use crate::units::{CoreId, Cycle, Line, LineData, PerCore, TxId, Word, WordMap};

mod survivors;

use survivors::{Candidate, Chains, Lost};

/// A write that has arrived before timing would have had it arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Early {
    /// The write's line, in memory.
    pub line: Line,
    /// What the write counts as.
    pub class: Class,
    /// How many of the line's bytes are there.
    pub bytes: u32,
}

impl Early {
    /// Describes a write, unless it has no bytes: whether such a write has arrived makes no
    /// difference to an image.
    pub fn of(write: &Write) -> Option<Early> {
        let bytes = write.mask.count_ones();
        (bytes > 0).then_some(Early { line: write.line, class: write.class, bytes })
    }
}

/// A power failure, and the image that it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The crash point, from 1.
    pub point: u64,
    /// Which of the images of that point it is: 0 for the one that timing produced.
    pub order: u64,
    /// When the power failed.
    pub at: Cycle,
    /// The writes that have arrived early in that image, in their order.
    pub early: Vec<Early>,
}

/// Something that a recovered image holds and must not, or lacks and must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The point of the campaign at which the power failed, from 1; 0 while the machine booted.
    pub point: u64,
    /// Which of the images of that point it is: 0 for the one that timing produced.
    pub order: u64,
    /// The writes that have arrived early in that image, in their order.
    pub early: Vec<Early>,
    /// When the power failed.
    pub at: Cycle,
    /// How many of its writes recovery had issued when it was interrupted, if it was; of booting,
    /// while the machine booted.
    pub nested: Option<u64>,
    /// The number of the image among those of that interruption: 0 for the one that has all writes
    /// before it, 1 or 2 for one in which those since the last fence arrived out of order, 3 for
    /// one that also has some words of the next write.
    pub nested_order: u64,
    /// What is wrong, in a sentence.
    pub text: String,
    /// The files in which the image is kept, if the user's checker keeps it.
    pub files: Vec<String>,
    /// What each thread had said last, if the user's checker was asked.
    pub marks: Vec<String>,
    /// Which of the program's stores the image has, if the user's checker was shown it.
    pub account: Option<Box<Account>>,
    /// The word that is wrong, if it is one.
    pub word: Option<Word>,
    /// What the transactions that touched the word did, oldest first.
    pub history: Vec<String>,
}

impl Violation {
    /// The power failure after which it was found, and the image.
    pub fn moment(&self) -> Moment {
        let Violation { point, order, at, early, .. } = self;
        Moment { point: *point, order: *order, at: *at, early: early.clone() }
    }
}

/// A transaction that is not acknowledged, as its program made it.
#[derive(Clone, Debug, Default)]
struct Open {
    id: TxId,
    writes: Vec<(Word, u64)>,
    /// What the first so many of the writes left in each word. Only a store of a part of a word
    /// asks for that.
    left: (usize, WordMap<u64>),
    committing: bool,
    /// The pending transactions that it depends on, once it is committing.
    after: Vec<Serial>,
}

impl Open {
    /// What the transaction has left in a word, if it has stored to it.
    fn left(&mut self, word: Word) -> Option<u64> {
        let (known, words) = &mut self.left;
        words.extend(self.writes[*known..].iter().copied());
        *known = self.writes.len();
        words.get(&word).copied()
    }
}

/// A transaction's place in the serial order, which is that of the acknowledgements. One that is
/// announced as durable before it is acknowledged takes its place then.
type Serial = u64;

/// A transaction that has its place in the serial order and whose durability was not announced.
#[derive(Clone, Debug)]
struct Pending {
    serial: Serial,
    core: CoreId,
    id: TxId,
    writes: Vec<(Word, u64)>,
    after: Vec<Serial>,
}

/// The record of every transaction, kept as far back as a crash can still reach.
///
/// A transaction is promised when its design announces its durability. A synchronous design
/// announces it with the acknowledgement, an asynchronous one mostly later, and no earlier than the
/// program asks for the commit ([`crate::design::Below::durable`]). An image is right if it holds
/// what some set of whole transactions left, in serial order, and the set
///
/// - has every transaction whose durability was announced,
/// - has none that did not ask to commit, or was aborted, and
/// - is closed: with a transaction it has the one before on its core, and those whose stores it
///   loaded or stored over.
///
/// A synchronous design leaves little choice: every acknowledged transaction is there, and one
/// whose commit had begun is there whole or not at all.
///
/// An aborted transaction has its place in the order as one that stored nothing, because what comes
/// after it on its core may follow from what it loaded.
pub struct Oracle {
    /// What the promised transactions left.
    expected: Contents,
    open: PerCore<Option<Open>>,
    /// The last transaction of each core that its program asked to end.
    asked: PerCore<Option<TxId>>,
    /// The pending transactions, in serial order.
    pending: VecDeque<Pending>,
    /// The last pending transaction that stored to each word, and what it left there.
    writers: WordMap<(Serial, u64)>,
    /// The pending transactions whose stores a core has loaded or stored over since it last asked
    /// to commit.
    met: PerCore<Vec<Serial>>,
    /// Lines of data whose durable bytes are not the expected ones. Only these lines, those that
    /// pending transactions stored to, and those that the battery or recovery writes can be wrong.
    suspects: FxHashSet<Line>,
    /// Words that were stored to outside of a transaction, of which nothing is promised.
    unpromised: FxHashSet<Word>,
    /// What the candidates stored, if an image was checked since that last changed.
    chains: OnceCell<Chains>,
    log_base: u64,
    asynchronous: bool,
    /// The last promised transactions, and the last aborted ones, for the history of a violation.
    recent: VecDeque<Past>,
    acknowledged: u64,
    /// How many stores were made in transactions; without any there is nothing to judge.
    stores: u64,
    promises: PerCore<Promises>,
}

/// How many transactions of a core stored something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Those that were acknowledged, or announced before that.
    pub acknowledged: u64,
    /// Those of them whose durability was announced.
    pub announced: u64,
}

/// What a power failure left of a core's transactions, of those that stored something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// How many there are in memory.
    pub there: u64,
    /// How many were acknowledged and announced by then.
    pub promises: Promises,
    /// The transaction that was not acknowledged yet, if it had stored something.
    pub open: Option<LeftOpen>,
}

/// A transaction that was under way when the power failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOpen {
    /// How many stores it had made.
    pub stores: u64,
    /// Whether its program had asked for the commit.
    pub committing: bool,
}

/// A transaction that is promised, or that was aborted.
struct Past {
    core: CoreId,
    id: TxId,
    writes: Vec<(Word, u64)>,
    is_aborted: bool,
}

/// How many transactions are remembered for the history of a violation.
const RECENT: usize = 64;

impl Oracle {
    /// The oracle of a machine whose data are what `populated` holds.
    ///
    /// # Errors
    /// When the host has no address space for a copy.
    pub fn new(
        populated: &Contents,
        cores: u8,
        log_base: u64,
        durability: Durability,
    ) -> std::io::Result<Oracle> {
        Ok(Oracle {
            expected: populated.copy()?,
            open: PerCore::new(cores, |_| None),
            asked: PerCore::new(cores, |_| None),
            pending: VecDeque::new(),
            writers: WordMap::default(),
            met: PerCore::new(cores, |_| Vec::new()),
            suspects: FxHashSet::default(),
            unpromised: FxHashSet::default(),
            chains: OnceCell::new(),
            log_base,
            asynchronous: durability == Durability::Asynchronous,
            recent: VecDeque::new(),
            acknowledged: 0,
            stores: 0,
            promises: PerCore::new(cores, |_| Promises::default()),
        })
    }

    /// The number of the machine's cores.
    pub fn cores(&self) -> u8 {
        self.open.cores()
    }

    /// The number of pages that data may be in.
    pub fn pages(&self) -> u64 {
        self.expected.touched_pages(0..self.log_base).len() as u64
    }

    /// What a word holds once every promised transaction is durable.
    pub fn expected(&self, word: Word) -> u64 {
        self.expected.word(word)
    }

    /// Notes that a program began a transaction.
    pub fn begin(&mut self, core: CoreId, id: TxId) {
        let before = self.open[core].replace(Open { id, ..Open::default() });
        debug_assert!(before.is_none_or(|open| !open.committing), "one after the other");
    }

    /// Notes that a program loaded a word.
    #[inline]
    pub fn load(&mut self, core: CoreId, word: Word) {
        if self.asynchronous {
            self.meet(core, word);
        }
    }

    /// Has a core depend on the last transaction that stored to a word.
    fn meet(&mut self, core: CoreId, word: Word) {
        if let Some(&(writer, _)) = self.writers.get(&word)
            && self.met[core].last() != Some(&writer)
        {
            self.met[core].push(writer);
        }
    }

    /// Notes that a program stored the bytes of `value` that `mask` selects, in a transaction. The
    /// rest of the word is what the transaction sees there.
    pub fn store(&mut self, core: CoreId, word: Word, value: u64, mask: u64) {
        self.meet(core, word);
        let Some(open) = &mut self.open[core] else { return };
        let own = if mask == u64::MAX { Some(0) } else { open.left(word) };
        let old = own.unwrap_or_else(|| self.newest(word));
        let new = (old & !mask) | (value & mask);
        let open = self.open[core].as_mut().expect("it is open");
        debug_assert!(!open.committing, "a transaction stores before it commits");
        open.writes.push((word, new));
        self.stores += 1;
    }

    /// Whether anything was promised: without a store in a transaction every image is right.
    pub fn promised_anything(&self) -> bool {
        self.stores > 0
    }

    /// Whether anything was stored to, in a transaction or outside: otherwise every image is as the
    /// data were before.
    pub fn was_stored_to(&self) -> bool {
        self.promised_anything() || !self.unpromised.is_empty()
    }

    /// How many transactions of each core were acknowledged and announced.
    pub fn promises(&self) -> Vec<Promises> {
        self.promises.iter().map(|(_, of)| *of).collect()
    }

    /// What the acknowledged transactions left in a word.
    fn newest(&self, word: Word) -> u64 {
        self.writers.get(&word).map_or_else(|| self.expected.word(word), |&(_, value)| value)
    }

    /// Notes that a program stored to a word outside of a transaction.
    pub fn store_outside(&mut self, core: CoreId, word: Word) {
        if self.asynchronous {
            self.meet(core, word);
        }
        if self.unpromised.insert(word) {
            self.chains.take();
        }
    }

    /// Notes that a program asked for its transaction to be committed: it may be durable from now
    /// on.
    pub fn committing(&mut self, core: CoreId) {
        self.chains.take();
        let before = self.pending.iter().rev().find(|tx| tx.core == core).map(|tx| tx.serial);
        if let Some(open) = &mut self.open[core] {
            open.committing = true;
            self.asked[core] = Some(open.id);
            open.after = std::mem::take(&mut self.met[core]);
            open.after.extend(before);
            open.after.sort_unstable();
            open.after.dedup();
        }
    }

    /// Notes that a program aborts its transaction: what it stored must never be there.
    pub fn aborting(&mut self, core: CoreId) {
        if let Some(open) = &mut self.open[core] {
            let (id, writes) = (open.id, std::mem::take(&mut open.writes));
            self.remember(Past { core, id, writes, is_aborted: true });
        }
        self.committing(core);
    }

    /// Notes that a core's transaction was acknowledged, which gives it its place in the serial
    /// order unless it has one.
    pub fn acknowledge(&mut self, core: CoreId) {
        self.chains.take();
        let Some(Open { id, writes, after, .. }) = self.open[core].take() else { return };
        self.acknowledged += 1;
        self.promises[core].acknowledged += u64::from(!writes.is_empty());
        let serial = self.acknowledged;
        self.writers.extend(writes.iter().map(|&(word, value)| (word, (serial, value))));
        self.pending.push_back(Pending { serial, core, id, writes, after });
    }

    /// Notes that the design announced a transaction as durable: from now on it must be, and so
    /// must what it depends on, whether it was acknowledged or is about to be.
    ///
    /// # Errors
    /// A sentence, if the program has not asked for the transaction to be committed: it may store
    /// more, and nothing is promised.
    pub fn announce(&mut self, core: CoreId, id: TxId, durable: &Contents) -> Result<(), String> {
        self.chains.take();
        if self.asked[core].is_none_or(|asked| asked < id) {
            return Err(format!(
                "announcement: transaction {} of {core} was announced as durable, and its program \
                 has not asked for it to be committed",
                id.0
            ));
        }
        // No other transaction stores to its words until it is acknowledged, so it may take its
        // place now.
        if self.open[core].as_ref().is_some_and(|open| open.id <= id) {
            self.acknowledge(core);
        }
        let mine = |tx: &&Pending| tx.core == core && tx.id <= id;
        let Some(last) = self.pending.iter().rev().find(mine) else { return Ok(()) };
        let mut promised = FxHashSet::from_iter([last.serial]);
        for tx in self.pending.iter().rev() {
            if promised.contains(&tx.serial) {
                promised.extend(&tx.after);
            }
        }
        let all = std::mem::take(&mut self.pending);
        for tx in all {
            if promised.contains(&tx.serial) {
                self.promise(tx, durable);
            } else {
                self.pending.push_back(tx);
            }
        }
        Ok(())
    }

    fn promise(&mut self, tx: Pending, durable: &Contents) {
        self.promises[tx.core].announced += u64::from(!tx.writes.is_empty());
        for &(word, new) in &tx.writes {
            self.expected.set_word(word, new);
            if self.writers.get(&word).is_some_and(|(last, _)| *last == tx.serial) {
                self.writers.remove(&word);
            }
        }
        for &(word, _) in &tx.writes {
            self.compare(word.line(), durable);
        }
        let Pending { core, id, writes, .. } = tx;
        self.remember(Past { core, id, writes, is_aborted: false });
    }

    fn remember(&mut self, past: Past) {
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(past);
    }

    /// Notes that a line has become durable.
    pub fn compare(&mut self, line: Line, durable: &Contents) {
        if line.address() >= self.log_base {
            return;
        }
        if self.expected.line(line) == durable.line(line) {
            self.suspects.remove(&line);
        } else {
            self.suspects.insert(line);
        }
    }

    /// Checks a recovered image, and returns how many transactions of each core that stored
    /// something it holds. Images of which these numbers agree hold the same transactions, since
    /// each transaction depends on the one before on its core.
    ///
    /// # Errors
    /// The word that is wrong, and a sentence that says how.
    pub fn check(&self, image: &Image<'_>) -> Result<Vec<u64>, (Word, String)> {
        let candidates = self.candidates();
        let known = |word| !self.unpromised.contains(&word);
        let chains = self.chains.get_or_init(|| Chains::new(&candidates, known));
        let there = survivors::explain(&candidates, chains, &self.expected, image)
            .map_err(|lost| (lost.word, self.explain_lost(&lost, &candidates)))?;
        if let Some(word) = self.unlike(image, |word| known(word) && !chains.have(word)) {
            let (is, should) = (image.word(word), self.expected.word(word));
            return Err((word, self.explain(word, is, should)));
        }
        let mut held: Vec<u64> = self.promises.iter().map(|(_, of)| of.announced).collect();
        for (tx, there) in candidates.iter().zip(there) {
            held[usize::from(tx.core.0)] += u64::from(there && !tx.writes.is_empty());
        }
        Ok(held)
    }

    /// Returns what an image that holds so many transactions of each core has of what was promised
    /// and of what was under way.
    pub fn left(&self, held: &[u64]) -> Vec<Left> {
        let cores = self.promises.iter().zip(held);
        let left = cores.map(|((core, promises), &there)| {
            let stored = self.open[core].as_ref().filter(|open| !open.writes.is_empty());
            let open = stored.map(|open| LeftOpen {
                stores: open.writes.len() as u64,
                committing: open.committing,
            });
            Left { there, promises: *promises, open }
        });
        left.collect()
    }

    /// Returns the first word of data, among those for which `is_asked`, that an image holds
    /// otherwise than the promised transactions left it.
    pub fn unlike(&self, image: &Image<'_>, is_asked: impl Fn(Word) -> bool) -> Option<Word> {
        let is_data = |line: &Line| line.address() < self.log_base;
        let differs = |line: Line, is: &LineData| is != self.expected.line(line);
        let mut lines: Vec<Line> =
            self.suspects.iter().copied().chain(image.changed_lines().filter(is_data)).collect();
        lines.retain(|&line| differs(line, image.line(line)));
        // The durable bytes of lines that are elsewhere were never compared.
        lines.extend(image.moved_unlike(&self.expected).into_iter().filter(is_data));
        lines.sort_unstable();
        lines.dedup();
        let mut words = lines.into_iter().flat_map(Line::words).filter(|&word| is_asked(word));
        words.find(|&word| image.word(word) != self.expected.word(word))
    }

    /// The transactions that may be there and need not, in serial order. No two of those whose
    /// commit is in flight store to one word.
    fn candidates(&self) -> Vec<Candidate<'_>> {
        let pending = self.pending.iter().map(|tx| Candidate {
            serial: tx.serial,
            core: tx.core,
            id: tx.id,
            writes: &tx.writes,
            after: &tx.after,
        });
        let open = self.open.iter().filter_map(|(core, open)| Some((core, open.as_ref()?)));
        let committing = open.filter(|(_, open)| open.committing).map(|(core, open)| Candidate {
            serial: Serial::MAX,
            core,
            id: open.id,
            writes: &open.writes,
            after: &open.after,
        });
        pending.chain(committing).collect()
    }

    fn explain_lost(&self, lost: &Lost, candidates: &[Candidate<'_>]) -> String {
        let (address, is) = (lost.word.address(), lost.is);
        let Some((there, missing, lacks)) = lost.because else {
            return self.explain(lost.word, is, self.expected.word(lost.word));
        };
        let (tx, first) = (&candidates[there], &candidates[missing]);
        let (core, id) = (tx.core, tx.id.0);
        if there == missing {
            let state = match tx.serial {
                Serial::MAX => "whose commit was in flight",
                _ => "whose durability was not announced",
            };
            return format!(
                "atomicity: of transaction {id} of {core}, {state}, the image holds the store to \
                 {address:#x} and not the one to {:#x}",
                lacks.address()
            );
        }
        format!(
            "order: the image holds {is:#x} at {address:#x}, stored by transaction {id} of {core}, \
             and at {:#x} not what transaction {} of {} stored, which that one depends on",
            lacks.address(),
            first.id.0,
            first.core
        )
    }

    fn explain(&self, word: Word, is: u64, should: u64) -> String {
        let running = self.open.iter().find_map(|(core, open)| {
            let open = open.as_ref()?;
            open.writes.contains(&(word, is)).then_some((core, open.id.0))
        });
        let aborted = self.recent.iter().rev().find_map(|past| {
            let stored = past.is_aborted && past.writes.contains(&(word, is));
            stored.then_some((past.core, past.id.0))
        });
        let address = word.address();
        let stored = running.map(|tx| (tx, "had not committed"));
        match stored.or(aborted.map(|tx| (tx, "was aborted"))) {
            Some(((core, id), what)) => format!(
                "atomicity: the image holds {is:#x} at {address:#x}, stored by transaction {id} of \
                 {core}, which {what}; it should hold {should:#x}"
            ),
            None => format!(
                "durability: the image holds {is:#x} at {address:#x} and should hold {should:#x}, \
                 which {} left",
                if self.asynchronous {
                    "a transaction that was announced as durable"
                } else {
                    "an acknowledged transaction"
                }
            ),
        }
    }

    /// Describes what the transactions that stored to a word did, oldest first.
    pub fn history(&self, word: Word) -> Vec<String> {
        let describe = |core: CoreId, id: TxId, writes: &[(Word, u64)], state: &str| {
            let stores: Vec<String> = writes
                .iter()
                .filter(|(other, _)| other.line() == word.line())
                .map(|(word, new)| format!("[{:#x}] = {new:#x}", word.address()))
                .collect();
            let count = writes.len();
            let stores = stores.join(", ");
            format!("{core} transaction {} ({state}, {count} stores): {stores}", id.0)
        };
        let touches = |writes: &[(Word, u64)]| writes.iter().any(|(other, _)| *other == word);
        let promised = if self.asynchronous { "durable" } else { "acknowledged" };
        let recent = self.recent.iter().filter(|past| touches(&past.writes));
        let state = |past: &Past| if past.is_aborted { "aborted" } else { promised };
        let mut history: Vec<String> =
            recent.map(|past| describe(past.core, past.id, &past.writes, state(past))).collect();
        let pending = self.pending.iter().filter(|tx| touches(&tx.writes));
        history.extend(pending.map(|tx| describe(tx.core, tx.id, &tx.writes, "acknowledged")));
        for (core, open) in self.open.iter() {
            if let Some(open) = open.as_ref().filter(|open| touches(&open.writes)) {
                let state = if open.committing { "committing" } else { "running" };
                history.push(describe(core, open.id, &open.writes, state));
            }
        }
        history
    }
}

#[cfg(test)]
mod tests;
