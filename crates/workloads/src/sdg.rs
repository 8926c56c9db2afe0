//! `sdg`: edges of a large graph, kept as adjacency lists, are inserted and deleted ("scalable data
//! generation graph" in the papers' tables).
//!
//! ```text
//! root record, 64 bytes        vertex, 16 bytes            edge, 32 bytes
//!   0  address of the vertices   0  first edge, or 0         0  the vertex that it leads to
//!   8  number of vertices        8  number of edges          8  next edge of the list, or 0
//!                                                           16  edge before it, or 0
//!                                                           24  weight: who inserted it, and when
//! ```
//!
//! A transaction looks for an edge in the list of the vertex that it leaves; it unlinks the edge if
//! it is there, and links a new one at the head otherwise. In an undirected graph it does the same
//! in the list of the other end.
//!
//! Hardly any two vertices of a large graph are joined, so a random pair would nearly always be an
//! insert. So the pairs that may be joined are drawn first, twice as many as there are edges at the
//! start, and an operation takes one of those: a delete and an insert are then equally likely, and
//! the size of the graph stays about the same. The ends are those of an R-MAT graph, as in SSCA2,
//! whose degrees have no scale; or uniform.

use std::collections::BTreeSet;

use model::image::Image;
use model::units::{CoreId, LINE_BYTES};
use model::workload::{About, Declared, LockId, Pm, Program, Ptr, Reopens, Site, Step, Workload};

use crate::heap::{Alignment, Heap};
use crate::keyed::{
    COMPARE_WORK, OPERATION_WORK, Plan, Seen, Stamps, Supply, locked, shared_params,
};
use crate::rng::{KeyDistribution, Keys, Random, mix};
use crate::walk::Walk;

const VERTEX_BYTES: u64 = 16;
const FIRST: u64 = 0;
const DEGREE: u64 = 8;

const EDGE_BYTES: u64 = 32;
const TO: u64 = 0;
const NEXT: u64 = 8;
const BEFORE: u64 = 16;
const WEIGHT: u64 = 24;

/// The cumulative shares in percent of the quarters of the matrix into which an edge of an R-MAT
/// graph falls: 55, 10, 10 and 25 (SSCA2, from memory).
const QUARTERS: [u64; 3] = [55, 65, 75];

shared_params! {
    /// Parameters of `sdg`. `items` are the edges at the start.
    pub struct SdgParams {
        /// Which of the pairs an operation takes: uniformly, 80 % of the operations on 15 % of the
        /// pairs (hot), or by YCSB's power law, scattered (zipf).
        distribution: KeyDistribution = Uniform;
        /// Edges that leave a vertex at the start, on average, if no pair is drawn twice: `items`
        /// divided by it is the number of vertices, rounded up to a power of two (ours: 16, and
        /// 64 Ki vertices with 1,048,576 items). Of pairs that are drawn twice, with R-MAT one item
        /// in ten to three in ten, there is no edge at the start.
        degree = 16 in 1..=1024;
        /// How the ends of edges are drawn: R-MAT (a few vertices have many edges), or uniformly.
        ends: Ends = Rmat;
        /// Whether an edge is in the list of the vertex that it leaves, or in those of both ends.
        edges: Edges = Directed;
        /// Where edges begin: at 16 bytes (auto, packed), or at lines.
        alignment: Alignment = Auto;
    }
}

model::choices! {
    /// How the ends of edges are drawn.
    pub enum Ends {
        /// A few vertices have many edges.
        Rmat = "rmat",
        Uniform = "uniform",
    }

    /// In whose lists an edge is.
    pub enum Edges {
        /// In that of the vertex that it leaves.
        Directed = "directed",
        /// In those of both ends.
        Undirected = "undirected",
    }
}

/// The workload.
#[derive(Debug)]
pub struct Sdg {
    params: SdgParams,
    plan: Plan,
    /// The seed of the pairs that may be joined, in all lives of a graph.
    pairs_seed: u64,
    supplies: Vec<Supply>,
    graphs: Vec<Graph>,
}

