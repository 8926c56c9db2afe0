//! The workloads, by name. Adding one is a file, a `mod` line and a line in [`ALL`].
//!
//! A program draws its random numbers on the host, at no simulated cost, as if its operations had
//! been drawn before the measured region.

// The modules that workloads share, in the order in which to read them.
pub mod choices;
pub mod rng;
pub mod spelling;
pub mod heap;
mod marks;
pub mod walk;
pub mod properties;
pub mod keyed;
mod nodes;
mod numbers;
pub mod pmembench;
mod slots;
// Over slots and the structures of `hash`, `btree` and `bplustree`.
pub mod index;

// The workloads.
pub mod array;
pub mod bplustree;
pub mod btree;
pub mod ctree;
pub mod echo;
pub mod hash;
pub mod hashmap;
pub mod logcache;
pub mod memcached;
pub mod probe;
pub mod queue;
pub mod rbtree;
pub mod replay;
pub mod scribble;
pub mod sdg;
pub mod sps;
pub mod sqlite;
pub mod tpcc;
pub mod vacation;
pub mod ycsb;

use model::params::{Field, Params};
use model::workload::{About, Declared, Reopens, Site, Step, Workload};

/// A workload as the registry knows it.
pub struct Entry {
    /// The description of the workload.
    pub about: About,
    /// Its parameters.
    pub fields: &'static [Field],
    /// The flag that names the file that it reads, if it reads one.
    pub script: Option<&'static str>,
    /// Whether `all` workloads of a comparison have it among them.
    pub in_all: bool,
    /// Whether it can go on from the image that a power failure left.
    pub reopens: Reopens,
    /// Makes it, with the given parameters (known to exist and to be within their limits) in place
    /// of the defaults.
    pub make: Make,
}

/// A function that makes a workload from settings and a site.
pub type Make = fn(&[(String, u64)], &Site) -> Step<Box<dyn Workload>>;

/// The workloads, in the order of their names. A static and not a constant, so that they are
/// compiled here, and not once more in each crate that names this.
pub static ALL: &[Entry] = &[
    entry::<array::Array>(),
    entry::<bplustree::BPlusTree>(),
    entry::<btree::BTree>(),
    entry::<ctree::CTree>(),
    entry::<echo::Echo>(),
    entry::<hash::Hash>(),
    entry::<hashmap::HashMap>(),
    entry::<logcache::LogCache>(),
    entry::<memcached::Memcached>(),
    entry::<probe::Probe>(),
    entry::<queue::Queue>(),
    entry::<rbtree::RbTree>(),
    entry::<replay::Replay>(),
    entry::<scribble::Scribble>(),
    entry::<sdg::Sdg>(),
    entry::<sps::Sps>(),
    entry::<sqlite::Sqlite>(),
    entry::<tpcc::Tpcc>(),
    entry::<vacation::Vacation>(),
    entry::<ycsb::Ycsb>(),
];

const fn entry<W: Declared>() -> Entry {
    Entry {
        about: W::ABOUT,
        fields: W::Params::FIELDS,
        script: W::SCRIPT,
        in_all: W::IN_ALL,
        reopens: W::REOPENS,
        make: make::<W>,
    }
}

fn make<W: Declared>(settings: &[(String, u64)], site: &Site) -> Step<Box<dyn Workload>> {
    Ok(Box::new(W::new(&params(settings), site)?))
}

/// Returns parameters of which these are set, and the others at their defaults.
fn params<P: Params>(settings: &[(String, u64)]) -> P {
    let mut params = P::default();
    settings.iter().for_each(|(name, value)| params.set(name, *value));
    params
}
