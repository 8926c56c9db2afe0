//! The flushes and fences of a trace, and the trace without some of them.

use super::trace::{Op, Thread, Trace};

/// Flushes, or fences, that come from one place in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persist {
    /// The kind of operation: `flush`, `order` or `fence`.
    pub operation: &'static str,
    /// The word for a place in the file.
    pub unit: &'static str,
    /// The place of the first one in the file.
    pub place: usize,
    /// The place in the program from which they come, if the file says so; otherwise there is one.
    pub source: Option<String>,
    /// The number of their places in the file.
    pub times: u64,
}

/// Returns the name of an operation, if it is a flush or a fence.
fn operation(op: &Op) -> Option<&'static str> {
    match op {
        Op::Flush { .. } => Some("flush"),
        Op::Order => Some("order"),
        Op::Durable => Some("fence"),
        _ => None,
    }
}

impl Trace {
    /// Each place in the program from which flushes or fences come, in the order of the file.
    pub fn persists(&self) -> Vec<Persist> {
        let mut found: Vec<Persist> = Vec::new();
        let mut each: Vec<(usize, &str)> = self.threads.iter().flat_map(Thread::persists).collect();
        each.sort_unstable();
        // A flush of several lines is one persist.
        each.dedup();
        for (place, operation) in each {
            let source = self.sources.get(place);
            let is_same = |other: &&mut Persist| {
                source.is_some()
                    && other.operation == operation
                    && other.source.as_deref() == source
            };
            match found.iter_mut().find(is_same) {
                Some(other) => other.times += 1,
                None => {
                    let (unit, source) = (self.unit, source.map(str::to_owned));
                    found.push(Persist { operation, unit, place, source, times: 1 });
                }
            }
        }
        found
    }

    /// Removes the flushes or fences that come from the same place in the program as the one in
    /// this place of the file. Returns whether there is one.
    pub fn leave_out(&mut self, place: usize) -> bool {
        let Trace { sources, threads, .. } = self;
        let found = threads.iter().flat_map(Thread::persists).find(|(other, _)| *other == place);
        let Some((_, left_out)) = found else { return false };
        let source = sources.get(place);
        let comes_from_there =
            |other: usize| other == place || source.is_some() && sources.get(other) == source;
        for thread in threads {
            thread.keep(|op, place| operation(op) != Some(left_out) || !comes_from_there(place));
        }
        true
    }
}

impl Thread {
    /// Returns the places in the file of its flushes and fences, with their names.
    fn persists(&self) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        let each = self.places.iter().zip(&self.ops);
        each.filter_map(|(place, op)| Some((*place, operation(op)?)))
    }

    /// Keeps some of its operations, among them all begins and ends of transactions.
    fn keep(&mut self, stays: impl Fn(&Op, usize) -> bool) {
        let Thread { ops, places, marks, parts } = std::mem::take(self);
        self.marks = marks;
        for part in parts {
            let start = self.ops.len();
            for index in part.filter(|&index| stays(&ops[index], places[index])) {
                self.ops.push(ops[index]);
                self.places.push(places[index]);
            }
            self.parts.push(start..self.ops.len());
        }
    }
}
