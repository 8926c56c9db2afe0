//! Checking a B+-tree in an image that may hold garbage.

use model::units::LINE_BYTES;
use model::workload::Ptr;

use super::{NEXT, Tree};
use crate::nodes;
use crate::walk::Walk;

/// Deeper than any tree that fits: each level but the first at least doubles the nodes.
const DEPTH_MAX: u64 = 64;

impl Tree {
    /// Checks the tree and hands each key, and where its word is, to `inspect`, in order.
    ///
    /// # Errors
    /// What is wrong with the tree, or what `inspect` says.
    pub fn check_words(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&mut Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let root = walk.word(self.root);
        let bounds = Bounds { is_root: true, low: None, high: None, depth: 0 };
        let mut leaves = Vec::new();
        self.check_subtree(walk, root, bounds, &mut leaves, &mut inspect)?;
        for (index, &leaf) in leaves.iter().enumerate() {
            let next = walk.word(leaf + NEXT);
            let right = leaves.get(index + 1).copied().unwrap_or(0);
            if next != right {
                return Err(format!(
                    "the leaf at {leaf:#x} is linked to {next:#x}, not {right:#x}"
                ));
            }
        }
        Ok(())
    }

    /// Checks the subtree at `node`, adds its leaves to `leaves`, and returns its height.
    fn check_subtree(
        &self,
        walk: &mut Walk<'_>,
        node: u64,
        bounds: Bounds,
        leaves: &mut Vec<u64>,
        inspect: &mut impl FnMut(&mut Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<u64, String> {
        walk.visit(node, self.node_bytes(), "a node")?;
        if bounds.depth > DEPTH_MAX {
            return Err(format!("the tree is deeper than {DEPTH_MAX} at {node:#x}"));
        }
        let (keys, is_leaf) = nodes::decode(walk.word(node));
        let least = if bounds.is_root { u64::from(!is_leaf) } else { self.keys_min(is_leaf) };
        let most = self.keys_max(is_leaf);
        if !(least..=most).contains(&keys) {
            return Err(format!(
                "the node at {node:#x} has {keys} keys, which is not {least} to {most}"
            ));
        }
        let keys: Vec<u64> =
            (0..keys).map(|index| walk.word(Tree::key(Ptr::to(node), index).address)).collect();
        let ascends = keys.is_sorted_by(|left, right| left < right);
        if !ascends || !keys.iter().all(|&key| bounds.hold(key)) {
            return Err(format!("the keys of the node at {node:#x} are out of order"));
        }
        if is_leaf {
            leaves.push(node);
            for (index, &key) in keys.iter().enumerate() {
                inspect(walk, self.slot(Ptr::to(node), index as u64).address, key)?;
            }
            return Ok(0);
        }
        let mut height = None;
        for index in 0..=keys.len() {
            let child = walk.word(self.slot(Ptr::to(node), index as u64).address);
            let below = Bounds {
                is_root: false,
                low: if index == 0 { bounds.low } else { Some(keys[index - 1]) },
                high: keys.get(index).copied().or(bounds.high),
                depth: bounds.depth + 1,
            };
            let below = self.check_subtree(walk, child, below, leaves, inspect)?;
            if *height.get_or_insert(below) != below {
                return Err(format!("the leaves below {node:#x} are not equally deep"));
            }
        }
        Ok(height.map_or(0, |height| height + 1))
    }
}

/// The bounds that a node's place in the tree sets: its keys are at least `low` and below `high`.
#[derive(Clone, Copy)]
struct Bounds {
    is_root: bool,
    low: Option<u64>,
    high: Option<u64>,
    depth: u64,
}

impl Bounds {
    fn hold(&self, key: u64) -> bool {
        self.low.is_none_or(|low| key >= low) && self.high.is_none_or(|high| key < high)
    }
}
