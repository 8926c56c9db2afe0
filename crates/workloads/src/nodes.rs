//! Nodes of sorted keys, as every kind of B-tree has them. The first word of a node is the number
//! of its keys, and `1 << 32` in a leaf; the keys lie one after the other.

use model::units::WORD_BYTES;
use model::workload::{Pm, Ptr};

use crate::keyed::COMPARE_WORK;

const LEAF: u64 = 1 << 32;

/// A node, and the contents of its first word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub at: Ptr,
    pub keys: u64,
    pub is_leaf: bool,
}

/// The number of keys, and whether it is a leaf, of a node with this first word.
pub(crate) fn decode(head: u64) -> (u64, bool) {
    (head & !LEAF, head & LEAF != 0)
}

impl Node {
    pub fn load(pm: &mut Pm<'_>, at: Ptr) -> Node {
        let (keys, is_leaf) = decode(pm.load(at));
        Node { at, keys, is_leaf }
    }

    pub fn store_head(self, pm: &mut Pm<'_>) {
        pm.store(self.at, self.keys | if self.is_leaf { LEAF } else { 0 });
    }

    /// The first key that is not below `key`, by halving, and whether it is `key`. `first` is where
    /// the node's lowest key is; the others follow, a word each.
    pub fn search(self, pm: &mut Pm<'_>, first: Ptr, key: u64) -> (u64, bool) {
        let (mut low, mut high) = (0, self.keys);
        while low < high {
            pm.work(COMPARE_WORK);
            let middle = (low + high) / 2;
            let here = pm.load(first.plus(middle * WORD_BYTES));
            if here == key {
                return (middle, true);
            }
            if here < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low, false)
    }
}

/// Copies words from one node to another, or to lower addresses of the same.
pub(crate) fn copy(pm: &mut Pm<'_>, from: Ptr, to: Ptr, words: u64) {
    for index in 0..words {
        let word = pm.load(from.plus(index * WORD_BYTES));
        pm.store(to.plus(index * WORD_BYTES), word);
    }
}

/// Moves words up by one place, the last first.
pub(crate) fn shift_up(pm: &mut Pm<'_>, from: Ptr, words: u64) {
    for index in (0..words).rev() {
        let word = pm.load(from.plus(index * WORD_BYTES));
        pm.store(from.plus((index + 1) * WORD_BYTES), word);
    }
}

/// Moves words down by one place, the first first.
pub(crate) fn shift_down(pm: &mut Pm<'_>, from: Ptr, words: u64) {
    let to = Ptr { address: from.address - WORD_BYTES, ..from };
    copy(pm, from, to, words);
}
