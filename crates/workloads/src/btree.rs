//! `btree`: a B-tree with values outside its nodes (Cormen, Leiserson, Rivest, Stein, chapter 18:
//! one pass down, splitting full nodes before an insert enters them, and borrowing or merging
//! before a delete does).
//!
//! ```text
//! root record, 64 bytes     node of order m, 24 m bytes; for m = 8 three lines:
//!   0  root node              0            number of keys, and 1 << 32 in a leaf
//!                             8            key[0] .. key[m - 2], ascending
//! value, `value` bytes        8 m          address of value[0] .. value[m - 2]
//!                            16 m          child[0] .. child[m - 1]
//! ```

mod check;

use model::units::{LINE_BYTES, WORD_BYTES};
use model::workload::{About, Pm, Ptr, Step};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, Structure, Toggled, Values, keyed_params};
use crate::nodes::{Node, copy, shift_down, shift_up};
use crate::walk::Walk;

/// The workload, for the registry.
pub type BTree = Toggled<Tree>;

keyed_params! {
    /// Parameters of `btree`.
    pub struct BTreeParams {
        /// The most children of a node; an odd number is rounded down to an even one (PMDK's
        /// btree_map: 8; 64 to 100 come near the write sets of SSP, MICRO'19 table 3).
        order = 8 in 4..=128;
    }
}

/// One B-tree.
#[derive(Clone, Debug)]
pub struct Tree {
    root: u64,
    order: u64,
    values: Values,
}

impl Structure for Tree {
    const ABOUT: About = About {
        name: "btree",
        summary: "a B-tree: search a key, delete it if found, else insert it",
        source: "NV-Heaps-11 and after; the algorithms of CLRS",
        file: file!(),
        shared: false,
    };
    type Params = BTreeParams;

    fn create(params: &BTreeParams, _items: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Tree> {
        Tree::new(params.order, Values::of(params), pm, heap)
    }

    fn root_record(&self) -> u64 {
        self.root
    }

    fn toggle(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, stamp: u64) -> Step<bool> {
        match self.find(pm, key) {
            Some(value) => {
                self.delete(pm, heap, key);
                heap.free(value, self.values.bytes);
                Ok(false)
            }
            None => {
                let value = heap.alloc(self.values.bytes)?;
                self.values.store(pm, value, key, stamp);
                self.insert(pm, heap, key, value)?;
                Ok(true)
            }
        }
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        let mut items = Vec::new();
        self.check_values(walk, |walk, value, key| {
            items.push((key, self.values.check(walk, value, key)?));
            Ok(())
        })?;
        Ok(items)
    }
}

/// The operations for every user of a tree; only [`Structure`] deletes.
impl Tree {
    /// Makes an empty tree with nodes of `order` children.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(order: u64, values: Values, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Tree> {
        let root = heap.alloc(LINE_BYTES)?;
        let tree = Tree { root: root.address, order: order / 2 * 2, values };
        let leaf = tree.new_node(heap, true)?;
        leaf.store_head(pm);
        pm.store_ptr(root, leaf.at);
        Ok(tree)
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> u64 {
        self.values.bytes
    }

    /// The value of a key.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> Option<Ptr> {
        let mut node = self.root_node(pm);
        loop {
            let (index, found) = self.position(pm, node, key);
            if found {
                return Some(pm.load_ptr(self.value(node.at, index)));
            }
            if node.is_leaf {
                return None;
            }
            node = self.child_node(pm, node.at, index);
        }
    }
}

/// The layout of nodes.
impl Tree {
    /// A node other than the root has at least one key fewer than this.
    fn degree(&self) -> u64 {
        self.order / 2
    }

    fn keys_max(&self) -> u64 {
        2 * self.degree() - 1
    }

    fn node_bytes(&self) -> u64 {
        3 * self.order * WORD_BYTES
    }

    fn key(node: Ptr, index: u64) -> Ptr {
        node.plus((1 + index) * WORD_BYTES)
    }

    fn value(&self, node: Ptr, index: u64) -> Ptr {
        node.plus((self.order + index) * WORD_BYTES)
    }

    fn child(&self, node: Ptr, index: u64) -> Ptr {
        node.plus((2 * self.order + index) * WORD_BYTES)
    }

    fn root_node(&self, pm: &mut Pm<'_>) -> Node {
        let root = pm.load_ptr(Ptr::to(self.root));
        Node::load(pm, root)
    }

