//! Random tests against reference caches, whose sets are lists and whose directory is found by
//! searching them.

use std::collections::BTreeSet;

use super::*;
use crate::units::mix;

/// A set, most recent first: each line with its state or, in the last level, with 1 if it is dirty.
type Set = Vec<(u64, u64)>;

struct Level {
    sets: Vec<Set>,
    ways: usize,
}

impl Level {
    fn new(sets: u64, ways: u64) -> Level {
        Level { sets: vec![Set::new(); sets as usize], ways: ways as usize }
    }

    fn set(&mut self, line: u64) -> &mut Set {
        let index = (line % self.sets.len() as u64) as usize;
        &mut self.sets[index]
    }

    fn peek(&mut self, line: u64) -> Option<&mut u64> {
        self.set(line).iter_mut().find(|(other, _)| *other == line).map(|(_, state)| state)
    }

    fn touch(&mut self, line: u64) -> Option<&mut u64> {
        let set = self.set(line);
        let place = set.iter().position(|(other, _)| *other == line)?;
        set[..=place].rotate_right(1);
        Some(&mut set[0].1)
    }

    fn insert(&mut self, line: u64, state: u64) -> Option<(u64, u64)> {
        let ways = self.ways;
        let set = self.set(line);
        let out = (set.len() == ways).then(|| set.pop()).flatten();
        set.insert(0, (line, state));
        out
    }

    fn remove(&mut self, line: u64) -> u64 {
        let state = self.peek(line).map_or(0, |state| *state);
        self.set(line).retain(|(other, _)| *other != line);
        state
    }

    fn modified(&self, by: u64) -> impl Iterator<Item = u64> + '_ {
        let all = self.sets.iter().flatten();
        all.filter(move |(_, state)| *state == by).map(|(line, _)| *line)
    }
}

struct Reference {
    l1: Vec<Level>,
    l2: Vec<Level>,
    llc: Level,
    left: BTreeSet<(CoreId, Line)>,
    came_down: BTreeSet<(CoreId, Line)>,
}

impl Reference {
    fn cores(&self) -> std::ops::Range<usize> {
        0..self.l1.len()
    }

    fn leaves_l1(&mut self, core: usize, line: u64) {
        self.left.insert((CoreId(core as u8), Line(line)));
    }

    /// Removes a line from a core's caches, or leaves it there with at most the state `keep`.
    /// Returns whether the core had changed it.
    fn take(&mut self, core: usize, line: u64, keep: Option<u64>) -> bool {
        let mut changed = false;
        for level in [&mut self.l1[core], &mut self.l2[core]] {
            match (keep, level.peek(line)) {
                (Some(keep), Some(state)) => {
                    changed |= std::mem::replace(state, keep.min(*state)) == MODIFIED;
                }
                _ => changed |= level.remove(line) == MODIFIED,
            }
        }
        changed
    }

    fn take_from(&mut self, core: usize, line: u64) -> bool {
        if self.l1[core].peek(line).is_some() {
            self.leaves_l1(core, line);
        }
        self.take(core, line, None)
    }

    fn access(&mut self, core: usize, line: u64, write: bool) -> (Found, Option<(u64, bool)>) {
        let own = self.l2[core].touch(line).map(|state| {
            let may = !write || *state != SHARED;
            *state = if write && may { MODIFIED } else { *state };
            (may, *state)
        });
        if let Some((true, state)) = own {
            self.fill_l1(core, line, state);
            return (Found::L2, None);
        }
        let (found, evicted) = self.ask(core, line, write);
        let alone = self.cores().all(|other| other == core || self.l2[other].peek(line).is_none());
        let state = match (write, alone) {
            (true, _) => MODIFIED,
            (false, true) => EXCLUSIVE,
            _ => SHARED,
        };
        if own.is_some() {
            *self.l2[core].touch(line).expect("it is there") = state;
        } else if let Some((out, below)) = self.l2[core].insert(line, state) {
            let above = self.l1[core].remove(out);
            if above != 0 {
                self.leaves_l1(core, out);
            }
            if above == MODIFIED || below == MODIFIED {
                self.came_down.insert((CoreId(core as u8), Line(out)));
                *self.llc.peek(out).expect("it includes the others") = 1;
            }
        }
        match self.l1[core].touch(line) {
            Some(held) => *held = state,
            None => self.fill_l1(core, line, state),
        }
        (found, evicted)
    }

    fn fill_l1(&mut self, core: usize, line: u64, state: u64) {
        if let Some((out, changed)) = self.l1[core].insert(line, state) {
            self.leaves_l1(core, out);
            let below = self.l2[core].peek(out).expect("it includes the first");
            *below = changed.max(*below);
        }
    }

