//! `memcached`: the cache of that name in persistent memory, under memslap, as WHISPER ports it and
//! SSP-19 runs it: items in slabs, found by a hash table, evicted from lists in order of their use.
//!
//! `slabs.rs` has the sizes of chunks and the pages that they are carved from, `item.rs` the bytes
//! of an item, `server.rs` the operations of commands on them, `calls.rs` a command's calls, and
//! `check.rs` the invariants.
//! The model is memcached 1.2.4. Its data in ordinary memory that a restart would need (lists, slab
//! classes) are persistent here. Left out are the socket, parsing, and expiry.
//!
//! A command is one transaction, during which no other client sees an item, so there are no
//! reference counts. In WHISPER's port each call that took `cache_lock` is a transaction
//! (`transactions=calls`): a SET allocates, links, and drops its reference, and a GET finds,
//! updates, and drops its reference. References are counted in persistent memory there, so after a
//! power failure clients first drop those that were held (ours: otherwise the items would stay for
//! ever).
//!
//! Each core is a client with a window of keys. A SET adds a new key to its window, and the oldest
//! is no longer asked for; the server keeps it until it needs the room. A GET asks for a key of the
//! window, which may be gone. All cores use one server behind one lock (1.2.4's `cache_lock`), or
//! each has a server of its own. The commands that fill a server also double its hash table, and a
//! doubling that is then under way is completed before anything is measured.

mod calls;
mod check;
mod item;
mod server;
mod slabs;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use model::image::Image;
use model::units::CoreId;
use model::workload::{About, Declared, LockId, Pm, Program, Reopens, Site, Step, Stop, Workload};

use crate::choices::Sharing;
use crate::heap::{Alignment, Heap};
use crate::keyed::{OPERATION_WORK, Plan, Seen, Stamps, Supply, check_multiple_of_8, locked};
use crate::rng::Random;
use crate::walk::Walk;
use calls::Call;
use item::Header;
use server::{Server, Set};
use slabs::{Growth, Shape};

/// The default number of keys of a client's window (memaslap: 10,000).
const WINDOW: u64 = 10_000;
/// The first bit of the core's number in a key's number.
const CORE_SHIFT: u32 = 40;

model::params! {
    /// Parameters of `memcached`; the defaults are SSP-19's mix, and WHISPER's sizes.
    pub struct MemcachedParams {
        /// Items at the start, over all cores, which are the windows of the clients; 0 means as
        /// many as the machine says, 10,000 for each core at most (memaslap's window).
        items = 0 in 0..=1_000_000_000;
        /// Whether a command is one transaction, or each of its calls that took `cache_lock` is, as
        /// in WHISPER's port. A value is then stored between two of them, as no part of any, and a
        /// power failure may leave it torn: the port flushes nothing either.
        transactions: Transactions = Command;
        /// Whether all cores are clients of one server behind one lock, as in memcached 1.2.4, or
        /// each has a server of its own and takes no lock.
        shared: Sharing = Shared;
        /// SETs in a hundred commands; the others are GETs (SSP-19: 90; WHISPER: 5).
        set_percent = 90 in 0..=100;
        /// SETs in a hundred that give a key of the window a new value; the others add a key
        /// (memaslap: 0, from memory).
        overwrite_percent = 0 in 0..=100;
        /// Bytes of a key, a multiple of 8 (WHISPER: 16).
        key = 16 in 8..=248;
        /// Bytes of a value, a multiple of 8 (WHISPER: 64, 128, 256 and 512, one after the other).
        value = 64 in 8..=4096;
        /// Whether values have that one size, or one, two, four or eight times as many bytes.
        sizes: Sizes = One;
        /// Bytes of a slab page; 0 means memcached's 1 MiB, or less where items are so few that
        /// they would not fill four of them (ours).
        page = 0 in 0..=1 << 20;
        /// How a page is carved: a chunk when it is needed, as in 1.2.4, or all at once into the
        /// list of free chunks, as in later versions.
        carve: Carve = Lazily;
        /// The most that slab pages take, in percent of what the items at the start take; beyond it
        /// a new item evicts an old one. (memcached has 64 MiB, far more than windows fill. Ours,
        /// so that a run first carves pages and then evicts.)
        memory_percent = 125 in 10..=10_000;
        /// Buckets of the hash table at the start, rounded up to a power of two; 0 means 65,536
        /// (memcached's hashpower 16), or fewer where there are fewer items.
        buckets = 0 in 0..=1 << 32;
        /// How the hash table doubles when it has three items for two buckets: a bucket with every
        /// command, as in memcached, in one transaction, or never.
        growth: Growth = Gradual;
        /// Commands of a client after which a GET moves an item to the head of its list. memcached
        /// has 60 seconds there; ours is more than a run of a usual length.
        update_interval = 1000000 in 1..=1 << 31;
    }
}

