//! `rbtree`: a red-black tree with parent pointers (Cormen, Leiserson, Rivest, Stein, 3rd edition,
//! chapter 13), in which a missing child is 0 and not a sentinel node.
//!
//! ```text
//! root record, 64 bytes      node, 40 + value bytes (48 with 8-byte values, as in SSP-19)
//!   0  root node, or 0         0  key
//!                              8  parent, or 0
//!                             16  left child, or 0
//!                             24  right child, or 0
//!                             32  colour: 0 black, 1 red
//!                             40  value
//! ```

mod check;

use model::units::LINE_BYTES;
use model::workload::{About, Pm, Ptr, Step, Stop};

use crate::heap::Heap;
use crate::keyed::{COMPARE_WORK, Structure, Toggled, Values, keyed_params};
use crate::walk::Walk;

/// The workload, for the registry.
pub type RbTree = Toggled<Tree>;

const KEY: u64 = 0;
const PARENT: u64 = 8;
const LEFT: u64 = 16;
const RIGHT: u64 = 24;
const COLOUR: u64 = 32;
const VALUE: u64 = 40;

const BLACK: u64 = 0;
const RED: u64 = 1;

keyed_params! {
    /// Parameters of `rbtree`.
    pub struct RbTreeParams {}
}

/// One red-black tree.
#[derive(Clone, Debug)]
pub struct Tree {
    root: u64,
    values: Values,
}

impl Structure for Tree {
    const ABOUT: About = About {
        name: "rbtree",
        summary: "a red-black tree: search a key, delete it if found, else insert it",
        source: "NV-Heaps-11 and after; the algorithms of CLRS",
        file: file!(),
        shared: false,
    };
    type Params = RbTreeParams;

    fn create(params: &RbTreeParams, _items: u64, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Tree> {
        Tree::new(Values::of(params), pm, heap)
    }

    fn root_record(&self) -> u64 {
        self.root
    }

    fn toggle(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, stamp: u64) -> Step<bool> {
        match self.search(pm, key) {
            Found::Node(node) => {
                self.remove(pm, heap, node);
                Ok(false)
            }
            Found::Place { parent, side } => {
                let node = self.make(pm, heap, key)?;
                self.values.store(pm, node.plus(VALUE), key, stamp);
                self.link(pm, node, parent, side);
                Ok(true)
            }
        }
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        let mut items = Vec::new();
        self.check_nodes(walk, |walk, value, key| {
            items.push((key, self.values.check(walk, value, key)?));
            Ok(())
        })?;
        Ok(items)
    }
}

/// The result of a search.
enum Found {
    /// The node of the key.
    Node(Ptr),
    /// The place at which a node of the key would be linked.
    Place { parent: Ptr, side: u64 },
}

impl Tree {
    /// Makes an empty tree.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn new(values: Values, pm: &mut Pm<'_>, heap: &mut Heap) -> Step<Tree> {
        let root = heap.alloc(LINE_BYTES)?;
        pm.store_ptr(root, Ptr::NULL);
        Ok(Tree { root: root.address, values })
    }

    /// The place of a key's value.
    pub fn find(&self, pm: &mut Pm<'_>, key: u64) -> Option<Ptr> {
        match self.search(pm, key) {
            Found::Node(node) => Some(node.plus(VALUE)),
            Found::Place { .. } => None,
        }
    }

