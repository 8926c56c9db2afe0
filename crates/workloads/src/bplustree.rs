//! `bplustree`: a B+-tree. Inner nodes hold separators and leaves hold the items, linked from the
//! lowest to the highest. One pass down: full nodes are split before an insert enters them, and
//! nodes with the least number of keys are mended before a delete does.
//!
//! ```text
//! root record, 64 bytes     node of order m, 16 + 16 m bytes
//!   0  root node              0         number of keys, and 1 << 32 in a leaf
//!                             8         next leaf, or 0
//! value, `value` bytes       16         key[0] .. key[m - 1], ascending; an inner node has m - 1
//!                            16 + 8 m   value[0] .. value[m - 1], or child[0] .. child[m - 1]
//! ```
//!
//! A value of 8 bytes is in its leaf; for a longer one the leaf has the address. The keys below
//! `child[i]` are at least `key[i - 1]` and less than `key[i]`.

mod check;

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{About, Pm, Ptr, Step};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, Structure, Toggled, Values, keyed_params};
use crate::nodes::{Node, copy, shift_down, shift_up};
use crate::walk::Walk;

/// The workload, for the registry.
pub type BPlusTree = Toggled<Map>;

const NEXT: u64 = 8;
const KEYS: u64 = 16;

keyed_params! {
    /// Parameters of `bplustree`.
    pub struct BPlusTreeParams {
        /// The most items of a leaf and children of an inner node; an odd number is rounded down to
        /// an even one (ours; 64 to 100 come near the write sets of SSP, MICRO'19 table 3).
        order = 64 in 4..=256;
        /// Whether a delete merges nodes that become less than half full (merge), or leaves them,
        /// even empty (lazy).
        delete: Delete = Merge;
    }
}

model::choices! {
    /// What a delete does with nodes that become less than half full.
    pub enum Delete {
        /// It merges them.
        Merge = "merge",
        /// It leaves them.
        Lazy = "lazy",
    }
}

/// A B+-tree that maps each key to a value of the workload.
#[derive(Clone, Debug)]
pub struct Map {
    tree: Tree,
    values: Values,
}

impl Structure for Map {
    const ABOUT: About = About {
        name: "bplustree",
        summary: "a B+-tree with linked leaves: search a key, delete it if found, else insert it",
        source: "LOC-14, SSP-19, NV-Heaps-11",
        file: file!(),
        shared: false,
    };
    type Params = BPlusTreeParams;

    fn create(
        params: &BPlusTreeParams,
        _items: u64,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Map> {
        let tree = Tree::new(params.order, params.delete == Delete::Merge, pm, heap)?;
        Ok(Map { tree, values: Values::of(params) })
    }

    fn root_record(&self) -> u64 {
        self.tree.root
    }

    fn toggle(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, stamp: u64) -> Step<bool> {
        if let Some(place) = self.tree.find(pm, key) {
            if !self.is_inline() {
                let record = pm.load_ptr(place);
                heap.free(record, self.values.bytes);
            }
            self.tree.delete(pm, heap, key);
            return Ok(false);
        }
        // The word that the leaf keeps for the key: the value, or its address.
        let word = if self.is_inline() {
            stamp
        } else {
            let record = heap.alloc(self.values.bytes)?;
            self.values.store(pm, record, key, stamp);
            record.address
        };
        self.tree.insert(pm, heap, key, word)?;
        Ok(true)
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        let mut items = Vec::new();
        self.tree.check_words(walk, |walk, place, key| {
            let value = if self.is_inline() { place } else { walk.word(place) };
            if !self.is_inline() {
                walk.visit(value, self.values.bytes, "a value")?;
            }
            items.push((key, self.values.check(walk, value, key)?));
            Ok(())
        })?;
        Ok(items)
    }
}

impl Map {
    fn is_inline(&self) -> bool {
        self.values.bytes == WORD_BYTES
    }
}

/// One B+-tree, which keeps a word for each key.
#[derive(Clone, Debug)]
pub struct Tree {
    root: u64,
    order: u64,
    merges: bool,
}

/// The operations for every user of a tree; only [`Map`] deletes.
impl Tree {
    /// Makes an empty tree with leaves of `order` items and inner nodes of `order` children at most
    /// (of an odd number, the even one below), where a delete `merges` nodes that become less than
    /// half full, or leaves them.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(order: u64, merges: bool, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Tree> {
        let root = heap.alloc(LINE_BYTES)?;
        let tree = Tree { root: root.address, order: order / 2 * 2, merges };
        let leaf = tree.new_node(heap, true)?;
        leaf.store_head(pm);
        pm.store_ptr(leaf.at.plus(NEXT), Ptr::NULL);
        pm.store_ptr(root, leaf.at);
        Ok(tree)
    }

