//! A trace in memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// What a thread did. Addresses are those of one copy: from 0 on in persistent memory, and from
/// [`DRAM_BASE`](model::units::DRAM_BASE) on in volatile memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Load {
        at: u64,
        bytes: u16,
    },
    /// A store of 1 to 8 bytes that lie in one word, low first.
    Store {
        at: u64,
        value: u64,
        bytes: u8,
    },
    /// The same with a value that is new each time.
    StoreNew {
        at: u64,
        bytes: u8,
    },
    StorePastCaches {
        at: u64,
        value: u64,
    },
    /// Write a line back.
    Flush {
        at: u64,
    },
    Order,
    Durable,
    /// The program tells the world how far it has come.
    Mark,
    Work(u64),
    Begin {
        abortable: bool,
    },
    Commit,
    Abort,
    Lock(u32),
    Unlock(u32),
    /// The thread waits until turns have been passed on so many times.
    TakeTurn(u64),
    /// Another thread goes on.
    PassTurn,
}

/// Where in the program places of a file come from. A program has few such texts, and a file names
/// one of them in each of its millions of places.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: Vec<String>,
    /// Where among the texts each of them is.
    known: BTreeMap<String, u32>,
    /// Places in order, each with its text.
    places: Vec<(usize, u32)>,
}

impl Sources {
    /// A place behind those before comes from there.
    pub fn add(&mut self, place: usize, text: &str) {
        debug_assert!(self.places.last().is_none_or(|(last, _)| *last < place), "in order");
        let number = self.known.get(text).copied().unwrap_or_else(|| {
            let number = self.texts.len() as u32;
            self.texts.push(text.to_owned());
            self.known.insert(text.to_owned(), number);
            number
        });
        self.places.push((place, number));
    }

    /// Where a place comes from, if the file says so.
    pub fn get(&self, place: usize) -> Option<&str> {
        let index = self.places.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&self.texts[self.places[index].1 as usize])
    }
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// What a place in its file is called.
    pub unit: &'static str,
    /// Where in the program what is in a place comes from, if the file says so.
    pub sources: Sources,
    /// Bytes of persistent and of volatile memory that a copy takes, whole lines and whole pages.
    pub persistent: u64,
    pub volatile: u64,
    /// Threads go on in the order of the file, which is how it was when they were recorded.
    pub is_interleaved: bool,
    /// Locks of a copy.
    pub locks: u32,
    /// Where the program's persistent memory lies in it; nowhere else, if it has no parts.
    pub regions: Vec<Region>,
    /// What was done before measuring begins.
    pub before: Vec<Op>,
    pub threads: Vec<Thread>,
}

/// Persistent memory of the traced program, and where it begins in a copy's.
#[derive(Clone, Debug)]
pub struct Region {
    pub from: Range<u64>,
    pub to: u64,
}

/// So many places are named, where there are several.
const PLACES_TOLD: usize = 3;

impl Trace {
    /// Places in the file as they are told, with where in the program they come from.
    pub fn told(&self, places: &[usize]) -> String {
        let source = |place: &usize| self.sources.get(*place);
        let first = places.first().and_then(source);
        let common = first.filter(|_| places.iter().all(|place| source(place) == first));
        let from = |source: Option<&str>| source.map_or(String::new(), |from| format!(" ({from})"));
        let each = places.iter().take(PLACES_TOLD).map(|place| match common {
            Some(_) => place.to_string(),
            None => format!("{place}{}", from(source(place))),
        });
        let more = match places.len().saturating_sub(PLACES_TOLD) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let plural = if places.len() == 1 { "" } else { "s" };
        let each: Vec<String> = each.collect();
        format!("{}{plural} {}{more}{}", self.unit, each.join(", "), from(common))
    }
}

/// What one thread did.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub ops: Vec<Op>,
    /// Where in the file each of them is.
    pub places: Vec<usize>,
    /// What it tells the world, mark by mark.
    pub marks: Vec<String>,
    /// The parts of which each has one transaction, with what comes before it, and all of `ops`.
    pub parts: Vec<Range<usize>>,
}

impl Thread {
    /// What a thread did, in parts. One that has no transaction is a part with one that stores
    /// nothing, which counts how often the thread was done.
    pub fn of(mut ops: Vec<Op>, mut places: Vec<usize>, marks: Vec<String>) -> Thread {
        let ends = |op: &Op| matches!(op, Op::Commit | Op::Abort);
        if !ops.iter().any(ends) {
            ops.extend([Op::Begin { abortable: false }, Op::Commit]);
            let end = places.last().copied().unwrap_or_default();
            places.extend([end; 2]);
        }
        let mut parts = Vec::new();
        let (mut start, mut ended) = (0, false);
        for (index, op) in ops.iter().enumerate() {
            // Behind a transaction locks are given back at once, and the like.
            if ended && matches!(op, Op::Begin { .. } | Op::Lock(_)) {
                parts.push(start..index);
                (start, ended) = (index, false);
            }
            ended |= ends(op);
        }
        if ended || parts.is_empty() {
            parts.push(start..ops.len());
        } else if let Some(last) = parts.last_mut() {
            last.end = ops.len();
        }
        Thread { ops, places, marks, parts }
    }
}