    fn child_node(&self, pm: &mut Pm<'_>, node: Ptr, index: u64) -> Node {
        let child = pm.load_ptr(self.child(node, index));
        Node::load(pm, child)
    }

    fn new_node(&self, heap: &mut Heap, is_leaf: bool) -> Step<Node> {
        Ok(Node { at: heap.alloc(self.node_bytes())?, keys: 0, is_leaf })
    }

    /// The first key that is not below `key`, and whether it is `key`.
    fn position(&self, pm: &mut Pm<'_>, node: Node, key: u64) -> (u64, bool) {
        node.search(pm, Tree::key(node.at, 0), key)
    }
}

/// Insert.
impl Tree {
    /// Inserts a key that is not there.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn insert(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, value: Ptr) -> Step {
        let mut node = self.root_node(pm);
        if node.keys == self.keys_max() {
            let mut above = self.new_node(heap, false)?;
            pm.store_ptr(self.child(above.at, 0), node.at);
            self.split(pm, heap, &mut above, 0, node)?;
            pm.store_ptr(Ptr::to(self.root), above.at);
            node = above;
        }
        while !node.is_leaf {
            let (mut index, _) = self.position(pm, node, key);
            let mut child = self.child_node(pm, node.at, index);
            if child.keys == self.keys_max() {
                self.split(pm, heap, &mut node, index, child)?;
                pm.work(COMPARE_WORK);
                index += u64::from(key > pm.load(Tree::key(node.at, index)));
                child = self.child_node(pm, node.at, index);
            }
            node = child;
        }
        let (index, _) = self.position(pm, node, key);
        self.open_gap(pm, &mut node, index);
        pm.store(Tree::key(node.at, index), key);
        pm.store_ptr(self.value(node.at, index), value);
        Ok(())
    }

    /// Splits the full `child`, the `index`th of `node`, around its middle key, which moves up.
    fn split(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        node: &mut Node,
        index: u64,
        child: Node,
    ) -> Step {
        let degree = self.degree();
        let mut right = self.new_node(heap, child.is_leaf)?;
        right.keys = degree - 1;
        self.copy_items(pm, (child.at, degree), (right.at, 0), degree - 1);
        if !child.is_leaf {
            copy(pm, self.child(child.at, degree), self.child(right.at, 0), degree);
        }
        right.store_head(pm);
        Node { keys: degree - 1, ..child }.store_head(pm);
        shift_up(pm, self.child(node.at, index + 1), node.keys - index);
        pm.store_ptr(self.child(node.at, index + 1), right.at);
        self.open_gap(pm, node, index);
        self.copy_items(pm, (child.at, degree - 1), (node.at, index), 1);
        Ok(())
    }

    /// Makes room for one key, and its value, at `index`.
    fn open_gap(&self, pm: &mut Pm<'_>, node: &mut Node, index: u64) {
        shift_up(pm, Tree::key(node.at, index), node.keys - index);
        shift_up(pm, self.value(node.at, index), node.keys - index);
        node.keys += 1;
        node.store_head(pm);
    }
}

/// Delete.
impl Tree {
    /// Deletes a key that is there; its value is for the caller to free. Every node that is
    /// entered, but the root, has a key more than it must, so nothing has to be mended on the way
    /// up.
    fn delete(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) {
        let mut key = key;
        let mut node = self.root_node(pm);
        loop {
            let (index, found) = self.position(pm, node, key);
            if node.is_leaf {
                assert!(found, "key {key} was found and is not in its leaf");
                self.close_gap(pm, &mut node, index);
                return;
            }
            node = if found {
                let (next, stand_in) = self.replace(pm, heap, &mut node, index);
                key = stand_in.unwrap_or(key);
                next
            } else {
                self.strengthen(pm, heap, &mut node, index)
            };
        }
    }

    /// Removes the key at `index` of an inner node. If a child can spare a key, the neighbouring
    /// key from there replaces it and must be deleted below; otherwise the children around it are
    /// merged, and the key itself must be. Returns the node where to go on, and the replacement.
    fn replace(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        node: &mut Node,
        index: u64,
    ) -> (Node, Option<u64>) {
        for side in [0, 1] {
            let child = self.child_node(pm, node.at, index + side);
            if child.keys >= self.degree() {
                let mut leaf = child;
                while !leaf.is_leaf {
                    let edge = if side == 0 { leaf.keys } else { 0 };
                    leaf = self.child_node(pm, leaf.at, edge);
                }
                let edge = if side == 0 { leaf.keys - 1 } else { 0 };
                let stand_in = pm.load(Tree::key(leaf.at, edge));
                self.copy_items(pm, (leaf.at, edge), (node.at, index), 1);
                return (child, Some(stand_in));
            }
        }
        (self.merge(pm, heap, node, index), None)
    }

