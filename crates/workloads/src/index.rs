//! A table: rows of one size, found by a key. Its index is a hash table or a B-tree, the structures
//! of the workloads of these names, or it has none and is an array.
//!
//! In a hash table a row is a node's value, so it lies in the lines of its node; beside a B-tree it
//! is a block of its own. Nothing is deleted from a table, but in an array a row may take the place
//! of an older one.

use model::units::WORD_BYTES;
use model::workload::{Pm, Ptr, Step};

use crate::btree::Tree;
use crate::hash::{Table as Chains, VALUE};
use crate::heap::Heap;
use crate::keyed::Values;
use crate::slots::Slots;
use crate::walk::Walk;

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
    /// No index: an array with a slot for each expected row.
    Array,
}

impl Kind {
    /// The names, as on the command line.
    pub const NAMES: [&'static str; 3] = ["hash", "btree", "array"];

    /// The kind that a parameter's value means.
    pub fn of(choice: u64, order: u64) -> Kind {
        match choice {
            0 => Kind::Hash,
            1 => Kind::BTree { order },
            _ => Kind::Array,
        }
    }
}

/// One table.
#[derive(Clone, Debug)]
pub enum Table {
    /// Found by hashing.
    Hash(Chains),
    /// Found by descending.
    BTree(Tree),
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
            Kind::BTree { order } => Table::BTree(Tree::new(order, values, pm, heap)?),
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
            Table::Array(slots) => Ok(slots.insert(pm, key)),
        }
    }

    /// Returns the number of a key's group. In a table without inserts whose blocks are alone in
    /// their lines, finding a row touches no line of rows in other groups.
    pub fn group_of(&self, key: u64) -> u64 {
        match self {
            Table::Hash(chains) => chains.bucket_of(key),
            Table::BTree(_) | Table::Array(_) => key,
        }
    }

    /// Returns how many rows it keeps, if rows of newer keys replace older ones.
    pub fn keeps(&self) -> Option<u64> {
        match self {
            Table::Hash(_) | Table::BTree(_) => None,
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
            Table::Array(slots) => slots.check(walk, inspect),
        }
    }
}
