//! A table: rows of one size, found by a key. Its index is a hash table, a B-tree or a B+-tree, the
//! structures of the workloads `hash`, `btree` and `bplustree`, or it has none and is an array.
//!
//! In a hash table a row is a node's value, so it lies in the lines of its node; beside a B-tree or
//! a B+-tree it is a block of its own, whatever its size, and stays where it is. Nothing is deleted
//! from a table, but in an array a row may take the place of an older one.

use model::units::WORD_BYTES;
use model::workload::{Pm, Ptr, Step};

use crate::hash::{Table as Chains, VALUE};
use crate::heap::Heap;
use crate::keyed::Values;
use crate::slots::Slots;
use crate::walk::Walk;
use crate::{bplustree, btree};

model::choices! {
    /// The index of a table.
    pub enum Index { Hash = "hash", BTree = "btree", BPlusTree = "bplustree", Array = "array" }
}

/// The kind of a table's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A hash table with a bucket for each expected row, rounded up to a power of two.
    Hash,
    /// A B-tree.
    BTree {
        /// The most children of a node.
        order: u64,
    },
    /// A B+-tree.
    BPlusTree {
        /// The most items of a leaf and children of an inner node.
        order: u64,
    },
    /// No index: an array with a slot for each expected row.
    Array,
}

impl Kind {
    /// The kind that an index is, with trees of an order.
    pub fn of(index: Index, order: u64) -> Kind {
        match index {
            Index::Hash => Kind::Hash,
            Index::BTree => Kind::BTree { order },
            Index::BPlusTree => Kind::BPlusTree { order },
            Index::Array => Kind::Array,
        }
    }
}

/// One table.
#[derive(Clone, Debug)]
pub enum Table {
    /// Found by hashing.
    Hash(Chains),
    /// Found by descending.
    BTree(btree::Tree),
    /// Found by descending to a leaf, which has the row's address.
    BPlusTree {
        /// The index.
        tree: bplustree::Tree,
        /// Bytes of a row.
        row_bytes: u64,
    },
    /// Found by the number of its slot.
    Array(Slots),
}

impl Table {
    /// Makes an empty table for about `rows` rows of `bytes` bytes.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(kind: Kind, rows: u64, bytes: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Table> {
        let values = Values::distinct(bytes);
        Ok(match kind {
            Kind::Hash => {
                let buckets = rows.next_power_of_two();
                Table::Hash(Chains::new(buckets, WORD_BYTES, values, pm, heap)?)
            }
            Kind::BTree { order } => Table::BTree(btree::Tree::new(order, values, pm, heap)?),
            // No row is ever deleted, so no node has to be merged.
            Kind::BPlusTree { order } => {
                let tree = bplustree::Tree::new(order, true, pm, heap)?;
                Table::BPlusTree { tree, row_bytes: bytes }
            }
            Kind::Array => Table::Array(Slots::new(rows, bytes, pm, heap)?),
        })
    }

    /// The row of a key.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> Option<Ptr> {
        match self {
            Table::Hash(chains) => {
                let (_, node) = chains.find(pm, key);
                (!node.is_null()).then(|| node.plus(VALUE))
            }
            Table::BTree(tree) => tree.find(pm, key),
            Table::BPlusTree { tree, .. } => {
                let place = tree.find(pm, key)?;
                Some(pm.load_ptr(place))
            }
            Table::Array(slots) => slots.find(pm, key),
        }
    }

    /// Inserts a key that is not there and returns its row, for the caller to fill.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn insert(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) -> Step<Ptr> {
        match self {
            Table::Hash(chains) => Ok(chains.insert(pm, heap, key)?.plus(VALUE)),
            Table::BTree(tree) => {
                let row = heap.alloc(tree.value_bytes())?;
                tree.insert(pm, heap, key, row)?;
                Ok(row)
            }
            Table::BPlusTree { tree, row_bytes } => {
                let row = heap.alloc(*row_bytes)?;
                tree.insert(pm, heap, key, row.address)?;
                Ok(row)
            }
            Table::Array(slots) => Ok(slots.insert(pm, key)),
        }
    }

    /// Returns the number of a key's group. In a table without inserts whose blocks are alone in
    /// their lines, finding a row touches no line of rows in other groups.
    pub fn group_of(&self, key: u64) -> u64 {
        match self {
            Table::Hash(chains) => chains.bucket_of(key),
            Table::BTree(_) | Table::BPlusTree { .. } | Table::Array(_) => key,
        }
    }

    /// Returns how many rows it keeps, if rows of newer keys replace older ones.
    pub fn keeps(&self) -> Option<u64> {
        match self {
            Table::Hash(_) | Table::BTree(_) | Table::BPlusTree { .. } => None,
            Table::Array(slots) => Some(slots.count()),
        }
    }

    /// Checks the index and hands each row, visited, and its key to `inspect`.
    ///
    /// # Errors
    /// What is wrong with the index, or what `inspect` says.
    pub fn check(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        match self {
            Table::Hash(chains) => {
                chains.check_chains(walk, |walk, node, key| inspect(walk, node + VALUE, key))
            }
            Table::BTree(tree) => tree.check_values(walk, inspect),
            Table::BPlusTree { tree, row_bytes } => tree.check_words(walk, |walk, place, key| {
                let row = walk.word(place);
                walk.visit(row, *row_bytes, "a row")?;
                inspect(walk, row, key)
            }),
            Table::Array(slots) => slots.check(walk, inspect),
        }
    }
}