    /// Returns where a key's word is until the next insert or delete.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> Option<Ptr> {
        let mut node = self.root_node(pm);
        while !node.is_leaf {
            let index = self.branch(pm, node, key);
            node = self.child_node(pm, node.at, index);
        }
        let (index, found) = self.position(pm, node, key);
        found.then(|| self.slot(node.at, index))
    }
}

/// The layout of nodes.
impl Tree {
    fn half(&self) -> u64 {
        self.order / 2
    }

    /// The most keys of a node.
    fn keys_max(&self, is_leaf: bool) -> u64 {
        if is_leaf { self.order } else { self.order - 1 }
    }

    /// The least keys of a node that is not the root.
    fn keys_min(&self, is_leaf: bool) -> u64 {
        match (self.merges, is_leaf) {
            (true, true) => self.half(),
            (true, false) => self.half() - 1,
            (false, true) => 0,
            (false, false) => 1,
        }
    }

    fn node_bytes(&self) -> u64 {
        KEYS + 2 * self.order * WORD_BYTES
    }

    fn key(node: Ptr, index: u64) -> Ptr {
        node.plus(KEYS + index * WORD_BYTES)
    }

    /// The place of a key's word in a leaf, or of a child in an inner node.
    fn slot(&self, node: Ptr, index: u64) -> Ptr {
        node.plus(KEYS + (self.order + index) * WORD_BYTES)
    }

    fn root_node(&self, pm: &mut Pm<'_>) -> Node {
        let root = pm.load_ptr(Ptr::to(self.root));
        Node::load(pm, root)
    }

    fn child_node(&self, pm: &mut Pm<'_>, node: Ptr, index: u64) -> Node {
        let child = pm.load_ptr(self.slot(node, index));
        Node::load(pm, child)
    }

    fn new_node(&self, heap: &mut Heap, is_leaf: bool) -> Step<Node> {
        Ok(Node { at: heap.alloc(self.node_bytes())?, keys: 0, is_leaf })
    }

    /// The first key that is not below `key`, and whether it is `key`.
    fn position(&self, pm: &mut Pm<'_>, node: Node, key: u64) -> (u64, bool) {
        node.search(pm, Tree::key(node.at, 0), key)
    }

    /// The child of an inner node below which a key belongs.
    fn branch(&self, pm: &mut Pm<'_>, node: Node, key: u64) -> u64 {
        let (index, found) = self.position(pm, node, key);
        index + u64::from(found)
    }
}

/// Insert.
impl Tree {
    fn is_full(&self, node: Node) -> bool {
        node.keys == self.keys_max(node.is_leaf)
    }

