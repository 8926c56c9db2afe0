//! `ctree`: a crit-bit tree, PMDK's `ctree_map`, one of WHISPER's kernels ([`crate::pmembench`]).
//!
//! ```text
//! map, 24 bytes: a side      node, 56 bytes                             side, 24 bytes
//!                              0  the highest bit in which the keys       0  key, or 0
//!                                 below it differ                         8  identifier
//!                              8  the side where that bit is 0
//!                             32  the side where it is 1
//! ```
//!
//! A side with a key is a leaf, and the identifier is its value's. A side without is a node, or in
//! an empty map nothing. (PMDK looks at the type in the header of the object that the identifier
//! names; for a node that is next to what is loaded then anyway.)

use model::workload::{About, Pm, Ptr, Step};

use crate::heap::Heap;
use crate::keyed::COMPARE_WORK;
use crate::pmembench::{Inserted, Map, OID_BYTES, check_oid, load_oid, map_params, store_oid};
use crate::rng::Random;
use crate::walk::Walk;

/// The workload, for the registry.
pub type CTree = Inserted<Tree>;

const KEY: u64 = 0;
const OID: u64 = 8;
const SIDE_BYTES: u64 = OID + OID_BYTES;

const BIT: u64 = 0;
const SIDES: u64 = 8;
const NODE_BYTES: u64 = SIDES + 2 * SIDE_BYTES;

map_params! {
    /// Parameters of `ctree`.
    pub struct CTreeParams {}
}

/// One tree.
#[derive(Clone, Debug)]
pub struct Tree {
    map: u64,
}

impl Map for Tree {
    const ABOUT: About = About {
        name: "ctree",
        summary: "a crit-bit tree (WHISPER): insert a random key",
        source: "WHISPER-17, PMDK's ctree_map under pmembench",
        file: file!(),
        shared: true,
    };
    type Params = CTreeParams;

    fn create(
        _params: &CTreeParams,
        _items: u64,
        _random: &mut Random,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Tree> {
        let map = heap.alloc(SIDE_BYTES)?;
        pm.store(map.plus(KEY), 0);
        store_oid(pm, map.plus(OID), Ptr::NULL);
        Ok(Tree { map: map.address })
    }

    /// Inserts as PMDK does: a first descent finds the leaf most similar to the key, and a second
    /// one the place for the bit in which the two differ.
    fn insert(&mut self, pm: &mut Pm<'_>, heap: &mut Heap, key: u64, value: Ptr) -> Step {
        let mut side = Ptr::to(self.map);
        while let Some(node) = below(pm, side) {
            side = self.turn(pm, node, key);
        }
        let other = pm.load(side.plus(KEY));
        if other == 0 || other == key {
            store_side(pm, side, key, value);
            return Ok(());
        }
        let bit = u64::from((other ^ key).ilog2());
        let new = heap.alloc(NODE_BYTES)?;
        pm.store(new.plus(BIT), bit);
        store_side(pm, side_of(new, bit, key), key, value);
        let mut side = Ptr::to(self.map);
        while let Some(node) = below(pm, side) {
            if pm.load(node.plus(BIT)) < bit {
                break;
            }
            side = self.turn(pm, node, key);
        }
        // The old contents of this side move to the other side of the new node.
        let (old_key, old) = (pm.load(side.plus(KEY)), load_oid(pm, side.plus(OID)));
        store_side(pm, side_of(new, bit, !key), old_key, old);
        store_side(pm, side, 0, new);
        Ok(())
    }

    fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64)>, String> {
        walk.visit(self.map, SIDE_BYTES, "the map")?;
        let mut items = Vec::new();
        if walk.word(self.map + KEY) != 0 || walk.word(self.map + OID + 8) != 0 {
            check_side(walk, self.map, 64, &mut items)?;
        }
        Ok(items)
    }
}

impl Tree {
    /// The side of a node to which a key belongs.
    fn turn(&self, pm: &mut Pm<'_>, node: Ptr, key: u64) -> Ptr {
        pm.work(COMPARE_WORK);
        let bit = pm.load(node.plus(BIT));
        side_of(node, bit, key)
    }
}

/// The node at a side, if it is one.
fn below(pm: &mut Pm<'_>, side: Ptr) -> Option<Ptr> {
    if pm.load(side.plus(KEY)) != 0 {
        return None;
    }
    let node = load_oid(pm, side.plus(OID));
    (!node.is_null()).then_some(node)
}

fn side_of(node: Ptr, bit: u64, key: u64) -> Ptr {
    node.plus(SIDES + (key >> bit & 1) * SIDE_BYTES)
}

fn store_side(pm: &mut Pm<'_>, side: Ptr, key: u64, object: Ptr) {
    pm.store(side.plus(KEY), key);
    store_oid(pm, side.plus(OID), object);
}

/// Checks the subtree at a side below a node that distinguishes keys by the bit `above`. Returns
/// one of its keys. Bits descend on every path, so no path is longer than 64 nodes.
fn check_side(
    walk: &mut Walk<'_>,
    side: u64,
    above: u64,
    items: &mut Vec<(u64, u64)>,
) -> Result<u64, String> {
    let (key, object) = (walk.word(side + KEY), check_oid(walk, side + OID)?);
    if key != 0 {
        items.push((key, object));
        return Ok(key);
    }
    walk.visit(object, NODE_BYTES, "a node")?;
    let bit = walk.word(object + BIT);
    if bit >= above {
        return Err(format!("the node at {object:#x} is for bit {bit}, below one for {above}"));
    }
    let sides = [0, 1].map(|side| object + SIDES + side * SIDE_BYTES);
    let left = check_side(walk, sides[0], bit, items)?;
    let right = check_side(walk, sides[1], bit, items)?;
    // All keys of a side agree down to its own bit, so one of each speaks for all.
    if (left ^ right).checked_ilog2() != Some(bit as u32) || right >> bit & 1 == 0 {
        return Err(format!("keys {left:#x} and {right:#x} are told apart by bit {bit}"));
    }
    Ok(left)
}
