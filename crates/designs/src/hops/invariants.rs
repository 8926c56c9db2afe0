//! What is true of the persist buffers at any time while every rule is on, in the paper's terms:
//!
//! ```text
//! H1 of a buffer, entries of its oldest epoch alone have been sent
//! H2 of each line, one entry of a buffer at a time has been sent
//! H3 the global timestamp vector names no epoch of which an entry is not durable
//! ```

use model::units::CoreId;

use super::buffer::{Buffer, State};
use super::{Entry, Hops};

impl Hops {
    /// Looks at every buffer.
    ///
    /// # Errors
    /// A sentence that says what is not true.
    pub(super) fn check_invariants(&self) -> Result<(), String> {
        self.buffers.iter().try_for_each(|(core, buffer)| {
            check_sent(core, buffer)?;
            let (seen, durable) = (self.polled.seen(core), buffer.durable_epoch());
            if seen > durable {
                let CoreId(core) = core;
                return Err(format!(
                    "H3: the global timestamp vector has epoch {seen} for core {core}, of which \
                     epoch {durable} is the newest that is durable"
                ));
            }
            Ok(())
        })
    }
}

fn check_sent(CoreId(core): CoreId, buffer: &Buffer) -> Result<(), String> {
    let is_sent = |entry: &&Entry| entry.state != State::Unsent;
    let oldest = buffer.durable_epoch() + 1;
    for (count, entry) in buffer.entries.iter().filter(is_sent).enumerate() {
        let (line, epoch) = (entry.line.address(), entry.epoch);
        if epoch != oldest {
            return Err(format!(
                "H1: core {core} has sent line {line:#x} of epoch {epoch}, and epoch {oldest} is \
                 not durable"
            ));
        }
        let mut before = buffer.entries.iter().filter(is_sent).take(count);
        if before.any(|other| other.line == entry.line) {
            return Err(format!("H2: core {core} has sent line {line:#x} twice at a time"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use model::config::Config;
    use model::design::{Design, Setup, Shape};
    use model::units::Cycle;

    use super::*;
    use crate::hops::{HopsParams, HopsRules};

    /// Checks what is said of core 1's buffer with entries of these lines and epochs, some sent.
    fn check(entries: &[(u64, u64, State)], seen: u64, text: &str) {
        let shape = Shape::new(&Config::default(), 2);
        let (params, rules) = (HopsParams::default(), HopsRules::default());
        let mut hops = Hops::new(&Setup { params: &params, rules: &rules, shape: &shape });
        hops.buffers[CoreId(1)].epoch = seen + 1;
        hops.polled.refresh(Cycle(1_000_000), &hops.buffers);
        let buffer = &mut hops.buffers[CoreId(1)];
        buffer.epoch = 5;
        let of = |&(line, epoch, state): &(u64, u64, State)| Entry::of(line, epoch, state);
        buffer.entries.extend(entries.iter().map(of));
        let said = hops.check_invariants().err().unwrap_or_default();
        assert!(said.starts_with(text) && text.is_empty() == said.is_empty(), "{said}");
    }

    #[test]
    fn buffers_that_drain_as_they_should_are_right() {
        use State::{Durable, Sent, Unsent};
        check(&[], 4, "");
        check(&[(1, 3, Durable), (2, 3, Sent), (1, 3, Unsent), (2, 4, Unsent)], 2, "");
    }

    #[test]
    fn what_breaks_them_is_noticed() {
        use State::{Durable, Sent, Unsent};
        check(&[(1, 3, Durable), (2, 4, Sent)], 2, "H1: core 1 has sent line 0x80 of epoch 4, and");
        check(&[(1, 3, Durable), (1, 3, Sent)], 2, "H2: core 1 has sent line 0x40 twice");
        check(&[(1, 3, Unsent)], 3, "H3: the global timestamp vector has epoch 3 for core 1, of");
        check(&[], 5, "H3: ");
    }
}