    /// Inserts a key that is not there, with a pointer as the first word of its value.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn insert(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, value: Ptr) -> Step {
        match self.search(pm, key) {
            Found::Node(_) => Err(Stop::Failed(format!("key {key} was inserted twice"))),
            Found::Place { parent, side } => {
                let node = self.make(pm, heap, key)?;
                pm.store_ptr(node.plus(VALUE), value);
                self.link(pm, node, parent, side);
                Ok(())
            }
        }
    }

    /// Deletes a key, if it is there.
    pub fn delete(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) {
        if let Found::Node(node) = self.search(pm, key) {
            self.remove(pm, heap, node);
        }
    }

    fn search(&self, pm: &mut Pm<'_>, key: u64) -> Found {
        let (mut parent, mut side) = (Ptr::NULL, LEFT);
        let mut node = self.root(pm);
        while !node.is_null() {
            pm.work(COMPARE_WORK);
            let here = pm.load(node.plus(KEY));
            if here == key {
                return Found::Node(node);
            }
            parent = node;
            side = if key < here { LEFT } else { RIGHT };
            node = pm.load_ptr(node.plus(side));
        }
        Found::Place { parent, side }
    }

    /// Returns a new node with a key; the caller must store its value before linking it.
    fn make(&self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64) -> Step<Ptr> {
        let node = heap.alloc(VALUE + self.values.bytes)?;
        pm.store(node.plus(KEY), key);
        Ok(node)
    }

    fn remove(&self, pm: &mut Pm<'_>, heap: &mut Heap, node: Ptr) {
        self.unlink(pm, node);
        heap.free(node, VALUE + self.values.bytes);
    }

    fn root(&self, pm: &mut Pm<'_>) -> Ptr {
        pm.load_ptr(Ptr::to(self.root))
    }

    /// Links a new node below `parent` and restores the colours (RB-INSERT).
    fn link(&self, pm: &mut Pm<'_>, node: Ptr, parent: Ptr, side: u64) {
        pm.store_ptr(node.plus(PARENT), parent);
        pm.store_ptr(node.plus(LEFT), Ptr::NULL);
        pm.store_ptr(node.plus(RIGHT), Ptr::NULL);
        pm.store(node.plus(COLOUR), RED);
        if parent.is_null() {
            pm.store_ptr(Ptr::to(self.root), node);
        } else {
            pm.store_ptr(parent.plus(side), node);
        }
        self.insert_fixup(pm, node);
    }

    /// RB-INSERT-FIXUP: `node` is red, and its parent may be.
    fn insert_fixup(&self, pm: &mut Pm<'_>, mut node: Ptr) {
        loop {
            let mut parent = pm.load_ptr(node.plus(PARENT));
            if is_black(pm, parent) {
                break;
            }
            let grandparent = pm.load_ptr(parent.plus(PARENT));
            let side = side_of(pm, parent, grandparent);
            let uncle = pm.load_ptr(grandparent.plus(other(side)));
            if !is_black(pm, uncle) {
                pm.store(parent.plus(COLOUR), BLACK);
                pm.store(uncle.plus(COLOUR), BLACK);
                pm.store(grandparent.plus(COLOUR), RED);
                node = grandparent;
                continue;
            }
            if side_of(pm, node, parent) != side {
                self.rotate(pm, parent, side);
                parent = node;
            }
            pm.store(parent.plus(COLOUR), BLACK);
            pm.store(grandparent.plus(COLOUR), RED);
            self.rotate(pm, grandparent, other(side));
            break;
        }
        let root = self.root(pm);
        if !is_black(pm, root) {
            pm.store(root.plus(COLOUR), BLACK);
        }
    }

    /// Unlinks a node and restores the colours (RB-DELETE).
    fn unlink(&self, pm: &mut Pm<'_>, node: Ptr) {
        let left = pm.load_ptr(node.plus(LEFT));
        let right = pm.load_ptr(node.plus(RIGHT));
        let mut lost = pm.load(node.plus(COLOUR));
        let (child, parent);
        if left.is_null() || right.is_null() {
            child = if left.is_null() { right } else { left };
            parent = pm.load_ptr(node.plus(PARENT));
            self.transplant(pm, node, child);
        } else {
            let next = minimum(pm, right);
            let colour = std::mem::replace(&mut lost, pm.load(next.plus(COLOUR)));
            child = pm.load_ptr(next.plus(RIGHT));
            if next == right {
                parent = next;
            } else {
                parent = pm.load_ptr(next.plus(PARENT));
                self.transplant(pm, next, child);
                pm.store_ptr(next.plus(RIGHT), right);
                pm.store_ptr(right.plus(PARENT), next);
            }
            self.transplant(pm, node, next);
            pm.store_ptr(next.plus(LEFT), left);
            pm.store_ptr(left.plus(PARENT), next);
            pm.store(next.plus(COLOUR), colour);
        }
        if lost == BLACK {
            self.delete_fixup(pm, child, parent);
        }
    }

    /// RB-DELETE-FIXUP: the paths through `node`, a child of `parent` or null, lack a black node.
    fn delete_fixup(&self, pm: &mut Pm<'_>, mut node: Ptr, mut parent: Ptr) {
        while !parent.is_null() && is_black(pm, node) {
            let side = side_of(pm, node, parent);
            let mut sibling = pm.load_ptr(parent.plus(other(side)));
            if !is_black(pm, sibling) {
                pm.store(sibling.plus(COLOUR), BLACK);
                pm.store(parent.plus(COLOUR), RED);
                self.rotate(pm, parent, side);
                sibling = pm.load_ptr(parent.plus(other(side)));
            }
            let near = pm.load_ptr(sibling.plus(side));
            let far = pm.load_ptr(sibling.plus(other(side)));
            let far_is_black = is_black(pm, far);
            if far_is_black && is_black(pm, near) {
                pm.store(sibling.plus(COLOUR), RED);
                node = parent;
                parent = pm.load_ptr(node.plus(PARENT));
                continue;
            }
            if far_is_black {
                pm.store(near.plus(COLOUR), BLACK);
                pm.store(sibling.plus(COLOUR), RED);
                self.rotate(pm, sibling, other(side));
                sibling = near;
            }
            let colour = pm.load(parent.plus(COLOUR));
            let far = pm.load_ptr(sibling.plus(other(side)));
            pm.store(sibling.plus(COLOUR), colour);
            pm.store(parent.plus(COLOUR), BLACK);
            pm.store(far.plus(COLOUR), BLACK);
            self.rotate(pm, parent, side);
            return;
        }
        if !is_black(pm, node) {
            pm.store(node.plus(COLOUR), BLACK);
        }
    }

    /// Rotates `node` down to `side`, and its child on the other side up (LEFT-ROTATE for left).
    fn rotate(&self, pm: &mut Pm<'_>, node: Ptr, side: u64) {
        let child = pm.load_ptr(node.plus(other(side)));
        let between = pm.load_ptr(child.plus(side));
        pm.store_ptr(node.plus(other(side)), between);
        if !between.is_null() {
            pm.store_ptr(between.plus(PARENT), node);
        }
        self.transplant(pm, node, child);
        pm.store_ptr(child.plus(side), node);
        pm.store_ptr(node.plus(PARENT), child);
    }

    /// Puts the subtree `new`, which may be null, in the place of `old` (RB-TRANSPLANT).
    fn transplant(&self, pm: &mut Pm<'_>, old: Ptr, new: Ptr) {
        let parent = pm.load_ptr(old.plus(PARENT));
        if parent.is_null() {
            pm.store_ptr(Ptr::to(self.root), new);
        } else {
            let side = side_of(pm, old, parent);
            pm.store_ptr(parent.plus(side), new);
        }
        if !new.is_null() {
            pm.store_ptr(new.plus(PARENT), parent);
        }
    }
}

fn other(side: u64) -> u64 {
    LEFT + RIGHT - side
}

/// Returns the side of its parent on which a child is; one of the two children may be null.
fn side_of(pm: &mut Pm<'_>, child: Ptr, parent: Ptr) -> u64 {
    if pm.load_ptr(parent.plus(LEFT)) == child { LEFT } else { RIGHT }
}

/// Whether a node is black, as a missing one is.
fn is_black(pm: &mut Pm<'_>, node: Ptr) -> bool {
    node.is_null() || pm.load(node.plus(COLOUR)) == BLACK
}

fn minimum(pm: &mut Pm<'_>, mut node: Ptr) -> Ptr {
    loop {
        pm.work(COMPARE_WORK);
        let left = pm.load_ptr(node.plus(LEFT));
        if left.is_null() {
            return node;
        }
        node = left;
    }
}
