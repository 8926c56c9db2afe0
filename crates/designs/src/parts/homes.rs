//! The way of data lines to their places in memory: a line that an eviction, a flush or a scan
//! sends is held back until the undo records of its words are durable.

use std::collections::VecDeque;

use model::controller::Notify;
use model::design::{Below, Disposition, Evict, Shape};
use model::device::Write;
use model::meters::Class;
use model::units::{Cycle, Line};

use super::LogEvent;
use super::log::{Log, Place};

/// Data lines that have left the caches and that no controller has accepted.
#[derive(Debug)]
pub struct Homes {
    path: u64,
    /// Cycles from a log line's controller to that of a data line.
    hop: u64,
    held: Vec<Held>,
    /// How many lines of each group are under way, from the group `first` on; the last one grows.
    groups: VecDeque<u64>,
    first: u64,
    /// Its counts.
    pub counts: HomeCounts,
}

#[derive(Debug)]
struct Held {
    write: Write,
    left: Cycle,
    after: Place,
    notify: LogEvent,
}

model::counters! {
    /// The counts of data lines.
    pub struct HomeCounts {
        evictions_held,
        write_backs "lines_forced",
        write_backs_held "lines_forced_held",
    }
}

impl Homes {
    /// No line is under way.
    pub fn new(shape: &Shape) -> Homes {
        // A line that waits for its records waits at its own controller. Where that is not the
        // records' controller, it has to be told.
        Homes {
            path: shape.path,
            hop: shape.hop(),
            held: Vec::new(),
            groups: VecDeque::from([0]),
            first: 0,
            counts: HomeCounts::default(),
        }
    }

    /// Lets a line that leaves the caches go when the undo data of its words are durable.
    pub fn evict(
        &mut self,
        evict: &Evict,
        log: &mut Log,
        below: &mut Below<LogEvent>,
    ) -> Disposition<LogEvent> {
        let after = log.send_before(evict.line, evict.at, below);
        self.hold(evict, after)
    }

    /// Lets a line that leaves the caches go when the log is durable up to `after`.
    fn hold(&mut self, evict: &Evict, after: Option<Place>) -> Disposition<LogEvent> {
        let Evict { line, data, at } = *evict;
        let notify = self.count(line, false);
        let Some(after) = after else {
            return Disposition::Home { at, notify: Notify::Design(notify) };
        };
        self.counts.evictions_held += 1;
        let write = Write::whole(line, data, Class::HomeWriteBack);
        self.held.push(Held { write, left: at, after, notify });
        Disposition::Taken
    }

    /// Writes a line back if it is dirty: its present bytes leave a first level at `at`, pass
    /// through the caches, and wait until the log is durable up to `after`. The line stays in the
    /// caches. Returns false if it is clean.
    pub fn force(
        &mut self,
        line: Line,
        at: Cycle,
        after: Option<Place>,
        below: &mut Below<LogEvent>,
    ) -> bool {
        let is_dirty = below.caches.clean(line);
        if is_dirty {
            self.write(line, at, after, below);
        }
        is_dirty
    }

    /// Writes a line's present bytes back in the same way.
    pub fn write(
        &mut self,
        line: Line,
        at: Cycle,
        after: Option<Place>,
        below: &mut Below<LogEvent>,
    ) {
        let write = Write::whole(line, below.line(line), Class::Data);
        let left = at + (below.shape.walk - self.path);
        let notify = self.count(line, true);
        self.counts.write_backs += 1;
        match after {
            Some(after) => {
                self.counts.write_backs_held += 1;
                self.held.push(Held { write, left, after, notify });
            }
            None => below.send(left, write, Notify::Design(notify)),
        }
    }

    /// Sends the lines that waited for the log to be durable up to a place. Writes of one line go
    /// in order, since a later one waits at least as long.
    pub fn release(&mut self, durable: Place, at: Cycle, below: &mut Below<LogEvent>) {
        if self.held.is_empty() {
            return;
        }
        let told = at + self.hop;
        self.held.retain(|held| {
            if held.after > durable {
                return true;
            }
            below.send_on(held.left, told, held.write.clone(), Notify::Design(held.notify));
            false
        });
    }

    /// Notes that a controller has accepted a line.
    pub fn accepted(&mut self, group: u64) {
        self.groups[(group - self.first) as usize] -= 1;
        while self.groups.len() > 1 && self.groups[0] == 0 {
            self.groups.pop_front();
            self.first += 1;
        }
    }

    /// Returns a mark behind every line that has left so far.
    pub fn mark(&mut self) -> u64 {
        if self.groups.back().is_some_and(|lines| *lines > 0) {
            self.groups.push_back(0);
        }
        self.current()
    }

    /// Whether controllers have accepted every line before a mark.
    pub fn are_home(&self, mark: u64) -> bool {
        self.first >= mark
    }

    fn current(&self) -> u64 {
        self.first + self.groups.len() as u64 - 1
    }

    fn count(&mut self, line: Line, forced: bool) -> LogEvent {
        *self.groups.back_mut().expect("a group grows") += 1;
        LogEvent::Home { line, group: self.current(), forced }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::Config;

    fn evict(line: u64) -> Evict {
        Evict { line: Line(line), data: [0; 64], at: Cycle(1) }
    }

    fn group(disposition: Disposition<LogEvent>) -> u64 {
        match disposition {
            Disposition::Home { notify: Notify::Design(LogEvent::Home { group, .. }), .. } => group,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_line_whose_records_are_not_durable_is_held() {
        let mut homes = Homes::new(&Shape::new(&Config::default(), 1));
        assert!(homes.hold(&evict(1), None) != Disposition::Taken);
        let after = Some(Place { line: 3, end: 26 });
        assert_eq!(homes.hold(&evict(2), after), Disposition::Taken);
        assert_eq!((homes.held.len(), homes.counts.evictions_held), (1, 1));
    }

    #[test]
    fn a_mark_is_home_when_everything_before_it_is() {
        let mut homes = Homes::new(&Shape::new(&Config::default(), 1));
        let nothing = homes.mark();
        assert!(homes.are_home(nothing));
        let groups = [1, 2].map(|line| group(homes.hold(&evict(line), None)));
        let mark = homes.mark();
        let later = group(homes.hold(&evict(3), None));
        homes.accepted(later);
        homes.accepted(groups[0]);
        assert!(!homes.are_home(mark));
        homes.accepted(groups[1]);
        assert!(homes.are_home(mark));
    }
}