impl Declared for Sdg {
    const ABOUT: About = About {
        name: "sdg",
        summary: "a graph with adjacency lists: delete an edge if it is there, else insert it",
        source: "LOC-14, ATOM-17, DHTM-18",
        file: file!(),
        shared: false,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = SdgParams;

    fn new(params: &SdgParams, site: &Site) -> Step<Sdg> {
        let plan = Plan::of(params, site);
        let supplies = Supply::of_site(site, params.alignment);
        let (params, pairs_seed) = (params.clone(), site.seed);
        Ok(Sdg { params, plan, pairs_seed, supplies, graphs: Vec::new() })
    }
}

impl Sdg {
    fn pairs(&self, graph: usize) -> Pairs {
        let vertices = (self.plan.items / self.params.degree).max(2).next_power_of_two();
        let seed = mix(self.pairs_seed ^ mix(graph as u64));
        Pairs { seed, vertices, is_rmat: self.params.ends == Ends::Rmat }
    }

    /// Joins half of the pairs, in random order.
    fn fill(&mut self, pm: &mut Pm<'_>, index: usize) -> Step {
        let pairs = self.pairs(index);
        let is_undirected = self.params.edges == Edges::Undirected;
        let heap = &mut self.supplies[index].heap;
        let graph = Graph::create(pairs.vertices, is_undirected, pm, heap)?;
        let mut joined: Vec<u64> = (0..self.plan.items).map(|item| item * 2).collect();
        self.plan.filling(index, Sdg::ABOUT.name).shuffle(&mut joined);
        for (item, pair) in joined.into_iter().enumerate() {
            let core = self.plan.supplier(index, item as u64);
            let Supply { heap, stamps } = &mut self.supplies[core];
            // Two numbers may stand for the same pair, which is then joined and parted again.
            graph.toggle(pm, heap, pairs.pair(pair), stamps.issue())?;
        }
        self.graphs.push(graph);
        Ok(())
    }
}

impl Workload for Sdg {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        (0..usize::from(self.plan.structures)).try_for_each(|graph| self.fill(pm, graph))
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        let graph = self.plan.structure_of(core);
        let Supply { heap, stamps } = self.supplies[usize::from(core.0)].clone();
        Ok(Box::new(Toggler {
            graph: self.graphs[graph].clone(),
            pairs: self.pairs(graph),
            choice: Keys::of(self.params.distribution, 2 * self.plan.items),
            heap,
            stamps,
            random: self.plan.random(core, Sdg::ABOUT.name),
            lock: self.plan.lock,
        }))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let seen = self.look(image)?;
        let alignment = self.params.alignment;
        self.supplies = self.plan.go_on(seed, alignment, &seen);
        Ok(())
    }
}

impl Sdg {
    /// Checks every graph.
    fn look(&self, image: &Image<'_>) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for (index, graph) in self.graphs.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let told = |error| format!("graph {index}: {error}");
            for (from, to, weight) in graph.check(&mut walk).map_err(told)? {
                let (core, count) = Stamps::split(weight);
                if core >= self.supplies.len() as u64 || count == 0 {
                    let text = format!("the edge {from} -> {to} has the weight {weight:#x}");
                    return Err(told(text));
                }
                seen.stamps.push(weight);
            }
            seen.reached.extend(walk.reached());
        }
        Ok(seen)
    }
}

/// The pairs of vertices that may be joined, each by a number.
#[derive(Clone, Copy, Debug)]
struct Pairs {
    seed: u64,
    /// The number of vertices, a power of two.
    vertices: u64,
    is_rmat: bool,
}

impl Pairs {
    /// The two ends of a pair, which differ.
    fn pair(&self, number: u64) -> (u64, u64) {
        let start = mix(self.seed ^ number);
        let (mut from, mut to) = (0, 0);
        for level in 0..self.vertices.trailing_zeros() {
            let draw = mix(start.wrapping_add(u64::from(level) << 32)) % 100;
            let quarter = if self.is_rmat {
                QUARTERS.iter().filter(|&&bound| draw >= bound).count() as u64
            } else {
                draw % 4
            };
            from = from << 1 | quarter >> 1;
            to = to << 1 | quarter & 1;
        }
        // R-MAT gives low numbers many edges; a multiplication by an odd number scatters them.
        let scatter = |vertex: u64| vertex.wrapping_mul(0x9E37_79B9_7F4A_7C15) % self.vertices;
        if from == to {
            to = (to + 1) % self.vertices;
        }
        (scatter(from), scatter(to))
    }
}

