//! Checking a B-tree in an image that may hold garbage.

use model::units::LINE_BYTES;
use model::workload::Ptr;

use super::Tree;
use crate::nodes;
use crate::walk::Walk;

/// Deeper than any tree that fits: each level but the first at least doubles the nodes.
const DEPTH_MAX: u64 = 64;

impl Tree {
    /// Checks the tree and hands each value, visited, and its key to `inspect`, in order.
    ///
    /// # Errors
    /// What is wrong with the tree, or what `inspect` says.
    pub fn check_values(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let root = walk.word(self.root);
        let bounds = Bounds { is_root: true, low: None, high: None, depth: 0 };
        self.check_subtree(walk, root, bounds, &mut inspect).map(|_| ())
    }

    /// Checks the subtree at `node` and returns its height.
    fn check_subtree(
        &self,
        walk: &mut Walk<'_>,
        node: u64,
        bounds: Bounds,
        inspect: &mut impl FnMut(&Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<u64, String> {
        walk.visit(node, self.node_bytes(), "a node")?;
        if bounds.depth > DEPTH_MAX {
            return Err(format!("the tree is deeper than {DEPTH_MAX} at {node:#x}"));
        }
        let (keys, is_leaf) = nodes::decode(walk.word(node));
        let keys_min = match (bounds.is_root, is_leaf) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => self.degree() - 1,
        };
        if !(keys_min..=self.keys_max()).contains(&keys) {
            return Err(format!(
                "the node at {node:#x} has {keys} keys, which is not {keys_min} to {}",
                self.keys_max()
            ));
        }
        let mut low = bounds.low;
        let mut height = None;
        for index in 0..=keys {
            let key = (index < keys).then(|| walk.word(Tree::key(Ptr::to(node), index).address));
            if key.is_some_and(|key| low.is_some_and(|low| key <= low) || bounds.is_above(key)) {
                return Err(format!("key {index} of the node at {node:#x} is out of order"));
            }
            if !is_leaf {
                let child = walk.word(self.child(Ptr::to(node), index).address);
                let high = key.or(bounds.high);
                let below = Bounds { is_root: false, low, high, depth: bounds.depth + 1 };
                let found = self.check_subtree(walk, child, below, inspect)?;
                if *height.get_or_insert(found) != found {
                    return Err(format!("the leaves below {node:#x} are not equally deep"));
                }
            }
            if let Some(key) = key {
                let value = walk.word(self.value(Ptr::to(node), index).address);
                walk.visit(value, self.values.bytes, "a value")?;
                inspect(walk, value, key)?;
            }
            low = key;
        }
        Ok(height.map_or(0, |height| height + 1))
    }
}

/// The bounds of a node's keys, and its other properties, by its place in the tree.
#[derive(Clone, Copy)]
struct Bounds {
    is_root: bool,
    low: Option<u64>,
    high: Option<u64>,
    depth: u64,
}

impl Bounds {
    fn is_above(&self, key: u64) -> bool {
        self.high.is_some_and(|high| key >= high)
    }
}