    /// Inserts a key that is not there, with its word.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn insert(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, word: u64) -> Step {
        let mut node = self.root_node(pm);
        if self.is_full(node) {
            let mut above = self.new_node(heap, false)?;
            pm.store_ptr(self.slot(above.at, 0), node.at);
            self.split(pm, heap, &mut above, 0, node)?;
            pm.store_ptr(Ptr::to(self.root), above.at);
            node = above;
        }
        while !node.is_leaf {
            let mut index = self.branch(pm, node, key);
            let mut child = self.child_node(pm, node.at, index);
            if self.is_full(child) {
                self.split(pm, heap, &mut node, index, child)?;
                pm.work(COMPARE_WORK);
                index += u64::from(key >= pm.load(Tree::key(node.at, index)));
                child = self.child_node(pm, node.at, index);
            }
            node = child;
        }
        let (index, _) = self.position(pm, node, key);
        self.open_gap(pm, &mut node, index);
        pm.store(Tree::key(node.at, index), key);
        pm.store(self.slot(node.at, index), word);
        Ok(())
    }

    /// Splits the full `child`, the `index`th of `node`: a leaf's upper half moves to a new leaf,
    /// and an inner node's middle key moves up.
    fn split(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        node: &mut Node,
        index: u64,
        child: Node,
    ) -> Step {
        let half = self.half();
        let mut right = self.new_node(heap, child.is_leaf)?;
        right.keys = child.keys - half;
        copy(pm, Tree::key(child.at, half), Tree::key(right.at, 0), right.keys);
        copy(pm, self.slot(child.at, half), self.slot(right.at, 0), self.order - half);
        let (left_keys, separator) = if child.is_leaf {
            let next = pm.load_ptr(child.at.plus(NEXT));
            pm.store_ptr(right.at.plus(NEXT), next);
            pm.store_ptr(child.at.plus(NEXT), right.at);
            (half, pm.load(Tree::key(right.at, 0)))
        } else {
            (half - 1, pm.load(Tree::key(child.at, half - 1)))
        };
        right.store_head(pm);
        Node { keys: left_keys, ..child }.store_head(pm);
        shift_up(pm, Tree::key(node.at, index), node.keys - index);
        shift_up(pm, self.slot(node.at, index + 1), node.keys - index);
        pm.store(Tree::key(node.at, index), separator);
        pm.store_ptr(self.slot(node.at, index + 1), right.at);
        node.keys += 1;
        node.store_head(pm);
        Ok(())
    }

    /// Makes room for one item of a leaf at `index`.
    fn open_gap(&self, pm: &mut Pm<'_>, leaf: &mut Node, index: u64) {
        shift_up(pm, Tree::key(leaf.at, index), leaf.keys - index);
        shift_up(pm, self.slot(leaf.at, index), leaf.keys - index);
        leaf.keys += 1;
        leaf.store_head(pm);
    }
}

/// Delete.
impl Tree {
    /// Deletes a key that is there. A separator with the same value may stay.
    fn delete(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) {
        let mut node = self.root_node(pm);
        while !node.is_leaf {
            let index = self.branch(pm, node, key);
            node = if self.merges {
                self.strengthen(pm, heap, &mut node, index)
            } else {
                self.child_node(pm, node.at, index)
            };
        }
        let (index, found) = self.position(pm, node, key);
        assert!(found, "key {key} was found and is not in its leaf");
        self.close_gap(pm, &mut node, index);
    }

    /// Makes sure that the `index`th child has a key more than the least number, by taking one from
    /// a sibling or by merging the two. Returns the child.
    fn strengthen(&self, pm: &mut Pm<'_>, heap: &mut Heap, node: &mut Node, index: u64) -> Node {
        let child = self.child_node(pm, node.at, index);
        let spares = |sibling: Node| sibling.keys > self.keys_min(sibling.is_leaf);
        if spares(child) {
            return child;
        }
        if index > 0 {
            let left = self.child_node(pm, node.at, index - 1);
            if spares(left) {
                return self.borrow_from_left(pm, Tree::key(node.at, index - 1), left, child);
            }
        }
        if index < node.keys {
            let right = self.child_node(pm, node.at, index + 1);
            if spares(right) {
                return self.borrow_from_right(pm, Tree::key(node.at, index), child, right);
            }
        }
        self.merge(pm, heap, node, index.min(node.keys - 1))
    }