model::choices! {
    /// What is one transaction.
    pub enum Transactions {
        /// A command.
        Command = "command",
        /// Each call of a command that took `cache_lock`.
        Calls = "calls",
    }

    /// How many sizes values have.
    pub enum Sizes { One = "one", Four = "four" }

    /// When the chunks of a page are carved.
    pub enum Carve {
        /// Each when it is needed.
        Lazily = "lazily",
        AtOnce = "at-once",
    }
}

/// The workload.
#[derive(Debug)]
pub struct Memcached {
    params: MemcachedParams,
    plan: Plan,
    shape: Arc<Shape>,
    supplies: Vec<Supply>,
    servers: Vec<Server>,
    /// The state in which each core's client begins.
    clients: Vec<After>,
}

/// The contents of servers.
#[derive(Default)]
struct Contents {
    /// The blocks that their roots reach, and their stamps.
    seen: Seen,
    items: Vec<Header>,
    /// The chunk of each reference, with the core whose client is to drop it.
    held: Vec<(usize, u64)>,
}

/// The state of a client after its earlier lives.
#[derive(Clone, Debug)]
struct After {
    /// The oldest key of the window.
    oldest: u64,
    /// Commands so far, which are its time.
    commands: u64,
    /// The items with references left by a power failure that this client is to drop.
    held: Vec<u64>,
}

impl Declared for Memcached {
    const ABOUT: About = About {
        name: "memcached",
        summary: "memcached (WHISPER): slabs, a hash table and lists in order of use, SET and GET",
        source: "memcached 1.2.4; WHISPER-17; SSP-19",
        file: file!(),
        shared: true,
    };
    const REOPENS: Reopens = Reopens::Always;
    type Params = MemcachedParams;

    fn new(params: &MemcachedParams, site: &Site) -> Step<Memcached> {
        for name in ["key", "value"] {
            check_multiple_of_8(params, name)?;
        }
        let most = WINDOW * u64::from(site.cores);
        let items = if params.items == 0 { site.items.min(most) } else { params.items };
        let plan = Plan::new(items, params.shared, site);
        let shape = Arc::new(Shape::new(params, plan.items)?);
        let supplies = Supply::of_site(site, Alignment::Line);
        let after = |oldest| After { oldest, commands: 0, held: Vec::new() };
        let clients = (0..site.cores).map(|core| after(first_key(CoreId(core)))).collect();
        let params = params.clone();
        Ok(Memcached { params, plan, shape, supplies, servers: Vec::new(), clients })
    }
}

impl Memcached {
    /// How many cores use one server.
    fn sharers(&self) -> u64 {
        u64::from(self.plan.site.cores / self.plan.structures)
    }

    /// The program of a core.
    fn client(&self, core: CoreId) -> Client {
        let index = usize::from(core.0);
        let Supply { heap, stamps } = self.supplies[index].clone();
        let After { oldest, commands, held } = self.clients[index].clone();
        Client {
            server: self.servers[self.plan.structure_of(core)].clone(),
            params: self.params.clone(),
            heap,
            stamps,
            random: self.plan.random(core, Memcached::ABOUT.name),
            oldest,
            window: self.window(core),
            commands,
            lock: self.plan.lock,
            next: None,
            held,
        }
    }

    /// Keys in the window of a core: its share of the items at the start, and one at least.
    fn window(&self, core: CoreId) -> u64 {
        let (items, sharers) = (self.plan.items, self.sharers());
        let rank = u64::from(core.0) % sharers;
        (items / sharers + u64::from(rank < items % sharers)).max(1)
    }
}

/// The number of a core's first key.
fn first_key(core: CoreId) -> u64 {
    u64::from(core.0) << CORE_SHIFT
}

impl Workload for Memcached {
    fn populate(&mut self, pm: &mut Pm<'_>) -> Step {
        for index in 0..usize::from(self.plan.structures) {
            let heap = &mut self.supplies[index].heap;
            let server = Server::create(Arc::clone(&self.shape), pm, heap)?;
            let mut random = self.plan.filling(index, Memcached::ABOUT.name);
            for item in 0..self.plan.items {
                let core = self.plan.supplier(index, item);
                let number = first_key(CoreId(core as u8)) + item / self.sharers();
                let Supply { heap, stamps } = &mut self.supplies[core];
                let set = Set {
                    number,
                    size: self.shape.draw_size(&mut random),
                    stamp: stamps.issue(),
                    now: 0,
                };
                server.set(pm, heap, set)?;
                server.move_bucket(pm, heap);
            }
            server.move_all(pm, &mut self.supplies[index].heap);
            self.servers.push(server);
        }
        Ok(())
    }