    /// Makes sure that the `index`th child has a key more than the least number, by taking one from
    /// a sibling or by merging the two. Returns the child.
    fn strengthen(&self, pm: &mut Pm<'_>, heap: &mut Heap, node: &mut Node, index: u64) -> Node {
        let child = self.child_node(pm, node.at, index);
        if child.keys >= self.degree() {
            return child;
        }
        if index > 0 {
            let left = self.child_node(pm, node.at, index - 1);
            if left.keys >= self.degree() {
                return self.borrow_from_left(pm, *node, index, left, child);
            }
        }
        if index < node.keys {
            let right = self.child_node(pm, node.at, index + 1);
            if right.keys >= self.degree() {
                return self.borrow_from_right(pm, *node, index, child, right);
            }
        }
        self.merge(pm, heap, node, index.min(node.keys - 1))
    }

    fn borrow_from_left(
        &self,
        pm: &mut Pm<'_>,
        node: Node,
        index: u64,
        mut left: Node,
        mut child: Node,
    ) -> Node {
        if !child.is_leaf {
            shift_up(pm, self.child(child.at, 0), child.keys + 1);
            copy(pm, self.child(left.at, left.keys), self.child(child.at, 0), 1);
        }
        self.open_gap(pm, &mut child, 0);
        self.copy_items(pm, (node.at, index - 1), (child.at, 0), 1);
        self.copy_items(pm, (left.at, left.keys - 1), (node.at, index - 1), 1);
        left.keys -= 1;
        left.store_head(pm);
        child
    }

    fn borrow_from_right(
        &self,
        pm: &mut Pm<'_>,
        node: Node,
        index: u64,
        mut child: Node,
        mut right: Node,
    ) -> Node {
        if !child.is_leaf {
            copy(pm, self.child(right.at, 0), self.child(child.at, child.keys + 1), 1);
            shift_down(pm, self.child(right.at, 1), right.keys);
        }
        self.copy_items(pm, (node.at, index), (child.at, child.keys), 1);
        child.keys += 1;
        child.store_head(pm);
        self.copy_items(pm, (right.at, 0), (node.at, index), 1);
        self.close_gap(pm, &mut right, 0);
        child
    }

    /// Merges the children before and after the key at `index`, with the key between them. Returns
    /// the merged child, which is the new root if the old one has lost its last key.
    fn merge(&self, pm: &mut Pm<'_>, heap: &mut Heap, node: &mut Node, index: u64) -> Node {
        let mut left = self.child_node(pm, node.at, index);
        let right = self.child_node(pm, node.at, index + 1);
        self.copy_items(pm, (node.at, index), (left.at, left.keys), 1);
        self.copy_items(pm, (right.at, 0), (left.at, left.keys + 1), right.keys);
        if !left.is_leaf {
            let place = self.child(left.at, left.keys + 1);
            copy(pm, self.child(right.at, 0), place, right.keys + 1);
        }
        left.keys += right.keys + 1;
        left.store_head(pm);
        if node.keys == 1 {
            // Only a root may have had a single key here.
            pm.store_ptr(Ptr::to(self.root), left.at);
            heap.free(node.at, self.node_bytes());
        } else {
            shift_down(pm, self.child(node.at, index + 2), node.keys - index - 1);
            self.close_gap(pm, node, index);
        }
        heap.free(right.at, self.node_bytes());
        left
    }

    /// Removes the key, and the address of its value, at `index`.
    fn close_gap(&self, pm: &mut Pm<'_>, node: &mut Node, index: u64) {
        shift_down(pm, Tree::key(node.at, index + 1), node.keys - index - 1);
        shift_down(pm, self.value(node.at, index + 1), node.keys - index - 1);
        node.keys -= 1;
        node.store_head(pm);
    }

    /// Copies keys and the addresses of their values from a place in one node to one in another.
    fn copy_items(&self, pm: &mut Pm<'_>, from: (Ptr, u64), to: (Ptr, u64), items: u64) {
        copy(pm, Tree::key(from.0, from.1), Tree::key(to.0, to.1), items);
        copy(pm, self.value(from.0, from.1), self.value(to.0, to.1), items);
    }
}
