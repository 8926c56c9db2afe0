//! After the commit: lines are written back, and then the transaction is complete.

use model::controller::Notify;
use model::design::Below;
use model::device::Write;
use model::meters::Class;
use model::units::{CoreId, Cycle, Line, bits, spread};

use super::{Access, Awaited, COMPLETE, Conflict, Owner, RedoLog, RedoLogEvent, Stage};

impl RedoLog {
    pub(super) fn start_writing_back(
        &mut self,
        core: CoreId,
        end: u64,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let ended = self.cores[core].ended.iter().find(|ended| ended.end == end);
        for line in &ended.expect("a transaction has ended").lines {
            let owner = self.lines.get_mut(line);
            if let Some(owner) = owner.filter(|owner| owner.core == core && owner.end.is_none()) {
                owner.end = Some(end);
            }
        }
        below.at(at, RedoLogEvent::WriteBack(core, end));
    }

    /// Writes the next line of a transaction back: one a cycle, and no more than the machine has
    /// buffers for at a controller.
    pub(super) fn write_next(
        &mut self,
        core: CoreId,
        end: u64,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let buffers = below.shape.config.controller.writebacks;
        let Some(ended) = self.ended(core, end) else { return };
        ended.full = ended.unwritten >= buffers && ended.sent < ended.lines.len();
        if ended.full {
            self.counts.full += 1;
            return;
        }
        if let Some(&line) = ended.lines.get(ended.sent) {
            ended.sent += 1;
            self.write(core, end, line, at, below);
            below.at(at + 1, RedoLogEvent::WriteBack(core, end));
            return;
        }
        self.try_to_complete(core, at, below);
    }

    /// Sends a line of a committed transaction to its place, unless it has left already.
    fn write(
        &mut self,
        core: CoreId,
        end: u64,
        line: Line,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let owner = self.lines.get_mut(&line);
        let Some(owner) = owner.filter(|owner| owner.core == core && owner.end == Some(end)) else {
            return;
        };
        if std::mem::replace(&mut owner.written, true) {
            return;
        }
        let owner = *owner;
        let notify = Notify::Design(RedoLogEvent::Written(core, end, line));
        let is_sent = if !owner.dropped {
            below.write_back(at, line, Class::Data, notify)
        } else {
            // The caches do not have the line, or had to fetch it again, with its words from the
            // log. It is clean then, and memory still does not have these words.
            let data = below.line(line);
            let path = below.shape.path;
            let (mask, leaves) = if below.caches.clean(line) {
                (u64::MAX, at + (below.shape.walk - path))
            } else {
                (spread(owner.words), self.read_log(&owner, at + path, below))
            };
            below.send(leaves, Write { line, data, mask, class: Class::Data }, notify);
            true
        };
        if is_sent {
            self.ended(core, end).expect("it is not complete").unwritten += 1;
        } else {
            self.lines.get_mut(&line).expect("it has an owner").home = true;
        }
    }

    /// Reads the newest words of a line from the log, which may have them in several lines. Returns
    /// when the last of those is there.
    fn read_log(&self, owner: &Owner, at: Cycle, below: &mut Below<RedoLogEvent>) -> Cycle {
        let area = &self.cores[owner.core].area;
        let places = bits(owner.words.into());
        let mut lines: Vec<Line> =
            places.map(|place| area.word(owner.logged[place as usize]).line()).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.into_iter().map(|line| below.memory.read(at, line)).max().unwrap_or(at)
    }

    /// Sends a line of a committed transaction to its place from the caches, since another core
    /// comes to have it. The caches are not told that it is clean, since the other core may mean to
    /// write.
    fn force(&mut self, line: Line, at: Cycle, below: &mut Below<RedoLogEvent>) {
        let owner = self.lines.get_mut(&line).expect("the line is of a transaction");
        let (core, end) = (owner.core, owner.end.expect("it has committed"));
        owner.written = true;
        let mask = if owner.dropped { spread(owner.words) } else { u64::MAX };
        let write = Write { line, data: below.line(line), mask, class: Class::Data };
        below.send(at, write, Notify::Design(RedoLogEvent::Written(core, end, line)));
        self.ended(core, end).expect("it is not complete").unwritten += 1;
        self.counts.forced += 1;
    }

