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
    /// It stays out of line, so that stores on a simulated core are in line.
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
/// list that a runtime keeps in volatile memory. Of other transactions nothing is kept.
#[derive(Debug, Default)]
pub struct Overwritten {
    is_kept: bool,
    words: Vec<(Word, u64)>,
}

impl Overwritten {
    /// A transaction begins.
    pub fn begin(&mut self, abortable: bool) {
        self.is_kept = abortable;
        self.words.clear();
    }

    /// The transaction ends.
    pub fn end(&mut self) {
        self.begin(false);
    }

    /// A transaction is about to store to a word, and can find out what it holds.
    #[inline]
    pub fn keep(&mut self, word: Word, old: impl FnOnce() -> u64) {
        if self.is_kept {
            self.words.push((word, old()));
        }
    }

    /// The transaction is aborted: what it stored over.
    ///
    /// # Panics
    /// If it is not abortable: nobody knows what it stored over.
    pub fn take(&mut self) -> Vec<(Word, u64)> {
        assert!(self.is_kept, "who aborts a transaction has begun it with `begin_abortable`");
        self.is_kept = false;
        std::mem::take(&mut self.words)
    }

    /// The transaction is aborted on plain memory, where the old values are simply put back.
    pub fn revert(&mut self, view: &mut View) {
        for (word, old) in self.take().into_iter().rev() {
            view.set_word(word, old);
        }
    }
}