    fn program(&self, core: CoreId) -> Step<Box<dyn Program>> {
        Ok(Box::new(self.client(core)))
    }

    fn check(&self, image: &Image<'_>) -> Result<(), String> {
        self.look(image).map(|_| ())
    }

    /// Sets each client's window to end with the newest of its keys that is there, and its time to
    /// the latest use of an item. Left references are spread over the clients, which drop them.
    fn reopen(&mut self, image: &Image<'_>, seed: u64) -> Result<(), String> {
        let Contents { seen, items, held } = self.look(image)?;
        for core in (0..self.plan.site.cores).map(CoreId) {
            let keys = first_key(core)..first_key(core) + (1 << CORE_SHIFT);
            let own = items.iter().map(|item| item.number).filter(|number| keys.contains(number));
            let end = own.max().map_or(keys.start, |newest| newest + 1);
            let commands = items.iter().map(|item| item.now).max().unwrap_or(0);
            let oldest = end.saturating_sub(self.window(core)).max(keys.start);
            let held = Vec::new();
            self.clients[usize::from(core.0)] = After { oldest, commands, held };
        }
        for (core, chunk) in held {
            self.clients[core].held.push(chunk);
        }
        self.supplies = self.plan.go_on(seed, Alignment::Line, &seen);
        Ok(())
    }
}

impl Memcached {
    /// Checks every server, and returns their contents.
    fn look(&self, image: &Image<'_>) -> Result<Contents, String> {
        let Contents { mut seen, mut items, mut held } = Contents::default();
        for (index, server) in self.servers.iter().enumerate() {
            let mut walk = Walk::new(image, &self.plan.range(index));
            let found = check::check(server, &mut walk, self.sharers())
                .map_err(|error| format!("server {index}: {error}"))?;
            items.extend(found.items);
            let of = |(nth, chunk)| (self.plan.supplier(index, nth), chunk);
            held.extend((0..).zip(found.held).map(of));
            seen.reached.extend(walk.reached());
        }
        seen.stamps.extend(items.iter().map(|item| item.version));
        Ok(Contents { seen, items, held })
    }
}

/// A command.
#[derive(Clone, Copy, Debug)]
enum Command {
    Set(Set),
    Get(u64),
}

/// The program of one core.
struct Client {
    server: Server,
    params: MemcachedParams,
    heap: Heap,
    stamps: Stamps,
    random: Random,
    /// The oldest key of the window.
    oldest: u64,
    window: u64,
    commands: u64,
    lock: Option<LockId>,
    /// The next call of a command whose calls are transactions.
    next: Option<Call>,
    /// The items whose references are to be dropped first.
    held: Vec<u64>,
}

impl Client {
    fn draw(&mut self) -> Command {
        self.commands += 1;
        if self.random.below(100) >= self.params.set_percent {
            return Command::Get(self.key());
        }
        let number = if self.random.below(100) < self.params.overwrite_percent {
            self.key()
        } else {
            self.oldest += 1;
            self.oldest + self.window - 1
        };
        Command::Set(Set {
            number,
            size: self.server.shape().draw_size(&mut self.random),
            stamp: self.stamps.issue(),
            now: self.commands,
        })
    }

    /// A key of the window.
    fn key(&mut self) -> u64 {
        self.oldest + self.random.below(self.window)
    }

    fn serve(&mut self, pm: &mut Pm<'_>, command: Command) -> Step {
        let (server, heap, now) = (&self.server, &mut self.heap, self.commands);
        locked(pm, self.lock, |pm| {
            pm.tx(|pm| {
                match command {
                    Command::Set(set) => server.set(pm, heap, set)?,
                    Command::Get(number) => _ = server.get(pm, number, now)?,
                }
                server.move_bucket(pm, heap);
                Ok(())
            })
        })
    }
}

impl Program for Client {
    fn transaction(&mut self, pm: &mut Pm<'_>) -> Step {
        if self.server.shape().by_calls {
            return self.call(pm);
        }
        let command = self.draw();
        pm.work(OPERATION_WORK);
        self.serve(pm, command)
    }
}
