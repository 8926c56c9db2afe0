//! The store queue of a core.

use std::collections::VecDeque;

use crate::sieve::Sieve;
use crate::units::Word;

/// The newest stores of a core, in program order: those still in its store queue, and some that
/// have left since.
#[derive(Clone, Debug, Default)]
pub(super) struct StoreQueue {
    entries: VecDeque<Queued>,
    /// The words of the entries. Most loads are of none of them.
    words: Sieve,
}

/// An entry: when it leaves, and the bits of a word that it stores, none if it is no store to the
/// caches.
#[derive(Clone, Copy, Debug)]
struct Queued {
    leaves: u64,
    word: Word,
    mask: u64,
}

impl StoreQueue {
    /// Returns the number of entries.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds a store of bits of a word, which leaves at `leaves`.
    #[inline]
    pub fn push(&mut self, leaves: u64, word: Word, mask: u64) {
        self.words.add(word.0);
        self.entries.push_back(Queued { leaves, word, mask });
    }

    /// Adds what takes a place until `leaves` and has nothing for loads.
    pub fn push_other(&mut self, leaves: u64) {
        self.push(leaves, Word(0), 0);
    }

    /// Has the newest entry leave at `leaves`.
    pub fn delay_newest(&mut self, leaves: u64) {
        self.entries.back_mut().expect("a store has dispatched").leaves = leaves;
    }

    /// Removes the oldest entry, and returns when it leaves.
    pub fn pop(&mut self) -> Option<u64> {
        let oldest = self.entries.pop_front()?;
        self.words.remove(oldest.word.0);
        Some(oldest.leaves)
    }

    /// Removes the oldest entries that have left by `at`.
    pub fn forget(&mut self, at: u64) {
        while self.entries.front().is_some_and(|oldest| oldest.leaves <= at) {
            self.pop();
        }
    }

    /// Whether a load at `start` gets its word from here: the newest store of any part of the word
    /// has not left and has all of it. What a store lacks, the load has to wait for.
    pub fn forwards(&self, word: Word, start: u64) -> bool {
        if !self.words.may_hold(word.0) {
            return false;
        }
        let mut newest = self.entries.iter().rev();
        let newest = newest.find(|entry| entry.word == word && entry.mask != 0);
        newest.is_some_and(|entry| entry.leaves > start && entry.mask == u64::MAX)
    }
}
