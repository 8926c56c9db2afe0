//! Cores that wait for each other's transactions, under designs in which one transaction at a time
//! may store to a line or a page. A circle of such waits is broken by running one of the
//! transactions in software ([`crate::parts::fall_back`]), one at a time.

use model::design::{Below, Claimed, Progress};
use model::units::{CoreId, Cycle, PerCore};

/// What a core waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For<R> {
    /// The end of another core's transaction.
    Holder(CoreId),
    /// Its turn to run in software.
    Software,
    /// Something of the design's own.
    Own(R),
}

/// What each core waits for, and which cores run in software.
pub struct Waits<R> {
    waiting: PerCore<Option<For<R>>>,
    /// Cores whose transactions were given up in hardware.
    fell_back: PerCore<bool>,
    /// The core whose transaction runs in software.
    in_software: Option<CoreId>,
}

impl<R: Copy> Waits<R> {
    /// No core waits.
    pub fn new(cores: u8) -> Waits<R> {
        Waits {
            waiting: PerCore::new(cores, |_| None),
            fell_back: PerCore::new(cores, |_| false),
            in_software: None,
        }
    }

    /// Notes what a core waits for.
    pub fn wait(&mut self, core: CoreId, what: For<R>) {
        self.waiting[core] = Some(what);
    }

    /// Whether a core waits for something of the design's own.
    pub fn wants_own(&self) -> bool {
        self.waiting.iter().any(|(_, waiting)| matches!(waiting, Some(For::Own(_))))
    }

    /// Lets the cores whose wait is over ask again.
    pub fn retry_where<E: Copy>(
        &mut self,
        is_over: impl Fn(For<R>) -> bool,
        at: Cycle,
        below: &mut Below<E>,
    ) {
        for (core, waiting) in self.waiting.iter_mut() {
            if waiting.is_some_and(&is_over) {
                *waiting = None;
                below.retry(core, at + below.shape.path);
            }
        }
    }

    /// Handles a core's request for what another core's transaction holds. The core waits, unless
    /// the holder waits for it in turn, directly or through others; then one of them gives up.
    pub fn conflict<E: Copy>(
        &mut self,
        core: CoreId,
        holder: CoreId,
        at: Cycle,
        below: &mut Below<E>,
    ) -> Claimed {
        let mut last = holder;
        // A circle of other cores, which a rule that is switched off may let be, is not this
        // core's.
        for _ in 0..self.waiting.cores() {
            let Some(For::Holder(next)) = self.waiting[last] else { break };
            if next == core {
                if !self.fell_back[core] {
                    return Claimed::Refused;
                }
                // In software the core cannot give up any more, but the core that waits for it can.
                if !self.fell_back[last] {
                    self.waiting[last] = None;
                    below.retry(last, at);
                }
                break;
            }
            last = next;
        }
        self.waiting[core] = Some(For::Holder(holder));
        Claimed::Wait
    }

    /// Whether a core's transaction was given up in hardware.
    pub fn fell_back(&self, core: CoreId) -> bool {
        self.fell_back[core]
    }

    /// Notes that a core's transaction is given up in hardware.
    pub fn fall_back(&mut self, core: CoreId) {
        self.fell_back[core] = true;
    }

    /// Lets a core begin in software, or wait while another one runs there, if `one_at_a_time`.
    pub fn enter_software(&mut self, core: CoreId, at: Cycle, one_at_a_time: bool) -> Progress {
        match self.in_software {
            Some(other) if other != core && one_at_a_time => {
                self.waiting[core] = Some(For::Software);
                Progress::Wait
            }
            _ => {
                self.in_software = Some(core);
                Progress::Done(at)
            }
        }
    }

    /// Notes that a core's transaction is done in software.
    pub fn leave_software<E: Copy>(&mut self, core: CoreId, at: Cycle, below: &mut Below<E>) {
        self.fell_back[core] = false;
        self.in_software = self.in_software.filter(|&other| other != core);
        self.retry_where(|what| matches!(what, For::Software), at, below);
    }
}
