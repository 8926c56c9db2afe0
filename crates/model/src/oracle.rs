//! What a recovered image may hold: the exact answer, from what the programs did.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::contents::Contents;
use crate::image::Image;
use crate::units::{CoreId, Cycle, Line, PerCore, TxId, Word};

/// Something that a recovered image holds and must not, or lacks and must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The point of the campaign at which the power failed, from 1.
    pub point: u64,
    /// When the power failed.
    pub at: Cycle,
    /// At which of its writes recovery was interrupted, if it was.
    pub nested: Option<u64>,
    /// What is wrong, in a sentence.
    pub text: String,
    /// What the transactions that touched the word did, oldest first.
    pub history: Vec<String>,
}

/// A transaction as its program made it.
#[derive(Clone, Debug, Default)]
struct Open {
    id: TxId,
    writes: Vec<(Word, u64)>,
    committing: bool,
}

/// The record of every transaction, kept as far back as a crash can still reach: the state that
/// the acknowledged ones left, in serial order, and the ones that are not acknowledged.
///
/// For a synchronous design an image is right if every acknowledged transaction is there, no other
/// is there in part, and one whose commit had begun is there whole or not at all.
pub struct Oracle {
    expected: Contents,
    open: PerCore<Option<Open>>,
    /// Lines of data whose durable bytes are not the expected ones; only these, and those that the
    /// battery or recovery writes, can be wrong.
    suspects: FxHashSet<Line>,
    /// Words that were stored to outside of a transaction: nothing is promised of them.
    unpromised: FxHashSet<Word>,
    log_base: u64,
    /// The last transactions, acknowledged or not, for the history of a violation.
    recent: VecDeque<Past>,
    acknowledged: u64,
}

/// A transaction that was acknowledged: its core, its number, and its stores.
type Past = (CoreId, TxId, Vec<(Word, u64)>);

/// Transactions that are remembered for the history of a violation.
const RECENT: usize = 64;

impl Oracle {
    /// The oracle of a machine whose data are what `populated` holds.
    ///
    /// # Errors
    /// When the host has no address space for a copy.
    pub fn new(populated: &Contents, cores: u8, log_base: u64) -> std::io::Result<Oracle> {
        let mut expected = Contents::new(0, populated.capacity())?;
        expected.copy_from(populated);
        Ok(Oracle {
            expected,
            open: PerCore::new(cores, |_| None),
            suspects: FxHashSet::default(),
            unpromised: FxHashSet::default(),
            log_base,
            recent: VecDeque::new(),
            acknowledged: 0,
        })
    }

    /// How many transactions were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// What a word holds once every acknowledged transaction is durable.
    pub fn expected(&self, word: Word) -> u64 {
        self.expected.word(word)
    }

    /// A program began a transaction.
    pub fn begin(&mut self, core: CoreId, id: TxId) {
        self.open[core] = Some(Open { id, ..Open::default() });
    }

    /// A program stored the bytes of `value` that `mask` selects, in a transaction. The rest of
    /// the word is what the transaction sees there.
    pub fn store(&mut self, core: CoreId, word: Word, value: u64, mask: u64) {
        let Some(open) = &mut self.open[core] else { return };
        let own = || open.writes.iter().rev().find(|(other, _)| *other == word);
        let old = match mask {
            u64::MAX => 0,
            _ => own().map_or_else(|| self.expected.word(word), |&(_, value)| value),
        };
        open.writes.push((word, (old & !mask) | (value & mask)));
    }

    /// A program stored outside of a transaction.
    pub fn store_outside(&mut self, word: Word) {
        self.unpromised.insert(word);
    }

    /// A program asked for its transaction to be committed: it may be durable from now on.
    pub fn committing(&mut self, core: CoreId) {
        if let Some(open) = &mut self.open[core] {
            open.committing = true;
        }
    }

