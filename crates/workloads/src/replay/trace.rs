//! A trace in memory.

use std::collections::BTreeMap;
use std::ops::Range;

/// An operation of a thread, with addresses of one copy: from 0 on in persistent memory, and from
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
    /// A store of a value that is new each time.
    StoreNew {
        at: u64,
        bytes: u8,
    },
    StorePastCaches {
        at: u64,
        value: u64,
    },
    /// A flush of a line.
    Flush {
        at: u64,
    },
    Order,
    Durable,
    /// A mark, by which the program tells the world how far it has come.
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

/// The places in the program from which places of the file come. A program has few such texts, and
/// a file names one of them in each of its millions of places.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    texts: Vec<String>,
    /// The index of each text.
    known: BTreeMap<String, u32>,
    /// Places in order, each with its text.
    places: Vec<(usize, u32)>,
}

impl Sources {
    /// Adds the source of a place, which is after all places added before.
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

    /// Returns the source of a place, if the file has it.
    pub fn get(&self, place: usize) -> Option<&str> {
        let index = self.places.binary_search_by_key(&place, |(place, _)| *place).ok()?;
        Some(&self.texts[self.places[index].1 as usize])
    }
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The word for a place in its file.
    pub unit: &'static str,
    /// The sources of its places, as far as the file has them.
    pub sources: Sources,
    /// The bytes of persistent and of volatile memory of a copy, whole lines and whole pages.
    pub persistent: u64,
    pub volatile: u64,
    /// Whether threads go on in the order of the file, in which they were recorded.
    pub is_interleaved: bool,
    /// The number of locks of a copy.
    pub locks: u32,
    /// The regions of the program's persistent memory; empty if it has none.
    pub regions: Vec<Region>,
    /// The operations before measuring begins.
    pub before: Vec<Op>,
    pub threads: Vec<Thread>,
}

/// Persistent memory of the traced program, and where it begins in a copy's.
#[derive(Clone, Debug)]
pub struct Region {
    pub from: Range<u64>,
    pub to: u64,
}

/// The most places that are named if there are several.
const PLACES_TOLD: usize = 3;

impl Trace {
    /// Returns places in the file as text, with their sources in the program.
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

/// The operations of one thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub ops: Vec<Op>,
    /// The place of each operation in the file.
    pub places: Vec<usize>,
    /// The texts of its marks.
    pub marks: Vec<String>,
    /// The parts of `ops`, each with one transaction and the operations around it, or with all the
    /// transactions that a lock is held over: a run may end behind any part.
    pub parts: Vec<Range<usize>>,
}

impl Thread {
    /// Splits the operations of a thread into parts. A thread without transactions is one part with
    /// a transaction that stores nothing, which counts how often the thread was done.
    pub fn of(mut ops: Vec<Op>, mut places: Vec<usize>, marks: Vec<String>) -> Thread {
        let ends = |op: &Op| matches!(op, Op::Commit | Op::Abort);
        if !ops.iter().any(ends) {
            ops.extend([Op::Begin { abortable: false }, Op::Commit]);
            let end = places.last().copied().unwrap_or_default();
            places.extend([end; 2]);
        }
        let mut parts = Vec::new();
        let (mut start, mut ended, mut held) = (0, false, 0);
        for (index, op) in ops.iter().enumerate() {
            // Unlocks and the like directly after a transaction belong to its part.
            if ended && held == 0 && matches!(op, Op::Begin { .. } | Op::Lock(_)) {
                parts.push(start..index);
                (start, ended) = (index, false);
            }
            match op {
                Op::Lock(_) => held += 1,
                Op::Unlock(_) => held -= 1,
                _ => ended |= ends(op),
            }
        }
        if ended || parts.is_empty() {
            parts.push(start..ops.len());
        } else if let Some(last) = parts.last_mut() {
            last.end = ops.len();
        }
        Thread { ops, places, marks, parts }
    }
}