/// One graph.
#[derive(Clone, Debug)]
pub struct Graph {
    root: u64,
    vertices: u64,
    is_undirected: bool,
}

impl Graph {
    /// Makes a graph without edges.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn create(
        vertices: u64,
        is_undirected: bool,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
    ) -> Step<Graph> {
        let root = heap.alloc(LINE_BYTES)?;
        let first = heap.alloc((vertices * VERTEX_BYTES).next_multiple_of(LINE_BYTES))?;
        for vertex in 0..vertices {
            let at = first.plus(vertex * VERTEX_BYTES);
            pm.store_ptr(at.plus(FIRST), Ptr::NULL);
            pm.store(at.plus(DEGREE), 0);
        }
        pm.store_ptr(root, first);
        pm.store(root.plus(8), vertices);
        Ok(Graph { root: root.address, vertices, is_undirected })
    }

    /// Deletes the edge from one vertex to another if it is there, and inserts it otherwise.
    ///
    /// # Errors
    /// When the heap is full.
    pub fn toggle(
        &self,
        pm: &mut Pm<'_>,
        heap: &mut Heap,
        (from, to): (u64, u64),
        weight: u64,
    ) -> Step {
        let ends: &[(u64, u64)] =
            if self.is_undirected { &[(from, to), (to, from)] } else { &[(from, to)] };
        let mut edge = self.find(pm, from, to);
        if edge.is_null() {
            return ends.iter().try_for_each(|&(from, to)| {
                self.link(pm, from, to, weight, heap.alloc(EDGE_BYTES)?);
                Ok(())
            });
        }
        for (index, &(from, to)) in ends.iter().enumerate() {
            if index > 0 {
                edge = self.find(pm, from, to);
            }
            self.unlink(pm, from, edge);
            heap.free(edge, EDGE_BYTES);
        }
        Ok(())
    }

    fn vertex(&self, pm: &mut Pm<'_>, vertex: u64) -> Ptr {
        pm.load_ptr(Ptr::to(self.root)).plus(vertex * VERTEX_BYTES)
    }

    /// The edge from one vertex to another, or null.
    fn find(&self, pm: &mut Pm<'_>, from: u64, to: u64) -> Ptr {
        let vertex = self.vertex(pm, from);
        let mut edge = pm.load_ptr(vertex.plus(FIRST));
        while !edge.is_null() {
            pm.work(COMPARE_WORK);
            if pm.load(edge.plus(TO)) == to {
                break;
            }
            edge = pm.load_ptr(edge.plus(NEXT));
        }
        edge
    }

    fn link(&self, pm: &mut Pm<'_>, from: u64, to: u64, weight: u64, edge: Ptr) {
        let vertex = self.vertex(pm, from);
        let first = pm.load_ptr(vertex.plus(FIRST));
        pm.store(edge.plus(TO), to);
        pm.store_ptr(edge.plus(NEXT), first);
        pm.store_ptr(edge.plus(BEFORE), Ptr::NULL);
        pm.store(edge.plus(WEIGHT), weight);
        if !first.is_null() {
            pm.store_ptr(first.plus(BEFORE), edge);
        }
        pm.store_ptr(vertex.plus(FIRST), edge);
        let degree = pm.load(vertex.plus(DEGREE));
        pm.store(vertex.plus(DEGREE), degree + 1);
    }

    fn unlink(&self, pm: &mut Pm<'_>, from: u64, edge: Ptr) {
        let vertex = self.vertex(pm, from);
        let (next, before) = (pm.load_ptr(edge.plus(NEXT)), pm.load_ptr(edge.plus(BEFORE)));
        if before.is_null() {
            pm.store_ptr(vertex.plus(FIRST), next);
        } else {
            pm.store_ptr(before.plus(NEXT), next);
        }
        if !next.is_null() {
            pm.store_ptr(next.plus(BEFORE), before);
        }
        let degree = pm.load(vertex.plus(DEGREE));
        pm.store(vertex.plus(DEGREE), degree - 1);
    }

    /// Checks every list and returns the edges, each with its weight, in order.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self, walk: &mut Walk<'_>) -> Result<Vec<(u64, u64, u64)>, String> {
        walk.visit(self.root, LINE_BYTES, "the root record")?;
        let (first, vertices) = (walk.word(self.root), walk.word(self.root + 8));
        if vertices != self.vertices {
            return Err(format!("it has {vertices} vertices instead of {}", self.vertices));
        }
        walk.visit(first, vertices * VERTEX_BYTES, "the array of vertices")?;
        let mut edges = BTreeSet::new();
        for vertex in 0..vertices {
            self.check_list(walk, vertex, first + vertex * VERTEX_BYTES, &mut edges)?;
        }
        if self.is_undirected {
            let twin = |&(from, to, weight): &(u64, u64, u64)| (to, from, weight);
            if let Some((from, to, _)) = edges.iter().find(|edge| !edges.contains(&twin(edge))) {
                return Err(format!("the edge {from} -> {to} is not in the list of vertex {to}"));
            }
        }
        Ok(edges.into_iter().collect())
    }

    fn check_list(
        &self,
        walk: &mut Walk<'_>,
        vertex: u64,
        at: u64,
        edges: &mut BTreeSet<(u64, u64, u64)>,
    ) -> Result<(), String> {
        let (mut edge, mut before) = (walk.word(at + FIRST), 0);
        let mut ends = BTreeSet::new();
        while edge != 0 {
            walk.visit(edge, EDGE_BYTES, "an edge")?;
            let to = walk.word(edge + TO);
            if to >= self.vertices || to == vertex {
                return Err(format!("an edge leads from vertex {vertex} to vertex {to}"));
            }
            if walk.word(edge + BEFORE) != before {
                return Err(format!(
                    "the edge {vertex} -> {to} is linked to a wrong one before it"
                ));
            }
            if !ends.insert(to) {
                return Err(format!("the edge {vertex} -> {to} is there twice"));
            }
            edges.insert((vertex, to, walk.word(edge + WEIGHT)));
            (before, edge) = (edge, walk.word(edge + NEXT));
        }
        let degree = walk.word(at + DEGREE);
        if degree != ends.len() as u64 {
            return Err(format!("vertex {vertex} has {} edges and says {degree}", ends.len()));
        }
        Ok(())
    }
}