    /// A transaction was acknowledged: it must be durable from now on.
    pub fn acknowledge(&mut self, core: CoreId, durable: &Contents) {
        let Some(open) = self.open[core].take() else { return };
        self.acknowledged += 1;
        for &(word, new) in &open.writes {
            self.expected.set_word(word, new);
        }
        for &(word, _) in &open.writes {
            self.compare(word.line(), durable);
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((core, open.id, open.writes));
    }

    /// A line has become durable.
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

    /// Checks an image of which recovery is done.
    ///
    /// # Errors
    /// The word that is wrong, and a sentence that says how.
    pub fn check(&self, image: &Image<'_>) -> Result<(), (Word, String)> {
        let mut in_doubt = FxHashMap::default();
        for (core, open) in self.open.iter() {
            let Some(open) = open.as_ref().filter(|open| open.committing) else { continue };
            self.check_whole(core, open, image)?;
            in_doubt.extend(open.writes.iter().copied());
        }
        let changed = image.changed_lines().filter(|line| line.address() < self.log_base);
        let mut lines: Vec<Line> = self.suspects.iter().copied().chain(changed).collect();
        lines.sort_unstable();
        lines.dedup();
        for line in lines {
            for place in 0..8 {
                let word = Word(line.first_word().0 + place);
                let (is, should) = (image.word(word), self.expected.word(word));
                let wrong = is != should && in_doubt.get(&word) != Some(&is);
                if wrong && !self.unpromised.contains(&word) {
                    return Err((word, self.explain(word, is, should)));
                }
            }
        }
        Ok(())
    }

    /// A transaction whose commit had begun is there whole or not at all.
    fn check_whole(
        &self,
        core: CoreId,
        open: &Open,
        image: &Image<'_>,
    ) -> Result<(), (Word, String)> {
        let last: FxHashMap<Word, u64> = open.writes.iter().copied().collect();
        let mut words: Vec<(Word, u64)> = last.into_iter().collect();
        words.sort_unstable();
        let mut seen: Option<(bool, Word)> = None;
        for (word, new) in words {
            let (is, old) = (image.word(word), self.expected.word(word));
            if old == new || self.unpromised.contains(&word) {
                continue;
            }
            let there = is == new;
            if !there && is != old {
                return Err((word, self.explain(word, is, old)));
            }
            match seen {
                Some((other, first)) if other != there => {
                    let (has, lacks) = if there { (word, first) } else { (first, word) };
                    let tx = open.id.0;
                    let text = format!(
                        "atomicity: of transaction {tx} of {core}, whose commit was in flight, \
                         the image holds the store to {:#x} and not the one to {:#x}",
                        has.address(),
                        lacks.address()
                    );
                    return Err((word, text));
                }
                _ => seen = Some((there, word)),
            }
        }
        Ok(())
    }

    fn explain(&self, word: Word, is: u64, should: u64) -> String {
        let running = self.open.iter().find_map(|(core, open)| {
            let open = open.as_ref()?;
            open.writes.contains(&(word, is)).then_some((core, open.id.0))
        });
        let address = word.address();
        match running {
            Some((core, id)) => format!(
                "atomicity: the image holds {is:#x} at {address:#x}, stored by transaction {id} of \
                 {core}, which had not committed; it should hold {should:#x}"
            ),
            None => format!(
                "durability: the image holds {is:#x} at {address:#x} and should hold {should:#x}, \
                 which an acknowledged transaction left"
            ),
        }
    }

    /// What the transactions that touched a word did, oldest first.
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
        let mut history: Vec<String> = self
            .recent
            .iter()
            .filter(|(.., writes)| touches(writes))
            .map(|(core, id, writes)| describe(*core, *id, writes, "acknowledged"))
            .collect();
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
mod tests {
    use super::*;

    const A: CoreId = CoreId(0);

    /// An oracle that saw one transaction store 1 to words 1 and 9, and the image after `stores`.
    fn verdict(committing: bool, acknowledged: bool, stores: &[(u64, u64)]) -> Option<String> {
        let zeros = Contents::new(0, 4096).expect("room");
        let mut durable = Contents::new(0, 4096).expect("room");
        let mut oracle = Oracle::new(&zeros, 1, 2048).expect("room");
        oracle.begin(A, TxId(1));
        oracle.store(A, Word(1), 1, u64::MAX);
        oracle.store(A, Word(9), 1, u64::MAX);
        if committing {
            oracle.committing(A);
        }
        if acknowledged {
            oracle.acknowledge(A, &durable);
        }
        for &(word, value) in stores {
            durable.set_word(Word(word), value);
            oracle.compare(Word(word).line(), &durable);
        }
        oracle.check(&Image::over(&durable)).err().map(|(_, text)| text)
    }

    #[test]
    fn a_running_transaction_is_not_there() {
        assert_eq!(verdict(false, false, &[]), None);
        assert!(verdict(false, false, &[(1, 1)]).expect("in part").starts_with("atomicity"));
        assert!(verdict(false, false, &[(1, 1), (9, 1)]).is_some());
    }

    #[test]
    fn a_transaction_in_flight_is_there_whole_or_not_at_all() {
        assert_eq!(verdict(true, false, &[]), None);
        assert_eq!(verdict(true, false, &[(1, 1), (9, 1)]), None);
        assert!(verdict(true, false, &[(9, 1)]).expect("in part").starts_with("atomicity"));
        assert!(verdict(true, false, &[(9, 2)]).is_some());
    }

    #[test]
    fn an_acknowledged_transaction_is_there() {
        assert_eq!(verdict(true, true, &[(1, 1), (9, 1)]), None);
        assert!(verdict(true, true, &[(1, 1)]).expect("lost").starts_with("durability"));
        assert!(verdict(true, true, &[]).is_some());
    }

    #[test]
    fn a_word_that_nobody_stored_to_stays() {
        assert!(verdict(true, true, &[(1, 1), (9, 1), (20, 5)]).is_some());
        assert_eq!(verdict(true, true, &[(1, 1), (9, 1), (300, 5)]), None, "logs are not data");
    }
}