    /// Returns when a core that comes to have a line has it: at `at`, or later if its words have to
    /// be read from the log. Sends a line that another core's transaction committed to its place.
    /// If the core is to wait until it is there, its access waits for that afterwards.
    pub(super) fn touch(
        &mut self,
        core: CoreId,
        line: Line,
        at: Cycle,
        memory: bool,
        below: &mut Below<RedoLogEvent>,
    ) -> Cycle {
        let Some(&owner) = self.lines.get(&line) else { return at };
        let log = &self.cores[owner.core];
        let is_buffered = || log.buffer.iter().any(|(other, _)| *other == line);
        let mut done = at;
        if memory && owner.dropped && !owner.written && !is_buffered() {
            let path = below.shape.path;
            done = self.read_log(&owner, at + path, below) + path;
            self.counts.fetched_from_log += 1;
        }
        let committed = owner.end.is_some() && !owner.written;
        if committed && owner.core != core && self.rules.write_back_before_others {
            self.force(line, done, below);
        }
        if self.params.conflict == Conflict::Durable {
            self.cores[core].awaited = self.awaited(core, line);
        }
        done
    }

    /// Returns what a core that comes to have a line waits for, if it does.
    fn awaited(&self, core: CoreId, line: Line) -> Option<Awaited> {
        let owner = self.lines.get(&line).filter(|owner| owner.core != core)?;
        let of = (owner.core, owner.end?);
        (owner.written && !owner.home).then_some(Awaited { line, of, by: None })
    }

    /// Lets the accesses go on that wait for a line of a transaction, which is in its place.
    fn release(
        &mut self,
        of: (CoreId, u64),
        line: Line,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let there = at + below.shape.path;
        for core in (0..self.cores.cores()).map(CoreId) {
            let awaited = &mut self.cores[core].awaited;
            let it = awaited.take_if(|awaited| awaited.line == line && awaited.of == of);
            let Some(access) = it.and_then(|it| it.by) else { continue };
            self.counts.held_access += 1;
            match access {
                Access::Load => below.wake_load(core, there),
                Access::Store(leaves) => {
                    if !self.make_room(core, leaves.max(there), below) {
                        below.wake(core, there);
                    }
                }
            }
        }
    }

    /// Notes that a line is durable in its place.
    pub(super) fn written(
        &mut self,
        (core, end): (CoreId, u64),
        line: Line,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let owner = self.lines.get_mut(&line);
        if let Some(owner) = owner.filter(|it| it.core == core && it.end == Some(end)) {
            owner.home = true;
        }
        self.release((core, end), line, at, below);
        if let Some(ended) = self.ended(core, end) {
            ended.unwritten -= 1;
            if std::mem::take(&mut ended.full) {
                below.at(at + below.shape.path, RedoLogEvent::WriteBack(core, end));
            }
        }
        self.try_to_complete(core, at, below);
    }

    /// Sends the complete record of a core's oldest transaction if it is due; the next transaction
    /// may begin then.
    pub(super) fn try_to_complete(
        &mut self,
        core: CoreId,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let ended = self.cores[core].ended.front();
        let Some(ended) = ended.filter(|ended| ended.stage == Stage::Committed) else { return };
        let is_written = ended.sent == ended.lines.len() && ended.unwritten == 0;
        if self.rules.complete_after_lines && !is_written {
            return;
        }
        let precedes = |&(other, end): &(CoreId, u64)| self.cores[other].complete < end;
        if self.rules.complete_in_order && ended.after.iter().any(precedes) {
            self.counts.held_complete += 1;
            return;
        }
        let log = &mut self.cores[core];
        let ended = log.ended.front_mut().expect("a transaction has ended");
        ended.stage = Stage::Completing;
        let notify = Notify::Design(RedoLogEvent::Completed(core, ended.end));
        log.area.set_mark(COMPLETE, ended.end, at + below.shape.path, notify, below);
        if log.waiting && log.is_completing() {
            log.waiting = false;
            below.wake(core, at + below.shape.path);
        }
    }

    pub(super) fn completed(
        &mut self,
        core: CoreId,
        end: u64,
        at: Cycle,
        below: &mut Below<RedoLogEvent>,
    ) {
        let log = &mut self.cores[core];
        let ended = log.ended.pop_front().expect("a transaction has ended");
        log.complete = end;
        for line in ended.lines {
            let owner = self.lines.get(&line);
            if owner.is_some_and(|owner| owner.core == core && owner.end == Some(end)) {
                self.lines.remove(&line);
            }
        }
        for other in (0..self.cores.cores()).map(CoreId) {
            self.try_to_complete(other, at, below);
        }
    }
}
