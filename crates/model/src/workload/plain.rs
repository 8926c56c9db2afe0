//! Memory without a machine, and what an abort puts back there.

use super::Ptr;
use crate::contents::View;
use crate::units::{DRAM_BASE, Word};

/// Plain memory, and what an abort puts back there.
pub struct Plain<'a> {
    pub view: &'a mut View,
    pub overwritten: Overwritten,
}

impl Plain<'_> {
    /// Stores the bytes that `mask` selects. Stays out of line, so that stores on a simulated core
    /// are inlined.
    #[inline(never)]
    pub fn store(&mut self, at: Ptr, value: u64, mask: u64) {
        let word = Word::of(at.address);
        if at.address < DRAM_BASE {
            self.overwritten.keep(word, || self.view.word(word));
        }
        self.view.merge_word(word, value, mask);
    }
}

/// The words that an abortable transaction has stored over, oldest first, and what they held: the
/// list that a runtime keeps in volatile memory. For other transactions nothing is kept.
#[derive(Debug, Default)]
pub struct Overwritten {
    is_kept: bool,
    words: Vec<(Word, u64)>,
}

impl Overwritten {
    /// Notes that a transaction begins.
    pub fn begin(&mut self, abortable: bool) {
        self.is_kept = abortable;
        self.words.clear();
    }

    /// Notes that the transaction ends.
    pub fn end(&mut self) {
        self.begin(false);
    }

    /// Notes that a transaction is about to store to a word; `old` returns what the word holds.
    #[inline]
    pub fn keep(&mut self, word: Word, old: impl FnOnce() -> u64) {
        if self.is_kept {
            self.words.push((word, old()));
        }
    }

    /// Returns what the transaction, which is aborted, stored over.
    ///
    /// # Panics
    /// If the transaction is not abortable: what it stored over was not kept.
    pub fn take(&mut self) -> Vec<(Word, u64)> {
        assert!(self.is_kept, "the transaction was begun with `begin_abortable`");
        self.is_kept = false;
        std::mem::take(&mut self.words)
    }

    /// Puts the old values back when the transaction is aborted on plain memory.
    pub fn revert(&mut self, view: &mut View) {
        for (word, old) in self.take().into_iter().rev() {
            view.set_word(word, old);
        }
    }
}