    /// Asks the last level and the cores that have the line, or makes room if no cache has it.
    fn ask(&mut self, core: usize, line: u64, write: bool) -> (Found, Option<(u64, bool)>) {
        if self.llc.touch(line).is_none() {
            let out = self.llc.insert(line, 0).map(|(out, dirty)| {
                let mut changed = dirty == 1;
                self.cores().for_each(|core| changed |= self.take_from(core, out));
                (out, changed)
            });
            return (Found::Memory, out);
        }
        let mut first = None;
        for other in self.cores().filter(|other| *other != core) {
            let Some(state) = self.l2[other].peek(line).map(|state| *state) else { continue };
            if !write && state == SHARED {
                continue;
            }
            first.get_or_insert(CoreId(other as u8));
            let changed = match write {
                true => self.take_from(other, line),
                false => self.take(other, line, Some(SHARED)),
            };
            if changed {
                self.came_down.insert((CoreId(other as u8), Line(line)));
                *self.llc.peek(line).expect("it is there") = 1;
            }
        }
        (first.map_or(Found::Llc, Found::Elsewhere), None)
    }

    fn clean(&mut self, line: u64) -> bool {
        let Some(dirty) = self.llc.peek(line).map(std::mem::take) else { return false };
        let mut changed = dirty == 1;
        self.cores().for_each(|core| changed |= self.take(core, line, Some(EXCLUSIVE)));
        changed
    }

    fn take_out(&mut self, line: u64) -> bool {
        let Some(dirty) = self.llc.peek(line).map(std::mem::take) else { return false };
        let mut changed = dirty == 1;
        self.cores().for_each(|core| changed |= self.take_from(core, line));
        self.llc.remove(line);
        changed
    }

    fn lower(&mut self, line: u64) -> bool {
        let mut changed = false;
        self.cores().for_each(|core| changed |= self.take(core, line, Some(EXCLUSIVE)));
        if changed {
            *self.llc.peek(line).expect("it includes the others") = 1;
        }
        changed
    }

    fn dirty_lines(&self) -> Vec<Line> {
        let private = self.l1.iter().chain(&self.l2).flat_map(|level| level.modified(MODIFIED));
        let lines: BTreeSet<u64> = private.chain(self.llc.modified(1)).collect();
        lines.into_iter().map(Line).collect()
    }
}

/// Returns caches and a reference of the same sizes, which follow from `seed`.
fn both(seed: u64) -> (Caches, Reference) {
    let of =
        |index: u64, choices: &[u64]| choices[(mix(seed ^ index) % choices.len() as u64) as usize];
    let cores = of(0, &[1, 2, 3, 64]);
    let sizes = [(of(1, &[1, 2, 3]), of(2, &[1, 2])), (of(3, &[6, 7]), of(4, &[1, 2, 3]))];
    let [l1, l2] = sizes;
    let llc = (of(5, &[7, 8]), of(6, &[3, 4]));
    let mut config = Config::default();
    (config.l1d.size, config.l1d.assoc) = (64 * l1.0 * l1.1, l1.1);
    (config.l2.size, config.l2.assoc) = (64 * l2.0 * l2.1, l2.1);
    (config.llc.size, config.llc.assoc) = (64 * llc.0 * llc.1, llc.1);
    assert_eq!(config.check(), Ok(()));
    let level = |(sets, ways)| Level::new(sets, ways);
    let caches = Caches::new(cores as u8, &config, Watched { l1: true, l2: true });
    let private = |size| (0..cores).map(|_| level(size)).collect();
    let (left, came_down) = (BTreeSet::new(), BTreeSet::new());
    let (l1, l2) = (private(l1), private(l2));
    (caches, Reference { l1, l2, llc: level(llc), left, came_down })
}

#[test]
fn caches_do_what_lists_do() {
    for seed in 0..400 {
        let (mut caches, mut reference) = both(mix(seed));
        for turn in 0..1_000 {
            let random = mix(seed << 32 ^ turn);
            let core = (random >> 40) as usize % reference.l1.len();
            let (line, write) = (random % 40, random >> 20 & 3 == 0);
            let id = CoreId(core as u8);
            let told = match random >> 8 & 15 {
                0 | 1 if random >> 12 & 1 == 0 => {
                    assert_eq!(caches.clean(Line(line)), reference.clean(line));
                    continue;
                }
                0 | 1 => {
                    assert_eq!(caches.take_out(Line(line)), reference.take_out(line));
                    continue;
                }
                2 => {
                    assert_eq!(caches.lower(Line(line)), reference.lower(line));
                    continue;
                }
                _ if write => caches.hit_to_write(id, Line(line)),
                _ => caches.hit(id, Line(line)),
            };
            let hit = match reference.l1[core].touch(line) {
                Some(state) if !write || *state != SHARED => {
                    *state = if write { MODIFIED } else { *state };
                    true
                }
                _ => false,
            };
            assert_eq!(told, hit, "seed {seed}, turn {turn}");
            if !hit {
                let Access { found, evicted } = caches.access(id, Line(line), write);
                let evicted = evicted.map(|(line, dirty)| (line.0, dirty));
                let own = reference.access(core, line, write);
                assert_eq!((found, evicted), own, "seed {seed}, turn {turn}");
            }
            assert_eq!(caches.dirty_lines(), reference.dirty_lines(), "seed {seed}, turn {turn}");
        }
        let (mut left, mut came_down) = (Vec::new(), Vec::new());
        caches.departures(&mut left);
        caches.lowered(&mut came_down);
        assert_eq!(BTreeSet::from_iter(left), reference.left);
        assert_eq!(BTreeSet::from_iter(came_down), reference.came_down);
    }
}
