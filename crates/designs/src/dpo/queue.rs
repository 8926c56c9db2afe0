//! The ordered write queues of the controllers: writes and markers in the order in which they came,
//! one order for all. A marker comes to every controller at the same time, and no controller starts
//! a write behind it before all of them have reported that nothing before it is left.

use std::collections::VecDeque;

use model::device::Write;
use model::units::{CoreId, bits};

use super::DpoRules;

/// Controllers, one bit each.
pub(super) type Controllers = u64;

/// The queues of all controllers, as the one order that they keep.
pub(super) struct Queue {
    /// Writes that are not durable, and markers that are not retired.
    pub entries: VecDeque<Queued>,
    pub controllers: u8,
    /// How many entries each queue has, are on their way there, or have left it without the buffers
    /// having heard of that.
    used: Vec<u64>,
    size: u64,
}

/// A write or a marker, with the core and the number of its entry.
pub(super) struct Queued {
    pub core: CoreId,
    pub id: u64,
    pub what: Ordered,
}

pub(super) enum Ordered {
    Write { write: Write, controller: u8, started: bool },
    Marker(Marker),
}

/// A fence at the controllers.
#[derive(Default)]
pub(super) struct Marker {
    /// The controllers that have nothing left to do before it.
    pub done: Controllers,
    /// Those of these controllers of which all the others know.
    reported: Controllers,
}

/// What a look at the queues finds.
#[derive(Default)]
pub(super) struct Found {
    /// Writes to be started.
    pub starts: Vec<(CoreId, u64, Write)>,
    /// Markers before which a controller has nothing left to do.
    pub reports: Vec<(CoreId, u64, u8)>,
    /// Markers that are retired.
    pub retired: Vec<(CoreId, u64)>,
}

impl Queue {
    pub fn new(controllers: u8, size: u64) -> Queue {
        Queue {
            entries: VecDeque::new(),
            controllers,
            used: vec![0; usize::from(controllers)],
            size,
        }
    }

    /// All controllers.
    pub fn all(&self) -> Controllers {
        u64::MAX >> (64 - u32::from(self.controllers))
    }

    fn of(&self, controller: Option<u8>) -> std::ops::Range<usize> {
        controller.map_or(0..self.used.len(), |one| usize::from(one)..usize::from(one) + 1)
    }

    /// Whether there is room for a write at a controller, or for a marker at all of them.
    pub fn has_room(&self, controller: Option<u8>) -> bool {
        self.used[self.of(controller)].iter().all(|used| *used < self.size)
    }

    /// Takes room for an entry that is on its way.
    pub fn reserve(&mut self, controller: Option<u8>) {
        let range = self.of(controller);
        self.used[range].iter_mut().for_each(|used| *used += 1);
    }

    /// Gives back the room of a write, or of a marker at all controllers: the buffers hear of it.
    pub fn release(&mut self, controller: Option<u8>) {
        let range = self.of(controller);
        self.used[range].iter_mut().for_each(|used| *used -= 1);
    }

    /// Removes a write that is durable. Returns its controller.
    ///
    /// # Panics
    /// When the write has been removed before.
    pub fn durable(&mut self, core: CoreId, id: u64) -> u8 {
        let found = self.entries.iter().position(|queued| (queued.core, queued.id) == (core, id));
        let queued = found.and_then(|index| self.entries.remove(index));
        let Some(Queued { what: Ordered::Write { controller, .. }, .. }) = queued else {
            panic!("a write stays until it is durable");
        };
        controller
    }

    /// Notes that all controllers know that one of them has nothing left to do before a marker.
    pub fn reported(&mut self, core: CoreId, id: u64, controller: u8) {
        let mut all = self.entries.iter_mut();
        let found = all.find(|queued| (queued.core, queued.id) == (core, id));
        if let Some(Queued { what: Ordered::Marker(marker), .. }) = found {
            marker.reported |= 1 << controller;
        }
    }

    /// Looks for what the controllers can do now, adds it to `found`, and takes it for done.
    pub fn look(&mut self, rules: &DpoRules, found: &mut Found) {
        let all = self.all();
        let alone = self.controllers == 1;
        // The controllers that have a write left, and those that may start one, at a place of the
        // order.
        let (mut busy, mut open): (Controllers, Controllers) = (0, all);
        for Queued { core, id, what } in &mut self.entries {
            if open == 0 && busy == all {
                // Behind this place no write may start, and each marker has writes left before it.
                break;
            }
            match what {
                Ordered::Write { write, controller, started } => {
                    busy |= 1 << *controller;
                    if !*started && open >> *controller & 1 == 1 {
                        *started = true;
                        found.starts.push((*core, *id, write.clone()));
                    }
                }
                Ordered::Marker(marker) => {
                    let news = all & !busy & !marker.done;
                    marker.done |= news;
                    if alone {
                        marker.reported = marker.done;
                    } else {
                        let own = bits(news).map(|one| (*core, *id, one as u8));
                        found.reports.extend(own);
                    }
                    if rules.keep_markers {
                        open &= match rules.all_controllers_report {
                            true if marker.reported == all => all,
                            true => 0,
                            false => marker.done,
                        };
                    }
                }
            }
        }
        while let Some(Queued { core, id, what: Ordered::Marker(marker) }) = self.entries.front()
            && marker.reported == all
        {
            found.retired.push((*core, *id));
            self.entries.pop_front();
        }
    }

    /// The writes that are not durable, in their order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.entries.iter().filter_map(|queued| match &queued.what {
            Ordered::Write { write, .. } => Some(write),
            Ordered::Marker(_) => None,
        })
    }
}
