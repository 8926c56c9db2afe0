//! Checking a red-black tree in an image that may hold garbage.

use model::units::LINE_BYTES;

use super::{COLOUR, KEY, LEFT, PARENT, RED, RIGHT, Tree, VALUE};
use crate::walk::Walk;

/// A tree of n nodes is at most 2 log2(n + 1) deep.
const DEPTH_MAX: u64 = 128;

impl Tree {
    /// Checks the tree and hands the place of each value, visited, and its key to `inspect`, in
    /// order.
    ///
    /// # Errors
    /// What is wrong with the tree, or what `inspect` says.
    pub fn check_nodes(
        &self,
        walk: &mut Walk<'_>,
        mut inspect: impl FnMut(&mut Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let root = walk.word(self.root);
        let bounds = Bounds { parent: 0, parent_is_red: false, low: None, high: None, depth: 0 };
        self.check_subtree(walk, root, bounds, &mut inspect).map(|_| ())
    }

    /// Checks the subtree at `node` and returns its black height.
    fn check_subtree(
        &self,
        walk: &mut Walk<'_>,
        node: u64,
        bounds: Bounds,
        inspect: &mut impl FnMut(&mut Walk<'_>, u64, u64) -> Result<(), String>,
    ) -> Result<u64, String> {
        if node == 0 {
            return Ok(0);
        }
        walk.visit(node, VALUE + self.values.bytes, "a node")?;
        if bounds.depth > DEPTH_MAX {
            return Err(format!("the tree is deeper than {DEPTH_MAX} at {node:#x}"));
        }
        let [key, parent, left, right, colour] =
            [KEY, PARENT, LEFT, RIGHT, COLOUR].map(|field| walk.word(node + field));
        if parent != bounds.parent {
            let expect = bounds.parent;
            return Err(format!("the parent of key {key} is {parent:#x} instead of {expect:#x}"));
        }
        if bounds.low.is_some_and(|low| key <= low) || bounds.high.is_some_and(|high| key >= high) {
            return Err(format!("key {key} is out of order"));
        }
        if colour > RED {
            return Err(format!("key {key} has the colour {colour}"));
        }
        let is_red = colour == RED;
        if is_red && parent == 0 {
            return Err("the root is red".to_owned());
        }
        if is_red && bounds.parent_is_red {
            return Err(format!("key {key} and its parent are red"));
        }
        let depth = bounds.depth + 1;
        let below = Bounds { parent: node, parent_is_red: is_red, depth, ..bounds };
        let left_height =
            self.check_subtree(walk, left, Bounds { high: Some(key), ..below }, inspect)?;
        inspect(walk, node + VALUE, key)?;
        let right_height =
            self.check_subtree(walk, right, Bounds { low: Some(key), ..below }, inspect)?;
        if left_height != right_height {
            return Err(format!(
                "the black heights below key {key} are {left_height} and {right_height}"
            ));
        }
        Ok(left_height + u64::from(!is_red))
    }
}

/// The properties of a node that follow from its place in the tree.
#[derive(Clone, Copy)]
struct Bounds {
    parent: u64,
    parent_is_red: bool,
    low: Option<u64>,
    high: Option<u64>,
    depth: u64,
}
