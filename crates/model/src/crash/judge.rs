//! By what a campaign judges the images of its power failures, besides the oracle.

use std::rc::Rc;

use crate::contents::View;
use crate::design::{FenceKind, Model};
use crate::firmware::Firmware;
use crate::oracle::Oracle;
use crate::persistency::Persistency;
use crate::units::{CoreId, Word};
use crate::workload::Workload;

use super::program::Program;
use super::stores::Stores;
use super::versions::{self, Versions};
use super::{Answer, Check};

/// By what images are judged.
pub(super) enum Judge {
    /// By the oracle: transactions are whole.
    Transactions,
    /// By the order of stores, and not by the oracle.
    Order(Stores),
    /// By the oracle and by the program's own checker.
    Program(Program),
}

impl Judge {
    /// The judge that a campaign asks for.
    pub(super) fn new(
        check: &Check,
        workload: &Rc<dyn Workload>,
        firmware: &dyn Firmware,
        oracle: &Oracle,
    ) -> Judge {
        match check {
            Check::Stores(images) => {
                let model = firmware.model().unwrap_or(Model::Unordered);
                let order = Persistency::new(model, oracle.cores());
                Judge::Order(Stores::new(order, images, oracle))
            }
            Check::Transactions if workload.checker().is_some() => {
                let shape = firmware.shape();
                let saved = match shape.every_cache_survives() {
                    true => versions::ALL,
                    false => shape.lines_saved(),
                };
                Judge::Program(Program::new(oracle.cores(), firmware.model(), saved))
            }
            Check::Transactions => Judge::Transactions,
        }
    }

    /// Notes a store: see [`super::Probe::stored`].
    pub(super) fn stored(
        &mut self,
        core: CoreId,
        word: Word,
        (old, new): (u64, u64),
        combining: bool,
        view: &View,
    ) {
        match self {
            Judge::Transactions => (),
            Judge::Order(Stores { order, .. }) if combining => {
                order.store_past_caches(core, word, old, new);
            }
            Judge::Order(stores) => stores.order.store(core, word, old, new),
            Judge::Program(program) => program.stored(core, word, old, combining, view),
        }
    }

    /// Notes that a core asks for a fence or a flush.
    pub(super) fn fence(&mut self, core: CoreId, kind: FenceKind) {
        match self {
            Judge::Transactions => (),
            Judge::Order(stores) => stores.order.fence(core, kind),
            Judge::Program(program) => program.fence(core, kind),
        }
    }

    /// Notes that the fence or flush that a core asked for is done.
    pub(super) fn fenced(&mut self, core: CoreId) {
        match self {
            Judge::Transactions => (),
            Judge::Order(stores) => stores.order.fenced(core),
            Judge::Program(program) => program.fenced(core),
        }
    }

    /// Whether it needs to know when fences are done.
    pub(super) fn follows_fences(&self) -> bool {
        match self {
            Judge::Transactions => false,
            Judge::Order(_) => true,
            Judge::Program(program) => program.has_fences(),
        }
    }

    /// Whether fewer images are right behind a fence: that is a crash point.
    pub(super) fn is_stricter_behind_fences(&self) -> bool {
        matches!(self, Judge::Order(_)) || self.versions().is_some()
    }

    /// What lines may hold, if it says that instead of the order of writes.
    pub(super) fn versions(&self) -> Option<&Versions> {
        match self {
            Judge::Program(program) => program.versions.as_ref(),
            Judge::Transactions | Judge::Order(_) => None,
        }
    }

    /// Whether every image of a crash point is made, if there are few.
    pub(super) fn tries_every(&self) -> bool {
        !matches!(self, Judge::Transactions) && self.versions().is_none()
    }

    /// Notes which of the images that the campaign was asked about are allowed now.
    pub(super) fn ask(&mut self) {
        if let Judge::Order(stores) = self {
            stores.ask();
        }
    }

    /// What is known of the images that the campaign was asked about.
    pub(super) fn answers(self) -> Vec<Answer> {
        match self {
            Judge::Order(stores) => stores.answers,
            Judge::Transactions | Judge::Program(_) => Vec::new(),
        }
    }
}
