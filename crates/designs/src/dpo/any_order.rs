//! Every order in which buffers and queues may drain by their own rules, whatever timing says.

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, Line, PerCore};

use super::buffer::{Entry, What};
use super::queue::{Controllers, Ordered};
use super::{Dpo, DpoEvent};

/// What holds for everything that comes to the controllers no later than a given entry, in an order
/// that is being tried.
#[derive(Clone, Copy)]
struct Before {
    /// Controllers whose writes are all durable.
    durable: Controllers,
    /// Controllers that may start the writes that follow: those that have passed every marker.
    passed: Controllers,
}

impl Before {
    fn and(self, other: Before) -> Before {
        Before { durable: self.durable & other.durable, passed: self.passed & other.passed }
    }
}

/// An order that is being tried.
struct Tried<'a> {
    dpo: &'a Dpo,
    arrived: &'a mut dyn FnMut() -> bool,
    /// Lines with a write that is not durable.
    left: Vec<Line>,
    writes: Vec<Write>,
    /// Which writes are durable, in the order in which the writes are looked at.
    durable: Vec<bool>,
    /// How many writes have been looked at.
    seen: usize,
}

impl Tried<'_> {
    /// Tries a write that comes behind `before`: it is durable or not, if the rules allow it to be.
    fn write(&mut self, write: Write, controller: u8, before: Before) -> Before {
        let (one, index) = (1 << controller, self.seen);
        self.seen += 1;
        if index == self.durable.len() {
            self.durable.push(false);
        }
        if self.durable[index] {
            return before;
        }
        let follows = self.dpo.rules.line_in_order && self.left.contains(&write.line);
        if before.passed & one != 0 && !follows && (self.arrived)() {
            self.durable[index] = true;
            self.writes.push(write);
            return before;
        }
        self.left.push(write.line);
        Before { durable: before.durable & !one, ..before }
    }

    fn marker(&self, before: Before) -> Before {
        let rules = &self.dpo.rules;
        let all = self.dpo.queue.all();
        let passed = match before.durable {
            _ if !rules.keep_markers => all,
            durable if !rules.all_controllers_report => durable,
            durable if durable == all => all,
            _ => 0,
        };
        Before { passed: before.passed & passed, ..before }
    }
}

impl Dpo {
    /// Tries the sets of writes that could be durable. Entries that have not come to the
    /// controllers come there in some order that keeps each buffer's order and follows dependences.
    /// A set of writes can be durable if it has, with each of its members, all writes before a
    /// marker that comes before the member in every such order. (The markers that come before
    /// members, and the writes before those markers, may come first: all of those writes are in the
    /// set. What then has to come before other members has no marker.)
    pub(super) fn any_order(
        &self,
        below: &Below<DpoEvent>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        let evicted = match self.rules.drop_evictions {
            true => Vec::new(),
            false => crate::orders::evictions(below, arrived),
        };
        let (left, durable) = (Vec::new(), Vec::new());
        let mut tried = Tried { dpo: self, arrived, left, writes: evicted, durable, seen: 0 };
        self.try_all(below, &mut tried);
        if !self.rules.line_in_order {
            // A write that was passed over comes after younger ones.
            (tried.left, tried.seen) = (Vec::new(), 0);
            self.try_all(below, &mut tried);
        }
        tried.writes
    }

    /// Looks once at every write that is not durable, behind all that comes before it.
    fn try_all(&self, below: &Below<DpoEvent>, tried: &mut Tried<'_>) {
        let all = self.queue.all();
        let mut there = Before { durable: all, passed: all };
        for queued in &self.queue.entries {
            there = match &queued.what {
                Ordered::Write { write, controller, .. } => {
                    tried.write(write.clone(), *controller, there)
                }
                Ordered::Marker(_) => tried.marker(there),
            };
        }
        // What holds for each entry that has not come to the controllers, in the order in which the
        // entries were made: each depends on older ones.
        let mut known: PerCore<Vec<(&Entry, Before)>> =
            PerCore::new(self.buffers.cores(), |_| Vec::new());
        for (core, entry) in self.undrained() {
            let before = there.and(self.before(core, entry, &known, there));
            let upto = match &entry.what {
                What::Write { line, data, class, .. } => {
                    let controller = below.memory.controller_of(*line) as u8;
                    tried.write(Write::whole(*line, *data, *class), controller, before)
                }
                What::Fence => tried.marker(before),
            };
            known[core].push((entry, upto));
        }
    }

    /// What holds for all entries that have to come before a given one.
    fn before(
        &self,
        core: CoreId,
        entry: &Entry,
        known: &PerCore<Vec<(&Entry, Before)>>,
        there: Before,
    ) -> Before {
        let passes = !self.rules.first_in_first_out && !matches!(entry.what, What::Fence);
        let is_before = |other: &Entry| !(passes && matches!(other.what, What::Fence));
        let mut own = known[core].iter().rev();
        let mut before = own.find(|(other, _)| is_before(other)).map_or(there, |(_, upto)| *upto);
        if self.rules.wait_for_dependences {
            for (on, id) in &entry.after {
                let mut theirs = known[*on].iter().rev();
                if let Some((_, upto)) = theirs.find(|(other, _)| other.id <= *id) {
                    before = before.and(*upto);
                }
            }
        }
        before
    }
}