/// The program of one core.
struct Toggler {
    graph: Graph,
    pairs: Pairs,
    choice: Keys,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    lock: Option<LockId>,
}

impl Program for Toggler {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        let pair = self.pairs.pair(self.choice.draw(&mut self.random));
        let stamp = self.stamps.issue();
        pm.work(OPERATION_WORK);
        locked(pm, self.lock, |pm| pm.tx(|pm| self.graph.toggle(pm, &mut self.heap, pair, stamp)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the description of `degree` says: pairs that are drawn twice are joined and parted.
    #[test]
    fn some_items_are_no_edges_at_the_start() {
        let lacking = |items: u64, is_rmat| {
            let vertices = (items / 16).next_power_of_two();
            let pairs = Pairs { seed: 1, vertices, is_rmat };
            let mut joined = BTreeSet::new();
            for pair in (0..items).map(|item| pairs.pair(item * 2)) {
                if !joined.remove(&pair) {
                    joined.insert(pair);
                }
            }
            1.0 - joined.len() as f64 / items as f64
        };
        for items in [12_500, 50_000, 400_000] {
            assert!(
                (0.1..0.3).contains(&lacking(items, true)),
                "{items}: {}",
                lacking(items, true)
            );
        }
        assert!(lacking(50_000, false) < 0.01);
    }
}
