//! Every order in which the persist buffers may drain by their own rules, whatever timing says.

use model::design::Below;
use model::device::Write;
use model::units::{CoreId, PerCore};

use super::buffer::{Buffer, Entry, State};
use super::{Hops, HopsEvent};

/// Which of each buffer's entries are durable, in their order, in an order that is being tried.
type Tried = PerCore<Vec<bool>>;

impl Hops {
    /// Looks at the entries twice, oldest first: an entry that may be sent by then has arrived or
    /// has not. An entry that is passed over the first time can so arrive after younger ones, if
    /// the rules let it.
    pub(super) fn any_order(
        &self,
        below: &Below<HopsEvent>,
        arrived: &mut dyn FnMut() -> bool,
    ) -> Vec<Write> {
        let durable = |entry: &Entry| entry.state == State::Durable;
        let cores = self.buffers.cores();
        let mut tried: Tried =
            PerCore::new(cores, |core| self.buffers[core].entries.iter().map(durable).collect());
        let places = self.buffers.iter().flat_map(|(core, buffer)| {
            buffer.entries.iter().enumerate().map(move |(index, entry)| (entry.stamp, core, index))
        });
        let mut places: Vec<(u64, CoreId, usize)> = places.collect();
        places.sort_unstable();
        let mut writes = Vec::new();
        if !self.rules.drop_evictions {
            writes = crate::orders::evictions(below, arrived);
        }
        for _ in 0..2 {
            for &(_, core, index) in &places {
                if !tried[core][index] && self.may_arrive(core, index, &tried) && arrived() {
                    tried[core][index] = true;
                    let Entry { line, data, mask, class, .. } = self.buffers[core].entries[index];
                    writes.push(Write { line, data, mask, class });
                }
            }
        }
        writes
    }

    /// Whether the rules let an entry be durable when those that are in `tried` are.
    fn may_arrive(&self, core: CoreId, index: usize, tried: &Tried) -> bool {
        let buffer = &self.buffers[core];
        let entry = &buffer.entries[index];
        if entry.state == State::Sent {
            return true;
        }
        let older = || buffer.entries.iter().zip(&tried[core]).take(index);
        let missing = |(_, durable): &(&Entry, &bool)| !**durable;
        let older_epoch = older().filter(missing).any(|(other, _)| other.epoch < entry.epoch);
        let same_line = older().filter(missing).any(|(other, _)| other.line == entry.line);
        let until = |on: &Buffer, tried: &[bool], until: u64| {
            on.entries.iter().zip(tried).all(|(other, durable)| *durable || other.epoch > until)
        };
        let mut waits = buffer.dependences.iter().filter(|waits| waits.epoch <= entry.epoch);
        !(self.rules.oldest_epoch_first && older_epoch
            || self.rules.line_in_order && same_line
            || self.rules.wait_for_dependences
                && waits
                    .any(|waits| !until(&self.buffers[waits.on], &tried[waits.on], waits.until)))
    }
}