    fn borrow_from_left(
        &self,
        pm: &mut Pm<'_>,
        separator: Ptr,
        mut left: Node,
        mut child: Node,
    ) -> Node {
        let last = left.keys - 1;
        if child.is_leaf {
            self.open_gap(pm, &mut child, 0);
            copy(pm, Tree::key(left.at, last), Tree::key(child.at, 0), 1);
            copy(pm, self.slot(left.at, last), self.slot(child.at, 0), 1);
        } else {
            shift_up(pm, Tree::key(child.at, 0), child.keys);
            shift_up(pm, self.slot(child.at, 0), child.keys + 1);
            copy(pm, separator, Tree::key(child.at, 0), 1);
            copy(pm, self.slot(left.at, last + 1), self.slot(child.at, 0), 1);
            child.keys += 1;
            child.store_head(pm);
        }
        // In a leaf it is now the child's first key; in an inner node it is the key that moves up.
        copy(pm, Tree::key(left.at, last), separator, 1);
        left.keys -= 1;
        left.store_head(pm);
        child
    }

    fn borrow_from_right(
        &self,
        pm: &mut Pm<'_>,
        separator: Ptr,
        mut child: Node,
        mut right: Node,
    ) -> Node {
        if child.is_leaf {
            copy(pm, Tree::key(right.at, 0), Tree::key(child.at, child.keys), 1);
            copy(pm, self.slot(right.at, 0), self.slot(child.at, child.keys), 1);
            self.close_gap(pm, &mut right, 0);
            copy(pm, Tree::key(right.at, 0), separator, 1);
        } else {
            copy(pm, separator, Tree::key(child.at, child.keys), 1);
            copy(pm, self.slot(right.at, 0), self.slot(child.at, child.keys + 1), 1);
            copy(pm, Tree::key(right.at, 0), separator, 1);
            shift_down(pm, Tree::key(right.at, 1), right.keys - 1);
            shift_down(pm, self.slot(right.at, 1), right.keys);
            right.keys -= 1;
            right.store_head(pm);
        }
        child.keys += 1;
        child.store_head(pm);
        child
    }

    /// Merges the children before and after the separator at `index`. Returns the merged child,
    /// which is the new root if the old one has lost its last separator.
    fn merge(&self, pm: &mut Pm<'_>, heap: &mut Heap, node: &mut Node, index: u64) -> Node {
        let mut left = self.child_node(pm, node.at, index);
        let right = self.child_node(pm, node.at, index + 1);
        if left.is_leaf {
            copy(pm, self.slot(right.at, 0), self.slot(left.at, left.keys), right.keys);
            let next = pm.load_ptr(right.at.plus(NEXT));
            pm.store_ptr(left.at.plus(NEXT), next);
        } else {
            copy(pm, Tree::key(node.at, index), Tree::key(left.at, left.keys), 1);
            left.keys += 1;
            copy(pm, self.slot(right.at, 0), self.slot(left.at, left.keys), right.keys + 1);
        }
        copy(pm, Tree::key(right.at, 0), Tree::key(left.at, left.keys), right.keys);
        left.keys += right.keys;
        left.store_head(pm);
        if node.keys == 1 {
            // Only a root may have had a single separator here.
            pm.store_ptr(Ptr::to(self.root), left.at);
            heap.free(node.at, self.node_bytes());
        } else {
            shift_down(pm, Tree::key(node.at, index + 1), node.keys - index - 1);
            shift_down(pm, self.slot(node.at, index + 2), node.keys - index - 1);
            node.keys -= 1;
            node.store_head(pm);
        }
        heap.free(right.at, self.node_bytes());
        left
    }

    /// Removes the item of a leaf at `index`.
    fn close_gap(&self, pm: &mut Pm<'_>, leaf: &mut Node, index: u64) {
        shift_down(pm, Tree::key(leaf.at, index + 1), leaf.keys - index - 1);
        shift_down(pm, self.slot(leaf.at, index + 1), leaf.keys - index - 1);
        leaf.keys -= 1;
        leaf.store_head(pm);
    }
}
