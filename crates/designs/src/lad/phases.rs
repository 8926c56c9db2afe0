//! LAD at the first level: lines that are sent to their controllers, and the two phases of a
//! commit.

use model::design::Below;
use model::units::{CoreId, Cycle, Line};

use super::{Entry, Lad, LadEvent, Message};

impl Lad {
    /// Sends a line to its controller. The line leaves the first level at `at` and passes through
    /// the caches.
    fn send(
        &mut self,
        core: CoreId,
        line: Line,
        at: Cycle,
        counted: bool,
        below: &mut Below<LadEvent>,
    ) {
        let thread = &mut self.cores[core];
        thread.unacknowledged += u64::from(counted);
        let entry = Entry { line, core, serial: thread.serial, data: below.line(line) };
        let index = self.messages.insert(Message { entry, counted });
        let walk = below.shape.walk - below.shape.path;
        below.message_with(at + walk, line, LadEvent::Arrive(index));
    }

    /// Sends a line of a running transaction that left the first level. On its way it brings the
    /// copies below up to date, and they are clean.
    pub(super) fn send_what_left(
        &mut self,
        core: CoreId,
        line: Line,
        at: Cycle,
        below: &mut Below<LadEvent>,
    ) {
        below.caches.clean(line);
        self.counts.left += 1;
        self.send(core, line, at, self.rules.count_what_left, below);
    }

    /// Begins the first phase of a commit: sends the lines that are still marked, one by one.
    pub(super) fn prepare(&mut self, core: CoreId, at: Cycle, below: &mut Below<LadEvent>) {
        let mut sent = at;
        let mut order = std::mem::take(&mut self.cores[core].order);
        for line in order.drain(..) {
            if self.cores[core].marked.remove(&line) {
                below.caches.clean(line);
                self.send(core, line, sent, true, below);
                self.counts.prepared += 1;
                sent += self.params.prepare_interval;
            }
        }
        let thread = &mut self.cores[core];
        thread.order = order;
        thread.ready = thread.ready.max(sent);
        thread.preparing = true;
        if thread.unacknowledged == 0 || !self.rules.commit_after_lines {
            self.tell(core, below);
        }
    }

    /// Counts the acknowledgement of a line that a controller has taken.
    pub(super) fn acknowledge(&mut self, core: CoreId, at: Cycle, below: &mut Below<LadEvent>) {
        let thread = &mut self.cores[core];
        thread.unacknowledged -= 1;
        thread.ready = thread.ready.max(at + below.shape.path);
        if thread.preparing && thread.unacknowledged == 0 {
            self.tell(core, below);
        }
    }

    /// Begins the second phase of a commit: tells every controller.
    fn tell(&mut self, core: CoreId, below: &mut Below<LadEvent>) {
        let thread = &mut self.cores[core];
        let serial = thread.serial;
        thread.serial = self.params.next(serial);
        self.counts.anew += u64::from(thread.serial < serial);
        (thread.stored, thread.preparing) = (false, false);
        thread.untold += self.queues.len() as u64;
        for controller in 0..below.shape.controllers {
            let commit = LadEvent::Commit(core, controller, serial);
            below.message(thread.ready, u64::from(controller), commit);
        }
        if !self.rules.acknowledge_after_record {
            below.wake(core, thread.ready);
        }
    }

    /// Notes that a controller has recorded a commit; the core goes on when all have.
    pub(super) fn recorded(&mut self, core: CoreId, at: Cycle, below: &mut Below<LadEvent>) {
        let thread = &mut self.cores[core];
        thread.untold -= 1;
        if thread.untold == 0 && self.rules.acknowledge_after_record {
            below.wake(core, at + below.shape.path);
        }
    }
}
