//! What is known of a program whose own checker judges what a power failure leaves of it.

use crate::checker::{Durable, Reached};
use crate::contents::View;
use crate::design::{FenceKind, Model};
use crate::units::{CoreId, PerCore, Word};

use super::versions::{self, Versions};

/// How far a program has come, and what its fences have made durable.
pub(super) struct Program {
    /// How far it has come: what its checker is told.
    pub(super) reached: Reached,
    /// What lines may hold, if the hardware promises no more than that stores are durable behind a
    /// fence, or those that have left the write-combining buffers.
    pub(super) versions: Option<Versions>,
    /// What the hardware promises, if it is said of stores and not of transactions.
    model: Option<Model>,
    /// The fence or flush that each core has asked for and waits for.
    asked: PerCore<Option<FenceKind>>,
}

impl Program {
    /// A program that begins on a machine with `cores` cores, whose hardware promises this of
    /// stores, and which saves this many lines of its caches: see [`Versions`].
    pub(super) fn new(cores: u8, model: Option<Model>, saved: u64) -> Program {
        let all_survive = saved == versions::ALL;
        let is_loose = match model {
            Some(Model::Fenced | Model::Unordered) => true,
            Some(Model::Visible) => all_survive,
            Some(Model::Epoch) | None => false,
        };
        let durable = match model {
            _ if all_survive => Durable::Visible,
            Some(Model::Visible) => Durable::Visible,
            Some(Model::Fenced) => Durable::Flushed,
            Some(Model::Epoch | Model::Unordered) | None => Durable::Otherwise,
        };
        Program {
            reached: Reached::new(cores, durable),
            versions: is_loose.then(|| Versions::new(cores, saved)),
            model,
            asked: PerCore::new(cores, |_| None),
        }
    }

    /// Notes that a core stored to a word: see [`super::Probe::stored`].
    pub(super) fn stored(
        &mut self,
        core: CoreId,
        word: Word,
        old: u64,
        combining: bool,
        view: &View,
    ) {
        self.reached.stored(word, combining);
        if self.model == Some(Model::Epoch) {
            self.reached.flush_word(core, word);
        }
        if let Some(versions) = &mut self.versions {
            versions.stored(word, old, combining, view);
            if combining {
                versions.flush(core, word.line());
                self.reached.flush(core, word.line());
            }
        }
    }

    /// Notes that a core asks for a fence or a flush.
    pub(super) fn fence(&mut self, core: CoreId, kind: FenceKind) {
        if let FenceKind::Flush(line, ..) = kind
            && let Some(versions) = &mut self.versions
        {
            versions.flush(core, line);
            self.reached.flush(core, line);
        }
        self.asked[core] = Some(kind);
    }

    /// Notes that the fence or flush that a core asked for is done.
    pub(super) fn fenced(&mut self, core: CoreId) {
        let Some(kind) = self.asked[core].take() else { return };
        if self.model.is_some_and(|model| model.reports(kind)) {
            self.reached.fenced(core);
            if let Some(versions) = &mut self.versions {
                versions.fenced(core);
            }
        }
    }

    /// Whether fences promise anything that is followed here.
    pub(super) fn has_fences(&self) -> bool {
        self.versions.is_some() || self.model == Some(Model::Epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checker::Extent;
    use crate::meters::Class;
    use crate::workload::Flush;

    const CORE: CoreId = CoreId(0);
    const WORD: Word = Word(1);

    /// Whether a store is known to be durable when its line was flushed, if it was, and then a
    /// fence of this kind is done; and whether images without it are made.
    fn is_durable(
        model: Option<Model>,
        saved: u64,
        flushed: bool,
        kind: FenceKind,
    ) -> (bool, bool) {
        let mut view = View::new(4096, 4096).expect("room");
        let mut program = Program::new(1, model, saved);
        view.set_word(WORD, 1);
        program.stored(CORE, WORD, 0, false, &view);
        if flushed {
            program.fence(CORE, FenceKind::Flush(WORD.line(), Class::Data, Flush::WriteBack));
            program.fenced(CORE);
        }
        program.fence(CORE, kind);
        program.fenced(CORE);
        let Extent { stores, durable } = program.reached.extent(WORD);
        let is_loose = program.versions.is_some_and(|versions| versions.ways_of(WORD.line()) > 1);
        (durable == stores, is_loose)
    }

    /// A fence alone makes durable what was stored past the caches, also where stores survive.
    #[test]
    fn a_store_past_the_caches_needs_a_fence_and_no_flush() {
        for (model, saved) in [(Model::Fenced, 0), (Model::Visible, versions::ALL)] {
            let mut view = View::new(4096, 4096).expect("room");
            let mut program = Program::new(1, Some(model), saved);
            view.set_word(WORD, 1);
            program.stored(CORE, WORD, 0, true, &view);
            let mut durable = || {
                let durable = program.reached.extent(WORD).durable;
                program.fence(CORE, FenceKind::Order);
                program.fenced(CORE);
                durable
            };
            assert_eq!([durable(), durable()], [0, 1], "{model:?}");
        }
    }

    #[test]
    fn what_a_fence_makes_durable_is_what_the_model_says() {
        use FenceKind::{Durable, Order};
        for (model, saved, flushed, kind, expected) in [
            (Some(Model::Fenced), 0, true, Order, (true, false)),
            (Some(Model::Fenced), 0, true, Durable, (true, false)),
            (Some(Model::Fenced), 0, false, Durable, (false, true)),
            (Some(Model::Epoch), 0, false, Durable, (true, false)),
            (Some(Model::Epoch), 0, true, Order, (false, false)),
            (Some(Model::Unordered), 0, true, Durable, (false, true)),
            (Some(Model::Visible), versions::ALL, false, Order, (true, false)),
            (Some(Model::Visible), 0, false, Order, (true, false)),
            (None, 0, true, Durable, (false, false)),
        ] {
            let held = is_durable(model, saved, flushed, kind);
            assert_eq!(held, expected, "{model:?} {saved} {flushed} {kind:?}");
        }
    }
}
